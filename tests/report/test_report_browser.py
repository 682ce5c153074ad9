"""The page of a report in a real browser, opened as a file without a network."""

import os
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from chromium import PROBLEMS, VIEWS
from playwright.sync_api import Browser, BrowserContext, Page, expect
from review.records import HOSTILE

from langchain_groundedness import Decision
from langchain_groundedness.audit import AuditRecord
from langchain_groundedness.evals import EvaluationRun
from langchain_groundedness.evals.validation import validate
from langchain_groundedness.monitoring import summarize
from langchain_groundedness.report import statistics_html, to_html, validation_html
from report.runs import hostile, large, small


class Reader:
    """Opens pages, and takes note of whatever they ask for or complain about."""

    def __init__(self, browser: Browser, folder: Path) -> None:
        self._browser = browser
        self._folder = folder
        self.contexts: list[BrowserContext] = []
        self.requests: list[str] = []
        self.problems: list[str] = []
        self.expected = "\0"

    def open(self, html: str, *, place: str = "", **view: Any) -> Page:
        path = self._folder / "report.html"
        path.write_text(html, encoding="utf-8")
        context = self._browser.new_context(**{"viewport": {"width": 1280, "height": 860}, **view})
        self.contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(300_000)
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("console", lambda line: self.problems.append(line.text))
        page.on("dialog", lambda dialog: self.problems.append(dialog.message))
        page.goto(f"{path.as_uri()}{place}")
        return page


@pytest.fixture
def reader(browser: Browser, tmp_path: Path) -> Iterator[Reader]:
    reader = Reader(browser, tmp_path)
    yield reader
    for context in reader.contexts:
        context.close()
    assert [each for each in reader.problems if reader.expected not in each] == []
    assert [url for url in reader.requests if not url.startswith("file:")] == []


@cache
def html(name: str) -> str:
    made: dict[str, EvaluationRun] = {
        "small": small(),
        "hostile": hostile(),
        "middle": large(250),
    }
    if name == "compared":
        return written(made["middle"], large(250, better=-0.2, seed=2, name="before"))
    return written(made[name])


