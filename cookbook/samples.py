"""What stands in for a reader's own parts: documents, retrievers, chat models that follow a script.

The notebooks import it, so that their cells show only what a user of the package writes.
"""

import json
import math
import re
import time
import warnings
from collections import Counter
from html import escape
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from IPython.display import SVG, Markdown
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough
from langchain_core.tools import tool
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_groundedness import Claim, VerificationTask
from langchain_groundedness.display.svg import STYLE, Plot, document
from langchain_groundedness.query import HashedNgramEmbeddings
from langchain_groundedness.testing import (
    HonestJudge,
    KnownClaim,
    ScriptedChatModel,
    ScriptedRequest,
)

HERE = Path(__file__).parent

# RetrievalQA is deprecated; many still run it.
warnings.filterwarnings("ignore", message="The class `(RetrievalQA|LLMChain|StuffDocumentsChain)")


class ScriptedModel(ScriptedChatModel):
    """Streams word by word; with tools, it first calls the first one, as a real model would."""

    def bind_tools(self, tools, **kwargs):
        return self.bind(tools=[tool.name for tool in tools])

    def _generate(self, messages, *args, tools=(), **kwargs):
        if tools and not any(message.type == "tool" for message in messages):
            [*_, asked] = (message.text for message in messages if message.type == "human")
            call = {"name": tools[0], "args": {"query": asked}, "id": "1"}
            message = AIMessage("", tool_calls=[call])
            return ChatResult(generations=[ChatGeneration(message=message)])
        return super()._generate(messages, *args, **kwargs)

    def _stream(self, messages, *args, **kwargs):
        message = self._generate(messages, **kwargs).generations[0].message
        for word in re.findall(r"\S+\s*", message.text):
            yield ChatGenerationChunk(message=AIMessageChunk(content=word))
        for call in message.tool_calls:
            part = {**call, "args": json.dumps(call["args"]), "index": 0, "type": "tool_call_chunk"}
            yield ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=[part]))


def read_lines(name):
    """Read the rows of a file of JSON lines."""
    return [json.loads(line) for line in (HERE / name).read_text(encoding="utf-8").splitlines()]


def read_documents(folder):
    """Read the documents of `papers` or `shop`."""
    return [
        Document(path.read_text(encoding="utf-8"), id=path.name, metadata={"source": path.name})
        for path in sorted((HERE / folder / "documents").iterdir())
    ]


def paper_retriever(k=2):
    """Retrieve documents of `papers`; the embeddings count letters and need no download."""
    store = InMemoryVectorStore.from_documents(read_documents("papers"), HashedNgramEmbeddings())
    return store.as_retriever(search_kwargs={"k": k})


def paper_model():
    """Make a chat model that gives the answers of `papers/answers.jsonl`."""
    return _model_that_knows(read_lines("papers/answers.jsonl"))


def paper_chain():
    """Make a chain that returns question, documents and answer about `papers`."""
    return _chain(paper_retriever(), paper_model())


def shop_model():
    """Make a chat model that gives the answers of `shop/answers.jsonl`."""
    return _model_that_knows(read_lines("shop/answers.jsonl"))


def shop_chain():
    """Make a chain that returns question, documents and answer about `shop`."""
    documents = read_documents("shop")
    return _chain(store_of(documents).as_retriever(search_kwargs={"k": 3}), shop_model())


def _model_that_knows(rows):
    says = {row["question"]: row["answer"] for row in rows}

    def reply(messages):
        text = "\n".join(message.text for message in messages)
        found = (answer for question, answer in says.items() if question in text)
        return next(found, "The documents do not say.")

    return ScriptedModel(replies=reply)


def _chain(retriever, model):
    prompt = ChatPromptTemplate.from_template(
        "Answer from these documents only.\n\n{documents}\n\nQuestion: {question}"
    )
    return RunnablePassthrough.assign(documents=itemgetter("question") | retriever).assign(
        answer=prompt | model | StrOutputParser()
    )


@tool(response_format="content_and_artifact")
def search_reports(query: str):
    """Search the reports."""
    text = "Revenue was $2.1B in Q3, up 12% from last year. The company has 4,200 employees."
    report = Document(text, metadata={"source": "https://example.org/q3", "title": "Q3 report"})
    return report.page_content, [report]


