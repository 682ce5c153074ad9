"""Every fault of a model's server at every entry point, as a Markdown table with counts.

`python benchmarks/faults.py [--rates 1.0 0.3] [--faults NAME …]`. Of the claims of an answer (for
guards: of its sentences) the table says how many ended how, over all entry points; a last column
counts what must not be. Exits with 1 if there is any of that. `tests/faults` asserts the same.
"""

import argparse
import logging
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "faults"))

from matrix import ENTRIES, RATES, Models, cell, judge

from langchain_groundedness.testing import FAULTS, FaultyServer

_ENDS = ("right", "unchecked", "released", "marked", "held")
_HEAD = ("fault", "what happens", "rate", "checks", *_ENDS, "wrong", "slowest, s")


def main() -> int:
    """Run the matrix."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rates", type=float, nargs="+", default=[0.0, *RATES])
    parser.add_argument("--faults", nargs="+", default=list(FAULTS), choices=list(FAULTS))
    given = parser.parse_args()
    logging.disable(logging.WARNING)
    print(f"{len(ENTRIES)} entry points: {', '.join(ENTRIES)}\n")
    print(_row(_HEAD))
    print(_row(["---"] * len(_HEAD)))
    wrong = 0
    with FaultyServer(judge()) as server:
        models = Models(server)
        for name, rate in _pairs(given.faults, given.rates):
            cells = [cell(server, models, entry, name, rate) for entry in ENTRIES]
            ends = sum((found.ends for found in cells), Counter[str]())
            bad = [text for found in cells for text in found.wrong]
            wrong += len(bad)
            slowest = max(found.seconds for found in cells)
            what = FAULTS[name].what if name else "nothing"
            counts = [ends[end] for end in _ENDS]
            print(
                _row([name or "none", what, rate, len(cells), *counts, len(bad), f"{slowest:.2f}"]),
                flush=True,
            )
            for text in bad:
                print(f"{name} at {rate}: {text}", file=sys.stderr)
    return 1 if wrong else 0


def _pairs(names: Sequence[str], rates: Sequence[float]) -> Iterator[tuple[str | None, float]]:
    if 0.0 in rates:
        yield None, 0.0
    yield from ((name, rate) for name in names for rate in rates if rate)


def _row(values: Sequence[object]) -> str:
    return f"| {' | '.join(map(str, values))} |"


if __name__ == "__main__":
    sys.exit(main())
