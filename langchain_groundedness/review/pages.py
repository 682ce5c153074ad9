"""The pages: what is read from the audit log for each, and what a form changes in it.

Its own module because who may see a page is the subject of `app`, and what it shows of this one.
"""

import logging
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, NamedTuple, Self, get_args
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from langchain_groundedness.audit import AuditPage, SQLAuditLog
from langchain_groundedness.audit.record import AuditRecord, Review
from langchain_groundedness.audit.redaction import MOST_UNCITED
from langchain_groundedness.audit.sql import cursor
from langchain_groundedness.display.hidden_characters import editable, edited
from langchain_groundedness.display.marked_text import SIGNS
from langchain_groundedness.display.templates import environment
from langchain_groundedness.display.words import correction_words, evidence_words
from langchain_groundedness.exceptions import AuditError, ConfigurationError, ReviewConflictError
from langchain_groundedness.review.item import Item
from langchain_groundedness.review.sessions import Session, Sessions, Undoable
from langchain_groundedness.types import Action, AnswerVerdict

__all__ = ["CHOICES", "Filters", "Pages", "Visit"]

PER_PAGE = 25

LONGEST_NAME = 80

LONGEST_NOTE = 10_000

LONGEST_ANSWER = 200_000

NOT_SAVED = "Your decision was not saved"

NO_RECORD = "The audit log has no such record"

_PAST_TENSE = {"approve": "approved", "edit": "edited", "reject": "rejected"}

ANY = "any"

CHOICES: dict[str, tuple[str, ...]] = {
    "status": ("waiting", "decided", "none", ANY),
    "decision": ("", *get_args(Action)),
    "verdict": ("", *get_args(AnswerVerdict)),
}
"""Values of the filters that are chosen from a list; the first is the default."""

_LONGEST = 200


logger = logging.getLogger("langchain_groundedness")


class Problem(NamedTuple):
    """Why a form was not saved."""

    text: str
    field: str
    """Id of the field that it is about."""


@dataclass(frozen=True, kw_only=True)
class Filters:
    """Filters of the queue, as written in the URL; empty if not set."""

    status: str = "waiting"
    decision: str = ""
    verdict: str = ""
    query_class: str = ""
    risk_tier: str = ""
    since: str = ""
    until: str = ""
    text: str = ""

    @classmethod
    def read(cls, given: Mapping[str, str]) -> Self:
        """Read the filters; invalid ones are ignored."""
        known = {
            field.name: edited(given.get(field.name, ""))[:_LONGEST].strip()
            for field in fields(cls)
        }
        for name, accepted in CHOICES.items():
            known[name] = known[name] if known[name] in accepted else accepted[0]
        for name in ("since", "until"):
            known[name] = known[name] if _day(known[name]) else ""
        return cls(**known)

    @property
    def address(self) -> str:
        """The filters, as a query string."""
        return urlencode({name: value for name, value in asdict(self).items() if value})

    @property
    def narrowed(self) -> bool:
        """Whether any filter but the status is set."""
        return self != type(self)(status=self.status)

    @property
    def of_store(self) -> dict[str, Any]:
        """The filters, as `SQLAuditLog.query` names them."""
        found = {
            "status": "" if self.status == ANY else self.status,
            "decision": self.decision,
            "verdict": self.verdict,
            "query_class": self.query_class,
            "risk_tier": self.risk_tier,
            "since": _day(self.since),
            "until": _next(_day(self.until)),
            "text": self.text,
        }
        return {name: value for name, value in found.items() if value}

    @property
    def newest_first(self) -> bool:
        """The order: the waiting queue shows the oldest first, other lists the newest."""
        return self.status != "waiting"


