"""Finds citations in an answer: `[1]`, `[2][3]`, `[1, 2]`, `(file.md#section)`."""

import re
import unicodedata
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from langchain_core.documents import Document

__all__ = ["CitationMark", "DocumentIndex", "blank_out_marks", "citation_marks", "reference_list"]

_MOST_IN_A_RANGE = 50

_EXTENSION = (
    r"(?:md|mdx|markdown|rst|txt|adoc|org|tex|html?|xml|pdf|docx?|odt|rtf|epub|csv|tsv|xlsx?|ods"
    r"|pptx?|odp|json|jsonl|ya?ml|toml|ini|log|ipynb|py|js|ts|java|go|rs|cpp|sql|sh|eml|msg)"
)

_NUMBER = re.compile(r"\^?(\d{1,4})(?:\s?[-\u2013]\s?\^?(\d{1,4}))?")

_PATH = re.compile(
    rf"[^#?<>\n]{{0,300}}[^#?<>\s/]\.{_EXTENSION}(?:\?[^#\s]{{0,200}})?(?:#[^#\n]{{0,200}})?"
    r"|https?://[^\s<>]{1,500}",
    re.IGNORECASE,
)

_LEAD = re.compile(
    r"(?:(?:see|cf\.?|vgl\.?|siehe|voir|v\u00e9ase)\s+(?:also\s+|auch\s+)?)?"
    r"(?:(?P<kind>sources?|quellen?|fuentes?|fontes?|citations?|cites?|refs?\.?|references?|from|aus"
    r"|docs?\.?|documents?|dokumente?|passages?|contexts?|kontext|chunks?|id)"
    r"(?:\s*[:#=]\s*|\s+(?:\#\s*)?|(?=\d)))?",
    re.IGNORECASE,
)

_BRACKETS = re.compile(
    r"(?P<link>!?\[(?P<shown>[^\[\]\n]{0,200})\]\((?P<target>[^()\s]{1,500}(?:\([^()\s]{0,100}\))?)\))"
    r"|\[(?P<square>[^\[\]\n]{1,500})\]"
    r"|\u3010(?P<lens>[^\u3010\u3011\n]{1,500})\u3011"
    r"|\((?P<round>[^()\n]{1,500})\)"
)

_CODE = re.compile(r"(?ms)^[ \t]*(`{3,}|~{3,}).*?(?:^[ \t]*\1[`~]*[ \t]*$|\Z)|`[^`\n]{1,200}`")

_EXPLICIT = re.compile(
    r"\s*(?:source|quelle|ref|doc|document|dokument|id)[sn]?\s*[:=]", re.IGNORECASE
)

_DAGGER = re.compile(r"\u2020[^,;\u2020]{0,200}")
"""What assistants write after a number: the name of the source, or the word."""

_PAGE = re.compile(
    r"(?:pages?|pp?\.?|pgs?\.?|seiten?|s\.)\s*\d{1,5}(?:\s?[-\u2013]\s?\d{1,5})?", re.IGNORECASE
)

_MARK_AS_TEXT = re.compile(
    r"\W*(?:\d{1,4}|sources?|quellen?|refs?|references?|links?|docs?|documents?|details?|more|mehr|here|hier)\W*",
    re.IGNORECASE,
)

_LISTED = re.compile(
    r"(?m)^[ \t]*(?:[-*+][ \t]+)?(?:\[\^?(?P<square>\d{1,4})\]:?|(?P<plain>\d{1,4})[.)])[ \t]+"
    r"(?P<rest>[^ \t\n][^\n]{0,499})$"
)

_LIST_TITLE = re.compile(
    r"[ \t]*[#*_]{0,6}[ \t]*(?:sources?|quellen?|references?|citations?|bibliography|literatur"
    r"|footnotes?|fu\u00dfnoten)[ \t]*:?[ \t]*[*_]{0,3}[ \t]*:?[ \t]*",
    re.IGNORECASE,
)


class CitationMark(NamedTuple):
    """One mark of a citation: characters `start` to `end` of the answer."""

    start: int
    end: int
    targets: tuple[int | str, ...]
    """What it names: numbers as written, or paths and names; at least one."""
    kept: tuple[int, int] | None = None
    """The part of it that belongs to the sentence: the text of a link."""


