"""Measure `FaithfulnessEvaluator` beside its rivals: `python benchmarks/evaluation.py --venvs DIR`.

All of them evaluate the same 20 answers with the stub of `benchmarks/peers` as their judge, which
takes 200 ms a call and answers from gold labels: rows a second, calls a row, and what becomes of
the rows when the judge is sound, cuts every 7th reply in half (`garble`), or answers every 7th
call with HTTP 500 (`http500`). `DIR/NAME/bin/python` is the Python of a rival, as
`benchmarks/peers/run.sh` makes them; one that is not there is skipped. Ends with 1 if ours takes a
second or more for the 20, or if any row is neither right nor explicitly failed.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
RIVALS = (
    ("haystack", "run", "haystack FaithfulnessEvaluator"),
    ("ragas", "evaluate", "ragas evaluate(Faithfulness)"),
    ("ragas", "collections", "ragas collections.Faithfulness"),
    ("deepeval", "evaluate", "deepeval evaluate(FaithfulnessMetric)"),
)
ROWS = 20
GOAL_S = 1.0
CLOSE = 1e-9


class Row(NamedTuple):
    """One line of the table."""

    name: str
    seconds: float | None
    calls: int
    right: int
    failed: int
    lost: int
    note: str = ""

    def shown(self) -> str:
        """Write the line."""
        speed = "-" if self.seconds is None else f"{ROWS / self.seconds:.1f}"
        wall = "-" if self.seconds is None else f"{self.seconds:.2f}"
        cells = (wall, speed, f"{self.calls / ROWS:.2f}", self.right, self.failed, self.lost)
        return f"{self.name:42}" + "".join(f"{cell!s:>12}" for cell in cells) + f"  {self.note}"


def evaluate(mode: str, ways: int, url: str, samples: list[Any]) -> dict[str, Any]:
    """Evaluate the answers with our evaluator; `run` works in threads, `arun` on an event loop."""
    from langchain_openai import ChatOpenAI  # noqa: PLC0415  (only the measured process needs it)

    from langchain_groundedness.evals import FaithfulnessEvaluator  # noqa: PLC0415

    model = ChatOpenAI(model="gpt-4o-mini", base_url=url, api_key="stub", use_responses_api=False)
    evaluator = FaithfulnessEvaluator(model=model, max_concurrency=ways)
    columns: dict[str, Any] = {
        "questions": [s["question"] for s in samples],
        "contexts": [s["contexts"] for s in samples],
        "predicted_answers": [s["answer"] for s in samples],
    }
    evaluator.fingerprint()  # loads what stands in for options that are not given
    start = perf_counter()
    result = evaluator.run(**columns) if mode == "run" else asyncio.run(evaluator.arun(**columns))
    seconds = perf_counter() - start
    return {
        "seconds": seconds,
        "scores": result.individual_scores,
        "kept": sum(bool(row.details.get("verdicts")) for row in result.rows if row.score is None),
    }


def ours(bench: Any, port: int, mode: str, ways: int, path: str) -> dict[str, Any]:
    """Evaluate in a fresh process, as the rivals do."""
    bench.call(port, "/__reset", {})
    server = f"http://127.0.0.1:{port}/v1"
    command = [sys.executable, __file__, "--ours", mode, str(ways), server, path]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        sys.exit(f"ours ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return {**json.loads(done.stdout.splitlines()[-1]), "stub": bench.call(port, "/__stats")}


def our_row(name: str, found: dict[str, Any], samples: list[Any]) -> Row:
    """Compare our scores with the gold labels."""
    gold = [
        sum(claim["label"] == "supported" for claim in s["claims"]) / len(s["claims"])
        for s in samples
    ]
    scores = found["scores"]
    failed = scores.count(None)
    right = sum(
        score is not None and abs(score - want) < CLOSE
        for score, want in zip(scores, gold, strict=True)
    )
    note = f"{found['kept']} of {failed} failed rows keep their verdicts" if failed else ""
    wrong = len(gold) - right - failed
    return Row(name, found["seconds"], found["stub"]["calls"], right, failed, wrong, note)


def rival_row(name: str, found: dict[str, Any], rows: int) -> Row:
    """Read what the runner of a rival found out."""
    calls = found["stub"]["calls"]
    if "raised" in found:
        return Row(name, None, calls, 0, 0, rows, f"raised {found['raised'].split(':')[0]}")
    wrong = found["score_mismatches"]
    return Row(name, found["wall_s"], calls, rows - wrong, 0, wrong)


def measured(
    bench: Any, port: int, files: dict[str, str], args: argparse.Namespace
) -> Iterator[tuple[str, Row]]:
    """Run everything, profile by profile; of several runs, give the fastest."""
    path = files["short"]
    samples = json.loads(Path(path).read_text(encoding="utf-8"))
    for profile in args.profiles:
        config = {**bench.BASE, **bench.PROFILES[profile], "samples": path}
        bench.call(port, "/__config", config)
        for mode in ("run", "arun"):
            told = f"ours, FaithfulnessEvaluator.{mode}, {args.ways}-way"
            found = [ours(bench, port, mode, args.ways, path) for _ in range(args.repeat)]
            yield profile, worst_and_fastest([our_row(told, each, samples) for each in found])
        for peer, mode, told in RIVALS:
            if (args.venvs / peer / "bin" / "python").exists():
                found = [
                    bench.run_one(port, args.venvs, peer, mode, path) for _ in range(args.repeat)
                ]
                yield profile, worst_and_fastest([rival_row(told, each, ROWS) for each in found])


def worst_and_fastest(rows: list[Row]) -> Row:
    """Give the row of the run with the most lost rows, with the time of the fastest."""
    worst = max(rows, key=lambda row: (row.lost, row.failed))
    times = [row.seconds for row in rows if row.seconds is not None]
    return worst if worst.seconds is None else worst._replace(seconds=min(times))


def misses(profile: str, row: Row) -> list[str]:
    """Say which goals a row of ours misses."""
    found = []
    if row.lost:
        found.append(f"{profile}: {row.lost} rows are neither right nor failed")
    if profile == "flat" and (row.seconds or 0) >= GOAL_S:
        found.append(f"{profile}: {row.name} took {row.seconds:.2f} s, goal < {GOAL_S:.0f} s")
    if profile == "flat" and row.failed:
        found.append(f"{profile}: {row.failed} rows failed with a sound judge")
    return found


def main() -> None:
    """Print the table; end with 1 if ours misses a goal."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    peers = ROOT / "benchmarks" / "peers"
    parser.add_argument("--peers", type=Path, default=peers, help="folder of stub and runners")
    parser.add_argument("--venvs", type=Path, required=True, help="folder of the environments")
    parser.add_argument("--profiles", nargs="+", default=["flat", "garble", "http500"])
    parser.add_argument("--ways", type=int, default=16, help="how many rows at once, for ours")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each; the fastest counts")
    args = parser.parse_args()
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        del os.environ[name]
    sys.path.insert(0, str(args.peers.resolve()))
    import bench  # noqa: PLC0415  (its folder is an option)

    missing = sorted({p for p, *_ in RIVALS if not (args.venvs / p / "bin" / "python").exists()})
    if missing:
        print(f"not installed under {args.venvs.name}, skipped: {', '.join(missing)}")
    missed: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        files = {"short": bench.make_samples(Path(folder), "short")}
        with bench.running_stub(files["short"], Path(folder) / "port") as port:
            last = None
            for profile, row in measured(bench, port, files, args):
                if profile != last:
                    heads = ("seconds", "rows/s", "calls/row", "right", "failed", "wrong, lost")
                    print(f"\n{profile:42}" + "".join(f"{head:>12}" for head in heads))
                    last = profile
                print(row.shown(), flush=True)
                if row.name.startswith("ours"):
                    missed += misses(profile, row)
    print(*(f"missed: {why}" for why in missed), sep="\n")
    sys.exit(bool(missed))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--ours"]:
        how, ways, server, file = sys.argv[2:]
        rows = json.loads(Path(file).read_text(encoding="utf-8"))
        print(json.dumps(evaluate(how, int(ways), server, rows)))
    else:
        main()
