"""HTML pages from jinja2 templates, with autoescaping and strict undefined names."""

from collections.abc import Mapping
from typing import Any

from langchain_groundedness.display.escaping import printable
from langchain_groundedness.exceptions import require

__all__ = ["render"]


def render(package: str, template: str, values: Mapping[str, Any]) -> str:
    """Render a template from the folder `templates` of a package."""
    jinja2 = require("jinja2", extra="report")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(package),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    environment.filters["thousands"] = "{:,}".format
    text: str = environment.get_template(template).render(values)
    return text


def _shown(value: Any) -> Any:
    """Replace control characters in a value, unless it is HTML."""
    return value if hasattr(value, "__html__") else printable(str(value).replace("\r\n", "\n"))
