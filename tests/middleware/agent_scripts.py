"""Agents without a model: what they say, what their tools return, how they are judged."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, Literal, TypeAlias

from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.checkpoint.base import BaseCheckpointSaver
from pydantic import PrivateAttr

from langchain_groundedness import GroundednessMiddleware, GroundednessRunnable
from langchain_groundedness.testing import ScriptedVerifier
from langchain_groundedness.testing.scripted import Scripted
from langchain_groundedness.testing.server import tag_in
from langchain_groundedness.types import Claim

How: TypeAlias = Literal["sync", "async"]
QUESTION = {"messages": [("user", "What was Q3 revenue?")]}
TRUE = "Revenue was $2.1B in Q3."
FALSE = "Revenue was $2.4B in Q3."
REPORT = Document(
    "Revenue was $2.1B in Q3, up 12% from last year.",
    id="report",
    metadata={"source": "https://example.org/q3", "title": "Q3 report"},
)


class Writer(BaseChatModel):
    """A chat model that answers from a script, and can stream it word by word."""

    replies: list[Any]
    words: bool = True
    """Whether it streams word by word, or not at all."""

    _requests: list[list[BaseMessage]] = PrivateAttr(default_factory=list)

    @property
    def requests(self) -> list[list[BaseMessage]]:
        return self._requests

    @property
    def _llm_type(self) -> str:
        return "writer"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        return self.bind(tools=[str(each) for each in tools])

    def _next(self, messages: list[BaseMessage]) -> AIMessage:
        self._requests.append(messages)
        reply = self.replies[len(self._requests) - 1]
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, str):
            shown = "\n".join(str(message.text) for message in messages)
            reply = AIMessage(reply.replace("{tag}", tag_in(shown)))
        found: AIMessage = reply
        return found.model_copy()

    def _generate(self, messages: Any, *args: Any, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._next(messages))])

    def _stream(self, messages: Any, *args: Any, **kwargs: Any) -> Iterator[ChatGenerationChunk]:
        message = self._next(messages)
        if not self.words:
            raise AssertionError
        for word in re.findall(r"\s*\S+\s*?(?=\s|$)", message.text):
            yield ChatGenerationChunk(message=AIMessageChunk(content=word))
        for index, call in enumerate(message.tool_calls):
            arguments = re.sub("'", '"', str(call["args"]))
            chunk = {"name": call["name"], "args": arguments, "id": call["id"], "index": index}
            calls: Any = [{**chunk, "type": "tool_call_chunk"}]
            yield ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=calls))

    async def _astream(
        self, messages: Any, *args: Any, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in self._stream(messages):
            await asyncio.sleep(0)
            yield chunk


class Silent(Writer):
    """A chat model that cannot stream."""

    _stream = BaseChatModel._stream  # noqa: SLF001  (LangChain's hook, as below)
    _astream = BaseChatModel._astream  # noqa: SLF001


def call(name: str = "search", text: str = "", **arguments: Any) -> AIMessage:
    """Give a message that calls a tool."""
    calls: Any = [{"name": name, "args": arguments or {"query": "Q3"}, "id": f"call-{name}"}]
    return AIMessage(text, tool_calls=calls)


def search_tool(*documents: Document, **options: Any) -> BaseTool:
    """Make a tool that returns documents, with a text that does not hold them."""

    def search(query: str) -> tuple[str, list[Document]]:
        """Search."""
        return f"found some documents on {query}", list(documents or (REPORT,))

    return StructuredTool.from_function(search, response_format="content_and_artifact", **options)


def text_tool(text: str, **options: Any) -> BaseTool:
    """Make a tool that returns a text."""

    def lookup(query: str) -> str:
        """Look up."""
        return text if query else ""

    return StructuredTool.from_function(lookup, **options)


def judged(claim: Claim) -> Scripted:
    """Judge by sign: what is `$2.4B` is wrong, `weather` is nowhere, `broken` breaks the judge."""
    if "broken" in claim.text:
        raise TimeoutError
    if "$2.4B" in claim.text:
        return "contradicted"
    return "unverifiable" if "weather" in claim.text else "supported"


def checker(**options: Any) -> tuple[GroundednessRunnable, ScriptedVerifier]:
    """Make a checker with a scripted judge that reads no metadata, and give the judge."""
    judge = ScriptedVerifier(judged)
    return GroundednessRunnable(verifier=judge, **{"metadata_keys": (), **options}), judge


def agent_of(
    *replies: Any,
    middleware: GroundednessMiddleware,
    tools: Sequence[BaseTool] | None = None,
    model: BaseChatModel | None = None,
    checkpointer: BaseCheckpointSaver[Any] | bool | None = None,
    **options: Any,
) -> Any:
    """Make an agent with one middleware, that says `replies` one after the other."""
    return create_agent(
        model or Writer(replies=list(replies)),
        tools=[search_tool()] if tools is None else list(tools),
        middleware=[middleware],
        checkpointer=checkpointer,
        **options,
    )


def run(agent: Any, value: Any, how: How, config: Any = None) -> dict[str, Any]:
    """Run an agent to its end."""
    done = asyncio.run(agent.ainvoke(value, config)) if how == "async" else None
    state: dict[str, Any] = agent.invoke(value, config) if done is None else done
    return state


def tokens(agent: Any, value: Any, how: How, config: Any = None) -> list[str]:
    """Give the texts of the token stream, of the model only."""

    async def collect() -> list[Any]:
        stream = agent.astream(value, config, stream_mode="messages")
        return [part async for part in stream]

    if how == "async":
        parts = asyncio.run(collect())
    else:
        parts = list(agent.stream(value, config, stream_mode="messages"))
    return [message.text for message, _ in parts if message.type != "tool" and message.text]
