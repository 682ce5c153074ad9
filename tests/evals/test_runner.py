"""Evaluating a data set: every row once, in order, resumable, and never paid for twice."""

import asyncio
import json
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from counting import CountingEvaluator
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage

from langchain_groundedness import ConfigurationError, InputFormatError
from langchain_groundedness.evals import (
    BleuEvaluator,
    EvaluationInterrupted,
    EvaluationRow,
    EvaluationRun,
    Evaluator,
    Flow,
    ModelCall,
    ResultCache,
    RowScore,
    aevaluate,
    evaluate,
    load_run,
    open_dataset,
    summarize,
    to_pandas,
)
from langchain_groundedness.exceptions import EvaluationError
from langchain_groundedness.testing import ScriptedChatModel

ROWS = [{"id": f"r{n}", "answer": "banana"[: n % 6 + 1]} for n in range(40)]


def blocking(*arguments: Any, **options: Any) -> EvaluationRun:
    return evaluate(*arguments, **options)


def on_the_loop(*arguments: Any, **options: Any) -> EvaluationRun:
    return asyncio.run(aevaluate(*arguments, **options))


Evaluate = Callable[..., EvaluationRun]
both = pytest.mark.parametrize("run", [blocking, on_the_loop])


class Asking(Evaluator):
    """Scores what a model says."""

    needs = ("answer",)
    key: str = "asking"
    model: BaseChatModel

    def _score(self, row: EvaluationRow) -> Flow[RowScore]:
        reply: AIMessage = yield ModelCall(self.model, row.answer)
        return self._scored(float(str(reply.text)))


def scores_by_id(run: EvaluationRun) -> list[tuple[str, float | None]]:
    return [(row.row.id, row.scores[0].score) for row in run.rows]


@both
def test_rows_come_back_in_the_order_of_the_data_set(run: Evaluate) -> None:
    found = run(ROWS, CountingEvaluator())
    assert [row.row.id for row in found.rows] == [row["id"] for row in ROWS]
    assert [row.line for row in found.rows] == list(range(1, 41))
    assert found.complete
    assert found.header.evaluators["counting"]["strictness"] == 1
    assert found.header.dataset == "a list"


@both
def test_as_many_rows_run_at_once_as_asked_for_and_no_more(run: Evaluate) -> None:
    together, running, most = threading.Barrier(4, timeout=300), [0], [0]

    def reply(_: Any) -> str:
        running[0] += 1
        most[0] = max(most[0], running[0])
        together.wait()
        running[0] -= 1
        return "1"

    found = run(ROWS, Asking(model=ScriptedChatModel(replies=reply)), max_concurrency=4)
    assert [row.scores[0].status for row in found.rows] == ["scored"] * 40
    assert most == [4]


@both
def test_the_next_row_does_not_wait_for_the_slowest(run: Evaluate) -> None:
    free = threading.Event()

    def reply(messages: list[Any]) -> str:
        if messages[0].text == "slow":
            assert free.wait(300)
        elif messages[0].text == "last":
            free.set()
        return "1"

    rows = [{"answer": "slow"}, *({"answer": "quick"} for _ in range(20)), {"answer": "last"}]
    found = run(rows, Asking(model=ScriptedChatModel(replies=reply)), max_concurrency=2)
    assert [row.scores[0].status for row in found.rows] == ["scored"] * 22


@both
def test_rows_that_cannot_be_read_and_rows_that_fail_are_told_apart(run: Evaluate) -> None:
    found = run([{"answer": "a"}, {"answer": []}, {"answer": "fail"}, {}], CountingEvaluator())
    assert [row.scores[0].status for row in found.rows] == ["scored", "failed", "skipped"]
    assert [(bad.line, bad.reason) for bad in found.bad_rows] == [
        (2, "answer: expected a text, got list")
    ]


@both
def test_usage_is_added_up(run: Evaluate) -> None:
    usage = {"input_tokens": 10, "output_tokens": 2, "total_tokens": 12}
    model = ScriptedChatModel(replies=lambda _: AIMessage("1", usage_metadata=usage))
    found = run(ROWS[:5], Asking(model=model))
    assert (found.usage.model_calls, found.usage.input_tokens, found.usage.output_tokens) == (
        5,
        50,
        10,
    )


