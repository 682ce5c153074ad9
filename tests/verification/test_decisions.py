"""The embedded verifier as a decision model; langchain-core has these from 1.8 on."""

import asyncio
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.load import dumpd, load
from langchain_core.tracers.context import collect_runs

from langchain_groundedness import load_arguments
from langchain_groundedness import verification as verifiers
from langchain_groundedness.exceptions import (
    ConfigurationError,
    InputFormatError,
    VerificationError,
)
from langchain_groundedness.types import Claim, VerificationTask
from langchain_groundedness.verification.embedded.class_probabilities import (
    ClassProbabilities,
    ProbabilisticVerdict,
    ProbabilisticVerifier,
)

decisions: Any = pytest.importorskip("langchain_core.decisions")

TRUE = "Revenue was $2.1B in Q3."
FALSE = "Revenue was $2.4B in Q3."
SILENT = "The company has two airports."
EVIDENCE = "Q3 revenue was $2.1B. Headcount was 5,000."
VERDICTS = ("supported", "contradicted", "unverifiable")


def ask(state: Any, **questions: Any) -> Any:
    return verifiers.EmbeddedDecisionModel().invoke({"state": state, "questions": questions})


def noul(claim: Any) -> Any:
    return decisions.Noul(instructions=claim)


def choice(claim: Any, *labels: str) -> Any:
    return decisions.Choice(instructions=claim, criteria=dict.fromkeys(labels or VERDICTS))


def verdict(claim: str, question: str | None = None, evidence: str = EVIDENCE) -> Any:
    task = VerificationTask(
        claims=(Claim(id="1", text=claim),), documents=(Document(evidence),), question=question
    )
    return verifiers.EmbeddedVerifier().invoke(task)[0]


@pytest.mark.parametrize("claim", [TRUE, FALSE, SILENT])
def test_a_noul_is_the_support_probability_of_the_verdict(claim: str) -> None:
    response = ask(EVIDENCE, it=noul(claim))
    assert response.nouls["it"].noul == pytest.approx(verdict(claim).support_probability)


@pytest.mark.parametrize(
    ("claim", "expected"),
    [(TRUE, "supported"), (FALSE, "contradicted"), (SILENT, "unverifiable")],
)
def test_a_choice_over_all_verdicts_agrees_with_the_verifier(claim: str, expected: str) -> None:
    answer = ask(EVIDENCE, it=choice(claim)).choices["it"]
    assert answer.choice == expected == verdict(claim).verdict
    assert set(answer.probabilities) == set(VERDICTS)
    assert sum(answer.probabilities.values()) == pytest.approx(1)
    assert answer.confidence == answer.probabilities[expected] == max(answer.probabilities.values())
    assert answer.probabilities["supported"] == pytest.approx(verdict(claim).support_probability)


def test_labels_have_other_names() -> None:
    questions = {
        "two": choice(FALSE, "supported", "not_supported"),
        "also": choice(FALSE, "unsupported", "supported"),
        "three": choice(FALSE, "supported", "contradicted", "not_found"),
        "verdicts": choice(FALSE),
    }
    found = ask(EVIDENCE, **questions).choices
    plain = found["verdicts"].probabilities
    assert found["two"].choice == "not_supported"
    assert found["two"].probabilities["not_supported"] == pytest.approx(1 - plain["supported"])
    assert found["also"].choice == "unsupported"
    assert found["also"].confidence == found["two"].confidence
    assert found["three"].probabilities["not_found"] == plain["unverifiable"]
    assert list(found["three"].probabilities) == ["supported", "contradicted", "not_found"]


def test_labels_that_leave_out_the_verdict_are_not_made_more_likely_by_it() -> None:
    answer = ask(EVIDENCE, it=choice(FALSE, "supported", "unverifiable")).choices["it"]
    whole = ask(EVIDENCE, it=choice(FALSE)).choices["it"].probabilities
    assert answer.probabilities == {name: whole[name] for name in ("supported", "unverifiable")}
    assert answer.confidence == max(answer.probabilities.values()) < 0.5
    alone = ask(EVIDENCE, it=choice(FALSE, "supported")).choices["it"]
    assert (alone.choice, alone.confidence) == ("supported", whole["supported"])


