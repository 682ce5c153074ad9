"""How likely the embedded verifier finds each verdict on a claim."""

from collections.abc import Sequence
from typing import NamedTuple

from typing_extensions import override

from langchain_groundedness.types import ClaimVerdict, VerificationTask
from langchain_groundedness.verification.embedded.encoder import Floats
from langchain_groundedness.verification.embedded.judgement import ClaimEvidence
from langchain_groundedness.verification.embedded.support_model import (
    EncoderLogOdds,
    SupportModel,
    read_logits,
)
from langchain_groundedness.verification.embedded.verifier import EmbeddedVerifier

__all__ = ["ClassProbabilities", "ProbabilisticVerdict", "ProbabilisticVerifier"]


class ClassProbabilities(NamedTuple):
    """How likely each verdict is; adds up to 1."""

    supported: float
    """The support probability of the verdict, where it has one."""
    contradicted: float
    unverifiable: float


class ProbabilisticVerdict(ClaimVerdict):
    """A verdict, and how likely each of the three verdicts is."""

    class_probabilities: ClassProbabilities | None
    """`None` where the claim was not checked, or says nothing that could be."""


class ProbabilisticVerifier(EmbeddedVerifier):
    """The embedded verifier, for callers who want probabilities and no `Runnable` runs."""

    def judge_all(self, tasks: Sequence[VerificationTask]) -> list[list[ProbabilisticVerdict]]:
        """Judge claims, all that the encoder reads for them together. Blocks until it has."""
        verdicts = {
            (found.task, verdict.claim.id): verdict
            for found in self._final_verdicts(tasks, ())
            for verdict in found.verdicts
            if isinstance(verdict, ProbabilisticVerdict)
        }
        return [
            [verdicts[place, claim.id] for claim in task.claims] for place, task in enumerate(tasks)
        ]

    @override
    def _verdict(
        self, evidence: ClaimEvidence | ClaimVerdict, logits: Floats, model: SupportModel
    ) -> ProbabilisticVerdict:
        verdict = super()._verdict(evidence, logits, model)
        class_probabilities = _class_probabilities(verdict, evidence, read_logits(logits), model)
        return ProbabilisticVerdict(**dict(verdict), class_probabilities=class_probabilities)


def _class_probabilities(
    verdict: ClaimVerdict,
    evidence: ClaimEvidence | ClaimVerdict,
    reading: EncoderLogOdds | None,
    model: SupportModel,
) -> ClassProbabilities | None:
    if verdict.verdict == "unchecked":
        return None
    support = verdict.support_probability
    if isinstance(evidence, ClaimVerdict):  # decided before anything was weighed
        return None if support is None else ClassProbabilities(support, 0.0, 1 - support)
    if support is None:
        # A bare "no" without evidence: all there is to measure is the evidence for the "yes".
        affirmed = 0.0 if evidence.signals is None else model.probability(evidence.signals, reading)
        return ClassProbabilities(0.0, affirmed, 1 - affirmed)
    share = _contradicted_share(evidence, reading, model)
    return ClassProbabilities(support, (1 - support) * share, (1 - support) * (1 - share))


def _contradicted_share(
    evidence: ClaimEvidence, reading: EncoderLogOdds | None, model: SupportModel
) -> float:
    """Return the share of contradiction in what is not support."""
    if evidence.statement.denies or evidence.finding is not None:
        return 1.0
    return 0.0 if reading is None else model.contradiction_probability(reading)
