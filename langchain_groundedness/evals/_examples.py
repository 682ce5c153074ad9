"""Few-shot examples in the form that evaluators document, shown to a model as it would reply."""

from collections.abc import Sequence
from typing import Annotated, Literal, Self

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from pydantic import BaseModel, ConfigDict, Field, model_validator

from langchain_groundedness.claims import ExtractionExample
from langchain_groundedness.prompts import fence, fold_space, question_part
from langchain_groundedness.types import EvidenceBatch, Passage
from langchain_groundedness.verifiers._batched import NumberedEvidence
from langchain_groundedness.words import content_words

__all__ = ["FaithfulnessExample", "RelevanceExample", "numbered"]

Text = Annotated[str, Field(min_length=1)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _FaithfulnessInputs(_Part):
    questions: Text
    contexts: tuple[Text, ...] = Field(min_length=1)
    predicted_answers: Text


class _FaithfulnessOutputs(_Part):
    statements: tuple[Text, ...]
    statement_scores: tuple[Literal[0, 1], ...]

    @model_validator(mode="after")
    def _of_one_length(self) -> Self:
        if len(self.statements) != len(self.statement_scores):
            msg = (
                f"statements has {len(self.statements)} entries and statement_scores "
                f"{len(self.statement_scores)}; give one score, 0 or 1, per statement"
            )
            raise ValueError(msg)
        return self


class FaithfulnessExample(_Part):
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
        claims = (fold_space(statement) for statement in self.outputs.statements)
        shown = "\n".join(f"C{number}: {claim}" for number, claim in enumerate(claims, 1))
        question = question_part(self.inputs.questions)
        scored = zip(self.outputs.statements, self.outputs.statement_scores, strict=True)
        verdicts = (
            f"C{number}: [{_closest(statement, evidence)}] supported"
            if score
            else f"C{number}: unverifiable | the evidence does not say so"
            for number, (statement, score) in enumerate(scored, 1)
        )
        return [
            HumanMessage(f"{evidence.shown}\n{question}{fence('claims', shown)}"),
            AIMessage("\n".join(verdicts)),
        ]


class _RelevanceInputs(_Part):
    questions: Text
    contexts: tuple[Text, ...] = Field(min_length=1)


class _RelevanceOutputs(_Part):
    relevant_statements: tuple[Text, ...]


class RelevanceExample(_Part):
    """One worked example of `ContextRelevanceEvaluator`."""

    inputs: _RelevanceInputs
    outputs: _RelevanceOutputs

    @model_validator(mode="after")
    def _verbatim(self) -> Self:
        for place, statement in enumerate(self.outputs.relevant_statements):
            if not _places(statement, numbered(self.inputs.contexts)):
                msg = (
                    f"outputs.relevant_statements[{place}] stands in none of inputs.contexts; "
                    "statements are sentences of the contexts, word for word"
                )
                raise ValueError(msg)
        return self

    def messages(self) -> list[BaseMessage]:
        """Show the example as `prompts.CONTEXT_RELEVANCE_PROMPT` asks it."""
        evidence = numbered(self.inputs.contexts)
        chosen = {
            number
            for statement in self.outputs.relevant_statements
            for number in _places(statement, evidence)
        }
        return [
            HumanMessage(f"{evidence.shown}\n{fence('question', self.inputs.questions)}"),
            AIMessage("\n".join(map(str, sorted(chosen))) or "none"),
        ]


def numbered(contexts: Sequence[str]) -> NumberedEvidence:
    """Number the sentences of contexts.

    Args:
        contexts: Their texts.

    Returns:
        The sentences, as a judge sees them, in order.
    """
    passages = tuple(
        Passage(document=place, start=0, end=len(text), text=text)
        for place, text in enumerate(contexts)
        if text.strip()
    )
    return NumberedEvidence.of(EvidenceBatch(passages=passages, tokens=0))


def _places(statement: str, evidence: NumberedEvidence) -> list[int]:
    """Give the numbers of the sentences that a statement stands in, or consists of."""
    return [
        number
        for number, sentence in enumerate(evidence.sentences, 1)
        if fold_space(statement) in fold_space(sentence.text)
        or fold_space(sentence.text) in fold_space(statement)
    ]


def _closest(statement: str, evidence: NumberedEvidence) -> int:
    words = content_words(statement)
    shared = [len(words & content_words(sentence.text)) for sentence in evidence.sentences]
    return shared.index(max(shared)) + 1
