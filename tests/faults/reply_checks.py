"""Checks of one answer by a judge whose replies are drawn, or that is honest in a dialect."""

import json
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from entries import ANSWER, DOCUMENTS, KNOWN, SENTENCES
from langchain_core.messages import AIMessage, BaseMessage
from matrix import judge
from reply_families import DIALECTS, drawn, label_drawn, logprobs_drawn, right_of

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
}


def supported_falsely(strategy: str, chance: random.Random) -> tuple[list[str], int]:
    """Check the sample with drawn replies.

    Returns:
        What was supported and is false, with the replies; and how many replies there were.
    """
    replies: list[AIMessage] = []

    def reply(messages: Sequence[BaseMessage]) -> AIMessage:
        made = _drawn(_request(messages), chance)
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
