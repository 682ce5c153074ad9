"""What a record holds, how it is written, and what is kept of its texts."""

import hashlib
import json
import logging
from datetime import UTC, datetime
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from pydantic import ValidationError

from audit.strategies import TEXTS, records
from langchain_groundedness import (
    Citation,
    Claim,
    ClaimVerdict,
    ConfigurationError,
    Decision,
    GroundednessResult,
)
from langchain_groundedness.audit import AuditRecord, Review
from langchain_groundedness.audit.record import new_id
from langchain_groundedness.audit.redaction import MOST_UNCITED, Redaction
from langchain_groundedness.exceptions import AuditError

PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

CITED = Document("Revenue was $2.1B in Q3.", id="d1", metadata={"source": "report.pdf", "page": 3})
OTHER = Document("Costs fell.", id="d2", metadata={"at": datetime(2026, 1, 1, tzinfo=UTC)})


def result(action: str = "flag") -> GroundednessResult:
    documents = (CITED, OTHER)
    verdict = ClaimVerdict(
        claim=Claim(id="c1", text="Revenue was $2.4B.", start=0, end=18),
        verdict="contradicted",
        support_probability=0.1,
        explanation="The report says $2.1B.",
        citations=(Citation.from_document(documents, 0, 0, 24),),
        correction="$2.1B",
    )
    return GroundednessResult(
        question="What was revenue?",
        answer="Revenue was [CORRECTED: $2.1B].",
        original_answer="Revenue was $2.4B.",
        documents=documents,
        claims=(verdict,),
        trust_score=0.0,
        verdict="has_contradictions",
        is_trusted=False,
        decision=Decision(action=action, reasons=("the documents contradict 1 of 1 claim",)),
        query_class="sensitive",
        risk_tier="high",
    )


def test_a_record_says_what_was_asked_answered_shown_found_and_decided() -> None:
    record = AuditRecord.from_result(result(), source="guard", policy_version="p1")
    assert record.question == "What was revenue?"
    assert record.original_answer == "Revenue was $2.4B."
    assert record.shown_answer == "Revenue was [CORRECTED: $2.1B]."
    assert record.claims[0].support_probability == 0.1
    assert (record.query_class, record.risk_tier) == ("sensitive", "high")
    assert (record.source, record.policy_version) == ("guard", "p1")
    assert record.time.tzinfo is not None
    assert record.documents[1].metadata == {"at": "2026-01-01 00:00:00+00:00"}


@pytest.mark.parametrize(
    ("action", "status"),
    [("pass", "none"), ("flag", "none"), ("block", "none"), ("review", "waiting")],
)
def test_a_record_waits_exactly_if_the_decision_is_review(action: str, status: str) -> None:
    assert AuditRecord.from_result(result(action)).review.status == status


def test_of_documents_that_are_cited_the_text_is_kept_of_others_id_digest_and_length() -> None:
    cited, other = Redaction().record(AuditRecord.from_result(result())).documents
    assert (cited.content, cited.id) == (CITED.page_content, "d1")
    assert (other.content, other.id, other.length) == (None, "d2", len("Costs fell."))
    assert other.digest == f"sha256:{hashlib.sha256(b'Costs fell.').hexdigest()}"


def test_of_a_record_that_waits_all_documents_are_kept_and_still_are_when_it_is_decided() -> None:
    record = AuditRecord.from_result(result("review"))
    cited, other = Redaction().record(record).documents
    assert (cited.content, other.content) == (CITED.page_content, OTHER.page_content)
    review = Review(status="decided", reviewer="ada", action="approve")
    decided = Redaction().record(record.model_copy(update={"review": review}))
    assert decided.documents == (cited, other)


