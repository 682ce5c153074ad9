"""The handlers keep the contract of callback handlers."""

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import Runnable, RunnableGenerator, RunnableLambda
from langchain_core.runnables.utils import AddableDict

from langchain_groundedness import (
    AsyncGroundednessCallbackHandler,
    GroundednessCallbackHandler,
    GroundednessResult,
    GroundednessRunnable,
)
from langchain_groundedness.testing import CallbackHandlerContract, ScriptedVerifier

CHECKER = GroundednessRunnable(verifier=ScriptedVerifier(lambda _: "supported"))


def _written(given: Any) -> Iterator[AddableDict]:
    yield AddableDict(documents=[f"About {given['input']}."])
    for word in f"The capital of {given['input']} is big.".split(" "):
        yield AddableDict(answer=f"{word} ")


def write(pieces: Iterator[Any]) -> Iterator[AddableDict]:
    for piece in pieces:
        yield from _written(piece)


async def awrite(pieces: AsyncIterator[Any]) -> AsyncIterator[AddableDict]:
    async for piece in pieces:
        for chunk in _written(piece):
            yield chunk


class TestGroundednessCallbackHandler(CallbackHandlerContract):
    kind: Any = GroundednessCallbackHandler

    def handler(self) -> BaseCallbackHandler:
        handler: BaseCallbackHandler = self.kind(checker=CHECKER)
        return handler

    def chain(self) -> Runnable[Any, Any]:
        return RunnableLambda(dict) | RunnableGenerator(write, awrite)

    def inputs(self) -> Sequence[Any]:
        return [{"input": "Italy"}, {"input": "France"}, {"input": "Peru"}]

    def broken(self) -> BaseCallbackHandler:
        def fail(_: Any) -> Any:
            raise RuntimeError

        handler: BaseCallbackHandler = self.kind(
            checker=GroundednessRunnable(verifier=RunnableLambda(fail))
        )
        return handler

    def found(self, handler: Any) -> Sequence[GroundednessResult]:
        return [result.answer for result in handler.results.values()]

    def kept(self, handler: Any) -> int:
        return int(handler.open_runs)


class TestAsyncGroundednessCallbackHandler(TestGroundednessCallbackHandler):
    kind = AsyncGroundednessCallbackHandler
