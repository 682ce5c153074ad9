"""Options that several commands take, with one help text each."""

from math import inf
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

__all__ = [
    "AsJson",
    "BaseUrl",
    "CalibrationFile",
    "Layout",
    "MaxConcurrency",
    "Model",
    "ModelTimeout",
    "Separator",
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
