"""Where an answer cites something, and what: `[1]`, `[2][3]`, `[1, 2]`, `(file.md#section)`."""

import re
from collections.abc import Container, Iterator, Sequence
from typing import NamedTuple

__all__ = ["CitationMark", "blanked", "citation_marks", "document_name", "reference_list"]

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
    """What it names: numbers as they stand there, or paths and names; at least one."""
    kept: tuple[int, int] | None = None
    """The part of it that belongs to the sentence: the text of a link."""


def citation_marks(answer: str, names: Container[str] = frozenset()) -> list[CitationMark]:
    """Find the citations of an answer.

    Numbers stand in square brackets, alone, in lists and in ranges, or after a word such as
    `doc`; paths stand in square or round brackets or are the target of a link, with or without
    `source:` before them. What stands in code is none.

    Args:
        answer: The answer, plain or markdown.
        names: Names of documents that are known, as `document_name` gives them: those are
            citations also where they do not look like a path.

    Returns:
        The marks in order; they do not overlap.

    Example:
        >>> [mark.targets for mark in citation_marks("It is old [1, 3] (guide.md#age).")]
        [(1, 3), ('guide.md#age',)]
    """
    code = [match.span() for match in _CODE.finditer(answer)]
    return [
        mark
        for match in _BRACKETS.finditer(answer)
        if not any(start <= match.start() < end for start, end in code)
        if (mark := _mark(match, names)) is not None
    ]


def blanked(answer: str, marks: Sequence[CitationMark]) -> str:
    """Put spaces in the place of the marks, so that all offsets stay as they are.

    Args:
        answer: The answer.
        marks: Its marks.

    Returns:
        A text of the same length; of links the text is kept.
    """
    pieces, at = [], 0
    for mark in marks:
        kept_from, kept_to = mark.kept or (mark.end, mark.end)
        pieces += [answer[at : mark.start], " " * (kept_from - mark.start)]
        pieces += [answer[kept_from:kept_to], " " * (mark.end - kept_to)]
        at = mark.end
    return "".join([*pieces, answer[at:]])


def reference_list(answer: str, names: Container[str] = frozenset()) -> tuple[str, dict[int, str]]:
    """Read the list of sources that some answers end with: `[1] guide.md`, a line each.

    Args:
        answer: The answer.
        names: As for `citation_marks`.

    Returns:
        The answer with spaces in the place of the list and its title, so that it states nothing,
        and what each number stands for. Only lines that name a document and nothing else count.
    """
    numbers: dict[int, str] = {}
    lines: list[tuple[int, int]] = []
    for match in _LISTED.finditer(answer):
        targets = _targets(_shown_target(match["rest"]), names, square=False)
        if len(targets) == 1 and isinstance(targets[0], str):
            numbers.setdefault(int(match["square"] or match["plain"]), targets[0])
            lines.append(match.span())
    pieces, at = [], 0
    for start, end in lines:
        before = answer[at:start]
        title = before.rstrip().rpartition("\n")[2]
        if _LIST_TITLE.fullmatch(title):
            cut = before.rfind(title)
            before = before[:cut] + _space(before[cut:])
        pieces += [before, " " * (end - start)]
        at = end
    return "".join([*pieces, answer[at:]]), numbers


def _space(text: str) -> str:
    return "".join(char if char == "\n" else " " for char in text)


def _shown_target(rest: str) -> str:
    """Give the target of a line that is one link, or the line."""
    link = _BRACKETS.fullmatch(rest.strip())
    return link["target"] if link and link["link"] else rest


def document_name(name: str) -> str:
    """Fold a name for comparison: case and white space at the ends do not count.

    Args:
        name: A document's id, path or title.

    Returns:
        The folded name.
    """
    return " ".join(name.split()).casefold()


def _mark(match: re.Match[str], names: Container[str]) -> CitationMark | None:
    if match["link"] is not None:
        return _link(match, names)
    square = match["square"] is not None or match["lens"] is not None
    inner = match["square"] or match["lens"] or match["round"]
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
    """Read what stands in brackets; nothing, if any part of it is no citation."""
    if _named(inner, names):
        return (inner.strip(),)
    found: list[int | str] = []
    numbers_count = square
    for part in re.split(r"[,;]|\s&\s|\s(?:and|und|et|y|e)\s", inner):
        lead = _LEAD.match(part.strip())
        rest = part.strip()[lead.end() :] if lead else part.strip()
        kind = lead["kind"] if lead else None
        numbers_count = numbers_count or kind is not None
        target = list(_target(rest, names, numbers=numbers_count)) or (
            [rest] if kind and square and rest.strip() and _explicit(part) else []
        )
        if not target:
            return ()
        found += target
    return tuple(dict.fromkeys(found))


def _explicit(part: str) -> bool:
    """Tell whether the part says itself that it cites: `source: …`."""
    return bool(_EXPLICIT.match(part))


def _target(rest: str, names: Container[str], *, numbers: bool) -> Iterator[int | str]:
    rest = rest.strip().strip("\"'`").strip()
    if numbers and (match := _NUMBER.fullmatch(rest)):
        first = int(match[1])
        last = int(match[2] or first)
        if first <= last < first + _MOST_IN_A_RANGE:
            yield from range(first, last + 1)
        else:
            yield from (first, last)
    elif _PATH.fullmatch(rest) or _named(rest, names):
        yield rest


def _named(text: str, names: Container[str]) -> bool:
    return document_name(text) in names or document_name(text.partition("#")[0]) in names
