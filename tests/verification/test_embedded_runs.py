"""The embedded verifier however it is called: in batches, concurrently, interrupted, in bulk."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from langchain_core.documents import Document

from langchain_groundedness import EmbeddedVerifier
from langchain_groundedness.types import Claim, ClaimVerdict, VerificationTask
from langchain_groundedness.verification.embedded import batching
from langchain_groundedness.verification.embedded import verifier as embedded
from langchain_groundedness.verification.embedded.batching import PairScorer
from langchain_groundedness.verification.embedded.encoder import Floats, Pair

ROOT = Path(__file__).parents[2]
ARCHIVE = (
    "The archive of Oslo was founded in 1848. It keeps 300 treaties.",
    "Anna Berg has led it since 2015. Before that she was a judge in Bergen.",
)


def task(claims: Sequence[str], documents: Sequence[str] = ARCHIVE) -> VerificationTask:
    return VerificationTask(
        claims=tuple(Claim(id=str(n), text=text) for n, text in enumerate(claims)),
        documents=tuple(Document(page_content=text) for text in documents),
    )


TASKS = [
    task(["The archive was founded in 1848.", "Anna Berg was a judge before she led the archive."]),
    task([]),
    task(["It keeps 30 treaties.", "The keeper collects stamps.", "The archive is in Oslo."]),
    task(["The archive was founded in 1848."], ["", " "]),
    task(["Rome is old. " * 9], ["Rome is old. " * 90]),
    task([], []),
    task(["The archive was founded in 1848."]),
]


def assert_alike(found: list[ClaimVerdict], expected: list[ClaimVerdict]) -> None:
    """Assert that nothing but the last digits of probabilities differs."""
    unlike = {"support_probability": None}
    assert [v.model_copy(update=unlike) for v in found] == [
        v.model_copy(update=unlike) for v in expected
    ]
    for one, other in zip(found, expected, strict=True):
        assert one.support_probability == (
            None
            if other.support_probability is None
            else pytest.approx(other.support_probability, abs=1e-3)
        )


def test_however_it_is_called_the_verdicts_are_the_same() -> None:
    verifier = EmbeddedVerifier()
    single = [verifier.invoke(each) for each in TASKS]
    assert [[v.claim for v in verdicts] for verdicts in single] == [
        list(each.claims) for each in TASKS
    ]
    assert {v.verdict for v in single[3]} == {"unchecked"}
    ways = [
        verifier.batch(TASKS),
        asyncio.run(verifier.abatch(TASKS)),
        [asyncio.run(verifier.ainvoke(each)) for each in TASKS],
        [list(chain.from_iterable(verifier.stream(each))) for each in TASKS],
        verifier.batch(TASKS[::-1])[::-1],
    ]
    for found in ways:
        for verdicts, expected in zip(found, single, strict=True):
            assert_alike(verdicts, expected)


@pytest.mark.parametrize("threads", [1, 2])
def test_the_number_of_threads_changes_no_verdict(threads: int) -> None:
    expected = EmbeddedVerifier().batch(TASKS)
    for verdicts, those in zip(
        EmbeddedVerifier(threads=threads).batch(TASKS), expected, strict=True
    ):
        assert_alike(verdicts, those)


def test_a_batch_of_thousands_of_claims_is_judged_like_a_small_one() -> None:
    # In parts that end within a task, too: 1,120 claims of small tasks, then 1,100 of one task.
    expected = EmbeddedVerifier().batch(TASKS)
    (one,) = EmbeddedVerifier().invoke(task(["It keeps 30 treaties."]))
    *found, long = EmbeddedVerifier().batch([*TASKS * 140, task(["It keeps 30 treaties."] * 1_100)])
    for verdicts, those in zip(found, expected * 140, strict=True):
        assert_alike(verdicts, those)
    assert_alike(long, [one.model_copy(update={"claim": each.claim}) for each in long])
    assert [each.claim.id for each in long] == [str(n) for n in range(1_100)]


class Counting:
    """Scores all pairs alike, and counts its rounds."""

    def __init__(self) -> None:
        self.rounds: list[list[Pair]] = []
        self.may_go_on = threading.Event()
        self.may_go_on.set()

    def logits(self, pairs: Sequence[Pair]) -> Floats:
        self.rounds.append(list(pairs))
        assert self.may_go_on.wait(300)
        return np.zeros((len(pairs), 3), dtype=np.float32)


@pytest.fixture
def encoder(monkeypatch: pytest.MonkeyPatch) -> Counting:
    counting, runs = Counting(), PairScorer(1)
    monkeypatch.setattr(batching, "encoder", lambda _: counting)
    monkeypatch.setattr(embedded, "pair_scorer", lambda _: runs)
    return counting


def test_a_batch_is_read_in_one_round_and_what_repeats_once(encoder: Counting) -> None:
    EmbeddedVerifier().batch([*TASKS, *TASKS])
    (pairs,) = encoder.rounds
    assert len(pairs) == len(set(pairs))


async def test_32_answers_checked_at_once_share_rounds_and_leave_the_event_loop_free(
    encoder: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs, everyone_asked = PairScorer(1), asyncio.Event()
    asked: list[Future[Floats]] = []

    class Watched:
        def submit(self, pairs: list[Pair]) -> Future[Floats]:
            asked.append(runs.submit(pairs))
            if len(asked) == 32:
                everyone_asked.set()
            return asked[-1]

    monkeypatch.setattr(embedded, "pair_scorer", lambda _: Watched())
    encoder.may_go_on.clear()
    verifier = EmbeddedVerifier()
    tasks = [task([f"The archive keeps {n} treaties of Oslo."]) for n in range(32)]
    checks = [asyncio.create_task(verifier.ainvoke(each)) for each in tasks]
    await everyone_asked.wait()
    encoder.may_go_on.set()
    verdicts = await asyncio.gather(*checks)
    assert [len(each) for each in verdicts] == [1] * 32
    assert sum(map(len, encoder.rounds)) == 32
    assert len(encoder.rounds) <= 2


async def test_a_cancelled_check_withdraws_its_request(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: asyncio.Queue[Future[Floats]] = asyncio.Queue()

    class Never:
        def submit(self, pairs: list[Pair]) -> Future[Floats]:
            assert pairs
            request: Future[Floats] = Future()
            asked.put_nowait(request)
            return request

    monkeypatch.setattr(embedded, "pair_scorer", lambda _: Never())
    check = asyncio.create_task(EmbeddedVerifier().ainvoke(TASKS[0]))
    request = await asked.get()
    check.cancel()
    with pytest.raises(asyncio.CancelledError):
        await check
    assert request.cancelled()


def test_an_interrupted_check_withdraws_its_request(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(Future[Floats]):
        def result(self, timeout: float | None = None) -> Floats:
            raise KeyboardInterrupt

    request = Interrupted()

    class Runs:
        def submit(self, pairs: list[Pair]) -> Future[Floats]:
            assert pairs
            return request

    monkeypatch.setattr(embedded, "pair_scorer", lambda _: Runs())
    with pytest.raises(KeyboardInterrupt):
        EmbeddedVerifier().invoke(TASKS[0])
    assert request.cancelled()


def test_an_encoder_that_fails_is_an_error_and_no_verdict(
    encoder: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Sequence[Pair]) -> Floats:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(encoder, "logits", fail)
        outcomes: list[object] = list(EmbeddedVerifier().batch(TASKS[:3], return_exceptions=True))
        assert [type(outcome) for outcome in outcomes] == [MemoryError] * 3
    assert [v.verdict for v in EmbeddedVerifier().invoke(TASKS[0])] != ["unchecked"]


BULK = """
from itertools import cycle, islice
import numpy as np
from langchain_core.documents import Document
from langchain_groundedness import Claim, EmbeddedVerifier, VerificationTask
from langchain_groundedness.verification.embedded import batching

