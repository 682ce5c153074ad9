"""Layouts of records other than one flat record per row: nested ones, and claims with documents."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from langchain_groundedness.evals._records import Record

__all__ = ["flattened", "joined_claims"]

_NESTS = ("inputs", "outputs", "reference", "reference_outputs")


def flattened(records: Iterable[Record]) -> Iterator[Record]:
    """Take apart what LangSmith exports nested: `{"inputs": {"question": ...}, ...}`.

    Args:
        records: Records as they were read; nested parts may be written as JSON.

    Yields:
        Records with columns such as `inputs.question`; others as they are.
    """
    for record in records:
        if record.cells is None or not any(name in record.cells for name in _NESTS):
            yield record
        else:
            yield record._replace(cells=dict(_flat(record.cells)))


def _flat(cells: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in cells.items():
        nested = _nested(value) if name in _NESTS else None
        if nested is None:
            yield name, value
        else:
            yield from ((f"{name}.{key}", each) for key, each in nested.items())


def _nested(value: Any) -> Mapping[str, Any] | None:
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, Mapping) else None


def joined_claims(records: Iterable[Record]) -> Iterator[Record]:
    """Give claims the documents that they refer to by `documents_id`.

    A record with `documents` and no claim defines a set of documents; every other one is a
    claim (or an answer), which becomes the answer of a row.

    Args:
        records: The records; documents before the claims that refer to them.

    Yields:
        One record per claim.
    """
    known: dict[str, Any] = {}
    for record in records:
        cells = record.cells
        if cells is None:
            yield record
        elif "documents" in cells and "claim" not in cells and "answer" not in cells:
            known[str(cells.get("documents_id"))] = cells["documents"]
        elif "documents" in cells:
            yield record._replace(cells=_as_answer(cells))
        elif (key := str(cells.get("documents_id"))) in known:
            yield record._replace(cells={**_as_answer(cells), "documents": known[key]})
        else:
            why = "no earlier line holds the documents that its documents_id names"
            yield record._replace(cells=None, fault=why)


def _as_answer(cells: Mapping[str, Any]) -> dict[str, Any]:
    return {"answer" if name == "claim" else name: value for name, value in cells.items()}
