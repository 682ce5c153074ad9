"""Correction: edits an answer where claims were contradicted, and nowhere else."""

import logging
import re
from collections.abc import Sequence
from typing import Any, Self, TypeAlias

from langchain_core.prompts.chat import BaseChatPromptTemplate
from pydantic import ConfigDict, field_validator, model_validator
from typing_extensions import override

from langchain_groundedness._runtime.flow import Flow, FlowRunnable, ModelCall
from langchain_groundedness._runtime.options import CheckedOptions
from langchain_groundedness._runtime.telemetry import caught
from langchain_groundedness._runtime.timeouts import DEFAULT_TIMEOUT, Seconds
from langchain_groundedness.correction.edits import (
    MARKER,
    PLACE,
    Replacement,
    apply_edits,
    differing_part,
    removal,
    without_overlaps,
)
from langchain_groundedness.llm.chat_models import ChatModel
from langchain_groundedness.llm.prompts import (
    CORRECTION_PROMPT,
    CorrectionLines,
    check_prompt,
    fence,
    fold_space,
)
from langchain_groundedness.llm.replies import numbered_line, numbered_lines
from langchain_groundedness.llm.structured import StructuredModel
from langchain_groundedness.types import (
    ClaimVerdict,
    CorrectedAnswer,
    CorrectionTask,
    Edit,
    OnContradicted,
    OnUnverifiable,
)
from langchain_groundedness.verification.embedded.contradictions import differing_value
from langchain_groundedness.verification.embedded.quantities import (
    comparable,
    find_quantities,
    same_quantity,
)

__all__ = ["Corrector"]

_LONGEST_VALUE = 4
_JOINS_HALVES = re.compile(r"[*_`]*,?[ ](?:and )?[*_`]*")
_LONGEST_JOIN = 40
_LOGGER = logging.getLogger(__name__)
_ENDED = re.compile(r"""[.!?\u2026\u3002\uff01\uff1f][*_`"')\u201d\u2019]*$""")
_OPENS_SECOND_HALF = re.compile(r"(?:that|which|who|with|is|was|are|were|has|have|had)\b")
_CLOSES_SENTENCE = re.compile(
    r"(?:\s{0,2}(?:\[[^\[\]\n]{1,40}\]|\([^()\n]{1,60}\)|\u3010[^\u3010\u3011]{1,60}\u3011))*[.!]?[*_`]*"
)

Span: TypeAlias = tuple[int, int]
_Placed: TypeAlias = tuple[ClaimVerdict, Span]
_Found: TypeAlias = tuple[list[Edit], list[_Placed]]


