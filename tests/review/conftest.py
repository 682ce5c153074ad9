"""A review page over an audit log in a file."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from starlette.testclient import TestClient

from langchain_groundedness import SQLAuditLog
from langchain_groundedness.audit import AuditRecord
from langchain_groundedness.review import create_review_app

TOKEN = "a token that is long enough"  # noqa: S105  (of the tests)
FORM = {"content-type": "application/x-www-form-urlencoded"}


class Browser:
    """One browser of a reviewer, who has signed in."""

    def __init__(self, app: Any, name: str | None = "Ada", *, port: int = 8321) -> None:
        self.http = TestClient(app, base_url=f"http://localhost:{port}")
        self.form_token = ""
        if name is not None:
            assert self.get("/login", token=TOKEN).status_code == 200
            self.get("/name")
            assert self.post("/name", name=name).url.path == "/"

    def get(self, path: str, **query: Any) -> Any:
        address = f"{path}?{urlencode(query)}" if query else path
        return self._seen(self.http.get(address))

    def post(self, path: str, *, headers: Any = None, **form: Any) -> Any:
        body = urlencode({"form_token": self.form_token, **form})
        return self._seen(self.http.post(path, content=body, headers={**FORM, **(headers or {})}))

    def decide(self, record: AuditRecord, action: str, **form: Any) -> Any:
        revision = form.pop("revision", record.revision)
        return self.post(f"/records/{record.id}", action=action, revision=revision, **form)

    def _seen(self, response: Any) -> Any:
        found = re.search(r'name="form_token" value="(\w+)"', response.text)
        self.form_token = found[1] if found else self.form_token
        return response


@pytest.fixture
def log(tmp_path: Path) -> Iterator[SQLAuditLog]:
    with SQLAuditLog(f"sqlite:///{tmp_path / 'audit.db'}", on_store_down="raise") as log:
        yield log


@pytest.fixture
def keep(log: SQLAuditLog) -> Callable[..., AuditRecord]:
    def keep(*records: AuditRecord) -> AuditRecord:
        for each in records:
            log.record(each)
        log.flush()
        return records[0]

    return keep


@pytest.fixture
def app(log: SQLAuditLog) -> Any:
    return create_review_app(log, token=TOKEN)


@pytest.fixture
def ada(app: Any) -> Browser:
    return Browser(app)
