"""The live page in a real browser, served by the command."""

import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from socket import socket
from typing import Any

import pytest
from chromium import PROBLEMS, VIEWS
from playwright.sync_api import Browser, Page, expect

from langchain_groundedness.testing import ScriptedRequest, ScriptedResponse, ScriptedServer

pytestmark = pytest.mark.enable_socket
EVIL = "<img src=x onerror=document.title='hacked'>"
DOCUMENTS = {
    "report.md": "# Report\n\nRevenue was $2.1B in Q3, up 12% from the year before.\n",
    "deep/warranty.txt": "The warranty is three years.\n",
    f"{EVIL.replace('/', '')}.txt": f"{EVIL} The weather\u202e station weighs 410 grams.\n",
}
Open = Callable[..., Page]
TIMEOUT_MS = 300_000
"""Milliseconds, on a busy machine."""
expect.set_options(timeout=TIMEOUT_MS)


@pytest.fixture
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in DOCUMENTS.items():
        path = tmp_path / "handbook" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path / "handbook"


@pytest.fixture
def opened(browser: Browser, folder: Path) -> Iterator[Open]:
    """Serves the folder with options of the command, and opens the page."""
    with ExitStack() as stack:

        def opened(*options: str, **view: Any) -> Page:
            command = [sys.executable, "-m", "langchain_groundedness", "serve", str(folder)]
            server = stack.enter_context(
                subprocess.Popen(
                    [*command, "--port", "0", *options], stdout=subprocess.PIPE, text=True
                )
            )
            stack.callback(server.terminate)
            assert server.stdout is not None
            line = server.stdout.readline()
            found = re.fullmatch(r"3 documents\. Open (http://127\.0\.0\.1:\d+/)\n", line)
            assert found, line
            context = stack.enter_context(browser.new_context(**(view or VIEWS["desktop"])))
            page = context.new_page()
            page.set_default_timeout(TIMEOUT_MS)
            page.on("pageerror", lambda error: pytest.fail(str(error)))
            page.goto(found[1])
            return page

        yield opened


def ask(page: Page, question: str) -> None:
    page.fill("#question", question)
    page.keyboard.press("Enter")


def done(page: Page) -> None:
    page.wait_for_selector("#decision .tag")
    page.wait_for_selector("#stop", state="hidden")


@pytest.mark.usefixtures("no_key")
def test_claims_are_marked_while_the_answer_is_written_then_corrected_and_taken_back(
    opened: Open,
) -> None:
    go_on = threading.Event()

    def pausing(client: socket, response: bytes) -> None:
        begun, word, rest = response.partition(b"award")
        client.sendall(begun)
        go_on.wait()
        client.sendall(word + rest)

    text = "Revenue was $2.4B in Q3. The warranty is three years. It won an award in 2024."
    replies = [ScriptedResponse(text, delivery=pausing)]
    with ScriptedServer(replies) as server:
        page = opened("--model", "any", "--base-url", server.base_url)
        ask(page, "What was revenue in Q3, and how long is the warranty?")
        answer, cards = page.locator("#answer"), page.locator(".claim-card")
        expect(cards.nth(0)).to_contain_text("corrected")
        expect(answer).not_to_contain_text("award")  # the model has not written more
        expect(answer.locator("del")).to_have_text("$2.4B")
        expect(answer.locator("ins")).to_have_text("[CORRECTED: $2.1B]")
        expect(page.locator("#stop")).to_be_visible()
        go_on.set()
        done(page)
    expect(cards).to_have_count(3)
    expect(cards.nth(0)).to_contain_text("contradicted")
    expect(cards.nth(0)).to_contain_text("Contradicting passage")
    expect(cards.nth(0).locator("q")).to_contain_text("Revenue was $2.1B in Q3")
    expect(cards.nth(0).locator(".source")).to_have_text("report.md")
    expect(cards.nth(1)).to_contain_text("supported")
    expect(cards.nth(1).locator(".source").first).to_have_text("deep/warranty.txt")
    expect(cards.nth(2)).to_contain_text("removed")
    expect(answer.locator("del.v-unverifiable")).to_contain_text("It won an award")
    expect(answer.locator("del")).to_have_text([re.compile(r"^\S(.*\S)?$")] * 2)
    expect(answer.locator("span.v-supported")).to_have_text("The warranty is three years.")
    expect(page.locator("#decision")).to_have_text(
        re.compile("has contradictions.*after the changes.*grounded.*pass")
    )
    answer.locator(".ref").nth(1).click()
    assert page.evaluate("document.querySelector(':target').id") == "claim-2"


