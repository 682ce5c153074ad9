"""One call finds the claims of an answer and judges them, and promises what two calls promise."""

import asyncio
import re
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.load import dumpd, load
from langchain_core.messages import BaseMessage
from langchain_core.prompts import (
    ChatPromptTemplate,
    HumanMessagePromptTemplate,
    PromptTemplate,
)
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_openai import ChatOpenAI
from prompt_text import without_codes

from langchain_groundedness import (
    ConfigurationError,
    GroundednessCallbackHandler,
    GroundednessGuard,
    GroundednessMiddleware,
    GroundednessResult,
    GroundednessRunnable,
    JsonlAuditLog,
    SentenceClaimExtractor,
    SinglePassJudge,
    VerificationError,
    load_arguments,
)
from langchain_groundedness.evidence import EvidencePacker
from langchain_groundedness.testing import (
    HonestJudge,
    KnownClaim,
    ScriptedChatModel,
    ScriptedRequest,
    ScriptedServer,
)
from langchain_groundedness.types import VerificationTask

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])

DOCUMENTS = (
    Document("Rome is the capital of Italy. It lies on the Tiber.", id="rome"),
    Document("Rome has two metro lines."),
)
ANSWER = "Sure! Rome is in Italy. It lies on the Tiber and has 3 metro lines."
REPLY = (
    "{tag} S1: skip\n"
    "{tag} S2: 1 supported\n"
    "{tag} S3 (Rome lies on the Tiber): 2 supported\n"
    "{tag} S3 (Rome has 3 metro lines): 3 contradicted | two | two lines, not three"
)
GIVEN = {"question": "And Rome?", "answer": ANSWER, "documents": list(DOCUMENTS)}


def scripted(*replies: Any, **options: Any) -> tuple[GroundednessRunnable, ScriptedChatModel]:
    model = ScriptedChatModel(replies=list(replies))
    return GroundednessRunnable(model=model, single_pass=True, **options), model


def check(*replies: Any, answer: str = ANSWER, **options: Any) -> GroundednessResult:
    checker, _ = scripted(*replies, **options)
    return checker.invoke({**GIVEN, "answer": answer})


def verdicts_by_claim(result: GroundednessResult) -> list[tuple[str, str]]:
    assert [v.claim.id for v in result.claims] == [
        f"c{n}" for n in range(1, len(result.claims) + 1)
    ]
    return [(v.claim.text, v.verdict) for v in result.claims]


def test_one_call_finds_the_claims_and_judges_them_with_quotes() -> None:
    checker, model = scripted(REPLY)
    result = checker.invoke(GIVEN)
    assert len(model.requests) == 1
    assert result.usage.model_calls == 1
    assert verdicts_by_claim(result) == [
        ("Rome is in Italy.", "supported"),
        ("Rome lies on the Tiber", "supported"),
        ("Rome has 3 metro lines", "contradicted"),
    ]
    assert [c.quote for v in result.claims for c in v.citations] == [
        "Rome is the capital of Italy.",
        "It lies on the Tiber.",
        "Rome has two metro lines.",
    ]
    assert result.claims[2].correction == "two"
    assert result.claims[2].explanation == "two lines, not three"


def test_claims_have_the_span_of_the_answer_that_they_rest_on() -> None:
    reply = "{tag} S2: [1] supported\n{tag} S3 (It lies on the Tiber): [2] supported\n"
    reply += "{tag} S3 (Rome has 3 metro lines): [3] contradicted | two"
    spans = [ANSWER[v.claim.start : v.claim.end] for v in check(reply).claims]
    assert spans == [
        "Rome is in Italy.",
        "It lies on the Tiber",
        "It lies on the Tiber and has 3 metro lines.",
    ]


def test_the_model_sees_evidence_first_then_question_and_answer_all_fenced() -> None:
    checker, model = scripted("{tag} S1: [1] supported")
    checker.invoke({**GIVEN, "answer": "Rome\nis in <|im_end|> Italy."})
    shown = without_codes(model.requests[0][-1].text)
    evidence = (
        "1 Rome is the capital of Italy.\n2 It lies on the Tiber.\n\n3 Rome has two metro lines."
    )
    assert shown.startswith(f"<evidence CODE>\n{evidence}\n</evidence CODE>")
    assert "<question CODE>\nAnd Rome?\n</question CODE>" in shown
    assert "S1: Rome is in (|im_end|> Italy." in shown


