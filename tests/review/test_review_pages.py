"""The pages on which people decide."""

import logging
import math
import re
import threading
import unicodedata
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from audit.stores import ROWS, database_at
from langchain_core.documents import Document
from sqlalchemy import update

from langchain_groundedness import Claim, ClaimVerdict, SQLAuditLog
from langchain_groundedness.audit import AuditRecord, Review
from langchain_groundedness.display.templates import environment
from langchain_groundedness.exceptions import AuditError, ConfigurationError
from langchain_groundedness.review import create_review_app
from review.conftest import TOKEN, Browser
from review.records import ANSWER, CLAIMS, HOSTILE, bare, record, result

Keep = Callable[..., AuditRecord]


def text_of(page: str) -> str:
    """What somebody reads."""
    body = re.sub(r"(?s)<head>.*?</head>", "", page)
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", body)).split())


def titles(page: Any) -> list[str]:
    return re.findall(r"<a [^>]*data-record[^>]*>(.*?)</a>", page.text)


# --- the queue ---


def test_the_queue_shows_what_waits_the_oldest_first(ada: Browser, keep: Keep) -> None:
    later, first = record(5, question="Later?"), record(1, question="First?")
    keep(later, first, record(3, question="Passed?", review={"status": "none"}))
    page = ada.get("/")
    assert titles(page) == ["First?", "Later?"]
    assert "2 waiting" in text_of(page.text)


def test_an_empty_queue_says_so(ada: Browser) -> None:
    assert "No answer is waiting for review." in text_of(ada.get("/").text)
    assert "No record matches these filters." in text_of(ada.get("/", text="x").text)


def test_records_that_cannot_be_read_are_counted_below_the_others(
    ada: Browser, keep: Keep, tmp_path: Path
) -> None:
    broken, whole = record(1, question="Broken?"), record(2, question="Whole?")
    keep(broken, whole)
    with database_at(f"sqlite:///{tmp_path / 'audit.db'}") as connection:
        connection.execute(update(ROWS).where(ROWS.c.id == broken.id).values(record="{}"))
    page = ada.get("/")
    assert titles(page) == ["Whole?"]
    assert "1 of these records cannot be read" in text_of(page.text)
    assert "Whole?" in text_of(ada.get("/next").text)


@pytest.mark.parametrize(
    "asked",
    [
        {"decision": "block"},
        {"verdict": "unchecked"},
        {"query_class": "product"},
        {"risk_tier": "high"},
        {"since": "2026-03-02"},
        {"text": "wanted ONE"},
        {"status": "decided"},
        {"verdict": "unchecked", "text": "one", "risk_tier": "high"},
    ],
)
def test_filters_find_the_record_that_fits(
    ada: Browser, keep: Keep, log: SQLAuditLog, asked: dict[str, str]
) -> None:
    wanted = record(
        30,
        question="The one that is wanted",
        verdict="unchecked",
        query_class="product",
        risk_tier="high",
        decision={"action": "block", "reasons": ("why",)},
    )
    keep(wanted, record(1, question="Another"))
    if asked.get("status") == "decided":
        log.decide(wanted.id, revision=0, reviewer="bob", action="approve")
    assert titles(ada.get("/", **asked)) == ["The one that is wanted"]


def test_records_that_were_looked_at_are_shown_newest_first(ada: Browser, keep: Keep) -> None:
    keep(*(record(n, question=f"Q{n}", review={"status": "none"}) for n in range(3)))
    assert titles(ada.get("/", status="none")) == ["Q2", "Q1", "Q0"]


@pytest.mark.parametrize("asked", [{}, {"text": "q"}])
def test_pages_hold_every_record_once(ada: Browser, keep: Keep, asked: dict[str, str]) -> None:
    keep(*(record(n, question=f"Q{n}") for n in range(60)))
    seen, page = [], ada.get("/", **asked)
    while True:
        seen += titles(page)
        onward = re.search(r'rel="next"[^>]*href="([^"]*)"', page.text)
        if onward is None:
            break
        page = ada.get(unescape(onward[1]))
    assert seen == [f"Q{n}" for n in range(60)]


