"""Run the benchmarks and write BENCHMARKS.md: see `--help`.

What a script prints goes into `benchmarks/results/NAME.md`, with its command, the load of the
machine and, for timings, the median of several runs and their spread. BENCHMARKS.md lists the
results and the goals that were missed. A result that is not asked for stays as it was.
`DIR` of `--data` and `--venvs` are as for the scripts.
"""

import argparse
import os
import platform
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "BENCHMARKS.md"
RESULTS = ROOT / "benchmarks" / "results"
NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?![\w.]*\w)|(?<![\w.])\.\d+")
MISSED = re.compile(r"^missed: .+\n?", re.MULTILINE)
HEAD = """# Benchmarks

Every figure was printed by a script of `benchmarks/`; follow a link for its tables. Where a script
ran several times, its table shows the medians. Timings depend on the machine and its load: compare
them only within one table.

`python benchmarks/benchmarks_page.py --data DIR` runs everything again, `--only NAME` one script.
DIR holds the labelled claims named in the [model card](langchain_groundedness/model/MODEL_CARD.md).
"""
VERSIONS = ("langchain-core", "onnxruntime", "numpy")


class Section(NamedTuple):
    """One script."""

    name: str
    title: str
    says: str
    command: str
    runs: int = 1
    is_markdown: bool = False

    @property
    def link(self) -> str:
        """Path of its results from the root of the repository."""
        return f"benchmarks/results/{self.name}.md"


SECTIONS = (
    Section(
        "peers",
        "A chat model as judge, compared with other libraries",
        "Calls, tokens and time per answer and for twenty answers, with an honest and a faulty "
        "judge: a server that answers from gold labels (`benchmarks/peers/README.md`).",
        "benchmarks/peers/bench.py --table",
        is_markdown=True,
    ),
    Section(
        "evaluation",
        "Offline evaluation, compared with other libraries",
        "Twenty answers, 200 ms per judge call.",
        "benchmarks/evaluation.py --venvs {venvs}",
        runs=3,
    ),
    Section(
        "conventions",
        "Scores in the conventions of other libraries",
        "The same verdicts, scored by `as_score` and by the libraries themselves.",
        "benchmarks/conventions.py --venvs {venvs}",
    ),
    Section(
        "accuracy",
        "Accuracy of the embedded verifier",
        "AUC, balanced accuracy, pairs with both right: per data set and part of the verifier.",
        "benchmarks/accuracy.py --data {data}",
    ),
    Section(
        "evidence_recall",
        "Evidence retrieval",
        "Share of the gold evidence sentences of WiCE that the encoder reads.",
        "benchmarks/evidence_recall.py --data {data}",
    ),
    Section(
        "minimal_pairs",
        "Minimal pairs",
        "Ninety true and false claims that differ in one detail, and the wrong verdicts.",
        "benchmarks/minimal_pairs.py",
    ),
    Section(
        "languages",
        "Other languages",
        "What the embedded verifier says of claims that are not in English.",
        "benchmarks/languages.py",
    ),
    Section(
        "queries",
        "Query classification",
        "Accuracy of the classifier with hashed n-grams and with embeddings.",
        "benchmarks/queries.py",
    ),
    Section(
        "embedded_speed",
        "Speed of the embedded verifier",
        "Claims per second, compared with plain loops over cross-encoders.",
        "benchmarks/embedded_speed.py",
    ),
    Section(
        "throughput",
        "Throughput",
        "Answers per second by concurrency, memory, time to the first verdict.",
        "benchmarks/throughput.py",
        runs=3,
    ),
    Section(
        "overhead",
        "Overhead",
        "What the package adds to the time of its judge.",
        "benchmarks/overhead.py",
        runs=3,
    ),
    Section(
        "guard",
        "Policy and audit log",
        "Time added per answer, and records per second.",
        "benchmarks/guard.py --postgres",
        runs=3,
    ),
    Section(
        "streaming",
        "Streaming",
        "How soon a guard releases a sentence, and how long the event loop stalls.",
        "benchmarks/streaming.py",
    ),
    Section(
        "load",
        "Load",
        "Event-loop stalls and memory: many checks, long answers, large documents, streams.",
        "benchmarks/load.py",
    ),
    Section(
        "load_tuned",
        "Load, with the settings for services",
        "The same with a fifth of the checks and the settings of `docs/guide/scaling.md`.",
        "benchmarks/load.py --tuned --scale 0.2",
    ),
    Section(
        "cache",
        "Verdict cache",
        "Calls and time with and without the cache.",
        "benchmarks/cache.py",
        runs=3,
    ),
    Section(
        "faults",
        "Faults of the model server",
        "Every fault at every entry point.",
        "benchmarks/faults.py",
        is_markdown=True,
    ),
    Section(
        "kills",
        "Killed processes",
        "`kill -9` at random times while every store is being written.",
        "benchmarks/kills.py",
        is_markdown=True,
    ),
    Section(
        "attacks",
        "Attacks",
        "Prompt injection against a judge that obeys whatever it reads.",
        "benchmarks/attacks.py",
    ),
    Section(
        "ray_engine",
        "Evaluation on Ray",
        "Rows per second by number of workers.",
        "benchmarks/ray_engine.py",
    ),
)


