# %% [markdown]
# # Choosing and calibrating a verifier
#
# Who judges the claims? The embedded verifier costs nothing, a cross-encoder of yours may know your
# subject, a chat model understands most and costs most, a cascade asks it only where the others are
# unsure. Which is right for you, only your documents can tell. This notebook measures each on two
# hundred labelled claims, and then lets the labels choose a threshold.
#
# Everything runs offline: the chat model is scripted, and so its figures say nothing about real
# ones; the others are real.
#
# `pip install langchain-groundedness`

# %%
import json
import math
import time
from collections import Counter
from pathlib import Path

from IPython.display import SVG
from langchain_core.cross_encoders import BaseCrossEncoder
from langchain_core.documents import Document

from langchain_groundedness import (
    CascadeVerifier,
    Claim,
    CrossEncoderVerifier,
    EmbeddedVerifier,
    GroundednessRunnable,
    LLMVerifier,
    Stage,
    VerificationTask,
)
from langchain_groundedness.calibration import (
    Calibration,
    CalibrationSample,
    ScoredClaim,
    calibrate,
)
from langchain_groundedness.testing import (
    HonestJudge,
    KnownClaim,
    ScriptedChatModel,
    ScriptedRequest,
)
from langchain_groundedness.text.words import content_words

# %% [markdown]
# ## 1. Labelled claims
#
# Two hundred claims, with labels of a person, about sixteen documents. Half are easy: those on
# `shop/` are what chat models usually get wrong, or right. Half are hard: of the false ones on
# `papers/` most take the words of the document, and change one thing: a figure from the next
# column, an exception turned into the rule.
#
# Write your own from answers that you have seen go wrong, on ten documents at least: claims on the
# same document are no independent evidence.


# %%
def labelled(folder):
    lines = (folder / "claims.jsonl").read_text("utf-8").splitlines()
    for row in map(json.loads, lines):
        text = (folder / "documents" / row["source"]).read_text("utf-8")
        yield {**row, "set": folder.name, "document": text, "is_true": row["label"] == "supported"}


rows = [*labelled(Path("shop")), *labelled(Path("papers"))]
tasks = [
    VerificationTask(
        claims=(Claim(id="1", text=row["claim"]),), documents=(Document(row["document"]),)
    )
    for row in rows
]
for (folder, is_true), count in Counter((row["set"], row["is_true"]) for row in rows).items():
    print(f"{folder:8}{'true' if is_true else 'false':6}{count}")

# %% [markdown]
# What counts: false claims that *pass* as supported, and true ones that are *refused*. Which of the
# two costs you more?


# %%
measured, calls = {}, []


def measure(name, verifier):
    calls.clear()
    started = time.process_time()
    verdicts = [verdict for [verdict] in verifier.batch(tasks)]
    seconds = time.process_time() - started
    passed, refused = Counter(), Counter()
    for row, found in zip(rows, verdicts, strict=True):
        is_passed = found.verdict == "supported"
        passed[row["set"]] += is_passed and not row["is_true"]
        refused[row["set"]] += row["is_true"] and not is_passed
    measured[name] = passed, refused, seconds, len(calls)
    print(f"{name:15}{'shop':>8}{'papers':>8}")
    print(f"{'false passed':15}{passed['shop']:8}{passed['papers']:8}")
    print(f"{'true refused':15}{refused['shop']:8}{refused['papers']:8}")
    return verdicts


# %% [markdown]
# ## 2. The embedded verifier
#
# *Expect* few mistakes in the shop. On the papers, nearly all true claims supported, and of the
# false ones nearly half as well: against claims that are made to deceive it, that is what a small
# model is worth.

# %%
# (its figures differ a little between processors)
embedded = EmbeddedVerifier()
embedded.warm_up()
verdicts = measure("embedded", embedded)

# %% [markdown]
# What a mistake looks like. *Expect* a claim that takes the words of the document, and the sentence
# that misled the verifier.

# %%
for found in verdicts:
    if found.claim.text == "Passwords are hashed with bcrypt.":
        print(found.verdict, "|", found.claim.text)
        print(*(f"  {citation.quote}" for citation in found.citations), sep="\n")

