"""Renders a result for the terminal: the answer, a table of claims, a summary line.

Texts of answers and documents are untrusted: they are never interpreted as markup, and control
characters in them are replaced.
"""

import re
from typing import Any

from langchain_core.documents import Document
from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from langchain_groundedness.display.marked_text import SIGNS
from langchain_groundedness.display.words import evidence_words
from langchain_groundedness.types import Citation, ClaimVerdict, GroundednessResult, VerdictLabel

__all__ = ["plain_table", "printable", "render"]

_STYLES: dict[VerdictLabel, str] = {
    "supported": "green",
    "contradicted": "red",
    "unverifiable": "yellow",
    "unchecked": "magenta",
}
_LONGEST_QUOTE = 240


def render(result: GroundednessResult) -> RenderableType:
    """Render a result for `rich.console.Console.print`."""
    question = Text(printable(result.question or ""))
    return Group(
        *([_headed("Question", question)] if question else []),
        _headed("Answer", _answer(result)),
        *([_table(result)] if result.claims else []),
        *([_headed("Corrected", _corrected(result))] if result.edits else []),
        _summary(result),
    )


def _headed(head: str, body: Text) -> Table:
    grid = Table.grid(padding=(0, 1))
    grid.add_column(width=10, style="bold")
    grid.add_column()
    grid.add_row(Text(head), body)
    return grid


def _answer(result: GroundednessResult) -> Text:
    text = Text(printable(result.original_answer))
    for found in result.claims:
        if found.claim.start is not None:
            text.stylize(_STYLES[found.verdict], found.claim.start, found.claim.end)
    return text


def _corrected(result: GroundednessResult) -> Text:
    text, shift = Text(printable(result.answer)), 0
    for edit in result.edits:
        start = edit.start + shift
        text.stylize("bold green", start, start + len(edit.replacement))
        shift += len(edit.replacement) - (edit.end - edit.start)
    return text


def _table(result: GroundednessResult) -> Table:
    table = plain_table(expand=True, leading=1, padding=(0, 1))
    table.add_column("Verdict", no_wrap=True)
    table.add_column("Claim", ratio=2)
    table.add_column("Evidence", ratio=3)
    for found in result.claims:
        label = Text(f"{SIGNS[found.verdict]} {found.verdict}", style=_STYLES[found.verdict])
        if found.support_probability is not None:
            label.append(f"\n  p = {found.support_probability:.2f}", style="dim")
        table.add_row(label, Text(printable(found.claim.text)), _evidence(found, result.documents))
    return table


def _evidence(found: ClaimVerdict, documents: tuple[Document, ...]) -> Text:
    lines = Text()
    if found.citations:
        lines.append(f"{evidence_words(found)}:\n", style="dim")
    for citation in found.citations:
        quote = printable(" ".join(citation.quote.split()))
        quote = quote if len(quote) <= _LONGEST_QUOTE else f"{quote[:_LONGEST_QUOTE]}…"
        lines.append(f"“{quote}”\n", style="italic")
        lines.append(f"{_source(citation, documents)}\n", style="cyan")
    if found.correction:
        lines.append(f"→ {printable(found.correction)}\n", style="bold green")
    if found.conflicting:
        lines.append("the documents disagree\n", style="yellow")
    lines.append(printable(found.reason or found.explanation), style="dim")
    lines.rstrip()
    return lines


def _source(citation: Citation, documents: tuple[Document, ...]) -> str:
    name = citation.metadata.get("source") or citation.document_id
    if not name:
        name = f"document {citation.document + 1} of {len(documents)}"
    place = citation.field or f"{citation.start}-{citation.end}"
    return f"{printable(str(name))}:{printable(place)}"


def _summary(result: GroundednessResult) -> Text:
    checked = [found for found in result.claims if found.verdict != "unchecked"]
    supported = sum(found.verdict == "supported" for found in checked)
    trusted = "trusted" if result.is_trusted else "not trusted"
    line = Text()
    line.append(trusted, style="bold green" if result.is_trusted else "bold red")
    line.append(f" · {result.verdict.replace('_', ' ')}", style="bold")
    if result.trust_score is not None:
        line.append(
            f" · trust score {result.trust_score:.2f} ({supported} of {len(checked)} supported)"
        )
    if result.final is not None and result.edits:
        remains = result.final.verdict.replace("_", " ")
        line.append(f" · after correction: {remains}", style="bold")
    line.append(f" · {result.decision.action}")
    if result.decision.reasons:
        line.append(f": {printable('; '.join(result.decision.reasons))}", style="dim")
    return line


def plain_table(*heads: str, **options: Any) -> Table:
    """Make a table without a frame; all columns but the first are flush right."""
    look: dict[str, Any] = {"box": box.SIMPLE_HEAD, "header_style": "bold", "padding": 0}
    table = Table(**look | {"pad_edge": False} | options)
    for place, head in enumerate(heads):
        table.add_column(head, justify="right" if place else "left")
    return table


_CONTROLS = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """Replace control characters that a terminal would interpret; the length stays."""
    return _CONTROLS.sub("\ufffd", text.replace("\r\n", " \n"))
