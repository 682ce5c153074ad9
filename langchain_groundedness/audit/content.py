"""What is kept of the texts of a record: redaction, digests, or nothing; pure."""

import hashlib
import hmac
import logging
from collections.abc import Callable
from typing import Any, get_args

from langchain_groundedness.audit.record import AuditedDocument, AuditRecord, Content, Review
from langchain_groundedness.exceptions import ConfigurationError
from langchain_groundedness.types import Citation, ClaimVerdict

__all__ = ["MOST_UNCITED", "Keeping", "Redact", "bare"]

Redact = Callable[[str], str]
"""Takes a text, gives the text that may be kept."""

MOST_UNCITED = 500_000
"""Characters of documents that no claim cites, kept with a record that a person is asked about."""

_TEXTS = ("question", "original_answer", "shown_answer", "suggested_answer")

logger = logging.getLogger("langchain_groundedness")


class Keeping:
    """Decides what is kept of every text."""

    def __init__(
        self,
        *,
        content: Content = "full",
        redact: Redact | None = None,
        hash_key: str | bytes | None = None,
    ) -> None:
        """Check the options."""
        if content not in get_args(Content):
            accepted = ", ".join(map(repr, get_args(Content)))
            msg = f"content must be one of {accepted}, got {content!r:.40}"
            raise ConfigurationError(msg)
        if redact is not None and not callable(redact):
            msg = f"redact must be a function from text to text, got {type(redact).__name__}"
            raise ConfigurationError(msg)
        if hash_key is not None and (not isinstance(hash_key, str | bytes) or not hash_key):
            msg = "hash_key must be a text or bytes, and not empty"
            raise ConfigurationError(msg)
        self._content = content
        self._redact = redact
        self._key = hash_key.encode() if isinstance(hash_key, str) else hash_key

    def record(self, record: AuditRecord) -> AuditRecord:
        """Give what is kept of a record."""
        documents = tuple(map(self._with_digest, record.documents))
        record = _with_texts_needed(record.model_copy(update={"documents": documents}))
        content, notes, redacted = self._content, record.notes, record.redacted
        if self._redact is not None:
            try:
                record, redacted = _changed(record, self._redacted), True
            except Exception as exc:  # noqa: BLE001  (whatever it is, nothing may leak)
                why = type(exc).__name__
                logger.warning("audit: redaction failed (%s); no text of the record is kept", why)
                content, notes = "none", (*notes, f"redaction failed ({why}): no text is kept")
        if content != "full":
            record = _changed(record, self.text if content == "hash" else _nothing)
            record = record.model_copy(update=_without(record, content))
        return record.model_copy(update={"content": content, "notes": notes, "redacted": redacted})

    def review(self, review: Review) -> Review:
        """Give what is kept of a review."""
        try:
            return _review(review, self._kept)
        except Exception as exc:  # noqa: BLE001  (whatever it is, nothing may leak)
            logger.warning("audit: redaction failed (%s); no text is kept", type(exc).__name__)
            return _review(review, _nothing)

    def text(self, text: str) -> str:
        """Give the digest of a text, and its length."""
        return f"{self._digest(text)}:{len(text)}"

    def _kept(self, text: str) -> str:
        text = text if self._redact is None else self._redacted(text)
        if self._content == "full":
            return text
        return self.text(text) if self._content == "hash" else _nothing(text)

    def _redacted(self, text: str) -> str:
        assert self._redact is not None  # noqa: S101  (called only with one)
        found = self._redact(text)
        if not isinstance(found, str):
            msg = "redact gave something that is no text"
            raise TypeError(msg)
        return found

    def _with_digest(self, document: AuditedDocument) -> AuditedDocument:
        if document.content is None or document.digest is not None:
            return document
        return document.model_copy(update={"digest": self._digest(document.content)})

    def _digest(self, text: str) -> str:
        data = text.encode("utf-8", errors="surrogatepass")
        if self._key is None:
            return f"sha256:{hashlib.sha256(data).hexdigest()}"
        return f"hmac-sha256:{hmac.new(self._key, data, hashlib.sha256).hexdigest()}"


