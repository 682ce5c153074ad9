"""A scripted server of the OpenAI chat protocol on loopback, from the standard library alone."""

import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from http import HTTPStatus
from http.client import responses
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import socket
from socketserver import TCPServer
from typing import Any, NamedTuple, Self

from langchain_groundedness.exceptions import ConfigurationError
from langchain_groundedness.types import VerdictLabel

__all__ = [
    "Delivery",
    "HonestJudge",
    "KnownClaim",
    "Script",
    "ScriptedRequest",
    "ScriptedResponse",
    "ScriptedServer",
    "tag_in",
]

Delivery = Callable[[socket, bytes], None]
"""Sends a response, including status line and headers, to the client."""


_PATH = "/v1/chat/completions"
_FENCED = re.compile(r"<(\w+) ([a-z]{10})>\n(.*?)\n</\1 \2>", re.DOTALL)
_TAG = re.compile(r"^TAG: ([A-Z]{3})\b", re.MULTILINE)
_JUDGED = ("supported", "contradicted", "unverifiable")
_WORDS: Mapping[str, str] = {"supported": "yes", "contradicted": "no"}


class ScriptedResponse(NamedTuple):
    """What the server answers to one request."""

    text: str = ""
    """The reply; also the arguments of the tool call if the request forces a tool. Where it has
    `{tag}`, the tag that verdicts must repeat is put in."""
    status: int = 200
    """HTTP status; other than 200, `text` is the error message."""
    logprobs: dict[str, float] | None = None
    """Log-probability of each token that could have come first, the reply's own among them."""
    refusal: str | None = None
    finish_reason: str = "stop"
    after: threading.Event | None = None
    """The response is held back until this is set: a delay without a clock."""
    headers: Mapping[str, str] | None = None
    """Headers beside those that every response has."""
    body: str | None = None
    """Replaces the whole completion, valid JSON or not."""
    delivery: Delivery | None = None
    """How the response is sent; by default at once and whole."""


class ScriptedRequest(NamedTuple):
    """One request that the server saw."""

    body: dict[str, Any]
    """The request as it came, parsed."""

    @property
    def text(self) -> str:
        """The contents of all messages, joined."""
        messages = self.body.get("messages", ())
        return "\n".join(str(message.get("content") or "") for message in messages)

    @property
    def tag(self) -> str:
        """The tag that verdicts must repeat to count, nothing if they are not asked for."""
        return tag_in(self.text)

    @property
    def form(self) -> str:
        """How the reply is asked for: `json_schema`, `json_object`, `tool` or `text`."""
        if self.body.get("tools"):
            return "tool"
        wanted = self.body.get("response_format") or {}
        return str(wanted.get("type", "text"))


def tag_in(prompt: str) -> str:
    """Find the tag that a prompt asks verdicts to repeat."""
    return next(iter(_TAG.findall(prompt)[-1:]), "")


Script = Callable[[ScriptedRequest], "str | ScriptedResponse"]


class ScriptedServer:
    """An OpenAI-compatible server on 127.0.0.1 that answers from a script and counts.

    Answers chat completions: plain and streamed, tool calls, JSON schema and JSON mode,
    log-probabilities, refusals, errors. At any other path it answers HTTP 404, and does not
    count that.

    Example:
        >>> with ScriptedServer(["yes"]) as server:  # doctest: +SKIP
        ...     ChatOpenAI(base_url=server.base_url, api_key="none").invoke("Is it?").text
        'yes'
    """

    def __init__(self, script: Script | Iterable[str | ScriptedResponse]) -> None:
        """Take the script; the server starts on entering the context."""
        if isinstance(script, str):
            msg = f"the script must be a list of answers, or a function: [{script!r}]"
            raise ConfigurationError(msg)
        self._script = script if callable(script) else _in_order(iter(script))
        self._lock = threading.Lock()
        self._open_requests = 0
        self._over = threading.Event()
        self._http = _HTTPServer(("127.0.0.1", 0), _handler(self), bind_and_activate=False)
        self.requests: list[ScriptedRequest] = []
        """Every request seen, in order."""
        self.prompt_tokens = 0
        """Words and signs of all requests, a rough count of tokens."""
        self.output_tokens = 0
        """The same of all replies."""
        self.peak_concurrency = 0
        """Most requests that were being answered at a time."""

    @property
    def base_url(self) -> str:
        """The URL to give to a client, for example `ChatOpenAI(base_url=…)`."""
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    @property
    def calls(self) -> int:
        """How many requests were seen."""
        return len(self.requests)

    def __enter__(self) -> Self:
        """Start serving on a free port."""
        self._http.server_bind()
        self._http.server_activate()
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def _serve(self) -> None:
        with self._http:
            while not self._over.is_set():
                self._http.handle_request()

    def __exit__(self, *_: object) -> None:
        """Stop serving, without waiting for it: an event loop may be running here."""
        self._over.set()

    def respond(self, body: dict[str, Any]) -> tuple[ScriptedResponse, dict[str, Any]]:
        """Answer one request; for the HTTP handler.

        Args:
            body: The parsed request.

        Returns:
            What the script says, and the parsed completion or error made of it.
        """
        request = ScriptedRequest(body)
        with self._lock:
            self.requests.append(request)
            self._open_requests += 1
            self.peak_concurrency = max(self.peak_concurrency, self._open_requests)
            answer = self._answered(request)
        response = ScriptedResponse(answer) if isinstance(answer, str) else answer
        response = response._replace(text=response.text.replace("{tag}", request.tag))
        if response.after is not None:
            response.after.wait(timeout=30)
        with self._lock:
            self._open_requests -= 1
            self.prompt_tokens += _tokens(json.dumps(body))
            self.output_tokens += _tokens(response.text)
        succeeds = response.status == HTTPStatus.OK
        return response, _completion(request, response) if succeeds else _error(response.text)

    def _answered(self, request: ScriptedRequest) -> str | ScriptedResponse:
        try:
            answer: object = self._script(request)
        except Exception as exc:  # noqa: BLE001  (the client hears of it)
            why = f"the script failed with {exc!r}"
        else:
            if isinstance(answer, str | ScriptedResponse):
                return answer
            why = f"the script gave {type(answer).__name__}, neither text nor a ScriptedResponse"
        return ScriptedResponse(why, status=HTTPStatus.INTERNAL_SERVER_ERROR)


