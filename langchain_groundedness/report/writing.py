"""Runs written down for people and for CI."""

from collections.abc import Callable, Mapping
from pathlib import Path

from langchain_groundedness._runtime.files import replace_file
from langchain_groundedness.evals.statistics import require_run
from langchain_groundedness.evals.values import EvaluationRun
from langchain_groundedness.exceptions import ConfigurationError
from langchain_groundedness.report.html import page
from langchain_groundedness.report.junit import junit
from langchain_groundedness.report.markdown import markdown

__all__ = ["FORMATS", "to_html", "to_junit", "to_markdown", "write_report"]

FORMATS = (".html", ".md", ".xml")
"""What the name of a report can end with: a page, Markdown, JUnit's XML."""


def to_html(run: EvaluationRun, *, baseline: EvaluationRun | None = None) -> str:
    """Write a run as a page that stands alone: it loads nothing, and opens offline.

    Args:
        run: The run.
        baseline: Another run over the same rows, to compare with.

    Returns:
        The text of an HTML file.
    """
    return page(run, baseline)


def to_markdown(run: EvaluationRun, *, baseline: EvaluationRun | None = None) -> str:
    """Write what a run says in a few tables, as for the summary of a CI job.

    Args:
        run: The run.
        baseline: Another run over the same rows, to compare with.

    Returns:
        The text of a Markdown file.
    """
    return markdown(run, baseline)


def to_junit(run: EvaluationRun, *, fail_under: Mapping[str, float], max_failed: int = 0) -> str:
    """Write a run as test results, one case per row and threshold.

    A row that could not be checked is an error, never a pass.

    Args:
        run: The run.
        fail_under: Thresholds by the key of their metric; what is below fails.
        max_failed: How many rows may fail for the case of the mean to pass.

    Returns:
        The text of an XML file that CI systems read.

    Raises:
        ConfigurationError: A metric is not in the run.
    """
    return junit(run, fail_under, max_failed=max_failed)


def write_report(
    run: EvaluationRun,
    path: str | Path,
    *,
    baseline: EvaluationRun | None = None,
    fail_under: Mapping[str, float] | None = None,
    max_failed: int = 0,
) -> None:
    """Write a run into a file, as the name says: `.html`, `.md`, or `.xml` for JUnit.

    Args:
        run: The run.
        path: The file; another one there is replaced as a whole.
        baseline: Another run over the same rows, to compare with.
        fail_under: Thresholds by the key of their metric, for `.xml`.
        max_failed: As for `to_junit`.

    Raises:
        ConfigurationError: The name ends otherwise, or the file cannot be written.
    """
    require_run(run, "run")
    target = Path(path)
    write: dict[str, Callable[[], str]] = {
        ".html": lambda: to_html(run, baseline=baseline),
        ".md": lambda: to_markdown(run, baseline=baseline),
        ".xml": lambda: to_junit(run, fail_under=fail_under or {}, max_failed=max_failed),
    }
    kind = target.suffix.lower()
    if kind not in write:
        msg = f"{target}: the name of a report ends with {', '.join(FORMATS)}"
        raise ConfigurationError(msg)
    text = write[kind]()
    try:
        replace_file(target, [text.encode("utf-8", "replace")])
    except OSError as exc:
        msg = f"{target}: {exc.strerror or type(exc).__name__}"
        raise ConfigurationError(msg) from exc
