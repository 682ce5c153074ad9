"""Every fault at every entry point: how the checks are made, and how they may end.

`benchmarks/faults.py` prints what the tests here assert.
"""

import re
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from entries import (
    ANSWER,
    ENTRIES,
    FALSE,
    KNOWN,
    OPENED,
    PAID,
    SAMPLE,
    SECONDS,
    SENTENCES,
    Asked,
    Seen,
)
from langchain_core.language_models import BaseChatModel
from langchain_openai import ChatOpenAI

from langchain_groundedness.testing import FAULTS, Fault, FaultyServer, HonestJudge, KnownClaim

__all__ = ["ANSWER", "ENTRIES", "KNOWN", "RATES", "SAMPLE", "Cell", "Models", "cell", "judge"]

MAY_LEAVE = (
    OPENED,
    PAID,
    "It carries [CORRECTED: two] lanes of traffic.",
    "[CORRECTED: It carries two lanes of traffic and a footpath.]",  # the evidence itself
)
RATES = (1.0, 0.3)
_SHORT_TIMEOUT = 0.25
"""Ends calls that would never end. Nothing asserted depends on what came in time."""
_SCORE = 0.5


def judge() -> HonestJudge:
    return HonestJudge(KNOWN, {FALSE: "The Aldgate bridge carries six lanes of traffic."})


class Models:
    """Chat models for a server, which share their clients: making one takes a while."""

    def __init__(self, server: FaultyServer) -> None:
        self._plain = _chat(server, timeout=SECONDS, max_retries=0)
        self._retrying = _chat(server, timeout=SECONDS, max_retries=1)
        self._short_timeout = _chat(server, timeout=_SHORT_TIMEOUT, max_retries=0)

    def fresh(self, fault: str | None) -> BaseChatModel:
        """Give a model about which nothing is cached yet."""
        if fault is None:
            return self._plain.model_copy()
        if fault == "http_429":
            return self._retrying.model_copy()
        return (self._short_timeout if FAULTS[fault].slow else self._plain).model_copy()

    def asked(self, fault: str | None) -> Asked:
        """Give a fresh model, and a time that is short where only that ends a call."""
        slow = fault is not None and FAULTS[fault].slow
        return Asked(self.fresh(fault), _SHORT_TIMEOUT if slow else SECONDS)


def _chat(server: FaultyServer, **options: Any) -> ChatOpenAI:
    return ChatOpenAI(
        model="scripted",
        base_url=server.base_url,
        api_key="none",
        use_responses_api=False,
        **options,
    )


class Cell(NamedTuple):
    """One fault at one entry point."""

    ends: Counter[str]
    """How many claims or sentences ended how."""
    wrong: tuple[str, ...]
    """What must not be: empty."""
    seconds: float


def cell(
    server: FaultyServer, models: Models, entry: str, fault: str | Fault | None, rate: float
) -> Cell:
    """Check the sample through an entry point while a fault happens, and look at the outcome."""
    server.inject(fault, rate=rate, seed=len(entry) * 31)
    name = fault if isinstance(fault, str) else None
    begun = time.monotonic()
    seen = ENTRIES[entry](models.asked(name))
    seconds = time.monotonic() - begun
    wrong = [*_wrong_claims(seen), *_wrong_texts(seen), *_wrong_scores(seen)]
    if name is None or not FAULTS[name].slow:  # a client in a hurry may drop a right reply
        wrong += _lost(server, seen)
    return Cell(Counter([*_ends(seen)]), tuple(wrong), seconds)


def _wrong_claims(seen: Seen) -> Iterator[str]:
    for verdict in seen.claims:
        right = KNOWN.get(verdict.claim.text, KnownClaim("unverifiable")).verdict
        if verdict.verdict == "unchecked":
            if not verdict.reason:
                yield f"{verdict.claim.text!r} is unchecked without a reason"
        elif verdict.verdict != right:
            yield f"{verdict.claim.text!r} is {verdict.verdict}, not {right}"
    if seen.claims:
        told = {verdict.claim.text for verdict in seen.claims}
        covered = {ANSWER[v.claim.start : v.claim.end] for v in seen.claims} | told
        yield from (f"{s!r} is not among the claims" for s in SENTENCES if s not in covered)


def _wrong_texts(seen: Seen) -> Iterator[str]:
    for text in seen.texts:
        rest = text
        for sentence in SENTENCES:  # those not verified leave only with a mark behind them
            rest = rest.replace(f"{sentence} [UNCHECKED]", "")
        for sentence in MAY_LEAVE:
            rest = rest.replace(sentence, "")
        if rest.strip():
            yield f"{rest.strip()!r} was released"


def _wrong_scores(seen: Seen) -> Iterator[str]:
    for score in seen.scores:
        if score not in {None, _SCORE}:
            yield f"the score is {score}"


def _lost(server: FaultyServer, seen: Seen) -> Iterator[str]:
    """Name claims that the judge gave the right verdict on, and that came out unchecked."""
    judged = {
        claim
        for request in server.answered
        for shown in re.findall(r"<(?:claims|answer) \w+>\n(.*?)\n</", request.text, re.DOTALL)
        for claim in re.findall(r"^[CS]\d+: (.*)$", shown, re.MULTILINE)
    }
    if len(seen.claims) > len(SENTENCES):  # of several answers
        return
    for verdict in seen.claims:
        if verdict.verdict == "unchecked" and verdict.claim.text in judged:
            yield f"{verdict.claim.text!r} was judged, but is unchecked"


def _ends(seen: Seen) -> Iterator[str]:
    yield from ("unchecked" if v.verdict == "unchecked" else "right" for v in seen.claims)
    for text in seen.texts:
        marked = text.count("[UNCHECKED]")
        out = sum(sentence in text for sentence in MAY_LEAVE)
        out -= sum(f"{sentence} [UNCHECKED]" in text for sentence in MAY_LEAVE)
        yield from ["released"] * out + ["marked"] * marked
        yield from ["held"] * (len(SENTENCES) - out - marked)