def citation_marks(answer: str, names: Container[str] = frozenset()) -> list[CitationMark]:
    """Find the citations of an answer.

    Numbers are in square brackets, alone, in lists and in ranges, or after a word such as `doc`;
    paths are in square or round brackets or the target of a link, with or without `source:`
    before them. Code is ignored.
    """
    code = [match.span() for match in _CODE.finditer(answer)]
    return [
        mark
        for match in _BRACKETS.finditer(answer)
        if not any(start <= match.start() < end for start, end in code)
        if (mark := _mark(match, names)) is not None
    ]


def blank_out_marks(answer: str, marks: Sequence[CitationMark]) -> str:
    """Replace the marks with spaces, so that offsets stay valid."""
    pieces, at = [], 0
    for mark in marks:
        kept_from, kept_to = mark.kept or (mark.end, mark.end)
        pieces += [answer[at : mark.start], " " * (kept_from - mark.start)]
        pieces += [answer[kept_from:kept_to], " " * (mark.end - kept_to)]
        at = mark.end
    return "".join([*pieces, answer[at:]])


def reference_list(answer: str, names: Container[str] = frozenset()) -> tuple[str, dict[int, str]]:
    """Read the list of sources that some answers end with: `[1] guide.md`, a line each."""
    numbers: dict[int, str] = {}
    listed: list[CitationMark] = []
    at = 0
    for match in _LISTED.finditer(answer):
        link = _BRACKETS.fullmatch(match["rest"].strip())  # a line may be one link
        target = link["target"] if link and link["link"] else match["rest"]
        targets = _targets(target, names, square=False)
        if len(targets) == 1 and isinstance(targets[0], str):
            numbers.setdefault(int(match["square"] or match["plain"]), targets[0])
            before = answer[at : match.start()].rstrip()
            title = before.rfind("\n") + 1
            if _LIST_TITLE.fullmatch(before, title):
                listed.append(CitationMark(at + title, at + len(before), ()))
            listed.append(CitationMark(*match.span(), ()))
            at = match.end()
    return blank_out_marks(answer, listed), numbers


def fold_name(name: str) -> str:
    """Fold a name for comparison: case and white space at the ends do not count."""
    return " ".join(name.split()).casefold()


def _mark(match: re.Match[str], names: Container[str]) -> CitationMark | None:
    if match["link"] is not None:
        return _link(match, names)
    square = match["square"] is not None or match["lens"] is not None
    inner = match["square"] or _DAGGER.sub("", match["lens"] or "") or match["round"] or ""
    targets = _targets(inner, names, square=square)
    return CitationMark(*match.span(), targets) if targets else None


def _link(match: re.Match[str], names: Container[str]) -> CitationMark | None:
    """Read a link: to a document it is a citation; to anything else its text may still be one."""
    if match["link"].startswith("!"):
        return None
    shown, target = match["shown"], match["target"]
    targets = _targets(target, names, square=False)
    alone = not shown.strip() or bool(_MARK_AS_TEXT.fullmatch(shown))
    if not targets and _NUMBER.fullmatch(shown.strip()):
        targets = _targets(shown, names, square=True)
    if not targets:
        return None
    named = alone or _targets(shown, names, square=False)
    return CitationMark(*match.span(), targets, None if named else match.span("shown"))


def _targets(inner: str, names: Container[str], *, square: bool) -> tuple[int | str, ...]:
    """Read the targets in brackets; none if any part is not a citation."""
    if _named(inner, names):
        return (inner.strip(),)
    found: list[int | str] = []
    numbers_count = square
    for part in re.split(r"[,;]|\s&\s|\s(?:and|und|et|y|e)\s", inner):
        if found and _PAGE.fullmatch(part.strip()):
            continue
        lead = _LEAD.match(part.strip())
        kind, rest = (lead["kind"], lead.string[lead.end() :]) if lead else (None, part)
        numbers_count = numbers_count or kind is not None
        target = list(_target(rest, names, numbers=numbers_count))
        if not target and kind and square and rest.strip() and _EXPLICIT.match(part):
            target = [rest]
        if not target:
            return ()
        found += target
    return tuple(dict.fromkeys(found))


