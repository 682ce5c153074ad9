"""Values of an evaluation: rows, scores and runs, and summaries of runs."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, Self

from langchain_core.documents import Document
from pydantic import AwareDatetime, Field, model_validator
from typing_extensions import override

from langchain_groundedness.exceptions import require
from langchain_groundedness.types import HTML_FORMATTERS, FrozenModel, GroundednessResult, Usage

__all__ = [
    "BadRow",
    "EvaluatedRow",
    "EvaluationRow",
    "EvaluationRun",
    "RowScore",
    "RunHeader",
    "RunTotals",
    "add_usage",
    "summarize",
    "to_pandas",
]


Status = Literal["scored", "failed", "skipped"]


class EvaluationRow(FrozenModel):
    """One example of a data set: a question, its answer, and what they are judged by.

    An evaluator's `needs` names the parts that it needs.
    """

    id: str
    """Unique within a data set."""
    question: str | None = None
    answer: str | None = None
    documents: tuple[Document, ...] | None = None
    """What was retrieved, best first; `()` if nothing was found, `None` if it is not known.

    Metrics that read documents give 0 where nothing was found, or only blank texts, and skip a row
    where it is not known."""
    reference: str | None = None
    """The right answer, as written by a person."""
    label: str | bool | float | None = None
    """A person's label of the answer."""
    metadata: dict[str, Any] = Field(default_factory=dict)
    """The other columns, for slices."""


class RowScore(FrozenModel):
    """What one evaluator found in one row."""

    key: str
    """Name of the metric."""
    score: float | None = Field(default=None, allow_inf_nan=False)
    """`None` unless the status is `scored`: a failure is never a number."""
    status: Status
    """`failed`: something went wrong, or not all of it could be checked; `skipped`: the row lacks
    what the evaluator needs, or has nothing to measure."""
    reason: str | None = None
    """Why there is no score."""
    comment: str = ""
    """The score in words."""
    details: dict[str, Any] = Field(default_factory=dict)
    """What the score was made from, as plain data; each evaluator says what."""
    result: GroundednessResult | None = None
    """The verdicts that the score was counted from, where there are any."""
    usage: Usage = Usage()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.score is None) == (self.status == "scored"):
            msg = f"a score of {self.score} and the status {self.status!r} do not go together"
            raise ValueError(msg)
        if (self.reason is None) != (self.status == "scored"):
            msg = "a reason is given if, and only if, there is no score"
            raise ValueError(msg)
        return self


class EvaluatedRow(FrozenModel):
    """A row with the scores that it got."""

    row: EvaluationRow
    scores: tuple[RowScore, ...]
    """One per evaluator, in their order."""
    line: int | None = None
    """Line of the row in its file, counted from 1."""
    seconds: float | None = None
    """How long all of it took."""


class BadRow(FrozenModel):
    """A row that could not be read and is left out."""

    line: int | None
    id: str | None = None
    reason: str


class RunHeader(FrozenModel):
    """What a run evaluates."""

    name: str
    made: AwareDatetime
    dataset: str
    """Name of the data set, such as its path."""
    digest: str = ""
    """Of the data set's content, to tell whether two runs are over the same rows."""
    evaluators: dict[str, dict[str, Any]]
    """By key of the metric: the class and the options that count, as plain data, without keys."""
    version: str = ""
    """Of this package."""


class EvaluationRun(FrozenModel):
    """The result of an evaluation."""

    header: RunHeader
    rows: tuple[EvaluatedRow, ...]
    """In the order of the data set."""
    bad_rows: tuple[BadRow, ...] = ()
    complete: bool = True
    """False if it was interrupted: rows are missing."""
    seconds: float | None = None
    usage: Usage = Usage()

    @override
    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        """Show counts only; the texts of all rows would flood screens and notebooks."""
        yield "name", self.header.name
        yield "metrics", list(self.header.evaluators)
        yield "rows", len(self.rows)
        yield "bad_rows", len(self.bad_rows)
        yield "complete", self.complete

    def _repr_html_(self) -> str | None:
        shown = HTML_FORMATTERS.get(EvaluationRun)  # registered by `evals.display`
        return shown(self) if shown else None


_MAX_REASONS = 1_000


