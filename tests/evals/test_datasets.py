"""Data sets: every row is read, or skipped with its line and the reason."""

import csv
import gzip
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.messages import AIMessage

from langchain_groundedness import ConfigurationError, InputFormatError
from langchain_groundedness.evals import BadRow, EvaluationRow, open_dataset
from langchain_groundedness.evals.readers import LONGEST_LINE

ROW = {"question": "Capital?", "answer": "Rome.", "contexts": ["Rome is it."]}


def read(source: Any, **options: Any) -> list[EvaluationRow | BadRow]:
    found = open_dataset(source, **options)
    return [each if isinstance(each, BadRow) else each.row for each in found]


def lines(path: Path, *rows: Any) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def good(source: Any, **options: Any) -> EvaluationRow:
    (row,) = read(source, **options)
    assert isinstance(row, EvaluationRow)
    return row


def reason(source: Any, **options: Any) -> str:
    bad = [row for row in read(source, **options) if isinstance(row, BadRow)]
    assert len(bad) == 1
    return f"{bad[0].line}: {bad[0].reason}"


@pytest.mark.parametrize(
    ("question", "answer", "documents", "reference"),
    [
        ("question", "answer", "contexts", "reference"),
        ("user_input", "response", "retrieved_contexts", "ground_truth"),
        ("input", "predicted_answer", "context", "reference_answer"),
        ("query", "output", "documents", "expected_output"),
        ("Query", "Predicted Answer", "Retrieved-Contexts", " Ground Truth "),
    ],
)
def test_known_columns_are_found_by_their_names(
    question: str, answer: str, documents: str, reference: str
) -> None:
    row = good([{question: "q", answer: "a", documents: ["d"], reference: "r", "kind": "x"}])
    assert (row.question, row.answer, row.reference) == ("q", "a", "r")
    assert row.documents == (Document("d"),)
    assert row.metadata == {"kind": "x"}


def test_a_mapping_comes_before_what_is_found() -> None:
    row = good([{"answer": "old", "mine": "new"}], columns={"answer": "mine"})
    assert row.answer == "new"
    assert row.metadata == {"answer": "old"}


def test_two_columns_for_one_part_are_an_error_that_lists_the_columns() -> None:
    with pytest.raises(InputFormatError, match="may hold the answer: 'answer', 'response'") as told:
        read([{"answer": "a", "response": "b", "kind": 1}])
    assert told.value.keys == ("answer", "response", "kind")
    assert "--column answer=answer" in str(told.value)


def test_columns_of_later_rows_count_too(tmp_path: Path) -> None:
    path = lines(tmp_path / "d.jsonl", {"answer": "a"}, {"response": "b"})
    with pytest.raises(InputFormatError, match="more than one column"):
        read(path)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"answer": "gone"}, "no column 'gone' for answer; the columns are 'answer', 'kind'"),
        (
            {"text": "answer"},
            "unknown field 'text' in columns= or --column; accepted: id, question",
        ),
    ],
)
def test_a_mapping_that_cannot_work_is_refused(columns: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read([{"answer": "a", "kind": 1}], columns=columns)


def test_a_part_that_nobody_holds_is_an_error_if_it_is_needed() -> None:
    data = open_dataset([{"answer": "a", "sources": ["d"]}])
    with pytest.raises(InputFormatError, match=r"no column holds the documents, which f needs"):
        data.require({"answer": ["f"], "documents": ["f"]})


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        (["a", "b"], [Document("a"), Document("b")]),
        ("a", [Document("a")]),
        ([], []),
        (None, None),
        (float("nan"), None),
        (
            [{"page_content": "a", "metadata": {"p": 1}, "id": 7}],
            [Document("a", metadata={"p": 1}, id="7")],
        ),
        ([{"content": "a"}, {"text": "b"}], [Document("a"), Document("b")]),
        ((Document("a", metadata={"p": 1}),), [Document("a", metadata={"p": 1})]),
    ],
)
def test_documents_come_in_many_forms(cell: Any, expected: list[Document] | None) -> None:
    found = good([{"answer": "x", "contexts": cell}]).documents
    assert (None if found is None else list(found)) == expected


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (
            {"contexts": [1]},
            "1: documents: number 1: expected a text or an object with page_content, got int",
        ),
        (
            {"contexts": ["a", None]},
            "1: documents: number 2: expected a text or an object with page_content, got nothing",
        ),
        ({"contexts": [{"body": "x"}]}, "1: documents: number 1 has no text under any of"),
        ({"contexts": 7}, "1: documents: expected a list of texts, got int"),
        ({"answer": {"text": "x"}}, "1: answer: expected a text, got dict"),
        ({"answer": True}, "1: answer: expected a text, got bool"),
        ({"question": ["x"]}, "1: question: expected a text, got list"),
        ({"label": ["x"]}, "1: label: expected a text, a number, or true or false, got list"),
        ({"answer": "half \ud800"}, "1: not valid UTF-8 text"),
        ({"answer": "x", "kind": {"deep": ["\udc80"]}}, "1: not valid UTF-8 text"),
    ],
)
def test_a_row_that_does_not_fit_is_set_aside_with_the_reason(
    row: dict[str, Any], said: str
) -> None:
    assert reason([row]).startswith(said)


