"""Short texts of many kinds, with claims that they support, contradict or leave open.

They were written for this purpose, no row of the data: `passages/*.txt`. A text begins with a line
`=== kind`, perhaps a line `Q: question`; below `---` stand its claims, a line each: `+` supported,
`-` contradicted, `~` neither. Neighbouring claims differ by little, and true ones are often in
other words than the text while false ones have its own. In `contrast_pairs/*.txt` each false claim
is worded as a true one beside it, so that neither wording nor shared words tell them apart. The
claims of `document_claims/*.txt` are like these, but about documents of the data: `=== set id`.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

__all__ = ["CONTRAST_PAIRS", "DocumentClaims", "Passage", "read_document_claims", "read_passages"]

_LABELS = {"+": "supported", "-": "contradicted", "~": "unverifiable"}
_FOLDER = Path(__file__).with_name("passages")
CONTRAST_PAIRS = Path(__file__).with_name("contrast_pairs")
_DOCUMENT_CLAIMS = Path(__file__).with_name("document_claims")


class Passage(NamedTuple):
    """A text and its claims."""

    file: str
    """Name of the file, without its ending."""
    kind: str
    question: str | None
    text: str
    claims: tuple[tuple[str, str], ...]
    """Claim and label."""


class DocumentClaims(NamedTuple):
    """The claims about a document of the data."""

    file: str
    """Name of the file, without its ending."""
    set: str
    """The set that the document is of."""
    id: str
    """The document's id there."""
    claims: tuple[tuple[str, str], ...]
    """Claim and label."""


def read_passages(folder: Path = _FOLDER) -> Iterator[Passage]:
    """Read all files of a folder.

    Args:
        folder: Where they are.

    Yields:
        The texts that have claims of more than one label.

    Raises:
        ValueError: A line is no claim, or claims have no text; it says which.
    """
    for path, kind, rest in _blocks(folder):
        text, _, below = rest.rpartition("\n---\n")
        question = None
        if text.startswith("Q:"):
            question, _, text = text[2:].partition("\n")
        if not text.strip():
            msg = f"{path.name} has no text above the claims of {(question or kind)!r}"
            raise ValueError(msg)
        claims = _claims(path, below)
        if len({label for _, label in claims}) > 1:
            yield Passage(path.stem, kind, question and question.strip(), text.strip(), claims)


def read_document_claims() -> Iterator[DocumentClaims]:
    """Read the claims about documents of the data.

    Yields:
        The claims of each document.

    Raises:
        ValueError: A line is no claim; it says which.
    """
    for path, source, below in _blocks(_DOCUMENT_CLAIMS):
        name, _, number = source.partition(" ")
        yield DocumentClaims(path.stem, name, number, _claims(path, below))


def _blocks(folder: Path) -> Iterator[tuple[Path, str, str]]:
    """Give the parts of all files: what follows `===`, and what stands below it."""
    for path in sorted(folder.glob("*.txt")):
        for block in ("\n" + path.read_text(encoding="utf-8")).split("\n===")[1:]:
            head, _, rest = block.partition("\n")
            yield path, head.strip(), rest


def _claims(path: Path, lines: str) -> tuple[tuple[str, str], ...]:
    return tuple(_claim(path, line) for line in lines.splitlines() if line.strip())


def _claim(path: Path, line: str) -> tuple[str, str]:
    label = _LABELS.get(line[0])
    if label is None or not line[1:].strip():
        msg = f"{path.name} has {line!r} where a line should begin with +, - or ~ and a claim"
        raise ValueError(msg)
    return line[1:].strip(), label
