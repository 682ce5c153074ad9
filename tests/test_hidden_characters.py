"""Characters that nobody sees, on pages: shown by name, and edited without loss."""

import sys
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from langchain_groundedness.display.hidden_characters import (
    restore_hidden,
    show_hidden,
    show_hidden_for_editing,
)

HIDDEN = (
    *(chr(code) for code in (*range(9), *range(0x0B, 0x20), *range(0x7F, 0xA0))),
    *"\u00ad\u034f\u061c\u115f\u180e\u200b\u200c\u200d\u200e\u200f\u2028\u2029\u202a\u202b\u202c",
    *"\u202d\u202e\u2060\u2063\u2066\u2067\u2068\u2069\u206f\u3164\ufe00\ufeff\uffa0\ufff9",
    *"\U000e0001\U000e0041\U000e007f\U000e0100\U0001d173",
)


@pytest.mark.parametrize("char", HIDDEN, ids=lambda char: f"U+{ord(char):04X}")
def test_a_hidden_character_is_shown_with_the_name_that_unicode_gives_it(char: str) -> None:
    shown = show_hidden(f"a{char}b")
    assert shown.startswith(f"a[U+{ord(char):04X} ")
    assert shown.endswith("]b")
    assert unicodedata.lookup(shown[shown.index(" ") + 1 : -2]) == char


def test_what_has_no_name_is_shown_with_its_number() -> None:
    assert show_hidden("\ud800\u2065") == "[U+D800 SURROGATE][U+2065 UNASSIGNED]"


def test_everything_that_is_formatting_in_unicode_is_shown_or_can_be_seen() -> None:
    visible = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}
    for code in range(sys.maxunicode + 1):
        char = chr(code)
        if char not in "\t\n" and unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp"):
            assert (show_hidden(char) == char) == (code in visible), hex(code)


@pytest.mark.parametrize(
    "text",
    [
        "a\tb\nc",
        "é 漢字 مرحبا",
        "👩‍🚀 👨🏽‍💻 ❤️‍🔥 ✔️ 1️⃣",
        "می‌خواهم",
        "क्‍ष र्‍य ශ්‍රී",
        "葛\U000e0100城",
    ],
)
def test_ordinary_text_of_any_script_is_left_alone(text: str) -> None:
    assert show_hidden(text) == text
    assert show_hidden_for_editing(text) == text


@pytest.mark.parametrize(
    "text", ["pay\u200dpal", "a\ufe0fb", "✔\ufe0f\ufe0f", "\u200c", " \u200d👩", "می\u200c\u200cخ"]
)
def test_joiners_and_selectors_without_effect_are_shown(text: str) -> None:
    assert "[U+" in show_hidden(text)


def test_line_ends_of_windows_are_line_ends() -> None:
    assert show_hidden("a\r\nb\rc") == "a\nb[U+000D CARRIAGE RETURN]c"


NAMES = (
    show_hidden("\u202e"),
    show_hidden_for_editing(show_hidden("\0")),
    "[U+005B LEFT SQUARE BRACKET]",
    "[U+110000 X]",
)
PIECES = (*HIDDEN, *NAMES, *"[]x", "\r\n", "U+202E RIGHT-TO-LEFT OVERRIDE")
TEXTS = st.lists(st.sampled_from(PIECES) | st.text(max_size=3)).map("".join)


@given(TEXTS)
@example("[\u202e]")
@example("[[U+202E RIGHT-TO-LEFT OVERRIDE]]")
def test_an_editable_text_reads_back_as_it_was(text: str) -> None:
    shown = show_hidden_for_editing(text)
    assert show_hidden(shown) == shown
    shown.encode()
    assert restore_hidden(shown) == text.replace("\r\n", "\n")


@given(TEXTS)
def test_a_text_whose_hidden_characters_are_named_has_none(text: str) -> None:
    shown = show_hidden(text)
    assert show_hidden(shown) == shown
    shown.encode()
