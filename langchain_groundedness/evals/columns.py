"""Reads rows for evaluation out of mappings, columns, and what LangSmith hands to evaluators."""

import ast
import io
import json
import math
import tokenize
from collections.abc import Iterable, Iterator, Mapping, Sequence
from numbers import Real
from types import MappingProxyType
from typing import Any, NamedTuple

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from pydantic import ValidationError

from langchain_groundedness.audit.record import plain_mapping
from langchain_groundedness.evals.readers import listed
from langchain_groundedness.evals.values import EvaluationRow
from langchain_groundedness.exceptions import ConfigurationError, InputFormatError
from langchain_groundedness.inputs.formats import read_input

__all__ = ["COLUMNS", "Example", "find_columns", "read_cells", "read_columns", "read_row"]

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "question": ("question", "input", "query", "user_input"),
    "answer": (
        "answer",
        "predicted_answer",
        "prediction",
        "response",
        "result",
        "output",
        "output_text",
        "generation",
        "actual_output",
    ),
    "documents": (
        "documents",
        "contexts",
        "context",
        "retrieved_contexts",
        "retrieval_context",
        "source_documents",
        "input_documents",
    ),
    "reference": (
        "reference",
        "reference_answer",
        "ground_truth",
        "ground_truths",
        "ground_truth_answer",
        "expected_output",
        "expected_answer",
    ),
    "label": ("label",),
}
"""By field of `EvaluationRow`: the names of columns read as it; the first that is there counts."""

_AGENT = frozenset({"messages", "structured_response"})


def read_row(value: object, *, row_id: str = "row") -> EvaluationRow:
    """Read a row."""
    if isinstance(value, EvaluationRow):
        return value
    if isinstance(value, Example):
        return _read_example(value)
    if not isinstance(value, Mapping):
        msg = (
            f"a row is an EvaluationRow or a mapping with some of {_names()}, "
            f"got {type(value).__name__}"
        )
        raise InputFormatError(msg)
    parts = {str(key): None if is_missing(inner) else inner for key, inner in value.items()}
    found = {field: _first(parts, names) for field, names in COLUMNS.items()}
    if found["answer"] is None and _AGENT & set(parts):
        state = read_input(parts)
        found["answer"] = state.answer
        found["documents"] = found["documents"] or state.documents or None
        found["question"] = found["question"] or state.question
    there = [[n for n in names if parts.get(n) is not None] for names in COLUMNS.values()]
    known = {*(names[0] for names in there if names), *_AGENT, "id", "metadata"}
    metadata = {k: v for k, v in parts.items() if k not in known and not _is_blank(k, v)}
    given = parts.get("id")
    return EvaluationRow(
        id=row_id if given is None else str(given),
        question=_question(found["question"]),
        answer=_text(found["answer"], "answer"),
        documents=read_documents(found["documents"]),
        reference=_text(found["reference"], "reference"),
        label=_label(found["label"]),
        metadata={**_metadata(parts.get("metadata")), **metadata},
    )


def read_columns(
    *,
    questions: Sequence[Any] | None = None,
    contexts: Sequence[Any] | None = None,
    predicted_answers: Sequence[Any] | None = None,
    reference_answers: Sequence[Any] | None = None,
) -> list[EvaluationRow]:
    """Read rows of columns of the same length."""
    columns = {
        "questions": questions,
        "contexts": contexts,
        "predicted_answers": predicted_answers,
        "reference_answers": reference_answers,
    }
    given = {name: column for name, column in columns.items() if column is not None}
    for name, column in given.items():
        if isinstance(column, str | Mapping) or not hasattr(column, "__len__"):
            msg = f"{name} must be a list with one entry per row, got {type(column).__name__}"
            raise InputFormatError(msg)
    lengths = {name: len(column) for name, column in given.items()}
    if len(set(lengths.values())) != 1:
        told = ", ".join(f"{name} has {length}" for name, length in lengths.items()) or "none came"
        msg = f"the columns must be of one length, and there must be one: {told}"
        raise InputFormatError(msg)
    fields = dict(zip(columns, ("question", "documents", "answer", "reference"), strict=True))
    rows = []
    for place, values in enumerate(zip(*given.values(), strict=True)):
        parts = {fields[name]: value for name, value in zip(given, values, strict=True)}
        try:
            rows.append(read_row(parts, row_id=str(place + 1)))
        except InputFormatError as exc:
            msg = f"row {place + 1}: {exc}"
            raise InputFormatError(msg) from None
    return rows


