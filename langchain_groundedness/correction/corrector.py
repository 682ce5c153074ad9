"""Correction: edits for the failed claims of an answer; `pipeline.check` applies those it keeps."""

import logging
import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal, Self, TypeAlias

from langchain_core.documents import Document
from langchain_core.prompts.chat import BaseChatPromptTemplate
from pydantic import field_validator, model_validator
from typing_extensions import override

from langchain_groundedness._runtime.flow import Flow, FlowRunnable, ModelCall
from langchain_groundedness._runtime.options import CheckedOptions
from langchain_groundedness._runtime.telemetry import record_error
from langchain_groundedness._runtime.timeouts import DEFAULT_TIMEOUT, Seconds
from langchain_groundedness.correction.edits import (
    MARKER,
    PLACE,
    Replacement,
    apply_edits,
    differing_part,
    is_covered,
    make_edit,
    removal_span,
    without_overlaps,
)
from langchain_groundedness.llm.chat_models import ChatModel
from langchain_groundedness.llm.prompts import (
    CORRECTION_PROMPT,
    CorrectionLines,
    check_prompt,
    fence,
    on_one_line,
)
from langchain_groundedness.llm.replies import numbered_line, numbered_lines
from langchain_groundedness.llm.structured import StructuredModel
from langchain_groundedness.text.markdown import is_table_row
from langchain_groundedness.types import (
    Citation,
    ClaimVerdict,
    CorrectedAnswer,
    CorrectionTask,
    Edit,
    OnContradicted,
    OnUnverifiable,
)
from langchain_groundedness.verification.embedded.contradictions import differing_value
from langchain_groundedness.verification.embedded.expanded_documents import (
    is_question,
    statement_at,
)
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
_LocatedVerdict: TypeAlias = tuple[ClaimVerdict, Span]


