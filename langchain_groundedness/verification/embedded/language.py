"""Tells whether a text reads as English; its own module because training asks too."""

import math
import re

__all__ = ["reads_as_english"]

_NAME = re.compile(r"(?<=\S\s)[A-Z\u00c0-\u00de][\w'\u2019-]*")
"""A word with a capital inside a text, most likely part of a name; it tells no language."""

_LEAST_MARGIN = 15.0
_MARGIN_PER_ROOT = 2.4
"""By how many nats another language must be likelier than English: names speak for all languages,
and what letters say adds up. None of 1,200 English claims is above, .993 of 2,520 sentences in 42
other languages are (`benchmarks/language_detection.py`)."""


def reads_as_english(text: str) -> bool:
    """Tell whether a text is likely to be English, so that a model of English can be trusted."""
    import py3langid  # noqa: PLC0415  (slow to import)

    text = text.strip()
    likelihoods = dict(py3langid.rank(text if text.isupper() else _NAME.sub(" ", text)))
    margin = max(_LEAST_MARGIN, _MARGIN_PER_ROOT * math.sqrt(len(text)))
    return bool(max(likelihoods.values()) - likelihoods["en"] <= margin)
