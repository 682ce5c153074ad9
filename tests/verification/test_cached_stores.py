"""Every kind of store keeps verdicts; none is believed, and none that fails costs a check."""

import asyncio
import json
import logging
import os
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest
from conftest import LoopClock
from hypothesis import given
from hypothesis import strategies as st
from langchain_classic.storage import LocalFileStore
from langchain_core.caches import BaseCache, InMemoryCache
from langchain_core.outputs import Generation
from langchain_core.runnables import RunnableLambda
from langchain_core.stores import BaseStore, InMemoryByteStore, InMemoryStore
from pydantic import SecretStr
from redis_server import RedisServer
from typing_extensions import override
from verdict_caching import BARI, ROME, SOON, Reader, cached, task

from langchain_groundedness import Citation, ClaimVerdict, ConfigurationError, VerificationTask

CAPITAL = "Rome is the capital of Italy."
SEA = "Bari lies at the sea."
AGAINST = "Rome is old."[::-1]
DOCUMENTS = (ROME, BARI, "Rome is old.")

pytestmark = [
    pytest.mark.filterwarnings("ignore:`langchain-community` is being sunset"),
    pytest.mark.filterwarnings("ignore:The function `loads`"),  # which these caches call
    pytest.mark.filterwarnings("ignore:The default value of `allowed_objects`"),
]


@pytest.fixture
def redis(redis_server: RedisServer) -> Iterator[RedisServer]:
    from redis import Redis  # noqa: PLC0415  (may be absent, and then the tests are skipped)

    yield redis_server
    with Redis.from_url(redis_server.url) as client:
        client.flushall()


def community() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        import langchain_community.cache  # noqa: PLC0415  (warns when imported)
        import langchain_community.storage  # noqa: PLC0415  (same)
    return langchain_community


Opened = Callable[[], Any]
"""Opens a store anew, as another process would."""

IN_MEMORY = ("InMemoryCache", "InMemoryByteStore", "InMemoryStore")
LASTING = ("LocalFileStore", "SQLiteCache", "RedisCache", "RedisStore")


@pytest.fixture(params=[*IN_MEMORY, *LASTING])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opened]:
    kind: str = request.param
    if kind in IN_MEMORY:
        one = {c.__name__: c for c in (InMemoryCache, InMemoryByteStore, InMemoryStore)}[kind]()
        yield lambda: one
    elif kind == "LocalFileStore":
        yield lambda: LocalFileStore(tmp_path)
    elif kind == "SQLiteCache":
        made: list[Any] = []

        def sqlite() -> Any:
            path = str(tmp_path / "verdicts.db")
            made.append(community().cache.SQLiteCache(database_path=path))
            return made[-1]

        yield sqlite
        for each in made:
            each.engine.dispose()
    else:
        yield from redis_stores(kind, request.getfixturevalue("redis"))


def redis_stores(kind: str, server: RedisServer) -> Iterator[Opened]:
    from redis import Redis  # noqa: PLC0415  (may be absent)

    clients: list[Redis] = []

    def make() -> Any:
        clients.append(Redis.from_url(server.url))
        if kind == "RedisCache":
            return community().cache.RedisCache(clients[-1])
        return community().storage.RedisStore(client=clients[-1])

    yield make
    for client in clients:
        client.close()


def test_a_store_keeps_verdicts_for_whoever_opens_it(opened: Opened) -> None:
    asked = task(CAPITAL, SEA, AGAINST, "It rains.", documents=DOCUMENTS)
    plain = Reader().invoke(asked)
    assert {v.verdict for v in plain} == {"supported", "contradicted", "unverifiable"}
    assert cached(Reader(), opened()).invoke(asked) == plain
    again = Reader()
    assert cached(again, opened()).invoke(asked) == plain
    assert again.asked == []


async def test_a_store_keeps_verdicts_without_blocking_the_event_loop(opened: Opened) -> None:
    asked = task(CAPITAL, SEA, AGAINST, "It rains.", documents=DOCUMENTS)
    plain = Reader().invoke(asked)
    first = await asyncio.to_thread(opened)
    assert await cached(Reader(), first).ainvoke(asked) == plain
    again, second = Reader(), await asyncio.to_thread(opened)
    assert await cached(again, second).ainvoke(asked) == plain
    assert again.asked == []


