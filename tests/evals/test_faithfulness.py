from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage

from langchain_groundedness import ConfigurationError, EmbeddedVerifier, SinglePassJudge
from langchain_groundedness.evals import EvaluationRow, FaithfulnessEvaluator
from langchain_groundedness.testing import (
    ScriptedChatModel,
    ScriptedClaimExtractor,
    ScriptedVerifier,
)

QUESTION = "Who created the Python language?"
CONTEXT = (
    "Python, created by Guido van Rossum in the late 1980s, is a high-level general-purpose "
    "programming language. Its design philosophy emphasizes code readability, and its language "
    "constructs aim to help programmers write clear, logical code for both small and large-scale "
    "software projects."
)
ANSWER = (
    "Python is a high-level general-purpose programming language that was created by George Lucas."
)
STATEMENTS = [
    "Python is a high-level general-purpose programming language.",
    "Python was created by George Lucas.",
]
ROME: dict[str, Any] = {
    "inputs": {
        "questions": "What is the capital of Italy?",
        "contexts": ["Rome is the capital of Italy."],
        "predicted_answers": "Rome is the capital of Italy with more than 4 million inhabitants.",
    },
    "outputs": {
        "statements": [
            "Rome is the capital of Italy.",
            "Rome has more than 4 million inhabitants.",
        ],
        "statement_scores": [1, 0],
    },
}


def judge(messages: list[BaseMessage]) -> str:
    """Reply as a good model would to the extraction and to the verification of ANSWER."""
    if "You check claims" in messages[0].text:
        wrong = "[1] contradicted | Guido van Rossum | by Guido van Rossum"
        return f"{{tag}} C1: [1] supported\n{{tag}} C2: {wrong}"
    return "\n".join(f"1: {statement}" for statement in STATEMENTS)


@pytest.mark.parametrize(
    "evaluator",
    [FaithfulnessEvaluator(), FaithfulnessEvaluator(model=ScriptedChatModel(replies=judge))],
    ids=["embedded", "model"],
)
def test_python_by_george_lucas_is_half_faithful(evaluator: FaithfulnessEvaluator) -> None:
    result = evaluator.run(questions=[QUESTION], contexts=[[CONTEXT]], predicted_answers=[ANSWER])
    assert result["individual_scores"] == [0.5]
    assert result["score"] == 0.5
    [row] = result["results"]
    assert row["statements"] == STATEMENTS
    assert row["statement_scores"] == [1, 0]
    assert row["score"] == 0.5


@pytest.mark.parametrize(
    "evaluator",
    [
        FaithfulnessEvaluator(),
        FaithfulnessEvaluator(
            model=ScriptedChatModel(
                replies=lambda messages: (
                    "{tag} C1: [1] supported\n{tag} C2: unverifiable | no number is given"
                    if "You check claims" in messages[0].text
                    else "1: Rome is the capital of Italy.\n"
                    "1: Rome has more than 4 million inhabitants."
                )
            )
        ),
    ],
    ids=["embedded", "model"],
)
def test_the_statements_about_rome_are_scored_as_in_the_documented_example(
    evaluator: FaithfulnessEvaluator,
) -> None:
    inputs = ROME["inputs"]
    result = evaluator.run(
        questions=[inputs["questions"]],
        contexts=[inputs["contexts"]],
        predicted_answers=[inputs["predicted_answers"]],
    )
    [row] = result["results"]
    assert {name: row[name] for name in ROME["outputs"]} == ROME["outputs"]


def scripted(verdicts: dict[str, Any], **options: Any) -> FaithfulnessEvaluator:
    return FaithfulnessEvaluator(
        extractor=ScriptedClaimExtractor(list(verdicts)),
        verifier=ScriptedVerifier(verdicts),
        **options,
    )


ROW = EvaluationRow.model_validate(
    {"id": "1", "answer": "A is. B is. C is.", "documents": [{"page_content": "A is. B is."}]}
)


