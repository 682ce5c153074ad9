"""Options that several commands take, with one help text each."""

import asyncio
import math
import os
import re
from collections.abc import Coroutine, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from importlib.util import find_spec
from math import inf
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

import typer
from langchain_core.language_models import BaseChatModel

from langchain_groundedness.cli.errors import CannotCheckError, one_line
from langchain_groundedness.exceptions import GroundednessError, require
from langchain_groundedness.llm.timeouts import timed_out_calls

__all__ = [
    "AsJson",
    "BaseUrl",
    "CalibrationFile",
    "Layout",
    "MaxConcurrency",
    "Model",
    "ModelTimeout",
    "Separator",
    "awaited",
    "load_model",
    "number",
    "numbers",
    "pairs",
]


def _seconds(given: float) -> float:
    if not 0 < given < inf:
        msg = f"it must be more than 0 seconds, and a number; got {given:g}"
        raise typer.BadParameter(msg)
    return given


Model: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="PROVIDER:NAME",
        help="Chat model that judges. Without one, the embedded verifier does, offline.",
    ),
]

BaseUrl: TypeAlias = Annotated[
    str | None, typer.Option(metavar="URL", help="OpenAI-compatible server of the model.")
]

ModelTimeout: TypeAlias = Annotated[
    float,
    typer.Option(
        metavar="SECONDS", help="How long to wait for each reply of the model.", callback=_seconds
    ),
]

CalibrationFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Thresholds that `calibrate` has written; not with --model."),
]

Layout: TypeAlias = Annotated[
    Literal["rows", "claims"],
    typer.Option(
        "--format",
        help="rows: each record is one. claims: records with documents, and claims that name "
        "them by documents_id.",
    ),
]

Separator: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="TEXT", help="What stands between documents written in one text."),
]

MaxConcurrency: TypeAlias = Annotated[int, typer.Option(min=1, help="Most rows at a time.")]

AsJson: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print the summary as JSON, for a program.")
]


def pairs(given: Iterable[str] | None, option: str, example: str) -> dict[str, str]:
    """Read pairs."""
    found: dict[str, str] = {}
    for each in given or ():
        name, _, value = (part.strip() for part in each.rpartition("="))
        if not (name and value):
            msg = f"{option} takes a pair, as in {example}"
            raise CannotCheckError(msg)
        if name in found:
            msg = f"{option} {name} is given twice; which one counts?"
            raise CannotCheckError(msg)
        found[name] = value
    return found


def numbers(given: Iterable[str] | None, option: str, example: str) -> dict[str, float]:
    """Read pairs of a name and a number."""
    found = pairs(given, option, example)
    return {name: number(value, f"{option} {name}") for name, value in found.items()}


def number(text: str, option: str) -> float:
    """Read a number."""
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        msg = f"{option}: a finite number is needed there"
        raise CannotCheckError(msg)
    return found


_URL = re.compile(r"https?://[^\s/]", re.IGNORECASE)


def load_model(name: str | None, base_url: str | None) -> BaseChatModel | None:
    """Make a chat model."""
    if name is None:
        if base_url is not None:
            msg = "--base-url needs --model, the name of the model on that server"
            raise CannotCheckError(msg)
        return None
    if not name.strip() or name.strip().endswith(":"):
        given = f"{name.strip()} names no model" if name.strip() else "is empty"
        msg = f"--model {given}; give the name of a model, such as openai:gpt-4o-mini"
        raise CannotCheckError(msg)
    if base_url is not None and not _URL.match(base_url):
        msg = "--base-url must begin with http:// or https://, as in http://localhost:11434/v1"
        raise CannotCheckError(msg)
    try:
        return _chat_model(name, base_url)
    except GroundednessError:
        raise
    except Exception as error:
        why = one_line(error)
        if "model_provider" in why:  # an argument of LangChain's, which has no option here
            why = (
                "its provider is not known; write PROVIDER:NAME, as in openai:gpt-4o-mini or "
                "ollama:qwen2.5:7b, or give --base-url for a server that speaks OpenAI's protocol"
            )
        msg = f"model {name}: {why}"
        raise CannotCheckError(msg) from error


def _chat_model(name: str, base_url: str | None) -> BaseChatModel:
    if base_url is None and find_spec("langchain"):
        model: BaseChatModel = require("langchain.chat_models", extra="agents").init_chat_model(
            name
        )
        return model
    if base_url is None and ":" in name and not name.startswith("openai:"):
        require("langchain", extra="agents")
    chat_openai = require("langchain_openai", extra="openai").ChatOpenAI
    options: dict[str, Any] = {"model": name.removeprefix("openai:")}
    if base_url is not None:
        # Servers of this kind speak the older of the two protocols, and most ask for no key.
        options |= {
            "base_url": base_url,
            "use_responses_api": False,
            "api_key": os.environ.get("OPENAI_API_KEY") or "none",
        }
    openai: BaseChatModel = chat_openai(**options)
    return openai


_ResultT = TypeVar("_ResultT")

_begun: set[Future[Any]] = set()

_MOST_THREADS = 256
"""So many that threads in which a silent model is waited for leave room for writing files."""


def awaited(work: Coroutine[Any, Any, _ResultT]) -> _ResultT:
    """Run a coroutine to its end, or until the user interrupts it.

    A model class without an asynchronous method works in a thread, which goes on when nobody
    waits for it any more: it is not waited for either.
    """

    async def run() -> _ResultT:
        asyncio.get_running_loop().set_default_executor(_LeftBehind(_MOST_THREADS))
        return await work

    return asyncio.run(run())


def is_waiting() -> bool:
    """Tell whether a thread still waits for a model: Python would wait for it at its end."""
    return timed_out_calls() > 0 or any(not each.done() for each in _begun)


class _LeftBehind(ThreadPoolExecutor):
    """Threads that an event loop does not wait for when it is closed."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future = super().submit(fn, *args, **kwargs)
        _begun.add(future)
        future.add_done_callback(_begun.discard)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002  (as the base)
        super().shutdown(wait=False, cancel_futures=cancel_futures)
