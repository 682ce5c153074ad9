"""What is done about claims of which some are known: looked up, asked, waited for, shared.

Written once, as a generator without input or output, in the manner of `_pooled`: it yields what it
needs and is sent the reply.
"""

from collections.abc import Generator, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

from langchain_groundedness._causes import cause
from langchain_groundedness._telemetry import caught
from langchain_groundedness.exceptions import ConfigurationError, MissingDependencyError
from langchain_groundedness.scoring import reconcile
from langchain_groundedness.types import Claim, ClaimVerdict, VerificationTask
from langchain_groundedness.verifiers._in_flight import (
    ABANDONED,
    STUCK,
    Leading,
    Outcome,
    Question,
)
from langchain_groundedness.verifiers._pooled import Found, Judging
from langchain_groundedness.verifiers._verdict_entries import (
    Evidence,
    entry_of,
    key_of,
    verdict_of,
)
from langchain_groundedness.verifiers._verdict_store import Entries

__all__ = ["Asking", "Follow", "Read", "Sealed", "Spared", "Verify", "Write"]

_Outcomes = dict[str, Outcome]


class Sealed(NamedTuple):
    """What goes into keys and checksums beside the task."""

    identity: str
    """What the verifier's verdicts depend on."""
    reads: AbstractSet[str]
    """What of a task it reads."""
    secret: bytes


class Read(NamedTuple):
    """Asks for entries; the reply is a list with whatever was found."""

    keys: Sequence[str]


class Write(NamedTuple):
    """Asks to keep entries; nothing is replied."""

    entries: Entries


class Verify(NamedTuple):
    """Asks the verifier; the reply is a list with what it said of each task, or an error."""

    places: Sequence[int]
    tasks: list[VerificationTask]


class Follow(NamedTuple):
    """Asks to wait for what others lead; the reply is their outcomes by key."""

    questions: dict[str, Question]


class Spared(NamedTuple):
    """Tells how many claims of a task nobody was asked about; nothing is replied."""

    place: int
    verdicts: int


@dataclass(eq=False)
class _Asked:
    """A claim, under which key its verdict is kept, and the verdict once it is there."""

    place: int
    task: VerificationTask
    claim: Claim
    key: str
    evidence: Evidence
    secret: bytes
    verdict: ClaimVerdict | None = None
    spared: bool = True

    @property
    def was_spared(self) -> bool:
        """Whether there is a verdict for which nobody was asked; a shared failure is none."""
        return self.spared and self.verdict is not None and self.verdict.reason is None

    def take(self, outcome: Outcome, verifier: str) -> bool:
        if outcome.reason is not None:
            self.verdict = ClaimVerdict.unchecked(self.claim, outcome.reason, verifier=verifier)
        elif outcome.entry is not None:
            self.verdict = verdict_of(
                outcome.entry,
                self.task,
                self.claim,
                self.key,
                evidence=self.evidence,
                secret=self.secret,
            )
        return self.verdict is not None

    def outcome(self) -> Outcome:
        """Give what others may take; none of it is an object of this asker's."""
        if self.verdict is None:
            return ABANDONED
        if self.verdict.reason is not None:
            return Outcome(reason=self.verdict.reason)
        entry = entry_of(
            self.verdict, self.task, self.key, evidence=self.evidence, secret=self.secret
        )
        return ABANDONED if entry is None else Outcome(entry)


