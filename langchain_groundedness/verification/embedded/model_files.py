"""The files of the model that is shipped with the package; read without numpy.

They are read as an import reads a module: some are first needed on an event loop, and those who
watch over one, such as `langgraph dev`, allow that.
"""

import json
from collections.abc import Mapping
from functools import cache
from pkgutil import get_data
from typing import Any, NamedTuple

from langchain_groundedness.exceptions import ModelFileError

__all__ = [
    "InverseFrequencies",
    "damaged",
    "inverse_frequencies",
    "read_model_file",
    "read_model_json",
]


def read_model_json(name: str) -> Mapping[str, Any]:
    """Read a JSON file of the model."""
    content = read_model_file(name)
    try:
        return dict(json.loads(content))
    except (ValueError, TypeError) as exc:
        raise ModelFileError(damaged(name)) from exc


def damaged(name: str) -> str:
    """Word the error for a file that is not the one that was shipped."""
    return (
        f"{name} of the embedded verifier is damaged: it is not the file that was shipped. "
        "Install langchain-groundedness again."
    )


def read_model_file(name: str) -> bytes:
    """Read a file of the model."""
    try:
        return get_data("langchain_groundedness", f"model/{name}") or b""
    except OSError as exc:
        msg = (
            f"{name} of the embedded verifier cannot be read ({type(exc).__name__}). "
            "Install langchain-groundedness again."
        )
        raise ModelFileError(msg) from exc


class InverseFrequencies(NamedTuple):
    """Inverse paragraph frequencies of stems, counted over encyclopedia articles."""

    idf: dict[str, float]
    names: frozenset[str]
    rarest: float

    def weight(self, stem: str) -> float:
        """Return the inverse frequency of a stem."""
        return self.idf.get(stem, self.rarest)


@cache
def inverse_frequencies() -> InverseFrequencies:
    """Load the table that is shipped beside the model, once."""
    table = read_model_json("words.json")
    try:
        return InverseFrequencies(table["idf"], frozenset(table["names"]), table["rarest"])
    except KeyError as exc:
        raise ModelFileError(damaged("words.json")) from exc
