from dataclasses import dataclass
from enum import Enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    AnyMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from pydantic import BaseModel, ValidationError

from langchain_groundedness import GroundednessRunnable
from langchain_groundedness.exceptions import InputFormatError
from langchain_groundedness.inputs import CheckInput, read_input
from langchain_groundedness.types import Decision, GroundednessResult

ROME = Document(page_content="Rome is the capital of Italy.", metadata={"source": "rome.md"})
OSLO = Document(page_content="Oslo is the capital of Norway.", id="oslo")
CALL = {"name": "search", "args": {"query": "capital"}, "id": "call-1"}


def turn(*answering: AnyMessage, asking: str = "Capital of Italy?") -> list[AnyMessage]:
    return [HumanMessage(asking), *answering]


def searched(content: str = ROME.page_content, **more: Any) -> list[AnyMessage]:
    found = ToolMessage(content, tool_call_id="call-1", name="search", **more)
    return [AIMessage("", tool_calls=[CALL]), found]


@pytest.mark.parametrize("documents_key", ["documents", "context", "source_documents"])
@pytest.mark.parametrize("question_key", ["question", "input", "query"])
@pytest.mark.parametrize("answer_key", ["answer", "result", "output", "generation"])
def test_a_mapping_is_read_by_its_keys(
    documents_key: str, question_key: str, answer_key: str
) -> None:
    read = read_input({question_key: "Which?", answer_key: "Rome.", documents_key: [ROME]})
    assert read == CheckInput(question="Which?", answer="Rome.", documents=(ROME,))


def test_of_two_keys_for_one_part_the_first_with_a_value_counts() -> None:
    read = read_input(
        {"answer": None, "output": "Rome.", "documents": [], "context": [ROME], "query": "Which?"}
    )
    assert read == CheckInput(question="Which?", answer="Rome.", documents=(ROME,))


def test_documents_may_be_texts_documents_or_their_json_mixed() -> None:
    plain = {"page_content": "Oslo.", "metadata": {"page": 2}, "id": "o", "type": "Document"}
    read = read_input({"answer": "x", "documents": [ROME, "Paris.", plain]})
    assert read.documents == (
        ROME,
        Document(page_content="Paris."),
        Document(page_content="Oslo.", metadata={"page": 2}, id="o"),
    )


def test_documents_come_through_as_the_same_objects() -> None:
    assert read_input(("x", [ROME])).documents[0] is ROME


def test_one_text_is_one_document() -> None:
    assert read_input(("x", "Rome is it.")).documents == (Document(page_content="Rome is it."),)


@pytest.mark.parametrize("nothing", [None, [], (), "", " \n"])
def test_no_documents_is_an_empty_tuple_and_no_error(nothing: object) -> None:
    assert read_input({"answer": "Rome.", "context": nothing}).documents == ()


def test_an_empty_document_in_a_list_keeps_its_place() -> None:
    assert [d.page_content for d in read_input(("x", ["", "b"])).documents] == ["", "b"]


def test_an_empty_answer_is_an_answer() -> None:
    assert read_input({"answer": "", "context": [ROME]}).answer == ""


def test_an_answer_alone_has_no_documents() -> None:
    assert read_input("Rome.") == CheckInput(answer="Rome.")
    assert read_input(AIMessage("Rome.")) == CheckInput(answer="Rome.")
    assert read_input(AIMessageChunk(content="Rome.")) == CheckInput(answer="Rome.")


def test_callable_texts_of_langchain_become_plain_texts() -> None:
    accessor = AIMessage("Rome.").text
    for value in (accessor, (accessor, [ROME]), {"answer": accessor, "input": accessor}):
        assert type(read_input(value).answer) is str
    assert type(read_input({"answer": "x", "input": accessor}).question) is str
    assert type(read_input(("x", accessor)).documents[0].page_content) is str


@pytest.mark.parametrize("wrap", [lambda m: m, lambda m: m.content])
def test_content_blocks_are_read_as_their_text(wrap: Any) -> None:
    blocks: list[str | dict[Any, Any]] = [
        {"type": "reasoning", "reasoning": "Hmm."},
        {"type": "text", "text": "Rome "},
        {"type": "text", "text": "it is."},
    ]
    assert read_input({"answer": wrap(AIMessage(blocks))}).answer == "Rome it is."


