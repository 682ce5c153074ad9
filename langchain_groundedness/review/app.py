"""The review page: who may see it, what it shows, and what a form changes in the audit log.

Views run in threads because they block on the audit log.
"""

import hmac
import logging
import re
import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from typing import Any, NamedTuple, Self, get_args
from urllib.parse import parse_qsl, quote, urlencode

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from langchain_groundedness.audit import AuditPage, SQLAuditLog
from langchain_groundedness.audit.record import AuditRecord
from langchain_groundedness.audit.redaction import MOST_UNCITED
from langchain_groundedness.audit.sql import cursor
from langchain_groundedness.display.hidden_characters import restore_hidden, show_hidden_for_editing
from langchain_groundedness.display.marked_text import SIGNS
from langchain_groundedness.display.templates import environment
from langchain_groundedness.display.words import correction_words, evidence_words
from langchain_groundedness.exceptions import AuditError, ConfigurationError, ReviewConflictError
from langchain_groundedness.review.record_view import Item
from langchain_groundedness.review.server import RequestFilter, filtered_app, from_our_page
from langchain_groundedness.review.sessions import (
    FailedAttempts,
    Session,
    Sessions,
    UndoableDecision,
)
from langchain_groundedness.types import Action, AnswerVerdict

__all__ = ["CHOICES", "Filters", "create_review_app"]

_SHORTEST_TOKEN = 16
_LONGEST_HOLD = 86_400
_MOST_FIELDS = 10_000
"""One per claim, and some more."""

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


def create_review_app(  # noqa: PLR0913  (options by keyword)
    store: SQLAuditLog,
    *,
    token: str | None,
    allowed_hosts: Collection[str] = ("127.0.0.1", "::1", "localhost"),
    any_address: bool = False,
    undo_seconds: float = 10.0,
    on_decided: Callable[[AuditRecord], object] | None = None,
) -> RequestFilter:
    """Make the review page as an ASGI application, for your own server.

    Args:
        store: The audit log.
        token: What reviewers sign in with, at least 16 characters; `None` lets in everyone who can
            reach the page.
        allowed_hosts: Host names that browsers may use, without a port.
        any_address: Whether any IP address is allowed as a host name.
        undo_seconds: How long a reviewer can undo a decision, 0 to 86,400. It is saved at once, and
            takes effect after that.
        on_decided: Called in a thread with each record whose decision has taken effect; an
            exception it raises is logged and changes nothing. `resume_reviewed` can be used here.
            Decisions that took effect while no server ran are yours to look up at start-up.

    Returns:
        The application. It keeps its sessions in memory: run it in one process.

    Raises:
        ConfigurationError: The token is too short, or `undo_seconds` out of range.
        AuditError: With `on_decided`, the audit log cannot be read.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> from starlette.testclient import TestClient
        >>> from langchain_groundedness import SQLAuditLog
        >>> folder = TemporaryDirectory()
        >>> log = SQLAuditLog(f"sqlite:///{folder.name}/audit.db")
        >>> app = create_review_app(log, token="long enough a token")
        >>> client = TestClient(app, base_url="http://localhost")
        >>> client.get("/").url.path
        '/login'
        >>> log.close()
        >>> folder.cleanup()
    """
    if token is not None and len(token) < _SHORTEST_TOKEN:
        msg = f"token must have at least {_SHORTEST_TOKEN} characters, got {len(token)}"
        raise ConfigurationError(msg)
    if not 0 <= undo_seconds <= _LONGEST_HOLD:
        accepted = f"a number of seconds from 0 to {_LONGEST_HOLD:,}"
        msg = f"undo_seconds must be {accepted}, got {undo_seconds!r:.60}"
        raise ConfigurationError(msg)
    pages = _Pages(store, token, undo_seconds, on_decided)
    both = ["GET", "POST"]
    routes = [
        Route("/", pages.signed_in(pages.queue)),
        Route("/login", pages.login, methods=both),
        Route("/logout", pages.signed_in(pages.logout), methods=["POST"]),
        Route("/name", pages.signed_in(pages.name, without_name=True), methods=both),
        Route("/next", pages.signed_in(pages.next)),
        Route("/undo", pages.signed_in(pages.undo), methods=["POST"]),
        Route("/records/{record_id:path}", pages.signed_in(pages.item)),
        Route("/records/{record_id:path}", pages.signed_in(pages.decide), methods=["POST"]),
    ]
    hint = "Allow it with --allow-host, or allowed_hosts= of create_review_app."
    return filtered_app(routes, hosts=allowed_hosts, any_address=any_address, hint=hint)


