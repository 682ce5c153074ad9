"""A verifier that asks another one only what is not known yet."""

import asyncio
import json
import logging
import os
import threading
from asyncio import AbstractEventLoop
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from collections.abc import Set as AbstractSet
from concurrent.futures import Future
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from hmac import compare_digest
from itertools import groupby, islice
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, TypeVar, get_args

from langchain_core.caches import BaseCache, InMemoryCache
from langchain_core.outputs import Generation
from langchain_core.runnables import RunnableConfig
from langchain_core.stores import BaseStore, InMemoryByteStore, InMemoryStore
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    SecretStr,
    SkipValidation,
    ValidationError,
)
from pydantic_core import to_jsonable_python
from typing_extensions import override

from langchain_groundedness._runtime.options import AnyRunnable, OptionsAlone
from langchain_groundedness._runtime.telemetry import caught
from langchain_groundedness.exceptions import ConfigurationError, MissingDependencyError, cause
from langchain_groundedness.llm.timeouts import TimedCalls
from langchain_groundedness.llm.usage import count_cached
from langchain_groundedness.types import (
    Citation,
    Claim,
    ClaimVerdict,
    Offset,
    Probability,
    VerificationTask,
)
from langchain_groundedness.verification.base import (
    Found,
    Judging,
    PooledVerifier,
    lasting_raised,
    total_size,
)
from langchain_groundedness.verification.scoring import reconcile

if TYPE_CHECKING:
    from langchain_groundedness.verification.identity import Identity

__all__ = [
    "ALL_READ",
    "CachedVerifier",
    "Evidence",
    "Leading",
    "Outcome",
    "Question",
    "Reads",
    "VerdictCache",
    "entry_of",
    "key_of",
    "require_store",
    "verdict_of",
]

VerdictCache = SkipValidation[BaseCache | BaseStore[str, Any]]
"""An option that takes a place to keep verdicts in; `CachedVerifier` looks at what came."""


class Outcome(NamedTuple):
    """What a leader has found out, or why there is nothing."""

    entry: str | None = None
    """The verdict, as it is kept."""
    reason: str | None = None
    """Why the claim could not be checked."""


class Question:
    """Something that is being asked."""

    def __init__(self, loop: AbstractEventLoop | None) -> None:
        """Begin."""
        self.loop = loop
        self.outcome: Future[Outcome] = Future()

    @property
    def is_dead(self) -> bool:
        """Whether its leader cannot go on: an event loop was closed in the middle of its work."""
        return self.loop is not None and self.loop.is_closed()

    def ping(self) -> threading.Event | None:
        """Ask the event loop of the leader for a sign of life."""
        turned = threading.Event()
        try:
            if self.loop is not None:
                self.loop.call_soon_threadsafe(turned.set)
        except RuntimeError:  # it is closed
            return None
        return turned


class Leading:
    """The questions that one asker leads; those left over at the end are handed back."""

    def __init__(self, circle: object, loop: AbstractEventLoop | None = None) -> None:
        """Lead nothing yet."""
        self._circle = id(circle)
        self._loop = loop
        self._led: dict[str, Question] = {}
        self._ended = False

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(self, *error: object) -> None:
        """Hand back what is still open."""
        with _OPEN.lock:
            self._ended = True
            left = list(self._led)
        for key in left:
            self.settle(key, ABANDONED)

    @property
    def settled(self) -> int:
        """How many questions of this process have got an outcome so far."""
        return _OPEN.settled

    def claim(self, keys: Iterable[str]) -> tuple[set[str], dict[str, Question]]:
        """Lead each question that nobody leads."""
        led: set[str] = set()
        others: dict[str, Question] = {}
        with _OPEN.lock:
            if self._ended:
                msg = "nobody waits for this any more"
                raise RuntimeError(msg)
            for key in keys:
                known = _OPEN.questions.get((self._circle, key))
                if known is None or known.is_dead:
                    known = self._led[key] = Question(self._loop)
                    _OPEN.questions[self._circle, key] = known
                    led.add(key)
                elif key not in self._led:
                    others[key] = known
        return led, others

    def settle(self, key: str, outcome: Outcome) -> None:
        """Tell everybody who waits."""
        with _OPEN.lock:
            question = self._led.pop(key, None)
            if question is None:
                return
            if _OPEN.questions.get((self._circle, key)) is question:
                del _OPEN.questions[self._circle, key]
            _OPEN.settled += 1
        question.outcome.set_result(outcome)


