"""Prompts of the evaluators that ask a chat model, and the shapes of their replies.

Reasoning stands before scores in every schema, so that a model that writes in order thinks first.
"""

from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from pydantic import BaseModel, ConfigDict, Field

from langchain_groundedness.prompts import DATA_RULE, VERIFICATION_PROMPT

__all__ = [
    "ANSWER_QUALITY_PROMPT",
    "ANSWER_RELEVANCY_PROMPT",
    "CONTEXT_RELEVANCE_PROMPT",
    "FEW_SHOT_VERIFICATION_PROMPT",
    "RUBRIC_PROMPT",
    "AnsweredQuestions",
    "QualityScores",
    "RelevantSentences",
    "RubricScore",
]


class RelevantSentences(BaseModel):
    """The sentences that are needed to answer the question."""

    model_config = ConfigDict(extra="forbid")

    lines: list[str] = Field(description="One sentence number per entry; empty if none.")


class QualityScores(BaseModel):
    """How good an answer is."""

    model_config = ConfigDict(extra="forbid")

    reasoning: str = Field(description="What speaks for and against the answer, before the scores.")
    relevance: float = Field(description="0.0 to 1.0")
    correctness: float = Field(description="0.0 to 1.0")
    completeness: float = Field(description="0.0 to 1.0")


class AnsweredQuestions(BaseModel):
    """The questions that a text answers."""

    model_config = ConfigDict(extra="forbid")

    commits: bool = Field(description="False if the text evades or does not know.")
    questions: list[str] = Field(description="One question per entry.")


class RubricScore(BaseModel):
    """The level of a rubric that an answer reaches."""

    model_config = ConfigDict(extra="forbid")

    reasoning: str = Field(description="Which level fits and why, before the score.")
    score: int = Field(description="The number of the level.")


CONTEXT_RELEVANCE_PROMPT = ChatPromptTemplate.from_messages(
    [
        (
            "system",
            "You choose what a question can be answered from. "
            + DATA_RULE
            + """
The sentences are numbered. Choose only those that are absolutely relevant and required to answer \
the question; being about the same subject is not enough. Reply with their numbers, one per line. \
If no sentence helps to answer the question, write: none""",
        ),
        MessagesPlaceholder("examples", optional=True),
        ("human", "{evidence}\n{question}"),
    ]
)
"""Variables: `evidence` (numbered sentences, fenced), `question` (fenced); optional: `examples`."""

ANSWER_QUALITY_PROMPT = ChatPromptTemplate.from_messages(
    [
        (
            "system",
            "You review answers to questions. "
            + DATA_RULE
            + """
First write your reasoning, in the language of the answer, then three scores from 0.0 to 1.0:
relevance, how well the answer addresses the question:
  1.0 entirely; 0.7 with some needless material; 0.4 in part; 0.0 not at all
correctness, whether its facts are right by the evidence and the reference, not by what you know:
  1.0 all of them; 0.7 small inaccuracies; 0.4 substantial mistakes; 0.0 wrong or contrary to them
completeness, how much of what the question asks for is there:
  1.0 all of it; 0.7 what matters most; 0.4 something important is missing; 0.0 hardly anything
Length is no merit. A short answer that says all that was asked for is complete: give it 1.0. Do \
not take points off because an answer could say more than was asked. Judge each score by itself.""",
        ),
        ("human", "{evidence}{reference}{question}{answer}"),
    ]
)
"""Variables: `question`, `answer` (fenced); optional: `evidence`, `reference` (fenced, with a line
end, or empty)."""

ANSWER_RELEVANCY_PROMPT = ChatPromptTemplate.from_messages(
    [
        (
            "system",
            "You find the questions that a text is an answer to. "
            + DATA_RULE
            + """
Write {count} different questions, each of which the text as a whole answers, in the language of \
the text. Take only what the text says: do not add what it leaves open.
Also say whether the text commits itself to an answer. It does not if it evades, is vague about \
everything, or says that it does not know.""",
        ),
        ("human", "{answer}"),
    ]
)
"""Variables: `count`, `answer` (fenced)."""

RUBRIC_PROMPT = ChatPromptTemplate.from_messages(
    [
        (
            "system",
            "You grade answers by a rubric, and only by it. "
            + DATA_RULE
            + """
These are the levels:
{rubric}
First write your reasoning, in the language of the answer, then the number of the one level that \
fits best.""",
        ),
        ("human", "{evidence}{reference}{question}{answer}"),
    ]
)
"""Variables: `rubric` (one line `number: description` each), `answer` (fenced); optional:
`evidence`, `reference`, `question` (fenced, with a line end, or empty)."""

FEW_SHOT_VERIFICATION_PROMPT = ChatPromptTemplate.from_messages(
    [
        VERIFICATION_PROMPT.messages[0],
        MessagesPlaceholder("examples", optional=True),
        VERIFICATION_PROMPT.messages[-1],
    ]
)
"""`prompts.VERIFICATION_PROMPT` with room for worked examples; optional: `examples`."""
