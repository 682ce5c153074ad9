"""Evaluation on Ray: rows per second by workers, and memory over a large data set.

    python benchmarks/ray_engine.py                      # rows per second, 1 and 2 workers
    python benchmarks/ray_engine.py --memory 1000000     # memory of all processes, cheap rows

Rows are made up here. `--workers 1 4 16` compares others; `--workers 1 2 1 2` where other programs
run. The first figures say what one worker gives with the embedded verifier, and with a judge that
takes 200 ms; the last ones what the process that reads and writes can take at most: how many
workers are worth having is one by the other.
"""

import argparse
import json
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import Field
from typing_extensions import override

from langchain_groundedness.evals import EvaluationRow, Evaluator, FaithfulnessEvaluator, RowScore
from langchain_groundedness.evals._evaluation import Evaluation
from langchain_groundedness.evals.ray_engine import RayEngine
from langchain_groundedness.evals.runner import prepare
from langchain_groundedness.structured import Flow

TOWNS = ("Rome", "Oslo", "Lima", "Bonn", "Kyiv", "Cork", "Pisa", "Graz")
DOCUMENT = (
    "{town} lies on a river. {town} has {number} inhabitants, most of whom work in trade. The old "
    "bridge was built in {year} and is {length} metres long. Trams run every {minutes} minutes."
)
ANSWER = "{town} has {number} inhabitants. The old bridge of {town} was built in {other}."
MEGABYTE = 1 << 20


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


def evaluate_rows(file: Path, evaluator: Evaluator, workers: int) -> tuple[Evaluation, float]:
    """Evaluate on Ray, writing a run file.

    Returns:
        The evaluation, and rows per second from the first chunk that came back to the last.
    """
    engine = RayEngine(workers=workers)
    evaluation = prepare(
        str(file),
        evaluator,
        columns=None,
        journal=file.with_suffix(f".{workers}.run"),
        fresh=True,
        retry_failed=False,
        fsync=False,
        max_concurrency=engine.rows_on_their_way,
        cache=None,
        progress=False,
        price=None,
        name=None,
        config=None,
        keep_rows=False,
    )
    record, times = evaluation.record, list[tuple[float, int]]()

    def noting(done: list) -> None:  # type: ignore[type-arg]
        record(done)
        times.append((time.perf_counter(), len(done)))

    evaluation.record = noting  # type: ignore[method-assign,assignment]
    engine.drive_to_the_end(evaluation)
    # Chunks that come first were begun when the workers were: those count from the second on.
    first = max(1, min(2 * workers, len(times) - 1))
    rows = sum(count for _, count in times[first:])
    return evaluation, rows / (times[-1][0] - times[first - 1][0])


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
        elif "MapWorker" in line:
            found["largest worker"] = max(found.get("largest worker", 0), private)
        elif "Feed" in line or "ReadChunks" in line:
            name = "feed" if "Feed" in line else "reader"
            found[name] = private
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
    parser.add_argument("--memory", type=int, metavar="ROWS", help="measure memory instead")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "rows.jsonl")
        write_rows(file, options.memory or options.rows)
        if options.memory:
            peaks: dict[str, int] = {}
            begun = time.perf_counter()
            with watched(peaks):
                evaluation, rate = evaluate_rows(file, CheapEvaluator(), max(options.workers))
            print(f"{evaluation.new_rows} rows in {time.perf_counter() - begun:.0f} s, cheap ones")
            print(f"{rate:.0f} rows/s there and back, {file.stat().st_size / MEGABYTE:.0f} MB")
            for kind, size in sorted(peaks.items()):
                print(f"  {kind}: {size / MEGABYTE:.0f} MB at most")
            return
        for evaluator in (FaithfulnessEvaluator(), WaitingEvaluator(), CheapEvaluator()):
            for workers in options.workers:
                _, rate = evaluate_rows(file, evaluator, workers)
                print(f"{evaluator.key}: {workers} workers, {rate:.0f} rows/s", flush=True)


if __name__ == "__main__":
    main()