def _in_order(answers: Iterator[str | ScriptedResponse]) -> Script:
    over = ScriptedResponse("the script is over", status=HTTPStatus.GONE)
    return lambda _: next(answers, over)


def _tokens(text: str) -> int:
    return len(re.findall(r"\w+|[^\w\s]", text))


def _completion(request: ScriptedRequest, response: ScriptedResponse) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": response.text}
    finish = response.finish_reason
    if response.refusal is not None:
        message |= {"content": None, "refusal": response.refusal}
    elif request.form == "tool":
        name = request.body["tools"][0]["function"]["name"]
        function = {"name": name, "arguments": response.text}
        call = {"id": "call_0", "type": "function", "function": function}
        message |= {"content": None, "tool_calls": [call]}
        finish = "tool_calls" if finish == "stop" else finish
    choice = {"index": 0, "message": message, "finish_reason": finish}
    prompt, output = _tokens(request.text), _tokens(response.text)
    usage = {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output}
    return {
        "id": "chatcmpl-scripted",
        "object": "chat.completion",
        "created": 0,
        "model": request.body.get("model", "scripted"),
        "choices": [{**choice, "logprobs": _logprobs(request, response)}],
        "usage": usage,
    }


def _logprobs(request: ScriptedRequest, response: ScriptedResponse) -> dict[str, Any] | None:
    if not request.body.get("logprobs") or response.logprobs is None:
        return None
    top = [{"token": t, "logprob": p, "bytes": None} for t, p in response.logprobs.items()]
    said = response.text.strip()
    chosen = max(
        top, key=lambda option: (said.startswith(str(option["token"]).strip()), option["logprob"])
    )
    return {"content": [chosen | {"top_logprobs": top}], "refusal": None}


class _HTTPServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    timeout = 0.02

    def server_bind(self) -> None:
        """Bind without asking the resolver for the name of this machine, as the base would."""
        TCPServer.server_bind(self)


def _handler(server: ScriptedServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._send(*_unknown_path(self.path), streamed=False)

        def do_POST(self) -> None:
            sent = self.rfile.read(int(self.headers["content-length"]))
            if self.path.partition("?")[0] != _PATH:
                self.do_GET()
                return
            body = json.loads(sent)
            self._send(*server.respond(body), streamed=bool(body.get("stream")))

        def _send(
            self, response: ScriptedResponse, answer: dict[str, Any], *, streamed: bool
        ) -> None:
            kind, text = "application/json", json.dumps(answer)
            if response.body is not None:
                text = response.body
            elif response.status == HTTPStatus.OK and streamed:
                kind, text = "text/event-stream", _events(answer)
            data = _head(response, kind, text) + text.encode()
            try:
                (response.delivery or socket.sendall)(self.connection, data)
            except OSError:
                """The client has gone: nobody is left to tell."""
            self.close_connection = True

        def log_message(self, *_: Any) -> None:
            """Keep the standard error stream clean."""

    return Handler


def _unknown_path(path: str) -> tuple[ScriptedResponse, dict[str, Any]]:
    text = f"a scripted server answers {_PATH} alone, not {path}"
    return ScriptedResponse(text, status=HTTPStatus.NOT_FOUND), _error(text)


def _error(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "scripted"}}


