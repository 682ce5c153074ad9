"""The examples in the docstrings run and give what they say."""

import doctest

from langchain_groundedness import middleware


def test_examples_of_the_middleware_run() -> None:
    found = doctest.testmod(middleware)
    assert found.attempted >= 6
    assert found.failed == 0
