"""Citation metrics: whether the cited documents support the claims that cite them."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

from pydantic import Field
from typing_extensions import override

from langchain_groundedness._runtime.flow import Flow
from langchain_groundedness.display.counts import count_of
from langchain_groundedness.evals.citation_marks import (
    SECTION_KEYS,
    SOURCE_KEYS,
    CitationMark,
    DocumentIndex,
    blank_out_marks,
    citation_marks,
    reference_list,
)
from langchain_groundedness.evals.claim_metrics import ClaimEvaluator, Places, f_score
from langchain_groundedness.evals.values import EvaluationRow, RowScore
from langchain_groundedness.inputs.formats import CheckInput
from langchain_groundedness.text.sentences import Sentence, split_sentences
from langchain_groundedness.text.words import most_similar
from langchain_groundedness.types import Claim, ClaimVerdict

__all__ = ["CitationEvaluator"]

_GAP = re.compile(r"\s{1,200}([.,;:!?])(?=\s|$)")


class CitedTarget(NamedTuple):
    """What one sentence cites once."""

    sentence: int
    """Index of the sentence."""
    target: int | str
    """As the answer has it."""
    documents: Places
    """The documents that it names; none if there is no such document."""


class CitingClaim(NamedTuple):
    """A claim, and what it cites."""

    claim: Claim
    cited: tuple[CitedTarget, ...]

    @property
    def documents(self) -> Places:
        """All documents that it cites, in order."""
        return tuple(sorted({place for target in self.cited for place in target.documents}))


class CitationEvaluator(ClaimEvaluator):
    """Whether the citations of an answer are correct, and whether they support every claim.

    Completeness is the share of claims that the documents cited in their sentence support together;
    a claim without a citation is not supported. Correctness is the share of correct citations. A
    citation is correct if its document alone supports a claim of the sentence, or if all documents
    cited there support it together and the evidence quotes this one. A citation of a document that
    does not exist is wrong and listed under `missing`. These are citation recall and precision of
    ALCE (Gao et al. 2023, section 3), counted by claim; `f1` is their harmonic mean.

    Recognized citations: `[1]`, `[2][3]`, `[1, 2]`, `[1-3]`, `(file.md#section)`,
    `[source:file.md#section]`, links, and ids and names of documents in brackets. Numbers count
    the documents from `first_number`, unless the answer ends with a list of sources (`[1] file.md`)
    that explains them. Paths are looked up in the metadata (`source_keys`), regardless of leading
    folders, case, slash direction, `%20` and accents. One path may name several documents, such as
    the chunks of a file.

    `details` has `correctness`, `completeness` (`None` if claims could not be checked), `claims`
    (text, citations, verdict), `citations` (target, documents, whether it is correct), `missing`,
    and `uncited` claims. In `result`, claims without a citation are `unchecked`, because there is
    nothing to check them against. A row is skipped if the answer makes no claim and every document
    that it cites exists.

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
        source = CheckInput(question=row.question, answer=answer, documents=documents)
        index = DocumentIndex(
            documents,
            first_number=self.first_number,
            source_keys=self.source_keys,
            section_keys=self.section_keys,
        )
        text, index.numbers = reference_list(answer, index.names)
        marks = citation_marks(text, index.names)
        blank = blank_out_marks(text, marks)
        sentences = split_sentences(blank)
        placed = _placed_marks(text, marks, blank, sentences, index)
        found_claims = yield from self._claims_of(blank, row.question)
        claims = _citing_claims(found_claims, placed, sentences)
        found = _CitationVerdicts(claims, {})
        together = [(each.claim, each.documents) for each in claims if each.documents]
        found.verdicts.update((yield from self._verdicts(together, source)))
        # Where several documents support a claim together, each one must also be judged alone.
        alone = [
            (each.claim, target.documents)
            for each in claims
            for target in each.cited
            if found.is_open(target, each)
        ]
        found.verdicts.update((yield from self._verdicts(alone, source)))
        details, comment = _details_and_comment(
            found, dict.fromkeys(target for each in placed for target in each.targets)
        )
        f1 = f_score(details["correctness"], details["completeness"])
        nothing = "the answer cites nothing"
        return self._row_score(
            {**details, "f1": f1}[self.mode],
            list(found.verdicts.values()),
            nothing=nothing if claims else "the answer makes no claim that needs a citation",
            comment=comment,
            details=details,
            result=self._result(source, map(found.verdict, claims)),
        )

    def _verdicts(
        self, asked: Iterable[tuple[Claim, Places]], source: CheckInput
    ) -> Flow[dict[tuple[str, Places], ClaimVerdict]]:
        """Judge claims by some of the documents; give the verdicts by claim and documents."""
        groups: dict[Places, dict[str, Claim]] = {}
        for claim, documents in asked:
            groups.setdefault(documents, {})[claim.id] = claim
        parts = {places: tuple(claims.values()) for places, claims in groups.items()}
        found = yield from self._judge_against(parts, source)
        return {(v.claim.id, p): v for p, verdicts in found.items() for v in verdicts}


