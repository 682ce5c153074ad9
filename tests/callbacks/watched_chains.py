"""Chains and agents of every shape, with models that write word by word, and ways to run them."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypedDict, cast

from langchain.agents import create_agent
from langchain_classic.chains import (
    ConversationalRetrievalChain,
    RetrievalQA,
    create_retrieval_chain,
)
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_core.callbacks import (
    AsyncCallbackManagerForLLMRun,
    CallbackManagerForLLMRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    ToolMessage,
)
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnablePassthrough
from langchain_core.tools import create_retriever_tool
from langgraph.graph import END, START, StateGraph

PROMPT = ChatPromptTemplate.from_template("Passages:\n{context}\n\nQuestion: {input}")
REWRITTEN = "Paris is the capital of Mars. What is the capital of"


def document(country: str) -> Document:
    text = f"The capital of {country} is {country}ville. The mayor of {country} earns $300."
    return Document(page_content=text, metadata={"source": f"{country}.md"})


def question(country: str) -> str:
    return f"What is the capital of {country}?"


def answer(country: str) -> str:
    return f"The capital of {country} is {country}ville. The mayor of {country} earns $500."


def country_in(text: str) -> str:
    return str(re.findall(r"capital of (\w+)", text)[-1])


class Atlas(BaseRetriever):
    """Finds the document about the country that it is asked about."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return [document(country_in(query))]


def reply(messages: Sequence[BaseMessage]) -> AIMessage:
    text = messages[-1].text
    if "standalone question" in text:
        return AIMessage(f"{REWRITTEN} {country_in(text)}?")
    asked = [message.text for message in messages if isinstance(message, HumanMessage)][-1]
    return AIMessage(answer(country_in(asked)))


def reply_with_search(messages: Sequence[BaseMessage]) -> AIMessage:
    if isinstance(messages[-1], ToolMessage):
        return reply(messages)
    call = {"name": "search", "args": {"query": messages[-1].text}, "id": "call-1"}
    return AIMessage("Paris is the capital of Mars, so I look it up.", tool_calls=[call])


class Writer(BaseChatModel):
    """Writes what a function says, word by word when it is streamed; takes tools."""

    says: Callable[[Sequence[BaseMessage]], AIMessage] = reply

    @property
    def _llm_type(self) -> str:
        return "writer"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self.says(messages))])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        for chunk in chunks(self.says(messages)):
            if run_manager:
                run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in chunks(self.says(messages)):
            await asyncio.sleep(0)
            if run_manager:
                await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk

    def bind_tools(
        self, tools: Sequence[Any], **kwargs: Any
    ) -> Runnable[LanguageModelInput, AIMessage]:
        return cast("Runnable[LanguageModelInput, AIMessage]", self)


def chunks(message: BaseMessage) -> Iterator[ChatGenerationChunk]:
    for word in re.findall(r"\s*\S+", message.text):
        yield ChatGenerationChunk(message=AIMessageChunk(content=word))
    calls = [
        tool_call_chunk(name=call["name"], args=_json(call["args"]), id=call["id"], index=place)
        for place, call in enumerate(getattr(message, "tool_calls", ()))
    ]
    last = AIMessageChunk(content="", tool_call_chunks=calls, chunk_position="last")
    yield ChatGenerationChunk(message=last)


def _json(args: dict[str, str]) -> str:
    inner = ", ".join(f'"{key}": "{value}"' for key, value in args.items())
    return f"{{{inner}}}"


class Shape(NamedTuple):
    """A kind of chain, and what it is given."""

    build: Callable[[], Runnable[Any, Any]]
    give: Callable[[str], Any]


def retrieval_chain(model: BaseChatModel | None = None) -> Runnable[Any, Any]:
    answering = create_stuff_documents_chain(model or Writer(), PROMPT)
    return cast("Runnable[Any, Any]", create_retrieval_chain(Atlas(), answering))


def lcel_chain(model: Runnable[Any, Any] | None = None) -> Runnable[Any, Any]:
    gather: Runnable[str, Any] = RunnablePassthrough[Any]() | {
        "context": Atlas() | _join,
        "input": RunnablePassthrough(),
    }
    return gather | PROMPT | (model or Writer()) | StrOutputParser()


def _join(documents: list[Document]) -> str:
    return "\n".join(each.page_content for each in documents)


def agent(response_format: Any) -> Runnable[Any, Any]:
    search = create_retriever_tool(Atlas(), "search", "Searches.", response_format=response_format)
    return cast("Runnable[Any, Any]", create_agent(Writer(says=reply_with_search), [search]))


class GraphState(TypedDict, total=False):
    """State of the graph."""

    question: str
    context: list[Document]
    generation: str


def graph() -> Runnable[Any, Any]:
    def retrieve(state: GraphState) -> GraphState:
        return {"context": Atlas().invoke(state["question"])}

    def generate(state: GraphState) -> GraphState:
        given = {"context": _join(state["context"]), "input": state["question"]}
        return {"generation": (PROMPT | Writer() | StrOutputParser()).invoke(given)}

    built = StateGraph(GraphState)
    built.add_node("retrieve", retrieve)
    built.add_node("generate", generate)
    built.add_edge(START, "retrieve")
    built.add_edge("retrieve", "generate")
    built.add_edge("generate", END)
    return cast("Runnable[Any, Any]", built.compile())


def messages(asked: str) -> dict[str, Any]:
    return {"messages": [HumanMessage(asked)]}


SHAPES = {
    "create_retrieval_chain": Shape(retrieval_chain, lambda asked: {"input": asked}),
    "RetrievalQA": Shape(
        lambda: RetrievalQA.from_chain_type(Writer(), retriever=Atlas()),
        lambda asked: {"query": asked},
    ),
    "ConversationalRetrievalChain": Shape(
        lambda: ConversationalRetrievalChain.from_llm(Writer(), retriever=Atlas()),
        lambda asked: {"question": asked, "chat_history": [("Hi", "Hello")]},
    ),
    "LCEL": Shape(lcel_chain, lambda asked: asked),
    "agent, content": Shape(lambda: agent("content"), messages),
    "agent, content_and_artifact": Shape(lambda: agent("content_and_artifact"), messages),
    "LangGraph": Shape(graph, lambda asked: {"question": asked}),
}


def run(mode: str, chain: Runnable[Any, Any], inputs: list[Any], config: Any) -> None:
    """Run a chain over inputs, in one of the six ways."""
    if mode.startswith("a"):
        asyncio.run(arun(mode, chain, inputs, config))
    elif mode == "batch":
        chain.batch(inputs, config)
    else:
        for each in inputs:
            if mode == "stream":
                list(chain.stream(each, config))
            else:
                chain.invoke(each, config)


async def arun(mode: str, chain: Runnable[Any, Any], inputs: list[Any], config: Any) -> None:
    """Run a chain over inputs on the running loop."""
    if mode == "abatch":
        await chain.abatch(inputs, config)
        return
    for each in inputs:
        if mode == "astream":
            async for _ in chain.astream(each, config):
                pass
        else:
            await chain.ainvoke(each, config)
