"""Accuracy of the embedded verifier in languages other than English, on claims written by us.

Each row is a line of JSON: `language` (any name to group by), `evidence` and `claim` (texts) and
`label` ("supported", "contradicted" or "unverifiable"). In `languages.jsonl`, "de-en" stands for
English evidence with a German claim or the other way round, "es-en" for the same with Spanish.
About a quarter of the supported claims are close to the evidence in wording, the others say it
in other words; the false ones differ in one detail or lack it. Forty pairs a language show
whether a language works at all, not more: an AUC of .80 has a 95 % interval of about .65 to .95.

Columns: the AUC of supported claims against the others, by probability (none counts as 0); the
share of supported claims that were found; the share of all pairs where the verdict is confident
and wrong, which is supported for a claim that is not, or contradicted for one that is supported;
and how often the verdict was `unverifiable`.
"""

import argparse
import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
from langchain_core.documents import Document
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from langchain_groundedness.types import Claim, ClaimVerdict, VerificationTask
from langchain_groundedness.verification import EmbeddedVerifier


class Row(NamedTuple):
    """A claim, what it is checked against, and what a person says of it."""

    language: str
    evidence: str
    claim: str
    label: str


def main() -> None:
    """Print one line per language, and one for all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--rows",
        type=Path,
        default=Path(__file__).with_name("languages.jsonl"),
        metavar="FILE",
        help="rows of your own, one line of JSON each",
    )
    rows = _read(parser.parse_args().rows)
    verdicts = _judge(rows)
    languages = np.array([row.language for row in rows])
    print(f"{'language':10}{'pairs':>7}{'AUC':>7}{'found':>8}{'wrong':>8}{'unverifiable':>14}")
    for language in dict.fromkeys(languages.tolist()):
        _line(language, rows, verdicts, languages == language)
    _line("all", rows, verdicts, np.ones(len(rows), dtype=bool))


def _read(path: Path) -> list[Row]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [Row(**json.loads(line)) for line in lines if line.strip()]


def _judge(rows: list[Row]) -> list[ClaimVerdict]:
    tasks = [
        VerificationTask(
            claims=(Claim(id="1", text=row.claim),), documents=(Document(row.evidence),)
        )
        for row in rows
    ]
    return [verdict for (verdict,) in EmbeddedVerifier().batch(tasks)]


def _line(
    name: str, rows: list[Row], verdicts: list[ClaimVerdict], chosen: NDArray[np.bool_]
) -> None:
    labels = np.array([row.label for row in rows])[chosen]
    supported = labels == "supported"
    said = np.array([verdict.verdict for verdict in verdicts])[chosen]
    scores = np.array([verdict.support_probability or 0.0 for verdict in verdicts])[chosen]
    wrong = np.isin(said, ("supported", "contradicted")) & (said != labels)
    print(
        f"{name:10}{chosen.sum():7}{roc_auc_score(supported, scores):7.3f}"
        f"{(said[supported] == 'supported').mean():8.2f}{wrong.mean():8.2f}"
        f"{(said == 'unverifiable').sum():14}",
        flush=True,
    )


if __name__ == "__main__":
    main()
