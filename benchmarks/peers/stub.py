"""Local OpenAI-compatible stub: `python stub.py --samples S.json [--port 0] [--call-ms 200]`.

Serves /v1/chat/completions (plain and streamed), /v1/responses and /v1/embeddings on
127.0.0.1, sleeps call-ms + prompt-token-ms * prompt tokens + output-token-ms * output
tokens per call, and answers from the gold labels in the samples file, in the shape that
the request asks for (response_format, tool schema or prompt wording). Also:
GET /__stats  counters since the last reset    POST /__reset  zero them
POST /__config {"call_ms": .., "samples": path, "fail_every": n, "garble_every": n}
  change settings: every n-th call answers HTTP 500 / half of its JSON

To serve another library, add a handler: a function (req) -> str | dict | None below,
listed in HANDLERS. The first one that returns something wins. `req` is a Request.
Standard library only. A request that no handler knows gets HTTP 422 and is counted in
`unmatched`, so a peer whose prompts changed fails loudly and not with made-up numbers.
"""

import argparse
import asyncio
import json
import math
import re
import time
from pathlib import Path


def count_tokens(text):
    """Estimate tokens without a vocabulary (README.md gives the measured error).

    Short words 1, longer ones 1 per ~7 letters, numbers 1 per 3 digits, each run of punctuation 1.
    """
    n = 0
    for w in re.findall(r"[A-Za-z]+|\d+|[^\sA-Za-z\d]+|\n+", text):
        if w[0].isdigit():
            n += math.ceil(len(w) / 3)
        elif w[0].isalpha():
            n += 1 if len(w) <= 9 else math.ceil(len(w) / 7)
        else:
            n += math.ceil(len(w) / 3)
    return n


class Request:
    """What a handler sees: the texts, the schema's property names, the sample it is about."""

    def __init__(self, body, samples):
        self.body = body
        msgs = body.get("messages") or body.get("input") or []
        if isinstance(msgs, str):
            msgs = [{"role": "user", "content": msgs}]
        parts = []
        for m in msgs:
            c = m.get("content") or ""
            if isinstance(c, list):
                c = "\n".join(p.get("text", "") for p in c if isinstance(p, dict))
            parts.append((m.get("role", "user"), c))
        self.text = "\n".join(t for _, t in parts)
        self.system = "\n".join(t for r, t in parts if r in ("system", "developer"))
        self.user = "\n".join(t for r, t in parts if r == "user")
        rf = body.get("response_format") or (body.get("text") or {}).get("format") or {}
        self.tools = body.get("tools") or []
        schema = (rf.get("json_schema") or {}).get("schema") or rf.get("schema") or {}
        if not schema and self.tools:
            fn = self.tools[0].get("function") or self.tools[0]
            schema = fn.get("parameters") or {}
        self.schema = schema
        self.props = set((schema.get("properties") or {}).keys())
        # schemas are billed as prompt tokens too
        self.extra = (json.dumps(rf) if rf else "") + (json.dumps(self.tools) if self.tools else "")
        # few-shot examples never name a sample's entity, so the entity finds the sample
        self.sample = next((s for s in samples if s["entity"] in self.text), None)
        self.claims = []
        if self.sample:
            tail = self.text.split("STATEMENT:")[-1]
            self.claims = [c for c in self.sample["claims"] if c["text"] in tail]


def why(c):
    if c["label"] == "supported":
        return "The context states it."
    if c["label"] == "contradicted":
        return f"The context says otherwise: {c['evidence']}"
    return f"Nothing in the context backs it: {c['text']}"


def ok(c):
    return int(c["label"] == "supported")


def haystack(r):
    if '["statements", "statement_scores"]' in r.text:
        return {
            "statements": [c["text"] for c in r.claims],
            "statement_scores": [ok(c) for c in r.claims],
        }
    if '["relevant_statements"]' in r.text and r.sample:
        return {"relevant_statements": [c["evidence"] for c in r.sample["claims"] if c["evidence"]]}


def ragas(r):
    if "Fix the output string and return it" in r.text:  # ragas asks a model to repair bad JSON
        out = ragas_answer(r)
        return out and {"text": json.dumps(out)}
    return ragas_answer(r)


