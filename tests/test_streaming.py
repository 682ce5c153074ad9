"""The guard: text in, text out, and nothing in between that was not verified."""

import asyncio
import gc
import json
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import FakeListChatModel
from langchain_core.load import dumpd, load
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import RunnableGenerator, RunnableLambda
from langchain_core.runnables.utils import AddableDict
from langgraph.graph import END, START, StateGraph
from quarter import (
    ANSWER,
    INPUT,
    OPTIONS,
    QUESTION,
    REPORT,
    checker,
    cut,
    cuts,
    judge_all,
    markdown,
    nothing_left,
    pieces_of,
)
from typing_extensions import TypedDict

from langchain_groundedness import (
    Citation,
    Claim,
    ClaimVerdict,
    ConfigurationError,
    GroundednessGuard,
    GroundednessRunnable,
    SentenceClaimExtractor,
    VerificationTask,
    load_arguments,
)
from langchain_groundedness.testing import ScriptedChatModel, ScriptedClaimExtractor
from langchain_groundedness.types import CorrectedAnswer, CorrectionTask, ExtractionTask

EVERY_CHARACTER = list(range(1, len(ANSWER)))
RELEASES: list[Any] = ["mark", "hold_back", "release"]
MESSAGE = "[withheld]"
FALSE = "Revenue was $2.4B in Q3."
EVIDENCE = f"[CORRECTED: {REPORT.page_content}]"


def guard(checker_options: dict[str, Any] | None = None, **options: Any) -> GroundednessGuard:
    return GroundednessGuard(checker(**checker_options or {}), **options)


def joined(guard: GroundednessGuard, pieces: list[Any]) -> str:
    return "".join(guard.transform(iter(pieces)))


