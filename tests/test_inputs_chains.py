"""Real chains and agents, run with scripted models, must be readable without an adapter."""

import warnings
from collections.abc import Sequence
from typing import Any, Literal, cast

import pytest
from langchain.agents import create_agent
from langchain.agents.structured_output import ToolStrategy
from langchain.tools import tool
from langchain_classic.chains import (
    ConversationalRetrievalChain,
    RetrievalQA,
    RetrievalQAWithSourcesChain,
    create_retrieval_chain,
)
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.language_models import (
    FakeListChatModel,
    FakeMessagesListChatModel,
    LanguageModelInput,
)
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableParallel, RunnablePassthrough
from langchain_core.tools import create_retriever_tool
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel

from langchain_groundedness.exceptions import InputFormatError
from langchain_groundedness.inputs import CheckInput, read_input

QUESTION = "What is the capital of Italy?"
ANSWER = "Rome is the capital."
ROME = Document(page_content="Rome is the capital of Italy.", metadata={"source": "rome.md"})
PROMPT = ChatPromptTemplate.from_template("{context}\n{input}")
DEPRECATED = pytest.mark.filterwarnings(
    "ignore:The class `(RetrievalQA|ConversationalRetrievalChain|RetrievalQAWithSourcesChain"
    "|LLMChain|StuffDocumentsChain)`"
    ":langchain_core._api.deprecation.LangChainDeprecationWarning"
)


