"""The contract of runnables fails for runnables that break it."""

import asyncio
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.runnables.config import (
    ensure_config,
    get_callback_manager_for_config,
    patch_config,
)
from typing_extensions import override

from langchain_groundedness.testing import Probe, RunnableContract, ScriptedChatModel


def _ignore(config: RunnableConfig) -> None:
    """Look at nothing."""


class _Upper(Runnable[str, str]):
    """Keeps the contract; the faults below inherit from it."""

    def __init__(self, probe: Probe = _ignore) -> None:
        self.inner = RunnableLambda(self._upper)
        self.probe = probe

    def _upper(self, text: str, config: RunnableConfig) -> str:
        self.probe(config)
        if text == "bad":
            msg = "bad"
            raise ValueError(msg)
        return text.upper()

    @override
    def invoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> str:
        return self._call_with_config(self._run, input, config)

    @override
    async def ainvoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> str:
        return await self._acall_with_config(self._arun, input, config)

    def _run(self, text: str, run_manager: Any, config: RunnableConfig) -> str:
        return self.inner.invoke(text, patch_config(config, callbacks=run_manager.get_child()))

    async def _arun(self, text: str, run_manager: Any, config: RunnableConfig) -> str:
        child = patch_config(config, callbacks=run_manager.get_child())
        return await self.inner.ainvoke(text, child)


class _OtherStream(_Upper):
    @override
    def stream(self, input: str, config: Any = None, **kwargs: Any) -> Iterator[str]:
        yield from super().stream(input.lower(), config)
        yield "!"


class _ChangesInput(_Upper):
    @override
    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        input.append("seen")
        return "".join(input)


class _ChangesAwaitedInput(_Upper):
    @override
    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        return super().invoke("".join(input), config)

    @override
    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        input.append("seen")
        return self.invoke(input[:-1], config)


class _ChangesConfig(_Upper):
    @override
    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        if config:
            config["tags"] = [*config.get("tags", []), "more"]
        return super().invoke(input, config)


class _ForgetsConfig(_Upper):
    def _run(self, text: str, run_manager: Any, config: RunnableConfig) -> str:
        return self.inner.invoke(text, {"callbacks": []})


class _NoRuns(_Upper):
    @override
    def invoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> str:
        return input.upper()


class _SwallowsCancellation(_Upper):
    async def _arun(self, text: str, run_manager: Any, config: RunnableConfig) -> str:
        try:
            return await super()._arun(text, run_manager, config)
        except asyncio.CancelledError:
            return ""


class _SwallowsFailures(_Upper):
    def _run(self, text: str, run_manager: Any, config: RunnableConfig) -> str:
        try:
            return super()._run(text, run_manager, config)
        except Exception:  # noqa: BLE001  (that is the fault)
            return ""


class _KeepsState(_Upper):
    last = ""

    @override
    def invoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> str:
        self.last = input
        threading.Event().wait(0.005)
        return self.last.upper()


class _EveryoneAtOnce(_Upper):
    @override
    def batch(self, inputs: Any, config: Any = None, **kwargs: Any) -> Any:
        return super().batch(inputs, None)


class _EndsIfReadToTheEnd(_Upper):
    @override
    def stream(self, input: str, config: Any = None, **kwargs: Any) -> Iterator[str]:
        given = ensure_config(config)
        manager = get_callback_manager_for_config(given).on_chain_start(
            None, input, name=given.get("run_name")
        )
        yield input.upper()
        manager.on_chain_end(input.upper())


class _Unpicklable(_Upper):
    def __init__(self, probe: Probe = _ignore) -> None:
        super().__init__(probe)
        self.lock = threading.Lock()


def contract_of(kind: type[_Upper], given: Sequence[Any] = ("a", "b")) -> RunnableContract:
    class Kept(RunnableContract):
        def runnable(self) -> Runnable[Any, Any]:
            return kind()

        def inputs(self) -> Sequence[Any]:
            return [list(each) if isinstance(each, list) else each for each in given]

        def probed(self, probe: Probe) -> Runnable[Any, Any]:
            return kind(probe)

        def bad_input(self) -> Any:
            return "bad"

    return Kept()


