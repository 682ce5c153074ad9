"""Errors raised by this package.

```
GroundednessError
├── AuditError                an audit log cannot do what it is asked; .records, .taken
│   └── ReviewConflictError   another reviewer was first; .record_id, .revision, .reviewer
├── ConfigurationError        also ValueError: a bad option, found at construction
│   └── ModelFileError        a file of the embedded verifier's model is missing or damaged
├── InputFormatError          also ValueError: an input shape that cannot be read; .keys
├── MissingDependencyError    also ImportError: names the extra to install
├── ModelTimeoutError         also TimeoutError: a model's reply did not come in time; .seconds
├── OutputParsingError        a model answered outside its schema; .raw, .prompt_name
└── VerificationError         a check could not run; .claim_ids
    └── EvaluationError       rows of an evaluation failed; .row_ids, .result
```

Catch `GroundednessError` to catch them all. Prompts, answers, documents and keys never appear in
a message: what a model replied is on the attribute `raw`, for the caller to log or not.
"""

import re
from collections.abc import Iterator, Sequence
from importlib import import_module
from types import ModuleType
from typing import NamedTuple

__all__ = [
    "AuditError",
    "ConfigurationError",
    "EvaluationError",
    "GroundednessError",
    "InputFormatError",
    "MissingDependencyError",
    "ModelFileError",
    "ModelTimeoutError",
    "OutputParsingError",
    "ReviewConflictError",
    "VerificationError",
    "cause",
    "details",
    "require",
]


_CODE = re.compile(r"[a-z][a-z0-9_.-]{2,50}")
_KEY = re.compile(r"api[_ -]?key|authenticat|credential|auth_token", re.IGNORECASE)
_UNREACHED = re.compile(r"Connect\w*Timeout")
_WAITED = re.compile(r"Timeout(?!Error$)|\w+TimeoutError$")
_REACH = re.compile(r"Connect")
_HINTS = {
    401: "check the API key",
    403: "the API key has no access to this",
    404: "check the name of the model and the URL of the server",
    413: "the request is too large for the model",
    429: "too many requests, or the quota is used up",
}
_COULD_NOT = "the server could not be reached"
_DEEPEST = 10


class GroundednessError(Exception):
    """Root of every error this package raises on purpose."""


class AuditError(GroundednessError):
    """An audit log cannot do what it is asked: its store is down, closed, too new, or damaged.

    Attributes:
        records: How many records were handed over and are not durable yet.
        taken: Whether the record that was handed over is among them.
    """

    def __init__(self, message: str, *, records: int = 0, taken: bool = True) -> None:
        """Keep the number beside the message."""
        super().__init__(message)
        self.records = records
        self.taken = taken


class ReviewConflictError(AuditError):
    """A review cannot be decided: another reviewer was first, or what was read is out of date.

    Attributes:
        record_id: The record.
        revision: The revision that it has now.
        reviewer: Who has decided it; `None` if nobody has.
    """

    def __init__(
        self, message: str, *, record_id: str, revision: int, reviewer: str | None
    ) -> None:
        """Keep what the record says now beside the message."""
        super().__init__(message)
        self.record_id = record_id
        self.revision = revision
        self.reviewer = reviewer


class Fault(NamedTuple):
    """What is wrong with one option."""

    path: tuple[str | int, ...]
    """Names of options, and numbers in lists, from the outermost to the one concerned."""
    problem: str
    unknown: bool = False
    """Whether there is no option of this name."""


class ConfigurationError(GroundednessError, ValueError):
    """An option has a value that cannot work; the message says what is accepted.

    Attributes:
        faults: What is wrong with each option; empty where the message says it all.
    """

    def __init__(self, message: str, *, faults: Sequence[Fault] = ()) -> None:
        """Keep the faults beside the message."""
        super().__init__(message)
        self.faults = tuple(faults)


class ModelFileError(ConfigurationError):
    """A file of the embedded verifier's model is missing or damaged: the installation is broken."""


class InputFormatError(GroundednessError, ValueError):
    """An input has a shape from which question, answer and documents cannot be read.

    Attributes:
        keys: The keys that the input had, in order; empty when it was no mapping.
    """

    def __init__(self, message: str, *, keys: tuple[str, ...] = ()) -> None:
        """Keep the keys seen beside the message."""
        super().__init__(message)
        self.keys = keys


class MissingDependencyError(GroundednessError, ImportError):
    """An optional package is needed; the message holds the install command."""