Reads = Literal["question", "answer", "metadata", "order"]
"""What of a task a verifier may read beside claim and documents' texts: the question; the whole
answer and where in it the claim stands; ids and metadata of the documents; their order."""

Entries = Sequence[tuple[str, str]]
"""Keys and what is kept under them."""

_ItemT = TypeVar("_ItemT")

_ReplyT = TypeVar("_ReplyT")


class VerdictStore:
    """Reads and writes entries; what fails, or takes too long, was not found and is not kept."""

    def __init__(self, store: BaseCache | BaseStore[str, Any], timeout: float) -> None:
        """Name the store."""
        self._store = store
        self._timeout = timeout
        self._awaited = _can_be_awaited(store)
        self._rests_until = dict.fromkeys(_WAYS, 0.0)
        self._failing: set[str] = set()

    def read(self, keys: Sequence[str]) -> list[object]:
        """Look entries up."""
        found: list[object] = []
        for part in self._parts(keys):
            found += self._tried(_READ, self._get, part) or [None] * len(part)
        return found

    async def aread(self, keys: Sequence[str]) -> list[object]:
        """Look entries up without blocking the event loop."""
        found: list[object] = []
        for part in self._parts(keys):
            found += await self._atried(_READ, self._aget, self._get, part) or [None] * len(part)
        return found

    def write(self, entries: Entries) -> None:
        """Keep entries."""
        for part in self._parts(entries):
            self._tried(_WRITTEN, self._put, part)

    async def awrite(self, entries: Entries) -> None:
        """Keep entries, without blocking the event loop."""
        for part in self._parts(entries):
            await self._atried(_WRITTEN, self._aput, self._put, part)

    def _parts(self, items: Sequence[_ItemT]) -> Iterator[list[_ItemT]]:
        most = _AT_ONCE if isinstance(self._store, BaseStore) else _AT_ONCE_ONE_BY_ONE
        rest = iter(items)
        while part := list(islice(rest, most)):
            yield part

    def _get(self, keys: Sequence[str]) -> list[object]:
        if isinstance(self._store, BaseStore):
            return _as_many(self._store.mget([_name(key) for key in keys]), keys)
        return [_verdict_store_text(self._store.lookup(_name(key), _SHELF)) for key in keys]

    async def _aget(self, keys: Sequence[str]) -> list[object]:
        if isinstance(self._store, BaseStore):
            return _as_many(await self._store.amget([_name(key) for key in keys]), keys)
        lookups = (self._store.alookup(_name(key), _SHELF) for key in keys)
        return [_verdict_store_text(found) for found in await asyncio.gather(*lookups)]

    def _put(self, entries: Entries) -> None:
        if isinstance(self._store, BaseStore):
            self._store.mset([(_name(key), entry.encode("ascii")) for key, entry in entries])
            return
        for key, entry in entries:
            self._store.update(_name(key), _SHELF, [Generation(text=entry)])

    async def _aput(self, entries: Entries) -> None:
        if isinstance(self._store, BaseStore):
            await self._store.amset([(_name(key), entry.encode("ascii")) for key, entry in entries])
            return
        updates: list[Coroutine[Any, Any, None]] = [
            self._store.aupdate(_name(key), _SHELF, [Generation(text=entry)])
            for key, entry in entries
        ]
        await asyncio.gather(*updates)

    def _tried(
        self, what: str, work: Callable[[Sequence[_ItemT]], _ReplyT], part: Sequence[_ItemT]
    ) -> _ReplyT | None:
        if monotonic() < self._rests_until[what]:
            return None
        try:
            if type(self._store) in _IN_MEMORY:
                reply = work(part)
            else:
                _refuse_more()
                reply = _abandoned.call(self._timeout, partial(work, part), _THREAD)
        except Exception as exc:  # noqa: BLE001  (a store may fail in any way)
            self._fail(what, exc)
            return None
        self._failing.discard(what)
        return reply

    async def _atried(
        self,
        what: str,
        work: Callable[[Sequence[_ItemT]], Awaitable[_ReplyT]],
        blocking: Callable[[Sequence[_ItemT]], _ReplyT],
        part: Sequence[_ItemT],
    ) -> _ReplyT | None:
        if monotonic() < self._rests_until[what]:
            return None
        try:
            if what in self._awaited:
                async with asyncio.timeout(self._timeout):
                    reply = await work(part)
            else:
                _refuse_more()
                call = partial(blocking, part)
                reply = await _abandoned.acall(self._timeout, call, _THREAD)
        except Exception as exc:  # noqa: BLE001  (as above)
            self._fail(what, exc)
            return None
        self._failing.discard(what)
        return reply

    def _fail(self, what: str, error: Exception) -> None:
        # What cannot be read is down; what is slow to write may well be read.
        for way in _WAYS if what == _READ else (what,):
            self._rests_until[way] = monotonic() + _REST
        if what not in self._failing:
            name = type(self._store).__name__
            _LOGGER.warning(
                "verdict cache: %s cannot be %s (%s); claims are checked as if it was empty",
                *(name, what, cause(error)),
            )
        self._failing.add(what)