def test_the_question_may_be_a_message_or_a_conversation() -> None:
    conversation = [HumanMessage("Hi"), AIMessage("Hello"), HumanMessage("Which?")]
    assert read_input({"answer": "x", "input": HumanMessage("Which?")}).question == "Which?"
    assert read_input({"answer": "x", "input": conversation}).question == "Which?"
    assert read_input({"answer": "x", "input": [AIMessage("Hello")]}).question is None
    assert read_input({"answer": "x", "input": {"deep": "Which?"}}).question is None


def test_what_was_read_before_passes_through() -> None:
    read = CheckInput(question=None, answer="Rome.", documents=(ROME,))
    assert read_input(read) is read


def test_a_result_is_read_as_the_answer_it_ended_with() -> None:
    result = GroundednessResult(
        question="Which?",
        answer="Rome.",
        original_answer="Oslo.",
        documents=(ROME,),
        claims=(),
        trust_score=None,
        verdict="no_claims",
        is_trusted=False,
        decision=Decision(action="pass"),
    )
    assert read_input(result) == CheckInput(question="Which?", answer="Rome.", documents=(ROME,))


def test_what_is_read_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        read_input("Rome.").answer = "Oslo."  # type: ignore[misc]


# Agents


def test_tool_artifacts_that_are_documents_are_preferred_to_the_text_of_the_tool() -> None:
    messages = turn(*searched("Rome is…", artifact=[ROME]), AIMessage("Rome."))
    read = read_input({"messages": messages})
    assert read == CheckInput(
        question="Capital of Italy?",
        answer="Rome.",
        documents=(ROME,),
        evidence_source="retrieved",
    )


@pytest.mark.parametrize("artifact", [None, [], {"rows": 3}, ["rome.md"]])
def test_without_documents_in_the_artifact_the_text_of_the_tool_is_the_document(
    artifact: object,
) -> None:
    read = read_input({"messages": turn(*searched(artifact=artifact), AIMessage("Rome."))})
    origin = {"tool": "search", "tool_call_id": "call-1"}
    assert read.documents == (Document(page_content=ROME.page_content, metadata=origin),)


def test_a_single_document_may_be_the_artifact() -> None:
    messages = turn(*searched("Rome is…", artifact=ROME), AIMessage("Rome."))
    assert read_input(messages).documents == (ROME,)


EARLIER = turn(*searched("Oslo.", artifact=[OSLO]), AIMessage("Oslo."), asking="Norway?")


def test_documents_of_earlier_turns_follow_those_of_the_last_and_name_their_turn() -> None:
    last = turn(*searched(artifact=[ROME]), AIMessage("Rome."))
    read = read_input({"messages": turn(AIMessage("Hello.")) + EARLIER + last})
    assert (read.question, read.answer) == ("Capital of Italy?", "Rome.")
    assert read.documents[0] is ROME
    assert [(d.id, d.page_content, d.metadata) for d in read.documents[1:]] == [
        ("oslo", OSLO.page_content, {"turn": 2})
    ]
    assert OSLO.metadata == {}


def test_a_turn_without_a_tool_call_has_the_documents_of_earlier_turns() -> None:
    messages = EARLIER + turn(AIMessage("Oslo, as I said."), asking="Sure?")
    assert [d.id for d in read_input(messages).documents] == ["oslo"]
    assert read_input(messages, evidence="turn").documents == ()


def test_documents_of_earlier_turns_are_taken_newest_first_up_to_a_limit() -> None:
    texts = [f"Report {number}. " * 6000 for number in range(6)]
    turns = [turn(*searched(text), AIMessage("Yes."), asking=text[:9]) for text in texts]
    messages = [message for each in turns for message in each]
    read = read_input(messages + turn(AIMessage("Yes.")))
    assert [d.metadata["turn"] for d in read.documents] == [6, 5, 4]
    assert [d.page_content for d in read.documents] == texts[:2:-1]


def test_one_document_in_several_turns_is_one_document() -> None:
    read = read_input(EARLIER + EARLIER + turn(AIMessage("Oslo."), asking="Sure?"))
    assert [(d.id, d.metadata["turn"]) for d in read.documents] == [("oslo", 2)]


