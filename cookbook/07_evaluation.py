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

# %%
import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory

from IPython.display import Markdown, display
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter
from sklearn.feature_extraction.text import TfidfVectorizer

from langchain_groundedness.evals import (
    CitationEvaluator,
    ContextRecallEvaluator,
    ContextRelevanceEvaluator,
    FactualCorrectnessEvaluator,
    FaithfulnessEvaluator,
    evaluate,
    load_run,
)
from langchain_groundedness.evals.statistics import compare_runs, run_agreement, slice_scores
from langchain_groundedness.evals.validation import validate
from langchain_groundedness.report import to_markdown, write_report
from langchain_groundedness.testing import ScriptedChatModel

SHOP = Path("shop")
folder = TemporaryDirectory()  # what is written; a folder of yours, in earnest
work = Path(folder.name)

# %% [markdown]
# ## 1. The pipeline
#
# The documents are split into passages of two or three sentences. A store finds the passages that
# share most words with the question. The model answers from them and cites them.
#
# *Expect* a passage that answers the question in other words.


# %%
class WeightedWords(Embeddings):
    """Embeds a text by the words that it shares with the passages; needs no download."""

    def __init__(self, texts):
        self.words = TfidfVectorizer(stop_words="english", sublinear_tf=True).fit(texts)

    def embed_documents(self, texts):
        # The constant gives a text of unknown words a direction too: close to nothing.
        return [[*row, 0.05] for row in self.words.transform(texts).toarray().tolist()]

    def embed_query(self, text):
        return self.embed_documents([text])[0]


splitter = RecursiveCharacterTextSplitter(
    chunk_size=220, chunk_overlap=0, separators=[". ", "\n"], keep_separator="end"
)
passages = splitter.split_documents(
    Document(path.read_text(encoding="utf-8"), metadata={"source": path.name})
    for path in sorted((SHOP / "documents").iterdir())
)
for number, passage in enumerate(passages, 1):
    passage.id = f"passage-{number}"  # else the store draws one
embeddings = WeightedWords([passage.page_content for passage in passages])
store = InMemoryVectorStore.from_documents(passages, embeddings)
print(len(passages), "passages")
print(store.similarity_search("How many watts does the K7 draw?", k=1)[0].page_content)

# %% [markdown]
# The model's script contains, for each question, a reply for when it gets a passage with certain
# words, and a guess for when it does not; two of its citations are wrong. To use your own model,
# change only the line `model = ...`:
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
SCRIPT = json.loads((SHOP / "model.json").read_text(encoding="utf-8"))


def say(messages):
    text, _, question = messages[-1].text.rpartition("Question: ")
    shown = [" ".join(part.split()) for part in re.split(r"^\[\d+\] ", text, flags=re.MULTILINE)]
    script, said = SCRIPT[question], []
    for words, sentence in script["reads"].items():
        number = next((n for n, part in enumerate(shown) if words in part), None)
        if number:
            said.append(sentence if "[" in sentence else f"{sentence[:-1]} [{number}].")
    return " ".join(said) or script["guesses"]


def numbered(x):
    return "\n\n".join(f"[{n}] {each.page_content}" for n, each in enumerate(x["contexts"], 1))


prompt = ChatPromptTemplate.from_template(
    "You answer customers of a shop from these passages only. Cite them as [1].\n\n{passages}\n\n"
    "Question: {question}"
)
model = ScriptedChatModel(replies=say)


def pipeline_with(k):
    retriever = store.as_retriever(search_kwargs={"k": k})
    return RunnablePassthrough.assign(contexts=itemgetter("question") | retriever).assign(
        answer=RunnablePassthrough.assign(passages=numbered) | prompt | model | StrOutputParser()
    )


pipeline = pipeline_with(1)
answered = pipeline.invoke({"question": "How many watts does the K7 draw?"})
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
# *Expect* rows with everything the metrics need.


