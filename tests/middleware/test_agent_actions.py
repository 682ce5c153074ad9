"""What happens to answers: annotate, correct, retry, block."""

from typing import Any

import pytest
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel

from langchain_groundedness import (
    ClaimVerdict,
    ConfigurationError,
    Corrector,
    DecisionPolicy,
    GroundednessMiddleware,
    GroundednessRunnable,
    groundedness_node,
)
from langchain_groundedness.types import CorrectedAnswer
from middleware.agent_scripts import (
    FALSE,
    QUESTION,
    REPORT,
    TRUE,
    How,
    Writer,
    agent_of,
    call,
    checker,
    run,
    search_tool,
)

MIXED = f"{TRUE} {FALSE} The weather was fine."
BLOCKED = "I cannot give an answer that the sources support."


class Figures(BaseModel):
    """Answer."""

    revenue: str
    quarter: int | None = None


def said(state: dict[str, Any]) -> str:
    """Give everything that any message of a state says."""
    return " ".join(f"{m.content} {getattr(m, 'tool_calls', '')}" for m in state["messages"])


def annotations(state: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        a for block in state["messages"][-1].content_blocks for a in block.get("annotations", [])
    ]


# --- annotate ---


def test_supported_claims_get_native_citations_with_exact_indices(how: How) -> None:
    agent = agent_of(call(), f"Sure! {TRUE}", middleware=GroundednessMiddleware())
    state = run(agent, QUESTION, how)
    (citation,) = annotations(state)
    text = state["messages"][-1].text
    assert text == f"Sure! {TRUE}"
    assert citation["type"] == "citation"
    assert text[citation["start_index"] : citation["end_index"]] == TRUE
    assert citation["cited_text"] == REPORT.page_content
    assert citation["url"] == "https://example.org/q3"
    assert citation["title"] == "Q3 report"
    where = citation["extras"]["groundedness"]
    assert where["document_id"] == "report"
    assert REPORT.page_content[where["start"] : where["end"]] == citation["cited_text"]


def test_claims_that_failed_are_annotated_but_not_as_citations(how: How) -> None:
    check, _ = checker()
    state = run(agent_of(call(), MIXED, middleware=GroundednessMiddleware(check)), QUESTION, how)
    found = annotations(state)
    assert [a["type"] for a in found] == ["citation", *["non_standard_annotation"] * 2]
    values = [a["value"] for a in found[1:]]
    assert [v["groundedness"]["verdict"] for v in values] == ["contradicted", "unverifiable"]
    assert [MIXED[v["start_index"] : v["end_index"]] for v in values] == [
        FALSE,
        "The weather was fine.",
    ]
    assert state["messages"][-1].text == MIXED
    assert state["groundedness"]["outcome"] == "annotated"


def test_verdicts_stand_in_the_state_and_can_be_read_back(how: How) -> None:
    check, _ = checker()
    state = run(agent_of(call(), MIXED, middleware=GroundednessMiddleware(check)), QUESTION, how)
    record = state["groundedness"]
    assert record["message_id"] == state["messages"][-1].id
    assert record["verdict"] == "has_contradictions"
    assert record["trust_score"] == pytest.approx(1 / 3)
    assert not record["is_trusted"]
    assert record["decision"]["action"] == "flag"
    verdicts = [ClaimVerdict.model_validate(claim) for claim in record["claims"]]
    assert [v.verdict for v in verdicts] == ["supported", "contradicted", "unverifiable"]


def test_the_model_never_reads_our_annotations(how: How) -> None:
    model = Writer(replies=[call(), TRUE, "You are welcome."])
    agent = agent_of(middleware=GroundednessMiddleware(), model=model, checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "1"}}
    run(agent, QUESTION, how, config)
    state = run(agent, {"messages": [("user", "Thanks!")]}, how, config)
    (earlier,) = [m for m in model.requests[-1] if isinstance(m, AIMessage) and not m.tool_calls]
    assert earlier.content == TRUE
    assert "output_version" not in earlier.response_metadata
    assert isinstance(state["messages"][3].content, list)


