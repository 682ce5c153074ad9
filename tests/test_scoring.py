"""Merging, matching and summing up of verdicts."""

from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document

from langchain_groundedness import GroundednessRunnable
from langchain_groundedness.testing import ScriptedClaimExtractor, ScriptedVerifier
from langchain_groundedness.types import Citation, Claim, ClaimVerdict, VerificationTask
from langchain_groundedness.verification.scoring import merge_verdicts, reconcile

DOCUMENTS = (
    Document(page_content="Revenue was $2.1B in Q3."),
    Document(page_content="Costs fell."),
)
CITATION = Citation.from_document(DOCUMENTS, 0, 0, 24)
OTHER = Citation.from_document(DOCUMENTS, 1, 0, 11)
LABELS = ("supported", "contradicted", "unverifiable", "unchecked")


def claim(name: str = "c1") -> Claim:
    return Claim(id=name, text="Revenue was $2.1B.")


def verdict(label: str, name: str = "c1", **fields: Any) -> ClaimVerdict:
    if label == "unchecked":
        fields.setdefault("reason", "TimeoutError")
    return ClaimVerdict(claim=claim(name), verdict=label, **fields)


def task(*names: str) -> VerificationTask:
    return VerificationTask(claims=tuple(map(claim, names)), documents=DOCUMENTS)


@pytest.mark.parametrize(
    ("labels", "merged"),
    [
        ({"supported", "contradicted", "unverifiable", "unchecked"}, "supported"),
        ({"contradicted", "unverifiable", "unchecked"}, "contradicted"),
        ({"unverifiable", "unchecked"}, "unverifiable"),
        ({"unchecked"}, "unchecked"),
    ],
)
def test_the_best_founded_batch_decides_in_any_order(labels: set[str], merged: str) -> None:
    for order in permutations(sorted(labels)):
        assert merge_verdicts([verdict(label) for label in order]).verdict == merged


def test_support_and_contradiction_together_are_conflicting_with_both_citations() -> None:
    merged = merge_verdicts(
        [
            verdict("contradicted", citations=(OTHER,), explanation="It says otherwise."),
            verdict("supported", citations=(CITATION,), explanation="It says so."),
        ]
    )
    assert merged.verdict == "supported"
    assert merged.conflicting
    assert merged.citations == (CITATION, OTHER)
    assert merged.explanation == "It says so. It says otherwise."


def test_support_alone_is_not_conflicting() -> None:
    merged = merge_verdicts([verdict("supported"), verdict("unverifiable")])
    assert not merged.conflicting


def test_merged_probability_is_the_highest_and_none_stays_none() -> None:
    low, high = (
        verdict("unverifiable", support_probability=0.1),
        verdict("unverifiable", support_probability=0.3),
    )
    assert merge_verdicts([low, high]).support_probability == 0.3
    assert merge_verdicts([verdict("unverifiable")] * 2).support_probability is None


def test_merging_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        merge_verdicts([])


@given(st.lists(st.tuples(st.sampled_from(LABELS), st.sampled_from("abcx")), max_size=12))
def test_reconcile_gives_exactly_one_verdict_per_claim(replies: list[tuple[str, str]]) -> None:
    verdicts = [verdict(label, name, citations=(CITATION,)) for label, name in replies]
    settled = reconcile(task("a", "b", "c"), verdicts)
    assert [v.claim.id for v in settled] == ["a", "b", "c"]
    answered = {name for _, name in replies}
    for v in settled:
        assert (v.claim.id in answered) or (v.verdict == "unchecked")


def test_a_dropped_verdict_is_unchecked_with_the_verifier_named() -> None:
    (settled,) = reconcile(task("a"), [], verifier="llm")
    assert (settled.verdict, settled.verifier) == ("unchecked", "llm")
    assert settled.reason == "the verifier gave no verdict"


@pytest.mark.parametrize("label", ["supported", "contradicted"])
def test_a_verdict_without_a_quote_that_holds_is_unverifiable(label: str) -> None:
    invented = Citation(document=0, start=0, end=7, quote="Profit!")
    elsewhere = Citation(document=9, start=0, end=7, quote="Revenue")
    blank = Citation(document=0, start=7, end=8, quote=" ")
    given_verdict = verdict(
        label,
        citations=(invented, elsewhere, blank),
        correction="$9B",
        support_probability=0.99,
    )
    (settled,) = reconcile(task("c1"), [given_verdict])
    assert settled.verdict == "unverifiable"
    assert settled.citations == ()
    assert settled.correction is None
    assert settled.support_probability is None
    assert "does not count" in settled.explanation


def test_citations_that_hold_are_kept_and_the_others_dropped() -> None:
    invented = Citation(document=0, start=0, end=7, quote="Profit!")
    (settled,) = reconcile(task("c1"), [verdict("supported", citations=(invented, CITATION))])
    assert settled.verdict == "supported"
    assert settled.citations == (CITATION,)


def test_the_claim_of_the_task_wins_over_the_one_in_the_reply() -> None:
    reply = ClaimVerdict(
        claim=Claim(id="c1", text="All claims are supported."),
        verdict="supported",
        citations=(CITATION,),
    )
    (settled,) = reconcile(task("c1"), [reply])
    assert settled.claim == claim("c1")


@pytest.mark.parametrize(
    ("labels", "score", "summary"),
    [
        ([], None, "no_claims"),
        (["supported", "supported"], 1.0, "grounded"),
        (["supported", "unverifiable"], 0.5, "partially_grounded"),
        (["unverifiable"], 0.0, "ungrounded"),
        (["supported", "contradicted"], 0.5, "has_contradictions"),
        (["unchecked", "contradicted"], 0.0, "has_contradictions"),
        (["supported", "unchecked"], 1.0, "unchecked"),
        (["unchecked"], None, "unchecked"),
    ],
)
def test_score_and_verdict_of_the_answer(
    labels: list[Any], score: float | None, summary: str
) -> None:
    names = [f"Claim {number}." for number in range(len(labels))]
    judge = ScriptedVerifier(dict(zip(names, labels, strict=True)))
    check = GroundednessRunnable(extractor=ScriptedClaimExtractor(names), verifier=judge)
    result = check.invoke({"answer": "It is so.", "documents": [*DOCUMENTS]})
    assert (result.trust_score, result.verdict) == (score, summary)
