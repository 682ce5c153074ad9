"""A run that is killed at any moment (kill -9) goes on, pays nothing twice and loses nothing."""

import json
import multiprocessing
import os
import random
import signal
from collections import Counter
from pathlib import Path
from typing import Any

from counting import CountingEvaluator

from langchain_groundedness.evals import evaluate, load_run

ROWS, AT_ONCE, KILLS = 200, 4, 24


def live_a_while(folder: str, moment: str, count: int) -> None:
    """Evaluate in a process of its own, which is killed from outside at its nth such moment."""
    left = [count]

    def is_last() -> bool:
        left[0] -= 1
        return left[0] == 0

    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    if moment == "asked":
        CountingEvaluator.before_each = lambda: die() if is_last() else None  # its own process
    elif moment:
        write = os.write

        def written(file: int, data: Any) -> int:  # the only writer here is the journal
            if not is_last():
                return write(file, data)
            write(file, data[: len(data) // 2] if moment == "torn" else data)
            die()
            return 0

        os.write = written

    evaluate(
        f"{folder}/rows.jsonl",
        CountingEvaluator(asked_file=f"{folder}/asked.txt"),
        journal=f"{folder}/run.jsonl",
        max_concurrency=AT_ONCE,
    )


def test_a_run_killed_at_random_moments_ends_as_if_it_had_not_been(tmp_path: Path) -> None:
    chosen = random.Random(7)  # noqa: S311  (no secret)
    rows = [{"id": f"r{n}", "answer": "banana" * chosen.randint(1, 50)} for n in range(ROWS)]
    rows[3:3] = [{"id": "bad", "answer": []}]  # type: ignore[dict-item]  # on purpose
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["counting", "langchain_groundedness.evals"])
    ends = []
    for kill in range(KILLS + 1):
        moment = "" if kill == KILLS else ("asked", "torn", "written")[kill % 3]
        arguments = (str(tmp_path), moment, chosen.randint(1, ROWS // KILLS))
        process = processes.Process(target=live_a_while, args=arguments)
        process.start()
        process.join()
        ends.append(process.exitcode)
    assert ends == [-signal.SIGKILL] * KILLS + [0]
    resumed = load_run(tmp_path / "run.jsonl")
    asked = str(tmp_path / "asked.txt")
    whole = evaluate(tmp_path / "rows.jsonl", CountingEvaluator(asked_file=f"{asked}.whole"))
    assert resumed.complete
    assert [(r.row, r.scores) for r in resumed.rows] == [(r.row, r.scores) for r in whole.rows]
    assert resumed.bad_rows == whole.bad_rows
    paid = Counter(Path(asked).read_text().split())
    assert set(paid) == {row.row.id for row in whole.rows}
    # What was judged but not yet written when the process died is all that is judged again.
    assert paid.total() <= ROWS + KILLS * 2 * AT_ONCE
