# %% [markdown]
# # Compare a pipeline before and after a change
#
# You change a RAG pipeline: more passages, another prompt, another model. Is it better? This
# notebook asks the assistant of a small shop the same questions before and after a change, and
# compares the answers:
#
# > pipeline → questions → scores → people → change → comparison → report → CI → training data → Ray
#
# Everything runs offline. The documents, and the questions with their right answers, are in
# `shop/`. The chat model is scripted and makes mistakes on purpose. The embedded verifier, which
# judges here, is a small model and makes some of its own.
#
# `pip install 'langchain-groundedness[cli]' langchain-text-splitters scikit-learn`
#
# *Expect* five means with their intervals, over thirty-six answers of the assistant.

# %% tags=["varies"]
from pathlib import Path
from tempfile import TemporaryDirectory

from samples import passage_reader, read_lines, shop_pipeline, with_labels

from langchain_groundedness.evals import (
    CitationEvaluator,
    ContextRecallEvaluator,
    ContextRelevanceEvaluator,
    FactualCorrectnessEvaluator,
    FaithfulnessEvaluator,
    evaluate,
)

folder = TemporaryDirectory()  # what is written; a folder of yours, in earnest
work = Path(folder.name)

model = passage_reader()
pipeline = shop_pipeline(1, model=model)  # yours: returns question, contexts and answer
metrics = [
    FaithfulnessEvaluator(),
    FactualCorrectnessEvaluator(),
    ContextRecallEvaluator(),
    ContextRelevanceEvaluator(),
    CitationEvaluator(),
]

questions = read_lines("shop/questions.jsonl")
rows = with_labels(pipeline.batch(questions))
before = evaluate(rows, metrics, name="one passage", journal=work / "before.jsonl")
before

# %% [markdown]
# ## 1. The pipeline
#
# The documents are split into passages of two or three sentences. A store finds the passages that
# share most words with the question. The model answers from them and cites them. Its script
# contains, for each question, a reply for when it gets a passage with certain words, and a guess
# for when it does not; two of its citations are wrong. To use your own model, change only the line
# `model = ...`:
#
# | | |
# |---|---|
# | OpenAI | `model = ChatOpenAI(model="gpt-4o-mini")` |
# | Anthropic | `model = ChatAnthropic(model="claude-haiku-4-5")` |
# | Ollama | `model = ChatOllama(model="qwen2.5:7b")` |
# | vLLM | `model = ChatOpenAI(model="...", base_url="http://localhost:8000/v1", api_key="none")` |
#
# *Expect* an answer with a citation.

# %%
answered = pipeline.invoke({"question": "How many watts does the K7 draw?"})
print(answered["contexts"][0].page_content)
print(answered["answer"])

# %% [markdown]
# ## 2. Questions
#
# There are thirty-six questions, each with the right answer and a topic. Write your own from what
# customers really ask, and include a few that the documents do not answer. A reference lists what
# the answer has to say, one fact per sentence; each fact is looked for separately.
#
# The pipeline answers all questions. A person has labelled each of these answers as right or wrong.
# A label belongs to an answer, not to a question, so it is not carried over to another answer.
#
# *Expect* rows with everything the metrics need, beside their contexts.

# %%
from samples import table

names = ("id", "topic", "question", "reference", "answer", "label")
table(names, ([row[name] for name in names] for row in rows[:3]))

# %% [markdown]
# ## 3. Scores
#
# Each metric answers a different question; together they show most:
#
# | metric | question | needs |
# |---|---|---|
# | faithfulness | do the passages say what the answer says? | answer, contexts |
# | factual correctness | does the answer say what is right, and all of it? | answer, reference |
# | context recall | do the passages contain what is right? | reference, contexts |
# | context relevance | how many passages help with the question? | question, contexts |
# | citations | do the cited passages say so? | answer, contexts |
#
# The embedded verifier judges all of them. To use a model instead, pass it:
# `FaithfulnessEvaluator(model=...)`. `evaluate` then reports its cost. A metric skips rows to which
# it does not apply: "The documents do not say" makes no claim.
#
# `journal` is the run file: each row is written to it as soon as it is done. If a run ends early
# for any reason, the same call continues where it stopped and pays for nothing twice. On the
# command line that is
# `langchain-groundedness evaluate answers.jsonl --metric faithfulness -o before.jsonl`.
#
# *Expect* how many answers have which faithfulness.

# %% tags=["varies"]
from collections import Counter

from samples import bars


def scores_of(row):
    return {score.key: score for score in row.scores}


found = Counter(scores_of(row)["faithfulness"].score for row in before.rows)
found = {"no claim" if score is None else f"{score:.2f}": n for score, n in found.items()}
bars(sorted(found), {"answers": {"faithfulness": [found[name] for name in sorted(found)]}})

# %% [markdown]
# ## 4. Read some rows
#
# A mean shows that something is wrong; the lowest rows show what. *Expect* guesses without a
# passage (although the model was told not to guess), and perhaps a row where the metric is wrong:
# an answer that says more than its reference, and is right.

