from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from pydantic import PrivateAttr
from typing_extensions import override

from langchain_groundedness import InputFormatError
from langchain_groundedness.evals import (
    BadRow,
    BleuEvaluator,
    EvaluationRow,
    Evaluator,
    FaithfulnessEvaluator,
    Flow,
    RowScore,
    open_dataset,
)

COLUMNS = {
    "question": ("question", "input", "query", "user_input"),
    "answer": (
        *("answer", "predicted_answer", "prediction", "response", "result", "output"),
        *("output_text", "generation", "actual_output"),
    ),
    "documents": (
        *("documents", "contexts", "context", "retrieved_contexts", "retrieval_context"),
        *("source_documents", "input_documents"),
    ),
    "reference": (
        *("reference", "reference_answer", "ground_truth", "ground_truths"),
        *("ground_truth_answer", "expected_output", "expected_answer"),
    ),
    "label": ("label",),
}
"""What users may call the parts of a row."""


class Seeing(Evaluator):
    """Remembers the rows that it was given."""

    key: str = "seeing"

    _rows: list[EvaluationRow] = PrivateAttr(default_factory=list)

    @property
    def rows(self) -> list[EvaluationRow]:
        return self._rows

    @override
    def _score(self, row: EvaluationRow) -> Flow[RowScore]:
        yield from ()
        self._rows.append(row)
        return self._scored(1.0)


def read_row(value: Any) -> EvaluationRow:
    seeing = Seeing()
    score = seeing.invoke(value)
    if score.status == "failed":
        raise InputFormatError(score.reason or "")
    return seeing.rows[0]


def read_columns(**columns: Any) -> list[EvaluationRow]:
    seeing = Seeing()
    seeing.run(**columns)
    return seeing.rows


def read_example(
    inputs: Any, outputs: Any, reference_outputs: Any = None, **further: Any
) -> EvaluationRow:
    """Read an example as LangSmith gives it."""
    seeing = Seeing()
    seeing(inputs, outputs, reference_outputs, **further)
    return seeing.rows[0]


@pytest.mark.parametrize("name", COLUMNS["documents"])
def test_contexts_are_read_under_every_name_that_users_give_them(name: str) -> None:
    row = read_row({name: ["Rome is old.", Document("Oslo is not.")]})
    assert row.documents is not None
    assert [document.page_content for document in row.documents] == ["Rome is old.", "Oslo is not."]


@pytest.mark.parametrize("field", ["question", "answer", "reference"])
def test_texts_are_read_under_every_name_that_users_give_them(field: str) -> None:
    for name in COLUMNS[field]:
        assert getattr(read_row({name: "a text"}), field) == "a text"


def test_what_is_no_field_of_a_row_is_kept_as_metadata() -> None:
    row = read_row({"answer": "Rome.", "model": "small", "metadata": {"day": 3}, "id": 7})
    assert row.id == "7"
    assert row.metadata == {"day": 3, "model": "small"}


def test_a_second_column_for_a_field_is_not_lost() -> None:
    row = read_row({"question": "Capital?", "input": "something else"})
    assert row.question == "Capital?"
    assert row.metadata == {"input": "something else"}


def test_columns_that_are_none_are_missing() -> None:
    row = read_row({"question": None, "input": "Capital?", "contexts": None, "answer": None})
    assert (row.question, row.documents, row.answer) == ("Capital?", None, None)
    assert row.metadata == {}


@pytest.mark.parametrize("gap", [float("nan"), np.float64("nan"), np.float32("nan")])
def test_what_pandas_writes_for_nothing_is_missing(gap: Any) -> None:
    parts = {"question": gap, "input": "Capital?", "answer": gap, "contexts": gap, "label": gap}
    row = read_row({**parts, "reference": gap})
    assert (row.question, row.answer, row.documents) == ("Capital?", None, None)
    assert (row.reference, row.label, row.metadata) == (None, None, {})
    score = BleuEvaluator().run(predicted_answers=[gap], reference_answers=["Rome."])
    assert (score.score, score.skipped) == (None, 1)
    with pytest.raises(InputFormatError, match="number 2: expected a text or an object"):
        read_row({"contexts": ["Rome is old.", gap]})


def test_several_references_are_refused_and_one_in_a_list_is_the_reference() -> None:
    with pytest.raises(InputFormatError, match=r"got a list of 2; give one reference per row"):
        read_row({"answer": "Rome.", "reference": ["Rome.", "It is Rome."]})
    assert read_row({"ground_truths": ["Rome."]}).reference == "Rome."
    [row] = open_dataset([{"answer": "Rome.", "ground_truths": ["Rome."]}])
    assert not isinstance(row, BadRow)
    assert row.row.reference == "Rome."
    [bad] = open_dataset([{"answer": "Rome.", "reference": ["Rome.", "It is Rome."]}])
    assert isinstance(bad, BadRow)


@pytest.mark.parametrize("key", ["text", "content", "page_content"])
def test_contexts_as_objects_are_read_as_data_sets_have_them(key: str) -> None:
    row = read_row({"contexts": [{key: "Rome is old.", "metadata": {"page": 1}}]})
    assert row.documents == (Document("Rome is old.", metadata={"page": 1}),)


def test_arrays_of_contexts_are_read_as_lists() -> None:
    row = read_row({"contexts": np.array(["one.", "two."], dtype=object)})
    assert row.documents == (Document("one."), Document("two."))


def test_an_empty_list_of_contexts_is_not_a_missing_one() -> None:
    assert read_row({"contexts": []}).documents == ()


