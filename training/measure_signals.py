"""Signals of whole claim sets, measured once and kept in a cache folder if one is given."""

import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from claim_sets import Example
from langchain_core.documents import Document
from numpy.typing import NDArray

from langchain_groundedness.verification.embedded.index import EvidenceIndex
from langchain_groundedness.verification.embedded.judgement import (
    find_difference,
    overrides_model,
    own_words_found,
)
from langchain_groundedness.verification.embedded.statement import read_statement
from langchain_groundedness.verification.embedded.windows import match_statement, signals

__all__ = ["Measured", "measure", "measure_cached"]


class Measured(NamedTuple):
    """A claim set in numbers."""

    names: tuple[str, ...]
    values: NDArray[np.float64]
    """One row per claim, one column per signal; rows of nan where nothing was found."""
    supported: NDArray[np.bool_]
    parts: NDArray[np.str_]
    groups: NDArray[np.str_]
    differences: NDArray[np.str_]
    """Kind of the difference that would outweigh the model, or empty."""
    seconds: float
    """Processor time, documents read once for neighbouring claims on them."""
    words: int
    """Words of documents, summed over the claims."""

    @property
    def found(self) -> NDArray[np.bool_]:
        """Which claims have any signals."""
        return ~np.isnan(self.values[:, 0])


def measure(examples: list[Example]) -> Measured:
    """Measure the signals of a set.

    Args:
        examples: Its claims; those with the same documents should be neighbours.

    Returns:
        The set in numbers.
    """
    rows: list[dict[str, float] | None] = []
    kinds: list[str] = []
    words, begun = 0, time.process_time()
    last: tuple[str, ...] | None = None
    for example in examples:
        if example.documents != last:
            index = EvidenceIndex([Document(page_content=text) for text in example.documents])
            last = example.documents
        words += index.words
        statement = read_statement(example.claim, example.question)
        match = match_statement(statement, index) if statement.items else None
        if match is None or not own_words_found(statement, match) or statement.denies:
            rows.append(None)
            kinds.append("")
            continue
        rows.append(signals(statement, match, index))
        finding = find_difference(statement, match, index)
        decisive = finding is not None and overrides_model(finding, statement, match)
        kinds.append(finding.difference.kind if finding and decisive else "")
    seconds = time.process_time() - begun
    names = tuple(next(row for row in rows if row))
    empty = [np.nan] * len(names)
    return Measured(
        names,
        np.array([list(row.values()) if row else empty for row in rows]),
        np.array([example.supported for example in examples]),
        np.array([example.part for example in examples]),
        np.array([example.group for example in examples]),
        np.array(kinds),
        seconds,
        words,
    )


def measure_cached(examples: list[Example], cache: Path | None, name: str) -> Measured:
    """Measure the signals of a set, or read what an earlier run kept.

    Args:
        examples: Its claims.
        cache: Folder for the arrays; `None` to keep nothing.
        name: Name of the set.

    Returns:
        The set in numbers.
    """
    if cache is None:
        return measure(examples)
    path = cache / f"{name}.npz"
    if not path.exists():
        cache.mkdir(parents=True, exist_ok=True)
        measured = measure(examples)
        np.savez_compressed(path, **measured._asdict())
    with np.load(path) as kept:
        fields = {key: kept[key] for key in Measured._fields}
    fields["names"] = tuple(fields["names"].tolist())
    return Measured(**fields)
