"""Evaluators as LangSmith's `evaluate` and users of openevals call them."""

import asyncio
import inspect
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from unittest.mock import MagicMock
from uuid import uuid4

import pytest
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.tracers.langchain import LangChainTracer
from langsmith import Client, aevaluate, evaluate
from langsmith.schemas import Example

from langchain_groundedness.evals import FaithfulnessEvaluator, RubricEvaluator
from langchain_groundedness.testing import ScriptedChatModel

pytestmark = pytest.mark.filterwarnings("ignore:'upload_(results|runs)' parameter is in beta")


@pytest.fixture(name="client")
def offline_client() -> Iterator[tuple[Client, MagicMock]]:
    session = MagicMock()
    client = Client(api_url="http://nowhere.invalid", api_key="k", session=session, info={})
    yield client, session
    client.cleanup()


def examples() -> list[Example]:
    asked = {"question": "What is the capital of Italy?"}
    reference = {"answer": "Rome"}
    made = datetime.now(UTC)
    return [
        Example(id=uuid4(), dataset_id=uuid4(), inputs=asked, outputs=reference, created_at=made)
        for _ in range(3)
    ]


def target(inputs: dict[str, Any]) -> dict[str, Any]:
    assert inputs["question"]
    return {
        "answer": "Rome is the capital of Italy. It has 40 million inhabitants.",
        "documents": ["Rome is the capital of Italy."],
    }


async def atarget(inputs: dict[str, Any]) -> dict[str, Any]:
    return target(inputs)


def test_langsmith_evaluates_offline(client: tuple[Client, MagicMock]) -> None:
    rows = list(
        evaluate(
            target,
            data=examples(),
            evaluators=[FaithfulnessEvaluator()],
            upload_results=False,
            client=client[0],
        )
    )
    found = [row["evaluation_results"]["results"][0] for row in rows]
    assert [(result.key, result.score) for result in found] == [("faithfulness", 0.5)] * 3
    assert found[0].comment == "2 claims: 1 supported, 1 unverifiable"
    assert found[0].metadata is not None
    assert found[0].metadata["statement_scores"] == [1, 0]


async def test_langsmith_evaluates_offline_on_the_event_loop(
    client: tuple[Client, MagicMock],
) -> None:
    results = await aevaluate(
        atarget,
        data=examples(),
        evaluators=[FaithfulnessEvaluator(key="one").acall],  # type: ignore[list-item]  # its types know no async one by name
        upload_results=False,
        client=client[0],
    )
    found = [row["evaluation_results"]["results"][0] async for row in results]
    assert [(result.key, result.score) for result in found] == [("one", 0.5)] * 3


def test_nothing_is_traced_where_nothing_is_to_be_uploaded(
    client: tuple[Client, MagicMock],
) -> None:
    seen: list[Any] = []

    def verify(_: Any, config: RunnableConfig) -> list[Any]:
        handlers = getattr(config["callbacks"], "handlers", [])
        seen.extend(type(handler) for handler in handlers)
        return []

    evaluator = FaithfulnessEvaluator(verifier=RunnableLambda(verify))
    results = evaluate(
        target,
        data=examples(),
        evaluators=[evaluator],
        upload_results=False,
        client=client[0],
    )
    [result, *_] = [row["evaluation_results"]["results"][0] for row in results]
    assert result.score is None
    assert seen
    assert LangChainTracer not in seen
    client[0].flush()
    sent = [call for call in client[1].request.call_args_list if call.args[:1] != ("GET",)]
    assert not sent


def test_a_row_that_failed_has_no_score_there_either() -> None:
    model = ScriptedChatModel(replies=lambda _: TimeoutError("secret"))
    evaluator = RubricEvaluator(model=model, rubric={1: "bad", 2: "good"})
    told = evaluator(inputs="?", outputs="Rome.", reference_outputs="Rome")
    assert told["score"] is None
    assert told["comment"] == "failed: TimeoutError"
    assert told["metadata"]["status"] == "failed"


def test_what_cannot_be_read_has_no_score_but_a_reason() -> None:
    told = FaithfulnessEvaluator()(inputs={"question": "?"}, outputs=AIMessage("Rome."))
    assert (told["score"], told["comment"]) == (None, "skipped: the row has no documents")
    told = FaithfulnessEvaluator()(inputs="?", outputs={"answer": object(), "context": ["A."]})
    assert told["score"] is None
    assert told["comment"].startswith("failed: the answer is of type object")


ARGUMENTS: dict[str, Any] = {
    "inputs": {"question": "What is the capital of Italy?"},
    "outputs": {"answer": "Rome is the capital of Italy."},
    "context": {"documents": ["Rome is the capital of Italy."]},
    "reference_outputs": {"answer": "Rome"},
}


def test_evaluators_are_called_and_answer_as_those_of_openevals_do() -> None:
    openevals = pytest.importorskip("openevals")
    theirs = openevals.create_llm_as_judge(
        prompt="{inputs} {outputs} {context} {reference_outputs}",
        judge=ScriptedChatModel(replies=[]),
        feedback_key="groundedness",
    )
    named = {n for n, p in inspect.signature(theirs).parameters.items() if p.kind != p.VAR_KEYWORD}
    ours = inspect.signature(FaithfulnessEvaluator.__call__).parameters
    assert named <= set(ours)
    assert any(p.kind == p.VAR_KEYWORD for p in ours.values())
    told = FaithfulnessEvaluator()(**ARGUMENTS)
    result_type = pytest.importorskip("openevals.types").EvaluatorResult
    assert set(told) == set(result_type.__annotations__) - {"source_run_id"}
    assert (told["key"], told["score"]) == ("faithfulness", 1.0)


async def test_an_evaluator_awaited_answers_as_one_called() -> None:
    evaluator = FaithfulnessEvaluator()
    told = await asyncio.to_thread(evaluator, **ARGUMENTS)
    assert await evaluator.acall(**ARGUMENTS) == told
