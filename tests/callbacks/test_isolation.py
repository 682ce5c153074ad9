"""Runs do not mix, a root is found wherever a handler is attached, and judges are not judged."""

import asyncio
import re
from typing import Any

import pytest
from blockbuster import BlockBuster
from langchain.agents import create_agent
from langchain_classic.chains import RetrievalQA
from langchain_core.documents import Document
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.tools import create_retriever_tool
from langsmith.run_helpers import tracing_context
from langsmith.run_trees import RunTree
from watched_chains import (
    PROMPT,
    Atlas,
    Writer,
    answer,
    country_in,
    document,
    lcel_chain,
    question,
    reply_with_search,
    retrieval_chain,
)

from langchain_groundedness import (
    AsyncGroundednessCallbackHandler,
    GroundednessCallbackHandler,
    GroundednessGuard,
    GroundednessMiddleware,
    GroundednessResult,
    GroundednessRunnable,
    LLMVerifier,
    SentenceClaimExtractor,
    VerificationTask,
    collect_groundedness,
)
from langchain_groundedness.testing import ScriptedChatModel, ScriptedVerifier

HANDLERS = pytest.mark.parametrize(
    "kind", [GroundednessCallbackHandler, AsyncGroundednessCallbackHandler], ids=["sync", "async"]
)
QUICK = GroundednessRunnable(verifier=ScriptedVerifier(lambda _: "supported"))


def only(handler: Any) -> GroundednessResult:
    [result] = handler.results.values()
    assert isinstance(result, GroundednessResult)
    return result


def assert_each_has_its_own(handler: Any, countries: list[str]) -> None:
    results = {result.question: result for result in handler.results.values()}
    assert len(handler.results) == len(results) == len(countries)
    for country in countries:
        result = results[question(country)]
        assert result.answer == answer(country)
        assert [d.page_content for d in result.documents] == [document(country).page_content]
        assert [c.verdict for c in result.claims] == ["supported", "supported"]
    assert handler.open_runs == 0


COUNTRIES = [f"Land{number}" for number in range(200)]


@HANDLERS
def test_two_hundred_roots_in_threads_do_not_mix(kind: Any) -> None:
    handler = kind(QUICK)
    config: Any = {"callbacks": [handler], "max_concurrency": 40}
    retrieval_chain().batch([{"input": question(each)} for each in COUNTRIES], config)
    assert_each_has_its_own(handler, COUNTRIES)


@HANDLERS
async def test_two_hundred_roots_on_one_loop_do_not_mix(kind: Any) -> None:
    handler = kind(QUICK)
    chain = lcel_chain()

    async def read(country: str) -> None:
        async for _ in chain.astream(question(country), {"callbacks": [handler]}):
            pass

    await asyncio.gather(*map(read, COUNTRIES))
    assert_each_has_its_own(handler, COUNTRIES)


@HANDLERS
def test_a_handler_bound_to_an_inner_runnable_watches_that(kind: Any) -> None:
    handler = kind()
    answering: Runnable[Any, Any] = (PROMPT | Writer() | StrOutputParser()).with_config(
        callbacks=[handler]
    )
    gather = {
        "context": Atlas() | (lambda found: found[0].page_content),
        "input": RunnableLambda(str),
    }
    assert (gather | answering).invoke(question("Land1")) == answer("Land1")
    result = only(handler)
    assert (result.question, result.answer) == (question("Land1"), answer("Land1"))
    assert [d.page_content for d in result.documents] == [document("Land1").page_content]


@HANDLERS
def test_a_chain_below_a_traced_parent_is_a_root(kind: Any) -> None:
    handler = kind()
    with tracing_context(parent=RunTree(name="request"), enabled=False):
        for country in ("Land1", "Land2"):
            retrieval_chain().invoke({"input": question(country)}, {"callbacks": [handler]})
    assert [r.answer for r in handler.results.values()] == [answer("Land1"), answer("Land2")]


