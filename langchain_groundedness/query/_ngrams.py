"""Embeddings that need no model: the letters of a text, counted."""

import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from langchain_core.embeddings import Embeddings
from pydantic import ConfigDict, Field, model_validator
from typing_extensions import override

from langchain_groundedness._options import CheckedOptions
from langchain_groundedness.words import fold

__all__ = ["HashedNgramEmbeddings"]

_WORD = re.compile(r"\w+")
_WHOLE = "="
_WORD_WEIGHT = 3.0


class HashedNgramEmbeddings(CheckedOptions, Embeddings):
    """Embeds a text by the runs of letters in its words, with no model and no download.

    Each run of `shortest` to `longest` characters of a word, and each whole word, which counts
    three times, is hashed to a place in the vector and to a sign (feature hashing, Weinberger et
    al. 2009); the vector has length one, or is zero for a blank
    text. The same text has the same vector in every process and on every platform. Texts lie
    close together if they share words or parts of words; what they mean plays no part, so that a
    paraphrase without a common word is far away.

    Example:
        >>> a, b, c = HashedNgramEmbeddings().embed_documents(
        ...     ["Where is my order?", "My orders are late", "Sing a song"]
        ... )
        >>> dot = lambda x, y: sum(p * q for p, q in zip(x, y))
        >>> dot(a, b) > 2 * abs(dot(a, c))
        True
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    size: int = Field(default=2048, ge=16)
    """Numbers in a vector; the fewer, the more runs of letters fall on one place."""
    shortest: int = Field(default=2, ge=1)
    """Fewest characters in a run; the edge of a word counts as one."""
    longest: int = Field(default=4, ge=1)
    """Most characters in a run."""

    @model_validator(mode="after")
    def _ordered(self) -> Any:
        if self.longest < self.shortest:
            msg = f"longest must not be below shortest, got {self.shortest} and {self.longest}"
            raise ValueError(msg)
        return self

    @property
    def model_name(self) -> str:
        """What the vectors depend on, as a name."""
        return f"hashed-ngrams-v1-{self.shortest}-{self.longest}-{self.size}"

    @override
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    @override
    def embed_query(self, text: str) -> list[float]:
        vector = np.zeros(self.size)
        for (kind, run), count in Counter(self._runs(text)).items():
            number = _hashed(kind + run)
            weight = 1 + math.log(count)
            if kind == _WHOLE:
                weight *= _WORD_WEIGHT
            vector[number % self.size] += weight if number >> 63 else -weight
        length = float(np.linalg.norm(vector))
        values: list[float] = (vector / length if length else vector).tolist()
        return values

    def _runs(self, text: str) -> Iterator[tuple[str, str]]:
        folded = fold(text)
        for word in _WORD.findall(folded) or folded.split():
            yield _WHOLE, word
            edged = f" {word} "
            for length in range(self.shortest, self.longest + 1):
                for start in range(len(edged) - length + 1):
                    yield "", edged[start : start + length]


@lru_cache(maxsize=1 << 15)
def _hashed(run: str) -> int:
    """Hash to 64 bits; Python's own hash differs from process to process."""
    data = run.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest())
