"""Which threshold is chosen, stated as properties of any scores."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from langchain_groundedness.calibration.threshold_choice import (
    ScoredSamples,
    Target,
    bootstrap_threshold,
    choose_threshold,
    fold_numbers,
    group_numbers,
    highest_share,
    precision_and_recall,
    roundest_between,
    wilson_interval,
)

Rows = list[tuple[float, bool]]

ROWS = st.lists(
    st.tuples(
        st.one_of(st.sampled_from([0.0, 0.25, 0.5, 1.0, float("-inf")]), st.floats(-1, 1)),
        st.booleans(),
    ),
    min_size=1,
    max_size=60,
)
SHARES = st.one_of(st.sampled_from([0.5, 0.9, 0.95, 1.0]), st.floats(0.01, 1.0))


def scored(rows: Rows) -> ScoredSamples:
    return ScoredSamples(
        np.array([score for score, _ in rows], dtype=np.float64),
        np.array([good for _, good in rows], dtype=np.bool_),
        group_numbers([""] * len(rows)),
    )


def precision(rows: Rows, threshold: float) -> float | None:
    passing = [good for score, good in rows if score >= threshold]
    return sum(passing) / len(passing) if passing else None


def recall(rows: Rows, threshold: float) -> float | None:
    kept = [score >= threshold for score, good in rows if good]
    return sum(kept) / len(kept) if kept else None


FIGURES = {"precision": precision, "recall": recall}


@pytest.mark.parametrize("kind", ["precision", "recall"])
@settings(deadline=None)
@given(rows=ROWS, share=SHARES)
def test_chosen_threshold_reaches_the_target_and_none_is_chosen_only_if_none_does(
    kind: str, rows: Rows, share: float
) -> None:
    target = Target("precision" if kind == "precision" else "recall", share)
    threshold = choose_threshold(scored(rows), target)
    figure = FIGURES[kind]
    levels = {score for score, _ in rows if score > float("-inf")}
    reaching = [
        level for level in levels if (figure(rows, level) or 0) >= share
    ] if any(good for _, good in rows) else []  # fmt: skip
    if threshold is None:
        assert not reaching
    else:
        assert (figure(rows, threshold) or 0) >= share


@pytest.mark.parametrize("kind", ["precision", "recall"])
@settings(deadline=None)
@given(rows=ROWS)
def test_the_highest_share_is_the_best_target_that_can_be_reached(kind: Any, rows: Rows) -> None:
    best = highest_share(scored(rows), kind)
    if best:
        assert choose_threshold(scored(rows), Target(kind, best)) is not None
    if best < 1:
        assert choose_threshold(scored(rows), Target(kind, math.nextafter(best, 2))) is None


@settings(deadline=None)
@given(rows=ROWS, share=SHARES)
def test_no_better_threshold_reaches_the_precision_and_no_higher_one_the_recall(
    rows: Rows, share: float
) -> None:
    levels = sorted({score for score, _ in rows if score > float("-inf")})
    low = choose_threshold(scored(rows), Target("precision", share))
    if low is not None:
        passing = min((level for level in levels if level >= low), default=low)
        reaching = [level for level in levels if (precision(rows, level) or 0) >= share]
        best = max((recall(rows, level) or 0, level) for level in reaching)
        assert (recall(rows, passing) or 0, passing) == best
    high = choose_threshold(scored(rows), Target("recall", share))
    if high is not None:
        lowest_passing = min(level for level in levels if level >= high)
        above = [level for level in levels if level > lowest_passing]
        assert all((recall(rows, level) or 0) < share for level in above)


@settings(deadline=None)
@given(rows=ROWS, share=SHARES, power=st.sampled_from([0.5, 3.0]))
def test_choice_depends_on_the_order_of_scores_alone(
    rows: Rows, share: float, power: float
) -> None:
    def bent(score: float) -> float:
        return score if score == float("-inf") else float(np.sign(score) * abs(score) ** power)

    changed = [(bent(score), good) for score, good in rows]
    if len({score for score, _ in changed}) < len({score for score, _ in rows}):
        return  # rounding has made two scores one
    target = Target("precision", share)
    one, other = choose_threshold(scored(rows), target), choose_threshold(scored(changed), target)
    assert (one is None) == (other is None)
    if one is not None and other is not None:
        assert [s >= one for s, _ in rows] == [s >= other for s, _ in changed]


@settings(deadline=None)
@given(st.floats(-1, 1), st.floats(-1, 1))
def test_number_between_two_is_above_the_one_and_not_above_the_other(a: float, b: float) -> None:
    low, high = sorted((a, b))
    if low < high:
        assert low < roundest_between(low, high) <= high


def test_number_between_two_is_round_where_it_can_be() -> None:
    assert roundest_between(0.412345, 0.498765) == 0.46


def test_samples_of_one_group_stay_in_one_part() -> None:
    groups = group_numbers([f"g{n // 3}" for n in range(60)])
    parts = fold_numbers(groups, folds=5, seed=1)
    assert len(set(parts.tolist())) == 5
    for group in set(groups.tolist()):
        assert len(set(parts[groups == group].tolist())) == 1


def test_samples_without_a_group_stand_alone() -> None:
    assert group_numbers(["", "a", "", "a"]).tolist() == [0, 1, 2, 1]


def test_interval_is_wider_where_samples_come_in_groups() -> None:
    rows = [(n / 100, n % 10 > (9 - n // 10)) for n in range(100)]
    alone = scored(rows)
    together = alone._replace(groups=group_numbers([str(n // 20) for n in range(100)]))
    target = Target("recall", 0.8)
    (low, high), _ = must(bootstrap_threshold(alone, target, times=300, seed=0))
    (wide_low, wide_high), _ = must(bootstrap_threshold(together, target, times=300, seed=0))
    assert wide_high - wide_low > high - low


def must(
    found: tuple[tuple[float, float] | None, float],
) -> tuple[tuple[float, float], float]:
    assert found[0] is not None
    return found[0], found[1]


def test_share_of_one_has_an_interval_that_leaves_room_for_doubt() -> None:
    good = np.ones(25, dtype=np.bool_)
    (share, interval), _ = precision_and_recall(
        good, good, group_numbers([""] * 25), times=200, seed=0
    )
    assert share == 1.0
    assert interval is not None
    assert interval[0] < 0.9
    assert interval[1] == pytest.approx(1.0)


def test_share_of_nothing_is_not_known() -> None:
    none = np.zeros(5, dtype=np.bool_)
    assert precision_and_recall(none, ~none, group_numbers([""] * 5), times=10, seed=0)[0] == (
        None,
        None,
    )


def test_wilson_interval_is_the_textbook_one() -> None:
    assert wilson_interval(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)


def test_intervals_of_shares_are_drawn_by_group() -> None:
    passes = np.ones(200, dtype=np.bool_)
    good = np.array([n // 20 % 2 == 0 for n in range(200)])
    (_, alone), _ = precision_and_recall(passes, good, group_numbers([""] * 200), times=300, seed=0)
    (_, together), _ = precision_and_recall(
        passes, good, group_numbers([str(n // 20) for n in range(200)]), times=300, seed=0
    )
    assert alone is not None
    assert together is not None
    assert together[1] - together[0] > 2 * (alone[1] - alone[0])
