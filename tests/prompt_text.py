"""What a scripted model was asked, with the codes that change in every process made equal."""

import re
from collections.abc import Sequence

from langchain_core.messages import BaseMessage, get_buffer_string

__all__ = ["prompt_text", "without_codes"]


def prompt_text(messages: Sequence[BaseMessage]) -> str:
    return without_codes(get_buffer_string(list(messages)))


def without_codes(text: str) -> str:
    text = re.sub(r"(?m)^((?:Human: )?</?\w+) [a-z]{10}>$", r"\1 CODE>", text)
    text = re.sub(r"(?m)^((?:AI: )?)(?!TAG)[A-Z]{3} (?=[CS]\d)", r"\1XKQ ", text)
    return re.sub(r"(?m)^TAG: [A-Z]{3}$", "TAG: XKQ", text)
