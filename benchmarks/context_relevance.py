"""How well `ContextRelevanceEvaluator` tells, offline, a question's context from a similar one.

    python benchmarks/context_relevance.py --data DIR [--rows 150]

DIR holds `train/halueval_qa.jsonl.gz`, gzip JSON lines with `question` and `knowledge`, the text
that the question was written for. Each question is asked of its own text, which counts as
relevant, and of the text most similar to it that is about something else (by counted letters).
"""

import argparse
import gzip
import json
import random
import sys
from pathlib import Path

import numpy as np

from langchain_groundedness.evals import ContextRelevanceEvaluator
from langchain_groundedness.query import HashedNgramEmbeddings

SAME = 0.6
"""Texts that are as similar as this are taken to be about the same."""


def read_rows(folder: Path) -> list[dict[str, str]]:
    """Read the rows, or say that they are not there."""
    path = folder / "train" / "halueval_qa.jsonl.gz"
    if not path.is_file():
        sys.exit(f"{path.name} is not in the folder train of --data")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def most_similar(rows: list[dict[str, str]]) -> list[int]:
    """Give, for each question, the row whose text is most similar to it but about other things."""
    embeddings = HashedNgramEmbeddings()
    asked = np.array(embeddings.embed_documents([row["question"] for row in rows]))
    known = np.array(embeddings.embed_documents([row["knowledge"] for row in rows]))
    similar = asked @ known.T
    similar[known @ known.T > SAME] = -1
    return [int(place) for place in similar.argmax(axis=1)]


def main() -> None:
    """Print the share of contexts that are relevant to the evaluator, for both kinds."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=150)
    options = parser.parse_args()
    rows = read_rows(options.data)
    others = most_similar(rows)
    chosen = random.Random(2).sample(range(len(rows)), min(options.rows, len(rows)))
    questions = [rows[place]["question"] for place in chosen]
    evaluator = ContextRelevanceEvaluator()
    for name, places in (("own text", chosen), ("similar text", [others[p] for p in chosen])):
        contexts = [[rows[place]["knowledge"]] for place in places]
        result = evaluator.run(questions=questions, contexts=contexts)
        share = "none" if result.score is None else f"{result.score:.1%}"
        print(f"{name}: relevant {share} of {result.scored}; failed {result.failed}")


if __name__ == "__main__":
    main()
