"""What the commands print with `--json` is what the reference says."""

import json
from pathlib import Path
from typing import Any

import pytest
from commands import ran
from pydantic import TypeAdapter
from test_repository import script

from langchain_groundedness import Decision, JsonlAuditLog
from langchain_groundedness.audit import AuditRecord, Review
from langchain_groundedness.cli import COMMANDS

OUTPUTS: dict[str, Any] = script("command_help").OUTPUTS
ROW = {"id": "a", "answer": "Rome is in Italy.", "contexts": ["Rome is in Italy."], "label": True}
WRONG = {**ROW, "id": "b", "answer": "Rome is in Spain.", "label": False}
LABELLED = [
    {"claim": "Rome is old.", "documents": [f"Rome is an old city. {n}"], "label": n % 2 == 0,
     "verdict": "supported", "support_probability": n / 100, "verifier": "embedded"}
    for n in range(100)
]  # fmt: skip

RUNS = {
    "demo": [],
    "check": ["--answer", "Rome is in Spain.", "rome.txt"],
    "evaluate": ["rows.jsonl", "--metric", "faithfulness", "-o", "run.jsonl"],
    "report": ["run.jsonl", "--compare", "run.jsonl", "--fail-under", "faithfulness=0"],
    "validate": ["rows.jsonl", "--passed", "p.jsonl", "--rejected", "r.jsonl"],
    "calibrate": ["--labels", "labels.jsonl", "--recall", "0.5"],
    "stats": ["--log", "audit.jsonl"],
    "export-reviews": ["--log", "audit.jsonl", "--out", "reviewed.jsonl"],
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rome.txt").write_text("Rome is in Italy.", encoding="utf-8")
    for name, rows in {"rows": [ROW, WRONG], "labels": LABELLED}.items():
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    with JsonlAuditLog(tmp_path / "audit.jsonl", fsync=False) as log:
        review = Review(status="decided", action="reject", reviewer="Ann")
        block = Decision(action="block")
        log.record(AuditRecord(verdict="ungrounded", decision=block, review=review))


def test_every_command_has_a_described_output() -> None:
    assert set(OUTPUTS) == {name for group in COMMANDS.values() for name in group}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", RUNS)
def test_the_output_is_as_described(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    if name == "report":
        ran(capsys, "evaluate", *RUNS["evaluate"])
    outcome = ran(capsys, name, *RUNS[name], "--json")
    assert outcome.code in {0, 1}, outcome.err
    found = json.loads(outcome.out)
    schema = TypeAdapter(OUTPUTS[name]).json_schema(mode="serialization")
    assert set(found) == set(schema["properties"])
    TypeAdapter(OUTPUTS[name]).validate_json(outcome.out)
