"""Correction where nothing ungrounded may stay: what could not be mended is taken out.

Pure.
"""

from collections.abc import Iterable, Iterator, Sequence

from langchain_groundedness._edits import apply_edits, removal
from langchain_groundedness.types import ClaimVerdict, Edit, GroundednessResult

__all__ = ["mended"]


def mended(result: GroundednessResult, *, strip_unverifiable: bool) -> GroundednessResult | None:
    """Take out of an answer what the correction had to leave in.

    Args:
        result: The result of a check that corrects.
        strip_unverifiable: Whether unverifiable claims go too.

    Returns:
        The result with the text that may stay, and the edits that lead there; `None` if a claim
        that must go cannot be found in the text, or if no text is left.
    """
    must_go = {"contradicted", "unverifiable"} if strip_unverifiable else {"contradicted"}
    mended_ids = {edit.claim_id for edit in result.edits}
    left = [v for v in result.claims if v.verdict in must_go and v.claim.id not in mended_ids]
    if any(_span(verdict) is None for verdict in left):
        return None
    made = [(e.claim_id, e.start, e.end) for e in result.edits if not e.replacement]
    cuts = _merged(result.original_answer, [*made, *_cuts(result.original_answer, left)])
    changes = [edit for edit in result.edits if edit.replacement]
    kept = [e for e in changes if not any(e.start < c.end and c.start < e.end for c in cuts)]
    edits = tuple(sorted([*kept, *cuts], key=lambda edit: edit.start))
    text = apply_edits(result.original_answer, edits)
    if result.original_answer.strip() and not text.strip():
        return None
    return result.model_copy(update={"answer": text, "edits": edits})


def _span(verdict: ClaimVerdict) -> tuple[int, int] | None:
    start, end = verdict.claim.start, verdict.claim.end
    return None if start is None or end is None else (start, end)


def _cuts(text: str, verdicts: Sequence[ClaimVerdict]) -> Iterator[tuple[str, int, int]]:
    for verdict in verdicts:
        start, end = removal(text, *(_span(verdict) or (0, 0)))
        yield verdict.claim.id, start, end


def _merged(text: str, cuts: Iterable[tuple[str, int, int]]) -> list[Edit]:
    """Make one cut of those that touch."""
    merged: list[tuple[str, int, int]] = []
    for claim_id, start, end in sorted(cuts, key=lambda cut: cut[1:]):
        if merged and start <= merged[-1][2]:
            first_id, first, last = merged.pop()
            merged.append((first_id, first, max(end, last)))
        else:
            merged.append((claim_id, start, end))
    return [_removing(text, *cut) for cut in merged]


def _removing(text: str, claim_id: str, start: int, end: int) -> Edit:
    if not text[end:].strip():
        start, end = len(text[:start].rstrip()), len(text)
    return Edit(claim_id=claim_id, start=start, end=end, original=text[start:end], replacement="")
