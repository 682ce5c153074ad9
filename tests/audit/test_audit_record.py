"""What a record holds, how it is written, and what is kept of its texts."""

import hashlib
import json
import logging
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from pydantic import ValidationError

from audit.stores import kept as kept_of
from audit.strategies import TEXTS, records
from langchain_groundedness import (
    Citation,
    Claim,
    ClaimVerdict,
    ConfigurationError,
    Decision,
    GroundednessResult,
    SQLAuditLog,
)
from langchain_groundedness.audit import AuditRecord, Review
from langchain_groundedness.exceptions import AuditError

PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

CITED = Document("Revenue was $2.1B in Q3.", id="d1", metadata={"source": "report.pdf", "page": 3})
MOST_UNCITED = 500_000
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
    cited, other = kept_of(AuditRecord.from_result(result()))[0].documents
    assert (cited.content, cited.id) == (CITED.page_content, "d1")
    assert (other.content, other.id, other.length) == (None, "d2", len("Costs fell."))
    assert other.digest == f"sha256:{hashlib.sha256(b'Costs fell.').hexdigest()}"


def test_of_a_record_that_waits_all_documents_are_kept_and_still_are_when_it_is_decided() -> None:
    record = AuditRecord.from_result(result("review"))
    cited, other = kept_of(record)[0].documents
    assert (cited.content, other.content) == (CITED.page_content, OTHER.page_content)
    review = Review(status="decided", reviewer="ada", action="approve")
    decided = kept_of(record.model_copy(update={"review": review}))[0]
    assert decided.documents == (cited, other)


def test_documents_of_a_record_that_waits_are_kept_up_to_a_bound_and_those_cited_always() -> None:
    long = Document(CITED.page_content + "." * MOST_UNCITED)
    texts = [long, Document("b" * (MOST_UNCITED - 3)), Document("cccc"), Document("ddd")]
    waits = result("review").model_copy(update={"documents": tuple(texts)})
    kept = kept_of(AuditRecord.from_result(waits))[0].documents
    assert [document.content is not None for document in kept] == [True, True, False, True]
    assert kept[2].digest == f"sha256:{hashlib.sha256(b'cccc').hexdigest()}"


@pytest.mark.parametrize("content", ["hash", "none"])
def test_of_a_record_that_waits_no_text_is_kept_if_the_log_keeps_none(content: str) -> None:
    waits = AuditRecord.from_result(result("review"))
    kept = kept_of(waits, content=content)[0]
    assert [document.content for document in kept.documents] == [None, None]


def test_redaction_sees_the_documents_that_a_reviewer_gets() -> None:
    waits = AuditRecord.from_result(result("review"))
    kept = kept_of(waits, redact=lambda text: text.replace("Costs", "[C]"))[0]
    assert kept.documents[1].content == "[C] fell."


def test_what_is_said_to_be_kept_is_shown_if_it_cannot_be() -> None:
    with pytest.raises(ConfigurationError, match=r"'full', 'hash', 'none', got 'hashed'"):
        kept_of(content="hashed")


def test_texts_of_verdicts_of_a_class_of_ones_own_are_redacted_too() -> None:
    class Verdict(ClaimVerdict):
        pass

    claim = Claim(id="c1", text="SECRET", start=0, end=6)
    verdict = Verdict(claim=claim, verdict="unverifiable", explanation="SECRET")
    record = AuditRecord(
        verdict="partially_grounded", decision=Decision(action="flag"), claims=(verdict,)
    )
    for content in ("hash", "none"):
        assert "SECRET" not in kept_of(record, content=content)[0].to_json()
    assert "SECRET" not in kept_of(record, redact=lambda _: "x")[0].to_json()


def test_ids_of_documents_are_kept_as_texts_are() -> None:
    record = AuditRecord.from_result(result())
    full, hashed, none = (
        kept_of(record, content=content)[0] for content in ("full", "hash", "none")
    )
    assert [document.id for document in full.documents] == ["d1", "d2"]
    assert full.claims[0].citations[0].document_id == "d1"
    digest = str(hashed.documents[0].id)
    assert (digest[:7], digest[-2:]) == ("sha256:", ":2")
    assert hashed.claims[0].citations[0].document_id == digest
    assert {document.id for document in none.documents} == {None}
    assert none.claims[0].citations[0].document_id is None
    redacted = kept_of(record, redact=lambda text: text.replace("d1", "[ID]"))[0]
    assert redacted.documents[0].id == redacted.claims[0].citations[0].document_id == "[ID]"


