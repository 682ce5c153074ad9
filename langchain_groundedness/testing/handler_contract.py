"""The contract of callback handlers, as a test class to inherit from."""

import asyncio
import copy
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Generator, Sequence
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import Runnable, RunnableLambda

from langchain_groundedness.testing.call_modes import (
    CALL_MODES,
    assert_equal,
    error_of,
    run_bounded,
    shortened,
    skip,
)

__all__ = ["CallbackHandlerContract"]


class CallbackHandlerContract(ABC):
    """Tests that a handler changes nothing, mixes nothing and keeps nothing.

    Inherit from it in a test module, in a class whose name begins with `Test`.

    Example:
        >>> class TestQuietHandler(CallbackHandlerContract):
        ...     def handler(self):
        ...         return BaseCallbackHandler()
        ...
        ...     def chain(self):
        ...         return RunnableLambda(str.upper)
        ...
        ...     def inputs(self):
        ...         return ["a", "b"]
        >>> TestQuietHandler().test_the_chain_gives_what_it_gives_without_the_handler()
    """

    @abstractmethod
    def handler(self) -> BaseCallbackHandler:
        """Make the handler, anew at each call."""

    @abstractmethod
    def chain(self) -> Runnable[Any, Any]:
        """Make a chain that the handler is attached to."""

    @abstractmethod
    def inputs(self) -> Sequence[Any]:
        """Give at least two inputs of the chain, with different outputs."""

    def broken(self) -> BaseCallbackHandler | None:
        """Make the handler with something in it that fails at every run; `None` if nothing can."""
        return None

    def found(self, handler: BaseCallbackHandler) -> Sequence[Any]:
        """Give what the handler has found out so far, one value per run, in any order."""
        return ()

    def kept(self, handler: BaseCallbackHandler) -> int:
        """Count the runs of which the handler still keeps something to work on."""
        return 0

    def test_the_chain_gives_what_it_gives_without_the_handler(self) -> None:
        """The output is the same, whichever way the chain is called."""
        for given in self.inputs():
            for name, call in CALL_MODES.items():
                alone = call(self.chain(), given, None)
                watched = call(self.chain(), given, {"callbacks": [self.handler()]})
                assert_equal(watched, alone, f"{name} gives something else with the handler")

    def test_inputs_stay_as_they_are(self) -> None:
        """The handler changes nothing of what the chain is given."""
        for given in self.inputs():
            before = copy.deepcopy(given)
            for name, call in CALL_MODES.items():
                call(self.chain(), given, {"callbacks": [self.handler()]})
                assert_equal(given, before, f"{name}: the handler changes an input")

    def test_a_stream_has_the_same_chunks(self) -> None:
        """The chunks are the same, sync and async."""
        given, config = self.inputs()[0], {"callbacks": [self.handler()]}

        async def chunks() -> list[Any]:
            return [chunk async for chunk in self.chain().astream(given, config)]  # type: ignore[arg-type]  # a literal

        alone = list(self.chain().stream(given))
        found = list(self.chain().stream(given, config))  # type: ignore[arg-type]  # same
        assert_equal(found, alone, "stream gives other chunks with the handler")
        assert_equal(run_bounded(chunks()), alone, "astream gives other chunks with the handler")

    def test_a_failing_chain_fails_as_it_does_without_the_handler(self) -> None:
        """The chain's own exception comes through, and nothing is kept of the run."""
        failing = self.chain() | RunnableLambda(_fail)
        for name, call in CALL_MODES.items():
            handler = self.handler()
            error = error_of(call, failing, self.inputs()[0], {"callbacks": [handler]})
            came = shortened(error) if error else "no exception"
            assert isinstance(error, _ChainError), f"{name}: {came}, not the chain's exception"
            assert self.kept(handler) == 0, f"{name}: something is kept of a failed run"

    def test_what_breaks_in_the_handler_stays_in_the_handler(self) -> None:
        """The chain goes on as if nothing had happened."""
        if self.broken() is None:
            skip("broken() gives none")
        for given in self.inputs():
            for name, call in CALL_MODES.items():
                broken: Any = self.broken()
                watched = call(self.chain(), given, {"callbacks": [broken]})
                alone = call(self.chain(), given, None)
                assert_equal(watched, alone, f"{name} gives something else with a broken handler")

    def test_nothing_is_kept_of_a_run_that_has_ended(self) -> None:
        """The state of a run is freed at its end."""
        self._needs("kept")
        for name, call in CALL_MODES.items():
            handler = self.handler()
            call(self.chain(), self.inputs()[0], {"callbacks": [handler]})
            assert self.kept(handler) == 0, f"{name}: something is kept"

    def test_nothing_is_kept_of_a_stream_that_is_left(self) -> None:
        """Whoever stops reading a stream frees its state, sync and async."""
        self._needs("kept")
        given, handler = self.inputs()[0], self.handler()
        chunks = self.chain().stream(given, {"callbacks": [handler]})
        assert isinstance(chunks, Generator)
        next(chunks)
        chunks.close()
        assert self.kept(handler) == 0, "something is kept of a stream that was left"

        async def leave(other: BaseCallbackHandler) -> None:
            found = self.chain().astream(given, {"callbacks": [other]})
            assert isinstance(found, AsyncGenerator)
            await anext(found)
            await found.aclose()

        other = self.handler()
        run_bounded(leave(other))
        assert self.kept(other) == 0, "something is kept of an async stream that was left"

    def test_nothing_is_kept_of_a_run_that_is_cancelled(self) -> None:
        """A cancelled run frees its state, if `kept` tells, and the cancellation comes through."""
        handler, reached = self.handler(), asyncio.Event()

        async def wait(_: Any) -> None:
            reached.set()
            await asyncio.Event().wait()

        async def cancel() -> None:
            chain = self.chain() | RunnableLambda(_fail, afunc=wait)
            config: Any = {"callbacks": [handler]}
            run = asyncio.create_task(chain.ainvoke(self.inputs()[0], config))
            waiting = asyncio.create_task(reached.wait())
            await asyncio.wait([run, waiting], return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            if run.done():
                error = None if run.cancelled() else run.exception()
                ended = shortened(error) if error else "no exception"
                msg = f"the run ended before it could be cancelled: {ended}"
                raise AssertionError(msg) from error
            run.cancel()
            await asyncio.wait([run])
            assert run.cancelled(), "the cancellation was lost"

        run_bounded(cancel())
        assert self.kept(handler) == 0, "something is kept of a cancelled run"

    def test_one_handler_serves_runs_at_the_same_time(self) -> None:
        """What is found out about runs side by side is what is found out one by one."""
        self._needs("found")
        inputs, chain = list(self.inputs()) * 6, self.chain()
        alone = self.handler()
        for each in inputs:
            chain.invoke(each, {"callbacks": [alone]})
        expected = sorted(map(repr, self.found(alone)))
        message = f"found() gives {len(expected)} values for {len(inputs)} runs, not one for each"
        assert len(expected) == len(inputs), message
        in_threads = self.handler()
        chain.batch(inputs, {"callbacks": [in_threads], "max_concurrency": 6})
        found = sorted(map(repr, self.found(in_threads)))
        assert_equal(found, expected, "runs in threads have mixed")
        on_a_loop = self.handler()
        run_bounded(chain.abatch(inputs, {"callbacks": [on_a_loop]}))
        assert_equal(
            sorted(map(repr, self.found(on_a_loop))), expected, "runs on a loop have mixed"
        )

    def test_given_twice_it_works_once(self) -> None:
        """A handler in the config and bound to the chain tells of each run once."""
        self._needs("found")
        handler, given = self.handler(), self.inputs()[0]
        bound = self.chain().with_config(callbacks=[handler])
        bound.invoke(given, {"callbacks": [handler]})
        once = self.handler()
        self.chain().invoke(given, {"callbacks": [once]})
        twice, expected = len(self.found(handler)), len(self.found(once))
        assert twice == expected, f"given twice it finds {twice} things, given once {expected}"

    def _needs(self, hook: str) -> None:
        if getattr(type(self), hook) is getattr(CallbackHandlerContract, hook):
            skip(f"{hook}() is not given")


def _fail(_: Any) -> Any:
    raise _ChainError


class _ChainError(Exception):
    """What a chain of this contract fails with."""
