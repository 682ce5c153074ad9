"""The page of a report, read as text."""

import json
import re
import sys
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from importlib.resources import files
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document
from review.test_review_palette import contrast, palette

from langchain_groundedness import MissingDependencyError
from langchain_groundedness.display.hidden_characters import restore_hidden, show_hidden
from langchain_groundedness.evals import EvaluationRun
from langchain_groundedness.report import to_html
from langchain_groundedness.report.figures import ranked_rows, slices_of
from report.runs import MADE, hostile, large, row, run, scored, small

PACKAGE = files("langchain_groundedness")
CSS = (PACKAGE / "static" / "report.css").read_text("utf-8")
JS = (PACKAGE / "report" / "static" / "report.js").read_text("utf-8")


SHOWN_TEXT = st.characters(exclude_characters="\r[") | st.sampled_from("\0\u202e\u200d👩️🚀")


class Read(HTMLParser):
    """What a browser would make of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.blocks: dict[str, str] = {}
        self._open = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._open = dict(attrs).get("id") or tag if tag in {"script", "style"} else ""

    def handle_endtag(self, tag: str) -> None:
        self._open = ""

    def handle_data(self, data: str) -> None:
        if self._open:
            self.blocks[self._open] = self.blocks.get(self._open, "") + data


def table(of: EvaluationRun, **options: Any) -> Any:
    return json.loads(Read(to_html(of, **options)).blocks["data"])


def details(of: EvaluationRun, place: int = 0, **options: Any) -> Any:
    return json.loads(Read(to_html(of, **options)).blocks["details"].split("\n")[place])


def documents(of: EvaluationRun) -> list[Any]:
    lines = Read(to_html(of)).blocks["documents"].split("\n")
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("made", [small, hostile])
def test_the_policy_lets_only_the_script_and_the_style_of_the_page_in(made: Any) -> None:
    read = Read(to_html(made()))
    policy = next(a["content"] for t, a in read.tags if t == "meta" and "http-equiv" in a)
    assert policy is not None
    for kind in ("script", "style"):
        digest = b64encode(sha256(read.blocks[kind].encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy


@pytest.mark.parametrize("made", [small, hostile])
def test_nothing_is_loaded_and_no_attribute_runs_or_styles(made: Any) -> None:
    read = Read(to_html(made(), baseline=made()))
    for tag, attributes in read.tags:
        assert tag not in {"img", "iframe", "object", "embed", "base", "link"}
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            assert name not in {"src", "style", "srcset", "action", "formaction"}
            if name == "href":
                assert value is not None
                assert value.startswith("#")
    assert [t for t, _ in read.tags].count("script") == 4


def test_hostile_texts_leave_the_shape_of_the_page_as_it_is() -> None:
    def shape(of: EvaluationRun) -> list[str]:
        return [tag for tag, _ in Read(to_html(of)).tags]

    tame = hostile()
    text = tame.header.name
    harmless = EvaluationRun.model_validate(
        json.loads(json.dumps(tame.model_dump(mode="python"), default=str).replace(
            json.dumps(text)[1:-1], "harmless"))
    )  # fmt: skip
    assert shape(tame) == shape(harmless)


@given(st.text())
def test_any_text_comes_out_of_the_blocks_with_hidden_characters_named(text: str) -> None:
    made = run(row("a", scored("m", 0.5), question=text, answer=text, reference=text), keys=("m",))
    html = to_html(made)
    html.encode("utf-8")
    found = json.loads(Read(html).blocks["data"])["rows"][0]
    assert found.get("question", "") == show_hidden(text)
    assert details(made).get("reference", "") == show_hidden(text)


def test_a_text_that_looks_like_a_place_of_the_template_stays_as_it_is() -> None:
    made = run(row("{{ rows }}", scored("m", 0.5)), keys=("m",), name="{{ script }} {% raw %}")
    assert "<h1>{{ script }} {% raw %}</h1>" in to_html(made)
    assert table(made)["rows"][0]["id"] == "{{ rows }}"


def test_without_jinja2_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingDependencyError, match=r"langchain-groundedness\[report\]"):
        to_html(small())


def test_half_a_character_does_not_keep_the_page_from_being_written() -> None:
    made = run(row("\ud83d", scored("\ud83d", 0.5), question="\ud83d"), keys=("\ud83d",))
    to_html(made).encode("utf-8")
    assert table(made)["rows"][0]["id"] == "[U+D83D SURROGATE]"


def test_no_hidden_character_is_in_the_page_and_all_that_are_named_are() -> None:
    made = hostile()
    html = to_html(made, baseline=made)
    for char in "\u202e\u2028\0\ud83d":
        assert char not in html
        assert f"\\u{ord(char):04x}" not in html
    assert "\ufffd" not in html
    for text in (table(made)["rows"][0]["question"], documents(made)[0]["text"]):
        for name in ("202E RIGHT-TO-LEFT OVERRIDE", "2028 LINE SEPARATOR", "0000 NULL"):
            assert f"[U+{name}]" in text
    assert "[U+202E RIGHT-TO-LEFT OVERRIDE]" in html[: html.index('id="data"')]
    assert not re.search(r"\\u(?!003[ce]|0026)", html)


@given(st.text(SHOWN_TEXT, min_size=1), st.data())
def test_spans_are_counted_as_javascript_counts(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    assert shown_at(text, start, end) == text[start:end]


def test_a_hidden_character_beyond_the_first_plane_counts_as_its_name() -> None:
    assert shown_at("\U000e00000", 0, 1) == "\U000e0000"


def shown_at(text: str, start: int, end: int) -> str:
    """What the page marks for a claim at this place of an answer."""
    checked = small().rows[0].scores[0].result
    assert checked is not None
    claim = checked.claims[0].claim.model_copy(update={"start": start, "end": end})
    verdict = checked.claims[0].model_copy(update={"claim": claim, "citations": ()})
    result = checked.model_copy(
        update={"original_answer": text, "claims": (verdict,), "documents": ()}
    )
    made = run(row("a", scored("m", 0.5, result=result), answer=text), keys=("m",))
    first, last = details(made)["results"][0]["claims"][0]["span"]
    units = show_hidden(text).encode("utf-16-le")[2 * first : 2 * last]
    return restore_hidden(units.decode("utf-16-le"))


def test_a_document_that_many_rows_have_is_in_the_page_once() -> None:
    document = Document("Rome is big.", metadata={"source": "rome.md"})
    rows = [row(str(n), scored("m", 1.0), documents=(document,)) for n in range(20)]
    assert [found["text"] for found in documents(run(*rows, keys=("m",)))] == ["Rome is big."]


def test_a_failed_score_is_no_number_in_the_table() -> None:
    rows = table(small())["rows"]
    assert rows[0]["scores"] == [0.5, 1.0]
    assert rows[2]["scores"] == ["failed", 0.5]
    assert rows[3]["scores"] == ["skipped", "skipped"]


def test_what_failed_and_what_could_not_be_read_is_said_before_the_metrics() -> None:
    html = to_html(small())
    head = html[: html.index('id="metrics"')]
    assert "2 rows could not be read and are left out." in head
    assert "1 of 4 rows has a failed metric; the means exclude them." in head
    assert "interrupted" not in head
    assert "the judge timed out" in html
    assert "line 7</b>: no JSON" in html


def test_a_run_that_was_interrupted_says_so() -> None:
    assert "The run was interrupted" in to_html(run(complete=False))


def test_a_run_without_rows_has_a_page() -> None:
    html = to_html(run())
    assert "No row was evaluated." in html
    assert table(run())["rows"] == []


def only(key: str, *scores: float, **fields: Any) -> EvaluationRun:
    rows = (row(str(n), scored(key, score), **fields) for n, score in enumerate(scores))
    return run(*rows, keys=(key,))


def test_a_metric_with_equal_scores_says_that_there_is_no_difference() -> None:
    equal = only("m", *[1.0] * 6)
    page = to_html(equal, baseline=equal)
    assert "No difference: all scores are 1.000." in page
    assert "No difference: no score has changed in 6 rows." in page
    assert 'class="plot"' not in page
    assert 'id="first"' not in page


def test_few_scores_are_a_table_and_more_a_chart() -> None:
    few, more = to_html(only("m", 0.0, 0.5, 0.5, 1.0)), to_html(only("m", 0.0, 0.5, 0.5, 1.0, 1.0))
    assert ('<td>0.500</td><td class="amount">2</td>' in few, 'class="plot"' in few) == (
        True,
        False,
    )
    assert 'class="plot"' in more


def test_slices_show_their_change() -> None:
    topics = ("law", "law", "art", "art")
    before, after = (
        run(
            *(
                row(str(n), scored("m", score), metadata={"topic": topics[n]})
                for n, score in enumerate(scores)
            )
        )
        for scores in ((0.5, 0.5, 0.5, 0.5), (1.0, 0.5, 0.5, 0.0))
    )
    [found] = slices_of(after, before).values()
    changes = {group.name: group.changes["m"].mean for group in found}
    assert changes == {"art": -0.25, "law": 0.25}
    [same] = slices_of(after, after).values()
    unchanged = {(each.low, each.high) for group in same for each in group.changes.values()}
    assert unchanged == {(0.0, 0.0)}
    [alone] = slices_of(after).values()
    assert all(not group.changes for group in alone)


def test_the_worst_rows_come_first_and_beside_a_baseline_the_most_changed() -> None:
    now, before = only("m", 0.9, 0.2, 0.6, 0.9), only("m", 0.9, 0.3, 0.0, 1.0)
    assert [each.place for each in ranked_rows(now)] == [2, 3]
    ranked = ranked_rows(now, before)
    assert [each.place for each in ranked] == [3, 2, 4]
    assert ranked[0].changes == {"m": 0.6}
    contradicted = small()
    assert ranked_rows(contradicted)[0].row.row.id == "r-1"


def test_a_metric_beyond_one_is_drawn_on_its_own_scale() -> None:
    made = run(row("a", scored("bleu", 34.5)), row("b", scored("bleu", 20.0)), keys=("bleu",))
    assert table(made)["metrics"] == [{"key": "bleu", "bounds": [0.0, 34.5]}]
    assert ">27.2<" in to_html(made) or ">27.3<" in to_html(made)


def test_columns_with_a_few_values_become_slices_and_others_do_not() -> None:
    rows = [
        row(f"r{n}", scored("m", n % 2), metadata={"topic": "ab"[n % 2], "n": n, "one": 1})
        for n in range(10)
    ]
    found = table(run(*rows, keys=("m",)))
    assert found["slices"] == [{"column": "topic", "values": ["a", "b"]}]
    assert found["rows"][1]["groups"] == ["b"]


def test_long_values_of_a_column_are_shortened_and_still_make_slices() -> None:
    values = [f"{'x' * 200}{place}" for place in (0, 0, 1, 1)]
    made = [
        row(str(n), scored("m", n / 4), metadata={"topic": value}) for n, value in enumerate(values)
    ]
    found = table(run(*made, keys=("m",)))
    [column] = found["slices"]
    assert [len(name) <= 80 for name in column["values"]] == [True, True]
    assert {row["groups"][0] for row in found["rows"]} == set(column["values"])


def test_labels_bring_the_plot_of_reliability_and_the_agreement() -> None:
    html = to_html(large(60))
    assert 'aria-label="Reliability on 60 answers' in html
    assert "balanced accuracy" in html
    assert "balanced accuracy" not in to_html(small())  # only wrong answers are labelled


def test_a_comparison_holds_what_each_row_was_before() -> None:
    before = run(
        row("a", scored("m", 0.25), question="x"),
        row("b", scored("m", 1.0), question="other"),
        row("d", scored("m", 1.0)),
        name="before",
        keys=("m",),
    )
    now = run(
        row("a", scored("m", 0.75), question="x"),
        row("b", scored("m", 0.5), question="y"),
        row("c", scored("m", 0.5)),
        keys=("m",),
    )
    rows = table(now, baseline=before)["rows"]
    assert [found.get("before") for found in rows] == [[0.25], None, None]
    html = to_html(now, baseline=before)
    said = "1 row in both, 1 only in this run, 1 only in the other, 1 with another question."
    assert f'Compared with <b dir="auto">before</b>: {said}' in html
    assert "▲ +0.500" in html


def test_runs_of_a_pipeline_that_was_changed_are_compared_and_its_new_answers_counted() -> None:
    def answered(*answers: str) -> EvaluationRun:
        rows = (
            row(str(n), scored("m", 0.5), question="x", answer=answer)
            for n, answer in enumerate(answers)
        )
        return run(*rows, keys=("m",))

    html = to_html(answered("a", "b", "c"), baseline=answered("a", "b", "z"))
    assert "3 rows in both, 1 of them with another answer or other documents." in html
    same = to_html(answered("a", "b"), baseline=answered("a", "b"))
    assert "2 rows in both." in same


def test_the_moment_is_shown_in_utc() -> None:
    assert f"{MADE:%Y-%m-%d %H:%M} UTC" in to_html(small())


def test_the_same_run_gives_the_same_page() -> None:
    assert to_html(small()) == to_html(small())


def test_colours_of_the_page_are_those_of_the_review_page() -> None:
    assert not re.findall(r"#[0-9a-fA-F]{3,8}\b(?!\w)|rgb|hsl", re.sub(r"(?m)^#[\w-]+", "", CSS))
    assert set(re.findall(r"var\(--([\w-]+)\)", CSS)) <= set(palette("light"))


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_marks_in_plots_can_be_seen(mode: str) -> None:
    colours = palette(mode)
    for ink in ("link", "contradicted", "field"):
        assert contrast(colours[ink], colours["card"]) >= 3


def test_the_script_makes_no_markup_of_texts_and_asks_nobody() -> None:
    assert not re.search(r"https?:|url\(|@import", CSS)
    forbidden = r"https?:|innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|fetch\(|XMLHttp"
    assert not re.search(forbidden, JS)