class WeightedWords(Embeddings):
    """Embeds a text by the words that it shares with the documents (TF-IDF); needs no download."""

    def __init__(self, texts):
        from sklearn.feature_extraction.text import TfidfVectorizer

        self.words = TfidfVectorizer(stop_words="english", sublinear_tf=True).fit(texts)

    def embed_documents(self, texts):
        # The constant gives a text of unknown words a direction too: close to nothing.
        return [[*row, 0.05] for row in self.words.transform(texts).toarray().tolist()]

    def embed_query(self, text):
        return self.embed_documents([text])[0]


def store_of(documents):
    """Put documents into a vector store with `WeightedWords`."""
    texts = [document.page_content for document in documents]
    return InMemoryVectorStore.from_documents(documents, WeightedWords(texts))


def shop_pipeline(k, *, model=None):
    """Make a pipeline that answers from the `k` closest passages of `shop`, and cites them."""
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    splitter = RecursiveCharacterTextSplitter(
        chunk_size=220, chunk_overlap=0, separators=[". ", "\n"], keep_separator="end"
    )
    documents = [
        Document(each.page_content, metadata=each.metadata) for each in read_documents("shop")
    ]
    passages = splitter.split_documents(documents)
    for number, passage in enumerate(passages, 1):
        passage.id = f"passage-{number}"  # else the store draws one
    retriever = store_of(passages).as_retriever(search_kwargs={"k": k})
    prompt = ChatPromptTemplate.from_template(
        "You answer customers of a shop from these passages only. Cite them as [1].\n\n"
        "{passages}\n\nQuestion: {question}"
    )
    answer = RunnablePassthrough.assign(passages=_numbered) | prompt | (model or passage_reader())
    return RunnablePassthrough.assign(contexts=itemgetter("question") | retriever).assign(
        answer=answer | StrOutputParser()
    )


def _numbered(x):
    return "\n\n".join(f"[{n}] {each.page_content}" for n, each in enumerate(x["contexts"], 1))


def passage_reader():
    """Make the chat model of `shop/model.json`: it says what its passages say, or guesses."""
    scripts = json.loads((HERE / "shop/model.json").read_text(encoding="utf-8"))

    def reply(messages):
        text, _, question = messages[-1].text.rpartition("Question: ")
        shown = [" ".join(part.split()) for part in re.split(r"(?m)^\[\d+\] ", text)]
        script, said = scripts[question], []
        for words, sentence in script["reads"].items():
            number = next((n for n, part in enumerate(shown) if words in part), None)
            if number:
                said.append(sentence if "[" in sentence else f"{sentence[:-1]} [{number}].")
        return " ".join(said) or script["guesses"]

    return ScriptedModel(replies=reply)


def with_labels(rows):
    """Add a person's label to each answer that a person has labelled."""
    labels = {(row["id"], row["answer"]): row["label"] for row in read_lines("shop/labels.jsonl")}
    without_marks = (re.sub(r" \[\d+\]", "", row["answer"]) for row in rows)
    return [
        {**row, "label": labels.get((row["id"], text))}
        for row, text in zip(rows, without_marks, strict=True)
    ]


def labelled_claims():
    """Read the two hundred claims that a person has labelled, each as a task for a verifier."""
    for folder in ("shop", "papers"):
        documents = {each.id: Document(each.page_content) for each in read_documents(folder)}
        for row in read_lines(f"{folder}/claims.jsonl"):
            claim = Claim(id="1", text=row["claim"])
            task = VerificationTask(claims=(claim,), documents=(documents[row["source"]],))
            is_true = row["label"] == "supported"
            yield {**row, "set": folder, "task": task, "is_true": is_true}


WAIT = 0.2


def judge_that_errs(rows):
    """Make a chat model that judges each claim rightly but every tenth, in 0.2 seconds."""
    errs = range(5, len(rows), 10)
    script = HonestJudge(
        {
            row["claim"]: KnownClaim(
                "supported" if row["is_true"] != (n in errs) else "unverifiable"
            )
            for n, row in enumerate(rows)
        }
    )

    def reply(messages):
        time.sleep(WAIT)
        asked = [{"content": message.text} for message in messages]
        return script(ScriptedRequest({"messages": asked}))

    return ScriptedChatModel(replies=reply)


class Measured(NamedTuple):
    """What a verifier made of labelled claims."""

    verdicts: list
    passed: Counter
    """False claims that pass, by set."""
    refused: Counter
    """True claims that do not, by set."""
    seconds: float
    """Processor time."""
    calls: int
    """Calls of a chat model."""


class _Calls(BaseCallbackHandler):
    def __init__(self):
        self.number = 0

    def on_chat_model_start(self, *args, **kwargs):
        self.number += 1


