"""The contract of handlers fails for handlers that break it."""

import asyncio
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import Runnable, RunnableLambda

from langchain_groundedness.testing import CallbackHandlerContract
from langchain_groundedness.testing.contract import assert_equal


class _Counting(BaseCallbackHandler):
    """Keeps the contract; the faults below inherit from it."""

    def __init__(self) -> None:
        self.under_way: dict[UUID, Any] = {}
        self.found: list[Any] = []

    def on_chain_start(self, serialized: Any, inputs: Any, *, run_id: UUID, **kwargs: Any) -> None:
        if kwargs.get("parent_run_id") is None:
            self.under_way[run_id] = inputs

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **kwargs: Any) -> None:
        if run_id in self.under_way:
            del self.under_way[run_id]
            self.found.append(outputs)

    def on_chain_error(self, error: Any, *, run_id: UUID, **kwargs: Any) -> None:
        self.under_way.pop(run_id, None)


class _Raising(_Counting):
    raise_error = True

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **kwargs: Any) -> None:
        raise RuntimeError


class _Changing(_Counting):
    def on_chain_end(self, outputs: Any, *, run_id: UUID, **kwargs: Any) -> None:
        super().on_chain_end(outputs, run_id=run_id, **kwargs)
        outputs.append("seen")


class _ChangingInputs(_Counting):
    def on_chain_start(self, serialized: Any, inputs: Any, *, run_id: UUID, **kwargs: Any) -> None:
        super().on_chain_start(serialized, inputs, run_id=run_id, **kwargs)
        inputs.setdefault("seen", True)


class _Cancelling(_Counting):
    raise_error = True

    def on_chain_start(self, serialized: Any, inputs: Any, *, run_id: UUID, **kwargs: Any) -> None:
        raise asyncio.CancelledError


class _Forgetful(_Counting):
    def on_chain_error(self, error: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Free nothing."""


class _Mixing(_Counting):
    last: Any = None

    def on_chain_start(self, serialized: Any, inputs: Any, *, run_id: UUID, **kwargs: Any) -> None:
        super().on_chain_start(serialized, inputs, run_id=run_id, **kwargs)
        self.last = inputs

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **kwargs: Any) -> None:
        super().on_chain_end([self.last], run_id=run_id, **kwargs)


def contract_of(
    kind: type[_Counting], inputs: Sequence[Any] = ("a", "b", "c")
) -> CallbackHandlerContract:
    class Kept(CallbackHandlerContract):
        def handler(self) -> BaseCallbackHandler:
            return kind()

        def chain(self) -> Runnable[Any, Any]:
            return RunnableLambda(lambda text: [text, str(text).upper()])

        def inputs(self) -> Sequence[Any]:
            return inputs

        def found(self, handler: Any) -> Sequence[Any]:
            return list(handler.found)

        def kept(self, handler: Any) -> int:
            return len(handler.under_way)

    return Kept()


TESTS = [name for name in dir(CallbackHandlerContract) if name.startswith("test_")]


@pytest.mark.parametrize("test", TESTS)
def test_a_handler_that_keeps_the_contract_passes(test: str) -> None:
    getattr(contract_of(_Counting), test)()


@pytest.mark.parametrize(
    ("kind", "test"),
    [
        (_Raising, "test_the_chain_gives_what_it_gives_without_the_handler"),
        (_Changing, "test_the_chain_gives_what_it_gives_without_the_handler"),
        (_Forgetful, "test_a_failing_chain_fails_as_it_does_without_the_handler"),
        (_Forgetful, "test_nothing_is_kept_of_a_run_that_is_cancelled"),
        (_Mixing, "test_one_handler_serves_runs_at_the_same_time"),
    ],
)
def test_a_broken_handler_is_found_out(kind: type[_Counting], test: str) -> None:
    with pytest.raises((AssertionError, RuntimeError)):
        getattr(contract_of(kind), test)()


def test_a_handler_that_changes_an_input_is_found_out() -> None:
    with pytest.raises(AssertionError, match="invoke: the handler changes an input"):
        contract_of(_ChangingInputs, ({"q": 1},)).test_inputs_stay_as_they_are()


def test_both_outputs_are_shown_if_a_handler_changes_one() -> None:
    contract = contract_of(_Changing)
    told = r"with the handler: \['a', 'A', 'seen'\], not \['a', 'A'\]"
    with pytest.raises(AssertionError, match=told):
        contract.test_the_chain_gives_what_it_gives_without_the_handler()


@pytest.mark.parametrize(
    ("kind", "ended"), [(_Raising, r"RuntimeError\(\)"), (_Cancelling, "no exception")]
)
def test_a_run_that_ends_before_it_is_cancelled_is_not_waited_for(
    kind: type[_Counting], ended: str
) -> None:
    with pytest.raises(AssertionError, match=f"before it could be cancelled: {ended}"):
        contract_of(kind).test_nothing_is_kept_of_a_run_that_is_cancelled()


def test_a_late_difference_is_shown() -> None:
    one, other = ["a" * 500, 1, "b" * 900], ["a" * 500, 2, "b" * 900]
    with pytest.raises(AssertionError) as raised:
        assert_equal(one, other, "they differ")
    found, expected = str(raised.value).removeprefix("they differ: ").split(", not ")
    assert len(found) < 500
    assert "', 1, 'b" in found
    assert "', 2, 'b" in expected