# %% [markdown]
# ## 3. A cross-encoder of yours
#
# Any LangChain `BaseCrossEncoder` can judge: it reads claim and passage together, and gives a
# number. One from the Hugging Face hub takes this line, and a download:
#
# ```python
# from langchain_community.cross_encoders import HuggingFaceCrossEncoder
#
# cross_encoder = HuggingFaceCrossEncoder(model_name="cross-encoder/nli-deberta-v3-small")
# verifier = CrossEncoderVerifier(
#     cross_encoder=cross_encoder,
#     scores="logit",
#     classes=("contradicted", "supported", "unverifiable"),
# )
# ```
#
# Here stands the least that one should beat: the share of a claim's words that the passage has.
# *Expect* twice as many true claims refused. On the papers, where false claims are made of the
# documents' own words, it lets fewer of them pass than the embedded verifier: there, that is no
# better than counting words.


# %%
class SharedWords(BaseCrossEncoder):
    def score(self, text_pairs):
        words = [(content_words(claim), content_words(text)) for claim, text in text_pairs]
        return [len(claim & text) / max(len(claim), 1) for claim, text in words]


words = CrossEncoderVerifier(cross_encoder=SharedWords(), threshold=0.8)
_ = measure("shared words", words)

# %% [markdown]
# ## 4. A chat model
#
# | | |
# |---|---|
# | OpenAI | `model = ChatOpenAI(model="gpt-4o-mini")` |
# | Anthropic | `model = ChatAnthropic(model="claude-haiku-4-5")` |
# | Ollama | `model = ChatOllama(model="qwen2.5:7b")` |
# | vLLM | `model = ChatOpenAI(model="...", base_url="http://localhost:8000/v1", api_key="none")` |
#
# This one is scripted: it knows the labels, is wrong about every tenth claim, and waits for 0.2
# seconds per call, as a real one may. With `strategy="per_claim"` it answers with a word.
#
# *Expect* few mistakes, since they were written so, and a call for every claim.

# %%
errs = range(5, len(rows), 10)
known = {
    row["claim"]: KnownClaim("supported" if row["is_true"] != (n in errs) else "unverifiable")
    for n, row in enumerate(rows)
}
script = HonestJudge(known)
WAIT = 0.2


def reply(messages):
    time.sleep(WAIT)
    calls.append(1)
    asked = [{"content": message.text} for message in messages]
    return script(ScriptedRequest({"messages": asked}))


model = ScriptedChatModel(replies=reply)
judge = LLMVerifier(model=model, strategy="per_claim")
_ = measure("chat model", judge)
print(len(calls), "calls")

# %% [markdown]
# ## 5. A cascade
#
# The embedded verifier settles what it is sure of, the chat model judges the rest. `Stage` says
# what sure means: here, supported with a probability of 0.95 at least, or refused with 0.3 at most.
# A stricter band costs more calls, and catches more.
#
# *Expect* a third of the calls saved, and most of the mistakes of the embedded verifier gone. Those
# of which it was sure stay; but some of the model's are never made, since it is not asked.

# %%
# (its figures differ a little between processors)
fresh = EmbeddedVerifier(threads=1)  # the one above remembers what it has read, and would be quick
fresh.warm_up()
cascade = CascadeVerifier(
    [Stage(verifier=fresh, settle_supported=0.95, settle_unsupported=0.3), judge]
)
_ = measure("cascade", cascade)
print(len(calls), "calls")

# %% [markdown]
# ## 6. Side by side
#
# *Expect* the cascade to make the fewest mistakes, and to wait less than the chat model alone. What
# is waited for is added up here: sixteen claims at a time wait together. Processor time is of the
# machine that this ran on.

# %%
# (its figures differ a little between processors)
from langchain_groundedness.display.svg import (  # draws the package's own plots; may change
    Plot,
    document,
)


