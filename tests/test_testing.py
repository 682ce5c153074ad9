import threading
from typing import Any, cast

import pytest
from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.messages import AIMessage
from langchain_openai import ChatOpenAI
from openai import InternalServerError, NotFoundError

from langchain_groundedness import ConfigurationError
from langchain_groundedness.testing import (
    FaultyServer,
    HonestJudge,
    KnownClaim,
    ScriptedChatModel,
    ScriptedClaimExtractor,
    ScriptedRequest,
    ScriptedResponse,
    ScriptedServer,
    ScriptedVerifier,
)
from langchain_groundedness.types import Claim, ClaimVerdict, VerificationTask

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])


def chat(server: ScriptedServer, **options: Any) -> ChatOpenAI:
    return ChatOpenAI(
        model="scripted",
        base_url=server.base_url,
        api_key="none",
        use_responses_api=False,
        max_retries=0,
        **options,
    )


def test_scripted_model_replies_in_order_and_records_what_it_was_asked() -> None:
    model = ScriptedChatModel(replies=["one", AIMessage("two"), OSError("three")])
    assert model.invoke("a").text == "one"
    assert model.invoke("b").text == "two"
    with pytest.raises(OSError, match="three"):
        model.invoke("c")
    with pytest.raises(IndexError, match="script is over: it has 3 replies, this is call 4"):
        model.invoke("d")
    assert [messages[0].text for messages in model.requests] == ["a", "b", "c", "d"]


def test_scripted_model_can_answer_by_what_it_is_asked() -> None:
    model = ScriptedChatModel(replies=lambda messages: messages[-1].text.upper())
    assert model.invoke("a").text == "A"


def test_scripted_model_drives_an_agent_with_tools() -> None:
    def clock(city: str) -> str:
        """Tell the time."""
        return f"It is 9 pm in {city}."

    asks: Any = {"name": "clock", "args": {"city": "Rome"}, "id": "1"}
    model = ScriptedChatModel(replies=[AIMessage("", tool_calls=[asks]), "It is late."])
    agent: Any = create_agent(model, tools=[clock])
    state = agent.invoke({"messages": [("user", "Is it late?")]})
    assert [message.text for message in state["messages"]] == [
        *("Is it late?", "", "It is 9 pm in Rome.", "It is late.")
    ]
    assert len(model.requests) == 2


def test_scripted_model_has_no_structured_output() -> None:
    with pytest.raises(NotImplementedError, match="script the text or the tool calls"):
        ScriptedChatModel(replies=[]).with_structured_output(dict)


def test_scripted_extractor_finds_the_spans_of_its_claims() -> None:
    extractor = ScriptedClaimExtractor(["A is B.", "not there"])
    first, second = extractor.invoke("Yes. A is B.")
    assert (first.id, first.start, first.end) == ("c1", 5, 12)
    assert (second.id, second.start, second.end) == ("c2", None, None)
    assert extractor.tasks[0].answer == "Yes. A is B."


def test_scripted_extractor_can_go_by_the_answer() -> None:
    extractor = ScriptedClaimExtractor(lambda task: task.answer.split("; "))
    assert [claim.text for claim in extractor.invoke("a; b")] == ["a", "b"]


def verification(*texts: str) -> VerificationTask:
    claims = tuple(Claim(id=text, text=text) for text in texts)
    return VerificationTask(claims=claims, documents=(Document("All about it."),))


def test_scripted_verifier_gives_a_verdict_of_each_kind() -> None:
    script = {
        "a": "supported",
        "b": "contradicted",
        "c": "unverifiable",
        "d": "unchecked",
        "e": None,
    }
    verifier = ScriptedVerifier(script)  # type: ignore[arg-type]  # labels as plain strings
    verdicts = verifier.invoke(verification("a", "b", "c", "d", "e", "f"))
    assert [verdict.verdict for verdict in verdicts] == [
        "supported",
        "contradicted",
        "unverifiable",
        "unchecked",
        "unchecked",
        "unchecked",
    ]
    assert verdicts[0].citations[0].quote == "All about it."
    assert len(verifier.tasks) == 1


def test_scripted_verifier_can_go_by_the_claim_and_can_fail() -> None:
    def script(claim: Claim) -> ClaimVerdict | Exception:
        if claim.text == "bad":
            return OSError("broken")
        return ClaimVerdict.unchecked(claim, "later")

    verifier = ScriptedVerifier(script)
    assert verifier.invoke(verification("good"))[0].reason == "later"
    with pytest.raises(OSError, match="broken"):
        verifier.invoke(verification("bad"))


