# %% [markdown]
# # Your own chain
#
# Paste your chain into the cell below, in place of the one that is there, and run it: you see your
# answer with its claims marked. The chain stays as it is. `collect_groundedness` reads the
# question, the retrieved documents and the answer of everything that runs inside its block.
#
# No key and no network are needed: `samples.py` provides a model that follows a script, and
# documents that are invented, and the embedded verifier judges on the CPU.
#
# `pip install langchain-groundedness`
#
# *Expect* an answer about a heat pump, with a wrong pressure in red and a made-up material in
# yellow.

# %% tags=["varies"]
from IPython.display import display
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough
from samples import paper_model, paper_retriever

from langchain_groundedness import collect_groundedness

# Your chain: replace the next five lines.
model, retriever = paper_model(), paper_retriever()
prompt = ChatPromptTemplate.from_template("Answer from: {documents}\n\nQuestion: {question}")
inputs = {"documents": retriever, "question": RunnablePassthrough()}
chain = inputs | prompt | model | StrOutputParser()
question = "What does code E04 on the heat pump mean, and how do I clean the fins?"

with collect_groundedness() as found:
    chain.invoke(question)
display(*found.results.values())

# %% [markdown]
# To use a model of yours, change `model`. The check stays on this machine either way.
#
# | | |
# |---|---|
# | OpenAI | `model = ChatOpenAI(model="gpt-4o-mini")` |
# | Anthropic | `model = ChatAnthropic(model="claude-haiku-4-5")` |
# | Ollama | `model = ChatOllama(model="qwen2.5:7b")` |
# | vLLM | `model = ChatOpenAI(model="...", base_url="http://localhost:8000/v1", api_key="none")` |
#
# ## A classic chain
#
# `RetrievalQA`, `ConversationalRetrievalChain` and `create_retrieval_chain` need no more. (Install
# `langchain-classic`.) *Expect* the same marks, on another answer.

# %% tags=["varies"]
from langchain_classic.chains import RetrievalQA

chain = RetrievalQA.from_llm(model, retriever=retriever)

with collect_groundedness() as found:
    chain.invoke("What may a hotel cost on a business trip, and when must I send my claim?")
display(*found.results.values())

# %% [markdown]
# ## An agent
#
# The documents of an agent are what its tools return. (Install `langchain-groundedness[agents]`.)
# *Expect* a wrong dividend and a made-up purchase to be marked.

# %% tags=["varies"]
from langchain.agents import create_agent
from langchain_core.tools import create_retriever_tool

search = create_retriever_tool(
    retriever, "search", "Search the documents.", response_format="content_and_artifact"
)
agent = create_agent(model, tools=[search])
question = "How did freight, fuel costs and the dividend of the ferries develop?"

with collect_groundedness() as found:
    agent.invoke({"messages": [("user", question)]})
display(*found.results.values())

# %% [markdown]
# ## If everything is unchecked
#
# Then no documents were seen: your chain finds them with a function of yours, and not with a
# LangChain retriever or tool. Nothing is guessed: each claim is `unchecked`, and a warning in the
# log says why (it is switched off here). *Expect* a violet mark.


# %%
import logging

from langchain_core.runnables import RunnableLambda, RunnableParallel

logging.getLogger("langchain_groundedness").setLevel(logging.ERROR)


def find(question):
    return ["Refill the circuit to 1.5 bar."]


def answer(question):
    find(question)  # your model reads what this returns
    return "Refill it to 2.5 bar."


with collect_groundedness() as found:
    RunnableLambda(answer).invoke("How far do I refill the circuit?")
display(*found.results.values())

# %% [markdown]
# Have the chain return its documents beside the answer; the keys are `question`, `answer`, and
# `documents` or `context`. *Expect* the wrong pressure in red.

# %% tags=["varies"]
chain = RunnableParallel(question=RunnablePassthrough(), answer=answer, documents=find)

with collect_groundedness() as found:
    chain.invoke("How far do I refill the circuit?")
display(*found.results.values())

# %% [markdown]
# Or give `check` the answer and the documents, without a chain. *Expect* the same.

# %% tags=["varies"]
from langchain_groundedness import check

check("Refill it to 2.5 bar.", find("How far do I refill the circuit?"))

# %% [markdown]
# ## Keep it
#
# | you want to | see |
# |---|---|
# | get a result after each answer | [Quickstart](01_quickstart.ipynb) |
# | hold back or correct text while it streams | [Streaming](02_streaming.ipynb) |
# | watch a chain in production, unchanged | [Callbacks](03_callbacks.ipynb) |
# | retry, block, or ask a person | [Agents](04_agents.ipynb) |
# | find the judge that is best for your documents | [Verifiers](05_verifiers.ipynb) |