@dataclass(kw_only=True)
class Visit:
    """A request and its session."""

    request: Request
    sessions: Sessions
    form: Mapping[str, str]
    cookie: str
    """Name of the cookie."""
    identity: str
    """Id of the browser."""
    session: Session | None = None
    """The session, if the browser is signed in."""
    token_needed: bool = True
    """Whether people sign in, and so can sign out."""

    @property
    def query(self) -> Mapping[str, str]:
        """The query parameters."""
        return self.request.query_params

    @property
    def root(self) -> str:
        """Where the application is mounted."""
        return str(self.request.scope.get("root_path", "")).rstrip("/")

    @property
    def known(self) -> Session:
        """The session of a browser that is signed in."""
        assert self.session is not None  # noqa: S101  (nobody else is let in)
        return self.session

    def signed_in(self) -> "Visit":
        """Sign the browser in, under a new identity."""
        self.sessions.end(self.identity)
        identity = self.sessions.begin()
        return replace(self, identity=identity, session=self.sessions.find(identity))

    def page(self, template: str, *, status: int = 200, **values: Any) -> Response:
        """Answer with a page."""
        shown = {
            "root": self.root,
            "form_token": self.sessions.form_token(self.identity),
            "session": self.session,
            "token_needed": self.token_needed,
            "notice": self._notice(),
            "undo_seconds": self.session.last.seconds if self.session and self.session.last else 0,
            **values,
        }
        text = _templates.get_template(template).render(shown)
        return self._with_cookie(HTMLResponse(text.encode("utf-8", "replace"), status))

    def redirect(self, path: str) -> Response:
        """Redirect to another page of the application."""
        return self._with_cookie(RedirectResponse(f"{self.root}{path}", 303))

    def _notice(self) -> str:
        if self.session is None:
            return ""
        notice, self.session.notice = self.session.notice, ""
        return notice

    def _with_cookie(self, response: Response) -> Response:
        if self.request.cookies.get(self.cookie) != self.identity:
            response.set_cookie(
                self.cookie,
                self.identity,
                path=self.root or "/",
                secure=self.request.url.scheme == "https",
                httponly=True,
                samesite="strict",
            )
        return response