class FormProblem(NamedTuple):
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
            field.name: restore_hidden(given.get(field.name, ""))[:_LONGEST].strip()
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
    def store_filters(self) -> dict[str, Any]:
        """The filters, as `SQLAuditLog.query` names them."""
        found: dict[str, Any] = asdict(self)
        found |= {
            "status": "" if self.status == ANY else self.status,
            "since": _day(self.since),
            "until": _day(self.until, later=1),
        }
        return {name: value for name, value in found.items() if value}


@dataclass(kw_only=True)
class SessionRequest:
    """A request and its session."""

    request: Request
    sessions: Sessions
    form: Mapping[str, str]
    cookie: str
    """Name of the cookie."""
    identity: str
    """Id of the browser."""
    session: Session
    """The session; a new one if the browser is not signed in."""
    signed_in: bool
    token_needed: bool
    """Whether people sign in, and so can sign out."""

    @property
    def query(self) -> Mapping[str, str]:
        """The query parameters."""
        return self.request.query_params

    @property
    def filters(self) -> Filters:
        """The filters of the queue that it came from."""
        return Filters.read(self.form or self.query)

    @property
    def root(self) -> str:
        """Where the application is mounted."""
        return str(self.request.scope.get("root_path", "")).rstrip("/")

    def sign_in(self) -> "SessionRequest":
        """Sign the browser in, under a new identity."""
        self.sessions.end(self.identity)
        identity = self.sessions.begin()
        session = self.sessions.find(identity) or Session()
        return replace(self, identity=identity, session=session, signed_in=True)

    def page(self, template: str, *, status: int = 200, **values: Any) -> Response:
        """Answer with a page."""
        session = self.session
        shown = {
            "root": self.root,
            "filters": self.filters,
            "form_token": self.sessions.form_token(self.identity),
            "session": session,
            "signed_in": self.signed_in,
            "token_needed": self.token_needed,
            "notice": session.notice,
            "undo_seconds": session.last.seconds if session.last else 0,
            **values,
        }
        session.notice = ""
        text = _templates.get_template(template).render(shown)
        return self._with_cookie(HTMLResponse(text.encode("utf-8", "replace"), status))

    def redirect(self, path: str) -> Response:
        """Redirect to another page of the application."""
        return self._with_cookie(RedirectResponse(f"{self.root}{path}", 303))

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


View = Callable[[SessionRequest], Response]


