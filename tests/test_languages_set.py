"""The claims in other languages that `benchmarks/languages.py` measures on."""

import json
from collections import Counter
from pathlib import Path

import pytest

FILE = Path(__file__).parent.parent / "benchmarks" / "languages.jsonl"
LANGUAGES = ("de", "fr", "es", "pt", "zh")
MIXED = ("de-en", "es-en")
LABELS = {"supported", "contradicted", "unverifiable"}

if not FILE.exists():
    pytest.skip("benchmarks/ is not part of this distribution", allow_module_level=True)
ROWS = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]


def test_every_row_has_four_texts_that_are_not_empty() -> None:
    for row in ROWS:
        assert set(row) == {"language", "evidence", "claim", "label"}
        assert all(isinstance(value, str) and value.strip() for value in row.values()), row


def test_each_language_has_forty_rows_and_each_mixed_pair_twenty() -> None:
    wanted = dict.fromkeys(LANGUAGES, 40) | dict.fromkeys(MIXED, 20)
    assert Counter(row["language"] for row in ROWS) == wanted


def test_every_language_has_the_three_labels_in_the_same_mix() -> None:
    assert {row["label"] for row in ROWS} == LABELS
    for languages, mix in ((LANGUAGES, (16, 14, 10)), (MIXED, (8, 7, 5))):
        for language in languages:
            counts = Counter(row["label"] for row in ROWS if row["language"] == language)
            assert (counts["supported"], counts["contradicted"], counts["unverifiable"]) == mix


def test_no_claim_stands_twice() -> None:
    assert len({row["claim"] for row in ROWS}) == len(ROWS)


def test_hardly_any_claim_is_a_copy_from_its_evidence() -> None:
    copies = [row["claim"] for row in ROWS if row["claim"].rstrip(".\u3002") in row["evidence"]]
    assert len(copies) <= len(ROWS) // 50, copies
