"""Intervals, comparisons, slices and agreement: values known by hand, and what holds for any."""

import math
from typing import Any, Literal, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_groundedness import ConfigurationError
from langchain_groundedness.evals import (
    EvaluatedRow,
    EvaluationRow,
    EvaluationRun,
    RowScore,
    RunHeader,
)
from langchain_groundedness.evals.statistics import (
    compare_runs,
    compare_scores,
    estimate_mean,
    label_agreement,
    run_agreement,
    slice_scores,
)

Method = Literal["bca", "percentile"]
SCORES = st.lists(st.floats(0, 1), min_size=1, max_size=30)
GROUPED = st.lists(st.tuples(st.floats(0, 1), st.sampled_from("abcde")), min_size=1, max_size=30)


def row(
    name: str,
    score: float | None,
    *,
    question: str | None = "What?",
    label: Any = None,
    **metadata: Any,
) -> EvaluatedRow:
    scored = (
        RowScore(key="m", status="failed", reason="a timeout")
        if score is None
        else RowScore(key="m", score=score, status="scored")
    )
    asked = EvaluationRow(id=name, question=question, label=label, metadata=metadata)
    return EvaluatedRow(row=asked, scores=(scored,))


def run(*rows: EvaluatedRow) -> EvaluationRun:
    made: Any = "2026-11-21T12:00:00Z"
    header = RunHeader(name="r", made=made, dataset="d", evaluators={})
    return EvaluationRun(header=header, rows=rows)


def draws(values: list[float], **options: Any) -> tuple[float, float]:
    found = estimate_mean(values, resamples=100, **options)
    assert found is not None
    assert found.low is not None
    assert found.high is not None
    return found.low, found.high


# Intervals


def test_without_scores_there_is_no_mean() -> None:
    assert estimate_mean([]) is None


def test_one_score_tells_nothing_about_others() -> None:
    found = estimate_mean([0.4])
    assert found is not None
    assert (found.mean, found.low, found.high) == (0.4, None, None)


@given(values=SCORES, method=st.sampled_from(["bca", "percentile"]))
def test_the_interval_holds_the_mean_and_stays_among_the_scores(
    values: list[float], method: Method
) -> None:
    found = estimate_mean(values, method=method, resamples=100)
    assert found is not None
    assert found.mean == pytest.approx(sum(values) / len(values))
    if found.low is not None and found.high is not None:
        assert 0 <= found.low <= found.mean <= found.high <= 1


@given(rows=GROUPED, data=st.data())
def test_neither_the_order_of_rows_nor_the_names_of_groups_matter(
    rows: list[tuple[float, str]], data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(rows))
    one = estimate_mean(
        [score for score, _ in rows], groups=[group for _, group in rows], resamples=100
    )
    other = estimate_mean(
        [score for score, _ in shuffled],
        groups=[f"the {group}" for _, group in shuffled],
        resamples=100,
    )
    assert one == other


@given(rows=GROUPED)
def test_the_mean_is_that_of_the_rows_however_they_are_grouped(
    rows: list[tuple[float, str]],
) -> None:
    values = [score for score, _ in rows]
    alone = estimate_mean(values, resamples=100)
    grouped = estimate_mean(values, groups=[group for _, group in rows], resamples=100)
    assert alone is not None
    assert grouped is not None
    assert alone.mean == pytest.approx(grouped.mean)
    assert grouped.groups == len({group for _, group in rows})


def test_rows_that_say_the_same_of_one_document_widen_the_interval() -> None:
    values = [0.2, 0.4, 0.6, 0.8] * 10
    low, high = draws(values)
    wide_low, wide_high = draws(values, groups=[str(value) for value in values])
    assert wide_low < low < high < wide_high


def test_the_percentile_interval_is_that_of_the_normal_distribution_for_many_rows() -> None:
    values = np.random.default_rng(1).normal(0.5, 0.1, 400).tolist()
    found = estimate_mean(values, method="percentile", resamples=5000)
    error = float(np.std(values, ddof=1)) / 20
    assert found is not None
    assert found.low == pytest.approx(found.mean - 1.96 * error, abs=0.1 * error)
    assert found.high == pytest.approx(found.mean + 1.96 * error, abs=0.1 * error)


def test_the_corrected_interval_leans_towards_the_long_tail() -> None:
    values = [0.0] * 18 + [0.4, 0.9]
    low, high = draws(values, method="bca", confidence=0.9)
    plain_low, plain_high = draws(values, method="percentile", confidence=0.9)
    assert low >= plain_low
    assert high > plain_high


