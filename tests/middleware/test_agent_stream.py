"""What leaves an agent while it works: tokens, verdicts, and never the judge's own words."""

import asyncio
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from typing import Any
from unittest.mock import Mock

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import ModelRetryMiddleware, wrap_model_call
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pydantic import BaseModel, Field

from langchain_groundedness import (
    ClaimVerdict,
    ConfigurationError,
    GroundednessMiddleware,
    GroundednessRunnable,
    VerificationTask,
)
from langchain_groundedness.inputs import CheckInput
from langchain_groundedness.middleware.guarded_model import GuardedCall, guarded_model
from langchain_groundedness.testing import ScriptedClaimExtractor, ScriptedVerifier
from middleware.agent_scripts import (
    FALSE,
    QUESTION,
    TRUE,
    How,
    Silent,
    Writer,
    agent_of,
    call,
    checker,
    judged,
    run,
    search_tool,
    tokens,
)

pytestmark = pytest.mark.filterwarnings("ignore:The v3 streaming protocol")
MIXED = f"Hello. {TRUE} {FALSE} The weather was fine. Costs were $1B in Q3."
VERIFIED = f"Hello. {TRUE} Costs were $1B in Q3."


class Figures(BaseModel):
    """Answer."""

    revenue: str


def only(option: str) -> dict[str, Any]:
    return {option: True}


def streaming_judge() -> Writer:
    replies = ["none", "{tag} C1: [1] supported", "none", "{tag} C1: [1] supported"]
    return Writer(replies=replies)


def events_of(agent: Any, how: How, *channels: str) -> dict[str, list[Any]]:
    """Give what the named channels of a run with event streams yield, and its output."""

    async def arun() -> dict[str, list[Any]]:
        found = {}
        for channel in channels:
            stream = await agent.astream_events(QUESTION, version="v3")
            found[channel] = [item async for item in stream.extensions[channel]]
            if channel == "messages":
                found[channel] = [[text async for text in each.text] for each in found[channel]]
        return found

    if how == "async":
        return asyncio.run(arun())
    found = {}
    for channel in channels:
        stream = agent.stream_events(QUESTION, version="v3")
        found[channel] = list(stream.extensions[channel])
        if channel == "messages":
            found[channel] = [list(each.text) for each in found[channel]]
    return found


# --- the judge stays unheard ---


def test_judge_calls_stay_out_of_the_token_stream(how: How) -> None:
    middleware = GroundednessMiddleware(GroundednessRunnable(model=streaming_judge()))
    said = "".join(tokens(agent_of(call(), TRUE, middleware=middleware), QUESTION, how))
    assert said == TRUE


def test_judge_calls_stay_out_of_the_messages_of_event_streams(how: How) -> None:
    middleware = GroundednessMiddleware(GroundednessRunnable(model=streaming_judge()))
    found = events_of(agent_of(call(), TRUE, middleware=middleware), how, "messages")
    assert ["".join(texts) for texts in found["messages"]] == ["", TRUE]


def test_judge_calls_of_a_review_stay_out_of_the_token_stream(how: How) -> None:
    judge = Writer(replies=["none", "{tag} C1: unverifiable | no"])
    middleware = GroundednessMiddleware(GroundednessRunnable(model=judge), on_ungrounded="review")
    agent = agent_of(call(), TRUE, middleware=middleware, checkpointer=InMemorySaver())
    said = tokens(agent, QUESTION, how, {"configurable": {"thread_id": "1"}})
    assert "".join(said) == ""


def test_judge_calls_are_traced_under_the_agent(how: How) -> None:
    starts: list[Any] = []

    class Tracer(BaseCallbackHandler):
        def on_chat_model_start(self, *args: Any, **kwargs: Any) -> None:
            starts.append(kwargs.get("parent_run_id"))

    middleware = GroundednessMiddleware(GroundednessRunnable(model=streaming_judge()))
    agent = agent_of(call(), TRUE, middleware=middleware)
    run(agent, QUESTION, how, {"callbacks": [Tracer()]})
    assert len(starts) == 4
    assert all(starts)


def test_what_a_model_is_told_on_a_retry_is_not_streamed(how: How) -> None:
    check, _ = checker()
    middleware = GroundednessMiddleware(check, on_ungrounded="retry")
    said = "".join(tokens(agent_of(call(), FALSE, TRUE, middleware=middleware), QUESTION, how))
    assert said == FALSE + TRUE


# --- live verdicts ---


