"""Vectors from any LangChain embeddings, checked and of length one."""

from collections.abc import Sequence
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


class _Embedding(Runnable[Any, Any]):
    """Calls embeddings from a flow, and leaves no run behind: traces would keep every vector."""

    def __init__(self, embeddings: Embeddings) -> None:
        self._embeddings = embeddings

    @override
    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Any:
        embed = self._embeddings
        return embed.embed_query(input) if isinstance(input, str) else embed.embed_documents(input)

    @override
    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Any:
        embed = self._embeddings
        if isinstance(input, str):
            return await embed.aembed_query(input)
        return await embed.aembed_documents(input)


def embedding_of_documents(embeddings: Embeddings, texts: Sequence[str]) -> ModelCall:
    """Ask for the vectors of texts."""
    return ModelCall(_Embedding(embeddings), list(texts))


def embedding_of_query(embeddings: Embeddings, text: str) -> ModelCall:
    """Ask for the vector of a query."""
    return ModelCall(_Embedding(embeddings), text)


def unit_rows(reply: Any, *, texts: int) -> Vectors:
    """Scale vectors to length one."""
    try:
        rows: Vectors = np.asarray(reply, dtype=np.float64)
    except (TypeError, ValueError):
        msg = f"the embeddings of {texts} texts are not vectors of one size"
        raise VectorsError(msg) from None
    if rows.ndim != 2 or len(rows) != texts or not rows.shape[1]:  # noqa: PLR2004  (a table)
        msg = f"the embeddings of {texts} texts have the shape {rows.shape}"
        raise VectorsError(msg)
    with np.errstate(all="ignore"):
        # By the largest number first, so that no square overflows or vanishes.
        rows = rows / np.abs(rows).max(axis=1, keepdims=True)
        rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    rows[~np.isfinite(rows).all(axis=1)] = np.nan
    return rows
