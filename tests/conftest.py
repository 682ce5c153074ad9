"""Fixtures shared by all tests."""

import signal
from collections.abc import Iterator

import pytest
from blockbuster import BlockBuster, blockbuster_ctx
from hypothesis import settings

# A property holds or not however busy the machine is; how long a whole test may take is bounded.
settings.register_profile("shared", deadline=None)
settings.load_profile("shared")


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
