# %% [markdown]
# # Quickstart: check the answers of a chain
#
# A RAG chain answers from documents, but sometimes says what is not in them. One step after the
# chain shows which sentences the documents support.
#
# Everything runs offline, without a key. The embedded verifier, a small model inside the package,
# judges on the CPU. The chat model that answers is scripted and makes mistakes on purpose. The five
# documents in `papers/` are invented, but look like real ones: a manual, a table of figures, a
# policy, a changelog and a medical leaflet. What stands in for your own parts is in `samples.py`.
#
# `pip install langchain-groundedness`
#
# *Expect* an answer with its sentences marked: supported, contradicted (the manual says 1.5 bar),
# and one that the manual does not mention. Below the answer, you see the evidence for each verdict.

# %% tags=["varies"]
from samples import paper_chain

from langchain_groundedness import GroundednessRunnable

chain = paper_chain()
checked = chain.pipe(GroundednessRunnable())

question = "What does code E04 on the heat pump mean, and how do I clean the fins?"
result = checked.invoke({"question": question})
result

# %% [markdown]
# ## A chain like yours
#
# The chain above has a retriever, a prompt and a model. It returns the documents with the answer,
# because the check needs them.

# %%
from operator import itemgetter

from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough
from samples import paper_model, paper_retriever

model = paper_model()
retriever = paper_retriever()

prompt = ChatPromptTemplate.from_template(
    "Answer from these documents only.\n\n{documents}\n\nQuestion: {question}"
)
chain = RunnablePassthrough.assign(documents=itemgetter("question") | retriever).assign(
    answer=prompt | model | StrOutputParser()
)
print(chain.invoke({"question": question})["answer"])

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
# yellow mark in each answer: all five have planted errors.

# %% tags=["varies"]
from IPython.display import display
from samples import read_lines

asked = read_lines("papers/answers.jsonl")
results = checked.batch([{"question": each["question"]} for each in asked])
display(*results[1:])

# %% [markdown]
# ## What it missed
#
# `papers/answers.jsonl` lists the wrong sentences. *Expect* most of them to be found, and a few to
# be missed. A small model sees words, numbers and names, but does not reason. The hardest errors
# are a figure from last year's column, a removal that was only *announced*, and words of the
# leaflet with their meaning reversed. [Choosing a verifier](05_verifiers.ipynb) shows what more
# expensive verifiers achieve.

# %%
from samples import table

rows = []
for each, result in zip(asked, results, strict=True):
    for found in result.claims:
        is_wrong, is_marked = found.claim.text in each["wrong"], found.verdict != "supported"
        if is_wrong or is_marked:
            what = ("found" if is_marked else "**missed**") if is_wrong else "**false alarm**"
            rows.append((what, each["source"], found.claim.text))
table(("", "document", "sentence"), rows)

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
from langchain_groundedness import LLMVerifier
from langchain_groundedness.testing import ScriptedChatModel

judge = ScriptedChatModel(replies=lambda messages: TimeoutError("the judge is down"))
checker = GroundednessRunnable(verifier=LLMVerifier(model=judge))
chain.pipe(checker).invoke({"question": question})

# %% [markdown]
# ## Where to go next
#
# [Your own chain](09_your_own_chain.ipynb) · [verdicts while the answer is
# written](02_streaming.ipynb) · [an unchanged chain](03_callbacks.ipynb) ·
# [agents](04_agents.ipynb) · [choosing a verifier](05_verifiers.ipynb) · [a guarded
# assistant](06_guarded_assistant.ipynb) · [evaluation](07_evaluation.ipynb) · [from other
# libraries](08_migration.ipynb)
