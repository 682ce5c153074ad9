"""The command line: `langchain-groundedness check` and `review`. Needs the extra `cli`.

Exit codes of `check`: 0 the answer is trusted, and the policy neither blocks it nor sends it to
review; 1 it is not; 2 it could not be checked (bad input included); 130 interrupted.
"""

import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn

import typer
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from pydantic import ValidationError
from rich.console import Console

from langchain_groundedness._cli_review import HELP as REVIEW_HELP
from langchain_groundedness._cli_review import review
from langchain_groundedness.exceptions import GroundednessError, require
from langchain_groundedness.policy import DecisionPolicy
from langchain_groundedness.runnable import GroundednessRunnable
from langchain_groundedness.terminal import printable, render
from langchain_groundedness.types import GroundednessResult

__all__ = ["run"]

_URL = re.compile(r"https?://[^\s/]", re.IGNORECASE)
TRUSTED, NOT_TRUSTED, NOT_CHECKED, INTERRUPTED = 0, 1, 2, 130

_CHECK_HELP = """Check an answer claim by claim against its documents.

\b
Examples:
  langchain-groundedness check --answer "Revenue was 2.4B in Q3." --documents report.md notes.txt
  cat report.md | langchain-groundedness check --answer @answer.txt --documents - \\
      --question "What was Q3 revenue?" --on-contradicted correct
  langchain-groundedness check --answer @answer.txt --documents *.md \\
      --model openai:gpt-4o-mini --json
  langchain-groundedness check --answer @answer.txt --documents *.md \\
      --model qwen2.5:7b --base-url http://localhost:11434/v1

\b
Exit code: 0 trusted, 1 not trusted, 2 could not be checked.
What the policy blocks or sends to review is not trusted.
"""

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    rich_markup_mode=None,
)


def run(arguments: Sequence[str]) -> NoReturn:
    """Run the command line and exit with its code.

    Args:
        arguments: What stands after the name of the program.

    Raises:
        SystemExit: Always, with the exit code.
    """
    app(args=list(spread(arguments, "--documents")), prog_name="langchain-groundedness")
    raise SystemExit(TRUSTED)


def spread(arguments: Sequence[str], option: str) -> Iterator[str]:
    """Let an option take several values: `--o a b` becomes `--o a --o b`.

    The parser behind typer reads one value per option. The values end at the next argument that
    begins with a dash and is not `-` alone.

    Args:
        arguments: A command line.
        option: The long name of the option.

    Yields:
        The arguments, with the option repeated before each of its values.
    """
    open_option = False
    for place, argument in enumerate(arguments):
        value_follows = place + 1 < len(arguments) and not _is_option(arguments[place + 1])
        if argument == option and value_follows:
            open_option = True
        elif _is_option(argument):
            open_option = argument.startswith(f"{option}=")
            yield f"{argument}=" if argument == option else argument
        elif open_option:
            yield f"{option}={argument}"
        else:
            yield argument


def _is_option(argument: str) -> bool:
    return argument.startswith("-") and argument != "-"


class CannotCheckError(Exception):
    """The check cannot run; the message is one line for the user."""


def _print_version(wanted: bool) -> None:  # noqa: FBT001  (as typer calls it)
    if wanted:
        try:
            number = version("langchain-groundedness")
        except PackageNotFoundError:  # run from a copy of the source
            number = "(not installed)"
        typer.echo(f"langchain-groundedness {number}")
        raise typer.Exit(TRUSTED)


