"""Verdicts come one by one: by functions, iterators, results and feedback, now or later."""

import asyncio
import gc
import threading
import weakref
from typing import Any
from uuid import UUID, uuid4

import pytest
from langchain_core.runnables import RunnableLambda
from watched_chains import answer, lcel_chain, question, retrieval_chain

from langchain_groundedness import (
    AsyncGroundednessCallbackHandler,
    GroundednessCallbackHandler,
    GroundednessError,
    GroundednessRunnable,
)
from langchain_groundedness.callbacks import GroundednessEvent
from langchain_groundedness.testing import ScriptedVerifier

HANDLERS = pytest.mark.parametrize(
    "kind", [GroundednessCallbackHandler, AsyncGroundednessCallbackHandler], ids=["sync", "async"]
)
QUICK = GroundednessRunnable(verifier=ScriptedVerifier(lambda _: "supported"))
GIVEN = {"input": question("Land1")}


class Listener:
    """Remembers the events that it was called with, and where."""

    def __init__(self) -> None:
        self.events: list[GroundednessEvent] = []
        self.loops: list[Any] = []

    def __call__(self, event: GroundednessEvent) -> None:
        self.events.append(event)

    async def awaited(self, event: GroundednessEvent) -> None:
        self.loops.append(asyncio.get_running_loop())
        await asyncio.sleep(0)
        self(event)

    @property
    def kinds(self) -> list[str]:
        return [event.kind for event in self.events]


@HANDLERS
@pytest.mark.parametrize("form", ["__call__", "awaited"])
@pytest.mark.parametrize("mode", ["invoke", "stream"])
def test_functions_are_called_for_each_verdict_and_each_event(
    mode: str, form: str, kind: Any
) -> None:
    verdicts, all_events = Listener(), Listener()
    handler = kind(QUICK, on_verdict=getattr(verdicts, form), on_event=getattr(all_events, form))
    list(getattr(lcel_chain(), mode)(question("Land1"), {"callbacks": [handler]}))
    assert verdicts.kinds == ["verdict", "verdict"]
    assert all_events.kinds == ["verdict", "verdict", "result"]
    assert {event.run_id for event in all_events.events} == set(handler.results)


@pytest.mark.parametrize("background", [False, True])
async def test_coroutine_functions_run_on_the_loop_of_an_awaited_chain(
    background: bool,  # noqa: FBT001  (pytest passes it by name)
) -> None:
    listener = Listener()
    handler = AsyncGroundednessCallbackHandler(
        QUICK, on_event=listener.awaited, background=background
    )
    await retrieval_chain().ainvoke(GIVEN, {"callbacks": [handler]})
    assert await handler.aflush()
    async for _ in retrieval_chain().astream(GIVEN, {"callbacks": [handler]}):
        pass
    assert await handler.aflush()
    assert listener.kinds == ["verdict", "verdict", "result"] * 2
    assert set(listener.loops) == {asyncio.get_running_loop()}


async def test_coroutine_functions_of_a_sync_handler_run_on_a_loop_of_their_own() -> None:
    listener = Listener()
    handler = GroundednessCallbackHandler(QUICK, on_event=listener.awaited)
    await retrieval_chain().ainvoke(GIVEN, {"callbacks": [handler]})
    await asyncio.to_thread(retrieval_chain().invoke, GIVEN, {"callbacks": [handler]})
    assert listener.kinds == ["verdict", "verdict", "result"] * 2
    assert asyncio.get_running_loop() not in listener.loops


@HANDLERS
@pytest.mark.parametrize("mode", ["invoke", "ainvoke"])
def test_a_function_that_raises_is_told_and_does_no_harm(
    mode: str, kind: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: GroundednessEvent) -> None:
        msg = "Landville"
        raise ValueError(msg)

    async def afail(event: GroundednessEvent) -> None:
        fail(event)

    handler, chain = kind(QUICK, on_verdict=fail, on_event=afail), retrieval_chain()
    config: Any = {"callbacks": [handler]}
    if mode == "invoke":
        chain.invoke(GIVEN, config)
    else:
        asyncio.run(_awaited(chain, config))
    assert len(handler.results) == 1
    lines = [record.getMessage() for record in caplog.records]
    assert lines == ["a function called with groundedness events raised ValueError"] * 5


