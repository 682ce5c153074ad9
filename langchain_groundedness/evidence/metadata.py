"""Puts named metadata before the texts of documents, and finds it again in citations.

Its own module because the format of these lines is known here alone: the steps of a check hand the
documents on, verifiers read and quote text, and a citation of a line becomes one of a field.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from langchain_core.documents import Document

from langchain_groundedness.types import Citation

__all__ = ["cited_metadata", "with_metadata"]


class _Field(NamedTuple):
    key: str
    value: str
    start: int
    """Offset of the value in the text with metadata."""


def with_metadata(documents: Sequence[Document], keys: Sequence[str]) -> tuple[Document, ...]:
    """Put metadata before the text of each document that has any, a line for each key."""
    return tuple(
        document.model_copy(update={"page_content": header + document.page_content})
        if (header := _header(_fields(document, keys)))
        else document
        for document in documents
    )


def cited_metadata(
    citations: Sequence[Citation], documents: Sequence[Document], keys: Sequence[str]
) -> tuple[Citation, ...]:
    """Convert citations from documents with metadata to citations from the documents themselves.

    A quote that spans several fields, or a field and the text, becomes one citation for each.
    """
    return tuple(new for old in citations for new in _converted(old, documents, keys))


def _converted(
    citation: Citation, documents: Sequence[Document], keys: Sequence[str]
) -> Iterator[Citation]:
    document = documents[citation.document]
    fields = _fields(document, keys)
    length = len(_header(fields))
    if not length:
        yield citation
        return
    for key, value, start in fields:
        first, last = max(citation.start - start, 0), min(citation.end - start, len(value))
        if first < last:
            span = {"field": key, "start": first, "end": last, "quote": value[first:last]}
            yield citation.model_copy(update=span)
    first, last = max(citation.start - length, 0), citation.end - length
    if quote := document.page_content[first : max(last, 0)]:
        yield citation.model_copy(update={"start": first, "end": last, "quote": quote})


def _header(fields: Sequence[_Field]) -> str:
    return "".join(f"{key}: {value}\n" for key, value, _ in fields) + "\n" * bool(fields)


def _fields(document: Document, keys: Sequence[str]) -> list[_Field]:
    """Find the metadata with these keys, unless the text begins with it."""
    found: list[_Field] = []
    at = 0
    for key in keys:
        value = document.metadata.get(key)
        text = "" if value is None else str(value)
        if text.strip() and not document.page_content.lstrip("#* \n").startswith(text.strip()):
            found.append(_Field(key, text, at + len(f"{key}: ")))
            at += len(f"{key}: {text}\n")
    return found
