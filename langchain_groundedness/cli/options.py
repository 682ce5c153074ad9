"""Options shared by several commands, and their parsing.

Options:
    as_json: Print JSON, for a program.
    base_url (URL): OpenAI-compatible server of the model.
    calibration (FILE): Thresholds written by `calibrate`; not with --model or --verifier.
    column (FIELD=NAME): Column that holds a field, as in answer=my_column; repeatable.
    data (IN): Files or folders with the rows.
    db (URL): Database of the audit log: sqlite:///PATH or postgresql://...
    fail_under (METRIC=MEAN): Exit with 1 if the metric's mean is lower; repeatable.
    layout: rows: one record per row. claims: records of documents, and claims that name them by
        documents_id.
    limit (N): Read only this many rows, the first ones.
    log (FILE.jsonl): File of the audit log.
    max_concurrency (N): Most rows at a time.
    max_failed (N): With --fail-under: how many rows may fail or be unreadable.
    model (PROVIDER:NAME): Chat model that judges; by default the embedded verifier judges, offline.
    model_timeout (SECONDS): How long to wait for each reply of the model.
    port (PORT): Port to listen on; 0 for any that is free.
    resume: Resume from the files there are, or start over.
    separator (TEXT): What separates the documents of a row in one text.
    verifier (NAME): Verifier that judges instead of the model: embedded, or a public model such as
        hhem (extra transformers). An unknown name lists them all.
"""

import asyncio
import math
import os
import re
import shlex
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, TypeVar

import typer

from langchain_groundedness._runtime.timeouts import DEFAULT_TIMEOUT, timed_out_calls
from langchain_groundedness.cli.errors import CommandError, one_line, refuse
from langchain_groundedness.display.counts import format_count, is_or_are
from langchain_groundedness.display.terminal import printable
from langchain_groundedness.exceptions import GroundednessError, require

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings
    from langchain_core.language_models import BaseChatModel

    from langchain_groundedness.audit import AuditRecord, SQLAuditLog

__all__ = [
    "DEFAULT_TIMEOUT",
    "AsJson",
    "Count",
    "Db",
    "Layout",
    "MaxConcurrency",
    "MaxFailed",
    "Port",
    "Resume",
    "Seconds",
    "audit_records",
    "held_decisions",
    "load_embeddings",
    "load_model",
    "next_step",
    "open_log",
    "parse_number",
    "parse_numbers",
    "parse_pairs",
    "require_one",
    "run_interruptibly",
    "undoable_note",
]


def _seconds(given: float) -> float:
    if not 0 < given < math.inf:
        msg = f"it must be a number of seconds above 0, got {given:g}"
        raise typer.BadParameter(msg)
    return given


Seconds: TypeAlias = Annotated[float, typer.Option(callback=_seconds)]
Count: TypeAlias = Annotated[int | None, typer.Option(min=1)]
MaxConcurrency: TypeAlias = Annotated[int, typer.Option(min=1)]
Layout: TypeAlias = Annotated[Literal["rows", "claims"], typer.Option("--format")]
Resume: TypeAlias = Annotated[bool, typer.Option("--resume/--fresh")]
MaxFailed: TypeAlias = Annotated[int, typer.Option(min=0)]
Port: TypeAlias = Annotated[int, typer.Option(min=0, max=65535)]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json")]
Db: TypeAlias = Annotated[str | None, typer.Option(envvar="GROUNDEDNESS_AUDIT_DB")]


def parse_pairs(
    given: Iterable[str] | None,
    option: str,
    example: str,
    *,
    split: Callable[[str, str], tuple[str, str, str]] = str.partition,
) -> dict[str, str]:
    """Read values such as `answer=my_column`; by default, names have no equals sign."""
    found: dict[str, str] = {}
    for each in given or ():
        name, _, value = (part.strip() for part in split(each, "="))
        if not (name and value):
            refuse(f"{option} takes a pair, as in {example}")
        if name in found:
            refuse(f"{option} {name} is given twice")
        found[name] = value
    return found


def parse_numbers(given: Iterable[str] | None, option: str, example: str) -> dict[str, float]:
    """Read values such as `faithfulness=0.8`."""
    found = parse_pairs(given, option, example, split=str.rpartition)
    return {name: parse_number(value, f"{option} {name}") for name, value in found.items()}


def parse_number(text: str, option: str) -> float:
    """Read a finite number."""
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        refuse(f"{option} takes a finite number")
    return found


def load_model(name: str | None, base_url: str | None) -> "BaseChatModel | None":
    """Make the chat model that `--model` and `--base-url` name."""
    if name is None:
        if base_url is not None:
            refuse("--base-url needs --model, the name of the model on that server")
        return None
    if not name.strip() or name.strip().endswith(":"):
        given = f"{name.strip()} names no model" if name.strip() else "is empty"
        refuse(f"--model {given}; give the name of a model, such as openai:gpt-4o-mini")
    if base_url is not None and not re.match(r"https?://[^\s/]", base_url, re.IGNORECASE):
        refuse("--base-url must begin with http:// or https://, as in http://localhost:11434/v1")
    with _errors_of(f"model {name}"):
        model: BaseChatModel = _chat_model(name, base_url)
    return model