TESTS = [name for name in dir(RunnableContract) if name.startswith("test_")]


@pytest.mark.parametrize(
    "test",
    sorted(set(TESTS) - {"test_a_pickled_runnable_works", "test_a_saved_runnable_can_be_loaded"}),
)
def test_a_runnable_that_keeps_the_contract_passes(test: str) -> None:
    getattr(contract_of(_Upper), test)()


@pytest.mark.parametrize(
    ("kind", "test"),
    [
        (_OtherStream, "test_all_ways_to_call_agree"),
        (_ForgetsConfig, "test_a_config_reaches_inner_runs"),
        (_EndsIfReadToTheEnd, "test_a_stream_may_be_left"),
        (_NoRuns, "test_a_config_names_tags_and_describes_the_run"),
        (_SwallowsCancellation, "test_a_cancelled_run_is_cancelled"),
        (_SwallowsFailures, "test_a_failure_inside_ends_the_same_in_every_way"),
        (_SwallowsFailures, "test_a_bad_input_is_refused_in_every_way"),
        (_KeepsState, "test_concurrent_calls_do_not_mix"),
        (_EveryoneAtOnce, "test_max_concurrency_is_kept"),
        (_Unpicklable, "test_a_pickled_runnable_works"),
    ],
)
def test_a_broken_runnable_is_found_out(kind: type[_Upper], test: str) -> None:
    with pytest.raises((AssertionError, TypeError, ValueError, AttributeError)):
        getattr(contract_of(kind), test)()


def test_a_difference_is_told_with_both_outputs() -> None:
    with pytest.raises(
        AssertionError, match="stream differs from invoke for input 0: 'A!', not 'A'"
    ):
        contract_of(_OtherStream).test_all_ways_to_call_agree()


def test_an_input_that_is_changed_is_found_out() -> None:
    with pytest.raises(AssertionError):
        contract_of(_ChangesInput, (["a"], ["b"])).test_inputs_stay_as_they_are()
    with pytest.raises(AssertionError, match=r"ainvoke: an input was \['a'\] and is now"):
        contract_of(_ChangesAwaitedInput, (["a"], ["b"])).test_inputs_stay_as_they_are()


def test_a_config_that_is_changed_is_found_out() -> None:
    with pytest.raises(AssertionError, match="invoke changes the config"):
        contract_of(_ChangesConfig).test_inputs_stay_as_they_are()


def test_inputs_that_all_give_the_same_are_of_no_use() -> None:
    with pytest.raises(AssertionError):
        contract_of(_Upper, ("a", "A")).test_inputs_give_different_outputs()


def test_a_bad_input_that_nobody_refuses_is_told() -> None:
    class Kept(RunnableContract):
        def runnable(self) -> Runnable[Any, Any]:
            return _Upper()

        def inputs(self) -> Sequence[Any]:
            return ["a", "b"]

        def bad_input(self) -> Any:
            return "c"

    with pytest.raises(AssertionError, match="bad_input\\(\\) is 'c', and it is not refused"):
        Kept().test_a_bad_input_is_refused_in_every_way()


class _Finding(BaseRetriever):
    @override
    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return [Document(f"About {query}.")]


class TestRetriever(RunnableContract):
    def runnable(self) -> Runnable[Any, Any]:
        return _Finding()

    def inputs(self) -> Sequence[Any]:
        return ["Rome", "Oslo"]


class TestChatModel(RunnableContract):
    def runnable(self) -> Runnable[Any, Any]:
        return ScriptedChatModel(replies=_shouted)

    def inputs(self) -> Sequence[Any]:
        return ["who?", "where?"]

    def same(self, one: Any, other: Any) -> bool:
        return bool(one.text == other.text)  # each reply has an id of its own

    def can_be_pickled(self) -> bool:
        return False  # it holds a lock


def _shouted(messages: list[BaseMessage]) -> str:
    return messages[-1].text.upper()
