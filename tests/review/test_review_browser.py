"""The review page in a real browser, served by the command."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from chromium import PROBLEMS, VIEWS
from playwright.sync_api import Browser, BrowserContext, Page, expect

from langchain_groundedness import SQLAuditLog
from langchain_groundedness.audit import AuditRecord, Review
from review.records import HOSTILE, record
from review.test_review_pages import hostile


class Kept:
    """The audit log, used in a thread: Playwright has an event loop in this one."""

    def __init__(self, url: str) -> None:
        self.url = url

    def _aside(self, use: Callable[[SQLAuditLog], Any]) -> Any:
        def opened() -> Any:
            with SQLAuditLog(self.url, on_store_down="raise") as log:
                return use(log)

        with ThreadPoolExecutor(1) as pool:
            return pool.submit(opened).result()

    def add(self, *records: AuditRecord) -> None:
        def keep(log: SQLAuditLog) -> None:
            for each in records:
                log.record(each)

        self._aside(keep)

    def review(self, record_id: str) -> Review:
        review: Review = self._aside(lambda log: log.get(record_id)).review
        return review

    def decide(self, record_id: str, **fields: Any) -> None:
        self._aside(lambda log: log.decide(record_id, revision=0, **fields))


@pytest.fixture
def log(tmp_path: Path) -> Kept:
    log = Kept(f"sqlite:///{tmp_path / 'audit.db'}")
    log.add(record(1), record(2, question="And profit?"), hostile())
    return log


@pytest.fixture
def entrance(log: Kept) -> Iterator[str]:
    """The address that the command prints."""
    command = [sys.executable, "-m", "langchain_groundedness", "review", "--port", "0"]
    with subprocess.Popen(
        [*command, "--db", log.url],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdout is not None
        line = server.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+/login\?token=([\w-]{43})$", line.strip())
        assert found, line
        yield found[0]
        server.terminate()
        out, err = server.communicate(timeout=300)
        assert found[1] not in out + err  # printed once


def page_of(context: BrowserContext, entrance: str, *, name: str = "Ada") -> Page:
    page = context.new_page()
    page.set_default_timeout(300_000)
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda line: problems.append(line.text))
    page.on("dialog", lambda dialog: dialog.accept())
    page.goto(entrance)
    page.wait_for_url("**/name")
    page.fill("#name", name)
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/$"))
    assert problems == []
    return page


@pytest.fixture
def page(browser: Browser, entrance: str) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 860})
    yield page_of(context, entrance)
    context.close()


def focused(page: Page) -> Any:
    return page.evaluate(
        """() => { const e = document.activeElement;
        return e.id || e.getAttribute('name') || e.textContent.trim(); }"""
    )


def test_a_record_is_reviewed_by_keyboard_alone(page: Page, log: Kept) -> None:
    press = page.keyboard.press
    press("j")
    assert focused(page).startswith("<script>")
    press("j")
    assert focused(page) == "What was Q3 revenue?"
    press("Enter")
    page.wait_for_url("**/records/record-1**")  # loaded: the page's script listens for keys
    press("j")
    assert focused(page) == "claim-1"
    expect(page.locator("#live")).to_have_text("Claim 1 of 4: contradicted")
    assert page.locator(".answer .claim.now").all_inner_texts() == ["Revenue was $2.4B in Q3"]
    press("c")
    shown = page.locator("mark.now")
    assert "".join(shown.all_inner_texts()) == "Revenue was $2.1B in Q3, up 12% from last year."
    expect(page.locator("#live")).to_contain_text("Q3 report")
    expect(shown.first).to_be_in_viewport()
    press("Escape")
    assert "Revenue was $2.1B in Q3" in focused(page)
    press("j")
    press("c")
    press("c")
    assert shown.all_inner_texts() == ["Analysts had expected revenue of $2.0B."]
    press("k")
    assert focused(page) == "claim-1"
    press("m")
    page.keyboard.type("j k n a r: only text here")
    press("Escape")
    press("e")
    assert focused(page) == "edited"
    press("Control+A")
    page.keyboard.type("Revenue was $2.1B.")
    press("Control+Enter")
    page.wait_for_url("**/records/record-2**")
    expect(page.locator("#live")).to_contain_text("You edited the previous answer")
    review = log.review("record-1")
    assert (review.answer, review.reviewer) == ("Revenue was $2.1B.", "Ada")
    assert review.note == "j k n a r: only text here"
    press("a")
    assert focused(page) == "action"
    review = log.review("record-2")
    assert review.status == "waiting"  # the key leads there; it decides nothing
    press("Enter")
    page.wait_for_url("**/records/record-0**")
    press("q")
    page.wait_for_url(re.compile(r"/\?status=waiting$"))


def test_claims_are_marked_and_a_decision_is_undone_by_keyboard(page: Page, log: Kept) -> None:
    press = page.keyboard.press
    home = page.url
    page.goto(home + "records/record-1")
    for key in ("j", "w", "j", "r", "j", "r", "r"):
        press(key)
    expect(page.locator("#marked")).to_have_text("2")
    expect(page.locator("#live")).to_have_text("Claim 3 marked neither right nor wrong")
    page.focus("#claim-4 [value=right]")
    press("w")
    press("w")
    assert page.locator("#claim-4 :checked").count() == 0
    press("x")
    press("Enter")
    expect(page.locator("#note")).to_be_focused()
    expect(page.locator("#problem-here")).to_have_text("Say in the note why you reject the answer.")
    page.keyboard.type("The amount is wrong.")
    press("Escape")
    press("x")
    press("Enter")
    page.wait_for_url("**/records/record-2**")  # the next item comes by itself
    review = log.review("record-1")
    assert (review.action, review.note) == ("reject", "The amount is wrong.")
    assert review.marks == {"a": False, "b": True}
    press("u")
    assert focused(page) == "Undo"
    press("Enter")
    page.wait_for_url("**/records/record-1**")
    assert log.review("record-1") == Review(status="waiting")
    expect(page.locator("#note")).to_have_value("The amount is wrong.")
    expect(page.locator("#marked")).to_have_text("2")
    expect(page.locator("#undo")).to_have_count(0)


def test_undo_is_offered_as_long_as_it_works(page: Page) -> None:
    page.goto(page.url + "records/record-1")
    page.clock.install()
    page.click("button.approve")
    page.wait_for_url("**/records/record-2**")
    expect(page.locator("#undo")).to_be_visible()
    page.clock.fast_forward(10_000)  # a tab in the background ticks once in that time
    expect(page.locator("#undo")).to_have_count(0)


@pytest.mark.parametrize("view", ["desktop", "phone"])
def test_approve_and_reject_stay_in_sight(browser: Browser, entrance: str, view: str) -> None:
    context = browser.new_context(**VIEWS[view])
    page = page_of(context, entrance)
    page.goto(page.url + "records/record-1")
    for place in ("h1", "#claim-2", "#decide", ".document >> nth=1"):
        page.locator(place).scroll_into_view_if_needed()
        for button in page.locator(".bar button").all():
            expect(button).to_be_in_viewport(ratio=1)
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.focus("#claim-4 input >> nth=1")
    expect(page.locator("#claim-4 input >> nth=1")).to_be_in_viewport(ratio=1)
    covered = page.evaluate(
        """() => document.activeElement.getBoundingClientRect().bottom
        > document.querySelector('.bar').getBoundingClientRect().top"""
    )
    assert not covered
    context.close()


def test_shortcuts_can_be_switched_off(page: Page) -> None:
    page.keyboard.press("?")
    page.uncheck("#keys")
    page.reload()
    page.keyboard.press("j")
    assert focused(page) != "What was Q3 revenue?"
    page.click("#shortcuts summary")
    expect(page.locator("#keys")).not_to_be_checked()


def test_the_tab_key_goes_from_top_to_bottom_and_every_stop_is_visible(page: Page) -> None:
    page.goto(page.url + "records/record-1")
    stops = page.evaluate("document.querySelectorAll('main [tabindex=\"-1\"]').length")
    assert stops
    seen: list[str] = []
    for _ in range(60):
        page.keyboard.press("Tab")
        stop = page.evaluate(
            """() => { const e = document.activeElement, s = getComputedStyle(e);
            if (e === document.body) return null;
            const marker = 'data-stop', known = e.getAttribute(marker);
            if (known) return null;
            e.setAttribute(marker, '1');
            const box = e.getBoundingClientRect();
            return [e.textContent.trim().slice(0, 30), s.outlineStyle, box.width > 0]; }"""
        )
        if stop is None:
            break
        assert stop[1] != "none", stop
        assert stop[2], stop
        seen.append(stop[0])
    order = [
        "Skip to the content",
        "Groundedness review",
        "Queue",
        "Next item",
        "Approve",
        "Reject",
    ]
    assert [name for name in seen if name in order] == order


def test_a_citation_is_shown_in_its_document_on_click(page: Page) -> None:
    page.goto(page.url + "records/record-1")
    page.click("#claim-2 a[data-cite] >> nth=1")
    assert page.locator("mark.now").all_inner_texts() == ["Analysts had expected revenue of $2.0B."]
    page.click(".answer .claim >> nth=2")
    assert focused(page) == "claim-3"


def test_hostile_text_does_nothing(page: Page) -> None:
    home = page.url
    for path in ("", "?status=any", "records/record-0", "records/record-0?whole=1"):
        page.goto(home + path)
        assert page.title() != "pwned"
        assert page.evaluate("[...document.images].length") == 0
        assert page.evaluate("document.querySelectorAll('script:not([src])').length") == 0
    expect(page.locator(".answer .claim")).to_have_text(HOSTILE)
    page.keyboard.press("e")
    assert page.input_value("#edited") == f"{HOSTILE}!"


def test_hidden_characters_are_read_by_name_and_kept_by_an_edit(page: Page, log: Kept) -> None:
    names = "a[U+202E RIGHT-TO-LEFT OVERRIDE]b[U+0000 NULL]\nc[U+E0041 TAG LATIN CAPITAL LETTER A]"
    for number, text in ((7, "a\u202eb\0\r\nc\U000e0041"), (8, "\u202ea\u200bb")):
        answer = {"answer": text, "original_answer": text, "claims": ()}
        log.add(record(number, of=answer, source="middleware", suggested_answer=f"{text} new"))
    home = page.url
    page.goto(home + "records/record-7")
    expect(page.locator("#answer")).to_have_text(names, use_inner_text=True)
    expect(page.locator("#hidden-characters")).to_be_hidden()
    page.keyboard.press("e")
    expect(page.locator("#hidden-characters")).to_be_visible()
    assert page.input_value("#edited") == f"{names} new"
    page.keyboard.press("Control+Enter")
    page.wait_for_url("**/records/record-8**")
    assert log.review("record-7").answer == "a\u202eb\0\r\nc\U000e0041 new"
    page.goto(home + "records/record-8")
    page.keyboard.press("e")
    field = page.input_value("#edited")
    page.fill("#edited", field.replace("[U+202E RIGHT-TO-LEFT OVERRIDE]", "") + "er")
    page.keyboard.press("Control+Enter")
    page.wait_for_url("**/records/record-0**")
    assert log.review("record-8").answer == "a\u200bb newer"


def test_no_script_runs_that_is_not_ours(page: Page) -> None:
    refused = page.evaluate(
        """() => new Promise(done => {
        document.addEventListener('securitypolicyviolation', e => done(e.violatedDirective));
        const s = document.createElement('img'); s.src = 'https://example.org/x.png';
        document.body.append(s); })"""
    )
    assert refused.startswith("img-src")


def test_a_form_on_another_site_changes_nothing(page: Page, log: Kept) -> None:
    target = page.url + "records/record-1"
    other = page.context.new_page()
    form = f"<form method=post action='{target}'><input name=action value=approve>"
    other.set_content(f"{form}<input name=revision value=0><button>x</button></form>")
    with other.expect_navigation():
        other.click("button")
    assert "was not sent from this page" in other.content()
    review = log.review("record-1")
    assert review.status == "waiting"


def test_of_two_reviewers_the_second_keeps_the_text(
    page: Page, browser: Browser, entrance: str
) -> None:
    context = browser.new_context()
    bob = page_of(context, entrance, name="Bob")
    for each in (page, bob):
        each.goto(each.url + "records/record-1")
    page.click("button.approve")
    page.wait_for_url("**/records/record-2**")
    bob.fill("#note", "Bob's note")
    bob.click("button.reject")
    expect(bob.locator("h1")).to_have_text("Another reviewer decided first")
    expect(bob.locator("#your-note")).to_have_value("Bob's note")
    expect(bob.locator("main")).to_contain_text("approved by Ada")
    context.close()


@pytest.mark.parametrize("field", ["edited", "note"])
def test_an_edit_that_is_refused_leads_to_the_field_and_says_why_there(
    browser: Browser, entrance: str, field: str
) -> None:
    context = browser.new_context(**VIEWS["phone"])
    page = page_of(context, entrance)
    page.goto(page.url + "records/record-1")
    page.click("#edit summary")
    if field == "note":
        page.evaluate("document.getElementById('note').removeAttribute('maxlength')")
        page.fill("#note", "x" * 10_001)
    page.fill("#edited", "By hand." if field == "note" else " ")
    page.click("button.edit")
    expect(page.locator("#problem")).to_contain_text("Your decision was not saved.")
    expect(page.locator(f"#{field}")).to_be_focused()
    expect(page.locator("#problem-here")).to_be_in_viewport()
    assert page.evaluate(PROBLEMS) == []
    page.click("#problem a")
    expect(page.locator(f"#{field}")).to_be_in_viewport()
    context.close()


def test_on_a_phone_the_way_out_stands_on_one_line(browser: Browser, entrance: str) -> None:
    for width in (320, 360, 414):
        context = browser.new_context(viewport={"width": width, "height": 740})
        page = page_of(context, entrance, name="Ada Lovelace")
        button = page.get_by_role("button", name="Sign out")
        lines = button.evaluate(
            """e => { const r = document.createRange(); r.selectNodeContents(e);
            return new Set([...r.getClientRects()].map(box => box.top)).size; }"""
        )
        assert lines == 1
        context.close()


def test_a_record_is_reviewed_without_javascript(
    browser: Browser, entrance: str, log: Kept
) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = page_of(context, entrance)
    page.fill("#f-text", "profit")
    page.click(".go button")
    page.click("a[data-record]")
    page.click("#claim-2 a[data-cite] >> nth=1")
    assert page.url.endswith("#d2-0-39")
    expect(page.locator("mark:target")).to_have_text("Analysts had expected revenue of $2.0B.")
    page.click("#edit summary")
    page.fill("#edited", "By hand.")
    page.click("button.edit")
    review = log.review("record-2")
    assert review.answer == "By hand."
    page.click("#undo button")
    assert log.review("record-2").status == "waiting"
    expect(page.locator("#edited")).to_be_visible()
    expect(page.locator("#edited")).to_have_value("By hand.")
    page.check("#claim-1 [value=wrong]")
    page.click("button.edit")
    assert log.review("record-2").marks == {"a": False}
    context.close()


@pytest.mark.parametrize("view", VIEWS)
def test_every_page_is_labelled_legible_and_as_wide_as_the_screen(
    browser: Browser, entrance: str, view: str, log: Kept
) -> None:
    context = browser.new_context(**VIEWS[view])
    page = page_of(context, entrance)
    log.decide("record-2", reviewer="Bob", action="edit", answer="x", note="y")
    home = page.url
    paths = ("login", "name", "", "?status=any&decision=review", "records/record-1")
    for path in (*paths, "records/record-0", "records/record-2", "records/none"):
        page.goto(home + path)
        for summary in page.locator("summary").all():
            if summary.is_visible():
                summary.click()
        assert page.evaluate(PROBLEMS) == [], path
    if os.environ.get("REVIEW_SCREENSHOTS"):
        folder = Path(os.environ["REVIEW_SCREENSHOTS"])
        for name, path in (("queue", ""), ("item", "records/record-1")):
            page.goto(home + path)
            page.screenshot(path=folder / f"{view}-{name}.png", full_page=True)
    context.close()


def test_on_a_phone_buttons_are_large_enough_for_a_thumb(browser: Browser, entrance: str) -> None:
    context = browser.new_context(**VIEWS["phone"])
    page = page_of(context, entrance)
    page.tap("a[data-record] >> nth=1")
    for button in page.locator(".bar button").all():
        box = button.bounding_box()
        assert box
        assert box["height"] >= 44
    page.tap("#claim-1 a[data-cite]")
    expect(page.locator("mark.now").first).to_be_in_viewport()
    context.close()
