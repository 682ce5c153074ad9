"""The table of modes on the page: every entry point does what it says."""

from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

from langchain_groundedness import (
    Citation,
    Claim,
    ClaimVerdict,
    ConfigurationError,
    DecisionPolicy,
    GroundednessGuard,
    GroundednessMiddleware,
    GroundednessRunnable,
    VerificationTask,
    groundedness_node,
)
from middleware.agent_scripts import TRUE, Writer, call, search_tool

REPORT = Document("Revenue was $2.1B in Q3.")
CLAIMS: dict[str, str] = {
    "contradicted": "Revenue was $2.4B in Q3.",
    "unverifiable": "The weather was fine.",
    "unchecked": "This one is broken.",
    "no evidence": "Costs fell in Q3.",
}
BLOCKED = "Blocked."
THREAD: Any = {"configurable": {"thread_id": "1"}}
PAGE = Path(__file__).parents[2] / "docs" / "guide" / "modes.md"


def table() -> dict[str, dict[str, str]]:
    """Read what each mode does about each finding."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("| mode |"))
    rows = [
        [cell.strip(" `") for cell in line.strip("|").split("|")]
        for line in takewhile(lambda line: line.startswith("|"), lines[start:])
    ]
    (_, *findings), _, *modes = rows
    return {mode: dict(zip(findings, effects, strict=True)) for mode, *effects in modes}


MODES = table()
FINDINGS = [(mode, finding) for mode in MODES for finding in CLAIMS]


class Talk(MessagesState):
    groundedness: dict[str, Any]


def judge(task: VerificationTask) -> list[ClaimVerdict]:
    return [judged(claim, task.documents) for claim in task.claims]


def judged(claim: Claim, documents: tuple[Document, ...]) -> ClaimVerdict:
    if "broken" in claim.text:
        return ClaimVerdict.unchecked(claim, "no time")
    label = {"weather": "unverifiable", "$2.4B": "contradicted"}
    found = next((label[word] for word in label if word in claim.text), "supported")
    quote = Citation.from_document(documents, 0, 0, len(REPORT.page_content))
    cited = () if found == "unverifiable" else (quote,)
    corrected = "$2.1B" if found == "contradicted" else None
    return ClaimVerdict.model_validate(
        {"claim": claim, "verdict": found, "citations": cited, "correction": corrected}
    )


def options(mode: str) -> dict[str, Any]:
    policy = DecisionPolicy.strict() if mode == "policy" else DecisionPolicy()
    return {"verifier": judge, "policy": policy}


def effect(text: str | None, claim: str, *, answer: str) -> str:
    """Name what became of the answer, which says `claim`."""
    if text is None:
        return "ask a person"
    if BLOCKED in text:
        return "withhold"
    if "[CORRECTED: $2.1B]" in text:
        return "correct"
    if claim not in text:
        return "remove"
    assert text.replace(" [UNCHECKED]", "").replace(" [CONTRADICTED]", "") == answer
    return "keep"


def from_agent(mode: Any, answer: str, documents: list[Document]) -> tuple[Any, int]:
    model = Writer(replies=[call(), answer, answer])
    middleware = GroundednessMiddleware(
        **options(mode), on_ungrounded=mode, blocked_message=BLOCKED
    )
    tools = [search_tool(*documents)] if documents else []
    agent = create_agent(
        model if documents else Writer(replies=[answer, answer]),
        tools=tools,
        middleware=[middleware],
        checkpointer=InMemorySaver(),
    )
    asked: Any = {"messages": [("user", "Q3?")]}
    state = agent.invoke(asked, THREAD)
    retries = state["groundedness"]["retries"] if "groundedness" in state else 0
    return (None if "__interrupt__" in state else state["messages"][-1].text), retries


def from_node(mode: Any, answer: str, documents: list[Document]) -> tuple[Any, int]:
    found = {"messages": [("user", "Q3?"), AIMessage(answer)]}
    node = groundedness_node(
        **options(mode),
        on_ungrounded=mode,
        blocked_message=BLOCKED,
        context_extractor=lambda _: {"answer": answer, "documents": documents},
    )
    graph: Any = StateGraph(Talk)
    graph.add_node("check", node).add_edge(START, "check")
    state = graph.compile(checkpointer=InMemorySaver()).invoke(found, THREAD)
    shown = [m.text for m in state["messages"] if isinstance(m, AIMessage)][-1]
    retries = state["groundedness"]["retries"] if "groundedness" in state else 0
    return (None if "__interrupt__" in state else shown), retries


@pytest.mark.parametrize("ask", [from_agent, from_node])
@pytest.mark.parametrize(("mode", "finding"), FINDINGS)
def test_middleware_and_node_do_what_the_table_says(mode: str, finding: str, ask: Any) -> None:
    claim = CLAIMS[finding]
    documents = [] if finding == "no evidence" else [REPORT]
    answer = f"Hello. {claim}" if finding == "no evidence" else f"{TRUE} {claim}"
    text, retries = ask(mode, answer, documents)
    expected = MODES[mode][finding]
    if expected == "ask the model":
        assert retries == 1
    elif expected == "after_retries":
        assert (retries, effect(text, claim, answer=answer)) == (0, "keep")
    elif expected == "as the policy decides":
        assert effect(text, claim, answer=answer) == "withhold"  # by a strict policy
    else:
        assert effect(text, claim, answer=answer) == expected


@pytest.mark.parametrize("mode", ["annotate", "correct", "policy"])
@pytest.mark.parametrize("finding", CLAIMS)
@pytest.mark.parametrize("entry", ["runnable", "guard", "guard, streamed"])
def test_runnable_and_guard_do_what_the_table_says(mode: str, finding: str, entry: str) -> None:
    claim = CLAIMS[finding]
    documents = [] if finding == "no evidence" else [REPORT]
    answer = f"Hello. {claim}" if finding == "no evidence" else f"{TRUE} {claim}"
    chosen = {} if mode == "policy" else {"on_contradicted": mode}
    check = GroundednessRunnable(**{**options(mode), **chosen})
    given = {"answer": answer, "documents": documents}
    if entry == "runnable":
        result = check.invoke(given)
        text = BLOCKED if result.decision.action == "block" else result.answer
    else:
        guard = GroundednessGuard(check, blocked_message=BLOCKED)
        pieces = [{"documents": documents}, *({"answer": c} for c in answer)]
        text = guard.invoke(given) if entry == "guard" else "".join(guard.transform(iter(pieces)))
    expected = "withhold" if mode == "policy" else MODES[mode][finding]
    assert effect(text, claim, answer=answer) == expected


def test_the_page_has_every_mode_and_every_finding() -> None:
    with pytest.raises(ConfigurationError) as caught:
        GroundednessMiddleware(on_ungrounded="no such mode")  # type: ignore[arg-type]
    assert all(f"'{mode}'" in str(caught.value) for mode in MODES)
    assert str(caught.value).count("'") >= 2 * len(MODES)
    assert {tuple(effects) for effects in MODES.values()} == {tuple(CLAIMS)}