def test_verdicts_can_be_read_from_the_events_of_a_run(how: How) -> None:
    check, _ = checker()
    agent = agent_of(call(), f"{TRUE} {FALSE}", middleware=GroundednessMiddleware(check))
    events = events_of(agent, how, "groundedness")["groundedness"]
    verdicts = [e["data"] for e in events if e["event"] == "groundedness.verdict"]
    assert [v["verdict"] for v in verdicts] == ["supported", "contradicted"]
    assert [ClaimVerdict.model_validate(v).claim.text for v in verdicts] == [TRUE, FALSE]
    assert events[-1]["event"] == "groundedness.decision"
    assert json.loads(json.dumps(events)) == events


class Patient(Writer):
    """Goes on with its second sentence until the first has its verdict, and then says goodbye."""

    judged: threading.Event = Field(default_factory=threading.Event)

    def _stream(self, messages: Any, *args: Any, **kwargs: Any) -> Iterator[ChatGenerationChunk]:
        yield from super()._stream(messages)
        if len(self.requests) == 1:
            return
        while not self.judged.is_set():
            yield ChatGenerationChunk(message=AIMessageChunk(content=" and on"))
        yield ChatGenerationChunk(message=AIMessageChunk(content=". Goodbye."))


class FirstVerdict(BaseCallbackHandler):
    """Sets an event when the first verdict is known."""

    def __init__(self, judged: threading.Event) -> None:
        self.judged = judged

    def on_custom_event(self, name: str, data: Any, **kwargs: Any) -> None:
        if name == "groundedness.verdict":
            self.judged.set()


@pytest.mark.parametrize("option", ["live", "hold_stream"])
def test_live_verdicts_come_while_the_answer_is_written(how: How, option: Any) -> None:
    check, _ = checker()
    model = Patient(replies=[call(), f"{TRUE} And so on"])
    middleware = GroundednessMiddleware(check, **only(option))
    agent = agent_of(middleware=middleware, model=model)
    config: Any = {"callbacks": [FirstVerdict(model.judged)]}
    assert "".join(tokens(agent, QUESTION, how, config)).startswith(TRUE)


@pytest.mark.parametrize("option", ["live", "hold_stream"])
def test_there_is_one_decision_though_the_model_is_called_twice(how: How, option: Any) -> None:
    check, _ = checker()
    middleware = GroundednessMiddleware(check, **only(option))
    agent = agent_of(call(text="I look."), TRUE, middleware=middleware)
    events = events_of(agent, how, "groundedness")["groundedness"]
    assert [event["event"] for event in events] == [
        "groundedness.claim",
        "groundedness.verdict",
        "groundedness.decision",
    ]


@pytest.mark.parametrize("option", ["live", "hold_stream"])
def test_what_was_checked_while_it_was_written_is_not_checked_again(how: How, option: str) -> None:
    check, judge = checker()
    middleware = GroundednessMiddleware(check, **only(option))
    agent = agent_of(call(), f"{TRUE} {FALSE}", middleware=middleware)
    tokens(agent, QUESTION, how)
    asked = [claim.text for task in judge.tasks for claim in task.claims]
    assert sorted(asked) == sorted([TRUE, FALSE])


def test_live_leaves_tokens_and_answer_as_they_are(how: How) -> None:
    check, _ = checker()
    middleware = GroundednessMiddleware(check, live=True)
    plain = agent_of(call(text="I look it up."), MIXED, middleware=GroundednessMiddleware(check))
    agent = agent_of(call(text="I look it up."), MIXED, middleware=middleware)
    assert tokens(agent, QUESTION, how) == tokens(plain, QUESTION, how)


# --- holding the stream ---


def held(*replies: Any, **options: Any) -> Any:
    check, _ = checker()
    middleware = GroundednessMiddleware(check, hold_stream=True, **options)
    return agent_of(*(replies or (call(), MIXED)), middleware=middleware)


@pytest.mark.parametrize("mode", ["annotate", "retry", "block"])
def test_only_verified_sentences_get_into_the_token_stream(how: How, mode: Any) -> None:
    agent = held(on_ungrounded=mode, max_retries=0)
    assert "".join(tokens(agent, QUESTION, how)) == VERIFIED


@pytest.mark.parametrize(
    "options",
    [
        {"on_ungrounded": "block"},
        {"on_ungrounded": "review"},
        {"on_ungrounded": "policy"},
        {"on_ungrounded": "retry", "after_retries": "block", "max_retries": 0},
        {"on_contradicted": "block"},
    ],
)
def test_what_may_be_withheld_is_held_without_being_asked(how: How, options: Any) -> None:
    checking = {"verifier": ScriptedVerifier(judged), **options}
    agent = agent_of(
        call(),
        f"{TRUE} {FALSE}",
        middleware=GroundednessMiddleware(**checking),
        checkpointer=InMemorySaver(),
    )
    said = "".join(tokens(agent, QUESTION, how, {"configurable": {"thread_id": "1"}}))
    assert (TRUE in said, FALSE in said) == (True, False)
    with pytest.raises(ConfigurationError, match="hold_stream=False cannot be combined"):
        GroundednessMiddleware(**checking, hold_stream=False)