class Corrector(CheckedOptions, FlowRunnable[CorrectionTask, CorrectedAnswer]):
    """Edits the spans of failed claims; all other text is unchanged.

    For a contradicted claim it replaces as little text as possible: the differing value, otherwise
    the words that differ from the corrected statement, otherwise the claim's whole span. If edits
    overlap, the smaller one is made. A model, if given, is called once for all statements without a
    differing part. In a check, an edit stands only if the verifier clearly supports the whole
    edited statement and it says no more than before; otherwise `fallback` applies.

    Example:
        >>> from langchain_groundedness import Claim, ClaimVerdict
        >>> from langchain_groundedness.types import CorrectionTask
        >>> claim = Claim(id="c1", text="It opened in May 2019.", start=0, end=22)
        >>> verdict = ClaimVerdict(claim=claim, verdict="contradicted", correction="June 2019")
        >>> task = CorrectionTask(answer="It opened in May 2019.", verdicts=(verdict,))
        >>> Corrector().invoke(task).text
        'It opened in [CORRECTED: June 2019].'
    """

    _can_be_saved = True

    marker: str | None = MARKER
    """Template for a correction, containing `{correction}`; `None` inserts the bare correction."""
    model: ChatModel | None = None
    """A chat model, or its name as `provider:name`, that rewrites statements without a differing
    part; without a model, the evidence replaces them."""
    prompt: BaseChatPromptTemplate | None = None
    """Replaces `prompts.CORRECTION_PROMPT`; it must have the same variables and request the same
    reply format."""
    timeout: Seconds = DEFAULT_TIMEOUT
    """Timeout of one model call in seconds; `None` leaves it to the model's client."""
    fallback: Literal["quote", "strip"] = "quote"
    """What happens to a contradicted statement if no correction of it passes its check: `quote`
    replaces it by the evidence sentence, with what leads to it in the document; `strip`
    removes it."""

    @field_validator("marker")
    @classmethod
    def _has_place(cls, marker: str | None) -> str | None:
        if marker is not None and marker.count(PLACE) != 1:
            msg = f"marker must be None or contain {PLACE!r} exactly once, got {marker!r}"
            raise ValueError(msg)
        return marker

    @model_validator(mode="after")
    def _usable_prompt(self) -> Self:
        check_prompt(self.prompt or CORRECTION_PROMPT, required={"evidence", "statements"})
        return self

    def fall_back(self, task: CorrectionTask, verdicts: Sequence[ClaimVerdict]) -> list[Edit]:
        """Edit claims that could not be corrected.

        Args:
            task: The answer and all its verdicts.
            verdicts: The contradicted claims without a correction.

        Returns:
            For each claim that is located in the answer, its replacement by the evidence sentence,
            or its removal.
        """
        spans = _located(task.verdicts, task.answer)
        edits: list[Edit] = []
        left: list[_LocatedVerdict] = []
        for verdict, span in _located(verdicts, task.answer):
            held = [c for c in verdict.citations if c.holds_in(task.documents)]
            stripped = _strip(task, verdict, span, spans)
            if stripped is None:
                left.append((verdict, span))
                continue
            quote = _statement(held, task.documents) if self.fallback == "quote" else ""
            if quote and _other_half(task, span, spans) is None:
                whole = Replacement(0, span[1] - span[0], quote)
                edits.append(self._edit(task.answer, verdict, span, whole))
            else:
                edits.append(stripped)
        for verdict, span in left:
            if not is_covered(verdict.claim, edits):
                start, end = removal_span(task.answer, *span)
                edits.append(make_edit(task.answer, verdict.claim.id, start, end, ""))
        return edits

    _is_slow = True

    @override
    def _size(self, task: CorrectionTask, /) -> int:
        return len(task.answer)

    @override
    def _flow(self, task: CorrectionTask, /, **_: Any) -> Flow[CorrectedAnswer]:
        spans = _located(task.verdicts, task.answer)
        edits: list[Edit] = []
        unlocated: list[_LocatedVerdict] = []
        for verdict, span in spans:
            if _action(task, verdict) == "strip":
                edits += filter(None, [_strip(task, verdict, span, spans)])
            elif _action(task, verdict) == "correct":
                text = task.answer[slice(*span)]
                change = _smallest_change(text, verdict) or _change_of_claim(text, verdict)
                if change is None:
                    unlocated.append((verdict, span))
                else:
                    edits.append(self._edit(task.answer, verdict, span, change))
        written: dict[str, str] = {}
        if self.model is not None and unlocated:
            written = yield from self._rewritten(task, unlocated)
        for verdict, span in unlocated:
            text = task.answer[slice(*span)]
            whole = _whole_change(text, verdict, task, written.get(verdict.claim.id))
            if whole is not None:
                edits.append(self._edit(task.answer, verdict, span, whole))
        made = without_overlaps(edits)
        return CorrectedAnswer(text=apply_edits(task.answer, made), edits=made)

    def _rewritten(
        self, task: CorrectionTask, unlocated: Sequence[_LocatedVerdict]
    ) -> Flow[dict[str, str]]:
        """Rewrite the statements without a differing part with the model."""
        quotes = dict.fromkeys(c.quote for verdict, _ in unlocated for c in verdict.citations)
        statements = [on_one_line(task.answer[slice(*span)]) for _, span in unlocated]
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
            "evidence": fence("evidence", "\n".join(map(on_one_line, quotes))),
            "statements": fence("statements", numbered),
        }
        try:
            reply = yield ModelCall(ask, values)
        except Exception as exc:  # noqa: BLE001  (any failure falls back to the extractive correction)
            name = type(record_error(exc)).__name__
            _LOGGER.warning("correction fell back to the evidence: %s", name)
            return {}
        by_number = dict(filter(None, map(numbered_line, reply.lines)))
        return {
            verdict.claim.id: by_number[number]
            for number, (verdict, _) in enumerate(unlocated, 1)
            if number in by_number
        }

    def _edit(self, answer: str, verdict: ClaimVerdict, span: Span, change: Replacement) -> Edit:
        start, end = span[0] + change.start, span[0] + change.end
        marked = (self.marker or PLACE).replace(PLACE, change.text)
        return make_edit(answer, verdict.claim.id, start, end, marked, correction=change.text)


def _read_text(text: str) -> CorrectionLines | None:
    """Parse a plain reply: numbered lines, or `none`."""
    lines = numbered_lines(text)
    return None if lines is None else CorrectionLines(lines=lines)


def _action(task: CorrectionTask, verdict: ClaimVerdict) -> OnContradicted | OnUnverifiable:
    """Return what to do about a claim: the task has an option for each verdict but one."""
    action: OnContradicted | OnUnverifiable = getattr(task, f"on_{verdict.verdict}", "keep")
    return action


def _located(verdicts: Iterable[ClaimVerdict], answer: str) -> list[_LocatedVerdict]:
    """Return the verdicts on claims that have a place in the answer, with their spans."""
    spans = ((v, v.claim.start, v.claim.end) for v in verdicts)
    return [
        (v, (start, end))
        for v, start, end in spans
        if start is not None and end is not None and answer[start:end].strip()
    ]


