"""Calls to a judge; one of `batched` has several claims, and its reply has one line per claim."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from json import JSONDecodeError
from traceback import walk_tb
from typing import Any, NamedTuple

from langchain_core.documents import Document

from langchain_groundedness._runtime.flow import Flow, ModelCall
from langchain_groundedness._runtime.telemetry import record_error
from langchain_groundedness._runtime.timeouts import RetryBudget
from langchain_groundedness.evidence.packing import passage_sentences, shares_content_word
from langchain_groundedness.exceptions import GroundednessError, OutputParsingError, details
from langchain_groundedness.llm.prompts import (
    VerdictLines,
    fence,
    on_one_line,
    question_part,
    reply_tag,
    with_tag,
)
from langchain_groundedness.llm.structured import ModelRefusedError, StructuredModel
from langchain_groundedness.types import (
    Citation,
    Claim,
    ClaimVerdict,
    EvidenceBatch,
    VerificationTask,
)
from langchain_groundedness.verification.verdict_replies import ReplyReader, VerdictLine

__all__ = ["JudgeCall", "NumberedEvidence", "judge_together", "why_unchecked"]


class JudgeCall(NamedTuple):
    """Some claims, to be judged against one evidence batch."""

    task: VerificationTask
    evidence: Any
    """As the strategy shows it: `NumberedEvidence` or `PlainEvidence`."""
    verifier: str
    budget: RetryBudget

    def verdict(self, claim: Claim, line: VerdictLine) -> ClaimVerdict:
        """Turn a line of the judge's reply into a verdict, as far as the evidence backs it."""
        found: ClaimVerdict = self.evidence.verdict(claim, line, self.task.documents, self.verifier)
        return found

    def unchecked(self, claim: Claim, reason: str) -> ClaimVerdict:
        """Leave a claim unchecked."""
        return ClaimVerdict.unchecked(claim, reason, verifier=self.verifier)


PlainQuestions = Callable[[JudgeCall, Claim, str], Flow[ClaimVerdict | None]]
"""Asks about one claim, after a reply without a line that can be read."""


def judge_together(
    call: JudgeCall, ask: StructuredModel[VerdictLines], ask_plainly: PlainQuestions | None
) -> Flow[list[ClaimVerdict]]:
    """Judge the claims of a call; the reply has one line for each.

    What is missing in the reply is asked for again, then claim by claim; in plain questions, if it
    turns out that the model does not know the form.
    """
    claims, budget = call.task.claims, call.budget
    verdicts: dict[str, ClaimVerdict] = {}
    reasons = {claim.id: _no_verdict(_LEFT_OUT) for claim in claims}
    wrong: dict[str, str] = {}
    asked_alone: set[str] = set()
    last_reply = ""
    for group in _rounds(claims, verdicts):
        if group is not claims and not budget.take():
            _add_no_call_left(reasons, reasons.keys() - asked_alone)
            break
        values, read = _request(call, group, wrong)
        try:
            reply = yield ModelCall(ask, values, options={"budget": budget, "read": read})
        except Exception as exc:  # noqa: BLE001  (a provider may fail in any way)
            reason = why_unchecked(record_error(exc))
            if isinstance(exc, ModelRefusedError) or not isinstance(exc, OutputParsingError):
                reasons |= dict.fromkeys(reasons.keys() - asked_alone, reason)
                break
            reasons |= {claim.id: reason for claim in group}
            last_reply = exc.raw
        else:
            for number, claim in enumerate(group, 1):
                if line := reply.decided.get(number):
                    verdicts[claim.id] = call.verdict(claim, line)
                else:
                    wrong[claim.id] = reply.undecided.get(number, _LEFT_OUT)
                    reasons[claim.id] = _no_verdict(wrong[claim.id])
        asked_alone |= {claim.id for claim in group if len(group) == 1}
        if ask_plainly and not verdicts and group is not claims and len(group) == 1:
            verdicts = yield from _plain_verdicts(call, ask_plainly, last_reply, reasons)
            break
    return [verdicts.get(c.id) or call.unchecked(c, reasons[c.id]) for c in claims]


def _plain_verdicts(
    call: JudgeCall, ask: PlainQuestions, last_reply: str, reasons: dict[str, str]
) -> Flow[dict[str, ClaimVerdict]]:
    """Ask about claims in plain questions; note if no call is left for those without a verdict."""
    verdicts: dict[str, ClaimVerdict] = {}
    for place, claim in enumerate(call.task.claims):
        if place == _MAX_UNANSWERED and not verdicts:
            break
        if not call.budget.take():
            _add_no_call_left(reasons, reasons)
            break
        try:
            verdict = yield from ask(call, claim, last_reply)
        except Exception as exc:  # noqa: BLE001  (a provider may fail in any way)
            record_error(exc)
            break
        if verdict:
            verdicts[claim.id] = verdict
    return verdicts


_MAX_UNANSWERED = 2
"""Number of claims after which a judge that has answered no plain question is asked no more."""


def _request(
    call: JudgeCall, group: Sequence[Claim], wrong: Mapping[str, str]
) -> tuple[dict[str, str], ReplyReader]:
    """Fill in the variables of the prompt, and build the reader of the reply."""
    shown = call.evidence.shown
    numbered = "\n".join(f"C{number}: {on_one_line(c.text)}" for number, c in enumerate(group, 1))
    question, claims = question_part(call.task.question), fence("claims", numbered)
    tag = reply_tag(shown, question, claims)
    problems = sorted({wrong[claim.id] for claim in group if claim.id in wrong})
    tagged = with_tag(claims, tag, wrong=", ".join(problems))
    values = {"evidence": shown, "question": question, "claims": tagged}
    return values, ReplyReader(tag, len(group), len(call.evidence.sentences))