def test_near_a_threshold_the_choice_is_what_the_verifier_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def judge_all(
        _: ProbabilisticVerifier, tasks: list[VerificationTask]
    ) -> list[list[ProbabilisticVerdict]]:
        return [
            [
                ProbabilisticVerdict(
                    claim=claim,
                    verdict="supported",
                    support_probability=0.45,
                    class_probabilities=ClassProbabilities(0.45, 0.05, 0.5),
                )
                for claim in task.claims
            ]
            for task in tasks
        ]

    monkeypatch.setattr(ProbabilisticVerifier, "judge_all", judge_all)
    questions = {"all": choice(TRUE), "rest": choice(TRUE, "contradicted", "not_found")}
    answers = ask(EVIDENCE, **questions).choices
    assert (answers["all"].choice, answers["all"].confidence) == ("supported", 0.45)
    assert (answers["rest"].choice, answers["rest"].confidence) == ("not_found", 0.5)


@pytest.mark.parametrize(
    "state",
    [
        EVIDENCE,
        [EVIDENCE],
        ("Headcount was 5,000.", EVIDENCE),
        [Document(EVIDENCE)],
        Document(EVIDENCE),
        {"page_content": EVIDENCE, "metadata": {"page": 3}},
        [{"page_content": EVIDENCE}, "Headcount was 5,000."],
        {"documents": [EVIDENCE]},
        {"context": EVIDENCE},
        {"context": [{"page_content": EVIDENCE}], "question": "What was Q3 revenue?"},
    ],
)
def test_evidence_is_read_from_any_of_these_states(state: Any) -> None:
    answers = ask(state, true=choice(TRUE), false=choice(FALSE)).choices
    assert (answers["true"].choice, answers["false"].choice) == ("supported", "contradicted")


@pytest.mark.parametrize(
    ("claim", "evidence", "expected"),
    [
        ("Yes.", "Paris is the capital of France.", "supported"),
        ("No.", "Paris is the capital of France.", "contradicted"),
        ("No.", "Paris is not in France.", "supported"),
        ("No.", "Birds sing in spring.", "unverifiable"),
    ],
)
def test_a_short_claim_is_read_with_the_question_of_the_state(
    claim: str, evidence: str, expected: str
) -> None:
    state = {"documents": [evidence], "question": "Is Paris in France?"}
    response = ask(state, it=choice(claim), chance=noul(claim))
    assert response.choices["it"].choice == expected
    assert verdict(claim, "Is Paris in France?", evidence).verdict == expected
    assert sum(response.choices["it"].probabilities.values()) == pytest.approx(1)
    chance = response.nouls["chance"].noul
    assert (chance > 0.5) == (expected == "supported")


def test_answers_keep_the_ids_and_the_order_of_the_questions() -> None:
    response = ask(EVIDENCE, z=noul(TRUE), a=choice(TRUE), m=noul(TRUE))
    assert list(response.answers) == ["z", "a", "m"]
    assert response.nouls["z"] == response.nouls["m"]
    assert response.model == "embedded"


@pytest.mark.parametrize(
    ("question", "came"),
    [
        (lambda: decisions.Score(instructions=TRUE, criteria=["no", "yes"]), "of type Score"),
        (lambda: decisions.Box(instructions=TRUE), "of type Box"),
        (lambda: {"type": "noul", "instructions": TRUE}, "of type dict"),
        (lambda: noul({"claim": TRUE}), "instructions of question 'it' are of type dict"),
        (lambda: noul([TRUE]), "instructions of question 'it' are of type list"),
        (lambda: choice(TRUE, "supported", "billing"), "has the labels 'billing'"),
        (lambda: choice(TRUE, "Supported"), "has the labels 'Supported'"),
        (
            lambda: choice(TRUE, "contradicted", "unsupported"),
            "labels 'contradicted' and 'unsupported' of question 'it' overlap",
        ),
        (lambda: choice(TRUE, "not_found", "unverifiable"), "overlap"),
    ],
)
def test_other_questions_are_errors_that_say_what_came_and_what_is_accepted(
    question: Any, came: str
) -> None:
    with pytest.raises(InputFormatError, match=came) as caught:
        ask(EVIDENCE, it=question())
    assert "accepted are Noul and Choice questions" in str(caught.value)
    assert "Revenue" not in str(caught.value)


def test_a_request_without_questions_is_an_error() -> None:
    with pytest.raises(InputFormatError, match="there are no questions"):
        ask(EVIDENCE)


