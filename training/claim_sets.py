"""The rows of `--data`, read as questions to a verifier: claim, documents, is it supported?

Row formats are those of the data folder: gzip JSON lines; in `claims_*` a row with `documents`
defines a document set, every other row is a claim (`claim`, `label`, `question`?) that names one by
`documents_id`; in `claims_ragtruth_qa` it is an answer with `spans` that the documents do not
support. `halueval_qa`: `knowledge`, `question`, `right_answer`, `hallucinated_answer`.
`fool_me_twice`, `fever_symmetric`: `premise`, `hypothesis`, `label`, `other_evidence`?.
"""

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

from langchain_groundedness.claims.statements import sentence_claims

__all__ = [
    "CLAIM_SETS",
    "CONTRAST_SETS",
    "EXTRA_SETS",
    "Example",
    "is_held",
    "plain",
    "read_set",
]

CLAIM_SETS = ("factscore", "begin", "factcheckgpt", "ragtruth_qa", "wice")
CONTRAST_SETS = ("bump", "cg2c", "defacto", "dialogue", "frank", "summedits", "tables")
"""Sets in which true and false claims differ by little."""
EXTRA_SETS = ("halueval_qa", "fool_me_twice", "fever_symmetric")


_HELD = 20
"""One document in so many is held back."""


class Example(NamedTuple):
    """One claim and what a person said of it."""

    claim: str
    documents: tuple[str, ...]
    supported: bool
    question: str | None
    part: str
    """Of the set: who wrote the claim, or where it is from."""
    group: str
    """The answer it is a sentence of, what it differs from by little, or its own id."""
    unsupported_characters: int = 0
    """How much of the claim lies in spans that were marked as unsupported."""
    fine: str = ""
    """The label as the set gives it."""


def read_set(data: Path, name: str, *, folder: str = "train") -> list[Example]:
    """Read one set.

    Args:
        data: The folder that holds `train/` and `benchmark/`.
        name: Name of the set, without `claims_`.
        folder: Which of the two.

    Returns:
        Its examples, in order.

    Raises:
        SystemExit: The file is not there.
    """
    rows = _read_rows(data, name, folder)
    if name == "halueval_qa":
        return list(_short_answers(rows))
    if name in EXTRA_SETS:
        return list(_pairs(rows))
    sets = _documents_by_id(rows)
    claims = [row for row in rows if "documents" not in row]
    if name == "ragtruth_qa":
        return [e for row in claims for e in _sentences(row, sets[row["documents_id"]])]
    return [
        Example(
            plain(row["claim"]),
            sets[row["documents_id"]],
            row["label"] == "supported",
            row.get("question"),
            row.get("model") or row["id"].partition("/")[0],
            row.get("pair", row["id"]),
            fine=row.get("fine", ""),
        )
        for row in claims
    ]


def read_documents(data: Path, name: str) -> dict[str, tuple[str, ...]]:
    """Read the documents that the claims of a set are about.

    Args:
        data: The folder that holds `train/`.
        name: Name of the set, without `claims_`.

    Returns:
        By their ids.
    """
    return _documents_by_id(_read_rows(data, name, "train"))


def _documents_by_id(rows: list[dict[str, Any]]) -> dict[str, tuple[str, ...]]:
    return {row["documents_id"]: tuple(row["documents"]) for row in rows if "documents" in row}


def _read_rows(data: Path, name: str, folder: str) -> list[dict[str, Any]]:
    stem = name if name in EXTRA_SETS else f"claims_{name}"
    path = data / folder / f"{stem}.jsonl.gz"
    if not path.exists():
        msg = f"{path} is missing: point --data at a folder that holds it"
        raise SystemExit(msg)
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def is_held(document: str) -> bool:
    """Tell whether nothing is learned from what is said of a document.

    Args:
        document: Its text, or the first of several.

    Returns:
        Whether it is one of those that are kept for measuring.
    """
    return crc32(document[:200].encode()) % _HELD == 0


def plain(text: str) -> str:
    """Undo what tokenizers of old do to a text.

    Args:
        text: Such as "it 's ( nearly ) done , they say .".

    Returns:
        The text as people write it.
    """
    for before, after in (("-LRB-", "("), ("-RRB-", ")"), ("``", '"'), ("''", '"'), ("\\'", "'")):
        text = text.replace(before, after)
    text = re.sub(r" +([.,;:!?%)](?:\s|$))", r"\1", text)
    text = re.sub(r"\( +", "(", text)
    return re.sub(r" +(['\u2019](?:s|re|ll|ve|d)|n't)\b", r"\1", text).strip()


def _sentences(row: dict[str, Any], documents: tuple[str, ...]) -> Iterator[Example]:
    """Take the claims of an answer as the package finds them, in the order of the answer."""
    for claim in sentence_claims(row["answer"], split_compound=True):
        start, end = claim.start or 0, claim.end or 0
        marked = sum(
            max(0, min(span["end"], end) - max(span["start"], start)) for span in row["spans"]
        )
        yield Example(
            claim.text,
            documents,
            marked == 0,
            row["question"],
            row["model"],
            str(row["id"]),
            marked,
        )


def _short_answers(rows: list[dict[str, str]]) -> Iterator[Example]:
    for number, row in enumerate(rows):
        for key, supported in (("right_answer", True), ("hallucinated_answer", False)):
            yield Example(
                row[key], (row["knowledge"],), supported, row["question"], key, str(number)
            )


def _pairs(rows: list[dict[str, Any]]) -> Iterator[Example]:
    for number, row in enumerate(rows):
        documents = (row["premise"], *row.get("other_evidence", ()))
        supported = row["label"] == "entailment"
        yield Example(
            row["hypothesis"], documents, supported, None, "all", str(number), fine=row["label"]
        )
