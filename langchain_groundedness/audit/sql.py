"""An audit log in SQLite or PostgreSQL, with queries and review decisions."""

import hashlib
import logging
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict, Unpack, get_args

from typing_extensions import override

from langchain_groundedness._runtime.files import describe_os_error, open_private
from langchain_groundedness._runtime.options import expand_options, require_one_of
from langchain_groundedness.audit.log import (
    AuditLog,
    AuditLogOptions,
    refuse_unknown_options,
    require_age,
)
from langchain_groundedness.audit.record import (
    AuditEntry,
    AuditRecord,
    Review,
    ReviewAction,
    ReviewStatus,
)
from langchain_groundedness.exceptions import (
    AuditError,
    ConfigurationError,
    ReviewConflictError,
    require,
)
from langchain_groundedness.types import Action, AnswerVerdict

if TYPE_CHECKING:
    from langchain_groundedness.audit.sql_store import Store

__all__ = ["AuditPage", "SQLAuditLog", "cursor"]

_PAGE = 500

_MOST_RECORDS = 10_000

_CHOICES = {
    "decision": get_args(Action),
    "verdict": get_args(AnswerVerdict),
    "status": (*get_args(ReviewStatus), "held"),
}

_TEXT_FILTERS = ("query_class", "risk_tier", "model", "thread_id", "text")

logger = logging.getLogger("langchain_groundedness")


class AuditPage(NamedTuple):
    """A page of records, with the cursor of the next page."""

    records: tuple[AuditRecord, ...]
    next: str | None
    """For `after=` of the next call; `None` if there are no more."""
    unreadable: tuple[str, ...] = ()
    """Ids of records among these that are damaged, or of a newer version; `get` says how."""


class WaitingFilters(TypedDict, total=False):
    """Which of the waiting records a query finds."""

    since: datetime | None
    until: datetime | None
    decision: Action | None
    verdict: AnswerVerdict | None
    query_class: str | None
    risk_tier: str | None
    model: str | None
    run_id: object
    thread_id: str | None
    text: str | None


class AuditFilters(WaitingFilters, total=False):
    """Which records a query finds."""

    status: ReviewStatus | Literal["held"] | None


class ListingOptions(AuditFilters, total=False):
    """Which records are listed, and in which order."""

    limit: int
    newest_first: bool


