"""Contracts of runnables, callback handlers and agent middleware: test classes to inherit from."""

import asyncio
import copy
import pickle
import threading
from abc import ABC, abstractmethod
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing, closing
from itertools import takewhile
from typing import Any, NoReturn

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.load import dumpd, load
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda, RunnablePassthrough
from langchain_core.tracers.base import BaseTracer
from langchain_core.tracers.schemas import Run
from pydantic import BaseModel, RootModel
from typing_extensions import override

from langchain_groundedness.exceptions import require

__all__ = [
    "AgentMiddlewareContract",
    "CallbackHandlerContract",
    "Probe",
    "ProbeError",
    "RunnableContract",
    "assert_equal",
]


Probe = Callable[[RunnableConfig], None]
"""A function that a test injects, to see the config of an inner run or to fail there."""

CallMode = Callable[[Runnable[Any, Any], Any, RunnableConfig | None], Any]

_TAG, _NAME = "contract-tag", "contract-run"

_METADATA = {"contract": "kept"}

_LIMIT = 7

_AT_ONCE = 2


class ProbeError(Exception):
    """The failure that a contract test injects into a runnable."""


class RunnableContract(ABC):
    """Tests that a runnable agrees with itself, hands its config on, and shares nothing.

    Inherit from it in a test module, in a class whose name begins with `Test`, and say how the
    runnable is made and what it accepts. A test whose hook gives nothing is skipped. The contract
    cannot see how long `ainvoke` blocks the event loop: that takes a clock, and a machine that does
    nothing else.

    Example:
        >>> class TestUpperCase(RunnableContract):
        ...     def runnable(self):
        ...         return RunnableLambda(str.upper)
        ...
        ...     def inputs(self):
        ...         return ["a", "b"]
        >>> TestUpperCase().test_all_ways_to_call_agree()
    """

    @abstractmethod
    def runnable(self) -> Runnable[Any, Any]:
        """Make a new runnable at each call."""

    @abstractmethod
    def inputs(self) -> Sequence[Any]:
        """Give at least two valid inputs, with different outputs."""

    def probed(self, probe: Probe) -> Runnable[Any, Any] | None:
        """Make the runnable with a call of the probe in one of its inner runs.

        Args:
            probe: To be called, with the config of the inner run, before anything can fail. What
                it raises must not be caught by your part of the runnable.

        Returns:
            The runnable; `None` if it has no inner runs.
        """
        return None

    def bad_input(self) -> Any:
        """Give an input that is refused with an exception; `None` if every input is accepted."""
        return None

    def load_arguments(self) -> dict[str, Any]:
        """Give the arguments with which `langchain_core.load.load` makes the runnable again."""
        return {}

    def can_be_pickled(self) -> bool:
        """Tell whether `pickle` can copy it; not, for example, with a lambda or a lock inside."""
        return True

    def can_be_saved(self) -> bool:
        """Tell whether `dumpd` and `load` can save it; a `RunnableLambda` cannot be."""
        return True

    def same(self, one: Any, other: Any) -> bool:
        """Tell whether two outputs are the same.

        Args:
            one: What one call gave.
            other: What another call gave.

        Returns:
            By default, whether they are equal.
        """
        return bool(one == other)

    def failure(self) -> type[Exception] | None:
        """Say what a failure inside is raised as; `None` if it is turned into an output."""
        return ProbeError

    def most_at_once(self, max_concurrency: int) -> int:
        """Say how many inner runs a batch may have at once.

        Args:
            max_concurrency: What the config of the batch says.

        Returns:
            By default the same; more for a runnable that documents that each of its calls takes
            as many separately.
        """
        return max_concurrency

    # --- agreement

    def test_all_ways_to_call_agree(self) -> None:
        """`invoke`, `batch`, `stream`, `transform` and their async forms give the same."""
        inputs = self.inputs()
        expected = [self.runnable().invoke(each) for each in inputs]
        for name, found in outputs_by_mode(self.runnable, inputs):
            assert len(found) == len(expected), f"{name} gives {len(found)} outputs"
            for place, (one, other) in enumerate(zip(expected, found, strict=True)):
                self._agree(other, one, f"{name} differs from invoke for input {place}")

    def test_inputs_give_different_outputs(self) -> None:
        """The inputs of this test class give at least two different outputs."""
        outputs = [self.runnable().invoke(each) for each in self.inputs()]
        message = (
            f"inputs() must give two or more different outputs; theirs are {shortened(outputs)}"
        )
        assert any(not self.same(outputs[0], other) for other in outputs[1:]), message

    def test_inputs_stay_as_they_are(self) -> None:
        """Nothing that is given is changed, input or config, whichever way it is called."""
        for each in self.inputs():
            before = copy.deepcopy(each)
            for name, call in CALL_MODES.items():
                config = _config(SeenRuns())
                given = {key: copy.copy(value) for key, value in config.items()}
                call(self.runnable(), each, config)
                message = f"{name}: an input was {shortened(before)} and is now {shortened(each)}"
                assert each == before, message
                assert config == given, f"{name} changes the config: {difference(config, given)}"

    def test_a_runnable_can_be_used_again(self) -> None:
        """A second call gives what the first gave."""
        runnable = self.runnable()
        for each in self.inputs():
            first = runnable.invoke(each)
            self._agree(runnable.invoke(each), first, "a second call differs from the first")

    def test_bindings_and_sequences_give_the_same(self) -> None:
        """`with_config`, `with_retry`, `with_fallbacks` and `|` change nothing."""
        given = self.inputs()[0]
        expected = self.runnable().invoke(given)
        for name, other in {
            "with_config": self.runnable().with_config(tags=[_TAG]),
            "with_retry": self.runnable().with_retry(stop_after_attempt=1),
            "with_fallbacks": self.runnable().with_fallbacks([RunnableLambda(_never)]),
            "a sequence": self.runnable() | RunnablePassthrough(),
        }.items():
            self._agree(other.invoke(given), expected, f"{name} changes the output")
            found = run_bounded(other.ainvoke(given))
            self._agree(found, expected, f"{name} changes the output of ainvoke")

    # --- config

    def test_a_config_names_tags_and_describes_the_run(self) -> None:
        """Name, tags and metadata reach the run, whichever way it is called."""
        for name, call in CALL_MODES.items():
            seen = SeenRuns()
            call(self.runnable(), self.inputs()[0], _config(seen))
            roots = [run for run in seen.runs if run.parent_run_id is None]
            assert len(roots) == 1, f"{name}: {len(roots)} outermost runs, where one is expected"
            [root] = roots
            assert root.name == _NAME, f"{name}: the run is called {root.name!r}"
            assert _TAG in (root.tags or ()), f"{name}: the tag is lost"
            assert _METADATA.items() <= root.metadata.items(), f"{name}: the metadata are lost"

    def test_every_run_has_an_end(self) -> None:
        """Handlers see the end of every run whose start they saw."""
        for name, call in CALL_MODES.items():
            seen = SeenRuns()
            call(self.runnable(), self.inputs()[0], _config(seen))
            assert not seen.open(), f"{name}: no end of {seen.open()}"

    def test_a_config_reaches_inner_runs(self) -> None:
        """Callbacks, tags, metadata and limits reach inner runs; the name does not."""
        for name, call in CALL_MODES.items():
            seen, configs = SeenRuns(), list[RunnableConfig]()
            runnable = self._with_probe(configs.append)
            call(runnable, self.inputs()[0], {**_config(seen), "recursion_limit": _LIMIT})
            assert configs, f"{name}: the probe was not called"
            assert len(seen.runs) > 1, f"{name}: no handler sees the inner run"
            for config in configs:
                assert _TAG in (config.get("tags") or ()), f"{name}: the tag is lost inside"
                metadata = config.get("metadata") or {}
                assert _METADATA.items() <= metadata.items(), f"{name}: metadata are lost inside"
                assert config.get("recursion_limit") == _LIMIT, f"{name}: limits are lost inside"
            inside = [run.name for run in seen.runs if run.parent_run_id is not None]
            assert _NAME not in inside, f"{name}: an inner run has the name of the outer one"

    def test_max_concurrency_is_kept(self) -> None:
        """A batch has at most as many inner runs at once as `max_concurrency` says."""
        at_work, most, lock = 0, 0, threading.Lock()

        def probe(_: RunnableConfig) -> None:
            nonlocal at_work, most
            with lock:
                at_work += 1
                most = max(most, at_work)
            threading.Event().wait(0.01)  # long enough for the others to start
            with lock:
                at_work -= 1

        inputs = list(self.inputs()) * 3
        self._with_probe(probe).batch(inputs, {"max_concurrency": _AT_ONCE})
        assert most, "batch: the probe was not called"
        allowed = self.most_at_once(_AT_ONCE)
        assert most <= allowed, f"batch has {most} at work at once"
        run_bounded(self._with_probe(probe).abatch(inputs, {"max_concurrency": _AT_ONCE}))
        assert most <= allowed, f"abatch has {most} at work at once"

    def test_events_are_streamed(self) -> None:
        """`astream_events` reports the start and the end of the run."""

        async def events() -> list[Any]:
            stream = self.runnable().astream_events(
                self.inputs()[0], version="v2", config={"run_name": _NAME}
            )
            return [event["event"] async for event in stream if event["name"] == _NAME]

        found = run_bounded(events())
        kind = found[0].removesuffix("_start") if found else "on_chain"
        started, ended = f"{kind}_start", f"{kind}_end"
        assert found[:1] == [started], f"the first events are {found[:3]}, not {started}"
        assert found[-1] == ended, f"the last events are {found[-3:]}, not {ended}"

    def test_a_stream_may_be_left(self) -> None:
        """Reading only one chunk ends the run.

        If that cancels a chat model inside, LangChain does not report the model's end.
        """
        for name, leave in _LEAVING.items():
            seen = SeenRuns()
            leave(self.runnable(), self.inputs()[0], _config(seen))
            assert _NAME not in seen.open(), f"{name}: left after one chunk, the run has no end"

    # --- failures

    def test_a_bad_input_is_refused_in_every_way(self) -> None:
        """Each way to call raises the same exception for an input that cannot be read."""
        bad = self.bad_input()
        if bad is None:
            skip("bad_input() gives none")
        kinds = {
            name: type(error_of(call, self.runnable(), bad)) for name, call in CALL_MODES.items()
        }
        assert len(set(kinds.values())) == 1, f"not the same exception: {kinds}"
        accepted = f"bad_input() is {shortened(bad)}, and it is not refused"
        assert type(None) not in kinds.values(), accepted

    def test_one_bad_input_does_not_spoil_a_batch(self) -> None:
        """With `return_exceptions`, the others of the batch are as they would be alone."""
        bad, good = self.bad_input(), self.inputs()[0]
        if bad is None:
            skip("bad_input() gives none")
        expected = self.runnable().invoke(good)
        batch = self.runnable().batch([good, bad, good], return_exceptions=True)
        abatch = run_bounded(self.runnable().abatch([good, bad, good], return_exceptions=True))
        for name, found in {"batch": batch, "abatch": abatch}.items():
            message = (
                f"{name} gives {shortened(found[1])} for the bad input, which is not an exception"
            )
            assert isinstance(found[1], Exception), message
            for other in (found[0], found[2]):
                self._agree(other, expected, f"{name} differs from invoke beside a bad input")

    def test_a_failure_inside_ends_the_same_in_every_way(self) -> None:
        """A failure inside is raised, or absorbed, whichever way the runnable was called."""

        def fail(_: RunnableConfig) -> None:
            raise ProbeError

        self._ends(CALL_MODES, fail, self.failure() or type(None))

    def test_a_cancelled_run_is_cancelled(self) -> None:
        """A cancellation is never treated as a failure: it propagates, and every run ends."""

        def cancel(_: RunnableConfig) -> None:
            raise asyncio.CancelledError

        self._ends(ASYNC_CALL_MODES, cancel, asyncio.CancelledError)

    # --- saving, describing, sharing

    def test_a_pickled_runnable_works(self) -> None:
        """A copy made by `pickle` gives what the original gives."""
        if not self.can_be_pickled():
            skip("can_be_pickled() says no")
        given = self.inputs()[0]
        revived = pickle.loads(pickle.dumps(self.runnable()))  # noqa: S301  (made here)
        expected = self.runnable().invoke(given)
        self._agree(revived.invoke(given), expected, "the pickled copy differs")

    def test_a_saved_runnable_can_be_loaded(self) -> None:
        """`load(dumpd(...))` gives a runnable that works the same."""
        runnable = self.runnable()
        says_so = getattr(runnable, "is_lc_serializable", lambda: False)()
        if not (says_so and self.can_be_saved()):
            skip("it does not say that it can be saved")
        revived = load(dumpd(runnable), **self.load_arguments())
        given = self.inputs()[0]
        self._agree(revived.invoke(given), runnable.invoke(given), "the loaded copy differs")

    def test_schemas_and_graph_can_be_made(self) -> None:
        """Input and output have JSON schemas, and the graph can be drawn."""
        runnable = self.runnable()
        assert isinstance(runnable.get_input_jsonschema(), dict)
        assert isinstance(runnable.get_output_jsonschema(), dict)
        assert runnable.get_graph().nodes

    def test_the_output_is_of_the_declared_type(self) -> None:
        """If the output schema is a model of the output, the output is one."""
        schema = self.runnable().get_output_schema()
        found = self.runnable().invoke(self.inputs()[0])
        if isinstance(found, BaseModel) and not issubclass(schema, RootModel):
            message = f"the output is a {type(found).__name__}, the schema says {schema.__name__}"
            assert isinstance(found, schema), message

    def test_concurrent_calls_do_not_mix(self) -> None:
        """Many calls of one runnable at once give what each gives alone."""
        runnable, inputs = self.runnable(), list(self.inputs()) * 8
        expected = [self.runnable().invoke(each) for each in self.inputs()] * 8
        in_threads = runnable.batch(inputs, {"max_concurrency": 8})

        async def gather() -> list[Any]:
            return await asyncio.gather(*(runnable.ainvoke(each) for each in inputs))

        for name, found in {"batch": in_threads, "gather": run_bounded(gather())}.items():
            for one, other in zip(expected, found, strict=True):
                self._agree(other, one, f"{name}: concurrent calls differ from single calls")

    # --- how

    def _ends(self, modes: Mapping[str, CallMode], probe: Probe, wanted: type) -> None:
        for name, call in modes.items():
            seen = SeenRuns()
            ended = error_of(call, self._with_probe(probe), self.inputs()[0], _config(seen))
            assert isinstance(ended, wanted), f"{name}: {shown(ended)}, not {wanted.__name__}"
            assert not seen.open(), f"{name}: no end of {seen.open()}"

    def _agree(self, found: Any, expected: Any, message: str) -> None:
        assert self.same(expected, found), f"{message}: {difference(found, expected)}"

    def _with_probe(self, probe: Probe) -> Runnable[Any, Any]:
        return self.probed(probe) or skip("probed() gives no runnable")


