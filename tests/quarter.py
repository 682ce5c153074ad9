"""A scripted answer with every kind of markup, its judge, and ways to cut the answer up."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.runnables.utils import AddableDict

from langchain_groundedness import (
    Citation,
    Claim,
    ClaimVerdict,
    Corrector,
    GroundednessRunnable,
    VerificationTask,
)

__all__ = [
    "ANSWER",
    "INPUT",
    "OPTIONS",
    "QUESTION",
    "REPORT",
    "checker",
    "cut",
    "cuts",
    "judge",
    "judge_all",
    "markdown",
    "nothing_left",
    "pieces_of",
]

QUESTION = "How was Q3?"
REPORT = Document(page_content="Revenue was $2.1B in Q3. Costs fell by 4%.", id="report")
ANSWER = """# The quarter

Sure! Revenue was $2.4B in Q3 [1]. Costs fell by 4%. The CEO resigned.

- **Margin** rose to 9 %. It was low before.
- The board met on 3. May 2024, e.g. in Rome.

| Item | Value |
|------|-------|
| Tax  | $0.3B |
| Debt | none |

```python
print("Revenue. Costs.")
```

Was that all? Unemployment rose.The rest is unknown.
"""


def judge(claim: Claim, documents: tuple[Document, ...]) -> ClaimVerdict:
    """A scripted judge: what it says of a claim depends on its text alone."""
    text = claim.text
    quote = Citation.from_document(documents, 0, 0, 24)
    if "$2.4B" in text:
        return ClaimVerdict(
            claim=claim, verdict="contradicted", citations=(quote,), correction="$2.1B"
        )
    if any(word in text for word in ("$2.1B", "Costs", "Margin", "Tax")):
        return ClaimVerdict(claim=claim, verdict="supported", citations=(quote,))
    if "board" in text:
        return ClaimVerdict.unchecked(claim, "the judge did not say")
    return ClaimVerdict(claim=claim, verdict="unverifiable")


def judge_all(task: VerificationTask) -> list[ClaimVerdict]:
    return [judge(claim, task.documents) for claim in task.claims]


def checker(**options: Any) -> GroundednessRunnable:
    return GroundednessRunnable(**{"verifier": judge_all, **options})


def cut(text: str, places: list[int]) -> list[str]:
    """Cut a text at places, taken modulo its length."""
    ends = sorted({place % (len(text) + 1) for place in places} | {0, len(text)})
    return [text[a:b] for a, b in pairwise(ends)]


INPUT = {"question": QUESTION, "answer": ANSWER, "documents": [REPORT]}
OPTIONS: list[dict[str, Any]] = [
    {},
    {"on_contradicted": "correct"},
    {"on_contradicted": "correct", "on_unverifiable": "strip"},
    {"on_contradicted": "strip", "on_unverifiable": "strip", "max_claims": 3},
    {"on_contradicted": "block"},
    {"on_contradicted": "correct", "corrector": Corrector(marker=None).invoke},
]
"""Options of a checker; the last has a corrector that is not known to work sentence by sentence."""


def pieces_of(answer: str, places: list[int]) -> list[AddableDict]:
    """Give what a retrieval chain streams: question, documents, and the answer bit by bit."""
    texts = [AddableDict(answer=text) for text in cut(answer, places)]
    return [AddableDict(question=QUESTION), AddableDict(documents=[REPORT]), *texts]


def cuts() -> st.SearchStrategy[list[int]]:
    """Give places to cut at, few or many."""
    return st.lists(st.integers(0, 10_000), max_size=60)


def markdown() -> st.SearchStrategy[str]:
    """Give answers made of all that sentences and blocks begin and end with."""
    return st.lists(st.sampled_from(_FRAGMENTS), min_size=1, max_size=25).map("".join)


_FRAGMENTS = [
    "Revenue was $2.4B in Q3", "Costs fell by 4%", "The CEO resigned", "Was that all?", "Sure!",
    "- ", "* ", "1. ", "\n", "\n\n", ". ", "! ", "? ", ".", "| a | b |", "|---|---|",
    "| Tax | $0.3B |", "# ", "## Head\n", "**Bold**", "**Revenue was $2.4B in Q3.**", "```",
    "```\n", "  ", " ", "\t", "---", "===", "> ", "[1]", "(see report.pdf)", "The board met",
    "e.g. ", "3.5", "Mr. ", "`code. X`", "https://x.y/z.", "I don't know.", "\r\n",
    "Rome is a city with 4 million people", "...", "\u3002", "日本\u3002", "😀", ": ", "Note: ",
    "==", "- The board met.\n", "_", "~~", '"', "'", "(", ")",
]  # fmt: skip


@contextmanager
def nothing_left() -> Iterator[None]:
    """Fail if more tasks or threads are alive at the end than at the start."""

    def alive() -> set[object]:
        try:
            tasks: set[object] = set(asyncio.all_tasks())
        except RuntimeError:
            tasks = set()
        return tasks | set(threading.enumerate())

    before = alive()
    yield
    for thread in set(threading.enumerate()) - before:
        if isinstance(thread, threading.Thread) and not thread.name.startswith("asyncio"):
            thread.join(timeout=300)
    left = {each for each in alive() - before if not _of_the_loop(each)}
    assert not left, left


def _of_the_loop(each: object) -> bool:
    """Tell whether something belongs to the default executor of the event loop, which keeps it."""
    return isinstance(each, threading.Thread) and each.name.startswith("asyncio")