def test_documents_of_a_record_that_waits_are_kept_up_to_a_bound_and_those_cited_always() -> None:
    long = Document(CITED.page_content + "." * MOST_UNCITED)
    texts = [long, Document("b" * (MOST_UNCITED - 3)), Document("cccc"), Document("ddd")]
    waits = result("review").model_copy(update={"documents": tuple(texts)})
    kept = Redaction().record(AuditRecord.from_result(waits)).documents
    assert [document.content is not None for document in kept] == [True, True, False, True]
    assert kept[2].digest == f"sha256:{hashlib.sha256(b'cccc').hexdigest()}"


@pytest.mark.parametrize("content", ["hash", "none"])
def test_of_a_record_that_waits_no_text_is_kept_if_the_log_keeps_none(content: str) -> None:
    waits = AuditRecord.from_result(result("review"))
    kept = Redaction(content=content).record(waits)  # type: ignore[arg-type]  # one of them
    assert [document.content for document in kept.documents] == [None, None]


def test_redaction_sees_the_documents_that_a_reviewer_gets() -> None:
    waits = AuditRecord.from_result(result("review"))
    kept = Redaction(redact=lambda text: text.replace("Costs", "[C]")).record(waits)
    assert kept.documents[1].content == "[C] fell."


def test_what_is_said_to_be_kept_is_shown_if_it_cannot_be() -> None:
    with pytest.raises(ConfigurationError, match=r"'full', 'hash', 'none', got 'hashed'"):
        Redaction(content="hashed")  # type: ignore[arg-type]  # wrong on purpose


def test_texts_of_verdicts_of_a_class_of_ones_own_are_redacted_too() -> None:
    class Verdict(ClaimVerdict):
        pass

    claim = Claim(id="c1", text="SECRET", start=0, end=6)
    verdict = Verdict(claim=claim, verdict="unverifiable", explanation="SECRET")
    record = AuditRecord(
        verdict="partially_grounded", decision=Decision(action="flag"), claims=(verdict,)
    )
    for content in ("hash", "none"):
        assert "SECRET" not in Redaction(content=content).record(record).to_json()
    assert "SECRET" not in Redaction(redact=lambda _: "x").record(record).to_json()


def test_ids_of_documents_are_kept_as_texts_are() -> None:
    record = AuditRecord.from_result(result())
    full, hashed, none = (
        Redaction(content=content).record(record) for content in ("full", "hash", "none")
    )
    assert [document.id for document in full.documents] == ["d1", "d2"]
    assert full.claims[0].citations[0].document_id == "d1"
    digest = Redaction(content="hash").digest("d1")
    assert (hashed.documents[0].id, hashed.claims[0].citations[0].document_id) == (digest, digest)
    assert {document.id for document in none.documents} == {None}
    assert none.claims[0].citations[0].document_id is None
    redacted = Redaction(redact=lambda text: text.replace("d1", "[ID]")).record(record)
    assert redacted.documents[0].id == redacted.claims[0].citations[0].document_id == "[ID]"


@given(records())
@PATIENT
def test_what_is_kept_of_any_record_can_be_written_in_ascii_and_read_back(
    record: AuditRecord,
) -> None:
    kept = Redaction().record(record)
    line = kept.to_json()
    assert line.isascii()
    assert "\n" not in line
    assert AuditRecord.from_json(line) == kept


@given(records(), st.sampled_from(["hash", "none"]))
@PATIENT
def test_no_text_is_left_in_a_record_whose_texts_are_not_kept(
    record: AuditRecord, content: str
) -> None:
    marked = Redaction(redact=lambda text: f"SECRET{text}").record(record)
    kept = Redaction(content=content, redact=None).record(marked)  # type: ignore[arg-type]  # one of them
    assert "SECRET" not in kept.to_json()
    assert kept.content == content
    assert AuditRecord.from_json(kept.to_json()) == kept


@given(TEXTS)
@PATIENT
def test_a_digest_keeps_the_length_and_says_which_texts_are_the_same(text: str) -> None:
    digest = Redaction(content="hash").digest(text)
    assert digest == Redaction(content="hash").digest(text)
    assert digest != Redaction(content="hash").digest(f"{text}x")
    assert digest.endswith(f":{len(text)}")