class SeenRuns(BaseTracer):
    """Remembers the runs of chains, models, tools and retrievers."""

    run_inline = True

    def __init__(self) -> None:
        """Start with none."""
        super().__init__()
        self.runs: list[Run] = []

    def open(self) -> list[str]:
        """Name the runs that have not ended."""
        return [run.name for run in self.runs if run.end_time is None]

    @override
    def _start_trace(self, run: Run) -> None:
        super()._start_trace(run)
        self.runs.append(run)

    @override
    def _persist_run(self, run: Run) -> None:
        """Keep nothing beyond what was noted."""


def _config(seen: SeenRuns) -> RunnableConfig:
    return {"callbacks": [seen], "tags": [_TAG], "metadata": dict(_METADATA), "run_name": _NAME}


def _never(_: Any) -> Any:
    msg = "the fallback was called"
    raise AssertionError(msg)


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
        """Make a new handler at each call."""

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
        """Give the handler's findings so far, one value per run, in any order."""
        return ()

    def kept(self, handler: BaseCallbackHandler) -> int:
        """Count the runs of which the handler still keeps something to work on."""
        return 0

    def test_the_chain_gives_what_it_gives_without_the_handler(self) -> None:
        """The output is the same, whichever way the chain is called."""
        self._changes_nothing(self.handler, "the handler")

    def test_inputs_stay_as_they_are(self) -> None:
        """The handler changes nothing of what the chain is given."""
        for given in self.inputs():
            before = copy.deepcopy(given)
            for name, call in CALL_MODES.items():
                call(self.chain(), given, {"callbacks": [self.handler()]})
                assert_equal(given, before, f"{name}: the handler changes an input")

    def test_a_stream_has_the_same_chunks(self) -> None:
        """The chunks are the same, sync and async."""
        given, config = self.inputs()[0], RunnableConfig(callbacks=[self.handler()])
        alone = list(self.chain().stream(given))
        found = list(self.chain().stream(given, config))
        assert_equal(found, alone, "stream gives other chunks with the handler")
        found = run_bounded(_listed(self.chain().astream(given, config)))
        assert_equal(found, alone, "astream gives other chunks with the handler")

    def test_a_failing_chain_fails_as_it_does_without_the_handler(self) -> None:
        """The chain's own exception propagates, and nothing is kept of the run."""
        failing = self.chain() | RunnableLambda(_fail)
        for name, call in CALL_MODES.items():
            handler = self.handler()
            error = error_of(call, failing, self.inputs()[0], {"callbacks": [handler]})
            message = f"{name}: {shown(error)}, not the chain's exception"
            assert isinstance(error, ProbeError), message
            assert self.kept(handler) == 0, f"{name}: something is kept of a failed run"

    def test_what_breaks_in_the_handler_stays_in_the_handler(self) -> None:
        """The chain goes on as if nothing had happened."""
        if self.broken() is None:
            skip("broken() gives none")
        self._changes_nothing(self.broken, "a broken handler")

    def test_nothing_is_kept_of_a_run_that_has_ended(self) -> None:
        """The state of a run is freed at its end."""
        self._keeps_nothing(CALL_MODES, "a run that has ended")

    def test_nothing_is_kept_of_a_stream_that_is_left(self) -> None:
        """Leaving a stream early frees its state, sync and async."""
        self._keeps_nothing(_LEAVING, "a stream that was left")

    def test_nothing_is_kept_of_a_run_that_is_cancelled(self) -> None:
        """A cancelled run frees its state, if `kept` shows it, and the cancellation propagates."""
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
                msg = f"the run ended before it could be cancelled: {shown(error)}"
                raise AssertionError(msg) from error
            run.cancel()
            await asyncio.wait([run])
            assert run.cancelled(), "the cancellation was lost"

        run_bounded(cancel())
        assert self.kept(handler) == 0, "something is kept of a cancelled run"

    def test_one_handler_serves_runs_at_the_same_time(self) -> None:
        """Concurrent runs give the same findings as runs one after the other."""
        self._needs("found")
        inputs, chain = list(self.inputs()) * 6, self.chain()

        def findings(run: Callable[[Any], Any]) -> list[str]:
            handler = self.handler()
            run({"callbacks": [handler]})
            return sorted(map(repr, self.found(handler)))

        expected = findings(lambda config: [chain.invoke(each, config) for each in inputs])
        message = f"found() gives {len(expected)} values for {len(inputs)} runs, not one for each"
        assert len(expected) == len(inputs), message
        in_threads = findings(lambda config: chain.batch(inputs, config | {"max_concurrency": 6}))
        assert_equal(in_threads, expected, "concurrent runs in threads mix their results")
        on_a_loop = findings(lambda config: run_bounded(chain.abatch(inputs, config)))
        assert_equal(on_a_loop, expected, "concurrent runs on a loop mix their results")

    def test_given_twice_it_works_once(self) -> None:
        """A handler given both in the config and bound to the chain reports each run once."""
        self._needs("found")
        handler, given = self.handler(), self.inputs()[0]
        bound = self.chain().with_config(callbacks=[handler])
        bound.invoke(given, {"callbacks": [handler]})
        once = self.handler()
        self.chain().invoke(given, {"callbacks": [once]})
        twice, expected = len(self.found(handler)), len(self.found(once))
        assert twice == expected, f"given twice it finds {twice} things, given once {expected}"

    def _changes_nothing(self, make: Callable[[], Any], what: str) -> None:
        for given in self.inputs():
            for name, call in CALL_MODES.items():
                alone = call(self.chain(), given, None)
                watched = call(self.chain(), given, {"callbacks": [make()]})
                assert_equal(watched, alone, f"{name} gives something else with {what}")

    def _keeps_nothing(self, modes: Mapping[str, CallMode], of: str) -> None:
        self._needs("kept")
        for name, call in modes.items():
            handler = self.handler()
            call(self.chain(), self.inputs()[0], {"callbacks": [handler]})
            assert self.kept(handler) == 0, f"{name}: something is kept of {of}"

    def _needs(self, hook: str) -> None:
        if getattr(type(self), hook) is getattr(CallbackHandlerContract, hook):
            skip(f"{hook}() is not given")


