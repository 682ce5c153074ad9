"""Which claim of an answer cites what: pure logic over spans."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from langchain_groundedness.evals._citation_marks import CitationMark, blanked
from langchain_groundedness.evals._cited_documents import DocumentIndex
from langchain_groundedness.sentences import Sentence, split_sentences
from langchain_groundedness.types import Claim
from langchain_groundedness.words import content_words

__all__ = ["CitedTarget", "CitingClaim", "cited_targets", "citing_claims"]

_JOINED = re.compile(r"[\s,;.]*")


class CitedTarget(NamedTuple):
    """What one sentence cites once."""

    sentence: int
    """Index of the sentence."""
    target: int | str
    """As the answer has it."""
    documents: tuple[int, ...]
    """Indices of the documents that it names; none if there is no such document."""


class CitingClaim(NamedTuple):
    """A claim, and what it cites."""

    claim: Claim
    cited: tuple[CitedTarget, ...]

    @property
    def documents(self) -> tuple[int, ...]:
        """Indices of all documents that it cites, in order."""
        return tuple(sorted({place for target in self.cited for place in target.documents}))


class _Placed(NamedTuple):
    """A mark, the sentence that it belongs to, and the first mark it is joined with."""

    sentence: int
    mark: CitationMark
    cluster: int


def cited_targets(
    answer: str, marks: Sequence[CitationMark], index: DocumentIndex
) -> list[CitedTarget]:
    """List what each sentence cites.

    Args:
        answer: The answer.
        marks: Its marks.
        index: The documents.

    Returns:
        Each target once per sentence, in order.
    """
    placed = _placed(answer, marks)
    return list(dict.fromkeys(target for each in placed for target in _targets(each, index)))


def citing_claims(
    answer: str, marks: Sequence[CitationMark], claims: Iterable[Claim], index: DocumentIndex
) -> list[CitingClaim]:
    """Tell for each claim what it cites.

    A mark belongs to the sentence that it stands in or follows; at the start of a line, to the
    one that follows it. Of the marks of its sentence a claim cites those inside its span and
    those next after it, if no other claim lies between; else all of them.

    Args:
        answer: The answer.
        marks: Its marks.
        claims: Its claims, with spans where they are known.
        index: The documents.

    Returns:
        The claims in their order.
    """
    text = blanked(answer, marks)
    sentences, placed = split_sentences(text), _placed(answer, marks)
    listed = list(claims)
    starts = [claim.start for claim in listed if claim.start is not None]
    found = []
    for claim in listed:
        own = [each for each in placed if each.sentence == _sentence_of(claim, sentences)]
        cited = dict.fromkeys(
            target for each in _cited(claim, own, starts) for target in _targets(each, index)
        )
        found.append(CitingClaim(claim, tuple(cited)))
    return found


def _cited(claim: Claim, marks: list[_Placed], starts: list[int]) -> list[_Placed]:
    if claim.start is None or claim.end is None:
        return marks
    start, end = claim.start, claim.end
    inside = [each for each in marks if start <= each.mark.start < end]
    after = [each for each in marks if each.mark.start >= end]
    if after and not any(end <= other < after[0].mark.start for other in starts):
        inside += [each for each in after if each.cluster == after[0].cluster]
    return inside or marks


def _placed(answer: str, marks: Sequence[CitationMark]) -> list[_Placed]:
    text = blanked(answer, marks)
    sentences = split_sentences(text)
    placed: list[_Placed] = []
    for number, mark in enumerate(marks):
        joined = number and _JOINED.fullmatch(answer, marks[number - 1].end, mark.start)
        if joined and placed:
            before = placed[-1]
            placed.append(_Placed(before.sentence, mark, before.cluster))
        elif sentences:
            placed.append(_Placed(_sentence_at(text, mark, sentences), mark, number))
    return placed


def _sentence_at(text: str, mark: CitationMark, sentences: Sequence[Sentence]) -> int:
    """Find the sentence of a mark: the last that starts before it, unless it leads the next."""
    before = [n for n, sentence in enumerate(sentences) if sentence.start < mark.end]
    after = [n for n, sentence in enumerate(sentences) if sentence.start >= mark.end]
    if not before:
        return after[0]
    line = text.rfind("\n", 0, mark.start) + 1
    leads = not any(map(str.isalnum, text[line : mark.start]))
    line_end = text.find("\n", mark.end)
    line_end = len(text) if line_end < 0 else line_end
    inside = sentences[before[-1]].end > mark.start
    if leads and not inside and after and sentences[after[0]].start < line_end:
        return after[0]
    return before[-1]


def _sentence_of(claim: Claim, sentences: Sequence[Sentence]) -> int:
    if claim.start is not None and claim.end is not None:
        middle = (claim.start + claim.end) / 2
        before = [n for n, sentence in enumerate(sentences) if sentence.start <= middle]
        return before[-1] if before else 0
    words = content_words(claim.text)
    shared = [len(words & content_words(sentence.text)) for sentence in sentences]
    return shared.index(max(shared)) if shared else 0


def _targets(placed: _Placed, index: DocumentIndex) -> Iterator[CitedTarget]:
    for target in placed.mark.targets:
        yield CitedTarget(placed.sentence, target, index.find(target))
