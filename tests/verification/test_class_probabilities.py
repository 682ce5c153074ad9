"""The class probabilities of a claim: they add up, and agree with the verdict."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.runnables import RunnableConfig

from langchain_groundedness import EmbeddedVerifier
from langchain_groundedness.types import Claim, VerificationTask
from langchain_groundedness.verification.embedded.class_probabilities import (
    ProbabilisticVerdict,
    ProbabilisticVerifier,
)
from langchain_groundedness.verification.embedded.encoder import Floats, Pair
from langchain_groundedness.verification.embedded.support_model import support_model

EVIDENCE = "Paris is the capital of France. The office opened in 2010 with 40 employees."
CASES = [
    ("Paris is the capital of France.", None),
    ("The capital of France is large and old.", None),
    ("The office opened in 2015 with 40 employees.", None),
    ("The office in Paris has employees from France.", None),
    ("Birds sing in spring.", None),
    ("Yes.", "Is Paris the capital of France?"),
    ("No.", "Is Paris the capital of France?"),
    ("No.", "Did the office open in 2015 with 40 employees?"),
    ("No.", "Is the office of employees large?"),
    ("No.", "Do birds sing in spring?"),
]
LOGITS = st.tuples(*[st.floats(-40, 40, width=32)] * 3)


class Told(ProbabilisticVerifier):
    """Believes that the encoder says the same of everything."""

    logits: tuple[float, float, float]

    def _ask(self, request: list[Pair], configs: list[RunnableConfig]) -> Floats:  # type: ignore[override]
        return np.tile(np.array(self.logits, dtype=np.float32), (len(request), 1))


def judge_all(
    claim: str, question: str | None = None, *, logits: tuple[float, float, float]
) -> ProbabilisticVerdict:
    task = VerificationTask(
        claims=(Claim(id="1", text=claim),), documents=(Document(EVIDENCE),), question=question
    )
    return Told(logits=logits).judge_all([task])[0][0]


@pytest.mark.parametrize(("claim", "question"), CASES)
@given(logits=LOGITS)
@settings(max_examples=settings().max_examples // 3, deadline=None)
def test_chances_add_up_and_agree_with_the_verdict(
    claim: str, question: str | None, logits: tuple[float, float, float]
) -> None:
    verdict = judge_all(claim, question, logits=logits)
    assert verdict.class_probabilities is not None
    assert sum(verdict.class_probabilities) == pytest.approx(1)
    assert all(0 <= chance <= 1 for chance in verdict.class_probabilities)
    # Only a "no" that nothing bears out has no probability here: nothing speaks for it.
    assert verdict.class_probabilities.supported == (verdict.support_probability or 0.0)
    if verdict.verdict == "contradicted":
        assert verdict.class_probabilities.contradicted >= verdict.class_probabilities.unverifiable
    threshold = min(support_model().threshold, support_model().combined.threshold)
    if verdict.verdict != "supported" and verdict.support_probability is not None:
        assert verdict.class_probabilities.supported < max(threshold, 1 - threshold)


def test_what_is_not_support_is_shared_as_the_encoder_says_calibrated() -> None:
    claim = "The capital of France is large and old."
    odds = []
    for opposition in (-3.0, 0.0, 3.0):
        found = judge_all(claim, logits=(-9.0, opposition, 0.0)).class_probabilities
        assert found is not None
        odds.append(np.log(found.contradicted / found.unverifiable))
    low, middle, high = odds
    assert low < middle < high
    assert high - middle == pytest.approx(middle - low, rel=1e-3)


def test_a_difference_that_was_found_outweighs_what_the_encoder_says_of_contradiction() -> None:
    verdict = judge_all("The office opened in 2015 with 40 employees.", logits=(0.0, -9.0, 9.0))
    assert verdict.verdict == "contradicted"
    assert verdict.class_probabilities is not None
    assert (
        verdict.class_probabilities.contradicted == 1 - verdict.class_probabilities.supported > 0.5
    )
    assert verdict.class_probabilities.unverifiable == 0


def test_a_no_that_nothing_bears_out_is_the_less_likely_the_more_speaks_for_the_yes() -> None:
    low, high = (
        judge_all("No.", "Is the office of employees large?", logits=(support, 0.0, 0.0))
        for support in (-4.0, -2.0)
    )
    assert low.verdict == high.verdict == "unverifiable"
    assert low.class_probabilities is not None
    assert high.class_probabilities is not None
    assert low.class_probabilities.supported == high.class_probabilities.supported == 0
    assert 0 < low.class_probabilities.contradicted < high.class_probabilities.contradicted < 0.5


def test_where_the_encoder_is_not_asked_only_a_difference_speaks_against_a_claim() -> None:
    verdict = judge_all("Birds sing in spring.", logits=(0.0, 9.0, 0.0))
    assert verdict.class_probabilities == (0.0, 0.0, 1.0)


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        ("It is.", "unverifiable"),
        ("w " * 600, "unchecked"),
        ("Das Büro in Paris hat viele Angestellte aus der ganzen Welt.", "unchecked"),
    ],
)
def test_what_cannot_be_checked_has_no_chances(claim: str, verdict: str) -> None:
    weighed = judge_all(claim, logits=(9.0, 0.0, 0.0))
    assert (weighed.verdict, weighed.class_probabilities) == (verdict, None)


def test_a_weigher_says_the_same_as_the_verifier_in_the_order_of_the_claims() -> None:
    tasks = [
        VerificationTask(
            claims=tuple(Claim(id=f"c{n}", text=claim) for n, (claim, _) in enumerate(CASES)),
            documents=(Document(text),),
        )
        for text in (EVIDENCE, "", "Birds sing in spring.")
    ]
    weighed = ProbabilisticVerifier().judge_all(tasks)
    for task, verdicts in zip(tasks, weighed, strict=True):
        plain = EmbeddedVerifier().invoke(task)
        assert [v.model_dump(exclude={"class_probabilities"}) for v in verdicts] == [
            v.model_dump() for v in plain
        ]
