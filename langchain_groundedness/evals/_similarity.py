"""How close two texts lie to each other, by any LangChain embeddings."""

import numpy as np
from langchain_core.embeddings import Embeddings

from langchain_groundedness._flow import Flow
from langchain_groundedness._vectors import VectorsError, embedding_of_documents, unit_rows

__all__ = ["cosine_of"]


def cosine_of(embeddings: Embeddings, one: str, other: str) -> Flow[float]:
    """Give the cosine of the angle between the embeddings of two whole texts.

    Args:
        embeddings: The embeddings.
        one: A text.
        other: Another.

    Returns:
        From -1 to 1; 0 if a text is blank, since it has nothing in common with any other.

    Raises:
        VectorsError: There is no usable vector for one of them.
    """
    if not one.strip() or not other.strip():
        return 0.0
    reply = yield embedding_of_documents(embeddings, [one, other])
    first, second = unit_rows(reply, texts=2)
    cosine = float(first @ second)
    if np.isnan(cosine):
        msg = "the embedding of the answer or of the reference is zero or not a number"
        raise VectorsError(msg)
    return min(1.0, max(-1.0, cosine))
