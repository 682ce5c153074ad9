"""Exactly one record per decision, from every entry point, in every way to call it."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, closing, suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from langchain_core.load import dumpd, load
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda

from audit.stores import MemoryLog
from langchain_groundedness import (
    AsyncGroundednessCallbackHandler,
    CascadeVerifier,
    ConfigurationError,
    EmbeddedVerifier,
    GroundednessCallbackHandler,
    GroundednessGuard,
    GroundednessMiddleware,
    GroundednessRunnable,
    JsonlAuditLog,
    LLMVerifier,
    SentenceClaimExtractor,
    VerificationError,
    groundedness_node,
    load_arguments,
)
from langchain_groundedness.audit import AuditRecord
from langchain_groundedness.exceptions import AuditError
from langchain_groundedness.testing import ScriptedClaimExtractor, ScriptedVerifier

TRUE, FALSE = "Revenue was $2.1B in Q3.", "Costs rose by 9%."
VERDICTS: Any = {TRUE: "supported", FALSE: "contradicted"}
ROW = {
    "question": "How was Q3?",
    "answer": f"{TRUE} {FALSE}",
    "documents": [TRUE, "Costs fell by 4%."],
    "query_class": "finance",
    "risk_tier": "high",
}


def checker(log: Any = None, **options: Any) -> GroundednessRunnable:
    given = {"verifier": ScriptedVerifier(VERDICTS), "extractor": SentenceClaimExtractor()}
    return GroundednessRunnable(**{**given, "audit_log": log, **options})


@pytest.fixture
def log(tmp_path: Path) -> JsonlAuditLog:
    return JsonlAuditLog(tmp_path / "audit.jsonl", fsync=False)


def installed_version() -> str | None:
    with suppress(PackageNotFoundError):
        return version("langchain-groundedness")
    return None


def recorded(log: JsonlAuditLog) -> list[AuditRecord]:
    assert log.flush()
    return list(log.records())


async def streamed(check: Any, value: Any, config: Any = None) -> list[Any]:
    return [piece async for piece in check.astream(value, config)]


WAYS: dict[str, Callable[[Any, Any], Any]] = {
    "invoke": lambda check, config: check.invoke(ROW, config),
    "ainvoke": lambda check, config: asyncio.run(check.ainvoke(ROW, config)),
    "batch": lambda check, config: check.batch([ROW], config),
    "abatch": lambda check, config: asyncio.run(check.abatch([ROW], config)),
    "stream": lambda check, config: list(check.stream(ROW, config)),
    "astream": lambda check, config: asyncio.run(streamed(check, ROW, config)),
    "transform": lambda check, config: list(
        check.transform(iter([{**ROW, "answer": TRUE}, {"answer": f" {FALSE}"}]), config)
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_the_runnable_records_each_decision_once(way: str, log: JsonlAuditLog) -> None:
    run = uuid4()
    config = {"run_id": run, "configurable": {"thread_id": "t1"}}
    WAYS[way](checker(log, on_contradicted="strip"), config)
    [record] = recorded(log)
    assert (record.source, record.run_id, record.root_run_id) == ("runnable", run, run)
    assert record.thread_id == "t1"
    assert record.question == "How was Q3?"
    assert record.original_answer == f"{TRUE} {FALSE}"
    assert (record.shown_answer or "").strip() == TRUE
    assert [verdict.verdict for verdict in record.claims] == ["supported", "contradicted"]
    assert (record.query_class, record.risk_tier) == ("finance", "high")
    assert record.documents[0].content == TRUE
    assert record.documents[1].content is None
    assert record.versions.verifier == "ScriptedVerifier"
    assert record.versions.package == installed_version()
    assert record.versions.encoder is None
    assert record.timings["check"] > 0
    steps = ["extract_claims", "verify_claims", "correct_answer"]
    assert list(record.timings) == ["check", *(steps if "batch" in way or "invoke" in way else ())]
    assert sum(record.timings[name] for name in record.timings) <= 2 * record.timings["check"]


def test_a_batch_records_each_of_its_answers_but_not_those_that_failed(log: JsonlAuditLog) -> None:
    check = checker(log, raise_on_failure=True)
    other = {**ROW, "answer": TRUE}
    unknown = {**ROW, "answer": "Nobody knows that sentence."}
    done = check.batch([ROW, unknown, other], return_exceptions=True)
    assert isinstance(done[1], VerificationError)
    answers = [record.original_answer for record in recorded(log)]
    assert answers == [f"{TRUE} {FALSE}", TRUE]
    assert len({record.run_id for record in recorded(log)}) == 2


def test_a_stream_that_is_not_read_to_its_end_decides_nothing(log: JsonlAuditLog) -> None:
    chunks = checker(log).stream(ROW)
    next(chunks)
    chunks.close()  # type: ignore[attr-defined]  # a generator
    assert recorded(log) == []


def test_a_record_names_its_place_in_the_tree_of_runs(log: JsonlAuditLog) -> None:
    run = uuid4()
    chain = RunnableLambda(lambda row: row) | checker(log)
    chain.invoke(ROW, {"run_id": run})
    [record] = recorded(log)
    assert record.parent_run_id == run
    assert record.run_id not in (None, run)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("release", ["verified", "immediate"])
@pytest.mark.parametrize("whose", ["own", "the checker's"])
def test_the_guard_records_each_decision_once_with_the_text_it_let_out(
    way: str,
    release: Any,
    whose: str,
    log: JsonlAuditLog,
) -> None:
    inner = checker(None if whose == "own" else log, on_contradicted="strip")
    guard = GroundednessGuard(inner, release=release, audit_log=log if whose == "own" else None)
    WAYS[way](guard, None)
    [record] = recorded(log)
    assert record.source == "guard"
    assert (record.shown_answer or "").strip() == TRUE
    assert record.original_answer == f"{TRUE} {FALSE}"


def test_a_guard_that_blocks_records_what_the_reader_was_left_with(log: JsonlAuditLog) -> None:
    guard = GroundednessGuard(
        checker(on_contradicted="block"), blocked_message="Withheld.", audit_log=log
    )
    shown = "".join(guard.stream(ROW))
    [record] = recorded(log)
    assert (record.shown_answer, record.decision.action) == (shown, "block")
    assert shown.endswith("Withheld.")


ONE_BY_ONE: Any = {"max_concurrency": 1}


def written(*, dies: bool = False) -> Iterator[dict[str, Any]]:
    yield {**ROW, "answer": ""}
    for text in (TRUE, f" {TRUE}", f" {FALSE}"):
        yield {"answer": text}
        yield {"answer": " "}
    if dies:
        raise ConnectionError


async def awritten() -> AsyncIterator[dict[str, Any]]:
    for piece in written():
        await asyncio.sleep(0)
        yield piece


async def first_text(guard: GroundednessGuard) -> str:
    async with aclosing(guard.atransform(awritten())) as texts:
        return await anext(texts)


@pytest.mark.parametrize("how", ["sync", "async"])
@pytest.mark.parametrize("release", ["verified", "immediate"])
@pytest.mark.parametrize("whole", [True, False])
def test_text_that_has_left_is_recorded_though_nobody_reads_on(
    how: str, release: Any, log: JsonlAuditLog, *, whole: bool
) -> None:
    own = {"extractor": ScriptedClaimExtractor([TRUE])} if whole else {}
    guard = GroundednessGuard(checker(log, **own), release=release)
    if how == "async":
        left = asyncio.run(first_text(guard))
    else:
        with closing(guard.transform(written(), ONE_BY_ONE)) as texts:
            left = next(texts)
    found = recorded(log)
    if whole and release == "verified":
        assert [record.outcome for record in found] == [None]  # it was checked to its end
        return
    [record] = found
    assert (record.source, record.outcome, record.shown_answer) == ("guard", "abandoned", left)
    assert (record.original_answer or "").startswith(left)
    assert record.review.status == "none"
    if whole:
        assert {claim.verdict for claim in record.claims} == {"unchecked"}


def test_text_that_has_left_is_recorded_when_the_model_fails(log: JsonlAuditLog) -> None:
    left = []
    with pytest.raises(ConnectionError):  # noqa: PT012  (what came before it counts)
        for text in GroundednessGuard(checker(log)).transform(written(dies=True), ONE_BY_ONE):
            left.append(text)  # noqa: PERF402  (as above)
    [record] = recorded(log)
    assert (record.outcome, record.shown_answer) == ("abandoned", "".join(left))
    assert "".join(left).startswith(TRUE)


def test_where_no_text_has_left_nothing_was_decided(log: JsonlAuditLog) -> None:
    def dies() -> Iterator[dict[str, Any]]:
        yield {**ROW, "answer": ""}
        raise ConnectionError

    with pytest.raises(ConnectionError):
        list(GroundednessGuard(checker(log)).transform(dies()))
    assert recorded(log) == []


@pytest.mark.parametrize("whose", ["own", "the checker's"])
@pytest.mark.parametrize("when", ["before the chain returns", "in the background"])
def test_the_handler_records_each_decision_once(
    whose: str,
    when: str,
    log: JsonlAuditLog,
) -> None:
    handler = GroundednessCallbackHandler(
        checker(None if whose == "own" else log),
        audit_log=log if whose == "own" else None,
        background=when == "in the background",
    )
    chain: Any = RunnableLambda(lambda _: ROW)
    run = uuid4()
    config: Any = {"callbacks": [handler], "run_id": run, "metadata": {"thread_id": "t1"}}
    chain.invoke("How was Q3?", config)
    chain.invoke("How was Q3?", {"callbacks": [handler]})
    handler.flush()
    first, second = sorted(recorded(log), key=lambda record: record.run_id != run)
    assert (first.source, first.run_id, first.root_run_id) == ("handler", run, run)
    assert first.thread_id == "t1"
    assert second.run_id != run
    assert first.verdict == "has_contradictions"
    handler.close()


@pytest.mark.parametrize("how", ["sync", "async"])
def test_the_handler_records_that_the_answer_was_shown_as_it_came(
    how: str, log: JsonlAuditLog
) -> None:
    check = checker(log, on_contradicted="strip")
    chain: Any = RunnableLambda(lambda _: ROW)
    if how == "async":
        aware = AsyncGroundednessCallbackHandler(check)
        asyncio.run(chain.ainvoke("?", {"callbacks": [aware]}))
        aware.close()
    else:
        handler = GroundednessCallbackHandler(check)
        chain.invoke("?", {"callbacks": [handler]})
        handler.close()
    [record] = recorded(log)
    assert record.shown_answer == record.original_answer == ROW["answer"]
    assert (record.suggested_answer or "").strip() == TRUE


async def test_the_async_handler_records_each_decision_once(log: JsonlAuditLog) -> None:
    handler = AsyncGroundednessCallbackHandler(checker(), audit_log=log)
    chain: Any = RunnableLambda(lambda _: ROW)
    await asyncio.gather(*(chain.ainvoke("?", {"callbacks": [handler]}) for _ in range(5)))
    assert await log.aflush()
    found = await asyncio.to_thread(lambda: list(log.records()))
    assert {record.run_id for record in found} == set(handler.results)
    assert len(found) == 5
    handler.close()


def test_an_answer_that_the_handler_could_not_check_is_recorded_as_unchecked(
    log: JsonlAuditLog,
) -> None:
    broken: Any = RunnableLambda(lambda _: 1 / 0)
    handler = GroundednessCallbackHandler(broken, audit_log=log)
    chain: Any = RunnableLambda(lambda _: ROW)
    chain.invoke("?", {"callbacks": [handler]})
    [record] = recorded(log)
    assert (record.verdict, record.decision.action) == ("unchecked", "review")
    assert record.review.status == "waiting"
    handler.close()


@pytest.mark.parametrize("way", WAYS)
def test_a_store_that_is_down_breaks_no_answer_if_records_are_spooled(
    way: str, tmp_path: Path
) -> None:
    down = MemoryLog(tmp_path / "spool", down=True)
    assert WAYS[way](checker(down), None)
    assert down.flush()
    assert down.spooled == 1
    down.close()


@pytest.mark.parametrize(
    ("door", "way"),
    [
        *((door, way) for door in ("runnable", "guard") for way in WAYS),
        *(("node", way) for way in WAYS if way != "transform"),  # a state comes whole
    ],
)
def test_a_store_that_is_down_breaks_already_the_first_answer_if_that_was_asked_for(
    door: str, way: str
) -> None:
    down = MemoryLog(down=True)
    given: Any = {
        "runnable": checker,
        "guard": lambda log: GroundednessGuard(checker(log)),
        "node": lambda log: groundedness_node(checker(log)),
    }
    check = given[door](down)
    for number in (1, 2):
        with pytest.raises(AuditError, match=rf"\b{number} records? (is|are) not durable"):
            WAYS[way](check, None)
    down.down = False
    down.close()
    assert len(down.kept) == 2


@pytest.mark.parametrize("way", WAYS)
def test_an_answer_with_a_log_that_raises_comes_when_its_record_is_durable(way: str) -> None:
    log = MemoryLog()
    WAYS[way](checker(log), None)
    assert (len(log.kept), log.pending) == (1, 0)
    log.close()


def test_the_records_of_a_batch_are_confirmed_together() -> None:
    log = MemoryLog()
    log.gate.clear()
    others = [{**ROW, "answer": TRUE} for _ in range(50)]
    worker = threading.Thread(target=checker(log).batch, args=(others,))
    worker.start()
    while log.pending < len(others):
        log.writing.wait(300)
    log.gate.set()
    worker.join(300)
    assert len(log.kept) == len(others)
    assert log.attempts < 5
    log.close()


@pytest.fixture
def raising(tmp_path: Path) -> JsonlAuditLog:
    return JsonlAuditLog(tmp_path / "audit.jsonl", on_store_down="raise")


async def test_waiting_for_the_record_does_not_block_the_event_loop(
    raising: JsonlAuditLog,
) -> None:
    await asyncio.gather(*(checker(raising).ainvoke(ROW) for _ in range(5)))
    assert raising.pending == 0
    await raising.aclose()


def test_the_first_answer_is_not_given_where_the_file_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    log = JsonlAuditLog(tmp_path / "file" / "x.jsonl", on_store_down="raise")
    with pytest.raises(AuditError, match="1 record is not durable"):
        checker(log).invoke(ROW)
    with pytest.raises(AuditError):
        log.close()


def test_a_store_that_is_down_never_breaks_a_chain_that_is_watched(
    caplog: pytest.LogCaptureFixture,
) -> None:
    down = MemoryLog(down=True)
    handler = GroundednessCallbackHandler(checker(), audit_log=down)
    chain: Any = RunnableLambda(lambda _: ROW)
    for _ in range(2):
        assert chain.invoke("?", {"callbacks": [handler]}) == ROW
        with pytest.raises(AuditError):
            down.flush()
    assert "no audit record" in caplog.text
    down.down = False
    down.close()
    handler.close()


async def test_recording_does_not_block_the_event_loop(log: JsonlAuditLog) -> None:
    check = checker(log)
    await check.ainvoke(ROW)
    await check.abatch([ROW, ROW])
    await streamed(GroundednessGuard(check), ROW)
    assert await log.aflush()
    await log.aclose()


def test_versions_say_which_verifier_encoder_and_model_have_judged(log: JsonlAuditLog) -> None:
    from langchain_groundedness.testing import ScriptedChatModel  # noqa: PLC0415  (used here alone)

    class Named(ScriptedChatModel):
        model_name: str = "judge-1"

    def versions(**options: Any) -> Any:
        GroundednessRunnable(audit_log=log, **options).invoke(ROW)
        assert log.flush()
        return list(log.records())[-1].versions

    embedded = versions()
    assert embedded.verifier == "EmbeddedVerifier"
    assert len(embedded.encoder or "") == 64
    assert embedded.model is None
    judged = versions(model=Named(replies=[]))
    assert (judged.verifier, judged.model, judged.encoder) == ("LLMVerifier", "judge-1", None)
    stages = [EmbeddedVerifier(), LLMVerifier(model=Named(replies=[]))]
    mixed = versions(verifier=CascadeVerifier(stages=stages))
    assert (mixed.verifier, mixed.model) == ("CascadeVerifier", "judge-1")
    assert mixed.encoder == embedded.encoder


@pytest.mark.filterwarnings("ignore:The function `load` is in beta")
def test_a_checker_is_saved_without_its_log(log: JsonlAuditLog) -> None:
    saved = dumpd(GroundednessRunnable(max_claims=3, audit_log=log))
    assert load(saved, **load_arguments()) == GroundednessRunnable(max_claims=3)
    guard = GroundednessGuard(GroundednessRunnable(), audit_log=log)
    assert load(dumpd(guard), **load_arguments()) == GroundednessGuard(GroundednessRunnable())


@pytest.mark.parametrize(
    "made",
    [
        lambda: GroundednessRunnable(audit_log="audit.db"),  # type: ignore[arg-type]  # wrong
        lambda: GroundednessGuard(GroundednessRunnable(), audit_log="audit.db"),  # type: ignore[arg-type]  # wrong
        lambda: GroundednessCallbackHandler(audit_log="audit.db"),  # type: ignore[arg-type]  # wrong
        lambda: GroundednessMiddleware(audit_log="audit.db"),  # type: ignore[arg-type]  # wrong
        lambda: groundedness_node(audit_log="audit.db"),  # type: ignore[arg-type]  # wrong
    ],
)
def test_what_is_no_log_is_refused(made: Callable[[], Any]) -> None:
    with pytest.raises(ConfigurationError, match="audit_log"):
        made()


@pytest.mark.parametrize("how", ["sync", "async"])
def test_the_node_records_each_decision_once(how: str, log: JsonlAuditLog) -> None:
    node = groundedness_node(checker(log), on_ungrounded="block", blocked_message="No.")
    update = asyncio.run(node.ainvoke(ROW)) if how == "async" else node.invoke(ROW)
    [record] = recorded(log)
    assert (record.source, record.outcome, record.shown_answer) == ("node", "blocked", "No.")
    assert update["answer"] == "No."
    assert record.original_answer == f"{TRUE} {FALSE}"


def test_a_state_without_an_answer_is_no_decision(log: JsonlAuditLog) -> None:
    node = groundedness_node(checker(), audit_log=log)
    update = node.invoke({"messages": [AIMessage("", tool_calls=[call()])]})
    assert update["groundedness"]["outcome"] == "not_judged"
    assert recorded(log) == []


def call() -> Any:
    return {"name": "search", "args": {}, "id": "1", "type": "tool_call"}
