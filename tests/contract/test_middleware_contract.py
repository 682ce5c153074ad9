"""The agent middleware keeps the contract of middleware."""

from collections.abc import Sequence
from typing import Any, ClassVar

from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import tool

from langchain_groundedness import GroundednessMiddleware, GroundednessRunnable
from langchain_groundedness.testing import AgentMiddlewareContract, ScriptedVerifier


@tool(response_format="content_and_artifact")
def search(query: str) -> tuple[str, list[Document]]:
    """Search."""
    return "found", [Document(f"{query} has a capital, and it is large.")]


class Asked(BaseChatModel):
    """Searches, then answers, by what it was asked."""

    @property
    def _llm_type(self) -> str:
        return "asked"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self

    def _generate(self, messages: Any, *args: Any, **kwargs: Any) -> ChatResult:
        country = next(m for m in reversed(messages) if isinstance(m, HumanMessage)).text
        call: Any = {"name": "search", "args": {"query": country}, "id": "call-1"}
        said = AIMessage(f"The capital of {country} is large. The capital of {country} is tiny.")
        found = said if isinstance(messages[-1], ToolMessage) else AIMessage("", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=found)])


def verdict(claim: Any) -> Any:
    return "supported" if "large" in claim.text else "contradicted"


class TestAnnotatingMiddleware(AgentMiddlewareContract):
    options: ClassVar[dict[str, Any]] = {"on_ungrounded": "annotate"}

    def middleware(self) -> Any:
        checker = GroundednessRunnable(verifier=ScriptedVerifier(verdict))
        return GroundednessMiddleware(checker=checker, **self.options)

    def agent(self, middleware: Sequence[Any], checkpointer: Any = None) -> Runnable[Any, Any]:
        return create_agent(
            Asked(), [search], middleware=list(middleware), checkpointer=checkpointer
        )

    def questions(self) -> Sequence[str]:
        return ["Italy", "France"]


class TestCorrectingMiddleware(TestAnnotatingMiddleware):
    options: ClassVar[dict[str, Any]] = {"on_ungrounded": "correct"}

    def changes_answers(self) -> bool:
        return True


class TestBlockingMiddleware(TestAnnotatingMiddleware):
    options: ClassVar[dict[str, Any]] = {"on_ungrounded": "block"}

    def changes_answers(self) -> bool:
        return True


class TestRetryingMiddleware(TestAnnotatingMiddleware):
    options: ClassVar[dict[str, Any]] = {"on_ungrounded": "retry", "max_retries": 1}

    def changes_answers(self) -> bool:
        return True
