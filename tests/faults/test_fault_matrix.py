"""Whatever a model's server does wrong, at whichever entry point: right, or unchecked."""

import gc
from collections.abc import Iterator
from typing import Any

import pytest
from matrix import ENTRIES, KNOWN, SAMPLE, Cell, Models, cell, judge

from langchain_groundedness import GroundednessRunnable, VerificationError
from langchain_groundedness.testing import FAULTS, FaultyServer

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])

HARMLESS = {"duplicated_ids", "huge"}
"""What a check gets along with."""
NAMES = list(FAULTS)


class Field:
    """A server, and models that ask it."""

    def __init__(self, server: FaultyServer) -> None:
        self.server = server
        self.models = Models(server)

    def cell(self, entry: str, fault: str | None, rate: float = 1.0) -> Cell:
        return cell(self.server, self.models, entry, fault, rate)


@pytest.fixture(scope="module")
def field() -> Iterator[Field]:
    with FaultyServer(judge()) as server:
        yield Field(server)


@pytest.fixture(autouse=True)
def collected_outside_of_parsers(request: pytest.FixtureRequest) -> Iterator[None]:
    """Keep the garbage collector out of LangChain's parser of tool calls.

    It reads brackets until the stack is full, where finalizers of whatever is collected fail.
    """
    if "deep_nesting" not in request.node.name:
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@pytest.mark.parametrize("entry", ENTRIES)
def test_without_a_fault_everything_is_checked_and_right(field: Field, entry: str) -> None:
    found = field.cell(entry, None)
    assert not found.wrong
    assert set(found.ends) <= {"right", "released", "held"}
    assert found.ends["right"] >= 4 or found.ends["released"] == 3


def some_entries(fault: str) -> list[str]:
    """Give each fault five entry points of different kinds; together the faults have them all."""
    entries, first = list(ENTRIES), NAMES.index(fault)
    return [entries[(first + step) % len(entries)] for step in range(0, 30, 6)]


@pytest.mark.parametrize("fault", FAULTS)
def test_when_every_reply_is_spoiled_nothing_ends_wrong(field: Field, fault: str) -> None:
    nothing_ends_wrong(field, fault, some_entries(fault))


@pytest.mark.parametrize("fault", FAULTS)
def test_at_no_entry_point_does_anything_end_wrong(field: Field, fault: str) -> None:
    nothing_ends_wrong(field, fault, sorted(set(ENTRIES) - set(some_entries(fault))))


def nothing_ends_wrong(field: Field, fault: str, entries: list[str]) -> None:
    for entry in entries:
        assert not field.cell(entry, fault).wrong, entry
        # A client in a hurry may give up before its request has come to a busy server.
        assert field.server.spoiled or FAULTS[fault].slow
        assert not field.server.answered


@pytest.mark.parametrize("fault", FAULTS)
def test_when_some_replies_are_spoiled_the_others_count(field: Field, fault: str) -> None:
    for entry in some_entries(fault):
        assert not field.cell(entry, fault, 0.3).wrong, entry


def impatient(field: Field, fault: str) -> GroundednessRunnable:
    model, seconds = field.models.asked(fault)
    return GroundednessRunnable(model=model, model_timeout=seconds, raise_on_failure=True)


@pytest.mark.parametrize("fault", sorted(set(FAULTS) - HARMLESS - {"cut_off"}))
def test_errors_reach_the_caller_who_asks_for_them(field: Field, fault: str) -> None:
    field.server.inject(fault)
    checker = impatient(field, fault)
    with pytest.raises(VerificationError) as caught:
        checker.invoke(SAMPLE)
    assert caught.value.claim_ids
    told = str(caught.value)
    assert not any(text.rstrip(".") in told for text in KNOWN)


@pytest.mark.parametrize("fault", ["slow_first_byte", "drip", "http_429", "garbled"])
async def test_errors_reach_the_caller_who_awaits_them(field: Field, fault: str) -> None:
    field.server.inject(fault)
    checker = impatient(field, fault)
    with pytest.raises(VerificationError):
        await checker.ainvoke(SAMPLE)


def test_a_retry_after_is_obeyed_and_the_check_is_whole(field: Field) -> None:
    def once(response: Any, request: Any) -> Any:
        first = len(field.server.spoiled) == 1
        return FAULTS["http_429"].spoil(response, request) if first else response

    fault = FAULTS["http_429"].__class__("once", "HTTP 429, the first time", once)
    field.server.inject(fault)
    result = GroundednessRunnable(model=field.models.fresh("http_429")).invoke(SAMPLE)
    assert [v.verdict for v in result.claims] == [
        "supported",
        "contradicted",
        "supported",
        "unverifiable",
    ]
