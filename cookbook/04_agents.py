# %% [markdown]
# # Check the answers of an agent
#
# `GroundednessMiddleware` checks the final answer of a `create_agent` agent, claim by claim,
# against what the agent's tools returned. This notebook runs offline: the embedded verifier judges,
# and a scripted model replaces a real one. To use your own model, change the line `model = ...`:
#
# | | |
# |---|---|
# | OpenAI | `model = ChatOpenAI(model="gpt-4o-mini")` |
# | Anthropic | `model = ChatAnthropic(model="claude-haiku-4-5")` |
# | Ollama | `model = ChatOllama(model="qwen2.5:7b")` |
# | vLLM | `model = ChatOpenAI(model="...", base_url="http://localhost:8000/v1", api_key="none")` |
#
# `pip install 'langchain-groundedness[agents]'`
#
# *Expect* the agent as a graph: the middleware has a step before the end, and can have the model
# answer again.

# %%
from langchain.agents import create_agent
from samples import ScriptedModel, graph_picture, search_reports

from langchain_groundedness import GroundednessMiddleware

WRONG = "Revenue was $2.4B in Q3. The company has 4,200 employees."
RIGHT = "Revenue was $2.1B in Q3. The company has 4,200 employees."
QUESTION = {"messages": [("user", "What was revenue in Q3, and how many people work there?")]}


def agent_that_says(*answers, checks, **options):
    model = ScriptedModel(replies=answers)  # it searches once, and then gives these answers
    return create_agent(model, tools=[search_reports], middleware=[checks], **options)


agent = agent_that_says(WRONG, checks=GroundednessMiddleware())
graph_picture(agent.get_graph())

# %% [markdown]
# ## Annotate
#
# The answer stays. Its supported parts get native `Citation` annotations. The state has the
# verdicts under `groundedness`, as plain data that every checkpointer can save. *Expect* a wrong
# revenue, and a correct number of people.

# %%
from samples import table

state = agent.invoke(QUESTION)
claims = state["groundedness"]["claims"]
table(("verdict", "claim"), ((each["verdict"], each["claim"]["text"]) for each in claims))

# %% [markdown]
# *Expect* one citation, with title and address of the report.

# %%
(block,) = state["messages"][-1].content_blocks
for note in block["annotations"]:
    if note["type"] == "citation":
        print(block["text"][note["start_index"] : note["end_index"]])
        print("  says", note["title"], "at", note["url"], "in these words:", note["cited_text"])

# %% [markdown]
# ## Correct
#
# Contradicted claims are corrected, or removed if that is not possible; unverifiable ones are
# removed. The message keeps its id, so no ungrounded text stays in the state. *Expect* the right
# revenue, and no weather.

# %%
from langchain_groundedness import Corrector, GroundednessRunnable

checker = GroundednessRunnable(corrector=Corrector(marker=None))
checks = GroundednessMiddleware(checker, on_ungrounded="correct")
agent = agent_that_says(f"{WRONG} The weather was fine.", checks=checks)
print(agent.invoke(QUESTION)["messages"][-1].text)

# %% [markdown]
# ## Retry
#
# The model gets the failed claims as feedback and answers again, at most `max_retries` times; then
# `after_retries` applies. Neither the refused answer nor the feedback stays in the state. *Expect*
# the second answer, and four messages: question, tool call, tool result, answer.

# %%
checks = GroundednessMiddleware(on_ungrounded="retry", max_retries=2, after_retries="block")
agent = agent_that_says(WRONG, RIGHT, checks=checks)
state = agent.invoke(QUESTION)
print(state["messages"][-1].text)
print("asked again:", state["groundedness"]["retries"], "| messages:", len(state["messages"]))

# %% [markdown]
# ## Block
#
# *Expect* your message instead of the answer.

# %%
checks = GroundednessMiddleware(on_ungrounded="block", blocked_message="Please ask our staff.")
print(agent_that_says(WRONG, checks=checks).invoke(QUESTION)["messages"][-1].text)

# %% [markdown]
# ## Review
#
# The run pauses until a person decides. With a persistent checkpointer, another process can resume
# the run days later; the answer is not checked a second time. *Expect* the answer, and what the
# checker suggests.

# %%
from langgraph.checkpoint.memory import InMemorySaver

