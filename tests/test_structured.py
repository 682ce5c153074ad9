import asyncio
import gc
import json
import re
import weakref
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_openai import ChatOpenAI
from pydantic import BaseModel, ConfigDict, ValidationError

from langchain_groundedness import LLMClaimExtractor, LLMVerifier
from langchain_groundedness.exceptions import OutputParsingError
from langchain_groundedness.llm import structured
from langchain_groundedness.llm.replies import reply_in_error, reply_text
from langchain_groundedness.llm.structured import ModelRefusedError, StructuredModel
from langchain_groundedness.testing import (
    ScriptedChatModel,
    ScriptedRequest,
    ScriptedResponse,
    ScriptedServer,
)
from langchain_groundedness.types import Claim, VerificationTask

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])

PROMPT = ChatPromptTemplate.from_messages([("human", "Say {what}.")])


class Lines(BaseModel):
    """Lines of a reply."""

    model_config = ConfigDict(extra="forbid")

    lines: list[str]


class Rating(BaseModel):
    """A rating."""

    score: int
    reason: str


GOOD = json.dumps({"lines": ["a b", "c d"]})
EXPECTED = Lines(lines=["a b", "c d"])


def from_text(text: str) -> Lines | None:
    lines = [line for line in text.splitlines() if re.fullmatch(r"\w \w", line)]
    return Lines(lines=lines) if lines else None


def ask(
    model: Runnable[Any, Any], reader: Callable[[str], Lines | None] | None = from_text
) -> StructuredModel[Lines]:
    return StructuredModel[Lines](
        model=model, prompt=PROMPT, reply_schema=Lines, name="say_lines", from_text=reader
    )


def chat(server: ScriptedServer) -> ChatOpenAI:
    return ChatOpenAI(
        model="scripted",
        base_url=server.base_url,
        api_key="none",
        use_responses_api=False,
        max_retries=0,
    )


def forms(server: ScriptedServer) -> list[str]:
    return [request.form for request in server.requests]


def accepting(*accepted: str, text: str = GOOD) -> Callable[[ScriptedRequest], ScriptedResponse]:
    def script(request: ScriptedRequest) -> ScriptedResponse:
        if request.form in accepted:
            return ScriptedResponse(text)
        return ScriptedResponse("not supported", status=500)

    return script


def test_a_model_with_structured_output_is_asked_once() -> None:
    with ScriptedServer([GOOD]) as server:
        assert ask(chat(server)).invoke({"what": "it"}) == EXPECTED
        assert forms(server) == ["json_schema"]


@pytest.mark.parametrize(
    ("accepted", "tried"),
    [
        ("json_schema", ["json_schema"]),
        ("tool", ["json_schema", "tool"]),
        ("json_object", ["json_schema", "tool", "json_object"]),
        ("text", ["json_schema", "tool", "json_object", "text"]),
    ],
)
def test_the_step_that_a_server_accepts_is_found_and_remembered(
    accepted: str, tried: list[str]
) -> None:
    with ScriptedServer(accepting(accepted)) as server:
        model = chat(server)
        assert ask(model).invoke({"what": "it"}) == EXPECTED
        assert forms(server) == tried
        assert ask(model).invoke({"what": "it"}) == EXPECTED
        assert forms(server) == [*tried, accepted]


async def test_the_async_path_finds_the_same_step() -> None:
    with ScriptedServer(accepting("json_object")) as server:
        assert await ask(chat(server)).ainvoke({"what": "it"}) == EXPECTED
        assert forms(server) == ["json_schema", "tool", "json_object"]


def test_json_mode_is_asked_for_json_in_words() -> None:
    with ScriptedServer(accepting("json_object")) as server:
        ask(chat(server)).invoke({"what": "it"})
        assert 'JSON object: {"lines": ["…", "…"]}' in server.requests[-1].text


def test_what_was_learnt_is_forgotten_with_the_model() -> None:
    with ScriptedServer(accepting("tool")) as server:
        for _ in range(5):  # a model is likely to lie where the one before has lain
            assert ask(chat(server)).invoke({"what": "it"}) == EXPECTED
            gc.collect()
        assert forms(server) == ["json_schema", "tool"] * 5


