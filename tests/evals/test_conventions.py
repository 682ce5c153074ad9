"""Scores by the rules of others: what they compute for the same verdicts, and what is refused."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from convention_cases import CASES, LABELS, ON_PURPOSE, Case, derived, scored, statements
from langchain_core.documents import Document

from cookbook.recipes.scores_of_other_libraries import as_score
from langchain_groundedness import ConfigurationError, GroundednessRunnable
from langchain_groundedness.evals import EvaluationRow, FaithfulnessEvaluator
from langchain_groundedness.testing import ScriptedClaimExtractor, ScriptedVerifier

RECORDED: dict[str, Any] = json.loads(
    (Path(__file__).parent / "rival_scores.json").read_text(encoding="utf-8")
)


class Recorded(NamedTuple):
    rival: str
    case: Case
    score: float | None


BY_NAME = {case.name: case for case in CASES}
ROWS = [
    Recorded(rival, BY_NAME[name], score)
    for rival, recorded in RECORDED.items()
    for name, score in recorded["scores"].items()
]


def test_the_recorded_numbers_are_of_the_versions_that_the_docstring_names() -> None:
    documented = as_score.__doc__ or ""
    for rival, recorded in RECORDED.items():
        assert recorded["version"] in documented, rival
    assert set(RECORDED) == {"haystack", "ragas", "deepeval"}


def test_every_case_was_computed_by_a_rival() -> None:
    assert {row.case for row in ROWS} == set(CASES)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.rival}-{row.case.name}")
def test_the_score_is_number_for_number_what_the_rival_gave(row: Recorded) -> None:
    ours = derived(row.case, row.rival, scored(row.case))
    if (row.rival, row.case.metric, row.case.claims) in ON_PURPOSE:
        assert ours is None
        assert row.score == 1.0
        return
    assert ours == (None if row.score is None else pytest.approx(row.score, abs=1e-12))


def checker(verdicts: str) -> GroundednessRunnable:
    texts = statements("answer", verdicts)
    by_text = {text: LABELS[v] for text, v in zip(texts, verdicts, strict=True)}
    return GroundednessRunnable(
        extractor=ScriptedClaimExtractor(texts), verifier=ScriptedVerifier(by_text)
    )


def checked(verdicts: str) -> Any:
    answer = " ".join(statements("answer", verdicts)) or "Hello!"
    return checker(verdicts).invoke({"answer": answer, "documents": ["Facts."]})


def test_a_result_of_the_run_time_check_can_be_scored_as_it_is() -> None:
    result = checked("scu")
    assert as_score(result, convention="haystack") == pytest.approx(1 / 3)
    assert as_score(result, convention="deepeval") == pytest.approx(2 / 3)
    assert as_score(result, convention="deepeval", penalize_ambiguous_claims=True) == pytest.approx(
        1 / 3
    )


def test_the_three_libraries_disagree_on_an_answer_without_claims() -> None:
    result = checked("")
    scores = [as_score(result, convention=name) for name in ("haystack", "ragas", "deepeval")]
    assert scores == [0.0, None, 1.0]


def test_an_unchecked_claim_gives_no_score_unless_it_may_be_left_out() -> None:
    result = checked("s-u")
    assert as_score(result, convention="ragas") is None
    assert as_score(result, convention="ragas", unchecked="leave_out") == 0.5
    only_unchecked = checked("--")
    for name in ("haystack", "ragas", "deepeval"):
        assert as_score(only_unchecked, convention=name, unchecked="leave_out") is None


def test_rows_without_a_number_are_left_out_of_the_mean_of_many() -> None:
    results = [checked("ss"), checked("uc"), checked("s-"), checked("")]
    assert as_score(results, convention="ragas") == 0.5
    assert as_score(results, convention="deepeval") == pytest.approx((1 + 0.5 + 1) / 3)
    assert as_score([], convention="ragas") is None
    assert as_score([checked("-")], convention="haystack") is None


def test_what_run_gave_can_be_scored_as_a_whole() -> None:
    texts = statements("answer", "su")
    evaluator = FaithfulnessEvaluator(
        extractor=ScriptedClaimExtractor(texts),
        verifier=ScriptedVerifier(dict(zip(texts, ["supported", "unverifiable"], strict=True))),
    )
    found = evaluator.run(contexts=[["Facts."]] * 2, predicted_answers=[" ".join(texts)] * 2)
    assert as_score(found, convention="haystack") == 0.5
    assert as_score(found, convention="deepeval") == 1.0


def test_a_row_that_failed_before_its_claims_were_known_has_no_score() -> None:
    row = EvaluationRow(id="1", answer="Rome is old.")
    skipped = FaithfulnessEvaluator().invoke(row)
    assert skipped.status == "skipped"
    assert as_score(skipped, convention="deepeval") is None


def test_rows_of_another_evaluator_are_refused() -> None:
    score = scored(Case("context_precision", reference="s"))
    with pytest.raises(ConfigurationError, match="give the rows of FaithfulnessEvaluator"):
        as_score(score, convention="ragas")
    with pytest.raises(ConfigurationError, match="give the rows of ContextPrecisionEvaluator"):
        as_score(checked("s"), convention="ragas", metric="context_precision")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"convention": "trulens"}, "convention must be one of haystack, ragas, deepeval"),
        ({"convention": "ragas", "metric": "context_relevance"}, "accepted for .*: faithfulness"),
        ({"convention": "haystack", "metric": "context_recall"}, "accepted for .*: faithfulness"),
        ({"convention": "ragas", "unchecked": "ignore"}, "'refuse', 'leave_out'"),
    ],
)
def test_what_does_not_follow_from_verdicts_is_refused(options: Any, told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        as_score(checked("s"), **options)


def test_the_check_of_a_reference_gives_context_recall() -> None:
    reference = "Rome is the capital of Italy. Rome lies on the Danube."
    documents = [Document("Rome is the capital of Italy. Rome lies on the Tiber.")]
    result = GroundednessRunnable().invoke({"answer": reference, "documents": documents})
    assert as_score(result, convention="ragas", metric="context_recall") == 0.5


def test_ragas_recall_divides_claims_of_the_answer_by_claims_of_the_reference() -> None:
    score = scored(Case("factual_correctness", "ssss", "suu"))
    assert score.details["recall"] == pytest.approx(1 / 3)
    # Four right claims of the answer and two missing ones of the reference: F of 1 and 4/6.
    assert as_score(score, convention="ragas", metric="factual_correctness") == 0.8


def test_rows_of_a_run_are_refused_with_what_to_give() -> None:
    with pytest.raises(ConfigurationError, match=r"got str; of a run, give \[score for row in"):
        as_score(["row"])  # type: ignore[list-item]