checks = GroundednessMiddleware(
    GroundednessRunnable(on_contradicted="correct"), on_ungrounded="review"
)
agent = agent_that_says(WRONG, RIGHT, checks=checks, checkpointer=InMemorySaver())
thread = {"configurable": {"thread_id": "1"}}
(pause,) = agent.invoke(QUESTION, thread)["__interrupt__"]
print(pause.value["action_requests"][0]["description"])
print("answer:    ", pause.value["action_requests"][0]["args"]["answer"])
print("suggestion:", pause.value["suggestion"])
print("decisions: ", pause.value["review_configs"][0]["allowed_decisions"])

# %% [markdown]
# `approve` releases the answer; `edit` replaces it with the reviewer's text; `reject` withholds it;
# `respond` sends the reviewer's message to the model, which answers again, and that answer is
# checked, too. *Expect* the right answer.

# %%
from langgraph.types import Command

words = {"type": "respond", "message": "The revenue is wrong. Read the report again."}
state = agent.invoke(Command(resume=words), thread)
print(state["messages"][-1].text)
print(state["groundedness"]["outcome"], "|", state["groundedness"]["verdict"])

# %% [markdown]
# ## A second turn
#
# The answer to a second question is checked against what the tools returned for the first, even
# when the agent does not call them again; `evidence="turn"` would leave that out. *Expect* that the
# true answer passes, with a citation from turn 1, and that the wrong one is blocked.

# %%
checks = GroundednessMiddleware(on_ungrounded="block", blocked_message="Please ask our staff.")
agent = agent_that_says(RIGHT, RIGHT, WRONG, checks=checks, checkpointer=InMemorySaver())
agent.invoke(QUESTION, thread)
for again in ("Are you sure?", "Really?"):
    state = agent.invoke({"messages": [("user", again)]}, thread)
    print(state["messages"][-1].text)
    for claim in state["groundedness"]["claims"]:
        for citation in claim["citations"]:
            print("  from turn", citation["metadata"]["turn"], "|", citation["quote"])

# %% [markdown]
# ## Hold the stream
#
# An agent streams tokens from inside its model, before any middleware has seen them. With
# `hold_stream=True`, a sentence enters the token stream only after its verdict, and only if it
# passes. *Expect* a greeting and the number of people.

# %%
from langchain_core.messages import AIMessageChunk

checks = GroundednessMiddleware(hold_stream=True)
agent = agent_that_says(f"Hello! {WRONG} The weather was fine.", checks=checks)
parts = agent.stream(QUESTION, stream_mode="messages")
print("".join(part.text for part, _ in parts if isinstance(part, AIMessageChunk)))

# %% [markdown]
# ## Live verdicts
#
# `run.extensions["groundedness"]` emits each verdict as soon as it is known: while the answer is
# written with `live=True` or `hold_stream=True`, otherwise after the last token. Sentences are
# checked in parallel, so their verdicts may arrive in any order; here they are sorted. *Expect* the
# two verdicts from before.

# %%
import warnings

warnings.filterwarnings("ignore", message="The v3 streaming protocol")
agent = agent_that_says(WRONG, checks=GroundednessMiddleware(live=True))
run = agent.stream_events(QUESTION, version="v3")
events = list(run.extensions["groundedness"])
verdicts = [event["data"] for event in events if event["event"] == "groundedness.verdict"]
for verdict in sorted(verdicts, key=lambda verdict: verdict["claim"]["start"]):
    print(verdict["verdict"], "|", verdict["claim"]["text"])

# %% [markdown]
# ## In your own graph
#
# `groundedness_node` does the same in your own LangGraph graph, with messages or with the keys of a
# chain. *Expect* a corrected answer.

# %%
from typing import Any

from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict

from langchain_groundedness import groundedness_node


class State(TypedDict, total=False):
    """State of a small graph."""

    question: str
    documents: list[str]
    answer: str
    groundedness: dict[str, Any]


graph = StateGraph(State)
graph.add_node("answer", lambda state: {"answer": "Revenue was $2.4B in Q3."})
graph.add_node("check", groundedness_node(on_ungrounded="correct"))
graph.add_edge(START, "answer")
graph.add_edge("answer", "check")
graph.add_edge("check", END)
documents = ["Revenue was $2.1B in Q3."]
state = graph.compile().invoke({"question": "Revenue?", "documents": documents})
print(state["answer"])