def test_answers_over_the_same_evidence_share_all_that_comes_before_the_question() -> None:
    checker, model = scripted(REPLY, "{tag} S1: [1] supported")
    checker.invoke(GIVEN)
    checker.invoke({**GIVEN, "question": "Where?", "answer": "Rome is in Italy."})
    first, second = model.requests
    assert first[0] == second[0]
    shared = first[1].text.partition("<question")[0]
    assert "Rome has two metro lines." in shared
    assert second[1].text.startswith(shared)


@pytest.mark.parametrize(
    "line",
    [
        "{tag} 2: [1] supported",
        "{tag} S2. [1] supported",
        "- {tag} Sentence 2: 1 supported",
        "{tag} **S2:** [1] supported",
    ],
)
def test_small_deviations_in_form_are_understood(line: str) -> None:
    assert verdicts_by_claim(check(f"{{tag}} S1: skip\n{line}", "{tag} C1: unverifiable"))[0] == (
        "Rome is in Italy.",
        "supported",
    )


@pytest.mark.parametrize("numbers", ["", "[99]", "[0]", "[1] [1-999]", "[-1]"])
def test_a_verdict_without_evidence_that_was_shown_is_asked_for_again(numbers: str) -> None:
    replies = [f"{{tag}} {name}: {numbers} supported" for name in ("S1", "S1", "C1", "C1", "C1")]
    result = check(*replies, answer="Rome is in Italy.")
    assert verdicts_by_claim(result) == [("Rome is in Italy.", "unchecked")]


def test_support_without_a_telling_sentence_does_not_count() -> None:
    result = check("{tag} S1: [2] supported", answer="Rome is in Italy.")
    assert verdicts_by_claim(result) == [("Rome is in Italy.", "unverifiable")]


def test_a_sentence_without_a_line_is_asked_about_again() -> None:
    checker, model = scripted("{tag} S2: [1] supported", "{tag} C1: [2] supported")
    result = checker.invoke(GIVEN)
    assert verdicts_by_claim(result)[1] == (
        "It lies on the Tiber and has 3 metro lines.",
        "supported",
    )
    assert "C1: It lies on the Tiber and has 3 metro lines." in model.requests[1][-1].text
    assert "Rome is in Italy." not in model.requests[1][-1].text.partition("<claims")[2]


def test_a_sentence_that_never_gets_a_verdict_is_unchecked() -> None:
    result = check("{tag} S2: [1] supported", "hm", "hm", "hm")
    assert verdicts_by_claim(result)[1] == (
        "It lies on the Tiber and has 3 metro lines.",
        "unchecked",
    )
    assert result.claims[1].reason
    assert not result.is_trusted


@pytest.mark.parametrize("answer", ["The drug is safe for children.", "Ann founded Acme."])
def test_a_statement_cannot_be_skipped(answer: str) -> None:
    assert verdicts_by_claim(check("{tag} S1: skip", "{tag} C1: unverifiable", answer=answer)) == [
        (answer, "unverifiable")
    ]


@pytest.mark.parametrize("answer", ["Sure!", "Is it safe?", "I don't know."])
def test_what_states_nothing_is_no_claim_and_is_not_asked_about_again(answer: str) -> None:
    checker, model = scripted("{tag} S1: skip")
    result = checker.invoke({**GIVEN, "answer": answer})
    assert result.verdict == "no_claims"
    assert len(model.requests) == 1


def test_statements_that_leave_out_a_number_do_not_hide_the_sentence() -> None:
    reply = "{tag} S2: [1] supported\n{tag} S3 (Rome lies on the Tiber): [2] supported"
    result = check(reply, "{tag} C1: [3] contradicted | two")
    assert verdicts_by_claim(result)[1:] == [
        ("Rome lies on the Tiber", "supported"),
        ("It lies on the Tiber and has 3 metro lines.", "contradicted"),
    ]


def test_a_statement_about_something_else_is_dropped_and_the_sentence_is_judged() -> None:
    result = check(
        "{tag} S1 (Paris shines): [1] supported",
        "{tag} C1: [1] supported",
        answer="Rome is in Italy.",
    )
    assert verdicts_by_claim(result) == [("Rome is in Italy.", "supported")]


