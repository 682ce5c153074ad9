"""What is asked at the same time is asked once: by tasks, threads and event loops of a process.

Whoever is first leads: it asks, and tells the others what came. They wait, each in its own way, and
hold nothing meanwhile, so that no two can wait for each other. A leader that is cancelled hands the
question back: one of the others leads then.
"""

import asyncio
import os
import threading
from asyncio import AbstractEventLoop
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from typing import NamedTuple, Self

__all__ = ["ABANDONED", "STUCK", "Leading", "Outcome", "Question", "afollow", "follow"]

_PATIENCE = 0.25
"""Seconds between two looks at whether the event loop of a leader still turns."""


class Outcome(NamedTuple):
    """What a leader has found out, or why there is nothing."""

    entry: str | None = None
    """The verdict, as it is kept."""
    reason: str | None = None
    """Why the claim could not be checked."""


ABANDONED = Outcome()
"""The leader went away, or can share nothing: ask yourself."""
STUCK = Outcome()
"""The leader waits for whoever waits for it: ask yourself, without leading."""


class Question:
    """Something that is being asked."""

    def __init__(self, loop: AbstractEventLoop | None) -> None:
        """Begin.

        Args:
            loop: The event loop in which the leader works; `None` for a thread.
        """
        self.loop = loop
        self.outcome: Future[Outcome] = Future()

    @property
    def is_dead(self) -> bool:
        """Whether its leader cannot go on: an event loop was closed in the middle of its work."""
        return self.loop is not None and self.loop.is_closed()

    def ping(self) -> threading.Event | None:
        """Ask the event loop of the leader for a sign of life.

        Returns:
            What is set when it turns; `None` if it never will.
        """
        turned = threading.Event()
        try:
            if self.loop is not None:
                self.loop.call_soon_threadsafe(turned.set)
        except RuntimeError:  # it is closed
            return None
        return turned


class _Open:
    """All questions that are being asked in this process."""

    def __init__(self) -> None:
        self.start_anew()

    def start_anew(self) -> None:
        """A forked child has none of its parent's threads: nobody would answer."""
        self.lock = threading.Lock()
        self.questions: dict[tuple[int, str], Question] = {}
        self.settled = 0


_OPEN = _Open()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_OPEN.start_anew)


class Leading:
    """The questions that one asker leads; those left over at the end are handed back."""

    def __init__(self, circle: object, loop: AbstractEventLoop | None = None) -> None:
        """Lead nothing yet.

        Args:
            circle: Questions are shared among those who name the same object, which has to stay
                alive meanwhile.
            loop: The event loop in which this asker works; `None` for a thread.
        """
        self._circle = id(circle)
        self._loop = loop
        self._led: dict[str, Question] = {}
        self._ended = False

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(self, *error: object) -> None:
        """Hand back what is still open."""
        with _OPEN.lock:
            self._ended = True
            left = list(self._led)
        for key in left:
            self.settle(key, ABANDONED)

    @property
    def settled(self) -> int:
        """How many questions of this process have got an outcome so far."""
        return _OPEN.settled

    def claim(self, keys: Iterable[str]) -> tuple[set[str], dict[str, Question]]:
        """Lead each question that nobody leads.

        Args:
            keys: The questions.

        Returns:
            Those that are led here now, and those that others lead.

        Raises:
            RuntimeError: It has ended: who asked was cancelled while this was on its way.
        """
        led: set[str] = set()
        others: dict[str, Question] = {}
        with _OPEN.lock:
            if self._ended:
                msg = "nobody waits for this any more"
                raise RuntimeError(msg)
            for key in keys:
                known = _OPEN.questions.get((self._circle, key))
                if known is None or known.is_dead:
                    known = self._led[key] = Question(self._loop)
                    _OPEN.questions[self._circle, key] = known
                    led.add(key)
                elif key not in self._led:
                    others[key] = known
        return led, others

    def settle(self, key: str, outcome: Outcome) -> None:
        """Tell everybody who waits.

        Args:
            key: A question; nothing happens if it is not led here.
            outcome: What there is to tell.
        """
        with _OPEN.lock:
            question = self._led.pop(key, None)
            if question is None:
                return
            if _OPEN.questions.get((self._circle, key)) is question:
                del _OPEN.questions[self._circle, key]
            _OPEN.settled += 1
        question.outcome.set_result(outcome)


def follow(questions: Mapping[str, Question]) -> dict[str, Outcome]:
    """Wait in a thread for what others lead.

    Args:
        questions: What they lead.

    Returns:
        The outcome of each; `STUCK` if the event loop of a leader does not turn, as it does where
        this thread is what keeps it waiting.
    """
    return {key: _follow(question) for key, question in questions.items()}


def _follow(question: Question) -> Outcome:
    turned: threading.Event | None = None
    while True:
        try:
            return question.outcome.result(_PATIENCE if question.loop is not None else None)
        except TimeoutError:
            if turned is not None and not turned.is_set():
                return STUCK
        turned = question.ping()
        if turned is None:
            return question.outcome.result() if question.outcome.done() else STUCK


async def afollow(questions: Mapping[str, Question]) -> dict[str, Outcome]:
    """Wait in an event loop for what others lead.

    Args:
        questions: What they lead.

    Returns:
        The outcome of each; `STUCK` if a leader works in another event loop, and that does not turn
        any more.
    """
    return {key: await _afollow(question) for key, question in questions.items()}


async def _afollow(question: Question) -> Outcome:
    # Nothing here cancels it: whoever stops waiting must not take the outcome from the others.
    outcome = asyncio.wrap_future(question.outcome)
    if question.loop in (None, asyncio.get_running_loop()):
        return await asyncio.shield(outcome)
    turned: threading.Event | None = None
    while not (await asyncio.wait([outcome], timeout=_PATIENCE))[0]:
        if turned is not None and not turned.is_set():
            return STUCK
        turned = question.ping()
        if turned is None:
            return await outcome if question.outcome.done() else STUCK
    return outcome.result()
