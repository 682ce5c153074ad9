"""Scores pairs in one worker thread: requests made at the same time run together.

Its own module because threads and forks are its subject, not claims.
"""

import threading
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from hashlib import blake2b
from itertools import islice

import numpy as np

from langchain_groundedness.exceptions import GroundednessError
from langchain_groundedness.verification.embedded.encoder import (
    CLASSES,
    Encoder,
    Floats,
    Pair,
    PerThreads,
    encoder,
)

__all__ = ["PairScorer", "pair_scorer"]

_PAIRS_PER_ROUND = 256
_PAIRS_PER_REQUEST = 64
"""Pairs of one request in a round, so that a huge request does not keep the others waiting."""
_SCORES_KEPT = 8192
"""Scores that are kept for repeats; some 150 bytes each."""


class PairScorer:
    """Scores pairs in a thread of its own.

    While one round runs, requests gather; the next round takes them together. A pair that was
    asked for twice, or a moment ago, is scored once.
    """

    def __init__(self, threads: int) -> None:
        """Prepare; the encoder is loaded at the first request."""
        self._threads = threads
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="groundedness-encoder")
        self._lock = threading.Lock()
        self._waiting: deque[_Request] = deque()
        self._known: dict[bytes, bytes] = {}  # from the least to the most recently asked for

    def submit(self, pairs: Sequence[Pair]) -> "Future[Floats]":
        """Ask for scores."""
        request = _Request(pairs)
        if not pairs:
            request.future.set_result(np.zeros((0, len(CLASSES)), dtype=np.float32))
            return request.future
        with self._lock:
            self._waiting.append(request)
        try:
            self._worker.submit(self._work)
        except RuntimeError as exc:
            msg = (
                "the embedded verifier was called while Python shuts down, when no thread can be "
                "started: finish all checks before the program ends"
            )
            raise GroundednessError(msg) from exc
        return request.future

    def _work(self) -> None:
        while requests := self._next():
            self._try_round(requests)
            with self._lock:
                self._waiting.extend(request for request in requests if request.is_open)

    def _try_round(self, requests: "Sequence[_Request]") -> None:
        """Score a part of each; where that fails, each alone: one must not fail the others."""
        try:
            self._round(requests, encoder(self._threads))
        except Exception as exc:  # noqa: BLE001  (whoever asked hears of it)
            if len(requests) == 1:
                requests[0].fail(exc)
                return
            for request in requests:
                if request.is_open:
                    self._try_round([request])

    def _next(self) -> "list[_Request]":
        """Take as many requests as fit in a round."""
        taken: list[_Request] = []
        pairs = 0
        with self._lock:
            while self._waiting and pairs < _PAIRS_PER_ROUND:
                request = self._waiting.popleft()
                if request.is_open:
                    taken.append(request)
                    pairs += min(request.left, _PAIRS_PER_REQUEST)
        return taken

    def _round(self, requests: "Sequence[_Request]", model: Encoder) -> None:
        share = _PAIRS_PER_REQUEST if len(requests) > 1 else _PAIRS_PER_ROUND
        parts = [request.part(share) for request in requests]
        wanted = {_key(pair): pair for part in parts for pair in part}
        new = {key: pair for key, pair in wanted.items() if key not in self._known}
        if new:
            for key, row in zip(new, model.logits(list(new.values())), strict=True):
                self._known[key] = row.tobytes()
        for request, part in zip(requests, parts, strict=True):
            request.give([self._known[_key(pair)] for pair in part])
        for key in wanted:
            self._known[key] = self._known.pop(key)
        for key in list(islice(self._known, max(0, len(self._known) - _SCORES_KEPT))):
            del self._known[key]


class _Request:
    """Pairs, and how many of them have scores."""

    def __init__(self, pairs: Sequence[Pair]) -> None:
        self.future: Future[Floats] = Future()
        self._pairs = pairs
        self._rows: list[bytes] = []

    @property
    def left(self) -> int:
        return len(self._pairs) - len(self._rows)

    @property
    def is_open(self) -> bool:
        return not self.future.done()

    def part(self, most: int) -> Sequence[Pair]:
        return self._pairs[len(self._rows) : len(self._rows) + most]

    def give(self, rows: list[bytes]) -> None:
        self._rows += rows
        if not self.left and self.future.set_running_or_notify_cancel():
            logits = np.frombuffer(b"".join(self._rows), dtype=np.float32)
            self.future.set_result(logits.reshape(len(self._rows), len(CLASSES)).copy())

    def fail(self, error: Exception) -> None:
        if self.is_open and self.future.set_running_or_notify_cancel():
            self.future.set_exception(error)


def _key(pair: Pair) -> bytes:
    return blake2b(repr(pair).encode(), digest_size=16).digest()


_SCORERS = PerThreads(PairScorer)


def pair_scorer(threads: int | None = None) -> PairScorer:
    """Return the worker of this process."""
    return _SCORERS.get(threads)
