"""One worker for all: who shares a round with whom, who waits for whom, and how it ends."""

import asyncio
import gc
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Sequence
from concurrent.futures import CancelledError
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_groundedness.verification.embedded import batching
from langchain_groundedness.verification.embedded.batching import PairScorer, pair_scorer
from langchain_groundedness.verification.embedded.encoder import Floats, Pair, default_threads

ROOT = Path(__file__).parents[2]
SOON = 300
"""Seconds after which a test fails that waits for something; nothing takes as long."""


class ScriptedEncoder:
    """Scores a pair by the number that its claim is; may be held up before each round."""

    def __init__(self) -> None:
        self.rounds: list[list[Pair]] = []
        self.given: list[weakref.ref[Floats]] = []
        self.failures: list[Exception | None] = []
        self.begun = threading.Semaphore(0)
        self.permits = threading.Semaphore(1_000_000)

    def hold(self) -> None:
        self.permits = threading.Semaphore(0)

    def let(self, rounds: int) -> None:
        self.permits.release(rounds)

    def wait(self) -> None:
        """Wait until a round, held up, has begun."""
        assert self.begun.acquire(timeout=SOON)

    def logits(self, pairs: Sequence[Pair]) -> Floats:
        self.rounds.append(list(pairs))
        self.begun.release()
        assert self.permits.acquire(timeout=SOON)
        failure = self.failures.pop(0) if self.failures else None
        if failure is not None:
            raise failure
        given = np.array([[float(pair.claim)] * 3 for pair in pairs], dtype=np.float32)
        self.given.append(weakref.ref(given))
        return given


@pytest.fixture
def encoder(monkeypatch: pytest.MonkeyPatch) -> ScriptedEncoder:
    scripted = ScriptedEncoder()
    monkeypatch.setattr(batching, "encoder", lambda _: scripted)
    return scripted


@pytest.fixture
def runs(encoder: ScriptedEncoder) -> PairScorer:
    del encoder
    return PairScorer(1)


def pairs(first: int, last: int) -> list[Pair]:
    return [Pair("evidence", str(number)) for number in range(first, last)]


def scores(rows: Floats) -> list[int]:
    return [int(row[0]) for row in rows]


def test_a_pair_asked_for_twice_in_a_request_is_scored_once(
    runs: PairScorer, encoder: ScriptedEncoder
) -> None:
    rows = runs.submit([*pairs(0, 3), *pairs(1, 4), *pairs(0, 1)]).result(SOON)
    assert scores(rows) == [0, 1, 2, 1, 2, 3, 0]
    assert encoder.rounds == [pairs(0, 4)]


def test_a_pair_asked_for_again_is_not_scored_again(
    runs: PairScorer, encoder: ScriptedEncoder
) -> None:
    runs.submit(pairs(0, 3)).result(SOON)
    assert scores(runs.submit(pairs(1, 5)).result(SOON)) == [1, 2, 3, 4]
    assert scores(runs.submit(pairs(0, 5)).result(SOON)) == [0, 1, 2, 3, 4]
    assert encoder.rounds == [pairs(0, 3), pairs(3, 5)]


def test_evidence_and_claim_are_told_apart(runs: PairScorer, encoder: ScriptedEncoder) -> None:
    alike = [Pair("1", "12"), Pair("11", "2"), Pair("", "112"), Pair("\ud800", "7")]
    assert scores(runs.submit(alike).result(SOON)) == [12, 2, 112, 7]
    assert encoder.rounds == [alike]


def test_what_a_caller_does_to_its_rows_changes_no_later_reply(runs: PairScorer) -> None:
    runs.submit(pairs(0, 2)).result(SOON).fill(7)
    assert scores(runs.submit(pairs(0, 2)).result(SOON)) == [0, 1]


def test_requests_of_the_same_time_share_a_round(
    runs: PairScorer, encoder: ScriptedEncoder
) -> None:
    encoder.hold()
    first = runs.submit(pairs(0, 1))
    encoder.wait()
    others = [runs.submit(pairs(4 * n, 4 * n + 4)) for n in range(64)]
    encoder.let(2)
    assert scores(first.result(SOON)) == [0]
    assert [scores(each.result(SOON)) for each in others] == [
        [4 * n, 4 * n + 1, 4 * n + 2, 4 * n + 3] for n in range(64)
    ]
    assert [len(each) for each in encoder.rounds] == [1, 255]


