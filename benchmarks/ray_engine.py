"""Evaluation on Ray: rows per second by workers, memory over a large data set, equal run files.

    python benchmarks/ray_engine.py                      # rows per second, 1 and 2 workers
    python benchmarks/ray_engine.py --memory 1000000     # memory of all processes, cheap rows
    python benchmarks/ray_engine.py --equal A.jsonl B.jsonl   # are two run files the same?

Rows are made up here. `--workers 1 4 16` compares others; `--workers 1 2 1 2` where other programs
run. The first figures say what one worker gives with the embedded verifier, and with a judge that
takes 200 ms; the last ones what the process that reads and writes can take at most: how many
workers are worth having is one by the other. Processor time a row does not depend on what else
runs: where two workers cost no more of it than one, twice the processors give twice the rows.
With 16 rows at a time one worker with the embedded verifier takes more than one processor (its
encoder has a thread, the rest of the rows another), so on two processors a second worker finds
little left. `--embedded-only --at-once 1 --workers 1 2 1 2` keeps each worker to one.
"""

import argparse
import json
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import Field
from typing_extensions import override

from langchain_groundedness.evals import (
    EvaluatedRow,
    EvaluationRow,
    Evaluator,
    FaithfulnessEvaluator,
    Flow,
    RowScore,
    load_run,
)
from langchain_groundedness.evals.evaluation import Evaluation
from langchain_groundedness.evals.ray_engine import RayEngine

TOWNS = ("Rome", "Oslo", "Lima", "Bonn", "Kyiv", "Cork", "Pisa", "Graz")
DOCUMENT = (
    "{town} lies on a river. {town} has {number} inhabitants, most of whom work in trade. The old "
    "bridge was built in {year} and is {length} metres long. Trams run every {minutes} minutes."
)
ANSWER = "{town} has {number} inhabitants. The old bridge of {town} was built in {other}."
MEGABYTE = 1 << 20
NOTED_SECONDS = 0.2


class CheapEvaluator(Evaluator):
    """Costs next to nothing, so that what is measured is the way there and back."""

    key: str = Field(default="cheap", min_length=1)

    @override
    def _score(self, row: EvaluationRow) -> Flow[RowScore]:
        yield from ()
        return self._scored(len(row.answer or "") % 2)


class WaitingEvaluator(CheapEvaluator):
    """Waits as long as a hosted model takes to judge."""

    key: str = Field(default="waiting 200 ms", min_length=1)

    @override
    def _score(self, row: EvaluationRow) -> Flow[RowScore]:
        time.sleep(0.2)
        return (yield from super()._score(row))


def write_rows(file: Path, count: int) -> None:
    """Make rows up."""
    with file.open("w", encoding="utf-8") as lines:
        for n in range(count):
            facts = {
                "town": TOWNS[n % len(TOWNS)],
                "number": 1000 + n,
                "year": 1500 + n % 400,
                "other": 1500 + n % 400 + n % 2,
                "length": 40 + n % 90,
                "minutes": 5 + n % 20,
            }
            answer, document = ANSWER.format_map(facts), DOCUMENT.format_map(facts)
            row = {"id": f"r{n}", "question": "What is it like?", "answer": answer}
            lines.write(json.dumps({**row, "contexts": [document]}) + "\n")


class Speed(NamedTuple):
    """What was measured between the first tenth of the rows and the last one."""

    rows: int
    seconds: float
    spent: dict[str, float]
    """Seconds of processor time, by kind of process."""

    def shown(self) -> str:
        """Write it."""
        spent = ", ".join(f"{k} {1000 * v / self.rows:.1f}" for k, v in self.spent.items())
        return f"{self.rows / self.seconds:.0f} rows/s; ms of processor a row: {spent}"


def evaluate_rows(
    file: Path, evaluator: Evaluator, workers: int, at_once: int
) -> tuple[Evaluation, Speed]:
    """Evaluate on Ray, writing a run file."""
    engine = RayEngine(workers=workers, max_concurrency=at_once)
    journal = file.with_suffix(f".{workers}.run")
    evaluation = Evaluation(str(file), evaluator, journal=journal, fresh=True, keep_rows=False)
    advance, times = evaluation.advance, list[tuple[float, int, dict[str, float]]]()

    def noting(outcomes: Any, count: int) -> Any:
        jobs = advance(outcomes, count)
        if not times or time.perf_counter() - times[-1][0] > NOTED_SECONDS or not jobs:
            times.append((time.perf_counter(), evaluation.new_rows, processor_now()))
        return jobs

    evaluation.advance = noting  # type: ignore[method-assign]
    with evaluation:
        engine.run(evaluation)
    # The first rows come while workers still start: a tenth of all does not count.
    counted = [each for each in times if each[1] >= evaluation.new_rows / 10]
    (begun, first, before), (ended, last, after) = counted[0], counted[-1]
    spent = {kind: seconds - before.get(kind, 0.0) for kind, seconds in after.items()}
    return evaluation, Speed(last - first, ended - begun, spent)


