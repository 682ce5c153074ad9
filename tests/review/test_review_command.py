"""`langchain-groundedness review`: what it prints, and what it refuses."""

import json
import re
import socket
from pathlib import Path
from typing import Any

import pytest
from commands import Outcome, Run, ran

from langchain_groundedness import SQLAuditLog
from langchain_groundedness.review import server as serving
from review.records import record


@pytest.fixture
def url(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path / 'audit.db'}"
    with SQLAuditLog(url, on_store_down="raise") as log:
        log.record(record())
    return url


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What would be served, without a server."""
    served: list[Any] = []
    monkeypatch.setattr(serving, "serve", lambda app, taken: served.append((app, taken)))
    return served


@pytest.fixture
def review(
    served: list[Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    for name in ("GROUNDEDNESS_AUDIT_DB", "GROUNDEDNESS_REVIEW_TOKEN"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments: str) -> Outcome:
        outcome = ran(capsys, "review", *arguments)
        for _, taken in served:
            taken.close()
        return outcome

    return run


@pytest.mark.enable_socket
def test_the_address_is_printed_once_with_a_new_token_each_time(review: Run, url: str) -> None:
    tokens = set()
    for _ in range(2):
        code, out, err = review("--db", url, "--port", "0")
        assert (code, err) == (0, "")
        assert "1 waiting" in out
        (token,) = re.findall(r"http://127\.0\.0\.1:\d+/login\?token=([\w-]{43})\n", out)
        tokens.add(token)
    assert len(tokens) == 2


@pytest.mark.enable_socket
def test_json_tells_the_address_in_one_line(review: Run, url: str) -> None:
    _, out, _ = review("--db", url, "--port", "0", "--json")
    found = json.loads(out)
    assert found["waiting"] == 1
    assert found["address"].startswith("http://127.0.0.1:")
    assert out.count("\n") == 1


@pytest.mark.enable_socket
def test_a_token_that_was_given_is_not_printed(
    review: Run, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for arguments in (("--token", "given-by-the-user"), ()):
        code, out, _ = review("--db", url, "--port", "0", *arguments)
        assert code == 0
        assert "given" not in out
        monkeypatch.setenv("GROUNDEDNESS_REVIEW_TOKEN", "given-by-the-user")


@pytest.mark.enable_socket
def test_an_address_that_others_can_reach_brings_a_warning(
    review: Run, url: str, served: list[Any]
) -> None:
    code, out, err = review("--db", url, "--host", "0.0.0.0", "--port", "0")  # noqa: S104  (warned of)
    assert code == 0
    assert "http://127.0.0.1:" in out
    assert "nothing is encrypted" in err
    assert served


@pytest.mark.enable_socket
def test_a_port_that_is_taken_is_named(review: Run, url: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        code, out, err = review("--db", url, "--port", port)
    assert (code, out) == (2, "")
    assert f"cannot listen on 127.0.0.1 port {port}" in err
    assert "--port" in err


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "example.org"])  # noqa: S104  (refused)
def test_doing_without_a_login_needs_loopback(review: Run, url: str, host: str) -> None:
    code, _, err = review("--db", url, "--host", host, "--no-login")
    assert code == 2
    assert "--no-login would let in everybody" in err


def test_a_database_that_is_not_there_is_not_made(review: Run, tmp_path: Path) -> None:
    path = tmp_path / "none.db"
    code, _, err = review("--db", f"sqlite:///{path}")
    assert code == 2
    assert f"there is no audit log at {path}" in err
    assert not path.exists()


@pytest.mark.parametrize("given", ["mysql://u:secret@h/d", "secret", "sqlite://", "sqlite:///"])
def test_a_database_that_cannot_be_one_is_refused_without_its_password(
    review: Run, given: str
) -> None:
    code, _, err = review("--db", given)
    assert code == 2
    assert "accepted: sqlite:///" in err
    assert "secret" not in err


def test_a_short_token_is_refused(review: Run, url: str) -> None:
    code, _, err = review("--db", url, "--token", "short")
    assert code == 2
    assert "at least 16 characters" in err
    assert "short" not in err.replace("at least", "")


@pytest.mark.enable_socket
@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", "http://127.0.0.1:"),
        ("localhost", "http://localhost:"),
        ("0.0.0.0", "http://127.0.0.1:"),  # noqa: S104  (the address shown)
    ],
)
def test_the_address_can_be_opened_on_this_machine(host: str, address: str) -> None:
    with serving.listen(host, 0) as taken:
        assert serving.address_of(host, taken) == f"{address}{taken.getsockname()[1]}"


def test_addresses_of_version_6_stand_in_brackets() -> None:
    class Taken:
        def getsockname(self) -> Any:
            return ("::", 80, 0, 0)

    taken: Any = Taken()
    assert serving.address_of("::1", taken) == serving.address_of("::", taken) == "http://[::1]:80"