def test_numbers_and_messages_are_texts_and_ids_need_not_be() -> None:
    row = good([{"id": 7, "question": 3, "answer": AIMessage("Rome."), "label": 1}])
    assert (row.id, row.question, row.answer, row.label) == ("7", "3", "Rome.", 1.0)


def test_rows_without_id_are_named_by_their_line_and_double_ids_are_set_aside() -> None:
    assert [row.id for row in read([ROW, ROW])] == ["1", "2"]
    first, second = read([{"id": "a", **ROW}, {"id": "a", **ROW}])
    assert isinstance(first, EvaluationRow)
    assert second == BadRow(line=2, id="a", reason="line 1 has the same id")


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0)])
def test_a_row_without_id_is_kept_though_another_has_its_line_for_an_id(
    order: tuple[int, ...],
) -> None:
    given = [{"id": "2", **ROW}, ROW, {"id": 3, **ROW}]
    found = read([given[place] for place in order])
    assert [type(row) for row in found] == [EvaluationRow] * 3
    assert {row.id for row in found} == {"2", "3", "line 2"}


def test_evaluation_rows_come_through_as_they_are() -> None:
    rows = [
        EvaluationRow(id="x", question="q", answer="a", documents=(Document("d", id="1"),)),
        EvaluationRow(id="y", label=True, metadata={"kind": "z"}),
    ]
    assert read(rows) == rows


def test_metadata_of_a_record_is_merged_with_its_other_columns() -> None:
    row = good([{"answer": "a", "kind": 1, "metadata": {"source": "x", "kind": 2}}])
    assert row.metadata == {"source": "x", "kind": 1}


@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.gz", ".ndjson"])
def test_json_lines_are_read_compressed_or_not(tmp_path: Path, ending: str) -> None:
    data = (json.dumps(ROW) + "\r\n\r\n" + json.dumps({**ROW, "answer": "Bari."})).encode()
    path = tmp_path / f"d{ending}"
    path.write_bytes(gzip.compress(data) if ending.endswith("gz") else b"\xef\xbb\xbf" + data)
    found = list(open_dataset(path))
    assert [(each.row.answer, each.line) for each in found if not isinstance(each, BadRow)] == [
        ("Rome.", 1),
        ("Bari.", 3),
    ]


def test_bad_lines_cost_no_others(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    good_line = json.dumps(ROW).encode()
    path.write_bytes(
        b"\n".join([good_line, b"{", b"[1]", b'{"answer": "\xff"}', b"\0\0", good_line, b'"x"'])
    )
    found = read(path)
    assert [row.line for row in found if isinstance(row, BadRow)] == [2, 3, 4, 5, 7]
    assert [row.id for row in found if isinstance(row, EvaluationRow)] == ["1", "6"]
    told = [row.reason for row in found if isinstance(row, BadRow)]
    assert told[0].startswith("not JSON (Expecting property name")
    assert told[1] == "expected an object (a mapping), got list"
    assert told[2] == "not UTF-8 text (byte 12 of the line); convert it first"


def test_a_line_longer_than_any_example_is_skipped_without_keeping_it(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(2):
            file.write(b" " * LONGEST_LINE)
        file.write(b"\n" + json.dumps(ROW).encode())
    bad, row = read(path)
    assert bad == BadRow(line=1, reason="longer than 64 MiB")
    assert isinstance(row, EvaluationRow)


@pytest.mark.parametrize("wrapped", [lambda rows: rows, lambda rows: {"data": rows}])
def test_json_files_hold_a_list(tmp_path: Path, wrapped: Callable[[Any], Any]) -> None:
    path = tmp_path / "d.json"
    path.write_text(json.dumps(wrapped([ROW, 3])))
    row, bad = read(path)
    assert isinstance(row, EvaluationRow)
    assert bad == BadRow(line=2, reason="expected an object (a mapping), got int")


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("d.json", b"{}", "expected a list of objects"),
        ("d.json", b'{"a": 1}\n{"a": 2}', r"line 2: not JSON \(Extra data\); for one object per"),
        ("d.json", b"\xff", "not UTF-8 text"),
        ("d.jsonl.gz", b"no gzip", "Not a gzipped file"),
        (
            "d.jsonl.gz",
            gzip.compress(b"{}\n" * 9999, mtime=0)[:-12],
            "ended before the end-of-stream",
        ),
        ("d.csv", b"", "no header in line 1"),
        ("d.csv", b"\xff\xfe\x00,a\n1,2\n", r"d\.csv, line 1: not UTF-8 text; convert it first"),
        ("d.csv", b"a,a\n1,2\n", "two columns have the same name: 'a'"),
        ("d.csv", b'"a\n', "line 1: the header cannot be read: a quote opened"),
        ("d.txt", b"", "unknown kind of file"),
        ("d.parquet", b"PAR1", r"d\.parquet: "),
    ],
)
def test_a_file_that_cannot_be_read_is_an_error_that_names_it(
    tmp_path: Path, name: str, data: bytes, said: str
) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InputFormatError, match=said) as told:
        read(tmp_path / name)
    assert str(told.value).count(str(tmp_path / name)) == 1


