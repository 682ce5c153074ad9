"""Batched verification: several claims in one call, the reply one short line per claim."""

import re
from collections.abc import Iterable, Sequence
from json import JSONDecodeError
from traceback import walk_tb
from typing import Literal, NamedTuple, TypeAlias

from langchain_core.documents import Document

from langchain_groundedness._runtime.flow import Flow, ModelCall
from langchain_groundedness._runtime.telemetry import caught
from langchain_groundedness._runtime.timeouts import RetryBudget
from langchain_groundedness.evidence.packing import passage_sentences, shares_content_word
from langchain_groundedness.exceptions import GroundednessError, OutputParsingError, details
from langchain_groundedness.llm.prompts import VerdictLines, fence, fold_space, question_part
from langchain_groundedness.llm.structured import ModelRefusedError, StructuredModel
from langchain_groundedness.types import (
    Citation,
    Claim,
    ClaimVerdict,
    EvidenceBatch,
    VerificationTask,
)

__all__ = [
    "Label",
    "NumberedEvidence",
    "VerdictLine",
    "judge_together",
    "labels_in",
    "read_lines",
    "read_text",
    "read_verdicts",
    "why_no_verdict",
    "why_unchecked",
]


def judge_together(
    task: VerificationTask,
    evidence: "NumberedEvidence",
    ask: StructuredModel[VerdictLines],
    verifier: str,
    budget: RetryBudget,
) -> Flow[list[ClaimVerdict]]:
    """Judge the claims of a task against one evidence batch.

    What is missing in the reply is asked for again, then claim by claim.
    """
    verdicts: dict[str, ClaimVerdict] = {}
    reasons = {claim.id: _LEFT_OUT for claim in task.claims}
    asked_alone: set[str] = set()
    for group in _rounds(task.claims, verdicts):
        values = {
            "evidence": evidence.shown,
            "question": question_part(task.question),
            "claims": fence("claims", _numbered(group)),
        }
        if group is not task.claims and not budget.take():
            reasons |= {
                claim: f"{reason}; {_NO_CALL_LEFT}"
                for claim, reason in reasons.items()
                if claim not in asked_alone
            }
            break
        try:
            reply = yield ModelCall(ask, values, options={"budget": budget})
        except Exception as exc:  # noqa: BLE001  (a provider may fail in any way)
            reason = why_unchecked(caught(exc))
            if isinstance(exc, ModelRefusedError) or not isinstance(exc, OutputParsingError):
                reasons |= dict.fromkeys(reasons.keys() - asked_alone, reason)
                break
            reasons |= {claim.id: reason for claim in group}
            # Small models leave out the number when there is only one claim to judge. Only the
            # first line can be a verdict then: a further one may be the end of a sentence.
            first = [f"C1: {line}" for line in exc.raw.splitlines()[:1] if len(group) == 1]
            read = read_verdicts(first)
        else:
            read = read_verdicts(reply.lines)
            for number, claim in enumerate(group, 1):
                reasons[claim.id] = _TWO_VERDICTS if number in read.undecided else _LEFT_OUT
        asked_alone |= {claim.id for claim in group if len(group) == 1}
        for number, line in read.decided.items():
            if 1 <= number <= len(group):
                claim = group[number - 1]
                verdicts[claim.id] = evidence.verdict(claim, line, task.documents, verifier)
    return [
        verdicts.get(claim.id)
        or ClaimVerdict.unchecked(claim, reasons[claim.id], verifier=verifier)
        for claim in task.claims
    ]


_LEFT_OUT = "the judge gave no verdict: its reply leaves the claim out"

_TWO_VERDICTS = "the judge gave no verdict: its reply has two different ones for the claim"

_NO_CALL_LEFT = "no call was left to ask again (retry_budget=)"


def _rounds(
    claims: Sequence[Claim], verdicts: dict[str, ClaimVerdict]
) -> Iterable[Sequence[Claim]]:
    """Give the groups to ask about: all, those still missing, then each one still missing."""
    yield claims
    missing = [claim for claim in claims if claim.id not in verdicts]
    if missing and (len(missing) < len(claims) or len(claims) == 1):
        yield missing
    if len(claims) > 1:
        for claim in missing:
            if claim.id not in verdicts:
                yield [claim]


