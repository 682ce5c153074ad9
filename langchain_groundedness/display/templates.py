"""HTML pages from jinja2 templates, with autoescaping and hidden characters named."""

from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from importlib.resources import files
from typing import Any

from langchain_groundedness.display.hidden_characters import named
from langchain_groundedness.exceptions import require

__all__ = ["FEWEST_POINTS", "environment", "page", "render"]

FEWEST_POINTS = 5
"""A chart of fewer points says less than a table."""


def page(package: str, template: str, values: Mapping[str, Any]) -> str:
    """Render a page that stands alone: its style and its script, if any, are in it.

    The template extends `page.html`, which shows `title` and `kind`. The page's policy allows
    nothing but this style and this script.
    """
    static = files("langchain_groundedness") / "static"
    look = "".join((static / name).read_text("utf-8") for name in ("look.css", "report.css"))
    hashes = {"style_hash": _hash(look), "script_hash": _hash(values.get("script", ""))}
    return render(package, template, {**values, **hashes, "style": look})


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


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
    return "" if value is None else named(str(value))
