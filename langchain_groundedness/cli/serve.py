"""The command `langchain-groundedness serve`. Needs the extra `review`."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer
from langchain_core.documents import Document

from langchain_groundedness.cli import options
from langchain_groundedness.cli.check import read_documents
from langchain_groundedness.cli.errors import errors_in_one_line, one_line, refuse
from langchain_groundedness.display.counts import format_count
from langchain_groundedness.exceptions import require

__all__ = ["serve"]

_KINDS = (".txt", ".md")


def serve(  # noqa: PLR0913  (each is an option of the command)
    folder: Annotated[Path | None, typer.Argument()] = None,
    *,
    model: str | None = None,
    base_url: str | None = None,
    verifier: str = "embedded",
    port: options.Port = 8322,
    as_json: options.AsJson = False,
) -> None:
    """Ask about documents in the browser, with each claim checked.

    \b
    Examples:
      langchain-groundedness serve
      langchain-groundedness serve handbook/ --model openai:gpt-4o-mini
      langchain-groundedness serve handbook/ --model qwen2.5:7b --base-url http://localhost:11434/v1

    Only browsers on this machine can connect.

    Options:
        folder (FOLDER): Folder with .txt and .md files to ask about, or one file; by default the
            documents of the demonstration.
        model (PROVIDER:NAME): Chat model that answers; by default a script quotes the documents,
            with mistakes planted.
        verifier (NAME): Verifier, as for check.
    """  # noqa: D301  (click reads the backspace)
    with errors_in_one_line("cannot serve"), suppress(KeyboardInterrupt):
        require("uvicorn", extra="review")
        from langchain_groundedness.cli.answering import make_chain
        from langchain_groundedness.demo import QUESTION, load_documents
        from langchain_groundedness.review import live, server
        from langchain_groundedness.runnable import GroundednessRunnable
        from langchain_groundedness.streaming import GroundednessGuard

        documents = load_documents() if folder is None else _documents(folder)
        chain = make_chain(documents, options.load_model(model, base_url))
        checker = GroundednessRunnable(verifier=verifier, on_contradicted="correct")
        checker.warm_up()
        guard = GroundednessGuard(checker, release="immediate")
        about = {
            "documents": len(documents),
            "folder": folder and (folder.resolve().name or str(folder)),
            "model": model,
            "verifier": verifier,
            "question": QUESTION if folder is None else "",
        }
        app = live.make_live_app(chain.pipe(guard), about=about, describe=one_line)
        taken = server.listen("127.0.0.1", port)
        address = server.address_of("127.0.0.1", taken)
        if as_json:
            typer.echo(json.dumps({"documents": len(documents), "address": f"{address}/"}))
        else:
            count = format_count(len(documents), "document")
            typer.echo(f"{count}. Open {address}/\nCtrl+C stops the server.")
        server.serve(app, taken)


def _documents(folder: Path) -> list[Document]:
    if not folder.exists():
        refuse(f"there is no folder or file {folder}")
    if not folder.is_dir():
        return read_documents([str(folder)])
    paths = sorted(
        path for path in folder.rglob("*") if path.suffix.lower() in _KINDS and path.is_file()
    )
    if not paths:
        refuse(f"{folder} has no {' or '.join(_KINDS)} file")
    documents = read_documents([str(path) for path in paths])
    for document, path in zip(documents, paths, strict=True):
        document.metadata["source"] = path.relative_to(folder).as_posix()
    return documents
