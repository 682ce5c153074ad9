"""A page that answers questions, and marks each claim of an answer as soon as it is checked.

Its own module because it is another web application than the review page: the command `serve` has
it alone, without an audit log.
"""

import json
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import aclosing
from typing import Any, TypeAlias

from langchain_core.runnables import Runnable
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from langchain_groundedness.display.hidden_characters import hidden_characters_in, show_hidden
from langchain_groundedness.display.marked_text import SIGNS
from langchain_groundedness.display.templates import environment
from langchain_groundedness.display.words import evidence_words
from langchain_groundedness.review.server import POLICY, RequestFilter, filtered_app, from_our_page
from langchain_groundedness.types import ClaimVerdict

__all__ = ["LONGEST_QUESTION", "MOST_AT_ONCE", "make_live_app"]

_Events: TypeAlias = AsyncGenerator[tuple[str, Any]]
_POLICY = f"{POLICY}; connect-src 'self'"

LONGEST_QUESTION = 2_000
MOST_AT_ONCE = 4
"""Questions that are answered at the same time."""


def make_live_app(
    chain: Runnable[str, str],
    *,
    about: Mapping[str, object],
    describe: Callable[[Exception], str],
) -> RequestFilter:
    """Make the page as an ASGI application for browsers on this machine.

    Args:
        chain: Ends with a `GroundednessGuard` that releases text at once.
        about: What the page says of documents and models.
        describe: Says in one line what went wrong.
    """
    questions = _Questions(chain, describe)

    def page(_: Request) -> Response:
        shown = {"root": "", "notice": "", "undo_seconds": 0, "longest": LONGEST_QUESTION}
        text = _templates.get_template("live.html").render(
            shown, **about, product="Groundedness live"
        )
        return HTMLResponse(text, headers={"content-security-policy": _POLICY})

    routes = [Route("/", page), Route("/ask", questions.ask, methods=["POST"])]
    hosts = ("127.0.0.1", "::1", "localhost")
    return filtered_app(routes, hosts=hosts, any_address=False, hint="Open the page at localhost.")


class _Questions:
    """Answers questions as streams of server-sent events."""

    def __init__(self, chain: Runnable[str, str], describe: Callable[[Exception], str]) -> None:
        self._chain = chain
        self._describe = describe
        self._open = 0

    async def ask(self, request: Request) -> Response:
        """Answer the question that is the body of a request."""
        if not from_our_page(request.headers):
            return PlainTextResponse("This question was not sent from this page.", 403)
        question = (await request.body()).decode(errors="replace").strip()
        return StreamingResponse(self._frames(question), media_type="text/event-stream")

    async def _frames(self, question: str) -> AsyncGenerator[str]:
        problem = self._refusal(question)
        if problem is not None:
            yield _frame("problem", {"message": problem})
            return
        self._open += 1
        try:
            async with aclosing(_named(_events(self._chain, question))) as events:
                async for name, data in events:
                    yield _frame(name, data)
        except Exception as error:  # noqa: BLE001  (the page shows one line)
            yield _frame("problem", {"message": show_hidden(self._describe(error))})
        finally:
            self._open -= 1

    def _refusal(self, question: str) -> str | None:
        if not question:
            return "The question is empty."
        if len(question) > LONGEST_QUESTION:
            return f"The question is longer than {LONGEST_QUESTION:,} characters."
        if self._open >= MOST_AT_ONCE:
            return f"{MOST_AT_ONCE} questions are being answered. Ask again in a moment."
        return None


async def _events(chain: Runnable[str, str], question: str) -> _Events:
    """Yield the guard's text, and its events."""
    async with aclosing(chain.astream_events(question, version="v2")) as events:  # type: ignore[type-var]
        async for event in events:
            if event["event"] == "on_custom_event" and event["name"].startswith("groundedness."):
                if event["name"] == "groundedness.verdict":
                    found = ClaimVerdict.model_validate(event["data"])
                    yield "words", {"claim_id": found.claim.id, "evidence": evidence_words(found)}
                yield event["name"], event["data"]
            elif event["event"] == "on_chain_stream" and not event["parent_ids"]:
                yield "text", event["data"]["chunk"]
    yield "end", {}


async def _named(events: _Events) -> _Events:
    """Yield, before a text with hidden characters, what to show in their place."""
    known: dict[str, str] = {}
    text = before = ""
    async with aclosing(events):
        async for name, data in events:
            text += data if name == "text" else ""
            if name == "text" and hidden_characters_in(text[-1:]):
                continue  # the next character decides whether it can be seen
            seen = "\n".join((before + text, *(_texts(data) if name != "text" else ())))
            if not (new := hidden_characters_in(seen)).items() <= known.items():
                known |= new
                yield "hidden", new
            if text:
                yield "text", text
                before, text = text[-1], ""
            if name != "text":
                yield name, data


def _texts(data: Any) -> Iterator[str]:
    if isinstance(data, str):
        yield data
    elif isinstance(data, dict | list):
        for each in data.values() if isinstance(data, dict) else data:
            yield from _texts(each)


def _frame(name: str, data: Any) -> str:
    return f"event: {name}\ndata: {json.dumps(data)}\n\n"


_templates = environment("langchain_groundedness.review")
_templates.filters["sign"] = SIGNS.__getitem__
