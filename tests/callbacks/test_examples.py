"""The examples in the docstrings of the handlers run, and print what they say."""

import doctest
from importlib import import_module

import pytest


@pytest.mark.parametrize("module", ["handlers", "channel"])
def test_examples_print_what_they_say(module: str) -> None:
    found = doctest.testmod(import_module(f"langchain_groundedness.callbacks.{module}"))
    assert found.attempted > 0
    assert found.failed == 0
