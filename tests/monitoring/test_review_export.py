"""What a reviewer's edit says about the claims of an answer."""

import pytest

from langchain_groundedness import Claim, ClaimVerdict, Decision
from langchain_groundedness.audit import AuditedDocument, AuditRecord, Review
from langchain_groundedness.evals import ReviewExport


@pytest.mark.parametrize(
    ("answer", "edited", "label"),
    [
        ("It costs $2", "It costs $2 today.", "supported"),
        ("It costs $2", "Now:\n It  costs $2, plus postage.", "supported"),
        ("It costs $2", "It costs $2", "supported"),
        ("It costs $2", "It costs $20.", "unsupported"),
        ("It costs $2", "It costs $2.50.", "unsupported"),
        ("It grew by 2", "It grew by 2%.", "unsupported"),
        ("It is 3.", "It is 3.5 m.", "unsupported"),
        ("2 people came.", "12 people came.", "unsupported"),
        ("2 people came.", "1.2 people came.", "unsupported"),
        ("Rome is old", "Rome is older than Bern.", "unsupported"),
        ("日本は島国です。", "はい。日本は島国です。", "supported"),
    ],
)
def test_a_claim_that_an_edit_has_changed_is_not_supported(
    answer: str, edited: str, label: str
) -> None:
    claim = Claim(id="c1", text=answer, start=0, end=len(answer))
    record = AuditRecord(
        verdict="grounded",
        decision=Decision(action="review"),
        original_answer=answer,
        claims=(ClaimVerdict(claim=claim, verdict="supported"),),
        documents=(AuditedDocument(index=0, length=4, content="Text"),),
        review=Review(status="decided", reviewer="ada", action="edit", answer=edited),
    )
    [row] = ReviewExport(unit="claim").rows([record])
    assert (row["label"], row["marked"]) == (label, False)


def test_the_mark_of_a_claim_is_its_label_whatever_became_of_the_answer() -> None:
    claims = tuple(
        ClaimVerdict(claim=Claim(id=f"c{n}", text="x"), verdict="supported") for n in range(3)
    )
    record = AuditRecord(
        verdict="grounded",
        decision=Decision(action="review"),
        original_answer="x",
        claims=claims,
        documents=(AuditedDocument(index=0, length=4, content="Text"),),
        review=Review(
            status="decided",
            reviewer="ada",
            action="reject",
            time="2026-03-01T12:00:00Z",
            marks={"c0": True, "c2": False},
        ),
    )
    rows = list(ReviewExport(unit="claim").rows([record]))
    assert [(row["label"], row["marked"]) for row in rows] == [
        ("supported", True),
        ("unsupported", True),
    ]
    assert {(row["reviewer"], row["reviewed"]) for row in rows} == {
        ("ada", "2026-03-01T12:00:00+00:00")
    }
    [answer] = ReviewExport().rows([record])
    assert [claim["label"] for claim in answer["claims"]] == ["supported", None, "unsupported"]
