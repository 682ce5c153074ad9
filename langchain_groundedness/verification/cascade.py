"""A chain of verifiers; each judges only the claims that the previous ones left undecided."""

from collections.abc import Callable, Sequence
from typing import Any, Self

from langchain_core.load.serializable import Serializable
from pydantic import ConfigDict, model_validator
from typing_extensions import override

from langchain_groundedness._runtime.options import CheckedOptions
from langchain_groundedness.exceptions import ConfigurationError
from langchain_groundedness.types import ClaimVerdict, VerificationTask
from langchain_groundedness.verification.base import (
    AskVerifier,
    FinalVerdicts,
    PooledVerifier,
    VerdictSteps,
    checked_reply,
)
from langchain_groundedness.verification.by_name import AnyVerifier
from langchain_groundedness.verification.scoring import strict_threshold_of

__all__ = ["CascadeVerifier", "Stage"]


class Stage(CheckedOptions, Serializable):
    """A verifier in a cascade, and when its verdict is final.

    Without `settles`, a verdict is final if it lies outside the uncertain band of
    `support_probability`: `supported` at or above `settle_supported`, `contradicted` and
    `unverifiable` at or below `settle_unsupported`. A verdict without a probability is final.
    Before the last stage, `unchecked` and a verdict without the evidence it needs are never final.

    Example:
        >>> from langchain_core.runnables import RunnableLambda
        >>> Stage(verifier=RunnableLambda(lambda task: []), settle_supported=0.95).settle_supported
        0.95
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)
    _can_be_saved = True

    verifier: AnyVerifier
    """A verifier or its name, or any function or chain from a task to verdicts."""
    settle_supported: float = 0.9
    """From this support probability on, `supported` is final."""
    settle_unsupported: float = 0.1
    """Up to this support probability, `contradicted` and `unverifiable` are final."""
    settles: Callable[[ClaimVerdict], bool] | None = None
    """Decides whether a verdict is final, instead of the band. Not called for `unchecked`."""
    required: bool = False
    """Whether this stage must succeed. If so, a claim that it could not check, or judged without
    evidence, is `unchecked`, and no later stage judges it."""
    name: str | None = None
    """Name of the stage's runs in traces; by default the verifier's name."""

    @model_validator(mode="after")
    def _band(self) -> Self:
        if not 0 <= self.settle_unsupported <= self.settle_supported <= 1:
            msg = (
                "must satisfy 0 <= settle_unsupported <= settle_supported <= 1, got "
                f"settle_unsupported={self.settle_unsupported} and "
                f"settle_supported={self.settle_supported}"
            )
            raise ValueError(msg)
        return self

    @property
    def title(self) -> str:
        """Name of the stage in explanations and traces."""
        return self.name or self.verifier.get_name()

    def is_final(self, verdict: ClaimVerdict) -> bool:
        """Return whether later stages can skip this claim.

        Args:
            verdict: The verifier's verdict on a claim.

        Returns:
            True if no later stage judges the claim.
        """
        if verdict.verdict == "unchecked":
            return False
        if self.settles is not None:
            return self.settles(verdict)
        if verdict.support_probability is None:
            return True
        if verdict.verdict == "supported":
            return verdict.support_probability >= self.settle_supported
        return verdict.support_probability <= self.settle_unsupported


class CascadeVerifier(PooledVerifier):
    """Runs verifiers in order; each judges only the claims that are still undecided.

    The verdicts of the last stage are final, whatever its band. If it could not check a claim, the
    claim is `unchecked`, even if an earlier stage leaned towards a verdict; the explanation
    mentions that verdict. A stage that raises leaves its claims to the next one, unless it is
    `required`. Set `required` on a stage whose `supported` the next stage only confirms. In a
    batch, all tasks go through a stage together.

    Example:
        >>> from langchain_core.documents import Document
        >>> from langchain_groundedness.types import Citation, Claim, ClaimVerdict, VerificationTask
        >>> documents = (Document(page_content="Rome is old."),)
        >>> def exact(task):
        ...     quote = Citation.from_document(documents, 0, 0, 12)
        ...     return [
        ...         ClaimVerdict(claim=c, verdict="supported", citations=(quote,))
        ...         for c in task.claims
        ...         if c.text == quote.quote
        ...     ]
        >>> def thorough(task):
        ...     return [ClaimVerdict(claim=c, verdict="unverifiable") for c in task.claims]
        >>> claims = (Claim(id="1", text="Rome is old."), Claim(id="2", text="Rome is big."))
        >>> task = VerificationTask(claims=claims, documents=documents)
        >>> [v.verdict for v in CascadeVerifier([exact, thorough]).invoke(task)]
        ['supported', 'unverifiable']
    """

    stages: tuple[Stage, ...]
    """In the order they run; at least one. A bare verifier becomes a `Stage`."""

    def __init__(self, stages: Sequence[Any], **kwargs: Any) -> None:
        """Build the cascade from stages or bare verifiers."""
        if isinstance(stages, str) or not isinstance(stages, Sequence):
            came = "None" if stages is None else f"a value of type {type(stages).__name__}"
            msg = f"stages must be a list: CascadeVerifier([verifier, ...]); got {came}"
            raise ConfigurationError(msg)
        staged = [s if isinstance(s, Stage) else Stage(verifier=s) for s in stages]
        super().__init__(**{"stages": tuple(staged), **kwargs})

    @property
    def strict_threshold(self) -> float:
        """Minimum probability of support for what a correction says."""
        return max(strict_threshold_of(stage.verifier) for stage in self.stages)

    @override
    def _check_options(self) -> None:
        if not self.stages:
            msg = "a cascade needs at least one stage: pass stages=[verifier, ...]"
            raise ConfigurationError(msg)

    @override
    def _verdict_steps(self, tasks: Sequence[VerificationTask]) -> VerdictSteps:
        remaining = list(tasks)
        notes: list[dict[str, str]] = [{} for _ in tasks]
        for number, stage in enumerate(self.stages, 1):
            members = tuple(place for place, task in enumerate(remaining) if task.claims)
            if not members:
                return
            asked = [remaining[place] for place in members]
            replies = yield AskVerifier(
                stage.verifier,
                members,
                asked,
                {"tags": [f"stage:{number}"], "run_name": stage.title},
            )
            for place, task, reply in zip(members, asked, replies, strict=True):
                final, undecided = _split_verdicts(stage, task, reply)
                if number == len(self.stages):
                    final, undecided = [*final, *undecided], []
                yield FinalVerdicts(place, [_with_note(v, notes[place]) for v in final])
                remaining[place] = task.only(v.claim for v in undecided)
                notes[place].update((v.claim.id, _undecided_note(stage, v)) for v in undecided)


def _split_verdicts(
    stage: Stage, task: VerificationTask, reply: Any
) -> tuple[list[ClaimVerdict], list[ClaimVerdict]]:
    """Split the verdicts of a stage into final and undecided ones."""
    given = [v for v in reply if isinstance(v, ClaimVerdict)] if isinstance(reply, list) else []
    claimed = {v.claim.id for v in given if v.verdict in ("supported", "contradicted")}
    final: list[ClaimVerdict] = []
    undecided: list[ClaimVerdict] = []
    for verdict in checked_reply(task, reply, stage.title):
        unbacked = verdict.verdict == "unverifiable" and verdict.claim.id in claimed
        if stage.required and unbacked:
            reason = f"{stage.title} gave a verdict without evidence"
            final.append(ClaimVerdict.unchecked(verdict.claim, reason, verifier=stage.title))
        elif (stage.required and verdict.verdict == "unchecked") or (
            stage.is_final(verdict) and not unbacked
        ):
            final.append(verdict)
        else:
            undecided.append(verdict)
    return final, undecided


def _undecided_note(stage: Stage, verdict: ClaimVerdict) -> str:
    if verdict.reason is not None:
        return f"{stage.title} did not decide: {verdict.reason}."
    sure = verdict.support_probability
    odds = "" if sure is None else f" (support probability {sure:.2f})"
    return f"{stage.title} leaned to {verdict.verdict}{odds} but was not sure."


def _with_note(verdict: ClaimVerdict, notes: dict[str, str]) -> ClaimVerdict:
    note = notes.get(verdict.claim.id)
    if verdict.verdict != "unchecked" or note is None:
        return verdict
    return verdict.model_copy(update={"explanation": f"{verdict.explanation} {note}".strip()})