def test_text_that_a_model_wrote_inside_a_tool_is_evidence_only_if_it_is_trusted() -> None:
    for mark, count in (({"generated": True}, 0), ({}, 1)):
        messages = turn(*searched(response_metadata=mark), AIMessage("Rome."))
        assert len(read_input(messages).documents) == count
        assert len(read_input(messages, trust_generated=True).documents) == 1
    messages = turn(
        *searched(response_metadata={"generated": True}, artifact=[ROME]), AIMessage("Rome.")
    )
    assert read_input(messages).documents == (ROME,)


def test_what_middleware_says_as_the_user_is_not_the_question() -> None:
    summary = HumanMessage("Summary.", additional_kwargs={"lc_source": "summarization"})
    messages = turn(*searched(artifact=[ROME]), summary, AIMessage("Rome."))
    assert read_input(messages) == CheckInput(
        question="Capital of Italy?",
        answer="Rome.",
        documents=(ROME,),
        evidence_source="retrieved",
    )


def test_instructions_of_the_system_and_the_question_are_no_documents() -> None:
    messages = [SystemMessage("Italy's capital is Oslo."), *turn(AIMessage("Oslo."))]
    assert read_input({"messages": messages}).documents == ()


def test_failed_tool_calls_are_no_documents() -> None:
    messages = turn(*searched("Error: Rome timed out", status="error"), AIMessage("Rome."))
    assert read_input({"messages": messages}).documents == ()


def test_documents_in_the_state_are_preferred_to_those_in_messages() -> None:
    messages = turn(*searched("Oslo."), AIMessage("Rome."))
    assert read_input({"messages": messages, "context": [ROME]}).documents == (ROME,)


def test_messages_may_be_json() -> None:
    found = {"page_content": "Rome.", "metadata": {}, "type": "Document"}
    messages = [
        {"type": "human", "content": "Which?"},
        {"type": "ai", "content": "", "tool_calls": [CALL]},
        {"type": "tool", "content": "…", "tool_call_id": "call-1", "artifact": [found]},
        {"role": "assistant", "content": "It is Rome."},
    ]
    assert read_input({"messages": messages}) == CheckInput(
        question="Which?",
        answer="It is Rome.",
        documents=(Document(page_content="Rome."),),
        evidence_source="retrieved",
    )


class Capital(BaseModel):
    city_name: str
    inhabitants: list[int]
    is_port: bool = False
    mayor: str | None = None


def test_a_structured_response_is_read_line_by_line() -> None:
    response = Capital(city_name="Rome", inhabitants=[4, 5])
    read = read_input({"messages": turn(AIMessage("{}")), "structured_response": response})
    assert read.answer == "city name: Rome\ninhabitants: 4\ninhabitants: 5\nis port: false"


def test_a_structured_response_with_an_answer_in_it_is_read_as_that() -> None:
    response = {"answer": "Rome.", "sources": ["rome.md"]}
    assert read_input({"messages": [], "structured_response": response}).answer == "Rome."
    assert read_input((response, [ROME])).answer == "Rome."


def test_the_message_that_hands_over_a_structured_response_is_no_evidence_for_it() -> None:
    handing = {"name": "Capital", "args": {"city_name": "Rome"}, "id": "call-2"}
    messages = turn(
        *searched(artifact=[ROME]),
        AIMessage("", tool_calls=[handing]),
        ToolMessage("Error: city_name='Roma'", tool_call_id="call-2", name="Capital"),
        AIMessage("", tool_calls=[handing]),
        ToolMessage("Returning: city_name='Rome'", tool_call_id="call-2", name="Capital"),
    )
    response = Capital(city_name="Rome", inhabitants=[])
    read = read_input({"messages": messages, "structured_response": response})
    assert read.documents == (ROME,)
    unnamed = ToolMessage("Returning: city_name='Rome'", tool_call_id="call-2")
    state = {"messages": [*messages[:3], unnamed], "structured_response": response}
    assert read_input(state).documents == (ROME,)