def test_with_a_key_digests_cannot_be_found_by_trying() -> None:
    record = AuditRecord.from_result(result())
    kept = Redaction(content="hash", hash_key="key").record(record)
    line = kept.to_json()
    assert hashlib.sha256(b"Costs fell.").hexdigest() not in line
    assert kept.question is not None
    assert kept.question.startswith("hmac-sha256:")
    assert kept.question != Redaction(content="hash", hash_key="other").record(record).question


def test_redaction_reaches_every_text_and_nothing_else() -> None:
    record = AuditRecord.from_result(result(), thread_id="Revenue")
    kept = Redaction(redact=lambda text: text.replace("Revenue", "[R]")).record(record)
    assert kept.redacted
    line = kept.model_copy(update={"thread_id": None}).to_json()
    assert "Revenue" not in line
    assert kept.claims[0].claim.text == "[R] was $2.4B."
    assert kept.thread_id == "Revenue"


@pytest.mark.parametrize("wrong", [lambda _: 1 / 0, lambda _: None])
def test_a_redaction_that_fails_leaves_no_text_and_says_so(
    wrong: object, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        kept = Redaction(redact=wrong).record(AuditRecord.from_result(result()))  # type: ignore[arg-type]  # wrong on purpose
    assert kept.content == "none"
    assert "redaction failed" in kept.notes[0]
    assert kept.decision.action == "flag"
    for said in (kept.to_json(), caplog.text):
        assert "2.1B" not in said
        assert "2.4B" not in said


def test_what_a_reviewer_writes_is_kept_as_other_texts_are() -> None:
    review = Review(status="decided", reviewer="ada", action="edit", answer="$2.1B", note="why")
    assert Redaction().review(review) == review
    assert Redaction(content="none").review(review).answer == ""
    hashed = Redaction(content="hash").review(review)
    assert (hashed.answer or "").startswith("sha256:")
    assert hashed.reviewer == "ada"
    failing = Redaction(redact=lambda _: 1 / 0).review(review)  # type: ignore[arg-type,return-value]  # fails on purpose
    assert (failing.answer, failing.note, failing.action) == ("", "", "edit")


def test_a_record_of_a_newer_form_is_refused_with_advice() -> None:
    data = json.loads(AuditRecord.from_result(result()).to_json())
    with pytest.raises(AuditError, match=r"schema_version 99.*upgrade"):
        AuditRecord.from_json(json.dumps({**data, "schema_version": 99}))


@pytest.mark.parametrize("text", ["", "[]", "{}", "not json", '{"schema_version": null}', "3"])
def test_what_is_no_record_is_refused(text: str) -> None:
    with pytest.raises(AuditError):
        AuditRecord.from_json(text)


def test_a_damaged_record_is_refused_without_quoting_it() -> None:
    data = json.loads(AuditRecord.from_result(result()).to_json())
    with pytest.raises(AuditError, match="verdict") as caught:
        AuditRecord.from_json(json.dumps({**data, "verdict": "SECRET"}))
    assert "SECRET" not in str(caught.value)


def test_records_cannot_be_changed() -> None:
    record = AuditRecord.from_result(result())
    with pytest.raises(ValidationError):
        record.question = "other"  # type: ignore[misc]  # frozen


@given(st.integers(0, 2**40), st.integers(1, 10**6))
@PATIENT
def test_ids_are_uuids_that_sort_by_time(moment: int, later: int) -> None:
    before, after = new_id(moment), new_id(moment + later)
    assert before < after
    assert UUID(before).version == 7
    assert UUID(before).variant == UUID(int=2 << 62).variant


@pytest.mark.parametrize(
    "options",
    [{"content": "some"}, {"content": None}, {"redact": "x"}, {"hash_key": ""}, {"hash_key": 3}],
)
def test_options_that_cannot_work_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(options))):
        Redaction(**options)  # type: ignore[arg-type]  # wrong on purpose
