"""A verifier that caches verdicts and calls another verifier only on a cache miss."""

import asyncio
import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from functools import partial
from hashlib import blake2b
from hmac import compare_digest
from itertools import groupby
from operator import attrgetter, itemgetter
from time import monotonic
from typing import Any, Literal, NamedTuple, get_args

from langchain_core.caches import BaseCache, InMemoryCache
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel, BaseLanguageModel
from langchain_core.outputs import Generation
from langchain_core.prompts import BasePromptTemplate
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.stores import BaseStore, InMemoryByteStore, InMemoryStore
from pydantic import BaseModel, ConfigDict, Field, SecretStr, SkipValidation
from pydantic_core import to_jsonable_python
from typing_extensions import override

from langchain_groundedness._runtime.installed import PACKAGE_VERSION
from langchain_groundedness._runtime.timeouts import TimedCalls
from langchain_groundedness.exceptions import ConfigurationError, cause
from langchain_groundedness.llm.chat_models import memoized
from langchain_groundedness.types import (
    Citation,
    Claim,
    ClaimVerdict,
    Offset,
    Probability,
    VerificationTask,
)
from langchain_groundedness.verification.base import (
    AskVerifier,
    FinalVerdicts,
    PooledVerifier,
    VerdictSteps,
    checked_reply,
)
from langchain_groundedness.verification.by_name import AnyVerifier
from langchain_groundedness.verification.cascade import CascadeVerifier
from langchain_groundedness.verification.scoring import strict_threshold_of

__all__ = ["CachedVerifier", "VerdictCache", "require_store"]

VerdictCache = SkipValidation[BaseCache | BaseStore[str, Any]]
"""An option that takes a LangChain cache or store; `CachedVerifier` checks its type."""

Reads = Literal["question", "answer", "metadata", "order"]
"""Parts of a task that a verifier may read besides the claim and the document texts."""