def test_how_a_model_is_asked_is_made_once_and_goes_with_whoever_asks() -> None:
    made = []

    class Counting(FakeListChatModel):
        def with_structured_output(self, schema: Any = None, **_: Any) -> Any:
            made.append(schema)
            return RunnableLambda(lambda _: {"raw": AIMessage("1: A is."), "parsed": None})

    verifier = LLMVerifier(model=Counting(responses=["-"]))
    extractor = LLMClaimExtractor(model=verifier.model)
    for _ in range(3):
        extractor.invoke("A is.")
        verifier.invoke(
            VerificationTask(claims=(Claim(id="c1", text="A."),), documents=(Document("A."),))
        )
    assert len(made) == 2
    model = weakref.ref(verifier.model)
    del verifier, extractor
    gc.collect()
    assert model() is None


class ContextOverflowError(ValueError):
    pass


class OddError(Exception):
    def __init__(self, status: int) -> None:
        self.response = SimpleNamespace(status_code=status)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (NotImplementedError(), True),
        (TypeError(), True),
        (ValueError(), True),
        (OddError(422), True),
        (OddError(500), True),
        (OddError(429), False),
        (TimeoutError(), False),
        (ContextOverflowError(), False),
    ],
)
def test_only_errors_that_another_form_might_mend_are_tried_in_another(
    error: Exception,
    expected: bool,  # noqa: FBT001  (a column of the table above)
) -> None:
    assert structured.may_be_unsupported(error) is expected


@pytest.mark.parametrize("status", [401, 403, 429, 503])
def test_an_error_that_no_other_form_would_mend_is_raised_at_once(status: int) -> None:
    with ScriptedServer(lambda _: ScriptedResponse("no", status=status)) as server:
        with pytest.raises(Exception, match="no") as caught:
            ask(chat(server)).invoke({"what": "it"})
        assert getattr(caught.value, "status_code", None) == status
        assert server.calls == 1


@pytest.mark.parametrize("status", [404, 500])
def test_an_error_that_may_pass_does_not_cost_the_model_its_best_form(status: int) -> None:
    replies: list[str | ScriptedResponse] = [
        ScriptedResponse("try later", status=status),
        GOOD,
        GOOD,
    ]
    with ScriptedServer(replies) as server:
        model = chat(server)
        for _ in range(2):
            assert ask(model).invoke({"what": "it"}) == EXPECTED
        assert forms(server) == ["json_schema", "tool", "json_schema"]


def test_a_form_that_fails_twice_is_not_tried_again() -> None:
    bad = ScriptedResponse("try later", status=500)
    with ScriptedServer([bad, GOOD, bad, GOOD, GOOD]) as server:
        model = chat(server)
        for _ in range(3):
            assert ask(model).invoke({"what": "it"}) == EXPECTED
        assert forms(server) == ["json_schema", "tool", "json_schema", "tool", "tool"]


def test_when_the_server_refuses_every_form_its_last_error_is_raised() -> None:
    with ScriptedServer(lambda _: ScriptedResponse("broken", status=500)) as server:
        with pytest.raises(Exception, match="broken"):
            ask(chat(server)).invoke({"what": "it"})
        assert forms(server) == ["json_schema", "tool", "json_object", "text"]


@pytest.mark.parametrize(
    "reply",
    [
        GOOD,
        f"Here it is:\n```json\n{GOOD}\n```\nDone.",
        "{lines: ['a b', 'c d']}",
        '["a b", "c d"]',
        "<think>{lines?}</think>a b\nc d",
        "a b\nc d",
        AIMessage([{"type": "text", "text": GOOD}]),
        AIMessage("", tool_calls=[{"name": "Lines", "args": json.loads(GOOD), "id": "1"}]),
        json.dumps({"lines": "a b\nc d"}),
        json.dumps({"lines": ["a b", "c d"], "more": 1}),
        json.dumps({"lines": ["a b", None, {"x": "c", "y": "d"}, []]}),
    ],
)
def test_a_reply_is_read_in_whatever_form_it_comes(reply: Any) -> None:
    model = ScriptedChatModel(replies=[reply])
    assert ask(model).invoke({"what": "it"}) == EXPECTED


@pytest.mark.parametrize("cut", range(len('{"lines": ["a b", "c d'), len(GOOD) - 1))
def test_the_last_entry_of_a_reply_that_was_cut_off_does_not_count(cut: int) -> None:
    reply = ask(ScriptedChatModel(replies=[GOOD[:cut]])).invoke({"what": "it"})
    assert reply == Lines(lines=["a b"])


def test_arguments_of_a_tool_call_that_were_cut_off_keep_their_complete_entries() -> None:
    call = {"name": "Lines", "args": GOOD[:-4], "id": "1", "error": None}
    message = AIMessage("", invalid_tool_calls=[call])
    reply = ask(ScriptedChatModel(replies=[message])).invoke({"what": "it"})
    assert reply == Lines(lines=["a b"])


