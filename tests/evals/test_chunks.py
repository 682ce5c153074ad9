"""Rows on their way to workers and back, without Ray."""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from counting import CountingEvaluator
from langchain_openai import ChatOpenAI
from pydantic import SecretStr
from ray_evaluators import KeyEvaluator

from langchain_groundedness.evals import EvaluationRow, FaithfulnessEvaluator, evaluate
from langchain_groundedness.evals.datasets import open_dataset
from langchain_groundedness.evals.evaluation import Job
from langchain_groundedness.evals.ray_engine import (
    ChunkWorker,
    Feed,
    Parcel,
    RayEngine,
    _Passage,
    pack,
    read_answer,
    write_row,
    written_chunk,
)
from langchain_groundedness.exceptions import ConfigurationError, EvaluationError

KEY = "sk-not-to-be-seen"


class Attempts:
    """Counts within this process."""

    def __init__(self, **begun: int) -> None:
        self._begun = Counter(begun)

    def begin(self, name: str) -> int:
        self._begun[name] += 1
        return self._begun[name]

    def survive(self, name: str) -> None:
        del self._begun[name]


class Stream:
    """A worker in this process instead of Ray's; each answer comes twice."""

    def __init__(self, fails_at: int = -1) -> None:
        self.worker = ChunkWorker(Attempts(), pack([CountingEvaluator()]), {}, 2)
        self._chunks: list[str] = []
        self._fails_at = fails_at

    def put(self, number: int, chunk: str) -> None:
        self._chunks.append(chunk)

    def forget(self, number: int) -> None:
        pass

    def answers(self) -> Iterator[str]:
        number = 0
        while number < len(self._chunks):
            if number == self._fails_at:
                raise RuntimeError("a row: its text")  # noqa: EM101, TRY003  (as others' errors are)
            for _ in range(2):
                yield from self.worker({"chunk": [self._chunks[number], ""]})["chunk"]
            number += 1


def jobs(*ids: str) -> list[Job]:
    rows = [EvaluationRow(id=name, answer="banana") for name in ids]
    found: list[Any] = list(open_dataset(rows))
    return [Job(place, located, {}) for place, located in enumerate(found)]


def test_each_row_is_given_back_once_though_answers_come_twice() -> None:
    passage = _Passage(Stream(), 3, 2)  # type: ignore[arg-type]  # it has what is used
    for job in jobs("a", "b", "c", "d", "e"):
        passage.send(job)
    done = [row for _ in range(3) for row in passage.receive()[0]]
    assert [each.row.row.id for each in done] == ["a", "b", "c", "d", "e"]
    assert {each.row.scores[0].score for each in done} == {0.5}


def test_when_ray_gives_up_the_rows_on_their_way_are_named_and_nothing_of_them_shown() -> None:
    passage = _Passage(Stream(fails_at=0), 3, 2)  # type: ignore[arg-type]
    for job in jobs("a", "b"):
        passage.send(job)
    with pytest.raises(EvaluationError, match=r"RuntimeError.*2 rows.*a, b.*resumed") as raised:
        passage.receive()
    assert raised.value.row_ids == ("a", "b")
    assert "text" not in str(raised.value)


def test_a_stream_that_ends_too_early_is_an_error_and_no_end() -> None:
    passage = _Passage(Stream(), 3, 2)  # type: ignore[arg-type]
    with pytest.raises(EvaluationError, match="stream ended"):
        passage.receive()


def test_rows_of_a_chunk_that_killed_its_workers_are_tried_alone_and_one_is_condemned() -> None:
    attempts = Attempts(**{"7": 2, "7/1": 2, "7/2": 1})
    worker = ChunkWorker(attempts, pack([CountingEvaluator()]), {}, 2)
    chunk = written_chunk(7, map(write_row, jobs("a", "b", "c")))
    [text] = worker({"chunk": [chunk]})["chunk"]
    answer = read_answer(text)
    assert answer is not None
    assert answer.fault is None
    found = [(scores[0].status, scores[0].reason) for scores, _ in answer.rows.values()]
    died = "the process of the worker died 2 times while it evaluated this row alone"
    assert found == [("scored", None), ("failed", died), ("scored", None)]


def test_a_worker_that_cannot_make_an_evaluator_says_so_with_its_first_chunk() -> None:
    [parcel] = pack([CountingEvaluator()])
    other = parcel._replace(fingerprint={**parcel.fingerprint, "version": "0.0.1"})
    worker = ChunkWorker(Attempts(), [other], {}, 2)
    [text] = worker({"chunk": [written_chunk(0, map(write_row, jobs("a")))]})["chunk"]
    answer = read_answer(text)
    assert answer is not None
    assert "same version" in str(answer.fault)
    assert not answer.rows


def test_keys_stay_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    model = ChatOpenAI(model="some-model", api_key=SecretStr(KEY))
    [parcel] = pack([FaithfulnessEvaluator(model=model)])
    assert parcel.whole is None
    assert KEY not in json.dumps(parcel.plain)
    assert parcel.unpack().fingerprint() == parcel.fingerprint
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(ConfigurationError, match="keys in the environment"):
        parcel.unpack()


def test_a_module_that_a_worker_lacks_is_named() -> None:
    plain = {"lc": 1, "type": "constructor", "id": ["not_there", "Mine"], "kwargs": {}}
    with pytest.raises(ConfigurationError, match=r"ModuleNotFoundError.*not_there"):
        Parcel(plain, None, {}).unpack()


def test_an_evaluator_with_a_key_that_only_pickling_would_carry_is_refused() -> None:
    pytest.importorskip("ray", reason="Ray pickles what LangChain cannot write")

    class Local(KeyEvaluator):
        pass

    with pytest.raises(ConfigurationError, match="it holds a key") as raised:
        pack([Local(token=SecretStr(KEY))])
    assert KEY not in str(raised.value)


async def test_the_feed_gives_chunks_in_order_and_forgets_what_is_answered() -> None:
    feed = Feed()
    await feed.put(0, "first")
    await feed.put(1, "second")
    assert await feed.begin("0") == 1
    assert await feed.begin("0") == 2
    await feed.survive("0")
    assert await feed.begin("0") == 1
    await feed.forget(0)
    assert await feed.begin("0") == 1
    await feed.end()
    assert [await feed.chunk(n) for n in range(3)] == ["", "second", None]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"engine": "spark"}, "'local' or 'ray'"),
        ({"workers": 2}, "engine='ray'"),
        ({"address": "auto"}, "engine='ray'"),
        ({"engine": "ray", "workers": 0}, "workers"),
        ({"engine": "ray", "config": {"callbacks": [object()]}}, "callbacks"),
    ],
)
def test_options_that_cannot_work_are_refused(options: Any, said: str) -> None:
    if options.get("engine") == "ray":
        pytest.importorskip("ray", reason="its extra is asked for first")
    with pytest.raises(ConfigurationError, match=said):
        evaluate([{"answer": "a"}], CountingEvaluator(), **options)


def test_the_rows_on_their_way_grow_with_the_workers_only() -> None:
    pytest.importorskip("ray", reason="its extra is asked for first")
    one, four = RayEngine(workers=1), RayEngine(workers=4, max_concurrency=64)
    assert four.rows_on_their_way == 4 * one.rows_on_their_way