class CachedVerifier(PooledVerifier):
    """Caches verdicts in a LangChain cache or store, and calls a verifier for the others.

    The cache key covers the claim, the question, the document texts (in any order) and the
    verifier: its options, model, prompt, `key` and the version of this package. `unchecked`
    verdicts are never cached. A claim that appears several times in a batch is verified once.

    Entries are validated when read: one that is damaged, belongs to another key, or quotes text
    that is not in the documents counts as a miss. If the store fails, claims are checked as if it
    were empty. Size limits and expiry are the store's job.

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

    _can_be_saved = False

    verifier: AnyVerifier
    """A verifier of this package or its name, or any runnable from a task to verdicts."""
    store: VerdictCache
    """Any `BaseCache`, or any `BaseStore` that takes bytes."""
    key: str | None = Field(default=None, min_length=1)
    """Version name of the verifier; change it when the verifier changes. Required for verifiers,
    embeddings, cross-encoders and functions from outside this package. Verifiers of this package
    with a LangChain chat model do not need it."""
    reads: frozenset[Reads] | None = None
    """What the verifier reads besides claim and document texts: `question`, `answer` (and the
    claim's position in it), `metadata` (and ids of the documents), `order` (of the documents).
    Default: the question for verifiers of this package, everything for others. The fewer parts,
    the more cache hits."""
    secret: SecretStr | None = None
    """Signs entries and keys. Nobody without the secret can forge a cached verdict, or learn from a
    key which claim was checked."""
    store_timeout: float = Field(default=2.0, gt=0.0, allow_inf_nan=False)
    """Seconds to wait for one request to the store. After a failure, the store is not used for
    a few seconds."""

    @property
    def strict_threshold(self) -> float:
        """Minimum probability of support for what a correction says."""
        return strict_threshold_of(self.verifier)

    @override
    def _check_options(self) -> None:
        require_store(self.store, "store")
        self._description()

    def warm_up(self) -> None:
        """Load the verifier's models now instead of on first use."""
        warm_up = getattr(self.verifier, "warm_up", None)
        if callable(warm_up):
            warm_up()

    @override
    def _verdict_steps(self, tasks: Sequence[VerificationTask]) -> VerdictSteps:
        lookups = self._lookups(tasks)
        entries: dict[str, Any] = {}
        for keys in self._requests(list(dict.fromkeys(lookup.key for lookup in lookups))):
            entries |= yield _StoreCall(keys)
        missing = yield from _yield_cached(lookups, entries)
        while missing:
            asked: dict[str, _Lookup] = {}
            repeated = [each for each in missing if asked.setdefault(each.key, each) is not each]
            entries = yield from self._ask_verifier(list(asked.values()))
            missing = yield from _yield_cached(repeated, entries)

    def _ask_verifier(self, asked: Sequence["_Lookup"]) -> Any:
        """Call the verifier, yield its verdicts and cache them; return the entries."""
        groups = [list(group) for _, group in groupby(asked, key=attrgetter("place"))]
        tasks = [group[0].task.only(lookup.claim for lookup in group) for group in groups]
        replies = yield AskVerifier(self.verifier, [group[0].place for group in groups], tasks)
        entries: dict[str, Any] = {}
        for group, task, reply in zip(groups, tasks, replies, strict=True):
            verdicts = checked_reply(task, reply, self.verifier.get_name())
            yield FinalVerdicts(group[0].place, verdicts)
            pairs = zip(group, verdicts, strict=True)
            entries |= {lookup.key: lookup.written(verdict) for lookup, verdict in pairs}
        written = {key: entry for key, entry in entries.items() if isinstance(entry, str)}
        for keys in self._requests(list(written)):
            yield _StoreCall(keys, [written[key].encode() for key in keys])
        return entries

    def _requests(self, keys: list[str]) -> list[list[str]]:
        """Split keys into requests; smaller ones for a cache, which takes keys one by one."""
        size = 64 if isinstance(self.store, BaseStore) else 8
        return [keys[first : first + size] for first in range(0, len(keys), size)]

    def _lookups(self, tasks: Sequence[VerificationTask]) -> list["_Lookup"]:
        reads = _reads_of(self.verifier) if self.reads is None else self.reads
        secret = b""
        if self.secret is not None:  # the key of a digest has at most 64 bytes
            secret = blake2b(self.secret.get_secret_value().encode()).digest()
        verifier = _digest(secret, self._description())
        lookups = []
        for place, task in enumerate(tasks):
            documents, order = _in_order(task.documents, reads, secret)
            for claim in task.claims:
                answer = [task.answer, str(claim.start), str(claim.end)]
                question = task.question if "question" in reads else None
                parts = (documents, verifier, claim.text, question)
                key = _digest(secret, *parts, *(answer if "answer" in reads else ()))
                lookups.append(_Lookup(place, task, claim, key, order, secret))
        return lookups

    def _description(self) -> str:
        """Describe what verdicts depend on besides the task."""
        unknown: list[str] = []
        described = _describe(self.verifier, "verifier", unknown)
        if unknown and self.key is None:
            msg = (
                f"cannot detect changes in {', '.join(unknown)}: pass a key, as in "
                "CachedVerifier(..., key='my-judge-1'), and change it when the verifier changes"
            )
            raise ConfigurationError(msg)
        return json.dumps(
            [_FORMAT, PACKAGE_VERSION, self.key, described], default=repr, sort_keys=True
        )

    @override
    def _ask(self, request: Any, configs: Sequence[RunnableConfig]) -> Any:
        return self._verdict_store().ask(request)

    @override
    async def _aask(self, request: Any, configs: Sequence[RunnableConfig]) -> Any:
        return await self._verdict_store().aask(request)

    def _verdict_store(self) -> "_VerdictStore":
        return memoized(self, lambda: _VerdictStore(self.store, self.store_timeout))


def require_store(value: object, option: str) -> None:
    """Raise `ConfigurationError` unless the value is a LangChain cache or store."""
    if not isinstance(value, BaseCache | BaseStore):
        msg = (
            f"{option} must be a LangChain cache or store, such as InMemoryCache() or "
            f"LocalFileStore(folder), got {type(value).__name__}"
        )
        raise ConfigurationError(msg)


class _StoreCall(NamedTuple):
    """A request to write entries, or to read them; then the reply maps keys to entries."""

    keys: list[str]
    entries: list[bytes] | None = None


def _yield_cached(lookups: Sequence["_Lookup"], entries: Mapping[str, Any]) -> Any:
    """Yield the cached verdicts; return the lookups that missed."""
    found = [(lookup, lookup.read(entries.get(lookup.key, ""))) for lookup in lookups]
    known = [(lookup.place, verdict) for lookup, verdict in found if verdict is not None]
    for place, group in groupby(known, key=itemgetter(0)):
        verdicts = [verdict for _, verdict in group]
        cached = sum(verdict.reason is None for verdict in verdicts)
        yield FinalVerdicts(place, verdicts, cached)
    return [lookup for lookup, verdict in found if verdict is None]


def _in_order(
    documents: Sequence[Document], reads: AbstractSet[str], secret: bytes
) -> tuple[str, tuple[int, ...]]:
    """Digest the documents; return the digest and the order of document indexes in it."""
    digests = []
    for document in documents:
        about = (document.id, document.metadata) if "metadata" in reads else None
        plain = to_jsonable_python(about, fallback=repr, bytes_mode="base64")
        digests.append(_digest(secret, document.page_content, json.dumps(plain, sort_keys=True)))
    places = range(len(digests))
    order = places if "order" in reads else sorted(places, key=digests.__getitem__)
    return _digest(secret, *(digests[place] for place in order)), tuple(order)


def _digest(secret: bytes, *parts: str | None) -> str:
    """Digest texts unambiguously: each is preceded by its length."""
    digest = blake2b(key=secret, digest_size=_DIGITS // 2)
    for part in parts:
        data = (part or "").encode("utf-8", "surrogatepass")
        digest.update((-1 if part is None else len(data)).to_bytes(8, "big", signed=True))
        digest.update(data)
    return digest.hexdigest()


class _Lookup(NamedTuple):
    """A claim of a task, and the key of its verdict."""

    place: int
    task: VerificationTask
    claim: Claim
    key: str
    order: tuple[int, ...]
    """Document indexes in the order of the digest."""
    secret: bytes

    def written(self, verdict: ClaimVerdict) -> Any:
        """Serialize a verdict as checksum and JSON; return an `unchecked` one unchanged."""
        if verdict.reason is not None:
            return verdict
        place_of = {index: place for place, index in enumerate(self.order)}
        body = json.dumps(
            {
                **verdict.model_dump(exclude={"claim", "citations", "reason"}),
                "quotes": [[place_of[c.document], c.start, c.end] for c in verdict.citations],
            }
        )
        return f"{self._checksum(body)}{body}"

    def read(self, entry: Any) -> ClaimVerdict | None:
        """Read an entry; `None` if `written` cannot have produced it for this key."""
        if isinstance(entry, ClaimVerdict):
            return entry.model_copy(update={"claim": self.claim})
        checksum, body = entry[:_DIGITS], entry[_DIGITS:]
        if not compare_digest(checksum, self._checksum(body)):
            return None
        try:
            found = _Entry.model_validate_json(body)
            citations = tuple(self._citation(*quote) for quote in found.quotes)
        except ValueError:
            return None
        lacks_quotes = found.verdict != "unverifiable" and not citations
        if lacks_quotes or (found.correction is not None and found.verdict != "contradicted"):
            return None
        fields = found.model_dump(exclude={"quotes"})
        return ClaimVerdict(claim=self.claim, citations=citations, **fields)

    def _citation(self, place: int, start: int, end: int) -> Citation:
        if place >= len(self.order):
            raise ValueError(place)
        document = self.order[place]
        text = self.task.documents[document].page_content[start:end]
        if len(text) != end - start or not text.strip():
            raise ValueError(place)
        return Citation.from_document(self.task.documents, document, start, end)

    def _checksum(self, body: str) -> str:
        return _digest(self.secret, "entry", self.key, body)


_FORMAT = 2
"""Increase it when the format of entries or keys changes."""

_LONGEST_ENTRY = 1 << 20
"""Maximum number of characters of an entry; typical entries have a few hundred."""

_DIGITS = 64
"""Hexadecimal digits of a digest."""


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)

    verdict: Literal["supported", "contradicted", "unverifiable"]
    support_probability: Probability | None
    explanation: str
    quotes: tuple[tuple[Offset, Offset, Offset], ...] = Field(max_length=10_000)
    """Document (its place in `_in_order`), start and end; no document text is stored."""
    correction: str | None
    conflicting: bool
    verifier: str


_PACKAGE = "langchain_groundedness."

_NOT_DESCRIBED = frozenset(
    {"threads", "max_concurrency", "timeout", "retry_budget", "store", "store_timeout", "secret"}
)
"""Options that affect speed but not verdicts."""


def _describe(value: Any, path: str, unknown: list[str]) -> Any:  # noqa: PLR0911  (one per kind)
    """Describe part of a verifier as plain data; append what cannot be described to `unknown`."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(k): _describe(v, f"{path}.{k}", unknown) for k, v in sorted(value.items())}
    if isinstance(value, list | tuple):
        return [_describe(each, f"{path}[{n}]", unknown) for n, each in enumerate(value)]
    name = f"{type(value).__module__}.{type(value).__qualname__}"
    if isinstance(value, RunnableBindingBase):
        return _describe([value.bound, value.kwargs], f"{path}.bound", unknown)
    if isinstance(value, BaseChatModel) and (options := _model_options(value)) is not None:
        return [name, options]
    if isinstance(value, BasePromptTemplate) and not any(
        map(callable, value.partial_variables.values())
    ):
        return [name, value.model_dump_json(serialize_as_any=True, fallback=repr)]
    if _is_package_class(value):
        options = dict(value) if isinstance(value, BaseModel) else {"function": value.__qualname__}
        counted = {option: options[option] for option in options.keys() - _NOT_DESCRIBED}
        return [name, _describe(counted, path, unknown)]
    part = "the verifier" if path == "verifier" else path
    unknown.append(f"{part} ({type(value).__name__})")
    return name


def _model_options(model: BaseChatModel) -> Any:
    """Return the parameters that LangChain's caches use for a model; `None` if it has none."""
    silent = type(model)._identifying_params is BaseLanguageModel._identifying_params  # noqa: SLF001
    if silent and not model.is_lc_serializable():
        return None
    # LangChain caches the LLM string, so it alone would hide a later change.
    params = to_jsonable_python(dict(model._identifying_params), fallback=lambda v: str(type(v)))  # noqa: SLF001
    return [model._get_llm_string(), params]  # noqa: SLF001


def _is_package_class(value: object) -> bool:
    """Return whether this package defines a function or object; its version then covers it."""
    named = value if hasattr(value, "__qualname__") else type(value)
    module = str(named.__module__)
    return module.startswith(_PACKAGE) and not module.startswith(f"{_PACKAGE}testing")


def _reads_of(verifier: Any) -> frozenset[str]:
    """Return what a verifier reads: the question if it is ours, else everything."""
    if isinstance(verifier, RunnableBindingBase):
        return _reads_of(verifier.bound)
    if isinstance(verifier, CascadeVerifier):
        return frozenset[str]().union(*(_reads_of(stage.verifier) for stage in verifier.stages))
    is_known = _is_package_class(verifier) and not isinstance(verifier, CachedVerifier)
    return frozenset({"question"} if is_known else get_args(Reads))


class _CacheAsStore:
    """The methods of a LangChain store that are used, on a cache."""

    def __init__(self, cache: BaseCache) -> None:
        self._cache = cache

    def mget(self, keys: Sequence[str]) -> list[Any]:
        return [self._cache.lookup(key, _LLM_STRING) for key in keys]

    async def amget(self, keys: Sequence[str]) -> list[Any]:
        return await asyncio.gather(*(self._cache.alookup(key, _LLM_STRING) for key in keys))

    def mset(self, pairs: Sequence[tuple[str, bytes]]) -> None:
        for key, entry in pairs:
            self._cache.update(key, _LLM_STRING, [Generation(text=entry.decode())])

    async def amset(self, pairs: Sequence[tuple[str, bytes]]) -> None:
        entries = [(key, [Generation(text=entry.decode())]) for key, entry in pairs]
        await asyncio.gather(*(self._cache.aupdate(k, _LLM_STRING, e) for k, e in entries))


class _VerdictStore:
    """Reads and writes entries; a failure or timeout counts as a miss."""

    def __init__(self, store: BaseCache | BaseStore[str, Any], timeout: float) -> None:
        kind: Any = type(store)
        self._kind = kind
        self._timeout = timeout
        # For a store without async methods, LangChain would use the event loop's thread pool, which
        # other work needs, and which a process waits for before it exits.
        if isinstance(store, BaseStore):
            self._store: Any = store
            self._is_async = kind.amget is not BaseStore.amget
        else:
            self._store = _CacheAsStore(store)
            self._is_async = kind.alookup is not BaseCache.alookup
        self._paused_until = {"read": 0.0, "written to": 0.0}

    def ask(self, request: _StoreCall) -> dict[str, str]:
        with self._guarded(request) as is_paused:
            if self._kind in _IN_MEMORY:
                return _texts(request, self._call(request)())
            if not is_paused:
                reply = _store_calls.call(self._timeout, self._call(request), _THREAD)
                return _texts(request, reply)
        return {}

    async def aask(self, request: _StoreCall) -> dict[str, str]:
        with self._guarded(request) as is_paused:
            if not is_paused and self._is_async:
                async with asyncio.timeout(self._timeout):
                    return _texts(request, await self._call(request, "a")())
            elif not is_paused:
                reply = await _store_calls.acall(self._timeout, self._call(request), _THREAD)
                return _texts(request, reply)
        return {}

    def _call(self, request: _StoreCall, prefix: str = "") -> Callable[[], Any]:
        # The prefix names this package; the key is split so that folders stay small.
        names = [f"groundedness/{key[:2]}/{key[2:]}" for key in request.keys]
        if request.entries is None:
            return partial(getattr(self._store, f"{prefix}mget"), names)
        pairs = list(zip(names, request.entries, strict=True))
        return partial(getattr(self._store, f"{prefix}mset"), pairs)

    @contextmanager
    def _guarded(self, request: _StoreCall) -> Iterator[bool]:
        """Yield whether the store is paused; pause it if a request fails."""
        what = "read" if request.entries is None else "written to"
        try:
            yield monotonic() < self._paused_until[what]
        except Exception as exc:  # noqa: BLE001  (a store may fail in any way)
            # A store that cannot be read is down; one that cannot be written to may be read.
            for each in self._paused_until if what == "read" else (what,):
                self._paused_until[each] = monotonic() + _PAUSE
            _LOGGER.warning(
                "verdict cache: %s cannot be %s (%s); claims are checked as if it were empty",
                *(self._kind.__name__, what, cause(exc)),
            )


def _texts(request: _StoreCall, reply: Any) -> dict[str, str]:
    """Read the reply to a request by its keys; a request that writes has none."""
    if request.entries is not None:
        return {}
    return dict(zip(request.keys, map(_text_of, reply), strict=True))


def _text_of(found: Any) -> str:
    """Return the text of a stored value; empty if it cannot be an entry."""
    if isinstance(found, Sequence) and found and isinstance(found[0], Generation):
        found = found[0].text
    if isinstance(found, bytes | bytearray) and len(found) <= _LONGEST_ENTRY:
        found = found.decode("ascii", errors="replace")
    is_text = isinstance(found, str) and len(found) <= _LONGEST_ENTRY and found.isascii()
    return found if is_text else ""


_LOGGER = logging.getLogger(__name__)

_LLM_STRING = "langchain-groundedness verdicts"
"""Used where a LangChain cache expects the description of a model."""

_PAUSE = 5.0
"""Seconds without requests after a failure, so that checks do not wait for a store that is down."""

_THREAD = "groundedness-cache"

_store_calls = TimedCalls(8)
"""At most this many store calls may run on after their timeout; then the store is skipped."""

_IN_MEMORY = (InMemoryCache, InMemoryByteStore, InMemoryStore)
