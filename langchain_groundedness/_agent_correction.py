"""Correction where nothing ungrounded may stay: what could not be mended is taken out.

Pure.
"""

from collections.abc import Iterable, Sequence

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
    cuts = _merged(_cut(result.original_answer, verdict) for verdict in left)
    kept = [e for e in result.edits if not any(e.start < c.end and c.start < e.end for c in cuts)]
    edits = tuple(sorted([*kept, *cuts], key=lambda edit: edit.start))
    text = apply_edits(result.original_answer, edits)
    if result.original_answer.strip() and not text.strip():
        return None
    return result.model_copy(update={"answer": text, "edits": edits})


def _span(verdict: ClaimVerdict) -> tuple[int, int] | None:
    start, end = verdict.claim.start, verdict.claim.end
    return None if start is None or end is None else (start, end)


def _cut(text: str, verdict: ClaimVerdict) -> Edit:
    start, end = removal(text, *(_span(verdict) or (0, 0)))
    return _removing(text, verdict.claim.id, start, end)


def _removing(text: str, claim_id: str, start: int, end: int) -> Edit:
    return Edit(claim_id=claim_id, start=start, end=end, original=text[start:end], replacement="")


def _merged(cuts: Iterable[Edit]) -> Sequence[Edit]:
    whole: list[Edit] = []
    for cut in sorted(cuts, key=lambda edit: edit.start):
        if whole and cut.start < whole[-1].end:
            last = whole.pop()
            beyond = max(0, cut.end - last.end)
            original = last.original + (cut.original[-beyond:] if beyond else "")
            end = max(last.end, cut.end)
            cut = Edit(  # noqa: PLW2901  (the two are one now)
                claim_id=last.claim_id,
                start=last.start,
                end=end,
                original=original,
                replacement="",
            )
        whole.append(cut)
    return whole
