"""Correction: edits an answer where claims were contradicted, and nowhere else."""

from typing import Any

from langchain_core.runnables import RunnableConfig, RunnableSerializable
from pydantic import ConfigDict, field_validator
from typing_extensions import override

from langchain_groundedness._edits import (
    Replacement,
    apply_edits,
    differing_part,
    removal,
    without_overlaps,
)
from langchain_groundedness._options import CheckedOptions
from langchain_groundedness.types import (
    ClaimVerdict,
    CorrectedAnswer,
    CorrectionTask,
    Edit,
)
from langchain_groundedness.verifiers._contradictions import differing_value

__all__ = ["Corrector"]

_PLACE = "{correction}"


class Corrector(CheckedOptions, RunnableSerializable[CorrectionTask, CorrectedAnswer]):
    """Edits the spans of claims that failed; every other character stays as it was.

    For a contradicted claim it replaces the least text that it can tell to be wrong: the value
    that differs, else the words that differ from the corrected statement, else the claim's whole
    span. Where claims share text and edits would overlap, the smaller edit is made.

    Example:
        >>> from langchain_groundedness import Claim, ClaimVerdict, CorrectionTask
        >>> claim = Claim(id="c1", text="It opened in May 2019.", start=0, end=22)
        >>> verdict = ClaimVerdict(claim=claim, verdict="contradicted", correction="June 2019")
        >>> task = CorrectionTask(answer="It opened in May 2019.", verdicts=(verdict,))
        >>> Corrector().invoke(task).text
        'It opened in [CORRECTED: June 2019].'
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    marker: str | None = "[CORRECTED: {correction}]"
    """How a correction is shown, with the place `{correction}`; `None` for clean text."""

    @field_validator("marker")
    @classmethod
    def _has_place(cls, marker: str | None) -> str | None:
        if marker is not None and marker.count(_PLACE) != 1:
            msg = f"marker must be None or hold {_PLACE!r} once, got {marker!r}"
            raise ValueError(msg)
        return marker

    @classmethod
    def is_lc_serializable(cls) -> bool:
        """Tell LangChain that this can be saved with `dumpd`."""
        return True

    @override
    def invoke(
        self, input: CorrectionTask, config: RunnableConfig | None = None, **kwargs: Any
    ) -> CorrectedAnswer:
        return self._call_with_config(self._correct, input, config)

    def _correct(self, task: CorrectionTask) -> CorrectedAnswer:
        edits = without_overlaps(e for v in task.verdicts if (e := self._edit(task, v)))
        return CorrectedAnswer(text=apply_edits(task.answer, edits), edits=edits)

    def _edit(self, task: CorrectionTask, verdict: ClaimVerdict) -> Edit | None:
        wanted = {"contradicted": task.on_contradicted, "unverifiable": task.on_unverifiable}
        action = wanted.get(verdict.verdict, "keep")
        span = _span(verdict, task.answer)
        if span is None or action in ("annotate", "keep"):
            return None
        if action == "strip":
            return _strip(task, verdict, span)
        change = _replacement(task.answer[slice(*span)], verdict)
        if change is None:
            return None
        start, end = span[0] + change.start, span[0] + change.end
        return Edit(
            claim_id=verdict.claim.id,
            start=start,
            end=end,
            original=task.answer[start:end],
            replacement=self._mark(change.text),
            correction=change.text,
        )

    def _mark(self, correction: str) -> str:
        return correction if self.marker is None else self.marker.replace(_PLACE, correction)


def _span(verdict: ClaimVerdict, answer: str) -> tuple[int, int] | None:
    start, end = verdict.claim.start, verdict.claim.end
    if start is None or end is None or not answer[start:end].strip():
        return None
    return start, end


def _strip(task: CorrectionTask, verdict: ClaimVerdict, span: tuple[int, int]) -> Edit | None:
    # Text that a claim which stays also rests on is not taken out.
    for other in task.verdicts:
        if other.claim.id != verdict.claim.id and other.verdict in ("supported", "unchecked"):
            theirs = _span(other, task.answer)
            if theirs and theirs[0] < span[1] and span[0] < theirs[1]:
                return None
    start, end = removal(task.answer, *span)
    return Edit(
        claim_id=verdict.claim.id,
        start=start,
        end=end,
        original=task.answer[start:end],
        replacement="",
    )


def _replacement(text: str, verdict: ClaimVerdict) -> Replacement | None:
    """The least change to `text` that the verdict's correction or evidence asks for."""
    correction = (verdict.correction or "").strip()
    quotes = [c.quote for c in verdict.citations]
    for statement in filter(None, (correction, *quotes)):
        value = differing_value(text, statement)
        if value and (statement != correction or value.evidence_value in correction):
            return Replacement(value.claim_start, value.claim_end, value.evidence_value)
    if correction and (part := differing_part(text, correction)):
        return part
    whole = correction or (quotes[0] if quotes else "")
    if not whole or whole == text:
        return None
    return Replacement(0, len(text), whole)
