import asyncio
import math
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage
from langchain_openai import ChatOpenAI
from no_labels import NO_LABELS

from langchain_groundedness import LLMVerifier
from langchain_groundedness.testing import ScriptedChatModel, ScriptedResponse, ScriptedServer
from langchain_groundedness.types import Claim, ClaimVerdict, VerificationTask
from langchain_groundedness.verification.llm import label_probabilities

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])

DOCUMENTS = (Document("Rome is the capital of Italy. It has three metro lines. Pigeons abound."),)


def task(*texts: str) -> VerificationTask:
    claims = tuple(Claim(id=f"id-{n}", text=text) for n, text in enumerate(texts, 1))
    return VerificationTask(claims=claims, documents=DOCUMENTS)


def verify(model: Any, *texts: str) -> list[ClaimVerdict]:
    verifier = LLMVerifier(model=model, strategy="per_claim", max_concurrency=1)
    return verifier.invoke(task(*texts or ("Rome has three metro lines.",)))


def chat(server: ScriptedServer) -> ChatOpenAI:
    return ChatOpenAI(
        model="scripted",
        base_url=server.base_url,
        api_key="none",
        use_responses_api=False,
        max_retries=0,
    )


def reply(**logprobs: float) -> ScriptedResponse:
    return ScriptedResponse(max(logprobs, key=lambda t: logprobs[t]), logprobs=logprobs)


@pytest.mark.parametrize(
    ("claim", "shown"), [("Three.", True), ("Rome has three metro lines in all.", False)]
)
def test_only_a_short_answer_is_judged_with_its_question(claim: str, *, shown: bool) -> None:
    model = ScriptedChatModel(replies=["yes"])
    asked = task(claim).model_copy(update={"question": "How many lines are there?"})
    LLMVerifier(model=model, strategy="per_claim").invoke(asked)
    assert ("How many lines" in str(model.requests[0])) is shown


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("yes", "supported"),
        ("Yes.", "supported"),
        ("No!", "contradicted"),
        ("```\nno\n```", "contradicted"),
        ("**Unknown**", "unverifiable"),
        ("<think>yes or no?</think>\nunknown", "unverifiable"),
        ('"yes".', "supported"),
        ("[THINK]no[/THINK]yes", "supported"),
        ("- `Supported`", "supported"),
        ("unsupported", "unverifiable"),
    ],
)
def test_a_word_is_a_verdict(text: str, label: str) -> None:
    (verdict,) = verify(FakeListChatModel(responses=[text]))
    assert verdict.verdict == label
    assert verdict.support_probability is None


@pytest.mark.parametrize("text", NO_LABELS)
def test_a_label_further_on_in_a_sentence_is_no_verdict(text: str) -> None:
    (verdict,) = verify(FakeListChatModel(responses=[text]))
    assert (verdict.verdict, verdict.reason) == ("unchecked", "the reply is not a label")


def test_the_citation_is_the_sentence_that_fits_the_claim_best() -> None:
    (verdict,) = verify(FakeListChatModel(responses=["yes"]))
    assert [citation.quote for citation in verdict.citations] == ["It has three metro lines."]


def test_support_of_a_claim_that_shares_no_word_with_the_evidence_does_not_count() -> None:
    (verdict,) = verify(FakeListChatModel(responses=["yes"]), "Zebras gallop.")
    assert verdict.verdict == "unverifiable"


def test_probability_is_the_share_of_the_label_among_the_labels() -> None:
    options = {"yes": math.log(0.6), "no": math.log(0.1), "unknown": math.log(0.1), "x": -3.0}
    with ScriptedServer([reply(**options)]) as server:
        (verdict,) = verify(chat(server))
        body = server.requests[0].body
    assert verdict.verdict == "supported"
    assert verdict.support_probability == pytest.approx(0.75)
    assert body["logprobs"] is True
    assert body["top_logprobs"] > 0


@pytest.mark.parametrize(("threshold", "label"), [(0.5, "unverifiable"), (0.2, "supported")])
def test_the_threshold_decides_how_much_probability_is_support(
    threshold: float, label: str
) -> None:
    with ScriptedServer([reply(yes=math.log(0.3), unknown=math.log(0.7))]) as server:
        verifier = LLMVerifier(
            model=chat(server), strategy="per_claim", support_threshold=threshold
        )
        (verdict,) = verifier.invoke(task("Rome has three metro lines."))
    assert verdict.verdict == label
    assert verdict.support_probability == pytest.approx(0.3)