class Corrector(CheckedOptions, FlowRunnable[CorrectionTask, CorrectedAnswer]):
    """Edits the spans of claims that failed; every other character stays as it was.

    For a contradicted claim it replaces the least text that it can tell to be wrong: the value
    that differs, else the words that differ from the corrected statement, else the claim's whole
    span. Where claims share text and edits would overlap, the smaller edit is made. A model is
    asked once, for all statements in which no such part can be found, and only for those.

    Example:
        >>> from langchain_groundedness import Claim, ClaimVerdict
        >>> from langchain_groundedness.types import CorrectionTask
        >>> claim = Claim(id="c1", text="It opened in May 2019.", start=0, end=22)
        >>> verdict = ClaimVerdict(claim=claim, verdict="contradicted", correction="June 2019")
        >>> task = CorrectionTask(answer="It opened in May 2019.", verdicts=(verdict,))
        >>> Corrector().invoke(task).text
        'It opened in [CORRECTED: June 2019].'
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)
    _can_be_saved = True

    marker: str | None = MARKER
    """How a correction is shown, with the place `{correction}`; `None` for clean text."""
    model: ChatModel | None = None
    """Chat model that rewords statements in which no differing part can be found; without one, the
    evidence itself replaces them."""
    prompt: BaseChatPromptTemplate | None = None
    """Instead of `prompts.CORRECTION_PROMPT`; it must have the same variables and ask for the
    same form of reply."""
    timeout: Seconds = DEFAULT_TIMEOUT
    """Seconds to wait for one reply of the model; `None` leaves it to the model's client."""

    @field_validator("marker")
    @classmethod
    def _has_place(cls, marker: str | None) -> str | None:
        if marker is not None and marker.count(PLACE) != 1:
            msg = f"marker must be None or hold {PLACE!r} once, got {marker!r}"
            raise ValueError(msg)
        return marker

    @model_validator(mode="after")
    def _usable_prompt(self) -> Self:
        check_prompt(self.prompt or CORRECTION_PROMPT, required={"evidence", "statements"})
        return self

    def _found(self, task: CorrectionTask) -> _Found:
        """Find the edits that need no model, and the statements that do."""
        spans = [(v, span) for v in task.verdicts if (span := _span(v, task.answer))]
        edits: list[Edit] = []
        coarse: list[_Placed] = []
        for verdict, span in spans:
            if _action(task, verdict) == "strip":
                edits += filter(None, [_strip(task, verdict, span, spans)])
            elif _action(task, verdict) == "correct":
                text = task.answer[slice(*span)]
                change = _least_change(text, verdict) or _change_of_claim(text, verdict)
                if change is None:
                    coarse.append((verdict, span))
                else:
                    edits.append(self._edit(task.answer, verdict, span, change))
        return edits, coarse

    _is_slow = True

    @override
    def _size(self, task: CorrectionTask, /) -> int:
        return len(task.answer)

    @override
    def _flow(self, task: CorrectionTask, /, **_: Any) -> Flow[CorrectedAnswer]:
        edits, coarse = self._found(task)
        written: dict[str, str] = {}
        if self.model is not None and coarse:
            written = yield from self._rewritten(task, coarse)
        for verdict, span in coarse:
            text = task.answer[slice(*span)]
            whole = _whole_change(text, verdict, written.get(verdict.claim.id))
            if whole is not None:
                edits.append(self._edit(task.answer, verdict, span, whole))
        made = without_overlaps(edits)
        return CorrectedAnswer(text=apply_edits(task.answer, made), edits=made)

    def _rewritten(self, task: CorrectionTask, coarse: Sequence[_Placed]) -> Flow[dict[str, str]]:
        """Ask the model for the statements in which no differing part was found."""
        quotes = dict.fromkeys(c.quote for verdict, _ in coarse for c in verdict.citations)
        statements = [fold_space(task.answer[slice(*span)]) for _, span in coarse]
        numbered = "\n".join(f"{n}: {text}" for n, text in enumerate(statements, 1))
        ask = StructuredModel[CorrectionLines](
            model=self.model,
            prompt=self.prompt or CORRECTION_PROMPT,
            reply_schema=CorrectionLines,
            name="correct_claims",
            from_text=_read_text,
            timeout=self.timeout,
        )
        values = {
            "evidence": fence("evidence", "\n".join(map(fold_space, quotes))),
            "statements": fence("statements", numbered),
        }
        try:
            reply = yield ModelCall(ask, values)
        except Exception as exc:  # noqa: BLE001  (any failure leaves the extractive correction)
            _LOGGER.warning("correction fell back to the evidence: %s", type(caught(exc)).__name__)
            return {}
        by_number = dict(filter(None, map(numbered_line, reply.lines)))
        return {
            verdict.claim.id: by_number[number]
            for number, (verdict, _) in enumerate(coarse, 1)
            if number in by_number
        }

    def _edit(self, answer: str, verdict: ClaimVerdict, span: Span, change: Replacement) -> Edit:
        start, end = span[0] + change.start, span[0] + change.end
        return Edit(
            claim_id=verdict.claim.id,
            start=start,
            end=end,
            original=answer[start:end],
            replacement=self._mark(change.text),
            correction=change.text,
        )

    def _mark(self, correction: str) -> str:
        return correction if self.marker is None else self.marker.replace(PLACE, correction)


def _read_text(text: str) -> CorrectionLines | None:
    """Read a plain reply: numbered lines, or the word for no line at all."""
    lines = numbered_lines(text)
    return None if lines is None else CorrectionLines(lines=lines)


def _action(task: CorrectionTask, verdict: ClaimVerdict) -> OnContradicted | OnUnverifiable:
    if verdict.verdict == "contradicted":
        return task.on_contradicted
    return task.on_unverifiable if verdict.verdict == "unverifiable" else "keep"


def _span(verdict: ClaimVerdict, answer: str) -> tuple[int, int] | None:
    start, end = verdict.claim.start, verdict.claim.end
    if start is None or end is None or not answer[start:end].strip():
        return None
    return start, end


