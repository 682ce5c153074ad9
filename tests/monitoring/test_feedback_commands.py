"""From a log to thresholds, figures and evaluation data, by the commands that users run."""

import json
import re
import sqlite3
import stat
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from commands import Outcome, Run, ran

from langchain_groundedness import (
    Citation,
    Claim,
    ClaimVerdict,
    Decision,
    JsonlAuditLog,
    SQLAuditLog,
)
from langchain_groundedness.audit import AuditedDocument, AuditRecord, Review, Versions
from langchain_groundedness.calibration import Calibration
from langchain_groundedness.types import Action

TEXT = "Rome is old. It rains in Bergen."
EDITED = "Rome is old. It rains a lot in Bergen."


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GROUNDEDNESS_AUDIT_DB", raising=False)
    monkeypatch.setenv("COLUMNS", "160")

    def go(*arguments: str) -> Outcome:
        return ran(capsys, *arguments)

    return go


def reviewed(
    number: int, action: Any, probability: float, *, decision: Action = "review"
) -> AuditRecord:
    cited = Citation(document=0, start=0, end=12, quote=TEXT[:12])
    verdicts = (
        ClaimVerdict(
            claim=Claim(id="c1", text=TEXT[:12], start=0, end=12),
            verdict="supported",
            support_probability=0.99,
            citations=(cited,),
            verifier="embedded",
        ),
        ClaimVerdict(
            claim=Claim(id="c2", text=TEXT[13:], start=13, end=len(TEXT)),
            verdict="supported",
            support_probability=probability,
            citations=(cited,),
            verifier="embedded",
        ),
    )
    waiting = Review(status="waiting") if decision == "review" else Review()
    decided = Review(
        status="decided",
        reviewer="ada",
        action=action,
        answer=EDITED if action == "edit" else None,
        note="seen",
        time=datetime.now(UTC),
    )
    return AuditRecord(
        time=datetime(2026, 3, 1, tzinfo=UTC) + timedelta(days=number % 3),
        question="How is Rome?",
        original_answer=TEXT,
        shown_answer=TEXT,
        verdict="grounded",
        trust_score=1.0,
        claims=verdicts,
        documents=(
            AuditedDocument(index=0, length=40, content="Rome is old. Bergen is wet."),
            AuditedDocument(index=1, length=40),
        ),
        decision=Decision(action=decision),
        query_class="<b>travel</b>" if number % 2 else None,
        timings={"check": 10.0 + number},
        review=waiting if action is None else decided,
    )


def marked(number: int, *, is_right: bool) -> AuditRecord:
    record = reviewed(number, "approve", 0.8 if is_right else 0.45)
    review = record.review.model_copy(update={"marks": {"c2": is_right}})
    return record.model_copy(update={"review": review})


def history() -> Iterator[AuditRecord]:
    """Approved answers are surer than rejected ones, and some wait."""
    for number in range(30):
        yield reviewed(number, "approve", 0.7 + number / 200)
        yield reviewed(number, "reject" if number % 2 else "edit", 0.4 + number / 200)
    for number in range(5):
        yield reviewed(number, None, 0.5)


@pytest.fixture
def log_file(tmp_path: Path) -> Path:
    path = tmp_path / "audit.jsonl"
    with JsonlAuditLog(path, fsync=False) as log:
        for record in history():
            log.record(record)
    return path


@pytest.fixture
def database(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path}/audit.db"
    with SQLAuditLog(url) as log:
        for record in history():
            log.record(record)
    return url


def failure(outcome: Outcome) -> str:
    assert outcome.code == 2
    assert outcome.out == ""
    assert outcome.err.count("\n") == 1
    return outcome.err


