"""What chance does to the figures of a run."""

import math
from collections.abc import Sequence

import numpy as np

from langchain_groundedness.report._values import Difference, Estimate

__all__ = ["difference", "estimate", "read_label"]

_DRAWS = 2000
_SEED = 1


def estimate(values: Sequence[float]) -> Estimate | None:
    """Estimate a mean.

    Args:
        values: Scores of rows.

    Returns:
        The mean, with the interval that holds it in 95 % of the draws of a bootstrap; `None` of
        nothing.
    """
    if not values:
        return None
    low, high = _interval(values)
    return Estimate(math.fsum(values) / len(values), low, high, len(values))


def difference(pairs: Sequence[tuple[float, float]]) -> Difference | None:
    """Compare two scores per row.

    Args:
        pairs: Before and after.

    Returns:
        The mean difference with its interval; `None` without rows.
    """
    changes = [after - before for before, after in pairs]
    if not changes:
        return None
    low, high = _interval(changes)
    signs = np.random.default_rng(_SEED).choice((-1.0, 1.0), size=(_DRAWS, len(changes)))
    by_chance = np.abs(signs @ np.array(changes)) >= abs(math.fsum(changes)) - 1e-9
    p_value = float((by_chance.sum() + 1) / (_DRAWS + 1))
    return Difference(math.fsum(changes) / len(changes), low, high, len(changes), p_value)


def _interval(values: Sequence[float]) -> tuple[float, float]:
    array, chance = np.array(values), np.random.default_rng(_SEED)
    means = [chance.choice(array, len(array)).mean() for _ in range(_DRAWS)]
    low, high = np.quantile(means, (0.025, 0.975))
    return float(low), float(high)


def read_label(label: str | bool | float | None) -> bool | None:  # noqa: FBT001  (a label, as it came)
    """Read what a person has said about an answer.

    Args:
        label: What they said.

    Returns:
        Whether the answer is right; `None` if they did not say, or in words that are not known.
    """
    said = str(label).strip().casefold()
    if said in _RIGHT:
        return True
    return False if said in _WRONG else None


_RIGHT = ("1", "1.0", "true", "yes", "supported", "grounded", "pass", "right", "correct")
_WRONG = ("0", "0.0", "false", "no", "unsupported", "ungrounded", "fail", "wrong", "incorrect")