@contextmanager
def _errors_of(what: str) -> Iterator[None]:
    """Say what an error of another package is about."""
    try:
        yield
    except GroundednessError:
        raise
    except Exception as error:
        why = one_line(error)
        if "model_provider" in why:  # an argument of LangChain's, which has no option here
            why = (
                "its provider is not known; write PROVIDER:NAME, as in openai:gpt-4o-mini or "
                "ollama:qwen2.5:7b, or give --base-url for a server that speaks OpenAI's protocol"
            )
        msg = f"{what}: {why}"
        raise CommandError(msg) from error


def _chat_model(name: str, base_url: str | None) -> Any:
    if base_url is None and find_spec("langchain"):
        return require("langchain.chat_models", extra="agents").init_chat_model(name)
    if base_url is None and ":" in name and not name.startswith("openai:"):
        require("langchain", extra="agents")
    options: dict[str, Any] = {"model": name.removeprefix("openai:")}
    if base_url is not None:
        # Servers of this kind speak the older of the two protocols, and most ask for no key.
        options |= {
            "base_url": base_url,
            "use_responses_api": False,
            "api_key": os.environ.get("OPENAI_API_KEY") or "none",
        }
    return require("langchain_openai", extra="openai").ChatOpenAI(**options)


def load_embeddings(name: str | None) -> "Embeddings | None":
    """Make the embeddings that `--embeddings` names."""
    if name is None:
        return None
    init = require("langchain.embeddings", extra="agents").init_embeddings
    with _errors_of(f"embeddings {name}"):
        made: Embeddings = init(name)
    return made


def require_one(**sources: object) -> None:
    """Require exactly one of the options that name an audit log or a file."""
    given = [name for name, value in sources.items() if value is not None]
    if len(given) != 1:
        refuse(f"give exactly one of {_in_words(sources)}; got {_in_words(given) or 'none'}")


def _in_words(names: Iterable[str]) -> str:
    *others, last = [f"--{name}" for name in names] or [""]
    return f"{', '.join(others)} and {last}" if others else last


def audit_records(db: str | None, log: Path | None, **filters: Any) -> "Iterator[AuditRecord]":
    """Read the records of an audit log one by one; the filters are those of a database."""
    if log is not None:
        yield from _records_in_file(log)
    elif db is not None:
        with open_log(db) as store:
            yield from store.records(**filters)


def _records_in_file(path: Path) -> "Iterator[AuditRecord]":
    from langchain_groundedness.audit import JsonlAuditLog

    if not path.is_file():
        refuse(f"there is no audit log at {path}")
    empty = True
    with JsonlAuditLog(path, on_store_down="raise") as log:
        for record in log.records():
            empty = False
            yield record
    if empty and path.stat().st_size:
        refuse(
            f"{path}: none of its lines is a record of an audit log; --log takes the file that a "
            "JsonlAuditLog writes, --db the URL of a database"
        )


def open_log(db: str) -> "SQLAuditLog":
    """Open an audit log that a database already has."""
    from langchain_groundedness.audit import SQLAuditLog

    log = SQLAuditLog(db, on_store_down="raise")
    sql: Any = require("langchain_groundedness.audit.sql_store", extra="sql")
    store = sql.Store(db)
    if store.path is not None and not store.path.is_file():
        refuse(f"there is no audit log at {store.path}")
    if not store.has_tables():
        refuse(
            f"there is no audit log in {store}; give the database that a SQLAuditLog has written to"
        )
    return log


def held_decisions(db: str | None) -> int:
    """Count the decisions in a database that can still be undone: they have no effect yet."""
    if db is None:
        return 0
    with open_log(db) as log:
        return log.count(status="held")


def undoable_note(held: int, done: str) -> str:
    """Say that reviewers can still undo some decisions."""
    count = format_count(held, "decision")
    return f"{count} can still be undone and {is_or_are(held)} not {done} yet"


def next_step(words: str, *paths: Path, err: bool = False) -> None:
    """Say what to run or open next; `{}` stands for a path."""
    said = words.format(*(shlex.quote(str(path)) for path in paths))
    typer.echo(f"Next: {printable(said)}", err=err)


_ResultT = TypeVar("_ResultT")
_running: set[Future[Any]] = set()
_MOST_THREADS = 256
"""Enough that threads blocked on a silent model do not block writing files."""


def run_interruptibly(work: Coroutine[Any, Any, _ResultT]) -> _ResultT:
    """Run a coroutine to its end, or until the user interrupts it.

    A model class without an asynchronous method works in a thread, which nobody can interrupt:
    the end of the event loop does not wait for it.
    """

    async def run() -> _ResultT:
        asyncio.get_running_loop().set_default_executor(_UnawaitedThreads(_MOST_THREADS))
        return await work

    return asyncio.run(run())


def is_waiting() -> bool:
    """Tell whether a thread still waits for a model; Python would join it at exit."""
    return timed_out_calls() > 0 or any(not each.done() for each in _running)


class _UnawaitedThreads(ThreadPoolExecutor):
    """An executor whose threads a closing event loop does not join."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future = super().submit(fn, *args, **kwargs)
        _running.add(future)
        future.add_done_callback(_running.discard)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002  (as the base)
        super().shutdown(wait=False, cancel_futures=cancel_futures)
