# %% [markdown]
# # Quickstart: check the answers of a chain
#
# A RAG chain answers from documents, and now and then says what is not in them. One step behind
# the chain tells which sentences the documents support. It takes ten minutes to read this, and
# three lines to use it.
#
# Everything runs offline, without a key: the embedded verifier, a small model inside the package,
# judges on the processor. The chat model that answers is scripted, and errs on purpose. The five
# documents in `papers/` have the shape of real ones (a manual, a table of figures, a policy, a
# changelog, a medical leaflet), and are invented.
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
# ## A chain, as you may have one
#
# Retriever, prompt, model. What matters: it returns the documents beside the answer. (Embeddings
# that count letters need no download; use yours.)

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
# *Expect* two sentences supported, one contradicted (the manual says 1.5 bar), and one of which
# the manual says nothing. Below the answer stands what each verdict rests on.

# %%
# (its figures differ a little between processors)
checked = chain.pipe(GroundednessRunnable())

result = checked.invoke({"question": question})
display(result)

# %% [markdown]
# ## What a result holds
#
# *Expect* a quote that stands in the document word for word, with its place: nothing is made up
# here, the quote is cut out of the document.

# %%
print(result.verdict, result.trust_score, result.is_trusted, result.decision.action)

refill = result.claims[1]
[citation] = refill.citations
print(refill.verdict, "|", refill.claim.text, "|", refill.correction)
print(citation.document_id, citation.start, citation.end, citation.quote)
print(result.documents[citation.document].page_content[citation.start : citation.end])

# %% [markdown]
# ## Correct it
#
# *Expect* the right value in its place, and the sentence about aluminium gone. The rest of the
# answer stays as the model wrote it, letter for letter.

# %%
careful = GroundednessRunnable(on_contradicted="correct", on_unverifiable="strip")
print(chain.pipe(careful).invoke({"question": question}).answer)

# %% [markdown]
# ## Five answers at once
#
# `batch`, `ainvoke`, `stream` and the others work as in every LangChain runnable. *Expect* a red or
# yellow mark in each of the five: none of them is trusted.

# %%
# (its figures differ a little between processors)
results = checked.batch([{"question": each["question"]} for each in asked])
for result in results[1:]:
    display(result)

# %% [markdown]
# ## What it has missed
#
# `papers/answers.jsonl` knows which sentences are wrong: eleven in all. *Expect* eight found, no
# true sentence refused, and three missed: a figure from the column of last year, an export that
# was *announced* to be removed, and a sentence that takes words of the leaflet and turns them
# round. A small model sees words, numbers and names; it does not reason. [Choosing a
# verifier](05_verifiers.ipynb) shows what one gets for more money.

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
# Two lines change: the one that makes `model`, which answers, and the check, if a chat model shall
# judge in place of the embedded verifier: `GroundednessRunnable(model=judge)`.
#
# | | |
# |---|---|
# | OpenAI | `ChatOpenAI(model="gpt-4o-mini")` |
# | Anthropic | `ChatAnthropic(model="claude-haiku-4-5")` |
# | Ollama | `ChatOllama(model="qwen2.5:7b")` |
# | vLLM | `ChatOpenAI(model="...", base_url="http://localhost:8000/v1", api_key="none")` |
#
# *Expect*, of a judge that does not answer, that nothing is passed off as checked.

# %%
judge = ScriptedChatModel(replies=lambda messages: TimeoutError("the judge is down"))
checker = GroundednessRunnable(verifier=LLMVerifier(model=judge))
unsure = chain.pipe(checker).invoke({"question": question})
print(unsure.verdict, unsure.trust_score, unsure.is_trusted, unsure.decision.action)

# %% [markdown]
# ## Where to go on
#
# [Verdicts while the answer is written](02_streaming.ipynb) ·
# [a chain that nobody changes](03_callbacks.ipynb) · [agents](04_agents.ipynb) ·
# [choosing a verifier](05_verifiers.ipynb) · [a guarded assistant](06_guarded_assistant.ipynb) ·
# [evaluation](07_evaluation.ipynb) · [from other libraries](08_migration.ipynb)
