"""What a judge was shown: what stands in fences, what outside them."""

import re
import unicodedata
from collections.abc import Iterable, Iterator

from langchain_core.messages import BaseMessage

__all__ = ["FIXED", "look_alikes", "outside", "within"]

FIXED = (
    "Is the statement supported by the evidence? Reply with one word: yes, no or unknown.",
    "Is the statement supported? Only one word: yes, no or unknown.",
    "That is not the form that was asked for. Give the reply in that form.",
)
"""All that people of ours say to a judge after the system prompt, but for fences."""

_FENCED = re.compile(r"<([a-z]+) ([a-z]{10})>\n(.*?)\n</\1 \2>", re.DOTALL)


def within(messages: Iterable[BaseMessage]) -> Iterator[str]:
    """Give the texts in the fences of messages."""
    for message in messages:
        yield from (match[3] for match in _FENCED.finditer(str(message.text)))


def outside(message: BaseMessage) -> str:
    """Give what of a message stands in no fence and is no fixed sentence."""
    rest = _FENCED.sub("", str(message.text))
    for sentence in FIXED:
        rest = rest.replace(sentence, "")
    return rest.strip()


_KINDS = "evidence|question|answer|reference|claims|statements?"
_SIGNS = str.maketrans("\u02c2\u2039\u27e8\u3008\u2329\u276e\u1438", "<<<<<<<")
_LOOK_ALIKE = re.compile(
    rf"<\s*/?\s*(?:{_KINDS})\b|<\||<</?sys|</?s>|</?(?:bos|eos|pad|unk)>|</?think>|</?tool_\w+>"
    r"|</?(?:start|end)_of_\w+>|</?(?:system|user|assistant)>|<extra_id_|</?function_calls>"
    r"|<invoke\b|<function=|\[/?(?:inst|tool_\w+|available_tools|system_prompt|gmask)\]|\[unused_token",
    re.IGNORECASE,
)


def look_alikes(text: str) -> list[str]:
    """Find what a model could take for a boundary or a control token of a chat template.

    Invisible characters are taken away and compatibility forms folded first, as a reader would.
    """
    plain = unicodedata.normalize("NFKC", text.translate(_SIGNS))
    return _LOOK_ALIKE.findall("".join(c for c in plain if unicodedata.category(c) != "Cf"))