@pytest.mark.parametrize("huge", [1, 6])
def test_huge_requests_do_not_keep_a_small_one_waiting(
    runs: PairScorer, encoder: ScriptedEncoder, huge: int
) -> None:
    encoder.hold()
    large = [runs.submit(pairs(10_000 * n, 10_000 * n + 5_000)) for n in range(huge)]
    encoder.wait()
    small = runs.submit(pairs(99_000, 99_004))
    encoder.let(3)
    assert scores(small.result(SOON)) == [99_000, 99_001, 99_002, 99_003]
    assert not any(each.done() for each in large)
    encoder.let(1_000)
    assert all(scores(each.result(SOON))[-1] % 10_000 == 4_999 for each in large)


def test_a_cancelled_request_saves_its_rounds_and_harms_nobody(
    runs: PairScorer, encoder: ScriptedEncoder
) -> None:
    encoder.hold()
    large = runs.submit(pairs(0, 5_000))
    encoder.wait()
    small = runs.submit(pairs(9_000, 9_002))
    assert large.cancel()
    encoder.let(1_000)
    assert scores(small.result(SOON)) == [9_000, 9_001]
    assert len(encoder.rounds) == 2
    assert len(encoder.rounds[0]) < 5_000
    with pytest.raises(CancelledError):
        large.result(SOON)


def test_a_request_cancelled_in_its_only_round_harms_nobody(
    runs: PairScorer, encoder: ScriptedEncoder
) -> None:
    encoder.hold()
    first = runs.submit(pairs(0, 2))
    encoder.wait()
    first.cancel()
    encoder.let(1_000)
    assert scores(runs.submit(pairs(0, 3)).result(SOON)) == [0, 1, 2]


async def test_a_cancelled_task_saves_its_rounds(
    runs: PairScorer, encoder: ScriptedEncoder
) -> None:
    async def ask(first: int, last: int) -> Floats:
        return await asyncio.wrap_future(runs.submit(pairs(first, last)))

    encoder.hold()
    large = asyncio.create_task(ask(0, 5_000))
    await asyncio.to_thread(encoder.wait)
    small = asyncio.create_task(ask(9_000, 9_002))
    large.cancel()
    with pytest.raises(asyncio.CancelledError):
        await large
    encoder.let(1_000)
    assert scores(await small) == [9_000, 9_001]
    assert len(encoder.rounds) == 2


def test_a_request_that_fails_costs_those_of_its_round_nothing(
    runs: PairScorer, encoder: ScriptedEncoder
) -> None:
    encoder.hold()
    encoder.failures = [None, MemoryError(), None, MemoryError()]
    before = runs.submit(pairs(0, 1))
    encoder.wait()
    beside = runs.submit(pairs(1, 3))
    failing = runs.submit(pairs(3, 30))
    encoder.let(1_000)
    assert scores(before.result(SOON)) == [0]
    assert scores(beside.result(SOON)) == [1, 2]
    with pytest.raises(MemoryError):
        failing.result(SOON)
    assert scores(runs.submit(pairs(3, 5)).result(SOON)) == [3, 4]


def test_a_request_alone_in_its_round_fails_with_it(
    runs: PairScorer, encoder: ScriptedEncoder
) -> None:
    encoder.failures = [MemoryError()]
    with pytest.raises(MemoryError):
        runs.submit(pairs(0, 3)).result(SOON)
    assert len(encoder.rounds) == 1


def test_no_pairs_are_answered_at_once(runs: PairScorer, encoder: ScriptedEncoder) -> None:
    empty = runs.submit([])
    assert empty.done()
    assert empty.result().shape == (0, 3)
    assert encoder.rounds == []


