"""Per-claim verification: one call per claim, the answer one word, its probability if given."""

import math
import re
from collections.abc import Sequence
from itertools import islice
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.prompts.chat import BaseChatPromptTemplate
from langchain_core.runnables import Runnable

from langchain_groundedness._defused import defused
from langchain_groundedness._flow import Flow, ModelCall
from langchain_groundedness._patience import Budget
from langchain_groundedness._replies import refused, reply_text
from langchain_groundedness._telemetry import caught
from langchain_groundedness.evidence import SentenceIndex
from langchain_groundedness.prompts import fence, fold_space, question_part
from langchain_groundedness.structured import learn, recall, unsupported
from langchain_groundedness.types import (
    Citation,
    Claim,
    ClaimVerdict,
    EvidenceBatch,
    VerificationTask,
)
from langchain_groundedness.verifiers._batched import why_unchecked
from langchain_groundedness.verifiers._lines import Label
from langchain_groundedness.verifiers._polarity import says_no
from langchain_groundedness.verifiers._statement import is_short_answer

__all__ = ["LabelModel", "PlainEvidence", "judge_alone", "label_probabilities"]

_LABELS: dict[str, Label] = {
    "yes": "supported",
    "no": "contradicted",
    "unknown": "unverifiable",
    "supported": "supported",
    "contradicted": "contradicted",
    "unverifiable": "unverifiable",
    "unsupported": "unverifiable",
}
_WORD = re.compile(r"[^\W_]+")
_AROUND = re.compile(r"^[\W_]+|[\W_]+$")
_BEGINNING = 3
"""Words: "yes and no" and "supported? no" are no verdict."""
_THOUGHTS, _THOUGHTS_END = "<think>", "</think>"
_TOP_LOGPROBS = 10
_ANSWER_TOKENS = 16
_ONE_WORD = "Is the statement supported? Only one word: yes, no or unknown."
_SHORTEST_PIECE = 2
_SUBJECT = "log-probabilities"


class LabelModel(NamedTuple):
    """A model, and how it is asked for a label."""

    model: Runnable[Any, Any]
    prompt: BaseChatPromptTemplate
    """With the variables of `LABEL_PROMPT`."""
    threshold: float
    """Least probability of support for the label `supported`."""
    timeout: float | None = None
    """Seconds to wait for a reply."""


def judge_alone(
    task: VerificationTask,
    evidence: "PlainEvidence",
    ask: LabelModel,
    verifier: str,
    budget: Budget,
) -> Flow[list[ClaimVerdict]]:
    """Judge the claims of a task against one evidence batch, one call each.

    Args:
        task: The claims, and the documents that the batch was made from.
        evidence: The batch, as the judge sees it.
        ask: The model under the label prompt.
        verifier: Name for the verdicts.
        budget: What there is for asking again.

    Returns:
        One verdict per claim. Its citation is the evidence sentence that fits the claim best.
    """
    verdicts = []
    for claim in task.claims:
        messages = ask.prompt.format_messages(
            evidence=evidence.shown,
            # Small models judge whether a statement answers the question, if they see one.
            question=question_part(task.question if is_short_answer(claim.text) else None),
            claim=fence("statement", fold_space(claim.text)),
        )
        try:
            answer = yield from _ask(ask, messages, budget)
        except Exception as exc:  # noqa: BLE001  (a provider may fail in any way)
            reason = why_unchecked(caught(exc))
            verdicts.append(ClaimVerdict.unchecked(claim, reason, verifier=verifier))
        else:
            verdicts.append(_verdict(claim, answer, task, evidence, verifier))
    return verdicts


class PlainEvidence(NamedTuple):
    """An evidence batch as the judge sees it, and what finds quotes in it."""

    shown: str
    sentences: SentenceIndex

    @classmethod
    def of(cls, batch: EvidenceBatch) -> "PlainEvidence":
        """Read a batch.

        Args:
            batch: The evidence.

        Returns:
            Its text, fenced, and its sentences.
        """
        text = "\n\n".join(passage.text for passage in batch.passages)
        return cls(fence("evidence", text), SentenceIndex(batch.passages))


class _Answer(NamedTuple):
    label: Label | None
    support: float | None
    """Probability of `supported` among the labels, if the model gave any probabilities."""
    refused: bool = False


def _ask(ask: LabelModel, messages: list[BaseMessage], budget: Budget) -> Flow[_Answer]:
    raw = yield from _call(ask, messages, budget)
    answer = _read(raw, ask.threshold)
    if answer.label is None and not answer.refused and budget.take():
        again = [*messages, AIMessage(defused(reply_text(raw)) or "…"), HumanMessage(_ONE_WORD)]
        raw = yield from _call(ask, again, budget)
        answer = _read(raw, ask.threshold)
        if answer.label is None and not answer.refused:
            answer = _forced(raw, ask.threshold)
    return answer


