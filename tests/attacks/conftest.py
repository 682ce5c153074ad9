"""What all tests with attacks share."""

import logging

import pytest


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Keep what hundreds of broken replies are logged for out of the report, here alone."""
    caplog.set_level(logging.ERROR, logger="langchain_groundedness")
