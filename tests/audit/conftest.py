"""Stores for the tests of the audit log."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from audit.postgres_cluster import Cluster, programs


@pytest.fixture(scope="session")
def postgres() -> Iterator[Cluster]:
    if programs() is None:
        assert "GROUNDEDNESS_NEEDS_POSTGRES" not in os.environ, "CI must not skip these tests"
        pytest.skip("PostgreSQL's server programs are not here (Debian: apt install postgresql)")
    cluster = Cluster()
    yield cluster
    cluster.remove()


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'audit.db'}"