def test_reviewed_answers_give_thresholds_that_a_checker_loads(
    run: Run, database: str, tmp_path: Path
) -> None:
    other = run("calibrate", "--db", database, "--precision", "0.9", "--plot", "c.gif")
    assert "--plot draws .svg or .png, not .gif" in failure(other)
    drawn = run("calibrate", "--db", database, "--precision", "0.9", "--plot", "c.png")
    assert drawn.code == 0
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    outcome = run("calibrate", "--db", database, "--precision", "0.9", "--plot", "c.svg")
    assert outcome.code == 0, outcome.err
    assert "in-sample" in outcome.out
    assert "cross-validated" in outcome.out
    assert "the samples are what reviewers saw" in outcome.out
    found = Calibration.load(tmp_path / "calibration.json")
    assert 0.5 < found.threshold("support") <= 0.7
    assert found.chosen["support"].samples == 60
    drawing = ET.fromstring((tmp_path / "c.svg").read_text(encoding="utf-8"))  # noqa: S314  (ours)
    assert drawing.tag.endswith("svg")


def test_file_and_database_give_the_same_thresholds(
    run: Run, database: str, log_file: Path, tmp_path: Path
) -> None:
    assert run("calibrate", "--db", database, "--recall", "0.9", "--out", "a.json").code == 0
    assert run("calibrate", "--log", str(log_file), "--recall", "0.9", "--out", "b.json").code == 0
    one, other = (Calibration.load(tmp_path / name) for name in ("a.json", "b.json"))
    assert one.chosen["support"].threshold == other.chosen["support"].threshold