@HANDLERS
async def test_a_chain_that_another_chain_calls_without_the_handler_is_a_root(kind: Any) -> None:
    handler = kind()

    async def outer(country: str) -> Any:
        return await retrieval_chain().ainvoke(
            {"input": question(country)}, {"callbacks": [handler]}
        )

    await RunnableLambda(outer).ainvoke("Land1")
    assert only(handler).answer == answer("Land1")


@HANDLERS
async def test_a_chain_run_without_await_where_a_loop_runs_is_checked(
    kind: Any, blockbuster: BlockBuster
) -> None:
    blockbuster.deactivate()  # such a chain holds the loop up, and its checks with it
    handler = kind(QUICK)
    retrieval_chain().invoke({"input": question("Land1")}, {"callbacks": [handler]})
    list(retrieval_chain().stream({"input": question("Land2")}, {"callbacks": [handler]}))
    assert_each_has_its_own(handler, ["Land1", "Land2"])


@pytest.mark.filterwarnings(
    "ignore:The class `(RetrievalQA|LLMChain|StuffDocumentsChain)`"
    ":langchain_core._api.deprecation.LangChainDeprecationWarning"
)
@HANDLERS
@pytest.mark.parametrize("returns", [True, False])
def test_a_handler_given_to_a_constructor_sees_what_that_chain_returns(
    kind: Any,
    returns: bool,  # noqa: FBT001  (pytest passes it by name)
) -> None:
    handler = kind()
    chain = RetrievalQA.from_chain_type(
        Writer(), retriever=Atlas(), callbacks=[handler], return_source_documents=returns
    )
    assert chain.invoke(question("Land1"))["result"] == answer("Land1")
    assert only(handler).verdict == ("has_contradictions" if returns else "unchecked")
    assert only(handler).question == question("Land1")


@HANDLERS
def test_with_config_attaches_for_every_run(kind: Any) -> None:
    handler = kind()
    chain = retrieval_chain().with_config(callbacks=[handler])
    chain.batch([{"input": question("Land1")}, {"input": question("Land2")}])
    assert len(handler.results) == 2


def test_two_handlers_on_one_chain_work_for_themselves() -> None:
    verifiers = [ScriptedVerifier(lambda _: "supported") for _ in range(2)]
    handlers = [GroundednessCallbackHandler(GroundednessRunnable(verifier=v)) for v in verifiers]
    retrieval_chain().invoke({"input": question("Land1")}, {"callbacks": [*handlers]})
    assert [len(handler.results) for handler in handlers] == [1, 1]
    assert [len(verifier.tasks) for verifier in verifiers] == [1, 1]


async def test_a_sync_and_an_async_handler_on_one_chain_work_for_themselves() -> None:
    handlers = [GroundednessCallbackHandler(QUICK), AsyncGroundednessCallbackHandler(QUICK)]
    async for _ in retrieval_chain().astream(
        {"input": question("Land1")}, {"callbacks": [*handlers]}
    ):
        pass
    assert [only(handler).verdict for handler in handlers] == ["grounded", "grounded"]


def judge() -> ScriptedChatModel:
    return ScriptedChatModel(replies=lambda _: "{tag} C1: [1] supported\n{tag} C2: [2] supported")


@pytest.mark.parametrize("mode", ["config", "block", "both"])
async def test_the_models_of_a_check_are_never_judged(mode: str) -> None:
    model = judge()
    checker = GroundednessRunnable(
        extractor=SentenceClaimExtractor(), verifier=LLMVerifier(model=model)
    )
    given: Any = {"input": question("Land1")}
    async with collect_groundedness(checker) as collected:
        handler = AsyncGroundednessCallbackHandler(checker)
        config: Any = {"callbacks": [handler]} if mode != "block" else {}
        await retrieval_chain().ainvoke(given, config)
    assert len(collected.results) == 1
    assert len(handler.results) == (mode != "block")
    assert all(result.claims for result in collected.results.values())
    assert collected.open_runs == 0