@both
def test_a_run_that_is_there_already_costs_nothing(run: Evaluate, tmp_path: Path) -> None:
    journal = tmp_path / "run.jsonl"
    first = run(ROWS, CountingEvaluator(), journal=journal)
    again = CountingEvaluator()
    second = run(ROWS, again, journal=journal)
    assert again.asked == []
    assert second.rows == first.rows
    assert load_run(journal).rows == first.rows
    assert load_run(journal).complete


def cut(path: Path, *, lines: int, torn: int = 0) -> None:
    """Leave of a run file what a killed process would have left."""
    kept = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(kept[:lines]) + kept[lines][:torn])


@both
@pytest.mark.parametrize(("lines", "torn"), [(1, 0), (17, 0), (17, 1), (17, 60), (40, -1), (0, 14)])
def test_a_run_goes_on_where_it_ended(run: Evaluate, tmp_path: Path, lines: int, torn: int) -> None:
    journal = tmp_path / "run.jsonl"
    whole = run(ROWS, CountingEvaluator(), journal=journal)
    cut(journal, lines=lines, torn=torn)
    there = {row.row.id for row in load_run(journal).rows} if lines else set()
    evaluator = CountingEvaluator()
    resumed = run(ROWS, evaluator, journal=journal, fsync=True)
    assert scores_by_id(resumed) == scores_by_id(whole)
    assert set(evaluator.asked) == {row["id"] for row in ROWS} - there
    assert len(evaluator.asked) == len(set(evaluator.asked))
    assert scores_by_id(load_run(journal)) == scores_by_id(whole)


@both
def test_rows_that_failed_are_tried_again_only_if_asked(run: Evaluate, tmp_path: Path) -> None:
    journal, rows = tmp_path / "run.jsonl", [{"answer": "a"}, {"answer": "b"}]
    other = CountingEvaluator(key="other")

    def options(reply: Any) -> tuple[Any, ...]:
        return rows, [Asking(model=ScriptedChatModel(replies=reply)), other]

    run(*options(lambda m: ["0.5", TimeoutError()][m[0].text == "b"]), journal=journal)
    kept = run(*options(lambda _: "1"), journal=journal)
    assert scores_by_id(kept) == [("1", 0.5), ("2", None)]
    assert kept.rows[1].scores[0].reason is not None
    mended = run(*options(lambda _: "1"), journal=journal, retry_failed=True)
    assert scores_by_id(mended) == scores_by_id(load_run(journal)) == [("1", 0.5), ("2", 1.0)]
    assert sorted(other.asked) == ["1", "2"]
    assert mended.usage.model_calls == 3  # one of the first row, two attempts at the second


@pytest.mark.parametrize(
    ("rows", "evaluators", "said"),
    [
        (ROWS[:-1], [CountingEvaluator()], "the rows are not those of a list"),
        (ROWS, [CountingEvaluator(strictness=2)], "counting.strictness was 1, now 2"),
        (ROWS, [CountingEvaluator(key="x")], r'metrics was \["counting"\], now \["x"\]'),
    ],
)
def test_a_journal_of_another_evaluation_is_refused_and_says_what_differs(
    tmp_path: Path, rows: Any, evaluators: list[Evaluator], said: str
) -> None:
    journal = tmp_path / "run.jsonl"
    evaluate(ROWS, CountingEvaluator(), journal=journal)
    before = journal.read_bytes()
    with pytest.raises(ConfigurationError, match=said):
        evaluate(rows, evaluators, journal=journal)
    assert journal.read_bytes() == before
    evaluate(rows, evaluators, journal=journal, fresh=True)
    assert len(load_run(journal).rows) == len(rows)


@pytest.mark.parametrize("fresh", [False, True])
def test_a_file_that_is_no_run_file_is_never_written_to(tmp_path: Path, *, fresh: bool) -> None:
    for text in ("my notes", "my notes\n", '{"answer": 1}\n', "\n\nnotes"):
        journal = tmp_path / "notes.txt"
        journal.write_text(text)
        with pytest.raises(ConfigurationError, match=r"notes\.txt"):
            evaluate(ROWS, CountingEvaluator(), journal=journal, fresh=fresh)
        assert journal.read_text() == text