def _strip(
    task: CorrectionTask, verdict: ClaimVerdict, span: Span, spans: Sequence[_Placed]
) -> Edit | None:
    """Take a claim out; of a sentence that it shares with another one, only what is its own."""
    # Text that a claim which stays also rests on is not taken out.
    for other, theirs in spans:
        overlaps = theirs[0] < span[1] and span[0] < theirs[1]
        stays = other.claim.id != verdict.claim.id and other.verdict in ("supported", "unchecked")
        if overlaps and stays:
            return None
    (start, end), replacement = removal(task.answer, *span), ""
    half = _other_half(task, span, spans)
    if half is not None:
        action, theirs = _action(task, half), (half.claim.start or 0, half.claim.end or 0)
        comes_first = theirs[0] < span[0]
        if action == "correct" or (action == "strip" and comes_first):
            return None  # the edit of the other half would be lost, or takes both halves out
        if action == "strip":
            start, end = removal(task.answer, span[0], _end_of_sentence(task.answer, theirs[1]))
        elif comes_first:
            start, end = theirs[1], span[1]
        else:
            start, end = _before_markup(task.answer, span[0]), theirs[1]
            replacement = half.claim.text.removesuffix(".")
    return Edit(
        claim_id=verdict.claim.id,
        start=start,
        end=end,
        original=task.answer[start:end],
        replacement=replacement,
        correction=replacement,
    )


def _other_half(task: CorrectionTask, span: Span, spans: Sequence[_Placed]) -> ClaimVerdict | None:
    """Find the claim that says the rest of the sentence, where a sentence says two things."""
    for other, theirs in spans:
        if 0 < max(span[0] - theirs[1], theirs[0] - span[1]) <= _LONGEST_JOIN:
            first, second = sorted((span, theirs))
            if (
                _JOINS_HALVES.fullmatch(task.answer[first[1] : second[0]])
                and _OPENS_SECOND_HALF.match(task.answer, *second)
                and not _ENDED.search(task.answer, *first)
            ):
                return other
    return None


def _end_of_sentence(answer: str, end: int) -> int:
    match = None if _ENDED.search(answer, 0, end) else _CLOSES_SENTENCE.match(answer, end)
    return match.end() if match else end


def _before_markup(answer: str, start: int) -> int:
    """Move the start of a text before markup that opens there and closes inside it."""
    return start - len(answer[:start]) + len(answer[:start].rstrip("*_`"))


def _least_change(text: str, verdict: ClaimVerdict) -> Replacement | None:
    """The part of `text` that the verdict's correction or evidence shows to be wrong."""
    correction = (verdict.correction or "").strip()
    for statement in filter(None, (correction, *(c.quote for c in verdict.citations))):
        value = differing_value(text, statement)
        if value is None or value.kind == "polarity":
            continue
        if not correction or value.evidence_value in correction:
            return Replacement(value.claim_start, value.claim_end, value.evidence_value)
    return _bare_value(text, correction) or differing_part(text, correction)


def _change_of_claim(text: str, verdict: ClaimVerdict) -> Replacement | None:
    """The least change of the claim itself, where `text` says more: courtesy, a link, a tag."""
    claim = verdict.claim.text
    change = None if claim == text else _least_change(claim, verdict)
    wrong = claim[change.start : change.end] if change else ""
    if change is None or not wrong.strip() or text.count(wrong) != 1:
        return None
    start = text.index(wrong)
    return Replacement(start, start + len(wrong), change.text)


def _bare_value(text: str, correction: str) -> Replacement | None:
    """The one value of `text` that a correction consisting of a value can replace."""
    given = find_quantities(correction)
    if len(given) != 1 or len(correction.split()) > _LONGEST_VALUE:
        return None
    wrong = [
        found
        for found in find_quantities(text)
        if comparable(found, given[0]) and not same_quantity(found, given[0])
    ]
    if len(wrong) != 1:
        return None
    value = correction[given[0].start : given[0].end]
    return Replacement(wrong[0].start, wrong[0].end, value)


def _whole_change(text: str, verdict: ClaimVerdict, written: str | None) -> Replacement | None:
    """The whole of `text`, replaced by what the model wrote, the correction, or the evidence."""
    if written and (part := differing_part(text, written)):
        return part
    correction = (verdict.correction or "").strip()
    quotes = [c.quote for c in verdict.citations]
    whole = written or correction or (quotes[0] if quotes else "")
    return Replacement(0, len(text), whole) if whole and whole != text else None
