"""Files of strangers: what never ends, what unpacks to more than it seems, what would run."""

import gzip
import json
import os
import zlib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from growth import assert_linear

from langchain_groundedness import ConfigurationError, DecisionPolicy, GroundednessError
from langchain_groundedness.calibration import Calibration
from langchain_groundedness.calibration.labelled_data import read_labelled
from langchain_groundedness.cli.check import read_answer, read_documents
from langchain_groundedness.evals import load_run, open_dataset, readers
from langchain_groundedness.query import EmbeddingQueryClassifier, HashedNgramEmbeddings

ENDLESS = Path("/dev/zero")
needs_devices = pytest.mark.skipif(not ENDLESS.exists(), reason="there is no endless file here")


def endless(folder: Path, name: str) -> Path:
    path = folder / name
    path.symlink_to(ENDLESS)
    return path


def rows(path: Path) -> list[Any]:
    return list(open_dataset(path))


# --- files without an end ---


@needs_devices
@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("policy.yaml", DecisionPolicy.load),
        ("policy.json", DecisionPolicy.load),
        ("calibration.json", Calibration.load),
        ("labelled.jsonl", lambda path: list(read_labelled(path))),
        ("run.jsonl", load_run),
        ("data.json", rows),
        ("answer.txt", lambda path: read_answer(f"@{path}")),
        ("document.md", lambda path: read_documents([str(path)])),
        (
            "classifier.json",
            lambda path: EmbeddingQueryClassifier.load(path, embeddings=HashedNgramEmbeddings()),
        ),
    ],
)
@pytest.mark.usefixtures("small_limits")
def test_a_file_without_an_end_is_given_up_with_the_limit_named(
    tmp_path: Path, name: str, read: Callable[[Path], Any]
) -> None:
    with pytest.raises(Exception, match=r"(larger|longer) than \d+ MiB") as caught:
        read(endless(tmp_path, name))
    assert name in str(caught.value)
    assert not isinstance(caught.value, MemoryError)


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits that are reached in no time; that they hold is what is tested, not how far."""
    for name in (
        "evals.readers.LARGEST_JSON",
        "evals.run_files.LONGEST_LINE",
        "calibration.labelled_data.LONGEST_LINE",
        "cli.check.LARGEST_TEXT",
        "query.embedding.LARGEST_FILE",
    ):
        module, _, limit = name.rpartition(".")
        monkeypatch.setattr(import_module(f"langchain_groundedness.{module}"), limit, 1 << 20)


# --- what unpacks to more than it seems ---


def bomb(path: Path, unit: bytes, times: int, *, head: bytes = b"") -> Path:
    packer = zlib.compressobj(9, wbits=31)
    with path.open("wb") as file:
        file.write(packer.compress(head))
        for _ in range(times):
            file.write(packer.compress(unit))
        file.write(packer.flush())
    assert path.stat().st_size < 2_000_000
    return path


@pytest.mark.usefixtures("small_limits")
def test_a_json_file_that_unpacks_to_too_much_is_refused_with_the_limit_named(
    tmp_path: Path,
) -> None:
    path = bomb(tmp_path / "data.json.gz", b" " * (1 << 20), 300)
    with pytest.raises(GroundednessError, match=r"data\.json\.gz: larger than 1 MiB"):
        rows(path)


def test_a_line_that_unpacks_to_too_much_is_set_aside_with_the_limit_named(tmp_path: Path) -> None:
    path = bomb(tmp_path / "data.jsonl.gz", b" " * (1 << 20), 130, head=b'{"answer": "')
    assert [bad.reason for bad in rows(path)] == ["longer than 64 MiB"]


def test_a_csv_row_that_never_ends_is_refused_with_the_limit_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "LONGEST_LINE", 1 << 20)
    path = bomb(tmp_path / "data.csv.gz", b'x","\n' * 200_000, 20, head=b'answer,question\n"')
    with pytest.raises(GroundednessError, match="a row is longer than 4 MiB"):
        rows(path)


def test_a_csv_header_with_more_columns_than_anybody_has_is_refused_in_linear_time(
    tmp_path: Path,
) -> None:
    def refused(columns: int) -> None:
        path = tmp_path / "data.csv"
        path.write_text(",".join(f"c{n}" for n in range(columns)) + "\n", encoding="ascii")
        with pytest.raises(GroundednessError, match=f"{columns} columns, more than 10000"):
            rows(path)

    assert_linear(refused, 200_000)


def test_packed_data_that_is_damaged_is_named(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"answer": "x"}\n' * 100)[:-20])
    with pytest.raises(GroundednessError, match=r"data\.jsonl\.gz: "):
        rows(path)


@pytest.mark.parametrize("text", ["[" * 200_000, '{"a":' * 200_000, "[" + "9" * 100_000 + "]"])
def test_json_that_exhausts_readers_is_a_bad_row(tmp_path: Path, text: str) -> None:
    (tmp_path / "data.jsonl").write_text(f'{text}\n{{"answer": "x"}}\n', encoding="ascii")
    bad, good = rows(tmp_path / "data.jsonl")
    assert bad.reason.startswith("not JSON")
    assert good.row.answer == "x"


# --- what would run ---


@pytest.mark.parametrize(
    "text",
    [
        "!!python/object/apply:os.system ['exit 3']",
        "rules: !!python/name:os.system",
        "rules: !!python/object/new:subprocess.Popen [['id']]",
        "a: &a [x, x]\nrules: [*a, *a]",
        "a: &a {b: 1}\nrules: {<<: *a}",
        "rules: [" + "[" * 50_000,
        "rules: !!binary aGVsbG8=",
        "rules: !!timestamp 2001-99-99",
        "? [a]\n: b",
        "%TAG ! tag:attacker.example,2002:\n---\n!run x",
        "rules: []\nrules: []",
        "--- {}\n--- {}",
    ],
)
def test_a_policy_of_a_stranger_runs_nothing_and_is_refused_in_one_line(
    tmp_path: Path, text: str
) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"policy\.yaml: ") as caught:
        DecisionPolicy.load(path)
    assert "\n" not in str(caught.value)


PICKLED = (
    b"\x80\x04\x95\x1f\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94\x8c\x06system\x94\x93\x94."
)


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("policy.json", DecisionPolicy.load),
        ("calibration.json", Calibration.load),
        ("run.jsonl", load_run),
        ("labelled.jsonl", lambda path: list(read_labelled(path))),
        (
            "classifier.json",
            lambda path: EmbeddingQueryClassifier.load(path, embeddings=HashedNgramEmbeddings()),
        ),
    ],
)
@pytest.mark.parametrize("content", [PICKLED + b"\n", b'{"lc": 1, "type": "constructor"}\n'])
def test_an_object_in_place_of_a_file_of_ours_is_not_made(
    tmp_path: Path, name: str, read: Callable[[Path], Any], content: bytes
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ConfigurationError, match=name):
        read(path)


def test_a_large_policy_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text("rules: [" + "1:" * 4_000_000, encoding="ascii")  # and is no YAML
    with pytest.raises(ConfigurationError, match=r"policy\.yaml: larger than 1 MiB"):
        DecisionPolicy.load(path)


# --- paths ---


def test_a_name_in_a_data_set_opens_no_file(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("hidden", encoding="ascii")
    told = [f"@{secret}", str(secret), secret.as_uri(), f"../{secret.name}"]
    given = [{"answer": name, "documents": [name], "id": name} for name in told]
    (tmp_path / "data.jsonl").write_text("\n".join(map(json.dumps, given)), encoding="utf-8")
    found = rows(tmp_path / "data.jsonl")
    assert [each.row.answer for each in found] == told
    assert [each.row.documents[0].page_content for each in found] == told


def test_an_answer_that_begins_with_two_signs_names_no_file(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("hidden", encoding="ascii")
    assert read_answer(f"@@{secret}") == f"@{secret}"
    assert os.fspath(secret) not in read_answer(f"@{secret}")