def _target(rest: str, names: Container[str], *, numbers: bool) -> Iterator[int | str]:
    rest = rest.strip().strip("\"'`").strip()
    if numbers and (match := _NUMBER.fullmatch(rest)):
        first, last = int(match[1]), int(match[2] or match[1])
        is_range = first <= last < first + _MOST_IN_A_RANGE
        yield from range(first, last + 1) if is_range else (first, last)
    elif _PATH.fullmatch(rest) or _named(rest, names):
        yield rest


def _named(text: str, names: Container[str]) -> bool:
    return fold_name(text) in names or fold_name(text.partition("#")[0]) in names


SOURCE_KEYS = tuple(
    """
    source path file_path filepath file file_name filename document document_id doc_id chunk_id id
    url title
    """.split()  # noqa: SIM905  (a word list reads better as words)
)
"""Metadata keys in which loaders and splitters store the name of a document."""

SECTION_KEYS = (
    *"section sektion section_id anchor heading header headings".split(),  # noqa: SIM905  (same)
    *("Header 1", "Header 2", "Header 3", "Header 4", "h1", "h2", "h3"),
)
"""Metadata keys that hold the name of a section."""

_HEADING = re.compile(r"(?m)^[ ]{0,3}#{1,6}[ \t]+(.{1,200}?)[ \t#]*$")

_NOT_IN_A_SLUG = re.compile(r"[^\w]+")


class _DocumentNames(NamedTuple):
    """A document as citations may name it."""

    names: frozenset[str]
    paths: tuple[tuple[str, ...], ...]
    sections: frozenset[str]


class DocumentIndex:
    """Looks up the documents of one answer by number, id, path or name.

    Paths match regardless of case, slash direction, `%20`, Unicode normal form, `./`, scheme,
    host and leading folders. A path with `#section` matches the documents at that path whose
    metadata or headings name that section, and those that name none.
    """

    def __init__(
        self,
        documents: Sequence[Document],
        *,
        first_number: int = 1,
        source_keys: Iterable[str] = SOURCE_KEYS,
        section_keys: Iterable[str] = SECTION_KEYS,
    ) -> None:
        """Read the names of the documents."""
        self.numbers: Mapping[int, str] = {}
        """What numbers of a list of sources stand for."""
        self._first = first_number
        sources, sections = tuple(source_keys), tuple(section_keys)
        self._documents = tuple(_document_names(each, sources, sections) for each in documents)

    @property
    def names(self) -> frozenset[str]:
        """Every name that a citation may use, folded by `fold_name`."""
        return frozenset().union(*(document.names for document in self._documents))

    def find(self, target: int | str) -> tuple[int, ...]:
        """Find what a citation names."""
        if isinstance(target, int) and target in self.numbers:
            return self.find(self.numbers[target])
        if isinstance(target, int):
            place = target - self._first
            return (place,) if 0 <= place < len(self._documents) else ()
        folded = fold_name(target)
        if named := tuple(n for n, d in enumerate(self._documents) if folded in d.names):
            return named
        path, _, section = target.partition("#")
        parts, name, slug = _path(path), fold_name(path), _slug(section)
        listed = [
            (place, each)
            for place, each in enumerate(self._documents)
            if not slug or not each.sections or slug in each.sections
        ]
        exact = [place for place, each in listed if parts in each.paths or name in each.names]
        if not exact and parts:  # else those whose path ends in it
            exact = [place for place, d in listed if any(_same_ending(parts, p) for p in d.paths)]
        return tuple(exact)


def _document_names(
    document: Document, sources: Sequence[str], sections: Sequence[str]
) -> _DocumentNames:
    metadata = document.metadata
    raw = [*_texts(document.id), *(t for key in sources for t in _texts(metadata.get(key)))]
    own = [part for text in raw if (part := text.partition("#")[2].strip())]
    own += [text for key in sections for text in _texts(metadata.get(key))]
    own += _HEADING.findall(document.page_content)
    return _DocumentNames(
        names=frozenset(filter(None, map(fold_name, raw))),
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


def _same_ending(path: tuple[str, ...], other: tuple[str, ...]) -> bool:
    shorter, longer = sorted((path, other), key=len)
    return longer[-len(shorter) :] == shorter


def _slug(heading: str) -> str:
    """Fold the name of a section as web pages do for anchors: `Über uns` and `über-uns` are one."""
    text = unicodedata.normalize("NFKC", unquote(heading)).casefold()
    return _NOT_IN_A_SLUG.sub("-", text).strip("-")
