"""Who may see the review page, and which forms are believed."""

import logging
import re
from collections.abc import Callable
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from langchain_groundedness import ConfigurationError, SQLAuditLog
from langchain_groundedness.audit import AuditRecord
from langchain_groundedness.review import create_review_app
from langchain_groundedness.review.sessions import FailedAttempts
from review.conftest import FORM, TOKEN, Browser
from review.records import record

Keep = Callable[..., AuditRecord]


def status(log: SQLAuditLog, kept: AuditRecord) -> str:
    found = log.get(kept.id)
    assert found
    return found.review.status


@pytest.mark.parametrize("path", ["/", "/records/record-0", "/next", "/name"])
def test_strangers_see_nothing_but_the_sign_in_page(app: Any, keep: Keep, path: str) -> None:
    keep(record())
    page = Browser(app, name=None).get(path)
    assert page.url.path == "/login"
    assert "revenue" not in page.text.lower()


def test_the_token_may_come_in_the_address_or_in_the_form(app: Any) -> None:
    by_address, by_form = Browser(app, name=None), Browser(app, name=None)
    assert by_address.get("/login", token=TOKEN).status_code == 200
    by_form.get("/login")
    by_form.post("/login", token=TOKEN)
    for browser in (by_address, by_form):
        assert browser.get("/").url.path == "/name"


@pytest.mark.parametrize("wrong", ["", "x", TOKEN[:-1], f"{TOKEN} ", "é", TOKEN.upper()])
def test_a_wrong_token_lets_nobody_in(app: Any, wrong: str) -> None:
    browser = Browser(app, name=None)
    assert browser.get("/login", token=wrong).status_code == 403
    assert browser.post("/login", token=wrong).status_code == 403
    assert browser.get("/").url.path == "/login"


def test_attempts_to_sign_in_with_a_wrong_token_are_limited(app: Any) -> None:
    browser = Browser(app, name=None)
    tried = [browser.get("/login", token=f"wrong{n}").status_code for n in range(12)]
    assert tried == [403] * 10 + [429] * 2
    assert browser.get("/login", token=TOKEN).status_code == 429


def test_an_address_may_try_again_after_a_minute() -> None:
    now = [0.0]
    failed = FailedAttempts(lambda: now[0])
    for _ in range(10):
        failed.add("1.2.3.4")
    assert failed.too_many("1.2.3.4")
    assert not failed.too_many("1.2.3.5")
    now[0] = 61.0
    assert not failed.too_many("1.2.3.4")


def test_attempts_are_limited_however_many_other_addresses_try() -> None:
    failed = FailedAttempts(lambda: 0.0)
    for n in range(1_000):
        failed.add(f"2001:db8::{n:x}")
    for _ in range(10):
        failed.add("1.2.3.4")
    assert failed.too_many("1.2.3.4")


def test_a_token_of_fewer_than_16_characters_is_refused(log: SQLAuditLog) -> None:
    with pytest.raises(ConfigurationError, match="at least 16 characters, got 5"):
        create_review_app(log, token="short")  # noqa: S106  (refused)


def test_the_cookie_is_out_of_reach_and_changes_at_sign_in(app: Any) -> None:
    browser = Browser(app, name=None)
    before = browser.get("/login")
    (cookie,) = before.headers.get_list("set-cookie")
    assert re.fullmatch(
        r"groundedness-review-8321=[\w-]{43}; HttpOnly; Path=/; SameSite=strict", cookie
    )
    after = browser.get("/login", token=TOKEN).headers["set-cookie"]
    assert after.split(";")[0] != cookie.split(";")[0]
    assert TOKEN not in after


def test_the_cookie_is_only_sent_encrypted_where_the_page_is(app: Any) -> None:
    page = TestClient(app, base_url="https://localhost").get("/login")
    assert "Secure" in page.headers["set-cookie"]


@pytest.mark.parametrize("value", ["x", "a" * 43, "a" * 43 + "=", "%00"])
def test_an_invented_cookie_is_nobody(app: Any, value: str) -> None:
    client = TestClient(app, base_url="http://localhost:8321")
    page = client.get("/", headers={"cookie": f"groundedness-review-8321={value}"})
    assert page.url.path == "/login"