def equal(one: Path, other: Path) -> bool:
    """Say how many rows of two run files are the same, whatever time they took."""
    runs = [{row.row.id: row for row in load_run(file).rows} for file in (one, other)]
    both = runs[0].keys() & runs[1].keys()
    print(f"{len(runs[0])} and {len(runs[1])} rows, {len(both)} of them in both")
    same: Counter[str] = Counter()
    for name in both:
        pair = [runs[0][name], runs[1][name]]
        for what, told in COMPARED.items():
            same[what] += told(pair[0]) == told(pair[1])
    for what in COMPARED:
        print(f"  the same {what}: {same[what]}")
    return len(runs[0]) == len(runs[1]) == len(both) == min(same[what] for what in COMPARED)


COMPARED: dict[str, Callable[[EvaluatedRow], Any]] = {
    "question, answer, documents": lambda row: row.row,
    "scores and statuses": lambda row: [(s.key, s.score, s.status, s.reason) for s in row.scores],
    "claims, verdicts and quotes": lambda row: [
        [(v.claim, v.verdict, v.citations) for v in s.result.claims] if s.result else None
        for s in row.scores
    ],
    "probabilities and all else": lambda row: row.scores,
}


@contextmanager
def watched(peaks: dict[str, int]) -> Iterator[None]:
    """Note the most memory, in bytes, that processes of each kind had at once."""
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.5):
            for kind, size in memory_now().items():
                peaks[kind] = max(peaks.get(kind, 0), size)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


def processor_now() -> dict[str, float]:
    """Seconds of processor time that processes of each kind have used."""
    import psutil  # noqa: PLC0415  (needed for this only)

    found = {"workers": 0.0, "this process": time.process_time(), "Ray's others": 0.0}
    for process in psutil.Process().children(recursive=True):
        try:
            used, line = process.cpu_times(), " ".join(process.cmdline())
        except psutil.Error:  # it has ended meanwhile
            continue
        kind = "workers" if "RowWorker" in line else "Ray's others"
        found[kind] += used.user + used.system
    return found


def memory_now() -> dict[str, int]:
    """Resident memory of this process, of each worker and all else, and the object store's."""
    import psutil  # noqa: PLC0415  (needed for this only)

    found: dict[str, int] = {}
    me = psutil.Process()
    for process in (me, *me.children(recursive=True)):
        try:
            memory, line = process.memory_info(), " ".join(process.cmdline())
        except psutil.Error:  # it has ended meanwhile
            continue
        private = memory.rss - memory.shared
        if process == me:
            found["this process"] = private
        elif "RowWorker" in line:
            found["largest worker"] = max(found.get("largest worker", 0), private)
        elif "raylet" in Path(line.split()[0] if line else "").name:
            found["raylet"] = private
            found["object store"] = memory.shared
        else:
            found["Ray's other processes together"] = (
                found.get("Ray's other processes together", 0) + private
            )
    return found


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=2000, help="for rows per second")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--at-once", type=int, default=16, help="rows at a time in each worker")
    parser.add_argument("--memory", type=int, metavar="ROWS", help="measure memory instead")
    parser.add_argument("--equal", type=Path, nargs=2, metavar="RUN", help="compare run files")
    parser.add_argument("--embedded-only", action="store_true", help="leave other judges out")
    options = parser.parse_args()
    if options.equal:
        sys.exit(not equal(*options.equal))
    judges = (FaithfulnessEvaluator(), WaitingEvaluator(), CheapEvaluator())
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "rows.jsonl")
        write_rows(file, options.memory or options.rows)
        if options.memory:
            peaks: dict[str, int] = {}
            begun = time.perf_counter()
            with watched(peaks):
                evaluation, speed = evaluate_rows(
                    file, CheapEvaluator(), max(options.workers), options.at_once
                )
            print(f"{evaluation.new_rows} rows in {time.perf_counter() - begun:.0f} s, cheap ones")
            print(f"{file.stat().st_size / MEGABYTE:.0f} MB; {speed.shown()}")
            for kind, size in sorted(peaks.items()):
                print(f"  {kind}: {size / MEGABYTE:.0f} MB at most")
            return
        for evaluator in judges[:1] if options.embedded_only else judges:
            for workers in options.workers:
                _, speed = evaluate_rows(file, evaluator, workers, options.at_once)
                print(f"{evaluator.key}: {workers} workers, {speed.shown()}", flush=True)


if __name__ == "__main__":
    main()
