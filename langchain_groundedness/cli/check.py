"""The command `langchain-groundedness check`.

Exit codes: 0 the answer is trusted, and the policy neither blocks it nor sends it to review; 1 it
is not; 2 it could not be checked (bad input included); 130 interrupted.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from langchain_core.documents import Document
from rich.console import Console

from langchain_groundedness._runtime.files import (
    raising_configuration_error,
    read_rest_up_to,
    read_up_to,
)
from langchain_groundedness.cli import options
from langchain_groundedness.cli.errors import FAILED, errors_in_one_line, refuse
from langchain_groundedness.display.terminal import printable, render
from langchain_groundedness.exceptions import ConfigurationError
from langchain_groundedness.types import GroundednessResult

if TYPE_CHECKING:
    from langchain_groundedness.runnable import GroundednessRunnable

__all__ = ["check", "read_answer", "read_documents"]

LARGEST_TEXT = 64 << 20
"""Most bytes of an answer or a document."""


def check(  # noqa: PLR0913  (each is an option of the command)
    *,
    files: Annotated[list[str] | None, typer.Argument()] = None,
    answer: str | None = None,
    documents: list[str] | None = None,
    question: str | None = None,
    model: str | None = None,
    base_url: str | None = None,
    model_timeout: options.Seconds = options.DEFAULT_TIMEOUT,
    verifier: str | None = None,
    on_contradicted: Literal["annotate", "correct", "strip"] = "annotate",
    on_unverifiable: Literal["keep", "strip"] | None = None,
    max_claims: options.Count = None,
    trust_threshold: Annotated[float | None, typer.Option(min=0, max=1)] = None,
    calibration: Path | None = None,
    policy: Path | None = None,
    query_class: str | None = None,
    risk_tier: str | None = None,
    as_json: options.AsJson = False,
) -> None:
    """Check an answer claim by claim against its documents.

    \b
    Examples:
      langchain-groundedness check answer.txt report.md notes.txt
      langchain-groundedness check --answer 'Revenue was $2.4B in Q3.' report.md
      cat report.md | langchain-groundedness check answer.txt - \\
          --question 'What was Q3 revenue?' --on-contradicted correct
      langchain-groundedness check answer.txt *.md --model openai:gpt-4o-mini --json
      langchain-groundedness check answer.txt *.md \\
          --model qwen2.5:7b --base-url http://localhost:11434/v1

    \b
    Exit code: 0 trusted, 1 not trusted, 2 could not be checked.
    An answer that the policy blocks or sends to review is not trusted.

    Options:
        files (FILE): Text files: the answer, then its documents; - is standard input.
        answer (TEXT): The answer itself; all files are documents then. @PATH reads it from a file,
            - from standard input; an answer that begins with @ is written with @@.
        documents (PATH...): More documents.
        question (TEXT): The question that was asked.
        on_contradicted: What to do with a claim that the documents contradict.
        on_unverifiable: What to do with a claim that the documents do not mention; by default,
            correct removes it.
        max_claims (N): Check this many claims; the others are unchecked.
        trust_threshold (NUMBER): Share of claims that must be supported; by default 1, or the
            calibration's.
        policy (FILE): Decision policy: a YAML or JSON file (.yaml, .yml, .json).
        query_class (NAME): Class of the question, for the policy.
        risk_tier (NAME): Risk tier of the question, for the policy.
    """  # noqa: D301  (click reads the backspace)
    from langchain_groundedness.decision import DecisionPolicy

    with errors_in_one_line("cannot check"):
        paths = [*(files or ()), *(documents or ())]
        if answer is None and paths:
            first, *paths = paths
            answer = first if first == "-" else f"@{first}"
        if answer is None or not paths:
            refuse("give the answer's file, then its documents: check ANSWER DOCUMENT...")
        if (answer, *paths).count("-") > 1:
            refuse("standard input (-) can be given once, as the answer or as a document")
        text = read_answer(answer)
        sources = read_documents(paths)
        chosen: dict[str, Any] = {
            "model": options.load_model(model, base_url),
            "model_timeout": model_timeout,
            "verifier": verifier,
            "on_contradicted": on_contradicted,
            "on_unverifiable": on_unverifiable,
            "max_claims": max_claims,
            "policy": DecisionPolicy() if policy is None else DecisionPolicy.load(policy),
        }
        if trust_threshold is not None:
            chosen["trust_threshold"] = trust_threshold
        checker = _checker(chosen, calibration)
        given = {"question": question, "query_class": query_class, "risk_tier": risk_tier}
        with Console(stderr=True).status("checking…"):
            # Async, since a thread that waits for a model cannot be interrupted.
            result = options.run_interruptibly(
                checker.ainvoke({**given, "answer": text, "documents": sources})
            )
        _print_result(result, as_json=as_json)
    raise typer.Exit(_exit_code(result))


def _checker(chosen: dict[str, Any], calibration: Path | None) -> "GroundednessRunnable":
    from langchain_groundedness.calibration import Calibration
    from langchain_groundedness.runnable import GroundednessRunnable

    if calibration is None:
        return GroundednessRunnable(**chosen)
    try:
        return Calibration.load(calibration).checker(**chosen)
    except ConfigurationError as error:
        if str(error).startswith(str(calibration)):
            raise
        refuse(f"{calibration}: {error}")


def _print_result(result: GroundednessResult, *, as_json: bool) -> None:
    if as_json:
        # ASCII, so that no character can control the terminal or fail to be encoded.
        typer.echo(json.dumps(result.model_dump(mode="json"), indent=2))
    else:
        Console().print(render(result))
        if result.verdict == "has_contradictions" and not result.edits:
            options.next_step("run it again with --on-contradicted correct to correct the answer")
    if _exit_code(result) == FAILED:
        reasons = dict.fromkeys(found.reason for found in result.claims if found.reason)
        why = "; ".join(reasons or result.decision.reasons)
        typer.echo(f"could not be checked: {printable(' '.join(why.split()))}", err=True)


def _exit_code(result: GroundednessResult) -> int:
    if result.is_trusted and result.decision.action in {"pass", "flag"}:
        return 0
    return FAILED if result.verdict == "unchecked" else 1


def read_answer(given: str) -> str:
    """Read the answer: the text itself, `@PATH`, or `-` for standard input."""
    if given.startswith("@@"):
        return given[1:]
    path = given.removeprefix("@")
    text = given if path == given != "-" else _read(path)
    if not text.strip():
        refuse("the answer is empty")
    return text


def read_documents(paths: Sequence[str]) -> list[Document]:
    """Read the documents, each from a file; `-` is standard input."""
    texts = {path: _read(path) for path in paths}
    if "-" in texts and not texts["-"].strip():
        refuse("standard input is empty")
    if not any(text.strip() for text in texts.values()):
        refuse(f"nothing to check against: {', '.join(paths)} has no text")
    return [
        Document(page_content=text, metadata={"source": "stdin" if path == "-" else path})
        for path, text in texts.items()
    ]


def _read(path: str) -> str:
    name = "standard input" if path == "-" else path
    if not path:
        refuse("an empty path was given; name a file, or - for standard input")
    with raising_configuration_error(name):
        data = (
            read_rest_up_to(sys.stdin.buffer, LARGEST_TEXT, Path(path))
            if path == "-"
            else read_up_to(Path(path), LARGEST_TEXT)
        )
    if b"\0" in data:
        utf16 = data.startswith((b"\xff\xfe", b"\xfe\xff"))
        what = "UTF-16 text, not UTF-8" if utf16 else "binary data, not text"
        refuse(f"{name}: {what}; convert it first")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        refuse(f"{name}: not UTF-8 text (byte {error.start}); convert it first")
