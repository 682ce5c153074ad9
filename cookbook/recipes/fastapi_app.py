"""Sends the events of a checked answer to a front end of your own, with FastAPI.

`pip install langchain-groundedness fastapi uvicorn`, then `uvicorn fastapi_app:app` and
`curl -N --data 'What was revenue in Q3?' http://127.0.0.1:8000/ask`.
"""

import json
from contextlib import aclosing

from fastapi import FastAPI, Request
from fastapi.responses import StreamingResponse

from langchain_groundedness import GroundednessGuard
from langchain_groundedness.demo import build_chain

guard = GroundednessGuard(on_contradicted="correct", release="immediate")
chain = build_chain().pipe(guard)  # or your own chain
app = FastAPI()


@app.post("/ask")
async def ask(request: Request) -> StreamingResponse:
    question = (await request.body()).decode()
    return StreamingResponse(frames(question), media_type="text/event-stream")


async def frames(question: str):
    async with aclosing(chain.astream_events(question, version="v2")) as events:
        async for event in events:
            if event["event"] == "on_custom_event":
                yield frame(event["name"], event["data"])
            elif event["event"] == "on_chain_stream" and not event["parent_ids"]:
                yield frame("text", event["data"]["chunk"])
    yield frame("end", {})


def frame(name: str, data: object) -> str:
    return f"event: {name}\ndata: {json.dumps(data)}\n\n"
