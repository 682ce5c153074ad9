"""HTML pages from jinja2 templates, with autoescaping and hidden characters named."""

from typing import Any

from langchain_groundedness.display.hidden_characters import show_hidden
from langchain_groundedness.exceptions import require

__all__ = ["environment"]


def environment(package: str) -> Any:
    """Make the environment of a package's templates."""
    jinja2 = require("jinja2", extra="report")
    return jinja2.Environment(
        loader=jinja2.ChoiceLoader(
            [jinja2.PackageLoader(name) for name in (package, "langchain_groundedness.display")]
        ),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )


def _shown(value: Any) -> Any:
    """Name hidden characters in a value, unless it is HTML."""
    if hasattr(value, "__html__"):
        return value
    return "" if value is None else show_hidden(str(value))