def written(run: EvaluationRun, baseline: EvaluationRun | None = None) -> str:
    """Write a page in another thread: Playwright has an event loop in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(to_html, run, baseline=baseline).result()


def ids(page: Page) -> list[str]:
    return page.locator("#table td.id").all_inner_texts()


def focused(page: Page) -> Any:
    return page.evaluate(
        "() => { const e = document.activeElement; return e.id || e.textContent.trim(); }"
    )


# --- the table ---


def test_rows_sort_by_a_metric_and_those_without_a_score_stay_last(reader: Reader) -> None:
    page = reader.open(html("small"))
    assert ids(page) == ["r-1", "r-2", "r-10", "r-20"]
    head = page.locator("#table thead th", has_text="faithfulness")
    head.locator("button").click()
    assert ids(page) == ["r-1", "r-2", "r-10", "r-20"]
    expect(head).to_have_attribute("aria-sort", "ascending")
    head.locator("button").click()
    assert ids(page) == ["r-2", "r-1", "r-10", "r-20"]
    expect(page.locator("#live")).to_have_text("Sorted by faithfulness, descending")
    head.locator("button").click()
    assert ids(page) == ["r-1", "r-2", "r-10", "r-20"]
    expect(head).not_to_have_attribute("aria-sort", "ascending")


def test_ids_sort_as_people_count(reader: Reader) -> None:
    page = reader.open(html("small"))
    page.click("#table thead button >> nth=0")
    page.click("#table thead button >> nth=0")
    assert ids(page) == ["r-20", "r-10", "r-2", "r-1"]


def test_rows_are_filtered_by_text_status_metric_verdict_and_slice(reader: Reader) -> None:
    page = reader.open(html("small"))
    count = page.locator("#count")
    page.fill("#f-text", "NOBODY")
    expect(count).to_have_text("1 of 4 rows")
    assert ids(page) == ["r-2"]
    page.click("#filters button[type=reset]")
    expect(count).to_have_text("4 rows")
    page.select_option("#f-status", "failed")
    expect(count).to_have_text("1 of 4 rows")
    assert ids(page) == ["r-10"]
    page.select_option("#f-metric", label="context_relevance")
    expect(count).to_have_text("0 of 4 rows")
    expect(page.locator("#none")).to_be_visible()
    page.select_option("#f-status", "scored")
    page.fill("#f-most", "0.5")
    expect(count).to_have_text("2 of 4 rows")
    assert ids(page) == ["r-2", "r-10"]
    page.click("#filters button[type=reset]")
    page.select_option("#f-verdict", label="has contradictions")
    expect(count).to_have_text("1 of 4 rows")
    page.click("#filters button[type=reset]")
    page.select_option("#f-group", label="people")
    expect(count).to_have_text("2 of 4 rows")
    assert ids(page) == ["r-2", "r-10"]


def test_a_slice_and_a_warning_lead_to_their_rows(reader: Reader) -> None:
    page = reader.open(html("small"))
    page.click("#slices button:text-is('money')")
    expect(page.locator("#count")).to_have_text("2 of 4 rows")
    assert focused(page) == "f-group"
    page.click(".problem button")
    expect(page.locator("#count")).to_have_text("1 of 4 rows")
    assert ids(page) == ["r-10"]


def test_filters_and_order_live_in_the_address(reader: Reader) -> None:
    page = reader.open(html("small"))
    page.select_option("#f-group", label="people")
    page.select_option("#f-metric", label="context_relevance")
    page.fill("#f-most", "0.5")
    for _ in range(2):
        page.click("#table thead button >> nth=0")
    expect(page.locator("#count")).to_have_text("2 of 4 rows")
    address = page.url
    assert "#rows?metric=context_relevance&most=0.5&group=topic%3Dpeople&sort=id" in address
    page.reload()
    assert ids(page) == ["r-10", "r-2"]
    page.click("#table tbody a >> nth=0")
    expect(page.locator("#row h1")).to_have_text("Where is it?")
    page.reload()
    page.keyboard.press("n")
    expect(page.locator("#row h1")).to_have_text("Who leads it?")
    page.click("#row .trail a >> nth=0")
    assert ids(page) == ["r-10", "r-2"]
    assert page.url == address
    page.click("#filters button[type=reset]")
    expect(page.locator("#count")).to_have_text("4 rows")
    assert "most" not in page.url
    other = reader.open(html("small"), place="#rows?verdict=no%20such&group=x&sort=nothing&text=q3")
    assert ids(other) == ["r-1"]


def test_the_first_lines_count_verdicts_and_lead_to_their_rows(reader: Reader) -> None:
    page = reader.open(html("small"))
    claims, answers = page.locator(".verdicts").all_inner_texts()
    assert " ".join(claims.split()) == "4 claims 2 supported 1 contradicted 1 unchecked"
    assert " ".join(answers.split()) == "1 answer 1 has contradictions"
    page.click(".verdicts a")
    expect(page.locator("#count")).to_have_text("1 of 4 rows")
    assert ids(page) == ["r-1"]


def test_the_rows_to_read_first_lead_to_the_row(reader: Reader) -> None:
    page = reader.open(html("small"))
    first = page.locator("#first tbody a")
    assert first.all_inner_texts() == ["What was Q3 revenue?", "Where is it?"]
    first.nth(1).click()
    expect(page.locator("#row h1")).to_have_text("Where is it?")
    page.go_back()
    expect(page.locator("#overview")).to_be_visible()


def test_more_rows_come_when_they_are_asked_for(reader: Reader) -> None:
    page = reader.open(html("middle"))
    rows = page.locator("#table tbody tr")
    expect(rows).to_have_count(100)
    page.click("#more button")
    expect(rows).to_have_count(200)
    assert focused(page) == "How many towers has Rome in year 100?"
    page.click("#more button")
    expect(rows).to_have_count(250)
    expect(page.locator("#more")).to_be_hidden()


def test_ten_times_the_rows_take_about_ten_times_as_long_to_open(
    browser: Browser, tmp_path: Path
) -> None:
    for rows in (1_000, 10_000):
        (tmp_path / f"{rows}.html").write_text(written(large(rows)), encoding="utf-8")
    assert any(
        seconds_to_open(browser, tmp_path, 10_000) < 20 * seconds_to_open(browser, tmp_path, 1_000)
        for _ in range(4)
    )


def seconds_to_open(browser: Browser, folder: Path, rows: int) -> float:
    context = browser.new_context()
    page = context.new_page()
    begun = time.monotonic()
    page.goto((folder / f"{rows}.html").as_uri())
    expect(page.locator("#count")).to_have_text(f"{rows:,} rows")
    took = time.monotonic() - begun
    page.fill("#f-text", "year 777?")
    expect(page.locator("#count")).to_have_text(f"1 of {rows:,} rows")
    page.click("#table tbody a")
    expect(page.locator("#row .answer")).to_contain_text("Rome has 777 towers.")
    context.close()
    return took


# --- one row ---


def test_a_claim_leads_to_its_quote_in_the_document(reader: Reader) -> None:
    page = reader.open(html("small"))
    page.click("#table tbody a >> nth=0")
    expect(page.locator("#row h1")).to_have_text("What was Q3 revenue?")
    page.click(".answer .claim >> nth=0")
    shown = page.locator("mark.now")
    assert "".join(shown.all_inner_texts()) == "Revenue was $2.1B in Q3, up 12% from last year."
    expect(shown.first).to_be_in_viewport()
    assert page.locator(".answer .claim.now").all_inner_texts() == ["Revenue was $2.4B in Q3"]
    page.click("#claim-1 [data-cite] >> nth=1")
    assert shown.all_inner_texts() == ["Analysts had expected revenue of $2.0B."]
    assert (
        page.locator(".answer .claim >> nth=0").get_attribute("class") == "claim v-contradicted now"
    )
    assert "1✗" in page.locator(".answer").inner_text()


def test_a_row_is_read_by_keyboard_alone(reader: Reader) -> None:
    page = reader.open(html("small"))
    press = page.keyboard.press
    press("/")
    assert focused(page) == "f-text"
    page.keyboard.type("q3 jkn?")
    press("Control+A")
    page.keyboard.type("q3")
    expect(page.locator("#count")).to_have_text("1 of 4 rows")
    press("Escape")
    press("j")
    assert focused(page) == "What was Q3 revenue?"
    press("Enter")
    expect(page.locator("#row h1")).to_be_focused()
    press("j")
    assert focused(page) == "claim-0"
    expect(page.locator("#live")).to_have_text("Claim 1 of 4: contradicted")
    press("Enter")
    expect(page.locator("#live")).to_contain_text("Shown in document 1 Q3 report")
    expect(page.locator("mark.now").first).to_be_focused()
    press("Escape")
    assert focused(page) == "claim-0"
    press("j")
    press("c")
    press("c")
    assert page.locator("mark.now").all_inner_texts() == ["Analysts had expected revenue of $2.0B."]
    press("Escape")
    press("j")
    press("j")
    press("c")
    expect(page.locator("#live")).to_have_text("This claim has no citation that can be shown.")
    press("Escape")
    expect(page.locator("#overview")).to_be_visible()
    assert focused(page) == "What was Q3 revenue?"
    expect(page.locator("#count")).to_have_text("1 of 4 rows")


def test_enter_on_the_number_of_a_claim_shows_its_quote(reader: Reader) -> None:
    page = reader.open(html("small"), place="#row-1")
    page.focus(".answer .ref >> nth=2")
    page.keyboard.press("Enter")
    assert page.locator("mark.now").all_inner_texts() == ["employs 5,400 people"]
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.dataset.claim") == "2"


def test_rows_follow_each_other_in_the_order_of_the_table(reader: Reader) -> None:
    page = reader.open(html("small"))
    for _ in range(2):
        page.click("#table thead button >> nth=0")
    page.click("#table tbody a >> nth=0")
    expect(page.locator("#row h1")).to_have_text("When was it?")
    page.keyboard.press("n")
    expect(page.locator("#row h1")).to_have_text("Where is it?")
    expect(page.locator("#row")).to_contain_text("the judge timed out")
    page.keyboard.press("p")
    expect(page.locator("#row h1")).to_have_text("When was it?")
    page.go_back()
    expect(page.locator("#row h1")).to_have_text("Where is it?")


def test_the_address_of_a_row_opens_it_and_a_wrong_one_does_not_matter(reader: Reader) -> None:
    page = reader.open(html("small"), place="#row-2")
    expect(page.locator("#row h1")).to_have_text("Who leads it?")
    assert page.title() == "Who leads it? · after · Groundedness report"
    page.evaluate("location.hash = '#row-99'")
    expect(page.locator("#overview")).to_be_visible()
    assert page.title() == "after · Groundedness report"


def test_single_keys_can_be_switched_off(reader: Reader) -> None:
    page = reader.open(html("small"))
    page.keyboard.press("?")
    page.uncheck("#keys")
    page.reload()
    page.keyboard.press("j")
    assert focused(page) != "What was Q3 revenue?"


def test_a_comparison_shows_what_changed_and_what_it_was(reader: Reader) -> None:
    page = reader.open(html("compared"))
    expect(page.locator(".versus")).to_contain_text("250 rows in both")
    page.select_option("#f-metric", label="answer_quality")
    page.select_option("#f-change", "lower")
    expect(page.locator("#count")).to_contain_text("of 250 rows")
    for text in page.locator("#table td[data-metric=answer_quality] .delta").all_inner_texts():
        assert text.startswith("▼ −")  # noqa: RUF001  (a minus)
    page.click("#table thead button[aria-label='Change of answer_quality']")
    deltas = page.locator("#table td[data-metric=answer_quality] .delta").all_inner_texts()
    changes = [float(text[3:]) for text in deltas]
    assert changes == sorted(changes, reverse=True)
    page.click("#table tbody a >> nth=0")
    expect(page.locator("#row section", has_text="In the other run")).to_be_visible()


# --- texts from outside ---


def test_hostile_texts_are_shown_and_do_nothing(reader: Reader) -> None:
    page = reader.open(html("hostile"))
    text = HOSTILE
    name = "[U+202E RIGHT-TO-LEFT OVERRIDE]"
    expect(page.locator("#table tbody a").first).to_contain_text(text)
    for place in ("", "#row-1", "#row-2"):
        page.evaluate("place => { location.hash = place; }", place)
        page.wait_for_timeout(50)
        for summary in page.locator("summary").all():
            if summary.is_visible():
                summary.click()
        assert "pwned" not in page.title().replace("document.title='pwned'", "")
        assert page.evaluate("[...document.images].length") == 0
        assert page.evaluate("document.querySelectorAll('body script').length") == 4
        assert (
            page.evaluate("document.querySelectorAll('#row script, #overview script').length") == 0
        )
    expect(page.locator(".answer .claim")).to_contain_text(text)
    expect(page.locator(".answer .claim")).to_contain_text("\U0001f600")
    page.click(".answer .claim")
    expect(page.locator("mark.now")).to_contain_text(text)
    expect(page.locator("mark.now")).to_contain_text(f"{name} [U+0000 NULL] [U+D83D SURROGATE]")
    assert "\u202e" not in (page.locator("body").text_content() or "")
    page.evaluate("location.hash = '#rows'")
    page.fill("#f-text", "right-to-left over")
    expect(page.locator("#count")).to_have_text("4 rows")


def test_the_policy_stops_what_is_not_of_the_page(reader: Reader) -> None:
    reader.expected = "violates the following Content Security Policy directive"
    page = reader.open(html("small"))
    refused = page.evaluate(
        """async () => { const seen = [];
        document.addEventListener('securitypolicyviolation', e => seen.push(e.violatedDirective));
        const image = document.createElement('img'); image.src = 'https://example.org/x.png';
        const script = document.createElement('script'); script.textContent = 'window.ran = 1';
        document.body.append(image, script);
        await new Promise(done => setTimeout(done, 300));
        return [window.ran, ...seen.sort()]; }"""
    )
    assert refused == [None, "img-src", "script-src-elem"]
    assert reader.requests.pop() == "https://example.org/x.png"  # asked for, and refused


# --- seen ---


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_is_labelled_legible_and_as_wide_as_the_screen(
    reader: Reader, view: str
) -> None:
    for name in ("small", "hostile", "compared"):
        page = reader.open(html(name), **VIEWS[view])
        for place in ("#rows", "#row-1", "#row-3"):
            page.evaluate("place => { location.hash = place; }", place)
            page.wait_for_timeout(50)
            for summary in page.locator("summary").all():
                if summary.is_visible():
                    summary.click()
            assert page.evaluate(PROBLEMS) == [], (name, place)
            if os.environ.get("REPORT_SCREENSHOTS"):
                folder = Path(os.environ["REPORT_SCREENSHOTS"])
                page.screenshot(path=folder / f"{view}-{name}{place}.png", full_page=True)


STOPS = {
    "": (
        *("Skip to the content", "Groundedness report", "Metrics", "Rows", "Show them"),
        *("What was Q3 revenue?", "Clear", "Who leads it?", "Keyboard shortcuts"),
    ),
    "#row-1": ("1✗", "2✓", "Details", "Keyboard shortcuts"),
}


@pytest.mark.parametrize("place", STOPS)
def test_the_tab_key_goes_from_top_to_bottom_and_every_stop_is_visible(
    reader: Reader, place: str
) -> None:
    page = reader.open(html("small"), place=place)
    seen = []
    for _ in range(60):
        page.keyboard.press("Tab")
        stop = page.evaluate(
            """() => { const e = document.activeElement, s = getComputedStyle(e);
            if (e === document.body || e.dataset.stop) return null;
            e.dataset.stop = '1';
            const box = e.getBoundingClientRect();
            return [e.textContent.trim().slice(0, 30), s.outlineStyle, box.width > 0]; }"""
        )
        if stop is None:
            break
        assert stop[1] != "none", stop
        assert stop[2], stop
        seen.append(stop[0])
    wanted = dict.fromkeys(name for name in seen if name in STOPS[place])
    assert tuple(wanted) == STOPS[place]


def test_on_a_phone_a_claim_leads_to_its_quote_and_back(reader: Reader) -> None:
    page = reader.open(html("middle"), place="#row-1", **VIEWS["phone"])
    page.tap(".answer .claim >> nth=0")
    expect(page.locator("mark.now")).to_be_in_viewport()
    page.tap(".to-claim")
    expect(page.locator(".answer .ref >> nth=0")).to_be_in_viewport()
    expect(page.locator(".to-claim")).to_have_count(0)


def test_all_rows_and_no_controls_are_printed(reader: Reader) -> None:
    page = reader.open(html("middle"))
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    expect(page.locator("#table tbody tr")).to_have_count(250)
    expect(page.locator("#filters")).to_be_hidden()
    expect(page.locator(".metric").first).to_be_visible()


def test_without_javascript_all_but_the_rows_can_be_read(reader: Reader) -> None:
    page = reader.open(html("small"), java_script_enabled=False)
    expect(page.locator(".metric").first).to_be_visible()
    expect(page.get_by_text("The table of rows needs JavaScript")).to_be_visible()


def test_on_a_phone_slices_are_cards(reader: Reader) -> None:
    page = reader.open(html("compared"), viewport={"width": 400, "height": 800})
    for table in page.locator("#slices .scroller").all():
        assert table.evaluate("e => e.scrollWidth <= e.clientWidth")
    card = page.locator("#slices tbody tr").first
    told = card.inner_text()
    for name in ("rows: ", "faithfulness: ", "answer_quality: "):
        assert name in told or name.strip() in card.evaluate(
            "e => [...e.children].map(c => getComputedStyle(c, '::before').content).join(' ')"
        )
    assert re.search("[▲▼] [+-]0", told)


def other_pages() -> dict[str, str]:
    """Pages of the commands `stats` and `validate`."""
    days = [datetime(2026, 3, day, tzinfo=UTC) for day in range(1, 8)]
    decided = (Decision(action="pass"), Decision(action="block"))
    records = [
        AuditRecord(verdict="grounded", decision=decided[n % 2], time=day, query_class=HOSTILE)
        for n, day in enumerate(days)
    ]
    rows = [
        {"id": str(n), "answer": f"Rome has {n} towers.", "contexts": ["Rome has 3 towers."]}
        for n in range(6)
    ]
    with TemporaryDirectory() as folder:
        passed, rejected = (f"{folder}/{name}.jsonl" for name in ("passed", "rejected"))
        summary = validate(rows, passed=passed, rejected=rejected)
    return {"stats": statistics_html(summarize(records)), "validation": validation_html(summary)}


@pytest.mark.parametrize("view", VIEWS)
def test_pages_of_other_commands_are_as_legible(reader: Reader, view: str) -> None:
    with ThreadPoolExecutor(1) as pool:
        pages = pool.submit(other_pages).result()
    for name, text in pages.items():
        page = reader.open(text, **VIEWS[view])
        for summary in page.locator("summary").all():
            summary.click()
        assert page.evaluate(PROBLEMS) == [], name
        expect(page.locator(".plot").first).to_be_visible()
        if os.environ.get("REPORT_SCREENSHOTS"):
            folder = Path(os.environ["REPORT_SCREENSHOTS"])
            page.screenshot(path=folder / f"{view}-{name}.png", full_page=True)


def test_on_a_phone_the_agreement_with_labels_is_read_without_scrolling_sideways(
    reader: Reader,
) -> None:
    page = reader.open(html("middle"), **VIEWS["phone"])
    table = page.get_by_role("region", name="Agreement with labels")
    expect(table).to_contain_text("faithfulness")
    assert table.evaluate("e => e.scrollWidth <= e.clientWidth")