@pytest.mark.parametrize("kind", ["file", "database"])
def test_marks_of_claims_reach_thresholds_figures_and_evaluation_data(
    run: Run, tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "marked.jsonl"
    where = ("--log", str(path)) if kind == "file" else ("--db", f"sqlite:///{path}")
    log = JsonlAuditLog(path) if kind == "file" else SQLAuditLog(where[1])
    with log:
        for number in range(50):
            log.record(marked(number, is_right=number % 2 == 0))
    outcome = run("calibrate", *where, "--precision", "0.9", "--json")
    assert outcome.code == 0, outcome.err
    support = json.loads(outcome.out)["chosen"]["support"]
    assert (support["unit"], support["samples"], support["good"]) == ("claim", 50, 25)
    assert 0.45 < support["threshold"] <= 0.8
    out = run("stats", *where).out
    assert re.search(r"supported +25 +25 +50\.0%", out)
    assert run("export-reviews", *where, "--unit", "claim", "--out", "rows.jsonl").code == 0
    lines = (tmp_path / "rows.jsonl").read_text(encoding="utf-8").splitlines()
    labels = [row["label"] for row in map(json.loads, lines) if row["marked"]]
    assert sorted(labels) == ["supported"] * 25 + ["unsupported"] * 25


def test_labelled_claims_with_probabilities_need_no_check(run: Run, tmp_path: Path) -> None:
    rows = [
        {"claim": f"c{n}", "support_probability": n / 60, "label": n > 30, "verifier": "mine"}
        for n in range(60)
    ]
    write_rows(tmp_path / "rows.jsonl", rows)
    outcome = run("calibrate", "--labels", "rows.jsonl", "--precision", "0.95", "--json")
    assert outcome.code == 0, outcome.err
    found = json.loads(outcome.out)
    assert found["verifier"] == "mine"
    assert 0.48 < found["chosen"]["support"]["threshold"] <= 31 / 60


def test_labelled_claims_are_judged_by_the_embedded_verifier(run: Run, tmp_path: Path) -> None:
    rows = [
        {
            "claim": f"The {n}th house is {'green' if right else 'blue'}.",
            "documents": [f"The {n}th house is green."],
            "label": "supported" if right else "contradicted",
        }
        for n in range(1, 23)
        for right in (True, False)
    ]
    write_rows(tmp_path / "rows.jsonl", rows)
    outcome = run("calibrate", "--labels", "rows.jsonl", "--recall", "0.9", "--json")
    assert outcome.code == 0, outcome.err
    found = json.loads(outcome.out)
    assert found["verifier"] == "embedded"
    assert found["chosen"]["support"]["groups"] == 22


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "line 2: Invalid JSON"),
        ("[1]", "line 2: Input should be an object"),
        ('{"claim": "x", "documents": ["y"], "label": "perhaps"}', "line 2: label: not known"),
        ('{"claim": "x", "documents": ["y"]}', "line 2: label: Field required"),
        ('{"claim": "x", "answer": "x", "documents": ["y"], "label": 1}', "claim or answer"),
        ('{"claim": "x", "documents": [" "], "label": 1}', "line 2: documents: required"),
        (
            '{"claim": "x", "documents": [1], "label": 1}',
            "line 2: documents: 0: Input should be a valid string",
        ),
        (
            '{"claim": " ", "documents": ["y"], "label": 1}',
            "line 2: claim: String should have at least 1 character",
        ),
        (
            '{"claim": "x", "support_probability": 2, "label": 1}',
            "line 2: support_probability: Input should be less than or equal to 1",
        ),
        (
            '{"claim": "x", "verdict": "so", "label": 1}',
            "line 2: verdict: Input should be 'supported'",
        ),
        ('{"answer": "x", "claims": [{}], "label": 1}', "line 2: claims: 0: each needs a verdict"),
    ],
)
def test_line_that_cannot_be_read_is_named_and_not_shown(
    run: Run, tmp_path: Path, line: str, said: str
) -> None:
    good = '{"claim": "secret", "support_probability": 0.5, "label": true}'
    (tmp_path / "rows.jsonl").write_text(f"{good}\n{line}\n", encoding="utf-8")
    err = failure(run("calibrate", "--labels", "rows.jsonl", "--precision", "0.9"))
    assert "rows.jsonl" in err
    assert said in err
    assert "secret" not in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("calibrate", "--precision", "0.9"),
            "give exactly one of --db, --log and --labels; got none",
        ),
        (("calibrate", "--log", "no.jsonl", "--recall", "0.9"), "no audit log at no.jsonl"),
        (("calibrate", "--db", "sqlite:///no.db", "--recall", "0.9"), "no audit log at"),
        (("calibrate", "--labels", "no.jsonl", "--recall", "0.9"), "no.jsonl: No such file"),
        (("calibrate", "--labels", "x"), "give either --precision or --recall"),
        (("stats",), "give exactly one of --db and --log; got none"),
        (("stats", "--db", "x", "--log", "y"), "--db and --log; got --db and --log"),
        (("stats", "--log", "no.jsonl"), "no audit log at no.jsonl"),
        (("export-reviews", "--db", "sqlite:///no.db", "--out", "o"), "no audit log at"),
    ],
)
def test_command_that_cannot_run_says_so_in_one_line(
    run: Run, arguments: tuple[str, ...], said: str
) -> None:
    assert said in failure(run(*arguments))


@pytest.mark.parametrize(
    ("arguments", "kept"),
    [
        (("calibrate", "--labels", "x.jsonl", "--recall", "0.9", "--out", "x.jsonl"), "x.jsonl"),
        (
            ("calibrate", "--log", "audit.jsonl", "--recall", "1", "--out", "audit.jsonl"),
            "audit.jsonl",
        ),
        (("stats", "--log", "audit.jsonl", "--html", "./audit.jsonl"), "audit.jsonl"),
        (("stats", "--db", "sqlite:///audit.jsonl", "--html", "audit.jsonl"), "audit.jsonl"),
    ],
)
def test_an_output_that_is_an_input_is_refused_and_the_input_is_kept(
    run: Run, log_file: Path, arguments: tuple[str, ...], kept: str
) -> None:
    rows = [{"claim": f"c{n}", "support_probability": n / 60, "label": n > 30} for n in range(60)]
    write_rows(log_file.with_name("x.jsonl"), rows)
    path = log_file.with_name(kept)
    before = path.read_bytes()
    assert f"{path.name} is also an input and would overwrite it" in failure(run(*arguments))
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "command", [("stats",), ("calibrate", "--recall", "0.9"), ("export-reviews", "--out", "o")]
)
def test_a_database_of_another_application_is_refused_and_left_as_it_is(
    run: Run, tmp_path: Path, command: tuple[str, ...]
) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE orders (id INTEGER)")
    before = path.read_bytes()
    err = failure(run(*command, "--db", f"sqlite:///{path}"))
    assert f"there is no audit log in sqlite:///{path}" in err
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["other.db"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--precision", "90"), "--precision must be above 0 and at most 1, got 90.0"),
        (("--recall", "0.9", "--out", "gone/c.json"), "gone/c.json: No such file or directory"),
        (("--recall", "0.9", "--out", "."), ".: Is a directory"),
        (("--recall", "0.9", "--plot", "gone/c.svg"), "gone/c.svg: No such file or directory"),
    ],
)
def test_calibrate_refuses_its_options_before_it_reads_the_labels(
    run: Run, options: tuple[str, ...], said: str
) -> None:
    assert said in failure(run("calibrate", "--labels", "not_read.jsonl", *options))