class OneDocument(BaseRetriever):
    """Finds the same document whatever it is asked."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        del query, run_manager
        return [ROME]


class AgentModel(FakeMessagesListChatModel):
    """Plays back messages, and lets an agent bind tools to it."""

    def bind_tools(
        self, tools: Sequence[Any], **kwargs: Any
    ) -> Runnable[LanguageModelInput, AIMessage]:
        del tools, kwargs
        return cast("Runnable[LanguageModelInput, AIMessage]", self)


def model(*replies: str) -> FakeListChatModel:
    return FakeListChatModel(responses=list(replies or [ANSWER]))


def calling(name: str, call_id: str = "1", **args: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": args, "id": call_id}])


EXPECTED = CheckInput(question=QUESTION, answer=ANSWER, documents=(ROME,))


def test_create_retrieval_chain() -> None:
    chain = create_retrieval_chain(OneDocument(), create_stuff_documents_chain(model(), PROMPT))
    assert read_input(chain.invoke({"input": QUESTION})) == EXPECTED


def test_the_sum_of_the_stream_of_create_retrieval_chain() -> None:
    chain = create_retrieval_chain(OneDocument(), create_stuff_documents_chain(model(), PROMPT))
    chunks = list(chain.stream({"input": QUESTION}))
    total = chunks[0]
    for chunk in chunks[1:]:
        total = total + chunk
    assert read_input(total) == EXPECTED


def test_create_retrieval_chain_with_a_conversation_behind_it() -> None:
    chain = create_retrieval_chain(OneDocument(), create_stuff_documents_chain(model(), PROMPT))
    history = [HumanMessage("Capital of Norway?"), AIMessage("Oslo.")]
    assert read_input(chain.invoke({"input": QUESTION, "chat_history": history})) == EXPECTED


def test_a_stuff_documents_chain_gives_the_answer_alone() -> None:
    chain = create_stuff_documents_chain(model(), PROMPT)
    output = chain.invoke({"input": QUESTION, "context": [ROME]})
    assert read_input(output) == CheckInput(answer=ANSWER)
    assert read_input((output, [ROME])) == CheckInput(answer=ANSWER, documents=(ROME,))


@DEPRECATED
def test_retrieval_qa() -> None:
    chain = RetrievalQA.from_chain_type(
        model(), retriever=OneDocument(), return_source_documents=True
    )
    assert read_input(chain.invoke({"query": QUESTION})) == EXPECTED


@DEPRECATED
def test_retrieval_qa_that_does_not_return_its_documents() -> None:
    chain = RetrievalQA.from_chain_type(model(), retriever=OneDocument())
    read = read_input(chain.invoke({"query": QUESTION}))
    assert read == CheckInput(question=QUESTION, answer=ANSWER)


@DEPRECATED
def test_conversational_retrieval_chain() -> None:
    chain = ConversationalRetrievalChain.from_llm(
        model("Capital of Italy, standalone?", ANSWER),
        retriever=OneDocument(),
        return_source_documents=True,
        return_generated_question=True,
    )
    output = chain.invoke({"question": QUESTION, "chat_history": [("Hi", "Hello")]})
    assert read_input(output) == EXPECTED


@DEPRECATED
def test_retrieval_qa_with_sources_chain() -> None:
    chain = RetrievalQAWithSourcesChain.from_chain_type(
        model(f"{ANSWER}\nSOURCES: rome.md"), retriever=OneDocument(), return_source_documents=True
    )
    read = read_input(chain.invoke({"question": QUESTION}))
    assert read.answer.strip() == ANSWER
    assert (read.question, read.documents) == (QUESTION, (ROME,))


@pytest.mark.parametrize("parsed", [True, False])
def test_plain_lcel(parsed: bool) -> None:  # noqa: FBT001  (pytest passes it by name)
    reply: Runnable[Any, Any] = PROMPT | model()
    if parsed:
        reply = reply | StrOutputParser()
    gather: Runnable[str, Any] = RunnableParallel(
        input=RunnablePassthrough(), context=OneDocument()
    )
    assert read_input((gather | RunnablePassthrough.assign(answer=reply)).invoke(QUESTION)) == (
        EXPECTED
    )
    assert read_input((gather | reply).invoke(QUESTION)) == CheckInput(answer=ANSWER)


@pytest.mark.parametrize("response_format", ["content", "content_and_artifact"])
async def test_an_agent_with_a_retriever_tool(
    response_format: Literal["content", "content_and_artifact"],
) -> None:
    search = create_retriever_tool(
        OneDocument(), "search", "Finds.", response_format=response_format
    )
    agent = create_agent(
        AgentModel(responses=[calling("search", query="Italy"), AIMessage(ANSWER)]), [search]
    )
    read = read_input(await agent.ainvoke({"messages": [HumanMessage(QUESTION)]}))
    assert (read.question, read.answer) == (QUESTION, ANSWER)
    if response_format == "content_and_artifact":
        assert read.documents == (ROME,)
    else:
        assert [d.page_content for d in read.documents] == [ROME.page_content]
        assert read.documents[0].metadata == {"tool": "search", "tool_call_id": "1"}


def test_an_agent_asked_again_in_the_same_thread_is_read_for_its_last_turn() -> None:
    @tool
    def look_up(about: str) -> str:
        """Look something up."""
        return f"About {about}."

    replies: list[BaseMessage] = [
        calling("look_up", about="Norway"),
        AIMessage("Oslo."),
        calling("look_up", "2", about="Italy"),
        AIMessage(ANSWER),
    ]
    agent = create_agent(AgentModel(responses=replies), [look_up], checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "1"}}
    agent.invoke({"messages": [HumanMessage("Capital of Norway?")]}, config)
    output = agent.invoke({"messages": [HumanMessage(QUESTION)]}, config)
    read = read_input(output)
    assert (read.question, read.answer) == (QUESTION, ANSWER)
    assert [d.page_content for d in read.documents] == ["About Italy.", "About Norway."]
    assert [d.metadata.get("turn") for d in read.documents] == [None, 1]
    last = read_input(output, evidence="turn")
    assert [d.page_content for d in last.documents] == ["About Italy."]


class Capital(BaseModel):
    """The capital of a country."""

    city: str
    country: str


def structured_agent(*replies: BaseMessage) -> Any:
    search = create_retriever_tool(
        OneDocument(), "search", "Finds.", response_format="content_and_artifact"
    )
    return create_agent(
        AgentModel(responses=list(replies)), [search], response_format=ToolStrategy(Capital)
    )


def test_an_agent_with_a_structured_response() -> None:
    agent = structured_agent(
        calling("search", query="Italy"),
        calling("Capital", "2", city="Rome"),  # refused by the schema, and asked again
        calling("Capital", "3", city="Rome", country="Italy"),
    )
    output = agent.invoke({"messages": [HumanMessage(QUESTION)]})
    assert output["messages"][-1].type == "tool"
    assert read_input(output) == CheckInput(
        question=QUESTION,
        answer="city: Rome\ncountry: Italy",
        documents=(ROME,),
        evidence_source="retrieved",
    )


def test_the_typed_output_of_a_graph() -> None:
    agent = structured_agent(calling("Capital", city="Rome", country="Italy"))
    output = agent.invoke({"messages": [HumanMessage(QUESTION)]}, version="v2")
    assert read_input(output).answer == "city: Rome\ncountry: Italy"


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_an_agent_interrupted_before_its_answer_is_refused(version: str) -> None:
    agent: Any = create_agent(
        AgentModel(responses=[calling("search", query="Italy")]),
        [create_retriever_tool(OneDocument(), "search", "Finds.")],
        checkpointer=InMemorySaver(),
        interrupt_before=["tools"],
    )
    output = agent.invoke(
        {"messages": [HumanMessage(QUESTION)]},
        {"configurable": {"thread_id": "1"}},
        version=version,
    )
    with pytest.raises(InputFormatError):
        read_input(output)


def test_a_chain_over_the_bm25_retriever_of_langchain_community() -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message=".*langchain-community.*", category=DeprecationWarning
        )
        from langchain_community.retrievers import BM25Retriever  # noqa: PLC0415  (warns when imported)

    other = Document(page_content="Oslo is a city of Norway.")
    third = Document(page_content="Bergen lies west of it.")
    retriever = BM25Retriever.from_documents([other, third, ROME], k=1)
    chain = create_retrieval_chain(retriever, create_stuff_documents_chain(model(), PROMPT))
    assert read_input(chain.invoke({"input": QUESTION})) == EXPECTED