def main() -> int:
    """Run what is asked for, and put it into the page; fail if a script fails."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, help="folder with train/, benchmark/")
    parser.add_argument(
        "--venvs", type=Path, help="folder with the environments of other libraries"
    )
    parser.add_argument(
        "--only", nargs="+", choices=[section.name for section in SECTIONS], metavar="NAME"
    )
    options = parser.parse_args()
    wanted = [each for each in SECTIONS if not options.only or each.name in options.only]
    failed = False
    for section in wanted:
        places = {"data": options.data, "venvs": options.venvs}
        missing = [f"--{name}" for name in places if f"{{{name}}}" in section.command]
        if any(places[name.lstrip("-")] is None for name in missing):
            sys.stderr.write(f"{section.name}: left as it was, for want of {', '.join(missing)}\n")
            continue
        measured = _measured(section, {k: str(v) for k, v in places.items()})
        failed |= measured is None
        if measured is not None:
            RESULTS.mkdir(exist_ok=True)
            (RESULTS / f"{section.name}.md").write_text(f"{measured}\n", encoding="utf-8")
            write_summary()
    return int(failed)


def _measured(section: Section, places: dict[str, str]) -> str | None:
    command = [sys.executable, *(part.format(**places) for part in section.command.split())]
    printed = []
    before = os.getloadavg()[0]
    for _ in range(section.runs):
        ended = subprocess.run(
            command, cwd=ROOT, env=_environment(), capture_output=True, text=True, check=False
        )
        printed.append(ended.stdout.strip())
        if not printed[-1] or (ended.returncode and not MISSED.search(printed[-1])):
            sys.stderr.write(f"{section.name} failed, left as it was:\n{ended.stderr[-2000:]}\n")
            return None
    goals = mostly_missed(printed)
    printed = [MISSED.sub("", each).strip() for each in printed]
    body = "\n".join([middle(printed), *goals])
    shown = section.command.format(data="DIR", venvs="VENVS")
    load = f"{before:.1f} to {os.getloadavg()[0]:.1f}"
    facts = [
        f"`python {shown}`, {datetime.now(UTC).date()}, {_machine()}, load {load}.",
        apart(printed) if section.runs > 1 else "",
    ]
    block = body if section.is_markdown else f"```text\n{body}\n```"
    return "\n\n".join([f"# {section.title}", section.says, " ".join(filter(None, facts)), block])


def mostly_missed(printed: Sequence[str]) -> list[str]:
    """Find the goals that most of the runs say they missed.

    Args:
        printed: What the runs printed.

    Returns:
        Lines that begin with `missed:`, each as the first run that has it printed it.
    """
    lines = [[line.strip() for line in MISSED.findall(text)] for text in printed]
    if len(lines) == 1:
        return lines[0]
    runs = Counter(goal for each in lines for goal in {NUMBER.sub("#", line) for line in each})
    named = {NUMBER.sub("#", line): line for each in reversed(lines) for line in each}
    return [line for goal, line in named.items() if 2 * runs[goal] > len(printed)]


def middle(printed: Sequence[str]) -> str:
    """Put the median in the place of each number that differs between runs.

    Args:
        printed: What the runs printed; an odd number of them.

    Returns:
        One text; the first as it is, if the runs did not print the same lines.
    """
    numbers = _numbers(printed)
    if numbers is None:
        return printed[0]
    chosen = [sorted(each, key=_value)[len(each) // 2] for each in zip(*numbers, strict=True)]
    places = [match.span() for match in NUMBER.finditer(printed[0])]
    parts, end = [], 0
    for (start, stop), text in zip(places, chosen, strict=True):
        parts += [printed[0][end:start], text.rjust(stop - start)]
        end = stop
    return "".join([*parts, printed[0][end:]])


def apart(printed: Sequence[str]) -> str:
    """Say how far the numbers of several runs lie apart.

    Args:
        printed: What the runs printed.

    Returns:
        A sentence.
    """
    numbers = _numbers(printed)
    if numbers is None:
        return f"The first of {len(printed)} runs, which did not print the same lines."
    spread = []
    for texts in zip(*numbers, strict=True):
        values = sorted(map(_value, texts))
        if values[0] != values[-1]:
            spread.append((values[-1] - values[0]) / max(abs(median(values)), 1e-9))
    if not spread:
        return f"The same in {len(printed)} runs."
    return (
        f"Medians of {len(printed)} runs; of what differs between them, the highest lies "
        f"{median(spread):.0%} above the lowest at the median, {max(spread):.0%} at most."
    )


def _numbers(printed: Sequence[str]) -> list[list[str]] | None:
    frames = [" ".join(NUMBER.sub("#", text).split()) for text in printed]
    if any(one != other for one, other in pairwise(frames)):
        return None
    return [NUMBER.findall(text) for text in printed]


def _value(text: str) -> float:
    return float(text.replace(",", ""))


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'training'}", "COLUMNS": "120"}


def _machine() -> str:
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        found = re.search(r"model name\s*:\s*(.+)", cpuinfo.read_text(encoding="utf-8"))
        model = found[1].strip() if found else model
    packages = ", ".join(f"{name} {version(name)}" for name in VERSIONS)
    return f"{os.cpu_count()} cores ({model}), Python {platform.python_version()}, {packages}"


def write_summary() -> None:
    """Write BENCHMARKS.md from the results that are there."""
    found = {
        section: path.read_text(encoding="utf-8")
        for section in SECTIONS
        if (path := RESULTS / f"{section.name}.md").exists()
    }
    rows = [f"| [{each.title}]({each.link}) | {each.says} |" for each in found]
    table = "\n".join(["| results | what they show |", "|---|---|", *rows])
    goals = [
        f"- [{each.title}]({each.link}): {why}"
        for each, text in found.items()
        for why in re.findall(r"^missed: (.+)$", text, re.MULTILINE)
    ]
    missed = ["## Goals that were missed", "\n".join(goals)] if goals else []
    text = "\n\n".join([HEAD.strip(), table, *missed])
    PAGE.write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
