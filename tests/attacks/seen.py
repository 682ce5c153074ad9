"""What a judge was shown: what stands in fences, what outside them."""

import re
import unicodedata
from collections.abc import Iterable, Iterator

from langchain_core.messages import BaseMessage

__all__ = ["FIXED", "look_alikes", "outside", "within"]

FIXED = (
    "Is the statement supported by the evidence? Reply with one word: yes, no or unknown.",
    "Is the statement supported? Only one word: yes, no or unknown.",
    "Give the reply in the form asked for.",
)
"""All that people of ours say to a judge after the system prompt, but for fences."""

_WRONG = (
    "calls a tool that does not exist",
    "does not repeat the tag that was given",
    "has a verdict that names no evidence",
    "has lines that are not text",
    "has more than one tool call",
    "has text after the label supported",
    "has no line that begins with the tag that was given",
    "has no verdict",
    "has text around its lines that may take them back",
    "has two different verdicts for the claim",
    "has two labels in one line",
    "is empty",
    "is not in the form that was asked for",
    "leaves the claim out",
    "names evidence that was not shown",
    "reasoning does not end",
)
_COMPLAINT = re.compile(
    rf"^(?:That|A first|The last) reply does not count: its? (?:(?:{'|'.join(_WRONG)})(?:, )?)+\."
    r"|^TAG: [A-Z]{3}$",
    re.MULTILINE,
)

_FENCED = re.compile(r"<([a-z]+) ([a-z]{10})>\n(.*?)\n</\1 \2>", re.DOTALL)


def within(messages: Iterable[BaseMessage]) -> Iterator[str]:
    """Give the texts in the fences of messages."""
    for message in messages:
        yield from (match[3] for match in _FENCED.finditer(str(message.text)))


def outside(message: BaseMessage) -> str:
    """Give what of a message stands in no fence and is no fixed sentence."""
    rest = _FENCED.sub("", str(message.text))
    rest = _COMPLAINT.sub("", rest)
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