class Example(NamedTuple):
    """What LangSmith's `evaluate`, and those who call openevals, hand to an evaluator."""

    inputs: object
    """What went into the chain: a mapping, or the question."""
    outputs: object
    """What came out: a mapping with answer and documents, or the answer."""
    reference_outputs: object
    """What should have come out: a mapping with it as answer, or the answer."""
    extra: Mapping[str, Any]
    """Further arguments, such as `context=`."""


def _read_example(example: Example) -> EvaluationRow:
    """Read an example; documents are looked for in `extra`, the outputs and the inputs."""
    asked, said = _parts(example.inputs, "question"), _parts(example.outputs, "answer")
    given = {**asked, **said, **example.extra}
    right: Any = example.reference_outputs
    if isinstance(right, Mapping):
        right = _first(right, (*COLUMNS["reference"], *COLUMNS["answer"]))
    return read_row(
        {
            "question": _first({**said, **asked, **example.extra}, COLUMNS["question"])
            or _asked(asked),
            "answer": _first(said, COLUMNS["answer"]),
            "documents": _first(given, COLUMNS["documents"]),
            "reference": _first(given, COLUMNS["reference"]) if right is None else right,
            **{key: said[key] for key in sorted(_AGENT & set(said))},
        }
    )


def _asked(inputs: Mapping[str, Any]) -> str | None:
    """Give the question of an agent's input."""
    messages = inputs.get("messages")
    return read_input({"answer": "", "messages": messages}).question if messages else None


def read_documents(value: object) -> tuple[Document, ...] | None:
    """Read documents."""
    if value is None:
        return None
    if isinstance(value, Mapping) and (inner := _first(value, COLUMNS["documents"])) is not None:
        value = inner
    if hasattr(value, "tolist"):  # arrays, which come from Parquet files
        value = value.tolist()
    try:
        return read_input({"answer": "", "documents": value}).documents
    except InputFormatError as exc:
        try:
            return as_documents(value)
        except ValueError as why:
            msg = f"{why}. {exc}"
            raise InputFormatError(msg, keys=exc.keys) from None


def _parts(value: object, field: str) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return {str(key): inner for key, inner in value.items()}
    return {} if value is None else {field: value}


def _is_blank(name: str, value: object) -> bool:
    """Tell whether this is a field of the row that was left open."""
    return value is None and any(name in names for names in COLUMNS.values())