# %%
def read_lines(name):
    return [json.loads(line) for line in (SHOP / name).read_text(encoding="utf-8").splitlines()]


LABELS = {(each["id"], each["answer"]): each["label"] for each in read_lines("labels.jsonl")}


def with_label(row):
    without_marks = re.sub(r" \[\d+\]", "", row["answer"])
    return {**row, "label": LABELS.get((row["id"], without_marks))}


questions = read_lines("questions.jsonl")
rows = [with_label(row) for row in pipeline.batch(questions)]
for row in rows[:3]:
    print(json.dumps({**row, "contexts": f"{len(row['contexts'])} passage"}, indent=1))

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
# `FaithfulnessEvaluator(model=...)`. `evaluate` then reports its cost.
#
# `journal` is the run file: each row is written to it as soon as it is done. If a run ends early
# for any reason, the same call continues where it stopped and pays for nothing twice. On the
# command line that is
# `langchain-groundedness evaluate answers.jsonl --metric faithfulness -o before.jsonl`.
#
# *Expect* that the passages support two thirds of the answers, and that the answers contain about
# half of what is right. A metric skips rows to which it does not apply: "The documents do not say"
# makes no claim.

# %%
# (its figures differ a little between processors)
metrics = [
    FaithfulnessEvaluator(),
    FactualCorrectnessEvaluator(),
    ContextRecallEvaluator(),
    ContextRelevanceEvaluator(),
    CitationEvaluator(),
]
before = evaluate(rows, metrics, name="one passage", journal=work / "before.jsonl")
display(before.model_copy(update={"seconds": None}))  # how long it took differs each time

# %% [markdown]
# ## 4. Read some rows
#
# A mean shows that something is wrong; the lowest rows show what. *Expect* guesses without a
# passage (although the model was told not to guess), and one row where the metric is wrong: the
# answer on grind steps says more than its reference, and is right.


# %%
# (its figures differ a little between processors)
def scores_of(row):
    return {score.key: score for score in row.scores}


for row in before.rows:
    found = scores_of(row)["factual_correctness"]
    if found.score == 0:
        print(f"{row.row.label or '-':6}{row.row.question}\n{'':6}{row.row.answer}")

# %% [markdown]
# Each score keeps the claims it was counted from, each with the passage that decides it. *Expect*
# the answer with its two claims marked.

# %%
# (its figures differ a little between processors)
[descaling] = [row for row in before.rows if row.row.id == "descale-how"]
print(scores_of(descaling)["factual_correctness"].comment)
display(scores_of(descaling)["faithfulness"].result)

# %% [markdown]
# ## 5. Do people agree?
#
# Before you base a decision on a score, compare it with what people say. *Expect* faithfulness to
# pass answers that people call wrong because they leave out half of what is needed; only a
# reference can show that. With thirty-six rows, the intervals are wide.


# %%
# (its figures differ a little between processors)
def text_of(share, interval):
    return f"{share:.2f} ({interval[0]:.2f} to {interval[1]:.2f})"


print(f"{'':21}{'balanced accuracy':23}{'kappa':23}{'wrongly passed':16}wrongly failed")
for key in ("faithfulness", "factual_correctness", "citations"):
    found = run_agreement(before.rows, key, threshold=0.7)
    accuracy = text_of(found.balanced_accuracy, found.balanced_accuracy_interval)
    kappa = text_of(found.kappa, found.kappa_interval)
    print(f"{key:21}{accuracy:23}{kappa:23}{found.false_positives:<16}{found.false_negatives}")

# %% [markdown]
# ## 6. Find the weak slices
#
# You can slice by every extra column of the data set. *Expect* care and safety below the others.
# With five to ten rows each, the intervals overlap: this suggests where to look, but proves
# nothing.

# %%
# (its figures differ a little between processors)
for part in slice_scores(before.rows, "context_recall", "topic"):
    mean = part.score
    print(
        f"{part.value:10}{part.rows:3} rows  {mean.mean:.2f}  ({mean.low:.2f} to {mean.high:.2f})"
    )