def test_answers_without_claims_pass_unchanged(how: How) -> None:
    middleware = GroundednessMiddleware(on_ungrounded="block")
    state = run(agent_of("I don't know.", middleware=middleware), QUESTION, how)
    assert state["messages"][-1].content == "I don't know."
    assert state["groundedness"]["outcome"] == "passed"
    assert state["groundedness"]["verdict"] == "no_claims"


@pytest.mark.parametrize("mode", ["annotate", "correct", "retry", "block", "review", "policy"])
@pytest.mark.parametrize(
    "answer", ["Hi Anna! I'm your finance assistant.", "Please tell me the quarter."]
)
def test_small_talk_passes_every_mode(how: How, mode: Any, answer: str) -> None:
    middleware = GroundednessMiddleware(on_ungrounded=mode)
    state = run(agent_of(answer, middleware=middleware), QUESTION, how)
    assert state["messages"][-1].content == answer
    assert state["groundedness"]["outcome"] == "passed"
    assert state["groundedness"]["verdict"] == "no_claims"


def test_blocks_beside_the_text_stay(how: How) -> None:
    blocks: Any = [
        {"type": "reasoning", "reasoning": "hm"},
        {"type": "text", "text": "Sure! "},
        {"type": "text", "text": TRUE},
    ]
    agent = agent_of(call(), AIMessage(content=blocks), middleware=GroundednessMiddleware())
    message = run(agent, QUESTION, how)["messages"][-1]
    assert [block["type"] for block in message.content] == ["reasoning", "text", "text"]
    (citation,) = message.content[2]["annotations"]
    assert (citation["start_index"], citation["end_index"]) == (0, len(TRUE))
    assert message.content[1] == blocks[1]


@pytest.mark.parametrize("mode", ["correct", "retry", "block", "review", "policy"])
def test_the_content_of_an_answer_keeps_its_type_unless_annotate_is_chosen(
    how: How, mode: Any
) -> None:
    middleware = GroundednessMiddleware(on_ungrounded=mode)
    message = run(agent_of(call(), TRUE, middleware=middleware), QUESTION, how)["messages"][-1]
    assert message.content == TRUE
    (citation,) = message.response_metadata["groundedness"]["annotations"]
    assert TRUE[citation["start_index"] : citation["end_index"]] == TRUE
    assert citation["cited_text"] == REPORT.page_content


# --- correct ---


def test_corrected_answers_keep_their_message_id_and_nothing_ungrounded_stays(how: How) -> None:
    check = GroundednessRunnable(corrector=Corrector(marker=None))
    model = Writer(replies=[call(), f"{FALSE} The mayor of Oslo resigned."])
    middleware = GroundednessMiddleware(check, on_ungrounded="correct")
    checkpointer = InMemorySaver()
    agent = agent_of(model=model, middleware=middleware, checkpointer=checkpointer)
    config: Any = {"configurable": {"thread_id": "1"}}
    state = run(agent, QUESTION, how, config)
    assert state["messages"][-1].text == TRUE
    assert state["groundedness"]["outcome"] == "corrected"
    snapshots = list(agent.get_state_history(config))
    original = next(m for s in snapshots[1:] for m in s.values.get("messages", ())[3:])
    assert state["messages"][-1].id == original.id
    assert "$2.4B" not in said(snapshots[0].values)
    assert "Oslo" not in said(snapshots[0].values)
    assert state["messages"][-1].content == TRUE
    (citation,) = state["messages"][-1].response_metadata["groundedness"]["annotations"]
    assert citation["extras"]["groundedness"]["verdict"] == "corrected"
    assert (citation["start_index"], citation["end_index"]) == (0, len(TRUE))


def test_the_policy_decides_on_what_is_shown(how: How) -> None:
    policy = DecisionPolicy(contradicted="block")
    check = GroundednessRunnable(corrector=Corrector(marker=None), policy=policy)

    def record(mode: Any) -> Any:
        middleware = GroundednessMiddleware(check, on_ungrounded=mode)
        return run(agent_of(call(), FALSE, middleware=middleware), QUESTION, how)["groundedness"]

    corrected, kept = record("correct"), record("annotate")
    assert (corrected["outcome"], kept["outcome"]) == ("corrected", "blocked")
    assert corrected["verdict"] == kept["verdict"] == "has_contradictions"
    assert (corrected["final"]["verdict"], kept["final"]["verdict"]) == ("grounded", "no_claims")
    assert (corrected["decision"]["action"], kept["decision"]["action"]) == ("pass", "block")


