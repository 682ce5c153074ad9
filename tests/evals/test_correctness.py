"""Factual and answer correctness: claims of the answer and of the reference, both ways."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings

from langchain_groundedness import Claim, ConfigurationError
from langchain_groundedness.evals import AnswerCorrectnessEvaluator, FactualCorrectnessEvaluator
from langchain_groundedness.evals.claim_metrics import f_beta
from langchain_groundedness.testing import ScriptedClaimExtractor, ScriptedVerifier

ANSWER = "A one. A two. A three."
REFERENCE = "R one. R two."
ROW = {"answer": ANSWER, "reference": REFERENCE}


def sentences(task: Any) -> list[str]:
    return [part for part in task.answer.replace(". ", ".|").split("|") if part]


def parts(**verdicts: Any) -> dict[str, Any]:
    """Judge claims by their last word and the letter of their text, supported by default."""

    def judge(claim: Claim) -> Any:
        return verdicts.get(claim.text.strip(".").replace(" ", "_"), "supported")

    return {
        "extractor": ScriptedClaimExtractor(sentences),
        "verifier": ScriptedVerifier(judge),
    }


def test_precision_is_of_the_answers_claims_and_recall_of_the_references() -> None:
    evaluator = FactualCorrectnessEvaluator(
        **parts(A_one="contradicted", A_two="unverifiable", R_one="unverifiable")
    )
    score = evaluator.invoke(ROW)
    assert score.details["precision"] == pytest.approx(1 / 3)
    assert score.details["recall"] == pytest.approx(1 / 2)
    assert score.score == pytest.approx(f_beta(1 / 3, 1 / 2))
    assert [claim["verdict"] for claim in score.details["claims"]] == [
        "contradicted",
        "unverifiable",
        "supported",
    ]
    assert score.comment == (
        "the reference supports 1 of 3 claims of the answer; "
        "the answer supports 1 of 2 claims of the reference"
    )


def test_each_side_is_judged_against_the_other_alone() -> None:
    made = parts()
    FactualCorrectnessEvaluator(**made).invoke({**ROW, "contexts": ["Not read."]})
    read = {
        task.answer: [d.page_content for d in task.documents] for task in made["verifier"].tasks
    }
    assert read == {ANSWER: [REFERENCE], REFERENCE: [ANSWER]}


def test_a_number_in_a_citation_of_the_answer_is_no_fact_of_the_answer() -> None:
    row = {"answer": "The kettle has buttons [5].", "reference": "The kettle has 5 buttons."}
    score = FactualCorrectnessEvaluator().invoke(row)
    assert score.details["recall"] == 0.0


def test_the_reference_is_judged_against_the_answer_without_its_citations() -> None:
    made = parts()
    row = {"answer": "A one [1]. A two (file.md#part).", "reference": REFERENCE}
    FactualCorrectnessEvaluator(**made).invoke(row)
    [task] = [task for task in made["verifier"].tasks if task.answer == REFERENCE]
    [document] = task.documents
    assert document.page_content.split() == ["A", "one", ".", "A", "two", "."]


@pytest.mark.parametrize(("mode", "asked"), [("precision", [ANSWER]), ("recall", [REFERENCE])])
def test_a_mode_with_one_direction_asks_for_one_direction(mode: Any, asked: list[str]) -> None:
    made = parts(A_one="unverifiable", R_one="unverifiable")
    score = FactualCorrectnessEvaluator(mode=mode, **made).invoke(ROW)
    assert [task.answer for task in made["verifier"].tasks] == asked
    assert score.score == score.details[mode]
    assert score.result is not None
    assert score.result.original_answer == asked[0]


@given(
    st.floats(0, 1),
    st.floats(0, 1),
    st.floats(0.01, 100),
)
def test_the_f_score_lies_between_its_parts(precision: float, recall: float, beta: float) -> None:
    score = f_beta(precision, recall, beta)
    assert min(precision, recall) - 1e-9 <= score <= max(precision, recall) + 1e-9


def test_a_large_beta_counts_recall_and_a_small_one_precision() -> None:
    assert f_beta(0.2, 0.8, 100) == pytest.approx(0.8, abs=1e-3)
    assert f_beta(0.2, 0.8, 0.01) == pytest.approx(0.2, abs=1e-3)
    assert f_beta(0.0, 0.0) == 0.0


def test_a_claim_that_was_not_checked_makes_the_row_fail_and_keeps_the_rest() -> None:
    score = FactualCorrectnessEvaluator(**parts(R_two=None)).invoke(ROW)
    assert (score.status, score.score) == ("failed", None)
    assert (score.reason or "").startswith("1 of 5 claims could not be checked")
    assert score.details["precision"] == 1.0
    assert score.result is not None


def test_a_judge_that_breaks_makes_the_row_fail_with_the_cause() -> None:
    score = FactualCorrectnessEvaluator(**parts(A_one=TimeoutError("secret"))).invoke(ROW)
    assert score.status == "failed"
    assert "TimeoutError" in (score.reason or "")
    assert "secret" not in (score.reason or "")


@pytest.mark.parametrize("answer", ["I don't know.", ""])
def test_an_answer_that_says_nothing_scores_nothing_of_the_reference(answer: str) -> None:
    score = FactualCorrectnessEvaluator().invoke(
        {"answer": answer, "reference": "Rome is the capital of Italy."}
    )
    assert (score.status, score.score) == ("scored", 0.0)
    assert (score.details["precision"], score.details["recall"]) == (None, 0.0)
    precision = FactualCorrectnessEvaluator(mode="precision").invoke(
        {"answer": answer, "reference": "Rome is the capital of Italy."}
    )
    assert (precision.status, precision.reason) == ("skipped", "the answer makes no claim")


def test_where_neither_text_makes_a_claim_the_row_is_skipped() -> None:
    row = {"answer": "I don't know.", "reference": "The documents do not say."}
    for evaluator in (
        FactualCorrectnessEvaluator(),
        AnswerCorrectnessEvaluator(weights=(1, 0)),
    ):
        score = evaluator.invoke(row)
        assert score.status == "skipped"
        assert score.reason == "the answer makes no claim, and the reference makes no claim"


@pytest.mark.parametrize("row", [{"answer": ANSWER}, {"answer": ANSWER, "reference": " "}])
def test_a_row_without_reference_is_skipped(row: dict[str, str]) -> None:
    score = FactualCorrectnessEvaluator(**parts()).invoke(row)
    assert (score.status, score.reason) == ("skipped", "the row has no reference")


async def test_async_gives_the_same() -> None:
    evaluator = FactualCorrectnessEvaluator(**parts(A_one="contradicted"))
    assert await evaluator.ainvoke(ROW) == await asyncio.to_thread(evaluator.invoke, ROW)


def test_the_embedded_verifier_compares_both_directions_without_a_key() -> None:
    found = FactualCorrectnessEvaluator().run(
        predicted_answers=[
            "Rome is the capital of Italy. Rome has 40 million inhabitants.",
            "Oslo is the capital of Norway.",
        ],
        reference_answers=[
            "Rome is the capital of Italy. Rome has 2.7 million inhabitants.",
            "Oslo is the capital of Norway.",
        ],
    )
    assert found.individual_scores == [0.5, 1.0]
    assert found.rows[0].usage.model_calls == 0


class Angles(Embeddings):
    """Vectors whose cosine is 0.6."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[3.0, 4.0], [10.0, 0.0]][: len(texts)]

    def embed_query(self, text: str) -> list[float]:
        raise AssertionError(text)