def summarize(run: EvaluationRun) -> dict[str, Any]:
    """Sum a run up, as `langchain-groundedness evaluate --json` does.

    Args:
        run: The run.

    Returns:
        Plain data: under `metrics` by key the `mean` over the rows that have a score (`None` if
        none has), and how many rows were `scored`, `failed` and `skipped`; `rows`, `bad_rows`,
        `complete`, `seconds` and `usage`.

    Example:
        >>> from langchain_groundedness.evals import BleuEvaluator, evaluate
        >>> run = evaluate([{"answer": "Rome.", "reference": "Rome."}], BleuEvaluator())
        >>> summarize(run)["metrics"]["bleu"]["mean"]
        1.0
    """
    totals = RunTotals(run.header.evaluators)
    for row in run.rows:
        totals.add(row)
    return {
        "metrics": totals.as_dict(),
        "rows": totals.rows,
        **run.model_dump(include={"bad_rows", "complete", "seconds", "usage"}),
    }


def to_pandas(run: EvaluationRun) -> Any:
    """Make a table of the rows of a run, with the score of each metric under its key.

    Args:
        run: The run.

    Returns:
        A pandas DataFrame: `id`, `question`, `answer`, `reference`, `label`, for each metric
        the score, `…_status` and `…_reason`, and the metadata as `metadata.…`.

    Raises:
        MissingDependencyError: pandas is not installed.
    """
    table = []
    for evaluated in run.rows:
        row = evaluated.row
        cells = row.model_dump(include={"id", "question", "answer", "reference", "label"})
        for score in evaluated.scores:
            cells |= {score.key: score.score, f"{score.key}_status": score.status}
            cells[f"{score.key}_reason"] = score.reason
        table.append(cells | {f"metadata.{name}": each for name, each in row.metadata.items()})
    return require("pandas", extra="pandas").DataFrame(table)


@dataclass
class MetricTotals:
    """Running totals of one metric."""

    scored: int = 0
    failed: int = 0
    skipped: int = 0
    sum: float = 0.0
    """Sum of the scores."""

    @property
    def mean(self) -> float | None:
        """Mean over the rows that have a score; `None` if none has."""
        return self.sum / self.scored if self.scored else None

    @property
    def rows(self) -> int:
        """Number of rows counted."""
        return self.scored + self.failed + self.skipped


class RunTotals:
    """Adds up the rows of a run; memory does not grow with them."""

    def __init__(self, keys: Iterable[str]) -> None:
        """Start empty."""
        self.metrics = {key: MetricTotals() for key in keys}
        self.rows = 0
        self.usage = Usage()
        self.reasons: Counter[tuple[str, str, str]] = Counter()
        """Rows without a score by metric, status and reason; reasons beyond the first thousand
        are not counted."""

    def as_dict(self) -> dict[str, dict[str, Any]]:
        """Give the totals of each metric as plain data."""
        names = ("mean", "scored", "failed", "skipped", "rows")
        return {
            key: {name: getattr(totals, name) for name in names}
            for key, totals in self.metrics.items()
        }

    def add(self, row: EvaluatedRow, *, instead_of: EvaluatedRow | None = None) -> None:
        """Count a row; `instead_of` is what the same row was counted as before."""
        self.rows += instead_of is None
        self.usage = add_usage(self.usage, *(score.usage for score in row.scores))
        self._count(row, 1)
        if instead_of is not None:
            self._count(instead_of, -1)

    def _count(self, row: EvaluatedRow, sign: int) -> None:
        for score in row.scores:
            totals = self.metrics.setdefault(score.key, MetricTotals())
            setattr(totals, score.status, getattr(totals, score.status) + sign)
            totals.sum += sign * (score.score or 0.0)
            if score.reason is not None:
                kind = (score.key, score.status, score.reason)
                if kind in self.reasons or len(self.reasons) < _MAX_REASONS:
                    self.reasons[kind] += sign


def add_usage(*usages: Usage) -> Usage:
    """Add up usage; tokens are `None` if no call reported any."""
    inputs = [usage.input_tokens for usage in usages if usage.input_tokens is not None]
    outputs = [usage.output_tokens for usage in usages if usage.output_tokens is not None]
    return Usage(
        model_calls=sum(usage.model_calls for usage in usages),
        input_tokens=sum(inputs) if inputs else None,
        output_tokens=sum(outputs) if outputs else None,
        cached_verdicts=sum(usage.cached_verdicts for usage in usages),
    )