def test_of_rows_that_are_all_right_the_interval_still_tells_a_doubt() -> None:
    low, high = draws([1.0] * 20)
    assert low == pytest.approx(0.839, abs=0.001)  # Wilson, 20 of 20
    assert high == 1.0


def test_intervals_cover_the_true_mean_about_as_often_as_they_say() -> None:
    chance = np.random.default_rng(5)
    hits = 0
    for seed in range(200):
        low, high = draws(chance.beta(2, 1, 40).tolist(), seed=seed)
        hits += low <= 2 / 3 <= high
    assert 0.88 <= hits / 200 <= 0.99


def test_very_many_groups_take_no_draws_and_give_the_normal_interval() -> None:
    values = np.random.default_rng(2).random(60_000).tolist()
    found = estimate_mean(values, resamples=1_000_000)
    error = float(np.std(values, ddof=1)) / math.sqrt(60_000)
    assert found is not None
    assert found.high == pytest.approx(found.mean + 1.96 * error, abs=1e-5)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"confidence": 1.0}, "confidence must be between 0 and 1"),
        ({"method": "magic"}, "'bca', 'percentile'"),
        ({"resamples": 9}, "resamples must be at least 100"),
        ({"groups": ["a"]}, "one per value"),
    ],
)
def test_options_that_cannot_work_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        estimate_mean([0.1, 0.2], **options)


def test_a_score_that_is_no_number_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="leave out what has no score"):
        estimate_mean([0.1, math.nan])


# Comparison


def test_a_comparison_names_what_changed_and_what_cannot_be_compared() -> None:
    found = compare_runs(
        run(row("a", 0.2), row("b", 0.5), row("c", 1.0), row("d", 0.5), row("e", None)),
        run(row("a", 0.9), row("b", 0.5), row("c", 0.9), row("e", 1.0), row("f", 1.0)),
        "m",
    )
    assert (found.rows, found.better, found.worse, found.same) == (3, 1, 1, 1)
    assert [change.id for change in found.changes] == ["a", "c"]
    assert found.changes[0].difference == pytest.approx(0.7)
    assert (found.only_before, found.only_after, found.not_scored) == (("d",), ("f",), ("e",))
    assert found.difference is not None
    assert found.difference.mean == pytest.approx(0.2)


def test_rows_that_ask_something_else_are_named_and_not_compared() -> None:
    found = compare_runs(run(row("a", 0.1)), run(row("a", 0.9, question="Who?")), "m")
    assert (found.rows, found.other_question) == (0, ("a",))
    assert found.p_value is None
    assert not found.is_significant()


