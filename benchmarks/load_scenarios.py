"""What `load.py` and `soak.py` put on the package: answers, documents, a judge, ways to check."""

import asyncio
import random
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from typing_extensions import override
from watched import KINDS, SENTENCE, chain_of

from langchain_groundedness import (
    EmbeddedVerifier,
    GroundednessGuard,
    GroundednessResult,
    GroundednessRunnable,
    SentenceClaimExtractor,
)
from langchain_groundedness.testing.server import tag_in

__all__ = [
    "SCENARIOS",
    "Judge",
    "Scenario",
    "WrongError",
    "answer_of",
    "embedded",
    "judged",
    "prose",
    "sound",
    "tokens_of",
]

_LARGE_CHECKS = 2
_CLAIM = re.compile(r"^C(\d+): (.*)$", re.MULTILINE)
_GARBLED = "Everything looks \ufffd fine to \ufffd me."


class WrongError(Exception):
    """A check gave something else than it must."""


class Judge(BaseChatModel):
    """Supports what the evidence says word for word; its replies may fail, by a seeded draw."""

    latency: float = 0.0
    """Seconds before a reply that is awaited."""
    fails: float = 0.0
    """Share of the calls that raise, and share of those whose reply is prose."""

    @property
    @override
    def _llm_type(self) -> str:
        return "judge"

    @override
    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return self._result(messages)

    @override
    async def _agenerate(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> ChatResult:
        await asyncio.sleep(self.latency)
        return self._result(messages)

    def _result(self, messages: list[BaseMessage]) -> ChatResult:
        drawn = random.random()
        if drawn < self.fails:
            raise ConnectionError
        text = _GARBLED if drawn < 2 * self.fails else _reply(str(messages[-1].content))
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])


def _reply(prompt: str) -> str:
    place = prompt.rfind("<claims ")
    if place < 0:
        return "none"  # no sentence needs rewriting
    tag = tag_in(prompt)
    return "\n".join(
        f"{tag} C{number} {_judged(claim, prompt, place)}"
        for number, claim in _CLAIM.findall(prompt, place)
    )


def _judged(claim: str, prompt: str, before: int) -> str:
    found = prompt.find(f" {claim}\n", 0, before)
    if found < 0:
        return "unverifiable | nothing is said about it"
    return f"[{prompt[prompt.rfind(chr(10), 0, found) + 1 : found]}] supported"


def answer_of(number: int, *, claims: int = 2, sentences: int = 30) -> dict[str, Any]:
    """Make an answer, every second sentence of it wrong, and the documents for it."""
    said = [SENTENCE.format(place, number + place) for place in range(max(claims, sentences))]
    answer = [
        text if not place % 2 else SENTENCE.format(place, number + place + 1000)
        for place, text in enumerate(said[:claims])
    ]
    documents = [Document(" ".join(said[at : at + 10])) for at in range(0, len(said), 10)]
    return {"answer": " ".join(answer), "documents": documents, "question": str(number)}


def embedded(**options: Any) -> GroundednessRunnable:
    """Make the offline check."""
    return GroundednessRunnable(verifier=EmbeddedVerifier(), **options)


def judged(**options: Any) -> GroundednessRunnable:
    """Make the check by a chat model."""
    return GroundednessRunnable(model=Judge(**options))


def sound(result: GroundednessResult, claims: int, *, all_checked: bool = True) -> None:
    """Raise unless there is one verdict per claim, and none supports what is wrong."""
    if len(result.claims) != claims:
        msg = f"{len(result.claims)} claims where there are {claims}"
        raise WrongError(msg)
    for place, verdict in enumerate(result.claims):
        if verdict.verdict == "supported" and place % 2:
            msg = "a claim that the documents do not support is supported"
            raise WrongError(msg)
        if all_checked and verdict.verdict == "unchecked":
            msg = f"a claim is unchecked: {verdict.reason}"
            raise WrongError(msg)


Work = Callable[[int], Awaitable[None]]


@dataclass(frozen=True)
class Scenario:
    """A kind of load."""

    name: str
    what: str
    count: int
    """How many checks."""
    at_once: int
    begin: Callable[[], Work]
    """Builds what does the check of a number."""
    flat: bool = False
    """Whether there are enough checks to say that memory stays flat."""