def test_other_values_in_a_structured_answer_are_shown_as_a_reader_would_write_them() -> None:
    class Mood(Enum):
        CALM = "calm"

    @dataclass
    class Report:
        mood: Mood
        rate: float
        place: dict[str, str]

    report = Report(mood=Mood.CALM, rate=2.5, place={"home_town": "Rome"})
    assert read_input({"answer": report}).answer == "mood: calm\nrate: 2.5\nplace home town: Rome"
    assert read_input({"answer": ["One.", "Two."]}).answer == "One.\nTwo."
    assert read_input({"answer": 42}).answer == "42"
    assert read_input({"answer": True}).answer == "true"


def test_the_text_of_a_tool_that_answers_directly_is_the_answer_and_no_evidence() -> None:
    messages = turn(*searched("Rome."))
    assert read_input({"messages": messages}) == CheckInput(
        question="Capital of Italy?", answer="Rome.", documents=()
    )
    messages = turn(*searched("Rome.", artifact=[ROME]))
    assert read_input({"messages": messages}).documents == (ROME,)


def test_an_interrupted_agent_that_has_not_answered_is_refused() -> None:
    for messages in (turn(*searched()[:1]), turn(*searched())):
        with pytest.raises(InputFormatError, match=r"interrupted.*resume") as raised:
            read_input({"messages": messages, "__interrupt__": ("…",)})
        assert raised.value.keys == ("messages", "__interrupt__")


def test_an_agent_interrupted_after_its_answer_is_read() -> None:
    state = {"messages": turn(*searched(), AIMessage("Rome.")), "__interrupt__": ("…",)}
    assert read_input(state).answer == "Rome."


# Other shapes


@pytest.mark.parametrize(
    "key", ["final_answer", "reply", "completion", "text", "content", "summary"]
)
def test_other_keys_of_an_answer_are_read_where_there_are_no_messages(key: str) -> None:
    assert read_input({key: "Rome.", "context": [ROME]}).answer == "Rome."
    assert read_input({key: "Rome.", "output": "Oslo."}).answer == "Oslo."
    assert read_input({key: "Rome.", "messages": turn(AIMessage("Oslo."))}).answer == "Oslo."
    assert read_input({"answer": {key: "Rome.", "size": 4}}).answer.endswith("Rome.\nsize: 4")


@pytest.mark.parametrize("key", ["docs", "hits", "retrieved_documents"])
def test_a_list_of_documents_is_found_under_any_key(key: str) -> None:
    assert read_input({"answer": "Rome.", key: [ROME, OSLO]}).documents == (ROME, OSLO)
    assert read_input({"answer": "x", key: [OSLO], "context": [ROME]}).documents == (ROME,)
    json = {"page_content": "Rome.", "metadata": {}}
    assert read_input({"answer": "x", key: [json]}).documents == (Document(page_content="Rome."),)
    for other in ([], ["Rome."], [{"text": "Rome."}], [ROME, object()], ROME, {"a": [ROME]}):
        assert read_input({"answer": "Rome.", key: other}).documents == ()


def test_two_lists_of_documents_are_named_and_one_must_be_chosen() -> None:
    value = {"answer": "Rome.", "found": [ROME, OSLO], "kept": [ROME]}
    with pytest.raises(InputFormatError, match=r"'found' and 'kept'.*documents_key="):
        read_input(value)
    assert read_input(value, documents_key="kept").documents == (ROME,)


def test_keys_may_be_named() -> None:
    value = {"said": "Rome.", "hits": ["Rome it is."], "asked": "Which?", "answer": 3, "query": "x"}
    read = read_input(value, answer_key="said", documents_key="hits", question_key="asked")
    assert (read.answer, read.question) == ("Rome.", "Which?")
    assert read.documents == (Document(page_content="Rome it is."),)
    with pytest.raises(InputFormatError, match=r"no answer under answer_key='words'.*'said'"):
        read_input(value, answer_key="words")
    with pytest.raises(InputFormatError, match=r"no documents under documents_key='hit'.*'hits'"):
        read_input(value, documents_key="hit")


def test_documents_under_a_named_key_may_be_none_and_come_from_tools_instead() -> None:
    empty = read_input({"said": "Rome.", "hits": []}, answer_key="said", documents_key="hits")
    assert (empty.documents, empty.unread) == ((), ())
    messages = turn(*searched(artifact=[ROME]), AIMessage("Rome."))
    assert read_input({"messages": messages}, documents_key="hits").documents == (ROME,)


