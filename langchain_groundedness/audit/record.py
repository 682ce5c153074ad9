"""The audit record of one decision."""

import json
import math
import os
import time as clock
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple, Self, TypedDict, Unpack
from uuid import UUID

from pydantic import AwareDatetime, Field, ValidationError

from langchain_groundedness._runtime.options import expand_options
from langchain_groundedness.exceptions import AuditError
from langchain_groundedness.types import (
    AnswerVerdict,
    ClaimVerdict,
    Decision,
    FrozenModel,
    GroundednessResult,
    Usage,
)

__all__ = [
    "RECORD_VERSION",
    "AuditEntry",
    "AuditRecord",
    "AuditedDocument",
    "Content",
    "Review",
    "ReviewAction",
    "ReviewStatus",
    "Versions",
    "new_id",
    "plain_mapping",
]

RECORD_VERSION = 1
"""Version of the record format."""

Content = Literal["full", "hash", "none"]
"""What is stored of texts: everything, a digest and the length, or nothing."""

ReviewStatus = Literal["none", "waiting", "decided"]
"""Whether a review is needed: no; yes, but not decided yet; decided. Queries call a decision
that can still be undone `held`."""

ReviewAction = Literal["approve", "edit", "reject"]
"""What a reviewer does with an answer: release it, replace its text, or withhold it."""


def new_id(millis: int | None = None) -> str:
    """Make an id that sorts by time: a UUID of version 7.

    Drawn from the operating system, so that processes forked from one another never draw alike.
    """
    millis = clock.time_ns() // 1_000_000 if millis is None else millis
    chance = int.from_bytes(os.urandom(10), "big")
    high, low = chance >> 68, chance & ((1 << 62) - 1)
    return str(UUID(int=(millis << 80) | (7 << 76) | (high << 64) | (2 << 62) | low))


class AuditedDocument(FrozenModel):
    """A document that an answer was checked against."""

    index: int = Field(ge=0)
    """Its index among the documents of the check; citations use it."""
    id: str | None = None
    length: int = Field(ge=0)
    """Characters of its text, before any redaction."""
    digest: str | None = None
    """`sha256:` or `hmac-sha256:` and the hex digest of its text before redaction."""
    content: str | None = None
    """Its text, if texts are stored and a claim cites it or a reviewer decides; offsets of
    citations refer to it. Uncited documents have at most 500,000 characters per record."""
    metadata: dict[str, Any] = Field(default_factory=dict)
    """Its metadata as JSON; values that JSON cannot hold become text."""


class Versions(FrozenModel):
    """What produced the verdicts."""

    package: str | None = None
    """Version of this package."""
    verifier: str | None = None
    """Class of the verifier."""
    encoder: str | None = None
    """SHA-256 of the embedded verifier's encoder; `None` if that was not used."""
    model: str | None = None
    """Name of the chat model that judged; `None` without one, or if it has no name."""


class Review(FrozenModel):
    """A reviewer's decision about an answer."""

    status: ReviewStatus = "none"
    reviewer: str | None = None
    action: ReviewAction | None = None
    answer: str | None = None
    """The reviewer's text, for `edit`."""
    note: str | None = None
    time: AwareDatetime | None = None
    """When the decision takes effect."""
    marks: dict[str, bool] = Field(default_factory=dict)
    """Claims that the reviewer has marked, by id: whether the documents support the claim."""


class RecordFields(TypedDict, total=False):
    """Fields of a record that the result does not give, or not alone."""

    id: str
    revision: int
    time: datetime
    source: str
    outcome: str | None
    attempt: int
    run_id: UUID | None
    parent_run_id: UUID | None
    root_run_id: UUID | None
    thread_id: str | None
    shown_answer: str | None
    suggested_answer: str | None
    policy_version: str | None
    versions: Versions
    timings: dict[str, float]
    notes: tuple[str, ...]
    review: Review