def test_a_path_or_value_that_is_no_data_set_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputFormatError, match=r"gone\.jsonl: no such file or folder"):
        read(tmp_path / "gone.jsonl")
    for source in (tmp_path, [tmp_path]):
        with pytest.raises(
            InputFormatError, match=rf"^{re.escape(str(tmp_path))}: no readable file there"
        ):
            read(source)
    with pytest.raises(InputFormatError, match="a value of type int"):
        read(7)
    with pytest.raises(ConfigurationError, match="limit must be a whole number of at least 1"):
        read([ROW], limit=0)


def table(path: Path, *rows: list[str], **options: Any) -> Path:
    with path.open("w", newline="", encoding="utf-8-sig") as file:
        csv.writer(file, **options).writerows(rows)
    return path


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_csv_is_read_with_the_lines_where_rows_begin(tmp_path: Path, delimiter: str) -> None:
    path = table(
        tmp_path / "d.csv",
        ["answer", "contexts", "kind"],
        ["Rome,\nor so; yes", '["a", "b"]', ""],
        ["Bari", "one text", "x"],
        delimiter=delimiter,
    )
    found = [each for each in open_dataset(path) if not isinstance(each, BadRow)]
    assert [(each.line, each.row.answer) for each in found] == [
        (2, "Rome,\nor so; yes"),
        (4, "Bari"),
    ]
    assert [len(each.row.documents or ()) for each in found] == [2, 1]
    assert found[0].row.metadata == {"kind": None}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("d.csv", 'question,answer,contexts,"tags (a; b; c; d; e)"\nQ,Rome.,x,y\n'),
        ("d.csv", '"tags, a, ""b"", c";answer;contexts\ny;Rome.;x\n'),
        ("d.csv", 'answer;"tags, of\na, b, c";contexts\nRome.;y;x\n'),
        ("d.csv", 'size in ", or cm;answer;contexts\n5;Rome.;x\n'),
        ("d.tsv", "answer\tcontexts\tsource (title, author, year, place)\nRome.\tx\ty\n"),
    ],
)
def test_separators_within_names_of_columns_separate_no_cells(
    tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text, "utf-8")
    row = good(tmp_path / name)
    assert (row.answer, row.documents, len(row.metadata)) == ("Rome.", (Document("x"),), 1)


def test_documents_in_csv_are_json_or_as_python_writes_them_or_separated(tmp_path: Path) -> None:
    cells = ['["a", "b"]', "['a', \"b's\"]", "[1] a note", "a || b", "['a' 'b']"]
    path = table(tmp_path / "d.csv", ["answer", "contexts"], *(["x", cell] for cell in cells))
    found = read(path)
    texts = [[d.page_content for d in each.documents or ()] for each in found[:4]]  # type: ignore[union-attr]  # all are rows
    assert texts == [["a", "b"], ["a", "b's"], ["[1] a note"], ["a || b"]]
    assert isinstance(found[4], BadRow)
    assert "as numpy writes it" in found[4].reason
    parted = read(path, separator=" || ")[3]
    assert isinstance(parted, EvaluationRow)
    assert parted.documents == (Document("a"), Document("b"))