def test_answer_correctness_weighs_facts_and_closeness() -> None:
    made = parts(A_one="unverifiable", A_two="unverifiable", R_one="unverifiable")
    facts = f_beta(1 / 3, 1 / 2)
    score = AnswerCorrectnessEvaluator(embeddings=Angles(), **made).invoke(ROW)
    assert score.score == pytest.approx(0.75 * facts + 0.25 * 0.6)
    assert score.details["factual"] == pytest.approx(facts)
    assert score.details["similarity"] == pytest.approx(0.6)
    other = AnswerCorrectnessEvaluator(embeddings=Angles(), weights=(1, 3), **made).invoke(ROW)
    assert other.score == pytest.approx((facts + 3 * 0.6) / 4)


def test_without_weight_on_closeness_nothing_is_embedded() -> None:
    class Forbidden(DeterministicFakeEmbedding):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            raise AssertionError

    evaluator = AnswerCorrectnessEvaluator(
        weights=(1.0, 0.0), embeddings=Forbidden(size=8), **parts()
    )
    assert evaluator.invoke(ROW).score == 1.0


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, "give embeddings="),
        ({"weights": (-1.0, 1.0)}, "must not be negative"),
        ({"weights": (0.0, 0.0)}, "nor both 0"),
        ({"weights": (1.0, 0.0), "beta": 0.0}, "greater than 0"),
    ],
)
def test_options_that_cannot_work_are_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        AnswerCorrectnessEvaluator(**options)


def test_embeddings_that_break_make_the_row_fail() -> None:
    class Zero(Angles):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [[0.0, 0.0] for _ in texts]

    score = AnswerCorrectnessEvaluator(embeddings=Zero(), **parts()).invoke(ROW)
    assert score.status == "failed"
    assert "zero or not a number" in (score.reason or "")


def test_the_fingerprint_names_the_verifier_that_is_the_default() -> None:
    told = FactualCorrectnessEvaluator(mode="recall").fingerprint()
    assert told["mode"] == "recall"
    assert told["verifier"]["class"].endswith("EmbeddedVerifier")
    assert told != FactualCorrectnessEvaluator().fingerprint()


def test_langsmith_and_openevals_may_call_it_with_an_example() -> None:
    told = FactualCorrectnessEvaluator(**parts())(
        inputs={"question": "What?"},
        outputs={"answer": ANSWER},
        reference_outputs={"answer": REFERENCE},
    )
    assert (told["key"], told["score"]) == ("factual_correctness", 1.0)
    assert told["metadata"]["precision"] == 1.0


def test_what_was_not_checked_has_no_share_in_the_details() -> None:
    score = FactualCorrectnessEvaluator(**parts(A_one="unchecked")).invoke(ROW)
    assert score.status == "failed"
    assert (score.details["precision"], score.details["recall"]) == (None, 1.0)
