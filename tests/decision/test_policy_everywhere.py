"""One policy: the same decision from every entry point, and a guard that withholds."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from functools import reduce
from operator import add
from typing import Any

import pytest
from any_policy import policies, questions
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from langchain_core.runnables.utils import AddableDict
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from middleware.agent_scripts import Writer, agent_of

from langchain_groundedness import (
    AsyncGroundednessCallbackHandler,
    Citation,
    Claim,
    ClaimVerdict,
    DecisionPolicy,
    GroundednessCallbackHandler,
    GroundednessGuard,
    GroundednessMiddleware,
    GroundednessRunnable,
    groundedness_node,
)
from langchain_groundedness.testing import ScriptedClaimExtractor
from langchain_groundedness.types import GroundednessResult, VerificationTask

FACTS = Document("Alpha was large. Beta was small.")
ANSWER = "True one. True two. False three. Nowhere four. Broken five. Shaky six. "
WHOLE = "[withheld]"


def judge(task: VerificationTask) -> list[ClaimVerdict]:
    return [_judged(claim, task) for claim in task.claims]


def _judged(claim: Claim, task: VerificationTask) -> ClaimVerdict:
    """Judge by the first word."""
    quote = (Citation.from_document(task.documents, 0, 0, 16),)
    if claim.text.startswith(("True", "Shaky")):
        probability = 0.9 if claim.text.startswith("True") else 0.55
        return ClaimVerdict(
            claim=claim, verdict="supported", citations=quote, support_probability=probability
        )
    if claim.text.startswith("False"):
        return ClaimVerdict(claim=claim, verdict="contradicted", citations=quote)
    if claim.text.startswith("Broken"):
        return ClaimVerdict.unchecked(claim, "TimeoutError")
    return ClaimVerdict(claim=claim, verdict="unverifiable", support_probability=0.2)


def checker(policy: Any, **options: Any) -> GroundednessRunnable:
    return GroundednessRunnable(verifier=judge, policy=policy, **options)


def source(answer: str, **question: Any) -> dict[str, Any]:
    return {"answer": answer, "documents": [FACTS], "question": "Which?", **question}


def words(answer: str, **question: Any) -> list[Any]:
    """Give what a chain streams, word by word."""
    parts = [AddableDict(answer=f"{word} ") for word in answer.split()]
    return [AddableDict(documents=[FACTS], question="Which?", **question), *parts]


def rule(action: str, **when: Any) -> dict[str, Any]:
    return {"when": when, "action": action, "reason": f"the rule for {action}"}


RULES = DecisionPolicy(
    rules=[
        rule("block", query_class="harmful"),
        rule("review", risk_tier="high", lowest_supported_probability={"below": 0.6}),
    ]
)


# --- the same decision everywhere ---


def by_invoke(answer: str, question: dict[str, Any]) -> GroundednessResult:
    return checker(RULES).invoke(source(answer, **question))


def by_ainvoke(answer: str, question: dict[str, Any]) -> GroundednessResult:
    return asyncio.run(checker(RULES).ainvoke(source(answer, **question)))


def by_batch(answer: str, question: dict[str, Any]) -> GroundednessResult:
    return checker(RULES).batch([source(answer, **question)] * 2)[1]


def by_transform(answer: str, question: dict[str, Any]) -> GroundednessResult:
    return reduce(add, checker(RULES).transform(iter(words(answer, **question))))


def by_handler(answer: str, question: dict[str, Any]) -> GroundednessResult:
    handler = GroundednessCallbackHandler(checker(RULES))
    chain: Any = RunnableLambda(lambda _: source(answer))
    chain.invoke("Which?", {"callbacks": [handler], "metadata": question})
    return next(iter(handler.results.values()))


def by_async_handler(answer: str, question: dict[str, Any]) -> GroundednessResult:
    handler = AsyncGroundednessCallbackHandler(checker(RULES))
    chain: Any = RunnableLambda(lambda _: source(answer))
    config: Any = {"callbacks": [handler], "metadata": question}
    asyncio.run(chain.ainvoke("Which?", config))
    return next(iter(handler.results.values()))


def by_node(answer: str, question: dict[str, Any]) -> GroundednessResult:
    update = groundedness_node(checker(RULES)).invoke(source(answer, **question))
    return _of_record(update["groundedness"], answer)


def by_middleware(answer: str, question: dict[str, Any], **options: Any) -> GroundednessResult:
    middleware = GroundednessMiddleware(
        checker(RULES), context_extractor=_extracted, max_retries=0, **options
    )
    agent = agent_of(answer, middleware=middleware, tools=[])
    config = {"metadata": question}
    asked = {"messages": [("user", "Which?")]}
    *_, (_, state) = agent.stream(asked, config, stream_mode=["messages", "values"])
    return _of_record(state["groundedness"], answer)


def by_live_middleware(answer: str, question: dict[str, Any]) -> GroundednessResult:
    return by_middleware(answer, question, live=True)


def by_holding_middleware(answer: str, question: dict[str, Any]) -> GroundednessResult:
    return by_middleware(answer, question, hold_stream=True)


def _extracted(state: Any) -> Any:
    return {"answer": state["messages"][-1].text, "documents": [FACTS], "question": "Which?"}


def _of_record(record: dict[str, Any], answer: str) -> GroundednessResult:
    known = {k: v for k, v in record.items() if k in GroundednessResult.model_fields}
    about: dict[str, Any] = {"question": None, "documents": (), "answer": answer}
    return GroundednessResult(**{"original_answer": answer, **about, **known})


ENTRIES: list[Callable[..., GroundednessResult]] = [
    *(by_invoke, by_ainvoke, by_batch, by_transform, by_handler, by_async_handler, by_node),
    *(by_middleware, by_live_middleware, by_holding_middleware),
]


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize(
    ("answer", "question", "action", "reason"),
    [
        ("True one.", {}, "pass", "every claim is supported"),
        ("True one.", {"query_class": "harmful"}, "block", "the rule for block"),
        ("True one.", {"risk_tier": "high"}, "pass", "every claim is supported"),
        ("True one. Shaky two.", {"risk_tier": "high"}, "review", "the rule for review"),
        ("True one. Shaky two.", {"risk_tier": "low"}, "pass", "every claim is supported"),
        ("Broken one.", {"query_class": "harmful"}, "block", "the rule for block"),
    ],
)
def test_rules_over_query_class_risk_tier_and_probability_count_everywhere(
    entry: Callable[..., GroundednessResult],
    answer: str,
    question: dict[str, Any],
    action: str,
    reason: str,
) -> None:
    result = entry(answer, question)
    assert (result.decision.action, result.decision.reasons[0]) == (action, reason)


@pytest.mark.parametrize("how", ["handler", "background", "middleware"])
def test_rules_count_for_answers_that_could_not_be_checked_at_all(how: str) -> None:
    policy = DecisionPolicy(rules=[rule("block", query_class="harmful")])
    broken = GroundednessRunnable(
        verifier=RunnableLambda(lambda _: 1 / 0), raise_on_failure=True, policy=policy
    )
    question: Any = {"query_class": "harmful"}
    if how == "middleware":
        unraised = broken.model_copy(update={"context_extractor": lambda _: 1 / 0})
        agent = agent_of("True one.", middleware=GroundednessMiddleware(unraised), tools=[])
        state = agent.invoke({"messages": [("user", "Which?")]}, {"metadata": question})
        decision = state["groundedness"]["decision"]
        assert decision["action"] == "block"
        return
    handler = GroundednessCallbackHandler(broken, background=how == "background")
    chain: Any = RunnableLambda(lambda _: source("True one."))
    chain.invoke("Which?", {"callbacks": [handler], "metadata": question})
    assert handler.flush()
    [result] = handler.results.values()
    assert (result.verdict, result.decision.action) == ("unchecked", "block")
    assert result.decision.reasons[0] == "the rule for block"
    assert result.decision.reasons[1].startswith("the check failed")
    handler.close()


class Listener(BaseCallbackHandler):
    def __init__(self) -> None:
        self.heard: list[tuple[str, Any]] = []

    def on_custom_event(self, name: str, data: Any, **_: Any) -> None:
        self.heard.append((name, data))


def test_no_chunk_and_no_event_tells_a_decision_before_the_last() -> None:
    listener = Listener()
    policy = DecisionPolicy(rules=[rule("pass", contradicted={"at_most": 0}), rule("block")])
    pieces = iter(words("True one. True two. False three."))
    chunks = list(checker(policy).transform(pieces, {"callbacks": [listener]}))
    totals = [reduce(add, chunks[: n + 1]) for n in range(len(chunks))]
    assert all(each.decision.reasons == ("the check has not finished",) for each in totals[:-1])
    assert "the rule for pass" not in totals[-1].decision.reasons
    names = [name for name, _ in listener.heard]
    assert names.count("groundedness.decision") == 1
    assert names[-1] == "groundedness.decision"


# --- the guard ---


def guard(policy: Any, **options: Any) -> GroundednessGuard:
    own = {key: options.pop(key) for key in ("extractor", "on_contradicted") if key in options}
    unmarked: dict[str, Any] = {"on_unchecked": "release", "contradicted_marker": ""}
    return GroundednessGuard(
        checker(policy, **own), **{"blocked_message": WHOLE, **unmarked, **options}
    )


def leaving(
    guarding: GroundednessGuard, pieces: list[Any], *, first_before: int | None = None
) -> tuple[str, list[int]]:
    """Give the text that leaves, and how many pieces had been read when each part of it left.

    Pieces are read ahead, so whether text could leave early shows only if the model waits for it:
    before piece `first_before` it writes nothing until some text has left.
    """
    read = 0
    left = threading.Event()

    def upstream() -> Any:
        nonlocal read
        for piece in pieces:
            for _ in range(30_000) if read + 1 == first_before else ():
                if left.wait(timeout=0.01):
                    break
                # A guard looks for verdicts whenever a piece comes.
                yield {"answer": ""} if isinstance(piece, dict) else ""
            read += 1
            yield piece

    parts, when = [], []
    for text in guarding.transform(upstream()):
        parts.append(text)
        when.append(read)
        left.set()
    return "".join(parts), when


@pytest.mark.parametrize(
    ("policy", "question", "text"),
    [
        ({}, {}, ANSWER),
        ({"contradicted": "block"}, {}, f"True one. True two. {WHOLE}"),
        ({"contradicted": "block", "at_most": "review"}, {}, ANSWER),
        ({"contradicted": "review"}, {}, ANSWER),
        ({"unchecked": "block"}, {}, f"True one. True two. False three. Nowhere four. {WHOLE}"),
        ({"untrusted": "block"}, {}, f"True one. True two. {WHOLE}"),
        (
            {"rules": [rule("block", unverifiable={"at_least": 1})]},
            {},
            f"True one. True two. False three. {WHOLE}",
        ),
        (
            {"rules": [rule("block", unverifiable={"at_least": 1}, contradicted={"at_least": 2})]},
            {},
            ANSWER,
        ),
        (
            {"rules": [rule("block", lowest_supported_probability={"below": 0.6})]},
            {},
            f"True one. True two. False three. Nowhere four. Broken five. {WHOLE}",
        ),
        ({"rules": [rule("block", query_class="harmful")]}, {"query_class": "harmful"}, WHOLE),
        ({"rules": [rule("block", query_class="harmful")]}, {"query_class": "product"}, ANSWER),
        ({"rules": [rule("block", query_class="harmful")]}, {}, ANSWER),
        ({"rules": [rule("block", trust_score={"below": 0.9})]}, {}, WHOLE),
        ({"rules": [rule("block", trust_score={"below": 0.2})]}, {}, ANSWER),
        ({"rules": [rule("block", contradicted={"share_at_least": 0.1})]}, {}, WHOLE),
        ({"rules": [rule("block", contradicted={"at_most": 1})]}, {}, WHOLE),
        ({"rules": [rule("block", contradicted={"at_most": 0})]}, {}, ANSWER),
        (
            {"rules": [rule("block", verdict="has_contradictions")]},
            {},
            f"True one. True two. {WHOLE}",
        ),
        ({"rules": [rule("block", verdict="partially_grounded")]}, {}, ANSWER),
        ({"rules": [rule("block")]}, {}, WHOLE),
        (
            {
                "contradicted": "block",
                "rules": [{**rule("flag", risk_tier="low"), "excuses": ["contradicted"]}],
            },
            {"risk_tier": "low"},
            ANSWER,
        ),
        (
            {
                "contradicted": "block",
                "rules": [
                    {
                        "when": {"unverifiable": {"at_most": 0}},
                        "action": "flag",
                        "excuses": ["contradicted"],
                    }
                ],
            },
            {},
            WHOLE,
        ),
    ],
)
def test_a_guard_withholds_what_the_policy_blocks_whole_or_streamed(
    policy: dict[str, Any], question: dict[str, Any], text: str
) -> None:
    guarding = guard(policy)
    decision = guarding.checker.invoke(source(ANSWER, **question)).decision
    assert (decision.action == "block") == text.endswith(WHOLE)
    assert guarding.invoke(source(ANSWER, **question)) == text
    assert leaving(guarding, words(ANSWER, **question))[0] == text


def test_a_sentence_leaves_before_the_answer_ends_where_the_rules_allow_it() -> None:
    policy = DecisionPolicy(
        contradicted="block", rules=[rule("block", query_class="harmful", risk_tier="high")]
    )
    pieces = words("True one. True two. True 3.", query_class="product")
    text, when = leaving(guard(policy), pieces, first_before=5)
    assert text == "True one. True two. True 3. "
    assert when[0] < 5


@pytest.mark.parametrize(
    "policy",
    [
        {"untrusted": "block"},
        {"rules": [rule("block", trust_score={"below": 0.0})]},
        {"rules": [rule("block", trust_score={"unknown": True})]},
        {"rules": [rule("block", trust_score={"below": 0.0, "unknown": True})]},
    ],
)
def test_text_leaves_as_soon_as_no_score_can_block_it(policy: dict[str, Any]) -> None:
    guarding = GroundednessGuard(
        checker(policy, trust_threshold=0.0), on_unchecked="release", contradicted_marker=""
    )
    text, when = leaving(guarding, words("True one. False two. True 3."), first_before=5)
    assert text == "True one. False two. True 3. "
    assert when[0] < 5


@pytest.mark.parametrize(
    "when",
    [
        {"trust_score": {"below": 0.1}},
        {"contradicted": {"share_at_least": 0.9}},
        {"query_class": "harmful"},
    ],
)
def test_nothing_leaves_while_it_may_still_turn_out_blocked(when: dict[str, Any]) -> None:
    pieces = words("True one. True two. True 3.")
    text, read = leaving(guard({"rules": [rule("block", **when)]}), pieces)
    assert text == "True one. True two. True 3. "
    assert read[0] == len(pieces)


def test_a_class_that_comes_late_still_blocks_what_came_before_it() -> None:
    policy = {"rules": [rule("block", query_class="harmful")]}
    pieces = words("True one. True two. True 3.")
    late = [*pieces[:6], AddableDict(query_class="harmful"), *pieces[6:]]
    text, _ = leaving(guard(policy), late)
    assert text == WHOLE
    fine = [*pieces[:6], AddableDict(query_class="product"), *pieces[6:]]
    text, read = leaving(guard(policy), fine, first_before=len(fine))
    assert text == "True one. True two. True 3. "
    assert read[0] < len(fine)


def test_plain_tokens_are_not_held_for_a_class_that_cannot_come() -> None:
    policy = {"rules": [rule("block", query_class="harmful")]}
    tokens = ["True one. ", "True two. ", "True three. ", "True four."]
    for query_class, held in ((None, False), ("product", False), ("harmful", True)):
        bound = guard(policy).bind(documents=[FACTS], query_class=query_class)
        text = "".join(bound.transform(iter(tokens)))
        assert text == (WHOLE if held else "".join(tokens))


def test_a_refusal_leaves_and_code_is_withheld_as_the_policy_says() -> None:
    guarding = guard(DecisionPolicy.strict())
    assert guarding.invoke(source("I don't know.")) == "I don't know."
    for answer in ("```\nTrue one.\n```", ""):
        assert guarding.invoke(source(answer)) == WHOLE
        pieces = [AddableDict(documents=[FACTS]), AddableDict(answer=answer[:4])]
        assert leaving(guarding, [*pieces, AddableDict(answer=answer[4:])])[0] == WHOLE


def test_a_statement_without_a_claim_is_unchecked_to_the_policy_of_a_guard() -> None:
    extractor = ScriptedClaimExtractor(["True one."])
    guarding = guard(DecisionPolicy(unchecked="block"), extractor=extractor)
    assert guarding.invoke(source("True one. False two.")) == f"True one. {WHOLE}"


def test_what_left_at_once_is_retracted_from_where_it_is_blocked() -> None:
    for policy, start in (
        ({"contradicted": "block"}, ANSWER.index("False")),
        ({"rules": [rule("block", trust_score={"below": 0.9})]}, 0),
    ):
        listener = Listener()
        quick = guard(policy, release="immediate")
        text = "".join(quick.transform(iter(words(ANSWER)), {"callbacks": [listener]}))
        assert text.endswith(WHOLE)
        shown = text.removesuffix(WHOLE)
        *_, last = [data for name, data in listener.heard if name == "groundedness.retract"]
        assert (last["start"], last["end"], last["replacement"]) == (start, len(shown), "")


SENTENCES = ["True a. ", "False b. ", "Nowhere c. ", "Broken d. ", "Shaky e. ", "Hello! ", "# T\n"]


def answers() -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(SENTENCES), max_size=6).map("".join)


@settings(deadline=None, max_examples=settings().max_examples * 3 // 2)
@given(policy=policies(), asked=questions(), answer=answers(), late=st.integers(0, 5))
def test_a_guard_shows_the_same_streamed_as_whole_and_nothing_that_is_blocked_as_a_whole(
    policy: DecisionPolicy, asked: dict[str, Any], answer: str, late: int
) -> None:
    question = {n: asked[n] for n in ("query_class", "risk_tier", "retrieval_score") if asked[n]}
    checking = checker(policy, trust_threshold=asked["trust_threshold"])
    guarding = GroundednessGuard(
        checking, blocked_message=WHOLE, on_unchecked="release", contradicted_marker=""
    )
    given_whole = source(answer, **question)
    whole = guarding.invoke(given_whole)
    blocked = checking.invoke(given_whole).decision.action == "block"
    assert whole.endswith(WHOLE) == blocked
    assert answer.startswith(whole.removesuffix(WHOLE))
    pieces = [AddableDict(answer=part) for part in answer or [""]]
    pieces.insert(min(late, len(pieces)), AddableDict(documents=[FACTS], **question))
    assert "".join(guarding.transform(iter(pieces))) == whole


async def test_the_guard_holds_in_async_streams_too() -> None:
    policy = {
        "rules": [rule("block", query_class="harmful"), rule("block", trust_score={"below": 0.1})]
    }

    async def upstream(pieces: list[Any]) -> AsyncIterator[Any]:
        for piece in pieces:
            await asyncio.sleep(0)
            yield piece

    for question, text in (({"query_class": "harmful"}, WHOLE), ({}, ANSWER)):
        pieces = words(ANSWER, **question)
        parts = [part async for part in guard(policy).atransform(upstream(pieces))]
        assert "".join(parts) == text


# --- the middleware ---

BLOCKED = "No."
ASKED = {"messages": [("user", "Which?")]}


def agent_with(policy: Any, *answers: str, **options: Any) -> Any:
    checkpointer = options.pop("checkpointer", None)
    middleware = GroundednessMiddleware(
        checker(policy),
        context_extractor=_extracted,
        **{"blocked_message": BLOCKED, **options},
    )
    model = Writer(replies=list(answers))
    return agent_of(model=model, middleware=middleware, tools=[], checkpointer=checkpointer)


def outcome(agent: Any, config: Any = None) -> tuple[str, str]:
    state = agent.invoke(ASKED, config)
    return state["messages"][-1].text, state["groundedness"]["outcome"]


HARMFUL: Any = {"metadata": {"query_class": "harmful"}}


@pytest.mark.parametrize("on_ungrounded", ["annotate", "correct", "block", "policy"])
def test_what_the_policy_blocks_never_goes_out(on_ungrounded: str) -> None:
    agent = agent_with(RULES, "True one.", "True one.", on_ungrounded=on_ungrounded)
    assert outcome(agent, HARMFUL) == (BLOCKED, "blocked")
    assert outcome(agent) == ("True one.", "passed")


def test_a_retry_may_mend_what_the_policy_blocks_and_else_it_is_withheld() -> None:
    policy = DecisionPolicy(contradicted="block")
    mended = agent_with(policy, "False one.", "True one.", on_ungrounded="retry")
    assert outcome(mended) == ("True one.", "passed")
    again = agent_with(policy, "False one.", "False two.", on_ungrounded="retry")
    assert outcome(again) == (BLOCKED, "blocked")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("True one.", ("True one.", "passed")),
        ("Nowhere one.", ("Nowhere one.", "annotated")),
        ("False one.", (BLOCKED, "blocked")),
    ],
)
def test_a_middleware_may_do_just_what_the_policy_decides(
    answer: str, expected: tuple[str, str]
) -> None:
    policy = DecisionPolicy(contradicted="block")
    agent = agent_with(policy, answer, on_ungrounded="policy", checkpointer=InMemorySaver())
    assert outcome(agent, {"configurable": {"thread_id": "1"}}) == expected


def test_a_review_that_the_policy_asks_for_waits_for_a_person() -> None:
    policy = DecisionPolicy(rules=[rule("review", query_class="sensitive")])
    agent = agent_with(policy, "True one.", on_ungrounded="policy", checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "1"}, "metadata": {"query_class": "sensitive"}}
    paused = agent.invoke(ASKED, config)
    [interrupt] = paused["__interrupt__"]
    [action] = interrupt.value["action_requests"]
    assert action["description"].startswith("The policy asks for a review: the rule for review")
    state = agent.invoke(Command(resume={"type": "approve"}), config)
    assert state["groundedness"]["outcome"] == "approved"


def test_a_person_may_let_out_what_the_policy_blocks() -> None:
    agent = agent_with(RULES, "True one.", on_ungrounded="review", checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "1"}, **HARMFUL}
    assert agent.invoke(ASKED, config)["__interrupt__"]
    state = agent.invoke(Command(resume={"type": "approve"}), config)
    assert state["messages"][-1].text == "True one."


@pytest.mark.parametrize(
    ("policy", "config", "streamed"),
    [
        (RULES, HARMFUL, ""),
        (RULES, {"metadata": {"query_class": "product"}}, "True one. False two. True three."),
        ({"contradicted": "block"}, {}, "True one. "),
        ({"rules": [rule("block", trust_score={"below": 0.9})]}, {}, ""),
    ],
)
def test_a_held_stream_holds_back_what_the_policy_blocks(
    policy: Any, config: Any, streamed: str
) -> None:
    agent = agent_with(policy, "True one. False two. True three.", hold_stream=True)
    parts = agent.stream(ASKED, config, stream_mode="messages")
    text = "".join(m.text for m, about in parts if about["langgraph_node"] == "model")
    expected = streamed.replace("False two. ", "")  # never verified, so it is not shown either
    assert text.rstrip() == expected.rstrip()
