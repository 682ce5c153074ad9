"""The whole check as a runnable: stages, options, and the contract of a LangChain runnable."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from functools import reduce
from operator import add
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.cross_encoders import BaseCrossEncoder
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.load import dumpd, load
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import (
    ConfigurableField,
    Runnable,
    RunnableGenerator,
    RunnableLambda,
    RunnablePassthrough,
)
from langchain_core.stores import InMemoryByteStore

from langchain_groundedness import (
    CachedVerifier,
    CascadeVerifier,
    Citation,
    Claim,
    ClaimVerdict,
    ConfigurationError,
    Corrector,
    CrossEncoderVerifier,
    DecisionPolicy,
    EmbeddedVerifier,
    GroundednessResult,
    GroundednessResultChunk,
    GroundednessRunnable,
    InputFormatError,
    SentenceClaimExtractor,
    VerificationError,
    VerificationTask,
    load_arguments,
)
from langchain_groundedness.testing import ScriptedChatModel
from langchain_groundedness.types import CorrectedAnswer, CorrectionTask, Edit, ExtractionTask

REPORT = Document(page_content="Revenue was $2.1B in Q3. Costs fell by 4%.", id="report")
ANSWER = "Revenue was $2.4B in Q3. Costs fell by 4%. The CEO resigned."
WITH_EVIDENCE = "[CORRECTED: Revenue was $2.1B in Q3.] Costs fell by 4%. The CEO resigned."
CORRECTING = {"on_contradicted": "correct", "on_unverifiable": "keep"}
INPUT = {"question": "How was Q3?", "answer": ANSWER, "documents": [REPORT]}


def judge(claim: Claim, documents: tuple[Document, ...]) -> ClaimVerdict:
    """A scripted judge that knows the report."""
    text = claim.text
    if "$2.4B" in text:
        quote = Citation.from_document(documents, 0, 0, 24)
        return ClaimVerdict(
            claim=claim, verdict="contradicted", citations=(quote,), correction="$2.1B"
        )
    if "$2.1B" in text or "Costs" in text:
        quote = Citation.from_document(documents, 0, 0, 24)
        return ClaimVerdict(
            claim=claim, verdict="supported", citations=(quote,), support_probability=0.9
        )
    return ClaimVerdict(claim=claim, verdict="unverifiable")


def judge_all(task: VerificationTask) -> list[ClaimVerdict]:
    return [judge(claim, task.documents) for claim in task.claims]


def judge_one_by_one(tasks: Iterator[VerificationTask]) -> Iterator[list[ClaimVerdict]]:
    for task in tasks:
        for claim in reversed(task.claims):
            yield [judge(claim, task.documents)]


async def ajudge_one_by_one(
    tasks: AsyncIterator[VerificationTask],
) -> AsyncIterator[list[ClaimVerdict]]:
    async for task in tasks:
        for claim in reversed(task.claims):
            yield [judge(claim, task.documents)]


def judge_nothing(_: VerificationTask) -> list[ClaimVerdict]:
    return []


def failing(error: Exception) -> Callable[[Any], Any]:
    def fail(_: Any) -> Any:
        raise error

    return fail


def checker(**options: Any) -> GroundednessRunnable:
    return GroundednessRunnable(**{"verifier": judge_all, **options})


def labels(result: GroundednessResult) -> list[str]:
    return [v.verdict for v in result.claims]


def test_each_claim_gets_its_verdict_and_the_answer_its_sum() -> None:
    result = checker().invoke(INPUT)
    assert labels(result) == ["contradicted", "supported", "unverifiable"]
    assert result.trust_score == pytest.approx(1 / 3)
    assert (result.verdict, result.is_trusted) == ("has_contradictions", False)
    assert result.decision.action == "flag"
    assert result.question == "How was Q3?"
    assert result.answer == result.original_answer == ANSWER
    assert result.documents == (REPORT,)
    for v in result.claims:
        assert ANSWER[v.claim.start : v.claim.end] == v.claim.text


async def test_async_says_the_same() -> None:
    result = await checker().ainvoke(INPUT)
    assert labels(result) == ["contradicted", "supported", "unverifiable"]
    assert result.verdict == "has_contradictions"


def test_correct_replaces_the_value_and_leaves_every_other_character() -> None:
    result = checker(**CORRECTING).invoke(INPUT)
    assert result.answer == ANSWER.replace("$2.4B", "[CORRECTED: $2.1B]")
    assert result.original_answer == ANSWER
    (edit,) = result.edits
    assert ANSWER[edit.start : edit.end] == edit.original == "$2.4B"
    assert labels(result)[0] == "contradicted"


def test_the_evidence_stands_in_for_a_correction_that_the_documents_do_not_support() -> None:
    def wrong(task: VerificationTask) -> list[ClaimVerdict]:
        return [
            v.model_copy(update={"correction": "$9.9B"}) if v.verdict == "contradicted" else v
            for v in judge_all(task)
        ]

    result = checker(verifier=wrong, **CORRECTING).invoke(INPUT)
    assert result.answer == WITH_EVIDENCE
    assert labels(result)[0] == "contradicted"
    stripping = Corrector(fallback="strip")
    result = checker(verifier=wrong, corrector=stripping, **CORRECTING).invoke(INPUT)
    assert result.answer == "Costs fell by 4%. The CEO resigned."


def test_final_is_the_verdict_on_what_leaves_and_the_policy_decides_on_it() -> None:
    options: dict[str, Any] = {"policy": DecisionPolicy(contradicted="block")}
    result = checker(**options, on_contradicted="correct", on_unverifiable="strip").invoke(INPUT)
    assert result.verdict == "has_contradictions"
    assert result.trust_score == pytest.approx(1 / 3)
    assert result.final is not None
    assert (result.final.verdict, result.final.trust_score) == ("grounded", 1.0)
    assert result.final.decision == result.decision
    assert result.decision.action == "pass"
    kept = checker(**options).invoke(INPUT)
    assert kept.final is not None
    assert (kept.final.verdict, kept.decision.action) == (kept.verdict, "block")


def test_of_an_answer_of_which_nothing_is_left_the_policy_sees_an_empty_one() -> None:
    given = {**INPUT, "answer": "The CEO resigned."}
    result = checker(on_unverifiable="strip").invoke(given)
    assert result.final is not None
    assert (result.answer, result.final.verdict) == ("", "no_claims")
    assert result.decision.reasons == ("the answer is empty",)


class Rating(BaseCrossEncoder):
    """Finds the corrected sentence supported at 0.8, and the wrong one contradicted."""

    def score(self, text_pairs: list[tuple[str, str]]) -> Any:
        return [(0.8, 0.1) if "$2.1B" in claim else (0.1, 0.8) for _, claim in text_pairs]


@pytest.mark.parametrize(("threshold", "stands"), [(None, True), (0.6, True), (0.7, False)])
@pytest.mark.parametrize("within", ["alone", "cascade", "cache", "retry"])
def test_a_correction_must_reach_halfway_from_the_threshold_to_certainty(
    within: str, threshold: float | None, *, stands: bool
) -> None:
    rating: Any = CrossEncoderVerifier(
        cross_encoder=Rating(), classes=("supported", "contradicted"), threshold=threshold
    )
    verifier: Any = {
        "alone": rating,
        "cascade": CascadeVerifier([judge_nothing, rating]),
        "cache": CachedVerifier(verifier=rating, store=InMemoryByteStore(), key="1"),
        "retry": rating.with_retry(),
    }[within]
    options: dict[str, Any] = {"on_contradicted": "correct", "verifier": verifier}
    options["corrector"] = Corrector(marker=None)
    result = GroundednessRunnable(**options).invoke(("The revenue was $2.4B.", [REPORT]))
    assert result.answer == ("The revenue was $2.1B." if stands else REPORT.page_content)


@pytest.mark.parametrize(
    ("answer", "wrong", "right", "evidence"),
    [
        ("Q3 revenue was $2.4B.", "$2.4B", "$2.1B", "Revenue was $2.1B in Q3, up 12%."),
        ("The firm has 360 people in Oslo.", "360", "340", "340 people work for it in Oslo."),
        ("Employees get 28 days of leave.", "28", "25", "Employees get 25 days of paid leave."),
    ],
)
def test_a_correction_must_pass_the_strict_profile_of_the_embedded_verifier(
    answer: str, wrong: str, right: str, evidence: str
) -> None:
    corrected = answer.replace(wrong, right)
    strict = EmbeddedVerifier(profile="strict")
    passes = GroundednessRunnable(verifier=strict).invoke((corrected, [evidence])).is_trusted
    check = GroundednessRunnable(on_contradicted="correct", corrector=Corrector(marker=None))
    assert check.invoke((answer, [evidence])).answer == (corrected if passes else evidence)


@pytest.mark.parametrize(
    ("evidence", "stands"),
    [
        ("Revenue was $2.1B in Q3, up 12% from last year.", True),
        ("In Q3, we had $2.1B revenue, up 12% from last year.", False),
        ("Revenue was $2.1Bn in Q3.", False),
    ],
)
def test_a_likely_correction_stands_if_the_evidence_says_it_word_for_word(
    evidence: str, *, stands: bool
) -> None:
    def likely(task: VerificationTask) -> list[ClaimVerdict]:
        quote = Citation.from_document(task.documents, 0, 0, len(evidence))
        return [
            ClaimVerdict(
                claim=claim,
                verdict="contradicted" if "$2.4" in claim.text else "supported",
                support_probability=0.6,
                citations=(quote,),
                correction="$2.1B" if "$2.4" in claim.text else None,
            )
            for claim in task.claims
        ]

    check = GroundednessRunnable(
        verifier=likely, on_contradicted="correct", corrector=Corrector(marker=None)
    )
    result = check.invoke(("Revenue was $2.4B in Q3.", [evidence]))
    assert result.answer == ("Revenue was $2.1B in Q3." if stands else evidence)


def test_a_correction_that_says_more_than_what_it_replaces_does_not_stand() -> None:
    def adding(task: CorrectionTask) -> CorrectedAnswer:
        more = {"replacement": "$2.1B, thanks to the new warehouse", "original": "$2.4B"}
        edit = Edit(claim_id=task.verdicts[0].claim.id, start=12, end=17, **more)
        return CorrectedAnswer(text="", edits=(edit,))

    result = checker(corrector=adding, **CORRECTING).invoke(INPUT)
    assert result.answer == "Costs fell by 4%. The CEO resigned."


def test_a_value_is_not_corrected_in_a_sentence_that_stays_wrong() -> None:
    check = GroundednessRunnable(on_contradicted="correct")
    report = "Revenue was $2.1B in Q3, up 12% from last year."
    result = check.invoke(("Revenue fell 12% to $2.4B.", [report]))
    assert result.answer == f"[CORRECTED: {report}]"


def test_a_failing_recheck_lets_the_evidence_stand_in() -> None:
    def once(task: VerificationTask) -> list[ClaimVerdict]:
        if len(task.claims) == 1:
            raise TimeoutError
        return judge_all(task)

    result = checker(verifier=once, **CORRECTING).invoke(INPUT)
    assert result.answer == WITH_EVIDENCE


def test_what_a_failing_corrector_does_not_correct_is_removed_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    corrector = failing(RuntimeError())
    result = checker(corrector=corrector, **CORRECTING).invoke(INPUT)
    assert result.answer == "Costs fell by 4%. The CEO resigned."
    assert labels(result)[0] == "contradicted"
    assert "correction failed (RuntimeError)" in caplog.text


def test_an_answer_that_is_empty_because_its_check_failed_says_so() -> None:
    verifier = failing(RuntimeError())
    result = checker(verifier=verifier, on_contradicted="correct").invoke(INPUT)
    assert result.answer == ""
    assert result.decision.action == "review"
    assert "could not be checked: verification failed (RuntimeError)" in result.decision.reasons[0]


def test_strip_takes_the_sentences_out() -> None:
    result = checker(on_contradicted="strip", on_unverifiable="strip").invoke(INPUT)
    assert result.answer == "Costs fell by 4%."
    assert len(result.edits) == 2


def test_the_marker_is_the_correctors() -> None:
    result = checker(corrector=Corrector(marker=None), **CORRECTING).invoke(INPUT)
    assert result.answer == ANSWER.replace("$2.4B", "$2.1B")


def test_claims_beyond_max_claims_are_unchecked_not_hidden() -> None:
    result = checker(max_claims=1).invoke(INPUT)
    assert labels(result) == ["contradicted", "unchecked", "unchecked"]
    assert result.claims[1].reason == "over max_claims=1"


def test_a_chain_that_returns_only_a_text_is_told_to_return_its_documents_too() -> None:
    model = FakeListChatModel(responses=[ANSWER])
    chain = model | StrOutputParser() | checker()
    for result in (
        chain.invoke("?"),
        (model | checker()).invoke("?"),
        reduce(add, chain.stream("?")),
    ):
        [reason] = {verdict.reason for verdict in result.claims}
        assert reason
        assert "only a text; let the chain return its documents too, as {'answer': ..." in reason
    given = model | checker().bind(documents=[])
    assert given.invoke("?").claims[0].reason == "no documents to check against"


@pytest.mark.parametrize("documents", [[], [""], [" \n", ""]])
def test_without_documents_every_claim_is_unchecked_and_no_judge_is_asked(
    documents: list[str],
) -> None:
    verifier = failing(AssertionError("asked"))
    result = checker(verifier=verifier, raise_on_failure=True).invoke(
        {"answer": ANSWER, "documents": documents}
    )
    assert set(labels(result)) == {"unchecked"}
    assert result.claims[0].reason == "no documents to check against"
    assert (result.verdict, result.is_trusted, result.trust_score) == ("unchecked", False, None)
    assert result.decision.action == "review"


@pytest.mark.parametrize(
    ("answer", "action", "trusted"),
    [("", "flag", False), (" \n ", "flag", False), ("I don't know.", "pass", True)],
)
def test_an_answer_without_claims(answer: str, action: str, *, trusted: bool) -> None:
    result = checker().invoke({"answer": answer, "documents": [REPORT]})
    assert (result.verdict, result.claims, result.trust_score) == ("no_claims", (), None)
    assert (result.decision.action, result.is_trusted) == (action, trusted)


def test_a_failing_verifier_leaves_every_claim_unchecked_with_the_reason() -> None:
    result = checker(verifier=failing(TimeoutError("secret detail"))).invoke(INPUT)
    assert set(labels(result)) == {"unchecked"}
    assert {v.reason for v in result.claims} == {"verification failed (TimeoutError)"}
    assert not result.is_trusted


def test_a_failing_extractor_leaves_the_sentences_unchecked_with_the_reason() -> None:
    result = checker(extractor=failing(TimeoutError())).invoke(INPUT)
    assert labels(result) == ["unchecked"] * 3
    assert {v.reason for v in result.claims} == {"claim extraction failed (TimeoutError)"}


def test_a_failing_extractor_on_an_answer_without_sentences_is_still_unchecked() -> None:
    result = checker(extractor=failing(TimeoutError())).invoke(
        {"answer": "I don't know.", "documents": [REPORT]}
    )
    assert (result.verdict, result.is_trusted) == ("unchecked", False)


@pytest.mark.parametrize("stage", ["extractor", "verifier"])
def test_raise_on_failure_raises_with_the_cause(stage: str) -> None:
    check = checker(**{stage: failing(TimeoutError())}, raise_on_failure=True)
    with pytest.raises(VerificationError, match="TimeoutError") as caught:
        check.invoke(INPUT)
    assert isinstance(caught.value.__cause__, TimeoutError)
    assert len(caught.value.claim_ids) == (3 if stage == "verifier" else 0)


def test_raise_on_failure_names_the_claims_that_got_no_verdict() -> None:
    def drops_one(task: VerificationTask) -> list[ClaimVerdict]:
        return judge_all(task)[1:]

    told = "1 of 3 claims could not be checked: the verifier gave no verdict"
    with pytest.raises(VerificationError, match=told) as caught:
        checker(verifier=drops_one, raise_on_failure=True).invoke(INPUT)
    assert caught.value.claim_ids == ("c1",)


def test_claims_of_an_extractor_that_repeats_ids_are_all_checked() -> None:
    def extract(_: ExtractionTask) -> list[Claim]:
        return [Claim(id="c", text="Costs fell by 4%."), Claim(id="c", text="The CEO resigned.")]

    result = checker(extractor=extract).invoke(INPUT)
    assert labels(result) == ["supported", "unverifiable"]
    assert len({v.claim.id for v in result.claims}) == 2


def test_stream_gives_claims_then_verdicts_then_the_decision_and_adds_up() -> None:
    check = checker(
        verifier=RunnableGenerator(judge_one_by_one, ajudge_one_by_one), on_contradicted="correct"
    )
    chunks = list(check.stream(INPUT))
    assert [c.text for c in chunks[0].extracted] == [
        v.claim.text for v in check.invoke(INPUT).claims
    ]
    assert [[v.claim.id for v in c.claims] for c in chunks[1:-1]] == [["c3"], ["c2"], ["c1"]]
    assert chunks[0].verdict == "unchecked"
    assert reduce(add, chunks) == check.invoke(INPUT)


async def test_astream_adds_up_to_what_ainvoke_returns() -> None:
    check = checker(verifier=RunnableGenerator(judge_one_by_one, ajudge_one_by_one))
    chunks = [chunk async for chunk in check.astream(INPUT)]
    assert len(chunks) == 5
    assert reduce(add, chunks) == await check.ainvoke(INPUT)


def test_verdicts_streamed_before_a_failure_are_kept() -> None:
    def breaks(tasks: Iterator[VerificationTask]) -> Iterator[list[ClaimVerdict]]:
        for task in tasks:
            yield [judge(task.claims[1], task.documents)]
            raise TimeoutError

    total = reduce(add, checker(verifier=RunnableGenerator(breaks)).stream(INPUT))
    assert labels(total) == ["unchecked", "supported", "unchecked"]
    assert total.claims[0].reason == "verification failed (TimeoutError)"


def test_a_step_behind_sees_the_same_type_from_stream_as_from_invoke() -> None:
    def summary(result: GroundednessResult) -> tuple[type, str, int]:
        return type(result), result.verdict, len(result.claims)

    chain: Runnable[Any, Any] = checker() | RunnableLambda(summary)
    (streamed,) = chain.stream(INPUT)
    assert streamed == (GroundednessResultChunk, "has_contradictions", 3)
    assert chain.invoke(INPUT)[1:] == streamed[1:]


def test_transform_reads_the_stream_of_a_chain() -> None:
    chain: Runnable[Any, Any] = RunnablePassthrough() | checker()
    assert reduce(add, chain.stream(INPUT)) == checker().invoke(INPUT)


def test_batch_asks_the_verifier_once_for_all_inputs() -> None:
    calls: list[int] = []

    class Counting(RunnableLambda[VerificationTask, list[ClaimVerdict]]):
        def batch(self, inputs: list[VerificationTask], *args: Any, **kwargs: Any) -> Any:
            calls.append(len(inputs))
            return super().batch(inputs, *args, **kwargs)

    other = {**INPUT, "answer": "Costs fell by 4%."}
    results = checker(verifier=Counting(judge_all)).batch([INPUT, other])
    assert calls == [2]
    assert [r.verdict for r in results] == ["has_contradictions", "grounded"]


def test_one_bad_input_of_a_batch_does_not_lose_the_others() -> None:
    results = checker().batch([INPUT, {"foo": 1}, INPUT], return_exceptions=True)
    assert isinstance(results[1], InputFormatError)
    assert results[0] == results[2] == checker().invoke(INPUT)
    with pytest.raises(InputFormatError):
        checker().batch([INPUT, {"foo": 1}])


async def test_one_bad_input_of_an_async_batch_does_not_lose_the_others() -> None:
    results = await checker().abatch([INPUT, {"foo": 1}, INPUT], return_exceptions=True)
    assert isinstance(results[1], InputFormatError)
    assert results[0] == results[2] == await checker().ainvoke(INPUT)
    with pytest.raises(InputFormatError):
        await checker().abatch([INPUT, {"foo": 1}])


async def test_max_concurrency_reaches_the_verifier() -> None:
    running, peak, pair = 0, 0, asyncio.Barrier(2)

    async def slow(task: VerificationTask) -> list[ClaimVerdict]:
        nonlocal running, peak
        running += 1
        peak = max(peak, running)
        await pair.wait()  # nobody is done before a second one runs
        for _ in range(20):
            await asyncio.sleep(0)
        running -= 1
        return judge_all(task)

    async with asyncio.timeout(300):
        await checker(verifier=slow).abatch([INPUT] * 8, {"max_concurrency": 2})
    assert peak == 2


async def test_an_answer_of_a_batch_need_not_wait_for_the_slowest_extraction() -> None:
    judged = asyncio.Event()

    async def extract(task: ExtractionTask) -> list[Claim]:
        if "slow" in task.answer:
            await judged.wait()
        return [Claim(id="c1", text=task.answer)]

    async def verify(task: VerificationTask) -> list[ClaimVerdict]:
        judged.set()
        return judge_all(task)

    answers = [{"answer": text, "documents": [REPORT]} for text in ("A slow one.", "A quick one.")]
    results = await checker(extractor=extract, verifier=verify).abatch(answers)
    assert [r.original_answer for r in results] == ["A slow one.", "A quick one."]


async def test_cancelling_a_batch_cancels_every_check_of_it() -> None:
    started, ended = asyncio.Semaphore(0), []

    async def hang(_: VerificationTask) -> list[ClaimVerdict]:
        started.release()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)
        return []

    run = asyncio.create_task(checker(verifier=hang).abatch([INPUT] * 3))
    for _ in range(3):
        await started.acquire()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert ended == [True] * 3


async def test_concurrent_runs_do_not_mix() -> None:
    inputs = [{"answer": f"Costs fell by {n}%.", "documents": [REPORT]} for n in range(20)]
    results = await asyncio.gather(*(checker().ainvoke(value) for value in inputs))
    assert [r.original_answer for r in results] == [value["answer"] for value in inputs]


async def test_cancellation_is_not_swallowed() -> None:
    started = asyncio.Event()

    async def hang(_: VerificationTask) -> list[ClaimVerdict]:
        started.set()
        await asyncio.Event().wait()
        return []

    run = asyncio.create_task(checker(verifier=hang).ainvoke(INPUT))
    await started.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run


def test_the_stages_have_their_names_in_traces() -> None:
    names: list[str] = []

    class Names(BaseCallbackHandler):
        def on_chain_start(self, *args: Any, **kwargs: Any) -> None:
            names.append(kwargs["name"])

    checker(on_contradicted="correct").invoke(
        INPUT, {"callbacks": [Names()], "run_name": "check_answer"}
    )
    stages = ["read_input", "extract_claims", "verify_claims", "correct_answer", "recheck_edits"]
    assert names[0] == "check_answer"
    assert [name for name in names if name in stages] == stages


def test_the_graph_shows_the_stages() -> None:
    drawn = checker().get_graph().draw_mermaid()
    assert "extract_claims" in drawn
    assert "verify_claims" in drawn


def test_documents_and_question_can_be_bound_for_inputs_that_carry_none() -> None:
    check = checker().bind(documents=["Costs fell by 4%. That is all."], question="How?")
    result = check.invoke("Costs fell by 4%.")
    assert (result.verdict, result.question) == ("grounded", "How?")
    with pytest.raises(ConfigurationError, match="accepts documents=, question="):
        checker().invoke(INPUT, temperature=1)


def test_with_retry_with_fallbacks_and_configurable_fields_work() -> None:
    broken = checker(verifier=failing(TimeoutError()), raise_on_failure=True)
    assert broken.with_fallbacks([checker()]).invoke(INPUT).verdict == "has_contradictions"
    retried = checker().with_retry(stop_after_attempt=2)
    assert retried.invoke(INPUT).verdict == "has_contradictions"
    adjustable = checker().configurable_fields(
        max_claims=ConfigurableField(id="max_claims"),
    )
    result = adjustable.with_config(configurable={"max_claims": 1}).invoke(INPUT)
    assert labels(result) == ["contradicted", "unchecked", "unchecked"]


def test_schemas_show_the_real_keys() -> None:
    assert set(checker().get_input_jsonschema()["properties"]) == {
        "answer",
        "documents",
        "question",
        "query_class",
        "risk_tier",
        "retrieval_score",
    }
    assert "trust_score" in checker().get_output_jsonschema()["properties"]


@pytest.mark.filterwarnings("ignore:The function `load` is in beta")
def test_it_can_be_saved_and_loaded() -> None:
    check = GroundednessRunnable(max_claims=3, policy=DecisionPolicy(contradicted="block"))
    loaded = load(dumpd(check), **load_arguments())
    assert loaded == check


def test_warm_up_may_be_called_twice_and_is_not_needed() -> None:
    warmed: list[bool] = []

    class Warm(RunnableLambda[VerificationTask, list[ClaimVerdict]]):
        def warm_up(self) -> None:
            warmed.append(True)

    check = checker(verifier=Warm(judge_all))
    check.warm_up()
    check.warm_up()
    assert warmed == [True, True]
    checker().warm_up()


@pytest.mark.parametrize(
    "options",
    [
        {"max_claims": 0},
        {"trust_threshold": 1.5},
        {"on_contradicted": "rewrite"},
        {"on_unverifiable": "flag"},
        {"verifier": "llm"},
        {"colour": "red"},
    ],
)
def test_a_bad_option_is_refused_at_construction_by_name(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(ConfigurationError, match=name):
        GroundednessRunnable(**options)


def test_examples_without_a_model_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="examples"):
        GroundednessRunnable(examples=[{"answer": "One.", "claims": ["One."]}])


def test_usage_counts_the_calls_of_the_models_below() -> None:
    model = FakeListChatModel(responses=["yes"])

    def asks(task: VerificationTask) -> list[ClaimVerdict]:
        model.invoke("?")
        return judge_all(task)

    assert checker(verifier=asks).invoke(INPUT).usage.model_calls == 1
    assert checker().invoke(INPUT).usage.model_calls == 0
    first, second = checker(verifier=asks).batch([INPUT, INPUT])
    assert first.usage.model_calls == second.usage.model_calls == 1


async def test_usage_counts_calls_that_fail_too() -> None:
    judged = GroundednessRunnable(
        model=ScriptedChatModel(replies=[ConnectionError("down")] * 3),
        extractor=SentenceClaimExtractor(),
    )
    results = [judged.invoke(INPUT), await judged.ainvoke(INPUT), list(judged.stream(INPUT))[-1]]
    for result in results:
        assert result.usage.model_calls == 1
        assert result.usage.input_tokens is None


def test_a_copy_with_other_options_uses_them_also_after_the_first_check() -> None:
    first = GroundednessRunnable()
    value = ("Revenue was $2.4B in Q3.", ["Revenue was $2.1B in Q3."])
    assert first.invoke(value).edits == ()
    assert first.model_copy(update={"on_contradicted": "correct"}).invoke(value).edits
    assert first.invoke(value).edits == ()


def test_equality_is_that_of_the_options_used_or_not() -> None:
    used = GroundednessRunnable()
    used.invoke(INPUT)
    assert used == GroundednessRunnable()
    assert used != GroundednessRunnable(on_contradicted="correct")
    assert used != 1


def test_a_bad_option_says_what_came_and_lists_the_others_only_if_it_is_unknown() -> None:
    with pytest.raises(ConfigurationError, match=r"trust_threshold.*got 7$"):
        GroundednessRunnable(trust_threshold=7)
    unknown: Any = {"treshold": 7}
    with pytest.raises(ConfigurationError, match=r"options are: .*trust_threshold"):
        GroundednessRunnable(**unknown)
