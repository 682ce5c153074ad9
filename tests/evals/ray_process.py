"""A process with a Ray cluster of its own, which does what it is told on its standard input.

Ray opens sockets, which other tests must not. A line in is a task and the folder it may use, a
line out is what came of it, as JSON.
"""

import contextlib
import io
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from counting import CountingEvaluator
from ray_evaluators import DeadlyEvaluator, StayingEvaluator, UnpicklableEvaluator

from langchain_groundedness import cli
from langchain_groundedness.evals import (
    EvaluationInterrupted,
    EvaluationRun,
    Evaluator,
    FaithfulnessEvaluator,
    evaluate,
    load_run,
)
from langchain_groundedness.evals.evaluation import Evaluation
from langchain_groundedness.evals.ray_engine import RayEngine, cluster
from langchain_groundedness.exceptions import EvaluationError, require

WORKERS = 2
MANY = 20_000


def on_ray(data: Any, evaluators: Evaluator | Sequence[Evaluator], **options: Any) -> EvaluationRun:
    return evaluate(data, evaluators, engine="ray", workers=WORKERS, max_concurrency=4, **options)


def plain(run: EvaluationRun) -> dict[str, Any]:
    left_out: Any = {"seconds": True, "header": {"made"}, "rows": {"__all__": {"seconds"}}}
    return run.model_dump(mode="json", exclude=left_out)


