"""From the verdicts on an answer to a decision, with its reasons in words."""

import re
from collections.abc import Sequence

from langchain_core.load.serializable import Serializable
from pydantic import ConfigDict

from langchain_groundedness._checkable import declines, only_asks, without_interjection
from langchain_groundedness._options import CheckedOptions
from langchain_groundedness._statements import sentence_claims
from langchain_groundedness.types import Action, ClaimVerdict, Decision

__all__ = ["DecisionPolicy"]

_TITLE = re.compile(r"(?m)^ {0,3}(?:#{1,6} |\*\*)[^\s\d]{1,20}(?: [^\s\d]{1,20})?$")
_SEVERITY: tuple[Action, ...] = ("pass", "flag", "review", "block")


class DecisionPolicy(CheckedOptions, Serializable):
    """Which action each finding about an answer leads to; the most severe one wins.

    Severity rises from `pass` over `flag` and `review` to `block`. The defaults block nothing,
    and let nothing pass that was not checked.

    Example:
        >>> DecisionPolicy(contradicted="block").decide(
        ...     [], answer="I don't know.", trust_score=None
        ... )
        Decision(action='pass', reasons=('the answer makes no checkable claim',))
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    contradicted: Action = "flag"
    """The documents contradict a claim."""
    untrusted: Action = "flag"
    """The share of supported claims is below the trust threshold."""
    conflicting: Action = "flag"
    """Some evidence supports a claim and some contradicts it."""
    unchecked: Action = "review"
    """A claim could not be checked."""
    no_claims: Action = "pass"
    """The answer says nothing that can be checked: it is a refusal, courtesy, or both."""
    nothing_checkable: Action = "review"
    """The answer has text in which no claim was found, and it is not known to say nothing: code, a
    question, an emoji, or statements that the extractor left out."""
    empty_answer: Action = "flag"
    """There is no answer at all."""

    @classmethod
    def is_lc_serializable(cls) -> bool:
        """Tell LangChain that this can be saved with `dumpd`."""
        return True

    def decide(
        self,
        verdicts: Sequence[ClaimVerdict],
        *,
        answer: str,
        trust_score: float | None,
        trust_threshold: float = 1.0,
    ) -> Decision:
        """Decide on one answer.

        Args:
            verdicts: One per claim.
            answer: The answer as it came.
            trust_score: Share of the checked claims that are supported, or `None`.
            trust_threshold: Least share that is enough, 0 to 1.

        Returns:
            The most severe action that any finding asks for, with every reason.
        """
        findings = self._findings(verdicts, answer, trust_score, trust_threshold)
        action = max((action for action, _ in findings), key=_SEVERITY.index, default="pass")
        reasons = tuple(reason for _, reason in findings)
        return Decision(action=action, reasons=reasons or ("every claim is supported",))

    def is_trusted(
        self,
        verdicts: Sequence[ClaimVerdict],
        *,
        answer: str,
        trust_score: float | None,
        trust_threshold: float = 1.0,
    ) -> bool:
        """Tell whether an answer can be shown as it is.

        Args:
            verdicts: One per claim.
            answer: The answer as it came.
            trust_score: Share of the checked claims that are supported, or `None`.
            trust_threshold: Least share that is enough, 0 to 1.

        Returns:
            True if nothing is contradicted, nothing unchecked and the score reaches the
            threshold. Without any claim the policy has the word: true if it lets an answer of
            that kind pass, which by default it does for refusals and courtesy only.
        """
        if not verdicts:
            return self._without_claims(answer)[0] == "pass"
        if any(v.verdict in ("contradicted", "unchecked") for v in verdicts):
            return False
        return trust_score is not None and trust_score >= trust_threshold

    def _findings(
        self,
        verdicts: Sequence[ClaimVerdict],
        answer: str,
        trust_score: float | None,
        trust_threshold: float,
    ) -> list[tuple[Action, str]]:
        if not verdicts:
            return [self._without_claims(answer)]
        total = len(verdicts)
        contradicted = sum(v.verdict == "contradicted" for v in verdicts)
        conflicting = sum(v.conflicting for v in verdicts)
        unchecked = [v for v in verdicts if v.verdict == "unchecked"]
        findings: list[tuple[Action, str]] = []
        if contradicted:
            findings.append(
                (self.contradicted, f"the documents contradict {contradicted} of {total} claims")
            )
        if trust_score is not None and trust_score < trust_threshold:
            why = f"trust score {trust_score:.2f} is below the threshold {trust_threshold:.2f}"
            findings.append((self.untrusted, why))
        if conflicting:
            why = f"the documents disagree with each other on {conflicting} of {total} claims"
            findings.append((self.conflicting, why))
        if unchecked:
            causes = ", ".join(sorted({v.reason or "" for v in unchecked}))
            why = f"{len(unchecked)} of {total} claims could not be checked: {causes}"
            findings.append((self.unchecked, why))
        return findings

    def _without_claims(self, answer: str) -> tuple[Action, str]:
        if not answer.strip():
            return self.empty_answer, "the answer is empty"
        if _says_nothing(answer):
            return self.no_claims, "the answer makes no checkable claim"
        why = "no claim was found in the answer, which is neither a refusal nor courtesy"
        return self.nothing_checkable, why


def _says_nothing(answer: str) -> bool:
    """Tell whether an answer is nothing but refusals, questions and courtesy, under any title."""
    sentences = sentence_claims(answer, only_checkable=False)
    texts = [without_interjection(sentence.text) for sentence in sentences]
    if not all(declines(text) or only_asks(text) for text in texts):
        return False
    spans = [(sentence.start or 0, sentence.end or 0) for sentence in sentences]
    between = zip(
        [0, *(end for _, end in spans)], [*(s for s, _ in spans), len(answer)], strict=True
    )
    rest = "\n".join(answer[start:end] for start, end in between)
    untitled = _TITLE.sub("", rest)
    return bool(sentences) and not any(map(str.isalnum, untitled))
