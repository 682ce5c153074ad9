import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_groundedness import ConfigurationError
from langchain_groundedness.evals import CompositeScore, RowScore
from langchain_groundedness.evals.composite import DEFAULT_WEIGHTS, dimensions

ALL = dict.fromkeys(DEFAULT_WEIGHTS, 1.0)


def test_the_weights_are_those_of_the_validation_pipeline() -> None:
    found = {n: CompositeScore().of({**dict.fromkeys(ALL, 0.0), n: 1.0}).score for n in ALL}
    assert found == {"source": 0.3, "relevance": 0.2, "correctness": 0.3, "completeness": 0.2}
    score = CompositeScore().of(
        {"source": 0.9, "relevance": 1.0, "correctness": 0.7, "completeness": 0.4}
    )
    assert score.score == pytest.approx(0.27 + 0.2 + 0.21 + 0.08)
    assert score.details["meets_minimums"]
    assert score.comment == ""


@pytest.mark.parametrize("value", [None, "left out"])
def test_a_dimension_without_a_score_leaves_no_score_and_is_named(value: Any) -> None:
    scores = {n: s for n, s in ALL.items() if n != "correctness"}
    given = scores if value else {**scores, "correctness": None}
    found = CompositeScore().of(given)
    assert (found.status, found.score) == ("failed", None)
    assert found.reason == "no score for correctness"


@pytest.mark.parametrize("wrong", [1.01, -0.5, math.nan, math.inf])
def test_a_score_out_of_range_leaves_no_score_and_is_named(wrong: float) -> None:
    found = CompositeScore().of({**ALL, "source": wrong})
    assert (found.status, found.reason) == ("failed", "not in 0 .. 1: source")


def test_weights_that_do_not_sum_to_one_are_normalised_and_that_is_said() -> None:
    composite = CompositeScore(weights={"source": 2, "relevance": 1})
    assert composite.normalised
    assert not CompositeScore().normalised
    score = composite.of({"source": 1.0, "relevance": 0.4})
    assert score.score == pytest.approx(0.8)
    assert score.comment == "weights divided by their sum, 3"


def test_a_dimension_below_its_minimum_is_named_and_the_score_stays() -> None:
    composite = CompositeScore(minimums={"correctness": 0.5, "source": 0.5})
    score = composite.of({**ALL, "correctness": 0.49, "source": 0.5})
    assert score.score is not None
    assert score.score > 0.6
    assert score.details["below_minimum"] == ["correctness"]
    assert not score.details["meets_minimums"]
    assert "below its minimum: correctness" in score.comment


def test_a_dimension_that_does_not_count_may_be_missing() -> None:
    weights = {"source": 1.0, "relevance": 0.0}
    assert CompositeScore(weights=weights).of({"source": 1.0}).score == 1.0
    needed = CompositeScore(weights=weights, minimums={"relevance": 0.1})
    assert needed.of({"source": 1.0}).reason == "no score for relevance"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"weights": {}}, "at least one dimension"),
        ({"weights": {"source": 0.0}}, "at least one dimension"),
        ({"weights": {"source": -1.0}}, "weights.source"),
        ({"weights": {"source": math.inf}}, "weights.source"),
        ({"minimums": {"sauce": 0.5}}, "minimums names sauce"),
        ({"minimums": {"source": 1.5}}, "minimums.source"),
    ],
)
def test_options_that_cannot_work_are_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        CompositeScore(**options)


FAITHFUL = RowScore(key="faithfulness", score=0.5, status="scored")
QUALITY = RowScore(
    key="answer_quality",
    score=0.8,
    status="scored",
    details={"relevance": 1.0, "correctness": 0.9, "completeness": 0.5, "reasoning": "So."},
)


def test_what_evaluators_found_becomes_dimensions() -> None:
    assert dimensions([FAITHFUL, QUALITY]) == {
        "faithfulness": 0.5,
        "source": 0.5,
        "answer_quality": 0.8,
        "relevance": 1.0,
        "correctness": 0.9,
        "completeness": 0.5,
    }
    score = CompositeScore().combine([FAITHFUL, QUALITY])
    assert score.score == pytest.approx(0.15 + 0.2 + 0.27 + 0.1)


def test_the_reason_of_a_failed_evaluator_is_handed_on() -> None:
    failed = RowScore(key="answer_quality", status="failed", reason="TimeoutError")
    score = CompositeScore().combine([FAITHFUL, failed])
    assert score.reason == (
        "no score for relevance, correctness, completeness (answer_quality failed: TimeoutError)"
    )


SHARE = st.floats(0, 1)


@given(
    st.fixed_dictionaries(dict.fromkeys(ALL, SHARE)),
    st.fixed_dictionaries(dict.fromkeys(ALL, st.floats(0.001, 100))),
)
def test_the_composite_lies_between_the_lowest_and_the_highest(
    scores: dict[str, float], weights: dict[str, float]
) -> None:
    found = CompositeScore(weights=weights).of(scores).score
    assert found is not None
    assert min(scores.values()) - 1e-9 <= found <= max(scores.values()) + 1e-9
    assert 0.0 <= found <= 1.0


def test_scores_of_evaluators_are_taken_as_they_are() -> None:
    composite = CompositeScore(weights={"m": 1.0})
    score = RowScore(key="m", score=0.5, status="scored")
    assert composite.of(score).score == composite.of([score]).score == 0.5