def equal(folder: Path) -> Any:
    """Good rows, bad ones, some that fail, some that are skipped; texts of all kinds."""
    claim = "Rome is the capital of Italy."
    rows: list[dict[str, Any]] = [
        {"id": f"r{n}", "answer": answer, "contexts": [claim], "at": {"n": n, "f": n / 3}}
        for n, answer in enumerate([claim, "It was founded in 1950.", "fail", "ähm 𠮷 \u2028"] * 10)
    ]
    rows[7:7] = [{"id": "r1", "answer": "twice"}, {"id": "no-contexts", "answer": "a"}]
    rows.append({"id": "list", "answer": ["no", "text"]})
    file = folder / "rows.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows) + "{torn\n")
    evaluators = [FaithfulnessEvaluator(), CountingEvaluator()]
    local, ray = evaluate(file, evaluators), on_ray(file, evaluators, journal=folder / "run.jsonl")
    return {
        "local": plain(local),
        "ray": plain(ray),
        "file": plain(load_run(folder / "run.jsonl")),
        "statuses": sorted({score.status for row in ray.rows for score in row.scores}),
    }


def killed(folder: Path) -> Any:
    """A worker is killed (kill -9) from outside while it is in the middle of a chunk."""
    rows = [{"id": f"r{n}", "answer": "a"} for n in range(60)]
    rows[30]["id"] = "stay"

    def kill() -> None:
        told = folder / "process"
        while not told.exists():
            time.sleep(0.05)
        os.kill(int(told.read_text()), signal.SIGKILL)

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    run = on_ray(rows, StayingEvaluator(folder=str(folder)), journal=folder / "run.jsonl")
    killer.join(60)
    return {"ids": [row.row.id for row in run.rows], "written": ids_written(folder / "run.jsonl")}


def ids_written(file: Path) -> list[str]:
    lines = map(json.loads, file.read_text().splitlines())
    return [line["row"]["id"] for line in lines if line["type"] == "row"]


def deadly(_: Path) -> Any:
    rows = [{"id": f"r{n}", "answer": "a"} for n in range(12)]
    rows[5]["id"] = "deadly"
    run = on_ray(rows, DeadlyEvaluator())
    return {row.row.id: [row.scores[0].status, row.scores[0].reason] for row in run.rows}


def resumed(folder: Path) -> Any:
    """Ctrl-C when some rows are done, then the same again."""
    asked = folder / "asked"
    evaluator = CountingEvaluator(asked_file=str(asked))
    rows = [{"id": f"r{n}", "answer": "banana"} for n in range(600)]
    file = folder / "run.jsonl"
    engine = RayEngine(workers=WORKERS, max_concurrency=4)
    evaluation = Evaluation(rows, evaluator, journal=file)
    advance = evaluation.advance

    def interrupting(outcomes: Any, count: int) -> Any:
        jobs = advance(outcomes, count)
        if evaluation.new_rows > 20:
            raise KeyboardInterrupt
        return jobs

    evaluation.advance = interrupting  # type: ignore[method-assign]
    try:
        with evaluation:
            engine.run(evaluation)
    except KeyboardInterrupt:
        before = load_run(file)
    asked.unlink()
    after = on_ray(rows, evaluator, journal=file)
    return {
        "before": [row.row.id for row in before.rows],
        "complete_before": before.complete,
        "asked_after": asked.read_text().split(),
        "after": [row.row.id for row in after.rows],
        "written": ids_written(file),
    }


def interrupted(folder: Path) -> Any:
    asked = folder / "asked"

    def interrupt() -> None:
        while not asked.exists():
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    rows = [{"id": f"r{n}", "answer": "a"} for n in range(200_000)]
    threading.Thread(target=interrupt, daemon=True).start()
    try:
        on_ray(rows, CountingEvaluator(asked_file=str(asked)))
    except EvaluationInterrupted as exc:
        return {"rows": len(exc.run.rows), "complete": exc.run.complete}
    return None


def bounded(folder: Path) -> Any:
    """How many rows are read and not yet written, at most, with workers slower than the reading."""
    file = folder / "rows.jsonl"
    with file.open("w") as lines:
        lines.writelines(f'{{"id": "{n}", "answer": "banana"}}\n' for n in range(MANY))
    engine = RayEngine(workers=WORKERS, max_concurrency=4)
    evaluation = Evaluation(file, CountingEvaluator(), keep_rows=False)
    advance = evaluation.advance
    taken, most = 0, 0

    def counted(outcomes: Any, count: int) -> Any:
        nonlocal taken, most
        jobs = advance(outcomes, count)
        taken += len(jobs)
        most = max(most, taken - evaluation.new_rows)
        return jobs

    evaluation.advance = counted  # type: ignore[method-assign]
    with evaluation:
        engine.run(evaluation)
    return {
        "rows": evaluation.new_rows,
        "most": most,
        "allowed": engine.max_rows_in_flight,
        "kept": len(evaluation.result(complete=False).rows),
    }


def broken(_: Path) -> Any:
    """Scores that Ray cannot bring back."""
    try:
        on_ray([{"id": f"r{n}", "answer": "secret"} for n in range(3)], UnpicklableEvaluator())
    except EvaluationError as exc:
        return {"ids": exc.row_ids, "said": str(exc)}
    return None


def commanded(folder: Path) -> Any:
    """What the command says and leaves."""
    rows = [{"id": f"r{n}", "answer": "Rome.", "contexts": ["Rome."]} for n in range(20)]
    (folder / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    words = f"{folder}/rows.jsonl --metric faithfulness -o {folder}/run.jsonl --json --engine ray"
    out, code = io.StringIO(), None
    with contextlib.redirect_stdout(out):
        try:
            cli.run(["evaluate", *words.split(), "--workers", "2", "--parquet", f"{folder}/p"])
        except SystemExit as exc:
            code = exc.code
    table: Any = require("pyarrow.parquet", extra="data").read_table(folder / "p")
    return {"code": code, "out": out.getvalue(), "ids": table["id"].to_pylist()}


def listening(_: Path) -> Any:
    """Local addresses on which this process and all processes under it listen."""
    inodes = set()
    for pid in family(os.getpid()):
        for link in Path(f"/proc/{pid}/fd").glob("*"):
            if link.is_symlink() and (target := str(link.readlink())).startswith("socket:["):
                inodes.add(target[8:-1])
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path("/proc/net", table).read_text().splitlines()[1:]:
            cells = line.split()
            if cells[3] == "0A" and cells[9] in inodes:
                found.add(cells[1].partition(":")[0])
    return sorted(found)


def family(pid: int) -> Iterator[int]:
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:  # it has ended meanwhile
            continue
    members = [pid]
    for member in members:
        yield member
        members += [child for child, parent in parents.items() if parent == member]


TASKS: dict[str, Callable[[Path], Any]] = {
    task.__name__: task
    for task in (bounded, broken, commanded, deadly, equal, interrupted, killed, listening, resumed)
}


def main() -> None:
    sys.stdout = sys.stderr  # where Ray may say what it likes
    with cluster(WORKERS, None) as ray:
        node = ray._private.worker._global_node  # noqa: SLF001  (Ray tells its folder nowhere else)
        session = node.get_session_dir_path()
        tell({"session": session, "family": list(family(os.getpid()))})
        for line in sys.stdin:
            name, folder = line.split()
            tell(TASKS[name](Path(folder)))


def tell(found: Any) -> None:
    sys.__stdout__.write(f"{json.dumps(found)}\n")  # type: ignore[union-attr]  # there is one
    sys.__stdout__.flush()  # type: ignore[union-attr]


if __name__ == "__main__":
    main()
