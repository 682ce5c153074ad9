"""The stream of the live page: what is sent, what is refused, and what ends a run."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import AddableDict, RunnableLambda
from starlette.testclient import TestClient

from langchain_groundedness import ClaimVerdict, GroundednessGuard
from langchain_groundedness.display.words import evidence_words
from langchain_groundedness.review.live import LONGEST_QUESTION, MOST_AT_ONCE, make_live_app

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "live.md"
DOCUMENTS = [Document("Revenue was $2.1B in Q3.", metadata={"source": "report.md"})]
ANSWER = ("Revenue was ", "$2.4B in Q3. ", "It won an award in ", "2024.")
ABOUT = {"documents": 1, "folder": "f", "model": None, "verifier": "embedded", "question": ""}
QUESTION = "What was revenue?"
Frames = list[tuple[str, Any]]


async def app_of(write: Callable[[str], AsyncIterator[Any]]) -> Any:
    guard = GroundednessGuard(on_contradicted="correct", release="immediate")
    chain = RunnableLambda(write).pipe(guard)
    describe = "told: {}".format
    return await asyncio.to_thread(
        make_live_app, chain, about=ABOUT, describe=describe
    )  # reads files


async def app_with(*pieces: str, documents: Any = DOCUMENTS) -> Any:
    async def write(question: str) -> AsyncIterator[Any]:
        yield AddableDict(question=question, documents=documents)
        for piece in pieces:
            yield AddableDict(answer=piece)

    return await app_of(write)


async def sent(app: Any, body: str, *, gone: asyncio.Event | None = None, **headers: str) -> Any:
    """Ask as a browser does through uvicorn: its status, and what it got until it went away."""
    messages: list[Any] = []
    request = [{"type": "http.request", "body": body.encode()}]

    async def receive() -> Any:
        if request:
            return request.pop()
        await (gone or asyncio.Event()).wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        messages.append(message)

    named = {"host": "localhost:8322", **{k.replace("_", "-"): v for k, v in headers.items()}}
    await app(
        {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": "/ask",
            "raw_path": b"/ask",
            "root_path": "",
            "query_string": b"",
            "headers": [(k.encode(), v.encode()) for k, v in named.items()],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 8322),
        },
        receive,
        send,
    )
    text = b"".join(message.get("body", b"") for message in messages).decode()
    return messages[0]["status"], text


def frames_in(text: str) -> Frames:
    found = re.findall(r"^event: (.+)\ndata: (.+)$", text, re.MULTILINE)
    return [(name, json.loads(data)) for name, data in found]


async def frames(app: Any, question: str = QUESTION) -> Frames:
    status, text = await sent(app, question)
    assert status == 200
    return frames_in(text)


def keys(value: Any) -> Any:
    """The shape of a JSON value: its keys, and those of what it holds."""
    if isinstance(value, dict):
        return {key: keys(each) for key, each in value.items()}
    return keys(value[0]) if isinstance(value, list) and value else None


def test_the_page_has_a_field_for_the_question() -> None:
    app = make_live_app(RunnableLambda(str), about=ABOUT, describe=str)
    page = TestClient(app, base_url="http://localhost").get("/")
    assert page.status_code == 200
    assert '<textarea id="question"' in page.text
    assert "Groundedness live" in page.text


async def test_the_events_are_those_that_the_guide_documents() -> None:
    documented = frames_in(GUIDE.read_text(encoding="utf-8"))
    found = await frames(await app_with(*ANSWER))
    assert {name for name, _ in documented} == {name for name, _ in found}
    for name, data in documented:
        assert keys(data) in [keys(each) for kind, each in found if kind == name]


async def test_what_is_known_of_the_quotes_comes_before_each_verdict() -> None:
    found = await frames(await app_with(*ANSWER))
    verdicts = [place for place, (name, _) in enumerate(found) if name == "groundedness.verdict"]
    for place in verdicts:
        verdict = ClaimVerdict.model_validate(found[place][1])
        words = {"claim_id": verdict.claim.id, "evidence": evidence_words(verdict)}
        assert found[place - 1] == ("words", words)
    assert len(verdicts) == 2


async def test_text_comes_first_then_claims_verdicts_and_what_is_taken_back() -> None:
    found = await frames(await app_with(*ANSWER))
    answer = "".join(data for name, data in found if name == "text")
    assert answer == "".join(ANSWER)
    by_name = {name: [data for kind, data in found if kind == name] for name, _ in found}
    claims = {claim["id"]: claim for claim in by_name["groundedness.claim"]}
    assert [claim["text"] for claim in claims.values()] == [
        answer[claim["start"] : claim["end"]] for claim in claims.values()
    ]
    verdicts = {v["claim"]["text"]: v["verdict"] for v in by_name["groundedness.verdict"]}
    assert verdicts == {
        "Revenue was $2.4B in Q3.": "contradicted",
        "It won an award in 2024.": "unverifiable",
    }
    for edit in by_name["groundedness.retract"]:
        assert answer[edit["start"] : edit["end"]] == edit["original"]
    assert {edit["replacement"] for edit in by_name["groundedness.retract"]} == {
        "[CORRECTED: $2.1B]",
        "",
    }
    assert [name for name, _ in found][-2:] == ["groundedness.decision", "end"]


async def test_hidden_characters_are_named_before_the_text_that_has_them() -> None:
    evil, shown = "\u202e", "[U+202E RIGHT-TO-LEFT OVERRIDE]"
    found = await frames(await app_with("Revenue ", evil, "was $2.1B in Q3.", "👩", "\u200d", "💻"))
    names = [name for name, _ in found]
    assert dict(found)["hidden"] == {evil: shown}  # and not the joiner, which has an effect
    assert names.index("hidden") < next(
        place for place, (name, data) in enumerate(found) if name == "text" and evil in data
    )
    assert "".join(data for name, data in found if name == "text").endswith("👩\u200d💻")


async def test_hidden_characters_of_a_document_are_named_before_its_quote() -> None:
    documents = [Document("Revenue was\u200b $2.1B in Q3.", metadata={"source": "a\u2066.md"})]
    found = await frames(await app_with("Revenue was $2.1B in Q3.", documents=documents))
    named = {char for name, data in found if name == "hidden" for char in data}
    assert named == {"\u200b", "\u2066"}


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ("  ", "The question is empty."),
        ("a" * (LONGEST_QUESTION + 1), "The question is longer than 2,000 characters."),
    ],
)
async def test_a_question_that_cannot_be_asked_is_refused(question: str, message: str) -> None:
    assert await frames(await app_with(), question) == [("problem", {"message": message})]


async def test_what_goes_wrong_is_told_in_one_event() -> None:
    async def write(_: str) -> AsyncIterator[Any]:
        yield AddableDict(answer="Revenue ")
        msg = "the model\u202e is away"
        raise ConnectionError(msg)

    found = await frames(await app_of(write))
    message = "told: the model[U+202E RIGHT-TO-LEFT OVERRIDE] is away"
    assert found[-1] == ("problem", {"message": message})


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://["},
        {"origin": "null"},
        {"origin": "http://elsewhere.example"},
        {"sec_fetch_site": "cross-site"},
    ],
)
async def test_another_site_cannot_ask(headers: dict[str, Any]) -> None:
    status, text = await sent(await app_with(*ANSWER), QUESTION, **headers)
    assert (status, "event:" in text) == (403, False)


async def test_another_host_name_is_refused() -> None:
    status, text = await sent(await app_with(*ANSWER), QUESTION, host="evil.example")
    assert (status, text) == (400, "This host name is not allowed. Open the page at localhost.")


class Hanging:
    """An answer that does not go on after its first words."""

    def __init__(self) -> None:
        self.begun = asyncio.Semaphore(0)
        self.ended = asyncio.Semaphore(0)

    async def write(self, _: str) -> AsyncIterator[Any]:
        try:
            yield AddableDict(answer="Revenue was ")
            self.begun.release()
            await asyncio.Event().wait()
        finally:
            self.ended.release()


async def test_a_reader_who_goes_away_ends_the_run_and_makes_room() -> None:
    hanging, gone = Hanging(), asyncio.Event()
    app = await app_of(hanging.write)
    runs = [asyncio.create_task(sent(app, QUESTION, gone=gone)) for _ in range(MOST_AT_ONCE)]
    for _ in runs:
        await hanging.begun.acquire()
    refused = await frames(app)
    assert refused == [
        ("problem", {"message": "4 questions are being answered. Ask again in a moment."})
    ]
    gone.set()
    for _, text in await asyncio.gather(*runs):
        assert "event: end" not in text
    for _ in runs:
        await hanging.ended.acquire()
    after = asyncio.create_task(sent(app, QUESTION, gone=(left := asyncio.Event())))
    await hanging.begun.acquire()
    left.set()
    await after
