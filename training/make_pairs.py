"""Make the pairs that the encoder learns from: what it would read for a claim, and the claim.

One file per source, written to `--out`: the claim sets and extra sets of `claim_sets.py`, `snli`,
and `rules` (claims made by rule from `wikipedia_articles`). The evidence is chosen by the code that
chooses it at inference, at several lengths, so that the encoder learns to read either.
"""

import argparse
import gzip
import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from claim_sets import CLAIM_SETS, EXTRA_SETS, read_set
from langchain_core.documents import Document
from rule_claims import made_claims

from langchain_groundedness.verification.embedded.index import EvidenceIndex
from langchain_groundedness.verification.embedded.statement import read_statement
from langchain_groundedness.verification.embedded.windows import (
    chosen_units,
    joined,
    match_statement,
)

_FINE = {
    "refute": "contradicted",
    "irrelevant": "unverifiable",
    "entailment": "supported",
    "neutral": "unverifiable",
}
_NLI = _FINE | {"contradiction": "contradicted"}
_SNLI_ROWS = 12_000
_LENGTHS = (60, 110)
"""Words of evidence, short and as at inference. The largest set is read at one of them only."""
_RULE_LENGTHS = (50, 80, 120)
_LEFT_OUT = 0.5
"""Of RAGTruth's supported sentences: there are ten of them for each other one."""


def main() -> None:
    """Write the files that are not there yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder that holds train/")
    parser.add_argument("--out", type=Path, required=True, help="folder for the pairs")
    parser.add_argument("--rules", type=int, default=40_000, help="claims to make by rule")
    parser.add_argument("--only", action="append", default=[])
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    sources = {
        "snli": lambda: _snli(options.data),
        **{name: lambda name=name: _examples(options.data, name) for name in EXTRA_SETS},
        **{name: lambda name=name: _examples(options.data, name) for name in CLAIM_SETS},
        "rules": lambda: _rules(options.data, options.rules),
    }
    for name, source in sources.items():
        path = options.out / f"{name}.jsonl.gz"
        if path.exists() or (options.only and name not in options.only):
            continue
        rows = _balanced(list(source()))
        with gzip.open(path.with_suffix(".part"), "wt", encoding="utf-8") as lines:
            lines.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        path.with_suffix(".part").replace(path)
        print(name, len(rows), dict(Counter(row["label"] for row in rows)), flush=True)


def _balanced(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Let supported and other pairs of a source count alike, within bounds."""
    supported = sum(row["label"] == "supported" for row in rows)
    for row in rows:
        mine = supported if row["label"] == "supported" else len(rows) - supported
        row["weight"] = round(min(max(0.5 * len(rows) / max(mine, 1), 0.5), 4.0), 3)
    return rows


def _snli(data: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(data / "train" / "snli.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    for row in random.Random(0).sample(rows, k=min(_SNLI_ROWS, len(rows))):
        if row["label"] in _NLI:
            yield {
                "evidence": row["premise"].replace(" .", "."),
                "claim": row["hypothesis"].replace(" .", "."),
                "label": _NLI[row["label"]],
            }


def _examples(data: Path, name: str) -> Iterator[dict[str, Any]]:
    chosen = random.Random(name)
    both = name in CLAIM_SETS and name != "factscore"
    known: tuple[str, ...] | None = None
    for example in read_set(data, name):
        if example.documents != known:
            known = example.documents
            index = EvidenceIndex([Document(page_content=text) for text in known])
        label = "supported" if example.supported else _FINE.get(example.fine, "unsupported")
        if name in {"fool_me_twice", "fever_symmetric"}:
            label = _NLI[example.fine]
        lengths = _LENGTHS if both else (chosen.choice(_LENGTHS),)
        pairs = _pairs(example.claim, example.question, index, label, lengths)
        if name == "ragtruth_qa" and example.supported and chosen.random() < _LEFT_OUT:
            continue
        yield from pairs


def _rules(data: Path, most: int) -> Iterator[dict[str, Any]]:
    chosen = random.Random(1)
    for made in made_claims(data / "train" / "wikipedia_articles.jsonl.gz", most=most):
        index = EvidenceIndex([Document(page_content=text) for text in made.documents])
        lengths = (chosen.choice(_RULE_LENGTHS),)
        for row in _pairs(made.claim, None, index, made.label, lengths):
            yield row | {"rule": made.rule}


def _pairs(
    claim: str, question: str | None, index: EvidenceIndex, label: str, lengths: Sequence[int]
) -> Iterator[dict[str, Any]]:
    statement = read_statement(claim, question)
    match = match_statement(statement, index) if statement.items else None
    if match is None or statement.denies:
        return
    seen = set()
    for words in lengths:
        evidence = joined(chosen_units(match, index, words=words), match, index)
        if evidence not in seen:
            seen.add(evidence)
            yield {
                "evidence": evidence,
                "claim": " ".join(statement.text.split()),
                "label": label,
            }


if __name__ == "__main__":
    main()
