# %% [markdown]
# # Choose and calibrate a verifier
#
# Which verifier should judge your claims? The embedded verifier costs nothing. A cross-encoder of
# yours may know your subject. A chat model understands most and costs most. A cascade calls the
# chat model only where the cheaper verifiers are unsure. Only your own documents can show which is
# best for you. This notebook measures each on two hundred labelled claims, and then chooses a
# threshold from the labels.
#
# Everything runs offline. The chat model is scripted, so its figures say nothing about real models;
# the other verifiers are real.
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
# There are two hundred claims about sixteen documents, labelled by a person. Half are easy: the
# claims about `shop/` are typical right and wrong statements of chat models. Half are hard: most of
# the false claims about `papers/` use the document's words and change one thing, such as a figure
# from the next column, or an exception turned into the rule.
#
# Write your own claims from wrong answers that you have seen, about at least ten documents: claims
# about the same document are not independent evidence.


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
# Two errors count: false claims that *pass* as supported, and true ones that are *refused*. Which
# of them costs you more?


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
# *Expect* few errors in the shop. On the papers, it supports nearly all true claims, but also
# nearly half of the false ones: that is how a small model performs on claims written to deceive it.

# %%
# (its figures differ a little between processors)
embedded = EmbeddedVerifier()
embedded.warm_up()
verdicts = measure("embedded", embedded)

# %% [markdown]
# Here is one error. *Expect* a claim that uses the document's words, and the sentence that misled
# the verifier.

# %%
for found in verdicts:
    if found.claim.text == "Passwords are hashed with bcrypt.":
        print(found.verdict, "|", found.claim.text)
        print(*(f"  {citation.quote}" for citation in found.citations), sep="\n")

# %% [markdown]
# ## 3. Your cross-encoder
#
# Any LangChain `BaseCrossEncoder` can judge: it reads claim and passage together and returns a
# number. To use one from the Hugging Face hub, which downloads it:
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
# This notebook uses a baseline that any cross-encoder should beat: the share of a claim's words
# that the passage contains. *Expect* twice as many true claims refused. On the papers, where false
# claims use the documents' own words, it lets fewer of them pass than the embedded verifier, which
# does no better than counting words there.


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
# This one is scripted: it knows the labels, is wrong about every tenth claim, and waits 0.2 seconds
# per call, like a real one. With `strategy="per_claim"` it replies with one word.
#
# *Expect* few errors, because the script has few, and one call per claim.

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
# The embedded verifier decides the claims it is sure of; the chat model judges the rest. `Stage`
# defines what sure means: here, a probability of at least 0.95 for supported, or at most 0.3 for
# refused. A stricter band costs more calls and catches more errors.
#
# *Expect* a third of the calls saved, and most errors of the embedded verifier gone. Those it was
# sure of remain. Some errors of the chat model disappear, because it is not asked.

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
# ## 6. Compare them
#
# *Expect* the cascade to make the fewest errors, and to take less waiting time than the chat model
# alone. The waiting time shown is the sum over all calls, but sixteen claims at a time wait
# together. Processor time is that of the machine this notebook ran on.

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
# From which probability on should a claim count as supported? You set the share of passing claims
# that must be true; `calibrate` chooses the lowest threshold that reaches it.
#
# *Expect* a higher threshold than before, fewer errors that pass, and, as the price, more true
# claims refused. `expected` estimates the result on claims that the threshold was not chosen on,
# with its interval.

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
# there the verifier is too sure of itself on these claims. The bars are 95 % intervals. On the
# command line, `langchain-groundedness calibrate` draws the same plot with `--plot`.

# %%
# (its figures differ a little between processors)
from langchain_groundedness.calibration.thresholds import calibration_plot  # may change

SVG(calibration_plot(calibration.reliability, support))

# %% [markdown]
# ## 8. Use the calibration
#
# The calibration is a file. It makes a checker, and refuses any verifier other than the one it was
# made for.
#
# *Expect* the checker to change its verdict on one answer: its figure is from the previous year.

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
# ## Which one to choose
#
# | if | choose |
# |---|---|
# | no text may leave the machine, or time is short | `EmbeddedVerifier`, calibrated |
# | you have a model for your subject | `CrossEncoderVerifier` |
# | errors are expensive | `LLMVerifier`, with a good model |
# | errors are expensive, and so is the model | `CascadeVerifier` |
#
# Use each as `GroundednessRunnable(verifier=...)`, and so in guards, handlers and middleware.
# Reviewers' later decisions are labels, too: see [a guarded assistant](06_guarded_assistant.ipynb).
