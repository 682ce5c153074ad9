"""A small retrieval chain with planted errors, to demonstrate the check.

`langchain-groundedness demo` runs it.
"""

import math
from collections import Counter
from importlib.resources import files
from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableParallel, RunnablePassthrough
from typing_extensions import override

from langchain_groundedness.text.words import content_words

__all__ = ["ANSWER", "QUESTION", "WordOverlapRetriever", "build_chain", "load_documents"]

QUESTION = (
    "What was revenue in Q3, what should a buyer of the S2 weather station know, and what is new "
    "in its firmware?"
)

ANSWER = (
    "Revenue was $2.4B in Q3, up 12% from the year before. "
    "The S2 runs for 18 months on one set of batteries. "
    "It comes with a five-year warranty. "
    "Version 4.2.0 added support for Matter. "
    "The S2 won the Nordic Design Award in 2024."
)
"""The scripted answer: revenue and warranty are wrong, and the award is made up."""

_PROMPT = ChatPromptTemplate.from_template(
    "Answer from these documents only.\n\n{documents}\n\nQuestion: {question}"
)


class WordOverlapRetriever(BaseRetriever):
    """Finds the documents that share most words with the question; enough for a demonstration.

    A word counts more the fewer documents have it. A document without any is not returned.
    """

    documents: list[Document]
    k: int = 4
    """How many to return."""

    def __init__(self, **options: Any) -> None:
        """Take the documents."""
        super().__init__(**options)

    @override
    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        asked = content_words(query)
        shared = [asked & content_words(document.page_content) for document in self.documents]
        having = Counter(word for words in shared for word in words)
        weights = [
            sum(math.log(1 + len(self.documents) / having[word]) for word in sorted(words))
            for words in shared
        ]
        best = sorted(range(len(weights)), key=lambda place: weights[place], reverse=True)
        return [self.documents[place] for place in best[: self.k] if weights[place] > 0]


def load_documents() -> list[Document]:
    """Read the documents that come with the package."""
    folder = files(__name__) / "documents"
    return [
        Document(page_content=file.read_text(encoding="utf-8"), metadata={"source": file.name})
        for file in sorted(folder.iterdir(), key=lambda file: file.name)
    ]


def build_chain(*, delay: float | None = None) -> Runnable[str, dict[str, object]]:
    """Build a retrieval chain whose chat model is scripted: it always gives `ANSWER`.

    Args:
        delay: Seconds between two characters of the answer; `None` for no wait.

    Returns:
        The chain; it gives `question`, `documents` and `answer`.
    """
    model = FakeListChatModel(responses=[ANSWER], sleep=delay)
    retriever = WordOverlapRetriever(documents=load_documents())
    retrieve: Runnable[str, dict[str, object]] = RunnableParallel(
        question=RunnablePassthrough(), documents=retriever
    )
    return retrieve.assign(answer=_PROMPT | model | StrOutputParser())
