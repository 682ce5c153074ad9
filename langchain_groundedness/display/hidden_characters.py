"""Invisible characters, shown by name on pages and read back from edited text.

Their own module because a terminal needs texts of equal length (`terminal.printable`).
"""

import re
import sys
import unicodedata

__all__ = [
    "hidden_characters_in",
    "offset_with_names",
    "restore_hidden",
    "show_hidden",
    "show_hidden_for_editing",
]

_HIDDEN = re.compile(
    "[\0-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff0-\ufffb\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)
"""Control and format characters, and what Unicode calls default-ignorable."""

_NAME = re.compile(r"\[U\+([0-9A-F]{4,6}) [A-Z0-9 ()-]+\]")

_VIRAMA = 9
"""Combining class of the signs that join letters of Indic scripts."""

_C0 = (
    "NULL,START OF HEADING,START OF TEXT,END OF TEXT,END OF TRANSMISSION,ENQUIRY,ACKNOWLEDGE,"
    "ALERT,BACKSPACE,CHARACTER TABULATION,LINE FEED,LINE TABULATION,FORM FEED,CARRIAGE RETURN,"
    "SHIFT OUT,SHIFT IN,DATA LINK ESCAPE,DEVICE CONTROL ONE,DEVICE CONTROL TWO,"
    "DEVICE CONTROL THREE,DEVICE CONTROL FOUR,NEGATIVE ACKNOWLEDGE,SYNCHRONOUS IDLE,"
    "END OF TRANSMISSION BLOCK,CANCEL,END OF MEDIUM,SUBSTITUTE,ESCAPE,"
    "INFORMATION SEPARATOR FOUR,INFORMATION SEPARATOR THREE,INFORMATION SEPARATOR TWO,"
    "INFORMATION SEPARATOR ONE"
)
_C1 = (
    "DELETE,PADDING CHARACTER,HIGH OCTET PRESET,BREAK PERMITTED HERE,NO BREAK HERE,INDEX,"
    "NEXT LINE,START OF SELECTED AREA,END OF SELECTED AREA,CHARACTER TABULATION SET,"
    "CHARACTER TABULATION WITH JUSTIFICATION,LINE TABULATION SET,PARTIAL LINE FORWARD,"
    "PARTIAL LINE BACKWARD,REVERSE LINE FEED,SINGLE SHIFT TWO,SINGLE SHIFT THREE,"
    "DEVICE CONTROL STRING,PRIVATE USE ONE,PRIVATE USE TWO,SET TRANSMIT STATE,"
    "CANCEL CHARACTER,MESSAGE WAITING,START OF GUARDED AREA,END OF GUARDED AREA,"
    "START OF STRING,SINGLE GRAPHIC CHARACTER INTRODUCER,SINGLE CHARACTER INTRODUCER,"
    "CONTROL SEQUENCE INTRODUCER,STRING TERMINATOR,OPERATING SYSTEM COMMAND,PRIVACY MESSAGE,"
    "APPLICATION PROGRAM COMMAND"
)
_CONTROLS = {
    chr(code): name
    for first, names in ((0x00, _C0), (0x7F, _C1))
    for code, name in enumerate(names.split(","), start=first)
}
"""Names of control characters, which `unicodedata.name` lacks."""


def show_hidden(text: str) -> str:
    """Show invisible characters, and those that reorder others, by their names."""
    return _HIDDEN.sub(_shown, text)


def hidden_characters_in(text: str) -> dict[str, str]:
    """Return what `show_hidden` shows instead of characters of a text."""
    found = {each[0]: _shown(each) for each in _HIDDEN.finditer(text)}
    return {char: shown for char, shown in found.items() if shown != char}


def offset_with_names(text: str, offset: int) -> int:
    """Return where an offset of a text is in `show_hidden(text)`."""
    found = _HIDDEN.finditer(text, 0, offset)
    return offset + sum(len(_shown(each)) - 1 for each in found)


def show_hidden_for_editing(text: str) -> str:
    """Show hidden characters by name so that `restore_hidden` finds them in any text."""
    return show_hidden(_NAME.sub(_protected, text))


def restore_hidden(text: str) -> str:
    """Replace names, as `show_hidden_for_editing` writes them, by their characters."""
    return _NAME.sub(lambda found: _char(found) or found[0], text)


def _shown(found: re.Match[str]) -> str:
    char, text, place = found[0], found.string, found.start()
    before, after = text[place - 1 : place] if place else "", text[place + 1 : place + 2]
    if char == "\r" and after == "\n":
        return ""
    return char if _has_effect(char, before, after) else _label(char)


def _has_effect(char: str, before: str, after: str) -> bool:
    """Return whether a joiner or variation selector changes how its neighbours look."""
    if not before:
        return False
    kind = unicodedata.category(before)
    if "\ufe00" <= char <= "\ufe0f":
        return kind in ("So", "Sm") or before in "0123456789#*" or _is_ideograph(before)
    if "\U000e0100" <= char <= "\U000e01ef":
        return _is_ideograph(before)
    if char not in "\u200c\u200d":
        return False
    if after and unicodedata.category(after) == "So":  # emoji, with their colour and variant
        return kind in ("So", "Sk") or before == "\ufe0f"
    both = {unicodedata.bidirectional(each) for each in (before, after or " ")}
    virama = _VIRAMA in map(unicodedata.combining, (before, after or " "))
    return virama or both <= {"AL", "NSM"}


def _is_ideograph(char: str) -> bool:
    return unicodedata.name(char, "").startswith("CJK UNIFIED")


def _label(char: str) -> str:
    unnamed = "SURROGATE" if unicodedata.category(char) == "Cs" else "UNASSIGNED"
    name = _CONTROLS.get(char) or unicodedata.name(char, unnamed)
    return f"[U+{ord(char):04X} {name}]"


def _protected(found: re.Match[str]) -> str:
    """Show the bracket of what only looks like a name by a name."""
    return found[0] if _char(found) is None else _label("[") + found[0][1:]


def _char(found: re.Match[str]) -> str | None:
    """Return the character that a name stands for."""
    code = int(found[1], 16)
    char = chr(code) if code <= sys.maxunicode else ""
    is_name = (char == "[" or _HIDDEN.fullmatch(char)) and _label(char) == found[0]
    return char if is_name else None