def _numbered(claims: Iterable[Claim]) -> str:
    return "\n".join(f"C{number}: {fold_space(c.text)}" for number, c in enumerate(claims, 1))


def why_unchecked(exc: Exception) -> str:
    """Say why a claim could not be checked, without a word of what was sent or replied."""
    if isinstance(exc, GroundednessError):
        return str(exc)
    unread = _UNREAD if isinstance(exc, _OF_READING) and _of_the_client(exc) else ""
    more = "; ".join(filter(None, (details(exc), unread)))
    return f"{type(exc).__name__} from the judge{f' ({more})' if more else ''}"


_OF_READING = (AttributeError, JSONDecodeError, LookupError)

_CLIENTS = ("json.", "langchain_core.language_models", "langchain_openai.", "openai.")

_UNREAD = "was the response a chat completion? check the URL of the server"


def _of_the_client(exc: Exception) -> bool:
    """Tell whether an error was raised where a client reads a response."""
    modules = [str(frame.f_globals.get("__name__")) for frame, _ in walk_tb(exc.__traceback__)]
    return modules[-1:] != [] and modules[-1].startswith(_CLIENTS)


class _Sentence(NamedTuple):
    passage: int
    document: int
    start: int
    end: int
    text: str


Label: TypeAlias = Literal["supported", "contradicted", "unverifiable"]


class VerdictLine(NamedTuple):
    """One line of a reply, before it is checked against the evidence."""

    claim: int
    """Number of the claim, as it was shown."""
    label: Label
    sentences: tuple[int, ...] = ()
    """Numbers of evidence sentences, as the model named them."""
    correction: str | None = None
    reason: str = ""


class NumberedEvidence(NamedTuple):
    """The sentences of an evidence batch, numbered from 1 as the judge sees them."""

    sentences: tuple[_Sentence, ...]
    shown: str
    """One per line, a blank line between passages, all fenced. A bare number is one token for
    each sentence; brackets would be three."""

    @classmethod
    def of(cls, batch: EvidenceBatch) -> "NumberedEvidence":
        """Number the sentences of a batch."""
        sentences = tuple(
            _Sentence(place, sentence.document, sentence.start, sentence.end, sentence.text)
            for place, passage in enumerate(batch.passages)
            for sentence in passage_sentences(passage)
        )
        return cls(sentences, fence("evidence", _text(sentences)))

    def verdict(
        self, claim: Claim, line: VerdictLine, documents: Sequence[Document], verifier: str
    ) -> ClaimVerdict:
        """Turn a line of the judge's reply into a verdict, as far as the evidence backs it."""
        if line.label == "unverifiable":
            return ClaimVerdict(
                claim=claim, verdict=line.label, explanation=line.reason, verifier=verifier
            )
        citations = self._citations(claim, line.sentences, documents)
        return ClaimVerdict(
            claim=claim,
            verdict=line.label,
            explanation=line.reason,
            citations=citations,
            correction=line.correction if citations else None,
            verifier=verifier,
        )

    def _citations(
        self, claim: Claim, numbers: Iterable[int], documents: Sequence[Document]
    ) -> tuple[Citation, ...]:
        named = sorted(n for n in set(numbers) if 1 <= n <= len(self.sentences))
        telling = [n for n in named if shares_content_word(claim.text, self.sentences[n - 1].text)]
        spans: list[_Sentence] = []
        previous = -1
        for number in telling:
            sentence = self.sentences[number - 1]
            if number == previous + 1 and sentence.passage == spans[-1].passage:
                spans[-1] = spans[-1]._replace(end=sentence.end)
            else:
                spans.append(sentence)
            previous = number
        return tuple(Citation.from_document(documents, s.document, s.start, s.end) for s in spans)


def _text(sentences: Sequence[_Sentence]) -> str:
    lines: list[str] = []
    for number, sentence in enumerate(sentences, 1):
        if lines and sentence.passage != sentences[number - 2].passage:
            lines.append("")
        lines.append(f"{number} {fold_space(sentence.text)}")
    return "\n".join(lines)


_LABELS: dict[str, Label] = {
    "not supported": "unverifiable",
    "not contradicted": "unverifiable",
    "supported": "supported",
    "contradicted": "contradicted",
    "refuted": "contradicted",
    "unverifiable": "unverifiable",
    "unsupported": "unverifiable",
    "unknown": "unverifiable",
}

