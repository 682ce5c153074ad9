"""A table of what other thresholds would let pass, counted from what is stored."""

from collections import Counter
from collections.abc import Iterator
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from langchain_groundedness.calibration._labelled import read_label
from langchain_groundedness.evals.validation._calibrated import Bands
from langchain_groundedness.evals.validation._replay import Replayed, Setting
from langchain_groundedness.evals.validation.values import ValidatedRow

__all__ = ["SweepLine", "Sweeping"]

Knob = Literal["pass_score", "min_source", "accept", "reject"]
_STEPS = tuple(step / 20 for step in range(1, 20))
_HALF = 0.5


class SweepLine(BaseModel):
    """What one threshold would have done, all others as they are."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    option: Knob
    value: float
    is_current: bool
    """Whether this is the value in force."""
    passed: int
    rejected: int
    unchecked: int
    unknown: int
    """Rows that would have to be judged again to tell."""
    pass_rate: float | None
    """Of all rows; `None` without rows, and too low by what is unknown."""
    precision: float | None = None
    """Of the labelled rows that pass, the share that is right; `None` without any."""
    recall: float | None = None
    """Of the labelled rows that are right, the share that passes."""


class Sweeping:
    """Counts, row by row, what every threshold would have made of it."""

    def __init__(self, setting: Setting) -> None:
        """Line up the thresholds to try.

        Args:
            setting: The thresholds in force.
        """
        self._now = setting
        self._tried = list(_tried(setting))
        self._counts: list[Counter[Replayed]] = [Counter() for _ in self._tried]
        self._right: list[Counter[Replayed]] = [Counter() for _ in self._tried]
        self._labelled: list[Counter[Replayed]] = [Counter() for _ in self._tried]

    def add(self, row: ValidatedRow) -> None:
        """Count a row.

        Args:
            row: What was found in it.
        """
        is_right = _is_right(row.label)
        for place, (_, _, setting) in enumerate(self._tried):
            outcome = setting.replay(row, self._now)
            self._counts[place][outcome] += 1
            if is_right is not None:
                self._labelled[place][outcome] += 1
                self._right[place][outcome] += is_right

    def lines(self) -> tuple[SweepLine, ...]:
        """Give the table.

        Returns:
            A line for each threshold that was tried, by option and value.
        """
        return tuple(self._line(place) for place in range(len(self._tried)))

    def _line(self, place: int) -> SweepLine:
        knob, value, setting = self._tried[place]
        counts, right = self._counts[place], self._right[place]
        total = counts.total()
        return SweepLine(
            option=knob,
            value=value,
            is_current=setting == self._now,
            passed=counts["passed"],
            rejected=counts["rejected"],
            unchecked=counts["unchecked"],
            unknown=counts["unknown"],
            pass_rate=counts["passed"] / total if total else None,
            precision=_share(right["passed"], self._labelled[place]["passed"]),
            recall=_share(right["passed"], right.total()),
        )


def _tried(now: Setting) -> Iterator[tuple[Knob, float, Setting]]:
    criteria, bands = now.criteria, now.bands
    for value in _values(criteria.pass_score, least=_HALF):
        yield "pass_score", value, now._replace(criteria=criteria._replace(pass_score=value))
    for value in _values(criteria.min_source):
        yield "min_source", value, now._replace(criteria=criteria._replace(min_source=value))
    if now.has_judge:
        for value in _values(bands.accept, least=bands.reject):
            yield "accept", value, now._replace(bands=bands._replace(accept=value))
    for value in _values(bands.reject, most=bands.accept if now.has_judge else 1.0):
        accept = max(bands.accept, value)
        yield "reject", value, now._replace(bands=Bands(accept, value, bands.support))


def _values(current: float, *, least: float = 0.0, most: float = 1.0) -> list[float]:
    return sorted({current, *(step for step in _STEPS if least <= step <= most)})


def _is_right(label: Any) -> bool | None:
    try:
        return None if label is None else read_label(label)
    except ValueError:
        return None


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
