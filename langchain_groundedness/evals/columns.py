"""Maps columns of data sets, mappings and LangSmith examples to the fields of a row."""

import ast
import io
import json
import math
import tokenize
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from numbers import Real
from typing import Any, NamedTuple, NoReturn, TypedDict, Unpack

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage

from langchain_groundedness.audit.record import plain_mapping
from langchain_groundedness.evals.readers import list_columns
from langchain_groundedness.evals.values import EvaluationRow
from langchain_groundedness.exceptions import ConfigurationError, InputFormatError
from langchain_groundedness.inputs.formats import (
    TEXT_KEYS,
    InputReader,
    as_document,
    flatten_documents,
    read_input,
)

__all__ = [
    "COLUMNS",
    "Example",
    "RowColumns",
    "find_columns",
    "read_cells",
    "read_columns",
    "read_row",
]

COLUMNS: Mapping[str, tuple[str, ...]] = {
    field: tuple(names.split())
    for field, names in {
        "question": "question input query user_input",
        "answer": "answer predicted_answer prediction response result output output_text generation"
        " actual_output",
        "documents": "documents contexts context retrieved_contexts retrieval_context"
        " source_documents input_documents",
        "reference": "reference reference_answer ground_truth ground_truths ground_truth_answer"
        " expected_output expected_answer",
        "label": "label",
    }.items()
}
"""Accepted column names by field of `EvaluationRow`; the first one present counts."""

_DATASET_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "id": ("id",),
    **COLUMNS,
    "question": (*COLUMNS["question"], "inputs"),
    "answer": (*COLUMNS["answer"], "outputs"),
    "reference": (*COLUMNS["reference"], "reference_outputs"),
}
"""The same for data sets, with the column names of LangSmith exports."""

_FIELD_BY_NAME = {name: field for field, names in _DATASET_COLUMNS.items() for name in names}

_KNOWN_NAMES = frozenset(chain.from_iterable(COLUMNS.values()))
_AGENT_KEYS = frozenset({"messages", "structured_response"})
_PANDAS_MISSING = ("NAType", "NaTType")


class Example(NamedTuple):
    """The arguments that LangSmith's `evaluate` and openevals pass to an evaluator."""

    inputs: object
    """The chain's input: a mapping, or the question."""
    outputs: object
    """The chain's output: a mapping with answer and documents, or the answer."""
    reference_outputs: object
    """The expected output: a mapping with the answer, or the answer."""
    extra: Mapping[str, Any]
    """Further arguments, such as `context=`."""


def read_row(value: object, *, row_id: str = "row") -> EvaluationRow:
    """Read a row from a mapping (such as an agent's state) or an example."""
    if isinstance(value, EvaluationRow):
        return value
    if isinstance(value, Example):
        value = _example_parts(value)
    if not isinstance(value, Mapping):
        names = ", ".join(map(repr, sorted(_KNOWN_NAMES)))
        _refuse("row", f"an EvaluationRow or a mapping with some of {names}", value)
    parts = {str(key): _cell(inner) for key, inner in value.items()}
    columns = {field: _first_name(parts, known) for field, known in COLUMNS.items()}
    found = {field: parts.get(name) for field, name in {**columns, "id": "id"}.items()}
    found |= _as_chain_output(parts, found)
    return _make_row(_unwrapped(found), _metadata(parts, set(columns.values())), row_id)


