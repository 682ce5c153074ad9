"""Runs as JUnit's XML, which CI systems show as test results; pure."""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC
from xml.sax.saxutils import escape, quoteattr

from langchain_groundedness.evals.values import EvaluatedRow, EvaluationRun
from langchain_groundedness.report.figures import judge, metrics_of, score_of
from langchain_groundedness.report.words import number

__all__ = ["junit"]

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LONGEST = 2000

_Case = tuple[str, str, str]
"""Name, what is in it (`failure`, `error`, `skipped`, or nothing), and why."""


def junit(run: EvaluationRun, fail_under: Mapping[str, float], *, max_failed: int = 0) -> str:
    """Write a run as test results."""
    means = {each.key: each for each in judge(run, fail_under, max_failed=max_failed)}
    suites = []
    for key in fail_under or [metric.key for metric in metrics_of(run)]:
        cases = [_case(row, key, fail_under.get(key)) for row in run.rows]
        if key in means:
            verdict = means[key]
            cases.append(("mean of all rows", "" if verdict.passed else "failure", verdict.text))
        suites.append((key, cases))
    data_set = list(_data_set(run))
    if data_set:
        suites.append(("data set", data_set))
    return _document(run, suites)


def _case(row: EvaluatedRow, key: str, least: float | None) -> _Case:
    name, found = row.row.id, score_of(row, key)
    if found is None:
        return name, "error", "the metric was not asked for this row"
    if found.score is None:
        return name, "error" if found.status == "failed" else "skipped", found.reason or ""
    if least is not None and found.score < least:
        return name, "failure", f"{number(found.score)} is below {least:g}. {found.comment}".strip()
    return name, "", ""


def _data_set(run: EvaluationRun) -> Iterator[_Case]:
    if not run.complete:
        yield "whole data set", "error", "the run was interrupted, rows are missing"
    for each in run.bad_rows:
        where = "a row" if each.line is None else f"line {each.line}"
        yield each.id or where, "error", f"{where} could not be read: {each.reason}"


def _document(run: EvaluationRun, suites: list[tuple[str, list[_Case]]]) -> str:
    name = run.header.name
    stamp = f"{run.header.made.astimezone(UTC):%Y-%m-%dT%H:%M:%S}"
    body = "".join(_suite(name, key, cases, stamp) for key, cases in suites)
    every = [case for _, cases in suites for case in cases]
    took = "" if run.seconds is None else f" time={_quoted(f'{run.seconds:.3f}')}"
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f"<testsuites name={_quoted(name)}{_counts(every)}{took}>\n{body}</testsuites>\n"
    )


def _suite(run: str, key: str, cases: list[_Case], stamp: str) -> str:
    body = "".join(_element(f"{run}.{key}", *case) for case in cases)
    head = f"name={_quoted(key)}{_counts(cases)} timestamp={_quoted(stamp)}"
    return f"<testsuite {head}>\n{body}</testsuite>\n"


def _counts(cases: list[_Case]) -> str:
    kinds = [kind for _, kind, _ in cases]
    of = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    return f' tests="{len(kinds)}"' + "".join(f' {n}="{kinds.count(k)}"' for n, k in of.items())


def _element(suite: str, name: str, kind: str, why: str) -> str:
    head = f"<testcase classname={_quoted(suite)} name={_quoted(name)}"
    if not kind:
        return f"{head}/>\n"
    text = escape(_fit(why))
    inside = f"<{kind} message={_quoted(why)}>{text}</{kind}>"
    return f"{head}>{inside}</testcase>\n"


def _quoted(text: str) -> str:
    return quoteattr(_fit(" ".join(text.split())))


def _fit(text: str) -> str:
    """Replace what XML cannot hold, and shorten what nobody reads to the end."""
    text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    return _NOT_XML.sub("\ufffd", text)