def measure(verifier, rows):
    """Let a verifier judge labelled claims, and count its errors."""
    calls, started = _Calls(), time.process_time()
    found = verifier.batch([row["task"] for row in rows], {"callbacks": [calls]})
    seconds = time.process_time() - started
    passed, refused = Counter(), Counter()
    for row, [verdict] in zip(rows, found, strict=True):
        is_passed = verdict.verdict == "supported"
        passed[row["set"]] += is_passed and not row["is_true"]
        refused[row["set"]] += row["is_true"] and not is_passed
    return Measured([verdict for [verdict] in found], passed, refused, seconds, calls.number)


def errors(measured):
    """Show the errors of verifiers as a table."""
    heads = ("", "shop: false passed", "true refused", "papers: false passed", "true refused")
    return table(
        (*heads, "calls of a model"),
        (
            (name, *(part[each] for each in ("shop", "papers") for part in found[1:3]), found.calls)
            for name, found in measured.items()
        ),
    )


def errors_and_times(measured):
    """Draw the errors and the times of verifiers."""
    kinds = measured.values()
    rows = sum(len(each.verdicts) for each in kinds) / len(measured)
    passed, refused = (
        [part.total() for part in each] for each in zip(*(k[1:3] for k in kinds), strict=True)
    )
    mistakes = {"false claims that pass": passed, "true claims refused": refused}
    times = {
        "processor time": [1000 * each.seconds / rows for each in kinds],
        "waiting for the model": [1000 * WAIT * each.calls / rows for each in kinds],
    }
    return bars(measured, {"claims": mistakes, "milliseconds a claim": times})


def bars(names, plots):
    """Draw bars: for each plot, by its title, columns by their names, each with a value a name."""
    return SVG(document([_bars(list(names), *each) for each in plots.items()]))


def _bars(names, title, columns):
    most = max(max(values) for values in columns.values())
    step = math.ceil(most / 4) if most > 1 else 0.25
    wide, form = 1 / len(names), ".0f" if most > 1 else ".2f"
    plot = Plot(title=title, highest=step * 4.2, y_label=title, height=220, width=640)
    plot.ticks(
        [((n + 0.5) * wide, name) for n, name in enumerate(names)],
        [(step * part, f"{step * part:g}") for part in range(5)],
    )
    for place, (kind, (column, values)) in enumerate(zip("eb", columns.items(), strict=False)):
        for n, value in enumerate(values):
            left, told = wide * (n + 0.2 + 0.3 * place), f"{column}: {value:{form}}"
            plot.bar(left, wide * 0.28, 0, value, kind, told)
    plot.legend(list(zip("eb", columns, strict=False)))
    return plot


def table(heads, rows):
    """Show rows as a table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return Markdown("\n".join(f"| {' | '.join(map(_in_cell, line))} |" for line in lines))


def _in_cell(value):
    return " ".join(str(value).replace("|", "\\|").replace("$", "\\$").split())


def graph_picture(graph):
    """Draw a LangGraph graph from left to right; arrows that lead back are below."""
    names, x, parts, places = list(graph.nodes), 10.0, [], {}
    for name in names:
        label = name.strip("_").partition(".")[0]
        wide = 8 * len(label) + 20
        places[name] = (len(places), x, wide)
        parts.append(
            f'<rect class="frame" x="{x}" y="60" width="{wide}" height="30" rx="6"/>'
            f'<text x="{x + wide / 2}" y="79" text-anchor="middle">{escape(label)}</text>'
        )
        x += wide + 45
    for edge in graph.edges:
        (a, left, wide), (b, right, other) = places[edge.source], places[edge.target]
        if a == b:
            continue
        if b == a + 1:
            path = f"M{left + wide} 75 H{right - 2}"
        else:
            y, far = (60, 5) if a < b else (90, 145)
            start, end = left + wide / 2, right + other / 2
            path = f"M{start} {y} C{start} {far} {end} {far} {end} {y + (-2 if a < b else 2)}"
        parts.append(f'<path class="frame" d="{path}" marker-end="url(#arrow)"/>')
    return SVG(
        f'<svg class="plot" xmlns="http://www.w3.org/2000/svg" width="{x}" height="150" '
        f'viewBox="0 0 {x} 150"><style>{STYLE}</style><rect class="page" width="{x}" height="150"/>'
        '<marker id="arrow" viewBox="0 0 6 6" refX="5" refY="3" markerWidth="7" markerHeight="7" '
        'orient="auto"><path d="M0 0L6 3L0 6z" fill="currentColor"/></marker>'
        f"{''.join(parts)}</svg>"
    )
