import httpx
import pytest

from langchain_groundedness.exceptions import cause


class WaitingTimeoutError(ConnectionError):
    """Such as clients raise that count a timeout among the errors of a connection."""


def wrapped(error: Exception) -> Exception:
    outer = RuntimeError()
    outer.__cause__ = error
    return outer


@pytest.mark.parametrize(
    "error",
    [
        httpx.ConnectTimeout("secret"),
        httpx.ConnectError("secret"),
        ConnectionRefusedError("secret"),
        wrapped(httpx.ConnectTimeout("secret")),
    ],
)
def test_a_server_that_was_not_reached_is_said(error: Exception) -> None:
    assert cause(error) == f"{type(error).__name__} (the server could not be reached)"


@pytest.mark.parametrize(
    "error",
    [
        httpx.ReadTimeout("secret"),
        WaitingTimeoutError("secret"),
        wrapped(httpx.ReadTimeout("secret")),
    ],
)
def test_a_client_that_gave_up_waiting_is_said(error: Exception) -> None:
    told = "its client gave up waiting; see the timeout of the client"
    assert cause(error) == f"{type(error).__name__} ({told})"


@pytest.mark.parametrize("error", [TimeoutError("secret"), ValueError("secret")])
def test_of_an_error_that_tells_nothing_the_name_is_all(error: Exception) -> None:
    assert cause(error) == type(error).__name__
