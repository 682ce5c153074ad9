"""Write BENCHMARKS.md: `benchmarks_page.py --data DIR [--venvs DIR] [--only NAME ...]`.

Each section is what one script of this folder prints, with its command, the load of the machine
and, for measures of time, the median of several runs and how far they lie apart. A section that
is not asked for stays as it was, so the page can be made in parts. `DIR` of `--data` and `--venvs`
are as for the scripts.
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
NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?![\w.]*\w)|(?<![\w.])\.\d+")
MISSED = re.compile(r"^missed: .+\n?", re.MULTILINE)
HEAD = """# Benchmarks

Each table is what a script of `benchmarks/` printed; of several runs it has the medians, and behind
them the goals that most of them missed.
`python benchmarks/benchmarks_page.py --data DIR` makes the page anew, `--only NAME` one section.
What a script measures, and how, is said at its top. Times depend on the machine and on what else it
does: compare them within one table. DIR holds the labelled claims that the model card names.
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


SECTIONS = (
    Section(
        "peers",
        "A model as judge, beside other libraries",
        "Calls, tokens and time of one answer and of twenty, and what a faulty judge does to them; "
        "the judge is a server that answers from gold labels (`benchmarks/peers/README.md`).",
        "benchmarks/peers/bench.py --table",
        is_markdown=True,
    ),
    Section(
        "evaluation",
        "Evaluation, beside other libraries",
        "Twenty answers, a judge that takes 200 ms a call.",
        "benchmarks/evaluation.py --venvs {venvs}",
        runs=3,
    ),
    Section(
        "conventions",
        "Scores by the conventions of other libraries",
        "The same verdicts, scored by `as_score` and by the libraries themselves.",
        "benchmarks/conventions.py --venvs {venvs}",
    ),
    Section(
        "accuracy",
        "Accuracy of the embedded verifier",
        "Sets of `train/` are scored by models that never saw them.",
        "benchmarks/accuracy.py --data {data}",
    ),
    Section(
        "evidence_recall",
        "Evidence that the encoder gets to read",
        "Gold evidence sentences of WiCE, and what joining evidence is worth.",
        "benchmarks/evidence_recall.py --data {data}",
    ),
    Section(
        "minimal_pairs",
        "Claims that differ in one small thing",
        "Ninety pairs of ours; those that are judged wrongly are listed.",
        "benchmarks/minimal_pairs.py",
    ),
    Section(
        "languages",
        "Other languages",
        "The embedded verifier reads English; this shows that it says so.",
        "benchmarks/languages.py",
    ),
    Section(
        "queries",
        "Classes of queries",
        "The classifier that needs no model, and embeddings where they are installed.",
        "benchmarks/queries.py",
    ),
    Section(
        "embedded_speed",
        "Speed of the embedded verifier",
        "Claims a second, beside plain loops over cross-encoders, which take turns with it seven "
        "times.",
        "benchmarks/embedded_speed.py",
    ),
    Section(
        "throughput",
        "Answers at once",
        "Answers a second by how many are checked at once; memory; the first verdict.",
        "benchmarks/throughput.py",
        runs=3,
    ),
    Section(
        "overhead",
        "What the package adds to its judge",
        "Extractor and verifier are scripted and take no time.",
        "benchmarks/overhead.py",
        runs=3,
    ),
    Section(
        "guard",
        "What policy and audit log add",
        "Per answer, and records a second.",
        "benchmarks/guard.py --postgres",
        runs=3,
    ),
    Section(
        "streaming",
        "While text streams",
        "How soon a guard lets a sentence go, and how long the event loop waits.",
        "benchmarks/streaming.py",
    ),
    Section(
        "load",
        "Load",
        "Many checks, long answers, large documents, many streams.",
        "benchmarks/load.py",
    ),
    Section(
        "load_tuned",
        "Load, with the settings of the guide",
        "The same, with a fifth of the 10,000 checks, and the settings of the process that "
        "`docs/guide/scaling.md` advises a service.",
        "benchmarks/load.py --tuned --scale 0.2",
    ),
    Section(
        "cache",
        "Verdict cache",
        "Calls and time with and without it.",
        "benchmarks/cache.py",
        runs=3,
    ),
    Section(
        "faults",
        "Faults of a model's server",
        "Each fault at each entry point.",
        "benchmarks/faults.py",
        is_markdown=True,
    ),
    Section(
        "kills",
        "Killed at any moment",
        "`kill -9` at random times while every store is written to.",
        "benchmarks/kills.py",
        is_markdown=True,
    ),
    Section(
        "attacks",
        "Attacks",
        "A judge that obeys whatever it reads.",
        "benchmarks/attacks.py",
    ),
    Section(
        "ray_engine",
        "Evaluation on Ray",
        "Rows a second by number of workers.",
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
    kept = _sections(PAGE.read_text(encoding="utf-8") if PAGE.exists() else "")
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
            kept[section.name] = measured
            _write(kept)
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
    return "\n\n".join([f"## {section.title}", section.says, " ".join(filter(None, facts)), block])


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


def _sections(page: str) -> dict[str, str]:
    found = re.findall(r"<!-- (\w+) -->\n(.*?)\n<!-- end -->", page, re.DOTALL)
    return {name: text.strip() for name, text in found}


def _write(kept: dict[str, str]) -> None:
    parts = [
        f"<!-- {section.name} -->\n{kept[section.name]}\n<!-- end -->"
        for section in SECTIONS
        if section.name in kept
    ]
    text = "\n\n".join([HEAD.strip(), *_missed(kept), *parts])
    PAGE.write_text(f"{text}\n", encoding="utf-8")


def _missed(kept: dict[str, str]) -> list[str]:
    """List the goals that the scripts themselves said were missed, from all sections."""
    lines = [
        f"- {section.title}: {why}"
        for section in SECTIONS
        for why in re.findall(r"^missed: (.+)$", kept.get(section.name, ""), re.MULTILINE)
    ]
    return ["## Goals that were missed", "\n".join(lines)] if lines else []


if __name__ == "__main__":
    sys.exit(main())