def test_a_structured_reply_cut_off_at_the_token_limit_keeps_its_complete_entries() -> None:
    cut = ScriptedResponse(GOOD[:-4], finish_reason="length")
    with ScriptedServer([cut]) as server:
        assert ask(chat(server)).invoke({"what": "it"}) == Lines(lines=["a b"])


def test_a_line_that_was_cut_off_inside_a_schema_does_not_count() -> None:
    """The client raises then; what it got is read like any reply that was cut off."""
    cut = ScriptedResponse("a b\nc d", finish_reason="length")
    with ScriptedServer([cut]) as server:
        assert ask(chat(server)).invoke({"what": "it"}) == Lines(lines=["a b"])


def test_that_a_reply_was_cut_off_inside_a_schema_is_said() -> None:
    cut = ScriptedResponse("", finish_reason="length")
    with ScriptedServer([cut] * 3) as server, pytest.raises(OutputParsingError) as caught:
        ask(chat(server)).invoke({"what": "it"})
    assert str(caught.value).endswith("cut off at the limit of tokens, see the model's max_tokens")


def test_an_unreadable_reply_is_asked_for_once_more_in_plain_form() -> None:
    model = ScriptedChatModel(replies=["hm", "a b\nc d"])
    assert ask(model).invoke({"what": "it"}) == EXPECTED
    first, second = model.requests
    assert [m.type for m in second] == [*(m.type for m in first), "ai", "human"]
    assert second[1].text == "hm"


@pytest.mark.parametrize("reply", ["", "hm", "{}", '{"other": 1}', "null", '{"lines": 5}'])
def test_two_unreadable_replies_are_an_error_with_the_raw_reply(reply: str) -> None:
    model = ScriptedChatModel(replies=[reply, reply])
    with pytest.raises(OutputParsingError) as caught:
        ask(model).invoke({"what": "it"})
    assert caught.value.raw == reply
    assert caught.value.prompt_name == "say_lines"
    assert not reply or reply not in str(caught.value)


def test_a_reply_of_none_is_an_error() -> None:
    nothing: Runnable[Any, Any] = RunnableLambda(lambda _: None)
    with pytest.raises(OutputParsingError):
        ask(nothing).invoke({"what": "it"})


@pytest.mark.parametrize(
    "reply",
    [
        AIMessage("I cannot.", additional_kwargs={"refusal": "I cannot."}),
        AIMessage("a b", response_metadata={"finish_reason": "content_filter"}),
        AIMessage("a b", response_metadata={"stop_reason": "refusal"}),
        AIMessage([{"type": "refusal", "refusal": "no"}]),
    ],
)
def test_a_refusal_is_not_asked_again(reply: BaseMessage) -> None:
    model = ScriptedChatModel(replies=[reply])
    with pytest.raises(ModelRefusedError):
        ask(model).invoke({"what": "it"})
    assert len(model.requests) == 1


@pytest.mark.parametrize(
    "response",
    [ScriptedResponse(refusal="I cannot."), ScriptedResponse(finish_reason="content_filter")],
)
def test_a_refusal_of_structured_output_is_not_asked_again(response: ScriptedResponse) -> None:
    with ScriptedServer([response]) as server:
        with pytest.raises(ModelRefusedError):
            ask(chat(server)).invoke({"what": "it"})
        assert server.calls == 1


def test_an_error_named_like_a_refusal_is_a_refusal() -> None:
    class ModelRefusalError(Exception):
        pass

    model = ScriptedChatModel(replies=[ModelRefusalError("no")])
    with pytest.raises(ModelRefusedError):
        ask(model).invoke({"what": "it"})


def test_bound_options_reach_the_server_with_structured_output() -> None:
    with ScriptedServer([GOOD]) as server:
        bound = chat(server).bind(temperature=0.25)
        assert ask(bound).invoke({"what": "it"}) == EXPECTED
        assert forms(server) == ["json_schema"]
        assert server.requests[0].body["temperature"] == 0.25


def test_options_that_are_no_field_of_the_model_are_kept_by_asking_plainly() -> None:
    with ScriptedServer(["a b\nc d"]) as server:
        bound = chat(server).bind(user="someone")
        assert ask(bound).invoke({"what": "it"}) == EXPECTED
        assert forms(server) == ["text"]
        assert server.requests[0].body["user"] == "someone"