# %% [markdown]
# ## 7. Make one change
#
# Context recall is low, so retrieval does not find the right passages. The change: four passages
# instead of one, and nothing else. If you also changed the prompt, you could not tell which of the
# two helped.

# %%
after_rows = [with_label(row) for row in pipeline_with(4).batch(questions)]
after = evaluate(after_rows, metrics, name="four passages", journal=work / "after.jsonl")
print(
    sum(row["label"] is None for row in after_rows),
    "answers have changed: nobody has labelled them",
)

# %% [markdown]
# ## 8. Is it better?
#
# `compare_runs` pairs the rows by their ids. `p_value` is the probability of a difference at least
# this large if the two runs were equally good.
#
# *Expect* more faithful and more correct answers, beyond chance, and the price: half of what the
# model now reads does not help.

# %%
# (its figures differ a little between processors)
print(f"{'':21}before  after  difference               p       better  worse  same")
for metric in metrics:
    found = compare_runs(before, after, metric.key)
    by = found.difference
    interval = f"({by.low:+.2f} to {by.high:+.2f})"
    print(
        f"{metric.key:21}{found.before:<8.2f}{found.after:<7.2f}{by.mean:+.2f} {interval:20}"
        f"{found.p_value:<8.4f}{found.better:<8}{found.worse:<7}{found.same}"
    )

# %% [markdown]
# A mean hides rows that got worse. *Expect* three: with more passages, the model says things that
# nobody asked for, and confuses the free delivery of one kind with that of another. Faithfulness
# cannot show that, because the passages do say "from 40 pounds on it is free".

# %%
# (its figures differ a little between processors)
answers = {row.row.id: (row.row.question, row.row.answer) for row in after.rows}
earlier = {row.row.id: row.row.answer for row in before.rows}
found = compare_runs(before, after, "factual_correctness")
for change in sorted(found.changes, key=lambda change: (change.difference, change.id)):
    question, now = answers[change.id]
    print(f"{change.before:.2f} -> {change.after:.2f}  {question}")
    print(f"{'':14}{earlier[change.id]}\n{'':14}{now}")

# %% [markdown]
# ## 9. A report
#
# `write_report` writes an HTML page that loads nothing: all rows to sort, filter and search, each
# claim with its passage, both runs side by side. Open it with `webbrowser.open(path.as_uri())`, or
# with a double click. On the command line, use
# `langchain-groundedness report after.jsonl --compare before.jsonl -o report.html`.
#
# The report also comes as Markdown, for a pull request or the summary of a CI job; its comparison
# is shown here. *Expect* the table of section 8, in words.

# %%
# (its figures differ a little between processors)
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


# %%
# (its figures differ a little between processors)
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

# %%
# (its figures differ a little between processors)
summary = validate(after_rows, passed=work / "passed.jsonl", rejected=work / "rejected.jsonl")
print(f"{summary.passed} passed, {summary.rejected} rejected, {summary.unchecked} unchecked")


def read_rows(name):
    lines = (work / name).read_text(encoding="utf-8").splitlines()
    return {row["id"]: row for row in map(json.loads, lines)}


for _, row in sorted(read_rows("rejected.jsonl").items()):  # they stand there as they were done
    print(f"{row['question']}\n  {row['answer']}")
    print(*(f"    {reason['text']}" for reason in row["validation"]["reasons"]), sep="\n")

# %% [markdown]
# The rows that passed are a data set again: `evaluate` and `open_dataset` read it. Still, have a
# person read some of it. *Expect* an error that the embedded verifier missed: the passage gives
# three years to kettles, and two to grinders.

# %%
# (its figures differ a little between processors)
row = read_rows("passed.jsonl")["warranty-g2"]
print(row["answer"], row["reference"], sep="\n")

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