class CachedVerifier(OptionsAlone, PooledVerifier):
    """Keeps verdicts in a cache or store of LangChain, and asks a verifier only for the others.

    A verdict is found again for the same claim, the same texts of documents in any order, and the
    same verifier: its class, options, model, prompt and the version of this package. Of the
    question, the answer and the documents' metadata counts what the verifier reads. Claims without
    a verdict (`unchecked`) are never kept. Claims that are asked at the same time, by threads and
    tasks of one process, are asked once.

    What the store gives is checked like a stranger's word: an entry that is damaged, of another
    key, or whose quote does not stand in the documents, was not found. A store that fails costs
    the verdicts that it has, and no check. How long entries stay, and how many, is up to the store.

    Example:
        >>> from langchain_core.documents import Document
        >>> from langchain_core.stores import InMemoryByteStore
        >>> from langchain_groundedness.types import Claim
        >>> from langchain_groundedness.verification import EmbeddedVerifier
        >>> store = InMemoryByteStore()
        >>> verifier = CachedVerifier(verifier=EmbeddedVerifier(), store=store)
        >>> task = VerificationTask(
        ...     claims=(Claim(id="1", text="Revenue was $2.4B in Q3."),),
        ...     documents=(Document("Revenue was $2.1B in Q3 2024."),),
        ... )
        >>> first, again = verifier.invoke(task), verifier.invoke(task)
        >>> first == again, again[0].verdict, len(list(store.yield_keys()))
        (True, 'contradicted', 1)
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    verifier: AnyRunnable
    """What is asked: a verifier of this package, or any runnable from a task to verdicts."""
    store: VerdictCache
    """Where verdicts are kept: any `BaseCache`, or any `BaseStore` that takes bytes."""
    version: str | None = None
    """Names the verifier as it is now. Needed where a part of it does not tell by what its verdicts
    differ, such as a function of yours; give another one when that part changes."""
    reads: frozenset[Reads] | None = None
    """What the verifier reads beside the claim and the texts of the documents: `question`, `answer`
    (and where in it the claim stands), `metadata` (and ids of the documents), `order` (of the
    documents). By default what the verifiers of this package do read, and all of it for others;
    the less, the more often a verdict is found."""
    secret: SecretStr | None = None
    """Signs the entries, so that only who knows it can write verdicts into the store, or tell from
    a key which claim was checked."""
    store_timeout: float = Field(default=2.0, gt=0.0, allow_inf_nan=False)
    """Seconds that one request to the store may take. After a failure it is left alone for some
    seconds."""

    _shelf: VerdictStore | None = PrivateAttr(default=None)

    @override
    def _check_options(self) -> None:
        require_store(self.store, "store")
        known = self._identity()
        if known.dynamic:
            msg = (
                f"{', '.join(known.dynamic)} is another model in each run, as its config says, and "
                "verdicts of one must not pass for those of another: make a CachedVerifier of each"
            )
            raise ConfigurationError(msg)
        if known.untold and self.version is None:
            msg = (
                f"nothing tells when the verdicts of {', '.join(known.untold)} change: name what "
                "is there now, with CachedVerifier(verifier=..., store=..., version='1') or the "
                "like as verifier=, and give another version when it changes"
            )
            raise ConfigurationError(msg)

    @classmethod
    @override
    def is_lc_serializable(cls) -> bool:
        """Tell LangChain that this cannot be saved: no store can."""
        return False

    def warm_up(self) -> None:
        """Load what the verifier needs now instead of on first use."""
        warm_up = getattr(self.verifier, "warm_up", None)
        if callable(warm_up):
            warm_up()
        self._identity()

    @override
    def _found(
        self, tasks: Sequence[VerificationTask], configs: Sequence[RunnableConfig]
    ) -> Iterator[Found]:
        with Leading(self.store) as leading:
            yield from self._driven(self._asking(tasks, leading), configs)

    @override
    async def _afound(
        self, tasks: Sequence[VerificationTask], configs: Sequence[RunnableConfig]
    ) -> AsyncIterator[Found]:
        with Leading(self.store, asyncio.get_running_loop()) as leading:
            asking = self._asking(tasks, leading)
            driven = self._adriven(asking, configs, size=total_size(tasks))
            async with aclosing(driven) as found:
                async for each in found:
                    yield each

    @override
    def _judging(self, tasks: Sequence[VerificationTask]) -> Judging:
        raise NotImplementedError  # `_found` and `_afound` hold what is led while they drive

    @override
    def _ask(self, request: Any, configs: Sequence[RunnableConfig]) -> Any:
        match request:
            case Read(keys):
                return self._verdicts.read(keys)
            case Write(entries):
                self._verdicts.write(entries)
            case Follow(questions):
                return follow(questions)
            case Verify(places, tasks):
                own = [configs[place] for place in places]
                return lasting_raised(self.verifier.batch(tasks, own, return_exceptions=True))
            case Spared(place, verdicts):
                count_cached(configs[place], verdicts)
        return None

    @override
    async def _aask(self, request: Any, configs: Sequence[RunnableConfig]) -> Any:
        match request:
            case Read(keys):
                return await self._verdicts.aread(keys)
            case Write(entries):
                await self._verdicts.awrite(entries)
            case Follow(questions):
                return await afollow(questions)
            case Verify(places, tasks):
                own = [configs[place] for place in places]
                replies = await self.verifier.abatch(tasks, own, return_exceptions=True)
                return lasting_raised(replies)
            case Spared(place, verdicts):
                count_cached(configs[place], verdicts)
        return None

    @property
    def _verdicts(self) -> VerdictStore:
        if self._shelf is None:
            self._shelf = VerdictStore(self.store, self.store_timeout)
        return self._shelf

    def _identity(self) -> "Identity":
        from langchain_groundedness.verification.identity import identify  # noqa: PLC0415  (is slow)

        return identify(self.verifier, given=self.version)

    def _asking(self, tasks: Sequence[VerificationTask], leading: Leading) -> Judging:
        known = self._identity()
        reads = known.reads if self.reads is None else self.reads
        sealed = Sealed(known.digest, reads, _key(self.secret))
        yield from Asking(tasks, leading, sealed, self.verifier.get_name()).run()


def _key(secret: SecretStr | None) -> bytes:
    """Give a key for digests, which take 64 bytes at most."""
    return b"" if secret is None else blake2b(secret.get_secret_value().encode()).digest()


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


class Evidence(NamedTuple):
    """The documents of a task, in an order that does not depend on the retriever's."""

    digest: bytes
    places: tuple[int, ...]
    """Indexes in the task, in that order."""

    @classmethod
    def of(cls, task: VerificationTask, reads: AbstractSet[str], secret: bytes) -> "Evidence":
        """Digest the documents."""
        digests = [
            _digest(
                secret,
                document.page_content,
                *([document.id, _plain(document.metadata)] if "metadata" in reads else ()),
            )
            for document in task.documents
        ]
        places = range(len(digests))
        ordered = places if "order" in reads else sorted(places, key=digests.__getitem__)
        return cls(_digest(secret, *(digests[place] for place in ordered)), tuple(ordered))


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
        """Look at what is asked."""
        self._leading = leading
        self._title = title
        self._left = [
            asked for place, task in enumerate(tasks) for asked in _asked(place, task, sealed)
        ]
        self._alone: set[str] = set()
        """Keys that cannot be shared: each claim is asked by itself."""

    def run(self) -> Judging:
        """Find the verdicts."""
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


