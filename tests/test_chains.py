"""The runnable behind real chains and agents, as a user puts it there."""

import warnings
from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Any, cast

import pytest
from langchain.agents import create_agent
from langchain_classic.chains import RetrievalQA, create_retrieval_chain
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_core.documents import Document
from langchain_core.language_models import (
    FakeListChatModel,
    FakeMessagesListChatModel,
    LanguageModelInput,
)
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnablePassthrough
from langchain_core.tools import create_retriever_tool

from langchain_groundedness import GroundednessResult, GroundednessRunnable

DOCUMENTS = [
    Document(page_content="Revenue was $2.1B in Q3, up 12% from last year.", id="report"),
    Document(page_content="The S2 weather station has a warranty of two years.", id="manual"),
    Document(page_content="Employees may work from home on Fridays.", id="policy"),
]
QUESTION = "What was revenue in Q3, and how long is the warranty of the S2?"
ANSWER = "Revenue was $2.4B in Q3. The S2 weather station has a warranty of two years."
CORRECTED = ANSWER.replace("$2.4B", "[CORRECTED: $2.1B]")
PROMPT = ChatPromptTemplate.from_template("{context}\n{input}")


class AgentModel(FakeMessagesListChatModel):
    """Plays back messages, and lets an agent bind tools to it."""

    def bind_tools(
        self, tools: Sequence[Any], **kwargs: Any
    ) -> Runnable[LanguageModelInput, AIMessage]:
        return cast("Runnable[LanguageModelInput, AIMessage]", self)


@pytest.fixture(scope="module")
def retriever() -> BaseRetriever:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "`langchain-community` is being sunset")
        from langchain_community.retrievers import BM25Retriever  # noqa: PLC0415  (warns when imported)
    return BM25Retriever.from_documents(DOCUMENTS, k=2)


def assert_right(result: GroundednessResult) -> None:
    assert [v.verdict for v in result.claims] == ["contradicted", "supported"]
    assert result.answer == CORRECTED
    for v in result.claims:
        for citation in v.citations:
            page = result.documents[citation.document].page_content
            assert page[citation.start : citation.end] == citation.quote
    assert result.claims[0].citations[0].document_id == "report"


def test_a_retrieval_chain_of_langchain_classic(retriever: BaseRetriever) -> None:
    combine = create_stuff_documents_chain(FakeListChatModel(responses=[ANSWER]), PROMPT)
    checked = create_retrieval_chain(retriever, combine).pipe(
        GroundednessRunnable(on_contradicted="correct")
    )
    result = checked.invoke({"input": QUESTION})
    assert_right(result)
    assert result.question == QUESTION
    assert reduce(add, checked.stream({"input": QUESTION})) == result


async def test_an_lcel_chain_in_every_way_to_call_it(retriever: BaseRetriever) -> None:
    answer = PROMPT | FakeListChatModel(responses=[ANSWER]) | StrOutputParser()
    chain: Runnable[Any, Any] = {
        "input": RunnablePassthrough(),
        "context": retriever,
    } | RunnablePassthrough.assign(answer=answer)
    checked = chain | GroundednessRunnable(on_contradicted="correct")
    assert_right(await checked.ainvoke(QUESTION))
    for result in await checked.abatch([QUESTION, QUESTION]):
        assert_right(result)
    assert_right(reduce(add, [chunk async for chunk in checked.astream(QUESTION)]))
    names = {event["name"] async for event in checked.astream_events(QUESTION, version="v2")}
    # Sentences are read off the growing answer, so the extraction is no run: claims are events.
    steps = {"GroundednessRunnable", "verify_claims", "correct_answer", "recheck_edits"}
    events = {f"groundedness.{kind}" for kind in ("claim", "verdict", "correction", "decision")}
    assert steps | events <= names


@pytest.mark.filterwarnings("ignore:The class `:DeprecationWarning")
def test_retrieval_qa(retriever: BaseRetriever) -> None:
    chain = RetrievalQA.from_llm(
        FakeListChatModel(responses=[ANSWER]), retriever=retriever, return_source_documents=True
    )
    checked = chain | GroundednessRunnable(on_contradicted="correct")
    assert_right(checked.invoke({"query": QUESTION}))


def test_an_agent_with_a_retriever_tool(retriever: BaseRetriever) -> None:
    tool = create_retriever_tool(
        retriever, "search", "Search.", response_format="content_and_artifact"
    )
    call = {"name": "search", "args": {"query": QUESTION}, "id": "1"}
    model = AgentModel(responses=[AIMessage("", tool_calls=[call]), AIMessage(ANSWER)])
    checked = create_agent(model, [tool]) | GroundednessRunnable(on_contradicted="correct")
    assert_right(checked.invoke({"messages": [HumanMessage(QUESTION)]}))


def test_an_agent_that_is_streamed_gives_its_updates(retriever: BaseRetriever) -> None:
    tool = create_retriever_tool(
        retriever, "search", "Search.", response_format="content_and_artifact"
    )
    call = {"name": "search", "args": {"query": QUESTION}, "id": "1"}
    model = AgentModel(responses=[AIMessage("", tool_calls=[call]), AIMessage(ANSWER)])
    checked = create_agent(model, [tool]) | GroundednessRunnable(on_contradicted="correct")
    chunks = list(checked.stream({"messages": [HumanMessage(QUESTION)]}))
    assert_right(reduce(add, chunks))


def test_a_graph_that_is_streamed_gives_the_last_form_of_each_message() -> None:
    found = [ToolMessage("Paris is the capital of France.", tool_call_id="1", id="t")]
    updates = [
        {"tools": {"messages": found}},
        {"model": {"messages": [AIMessage("Lima is.", id="a"), AIMessage("Draft.", id="b")]}},
        {"audit": None},
        {"edit": {"messages": [RemoveMessage("b"), AIMessage("Paris is the capital.", id="a")]}},
    ]
    result = reduce(add, GroundednessRunnable().transform(iter(updates)))
    assert result.original_answer == "Paris is the capital."
    assert [document.page_content for document in result.documents] == [found[0].text]
