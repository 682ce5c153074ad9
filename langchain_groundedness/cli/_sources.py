"""Reads the answer and the documents that a command line names."""

import sys
from collections.abc import Sequence
from pathlib import Path

from langchain_core.documents import Document

from langchain_groundedness._bounded import read_up_to, whole_up_to
from langchain_groundedness.cli._errors import CannotCheckError

__all__ = ["read_answer", "read_documents", "read_standard_input_once"]

LARGEST_TEXT = 64 << 20
"""Bytes of an answer or a document; what is larger is no text that an answer came from."""


def read_standard_input_once(*paths: str) -> None:
    """Refuse a command line that wants to read standard input twice.

    Args:
        *paths: What it names.

    Raises:
        CannotCheckError: It does.
    """
    if paths.count("-") > 1:
        msg = "standard input (-) can be given once, as the answer or as a document"
        raise CannotCheckError(msg)


def read_answer(given: str) -> str:
    """Read the answer.

    Args:
        given: The answer itself, or `@` and a path, or `-`.

    Returns:
        Its text.

    Raises:
        CannotCheckError: It cannot be read, or is blank.
    """
    if given.startswith("@@"):
        return given[1:]
    path = given.removeprefix("@")
    text = given if path == given != "-" else _read(path)
    if not text.strip():
        msg = "the answer is empty"
        raise CannotCheckError(msg)
    return text


def read_documents(paths: Sequence[str]) -> list[Document]:
    """Read the documents.

    Args:
        paths: Text files; `-` is standard input.

    Returns:
        One document per path.

    Raises:
        CannotCheckError: One cannot be read, or none holds text.
    """
    texts = {path: _read(path) for path in paths}
    if "-" in texts and not texts["-"].strip():
        msg = "standard input is empty"
        raise CannotCheckError(msg)
    if not any(text.strip() for text in texts.values()):
        msg = f"nothing to check against: {', '.join(paths)} held no text"
        raise CannotCheckError(msg)
    return [
        Document(page_content=text, metadata={"source": "stdin" if path == "-" else path})
        for path, text in texts.items()
    ]


def _read(path: str) -> str:
    name = "standard input" if path == "-" else path
    if not path:
        msg = "an empty path was given; name a file, or - for standard input"
        raise CannotCheckError(msg)
    try:
        data = (
            whole_up_to(sys.stdin.buffer, LARGEST_TEXT, Path(path))
            if path == "-"
            else read_up_to(Path(path), LARGEST_TEXT)
        )
    except OSError as error:
        msg = f"{name}: {error.strerror or type(error).__name__}"
        raise CannotCheckError(msg) from error
    if b"\0" in data:
        utf16 = data.startswith((b"\xff\xfe", b"\xfe\xff"))
        what = "UTF-16 text, not UTF-8" if utf16 else "binary data, not text"
        msg = f"{name}: {what}; convert it first"
        raise CannotCheckError(msg)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        msg = f"{name}: not UTF-8 text (byte {error.start}); convert it first"
        raise CannotCheckError(msg) from error