def test_a_contradicted_sentence_stays_so_beside_statements_that_are_supported() -> None:
    reply = (
        "{tag} S1: [3] contradicted | two\n"
        "{tag} S1 (Rome has 3 metro lines): [3] supported\n"
        "{tag} S1 (Rome is in Italy): [1] supported"
    )
    answer = "Rome is in Italy and has 3 metro lines."
    assert (answer, "contradicted") in verdicts_by_claim(check(reply, answer=answer))


@pytest.mark.parametrize(
    "reply",
    [
        "{tag} S1: [1] supported\n{tag} S1: [3] contradicted",
        2 * "{tag} S1 (Rome is Italian in Italy): %s\n" % ("[1] supported", "unverifiable"),
        "{tag} S1: [1] supported\n{tag} S1 (Rome is in Italy.): [1] contradicted",
        "{tag} S1: [1] contradicted\n{tag} S1 (Rome is in Italy.): [1] supported",
        "{tag} S1: [1] supported\n{tag} S1 (Rome is in Italy.): ?",
        "{tag} S1 (Rome is in Italy): [3] contradicted | two | see the list (no. 1): [1] supported",
        "{tag} S1 (Rome is in Italy): [3] contradicted. (But see): [1] supported",
        '{tag} S1 "Rome is in Italy": [3] contradicted | "Rome is in Italy": [1] supported',
    ],
)
def test_two_verdicts_on_one_claim_decide_nothing(reply: str) -> None:
    result = check(reply, "hm", "hm", "hm", "hm", answer="Rome is in Italy.")
    assert {verdict for _, verdict in verdicts_by_claim(result)} == {"unchecked"}


@pytest.mark.parametrize("about_the_whole", ["2 contradicted | Arno", "2 hm", "", "unverifiable"])
def test_statements_do_not_stand_against_what_is_said_of_their_sentence(
    about_the_whole: str,
) -> None:
    statement = "{tag} S1 (Rome lies on the Tiber): 2 supported"
    again = "{tag} C1: unverifiable\n{tag} C2: unverifiable"
    result = check(
        f"{statement}\n{{tag}} S1 {about_the_whole}", again, again, answer="It lies on the Tiber."
    )
    assert result.claims
    assert not [verdict for verdict in result.claims if verdict.verdict == "supported"]


def test_brackets_within_a_statement_or_a_reason_do_not_change_the_verdict() -> None:
    reply = (
        "{tag} S1 (Rome (it): is in Italy): [1] supported\n"
        "{tag} S2 (Rome has 3 lines): [3] contradicted | two | as they say (no. 3): two"
    )
    result = check(reply, answer="Rome (it): is in Italy. Rome has 3 lines.")
    assert verdicts_by_claim(result) == [
        ("Rome (it): is in Italy", "supported"),
        ("Rome has 3 lines", "contradicted"),
    ]
    assert result.claims[1].correction == "two"


def test_a_statement_whose_verdict_cannot_be_read_is_asked_about_again() -> None:
    reply = "{tag} S1 (Rome lies quietly on the Tiber): [2] supported\n"
    reply += "{tag} S1 (Rome lies polluted): partly"
    answer = "Rome lies quietly on the Tiber polluted."
    result = check(reply, "{tag} C1: unverifiable", answer=answer)
    assert verdicts_by_claim(result) == [
        ("Rome lies quietly on the Tiber", "supported"),
        ("Rome lies polluted", "unverifiable"),
    ]


def test_a_reply_that_cannot_be_read_is_asked_for_in_the_two_step_form() -> None:
    checker, model = scripted("hm", "hm", "{tag} C1: [1] supported\n{tag} C2: unverifiable")
    assert [verdict for _, verdict in verdicts_by_claim(checker.invoke(GIVEN))] == [
        "supported",
        "unverifiable",
    ]
    assert "C2: It lies" in model.requests[2][-1].text


