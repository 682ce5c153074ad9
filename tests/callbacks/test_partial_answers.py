"""While a watched model writes, finished sentences are checked, and taken back if need be."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any
from uuid import uuid4

import pytest
from langchain.agents import create_agent
from langchain_core.language_models import FakeStreamingListLLM
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.tools import create_retriever_tool
from langchain_core.tracers.context import collect_runs
from watched_chains import (
    PROMPT,
    Atlas,
    Writer,
    agent,
    answer,
    lcel_chain,
    messages,
    question,
    reply,
    retrieval_chain,
)

from langchain_groundedness import (
    AsyncGroundednessCallbackHandler,
    ClaimVerdict,
    GroundednessCallbackHandler,
    GroundednessRunnable,
    LLMVerifier,
    SentenceClaimExtractor,
)
from langchain_groundedness.callbacks import GroundednessEvent
from langchain_groundedness.testing import ScriptedChatModel, ScriptedVerifier

HANDLERS = pytest.mark.parametrize(
    "kind", [GroundednessCallbackHandler, AsyncGroundednessCallbackHandler], ids=["sync", "async"]
)


class Held(Writer):
    """Writes its last word only when it may."""

    may_end: Any

    def _stream(self, *args: Any, **kwargs: Any) -> Iterator[Any]:
        for chunk in super()._stream(*args, **kwargs):
            if chunk.text.endswith("$500."):
                assert self.may_end.wait(timeout=300)
            yield chunk

    async def _astream(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        async for chunk in super()._astream(*args, **kwargs):
            if chunk.text.endswith("$500."):
                async with asyncio.timeout(300):
                    await self.may_end.wait()
            yield chunk


@HANDLERS
def test_the_first_verdict_comes_before_the_last_word(kind: Any) -> None:
    may_end = threading.Event()

    def heard(event: GroundednessEvent) -> None:
        assert event.verdict is not None
        if event.verdict.claim.text.startswith("The capital"):
            may_end.set()

    handler = kind(on_verdict=heard)
    chain = lcel_chain(Held(may_end=may_end))
    said = "".join(chain.stream(question("Land1"), {"callbacks": [handler]}))
    assert said == answer("Land1")
    [result] = handler.results.values()
    assert [claim.verdict for claim in result.claims] == ["supported", "contradicted"]


@HANDLERS
async def test_the_first_verdict_comes_before_the_last_awaited_word(kind: Any) -> None:
    may_end, loop = asyncio.Event(), asyncio.get_running_loop()

    def heard(event: GroundednessEvent) -> None:
        assert event.verdict is not None
        if event.verdict.claim.text.startswith("The capital"):
            loop.call_soon_threadsafe(may_end.set)

    handler = kind(on_verdict=heard)
    chain = lcel_chain(Held(may_end=may_end))
    said = [piece async for piece in chain.astream(question("Land1"), {"callbacks": [handler]})]
    assert "".join(said) == answer("Land1")
    assert len(handler.results) == 1


def test_each_sentence_is_judged_once() -> None:
    verifier = ScriptedVerifier(lambda _: "supported")
    handler = GroundednessCallbackHandler(GroundednessRunnable(verifier=verifier))
    list(retrieval_chain().stream({"input": question("Land1")}, {"callbacks": [handler]}))
    texts = [claim.text for task in verifier.tasks for claim in task.claims]
    assert len(verifier.tasks) == len(texts) == len(set(texts)) == 2
    assert {task.question for task in verifier.tasks} == {question("Land1")}


BETA = pytest.mark.filterwarnings(
    "ignore:The v3 streaming protocol:langchain_core._api.beta_decorator.LangChainBetaWarning"
)


@BETA
@HANDLERS
@pytest.mark.parametrize("asynchronous", [False, True])
def test_the_third_version_of_event_streams_is_read(
    kind: Any,
    asynchronous: bool,  # noqa: FBT001  (pytest passes it by name)
) -> None:
    handler = kind()
    config: Any = {"callbacks": [handler]}
    graph: Any = agent("content")
    if asynchronous:

        async def read() -> None:
            stream = await graph.astream_events(messages(question("Land1")), config, version="v3")
            await stream.output()

        asyncio.run(read())
    else:
        stream = graph.stream_events(messages(question("Land1")), config, version="v3")
        assert stream.output["messages"][-1].text == answer("Land1")
    [result] = handler.results.values()
    assert result.answer == answer("Land1")
    assert [claim.verdict for claim in result.claims] == ["supported", "contradicted"]


class Native(Writer):
    """Says what it writes by protocol events alone, as models of the third version do."""

    def _stream(self, messages: Any, *args: Any, **kwargs: Any) -> Iterator[Any]:
        yield from super()._stream(messages, None, None)


@pytest.mark.parametrize("model", [Writer, Native])
def test_a_text_that_comes_by_tokens_and_by_protocol_events_is_read_once(model: Any) -> None:
    verifier = ScriptedVerifier(lambda _: "supported")
    handler = GroundednessCallbackHandler(GroundednessRunnable(verifier=verifier))

    def ask(found: Any, config: Any) -> str:
        given = PROMPT.invoke({"context": found[0].page_content, "input": question("Land1")})
        return str(model().stream_events(given.to_messages(), config, version="v3").output.text)

    chain: Runnable[Any, Any] = Atlas() | RunnableLambda(ask)
    assert chain.invoke(question("Land1"), {"callbacks": [handler]}) == answer("Land1")
    handler.close()
    assert [event.kind for event in handler.events()] == ["verdict", "verdict", "result"]
    # One at a time, so while it was written.
    assert [len(task.claims) for task in verifier.tasks] == [1, 1]


def searching(messages: Sequence[BaseMessage]) -> AIMessage:
    """Searches twice, and talks between the searches."""
    found = sum(message.type == "tool" for message in messages)
    if found == 2:
        return reply(messages)
    asked = next(m.text for m in messages if m.type == "human")
    call = {"name": "search", "args": {"query": asked}, "id": f"call-{found}"}
    return AIMessage("The mayor of Land1 earns $900. I search again.", tool_calls=[call])


@HANDLERS
@pytest.mark.parametrize("mode", ["stream", "astream"])
def test_what_an_agent_says_before_it_calls_a_tool_is_taken_back(mode: str, kind: Any) -> None:
    handler = kind()
    search = create_retriever_tool(Atlas(), "search", "Searches.")
    graph: Any = create_agent(Writer(says=searching), [search])
    config: Any = {"callbacks": [handler]}
    if mode == "stream":
        list(graph.stream(messages(question("Land1")), config, stream_mode="messages"))
    else:

        async def read() -> None:
            given = messages(question("Land1"))
            async for _ in graph.astream(given, config, stream_mode="messages"):
                pass

        asyncio.run(read())
    handler.close()
    events = list(handler.events())
    early = [e for e in events if e.verdict and "$900" in e.verdict.claim.text]
    assert [e.kind for e in early] in ([], ["verdict", "retracted"])
    assert [e.kind for e in events if e not in early] == ["verdict", "verdict", "result"]
    [result] = handler.results.values()
    assert result.answer == answer("Land1")


@HANDLERS
@pytest.mark.parametrize("mode", ["stream", "astream", "invoke"])
def test_a_draft_that_another_model_rewrites_is_taken_back(mode: str, kind: Any) -> None:
    handler = kind()
    draft = Writer(says=lambda _: AIMessage("The mayor of Land1 earns $900. That is all."))
    given = {
        "context": Atlas() | (lambda found: found[0].page_content),
        "input": RunnableLambda(str),
    }
    final = Writer(says=lambda _: AIMessage(answer("Land1")))
    chain: Runnable[Any, Any] = given | PROMPT | draft | StrOutputParser() | final

    async def read() -> None:
        async for _ in chain.astream(question("Land1"), {"callbacks": [handler]}):
            pass

    if mode == "astream":
        asyncio.run(read())
    else:
        list(getattr(chain, mode)(question("Land1"), {"callbacks": [handler]}))
    handler.close()
    told: dict[str, ClaimVerdict] = {}
    for event in handler.events():
        if event.verdict and event.kind == "verdict":
            told[event.verdict.claim.text] = event.verdict
        elif event.verdict:
            assert told.pop(event.verdict.claim.text) == event.verdict
    [result] = handler.results.values()
    assert sorted(told) == sorted(verdict.claim.text for verdict in result.claims)
    assert all(verdict in result.claims for verdict in told.values())


def test_a_model_that_finds_the_claims_reads_answers_only() -> None:
    calls: list[Any] = []

    def judge(messages: Sequence[BaseMessage]) -> str:
        calls.append(messages)
        return "none"

    handler = GroundednessCallbackHandler(
        GroundednessRunnable(model=ScriptedChatModel(replies=judge))
    )
    graph: Any = agent("content")
    given = messages(question("Land1"))
    list(graph.stream(given, {"callbacks": [handler]}, stream_mode="messages"))
    texts = "".join(message.text for each in calls for message in each)
    assert calls
    assert "Mars" not in texts
    assert len(handler.results) == 1


def test_a_text_that_changes_on_its_way_out_is_checked_as_it_came_out() -> None:
    handler = GroundednessCallbackHandler()
    chain: Runnable[Any, Any] = lcel_chain() | (lambda text: f"So: {text}")
    list(chain.stream(question("Land1"), {"callbacks": [handler]}))
    handler.close()
    [result] = handler.results.values()
    assert result.answer == f"So: {answer('Land1')}"
    kinds = [event.kind for event in handler.events()]
    assert kinds.count("verdict") - kinds.count("retracted") == len(result.claims)


@HANDLERS
def test_a_verifier_that_fails_on_a_sentence_leaves_the_answer_unchecked(
    kind: Any, caplog: pytest.LogCaptureFixture
) -> None:
    verifier = ScriptedVerifier(
        lambda claim: ValueError("away") if "mayor" in claim.text else "supported"
    )
    checker = GroundednessRunnable(verifier=verifier, raise_on_failure=True)
    handler = kind(checker)
    said = list(lcel_chain().stream(question("Land1"), {"callbacks": [handler]}))
    assert "".join(said) == answer("Land1")
    handler.close()
    [result] = handler.results.values()
    assert result.verdict == "unchecked"
    assert len(caplog.records) == 1
    kinds = [event.kind for event in handler.events()]
    assert kinds.count("verdict") == kinds.count("retracted")


@HANDLERS
async def test_a_judge_that_is_part_of_the_chain_is_not_taken_for_a_writer(kind: Any) -> None:
    judge = Writer(says=lambda _: AIMessage("C1: [1] supported. The mayor of Land1 earns $900."))
    verifier = LLMVerifier(model=judge)
    checker = GroundednessRunnable(extractor=SentenceClaimExtractor(), verifier=verifier)
    handler = kind()
    chain = retrieval_chain().pipe(checker)
    given, config = {"input": question("Land1")}, RunnableConfig(callbacks=[handler])
    async for _ in chain.astream_events(given, config, version="v2"):
        pass
    handler.close()
    told = [event.verdict.claim.text for event in handler.events() if event.verdict]
    assert told
    assert not [text for text in told if "$900" in text]
    [result] = handler.results.values()
    assert (result.answer, result.verdict) == (answer("Land1"), "has_contradictions")


@HANDLERS
@pytest.mark.parametrize("mode", ["invoke", "stream"])
def test_a_traced_check_is_one_trace_of_its_own(mode: str, kind: Any) -> None:
    handler, run_id = kind(), uuid4()
    with collect_runs() as traces:
        list(
            getattr(lcel_chain(), mode)(
                question("Land1"), {"callbacks": [handler], "run_id": run_id}
            )
        )
    chain, check = sorted(traces.traced_runs, key=lambda run: run.id != run_id)
    assert chain.id == run_id
    assert check.name == "groundedness_check"
    assert check.extra["metadata"]["checked_run_id"] == str(run_id)
    assert check.error is None


@HANDLERS
@pytest.mark.parametrize("mode", ["stream", "astream"])
def test_a_model_that_is_no_chat_model_is_read_too(mode: str, kind: Any) -> None:
    verifier = ScriptedVerifier(lambda _: "supported")
    handler = kind(GroundednessRunnable(verifier=verifier))
    chain = lcel_chain(FakeStreamingListLLM(responses=[answer("Land1")]))
    config = RunnableConfig(callbacks=[handler])

    async def read() -> None:
        async for _ in chain.astream(question("Land1"), config):
            pass

    if mode == "astream":
        asyncio.run(read())
    else:
        list(chain.stream(question("Land1"), config))
    [result] = handler.results.values()
    assert (result.answer, result.verdict) == (answer("Land1"), "grounded")


class Thinking(Writer):
    """Streams content blocks, each with a thought beside the text."""

    def _stream(self, *args: Any, **kwargs: Any) -> Iterator[Any]:
        for chunk in super()._stream(*args):
            blocks: Any = [
                {"type": "reasoning", "reasoning": "It is Lima. "},
                {"type": "text", "text": chunk.text},
            ]
            yield ChatGenerationChunk(message=AIMessageChunk(content=blocks))


def test_content_blocks_are_read_for_their_text() -> None:
    handler = GroundednessCallbackHandler(
        GroundednessRunnable(verifier=ScriptedVerifier(lambda _: "supported"))
    )
    list(lcel_chain(Thinking()).stream(question("Land1"), {"callbacks": [handler]}))
    handler.close()
    told = [event.verdict.claim.text for event in handler.events() if event.verdict]
    # Each is told as soon as it is final: the second sentence at times before the first.
    assert " ".join(sorted(told)) == answer("Land1")