async def _awaited(chain: Any, config: Any) -> None:
    await chain.ainvoke(GIVEN, config)


def test_events_of_one_run_end_with_it() -> None:
    handler, run_id = GroundednessCallbackHandler(QUICK), uuid4()
    config: Any = {"callbacks": [handler]}
    worker = threading.Thread(
        target=retrieval_chain().invoke, args=(GIVEN, {**config, "run_id": run_id})
    )
    other = threading.Thread(target=retrieval_chain().invoke, args=(GIVEN, config))
    worker.start()
    other.start()
    events = list(handler.events(run_id))
    assert [event.kind for event in events] == ["verdict", "verdict", "result"]
    assert {event.run_id for event in events} == {run_id}
    assert events[-1].result == handler.results[run_id]
    worker.join()
    other.join()


async def test_awaited_events_of_one_run_end_with_it() -> None:
    handler, run_id = AsyncGroundednessCallbackHandler(QUICK), uuid4()
    config: Any = {"callbacks": [handler], "run_id": run_id}

    async def read() -> list[str]:
        return [event.kind async for event in handler.aevents(run_id)]

    async with asyncio.timeout(300), asyncio.TaskGroup() as group:
        readers = [group.create_task(read()) for _ in range(2)]
        group.create_task(retrieval_chain().ainvoke(GIVEN, config))
    assert [reader.result() for reader in readers] == [["verdict", "verdict", "result"]] * 2


def test_a_handler_keeps_nothing_of_an_event_loop_that_has_ended() -> None:
    handler, run_id = AsyncGroundednessCallbackHandler(QUICK), uuid4()

    async def read() -> int:
        return len([event async for event in handler.aevents(run_id)])

    with asyncio.Runner() as runner:
        reader = runner.get_loop().create_task(read())
        config: Any = {"callbacks": [handler], "run_id": run_id}
        runner.run(_awaited(retrieval_chain(), config))
        runner.get_loop().run_until_complete(reader)
        loop = weakref.ref(runner.get_loop())
    assert reader.result() == 3
    del runner, reader
    gc.collect()
    assert loop() is None
    assert handler.results


async def test_awaited_events_come_from_chains_in_threads() -> None:
    handler = GroundednessCallbackHandler(QUICK)
    config: Any = {"callbacks": [handler]}
    kinds = []
    async with asyncio.timeout(300):
        task = asyncio.create_task(asyncio.to_thread(retrieval_chain().invoke, GIVEN, config))
        async for event in handler.aevents():
            kinds.append(event.kind)
            if event.is_last:
                handler.close()
        await task
    assert kinds == ["verdict", "verdict", "result"]


def test_an_iterator_that_is_too_slow_is_told_what_it_missed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    handler = GroundednessCallbackHandler(QUICK, max_events=3)
    events = handler.events()
    retrieval_chain().invoke(GIVEN, {"callbacks": [handler]})
    assert [next(events).kind for _ in range(3)] == ["verdict", "verdict", "result"]
    retrieval_chain().batch([GIVEN] * 2, {"callbacks": [handler], "max_concurrency": 1})
    handler.close()
    assert [event.kind for event in events] == ["verdict", "verdict", "result"]
    assert "missed 3 events" in caplog.text


def test_results_are_a_mapping_by_run_id_of_the_last_runs() -> None:
    handler = GroundednessCallbackHandler(QUICK, max_results=2)
    ids = [uuid4() for _ in range(3)]
    for run_id in ids:
        retrieval_chain().invoke(GIVEN, {"callbacks": [handler], "run_id": run_id})
    assert list(handler.results) == ids[1:]
    assert handler.results[ids[2]].answer == answer("Land1")
    assert ids[0] not in handler.results
    with pytest.raises(KeyError):
        _ = handler.results[ids[0]]


class Held:
    """A checker that waits until it may go on."""

    def __init__(self) -> None:
        self.may_go_on = threading.Event()

    def __call__(self, value: Any) -> Any:
        assert self.may_go_on.wait(timeout=300)
        return QUICK.invoke(value)


