"""Words of a text, folded so that the same word compares equal wherever it stands."""

import re
import unicodedata

__all__ = ["content_words", "fold"]

# Han, kana and Thai write no spaces: each character counts as a word of its own.
_WORD = re.compile(
    r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]"
    r"|[^\W_\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+"
)
_STOP_WORDS = frozenset(
    """
    a an and are as at be been but by did do does for from had has have he her his i in
    is it its of on or our she so than that the their them then there these they this to
    was we were what when where which who will with would you your
    """.split()  # noqa: SIM905  (a word list reads better as words)
)


def fold(text: str) -> str:
    """Fold case and Unicode form, so that what reads the same compares equal.

    Args:
        text: Any text.

    Returns:
        The text in NFKC form, case folded; its length may differ.
    """
    return unicodedata.normalize("NFKC", text).casefold()


def content_words(text: str) -> frozenset[str]:
    """Give the words of a text that carry meaning.

    Args:
        text: Any text, in any script.

    Returns:
        The folded words, less the commonest English function words.

    Example:
        >>> sorted(content_words("The revenue was $2.1B."))
        ['1b', '2', 'revenue']
    """
    return frozenset(_WORD.findall(fold(text))) - _STOP_WORDS
