"""The files of the model that is shipped with the package; read without numpy."""

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, NamedTuple

from langchain_groundedness.exceptions import ModelFileError

__all__ = [
    "Rarity",
    "damaged",
    "model_folder",
    "rarity",
    "read_model_file",
    "read_model_json",
]


def model_folder() -> Traversable:
    """Return the folder of the model that is shipped."""
    return files("langchain_groundedness") / "model"


def read_model_json(folder: Traversable, name: str) -> Mapping[str, Any]:
    """Read a JSON file of a model."""
    content = read_model_file(folder, name)
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


def read_model_file(folder: Traversable, name: str) -> bytes:
    """Read a file of a model."""
    try:
        return (folder / name).read_bytes()
    except OSError as exc:
        msg = (
            f"{name} of the embedded verifier cannot be read ({type(exc).__name__}). "
            "Install langchain-groundedness again."
        )
        raise ModelFileError(msg) from exc


class Rarity(NamedTuple):
    """Inverse paragraph frequencies of stems, counted over encyclopedia articles."""

    idf: dict[str, float]
    names: frozenset[str]
    rarest: float

    def weight(self, stem: str) -> float:
        """Weigh a stem."""
        return self.idf.get(stem, self.rarest)


@cache
def rarity() -> Rarity:
    """Load the table that is shipped beside the model, once."""
    table = read_model_json(model_folder(), "words.json")
    try:
        return Rarity(table["idf"], frozenset(table["names"]), table["rarest"])
    except KeyError as exc:
        raise ModelFileError(damaged("words.json")) from exc
