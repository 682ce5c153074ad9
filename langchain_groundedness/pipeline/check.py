"""The steps of the check: what each step requests, and how its reply changes the state.

The functions do no I/O; `Step` runs them with a runnable.
"""

import logging
from collections.abc import AsyncIterator, Callable, Container, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import or_
from time import perf_counter
from typing import Any, TypeAlias, TypeVar

from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from typing_extensions import override

from langchain_groundedness._runtime.flow import JointBatch, reraise_interrupts
from langchain_groundedness._runtime.telemetry import record_error, step, streamed_step
from langchain_groundedness.claims.extractors import ClaimExtractor, SentenceClaimExtractor
from langchain_groundedness.correction.corrector import Corrector
from langchain_groundedness.correction.edits import (
    apply_edits,
    check_edits,
    edited_claim,
    inserts_more,
    is_covered,
    rewordings,
    verdicts_after,
    without_overlaps,
)
from langchain_groundedness.decision import DecisionPolicy
from langchain_groundedness.decision.conditions import DecisionContext
from langchain_groundedness.display.counts import format_count
from langchain_groundedness.evidence.metadata import cited_metadata, with_metadata
from langchain_groundedness.exceptions import ConfigurationError, VerificationError, cause
from langchain_groundedness.inputs.formats import (
    LABELS,
    CheckInput,
    InputReader,
    has_text,
    no_documents,
)
from langchain_groundedness.text.words import fold
from langchain_groundedness.types import (
    Claim,
    ClaimVerdict,
    CorrectedAnswer,
    CorrectionTask,
    Edit,
    ExtractionTask,
    FinalVerdict,
    GroundednessResult,
    OnContradicted,
    OnUnverifiable,
    Usage,
    VerificationTask,
)
from langchain_groundedness.verification import CachedVerifier, Verifier
from langchain_groundedness.verification.scoring import (
    answer_verdict,
    reconcile,
    strict_threshold_of,
    trust_score,
)

__all__ = [
    "Check",
    "CheckState",
    "replies_of",
    "sentences_of",
    "unchecked_result",
    "whole_answer",
]

_EDITS = frozenset({"correct", "strip"})
_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class CheckState:
    """The state of the check of one answer."""

    source: CheckInput
    claims: tuple[Claim, ...] | None = None
    """`None` until they are extracted."""
    first: int = 0
    """Index of the first of them among all claims of the answer."""
    failure: str | None = None
    """Why no claim can be checked, if none can."""
    verdicts: tuple[ClaimVerdict, ...] = ()
    edits: tuple[Edit, ...] = ()
    """The edits of the answer so far, in order of position."""
    timings: Mapping[str, float] = field(default_factory=dict)
    """Milliseconds that each step waited for its reply, by name; empty if streamed."""


_Logic: TypeAlias = tuple[
    Callable[[CheckState], Any | None],
    Callable[..., CheckState],
    Callable[[CheckState, Exception], CheckState],
]
"""What a step asks, how it applies the reply, and what it does about an error. The second takes
state and reply, and `complete=False` while more of the reply may follow."""