class SQLAuditLog(AuditLog):
    """Keeps records in SQLite, or in PostgreSQL for many processes.

    Tables are created or upgraded when they are first needed. SQLite runs in WAL mode and waits for
    the disk before a record counts as durable; its file must be on a local disk. Methods that read
    or decide block: on an event loop, call them in a thread.

    Needs the extra `sql`, and `postgres` for PostgreSQL.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> from langchain_groundedness import Decision
        >>> doubtful = AuditRecord(
        ...     verdict="unchecked",
        ...     decision=Decision(action="review"),
        ...     review={"status": "waiting"},
        ... )
        >>> folder = TemporaryDirectory()
        >>> log = SQLAuditLog(f"sqlite:///{folder.name}/audit.db")
        >>> log.record(doubtful)
        >>> log.flush()
        True
        >>> [waits] = log.waiting().records
        >>> decided = log.decide(
        ...     waits.id, revision=waits.revision, reviewer="ada", action="approve"
        ... )
        >>> decided.review.status, decided.revision, log.waiting().records
        ('decided', 1, ())
        >>> log.close()
        >>> folder.cleanup()
    """

    def __init__(
        self,
        url: str = "sqlite:///groundedness-audit.db",
        *,
        connect_args: Mapping[str, Any] | None = None,
        **options: Unpack[AuditLogOptions],
    ) -> None:
        """Choose the database; it need not be up yet.

        Args:
            url: `sqlite:///path/to/file.db` or `postgresql://user:password@host/database`.
            connect_args: Passed to the database driver.
            **options: As for `AuditLog`; the spool is by default beside the SQLite file, or in the
                state folder of the user (`XDG_STATE_HOME`).

        Raises:
            ConfigurationError: An option has an invalid value.
            MissingDependencyError: The extra `sql` or `postgres` is missing.
        """
        refuse_unknown_options(SQLAuditLog, options)
        if not isinstance(url, str):
            msg = f"url must be a str, got {type(url).__name__}"
            raise ConfigurationError(msg)
        require("sqlalchemy", extra="sql")
        sql: Any = require("langchain_groundedness.audit.sql_store", extra="sql")
        self._condition: Callable[[str, Any], Any] = sql.condition
        self._store: Store = sql.Store(url, connect_args=connect_args)
        options["spool_path"] = options.get("spool_path") or _default_spool(self._store)
        super().__init__(**options)

    def __repr__(self) -> str:
        """Show the address without secrets."""
        return f"SQLAuditLog({str(self._store)!r})"

    @override
    def write(self, entries: Sequence[AuditEntry], *, repeated: bool) -> None:
        self._store.insert(entries)

    @override
    def release(self) -> None:
        self._store.engine.dispose()

    @override
    def forked(self) -> None:
        self._store.engine.dispose(close=False)  # the connections are the parent's

    def upgrade(self) -> None:
        """Create or upgrade the tables now.

        Raises:
            AuditError: They are of a newer version, or the database is down.
        """
        self._store.upgrade()

    def get(self, record_id: str) -> AuditRecord | None:
        """Read one record.

        Args:
            record_id: Its id.

        Returns:
            The record, with its review; `None` if there is none.

        Raises:
            AuditError: The database is down.
        """
        return self._store.get(record_id)

    def query(
        self,
        *,
        limit: int = 100,
        after: str | None = None,
        newest_first: bool = False,
        **filters: Unpack[AuditFilters],
    ) -> AuditPage:
        """Read records page by page, in order of time.

        Args:
            limit: How many at most, 1 to 10,000.
            after: `next` of the page before.
            newest_first: The order; the same for all pages.
            since: From this moment on.
            until: Before this moment.
            decision: What was decided.
            verdict: The verdict on the answer.
            status: The status of the review; `held` finds decisions that have not taken effect.
            query_class: The class of the question.
            risk_tier: The risk tier.
            model: The chat model that judged, or the class of the verifier if none did.
            run_id: The run, or the outermost run.
            thread_id: LangGraph's thread.
            text: Words that must all occur in the question, the answer, the shown answer or the
                id, in any case.

        Returns:
            The page. It names records that cannot be read. A record that arrives while pages are
            read is on a later page or on none, never on two.

        Raises:
            ConfigurationError: A filter has an invalid value.
            AuditError: The database is down.
        """
        if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= _MOST_RECORDS:
            msg = f"limit must be a whole number from 1 to {_MOST_RECORDS}, got {limit!r}"
            raise ConfigurationError(msg)
        where = self._where(**filters)
        found: list[AuditRecord] = []
        unreadable: list[str] = []
        place, more = None if after is None else _parse_cursor(after), True
        while more and (wanted := limit - len(found)):  # more rows for those that cannot be read
            rows = self._store.select(
                where, limit=wanted + 1, after=place, newest_first=newest_first
            )
            more = len(rows) > wanted
            for time, record_id, record in rows[:wanted]:
                place = time, record_id
                if record is None:
                    unreadable.append(record_id)
                else:
                    found.append(record)
        if unreadable:
            counted = (self._store, len(unreadable))
            logger.warning("audit: of %s, %d record(s) cannot be read and are left out", *counted)
        following = cursor(*place) if more and place is not None else None
        return AuditPage(tuple(found), following, tuple(unreadable))

    def _where(self, **filters: Any) -> list[Any]:
        if unknown := sorted(filters.keys() - AuditFilters.__annotations__.keys()):
            accepted = ", ".join(AuditFilters.__annotations__)
            msg = f"unknown filter {', '.join(unknown)}; filters are: {accepted}"
            raise ConfigurationError(msg)
        given = {name: value for name, value in filters.items() if value is not None}
        for name, value in given.items():
            _require_filter(name, value)
        return [self._condition(name, value) for name, value in given.items()]

    def waiting(
        self, *, limit: int = 100, after: str | None = None, **filters: Unpack[WaitingFilters]
    ) -> AuditPage:
        """Read the records that wait for a reviewer, oldest first.

        Args:
            limit: As for `query`.
            after: As for `query`.
            **filters: As for `query`, but for `status`.

        Returns:
            The page.
        """
        return self.query(status="waiting", limit=limit, after=after, **filters)

    def records(self, **filters: Unpack[ListingOptions]) -> Iterator[AuditRecord]:
        """Read all records in order of time, page by page.

        Args:
            **filters: As for `query`; `limit` is the size of a page.

        Yields:
            The records.
        """
        after = None
        while True:
            options: ListingOptions = {"limit": _PAGE, **filters}
            page = self.query(after=after, **options)
            yield from page.records
            after = page.next
            if after is None:
                return

    def count(self, **filters: Unpack[AuditFilters]) -> int:
        """Count records.

        Args:
            **filters: As for `query`, but for `limit`, `after` and `newest_first`.

        Returns:
            The number of records.

        Raises:
            ConfigurationError: A filter has an invalid value.
            AuditError: The database is down.
        """
        return self._store.count(self._where(**filters))

    def decide(  # noqa: PLR0913  (what a reviewer says)
        self,
        record_id: str,
        *,
        revision: int,
        reviewer: str,
        action: ReviewAction,
        answer: str | None = None,
        note: str | None = None,
        marks: Mapping[str, bool] | None = None,
        hold: float = 0.0,
    ) -> AuditRecord:
        """Save a reviewer's decision, unless another one came first.

        A decision is final, except that `undo` takes it back while it is held. It is durable at
        once; a query for `status="decided"` finds it when it takes effect.

        Args:
            record_id: The record; it need not be waiting.
            revision: The revision that the reviewer saw.
            reviewer: Name of the reviewer.
            action: `approve`, `edit` or `reject`.
            answer: The reviewer's text, with `edit`.
            note: Why.
            marks: Ids of claims, and whether the documents support them according to the reviewer.
            hold: Seconds until the decision takes effect.

        Returns:
            The record as it is now.

        Raises:
            ReviewConflictError: Another reviewer came first, or the record has changed.
            ConfigurationError: An argument has an invalid value.
            AuditError: There is no such record, or the database is down.
        """
        if not isinstance(reviewer, str) or not reviewer.strip():
            msg = "reviewer must be a non-empty str: the name of the person who decides"
            raise ConfigurationError(msg)
        require_one_of("action", action, get_args(ReviewAction))
        if (action == "edit") != (answer is not None):
            msg = "answer must be given with action='edit', and only then: the reviewer's text"
            raise ConfigurationError(msg)
        if not 0 <= hold < math.inf:
            msg = f"hold must be a number of seconds from 0 on, got {hold!r:.60}"
            raise ConfigurationError(msg)
        marks = dict(marks or {})
        if not all(isinstance(mark, bool) for mark in marks.values()):
            msg = "marks must map ids of claims to True or False"
            raise ConfigurationError(msg)
        review = Review(
            status="decided",
            reviewer=reviewer,
            action=action,
            answer=answer,
            note=note,
            time=datetime.now(UTC) + timedelta(seconds=hold),
            marks=marks,
        )
        update = {"review": self._redaction.review(review), "revision": revision + 1}

        def decided(_: AuditRecord, now: AuditRecord) -> AuditRecord:
            done = now.review.status == "decided"
            if done or now.revision != revision:
                said = "the record was decided already" if done else "the record has changed"
                seen = f"and the review was of revision {revision}; read it again"
                raise _conflict_error(
                    now, f"{said}: the record is at revision {now.revision}, {seen}"
                )
            return now.model_copy(update=update)

        return self._store.change(record_id, decided)

    def take_effect(self, record_id: str) -> AuditRecord:
        """Let a decision take effect now, so that nobody can undo it.

        Call it before you act on a decision that may be held.

        Args:
            record_id: The record.

        Returns:
            The record as it is now, with the decision that counts.

        Raises:
            ReviewConflictError: Nobody has decided the record, or the decision was undone.
            AuditError: There is no such record, or the database is down.
        """

        def taken(_: AuditRecord, now: AuditRecord) -> AuditRecord:
            if now.review.status != "decided":
                raise _conflict_error(now, "the record has no decision that could take effect")
            moment = datetime.now(UTC)
            review = now.review.model_copy(update={"time": min(now.review.time or moment, moment)})
            # The new revision keeps an undo that waits from writing.
            return now.model_copy(update={"review": review, "revision": now.revision + 1})

        return self._store.change(record_id, taken)

    def undo(self, record_id: str, *, revision: int, reviewer: str) -> AuditRecord:
        """Take back a decision that has not taken effect.

        Args:
            record_id: The record.
            revision: The revision that `decide` returned.
            reviewer: The name given to `decide`.

        Returns:
            The record as it was before the decision.

        Raises:
            ReviewConflictError: The decision has taken effect, or the record has changed.
            AuditError: There is no such record, or the database is down.
        """

        def undone(before: AuditRecord, now: AuditRecord) -> AuditRecord:
            held = now.review.time is not None and now.review.time > datetime.now(UTC)
            if not held or (now.revision, now.review.reviewer) != (revision, reviewer):
                said = (
                    "nothing was written: the decision can no longer be undone, since it has taken "
                    "effect or belongs to another reviewer; "
                    f"the record is at revision {now.revision}"
                )
                raise _conflict_error(now, said)
            return before

        return self._store.change(record_id, undone)

    def prune(self, *, older_than: timedelta, waiting: bool = False) -> int:
        """Delete records for good.

        Args:
            older_than: Records of this age and older are deleted.
            waiting: Whether to delete records that still wait for a reviewer.

        Returns:
            How many were deleted.

        Raises:
            ConfigurationError: The age is negative, or no `timedelta`.
            AuditError: The database is down.
        """
        require_age(older_than)
        return self._store.delete(datetime.now(UTC) - older_than, waiting=waiting)

    def export(self, path: str | Path, **filters: Unpack[ListingOptions]) -> int:
        """Write records to a new file that only its owner can read, one line of JSON each.

        Args:
            path: The file; it must not exist yet.
            **filters: As for `records`.

        Returns:
            How many were written.

        Raises:
            AuditError: The file cannot be written, or the database is down.
        """
        number = 0
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
            with os.fdopen(open_private(Path(path), flags), "w", encoding="ascii") as file:
                for record in self.records(**filters):
                    file.write(f"{record.to_json()}\n")
                    number += 1
        except OSError as exc:
            msg = f"the export file cannot be written ({describe_os_error(exc, path)})"
            raise AuditError(msg) from exc
        return number


