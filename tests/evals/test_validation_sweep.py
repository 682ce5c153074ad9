"""What other thresholds would have done, without asking anybody: the same as if they had been."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.runnables import RunnableLambda

from langchain_groundedness import Citation, Claim, ClaimVerdict
from langchain_groundedness.evals import CompositeScore, EvaluationRow, RowScore
from langchain_groundedness.evals.validation import (
    AnswerValidator,
    RowValidation,
    SourceClaim,
    SweepLine,
    ValidatedRow,
    validate,
)
from langchain_groundedness.evals.validation.summary import replay, summarize_rows
from langchain_groundedness.evals.validation.validator import Bands, Thresholds
from langchain_groundedness.testing import ScriptedVerifier

BRIDGE = (
    "The bridge was built in 1890 and restored in 1962. It is 40 m long. Every spring the town "
    "paints its railing red, and children race across it."
)
ANSWERS = (
    "The bridge was built in 1890.",
    "The bridge was built in 1890. It is 40 m long. The mayor loves it.",
    "The railing is painted red by the town in spring. Cats swim.",
    "Kids run over it each year. The bridge is 40 m long.",
    "The bridge was repaired in 1962. Nobody knows who paid for the work.",
    "The bridge was built in 1990.",
    "A race takes place. A railing is there. Colours matter. Fish like it.",
    "I don't know.",
)
ROWS = [
    {"id": str(n), "question": "What of it?", "answer": answer, "contexts": [BRIDGE]}
    for n, answer in enumerate(ANSWERS)
]


def scored(row: EvaluationRow) -> RowScore:
    scores = dict.fromkeys(("relevance", "correctness", "completeness"), int(row.id) / 10 + 0.3)
    return RowScore(key="q", status="scored", score=0.5, details=scores)


def validator(**options: Any) -> AnswerValidator:
    return AnswerValidator(on_contradicted="count", **options)


def run(folder: Path, **options: Any) -> tuple[SweepLine, ...]:
    return validate(
        ROWS,
        passed=folder / "p.jsonl",
        rejected=folder / "r.jsonl",
        validator=validator(**options),
        fresh=True,
    ).sweep


@pytest.mark.parametrize("judged", [False, True])
def test_the_table_says_what_a_run_with_these_thresholds_does(
    tmp_path: Path, *, judged: bool
) -> None:
    options: dict[str, Any] = {}
    if judged:
        options = {
            "verifier": ScriptedVerifier(
                lambda c: "supported" if len(c.text) % 2 else "unverifiable"
            ),
            "quality": RunnableLambda(scored),
            "reject": 0.2,
        }
    known = 0
    for line in run(tmp_path, **options):
        if round(line.value * 20) % 4 != 1:
            continue  # some of them are enough
        again = {**options, line.option: line.value}
        real = next(
            each
            for each in run(tmp_path, **again)
            if each.option == line.option and each.is_current
        )
        assert line.passed <= real.passed <= line.passed + line.unknown, line
        assert line.rejected <= real.rejected <= line.rejected + line.unknown, line
        assert line.unchecked == real.unchecked
        known += not line.unknown
    assert known >= 5


def test_what_a_judge_was_never_asked_is_unknown() -> None:
    then = thresholds(Bands(0.75, 0.5), has_judge=True)
    accepted = claim("supported", 0.8).model_copy(update={"band": "accept"})
    judged = claim("supported", 0.6).model_copy(update={"band": "judge"})
    stricter = then._replace(bands=Bands(0.9, 0.5))
    looser = then._replace(bands=Bands(0.55, 0.5))
    harsher = then._replace(bands=Bands(0.75, 0.7))
    for claims, setting, outcome in (
        ((accepted,), stricter, "unknown"),
        ((judged,), stricter, "passed"),
        ((accepted, judged), looser, "passed"),
        ((judged,), harsher, "rejected"),
    ):
        found = RowValidation(
            outcome="passed", stage="source", claims=claims, scores={"source": 1.0}
        )
        assert replay(found, then, setting) == outcome


def test_a_row_that_now_passes_the_first_stage_has_no_quality_yet() -> None:
    then = thresholds(Bands(0.75, 0.5), has_judge=True, has_quality=True)
    found = RowValidation(
        outcome="rejected",
        stage="source",
        claims=(claim("supported", 0.9), claim("unverifiable", 0.1), claim("unverifiable", 0.1)),
        scores={"source": 1 / 3},
    )
    assert replay(found, then, then._replace(min_source=0.3)) == "unknown"


def test_the_table_tells_precision_and_recall_where_there_are_labels() -> None:
    setting = thresholds(Bands(0.75, 0.5))
    rows = []
    for name, composite, label in (("a", 0.9, True), ("b", 0.8, False), ("c", 0.55, "right")):
        claims = tuple(claim("supported", 0.9) for _ in range(round(composite * 20)))
        claims += tuple(claim("unverifiable", 0.0) for _ in range(20 - len(claims)))
        rows.append(
            ValidatedRow(
                id=name,
                label=label,
                outcome="passed" if composite >= 0.7 else "rejected",
                stage="source",
                composite=composite,
                claims=claims,
                scores={"source": composite},
            )
        )
    sweep = summarize_rows(rows, setting).sweep
    found = {line.value: line for line in sweep if line.option == "pass_score"}
    assert (found[0.7].precision, found[0.7].recall) == (0.5, 0.5)
    assert (found[0.85].precision, found[0.85].recall) == (1.0, 0.5)
    assert found[0.5].precision == pytest.approx(2 / 3)
    assert found[0.5].recall == 1.0
    assert (found[0.95].precision, found[0.95].passed) == (None, 0)


def thresholds(bands: Bands, **options: Any) -> Thresholds:
    given: dict[str, Any] = {
        "pass_score": 0.7,
        "min_source": 0.5,
        "on_contradicted": "count",
        "composite": CompositeScore(),
        "has_judge": False,
        "has_quality": False,
        **options,
    }
    return Thresholds(bands, **given)


def claim(verdict: Any, similarity: float | None) -> SourceClaim:
    cited = (Citation(document=0, start=0, end=1, quote="E"),) if verdict == "supported" else ()
    said = ClaimVerdict(
        claim=Claim(id="c", text="t"),
        verdict=verdict,
        support_probability=similarity,
        citations=cited,
        reason="why" if verdict == "unchecked" else None,
    )
    return SourceClaim(verdict=said, similarity=similarity)


SHARES = st.floats(0, 1)
FOUND = st.builds(
    lambda claims: claims,
    st.lists(
        st.tuples(st.sampled_from(["supported", "unverifiable"]), SHARES), min_size=1, max_size=6
    ),
)


def validation(claims: list[tuple[str, float]], setting: Thresholds) -> RowValidation:
    """A row as it is found offline: what the probabilities say, counted."""
    given = tuple(
        claim("supported" if p >= setting.bands.middle else "unverifiable", p) for _, p in claims
    )
    labels = [each.verdict.verdict for each in given]
    share = labels.count("supported") / len(labels)
    rejected = setting.against_source(labels) or share < setting.pass_score - 1e-9
    return RowValidation(
        outcome="rejected" if rejected else "passed",
        stage="source",
        claims=given,
        scores={"source": share},
    )


@given(claims=FOUND, one=st.tuples(SHARES, SHARES, SHARES), other=st.tuples(SHARES, SHARES, SHARES))
def test_offline_a_replay_is_always_what_a_run_would_find(
    claims: list[tuple[str, float]],
    one: tuple[float, float, float],
    other: tuple[float, float, float],
) -> None:
    then, now = (
        thresholds(Bands(1.0, reject), pass_score=pass_score, min_source=min_source)
        for reject, pass_score, min_source in (one, other)
    )
    assert replay(validation(claims, then), then, now) == validation(claims, now).outcome


@given(claims=FOUND, values=st.lists(SHARES, min_size=2, max_size=5))
def test_a_higher_pass_score_never_lets_more_rows_pass(
    claims: list[tuple[str, float]], values: list[float]
) -> None:
    then = thresholds(Bands(0.75, 0.5))
    found = validation(claims, then)
    passing = [
        replay(found, then, then._replace(pass_score=value)) == "passed" for value in sorted(values)
    ]
    assert passing == sorted(passing, reverse=True)
