"""HTML pages from jinja2 templates, with autoescaping and hidden characters named."""

from collections.abc import Mapping
from typing import Any

from langchain_groundedness.display.hidden_characters import named
from langchain_groundedness.exceptions import require

__all__ = ["environment", "render"]


def render(package: str, template: str, values: Mapping[str, Any]) -> str:
    """Render a template from the folder `templates` of a package."""
    pages = environment(package)
    pages.filters["thousands"] = "{:,}".format
    text: str = pages.get_template(template).render(values)
    return text


def environment(package: str) -> Any:
    """Make the environment of a package's templates."""
    jinja2 = require("jinja2", extra="report")
    return jinja2.Environment(
        loader=jinja2.PackageLoader(package),
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
    return "" if value is None else named(str(value))
