"""What holds for every evaluator, shown on small ones."""

import asyncio
import json
import logging
import threading
import warnings
from typing import Any

import pytest
from langchain_core._api import LangChainBetaWarning
from langchain_core.load import dumpd, load
from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from pydantic import Field

from langchain_groundedness import (
    ConfigurationError,
    InputFormatError,
    MissingDependencyError,
    VerificationError,
    evals,
    load_arguments,
)
from langchain_groundedness.evals import (
    EvaluationResult,
    EvaluationRow,
    Evaluator,
    FaithfulnessEvaluator,
    Flow,
    ModelCall,
    RowScore,
)
from langchain_groundedness.evals.fingerprint import describe
from langchain_groundedness.exceptions import EvaluationError
from langchain_groundedness.testing import ScriptedChatModel


class Said(Evaluator):
    """Asks a runnable for the score of the answer."""

    needs = ("question", "answer")
    key: str = "said"
    judge: Any = None

    def _score(self, row: EvaluationRow) -> Flow[RowScore]:
        score = yield ModelCall(self.judge, row.answer)
        if score is None:
            return self._skipped("nothing was said")
        return self._scored(score, comment="as said", details={"length": len(row.answer or "")})


def judge(scores: dict[str, Any]) -> Runnable[str, float | None]:
    def say(answer: str) -> float | None:
        score = scores[answer]
        if isinstance(score, BaseException):
            raise score
        return score  # type: ignore[no-any-return]  # what the script says

    return RunnableLambda(say)


ANSWERS = {"good": 1.0, "bad": 0.0, "broken": TimeoutError("after the prompt: secret"), "no": None}
MODEL = ChatOpenAI(model="m", api_key="k")
AS_TEXT: Runnable[object, str] = RunnableLambda(str)
COLUMNS: dict[str, Any] = {"questions": ["?"] * 4, "predicted_answers": list(ANSWERS)}


def test_a_row_without_what_is_needed_is_skipped_and_the_reason_names_it() -> None:
    score = Said(judge=judge(ANSWERS)).invoke({"question": " "})
    assert (score.status, score.score) == ("skipped", None)
    assert score.reason == "the row has no question and no answer"


def test_an_error_makes_a_row_failed_and_its_text_is_not_repeated() -> None:
    score = Said(judge=judge(ANSWERS)).invoke({"question": "?", "answer": "broken"})
    assert (score.status, score.score, score.reason) == ("failed", None, "TimeoutError")


def test_a_row_that_cannot_be_read_fails_alone() -> None:
    good = EvaluationRow(id="1", question="?", answer="good")
    scores = Said(judge=judge(ANSWERS)).batch([3, good])
    assert [score.status for score in scores] == ["failed", "scored"]
    assert "got int" in (scores[0].reason or "")


def test_a_score_that_is_no_number_is_a_failure() -> None:
    score = Said(judge=judge({"good": float("nan")})).invoke({"question": "?", "answer": "good"})
    assert (score.status, score.score) == ("failed", None)