def test_the_state_of_an_agent_is_read() -> None:
    state = {
        "messages": [
            HumanMessage("Capital?"),
            AIMessage("", tool_calls=[{"id": "1", "name": "search", "args": {}}]),
            ToolMessage("Rome is the capital.", tool_call_id="1"),
            AIMessage("Rome."),
        ]
    }
    row = read_row(state)
    assert (row.question, row.answer) == ("Capital?", "Rome.")
    assert row.documents is not None
    assert row.documents[0].page_content == "Rome is the capital."


@pytest.mark.parametrize(
    "documents",
    [
        [{"snippet": "Rome is it.", "url": "https://example.org"}],
        [(Document("Rome is it."), 0.9)],
        [["Rome is it."]],
    ],
)
def test_documents_are_read_as_at_every_entry_point(documents: Any) -> None:
    row = read_row({"reply": "Rome.", "documents": documents})
    assert row.answer == "Rome."
    assert row.documents is not None
    assert [document.page_content for document in row.documents] == ["Rome is it."]


def test_the_output_of_a_chain_is_read_as_at_every_entry_point() -> None:
    said = {"reply": "Rome.", "hits": [Document("Rome is it.")]}
    score = FaithfulnessEvaluator()({"question": "Capital?"}, said)
    assert score["metadata"]["status"] == "scored"
    row = read_row({"answer": "Rome.", "hits": [Document("Rome is it.")]})
    assert row.documents == (Document("Rome is it."),)


@pytest.mark.parametrize("value", ["a text", 3, ["a", "b"]])
def test_what_is_no_row_is_refused_with_what_is_accepted(value: object) -> None:
    with pytest.raises(InputFormatError, match="'contexts'"):
        read_row(value)


def test_a_question_or_label_of_a_wrong_type_is_refused() -> None:
    with pytest.raises(InputFormatError, match="question: expected a text, got dict"):
        read_row({"question": {"text": "Capital?"}})
    with pytest.raises(InputFormatError, match="label"):
        read_row({"label": ["good"]})


def test_columns_become_rows_with_their_numbers_as_ids() -> None:
    rows = read_columns(questions=["a?", "b?"], contexts=[["A."], []], predicted_answers=["A", "B"])
    assert rows == [
        EvaluationRow(id="1", question="a?", documents=(Document("A."),), answer="A"),
        EvaluationRow(id="2", question="b?", documents=(), answer="B"),
    ]


def test_columns_of_different_lengths_are_refused_with_their_lengths() -> None:
    with pytest.raises(InputFormatError, match="questions has 2, contexts has 1"):
        read_columns(questions=["a?", "b?"], contexts=[["A."]])
    with pytest.raises(InputFormatError, match="no column was given"):
        read_columns()


def test_a_text_in_place_of_a_column_is_refused() -> None:
    with pytest.raises(InputFormatError, match="questions: expected a list"):
        read_columns(questions="Capital?")


def test_a_value_that_cannot_be_read_is_named_by_its_row() -> None:
    with pytest.raises(InputFormatError, match="row 2: "):
        read_columns(questions=["a?", {}])


def test_an_example_is_put_together_of_its_three_parts() -> None:
    row = read_example(
        {"question": "Capital?"},
        {"answer": "Rome.", "context": ["Rome is it."]},
        {"answer": "Rome"},
    )
    assert (row.question, row.answer, row.reference) == ("Capital?", "Rome.", "Rome")
    assert row.documents == (Document("Rome is it."),)


def test_an_example_may_be_of_plain_texts_and_further_arguments() -> None:
    row = read_example("Capital?", "Rome.", "Rome", context="Rome is it.")
    assert (row.question, row.answer, row.reference) == ("Capital?", "Rome.", "Rome")
    assert row.documents == (Document("Rome is it."),)


def test_the_contexts_of_an_example_may_be_among_its_inputs() -> None:
    row = read_example({"question": "?", "contexts": ["A."]}, {"output": "A"})
    assert (row.answer, row.documents, row.reference) == ("A", (Document("A."),), None)


def test_the_answer_among_the_inputs_is_not_the_answer_that_came_out() -> None:
    assert read_example({"answer": "gold"}, {}).answer is None


def test_an_agent_is_asked_in_messages() -> None:
    asked = {"messages": [{"role": "user", "content": "Capital?"}]}
    row = read_example(asked, {"messages": [AIMessage("Rome.")]})
    assert (row.question, row.answer) == ("Capital?", "Rome.")


NAMES = st.sampled_from([name for names in COLUMNS.values() for name in names])


@given(st.dictionaries(NAMES | st.text(max_size=8), st.none() | st.text(max_size=8), max_size=6))
@example({"documents": "\r"})
def test_no_text_of_a_mapping_is_lost(parts: dict[str, str | None]) -> None:
    parts.pop("metadata", None)
    row = read_row(parts)
    kept = [row.id, row.question, row.answer, row.reference, row.label, *row.metadata.values()]
    kept += [document.page_content for document in row.documents or ()]
    # Blanks alone are no text, and a document of them is none.
    assert all(value in kept for value in parts.values() if value and value.strip())


@pytest.mark.parametrize("field", COLUMNS)
def test_a_file_may_name_its_columns_as_a_row_may(field: str) -> None:
    for name in COLUMNS[field]:
        value = ["a text"] if field == "documents" else "a text"
        (found,) = open_dataset([{name: value, "something else": 1}])
        assert not isinstance(found, BadRow)
        read = getattr(found.row, field)
        assert read == ((Document("a text"),) if field == "documents" else "a text")