_PATIENCE = 0.25
"""Seconds between two looks at whether the event loop of a leader still turns."""

ABANDONED = Outcome()
"""The leader went away, or can share nothing: ask yourself."""

STUCK = Outcome()
"""The leader waits for whoever waits for it: ask yourself, without leading."""


class _Open:
    """All questions that are being asked in this process."""

    def __init__(self) -> None:
        self.start_anew()

    def start_anew(self) -> None:
        """A forked child has none of its parent's threads: nobody would answer."""
        self.lock = threading.Lock()
        self.questions: dict[tuple[int, str], Question] = {}
        self.settled = 0


_OPEN = _Open()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_OPEN.start_anew)


def follow(questions: Mapping[str, Question]) -> dict[str, Outcome]:
    """Wait in a thread for what others lead."""
    return {key: _follow(question) for key, question in questions.items()}


def _follow(question: Question) -> Outcome:
    turned: threading.Event | None = None
    while True:
        try:
            return question.outcome.result(_PATIENCE if question.loop is not None else None)
        except TimeoutError:
            if turned is not None and not turned.is_set():
                return STUCK
        turned = question.ping()
        if turned is None:
            return question.outcome.result() if question.outcome.done() else STUCK


async def afollow(questions: Mapping[str, Question]) -> dict[str, Outcome]:
    """Wait in an event loop for what others lead."""
    return {key: await _afollow(question) for key, question in questions.items()}