def test_a_plot_does_not_replace_the_thresholds(run: Run) -> None:
    same = ("--out", "c.svg", "--plot", "c.svg")
    err = failure(run("calibrate", "--labels", "x.jsonl", "--recall", "0.9", *same))
    assert "--plot c.svg is also --out and would overwrite it" in err


def test_too_few_reviews_are_refused_with_what_is_missing(run: Run, tmp_path: Path) -> None:
    with JsonlAuditLog(tmp_path / "few.jsonl", fsync=False) as log:
        log.record(reviewed(1, "approve", 0.9))
    err = failure(run("calibrate", "--log", "few.jsonl", "--precision", "0.9"))
    assert "1 right answer and 0 wrong answers, and at least 20 and 20 are needed" in err
    assert "label 19 more right answers and 20 more wrong answers\n" in err
    assert err.count("answers") == 3, "said once, not for each threshold"
    assert not (tmp_path / "calibration.json").exists()


def test_decisions_that_can_still_be_undone_are_counted(run: Run, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/held.db"
    with SQLAuditLog(url) as log:
        for number in range(2):
            log.record(record := reviewed(number, None, 0.5))
            log.flush()
            log.decide(record.id, revision=0, reviewer="ada", action="approve", hold=3600)
    outcome = run("export-reviews", "--db", url, "--out", "out.jsonl")
    assert "0 rows written" in outcome.out
    assert outcome.err == "2 decisions can still be undone and are not exported yet\n"
    said = failure(run("calibrate", "--db", url, "--precision", "0.9"))
    assert said.endswith("; 2 decisions can still be undone and are not read yet\n")


def test_check_takes_a_calibration(run: Run, tmp_path: Path) -> None:
    (tmp_path / "doc.txt").write_text("Rome is old.", encoding="utf-8")
    (tmp_path / "bad.json").write_text("{}", encoding="utf-8")
    err = failure(
        run("check", "--answer", "Rome is old.", "--documents", "doc.txt",
            "--calibration", "bad.json")
    )  # fmt: skip
    assert "bad.json" in err


def test_stats_count_by_day_model_and_class(run: Run, database: str) -> None:
    outcome = run("stats", "--db", database, "--json")
    assert outcome.code == 0, outcome.err
    found = json.loads(outcome.out)
    assert found["total"]["answers"] == 65
    assert found["total"]["waiting"] == 5
    assert found["total"]["approved"] == 30
    assert found["total"]["overruled"] == 0
    assert [day["name"] for day in found["days"]] == ["2026-03-01", "2026-03-02", "2026-03-03"]
    assert sum(day["answers"] for day in found["days"]) == 65
    assert {group["name"] for group in found["query_classes"]} == {"(unknown)", "<b>travel</b>"}


def test_stats_are_whole_in_a_terminal_of_80_columns(
    run: Run, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    out = run("stats", "--db", database).out
    assert "\N{HORIZONTAL ELLIPSIS}" not in out
    assert "2026-03-02" in out
    heads = ["answers", "supported", "pass", "flag", "review", "block", "overruled", "ms 95%"]
    assert all(head in out for head in heads)


def test_the_name_of_the_embedded_verifier_and_long_times_fit_into_80_columns(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    made_by = {"versions": Versions(verifier="EmbeddedVerifier"), "timings": {"check": 1843.2}}
    with JsonlAuditLog(tmp_path / "a.jsonl", fsync=False) as log:
        for record in history():
            log.record(record.model_copy(update=made_by))
    outcome = run("stats", "--log", "a.jsonl", "--html", "stats.html")
    assert " Embedded " in outcome.out
    assert max(map(len, outcome.out.splitlines())) <= 80
    page = (tmp_path / "stats.html").read_text(encoding="utf-8")
    assert re.search(r">1,8\d\d</td>", page)
    assert "e+0" not in page


def test_stats_page_escapes_what_comes_from_outside_and_runs_nothing(
    run: Run, log_file: Path, tmp_path: Path
) -> None:
    outcome = run("stats", "--log", str(log_file), "--html", "stats.html")
    assert outcome.code == 0, outcome.err
    assert "Query class" in outcome.out
    page = (tmp_path / "stats.html").read_text(encoding="utf-8")
    assert "&lt;b&gt;travel&lt;/b&gt;" in page
    assert "<b>travel" not in page
    assert "<script" not in page
    assert "default-src 'none'" in page
    assert "src=" not in page
    assert set(re.findall(r'href="(.)', page)) == {"#"}


def test_stats_can_be_narrowed_to_days(run: Run, log_file: Path) -> None:
    outcome = run(
        "stats", "--log", str(log_file), "--since", "2026-03-02", "--until", "2026-03-03", "--json"
    )
    assert [day["name"] for day in json.loads(outcome.out)["days"]] == ["2026-03-02"]


def test_empty_log_is_said_to_be_empty(run: Run, tmp_path: Path) -> None:
    (tmp_path / "audit.jsonl").touch()
    assert "holds no records" in run("stats", "--log", "audit.jsonl").out


def test_export_holds_what_reviewers_said_and_calibrate_reads_it(
    run: Run, database: str, tmp_path: Path
) -> None:
    outcome = run("export-reviews", "--db", database, "--out", "out.jsonl")
    assert outcome.code == 0, outcome.err
    assert "60 rows written" in outcome.out
    assert stat.S_IMODE((tmp_path / "out.jsonl").stat().st_mode) == 0o600
    rows = read_rows(tmp_path / "out.jsonl")
    assert rows[0]["documents"] == ["Rome is old. Bergen is wet."]
    assert rows[0]["documents_left_out"] == 1
    assert rows[0]["note"] == "seen"
    by_action = {row["action"]: row for row in rows}
    assert by_action["approve"]["label"] == "supported"
    assert by_action["edit"]["corrected_answer"] == EDITED
    labels = {name: [c["label"] for c in row["claims"]] for name, row in by_action.items()}
    assert labels == {
        "approve": ["supported", "supported"],
        "edit": ["supported", "unsupported"],
        "reject": [None, None],
    }
    assert run("calibrate", "--labels", "out.jsonl", "--precision", "0.9").code == 0
    exported = Calibration.load(tmp_path / "calibration.json").threshold("support")
    assert 0.5 < exported <= 0.7


def test_export_by_claim_leaves_out_claims_without_a_label(
    run: Run, database: str, tmp_path: Path
) -> None:
    outcome = run("export-reviews", "--db", database, "--out", "out.jsonl", "--unit", "claim")
    rows = read_rows(tmp_path / "out.jsonl")
    assert len(rows) == 30 * 2 + 15 * 2
    assert {row["claim"] for row in rows} == {"Rome is old.", "It rains in Bergen."}
    assert "15 records left out: no label follows for a claim" in outcome.err


@pytest.mark.parametrize("content", ["hash", "none"])
def test_records_without_texts_are_left_out_and_counted(
    run: Run, tmp_path: Path, content: str
) -> None:
    kept = "hash" if content == "hash" else "none"
    with JsonlAuditLog(tmp_path / "a.jsonl", content=kept, fsync=False) as log:  # type: ignore[arg-type]  # one of them
        log.record(reviewed(1, "approve", 0.9))
    outcome = run("export-reviews", "--log", "a.jsonl", "--out", "out.jsonl")
    assert outcome.code == 0
    assert (tmp_path / "out.jsonl").read_text(encoding="utf-8") == ""
    assert f"1 record left out: texts are not kept (content='{content}')" in outcome.err


def test_a_record_whose_claims_have_no_citation_is_exported_with_its_documents(
    run: Run, tmp_path: Path
) -> None:
    texts = ("Rome is old.", "Bergen is wet.")
    documents = (
        AuditedDocument(index=n, length=len(text), content=text) for n, text in enumerate(texts)
    )
    whole = reviewed(1, "reject", 0.9).model_copy(update={"documents": tuple(documents)})
    claims = tuple(claim.model_copy(update={"citations": ()}) for claim in whole.claims)
    with JsonlAuditLog(tmp_path / "a.jsonl", fsync=False) as log:
        log.record(whole.model_copy(update={"claims": claims}))
    outcome = run("export-reviews", "--log", "a.jsonl", "--out", "out.jsonl")
    [row] = read_rows(tmp_path / "out.jsonl")
    assert row["documents"] == list(texts)
    assert row["documents_left_out"] == 0
    assert "left out" not in outcome.err


def test_where_nobody_has_reviewed_calibrate_says_how_many_wait(run: Run, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/new.db"
    with SQLAuditLog(url) as log, JsonlAuditLog(tmp_path / "new.jsonl", fsync=False) as file:
        for number in range(3):
            log.record(reviewed(number, None, 0.5))
            file.record(reviewed(number, None, 0.5))
    for source in (("--db", url), ("--log", "new.jsonl")):
        said = failure(run("calibrate", *source, "--precision", "0.9"))
        assert said.endswith("no record has been reviewed yet; waiting for a reviewer: 3\n")


def test_a_file_without_labels_is_named(run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").touch()
    said = failure(run("calibrate", "--labels", "empty.jsonl", "--precision", "0.9"))
    assert "empty.jsonl: it contains no labelled claim or answer" in said


def test_a_file_that_is_no_audit_log_is_refused_with_a_hint(run: Run, tmp_path: Path) -> None:
    (tmp_path / "other.txt").write_text("shopping: milk\n", encoding="utf-8")
    outcome = run("stats", "--log", "other.txt")
    assert outcome.code == 2
    assert "none of its lines is a record of an audit log" in outcome.err


def test_a_time_without_records_is_said_to_be_one(run: Run, log_file: Path) -> None:
    outcome = run("stats", "--log", str(log_file), "--since", "2031-01-01")
    assert "no records in this time" in outcome.out


def test_a_page_that_cannot_be_written_is_no_log_that_cannot_be_read(
    run: Run, log_file: Path
) -> None:
    said = failure(run("stats", "--log", str(log_file), "--html", "missing/stats.html"))
    assert said.startswith("cannot write: missing/stats.html: No such file")


def test_names_to_be_typed_are_whole_in_a_narrow_terminal(
    run: Run, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    outcome = run("calibrate", "--db", database, "--precision", "0.9")
    assert "…" not in outcome.out
    assert max(map(len, outcome.out.splitlines())) <= 80


def test_export_does_not_write_over_a_file(run: Run, log_file: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.jsonl").write_text("mine", encoding="utf-8")
    err = failure(run("export-reviews", "--log", str(log_file), "--out", "mine.jsonl"))
    assert "the file exists already" in err
    assert (tmp_path / "mine.jsonl").read_text(encoding="utf-8") == "mine"


def write_rows(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


def read_rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="ascii").splitlines()]
