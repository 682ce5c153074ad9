"""Routes of the review page, sign-in and form protection.

Views run in threads because they block on the audit log.
"""

import hmac
import mimetypes
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from langchain_groundedness.audit import SQLAuditLog
from langchain_groundedness.audit.record import AuditRecord
from langchain_groundedness.exceptions import ConfigurationError
from langchain_groundedness.review.pages import Pages, Visit
from langchain_groundedness.review.server import TooLargeError, from_our_page
from langchain_groundedness.review.sessions import FailedAttempts, Sessions

__all__ = ["make_app", "with_static_files"]

_SHORTEST_TOKEN = 16
_LONGEST_HOLD = 86_400
_MOST_FIELDS = 10_000
"""One per claim, and some more."""
_STATIC = Path(__file__).parent / "static"
_LOOK = ("langchain_groundedness", "static")
"""Style sheet shared with reports."""

View = Callable[[Visit], Response]


def make_app(
    store: SQLAuditLog,
    *,
    token: str | None,
    undo_seconds: float,
    on_decided: Callable[[AuditRecord], object] | None,
) -> Starlette:
    """Make the application, without its guard."""
    if token is not None and len(token) < _SHORTEST_TOKEN:
        msg = f"token must have at least {_SHORTEST_TOKEN} characters, got {len(token)}"
        raise ConfigurationError(msg)
    if not 0 <= undo_seconds <= _LONGEST_HOLD:
        accepted = f"a number of seconds from 0 to {_LONGEST_HOLD:,}"
        msg = f"undo_seconds must be {accepted}, got {undo_seconds!r:.60}"
        raise ConfigurationError(msg)
    pages = Pages(store, undo_seconds, on_decided)
    access = _Access(token, pages)
    both = ["GET", "POST"]
    routes: list[BaseRoute] = [
        Route("/", access.page(pages.queue)),
        Route("/login", access.login, methods=both),
        Route("/logout", access.page(pages.logout), methods=["POST"]),
        Route("/name", access.page(pages.name, nameless=True), methods=both),
        Route("/next", access.page(pages.next)),
        Route("/undo", access.page(pages.undo), methods=["POST"]),
        Route("/records/{record_id:path}", access.page(pages.item)),
        Route("/records/{record_id:path}", access.page(pages.decide), methods=["POST"]),
    ]
    return with_static_files(routes)


def with_static_files(routes: list[BaseRoute]) -> Starlette:
    """Make an application of routes, and of the style sheets and scripts of our pages."""
    mimetypes.init()  # reads files, which would block the event loop later
    static = Mount("/static", StaticFiles(directory=_STATIC, packages=[_LOOK]))
    return Starlette(routes=[*routes, static], exception_handlers={TooLargeError: _too_large})


def _address(request: Request) -> str:
    return request.client.host if request.client else ""


class _Access:
    """Decides who sees a page, and which forms are accepted."""

    def __init__(self, token: str | None, pages: Pages) -> None:
        self._token = token
        self._pages = pages
        self._sessions = Sessions()
        self._attempts = FailedAttempts()

    def page(self, view: View, *, nameless: bool = False) -> Any:
        """Show a view only to people who have signed in and given their name."""

        async def endpoint(request: Request) -> Response:
            visit = await self._visit(request)
            if visit.session is None and self._token is None:
                visit = visit.signed_in() if request.method != "POST" else visit
            if request.method == "POST" and (refused := await self._refusal(visit)) is not None:
                return refused
            if visit.session is None:
                return visit.redirect("/login")
            if not visit.session.name and not nameless:
                return visit.redirect("/name")
            return await run_in_threadpool(self._shown, view, visit)

        return endpoint

    async def login(self, request: Request) -> Response:
        """Sign in whoever knows the token."""
        visit = await self._visit(request)
        if request.method == "POST":
            given: str | None = visit.form.get("token", "")
            if (refused := await self._refusal(visit, stranger=True)) is not None:
                return refused
        else:
            given = visit.query.get("token")
        if given is not None and self._attempts.too_many(_address(request)):
            return PlainTextResponse("Too many attempts. Try again in a minute.", 429)
        if self._knows(given):
            if visit.session is not None:
                return visit.redirect("/")
            return await run_in_threadpool(self._shown, self._pages.welcome, visit.signed_in())
        wrong = given is not None
        if wrong:
            self._attempts.add(_address(request))
        return await run_in_threadpool(
            self._shown, lambda visit: self._pages.login(visit, wrong=wrong), visit
        )

    async def _visit(self, request: Request) -> Visit:
        form = _fields(await request.body()) if request.method == "POST" else {}
        cookie = f"groundedness-review-{request.url.port or request.url.scheme}"
        identity = request.cookies.get(cookie, "")
        known = self._sessions.is_well_formed(identity)
        return Visit(
            request=request,
            sessions=self._sessions,
            form=form,
            cookie=cookie,
            identity=identity if known else self._sessions.new_id(),
            session=self._sessions.find(identity) if known else None,
            token_needed=self._token is not None,
        )

    def _knows(self, given: str | None) -> bool:
        if self._token is None:
            return True
        known = self._token.encode(errors="replace")
        return given is not None and hmac.compare_digest(given.encode(errors="replace"), known)

    async def _refusal(self, visit: Visit, *, stranger: bool = False) -> Response | None:
        """Refuse a form that another site may have sent, or that is out of date."""
        if not from_our_page(visit.request.headers):
            return PlainTextResponse(
                "This form was not sent from this page; a program calls SQLAuditLog.decide.", 403
            )
        sent = self._sessions.sent_from_our_form(visit.identity, visit.form.get("form_token", ""))
        if sent and (stranger or visit.session is not None):
            return None
        return await run_in_threadpool(self._shown, self._pages.out_of_date, visit)

    def _shown(self, view: View, visit: Visit) -> Response:
        try:
            return view(visit)
        except Exception as exc:  # noqa: BLE001  (a traceback could quote what is reviewed)
            return self._pages.failed(visit, exc)


def _fields(body: bytes) -> dict[str, str]:
    try:
        text = body.decode("ascii")  # as browsers encode forms
        return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=_MOST_FIELDS))
    except ValueError:
        return {}


async def _too_large(_: Request, __: Exception) -> Response:
    return PlainTextResponse("The form is too large.", 413)