def test_a_named_answer_and_question_are_not_taken_for_documents() -> None:
    value = {"said": "Rome.", "asked": "Which?", "docs": "Rome."}
    read = read_input(value, answer_key="said", question_key="asked")
    assert read.unread == ("docs",)


@pytest.mark.parametrize("key", ["text", "content", "snippet", "page_content"])
def test_hits_of_search_engines_are_documents(key: str) -> None:
    hit = {"title": "Rome", "url": "https://example.org", key: "Rome is it.", "id": 7}
    [found] = read_input(("x", [hit])).documents
    assert (found.page_content, found.id) == ("Rome is it.", "7")


def test_what_else_a_hit_says_is_its_metadata() -> None:
    hit = {"title": "Rome", "content": "Rome is it.", "metadata": {"page": 2}}
    [found] = read_input({"answer": "x", "context": [hit]}).documents
    assert found.metadata == {"title": "Rome", "page": 2}


def test_scores_beside_documents_and_nested_lists_are_read() -> None:
    pairs = [(ROME, 0.25), (OSLO, 1)]
    for nested in (pairs, [pairs], [[ROME], [OSLO]], [[[ROME, 0.5]], (OSLO,)]):
        assert read_input({"answer": "x", "documents": nested}).documents == (ROME, OSLO)
        assert read_input({"answer": "x", "hits": nested}).documents == (ROME, OSLO)
    assert read_input(("x", [("Rome is it.", 0.25)])).documents[0].page_content == "Rome is it."


def test_an_answer_of_messages_is_read_as_a_conversation() -> None:
    messages = turn(*searched(artifact=[ROME]), AIMessage("Rome."))
    for value in ({"answer": messages}, (messages, None), {"output": messages, "question": None}):
        read = read_input(value)
        assert (read.question, read.answer, read.documents) == (
            "Capital of Italy?",
            "Rome.",
            (ROME,),
        )
    assert read_input((messages, [OSLO])).documents == (OSLO,)
    assert read_input({"answer": [AIMessage("Rome.")]}).answer == "Rome."


def test_a_state_object_is_read_like_a_mapping() -> None:
    @dataclass
    class State:
        question: str
        context: list[Document]
        answer: str

    class Reply(BaseModel):
        answer: str
        documents: list[Document]

    expected = CheckInput(question="Which?", answer="Rome.", documents=(ROME,))
    assert read_input(State(question="Which?", context=[ROME], answer="Rome.")) == expected
    assert read_input(Reply(answer="Rome.", documents=[ROME])).documents == (ROME,)


def test_any_other_shape_is_read_by_the_extractor_given() -> None:
    value = {"reply": {"body": "Rome."}, "hits": [{"text": ROME.page_content}]}

    def extract(output: dict[str, Any]) -> dict[str, Any]:
        return {
            "answer": output["reply"]["body"],
            "documents": [hit["text"] for hit in output["hits"]],
        }

    read = read_input(value, context_extractor=extract)
    assert read == CheckInput(answer="Rome.", documents=(Document(page_content=ROME.page_content),))
    assert read_input(value, context_extractor=lambda _: ("a", [ROME])).documents == (ROME,)


def test_a_failing_extractor_is_not_hidden() -> None:
    with pytest.raises(
        InputFormatError, match=r"context_extractor= failed with KeyError.*'foo'"
    ) as e:
        read_input({"foo": "secret"}, context_extractor=lambda output: output["reply"])
    assert isinstance(e.value.__cause__, KeyError)
    assert "secret" not in str(e.value)


@pytest.mark.parametrize("key", ["docs", "contexts", "retrieved_documents"])
def test_where_no_documents_are_found_the_reason_names_the_keys_that_were_not_read(
    key: str,
) -> None:
    result = GroundednessRunnable().invoke({"answer": "Rome is in Italy.", key: ["Rome."]})
    assert result.claims[0].reason == (
        f"no documents to check against: the input has '{key}'; documents are read from "
        "'documents', 'context', 'source_documents', 'input_documents'"
    )


SECRET = "s3cret"  # noqa: S105  (stands for any text of a user)


