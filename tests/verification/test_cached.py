"""A cached verdict is what the verifier would say, and is found for nothing else."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.load import dumpd, load
from langchain_core.runnables import RunnableLambda
from langchain_core.stores import InMemoryByteStore
from pydantic import SecretStr
from verdict_caching import BARI, ROME, Reader, cached, read, task

from langchain_groundedness import (
    Citation,
    Claim,
    ClaimVerdict,
    ConfigurationError,
    EmbeddedVerifier,
    GroundednessResultChunk,
    GroundednessRunnable,
    JsonlAuditLog,
    VerificationError,
    VerificationTask,
    load_arguments,
)
from langchain_groundedness.testing import ScriptedVerifier

CAPITAL = "Rome is the capital of Italy."
SEA = "Bari lies at the sea."

texts = st.text("ab. \u00e4", max_size=6)
tasks = st.builds(
    lambda claims, documents: task(*claims, documents=documents),
    st.lists(texts, max_size=4),
    st.lists(texts, max_size=4),
)


def by_place(citation: Citation) -> tuple[int, int, int]:
    return citation.document, citation.start, citation.end


def sorted_citations(verdicts: Sequence[ClaimVerdict]) -> list[ClaimVerdict]:
    return [
        v.model_copy(update={"citations": tuple(sorted(v.citations, key=by_place))})
        for v in verdicts
    ]


EVERYTHING_SO_FAR = InMemoryByteStore()
"""One store for all examples: what an earlier one left there must not be found by mistake."""


@settings(deadline=None)  # the first example loads much
@given(tasks)
def test_a_cached_verdict_is_the_verdict(asked: VerificationTask) -> None:
    verifier = cached(Reader(), EVERYTHING_SO_FAR)
    # An earlier example may have had the same documents in another order, and so have cited them.
    plain = sorted_citations(Reader().invoke(asked))
    assert sorted_citations(verifier.invoke(asked)) == plain
    again = Reader()
    assert sorted_citations(cached(again, EVERYTHING_SO_FAR).invoke(asked)) == plain
    assert again.asked == []


@given(tasks, st.randoms())
def test_documents_in_another_order_with_other_ids_are_cited_where_they_are_now(
    asked: VerificationTask, random: Any
) -> None:
    store = InMemoryByteStore()
    cached(Reader(), store).invoke(asked)
    documents = [
        Document(d.page_content, id=f"new {n}", metadata={"n": n})
        for n, d in enumerate(asked.documents)
    ]
    random.shuffle(documents)
    moved = asked.model_copy(update={"documents": tuple(documents)})
    judge = Reader()
    found = cached(judge, store).invoke(moved)
    assert judge.asked == []
    assert sorted_citations(found) == sorted_citations(Reader().invoke(moved))


@given(tasks.filter(lambda t: t.documents and t.claims), st.data())
def test_one_other_character_of_the_evidence_is_other_evidence(
    asked: VerificationTask, data: st.DataObject
) -> None:
    store = InMemoryByteStore()
    cached(Reader(), store).invoke(asked)
    place = data.draw(st.integers(0, len(asked.documents) - 1))
    text = asked.documents[place].page_content
    at = data.draw(st.integers(0, len(text)))
    put, skip = data.draw(st.sampled_from(["", "x", "a", " "])), data.draw(st.integers(0, 1))
    changed = text[:at] + put + text[at + skip :]
    documents = [*asked.documents]
    documents[place] = Document(changed)
    moved = asked.model_copy(update={"documents": tuple(documents)})
    judge = Reader()
    found = cached(judge, store).invoke(moved)
    same = sorted(d.page_content for d in documents) == sorted(
        d.page_content for d in asked.documents
    )
    assert judge.asked == ([] if same else list(dict.fromkeys(c.text for c in asked.claims)))
    assert sorted_citations(found) == sorted_citations(Reader().invoke(moved))


@given(st.lists(texts, min_size=1, max_size=3), st.lists(texts, min_size=1, max_size=3))
def test_texts_that_only_look_alike_when_joined_are_not_taken_for_each_other(
    one: list[str], other: list[str]
) -> None:
    store, judge = InMemoryByteStore(), Reader()
    cached(judge, store).invoke(task("ab", documents=one))
    cached(judge, store).invoke(task("ab", documents=other))
    assert len(judge.asked) == (1 if sorted(one) == sorted(other) else 2)


def test_only_what_is_missing_is_asked() -> None:
    store, judge = InMemoryByteStore(), Reader()
    cached(judge, store).invoke(task(CAPITAL))
    cached(judge, store).invoke(task(SEA, CAPITAL, "It rains."))
    assert judge.asked == [CAPITAL, SEA, "It rains."]


def test_a_claim_that_comes_twice_is_asked_once() -> None:
    judge = Reader()
    asked = task(CAPITAL, SEA, CAPITAL, documents=[ROME, BARI])
    assert cached(judge, InMemoryByteStore()).invoke(asked) == Reader().invoke(asked)
    assert judge.asked == [CAPITAL, SEA]


def test_tasks_of_a_batch_share_what_they_have_in_common() -> None:
    judge = Reader()
    both = [task(CAPITAL, documents=[ROME, BARI]), task(SEA, CAPITAL, documents=[BARI, ROME])]
    found = cached(judge, InMemoryByteStore()).batch(both)
    assert found == Reader().batch(both)
    assert sorted(judge.asked) == sorted([CAPITAL, SEA])


def test_text_that_cannot_be_kept_is_judged_each_time_and_right() -> None:
    half = "\ud800"
    asked = task(half, half, documents=[half])
    store = InMemoryByteStore()
    try:
        plain = Reader().invoke(asked)
    except ValueError:
        pytest.skip("this pydantic takes no half of a surrogate pair")
    assert cached(Reader(), store).invoke(asked) == plain
    assert cached(Reader(), store).invoke(asked) == plain


def test_unchecked_is_never_kept() -> None:
    store = InMemoryByteStore()
    judge = ScriptedVerifier({CAPITAL: "unchecked", SEA: None})
    for _ in range(2):
        found = cached(judge, store).invoke(task(CAPITAL, SEA))
        assert [v.verdict for v in found] == ["unchecked", "unchecked"]
    assert len(judge.tasks) == 2
    assert not list(store.yield_keys())


def test_a_verdict_that_does_not_stand_is_kept_as_what_became_of_it() -> None:
    store = InMemoryByteStore()
    false = Citation(document=0, start=0, end=4, quote="Oslo")
    claim = task(CAPITAL).claims[0]
    judge = ScriptedVerifier(
        lambda _: ClaimVerdict(claim=claim, verdict="supported", citations=(false,))
    )
    for _ in range(2):
        [found] = cached(judge, store).invoke(task(CAPITAL))
        assert (found.verdict, found.citations) == ("unverifiable", ())
    assert len(judge.tasks) == 1


class BrokenError(Exception):
    pass


def test_what_is_known_stays_when_the_verifier_fails() -> None:
    store = InMemoryByteStore()
    cached(Reader(), store).invoke(task(CAPITAL))

    def fail(_: VerificationTask) -> None:
        raise BrokenError

    found = cached(Reader(fail), store).invoke(task(CAPITAL, SEA))
    assert [v.verdict for v in found] == ["supported", "unchecked"]
    assert found[1].reason == "Reader failed with BrokenError"
    assert len(list(store.yield_keys())) == 1


def test_what_no_second_attempt_mends_is_raised() -> None:
    def fail(_: VerificationTask) -> None:
        msg = "the installation is broken"
        raise ConfigurationError(msg)

    with pytest.raises(ConfigurationError, match="broken"):
        cached(Reader(fail), InMemoryByteStore()).invoke(task(CAPITAL))


def test_a_reply_that_is_no_list_of_verdicts_leaves_the_claims_unchecked() -> None:
    verifier = cached(RunnableLambda(lambda _: "fine"), InMemoryByteStore())
    [found] = verifier.invoke(task(CAPITAL))
    assert found.reason == "RunnableLambda must return a list of ClaimVerdict, got str"


@pytest.mark.parametrize(
    ("reads", "change", "is_other"),
    [
        ("question", {"question": "Where?"}, True),
        ("answer", {"answer": "It is."}, True),
        ("answer", {"claims": (Claim(id="x", text=CAPITAL, start=7, end=8),)}, True),
        ("answer", {"claims": (Claim(id="other", text=CAPITAL, start=0, end=1),)}, False),
        ("metadata", {"documents": (Document(ROME, metadata={"a": 1}), Document(BARI))}, True),
        ("metadata", {"documents": (Document(ROME, id="a"), Document(BARI))}, True),
        ("order", {"documents": (Document(BARI), Document(ROME))}, True),
    ],
)
def test_what_a_verifier_reads_is_part_of_the_key_and_nothing_else(
    reads: str, change: dict[str, Any], *, is_other: bool
) -> None:
    asked = task(CAPITAL)
    for option, expected in (({reads}, is_other), (set(), False), (None, is_other)):
        store, judge = InMemoryByteStore(), Reader()
        verifier = cached(judge, store, reads=option)
        verifier.invoke(asked)
        verifier.invoke(asked.model_copy(update=change))
        assert len(judge.asked) == 1 + expected, option


def test_another_key_secret_or_verifier_finds_nothing() -> None:
    store, judge = InMemoryByteStore(), Reader()
    cached(judge, store).invoke(task(CAPITAL))
    for options in (
        {"key": "2"},
        {"secret": SecretStr("s")},
        {"secret": SecretStr("t" * 100)},
    ):
        cached(judge, store, **options).invoke(task(CAPITAL))
    cached(EmbeddedVerifier(), store).invoke(task(CAPITAL))
    assert len(judge.asked) == 4
    assert len(list(store.yield_keys())) == 5


def keys_and_values(store: InMemoryByteStore) -> Iterator[tuple[str, bytes]]:
    for key in list(store.yield_keys()):
        [value] = store.mget([key])
        assert value is not None
        yield key, value


def test_no_text_of_a_document_is_in_the_store_unless_the_verifier_repeats_it() -> None:
    store = InMemoryByteStore()
    judge = ScriptedVerifier(lambda _: "supported")
    cached(judge, store).invoke(task(CAPITAL, SEA))
    for key, value in keys_and_values(store):
        assert b"Rome" not in value
        assert "Rome" not in key
        body = json.loads(value[64:])
        assert set(body) >= {"verdict", "quotes"}


def answer(text: str) -> dict[str, Any]:
    return {"question": "What?", "answer": text, "documents": [ROME, BARI]}


def test_a_checker_counts_what_it_was_spared() -> None:
    store = InMemoryByteStore()
    checker = GroundednessRunnable(verdict_cache=store)
    first = checker.invoke(answer(f"{CAPITAL} {SEA}"))
    again = checker.invoke(answer(f"{SEA} {CAPITAL} Oslo is cold."))
    assert (first.usage.cached_verdicts, again.usage.cached_verdicts) == (0, 2)
    assert again.claims == GroundednessRunnable().invoke(again.model_dump()).claims


def test_a_shared_failure_is_no_verdict_that_was_spared() -> None:
    def fail(_: VerificationTask) -> None:
        raise BrokenError

    twice = [Claim(id="1", text=CAPITAL), Claim(id="2", text=CAPITAL)]
    checker = GroundednessRunnable(
        extractor=RunnableLambda(lambda _: twice),
        verifier=cached(judge := Reader(fail), InMemoryByteStore()),
    )
    found = checker.invoke(answer(f"{CAPITAL} {CAPITAL}"))
    assert [v.verdict for v in found.claims] == ["unchecked", "unchecked"]
    assert (judge.asked, found.usage.cached_verdicts) == ([CAPITAL], 0)


async def test_an_answer_that_is_checked_while_it_is_written_is_asked_claim_by_claim() -> None:
    store, judge = InMemoryByteStore(), Reader()
    checker = GroundednessRunnable(verifier=cached(judge, store))
    checker.invoke(answer(f"{CAPITAL} {SEA}"))

    async def pieces() -> Any:
        yield answer("")
        for word in f"{SEA} {CAPITAL} Oslo is cold.".split(" "):
            yield {"answer": f"{word} "}

    total: GroundednessResultChunk | None = None
    async for chunk in checker.atransform(pieces()):
        total = chunk if total is None else total + chunk
    assert total is not None
    assert [v.verdict for v in total.claims] == ["supported", "supported", "unverifiable"]
    assert total.usage.cached_verdicts == 2
    assert judge.asked == [CAPITAL, SEA, "Oslo is cold."]


def test_a_stream_gives_what_is_known_before_anything_is_asked() -> None:
    store, judge = InMemoryByteStore(), Reader()
    verifier = cached(judge, store)
    verifier.invoke(task(CAPITAL))
    stream = verifier.stream(task(SEA, CAPITAL))
    [first] = next(stream)
    assert (first.claim.text, judge.asked) == (CAPITAL, [CAPITAL])
    assert [v.claim.text for part in stream for v in part] == [SEA]


def test_raise_on_failure_hears_of_a_verifier_that_failed_behind_the_cache() -> None:
    def fail(_: VerificationTask) -> None:
        raise BrokenError

    checker = GroundednessRunnable(
        verifier=cached(Reader(fail), InMemoryByteStore()), raise_on_failure=True
    )
    with pytest.raises(VerificationError):
        checker.invoke(answer(CAPITAL))


def test_what_is_not_a_store_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"must be a LangChain cache or store.* dict"):
        cached(Reader(), {})
    store: Any = "verdicts.db"
    with pytest.raises(
        ConfigurationError, match=r"verdict_cache must be a LangChain cache.* got str"
    ):
        GroundednessRunnable(verdict_cache=store)
    with pytest.raises(ConfigurationError, match=r"the verifier \(Reader\): .*key='my-judge-1'"):
        GroundednessRunnable(verifier=Reader(), verdict_cache=InMemoryByteStore())


def test_what_read_gives_is_what_this_file_relies_on() -> None:
    asked = task("abc", "cba", "x", documents=["..abc", "abc"])
    labels = [read(claim, asked.documents).verdict for claim in asked.claims]
    assert labels == ["supported", "contradicted", "unverifiable"]


@pytest.mark.filterwarnings("ignore:The function `load`")
def test_a_checker_is_saved_without_its_cache() -> None:
    checker = GroundednessRunnable(verdict_cache=InMemoryByteStore(), max_claims=3)
    assert load(dumpd(checker), **load_arguments()) == GroundednessRunnable(max_claims=3)


def test_records_tell_of_the_verifier_behind_the_cache(tmp_path: Path) -> None:
    with JsonlAuditLog(tmp_path / "log.jsonl") as log:
        for cache in (None, InMemoryByteStore()):
            GroundednessRunnable(audit_log=log, verdict_cache=cache).invoke(answer(CAPITAL))
    plain, behind = (record.versions for record in JsonlAuditLog(tmp_path / "log.jsonl").records())
    assert plain == behind
    assert behind.verifier == "EmbeddedVerifier"


def test_a_batch_of_answers_goes_at_the_pace_of_what_is_behind_the_cache() -> None:
    for verifier, together in ((EmbeddedVerifier(), True), (Reader(), False)):
        behind = cached(verifier, InMemoryByteStore())
        assert GroundednessRunnable(verifier=behind).check.judges_together == together


def test_what_the_verifier_needs_is_loaded_ahead() -> None:
    warmed: list[str] = []

    class Slow(Reader):
        def warm_up(self) -> None:
            warmed.append("up")

    for judge in (Slow(), Reader()):
        GroundednessRunnable(verifier=cached(judge, InMemoryByteStore())).warm_up()
    assert warmed == ["up"]