@dataclass(eq=False)
class _Pages:
    """The pages, and who sees them; each view answers one request."""

    _store: SQLAuditLog
    _token: str | None
    _undo_seconds: float
    _on_decided: Callable[[AuditRecord], object] | None

    def __post_init__(self) -> None:
        self._sessions = Sessions()
        self._attempts = FailedAttempts()
        if self._on_decided is not None:
            for record in self._store.records(status="held"):
                self._notify_when_final(record)

    def signed_in(self, view: View, *, without_name: bool = False) -> Any:
        """Show a view only to people who have signed in and given their name."""

        async def endpoint(request: Request) -> Response:
            session_request = await self._session_request(request)
            if not session_request.signed_in and self._token is None and request.method != "POST":
                session_request = session_request.sign_in()
            if (
                request.method == "POST"
                and (refused := await self._refusal(session_request)) is not None
            ):
                return refused
            if not session_request.signed_in:
                return session_request.redirect("/login")
            if not session_request.session.name and not without_name:
                return session_request.redirect("/name")
            return await self._shown(view, session_request)

        return endpoint

    async def login(self, request: Request) -> Response:
        """Sign in whoever knows the token."""
        session_request = await self._session_request(request)
        given = session_request.query.get("token")
        if request.method == "POST":
            given = session_request.form.get("token", "")
            if (refused := await self._refusal(session_request, signed_out=True)) is not None:
                return refused
        address = request.client.host if request.client else ""
        if given is not None and self._attempts.too_many(address):
            return PlainTextResponse("Too many attempts. Try again in a minute.", 429)
        if self._is_token(given):
            if session_request.signed_in:
                return session_request.redirect("/")
            # A page, not a redirect: one that began on another site would lack the cookie.
            page = partial(SessionRequest.page, template="welcome.html")
            return await self._shown(page, session_request.sign_in())
        if wrong := given is not None:
            self._attempts.add(address)
        status = 403 if wrong else 200
        page = partial(SessionRequest.page, template="login.html", status=status, wrong=wrong)
        return await self._shown(page, session_request)

    async def _session_request(self, request: Request) -> SessionRequest:
        cookie = f"groundedness-review-{request.url.port or request.url.scheme}"
        identity = request.cookies.get(cookie) or self._sessions.new_id()
        session = self._sessions.find(identity)
        return SessionRequest(
            request=request,
            sessions=self._sessions,
            form=_fields(await request.body()) if request.method == "POST" else {},
            cookie=cookie,
            identity=identity,
            session=session or Session(),
            signed_in=session is not None,
            token_needed=self._token is not None,
        )

    def _is_token(self, given: str | None) -> bool:
        if self._token is None:
            return True
        known = self._token.encode(errors="replace")
        return given is not None and hmac.compare_digest(given.encode(errors="replace"), known)

    async def _refusal(
        self, session_request: SessionRequest, *, signed_out: bool = False
    ) -> Response | None:
        """Refuse a form that another site may have sent, or that is out of date."""
        if not from_our_page(session_request.request.headers):
            return PlainTextResponse(
                "This form was not sent from this page; a program calls SQLAuditLog.decide.", 403
            )
        sent = self._sessions.sent_from_our_form(
            session_request.identity, session_request.form.get("form_token", "")
        )
        if sent and (signed_out or session_request.signed_in):
            return None
        return await self._shown(self.out_of_date, session_request)

    async def _shown(self, view: View, session_request: SessionRequest) -> Response:
        try:
            return await run_in_threadpool(view, session_request)
        except Exception as exc:  # noqa: BLE001  (a traceback could quote what is reviewed)
            return await run_in_threadpool(self.failed, session_request, exc)

    def logout(self, session_request: SessionRequest) -> Response:
        """Sign out."""
        session_request.sessions.end(session_request.identity)
        return session_request.redirect("/login")

    def name(self, session_request: SessionRequest) -> Response:
        """Ask for the reviewer's name."""
        wrong = session_request.request.method == "POST"
        if wrong:
            name = " ".join(session_request.form.get("name", "").split())
            if name and name.isprintable() and len(name) <= LONGEST_NAME:
                session_request.session.name = name
                return session_request.redirect("/")
        status = 422 if wrong else 200
        return session_request.page("name.html", status=status, wrong=wrong, longest=LONGEST_NAME)

    def queue(self, session_request: SessionRequest) -> Response:
        """List records."""
        found = self._found(
            session_request.filters, session_request.query.get("after") or None, PER_PAGE
        )
        return session_request.page(
            "queue.html",
            choices=CHOICES,
            found=found,
            items=[Item(record) for record in found.records],
            waiting=self._store.count(status="waiting"),
            later="after" in session_request.query,
        )

    def next(self, session_request: SessionRequest) -> Response:
        """Go to the next record of the queue."""
        filters, after = session_request.filters, session_request.query.get("after") or None
        found = self._found(filters, after, 1)
        if after and not found.records:
            found = self._found(filters, None, 1)
        if not found.records or cursor(found.records[0].time, found.records[0].id) == after:
            session_request.session.notice = (
                f"{session_request.session.notice} There are no other items in this queue."
            )
            return session_request.redirect(f"/?{filters.address}")
        place = _quoted(found.records[0].id)
        return session_request.redirect(f"/records/{place}?{filters.address}")

    def decide(self, session_request: SessionRequest) -> Response:
        """Write what a reviewer has decided."""
        action: Any = session_request.form.get("action", "")
        revision = session_request.form.get("revision", "")
        if action not in _PAST_TENSE or not (revision.isdecimal() and revision.isascii()):
            return session_request.page(
                "message.html", status=400, heading="This form cannot be read"
            )
        note = _text(session_request.form.get("note", "")).strip() or None
        answer = _text(session_request.form.get("answer", ""))
        try:
            seen = self._store.get(session_request.request.path_params["record_id"])
            if seen is None:
                return _unsaved(session_request, 404, NOT_SAVED, NO_RECORD)
            item = Item(seen)
            problem = _problem(session_request, action, answer, note, item)
            if problem and seen.revision == int(revision[:9]) and seen.review.status != "decided":
                return self.item(session_request, problem=problem)
            if answer == _lines(item.proposal):  # unchanged: with its own line ends
                answer = item.proposal
            record = self._store.decide(
                seen.id,
                revision=int(revision[:9]),
                reviewer=session_request.session.name,
                action=action,
                answer=answer if action == "edit" else None,
                note=note,
                marks=item.marks_of(session_request.form),
                hold=self._undo_seconds,
            )
        except ReviewConflictError as exc:
            return self._too_late(session_request, exc)
        except AuditError as exc:
            return _unsaved(session_request, 503, NOT_SAVED, str(exc), again=True)
        self._notify_when_final(record)
        until = record.review.time or datetime.now(UTC)
        session_request.session.last = UndoableDecision(
            record.id, record.revision, session_request.form, until
        )
        session_request.session.notice = f"You {_PAST_TENSE[action]} the previous answer."
        place = urlencode({"after": cursor(record.time, record.id)})
        return session_request.redirect(f"/next?{place}&{session_request.filters.address}")

    def undo(self, session_request: SessionRequest) -> Response:
        """Take back the last decision of this browser; its form is filled as it was."""
        last = session_request.session.last
        if last is None:
            return session_request.redirect("/")
        try:
            self._store.undo(
                last.record_id, revision=last.revision, reviewer=session_request.session.name
            )
            session_request.session.notice = "Your decision is undone."
        except ReviewConflictError as exc:
            session_request.session.notice = (
                "It is too late to undo this decision: it has taken effect."
                if exc.reviewer
                else "Your decision was undone already."
            )
        session_request.session.last = replace(last, until=datetime.now(UTC))
        filters = Filters.read(last.form)
        return session_request.redirect(f"/records/{_quoted(last.record_id)}?{filters.address}")

    def out_of_date(self, session_request: SessionRequest) -> Response:
        """Say that a form is older than the last sign-in, and return its text."""
        why = "You are no longer signed in, or you have signed in again since this page was shown."
        return _unsaved(session_request, 403, "Nothing was saved", why)

    def failed(self, session_request: SessionRequest, error: Exception) -> Response:
        """Say what went wrong, and return the text of the form."""
        if isinstance(error, ConfigurationError) and not session_request.form:
            return session_request.redirect(f"/?{session_request.filters.address}")  # no such place
        logger.error("review: a page failed (%s)", type(error).__name__)
        if session_request.form:
            return _unsaved(
                session_request, 500, "Something went wrong", "The server log has the details."
            )
        if isinstance(error, AuditError):
            heading = "The audit log cannot be read"
            return session_request.page("message.html", status=503, heading=heading, why=str(error))
        return session_request.page("message.html", status=500, heading="Something went wrong")

    def _found(self, filters: Filters, after: str | None, limit: int) -> AuditPage:
        newest_first = filters.status != "waiting"  # who waits longest comes first
        return self._store.query(
            **filters.store_filters, newest_first=newest_first, after=after, limit=limit
        )

    def item(
        self, session_request: SessionRequest, *, problem: FormProblem | None = None
    ) -> Response:
        """Show one record."""
        record = self._store.get(session_request.request.path_params["record_id"])
        if record is None:
            return session_request.page("message.html", status=404, heading=NO_RECORD)
        last = session_request.session.last
        undone = last is not None and last.record_id == record.id and not session_request.form
        whole = session_request.query.get("whole", "")
        number = int(whole) - 1 if whole.isascii() and whole.isdecimal() else None
        return session_request.page(
            "item.html",
            status=422 if problem else 200,
            item=Item(record, whole=number),
            place=cursor(record.time, record.id),
            problem=problem,
            form=last.form if last is not None and undone else session_request.form,
            longest=LONGEST_NOTE,
            most_uncited=MOST_UNCITED,
            hold=self._undo_seconds,
        )

    def _too_late(self, session_request: SessionRequest, error: ReviewConflictError) -> Response:
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
        return _unsaved(session_request, 409, heading, why, first=first)

    def _notify_when_final(self, decided: AuditRecord) -> None:
        until = decided.review.time
        if self._on_decided is None or until is None:
            return
        left = (until - datetime.now(UTC)).total_seconds()
        if left > 0:
            timer = threading.Timer(left, self._notify_when_final, [decided])
            timer.daemon = True  # the next start waits for what is left
            timer.start()
            return
        try:
            record = self._store.get(decided.id)
            now = record and record.review
            # Undone, it is not the same; used by an agent, it has taken effect earlier.
            same = now is not None and now.model_copy(update={"time": until}) == decided.review
            if record and same and record.review.time and record.review.time <= until:
                self._on_decided(record)
        except Exception as exc:  # noqa: BLE001  (the decision stands, whatever comes of it)
            logger.error("review: on_decided failed (%s)", type(exc).__name__)  # noqa: TRY400  (a traceback could quote the answer)


