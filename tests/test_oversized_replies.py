"""Replies of chat models that are out of all proportion."""

import gc

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


def stack_left(frames: int) -> None:
    if frames:
        stack_left(frames - 1)


@pytest.mark.parametrize("opened", ["[", '{"lines": '])
def test_brackets_in_brackets_leave_the_garbage_collector_its_stack(opened: str) -> None:
    failed = 0

    def collecting(*_: object) -> None:
        nonlocal failed
        try:
            stack_left(20)  # as a finalizer may need
        except RecursionError:
            failed += 1

    before = gc.get_threshold()
    gc.callbacks.append(collecting)
    gc.set_threshold(1)
    try:
        parse_json('{"lines": ' + opened * 5_000, Lines)
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(collecting)
    assert not failed


def test_a_line_is_not_numbered_by_thousands_of_digits() -> None:
    assert numbered_line("9" * 5_000 + ": text") is None