def test_signing_out_ends_the_session_for_good(ada: Browser) -> None:
    cookies = dict(ada.http.cookies)
    ada.get("/")
    assert ada.post("/logout").url.path == "/login"
    ada.http.cookies.update(cookies)
    assert ada.get("/").url.path == "/login"


@pytest.mark.parametrize("name", ["", "  ", "x" * 81, "a\u202eb"])
def test_a_reviewer_must_have_a_name(app: Any, name: str) -> None:
    browser = Browser(app, name=None)
    browser.get("/login", token=TOKEN)
    assert browser.get("/").url.path == "/name"
    assert browser.post("/name", name=name).status_code == 422
    assert browser.get("/").url.path == "/name"


def test_without_a_login_a_name_is_still_asked_for(log: SQLAuditLog) -> None:
    browser = Browser(create_review_app(log, token=None), name=None)
    assert browser.get("/").url.path == "/name"
    page = browser.post("/name", name="Ada")
    assert page.url.path == "/"
    assert "Sign out" not in page.text


# --- forms ---

FORMS = {
    "/records/record-0": {"action": "approve", "revision": "0"},
    "/logout": {},
    "/name": {"name": "Eve"},
    "/login": {"token": TOKEN},
}


@pytest.mark.parametrize("path", FORMS)
@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://localhost:9999"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "none"},
    ],
)
def test_a_form_of_another_site_is_refused(
    ada: Browser, log: SQLAuditLog, keep: Keep, path: str, headers: dict[str, str]
) -> None:
    kept = keep(record())
    ada.get(f"/records/{kept.id}")
    answer = ada.post(path, headers=headers, **FORMS[path])
    assert answer.status_code == 403
    assert status(log, kept) == "waiting"
    assert "Ada" in ada.get("/").text


@pytest.mark.parametrize("path", FORMS)
@pytest.mark.parametrize("token", ["", "0" * 64, "é"])
def test_a_form_without_the_right_token_is_refused(
    ada: Browser, log: SQLAuditLog, keep: Keep, path: str, token: str
) -> None:
    kept = keep(record())
    assert ada.post(path, form_token=token, **FORMS[path]).status_code == 403
    assert status(log, kept) == "waiting"
    assert "Ada" in ada.get("/").text


def test_a_token_of_another_browser_does_not_fit(app: Any, ada: Browser, keep: Keep) -> None:
    kept = keep(record())
    eve = Browser(app, name="Eve")
    eve.get("/")
    assert ada.decide(kept, "approve", form_token=eve.form_token).status_code == 403


@pytest.mark.parametrize("kind", ["multipart/form-data; boundary=x", "application/json", ""])
def test_other_kinds_of_body_are_no_forms(
    ada: Browser, log: SQLAuditLog, keep: Keep, kind: str
) -> None:
    kept = keep(record())
    ada.get(f"/records/{kept.id}")
    body = f'{{"form_token": "{ada.form_token}", "action": "approve", "revision": "0"}}'
    answer = ada.http.post(f"/records/{kept.id}", content=body, headers={"content-type": kind})
    assert answer.status_code == 403
    assert status(log, kept) == "waiting"


def test_who_was_signed_out_gets_the_text_back(app: Any, ada: Browser, keep: Keep) -> None:
    kept = keep(record())
    ada.get(f"/records/{kept.id}")
    token = ada.form_token
    other = Browser(app, name=None)
    other.http.cookies.update(dict(ada.http.cookies))
    other.form_token = token
    other.post("/logout")
    page = ada.decide(kept, "edit", form_token=token, answer="My long text", note="My note")
    assert page.status_code == 403
    assert "My long text</textarea>" in page.text
    assert "Sign in" in page.text


def test_no_decision_can_be_made_by_following_a_link(
    ada: Browser, log: SQLAuditLog, keep: Keep
) -> None:
    kept = keep(record())
    ada.get(f"/records/{kept.id}", action="approve", revision=0, form_token=ada.form_token)
    assert status(log, kept) == "waiting"
    assert ada.http.get("/logout").status_code == 405
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        assert ada.http.request(method, f"/records/{kept.id}").status_code == 405


