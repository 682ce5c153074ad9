"""The entry points of the package, each checking one sample with a model that may fail."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable, RunnableLambda

from langchain_groundedness import (
    AsyncGroundednessCallbackHandler,
    CascadeVerifier,
    EmbeddedVerifier,
    GroundednessCallbackHandler,
    GroundednessGuard,
    GroundednessMiddleware,
    GroundednessRunnable,
    LLMVerifier,
    SentenceClaimExtractor,
    SinglePassJudge,
    Stage,
)
from langchain_groundedness.evals import EvaluationRow, FaithfulnessEvaluator
from langchain_groundedness.testing import KnownClaim, ScriptedChatModel

__all__ = [
    "ANSWER",
    "ENTRIES",
    "FALSE",
    "KNOWN",
    "OPENED",
    "PAID",
    "SAMPLE",
    "SECONDS",
    "SENTENCES",
    "Asked",
    "Seen",
]

OPENED = "The Aldgate bridge was opened in 1974."
LANES = "It carries two lanes of traffic and a footpath."
COUNTY = "Maintenance costs 90,000 euros a year and is paid by the county."
DOCUMENTS = (Document(f"{OPENED} {LANES}", id="bridge"), Document(COUNTY, id="budget"))
FALSE = "It carries six lanes of traffic."
NOWHERE = "The architect was born in Norway."
PAID = "Maintenance is paid by the county."
ANSWER = f"{OPENED} {FALSE} {PAID} {NOWHERE}"
KNOWN: Mapping[str, KnownClaim] = {
    OPENED: KnownClaim("supported", OPENED),
    FALSE: KnownClaim("contradicted", LANES, "two lanes"),
    "The Aldgate bridge carries six lanes of traffic.": KnownClaim(
        "contradicted", LANES, "two lanes"
    ),
    PAID: KnownClaim("supported", COUNTY),
    "It carries two lanes of traffic.": KnownClaim("supported", LANES),
    "The Aldgate bridge carries two lanes of traffic.": KnownClaim("supported", LANES),
    NOWHERE: KnownClaim("unverifiable"),
}
SENTENCES = (OPENED, FALSE, PAID, NOWHERE)
SAMPLE = {
    "question": "What about the Aldgate bridge?",
    "answer": ANSWER,
    "documents": list(DOCUMENTS),
}
SECONDS = 300
"""For what hangs: a check takes so long only if it waits for a server that says nothing."""
_T = TypeVar("_T")


class Asked(NamedTuple):
    """The model of a check, and how long the check waits for it."""

    model: BaseChatModel
    seconds: float


class Seen(NamedTuple):
    """What the caller of an entry point gets to see."""

    claims: Sequence[Any] = ()
    """Verdicts, of all answers that were checked."""
    texts: Sequence[str] = ()
    """What a guard let out."""
    scores: Sequence[float | None] = ()


def _checker(asked: Asked, **options: Any) -> GroundednessRunnable:
    """Judge two claims a call, so that one call may fail and another not."""
    model, seconds = asked
    verifier = LLMVerifier(model=model, claims_per_call=2, timeout=seconds)
    return GroundednessRunnable(model=model, verifier=verifier, model_timeout=seconds, **options)


def _within(call: Awaitable[_T]) -> _T:
    async def bounded() -> _T:
        return await asyncio.wait_for(call, SECONDS)

    return asyncio.run(bounded())


def _summed(chunks: Sequence[Any]) -> Any:
    total = chunks[0]
    for chunk in chunks[1:]:
        total = total + chunk
    return total


def _invoke(asked: Asked) -> Seen:
    return Seen(_checker(asked).invoke(SAMPLE).claims)


def _ainvoke(asked: Asked) -> Seen:
    return Seen(_within(_checker(asked).ainvoke(SAMPLE)).claims)


def _per_claim(asked: Asked) -> Seen:
    model, seconds = asked
    verifier = LLMVerifier(model=model, strategy="per_claim", timeout=seconds)
    checker = GroundednessRunnable(verifier=verifier, extractor=SentenceClaimExtractor())
    return Seen(checker.invoke(SAMPLE).claims)


def _cross_checked(asked: Asked) -> GroundednessRunnable:
    """Make the judge of docs/security.md, whose `supported` the embedded verifier confirms."""
    model, seconds = asked
    judge = Stage(
        verifier=LLMVerifier(model=model, claims_per_call=2, timeout=seconds),
        settles=lambda verdict: verdict.verdict != "supported",
        required=True,
    )
    verifier = CascadeVerifier([judge, EmbeddedVerifier()])
    return GroundednessRunnable(verifier=verifier, extractor=SentenceClaimExtractor())


def _cross_checked_invoke(asked: Asked) -> Seen:
    return Seen(_cross_checked(asked).invoke(SAMPLE).claims)


def _cross_checked_astream(asked: Asked) -> Seen:
    async def chunks() -> list[Any]:
        return [chunk async for chunk in _cross_checked(asked).astream(SAMPLE)]

    return Seen(_summed(_within(chunks())).claims)


def _batch(asked: Asked) -> Seen:
    results = _checker(asked).batch([SAMPLE, SAMPLE])
    return Seen([verdict for result in results for verdict in result.claims])


def _abatch(asked: Asked) -> Seen:
    results = _within(_checker(asked).abatch([SAMPLE, SAMPLE]))
    return Seen([verdict for result in results for verdict in result.claims])


def _stream(asked: Asked) -> Seen:
    return Seen(_summed(list(_checker(asked).stream(SAMPLE))).claims)


def _astream(asked: Asked) -> Seen:
    async def chunks() -> list[Any]:
        return [chunk async for chunk in _checker(asked).astream(SAMPLE)]

    return Seen(_summed(_within(chunks())).claims)


def _guard(asked: Asked, **options: Any) -> GroundednessGuard:
    checker = _checker(asked, on_contradicted="correct", on_unverifiable="strip", **options)
    return GroundednessGuard(checker, on_unchecked="hold_back")


def _guard_invoke(asked: Asked) -> Seen:
    checker = _checker(asked, on_contradicted="correct", on_unverifiable="strip")
    return Seen(texts=[GroundednessGuard(checker).invoke(SAMPLE)])


def _guard_ainvoke(asked: Asked) -> Seen:
    return Seen(texts=[_within(_guard(asked).ainvoke(SAMPLE))])


def _pieces() -> Iterator[dict[str, Any]]:
    yield {key: value for key, value in SAMPLE.items() if key != "answer"}
    for word in re.findall(r"\S+\s*", ANSWER):
        yield {"answer": word}


def _guard_transform(asked: Asked) -> Seen:
    guard = _guard(asked, extractor=SentenceClaimExtractor())
    return Seen(texts=["".join(guard.transform(_pieces()))])


def _guard_atransform(asked: Asked) -> Seen:
    async def pieces() -> Any:
        for piece in _pieces():
            yield piece

    async def text() -> str:
        guard = _guard(asked, extractor=SentenceClaimExtractor())
        return "".join([part async for part in guard.atransform(pieces())])

    return Seen(texts=[_within(text())])


def _single(asked: Asked, **options: Any) -> GroundednessRunnable:
    model, seconds = asked
    return GroundednessRunnable(model=model, single_pass=True, model_timeout=seconds, **options)


def _single_pass(asked: Asked) -> Seen:
    return Seen(_single(asked).invoke(SAMPLE).claims)


def _plain_single_pass(asked: Asked) -> Seen:
    judge = SinglePassJudge(model=asked.model, reply_form="lines", timeout=asked.seconds)
    return Seen(GroundednessRunnable(single_pass=judge).invoke(SAMPLE).claims)


def _asingle_pass(asked: Asked) -> Seen:
    async def chunks() -> list[Any]:
        return [chunk async for chunk in _single(asked).astream(SAMPLE)]

    return Seen(_summed(_within(chunks())).claims)


def _single_pass_guard(asked: Asked) -> Seen:
    checker = _single(asked, on_contradicted="correct", on_unverifiable="strip")
    guard = GroundednessGuard(checker, on_unchecked="hold_back")
    return Seen(texts=["".join(guard.transform(_pieces()))])


def _handler(asked: Asked) -> Seen:
    handler = GroundednessCallbackHandler(_checker(asked))
    chain: Runnable[str, Any] = RunnableLambda(lambda _: SAMPLE)
    assert chain.invoke("?", config={"callbacks": [handler]}) == SAMPLE
    [result] = handler.results.values()
    return Seen(result.claims)


def _async_handler(asked: Asked) -> Seen:
    handler = AsyncGroundednessCallbackHandler(_checker(asked))
    chain: Runnable[str, Any] = RunnableLambda(lambda _: SAMPLE)
    assert _within(chain.ainvoke("?", config={"callbacks": [handler]})) == SAMPLE
    [result] = handler.results.values()
    return Seen(result.claims)


def _handler_stream(asked: Asked) -> Seen:
    handler = GroundednessCallbackHandler(_checker(asked))
    chain: Runnable[str, Any] = RunnableLambda(lambda _: SAMPLE)
    assert _summed(list(chain.stream("?", config={"callbacks": [handler]}))) == SAMPLE
    [result] = handler.results.values()
    return Seen(result.claims)


def _async_handler_astream(asked: Asked) -> Seen:
    handler = AsyncGroundednessCallbackHandler(_checker(asked))
    chain: Runnable[str, Any] = RunnableLambda(lambda _: SAMPLE)

    async def chunks() -> list[Any]:
        return [chunk async for chunk in chain.astream("?", config={"callbacks": [handler]})]

    assert _summed(_within(chunks())) == SAMPLE
    [result] = handler.results.values()
    return Seen(result.claims)


class _Plain(NamedTuple):
    """A verdict as the state of an agent holds it."""

    claim: Any
    verdict: str
    reason: str | None


class _PlainClaim(NamedTuple):
    text: str
    start: int
    end: int


def _agent(asked: Asked) -> Any:
    middleware = GroundednessMiddleware(
        _checker(asked), on_ungrounded="correct", context_extractor=lambda _: SAMPLE
    )
    return create_agent(ScriptedChatModel(replies=[ANSWER]), middleware=[middleware])


def _state(state: Any) -> Seen:
    return Seen(
        [
            _Plain(
                _PlainClaim(**{name: each["claim"][name] for name in _PlainClaim._fields}),
                each["verdict"],
                each["reason"],
            )
            for each in state["groundedness"]["claims"]
        ]
    )


def _middleware(asked: Asked) -> Seen:
    return _state(_agent(asked).invoke({"messages": [("user", SAMPLE["question"])]}))


def _amiddleware(asked: Asked) -> Seen:
    return _state(_within(_agent(asked).ainvoke({"messages": [("user", SAMPLE["question"])]})))


def _middleware_stream(asked: Asked) -> Seen:
    asking: Any = {"messages": [("user", SAMPLE["question"])]}
    *_, last = _agent(asked).stream(asking, stream_mode="values")
    return _state(last)


def _middleware_astream(asked: Asked) -> Seen:
    asking: Any = {"messages": [("user", SAMPLE["question"])]}

    async def states() -> list[Any]:
        return [s async for s in _agent(asked).astream(asking, stream_mode="values")]

    return _state(_within(states())[-1])


def _evaluator(asked: Asked) -> Seen:
    row = EvaluationRow(id="1", answer=ANSWER, documents=DOCUMENTS)
    return _scored([_evaluators(asked).invoke(row)])


def _aevaluator(asked: Asked) -> Seen:
    row = EvaluationRow(id="1", answer=ANSWER, documents=DOCUMENTS)
    return _scored([_within(_evaluators(asked).ainvoke(row))])


def _evaluator_batch(asked: Asked) -> Seen:
    row = EvaluationRow(id="1", answer=ANSWER, documents=DOCUMENTS)
    return _scored(_evaluators(asked).batch([row, row]))


def _evaluators(asked: Asked) -> FaithfulnessEvaluator:
    model, seconds = asked
    verifier = LLMVerifier(model=model, claims_per_call=2, timeout=seconds)
    return FaithfulnessEvaluator(model=model, verifier=verifier, model_timeout=seconds)


def _scored(scores: Sequence[Any]) -> Seen:
    claims = [verdict for score in scores for verdict in score.result.claims]
    assert all((score.score is None) == (score.status == "failed") for score in scores)
    return Seen(claims, scores=[score.score for score in scores])


ENTRIES: Mapping[str, Callable[[Asked], Seen]] = {
    "runnable.invoke": _invoke,
    "runnable.ainvoke": _ainvoke,
    "runnable.batch": _batch,
    "runnable.abatch": _abatch,
    "runnable.stream": _stream,
    "runnable.astream": _astream,
    "runnable.invoke, per_claim": _per_claim,
    "cross-checked invoke": _cross_checked_invoke,
    "cross-checked astream": _cross_checked_astream,
    "single_pass.invoke": _single_pass,
    "single_pass in plain lines": _plain_single_pass,
    "single_pass.astream": _asingle_pass,
    "single_pass guard.transform": _single_pass_guard,
    "guard.invoke": _guard_invoke,
    "guard.ainvoke": _guard_ainvoke,
    "guard.transform": _guard_transform,
    "guard.atransform": _guard_atransform,
    "handler.invoke": _handler,
    "handler.stream": _handler_stream,
    "async handler.ainvoke": _async_handler,
    "async handler.astream": _async_handler_astream,
    "middleware.invoke": _middleware,
    "middleware.ainvoke": _amiddleware,
    "middleware.stream": _middleware_stream,
    "middleware.astream": _middleware_astream,
    "evaluator.invoke": _evaluator,
    "evaluator.ainvoke": _aevaluator,
    "evaluator.batch": _evaluator_batch,
}
"""Each checks the sample, and says what came of it."""
