# %% [markdown]
# # Verdicts while the answer is written
#
# A model takes seconds to write an answer. This notebook checks each sentence as soon as it is
# complete, while the model writes the next ones. Everything runs offline: the chain is scripted,
# and the embedded verifier judges.
#
# `pip install langchain-groundedness`
#
# *Expect* an answer whose sentences turn green or red one after the other, if you run the cell; the
# saved notebook shows the end. Revenue and warranty are wrong, and no document mentions the award.

# %% tags=["varies"]
from IPython.display import clear_output, display

from langchain_groundedness import GroundednessRunnable
from langchain_groundedness.demo import QUESTION, build_chain

chain = build_chain()  # any chain that streams an answer and its documents
checked = chain.pipe(GroundednessRunnable())

total = None
for chunk in checked.stream(QUESTION, {"max_concurrency": 1}):  # else 8 sentences at once
    total = chunk if total is None else total + chunk
    clear_output(wait=True)
    display(total)

# %% [markdown]
# To use your own chain, change only `chain`. It can use any model:
#
# | | |
# |---|---|
# | OpenAI | `model = ChatOpenAI(model="gpt-4o-mini")` |
# | Anthropic | `model = ChatAnthropic(model="claude-haiku-4-5")` |
# | Ollama | `model = ChatOllama(model="qwen2.5:7b")` |
# | vLLM | `model = ChatOpenAI(model="...", base_url="http://localhost:8000/v1", api_key="none")` |
#
# To have a chat model judge as well, use
# `GroundednessRunnable(model=model, extractor=SentenceClaimExtractor())`. Without that extractor,
# the model gets the whole answer, and nothing is checked before its end.
#
# ## Verdicts one by one
#
# `GroundednessRunnable` reads the chain's stream. Each chunk contains what is new. *Expect* one
# verdict after the other, and that the sum of all chunks equals what `invoke` returns.

# %%
for chunk in checked.stream(QUESTION, {"max_concurrency": 1}):
    for found in chunk.claims:
        print(f"{found.verdict:12} {found.claim.text}")

print(total == checked.invoke(QUESTION))

# %% [markdown]
# ## Release only verified text
#
# `GroundednessGuard` returns text. It releases sentences in order, each only after its verdict. The
# checker's options decide what happens to one that fails: here a wrong value is corrected, and what
# the documents do not mention is removed. *Expect* two corrections, and no award.

# %%
from langchain_groundedness import GroundednessGuard

checker = GroundednessRunnable(on_contradicted="correct", on_unverifiable="strip")
guarded = chain.pipe(GroundednessGuard(checker))

async for text in guarded.astream(QUESTION):
    print(text, end="")

# %% [markdown]
# `on_contradicted="block"` ends the answer at the first contradicted sentence. *Expect* a message
# instead of the warranty, and nothing after it.

# %%
careful = GroundednessGuard(
    GroundednessRunnable(on_contradicted="block"),
    blocked_message="[The documents say otherwise.]",
)
question = "How long do batteries last, and how long is the warranty?"
documents = [
    "The S2 runs for 18 months on one set of batteries. It comes with a three-year warranty."
]
tokens = ["The S2 runs for ", "18 months. ", "It comes with a five-", "year warranty. ", "Buy it."]
print("".join(careful.bind(documents=documents, question=question).transform(iter(tokens))))

# %% [markdown]
# ## A judge that fails
#
# A sentence that could not be checked is never shown as verified. By default it is released with a
# mark; `on_unchecked="hold_back"` holds it back, and `"release"` releases it unchanged. *Expect*
# one line of each kind.


# %%
def broken(task):
    raise TimeoutError


for on_unchecked in ("mark", "hold_back", "release"):
    guard = GroundednessGuard(GroundednessRunnable(verifier=broken), on_unchecked=on_unchecked)
    answer = {"answer": "The S2 runs for 18 months.", "documents": documents}
    print(f"{on_unchecked:9} {guard.invoke(answer)!r}")

# %% [markdown]
# ## Show text at once, retract what fails
#
# With `release="immediate"`, text is released without waiting. If a sentence fails, a
# `groundedness.retract` event says which characters of the answer to replace, so that your page can
# strike them out. The other events are `groundedness.claim`, `.verdict`, `.correction` and
# `.decision`. You get all of them from `astream_events`, and from `stream_mode="custom"` of a
# LangGraph graph. *Expect* the answer as a page shows it: two values replaced, and the award struck
# out.

# %%
from html import escape

from IPython.display import HTML

quick = chain.pipe(GroundednessGuard(checker, release="immediate"))

shown, changes = "", []
async for event in quick.astream_events(QUESTION, version="v2"):
    if event["event"] == "on_chain_stream" and not event["parent_ids"]:
        shown += event["data"]["chunk"]
    elif event["name"] == "groundedness.retract":
        changes.append(event["data"])

page, rest = "", shown
for change in sorted(changes, key=lambda change: change["start"], reverse=True):
    before, after = rest[: change["start"]], rest[change["end"] :]
    struck, put = escape(change["original"]), escape(change["replacement"])
    page, rest = f"<s>{struck}</s> <b>{put}</b>{escape(after)}{page}", before
HTML(f'<p class="mathjax_ignore">{escape(rest)}{page}</p>')  # else $...$ is a formula

# %% [markdown]
# ## Check an unchanged chain
#
# A callback handler watches a chain from outside. It collects the question, the documents and the
# answer of each run, and checks a sentence while the model writes the next one. The chain's output
# does not change: a handler reports and holds nothing back. *Expect* the first verdict long before
# the end of the answer. [Another notebook](03_callbacks.ipynb) has more on handlers.

# %%
from queue import Queue

from langchain_groundedness import GroundednessCallbackHandler, collect_groundedness

verdicts = Queue()
handler = GroundednessCallbackHandler(on_verdict=verdicts.put, max_workers=1)  # one at a time

written = ""
for piece in chain.stream(QUESTION, config={"callbacks": [handler]}):
    written += piece.get("answer", "")
    if written.endswith("The S2 runs for"):
        early = verdicts.get(timeout=60)  # the model has not come further than this
        print(f"{early.verdict.verdict}, after {len(written)} characters of the answer")

print(f"the whole answer has {len(written)}")

# %% [markdown]
# When the chain has ended, the handler has the result of each run by its id. *Expect* the answer of
# the first cell.

# %% tags=["varies"]
handler.results[early.run_id]

# %% [markdown]
# If the chain should not wait for checks, `background=True` moves them to threads of the handler.
# `flush()` waits for them, or `await aflush()` if an event loop is running, as in a notebook.

# %%
patient = GroundednessCallbackHandler(background=True)
answers = chain.batch([QUESTION] * 3, config={"callbacks": [patient]})

print(await patient.aflush(), [result.verdict for result in patient.results.values()])
patient.close()

# %% [markdown]
# `collect_groundedness` checks everything that runs in a block of code, without a config.

# %%
async with collect_groundedness() as collected:
    await chain.ainvoke(QUESTION)

print([result.decision.action for result in collected.results.values()])
