"""Draws replies of a chat model that are wrong in form, and counts what is falsely supported.

`python benchmarks/replies.py [--replies 20000] [--seed 0]`. For each strategy, checks of one answer
are made until a judge has given that many replies; each combines families of faults (an echo of
the prompt, a draft before the final reply, contradictions inside, decorated labels, numbers of
evidence that is not there, wrong containers, retractions, missing tags). `plain questions` is
`batched` with lines that never count, so that the replies to its plain questions do or do not. Then
honest replies of six dialects are read. Exits with 1 if anything false is supported or an honest
reply is not read.
"""

import argparse
import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "faults"))

from reply_checks import STRATEGIES, read_honestly, supported_falsely
from reply_families import DIALECTS

_HONEST = 20
_SHOWN = 3


def main() -> int:
    """Draw, count and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replies", type=int, default=20_000, help="per strategy")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    failed = False
    print("| strategy | checks | replies | falsely supported |\n|---|---|---|---|")
    for strategy in STRATEGIES:
        chance = random.Random(given.seed)
        checks, replies, wrong = 0, 0, []
        while replies < given.replies:
            found, asked = supported_falsely(strategy, chance)
            checks, replies, wrong = checks + 1, replies + asked, [*wrong, *found]
        print(f"| {strategy} | {checks:,} | {replies:,} | {len(wrong)} |", flush=True)
        print(*wrong[:_SHOWN], sep="\n", end="\n" if wrong else "", file=sys.stderr)
        failed = failed or bool(wrong)
    print("\n| honest dialect | batched | single_pass |\n|---|---|---|")
    for dialect in DIALECTS:
        read = [
            sum(read_honestly(strategy, dialect) for _ in range(_HONEST))
            for strategy in ("batched", "single_pass")
        ]
        print(f"| {dialect} | {read[0] / _HONEST:.0%} | {read[1] / _HONEST:.0%} |", flush=True)
        failed = failed or min(read) < _HONEST
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
