"""A cache or store of LangChain as a place for verdicts; one that fails is as good as empty."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from functools import partial
from itertools import islice
from time import monotonic
from typing import Any, TypeVar

from langchain_core.caches import BaseCache, InMemoryCache
from langchain_core.outputs import Generation
from langchain_core.stores import BaseStore, InMemoryByteStore, InMemoryStore

from langchain_groundedness._causes import cause
from langchain_groundedness._patience import Abandoned
from langchain_groundedness.exceptions import ConfigurationError

__all__ = ["Entries", "VerdictStore", "require_store"]

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
_abandoned = Abandoned(8)
"""Requests to stores that go on though their time is up; with more, no store is asked."""
_IN_MEMORY = (InMemoryCache, InMemoryByteStore, InMemoryStore)

Entries = Sequence[tuple[str, str]]
"""Keys and what is kept under them."""
_ItemT = TypeVar("_ItemT")
_ReplyT = TypeVar("_ReplyT")


def require_store(value: object, option: str) -> None:
    """Refuse what verdicts cannot be kept in.

    Args:
        value: What was given.
        option: The option that it was given for.

    Raises:
        ConfigurationError: It is neither a cache nor a store of LangChain.
    """
    if not isinstance(value, BaseCache | BaseStore):
        msg = (
            f"{option} must be a cache or a store of LangChain, such as InMemoryCache() or "
            f"LocalFileStore(folder), got {type(value).__name__}"
        )
        raise ConfigurationError(msg)


class VerdictStore:
    """Reads and writes entries; what fails, or takes too long, was not found and is not kept."""

    def __init__(self, store: BaseCache | BaseStore[str, Any], timeout: float) -> None:
        """Name the store.

        Args:
            store: The store.
            timeout: Seconds that one request may take.
        """
        self._store = store
        self._timeout = timeout
        self._awaited = _can_be_awaited(store)
        self._rests_until = dict.fromkeys(_WAYS, 0.0)
        self._failing: set[str] = set()

    def read(self, keys: Sequence[str]) -> list[object]:
        """Look entries up.

        Args:
            keys: Their keys.

        Returns:
            What was found under each, whatever it is; `None` for nothing.
        """
        found: list[object] = []
        for part in self._parts(keys):
            found += self._tried(_READ, self._get, part) or [None] * len(part)
        return found

    async def aread(self, keys: Sequence[str]) -> list[object]:
        """Look entries up without blocking the event loop.

        Args:
            keys: Their keys.

        Returns:
            As `read`.
        """
        found: list[object] = []
        for part in self._parts(keys):
            found += await self._atried(_READ, self._aget, self._get, part) or [None] * len(part)
        return found

    def write(self, entries: Entries) -> None:
        """Keep entries.

        Args:
            entries: Keys, and what to keep.
        """
        for part in self._parts(entries):
            self._tried(_WRITTEN, self._put, part)

    async def awrite(self, entries: Entries) -> None:
        """Keep entries, without blocking the event loop.

        Args:
            entries: Keys, and what to keep.
        """
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
        return [_text(self._store.lookup(_name(key), _SHELF)) for key in keys]

    async def _aget(self, keys: Sequence[str]) -> list[object]:
        if isinstance(self._store, BaseStore):
            return _as_many(await self._store.amget([_name(key) for key in keys]), keys)
        lookups = (self._store.alookup(_name(key), _SHELF) for key in keys)
        return [_text(found) for found in await asyncio.gather(*lookups)]

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


def _text(found: object) -> object:
    """Give the text that a cache of LangChain has kept as if a model had said it."""
    first = found[0] if isinstance(found, Sequence) and found else None
    return first.text if isinstance(first, Generation) else None


def _as_many(found: Sequence[object], keys: Sequence[str]) -> list[object]:
    if len(found) != len(keys):
        msg = f"{len(keys)} keys gave {len(found)} values"
        raise ValueError(msg)
    return list(found)