def checks(
    make: Callable[[], GroundednessRunnable],
    claims: int = 2,
    sentences: int = 30,
    *,
    prepared: int = 0,
) -> Any:
    """Begin a scenario of `ainvoke`; so many of its answers are written before the clock runs."""

    def begin() -> Work:
        checker = make()
        rows = [answer_of(n, claims=claims, sentences=sentences) for n in range(prepared)]

        async def work(number: int) -> None:
            if number < len(rows):
                row = rows[number]
            else:
                row = answer_of(number, claims=claims, sentences=sentences)
            sound(await checker.ainvoke(row), claims)

        return work

    return begin


def burst(make: Callable[[], GroundednessRunnable]) -> Any:
    """Begin a scenario of 500 `ainvoke` at once."""
    return checks(make, 5, 70, prepared=500)


def streamed(make: Callable[[], GroundednessRunnable], sentences: int, pause: float = 0.0) -> Any:
    """Begin a scenario of guarded streams; every tenth is left in the middle."""

    def begin() -> Work:
        guard = GroundednessGuard(make())

        async def work(number: int) -> None:
            row = answer_of(number, sentences=sentences)
            pieces: Any = guard.atransform(tokens_of(row, pause))
            async with aclosing(pieces):
                async for text in pieces:
                    if number % 10 == 1 and text:
                        break

        return work

    return begin


async def tokens_of(row: dict[str, Any], pause: float) -> AsyncIterator[dict[str, Any]]:
    """Write an answer word by word, documents first."""
    yield {"documents": row["documents"]}
    for place, word in enumerate(row["answer"].split(" ")):
        await asyncio.sleep(pause)
        yield {"answer": f" {word}" if place else word}


def watched(kind: str, make: Callable[[], GroundednessRunnable]) -> Any:
    """Begin a scenario of chains that a handler watches; every tenth fails in the middle."""

    def begin() -> Work:
        handler = KINDS[kind](make(), max_results=100, max_events=100)

        async def work(number: int) -> None:
            row = answer_of(number)
            chain = chain_of(row["answer"], row["documents"], words=5, fails=number % 10 == 1)
            try:
                async for _ in chain.astream(str(number), {"callbacks": [handler]}):
                    pass
            except ConnectionError:
                pass

        work.handler = handler  # type: ignore[attr-defined]
        return work

    return begin


def one_document(text: Callable[[int], str], make: Callable[[], GroundednessRunnable]) -> Any:
    """Begin a scenario of a document of ten megabytes."""

    def begin() -> Work:
        checker, whole = make(), text(10_000_000)

        async def work(number: int) -> None:
            said = SENTENCE.format(number, number)
            documents = [Document(whole), Document(said)]
            result = await checker.ainvoke({"answer": said, "documents": documents})
            sound(result, 1)

        return work

    return begin


def prose(size: int) -> str:
    """Write text of the shape that documents have: paragraphs, headings, lists, tables."""
    return "\n\n".join(_until(size, _paragraphs(random.Random(size))))


def one_line(size: int) -> str:
    """Write the same without any line end."""
    return prose(size).replace("\n", " ")


def no_spaces(size: int) -> str:
    """Write letters and digits without any space."""
    return "".join(random.Random(size).choices("abcdefghijklmnopqrstuvwxyz0123456789", k=size))


