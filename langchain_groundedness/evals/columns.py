"""Reads rows for evaluation out of mappings, columns, and what LangSmith hands to evaluators."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage

from langchain_groundedness.evals._cells import as_documents, is_missing, single_text
from langchain_groundedness.evals.values import EvaluationRow
from langchain_groundedness.exceptions import InputFormatError
from langchain_groundedness.inputs import read_input

__all__ = ["COLUMNS", "Example", "read_columns", "read_row"]

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
    """Read a row.

    Args:
        value: An `EvaluationRow`, an `Example`, or a mapping with the names in `COLUMNS`; what is
            under no such name is kept as metadata. The state of an agent is read as by
            `read_input`.
        row_id: Its id, if it has none under `id`.

    What pandas writes for nothing (`NaN`, `NA`, `NaT`) is missing, as `None` is.

    Returns:
        The row.

    Raises:
        InputFormatError: It is neither, or a part of it has a type that cannot be read; also
            several references.
    """
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
    """Read rows of columns of the same length.

    Args:
        questions: Questions.
        contexts: For each question a list of texts or `Document`s.
        predicted_answers: Answers.
        reference_answers: The right answers.

    Returns:
        The rows, with their numbers from 1 as ids.

    Raises:
        InputFormatError: There is no column, their lengths differ, or a value cannot be read; the
            message names its place.
    """
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
    """Read documents.

    Args:
        value: A list of texts, `Document`s or mappings with `page_content`, `content` or `text`,
            or one text; or a mapping that has these under a name in `COLUMNS`, as in the examples
            of openevals.

    Returns:
        The documents, `None` for `None`.

    Raises:
        InputFormatError: Something else came.
    """
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
