"""How long a check waits for a model, and how often it asks."""

import asyncio
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest
from conftest import LoopClock
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_openai import ChatOpenAI
from typing_extensions import override

from langchain_groundedness import (
    ConfigurationError,
    Corrector,
    GroundednessGuard,
    GroundednessResult,
    GroundednessRunnable,
    LLMClaimExtractor,
    LLMVerifier,
    SentenceClaimExtractor,
)
from langchain_groundedness.evals import (
    AnswerQualityEvaluator,
    AnswerRelevancyEvaluator,
    ContextRelevanceEvaluator,
    FaithfulnessEvaluator,
    RubricEvaluator,
)
from langchain_groundedness.evals.validation import AnswerValidator
from langchain_groundedness.exceptions import ModelTimeoutError
from langchain_groundedness.query import LLMQueryClassifier
from langchain_groundedness.testing import FaultyServer, ScriptedChatModel
from langchain_groundedness.types import Claim, VerificationTask

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])

SHORT = 0.1
LONG = 300
"""For what hangs; a call that is held goes on until its test is over."""
PAGE = (Path(__file__).parents[2] / "docs" / "guide" / "faults.md").read_text(encoding="utf-8")
MOST_HANGING = int(re.findall(r"When (\d+) such calls", PAGE)[0])
SAMPLE = {
    "answer": "Rome is in Italy. Berne is in Spain. Oslo is in Norway.",
    "documents": ["Rome is in Italy. Berne is in Switzerland. Oslo is in Norway."],
}
ASKED: ContextVar[str] = ContextVar("ASKED", default="nobody")


