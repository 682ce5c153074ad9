"""Measure encoders alone: no signals, no rules, no calibration.

On `benchmark/`, which nothing is trained on; on what `make_pairs.py` held back; and on
`benchmarks/minimal_pairs.jsonl`. A claim is taken as supported at even odds. Of a supported claim
and another that differ by little, it is said how often both are right and how often the first is
above.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from claim_sets import Example, read_set
from encoder_network import load_start
from evidence import WORDS, Evidence
from train_encoder import encode_rows, figures, odds_of, read_pairs

_SETS = ("bump", "tables", "summedits", "qags_xsum", "lfqa")
_MADE = ("frames", "facts", "records")
_MINIMAL = Path(__file__).parents[1] / "benchmarks" / "minimal_pairs.jsonl"


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder that holds benchmark/")
    parser.add_argument("--work", type=Path, required=True, help="folder that holds pairs/")
    parser.add_argument("--weights", type=Path, nargs="+", required=True, help=".safetensors")
    parser.add_argument("--words", type=int, default=WORDS, help="of evidence for each claim")
    parser.add_argument("--held", action="append", default=[], help="held rows of these sets too")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    sets = {name: _read(options.data, options.work, name, options.words) for name in _SETS}
    sets["minimal_pairs"] = list(_minimal())
    for name in (*_MADE, *options.held):
        sets[f"{name}, held"] = [
            row for row in read_pairs(options.work / "pairs", name) if row.get("held")
        ]
    for weights in options.weights:
        model = load_start(weights)
        for name, rows in sets.items():
            odds = odds_of(model, encode_rows(rows))
            print(f"{weights.stem:12} {name:16} {figures(rows, odds)}", flush=True)


def _read(data: Path, work: Path, name: str, words: int) -> list[dict[str, Any]]:
    """Give what is read for the claims of a set; it is kept, since reading takes its time."""
    path = work / f"{name}_{words}.json"
    if not path.exists():
        rows = _rows(read_set(data, name, folder="benchmark"), words)
        path.write_text(json.dumps(rows), encoding="utf-8")
    rows = json.loads(path.read_text(encoding="utf-8"))
    return list(rows)


def _rows(examples: Sequence[Example], words: int) -> list[dict[str, Any]]:
    rows = []
    known: tuple[str, ...] | None = None
    for example in examples:
        if example.documents != known:
            known = example.documents
            evidence = Evidence(known)
        read = evidence.read(example.claim, example.question, words=words)
        label = "supported" if example.supported else "unsupported"
        rows.append({"evidence": read, "claim": example.claim, "label": label, "set": ""})
        rows[-1]["group"] = example.group
    return rows


def _minimal() -> Iterator[dict[str, Any]]:
    for number, line in enumerate(_MINIMAL.read_text(encoding="utf-8").splitlines()):
        row = json.loads(line)
        for claim in row["claims"]:
            yield {
                "evidence": row["document"],
                "claim": claim["claim"],
                "label": claim["verdict"],
                "group": str(number),
                "set": "",
            }


if __name__ == "__main__":
    main()