def test_failed_and_skipped_rows_are_left_out_of_the_mean_counted_and_said(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        result = Said(judge=judge(ANSWERS)).run(**COLUMNS)
    assert result.score == 0.5
    assert result.individual_scores == [1.0, 0.0, None, None]
    assert (result.scored, result.failed, result.skipped) == (2, 1, 1)
    assert result.note == (
        "The score leaves out (of 4 rows): 1 failed: TimeoutError; 1 skipped: nothing was said"
    )
    assert result.note in caplog.text


def test_a_result_reads_like_a_dict() -> None:
    result = Said(judge=judge(ANSWERS)).run(questions=["?"], predicted_answers=["good"])
    assert result["score"] == dict(result)["score"] == 1.0
    assert result["results"] == [{"length": 4, "score": 1.0, "status": "scored", "reason": None}]
    assert result["note"] == ""
    with pytest.raises(KeyError):
        result["no_such_field"]


def test_without_any_score_there_is_no_mean() -> None:
    result = Said(judge=judge(ANSWERS)).run(questions=["?"], predicted_answers=["no"])
    assert result.score is None
    assert Said(judge=judge({})).run(questions=[], predicted_answers=[]).score is None


async def test_sync_and_async_find_the_same() -> None:
    evaluator = Said(judge=judge(ANSWERS))
    assert await evaluator.arun(**COLUMNS) == await asyncio.to_thread(evaluator.run, **COLUMNS)
    row = {"question": "?", "answer": "good"}
    assert await evaluator.ainvoke(row) == await asyncio.to_thread(evaluator.invoke, row)
    assert await evaluator.abatch([row]) == await asyncio.to_thread(evaluator.batch, [row])


async def test_raise_on_failure_raises_after_the_last_row_and_keeps_what_is_finished() -> None:
    evaluator = Said(judge=judge(ANSWERS), raise_on_failure=True)
    with pytest.raises(EvaluationError, match=r"said: 1 of 4 rows failed \(rows 3\)") as caught:
        await asyncio.to_thread(evaluator.run, **COLUMNS)
    with pytest.raises(EvaluationError) as caught_async:
        await evaluator.arun(**COLUMNS)
    assert isinstance(caught.value, VerificationError)
    assert caught.value.row_ids == caught_async.value.row_ids == ("3",)
    assert isinstance(caught.value.result, EvaluationResult)
    assert caught.value.result.individual_scores == [1.0, 0.0, None, None]
    assert caught.value.result == caught_async.value.result


def test_raise_on_failure_raises_for_one_row_and_can_be_said_for_one_call() -> None:
    row = {"question": "?", "answer": "broken"}
    strict = Said(judge=judge(ANSWERS), raise_on_failure=True)
    with pytest.raises(EvaluationError, match="said: the row failed: TimeoutError"):
        strict.invoke(row)
    assert strict.invoke(row, raise_on_failure=False).status == "failed"
    skipped = strict.invoke({"question": "?", "answer": "no"})
    assert skipped.status == "skipped"


@pytest.mark.parametrize(
    "error", [ConfigurationError("bad"), MissingDependencyError("install it")], ids=["bad", "less"]
)
async def test_a_broken_installation_is_heard_of(error: Exception) -> None:
    evaluator = Said(judge=judge({"good": error}))
    columns: dict[str, Any] = {"questions": ["?"], "predicted_answers": ["good"]}
    with pytest.raises(type(error)):
        await asyncio.to_thread(evaluator.run, **columns)
    with pytest.raises(type(error)):
        await evaluator.arun(**columns)


@pytest.mark.parametrize("metric", ["faithfulness", "context_precision", "citations"])
async def test_a_package_that_a_verifier_lacks_is_heard_of(metric: str) -> None:
    def lacking(_: object) -> None:
        raise MissingDependencyError

    evaluator = evals.make_metric(metric, verifier=RunnableLambda(lacking))
    row = {"answer": "Rome is in Italy [1].", "contexts": ["Rome is in Italy."]}
    with pytest.raises(MissingDependencyError):
        await asyncio.to_thread(evaluator.invoke, row)
    with pytest.raises(MissingDependencyError):
        await evaluator.ainvoke(row)


def test_columns_that_do_not_fit_together_are_refused() -> None:
    with pytest.raises(InputFormatError):
        Said(judge=judge({})).run(questions=["?"], predicted_answers=[])


class Turnstile:
    """Counts how many are inside at a time; nobody leaves before `wanted` came in."""

    def __init__(self, wanted: int) -> None:
        self._barrier = threading.Barrier(wanted, timeout=300)
        self._lock = threading.Lock()
        self._inside = 0
        self.most = 0

    def pass_through(self, _: str) -> float:
        with self._lock:
            self._inside += 1
            self.most = max(self.most, self._inside)
        self._barrier.wait()
        with self._lock:
            self._inside -= 1
        return 1.0


@pytest.mark.parametrize(("option", "config"), [(3, None), (16, RunnableConfig(max_concurrency=3))])
def test_rows_run_side_by_side_but_no_more_than_allowed(
    option: int, config: RunnableConfig | None
) -> None:
    gate = Turnstile(3)
    evaluator = Said(judge=RunnableLambda(gate.pass_through), max_concurrency=option)
    result = evaluator.run(questions=["?"] * 9, predicted_answers=["a"] * 9, config=config)
    assert (result.scored, gate.most) == (9, 3)


@pytest.mark.parametrize(("option", "config"), [(3, None), (16, RunnableConfig(max_concurrency=3))])
async def test_rows_run_side_by_side_on_the_event_loop_but_no_more_than_allowed(
    option: int, config: RunnableConfig | None
) -> None:
    inside: list[int] = [0, 0]
    all_in = asyncio.Event()

    async def say(_: str) -> float:
        inside[0] += 1
        inside[1] = max(inside)
        if inside[0] == 3:
            all_in.set()
        await all_in.wait()
        await asyncio.sleep(0)
        inside[0] -= 1
        return 1.0

    evaluator = Said(judge=RunnableLambda(say), max_concurrency=option)
    columns: dict[str, Any] = {"questions": ["?"] * 9, "predicted_answers": ["a"] * 9}
    result = await evaluator.arun(**columns, config=config)
    assert (result.scored, inside[1]) == (9, 3)


async def test_cancelling_a_run_cancels_its_rows() -> None:
    started, ended = asyncio.Event(), []

    async def hang(_: str) -> float:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)
        return 1.0

    evaluator = Said(judge=RunnableLambda(hang))
    columns: dict[str, Any] = {"questions": ["?"] * 2, "predicted_answers": ["a"] * 2}
    task = asyncio.create_task(evaluator.arun(**columns))
    await started.wait()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended


async def test_a_run_that_an_error_has_ended_makes_no_further_calls() -> None:
    asked = []

    async def say(answer: str) -> float:
        asked.append(answer)
        await asyncio.sleep(0)
        if answer == "broken":
            msg = "install it"
            raise ConfigurationError(msg)
        return 1.0

    evaluator = Said(judge=RunnableLambda(say), max_concurrency=1)
    answers = ["good", "broken", *(f"later {n}" for n in range(20))]
    with pytest.raises(ConfigurationError, match="install it"):
        await evaluator.arun(questions=["?"] * len(answers), predicted_answers=answers)
    for _ in range(200):
        await asyncio.sleep(0)
    assert len(asked) <= 4


def test_model_calls_are_counted_by_row_and_in_sum() -> None:
    def reply(messages: list[BaseMessage]) -> str:
        return "{tag} C1: [1] supported" if "You check claims" in messages[0].text else "none"

    evaluator = FaithfulnessEvaluator(model=ScriptedChatModel(replies=reply))
    answers = ["Rome is old."] * 2
    result = evaluator.run(contexts=[[answer] for answer in answers], predicted_answers=answers)
    assert [row.usage.model_calls for row in result.rows] == [2, 2]
    assert result.usage.model_calls == 4


def test_the_fingerprint_tells_what_counts_and_no_key() -> None:
    model = ChatOpenAI(model="some-model", api_key="sk-secret", temperature=0.3)
    told = FaithfulnessEvaluator(model=model, max_claims=4).fingerprint()
    assert told["class"].endswith(".FaithfulnessEvaluator")
    assert told["max_claims"] == 4
    assert told["model"]["model"] == "some-model"
    assert told["model"]["temperature"] == 0.3
    assert told["verifier"]["strategy"] == "batched"
    assert "sk-secret" not in json.dumps(told)


def test_a_copy_of_an_evaluator_scores_with_its_own_options() -> None:
    evaluator = FaithfulnessEvaluator(extractor=lambda _: [])
    row = {"answer": "Rome is old.", "contexts": ["Rome is old."]}
    assert evaluator.invoke(row).status == "skipped"
    assert evaluator.model_copy(update={"extractor": None}).invoke(row).score == 1.0


