"""However a run ends, its state is freed, the next is checked, and nothing reaches the chain."""

import asyncio
import contextlib
import copy
import gc
import logging
import pickle
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any
from uuid import uuid4

import pytest
from langchain.tools import tool
from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable, RunnableGenerator, RunnableLambda
from watched_chains import (
    Atlas,
    Writer,
    agent,
    answer,
    lcel_chain,
    messages,
    question,
    retrieval_chain,
)

from langchain_groundedness import (
    AsyncGroundednessCallbackHandler,
    ConfigurationError,
    DecisionPolicy,
    GroundednessCallbackHandler,
    GroundednessResult,
    GroundednessRunnable,
)
from langchain_groundedness.callbacks import GroundednessEvent
from langchain_groundedness.testing import ScriptedVerifier

HANDLERS = pytest.mark.parametrize(
    "kind", [GroundednessCallbackHandler, AsyncGroundednessCallbackHandler], ids=["sync", "async"]
)
QUICK = GroundednessRunnable(verifier=ScriptedVerifier(lambda _: "supported"))
GIVEN = {"input": question("Land1")}


def kinds(handler: Any) -> list[str]:
    handler.close()
    return [event.kind for event in handler.events()]


async def ended(handler: Any) -> AsyncIterator[GroundednessEvent]:
    """Give the events until the only run has ended."""
    async for event in handler.aevents():
        yield event
        if event.is_last:
            return


def failing_once() -> Writer:
    calls = []

    def say(_: Any) -> AIMessage:
        calls.append(1)
        if len(calls) == 1:
            msg = "the model is away"
            raise ConnectionError(msg)
        return AIMessage(answer("Land1"))

    return Writer(says=say)


@HANDLERS
@pytest.mark.parametrize("mode", ["invoke", "stream"])
def test_a_run_that_fails_does_not_touch_the_next_one(mode: str, kind: Any) -> None:
    handler, chain = kind(QUICK), retrieval_chain(failing_once())
    config: Any = {"callbacks": [handler]}
    with pytest.raises(ConnectionError):
        list(getattr(chain, mode)(GIVEN, config))
    assert handler.open_runs == 0
    list(getattr(chain, mode)(GIVEN, config))
    [result] = handler.results.values()
    assert (result.answer, result.verdict) == (answer("Land1"), "grounded")
    assert kinds(handler) == ["abandoned", "verdict", "verdict", "result"]


@HANDLERS
async def test_an_awaited_run_that_fails_does_not_touch_the_next_one(kind: Any) -> None:
    handler, chain = kind(QUICK), lcel_chain(failing_once())
    with pytest.raises(ConnectionError):
        await chain.ainvoke(question("Land1"), {"callbacks": [handler]})
    assert handler.open_runs == 0
    await chain.ainvoke(question("Land1"), {"callbacks": [handler]})
    assert kinds(handler) == ["abandoned", "verdict", "verdict", "result"]


@HANDLERS
async def test_a_cancelled_run_is_let_go(kind: Any) -> None:
    handler, waiting = kind(QUICK), asyncio.Event()

    async def wait(_: Any) -> str:
        waiting.set()
        await asyncio.Event().wait()
        return ""

    chain = lcel_chain(RunnableLambda(wait))
    task = asyncio.create_task(chain.ainvoke(question("Land1"), {"callbacks": [handler]}))
    await waiting.wait()
    assert handler.open_runs > 0
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert handler.open_runs == 0
    assert kinds(handler) == ["abandoned"]