# %% tags=["varies"]
lowest = (row.row for row in before.rows if scores_of(row)["factual_correctness"].score == 0)
table(
    ("a person says", "question", "answer"),
    ((row.label or "-", row.question, row.answer) for row in lowest),
)

# %% [markdown]
# Each score keeps the claims it was counted from, each with the passage that decides it. *Expect*
# the answer with its two claims marked.

# %% tags=["varies"]
from IPython.display import display

[descaling] = [row for row in before.rows if row.row.id == "descale-how"]
print(scores_of(descaling)["factual_correctness"].comment)
display(scores_of(descaling)["faithfulness"].result)

# %% [markdown]
# ## 5. Do people agree?
#
# Before you base a decision on a score, compare it with what people say. Faithfulness passes
# answers that people call wrong because they leave out half of what is needed; only a reference can
# show that. *Expect* wide intervals: there are only thirty-six rows.


# %% tags=["varies"]
from langchain_groundedness.evals.statistics import run_agreement


def with_interval(share, interval):
    return f"{share:.2f} ({interval[0]:.2f} to {interval[1]:.2f})"


agreement = {
    key: run_agreement(before.rows, key, threshold=0.7)
    for key in ("faithfulness", "factual_correctness", "citations")
}
table(
    ("metric", "balanced accuracy", "kappa", "wrongly passed", "wrongly failed"),
    (
        (
            key,
            with_interval(found.balanced_accuracy, found.balanced_accuracy_interval),
            with_interval(found.kappa, found.kappa_interval),
            found.false_positives,
            found.false_negatives,
        )
        for key, found in agreement.items()
    ),
)

# %% [markdown]
# ## 6. Find the weak slices
#
# You can slice by every extra column of the data set. *Expect* some topics below the others. With
# five to ten rows each, the intervals overlap: this suggests where to look, but proves nothing.

# %% tags=["varies"]
from langchain_groundedness.evals.statistics import slice_scores

slices = slice_scores(before.rows, "context_recall", "topic")
table(
    ("topic", "rows", "context recall"),
    (
        (part.value, part.rows, with_interval(part.score.mean, (part.score.low, part.score.high)))
        for part in slices
    ),
)

# %% [markdown]
# ## 7. Make one change
#
# Context recall is low, so retrieval does not find the right passages. The change: four passages
# instead of one, and nothing else. If you also changed the prompt, you could not tell which of the
# two helped. *Expect* answers that have changed, and so have no label.

# %%
after_rows = with_labels(shop_pipeline(4, model=model).batch(questions))
after = evaluate(after_rows, metrics, name="four passages", journal=work / "after.jsonl")
print(
    sum(row["label"] is None for row in after_rows),
    "answers have changed: nobody has labelled them",
)

# %% [markdown]
# ## 8. Is it better?
#
# `compare_runs` pairs the rows by their ids. `p` is the probability of a difference at least
# this large if the two runs were equally good.
#
# *Expect* more faithful and more correct answers, beyond chance, and the price: much of what the
# model now reads does not help.

# %% tags=["varies"]
from langchain_groundedness.evals.statistics import compare_runs

changes = {metric.key: compare_runs(before, after, metric.key) for metric in metrics}
means = {
    "before": [found.before for found in changes.values()],
    "after": [found.after for found in changes.values()],
}
display(bars([key.replace("_", " ") for key in changes], {"mean": means}))

found = changes["factual_correctness"]
by = found.difference
print(f"difference {by.mean:+.2f} ({by.low:+.2f} to {by.high:+.2f}), p = {found.p_value:.4f}")
print(f"{found.better} answers better, {found.worse} worse, {found.same} the same")

# %% [markdown]
# A mean hides rows that got worse. *Expect* a few: with more passages, the model says things that
# nobody asked for, and confuses the free delivery of one kind with that of another. Faithfulness
# cannot show that, because the passages do say "from 40 pounds on it is free".

# %% tags=["varies"]
now = {row.row.id: row.row for row in after.rows}
earlier = {row.row.id: row.row.answer for row in before.rows}
worse = [
    change for change in changes["factual_correctness"].changes if change.after < change.before
]
table(
    ("score", "question", "answer before", "answer after"),
    (
        (
            f"{change.before:.2f} → {change.after:.2f}",
            now[change.id].question,
            earlier[change.id],
            now[change.id].answer,
        )
        for change in sorted(worse, key=lambda change: (change.difference, change.id))
    ),
)

# %% [markdown]
# ## 9. A report
#
# `write_report` writes an HTML page that loads nothing: all rows to sort, filter and search, each
# claim with its passage, both runs side by side. Open it with `webbrowser.open(path.as_uri())`, or
# with a double click. On the command line, use
# `langchain-groundedness report after.jsonl --compare before.jsonl -o report.html`.
#
# The report also comes as Markdown, for a pull request or the summary of a CI job; its comparison
# is shown here. *Expect* all metrics of section 8.

