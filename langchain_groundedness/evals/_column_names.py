"""Which column of a data set holds what: found by name, or as somebody says."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from langchain_groundedness.evals._records import listed
from langchain_groundedness.evals.columns import COLUMNS
from langchain_groundedness.exceptions import ConfigurationError, InputFormatError

__all__ = ["FIELDS", "find_columns"]

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

    Args:
        seen: The columns that there are.
        given: The column of each part where somebody has said it, under any of its names; comes
            before what is found.

    Returns:
        By part of the row, for the parts that there are.

    Raises:
        ConfigurationError: A part is named that rows do not have.
        InputFormatError: A column is named that is not there, or two columns may hold the same
            part; the message lists the columns.
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
