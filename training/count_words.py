"""Count how rare words are, and which are names, over the articles of `train/wikipedia_articles`.

Writes `langchain_groundedness/model/words.json`: for each common stem its inverse paragraph
frequency, and the stems that are nearly always capitalised inside a sentence.
"""

import argparse
import gzip
import json
import math
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path

from langchain_groundedness.text.words import STOP_WORDS, find_words

_KEPT = 15_000
_NAME_SHARE = 0.9
_FEWEST = 4
_OUT = Path(__file__).parents[1] / "langchain_groundedness" / "model" / "words.json"


def main() -> None:
    """Count the words and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder that holds train/")
    path = parser.parse_args().data / "train" / "wikipedia_articles.jsonl.gz"
    if not path.exists():
        parser.error(f"{path} is missing")
    paragraphs, capital, lower, total = _count(path)
    kept = [s for s, n in paragraphs.most_common(_KEPT) if n >= _FEWEST]
    idf = {s: round(math.log((total + 1) / (paragraphs[s] + 1)), 2) for s in sorted(kept)}
    names = [s for s in idf if s not in STOP_WORDS and _is_name(capital[s], lower[s])]
    table = {"paragraphs": total, "rarest": round(math.log(total + 1), 2), "idf": idf}
    _OUT.write_text(json.dumps(table | {"names": names}, ensure_ascii=False, indent=0) + "\n")
    print(f"{total} paragraphs, {len(idf)} words, {len(names)} names -> {_OUT.name}")


def _count(path: Path) -> tuple[Counter[str], Counter[str], Counter[str], int]:
    paragraphs: Counter[str] = Counter()
    capital: Counter[str] = Counter()
    lower: Counter[str] = Counter()
    total = 0
    with gzip.open(path, "rt", encoding="utf-8") as rows:
        for row in rows:
            for paragraph in _paragraphs(json.loads(row)):
                words = find_words(paragraph)
                paragraphs.update({word.stem for word in words})
                total += 1
                for before, word in pairwise(words):
                    if re.search(r"[.!?:\"\n]", paragraph[before.end : word.start]):
                        continue
                    first = paragraph[word.start]
                    (capital if first.isupper() else lower)[word.stem] += 1
    return paragraphs, capital, lower, total


def _paragraphs(row: dict[str, object]) -> list[str]:
    text = max((v for v in row.values() if isinstance(v, str)), key=len, default="")
    return [p for p in text.split("\n") if p.strip()]


def _is_name(capital: int, lower: int) -> bool:
    return capital + lower >= _FEWEST and capital / (capital + lower) >= _NAME_SHARE


if __name__ == "__main__":
    main()
