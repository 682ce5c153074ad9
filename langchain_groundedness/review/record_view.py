"""A record as a reviewer reads it: claims in the answer, citations in their documents.

Its own module because it is pure: what a page shows, before it is a page.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from langchain_groundedness.audit.record import AuditedDocument, AuditRecord
from langchain_groundedness.display.marked_text import (
    MarkedPiece,
    Span,
    is_located,
    mark,
    split_at_marks,
)
from langchain_groundedness.evidence.packing import SentenceIndex
from langchain_groundedness.types import Citation, ClaimVerdict, Passage

__all__ = ["CitedText", "DocumentPiece", "Item", "ShownClaim", "ShownDocument"]

_AGENTS = ("middleware", "node")
_WHOLE_UP_TO = 12_000
_AROUND = 1_500
_SEARCHED = 200_000
"""Characters of documents in which the closest sentences are looked for while a person waits."""
_MARKS = {"right": True, "wrong": False}


class CitedText(NamedTuple):
    """A citation of a claim."""

    anchor: str | None
    """Its anchor on the page; `None` if the document's text was not saved, or differs."""
    quote: str
    source: str
    """Name of the document."""


class ShownClaim(NamedTuple):
    """A claim as the list of claims shows it."""

    number: int
    """From 1, in the order of the check."""
    found: ClaimVerdict
    located: bool
    """Whether it is marked in the answer."""
    citations: tuple[CitedText, ...]
    """Those of the verdict; without any, the closest sentence."""
    mark: bool | None
    """Whether the reviewer finds it right, if the reviewer has said so."""


class DocumentPiece(NamedTuple):
    """A piece of a document."""

    text: str
    cited: tuple[str, ...] = ()
    """Anchors of the citations that cover it."""
    begins: tuple[str, ...] = ()
    """Anchors of those that begin with it."""
    left_out: int = 0
    """Number of characters left out here."""


@dataclass(frozen=True, kw_only=True)
class ShownDocument:
    """A document as the page shows it."""

    number: int
    """From 1."""
    name: str
    details: tuple[tuple[str, str], ...]
    """Its metadata."""
    length: int
    pieces: tuple[DocumentPiece, ...] | None
    """Its text; `None` if it was not saved."""
    shortened: bool
    """Whether part of the text is left out."""