def _first(parts: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((parts[name] for name in names if not is_missing(parts.get(name))), None)


def _question(value: object) -> str | None:
    if isinstance(value, list | tuple) and value and isinstance(value[-1], BaseMessage):
        value = value[-1]
    return _text(value, "question")


def _text(value: object, field: str) -> str | None:
    if value is None or isinstance(value, str):
        return None if value is None else str(value)
    if isinstance(value, BaseMessage):
        return str(value.text)
    if field == "reference":
        value = single_text(value)
    if field != "question":
        return read_input({"answer": value}).answer
    msg = f"the {field} must be a text, got {type(value).__name__}"
    raise InputFormatError(msg)


def _label(value: object) -> str | bool | float | None:
    if value is None or isinstance(value, str | bool | int | float):
        return value
    msg = f"the label must be a text, a number or a truth value, got {type(value).__name__}"
    raise InputFormatError(msg)


def _metadata(value: object) -> dict[str, Any]:
    if value is None:
        return {}
    return dict(value) if isinstance(value, Mapping) else {"metadata": value}


def _names() -> str:
    return ", ".join(repr(name) for names in COLUMNS.values() for name in names)


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
    """Make a row."""
    given = {field: _value(cells.get(column)) for field, column in columns.items()}
    given["reference"] = single_text(given.get("reference"))
    whole = _cells_text("id", given.get("id"))
    row: dict[str, Any] = {
        "id": name if whole is None else whole,
        "label": _cells_label(given.get("label")),
        "metadata": plain_mapping(_others(cells, frozenset(columns.values()))),
    }
    row |= {
        field: _cells_text(field, given.get(field)) for field in ("question", "answer", "reference")
    }
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
    """Tell whether a cell is empty, in the ways that tables write it."""
    if value is None or type(value).__name__ in _NOTHING_OF_PANDAS:
        return True
    return isinstance(value, Real) and not isinstance(value, int) and math.isnan(value)


def as_documents(value: Any) -> tuple[Document, ...]:
    """Read documents."""
    return tuple(_documents(value))


def single_text(value: Any) -> Any:
    """Take a reference out of a list of one, as ragas' `ground_truths` has it."""
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


def _cells_text(field: str, value: Any) -> str | None:
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


def _cells_label(value: Any) -> str | bool | float | None:
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


_OF_RECORDS = {
    "question": ("inputs",),
    "answer": ("outputs",),
    "reference": ("reference_outputs",),
}
"""Names besides, in files and in exports of LangSmith."""

FIELDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "id": ("id",),
        **{
            field: tuple(dict.fromkeys((*names, *_OF_RECORDS.get(field, ()))))
            for field, names in COLUMNS.items()
        },
    }
)
"""The parts of a row, and the names of columns that are known to hold them."""

_REFERENCES = ("reference", "reference_outputs")


def find_columns(seen: Sequence[str], given: Mapping[str, str] | None = None) -> Mapping[str, str]:
    """Tell which column holds which part of a row.

    Names are compared without regard to case, spaces and hyphens. Of a nested column, such as
    `inputs.question`, the last name counts; what stands under `reference` or `reference_outputs`
    belongs to the reference.
    """
    given = _by_field(given or {})
    for field, column in given.items():
        if column not in seen:
            msg = f"there is no column {column!r} for {field}; the columns are {_listed(seen)}"
            raise InputFormatError(msg, keys=tuple(seen))
    found = dict(given)
    for field in FIELDS:
        if field in found:
            continue
        fitting = [name for name in seen if name not in given.values() and _part(name) == field]
        if len(fitting) > 1:
            msg = (
                f"more than one column may hold the {field}: {_listed(fitting)}; say which with "
                f"columns={{{field!r}: {fitting[0]!r}}}, or --column {field}={fitting[0]}. "
                f"The columns are {_listed(seen)}"
            )
            raise InputFormatError(msg, keys=tuple(seen))
        if fitting:
            found[field] = fitting[0]
    return MappingProxyType(found)


def _by_field(given: Mapping[str, str]) -> dict[str, str]:
    """Take parts under any name that is known for them, as `contexts` for the documents."""
    found: dict[str, str] = {}
    for name, column in given.items():
        field = next((f for f, names in FIELDS.items() if _folded(name) in names), None)
        if field is None:
            msg = f"a row has no part {name!r}; accepted: {', '.join(FIELDS)}"
            raise ConfigurationError(msg)
        if found.setdefault(field, column) != column:
            msg = f"two columns are named for the {field}: {found[field]!r} and {column!r}"
            raise ConfigurationError(msg)
    return found


def _part(column: str) -> str | None:
    """Give the part of a row that a column holds by its name, if its name says so."""
    *above, name = (_folded(each) for each in column.split("."))
    field = next((field for field, names in FIELDS.items() if name in names), None)
    if not above:
        return field
    if above[0] in _REFERENCES:
        return "reference" if field in {"answer", "reference"} else None
    return None if field in {"id", "label"} else field


def _folded(name: str) -> str:
    return name.strip().casefold().replace(" ", "_").replace("-", "_")


def _listed(columns: Sequence[str]) -> str:
    return listed(tuple(columns))
