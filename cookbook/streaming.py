# %% [markdown]
# # Verdicts while the answer is written
#
# A model takes seconds to write an answer. This notebook checks each sentence as soon as its
# end is certain, while the next ones are still being written. Everything runs offline: the
# chain is scripted, the embedded verifier judges.

# %%
from langchain_groundedness import GroundednessGuard, GroundednessRunnable
from langchain_groundedness.demo import QUESTION, build_chain

chain = build_chain()  # any chain that streams an answer and its documents
print(QUESTION)

# %% [markdown]
# ## Verdicts, one by one
#
# `GroundednessRunnable` reads the chain's stream. Each chunk holds what is new; all chunks add
# up with `+` to what `invoke` returns.

# %%
checked = chain.pipe(GroundednessRunnable())

total = None
for chunk in checked.stream(QUESTION, {"max_concurrency": 1}):  # else 8 sentences at once
    total = chunk if total is None else total + chunk
    for found in chunk.claims:
        print(f"{found.verdict:12} {found.claim.text}")

print()
print(total.verdict, total.trust_score)
print(total == checked.invoke(QUESTION))

# %% [markdown]
# ## Only verified text leaves
#
# `GroundednessGuard` gives text. A sentence leaves only after its verdict, in order. What
# happens to one that fails is the checker's choice: here a wrong value is corrected, and what
# the documents do not mention is taken out.

# %%
checker = GroundednessRunnable(on_contradicted="correct", on_unverifiable="strip")
guarded = chain.pipe(GroundednessGuard(checker))

async for text in guarded.astream(QUESTION):
    print(text, end="")

# %% [markdown]
# `on_contradicted="block"` ends the answer at the first contradicted sentence.

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
# A sentence that could not be checked is never passed off as verified. By default it leaves
# with a mark; `on_unchecked="hold_back"` keeps it in, `"release"` lets it go as it is.


# %%
def broken(task):
    raise TimeoutError


for on_unchecked in ("mark", "hold_back", "release"):
    guard = GroundednessGuard(GroundednessRunnable(verifier=broken), on_unchecked=on_unchecked)
    answer = {"answer": "The S2 runs for 18 months.", "documents": documents}
    print(f"{on_unchecked:9} {guard.invoke(answer)!r}")

# %% [markdown]
# ## Text at once, retracted where it fails
#
# With `release="immediate"` nothing waits. A `groundedness.retract` event then says which
# characters of the answer to replace, so that a page can strike them out. The other events are
# `groundedness.claim`, `.verdict`, `.correction` and `.decision`; `astream_events` shows them
# all, and so does `stream_mode="custom"` of a LangGraph graph.

# %%
quick = chain.pipe(GroundednessGuard(checker, release="immediate"))

shown, changes = "", []
async for event in quick.astream_events(QUESTION, version="v2"):
    if event["event"] == "on_chain_stream" and not event["parent_ids"]:
        shown += event["data"]["chunk"]
    elif event["name"] == "groundedness.retract":
        changes.append(event["data"])

for change in changes:
    print(f"{change['original']!r} -> {change['replacement']!r}")

# %%
for change in sorted(changes, key=lambda change: (change["start"], change["end"]), reverse=True):
    shown = shown[: change["start"]] + change["replacement"] + shown[change["end"] :]
print(shown)