def ragas_answer(r):
    if "Break down each sentence into one or more fully understandable statements" in r.text:
        return {"statements": [c["text"] for c in r.claims]}
    if "judge the faithfulness of a series of statements" in r.text:
        return {
            "statements": [
                {"statement": c["text"], "reason": why(c), "verdict": ok(c)} for c in r.claims
            ]
        }


def deepeval(r):
    if r.props == {"truths"}:
        first = [re.split(r"(?<=\.)\s", d)[0] for d in r.sample["contexts"]]
        return {
            "truths": sorted({c["evidence"] for c in r.sample["claims"] if c["evidence"]}) + first
        }
    if r.props == {"claims"} and "please extract a comprehensive list of FACTUAL" in r.text:
        return {"claims": [c["text"] for c in r.claims]}
    if r.props == {"verdicts"} and "whether EACH claim contradicts any facts" in r.text:
        word = {"supported": "yes", "contradicted": "no", "unsupported": "borderline"}
        return {
            "verdicts": [
                {"verdict": word[c["label"]], "reason": None if ok(c) else why(c)} for c in r.claims
            ]
        }
    if r.props == {"reason"}:
        return {"reason": "The score reflects the contradictions listed for the actual output."}


def trulens(r):
    if "IMPORTANT STATEMENTS:" in r.user:
        return repr([c["text"] for c in r.claims])
    if "INFORMATION OVERLAP classifier" in r.system and r.claims:
        c = r.claims[0]
        return {
            "criteria": c["text"],
            "supporting_evidence": c["evidence"] or "NOTHING FOUND",
            "score": 3 * ok(c),
        }


def openevals(r):
    if "assessing how well LLM output aligns with" in r.text and "score" in r.props:
        good = all(map(ok, r.claims))
        return {
            "reasoning": f"{' '.join(why(c) for c in r.claims)} Thus, the score should be: {good}.",
            "score": good,
        }


def nemo(r):
    if '"evidence":' in r.text and '"hypothesis":' in r.text:
        return "yes" if all(map(ok, r.claims)) else "no"


def groundedness_pkg(r):
    if '"unsupported": ["..."], "answer"' in r.text:
        bad = [c["text"] for c in r.claims if not ok(c)]
        return {
            "unsupported": bad,
            "answer": " ".join(c["text"] for c in r.claims if ok(c)) or "I do not know.",
        }


def lettucedetect(r):
    if "hallucination_list" in r.text or "hallucination_list" in r.props:
        return {"hallucination_list": [c["text"] for c in r.claims if not ok(c)]}


def ours(r):
    if "You prepare an answer for fact checking." in r.system:
        # Each sentence of a sample is one statement that can be understood alone.
        return {"lines": []} if "lines" in r.props else "none"
    if "You check an answer against evidence" in r.system or "You check claims" in r.system:
        lines, tag = list(our_verdicts(r)), re.findall(r"^TAG: (\w+)$", r.user, re.MULTILINE)[-1]
        if "lines" in r.props:
            return {"tag": tag, "lines": lines}
        return "\n".join(f"{tag} {line}" for line in lines)
    if "Is the statement supported by the evidence?" in r.user and r.claims:
        word = {"supported": "yes", "contradicted": "no", "unsupported": "unknown"}
        return word[r.claims[0]["label"]]


def our_verdicts(r):
    """One line per claim or sentence shown, with the number of the evidence sentence if shown."""
    numbered = re.findall(r"^(\d+) (.*)$", r.user, re.MULTILINE)
    evidence = {text: number for number, text in numbered}
    shown = re.search(r"<(claims|answer) (\w+)>\n(.*)\n</\1 \2>", r.user, re.DOTALL)
    form = "[{}]" if shown[1] == "claims" else "{}"  # as each prompt asks for it
    gold = {c["text"]: c for c in r.sample["claims"]}
    for number, text in re.findall(r"^([CS]\d+): (.*)$", shown[3], re.MULTILINE):
        c = gold[text]
        place = evidence.get(c["evidence"])
        named = form.format(place)
        if place is None:
            yield f"{number} unverifiable | The evidence does not mention it."
        elif ok(c):
            yield f"{number} {named} supported"
        else:
            old = text.split()
            value = " ".join(w for w in c["correction"].split() if w not in old).rstrip(".")
            yield f"{number} {named} contradicted | {value} | The evidence gives another value."


