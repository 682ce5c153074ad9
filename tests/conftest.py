"""Fixtures shared by all tests."""

from collections.abc import Iterator

import pytest
from blockbuster import BlockBuster, blockbuster_ctx


@pytest.fixture(autouse=True)
def blockbuster() -> Iterator[BlockBuster]:
    """Fail a test in which code of the package blocks a running event loop."""
    with blockbuster_ctx("langchain_groundedness") as blockbuster:
        yield blockbuster