@HANDLERS
@pytest.mark.parametrize("mode", ["invoke", "stream"])
def test_in_the_background_the_chain_does_not_wait(mode: str, kind: Any) -> None:
    checker = Held()
    handler = kind(RunnableLambda(checker), background=True)
    list(getattr(lcel_chain(), mode)(question("Land1"), {"callbacks": [handler]}))
    assert not handler.results
    assert not handler.flush(timeout=0)
    checker.may_go_on.set()
    assert handler.flush()
    assert [result.answer for result in handler.results.values()] == [answer("Land1")]


@HANDLERS
async def test_in_the_background_an_awaited_chain_does_not_wait(kind: Any) -> None:
    checker = Held()
    handler = kind(RunnableLambda(checker), background=True)
    await lcel_chain().ainvoke(question("Land1"), {"callbacks": [handler]})
    assert not handler.results
    assert not await handler.aflush(timeout=0)
    checker.may_go_on.set()
    assert await handler.aflush()
    assert len(handler.results) == 1


@HANDLERS
async def test_flush_does_not_hold_up_a_loop(kind: Any) -> None:
    handler = kind(QUICK, background=True)
    await lcel_chain().ainvoke(question("Land1"), {"callbacks": [handler]})
    with pytest.raises(GroundednessError, match="await handler"):
        handler.flush()
    assert await handler.aflush()


@HANDLERS
@pytest.mark.parametrize("mode", ["batch", "abatch"])
def test_what_does_not_fit_into_the_background_is_unchecked_and_told(
    mode: str, kind: Any, caplog: pytest.LogCaptureFixture
) -> None:
    checker = Held()
    handler, chain = kind(RunnableLambda(checker), background=True, max_pending=2), lcel_chain()
    inputs, config = [question(f"Land{n}") for n in range(5)], {"callbacks": [handler]}

    async def awaited() -> None:
        await chain.abatch(inputs, config)  # type: ignore[arg-type]  # a config

    if mode == "batch":
        chain.batch(inputs, config)  # type: ignore[arg-type]  # a config
    else:
        asyncio.run(awaited())
    assert [result.verdict for result in handler.results.values()] == ["unchecked"] * 3
    assert all(result.claims for result in handler.results.values())
    assert caplog.text.count("too many answers are waiting") == 3
    checker.may_go_on.set()
    assert handler.flush()
    verdicts = [result.verdict for result in handler.results.values()]
    assert verdicts == ["unchecked"] * 3 + ["grounded"] * 2


class LangSmith:
    """Takes feedback as LangSmith's client does, unless it is away."""

    def __init__(self, *, away: bool = False) -> None:
        self.feedback: list[tuple[UUID, dict[str, Any]]] = []
        self._away = away

    def create_feedback(self, run_id: UUID, **feedback: Any) -> None:
        if self._away:
            raise ConnectionError
        self.feedback.append((run_id, feedback))


@HANDLERS
@pytest.mark.parametrize("mode", ["invoke", "ainvoke"])
def test_results_are_sent_as_feedback(mode: str, kind: Any) -> None:
    client = LangSmith()
    handler, chain = kind(langsmith_client=client), retrieval_chain()
    config: Any = {"callbacks": [handler]}
    if mode == "invoke":
        chain.invoke(GIVEN, config)
    else:
        asyncio.run(_awaited(chain, config))
    [(run_id, feedback)] = client.feedback
    assert [run_id] == list(handler.results)
    assert feedback["key"] == "groundedness"
    assert (feedback["score"], feedback["value"]) == (0.5, "has_contradictions")
    assert "1 of 2 claims" in feedback["comment"]


def test_feedback_that_cannot_be_sent_is_told(caplog: pytest.LogCaptureFixture) -> None:
    handler = GroundednessCallbackHandler(QUICK, langsmith_client=LangSmith(away=True))
    retrieval_chain().invoke(GIVEN, {"callbacks": [handler]})
    assert len(handler.results) == 1
    assert "no feedback for run" in caplog.text
