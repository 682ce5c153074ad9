"""Fixtures shared by all tests."""

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from blockbuster import BlockBuster, blockbuster_ctx
from coverage import Coverage
from hypothesis import HealthCheck, settings

# A property holds or not however busy the machine is; how long a whole test may take is bounded.
patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", patient, max_examples=20)
settings.register_profile("thorough", patient, max_examples=100)
settings.load_profile("quick")

MARKERS = {
    "browser": (
        "report/test_report_browser.py",
        "review/test_live_browser.py",
        "review/test_review_browser.py",
    ),
    "kill": (
        "audit/test_audit_processes.py",
        "evals/test_killed.py",
        "evals/test_validation_files.py::test_a_run_that_is_killed_at_any_moment_loses_no_row_and_pays_for_none_twice",
        "faults/test_kills.py",
    ),
    "notebook": ("test_cookbook.py",),
    "ray": ("evals/test_ray_engine.py",),
    "server": (
        "verification/test_cached_stores.py::test_a_redis_server_that_dies_costs_no_check_and_is_used_again_when_it_is_back",
    ),
    "slow": (
        "faults/test_fault_matrix.py::test_at_no_entry_point_does_anything_end_wrong",
        "test_cli_silent_model.py",
        "test_extending.py::test_the_worked_changes_apply_to_the_tree_and_their_tests_pass",
        "test_guide_testing.py::test_the_classes_of_the_page_keep_their_contracts",
        "verification/test_embedded_runs.py::test_ten_thousand_claims_in_a_batch_take_little_more_memory_than_a_few",
        "verification/test_encoder.py::test_the_memory_it_takes_is_bounded_however_long_the_pairs",
    ),
}
"""Files, and tests in files, that only `make test-all` runs."""
SERVERS = ("postgres", "redis")
"""Fixtures, and beginnings of parameters, of tests that need a server."""


@pytest.hookimpl(tryfirst=True)  # before `-m` selects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give tests the markers by which `make test` leaves them out."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            file = item.path.relative_to(here).as_posix()
            name, _, parameters = item.name.partition("[")
            for marker, marked in MARKERS.items():
                if file in marked or f"{file}::{name}" in marked:
                    item.add_marker(marker)
            needs = (*getattr(item, "fixturenames", ()), *parameters.lower().split("-"))
            if any(need.startswith(SERVERS) for need in needs):
                item.add_marker("server")


@pytest.fixture(autouse=True, scope="session")
def interruptions() -> None:
    """Take Ctrl-C as a terminal does: what is started in the background may ignore it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def blockbuster() -> Iterator[BlockBuster]:
    """Fail a test in which code of the package blocks a running event loop."""
    with blockbuster_ctx("langchain_groundedness") as blockbuster:
        for name in ("threading.Lock.acquire", "threading.Lock.acquire_lock"):
            # A test that calls `invoke` within an event loop waits for the model by its own choice.
            blockbuster.functions[name].can_block_in("_runtime/timeouts.py", "call")
            if Coverage.current() is not None:
                # Coverage takes a lock inside any function; the quick tests run without it.
                blockbuster.functions[name].deactivate()
        yield blockbuster


class LoopClock:
    """The time of an event loop, which passes only when a test says so."""

    def __init__(self, now: float) -> None:
        self._now = now

    def time(self) -> float:
        return self._now

    def advance(self, seconds: float) -> None:
        self._now += seconds


@pytest.fixture
async def clock(monkeypatch: pytest.MonkeyPatch) -> LoopClock:
    """Stop the clock of the test's event loop, so that nothing times out by itself."""
    loop = asyncio.get_running_loop()
    clock = LoopClock(loop.time())
    monkeypatch.setattr(loop, "time", clock.time)
    return clock


@pytest.fixture(scope="session")
def postgres() -> Iterator[Any]:
    """Run a PostgreSQL server, on which each test makes databases of its own."""
    from audit.postgres_cluster import Cluster, programs  # noqa: PLC0415  (needs psycopg)

    if programs() is None:
        assert "GROUNDEDNESS_NEEDS_POSTGRES" not in os.environ, "CI must not skip these tests"
        pytest.skip("PostgreSQL's server programs are not here (Debian: apt install postgresql)")
    cluster = Cluster()
    yield cluster
    cluster.remove()


@pytest.fixture(scope="session")
def redis_server() -> Iterator[Any]:
    """Run a Redis server."""
    from redis_server import running_redis  # noqa: PLC0415  (named as the fixture)

    with running_redis() as server:
        yield server


@pytest.fixture(scope="session")
def running_chromium() -> Iterator[str]:
    """Run Chromium, in which each test opens contexts of its own."""
    from chromium import running_chromium  # noqa: PLC0415  (needs Playwright)

    with running_chromium() as address:
        yield address


@pytest.fixture(scope="module")
def browser(running_chromium: str) -> Iterator[Any]:
    """Control Chromium; not for longer than a module, as other tests need their own event loop."""
    from chromium import connected  # noqa: PLC0415  (as above)

    with connected(running_chromium) as browser:
        yield browser
