"""Chooses a threshold on scored samples, for a wanted precision or recall."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from langchain_groundedness.exceptions import ConfigurationError

__all__ = ["Choice", "highest_with_recall", "lowest_with_precision"]


class Choice(NamedTuple):
    """A threshold, and what it does on the samples it was chosen on."""

    threshold: float
    precision: float | None
    recall: float
    samples: int
    answerable: int
    passed: int


def highest_with_recall(scores: Sequence[float], good: Sequence[bool], target: float) -> Choice:
    """Choose the highest threshold that lets enough of the good samples through.

    Args:
        scores: One per sample; minus infinity for one that no threshold lets through.
        good: Whether each sample should be let through.
        target: Least share of the good ones that pass, above 0, at most 1.

    Returns:
        The threshold, halfway down to the next lower score, with its figures.

    Raises:
        ConfigurationError: The samples are not of both kinds, or no threshold reaches the target.
    """
    choices = _choices(scores, good, target)
    return _first(choices[::-1], lambda choice: choice.recall, target, "recall")


def lowest_with_precision(scores: Sequence[float], good: Sequence[bool], target: float) -> Choice:
    """Choose the lowest threshold at which enough of what passes is good.

    Args:
        scores: As for `highest_with_recall`.
        good: As for `highest_with_recall`.
        target: Least share of those that pass that are good, above 0, at most 1.

    Returns:
        As `highest_with_recall`.

    Raises:
        ConfigurationError: As for `highest_with_recall`.
    """
    choices = _choices(scores, good, target)
    return _first(choices, lambda choice: choice.precision or 0.0, target, "precision")


def _choices(scores: Sequence[float], good: Sequence[bool], target: float) -> list[Choice]:
    """Give every threshold that makes a difference, the lowest first."""
    if not 0 < target <= 1:
        msg = f"a target is above 0 and at most 1, got {target}"
        raise ConfigurationError(msg)
    if len(set(good)) < 2:  # noqa: PLR2004  (yes and no)
        msg = (
            f"samples must be of both kinds, with documents that hold the answer and without; got "
            f"{sum(good)} with and {len(good) - sum(good)} without"
        )
        raise ConfigurationError(msg)
    levels = sorted({score for score in scores if np.isfinite(score)})
    return [
        _choice(scores, good, _below(level, levels[place - 1] if place else level))
        for place, level in enumerate(levels)
    ]


def _below(level: float, lower: float) -> float:
    half = (level + lower) / 2
    return half if half > lower else level


def _choice(scores: Sequence[float], good: Sequence[bool], threshold: float) -> Choice:
    passed = [is_good for score, is_good in zip(scores, good, strict=True) if score >= threshold]
    return Choice(
        threshold=threshold,
        precision=sum(passed) / len(passed) if passed else None,
        recall=sum(passed) / sum(good),
        samples=len(good),
        answerable=sum(good),
        passed=len(passed),
    )


def _first(
    choices: Sequence[Choice], figure: Callable[[Choice], float], target: float, name: str
) -> Choice:
    for choice in choices:
        if figure(choice) >= target:
            return choice
    best = max(map(figure, choices), default=0.0)
    msg = (
        f"no threshold reaches a {name} of {target:.2f} on these samples; the highest is "
        f"{best:.2f}: lower the target, or use other embeddings"
    )
    raise ConfigurationError(msg)