# --- hosts, headers, sizes ---


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "localhost.evil.example", "evil.example:8321", "10.0.0.7", "", "a b"),
        *("[::1", "[::1]x", "localhost:80x", "a@localhost", "localhost/x", ":80"),
    ],
)
def test_a_server_asked_for_by_another_name_says_nothing(app: Any, host: str) -> None:
    answer = TestClient(app).get("/login", headers={"host": host})
    assert answer.status_code == 400
    assert "token" not in answer.text.lower()


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:1", "127.0.0.1:8321", "[::1]:8321", "[::1]"]
)
def test_names_of_this_machine_are_known(app: Any, host: str) -> None:
    assert TestClient(app).get("/login", headers={"host": host}).status_code == 200


def test_names_and_addresses_can_be_allowed(log: SQLAuditLog) -> None:
    app = create_review_app(log, token=TOKEN, allowed_hosts=["Review.Example"], any_address=True)
    found = {
        host: TestClient(app).get("/login", headers={"host": host}).status_code
        for host in ("review.example:80", "10.0.0.7", "[2001:db8::1]:80", "evil.example")
    }
    assert list(found.values()) == [200, 200, 200, 400]


@pytest.mark.parametrize("path", ["/login", "/static/review.css", "/nothing", "/records/x"])
def test_every_answer_carries_the_headers_that_protect_it(app: Any, path: str) -> None:
    headers = TestClient(app, base_url="http://localhost").get(path).headers
    policy = dict(
        part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";")
    )
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["form-action"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "same-origin"
    assert headers["cache-control"] == "no-store"


def test_a_refusal_carries_the_headers_too(app: Any) -> None:
    answer = TestClient(app).get("/", headers={"host": "evil.example"})
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")


def test_what_is_too_large_is_not_read(ada: Browser) -> None:
    ada.get("/")
    assert ada.post("/name", name="x" * (1 << 20)).status_code == 413
    assert ada.get("/", text="x" * 9_000).status_code == 414
    lying = {**FORM, "content-length": "-1"}
    assert ada.http.post("/name", content=b"", headers=lying).status_code == 413


def test_a_body_of_unknown_length_is_not_read_without_end(ada: Browser) -> None:
    def endless() -> Any:
        for _ in range(40):
            yield b"a" * 65_536

    assert ada.http.post("/name", content=endless(), headers=FORM).status_code == 413


def test_a_form_with_very_many_fields_is_no_form(ada: Browser) -> None:
    ada.get("/name")
    assert ada.post("/name", name="Bob", **{f"f{n}": "" for n in range(10_001)}).status_code == 403


def test_files_beside_the_static_ones_cannot_be_read(app: Any) -> None:
    client = TestClient(app, base_url="http://localhost")
    for path in (
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static/..%2fapp.py",
        "/static/",
    ):
        assert client.get(path).status_code == 404


def test_the_token_and_texts_are_in_no_log(
    app: Any, keep: Keep, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="langchain_groundedness")
    kept = keep(record())
    ada = Browser(app)
    ada.get("/login", token="x" * 20)
    ada.decide(kept, "reject", note="a note")
    ours = [entry for entry in caplog.records if entry.name.startswith("langchain_groundedness")]
    assert not any(TOKEN in e.getMessage() or "note" in e.getMessage() for e in ours)


def test_the_page_can_be_mounted_below_a_path(app: Any, keep: Keep) -> None:
    kept = keep(record())
    whole = Starlette(routes=[Mount("/reviews", app)])
    client = TestClient(whole, base_url="http://localhost")
    page = client.get("/reviews/login", params={"token": TOKEN})
    assert "Path=/reviews" in page.headers["set-cookie"]
    page = client.get("/reviews/")
    assert page.url.path == "/reviews/name"
    token = re.search(r'name="form_token" value="(\w+)"', page.text)
    assert token
    page = client.post("/reviews/name", data={"form_token": token[1], "name": "Ada"})
    assert page.url.path == "/reviews/"
    addresses = re.findall(r'(?:href|src|action)="(/[^"]*)"', page.text)
    assert addresses
    assert all(address.startswith("/reviews/") for address in addresses)
    assert client.get(f"/reviews/records/{kept.id}").status_code == 200
    assert client.get("/reviews/static/review.css").status_code == 200


def test_sockets_are_not_opened(app: Any) -> None:
    client = TestClient(app, base_url="http://localhost")
    with pytest.raises(WebSocketDisconnect) as refused, client.websocket_connect("/"):
        pass
    assert refused.value.code == 1008