def test_the_likeliest_label_decides_and_not_the_one_that_was_sampled() -> None:
    response = ScriptedResponse("no", logprobs={" Yes": math.log(0.7), "no": math.log(0.2)})
    with ScriptedServer([response]) as server:
        (verdict,) = verify(chat(server))
    assert verdict.verdict == "supported"


def position(token: str, **options: float) -> dict[str, Any]:
    top = [{"token": t, "logprob": math.log(p)} for t, p in options.items()]
    return {"token": token, "logprob": -0.1, "top_logprobs": top}


def message(*positions: dict[str, Any]) -> AIMessage:
    return AIMessage("", response_metadata={"logprobs": {"content": list(positions)}})


def test_spellings_and_beginnings_of_a_label_add_up() -> None:
    found = label_probabilities(message(position("yes", yes=0.3, Yes=0.3, unk=0.2, no=0.2)))
    assert found == pytest.approx({"supported": 0.6, "unverifiable": 0.2, "contradicted": 0.2})


def test_markup_before_a_label_is_passed_over() -> None:
    raw = message(position("**", yes=0.5), position("yes", yes=0.8, no=0.2), position("!", no=0.9))
    assert label_probabilities(raw) == pytest.approx({"supported": 0.8, "contradicted": 0.2})


def test_a_label_may_be_made_of_several_tokens() -> None:
    raw = message(position(" un", **{" un": 0.8, "yes": 0.2}), position("supported", supported=1))
    assert label_probabilities(raw) == pytest.approx({"unverifiable": 0.8, "supported": 0.2})


def test_thoughts_hold_no_label() -> None:
    thought = [position("<think>", x=0.5), position("yes", yes=0.9), position("</think>", x=0.5)]
    raw = message(*thought, position("\n\n", x=0.5), position("no", no=0.8, yes=0.2))
    assert label_probabilities(raw) == pytest.approx({"supported": 0.2, "contradicted": 0.8})
    assert label_probabilities(message(*thought[:2])) == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The statement is supported.", ("supported", 0.75)),
        ("The statement is not supported.", ("unchecked", None)),
    ],
)
def test_a_model_that_writes_sentences_is_read_by_the_labels_it_might_have_begun_with(
    text: str, expected: tuple[str, float | None]
) -> None:
    metadata = {"logprobs": {"content": [position("The", The=0.8, Yes=0.06, No=0.02)]}}
    model = ScriptedChatModel(replies=[AIMessage(text, response_metadata=metadata)] * 2)
    (verdict,) = verify(model)
    assert verdict.verdict == expected[0]
    assert verdict.support_probability == pytest.approx(expected[1])
    assert "Only one word" in str(model.requests[1])


def test_a_tool_call_is_no_word() -> None:
    call: Any = {"name": "set_verdict", "args": "yes", "id": "1", "error": "no JSON"}
    raw = AIMessage("", invalid_tool_calls=[call])
    (verdict,) = verify(ScriptedChatModel(replies=[raw, raw]))
    assert verdict.verdict == "unchecked"


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("The evidence names two lanes", {"The": 0.999, "yes": 1e-4, "no": 1e-5}),
        ("Das stimmt so", {"Das": 0.6, "yes": 0.2, "no": 0.1}),
    ],
)
def test_a_sentence_that_nothing_ties_to_a_label_is_none(
    text: str, options: dict[str, float]
) -> None:
    metadata = {"logprobs": {"content": [position(text.split(maxsplit=1)[0], **options)]}}
    model = ScriptedChatModel(replies=[AIMessage(text, response_metadata=metadata)] * 2)
    (verdict,) = verify(model)
    assert verdict.verdict == "unchecked"


def test_log_probabilities_of_a_label_further_on_are_no_verdict() -> None:
    positions = [position("Not", Not=0.9, no=0.01), position(" supported", supported=0.99)]
    metadata = {"logprobs": {"content": positions}}
    raw = AIMessage("Not supported", response_metadata=metadata)
    assert label_probabilities(raw) == {}
    (verdict,) = verify(ScriptedChatModel(replies=[raw, raw]))
    assert (verdict.verdict, verdict.reason) == ("unchecked", "the reply is not a label")


@pytest.mark.parametrize(
    "raw",
    [
        None,
        "yes",
        AIMessage("yes"),
        AIMessage("yes", response_metadata={"logprobs": None}),
        AIMessage("yes", response_metadata={"logprobs": {"content": None}}),
        message(position("maybe", perhaps=0.5)),
        message({"token": "y", "logprob": -1.0, "top_logprobs": []}),
    ],
)
def test_without_log_probabilities_of_a_label_there_are_none(raw: Any) -> None:
    assert label_probabilities(raw) == {}