# %% tags=["varies"]
from IPython.display import Markdown

from langchain_groundedness.report import to_markdown, write_report

write_report(after, work / "report.html", baseline=before)

markdown = to_markdown(after, baseline=before)
print(len(markdown.splitlines()), "lines of Markdown")
start = markdown.index("## Compared with")
Markdown(markdown[start : markdown.index("## ", start + 3)])

# %% [markdown]
# ## 10. In CI
#
# A CI gate needs only the run files: below a threshold, the exit code is 1 and the job fails. Rows
# that could not be checked make it fail, too. `evaluate` also takes `--fail-under`;
# `-o results.xml` writes JUnit test results.
#
# *Expect* the second run to pass, and the first to fail.


# %% tags=["varies"]
import os
import subprocess
import sys


def gate(run):
    command = [
        *(sys.executable, "-m", "langchain_groundedness"),  # langchain-groundedness, in a terminal
        *("report", run, "-o", "results.xml"),
        *("--fail-under", "faithfulness=0.8", "--fail-under", "factual_correctness=0.6"),
    ]
    done = subprocess.run(  # noqa: S603  (our own arguments)
        command,
        cwd=work,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    print(f"{run}: exit code {done.returncode}\n{done.stderr}")


gate("after.jsonl")
gate("before.jsonl")

# %% [markdown]
# ## 11. Select training data
#
# Which answers are good enough for a training or test set? `validate` splits them in two: a row
# passes if the passages say what its answer says. `AnswerValidator(evidence="cited")` uses only the
# passages that the answer cites. With `model=...`, relevance, correctness and completeness are
# judged as well.
#
# *Expect* guesses to be rejected, each with its reason, and "The documents do not say" to be
# unchecked: without a model, nothing can judge whether that is a good answer. What could not be
# checked never passes.

# %% tags=["varies"]
import json

from langchain_groundedness.evals.validation import validate

summary = validate(after_rows, passed=work / "passed.jsonl", rejected=work / "rejected.jsonl")
print(f"{summary.passed} passed, {summary.rejected} rejected, {summary.unchecked} unchecked")


def read_rows(name):
    lines = (work / name).read_text(encoding="utf-8").splitlines()
    return {row["id"]: row for row in map(json.loads, lines)}


rejected = sorted(read_rows("rejected.jsonl").items())  # they are in the order they were done in
table(
    ("question", "answer", "reasons"),
    (
        (
            row["question"],
            row["answer"],
            "; ".join(reason["text"] for reason in row["validation"]["reasons"]),
        )
        for _, row in rejected
    ),
)

# %% [markdown]
# The rows that passed are a data set again: `evaluate` and `open_dataset` read it. Still, have a
# person read some of it: an answer may be wrong although the embedded verifier let it pass.
# *Expect* answers with their references, to compare.

# %% tags=["varies"]
passed = sorted(read_rows("passed.jsonl").items())
table(("answer", "reference"), ((row["answer"], row["reference"]) for _, row in passed[:5]))

# %% [markdown]
# ## 12. On several processes or machines
#
# With `--engine ray`, or `evaluate(rows, metrics, engine="ray", workers=8)`, separate processes
# evaluate the rows, on this machine or on a cluster (`--address`). They get the evaluators, and a
# few rows at a time; journal, cache and resuming work the same way. For thirty-six rows it is
# slower, because starting the processes takes seconds.
#
# *Expect* the same rows, scores and order as in section 7.


# %%
# (needs Ray: pip install 'langchain-groundedness[ray]')
from importlib.util import find_spec

from langchain_groundedness.evals import load_run


def as_json(row):
    return json.dumps({**row, "contexts": [each.page_content for each in row["contexts"]]})


def faithfulness(run):
    return [(row.row.id, score.score) for row in run.rows for score in row.scores[:1]]


(work / "answers.jsonl").write_text("\n".join(map(as_json, after_rows)), encoding="utf-8")
command = [
    *(sys.executable, "-m", "langchain_groundedness", "evaluate", "answers.jsonl"),
    *("--metric", "faithfulness", "-o", "ray.jsonl", "--engine", "ray", "--workers", "2"),
]
if find_spec("ray") is None:
    print("Ray is not installed.")
else:
    subprocess.run(  # noqa: S603  (our own arguments)
        command,
        cwd=work,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        check=True,
    )
    print(faithfulness(load_run(work / "ray.jsonl")) == faithfulness(after))

# %% [markdown]
# ## 13. Other ways to run
#
# | | |
# |---|---|
# | a chat model judges | `FaithfulnessEvaluator(model=model)`, and so the other metrics |
# | LangSmith | `client.evaluate(pipeline.invoke, data="questions", evaluators=metrics)` |
# | Ray, many machines | `evaluate(rows, metrics, engine="ray", address="auto")` |
# | Parquet, CSV, pandas, ... | `evaluate("answers.parquet", metrics, progress=True)` |
#
# With LangSmith's `upload_results=False`, nothing is sent.

# %%
folder.cleanup()