def _fail(_: Any) -> Any:
    raise ProbeError


class AgentMiddlewareContract(ABC):
    """Tests that a middleware works the same in every way an agent is run, and shares nothing.

    Inherit from it in a test module, in a class whose name begins with `Test`.

    Example:
        >>> from langchain.agents import create_agent
        >>> from langchain.agents.middleware import ModelCallLimitMiddleware
        >>> from langchain_groundedness.testing import ScriptedChatModel
        >>> class TestCallLimit(AgentMiddlewareContract):
        ...     def middleware(self):
        ...         return ModelCallLimitMiddleware(run_limit=5)
        ...
        ...     def agent(self, middleware, checkpointer=None):
        ...         model = ScriptedChatModel(replies=lambda asked: asked[-1].text.upper())
        ...         return create_agent(model, middleware=middleware, checkpointer=checkpointer)
        ...
        ...     def questions(self):
        ...         return ["Who?", "Where?"]
        >>> TestCallLimit().test_all_ways_to_run_agree()
    """

    @abstractmethod
    def middleware(self) -> Any:
        """Make a new middleware at each call."""

    @abstractmethod
    def agent(self, middleware: Sequence[Any], checkpointer: Any = None) -> Runnable[Any, Any]:
        """Make an agent with a model that answers by what it is asked, never by its turn.

        Args:
            middleware: What the agent gets.
            checkpointer: What it keeps its state in; `None` for no memory.
        """

    @abstractmethod
    def questions(self) -> Sequence[str]:
        """Give at least two questions with different answers."""

    def changes_answers(self) -> bool:
        """Tell whether the middleware replaces the text of an answer."""
        return False

    def test_all_ways_to_run_agree(self) -> None:
        """`invoke`, `stream` and their async forms end in the same messages."""
        for question in self.questions():
            expected = _content(self.agent([self.middleware()]).invoke(_input(question)))
            for name, found in self._messages(question):
                assert_equal(found, expected, f"{name} ends in other messages than invoke")

    def test_an_agent_keeps_its_words(self) -> None:
        """The messages are those of the agent without the middleware."""
        if self.changes_answers():
            return
        for question in self.questions():
            alone = dict(self._messages(question, bare=True))
            for name, found in self._messages(question):
                assert_equal(found, alone[name], f"{name}: the middleware changes the messages")

    def test_one_middleware_serves_many_runs(self) -> None:
        """Runs at the same time, and agents that share it, end as each would alone."""
        shared = self.middleware()
        agent, other = self.agent([shared]), self.agent([shared])
        inputs = [_input(question) for question in self.questions()] * 4
        expected = [_content(self.agent([self.middleware()]).invoke(each)) for each in inputs]
        assert any(each != expected[0] for each in expected), (
            "questions() must give two or more with different answers; theirs are all "
            f"{shortened(expected[0])}"
        )
        assert_equal(
            [_content(each) for each in agent.batch(inputs)],
            expected,
            "concurrent runs mix their results",
        )
        found = [_content(each) for each in run_bounded(other.abatch(inputs))]
        assert_equal(found, expected, "concurrent runs on a loop mix their results")

    def test_the_state_can_be_kept_and_taken_up_again(self) -> None:
        """A checkpointer that accepts only plain data keeps the state, and the agent continues."""
        memory = require("langgraph.checkpoint.memory", extra="agents")
        plain = require("langgraph.checkpoint.serde.jsonplus", extra="agents")
        saver = memory.InMemorySaver(serde=plain.JsonPlusSerializer(allowed_msgpack_modules=None))
        agent = self.agent([self.middleware()], saver)
        config: RunnableConfig = {"configurable": {"thread_id": "contract"}}
        first, second, *_ = self.questions()
        for question in (first, second):
            agent.invoke(_input(question), config)
        again: Any = self.agent([self.middleware()], saver)
        messages = again.get_state(config).values["messages"]
        asked = [message.text for message in messages if message.type == "human"]
        assert_equal(asked, [first, second], "the questions in the kept state are others")

    def test_a_config_reaches_the_inside(self) -> None:
        """Handlers see the start and the end of every run; tags and metadata are kept."""
        for name, call in CALL_MODES.items():
            seen, agent = SeenRuns(), self.agent([self.middleware()])
            call(agent.bind(stream_mode="values"), _input(self.questions()[0]), _config(seen))
            assert not seen.open(), f"{name}: no end of {seen.open()}"
            tagged = all(_TAG in (each.tags or ()) for each in seen.runs)
            assert tagged, f"{name}: a tag is lost"
            kept = all(_METADATA.items() <= each.metadata.items() for each in seen.runs)
            assert kept, f"{name}: metadata are lost"

    def test_it_has_a_name_and_a_place_in_the_graph(self) -> None:
        """Two of a kind differ only by name, so it must not change; the graph can be drawn."""
        assert self.middleware().name == self.middleware().name
        assert self.agent([self.middleware()]).get_graph().nodes

    def _messages(self, question: str, *, bare: bool = False) -> Iterator[tuple[str, list[Any]]]:
        """Ask an agent in every mode, with the middleware or without."""
        for name, call in CALL_MODES.items():
            agent = self.agent([] if bare else [self.middleware()]).bind(stream_mode="values")
            yield name, _content(call(agent, _input(question), None))


