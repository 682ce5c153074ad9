"""Documents are taken from where they can be trusted most, in the order that the README gives."""

from typing import Any
from uuid import uuid4

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain.tools import tool
from langchain_classic.retrievers import ContextualCompressionRetriever
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, Generation, LLMResult
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_core.tools import create_retriever_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt
from watched_chains import (
    PROMPT,
    Atlas,
    Writer,
    answer,
    country_in,
    document,
    messages,
    question,
    reply,
    reply_with_search,
)

from langchain_groundedness import (
    GroundednessCallbackHandler,
    GroundednessRunnable,
    InputFormatError,
)
from langchain_groundedness.callbacks.run_inputs import RunInputs, answer_of

ONE, TWO, THREE = Document("One."), Document("Two."), Document("Three.")


def texts(documents: Any) -> list[str]:
    return [each.page_content for each in documents]


def test_retrieved_documents_come_before_those_of_the_output_and_the_inputs() -> None:
    gathered = RunInputs()
    gathered.take_inputs({"question": "Which?", "context": [THREE]})
    output = {"answer": "One.", "source_documents": [TWO]}
    assert texts(gathered.read({"answer": "One."}).documents) == ["Three."]
    assert texts(gathered.read(output).documents) == ["Two."]
    gathered.take_retrieved([ONE, ONE], tool=None)
    assert texts(gathered.read(output).documents) == ["One."]
    assert gathered.read(output).question == "Which?"


@pytest.mark.parametrize(
    "inputs",
    [
        "Which?",
        {"input": "Which?"},
        {"query": "Which?", "context": object()},
        {"messages": [HumanMessage("Which?")]},
        {"messages": [("user", "Which?")]},
        [HumanMessage("Which?")],
    ],
)
def test_the_question_is_read_from_every_form_of_input(inputs: Any) -> None:
    gathered = RunInputs()
    gathered.take_inputs({"input": ""})  # as a chain says that streams
    gathered.take_inputs(inputs)
    gathered.take_inputs("Another?")
    assert gathered.read("That one.").question == "Which?"


@pytest.mark.parametrize("inputs", [None, 3, [], ["a"], {}, {"messages": 3}, object()])
def test_inputs_without_a_question_do_no_harm(inputs: Any) -> None:
    gathered = RunInputs()
    gathered.take_inputs(inputs)
    assert gathered.read("That one.").question is None


@pytest.mark.parametrize(
    ("output", "found"),
    [
        ("Text.", ["Text."]),
        (ToolMessage("Text.", tool_call_id="1"), ["Text."]),
        (ToolMessage("Text.", tool_call_id="1", artifact=[ONE, TWO]), ["One.", "Two."]),
        (ToolMessage("Text.", tool_call_id="1", status="error"), []),
        ([ONE], ["One."]),
        ({"rivers": 3}, ['{"rivers": 3}']),
        (Command(update={"messages": [ToolMessage("Text.", tool_call_id="1")]}), ["Text."]),
        (Command(goto="there"), []),
        (None, []),
        ("", []),
    ],
)
def test_a_tool_says_what_it_found_in_any_form(output: Any, found: list[str]) -> None:
    gathered = RunInputs()
    gathered.take_tool_output(output, tool=uuid4(), name="look_up")
    assert texts(gathered.documents) == found


def test_what_a_retriever_in_a_tool_found_comes_before_the_text_of_the_tool() -> None:
    gathered, run = RunInputs(), uuid4()
    gathered.take_retrieved([ONE], tool=run)
    gathered.take_tool_output(ToolMessage("One. Perhaps.", tool_call_id="1"), tool=run)
    assert texts(gathered.documents) == ["One."]


def test_what_a_tool_found_that_failed_later_is_no_evidence() -> None:
    gathered, run = RunInputs(), uuid4()
    gathered.take_retrieved([ONE], tool=run)
    gathered.drop_tool(run)
    assert gathered.documents == ()


def test_results_from_before_a_pause_are_read_from_the_messages() -> None:
    gathered, run = RunInputs(), uuid4()
    late = ToolMessage("Two.", tool_call_id="2")
    gathered.take_tool_output(late, tool=run)
    state = [
        HumanMessage("Old?"),
        ToolMessage("Old.", tool_call_id="0"),
        HumanMessage("Which?"),
        ToolMessage("One.", tool_call_id="1"),
        late,
        AIMessage("Both."),
    ]
    assert texts(gathered.read({"messages": state}).documents) == ["Two.", "One."]


def test_a_result_that_is_itself_the_answer_is_no_evidence_for_it() -> None:
    gathered, run = RunInputs(), uuid4()
    gathered.take_tool_output(ToolMessage("One.", tool_call_id="1"), tool=uuid4())
    direct = ToolMessage("Two.", tool_call_id="2")
    gathered.take_tool_output(direct, tool=run)
    state = [HumanMessage("Which?"), ToolMessage("One.", tool_call_id="1"), direct]
    read = gathered.read({"messages": state})
    assert (read.answer, texts(read.documents)) == ("Two.", ["One."])


def test_an_extractor_has_the_last_word_on_documents() -> None:
    gathered = RunInputs()
    gathered.take_retrieved([ONE], tool=None)
    read = gathered.read({"x": "Two."}, context_extractor=lambda given: (given["x"], [TWO]))
    assert (read.answer, texts(read.documents)) == ("Two.", ["Two."])
    read = gathered.read({"x": "Two."}, context_extractor=lambda given: given["x"])
    assert texts(read.documents) == ["One."]


