"""Decides which text of an answer may be released, given the verdicts on its sentences.

No I/O: takes a live check or a finished result, and returns text.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

from langchain_groundedness.claims.checkable import may_be_skipped
from langchain_groundedness.claims.statements import StatementReader, sentence_claims
from langchain_groundedness.correction.edits import (
    apply_edits,
    earliest_removal_start,
    make_edit,
    removal_span,
    without_overlaps,
)
from langchain_groundedness.decision.conditions import TruthValue
from langchain_groundedness.inputs.formats import CheckInput, read_input
from langchain_groundedness.pipeline.check import Check
from langchain_groundedness.pipeline.live import LiveCheck, SentenceUnit
from langchain_groundedness.types import ClaimVerdict, Edit, GroundednessResult

__all__ = ["GuardedText", "OnUnchecked", "Release", "ReleaseRules", "guarded_text"]

OnUnchecked: TypeAlias = Literal["hold_back", "mark", "release"]
"""What to do with a sentence that could not be checked: `hold_back` removes it for good."""


@dataclass(frozen=True, kw_only=True)
class ReleaseRules:
    """What happens to sentences in addition to the edits of the check."""

    on_unchecked: OnUnchecked
    unchecked_marker: str
    contradicted_marker: str
    """Appended to contradicted sentences that are neither edited nor blocked."""
    check: Check
    """Its policy decides which answers are blocked."""
    blocked_message: str

    def blocking(
        self,
        source: CheckInput,
        verdicts: Sequence[ClaimVerdict],
        *,
        complete: bool = False,
        labelled: bool = True,
    ) -> TruthValue:
        """Return whether the known verdicts block the answer."""
        if not self.check.policy.may_block:
            return TruthValue.NO
        given = self.check.decision_context(source, verdicts, complete=complete, labelled=labelled)
        return self.check.policy.blocking(given)

    def edits(
        self, text: str, sentence: SentenceUnit, made: Sequence[Edit] = ()
    ) -> tuple[Edit, ...]:
        """Return all edits of a sentence."""
        edited = {edit.claim_id for edit in made}
        left = [v for v in sentence.verdicts if v.claim.id not in edited]
        refused = self.uncorrected(sentence.verdicts, made)
        if self.on_unchecked == "hold_back":
            refused += [v.claim.id for v in left if v.verdict == "unchecked"]
        if refused:
            start, end = removal_span(text, sentence.start, sentence.end)
            return (make_edit(text, refused[0], start, end, ""),)
        if not (marker := self.marker(left)):
            return tuple(made)
        place = _mark_place(text, sentence)
        place = max([place, *(e.end for e in made if e.start <= place)])
        failed = ("contradicted", "unchecked")
        claim = next(v.claim.id for v in left if v.verdict in failed)
        return (*made, make_edit(text, claim, place, place, marker))

    def marker(self, verdicts: Sequence[ClaimVerdict]) -> str:
        """Return what is appended to text with these verdicts."""
        found = {v.verdict for v in verdicts}
        wrong = "contradicted" in found and self.check.on_contradicted == "annotate"
        unknown = "unchecked" in found and self.on_unchecked == "mark"
        return self.contradicted_marker * wrong + self.unchecked_marker * unknown

    def uncorrected(self, verdicts: Sequence[ClaimVerdict], made: Sequence[Edit]) -> list[str]:
        """Return the ids of claims that should have been edited but were not.

        Either their correction was undone, or they share text with a claim that stays.
        """
        edited, wanted = {edit.claim_id for edit in made}, self.check.edited_verdicts
        wrong = (v.claim.id for v in verdicts if v.verdict in wanted)
        return [claim for claim in wrong if claim not in edited]


class GuardedText(NamedTuple):
    """Text that may be released, and the edits that produced it."""

    text: str
    edits: tuple[Edit, ...]
    blocked: bool = False
    """Whether the blocked message replaces its end."""


def guarded_text(result: GroundednessResult, rules: ReleaseRules) -> GuardedText:
    """Return the releasable text of a completely checked answer."""
    answer = result.original_answer
    verdicts = (*result.claims, *_unextracted_statements(answer, result.claims))
    lost = [v for v in verdicts if v.claim.start is None]
    unplaced = any(v.verdict == "unchecked" for v in lost)
    source = read_input(result).model_copy(update={"answer": answer})
    holds = rules.blocking(source, known := list(lost))
    uncorrected = rules.uncorrected(lost, result.edits)
    if holds is TruthValue.YES or uncorrected or (unplaced and rules.on_unchecked == "hold_back"):
        # The sentence cannot be located.
        return _replaced(answer, rules.blocked_message, blocked=holds is TruthValue.YES)
    suffix = rules.marker(lost)
    edits: list[Edit] = []
    for sentence in _sentences(answer, verdicts):
        ids = {v.claim.id for v in sentence.verdicts}
        made = [edit for edit in result.edits if edit.claim_id in ids]
        before, known = holds, [*known, *rules.check.remaining_verdicts(sentence.verdicts, made)]
        holds = rules.blocking(source, known)
        if holds is TruthValue.YES and before is not TruthValue.OPEN:
            return _cut(answer, edits, sentence, rules)
        if holds is TruthValue.YES:
            return _replaced(answer, rules.blocked_message, blocked=True)
        edits += rules.edits(answer, sentence, made)
    whole = rules.blocking(source, known, complete=True)
    decided = rules.check.policy.may_block and result.decision.action == "block"
    if decided or whole is TruthValue.YES:
        return _replaced(answer, rules.blocked_message, blocked=True)
    if suffix:
        edits.append(make_edit(answer, lost[0].claim.id, len(answer), len(answer), suffix))
    kept = without_overlaps(edits)
    return GuardedText(apply_edits(answer, kept), kept)


class Release:
    """Releases the text of a live check in order, as soon as it is final."""

    def __init__(self, live: LiveCheck, rules: ReleaseRules, *, immediate: bool = False) -> None:
        """Start without released text."""
        self.stopped = False
        """Whether the text ended because the answer is blocked."""
        self._live = live
        self._rules = rules
        self._immediate = immediate
        self._position = 0
        self._decided = -1
        self._collected = 0
        self._may_release = False
        self._labels: object = None
        self._edits: list[Edit] = []
        self._edits_seen = 0
        self._edits_reported = 0
        self._retracted: list[dict[str, Any]] = []

    def take(self) -> str:
        """Return newly releasable text."""
        live = self._live
        if self.stopped:
            return ""
        if not live.grows or not live.edits_by_sentence:
            return self._rest() if self._immediate else ""
        blocked = self._advance()
        limit = self._final_length() if blocked is None else blocked.start
        if self._immediate:
            text = self._rest()
            for edit in self._new_edits():
                self._retract(edit)
            return text if blocked is None else text + self._block(blocked)
        text = self._up_to(limit)
        return text if blocked is None else text + self._block(blocked)

    def finish(self, result: GroundednessResult | None) -> str:
        """Return the remaining text after all checks."""
        live = self._live
        if self.stopped or result is None:
            return ""
        if live.grows and live.edits_by_sentence:
            return self.take()
        guarded = guarded_text(result, self._rules)
        if not self._immediate:
            return guarded.text
        answer = result.original_answer
        message = self._rules.blocked_message if guarded.blocked else ""
        gap = _separator(answer, message)
        for edit in guarded.edits:
            if guarded.blocked and edit.end == len(answer):
                # The message follows the text, so withheld text is only removed.
                self._retract(
                    make_edit(answer + gap, edit.claim_id, edit.start, len(answer + gap), "")
                )
            else:
                self._retract(edit)
        return answer[self._position :] + gap + message

    def retracted(self) -> list[dict[str, Any]]:
        """Return and clear the replacements for text that was already released."""
        retracted, self._retracted = self._retracted, []
        return retracted

    def _advance(self) -> SentenceUnit | None:
        """Collect edits of releasable sentences; return the blocking sentence, if any."""
        units = self._live.units
        labels = (self._live.source.labels, self._live.labelled)
        if not self._may_release and labels != self._labels:  # decide again
            self._labels, self._decided = labels, -1
        while self._decided < 0 or (self._decided < len(units) and units[self._decided].done):
            self._decided += 1
            holds = self._blocking(self._decided)
            if holds is TruthValue.YES and self._may_release:
                self._collect_edits(self._decided - 1)
                return units[self._decided - 1]
            if holds is TruthValue.YES:
                return SentenceUnit(0, 0)
            self._may_release = self._may_release or holds is not TruthValue.OPEN
        if self._live.closed and self._decided == len(units) and not self._may_release:
            if self._blocking(self._decided, complete=True) is TruthValue.YES:
                return SentenceUnit(0, 0)
            self._may_release = True
        if self._may_release:
            self._collect_edits(self._decided)
        return None

    def _blocking(self, number: int, *, complete: bool = False) -> TruthValue:
        """Return whether the first `number` sentences block the answer."""
        live = self._live
        check = self._rules.check
        left = (check.remaining_verdicts(unit.verdicts, unit.edits) for unit in live.units[:number])
        known = [verdict for verdicts in left for verdict in verdicts]
        return self._rules.blocking(
            live.source, known, complete=complete, labelled=live.labelled or complete
        )

    def _collect_edits(self, number: int) -> None:
        for unit in self._live.units[self._collected : number]:
            self._edits += self._rules.edits(self._live.text, unit, unit.edits)
            self._collected += 1

    def _new_edits(self) -> tuple[Edit, ...]:
        """Return the new edits; later sentences do not change earlier edits."""
        if self._edits_seen == len(self._edits):
            return ()
        edits, self._edits_seen = without_overlaps(self._edits), len(self._edits)
        new, self._edits_reported = edits[self._edits_reported :], len(edits)
        return new

    def _final_length(self) -> int:
        """Return how much of the text is final, apart from known edits."""
        live = self._live
        if not self._may_release:
            return self._position
        waiting = self._collected < len(live.units)
        if live.closed and not waiting:
            return len(live.text)
        limit = live.units[self._collected].start if waiting else live.certain
        return earliest_removal_start(live.text, limit) if live.removes else limit

    def _up_to(self, limit: int) -> str:
        text, pieces = self._live.text, []
        for edit in self._new_edits():
            pieces += [text[self._position : edit.start], edit.replacement]
            self._position = edit.end
        if limit > self._position:
            pieces.append(text[self._position : limit])
            self._position = limit
        return "".join(pieces)

    def _rest(self) -> str:
        text = self._live.text[self._position :]
        self._position += len(text)
        return text

    def _block(self, sentence: SentenceUnit) -> str:
        self.stopped = True
        message, gap = self._rules.blocked_message, ""
        if self._immediate:
            gap = _separator(self._live.text, message)
            text = self._live.text + gap
            claim = next((v.claim.id for v in sentence.verdicts), "")
            self._retract(make_edit(text, claim, sentence.start, len(text), ""))
        return gap + message

    def _retract(self, edit: Edit) -> None:
        self._retracted.append(edit.model_dump(mode="json", exclude={"correction"}))


def _separator(text: str, message: str) -> str:
    """Return what separates a message from text that is shown; retracted with the text."""
    return " " if text[-1:].strip() and message[:1].strip() else ""


def _sentences(answer: str, verdicts: Sequence[ClaimVerdict]) -> Iterator[SentenceUnit]:
    """Group verdicts by the sentences that their claims come from."""
    spans: list[tuple[int, int]] = []
    for only_checkable in (True, False):
        reader = StatementReader(only_checkable=only_checkable)
        spans += [(each.start, each.end) for each in (*reader.feed(answer), *reader.close())]
    groups: dict[tuple[int, int], list[ClaimVerdict]] = {}
    for verdict in verdicts:
        start, end = verdict.claim.start, verdict.claim.end
        if start is not None and end is not None:
            first = next((s for s, e in spans if s <= start < e), start)
            last = next((e for s, e in spans if s < end <= e), end)
            groups.setdefault((first, max(last, end)), []).append(verdict)
    for start, end in sorted(groups):
        yield SentenceUnit(start, end, verdicts=tuple(groups[start, end]))


def _unextracted_statements(
    answer: str, verdicts: Sequence[ClaimVerdict]
) -> Iterator[ClaimVerdict]:
    """Yield `unchecked` verdicts for statements without an extracted claim."""
    spans = [(v.claim.start, v.claim.end) for v in verdicts]
    for number, claim in enumerate(sentence_claims(answer), 1):
        start, end = claim.start or 0, claim.end or 0
        # A claim without a span may come from any sentence.
        found = any(s is None or e is None or (s < end and start < e) for s, e in spans)
        if not found and not may_be_skipped(claim.text):
            named = claim.model_copy(update={"id": f"left-out-{number}"})
            yield ClaimVerdict.unchecked(named, "the extractor found no claim in it")


def _mark_place(text: str, sentence: SentenceUnit) -> int:
    """Return where to put the marker of a sentence: in a table row, inside the last cell."""
    body = text[sentence.start : sentence.end]
    if body.startswith("|") and body.endswith("|") and len(body) > 1:
        body = body[:-1]
    return sentence.start + len(body.rstrip())


def _replaced(answer: str, text: str, *, blocked: bool = False) -> GuardedText:
    return GuardedText(text, (make_edit(answer, "", 0, len(answer), text),), blocked)


def _cut(
    answer: str, edits: Sequence[Edit], sentence: SentenceUnit, rules: ReleaseRules
) -> GuardedText:
    """Cut the text at the start of a sentence, after all earlier edits."""
    made = without_overlaps(edits)
    at = max([sentence.start, *(edit.end for edit in made)])
    claim = sentence.verdicts[0].claim.id
    kept = (*made, make_edit(answer, claim, at, len(answer), rules.blocked_message))
    return GuardedText(apply_edits(answer, kept), kept, blocked=True)
