"""The cache of scores: found again by content, and never a danger to a run."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document

from langchain_groundedness import ConfigurationError
from langchain_groundedness.evals import EvaluationRow, ResultCache, RowScore
from langchain_groundedness.types import Usage

ROW = EvaluationRow(id="1", question="q", answer="a", documents=(Document("d"),), reference="r")
SCORE = RowScore(
    key="k", score=0.5, status="scored", details={"x": [1]}, usage=Usage(model_calls=3)
)
TOLD = {"class": "Mine", "strictness": 1}


def test_a_score_is_found_again_and_costs_nothing_then(tmp_path: Path) -> None:
    ResultCache(tmp_path / "c").put(ROW, TOLD, SCORE)
    assert ResultCache(tmp_path / "c").get(ROW, TOLD) == SCORE.model_copy(update={"usage": Usage()})
    assert stat.S_IMODE((tmp_path / "c").stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("change", "is_same"),
    [
        ({"id": "2", "label": True, "metadata": {"kind": "x"}}, True),
        ({"question": None}, False),
        ({"answer": "b"}, False),
        ({"reference": "s"}, False),
        ({"documents": ()}, False),
        ({"documents": None}, False),
        ({"documents": (Document("d", metadata={"page": 2}),)}, False),
    ],
)
def test_what_counts_is_the_content(
    tmp_path: Path, change: dict[str, Any], *, is_same: bool
) -> None:
    cache = ResultCache(tmp_path)
    cache.put(ROW, TOLD, SCORE)
    assert (cache.get(ROW.model_copy(update=change), TOLD) is not None) == is_same
    assert cache.get(ROW, {**TOLD, "strictness": 2}) is None


@pytest.mark.parametrize("status", ["failed", "skipped"])
def test_only_scores_are_kept(tmp_path: Path, status: Any) -> None:
    cache = ResultCache(tmp_path)
    cache.put(ROW, TOLD, RowScore(key="k", status=status, reason="so"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("damage", [b"", b"{", b"\xff", b'{"key": "k"}', b"[]"])
def test_a_damaged_entry_is_missing_and_said_to_be(
    tmp_path: Path, damage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    cache = ResultCache(tmp_path)
    cache.put(ROW, TOLD, SCORE)
    (entry,) = tmp_path.glob("*/*.json")
    entry.write_bytes(damage)
    assert cache.get(ROW, TOLD) is None
    assert "cannot be read" in caplog.text
    cache.put(ROW, TOLD, SCORE)
    assert json.loads(entry.read_text())["score"] == 0.5
    assert [path.name for path in tmp_path.glob("*/*")] == [entry.name]


def test_a_cache_that_cannot_be_written_costs_no_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache = ResultCache(tmp_path / "c")
    (tmp_path / "c").rmdir()
    (tmp_path / "c").write_text("in the way")
    cache.put(ROW, TOLD, SCORE)
    assert "cannot be written" in caplog.text
    with pytest.raises(ConfigurationError, match="not a folder"):
        ResultCache(tmp_path / "c")