def bars(title, columns):
    step = math.ceil(max(max(values) for _, _, values in columns) / 4) or 1
    plot = Plot(title=title, highest=step * 4.2, y_label=title, height=240, width=640)
    figures = zip(*(values for _, _, values in columns), strict=True)
    labels = [
        f"{name}: {', '.join(f'{figure:.0f}' for figure in each)}"
        for name, each in zip(measured, figures, strict=True)
    ]
    wide = 1 / len(measured)
    plot.ticks(
        [((n + 0.5) * wide, label) for n, label in enumerate(labels)],
        [(step * part, str(step * part)) for part in range(5)],
    )
    for place, (kind, _, values) in enumerate(columns):
        for n, value in enumerate(values):
            plot.bar(wide * (n + 0.2 + 0.3 * place), wide * 0.28, 0, value, kind, f"{value:.0f}")
    plot.legend([(kind, words) for kind, words, _ in columns])
    return plot


kinds = list(zip(*measured.values(), strict=True))
mistakes = bars(
    "claims",
    [
        ("d", "false claims that pass", [found.total() for found in kinds[0]]),
        ("b", "true claims refused", [found.total() for found in kinds[1]]),
    ],
)
times = bars(
    "milliseconds a claim",
    [
        ("e", "processor time", [1000 * seconds / len(rows) for seconds in kinds[2]]),
        ("c", "waiting for the model", [1000 * WAIT * each / len(rows) for each in kinds[3]]),
    ],
)
SVG(document([mistakes, times]))

# %% [markdown]
# ## 7. Calibrate
#
# From which probability on shall a claim count as supported? `calibrate` chooses the lowest
# threshold at which, of what passes, the share that you ask for is true.
#
# *Expect* a higher threshold than before, fewer errors that pass, and a price: true claims that are
# refused. `expected` says what it will do on claims that it was not chosen on, with its interval.

# %%
# (its figures differ a little between processors)
samples = [
    CalibrationSample(
        unit="claim",
        is_right=row["is_true"],
        claims=(ScoredClaim.of(found),),
        group=row["source"],
    )
    for row, found in zip(rows, verdicts, strict=True)
]
calibration = calibrate(samples, precision=0.8)
support = calibration.chosen["support"]
print(f"threshold {support.threshold:.2f}")
for name, figures in (("before", support.before), ("expected", support.expected)):
    low, high = figures.precision_interval
    print(
        f"{name:10}precision {figures.precision:.2f} ({low:.2f} to {high:.2f}), "
        f"recall {figures.recall:.2f}"
    )

# %% [markdown]
# Do the probabilities mean what they say? *Expect* dots below the diagonal between 0.6 and 0.9:
# there the verifier is surer than it should be on these claims. The bars are 95 % intervals. On a
# terminal, `langchain-groundedness calibrate` draws the same, with `--plot`.

# %%
# (its figures differ a little between processors)
from langchain_groundedness.calibration.thresholds import calibration_plot  # may change

SVG(calibration_plot(calibration.reliability, support))

# %% [markdown]
# ## 8. Use it
#
# The calibration is a file. It makes a checker, and refuses to be used for another verifier than it
# was made for.
#
# *Expect* an answer on which the checker has changed its mind: the figure is of the year before.

# %%
# (its figures differ a little between processors)
from tempfile import TemporaryDirectory

with TemporaryDirectory() as folder:
    calibration.save(Path(folder) / "calibration.json")
    checker = Calibration.load(Path(folder) / "calibration.json").checker()

answer = {
    "answer": "Total revenue was 268.6 million pounds in 2026. Maren Oakes leaves in September.",
    "documents": [Path("papers/documents/ferry-results.md").read_text("utf-8")],
}
for each in (GroundednessRunnable(), checker):
    print([found.verdict for found in each.invoke(answer).claims])

# %% [markdown]
# ## Which one, then?
#
# | if | take |
# |---|---|
# | no text may leave the machine, or time is short | `EmbeddedVerifier`, calibrated |
# | you have a model of your subject | `CrossEncoderVerifier` |
# | an error is expensive | `LLMVerifier`, with a good model |
# | an error is expensive, and so is the model | `CascadeVerifier` |
#
# Each is `GroundednessRunnable(verifier=...)`, and so in guards, handlers and middleware. What
# reviewers decide later are labels, too: [a guarded assistant](06_guarded_assistant.ipynb).
