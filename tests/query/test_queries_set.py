"""The queries that `benchmarks/queries.py` measures on."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from langchain_groundedness.query import QUERY_CLASSES, EmbeddingQueryClassifier

FILE = Path(__file__).parents[2] / "benchmarks" / "queries.jsonl"

if not FILE.exists():
    pytest.skip("benchmarks/ is not part of this distribution", allow_module_level=True)
ROWS = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]
SPLIT = {
    name: [(row["query"], row["label"]) for row in ROWS if row["split"] == name]
    for name in ("train", "test")
}

ALWAYS: Any = {"min_probability": 0.0, "min_probability_of": {}}


def test_each_shipped_class_has_fourteen_queries_in_each_half() -> None:
    counts = Counter((row["split"], row["label"]) for row in ROWS)
    assert counts == {(split, label): 14 for split in SPLIT for label in QUERY_CLASSES}


def test_no_query_stands_twice() -> None:
    assert len({row["query"].casefold() for row in ROWS}) == len(ROWS)


def test_the_offline_classifier_is_well_ahead_of_chance() -> None:
    classifier = EmbeddingQueryClassifier(**ALWAYS).fit(SPLIT["train"])
    report = classifier.evaluate(SPLIT["test"])
    assert report.accuracy > 3 / len(QUERY_CLASSES)
    assert report.unknown == report.failed == 0


def test_a_class_that_is_given_with_confidence_is_right_more_often() -> None:
    classifier = EmbeddingQueryClassifier().fit(SPLIT["train"])
    found = classifier.batch([query for query, _ in SPLIT["test"]])
    kept = [f.label == y for f, (_, y) in zip(found, SPLIT["test"], strict=True) if not f.reason]
    assert 0.5 < len(kept) / len(found) < 0.75
    always = classifier.model_copy(update=ALWAYS).evaluate(SPLIT["test"])
    assert sum(kept) / len(kept) > always.accuracy


def test_a_query_of_another_class_is_not_called_generic_by_default() -> None:
    classifier = EmbeddingQueryClassifier().fit(SPLIT["train"])
    report = classifier.evaluate(SPLIT["test"])
    [generic] = [figures for figures in report.per_class if figures.label == "generic"]
    assert generic.precision == 1.0
    assert generic.recall