class Pages:
    """The views; each answers one visit."""

    def __init__(
        self,
        store: SQLAuditLog,
        undo_seconds: float,
        on_decided: Callable[[AuditRecord], object] | None,
    ) -> None:
        """Set the audit log and the options."""
        self._store = store
        self._hold = undo_seconds
        self._on_decided = on_decided
        if on_decided is not None:
            for record in store.records(status="held"):
                self._notify_when_final(record)

    def login(self, visit: Visit, *, wrong: bool = False) -> Response:
        """Ask for the token."""
        return visit.page("login.html", status=403 if wrong else 200, wrong=wrong)

    def welcome(self, visit: Visit) -> Response:
        """Open the queue after signing in.

        A page, not a redirect: a redirect that began on another site would lack the cookie.
        """
        return visit.page("welcome.html")

    def logout(self, visit: Visit) -> Response:
        """Sign out."""
        visit.sessions.end(visit.identity)
        return visit.redirect("/login")

    def name(self, visit: Visit) -> Response:
        """Ask for the reviewer's name."""
        if visit.request.method == "POST":
            name = " ".join(visit.form.get("name", "").split())
            if name and name.isprintable() and len(name) <= LONGEST_NAME:
                visit.known.name = name
                return visit.redirect("/")
            return visit.page("name.html", status=422, wrong=True, longest=LONGEST_NAME)
        return visit.page("name.html", wrong=False, longest=LONGEST_NAME)

    def queue(self, visit: Visit) -> Response:
        """List records."""
        filters = Filters.read(visit.query)
        found = self._found(filters, visit.query.get("after") or None, PER_PAGE)
        return visit.page(
            "queue.html",
            filters=filters,
            choices=CHOICES,
            found=found,
            items=[Item(record) for record in found.records],
            waiting=self._store.count(status="waiting"),
            later="after" in visit.query,
        )

    def item(self, visit: Visit) -> Response:
        """Show one record."""
        return self._item(visit)

    def next(self, visit: Visit) -> Response:
        """Go to the next record of the queue."""
        filters, after = Filters.read(visit.query), visit.query.get("after") or None
        found = self._found(filters, after, 1)
        if after and not found.records:
            found = self._found(filters, None, 1)
        if not found.records or cursor(found.records[0].time, found.records[0].id) == after:
            visit.known.notice = f"{visit.known.notice} There are no other items in this queue."
            return visit.redirect(f"/?{filters.address}")
        place = _quoted(found.records[0].id)
        return visit.redirect(f"/records/{place}?{filters.address}")

    def decide(self, visit: Visit) -> Response:
        """Write what a reviewer has decided."""
        action: Any = visit.form.get("action", "")
        revision = visit.form.get("revision", "")
        if action not in _PAST_TENSE or not (revision.isdecimal() and revision.isascii()):
            return visit.page("message.html", status=400, heading="This form cannot be read")
        note = _text(visit.form.get("note", "")).strip() or None
        answer = _text(visit.form.get("answer", ""))
        try:
            seen = self._store.get(visit.request.path_params["record_id"])
            if seen is None:
                return _unsaved(visit, 404, NOT_SAVED, NO_RECORD)
            item = Item(seen)
            problem = _problem(visit, action, answer, note, item)
            if problem and seen.revision == int(revision[:9]) and seen.review.status != "decided":
                return self._item(visit, problem=problem, status=422)
            record = self._store.decide(
                seen.id,
                revision=int(revision[:9]),
                reviewer=visit.known.name,
                action=action,
                answer=_unless_changed(answer, item.proposal) if action == "edit" else None,
                note=note,
                marks=item.marks_of(visit.form),
                hold=self._hold,
            )
        except ReviewConflictError as exc:
            return self._too_late(visit, exc)
        except AuditError as exc:
            return _unsaved(visit, 503, NOT_SAVED, str(exc), again=True)
        self._notify_when_final(record)
        until = record.review.time or datetime.now(UTC)
        visit.known.last = Undoable(record.id, record.revision, visit.form, until)
        visit.known.notice = f"You {_PAST_TENSE[action]} the previous answer."
        filters = Filters.read(visit.form)
        return visit.redirect(
            f"/next?{urlencode({'after': cursor(record.time, record.id)})}&{filters.address}"
        )

    def undo(self, visit: Visit) -> Response:
        """Take back the last decision of this browser; its form is filled as it was."""
        last = visit.known.last
        if last is None:
            return visit.redirect("/")
        try:
            self._store.undo(last.record_id, revision=last.revision, reviewer=visit.known.name)
            visit.known.notice = "Your decision is undone."
        except ReviewConflictError as exc:
            visit.known.notice = (
                "It is too late to undo this decision: it has taken effect."
                if exc.reviewer
                else "Your decision was undone already."
            )
        visit.known.last = replace(last, until=datetime.min.replace(tzinfo=UTC))
        filters = Filters.read(last.form)
        return visit.redirect(f"/records/{_quoted(last.record_id)}?{filters.address}")

    def out_of_date(self, visit: Visit) -> Response:
        """Say that a form is older than the last sign-in, and return its text."""
        why = "You are no longer signed in, or you have signed in again since this page was shown."
        return _unsaved(visit, 403, "Nothing was saved", why)

    def failed(self, visit: Visit, error: Exception) -> Response:
        """Say what went wrong, and return the text of the form."""
        if isinstance(error, ConfigurationError) and not visit.form:
            return visit.redirect(f"/?{Filters.read(visit.query).address}")  # no such place
        logger.error("review: a page failed (%s)", type(error).__name__)
        if visit.form:
            return _unsaved(visit, 500, "Something went wrong", "The server log has the details.")
        if isinstance(error, AuditError):
            heading = "The audit log cannot be read"
            return visit.page("message.html", status=503, heading=heading, why=str(error))
        return visit.page("message.html", status=500, heading="Something went wrong")

    def _found(self, filters: Filters, after: str | None, limit: int) -> AuditPage:
        asked = {**filters.of_store, "newest_first": filters.newest_first}
        return self._store.query(**asked, after=after, limit=limit)

    def _item(self, visit: Visit, *, problem: Problem | None = None, status: int = 200) -> Response:
        record = self._store.get(visit.request.path_params["record_id"])
        if record is None:
            return visit.page("message.html", status=404, heading=NO_RECORD)
        last = visit.known.last
        undone = last is not None and last.record_id == record.id and not visit.form
        form = last.form if last is not None and undone else visit.form
        given = visit.form or visit.query
        whole = visit.query.get("whole", "")
        number = int(whole) - 1 if whole.isascii() and whole.isdecimal() else None
        filters = Filters.read(given)
        return visit.page(
            "item.html",
            status=status,
            item=Item(record, whole=number),
            filters=filters,
            place=cursor(record.time, record.id),
            problem=problem,
            form=form,
            longest=LONGEST_NOTE,
            most_uncited=MOST_UNCITED,
            hold=self._hold,
        )

    def _too_late(self, visit: Visit, error: ReviewConflictError) -> Response:
        try:
            record = self._store.get(error.record_id)
        except AuditError:
            record = None
        first = Item(record) if record is not None else None
        if first is not None and first.decided:
            heading, why = "Another reviewer decided first", "Your decision was not saved."
        else:
            heading = "The record has changed"
            why = "Your decision was not saved. Read the record again before you decide."
        return _unsaved(visit, 409, heading, why, first=first)

    def _notify_when_final(self, record: AuditRecord) -> None:
        if self._on_decided is None:
            return
        left = record.review.time - datetime.now(UTC) if record.review.time else timedelta()
        if left > timedelta():
            timer = threading.Timer(left.total_seconds(), self._notify_when_final, [record])
            timer.daemon = True  # the next start waits for what is left
            timer.start()
        else:
            self._notify(record, self._on_decided)

    def _notify(self, decided: AuditRecord, on_decided: Callable[[AuditRecord], object]) -> None:
        try:
            record = self._store.get(decided.id)
            if record is not None and _still_holds(decided.review, record.review):
                on_decided(record)
        except Exception as exc:  # noqa: BLE001  (the decision stands, whatever comes of it)
            logger.error("review: on_decided failed (%s)", type(exc).__name__)  # noqa: TRY400  (a traceback could quote the answer)


