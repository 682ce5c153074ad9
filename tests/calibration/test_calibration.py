"""Thresholds chosen on labelled samples, and the checker that works with them."""

import json
import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from langchain_groundedness import (
    Claim,
    ClaimVerdict,
    ConfigurationError,
    Decision,
    DecisionPolicy,
    EmbeddedVerifier,
    GroundednessRunnable,
)
from langchain_groundedness.audit import AuditRecord, Review
from langchain_groundedness.calibration import (
    Calibration,
    CalibrationSample,
    ScoredClaim,
    ThresholdChoice,
    ThresholdFigures,
    calibrate,
)
from langchain_groundedness.middleware import resume_reviewed
from langchain_groundedness.monitoring import summarize
from langchain_groundedness.testing import ScriptedChatModel
from langchain_groundedness.types import VerdictLabel

FEW: dict[str, Any] = {"resamples": 50}


def claim(
    probability: float | None, *, is_right: bool, group: str = "", verifier: str = "embedded"
) -> CalibrationSample:
    supported = probability is None or probability >= 0.5
    verdict: VerdictLabel = "supported" if supported else "unverifiable"
    said = ScoredClaim(verdict, probability, verifier)
    return CalibrationSample(unit="claim", is_right=is_right, claims=(said,), group=group)


def answer(*claims: tuple[VerdictLabel, float | None], is_right: bool) -> CalibrationSample:
    said = tuple(ScoredClaim(verdict, p, "embedded") for verdict, p in claims)
    return CalibrationSample(unit="answer", is_right=is_right, claims=said)


def noisy(number: int, *, seed: int = 0) -> list[CalibrationSample]:
    """Claims whose probabilities are well calibrated."""
    chance = random.Random(seed)  # noqa: S311  (no secret)
    drawn = [chance.random() for _ in range(number)]
    return [claim(p, is_right=chance.random() < p) for p in drawn]


def choice(threshold: float) -> ThresholdChoice:
    figures = ThresholdFigures(samples=40, passed=20)
    return ThresholdChoice(
        threshold=threshold,
        unit="claim",
        samples=40,
        good=20,
        groups=40,
        before=figures,
        fitted=figures,
        expected=figures,
    )


def calibration(verifier: str = "embedded", **thresholds: float) -> Calibration:
    return Calibration(
        made=datetime.now(UTC),
        target={"kind": "precision", "value": 0.9},
        verifier=verifier,
        chosen={name: choice(value) for name, value in thresholds.items()},
    )


@settings(max_examples=settings().max_examples // 5, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    kind=st.sampled_from(["precision", "recall"]),
    share=st.sampled_from([0.6, 0.8, 0.9, 0.95]),
)
def test_threshold_reaches_the_target_on_its_samples_or_says_that_none_does(
    seed: int, kind: str, share: float
) -> None:
    samples = noisy(150, seed=seed)
    wanted: dict[str, Any] = {kind: share, "resamples": 5}
    none = f"reaches a {kind} of {share:g}:"
    try:
        found = calibrate(samples, **wanted)
    except ConfigurationError as error:
        refused = str(error)
    else:
        refused = str(found.not_chosen.get("support"))
    if none in refused:
        return
    threshold = found.threshold("support")
    passing = [s for s in samples if s.score is not None and s.score >= threshold]
    hits = sum(s.is_right for s in passing)
    base = len(passing) if kind == "precision" else sum(s.is_right for s in samples)
    assert hits / base >= share - 1e-9
    assert getattr(found.chosen["support"].fitted, kind) == pytest.approx(hits / base)


def test_expected_figures_come_from_samples_that_the_threshold_was_not_chosen_on() -> None:
    chance = random.Random(1)  # noqa: S311  (no secret)
    pure_noise = [claim(chance.random(), is_right=n % 2 == 0) for n in range(60)]
    found = calibrate(pure_noise, precision=0.6, **FEW).chosen["support"]
    assert found.fitted.precision is not None
    assert found.fitted.precision >= 0.6
    assert found.expected.precision is None or found.expected.precision < 0.6
    assert found.expected != found.fitted


def test_expected_figures_hold_on_fresh_samples() -> None:
    found = calibrate(noisy(800), precision=0.8, **FEW).chosen["support"]
    fresh = [s for s in noisy(4000, seed=9) if s.score is not None and s.score >= found.threshold]
    share = sum(s.is_right for s in fresh) / len(fresh)
    assert found.expected.precision_interval is not None
    low, high = found.expected.precision_interval
    assert low - 0.02 <= share <= high + 0.02