def test_a_checker_that_needs_the_whole_answer_holds_all_of_it(how: How) -> None:
    whole = checker()[0].with_retry()
    agent = agent_of(call(), FALSE, middleware=GroundednessMiddleware(whole, on_ungrounded="block"))
    assert "".join(tokens(agent, QUESTION, how)) == ""


def test_only_verified_sentences_get_into_event_streams(how: How) -> None:
    found = events_of(held(), how, "messages")["messages"]
    assert ["".join(texts) for texts in found] == ["", VERIFIED]


async def test_only_verified_sentences_get_into_the_older_event_streams() -> None:
    said = [
        event["data"]["chunk"].text
        async for event in held().astream_events(QUESTION, version="v2")
        if event["event"] == "on_chat_model_stream"
    ]
    assert "".join(said) == VERIFIED


def test_sentences_leave_while_later_ones_are_written(how: How) -> None:
    assert len(tokens(held(), QUESTION, how)) > 2


def test_the_state_holds_the_whole_answer_with_its_verdicts(how: How) -> None:
    async def arun(agent: Any) -> Any:
        return [s async for s in agent.astream(QUESTION, stream_mode=["messages", "values"])]

    agent = held()
    modes = ["messages", "values"]
    parts = (
        asyncio.run(arun(agent))
        if how == "async"
        else list(agent.stream(QUESTION, stream_mode=modes))
    )
    state = [data for mode, data in parts if mode == "values"][-1]
    assert state["messages"][-1].text == MIXED
    verdicts = [claim["verdict"] for claim in state["groundedness"]["claims"]]
    assert verdicts == ["supported", "contradicted", "unverifiable", "supported"]


@pytest.mark.parametrize("option", ["live", "hold_stream"])
def test_a_streamed_check_says_where_its_documents_come_from(how: How, option: str) -> None:
    check, _ = checker()
    middleware = GroundednessMiddleware(check, **only(option))
    agent = agent_of(call(), TRUE, middleware=middleware, checkpointer=InMemorySaver())
    thread: Any = {"configurable": {"thread_id": "1"}}
    tokens(agent, QUESTION, how, thread)
    record = agent.get_state(thread).values["groundedness"]
    assert record["evidence_source"] == "retrieved"


def test_corrections_are_streamed_in_the_place_of_what_was_wrong(how: How) -> None:
    middleware = GroundednessMiddleware(hold_stream=True, on_ungrounded="correct")
    agent = agent_of(call(), f"Hello! {FALSE}", middleware=middleware)
    assert "".join(tokens(agent, QUESTION, how)) == "Hello! Revenue was [CORRECTED: $2.1B] in Q3."


def test_tool_calls_are_not_held(how: How) -> None:
    agent = held(call(text="Let me look. It was $9B once."), TRUE)
    assert "".join(tokens(agent, QUESTION, how)).endswith(TRUE)
    state = run(held(call(text="Let me look."), TRUE), QUESTION, how)
    assert [m.type for m in state["messages"]] == ["human", "ai", "tool", "ai"]
    assert state["messages"][1].text == "Let me look."


def test_without_evidence_no_claim_gets_out(how: How) -> None:
    assert "".join(tokens(held(f"Hello! {TRUE}"), QUESTION, how)).strip() == "Hello!"


def test_a_judge_that_fails_lets_nothing_out(how: How) -> None:
    agent = held(call(), f"{TRUE} This one is broken. {TRUE}")
    assert "".join(tokens(agent, QUESTION, how)) == f"{TRUE} {TRUE}"


def test_what_an_extractor_leaves_out_is_not_let_out(how: How) -> None:
    check, _ = checker(extractor=ScriptedClaimExtractor([TRUE]))
    middleware = GroundednessMiddleware(check, hold_stream=True)
    agent = agent_of(call(), f"Hello. {TRUE} Costs were $1B in Q3.", middleware=middleware)
    assert "".join(tokens(agent, QUESTION, how)).strip() == f"Hello. {TRUE}"


