"""How much of the evidence reaches the encoder, and what reading more of it is worth.

First the share of the gold evidence sentences of `claims_wice` (`evidence_sentences`) that are in
what the encoder reads, by the number of words it reads. Then the AUC of the shipped encoder alone
on the sets of `benchmark/`, for the best window of one document and for evidence from all places
joined to one text.
"""

import argparse
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from langchain_core.documents import Document
from sklearn.metrics import roc_auc_score

from langchain_groundedness.verification.embedded.encoder import Pair, encoder
from langchain_groundedness.verification.embedded.index import EvidenceIndex
from langchain_groundedness.verification.embedded.statement import ParsedClaim, read_statement
from langchain_groundedness.verification.embedded.support_model import read_logits
from langchain_groundedness.verification.embedded.windows import (
    Match,
    chosen_units,
    join_units,
    match_statement,
)

_SETS = ("lfqa", "qags_xsum")
_WORDS = (30, 60, 110, 160, 220)
_BEGINNING = 50
"""Letters and digits by which a sentence is recognised: ours may end elsewhere."""


class _Case(NamedTuple):
    row: dict[str, Any]
    statement: ParsedClaim
    match: Match
    index: EvidenceIndex


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with train/, benchmark/")
    data = parser.parse_args().data
    cases = [
        c for c in _cases(data / "train" / "claims_wice.jsonl.gz") if c.row["evidence_sentences"]
    ]
    print(f"wice: gold evidence in the text that is read, {len(cases)} claims")
    print(f"{'words':>8}{'sentences':>12}{'all of them':>14}")
    for words in _WORDS:
        found = [_found(case, words) for case in cases]
        share = sum(map(sum, found)) / sum(map(len, found))
        print(f"{words:8}{share:12.3f}{np.mean([all(f) for f in found]):14.3f}")
    print(f"\n{'AUC of the encoder alone':28}" + "".join(f"{words:8}" for words in _WORDS))
    for name in _SETS:
        cases = list(_cases(data / "benchmark" / f"claims_{name}.jsonl.gz"))
        labels = [case.row["label"] == "supported" for case in cases]
        for title, one_place in (("best window", True), ("joined", False)):
            scores = [_auc(cases, labels, words, one_place=one_place) for words in _WORDS]
            print(f"{name + ', ' + title:28}" + "".join(f"{score:8.3f}" for score in scores))


def _cases(path: Path) -> Iterator[_Case]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    documents = {row["documents_id"]: row["documents"] for row in rows if "documents" in row}
    for row in rows:
        if "documents" not in row:
            texts = documents[row["documents_id"]]
            index = EvidenceIndex([Document(page_content=text) for text in texts])
            statement = read_statement(row["claim"], row.get("question"))
            match = match_statement(statement, index)
            if match is not None:
                yield _Case(row, statement, match, index)


def _found(case: _Case, words: int) -> list[bool]:
    text = _letters(_joined(case, words))
    gold = map(_letters, case.row["evidence_sentences"])
    return [sentence[:_BEGINNING] in text for sentence in gold]


def _letters(text: str) -> str:
    """Keep letters and digits alone: headings and list items are written out for the encoder."""
    return "".join(filter(str.isalnum, text.lower()))


def _joined(case: _Case, words: int) -> str:
    units = chosen_units(case.match, case.index, words=words)
    return join_units(units, case.match, case.index)


def _auc(cases: list[_Case], labels: list[bool], words: int, *, one_place: bool) -> float:
    pairs = [
        Pair(
            _window(case, words) if one_place else _joined(case, words),
            " ".join(case.statement.text.split()),
        )
        for case in cases
    ]
    readings = [read_logits(row[None, :]) for row in encoder().logits(pairs)]
    return float(roc_auc_score(labels, [r.support if r else 0.0 for r in readings]))


def _window(case: _Case, words: int) -> str:
    """Take neighbouring sentences around the best ones, as many as fit."""
    first, last = case.match.best[-1].first, case.match.best[-1].last
    here = case.index.document_of[first]
    while True:
        options = [(first - 1, last), (first, last + 1)]
        fitting = [
            (a, b)
            for a, b in options
            if a >= 0
            and b < len(case.index)
            and here == case.index.document_of[a] == case.index.document_of[b]
            and case.index.first[b + 1] - case.index.first[a] <= words
        ]
        if not fitting:
            return " ".join(case.index.text(first, last).split())
        first, last = fitting[-1]


if __name__ == "__main__":
    main()
