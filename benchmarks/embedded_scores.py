"""What `EmbeddedVerifier` says of claims; as a script, that of any checkout of this package.

`PYTHONPATH=FOLDER python benchmarks/embedded_scores.py` reads a line of JSON per claim (`claim`,
`documents`, `question`) and writes one per claim: its probability, and whether it is `supported`.
`accuracy.py` measures earlier versions with it.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from langchain_core.documents import Document

from langchain_groundedness.types import Claim, VerificationTask
from langchain_groundedness.verification import EmbeddedVerifier

__all__ = ["Said", "embedded_scores", "scores_of_checkout"]

Said = tuple[float, bool]
"""A probability of support, and whether the verdict is `supported`."""


def main() -> None:
    """Score what comes in."""
    for said in embedded_scores(list(map(json.loads, sys.stdin))):
        print(json.dumps(said))


def embedded_scores(claims: Sequence[dict[str, Any]]) -> list[Said]:
    """Ask the verifier as a user of the package does.

    Args:
        claims: Each with its `claim`, its `documents`, and the `question` or `None`.

    Returns:
        What it says of each.
    """
    tasks = [
        VerificationTask(
            claims=(Claim(id="1", text=each["claim"]),),
            documents=tuple(Document(page_content=text) for text in each["documents"]),
            question=each["question"],
        )
        for each in claims
    ]
    verdicts = [found[0] for found in EmbeddedVerifier().batch(tasks)]
    return [(each.support_probability or 0.0, each.verdict == "supported") for each in verdicts]


def scores_of_checkout(folder: Path, claims: Sequence[dict[str, Any]]) -> list[Said]:
    """Ask the verifier of another checkout, in a process of its own.

    Args:
        folder: The checkout.
        claims: As above.

    Returns:
        What it says of each.

    Raises:
        subprocess.CalledProcessError: It fails on them.
    """
    if not (folder / "langchain_groundedness").is_dir():
        sys.exit(f"{folder} is no checkout of this package")
    lines = "".join(f"{json.dumps(each)}\n" for each in claims)
    environment = os.environ | {"PYTHONPATH": str(folder)}
    done = subprocess.run(
        [sys.executable, __file__],
        input=lines,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return [(chance, supported) for chance, supported in map(json.loads, done.stdout.splitlines())]


if __name__ == "__main__":
    main()
