"""Writes the files that a command line names."""

from pathlib import Path

from langchain_groundedness.exceptions import ConfigurationError

__all__ = ["write_bytes", "write_text"]


def write_text(path: Path, text: str) -> None:
    """Write a text into a file.

    Args:
        path: The file.
        text: The text.

    Raises:
        ConfigurationError: It cannot be written.
    """
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, data: bytes) -> None:
    """Write data into a file.

    Args:
        path: The file.
        data: What to write.

    Raises:
        ConfigurationError: It cannot be written.
    """
    try:
        path.write_bytes(data)
    except OSError as exc:
        msg = f"{path}: {exc.strerror or type(exc).__name__}"
        raise ConfigurationError(msg) from exc