def test_an_output_without_an_answer_is_refused() -> None:
    with pytest.raises(InputFormatError):
        RunInputs().read({"found": [ONE]})


def test_a_model_by_itself_answers_unless_it_calls_a_tool() -> None:
    calling = AIMessage("Let me see.", tool_calls=[{"name": "see", "args": {}, "id": "1"}])
    assert answer_of(LLMResult(generations=[[ChatGeneration(message=AIMessage("Yes."))]])) == "Yes."
    assert answer_of(LLMResult(generations=[[Generation(text="Yes.")]])) == "Yes."
    assert answer_of(LLMResult(generations=[[ChatGeneration(message=calling)]])) is None
    assert answer_of(LLMResult(generations=[])) is None


class Dropping(BaseDocumentCompressor):
    """Keeps the first documents."""

    keep: int

    def compress_documents(self, documents: Any, query: str, callbacks: Any = None) -> Any:
        return documents[: self.keep]


@pytest.mark.parametrize("keep", [0, 1])
def test_documents_that_an_outer_retriever_drops_are_no_evidence(keep: int) -> None:
    class Two(Atlas):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            return [document("Land1"), document("Land2")]

    retriever = ContextualCompressionRetriever(
        base_compressor=Dropping(keep=keep), base_retriever=Two()
    )
    chain: Runnable[Any, Any] = retriever | RunnableLambda(lambda _: answer("Land1"))
    handler = GroundednessCallbackHandler()
    chain.invoke(question("Land1"), {"callbacks": [handler]})
    [result] = handler.results.values()
    assert len(result.documents) == keep
    assert result.verdict == ("has_contradictions" if keep else "unchecked")


def test_a_second_turn_of_a_thread_is_checked_against_its_own_documents() -> None:
    handler = GroundednessCallbackHandler()
    search = create_retriever_tool(Atlas(), "search", "Searches.")
    graph: Any = create_agent(
        Writer(says=reply_with_search), [search], checkpointer=InMemorySaver()
    )
    config: Any = {"configurable": {"thread_id": "1"}, "callbacks": [handler]}
    for country in ("Land1", "Land2"):
        graph.invoke(messages(question(country)), config)
    found = {result.question: texts(result.documents) for result in handler.results.values()}
    assert found == {
        question(country): [document(country).page_content] for country in ("Land1", "Land2")
    }


@pytest.mark.parametrize("mode", ["invoke", "stream"])
def test_an_agent_that_goes_on_after_a_pause_is_checked_against_what_it_found_before(
    mode: str,
) -> None:
    class Review(AgentMiddleware[Any, Any]):
        def before_model(self, state: Any, runtime: Any) -> None:
            if state["messages"][-1].type == "tool":
                interrupt("Go on?")

    handler = GroundednessCallbackHandler()
    search = create_retriever_tool(Atlas(), "search", "Searches.")
    graph: Any = create_agent(
        Writer(says=reply_with_search),
        [search],
        checkpointer=InMemorySaver(),
        middleware=[Review()],
    )
    config: Any = {"configurable": {"thread_id": "1"}, "callbacks": [handler]}
    list(getattr(graph, mode)(messages(question("Land1")), config))
    assert not handler.results
    list(getattr(graph, mode)(Command(resume="yes"), config))
    [result] = handler.results.values()
    assert (result.question, result.answer) == (question("Land1"), answer("Land1"))
    assert texts(result.documents) == [document("Land1").page_content]
    assert handler.open_runs == 0
    handler.close()
    assert [event.kind for event in handler.events()] == [
        "abandoned",
        "verdict",
        "verdict",
        "result",
    ]


def test_texts_of_tools_are_evidence() -> None:
    @tool
    def search(query: str) -> str:
        """Search."""
        return document(country_in(query)).page_content

    handler = GroundednessCallbackHandler()
    graph: Any = create_agent(Writer(says=reply_with_search), [search])
    graph.invoke(messages(question("Land1")), {"callbacks": [handler]})
    [result] = handler.results.values()
    assert texts(result.documents) == [document("Land1").page_content]
    assert result.documents[0].metadata == {"tool": "search", "tool_call_id": "call-1"}


def test_a_chain_that_is_given_its_documents_is_checked_against_them() -> None:
    handler = GroundednessCallbackHandler()
    chain: Runnable[Any, Any] = PROMPT | Writer(says=reply)
    given = {"context": [document("Land1")], "input": question("Land1")}
    chain.invoke(given, {"callbacks": [handler]})
    list(chain.stream(given, {"callbacks": [handler]}))
    assert [texts(r.documents) for r in handler.results.values()] == [
        [document("Land1").page_content]
    ] * 2


def test_an_extractor_of_the_checker_reads_outputs_of_any_shape() -> None:
    checker = GroundednessRunnable(context_extractor=lambda output: {"answer": output["said"]})
    handler = GroundednessCallbackHandler(checker)
    chain: Runnable[Any, Any] = Atlas() | RunnableLambda(lambda _: {"said": answer("Land1")})
    chain.invoke(question("Land1"), {"callbacks": [handler]})
    [result] = handler.results.values()
    assert result.answer == answer("Land1")
    assert texts(result.documents) == [document("Land1").page_content]
