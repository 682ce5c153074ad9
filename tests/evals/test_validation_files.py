"""A data set through validation: what is written, what a second run does, what stops it."""

import asyncio
import json
import signal
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda

from langchain_groundedness import Claim, ConfigurationError
from langchain_groundedness.evals import EvaluationRow, RowScore, open_dataset
from langchain_groundedness.evals.validation import (
    AnswerValidator,
    ValidatedRow,
    ValidationSummary,
    avalidate,
    validate,
)
from langchain_groundedness.testing import ScriptedClaimExtractor, ScriptedVerifier
from langchain_groundedness.types import ExtractionTask


class Judge:
    """A validator that needs no model, and counts which answers it was asked about."""

    def __init__(self, **options: Any) -> None:
        self.asked: Counter[str] = Counter()
        self.validator = AnswerValidator(
            extractor=ScriptedClaimExtractor(self._claims),
            verifier=ScriptedVerifier(self._say),
            accept=1.0,
            reject=0.0,
            **options,
        )

    def _claims(self, task: ExtractionTask) -> list[str]:
        self.asked[task.answer] += 1
        return [task.answer]

    @staticmethod
    def _say(claim: Claim) -> Any:
        words = ("contradicted", "unverifiable", "unchecked")
        return next((word for word in words if word in claim.text), "supported")


def rows(*answers: str) -> list[dict[str, Any]]:
    return [
        {"id": f"r{n}", "question": "Q?", "answer": answer, "contexts": ["Evidence."], "by": "me"}
        for n, answer in enumerate(answers, 1)
    ]


FOUR = rows("one", "two contradicted", "three unverifiable", "four unchecked")


def run(folder: Path, data: Any, judge: Judge | None = None, **options: Any) -> ValidationSummary:
    return validate(
        data,
        passed=folder / "passed.jsonl",
        rejected=folder / "rejected.jsonl",
        validator=(judge or Judge()).validator,
        **options,
    )


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def ids(path: Path) -> list[str]:
    return sorted(line["id"] for line in lines(path))


def both(folder: Path) -> tuple[list[str], list[str]]:
    return ids(folder / "passed.jsonl"), ids(folder / "rejected.jsonl")


# What is written


def test_rows_go_as_they_came_into_the_file_where_they_belong(tmp_path: Path) -> None:
    summary = run(tmp_path, FOUR)
    (good,) = lines(tmp_path / "passed.jsonl")
    found = good.pop("validation")
    assert good == FOUR[0]
    assert (found["outcome"], found["composite"], found["reasons"]) == ("passed", 1.0, [])
    assert found["claims"][0]["verdict"]["verdict"] == "supported"
    rejected = {line["id"]: line["validation"] for line in lines(tmp_path / "rejected.jsonl")}
    assert {name: each["outcome"] for name, each in rejected.items()} == {
        "r2": "rejected",
        "r3": "rejected",
        "r4": "unchecked",
    }
    assert rejected["r4"]["reasons"][0]["code"] == "claims_unchecked"
    assert (summary.total, summary.passed, summary.rejected, summary.unchecked) == (4, 1, 2, 1)
    assert summary.pass_rate == 0.25
    assert summary.reasons == {"contradicted": 1, "source": 1, "claims_unchecked": 1}
    assert summary.scores["composite"].mean == 1.0
    assert summary.scores["source"].n == 3
    assert "source score alone" in summary.notes[0]
    assert summary.complete


def test_the_summary_file_says_the_same_as_the_summary(tmp_path: Path) -> None:
    summary = run(tmp_path, FOUR)
    told = json.loads((tmp_path / "passed.summary.json").read_text("utf-8"))
    assert ValidationSummary.model_validate(told["summary"]) == summary
    assert told["options"]["pass_score"] == 0.7


def test_columns_with_other_names_and_rows_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    good = {"key": "a", "reply": "one", "sources": ["Evidence."]}
    path.write_text(f"{json.dumps(good)}\nnonsense\n{json.dumps(good)}\n", "utf-8")
    data = open_dataset(path, columns={"id": "key", "answer": "reply", "documents": "sources"})
    summary = run(tmp_path, data)
    assert lines(tmp_path / "passed.jsonl")[0]["reply"] == "one"
    assert [bad.line for bad in summary.bad_rows] == [2, 3]
    assert "the same id" in summary.bad_rows[1].reason
    assert summary.total == 1


def test_rows_in_memory_may_hold_documents_and_be_evaluation_rows(tmp_path: Path) -> None:
    document = Document("Evidence.", metadata={"source": "a.md"})
    run(tmp_path, [{"id": "a", "answer": "one", "contexts": [document]}])
    (line,) = lines(tmp_path / "passed.jsonl")
    assert line["contexts"][0]["page_content"] == "Evidence."
    (tmp_path / "more").mkdir()
    run(tmp_path / "more", [EvaluationRow(id="b", answer="one", documents=(document,))])
    assert ids(tmp_path / "more" / "passed.jsonl") == ["b"]


