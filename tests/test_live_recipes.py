"""The recipes for front ends, where their packages are installed."""

import json
import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from langchain_groundedness.demo import ANSWER, QUESTION

FOLDER = Path(__file__).parent.parent / "cookbook" / "recipes"


def test_each_is_about_thirty_lines() -> None:
    for path in FOLDER.glob("*_app.py"):
        assert len(re.findall(r"^.*\S", path.read_text(encoding="utf-8"), re.MULTILINE)) <= 35


def test_fastapi_sends_the_text_and_the_events_of_the_guard() -> None:
    pytest.importorskip("fastapi")
    from starlette.testclient import TestClient  # noqa: PLC0415

    spec = spec_from_file_location("fastapi_app", FOLDER / "fastapi_app.py")
    assert spec is not None
    assert spec.loader is not None
    module: Any = module_from_spec(spec)
    spec.loader.exec_module(module)
    module.guard.checker.warm_up()
    response = TestClient(module.app).post("/ask", content=QUESTION)
    assert response.headers["content-type"].startswith("text/event-stream")
    found = re.findall(r"event: (.+)\ndata: (.+)\n\n", response.text)
    assert "".join(json.loads(data) for name, data in found if name == "text") == ANSWER
    names = [name for name, _ in found]
    for kind in ("claim", "verdict"):
        assert names.count(f"groundedness.{kind}") == 5
    for kind in ("correction", "retract"):
        assert names.count(f"groundedness.{kind}") == 3
    assert names[-2:] == ["groundedness.decision", "end"]


def test_streamlit_shows_the_answer_with_its_claims_marked() -> None:
    testing = pytest.importorskip("streamlit.testing.v1")
    app = testing.AppTest.from_file(FOLDER / "streamlit_app.py", default_timeout=300).run()
    app.button[0].click().run()
    assert not app.exception
    shown = "".join(element.proto.body for element in app.get("html"))
    assert "✗" in shown
    assert "[CORRECTED: $2.1B]" in "".join(each.value for each in app.markdown)