HANDLERS = [
    haystack,
    ragas,
    deepeval,
    trulens,
    openevals,
    nemo,
    groundedness_pkg,
    lettucedetect,
    ours,
]


class Stub:
    def __init__(self, samples_path, call_ms, prompt_token_ms, output_token_ms):
        self.cfg = {
            "call_ms": call_ms,
            "prompt_token_ms": prompt_token_ms,
            "output_token_ms": output_token_ms,
            "fail_every": 0,
            "garble_every": 0,
            "samples": samples_path,
        }
        self.load()
        self.reset()

    def load(self):
        self.samples = json.loads(Path(self.cfg["samples"]).read_text(encoding="utf-8"))

    def reset(self):
        self.inflight = 0
        self.stats = {
            "calls": 0,
            "errors": 0,
            "garbled": 0,
            "unmatched": 0,
            "prompt_tokens": 0,
            "prompt_chars": 0,
            "output_tokens": 0,
            "max_prompt_tokens": 0,
            "peak_concurrency": 0,
            "busy_s": 0.0,
            "handlers": {},
            "embeddings": 0,
        }

    async def complete(self, body):
        """Return (status, text, prompt tokens, output tokens, request)."""
        st, req = self.stats, Request(body, self.samples)
        st["calls"] += 1
        if self.cfg["fail_every"] and st["calls"] % self.cfg["fail_every"] == 0:
            st["errors"] += 1
            return 500, "injected failure", 0, 0, req
        out = name = None
        for h in HANDLERS:
            try:
                out = h(req)
            except (TypeError, AttributeError):
                out = None
            if out is not None:
                name = h.__name__
                break
        if out is None:
            st["unmatched"] += 1
            return 422, "no handler knows this request: " + req.text[:300], 0, 0, req
        text = out if isinstance(out, str) else json.dumps(out)
        st["handlers"][name] = st["handlers"].get(name, 0) + 1
        if self.cfg["garble_every"] and st["calls"] % self.cfg["garble_every"] == 0:
            st["garbled"] += 1
            text = text[: len(text) // 2]
        full = req.text + req.extra
        pt, ot = count_tokens(full), count_tokens(text)
        st["prompt_tokens"] += pt
        st["prompt_chars"] += len(full)
        st["output_tokens"] += ot
        st["max_prompt_tokens"] = max(st["max_prompt_tokens"], pt)
        self.inflight += 1
        st["peak_concurrency"] = max(st["peak_concurrency"], self.inflight)
        t0 = time.perf_counter()
        c = self.cfg
        await asyncio.sleep(
            (c["call_ms"] + c["prompt_token_ms"] * pt + c["output_token_ms"] * ot) / 1000
        )
        st["busy_s"] += time.perf_counter() - t0
        self.inflight -= 1
        return 200, text, pt, ot, req

    async def route(self, method, path, raw):  # noqa: C901, PLR0911  (one line per route)
        body = json.loads(raw) if raw else {}
        path = path.split("?")[0].rstrip("/")
        if path == "/__stats":
            return 200, {**self.stats, "config": self.cfg}
        if path == "/__reset":
            self.reset()
            return 200, {}
        if path == "/__config":
            self.cfg.update(body)
            self.load()
            return 200, self.cfg
        if path.endswith("/models"):
            return 200, {
                "object": "list",
                "data": [{"id": "stub", "object": "model", "created": 0, "owned_by": "stub"}],
            }
        if path.endswith("/embeddings"):
            texts = body.get("input")
            texts = texts if isinstance(texts, list) else [texts]
            self.stats["embeddings"] += 1
            data = [
                {"object": "embedding", "index": i, "embedding": [1.0, 0.0, 0.0]}
                for i in range(len(texts))
            ]
            return 200, {
                "object": "list",
                "model": "stub",
                "data": data,
                "usage": {"prompt_tokens": 1, "total_tokens": 1},
            }
        if path.endswith("/chat/completions"):
            code, text, pt, ot, req = await self.complete(body)
            if code != 200:
                return code, {
                    "error": {"message": text, "type": "stub", "code": None, "param": None}
                }
            msg = {"role": "assistant", "content": text, "refusal": None}
            finish = "stop"
            if req.tools:
                fn = req.tools[0].get("function") or req.tools[0]
                call = {
                    "id": "call_0",
                    "type": "function",
                    "function": {"name": fn["name"], "arguments": text},
                }
                msg, finish = (
                    {"role": "assistant", "content": None, "tool_calls": [call]},
                    "tool_calls",
                )
            usage = {"prompt_tokens": pt, "completion_tokens": ot, "total_tokens": pt + ot}
            out = {
                "id": "chatcmpl-stub",
                "object": "chat.completion",
                "created": 0,
                "model": body.get("model", "stub"),
                "usage": usage,
                "choices": [
                    {"index": 0, "message": msg, "finish_reason": finish, "logprobs": None}
                ],
            }
            if body.get("stream"):
                return "sse", out
            return 200, out
        if path.endswith("/responses"):
            code, text, pt, ot, _ = await self.complete(body)
            if code != 200:
                return code, {
                    "error": {"message": text, "type": "stub", "code": None, "param": None}
                }
            return 200, {
                "id": "resp_stub",
                "object": "response",
                "created_at": 0,
                "status": "completed",
                "model": body.get("model", "stub"),
                "error": None,
                "incomplete_details": None,
                "instructions": None,
                "metadata": {},
                "parallel_tool_calls": False,
                "temperature": 0.0,
                "tool_choice": "auto",
                "tools": [],
                "top_p": 1.0,
                "output": [
                    {
                        "type": "message",
                        "id": "msg_0",
                        "status": "completed",
                        "role": "assistant",
                        "content": [{"type": "output_text", "text": text, "annotations": []}],
                    }
                ],
                "usage": {
                    "input_tokens": pt,
                    "input_tokens_details": {"cached_tokens": 0},
                    "output_tokens": ot,
                    "output_tokens_details": {"reasoning_tokens": 0},
                    "total_tokens": pt + ot,
                },
            }
        return 404, {
            "error": {
                "message": f"no route {method} {path}",
                "type": "stub",
                "code": None,
                "param": None,
            }
        }

    async def client(self, reader, writer):
        try:
            while True:
                line = await reader.readline()
                if not line:
                    break
                method, path, _ = line.decode("latin1").split(" ", 2)
                headers = {}
                while h := (await reader.readline()).decode("latin1").strip():
                    k, _, v = h.partition(":")
                    headers[k.lower()] = v.strip()
                raw = await reader.readexactly(int(headers.get("content-length") or 0))
                try:
                    code, out = await self.route(method, path, raw)
                except Exception as e:  # noqa: BLE001  (a bug here must reach the caller as HTTP 500)
                    code, out = (
                        500,
                        {"error": {"message": f"{type(e).__name__}: {e}", "type": "stub"}},
                    )
                if code == "sse":
                    writer.write(sse(out))
                else:
                    data = json.dumps(out).encode()
                    writer.write(
                        f"HTTP/1.1 {code} X\r\ncontent-type: application/json\r\n"
                        f"content-length: {len(data)}\r\n\r\n".encode()
                        + data
                    )
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, ValueError):
            pass
        finally:
            writer.close()


