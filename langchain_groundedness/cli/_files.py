"""Writes the files that a command line names."""

from pathlib import Path

from langchain_groundedness.exceptions import ConfigurationError

__all__ = ["write_text"]


def write_text(path: Path, text: str) -> None:
    """Write a text into a file.

    Args:
        path: The file.
        text: The text.

    Raises:
        ConfigurationError: It cannot be written.
    """
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as exc:
        msg = f"{path}: {exc.strerror or type(exc).__name__}"
        raise ConfigurationError(msg) from exc