IMAGE = {"type": "image", "base64": "aGVsbG8=", "mime_type": "image/png"}


@pytest.mark.parametrize(
    ("state", "came"),
    [
        (IMAGE, "holds media"),
        ([EVIDENCE, IMAGE], "holds media"),
        ({"documents": [EVIDENCE], "chart": IMAGE}, "holds media"),
        ({"context": [IMAGE]}, "holds media"),
        ({"ticket": EVIDENCE}, "the input has 'ticket'"),
        ([EVIDENCE, EVIDENCE, 3], "is a list that holds str, int"),
        ({"documents": {"chart": EVIDENCE}}, "is a dict that holds dict"),
        ([[3]], "is a list that holds list"),
        (None, "no documents"),
    ],
)
def test_other_states_are_errors_that_say_what_came(state: Any, came: str) -> None:
    with pytest.raises((InputFormatError, VerificationError), match=came) as caught:
        ask(state, it=noul(TRUE))
    assert "Headcount" not in str(caught.value)
    if isinstance(caught.value, InputFormatError):
        assert "accepted as evidence are" in str(caught.value)


@pytest.mark.parametrize(
    "state", [(EVIDENCE, 0.8), [[EVIDENCE]], {"documents": {"text": EVIDENCE}}]
)
def test_search_hits_and_nested_lists_are_evidence(state: Any) -> None:
    assert ask(state, it=noul(TRUE)) == ask(EVIDENCE, it=noul(TRUE))


@pytest.mark.parametrize("state", ["", " \n", [], [" "], {"documents": []}, {"context": ""}])
def test_without_evidence_nothing_is_answered(state: Any) -> None:
    with pytest.raises(VerificationError, match="no documents to check against") as caught:
        ask(state, one=noul(TRUE), two=choice(TRUE))
    assert caught.value.claim_ids == ("one", "two")


@pytest.mark.parametrize(
    ("claim", "reason"),
    [
        ("", "contains nothing to search for"),
        ("It is.", "contains nothing to search for"),
        ("word " * 600, "more than 500 words"),
        ("Der Umsatz in Q3 war höher als im Jahr davor.", "reads English"),
    ],
)
def test_a_claim_that_cannot_be_checked_is_told_and_never_a_probability(
    claim: str, reason: str
) -> None:
    for question in (noul(claim), choice(claim)):
        with pytest.raises(VerificationError, match=reason) as caught:
            ask(EVIDENCE, fine=noul(TRUE), other=question)
        assert caught.value.claim_ids == ("other",)


def test_sync_async_and_batches_answer_alike() -> None:
    model = verifiers.EmbeddedDecisionModel()
    requests: list[Any] = [
        {"state": EVIDENCE, "questions": {"it": choice(claim)}} for claim in (TRUE, FALSE, SILENT)
    ]
    one_by_one = [model.invoke(request) for request in requests]
    assert [model.batch(requests), asyncio.run(model.abatch(requests))] == [one_by_one] * 2


async def test_it_leaves_the_event_loop_free() -> None:
    request: Any = {"state": EVIDENCE, "questions": {"it": noul("Q3 revenue: $2.1B, says Anna.")}}
    response = await verifiers.EmbeddedDecisionModel(threads=1).ainvoke(request)
    assert 0 <= response.nouls["it"].noul <= 1


def test_traces_name_provider_and_model_and_show_one_run() -> None:
    with collect_runs() as traced:
        ask(EVIDENCE, it=noul(TRUE))
    [run] = traced.traced_runs
    assert run.run_type == "llm"
    assert not run.child_runs
    assert run.metadata["ls_provider"] == "langchain_groundedness"
    assert run.metadata["ls_model_name"] == "embedded"


@pytest.mark.parametrize(
    ("options", "problem"),
    [({"threads": 0}, "threads"), ({"threads": 257}, "threads"), ({"model": "gpt"}, "model")],
)
def test_options_are_checked(options: Any, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=f"EmbeddedDecisionModel: {problem}"):
        verifiers.EmbeddedDecisionModel(**options)


@pytest.mark.filterwarnings("ignore:The function `load` is in beta")
def test_it_can_be_saved_and_loaded() -> None:
    model = verifiers.EmbeddedDecisionModel(threads=2)
    assert load(dumpd(model), **load_arguments(verifiers.EmbeddedDecisionModel)) == model
