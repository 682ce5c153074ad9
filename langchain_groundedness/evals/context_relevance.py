"""Context relevance: whether what was retrieved helps to answer the question."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Self

from langchain_core.cross_encoders import BaseCrossEncoder
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.prompts.chat import BaseChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableLambda, RunnableParallel
from pydantic import Field, model_validator
from typing_extensions import override

from langchain_groundedness._runtime.flow import Flow, ModelCall
from langchain_groundedness.evals.evaluator import Evaluator, RowFailedError
from langchain_groundedness.evals.prompts import (
    CONTEXT_RELEVANCE_PROMPT,
    RelevanceExample,
    RelevantSentences,
    numbered,
)
from langchain_groundedness.evals.text_metrics import cosines
from langchain_groundedness.evals.values import EvaluationRow, RowScore
from langchain_groundedness.evidence.packing import EvidencePacker
from langchain_groundedness.inputs.formats import has_text
from langchain_groundedness.llm.chat_models import ChatModel
from langchain_groundedness.llm.prompts import check_prompt, fence, on_one_line
from langchain_groundedness.llm.structured import StructuredModel
from langchain_groundedness.pipeline.recording import encoder_checksum
from langchain_groundedness.types import Claim, ClaimVerdict, VerificationTask
from langchain_groundedness.verification import EmbeddedVerifier
from langchain_groundedness.verification.judge_calls import NumberedEvidence

__all__ = ["DEFAULT_EXAMPLES", "ContextRelevanceEvaluator"]

_Sentence = tuple[int, int, str]
"""A sentence: index of its document, first character, text."""

_RANGE = re.compile(r"(\d{1,6})(?:\s*[-\u2013]\s*(\d{1,6}))?")

_LONGEST_RANGE = 20

_NONE = re.compile(r"\W*none\b[^\d]*", re.IGNORECASE)

_ONLY_NUMBERS = re.compile(
    r"\W*(?:sentences?\W+)?\d{1,6}(?:\W+(?:and\W+)?\d{1,6})*\W*", re.IGNORECASE
)

_QUOTED = re.compile(r"[-*\s]*\[?(?:(\d{1,6})[\])]?[.:]? )?[\"'\u201c]?(.+?)[\"'\u201d]?")

DEFAULT_EXAMPLES: tuple[dict[str, Any], ...] = tuple(
    {
        "inputs": {"questions": f"What is the capital of {country}?", "contexts": contexts},
        "outputs": {"relevant_statements": relevant},
    }
    for country, contexts, relevant in (
        (
            "Germany",
            ["Berlin is the capital of Germany. Berlin and was founded in 1244."],
            ["Berlin is the capital of Germany."],
        ),
        (
            "France",
            [
                "Berlin is the capital of Germany and was founded in 1244.",
                "Europe is a continent with 44 countries.",
                "Madrid is the capital of Spain.",
            ],
            [],
        ),
        ("Italy", ["Rome is the capital of Italy."], ["Rome is the capital of Italy."]),
    )
)
"""Shown to the model unless `examples=` says otherwise: one context that helps beside a sentence
that does not, several that do not, and one that does."""


class ContextRelevanceEvaluator(Evaluator):
    """Share of the contexts of a row that hold a sentence needed to answer the question.

    A context scores 1 if any sentence of it is relevant, else 0; the row's score is the mean over
    its contexts. `details` has `context_scores` and `context_statements` (one entry per context)
    and `relevant_statements` (all of them). The statements are sentences of the contexts, word for
    word: a model names them by number. A blank context scores 0, and so does a row for which
    nothing was retrieved (`[]`), as in the other metrics; a row with no contexts at all (`None`) is
    skipped.

    Without a model it works offline: a sentence is relevant if the embedded verifier, or
    `cross_encoder`, gives the question and it a score of at least `threshold`, or if `embeddings`
    rate them that close; if only the context as a whole reaches it, its closest sentence is
    chosen. That measures whether both share a topic, which is less than what a model is asked.
    The embedded verifier reads English (other questions fail) and was trained on statements. On
    150 questions of HaluEval QA it found 87 % of the contexts written for them (2 failed), and
    called 3 % of the most similar unrelated ones relevant (`benchmarks/context_relevance.py`).

    Example:
        >>> evaluator = ContextRelevanceEvaluator()
        >>> result = evaluator.run(
        ...     questions=["What is the capital of Italy?"],
        ...     contexts=[["Rome is the capital of Italy. It is old.", "Oslo lies on a fjord."]],
        ... )
        >>> result["score"], result["results"][0]["context_scores"]
        (0.5, [1, 0])
        >>> result["results"][0]["relevant_statements"]
        ['Rome is the capital of Italy.']
    """

    needs = ("question", "documents")

    key: str = Field(default="context_relevance", min_length=1)
    model: ChatModel | None = None
    """A chat model, or its name as `provider:name`, that chooses the relevant sentences."""
    examples: tuple[RelevanceExample, ...] | None = None
    """Few-shot examples for the model, each `{"inputs": {"questions": "…", "contexts": ["…"]},
    "outputs": {"relevant_statements": ["…"]}}`; by default `DEFAULT_EXAMPLES`, `()` for none."""
    prompt: BaseChatPromptTemplate | None = None
    """Instead of `evals.prompts.CONTEXT_RELEVANCE_PROMPT`, with the same variables."""
    embeddings: Embeddings | None = None
    """Without a model: measure the cosine of question and sentence."""
    cross_encoder: BaseCrossEncoder | None = None
    """Without a model: score question and sentence."""
    threshold: float | None = Field(default=None, ge=-1.0, le=1.0)
    """Without a model: least cosine or score of what is relevant; by default 0.2 for the embedded
    verifier and 0.5 for others. Scores differ between models: look at yours first."""
    max_tokens: int = Field(default=100_000, ge=1)
    """Most tokens of contexts in one call of the model; more take more calls, in parallel."""

    @model_validator(mode="after")
    def _options_go_together(self) -> Self:
        given = [
            n for n in ("model", "embeddings", "cross_encoder") if getattr(self, n) is not None
        ]
        if len(given) > 1:
            msg = f"give one of model=, embeddings= and cross_encoder=, not {' and '.join(given)}"
            raise ValueError(msg)
        if self.model is None and (self.examples is not None or self.prompt is not None):
            msg = "examples= and prompt= are for the model: give model="
            raise ValueError(msg)
        check_prompt(self._prompt, required={"evidence", "question"}, optional={"examples"})
        return self

    @override
    def _score(self, row: EvaluationRow) -> Flow[RowScore]:
        documents, question = row.documents or (), row.question or ""
        if not has_text(documents):
            found: list[_Sentence] = []
        elif self.model is not None:
            found = yield from self._by_model(question, documents)
        else:
            found = yield from self._by_score(question, documents)
        statements: list[list[str]] = [[] for _ in documents]
        for document, _, text in sorted(set(found)):
            statements[document].append(text)
        scores = [1 if texts else 0 for texts in statements]
        details = {
            "relevant_statements": [text for texts in statements for text in texts],
            "context_scores": scores,
            "context_statements": statements,
        }
        comment = f"{sum(scores)} of {len(scores)} contexts are relevant"
        score = sum(scores) / len(scores) if scores else 0.0
        return self._scored(score, comment=comment, details=details)

    def _by_model(self, question: str, documents: Sequence[Document]) -> Flow[list[_Sentence]]:
        pack = RunnableLambda(self._batches, name="number_sentences")
        batches: list[NumberedEvidence] = yield ModelCall(pack, documents)
        asking: dict[str, Runnable[Any, RelevantSentences]] = {
            str(place): StructuredModel[RelevantSentences](
                model=self.model,
                prompt=self._prompt.partial(evidence=batch.shown),
                reply_schema=RelevantSentences,
                name="find_relevant_sentences",
                timeout=self.model_timeout,
                from_text=_read_text,
                why_unusable=partial(_why_unreadable, batch),
            )
            for place, batch in enumerate(batches)
        }
        values = {"question": fence("question", question), "examples": self._example_messages()}
        replies: dict[str, RelevantSentences] = yield ModelCall(RunnableParallel(asking), values)
        return [
            sentence
            for batch, reply in zip(batches, replies.values(), strict=True)
            for sentence in _chosen_sentences(batch, reply)
        ]

    def _by_score(self, question: str, documents: Sequence[Document]) -> Flow[list[_Sentence]]:
        number = RunnableLambda(_by_context, name="number_sentences")
        by_context: list[list[_Sentence]] = yield ModelCall(number, documents)
        texts = list(dict.fromkeys(text for own in by_context for *_, text in own))
        if not texts:
            return []
        scores = yield from similarities(question, texts, self._measure)
        known = dict(zip(texts, scores, strict=True))
        return [
            each for own in by_context for each in _sentences_above(own, known, self._threshold)
        ]

    @property
    def _measure(self) -> Embeddings | BaseCrossEncoder | None:
        """What measures instead of the embedded verifier."""
        return self.embeddings or self.cross_encoder

    @property
    def _threshold(self) -> float:
        if self.threshold is not None:
            return self.threshold
        return 0.2 if self._measure is None else 0.5

    def _batches(self, documents: Sequence[Document]) -> list[NumberedEvidence]:
        packer = EvidencePacker(max_tokens=self.max_tokens)
        return [NumberedEvidence.of(batch) for batch in packer.pack(documents)]

    @property
    def _prompt(self) -> BaseChatPromptTemplate:
        return self.prompt or CONTEXT_RELEVANCE_PROMPT

    def _example_messages(self) -> list[Any]:
        shown = self.examples
        if shown is None:
            shown = tuple(map(RelevanceExample.model_validate, DEFAULT_EXAMPLES))
        return [message for example in shown for message in example.messages()]

    @override
    def _defaults(self) -> Mapping[str, Any]:
        if self.model is not None:
            shown = "\n".join(message.text for message in self._example_messages())
            return {"prompt": self._prompt, "examples": re.sub(r"<.*?>", "", shown)}
        if self._measure is not None:
            return {"threshold": self._threshold}
        embedded = {"verifier": EmbeddedVerifier(), "encoder": encoder_checksum()}
        return {"threshold": self._threshold, **embedded}


def _by_context(documents: Sequence[Document]) -> list[list[_Sentence]]:
    """Give the sentences of each context, and last, if they are several, the context as a whole."""
    texts = [document.page_content for document in documents]
    found: list[list[_Sentence]] = [[] for _ in texts]
    for each in numbered(texts).sentences:
        found[each.document].append((each.document, each.start, each.text))
    return [own + [(n, 0, texts[n])] * (len(own) > 1) for n, own in enumerate(found)]


def _sentences_above(
    own: Sequence[_Sentence], scores: Mapping[str, float], least: float
) -> list[_Sentence]:
    """Return the sentences above the threshold; else the closest one of a context above it."""
    sentences = own[:-1] or own
    close = [each for each in sentences if scores[each[-1]] >= least]
    if not close and own and scores[own[-1][-1]] >= least:
        close = [max(sentences, key=lambda each: scores[each[-1]])]
    return close


def _read_text(text: str) -> RelevantSentences | None:
    """Read a plain reply; an empty one is unreadable, not "nothing is relevant"."""
    return RelevantSentences(lines=text.splitlines()) if text.strip() else None


def _why_unreadable(batch: NumberedEvidence, reply: RelevantSentences) -> str | None:
    """Say why a reply cannot be read, if so."""
    lines = [line for line in reply.lines if line.strip()]
    if reply.lines and not lines:
        return "its lines are empty"
    if any(_numbers(batch, line) is None for line in lines):
        return "a line of it names no sentence"
    return None


def _chosen_sentences(batch: NumberedEvidence, reply: RelevantSentences) -> list[_Sentence]:
    lines = (_numbers(batch, line) for line in reply.lines if line.strip())
    numbers = {number for line in lines for number in line or ()}
    known = sorted(n for n in numbers if 1 <= n <= len(batch.sentences))
    if numbers and not known:
        msg = "the model chose only sentences that it was not shown"
        raise RowFailedError(msg)
    chosen = (batch.sentences[number - 1] for number in known)
    return [(each.document, each.start, each.text) for each in chosen]


def _numbers(batch: NumberedEvidence, line: str) -> list[int] | None:
    """Read a line: numbers, "none", or a sentence verbatim; else `None`."""
    if _NONE.fullmatch(line):
        return []
    if _ONLY_NUMBERS.fullmatch(line):
        return [number for found in _RANGE.finditer(line) for number in _counted(found)]
    if (said := _QUOTED.fullmatch(on_one_line(line))) is None:
        return None
    named = int(said[1]) if said[1] else None
    for number, sentence in enumerate(batch.sentences, 1):
        text = on_one_line(sentence.text)
        is_quoted = said[2] in text and 2 * len(said[2]) > len(text)  # all of it, or most
        if named in (None, number) and is_quoted:
            return [number]
    return None


def _counted(found: re.Match[str]) -> Iterable[int]:
    first, last = int(found[1]), int(found[2] or found[1])
    return range(first, last + 1) if 0 <= last - first <= _LONGEST_RANGE else (first, last)


def similarities(
    question: str, texts: Sequence[str], measure: Embeddings | BaseCrossEncoder | None
) -> Flow[list[float]]:
    """Measure how close texts are to a question."""
    if isinstance(measure, Embeddings):
        of = "a sentence or of the question"
        return (yield from cosines(measure, question, texts, of=of))
    if measure is None:
        asked = (Claim(id="question", text=question),)
        tasks = [VerificationTask(claims=asked, documents=(Document(text),)) for text in texts]
        replies: list[list[ClaimVerdict]] = yield ModelCall(EmbeddedVerifier().map(), tasks)
        scores = []
        for [verdict] in replies:
            if verdict.support_probability is None:
                raise RowFailedError(verdict.reason or "the question has no word to look for")
            scores.append(verdict.support_probability)
        return scores
    score = RunnableLambda(measure.score, name="score_sentences")
    found: Sequence[float] = yield ModelCall(score, [(question, text) for text in texts])
    if len(found) != len(texts) or any(map(math.isnan, found)):
        msg = "a sentence has no usable score"
        raise RowFailedError(msg)
    return list(map(float, found))