def test_two_evaluations_cannot_write_into_one_journal(tmp_path: Path) -> None:
    journal, refused = tmp_path / "run.jsonl", []

    def reply(_: Any) -> str:
        with pytest.raises(ConfigurationError, match="another process is writing"):
            evaluate([{"answer": "a"}], CountingEvaluator(), journal=journal)
        refused.append(True)
        return "1"

    evaluate([{"answer": "a"}], Asking(model=ScriptedChatModel(replies=reply)), journal=journal)
    assert refused == [True]


@both
def test_what_is_broken_ends_the_run_and_loses_nothing(run: Evaluate, tmp_path: Path) -> None:
    def reply(messages: list[Any]) -> str:
        if messages[0].text == "b":
            msg = "no such model"
            raise ConfigurationError(msg)
        return "1"

    rows = [{"answer": "a"}, {"answer": "a"}, {"answer": "b"}, {"answer": "a"}]
    model = ScriptedChatModel(replies=reply)
    with pytest.raises(ConfigurationError, match="no such model"):
        run(rows, Asking(model=model), journal=tmp_path / "r.jsonl", max_concurrency=1)
    left = load_run(tmp_path / "r.jsonl")
    assert scores_by_id(left) == [("1", 1.0), ("2", 1.0)]
    assert not left.complete


@both
def test_failures_are_raised_after_the_last_row_if_asked(run: Evaluate) -> None:
    rows = [{"answer": "fail"}, {"answer": "a"}]
    with pytest.raises(EvaluationError, match=r"1 of 2 rows failed \(rows 1\)") as raised:
        run(rows, CountingEvaluator(raise_on_failure=True))
    assert raised.value.row_ids == ("1",)
    assert isinstance(raised.value.result, EvaluationRun)
    assert len(raised.value.result.rows) == 2


@both
def test_an_evaluation_without_rows_or_columns_is_refused_before_a_file_is_made(
    run: Evaluate, tmp_path: Path
) -> None:
    journal = tmp_path / "run.jsonl"
    with pytest.raises(InputFormatError, match="the data set has no rows"):
        run([], CountingEvaluator(), journal=journal)
    with pytest.raises(InputFormatError, match="1 row, none of which can be read; the first"):
        run([{"answer": []}], CountingEvaluator(), journal=journal)
    with pytest.raises(InputFormatError, match="no column holds the answer, which counting needs"):
        run([{"text": "a"}], CountingEvaluator(), journal=journal)
    assert not journal.exists()


@pytest.mark.parametrize(
    ("evaluators", "options", "said"),
    [
        ([], {}, "at least one evaluator"),
        ([CountingEvaluator(), CountingEvaluator()], {}, "each with a different key"),
        ([str], {}, "an Evaluator is needed, got type"),
        (
            [CountingEvaluator()],
            {"max_concurrency": 0},
            "max_concurrency must be a whole number of at least 1",
        ),
    ],
)
def test_options_that_cannot_work_are_refused(
    evaluators: Any, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigurationError, match=said):
        evaluate(ROWS, evaluators, **options)


def test_columns_belong_to_whoever_opens_the_data_set() -> None:
    data = open_dataset([{"mine": "a"}], columns={"answer": "mine"})
    assert scores_by_id(evaluate(data, CountingEvaluator())) == [("1", 1.0)]
    assert scores_by_id(
        evaluate([{"mine": "a"}], CountingEvaluator(), columns={"answer": "mine"})
    ) == [("1", 1.0)]
    with pytest.raises(ConfigurationError, match="columns belong to open_dataset"):
        evaluate(data, CountingEvaluator(), columns={"answer": "mine"})