_LINE = re.compile(
    r"[^\w\[]*(?:claim\s*|sentence\s*|c|s)?(\d{1,4})\b\W*?[\s:.)]\s*(.*)", re.IGNORECASE | re.DOTALL
)

_LABEL = rf"(?<![^\W_])({'|'.join(_LABELS)})(?![^\W_])"

_MARKS = r"[\s*_`'\".,;:()&\[\]{}=>\u2013\u2014\u2192\u2705\u2713\u2714-]"

_NAMED = rf"(?:{_MARKS}|\b(?:verdict|sentences?|evidence|by|in|and)\b|(?<!\d)\d{{1,9}}(?!\d))*"

_HEAD = re.compile(rf"({_NAMED}){_LABEL}({_NAMED})", re.IGNORECASE)

_ANY_LABEL = re.compile(_LABEL, re.IGNORECASE)

_NUMBERS = re.compile(r"(\d+)\s*[-\u2013]\s*(\d+)|(\d+)")

_NOTHING = frozenset({"", "-", "\u2013", "none", "n/a", "unknown"})

_LONGEST_RANGE = 20

_LONGEST_VALUE = 6


class ReadVerdicts(NamedTuple):
    """What the lines of a reply say."""

    decided: dict[int, VerdictLine]
    """By number of the claim."""
    undecided: set[int]
    """Numbers of claims that got two different labels."""


def read_text(text: str) -> VerdictLines | None:
    """Read a plain reply."""
    lines = [line for line in text.splitlines() if _read(line) is not None]
    return VerdictLines(lines=lines) if lines else None


def read_lines(lines: Iterable[str]) -> dict[int, VerdictLine]:
    """Read the lines of a reply."""
    return read_verdicts(lines).decided


def read_verdicts(lines: Iterable[str]) -> ReadVerdicts:
    """Read the lines of a reply, and find what they leave undecided."""
    found: dict[int, VerdictLine] = {}
    undecided: set[int] = set()
    for line in lines:
        verdict = _read(line)
        if verdict is None:
            continue
        if found.setdefault(verdict.claim, verdict).label != verdict.label:
            undecided.add(verdict.claim)
    decided = {number: line for number, line in found.items() if number not in undecided}
    return ReadVerdicts(decided, undecided)


def why_no_verdict(lines: Iterable[str]) -> str | None:
    """Say why there is no verdict in a reply."""
    decided, undecided = read_verdicts(lines)
    if decided:
        return None
    return f"it has {'two different verdicts for a claim' if undecided else 'no verdict'}"


def labels_in(text: str) -> set[Label]:
    """Find the labels that a text names."""
    return {_LABELS[each.lower()] for each in _ANY_LABEL.findall(text)}


def _read(line: str) -> VerdictLine | None:
    numbered = _LINE.fullmatch(line.strip())
    if numbered is None:
        return None
    head, *notes = (part.strip() for part in numbered[2].split("|"))
    found = _HEAD.match(head)
    if found is None or len(labels_in(head)) != 1:
        return None
    label = _LABELS[found[2].lower()]
    if rest := head[found.end() :]:
        # What goes on behind it may take support or contradiction back.
        if label != "unverifiable":
            return None
        notes = [head[found.end(2) :].lstrip(" -:;,.\u2013\u2014"), *notes]
    sentences = _numbers(found[1]) or (() if rest else _numbers(found[3]))
    correction, reason = _notes(label, notes)
    return VerdictLine(int(numbered[1]), label, sentences, correction, reason)


def _numbers(text: str) -> tuple[int, ...]:
    numbers: list[int] = []
    for first, last, single in _NUMBERS.findall(text):
        if single:
            numbers.append(int(single))
        elif 0 <= int(last) - int(first) <= _LONGEST_RANGE:
            numbers.extend(range(int(first), int(last) + 1))
        else:
            numbers.extend((int(first), int(last)))
    return tuple(dict.fromkeys(numbers))


def _notes(label: Label, notes: list[str]) -> tuple[str | None, str]:
    said = [note for note in notes if note.lower() not in _NOTHING]
    if label == "contradicted" and said:
        value = said[0]
        if len(notes) > 1 and notes[0] == value:
            return value, " ".join(said[1:])
        if len(notes) == 1 and len(value.split()) <= _LONGEST_VALUE:
            return value, ""
    return None, " ".join(said)