def test_the_same_samples_give_the_same_calibration() -> None:
    one, other = (calibrate(noisy(100), recall=0.8, **FEW) for _ in range(2))
    assert one.model_copy(update={"made": other.made}) == other


def test_too_few_samples_are_refused_with_the_number_that_is_missing() -> None:
    samples = [claim(0.9, is_right=True) for _ in range(12)]
    samples += [claim(0.2, is_right=False) for _ in range(25)]
    with pytest.raises(ConfigurationError) as caught:
        calibrate(samples, precision=0.9)
    assert "12 right claims and 25 wrong claims, and at least 20 and 20" in str(caught.value)
    assert "label 8 more right claims" in str(caught.value)


def test_no_threshold_is_chosen_that_hardly_anything_passes() -> None:
    surest = [claim(0.99, is_right=True) for _ in range(5)]
    rest = [claim(n / 200, is_right=n % 2 == 0) for n in range(100)]
    with pytest.raises(ConfigurationError, match="no threshold that at least 10 samples pass"):
        calibrate([*surest, *rest], precision=0.9)


def test_a_finer_target_needs_more_samples() -> None:
    samples = [claim(0.9, is_right=True)] * 50 + [claim(0.2, is_right=False)] * 50
    assert calibrate(samples, precision=0.95, **FEW).chosen
    with pytest.raises(ConfigurationError, match="100 and 20 are needed: label 50 more right"):
        calibrate(samples, precision=0.99)


def test_samples_about_the_same_documents_are_not_enough() -> None:
    samples = [claim(n / 100, is_right=n > 50, group=f"doc {n % 4}") for n in range(100)]
    with pytest.raises(ConfigurationError, match="threads: 4, and at least 10 are"):
        calibrate(samples, recall=0.9)


def test_without_samples_no_threshold_is_chosen() -> None:
    with pytest.raises(ConfigurationError, match=r"chosen: there are no samples\. Give claims or"):
        calibrate([], precision=0.9)
    unlike = CalibrationSample(unit="answer", is_right=True, claims=())
    with pytest.raises(ConfigurationError, match="chosen: of 2 samples, none can be used"):
        calibrate([unlike, unlike], precision=0.9)


def test_what_cannot_be_chosen_says_why() -> None:
    found = calibrate(noisy(100), recall=0.8, **FEW)
    assert found.not_chosen["gate"] == "no samples for it: it needs samples with a retrieval score"
    with pytest.raises(ConfigurationError, match="holds no threshold 'gate': no samples for it"):
        found.threshold("gate")


def test_bands_of_a_cascade_settle_what_is_right_often_enough() -> None:
    samples = noisy(600)
    found = calibrate(samples, precision=0.9, **FEW)
    low, high = found.threshold("settle_unsupported"), found.threshold("settle_supported")
    assert low < high
    settled = [s.is_right for s in samples if s.score is not None and s.score <= low]
    assert settled.count(False) / len(settled) >= 0.9
    settled = [s.is_right for s in samples if s.score is not None and s.score >= high]
    assert settled.count(True) / len(settled) >= 0.9


def test_gate_is_chosen_on_retrieval_scores() -> None:
    samples = [
        CalibrationSample(unit="answer", is_right=n >= 30, claims=(), retrieval_score=n / 60)
        for n in range(60)
    ]
    found = calibrate(samples, precision=0.95, **FEW)
    assert 28 / 60 < found.threshold("gate") <= 30 / 60


def test_answers_alone_are_enough_for_the_verifier() -> None:
    right = [answer(("supported", 0.9), ("supported", 0.8), is_right=True) for _ in range(30)]
    wrong = [answer(("supported", 0.9), ("supported", 0.6), is_right=False) for _ in range(30)]
    found = calibrate(right + wrong, precision=0.9, **FEW)
    assert found.chosen["support"].unit == "answer"
    assert 0.6 < found.threshold("support") <= 0.8
    assert found.not_chosen["settle_supported"].startswith("no samples for it")
    assert found.not_chosen["review"].startswith("not needed")


