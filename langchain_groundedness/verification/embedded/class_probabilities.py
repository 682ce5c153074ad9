"""How likely the embedded verifier finds each verdict on a claim."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from typing_extensions import override

from langchain_groundedness.types import ClaimVerdict, VerificationTask
from langchain_groundedness.verification.embedded.encoder import Floats
from langchain_groundedness.verification.embedded.judgement import Case
from langchain_groundedness.verification.embedded.support_model import (
    Reading,
    SupportModel,
    read_logits,
)
from langchain_groundedness.verification.embedded.verifier import EmbeddedVerifier

__all__ = ["ClassProbabilities", "ProbabilisticVerifier", "VerdictWithProbabilities"]


class ClassProbabilities(NamedTuple):
    """How likely each verdict is; adds up to 1."""

    supported: float
    """The support probability of the verdict, where it has one."""
    contradicted: float
    unverifiable: float


class VerdictWithProbabilities(ClaimVerdict):
    """A verdict, and how likely each of the three is."""

    probabilities: ClassProbabilities | None
    """`None` where the claim was not checked, or says nothing that could be."""


class ProbabilisticVerifier(EmbeddedVerifier):
    """The embedded verifier with class probabilities, called without runs of a `Runnable`."""

    def judge(self, tasks: Sequence[VerificationTask]) -> list[list[VerdictWithProbabilities]]:
        """Judge claims, all that the encoder reads for them together. Blocks until it has."""
        verdicts = {
            (found.task, verdict.claim.id): verdict
            for found in self._found(tasks, ())
            for verdict in found.verdicts
            if isinstance(verdict, VerdictWithProbabilities)
        }
        return [
            [verdicts[place, claim.id] for claim in task.claims] for place, task in enumerate(tasks)
        ]

    @override
    def _verdict(
        self, case: Case | ClaimVerdict, logits: Floats, model: SupportModel
    ) -> VerdictWithProbabilities:
        verdict = super()._verdict(case, logits, model)
        probabilities = _probabilities(verdict, case, read_logits(logits), model)
        return VerdictWithProbabilities(**dict(verdict), probabilities=probabilities)


def _probabilities(
    verdict: ClaimVerdict, case: Case | ClaimVerdict, reading: Reading | None, model: SupportModel
) -> ClassProbabilities | None:
    if verdict.verdict == "unchecked":
        return None
    support = verdict.support_probability
    if isinstance(case, ClaimVerdict):  # decided before anything was weighed
        return None if support is None else ClassProbabilities(support, 0.0, 1 - support)
    if support is None:
        # A bare "no" that nothing bears out: all there is to weigh is what speaks for the "yes".
        affirmed = 0.0 if case.signals is None else model.probability(case.signals, reading)
        return ClassProbabilities(0.0, affirmed, 1 - affirmed)
    share = _opposed_share(case, reading)
    return ClassProbabilities(support, (1 - support) * share, (1 - support) * (1 - share))


def _opposed_share(case: Case, reading: Reading | None) -> float:
    """Give how much of what does not speak for a claim speaks against it."""
    if case.statement.denies or case.finding is not None:
        return 1.0
    return 0.0 if reading is None else (1 + math.tanh(reading.opposition / 2)) / 2  # the sigmoid
