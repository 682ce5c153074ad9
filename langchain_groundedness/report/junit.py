"""Runs as JUnit XML, which CI systems show as test results; pure."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC
from itertools import chain
from xml.etree import ElementTree as ET

from langchain_groundedness.display.hidden_characters import show_hidden
from langchain_groundedness.evals import display
from langchain_groundedness.evals.statistics import find_score
from langchain_groundedness.evals.values import EvaluatedRow, EvaluationRun
from langchain_groundedness.report import figures

__all__ = ["to_junit"]

_NOT_XML = re.compile("[^\t\n\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LONGEST = 2000

_Case = tuple[str, str, str]
"""Name, what is in it (`failure`, `error`, `skipped`, or nothing), and why."""


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
    gates = figures.check_thresholds(run, fail_under, max_failed=max_failed)
    keys = list(fail_under) or [metric.key for metric in figures.metrics_of(run)]
    suites = {key: [_case(row, key, fail_under.get(key)) for row in run.rows] for key in keys}
    for gate in gates:
        suites[gate.key].append(("mean of all rows", "" if gate.passed else "failure", gate.text))
    data_set = list(_data_set(run))
    groups = [*suites.items(), *([("data set", data_set)] if data_set else [])]
    root = ET.Element("testsuites", _counts(run.header.name, chain(*(each for _, each in groups))))
    if run.seconds is not None:
        root.set("time", f"{run.seconds:.3f}")
    for key, cases in groups:
        made = f"{run.header.made.astimezone(UTC):%Y-%m-%dT%H:%M:%S}"
        suite = ET.SubElement(root, "testsuite", _counts(key, cases), timestamp=made)
        class_name = _line(f"{run.header.name}.{key}")
        for name, kind, why in cases:
            case = ET.SubElement(suite, "testcase", classname=class_name, name=_line(name))
            if kind:
                ET.SubElement(case, kind, message=_line(why)).text = _fit(why)
    ET.indent(root, space="")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _case(row: EvaluatedRow, key: str, least: float | None) -> _Case:
    name, found = row.row.id, find_score(row, key)
    if found is None:
        return name, "error", "the metric was not computed for this row"
    if found.score is None:
        return name, "error" if found.status == "failed" else "skipped", found.reason or ""
    if least is not None and found.score < least:
        text = f"{display.format_number(found.score)} is below {least:g}. {found.comment}"
        return name, "failure", text.strip()
    return name, "", ""


def _data_set(run: EvaluationRun) -> Iterator[_Case]:
    if not run.complete:
        yield "whole data set", "error", "the run was interrupted: rows are missing"
    for each in run.bad_rows:
        where = "a row" if each.line is None else f"line {each.line}"
        yield each.id or where, "error", f"{where} could not be read: {each.reason}"


def _counts(name: str, cases: Iterable[_Case]) -> dict[str, str]:
    kinds = Counter(kind for _, kind, _ in cases)
    numbers = kinds.total(), kinds["failure"], kinds["error"], kinds["skipped"]
    titles = "tests", "failures", "errors", "skipped"
    return {"name": _line(name), **dict(zip(titles, map(str, numbers), strict=True))}


def _line(text: str) -> str:
    return _fit(" ".join(show_hidden(text).split()))


def _fit(text: str) -> str:
    """Name hidden characters, replace what XML cannot hold, and shorten very long texts."""
    text = show_hidden(text)
    text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    return _NOT_XML.sub("\ufffd", text)