def test_bad_rows_of_csv_cost_no_others(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_bytes(
        b'answer,kind\na,1\nb\nc,"x"y\n\xff,4\nd,5\n'
        b"e," + b"z" * 200_000 + b'\nf,"never closed\ng,7\n'
    )
    found = read(path)
    assert [row.answer for row in found if isinstance(row, EvaluationRow)] == ["a", "d", "e"]
    told = {row.line: row.reason for row in found if isinstance(row, BadRow)}
    assert told[3] == "1 cells, but the header has 2"
    assert told[4].startswith("a quoted cell continues after its closing quote")
    assert told[5].startswith("not valid UTF-8 text")
    assert told[8].startswith("a quote opened in this row is never closed")
    assert list(told) == [3, 4, 5, 8]


@given(
    st.lists(
        st.tuples(
            st.text(st.characters(codec="utf-8", exclude_characters="\r\0"), min_size=1),
            st.lists(st.text(st.characters(codec="utf-8")), min_size=1),
        ),
        min_size=1,
    )
)
def test_csv_and_json_lines_give_the_same_rows(
    tmp_path_factory: pytest.TempPathFactory, given_rows: list[tuple[str, list[str]]]
) -> None:
    folder = tmp_path_factory.mktemp("rows")
    as_csv = table(
        folder / "d.csv", ["answer", "contexts"], *([a, json.dumps(c)] for a, c in given_rows)
    )
    as_json = lines(folder / "d.jsonl", *({"answer": a, "contexts": c} for a, c in given_rows))
    of_csv, of_json = read(as_csv), read(as_json)
    assert len(of_csv) == len(given_rows)
    for one, other in zip(of_csv, of_json, strict=True):
        assert one.model_copy(update={"id": ""}) == other.model_copy(update={"id": ""})


def test_exports_of_langsmith_are_taken_apart(tmp_path: Path) -> None:
    example = {
        "id": "e1",
        "inputs": {"question": "Capital?"},
        "outputs": {"answer": "Rome.", "contexts": ["Rome is it."]},
        "reference_outputs": {"answer": "Rome"},
        "metadata": {"split": "test"},
    }
    row = good(lines(tmp_path / "d.jsonl", example))
    assert (row.id, row.question, row.answer, row.reference) == ("e1", "Capital?", "Rome.", "Rome")
    assert row.documents == (Document("Rome is it."),)
    assert row.metadata == {"split": "test"}
    nested = {key: json.dumps(value) for key, value in example.items() if key != "id"}
    path = table(tmp_path / "d.csv", ["id", *nested], ["e1", *nested.values()])
    assert good(path).documents == row.documents


def test_what_stands_in_outputs_can_be_said_to_be_the_reference() -> None:
    example = {"inputs": {"question": "Capital?"}, "outputs": {"answer": "Rome."}}
    row = good([example], columns={"reference": "outputs.answer"})
    assert (row.answer, row.reference) == (None, "Rome.")


def test_examples_of_a_langsmith_client_are_read() -> None:
    schemas = pytest.importorskip("langsmith.schemas")
    example = schemas.Example(
        id="00000000-0000-0000-0000-000000000001",
        inputs={"question": "Capital?"},
        outputs={"answer": "Rome."},
        dataset_id="00000000-0000-0000-0000-000000000002",
    )
    row = good([example])
    assert (row.id[-1], row.question, row.answer) == ("1", "Capital?", "Rome.")


def test_claims_are_joined_with_the_documents_that_they_name(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "d.jsonl",
        {"documents_id": "d1", "documents": ["Rome is it."]},
        {"id": "c1", "claim": "Rome.", "label": "supported", "documents_id": "d1"},
        {"id": "c2", "claim": "Bari.", "label": "unsupported", "documents_id": "d2"},
        {"id": "c3", "claim": "Bari.", "documents": ["Own."]},
    )
    first, bad, third = read(path, layout="claims")
    assert isinstance(first, EvaluationRow)
    assert (first.answer, first.label, first.documents) == (
        "Rome.",
        "supported",
        (Document("Rome is it."),),
    )
    assert bad == BadRow(
        line=3, reason="no earlier line holds the documents that its documents_id names"
    )
    assert isinstance(third, EvaluationRow)
    assert third.documents == (Document("Own."),)


def test_a_folder_is_one_data_set_and_rows_say_where_they_are_from(tmp_path: Path) -> None:
    lines(tmp_path / "b.jsonl", {"id": "1", "answer": "b"}, {"answer": {}})
    lines(tmp_path / "a.jsonl", {"id": "1", "answer": "a"})
    (tmp_path / "README.md").write_text("no rows")
    (tmp_path / ".hidden.jsonl").write_text("no rows")
    first, second, bad = read(tmp_path)
    assert [first.id, second.id] == ["a:1", "b:1"]
    assert isinstance(first, EvaluationRow)
    assert first.metadata == {"file": "a.jsonl"}
    assert bad == BadRow(line=2, reason="b.jsonl: answer: expected a text, got dict")
    assert read([tmp_path / "a.jsonl", str(tmp_path / "b.jsonl")]) == [first, second, bad]


def test_the_digest_is_of_the_rows_not_of_the_file(tmp_path: Path) -> None:
    as_json = open_dataset(lines(tmp_path / "d.jsonl", {"id": "1", **ROW})).outline()
    other = table(
        tmp_path / "d.csv",
        ["id", "my answer", "question", "contexts"],
        ["1", "Rome.", "Capital?", '["Rome is it."]'],
    )
    as_csv = open_dataset(other, columns={"answer": "my answer"}).outline()
    assert as_json.digest == as_csv.digest
    assert as_json.digest != open_dataset([{"id": "1", **ROW, "answer": "x"}]).outline().digest


def test_a_limit_reads_the_first_rows_only(tmp_path: Path) -> None:
    path = lines(tmp_path / "d.jsonl", *({"answer": str(n)} for n in range(9)))
    assert [row.id for row in read(path, limit=3)] == ["1", "2", "3"]


def test_what_can_be_read_once_is_kept() -> None:
    data = open_dataset(iter([ROW, ROW]))
    assert len(list(data)) == len(list(data)) == 2


def test_files_are_read_row_by_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[bytes] = []
    readline = io.BufferedReader.readline
    path = lines(tmp_path / "d.jsonl", *({"answer": "x" * 9000} for _ in range(2000)))
    data = open_dataset(path)
    assert data.columns["answer"] == "answer"
    handle = path.open("rb")

    class Counted(io.BufferedReader):
        def readline(self, size: int | None = -1, /) -> bytes:
            taken.append(b"")
            return readline(self, size)

    monkeypatch.setattr(Path, "open", lambda *_: Counted(handle.detach()))
    next(iter(data))
    assert len(taken) == 1


@pytest.mark.parametrize(
    ("names", "prefixes"),
    [
        (("a.jsonl", "b.jsonl"), ("a", "b")),
        (("rows.2024.jsonl", "rows.2025.jsonl"), ("rows.2024.jsonl", "rows.2025.jsonl")),
        (("old/rows.jsonl", "new/rows.jsonl"), ("old/rows", "new/rows")),
        (("rows.jsonl", "rows.csv"), ("rows.jsonl", "rows.csv")),
    ],
)
def test_rows_of_several_files_are_told_apart_however_the_files_are_called(
    tmp_path: Path, names: tuple[str, ...], prefixes: tuple[str, ...]
) -> None:
    for name in names:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("answer\nYes." if name.endswith("csv") else '{"answer": "Yes."}\n')

    found = list(open_dataset([tmp_path / name for name in names]))

    assert not any(isinstance(each, BadRow) for each in found)
    rows = [each.row for each in found if not isinstance(each, BadRow)]
    assert [row.id.rpartition(":")[0] for row in rows] == list(prefixes)
    assert len({row.metadata["file"] for row in rows}) == len(names)


def test_parts_are_named_as_users_name_them_and_all_that_lack_are_told_at_once() -> None:
    [row] = open_dataset([{"mine": ["Rome."]}], columns={"contexts": "mine"})
    assert not isinstance(row, BadRow)
    assert row.row.documents == (Document("Rome."),)
    with pytest.raises(InputFormatError, match=r"holds the answer.*holds the reference") as raised:
        open_dataset([{"mine": 1}]).require({"answer": ["a"], "reference": ["b"]})
    assert str(raised.value).count("The columns are") == 1


def test_a_dict_of_columns_is_a_data_set() -> None:
    rows = list(open_dataset({"answer": ["A.", "B."], "contexts": [["x"], ["y"]]}))
    assert [row.row.answer for row in rows if not isinstance(row, BadRow)] == ["A.", "B."]
    with pytest.raises(InputFormatError, match="cannot read a data set"):
        open_dataset({"answer": ["A."], "contexts": []})
