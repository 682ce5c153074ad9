"""Values of an evaluation: rows, scores and runs."""

from collections.abc import Iterable
from typing import Any, Literal, Self

from langchain_core.documents import Document
from pydantic import AwareDatetime, Field, model_validator
from typing_extensions import override

from langchain_groundedness._runtime.options import FrozenModel
from langchain_groundedness.types import HTML_FORMATTERS, GroundednessResult, Usage

__all__ = [
    "BadRow",
    "EvaluatedRow",
    "EvaluationRow",
    "EvaluationRun",
    "RowScore",
    "RunHeader",
]

Status = Literal["scored", "failed", "skipped"]


class EvaluationRow(FrozenModel):
    """One example of a data set: a question, its answer, and what they are judged by.

    Which parts an evaluator needs, its `needs` says.
    """

    id: str
    """Unique within a data set."""
    question: str | None = None
    answer: str | None = None
    documents: tuple[Document, ...] | None = None
    """What was retrieved, best first; `()` if nothing was found, `None` if it is not known.

    Metrics that read documents give 0 where nothing was found, or only blank texts, and skip a
    row of which it is not known."""
    reference: str | None = None
    """The right answer, as somebody wrote it down."""
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
    """`failed`: something went wrong, or not all of it could be checked; `skipped`: the row has
    not what the evaluator needs, or nothing that the metric could be of."""
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
    """A row that could not be read and was skipped."""

    line: int | None
    id: str | None = None
    reason: str


class RunHeader(FrozenModel):
    """What a run is of."""

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