class _CitationVerdicts(NamedTuple):
    """The verdicts on the claims and citations of one answer."""

    claims: Sequence[CitingClaim]
    verdicts: dict[tuple[str, Places], ClaimVerdict]
    """By claim id and the documents it was judged against."""

    def verdict(self, each: CitingClaim) -> ClaimVerdict:
        found = self.verdicts.get((each.claim.id, each.documents))
        nothing = "the sentence cites only documents that do not exist"
        nothing = nothing if each.cited else "the sentence cites no document"
        return found or ClaimVerdict.unchecked(each.claim, nothing)

    def is_open(self, target: CitedTarget, each: CitingClaim) -> bool:
        """Tell whether a citation must also be judged alone."""
        verdict = self.verdict(each)
        is_quoted = any(quote.document in target.documents for quote in verdict.citations)
        is_one = target.documents in ((), each.documents)
        return verdict.verdict == "supported" and not is_quoted and not is_one

    def is_right(self, target: CitedTarget) -> bool | None:
        """Tell whether a citation helps any claim; `None` if that could not be checked."""
        citing = [each for each in self.claims if target in each.cited and target.documents]
        alone = [self.verdicts.get((each.claim.id, target.documents)) for each in citing]
        labels = {(a or self.verdict(c)).verdict for a, c in zip(alone, citing, strict=True)}
        return True if "supported" in labels else None if "unchecked" in labels else False


def _details_and_comment(
    found: _CitationVerdicts, targets: Iterable[CitedTarget]
) -> tuple[dict[str, Any], str]:
    """Write the details and the comment of a score."""
    claims = [
        {
            "text": each.claim.text,
            "cites": [target.target for target in each.cited],
            "documents": list(each.documents),
            "verdict": found.verdict(each).verdict,
        }
        for each in found.claims
    ]
    # Citations of sentences that claim nothing do not count, unless the document is missing.
    used = {target for each in found.claims for target in each.cited}
    citations = [
        {
            "target": target.target,
            "sentence": target.sentence,
            "documents": list(target.documents),
            "right": found.is_right(target),
        }
        for target in targets
        if target in used or not target.documents
    ]
    missing = list(dict.fromkeys(each["target"] for each in citations if not each["documents"]))
    labels = [each["verdict"] for each in claims if each["documents"]]
    right, supported = [each["right"] for each in citations], labels.count("supported")
    is_judged = claims and "unchecked" not in labels
    details = {
        "correctness": None if not right or None in right else right.count(True) / len(right),
        "completeness": supported / len(claims) if is_judged else None,
        "claims": claims,
        "citations": citations,
        "missing": missing,
        "uncited": [each["text"] for each in claims if not each["cites"]],
    }
    comments = [
        f"{count_of(right.count(True), len(right), 'citation')} right",
        f"{count_of(supported, len(claims), 'claim')} supported by what they cite",
        f"missing documents: {', '.join(map(str, missing))}" if missing else "",
    ]
    return details, "; ".join(filter(None, comments))


_JOINED = re.compile(r"[\s,;.]*")


class _PlacedMark(NamedTuple):
    """What a mark cites, where it stands, and the first mark it is joined with."""

    sentence: int
    start: int
    cluster: int
    targets: tuple[CitedTarget, ...]


def _citing_claims(
    claims: Sequence[Claim], placed: Sequence[_PlacedMark], sentences: Sequence[Sentence]
) -> list[CitingClaim]:
    """Find what each claim cites."""
    # A mark belongs to the sentence that contains or precedes it; at the start of a line, to the
    # one that follows. A claim cites the marks inside its span and those directly after it, if no
    # other claim lies between; else all marks of its sentence.
    starts = [claim.start for claim in claims if claim.start is not None]
    found = []
    for claim in claims:
        own = [each for each in placed if each.sentence == _sentence_of(claim, sentences)]
        targets = (target for each in _cited(claim, own, starts) for target in each.targets)
        # A citation leaves a space before the end of its sentence.
        closed_up = claim.model_copy(update={"text": _GAP.sub(r"\1", claim.text)})
        found.append(CitingClaim(closed_up, tuple(dict.fromkeys(targets))))
    return found


def _cited(claim: Claim, marks: list[_PlacedMark], starts: list[int]) -> list[_PlacedMark]:
    if claim.start is None or claim.end is None:
        return marks
    start, end = claim.start, claim.end
    inside = [each for each in marks if start <= each.start < end]
    after = [each for each in marks if each.start >= end]
    if after and not any(end <= other < after[0].start for other in starts):
        inside += [each for each in after if each.cluster == after[0].cluster]
    return inside or marks


def _placed_marks(
    answer: str,
    marks: Sequence[CitationMark],
    blank: str,
    sentences: Sequence[Sentence],
    index: DocumentIndex,
) -> list[_PlacedMark]:
    placed: list[_PlacedMark] = []
    for number, mark in enumerate(marks if sentences else ()):
        if number and _JOINED.fullmatch(answer, marks[number - 1].end, mark.start):
            sentence, cluster = placed[-1].sentence, placed[-1].cluster
        else:
            sentence, cluster = _sentence_at(blank, mark, sentences), number
        targets = tuple(CitedTarget(sentence, each, index.find(each)) for each in mark.targets)
        placed.append(_PlacedMark(sentence, mark.start, cluster, targets))
    return placed


def _sentence_at(text: str, mark: CitationMark, sentences: Sequence[Sentence]) -> int:
    """Find the sentence of a mark: the last that starts before it, unless it leads the next."""
    following = bisect_left(sentences, mark.end, key=lambda each: each.start)
    if following in (0, len(sentences)):
        return max(0, following - 1)
    line = text.rfind("\n", 0, mark.start) + 1
    leads = not any(map(str.isalnum, text[line : mark.start]))
    inside = sentences[following - 1].end > mark.start
    same_line = "\n" not in text[mark.end : sentences[following].start]
    return following if leads and same_line and not inside else following - 1


def _sentence_of(claim: Claim, sentences: Sequence[Sentence]) -> int:
    if claim.start is not None and claim.end is not None:
        middle = (claim.start + claim.end) / 2
        return max(0, bisect_right(sentences, middle, key=lambda each: each.start) - 1)
    return most_similar(claim.text, (sentence.text for sentence in sentences))