def test_server_answers_in_order_and_then_says_that_the_script_is_over() -> None:
    with ScriptedServer(["one", "two"]) as server:
        model = chat(server)
        assert [model.invoke("a").text, model.invoke("b").text] == ["one", "two"]
        with pytest.raises(Exception, match="the script is over"):
            model.invoke("c")
        assert server.calls == 3
        assert [request.text for request in server.requests] == ["a", "b", "c"]
        assert server.output_tokens > 0
        assert server.prompt_tokens > server.output_tokens


def test_server_answers_at_no_other_path() -> None:
    told = "a scripted server answers /v1/chat/completions alone, not /v1/responses"
    with ScriptedServer(["one"]) as server:
        model = chat(server).model_copy(update={"use_responses_api": True})
        with pytest.raises(NotFoundError, match=told):
            model.invoke("a")
        assert server.calls == 0
        assert chat(server).invoke("a").text == "one"


def test_server_answers_with_any_status_that_providers_use() -> None:
    with (
        ScriptedServer([ScriptedResponse("overloaded", status=529)]) as server,
        pytest.raises(InternalServerError, match="overloaded"),
    ):
        chat(server).invoke("a")


def test_a_script_that_gives_no_text_is_an_error_of_the_server() -> None:
    script: Any = lambda _: None  # noqa: E731  (typed as anything)
    with (
        ScriptedServer(script) as server,
        pytest.raises(InternalServerError, match="the script gave NoneType, neither text nor"),
    ):
        chat(server).invoke("a")


def test_server_counts_usage_as_providers_do() -> None:
    with ScriptedServer(["one two"]) as server:
        message = chat(server).invoke("a")
    assert message.usage_metadata is not None
    assert message.usage_metadata["output_tokens"] == 2


def test_server_streams_text_and_tool_calls() -> None:
    with ScriptedServer(["one two three", '{"a": 1}']) as server:
        model = chat(server)
        pieces = [chunk.text for chunk in model.stream("a")]
        assert [piece for piece in pieces if piece] == ["one", " two", " three"]
        tool = {"title": "f", "description": "f", "type": "object", "properties": {}}
        (call,) = model.bind_tools([tool]).invoke("b", stream=True).tool_calls
        assert call["args"] == {"a": 1}


def test_server_gives_log_probabilities_only_when_asked() -> None:
    reply = ScriptedResponse("yes", logprobs={"yes": -0.1, "no": -2.0})
    with ScriptedServer(lambda _: reply) as server:
        plain = chat(server).invoke("a")
        asked = chat(server).bind(logprobs=True, top_logprobs=2).invoke("a")
    assert not plain.response_metadata.get("logprobs")
    (position,) = asked.response_metadata["logprobs"]["content"]
    assert position["token"] == "yes"  # noqa: S105  (a token of text)
    assert [option["token"] for option in position["top_logprobs"]] == ["yes", "no"]


def test_server_holds_a_response_back_until_it_is_released() -> None:
    release = threading.Event()
    with ScriptedServer(lambda _: ScriptedResponse("done", after=release)) as server:
        model = chat(server)
        replies: list[str] = []
        asking = [
            threading.Thread(target=lambda: replies.append(model.invoke("a").text))
            for _ in range(3)
        ]
        for thread in asking:
            thread.start()
        while server.calls < 3:
            threading.Event().wait(0.001)
        assert replies == []
        release.set()
        for thread in asking:
            thread.join()
        assert replies == ["done"] * 3
        assert server.peak_concurrency == 3


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: ScriptedChatModel(replies="yes"), r"replies must be a list of replies"),
        (lambda: ScriptedServer("yes"), r"the script must be a list of answers"),
        (
            lambda: ScriptedVerifier(cast("Any", {"A.": "suported"})),
            r"says 'suported'; it may say supported,",
        ),
        (lambda: HonestJudge(cast("Any", {"A.": "supported"})), r"give a KnownClaim"),
        (
            lambda: HonestJudge({"A.": KnownClaim(cast("Any", "true"), "A.")}),
            r"a judge says supported, ",
        ),
        (
            lambda: FaultyServer(["yes"], fault=cast("Any", 5)),
            r"there is no fault 5; there are garbled",
        ),
    ],
)
def test_a_script_that_cannot_be_meant_is_refused(make: Any, told: str) -> None:
    with pytest.raises((ConfigurationError, ValueError), match=told):
        make()


def test_a_script_that_raises_is_an_error_of_the_server() -> None:
    def broken(_: ScriptedRequest) -> str:
        raise KeyError

    with ScriptedServer(broken) as server:
        for _ in range(2):
            with pytest.raises(InternalServerError, match=r"the script failed with KeyError\(\)"):
                chat(server).invoke("Is it?")
    assert server.peak_concurrency == 1