def _as_chain_output(parts: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    """Find what is missing as in the output of a chain or an agent."""
    answer, question, documents = (found[name] for name in ("answer", "question", "documents"))
    if answer is None:
        try:
            output = read_input(parts, evidence="turn")  # retrieval is scored for its question
        except InputFormatError:
            if _AGENT_KEYS & set(parts):
                raise
        else:
            answer, question = output.answer, question or output.question
            documents = documents or output.documents or None
    if documents is None:
        documents = InputReader().documents_in(parts) or None
    return {"answer": answer, "question": question, "documents": documents}


def _unwrapped(found: dict[str, Any]) -> dict[str, Any]:
    """Unpack structured values: messages as the question, a retriever's output as documents."""
    question, documents = found["question"], found["documents"]
    if isinstance(question, list | tuple) and question and isinstance(question[-1], BaseMessage):
        question = question[-1]
    if isinstance(documents, Mapping):
        documents = documents.get(_first_name(documents, COLUMNS["documents"]), documents)
    found |= {"question": question, "documents": documents}
    found["reference"] = _single_text(found["reference"])
    for field in ("answer", "reference"):
        if not isinstance(found[field], str | BaseMessage | None):
            found[field] = read_input({"answer": found[field]}).answer
    return found


def _metadata(parts: Mapping[str, Any], used: set[str]) -> dict[str, Any]:
    """Return the parts that are not fields of a row."""
    used |= {"id", "metadata", *_AGENT_KEYS}
    rest = {name: value for name, value in parts.items() if name not in used}
    rest = {k: v for k, v in rest.items() if v is not None or k not in _KNOWN_NAMES}
    given = parts.get("metadata") or {}
    return {**(given if isinstance(given, Mapping) else {"metadata": given}), **rest}


class RowColumns(TypedDict, total=False):
    """The arguments of `read_columns`."""

    questions: Sequence[str] | None
    contexts: Sequence[Any] | None
    predicted_answers: Sequence[str] | None
    reference_answers: Sequence[str] | None


_FIELDS = dict(
    zip(RowColumns.__annotations__, ("question", "documents", "answer", "reference"), strict=True)
)


def read_columns(**columns: Unpack[RowColumns]) -> list[EvaluationRow]:
    """Read rows of columns of the same length."""
    given: dict[str, Any] = {name: column for name, column in columns.items() if column is not None}
    for name, column in given.items():
        if name not in _FIELDS:
            msg = f"there is no column {name}; accepted: {', '.join(_FIELDS)}"
            raise InputFormatError(msg)
        if isinstance(column, str | Mapping) or not hasattr(column, "__len__"):
            _refuse(name, "a list with one entry per row", column)
    if len({len(column) for column in given.values()}) != 1:
        found = ", ".join(f"{name} has {len(column)}" for name, column in given.items())
        msg = f"columns must all have the same length; {found or 'no column was given'}"
        raise InputFormatError(msg)
    fields, rows = [_FIELDS[name] for name in given], []
    for number, values in enumerate(zip(*given.values(), strict=True), 1):
        try:
            rows.append(read_row(dict(zip(fields, values, strict=True)), row_id=str(number)))
        except InputFormatError as exc:
            msg = f"row {number}: {exc}"
            raise InputFormatError(msg) from None
    return rows


def read_cells(
    cells: Mapping[str, Any],
    columns: Mapping[str, str],
    *,
    row_id: str,
    separator: str | None = None,
    is_table: bool = False,
) -> EvaluationRow:
    """Read a row from the cells of a record; `columns` maps parts of a row to columns."""
    found = {field: _cell(cells.get(column)) for field, column in columns.items()}
    found["reference"] = _single_text(found.get("reference"))
    documents = found.get("documents")
    if isinstance(documents, str) and separator is not None:
        found["documents"] = [part for part in documents.split(separator) if part.strip()]
    elif isinstance(documents, str) and is_table:
        found["documents"] = _unpacked_list(documents)
    used = set(columns.values())
    rest = {key: _cell(value) for key, value in cells.items() if key not in used}
    if isinstance(rest.get("metadata"), Mapping):
        rest = {**rest.pop("metadata"), **rest}
    row = _make_row(found, plain_mapping(rest), row_id)
    if row.documents:
        plain = (
            d.model_copy(update={"metadata": plain_mapping(d.metadata)}) for d in row.documents
        )
        row = row.model_copy(update={"documents": tuple(plain)})
    try:
        json.dumps(row.model_dump(), ensure_ascii=False, default=str).encode("utf-8")
    except UnicodeEncodeError:
        msg = "not valid UTF-8 text; convert it first"
        raise InputFormatError(msg) from None
    return row


def find_columns(names: Sequence[str], given: Mapping[str, str] | None = None) -> Mapping[str, str]:
    """Tell which column holds which part of a row.

    Case, spaces and hyphens in names do not matter. Of a nested column, such as
    `inputs.question`, the last name counts; columns under `reference` or `reference_outputs`
    belong to the reference.
    """
    found: dict[str, str] = {}
    for name, column in (given or {}).items():
        if (field := _FIELD_BY_NAME.get(_folded(name))) is None:
            accepted = ", ".join(_DATASET_COLUMNS)
            msg = f"unknown field {name!r} in columns= or --column; accepted: {accepted}"
            raise ConfigurationError(msg)
        if found.setdefault(field, column) != column:
            msg = f"two columns are named for the {field}: {found[field]!r} and {column!r}"
            raise ConfigurationError(msg)
        if column not in names:
            msg = (
                f"there is no column {column!r} for {field}; the columns are {list_columns(names)}"
            )
            raise InputFormatError(msg, keys=tuple(names))
    free = [name for name in names if name not in found.values()]
    for field in _DATASET_COLUMNS:
        fitting = [name for name in free if field not in found and _field_of(name) == field]
        if len(fitting) > 1:
            option = f"columns={{{field!r}: {fitting[0]!r}}}, or --column {field}={fitting[0]}"
            msg = (
                f"more than one column may hold the {field}: {list_columns(fitting)}; say {option}"
            )
            raise InputFormatError(msg, keys=tuple(names))
        if fitting:
            found[field] = fitting[0]
    return found


def _field_of(column: str) -> str | None:
    """Give the part of a row that a column holds by its name, if its name says so."""
    *above, name = (_folded(each) for each in column.split("."))
    field = _FIELD_BY_NAME.get(name)
    if not above:
        return field
    if above[0] in {"reference", "reference_outputs"}:
        return "reference" if field in {"answer", "reference"} else None
    return None if field in {"id", "label"} else field


def _folded(name: str) -> str:
    return name.strip().casefold().replace(" ", "_").replace("-", "_")


def _example_parts(example: Example) -> dict[str, Any]:
    """Name the parts of an example; documents are looked for in `extra`, outputs and inputs."""

    def first(parts: Mapping[str, Any], *fields: str) -> Any:
        return parts.get(_first_name(parts, [name for field in fields for name in COLUMNS[field]]))

    asked, said = _named(example.inputs, "question"), _named(example.outputs, "answer")
    given = {**asked, **said, **example.extra}
    question = first({**said, **asked, **example.extra}, "question")
    if question is None and asked.get("messages"):  # the input of an agent
        question = read_input({"answer": "", "messages": asked["messages"]}).question
    right: Any = example.reference_outputs
    if isinstance(right, Mapping):
        right = first(right, "reference", "answer")
    documents = first(given, "documents")
    found = {"question": question, "answer": first(said, "answer"), "documents": documents}
    reference = first(given, "reference") if right is None else right
    return {**_as_chain_output(said, found), "reference": reference}


def _named(value: object, field: str) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return {str(key): inner for key, inner in value.items()}
    return {} if value is None else {field: value}


def _first_name(parts: Mapping[str, Any], names: Sequence[str]) -> str:
    return next((name for name in names if _cell(parts.get(name)) is not None), "")


def _cell(value: Any) -> Any:
    """Return the value of a cell: `None` for empty cells, plain types for numpy's."""
    if value is None or type(value).__name__ in _PANDAS_MISSING:
        return None
    if isinstance(value, Real) and not isinstance(value, int) and math.isnan(value):
        return None
    to_list = getattr(value, "tolist", None)
    return to_list() if callable(to_list) and not isinstance(value, str) else value


def _make_row(found: Mapping[str, Any], metadata: Mapping[str, Any], row_id: str) -> EvaluationRow:
    label, documents, identity = (found.get(name) for name in ("label", "documents", "id"))
    if not isinstance(label, str | bool | int | float | None):
        _refuse("label", "a text, a number, or true or false", label)
    if isinstance(identity, Mapping | list | tuple):
        _refuse("id", "a text", identity)
    return EvaluationRow(
        id=row_id if identity is None else str(identity),
        question=_text("question", found.get("question")),
        answer=_text("answer", found.get("answer")),
        documents=None if documents is None else tuple(_documents(documents)),
        reference=_text("reference", found.get("reference")),
        label=label,
        metadata=dict(metadata),
    )


def _text(field: str, value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, BaseMessage):
        return str(value.text)
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        _refuse(field, "a text", value)
    return str(value)


def _single_text(value: Any) -> Any:
    """Take a reference out of a list of one, as ragas' `ground_truths` has it."""
    if not isinstance(value, list | tuple) or any(isinstance(each, BaseMessage) for each in value):
        return value
    if len(value) == 1:
        return value[0]
    msg = f"reference: expected one text, got a list of {len(value)}; give one reference per row"
    raise InputFormatError(msg)


def _unpacked_list(text: str) -> Any:
    """Read a list that is written as text, in JSON or Python; return other texts as they are."""
    if not text.lstrip().startswith("["):
        return text
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = _python_list(text.strip())
    return found if isinstance(found, list) else text


def _python_list(text: str) -> list[str] | None:
    """Read a list of texts as `str(list)` writes it, such as pandas into CSV."""
    try:
        found = ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        return None
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    if sum(token.type == tokenize.STRING for token in tokens) != len(found):
        # numpy writes arrays without commas, and Python joins adjacent string literals
        msg = "documents: a list without commas, as numpy writes it; write it as JSON"
        raise InputFormatError(msg)
    return found


def _documents(value: Any) -> Iterator[Document]:
    if isinstance(value, str | Document | Mapping):
        value = [value]
    if not isinstance(value, Iterable):
        _refuse("documents", "a list of texts", value)
    for number, each in enumerate(flatten_documents([_cell(item) for item in value]), 1):
        if (found := as_document(_cell(each))) is None:
            if isinstance(each, Mapping):
                msg = f"documents: number {number} has no text under any of {', '.join(TEXT_KEYS)}"
                raise InputFormatError(msg)
            _refuse(f"documents: number {number}", "a text or an object with page_content", each)
        yield found


def _refuse(part: str, expected: str, value: object) -> NoReturn:
    kind = "nothing" if value is None else type(value).__name__
    msg = f"{part}: expected {expected}, got {kind}"
    raise InputFormatError(msg)
