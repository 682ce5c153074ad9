"""Documents are taken from where they can be trusted most, in the order that the README gives."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from operator import add, itemgetter
from typing import Annotated, Any, TypedDict, cast

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain.tools import tool
from langchain_classic.chains import create_retrieval_chain
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_classic.retrievers import ContextualCompressionRetriever
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import ChatGeneration, Generation, LLMResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableLambda, RunnablePassthrough
from langchain_core.tools import create_retriever_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, Send, interrupt
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
    run,
)

from langchain_groundedness import (
    GroundednessCallbackHandler,
    GroundednessResult,
    GroundednessRunnable,
)
from langchain_groundedness.callbacks.run_inputs import answer_of

ONE, TWO, THREE = Document("One."), Document("Two."), Document("Three.")


def texts(documents: Any) -> list[str]:
    return [each.page_content for each in documents]


def returning(value: Any) -> Any:
    """Make a function of one value."""
    return lambda _: value


def checked(chain: Runnable[Any, Any], given: Any, **options: Any) -> GroundednessResult:
    """Run a chain with a handler, and give its only result."""
    handler = GroundednessCallbackHandler(**options)
    chain.invoke(given, {"callbacks": [handler]})
    [result] = handler.results.values()
    return result


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
    chain = RunnableLambda(returning("Another?")) | RunnableLambda(returning("That one."))
    assert checked(chain, inputs).question == "Which?"


@pytest.mark.parametrize("inputs", [None, 3, [], ["a"], {}, {"messages": 3}, object()])
def test_inputs_without_a_question_do_no_harm(inputs: Any) -> None:
    assert checked(RunnableLambda(returning("That one.")), inputs).question is None


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
    @tool
    def look_up() -> Any:
        """Look up."""
        return output

    chain = RunnableLambda(lambda _: look_up.invoke({})) | RunnableLambda(returning("Rome."))
    assert texts(checked(chain, "Which?").documents) == found


def retriever_of(*documents: Document) -> Runnable[Any, Any]:
    class Fixed(Atlas):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            return list(documents)

    return Fixed()


def tool_chain(result: Any, *found: Document) -> Runnable[Any, Any]:
    """Make a chain with a tool that retrieves documents and returns something."""

    @tool(response_format="content_and_artifact" if isinstance(result, tuple) else "content")
    def look_up(query: str) -> Any:
        """Look up."""
        retriever_of(*found).invoke(query)
        if isinstance(result, Exception):
            raise result
        return result

    def ask(query: str) -> str:
        with suppress(RuntimeError):
            call: Any = {"name": "look_up", "args": {"query": query}, "id": "1"}
            look_up.invoke({**call, "type": "tool_call"})
        return "Rome."

    return RunnableLambda(ask)


@pytest.mark.parametrize(
    ("result", "found"),
    [
        ("One. Perhaps.", ["One."]),  # retrieved documents that it returns, with their metadata
        ("Nothing.", ["Nothing."]),
        (("Some text.", [TWO]), ["Two."]),
        (RuntimeError("later"), []),
    ],
)
def test_of_what_a_tool_retrieves_only_what_it_returns_is_evidence(
    result: Any, found: list[str]
) -> None:
    result = checked(tool_chain(result, ONE, THREE), "Which?")
    assert texts(result.documents) == found
    assert all(document is ONE for document in result.documents if document == ONE)


def test_a_result_that_is_itself_the_answer_is_no_evidence_for_it() -> None:
    @tool
    def first() -> str:
        """Look up."""
        return "One."

    @tool(return_direct=True)
    def second() -> str:
        """Look up."""
        return "Two."

    def call_both(messages: Any) -> AIMessage:
        name = "second" if isinstance(messages[-1], ToolMessage) else "first"
        return AIMessage("", tool_calls=[{"name": name, "args": {}, "id": name}])

    model = Writer(says=call_both)
    result = checked(create_agent(model, [first, second]), messages("Which?"))
    assert (result.answer, texts(result.documents)) == ("Two.", ["One."])


def test_an_extractor_has_the_last_word_on_documents() -> None:
    chain = retriever_of(ONE) | RunnableLambda(returning({"x": "Two."}))
    options: list[Any] = [lambda given: (given["x"], [TWO]), lambda given: given["x"]]
    found = [
        texts(checked(chain, "?", checker=GroundednessRunnable(context_extractor=each)).documents)
        for each in options
    ]
    assert found == [["Two."], ["One."]]


# What the model saw

WITHDRAWN = Document(
    "The capital of Land1 is Land1ville. The mayor of Land1 earns $500.", id="withdrawn"
)
CURRENT = Document(document("Land1").page_content, id="current")
ASKED = question("Land1")
PASS = RunnablePassthrough[Any]()


def joined(documents: list[Document]) -> str:
    return "\n\n".join(f"[{n}] {each.page_content}" for n, each in enumerate(documents))


def current(documents: list[Document]) -> list[Document]:
    return [each for each in documents if each.id != "withdrawn"]


def call_directly(documents: list[Document]) -> str:
    return Writer().invoke(f"{joined(documents)}\n\n{ASKED}").text


def fallback(first: Any, second: Any) -> Any:
    return first.with_fallbacks([second])


def down(_: Any) -> AIMessage:
    raise RuntimeError


BOTH = retriever_of(WITHDRAWN, CURRENT)
FILTERED = BOTH | RunnableLambda(current)
FILTERED_CHAINS: dict[str, tuple[Runnable[Any, Any], str]] = {
    "documents in the prompt": (
        {"context": FILTERED, "input": PASS} | PROMPT | Writer() | StrOutputParser(),
        "prompt",
    ),
    "texts in the prompt": (
        {"context": FILTERED | joined, "input": PASS} | PROMPT | Writer(),
        "prompt",
    ),
    "texts under a key of one's own": (
        {"hits": FILTERED | joined, "input": PASS}
        | ChatPromptTemplate.from_template("{hits}\n\n{input}")
        | Writer(),
        "prompt",
    ),
    "a function that calls a model": (FILTERED | RunnableLambda(call_directly), "prompt"),
    "a step that calls a model unseen": (
        FILTERED | RunnableLambda(lambda documents: answer("Land1") if documents else ""),
        "prompt",
    ),
    "returned documents": (
        RunnablePassthrough.assign(context=itemgetter("input") | FILTERED)
        | RunnablePassthrough.assign(answer=PROMPT | Writer()),
        "returned",
    ),
    "a chain of combined documents": (
        create_retrieval_chain(FILTERED, create_stuff_documents_chain(Writer(), PROMPT)),
        "returned",
    ),
    "a retry": (
        (
            {"context": PASS, "input": PASS}
            | RunnableLambda(lambda given: flaky(given["input"]))
            | RunnableLambda(returning(answer("Land1")))
        ),
        "prompt",
    ),
    "a fallback": (
        PASS
        | fallback(
            BOTH | RunnableLambda(joined) | Writer(says=down),
            retriever_of(CURRENT) | RunnableLambda(call_directly),
        ),
        "prompt",
    ),
    "fallbacks of the whole chain": (
        fallback(
            BOTH | RunnableLambda(joined) | Writer(says=down),
            fallback(
                BOTH | RunnableLambda(down),
                retriever_of(CURRENT) | RunnableLambda(call_directly),
            ),
        ),
        "prompt",
    ),
    "a fallback without a model": (
        PASS
        | fallback(
            BOTH | RunnableLambda(down),
            RunnableLambda(lambda asked: retriever_of(CURRENT).invoke(asked) and answer("Land1")),
        ),
        "retrieved",
    ),
    "a chain beside it": (
        RunnablePassthrough.assign(hits=itemgetter("input") | retriever_of(CURRENT))
        | {
            "answer": RunnableLambda(lambda given: call_directly(given["hits"])),
            "see_also": RunnableLambda(lambda given: joined(BOTH.invoke(given["input"]))),
        },
        "prompt",
    ),
}
_TRIES: list[str] = []


def _flaky(asked: str) -> list[Document]:
    _TRIES.append(asked)
    if len(_TRIES) % 2:
        BOTH.invoke(asked)
        raise RuntimeError
    return cast("list[Document]", retriever_of(CURRENT).invoke(asked))


def flaky(asked: str) -> list[Document]:
    retried = RunnableLambda(_flaky).with_retry(wait_exponential_jitter=False)
    return retried.invoke(asked)


@pytest.mark.parametrize("mode", ["invoke", "ainvoke", "stream", "astream"])
@pytest.mark.parametrize("name", FILTERED_CHAINS)
def test_only_what_the_model_saw_is_evidence(name: str, mode: str) -> None:
    chain, source = FILTERED_CHAINS[name]
    handler = GroundednessCallbackHandler()
    keyed = name in {"returned documents", "a chain of combined documents", "a chain beside it"}
    run(mode, chain, [{"input": ASKED} if keyed else ASKED], {"callbacks": [handler]})
    [result] = handler.results.values()
    assert result.answer == answer("Land1")
    assert result.documents == (CURRENT,)
    assert result.verdict == "has_contradictions"
    assert result.evidence_source == source
    assert handler.open_runs == 0


@pytest.mark.parametrize("mode", ["invoke", "astream"])
def test_a_graph_that_grades_what_several_branches_retrieve_is_checked_against_the_rest(
    mode: str,
) -> None:
    class State(TypedDict, total=False):
        question: str
        found: Annotated[list[Document], add]
        context: str
        answer: str

    def retrieve(state: Any) -> Any:
        return {"found": retriever_of(state["wanted"]).invoke(state["question"])}

    def spread(state: State) -> list[Send]:
        asked = state["question"]
        return [Send("retrieve", {"question": asked, "wanted": w}) for w in (WITHDRAWN, CURRENT)]

    def generate(state: State) -> State:
        text = joined(current(state["found"]))
        chain = PROMPT | Writer() | StrOutputParser()
        return {"answer": chain.invoke({"context": text, "input": state["question"]})}

    inner = StateGraph(State)
    inner.add_node("generate", generate)
    inner.add_edge(START, "generate")
    graph = StateGraph(State)
    graph.add_node("retrieve", retrieve)
    graph.add_node("write", inner.compile())
    graph.add_conditional_edges(START, spread, ["retrieve"])
    graph.add_edge("retrieve", "write")

    class Answer(TypedDict):
        answer: str

    whole = StateGraph(State, output_schema=Answer)
    whole.add_node("all", lambda state: {"answer": graph.compile().invoke(state)["answer"]})
    whole.add_edge(START, "all")
    handler = GroundednessCallbackHandler()
    run(mode, whole.compile(), [{"question": ASKED}], {"callbacks": [handler]})
    [result] = handler.results.values()
    assert result.documents == (CURRENT,)
    assert result.evidence_source == "prompt"


def test_documents_that_the_prompt_cuts_short_are_whole_evidence() -> None:
    long = Document("The harbour of Land1 is old. " * 30, id="long")
    hits = retriever_of(long, CURRENT) | (
        lambda found: "\n".join(d.page_content[:300] for d in found)
    )
    result = checked({"context": hits, "input": PASS} | PROMPT | Writer(), ASKED)
    assert result.documents == (long, CURRENT)


def test_what_a_prompt_says_beside_its_documents_is_evidence_too() -> None:
    extra = "The municipal register says that the mayor of Land1 earns $500 a month."
    hits = BOTH | RunnableLambda(current) | (lambda found: f"{joined(found)}\n\n{extra}")
    result = checked({"context": hits, "input": PASS} | PROMPT | Writer(), ASKED)
    assert texts(result.documents) == [CURRENT.page_content, f"{extra}"]


def test_documents_given_to_the_chain_are_the_last_resort() -> None:
    given = {"question": ASKED, "context": [CURRENT]}
    result = checked(RunnableLambda(lambda _: answer("Land1")), given)
    assert (result.documents, result.evidence_source) == ((CURRENT,), "prompt")
    chain = itemgetter("question") | retriever_of(WITHDRAWN) | RunnableLambda(call_directly)
    assert checked(chain, given).documents == (WITHDRAWN,)


def test_without_documents_no_source_of_them_is_named() -> None:
    result = checked(RunnableLambda(lambda _: answer("Land1")), ASKED)
    assert (result.documents, result.evidence_source) == ((), None)


def test_an_output_without_an_answer_is_unchecked() -> None:
    result = checked(RunnableLambda(returning({"found": [ONE]})), "Which?")
    assert result.verdict == "unchecked"


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


@pytest.mark.parametrize("evidence", ["turn", "thread"])
def test_a_second_turn_of_a_thread_is_checked_against_earlier_documents_too(evidence: Any) -> None:
    handler = GroundednessCallbackHandler(evidence=evidence)
    search = create_retriever_tool(Atlas(), "search", "Searches.")
    graph: Any = create_agent(
        Writer(says=reply_with_search), [search], checkpointer=InMemorySaver()
    )
    config: Any = {"configurable": {"thread_id": "1"}, "callbacks": [handler]}
    for country in ("Land1", "Land2"):
        graph.invoke(messages(question(country)), config)
    first, second = handler.results.values()
    assert texts(first.documents) == [document("Land1").page_content]
    assert texts(second.documents)[0] == document("Land2").page_content
    assert [(d.page_content, d.metadata["turn"]) for d in second.documents[1:]] == (
        [(document("Land1").page_content, 1)] if evidence == "thread" else []
    )


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


def analyst() -> Any:
    @tool
    def ask_analyst(query: str) -> str:
        """Ask an agent that searches."""
        search = create_retriever_tool(Atlas(), "search", "Searches.")
        inner: Any = create_agent(Writer(says=reply_with_search), [search])
        return str(inner.invoke(messages(query))["messages"][-1].text)

    return ask_analyst


def asking_for(name: str) -> Callable[[Sequence[BaseMessage]], AIMessage]:
    def asking(messages: Sequence[BaseMessage]) -> AIMessage:
        if isinstance(messages[-1], ToolMessage):
            return reply(messages)
        return AIMessage(
            "", tool_calls=[{"name": name, "args": {"query": messages[-1].text}, "id": "a"}]
        )

    return asking


@pytest.mark.parametrize("mode", ["invoke", "ainvoke", "stream"])
def test_of_a_sub_agent_what_it_retrieved_is_evidence_and_not_what_it_wrote(mode: str) -> None:
    for trusts, verdict in ((False, "has_contradictions"), (True, "grounded")):
        handler = GroundednessCallbackHandler(trust_generated=trusts)
        agent = create_agent(Writer(says=asking_for("ask_analyst")), [analyst()])
        run(mode, agent, [messages(question("Land1"))], {"callbacks": [handler]})
        [result] = handler.results.values()
        assert document("Land1").page_content in texts(result.documents)
        assert (answer("Land1") in texts(result.documents)) is trusts
        assert result.verdict == verdict


@pytest.mark.parametrize("mode", ["invoke", "ainvoke", "stream"])
def test_what_a_sub_agent_wrote_is_no_evidence_where_nothing_else_was_found(mode: str) -> None:
    @tool
    def ask_writer(query: str) -> str:
        """Ask an agent without tools."""
        inner: Any = create_agent(Writer())
        return str(inner.invoke(messages(query))["messages"][-1].text)

    for trusts, verdict in ((False, "unchecked"), (True, "grounded")):
        handler = GroundednessCallbackHandler(trust_generated=trusts)
        agent = create_agent(Writer(says=asking_for("ask_writer")), [ask_writer])
        run(mode, agent, [messages(question("Land1"))], {"callbacks": [handler]})
        [result] = handler.results.values()
        assert (texts(result.documents), result.verdict) == ([answer("Land1")] * trusts, verdict)