@pytest.mark.parametrize("asked", [{"text": "needle"}, {"verdict": "unchecked"}])
def test_what_waits_is_found_however_much_else_does(
    ada: Browser, log: SQLAuditLog, asked: dict[str, str]
) -> None:
    for n in range(2_100):
        log.record(bare(n, question="Hay"))
    log.record(bare(2_100, question="Needle", verdict="unchecked"))
    assert log.flush()
    assert titles(ada.get("/", **asked)) == ["Needle"]
    assert "Needle" in text_of(ada.get("/next", **asked).text)


@pytest.mark.parametrize("after", ["nonsense", "|", "2026-03-01|x|y", "\x00"])
def test_a_place_that_nobody_was_given_leads_to_the_beginning(
    ada: Browser, keep: Keep, after: str
) -> None:
    keep(record())
    page = ada.get("/", after=after)
    assert page.status_code == 200


# --- one record ---


def test_the_item_shows_answer_claims_citations_and_reasons(ada: Browser, keep: Keep) -> None:
    page = ada.get(f"/records/{keep(record()).id}")
    shown = text_of(page.text)
    for expected in (
        "What was Q3 revenue?",
        "1 of 4 claims is contradicted",
        "The documents give another amount.",
        "support 3 %",
        "documents disagree",
        "the judge gave no verdict",
        "the documents say $2.1B",
        "Analysts had expected revenue of $2.0B.",
    ):
        assert expected in shown
    answer = re.search(r'(?s)id="answer"[^>]*>(.*?)</p>', page.text)
    assert answer
    words = re.sub(r'<a class="ref.*?</a>', "", answer[1])
    assert unescape(re.sub(r"<[^>]*>", "", words)) == ANSWER


def test_every_citation_leads_to_its_place_in_the_document(ada: Browser, keep: Keep) -> None:
    page = ada.get(f"/records/{keep(record()).id}").text
    wanted = re.findall(r'<a href="#(d\d[^"]+)"', page)
    there = re.findall(r' id="(d\d[^"]+)"', page)
    assert wanted
    assert set(wanted) == set(there)
    assert len(there) == len(set(there))


def test_every_claim_in_the_answer_leads_to_its_verdict_which_is_also_in_words(
    ada: Browser, keep: Keep
) -> None:
    page = ada.get(f"/records/{keep(record()).id}").text
    for number, verdict in ((1, "contradicted"), (2, "supported"), (3, "supported")):
        assert re.search(rf'href="#claim-{number}".*?, {verdict}\)</span></a>', page)
        assert f'id="claim-{number}"' in page


def test_ids_of_a_page_are_unique(ada: Browser, keep: Keep) -> None:
    ids = re.findall(r' id="([^"]+)"', ada.get(f"/records/{keep(record()).id}").text)
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("content", ["hash", "none"])
def test_a_record_without_texts_can_be_read_and_decided(
    ada: Browser, keep: Keep, content: Any
) -> None:
    kept = record(content=content, original_answer=None, shown_answer=None, question=None)
    page = ada.get(f"/records/{keep(kept).id}")
    assert "The text of this answer was not saved." in text_of(page.text)
    assert ada.decide(kept, "reject", note="cannot tell").status_code == 200


def test_an_answer_without_claims_and_documents_can_be_read(ada: Browser, keep: Keep) -> None:
    bare = record(of={"claims": (), "documents": (), "verdict": "no_claims", "trust_score": None})
    shown = text_of(ada.get(f"/records/{keep(bare).id}").text)
    assert "No claim was found in this answer." in shown
    assert "The answer was checked without documents." in shown


ODD = "a\ud800b\x00c\u202ed\r\ne\U000e0041f\rg [U+202E RIGHT-TO-LEFT OVERRIDE]"
SHOWN = (
    "a[U+D800 SURROGATE]b[U+0000 NULL]c[U+202E RIGHT-TO-LEFT OVERRIDE]d\n"
    "e[U+E0041 TAG LATIN CAPITAL LETTER A]f[U+000D CARRIAGE RETURN]g "
)