def test_what_a_data_set_must_have_is_said_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="documents"):
        run(tmp_path, [{"id": "a", "answer": "one"}])
    assert list(tmp_path.iterdir()) == []


def test_text_of_any_kind_comes_through(tmp_path: Path) -> None:
    text = "åäö \u2028 \x1b[31m \u202e 🙂"
    run(tmp_path, [{"id": "a", "answer": "one", "contexts": [text], "note": float("nan")}])
    data = (tmp_path / "passed.jsonl").read_bytes()
    assert data.isascii()
    assert json.loads(data)["contexts"] == [text]


def test_labels_are_compared_with_what_passed(tmp_path: Path) -> None:
    data = [
        {**row, "label": label} for row, label in zip(FOUR, (True, False, True, True), strict=True)
    ]
    agreement = run(tmp_path, data).agreement
    assert agreement is not None
    assert (agreement.true_positives, agreement.true_negatives) == (1, 1)
    assert agreement.false_negatives == 1
    assert agreement.not_scored == ("r4",)


# Going on


def test_the_same_run_again_validates_nothing_and_tells_the_same(tmp_path: Path) -> None:
    first, judge = run(tmp_path, FOUR), Judge()
    again = run(tmp_path, FOUR, judge)
    assert judge.asked == {}
    assert again.resumed == 4
    told = {"resumed", "seconds"}
    assert again.model_dump(exclude=told) == first.model_dump(exclude=told)


def test_rows_that_are_new_are_validated_and_those_that_are_gone_are_told(tmp_path: Path) -> None:
    run(tmp_path, FOUR)
    judge = Judge()
    summary = run(tmp_path, [*FOUR[1:], {**FOUR[0], "id": "r5", "answer": "five"}], judge)
    assert judge.asked == {"five": 1}
    assert (summary.total, summary.resumed, summary.elsewhere) == (5, 3, 1)


def test_other_options_are_refused_and_named(tmp_path: Path) -> None:
    run(tmp_path, FOUR)
    with pytest.raises(ConfigurationError, match=r"other options \(pass_score\).*--fresh"):
        run(tmp_path, FOUR, Judge(pass_score=0.9))


def test_fresh_begins_anew(tmp_path: Path) -> None:
    run(tmp_path, FOUR)
    judge = Judge(pass_score=0.9)
    summary = run(tmp_path, FOUR, judge, fresh=True)
    assert judge.asked.total() == 4
    assert (summary.total, summary.resumed) == (4, 0)
    assert both(tmp_path) == (["r1"], ["r2", "r3", "r4"])


@pytest.mark.parametrize("part", ["answer", "reference"])
def test_a_row_that_has_changed_is_refused_and_named(tmp_path: Path, part: str) -> None:
    run(tmp_path, FOUR)
    with pytest.raises(ConfigurationError, match=r"changed since validation: 1 row \(r2\)"):
        run(tmp_path, [FOUR[0], {**FOUR[1], part: "another"}])


def test_rows_that_could_not_be_checked_are_tried_again_if_asked_for(tmp_path: Path) -> None:
    run(tmp_path, FOUR)
    judge = Judge()
    assert run(tmp_path, FOUR, judge, retry_unchecked=True).unchecked == 1
    assert judge.asked == {"four unchecked": 1}
    assert both(tmp_path) == (["r1"], ["r2", "r3", "r4"])


def test_files_that_validation_did_not_write_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "rejected.jsonl").write_text('{"id": "mine"}\n', "utf-8")
    with pytest.raises(ConfigurationError, match="does not say with which options"):
        run(tmp_path, FOUR)
    assert (tmp_path / "rejected.jsonl").read_text("utf-8") == '{"id": "mine"}\n'


def test_a_line_that_somebody_has_put_in_is_named(tmp_path: Path) -> None:
    run(tmp_path, FOUR)
    with (tmp_path / "passed.jsonl").open("a") as file:
        file.write('{"id": "mine"}\n')
    with pytest.raises(ConfigurationError, match=r"passed\.jsonl, line 2: not a validated row"):
        run(tmp_path, FOUR)


def test_one_file_under_two_names_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text(json.dumps(FOUR[0]) + "\n", "utf-8")
    for passed, rejected in (("in.jsonl", "r.jsonl"), ("r.jsonl", "in.jsonl"), ("r", "./r")):
        with pytest.raises(ConfigurationError, match="different files"):
            validate(path, passed=tmp_path / passed, rejected=tmp_path / rejected, fresh=True)
    assert lines(path) == FOUR[:1]


def test_two_runs_at_a_time_do_not_write_into_the_same_files(tmp_path: Path) -> None:
    def second(_: ValidatedRow) -> None:
        with pytest.raises(ConfigurationError, match="another process is writing"):
            run(tmp_path, FOUR)

    run(tmp_path, FOUR[:1], on_row=second)


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"gone/passed\.jsonl: No such file"):
        run(tmp_path / "gone", FOUR)
    with pytest.raises(ConfigurationError, match="max_concurrency"):
        run(tmp_path, FOUR, max_concurrency=0)