_LEFT_OUT = "leaves the claim out"


def _no_verdict(why: str) -> str:
    return f"the judge gave no verdict: its reply {why}"


def _add_no_call_left(reasons: dict[str, str], claims: Iterable[str]) -> None:
    for claim in claims:
        reasons[claim] += "; no call was left to ask again (retry_budget=)"


def _rounds(
    claims: Sequence[Claim], verdicts: dict[str, ClaimVerdict]
) -> Iterable[Sequence[Claim]]:
    """Yield the groups to ask about: all, those still missing, then each one still missing."""
    yield claims
    missing = [claim for claim in claims if claim.id not in verdicts]
    if missing and (len(missing) < len(claims) or len(claims) == 1):
        yield missing
    if len(claims) > 1:
        for claim in missing:
            if claim.id not in verdicts:
                yield [claim]


def why_unchecked(exc: Exception) -> str:
    """Return why a claim could not be checked, without a word of what was sent or replied."""
    if isinstance(exc, GroundednessError):
        return str(exc)
    unread = _CHECK_THE_URL if isinstance(exc, _READING_ERRORS) and _of_the_client(exc) else ""
    more = "; ".join(filter(None, (details(exc), unread)))
    return f"{type(exc).__name__} from the judge{f' ({more})' if more else ''}"


_READING_ERRORS = (AttributeError, JSONDecodeError, LookupError)

_CLIENTS = ("json.", "langchain_core.language_models", "langchain_openai.", "openai.")

_CHECK_THE_URL = "was the response a chat completion? check the URL of the server"


def _of_the_client(exc: Exception) -> bool:
    """Return whether an error was raised where a client reads a response."""
    modules = [str(frame.f_globals.get("__name__")) for frame, _ in walk_tb(exc.__traceback__)]
    return modules[-1:] != [] and modules[-1].startswith(_CLIENTS)


_NUMBERS = re.compile(r"[\s\[]*[0-9]{1,6}\]?(?:,?\s+\[?[0-9]{1,6}\]?){0,20}[\s.]*")


class _NumberedSentence(NamedTuple):
    block: int
    """Its block: sentences of one block have no heading between them."""
    document: int
    start: int
    end: int
    text: str


class NumberedEvidence(NamedTuple):
    """The sentences of an evidence batch, numbered from 1 as the judge sees them."""

    sentences: tuple[_NumberedSentence, ...]
    shown: str
    """One per line, a blank line between passages, all fenced. A bare number is one token for
    each sentence; brackets would be three. Headings have no number, so they cannot be cited."""

    @classmethod
    def of(cls, batch: EvidenceBatch) -> "NumberedEvidence":
        """Number the sentences of a batch."""
        sentences: list[_NumberedSentence] = []
        lines: list[str] = []
        block = 0
        for passage in batch.passages:
            lines += [""] if lines else []
            lines += [_unnumbered(passage.heading)] if passage.heading else []
            block += 1
            for part, is_structure in passage_sentences(passage):
                if is_structure:
                    lines.append(_unnumbered(part.text))
                    block += 1
                    continue
                where = (part.document, part.start, part.end)
                sentences.append(_NumberedSentence(block, *where, part.text))
                lines.append(f"{len(sentences)} {on_one_line(part.text)}")
        return cls(tuple(sentences), fence("evidence", "\n".join(lines)))

    def verdict(
        self, claim: Claim, line: VerdictLine, documents: Sequence[Document], verifier: str
    ) -> ClaimVerdict:
        """Turn a line of the judge's reply into a verdict, as far as the evidence backs it."""
        is_decided = line.label != "unverifiable"
        citations = self._citations(claim, line.sentences, documents) if is_decided else ()
        return ClaimVerdict(
            claim=claim,
            verdict=line.label,
            explanation=line.reason,
            citations=citations,
            correction=line.correction if citations else None,
            verifier=verifier,
        )

    def named(self, reply: str) -> tuple[int, ...]:
        """Read a reply of sentence numbers and nothing else; any other reply names none."""
        numbers = tuple(map(int, re.findall("[0-9]+", reply))) if _NUMBERS.fullmatch(reply) else ()
        return numbers if all(1 <= n <= len(self.sentences) for n in numbers) else ()

    def _citations(
        self, claim: Claim, numbers: Iterable[int], documents: Sequence[Document]
    ) -> tuple[Citation, ...]:
        spans: list[_NumberedSentence] = []
        previous = -1
        for number in sorted(set(numbers)):
            sentence = self.sentences[number - 1]
            if not shares_content_word(claim.text, sentence.text):
                continue
            if number == previous + 1 and sentence.block == spans[-1].block:
                spans[-1] = spans[-1]._replace(end=sentence.end)
            else:
                spans.append(sentence)
            previous = number
        return tuple(Citation.from_document(documents, s.document, s.start, s.end) for s in spans)


def _unnumbered(heading: str) -> str:
    """Show a heading so that it does not look like a numbered sentence."""
    shown = on_one_line(heading)
    return f"# {shown}" if shown[:1].isalnum() else shown
