"""Every fault at every entry point: how the checks are made, and how they may end.

`benchmarks/faults.py` prints what the tests here assert.
"""

import asyncio
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_openai import ChatOpenAI

from langchain_groundedness import (
    AsyncGroundednessCallbackHandler,
    GroundednessCallbackHandler,
    GroundednessGuard,
    GroundednessMiddleware,
    GroundednessRunnable,
    LLMVerifier,
    SentenceClaimExtractor,
    SinglePassJudge,
)
from langchain_groundedness.evals import EvaluationRow, FaithfulnessEvaluator
from langchain_groundedness.testing import (
    FAULTS,
    FaultyServer,
    HonestJudge,
    KnownClaim,
    ScriptedChatModel,
)

__all__ = ["ANSWER", "ENTRIES", "KNOWN", "RATES", "SAMPLE", "Cell", "Models", "cell", "judge"]

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
SAMPLE = {
    "question": "What about the Aldgate bridge?",
    "answer": ANSWER,
    "documents": list(DOCUMENTS),
}
MAY_LEAVE = (OPENED, PAID, "It carries [CORRECTED: two] lanes of traffic.")
RATES = (1.0, 0.3)
SECONDS = 15
"""No check takes longer, nor does it wait for a server that says nothing."""
_SCORE = 0.5
_T = TypeVar("_T")


def judge() -> HonestJudge:
    return HonestJudge(KNOWN, {FALSE: "The Aldgate bridge carries six lanes of traffic."})


class Models:
    """Chat models for a server, which share their clients: making one takes a while."""

    def __init__(self, server: FaultyServer) -> None:
        self._patient = _chat(server, timeout=SECONDS, max_retries=0)
        self._retrying = _chat(server, timeout=SECONDS, max_retries=1)
        self._hasty = _chat(server, timeout=0.15, max_retries=0)

    def fresh(self, fault: str | None) -> BaseChatModel:
        """Give a model of which nothing has been learnt yet."""
        if fault is None:
            return self._patient.model_copy()
        if fault == "http_429":
            return self._retrying.model_copy()
        return (self._hasty if FAULTS[fault].slow else self._patient).model_copy()


def _chat(server: FaultyServer, **options: Any) -> ChatOpenAI:
    return ChatOpenAI(
        model="scripted",
        base_url=server.base_url,
        api_key="none",
        use_responses_api=False,
        **options,
    )


class Seen(NamedTuple):
    """What the caller of an entry point gets to see."""

    claims: Sequence[Any] = ()
    """Verdicts, of all answers that were checked."""
    texts: Sequence[str] = ()
    """What a guard let out."""
    scores: Sequence[float | None] = ()


class Cell(NamedTuple):
    """One fault at one entry point."""

    ends: Counter[str]
    """How many claims or sentences ended how."""
    wrong: tuple[str, ...]
    """What must not be: empty."""
    seconds: float


def cell(server: FaultyServer, models: Models, entry: str, fault: str | None, rate: float) -> Cell:
    """Check the sample through an entry point while a fault happens, and look at the outcome."""
    server.inject(fault, rate=rate, seed=len(entry) * 31)
    begun = time.monotonic()
    seen = ENTRIES[entry](models.fresh(fault))
    seconds = time.monotonic() - begun
    wrong = [*_wrong_claims(seen), *_wrong_texts(seen), *_wrong_scores(seen)]
    if fault is None or not FAULTS[fault].slow:  # a client in a hurry may drop a right reply
        wrong += _lost(server, seen)
    if seconds > SECONDS:
        wrong.append(f"took {seconds:.0f} s")
    return Cell(Counter([*_ends(seen)]), tuple(wrong), seconds)


def _wrong_claims(seen: Seen) -> Iterator[str]:
    for verdict in seen.claims:
        right = KNOWN.get(verdict.claim.text, KnownClaim("unverifiable")).verdict
        if verdict.verdict == "unchecked":
            if not verdict.reason:
                yield f"{verdict.claim.text!r} is unchecked without a reason"
        elif verdict.verdict != right:
            yield f"{verdict.claim.text!r} is {verdict.verdict}, not {right}"
    if seen.claims:
        told = {verdict.claim.text for verdict in seen.claims}
        covered = {ANSWER[v.claim.start : v.claim.end] for v in seen.claims} | told
        yield from (f"{s!r} is not among the claims" for s in _SENTENCES if s not in covered)


