"""Saving and loading with LangChain's `dumpd` and `load`."""

from typing import Any

from langchain_groundedness.claims.extractors import LLMClaimExtractor, SentenceClaimExtractor
from langchain_groundedness.correction.corrector import Corrector
from langchain_groundedness.decision import (
    Amount,
    Conditions,
    DecisionPolicy,
    DecisionRule,
    Range,
)
from langchain_groundedness.evidence.packing import EvidencePacker
from langchain_groundedness.runnable import GroundednessRunnable
from langchain_groundedness.streaming import GroundednessGuard
from langchain_groundedness.verification import CascadeVerifier, LLMVerifier, Stage
from langchain_groundedness.verification.single_pass import SinglePassJudge

__all__ = ["load_arguments"]


def load_arguments(*classes: type) -> dict[str, Any]:
    """Return the arguments that let `langchain_core.load.load` load objects of this package.

    `load` rejects classes from outside LangChain unless they are listed. Never call it on untrusted
    text: it instantiates the classes that the text names.

    Args:
        *classes: Further classes to allow, such as the class of the chat model.

    Returns:
        The arguments `allowed_objects` and `valid_namespaces`.

    Example:
        >>> from langchain_core.load import dumpd, load
        >>> checker = GroundednessRunnable(max_claims=3)
        >>> load(dumpd(checker), **load_arguments()) == checker
        True
    """
    from langchain_groundedness import (  # noqa: PLC0415  (not every check needs them)
        evals,
        query,
        verification,
    )

    return {
        "allowed_objects": [
            *(each for each in vars(evals).values() if _is_evaluator(each, evals.Evaluator)),
            Amount,
            CascadeVerifier,
            Conditions,
            Corrector,
            verification.CrossEncoderVerifier,
            DecisionPolicy,
            DecisionRule,
            verification.EmbeddedVerifier,
            verification.EmbeddingVerifier,
            EvidencePacker,
            GroundednessGuard,
            GroundednessRunnable,
            LLMClaimExtractor,
            query.LLMQueryClassifier,
            LLMVerifier,
            Range,
            query.RunnableQueryClassifier,
            SentenceClaimExtractor,
            SinglePassJudge,
            Stage,
            *classes,
        ],
        "valid_namespaces": ["langchain_groundedness"],
    }


def _is_evaluator(value: object, base: type) -> bool:
    return isinstance(value, type) and issubclass(value, base)
