"""Says what is behind somebody else's error, without a word of what was sent, replied or secret."""

import re
from collections.abc import Iterator

__all__ = ["cause", "details"]

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
    """Give the HTTP status and the provider's code of an error, and a hint what to do.

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


_COULD_NOT = "the server could not be reached"


def _causing(error: BaseException) -> Iterator[BaseException]:
    """Give an error, and the errors that it was raised from."""
    at: BaseException | None = error
    for _ in range(_DEEPEST):
        if at is None:
            return
        yield at
        at = at.__cause__


_DEEPEST = 10
