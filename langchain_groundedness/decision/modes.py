"""What happens to an answer in each mode, by what was found: one table for all entry points."""

from collections.abc import Mapping
from typing import Literal, TypeAlias, get_args

from langchain_groundedness.inputs.formats import NO_DOCUMENTS
from langchain_groundedness.types import ClaimVerdict

__all__ = ["MODES", "ClaimProblem", "Effect", "effect_on"]

ClaimProblem: TypeAlias = Literal["contradicted", "unverifiable", "unchecked", "no evidence"]
"""Why a claim is not supported. `no evidence`: unchecked, because there were no documents."""

Effect: TypeAlias = Literal[
    "keep", "correct", "remove", "ask the model", "after_retries", "withhold", "ask a person",
    "as the policy decides",
]  # fmt: skip
"""What happens to the claim (`keep`, `correct`, `remove`), or to the whole answer."""

_PROBLEMS: tuple[ClaimProblem, ...] = get_args(ClaimProblem)


def _always(effect: Effect) -> dict[ClaimProblem, Effect]:
    return dict.fromkeys(_PROBLEMS, effect)


MODES: Mapping[str, Mapping[ClaimProblem, Effect]] = {
    "annotate": _always("keep"),
    "correct": {**_always("remove"), "contradicted": "correct"},
    "retry": {**_always("ask the model"), "unchecked": "after_retries"},
    "block": _always("withhold"),
    "review": _always("ask a person"),
    "policy": _always("as the policy decides"),
}
"""By mode and problem. A claim without a supported correction is replaced by the evidence, or
removed."""


def effect_on(verdict: ClaimVerdict, mode: str) -> Effect | None:
    """Return what a mode does about a claim; `None` for a supported one."""
    if verdict.verdict == "supported":
        return None
    lacking = (verdict.reason or "").startswith(NO_DOCUMENTS)
    problem: ClaimProblem = "no evidence" if lacking else verdict.verdict
    return MODES[mode][problem]
