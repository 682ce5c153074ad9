"""A web page on which reviewers decide about doubtful answers.

`langchain-groundedness review --db URL` serves it; `create_review_app` makes it an ASGI app for
your own server. Needs the extra `review`.
"""

from collections.abc import Callable, Collection
from typing import Any

from langchain_groundedness.audit import AuditRecord, SQLAuditLog
from langchain_groundedness.exceptions import require
from langchain_groundedness.review.server import Guard

__all__ = ["create_review_app"]


def create_review_app(  # noqa: PLR0913  (options by keyword)
    store: SQLAuditLog,
    *,
    token: str | None,
    allowed_hosts: Collection[str] = ("127.0.0.1", "::1", "localhost"),
    any_address: bool = False,
    undo_seconds: float = 10.0,
    on_decided: Callable[[AuditRecord], object] | None = None,
) -> Guard:
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
        MissingDependencyError: The extra `review` is missing.

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
    for needed in ("starlette", "jinja2"):
        require(needed, extra="review")
    app: Any = require("langchain_groundedness.review.app", extra="review")
    made = app.make_app(store, token=token, undo_seconds=undo_seconds, on_decided=on_decided)
    hint = "Allow it with --allow-host, or allowed_hosts= of create_review_app."
    return Guard(made, hosts=allowed_hosts, any_address=any_address, hint=hint)
