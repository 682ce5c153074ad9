"""The contract of middleware fails for middleware that breaks it."""

from collections.abc import Sequence
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, HumanMessage
from typing_extensions import override

from langchain_groundedness.testing import AgentMiddlewareContract, ScriptedChatModel


class _Quiet(AgentMiddleware[Any, Any]):
    """Keeps the contract; the faults below inherit from it."""


class _Changing(_Quiet):
    @override
    def after_model(self, state: Any, runtime: Any) -> dict[str, Any]:
        last = state["messages"][-1]
        return {"messages": [AIMessage(f"{last.text}!", id=last.id)]}


class _OnlySync(_Quiet):
    @override
    def after_model(self, state: Any, runtime: Any) -> dict[str, Any]:
        return {"messages": [AIMessage("checked", id=state["messages"][-1].id)]}

    @override
    async def aafter_model(self, state: Any, runtime: Any) -> None:
        """Check nothing."""


class _Remembering(_Quiet):
    def __init__(self) -> None:
        super().__init__()
        self.first: str | None = None

    @override
    def after_model(self, state: Any, runtime: Any) -> dict[str, Any]:
        last = state["messages"][-1]
        self.first = self.first or last.text
        return {"messages": [AIMessage(self.first, id=last.id)]}


class _Replacing(_Quiet):
    @override
    def before_model(self, state: Any, runtime: Any) -> dict[str, Any]:
        return {"messages": [HumanMessage("?", id=state["messages"][0].id)]}


def contract_of(kind: type[_Quiet]) -> AgentMiddlewareContract:
    class Kept(AgentMiddlewareContract):
        def middleware(self) -> Any:
            return kind()

        def agent(self, middleware: Sequence[Any], checkpointer: Any = None) -> Any:
            model = ScriptedChatModel(replies=lambda asked: asked[-1].text.upper())
            return create_agent(model, middleware=middleware, checkpointer=checkpointer)

        def questions(self) -> Sequence[str]:
            return ["Who?", "Where?"]

    return Kept()


TESTS = [name for name in dir(AgentMiddlewareContract) if name.startswith("test_")]


@pytest.mark.parametrize("test", TESTS)
def test_a_middleware_that_keeps_the_contract_passes(test: str) -> None:
    getattr(contract_of(_Quiet), test)()


@pytest.mark.parametrize(
    ("kind", "test", "told"),
    [
        (
            _Changing,
            "test_an_agent_keeps_its_words",
            r"invoke: the middleware changes the messages: .*'WHO\?!'.*, not .*'WHO\?'",
        ),
        (_OnlySync, "test_all_ways_to_run_agree", r"ainvoke ends in other messages than invoke"),
        (
            _Remembering,
            "test_one_middleware_serves_many_runs",
            r"concurrent runs mix their results",
        ),
        (
            _Replacing,
            "test_the_state_can_be_kept_and_taken_up_again",
            r"the questions in the kept state are others: \['\?', .*, not \['Who\?', 'Where\?'\]",
        ),
    ],
)
def test_a_broken_middleware_is_found_out(kind: type[_Quiet], test: str, told: str) -> None:
    with pytest.raises(AssertionError, match=told):
        getattr(contract_of(kind), test)()
