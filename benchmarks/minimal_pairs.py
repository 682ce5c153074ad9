"""What the embedded verifier says of claims that differ from their evidence in one small thing.

The rows of `minimal_pairs.jsonl` are ours: roles, comparisons, orders, cells of tables, conditions,
quantities. Nothing is trained on them. Prints the verdicts that are not the expected ones, and how
many there are of each kind; a false claim that is `unverifiable` instead of `contradicted` is not
accepted either, so it counts as caught, but under another name.
"""

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from langchain_core.documents import Document

from langchain_groundedness.types import Claim, ClaimVerdict, VerificationTask
from langchain_groundedness.verification import EmbeddedVerifier

_ROWS = Path(__file__).with_suffix(".jsonl")
_FEWEST_RIGHT = 82
_MOST_PASSING = 4


def main() -> int:
    """Print what went wrong, the counts and the goals that are missed; exit status 1 if any is."""
    counts: Counter[str] = Counter()
    for row in map(json.loads, _ROWS.read_text(encoding="utf-8").splitlines()):
        expected = [claim["verdict"] for claim in row["claims"]]
        for verdict, wanted in zip(_verdicts(row), expected, strict=True):
            outcome = _outcome(verdict.verdict, wanted)
            counts[outcome] += 1
            if outcome != "right":
                print(f"{outcome:18} {verdict.verdict:13} {verdict.claim.text}")
    print(", ".join(f"{outcome} {number}" for outcome, number in counts.most_common()))
    missed = []
    if counts["right"] < _FEWEST_RIGHT:
        missed.append(f"right {counts['right']}, the goal is {_FEWEST_RIGHT}")
    if counts["wrongly supported"] > _MOST_PASSING:
        passing = counts["wrongly supported"]
        missed.append(f"wrongly supported {passing}, the goal is at most {_MOST_PASSING}")
    for each in missed:
        print(f"missed: {each}")
    return int(bool(missed))


def _verdicts(row: dict[str, Any]) -> list[ClaimVerdict]:
    claims = row["claims"]
    task = VerificationTask(
        claims=tuple(Claim(id=str(n), text=c["claim"]) for n, c in enumerate(claims)),
        documents=(Document(page_content=row["document"]),),
    )
    return EmbeddedVerifier().invoke(task)


def _outcome(verdict: str, wanted: str) -> str:
    if verdict == wanted:
        return "right"
    if verdict == "supported":
        return "wrongly supported"
    return "missed support" if wanted == "supported" else "caught otherwise"


if __name__ == "__main__":
    sys.exit(main())