class AuditRecord(FrozenModel):
    """One decision about one answer, with its evidence.

    Entry points with `audit_log=` make records; `AuditRecord.from_result` makes one from a result.

    Example:
        >>> from langchain_groundedness.testing import ScriptedVerifier
        >>> from langchain_groundedness import GroundednessRunnable
        >>> judge = ScriptedVerifier({"Rome is big.": "supported"})
        >>> result = GroundednessRunnable(verifier=judge).invoke(
        ...     {"answer": "Rome is big.", "documents": ["Rome is big.", "Bari is small."]}
        ... )
        >>> record = AuditRecord.from_result(result, thread_id="t1")
        >>> record.decision.action, record.review.status, record.thread_id
        ('pass', 'none', 't1')
        >>> AuditRecord.from_json(record.to_json()) == record
        True
    """

    schema_version: int = RECORD_VERSION
    id: str = Field(default_factory=new_id, min_length=1, max_length=64)
    """Unique; by default it starts with the time. A record that is saved twice is stored once."""
    revision: int = Field(default=0, ge=0, lt=1 << 31)
    """Number of changes of the review. A record with a higher revision replaces the stored one."""
    time: AwareDatetime = Field(default_factory=lambda: datetime.now(UTC))
    """When the decision was made."""
    source: str = "runnable"
    """What made the record: `runnable`, `guard`, `handler`, `middleware`, `node`, or your own
    name."""
    outcome: str | None = None
    """What the source did with the answer. For middleware and node, the `outcome` in the agent's
    state; for a guard, `abandoned` if, after it had released text, its reader stopped or its model
    failed."""
    attempt: int = Field(default=0, ge=0)
    """Number of retries of the model in this turn of an agent."""
    run_id: UUID | None = None
    parent_run_id: UUID | None = None
    root_run_id: UUID | None = None
    """The outermost run, if it is known."""
    thread_id: str | None = None
    """The LangGraph thread, if there is one."""
    question: str | None = None
    original_answer: str | None = None
    """The original answer; spans of claims refer to it. `None` if texts are not kept."""
    shown_answer: str | None = None
    """The answer that users saw: corrected, shortened or replaced, as the options say."""
    suggested_answer: str | None = None
    """The corrected answer, if it was not shown because a reviewer decides first or answers are
    only monitored."""
    verdict: AnswerVerdict
    trust_score: float | None = None
    is_trusted: bool = False
    claims: tuple[ClaimVerdict, ...] = ()
    """Verdicts with probabilities and citations. The metadata of a citation is stored with its
    document."""
    documents: tuple[AuditedDocument, ...] = ()
    """All documents of the check, in order. Cited documents have their text; if a reviewer decides,
    the others have it too."""
    decision: Decision
    query_class: str | None = None
    risk_tier: str | None = None
    retrieval_score: float | None = None
    policy_version: str | None = None
    versions: Versions = Versions()
    timings: dict[str, float] = Field(default_factory=dict)
    """Milliseconds. `check` is the time that the caller waited for the whole check. If the runnable
    made the record and did not stream, there are also the steps `extract_claims`, `verify_claims`,
    `correct_answer` and `recheck_edits`."""
    usage: Usage = Usage()
    content: Content = "full"
    """Which texts the log stores."""
    redacted: bool = False
    """Whether a redaction hook processed the texts."""
    notes: tuple[str, ...] = ()
    """What went wrong while the record was made, without any text of it."""
    review: Review = Review()

    @classmethod
    def from_result(cls, result: GroundednessResult, **fields: Unpack[RecordFields]) -> Self:
        """Make the record of a result.

        Args:
            result: The result.
            **fields: Further fields of the record, or other values for those of the result.

        Returns:
            The record. It waits for a review if the decision is `review`.
        """
        waits = result.decision.action == "review"
        same = AuditRecord.model_fields.keys() & GroundednessResult.model_fields.keys()
        known: dict[str, Any] = {
            **{name: getattr(result, name) for name in same},
            "shown_answer": result.answer,
            "documents": tuple(
                AuditedDocument(
                    index=index,
                    id=document.id,
                    length=len(document.page_content),
                    content=document.page_content,
                    metadata=plain_mapping(document.metadata),
                )
                for index, document in enumerate(result.documents)
            ),
            "review": Review(status="waiting" if waits else "none"),
        }
        return cls(**{**known, **fields})

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read a record.

        Args:
            text: What `to_json` gave.

        Returns:
            The record.

        Raises:
            AuditError: It is not a record, or it was made by a newer version of this package.
        """
        try:
            data = json.loads(text)
            version = data["schema_version"]
        except (ValueError, TypeError, KeyError):
            msg = "not an audit record: expected a JSON object with schema_version"
            raise AuditError(msg) from None  # the cause quotes the text
        if not isinstance(version, int) or version > RECORD_VERSION:
            msg = (
                f"an audit record has schema_version {version!r:.20}, and this version of "
                f"langchain-groundedness reads up to {RECORD_VERSION}: upgrade it"
            )
            raise AuditError(msg)
        try:
            return cls.model_validate(data)
        except ValidationError as exc:
            places = sorted({str(fault["loc"][0]) for fault in exc.errors() if fault["loc"]})
            msg = f"an audit record is damaged in {', '.join(places)}"
            raise AuditError(msg) from None  # the cause quotes the text

    def to_json(self) -> str:
        """Write the record as one line of JSON.

        Returns:
            ASCII text, since answers of models may hold lone surrogates, which UTF-8 cannot encode.
        """
        data = self.model_dump(mode="json")
        return json.dumps(data, separators=(",", ":"), allow_nan=False)


# A class method hides its function from type checkers.
expand_options(AuditRecord.from_result.__func__, AuditRecord)  # type: ignore[attr-defined]


class AuditEntry(NamedTuple):
    """A record as stored, with its JSON line."""

    record: AuditRecord
    line: str
    """What `to_json` gives."""


_DEEPEST = 8


def plain_mapping(value: Mapping[Any, Any]) -> dict[str, Any]:
    """Copy a mapping in a form that JSON can hold."""
    return {_key(key): _plain(item, _DEEPEST) for key, item in value.items()}


def _plain(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    for kind in (str, int, float):
        if isinstance(value, kind):
            return kind(value)  # drops subclasses, some of which cannot be serialized
    if depth and isinstance(value, Mapping):
        return {_key(key): _plain(item, depth - 1) for key, item in value.items()}
    if depth and isinstance(value, list | tuple | set | frozenset):
        return [_plain(item, depth - 1) for item in value]
    return _words(value)


def _key(value: Any) -> str:
    """Write a key; pydantic cannot serialize lone surrogates."""
    return _words(value).encode("utf-8", errors="replace").decode()


def _words(value: Any) -> str:
    try:
        return str(value)
    except Exception:  # noqa: BLE001  (somebody else's object must not cost the record)
        return f"<{type(value).__name__}>"