def _wrong_texts(seen: Seen) -> Iterator[str]:
    for text in seen.texts:
        rest = text
        for sentence in _SENTENCES:  # those not verified leave only with a mark behind them
            rest = rest.replace(f"{sentence} [UNCHECKED]", "")
        for sentence in MAY_LEAVE:
            rest = rest.replace(sentence, "")
        if rest.strip():
            yield f"{rest.strip()!r} was released"


def _wrong_scores(seen: Seen) -> Iterator[str]:
    for score in seen.scores:
        if score not in {None, _SCORE}:
            yield f"the score is {score}"


def _lost(server: FaultyServer, seen: Seen) -> Iterator[str]:
    """Name claims that the judge gave the right verdict on, and that came out unchecked."""
    judged = {
        claim
        for request in server.answered
        for shown in re.findall(r"<(?:claims|answer) \w+>\n(.*?)\n</", request.text, re.DOTALL)
        for claim in re.findall(r"^[CS]\d+: (.*)$", shown, re.MULTILINE)
    }
    if len(seen.claims) > len(_SENTENCES):  # of several answers
        return
    for verdict in seen.claims:
        if verdict.verdict == "unchecked" and verdict.claim.text in judged:
            yield f"{verdict.claim.text!r} was judged, but is unchecked"


def _ends(seen: Seen) -> Iterator[str]:
    yield from ("unchecked" if v.verdict == "unchecked" else "right" for v in seen.claims)
    for text in seen.texts:
        marked = text.count("[UNCHECKED]")
        out = sum(sentence in text for sentence in MAY_LEAVE)
        out -= sum(f"{sentence} [UNCHECKED]" in text for sentence in MAY_LEAVE)
        yield from ["released"] * out + ["marked"] * marked
        yield from ["held"] * (len(_SENTENCES) - out - marked)


_SENTENCES = (OPENED, FALSE, PAID, NOWHERE)


def _checker(model: BaseChatModel, **options: Any) -> GroundednessRunnable:
    """Judge two claims a call, so that one call may fail and another not."""
    verifier = LLMVerifier(model=model, claims_per_call=2)
    return GroundednessRunnable(model=model, verifier=verifier, **options)


def _within(call: Awaitable[_T]) -> _T:
    async def bounded() -> _T:
        return await asyncio.wait_for(call, 2 * SECONDS)

    return asyncio.run(bounded())


def _summed(chunks: Sequence[Any]) -> Any:
    total = chunks[0]
    for chunk in chunks[1:]:
        total = total + chunk
    return total


def _invoke(model: BaseChatModel) -> Seen:
    return Seen(_checker(model).invoke(SAMPLE).claims)


def _ainvoke(model: BaseChatModel) -> Seen:
    return Seen(_within(_checker(model).ainvoke(SAMPLE)).claims)


def _per_claim(model: BaseChatModel) -> Seen:
    verifier = LLMVerifier(model=model, strategy="per_claim")
    checker = GroundednessRunnable(verifier=verifier, extractor=SentenceClaimExtractor())
    return Seen(checker.invoke(SAMPLE).claims)


def _batch(model: BaseChatModel) -> Seen:
    results = _checker(model).batch([SAMPLE, SAMPLE])
    return Seen([verdict for result in results for verdict in result.claims])


def _abatch(model: BaseChatModel) -> Seen:
    results = _within(_checker(model).abatch([SAMPLE, SAMPLE]))
    return Seen([verdict for result in results for verdict in result.claims])


def _stream(model: BaseChatModel) -> Seen:
    return Seen(_summed(list(_checker(model).stream(SAMPLE))).claims)


def _astream(model: BaseChatModel) -> Seen:
    async def chunks() -> list[Any]:
        return [chunk async for chunk in _checker(model).astream(SAMPLE)]

    return Seen(_summed(_within(chunks())).claims)


def _guard(model: BaseChatModel, **options: Any) -> GroundednessGuard:
    checker = _checker(model, on_contradicted="correct", on_unverifiable="strip", **options)
    return GroundednessGuard(checker, on_unchecked="hold_back")


def _guard_invoke(model: BaseChatModel) -> Seen:
    checker = _checker(model, on_contradicted="correct", on_unverifiable="strip")
    return Seen(texts=[GroundednessGuard(checker).invoke(SAMPLE)])


def _guard_ainvoke(model: BaseChatModel) -> Seen:
    return Seen(texts=[_within(_guard(model).ainvoke(SAMPLE))])


def _pieces() -> Iterator[dict[str, Any]]:
    yield {key: value for key, value in SAMPLE.items() if key != "answer"}
    for word in re.findall(r"\S+\s*", ANSWER):
        yield {"answer": word}


