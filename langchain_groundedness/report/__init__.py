"""Reports of evaluations, validations and audit logs: HTML, Markdown and JUnit XML."""

from collections.abc import Mapping
from pathlib import Path

from langchain_groundedness._runtime.files import raising_configuration_error, replace_file
from langchain_groundedness.evals.statistics import require_run
from langchain_groundedness.evals.values import EvaluationRun
from langchain_groundedness.report.figures import GateResult, check_thresholds, format_of
from langchain_groundedness.report.html import to_html
from langchain_groundedness.report.junit import to_junit
from langchain_groundedness.report.markdown import to_markdown
from langchain_groundedness.report.pages import statistics_html, validation_html

__all__ = [
    "GateResult",
    "check_thresholds",
    "statistics_html",
    "to_html",
    "to_junit",
    "to_markdown",
    "validation_html",
    "write_report",
]


def write_report(
    run: EvaluationRun,
    path: str | Path,
    *,
    baseline: EvaluationRun | None = None,
    fail_under: Mapping[str, float] | None = None,
    max_failed: int = 0,
) -> None:
    """Write a run to a file; the suffix chooses the format: `.html`, `.md`, or `.xml` for JUnit.

    Args:
        run: The run.
        path: The file; an existing one is replaced as a whole.
        baseline: Another run over the same rows, to compare with.
        fail_under: Thresholds by the key of their metric, for `.xml`.
        max_failed: As for `to_junit`.

    Raises:
        ConfigurationError: The suffix is unknown, or the file cannot be written.
        MissingDependencyError: For `.html`: jinja2 is not installed; the extra `report` brings it.
    """
    require_run(run, "run")
    target = Path(path)
    match format_of(target):
        case ".html":
            text = to_html(run, baseline=baseline)
        case ".md":
            text = to_markdown(run, baseline=baseline)
        case ".xml":
            text = to_junit(run, fail_under=fail_under or {}, max_failed=max_failed)
    with raising_configuration_error(target):
        replace_file(target, [text.encode("utf-8", "replace")])