def test_what_cannot_be_corrected_is_taken_out(how: How) -> None:
    check, _ = checker(corrector=lambda task: CorrectedAnswer(text=task.answer))
    middleware = GroundednessMiddleware(check, on_ungrounded="correct")
    state = run(agent_of(call(), MIXED, middleware=middleware), QUESTION, how)
    assert state["messages"][-1].text == TRUE


def test_an_answer_of_which_nothing_is_left_is_blocked(how: How) -> None:
    check, _ = checker()
    middleware = GroundednessMiddleware(check, on_ungrounded="correct", blocked_message="No.")
    state = run(agent_of(call(), "The weather was fine.", middleware=middleware), QUESTION, how)
    assert state["messages"][-1].content == "No."
    assert state["groundedness"]["outcome"] == "blocked"


def test_unverifiable_claims_stay_where_the_checker_says_so(how: How) -> None:
    check, _ = checker(on_unverifiable="keep")
    middleware = GroundednessMiddleware(check, on_ungrounded="correct")
    answer = f"{TRUE} The weather was fine."
    state = run(agent_of(call(), answer, middleware=middleware), QUESTION, how)
    assert state["messages"][-1].text == answer
    assert state["groundedness"]["outcome"] == "annotated"


@pytest.mark.parametrize("way", ["tool", "provider"])
def test_structured_answers_are_corrected_wherever_they_stand(how: How, way: str) -> None:
    written: Any = {"revenue": "Revenue was $2.4B in Q3", "quarter": 3}
    if way == "tool":
        strategy: Any = ToolStrategy(Figures)
        reply: Any = call("Figures", **written)
    else:
        strategy, reply = ProviderStrategy(Figures), str(written).replace("'", '"')
    middleware = GroundednessMiddleware(on_ungrounded="correct")
    agent = agent_of(call(), reply, middleware=middleware, response_format=strategy)
    state = run(agent, QUESTION, how)
    assert state["structured_response"].revenue == "Revenue was $2.1B in Q3"
    assert "$2.4B" not in said(state)
    assert state["structured_response"].quarter is None  # the report does not name it so
    assert state["groundedness"]["outcome"] == "corrected"


class Size(BaseModel):
    """Answer."""

    employees: int


def test_a_structured_answer_that_cannot_be_corrected_is_withheld(how: How) -> None:
    replies = (call(), call("Size", employees=9000))
    middleware = GroundednessMiddleware(on_ungrounded="correct", blocked_message="No.")
    agent = agent_of(*replies, middleware=middleware, response_format=ToolStrategy(Size))
    state = run(agent, QUESTION, how)
    assert state["structured_response"] is None
    assert "9000" not in said(state)
    assert state["groundedness"]["outcome"] == "blocked"


def test_a_structured_answer_that_was_not_checked_is_withheld(how: How) -> None:
    check, _ = checker()
    replies = (call(), call("Figures", revenue="This sentence is broken."))
    middleware = GroundednessMiddleware(check, on_ungrounded="correct")
    agent = agent_of(*replies, middleware=middleware, response_format=ToolStrategy(Figures))
    state = run(agent, QUESTION, how)
    assert state["structured_response"] is None
    assert "broken" not in said(state)
    assert state["groundedness"]["outcome"] == "blocked"


# --- retry ---


def test_retry_names_the_failed_claims_to_the_model_and_keeps_only_the_new_answer(
    how: How,
) -> None:
    check, _ = checker()
    model = Writer(replies=[call(), MIXED, TRUE])
    middleware = GroundednessMiddleware(check, on_ungrounded="retry")
    state = run(agent_of(model=model, middleware=middleware), QUESTION, how)
    told = model.requests[-1][-1]
    assert isinstance(told, HumanMessage)
    assert FALSE in told.text
    assert "The weather was fine." in told.text
    assert REPORT.page_content in told.text
    assert f". {TRUE}" not in told.text
    assert [m.type for m in state["messages"]] == ["human", "ai", "tool", "ai"]
    assert state["messages"][-1].text == TRUE
    assert state["groundedness"]["outcome"] == "passed"
    assert state["groundedness"]["retries"] == 1


