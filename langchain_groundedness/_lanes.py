"""Threads for computing off the event loop: one for ordinary texts, one for very long ones.

Python computes in one thread at a time. With many threads that want to, the event loop waits for
each of them in turn, five milliseconds at a time, and nothing is done any sooner. Two are enough:
then a document that takes seconds to read does not keep the short ones waiting.
"""

import asyncio
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import ParamSpec, TypeVar

from langchain_core.documents import Document

from langchain_groundedness.exceptions import GroundednessError

__all__ = ["computed", "size_of"]

_P = ParamSpec("_P")
_T = TypeVar("_T")

_LONG = 200_000
"""Characters of documents that take about a second to read."""


def size_of(documents: Iterable[Document]) -> int:
    """Count the characters of documents.

    Args:
        documents: The documents.

    Returns:
        How many there are.
    """
    return sum(len(document.page_content) for document in documents)


async def computed(
    size: int, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs
) -> _T:
    """Compute something without keeping the event loop waiting.

    Args:
        size: How many characters it is about.
        function: What to compute; it must not wait for anything.
        *args: For the function.
        **kwargs: For the function.

    Returns:
        What the function returns.

    Raises:
        GroundednessError: Python shuts down, when no thread can be started any more.
    """
    work = partial(copy_context().run, _called, partial(function, *args, **kwargs))
    try:
        future = _LANES.of(size).submit(work)
    except RuntimeError as exc:
        msg = (
            "a check was begun while Python shuts down, when no thread can be started any more: "
            "finish all checks before the program ends"
        )
        raise GroundednessError(msg) from exc
    return await asyncio.wrap_future(future)


def _called(function: Callable[[], _T]) -> _T:
    try:
        return function()
    except StopIteration as exc:  # which no future can hold: whoever waits for it would for ever
        raise RuntimeError(*exc.args) from exc


class _Lanes:
    """Those of this process."""

    def __init__(self) -> None:
        self.start_anew()

    def of(self, size: int) -> ThreadPoolExecutor:
        return self._long if size > _LONG else self._short

    def start_anew(self) -> None:
        """A forked child has none of its parent's threads."""
        self._short = ThreadPoolExecutor(1, thread_name_prefix="groundedness-short")
        self._long = ThreadPoolExecutor(1, thread_name_prefix="groundedness-long")


_LANES = _Lanes()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_LANES.start_anew)