def test_trust_is_chosen_where_the_verifier_gives_no_probabilities() -> None:
    mixed: list[tuple[VerdictLabel, None]] = [("supported", None), ("unverifiable", None)]
    right = [answer(*mixed, ("supported", None), is_right=True) for _ in range(30)]
    wrong = [answer(*mixed, ("unverifiable", None), is_right=False) for _ in range(30)]
    found = calibrate(right + wrong, precision=0.9, **FEW)
    assert set(found.chosen) == {"trust"}
    assert 1 / 3 < found.threshold("trust") <= 2 / 3


def test_contradicted_answers_are_trusted_at_no_threshold() -> None:
    right = [answer(("supported", None), is_right=True) for _ in range(30)]
    wrong = [answer(("supported", None), ("contradicted", None), is_right=False)] * 30
    found = calibrate(right + wrong, recall=0.9, **FEW).chosen["trust"]
    assert found.fitted.passed == 30


def test_unchecked_claims_say_nothing_about_a_threshold() -> None:
    unchecked = CalibrationSample(unit="claim", is_right=True, claims=(ScoredClaim("unchecked"),))
    assert calibrate([*noisy(80), unchecked], recall=0.9, **FEW).chosen["support"].samples == 80


def test_probabilities_of_several_verifiers_are_not_mixed() -> None:
    other = [claim(n / 50, is_right=n > 25, verifier="other") for n in range(50)]
    found = calibrate(noisy(100) + other, recall=0.9, **FEW)
    assert found.verifier == "embedded"
    assert found.chosen["support"].samples == 100


def test_reliability_compares_probabilities_to_shares() -> None:
    found = calibrate(noisy(2000), recall=0.9, resamples=5).reliability
    assert found is not None
    assert found.error < 0.05
    assert sum(each.count for each in found.bins) == found.samples == 2000
    assert all(each.interval[0] <= each.right <= each.interval[1] for each in found.bins)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "give either precision= or recall="),
        ({"precision": 0.9, "recall": 0.9}, "give either precision= or recall="),
        ({"precision": 1.5}, "precision must be above 0 and at most 1, got 1.5"),
        ({"recall": 0.0}, "recall must be above 0 and at most 1, got 0.0"),
    ],
)
def test_options_that_cannot_work_are_refused(options: dict[str, float], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        calibrate([], **options)  # type: ignore[arg-type]  # that is the point


def test_a_notebook_shows_a_calibration_as_a_plot() -> None:
    found = calibrate(noisy(200), precision=0.8, **FEW)
    threshold = f"threshold {found.threshold('support'):.3g}"
    assert f"{threshold}</text>" in str(found._repr_svg_())
    assert calibration()._repr_svg_() is None


def test_calibration_outlasts_a_file(tmp_path: Path) -> None:
    found = calibrate(noisy(100), recall=0.8, **FEW)
    found.save(tmp_path / "c.json")
    assert Calibration.load(tmp_path / "c.json") == found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "c.json: not JSON (Expecting property name"),
        ('{"version": 1, "chosen": {}}', "made"),
        ('{"version": 2}', "version: 2 is of a newer version"),
        ("[]", "c.json"),
    ],
)
def test_file_that_holds_no_calibration_is_named_with_what_is_wrong(
    tmp_path: Path, text: str, said: str
) -> None:
    path = tmp_path / "c.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError) as caught:
        Calibration.load(path)
    assert str(path) in str(caught.value)
    assert said in str(caught.value)


def test_fault_in_a_file_is_named_with_its_path(tmp_path: Path) -> None:
    data = json.loads(calibration(support=0.7).model_dump_json(exclude_none=True))
    data["chosen"]["support"]["threshold"] = "high"
    path = tmp_path / "c.json"
    path.write_text(json.dumps(data, indent=1), encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"c\.json: chosen\.support\.threshold"):
        Calibration.load(path)


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"c\.json: No such file"):
        Calibration.load(tmp_path / "c.json")


def test_checker_works_with_the_thresholds() -> None:
    checker = calibration(support=0.7, trust=0.5, review=0.8).checker()
    assert checker.verifier == EmbeddedVerifier(threshold=0.7)
    assert checker.trust_threshold == 0.5
    sure = ClaimVerdict(claim=Claim(id="1", text="x"), verdict="supported", support_probability=0.9)
    unsure = sure.model_copy(update={"support_probability": 0.75})
    given: dict[str, Any] = {"answer": "x", "trust_score": 1.0}
    assert checker.policy.decide([sure], **given).action == "pass"
    assert checker.policy.decide([unsure], **given) == Decision(
        action="review", reasons=("a claim is less certain than the calibration requires",)
    )