def _input(question: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": question}]}


def _content(state: Mapping[str, Any]) -> list[tuple[str, str, int]]:
    """Kind, text and number of tool calls of the messages; their ids are new in each run."""
    messages: Sequence[BaseMessage] = state["messages"]
    return [
        (m.type, m.text, len(m.tool_calls) if isinstance(m, AIMessage) else 0) for m in messages
    ]


_SECONDS = 30
_LONGEST_SHOWN = 400
_SHOWN_BEFORE = 100

ASYNC_CALL_MODES: Mapping[str, CallMode] = {
    "ainvoke": lambda runnable, given, config: run_bounded(runnable.ainvoke(given, config)),
    "astream": lambda runnable, given, config: _sum_async(runnable.astream(given, config)),
    "atransform": lambda runnable, given, config: _sum_async(
        runnable.atransform(_as_stream(given), config)
    ),
}
CALL_MODES: Mapping[str, CallMode] = {
    "invoke": lambda runnable, given, config: runnable.invoke(given, config),
    "stream": lambda runnable, given, config: _sum(runnable.stream(given, config)),
    "transform": lambda runnable, given, config: _sum(runnable.transform(iter([given]), config)),
    **ASYNC_CALL_MODES,
}


def _leave_stream(runnable: Runnable[Any, Any], given: Any, config: RunnableConfig | None) -> None:
    stream: Any = runnable.stream(given, config)
    with closing(stream):
        next(stream)


async def _aleave_stream(
    runnable: Runnable[Any, Any], given: Any, config: RunnableConfig | None
) -> None:
    stream: Any = runnable.astream(given, config)
    async with aclosing(stream):
        await anext(stream)


_LEAVING: Mapping[str, CallMode] = {
    "stream": _leave_stream,
    "astream": lambda runnable, given, config: run_bounded(_aleave_stream(runnable, given, config)),
}
"""Ways to read one chunk and go away."""


def outputs_by_mode(
    make: Callable[[], Runnable[Any, Any]], inputs: Sequence[Any]
) -> Iterator[tuple[str, list[Any]]]:
    """Call a runnable with all inputs, in every mode there is."""
    for name, call in CALL_MODES.items():
        yield name, [call(make(), each, None) for each in inputs]
    many = list(inputs)
    yield "batch", make().batch(many)
    yield "abatch", run_bounded(make().abatch(many))
    yield "batch_as_completed", _by_place(make().batch_as_completed(many))
    yield "abatch_as_completed", _by_place(run_bounded(_listed(make().abatch_as_completed(many))))


def error_of(
    call: CallMode, runnable: Runnable[Any, Any], given: Any, config: RunnableConfig | None = None
) -> BaseException | None:
    """Return the exception of a call, cancellation included; `None` if it succeeds."""
    try:
        call(runnable, given, config)
    except (Exception, asyncio.CancelledError) as exc:  # noqa: BLE001  (it is looked at)
        return exc
    return None


def run_bounded(call: Awaitable[Any]) -> Any:
    """Run a coroutine on its own event loop, with a timeout."""

    async def bounded() -> Any:
        try:
            return await asyncio.wait_for(call, _SECONDS)
        finally:
            # What still runs beside a call that failed loses its last events if the loop closes.
            if others := asyncio.all_tasks() - {asyncio.current_task()}:
                await asyncio.wait(others, timeout=_SECONDS)

    try:
        return asyncio.run(bounded())
    except TimeoutError as exc:
        name = getattr(call, "__qualname__", type(call).__name__)
        msg = f"{name} did not end, or ended with a TimeoutError, within {_SECONDS} s"
        raise TimeoutError(msg) from exc


def assert_equal(found: Any, expected: Any, message: str) -> None:
    """Fail unless two values are equal, and show where they are not."""
    if found != expected:
        msg = f"{message}: {difference(found, expected)}"
        raise AssertionError(msg)


def difference(found: Any, expected: Any) -> str:
    """Describe two values, from shortly before their first difference."""
    one, other = repr(found), repr(expected)
    alike = takewhile(lambda signs: signs[0] == signs[1], zip(one, other, strict=False))
    same = sum(1 for _ in alike) - _SHOWN_BEFORE
    if same <= 0 or max(len(one), len(other)) <= _LONGEST_SHOWN:
        return f"{_cut(one)}, not {_cut(other)}"
    return f"…{_cut(one[same:])}, not …{_cut(other[same:])}"


def shown(error: BaseException | None) -> str:
    """Write what a call raised for a message."""
    return shortened(error) if error else "no exception"


def shortened(value: Any) -> str:
    """Write a value for a message, its beginning if it is long."""
    return _cut(repr(value))


def skip(reason: str) -> NoReturn:
    """Skip the test that runs."""
    import pytest  # noqa: PLC0415  (only where tests run)

    pytest.skip(reason)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def _sum(chunks: Iterable[Any]) -> Any:
    """Add chunks as LangChain does: one that cannot be added replaces the sum."""
    total = None
    for chunk in chunks:
        try:
            total = chunk if total is None else total + chunk
        except TypeError:
            total = chunk
    return total


def _sum_async(chunks: AsyncIterator[Any]) -> Any:
    return _sum(run_bounded(_listed(chunks)))


async def _listed(chunks: AsyncIterator[Any]) -> list[Any]:
    return [chunk async for chunk in chunks]


async def _as_stream(given: Any) -> AsyncIterator[Any]:
    yield given


def _by_place(pairs: Any) -> list[Any]:
    return [output for _, output in sorted(pairs, key=lambda pair: pair[0])]