DOCUMENT = Document("Shelf 7 holds 70 boxes. It was built in 1907.")

def judge(texts):
    claims = tuple(Claim(id=str(n), text=text) for n, text in enumerate(texts))
    task = VerificationTask(claims=claims, documents=(DOCUMENT,))
    verdicts = EmbeddedVerifier().batch([task])[0]
    assert [v.claim for v in verdicts] == list(claims)
    assert not any(v.verdict == "unchecked" for v in verdicts)

def peak():
    # Not `ru_maxrss`, which begins at what the process had that started this one.
    status = open("/proc/self/status").read()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024

def scripted(pairs):
    return np.zeros((len(pairs), 3), dtype=np.float32)

judge(f"Shelf 7 holds {n} boxes." for n in range(300))  # by the encoder itself
loaded = peak()
judge(f"Shelf 7 holds {n % 300} boxes." for n in range(1_000))
class Encoder:
    logits = staticmethod(scripted)
batching.encoder = lambda threads: Encoder()
judge(f"Shelf 7 holds {n} boxes." for n in range(9_000, 19_000))
print(loaded, peak())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_ten_thousand_claims_in_a_batch_take_little_more_memory_than_a_few() -> None:
    # 300 different pairs are read by the encoder, 10,000 by a scripted one in its place: what
    # the encoder needs depends on its rounds, which have the same size either way.
    done = subprocess.run(
        [sys.executable, "-c", BULK], cwd=ROOT, capture_output=True, text=True, check=True
    )
    loaded, peak = map(float, done.stdout.split())
    assert loaded < 300
    assert peak - loaded < 100, "in MB; the verdicts themselves take some 50"