def _still_holds(decided: Review, now: Review) -> bool:
    """Tell whether a decision was not undone; used by an agent, it has taken effect earlier."""
    if now.time is None or decided.time is None:
        return False
    same = now.model_copy(update={"time": decided.time}) == decided
    return same and now.time <= decided.time


def _unsaved(  # noqa: PLR0913  (what the page shows)
    visit: Visit,
    status: int,
    heading: str,
    why: str,
    *,
    first: Item | None = None,
    again: bool = False,
) -> Response:
    form = visit.form
    return visit.page(
        "unsaved.html",
        status=status,
        heading=heading,
        why=why,
        first=first,
        again=again,
        action=_PAST_TENSE.get(form.get("action", "")),
        note=form.get("note", ""),
        answer=form.get("answer", "") if form.get("action") == "edit" else "",
        form=form,
        filters=Filters.read(form),
    )


def _problem(
    visit: Visit, action: str, answer: str, note: str | None, item: Item
) -> Problem | None:
    """Say why a decision cannot be saved or looks like a mistake."""
    if len(answer) > LONGEST_ANSWER:
        return Problem(f"The edited answer is longer than {LONGEST_ANSWER:,} characters.", "edited")
    if note and len(note) > LONGEST_NOTE:
        return Problem(f"The note is longer than {LONGEST_NOTE:,} characters.", "note")
    if action == "reject" and not note:
        return Problem("Say in the note why you reject the answer.", "note")
    why, proposal = None, _lines(item.proposal)
    if action == "edit" and not answer.strip():
        why = "The edited answer is empty. To withhold the answer, reject it."
    elif action == "edit" and answer == _lines(item.standing or ""):
        why = "The edited answer is the same as the one you would approve. Change it, or approve."
    elif action == "approve" and "answer" in visit.form and answer != proposal:
        why = "You have edited the answer. Send the edited answer, or undo your changes first."
    return Problem(why, "edited") if why else None


def _text(given: str) -> str:
    """Read a form text: browsers send CRLF line ends, and `editable` has named characters."""
    return edited(_lines(given).replace("\r", "\n"))


def _unless_changed(answer: str, proposal: str) -> str:
    """Return the proposal itself, with its own line ends, unless somebody changed it."""
    return proposal if answer == _lines(proposal) else answer


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n")


def _day(text: str) -> datetime | None:
    try:
        return datetime.combine(date.fromisoformat(text), time(), UTC)
    except ValueError:
        return None


def _next(day: datetime | None) -> datetime | None:
    try:
        return day and day + timedelta(days=1)
    except OverflowError:  # the last day there is
        return None


def _short(text: str, most: int = 160) -> str:
    text = re.sub(r"[ \t\n]+", " ", text.replace("\r\n", "\n")).strip(" ")
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def _moment(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _quoted(text: str) -> str:
    return quote(text.replace("\0", ""), safe="", errors="replace")


def _words(name: str) -> str:
    return name.replace("_", " ")


_templates = environment("langchain_groundedness.review")

_templates.filters |= {
    "evidence_words": evidence_words,
    "correction_words": correction_words,
    "editable": editable,
    "short": _short,
    "moment": _moment,
    "words": _words,
    "quoted": _quoted,
    "sign": SIGNS.__getitem__,
}