def _call(ask: LabelModel, messages: list[BaseMessage], budget: Budget) -> Flow[Any]:
    """Call the model, asking for log-probabilities unless it is known to refuse the option."""
    model = ask.model
    if recall(model, _SUBJECT) != 0:
        asking = model.bind(
            logprobs=True, top_logprobs=_TOP_LOGPROBS, max_tokens=_ANSWER_TOKENS, stop=["\n"]
        )
        try:
            raw = yield ModelCall(asking, messages, ask.timeout)
        except Exception as exc:
            if recall(model, _SUBJECT) == 1 or not unsupported(exc) or not budget.take():
                raise
        else:
            learn(model, _SUBJECT, 1)
            return raw
    raw = yield ModelCall(model, messages, ask.timeout)
    learn(model, _SUBJECT, 0)
    return raw


def _read(raw: Any, threshold: float) -> _Answer:
    if refused(raw):
        return _Answer(None, None, refused=True)
    label = _label(reply_text(raw))
    probabilities = label_probabilities(raw) if label else {}
    return _weighed(probabilities, threshold) if probabilities else _Answer(label, None)


def _weighed(probabilities: dict[Label, float], threshold: float) -> _Answer:
    if not probabilities:
        return _Answer(None, None)
    support = probabilities.pop("supported", 0.0)
    if support >= threshold:
        return _Answer("supported", support)
    against = probabilities.get("contradicted", 0.0) > probabilities.get("unverifiable", 0.0)
    return _Answer("contradicted" if against else "unverifiable", support)


def _forced(raw: Any, threshold: float) -> _Answer:
    """Read which label a model that wrote a sentence would have begun with, by its probabilities.

    What it wrote has the last word: a sentence that denies anything is no verdict.
    """
    if says_no(reply_text(raw)):
        return _Answer(None, None)
    return _weighed(label_probabilities(raw, forced=True), threshold)


def _label(text: str) -> Label | None:
    """Read the label that a reply begins with: further on, "supported" may be denied."""
    words = [match[0] for match in islice(_WORD.finditer(text.lower()), _BEGINNING)]
    label = _LABELS.get(words[0]) if words else None
    others = {_LABELS[word] for word in words if word in _LABELS} - {label}
    return None if others else label


def label_probabilities(raw: Any, *, forced: bool = False) -> dict[Label, float]:
    """Read the probabilities of the labels from the log-probabilities of a reply.

    Args:
        raw: A message; the log-probabilities are looked for in
            `response_metadata["logprobs"]["content"]`, where OpenAI and the servers that speak
            its protocol put them.
        forced: Whether to read them also where the token that was chosen begins no label.

    Returns:
        The share of each label seen at the first token of the answer, out of all labels seen
        there; empty if that token begins no label, or none is seen. Thoughts, white space and
        markup may precede.
    """
    logprobs = getattr(raw, "response_metadata", {}).get("logprobs")
    content = logprobs.get("content") if isinstance(logprobs, dict) else None
    first = _first_of_answer(content or ())
    if first is None or (_label_begun(first["token"]) is None and not forced):
        return {}
    seen: dict[Label, float] = {}
    for option in first.get("top_logprobs") or [first]:
        label = _label_begun(option["token"])
        if label is not None:
            seen[label] = seen.get(label, 0.0) + math.exp(option["logprob"])
    total = sum(seen.values())
    return {label: share / total for label, share in seen.items()} if total else {}


def _first_of_answer(content: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    text = "".join(position["token"] for position in content)
    ended = text.rfind(_THOUGHTS_END)
    if ended < 0 and _THOUGHTS in text:
        return None
    answer = ended + len(_THOUGHTS_END) if ended >= 0 else 0
    at = 0
    for position in content:
        if at >= answer and _AROUND.sub("", position["token"]):
            return position
        at += len(position["token"])
    return None


def _label_begun(token: str) -> Label | None:
    piece = _AROUND.sub("", token).lower()
    if len(piece) < _SHORTEST_PIECE:
        return None
    return next((label for word, label in _LABELS.items() if word.startswith(piece)), None)


def _verdict(
    claim: Claim,
    answer: _Answer,
    task: VerificationTask,
    evidence: PlainEvidence,
    verifier: str,
) -> ClaimVerdict:
    if answer.label is None:
        reason = "the model refused to answer" if answer.refused else "the reply is no label"
        return ClaimVerdict.unchecked(claim, reason, verifier=verifier)
    citations: tuple[Citation, ...] = ()
    if answer.label != "unverifiable":
        best = evidence.sentences.best(claim.text)
        if best is not None:
            found = Citation.from_document(task.documents, best.document, best.start, best.end)
            citations = (found,)
    return ClaimVerdict(
        claim=claim,
        verdict=answer.label,
        support_probability=answer.support,
        citations=citations,
        verifier=verifier,
    )