# Being stopped


@pytest.mark.parametrize("cut", [1, 7, 200])
def test_a_line_that_was_cut_off_is_validated_again(tmp_path: Path, cut: int) -> None:
    run(tmp_path, rows("one", "two", "three"), max_concurrency=1)
    path = tmp_path / "passed.jsonl"
    path.write_bytes(path.read_bytes()[:-cut])
    judge = Judge()
    summary = run(tmp_path, rows("one", "two", "three"), judge)
    assert judge.asked == ({} if cut == 1 else {"three": 1})  # only its newline is missing
    assert summary.passed == 3
    assert ids(path) == ["r1", "r2", "r3"]


def many(number: int) -> list[dict[str, Any]]:
    return rows(*(f"answer {n}" for n in range(number)))


def test_ctrl_c_finishes_what_is_under_way_and_the_next_run_goes_on(tmp_path: Path) -> None:
    judge, seen = Judge(), []

    def interrupt(row: ValidatedRow) -> None:
        seen.append(row.id)
        if len(seen) == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, many(40), judge, on_row=interrupt, max_concurrency=4)
    told = json.loads((tmp_path / "passed.summary.json").read_text("utf-8"))["summary"]
    assert not told["complete"]
    done = ids(tmp_path / "passed.jsonl")
    assert 5 <= len(done) < 40
    assert told["passed"] == len(done) == judge.asked.total()
    assert run(tmp_path, many(40), judge).complete
    assert judge.asked == {f"answer {n}": 1 for n in range(40)}


def test_what_ends_a_run_leaves_the_rows_that_were_finished(tmp_path: Path) -> None:
    def broken(row: EvaluationRow) -> RowScore:
        if row.id == "r9":
            msg = "install it"
            raise ConfigurationError(msg)
        scores = dict.fromkeys(("relevance", "correctness", "completeness"), 1.0)
        return RowScore(key="q", score=1.0, status="scored", details=scores)

    judge = Judge(quality=RunnableLambda(broken))
    with pytest.raises(ConfigurationError, match="install it"):
        run(tmp_path, many(20), judge, max_concurrency=2)
    assert len(ids(tmp_path / "passed.jsonl")) >= 8


async def test_validating_off_the_event_loop_finds_the_same(tmp_path: Path) -> None:
    summary = await avalidate(
        FOUR,
        passed=tmp_path / "passed.jsonl",
        rejected=tmp_path / "rejected.jsonl",
        validator=Judge().validator,
    )
    assert (summary.passed, summary.rejected, summary.unchecked) == (1, 2, 1)


async def test_a_run_that_is_cancelled_ends_with_whole_rows(tmp_path: Path) -> None:
    started, go_on = threading.Event(), threading.Event()

    def wait(_: ValidatedRow) -> None:
        started.set()
        go_on.wait(300)

    task = asyncio.ensure_future(
        avalidate(
            many(50),
            passed=tmp_path / "passed.jsonl",
            rejected=tmp_path / "rejected.jsonl",
            validator=Judge().validator,
            max_concurrency=2,
            on_row=wait,
        )
    )
    await asyncio.to_thread(started.wait, 300)
    task.cancel()
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    done = await asyncio.to_thread(ids, tmp_path / "passed.jsonl")
    assert 1 <= len(done) < 50


KILLED = """
import sys, time
sys.path.insert(0, {tests!r})
from pathlib import Path
from test_validation_files import Judge, many, run
def slow(row):
    print(row.id, flush=True)
    time.sleep(0.002)
run(Path({folder!r}), many(60), on_row=slow, max_concurrency=4)
"""


def test_a_run_that_is_killed_at_any_moment_loses_no_row_and_pays_for_none_twice(
    tmp_path: Path,
) -> None:
    code = KILLED.format(tests=str(Path(__file__).parent), folder=str(tmp_path))
    told: list[str] = []
    for rows_before_the_kill in (1, 7, 19, 40):
        with subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=Path.cwd()
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                told.append(line.strip())
                if len(told) >= rows_before_the_kill:
                    process.send_signal(signal.SIGKILL)
                    break
            told += process.stdout.read().split()
    done = lines_that_are_whole(tmp_path / "passed.jsonl")
    assert set(told) <= done
    assert len(told) == len(set(told))  # what stood in the file was not validated again
    judge = Judge()
    summary = run(tmp_path, many(60), judge)
    assert (summary.passed, summary.complete) == (60, True)
    assert Counter(ids(tmp_path / "passed.jsonl")) == {f"r{n}": 1 for n in range(1, 61)}
    assert judge.asked.total() == 60 - len(done)


def lines_that_are_whole(path: Path) -> set[str]:
    whole = path.read_bytes().rpartition(b"\n")[0]
    return {json.loads(line)["id"] for line in whole.splitlines()}