async def _afollow(question: Question) -> Outcome:
    # Nothing here cancels it: whoever stops waiting must not take the outcome from the others.
    outcome = asyncio.wrap_future(question.outcome)
    if question.loop in (None, asyncio.get_running_loop()):
        return await asyncio.shield(outcome)
    turned: threading.Event | None = None
    while not (await asyncio.wait([outcome], timeout=_PATIENCE))[0]:
        if turned is not None and not turned.is_set():
            return STUCK
        turned = question.ping()
        if turned is None:
            return await outcome if question.outcome.done() else STUCK
    return outcome.result()


ALL_READ: frozenset[Reads] = frozenset(get_args(Reads))

_FORMAT = 1
"""To be raised when entries change, or what their keys are made of."""

_LARGEST = 1 << 20
"""Characters of an entry; verdicts have some hundred."""

_DIGITS = 64


def key_of(  # noqa: PLR0913  (a key is made of all that counts)
    task: VerificationTask,
    claim: Claim,
    *,
    evidence: Evidence,
    identity: str,
    reads: AbstractSet[str],
    secret: bytes,
) -> str:
    """Give the key of a verdict."""
    answer = [task.answer, str(claim.start), str(claim.end)] if "answer" in reads else []
    question = task.question if "question" in reads else None
    parts = (str(_FORMAT), identity, claim.text, question, *answer)
    return _digest(secret, evidence.digest, *parts).hex()


class _Quote(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)

    place: Offset
    """Of the document, in the order of `Evidence`."""
    start: Offset
    end: Offset
    digest: str


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)

    verdict: Literal["supported", "contradicted", "unverifiable"]
    support_probability: Probability | None
    explanation: str
    quotes: tuple[_Quote, ...] = Field(max_length=10_000)
    correction: str | None
    conflicting: bool
    verifier: str


def entry_of(
    verdict: ClaimVerdict, task: VerificationTask, key: str, *, evidence: Evidence, secret: bytes
) -> str | None:
    """Write a verdict down."""
    if verdict.verdict == "unchecked":
        return None
    place_of = {index: place for place, index in enumerate(evidence.places)}
    quotes = [
        {
            "place": place_of[cited.document],
            "start": cited.start,
            "end": cited.end,
            "digest": _digest(secret, cited.quote).hex(),
        }
        for cited in verdict.citations
    ]
    kept = verdict.model_dump(exclude={"claim", "citations", "reason"})
    body = json.dumps({**kept, "quotes": quotes})
    entry = f"{_sum(key, body, secret)}{body}"
    again = verdict_of(entry, task, verdict.claim, key, evidence=evidence, secret=secret)
    return entry if again is not None and _content(again) == _content(verdict) else None


def verdict_of(  # noqa: PLR0913  (as above)
    entry: object,
    task: VerificationTask,
    claim: Claim,
    key: str,
    *,
    evidence: Evidence,
    secret: bytes,
) -> ClaimVerdict | None:
    """Read an entry."""
    text = _text(entry)
    if text is None or not compare_digest(
        text[:_DIGITS].encode(), _sum(key, text[_DIGITS:], secret).encode()
    ):
        return None
    try:
        found = _Entry.model_validate_json(text[_DIGITS:])
    except ValidationError:
        return None
    citations = [_citation(quote, task, evidence, secret) for quote in found.quotes]
    stands = [citation for citation in citations if citation is not None]
    needed = found.verdict != "unverifiable"
    if len(stands) < len(citations) or (needed and not stands):
        return None
    if found.correction is not None and found.verdict != "contradicted":
        return None
    fields = {name: getattr(found, name) for name in _Entry.model_fields if name != "quotes"}
    return ClaimVerdict(claim=claim, citations=tuple(stands), **fields)


