"""Validated unit vectors from any LangChain embeddings."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import Runnable, RunnableConfig
from numpy.typing import NDArray
from typing_extensions import override

from langchain_groundedness._runtime.flow import ModelCall
from langchain_groundedness.exceptions import GroundednessError

__all__ = ["Vectors", "VectorsError", "embedding_of_documents", "embedding_of_query", "unit_rows"]

Vectors = NDArray[np.float64]


class VectorsError(GroundednessError):
    """The embeddings are not one usable vector per text."""


class _UntracedCall(Runnable[Any, Any]):
    """Calls embeddings without creating a run, so that traces do not store every vector."""

    def __init__(self, call: Callable[..., Any], acall: Callable[..., Any]) -> None:
        self._call, self._acall = call, acall

    @override
    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Any:
        return self._call(input)

    @override
    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Any:
        return await self._acall(input)


def embedding_of_documents(embeddings: Embeddings, texts: Sequence[str]) -> ModelCall:
    """Request the vectors of texts."""
    embed = _UntracedCall(embeddings.embed_documents, embeddings.aembed_documents)
    return ModelCall(embed, list(texts))


def embedding_of_query(embeddings: Embeddings, text: str) -> ModelCall:
    """Request the vector of a query."""
    return ModelCall(_UntracedCall(embeddings.embed_query, embeddings.aembed_query), text)


def unit_rows(reply: Any, *, texts: int) -> Vectors:
    """Scale vectors to length one; a row that has no direction becomes NaN."""
    try:
        rows: Vectors = np.asarray(reply, dtype=np.float64)
    except (TypeError, ValueError):
        msg = f"the embeddings of {texts} texts must be numeric vectors of one size"
        raise VectorsError(msg) from None
    if rows.ndim != 2 or len(rows) != texts or not rows.shape[1]:  # noqa: PLR2004  (a table)
        msg = f"{texts} texts must give embeddings of shape ({texts}, n), got shape {rows.shape}"
        raise VectorsError(msg)
    with np.errstate(all="ignore"):
        # Dividing by the largest number first keeps squares from overflowing or underflowing.
        rows = rows / np.abs(rows).max(axis=1, keepdims=True)
        rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    rows[~np.isfinite(rows).all(axis=1)] = np.nan
    return rows