def bare(record: AuditRecord, why: str) -> AuditRecord:
    """Give what can be kept of a record that cannot be written whole."""
    names = ("id", "revision", "time", "source", "verdict", "decision", "review")
    return AuditRecord(
        **{name: getattr(record, name) for name in names},
        content="none",
        notes=(f"the record could not be written whole ({why})",),
    )


def _with_texts_needed(record: AuditRecord) -> AuditRecord:
    """Let go of the texts of documents that nobody will read, and of what is kept twice.

    Without a reviewer, those are the documents that no claim cites. A reviewer needs just them for
    claims without a citation; they are kept as long as there is room, whole or not at all.
    """
    cited = {citation.document for claim in record.claims for citation in claim.citations}
    room = 0 if record.review.status == "none" else MOST_UNCITED
    documents = []
    for document in record.documents:
        kept = document
        if document.index not in cited and document.content is not None:
            if len(document.content) > room:
                kept = document.model_copy(update={"content": None})
            else:
                room -= len(document.content)
        documents.append(kept)
    update = {"claims": _lean(record.claims), "documents": tuple(documents)}
    return record.model_copy(update=update)


def _lean(claims: tuple[ClaimVerdict, ...]) -> tuple[ClaimVerdict, ...]:
    """Drop the metadata of citations, which stand with the documents."""
    return tuple(
        claim.model_copy(
            update={
                "citations": tuple(
                    citation.model_copy(update={"metadata": {}}) for citation in claim.citations
                )
            }
        )
        for claim in claims
    )


def _changed(record: AuditRecord, change: Redact) -> AuditRecord:
    """Put every text of a record through a function."""
    update = {
        **{name: _maybe(getattr(record, name), change) for name in _TEXTS},
        "claims": tuple(_claim(claim, change) for claim in record.claims),
        "documents": tuple(_document(document, change) for document in record.documents),
        "review": _review(record.review, change),
    }
    return record.model_copy(update=update)


def _claim(verdict: ClaimVerdict, change: Redact) -> ClaimVerdict:
    claim = verdict.claim.model_copy(update={"text": change(verdict.claim.text)})
    update = {
        "claim": claim,
        "explanation": verdict.explanation and change(verdict.explanation),
        "correction": _maybe(verdict.correction, change),
        "citations": tuple(_citation(citation, change) for citation in verdict.citations),
    }
    return verdict.model_copy(update=update)


def _citation(citation: Citation, change: Redact) -> Citation:
    identity = _maybe(citation.document_id, change)
    return citation.model_copy(update={"quote": change(citation.quote), "document_id": identity})


def _document(document: AuditedDocument, change: Redact) -> AuditedDocument:
    metadata = {key: _inside(value, change) for key, value in document.metadata.items()}
    update = {
        "id": _maybe(document.id, change),
        "content": _maybe(document.content, change),
        "metadata": metadata,
    }
    return document.model_copy(update=update)


def _inside(value: Any, change: Redact) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {key: _inside(item, change) for key, item in value.items()}
    return [_inside(item, change) for item in value] if isinstance(value, list) else value


def _review(review: Review, change: Redact) -> Review:
    update = {"answer": _maybe(review.answer, change), "note": _maybe(review.note, change)}
    return review.model_copy(update=update)


def _without(record: AuditRecord, content: Content) -> dict[str, Any]:
    """Give the fields that say nothing, or too much, when texts are not kept."""
    bare: dict[str, Any] = {"content": None, "metadata": {}}
    if content == "none":
        bare.update(digest=None, id=None)
    documents = tuple(document.model_copy(update=bare) for document in record.documents)
    if content == "hash":
        return {"documents": documents}
    review = record.review.model_copy(update={"answer": None, "note": None})
    gone = dict.fromkeys(_TEXTS)
    claims = tuple(map(_nameless, record.claims))
    return {**gone, "claims": claims, "documents": documents, "review": review}


def _nameless(verdict: ClaimVerdict) -> ClaimVerdict:
    """Drop the ids of cited documents; their places stay."""
    citations = (c.model_copy(update={"document_id": None}) for c in verdict.citations)
    return verdict.model_copy(update={"citations": tuple(citations)})


def _maybe(text: str | None, change: Redact) -> str | None:
    return None if text is None else change(text)


def _nothing(text: str) -> str:
    del text
    return ""
