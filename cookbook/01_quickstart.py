# %% [markdown]
# # Quickstart: check the answers of a chain
#
# A RAG chain answers from documents, but sometimes says what is not in them. One step after the
# chain shows which sentences the documents support. It takes three lines of code, and ten minutes
# to read this notebook.
#
# Everything runs offline, without a key. The embedded verifier, a small model inside the package,
# judges on the CPU. The chat model that answers is scripted and makes mistakes on purpose. The five
# documents in `papers/` are invented, but look like real ones: a manual, a table of figures, a
# policy, a changelog and a medical leaflet.
#
# `pip install langchain-groundedness`

# %%
import json
from operator import itemgetter
from pathlib import Path

from IPython.display import display
from langchain_core.documents import Document
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_groundedness import GroundednessRunnable, LLMVerifier
from langchain_groundedness.query import HashedNgramEmbeddings
from langchain_groundedness.testing import ScriptedChatModel

# %% [markdown]
# ## A chain like yours
#
# It has a retriever, a prompt and a model, and returns the documents with the answer, which the
# check needs. (These embeddings count letters and need no download; use yours.)

# %%
PAPERS = Path("papers")
documents = [
    Document(path.read_text(encoding="utf-8"), id=path.name, metadata={"source": path.name})
    for path in sorted((PAPERS / "documents").iterdir())
]
store = InMemoryVectorStore.from_documents(documents, HashedNgramEmbeddings())
retriever = store.as_retriever(search_kwargs={"k": 2})

asked = [json.loads(line) for line in (PAPERS / "answers.jsonl").read_text("utf-8").splitlines()]
says = {each["question"]: each["answer"] for each in asked}
model = ScriptedChatModel(replies=lambda messages: says[messages[-1].text.split("Question: ")[1]])

prompt = ChatPromptTemplate.from_template(
    "Answer from these documents only.\n\n{documents}\n\nQuestion: {question}"
)
chain = RunnablePassthrough.assign(documents=itemgetter("question") | retriever).assign(
    answer=prompt | model | StrOutputParser()
)

question = "What does code E04 on the heat pump mean, and how do I clean the fins?"
print(chain.invoke({"question": question})["answer"])

# %% [markdown]
# ## The check
#
# *Expect* two supported sentences, one contradicted (the manual says 1.5 bar), and one that the
# manual does not mention. Below the answer, you see the evidence for each verdict.

# %%
# (its figures differ a little between processors)
checked = chain.pipe(GroundednessRunnable())

result = checked.invoke({"question": question})
display(result)

# %% [markdown]
# ## What a result contains
#
# *Expect* a quote that is in the document word for word, with its offsets. The quote is cut out of
# the document, not written by a model.

# %%
print(result.verdict, result.trust_score, result.is_trusted, result.decision.action)

refill = result.claims[1]
[citation] = refill.citations
print(refill.verdict, "|", refill.claim.text, "|", refill.correction)
print(citation.document_id, citation.start, citation.end, citation.quote)
print(result.documents[citation.document].page_content[citation.start : citation.end])

# %% [markdown]
# ## Correct the answer
#
# *Expect* the right value instead of the wrong one, and no sentence about aluminium. The rest of
# the answer stays exactly as the model wrote it.

# %%
careful = GroundednessRunnable(on_contradicted="correct", on_unverifiable="strip")
print(chain.pipe(careful).invoke({"question": question}).answer)

# %% [markdown]
# ## Five answers at once
#
# `batch`, `ainvoke`, `stream` and the others work as in every LangChain runnable. *Expect* a red or
# yellow mark in each of the five answers: none of them is trusted.

# %%
# (its figures differ a little between processors)
results = checked.batch([{"question": each["question"]} for each in asked])
for result in results[1:]:
    display(result)

# %% [markdown]
# ## What it missed
#
# `papers/answers.jsonl` lists the wrong sentences, eleven in all. *Expect* eight found, no true
# sentence refused, and three missed: a figure from last year's column, an export whose removal was
# only *announced*, and a sentence that uses words of the leaflet but reverses their meaning. A
# small model sees words, numbers and names; it does not reason. [Choosing a
# verifier](05_verifiers.ipynb) shows what more expensive verifiers achieve.

# %%
for each, result in zip(asked, results, strict=True):
    for found in result.claims:
        is_wrong, is_marked = found.claim.text in each["wrong"], found.verdict != "supported"
        if is_wrong or is_marked:
            what = {(True, True): "found", (True, False): "MISSED"}.get(
                (is_wrong, is_marked), "FALSE ALARM"
            )
            print(f"{what:12}{each['source']:24}{found.claim.text}")

# %% [markdown]
# ## With a chat model
#
# To use your own model for the answers, change the line that makes `model`. To have a chat model
# judge instead of the embedded verifier, change the check to `GroundednessRunnable(model=judge)`.
#
# | | |
# |---|---|
# | OpenAI | `ChatOpenAI(model="gpt-4o-mini")` |
# | Anthropic | `ChatAnthropic(model="claude-haiku-4-5")` |
# | Ollama | `ChatOllama(model="qwen2.5:7b")` |
# | vLLM | `ChatOpenAI(model="...", base_url="http://localhost:8000/v1", api_key="none")` |
#
# *Expect* no claim to be shown as checked if the judge does not reply.

# %%
judge = ScriptedChatModel(replies=lambda messages: TimeoutError("the judge is down"))
checker = GroundednessRunnable(verifier=LLMVerifier(model=judge))
unsure = chain.pipe(checker).invoke({"question": question})
print(unsure.verdict, unsure.trust_score, unsure.is_trusted, unsure.decision.action)

# %% [markdown]
# ## Where to go next
#
# [Verdicts while the answer is written](02_streaming.ipynb) · [an unchanged
# chain](03_callbacks.ipynb) · [agents](04_agents.ipynb) · [choosing a verifier](05_verifiers.ipynb)
# · [a guarded assistant](06_guarded_assistant.ipynb) · [evaluation](07_evaluation.ipynb) · [from
# other libraries](08_migration.ipynb)