def _strip(
    task: CorrectionTask, verdict: ClaimVerdict, span: Span, spans: Sequence[_LocatedVerdict]
) -> Edit | None:
    """Remove a claim; from a sentence shared with another claim, only its own part."""
    # Text that a remaining claim also uses is not removed.
    for other, theirs in spans:
        overlaps = theirs[0] < span[1] and span[0] < theirs[1]
        stays = other.claim.id != verdict.claim.id and (
            other.verdict == "supported"
            or (other.verdict == "unchecked" and task.on_unchecked == "keep")
        )
        if overlaps and stays:
            return None
    (start, end), replacement = removal_span(task.answer, *span), ""
    half = _other_half(task, span, spans)
    if half is not None:
        action, theirs = _action(task, half), (half.claim.start or 0, half.claim.end or 0)
        comes_first = theirs[0] < span[0]
        if action == "correct" or (action == "strip" and comes_first):
            return None  # the edit of the other half would be lost, or removes both halves
        if action == "strip":
            start, end = removal_span(
                task.answer, span[0], _end_of_sentence(task.answer, theirs[1])
            )
        elif comes_first:
            start, end = theirs[1], span[1]
        else:
            start, end = _before_markup(task.answer, span[0]), theirs[1]
            replacement = half.claim.text.removesuffix(".")
    name = verdict.claim.id
    return make_edit(task.answer, name, start, end, replacement, correction=replacement)


def _other_half(
    task: CorrectionTask, span: Span, spans: Sequence[_LocatedVerdict]
) -> ClaimVerdict | None:
    """Find the other claim of a sentence that was split in two."""
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
    """Move a start before markup that opens there."""
    return start - len(answer[:start]) + len(answer[:start].rstrip("*_`"))


def _smallest_change(text: str, verdict: ClaimVerdict) -> Replacement | None:
    """Return the smallest replacement that the verdict's correction or evidence supports."""
    correction = (verdict.correction or "").strip()
    for statement in filter(None, (correction, *(c.quote for c in verdict.citations))):
        value = differing_value(text, statement)
        if value is None or value.kind == "polarity":
            continue
        if not correction or value.evidence_value in correction:
            return Replacement(value.claim_start, value.claim_end, value.evidence_value)
    return _bare_value(text, correction) or differing_part(text, correction)


def _change_of_claim(text: str, verdict: ClaimVerdict) -> Replacement | None:
    """Return the smallest change of the claim's text, located in `text`."""
    claim = verdict.claim.text
    change = None if claim == text else _smallest_change(claim, verdict)
    wrong = claim[change.start : change.end] if change else ""
    if change is None or not wrong.strip() or text.count(wrong) != 1:
        return None
    start = text.index(wrong)
    return Replacement(start, start + len(wrong), change.text)


def _bare_value(text: str, correction: str) -> Replacement | None:
    """Return the only value of `text` that a bare value can replace."""
    given = find_quantities(correction)
    if len(given) != 1 or len(correction.split()) > _LONGEST_VALUE:
        return None
    value = given[0]
    alike = (found for found in find_quantities(text) if comparable(found, value))
    wrong = [found for found in alike if not same_quantity(found, value)]
    if len(wrong) != 1:
        return None
    return Replacement(wrong[0].start, wrong[0].end, correction[value.start : value.end])


def _whole_change(
    text: str, verdict: ClaimVerdict, task: CorrectionTask, written: str | None
) -> Replacement | None:
    """Replace all of `text` by the model's rewriting, the correction, or the evidence."""
    if written and (part := differing_part(text, written)):
        return part
    correction = (verdict.correction or "").strip()
    whole = written or correction or _statement(verdict.citations, task.documents)
    return Replacement(0, len(text), whole) if whole and whole != text else None


def _statement(citations: Iterable[Citation], documents: Sequence[Document]) -> str:
    """Return the first cited sentence that can stand in for another: no table row, no question."""
    for cited in citations:
        if not is_table_row(cited.quote) and not is_question(cited.quote):
            held = cited.field is None and cited.holds_in(documents)
            text = documents[cited.document].page_content if held else cited.quote
            place = (cited.start, cited.end) if held else (0, len(text))
            return on_one_line(statement_at(text, *place))
    return ""
