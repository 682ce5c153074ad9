"""What is written into an agent's state about a check: plain data that any checkpointer can keep.

Pure.
"""

import json
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from langchain_groundedness.decision import DecisionPolicy
from langchain_groundedness.decision.conditions import Situation
from langchain_groundedness.inputs.formats import LABELS, CheckInput
from langchain_groundedness.middleware.turn import Turn
from langchain_groundedness.types import Claim, ClaimVerdict, GroundednessResult

__all__ = ["Outcome", "plain", "plain_result", "read_result", "record_of", "unchecked_result"]

Outcome: TypeAlias = Literal[
    "passed",
    "annotated",
    "corrected",
    "retrying",
    "blocked",
    "approved",
    "edited",
    "rejected",
    "responded",
    "not_judged",
]
"""What was done with an answer."""

_KEPT = (
    *("verdict", "trust_score", "is_trusted", "decision", "claims", "edits", "usage"),
    *LABELS,
)


def record_of(result: GroundednessResult, turn: Turn, outcome: Outcome) -> dict[str, Any]:
    """Put what the state keeps of a result into plain data."""
    return {
        "turn": turn.key,
        "message_id": turn.final.id if turn.final else None,
        "outcome": outcome,
        "retries": turn.retries,
        "drafts": list(turn.drafts),
        "feedback": None,
        **plain({name: getattr(result, name) for name in _KEPT}),
    }


def plain_result(result: GroundednessResult) -> dict[str, Any]:
    """Put a result into plain data, without the documents."""
    fields = set(GroundednessResult.model_fields) - {"documents"}
    data: dict[str, Any] = plain({name: getattr(result, name) for name in fields})
    return data


def read_result(data: Mapping[str, Any], source: CheckInput) -> GroundednessResult:
    """Read a result back."""
    return GroundednessResult.model_validate({**data, "documents": source.documents})


def unchecked_result(source: CheckInput, reason: str, policy: DecisionPolicy) -> GroundednessResult:
    """Say that an answer could not be checked at all."""
    answer = source.answer
    whole = Claim(id="c1", text=answer.strip(), start=0, end=len(answer))
    verdicts = (ClaimVerdict.unchecked(whole, reason),) if whole.text else ()
    given = Situation.after_failure(reason, verdicts, answer, **source.labels)
    return GroundednessResult(
        question=None,
        answer=answer,
        original_answer=answer,
        documents=(),
        claims=verdicts,
        trust_score=None,
        verdict="unchecked",
        is_trusted=False,
        decision=policy.judge(given),
        **source.labels,
    )


def plain(value: Any) -> Any:
    """Put values of this package, and whatever metadata they carry, into plain data."""
    return json.loads(json.dumps(value, default=_as_data, skipkeys=True))


def _as_data(value: Any) -> Any:
    dump = getattr(value, "model_dump", None)
    return dump() if callable(dump) else str(value)
