"""Prompts of the evaluators that ask a chat model, and the shapes of their replies.

Reasoning stands before scores in every schema, so that a model that writes in order thinks first.
"""

from collections.abc import Sequence
from typing import Annotated, Literal, Self

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from pydantic import Field, model_validator

from langchain_groundedness.claims.extractors import ExtractionExample
from langchain_groundedness.llm.prompts import (
    VERIFICATION_PROMPT,
    ReplySchema,
    fence,
    make_prompt,
    on_one_line,
    question_part,
    reply_tag,
    with_tag,
)
from langchain_groundedness.text.words import most_similar
from langchain_groundedness.types import EvidenceBatch, FrozenModel, Passage
from langchain_groundedness.verification.judge_calls import NumberedEvidence

__all__ = [
    "ANSWER_QUALITY_PROMPT",
    "ANSWER_RELEVANCY_PROMPT",
    "CONTEXT_RELEVANCE_PROMPT",
    "FEW_SHOT_VERIFICATION_PROMPT",
    "RUBRIC_PROMPT",
    "FaithfulnessExample",
    "RelevanceExample",
]


class RelevantSentences(ReplySchema):
    """The sentences that are needed to answer the question."""

    lines: list[str] = Field(description="One sentence number per entry; empty if none.")


class QualityScores(ReplySchema):
    """How good an answer is."""

    reasoning: str = Field(description="What speaks for and against the answer, before the scores.")
    relevance: float = Field(description="0.0 to 1.0")
    correctness: float = Field(description="0.0 to 1.0")
    completeness: float = Field(description="0.0 to 1.0")


class AnsweredQuestions(ReplySchema):
    """The questions that a text answers."""

    commits: bool = Field(description="False if the text evades or does not know.")
    questions: list[str] = Field(description="One question per entry.")


class RubricScore(ReplySchema):
    """The level of a rubric that an answer reaches."""

    reasoning: str = Field(description="Which level fits and why, before the score.")
    score: int = Field(description="The number of the level.")


CONTEXT_RELEVANCE_PROMPT = make_prompt(
    "You choose what a question can be answered from.",
    """\
The sentences are numbered. Choose only those that are absolutely relevant and required to answer \
the question; being about the same subject is not enough. Reply with their numbers, one per line. \
If no sentence helps to answer the question, write: none""",
    "{evidence}\n{question}",
    examples=True,
)
"""Variables: `evidence` (numbered sentences, fenced), `question` (fenced); optional: `examples`."""

ANSWER_QUALITY_PROMPT = make_prompt(
    "You review answers to questions.",
    """\
First write your reasoning, in the language of the answer, then three scores from 0.0 to 1.0:
relevance, how well the answer addresses the question:
  1.0 entirely; 0.7 with some needless material; 0.4 in part; 0.0 not at all
correctness, whether its facts are right by the evidence and the reference, not by what you know:
  1.0 all of them; 0.7 small inaccuracies; 0.4 substantial mistakes; 0.0 wrong or contrary to them
completeness, how much of what the question asks for is there:
  1.0 all of it; 0.7 what matters most; 0.4 something important is missing; 0.0 hardly anything
Length is no merit. A short answer that says all that was asked for is complete: give it 1.0. Do \
not take points off because an answer could say more than was asked. Judge each score by itself.""",
    "{evidence}{reference}{question}{answer}",
)
"""Variables: `question`, `answer` (fenced); optional: `evidence`, `reference` (fenced, with a line
end, or empty)."""

ANSWER_RELEVANCY_PROMPT = make_prompt(
    "You find the questions that a text is an answer to.",
    """\
Write {count} different questions, each of which the text as a whole answers, in the language of \
the text. Take only what the text says: do not add what it leaves open.
Also say whether the text commits itself to an answer. It does not if it evades, is vague about \
everything, or says that it does not know.""",
    "{answer}",
)
"""Variables: `count`, `answer` (fenced)."""

