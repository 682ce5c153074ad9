"""The command `langchain-groundedness review`. Needs the extra `review`."""

import secrets
from typing import Annotated

import typer

from langchain_groundedness.audit import SQLAuditLog
from langchain_groundedness.cli.records import open_log
from langchain_groundedness.exceptions import ConfigurationError, GroundednessError, require
from langchain_groundedness.review import create_review_app, server

__all__ = ["HELP", "review"]

STOPPED, CANNOT = 0, 2

HELP = """Serve a page on which people decide what becomes of doubtful answers.

\b
Examples:
  langchain-groundedness review --db sqlite:///audit.db
  langchain-groundedness review --db postgresql://user@host/audit --port 9000

The address to open, with a token to sign in, is printed once.
"""


def review(  # noqa: PLR0913  (each is an option of the command)
    *,
    db: Annotated[
        str,
        typer.Option(
            metavar="URL",
            envvar="GROUNDEDNESS_REVIEW_DB",
            show_envvar=True,
            help="Database of the audit log: sqlite:///PATH or postgresql://...",
        ),
    ],
    host: Annotated[
        str, typer.Option(help="Address to listen on; by default for this machine only.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on; 0 for any that is free.")
    ] = 8321,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="GROUNDEDNESS_REVIEW_TOKEN",
            show_envvar=True,
            help="What reviewers sign in with; by default a random one, printed once.",
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="A name by which browsers may ask for the page; repeatable."
        ),
    ] = None,
    login: Annotated[
        bool, typer.Option("--login/--no-login", help="Whether reviewers must sign in.")
    ] = True,
) -> None:
    """Serve the page; `HELP` tells the user the rest."""
    try:
        _serve(db, host, port, token=token, names=allow_host or [], login=login)
    except GroundednessError as error:
        typer.echo(f"cannot serve the review: {' '.join(str(error).split())}", err=True)
        raise typer.Exit(CANNOT) from None
    except KeyboardInterrupt:
        raise typer.Exit(STOPPED) from None


def _serve(  # noqa: PLR0913  (as the command)
    db: str, host: str, port: int, *, token: str | None, names: list[str], login: bool
) -> None:
    require("uvicorn", extra="review")
    local = server.is_loopback(host)
    if not login and not local:
        msg = f"--no-login would let everybody in who can reach {host}; it needs a loopback address"
        raise ConfigurationError(msg)
    with _opened(db) as log:
        secret = (token or secrets.token_urlsafe(32)) if login else None
        app = create_review_app(
            log,
            token=secret,
            allowed_hosts=("127.0.0.1", "::1", "localhost", host, *names),
            any_address=not local,
        )
        waiting = log.count(status="waiting")
        taken = server.listen(host, port)
        if not local:
            typer.echo(
                f"warning: {host} can be reached from other machines, and nothing is encrypted on "
                "the way: put a server with TLS in front, or use an SSH tunnel",
                err=True,
            )
        address = server.address_of(host, taken)
        shown = f"{address}/login?token={secret}" if secret and not token else f"{address}/"
        typer.echo(f"{waiting} waiting. Open {shown}\nCtrl+C stops the server.")
        server.serve(app, taken)


def _opened(db: str) -> SQLAuditLog:
    log = open_log(db)
    log.upgrade()
    return log