def sse(out):
    """The whole answer as server-sent chunks, one word each."""
    text = out["choices"][0]["message"]["content"] or ""
    base = {k: out[k] for k in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    deltas = [{"role": "assistant", "content": x} for x in re.findall(r"\S+\s*|\s+", text)]
    lines = [
        {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        for delta in deltas
    ]
    lines.append({**base, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    lines.append({**base, "choices": [], "usage": out["usage"]})
    data = "".join(f"data: {json.dumps(x)}\n\n" for x in lines).encode() + b"data: [DONE]\n\n"
    return (
        b"HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n"
        % len(data)
        + data
    )


async def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--samples", required=True)
    ap.add_argument("--port", type=int, default=0)
    ap.add_argument("--port-file")
    ap.add_argument("--call-ms", type=float, default=200)
    ap.add_argument("--prompt-token-ms", type=float, default=0)
    ap.add_argument("--output-token-ms", type=float, default=0)
    a = ap.parse_args()
    stub = Stub(a.samples, a.call_ms, a.prompt_token_ms, a.output_token_ms)
    server = await asyncio.start_server(stub.client, "127.0.0.1", a.port, limit=2**24)
    port = server.sockets[0].getsockname()[1]
    if a.port_file:
        Path(a.port_file).write_text(str(port))  # noqa: ASYNC240  (before the first request)
    print(f"stub on http://127.0.0.1:{port}/v1", flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