def test_own_options_win_over_the_calibration() -> None:
    policy = DecisionPolicy.strict()
    checker = calibration(trust=0.5, review=0.8).checker(trust_threshold=0.9, policy=policy)
    assert checker.trust_threshold == 0.9
    assert checker.policy.rules[:-1] == policy.rules


def test_policy_of_a_checker_may_be_given_as_a_mapping() -> None:
    policy: Any = {"contradicted": "block"}
    checker = calibration(review=0.8).checker(policy=policy)
    assert checker.policy.contradicted == "block"
    assert len(checker.policy.rules) == 1
    with pytest.raises(ConfigurationError, match="policy"):
        calibration(review=0.8).checker(policy=policy | {"contradicted": "sometimes"})


def test_calibration_without_thresholds_for_a_checker_changes_nothing() -> None:
    assert calibration(gate=0.4).checker() == GroundednessRunnable()


@pytest.mark.parametrize("verifier", ["embedded", "judge"])
def test_threshold_of_one_verifier_is_not_given_to_another(verifier: str) -> None:
    model = ScriptedChatModel(replies=[]) if verifier == "embedded" else None
    with pytest.raises(ConfigurationError, match="'support' was chosen for"):
        calibration(verifier, support=0.7).checker(model=model)


def test_threshold_for_another_encoder_is_refused() -> None:
    found = calibration(support=0.7).model_copy(update={"encoder": "0" * 64})
    with pytest.raises(ConfigurationError, match="calibrate again"):
        found.checker()


def test_review_of_an_answer_becomes_a_sample_without_its_texts() -> None:
    verdict = ClaimVerdict(
        claim=Claim(id="1", text=""), verdict="supported", support_probability=0.8, verifier="v"
    )
    for action, is_right in (("approve", True), ("edit", False), ("reject", False)):
        review = Review.model_validate({"status": "decided", "action": action})
        record = AuditRecord(
            verdict="grounded",
            decision=Decision(action="review"),
            claims=(verdict,),
            retrieval_score=0.4,
            thread_id="t",
            review=review,
            content="none",
        )
        assert CalibrationSample.of_record(record) == CalibrationSample(
            unit="answer",
            is_right=is_right,
            claims=(ScoredClaim("supported", 0.8, "v"),),
            retrieval_score=0.4,
            group="t",
        )
    waiting = AuditRecord(verdict="grounded", decision=Decision(action="review"))
    assert CalibrationSample.of_record(waiting) is None


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: ScoredClaim("hallucinated", 0.5), "verdict must be one of 'supported'"),  # type: ignore[arg-type]  # wrong
        (lambda: ScoredClaim("supported", 80), "probability must be a number from 0 to 1"),
        (
            lambda: CalibrationSample(unit="claim", is_right="no", claims=()),  # type: ignore[arg-type]  # wrong
            "is_right must be True or False, got 'no'",
        ),
        (
            lambda: CalibrationSample(unit="page", is_right=True, claims=()),  # type: ignore[arg-type]  # wrong
            "unit must be one of 'claim', 'answer'",
        ),
        (
            lambda: CalibrationSample(unit="claim", is_right=True, claims=("x",)),  # type: ignore[arg-type]  # wrong
            "claims must be a tuple of ScoredClaims",
        ),
        (lambda: calibrate(["x"], precision=0.9), "samples must be CalibrationSamples, got str"),  # type: ignore[list-item]  # wrong
        (lambda: summarize(["x"]), "records must be AuditRecords.*got str"),  # type: ignore[list-item]  # wrong
        (lambda: resume_reviewed(object(), "x"), "record must be an AuditRecord.*got str"),  # type: ignore[arg-type]  # wrong
        (lambda: GroundednessRunnable(policy="strict"), r"policy: .*DecisionPolicy.strict\(\)"),  # type: ignore[arg-type]  # wrong
        (lambda: GroundednessRunnable(audit_log="x.jsonl"), r"audit_log: .*JsonlAuditLog\(path\)"),  # type: ignore[arg-type]  # wrong
    ],
)
def test_values_that_cannot_be_are_refused_with_what_is_accepted(made: Any, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        made()
