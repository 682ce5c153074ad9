"""What is kept by audit logs, journal and caches if their process is killed (-9), again and again.

`python benchmarks/kills.py [--kills 200] [--seed 0]` prints a Markdown table; exits with 1 if
anything that was acknowledged is lost, or is there twice.
"""

import argparse
import logging
import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "faults"))

from killing import STORES, kill_often


def main() -> int:
    """Kill often, and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    logging.disable(logging.WARNING)
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)  # for the processes that are killed
    with TemporaryDirectory() as folder:
        found = kill_often(Path(folder), kills=given.kills, seed=given.seed)
    print(f"{found.kills} kills\n")
    print("| store | acknowledged | lost | doubled | kept though not acknowledged |")
    print("| --- | --- | --- | --- | --- |")
    for store in STORES:
        counts = (found.acknowledged, found.lost, found.doubled, found.beyond)
        print(f"| {store} | {' | '.join(str(count[store]) for count in counts)} |")
    wrong = found.lost.total() + found.doubled.total()
    if wrong:
        print(f"\nmissed: {wrong} records were lost or doubled")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