def dots(size: int) -> str:
    """Write nothing but sentences of a single mark."""
    return ". " * (size // 2)


def _until(size: int, parts: Iterator[str]) -> Iterator[str]:
    while size > 0:
        part = next(parts)
        size -= len(part) + 2
        yield part


_ADJECTIVES = ["northern", "southern", "old", "new", "central", "public", "private", "small"]
_NOUNS = ["company", "region", "factory", "museum", "library", "hospital", "harbour", "airport"]
_VERBS = ["opened", "repaired", "extended", "painted", "sold", "bought", "lost", "financed"]


def _paragraphs(chosen: random.Random) -> Iterator[str]:
    def sentence() -> str:
        pick, year = chosen.choice, chosen.randint(1900, 2024)
        name = "".join(chosen.choices("bcdfglmnprst", k=2)) + pick(
            ["aven", "orth", "ilby", "uster"]
        )
        return (
            f"In {year} the {pick(_ADJECTIVES)} {pick(_NOUNS)} of "
            f"{name.title()} {pick(_VERBS)} its {pick(_NOUNS)}, which had cost "
            f"${chosen.randint(2, 900)}.{chosen.randint(0, 9)} million "
            f"(see p. {chosen.randint(2, 99)})."
        )

    while True:
        yield f"## {chosen.choice(_ADJECTIVES).title()} {chosen.choice(_NOUNS)}s"
        for _ in range(4):
            yield " ".join(sentence() for _ in range(chosen.randint(2, 9)))
        yield "\n".join(f"- {sentence()}" for _ in range(4))
        yield "| year | value |\n|---|---|\n" + "\n".join(
            f"| {chosen.randint(1900, 2024)} | {chosen.randint(2, 900)} |" for _ in range(5)
        )


def many_documents(make: Callable[[], GroundednessRunnable]) -> Any:
    """Begin a scenario of an answer with ten thousand documents."""

    def begin() -> Work:
        checker = make()
        rows = [answer_of(n, claims=10, sentences=100_000) for n in range(_LARGE_CHECKS)]

        async def work(number: int) -> None:
            sound(await checker.ainvoke(rows[number]), 10)

        return work

    return begin


def long_answer(make: Callable[[], GroundednessRunnable], *, stream: bool = False) -> Any:
    """Begin a scenario of an answer with two thousand claims."""

    def begin() -> Work:
        checker = make()
        rows = [answer_of(n, claims=2000, sentences=2000) for n in range(_LARGE_CHECKS)]

        async def work(number: int) -> None:
            row = rows[number]
            if not stream:
                sound(await checker.ainvoke(row), 2000)
                return
            row["documents"] = row["documents"][:10]  # each sentence is judged on all of them
            told = 0
            async for chunk in checker.atransform(tokens_of(row, 0.0)):
                told += len(chunk.claims)
            if told < 2000:  # noqa: PLR2004  (as above)
                msg = f"{told} verdicts streamed"
                raise WrongError(msg)

        return work

    return begin


def _while_written() -> GroundednessRunnable:
    return GroundednessRunnable(model=Judge(), extractor=SentenceClaimExtractor())


def _slowly_judged() -> GroundednessRunnable:
    return judged(latency=0.2)


_ALL = (
    Scenario("embedded", "checks, embedded verifier", 10_000, 8, checks(embedded, 2, 5), flat=True),
    Scenario("model", "checks, scripted chat model", 10_000, 8, checks(judged), flat=True),
    Scenario("stream", "guarded streams, embedded", 10_000, 8, streamed(embedded, 5), flat=True),
    Scenario("handler", "chains, sync handler", 10_000, 8, watched("sync", judged), flat=True),
    Scenario("async_handler", "chains, async one", 10_000, 8, watched("async", judged), flat=True),
    Scenario("500_embedded", "at once, embedded", 500, 500, checks(embedded, 5, 70, prepared=500)),
    Scenario("500_model", "at once, a model of 0.2 s", 500, 500, burst(_slowly_judged)),
    Scenario("64_streams", "at once, 25 tokens/s", 64, 64, streamed(embedded, 30, 0.04)),
    Scenario("64_streams_model", "the same", 64, 64, streamed(_slowly_judged, 30, 0.04)),
    Scenario(
        "10mb_prose", "10 MB of prose, embedded", _LARGE_CHECKS, 1, one_document(prose, embedded)
    ),
    Scenario("10mb_line", "in one line", _LARGE_CHECKS, 1, one_document(one_line, embedded)),
    Scenario("10mb_word", "without spaces", _LARGE_CHECKS, 1, one_document(no_spaces, embedded)),
    Scenario("10mb_dots", "of full stops", _LARGE_CHECKS, 1, one_document(dots, embedded)),
    Scenario(
        "10mb_model", "10 MB of prose, chat model", _LARGE_CHECKS, 1, one_document(prose, judged)
    ),
    Scenario("10000_documents", "documents, embedded", _LARGE_CHECKS, 1, many_documents(embedded)),
    Scenario(
        "10000_documents_model", "documents, chat model", _LARGE_CHECKS, 1, many_documents(judged)
    ),
    Scenario("2000_claims", "claims, embedded", _LARGE_CHECKS, 1, long_answer(embedded)),
    Scenario("2000_claims_model", "claims, chat model", _LARGE_CHECKS, 1, long_answer(judged)),
    Scenario(
        "2000_claims_live",
        "while written",
        _LARGE_CHECKS,
        1,
        long_answer(_while_written, stream=True),
    ),
)
SCENARIOS = {each.name: each for each in _ALL}
