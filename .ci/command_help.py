"""Write docs/reference/command_line.md from the commands: `python .ci/command_help.py`."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from typer.testing import CliRunner
from typing_extensions import TypedDict

from langchain_groundedness import GroundednessResult
from langchain_groundedness.calibration import Calibration
from langchain_groundedness.cli import COMMANDS, app
from langchain_groundedness.evals.statistics import PairedComparison
from langchain_groundedness.evals.validation import ValidationSummary
from langchain_groundedness.evals.values import BadRow
from langchain_groundedness.monitoring import AuditSummary
from langchain_groundedness.types import AnswerVerdict, Usage, VerdictLabel

__all__ = ["OUTPUTS", "PAGE", "help_page"]

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "command_line.md"
_PROGRAM = "langchain-groundedness"
_INTRODUCTION = """# Command line

This page shows the `--help` of each command and what it prints with `--json`; the
[guide](../guide/command_line.md) has examples.
"""


class Metric(TypedDict):
    """Counts of one metric."""

    mean: float | None
    scored: int
    failed: int
    skipped: int
    rows: int


class Summary(TypedDict):
    """What `evaluate` and `report` have in common."""

    metrics: dict[str, Metric]
    rows: int
    bad_rows: list[BadRow]
    complete: bool
    seconds: float | None
    usage: Usage


class Evaluated(Summary):
    """What `evaluate` prints."""

    rows_in_data_set: int
    cost: float | None


class Threshold(TypedDict):
    """Whether a metric reaches `--fail-under`."""

    key: str
    passed: bool
    text: str


class Reported(Summary):
    """What `report` prints."""

    name: str
    claims: dict[VerdictLabel, int]
    answers: dict[AnswerVerdict, int]
    changes: dict[str, PairedComparison]
    thresholds: list[Threshold]


class Serving(TypedDict):
    """What `review` prints, in one line, before it serves."""

    waiting: int
    address: str


class Asked(TypedDict):
    """What `serve` prints, in one line, before it serves."""

    documents: int
    address: str


class Exported(TypedDict):
    """What `export-reviews` prints."""

    rows: int
    out: str
    left_out: dict[str, int]
    held: int


OUTPUTS: dict[str, Any] = {
    "demo": GroundednessResult,
    "check": GroundednessResult,
    "serve": Asked,
    "evaluate": Evaluated,
    "validate": ValidationSummary,
    "report": Reported,
    "calibrate": Calibration,
    "stats": AuditSummary,
    "review": Serving,
    "export-reviews": Exported,
}
"""The type of what each command prints with `--json`."""

_WORDS = {"string": "text", "integer": "whole number", "boolean": "true | false"}
_Kind = tuple[str, list[str]]
"""A kind of value in words, and the lines of its fields."""


def help_page() -> str:
    """Let each command say its help.

    Returns:
        The page, in Markdown.
    """
    names = [name for group in COMMANDS.values() for name in group]
    return "\n".join((_INTRODUCTION, _help(), *(_help(name) + _output(name) for name in names)))


def _help(*command: str) -> str:
    runner = CliRunner(env={"COLUMNS": "80", "TERM": "dumb", "NO_COLOR": "1"})
    said = runner.invoke(app, [*command, "--help"], prog_name=_PROGRAM, terminal_width=80)
    title = " ".join(command) or _PROGRAM
    return f"## {title}\n\n```text\n{said.output.strip()}\n```\n"


def _output(name: str) -> str:
    if name not in OUTPUTS:
        return ""
    schema = TypeAdapter(OUTPUTS[name]).json_schema(mode="serialization")
    _, lines = _kind(schema, schema.get("$defs", {}))
    return "\n".join(("\nWith `--json`:\n", "```text", *lines, "```\n"))


def _kind(schema: Mapping[str, Any], known: Mapping[str, Any]) -> _Kind:
    if "$ref" in schema:
        return _kind(known[schema["$ref"].rsplit("/", 1)[-1]], known)
    if "anyOf" in schema:
        kinds = [_kind(each, known) for each in schema["anyOf"]]
        return " | ".join(word for word, _ in kinds), [line for _, each in kinds for line in each]
    if "const" in schema or "enum" in schema:
        return " | ".join(map(json.dumps, schema.get("enum", [schema.get("const")]))), []
    if "properties" in schema:
        return "object", list(_fields(schema["properties"], known))
    items = schema.get("items") or next(iter(schema.get("prefixItems", ())), None)
    for words, inner in (("list of", items), ("by name:", schema.get("additionalProperties"))):
        if isinstance(inner, dict):
            word, lines = _kind(inner, known)
            return f"{words} {word}", lines
    word = str(schema.get("type", "any"))
    return _WORDS.get(word, word), []


def _fields(properties: Mapping[str, Any], known: Mapping[str, Any]) -> Iterator[str]:
    for name, schema in properties.items():
        word, lines = _kind(schema, known)
        yield f"{name}: {word}"
        yield from (f"  {line}" for line in lines)


if __name__ == "__main__":
    PAGE.write_text(help_page(), encoding="utf-8")
