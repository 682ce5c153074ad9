"""Base of the evaluators that count verdicts on claims."""

from abc import ABC
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self, TypeVar

from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig
from pydantic import Field, PrivateAttr, model_validator
from typing_extensions import override

from langchain_groundedness._runtime.flow import Flow, ModelCall
from langchain_groundedness._runtime.options import AnyRunnable
from langchain_groundedness._runtime.telemetry import count
from langchain_groundedness.evals.evaluator import Evaluator
from langchain_groundedness.evals.summary import add_usage
from langchain_groundedness.evals.values import RowScore
from langchain_groundedness.exceptions import GroundednessError
from langchain_groundedness.inputs.formats import CheckInput, has_text, no_documents
from langchain_groundedness.llm.chat_models import ChatModel
from langchain_groundedness.llm.usage import counted
from langchain_groundedness.pipeline.check import Check, CheckState, replies_of
from langchain_groundedness.pipeline.recording import encoder_checksum
from langchain_groundedness.runnable import GroundednessRunnable
from langchain_groundedness.types import (
    Citation,
    Claim,
    ClaimVerdict,
    GroundednessResult,
    Usage,
    VerificationTask,
)
from langchain_groundedness.verification import EmbeddedVerifier
from langchain_groundedness.verification.by_name import AnyVerifier
from langchain_groundedness.verification.scoring import reconcile

__all__ = [
    "ClaimEvaluator",
    "ClaimGroup",
    "plain_verdicts",
    "supported_count",
    "supported_share",
    "unchecked_reason",
]

_NOTHING = "There is no text that could support it."

InputT = TypeVar("InputT")
OutputT = TypeVar("OutputT")


class ClaimGroup(NamedTuple):
    """Claims to judge against the same documents of a row."""

    claims: tuple[Claim, ...]
    documents: tuple[int, ...]
    """Indices of the documents."""


class ClaimEvaluator(Evaluator, ABC):
    """Base of evaluators that find claims and have them judged, as `GroundednessRunnable` does."""

    model: ChatModel | None = None
    """Chat model that extracts and judges claims; `None` for the embedded verifier."""
    verifier: AnyVerifier | None = None
    """Judges the claims; by default the model, or the embedded verifier."""
    extractor: AnyRunnable | None = None
    """Finds the claims; by default the model, or sentences where there is no model."""
    max_claims: int | None = Field(default=None, ge=1)
    """Most claims of one text to verify; a row with more fails."""

    _made: GroundednessRunnable | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _usable_parts(self) -> Self:
        self._checker()
        return self

    def _checker(self) -> GroundednessRunnable:
        if self._made is None:
            self._made = GroundednessRunnable(**self._checker_options())
        return self._made

    def _checker_options(self) -> dict[str, Any]:
        names = ("model", "model_timeout", "verifier", "extractor", "max_claims")
        return {name: getattr(self, name) for name in names}

    @property
    def _check(self) -> Check:
        return self._checker().check

    @override
    def _defaults(self) -> Mapping[str, Any]:
        check = self._check
        if check.single_pass is not None:
            return {"single_pass": check.single_pass}
        embedded = isinstance(check.verifier, EmbeddedVerifier)
        checksum = {"encoder": encoder_checksum()} if embedded else {}
        return {"extractor": check.extractor, "verifier": check.verifier, **checksum}

    def _judge_all(self, sources: Sequence[CheckInput]) -> Flow[list[GroundednessResult]]:
        """Check all texts in one batch; without documents, no claim is supported."""
        states, spent = [CheckState(source=source) for source in sources], [Usage()] * len(sources)
        for step in self._check.on_whole_answers():
            done: list[tuple[CheckState, Usage]] = yield ModelCall(_Batch(step), states)
            states = [state for state, _ in done]
            spent = [add_usage(*costs) for costs in zip(spent, (u for _, u in done), strict=True)]
        results = list(map(self._check.result, states, spent))
        for result in results:
            count(result)
        return [
            result if has_text(source.documents) else self._unsupported(source, result)
            for source, result in zip(sources, results, strict=True)
        ]

    def _claims_of(self, text: str, question: str | None) -> Flow[tuple[Claim, ...]]:
        """Find the claims of a text; raises if that fails."""
        state = CheckState(source=CheckInput(answer=text, question=question))
        if (task := self._check.extraction(state)) is None:
            return ()
        reply = yield ModelCall(self._check.extractor, task)
        claims = self._check.with_claims(state, reply, complete=True).claims or ()
        if self.max_claims is not None and len(claims) > self.max_claims:
            msg = f"{len(claims)} claims, over max_claims={self.max_claims}"
            raise UncheckedError(msg)
        return claims

    def _judge_against(
        self,
        groups: Sequence[ClaimGroup],
        documents: tuple[Document, ...],
        *,
        question: str | None,
        answer: str,
    ) -> Flow[list[tuple[ClaimVerdict, ...]]]:
        """Judge claims against subsets of the documents, in one batch.

        Citations of the verdicts refer to all documents. Without documents, no claim is supported.
        """
        tasks = [
            VerificationTask(
                claims=group.claims,
                documents=tuple(documents[n] for n in group.documents),
                question=question,
                answer=answer,
            )
            for group in groups
        ]
        found = [tuple(map(_not_supported, task.claims)) for task in tasks]
        asked = [n for n, each in enumerate(tasks) if each.claims and has_text(each.documents)]
        if asked:
            verify = _Batch(self._check.verifier)
            replies = yield ModelCall(verify, [tasks[n] for n in asked])
            for n, (reply, _) in zip(asked, replies, strict=True):
                found[n] = tuple(_placed(tasks[n], groups[n], reply, documents))
        return found

    def _row_score(  # noqa: PLR0913  (what a score is made of)
        self,
        score: float | None,
        verdicts: Sequence[ClaimVerdict],
        *,
        nothing: str,
        comment: str,
        details: Mapping[str, Any],
        result: GroundednessResult | None,
    ) -> RowScore:
        """Make a score, unless verdicts are missing or there is no claim."""
        if reason := unchecked_reason(verdicts):
            return self._failed(reason, details=details, result=result)
        if score is None:
            return self._skipped(nothing, details=details, result=result)
        return self._scored(score, comment=comment, details=details, result=result)

    def _result(self, source: CheckInput, verdicts: Iterable[ClaimVerdict]) -> GroundednessResult:
        """Build the result that the run-time check would return."""
        listed = tuple(verdicts)
        state = CheckState(source=source, claims=tuple(v.claim for v in listed), verdicts=listed)
        return self._check.result(state, Usage())

    def _unsupported(self, source: CheckInput, result: GroundednessResult) -> GroundednessResult:
        missing = no_documents(source)
        return self._result(
            source,
            (_not_supported(v.claim) if v.reason == missing else v for v in result.claims),
        ).model_copy(update={"usage": result.usage})


