"""The first stage: which verifier settles the claims, and what similarity has said of each."""

import re
from collections.abc import Sequence
from functools import partial
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler, BaseCallbackManager
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import Runnable, RunnableConfig
from typing_extensions import override

from langchain_groundedness.evals.validation._calibrated import Bands
from langchain_groundedness.evals.validation.values import Band, SourceClaim
from langchain_groundedness.types import ClaimVerdict
from langchain_groundedness.verifiers import (
    CascadeVerifier,
    EmbeddedVerifier,
    EmbeddingVerifier,
    LLMVerifier,
    Stage,
)

__all__ = ["GateListener", "listening", "source_verifier"]

_FIRST_STAGE = "stage:1"
_COSINE = re.compile(r"cosine similarity of (-?\d+\.\d+)")
"""How `EmbeddingVerifier` tells it: a cosine is no probability, and a verdict has no other place
for it. A test holds the two together."""


def source_verifier(
    *,
    bands: Bands,
    embeddings: Embeddings | None,
    model: Runnable[Any, Any] | None,
    verifier: Runnable[Any, Any] | None,
    timeout: float | None,
) -> CascadeVerifier:
    """Make the verifier of the first stage.

    Args:
        bands: Where similarity settles a claim.
        embeddings: Give the similarity; without them, the embedded verifier's probability does.
        model: Chat model that judges what lies between.
        verifier: Judges it instead of the model.
        timeout: Seconds to wait for one reply of the model.

    Returns:
        A cascade: similarity first, then the judge. Without a judge, that is the embedded verifier;
        where it has given the similarity, it stands alone.
    """
    judge = verifier
    if judge is None and model is not None:
        judge = LLMVerifier(model=model, timeout=timeout)
    if embeddings is not None:
        gate = EmbeddingVerifier(embeddings=embeddings, accept=bands.accept, reject=bands.reject)
        return CascadeVerifier([gate, judge or EmbeddedVerifier()])
    if judge is None:
        return CascadeVerifier([EmbeddedVerifier(threshold=bands.middle)])
    settles = partial(_is_clear, bands.accept, bands.reject)
    gated = Stage(verifier=EmbeddedVerifier(threshold=bands.reject), settles=settles)
    return CascadeVerifier([gated, judge])


def _is_clear(accept: float, reject: float, verdict: ClaimVerdict) -> bool:
    """Tell whether a probability settles a claim.

    A contradiction rejects the whole row, so that the judge sees it first.
    """
    return _band(verdict.support_probability, verdict, accept, reject) != "judge"


def listening(config: RunnableConfig, listener: BaseCallbackHandler) -> RunnableConfig:
    """Attach a listener to the runs below a config.

    Args:
        config: The config of child runs.
        listener: The listener.

    Returns:
        A config with the listener among its callbacks.
    """
    callbacks = config.get("callbacks")
    if isinstance(callbacks, BaseCallbackManager):
        manager = callbacks.copy()
        manager.add_handler(listener)
        return {**config, "callbacks": manager}
    return {**config, "callbacks": [*(callbacks or []), listener]}


class GateListener(BaseCallbackHandler):
    """Hears what the first stage has said about each claim of one row, before the judge."""

    run_inline = True
    ignore_llm = True
    ignore_chat_model = True
    ignore_retriever = True
    ignore_agent = True
    ignore_custom_event = True

    def __init__(self) -> None:
        """Start with nothing heard."""
        self._heard: dict[str, ClaimVerdict] = {}

    @override
    def on_chain_end(self, outputs: Any, *, tags: list[str] | None = None, **kwargs: Any) -> None:
        if _FIRST_STAGE in (tags or ()) and isinstance(outputs, list):
            for verdict in outputs:
                if isinstance(verdict, ClaimVerdict):
                    self._heard.setdefault(verdict.claim.id, verdict)

    def claims(self, verdicts: Sequence[ClaimVerdict], bands: Bands) -> tuple[SourceClaim, ...]:
        """Put what was heard beside the last word.

        Args:
            verdicts: The last word on each claim.
            bands: Where similarity settles a claim.

        Returns:
            The claims, in order.
        """
        return tuple(
            SourceClaim(
                verdict=verdict,
                similarity=_similarity(said),
                band=None if said is None else _band_heard(said, bands.accept, bands.reject),
                differs=said is not None and _differs(said),
            )
            for verdict in verdicts
            for said in [self._heard.get(verdict.claim.id)]
        )


def _similarity(said: ClaimVerdict | None) -> float | None:
    if said is None:
        return None
    if said.support_probability is not None:
        return said.support_probability
    told = _COSINE.search(said.explanation) or _COSINE.search(said.reason or "")
    return float(told[1]) if told else None


def _differs(said: ClaimVerdict) -> bool:
    return said.verdict == "contradicted" or "what differs" in (said.reason or "")


def _band_heard(said: ClaimVerdict, accept: float, reject: float) -> Band:
    if said.support_probability is not None:
        return _band(said.support_probability, said, accept, reject)
    if said.verdict == "supported":
        return "accept"
    return "reject" if said.verdict == "unverifiable" and _similarity(said) is not None else "judge"


def _band(similarity: float | None, said: ClaimVerdict, accept: float, reject: float) -> Band:
    if similarity is None or said.verdict in ("contradicted", "unchecked"):
        return "judge"
    if said.verdict == "supported" and similarity >= accept:
        return "accept"
    return "reject" if said.verdict == "unverifiable" and similarity < reject else "judge"