class Step(JointBatch[CheckState, CheckState]):
    """A named step: it sends a request to a runnable and applies the reply to the state."""

    def __init__(
        self,
        name: str,
        bound: Runnable[Any, Any],
        logic: _Logic,
        limit: AbstractAsyncContextManager[Any],
    ) -> None:
        """Define the step; `limit` is held during async calls."""
        self.name = self.title = name
        self.bound = bound
        self.build_request, self.apply_reply, self.on_error = logic
        self._limit = limit

    @override
    def transform(
        self, input: Iterator[CheckState], config: RunnableConfig | None = None, **kwargs: Any
    ) -> Iterator[CheckState]:
        yield from self._transform_stream_with_config(input, self._stream, config)

    @override
    async def atransform(
        self, input: AsyncIterator[CheckState], config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[CheckState]:
        async for state in self._atransform_stream_with_config(input, self._astream, config):
            yield state

    def outcome(self, state: CheckState, reply: Any) -> CheckState:
        """Apply a complete reply; pass an error, also one from applying it, to `on_error`."""
        if isinstance(reply, Exception):
            return self.on_error(state, record_error(reply))
        try:
            return self.apply_reply(state, reply, complete=True)
        except VerificationError:  # requested by `raise_on_failure`
            raise
        except Exception as exc:  # noqa: BLE001  (an unreadable reply is a failure too)
            return self.on_error(state, record_error(exc))

    def _run(
        self, states: list[CheckState], run_manager: list[Any], config: list[RunnableConfig]
    ) -> list[Exception | CheckState]:
        requests = _Requests(self, states, config)
        if requests.inputs:
            with step(self.title):
                given = requests.inputs, requests.configs
                requests.apply(self.bound.batch(*given, return_exceptions=True))
        return requests.outcomes

    async def _arun(
        self, states: list[CheckState], run_manager: list[Any], config: list[RunnableConfig]
    ) -> list[Exception | CheckState]:
        requests = _Requests(self, states, config)
        if requests.inputs:
            async with self._limit:
                with step(self.title):
                    given = requests.inputs, requests.configs
                    requests.apply(await self.bound.abatch(*given, return_exceptions=True))
        return requests.outcomes

    def _stream(
        self, states: Iterator[CheckState], run_manager: Any, config: RunnableConfig
    ) -> Iterator[CheckState]:
        for state in states:  # the last one is whole
            yield state
        reply = _StreamedReply(self, state)
        try:
            if (request := self.build_request(state)) is None:
                return
            with streamed_step(self.title, self.bound.stream(request, config)) as parts:
                for part in parts:
                    yield reply.add(part)
        except Exception as exc:  # noqa: BLE001  (`end` raises it again if it must)
            reply.error = exc
        yield reply.end()

    async def _astream(
        self, states: AsyncIterator[CheckState], run_manager: Any, config: RunnableConfig
    ) -> AsyncIterator[CheckState]:
        async for state in states:  # the last one is whole
            yield state
        reply = _StreamedReply(self, state)
        try:
            if (request := self.build_request(state)) is None:
                return
            with streamed_step(self.title, self.bound.astream(request, config)) as parts:
                async for part in parts:
                    yield reply.add(part)
        except Exception as exc:  # noqa: BLE001  (`end` raises it again if it must)
            reply.error = exc
        yield reply.end()


class _Requests:
    """The requests of a step for several states, and the outcome of each state."""

    def __init__(
        self, step: Step, states: Sequence[CheckState], configs: Sequence[RunnableConfig]
    ) -> None:
        self.outcomes: list[Exception | CheckState] = list(states)
        self.inputs: list[Any] = []
        self.configs: list[RunnableConfig] = []
        self._asked: list[tuple[int, CheckState]] = []
        self._step = step
        self._began = perf_counter()
        for place, (state, config) in enumerate(zip(states, configs, strict=True)):
            try:
                request = step.build_request(state)
            except Exception as exc:  # noqa: BLE001  (`_set_outcome` decides what it means)
                self._set_outcome(place, state, exc)
            else:
                if request is not None:
                    self.inputs.append(request)
                    self.configs.append(config)
                    self._asked.append((place, state))

    def apply(self, replies: list[Any]) -> None:
        waited = {self._step.title: round(1000 * (perf_counter() - self._began), 3)}
        for (place, state), reply in zip(self._asked, reraise_interrupts(replies), strict=True):
            self._set_outcome(place, replace(state, timings={**state.timings, **waited}), reply)

    def _set_outcome(self, place: int, state: CheckState, reply: Any) -> None:
        try:
            self.outcomes[place] = self._step.outcome(state, reply)
        except Exception as exc:  # noqa: BLE001  (returned as this input's outcome)
            self.outcomes[place] = exc


@dataclass
class _StreamedReply:
    """Accumulates a streamed reply and applies it to the state."""

    step: Step
    state: CheckState
    error: Exception | None = None
    total: Any = None

    def add(self, part: Any) -> CheckState:
        self.total = part if self.total is None else self.total + part
        return self.step.apply_reply(self.state, self.total, complete=False)

    def end(self) -> CheckState:
        if self.error is None:
            return self.step.outcome(self.state, self.total)
        kept = self.state
        if self.total is not None:
            with suppress(Exception):  # the part itself may be unreadable
                kept = self.step.apply_reply(self.state, self.total, complete=False)
        return self.step.on_error(kept, self.error)


@dataclass(frozen=True, kw_only=True)
class Check:
    """Configuration of a check: its runnables and options."""

    extractor: ClaimExtractor
    verifier: Verifier
    corrector: Runnable[CorrectionTask, CorrectedAnswer]
    max_claims: int | None
    on_contradicted: OnContradicted
    on_unverifiable: OnUnverifiable
    on_unchecked: OnUnverifiable
    trust_threshold: float
    policy: DecisionPolicy
    raise_on_failure: bool
    permanent_errors: tuple[type[Exception], ...] = ()
    """Errors that fail every answer alike: they are raised, and leave no claims unchecked."""
    metadata_keys: tuple[str, ...] = ()
    """Keys of the metadata that verifiers read before the text of a document."""
    single_pass: Runnable[VerificationTask, list[ClaimVerdict]] | None = None
    """Finds and judges the claims of a whole answer in one call. Extractor and verifier then serve
    only sentence-by-sentence checks and edits."""
    limit: AbstractAsyncContextManager[Any] = field(default_factory=nullcontext)
    """Limits how many steps of several answers wait for a model at once."""

    @property
    def judges_together(self) -> bool:
        """Return whether the verifier batches the claims of many answers."""
        asked = self.verifier
        verifier = type(asked.verifier if isinstance(asked, CachedVerifier) else asked)
        return verifier.batch is not Runnable.batch or verifier.abatch is not Runnable.abatch

    @property
    def edited_verdicts(self) -> frozenset[str]:
        """Verdicts whose claims are corrected or removed."""
        actions = {
            "contradicted": self.on_contradicted,
            "unverifiable": self.on_unverifiable,
            "unchecked": self.on_unchecked,
        }
        return frozenset(label for label, action in actions.items() if action in _EDITS)

    def pipeline(self, read: InputReader) -> Runnable[Any, CheckState]:
        """Build the pipeline of all steps, starting with the input."""
        editing = [self.editing()] if self.edited_verdicts else []
        return reduce(or_, [*self.on_whole_answers(), *editing], reading(read))

    def on_whole_answers(self) -> tuple[Runnable[CheckState, CheckState], ...]:
        """Build the steps that find and judge the claims of a whole answer."""
        if self.single_pass is None:
            logic = self.extraction, self.with_claims, self.without_claims
            extract = Step("extract_claims", self.extractor, logic, self.limit)
            return extract, self.verifying(edit=False)
        judging = self.judgement, self.with_judgement, self.without_judgement
        return (Step("judge_answer", self.single_pass, judging, self.limit),)

    def verifying(self, *, edit: bool = True) -> Runnable[CheckState, CheckState]:
        """Build the steps after extraction."""
        logic = self.verification, self.with_verdicts, self.without_verdicts
        verify = Step("verify_claims", self.verifier, logic, self.limit)
        return verify | self.editing() if edit and self.edited_verdicts else verify

    def editing(self) -> Runnable[CheckState, CheckState]:
        """Build the steps that edit the text and verify the edits."""
        correction = self.correction, self.with_correction, self.without_correction
        correct = Step("correct_answer", self.corrector, correction, self.limit)
        recheck = self.recheck, self.with_recheck, self.without_recheck
        return correct | Step("recheck_edits", self.verifier, recheck, self.limit)

    def task(self, state: CheckState, claims: Sequence[Claim]) -> VerificationTask:
        """Build a verification task for claims, with the documents as verifiers read them."""
        source = state.source
        return VerificationTask(
            claims=tuple(claims),
            documents=with_metadata(source.documents, self.metadata_keys),
            question=source.question,
            answer=source.answer,
        )

    def judgement(self, state: CheckState) -> VerificationTask | None:
        """Build the single-pass request; `None` for a blank answer."""
        return self.task(state, ()) if state.source.answer.strip() else None

    def with_judgement(
        self, state: CheckState, reply: Sequence[ClaimVerdict], *, complete: bool
    ) -> CheckState:
        """Store claims and verdicts."""
        given = replies_of(ClaimVerdict, reply, source="judge")
        state = self.with_claims(state, [v.claim for v in given], complete=complete)
        if self.verification(state) is None:  # no claims or no documents
            return state
        return self.with_verdicts(state, given, complete=complete)

    def without_judgement(self, state: CheckState, error: Exception) -> CheckState:
        """Fall back to sentences, all unchecked, after a failure."""
        claims = tuple(sentences_of(state.source.answer))
        return self.without_verdicts(replace(state, claims=claims), error)

    def extraction(self, state: CheckState) -> ExtractionTask | None:
        """Build the extraction request; `None` for a blank answer."""
        if not state.source.answer.strip():
            return None
        return ExtractionTask(answer=state.source.answer, question=state.source.question)

    def with_claims(
        self, state: CheckState, reply: Sequence[Claim], *, complete: bool
    ) -> CheckState:
        """Store the claims; duplicate ids are made unique so that no claim is lost."""
        del complete
        by_id: dict[str, Claim] = {}
        for claim in replies_of(Claim, reply, source="extractor"):
            name, number = claim.id, 1
            while name in by_id:
                number += 1
                name = f"{claim.id}.{number}"
            by_id[name] = claim.model_copy(update={"id": name})
        return replace(state, claims=tuple(by_id.values()))

    def without_claims(self, state: CheckState, error: Exception) -> CheckState:
        """Fall back to unchecked sentences, so that the result shows what was not checked."""
        reason = f"claim extraction failed ({_cause(error)})"
        self._raise_if_asked(reason, error)
        return replace(state, claims=tuple(sentences_of(state.source.answer)), failure=reason)

    def verification(self, state: CheckState) -> VerificationTask | None:
        """Build the request for the first `max_claims` claims, if there is evidence."""
        claims = self.claims_to_check(state)
        if not claims or state.failure or not has_text(state.source.documents):
            return None
        return self.task(state, claims)

    def with_verdicts(
        self, state: CheckState, reply: Sequence[ClaimVerdict], *, complete: bool
    ) -> CheckState:
        """Match verdicts to claims; claims missing from a complete reply are unchecked."""
        task = self.task(state, self.claims_to_check(state))
        given = replies_of(ClaimVerdict, reply, source="verifier")
        answered = {verdict.claim.id for verdict in given}
        if not complete:
            task = task.only(c for c in task.claims if c.id in answered)
        verdicts = reconcile(task, given)
        unchecked = tuple(v.claim.id for v in verdicts if v.verdict == "unchecked")
        if self.raise_on_failure and unchecked and complete:
            why = next(v.reason for v in verdicts if v.verdict == "unchecked")
            claims = format_count(len(verdicts), "claim")
            msg = f"{len(unchecked)} of {claims} could not be checked: {why}"
            raise VerificationError(msg, claim_ids=unchecked)
        return replace(state, verdicts=tuple(self._cited(v, state) for v in verdicts))

    def _cited(self, verdict: ClaimVerdict, state: CheckState) -> ClaimVerdict:
        """Convert citations from documents as verifiers read them to those that were given."""
        given = state.source.documents
        cited = cited_metadata(verdict.citations, given, self.metadata_keys)
        same = cited == verdict.citations
        return verdict if same else verdict.model_copy(update={"citations": cited})

    def without_verdicts(self, state: CheckState, error: Exception) -> CheckState:
        """Leave claims without a verdict unchecked, with the reason; raise configuration errors."""
        if isinstance(error, ConfigurationError):
            raise error
        reason = f"verification failed ({_cause(error)})"
        known = {v.claim.id for v in state.verdicts}
        missing = tuple(c.id for c in state.claims or () if c.id not in known)
        self._raise_if_asked(reason, error, missing)
        return replace(state, failure=reason)

    def correction(self, state: CheckState) -> CorrectionTask | None:
        """Build the correction request if a verdict requires an edit."""
        verdicts = self.all_verdicts(state)
        if self.edited_verdicts.isdisjoint(v.verdict for v in verdicts):
            return None
        return CorrectionTask(
            answer=state.source.answer,
            verdicts=tuple(map(_without_metadata, verdicts)),
            documents=state.source.documents,
            question=state.source.question,
            on_contradicted=self.on_contradicted,
            on_unverifiable=self.on_unverifiable,
            on_unchecked=self.on_unchecked,
        )

    def without_correction(self, state: CheckState, error: Exception) -> CheckState:
        """Fall back to removing what had to be corrected."""
        self._raise_or_warn(f"correction failed ({_cause(error)})", error)
        return self._with_fallbacks(state, ())

    def with_correction(
        self, state: CheckState, reply: CorrectedAnswer, *, complete: bool
    ) -> CheckState:
        """Store validated edits."""
        if not complete:
            return state
        if not isinstance(reply, CorrectedAnswer):
            msg = f"the corrector must return a CorrectedAnswer, got {type(reply).__name__}"
            raise UnexpectedReplyError(msg)
        edits = tuple(sorted(reply.edits, key=lambda edit: (edit.start, edit.end)))
        check_edits(edits, state.source.answer, {v.claim.id for v in state.verdicts})
        state = replace(state, edits=edits)
        return state if self._reworded(state) else self._with_fallbacks(state, edits)

    def recheck(self, state: CheckState) -> VerificationTask | None:
        """Build the request that verifies the edited claims."""
        answer, known = state.source.answer, {v.claim.id: v.claim for v in state.verdicts}
        changed = [
            Claim(id=name, text=edited_claim(answer, known[name], edits))
            for name, edits in self._reworded(state).items()
        ]
        return self.task(state, changed) if changed else None

    def _reworded(self, state: CheckState) -> dict[str, list[tuple[Edit, str]]]:
        return rewordings(state.edits, state.verdicts, getattr(self.corrector, "marker", None))

    def with_recheck(
        self, state: CheckState, reply: Sequence[ClaimVerdict], *, complete: bool
    ) -> CheckState:
        """Replace edits unless the documents clearly support the claim as edited, and only it."""
        task = self.recheck(state)
        if not complete or task is None:
            return state
        verdicts = reconcile(task, replies_of(ClaimVerdict, reply, source="verifier"))
        failed = {v.claim.id for v in verdicts if not self._clearly_supported(v)}
        for name, edits in self._reworded(state).items():
            failed |= {name for edit, inserted in edits if inserts_more(edit, inserted)}
        return self._without_edits_of(failed, state)

    def _clearly_supported(self, verdict: ClaimVerdict) -> bool:
        probability = verdict.support_probability
        likely = probability is None or probability >= strict_threshold_of(self.verifier)
        supported = verdict.verdict == "supported" and not verdict.conflicting
        return supported and (likely or _is_quoted(verdict))

    def without_recheck(self, state: CheckState, error: Exception) -> CheckState:
        """Replace edits that could not be verified."""
        self._raise_or_warn(f"checking the edits failed ({_cause(error)})", error)
        return self._without_edits_of(self._reworded(state), state)

    def _without_edits_of(self, failed: Container[str], state: CheckState) -> CheckState:
        kept = tuple(edit for edit in state.edits if edit.claim_id not in failed)
        return self._with_fallbacks(state, kept)

    def _with_fallbacks(self, state: CheckState, kept: tuple[Edit, ...]) -> CheckState:
        """Keep some edits; replace or remove what had to be corrected or removed and is not."""
        if (task := self.correction(state)) is None:
            return replace(state, edits=kept)
        edited = {edit.claim_id for edit in kept}
        missing = [
            v
            for v in task.verdicts
            if (v.verdict == "contradicted" and self.on_contradicted == "correct")
            or (v.verdict == "unchecked" and self.on_unchecked == "strip")
            if v.claim.id not in edited and not is_covered(v.claim, kept)
        ]
        corrector = self.corrector
        if not isinstance(corrector, Corrector):
            corrector = Corrector(fallback="strip")
        edits = without_overlaps([*kept, *corrector.fall_back(task, missing)])
        return replace(state, edits=edits)

    def without_unchecked(self, state: CheckState) -> CheckState:
        """Remove claims that cannot be checked, if they must not be shown."""
        return self._with_fallbacks(state, ()) if self.on_unchecked == "strip" else state

    def _raise_if_asked(self, reason: str, error: Exception, claims: tuple[str, ...] = ()) -> None:
        if isinstance(error, self.permanent_errors):
            raise error
        if self.raise_on_failure:
            raise VerificationError(reason, claim_ids=claims) from error

    def _raise_or_warn(self, reason: str, error: Exception) -> None:
        """Tell of a failure that no verdict shows."""
        self._raise_if_asked(reason, error)
        _LOGGER.warning("%s: what could not be corrected is removed or replaced", reason)

    def all_verdicts(self, state: CheckState) -> tuple[ClaimVerdict, ...]:
        """Return one verdict per claim; those without one are unchecked, with a reason."""
        known = {verdict.claim.id: verdict for verdict in state.verdicts}
        return tuple(
            known.get(claim.id)
            or ClaimVerdict.unchecked(claim, self.unchecked_reason(state, index))
            for index, claim in enumerate(state.claims or ())
        )

    def claims_to_check(self, state: CheckState) -> tuple[Claim, ...]:
        """Return the claims within `max_claims`."""
        left = None if self.max_claims is None else max(0, self.max_claims - state.first)
        return (state.claims or ())[:left]

    def unchecked_reason(self, state: CheckState, index: int) -> str:
        """Explain why the claim at an index has no verdict."""
        if index >= len(self.claims_to_check(state)):
            return f"over max_claims={self.max_claims}"
        if state.failure is None and not has_text(state.source.documents):
            return no_documents(state.source)
        return state.failure or "not reached"

    def result(self, state: CheckState, usage: Usage) -> GroundednessResult:
        """Build the result from the final state."""
        source, verdicts = state.source, self.all_verdicts(state)
        score = trust_score(verdicts)
        final = self.final(source, verdicts, state.edits)
        return GroundednessResult(
            question=source.question,
            answer=apply_edits(source.answer, state.edits),
            original_answer=source.answer,
            documents=source.documents,
            evidence_source=source.evidence_source if source.documents else None,
            claims=verdicts,
            trust_score=score,
            verdict=answer_verdict(verdicts),
            is_trusted=self.policy.is_trusted(
                verdicts,
                answer=source.answer,
                trust_score=score,
                trust_threshold=self.trust_threshold,
            ),
            decision=final.decision,
            final=final,
            edits=state.edits,
            usage=usage,
            **source.labels,
        )

    def final(
        self, source: CheckInput, verdicts: Sequence[ClaimVerdict], edits: Sequence[Edit]
    ) -> FinalVerdict:
        """Judge the text that remains after some edits."""
        left = self.remaining_verdicts(verdicts, edits)
        text = apply_edits(source.answer, edits)
        if not text.strip():  # an answer that is empty because its check failed says so
            left = tuple(verdict for verdict in verdicts if verdict.verdict == "unchecked")
        given = self.decision_context(source.model_copy(update={"answer": text}), left)
        return FinalVerdict(
            verdict=answer_verdict(left),
            trust_score=given.trust_score,
            decision=self.policy.judge(given),
        )

    def remaining_verdicts(
        self, verdicts: Sequence[ClaimVerdict], edits: Sequence[Edit]
    ) -> tuple[ClaimVerdict, ...]:
        """Return the verdicts on the text that remains after some edits."""
        if not edits:
            return tuple(verdicts)
        return verdicts_after(verdicts, edits, getattr(self.corrector, "marker", None))

    def judged(self, result: GroundednessResult, edits: Sequence[Edit]) -> GroundednessResult:
        """Decide on a result again, for other edits of its answer."""
        labels = {name: getattr(result, name) for name in LABELS}
        source = CheckInput(answer=result.original_answer, **labels)
        final = self.final(source, result.claims, edits)
        return result.model_copy(update={"final": final, "decision": final.decision})

    def decision_context(
        self, source: CheckInput, verdicts: Sequence[ClaimVerdict], **known: Any
    ) -> DecisionContext:
        """Build the context for the policy; it may be unfinished (`complete`, `labelled`)."""
        return DecisionContext(
            verdicts=verdicts,
            answer=source.answer,
            trust_score=trust_score(verdicts),
            trust_threshold=self.trust_threshold,
            **known,
            **source.labels,
        )


def _without_metadata(verdict: ClaimVerdict) -> ClaimVerdict:
    """Leave out citations from metadata: a title does not replace a sentence."""
    cited = tuple(c for c in verdict.citations if c.field is None)
    return verdict.model_copy(update={"citations": cited})


def _cause(error: Exception) -> str:
    return str(error) if isinstance(error, UnexpectedReplyError) else cause(error)


def sentences_of(answer: str) -> list[Claim]:
    """Return the sentences to list as unchecked when extraction failed."""
    return SentenceClaimExtractor().invoke(answer) or whole_answer(answer)


def whole_answer(answer: str) -> list[Claim]:
    """Return an answer as a single claim, or none if it is blank."""
    text = answer.strip()
    return [Claim(id="c1", text=text, start=0, end=len(answer))] if text else []


def unchecked_result(
    source: CheckInput, reason: str, policy: DecisionPolicy, claims: Sequence[Claim]
) -> GroundednessResult:
    """Return the result of an answer whose check did not take place."""
    verdicts = tuple(ClaimVerdict.unchecked(claim, reason) for claim in claims)
    unread = ClaimVerdict.unchecked(Claim(id="c1", text=source.answer), reason)
    given = DecisionContext(
        verdicts=verdicts or (unread,),
        answer=source.answer,
        trust_score=None,
        failure=reason,
        **source.labels,
    )
    return GroundednessResult(
        question=source.question,
        answer=source.answer,
        original_answer=source.answer,
        documents=source.documents,
        evidence_source=source.evidence_source if source.documents else None,
        claims=verdicts,
        trust_score=None,
        verdict="unchecked",
        is_trusted=False,
        decision=policy.judge(given),
        **source.labels,
    )


_Reply = TypeVar("_Reply")


class UnexpectedReplyError(TypeError):
    """A user's runnable returned a value of the wrong type."""


def replies_of(kind: type[_Reply], reply: Any, *, source: str) -> tuple[_Reply, ...]:
    """Validate a reply that must be a list of one type."""
    if reply is None:
        return ()
    listed = isinstance(reply, list | tuple)
    wrong = [item for item in reply if not isinstance(item, kind)] if listed else [reply]
    if wrong:
        given = type(wrong[0]).__name__
        msg = f"the {source} must return a list of {kind.__name__}, got {given}"
        raise UnexpectedReplyError(msg)
    return tuple(reply)


def reading(read: InputReader) -> Runnable[Any, CheckState]:
    """Build the step that reads the input."""

    def start(value: Any) -> CheckState:
        return CheckState(source=read(value))

    async def astart(value: Any) -> CheckState:
        return CheckState(source=await read.aread(value))

    return RunnableLambda(start, astart, name="read_input")


def _is_quoted(verdict: ClaimVerdict) -> bool:
    """Tell whether a cited sentence says the claim word for word."""
    claim, *quotes = (
        " ".join(word.rstrip(".,;:!?") for word in fold(text).split())
        for text in (verdict.claim.text, *(cited.quote for cited in verdict.citations))
    )
    return any(f" {claim} " in f" {quote} " for quote in quotes)
