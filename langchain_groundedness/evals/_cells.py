"""Turns the cells of a record into a row; what does not fit is said without quoting it."""

import ast
import io
import json
import math
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from numbers import Real
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from pydantic import ValidationError

from langchain_groundedness.audit._plain import plain_mapping
from langchain_groundedness.evals.values import EvaluationRow
from langchain_groundedness.exceptions import InputFormatError

__all__ = ["as_documents", "is_missing", "read_cells", "single_text"]

_TEXT_KEYS = ("page_content", "content", "text")
_NOTHING_OF_PANDAS = ("NAType", "NaTType")


def read_cells(
    cells: Mapping[str, Any],
    columns: Mapping[str, str],
    *,
    name: str,
    separator: str | None = None,
    holds_texts: bool = False,
) -> EvaluationRow:
    """Make a row.

    Args:
        cells: By column.
        columns: The column of each part of a row.
        name: Id of the row if it has none of its own.
        separator: What stands between documents that are written into one text.
        holds_texts: Whether lists may be written as text.

    Returns:
        The row; columns that hold no part of it are its metadata.

    Raises:
        ValueError: A cell does not fit; the message says which, and what is accepted.
    """
    given = {field: _value(cells.get(column)) for field, column in columns.items()}
    given["reference"] = single_text(given.get("reference"))
    whole = _text("id", given.get("id"))
    row: dict[str, Any] = {
        "id": name if whole is None else whole,
        "label": _label(given.get("label")),
        "metadata": plain_mapping(_others(cells, frozenset(columns.values()))),
    }
    row |= {field: _text(field, given.get(field)) for field in ("question", "answer", "reference")}
    found = given.get("documents")
    if isinstance(found, str) and (holds_texts or separator is not None):
        found = _unpacked(found, separator)
    row["documents"] = None if found is None else as_documents(found)
    _refuse_half_characters(row)
    try:
        return EvaluationRow(**row)
    except ValidationError as exc:
        fault = exc.errors(include_url=False, include_input=False, include_context=False)[0]
        msg = f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}"
        raise ValueError(msg) from None  # the cause quotes the value


def is_missing(value: Any) -> bool:
    """Tell whether a cell is empty, in the ways that tables write it.

    Args:
        value: What the cell holds.

    Returns:
        True for `None`, numbers that are none, and what pandas puts in their place.
    """
    if value is None or type(value).__name__ in _NOTHING_OF_PANDAS:
        return True
    return isinstance(value, Real) and not isinstance(value, int) and math.isnan(value)


def as_documents(value: Any) -> tuple[Document, ...]:
    """Read documents.

    Args:
        value: A list of texts, `Document`s, or mappings with their text under `page_content`,
            `content` or `text`; or one of these.

    Returns:
        The documents.

    Raises:
        ValueError: One of them cannot be read; the message says which.
    """
    return tuple(_documents(value))


def single_text(value: Any) -> Any:
    """Take a reference out of a list of one, as ragas' `ground_truths` has it.

    Args:
        value: A reference.

    Returns:
        It; other values as they are.

    Raises:
        InputFormatError: There are several: metrics compare with one, and joined they are another.
    """
    if not isinstance(value, list | tuple) or any(isinstance(each, BaseMessage) for each in value):
        return value
    if len(value) == 1:
        return value[0]
    msg = f"reference: one text is needed, got a list of {len(value)}; give one reference per row"
    raise InputFormatError(msg)


def _value(value: Any) -> Any:
    """Give what a cell holds, numbers and arrays of numpy as Python has them."""
    if is_missing(value):
        return None
    convert = getattr(value, "tolist", None)
    return convert() if callable(convert) and not isinstance(value, str) else value


def _others(cells: Mapping[str, Any], used: frozenset[str]) -> dict[str, Any]:
    rest = {key: _value(value) for key, value in cells.items() if key not in used}
    inner = rest.get("metadata")
    if isinstance(inner, Mapping):
        rest = {**inner, **{key: value for key, value in rest.items() if key != "metadata"}}
    return rest


def _text(field: str, value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, str):
        return str(value)
    if isinstance(value, BaseMessage):
        return str(value.text)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number or (field == "id" and not isinstance(value, Mapping | list | tuple)):
        return str(value)
    msg = f"{field}: a text is needed, got {type(value).__name__}"
    raise ValueError(msg)


def _label(value: Any) -> str | bool | float | None:
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int | float):
        return float(value)
    msg = f"label: a text, a number or a truth value is needed, got {type(value).__name__}"
    raise ValueError(msg)


def _unpacked(text: str, separator: str | None) -> Any:
    """Read documents that stand in one text: a list, as JSON or Python write it, or separated."""
    if separator is not None:
        return [part for part in text.split(separator) if part.strip()]
    if not text.lstrip().startswith("["):
        return text
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = _python_list(text)
    return found if isinstance(found, list) else text


def _python_list(text: str) -> list[str] | None:
    """Read a list of texts as `str(list)` writes it, such as pandas into CSV."""
    try:
        found = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        return None
    texts = sum(
        token.type == tokenize.STRING
        for token in tokenize.generate_tokens(io.StringIO(text.strip()).readline)
    )
    if texts != len(found):  # arrays of numpy are written without commas, which joins the texts
        msg = "documents: a list without commas, as numpy writes it; write it as JSON"
        raise ValueError(msg)
    return found


def _documents(value: Any) -> Iterator[Document]:
    if isinstance(value, str | Document | Mapping):
        value = [value]
    if not isinstance(value, Iterable):
        msg = f"documents: a list of texts is needed, got {type(value).__name__}"
        raise ValueError(msg)  # noqa: TRY004  (reported as the others)
    for place, each in enumerate(value, 1):
        yield _document(_value(each), place)


def _document(value: Any, place: int) -> Document:
    if isinstance(value, str):
        return Document(page_content=str(value))
    if isinstance(value, Document):
        value = {"page_content": value.page_content, "metadata": value.metadata, "id": value.id}
    if not isinstance(value, Mapping):
        kind = "an empty one" if value is None else type(value).__name__
        msg = f"documents: number {place} is no text and no object with page_content, but {kind}"
        raise ValueError(msg)  # noqa: TRY004  (reported as the others)
    key = next((key for key in _TEXT_KEYS if isinstance(value.get(key), str)), None)
    if key is None:
        msg = f"documents: number {place} has no text under any of {', '.join(_TEXT_KEYS)}"
        raise ValueError(msg)
    metadata, identity = value.get("metadata"), value.get("id")
    return Document(
        page_content=str(value[key]),
        metadata=plain_mapping(metadata) if isinstance(metadata, Mapping) else {},
        id=None if is_missing(identity) else str(identity),
    )


def _refuse_half_characters(row: Mapping[str, Any]) -> None:
    texts = [value for value in row.values() if isinstance(value, str)]
    texts += [document.page_content for document in row["documents"] or ()]
    texts += [
        json.dumps(
            [row["metadata"], [d.metadata for d in row["documents"] or ()]], ensure_ascii=False
        )
    ]
    for text in texts:
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            msg = "not UTF-8 text, or text with halves of characters; convert it first"
            raise ValueError(msg) from None