def test_a_check_that_breaks_down_lets_nothing_more_out_and_the_agent_goes_on(
    how: How, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = Mock(side_effect=RuntimeError)
    monkeypatch.setattr("langchain_groundedness.pipeline.release.ReleaseRules.edits", broken)
    agent = held(call(), FALSE + " " + MIXED)
    assert tokens(agent, QUESTION, how) == []
    state = run(held(), QUESTION, how)
    assert state["messages"][-1].text == MIXED


def test_an_error_of_the_model_is_the_agents_error(how: How) -> None:
    agent = held(call(), ConnectionError("no model"))
    with pytest.raises(ConnectionError, match="no model"):
        tokens(agent, QUESTION, how)


def test_a_model_that_cannot_stream_is_held_too(how: How) -> None:
    check, _ = checker()
    middleware = GroundednessMiddleware(check, hold_stream=True)
    agent = agent_of(middleware=middleware, model=Silent(replies=[call(), MIXED]))
    assert "".join(tokens(agent, QUESTION, how)) == VERIFIED


@pytest.mark.parametrize("way", ["tool", "provider"])
def test_structured_answers_stay_out_of_a_held_stream(how: How, way: str) -> None:
    strategy: Any = ToolStrategy(Figures) if way == "tool" else ProviderStrategy(Figures)
    value = {"revenue": "It was $2.4B"}
    reply: Any = call("Figures", **value) if way == "tool" else json.dumps(value)
    check, _ = checker()
    middleware = GroundednessMiddleware(check, hold_stream=True)
    agent = agent_of(call(), reply, middleware=middleware, response_format=strategy)

    async def arun() -> list[Any]:
        stream = agent.astream(QUESTION, stream_mode=["messages", "values"])
        return [part async for part in stream]

    if how == "async":
        parts = asyncio.run(arun())
    else:
        parts = list(agent.stream(QUESTION, stream_mode=["messages", "values"]))
    streamed = [d[0] for mode, d in parts if mode == "messages" and d[0].type != "tool"]
    assert "$2.4B" not in str([message.model_dump() for message in streamed])
    state = [data for mode, data in parts if mode == "values"][-1]
    assert state["structured_response"] == Figures(**value)
    assert state["groundedness"]["verdict"] == "has_contradictions"


def test_plain_runs_are_not_held(how: How) -> None:
    state = run(held(), QUESTION, how)
    assert state["messages"][-1].text == MIXED
    assert state["groundedness"]["verdict"] == "has_contradictions"


def test_a_held_stream_pauses_for_review_and_the_judge_is_paid_once(how: How) -> None:
    check, judge = checker()
    middleware = GroundednessMiddleware(check, hold_stream=True, on_ungrounded="review")
    agent = agent_of(call(), f"{TRUE} {FALSE}", middleware=middleware, checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "1"}}
    assert "".join(tokens(agent, QUESTION, how, config)).strip() == TRUE
    asked = len(judge.tasks)
    state = run(agent, Command(resume={"type": "approve"}), how, config)
    assert state["messages"][-1].text == f"{TRUE} {FALSE}"
    assert len(judge.tasks) == asked


def test_only_chat_models_can_be_held() -> None:
    with pytest.raises(ConfigurationError, match="need a BaseChatModel, got RunnableLambda"):
        guarded_model(RunnableLambda(str), None)  # type: ignore[arg-type]


def test_other_middleware_may_call_the_guarded_model_again(how: How) -> None:
    check, _ = checker()
    model = Writer(replies=[call(), ConnectionError(), MIXED])
    again = ModelRetryMiddleware(max_retries=1, initial_delay=0)
    middleware: Any = [again, GroundednessMiddleware(check, hold_stream=True)]
    agent: Any = create_agent(model, tools=[search_tool()], middleware=middleware)
    assert "".join(tokens(agent, QUESTION, how)) == VERIFIED


def test_a_guarded_model_is_its_original_but_for_the_stream() -> None:
    model = Writer(replies=["x"], name="me", metadata={"a": 1})
    check, _ = checker()
    call_ = GuardedCall(check, CheckInput(answer=""), {}, hold=True)
    guarded = guarded_model(model, call_)
    assert isinstance(guarded, Writer)
    assert type(guarded).__name__ == "Writer"
    assert guarded.get_name() == "me"
    assert guarded.metadata == model.metadata
    traced = guarded._get_ls_params()  # noqa: SLF001  (LangChain's hook)
    assert traced == model._get_ls_params()  # noqa: SLF001
    assert guarded.invoke("x").text == "x"
    assert type(guarded_model(model, call_)) is type(guarded)


