"""Errors raised by this package.

```
GroundednessError
├── AuditError                an audit log operation failed; .records, .taken
│   └── ReviewConflictError   a conflicting review; .record_id, .revision, .reviewer
├── ConfigurationError        also ValueError: an invalid option
│   └── ModelFileError        a file of the embedded verifier's model is missing or damaged
├── InputFormatError          also ValueError: an unsupported input shape; .keys
├── MissingDependencyError    also ImportError: names the extra to install
├── ModelTimeoutError         also TimeoutError: a model did not reply in time; .seconds
├── OutputParsingError        a model reply does not match its schema; .raw, .prompt_name
└── VerificationError         a check could not run; .claim_ids
    └── EvaluationError       rows of an evaluation failed; .row_ids, .result
```

Catch `GroundednessError` to catch them all. Messages never contain prompts, answers, documents or
keys; the attribute `raw` holds a model's reply.
"""

import re
from collections.abc import Sequence
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
_HINTS = {
    401: "check the API key",
    403: "the API key has no access to this",
    404: "check the name of the model and the URL of the server",
    413: "the request is too large for the model",
    429: "too many requests, or the quota is used up",
}
_HINTS_BY_NAME = (
    (re.compile(r"Connect\w*Timeout"), "the server could not be reached"),
    (  # before the next: some clients derive timeouts from connection errors
        re.compile(r"Timeout(?!Error$)|\w+TimeoutError$"),
        "its client gave up waiting; see the timeout of the client",
    ),
    (re.compile(r"Connect"), "the server could not be reached"),
)
"""Hints by the class name of an error, of its bases or of its causes; the first that fits."""
_MAX_CAUSES = 10


class GroundednessError(Exception):
    """Base class of the errors of this package."""


class AuditError(GroundednessError):
    """An audit log operation failed: its store is down, closed, too new, or damaged.

    Attributes:
        records: How many submitted records are not durable yet.
        taken: Whether the submitted record is among them.
    """

    def __init__(self, message: str, *, records: int = 0, taken: bool = True) -> None:
        """Store the attributes with the message."""
        super().__init__(message)
        self.records = records
        self.taken = taken


class ReviewConflictError(AuditError):
    """A review cannot be saved: another reviewer decided first, or the record has changed.

    Attributes:
        record_id: The record.
        revision: Its current revision.
        reviewer: Who decided it; `None` if nobody has.
    """

    def __init__(
        self, message: str, *, record_id: str, revision: int, reviewer: str | None
    ) -> None:
        """Store the attributes with the message."""
        super().__init__(message)
        self.record_id = record_id
        self.revision = revision
        self.reviewer = reviewer


class OptionFault(NamedTuple):
    """A problem with one option."""

    path: tuple[str | int, ...]
    """Option names and list indexes, from the outermost to the invalid one."""
    problem: str
    unknown: bool = False
    """Whether no option has this name."""


class ConfigurationError(GroundednessError, ValueError):
    """An option has an invalid value; the message says what is accepted.

    Attributes:
        faults: The problem with each option; empty if there is only the message.
    """

    def __init__(self, message: str, *, faults: Sequence[OptionFault] = ()) -> None:
        """Store the faults with the message."""
        super().__init__(message)
        self.faults = tuple(faults)


class ModelFileError(ConfigurationError):
    """A file of the embedded verifier's model is missing or damaged: the installation is broken."""


class InputFormatError(GroundednessError, ValueError):
    """Question, answer and documents cannot be read from an input.

    Attributes:
        keys: The keys of the input, in order; empty if it was not a mapping.
    """

    def __init__(self, message: str, *, keys: tuple[str, ...] = ()) -> None:
        """Store the keys with the message."""
        super().__init__(message)
        self.keys = keys


class MissingDependencyError(GroundednessError, ImportError):
    """An optional package is missing; the message contains the install command."""


class ModelTimeoutError(GroundednessError, TimeoutError):
    """A model did not reply within its timeout.

    Attributes:
        seconds: The timeout.
    """

    def __init__(self, seconds: float, *, still_running: int = 0) -> None:
        """Build the message; `still_running` timed-out calls kept this one from being made."""
        msg = f"the model did not reply within {seconds:g} s (see model_timeout= or timeout=)"
        if still_running:
            msg = (
                f"the model was not called: {still_running} earlier model calls still run after "
                f"their timeout; await the check, or set a timeout on the model's client"
            )
        super().__init__(msg)
        self.seconds = seconds


class OutputParsingError(GroundednessError):
    """A model's reply does not match its schema, after all fallbacks.

    Attributes:
        raw: The model's last reply, unchanged. May contain text of the user's documents.
        prompt_name: Which prompt was answered, for example `"verify_claims"`.
    """

    def __init__(self, message: str, *, raw: str, prompt_name: str) -> None:
        """Store the raw reply with the message."""
        super().__init__(message)
        self.raw = raw
        self.prompt_name = prompt_name


class VerificationError(GroundednessError):
    """A check failed, and `raise_on_failure=True` is set.

    Attributes:
        claim_ids: The `unchecked` claims; empty if extraction failed.
    """

    def __init__(self, message: str, *, claim_ids: tuple[str, ...] = ()) -> None:
        """Store the claim ids with the message."""
        super().__init__(message)
        self.claim_ids = claim_ids


class EvaluationError(VerificationError):
    """Rows of an evaluation failed, and `raise_on_failure=True` is set.

    Attributes:
        row_ids: The rows that failed; empty if there was only one row, without an id.
        result: The `EvaluationResult` over all rows, including successful ones.
    """

    def __init__(self, message: str, *, row_ids: tuple[str, ...] = (), result: object) -> None:
        """Store row ids and result with the message."""
        super().__init__(message)
        self.row_ids = row_ids
        self.result = result


def require(module: str, *, extra: str) -> ModuleType:
    """Import an optional module, or raise an error that names its extra.

    Args:
        module: Dotted name of the module.
        extra: The extra of this package that installs it.

    Returns:
        The module.

    Raises:
        MissingDependencyError: The module is not installed.
    """
    try:
        return import_module(module)
    except ImportError as exc:
        msg = f"{module!r} is required; install it: pip install 'langchain-groundedness[{extra}]'"
        raise MissingDependencyError(msg) from exc


def cause(error: BaseException) -> str:
    """Return the class name of an error with its status codes.

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
    """Return the HTTP status and the provider's code of an error, with a hint.

    The error's message is omitted: providers quote keys and prompts in it.

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
    return "; ".join(filter(None, (", ".join(parts), _hint(error, status))))


def _hint(error: BaseException, status: object) -> str:
    if isinstance(status, int):
        return _HINTS.get(status, "")
    chain = [error]
    while (at := chain[-1].__cause__) is not None and len(chain) < _MAX_CAUSES:
        chain.append(at)
    names = [kind.__name__ for each in chain for kind in type(each).__mro__]
    for pattern, hint in _HINTS_BY_NAME:
        if any(map(pattern.search, names)):
            return hint
    return "is the API key set?" if _KEY.search(str(error)) else ""


def describe_error(error: Exception) -> str:
    """Name an error, with its message if it is one of this package: those quote no texts."""
    message = str(error) if isinstance(error, GroundednessError) else ""
    return f"{type(error).__name__}: {message}" if message else type(error).__name__
