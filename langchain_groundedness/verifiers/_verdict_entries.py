"""Verdicts as a cache keeps them: under which key, in which words, and what is believed of them.

Pure. What comes out of a store is data from outside: an entry counts only if it is whole, belongs
to its key, and if every quote stands in the documents where it says.
"""

import json
from collections.abc import Set as AbstractSet
from hashlib import blake2b
from hmac import compare_digest
from typing import Any, Literal, NamedTuple, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import to_jsonable_python

from langchain_groundedness.types import (
    Citation,
    Claim,
    ClaimVerdict,
    Offset,
    Probability,
    VerificationTask,
)

__all__ = ["ALL_READ", "Evidence", "Reads", "entry_of", "key_of", "verdict_of"]

Reads = Literal["question", "answer", "metadata", "order"]
"""What of a task a verifier may read beside claim and documents' texts: the question; the whole
answer and where in it the claim stands; ids and metadata of the documents; their order."""
ALL_READ: frozenset[Reads] = frozenset(get_args(Reads))

_FORMAT = 1
"""To be raised when entries change, or what their keys are made of."""
_LARGEST = 1 << 20
"""Characters of an entry; verdicts have some hundred."""
_DIGITS = 64


class Evidence(NamedTuple):
    """The documents of a task, in an order that does not depend on the retriever's."""

    digest: bytes
    places: tuple[int, ...]
    """Indexes in the task, in that order."""

    @classmethod
    def of(cls, task: VerificationTask, reads: AbstractSet[str], secret: bytes) -> "Evidence":
        """Digest the documents.

        Args:
            task: The task.
            reads: What the verifier reads.
            secret: Key of the digests.

        Returns:
            The digest, equal for equal texts in any order, unless the verifier reads that too.
        """
        digests = [
            _digest(
                secret,
                document.page_content,
                *([document.id, _plain(document.metadata)] if "metadata" in reads else ()),
            )
            for document in task.documents
        ]
        places = range(len(digests))
        ordered = places if "order" in reads else sorted(places, key=digests.__getitem__)
        return cls(_digest(secret, *(digests[place] for place in ordered)), tuple(ordered))


def key_of(  # noqa: PLR0913  (a key is made of all that counts)
    task: VerificationTask,
    claim: Claim,
    *,
    evidence: Evidence,
    identity: str,
    reads: AbstractSet[str],
    secret: bytes,
) -> str:
    """Give the key of a verdict.

    Args:
        task: The task.
        claim: One of its claims.
        evidence: Its documents.
        identity: What the verifier's verdicts depend on.
        reads: What it reads of the task.
        secret: Key of the digest.

    Returns:
        64 hexadecimal digits.
    """
    answer = [task.answer, str(claim.start), str(claim.end)] if "answer" in reads else []
    question = task.question if "question" in reads else None
    parts = (str(_FORMAT), identity, claim.text, question, *answer)
    return _digest(secret, evidence.digest, *parts).hex()


class _Quote(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)

    place: Offset
    """Of the document, in the order of `Evidence`."""
    start: Offset
    end: Offset
    digest: str


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)

    verdict: Literal["supported", "contradicted", "unverifiable"]
    support_probability: Probability | None
    explanation: str
    quotes: tuple[_Quote, ...] = Field(max_length=10_000)
    correction: str | None
    conflicting: bool
    verifier: str


def entry_of(
    verdict: ClaimVerdict, task: VerificationTask, key: str, *, evidence: Evidence, secret: bytes
) -> str | None:
    """Write a verdict down.

    Args:
        verdict: On a claim of the task.
        task: The task.
        key: The key of the verdict.
        evidence: The documents of the task.
        secret: Key of the checksum.

    Returns:
        The entry, in ASCII; `None` if the claim was not checked, or if reading the entry would not
        give the same again.
    """
    if verdict.verdict == "unchecked":
        return None
    place_of = {index: place for place, index in enumerate(evidence.places)}
    quotes = [
        {
            "place": place_of[cited.document],
            "start": cited.start,
            "end": cited.end,
            "digest": _digest(secret, cited.quote).hex(),
        }
        for cited in verdict.citations
    ]
    kept = verdict.model_dump(exclude={"claim", "citations", "reason"})
    body = json.dumps({**kept, "quotes": quotes})
    entry = f"{_sum(key, body, secret)}{body}"
    again = verdict_of(entry, task, verdict.claim, key, evidence=evidence, secret=secret)
    return entry if again is not None and _content(again) == _content(verdict) else None


def verdict_of(  # noqa: PLR0913  (as above)
    entry: object,
    task: VerificationTask,
    claim: Claim,
    key: str,
    *,
    evidence: Evidence,
    secret: bytes,
) -> ClaimVerdict | None:
    """Read an entry.

    Args:
        entry: What a store gave, whatever it is.
        task: The task.
        claim: The claim of the task that is asked about.
        key: The key of the verdict.
        evidence: The documents of the task.
        secret: Key of the checksum.

    Returns:
        The verdict, about this claim, citing the documents of this task; `None` if the entry is
        not to be believed.
    """
    text = _text(entry)
    if text is None or not compare_digest(
        text[:_DIGITS].encode(), _sum(key, text[_DIGITS:], secret).encode()
    ):
        return None
    try:
        found = _Entry.model_validate_json(text[_DIGITS:])
    except ValidationError:
        return None
    citations = [_citation(quote, task, evidence, secret) for quote in found.quotes]
    stands = [citation for citation in citations if citation is not None]
    needed = found.verdict != "unverifiable"
    if len(stands) < len(citations) or (needed and not stands):
        return None
    if found.correction is not None and found.verdict != "contradicted":
        return None
    fields = {name: getattr(found, name) for name in _Entry.model_fields if name != "quotes"}
    return ClaimVerdict(claim=claim, citations=tuple(stands), **fields)


def _text(entry: object) -> str | None:
    if isinstance(entry, bytes | bytearray):
        try:
            entry = entry.decode("ascii") if len(entry) <= _LARGEST else None
        except UnicodeDecodeError:
            return None
    if not isinstance(entry, str) or len(entry) > _LARGEST or not entry.isascii():
        return None
    return entry


def _citation(
    quote: _Quote, task: VerificationTask, evidence: Evidence, secret: bytes
) -> Citation | None:
    if quote.place >= len(evidence.places):
        return None
    document = evidence.places[quote.place]
    text = task.documents[document].page_content[quote.start : quote.end]
    if len(text) != quote.end - quote.start or not text.strip():
        return None
    if not compare_digest(quote.digest.encode(), _digest(secret, text).hex().encode()):
        return None
    return Citation.from_document(task.documents, document, quote.start, quote.end)


def _content(verdict: ClaimVerdict) -> tuple[Any, ...]:
    """What of a verdict has to come back: all but what stands in the task itself."""
    cited = tuple((c.document, c.start, c.end, c.quote) for c in verdict.citations)
    return (cited, verdict.model_dump(exclude={"claim", "citations"}))


def _plain(metadata: dict[str, Any]) -> str:
    plain = to_jsonable_python(metadata, fallback=repr, bytes_mode="base64")
    return json.dumps(plain, sort_keys=True)


def _sum(key: str, body: str, secret: bytes) -> str:
    return _digest(secret, "entry", key, body).hex()


def _digest(secret: bytes, *parts: str | bytes | None) -> bytes:
    """Digest texts so that no two different lists of them look alike."""
    digest = blake2b(key=secret, digest_size=_DIGITS // 2)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        size = -1 if data is None else len(data)
        digest.update(size.to_bytes(8, "big", signed=True))
        digest.update(data or b"")
    return digest.digest()
