"""The step of the check that finds claims and judges them in one, where there is such a stage."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from langchain_core.runnables import Runnable

from langchain_groundedness._steps import CheckState, Step, replies_of
from langchain_groundedness.claims import SentenceClaimExtractor
from langchain_groundedness.types import Claim, ClaimVerdict, VerificationTask

if TYPE_CHECKING:
    from langchain_groundedness._check import Check

__all__ = ["judging", "sentences_of"]


def judging(
    check: "Check",
    judge: Runnable[VerificationTask, list[ClaimVerdict]],
    *,
    limit: AbstractAsyncContextManager[Any] | None = None,
) -> Step:
    """Bind the step that takes the place of extraction and verification.

    Args:
        check: Knows what is to be verified, and what an error means.
        judge: From an answer and documents to verdicts on the claims that it found.
        limit: Entered while `judge` works.

    Returns:
        The step, from a state without claims to one with claims and verdicts.
    """

    def prepare(state: CheckState) -> VerificationTask | None:
        source = state.source
        if not source.answer.strip():
            return None
        return VerificationTask(
            claims=(),
            documents=source.documents,
            question=source.question,
            answer=source.answer,
        )

    def absorb(state: CheckState, reply: Sequence[ClaimVerdict], *, complete: bool) -> CheckState:
        given = replies_of(ClaimVerdict, reply, source="judge")
        state = check.with_claims(state, [v.claim for v in given], complete=complete)
        if check.verification(state) is None:  # no claims, or nothing to read
            return state
        return check.with_verdicts(state, given, complete=complete)

    def recover(state: CheckState, error: Exception) -> CheckState:
        claims = tuple(sentences_of(state.source.answer))
        return check.without_verdicts(replace(state, claims=claims), error)

    return Step("judge_answer", judge, prepare=prepare, absorb=absorb, recover=recover, limit=limit)


def sentences_of(answer: str) -> list[Claim]:
    """Give what is to be listed as unchecked when no claims could be found.

    Args:
        answer: The answer, not blank.

    Returns:
        Its sentences, or all of it.
    """
    whole = [Claim(id="c1", text=answer.strip(), start=0, end=len(answer))]
    return SentenceClaimExtractor().invoke(answer) or whole
