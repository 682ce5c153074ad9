"""Tasks, and a judge that counts what it is asked and can be held up, for tests of caching."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig
from typing_extensions import override

from langchain_groundedness import (
    CachedVerifier,
    Citation,
    Claim,
    ClaimVerdict,
    VerificationTask,
)

SOON = 300
"""Seconds after which a test fails that waits for something; nothing takes as long."""
ROME = "Rome is the capital of Italy. It has 2.8 million inhabitants."
BARI = "Bari lies at the sea. Its port is old."


def task(*claims: str, documents: Sequence[str | Document] = (ROME, BARI)) -> VerificationTask:
    """A claim is named for its place, so that the same claim has other names elsewhere."""
    return VerificationTask(
        claims=tuple(
            Claim(id=f"{len(claims)}.{place}", text=text, start=place, end=place + 1)
            for place, text in enumerate(claims)
        ),
        documents=tuple(Document(d) if isinstance(d, str) else d for d in documents),
    )


def read(claim: Claim, documents: Sequence[Document]) -> ClaimVerdict:
    """Judge as a reader who knows only what stands there: word for word, or backwards."""
    cited = [
        Citation.from_document(documents, place, found, found + len(claim.text))
        for place, document in enumerate(documents)
        if claim.text.strip() and (found := document.page_content.find(claim.text)) >= 0
    ]
    if cited:
        return ClaimVerdict(
            claim=claim,
            verdict="supported",
            support_probability=1 / (1 + len(claim.text)),
            citations=tuple(cited),
            explanation=f"It says: {claim.text}",
            verifier="reader",
        )
    backwards = claim.text[::-1]
    against = [
        Citation.from_document(documents, place, found, found + len(backwards))
        for place, document in enumerate(documents)
        if backwards.strip() and (found := document.page_content.find(backwards)) >= 0
    ]
    return ClaimVerdict(
        claim=claim,
        verdict="contradicted" if against else "unverifiable",
        citations=tuple(against),
        correction=backwards if against else None,
        verifier="reader",
    )


class Reader(Runnable[VerificationTask, list[ClaimVerdict]]):
    """Counts what it is asked; waits, or fails, if a test wants it to."""

    def __init__(self, before: Callable[[VerificationTask], None] = lambda _: None) -> None:
        self.asked: list[str] = []
        self.before = before
        self._lock = threading.Lock()

    @override
    def invoke(
        self, input: VerificationTask, config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[ClaimVerdict]:
        return self._call_with_config(self._verify, input, config)

    def _verify(self, given: VerificationTask) -> list[ClaimVerdict]:
        with self._lock:
            self.asked += [claim.text for claim in given.claims]
        self.before(given)
        return [read(claim, given.documents) for claim in given.claims]


def cached(judge: Runnable[Any, Any], store: Any, **options: Any) -> CachedVerifier:
    """Cache a judge that reads no more than claims and texts."""
    return CachedVerifier(
        verifier=judge, store=store, **{"key": "1", "reads": frozenset(), **options}
    )
