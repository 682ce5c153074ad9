"""Edits of an answer: minimal replacements, clean removals, validation and application."""

import re
from bisect import bisect_left, bisect_right, insort
from collections.abc import Container, Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from langchain_groundedness.text.words import content_words, fold
from langchain_groundedness.types import Claim, ClaimVerdict, Edit

__all__ = [
    "MARKER",
    "PLACE",
    "Replacement",
    "apply_edits",
    "check_edits",
    "differing_part",
    "earliest_removal_start",
    "edited_claim",
    "inserts_more",
    "is_covered",
    "lookahead_for_removal",
    "make_edit",
    "removal_span",
    "rewordings",
    "verdicts_after",
    "without_overlaps",
]

PLACE = "{correction}"
MARKER = f"[CORRECTED: {PLACE}]"
"""Default template for a correction."""

_TOKEN = re.compile(r"[^\s.,;:!?\"'()\[\]]+(?:[.,:'][^\s.,;:!?\"'()\[\]]+)*")
_LINE_PREFIX = re.compile(
    r"[ \t]*(?:>[ \t]?)*[ \t]*(?:(?:[-*+•]|#{1,6}|\d{1,3}[.)])[ \t]*)?(?P<opening>[*_`]*)"
)
_CLOSING = ".,;:!?)]}"
_MIN_SHARED_TOKENS = 0.5


class Replacement(NamedTuple):
    """Characters `start` to `end` of a text, and their replacement."""

    start: int
    end: int
    text: str


def differing_part(text: str, correction: str) -> Replacement | None:
    """Find the smallest part of a text that a corrected version changes."""
    old, new = list(_TOKEN.finditer(text)), list(_TOKEN.finditer(correction))
    matcher = SequenceMatcher(
        None, [fold(t.group()) for t in old], [fold(t.group()) for t in new], autojunk=False
    )
    if matcher.ratio() < _MIN_SHARED_TOKENS:
        return None
    changes = [op for op in matcher.get_opcodes() if op[0] != "equal"]
    if not changes:
        return None
    first_old, last_old = changes[0][1], changes[-1][2]
    first_new, last_new = changes[0][3], changes[-1][4]
    if first_old == last_old or first_new == last_new:
        # Words were only added or only dropped: include a neighbour, so that text is replaced.
        # For dropped words, include the next word too: one neighbour ("is") is not enough.
        before = 1 if first_old and first_new else 0
        dropped = first_new == last_new and last_old < len(old) and last_new < len(new)
        after = 1 if dropped or not before else 0
        first_old, first_new = first_old - before, first_new - before
        last_old, last_new = last_old + after, last_new + after
    return Replacement(
        old[first_old].start(),
        old[last_old - 1].end(),
        correction[new[first_new].start() : new[last_new - 1].end()],
    )


def make_edit(  # noqa: PLR0913  (an edit has six parts)
    text: str, claim_id: str, start: int, end: int, replacement: str, *, correction: str = ""
) -> Edit:
    """Replace characters `start` to `end` of a text; by nothing, to remove them."""
    return Edit(
        claim_id=claim_id,
        start=start,
        end=end,
        original=text[start:end],
        replacement=replacement,
        correction=correction,
    )


def removal_span(text: str, start: int, end: int) -> tuple[int, int]:
    """Widen a span so that removing it leaves no double space and no empty list item."""
    line_start = text.rfind("\n", 0, start) + 1
    newline = text.find("\n", end)
    line_end = len(text) if newline < 0 else newline
    before, after = text[line_start:start], text[end:line_end]
    furniture = _LINE_PREFIX.fullmatch(before)
    if furniture and after.strip() in ("", furniture["opening"][::-1]):
        return (line_start, newline + 1) if newline >= 0 else (max(line_start - 1, 0), line_end)
    if after[:1] in _CLOSING and after:
        return line_start + len(before.rstrip(" \t")), end
    if after.strip():
        return start, end + len(after) - len(after.lstrip(" \t"))
    return line_start + len(before.rstrip(" \t")), end


def lookahead_for_removal(text: str, end: int) -> int | None:
    """Return how much text must be known to remove a span; `None` if more is needed."""
    newline = text.find("\n", end)
    if newline >= 0:
        return newline + 1
    return len(text) if text[end:].strip(" \t*_`").strip() else None


def earliest_removal_start(text: str, start: int) -> int:
    """Return the earliest start of a removal of spans from `start` on."""
    line_start = text.rfind("\n", 0, start) + 1
    before = text[line_start:start]
    if _LINE_PREFIX.fullmatch(before):
        return max(line_start - 1, 0)
    return line_start + len(before.rstrip(" \t"))


