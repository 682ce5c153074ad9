# %% [markdown]
# # Check a chain or an agent without changing it
#
# Your chain is in production, or belongs to another team. A callback handler checks its answers
# from outside: you change no line of the chain, and its answers stay the same. This notebook
# attaches one to an old `RetrievalQA` chain and to an agent.
#
# Everything runs offline. The chat models are scripted and make mistakes on purpose. The documents
# in `papers/` are invented.
#
# `pip install 'langchain-groundedness[agents]' langchain-classic`
#
# The handler receives what the retriever finds and what the chain answers. *Expect* an answer about
# tablets, with a wrong time for which an opened pack keeps.

# %% tags=["varies"]
from langchain_classic.chains import RetrievalQA
from samples import paper_model, paper_retriever

from langchain_groundedness import GroundednessCallbackHandler

model, retriever = paper_model(), paper_retriever(k=1)
chain = RetrievalQA.from_llm(model, retriever=retriever)
question = "How do I take Norvelin tablets, and what if I forget one?"

handler = GroundednessCallbackHandler()
answered = chain.invoke(question, config={"callbacks": [handler]})
[result] = handler.results.values()
result

# %% [markdown]
# To use your own model, change only `model`:
#
# | | |
# |---|---|
# | OpenAI | `model = ChatOpenAI(model="gpt-4o-mini")` |
# | Anthropic | `model = ChatAnthropic(model="claude-haiku-4-5")` |
# | Ollama | `model = ChatOllama(model="qwen2.5:7b")` |
# | vLLM | `model = ChatOpenAI(model="...", base_url="http://localhost:8000/v1", api_key="none")` |
#
# The chain returns only its answer, without its documents, so nothing in its output could be
# checked. *Expect* the same answer with a handler and without.

# %%
print(answered["result"])
print(answered == chain.invoke(question))

# %% [markdown]
# Two sentences are wrong: an opened pack keeps for six months, and the leaflet says "do *not* take
# two to make up for it". The second shares nearly all its words with the leaflet; a small model may
# call such a sentence supported. Where a wrong answer does harm, have a chat model judge, as below,
# or a person read it ([a guarded assistant](06_guarded_assistant.ipynb)).

# %% [markdown]
# ## Get verdicts as they arrive
#
# `on_verdict` is called for each claim, and `on_event` for every event, also for the result of each
# answer. Use them for a log, a metric, or a page. `with_config` attaches the handler permanently.
# *Expect* the amounts of the policy.


# %%
def tell(event):
    print(f"{event.verdict.verdict:13}{event.verdict.claim.text}")


watched = chain.with_config(
    callbacks=[GroundednessCallbackHandler(on_verdict=tell, max_workers=1)]  # one at a time
)
answered = watched.invoke(
    "What may a hotel cost on a business trip, and when must I send my claim?"
)

# %% [markdown]
# ## Another judge
#
# A handler takes your checker, with all of its options. In production, `judge` is one of the models
# above. This one is scripted and is asked for a single word per claim. *Expect* it to refuse
# both wrong sentences.

# %%
from langchain_groundedness import GroundednessRunnable, LLMVerifier
from langchain_groundedness.testing import ScriptedChatModel


def one_word(messages):
    wrong = ("take two the next day", "twelve months")
    return "no" if any(words in messages[-1].text for words in wrong) else "yes"


judge = ScriptedChatModel(replies=one_word)
checker = GroundednessRunnable(verifier=LLMVerifier(model=judge, strategy="per_claim"))
handler = GroundednessCallbackHandler(checker)
chain.invoke(question, config={"callbacks": [handler]})
[result] = handler.results.values()
result

# %% [markdown]
# ## An agent
#
# The same handler checks an agent; its documents are what the tools return. This agent searches,
# then answers. *Expect* a wrong dividend in red.

# %% tags=["varies"]
from langchain.agents import create_agent
from langchain_core.tools import create_retriever_tool

search = create_retriever_tool(
    retriever, "search", "Search the documents.", response_format="content_and_artifact"
)
agent = create_agent(model, tools=[search])

handler = GroundednessCallbackHandler()
asked = "How did freight, fuel costs and the dividend of the ferries develop?"
agent.invoke({"messages": [("user", asked)]}, {"callbacks": [handler]})
[result] = handler.results.values()
result

# %% [markdown]
# ## Everything in a block of code
#
# `collect_groundedness` checks everything that runs in a block of code, without a config. With
# `GroundednessCallbackHandler(background=True)`, the check runs in threads of the handler after the
# answer has been returned; call `flush()`, or `await aflush()`, before you read `results`.
#
# *Expect* five results, none of them trusted.

# %%
from samples import read_lines, table

from langchain_groundedness import collect_groundedness

async with collect_groundedness() as watching:
    await chain.abatch([row["question"] for row in read_lines("papers/answers.jsonl")])

rows = [(result.question, result.verdict) for result in watching.results.values()]
table(("question", "verdict"), sorted(rows))

# %% [markdown]
# ## When the check fails
#
# A failed check never reaches the chain: the customer gets the answer, the result says `unchecked`,
# and the error is logged. *Expect* the answer and the reason. (Logging is switched off here.)

# %%
import logging

logging.getLogger("langchain_groundedness").setLevel(logging.CRITICAL)


def broken(task):
    raise TimeoutError


handler = GroundednessCallbackHandler(GroundednessRunnable(verifier=broken))
answered = chain.invoke(question, config={"callbacks": [handler]})
[result] = handler.results.values()
print(answered["result"][:51])
print(result.verdict, "|", result.claims[0].reason)

# %% [markdown]
# ## What a handler cannot do
#
# A handler only observes. To hold an answer back, to correct it or to ask a person, use [a
# guard](02_streaming.ipynb), [agent middleware](04_agents.ipynb), or the runnable [after the
# chain](01_quickstart.ipynb).