def test_a_metric_that_a_run_does_not_have_is_named_with_those_it_has() -> None:
    with pytest.raises(ConfigurationError, match="first run has no metric 'x'; it has: m"):
        compare_runs(run(row("a", 0.1)), run(row("a", 0.1)), "x")


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda rows: run_agreement(rows, "n"), "the run has no metric 'n'; it has: m"),
        (lambda rows: slice_scores(rows, "n", "topic"), "the run has no metric 'n'; it has: m"),
        (lambda rows: slice_scores(rows, "m", "tpoic"), "no column 'tpoic'; they have 'topic'"),
        (lambda rows: slice_scores(rows, "m", "topic", group_by="x"), "no column 'x'"),
        (lambda rows: run_agreement(rows, "m", threshold=50), "scores are from 0 to 1, got 50"),
        (
            lambda _: run_agreement(cast("Any", "run.jsonl"), "m"),
            "got str; load_run reads one from its file",
        ),
        (
            lambda _: compare_runs(cast("Any", "a.jsonl"), cast("Any", "b.jsonl"), "m"),
            "before: .* load_run reads one",
        ),
        (
            lambda _: slice_scores(cast("Any", [1]), "m", "topic"),
            "rows: expected an EvaluationRun, got list",
        ),
    ],
)
def test_what_is_not_there_is_named_with_what_is(ask: Any, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        ask([row("a", 0.1, topic="law", label=True)])


def test_a_run_is_taken_as_its_rows_are() -> None:
    made = run(row("a", 0.1, topic="law", label=True))
    assert slice_scores(made, "m", "topic") == slice_scores(made.rows, "m", "topic")
    assert run_agreement(made, "m") == run_agreement(made.rows, "m")


def test_the_p_values_of_six_rows_that_all_rose_are_those_by_hand() -> None:
    before = dict.fromkeys("abcdef", 0.1)
    after = {name: 0.2 + place / 10 for place, name in enumerate("abcdef")}
    found = compare_scores(before, after)
    # Of 64 combinations of signs, two are as uneven; so are two of 64 splits of six.
    assert found.p_value == pytest.approx(2 / 64)
    assert found.sign_p_value == pytest.approx(2 / 64)
    assert found.is_significant()


def test_the_sign_test_of_eight_to_two_is_that_of_the_tables() -> None:
    changes = [0.1] * 8 + [-0.1] * 2
    found = compare_scores(
        {str(place): 0.5 for place in range(10)},
        {str(place): 0.5 + change for place, change in enumerate(changes)},
    )
    assert found.sign_p_value == pytest.approx(0.109375)  # 2 (1 + 10 + 45) / 1024


def test_drawn_signs_come_close_to_all_signs() -> None:
    changes = np.random.default_rng(3).normal(0.05, 0.1, 15)
    exact = np.array(
        [sum(c if bits >> n & 1 else -c for n, c in enumerate(changes)) for bits in range(2**15)]
    )
    share = np.mean(np.abs(exact) >= abs(changes.sum()) - 1e-9)
    found = compare_scores(
        {str(n): 0.5 for n in range(15)},
        {str(n): 0.5 + change for n, change in enumerate(changes.tolist())},
    )
    assert found.p_value == pytest.approx(share, abs=0.02)


def test_rows_of_one_group_count_as_one() -> None:
    before = {str(place): 0.5 for place in range(12)}
    after = dict.fromkeys(before, 0.7)
    alone = compare_scores(before, after)
    together = compare_scores(before, after, groups=dict.fromkeys(before, "one document"))
    assert alone.p_value is not None
    assert alone.p_value < 0.01
    assert together.p_value == 1.0


def test_very_many_rows_are_compared_without_draws() -> None:
    before = {str(place): 0.0 for place in range(60_000)}
    after = {name: (0.6 if place % 2 else -0.5) for place, name in enumerate(before)}
    found = compare_scores(before, after)
    assert found.p_value is not None
    assert found.p_value < 1e-6
    assert found.sign_p_value == pytest.approx(1.0)


@given(
    pairs=st.dictionaries(
        st.text(max_size=3), st.tuples(st.floats(0, 1), st.floats(0, 1)), max_size=20
    )
)
def test_exchanging_the_runs_turns_the_difference_round_and_leaves_the_p_values(
    pairs: dict[str, tuple[float, float]],
) -> None:
    first = {name: pair[0] for name, pair in pairs.items()}
    second = {name: pair[1] for name, pair in pairs.items()}
    there, back = (
        compare_scores(*each, resamples=100) for each in ((first, second), (second, first))
    )
    assert (there.better, there.worse) == (back.worse, back.better)
    assert there.sign_p_value == back.sign_p_value
    if there.p_value is not None and back.p_value is not None:
        assert there.p_value == pytest.approx(back.p_value, abs=0.2)
        assert 0 < there.p_value <= 1
    if there.difference is not None and back.difference is not None:
        assert there.difference.mean == pytest.approx(-back.difference.mean)
        if there.difference.low is not None and back.difference.low is not None:
            ends = (-must(back.difference.high), -back.difference.low)
            assert (there.difference.low, there.difference.high) == pytest.approx(ends, abs=1e-9)


@given(scores=st.dictionaries(st.text(max_size=3), st.floats(0, 1), min_size=1, max_size=20))
def test_a_run_compared_with_itself_has_not_changed(scores: dict[str, float]) -> None:
    found = compare_scores(scores, scores, resamples=100)
    assert (found.p_value, found.sign_p_value, found.changes) == (1.0, 1.0, ())
    assert found.difference is not None
    assert found.difference.low in (None, 0.0)
    assert found.difference.high in (None, 0.0)


def test_where_no_row_falls_the_interval_is_no_interval_of_a_share() -> None:
    low, high = dict.fromkeys("abcdefgh", 0.0), dict.fromkeys("abcdefgh", 1.0)
    for before, after, change in ((low, low, 0.0), (low, high, 1.0), (high, low, -1.0)):
        found = compare_scores(before, after).difference
        assert found is not None
        assert (found.low, found.high) == (change, change)


def must(value: float | None) -> float:
    assert value is not None
    return value


# Slices


def test_slices_come_largest_first_and_the_rest_together() -> None:
    rows = [row(f"{topic}{n}", 1.0, topic=topic) for topic in "abcde" for n in range(ord(topic))]
    found = slice_scores(rows, "m", "topic", most=2)
    assert [each.value for each in found] == ["e", "d", None]
    assert found[-1].is_rest
    assert found[-1].values == 3
    assert sum(each.rows for each in found) == len(rows)


def test_a_single_value_is_not_hidden_as_the_rest() -> None:
    rows = [row(topic, 1.0, topic=topic) for topic in "abc"]
    assert [each.value for each in slice_scores(rows, "m", "topic", most=2)] == ["a", "b", "c"]


def test_rows_without_the_column_and_rows_without_a_score_are_counted() -> None:
    rows = [row("1", 0.5), row("2", None), row("3", 0.1, topic=["x", 1])]
    found = slice_scores(rows, "m", "topic")
    assert [(each.value, each.rows, each.not_scored) for each in found] == [
        (None, 2, 1),
        ('["x", 1]', 1, 0),
    ]


def test_a_slice_in_which_nothing_was_scored_has_no_score() -> None:
    assert slice_scores([row("1", None, topic="a")], "m", "topic")[0].score is None


@given(
    rows=st.lists(
        st.tuples(st.one_of(st.none(), st.floats(0, 1)), st.sampled_from("abcd")), max_size=30
    ),
    most=st.integers(1, 5),
)
def test_every_row_is_in_one_slice(rows: list[tuple[float | None, str]], most: int) -> None:
    made = [row(str(place), score, topic=topic) for place, (score, topic) in enumerate(rows)]
    found = slice_scores(made, "m", "topic", most=most, resamples=100)
    assert sum(each.rows for each in found) == len(rows)
    assert sum(each.not_scored for each in found) == sum(score is None for score, _ in rows)
    assert len(found) <= most + 1


# Agreement


def test_agreement_is_that_by_hand() -> None:
    scores = [0.9] * 5 + [0.1] * 5
    labels = [True] * 4 + [False] + [True] * 2 + [False] * 3
    found = label_agreement(scores, labels)
    assert (found.true_positives, found.false_positives) == (4, 1)
    assert (found.false_negatives, found.true_negatives) == (2, 3)
    assert found.precision == pytest.approx(4 / 5)
    assert found.recall == pytest.approx(4 / 6)
    assert found.specificity == pytest.approx(3 / 4)
    assert found.balanced_accuracy == pytest.approx((4 / 6 + 3 / 4) / 2)
    assert found.f1 == pytest.approx(8 / 11)
    assert found.kappa == pytest.approx((0.7 - 0.5) / (1 - 0.5))
    assert found.kappa_interval is not None
    assert found.kappa_interval[0] < 0.4 < found.kappa_interval[1]


@pytest.mark.parametrize("label", ["supported", "Approve", True, 1, 1.0, "1"])
def test_a_label_says_right_in_the_words_of_calibration(label: object) -> None:
    assert label_agreement([1.0], [label]).true_positives == 1


def test_what_cannot_be_compared_is_named() -> None:
    rows = [
        row("a", 0.9, label="supported"),
        row("b", None, label="wrong"),
        row("c", 0.9, label="dubious"),
        row("d", 0.9, label=0.3),
        row("e", 0.9),
    ]
    found = run_agreement(rows, "m")
    assert found is not None
    assert (found.rows, found.not_scored, found.unlabelled) == (1, ("b",), 1)
    assert found.not_read == ("c", "d")


def test_without_labels_there_is_no_agreement() -> None:
    assert run_agreement([row("a", 0.9)], "m") is None


def test_a_share_of_nothing_is_none() -> None:
    found = label_agreement([0.9, 0.8], [True, True])
    assert found.specificity is None
    assert found.balanced_accuracy is None
    assert found.balanced_accuracy_interval is None
    assert found.kappa is None
    assert found.f1 == 1.0


CASES = st.lists(st.tuples(st.floats(0, 1), st.booleans()), max_size=30)


@given(cases=CASES, threshold=st.floats(0, 1), data=st.data())
def test_agreement_is_bounded_and_does_not_depend_on_the_order(
    cases: list[tuple[float, bool]], threshold: float, data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(cases))
    found, other = (
        label_agreement(
            [score for score, _ in each],
            [label for _, label in each],
            threshold=threshold,
            resamples=100,
        )
        for each in (cases, shuffled)
    )
    assert found == other
    for share in (found.precision, found.recall, found.f1, found.balanced_accuracy):
        assert share is None or 0 <= share <= 1
    assert found.kappa is None or -1 <= found.kappa <= 1
    assert found.rows == len(cases)


@given(cases=CASES)
def test_scores_that_are_the_labels_agree_in_full(cases: list[tuple[float, bool]]) -> None:
    labels = [label for _, label in cases]
    found = label_agreement([float(label) for label in labels], labels, resamples=100)
    assert found.false_positives == found.false_negatives == 0
    assert found.kappa in (None, 1.0)


def test_a_threshold_that_is_no_number_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="scores are from 0 to 1, got nan"):
        label_agreement([0.9], [True], threshold=math.nan)