def _guard_transform(model: BaseChatModel) -> Seen:
    guard = _guard(model, extractor=SentenceClaimExtractor())
    return Seen(texts=["".join(guard.transform(_pieces()))])


def _guard_atransform(model: BaseChatModel) -> Seen:
    async def pieces() -> Any:
        for piece in _pieces():
            yield piece

    async def text() -> str:
        guard = _guard(model, extractor=SentenceClaimExtractor())
        return "".join([part async for part in guard.atransform(pieces())])

    return Seen(texts=[_within(text())])


def _single_pass(model: BaseChatModel) -> Seen:
    return Seen(GroundednessRunnable(model=model, single_pass=True).invoke(SAMPLE).claims)


def _plain_single_pass(model: BaseChatModel) -> Seen:
    judge = SinglePassJudge(model=model, reply_form="lines")
    return Seen(GroundednessRunnable(single_pass=judge).invoke(SAMPLE).claims)


def _asingle_pass(model: BaseChatModel) -> Seen:
    checker = GroundednessRunnable(model=model, single_pass=True)

    async def chunks() -> list[Any]:
        return [chunk async for chunk in checker.astream(SAMPLE)]

    return Seen(_summed(_within(chunks())).claims)


def _single_pass_guard(model: BaseChatModel) -> Seen:
    checker = GroundednessRunnable(
        model=model, single_pass=True, on_contradicted="correct", on_unverifiable="strip"
    )
    guard = GroundednessGuard(checker, on_unchecked="hold_back")
    return Seen(texts=["".join(guard.transform(_pieces()))])


def _handler(model: BaseChatModel) -> Seen:
    handler = GroundednessCallbackHandler(_checker(model))
    chain: Runnable[str, Any] = RunnableLambda(lambda _: SAMPLE)
    assert chain.invoke("?", config={"callbacks": [handler]}) == SAMPLE
    [result] = handler.results.values()
    return Seen(result.claims)


def _async_handler(model: BaseChatModel) -> Seen:
    handler = AsyncGroundednessCallbackHandler(_checker(model))
    chain: Runnable[str, Any] = RunnableLambda(lambda _: SAMPLE)
    assert _within(chain.ainvoke("?", config={"callbacks": [handler]})) == SAMPLE
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


def _agent(model: BaseChatModel) -> Any:
    middleware = GroundednessMiddleware(
        _checker(model), on_ungrounded="correct", context_extractor=lambda _: SAMPLE
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


def _middleware(model: BaseChatModel) -> Seen:
    return _state(_agent(model).invoke({"messages": [("user", SAMPLE["question"])]}))


def _amiddleware(model: BaseChatModel) -> Seen:
    return _state(_within(_agent(model).ainvoke({"messages": [("user", SAMPLE["question"])]})))


def _evaluator(model: BaseChatModel) -> Seen:
    row = EvaluationRow(id="1", answer=ANSWER, documents=DOCUMENTS)
    return _scored([_evaluators(model).invoke(row)])


def _evaluators(model: BaseChatModel) -> FaithfulnessEvaluator:
    return FaithfulnessEvaluator(model=model, verifier=LLMVerifier(model=model, claims_per_call=2))


def _scored(scores: Sequence[Any]) -> Seen:
    claims = [verdict for score in scores for verdict in score.result.claims]
    assert all((score.score is None) == (score.status == "failed") for score in scores)
    return Seen(claims, scores=[score.score for score in scores])


ENTRIES: Mapping[str, Callable[[BaseChatModel], Seen]] = {
    "runnable.invoke": _invoke,
    "runnable.ainvoke": _ainvoke,
    "runnable.batch": _batch,
    "runnable.abatch": _abatch,
    "runnable.stream": _stream,
    "runnable.astream": _astream,
    "per_claim": _per_claim,
    "single_pass.invoke": _single_pass,
    "single_pass in plain lines": _plain_single_pass,
    "single_pass.astream": _asingle_pass,
    "single_pass guard.transform": _single_pass_guard,
    "guard.invoke": _guard_invoke,
    "guard.ainvoke": _guard_ainvoke,
    "guard.transform": _guard_transform,
    "guard.atransform": _guard_atransform,
    "handler": _handler,
    "async handler": _async_handler,
    "middleware.invoke": _middleware,
    "middleware.ainvoke": _amiddleware,
    "evaluator": _evaluator,
}
"""Each checks the sample, and says what came of it."""
