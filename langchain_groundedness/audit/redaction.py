"""Redacts, hashes or drops the texts of a record; pure."""

import hashlib
import hmac
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar, get_args

from langchain_groundedness._runtime.options import require_one_of
from langchain_groundedness.audit.record import AuditedDocument, AuditRecord, Content, Review
from langchain_groundedness.exceptions import ConfigurationError
from langchain_groundedness.types import Citation, Claim, ClaimVerdict

__all__ = ["MOST_UNCITED", "Redact", "Redaction", "without_texts"]

_T = TypeVar("_T")

Redact = Callable[[str], str]
"""Takes a text, returns the text that may be stored."""

MOST_UNCITED = 500_000
"""Limit on characters of uncited documents in a record under review."""

_ANSWERS = ("question", "original_answer", "shown_answer", "suggested_answer")

_WITH_TEXTS: dict[type, tuple[str, ...]] = {
    AuditRecord: (*_ANSWERS, "claims", "documents", "review"),
    AuditedDocument: ("id", "content", "metadata"),
    Review: ("answer", "note"),
    ClaimVerdict: ("claim", "explanation", "correction", "citations"),
    Claim: ("text",),
    Citation: ("quote", "document_id"),
}
"""The fields that contain texts."""

logger = logging.getLogger("langchain_groundedness")


@dataclass(frozen=True, kw_only=True)
class Redaction:
    """Decides what is kept of every text."""

    content: Content = "full"
    redact: Redact | None = None
    hash_key: str | bytes | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Check the options."""
        require_one_of("content", self.content, get_args(Content))
        if self.redact is not None and not callable(self.redact):
            msg = f"redact must be a function from str to str, got {type(self.redact).__name__}"
            raise ConfigurationError(msg)
        if self.hash_key is not None and not (
            isinstance(self.hash_key, str | bytes) and self.hash_key
        ):
            msg = "hash_key must be a non-empty str or bytes"
            raise ConfigurationError(msg)

    def record(self, record: AuditRecord) -> AuditRecord:
        """Return the record as stored."""
        record = self._without_unneeded_texts(record)
        if self.redact is None and self.content == "full":
            return record
        kept, why = self._redacted(record)
        update: dict[str, Any] = {"redacted": record.redacted or self.redact is not None}
        if why is not None:
            notes = (*record.notes, f"redaction failed ({why}): no text was saved")
            update = {"content": "none", "notes": notes}
        return _without_remaining_texts(kept.model_copy(update=update))

    def review(self, review: Review) -> Review:
        """Return the review as stored."""
        return self._redacted(review)[0]

    def _redacted(self, value: _T) -> tuple[_T, str | None]:
        """Return a value with the texts that may be stored: none if that fails, with the reason."""
        try:
            return _map_texts(value, self._stored_text), None
        except Exception as exc:  # noqa: BLE001  (whatever it is, nothing may leak)
            why = type(exc).__name__
            logger.warning("audit: redaction failed (%s); no text is saved", why)
            return _map_texts(value, lambda _: ""), why

    def _stored_text(self, text: str) -> str:
        if self.redact is not None:
            text = self.redact(text)
            if not isinstance(text, str):
                msg = "redact must return a str"
                raise TypeError(msg)
        if self.content == "full":
            return text
        return self.digest(text) if self.content == "hash" else ""

    def _without_unneeded_texts(self, record: AuditRecord) -> AuditRecord:
        """Drop unneeded and duplicate texts of documents; give documents digests."""
        # Without a reviewer, the texts of uncited documents are dropped. A reviewer needs them
        # for claims without a citation; each is kept whole while the limit allows.
        cited = {citation.document for claim in record.claims for citation in claim.citations}
        room = 0 if record.review.status == "none" else MOST_UNCITED
        documents = []
        for document in record.documents:
            update: dict[str, Any] = {}
            if document.content is not None:
                update["digest"] = document.digest or self._checksum(document.content)
                if document.index not in cited and len(document.content) > room:
                    update["content"] = None
                elif document.index not in cited:
                    room -= len(document.content)
            documents.append(document.model_copy(update=update))
        kept = {
            "documents": tuple(documents),
            "claims": _with_citations(record.claims, metadata={}),  # stored with the documents
            "content": self.content,
        }
        return record.model_copy(update=kept)

    def digest(self, text: str) -> str:
        """Give the checksum of a text, and its length."""
        return f"{self._checksum(text)}:{len(text)}"

    def _checksum(self, text: str) -> str:
        data = text.encode("utf-8", errors="surrogatepass")
        if self.hash_key is None:
            return f"sha256:{hashlib.sha256(data).hexdigest()}"
        key = self.hash_key.encode() if isinstance(self.hash_key, str) else self.hash_key
        return f"hmac-sha256:{hmac.new(key, data, hashlib.sha256).hexdigest()}"


def without_texts(record: AuditRecord, why: str) -> AuditRecord:
    """Return a record that cannot be serialized, without its texts."""
    names = ("id", "revision", "time", "source", "verdict", "decision", "review")
    return AuditRecord(
        **{name: getattr(record, name) for name in names},
        content="none",
        notes=(f"the record could not be serialized ({why})",),
    )


def _map_texts(value: Any, change: Redact) -> Any:
    """Apply a function to every text; an empty one has nothing to change."""
    if isinstance(value, str):
        return change(value) if value else value
    if isinstance(value, dict):
        return {key: _map_texts(item, change) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_map_texts(item, change) for item in value)
    names = next((names for kind, names in _WITH_TEXTS.items() if isinstance(value, kind)), ())
    if not names:
        return value
    return value.model_copy(update={n: _map_texts(getattr(value, n), change) for n in names})


def _without_remaining_texts(record: AuditRecord) -> AuditRecord:
    """Drop what is left of texts that are not kept; positions stay, and digests if asked for."""
    if record.content == "full":
        return record
    gone: dict[str, Any] = {"content": None, "metadata": {}}
    update: dict[str, Any] = {}
    if record.content == "none":
        gone |= {"digest": None, "id": None}
        update = {
            **dict.fromkeys(_ANSWERS),
            "claims": _with_citations(record.claims, document_id=None),
            "review": record.review.model_copy(update={"answer": None, "note": None}),
        }
    documents = tuple(document.model_copy(update=gone) for document in record.documents)
    return record.model_copy(update={**update, "documents": documents})


def _with_citations(claims: tuple[ClaimVerdict, ...], **update: Any) -> tuple[ClaimVerdict, ...]:
    """Change fields of all citations."""
    return tuple(
        claim.model_copy(
            update={"citations": tuple(c.model_copy(update=update) for c in claim.citations)}
        )
        for claim in claims
    )
