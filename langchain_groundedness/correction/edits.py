"""Edits of an answer: the least text to replace, removal without scars, application in one go."""

import re
from bisect import bisect_left, bisect_right, insort
from collections.abc import Container, Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from langchain_groundedness.text.words import fold
from langchain_groundedness.types import Claim, ClaimVerdict, Edit

__all__ = [
    "MARKER",
    "PLACE",
    "Replacement",
    "apply_edits",
    "check_edits",
    "differing_part",
    "edited_claim",
    "head_start",
    "removal",
    "rewordings",
    "tail_end",
    "without_overlaps",
]

PLACE = "{correction}"
MARKER = f"[CORRECTED: {PLACE}]"
"""How a correction is shown by default."""

_TOKEN = re.compile(r"[^\s.,;:!?\"'()\[\]]+(?:[.,:'][^\s.,;:!?\"'()\[\]]+)*")
_LINE_FURNITURE = re.compile(
    r"[ \t]*(?:>[ \t]?)*[ \t]*(?:(?:[-*+•]|#{1,6}|\d{1,3}[.)])[ \t]*)?(?P<opening>[*_`]*)"
)
_CLOSING = ".,;:!?)]}"
_MIN_SHARED_TOKENS = 0.5


class Replacement(NamedTuple):
    """Characters `start` to `end` of a text, and what should stand there."""

    start: int
    end: int
    text: str


def differing_part(text: str, correction: str) -> Replacement | None:
    """Find the least part of a text that a corrected wording of it changes."""
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
        # Words are only added or only dropped: carry a neighbour, so that something is replaced.
        # Where words are dropped, what is left of a neighbour alone ("is") would not say it.
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


def removal(text: str, start: int, end: int) -> tuple[int, int]:
    """Widen a span so that taking it out leaves no double space and no empty list item."""
    line_start = text.rfind("\n", 0, start) + 1
    newline = text.find("\n", end)
    line_end = len(text) if newline < 0 else newline
    before, after = text[line_start:start], text[end:line_end]
    furniture = _LINE_FURNITURE.fullmatch(before)
    if furniture and after.strip() in ("", furniture["opening"][::-1]):
        return (line_start, newline + 1) if newline >= 0 else (max(line_start - 1, 0), line_end)
    if after[:1] in _CLOSING and after:
        return start - (len(before) - len(before.rstrip(" \t"))), end
    trailing = len(after) - len(after.lstrip(" \t"))
    if after.strip():
        return start, end + trailing
    return start - (len(before) - len(before.rstrip(" \t"))), end


def tail_end(text: str, end: int) -> int | None:
    """Tell how far a text must be known for the removal of a span in it."""
    newline = text.find("\n", end)
    if newline >= 0:
        return newline + 1
    return len(text) if text[end:].strip(" \t*_`").strip() else None


def head_start(text: str, start: int) -> int:
    """Tell where the removal of a span that starts at `start` or later may begin."""
    line_start = text.rfind("\n", 0, start) + 1
    before = text[line_start:start]
    if _LINE_FURNITURE.fullmatch(before):
        return max(line_start - 1, 0)
    return start - (len(before) - len(before.rstrip(" \t")))


def without_overlaps(edits: Iterable[Edit]) -> tuple[Edit, ...]:
    """Keep edits that do not overlap; of two that do, the one that changes less.

    Removals that meet in the white space between them are both kept.
    """
    kept: list[Edit] = []
    starts: list[int] = []
    ends: list[int] = []
    for edit in sorted(_side_by_side(edits), key=lambda e: (e.end - e.start, e.start)):
        # Those that are kept do not overlap, so their ends are in the order of their starts.
        if bisect_left(starts, edit.end) <= bisect_right(ends, edit.start):
            kept.append(edit)
            insort(starts, edit.start)
            insort(ends, edit.end)
    return tuple(sorted(kept, key=lambda e: e.start))


def _side_by_side(edits: Iterable[Edit]) -> Iterator[Edit]:
    """Shorten removals by the white space at their start that the edit before also takes."""
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
    """Make edits in a text; every character outside them stays as it was."""
    pieces, at = [], 0
    for edit in edits:
        pieces += [text[at : edit.start], edit.replacement]
        at = edit.end
    return "".join([*pieces, text[at:]])


def check_edits(edits: Sequence[Edit], answer: str, claim_ids: Container[str]) -> None:
    """Refuse edits that cannot be made, or cannot be checked."""
    reached = 0
    for edit in edits:
        fits = edit.end <= len(answer) and edit.original == answer[edit.start : edit.end]
        if edit.start < reached or not fits:
            msg = "edits must not overlap, and `original` must be what the answer says there"
            raise ValueError(msg)
        if edit.claim_id not in claim_ids:
            msg = "every edit must name a claim of the answer"
            raise ValueError(msg)
        reached = edit.end


def rewordings(
    edits: Iterable[Edit], verdicts: Iterable[ClaimVerdict], marker: object
) -> dict[str, list[tuple[Edit, str]]]:
    """Gather, by claim, the edits that put in something new, each with what it says."""
    known = {v.claim.text.rstrip(".") for v in verdicts if v.verdict != "contradicted"}
    forms = {PLACE, MARKER, marker if isinstance(marker, str) else MARKER}
    found: dict[str, list[tuple[Edit, str]]] = {}
    for edit in edits:
        marked = {form.replace(PLACE, edit.correction) for form in forms}
        says = edit.correction if edit.replacement in marked else edit.replacement
        if edit.replacement:
            found.setdefault(edit.claim_id, []).append((edit, says))
    return {
        name: of_claim
        for name, of_claim in found.items()
        if not all(says.rstrip(".") in known for _, says in of_claim)
    }


def edited_claim(answer: str, claim: Claim, edits: Sequence[tuple[Edit, str]]) -> str:
    """Return a claim as edits make it say, in its own self-contained words if possible."""
    inside = claim.start is not None and claim.text == answer[claim.start : claim.end]
    if not inside and all(claim.text.count(edit.original) == 1 for edit, _ in edits):
        text = claim.text
        for edit, says in edits:
            text = text.replace(edit.original, says)
        return text
    starts = [edit.start for edit, _ in edits] + ([] if claim.start is None else [claim.start])
    ends = [edit.end for edit, _ in edits] + ([] if claim.end is None else [claim.end])
    pieces, at = [], min(starts)
    for edit, says in edits:
        pieces += [answer[at : edit.start], says]
        at = edit.end
    return "".join([*pieces, answer[at : max(ends)]])
