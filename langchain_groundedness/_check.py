"""The steps of the check: what each step asks and what its answer changes.

Pure apart from the pipeline that binds the steps to their runnables.
"""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from typing import Any

from langchain_core.runnables import Runnable

from langchain_groundedness._causes import cause
from langchain_groundedness._edits import edited_claim, refuse_unfit, rewordings
from langchain_groundedness._input_schema import InputReader
from langchain_groundedness._judging import judging, sentences_of
from langchain_groundedness._steps import (
    CheckState,
    Step,
    UnexpectedReplyError,
    reading,
    replies_of,
)
from langchain_groundedness.claims import ClaimExtractor
from langchain_groundedness.exceptions import ConfigurationError, VerificationError
from langchain_groundedness.inputs import NO_DOCUMENTS, CheckInput, has_text, no_documents
from langchain_groundedness.policy import DecisionPolicy
from langchain_groundedness.policy._holds import Situation
from langchain_groundedness.scoring import answer_verdict, reconcile, trust_score
from langchain_groundedness.types import (
    Claim,
    ClaimVerdict,
    CorrectedAnswer,
    CorrectionTask,
    Edit,
    ExtractionTask,
    GroundednessResult,
    OnContradicted,
    OnUnverifiable,
    Usage,
    VerificationTask,
)
from langchain_groundedness.verifiers import CachedVerifier, Verifier

__all__ = ["NO_DOCUMENTS", "Check"]

_EDITS = frozenset({"correct", "strip"})


