"""Every fault of a model's server at every entry point, as a Markdown table with counts.

`python benchmarks/faults.py [--rates 0 0.3 1] [--faults NAME …] [--write docs/guide/faults.md]`. Of
the claims of an answer (for guards: of its sentences) the table says how many ended how, over all
entry points; a last column counts what must not be. Exits with 1 if there is any of that.
`tests/faults` asserts the same.
"""

import argparse
import logging
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "faults"))

from matrix import ENTRIES, RATES, Models, cell, judge
from pages import place_in, put

from langchain_groundedness.testing import FAULTS, FaultyServer

_ENDS = ("right", "unchecked", "released", "marked", "held")
_HEAD = ("fault", "what happens", "rate", "checks", *_ENDS, "wrong", "slowest, s")
_PLACE = "benchmarks/faults.py"


class _Row(NamedTuple):
    """What one fault did at one rate, at all entry points."""

    fault: str | None
    rate: float
    checks: int
    ends: Counter[str]
    wrong: tuple[str, ...]
    slowest: float

    def told(self) -> str:
        """Give the row of the table."""
        what = FAULTS[self.fault].what if self.fault else "nothing"
        counts = [self.ends[end] for end in _ENDS]
        told = (f"{self.rate:.0%}", self.checks, *counts, len(self.wrong), f"{self.slowest:.1f}")
        return _row([self.fault or "none", what, *told])


def main() -> int:
    """Run the matrix."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rates", type=float, nargs="+", default=[0.0, *RATES])
    parser.add_argument("--faults", nargs="+", default=list(FAULTS), choices=list(FAULTS))
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the table into this page")
    given = parser.parse_args()
    if given.write is not None:
        place_in(given.write, _PLACE)  # so that a page without a place for it is heard of before
    logging.disable(logging.WARNING)
    lines, rows = [], []
    for line in (_row(_HEAD), _row(["---"] * len(_HEAD))):
        lines.append(line)
        print(line, flush=True)
    for row in _rows(given.faults, given.rates):
        rows.append(row)
        lines.append(row.told())
        print(lines[-1], flush=True)
        for text in row.wrong:
            print(f"{row.fault} at {row.rate:.0%}: {text}", file=sys.stderr)
    summary = _summary(rows)
    print(f"\n{summary}")
    wrong = sum(len(row.wrong) for row in rows)
    if wrong:
        print(f"\nmissed: {wrong} claims, texts or scores ended wrong")
    if given.write is not None:
        put(given.write, _PLACE, "\n".join([summary, "", *lines]))
    return int(wrong > 0)


def _rows(faults: Sequence[str], rates: Sequence[float]) -> Iterator[_Row]:
    with FaultyServer(judge()) as server:
        models = Models(server)
        for name, rate in _pairs(faults, rates):
            cells = [cell(server, models, entry, name, rate) for entry in ENTRIES]
            yield _Row(
                name,
                rate,
                len(cells),
                sum((found.ends for found in cells), Counter[str]()),
                tuple(text for found in cells for text in found.wrong),
                max(found.seconds for found in cells),
            )


def _pairs(names: Sequence[str], rates: Sequence[float]) -> Iterator[tuple[str | None, float]]:
    if 0.0 in rates:
        yield None, 0.0
    yield from ((name, rate) for name in names for rate in rates if rate)


def _summary(rows: Iterable[_Row]) -> str:
    rows = list(rows)
    ends = sum((row.ends for row in rows), Counter[str]())
    checks, faults = sum(row.checks for row in rows), len({row.fault for row in rows} - {None})
    counts = ", ".join(f"{ends[end]} {end}" for end in _ENDS)
    return (
        f"{checks} checks: {faults} faults at {len(ENTRIES)} entry points. Claims and sentences: "
        f"{counts}; {sum(len(row.wrong) for row in rows)} ended wrong. The slowest check took "
        f"{max(row.slowest for row in rows):.1f} s."
    )


def _row(values: Sequence[object]) -> str:
    return f"| {' | '.join(map(str, values))} |"


if __name__ == "__main__":
    sys.exit(main())
