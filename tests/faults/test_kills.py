"""Killed at any moment (kill -9), a process leaves every store readable, with all it was told."""

import os
import sys
from pathlib import Path

import pytest
from killing import STORES, kill_often

KILLS = 8
pytestmark = [
    pytest.mark.filterwarnings("ignore:The function `loads`"),  # which `SQLiteCache` calls
    pytest.mark.filterwarnings("ignore:The default value of `allowed_objects`"),
]


def test_nothing_that_was_acknowledged_is_lost_by_kills_at_random_moments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So that the server that forks the processes can load beforehand what they need.
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    found = kill_often(tmp_path, kills=KILLS)
    assert all(found.acknowledged[store] >= KILLS // 2 for store in STORES)
    assert not found.lost.total()
    assert not found.doubled.total()
    assert all(found.beyond[store] <= KILLS for store in STORES)