def test_more_claims_than_fit_in_one_request_are_all_kept(opened: Opened) -> None:
    claims = [f"Claim {n}." for n in range(150)]
    asked = task(*claims, documents=DOCUMENTS)
    judge = Reader()
    for _ in range(2):
        assert len(cached(judge, opened()).invoke(asked)) == len(claims)
    assert judge.asked == claims


def test_what_was_written_synchronously_is_found_asynchronously(opened: Opened) -> None:
    judge = Reader()
    cached(judge, opened()).invoke(task(CAPITAL))
    found = asyncio.run(cached(judge, opened()).ainvoke(task(CAPITAL)))
    assert (found[0].verdict, judge.asked) == ("supported", [CAPITAL])


async def test_an_asynchronous_redis_client_will_do_for_asynchronous_checks(
    redis: RedisServer,
) -> None:
    from redis.asyncio import Redis  # noqa: PLC0415  (may be absent)

    async with Redis.from_url(redis.url) as client:
        store = (await asyncio.to_thread(community)).cache.AsyncRedisCache(client)
        judge = Reader()
        for _ in range(2):
            [found] = await cached(judge, store).ainvoke(task(CAPITAL))
            assert found.verdict == "supported"
    assert judge.asked == [CAPITAL]


def test_a_redis_server_that_dies_costs_no_check_and_is_used_again_when_it_is_back(
    redis: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    from redis import Redis  # noqa: PLC0415  (may be absent)

    with Redis.from_url(redis.url) as client:
        judge = Reader()
        verifier = cached(judge, community().storage.RedisStore(client=client))
        verifier.invoke(task(CAPITAL))
        redis.kill()
        try:
            for _ in range(3):
                [found] = verifier.invoke(task(CAPITAL))
                assert found.verdict == "supported"
        finally:
            redis.start()
        assert len(judge.asked) == 4
        [told] = [r for r in caplog.records if r.levelno >= logging.WARNING]
        assert "RedisStore cannot be read (ConnectionError" in told.getMessage()
        assert "Rome" not in told.getMessage()
        until = time.monotonic() + SOON  # it is left alone for some seconds after a failure
        asked = 0
        while asked < len(judge.asked) and time.monotonic() < until:
            asked = len(judge.asked)
            verifier.invoke(task(CAPITAL))
            time.sleep(0.1)
        assert asked == len(judge.asked)


class Failing(InMemoryByteStore):
    def __init__(self, reads: Exception | None, writes: Exception | None) -> None:
        super().__init__()
        self.reads, self.writes = reads, writes

    @override
    def mget(self, keys: Sequence[str]) -> list[bytes | None]:
        if self.reads:
            raise self.reads
        return super().mget(keys)

    @override
    def mset(self, key_value_pairs: Sequence[tuple[str, bytes]]) -> None:
        if self.writes:
            raise self.writes
        super().mset(key_value_pairs)

    @override
    async def amget(self, keys: Sequence[str]) -> list[bytes | None]:
        return self.mget(keys)

    @override
    async def amset(self, key_value_pairs: Sequence[tuple[str, bytes]]) -> None:
        self.mset(key_value_pairs)


@pytest.mark.parametrize("reads", [None, OSError(f"while reading {ROME}")])
@pytest.mark.parametrize("writes", [None, OSError(f"while writing {ROME}")])
async def test_a_store_that_fails_is_as_good_as_none(
    reads: Exception | None, writes: Exception | None, caplog: pytest.LogCaptureFixture
) -> None:
    verifier = cached(Reader(), Failing(reads, writes))
    plain = Reader().invoke(task(CAPITAL, SEA))
    for _ in range(3):
        assert await asyncio.to_thread(verifier.invoke, task(CAPITAL, SEA)) == plain
        assert await verifier.ainvoke(task(CAPITAL, SEA)) == plain
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == bool(reads or writes)
    assert ROME not in str(told)


def test_a_store_that_cannot_be_written_to_is_still_read() -> None:
    judge, store = Reader(), Failing(None, None)
    verifier = cached(judge, store)
    verifier.invoke(task(CAPITAL))
    store.writes = OSError()
    for _ in range(2):
        verifier.invoke(task(CAPITAL, SEA))
    assert judge.asked == [CAPITAL, SEA, SEA]


class Endless(InMemoryByteStore):
    """A store that does not answer until the test lets it."""

    def __init__(self) -> None:
        super().__init__()
        self.let = threading.Event()

    @override
    def mget(self, keys: Sequence[str]) -> list[bytes | None]:
        assert self.let.wait(SOON)
        return super().mget(keys)

    @override
    async def amget(self, keys: Sequence[str]) -> list[bytes | None]:
        await asyncio.to_thread(self.let.wait, SOON)
        return self.mget(keys)


async def test_a_store_that_never_answers_is_waited_for_only_so_long() -> None:
    store = Endless()
    try:
        for call in (
            lambda v: asyncio.to_thread(v.invoke, task(CAPITAL)),
            lambda v: v.ainvoke(task(CAPITAL)),
        ):
            [found] = await call(cached(Reader(), store, store_timeout=0.01))
            assert found.verdict == "supported"
    finally:
        store.let.set()


@pytest.mark.parametrize("call", ["verifier.invoke(task)", "asyncio.run(verifier.ainvoke(task))"])
def test_a_process_ends_though_a_store_never_answers(call: str) -> None:
    code = """
import asyncio
import threading
from langchain_core.documents import Document
from langchain_core.stores import BaseStore
from langchain_groundedness import CachedVerifier, EmbeddedVerifier
from langchain_groundedness.types import Claim, VerificationTask
class Endless(BaseStore):
    def mget(self, keys):
        threading.Event().wait()
    mset = mdelete = yield_keys = mget
verifier = CachedVerifier(verifier=EmbeddedVerifier(), store=Endless(), store_timeout=0.1)
claims = (Claim(id="1", text="Rome is in Italy."),)
task = VerificationTask(claims=claims, documents=(Document("Rome is in Italy."),))
"""
    code += f"print({call}[0].verdict)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "supported\n"


@pytest.mark.parametrize("seconds", [0, float("inf"), float("nan")])
def test_the_time_for_a_store_must_be_a_number_of_seconds(seconds: float) -> None:
    with pytest.raises(ConfigurationError, match="store_timeout"):
        cached(Reader(), InMemoryByteStore(), store_timeout=seconds)


class Confused(BaseStore[str, Any]):
    """Gives what it likes, whatever it was asked for."""

    def __init__(self, reply: Any) -> None:
        self.reply = reply

    @override
    def mget(self, keys: Sequence[str]) -> list[Any]:
        return self.reply if isinstance(self.reply, list) else [self.reply] * len(keys)

    @override
    def mset(self, key_value_pairs: Sequence[tuple[str, Any]]) -> None:
        pass

    @override
    def mdelete(self, keys: Sequence[str]) -> None:
        pass

    @override
    def yield_keys(self, *, prefix: str | None = None) -> Iterator[str]:
        yield from ()


class Held(Confused):
    """A store that can only be called, and does not answer until the test lets it."""

    def __init__(self) -> None:
        super().__init__(None)
        self.let = threading.Event()
        self.asked = threading.Semaphore(0)
        self.threads: list[str] = []

    @override
    def mget(self, keys: Sequence[str]) -> list[Any]:
        self.asked.release()
        self.threads.append(threading.current_thread().name)
        assert self.let.wait(SOON)
        return super().mget(keys)


async def test_a_store_that_never_answers_takes_no_thread_of_the_event_loop(
    clock: LoopClock,
) -> None:
    store = Held()
    check = asyncio.create_task(cached(Reader(), store, store_timeout=1.0).ainvoke(task(CAPITAL)))
    try:
        assert await asyncio.to_thread(store.asked.acquire, timeout=SOON)
        clock.advance(1.0)
        assert (await check)[0].verdict == "supported"
    finally:
        store.let.set()
    assert store.threads == ["groundedness-cache"]


@pytest.mark.parametrize("awaited", [True, False])
def test_a_store_that_answers_nobody_is_asked_by_few_at_a_time(*, awaited: bool) -> None:
    store = Held()
    try:
        for _ in range(12):  # a verifier that has failed leaves the store alone for a while
            verifier = cached(Reader(), store, store_timeout=0.01)
            call = asyncio.run(verifier.ainvoke(task(CAPITAL))) if awaited else None
            [found] = call or verifier.invoke(task(CAPITAL))
            assert found.verdict == "supported"
        assert store.asked.acquire(timeout=SOON)
        assert len(store.threads) <= 8
    finally:
        store.let.set()


RUBBISH = [
    b"",
    "",
    b"\xff\xfe",
    "x" * 64,
    "x" * 65,
    "\u00e4" * 80,
    5,
    {},
    object(),
    b"0" * (2 << 20),
]


@pytest.mark.parametrize("reply", [*RUBBISH, [], [None] * 7], ids=lambda value: str(value)[:8])
def test_what_is_no_entry_was_not_found(reply: Any) -> None:
    judge = Reader()
    assert cached(judge, Confused(reply)).invoke(task(CAPITAL)) == Reader().invoke(task(CAPITAL))
    assert judge.asked == [CAPITAL]


class ConfusedCache(BaseCache):
    def __init__(self, reply: Any) -> None:
        self.reply = reply

    @override
    def lookup(self, prompt: str, llm_string: str) -> Any:
        return self.reply

    @override
    def update(self, prompt: str, llm_string: str, return_val: Any) -> None:
        pass

    @override
    def clear(self, **kwargs: Any) -> None:
        pass


@pytest.mark.parametrize(
    "reply", [[], [5], 5, "text", [Generation(text="")], [Generation(text="x" * 90)]]
)
def test_what_is_no_generation_with_an_entry_was_not_found(reply: Any) -> None:
    judge = Reader()
    cached(judge, ConfusedCache(reply)).invoke(task(CAPITAL))
    assert judge.asked == [CAPITAL]


def filled(*claims: str, **options: Any) -> tuple[InMemoryByteStore, dict[str, bytes]]:
    store = InMemoryByteStore()
    for claim in claims:
        cached(Reader(), store, **options).invoke(task(claim, documents=DOCUMENTS))
    keys = list(store.yield_keys())
    return store, dict(zip(keys, [v for v in store.mget(keys) if v is not None], strict=True))


@given(st.data())
def test_an_entry_with_any_damage_was_not_found(data: st.DataObject) -> None:
    store, entries = filled(CAPITAL)
    [(key, entry)] = entries.items()
    at = data.draw(st.integers(0, len(entry) - 1))
    damaged = data.draw(
        st.sampled_from(
            [
                entry[:at],
                entry[:at] + entry[at + 1 :],
                entry[:at]
                + bytes([entry[at] ^ (1 << data.draw(st.integers(0, 6)))])
                + entry[at + 1 :],
                entry + entry[at:],
            ]
        )
    )
    store.mset([(key, damaged)])
    judge = Reader()
    [found] = cached(judge, store).invoke(task(CAPITAL, documents=DOCUMENTS))
    assert found == Reader().invoke(task(CAPITAL, documents=DOCUMENTS))[0]
    assert judge.asked == [CAPITAL]


def test_an_entry_under_the_key_of_another_claim_was_not_found() -> None:
    store, entries = filled(CAPITAL, "It rains.")
    (one, supported), (other, open_) = entries.items()
    store.mset([(one, open_), (other, supported)])
    judge = Reader()
    found = cached(judge, store).invoke(task(CAPITAL, "It rains.", documents=DOCUMENTS))
    assert [v.verdict for v in found] == ["supported", "unverifiable"]
    assert judge.asked == [CAPITAL, "It rains."]


ASKED = task("Oslo is old.", documents=DOCUMENTS)
QUOTE = Citation.from_document(ASKED.documents, 2, 0, 12)
HONEST = ClaimVerdict(claim=ASKED.claims[0], verdict="supported", citations=(QUOTE,))


def honest() -> tuple[InMemoryByteStore, str, dict[str, Any]]:
    """Give a store with one entry, its key, and the body of the entry."""
    store = InMemoryByteStore()
    cached(RunnableLambda(lambda _: [HONEST]), store).invoke(ASKED)
    [key] = store.yield_keys()
    [entry] = store.mget([key])
    assert entry is not None
    body: dict[str, Any] = json.loads(entry[64:])
    return store, key, body


def digest(*parts: str) -> str:
    """Sum parts up as the package does, and as anybody can without a secret."""
    found = blake2b(digest_size=32)
    for part in parts:
        found.update(len(part.encode()).to_bytes(8, "big", signed=True))
        found.update(part.encode())
    return found.hexdigest()


def forged(body: str, **options: Any) -> list[ClaimVerdict]:
    """Read a body with the right checksum in the place of an entry; nothing if it is refused."""
    store, key, _ = honest()
    checksum = digest("entry", key.removeprefix("groundedness/").replace("/", ""), body)
    store.mset([(key, f"{checksum}{body}".encode())])
    found = cached(RunnableLambda(lambda _: []), store, **options).invoke(ASKED)
    return [verdict for verdict in found if verdict.verdict != "unchecked"]


def test_the_forger_of_these_tests_knows_the_form() -> None:
    _, _, body = honest()
    [found] = forged(json.dumps(body))
    assert found.citations == (QUOTE,)


@pytest.mark.parametrize(
    "change",
    [
        {"quotes": []},
        {"verdict": "unchecked"},
        {"verdict": "true"},
        {"verdict": None},
        {"support_probability": 1.5},
        {"support_probability": "1"},
        {"support_probability": float("nan")},
        {"support_probability": float("inf")},
        {"conflicting": "yes"},
        {"correction": "Rome is new."},
        {"reason": "because"},
        {"claim": {"id": "1", "text": "Rome is new."}},
        {"explanation": None},
        {"quotes": "all"},
        {"quotes": {"place": 0}},
        {"quotes": [[3, 0, 12]]},
        {"quotes": [[-1, 0, 12]]},
        {"quotes": [[10**30, 0, 12]]},
        {"quotes": [[0, 5, 4]]},
        {"quotes": [[0, 0, 0]]},
        {"quotes": [[0, 0, 10**9]]},
        {"quotes": [[0, -3, 12]]},
        {"quotes": [[0, 0]]},
        {"quotes": [[0, 0, 12, "Oslo is old."]]},
    ],
    ids=str,
)
def test_a_forged_entry_that_breaks_the_rules_was_not_found(change: dict[str, Any]) -> None:
    _, _, body = honest()
    assert forged(json.dumps({**body, **change})) == []


@pytest.mark.parametrize(
    "body",
    [
        "",
        "null",
        "[]",
        "{",
        "NaN",
        '{"verdict":' * 5000,
        "[" * 100_000,
        '{"support_probability": NaN}',
        '{"py/object": "os.system"}',
        '{"lc": 1, "type": "constructor", "id": ["os", "system"], "kwargs": {}}',
        "\x80\x04.",
    ],
    ids=lambda body: body[:20],
)
def test_a_forged_body_of_another_kind_was_not_found(body: str) -> None:
    assert forged(body) == []


def test_an_object_in_a_store_is_no_entry() -> None:
    assert cached(RunnableLambda(lambda _: []), Confused(HONEST)).invoke(ASKED)[0].reason


def test_who_does_not_know_the_secret_cannot_write_verdicts() -> None:
    store, entries = filled(CAPITAL, secret=SecretStr("ours"))
    [(key, entry)] = entries.items()
    body = entry[64:].decode()
    name = key.removeprefix("groundedness/").replace("/", "")
    store.mset([(key, (digest("entry", name, body) + body).encode())])
    judge = Reader()
    cached(judge, store, secret=SecretStr("ours")).invoke(task(CAPITAL, documents=DOCUMENTS))
    assert judge.asked == [CAPITAL]


PROCESS = """
import sys
from langchain_classic.storage import LocalFileStore
from verdict_caching import Reader, cached, task
verifier = cached(Reader(), LocalFileStore(sys.argv[1]))
for number in range(1_000_000):
    verifier.invoke(task(f"Claim {number}.", documents=[f"Claim {number}."]))
    print(number, flush=True)
"""


def test_a_process_that_is_killed_leaves_nothing_that_is_believed_wrongly(tmp_path: Path) -> None:
    tests = Path(__file__).parent.parent
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", PROCESS, str(tmp_path)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": f"{tests}{os.pathsep}{tests.parent}"},
    )
    assert process.stdout is not None
    told = [int(process.stdout.readline()) for _ in range(20)][-1]
    process.kill()
    process.wait(SOON)
    process.stdout.close()
    judge = Reader()
    for number in range(told + 3):
        asked: VerificationTask = task(f"Claim {number}.", documents=[f"Claim {number}."])
        assert cached(judge, LocalFileStore(tmp_path)).invoke(asked) == Reader().invoke(asked)
    assert not {f"Claim {number}." for number in range(told + 1)} & set(judge.asked)