def test_the_fingerprint_differs_only_where_scores_may() -> None:
    plain = FaithfulnessEvaluator()
    assert plain.fingerprint() == FaithfulnessEvaluator(progress_bar=True).fingerprint()
    assert plain.fingerprint() == FaithfulnessEvaluator(raise_on_failure=True).fingerprint()
    assert plain.fingerprint() != FaithfulnessEvaluator(max_claims=3).fingerprint()
    one, other = (ChatOpenAI(model=name, api_key="k") for name in ("a", "b"))
    bound = one.bind(temperature=1.0)
    told = [FaithfulnessEvaluator(model=m).fingerprint() for m in (one, other, bound)]
    assert told[0] != told[1]
    assert told[0] != told[2]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (MODEL, ChatOpenAI(model="m", api_key="k", frequency_penalty=1.0)),
        (MODEL, ChatOpenAI(model="m", api_key="k", stop=["."])),
        (MODEL, ChatOpenAI(model="m", api_key="k", extra_body={"top_k": 1})),
        (MODEL, MODEL.bind(stop=["."])),
        (MODEL.with_fallbacks([MODEL]), MODEL.with_fallbacks([MODEL.bind(temperature=1.0)])),
        (MODEL | AS_TEXT, ChatOpenAI(model="n", api_key="k") | AS_TEXT),
        (MODEL | AS_TEXT, MODEL | RunnableLambda(repr)),
    ],
    ids=["penalty", "stop", "extra_body", "bound", "fallback", "first step", "last step"],
)
def test_the_fingerprint_tells_every_option_of_a_model_that_its_replies_depend_on(
    one: Any, other: Any
) -> None:
    assert describe(one) != describe(other)


def test_the_fingerprint_does_not_depend_on_keys_or_on_how_a_model_is_called() -> None:
    other = ChatOpenAI(model="m", api_key="other", max_retries=7, timeout=9)
    assert describe(other) == describe(MODEL)
    secret = {"extra_headers": {"Authorization": "Bearer one"}, "api_key": "one"}
    assert describe(MODEL.bind(**secret)) == describe(MODEL)


def test_the_fingerprint_tells_the_options_of_embeddings() -> None:
    one, other = (OpenAIEmbeddings(model="e", openai_api_key="k", dimensions=n) for n in (256, 512))
    assert describe(one) != describe(other)
    assert describe(one) == describe(
        OpenAIEmbeddings(model="e", openai_api_key="other", dimensions=256)
    )


def test_the_fingerprint_of_a_set_is_the_same_in_every_process() -> None:
    assert describe({"b", "c", "a"}) == ["a", "b", "c"]


def test_every_evaluator_can_be_loaded_again() -> None:
    named = {getattr(evals, name) for name in evals.__all__ if name.endswith("Evaluator")}
    assert named - {Evaluator} <= set(load_arguments()["allowed_objects"])
    evaluator = FaithfulnessEvaluator(max_claims=3)
    with warnings.catch_warnings(action="ignore", category=LangChainBetaWarning):
        loaded = load(dumpd(evaluator), **load_arguments())
    assert loaded.fingerprint() == evaluator.fingerprint()


def test_an_unknown_option_is_refused_with_those_there_are() -> None:
    with pytest.raises(ConfigurationError, match="options are: key"):
        FaithfulnessEvaluator(colour="red")  # type: ignore[call-arg]  # refused when it runs
    with pytest.raises(ConfigurationError, match="key"):
        FaithfulnessEvaluator(key="")


class Terminal:
    """A stderr that is a terminal."""

    def __init__(self) -> None:
        self.text = ""

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.text += text
        return len(text)

    def flush(self) -> None:
        """Do nothing."""


async def test_progress_is_shown_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluator = Said(judge=judge(ANSWERS), progress_bar=True)
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    await asyncio.to_thread(evaluator.run, **COLUMNS)
    assert "said" in terminal.text
    assert "4/4" in terminal.text
    terminal.text = ""
    await evaluator.arun(**COLUMNS)
    assert "4/4" in terminal.text


def test_no_progress_is_shown_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    evaluator = Said(judge=judge(ANSWERS), progress_bar=True)
    evaluator.run(**COLUMNS)
    assert capsys.readouterr().err == ""


class Fixed(Evaluator):
    """Scores without any call."""

    key: str = Field(default="fixed")

    def _score(self, row: EvaluationRow) -> Flow[RowScore]:
        yield from ()
        return self._scored(float(row.metadata["n"]))


def test_an_evaluator_of_ones_own_needs_one_method() -> None:
    assert [score.score for score in Fixed().batch([{"n": 1}, {"n": 0.5}])] == [1.0, 0.5]
    assert Fixed().invoke({}).status == "failed"


def test_what_the_model_raised_is_the_cause_of_the_error() -> None:
    broken = RuntimeError("no")
    strict = Said(judge=judge({"a": broken}), raise_on_failure=True)
    with pytest.raises(EvaluationError) as raised:
        strict.invoke({"question": "?", "answer": "a"})
    assert raised.value.__cause__ is broken
