"""Which of the documents a citation names, however their paths are written."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from langchain_core.documents import Document

from langchain_groundedness.evals._citation_marks import document_name

__all__ = ["SECTION_KEYS", "SOURCE_KEYS", "DocumentIndex"]

SOURCE_KEYS = (
    "source",
    "path",
    "file_path",
    "filepath",
    "file",
    "file_name",
    "filename",
    "document",
    "document_id",
    "doc_id",
    "chunk_id",
    "id",
    "url",
    "title",
)
"""Keys of the metadata in which loaders and splitters leave the name of a document."""

SECTION_KEYS = (
    "section",
    "sektion",
    "section_id",
    "anchor",
    "heading",
    "header",
    "headings",
    "Header 1",
    "Header 2",
    "Header 3",
    "Header 4",
    "h1",
    "h2",
    "h3",
)
"""Keys of the metadata in which the name of a section is left."""

_HEADING = re.compile(r"(?m)^[ ]{0,3}#{1,6}[ \t]+(.{1,200}?)[ \t#]*$")
_NOT_IN_A_SLUG = re.compile(r"[^\w]+")


class _Named(NamedTuple):
    """A document as citations may name it."""

    names: frozenset[str]
    paths: tuple[tuple[str, ...], ...]
    sections: frozenset[str]


class DocumentIndex:
    """The documents of one answer, to be found by number, id, path or name.

    Paths are compared after folding: case, backslashes for slashes, `%20`, composed or decomposed
    letters, `./`, a scheme and a host do not count, and of two paths one may have more folders in
    front. A path with `#section` names the documents at that path whose metadata or headings tell
    of that section, and those that tell of none: they may be a part of it.
    """

    def __init__(
        self,
        documents: Sequence[Document],
        *,
        first_number: int = 1,
        source_keys: Iterable[str] = SOURCE_KEYS,
        section_keys: Iterable[str] = SECTION_KEYS,
        numbers: Mapping[int, str] | None = None,
    ) -> None:
        """Read the names of the documents.

        Args:
            documents: All documents of the answer.
            first_number: Which number names the first of them.
            source_keys: Keys of the metadata that hold names or paths.
            section_keys: Keys of the metadata that hold names of sections.
            numbers: What numbers stand for, if the answer says so; else they count the documents.
        """
        self._numbers = dict(numbers or {})
        self._first = first_number
        sources, sections = tuple(source_keys), tuple(section_keys)
        self._documents = tuple(_named(each, sources, sections) for each in documents)

    @property
    def names(self) -> frozenset[str]:
        """Every name that a citation may use, folded by `document_name`."""
        return frozenset(name for document in self._documents for name in document.names)

    def find(self, target: int | str) -> tuple[int, ...]:
        """Find what a citation names.

        Args:
            target: A number, or a path or name.

        Returns:
            The indices of the documents, in order: several if they are pieces of one file; none
            if there is no such document.
        """
        if isinstance(target, int) and target in self._numbers:
            return self.find(self._numbers[target])
        if isinstance(target, int):
            place = target - self._first
            return (place,) if 0 <= place < len(self._documents) else ()
        folded = document_name(target)
        if exact := tuple(n for n, d in enumerate(self._documents) if folded in d.names):
            return exact
        path, _, section = target.partition("#")
        slug = _slug(section)
        at_path = (
            tuple(place for place in places if self._may_have(place, slug))
            for places in self._at(_path(path), document_name(path))
        )
        return next(filter(None, at_path), ())

    def _at(self, path: tuple[str, ...], name: str) -> Iterator[list[int]]:
        """Find the documents at just that path, and those at one that ends like it."""
        listed = list(enumerate(self._documents))
        yield [place for place, each in listed if path in each.paths or name in each.names]
        if path:
            yield [place for place, each in listed if any(_ends(path, p) for p in each.paths)]

    def _may_have(self, place: int, section: str) -> bool:
        told = self._documents[place].sections
        return not section or not told or section in told


def _named(document: Document, sources: Sequence[str], sections: Sequence[str]) -> _Named:
    metadata = document.metadata
    raw = [*_texts(document.id), *(t for key in sources for t in _texts(metadata.get(key)))]
    own = [part for text in raw if (part := text.partition("#")[2].strip())]
    own += [text for key in sections for text in _texts(metadata.get(key))]
    own += _HEADING.findall(document.page_content)
    return _Named(
        names=frozenset(filter(None, map(document_name, raw))),
        paths=tuple(dict.fromkeys(filter(None, (_path(t.partition("#")[0]) for t in raw)))),
        sections=frozenset(filter(None, map(_slug, own))),
    )


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, int) and not isinstance(value, bool):
        yield str(value)
    elif isinstance(value, list | tuple):
        yield from (each for each in value if isinstance(each, str))


def _path(text: str) -> tuple[str, ...]:
    """Give the folded parts of a path; without scheme, host and query."""
    text = text.strip()
    if "://" in text:
        try:
            text = urlsplit(text).path or urlsplit(text).netloc
        except ValueError:
            text = text.partition("://")[2]
    text = unicodedata.normalize("NFKC", unquote(text)).replace("\\", "/").casefold()
    parts: list[str] = []
    for part in text.split("/"):
        if part == "..":
            del parts[-1:]
        elif part.strip() not in ("", "."):
            parts.append(part.strip())
    return tuple(parts)


def _ends(path: tuple[str, ...], other: tuple[str, ...]) -> bool:
    shorter, longer = sorted((path, other), key=len)
    return longer[-len(shorter) :] == shorter


def _slug(heading: str) -> str:
    """Fold the name of a section as web pages do for anchors: `Über uns` and `über-uns` are one."""
    text = unicodedata.normalize("NFKC", unquote(heading)).casefold()
    return _NOT_IN_A_SLUG.sub("-", text).strip("-")
