"""The contract of agent middleware, as a test class. Needs the extra `agents`."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig

from langchain_groundedness.exceptions import require
from langchain_groundedness.testing.call_modes import assert_equal, run_bounded, shortened
from langchain_groundedness.testing.contract import SeenRuns

__all__ = ["AgentMiddlewareContract"]

_Agent = Runnable[Any, Any]


class AgentMiddlewareContract(ABC):
    """Tests that a middleware works the same in every way an agent is run, and shares nothing.

    Inherit from it in a test module, in a class whose name begins with `Test`.

    Example:
        >>> from langchain.agents import create_agent
        >>> from langchain.agents.middleware import ModelCallLimitMiddleware
        >>> from langchain_groundedness.testing import ScriptedChatModel
        >>> class TestCallLimit(AgentMiddlewareContract):
        ...     def middleware(self):
        ...         return ModelCallLimitMiddleware(run_limit=5)
        ...
        ...     def agent(self, middleware, checkpointer=None):
        ...         model = ScriptedChatModel(replies=lambda asked: asked[-1].text.upper())
        ...         return create_agent(model, middleware=middleware, checkpointer=checkpointer)
        ...
        ...     def questions(self):
        ...         return ["Who?", "Where?"]
        >>> TestCallLimit().test_all_ways_to_run_agree()
    """

    @abstractmethod
    def middleware(self) -> Any:
        """Make the middleware, anew at each call."""

    @abstractmethod
    def agent(self, middleware: Sequence[Any], checkpointer: Any = None) -> _Agent:
        """Make an agent with a model that answers by what it is asked, never by its turn.

        Args:
            middleware: What the agent gets.
            checkpointer: What it keeps its state in; `None` for no memory.
        """

    @abstractmethod
    def questions(self) -> Sequence[str]:
        """Give at least two questions with different answers."""

    def changes_answers(self) -> bool:
        """Tell whether the middleware puts another text in the place of an answer."""
        return False

    def test_all_ways_to_run_agree(self) -> None:
        """`invoke`, `stream` and their async twins end in the same messages."""
        for question in self.questions():
            expected: list[Any] | None = None
            for name, run in _RUN_MODES.items():
                found = _content(run(self.agent([self.middleware()]), _input(question), {}))
                expected = expected or found
                assert_equal(found, expected, f"{name} ends in other messages than invoke")

    def test_an_agent_keeps_its_words(self) -> None:
        """The messages are those of the agent without the middleware."""
        if self.changes_answers():
            return
        for question in self.questions():
            for name, run in _RUN_MODES.items():
                alone = _content(run(self.agent([]), _input(question), {}))
                found = _content(run(self.agent([self.middleware()]), _input(question), {}))
                assert_equal(found, alone, f"{name}: the middleware changes the messages")

    def test_one_middleware_serves_many_runs(self) -> None:
        """Runs at the same time, and agents that share it, end as each would alone."""
        shared = self.middleware()
        agent, other = self.agent([shared]), self.agent([shared])
        inputs = [_input(question) for question in self.questions()] * 4
        expected = [_content(self.agent([self.middleware()]).invoke(each)) for each in inputs]
        assert any(each != expected[0] for each in expected), (
            "questions() must give two or more with different answers; theirs are all "
            f"{shortened(expected[0])}"
        )
        assert_equal([_content(each) for each in agent.batch(inputs)], expected, "runs have mixed")
        found = [_content(each) for each in run_bounded(other.abatch(inputs))]
        assert_equal(found, expected, "runs on a loop have mixed")

    def test_the_state_can_be_kept_and_taken_up_again(self) -> None:
        """A checkpointer that takes plain data only keeps the state, and the agent goes on."""
        memory = require("langgraph.checkpoint.memory", extra="agents")
        plain = require("langgraph.checkpoint.serde.jsonplus", extra="agents")
        saver = memory.InMemorySaver(serde=plain.JsonPlusSerializer(allowed_msgpack_modules=None))
        agent = self.agent([self.middleware()], saver)
        config: RunnableConfig = {"configurable": {"thread_id": "contract"}}
        first, second, *_ = self.questions()
        for question in (first, second):
            agent.invoke(_input(question), config)
        again = self.agent([self.middleware()], saver)
        state: Any = again
        messages = state.get_state(config).values["messages"]
        asked = [message.text for message in messages if message.type == "human"]
        assert_equal(asked, [first, second], "the questions in the kept state are others")

    def test_a_config_reaches_the_inside(self) -> None:
        """Handlers hear of every run and of its end; tags and metadata are kept."""
        for name, run in _RUN_MODES.items():
            seen = SeenRuns()
            config = {"callbacks": [seen], "tags": ["contract-tag"], "metadata": {"kept": "yes"}}
            run(self.agent([self.middleware()]), _input(self.questions()[0]), config)
            assert not seen.open(), f"{name}: no end of {seen.open()}"
            assert all("contract-tag" in each.tags for each in seen.runs), f"{name}: a tag is lost"
            kept = [each.metadata.get("kept") for each in seen.runs]
            assert set(kept) == {"yes"}, f"{name}: metadata are lost"

    def test_it_has_a_name_and_a_place_in_the_graph(self) -> None:
        """Two of a kind can be told apart by name only, so it must not change; the graph draws."""
        assert self.middleware().name == self.middleware().name
        assert self.agent([self.middleware()]).get_graph().nodes


def _input(question: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": question}]}


def _content(state: Mapping[str, Any]) -> list[tuple[str, str, int]]:
    """Kind, text and number of tool calls of the messages; their ids are new in each run."""
    messages: Sequence[BaseMessage] = state["messages"]
    return [
        (m.type, m.text, len(m.tool_calls) if isinstance(m, AIMessage) else 0) for m in messages
    ]


async def _last_state(agent: _Agent, given: Any, config: Any) -> Any:
    stream = agent.astream(given, config, stream_mode="values")
    return [state async for state in stream][-1]


_RUN_MODES: Mapping[str, Callable[[_Agent, Any, Any], Any]] = {
    "invoke": lambda agent, given, config: agent.invoke(given, config),
    "stream": lambda agent, given, config: [*agent.stream(given, config, stream_mode="values")][-1],
    "ainvoke": lambda agent, given, config: run_bounded(agent.ainvoke(given, config)),
    "astream": lambda agent, given, config: run_bounded(_last_state(agent, given, config)),
}
