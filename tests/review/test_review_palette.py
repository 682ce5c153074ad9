"""The colours of the review page, read from its style sheet."""

import re
from importlib.resources import files

import pytest

LOOK = (files("langchain_groundedness") / "static" / "look.css").read_text("utf-8")
CSS = LOOK + (files("langchain_groundedness.review") / "static" / "review.css").read_text("utf-8")
JS = (files("langchain_groundedness.review") / "static" / "review.js").read_text("utf-8")

VERDICTS = ("supported", "contradicted", "unverifiable", "unchecked")
TEXTS = [
    *(("text", ground) for ground in ("page", "card", "plain-tint", "cited", "cited-now")),
    *(("text", f"{verdict}-tint") for verdict in VERDICTS),
    *((verdict, f"{verdict}-tint") for verdict in VERDICTS),
    *((verdict, "card") for verdict in VERDICTS),
    ("quiet", "page"),
    ("quiet", "card"),
    ("link", "page"),
    ("link", "card"),
    ("button-text", "button"),
    ("button-text", "link"),
]
"""What is written on what."""

SIGNS = [("field", "card"), ("field", "page"), ("focus", "page"), ("focus", "card")]
"""Borders and outlines that must be seen."""


def palette(mode: str) -> dict[str, str]:
    light, dark = re.findall(r":root \{(.*?)\}", CSS, re.DOTALL)
    found = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", light))
    return found if mode == "light" else found | dict(re.findall(r"--([\w-]+): (#\w{6});", dark))


def luminance(colour: str) -> float:
    """As WCAG 2.2 defines it."""
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_contrast_is_computed_as_it_should_be() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("mode", ["light", "dark"])
@pytest.mark.parametrize(("ink", "ground"), TEXTS)
def test_text_can_be_read_on_its_ground(mode: str, ink: str, ground: str) -> None:
    colours = palette(mode)
    assert contrast(colours[ink], colours[ground]) >= 4.5


@pytest.mark.parametrize("mode", ["light", "dark"])
@pytest.mark.parametrize(("sign", "ground"), SIGNS)
def test_fields_and_focus_can_be_seen(mode: str, sign: str, ground: str) -> None:
    colours = palette(mode)
    assert contrast(colours[sign], colours[ground]) >= 3


def test_every_colour_is_named_once_and_has_a_dark_form() -> None:
    light, dark = re.findall(r":root \{(.*?)\}", CSS, re.DOTALL)
    assert re.findall(r"--[\w-]+", light) == re.findall(r"--[\w-]+", dark)
    elsewhere = re.sub(r"(?s):root \{.*?\}", "", CSS)
    assert not re.findall(r"#[0-9a-fA-F]{3,8}\b(?!\w)|rgb|hsl", elsewhere)
    used = set(re.findall(r"var\(--([\w-]+)\)", CSS))
    assert used == set(palette("light"))


def test_verdicts_differ_by_their_line_too() -> None:
    styles = {
        verdict: re.search(rf"\.claim\.v-{verdict} {{[^}}]*style: (\w+)", CSS)
        for verdict in VERDICTS
    }
    assert len({found[1] for found in styles.values() if found}) == 4


def test_nothing_is_loaded_from_elsewhere() -> None:
    assert not re.search(r"https?:|@import|url\(", CSS)
    assert not re.search(r"https?:|import\s|innerHTML|insertAdjacent|eval\(|fetch\(", JS)