@HANDLERS
@pytest.mark.parametrize("mode", ["invoke", "stream"])
def test_a_verifier_that_forgets_to_pass_its_config_on_is_not_judged(mode: str, kind: Any) -> None:
    model, handlers = judge(), []

    def verify(_: VerificationTask) -> list[Any]:
        model.invoke("Is it so?")
        lcel_chain(model).invoke(question("Land7"))
        return []

    with collect_groundedness() as collected:
        handler = kind(GroundednessRunnable(verifier=RunnableLambda(verify)))
        handlers += [handler, collected]
        getattr(retrieval_chain(), mode)({"input": question("Land1")}, {"callbacks": [handler]})
        list(retrieval_chain().stream({"input": question("Land1")}, {"callbacks": [handler]}))
    assert model.requests
    for each in handlers:
        assert {result.question for result in each.results.values()} == {question("Land1")}


def test_a_checker_that_is_bound_to_its_own_handler_does_not_recurse() -> None:
    bound: list[Any] = []
    checker: Runnable[Any, Any] = RunnableLambda(
        lambda value: QUICK.with_config(callbacks=bound).invoke(value)
    )
    handler = GroundednessCallbackHandler(checker)
    bound.append(handler)
    retrieval_chain().invoke({"input": question("Land1")}, {"callbacks": [handler]})
    assert only(handler).verdict == "grounded"


@HANDLERS
@pytest.mark.parametrize("mode", ["ainvoke", "astream"])
async def test_handler_middleware_and_guard_at_once_check_each_answer_once(
    mode: str, kind: Any
) -> None:
    judges = [ScriptedVerifier(lambda _: "supported") for _ in range(3)]
    own, inner, outer = (GroundednessRunnable(verifier=judge) for judge in judges)
    search = create_retriever_tool(
        Atlas(), "search", "Searches.", response_format="content_and_artifact"
    )
    middleware = [GroundednessMiddleware(inner, hold_stream=True)]
    agent = create_agent(Writer(says=reply_with_search), [search], middleware=middleware)
    chain: Runnable[Any, str] = agent | GroundednessGuard(outer)
    handler, countries = kind(own), COUNTRIES[:10]

    async def ask(country: str) -> None:
        given = {"messages": [("user", question(country))]}
        config = RunnableConfig(callbacks=[handler])
        if mode == "ainvoke":
            await chain.ainvoke(given, config)
        else:
            assert "".join([text async for text in chain.astream(given, config)])

    await asyncio.gather(*map(ask, countries))
    handler.close()
    assert_each_has_its_own(handler, countries)
    for judge in judges:
        seen = [claim.text for task in judge.tasks for claim in task.claims]
        assert sorted(seen) == sorted(
            claim for country in countries for claim in re.split(r"(?<=\.) ", answer(country))
        )
        for task in judge.tasks:
            [found] = task.documents
            lands = re.findall(r"Land\d+", " ".join(claim.text for claim in task.claims))
            assert set(lands) == {country_in(found.page_content)}


def test_a_check_does_not_show_in_the_callbacks_of_the_chain() -> None:
    seen: list[Any] = []

    class Recorder(GroundednessCallbackHandler):
        def on_chain_start(self, serialized: Any, inputs: Any, **run: Any) -> None:
            seen.append((run.get("name"), run.get("tags")))

    handler, recorder = GroundednessCallbackHandler(), Recorder()
    retrieval_chain().invoke({"input": question("Land1")}, {"callbacks": [handler, recorder]})
    assert seen
    assert not [name for name, _ in seen if "claims" in str(name) or "ground" in str(name)]


def test_documents_of_metadata_are_kept_in_citations() -> None:
    handler = GroundednessCallbackHandler()
    retrieval_chain().invoke({"input": question("Land1")}, {"callbacks": [handler]})
    citation = only(handler).claims[0].citations[0]
    assert citation.metadata == {"source": "Land1.md"}
    assert isinstance(only(handler).documents[0], Document)