@pytest.mark.parametrize("retries", [0, 1, 3])
def test_retries_are_capped_and_then_the_answer_is_handled_as_asked(how: How, retries: int) -> None:
    check, _ = checker()
    model = Writer(replies=[call(), *[FALSE] * (retries + 1)])
    middleware = GroundednessMiddleware(
        check, on_ungrounded="retry", max_retries=retries, after_retries="block"
    )
    state = run(agent_of(model=model, middleware=middleware), QUESTION, how)
    assert len(model.requests) == retries + 2
    assert state["messages"][-1].text == BLOCKED
    assert "$2.4B" not in said(state)
    assert state["groundedness"]["retries"] == retries


def test_each_turn_has_its_own_retries(how: How) -> None:
    check, judge = checker()
    model = Writer(replies=[call(), FALSE, FALSE, call(), FALSE, TRUE])
    middleware = GroundednessMiddleware(check, on_ungrounded="retry")
    agent = agent_of(model=model, middleware=middleware, checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "1"}}
    run(agent, QUESTION, how, config)
    state = run(agent, QUESTION, how, config)
    assert state["messages"][-1].text == TRUE
    assert state["groundedness"]["retries"] == 1
    assert len(judge.tasks) == 4


def test_evidence_stays_the_same_when_the_model_answers_again(how: How) -> None:
    check, judge = checker()
    middleware = GroundednessMiddleware(check, on_ungrounded="retry")
    run(agent_of(call(), FALSE, TRUE, middleware=middleware), QUESTION, how)
    assert [task.documents for task in judge.tasks] == [(REPORT,), (REPORT,)]
    assert {task.question for task in judge.tasks} == {"What was Q3 revenue?"}


def test_without_evidence_the_model_is_told_to_look_it_up(how: How) -> None:
    check, _ = checker()
    model = Writer(replies=[TRUE, call(), TRUE])
    middleware = GroundednessMiddleware(check, on_ungrounded="retry")
    state = run(agent_of(model=model, middleware=middleware), QUESTION, how)
    assert "no tool has returned anything" in model.requests[1][-1].text
    assert state["groundedness"]["verdict"] == "grounded"


def test_a_model_is_not_asked_again_because_the_judge_failed(how: How) -> None:
    check, _ = checker()
    model = Writer(replies=[call(), "This sentence is broken."])
    middleware = GroundednessMiddleware(check, on_ungrounded="retry", after_retries="block")
    state = run(agent_of(model=model, middleware=middleware), QUESTION, how)
    assert len(model.requests) == 2
    assert state["messages"][-1].text == BLOCKED


def test_structured_answers_are_given_again(how: How) -> None:
    check, _ = checker()
    replies = (
        call(),
        call("Figures", revenue="Revenue was $2.4B"),
        call("Figures", revenue="Revenue was $2.1B"),
    )
    middleware = GroundednessMiddleware(check, on_ungrounded="retry")
    agent = agent_of(*replies, middleware=middleware, response_format=ToolStrategy(Figures))
    state = run(agent, QUESTION, how)
    assert state["structured_response"].revenue == "Revenue was $2.1B"
    assert "$2.4B" not in said(state)
    kinds = [m.type for m in state["messages"]]
    assert kinds == ["human", "ai", "tool", "ai", "tool"]


# --- block ---


def test_blocked_answers_are_replaced_under_the_same_id(how: How) -> None:
    check, _ = checker()
    middleware = GroundednessMiddleware(check, on_ungrounded="block", blocked_message="No.")
    state = run(agent_of(call(), FALSE, middleware=middleware), QUESTION, how)
    assert [m.type for m in state["messages"]] == ["human", "ai", "tool", "ai"]
    assert state["messages"][-1].content == "No."
    assert state["groundedness"]["outcome"] == "blocked"


