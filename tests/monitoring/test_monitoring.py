"""Figures over many records in little memory."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from langchain_groundedness import Decision
from langchain_groundedness.audit import AuditRecord, Review
from langchain_groundedness.monitoring import AuditSummary, summarize
from langchain_groundedness.report import statistics_html
from langchain_groundedness.types import Action, Claim, ClaimVerdict, VerdictLabel


def record(action: Action = "pass", **fields: Any) -> AuditRecord:
    return AuditRecord(**{"verdict": "grounded", "decision": Decision(action=action), **fields})


def verdict(label: VerdictLabel) -> ClaimVerdict:
    reason = "not reached" if label == "unchecked" else None
    return ClaimVerdict(claim=Claim(id="c", text="x"), verdict=label, reason=reason)


@pytest.mark.parametrize(
    ("decided", "reviewed", "is_overruled"),
    [
        ("block", "approve", True),
        ("block", "edit", True),
        ("block", "reject", False),
        ("pass", "reject", True),
        ("flag", "edit", True),
        ("flag", "approve", False),
        ("review", "reject", False),
    ],
)
def test_overruled_is_who_has_decided_otherwise(
    decided: Action, reviewed: Any, *, is_overruled: bool
) -> None:
    review = Review(status="decided", reviewer="ada", action=reviewed)
    assert summarize([record(decided, review=review)]).total.overruled == is_overruled


def test_unchecked_claims_do_not_count_into_the_supported_rate() -> None:
    claims = (verdict("supported"), verdict("unverifiable"), verdict("unchecked"))
    total = summarize([record(claims=claims)]).total
    assert total.supported_rate == 0.5
    assert total.claims == {"supported": 1, "unverifiable": 1, "unchecked": 1}


def test_agreement_is_who_has_marked_a_claim_as_the_verifier_judged_it() -> None:
    claims = tuple(
        ClaimVerdict.unchecked(claim, "why")
        if label == "unchecked"
        else ClaimVerdict(claim=claim, verdict=label)
        for n, label in enumerate(
            ("supported", "supported", "supported", "contradicted", "unverifiable", "unchecked")
        )
        for claim in [Claim(id=f"c{n}", text="x")]
    )
    marks = {"c0": True, "c1": False, "c3": False, "c4": True, "c5": True, "gone": True}
    review = Review(status="decided", reviewer="ada", action="approve", marks=marks)
    found = summarize([record(claims=claims, review=review), record(claims=claims)])
    assert found.total.marks == {
        "supported": (1, 1),
        "contradicted": (0, 1),
        "unverifiable": (1, 0),
        "unchecked": (1, 0),
    }
    assert found.total.agreement("supported") == 0.5
    assert found.total.agreement("contradicted") == 1.0
    assert found.total.agreement("unverifiable") == 0.0
    assert found.total.agreement("unchecked") is None
    assert "agree with the verdict" in statistics_html(found)
    assert AuditSummary.model_validate_json(found.model_dump_json()) == found


def test_nothing_is_known_of_no_records() -> None:
    found = summarize([])
    assert (found.first, found.total.supported_rate, found.total.check_ms) == (None, None, {})
    assert 'class="plot"' not in statistics_html(found)


def test_days_are_those_of_utc() -> None:
    late = datetime.fromisoformat("2026-03-01T23:30:00-05:00")
    assert [day.name for day in summarize([record(time=late)]).days] == ["2026-03-02"]


def test_names_without_end_take_no_memory_without_end() -> None:
    found = summarize(record(query_class=str(n)) for n in range(1500))
    assert len(found.query_classes) <= 1001
    assert sum(group.answers for group in found.query_classes) == 1500
    assert found.query_classes[0].name == "(others)"


def test_summary_survives_json() -> None:
    found = summarize([record(time=datetime.now(UTC), claims=(verdict("supported"),))])
    assert AuditSummary.model_validate_json(found.model_dump_json()) == found


@pytest.mark.parametrize(("days", "timings", "plots"), [(4, 4, 0), (5, 5, 3), (5, 4, 2)])
def test_the_page_has_plots_from_five_days_on(days: int, timings: int, plots: int) -> None:
    times = [datetime(2026, 3, day, tzinfo=UTC) for day in range(1, days + 1)]
    claims = (verdict("supported"),)
    summary = summarize(
        record(time=time, claims=claims, timings={"check": 1.0} if time.day <= timings else {})
        for time in times
    )
    page = statistics_html(summary)
    assert page.count('class="plot"') == plots
    assert all(f"{time:%Y-%m-%d}</th>" in page for time in times)


def test_title_of_the_page_is_escaped() -> None:
    assert "<h1>&lt;i&gt;</h1>" in statistics_html(summarize([record()]), title="<i>")


def timed(*durations: float) -> dict[str, float]:
    return summarize(record(timings={"check": each}) for each in durations).total.check_ms


@settings(deadline=None)
@given(st.lists(st.floats(1, 1e6), min_size=1, max_size=200))
def test_percentiles_are_at_most_one_percent_off(durations: list[float]) -> None:
    found = timed(*durations)
    for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):
        at_most = [each for each in durations if each <= found[name] * 1.011]
        below = [each for each in durations if each < found[name] * 0.989]
        assert len(at_most) >= share * len(durations) - 1e-9
        assert len(below) <= share * len(durations) + 1e-9


def test_durations_that_make_no_sense_do_not_stop_the_count() -> None:
    assert timed(-1.0, 0.0, float("nan"), 5.0)["p99"] == pytest.approx(5.0, rel=0.01)