@dataclass(frozen=True, kw_only=True)
class Check:
    """One way to check answers: the runnables that do the work, and the options."""

    extractor: ClaimExtractor
    verifier: Verifier
    corrector: Runnable[CorrectionTask, CorrectedAnswer]
    max_claims: int | None
    on_contradicted: OnContradicted
    on_unverifiable: OnUnverifiable
    trust_threshold: float
    policy: DecisionPolicy
    raise_on_failure: bool
    single_pass: Runnable[VerificationTask, list[ClaimVerdict]] | None = None
    """Finds and judges the claims of a whole answer in one; extractor and verifier are then for
    what is checked sentence by sentence, and for edits."""

    @property
    def judges_together(self) -> bool:
        """Tell whether the verifier gains from getting the claims of many answers at once."""
        asked = self.verifier
        verifier = type(asked.verifier if isinstance(asked, CachedVerifier) else asked)
        return verifier.batch is not Runnable.batch or verifier.abatch is not Runnable.abatch

    def pipeline(
        self,
        read: InputReader,
        *,
        limit: AbstractAsyncContextManager[Any] | None = None,
    ) -> Runnable[Any, CheckState]:
        """Bind the steps in order.

        Args:
            read: From any input to question, answer and documents.
            limit: Entered while a step's runnable works.

        Returns:
            The sequence, from any input to the final state.
        """
        whole = reduce(or_, self.on_whole_answers(limit=limit), reading(read))
        return whole | self.editing(limit=limit) if self.edits_answers else whole

    def on_whole_answers(
        self, *, limit: AbstractAsyncContextManager[Any] | None = None
    ) -> tuple[Runnable[CheckState, CheckState], ...]:
        """Bind the steps that find and judge the claims of a whole answer.

        Args:
            limit: Entered while a step's runnable works.

        Returns:
            One step or two, from a state with the answer to one with verdicts.
        """
        if self.single_pass is not None:
            return (judging(self, self.single_pass, limit=limit),)
        return self.extracting(limit=limit), self.verifying(edit=False, limit=limit)

    def extracting(self, *, limit: AbstractAsyncContextManager[Any] | None = None) -> Step:
        """Bind the step that finds the claims.

        Args:
            limit: Entered while the extractor works.

        Returns:
            The step, from a state with the answer to one with claims.
        """
        return Step(
            "extract_claims",
            self.extractor,
            prepare=self.extraction,
            absorb=self.with_claims,
            recover=self.without_claims,
            limit=limit,
        )

    @property
    def edits_answers(self) -> bool:
        """Whether the options ask for any change of the text."""
        return self.on_contradicted in _EDITS or self.on_unverifiable in _EDITS

    def verifying(
        self, *, edit: bool = True, limit: AbstractAsyncContextManager[Any] | None = None
    ) -> Runnable[CheckState, CheckState]:
        """Bind the steps that come after the extraction.

        Args:
            edit: Whether those that change the text are among them, where the options ask for it.
            limit: Entered while a step's runnable works.

        Returns:
            The sequence, from a state with claims to the final state.
        """
        verify = Step(
            "verify_claims",
            self.verifier,
            prepare=self.verification,
            absorb=self.with_verdicts,
            recover=self.without_verdicts,
            limit=limit,
        )
        return verify | self.editing(limit=limit) if edit and self.edits_answers else verify

    def editing(
        self, *, limit: AbstractAsyncContextManager[Any] | None = None
    ) -> Runnable[CheckState, CheckState]:
        """Bind the steps that change the text, and check the changes.

        Args:
            limit: Entered while a step's runnable works.

        Returns:
            The sequence, from a state with verdicts to the final state.
        """
        correct = Step(
            "correct_answer",
            self.corrector,
            prepare=self.correction,
            absorb=self.with_correction,
            recover=self.without_correction,
            limit=limit,
        )
        recheck = Step(
            "recheck_edits",
            self.verifier,
            prepare=self.recheck,
            absorb=self.with_recheck,
            recover=self.without_recheck,
            limit=limit,
        )
        return correct | recheck

    def extraction(self, state: CheckState) -> ExtractionTask | None:
        """Ask for the claims of an answer that is not blank."""
        if not state.source.answer.strip():
            return None
        return ExtractionTask(answer=state.source.answer, question=state.source.question)

    def with_claims(
        self, state: CheckState, reply: Sequence[Claim], *, complete: bool
    ) -> CheckState:
        """Take the claims over; ids that repeat are made unique, so that none is lost."""
        del complete
        taken: set[str] = set()
        claims = []
        for claim in replies_of(Claim, reply, source="extractor"):
            name, number = claim.id, 1
            while name in taken:
                number += 1
                name = f"{claim.id}.{number}"
            taken.add(name)
            claims.append(claim.model_copy(update={"id": name}))
        return replace(state, claims=tuple(claims))

    def without_claims(self, state: CheckState, error: Exception) -> CheckState:
        """Fall back to sentences, all unchecked: the reader sees what was not checked."""
        reason = f"claim extraction failed ({_cause(error)})"
        if self.raise_on_failure:
            raise VerificationError(reason) from error
        return replace(state, claims=tuple(sentences_of(state.source.answer)), failure=reason)

    def verification(self, state: CheckState) -> VerificationTask | None:
        """Ask for verdicts on the first `max_claims` claims, if there is anything to read."""
        claims = self.within(state)
        if not claims or state.failure or not has_text(state.source.documents):
            return None
        return state.task(claims)

    def with_verdicts(
        self, state: CheckState, reply: Sequence[ClaimVerdict], *, complete: bool
    ) -> CheckState:
        """Match verdicts to claims; what a complete reply leaves out is unchecked."""
        task = state.task(self.within(state))
        given = replies_of(ClaimVerdict, reply, source="verifier")
        answered = {verdict.claim.id for verdict in given}
        if not complete:
            task = task.only(c for c in task.claims if c.id in answered)
        verdicts = reconcile(task, given)
        unchecked = tuple(v.claim.id for v in verdicts if v.verdict == "unchecked")
        if self.raise_on_failure and unchecked and complete:
            why = next(v.reason for v in verdicts if v.verdict == "unchecked")
            msg = f"{len(unchecked)} of {len(verdicts)} claims could not be checked: {why}"
            raise VerificationError(msg, claim_ids=unchecked)
        return replace(state, verdicts=tuple(verdicts))

    def without_verdicts(self, state: CheckState, error: Exception) -> CheckState:
        """Leave the claims without a verdict unchecked, and say why.

        A broken installation is no failed check: it never gets better, so whoever called hears.
        """
        if isinstance(error, ConfigurationError):
            raise error
        reason = f"verification failed ({_cause(error)})"
        if self.raise_on_failure:
            known = {v.claim.id for v in state.verdicts}
            missing = tuple(c.id for c in state.claims or () if c.id not in known)
            raise VerificationError(reason, claim_ids=missing) from error
        return replace(state, failure=reason)

    def correction(self, state: CheckState) -> CorrectionTask | None:
        """Ask for edits if any verdict calls for one."""
        wanted = set()
        if self.on_contradicted in _EDITS:
            wanted.add("contradicted")
        if self.on_unverifiable in _EDITS:
            wanted.add("unverifiable")
        verdicts = self.outcome(state)
        if not any(v.verdict in wanted for v in verdicts):
            return None
        return CorrectionTask(
            answer=state.source.answer,
            verdicts=verdicts,
            documents=state.source.documents,
            question=state.source.question,
            on_contradicted=self.on_contradicted,
            on_unverifiable=self.on_unverifiable,
        )

    def without_correction(self, state: CheckState, error: Exception) -> CheckState:
        """Leave the answer as it is: the verdicts say what is wrong with it."""
        if self.raise_on_failure:
            msg = f"correction failed ({_cause(error)})"
            raise VerificationError(msg) from error
        return state

    def with_correction(
        self, state: CheckState, reply: CorrectedAnswer, *, complete: bool
    ) -> CheckState:
        """Take the edits over; the text is made from them, so that it holds nothing else."""
        if not complete:
            return state
        if not isinstance(reply, CorrectedAnswer):
            msg = f"the corrector gave {type(reply).__name__} where a CorrectedAnswer is needed"
            raise UnexpectedReplyError(msg)
        edits = tuple(sorted(reply.edits, key=lambda edit: (edit.start, edit.end)))
        refuse_unfit(edits, state.source.answer, {v.claim.id for v in state.verdicts})
        return state.with_edits(edits)

    def recheck(self, state: CheckState) -> VerificationTask | None:
        """Ask whether the documents support what the edits make the claims say."""
        answer, known = state.source.answer, {v.claim.id: v.claim for v in state.verdicts}
        changed = [
            Claim(id=name, text=edited_claim(answer, known[name], edits))
            for name, edits in self._doubtful(state).items()
        ]
        return state.task(changed) if changed else None

    def _doubtful(self, state: CheckState) -> dict[str, list[tuple[Edit, str]]]:
        edits = state.corrected.edits if state.corrected else ()
        return rewordings(edits, state.verdicts, getattr(self.corrector, "marker", None))

    def with_recheck(
        self, state: CheckState, reply: Sequence[ClaimVerdict], *, complete: bool
    ) -> CheckState:
        """Undo the edits of every claim that the documents do not support as it was edited."""
        task = self.recheck(state)
        if not complete or task is None or state.corrected is None:
            return state
        verdicts = reconcile(task, replies_of(ClaimVerdict, reply, source="verifier"))
        failed = {v.claim.id for v in verdicts if v.verdict != "supported" or v.conflicting}
        return state.with_edits([e for e in state.corrected.edits if e.claim_id not in failed])

    def without_recheck(self, state: CheckState, error: Exception) -> CheckState:
        """Undo the corrections, since nothing supports them."""
        if self.raise_on_failure:
            msg = f"checking the edits failed ({_cause(error)})"
            raise VerificationError(msg) from error
        if state.corrected is None:
            return state
        failed = self._doubtful(state)
        return state.with_edits([e for e in state.corrected.edits if e.claim_id not in failed])

    def outcome(self, state: CheckState) -> tuple[ClaimVerdict, ...]:
        """Give one verdict per claim, with the reason where it is unchecked."""
        known = {verdict.claim.id: verdict for verdict in state.verdicts}
        return tuple(
            known.get(claim.id) or ClaimVerdict.unchecked(claim, self.reason(state, index))
            for index, claim in enumerate(state.claims or ())
        )

    def within(self, state: CheckState) -> tuple[Claim, ...]:
        """Give the claims that are to be checked: those among the first `max_claims`."""
        claims = state.claims or ()
        most = self.max_claims
        return claims if most is None else claims[: max(0, most - state.first)]

    def reason(self, state: CheckState, index: int) -> str:
        """Say why the claim at a place has no verdict."""
        if index >= len(self.within(state)):
            return f"over max_claims={self.max_claims}"
        if state.failure is None and not has_text(state.source.documents):
            return no_documents(state.source)
        return state.failure or "not reached"

    def result(self, state: CheckState, usage: Usage) -> GroundednessResult:
        """Sum the final state up."""
        source, verdicts = state.source, self.outcome(state)
        score = trust_score(verdicts)
        corrected = state.corrected
        return GroundednessResult(
            question=source.question,
            answer=source.answer if corrected is None else corrected.text,
            original_answer=source.answer,
            documents=source.documents,
            claims=verdicts,
            trust_score=score,
            verdict=answer_verdict(verdicts),
            is_trusted=self.policy.is_trusted(
                verdicts,
                answer=source.answer,
                trust_score=score,
                trust_threshold=self.trust_threshold,
            ),
            decision=self.policy.judge(self.situation(source, verdicts)),
            edits=() if corrected is None else corrected.edits,
            usage=usage,
            **source.labels,
        )

    def situation(
        self,
        source: CheckInput,
        verdicts: Sequence[ClaimVerdict],
        *,
        complete: bool = True,
        labelled: bool = True,
    ) -> Situation:
        """Describe an answer to the policy.

        Args:
            source: What is checked.
            verdicts: What is known about its claims.
            complete: Whether that is all.
            labelled: Whether what is not known about the question stays unknown.
        """
        return Situation(
            verdicts=verdicts,
            answer=source.answer,
            trust_score=trust_score(verdicts),
            trust_threshold=self.trust_threshold,
            complete=complete,
            labelled=labelled,
            **source.labels,
        )


def _cause(error: Exception) -> str:
    return str(error) if isinstance(error, UnexpectedReplyError) else cause(error)