class Silence:
    """Holds calls of models until the test is over."""

    def __init__(self) -> None:
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []

    @property
    def held(self) -> int:
        return len(self._threads)

    def keep(self) -> str:
        self._threads.append(threading.current_thread())
        self._over.wait(LONG)
        return "none"

    def break_(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()


@pytest.fixture
def silence() -> Iterator[Silence]:
    silence = Silence()
    yield silence
    silence.break_()


class Waiting(ScriptedChatModel):
    """A model that can be awaited, and answers never."""

    started: Any = None
    ended: Any = None

    @override
    async def _agenerate(self, *args: Any, **kwargs: Any) -> Any:
        if self.started is not None:
            self.started.set()
        try:
            await asyncio.Event().wait()
        finally:
            if self.ended is not None:
                self.ended.set()


def hanging(silence: Silence) -> ScriptedChatModel:
    return ScriptedChatModel(replies=lambda _: silence.keep())


def assert_unchecked(result: GroundednessResult) -> None:
    assert len(result.claims) == 3
    assert result.verdict == "unchecked"
    for verdict in result.claims:
        assert verdict.verdict == "unchecked"
        assert verdict.reason is not None
        assert "did not reply within 0.1 s" in verdict.reason
        assert "timeout=" in verdict.reason


def patient_chat(server: FaultyServer) -> ChatOpenAI:
    """A client that reads as long as bytes come."""
    return ChatOpenAI(
        model="scripted", base_url=server.base_url, api_key="none", timeout=LONG, max_retries=0
    )


@pytest.mark.parametrize("fault", ["drip", "drip_of_headers", "slow_first_byte"])
async def test_a_server_that_drips_keeps_no_check_alive(fault: str) -> None:
    with FaultyServer(lambda _: "none", fault=fault) as server:
        checker = GroundednessRunnable(model=patient_chat(server), model_timeout=SHORT)
        assert_unchecked(await asyncio.wait_for(checker.ainvoke(SAMPLE), LONG))
        assert_unchecked(await asyncio.to_thread(checker.invoke, SAMPLE))


def test_a_model_that_never_answers_holds_nobody_up(silence: Silence) -> None:
    checker = GroundednessRunnable(model=hanging(silence), model_timeout=SHORT)
    assert_unchecked(checker.invoke(SAMPLE))
    assert_unchecked(checker.batch([SAMPLE])[0])
    assert silence.held == 4  # twice the extraction, twice the verification: no call is repeated


def test_a_guard_lets_nothing_out_that_was_not_checked_in_time(silence: Silence) -> None:
    checker = GroundednessRunnable(
        model=hanging(silence), extractor=SentenceClaimExtractor(), model_timeout=SHORT
    )
    guard = GroundednessGuard(checker, on_unchecked="hold_back")
    assert "".join(guard.stream(SAMPLE)).strip() == ""


class JudgingAllBut(ScriptedChatModel):
    """A model that can be awaited, and never answers about a claim with some word."""

    word: str

    @override
    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> Any:
        if self.word in messages[-1].text.rpartition("<claims")[2]:
            await asyncio.Event().wait()
        return self._generate(messages)


async def test_what_was_judged_in_time_is_kept(clock: LoopClock) -> None:
    replies = ["{tag} C1: [1 2 3] supported"] * 2
    model = JudgingAllBut(replies=replies, word="Berne")
    verifier = LLMVerifier(model=model, claims_per_call=1, timeout=LONG)
    claims = tuple(SentenceClaimExtractor().invoke(str(SAMPLE["answer"])))
    documents = tuple(map(Document, SAMPLE["documents"]))
    verdicts = verifier.astream(VerificationTask(claims=claims, documents=documents))
    [first], [second] = await anext(verdicts), await anext(verdicts)
    clock.advance(LONG)
    [last] = await anext(verdicts)
    assert (first.verdict, second.verdict) == ("supported", "supported")
    assert (last.verdict, last.claim) == ("unchecked", claims[1])


async def test_a_cancelled_check_is_cancelled_and_its_call_too() -> None:
    started, ended = asyncio.Event(), asyncio.Event()
    model = Waiting(replies=[], started=started, ended=ended)
    task = asyncio.create_task(GroundednessRunnable(model=model).ainvoke(SAMPLE))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()


async def test_an_awaited_call_whose_time_is_up_is_cancelled() -> None:
    ended = asyncio.Event()
    verifier = LLMVerifier(model=Waiting(replies=[], ended=ended), timeout=SHORT)
    [verdict] = await verifier.ainvoke(one_claim())
    assert verdict.verdict == "unchecked"
    assert ended.is_set()


def one_claim() -> VerificationTask:
    return VerificationTask(
        claims=(Claim(id="c1", text="Rome is in Italy."),),
        documents=(Document("Rome is in Italy."),),
    )


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_what_must_end_the_program_comes_through(kind: type[BaseException]) -> None:
    model = ScriptedChatModel(replies=[kind()])
    with pytest.raises(kind):
        LLMVerifier(model=model).invoke(one_claim())


def test_a_model_is_called_under_the_context_and_the_callbacks_of_the_check() -> None:
    asked: list[str] = []
    heard: list[str] = []

    class Listener(BaseCallbackHandler):
        @override
        def on_chat_model_start(self, *args: Any, tags: list[str] | None = None, **_: Any) -> None:
            heard.extend(tags or ())

    def reply(_: list[BaseMessage]) -> str:
        asked.append(ASKED.get())
        return "{tag} C1: [1] supported"

    token = ASKED.set("the caller")
    config: Any = {"callbacks": [Listener()], "tags": ["mine"]}
    LLMVerifier(model=ScriptedChatModel(replies=reply)).invoke(one_claim(), config)
    ASKED.reset(token)
    assert asked == ["the caller"]
    assert "mine" in heard


def fill(silence: Silence) -> LLMVerifier:
    """Leave as many calls hanging as a process may have."""
    verifier = LLMVerifier(model=hanging(silence), timeout=SHORT)
    verifier.batch([one_claim()] * MOST_HANGING, {"max_concurrency": MOST_HANGING})
    while silence.held < MOST_HANGING:  # a busy machine begins a call after its time is up
        time.sleep(0.01)
    return verifier


def test_too_many_calls_that_go_on_for_ever_keep_further_ones_from_being_made(
    silence: Silence,
) -> None:
    verifier = fill(silence)
    assert "earlier model calls still run" in str(verifier.invoke(one_claim())[0].reason)
    assert silence.held == MOST_HANGING
    healthy = LLMVerifier(model=ScriptedChatModel(replies=["{tag} C1: [1] supported"] * 2))
    assert healthy.invoke(one_claim())[0].verdict == "unchecked"
    silence.break_()
    assert healthy.invoke(one_claim())[0].verdict == "supported"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_calls_that_go_on_in_a_process_count_for_nothing_in_a_forked_child(
    silence: Silence,
) -> None:
    fill(silence)
    healthy = LLMVerifier(model=ScriptedChatModel(replies=["{tag} C1: [1] supported"] * 2))
    assert healthy.invoke(one_claim())[0].verdict == "unchecked"
    child = os.fork()
    if not child:
        signal.alarm(LONG)
        os._exit(0 if healthy.invoke(one_claim())[0].verdict == "supported" else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_without_a_timeout_a_model_is_called_in_the_thread_of_the_caller() -> None:
    threads: list[threading.Thread] = []

    def reply(_: Any) -> str:
        threads.append(threading.current_thread())
        return "none"

    model: Runnable[Any, Any] = RunnableLambda(reply)
    extractor = LLMClaimExtractor(model=model, timeout=None)
    extractor.invoke("Rome is in Italy.")
    assert threads == [threading.current_thread()]


def test_a_timeout_of_the_client_is_told_as_what_it_is() -> None:
    verifier = LLMVerifier(model=ScriptedChatModel(replies=[TimeoutError("of theirs")]))
    [verdict] = verifier.invoke(one_claim())
    assert verdict.reason == "TimeoutError from the judge"


async def test_an_extraction_that_may_not_fall_back_says_that_time_is_up(silence: Silence) -> None:
    extractor = LLMClaimExtractor(model=hanging(silence), fallback=None, timeout=SHORT)
    with pytest.raises(ModelTimeoutError) as caught:
        await asyncio.to_thread(extractor.invoke, "Rome is in Italy.")
    assert caught.value.seconds == SHORT


def test_a_process_ends_though_a_call_goes_on() -> None:
    code = """
import threading
from langchain_core.runnables import RunnableLambda
from langchain_groundedness import GroundednessRunnable
model = RunnableLambda(lambda _: threading.Event().wait())
sample = {"answer": "Rome is in Italy.", "documents": ["Rome is in Italy."]}
print(GroundednessRunnable(model=model, model_timeout=0.1).invoke(sample).verdict)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "unchecked\n"


# --- how often a model is asked ---


def garbling(**_: Any) -> ScriptedChatModel:
    return ScriptedChatModel(replies=lambda _: "It is what it is, as they say.")


def many_claims(count: int) -> VerificationTask:
    claims = tuple(Claim(id=f"c{n}", text=f"Lamp {n} is red.") for n in range(count))
    return VerificationTask(claims=claims, documents=(Document("Lamp 1 is red."),))


@pytest.mark.parametrize("strategy", ["batched", "per_claim"])
@pytest.mark.parametrize("count", [1, 3, 12, 40])
async def test_a_judge_that_answers_garbage_is_asked_at_most_so_often(
    count: int, strategy: Any
) -> None:
    model = garbling()
    verifier = LLMVerifier(model=model, strategy=strategy)
    groups = -(-count // 12) if strategy == "batched" else count
    for awaited in (True, False):
        if awaited:
            verdicts = await verifier.ainvoke(many_claims(count))
        else:
            verdicts = await asyncio.to_thread(verifier.invoke, many_claims(count))
        assert [v.verdict for v in verdicts] == ["unchecked"] * count
        assert all(v.reason for v in verdicts)
        assert len(model.requests) <= groups + count + 4
        model.requests.clear()


@pytest.mark.parametrize("strategy", ["batched", "per_claim"])
@pytest.mark.parametrize(("budget", "calls"), [(0, 2), (1, 3), (2, 4)])
def test_a_budget_of_retries_is_for_the_whole_check(strategy: Any, budget: int, calls: int) -> None:
    model = garbling()
    verifier = LLMVerifier(model=model, strategy=strategy, claims_per_call=2, retry_budget=budget)
    count = 4 if strategy == "batched" else 2
    verdicts = verifier.invoke(many_claims(count))
    assert len(model.requests) == calls
    assert [v.verdict for v in verdicts] == ["unchecked"] * count


def plainly(messages: list[BaseMessage]) -> str:
    asked = messages[-1].text
    return "1" if "number only" in asked else "yes" if "one word" in asked else "Fine."


@pytest.mark.parametrize("budget", [0, 1, 3, 4, 5, 6, 7])
def test_plain_questions_come_out_of_the_budget(budget: int) -> None:
    model = ScriptedChatModel(replies=plainly)
    LLMVerifier(model=model, retry_budget=budget).invoke(many_claims(5))
    assert len(model.requests) == 1 + budget


@pytest.mark.parametrize("count", [1, 3, 12, 13, 60])
def test_the_default_budget_is_enough_for_plain_questions_about_every_claim(count: int) -> None:
    model = ScriptedChatModel(replies=plainly)
    verdicts = LLMVerifier(model=model).invoke(many_claims(count))
    assert "unchecked" not in {v.verdict for v in verdicts}
    assert len(model.requests) <= 2 * count + 5 * -(-count // 12)


def test_a_reason_says_that_the_budget_is_used_up() -> None:
    verifier = LLMVerifier(model=garbling(), retry_budget=0)
    reasons = {str(v.reason) for v in verifier.invoke(many_claims(3))}
    assert all("no call was left" in reason for reason in reasons)


def test_a_server_that_refuses_every_form_is_asked_within_the_budget() -> None:
    with FaultyServer(lambda _: "none", fault="http_500") as server:
        verifier = LLMVerifier(model=patient_chat(server), claims_per_call=1, retry_budget=2)
        assert {v.verdict for v in verifier.invoke(many_claims(5))} == {"unchecked"}
        assert server.calls <= 5 + 2


def test_a_whole_check_with_garbage_has_a_bound() -> None:
    model = garbling()
    GroundednessRunnable(model=model, on_contradicted="correct").invoke(SAMPLE)
    extraction, verification = 2, 1 + 3 + 4
    assert len(model.requests) <= extraction + verification


# --- options ---


@pytest.mark.parametrize("seconds", [0, -1, float("inf"), float("nan"), "soon"])
@pytest.mark.parametrize("kind", [LLMVerifier, LLMClaimExtractor, Corrector, LLMQueryClassifier])
def test_a_timeout_must_be_a_number_of_seconds(kind: Any, seconds: Any) -> None:
    with pytest.raises(ConfigurationError, match="timeout"):
        kind(model=garbling(), timeout=seconds)


def test_a_checker_hands_its_timeout_to_whatever_asks_its_model() -> None:
    check = GroundednessRunnable(model=garbling(), model_timeout=7).check
    stages: list[Any] = [check.extractor, check.verifier, check.corrector]
    assert [stage.timeout for stage in stages] == [7, 7, 7]


QUESTION = "Where is Rome?"
ROW = {"question": QUESTION, "answer": "Rome is in Italy.", "contexts": ["Rome is in Italy."]}


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (FaithfulnessEvaluator, {}),
        (AnswerQualityEvaluator, {}),
        (AnswerRelevancyEvaluator, {"embeddings": DeterministicFakeEmbedding(size=4)}),
        (ContextRelevanceEvaluator, {}),
        (RubricEvaluator, {"rubric": {1: "bad", 2: "good"}}),
    ],
)
def test_a_row_for_which_the_model_takes_too_long_fails(
    kind: Any, options: dict[str, Any], silence: Silence
) -> None:
    evaluator = kind(model=hanging(silence), model_timeout=SHORT, **options)
    score = evaluator.invoke(ROW)
    assert (score.score, score.status) == (None, "failed")
    assert "did not reply within 0.1 s" in score.reason


def test_a_row_that_takes_the_judge_too_long_is_not_validated(silence: Silence) -> None:
    validator = AnswerValidator(model=hanging(silence), model_timeout=SHORT, accept=1, reject=0)
    found = validator.invoke(ROW)
    assert found.outcome == "unchecked"
    assert "did not reply within 0.1 s" in str(found.reasons)


def test_a_query_for_which_the_model_takes_too_long_has_no_class(silence: Silence) -> None:
    found = LLMQueryClassifier(model=hanging(silence), timeout=SHORT).invoke(QUESTION)
    assert (found.label, found.failed) == ("unknown", True)


def test_a_stage_of_your_own_keeps_its_timeout() -> None:
    stage = LLMVerifier(model=garbling(), timeout=3)
    assert GroundednessRunnable(verifier=stage, model_timeout=7).check.verifier == stage
