"""The contract of LangChain runnables, as a test class to inherit from."""

import asyncio
import copy
import pickle
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import aclosing, closing
from threading import Lock
from typing import Any, NamedTuple
from uuid import UUID

from langchain_core.load import dumpd, load
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.tracers.base import BaseTracer
from langchain_core.tracers.schemas import Run
from pydantic import BaseModel, RootModel
from typing_extensions import override

from langchain_groundedness.testing.call_modes import (
    ASYNC_CALL_MODES,
    CALL_MODES,
    difference,
    error_of,
    outputs_by_mode,
    run_bounded,
    shortened,
    skip,
)

__all__ = ["Probe", "ProbeError", "RunnableContract", "SeenRuns"]

Probe = Callable[[RunnableConfig], None]
"""A function that a test injects, to see the config of an inner run or to fail there."""

_TAG, _NAME = "contract-tag", "contract-run"

_METADATA = {"contract": "kept"}

_LIMIT = 7

_AT_ONCE = 2


class ProbeError(Exception):
    """The failure that a contract test injects into a runnable."""


class RunnableContract(ABC):
    """Tests that a runnable agrees with itself, hands its config on, and shares nothing.

    Inherit from it in a test module, in a class whose name begins with `Test`, and say how the
    runnable is made and what it accepts. What a hook does not give is not tested; pytest then shows
    the test as skipped. What it cannot see is how long `ainvoke` keeps the event loop: that takes a
    clock, and a machine that does nothing else.

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
        """Make the runnable, anew at each call."""

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
        """Say how many inner runs a batch may have at work.

        Args:
            max_concurrency: What the config of the batch says.

        Returns:
            By default the same; more for a runnable that documents that each of its calls takes
            as many for itself.
        """
        return max_concurrency

    # --- agreement

    def test_all_ways_to_call_agree(self) -> None:
        """`invoke`, `batch`, `stream`, `transform` and their async twins give the same."""
        inputs = self.inputs()
        expected = [self.runnable().invoke(each) for each in inputs]
        for name, found in outputs_by_mode(self.runnable, inputs):
            assert len(found) == len(expected), f"{name} gives {len(found)} outputs"
            for place, (one, other) in enumerate(zip(expected, found, strict=True)):
                self._agree(other, one, f"{name} differs from invoke for input {place}")

    def test_inputs_give_different_outputs(self) -> None:
        """The inputs of this test class are of use: they give at least two outputs."""
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
            "a sequence": self.runnable() | RunnableLambda(_same),
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
            roots = seen.roots()
            assert len(roots) == 1, f"{name}: {len(roots)} outermost runs, where one is expected"
            [root] = roots
            assert root.name == _NAME, f"{name}: the run is called {root.name!r}"
            assert _TAG in root.tags, f"{name}: the tag is lost"
            assert _METADATA.items() <= root.metadata.items(), f"{name}: the metadata are lost"

    def test_every_run_has_an_end(self) -> None:
        """Handlers hear of the end of every run that they heard the start of."""
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
            assert len(seen.runs) > 1, f"{name}: no handler hears of the inner run"
            for config in configs:
                assert _TAG in (config.get("tags") or ()), f"{name}: the tag is lost inside"
                metadata = config.get("metadata") or {}
                assert _METADATA.items() <= metadata.items(), f"{name}: metadata are lost inside"
                assert config.get("recursion_limit") == _LIMIT, f"{name}: limits are lost inside"
            inside = [run.name for run in seen.runs if run.parent is not None]
            assert _NAME not in inside, f"{name}: an inner run has the name of the outer one"

    def test_max_concurrency_is_kept(self) -> None:
        """A batch has no more inner runs at work at once than `max_concurrency` says."""
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
        """`astream_events` tells of start and end of the run."""

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
        """Who reads one chunk and no more ends the run.

        Of a chat model inside that is cancelled by it, LangChain tells of no end.
        """

        async def left(seen: SeenRuns) -> None:
            stream: Any = self.runnable().astream(self.inputs()[0], _config(seen))
            async with aclosing(stream):
                await anext(stream)

        for name in ("stream", "astream"):
            seen = SeenRuns()
            if name == "astream":
                run_bounded(left(seen))
            else:
                stream: Any = self.runnable().stream(self.inputs()[0], _config(seen))
                with closing(stream):
                    next(stream)
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
        accepted = f"bad_input() is {shortened(bad)}, and nobody refuses it"
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
            message = f"{name} gives {shortened(found[1])} for the bad input, which is no exception"
            assert isinstance(found[1], Exception), message
            for other in (found[0], found[2]):
                self._agree(other, expected, f"{name} differs from invoke beside a bad input")

    def test_a_failure_inside_ends_the_same_in_every_way(self) -> None:
        """What goes wrong inside is raised, or absorbed, whichever way it was called."""

        def fail(_: RunnableConfig) -> None:
            raise ProbeError

        for name, call in CALL_MODES.items():
            seen = SeenRuns()
            ended = error_of(call, self._with_probe(fail), self.inputs()[0], _config(seen))
            wanted = self.failure() or type(None)
            came = shortened(ended) if ended else "no exception"
            assert isinstance(ended, wanted), f"{name}: {came}, expected {wanted.__name__}"
            assert not seen.open(), f"{name}: no end of {seen.open()}"

    def test_a_cancelled_run_is_cancelled(self) -> None:
        """A cancellation is never taken for a failure: it comes through, and every run ends."""

        def cancel(_: RunnableConfig) -> None:
            raise asyncio.CancelledError

        for name, call in ASYNC_CALL_MODES.items():
            seen = SeenRuns()
            ended = error_of(call, self._with_probe(cancel), self.inputs()[0], _config(seen))
            came = shortened(ended) if ended else "no exception"
            assert isinstance(ended, asyncio.CancelledError), f"{name}: {came}, not CancelledError"
            assert not seen.open(), f"{name}: no end of {seen.open()}"

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
        self._agree(revived.invoke(given), runnable.invoke(given), "the loaded one differs")

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
                self._agree(other, one, f"{name}: calls at the same time differ from single ones")

    # --- how

    def _agree(self, found: Any, expected: Any, message: str) -> None:
        assert self.same(expected, found), f"{message}: {difference(found, expected)}"

    def _with_probe(self, probe: Probe) -> Runnable[Any, Any]:
        return self.probed(probe) or skip("probed() gives no runnable")


class SeenRun(NamedTuple):
    """One run, as its start described it."""

    id: UUID
    parent: UUID | None
    name: str
    tags: tuple[str, ...]
    metadata: dict[str, Any]


class SeenRuns(BaseTracer):
    """Remembers starts and ends of chains, models, tools and retrievers."""

    run_inline = True

    def __init__(self) -> None:
        """Start with none."""
        super().__init__()
        self.runs: list[SeenRun] = []
        self._open: dict[UUID, str] = {}
        self._lock = Lock()

    def roots(self) -> list[SeenRun]:
        """Give the runs without a parent."""
        return [run for run in self.runs if run.parent is None]

    def open(self) -> list[str]:
        """Name the runs that have not ended."""
        with self._lock:
            return list(self._open.values())

    @override
    def _start_trace(self, run: Run) -> None:
        super()._start_trace(run)
        seen = SeenRun(
            run.id, run.parent_run_id, run.name, tuple(run.tags or ()), dict(run.metadata)
        )
        with self._lock:
            self.runs.append(seen)
            self._open[run.id] = run.name

    @override
    def _end_trace(self, run: Run) -> None:
        super()._end_trace(run)
        with self._lock:
            self._open.pop(run.id, None)

    @override
    def _persist_run(self, run: Run) -> None:
        """Keep nothing beyond what was noted."""


def _config(seen: SeenRuns) -> RunnableConfig:
    return {"callbacks": [seen], "tags": [_TAG], "metadata": dict(_METADATA), "run_name": _NAME}


def _never(_: Any) -> Any:
    msg = "the fallback was called"
    raise AssertionError(msg)


def _same(value: Any) -> Any:
    return value