def test_blocked_structured_answers_are_withheld_everywhere(how: How) -> None:
    check, _ = checker()
    replies = (call(), call("Figures", revenue="Revenue was $2.4B"))
    middleware = GroundednessMiddleware(check, on_ungrounded="block", blocked_message="No.")
    agent = agent_of(*replies, middleware=middleware, response_format=ToolStrategy(Figures))
    state = run(agent, QUESTION, how)
    assert state["structured_response"] is None
    assert "$2.4B" not in said(state)
    assert isinstance(state["messages"][-1], ToolMessage)
    assert state["messages"][-1].content == "No."


def test_a_grounded_answer_passes_whatever_is_asked(how: How) -> None:
    check, _ = checker()
    options: Any = ("annotate", "correct", "retry", "block", "review")
    for on_ungrounded in options:
        middleware = GroundednessMiddleware(check, on_ungrounded=on_ungrounded)
        state = run(agent_of(call(), TRUE, middleware=middleware), QUESTION, how)
        assert state["messages"][-1].text == TRUE
        assert state["groundedness"]["outcome"] == "passed"


def test_the_policy_may_ask_for_more_than_trust(how: How) -> None:
    middleware = GroundednessMiddleware(
        GroundednessRunnable(policy=DecisionPolicy(no_claims="block")),
        on_ungrounded="block",
        blocked_message="No.",
    )
    state = run(agent_of(call(), "I don't know.", middleware=middleware), QUESTION, how)
    assert state["messages"][-1].content == "No."


# --- options ---


EDITS: Any = [{"on_contradicted": "correct"}, {"on_unverifiable": "strip"}]


@pytest.mark.parametrize("edits", EDITS)
@pytest.mark.parametrize("make", [GroundednessMiddleware, groundedness_node])
@pytest.mark.parametrize("mode", ["annotate", "block", "retry"])
def test_edits_that_the_mode_would_undo_are_refused_with_the_mode_that_shows_them(
    make: Any, mode: str, edits: dict[str, Any]
) -> None:
    [(name, value)] = edits.items()
    words = f"{name}='{value}' has no effect with on_ungrounded='{mode}'.*on_ungrounded='correct'"
    for given in (edits, {"checker": checker(**edits)[0]}):
        with pytest.raises(ConfigurationError, match=words):
            make(**given, on_ungrounded=mode)


@pytest.mark.parametrize("edits", EDITS)
@pytest.mark.parametrize(
    "modes",
    [
        {"on_ungrounded": "correct"},
        {"on_ungrounded": "retry", "after_retries": "correct"},
        {"on_ungrounded": "review"},
        {"on_ungrounded": "policy"},
    ],
)
def test_edits_are_accepted_where_the_user_or_a_reviewer_gets_them(
    modes: Any, edits: dict[str, Any]
) -> None:
    GroundednessMiddleware(**modes, **edits)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"on_ungrounded": "ignore"}, "on_ungrounded must be one of 'annotate'"),
        ({"after_retries": "retry"}, "after_retries must be one of"),
        ({"max_retries": -1}, "max_retries must be a whole number"),
        ({"max_retries": True}, "max_retries must be a whole number"),
        ({"blocked_message": " "}, "blocked_message must be a non-empty str"),
        ({"context_extractor": 3}, "context_extractor must be callable"),
        ({"checker": "gpt"}, "checker must be a GroundednessRunnable"),
        ({"checker": checker()[0].with_retry(), "hold_stream": True}, "need a Groundedness"),
    ],
)
def test_options_are_checked_when_the_middleware_is_made(
    options: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigurationError, match=words):
        GroundednessMiddleware(**options)


def test_agents_without_tools_can_retry(how: How) -> None:
    def read(state: Any) -> Any:
        return state["messages"][-1].text, [REPORT]

    check, _ = checker()
    middleware = GroundednessMiddleware(check, on_ungrounded="retry", context_extractor=read)
    state = run(agent_of(FALSE, TRUE, middleware=middleware, tools=[]), QUESTION, how)
    assert state["messages"][-1].text == TRUE


def test_any_runnable_that_gives_a_result_can_check(how: How) -> None:
    check, _ = checker()
    middleware = GroundednessMiddleware(check.with_retry(), on_ungrounded="block")
    tools = [search_tool()]
    state = run(agent_of(call(), FALSE, middleware=middleware, tools=tools), QUESTION, how)
    assert state["messages"][-1].text == BLOCKED