def test_the_script_quotes_errs_and_makes_things_up(opened: Open) -> None:
    page = opened()
    ask(page, "What was revenue in Q3, and how long is the warranty?")
    done(page)
    for number, verdict in enumerate(("contradicted", "supported", "unverifiable"), start=1):
        expect(page.locator(f"#claim-{number}.v-{verdict}")).to_be_visible()


def test_the_script_quotes_sentences_and_no_headings(opened: Open) -> None:
    page = opened()
    ask(page, "Report?")
    done(page)
    expect(page.locator("#answer")).to_contain_text("Revenue was $")
    expect(page.locator(".claim-card")).to_have_count(2)


STREAM = """() => { window.fetch = async () => new Response(new ReadableStream({ start(stream) {
  const claim = (id, end) => ({ id, text: id, start: 0, end });
  const send = (name, data) => stream.enqueue(new TextEncoder().encode(
    `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`));
  send("text", "It rose and fell.");
  send("groundedness.claim", claim("rose", 7));
  send("groundedness.claim", claim("rose and fell", 17));
  send("groundedness.verdict", { claim: claim("rose", 7), verdict: "supported" });
} })); }"""


def test_text_is_not_shown_as_supported_while_another_claim_on_it_is_checked(opened: Open) -> None:
    page = opened()
    page.evaluate(STREAM)
    ask(page, "What happened?")
    expect(page.locator(".claim-card").nth(0)).to_contain_text("supported")
    marked = page.locator("#answer .claim")
    expect(marked).to_have_count(2)
    for piece in marked.all():
        expect(piece).to_have_class("claim v-pending")


def test_hostile_documents_do_nothing_and_hidden_characters_are_read_by_name(opened: Open) -> None:
    page = opened()
    ask(page, "How many grams does the weather station weigh?")
    done(page)
    shown = page.locator(".claim-card q").first.inner_text()
    assert "weather[U+202E RIGHT-TO-LEFT OVERRIDE] station" in shown
    assert page.locator("main img").count() == 0
    assert page.title() == "Ask · Groundedness live"


def test_a_question_that_no_document_is_about_is_told_in_one_line(opened: Open) -> None:
    page = opened()
    ask(page, "Xylophone?")
    expect(page.locator("#problem")).to_have_text(
        "no document shares a word with the question; use words of the documents"
    )
    expect(page.locator("#found")).to_be_hidden()


@pytest.mark.usefixtures("no_key")
def test_a_model_that_is_not_reached_is_told_in_one_line(opened: Open) -> None:
    page = opened("--model", "any", "--base-url", "http://127.0.0.1:1/v1")
    ask(page, "What was revenue?")
    expect(page.locator("#problem")).to_have_text(re.compile(r"^\w+: Connection error\.$"))


@pytest.mark.usefixtures("no_key")
def test_a_server_of_the_openai_protocol_answers(opened: Open) -> None:
    with ScriptedServer(["Revenue was $2.2B in Q3. The warranty is three years."]) as server:
        page = opened("--model", "any", "--base-url", server.base_url)
        ask(page, "What was revenue in Q3, and how long is the warranty?")
        done(page)
    expect(page.locator("#answer ins")).to_have_text("[CORRECTED: $2.1B]")
    assert "Revenue was $2.1B in Q3" in server.requests[0].text


@pytest.mark.usefixtures("no_key")
def test_an_answer_can_be_stopped_and_another_one_asked_for(opened: Open) -> None:
    asked, never = threading.Event(), threading.Event()

    def script(_: ScriptedRequest) -> ScriptedResponse:
        if asked.is_set():
            return ScriptedResponse("The warranty is three years.")
        asked.set()
        return ScriptedResponse("Late.", after=never)

    with ScriptedServer(script) as server:
        page = opened("--model", "any", "--base-url", server.base_url)
        ask(page, "How long is the warranty?")
        assert asked.wait(TIMEOUT_MS / 1000)
        page.click("#stop")
        expect(page.locator("#problem")).to_have_text("You stopped the answer.")
        expect(page.locator("#stop")).to_be_hidden()
        ask(page, "How long is the warranty?")
        done(page)
        expect(page.locator("#problem")).to_be_hidden()
        expect(page.locator(".claim-card")).to_contain_text("supported")
        never.set()


@pytest.mark.parametrize("view", VIEWS)
def test_the_page_is_labelled_legible_and_as_wide_as_the_screen(opened: Open, view: str) -> None:
    page = opened(**VIEWS[view])
    assert page.evaluate(PROBLEMS) == []
    ask(page, "What was revenue in Q3, and how long is the warranty?")
    done(page)
    assert page.evaluate(PROBLEMS) == []
    if folder := os.environ.get("REVIEW_SCREENSHOTS"):
        page.screenshot(path=Path(folder) / f"live-{view}.png", full_page=True)
