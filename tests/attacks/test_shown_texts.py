"""Hostile texts where people read them: page, notebook, Markdown, XML, terminal, review."""

import io
import re
import unicodedata
from functools import cache
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import pytest
from report.runs import row, run, scored
from rich.console import Console

from attacks.corpus import CORPUS, FALSE, Attack, scene
from langchain_groundedness import GroundednessResult, GroundednessRunnable
from langchain_groundedness.display.hidden_characters import show_hidden
from langchain_groundedness.display.terminal import render
from langchain_groundedness.evals import EvaluationRun
from langchain_groundedness.report import to_html, to_junit, to_markdown
from langchain_groundedness.testing import ScriptedVerifier
from langchain_groundedness.types import Claim, ClaimVerdict

SHOWN = ("HTML and script", "terminal", "markup", "code", "paths", "formulas", "unseen characters")
ATTACKS = [attack for attack in CORPUS if attack.family in SHOWN]
ACTIVE = {"a", "img", "svg", "iframe", "object", "embed", "form", "base", "link", "math", "input"}


class Shape(HTMLParser):
    """What a browser would make of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]


@cache
def result_of(attack: Attack) -> GroundednessResult:
    """Put the attack wherever a result can hold a text."""
    staged = scene(attack)

    def judged(claim: Claim) -> ClaimVerdict:
        note = attack.text[:500]
        return ClaimVerdict(claim=claim, verdict="unverifiable", explanation=note, correction=note)

    checker = GroundednessRunnable(verifier=ScriptedVerifier(judged))
    question = f"{staged.question} {attack.text[:500]}"
    given = {"answer": staged.answer, "documents": list(staged.documents), "question": question}
    return checker.invoke(given)


@cache
def whole_run() -> EvaluationRun:
    rows = []
    for number, attack in enumerate(ATTACKS):
        text = attack.text[:300]
        score = scored("m", None, reason=text).model_copy(update={"result": result_of(attack)})
        made = row(f"{number} {text}", score)
        rows.append(made)
    return run(*rows, keys=("m",), name=ATTACKS[0].text)


def test_the_page_of_a_run_holds_no_element_of_a_stranger() -> None:
    harmless = Shape(to_html(run(row("r", scored("m", 0.5)), keys=("m",))))
    found = Shape(to_html(whole_run()))
    assert found.tags.count("script") == harmless.tags.count("script")
    assert not (ACTIVE - set(harmless.tags)) & set(found.tags)
    assert found.tags.count("style") == harmless.tags.count("style")
    assert found.tags.count("meta") == harmless.tags.count("meta")
    assert not [name for name in found.attributes if name.startswith("on")]


def test_the_page_of_a_run_lets_only_its_own_script_run_and_loads_nothing() -> None:
    text = to_html(whole_run())
    policy = re.search(r'http-equiv="Content-Security-Policy"\s+content="([^"]*)"', text)
    assert policy is not None
    assert "default-src 'none'" in policy[1]
    assert "unsafe" not in policy[1]


@pytest.mark.parametrize("attack", ATTACKS[::6], ids=lambda attack: attack.id)
def test_a_notebook_shows_texts_only(attack: Attack) -> None:
    shown = result_of(attack)._repr_html_()
    assert shown is not None
    found = Shape(shown)
    assert not ({*ACTIVE, "script", "style", "meta", "body", "template"} & set(found.tags))
    assert not [name for name in found.attributes if name.startswith("on")]


@pytest.mark.parametrize("attack", ATTACKS[1::6], ids=lambda attack: attack.id)
def test_a_terminal_obeys_no_text(attack: Attack) -> None:
    screen = io.StringIO()
    Console(file=screen, width=400, color_system=None).print(render(result_of(attack)))
    text = screen.getvalue()
    assert not {c for c in text if unicodedata.category(c) in ("Cc", "Cs") and c != "\n"}
    assert not set(text) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
    assert text.splitlines()[-1].startswith("not trusted · ungrounded · ")


def test_markdown_of_a_run_holds_no_html_and_no_link_of_a_stranger() -> None:
    text = re.sub(r"</?(details|summary|br)>", "", to_markdown(whole_run()))
    assert not re.search(r"<[a-zA-Z/!?]", text)
    assert not re.search(r"(?<!\\)\]\(", text)
    assert "\x1b" not in text


def test_no_page_holds_a_character_that_nobody_sees() -> None:
    run = whole_run()
    pages = [to_html(run), to_markdown(run), to_junit(run, fail_under={}), run._repr_html_()]
    for page in (*pages, *(result_of(attack)._repr_html_() for attack in ATTACKS)):
        assert page is not None
        assert show_hidden(page) == page


def test_xml_of_a_run_can_be_read_and_names_no_entity() -> None:
    text = to_junit(whole_run(), fail_under={"m": 0.9})
    assert "<!" not in text
    assert len(ET.fromstring(text)) >= 1  # noqa: S314  (ours)


def test_what_is_shown_is_what_was_checked() -> None:
    for attack in ATTACKS:
        result = result_of(attack)
        assert result.original_answer == scene(attack).answer
        assert FALSE in [verdict.claim.text for verdict in result.claims]