class Asking:
    """The claims of some tasks, on the way to their verdicts."""

    def __init__(
        self, tasks: Sequence[VerificationTask], leading: Leading, sealed: Sealed, title: str
    ) -> None:
        """Look at what is asked.

        Args:
            tasks: The tasks.
            leading: What is led here, for all who ask the same.
            sealed: What goes into keys.
            title: What to call the verifier.
        """
        self._leading = leading
        self._title = title
        self._left = [
            asked for place, task in enumerate(tasks) for asked in _asked(place, task, sealed)
        ]
        self._alone: set[str] = set()
        """Keys that cannot be shared: each claim is asked by itself."""

    def run(self) -> Judging:
        """Find the verdicts.

        Yields:
            Requests, and `Found`. While anything is led, there is no `Found`: whoever reads them
            may take as long as he likes, and others wait for what is led.
        """
        settled = self._leading.settled
        yield from self._look_up(self._left)
        yield from self._given()
        while self._left:
            led, others = self._leading.claim(self._keys(self._left, but=self._alone))
            outcomes: _Outcomes = {}
            if led and self._leading.settled != settled:  # somebody may just have found out
                settled = self._leading.settled
                outcomes = yield from self._look_up([e for e in self._left if e.key in led])
            outcomes |= yield from self._ask(self._firsts(led - outcomes.keys()))
            for key, outcome in outcomes.items():
                self._leading.settle(key, outcome)
            self._share(outcomes)
            yield from self._given()
            if others:
                self._share((yield Follow(others)))
                yield from self._given()

    def _look_up(self, asked: Sequence[_Asked]) -> Generator[Any, Any, _Outcomes]:
        keys = self._keys(asked)
        if not keys:
            return {}
        entries = dict(zip(keys, (yield Read(keys)), strict=True))
        return {
            each.key: outcome
            for each in asked
            if entries[each.key] is not None
            and each.take(outcome := Outcome(entries[each.key]), self._title)
        }

    def _ask(self, asked: Sequence[_Asked]) -> Generator[Any, Any, _Outcomes]:
        if not asked:
            return {}
        groups = [list(group) for _, group in groupby(asked, key=_place)]
        tasks = [group[0].task.only(each.claim for each in group) for group in groups]
        try:
            replies = yield Verify([group[0].place for group in groups], tasks)
        except (
            ConfigurationError,
            MissingDependencyError,
        ):  # never gets better: whoever called hears
            raise
        except Exception as exc:  # noqa: BLE001  (a verifier may fail in any way)
            replies = [exc] * len(tasks)
        for group, task, reply in zip(groups, tasks, replies, strict=True):
            for each, verdict in zip(group, self._judged(task, reply), strict=True):
                each.verdict, each.spared = verdict, False
        outcomes = {each.key: each.outcome() for each in asked}
        self._alone |= {key for key, outcome in outcomes.items() if outcome is ABANDONED}
        entries = [(key, out.entry) for key, out in outcomes.items() if out.entry is not None]
        if entries:
            yield Write(entries)
        return outcomes

    def _judged(self, task: VerificationTask, reply: Any) -> list[ClaimVerdict]:
        """Read the reply of the verifier; one that failed must not cost what is known already."""
        if isinstance(reply, list) and all(isinstance(each, ClaimVerdict) for each in reply):
            return reconcile(task, reply, verifier=self._title)
        if isinstance(reply, Exception):
            reason = f"{self._title} failed with {cause(caught(reply))}"
        else:
            reason = f"{self._title} gave no list of verdicts but {type(reply).__name__}"
        return [ClaimVerdict.unchecked(c, reason, verifier=self._title) for c in task.claims]

    def _share(self, outcomes: _Outcomes) -> None:
        self._alone |= {key for key, outcome in outcomes.items() if outcome is STUCK}
        for each in self._left:
            if each.verdict is None and each.key in outcomes:
                each.take(outcomes[each.key], self._title)

    def _given(self) -> Iterator[Found | Spared]:
        """Give out what is known now."""
        known = [each for each in self._left if each.verdict is not None]
        self._left = [each for each in self._left if each.verdict is None]
        for place, group in groupby(known, key=_place):
            members = list(group)
            if spared := sum(each.was_spared for each in members):
                yield Spared(place, spared)
            yield Found(place, [each.verdict for each in members if each.verdict is not None])

    def _firsts(self, led: AbstractSet[str]) -> list[_Asked]:
        """Give one claim for each key that is led, and all that cannot be shared."""
        seen: set[str] = set()
        firsts = []
        for each in self._left:
            if each.key in self._alone or (each.key in led and each.key not in seen):
                seen.add(each.key)
                firsts.append(each)
        return firsts

    def _keys(self, asked: Iterable[_Asked], but: AbstractSet[str] = frozenset()) -> list[str]:
        return list(dict.fromkeys(each.key for each in asked if each.key not in but))


def _asked(place: int, task: VerificationTask, sealed: Sealed) -> Iterator[_Asked]:
    identity, reads, secret = sealed
    evidence = Evidence.of(task, reads, secret)
    for claim in task.claims:
        key = key_of(task, claim, evidence=evidence, identity=identity, reads=reads, secret=secret)
        yield _Asked(place, task, claim, key, evidence, secret)


def _place(asked: _Asked) -> int:
    return asked.place