@pytest.mark.parametrize(
    ("value", "keys"),
    [
        (None, ()),
        (7, ()),
        (HumanMessage(SECRET), ()),
        (ROME, ()),
        ([], ()),
        ([SECRET, SECRET], ()),
        ((SECRET, SECRET, SECRET), ()),
        ((None, [SECRET]), ()),
        ((object(), [SECRET]), ()),
        ((SECRET, object()), ()),
        ((SECRET, [SECRET, None]), ()),
        ({}, ()),
        ({"said": SECRET, "hits": [SECRET], 3: SECRET}, ("said", "hits", "int")),
        ({"answer": None, "context": [SECRET]}, ("answer", "context")),
        ({"answer": SECRET, "context": {"deep": SECRET}}, ("answer", "context")),
        ({"answer": HumanMessage(SECRET)}, ("answer",)),
        ({"messages": []}, ("messages",)),
        ({"messages": [HumanMessage(SECRET)]}, ("messages",)),
        ({"messages": [{"text": SECRET}]}, ("messages",)),
        ({"messages": [object()]}, ("messages",)),
        ({"messages": turn(*searched()[:1], asking=SECRET)}, ("messages",)),
        ({"model": {"messages": [AIMessage(SECRET)]}}, ("model",)),
    ],
)
def test_a_shape_without_an_answer_is_refused_with_its_keys_and_never_its_values(
    value: object, keys: tuple[str, ...]
) -> None:
    with pytest.raises(InputFormatError, match=r"Accepted: .*context_extractor=") as raised:
        read_input(value)
    assert raised.value.keys == keys
    assert SECRET not in str(raised.value)
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__ or raised.value.__context__ is None


def test_the_message_names_the_keys_seen() -> None:
    with pytest.raises(InputFormatError, match="the keys seen are: 'said', 'hits'"):
        read_input({"said": "x", "hits": []})


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"answer": None, "context": [ROME]}, "no answer found: 'answer' is None; the keys seen"),
        ({"said": None, "text": None}, "'text' is None"),
        (
            {"answer": "Rome.", "context": [{"body": "Rome."}]},
            "a value of type dict with the keys 'body'; its text is read from 'page_content', 't",
        ),
        ({"answer": "Rome.", "context": {}}, "are of type dict with the keys none"),
        ({"answer": "Rome.", "context": (d for d in [ROME])}, "are of type generator; pass a list"),
        (("Rome.", {"Rome."}), "are of type set; pass a list"),
        (("Rome.", [ROME, ROME, 3]), "contain a value of type int"),
        ({"answer": "Rome.", "context": [3]}, r"search hits .*\(document, score\) pairs"),
        ({"answer": "Rome.", "question": 5}, "'question' is of type int; accepted: a text"),
        ({"answer": "Rome.", "question": {"Which?"}}, "'question' is of type set"),
        ({"answer": 5j}, "give context_extractor=.* to a GroundednessRunnable"),
    ],
)
def test_the_message_names_what_came(value: object, said: str) -> None:
    with pytest.raises(InputFormatError, match=said):
        read_input(value)


def test_the_message_names_a_named_answer_that_is_none() -> None:
    with pytest.raises(InputFormatError, match="no answer under answer_key='said', which is None"):
        read_input({"said": None, "context": [ROME]}, answer_key="said")


@pytest.mark.parametrize("question", [AIMessage("Which?"), {"text": "Which?"}, ["Which?"], None])
def test_a_question_of_another_shape_may_be_beside_the_answer(question: object) -> None:
    read = read_input({"answer": "Rome.", "context": [ROME], "question": question})
    assert read.question is None


def test_a_huge_mapping_does_not_make_a_huge_message() -> None:
    with pytest.raises(InputFormatError) as raised:
        read_input({f"{place}{'k' * 1000}": place for place in range(1000)})
    assert len(str(raised.value)) < 3000


@given(st.text(), st.lists(st.text()), st.none() | st.text())
def test_every_text_arrives_unchanged(
    answer: str, documents: list[str], question: str | None
) -> None:
    read = read_input({"answer": answer, "documents": documents, "question": question})
    assert (read.question, read.answer) == (question or None, answer)
    assert [d.page_content for d in read.documents] == documents
