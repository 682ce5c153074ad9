"""Answers that are checked while they are written: pieces in, chunks out."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing
from functools import reduce
from operator import add
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from langchain_classic.chains import create_retrieval_chain
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableGenerator, RunnableLambda
from langchain_core.runnables.utils import AddableDict
from quarter import (
    ANSWER,
    INPUT,
    OPTIONS,
    QUESTION,
    REPORT,
    checker,
    cut,
    cuts,
    judge,
    judge_all,
    markdown,
    nothing_left,
    pieces_of,
)

from langchain_groundedness import (
    ClaimVerdict,
    GroundednessResult,
    GroundednessResultChunk,
    InputFormatError,
    VerificationError,
    VerificationTask,
)
from langchain_groundedness.claims.statements import StatementReader
from langchain_groundedness.testing import ScriptedChatModel, ScriptedClaimExtractor

EVERY_CHARACTER = list(range(1, len(ANSWER)))


def total(chunks: Iterator[Any]) -> GroundednessResultChunk:
    whole: GroundednessResultChunk = reduce(add, chunks)
    return whole


async def atotal(chunks: AsyncIterator[Any]) -> GroundednessResultChunk:
    whole: GroundednessResultChunk = reduce(add, [chunk async for chunk in chunks])
    return whole


async def slowly(pieces: list[Any]) -> AsyncIterator[Any]:
    for piece in pieces:
        await asyncio.sleep(0)
        yield piece


def assert_same(left: GroundednessResult, right: GroundednessResult) -> None:
    for name in GroundednessResult.model_fields:
        assert getattr(left, name) == getattr(right, name), name


@pytest.mark.parametrize("options", OPTIONS)
@settings(deadline=None, max_examples=settings().max_examples // 5)
@given(places=cuts())
def test_chunks_add_up_to_the_result_however_the_answer_is_cut_up(
    options: dict[str, Any], places: list[int]
) -> None:
    check = checker(**options)
    assert_same(total(check.transform(iter(pieces_of(ANSWER, places)))), check.invoke(INPUT))


@pytest.mark.parametrize("options", OPTIONS)
async def test_async_chunks_add_up_to_the_result_of_an_answer_that_comes_by_the_character(
    options: dict[str, Any],
) -> None:
    check = checker(**options)
    pieces = slowly(pieces_of(ANSWER, EVERY_CHARACTER))
    assert_same(await atotal(check.atransform(pieces)), await check.ainvoke(INPUT))


@settings(deadline=None, max_examples=settings().max_examples * 3 // 5)
@given(answer=markdown(), places=cuts(), options=st.sampled_from(OPTIONS))
@example(
    # `max_claims` ends between the two claims of one sentence.
    answer="日本。1. Rome is a city with 4 million people",
    places=[1],
    options={"on_contradicted": "strip", "on_unverifiable": "strip", "max_claims": 3},
)
def test_chunks_add_up_for_any_markdown(
    answer: str, places: list[int], options: dict[str, Any]
) -> None:
    check = checker(**options)
    whole = check.invoke({"question": QUESTION, "answer": answer, "documents": [REPORT]})
    assert_same(total(check.transform(iter(pieces_of(answer, places)))), whole)


@settings(deadline=None, max_examples=settings().max_examples * 3)
@given(answer=markdown(), places=cuts(), only_checkable=st.booleans())
def test_statements_are_the_same_however_the_answer_is_cut_up(
    answer: str, places: list[int], *, only_checkable: bool
) -> None:
    whole = StatementReader(split_compound=True, only_checkable=only_checkable)
    expected = [*whole.feed(answer), *whole.close()]
    reader = StatementReader(split_compound=True, only_checkable=only_checkable)
    found = []
    for text in cut(answer, places):
        found += reader.feed(text)
        assert all(sentence.start >= reader.certain for sentence in expected[len(found) :])
    assert [*found, *reader.close()] == expected


def test_pieces_may_be_texts_with_documents_from_bind() -> None:
    check = checker().bind(documents=[REPORT], question=QUESTION)
    chunks = list(check.transform(iter(cut(ANSWER, EVERY_CHARACTER))))
    assert_same(reduce(add, chunks), checker().invoke(INPUT))
    assert [v.claim.id for chunk in chunks[:-1] for v in chunk.claims]


def test_pieces_may_be_message_chunks() -> None:
    check = checker().bind(documents=[REPORT], question=QUESTION)
    blocks = [
        AIMessageChunk(content=[{"type": "text", "text": text, "index": 0}])
        for text in cut(ANSWER, EVERY_CHARACTER[::7])
    ]
    chunks = [AIMessageChunk(content=text) for text in cut(ANSWER, EVERY_CHARACTER[::5])]
    for pieces in (blocks, chunks):
        assert_same(total(check.transform(iter(pieces))), checker().invoke(INPUT))


def test_pieces_may_be_mappings_with_message_chunks() -> None:
    pieces = [
        AddableDict(question=QUESTION, documents=[REPORT]),
        *(
            AddableDict(answer=AIMessageChunk(content=text))
            for text in cut(ANSWER, EVERY_CHARACTER[::5])
        ),
    ]
    assert_same(total(checker().transform(iter(pieces))), checker().invoke(INPUT))


def test_a_model_may_stream_right_into_the_check() -> None:
    model = GenericFakeChatModel(messages=iter([AIMessage(ANSWER), AIMessage(ANSWER)]))
    check = checker().bind(documents=[REPORT])
    assert_same(total((model | check).stream("Q3?")), (model | check).invoke("Q3?"))


def test_documents_may_come_after_the_answer() -> None:
    pieces = pieces_of(ANSWER, EVERY_CHARACTER)
    late = [*pieces[2:], *pieces[:2]]
    assert_same(total(checker().transform(iter(late))), checker().invoke(INPUT))


def test_documents_that_come_in_two_parts_are_all_read() -> None:
    asked: list[int] = []

    def counting(task: VerificationTask) -> list[ClaimVerdict]:
        asked.append(len(task.documents))
        return judge_all(task)

    more = Document("More.")
    pieces = pieces_of(ANSWER, EVERY_CHARACTER)
    pieces.insert(len(pieces) // 2, AddableDict(documents=[more]))
    check = checker(verifier=counting)
    got = total(check.transform(iter(pieces)))
    assert_same(got, checker().invoke({**INPUT, "documents": [REPORT, more]}))
    assert asked[0] == 1
    assert asked[-1] == 2


def test_without_documents_every_claim_is_unchecked() -> None:
    result = total(checker().transform(iter(cut(ANSWER, EVERY_CHARACTER))))
    assert {v.verdict for v in result.claims} == {"unchecked"}
    [reason] = {v.reason for v in result.claims}
    assert reason == checker().invoke(ANSWER).claims[0].reason
    assert reason == (
        "no documents to check against: the input is only a text; let the chain return its "
        "documents too, as {'answer': ..., 'documents': ...}, or attach a "
        "GroundednessCallbackHandler to it, which finds them"
    )
    assert result.verdict == "unchecked"


def test_an_extractor_that_needs_the_whole_answer_gets_it() -> None:
    extractor = ScriptedClaimExtractor(["Revenue was $2.4B in Q3", "Costs fell by 4%."])
    check = checker(extractor=extractor, on_contradicted="correct")
    got = total(check.transform(iter(pieces_of(ANSWER, EVERY_CHARACTER))))
    assert_same(got, check.invoke(INPUT))
    assert [task.answer for task in extractor.tasks] == [ANSWER, ANSWER]


def test_a_context_extractor_gets_all_pieces_added_up() -> None:
    def read(value: dict[str, Any]) -> dict[str, Any]:
        return {"answer": value["said"], "documents": [REPORT]}

    check = checker(context_extractor=read)
    pieces = [AddableDict(said=text) for text in cut(ANSWER, EVERY_CHARACTER)]
    assert_same(total(check.transform(iter(pieces))), check.invoke({"said": ANSWER}))


def test_a_model_that_judges_gets_the_whole_answer_and_no_more_calls_than_for_invoke() -> None:
    def model() -> ScriptedChatModel:
        return ScriptedChatModel(replies=["none", "{tag} C1: [1] supported"])

    value = {"answer": "Costs fell by 4%.", "documents": [REPORT]}
    pieces = [{"documents": [REPORT]}, {"answer": "Costs fell"}, {"answer": " by 4%."}]
    check = checker(model=model(), verifier=None)
    got = total(check.transform(iter(pieces)))
    assert_same(got, checker(model=model(), verifier=None).invoke(value))


def test_an_answer_in_one_piece_is_checked_as_one() -> None:
    tasks: list[VerificationTask] = []

    def counting(task: VerificationTask) -> list[ClaimVerdict]:
        tasks.append(task)
        return judge_all(task)

    list(checker(verifier=counting).stream(INPUT))
    assert len(tasks) == 1


def test_a_retrieval_chain_streams_into_the_check() -> None:
    retrieve: Runnable[Any, list[Document]] = RunnableLambda(lambda _: [REPORT])
    combine = create_stuff_documents_chain(
        FakeListChatModel(responses=[ANSWER]),
        ChatPromptTemplate.from_template("{context}\n{input}"),
        output_parser=StrOutputParser(),
    )
    chain: Any = create_retrieval_chain(retrieve, combine).pipe(checker())
    chunks = list(chain.stream({"input": QUESTION}))
    assert_same(reduce(add, chunks), chain.invoke({"input": QUESTION}))
    assert sum(bool(chunk.claims) for chunk in chunks) > 5


def test_nothing_in_gives_nothing_out() -> None:
    assert list(checker().transform(iter([]))) == []


def test_pieces_of_another_form_after_the_first_are_refused() -> None:
    check = checker().bind(documents=[REPORT])
    with pytest.raises(InputFormatError, match="all be texts"):
        list(check.transform(iter(["Costs fell. ", "It rose. ", AIMessageChunk(content="No.")])))


def test_unknown_keyword_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="accepts documents=, question="):
        list(checker().transform(iter(["Costs fell."]), documens=[REPORT]))


def test_a_failing_judge_leaves_its_sentence_unchecked_and_no_other() -> None:
    def failing(task: VerificationTask) -> list[ClaimVerdict]:
        if "CEO" in task.claims[0].text:
            raise TimeoutError
        return judge_all(task)

    result = total(checker(verifier=failing).transform(iter(pieces_of(ANSWER, EVERY_CHARACTER))))
    reasons = {v.claim.text: v.reason for v in result.claims if v.verdict == "unchecked"}
    assert reasons["The CEO resigned."] == "verification failed (TimeoutError)"
    assert len(reasons) == 2  # and the one that the judge says nothing of
    assert not result.is_trusted


def test_raise_on_failure_raises_and_leaves_nothing_behind() -> None:
    def failing(_: VerificationTask) -> list[ClaimVerdict]:
        raise TimeoutError

    check = checker(verifier=failing, raise_on_failure=True)
    with nothing_left(), pytest.raises(VerificationError):
        list(check.transform(iter(pieces_of(ANSWER, EVERY_CHARACTER))))


def test_a_verdict_leaves_before_the_last_token_comes() -> None:
    seen = threading.Event()

    def endless() -> Iterator[AddableDict]:
        yield from pieces_of("Costs fell by 4%. And", EVERY_CHARACTER)
        while not seen.is_set():
            yield AddableDict(answer=" so on")

    for chunk in checker().transform(endless()):
        if any(v.verdict == "supported" for v in chunk.claims):
            seen.set()
    assert seen.is_set()


async def test_a_verdict_leaves_while_the_upstream_waits() -> None:
    seen = asyncio.Event()

    async def upstream() -> AsyncIterator[AddableDict]:
        for piece in pieces_of("Costs fell by 4%. And then", EVERY_CHARACTER):
            yield piece
        await seen.wait()
        yield AddableDict(answer=" it rained.")

    chunks = []
    async for chunk in checker().atransform(upstream()):
        chunks.append(chunk)
        if chunk.claims:
            seen.set()
    texts = [v.claim.text for v in reduce(add, chunks).claims]
    assert texts == ["Costs fell by 4%.", "And then it rained."]


async def test_several_sentences_are_checked_at_once_but_no_more_than_the_limit() -> None:
    running, peak = 0, 0
    full = asyncio.Event()

    async def waiting(task: VerificationTask) -> list[ClaimVerdict]:
        nonlocal running, peak
        running, peak = running + 1, max(peak, running + 1)
        if running == 3:
            full.set()
        await full.wait()
        await asyncio.sleep(0)
        running -= 1
        return judge_all(task)

    pieces = slowly(pieces_of(ANSWER, EVERY_CHARACTER))
    check = checker(verifier=RunnableLambda(waiting))
    await atotal(check.atransform(pieces, {"max_concurrency": 3}))
    assert peak == 3


def test_sync_checks_run_at_once_but_no_more_than_the_limit() -> None:
    barrier = threading.Barrier(2, timeout=300)
    lock = threading.Lock()
    running, peak, started = 0, 0, 0

    def waiting(task: VerificationTask) -> list[ClaimVerdict]:
        nonlocal running, peak, started
        with lock:
            running, started = running + 1, started + 1
            peak, first = max(peak, running), started <= 2
        if first:
            barrier.wait()
        with lock:
            running -= 1
        return judge_all(task)

    check = checker(verifier=waiting)
    total(check.transform(iter(pieces_of(ANSWER, EVERY_CHARACTER)), {"max_concurrency": 2}))
    assert peak == 2


async def test_a_fast_upstream_waits_for_the_checks() -> None:
    release, read = asyncio.Event(), 0

    async def upstream() -> AsyncIterator[AddableDict]:
        nonlocal read
        yield AddableDict(documents=[REPORT])
        for number in range(500):
            read += 1
            yield AddableDict(answer=f"Costs fell by {number}%. ")

    async def waiting(task: VerificationTask) -> list[ClaimVerdict]:
        await release.wait()
        return judge_all(task)

    chunks = checker(verifier=RunnableLambda(waiting)).atransform(upstream())
    task = asyncio.create_task(atotal(chunks))
    for _ in range(2000):
        await asyncio.sleep(0)
    assert 8 <= read <= 100
    release.set()
    assert len((await task).claims) == 500


class Upstream:
    """An endless answer that notices when nobody reads it any more."""

    def __init__(self) -> None:
        self.closed = False
        self.read = 0

    def stream(self, _: Any) -> Iterator[AddableDict]:
        try:
            yield AddableDict(documents=[REPORT])
            while True:
                self.read += 1
                yield AddableDict(answer="Costs fell by 4%. ")
        finally:
            self.closed = True

    async def astream(self, _: Any) -> AsyncIterator[AddableDict]:
        try:
            yield AddableDict(documents=[REPORT])
            while True:
                self.read += 1
                yield AddableDict(answer="Costs fell by 4%. ")
                await asyncio.sleep(0)
        finally:
            self.closed = True


def first_verdict(chunks: Iterator[Any]) -> None:
    for chunk in chunks:
        if chunk.claims:
            return


def test_an_early_break_ends_everything() -> None:
    upstream = Upstream()
    with nothing_left():
        first_verdict(checker().transform(upstream.stream(None)))
    assert upstream.closed


def test_an_early_break_of_a_chain_ends_everything() -> None:
    upstream = Upstream()
    with nothing_left():
        first_verdict(RunnableGenerator(upstream.stream).pipe(checker()).stream("go"))
    assert upstream.closed


def waits_for_ever() -> tuple[Callable[..., Any], asyncio.Event]:
    started = asyncio.Event()

    async def wait(_: VerificationTask) -> list[ClaimVerdict]:
        started.set()
        await asyncio.Event().wait()
        raise AssertionError

    return wait, started


async def settle() -> None:
    """Let tasks that were told to end come to their end."""
    for _ in range(3):
        await asyncio.sleep(0)
        if others := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(others, timeout=300)


async def test_closing_early_ends_all_tasks() -> None:
    upstream, (wait, _) = Upstream(), waits_for_ever()
    with nothing_left():
        check = checker(verifier=RunnableLambda(wait))
        async with aclosing(check.atransform(upstream.astream(None))) as chunks:
            async for chunk in chunks:
                assert chunk.extracted
                break
    assert upstream.closed


async def test_an_early_break_of_an_async_chain_ends_all_tasks() -> None:
    upstream, (wait, _) = Upstream(), waits_for_ever()
    with nothing_left():
        chain = RunnableGenerator(upstream.astream).pipe(checker(verifier=RunnableLambda(wait)))
        async for chunk in chain.astream("go"):
            assert isinstance(chunk, GroundednessResultChunk)
            break
        await settle()
    assert upstream.closed


async def test_cancellation_ends_all_tasks() -> None:
    upstream, (wait, started) = Upstream(), waits_for_ever()
    with nothing_left():
        check = checker(verifier=RunnableLambda(wait))
        task = asyncio.create_task(atotal(check.atransform(upstream.astream(None))))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await settle()
    assert upstream.closed


async def test_an_upstream_error_ends_all_tasks_and_is_raised() -> None:
    wait, started = waits_for_ever()

    async def failing() -> AsyncIterator[AddableDict]:
        for piece in pieces_of("Costs fell by 4%. The CEO resigned.", EVERY_CHARACTER):
            yield piece
        await started.wait()
        msg = "upstream"
        raise RuntimeError(msg)

    with nothing_left():
        check = checker(verifier=RunnableLambda(wait))
        with pytest.raises(RuntimeError, match="upstream"):
            await atotal(check.atransform(failing()))
        await settle()


def test_a_sync_upstream_error_is_raised_and_ends_the_threads() -> None:
    def failing() -> Iterator[AddableDict]:
        yield from pieces_of(ANSWER, EVERY_CHARACTER)
        msg = "upstream"
        raise RuntimeError(msg)

    with nothing_left(), pytest.raises(RuntimeError, match="upstream"):
        list(checker().transform(failing()))


async def test_a_judge_that_is_cancelled_from_inside_does_not_hang_the_stream() -> None:
    async def cancelled(_: VerificationTask) -> list[ClaimVerdict]:
        raise asyncio.CancelledError

    check = checker(verifier=RunnableLambda(cancelled))
    with nothing_left(), pytest.raises(asyncio.CancelledError):
        await atotal(check.atransform(slowly(pieces_of(ANSWER, EVERY_CHARACTER))))


async def test_a_finished_stream_leaves_nothing_behind() -> None:
    with nothing_left():
        await atotal(checker().atransform(slowly(pieces_of(ANSWER, EVERY_CHARACTER))))


def test_a_finished_sync_stream_leaves_nothing_behind() -> None:
    with nothing_left():
        total(checker().transform(iter(pieces_of(ANSWER, EVERY_CHARACTER))))


def test_streams_side_by_side_do_not_mix() -> None:
    numbers = range(20)
    streams = [
        checker(verifier=lambda task: [judge(c, task.documents) for c in task.claims]).transform(
            iter(pieces_of(f"Costs fell by {number}%. The CEO resigned.", EVERY_CHARACTER))
        )
        for number in numbers
    ]
    sums: list[list[GroundednessResultChunk]] = [[] for _ in numbers]
    for number, chunk in [(n, c) for n, s in zip(numbers, streams, strict=True) for c in s]:
        sums[number].append(chunk)
    for number, chunks in zip(numbers, sums, strict=True):
        result = reduce(add, chunks)
        assert result.claims[0].claim.text == f"Costs fell by {number}%."