def test_ctrl_c_gives_what_is_done(tmp_path: Path) -> None:
    pressed = threading.Event()

    def reply(messages: list[Any]) -> str:
        if messages[0].text == "stop" and not pressed.is_set():
            pressed.set()
            signal.raise_signal(signal.SIGINT)
        return "1"

    rows = [{"answer": "a"}, {"answer": "a"}, {"answer": "stop"}, *({"answer": "a"},) * 400]
    evaluator = Asking(model=ScriptedChatModel(replies=reply))
    journal = tmp_path / "run.jsonl"
    with pytest.raises(EvaluationInterrupted) as stopped:
        evaluate(rows, evaluator, journal=journal, max_concurrency=1)
    run = stopped.value.run
    assert 2 <= len(run.rows) < 403
    assert not run.complete
    assert load_run(journal).rows == run.rows
    assert len(evaluate(rows, evaluator, journal=journal).rows) == 403


async def test_cancelling_keeps_what_is_done(tmp_path: Path) -> None:
    begun, journal = asyncio.Event(), tmp_path / "run.jsonl"
    loop = asyncio.get_running_loop()
    gone = threading.Event()

    def reply(messages: list[Any]) -> str:
        if messages[0].text == "wait":
            loop.call_soon_threadsafe(begun.set)
            gone.wait(300)
        return "1"

    rows = [{"answer": "a"}, {"answer": "wait"}, {"answer": "a"}]
    model = ScriptedChatModel(replies=reply)
    going = asyncio.create_task(
        aevaluate(rows, Asking(model=model), journal=journal, max_concurrency=1)
    )
    await begun.wait()
    going.cancel()
    with pytest.raises(asyncio.CancelledError):
        await going
    gone.set()
    left = await asyncio.to_thread(load_run, journal)
    assert scores_by_id(left) == [("1", 1.0)]
    assert not left.complete


@both
def test_scores_are_taken_from_the_cache_whatever_the_ids(run: Evaluate, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    first = run(ROWS, CountingEvaluator(), cache=cache)
    others = [{**row, "id": f"x{n}", "label": True} for n, row in enumerate(ROWS)]
    again = CountingEvaluator()
    second = run(others, again, cache=ResultCache(cache))
    assert again.asked == []
    assert [score for _, score in scores_by_id(second)] == [
        score for _, score in scores_by_id(first)
    ]
    stricter = CountingEvaluator(strictness=2)
    run(ROWS[:2], stricter, cache=cache)
    assert stricter.asked == ["r0", "r1"]


def test_a_run_file_is_the_same_for_both_ways(tmp_path: Path) -> None:
    for run in (blocking, on_the_loop):
        run(ROWS, CountingEvaluator(), journal=tmp_path / f"{run.__name__}.jsonl")
    one, other = (
        sorted(
            json.dumps({k: v for k, v in row.items() if k not in {"seconds", "made", "usage"}})
            for line in (tmp_path / f"{run.__name__}.jsonl").read_text().splitlines()
            if (row := json.loads(line))["type"] == "row" and row.pop("seconds") is not None
        )
        for run in (blocking, on_the_loop)
    )
    assert one == other


def test_a_run_tells_its_means_in_short_and_as_a_table() -> None:
    rows = [
        {"answer": "Rome.", "reference": "Rome.", "topic": "x"},
        {"answer": "Rome.", "reference": None},
    ]
    run = evaluate(rows, BleuEvaluator(), name="mine")
    counts = {"mean": 1.0, "scored": 1, "failed": 0, "skipped": 1, "rows": 2}
    assert summarize(run)["metrics"] == {"bleu": counts}
    assert repr(run).startswith("EvaluationRun(name='mine', metrics=['bleu'], rows=2,")
    table = to_pandas(run)
    assert list(table["bleu_status"]) == ["scored", "skipped"]
    assert table["metadata.topic"][0] == "x"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (([], BleuEvaluator), "call its class"),
        (([], "bleu"), r"got str: .*make_metric\(name\)"),
        ((BleuEvaluator(), [{"answer": "A."}]), "got dict: .*the data set first"),
        (([], 1), "got int"),
    ],
)
def test_what_is_no_evaluator_is_told_what_to_do(arguments: Any, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        evaluate(*arguments)


def test_a_finished_run_that_is_run_again_writes_nothing(tmp_path: Path) -> None:
    for _ in range(2):
        evaluate([{"answer": "A.", "reference": "A."}], BleuEvaluator(), journal=tmp_path / "r")
    assert (tmp_path / "r").read_text().count('"type": "end"') == 1