def without_overlaps(edits: Iterable[Edit]) -> tuple[Edit, ...]:
    """Drop overlapping edits, keeping the smaller one of two.

    Removals that overlap only in white space are both kept.
    """
    kept: list[Edit] = []
    starts: list[int] = []
    ends: list[int] = []
    for edit in sorted(_side_by_side(edits), key=lambda e: (e.end - e.start, e.start)):
        # Kept edits do not overlap, so their ends are in the order of their starts.
        if bisect_left(starts, edit.end) <= bisect_right(ends, edit.start):
            kept.append(edit)
            insort(starts, edit.start)
            insort(ends, edit.end)
    return tuple(sorted(kept, key=lambda e: e.start))


def _side_by_side(edits: Iterable[Edit]) -> Iterator[Edit]:
    """Shorten removals by leading white space that the previous edit covers."""
    reached = 0
    for edit in sorted(edits, key=lambda e: (e.start, e.end)):
        shared = reached - edit.start
        reached = max(reached, edit.end)
        if shared > 0 and not edit.replacement and not edit.original[:shared].strip():
            start = min(edit.start + shared, edit.end)
            yield edit.model_copy(update={"start": start, "original": edit.original[shared:]})
        else:
            yield edit


def apply_edits(text: str, edits: Sequence[Edit]) -> str:
    """Apply sorted edits to a text."""
    pieces, at = [], 0
    for edit in edits:
        pieces += [text[at : edit.start], edit.replacement]
        at = edit.end
    return "".join([*pieces, text[at:]])


def check_edits(edits: Sequence[Edit], answer: str, claim_ids: Container[str]) -> None:
    """Raise `ValueError` for edits that cannot be applied or verified."""
    reached = 0
    for edit in edits:
        fits = edit.end <= len(answer) and edit.original == answer[edit.start : edit.end]
        if edit.start < reached or not fits:
            msg = "edits must be sorted and not overlap, and `original` must match the answer"
            raise ValueError(msg)
        if edit.claim_id not in claim_ids:
            msg = "every edit must name a claim of the answer"
            raise ValueError(msg)
        reached = edit.end


def rewordings(
    edits: Iterable[Edit], verdicts: Iterable[ClaimVerdict], marker: object
) -> dict[str, list[tuple[Edit, str]]]:
    """Group, by claim, the edits that insert new text, each with that text."""
    known = {v.claim.text.rstrip(".") for v in verdicts if v.verdict != "contradicted"}
    forms = {PLACE, MARKER, marker if isinstance(marker, str) else MARKER}
    found: dict[str, list[tuple[Edit, str]]] = {}
    for edit in edits:
        marked = {form.replace(PLACE, edit.correction) for form in forms}
        inserted = edit.correction if edit.replacement in marked else edit.replacement
        if edit.replacement:
            found.setdefault(edit.claim_id, []).append((edit, inserted))
    return {
        name: of_claim
        for name, of_claim in found.items()
        if not all(inserted.rstrip(".") in known for _, inserted in of_claim)
    }


def verdicts_after(
    verdicts: Sequence[ClaimVerdict], edits: Iterable[Edit], marker: object
) -> tuple[ClaimVerdict, ...]:
    """Return the verdicts on an edited text: a corrected claim is supported, a removed one gone."""
    edits = tuple(edits)
    corrected = rewordings(edits, verdicts, marker).keys()
    edited = {edit.claim_id for edit in edits}
    return tuple(
        v.model_copy(update={"verdict": "supported"}) if v.claim.id in corrected else v
        for v in verdicts
        if v.claim.id in corrected or not (v.claim.id in edited or is_covered(v.claim, edits))
    )


def is_covered(claim: Claim, edits: Sequence[Edit]) -> bool:
    """Return whether an edit replaces all of a claim."""
    start, end = claim.start, claim.end
    if start is None or end is None:
        return False
    return any(edit.start <= start and end <= edit.end for edit in edits)


def inserts_more(edit: Edit, inserted: str) -> bool:
    """Return whether an edit inserts more than one word beyond those that it replaces."""
    old, new = map(content_words, (edit.original, inserted))
    return len(new - old) > len(old - new) + 1


def edited_claim(answer: str, claim: Claim, edits: Sequence[tuple[Edit, str]]) -> str:
    """Return the text of a claim after edits, based on its own wording if possible."""
    inside = claim.start is not None and claim.text == answer[claim.start : claim.end]
    if not inside and all(claim.text.count(edit.original) == 1 for edit, _ in edits):
        text = claim.text
        for edit, inserted in edits:
            text = text.replace(edit.original, inserted)
        return text
    starts = [edit.start for edit, _ in edits] + ([] if claim.start is None else [claim.start])
    ends = [edit.end for edit, _ in edits] + ([] if claim.end is None else [claim.end])
    pieces, at = [], min(starts)
    for edit, inserted in edits:
        pieces += [answer[at : edit.start], inserted]
        at = edit.end
    return "".join([*pieces, answer[at : max(ends)]])
