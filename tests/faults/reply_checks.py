"""Checks of one answer by a judge whose replies are drawn, or that is honest in a dialect."""

import json
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from entries import ANSWER, DOCUMENTS, KNOWN, SENTENCES
from langchain_core.messages import AIMessage, BaseMessage
from matrix import judge
from reply_families import (
    DIALECTS,
    drawn,
    label_drawn,
    logprobs_drawn,
    number_drawn,
    right_of,
    spoiled,
)

from langchain_groundedness import LLMVerifier, SinglePassJudge
from langchain_groundedness.testing import KnownClaim, ScriptedChatModel, ScriptedRequest
from langchain_groundedness.types import Claim, VerificationTask

__all__ = ["STRATEGIES", "read_honestly", "supported_falsely"]

_TASK = VerificationTask(
    claims=tuple(Claim(id=f"c{n}", text=text) for n, text in enumerate(SENTENCES, 1)),
    documents=DOCUMENTS,
    answer=ANSWER,
)

STRATEGIES: Mapping[str, Callable[[Any], Any]] = {
    "batched": lambda model: LLMVerifier(model=model),
    "single_pass": lambda model: SinglePassJudge(model=model),
    "per_claim": lambda model: LLMVerifier(model=model, strategy="per_claim"),
    "plain questions": lambda model: LLMVerifier(model=model),
}
"""By name; to `plain questions` no line ever has the tag, so that `batched` must ask them."""


def supported_falsely(strategy: str, chance: random.Random) -> tuple[list[str], int]:
    """Check the sample with drawn replies.

    Returns:
        What was supported and is false, with the replies; and how many replies there were.
    """
    replies: list[AIMessage] = []

    def reply(messages: Sequence[BaseMessage]) -> AIMessage:
        request = _request(messages)
        if strategy == "plain questions":
            made = _plainly_drawn(request, replies, chance)
        else:
            made = _drawn(request, chance)
        replies.append(made)
        return made

    model = ScriptedChatModel(replies=reply)
    found = STRATEGIES[strategy](model).invoke(_TASK, {"max_concurrency": 1})
    false = [
        f"{verdict.claim.text!r} by {[made.model_dump() for made in replies]}"
        for verdict in found
        if verdict.verdict == "supported" and _right(verdict.claim.text) != "supported"
    ]
    return false, len(replies)


def _drawn(request: ScriptedRequest, chance: random.Random) -> AIMessage:
    if not request.tag:
        if chance.random() < 0.1:
            return spoiled("yes", chance)
        text = label_drawn(request.text, chance)
        metadata = logprobs_drawn(text, chance) if chance.random() < 0.3 else {}
        return AIMessage(text, response_metadata=metadata)
    text = drawn(right_of(request, judge()(request)), chance)
    calls: Any = []
    if chance.random() < 0.3:
        try:
            arguments = json.loads(text)
        except ValueError:
            arguments = None
        if isinstance(arguments, dict):
            name = chance.choice(("VerdictLines", "set_verdict"))
            text, calls = "", [{"name": name, "args": arguments, "id": "1", "type": "tool_call"}]
    return AIMessage(text, tool_calls=calls)


_YES = "Yes."


def _plainly_drawn(
    request: ScriptedRequest, replies: Sequence[AIMessage], chance: random.Random
) -> AIMessage:
    """Spoil the lines, and the label or the number that plain questions ask for."""
    if request.tag:
        made = _drawn(request, chance)
        return AIMessage(str(made.text).replace(request.tag, "TAG"))
    if "number only" not in request.text:
        return AIMessage(_YES) if chance.random() < 0.5 else _drawn(request, chance)
    if replies[-1].text != _YES:  # then it should not have been read
        return AIMessage("2")
    if chance.random() < 0.2:
        return spoiled("2", chance)
    return AIMessage(number_drawn(request.text, chance))


def read_honestly(strategy: str, dialect: str) -> bool:
    """Check the sample with an honest judge of a dialect: is every verdict right, at one call?"""
    asked: list[ScriptedRequest] = []

    def reply(messages: Sequence[BaseMessage]) -> AIMessage:
        asked.append(_request(messages))
        text = DIALECTS[dialect](right_of(asked[-1], judge()(asked[-1])))
        if dialect != "tool call":
            return AIMessage(text)
        call: Any = {"name": "VerdictLines", "args": json.loads(text), "id": "1"}
        return AIMessage("", tool_calls=[call])

    found = STRATEGIES[strategy](ScriptedChatModel(replies=reply)).invoke(_TASK)
    return len(asked) == 1 and all(v.verdict == _right(v.claim.text) for v in found)


def _right(claim: str) -> str:
    return KNOWN.get(claim, KnownClaim("unverifiable")).verdict


def _request(messages: Sequence[BaseMessage]) -> ScriptedRequest:
    contents = [{"role": "user", "content": str(message.text)} for message in messages]
    return ScriptedRequest({"messages": contents})
