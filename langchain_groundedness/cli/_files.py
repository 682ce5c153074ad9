"""Writes the files that a command line names."""

from pathlib import Path

from langchain_groundedness.cli._errors import CannotCheckError
from langchain_groundedness.exceptions import ConfigurationError

__all__ = ["require_json_lines", "write_bytes", "write_text"]

_OTHER_KINDS = (".csv", ".tsv", ".html", ".htm", ".md", ".xml", ".parquet", ".xlsx", ".gz", ".json")


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


def require_json_lines(path: Path, option: str) -> None:
    """Refuse a name that says that a file is of another kind than JSON lines.

    Args:
        path: The file that is to be written.
        option: The option that names it.

    Raises:
        CannotCheckError: Programs would open it as what it is not.
    """
    if path.suffix.lower() in _OTHER_KINDS:
        msg = f"{option} {path}: JSON lines are written there; name it {path.stem}.jsonl"
        raise CannotCheckError(msg)