def test_characters_that_nobody_sees_are_shown_by_name(ada: Browser, keep: Keep) -> None:
    found = ClaimVerdict(
        claim=Claim(id=ODD, text=ODD, start=0, end=len(ODD)),
        verdict="contradicted",
        explanation=ODD,
        correction=ODD,
        citations=({"document": 0, "start": 0, "end": len(ODD), "quote": ODD},),
    )
    missing = ClaimVerdict(claim=Claim(id="y", text="y"), verdict="unchecked", reason=ODD)
    fields: dict[str, Any] = {
        "question": ODD,
        "answer": f"{ODD}!",
        "original_answer": ODD,
        "claims": (found, missing),
        "documents": (Document(ODD, id=ODD, metadata={"title": ODD, ODD: ODD}),),
        "decision": {"action": "review", "reasons": (ODD,)},
    }
    texts: dict[str, Any] = dict.fromkeys(
        ("query_class", "risk_tier", "outcome", "suggested_answer"), ODD
    )
    kept = keep(record(id="odd", of=fields, notes=(ODD,), **texts))
    typed = ODD.replace("\ud800", SHOWN[1 : SHOWN.index("b")])
    pages = [
        ada.get(f"/records/{kept.id}").text,
        ada.get("/", text=typed, query_class=typed, status="any").text,
        ada.decide(kept, "edit", answer=" ", note=typed).text,
        ada.decide(kept, "edit", answer=typed, note=typed, revision=7).text,
    ]
    for page in pages:
        page.encode()
        shown = page.replace("\n", "").replace("\t", "")
        assert not {c for c in shown if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Cn")}
        assert "\ufffd" not in page
    assert pages[0].count(SHOWN) > 10
    assert all(SHOWN in page for page in pages)


@pytest.mark.parametrize("text", [ODD, "a\r\nb", "\u202eb", "x\u200by"])
def test_what_is_edited_by_nobody_is_saved_as_it_was(
    ada: Browser, keep: Keep, log: SQLAuditLog, text: str
) -> None:
    kept = keep(record(source="middleware", shown_answer=None, suggested_answer=text))
    field = field_of(ada.get(f"/records/{kept.id}").text)
    assert ada.decide(kept, "edit", answer=field.replace("\n", "\r\n")).status_code == 200
    found = log.get(kept.id)
    assert found
    assert found.review.answer == text


def test_an_edit_keeps_the_hidden_characters_whose_names_were_left(
    ada: Browser, keep: Keep, log: SQLAuditLog
) -> None:
    kept = keep(record(suggested_answer="a\u202eb\u200bc"))
    page = ada.get(f"/records/{kept.id}").text
    assert "characters that cannot be seen" in page
    field = field_of(page)
    assert field == "a[U+202E RIGHT-TO-LEFT OVERRIDE]b[U+200B ZERO WIDTH SPACE]c"
    typed = field.replace("[U+202E RIGHT-TO-LEFT OVERRIDE]", "").replace("c", "\u2066d")
    again = field_of(ada.decide(kept, "edit", answer=typed, note="x" * 10_001).text)
    assert again == "ab[U+200B ZERO WIDTH SPACE][U+2066 LEFT-TO-RIGHT ISOLATE]d"
    assert ada.decide(kept, "edit", answer=again, note="[U+202E RIGHT-TO-LEFT OVERRIDE]")
    found = log.get(kept.id)
    assert found
    assert (found.review.answer, found.review.note) == ("ab\u200b\u2066d", "\u202e")


def test_the_answer_as_it_was_shown_can_be_approved_with_hidden_characters(
    ada: Browser, keep: Keep, log: SQLAuditLog
) -> None:
    kept = keep(record(of={"answer": ODD, "original_answer": ODD, "claims": ()}))
    page = ada.get(f"/records/{kept.id}").text
    assert ada.decide(kept, "approve", answer=field_of(page)).status_code == 200
    found = log.get(kept.id)
    assert found
    assert found.review.action == "approve"


def test_a_name_copied_from_a_page_finds_the_character(ada: Browser, keep: Keep) -> None:
    keep(record(1, question="a\u202eb"), record(2, question="ab"))
    page = ada.get("/", text="[U+202E RIGHT-TO-LEFT OVERRIDE]")
    assert titles(page) == ["a[U+202E RIGHT-TO-LEFT OVERRIDE]b"]
    assert 'value="[U+202E RIGHT-TO-LEFT OVERRIDE]"' in page.text


def field_of(page: str) -> str:
    """What a browser puts into the field of the edited answer."""
    found = re.search(r'(?s)<textarea id="edited"[^>]*>\n?(.*?)</textarea>', page)
    assert found
    return unescape(found[1])


def test_there_is_a_page_for_records_that_are_not_there(ada: Browser) -> None:
    assert ada.get("/records/nothing").status_code == 404
    assert ada.post("/records/nothing", action="approve", revision=0).status_code == 404


@pytest.mark.parametrize("name", ["a/b", "é ?#&%", 'a"b'])
def test_any_id_can_be_reviewed(ada: Browser, keep: Keep, log: SQLAuditLog, name: str) -> None:
    keep(record(id=name))
    page = ada.get(re.findall(r'<a href="([^"]*)" data-record', ada.get("/").text)[0])
    assert page.status_code == 200
    form = re.search(r'id="decide" method="post" action="([^"]*)"', page.text)
    assert form
    assert ada.post(unescape(form[1]), action="approve", revision=0).status_code == 200
    found = log.get(name)
    assert found
    assert found.review.status == "decided"


def test_documents_that_nobody_cites_can_be_read_where_a_person_is_asked(
    ada: Browser, keep: Keep
) -> None:
    told = Document("It leads its market in Norway.")
    long = Document("x" * 500_000)
    unchecked = {"claims": CLAIMS[3:], "documents": (told, long)}
    keep(record(1, of=unchecked), record(2, of=unchecked, review=Review()))
    page = text_of(ada.get("/records/record-1").text)
    assert "It leads its market in Norway." in page
    assert "500,000 characters exceed the limit of 500,000 for documents without citations" in page
    assert "It leads its market in Norway." not in text_of(ada.get("/records/record-2").text)


def test_a_long_document_can_be_shown_whole(ada: Browser, keep: Keep) -> None:
    long = Document("A needle. " + "b" * 30_000 + " end")
    found = ClaimVerdict(
        claim=Claim(id="x", text="x"),
        verdict="supported",
        citations=({"document": 0, "start": 0, "end": 9, "quote": "A needle."},),
    )
    kept = keep(record(of={"claims": (found,), "documents": (long,)}))
    assert " end</p>" not in ada.get(f"/records/{kept.id}").text
    assert " end</p>" in ada.get(f"/records/{kept.id}", whole=1).text


# --- outside text ---


def hostile() -> AuditRecord:
    found = ClaimVerdict(
        claim=Claim(id=HOSTILE, text=HOSTILE, start=0, end=len(HOSTILE)),
        verdict="contradicted",
        explanation=HOSTILE,
        correction=HOSTILE,
        citations=({"document": 0, "start": 0, "end": len(HOSTILE), "quote": HOSTILE},),
        verifier=HOSTILE,
    )
    document = Document(HOSTILE, id=HOSTILE, metadata={"title": HOSTILE, HOSTILE: HOSTILE})
    fields: dict[str, Any] = {
        "question": HOSTILE,
        "answer": f"{HOSTILE}!",
        "original_answer": HOSTILE,
        "claims": (found,),
        "documents": (document,),
        "decision": {"action": "review", "reasons": (HOSTILE,)},
    }
    texts: dict[str, Any] = dict.fromkeys(
        ("query_class", "risk_tier", "source", "outcome", "thread_id"), HOSTILE
    )
    return record(of=fields, policy_version=HOSTILE, notes=(HOSTILE,), **texts)


def elements(page: str) -> list[str]:
    """What a parser takes for tags, as `name attribute attribute`."""
    found = re.findall(r'<([a-zA-Z](?:[^>"]|"[^"]*")*)>', page)
    return [re.sub('"[^"]*"', "", tag).lower() for tag in found]


def test_hostile_text_is_shown_as_text_everywhere(ada: Browser, keep: Keep) -> None:
    kept = keep(hostile())
    ada.decide(kept, "reject", note=HOSTILE)
    pages = [
        ada.get("/", status="any", text=HOSTILE, query_class=HOSTILE),
        ada.get("/", status="any"),
        ada.get(f"/records/{kept.id}"),
        ada.decide(kept, "edit", answer=HOSTILE, note=HOSTILE),
        ada.decide(kept, HOSTILE),
        ada.get(f"/records/{HOSTILE}"),
        ada.get("/login", token=HOSTILE),
    ]
    for page in pages:
        tags = elements(page.text)
        assert not any(tag.startswith(("img", "b ", "iframe", "object")) for tag in tags)
        assert not any(re.search(r"\son\w+|\sstyle|srcdoc", tag) for tag in tags)
        assert "javascript:" not in " ".join(
            re.findall(r'(?:href|src|action)="([^"]*)"', page.text)
        )
        for script in re.findall(r"(?s)<script([^>]*)>(.*?)</script>", page.text):
            assert script == (' src="/static/review.js" defer', "")
    assert text_of(pages[2].text).count("<script>document.title='pwned'</script>") > 10
    assert "{{ 7*7 }}{% x %}" in text_of(pages[2].text)


def test_the_name_of_a_reviewer_is_text_too(app: Any, keep: Keep) -> None:
    eve = Browser(app, name="<b onload=x>Eve</b>")
    kept = keep(record())
    eve.decide(kept, "approve")
    page = eve.get(f"/records/{kept.id}").text
    assert "<b onload" not in page
    assert "&lt;b onload=x&gt;Eve" in page


def test_templates_never_let_text_through_unescaped() -> None:
    templates = environment("langchain_groundedness.review")
    loader = templates.loader
    assert templates.autoescape is True
    for name in {*loader.list_templates()} - {"page.html"}:  # of files that stand alone
        source = loader.get_source(templates, name)[0]
        assert not re.search(r"\|\s*safe|autoescape|Markup|<style|\sstyle=|\son\w+=", source), name


# --- decisions ---


def test_approve_edit_and_reject_are_written_with_the_note_and_the_name(
    ada: Browser, keep: Keep, log: SQLAuditLog
) -> None:
    first = keep(record(1), record(2), record(3))
    ada.decide(first, "approve", note=" fine \r\n", answer=ANSWER)
    ada.decide(record(2), "edit", answer="It was $2.1B.\r\nReally.")
    ada.decide(record(3), "reject", note="wrong amount")
    decided = [log.get(f"record-{n}") for n in (1, 2, 3)]
    assert [
        (r.review.action, r.review.answer, r.review.note, r.review.reviewer) for r in decided if r
    ] == [
        ("approve", None, "fine", "Ada"),
        ("edit", "It was $2.1B.\nReally.", None, "Ada"),
        ("reject", None, "wrong amount", "Ada"),
    ]


def test_after_a_decision_the_next_item_of_the_same_queue_follows(ada: Browser, keep: Keep) -> None:
    keep(*(record(n, question=f"Q{n}", risk_tier="high" if n % 2 else None) for n in range(6)))
    page = ada.decide(record(1), "approve", risk_tier="high", status="waiting")
    assert page.url.path == "/records/record-3"
    assert "You approved the previous answer." in text_of(page.text)
    assert 'name="risk_tier" value="high"' in page.text
    page = ada.decide(record(5), "approve", risk_tier="high", status="waiting")
    assert page.url.path == "/records/record-3"  # from the beginning again
    page = ada.decide(record(3), "reject", note="no", risk_tier="high", status="waiting")
    assert page.url.path == "/"
    assert "There are no other items in this queue." in text_of(page.text)
    assert "You have" not in text_of(ada.get("/").text)


def test_an_item_can_be_left_for_later(ada: Browser, keep: Keep) -> None:
    keep(record(1), record(2))
    page = ada.get("/records/record-1", status="waiting")
    onward = re.search(r'href="(/next[^"]*)"', page.text)
    assert onward
    page = ada.get(unescape(onward[1]))
    assert page.url.path == "/records/record-2"


@pytest.mark.parametrize(
    ("action", "form", "said"),
    [
        ("edit", {"answer": "  "}, "The edited answer is empty."),
        ("edit", {}, "The edited answer is empty."),
        ("edit", {"answer": ANSWER}, "the same as the one you would approve"),
        ("edit", {"answer": "x" * 200_001}, "longer than 200,000"),
        ("approve", {"answer": "Changed."}, "Send the edited answer, or undo"),
        ("reject", {"note": "x" * 10_001}, "longer than 10,000"),
        ("reject", {"note": " "}, "Say in the note why"),
    ],
)
def test_a_decision_that_cannot_be_meant_is_asked_about_and_its_text_kept(
    ada: Browser, log: SQLAuditLog, action: str, form: dict[str, str], said: str
) -> None:
    kept = record()
    log.record(kept)
    log.flush()
    page = ada.decide(kept, action, **{"note": "my note", **form})
    assert page.status_code == 422
    assert said in text_of(page.text)
    field = "note" if action == "reject" else "edited"
    assert re.search(rf'<a href="#{field}">[^<]*{said[:20]}', page.text), "a summary leads there"
    [told] = re.findall(r"<textarea[^>]*aria-invalid[^>]*>", page.text)
    assert f'id="{field}"' in told
    assert "autofocus" in told
    assert 'aria-describedby="problem-here"' in told
    assert page.text.index('role="alert"') < page.text.index("<h1")
    for given in form.values():
        assert given.strip() in page.text
    found = log.get(kept.id)
    assert found
    assert found.review.status == "waiting"


@pytest.mark.parametrize(
    "form", [{"action": "burn", "revision": "0"}, {"action": "approve"}, {"revision": "x"}]
)
def test_a_form_that_is_none_of_ours_changes_nothing(
    ada: Browser, keep: Keep, log: SQLAuditLog, form: dict[str, str]
) -> None:
    kept = keep(record())
    assert ada.post(f"/records/{kept.id}", **form).status_code == 400
    found = log.get(kept.id)
    assert found
    assert found.revision == 0


def test_the_suggested_correction_can_be_sent_as_the_edited_answer(
    ada: Browser, keep: Keep, log: SQLAuditLog
) -> None:
    kept = record(of={"answer": "Revenue was [CORRECTED: $2.1B]."}, source="middleware")
    page = ada.get(f"/records/{keep(kept).id}").text
    assert "Revenue was [CORRECTED: $2.1B].</textarea>" in page
    assert ada.decide(kept, "edit", answer="Revenue was [CORRECTED: $2.1B].").status_code == 200
    found = log.get(kept.id)
    assert found
    assert found.review.answer == "Revenue was [CORRECTED: $2.1B]."


def test_a_suggestion_is_shown_and_is_what_an_edit_begins_with(
    ada: Browser, keep: Keep, log: SQLAuditLog
) -> None:
    suggestion = "Revenue was <b>$2.1B</b> in Q3."
    kept = keep(record(source="middleware", shown_answer=None, suggested_answer=suggestion))
    page = ada.get(f"/records/{kept.id}").text
    assert page.count("Revenue was &lt;b&gt;$2.1B&lt;/b&gt; in Q3.") == 2
    assert "Suggested correction" in text_of(page)
    ada.decide(kept, "edit", answer=suggestion)
    found = log.get(kept.id)
    assert found
    assert (found.review.action, found.review.answer) == ("edit", suggestion)


def test_a_record_that_nobody_asked_about_can_be_overruled(
    ada: Browser, keep: Keep, log: SQLAuditLog
) -> None:
    kept = keep(record(review={"status": "none"}))
    ada.decide(kept, "reject", note="no")
    found = log.get(kept.id)
    assert found
    assert found.review.action == "reject"


def test_the_second_of_two_reviewers_reads_the_first_decision_and_keeps_the_text(
    app: Any, ada: Browser, keep: Keep, log: SQLAuditLog
) -> None:
    bob = Browser(app, name="Bob")
    kept = keep(record())
    ada.get(f"/records/{kept.id}")
    bob.get(f"/records/{kept.id}")
    ada.decide(kept, "reject", note="wrong amount")
    page = bob.decide(kept, "edit", answer="Bob's own text", note="Bob's note")
    assert page.status_code == 409
    shown = text_of(page.text)
    for expected in ("Another reviewer decided first", "rejected by Ada", "wrong amount"):
        assert expected in shown
    assert "Bob&#39;s own text</textarea>" in page.text
    assert "Bob&#39;s note</textarea>" in page.text
    found = log.get(kept.id)
    assert found
    assert (found.review.reviewer, found.revision) == ("Ada", 1)


def test_a_record_that_has_changed_must_be_read_again(ada: Browser, keep: Keep) -> None:
    kept = keep(record(revision=2))
    page = ada.decide(kept, "approve", revision=1)
    assert page.status_code == 409
    assert "The record has changed" in text_of(page.text)


def test_a_decided_record_offers_no_decision(ada: Browser, keep: Keep) -> None:
    kept = keep(record())
    ada.decide(kept, "edit", answer="Mine.", note="why")
    page = ada.get(f"/records/{kept.id}").text
    assert 'name="action"' not in page
    assert "edited by Ada" in text_of(page)
    assert "Mine." in page


def test_a_reviewer_can_be_told_of_to_whoever_waits(log: SQLAuditLog, keep: Keep) -> None:
    heard: list[AuditRecord] = []
    app = create_review_app(log, token=TOKEN, undo_seconds=0, on_decided=heard.append)
    kept = keep(record())
    Browser(app).decide(kept, "approve")
    assert [(r.id, r.review.action, r.revision) for r in heard] == [(kept.id, "approve", 1)]


def test_a_listener_is_told_when_a_decision_has_taken_effect(log: SQLAuditLog, keep: Keep) -> None:
    told = threading.Event()
    heard: list[int] = []

    def hear(_: AuditRecord) -> None:
        heard.append(log.count(status="decided"))
        told.set()

    keep(record())
    app = create_review_app(log, token=TOKEN, undo_seconds=0.05, on_decided=hear)
    Browser(app).decide(record(), "approve")
    assert told.wait(300)
    assert heard == [1]


def test_a_listener_is_told_of_a_decision_that_an_agent_used_before(
    log: SQLAuditLog, keep: Keep
) -> None:
    told = threading.Event()
    app = create_review_app(log, token=TOKEN, undo_seconds=1, on_decided=lambda _: told.set())
    ada = Browser(app)
    ada.decide(keep(record()), "approve")
    log.take_effect(record().id)
    assert "It is too late to undo this decision" in text_of(ada.post("/undo").text)
    assert told.wait(300)


def test_an_undone_decision_changes_nothing_and_what_was_written_is_in_the_form(
    ada: Browser, keep: Keep, log: SQLAuditLog
) -> None:
    keep(record(1), record(2))
    marks = {"claim-1": "wrong", "claim-3": "right"}
    page = ada.decide(record(1), "edit", answer="It was $2.1B.", note="my note", **marks)
    assert page.url.path == "/records/record-2"
    assert "Undo" in text_of(page.text)
    assert log.count(status="decided") == 0  # it is held
    page = ada.post("/undo")
    assert page.url.path == "/records/record-1"
    assert "Your decision is undone." in text_of(page.text)
    assert field_of(page.text) == "It was $2.1B."
    assert "my note</textarea>" in page.text
    checked = re.findall(r'name="(claim-\d)" value="(\w+)"[^>]* checked', page.text)
    assert dict(checked) == marks
    found = log.get("record-1")
    assert found
    assert (found.review.status, found.revision) == ("waiting", 0)
    assert "Undo" not in text_of(ada.get("/").text)


def test_a_decision_that_has_taken_effect_cannot_be_undone(log: SQLAuditLog, keep: Keep) -> None:
    ada = Browser(create_review_app(log, token=TOKEN, undo_seconds=0))
    assert ada.post("/undo").url.path == "/"
    page = ada.decide(keep(record()), "approve")
    assert "It takes effect in" not in text_of(page.text)
    page = ada.post("/undo")
    assert "It is too late to undo this decision" in text_of(page.text)
    assert "approved by Ada" in text_of(page.text)


def test_a_second_undo_says_that_the_decision_was_undone(ada: Browser, keep: Keep) -> None:
    ada.decide(keep(record()), "approve")
    ada.post("/undo")
    assert "Your decision was undone already." in text_of(ada.post("/undo").text)


def test_after_a_restart_a_held_decision_waits_for_what_is_left(
    log: SQLAuditLog, keep: Keep
) -> None:
    keep(record(1), record(2))
    log.decide("record-1", revision=0, reviewer="Ada", action="approve")
    log.decide("record-2", revision=0, reviewer="Ada", action="approve", hold=3600)
    with patch.object(threading, "Timer") as timers:
        create_review_app(log, token=TOKEN, undo_seconds=9000, on_decided=print)
    [(left, _, [waits])] = [call.args for call in timers.call_args_list]
    assert 3000 < left <= 3600
    assert waits.id == "record-2"


def test_a_timer_that_is_early_by_the_clock_waits_again(log: SQLAuditLog, keep: Keep) -> None:
    heard: list[str] = []
    with patch.object(threading, "Timer") as timers:
        app = create_review_app(log, token=TOKEN, on_decided=lambda found: heard.append(found.id))
        Browser(app).decide(keep(record()), "approve")
        _, wake, arguments = timers.call_args.args
        wake(*arguments)
    assert (timers.call_count, heard) == (2, [])


@pytest.mark.parametrize("seconds", [-1, math.nan, math.inf, 86_401])
def test_the_time_to_undo_is_a_day_at_most(log: SQLAuditLog, seconds: float) -> None:
    said = f"undo_seconds must be a number of seconds from 0 to 86,400, got {seconds}"
    with pytest.raises(ConfigurationError, match=f"^{re.escape(said)}$"):
        create_review_app(log, token=TOKEN, undo_seconds=seconds)


def test_claims_marked_right_and_wrong_are_saved_with_the_decision(
    ada: Browser, keep: Keep, log: SQLAuditLog
) -> None:
    kept = keep(record())
    page = ada.get(f"/records/{kept.id}")
    assert page.text.count("This claim is") == 4
    marks = {"claim-1": "wrong", "claim-2": "right", "claim-4": "perhaps", "claim-9": "right"}
    page = ada.decide(kept, "reject", **marks)  # without a reason
    assert "2 of 4 claims marked" in text_of(page.text)
    ada.decide(kept, "reject", note="wrong amount", **marks)
    found = log.get(kept.id)
    assert found
    assert found.review.marks == {"a": False, "b": True}
    shown = text_of(ada.get(f"/records/{kept.id}").text)
    assert "Marked wrong by Ada" in shown
    assert "Marked right by Ada" in shown


def test_the_closest_sentence_is_shown_for_a_claim_without_citation(
    ada: Browser, keep: Keep
) -> None:
    told = Document("# Who leads the market\n\nIt was third in its market in 2024. It is old.")
    keep(record(of={"claims": CLAIMS[3:], "documents": (told,)}))
    page = ada.get("/records/record-0").text
    assert "Closest passage" in text_of(page)
    [link] = re.findall(r'<a href="#(d1-\d+-\d+)" data-cite', page)
    assert re.findall(rf'<mark [^>]*id="{link}">(.*?)</mark>', page) == [
        "It was third in its market in 2024."
    ]


def test_a_listener_that_fails_changes_nothing(
    log: SQLAuditLog, keep: Keep, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: AuditRecord) -> None:
        raise RuntimeError(ANSWER)

    kept = keep(record())
    app = create_review_app(log, token=TOKEN, undo_seconds=0, on_decided=fail)
    page = Browser(app).decide(kept, "approve")
    assert page.status_code == 200
    assert "RuntimeError" in caplog.text
    assert ANSWER not in caplog.text


# --- when the store is down ---


def test_a_store_that_is_down_is_named_and_the_reviewers_text_kept(
    ada: Browser, keep: Keep, log: SQLAuditLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = keep(record())

    def down(*_: Any, **__: Any) -> Any:
        msg = "the audit log's database cannot be read"
        raise AuditError(msg)

    for name in ("get", "query", "count", "decide"):
        monkeypatch.setattr(log, name, down)
    for path in ("/", f"/records/{kept.id}", "/next"):
        page = ada.get(path)
        assert page.status_code == 503
        assert "cannot be read" in text_of(page.text)
    page = ada.decide(kept, "edit", answer="My long text", note="My note")
    assert page.status_code == 503
    assert "My long text</textarea>" in page.text
    monkeypatch.undo()
    again = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', page.text))
    again.pop("form_token")
    assert ada.post(f"/records/{kept.id}", **again).status_code == 200
    found = log.get(kept.id)
    assert found
    assert found.review.answer == "My long text"


def test_an_error_of_ours_shows_no_text_and_logs_none(
    ada: Browser, log: SQLAuditLog, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    monkeypatch.setattr(log, "query", lambda **_: 1 / 0)
    caplog.set_level(logging.DEBUG)
    page = ada.get("/")
    assert page.status_code == 500
    assert "ZeroDivisionError" not in page.text
    assert "ZeroDivisionError" in caplog.text
    assert "Traceback" not in caplog.text


def test_results_can_be_reviewed_that_are_large(ada: Browser, keep: Keep) -> None:
    words = "Revenue was $2.4B in Q3. " * 400
    claims = tuple(
        ClaimVerdict(
            claim=Claim(
                id=f"c{n}", text=words[25 * n : 25 * n + 24], start=25 * n, end=25 * n + 24
            ),
            verdict="supported",
        )
        for n in range(400)
    )
    big = result(answer=words, original_answer=words, claims=claims)
    page = ada.get(f"/records/{keep(AuditRecord.from_result(big)).id}")
    assert page.text.count('class="ref ') == 400