def test_a_retrying_model_retries_structured_output() -> None:
    answers: list[str | ScriptedResponse] = [ScriptedResponse("busy", status=429), GOOD]
    with ScriptedServer(answers) as server:
        retrying = chat(server).with_retry(wait_exponential_jitter=False)
        assert ask(retrying).invoke({"what": "it"}) == EXPECTED
        assert forms(server) == ["json_schema", "json_schema"]


def test_a_model_with_fallbacks_falls_back() -> None:
    with ScriptedServer([ScriptedResponse("busy", status=429), GOOD]) as server:
        model = chat(server).with_fallbacks([chat(server)])
        assert ask(model).invoke({"what": "it"}) == EXPECTED


def test_without_a_line_protocol_the_schema_is_spelled_out() -> None:
    model = ScriptedChatModel(replies=[json.dumps({"score": 3, "reason": "why"})])
    rate = StructuredModel[Rating](model=model, prompt=PROMPT, reply_schema=Rating, name="rate")
    assert rate.invoke({"what": "it"}) == Rating(score=3, reason="why")
    assert '{"score": 0, "reason": "…"}' in model.requests[0][-1].text


def test_cut_off_fields_are_missing_fields() -> None:
    cut = '{"score": 3, "reason": "because it'
    model = ScriptedChatModel(replies=[cut, cut])
    rate = StructuredModel[Rating](model=model, prompt=PROMPT, reply_schema=Rating, name="rate")
    with pytest.raises(OutputParsingError):
        rate.invoke({"what": "it"})


def test_model_calls_are_tagged_so_that_agents_do_not_stream_them() -> None:
    seen: list[list[str]] = []

    class Handler(BaseCallbackHandler):
        def on_chat_model_start(self, *_: Any, tags: list[str] | None = None, **__: Any) -> None:
            seen.append(tags or [])

    ask(ScriptedChatModel(replies=["a b"])).invoke({"what": "it"}, {"callbacks": [Handler()]})
    assert [tags.count("nostream") for tags in seen] == [1]


async def test_cancellation_propagates() -> None:
    started = asyncio.Event()

    async def hang(_: Any) -> str:
        started.set()
        await asyncio.Event().wait()
        return "never"

    hanging: Runnable[Any, Any] = RunnableLambda(hang)
    task = asyncio.create_task(ask(hanging).ainvoke({"what": "it"}))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_text_of_a_tool_call_is_its_arguments() -> None:
    message = AIMessage("", tool_calls=[{"name": "f", "args": {"a": "é"}, "id": "1"}])
    assert reply_text(message) == '{"a": "é"}'


@pytest.mark.parametrize(
    "metadata",
    [{"finish_reason": "length"}, {"stop_reason": "max_tokens"}, {"done_reason": "length"}],
)
def test_the_last_line_of_a_plain_reply_that_hit_the_token_limit_does_not_count(
    metadata: dict[str, str],
) -> None:
    message = AIMessage("a b\nc d", response_metadata=metadata)
    reply = ask(ScriptedChatModel(replies=[message])).invoke({"what": "it"})
    assert reply == Lines(lines=["a b"])


def client_error(content: Any) -> ValidationError:
    """What the OpenAI client raises on a reply that is no JSON, as LangChain passes it on."""
    with pytest.raises(ValidationError) as caught:
        Lines.model_validate_json("{")
    error: Any = caught.value
    body = {"choices": [{"message": {"content": content}}]}
    error.response = SimpleNamespace(json=lambda: body if content != "none" else {})
    return caught.value


def test_a_reply_that_the_client_could_not_parse_is_read_from_its_error() -> None:
    assert reply_text(reply_in_error(client_error("half"))) == "half"
    assert reply_text(reply_in_error(client_error(None))) == ""
    assert reply_in_error(client_error("none")) is None
    assert reply_in_error(ValueError()) is None


def test_a_garbled_structured_reply_is_mended_without_another_call() -> None:
    with ScriptedServer([GOOD[:-4]]) as server:
        assert ask(chat(server)).invoke({"what": "it"}) == Lines(lines=["a b"])
        assert forms(server) == ["json_schema"]


def test_quotes_and_brackets_inside_strings_do_not_count_as_cut_off() -> None:
    reply = '{"lines": ["a \\"[{ b", "c d",]}'
    assert ask(ScriptedChatModel(replies=[reply])).invoke({"what": "it"}).lines[-1] == "c d"


def test_a_list_that_was_cut_off_loses_its_last_entry() -> None:
    reply = ask(ScriptedChatModel(replies=['["a b", "c d'])).invoke({"what": "it"})
    assert reply == Lines(lines=["a b"])