@pytest.mark.parametrize("broken", [math.nan, 0.1, "x", None, True, math.inf])
def test_log_probabilities_that_are_none_count_as_none(broken: Any) -> None:
    top = [{"token": "yes", "logprob": broken}, {"token": "no", "logprob": -0.1}]
    position = {"token": "yes", "logprob": broken, "top_logprobs": top}
    raw = AIMessage("yes", response_metadata={"logprobs": {"content": [position]}})
    assert label_probabilities(raw) == {}
    (verdict,) = verify(ScriptedChatModel(replies=[raw]))
    assert (verdict.verdict, verdict.support_probability) == ("supported", None)


@pytest.mark.parametrize("text", ["Yes, but two lanes.", "Yes is wrong", "Yes: 0%", "Yes? Hardly."])
def test_log_probabilities_do_not_outweigh_a_text_that_takes_its_word_back(text: str) -> None:
    metadata = {"logprobs": {"content": [position("Yes", Yes=0.9, No=0.1)]}}
    raw = AIMessage(text, response_metadata=metadata)
    (verdict,) = verify(ScriptedChatModel(replies=[raw, raw]))
    assert verdict.verdict == "unchecked"


@pytest.mark.parametrize("status", [400, 422, 500])
def test_a_server_that_refuses_log_probabilities_is_asked_without_and_not_again(
    status: int,
) -> None:
    def script(request: Any) -> ScriptedResponse:
        if request.body.get("logprobs"):
            return ScriptedResponse("no logprobs here", status=status)
        return ScriptedResponse("yes")

    with ScriptedServer(script) as server:
        verdicts = verify(chat(server), "Rome is in Italy.", "Italy has Rome.", "Rome: Italy.")
        assert [verdict.verdict for verdict in verdicts] == ["supported"] * 3
        assert [bool(r.body.get("logprobs")) for r in server.requests] == [True, *[False] * 3]


def test_once_log_probabilities_worked_an_error_is_an_error() -> None:
    answers = [reply(yes=-0.1), ScriptedResponse("broken", status=500)]
    with ScriptedServer(answers) as server:
        first, second = verify(chat(server), "Rome is in Italy.", "Italy has Rome.")
        assert server.calls == 2
    assert first.verdict == "supported"
    assert second.verdict == "unchecked"
    assert "from the judge" in str(second.reason)


def test_a_reply_that_is_no_label_is_asked_for_once_more() -> None:
    model = ScriptedChatModel(replies=["hm", "yes"])
    assert verify(model)[0].verdict == "supported"
    model = ScriptedChatModel(replies=["hm", "hm"])
    (verdict,) = verify(model)
    assert (verdict.verdict, verdict.reason) == ("unchecked", "the reply is not a label")


def test_a_refusal_is_unchecked_and_not_asked_again() -> None:
    model = ScriptedChatModel(replies=[AIMessage("no", additional_kwargs={"refusal": "no"})])
    (verdict,) = verify(model)
    assert (verdict.verdict, verdict.reason) == ("unchecked", "the model refused to answer")


def test_a_failing_call_leaves_only_its_claim_unchecked() -> None:
    model = ScriptedChatModel(replies=["yes", TimeoutError("secret"), "unknown"])
    verdicts = verify(model, "Rome is in Italy.", "Italy has Rome.", "Rome is wet.")
    assert [verdict.verdict for verdict in verdicts] == ["supported", "unchecked", "unverifiable"]
    assert verdicts[1].reason == "TimeoutError from the judge"


def test_the_evidence_is_the_same_start_of_every_prompt() -> None:
    model = ScriptedChatModel(replies=["yes", "yes"])
    verify(model, "Rome is in Italy.", "Italy has Rome.")
    first, second = (messages[-1].text for messages in model.requests)
    assert first[: first.index("<statement ")] == second[: second.index("<statement ")]
    assert first.startswith("<evidence ")


async def test_the_async_path_gives_the_same_verdicts() -> None:
    with ScriptedServer(lambda _: reply(yes=-0.2, no=-2.0)) as server:
        verifier = LLMVerifier(model=chat(server), strategy="per_claim")
        question = task("Rome is in Italy.", "Italy has Rome.")
        expected = await asyncio.to_thread(verifier.invoke, question)
        assert await verifier.ainvoke(question) == expected
        assert [v async for chunk in verifier.astream(question) for v in chunk] != []
