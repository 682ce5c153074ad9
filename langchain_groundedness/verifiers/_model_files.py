"""The files of the embedded verifier's model, read with errors that say what to do."""

import json
from collections.abc import Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from langchain_groundedness.exceptions import ModelFileError

__all__ = ["damaged", "model_folder", "read_model_file", "read_model_json"]


def model_folder() -> Traversable:
    """Give the folder of the model that is shipped.

    Returns:
        The folder.
    """
    return files("langchain_groundedness") / "model"


def read_model_file(folder: Traversable, name: str) -> bytes:
    """Read a file of a model.

    Args:
        folder: Where it is.
        name: Its name.

    Returns:
        What it holds.

    Raises:
        ModelFileError: It cannot be read.
    """
    try:
        return (folder / name).read_bytes()
    except OSError as exc:
        msg = (
            f"{name} of the embedded verifier cannot be read ({type(exc).__name__}). "
            "Install langchain-groundedness again."
        )
        raise ModelFileError(msg) from exc


def read_model_json(folder: Traversable, name: str) -> Mapping[str, Any]:
    """Read a JSON file of a model.

    Args:
        folder: Where it is.
        name: Its name.

    Returns:
        The object it holds.

    Raises:
        ModelFileError: It cannot be read, or is no JSON object.
    """
    content = read_model_file(folder, name)
    try:
        return dict(json.loads(content))
    except (ValueError, TypeError) as exc:
        raise ModelFileError(damaged(name)) from exc


def damaged(name: str) -> str:
    """Word the error for a file that is not the one that was shipped.

    Args:
        name: Its name.

    Returns:
        The message.
    """
    return (
        f"{name} of the embedded verifier is damaged: it is not the file that was shipped. "
        "Install langchain-groundedness again."
    )