@given(records())
@PATIENT
def test_what_is_kept_of_any_record_can_be_written_in_ascii_and_read_back(
    record: AuditRecord,
) -> None:
    kept = kept_of(record)[0]
    line = kept.to_json()
    assert line.isascii()
    assert "\n" not in line
    assert AuditRecord.from_json(line) == kept


@given(records(), st.sampled_from(["hash", "none"]))
@PATIENT
def test_no_text_is_left_in_a_record_whose_texts_are_not_kept(
    record: AuditRecord, content: str
) -> None:
    marked = kept_of(record, redact=lambda text: f"SECRET{text}")[0]
    kept = kept_of(marked, content=content, redact=None)[0]
    assert "SECRET" not in kept.to_json()
    assert kept.content == content
    assert AuditRecord.from_json(kept.to_json()) == kept


@given(TEXTS)
@PATIENT
def test_a_digest_keeps_the_length_and_says_which_texts_are_the_same(text: str) -> None:
    record = AuditRecord.from_result(result())
    asked = [record.model_copy(update={"question": each}) for each in (text, text, f"{text}x")]
    digest, same, other = (each.question for each in kept_of(*asked, content="hash"))
    assert digest == same != other
    assert str(digest).endswith(f":{len(text)}") or not text


def test_with_a_key_digests_cannot_be_found_by_trying() -> None:
    record = AuditRecord.from_result(result())
    kept = kept_of(record, content="hash", hash_key="key")[0]
    line = kept.to_json()
    assert hashlib.sha256(b"Costs fell.").hexdigest() not in line
    assert kept.question is not None
    assert kept.question.startswith("hmac-sha256:")
    assert kept.question != kept_of(record, content="hash", hash_key="other")[0].question


def test_redaction_reaches_every_text_and_nothing_else() -> None:
    record = AuditRecord.from_result(result(), thread_id="Revenue")
    kept = kept_of(record, redact=lambda text: text.replace("Revenue", "[R]"))[0]
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
        kept = kept_of(AuditRecord.from_result(result()), redact=wrong)[0]
    assert kept.content == "none"
    assert "redaction failed" in kept.notes[0]
    assert kept.decision.action == "flag"
    for said in (kept.to_json(), caplog.text):
        assert "2.1B" not in said
        assert "2.4B" not in said


def test_what_a_reviewer_writes_is_kept_as_other_texts_are(tmp_path: Path) -> None:
    def decided(name: str, **options: Any) -> Review:
        with SQLAuditLog(f"sqlite:///{tmp_path / name}", **options) as log:
            log.record(AuditRecord.from_result(result("review")))
            assert log.flush()
            [waiting] = log.query(status="waiting").records
            edited: Any = {"action": "edit", "answer": "$2.1B", "note": "why"}
            return log.decide(waiting.id, revision=0, reviewer="ada", **edited).review

    full = decided("full")
    assert (full.answer, full.note) == ("$2.1B", "why")
    assert decided("none", content="none").answer == ""
    hashed = decided("hash", content="hash")
    assert (hashed.answer or "").startswith("sha256:")
    assert hashed.reviewer == "ada"
    failing = decided("failing", redact=lambda _: 1 / 0)
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


def test_ids_are_uuids_that_sort_by_time() -> None:
    made = [AuditRecord.from_result(result()).id for _ in range(100)]
    milliseconds = [each[:13] for each in made]
    assert sorted(milliseconds) == milliseconds
    assert {UUID(each).version for each in made} == {7}
    assert {UUID(each).variant for each in made} == {UUID(int=2 << 62).variant}


@pytest.mark.parametrize(
    "options",
    [{"content": "some"}, {"content": None}, {"redact": "x"}, {"hash_key": ""}, {"hash_key": 3}],
)
def test_options_that_cannot_work_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(options))):
        kept_of(**options)