expand_options(SQLAuditLog.__init__, AuditLog)
expand_options(SQLAuditLog.query)
expand_options(SQLAuditLog.count)
expand_options(SQLAuditLog.waiting)
expand_options(SQLAuditLog.records, SQLAuditLog.query)
expand_options(SQLAuditLog.export, SQLAuditLog.query)


def cursor(time: datetime, record_id: str) -> str:
    """Return the cursor after a record, for `after=`."""
    return f"{time.astimezone(UTC).isoformat()}|{record_id}"


def _parse_cursor(after: str) -> tuple[datetime, str]:
    moment, _, record_id = after.partition("|")
    try:
        return datetime.fromisoformat(moment), record_id
    except ValueError:
        msg = "after must be the `next` of a page"
        raise ConfigurationError(msg) from None


def _require_filter(name: str, value: object) -> None:
    """Refuse a filter that can match nothing."""
    if name in _CHOICES:
        require_one_of(name, value, _CHOICES[name])
    if name in _TEXT_FILTERS and not isinstance(value, str):
        msg = f"{name} must be a str, got {type(value).__name__}"
        raise ConfigurationError(msg)
    if name in ("since", "until") and not (isinstance(value, datetime) and value.tzinfo):
        what = "have" if isinstance(value, datetime) else "be a datetime with"
        example, kind = "datetime(2026, 1, 31, tzinfo=UTC)", type(value).__name__
        msg = f"{name} must {what} a time zone, such as {example}, got {kind}"
        raise ConfigurationError(msg)


def _conflict_error(record: AuditRecord, said: str) -> ReviewConflictError:
    reviewer = record.review.reviewer if record.review.status == "decided" else None
    return ReviewConflictError(
        said, record_id=record.id, revision=record.revision, reviewer=reviewer
    )


def _default_spool(store: "Store") -> Path:
    if store.path is not None:
        return Path(f"{store.path}.spool")
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    url = store.url
    parts = (url.username, url.host, url.port, url.database, url.query.get("host"))
    digest = hashlib.sha256(repr(parts).encode()).hexdigest()[:16]
    return Path(state) / "langchain-groundedness" / f"{digest}.spool"