@given(st.lists(st.lists(st.integers(0, 400), max_size=400), max_size=6))
def test_rows_come_in_the_order_of_the_pairs(numbers: list[list[int]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        encoder = ScriptedEncoder()
        patch.setattr(batching, "encoder", lambda _: encoder)
        runs = PairScorer(1)
        asked = [runs.submit([Pair("", str(n)) for n in each]) for each in numbers]
        assert [scores(each.result(SOON)) for each in asked] == numbers
    scored = [pair for each in encoder.rounds for pair in each]
    assert len(scored) == len(set(scored))


def test_kept_scores_stay_bounded_and_the_latest_are_kept(
    runs: PairScorer, encoder: ScriptedEncoder
) -> None:
    assert scores(runs.submit(pairs(0, 10_000)).result(SOON)) == list(range(10_000))
    encoder.rounds.clear()
    runs.submit(pairs(2_000, 10_000)).result(SOON)
    assert encoder.rounds == []
    runs.submit(pairs(0, 100)).result(SOON)
    assert encoder.rounds == [pairs(0, 100)]


def test_a_kept_score_does_not_keep_the_round_it_came_from(
    runs: PairScorer, encoder: ScriptedEncoder
) -> None:
    runs.submit(pairs(0, 256)).result(SOON)
    runs.submit(pairs(0, 1)).result(SOON)  # of another round
    gc.collect()
    assert [given() for given in encoder.given] == [None]


def test_a_worker_that_nobody_holds_any_more_ends(encoder: ScriptedEncoder) -> None:
    del encoder
    before = set(threading.enumerate())
    runs = PairScorer(1)
    runs.submit(pairs(0, 1)).result(SOON)
    (worker,) = set(threading.enumerate()) - before
    del runs
    worker.join(SOON)
    assert not worker.is_alive()


def test_each_number_of_threads_has_one_worker() -> None:
    assert pair_scorer(2) is pair_scorer(2)
    assert pair_scorer(2) is not pair_scorer(1)


def test_the_usual_number_of_threads_given_by_name_has_no_worker_of_its_own() -> None:
    assert pair_scorer(default_threads()) is pair_scorer()


def test_threads_that_ask_first_at_the_same_time_share_a_worker() -> None:
    at_once = threading.Barrier(8)
    found: list[PairScorer] = []

    def ask() -> None:
        at_once.wait(SOON)
        found.append(pair_scorer(77))

    asking = [threading.Thread(target=ask) for _ in range(8)]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join(SOON)
    assert len(set(map(id, found))) == 1


def test_asking_while_python_shuts_down_says_so() -> None:
    out = run_python("""
import threading
from langchain_groundedness.exceptions import GroundednessError
from langchain_groundedness.verification.embedded.encoder import Pair
from langchain_groundedness.verification.embedded.batching import pair_scorer
runs = pair_scorer()

def late():
    threading.main_thread().join()
    try:
        runs.submit([Pair("a", "b")])
    except GroundednessError as exc:
        print(exc)

threading.Thread(target=late).start()
""")
    assert "while Python shuts down" in out


def run_python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_nothing_is_started_or_loaded_before_the_first_request() -> None:
    out = run_python("""
import sys, threading
from langchain_groundedness import EmbeddedVerifier, GroundednessRunnable
from langchain_groundedness.verification.embedded.batching import pair_scorer
EmbeddedVerifier()
GroundednessRunnable()
pair_scorer(None).submit([])
print(threading.active_count(), {"onnxruntime", "tokenizers"} & set(sys.modules))
""")
    assert out == "1 set()\n"


def test_an_interpreter_that_ends_with_work_pending_ends() -> None:
    run_python("""
import threading
import numpy as np
from langchain_groundedness.verification.embedded import batching
from langchain_groundedness.verification.embedded.encoder import Pair
begun = threading.Event()
class Encoder:
    def logits(self, pairs):
        begun.set()
        return np.zeros((len(pairs), 3), dtype=np.float32)
batching.encoder = lambda threads: Encoder()
runs = batching.pair_scorer()
asked = [runs.submit([Pair(str(n), str(m)) for m in range(3_000)]) for n in range(10)]
begun.wait()
""")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
@pytest.mark.parametrize("threads", [1, 2])
def test_a_forked_child_scores_and_ends_like_its_parent(threads: int) -> None:
    # In an interpreter of its own, so that this one's threads are not forked.
    out = run_python(f"""
import os, signal, sys
from langchain_groundedness.verification.embedded import encoder as _encoder
from langchain_groundedness.verification.embedded.batching import pair_scorer
pairs = [_encoder.Pair("Rome is old. " * 9, f"Rome is {{n}} years old.") for n in range(30)]
before = pair_scorer({threads}).submit(pairs).result()
with _encoder._ENCODERS._lock:  # as if another thread were loading
    child = os.fork()
if child:
    print(os.waitpid(child, 0)[1])
else:
    signal.alarm({SOON})
    after = pair_scorer({threads}).submit(pairs).result()
    sys.exit(0 if abs(after - before).max() < 1e-3 else 3)
""")
    assert out == "0\n"