def _head(response: ScriptedResponse, kind: str, text: str) -> bytes:
    size = str(len(text.encode()))
    headers = {"content-type": kind, "content-length": size, "connection": "close"}
    headers |= response.headers or {}
    lines = [f"HTTP/1.1 {int(response.status)} {responses.get(response.status, 'Unknown')}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def _events(answer: dict[str, Any]) -> str:
    """Cut a completion into the chunks of a stream, a word each."""
    (choice,) = answer["choices"]
    message = choice["message"]
    base = {key: answer[key] for key in ("id", "created", "model")}
    base["object"] = "chat.completion.chunk"
    deltas: list[dict[str, Any]] = [
        *({"content": piece} for piece in re.findall(r"\s*\S+", message["content"] or "")),
        *({"tool_calls": [c | {"index": n}]} for n, c in enumerate(message.get("tool_calls", ()))),
    ]
    parts = [({"role": "assistant", **delta}, None) for delta in deltas]
    parts.append(({}, choice["finish_reason"]))
    choices = [[{"index": 0, "delta": delta, "finish_reason": why}] for delta, why in parts]
    chunks = [base | {"choices": choice} for choice in choices]
    chunks.append(base | {"choices": [], "usage": answer["usage"]})
    return "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"


class KnownClaim(NamedTuple):
    """The right verdict on a claim."""

    verdict: VerdictLabel
    evidence: str = ""
    """The sentence of a document that decides it, verbatim. Only a judge that is asked claim by
    claim can do without; all others then call the claim unverifiable."""
    value: str = ""
    """The right value, if the claim is contradicted."""


class HonestJudge:
    """Answers the prompts of this package as a model that makes no mistakes would.

    It reads what the prompts for extraction, verification (both strategies), the two in a single
    pass, and correction show between their fences, and writes the lines that they ask for, inside a
    schema or plainly. A claim that it does not know is unverifiable, and so is one whose evidence
    is not shown.

    Example:
        >>> known = {"Rome is in Italy.": KnownClaim("supported", "Rome lies in Italy.")}
        >>> with ScriptedServer(HonestJudge(known)) as server:  # doctest: +SKIP
        ...     model = ChatOpenAI(base_url=server.base_url, api_key="none")
        ...     GroundednessRunnable(model=model).invoke(("Rome is in Italy.", documents)).verdict
        'grounded'
    """

    def __init__(
        self, claims: Mapping[str, KnownClaim], rewritten: Mapping[str, str] | None = None
    ) -> None:
        """Take the right verdicts."""
        for text, known in claims.items():
            _refuse_unknown(text, known)
        self._claims = dict(claims)
        self._rewritten = dict(rewritten or {})

    def __call__(self, request: ScriptedRequest) -> str:
        """Answer a request."""
        shown = {kind: text for kind, _, text in _FENCED.findall(request.text)}
        if "statement" in shown:
            return _WORDS.get(self._known(shown["statement"]).verdict, "unknown")
        if "claims" in shown:
            lines = list(self._verdicts(shown["claims"], shown.get("evidence", "")))
        elif "statements" in shown:
            lines = _replaced(shown["statements"], lambda text: self._known(text).evidence)
        elif "evidence" in shown:
            lines = list(self._judged(shown.get("answer", ""), shown["evidence"]))
        else:
            lines = _replaced(shown.get("answer", ""), lambda text: self._rewritten.get(text, ""))
        tag = request.tag
        if request.form == "text":
            return "\n".join(f"{tag} {line}".lstrip() for line in lines) or "none"
        return json.dumps({"tag": tag, "lines": lines} if tag else {"lines": lines})

    def _known(self, claim: str) -> KnownClaim:
        return self._claims.get(claim, KnownClaim("unverifiable"))

    def _verdicts(self, claims: str, evidence: str) -> Iterator[str]:
        for number, text in _numbered(r"C(\d+): (.*)", claims):
            yield f"C{number} {self._verdict(text, evidence, '[{}]')}"

    def _judged(self, answer: str, evidence: str) -> Iterator[str]:
        for number, text in _numbered(r"S(\d+): (.*)", answer):
            claim = self._rewritten.get(text, text)
            statement = f" ({claim}):" if claim != text else ""
            yield f"S{number}{statement} {self._verdict(claim, evidence, '{}')}"

    def _verdict(self, claim: str, evidence: str, form: str) -> str:
        numbers = {text: number for number, text in _numbered(r"(\d+) (.*)", evidence)}
        known = self._known(claim)
        place = numbers.get(known.evidence)
        if place is None or known.verdict == "unverifiable":
            return "unverifiable | nothing is said about it"
        if known.verdict == "supported":
            return f"{form.format(place)} supported"
        return f"{form.format(place)} contradicted | {known.value} | it says otherwise"


def _refuse_unknown(text: str, known: object) -> None:
    if not isinstance(known, KnownClaim):
        msg = f"{text!r} is known by {known!r}; give a KnownClaim, as KnownClaim('supported', ...)"
    elif known.verdict not in _JUDGED:
        msg = f"{text!r} is known as {known.verdict!r}; a judge says {', '.join(_JUDGED)}"
    else:
        return
    raise ConfigurationError(msg)


def _replaced(numbered: str, new: Callable[[str], str]) -> list[str]:
    found = ((number, new(text)) for number, text in _numbered(r"(\d+): (.*)", numbered))
    return [f"{number}: {text}" for number, text in found if text]


def _numbered(form: str, text: str) -> list[tuple[str, str]]:
    return re.findall(f"^{form}$", text, re.MULTILINE)
