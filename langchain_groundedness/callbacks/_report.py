"""From what a checker yields about one answer to events and a result; pure.

Whatever happens there is a result: one that says that nothing was checked, if need be.
"""

import logging
from collections.abc import Iterator
from uuid import UUID

from langchain_groundedness._telemetry import count
from langchain_groundedness.callbacks._channel import GroundednessEvent
from langchain_groundedness.claims import SentenceClaimExtractor
from langchain_groundedness.exceptions import GroundednessError
from langchain_groundedness.inputs import CheckInput
from langchain_groundedness.policy import DecisionPolicy
from langchain_groundedness.policy._holds import Situation
from langchain_groundedness.types import (
    Claim,
    ClaimVerdict,
    GroundednessResult,
    GroundednessResultChunk,
)

__all__ = ["Report", "without_check"]

logger = logging.getLogger("langchain_groundedness")


class Report:
    """What is said about the answer of one run, piece by piece."""

    def __init__(self, run_id: UUID) -> None:
        """Start with nothing said.

        Args:
            run_id: The root run.
        """
        self.run_id = run_id
        self._total: GroundednessResult | None = None

    def add(self, piece: object) -> Iterator[GroundednessEvent]:
        """Take what the checker yielded.

        Args:
            piece: A chunk of a result, or a whole one.

        Yields:
            One event per verdict in it.

        Raises:
            TypeError: It is neither.
        """
        if not isinstance(piece, GroundednessResult):
            msg = f"the checker gave a {type(piece).__name__}, and no GroundednessResult"
            raise TypeError(msg)
        total = self._total
        joins = isinstance(total, GroundednessResultChunk) and isinstance(
            piece, GroundednessResultChunk
        )
        self._total = total + piece if joins else piece  # type: ignore[operator]  # both chunks
        for verdict in piece.claims:
            yield GroundednessEvent(kind="verdict", run_id=self.run_id, verdict=verdict)

    def take(self, result: GroundednessResult) -> None:
        """Take a result whose verdicts have been told.

        Args:
            result: The result.
        """
        self._total = result

    def close(self) -> GroundednessResult:
        """Sum up.

        Returns:
            The result.

        Raises:
            ValueError: The checker has yielded nothing.
        """
        if self._total is None:
            msg = "the checker gave nothing"
            raise ValueError(msg)
        fields = {name: getattr(self._total, name) for name in GroundednessResult.model_fields}
        result = GroundednessResult.model_construct(**fields)
        unchecked = [verdict for verdict in result.claims if verdict.verdict == "unchecked"]
        if unchecked:
            reasons = "; ".join(sorted({verdict.reason or "" for verdict in unchecked}))
            told = (len(unchecked), len(result.claims), self.run_id, reasons)
            logger.warning("%d of %d claims of run %s are unchecked: %s", *told)
        return result

    def fail(
        self, error: Exception, source: CheckInput | None, policy: DecisionPolicy
    ) -> GroundednessResult:
        """Say that the check has failed.

        Args:
            error: Why. Its text is told only if it is one of this package, whose texts never hold
                anything that was checked.
            source: What should have been checked; `None` if it could not be read.
            policy: What to do with an answer that was not checked.

        Returns:
            A result in which every claim is unchecked.
        """
        why = str(error) if isinstance(error, GroundednessError) else ""
        reason = f"the check failed ({type(error).__name__}{why and ': '}{why})"
        logger.warning("run %s is unchecked: %s", self.run_id, reason)
        return without_check(source or CheckInput(answer=""), reason, policy)


def without_check(source: CheckInput, reason: str, policy: DecisionPolicy) -> GroundednessResult:
    """Give the result of a check that did not take place.

    Args:
        source: What should have been checked.
        reason: Why it was not.
        policy: What to do with such an answer.

    Returns:
        A result in which every sentence of the answer is an unchecked claim.
    """
    claims = SentenceClaimExtractor().invoke(source.answer) if source.answer.strip() else []
    if not claims and source.answer.strip():
        claims = [Claim(id="c1", text=source.answer, start=0, end=len(source.answer))]
    verdicts = tuple(ClaimVerdict.unchecked(claim, reason) for claim in claims)
    given = Situation.after_failure(reason, verdicts, source.answer, **source.labels)
    result = GroundednessResult(
        question=source.question,
        answer=source.answer,
        original_answer=source.answer,
        documents=source.documents,
        claims=verdicts,
        trust_score=None,
        verdict="unchecked",
        is_trusted=False,
        decision=policy.judge(given),
        **source.labels,
    )
    count(result)
    return result
