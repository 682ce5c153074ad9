"""How good a classifier of queries is, in figures and as a table."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Self

from pydantic import BaseModel, ConfigDict

from langchain_groundedness.query._values import QueryClass

__all__ = ["ClassFigures", "QueryReport"]


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ClassFigures(_Value):
    """How well queries of one class are found."""

    label: str
    samples: int
    """Queries that have this class."""
    precision: float | None
    """Share of the queries given this class that have it; `None` if no query was given it."""
    recall: float | None
    """Share of the queries that have this class that were given it; `None` if none has it."""
    f1: float
    """Harmonic mean of the two: 2 x right / (given + had); 0 if none is right."""


class QueryReport(_Value):
    """What `evaluate` found; `print` shows it as a table.

    Example:
        >>> said = [QueryClass(label="product"), QueryClass.unknown("unclear")]
        >>> report = QueryReport.of(["product", "service"], said)
        >>> report.accuracy, report.confusion[report.labels.index("service")]
        (0.5, (0, 0, 1))
    """

    samples: int
    accuracy: float
    """Share of all queries that were given their class."""
    macro_precision: float
    """Mean over the classes that queries have; a class that was never given counts as 0."""
    macro_recall: float
    """Mean over the classes that queries have."""
    macro_f1: float
    """Mean over the classes that queries have."""
    unknown: int
    """Queries that were given no class."""
    failed: int
    """Those of them on which the classifier failed."""
    labels: tuple[str, ...]
    """Names of the rows and columns of `confusion`: all labels that were had or given."""
    confusion: tuple[tuple[int, ...], ...]
    """`confusion[i][j]`: how many queries of class `labels[i]` were given `labels[j]`."""
    per_class: tuple[ClassFigures, ...]
    """In the order of `labels`."""

    @classmethod
    def of(cls, truth: Sequence[str], said: Sequence[QueryClass]) -> Self:
        """Compare what a classifier said with what is true.

        Args:
            truth: The class of each query.
            said: What was said of each, in the same order.

        Returns:
            The report.
        """
        labels = tuple(dict.fromkeys([*truth, *(found.label for found in said)]))
        pairs = Counter(zip(truth, (found.label for found in said), strict=True))
        confusion = tuple(tuple(pairs[row, column] for column in labels) for row in labels)
        figures = tuple(_figures(label, place, confusion) for place, label in enumerate(labels))
        had = [found for found in figures if found.samples]
        return cls(
            samples=len(truth),
            accuracy=_mean(float(t == s.label) for t, s in zip(truth, said, strict=True)),
            macro_precision=_mean(found.precision or 0.0 for found in had),
            macro_recall=_mean(found.recall or 0.0 for found in had),
            macro_f1=_mean(found.f1 for found in had),
            unknown=sum(found.label == "unknown" for found in said),
            failed=sum(found.failed for found in said),
            labels=labels,
            confusion=confusion,
            per_class=figures,
        )

    def __str__(self) -> str:
        """Give the figures as a table, with the confusion matrix below it."""
        wide = max(len(label) for label in (*self.labels, "macro mean")) + 1
        lines = [f"{'':{wide}}{'precision':>10}{'recall':>8}{'F1':>7}{'samples':>9}"]
        lines += [
            f"{c.label:{wide}}{_shown(c.precision):>10}{_shown(c.recall):>8}{c.f1:7.2f}"
            f"{c.samples:9}"
            for c in self.per_class
        ]
        lines.append(
            f"{'macro mean':{wide}}{self.macro_precision:10.2f}{self.macro_recall:8.2f}"
            f"{self.macro_f1:7.2f}{self.samples:9}"
        )
        counts = f"accuracy {self.accuracy:.3f}, unknown {self.unknown}, failed {self.failed}"
        numbers = "".join(f"{number:5}" for number in range(1, len(self.labels) + 1))
        matrix = [f"{'was / was called':{wide + 3}}{numbers}"] + [
            f"{place:2} {label:{wide}}" + "".join(f"{count or '.':>5}" for count in row)
            for place, (label, row) in enumerate(zip(self.labels, self.confusion, strict=True), 1)
        ]
        return "\n".join([*lines, "", counts, "", *matrix])


def _figures(label: str, place: int, confusion: Sequence[Sequence[int]]) -> ClassFigures:
    right, had = confusion[place][place], sum(confusion[place])
    given = sum(row[place] for row in confusion)
    return ClassFigures(
        label=label,
        samples=had,
        precision=right / given if given else None,
        recall=right / had if had else None,
        f1=2 * right / (given + had),
    )


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed)


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