@pytest.mark.parametrize("failure", [TimeoutError("secret"), ConnectionError("secret")])
def test_a_failing_model_leaves_all_statements_unchecked_with_a_reason(failure: Exception) -> None:
    checker, model = scripted(failure)
    result = checker.invoke(GIVEN)
    assert len(model.requests) == 1
    assert [verdict for _, verdict in verdicts_by_claim(result)] == ["unchecked", "unchecked"]
    assert all(type(failure).__name__ in (v.reason or "") for v in result.claims)
    assert not any("secret" in (v.reason or "") for v in result.claims)


def test_raise_on_failure_names_the_claims() -> None:
    with pytest.raises(VerificationError) as caught:
        check(TimeoutError(), raise_on_failure=True)
    assert caught.value.claim_ids == ("c1", "c2")


def test_claims_over_the_limit_stay_in_the_result_unchecked() -> None:
    result = check(REPLY, max_claims=2)
    assert verdicts_by_claim(result)[2] == ("Rome has 3 metro lines", "unchecked")
    assert result.claims[2].reason == "over max_claims=2"


@pytest.mark.parametrize("answer", ["", " \n"])
def test_an_empty_answer_costs_no_call(answer: str) -> None:
    checker, model = scripted()
    assert checker.invoke({**GIVEN, "answer": answer}).claims == ()
    assert model.requests == []


@pytest.mark.parametrize("documents", [[], [" "]])
def test_without_documents_nothing_is_asked_and_nothing_checked(documents: list[str]) -> None:
    checker, model = scripted()
    result = checker.invoke({**GIVEN, "documents": documents})
    assert {verdict for _, verdict in verdicts_by_claim(result)} == {"unchecked"}
    assert model.requests == []


def both_ways(messages: Sequence[BaseMessage]) -> str:
    known = {
        "Rome is in Italy.": KnownClaim("supported", "Rome is the capital of Italy."),
        "It lies on the Tiber and has 3 metro lines.": KnownClaim(
            "contradicted", "Rome has two metro lines.", "two"
        ),
    }
    text = "\n".join(str(message.text) for message in messages)
    body = {"messages": [{"role": "user", "content": text}]}
    return HonestJudge(known)(ScriptedRequest(body))


@pytest.mark.parametrize(
    "options", [{"max_sentences": 2}, {"packer": EvidencePacker(max_tokens=14)}]
)
def test_what_is_too_much_for_one_call_takes_the_two_steps(options: dict[str, Any]) -> None:
    model = ScriptedChatModel(replies=both_ways)
    judge = SinglePassJudge(model=model, **options)
    result = GroundednessRunnable(single_pass=judge).invoke(GIVEN)
    assert [v for t, v in verdicts_by_claim(result) if t != "Sure!"] == [
        "supported",
        "contradicted",
    ]
    first = model.requests[0]
    assert "evidence" not in first[-1].text
    shown = "\n".join(str(request[-1].text) for request in model.requests[1:])
    assert all(d.page_content.partition(".")[0] in shown for d in DOCUMENTS)


async def test_many_answers_at_once_are_laid_out_in_one_thread() -> None:
    threads: list[str] = []

    def count(text: str) -> int:
        threads.append(threading.current_thread().name)
        return len(text)

    model = ScriptedChatModel(replies=lambda _: "{tag} S1: [1] supported")
    judge = SinglePassJudge(model=model, packer=EvidencePacker(max_tokens=1000, count_tokens=count))
    task = VerificationTask(claims=(), documents=DOCUMENTS, answer="Rome is in Italy.")
    await asyncio.gather(*(judge.ainvoke(task) for _ in range(20)))
    assert len(set(threads)) == 1
    assert threading.current_thread().name not in threads


def test_plain_lines_are_asked_for_without_a_schema_and_teach_others_nothing() -> None:
    judge = HonestJudge(
        {"Rome is in Italy.": KnownClaim("supported", "Rome is the capital of Italy.")}
    )
    with ScriptedServer(judge) as server:
        model = ChatOpenAI(
            model="scripted", base_url=server.base_url, api_key="none", use_responses_api=False
        )
        given = {**GIVEN, "answer": "Rome is in Italy."}
        plainly = SinglePassJudge(model=model, reply_form="lines")
        assert GroundednessRunnable(single_pass=plainly).invoke(given).verdict == "grounded"
        checker = GroundednessRunnable(model=model, single_pass=True)
        assert checker.invoke(given).verdict == "grounded"
        assert [request.form for request in server.requests] == ["text", "json_schema"]