class Item:
    """What the page of one record shows."""

    def __init__(self, record: AuditRecord, *, whole: int | None = None) -> None:
        """Find the claims in the answer, and the citations in the documents."""
        self.record = record
        self._whole = whole
        self._exact = record.content == "full" and not record.redacted
        self._texts = {document.index: document for document in record.documents}

    @cached_property
    def claims(self) -> tuple[ShownClaim, ...]:
        """The claims, in the order of the check."""
        marks, answer = self.record.review.marks, self.record.original_answer or ""
        return tuple(
            ShownClaim(
                number,
                found,
                self._exact and is_located(found, answer),
                tuple(map(self._cited, self._evidence[number - 1])),
                marks.get(found.claim.id),
            )
            for number, found in enumerate(self.record.claims, start=1)
        )

    def marks_of(self, form: Mapping[str, str]) -> dict[str, bool]:
        """Read which claims are marked right or wrong in a form."""
        said = {claim.found.claim.id: form.get(f"claim-{claim.number}") for claim in self.claims}
        return {name: _MARKS[word] for name, word in said.items() if word in _MARKS}

    @property
    def title(self) -> str:
        """The question of the record, or its id."""
        return self.record.question or f"Record {self.record.id}"

    @property
    def decided(self) -> bool:
        """Whether a reviewer has decided it."""
        return self.record.review.status == "decided"

    @property
    def in_graph(self) -> bool:
        """Whether a graph may be waiting for the decision."""
        return self.record.source in _AGENTS and self.record.thread_id is not None

    @property
    def changed(self) -> str | None:
        """The answer as shown to the user; `None` if it is unchanged."""
        shown = self.record.shown_answer
        return None if shown == self.record.original_answer else shown

    @property
    def standing(self) -> str | None:
        """The answer that an approval releases."""
        record = self.record
        if record.source in _AGENTS or record.shown_answer is None:
            return record.original_answer
        return record.shown_answer

    @property
    def proposal(self) -> str:
        """The initial text of the edit field."""
        record = self.record
        return record.suggested_answer or record.shown_answer or record.original_answer or ""

    @property
    def answer(self) -> list[MarkedPiece]:
        """The answer as it came, cut where claims begin and end."""
        return mark(self.record.original_answer or "", self.record.claims if self._exact else ())

    @property
    def documents(self) -> tuple[ShownDocument, ...]:
        """The documents, those with text first."""
        shown = [self._document(document) for document in self.record.documents]
        return tuple(sorted(shown, key=lambda document: document.pieces is None))

    @cached_property
    def _evidence(self) -> tuple[tuple[Citation, ...], ...]:
        """The citations of each claim; without any, the sentence closest to it."""
        texts = [(each.index, each.content) for each in self._texts.values() if each.content]
        known = self._exact and sum(len(text) for _, text in texts) <= _SEARCHED
        needed = known and not all(found.citations for found in self.record.claims)
        sentences = SentenceIndex(
            [Passage(document=n, start=0, end=len(t), text=t) for n, t in texts if needed]
        )
        return tuple(
            found.citations or _as_citations(sentences.best(found.claim.text))
            for found in self.record.claims
        )

    def _cited(self, citation: Citation) -> CitedText:
        document = self._texts.get(citation.document)
        source = _name(document) if document else f"Document {citation.document + 1}"
        stands = document is not None and self._quote_matches(citation, document)
        return CitedText(_anchor(citation) if stands else None, citation.quote, source)

    def _quote_matches(self, citation: Citation, document: AuditedDocument) -> bool:
        text = document.content or ""
        inside = 0 <= citation.start < citation.end <= len(text)
        stands = inside and text[citation.start : citation.end] == citation.quote
        return self._exact and citation.field is None and stands

    def _document(self, document: AuditedDocument) -> ShownDocument:
        text = document.content if self.record.content == "full" else None
        pieces = None if text is None else tuple(self._pieces(document, text))
        name = _name(document)
        details = ((key, str(value)) for key, value in document.metadata.items())
        return ShownDocument(
            number=document.index + 1,
            name=name,
            details=tuple(detail for detail in details if detail[1] != name),
            length=document.length,
            pieces=pieces,
            shortened=any(piece.left_out for piece in pieces or ()),
        )

    def _pieces(self, document: AuditedDocument, text: str) -> Iterator[DocumentPiece]:
        spans = {
            _anchor(citation): (citation.start, citation.end)
            for citations in self._evidence
            for citation in citations
            if citation.document == document.index and self._quote_matches(citation, document)
        }
        anchors = list(spans)
        whole = len(text) <= _WHOLE_UP_TO or document.index == self._whole
        gaps = () if whole else tuple(_far_from(spans.values(), len(text)))
        for segment in split_at_marks(text, [*spans.values(), *gaps]):
            if any(place >= len(anchors) for place in segment.covering):  # no citation reaches it
                yield DocumentPiece("", left_out=len(segment.text))
            else:
                yield DocumentPiece(
                    segment.text,
                    tuple(anchors[place] for place in segment.covering),
                    tuple(anchors[place] for place in segment.opening),
                )


def _as_citations(sentence: Passage | None) -> tuple[Citation, ...]:
    if sentence is None:
        return ()
    place = sentence.model_dump(include={"document", "start", "end"})
    return (Citation(**place, quote=sentence.text),)


def _far_from(spans: Iterable[Span], length: int) -> Iterator[Span]:
    """Give what is far from all citations of a text; without any, from its beginning."""
    past = 0
    for start, end in sorted(spans) or [(0, _AROUND)]:
        if start - _AROUND > past:
            yield past, start - _AROUND
        past = max(past, end + _AROUND)
    if past < length:
        yield past, length


def _anchor(citation: Citation) -> str:
    return f"d{citation.document + 1}-{citation.start}-{citation.end}"


def _name(document: AuditedDocument) -> str:
    named = (document.metadata.get(key) for key in ("title", "source"))
    found = next((str(name) for name in named if name), None)
    return found or document.id or f"Document {document.index + 1}"
