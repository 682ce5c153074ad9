"""The command `langchain-groundedness review`. Needs the extra `review`."""

import json
import secrets
from contextlib import suppress
from typing import Annotated

import typer

from langchain_groundedness.cli import options
from langchain_groundedness.cli.errors import errors_in_one_line, refuse
from langchain_groundedness.exceptions import require

__all__ = ["review"]


def review(  # noqa: PLR0913  (each is an option of the command)
    *,
    db: Annotated[str, typer.Option(envvar="GROUNDEDNESS_AUDIT_DB")],
    host: str = "127.0.0.1",
    port: options.Port = 8321,
    token: Annotated[str | None, typer.Option(envvar="GROUNDEDNESS_REVIEW_TOKEN")] = None,
    allow_host: list[str] | None = None,
    login: bool = True,
    as_json: options.AsJson = False,
) -> None:
    """Serve a page where people decide about doubtful answers.

    \b
    Examples:
      langchain-groundedness review --db sqlite:///audit.db
      langchain-groundedness review --db postgresql://user@host/audit --port 9000

    Prints the address to open, with a token to sign in, once.

    Options:
        host (ADDRESS): Address to listen on; by default only this machine can connect.
        token (TEXT): Token reviewers sign in with; by default a random one, printed once.
        allow_host (NAME): Host name that browsers may use; repeatable.
        login: Whether reviewers must sign in.
    """  # noqa: D301  (click reads the backspace)
    with errors_in_one_line("cannot serve the review"), suppress(KeyboardInterrupt):
        require("uvicorn", extra="review")
        from langchain_groundedness.review import create_review_app, server

        local = server.is_loopback(host)
        if not login and not local:
            refuse(
                f"--no-login would let in everybody who can reach {host}; it needs a loopback "
                "address"
            )
        with options.open_log(db) as audit_log:
            audit_log.upgrade()
            secret = (token or secrets.token_urlsafe(32)) if login else None
            app = create_review_app(
                audit_log,
                token=secret,
                allowed_hosts=("127.0.0.1", "::1", "localhost", host, *(allow_host or ())),
                any_address=not local,
            )
            waiting = audit_log.count(status="waiting")
            taken = server.listen(host, port)
            if not local:
                typer.echo(
                    f"warning: {host} can be reached from other machines, and nothing is "
                    "encrypted: put a server with TLS in front, or use an SSH tunnel",
                    err=True,
                )
            address = server.address_of(host, taken)
            shown = f"{address}/login?token={secret}" if secret and not token else f"{address}/"
            typer.echo(
                json.dumps({"waiting": waiting, "address": shown})
                if as_json
                else f"{waiting} waiting. Open {shown}\nCtrl+C stops the server."
            )
            server.serve(app, taken)
