"""Saving and loading with LangChain's `dumpd` and `load`."""

from typing import Any

from langchain_core.load.serializable import Serializable

from langchain_groundedness.runnable import GroundednessRunnable
from langchain_groundedness.streaming import GroundednessGuard
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
        claims,
        correction,
        decision,
        evals,
        evidence,
        query,
        verification,
    )

    folders = (claims, correction, decision, evals, evidence, query, verification)
    public = (getattr(folder, name) for folder in folders for name in folder.__all__)
    saved = (each for each in public if isinstance(each, type) and issubclass(each, Serializable))
    return {
        "allowed_objects": [
            *(each for each in saved if each.is_lc_serializable()),
            GroundednessGuard,
            GroundednessRunnable,
            SinglePassJudge,
            *classes,
        ],
        "valid_namespaces": ["langchain_groundedness"],
    }
