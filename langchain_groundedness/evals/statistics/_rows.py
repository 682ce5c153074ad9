"""What statistics read of a run: its rows, and metrics and columns that it really has."""

from collections.abc import Iterable, Sequence
from os import PathLike

from langchain_groundedness.evals._records import listed
from langchain_groundedness.evals.values import EvaluatedRow, EvaluationRun
from langchain_groundedness.exceptions import ConfigurationError

__all__ = ["require_column", "require_metric", "require_run", "rows_of"]


def rows_of(given: EvaluationRun | Iterable[EvaluatedRow]) -> list[EvaluatedRow]:
    """Take the rows of a run.

    Args:
        given: A run, or rows.

    Returns:
        The rows.

    Raises:
        ConfigurationError: It is neither.
    """
    if isinstance(given, EvaluationRun):
        return list(given.rows)
    if isinstance(given, str) or not isinstance(given, Iterable):
        require_run(given, "rows")
    rows = list(given)
    wrong = next((each for each in rows if not isinstance(each, EvaluatedRow)), None)
    if wrong is not None:
        msg = f"an EvaluationRun or its rows are needed, got a list of {type(wrong).__name__}"
        raise ConfigurationError(msg)
    return rows


def require_run(given: object, name: str) -> None:
    """Refuse what is no run.

    Args:
        given: What was given.
        name: The argument.

    Raises:
        ConfigurationError: It is no run; of a file name, the message says how to read it.
    """
    if isinstance(given, EvaluationRun):
        return
    is_path = isinstance(given, str | PathLike)
    advice = "; load_run reads one from its file" if is_path else ""
    msg = f"{name}: an EvaluationRun is needed, got {type(given).__name__}{advice}"
    raise ConfigurationError(msg)


def require_metric(rows: Sequence[EvaluatedRow], key: str, which: str = "") -> None:
    """Refuse a metric that no row has.

    Args:
        rows: The rows.
        key: Name of the metric.
        which: Which of several runs it is, in words.

    Raises:
        ConfigurationError: No row has it; the message names those that there are.
    """
    known = {score.key for row in rows for score in row.scores}
    if rows and key not in known:
        run = f"the {which} run" if which else "the run"
        msg = f"{run} has no metric {key!r}; it has: {', '.join(sorted(known)) or 'none'}"
        raise ConfigurationError(msg)


def require_column(rows: Sequence[EvaluatedRow], column: str) -> None:
    """Refuse a column that no row has.

    Args:
        rows: The rows.
        column: Name of a column of the metadata.

    Raises:
        ConfigurationError: No row has it; the message names those that there are.
    """
    known = {name for row in rows for name in row.row.metadata}
    if rows and column not in known:
        msg = f"the rows have no column {column!r}; they have {listed(tuple(sorted(known)))}"
        raise ConfigurationError(msg)
