"""What can be told without a Ray cluster: options, and how evaluators travel to workers."""

import json
from typing import Any

import pytest
from counting import CountingEvaluator
from langchain_openai import ChatOpenAI
from pydantic import SecretStr
from ray_evaluators import KeyEvaluator

from langchain_groundedness.evals import EvaluationRow, FaithfulnessEvaluator, evaluate
from langchain_groundedness.evals.datasets import LocatedRow
from langchain_groundedness.evals.evaluation import RowTask
from langchain_groundedness.evals.ray_engine import RayEngine, RowWorker, SerializedEvaluator
from langchain_groundedness.exceptions import ConfigurationError

KEY = "sk-not-to-be-seen"


def test_keys_stay_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    model = ChatOpenAI(model="some-model", api_key=SecretStr(KEY))
    sent = SerializedEvaluator.of(FaithfulnessEvaluator(model=model))
    assert sent.evaluator is None
    assert KEY not in json.dumps(sent.data)
    assert sent.restore().fingerprint() == sent.fingerprint
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(ConfigurationError, match="keys in the environment"):
        sent.restore()


def test_a_module_that_a_worker_lacks_is_named() -> None:
    data = {"lc": 1, "type": "constructor", "id": ["not_there", "Mine"], "kwargs": {}}
    with pytest.raises(ConfigurationError, match=r"ModuleNotFoundError.*not_there"):
        SerializedEvaluator(data, None, {}).restore()


def test_an_evaluator_with_a_key_that_only_pickling_would_carry_is_refused() -> None:
    pytest.importorskip("ray", reason="Ray pickles what LangChain cannot write")

    class Local(KeyEvaluator):
        pass

    with pytest.raises(ConfigurationError, match="it holds a key") as raised:
        SerializedEvaluator.of(Local(token=SecretStr(KEY)))
    assert KEY not in str(raised.value)


def test_a_worker_evaluates_rows_as_the_process_does_that_sends_them() -> None:
    worker = RowWorker([SerializedEvaluator.of(CountingEvaluator())], {})
    row = EvaluationRow(id="a", answer="banana")
    [found] = worker.evaluate([RowTask(0, LocatedRow(row, 7), {})])
    assert not isinstance(found, str)
    assert (found.row, found.line, found.scores[0].score) == (row, 7, 0.5)


def test_a_worker_that_cannot_make_an_evaluator_says_so_with_its_first_row() -> None:
    sent = SerializedEvaluator.of(CountingEvaluator())
    other = sent._replace(fingerprint={**sent.fingerprint, "version": "0.0.1"})
    row = LocatedRow(EvaluationRow(id="a", answer="banana"), 1)
    [fault] = RowWorker([other], {}).evaluate([RowTask(0, row, {})])
    assert isinstance(fault, str)
    assert "install the same versions there" in fault


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"engine": "spark"}, "'local', 'ray'"),
        ({"workers": 2}, "engine='ray'"),
        ({"address": "auto"}, "engine='ray'"),
        ({"engine": "ray", "workers": 0}, "workers"),
        ({"engine": "ray", "config": {"callbacks": [object()]}}, "callbacks"),
    ],
)
def test_options_that_cannot_work_are_refused(options: Any, said: str) -> None:
    if options.get("engine") == "ray":
        pytest.importorskip("ray", reason="its extra is asked for first")
    with pytest.raises(ConfigurationError, match=said):
        evaluate([{"answer": "a"}], CountingEvaluator(), **options)


def test_the_rows_in_flight_grow_with_the_workers_and_what_each_does_at_once() -> None:
    one, four = RayEngine(workers=1), RayEngine(workers=4, max_concurrency=64)
    assert four.max_rows_in_flight == 16 * one.max_rows_in_flight