def test_a_plain_reply_that_cannot_be_read_is_asked_for_once_more_in_its_form() -> None:
    model = ScriptedChatModel(replies=["hm", "{tag} S1: [1] supported"])
    judge = SinglePassJudge(model=model, reply_form="lines")
    result = GroundednessRunnable(single_pass=judge).invoke(
        {**GIVEN, "answer": "Rome is in Italy."}
    )
    assert result.verdict == "grounded"
    assert [message.type for message in model.requests[1]] == ["system", "human", "ai", "human"]


async def test_the_async_path_gives_the_same_result() -> None:
    model = ScriptedChatModel(replies=lambda _: REPLY)
    checker = GroundednessRunnable(model=model, single_pass=True)
    expected = await asyncio.to_thread(checker.invoke, GIVEN)
    assert (await checker.ainvoke(GIVEN)).claims == expected.claims
    assert [r.claims for r in await checker.abatch([GIVEN, GIVEN])] == [expected.claims] * 2


def test_a_stream_asks_once_and_adds_up_to_the_result() -> None:
    checker, model = scripted(REPLY, REPLY, REPLY)
    expected = checker.invoke(GIVEN)
    chunks = list(checker.stream(GIVEN))
    total = chunks[0]
    for chunk in chunks[1:]:
        total = total + chunk
    assert total.claims == expected.claims
    words = [{"answer": word} for word in re.findall(r"\S+\s*", ANSWER)]
    pieces = [{k: v for k, v in GIVEN.items() if k != "answer"}, *words]
    *_, last = checker.transform(iter(pieces))
    assert last.verdict == expected.verdict
    assert len(model.requests) == 3


def test_a_guard_asks_once_per_sentence_and_releases_each_after_its_verdict() -> None:
    model = ScriptedChatModel(replies=both_ways)
    checker = GroundednessRunnable(model=model, single_pass=True, on_contradicted="strip")
    guard = GroundednessGuard(checker)
    words = [{"answer": word} for word in re.findall(r"\S+\s*", ANSWER)]
    released = list(guard.transform(iter([{"documents": list(DOCUMENTS)}, *words])))
    assert "".join(released).strip() == "Sure! Rome is in Italy."
    assert len(released) > 1
    assert len(model.requests) == 2
    assert all("<claims" in request[-1].text for request in model.requests)


def test_a_guard_asks_once_about_an_answer_that_is_whole() -> None:
    reply = "{tag} S1: skip\n{tag} S2: [1] supported\n{tag} S3: [3] contradicted | two"
    checker, model = scripted(reply, on_contradicted="strip")
    assert GroundednessGuard(checker).invoke(GIVEN).strip() == "Sure! Rome is in Italy."
    assert len(model.requests) == 1


def test_a_handler_asks_once_about_an_answer_that_was_streamed() -> None:
    checker, model = scripted(REPLY)
    handler = GroundednessCallbackHandler(checker)
    chain: Runnable[str, Any] = RunnableLambda(lambda _: GIVEN)
    chain.invoke("?", {"callbacks": [handler]})
    [result] = handler.results.values()
    assert result.verdict == "has_contradictions"
    assert len(model.requests) == 1


def test_an_agent_is_checked_with_one_call() -> None:
    checker, model = scripted(REPLY)
    middleware = GroundednessMiddleware(checker, context_extractor=lambda _: GIVEN)
    agent: Any = create_agent(ScriptedChatModel(replies=[ANSWER]), middleware=[middleware])
    state = agent.invoke({"messages": [("user", "And Rome?")]})
    verdicts = [claim["verdict"] for claim in state["groundedness"]["claims"]]
    assert verdicts == ["supported", "supported", "contradicted"]
    assert len(model.requests) == 1


def test_corrections_are_checked_again() -> None:
    reply = "{tag} S1: [3] contradicted | two | two lines, not 3"
    checker, model = scripted(
        reply, "1: Rome has two metro lines.", "{tag} C1: [3] supported", on_contradicted="correct"
    )
    result = checker.invoke({**GIVEN, "answer": "Rome has 3 metro lines."})
    assert "[CORRECTED: two]" in result.answer
    assert len(model.requests) <= 3


