"""Citations: do the passages that an answer cites say what it says they do?"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from langchain_core.documents import Document
from pydantic import Field
from typing_extensions import override

from langchain_groundedness._runtime.flow import Flow
from langchain_groundedness.evals.citation_marks import (
    SECTION_KEYS,
    SOURCE_KEYS,
    CitationMark,
    DocumentIndex,
    blanked,
    citation_marks,
    reference_list,
)
from langchain_groundedness.evals.claim_evaluator import ClaimEvaluator, Evidence, unchecked_reason
from langchain_groundedness.evals.correctness import f_beta
from langchain_groundedness.evals.values import EvaluationRow, RowScore
from langchain_groundedness.inputs.formats import CheckInput
from langchain_groundedness.text.sentences import Sentence, split_sentences
from langchain_groundedness.text.words import content_words
from langchain_groundedness.types import Claim, ClaimVerdict

__all__ = ["CitationEvaluator"]

_GAP = re.compile(r"\s{1,200}([.,;:!?])(?=\s|$)")

_CITES_NOTHING = "the sentence cites no document"

_CITES_WHAT_IS_NOT_THERE = "no document that the sentence cites exists"


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


class CitationEvaluator(ClaimEvaluator):
    """Whether citations are right, and whether every claim has one that bears it out.

    Completeness is the share of claims that the documents cited by their sentence, taken together,
    support: a claim without a citation lowers it. Correctness is the share of citations that
    help: that name a document which alone supports a claim of the sentence, or which is quoted
    where all that the sentence cites supports it. A citation of a document that does not exist is
    wrong, and is named under `missing`. These are citation recall and precision of ALCE (Gao et
    al. 2023, section 3), counted by claim; `f1` joins them.

    Read as citations are `[1]`, `[2][3]`, `[1, 2]`, `[1-3]`, `(file.md#section)`,
    `[source:file.md#section]`, links, and ids and names of documents in brackets. Numbers count
    the documents from `first_number`, unless the answer ends with a list of sources (`[1] file.md`)
    that says what they stand for. Paths are found by the metadata (`source_keys`), however
    they are written: leading folders, case, slashes, `%20` and accents do not matter. One path
    may name several documents, such as the pieces of a file.

    `details` has `correctness`, `completeness` (`None` if claims could not be checked), `claims`
    (text, what it cites, verdict), `citations` (target, documents, whether it is right),
    `missing`, and `uncited` claims. In `result`, claims that cite nothing are `unchecked`, since
    there is nothing to check them by. A row is skipped if the answer makes no claim and cites
    nothing that is missing.

    Example:
        >>> score = CitationEvaluator().invoke(
        ...     {
        ...         "answer": "Rome is the capital of Italy [1]. Cats sleep a lot (cats.md). [7]",
        ...         "contexts": ["Rome is the capital of Italy.", "Cats sleep a lot."],
        ...     }
        ... )
        >>> score.details["missing"], score.details["completeness"]
        (['cats.md', 7], 0.5)
    """

    needs = ("answer", "documents")

    key: str = Field(default="citations", min_length=1)
    mode: Literal["f1", "correctness", "completeness"] = "f1"
    """What the score is."""
    first_number: int = Field(default=1, ge=0)
    """The number by which the first document is cited."""
    source_keys: tuple[str, ...] = SOURCE_KEYS
    """Keys of the documents' metadata that hold names or paths."""
    section_keys: tuple[str, ...] = SECTION_KEYS
    """Keys of the documents' metadata that hold names of sections."""

    @override
    def _score(self, row: EvaluationRow) -> Flow[RowScore]:
        answer, documents = row.answer or "", row.documents or ()
        index = self._index(documents)
        text, numbers = reference_list(answer, index.names)
        marks = citation_marks(text, index.names)
        index = self._index(documents, numbers) if numbers else index
        found = yield from self._claims_of(blanked(text, marks), row.question)
        claims = citing_claims(text, marks, map(_closed_up, found), index)
        targets = cited_targets(text, marks, index)
        together = yield from self._together(claims, row)
        alone = yield from self._alone(claims, together, row)
        judged = _Judged(claims, targets, together, alone)
        source = CheckInput(question=row.question, answer=answer, documents=documents)
        result = self._result(source, judged.verdicts())
        details = judged.details()
        checked = [*together.values(), *alone.values()]
        if reason := unchecked_reason(checked):
            return self._failed(reason, details=details, result=result)
        score = judged.score(self.mode)
        if score is None:
            reason = (
                "the answer cites nothing"
                if claims
                else "the answer makes no claim to be cited for"
            )
            return self._skipped(reason, details=details, result=result)
        return self._scored(score, comment=judged.comment(), details=details, result=result)

    def _index(
        self, documents: Sequence[Document], numbers: Mapping[int, str] | None = None
    ) -> DocumentIndex:
        return DocumentIndex(
            documents,
            first_number=self.first_number,
            source_keys=self.source_keys,
            section_keys=self.section_keys,
            numbers=numbers,
        )

    def _together(
        self, claims: Sequence[CitingClaim], row: EvaluationRow
    ) -> Flow[dict[str, ClaimVerdict]]:
        """Judge each claim by all that it cites."""
        groups: dict[tuple[int, ...], list[Claim]] = {}
        for claim, cited in ((each.claim, each.documents) for each in claims):
            if cited:
                groups.setdefault(cited, []).append(claim)
        parts = [Evidence(tuple(claims), cited) for cited, claims in groups.items()]
        found = yield from self._judge_against(
            parts, row.documents or (), question=row.question, answer=row.answer or ""
        )
        return {v.claim.id: v for verdicts in found for v in verdicts}

    def _alone(
        self,
        claims: Sequence[CitingClaim],
        together: Mapping[str, ClaimVerdict],
        row: EvaluationRow,
    ) -> Flow[dict[tuple[str, CitedTarget], ClaimVerdict]]:
        """Judge claims by single citations, where it is open whether those helped."""
        open_ones = [
            (each.claim, target)
            for each in claims
            for target in each.cited
            if target.documents and _is_open(target, each, together[each.claim.id])
        ]
        groups: dict[tuple[int, ...], list[tuple[Claim, CitedTarget]]] = {}
        for claim, target in open_ones:
            groups.setdefault(target.documents, []).append((claim, target))
        parts = [
            Evidence(tuple({c.id: c for c, _ in pairs}.values()), cited)
            for cited, pairs in groups.items()
        ]
        found = yield from self._judge_against(
            parts, row.documents or (), question=row.question, answer=row.answer or ""
        )
        by_group = {
            (cited, v.claim.id): v
            for cited, verdicts in zip(groups, found, strict=True)
            for v in verdicts
        }
        return {
            (claim.id, target): by_group[target.documents, claim.id] for claim, target in open_ones
        }