def _text(entry: object) -> str | None:
    if isinstance(entry, bytes | bytearray):
        try:
            entry = entry.decode("ascii") if len(entry) <= _LARGEST else None
        except UnicodeDecodeError:
            return None
    if not isinstance(entry, str) or len(entry) > _LARGEST or not entry.isascii():
        return None
    return entry


def _citation(
    quote: _Quote, task: VerificationTask, evidence: Evidence, secret: bytes
) -> Citation | None:
    if quote.place >= len(evidence.places):
        return None
    document = evidence.places[quote.place]
    text = task.documents[document].page_content[quote.start : quote.end]
    if len(text) != quote.end - quote.start or not text.strip():
        return None
    if not compare_digest(quote.digest.encode(), _digest(secret, text).hex().encode()):
        return None
    return Citation.from_document(task.documents, document, quote.start, quote.end)


def _content(verdict: ClaimVerdict) -> tuple[Any, ...]:
    """What of a verdict has to come back: all but what stands in the task itself."""
    cited = tuple((c.document, c.start, c.end, c.quote) for c in verdict.citations)
    return (cited, verdict.model_dump(exclude={"claim", "citations"}))


def _plain(metadata: dict[str, Any]) -> str:
    plain = to_jsonable_python(metadata, fallback=repr, bytes_mode="base64")
    return json.dumps(plain, sort_keys=True)


def _sum(key: str, body: str, secret: bytes) -> str:
    return _digest(secret, "entry", key, body).hex()


def _digest(secret: bytes, *parts: str | bytes | None) -> bytes:
    """Digest texts so that no two different lists of them look alike."""
    digest = blake2b(key=secret, digest_size=_DIGITS // 2)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        size = -1 if data is None else len(data)
        digest.update(size.to_bytes(8, "big", signed=True))
        digest.update(data or b"")
    return digest.digest()


_LOGGER = logging.getLogger(__name__)

_SHELF = "langchain-groundedness verdicts"
"""What stands where a cache of LangChain expects the description of a model."""

_AT_ONCE = 64

_AT_ONCE_ONE_BY_ONE = 8
"""Keys in one request, which has to end within the timeout: a store takes them together, a cache
one by one."""

_REST = 5.0
"""Seconds for which a store that failed is left alone: a check must not wait for it each time."""

_WAYS = _READ, _WRITTEN = "read", "written to"

_THREAD = "groundedness-cache"

_abandoned = TimedCalls(8)
"""Requests to stores that go on though their time is up; with more, no store is asked."""

_IN_MEMORY = (InMemoryCache, InMemoryByteStore, InMemoryStore)


def require_store(value: object, option: str) -> None:
    """Refuse what verdicts cannot be kept in."""
    if not isinstance(value, BaseCache | BaseStore):
        msg = (
            f"{option} must be a cache or a store of LangChain, such as InMemoryCache() or "
            f"LocalFileStore(folder), got {type(value).__name__}"
        )
        raise ConfigurationError(msg)


def _can_be_awaited(store: BaseCache | BaseStore[str, Any]) -> frozenset[str]:
    """Tell what a store does for itself when awaited.

    For the rest, LangChain would use the threads of the event loop, which other work needs too, and
    for which a process waits before it ends.
    """
    if isinstance(store, BaseStore):
        own = (type(store).amget is not BaseStore.amget, type(store).amset is not BaseStore.amset)
    else:
        theirs = type(store)
        own = (theirs.alookup is not BaseCache.alookup, theirs.aupdate is not BaseCache.aupdate)
    return frozenset(way for way, is_own in zip(_WAYS, own, strict=True) if is_own)


def _refuse_more() -> None:
    if _abandoned.is_full:
        msg = "earlier requests to stores still go on"
        raise TimeoutError(msg)


def _name(key: str) -> str:
    """Name a key so that whoever looks into a store sees whose it is, and folders stay small."""
    return f"groundedness/{key[:2]}/{key[2:]}"


def _verdict_store_text(found: object) -> object:
    """Give the text that a cache of LangChain has kept as if a model had said it."""
    first = found[0] if isinstance(found, Sequence) and found else None
    return first.text if isinstance(first, Generation) else None


def _as_many(found: Sequence[object], keys: Sequence[str]) -> list[object]:
    if len(found) != len(keys):
        msg = f"{len(keys)} keys gave {len(found)} values"
        raise ValueError(msg)
    return list(found)
