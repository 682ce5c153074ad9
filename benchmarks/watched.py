"""Chains that callback handlers watch, and how much memory stays behind: for `streaming.py`."""

import asyncio
import gc
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, closing, suppress
from pathlib import Path
from resource import getpagesize
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableGenerator, RunnableLambda
from typing_extensions import override

from langchain_groundedness import (
    AsyncGroundednessCallbackHandler,
    Citation,
    ClaimVerdict,
    GroundednessCallbackHandler,
    GroundednessRunnable,
    VerificationTask,
)

__all__ = ["GROWTH_TARGET_KIB", "KINDS", "SENTENCE", "chain_of", "measure_memory", "watcher"]

GROWTH_TARGET_KIB = 1.0
SENTENCE = "The reading of station {} was {} millimetres on the first day of the month."
KINDS: dict[str, Any] = {
    "sync": GroundednessCallbackHandler,
    "async": AsyncGroundednessCallbackHandler,
}


class Archive(BaseRetriever):
    """Finds the documents it has."""

    documents: list[Document]

    @override
    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return self.documents

    @override
    async def _aget_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return self.documents


class Reporter(BaseChatModel):
    """Writes an answer at a steady pace."""

    answer: str
    words: int = 1
    """How many make a token."""
    pause: float = 0.0
    """Seconds before a token, if it is awaited."""
    fails: bool = False
    """Whether the connection is lost at the end."""

    @property
    @override
    def _llm_type(self) -> str:
        return "reporter"

    @override
    def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
        raise NotImplementedError

    def tokens(self) -> Iterator[ChatGenerationChunk]:
        """Cut up the answer."""
        words = self.answer.split(" ")
        for start in range(0, len(words), self.words):
            token = " ".join(words[start : start + self.words])
            yield ChatGenerationChunk(
                message=AIMessageChunk(token if not start else f" {token}", id="answer")
            )
        if self.fails:
            raise ConnectionError

    @override
    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        for token in self.tokens():
            if run_manager:
                run_manager.on_llm_new_token(token.text, chunk=token)
            yield token

    @override
    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: Any = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        for token in self.tokens():
            await asyncio.sleep(self.pause)
            if run_manager:
                await run_manager.on_llm_new_token(token.text, chunk=token)
            yield token


def chain_of(answer: str, documents: list[Document], **pace: Any) -> Runnable[str, str]:
    """Build a chain that knows nothing of checks."""
    archive = Archive(documents=documents)
    model = Reporter(answer=answer, **pace)

    def write(questions: Iterator[str]) -> Iterator[str]:
        for question in questions:
            archive.invoke(question)
            for token in model.stream(question):
                yield token.text

    async def awrite(questions: AsyncIterator[str]) -> AsyncIterator[str]:
        async for question in questions:
            await archive.ainvoke(question)
            async with aclosing(model.astream(question)) as tokens:  # type: ignore[type-var]
                async for token in tokens:
                    yield token.text

    return RunnableGenerator(write, awrite)


def watcher(kind: type[Any], **options: Any) -> Any:
    """Make a handler with a judge that replies at once."""

    def judge(task: VerificationTask) -> list[ClaimVerdict]:
        quote = Citation.from_document(task.documents, 0, 0, 70)
        return [
            ClaimVerdict(claim=claim, verdict="supported", citations=(quote,))
            for claim in task.claims
        ]

    return kind(GroundednessRunnable(verifier=RunnableLambda(judge)), **options)


def measure_memory(name: str, runs: int) -> bool:
    """Print how the memory of the process grows over many watched runs; say if it stays flat."""
    handler = watcher(KINDS[name], max_results=100, max_events=100)
    sizes = []
    warm_up = runs // 5
    for numbers in (range(warm_up), range(warm_up, runs)):
        if name == "async":
            asyncio.run(_awatched(numbers, handler))
        else:
            _watched(numbers, handler)
        gc.collect()
        sizes.append(_resident_kib())
    growth = (sizes[1] - sizes[0]) / (runs - warm_up)
    held = handler.open_runs
    cells = (
        f"{runs:6} | {sizes[0] / 1024:8.1f} | {sizes[1] / 1024:8.1f} | {growth:12.3f} | {held:4}"
    )
    print(f"| {name:7} | {cells} | {threading.active_count():7} |")
    handler.close()
    return growth < GROWTH_TARGET_KIB and not held


def _watched(numbers: range, handler: Any) -> None:
    for number in numbers:
        chain = _chain(number)
        pieces: Any = chain.stream(str(number), {"callbacks": [handler]})
        with suppress(ConnectionError), closing(pieces):
            for place, _ in enumerate(pieces):
                if number % 10 == 2 and place == 4:  # noqa: PLR2004  (in the second sentence)
                    break


async def _awatched(numbers: range, handler: Any) -> None:
    left = iter(numbers)

    async def work() -> None:
        for number in left:
            chain = _chain(number)
            pieces: Any = chain.astream(str(number), {"callbacks": [handler]})
            with suppress(ConnectionError):
                async with aclosing(pieces):
                    place = 0
                    async for _ in pieces:
                        place += 1
                        if number % 10 == 2 and place == 5:  # noqa: PLR2004  (as above)
                            break

    async with asyncio.TaskGroup() as group:
        for _ in range(8):
            group.create_task(work())


def _chain(number: int) -> Runnable[str, str]:
    said = [SENTENCE.format(station, number + station) for station in range(30)]
    documents = [Document(" ".join(said[start : start + 10])) for start in (0, 10, 20)]
    return chain_of(" ".join(said[:2]), documents, words=5, fails=number % 10 == 1)


def _resident_kib() -> float:
    """Read how much memory the process has; Linux says it here."""
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * getpagesize() / 1024