@pytest.mark.filterwarnings("ignore:The function `load` is in beta")
def test_it_can_be_saved_and_loaded() -> None:
    prompt = ChatPromptTemplate.from_messages([("human", "{evidence} {answer}")])
    model = ChatOpenAI(model="some", api_key="none")
    judge = SinglePassJudge(model=model, prompt=prompt, max_sentences=7, reply_form="lines")
    saved = dumpd(GroundednessRunnable(single_pass=judge))
    known = load_arguments(
        ChatOpenAI, ChatPromptTemplate, HumanMessagePromptTemplate, PromptTemplate
    )
    loaded = load(saved, secrets_map={"OPENAI_API_KEY": "none"}, **known).single_pass
    assert loaded.prompt == prompt
    assert (loaded.max_sentences, loaded.reply_form) == (7, "lines")
    assert loaded.packer == judge.packer


def test_an_audit_log_tells_the_model_and_the_step(tmp_path: Path) -> None:
    log = JsonlAuditLog(tmp_path / "log.jsonl")
    model = ScriptedChatModel(replies=[REPLY], name="the-judge")
    judge = SinglePassJudge(model=model)
    GroundednessRunnable(single_pass=judge, audit_log=log).invoke(GIVEN)
    log.close()
    [record] = JsonlAuditLog(tmp_path / "log.jsonl").records()
    assert "judge_answer" in record.timings
    assert record.usage.model_calls == 1


@pytest.mark.parametrize(
    "options",
    [
        {"single_pass": True},
        {"single_pass": True, "model": FakeListChatModel(responses=[]), "examples": []},
        {
            "single_pass": True,
            "model": FakeListChatModel(responses=[]),
            "extractor": SentenceClaimExtractor(),
        },
        {"single_pass": "yes please"},
    ],
)
def test_options_that_clash_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="single_pass"):
        GroundednessRunnable(**options)


@pytest.mark.parametrize(
    "options",
    [
        {"prompt": ChatPromptTemplate.from_messages([("human", "{text}")])},
        {"max_sentences": 0},
        {"no_such_option": 1},
    ],
)
def test_a_judge_refuses_bad_options(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        SinglePassJudge(model=FakeListChatModel(responses=[]), **options)


def test_a_prompt_of_ones_own_takes_the_place_of_ours() -> None:
    prompt = ChatPromptTemplate.from_messages([("human", "Judge. {evidence} {answer}")])
    model = ScriptedChatModel(replies=["{tag} S1: [1] supported"])
    checker = GroundednessRunnable(single_pass=SinglePassJudge(model=model, prompt=prompt))
    result = checker.invoke({**GIVEN, "answer": "Rome is in Italy."})
    assert result.verdict == "grounded"
    assert model.requests[0][0].text.startswith("Judge. <evidence")


@settings(
    max_examples=settings().max_examples // 2, deadline=None
)  # a reply that says nothing is asked for several times
@given(st.text(), st.text())
def test_whatever_is_replied_every_statement_has_one_verdict_and_none_is_supported_for_nothing(
    answer: str, reply: str
) -> None:
    model = FakeListChatModel(responses=[reply])
    task = VerificationTask(claims=(), documents=DOCUMENTS, answer=answer)
    verdicts = SinglePassJudge(model=model).invoke(task)
    spans = {(v.claim.start, v.claim.end) for v in verdicts}
    for claim in SentenceClaimExtractor(split_compound=False).invoke(answer):
        assert any(
            start is not None and start <= (claim.start or 0) and (claim.end or 0) <= end
            for start, end in spans
            if end is not None
        )
    assert all(v.citations for v in verdicts if v.verdict in ("supported", "contradicted"))


def test_the_guide_shows_what_happens(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parent.parent / "docs/guide/cost.md").read_text(encoding="utf-8")
    [snippet] = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    exec(compile(snippet, "cost.md", "exec"), {})  # noqa: S102  (the page is ours)
    assert capsys.readouterr().out.splitlines() == [
        "Acme was founded in 1990. supported Acme was founded in 1990 in Oslo.",
        "Acme makes chairs supported It makes chairs.",
        "Acme has 40 employees contradicted Acme has 30 employees.",
        "1",
    ]
