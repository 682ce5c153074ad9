"""Replies of chat models that are out of all proportion."""

import sys
from types import FrameType

import pytest
from pydantic import BaseModel

from langchain_groundedness.llm.replies import numbered_line, parse_json


class Lines(BaseModel):
    """Lines of a reply."""

    lines: list[str]


@pytest.mark.parametrize(
    "reply",
    [
        "[" * 50_000,
        '{"lines": ' + "[" * 50_000,
        '{"lines": ' + '{"lines": ' * 20_000,
        "[" + "9" * 5_000,
        '{"lines": [' + "9" * 5_000 + "]}",
        '{"lines": ' + "9" * 5_000,
    ],
)
def test_endless_brackets_and_digits_are_no_error(reply: str) -> None:
    parsed = parse_json(reply, Lines)
    assert parsed is None or all(isinstance(line, str) for line in parsed.lines)


@pytest.mark.parametrize("opened", ["[", '{"lines": '])
def test_brackets_in_brackets_do_not_fill_the_stack(opened: str) -> None:
    deepest = 0

    def watch(frame: FrameType | None, *_: object) -> None:
        nonlocal deepest
        depth = 0
        while frame is not None:
            depth, frame = depth + 1, frame.f_back
        deepest = max(deepest, depth)

    watch(sys._getframe())
    before = deepest
    sys.setprofile(watch)
    try:
        parse_json('{"lines": ' + opened * 5_000, Lines)
    finally:
        sys.setprofile(None)
    assert deepest < before + 100


def test_a_line_is_not_numbered_by_thousands_of_digits() -> None:
    assert numbered_line("9" * 5_000 + ": text") is None
