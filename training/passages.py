"""Short texts of many kinds, with claims that they support, contradict or leave open.

They were written for this purpose, no row of the data: `passages/*.txt`. A text begins with a line
`=== kind`, perhaps a line `Q: question`; below `---` stand its claims, a line each: `+` supported,
`-` contradicted, `~` neither. Neighbouring claims differ by little, and true ones are often in
other words than the text while false ones have its own. In `contrast_pairs/*.txt` each false claim
is worded as a true one beside it, so that neither wording nor shared words tell them apart.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

__all__ = ["CONTRAST_PAIRS", "Passage", "read_passages"]

_LABELS = {"+": "supported", "-": "contradicted", "~": "unverifiable"}
_FOLDER = Path(__file__).with_name("passages")
CONTRAST_PAIRS = Path(__file__).with_name("contrast_pairs")


class Passage(NamedTuple):
    """A text and its claims."""

    file: str
    """Name of the file, without its ending."""
    kind: str
    question: str | None
    text: str
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
    for path in sorted(folder.glob("*.txt")):
        for block in ("\n" + path.read_text(encoding="utf-8")).split("\n===")[1:]:
            kind, _, rest = block.partition("\n")
            text, _, below = rest.rpartition("\n---\n")
            question = None
            if text.startswith("Q:"):
                question, _, text = text[2:].partition("\n")
            if not text.strip():
                msg = f"{path.name} has no text above the claims of {(question or kind).strip()!r}"
                raise ValueError(msg)
            claims = tuple(_claim(path, line) for line in below.splitlines() if line.strip())
            if len({label for _, label in claims}) > 1:
                yield Passage(
                    path.stem, kind.strip(), question and question.strip(), text.strip(), claims
                )


def _claim(path: Path, line: str) -> tuple[str, str]:
    label = _LABELS.get(line[0])
    if label is None or not line[1:].strip():
        msg = f"{path.name} has {line!r} where a line should begin with +, - or ~ and a claim"
        raise ValueError(msg)
    return line[1:].strip(), label