@pytest.mark.parametrize("way", [True, "judge"])
def test_a_single_call_finds_and_judges_the_claims_of_an_answer(way: Any) -> None:
    reply = f"""{{tag}} S1 ({STATEMENTS[0]}): 1 supported
{{tag}} S1 ({STATEMENTS[1]}): 1 contradicted | Guido van Rossum | by Guido van Rossum"""
    model = ScriptedChatModel(replies=[reply])
    evaluator = (
        FaithfulnessEvaluator(model=model, single_pass=True)
        if way is True
        else FaithfulnessEvaluator(single_pass=SinglePassJudge(model=model))
    )
    result = evaluator.run(questions=[QUESTION], contexts=[[CONTEXT]], predicted_answers=[ANSWER])
    assert result["individual_scores"] == [0.5]
    assert result["results"][0]["statements"] == STATEMENTS
    assert result["usage"].model_calls == len(model.requests) == 1


def test_a_single_call_that_fails_fails_the_row() -> None:
    model = ScriptedChatModel(replies=[ConnectionError("gone")])
    evaluator = FaithfulnessEvaluator(model=model, single_pass=True, raise_on_failure=False)
    row = evaluator.invoke({"answer": ANSWER, "contexts": [CONTEXT]})
    assert (row.status, row.score) == ("failed", None)
    assert "ConnectionError from the judge" in (row.reason or "")


def test_a_single_call_needs_a_model_and_takes_no_other_judge() -> None:
    with pytest.raises(ConfigurationError, match="single_pass=True needs a model: pass model="):
        FaithfulnessEvaluator(single_pass=True)
    with pytest.raises(ConfigurationError, match="single_pass excludes extractor=, verifier="):
        FaithfulnessEvaluator(
            model=ScriptedChatModel(replies=[]), verifier=EmbeddedVerifier(), single_pass=True
        )


def test_a_claim_that_was_not_checked_fails_the_row_and_what_is_finished_is_kept() -> None:
    score = scripted({"A is.": "supported", "B is.": "unchecked"}).invoke(ROW)
    assert (score.status, score.score) == ("failed", None)
    assert score.reason == "1 of 2 claims could not be checked: the script says so"
    assert score.details["statement_scores"] == [1, None]
    assert score.result is not None
    assert [v.verdict for v in score.result.claims] == ["supported", "unchecked"]


def test_a_claim_beyond_max_claims_fails_the_row() -> None:
    score = scripted({"A is.": "supported", "B is.": "supported"}, max_claims=1).invoke(ROW)
    assert (score.status, score.score) == ("failed", None)
    assert "over max_claims=1" in (score.reason or "")


def test_contradicted_and_unverifiable_count_alike() -> None:
    verdicts = {"A is.": "supported", "B is.": "contradicted", "C is.": "unverifiable"}
    score = scripted(verdicts).invoke(ROW)
    assert score.score == pytest.approx(1 / 3)
    assert score.comment == "3 claims: 1 supported, 1 contradicted, 1 unverifiable"


def test_an_answer_that_claims_nothing_is_skipped_not_perfect() -> None:
    score = FaithfulnessEvaluator().invoke({"answer": "I don't know.", "contexts": ["A is."]})
    assert (score.status, score.score) == ("skipped", None)
    assert score.reason == "the answer makes no claim that could be checked"


@pytest.mark.parametrize("contexts", [[], [" "]], ids=["none", "blank"])
def test_where_nothing_was_retrieved_no_claim_is_supported(contexts: list[str]) -> None:
    for evaluator in (FaithfulnessEvaluator(), scripted({"Rome is old.": "supported"})):
        found = evaluator.invoke({"answer": "Rome is old.", "contexts": contexts})
        assert (found.status, found.score) == ("scored", 0.0)
        assert found.details["verdicts"] == ["unverifiable"]


def test_a_row_of_which_nobody_knows_what_was_retrieved_is_skipped() -> None:
    missing = FaithfulnessEvaluator().invoke({"answer": "Rome is old."})
    assert (missing.status, missing.reason) == ("skipped", "the row has no documents")