async def test_the_event_loop_is_free_while_an_answer_is_held() -> None:
    started = asyncio.Event()
    go_on = asyncio.Event()

    async def verify(task: VerificationTask) -> Sequence[ClaimVerdict]:
        started.set()
        await go_on.wait()
        return ScriptedVerifier(judged).invoke(task)

    check = GroundednessRunnable(verifier=RunnableLambda(_never, verify))
    middleware = GroundednessMiddleware(check, hold_stream=True)
    agent = agent_of(call(), TRUE, middleware=middleware)
    said: list[str] = []

    async def read() -> None:
        async for message, _ in agent.astream(QUESTION, stream_mode="messages"):
            if isinstance(message, AIMessage) and message.text:
                said.append(message.text)

    reader = asyncio.create_task(read())
    await started.wait()
    assert said == []
    go_on.set()
    await reader
    assert "".join(said) == TRUE


def _never(task: VerificationTask) -> Sequence[ClaimVerdict]:
    raise AssertionError(task)


class Endless(Writer):
    """Writes on and on, and notes when it is stopped."""

    stopped: list[bool] = Field(default_factory=list)

    def _stream(self, messages: Any, *args: Any, **kwargs: Any) -> Iterator[ChatGenerationChunk]:
        yield from super()._stream(messages)
        try:
            while len(self.requests) > 1:
                yield ChatGenerationChunk(message=AIMessageChunk(content=f" {TRUE}"))
        finally:
            self.stopped.append(True)


@pytest.mark.parametrize("option", ["live", "hold_stream"])
async def test_who_stops_reading_stops_the_model_and_leaves_nothing_running(option: str) -> None:
    # Without a loop, LangGraph waits for the thread of a node to end, whatever runs in it.
    check, _ = checker()
    model = Endless(replies=[call(), TRUE])
    middleware = GroundednessMiddleware(check, **only(option))
    agent = agent_of(middleware=middleware, model=model)
    async with aclosing(agent.astream(QUESTION, stream_mode="messages")) as stream:
        async for message, _ in stream:
            if TRUE[-3:] in message.text and message.type != "tool":
                break
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert len(model.stopped) == 2


@pytest.mark.parametrize("option", ["live", "hold_stream"])
def test_many_agents_at_once_do_not_mix(option: str) -> None:
    async def one(number: int) -> tuple[str, Any]:
        sentence = f"Revenue was ${number}B in Q3."
        check, _ = checker()
        middleware = GroundednessMiddleware(check, **only(option))
        agent = agent_of(call(), f"Hello. {sentence} {FALSE}", middleware=middleware)
        texts, state = [], {}
        async for mode, data in agent.astream(QUESTION, stream_mode=["messages", "values"]):
            if mode == "values":
                state = data
            elif data[0].type != "tool":
                texts.append(data[0].text)
        assert [c["claim"]["text"] for c in state["groundedness"]["claims"]] == [sentence, FALSE]
        return "".join(texts).strip(), state["messages"][-1].text

    async def many() -> list[tuple[str, Any]]:
        return await asyncio.gather(*map(one, range(100, 130)))

    for number, (said, kept) in enumerate(asyncio.run(many()), 100):
        verified = f"Hello. Revenue was ${number}B in Q3."
        assert kept == f"{verified} {FALSE}"
        assert said == (verified if option == "hold_stream" else kept)


def test_without_an_extractor_that_works_nothing_is_let_out(how: How) -> None:
    middleware = GroundednessMiddleware(
        context_extractor=Mock(side_effect=KeyError), hold_stream=True
    )
    agent = agent_of(call(), f"Hello! {TRUE}", middleware=middleware)
    assert "".join(tokens(agent, QUESTION, how)).strip() == "Hello!"


@pytest.mark.parametrize("option", ["hold_stream", "live"])
@pytest.mark.parametrize("value", ["yes", 1, "None"])
def test_streaming_options_that_are_no_truth_values_are_refused(option: str, value: Any) -> None:
    options: Any = {option: value}
    with pytest.raises(ConfigurationError, match=f"{option} must be True or False, got"):
        GroundednessMiddleware(**options)


def test_a_model_may_be_called_with_an_option_named_model() -> None:
    @wrap_model_call
    def other_model(request: Any, handler: Any) -> Any:
        return handler(request.override(model_settings={"model": "other"}))

    middleware = GroundednessMiddleware(GroundednessRunnable(model=streaming_judge()))
    model = Writer(replies=[call(), TRUE])
    both: list[Any] = [other_model, middleware]
    agent = create_agent(model, tools=[search_tool()], middleware=both)
    assert "".join(tokens(agent, QUESTION, "sync")) == TRUE