class ModelTimeoutError(GroundednessError, TimeoutError):
    """A model did not reply in the time that it was given.

    Attributes:
        seconds: How long it was waited for at most.
    """

    def __init__(self, seconds: float, *, abandoned: int = 0) -> None:
        """Say how long it was waited for."""
        msg = f"the model did not reply within {seconds:g} s (see model_timeout=)"
        if abandoned:
            msg = (
                f"the model was not asked: {abandoned} earlier calls of models are still going on "
                f"though their time is up; await the check, or give the model's client a timeout"
            )
        super().__init__(msg)
        self.seconds = seconds


class OutputParsingError(GroundednessError):
    """A model's reply could not be read as its schema, after every step of the ladder.

    Attributes:
        raw: What the model replied last, unchanged. May contain text of the user's documents.
        prompt_name: Which prompt was answered, for example `"verify_claims"`.
    """

    def __init__(self, message: str, *, raw: str, prompt_name: str) -> None:
        """Keep the raw reply beside the message."""
        super().__init__(message)
        self.raw = raw
        self.prompt_name = prompt_name


class VerificationError(GroundednessError):
    """A check could not run and `raise_on_failure=True` asked to hear of it.

    Attributes:
        claim_ids: The claims that stayed `unchecked`; empty when extraction itself failed.
    """

    def __init__(self, message: str, *, claim_ids: tuple[str, ...] = ()) -> None:
        """Keep the ids of the unchecked claims beside the message."""
        super().__init__(message)
        self.claim_ids = claim_ids


class EvaluationError(VerificationError):
    """Rows of an evaluation failed and `raise_on_failure=True` asked to hear of it.

    Attributes:
        row_ids: The rows that failed; empty if there was only one row, without an id.
        result: The `EvaluationResult` over all rows, those that succeeded among them.
    """

    def __init__(self, message: str, *, row_ids: tuple[str, ...] = (), result: object) -> None:
        """Keep what was found out beside the message."""
        super().__init__(message)
        self.row_ids = row_ids
        self.result = result


def require(module: str, *, extra: str) -> ModuleType:
    """Import an optional module, or say which extra brings it.

    Args:
        module: Dotted name of the module.
        extra: Extra of this package that depends on it.

    Returns:
        The module.

    Raises:
        MissingDependencyError: The module is not installed.
    """
    try:
        return import_module(module)
    except ImportError as exc:
        msg = (
            f"{module!r} is needed here; install it: pip install 'langchain-groundedness[{extra}]'"
        )
        raise MissingDependencyError(msg) from exc


def cause(error: BaseException) -> str:
    """Name an error, and what it says about itself in codes.

    Args:
        error: Any error.

    Returns:
        The name of its class, and `details` in brackets if there are any.

    Example:
        >>> cause(TimeoutError("after 30 s: …"))
        'TimeoutError'
    """
    found = details(error)
    return f"{type(error).__name__} ({found})" if found else type(error).__name__


def details(error: BaseException) -> str:
    """Return the HTTP status and the provider's code of an error, and a hint what to do.

    The message of the error is not repeated: providers quote keys and prompts in it.

    Args:
        error: Any error.

    Returns:
        The details, empty if the error has none.
    """
    status = getattr(error, "status_code", None)
    if status is None:
        status = getattr(getattr(error, "response", None), "status_code", None)
    code = getattr(error, "code", None)
    parts = [f"HTTP {status}"] if isinstance(status, int) else []
    if isinstance(code, str) and _CODE.fullmatch(code):
        parts.append(code)
    found = ", ".join(parts)
    hint = _hint(error, status)
    return "; ".join(filter(None, (found, hint)))


def _hint(error: BaseException, status: object) -> str:
    if isinstance(status, int):
        return _HINTS.get(status, "")
    names = [kind.__name__ for each in _causing(error) for kind in type(each).__mro__]
    if any(map(_UNREACHED.search, names)):
        return _COULD_NOT
    if any(map(_WAITED.search, names)):  # of some clients such an error is one of connecting, too
        return "its client gave up waiting; see the timeout of the client"
    if any(map(_REACH.search, names)):
        return _COULD_NOT
    return "is the API key set?" if _KEY.search(str(error)) else ""


def _causing(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, and the errors that it was raised from."""
    at: BaseException | None = error
    for _ in range(_DEEPEST):
        if at is None:
            return
        yield at
        at = at.__cause__
