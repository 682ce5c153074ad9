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
#
# *Expect* the errors of the embedded verifier: few in the shop, more on the papers, where most
# false claims were written to deceive.

# %% tags=["varies"]
from samples import errors, labelled_claims, measure

from langchain_groundedness import EmbeddedVerifier

claims = list(labelled_claims())
embedded = EmbeddedVerifier()
embedded.warm_up()

measured = {"embedded": measure(embedded, claims)}
errors(measured)

# %% [markdown]
# Two errors count: false claims that *pass* as supported, and true ones that are *refused*. Which
# of them costs you more?
#
# ## 1. Labelled claims
#
# There are two hundred claims about sixteen documents, labelled by a person. Half are easy: the
# claims about `shop/` are typical right and wrong statements of chat models. Half are hard: most of
# the false claims about `papers/` use the document's words and change one thing, such as a figure
# from the next column, or an exception turned into the rule.
#
# Write your own claims from wrong answers that you have seen, about at least ten documents: claims
# about the same document are not independent evidence. *Expect* a false claim, and a task for a
# verifier.

# %%
from collections import Counter

from samples import table

counts = Counter((row["set"], row["is_true"]) for row in claims)
print(claims[-1]["label"], "|", claims[-1]["claim"])
print(type(claims[-1]["task"]).__name__, "with", len(claims[-1]["task"].documents), "document")
table(
    ("set", "true", "false"),
    ((name, counts[name, True], counts[name, False]) for name in ("shop", "papers")),
)

# %% [markdown]
# ## 2. The embedded verifier
#
# A small model does well on plain statements; on claims written to deceive it, many false ones
# pass. *Expect* two of them, each with the sentence that misled it.

# %% tags=["varies"]
found = zip(claims, measured["embedded"].verdicts, strict=True)
misled = [each for row, each in found if each.verdict == "supported" and not row["is_true"]]
table(
    ("false claim", "evidence"),
    (
        (each.claim.text, each.citations[0].quote)
        for each in misled
        if each.claim.text.startswith(("Total revenue was", "We pay up to"))
    ),
)

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
# that the passage contains. *Expect* more true claims refused.


# %% tags=["varies"]
from langchain_core.cross_encoders import BaseCrossEncoder

from langchain_groundedness import CrossEncoderVerifier
from langchain_groundedness.text.words import content_words


class SharedWords(BaseCrossEncoder):
    def score(self, text_pairs):
        words = [(content_words(claim), content_words(text)) for claim, text in text_pairs]
        return [len(claim & text) / max(len(claim), 1) for claim, text in words]


words = CrossEncoderVerifier(cross_encoder=SharedWords(), threshold=0.8)
measured["shared words"] = measure(words, claims)
errors(measured)

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

# %% tags=["varies"]
from samples import judge_that_errs

from langchain_groundedness import LLMVerifier

model = judge_that_errs(claims)
judge = LLMVerifier(model=model, strategy="per_claim")
measured["chat model"] = measure(judge, claims)
errors(measured)

# %% [markdown]
# ## 5. A cascade
#
# The embedded verifier decides the claims it is sure of; the chat model judges the rest. `Stage`
# defines what sure means: here, a probability of at least 0.95 for supported, or at most 0.3 for
# refused. A stricter band costs more calls and catches more errors.
#
# *Expect* fewer calls, and most errors of the embedded verifier gone. Those it was sure of remain.
# Some errors of the chat model disappear, because it is not asked.

# %% tags=["varies"]
from langchain_groundedness import CascadeVerifier, Stage

fresh = EmbeddedVerifier(threads=1)  # the one above remembers what it has read, and would be quick
fresh.warm_up()
first = Stage(verifier=fresh, settle_supported=0.95, settle_unsupported=0.3)
measured["cascade"] = measure(CascadeVerifier([first, judge]), claims)
errors(measured)

# %% [markdown]
# ## 6. Compare them
#
# *Expect* chat model and cascade to make the fewest errors, and the cascade to wait less. The
# waiting time shown is the sum over all calls, but sixteen claims at a time wait together.
# Processor time is that of the machine this notebook ran on.

# %% tags=["varies"]
from samples import errors_and_times

errors_and_times(measured)

# %% [markdown]
# ## 7. Calibrate
#
# From which probability on should a claim count as supported? You set the share of passing claims
# that must be true; `calibrate` chooses the lowest threshold that reaches it.
#
# Do the probabilities mean what they say? *Expect* dots near the diagonal where they do, and below
# it where the verifier is too sure of itself on these claims. The bars are 95 % intervals; the
# vertical line is the threshold. On the command line, `langchain-groundedness calibrate` draws the
# same plot with `--plot`.

# %% tags=["varies"]
from IPython.display import display

from langchain_groundedness.calibration import CalibrationSample, ScoredClaim, calibrate

samples = [
    CalibrationSample(
        unit="claim",
        is_right=row["is_true"],
        claims=(ScoredClaim.of(found),),
        group=row["source"],
    )
    for row, found in zip(claims, measured["embedded"].verdicts, strict=True)
]
calibration = calibrate(samples, precision=0.8)
display(calibration, include=["image/svg+xml"])

# %% [markdown]
# *Expect* fewer false claims among those that pass, and, as the price, more true claims refused.
# `expected` estimates the result on claims that the threshold was not chosen on.

# %% tags=["varies"]
support = calibration.chosen["support"]


def with_interval(share, interval):
    return f"{share:.2f} ({interval[0]:.2f} to {interval[1]:.2f})"


table(
    (f"threshold {support.threshold:.2f}", "precision", "recall"),
    (
        (
            name,
            with_interval(each.precision, each.precision_interval),
            with_interval(each.recall, each.recall_interval),
        )
        for name, each in (("before", support.before), ("expected", support.expected))
    ),
)

# %% [markdown]
# ## 8. Use the calibration
#
# The calibration is a file. It makes a checker, and refuses any verifier other than the one it was
# made for.
#
# *Expect* an answer whose first figure is from the previous year, checked before and after.

# %% tags=["varies"]
from pathlib import Path
from tempfile import TemporaryDirectory

from samples import read_documents

from langchain_groundedness import GroundednessRunnable
from langchain_groundedness.calibration import Calibration

with TemporaryDirectory() as folder:
    calibration.save(Path(folder) / "calibration.json")
    checker = Calibration.load(Path(folder) / "calibration.json").checker()

answer = {
    "answer": "Total revenue was 268.6 million pounds in 2026. Maren Oakes leaves in September.",
    "documents": [each for each in read_documents("papers") if each.id == "ferry-results.md"],
}
display(GroundednessRunnable().invoke(answer), checker.invoke(answer))

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
