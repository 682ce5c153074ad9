"""The examples in the docstrings run and give what they say."""

import doctest

from langchain_groundedness.middleware import agent


def test_examples_of_the_middleware_run() -> None:
    found = doctest.testmod(agent)
    assert found.attempted >= 6
    assert found.failed == 0
