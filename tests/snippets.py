"""Snippets of README and of the documentation, and what stands in for the models that they name."""

import json
import re
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import langchain.agents.factory
import langchain.chat_models
import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from langchain_groundedness.testing import ScriptedChatModel, ScriptedRequest

__all__ = [
    "PAGES",
    "ROOT",
    "Snippet",
    "StandIn",
    "command_lines",
    "openai_reply",
    "promised",
    "put_in_place",
    "snippets_of",
]

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs").rglob("*.md"))
"""Every page of the documentation."""

JUDGED = {
    "Revenue": ("Revenue was $2.1B", "contradicted | $2.1B | another figure"),
    "18 months": ("It runs for 18 months", "supported"),
    "warranty": ("three-year warranty", "contradicted | three-year | another term"),
    "Matter": ("added support for Matter", "supported"),
}
"""What a judge who reads well says of the claims of the demonstration: on what, and what."""


class Snippet(NamedTuple):
    """A block of Python, and what the page says that it prints, if it shows that in a block."""

    code: str
    output: str | None


class StandIn(ScriptedChatModel):
    """Judges the demonstration; as an agent's model it searches, and then answers wrongly."""

    replies: Any = None
    has_tools: bool = False

    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        self.replies = self.reply

    def bind_tools(self, tools: Any, **kwargs: Any) -> "StandIn":
        return StandIn(has_tools=True)

    def reply(self, messages: list[BaseMessage]) -> str | AIMessage:
        text = "\n".join(message.text for message in messages)
        if "prepare an answer for fact checking" in text or "\n<claims " in text:
            return "\n".join(_tagged(text)) or "none"
        if self.has_tools and isinstance(messages[-1], HumanMessage):
            search: Any = {"name": "search", "args": {"query": "Q3 revenue"}, "id": "1"}
            return AIMessage("", tool_calls=[search])
        return "Revenue was $2.4B in Q3."


def put_in_place(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let every name of a model lead to the stand-in, and tell which names were asked for."""
    asked: list[str] = []

    def init_chat_model(name: str, **_: object) -> StandIn:
        asked.append(name)
        return StandIn()

    monkeypatch.setattr(langchain.chat_models, "init_chat_model", init_chat_model)
    monkeypatch.setattr(langchain.agents.factory, "init_chat_model", init_chat_model)
    return asked


def openai_reply(request: ScriptedRequest) -> str:
    if request.form == "text":
        return "\n".join(_tagged(request.text)) or "none"
    lines = list(_reply_lines(request.text))
    return json.dumps({"tag": request.tag, "lines": lines} if request.tag else {"lines": lines})


def _tagged(prompt: str) -> Iterable[str]:
    for tag in re.findall(r"^TAG: ([A-Z]{3})$", prompt, re.MULTILINE)[-1:]:
        yield from (f"{tag} {line}" for line in _reply_lines(prompt))


def _reply_lines(prompt: str) -> Iterable[str]:
    """Answer our two prompts as a model would that judges as above."""
    if "prepare an answer for fact checking" in prompt:
        return
    evidence = re.findall(r"^(\d+) (.*)$", prompt, re.MULTILINE)
    claims = prompt.split("\n<claims ")[1]
    for number, claim in re.findall(r"^(C\d+): (.*)$", claims, re.MULTILINE):
        sign = next((sign for sign in JUDGED if sign in claim), None)
        if sign is None:
            yield f"{number}: unverifiable | not mentioned"
        else:
            key, verdict = JUDGED[sign]
            place = next(place for place, sentence in evidence if key in sentence)
            yield f"{number}: [{place}] {verdict}"


def snippets_of(text: str) -> list[Snippet]:
    """Find the blocks of Python of a page, in order."""
    shown = r"(?:\n(?:It prints\n\n)?```text\n(.*?)^```)?"
    found = re.findall(rf"^```python\n(.*?)^```\n{shown}", text, re.MULTILINE | re.DOTALL)
    return [Snippet(code, output or None) for code, output in found]


def promised(code: str) -> list[str]:
    """Give what a snippet says in comments that it prints."""
    return re.findall(r"^\s*print\(.*\)  # (.+)$", code, re.MULTILINE)


def command_lines(text: str) -> Iterator[list[str]]:
    """Give what follows the name of our program wherever a page shows it run in a shell."""
    for block in re.findall(r"^```(?:console|sh|bash)\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line.removeprefix("$ "), comments=True)
            places = [n for n, word in enumerate(words) if word == "langchain-groundedness"]
            for place in places:
                if place and words[place - 1] not in {"|", "&&"}:
                    continue
                said = words[place + 1 :]
                ends = [place for place, word in enumerate(said) if word in {"|", ">", ">>", "&&"}]
                yield said[: ends[0]] if ends else said
