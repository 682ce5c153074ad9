"""HTML of a result for notebooks: without scripts or style sheets, for light and dark themes."""

from collections.abc import Iterator
from html import escape

from langchain_groundedness.display.counts import format_count
from langchain_groundedness.display.hidden_characters import show_hidden
from langchain_groundedness.display.marked_text import SIGNS, mark
from langchain_groundedness.display.words import correction_words, evidence_words
from langchain_groundedness.types import Citation, ClaimVerdict, GroundednessResult, VerdictLabel

__all__ = ["CELL", "CLASSES", "WARNING", "Html", "result_html", "table", "tag"]

CLASSES = "langchain-groundedness tex2jax_ignore mathjax_ignore"
"""The last two keep notebooks from reading `$2.1B, not $2.4B` as a formula."""
CELL = "text-align:left;vertical-align:top;padding:.25em .75em .25em 0"
WARNING = "margin:.25em 0;padding-left:.5em;border-left:4px solid #d1434f"
_TABLE = "border-collapse:collapse;color:inherit;font-size:inherit"
_QUIET = "opacity:.75"
_LONGEST = 300


class Html(str):
    """A string that is already HTML, and is not escaped again."""

    __slots__ = ()


def tag(name: str, *children: str, **attributes: object) -> Html:
    """Build an element; text in it is escaped, with hidden characters named."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(show_hidden(str(value)))}"'
        for key, value in attributes.items()
        if value is not None
    )
    inner = "".join(
        child if isinstance(child, Html) else escape(show_hidden(child)) for child in children
    )
    return Html(f"<{name}{written}>{inner}</{name}>")


_VERDICT_STYLES: dict[VerdictLabel, tuple[str, str, str]] = {
    "supported": ("rgba(46,160,67,.2)", "#2b9348", "solid"),
    "contradicted": ("rgba(218,54,68,.22)", "#d1434f", "wavy"),
    "unverifiable": ("rgba(210,153,34,.22)", "#b07d12", "dashed"),
    "unchecked": ("rgba(137,87,229,.22)", "#8f6fd6", "dotted"),
}
"""Background, colour and kind of the line, for light and dark themes; the text keeps the notebook's
colour."""


def result_html(result: GroundednessResult) -> str:
    """Render a result: the answer with marked claims, and the evidence of each claim."""
    changed = result.answer != result.original_answer
    return tag(
        "div",
        _headline(result),
        tag("p", *_answer(result), style="line-height:1.8;white-space:pre-wrap", dir="auto"),
        *([tag("p", "Corrected answer: ", result.answer, dir="auto")] if changed else []),
        _claims(result) if result.claims else tag("p", "No claims found.", style=_QUIET),
        class_=CLASSES,
        style="max-width:60em",
    )


def table(heads: tuple[str, ...], rows: Iterator[Html]) -> Html:
    """Build a table."""
    head = tag("tr", *(tag("th", name, scope="col", style=CELL) for name in heads))
    return tag("table", tag("thead", head), tag("tbody", *rows), style=_TABLE)


def _headline(result: GroundednessResult) -> Html:
    score = "unknown" if result.trust_score is None else f"{result.trust_score:.2f}"
    facts = f" · trust score {score}"
    if result.final is not None and result.edits:
        facts += f" · after correction: {result.final.verdict.replace('_', ' ')}"
    facts += f" · decision {result.decision.action}"
    return tag("p", tag("b", result.verdict.replace("_", " ")), tag("span", facts, style=_QUIET))


def _answer(result: GroundednessResult) -> Iterator[Html]:
    for piece in mark(result.original_answer, result.claims):
        if piece.verdict is None:
            yield tag("span", piece.text)
        else:
            tint, colour, kind = _VERDICT_STYLES[piece.verdict]
            line = f"text-decoration:underline {kind} {colour} 2px;text-underline-offset:.2em"
            style = f"background:{tint};color:inherit;{line}"
            yield tag("mark", piece.text, style=style, title=piece.verdict)
        for number in piece.ends:
            verdict = result.claims[number - 1].verdict
            yield tag("sup", f"{number}{SIGNS[verdict]}", title=verdict)


def _claims(result: GroundednessResult) -> Html:
    rows = (_claim(number, found) for number, found in enumerate(result.claims, start=1))
    heads = ("", "verdict", "claim", "support", "evidence")
    summary = tag("summary", format_count(len(result.claims), "claim"))
    return tag("details", summary, table(heads, rows), open="")


def _claim(number: int, found: ClaimVerdict) -> Html:
    _, colour, _ = _VERDICT_STYLES[found.verdict]
    edge = f"{CELL};border-left:4px solid {colour};padding-left:.5em"
    probability = found.support_probability
    notes = [found.reason or "", found.explanation]
    if found.correction:
        notes.append(f"{correction_words(found)}: {found.correction}")
    return tag(
        "tr",
        tag("td", str(number), style=edge),
        tag("td", f"{SIGNS[found.verdict]} {found.verdict}", style=f"{CELL};white-space:nowrap"),
        tag("td", found.claim.text, *map(_note, filter(None, notes)), style=CELL, dir="auto"),
        tag("td", "" if probability is None else f"{probability:.0%}", style=CELL),
        tag("td", *_evidence(found), style=CELL, dir="auto"),
    )


def _evidence(found: ClaimVerdict) -> Iterator[Html]:
    if found.citations:
        yield _note(evidence_words(found))
    yield from map(_citation, found.citations)


def _note(text: str) -> Html:
    return tag("div", text, style=_QUIET)


def _citation(citation: Citation) -> Html:
    names = (citation.metadata.get(key) for key in ("title", "source"))
    known = next((str(name) for name in names if name), citation.document_id)
    name = known or f"Document {citation.document + 1}"
    quote = citation.quote
    short = quote if len(quote) <= _LONGEST else f"{quote[:_LONGEST]}…"
    return tag("div", tag("span", f"{name}: ", style=_QUIET), tag("q", short))
