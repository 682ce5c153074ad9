"""One request of a reviewer, and how it is answered."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from langchain_groundedness._marked import SIGNS
from langchain_groundedness._printable import printable
from langchain_groundedness.review._sessions import Session, Sessions

__all__ = ["Visit", "editable"]


@dataclass(kw_only=True)
class Visit:
    """A request, and who has sent it."""

    request: Request
    sessions: Sessions
    form: Mapping[str, str]
    cookie: str
    """Name of the cookie."""
    identity: str
    """Which browser it is."""
    session: Session | None = None
    """What is known of the browser if it is signed in."""
    token_needed: bool = True
    """Whether people sign in, and so can sign out."""

    @property
    def query(self) -> Mapping[str, str]:
        """What stands behind the path."""
        return self.request.query_params

    @property
    def root(self) -> str:
        """Where the application is mounted."""
        return str(self.request.scope.get("root_path", "")).rstrip("/")

    @property
    def known(self) -> Session:
        """What is known of the browser, which is signed in."""
        assert self.session is not None  # noqa: S101  (the door lets nobody else in)
        return self.session

    def signed_in(self) -> "Visit":
        """Sign the browser in, under a new identity."""
        self.sessions.end(self.identity)
        identity = self.sessions.begin()
        return replace(self, identity=identity, session=self.sessions.find(identity))

    def page(self, template: str, *, status: int = 200, **values: Any) -> Response:
        """Answer with a page.

        Args:
            template: Its template.
            status: HTTP's status.
            **values: What the template shows.

        Returns:
            The response.
        """
        shown = {
            "root": self.root,
            "form_token": self.sessions.form_token(self.identity),
            "session": self.session,
            "token_needed": self.token_needed,
            "notice": self._notice(),
            **values,
        }
        text = _templates.get_template(template).render(shown)
        return self._with_cookie(HTMLResponse(text.encode("utf-8", "replace"), status))

    def redirect(self, path: str) -> Response:
        """Answer with another address of ours.

        Args:
            path: The address, from the root of the application.

        Returns:
            The response.
        """
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


def editable(text: str) -> str:
    """Drop what a field of a form cannot hold.

    Args:
        text: A text.

    Returns:
        The text without the character 0 and halves of characters.
    """
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def _shown(text: object) -> str:
    return printable(str(text).replace("\r\n", "\n"))


def _short(text: str, most: int = 160) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def _moment(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _quoted(text: str) -> str:
    return quote(editable(text), safe="")


def _words(name: str) -> str:
    return name.replace("_", " ")


_templates = Environment(
    loader=PackageLoader("langchain_groundedness.review"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    finalize=lambda value: "" if value is None else value,
)
_templates.filters |= {
    "shown": _shown,
    "editable": editable,
    "short": _short,
    "moment": _moment,
    "words": _words,
    "quoted": _quoted,
    "sign": SIGNS.__getitem__,
}