RUBRIC_PROMPT = make_prompt(
    "You grade answers by a rubric, and only by it.",
    """\
These are the levels:
{rubric}
First write your reasoning, in the language of the answer, then the number of the one level that \
fits best.""",
    "{evidence}{reference}{question}{answer}",
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

Text = Annotated[str, Field(min_length=1)]


class _RelevanceInputs(FrozenModel):
    questions: Text
    contexts: tuple[Text, ...] = Field(min_length=1)


class _FaithfulnessInputs(_RelevanceInputs):
    predicted_answers: Text


class _FaithfulnessOutputs(FrozenModel):
    statements: tuple[Text, ...]
    statement_scores: tuple[Literal[0, 1], ...]

    @model_validator(mode="after")
    def _of_one_length(self) -> Self:
        statements, scores = len(self.statements), len(self.statement_scores)
        if statements != scores:
            msg = f"statements has {statements} entries and statement_scores {scores}"
            raise ValueError(msg)
        return self


class FaithfulnessExample(FrozenModel):
    """One worked example of `FaithfulnessEvaluator`."""

    inputs: _FaithfulnessInputs
    outputs: _FaithfulnessOutputs

    @model_validator(mode="after")
    def _can_be_shown(self) -> Self:
        _ = self.extraction
        return self

    @property
    def extraction(self) -> ExtractionExample:
        """The example of finding the statements."""
        return ExtractionExample(
            question=self.inputs.questions,
            answer=self.inputs.predicted_answers,
            claims=self.outputs.statements,
        )

    def verification(self) -> list[BaseMessage]:
        """Show the example of judging the statements, as `prompts.VERIFICATION_PROMPT` asks it."""
        if not self.outputs.statements:
            return []
        evidence = numbered(self.inputs.contexts)
        claims = (on_one_line(statement) for statement in self.outputs.statements)
        shown = "\n".join(f"C{number}: {claim}" for number, claim in enumerate(claims, 1))
        question, fenced = question_part(self.inputs.questions), fence("claims", shown)
        tag = reply_tag(evidence.shown, question, fenced)
        sentences = [sentence.text for sentence in evidence.sentences]
        scored = zip(self.outputs.statements, self.outputs.statement_scores, strict=True)
        verdicts = (
            f"{tag} C{number} [{most_similar(statement, sentences) + 1}] supported"
            if score
            else f"{tag} C{number} unverifiable | the evidence does not say so"
            for number, (statement, score) in enumerate(scored, 1)
        )
        return [
            HumanMessage(f"{evidence.shown}\n{question}{with_tag(fenced, tag)}"),
            AIMessage("\n".join(verdicts)),
        ]


class _RelevanceOutputs(FrozenModel):
    relevant_statements: tuple[Text, ...]


class RelevanceExample(FrozenModel):
    """One worked example of `ContextRelevanceEvaluator`."""

    inputs: _RelevanceInputs
    outputs: _RelevanceOutputs

    @model_validator(mode="after")
    def _verbatim(self) -> Self:
        for place, chosen in enumerate(self._chosen(numbered(self.inputs.contexts))):
            if not chosen:
                msg = f"outputs.relevant_statements[{place}] is no sentence of inputs.contexts"
                raise ValueError(msg)
        return self

    def messages(self) -> list[BaseMessage]:
        """Show the example as `prompts.CONTEXT_RELEVANCE_PROMPT` asks it."""
        evidence = numbered(self.inputs.contexts)
        chosen = sorted({number for each in self._chosen(evidence) for number in each})
        return [
            HumanMessage(f"{evidence.shown}\n{fence('question', self.inputs.questions)}"),
            AIMessage("\n".join(map(str, chosen)) or "none"),
        ]

    def _chosen(self, evidence: NumberedEvidence) -> list[list[int]]:
        """Give for each statement the sentences that contain it or make it up, by number."""
        sentences = [on_one_line(sentence.text) for sentence in evidence.sentences]
        return [
            [n for n, text in enumerate(sentences, 1) if statement in text or text in statement]
            for statement in map(on_one_line, self.outputs.relevant_statements)
        ]


def numbered(contexts: Sequence[str]) -> NumberedEvidence:
    """Number the sentences of contexts."""
    passages = tuple(
        Passage(document=place, start=0, end=len(text), text=text)
        for place, text in enumerate(contexts)
        if text.strip()
    )
    return NumberedEvidence.of(EvidenceBatch(passages=passages, tokens=0))