def test_claims_over_the_limit_stay_unchecked_where_nothing_was_retrieved() -> None:
    evaluator = FaithfulnessEvaluator(max_claims=1)
    found = evaluator.invoke({"answer": "Rome is old. Rome is big.", "contexts": []})
    assert (found.status, found.score) == ("failed", None)


def test_the_answer_is_scored_as_it_came() -> None:
    score = scripted({"A is.": "contradicted"}).invoke(ROW)
    assert score.result is not None
    assert score.result.answer == score.result.original_answer == ROW.answer


@pytest.mark.parametrize(
    "reply",
    ["%%%", "", AIMessage("", additional_kwargs={"refusal": "no"}), TimeoutError("secret")],
    ids=["garbled", "empty", "refusal", "timeout"],
)
def test_a_model_that_fails_fails_the_row(reply: Any) -> None:
    model = ScriptedChatModel(replies=lambda _: reply)
    score = FaithfulnessEvaluator(model=model).invoke(ROW)
    assert (score.status, score.score) == ("failed", None)
    assert "could not be checked" in (score.reason or "")
    assert "secret" not in (score.reason or "")
    assert score.result is not None


def test_examples_are_shown_to_the_model_as_it_would_reply() -> None:
    model = ScriptedChatModel(replies=judge)
    evaluator = FaithfulnessEvaluator(model=model, examples=(ROME,))
    found = evaluator.run(questions=[QUESTION], contexts=[[CONTEXT]], predicted_answers=[ANSWER])
    assert found["score"] == 0.5
    extraction, verification = model.requests
    assert [message.type for message in extraction] == ["system", "human", "ai", "human"]
    assert extraction[2].text == "\n".join(f"1: {text}" for text in ROME["outputs"]["statements"])
    assert [message.type for message in verification] == ["system", "human", "ai", "human"]
    assert "1 Rome is the capital of Italy." in verification[1].text
    assert "C2: Rome has more than 4 million inhabitants." in verification[1].text
    example, asked = (verification[place].text.rpartition("TAG: ")[2] for place in (1, 3))
    assert example != asked
    assert verification[2].text == (
        f"{example} C1 [1] supported\n{example} C2 unverifiable | the evidence does not say so"
    )


@pytest.mark.parametrize(
    ("part", "change", "problem"),
    [
        ("outputs", {"statement_scores": [1]}, "statements has 2 entries and statement_scores 1"),
        ("outputs", {"statement_scores": [1, 2]}, r"examples\.1\.outputs\.statement_scores\.1"),
        ("outputs", {"statements": ["", "B."]}, r"examples\.1\.outputs\.statements\.0"),
        ("inputs", {"contexts": "a text"}, r"examples\.1\.inputs\.contexts"),
        ("inputs", {"contexts": []}, r"examples\.1\.inputs\.contexts"),
        ("inputs", {"answers": "x"}, r"examples\.1\.inputs\.answers"),
        ("inputs", {"predicted_answers": " "}, r"examples\.1: .*answer must contain a sentence"),
    ],
)
def test_a_bad_example_is_named_by_its_place_and_key(
    part: str, change: dict[str, Any], problem: str
) -> None:
    bad = {**ROME, part: {**ROME[part], **change}}
    with pytest.raises(ConfigurationError, match=problem):
        FaithfulnessEvaluator(model=ScriptedChatModel(replies=judge), examples=(ROME, bad))


@pytest.mark.parametrize("missing", ["inputs", "outputs"])
def test_an_example_without_a_part_is_refused(missing: str) -> None:
    bad = {name: part for name, part in ROME.items() if name != missing}
    with pytest.raises(ConfigurationError, match=rf"examples\.0\.{missing}: Field required"):
        FaithfulnessEvaluator(model=ScriptedChatModel(replies=judge), examples=(bad,))


def test_examples_without_a_model_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="requires model= and cannot be combined"):
        FaithfulnessEvaluator(examples=(ROME,))