def _fields(body: bytes) -> dict[str, str]:
    try:
        text = body.decode("ascii")  # as browsers encode forms
        return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=_MOST_FIELDS))
    except ValueError:
        return {}


def _unsaved(
    session_request: SessionRequest, status: int, heading: str, why: str, **shown: Any
) -> Response:
    """Say that a form was not saved, and return its text."""
    shown |= {"heading": heading, "why": why, "form": session_request.form}
    return session_request.page("unsaved.html", status=status, **shown)


def _problem(
    session_request: SessionRequest, action: str, answer: str, note: str | None, item: Item
) -> FormProblem | None:
    """Say why a decision cannot be saved or looks like a mistake."""
    if len(answer) > LONGEST_ANSWER:
        return FormProblem(
            f"The edited answer is longer than {LONGEST_ANSWER:,} characters.", "edited"
        )
    if note and len(note) > LONGEST_NOTE:
        return FormProblem(f"The note is longer than {LONGEST_NOTE:,} characters.", "note")
    if action == "reject" and not note:
        return FormProblem("Say in the note why you reject the answer.", "note")
    why, proposal = None, _lines(item.proposal)
    if action == "edit" and not answer.strip():
        why = "The edited answer is empty. To withhold the answer, reject it."
    elif action == "edit" and answer == _lines(item.standing or ""):
        why = "The edited answer is the same as the one you would approve. Change it, or approve."
    elif action == "approve" and "answer" in session_request.form and answer != proposal:
        why = "You have edited the answer. Send the edited answer, or undo your changes first."
    return FormProblem(why, "edited") if why else None


def _text(given: str) -> str:
    """Read a form text: browsers send CRLF line ends, and hidden characters are named."""
    return restore_hidden(_lines(given).replace("\r", "\n"))


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n")


def _day(text: str, *, later: int = 0) -> datetime | None:
    try:
        return datetime.combine(date.fromisoformat(text), time(), UTC) + timedelta(days=later)
    except (ValueError, OverflowError):  # not a day, or after the last one there is
        return None


def _short(text: str, most: int = 160) -> str:
    text = re.sub(r"[ \t\n]+", " ", text.replace("\r\n", "\n")).strip(" ")
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def _moment(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _quoted(text: str) -> str:
    return quote(text.replace("\0", ""), safe="", errors="replace")


_templates = environment("langchain_groundedness.review")

_templates.filters |= {
    "evidence_words": evidence_words,
    "correction_words": correction_words,
    "editable": show_hidden_for_editing,
    "short": _short,
    "moment": _moment,
    "quoted": _quoted,
    "sign": SIGNS.__getitem__,
}

_templates.globals["past_tense"] = _PAST_TENSE