def _closed_up(claim: Claim) -> Claim:
    """Take out the space that a citation left before the end of a sentence."""
    return claim.model_copy(update={"text": _GAP.sub(r"\1", claim.text)})


def _is_open(target: CitedTarget, each: CitingClaim, verdict: ClaimVerdict) -> bool:
    """Tell whether a citation has to be judged alone: others may have done all of the work."""
    if verdict.verdict != "supported" or target.documents == each.documents:
        return False
    return not _quoted(target, verdict)


def _quoted(target: CitedTarget, verdict: ClaimVerdict) -> bool:
    return any(citation.document in target.documents for citation in verdict.citations)


class _Judged(NamedTuple):
    """What was found out about one answer."""

    claims: Sequence[CitingClaim]
    targets: Sequence[CitedTarget]
    together: Mapping[str, ClaimVerdict]
    alone: Mapping[tuple[str, CitedTarget], ClaimVerdict]

    def score(self, mode: str) -> float | None:
        correctness, completeness = self._correctness(), self._completeness()
        if mode != "f1":
            return correctness if mode == "correctness" else completeness
        if correctness is None and completeness is None:
            return None
        return f_beta(correctness or 0.0, completeness or 0.0)

    def verdicts(self) -> Iterable[ClaimVerdict]:
        for each in self.claims:
            missing = _CITES_WHAT_IS_NOT_THERE if each.cited else _CITES_NOTHING
            yield self.together.get(each.claim.id) or ClaimVerdict.unchecked(each.claim, missing)

    def comment(self) -> str:
        right = sum(bool(self._is_right(target)) for target in self._counted())
        borne_out = sum(v.verdict == "supported" for v in self.together.values())
        told = f"{right} of {len(self._counted())} citations are right; "
        told += f"{borne_out} of {len(self.claims)} claims are borne out by what they cite"
        missing = self._missing()
        return f"{told}; not there: {', '.join(map(str, missing))}" if missing else told

    def details(self) -> dict[str, Any]:
        return {
            "correctness": self._correctness(),
            "completeness": self._completeness(),
            "claims": [
                {
                    "text": each.claim.text,
                    "cites": [target.target for target in each.cited],
                    "documents": list(each.documents),
                    "verdict": verdict.verdict,
                }
                for each, verdict in zip(self.claims, self.verdicts(), strict=True)
            ],
            "citations": [
                {
                    "target": target.target,
                    "sentence": target.sentence,
                    "documents": list(target.documents),
                    "right": self._is_right(target),
                }
                for target in self._counted()
            ],
            "missing": self._missing(),
            "uncited": [each.claim.text for each in self.claims if not each.cited],
        }

    def _completeness(self) -> float | None:
        labels = [verdict.verdict for verdict in self.together.values()]
        if not self.claims or "unchecked" in labels:
            return None
        return labels.count("supported") / len(self.claims)

    def _correctness(self) -> float | None:
        right = [self._is_right(target) for target in self._counted()]
        known = [each for each in right if each is not None]
        return sum(known) / len(right) if right and len(known) == len(right) else None

    def _counted(self) -> list[CitedTarget]:
        """Leave out citations of sentences that claim nothing, unless nothing is there."""
        used = {target for each in self.claims for target in each.cited}
        return [t for t in self.targets if t in used or not t.documents]

    def _missing(self) -> list[int | str]:
        return list(dict.fromkeys(t.target for t in self.targets if not t.documents))

    def _is_right(self, target: CitedTarget) -> bool | None:
        """Tell whether a citation helps any claim; `None` if that stayed open."""
        ids = [c.claim.id for c in self.claims if target in c.cited and target.documents]
        labels = {self.alone.get((i, target), self.together[i]).verdict for i in ids}
        return True if "supported" in labels else None if "unchecked" in labels else False


_JOINED = re.compile(r"[\s,;.]*")


class _Placed(NamedTuple):
    """A mark, the sentence that it belongs to, and the first mark it is joined with."""

    sentence: int
    mark: CitationMark
    cluster: int


def cited_targets(
    answer: str, marks: Sequence[CitationMark], index: DocumentIndex
) -> list[CitedTarget]:
    """List what each sentence cites."""
    placed = _placed(answer, marks)
    return list(dict.fromkeys(target for each in placed for target in _targets(each, index)))


def citing_claims(
    answer: str, marks: Sequence[CitationMark], claims: Iterable[Claim], index: DocumentIndex
) -> list[CitingClaim]:
    """Tell for each claim what it cites.

    A mark belongs to the sentence that it stands in or follows; at the start of a line, to the
    one that follows it. Of the marks of its sentence a claim cites those inside its span and
    those next after it, if no other claim lies between; else all of them.
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
