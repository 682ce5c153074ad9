"""A verifier that asks another one only what is not known yet."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from langchain_core.caches import BaseCache
from langchain_core.runnables import RunnableConfig
from langchain_core.stores import BaseStore
from pydantic import ConfigDict, Field, PrivateAttr, SecretStr, SkipValidation
from typing_extensions import override

from langchain_groundedness._options import AnyRunnable, OptionsAlone
from langchain_groundedness._usage import count_cached
from langchain_groundedness.exceptions import ConfigurationError
from langchain_groundedness.types import VerificationTask
from langchain_groundedness.verifiers._asking import (
    Asking,
    Follow,
    Read,
    Sealed,
    Spared,
    Verify,
    Write,
)
from langchain_groundedness.verifiers._in_flight import Leading, afollow, follow
from langchain_groundedness.verifiers._pooled import (
    Found,
    Judging,
    PooledVerifier,
    lasting_raised,
    total_size,
)
from langchain_groundedness.verifiers._verdict_entries import Reads
from langchain_groundedness.verifiers._verdict_store import VerdictStore, require_store

if TYPE_CHECKING:
    from langchain_groundedness.verifiers._identity import Identity

__all__ = ["CachedVerifier", "VerdictCache"]

VerdictCache = SkipValidation[BaseCache | BaseStore[str, Any]]
"""An option that takes a place to keep verdicts in; `CachedVerifier` looks at what came."""


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
        >>> from langchain_groundedness.verifiers import EmbeddedVerifier
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
        from langchain_groundedness.verifiers._identity import identify  # noqa: PLC0415  (is slow)

        return identify(self.verifier, given=self.version)

    def _asking(self, tasks: Sequence[VerificationTask], leading: Leading) -> Judging:
        known = self._identity()
        reads = known.reads if self.reads is None else self.reads
        sealed = Sealed(known.digest, reads, _key(self.secret))
        yield from Asking(tasks, leading, sealed, self.verifier.get_name()).run()


def _key(secret: SecretStr | None) -> bytes:
    """Give a key for digests, which take 64 bytes at most."""
    return b"" if secret is None else blake2b(secret.get_secret_value().encode()).digest()
