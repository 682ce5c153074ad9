"""Fixtures shared by all tests."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from blockbuster import BlockBuster, blockbuster_ctx
from hypothesis import settings

# A property holds or not however busy the machine is; how long a whole test may take is bounded.
settings.register_profile("quick", deadline=None, max_examples=20)
settings.register_profile("thorough", deadline=None, max_examples=100)
settings.load_profile("quick")

MARKERS = {
    "browser": ("report/test_report_browser.py", "review/test_review_browser.py"),
    "kill": ("audit/test_audit_processes.py", "evals/test_killed.py", "faults/test_kills.py"),
    "notebook": ("test_cookbook.py",),
    "ray": ("evals/test_ray_engine.py",),
    "server": (),
    "slow": (),
}
"""Files, and tests in files, that only `make test-all` runs."""


@pytest.hookimpl(tryfirst=True)  # before `-m` selects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the tests the markers of the table above."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            file = item.path.relative_to(here).as_posix()
            names = {file, f"{file}::{item.name.partition('[')[0]}", f"{file}::{item.name}"}
            for marker, marked in MARKERS.items():
                if not names.isdisjoint(marked):
                    item.add_marker(marker)


@pytest.fixture(autouse=True, scope="session")
def interruptions() -> None:
    """Take Ctrl-C as a terminal does: what is started in the background may ignore it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def blockbuster() -> Iterator[BlockBuster]:
    """Fail a test in which code of the package blocks a running event loop."""
    with blockbuster_ctx("langchain_groundedness") as blockbuster:
        # The measuring of coverage takes a lock inside any function, whichever that is.
        for name in ("threading.Lock.acquire", "threading.Lock.acquire_lock"):
            blockbuster.functions[name].can_block_in("coverage/collector.py", "lock_data")
        yield blockbuster


@pytest.fixture(scope="session")
def postgres() -> Iterator[Any]:
    """Run a PostgreSQL server: one for each process that runs tests."""
    from audit.postgres_cluster import Cluster, programs  # noqa: PLC0415  (needs psycopg)

    if programs() is None:
        assert "GROUNDEDNESS_NEEDS_POSTGRES" not in os.environ, "CI must not skip these tests"
        pytest.skip("PostgreSQL's server programs are not here (Debian: apt install postgresql)")
    cluster = Cluster()
    yield cluster
    cluster.remove()