async def slowly(pieces: list[Any]) -> AsyncIterator[Any]:
    for piece in pieces:
        await asyncio.sleep(0)
        yield piece


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("on_unchecked", RELEASES)
@settings(deadline=None, max_examples=settings().max_examples // 10)
@given(places=cuts())
def test_the_text_is_that_of_the_whole_answer_however_it_is_cut_up(
    on_unchecked: Any, options: dict[str, Any], places: list[int]
) -> None:
    guarding = guard(options, on_unchecked=on_unchecked)
    assert joined(guarding, pieces_of(ANSWER, places)) == guarding.invoke(INPUT)


@given(
    answer=markdown(),
    places=cuts(),
    options=st.sampled_from(OPTIONS),
    on_unchecked=st.sampled_from(RELEASES),
)
def test_the_text_is_that_of_the_whole_answer_for_any_markdown(
    answer: str, places: list[int], options: dict[str, Any], on_unchecked: Any
) -> None:
    guarding = guard(options, on_unchecked=on_unchecked)
    whole = guarding.invoke({"question": QUESTION, "answer": answer, "documents": [REPORT]})
    assert joined(guarding, pieces_of(answer, places)) == whole


@pytest.mark.parametrize("options", OPTIONS)
async def test_async_gives_the_same_text(options: dict[str, Any]) -> None:
    guarding = guard(options)
    pieces = slowly(pieces_of(ANSWER, EVERY_CHARACTER))
    text = "".join([piece async for piece in guarding.atransform(pieces)])
    assert text == await guarding.ainvoke(INPUT) == guarding.invoke(INPUT)


def test_the_text_is_the_corrected_answer_to_the_character() -> None:
    options = {"on_contradicted": "correct", "on_unverifiable": "strip"}
    corrected = checker(**options).invoke(INPUT).answer
    assert corrected != ANSWER
    assert joined(guard(options, on_unchecked="release"), pieces_of(ANSWER, [])) == corrected
    by_character = pieces_of(ANSWER, EVERY_CHARACTER)
    assert joined(guard(options, on_unchecked="release"), by_character) == corrected


def test_an_answer_that_nothing_is_wrong_with_is_unchanged() -> None:
    def fine(task: VerificationTask) -> list[ClaimVerdict]:
        return [ClaimVerdict(claim=c, verdict="supported") for c in task.claims]

    assert joined(guard({"verifier": fine}), pieces_of(ANSWER, EVERY_CHARACTER)) == ANSWER


def test_an_unchecked_sentence_is_marked() -> None:
    text = joined(guard(contradicted_marker=""), pieces_of(ANSWER, EVERY_CHARACTER))
    assert text == ANSWER.replace("met on 3.", "met on 3. [UNCHECKED]")


def test_a_contradicted_sentence_is_marked() -> None:
    answer = f"Costs fell by 4%. {FALSE} Costs rose."
    marked = f"Costs fell by 4%. {FALSE} [CONTRADICTED] Costs rose."
    assert joined(guard(), pieces_of(answer, EVERY_CHARACTER)) == marked
    assert guard().invoke({"answer": answer, "documents": [REPORT]}) == marked
    own = guard(contradicted_marker=" (wrong)")
    assert own.invoke({"answer": FALSE, "documents": [REPORT]}) == f"{FALSE} (wrong)"
    corrected = guard(CORRECTING, contradicted_marker=" (wrong)")
    assert "(wrong)" not in corrected.invoke({"answer": answer, "documents": [REPORT]})


def test_an_unchecked_table_row_is_marked_inside_its_last_cell() -> None:
    answer = "| a | b |\n|---|---|\n| The board | 3 |\n"
    text = joined(guard(), pieces_of(answer, list(range(50))))
    assert text == "| a | b |\n|---|---|\n| The board | 3 [UNCHECKED] |\n"


def test_an_unchecked_sentence_is_held_back() -> None:
    pieces = pieces_of("Costs fell by 4%. The board met. Costs rose.", EVERY_CHARACTER)
    assert joined(guard(on_unchecked="hold_back"), pieces) == "Costs fell by 4%. Costs rose."


CORRECTING = {"on_contradicted": "correct", "on_unverifiable": "keep"}


def contradicted(claim: Claim, task: VerificationTask) -> ClaimVerdict:
    found = Citation.from_document(task.documents, 0, 0, len(REPORT.page_content))
    return ClaimVerdict(claim=claim, verdict="contradicted", citations=(found,), correction="$2.1B")


def undoing(task: VerificationTask) -> list[ClaimVerdict]:
    """Contradict, and have no answer when asked about what was made of it."""
    if any(claim.start is None for claim in task.claims):
        raise TimeoutError
    return [
        contradicted(c, task)
        if "$2.4B" in c.text
        else ClaimVerdict.unchecked(c, "no time")
        if "CEO" in c.text
        else ClaimVerdict(claim=c, verdict="unverifiable")
        for c in task.claims
    ]


@pytest.mark.parametrize("on_unchecked", RELEASES)
def test_the_evidence_leaves_for_a_sentence_whose_correction_fails(on_unchecked: Any) -> None:
    verifier = RunnableLambda(undoing)
    withheld = guard({**CORRECTING, "verifier": verifier}, on_unchecked=on_unchecked)
    answer = "Costs fell. Revenue was $2.4B in Q3. All else is unknown."
    given = {"answer": answer, "documents": [REPORT]}
    expected = f"Costs fell. {EVIDENCE} All else is unknown."
    assert withheld.invoke(given) == expected
    assert joined(withheld, pieces_of(answer, EVERY_CHARACTER)) == expected


def test_what_has_left_is_retracted_if_its_correction_does_not_stand() -> None:
    verifier = RunnableLambda(undoing)
    immediate = guard({**CORRECTING, "verifier": verifier}, release="immediate")
    events = EventRecorder()
    pieces = [{"documents": [REPORT]}, {"answer": FALSE}]
    assert "".join(immediate.transform(iter(pieces), {"callbacks": [events]})) == FALSE
    (change,) = events.of("retract")
    assert (change["original"], change["replacement"]) == (FALSE, EVIDENCE)


def test_without_a_place_a_contradicted_claim_that_is_not_corrected_withholds_all() -> None:
    def extractor(_: ExtractionTask) -> list[Claim]:
        return [Claim(id="c1", text="It was revenue of $2.4B.")]

    def verifier(task: VerificationTask) -> list[ClaimVerdict]:
        return [contradicted(claim, task) for claim in task.claims]

    options = {**CORRECTING, "extractor": extractor, "verifier": verifier}
    withheld = guard(options, blocked_message=MESSAGE)
    assert withheld.invoke({"answer": FALSE, "documents": [REPORT]}) == MESSAGE


def test_a_failing_judge_never_lets_a_sentence_out_as_verified() -> None:
    def failing(_: VerificationTask) -> list[ClaimVerdict]:
        raise TimeoutError

    options = {"verifier": failing}
    pieces = pieces_of("Costs fell by 4%. It rained.", EVERY_CHARACTER)
    assert joined(guard(options), pieces) == "Costs fell by 4%. [UNCHECKED] It rained. [UNCHECKED]"
    assert joined(guard(options, on_unchecked="hold_back"), pieces) == ""
    assert joined(guard(options, on_unchecked="release"), pieces) == "Costs fell by 4%. It rained."


def test_claims_without_a_place_mark_or_hold_back_the_whole_answer() -> None:
    extractor = ScriptedClaimExtractor(["The board of directors met"])
    value = {"answer": "They convened.", "documents": [REPORT]}
    marked = guard({"extractor": extractor}).invoke(value)
    assert marked == "They convened. [UNCHECKED]"
    held = guard({"extractor": extractor}, on_unchecked="hold_back", blocked_message=MESSAGE)
    assert held.invoke(value) == MESSAGE
    assert (
        joined(held, [{"documents": [REPORT]}, {"answer": "They "}, {"answer": "did."}]) == MESSAGE
    )


@pytest.mark.parametrize("found", [[], None, ["Costs fell by 4%."]], ids=["none", "null", "one"])
def test_statements_in_which_an_extractor_found_no_claim_do_not_pass_as_verified(
    found: list[str] | None,
) -> None:
    def extract(task: ExtractionTask) -> list[Claim] | None:
        return ScriptedClaimExtractor(found).invoke(task) if found is not None else None

    options = {"extractor": RunnableLambda(extract)}
    answer = "Costs fell by 4%. The moon is cheese. Any questions?"
    value = {"answer": answer, "documents": [REPORT]}
    pieces = pieces_of(answer, EVERY_CHARACTER)
    first = "Costs fell by 4%." + ("" if found else " [UNCHECKED]")
    marked = f"{first} The moon is cheese. [UNCHECKED] Any questions?"
    held = "Costs fell by 4%. Any questions?" if found else "Any questions?"
    for on_unchecked, expected in (("mark", marked), ("hold_back", held)):
        guarded = guard(options, on_unchecked=on_unchecked)
        assert guarded.invoke(value).strip() == expected
        assert joined(guarded, pieces).strip() == expected
    assert guard(options, on_unchecked="release").invoke(value) == answer


def test_an_opinion_that_an_extractor_leaves_out_is_no_unchecked_statement() -> None:
    options = {"extractor": ScriptedClaimExtractor(["Costs fell by 4%."])}
    value = {"answer": "Costs fell by 4%. Acme is truly excellent.", "documents": [REPORT]}
    assert guard(options).invoke(value) == value["answer"]


def test_block_puts_the_message_in_the_place_of_the_first_contradicted_sentence() -> None:
    blocking = guard({"on_contradicted": "block"}, blocked_message=MESSAGE)
    answer = "Costs fell by 4%. Revenue was $2.4B. Costs rose."
    pieces = pieces_of(answer, EVERY_CHARACTER)
    assert joined(blocking, pieces) == f"Costs fell by 4%. {MESSAGE}"
    whole = {"answer": answer, "documents": [REPORT]}
    assert blocking.invoke(whole) == f"Costs fell by 4%. {MESSAGE}"


def test_the_default_message_is_right_before_and_after_released_text() -> None:
    message = "From here on, this answer was withheld: it did not pass the check."
    blocking = guard({"on_contradicted": "block"})
    for answer, shown in (
        ("Revenue was $2.4B. Costs rose.", message),
        ("Costs fell by 4%. Revenue was $2.4B. Costs rose.", f"Costs fell by 4%. {message}"),
    ):
        assert joined(blocking, pieces_of(answer, EVERY_CHARACTER)) == shown
        assert blocking.invoke({"answer": answer, "documents": [REPORT]}) == shown


def test_block_tells_its_decision() -> None:
    events = EventRecorder()
    blocking = guard({"on_contradicted": "block"})
    pieces = pieces_of("Revenue was $2.4B. Costs fell by 4%. And so on.", EVERY_CHARACTER)
    list(blocking.transform(iter(pieces), {"callbacks": [events]}))
    (decision,) = events.of("decision")
    assert decision["decision"]["action"] == "block"
    assert not decision["is_trusted"]


def test_block_stops_the_upstream() -> None:
    read = 0

    def endless() -> Iterator[AddableDict]:
        nonlocal read
        yield AddableDict(documents=[REPORT])
        yield AddableDict(answer="Revenue was $2.4B. ")
        while True:
            read += 1
            yield AddableDict(answer="Costs fell by 4%. ")

    blocking = guard({"on_contradicted": "block"}, blocked_message=MESSAGE)
    with nothing_left():
        assert "".join(blocking.transform(endless())) == MESSAGE
    assert read < 10_000


def test_block_makes_the_decision_of_the_check() -> None:
    result = checker(on_contradicted="block").invoke(INPUT)
    assert result.decision.action == "block"
    assert result.answer == ANSWER
    fine = checker(on_contradicted="block").invoke({**INPUT, "answer": "Costs fell by 4%."})
    assert fine.decision.action == "pass"


def test_no_sentence_leaves_before_its_verdict() -> None:
    judged: set[str] = set()

    def noting(task: VerificationTask) -> list[ClaimVerdict]:
        verdicts = judge_all(task)
        judged.update(claim.text for claim in task.claims)
        return verdicts

    text = ""
    sentences = ["Costs fell by 4%.", "The CEO resigned.", "Unemployment rose."]
    for piece in guard({"verifier": noting}).transform(
        iter(pieces_of(" ".join(sentences), EVERY_CHARACTER))
    ):
        text += piece
        for sentence in sentences:
            if sentence[:3] in text:
                assert sentence in judged
    assert text == " ".join(sentences)


async def test_sentences_leave_in_order_while_several_are_checked() -> None:
    first = asyncio.Event()
    last = asyncio.Event()

    async def backwards(task: VerificationTask) -> list[ClaimVerdict]:
        if "4%" in task.claims[0].text:
            await first.wait()
        else:
            last.set()
        return judge_all(task)

    async def upstream() -> AsyncIterator[AddableDict]:
        for piece in pieces_of("Costs fell by 4%. The CEO resigned. And then", EVERY_CHARACTER):
            yield piece
        await last.wait()
        first.set()

    guarding = guard({"verifier": RunnableLambda(backwards)})
    texts = [text async for text in guarding.atransform(upstream())]
    assert "".join(texts) == "Costs fell by 4%. The CEO resigned. And then"
    assert texts[0].startswith("Costs")


async def test_a_sentence_leaves_while_the_upstream_waits() -> None:
    seen = asyncio.Event()

    async def upstream() -> AsyncIterator[AddableDict]:
        for piece in pieces_of("Costs fell by 4%. And then", EVERY_CHARACTER):
            yield piece
        await seen.wait()
        yield AddableDict(answer=" it rained.")

    text = ""
    async for piece in guard().atransform(upstream()):
        text += piece
        if "4%." in text:
            seen.set()
    assert text == "Costs fell by 4%. And then it rained."


async def test_a_whole_answer_may_be_streamed_too() -> None:
    value = {"answer": "Costs fell by 4%. The board met.", "documents": [REPORT]}
    expected = "Costs fell by 4%. The board met. [UNCHECKED]"
    for release in ("verified", "immediate"):
        guarding = guard(release=release)
        text = "".join(guarding.stream(value))
        assert text == "".join([piece async for piece in guarding.astream(value)])
        assert text == (expected if release == "verified" else value["answer"])


def test_nothing_in_gives_nothing_out() -> None:
    assert list(guard().transform(iter([]))) == []


@pytest.mark.parametrize(
    ("wrong", "options"),
    [
        ("contradicted", {"on_contradicted": "strip"}),
        ("contradicted", {"on_contradicted": "correct"}),
        ("unverifiable", {"on_unverifiable": "strip"}),
    ],
)
@pytest.mark.parametrize("live", [True, False])
def test_a_guard_leaves_out_a_sentence_of_which_one_of_two_claims_must_go(
    wrong: str, options: dict[str, Any], *, live: bool
) -> None:
    # Both claims stand in the whole sentence, so no part of it can be taken out for one alone.
    def both(task: ExtractionTask) -> list[Claim]:
        start = task.answer.find("The fund, ")
        place = {"start": start, "end": start + len("The fund, of Oslo, is large.")}
        if start < 0:
            return []
        texts = ("The fund is of Oslo.", "The fund is large.")
        return [Claim(id=f"c{n}", text=text, **place) for n, text in enumerate(texts)]

    def judged(task: VerificationTask) -> list[ClaimVerdict]:
        quote = Citation(document=0, start=0, end=8, quote="The fund", metadata={})
        return [
            ClaimVerdict(
                claim=claim,
                verdict="supported" if "large" in claim.text else wrong,
                citations=() if wrong == "unverifiable" and "Oslo" in claim.text else (quote,),
                verifier="scripted",
            )
            for claim in task.claims
        ]

    checking = GroundednessRunnable(
        extractor=RunnableLambda(both), verifier=RunnableLambda(judged), **options
    )
    guarding = GroundednessGuard(checking, on_unchecked="release")
    given = {"documents": ["The fund has its seat in Bergen."]}
    answer = "Hello. The fund, of Oslo, is large."
    if live:
        text = "".join(guarding.transform(iter([given, {"answer": answer}])))
    else:
        text = guarding.invoke({**given, "answer": answer})
    assert text.strip() == "Hello."


def test_a_corrector_that_says_not_what_it_changed_changes_nothing() -> None:
    def rewrite(_: CorrectionTask) -> CorrectedAnswer:
        return CorrectedAnswer(text="Revenue was fine.")

    options = {**CORRECTING, "corrector": rewrite}
    pieces = pieces_of("Revenue was $2.4B. The board met.", EVERY_CHARACTER)
    assert joined(guard(options), pieces) == "The board met. [UNCHECKED]"


def test_a_chain_of_guard_and_parser_streams() -> None:
    chain = guard().bind(documents=[REPORT]) | StrOutputParser()
    model = FakeListChatModel(responses=["Costs fell by 4%. The CEO resigned."] * 2)
    texts = list((model | chain).stream("Q3?"))
    assert "".join(texts) == "Costs fell by 4%. The CEO resigned."
    assert len(texts) > 1


def test_a_model_judges_sentence_by_sentence_beside_a_sentence_extractor() -> None:
    asked: list[str] = []

    def reply(messages: list[Any]) -> str:
        asked.append("\n".join(message.text for message in messages))
        return "{tag} C1: [1] supported"

    check = GroundednessRunnable(
        model=ScriptedChatModel(replies=reply), extractor=SentenceClaimExtractor()
    )
    pieces = pieces_of("Revenue was $2.1B in Q3. Costs fell by 4%.", EVERY_CHARACTER)
    texts = list(GroundednessGuard(check).transform(iter(pieces), {"max_concurrency": 1}))
    assert "".join(texts) == "Revenue was $2.1B in Q3. Costs fell by 4%."
    assert len(texts) > 1
    assert len(asked) == 2


class EventRecorder(BaseCallbackHandler):
    """Keeps custom events."""

    def __init__(self) -> None:
        self.events: list[tuple[str, Any]] = []

    def on_custom_event(self, name: str, data: Any, **_: Any) -> None:
        self.events.append((name, data))

    def of(self, name: str) -> list[Any]:
        return [data for sent, data in self.events if sent == f"groundedness.{name}"]


def test_immediate_lets_text_out_at_once_and_retracts_it() -> None:
    events, text, started = EventRecorder(), "", threading.Event()
    pieces = pieces_of(ANSWER, EVERY_CHARACTER)
    options = {"on_contradicted": "correct", "on_unverifiable": "strip"}
    quick = guard(options, release="immediate")
    for piece in quick.transform(iter(pieces), {"callbacks": [events]}):
        text += piece
        started.set()
    assert text == ANSWER
    for change in sorted(events.of("retract"), key=lambda c: (-c["start"], -c["end"])):
        assert text[change["start"] : change["end"]] == change["original"]
        text = text[: change["start"]] + change["replacement"] + text[change["end"] :]
    assert text == guard(options).invoke(INPUT)


def test_immediate_does_not_wait_for_verdicts() -> None:
    verdicts = threading.Event()

    def waiting(task: VerificationTask) -> list[ClaimVerdict]:
        assert verdicts.wait(timeout=300)
        return judge_all(task)

    answer = "Costs fell by 4%. The CEO resigned. Nobody knows."
    text = ""
    quick = guard({"verifier": waiting}, release="immediate")
    for piece in quick.transform(iter(pieces_of(answer, EVERY_CHARACTER))):
        text += piece
        if text == answer:
            verdicts.set()
    assert text == answer


def test_immediate_works_with_an_extractor_that_needs_the_whole_answer() -> None:
    events = EventRecorder()
    extractor = ScriptedClaimExtractor(["Revenue was $2.4B.", "Costs fell by 4%."])
    answer = "Revenue was $2.4B. Costs fell by 4%."
    quick = guard({"extractor": extractor, "on_contradicted": "correct"}, release="immediate")
    pieces = pieces_of(answer, EVERY_CHARACTER)
    texts = list(quick.transform(iter(pieces), {"callbacks": [events]}))
    assert "".join(texts) == answer
    assert len(texts) > 10
    (change,) = events.of("retract")
    assert (change["original"], change["replacement"]) == ("$2.4B", "[CORRECTED: $2.1B]")


@pytest.mark.parametrize(
    "extractor", [None, ScriptedClaimExtractor(["Costs fell by 4%.", "Revenue was $2.4B."])]
)
def test_immediate_blocks_with_a_retraction(extractor: Any) -> None:
    events = EventRecorder()
    options = {"on_contradicted": "block", "extractor": extractor}
    quick = guard(options, release="immediate", blocked_message=MESSAGE)
    answer = "Costs fell by 4%. Revenue was $2.4B. And so on."
    config: Any = {"callbacks": [events]}
    text = "".join(quick.transform(iter(pieces_of(answer, EVERY_CHARACTER)), config))
    assert text.startswith("Costs fell by 4%. Revenue was $2.4B. ")
    assert text.endswith(MESSAGE)
    (change,) = events.of("retract")
    replayed = text[: change["start"]] + change["replacement"] + text[change["end"] :]
    assert replayed == f"Costs fell by 4%. {MESSAGE}"


@pytest.mark.parametrize("before", ["", "Costs fell by 4%. ", "Costs fell by 4%.\n\n"])
@pytest.mark.parametrize(
    "extractor", [None, ScriptedClaimExtractor(["Costs fell by 4%.", "Revenue was $2.4B."])]
)
def test_immediate_does_not_glue_the_message_to_a_word(extractor: Any, before: str) -> None:
    events = EventRecorder()
    options = {"on_contradicted": "block", "extractor": extractor}
    quick = guard(options, release="immediate", blocked_message=MESSAGE)
    pieces = pieces_of(f"{before}Revenue was $2.4B.", EVERY_CHARACTER)
    text = "".join(quick.transform(iter(pieces), {"callbacks": [events]}))
    assert text == f"{before}Revenue was $2.4B. {MESSAGE}"
    (change,) = events.of("retract")
    assert change["original"] == text[change["start"] : change["end"]]
    assert text[: change["start"]] + text[change["end"] :] == f"{before}{MESSAGE}"


def test_custom_events_tell_everything_once() -> None:
    events = EventRecorder()
    check = checker(**CORRECTING)
    pieces = pieces_of(ANSWER, EVERY_CHARACTER)
    list(check.transform(iter(pieces), {"callbacks": [events]}))
    result = check.invoke(INPUT)
    assert [Claim(**data) for data in events.of("claim")] == [v.claim for v in result.claims]
    verdicts = {data["claim"]["id"]: data["verdict"] for data in events.of("verdict")}
    assert verdicts == {v.claim.id: v.verdict for v in result.claims}
    assert len(events.of("verdict")) == len(result.claims)
    assert [c["correction"] for c in events.of("correction")] == ["$2.1B"]
    (decision,) = events.of("decision")
    assert decision["decision"]["action"] == result.decision.action
    assert decision["trust_score"] == result.trust_score


def test_events_can_be_written_as_json_whatever_the_metadata() -> None:
    events = EventRecorder()
    page = REPORT.model_copy(update={"metadata": {"any": {1, 2}, "raw": b"\xff", "own": object()}})
    checker().invoke({**INPUT, "documents": [page]}, {"callbacks": [events]})
    assert json.loads(json.dumps(events.events[-2][1])) == events.events[-2][1]
    assert "object" in events.of("verdict")[0]["citations"][0]["metadata"]["own"]


def test_whole_checks_and_batches_tell_the_same() -> None:
    def names(call: Any) -> list[str]:
        events = EventRecorder()
        call({"callbacks": [events]})
        return sorted(name for name, _ in events.events)

    check = checker(**CORRECTING)
    once = names(lambda config: check.invoke(INPUT, config))
    assert len(once) == 11 + 11 + 1 + 1
    assert names(lambda config: list(check.stream(INPUT, config))) == once
    assert names(lambda config: check.batch([INPUT, INPUT], config)) == sorted([*once, *once])
    assert names(lambda config: guard_of(check).invoke(INPUT, config)) == once


def guard_of(check: GroundednessRunnable) -> GroundednessGuard:
    return GroundednessGuard(check)


async def test_astream_events_shows_them_while_the_answer_is_written() -> None:
    model = FakeListChatModel(responses=["Costs fell by 4%. The CEO resigned. It rained."])
    guarded = model | guard().bind(documents=[REPORT])
    seen = [
        event["name"]
        async for event in guarded.astream_events("Q3?", version="v2")
        if event["event"] in ("on_custom_event", "on_chat_model_end")
    ]
    assert seen.index("groundedness.verdict") < seen.index("FakeListChatModel")
    assert seen[-1] == "groundedness.decision"


class State(TypedDict, total=False):
    answer: str
    documents: list[Any]


@pytest.mark.parametrize("way", ["invoke", "stream"])
def test_a_graph_streams_them_as_custom_data(way: str) -> None:
    def check(state: State) -> State:
        if way == "invoke":
            checker().invoke(state)
        else:
            texts = ({"answer": text} for text in cut(state["answer"], EVERY_CHARACTER))
            list(checker().bind(documents=state["documents"]).transform(texts))
        return {}

    graph: Any = StateGraph(State)
    graph.add_node("check", check)
    graph.add_edge(START, "check")
    graph.add_edge("check", END)
    value = {"answer": "Costs fell by 4%. The CEO resigned.", "documents": [REPORT]}
    data = list(graph.compile().stream(value, stream_mode="custom"))
    events = [each["event"] for each in data]
    assert events.count("groundedness.claim") == 2
    assert events.count("groundedness.verdict") == 2
    assert events[-1] == "groundedness.decision"


async def test_an_async_graph_streams_them_as_custom_data() -> None:
    async def check(state: State) -> State:
        await GroundednessGuard(checker()).ainvoke(state)
        return {}

    graph: Any = StateGraph(State)
    graph.add_node("check", check)
    graph.add_edge(START, "check")
    value = {"answer": "Costs fell by 4%.", "documents": [REPORT]}
    data = [each async for each in graph.compile().astream(value, stream_mode="custom")]
    assert [each["event"].partition(".")[2] for each in data] == ["claim", "verdict", "decision"]


async def test_block_stops_an_async_upstream() -> None:
    closed = False

    async def endless() -> AsyncIterator[AddableDict]:
        nonlocal closed
        try:
            yield AddableDict(documents=[REPORT])
            yield AddableDict(answer="Revenue was $2.4B. ")
            while True:
                await asyncio.sleep(0)
                yield AddableDict(answer="Costs fell by 4%. ")
        finally:
            closed = True

    blocking = guard({"on_contradicted": "block"}, blocked_message=MESSAGE)
    with nothing_left():
        assert [text async for text in blocking.atransform(endless())] == [MESSAGE]
    assert closed


async def test_closing_early_ends_all_tasks() -> None:
    started = asyncio.Event()

    async def wait(task: VerificationTask) -> list[ClaimVerdict]:
        if "4%" in task.claims[0].text:
            return judge_all(task)
        started.set()
        await asyncio.Event().wait()
        raise AssertionError

    async def endless() -> AsyncIterator[AddableDict]:
        yield AddableDict(documents=[REPORT])
        yield AddableDict(answer="Costs fell by 4%. ")
        while True:
            await asyncio.sleep(0)
            yield AddableDict(answer="The CEO resigned. ")

    with nothing_left():
        guarding = guard({"verifier": RunnableLambda(wait)})
        async with aclosing(guarding.atransform(endless())) as texts:
            async for text in texts:
                assert text.startswith("Costs")
                await started.wait()
                break


async def test_cancellation_ends_all_tasks() -> None:
    started = asyncio.Event()

    async def wait(_: VerificationTask) -> list[ClaimVerdict]:
        started.set()
        await asyncio.Event().wait()
        raise AssertionError

    async def read() -> None:
        guarding = guard({"verifier": RunnableLambda(wait)})
        async for _ in guarding.atransform(slowly(pieces_of(ANSWER, EVERY_CHARACTER))):
            pass

    with nothing_left():
        task = asyncio.create_task(read())
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


def test_an_upstream_error_lets_nothing_unverified_out() -> None:
    def failing() -> Iterator[AddableDict]:
        yield from pieces_of("Costs fell by 4%. The CEO resigned. It", EVERY_CHARACTER)
        msg = "upstream"
        raise RuntimeError(msg)

    texts: list[str] = []
    with nothing_left(), pytest.raises(RuntimeError, match="upstream"):
        texts.extend(guard().transform(failing()))
    assert "It" not in "".join(texts)


def test_options_are_checked() -> None:
    with pytest.raises(ConfigurationError, match="release"):
        guard(release="later")
    with pytest.raises(ConfigurationError, match="checker"):
        GroundednessGuard("checker")  # type: ignore[arg-type]


@pytest.mark.filterwarnings("ignore:The function `load` is in beta")
def test_a_guard_can_be_saved_and_loaded() -> None:
    saved = GroundednessGuard(GroundednessRunnable(max_claims=3), release="immediate")
    assert load(dumpd(saved), **load_arguments()) == saved


def test_a_guard_has_the_schemas_of_text() -> None:
    assert guard().OutputType is str
    assert guard().get_output_jsonschema()["type"] == "string"
    assert "answer" in guard().get_input_jsonschema()["properties"]


# Not a chain's stream that nobody keeps: its generators are LangChain's, and the collector may come
# to them while the loop shuts down.
@pytest.mark.parametrize(("in_a_chain", "kept"), [(False, False), (False, True), (True, True)])
@pytest.mark.parametrize("step", [GroundednessGuard, GroundednessRunnable])
def test_a_stream_that_is_left_open_at_the_end_of_the_loop_is_closed_quietly(
    step: Any,
    in_a_chain: bool,  # noqa: FBT001  (pytest passes it by name)
    kept: bool,  # noqa: FBT001  (pytest passes it by name)
) -> None:
    reported: list[Any] = []
    left_open: list[Any] = []

    async def words(_: Any = None) -> AsyncIterator[str]:
        for word in ["Revenue was ", "$2.1B. ", "It ", "rose. ", *["And more. "] * 20]:
            await asyncio.sleep(0)
            yield word

    async def read_one() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, found: reported.append(found))
        guarded = step().bind(documents=["Revenue was $2.1B. It rose. And more."])
        chain = RunnableGenerator(words) | guarded
        stream = chain.astream("?") if in_a_chain else guarded.atransform(words())
        if kept:
            left_open.append(stream)
        async for _ in stream:
            break
        del stream
        gc.collect()

    for _ in range(5):
        asyncio.run(read_one())
    assert reported == []
