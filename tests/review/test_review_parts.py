"""What the review page shows, before it is a page."""

from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document

from langchain_groundedness import Citation, Claim, ClaimVerdict
from langchain_groundedness.display.marked_text import split_at_marks
from langchain_groundedness.review.app import CHOICES, Filters
from langchain_groundedness.review.record_view import Item
from langchain_groundedness.review.server import is_loopback
from langchain_groundedness.review.sessions import Sessions
from review.records import ANSWER, CLAIMS, EPOCH, record


@st.composite
def marked(draw: st.DrawFn) -> tuple[str, list[tuple[int, int]]]:
    text = draw(st.text(min_size=1, max_size=30))
    places = st.integers(0, len(text))
    spans = draw(st.lists(st.tuples(places, places).filter(lambda span: span[0] < span[1])))
    return text, spans


@given(marked())
def test_pieces_make_up_the_text_and_each_mark_covers_its_span(
    drawn: tuple[str, list[tuple[int, int]]],
) -> None:
    text, spans = drawn
    pieces = split_at_marks(text, spans)
    assert "".join(piece.text for piece in pieces) == text
    for number, (start, end) in enumerate(spans):
        assert "".join(p.text for p in pieces if number in p.covering) == text[start:end]
        assert sum(number in p.opening for p in pieces) == 1
        assert sum(number in p.closing for p in pieces) == 1


def test_claims_that_overlap_show_the_worst_verdict_where_they_do() -> None:
    shown = [(p.text, p.verdict, p.claims) for p in Item(record()).answer]
    assert shown == [
        ("Revenue was $2.4B in Q3", "contradicted", (1, 2)),
        (", up 12% from last year.", "supported", (2,)),
        (" ", None, ()),
        ("The company employs 5,400 people.", "supported", (3,)),
    ]


def test_a_claim_without_a_span_is_listed_as_not_marked() -> None:
    assert [claim.number for claim in Item(record()).claims if not claim.located] == [4]


def test_a_span_beyond_the_answer_marks_nothing() -> None:
    far = ClaimVerdict(claim=Claim(id="x", text="x", start=3, end=900), verdict="supported")
    item = Item(record(of={"claims": (far, *CLAIMS)}))
    assert [c.found.claim.id for c in item.claims if not c.located] == ["x", "d"]
    assert "".join(piece.text for piece in item.answer) == ANSWER


def test_citations_stand_where_they_say_in_their_document() -> None:
    item = Item(record())
    (report, news) = item.documents
    for document in (report, news):
        assert document.pieces is not None
        for claim in item.claims:
            for cited in claim.citations:
                text = "".join(p.text for p in document.pieces if cited.anchor in p.cited)
                assert text in ("", cited.quote)
    anchors = {c.anchor for claim in item.claims for c in claim.citations}
    begun = [a for d in (report, news) for p in d.pieces or () for a in p.begins]
    assert sorted(begun) == sorted(a for a in anchors if a)


def test_a_quote_that_is_not_in_the_document_is_shown_without_a_link() -> None:
    wrong = Citation(document=0, start=0, end=4, quote="else")
    found = CLAIMS[0].model_copy(update={"citations": (wrong,)})
    (claim,) = Item(record(of={"claims": (found,)})).claims
    assert claim.citations[0].anchor is None
    assert claim.citations[0].quote == "else"


@pytest.mark.parametrize("fields", [{"redacted": True}, {"content": "hash"}, {"content": "none"}])
def test_nothing_is_marked_in_texts_that_were_changed(fields: Any) -> None:
    item = Item(record(**fields))
    assert not any(claim.located for claim in item.claims)
    assert [piece.text for piece in item.answer] == [ANSWER]
    assert not any(c.anchor for claim in item.claims for c in claim.citations)


def test_a_long_document_is_shown_around_its_citations_and_whole_when_asked_for() -> None:
    long = Document("a" * 20_000 + "needle" + "b" * 20_000)
    cited = Citation.from_document([long], 0, 20_000, 20_006)
    found = CLAIMS[0].model_copy(update={"citations": (cited,)})
    kept = record(of={"claims": (found,), "documents": (long,)})
    (short,) = Item(kept).documents
    assert short.pieces is not None
    assert sum(p.left_out + len(p.text) for p in short.pieces) == len(long.page_content)
    assert [p.text for p in short.pieces if p.cited] == ["needle"]
    assert sum(len(p.text) for p in short.pieces) < 4_000
    (whole,) = Item(kept, whole=0).documents
    assert "".join(p.text for p in whole.pieces or ()) == long.page_content
    assert not whole.shortened


@given(st.dictionaries(st.sampled_from([*CHOICES, "since", "text", "other"]), st.text()))
def test_filters_read_anything_and_their_address_reads_the_same(given_: dict[str, str]) -> None:
    filters = Filters.read(given_)
    assert Filters.read(dict(parse_qsl(filters.address))) == filters


def test_days_are_whole_and_the_last_one_counts() -> None:
    filters = Filters.read({"since": "2026-03-01", "until": "2026-03-01", "status": "any"})
    assert filters.store_filters == {
        "since": datetime(2026, 3, 1, tzinfo=UTC),
        "until": datetime(2026, 3, 2, tzinfo=UTC),
    }
    assert filters.store_filters["since"] <= EPOCH < filters.store_filters["until"]


def test_the_last_day_there_is_can_be_asked_for() -> None:
    assert "until" not in Filters.read({"until": "9999-12-31"}).store_filters


def test_a_session_ends_when_nobody_uses_it_and_after_a_day() -> None:
    now = [0.0]
    sessions = Sessions(clock=lambda: now[0])
    identity = sessions.begin()
    for hour in range(0, 24, 7):
        now[0] = hour * 3600.0
        assert sessions.find(identity) is not None
    now[0] = 24 * 3600.0
    assert sessions.find(identity) is None
    idle = sessions.begin()
    now[0] += 8 * 3600.0
    assert sessions.find(idle) is None


def test_the_oldest_session_makes_room_for_a_new_one() -> None:
    now = [0.0]
    sessions = Sessions(clock=lambda: now[0])
    made = []
    for second in range(5_000):
        now[0] = float(second)
        made.append(sessions.begin())
    kept = [sessions.find(each) is not None for each in made]
    assert kept == sorted(kept)
    assert 0 < sum(kept) < len(kept)


@pytest.mark.parametrize(
    ("host", "local"),
    [
        *(("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True)),
        *(("0.0.0.0", False), ("::", False), ("10.0.0.1", False), ("example.org", False)),  # noqa: S104  (not bound)
    ],
)
def test_loopback_is_known(host: str, *, local: bool) -> None:
    assert is_loopback(host) == local