@app.callback()
def _program(
    *,
    _: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_print_version, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Tell which claims of an answer its documents really support."""


app.command(help=REVIEW_HELP)(review)


@app.command(help=_CHECK_HELP)
def check(  # noqa: PLR0913  (each is an option of the command)
    *,
    answer: Annotated[
        str,
        typer.Option(
            help="The answer; @PATH reads it from a file, - from standard input, and @@ begins "
            "an answer that itself begins with @."
        ),
    ],
    documents: Annotated[
        list[str],
        typer.Option(
            metavar="PATH...", help="Text files that the answer came from; - is standard input."
        ),
    ],
    question: Annotated[str | None, typer.Option(help="What was asked.")] = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="PROVIDER:NAME",
            help="Chat model that judges. Without one, the embedded verifier does, offline.",
        ),
    ] = None,
    base_url: Annotated[
        str | None, typer.Option(metavar="URL", help="OpenAI-compatible server of the model.")
    ] = None,
    on_contradicted: Annotated[
        Literal["annotate", "correct", "strip"],
        typer.Option(help="What to do to a claim that the documents contradict."),
    ] = "annotate",
    on_unverifiable: Annotated[
        Literal["keep", "strip"],
        typer.Option(help="What to do to a claim that the documents say nothing about."),
    ] = "keep",
    max_claims: Annotated[
        int | None, typer.Option(help="Check this many claims; the others are unchecked.")
    ] = None,
    trust_threshold: Annotated[
        float, typer.Option(help="Share of claims that must be supported, 0 to 1.")
    ] = 1.0,
    policy: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Decision policy: a YAML or JSON file (.yaml, .yml, .json)."
        ),
    ] = None,
    query_class: Annotated[
        str | None, typer.Option(help="Class of the question, for the policy.")
    ] = None,
    risk_tier: Annotated[
        str | None, typer.Option(help="How much depends on the answer, for the policy.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result as JSON, for a program.")
    ] = False,
) -> None:
    """Check one answer; `_CHECK_HELP` tells the user the rest."""
    try:
        _check_ranges(max_claims, trust_threshold)
        _read_standard_input_once(answer, *documents)
        text = _read_answer(answer)
        sources = _read_documents(documents)
        checker = GroundednessRunnable(
            model=_load_model(model, base_url),
            on_contradicted=on_contradicted,
            on_unverifiable=on_unverifiable,
            max_claims=max_claims,
            trust_threshold=trust_threshold,
            policy=DecisionPolicy() if policy is None else DecisionPolicy.load(policy),
        )
        given = {"question": question, "query_class": query_class, "risk_tier": risk_tier}
        with Console(stderr=True).status("checking…"):
            result = checker.invoke({**given, "answer": text, "documents": sources})
        _print_result(result, as_json=as_json)
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except Exception as error:  # noqa: BLE001  (a crash would exit with 1: "not trusted")
        typer.echo(f"cannot check: {printable(_one_line(error))}", err=True)
        raise typer.Exit(NOT_CHECKED) from None
    raise typer.Exit(_exit_code(result))


def _check_ranges(max_claims: int | None, trust_threshold: float) -> None:
    if max_claims is not None and max_claims < 1:
        msg = f"--max-claims must be 1 or more, got {max_claims}"
        raise CannotCheckError(msg)
    if not 0 <= trust_threshold <= 1:
        msg = f"--trust-threshold must be from 0 to 1, got {trust_threshold:g}"
        raise CannotCheckError(msg)


def _read_standard_input_once(*paths: str) -> None:
    if paths.count("-") > 1:
        msg = "standard input (-) can be given once, as the answer or as a document"
        raise CannotCheckError(msg)


def _read_answer(given: str) -> str:
    if given.startswith("@@"):
        return given[1:]
    path = given.removeprefix("@")
    text = given if path == given != "-" else _read(path)
    if not text.strip():
        msg = "the answer is empty"
        raise CannotCheckError(msg)
    return text


def _read_documents(paths: Sequence[str]) -> list[Document]:
    texts = {path: _read(path) for path in paths}
    if "-" in texts and not texts["-"].strip():
        msg = "standard input is empty"
        raise CannotCheckError(msg)
    if not any(text.strip() for text in texts.values()):
        msg = f"nothing to check against: {', '.join(paths)} held no text"
        raise CannotCheckError(msg)
    return [
        Document(page_content=text, metadata={"source": "stdin" if path == "-" else path})
        for path, text in texts.items()
    ]


def _read(path: str) -> str:
    name = "standard input" if path == "-" else path
    if not path:
        msg = "an empty path was given; name a file, or - for standard input"
        raise CannotCheckError(msg)
    try:
        data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as error:
        msg = f"{name}: {error.strerror or type(error).__name__}"
        raise CannotCheckError(msg) from error
    if b"\0" in data:
        msg = f"{name}: binary data, not text; convert it first"
        raise CannotCheckError(msg)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        msg = f"{name}: not UTF-8 text (byte {error.start}); convert it first"
        raise CannotCheckError(msg) from error


def _load_model(name: str | None, base_url: str | None) -> BaseChatModel | None:
    if name is None:
        if base_url is not None:
            msg = "--base-url needs --model, the name of the model on that server"
            raise CannotCheckError(msg)
        return None
    if not name.strip():
        msg = "--model is empty; give the name of a model, such as openai:gpt-4o-mini"
        raise CannotCheckError(msg)
    if base_url is not None and not _URL.match(base_url):
        msg = "--base-url must begin with http:// or https://, as in http://localhost:11434/v1"
        raise CannotCheckError(msg)
    try:
        return _chat_model(name, base_url)
    except GroundednessError:
        raise
    except Exception as error:
        msg = f"model {name}: {_one_line(error)}"
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


def _print_result(result: GroundednessResult, *, as_json: bool) -> None:
    if as_json:
        # ASCII, so that no character of a document can steer a terminal or fail to be encoded.
        typer.echo(json.dumps(result.model_dump(mode="json"), indent=2))
    else:
        if hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(errors="replace")
        Console().print(render(result))
    if _exit_code(result) == NOT_CHECKED:
        reasons = dict.fromkeys(found.reason for found in result.claims if found.reason)
        why = "; ".join(reasons or result.decision.reasons)
        typer.echo(f"could not be checked: {printable(' '.join(why.split()))}", err=True)


def _exit_code(result: GroundednessResult) -> int:
    if result.is_trusted and result.decision.action in {"pass", "flag"}:
        return TRUSTED
    return NOT_CHECKED if result.verdict == "unchecked" else NOT_TRUSTED


def _one_line(error: Exception) -> str:
    if isinstance(error, CannotCheckError | GroundednessError):
        text = str(error)
    elif isinstance(error, ValidationError):  # its own text repeats the values, keys among them
        text = "; ".join(
            f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors()
        )
    else:
        text = f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}".removesuffix(
            ": "
        )
    return " ".join(text.split())
