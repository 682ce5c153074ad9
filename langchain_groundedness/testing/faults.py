"""A server of the OpenAI chat protocol on loopback that goes wrong as real ones do."""

import json
import random
import re
import select
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeVar

from langchain_groundedness.exceptions import ConfigurationError
from langchain_groundedness.testing.server import (
    Script,
    ScriptedRequest,
    ScriptedResponse,
    ScriptedServer,
)

__all__ = ["FAULTS", "Fault", "FaultyServer"]

_SentT = TypeVar("_SentT", str, bytes)

_MARK = re.compile(r" [a-z]{10}>|TAG: [A-Z]{3}$", re.MULTILINE)
_NOT_SHOWN = 900
_MANY_MORE = [f"C{_NOT_SHOWN + n}: [{n}] supported" for n in range(3_000)]
_DEEP = 10_000
_PIECES = 3
_TLS_ALERT = bytes.fromhex("15030300020228")
_PROSE = "I have looked at all of it with care, and everything seems to be well supported."
_SORRY = "I'm sorry, but I can't help with that."
_NO_CONTENT = (
    '{"id": "chatcmpl-empty", "object": "chat.completion", "created": 0, "model": "scripted", '
    '"choices": [{"index": 0, "message": {"role": "assistant", "content": null}, '
    '"finish_reason": "stop"}]}'
)


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong with a reply on its way from model to client."""

    name: str
    what: str
    """What happens, in a few words."""
    spoil: Callable[[ScriptedResponse, ScriptedRequest], ScriptedResponse]
    """Turns the right response into the one that is sent, given the request."""
    slow: bool = False
    """Whether the client waits until its own timeout."""


class FaultyServer(ScriptedServer):
    """A scripted server, a share of whose responses goes wrong.

    The seed, the request and how often it came decide which ones, not the order of requests: calls
    made at once meet the same faults each time.

    Example:
        >>> with FaultyServer(["yes", "yes"], fault="http_503") as server:  # doctest: +SKIP
        ...     ChatOpenAI(base_url=server.base_url, api_key="none", max_retries=0).invoke("Is it?")
        Traceback (most recent call last):
        openai.InternalServerError: Error code: 503 - ...
    """

    def __init__(
        self,
        script: Script | Sequence[str | ScriptedResponse],
        *,
        fault: str | Fault | None = None,
        rate: float = 1.0,
        seed: int = 0,
    ) -> None:
        """Take the right answers, and the fault to inject."""
        _refuse_unknown(fault, rate)  # before there is a socket to close
        super().__init__(script)
        self._right, self._script = self._script, self._answer
        self._drawing = threading.Lock()
        self.inject(fault, rate=rate, seed=seed)

    def inject(self, fault: str | Fault | None, *, rate: float = 1.0, seed: int = 0) -> None:
        """Change what goes wrong from the next request on, and start counting anew.

        Args:
            fault: As for the constructor.
            rate: As for the constructor.
            seed: As for the constructor.

        Raises:
            ConfigurationError: As for the constructor.
        """
        _refuse_unknown(fault, rate)
        with self._drawing:
            self._fault = FAULTS[fault] if isinstance(fault, str) else fault
            self._rate, self._seed = rate, seed
            self._seen: Counter[str] = Counter()
            self.spoiled: list[ScriptedRequest] = []
            """Requests whose response went wrong, since `inject`."""
            self.answered: list[ScriptedRequest] = []
            """Requests that got the right response, since `inject`."""

    def _answer(self, request: ScriptedRequest) -> ScriptedResponse:
        right = self._right(request)
        response = ScriptedResponse(right) if isinstance(right, str) else right
        with self._drawing:
            fault = self._fault if self._happens(request) else None
            (self.spoiled if fault else self.answered).append(request)
        return fault.spoil(response, request) if fault else response

    def _happens(self, request: ScriptedRequest) -> bool:
        """Draw for a request, without the marks in it that differ from process to process."""
        text = f"{request.form} {_MARK.sub('>', request.text)}"
        self._seen[text] += 1
        drawn = random.Random(f"{self._seed} {self._seen[text]} {text}")  # noqa: S311  (no secret)
        return drawn.random() < self._rate


def _refuse_unknown(fault: object, rate: float) -> None:
    if not (fault is None or isinstance(fault, Fault) or fault in FAULTS):
        msg = f"there is no fault {fault!r}; there are {', '.join(FAULTS)}"
        raise ConfigurationError(msg)
    if not 0 <= rate <= 1:
        msg = f"rate must be from 0 to 1, got {rate}"
        raise ConfigurationError(msg)


def _text(change: Callable[[str], str], **parts: Any) -> Callable[..., ScriptedResponse]:
    """Change the text of a reply, and other parts of the response."""
    return lambda response, _: response._replace(text=change(response.text), **parts)


def _lines(change: Callable[[list[str]], list[Any]]) -> Callable[..., ScriptedResponse]:
    """Change the lines of a reply, in whichever form it has them."""

    def spoil(response: ScriptedResponse, request: ScriptedRequest) -> ScriptedResponse:
        if request.form == "text":
            tag = request.tag  # found by reading the whole prompt
            lines = [line.removeprefix(f"{tag} ") for line in response.text.splitlines()]
            changed = [f"{tag} {line}".lstrip() for line in change(lines)]
            return response._replace(text="\n".join(changed))
        reply = json.loads(response.text)
        return response._replace(text=json.dumps({**reply, "lines": change(reply["lines"])}))

    return spoil


def _either(plain: str, schema: str) -> Callable[..., ScriptedResponse]:
    """Reply one thing where plain text is asked for, another where a schema is."""
    return lambda response, request: response._replace(
        text=plain if request.form == "text" else schema
    )


def _instead(**parts: Any) -> Callable[..., ScriptedResponse]:
    return lambda response, _: response._replace(**parts)


def _status(status: int, text: str, **headers: str) -> Callable[..., ScriptedResponse]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return _instead(status=status, text=text, headers=named)


def _beginning(sent: _SentT) -> _SentT:
    return sent[: len(sent) * 2 // 3]


def _garbled(text: str) -> str:
    return "".join("\ufffd" if place % 3 == 1 else sign for place, sign in enumerate(text))


def _other_numbers(lines: list[str]) -> list[str]:
    moved = [re.sub(r"\d+", lambda m: str(int(m[0]) + _NOT_SHOWN), line, count=1) for line in lines]
    return [*moved, f"C{_NOT_SHOWN}: [1] supported"]


def _contradicting(lines: list[str]) -> list[str]:
    others = [re.sub(r"supported|contradicted", "unverifiable", line) for line in lines]
    claims = [line.partition(":")[0] for line in lines]
    return [*lines, *others, *(f"{claim}: [1] supported" for claim in claims)]


def _with_more(response: ScriptedResponse, request: ScriptedRequest) -> ScriptedResponse:
    more = {"verdict": "supported", "score": 1, "C1": "supported", "notes": {"all": "supported"}}
    if request.form == "text":
        return response._replace(text=f"{response.text}\n{json.dumps(more)}")
    return response._replace(text=json.dumps({**more, **json.loads(response.text), "ok": True}))


def _send_nothing(connection: socket.socket, _: bytes = b"") -> None:
    """Wait until the other end has closed the connection: then there is something to read."""
    select.select([connection], [], [], 60)


def _trickle(connection: socket.socket, data: bytes) -> None:
    for place in range(_PIECES):
        connection.sendall(data[place * len(data) // 10 : (place + 1) * len(data) // 10])
        select.select([connection], [], [], 0.01)
    _send_nothing(connection)


def _drip(connection: socket.socket, data: bytes) -> None:
    for byte in data[:-1]:
        connection.sendall(bytes([byte]))
        if select.select([connection], [], [], 0.02)[0]:
            return
    _send_nothing(connection)


def _drip_body(connection: socket.socket, data: bytes) -> None:
    head, end, body = data.partition(b"\r\n\r\n")
    connection.sendall(head + end)
    _drip(connection, body)


def _reset(connection: socket.socket, data: bytes) -> None:
    connection.sendall(_beginning(data))
    # Lingering for no time makes closing a reset.
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def _cut(connection: socket.socket, data: bytes) -> None:
    connection.sendall(_beginning(data))


_ALL = (
    Fault("garbled", "every third character of the reply is lost", _text(_garbled)),
    Fault(
        "truncated",
        "the reply ends at the limit of tokens",
        _text(_beginning, finish_reason="length"),
    ),
    Fault("cut_off", "the reply ends in the middle, without any sign of it", _text(_beginning)),
    Fault("empty", "the reply has no text", _text(lambda _: "")),
    Fault("null", "the reply is `null`", _text(lambda _: "null")),
    Fault("prose", "the reply is a sentence that praises everything", _text(lambda _: _PROSE)),
    Fault("refusal", "the model refuses, in the refusal field", _instead(refusal=_SORRY)),
    Fault("refusal_in_words", "the model refuses in its reply", _text(lambda _: _SORRY)),
    Fault(
        "content_filter",
        "the provider's content filter removes the reply",
        _instead(text="", finish_reason="content_filter"),
    ),
    Fault("wrong_ids", "verdicts for claims that were not shown", _lines(_other_numbers)),
    Fault("missing_ids", "the last verdict is missing", _lines(lambda lines: lines[:-1])),
    Fault("duplicated_ids", "every verdict appears three times", _lines(lambda lines: 3 * lines)),
    Fault("contradictory_duplicates", "two verdicts for each claim", _lines(_contradicting)),
    Fault("extra_keys", "fields that were not asked for", _with_more),
    Fault("huge", "3,000 verdicts more", _lines(lambda lines: [*lines, *_MANY_MORE])),
    Fault(
        "wrong_types",
        "numbers, objects and lists where text should be",
        _either('{"C1": true}', '{"lines": [1, null, {"C1": true}, ["C1", "supported"]]}'),
    ),
    Fault(
        "nan",
        "NaN and infinity where there should be text",
        _either("NaN", '{"lines": [NaN, -Infinity]}'),
    ),
    Fault(
        "deep_nesting",
        "10,000 brackets",
        _either("[" * _DEEP, '{"lines": ' + "[" * _DEEP + "]" * _DEEP + "}"),
    ),
    Fault("empty_body", "the response has no body", _instead(body="")),
    Fault("null_body", "the response is `null`", _instead(body="null")),
    Fault(
        "html_body",
        "a proxy's error page instead of the response",
        _instead(body="<html>Busy</html>"),
    ),
    Fault("no_choices", "the response has no reply in it", _instead(body='{"choices": []}')),
    Fault("no_content", "the message has no content", _instead(body=_NO_CONTENT)),
    Fault("http_400", "HTTP 400", _status(400, "bad request")),
    Fault("http_401", "HTTP 401", _status(401, "wrong key")),
    Fault("http_403", "HTTP 403", _status(403, "no access")),
    Fault("http_408", "HTTP 408", _status(408, "too slow")),
    Fault("http_429", "HTTP 429 with Retry-After", _status(429, "slow down", retry_after="0.01")),
    Fault("http_500", "HTTP 500", _status(500, "broken")),
    Fault("http_503", "HTTP 503", _status(503, "overloaded")),
    Fault("slow_first_byte", "no byte ever arrives", _instead(delivery=_send_nothing), slow=True),
    Fault(
        "slow_trickle", "a few bytes arrive, then no more", _instead(delivery=_trickle), slow=True
    ),
    Fault(
        "drip",
        "the response arrives one byte at a time, so the client's timeout never expires",
        _instead(delivery=_drip_body),
        slow=True,
    ),
    Fault(
        "drip_of_headers",
        "the same, starting with the headers",
        _instead(delivery=_drip),
        slow=True,
    ),
    Fault("reset", "the connection is reset in the middle", _instead(delivery=_reset)),
    Fault("closed_early", "the connection ends in the middle", _instead(delivery=_cut)),
    Fault(
        "not_http",
        "TLS bytes on an HTTP connection",
        _instead(delivery=lambda connection, _: connection.sendall(_TLS_ALERT)),
    ),
)
FAULTS: Mapping[str, Fault] = MappingProxyType({fault.name: fault for fault in _ALL})
"""Everything that a `FaultyServer` can do wrong, by name."""
