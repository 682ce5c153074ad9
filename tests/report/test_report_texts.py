"""Reports as Markdown, as JUnit's XML, and in notebooks; thresholds for CI."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from review.records import HOSTILE, result

from langchain_groundedness import ConfigurationError
from langchain_groundedness.evals import (
    BadRow,
    CitationEvaluator,
    ContextPrecisionEvaluator,
    ContextRecallEvaluator,
    Evaluator,
    FactualCorrectnessEvaluator,
    FaithfulnessEvaluator,
    evaluate,
)
from langchain_groundedness.report import (
    check_thresholds,
    to_junit,
    to_markdown,
    write_report,
)
from report.runs import hostile, large, row, run, scored, small


def cases(text: str) -> dict[tuple[str, str], ET.Element | None]:
    """What each case holds, by suite and name; `None` if it passes."""
    root = ET.fromstring(text)  # noqa: S314  (ours)
    return {
        (suite.attrib["name"], case.attrib["name"]): next(iter(case), None)
        for suite in root
        for case in suite
    }


def kinds(text: str) -> dict[tuple[str, str], str]:
    return {name: "" if found is None else found.tag for name, found in cases(text).items()}


# --- Markdown ---


def test_markdown_says_the_means_and_what_has_no_score() -> None:
    text = to_markdown(small())
    assert "| faithfulness | 0.750 | 0.500 to 1.000 | 2 | 1 | 1 |" in text
    assert "| faithfulness | failed | 1 | the judge timed out |" in text
    assert "> **!** 2 rows could not be read and are left out." in text
    assert "| 7 | – | no JSON |" in text  # noqa: RUF001


def test_markdown_begins_with_the_verdicts() -> None:
    said = "Claims: 2 supported, 1 contradicted, 1 unchecked · Answers: 1 has contradictions"
    assert to_markdown(small()).splitlines()[2] == said
    assert "Claims:" not in to_markdown(run(row("a", scored("m", 1.0))))


ROW = {
    "answer": "Rome is the capital of Italy [1]. Oslo lies on a fjord.",
    "reference": "Oslo lies on a fjord. Lima is the capital of Peru.",
    "contexts": ["Rome is the capital of Italy."],
}
OTHERS = [CitationEvaluator(), FactualCorrectnessEvaluator(), ContextRecallEvaluator()]


@pytest.mark.parametrize("others", [OTHERS, OTHERS[::-1]])
def test_verdicts_are_those_on_the_answer_by_its_documents_in_any_order_of_metrics(
    others: list[Evaluator],
) -> None:
    judged = [ROW, {key: text for key, text in ROW.items() if key != "reference"}]
    faithful = FaithfulnessEvaluator()
    alone = to_markdown(evaluate(judged, faithful)).splitlines()[2]
    assert alone.startswith("Claims: 2 supported, 2 unverifiable ·")
    for metrics in ([faithful, *others], [*others, ContextPrecisionEvaluator(), faithful]):
        assert to_markdown(evaluate(judged, metrics)).splitlines()[2] == alone


def test_without_verdicts_on_the_answer_by_its_documents_there_are_none() -> None:
    for metrics in (OTHERS, [ContextPrecisionEvaluator()]):
        text = to_markdown(evaluate([ROW], metrics))
        assert "Claims:" not in text
        assert "unverifiable:" not in text
        assert "unchecked:" not in text


def test_markdown_compares_with_another_run() -> None:
    before = large(80, better=-0.4, seed=2, name="old | one")
    text = to_markdown(large(80), baseline=before)
    assert r"## Compared with old \| one" in text
    said = text[text.index("## Compared") :]
    line = next(each for each in said.splitlines() if each.startswith("| answer_quality "))
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert float(cells[1]) < float(cells[2])
    assert float(cells[3].removeprefix("▲ +")) > 0.3
    assert cells[-1] == "more than chance, p < 0.001"


def test_markdown_shows_the_worst_rows_with_answer_and_failed_claims() -> None:
    text = to_markdown(large(40))
    said = text[text.index("## Worst rows") :]
    line = next(each for each in said.splitlines() if each.startswith("| q-"))
    _, question, answer, claims, *scores = [cell.strip() for cell in line.strip("|").split("|")]
    assert question.startswith("How many towers has Rome")
    assert answer.startswith("Rome has ")
    assert answer.endswith("It is a fine town.")
    assert "contradicted: Oslo has " in claims
    assert "Rome has" not in claims, "it is supported"
    assert len(scores) == 3


def test_markdown_shows_the_changed_rows_of_a_comparison() -> None:
    before = run(row("a", scored("m", 1.0), answer="Yes."), row("b", scored("m", 0.5)), keys="m")
    after = run(row("a", scored("m", 0.25), answer="No."), row("b", scored("m", 0.5)), keys="m")
    text = to_markdown(after, baseline=before)
    said = text[text.index("## Most changed rows") :].splitlines()
    assert [line for line in said if line.startswith("| ")][2:] == [
        "| a | – | No. | – | 0.250 (▼ -0.750) |"  # noqa: RUF001
    ]


@pytest.mark.parametrize(
    "text",
    ["The K7 (1.7 litres) boils in 4.5 minutes!", "See example.com {or} ask: why?", "a_b+c-d=e"],
)
def test_text_that_is_no_markdown_stays_as_it_is(text: str) -> None:
    assert f"| {text} |" in to_markdown(run(row("a", scored("m", None, reason=text)), keys="m"))


@pytest.mark.parametrize(
    "text", ["www.x.org", "https://x.org", "*b*", "[a](b)", "#12", "@ann", "_i_"]
)
def test_markdown_in_a_text_is_no_markdown(text: str) -> None:
    assert f"| {text} |" not in to_markdown(run(row("a", scored("m", None, reason=text)), keys="m"))


@given(st.text(max_size=60))
def test_a_text_stays_one_cell_without_html(text: str) -> None:
    made = run(row(text, scored("m", None, reason=text)), keys=("m",), name=text)
    lines = to_markdown(made).splitlines()
    cell = next(line for line in lines if line.startswith("| m | failed"))
    assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", cell)) == 5
    assert not set("<>") & set(cell)


def test_hostile_texts_are_no_markdown() -> None:
    text = to_markdown(hostile())
    found = re.sub(r"</?(details|summary)>", "", text)
    assert not re.search(r"<(?!br)", found)
    assert "](javascript" not in text
    assert "\x00" not in text


# --- JUnit ---


def test_a_row_below_the_threshold_fails_and_one_that_was_not_checked_is_an_error() -> None:
    found = kinds(to_junit(small(), fail_under={"faithfulness": 0.8, "context_relevance": 0.2}))
    assert found == {
        ("faithfulness", "r-1"): "failure",
        ("faithfulness", "r-2"): "",
        ("faithfulness", "r-10"): "error",
        ("faithfulness", "r-20"): "skipped",
        ("faithfulness", "mean of all rows"): "failure",
        ("context_relevance", "r-1"): "",
        ("context_relevance", "r-2"): "",
        ("context_relevance", "r-10"): "",
        ("context_relevance", "r-20"): "skipped",
        ("context_relevance", "mean of all rows"): "failure",  # two rows could not be read
        ("data set", "line 7"): "error",
        ("data set", "x"): "error",
    }


def test_the_numbers_of_the_suites_are_those_of_their_cases() -> None:
    root = ET.fromstring(to_junit(small(), fail_under={"faithfulness": 0.8}))  # noqa: S314  (ours)
    for suite in root:
        inside = [case for case in suite]  # noqa: C416  (its children)
        assert int(suite.attrib["tests"]) == len(inside)
        for name, kind in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(suite.attrib[name]) == len(suite.findall(f"testcase/{kind}"))
    assert int(root.attrib["tests"]) == sum(len(suite) for suite in root)


def test_without_thresholds_only_what_was_not_checked_is_an_error() -> None:
    found = kinds(to_junit(small(), fail_under={}))
    assert found["faithfulness", "r-1"] == ""
    assert found["faithfulness", "r-10"] == "error"


def test_an_interrupted_run_is_an_error() -> None:
    found = cases(to_junit(run(row("a", scored("m", 1.0)), keys=("m",), complete=False),
                           fail_under={"m": 0.5}))  # fmt: skip
    assert found["m", "a"] is None
    assert found["m", "mean of all rows"] is not None
    assert found["data set", "whole data set"] is not None


@given(st.text(max_size=80), st.text(max_size=80))
def test_any_text_makes_xml_that_can_be_read(name: str, reason: str) -> None:
    made = run(row(name, scored(name, None, reason=reason)), keys=(name,), name=name)
    text = to_junit(made, fail_under={name: 0.5})
    text.encode("utf-8")
    ET.fromstring(text)  # noqa: S314  (ours)


# --- thresholds ---


def test_rows_that_failed_or_could_not_be_read_do_not_pass_a_threshold() -> None:
    rows = [row("a", scored("m", 1.0)), row("b", scored("m", None))]
    made = run(*rows, keys=("m",), bad_rows=(BadRow(line=2, reason="x"),))
    found = check_thresholds(made, {"m": 0.6})[0]
    assert not found.passed
    assert found.text == "m: 2 rows failed or could not be read; at most 0 allowed"
    assert not check_thresholds(made, {"m": 0.6}, max_failed=1)[0].passed
    assert check_thresholds(made, {"m": 0.6}, max_failed=2)[0].passed


def test_all_that_is_wrong_with_a_metric_is_said() -> None:
    made = run(row("a", scored("m", 0.5)), row("b", scored("m", None)), keys=("m",), complete=False)
    assert check_thresholds(made, {"m": 0.6})[0].text == (
        "m: 0.500 is below 0.6; 1 row failed or could not be read; at most 0 allowed; "
        "the run was interrupted: rows are missing"
    )


def test_skipped_rows_do_not_count_but_a_metric_of_nothing_does_not_pass() -> None:
    skipped = row("b", scored("m", None, status="skipped", reason="needs documents"))
    both = run(row("a", scored("m", 1.0)), skipped, keys=("m",))
    assert check_thresholds(both, {"m": 1.0})[0].passed
    assert not check_thresholds(run(skipped, keys=("m",)), {"m": 0.0})[0].passed
    assert not check_thresholds(run(keys=("m",)), {"m": 0.0})[0].passed


def test_a_mean_just_below_does_not_read_as_if_it_was_there() -> None:
    made = run(row("a", scored("m", 0.79999)), keys=("m",))
    assert check_thresholds(made, {"m": 0.8})[0].text == "m: 0.79999 is below 0.8"


def test_runs_over_rows_in_memory_are_told_apart_by_their_time() -> None:
    made = small()
    header = made.header.model_copy(update={"name": "a list", "dataset": "a list"})
    assert "# a list, 2026-03-01 12:00:00 UTC" in to_markdown(
        made.model_copy(update={"header": header})
    )


@pytest.mark.parametrize("threshold", [80.0, -0.5])
def test_thresholds_that_no_score_could_have_are_refused(threshold: float) -> None:
    made = small()
    own = {"class": "langchain_groundedness.evals.claim_metrics.FaithfulnessEvaluator"}
    header = made.header.model_copy(update={"evaluators": {"faithfulness": own}})
    with pytest.raises(ConfigurationError, match="scores are from 0 to 1"):
        check_thresholds(made.model_copy(update={"header": header}), {"faithfulness": threshold})
    assert not check_thresholds(made, {"faithfulness": 80.0})[0].passed  # not ours


@pytest.mark.parametrize("thresholds", [{"speed": 0.5}, {"faithfulness": float("nan")}])
def test_a_threshold_that_means_nothing_is_refused(thresholds: dict[str, float]) -> None:
    with pytest.raises(ConfigurationError, match=r"no metric 'speed'|finite"):
        to_junit(small(), fail_under=thresholds)


# --- files ---


@pytest.mark.parametrize(
    ("name", "beginning"),
    [("a.html", "<!doctype html>"), ("a.md", "# after"), ("a.XML", "<?xml version")],
)
def test_the_name_of_a_file_says_what_is_written(tmp_path: Path, name: str, beginning: str) -> None:
    write_report(small(), tmp_path / name, fail_under={"faithfulness": 0.5})
    assert (tmp_path / name).read_text("utf-8").startswith(beginning)


def test_whoever_reads_a_report_while_it_is_replaced_finds_one_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text("the old one")
    with path.open() as reader:
        write_report(small(), path)
        assert reader.read() == "the old one"
    assert path.read_text("utf-8").startswith("# after")
    assert list(tmp_path.iterdir()) == [path]


def test_a_name_that_says_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"name the file \.html, \.md or \.xml"):
        write_report(small(), tmp_path / "report.pdf")


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"none/a\.html: No such file"):
        write_report(small(), tmp_path / "none" / "a.html")


# --- notebooks ---


class Shape(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


def shown(value: Any) -> Shape:
    return Shape(value._repr_html_())


def test_a_result_in_a_notebook_marks_claims_by_colour_and_by_sign() -> None:
    found = shown(result())
    assert "Revenue was $2.4B in Q31✗, up 12% from last year.2✓" in found.text
    assert "✗ contradicted" in found.text
    assert "! unchecked" in found.text
    assert "the judge gave no verdict" in found.text
    assert "Q3 report: Revenue was $2.1B in Q3" in found.text
    assert found.tags.count("mark") == 3


def test_a_result_in_a_notebook_keeps_the_colour_of_its_text() -> None:
    styles = [value or "" for name, value in shown(result()).attributes if name == "style"]
    colours = [found for style in styles for found in re.findall(r"(?<![-\w])color:([^;]+)", style)]
    assert set(colours) == {"inherit"}


def test_no_notebook_reads_dollars_as_a_formula() -> None:
    for value in (result(), small()):
        classes = next(value for name, value in shown(value).attributes if name == "class") or ""
        assert {"mathjax_ignore", "tex2jax_ignore"} <= set(classes.split())


def test_a_run_in_a_notebook_shows_its_metrics_and_what_is_missing() -> None:
    found = shown(small())
    assert re.search(r"faithfulness0\.7500\.500 to 1\.0002! 11", found.text)
    assert "! 1 of 4 rows has a failed metric" in found.text


def test_a_run_prints_in_one_line_whatever_it_holds() -> None:
    # A notebook stores this beside the table, with all texts of all rows if they were in it.
    found = large(80, name="nightly")
    for text in (repr(found), str(found)):
        assert "name='nightly'" in text
        assert "rows=80" in text
        assert len(text) < 300


def test_hostile_texts_in_a_notebook_are_texts() -> None:
    made = hostile()
    checked = made.rows[0].scores[0].result
    for value in (made, checked):
        found = shown(value)
        assert not {"script", "img", "style", "iframe", "a"} & set(found.tags)
        assert not [name for name, _ in found.attributes if name.startswith("on")]
    assert HOSTILE.split("\n")[0] in shown(checked).text


def test_the_display_is_loaded_when_a_notebook_asks_for_it() -> None:
    code = """
import sys
from langchain_groundedness.evals import EvaluationRun
parts = [name for name in sys.modules if "_notebook" in name or "_groundedness.report" in name]
assert not parts, parts
"""
    subprocess.run([sys.executable, "-c", code], check=True)