class Waiting:
    """A checker that says when it began, and waits until it may go on."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.may_end = asyncio.Event()

    async def __call__(self, value: Any) -> GroundednessResult:
        self.began.set()
        await self.may_end.wait()
        return await QUICK.ainvoke(value)


async def cancel_during_check(handler: Any, checker: Waiting) -> None:
    config: Any = {"callbacks": [handler]}
    task = asyncio.create_task(retrieval_chain().ainvoke(GIVEN, config))
    await checker.began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert handler.open_runs == 0


async def test_a_check_that_has_begun_when_its_run_is_cancelled_goes_on() -> None:
    checker = Waiting()
    handler = AsyncGroundednessCallbackHandler(RunnableLambda(checker))
    await cancel_during_check(handler, checker)
    checker.may_end.set()
    async with asyncio.timeout(300):
        read = [event.kind async for event in ended(handler)]
    assert read == ["verdict", "verdict", "result"]


def test_a_check_that_has_not_ended_with_its_event_loop_is_given_up() -> None:
    checker = Waiting()
    handler = AsyncGroundednessCallbackHandler(RunnableLambda(checker))
    asyncio.run(cancel_during_check(handler, checker))
    assert kinds(handler) == ["abandoned"]
    assert not handler.results


@HANDLERS
def test_leaving_a_stream_early_lets_the_run_go(kind: Any) -> None:
    handler = kind(QUICK)
    stream = lcel_chain().stream(question("Land1"), {"callbacks": [handler]})
    for place, _ in enumerate(stream):
        if place == 9:  # within the second sentence
            break
    stream.close()  # type: ignore[attr-defined]  # a generator
    assert handler.open_runs == 0
    assert kinds(handler)[-1] in ("result", "abandoned")
    for result in handler.results.values():
        assert answer("Land1").startswith(result.answer)


@HANDLERS
def test_a_stream_closed_in_mid_sentence_leaves_no_verdict_on_the_fragment(kind: Any) -> None:
    handler = kind(QUICK)
    stream = lcel_chain().stream(question("Land1"), {"callbacks": [handler]})
    read = ""
    while "earns" not in read:
        read += next(stream)
    stream.close()  # type: ignore[attr-defined]  # a generator
    handler.close()
    [result] = handler.results.values()
    assert [v.claim.text for v in result.claims] == ["The capital of Land1 is Land1ville."]
    assert result.answer == "The capital of Land1 is Land1ville."


@HANDLERS
async def test_leaving_an_awaited_stream_early_lets_the_run_go(kind: Any) -> None:
    handler = kind(QUICK)
    stream: Any = lcel_chain().astream(question("Land1"), {"callbacks": [handler]})
    async for _ in stream:
        break
    await stream.aclose()
    async with asyncio.timeout(300):
        read = [event async for event in ended(handler)]
    assert read[-1].kind == "abandoned"
    assert handler.open_runs == 0
    assert not handler.results


@HANDLERS
async def test_an_awaited_stream_closed_after_a_sentence_keeps_no_verdict_on_it(kind: Any) -> None:
    handler = kind(QUICK)
    stream: Any = lcel_chain().astream(question("Land1"), {"callbacks": [handler]})
    read = ""
    while "earns" not in read:
        read += await anext(stream)
    await stream.aclose()
    async with asyncio.timeout(300):
        events = [event async for event in ended(handler)]
    told = [event.kind for event in events]
    assert told.count("verdict") == told.count("retracted")
    assert told.count("abandoned") == 1
    assert not handler.results


class Away(Atlas):
    """A retriever that fails."""

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> Any:
        raise ConnectionError


@HANDLERS
@pytest.mark.parametrize("mode", ["invoke", "ainvoke"])
def test_what_retrievers_and_tools_that_fail_have_found_is_no_evidence(
    mode: str, kind: Any
) -> None:
    @tool
    def look_up(query: str) -> str:
        """Look something up, and fail."""
        Atlas().invoke(query)
        raise ConnectionError

    def gather(asked: str) -> str:
        for each in (Away(), look_up):
            with contextlib.suppress(ConnectionError):
                each.invoke(asked)
        return answer("Land1")

    async def awaited() -> None:
        await RunnableLambda(gather).ainvoke(question("Land1"), {"callbacks": [handler]})

    handler = kind()
    if mode == "ainvoke":
        asyncio.run(awaited())
    else:
        RunnableLambda(gather).invoke(question("Land1"), {"callbacks": [handler]})
    [result] = handler.results.values()
    assert (result.documents, result.verdict) == ((), "unchecked")


@HANDLERS
def test_an_agent_graph_that_is_left_early_is_let_go(kind: Any) -> None:
    handler = kind(QUICK)
    stream: Any = agent("content").stream(
        messages(question("Land1")), {"callbacks": [handler]}, stream_mode="updates"
    )
    next(stream)
    stream.close()
    assert handler.open_runs == 0


@HANDLERS
def test_roots_that_never_end_make_room(kind: Any, caplog: pytest.LogCaptureFixture) -> None:
    handler = kind(QUICK, max_runs=2)

    def pieces(_: Iterator[Any]) -> Iterator[str]:
        while True:
            yield "word "

    async def apieces(_: AsyncIterator[Any]) -> AsyncIterator[str]:
        yield "word"

    endless: Runnable[Any, Any] = RunnableGenerator(pieces, apieces)
    streams: Any = [endless.stream("go", {"callbacks": [handler]}) for _ in range(4)]
    for stream in streams:
        next(stream)
    assert [r.message.split("tracked: ")[1] for r in caplog.records] == [
        "more than max_runs=2 root runs are unfinished"
    ] * 2
    for stream in streams:
        stream.close()
    # What still comes from runs that were let go is not taken for new roots.
    assert handler.open_runs == 0
    assert kinds(handler) == ["abandoned"] * 4


def test_a_late_child_of_a_root_that_has_ended_is_no_root() -> None:
    handler, root, child = GroundednessCallbackHandler(QUICK), uuid4(), uuid4()
    handler.on_chain_start(None, "hello", run_id=root)
    handler.on_chain_end("Hello.", run_id=root)
    handler.on_chain_start(None, "hello", run_id=child, parent_run_id=root)
    handler.on_chain_start(None, "hello", run_id=uuid4(), parent_run_id=child)
    handler.on_chain_end("Hello again.", run_id=child)
    assert list(handler.results) == [root]
    assert handler.open_runs == 0


def raising(_: Any) -> Any:
    msg = "secret of Landville"
    raise ValueError(msg)


BROKEN = {
    "a checker that raises": RunnableLambda(raising),
    "a checker that returns nothing": RunnableLambda(lambda _: None),
    "a verifier that raises": GroundednessRunnable(verifier=RunnableLambda(raising)),
    "a verifier that raises, and shall": GroundednessRunnable(
        verifier=RunnableLambda(raising), raise_on_failure=True
    ),
    "an extractor of contexts that raises": GroundednessRunnable(context_extractor=raising),
}


@HANDLERS
@pytest.mark.parametrize("mode", ["invoke", "ainvoke", "stream", "astream"])
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_check_is_told_and_does_not_break_the_chain(
    name: str, mode: str, kind: Any, caplog: pytest.LogCaptureFixture
) -> None:
    handler, chain = kind(BROKEN[name]), lcel_chain()
    config: Any = {"callbacks": [handler]}

    async def awaited() -> str:
        if mode == "ainvoke":
            return str(await chain.ainvoke(question("Land1"), config))
        return "".join([piece async for piece in chain.astream(question("Land1"), config)])

    if mode.startswith("a"):
        said = asyncio.run(awaited())
    else:
        said = "".join(getattr(chain, mode)(question("Land1"), config))
    assert said == answer("Land1")
    [result] = handler.results.values()
    assert (result.verdict, result.is_trusted) == ("unchecked", False)
    assert {claim.verdict for claim in result.claims} <= {"unchecked"}
    assert result.decision.action == "review"
    [line] = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert line.name == "langchain_groundedness"
    assert "Landville" not in line.getMessage()
    assert kinds(handler)[-1] == "result"


def test_the_policy_of_the_checker_decides_on_answers_that_were_not_checked() -> None:
    policy = DecisionPolicy(unchecked="block")
    broken = GroundednessRunnable(
        verifier=RunnableLambda(raising), raise_on_failure=True, policy=policy
    )
    handler = GroundednessCallbackHandler(broken)
    lcel_chain().invoke(question("Land1"), {"callbacks": [handler]})
    [result] = handler.results.values()
    assert result.decision.action == "block"


@HANDLERS
def test_an_answer_without_documents_is_unchecked_and_told(
    kind: Any, caplog: pytest.LogCaptureFixture
) -> None:
    handler = kind()
    Writer().invoke(question("Land1"), {"callbacks": [handler]})
    [result] = handler.results.values()
    assert (result.answer, result.verdict) == (answer("Land1"), "unchecked")
    assert "no documents to check against" in caplog.text


@HANDLERS
def test_an_output_that_holds_no_answer_is_told(
    kind: Any, caplog: pytest.LogCaptureFixture
) -> None:
    handler = kind()
    chain: Runnable[Any, Any] = Atlas() | (lambda found: {"found": found})
    chain.invoke(question("Land1"), {"callbacks": [handler]})
    [result] = handler.results.values()
    assert (result.answer, result.verdict) == ("", "unchecked")
    assert "no answer found" in caplog.text
    assert "give context_extractor=, a function" in caplog.text


def test_a_retriever_or_a_tool_by_itself_answers_nothing() -> None:
    handler = GroundednessCallbackHandler()
    Atlas().invoke(question("Land1"), {"callbacks": [handler]})
    assert not handler.results
    assert handler.open_runs == 0


def alive(package: str) -> int:
    gc.collect()
    return sum(str(type(each).__module__).startswith(package) for each in gc.get_objects())


@HANDLERS
@pytest.mark.parametrize("mode", ["invoke", "stream"])
def test_nothing_is_kept_of_runs_that_have_ended_but_the_last_results(mode: str, kind: Any) -> None:
    handler = kind(max_results=5, max_events=5)

    def run(times: int) -> int:
        for _ in range(times):
            list(getattr(lcel_chain(), mode)(question("Land1"), {"callbacks": [handler]}))
        return alive("langchain_groundedness.callbacks")

    assert run(6) == run(6)
    assert len(handler.results) == 5


class Trap(dict[str, Any]):
    """Inputs in which a stream is closed that was thrown away, as garbage collectors do."""

    stream: Any = None

    def items(self) -> Any:
        stream, self.stream = self.stream, None
        if stream is not None:
            stream.close()
        return super().items()


def test_a_stream_that_ends_while_another_run_is_noted_stops_nothing() -> None:
    handler = GroundednessCallbackHandler(QUICK)
    config: Any = {"callbacks": [handler]}
    trap = Trap(input=question("Land2"))
    trap.stream = lcel_chain().stream(question("Land1"), config)
    next(trap.stream)
    run_id = uuid4()
    handler.on_chain_start(None, trap, run_id=run_id)
    assert trap.stream is None
    handler.on_chain_end({"answer": answer("Land2"), "context": ["Some."]}, run_id=run_id)
    assert handler.results[run_id].question == question("Land2")
    assert handler.open_runs == 0


def test_threads_end_with_the_handler() -> None:
    before = set(threading.enumerate())
    handler = GroundednessCallbackHandler(QUICK, background=True)
    list(lcel_chain().stream(question("Land1"), {"callbacks": [handler]}))
    assert handler.flush()
    handler.close()
    for thread in set(threading.enumerate()) - before:
        if thread.name.startswith("groundedness"):
            thread.join(timeout=300)
            assert not thread.is_alive()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"max_runs": 0}, "max_runs must be a whole number of at least 1, got 0"),
        ({"max_pending": 1.5}, "max_pending"),
        ({"max_workers": -1}, "max_workers"),
        ({"max_results": 0}, "max_results"),
        ({"max_events": 0}, "max_events"),
        ({"on_verdict": 3}, "on_verdict must be a function"),
        ({"on_event": "print"}, "on_event"),
        ({"checker": "gpt"}, "checker must be a GroundednessRunnable"),
    ],
)
@HANDLERS
def test_options_are_checked_when_the_handler_is_made(kind: Any, options: Any, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        kind(**options)


@HANDLERS
def test_a_handler_decides_on_the_answer_as_it_was_shown(kind: Any) -> None:
    policy = DecisionPolicy(contradicted="block")
    handler = kind(GroundednessRunnable(on_contradicted="correct", policy=policy))
    lcel_chain().invoke(question("Land1"), {"callbacks": [handler]})
    [result] = handler.results.values()
    assert result.edits
    assert (result.decision.action, result.final.verdict) == ("block", "has_contradictions")


@HANDLERS
def test_a_pickled_handler_keeps_its_options_and_no_results(kind: Any) -> None:
    handler = kind(max_claims=1, max_results=1)
    retrieval_chain().invoke({"input": question("Land1")}, {"callbacks": [handler]})
    copied = pickle.loads(pickle.dumps(handler))  # noqa: S301  (made here)
    assert type(copied) is kind
    assert (len(handler.results), len(copied.results), copied.open_runs) == (1, 0, 0)
    for country in ("Land1", "Land2"):
        retrieval_chain().invoke({"input": question(country)}, {"callbacks": [copied]})
    [result] = copied.results.values()
    assert [v.verdict for v in result.claims] == ["supported", "unchecked"]


@HANDLERS
def test_a_handler_that_cannot_be_pickled_says_why_in_one_line(kind: Any) -> None:
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda") as raised:
        pickle.dumps(kind(on_verdict=lambda _: None))
    assert "\n" not in str(raised.value)


@HANDLERS
def test_copies_of_a_config_share_its_handler(kind: Any) -> None:
    config = {"callbacks": [kind()]}
    assert copy.deepcopy(config)["callbacks"][0] is config["callbacks"][0]
    assert copy.copy(config["callbacks"][0]) is config["callbacks"][0]