class UncheckedError(GroundednessError):
    """A row has no score, since something in it could not be checked."""


class _Batch(Runnable[list[InputT], list[tuple[OutputT, Usage]]]):
    """Batches a runnable, with the usage of each entry; adds no traced run of its own."""

    def __init__(self, runnable: Runnable[InputT, OutputT]) -> None:
        self._runnable = runnable

    @override
    def invoke(
        self, input: list[InputT], config: RunnableConfig | None = None, **_: Any
    ) -> list[tuple[OutputT, Usage]]:
        configs, counters = zip(*(counted(config or {}) for _ in input), strict=True)
        done = self._runnable.batch(input, list(configs))
        return [(each, counter.usage) for each, counter in zip(done, counters, strict=True)]

    @override
    async def ainvoke(
        self, input: list[InputT], config: RunnableConfig | None = None, **_: Any
    ) -> list[tuple[OutputT, Usage]]:
        configs, counters = zip(*(counted(config or {}) for _ in input), strict=True)
        done = await self._runnable.abatch(input, list(configs))
        return [(each, counter.usage) for each, counter in zip(done, counters, strict=True)]


def supported_share(verdicts: Sequence[ClaimVerdict]) -> float | None:
    """Give the share of claims that are supported."""
    if any(v.verdict == "unchecked" for v in verdicts):
        return None
    return supported_count(verdicts) / len(verdicts) if verdicts else None


def supported_count(verdicts: Sequence[ClaimVerdict]) -> int:
    """Count the claims that are supported."""
    return sum(v.verdict == "supported" for v in verdicts)


def unchecked_reason(verdicts: Sequence[ClaimVerdict]) -> str | None:
    """Say that claims could not be checked, if that is so."""
    reasons = [v.reason for v in verdicts if v.verdict == "unchecked"]
    if not reasons:
        return None
    return f"{len(reasons)} of {len(verdicts)} claims could not be checked: {reasons[0]}"


def plain_verdicts(verdicts: Iterable[ClaimVerdict]) -> list[dict[str, Any]]:
    """Write verdicts as plain data."""
    return [{"text": v.claim.text, "verdict": v.verdict} for v in verdicts]


def _placed(
    task: VerificationTask, group: ClaimGroup, reply: Any, documents: Sequence[Document]
) -> Iterable[ClaimVerdict]:
    """Match verdicts to claims, and map their citations to all documents."""
    for verdict in reconcile(task, replies_of(ClaimVerdict, reply, source="verifier")):
        citations = tuple(
            Citation.from_document(documents, group.documents[c.document], c.start, c.end)
            for c in verdict.citations
        )
        yield verdict.model_copy(update={"citations": citations})


def _not_supported(claim: Claim) -> ClaimVerdict:
    return ClaimVerdict(claim=claim, verdict="unverifiable", explanation=_NOTHING)
