"""A script for `ScriptedServer` that judges rightly what is known beforehand."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from langchain_groundedness.exceptions import ConfigurationError
from langchain_groundedness.testing.server import ScriptedRequest
from langchain_groundedness.types import VerdictLabel

__all__ = ["HonestJudge", "KnownClaim"]

_FENCED = re.compile(r"<(\w+) ([a-z]{10})>\n(.*?)\n</\1 \2>", re.DOTALL)
_JUDGED = ("supported", "contradicted", "unverifiable")
_WORDS: Mapping[str, str] = {"supported": "yes", "contradicted": "no"}


class KnownClaim(NamedTuple):
    """What is right about a claim."""

    verdict: VerdictLabel
    evidence: str = ""
    """The sentence of a document that decides it, as it stands there. Only a judge that is asked
    claim by claim needs none: without, a claim is unverifiable to all others."""
    value: str = ""
    """The right value, if the claim is contradicted."""


class HonestJudge:
    """Answers the prompts of this package as a model would that makes no mistakes.

    It reads what the prompts for extraction, verification (both strategies), the two in a single
    pass, and correction show between their fences, and writes the lines that they ask for, inside
    a schema or plainly. A claim that it does not know is unverifiable to it, and so is one whose
    evidence is not shown.

    Example:
        >>> known = {"Rome is in Italy.": KnownClaim("supported", "Rome lies in Italy.")}
        >>> with ScriptedServer(HonestJudge(known)) as server:  # doctest: +SKIP
        ...     model = ChatOpenAI(base_url=server.base_url, api_key="none")
        ...     GroundednessRunnable(model=model).invoke(("Rome is in Italy.", documents)).verdict
        'grounded'
    """

    def __init__(
        self, claims: Mapping[str, KnownClaim], rewritten: Mapping[str, str] | None = None
    ) -> None:
        """Say what is right.

        Args:
            claims: What is right about each claim, by its text.
            rewritten: Sentences of answers that need their context, and the claim that each makes.

        Raises:
            ConfigurationError: What is right about a claim is no `KnownClaim` with a verdict that
                a judge gives.
        """
        for text, known in claims.items():
            _refuse_unknown(text, known)
        self._claims = dict(claims)
        self._rewritten = dict(rewritten or {})

    def __call__(self, request: ScriptedRequest) -> str:
        """Answer a request.

        Args:
            request: The request, with a prompt of this package.

        Returns:
            The reply, in the form that the request asks for.
        """
        shown = {kind: text for kind, _, text in _FENCED.findall(request.text)}
        if "statement" in shown:
            return _WORDS.get(self._known(shown["statement"]).verdict, "unknown")
        if "claims" in shown:
            lines = list(self._verdicts(shown["claims"], shown.get("evidence", "")))
        elif "statements" in shown:
            lines = list(self._corrections(shown["statements"]))
        elif "evidence" in shown:
            lines = list(self._judged(shown.get("answer", ""), shown["evidence"]))
        else:
            lines = list(self._rewritings(shown.get("answer", "")))
        if request.form == "text":
            return "\n".join(lines) or "none"
        return json.dumps({"lines": lines})

    def _known(self, claim: str) -> KnownClaim:
        return self._claims.get(claim, KnownClaim("unverifiable"))

    def _verdicts(self, claims: str, evidence: str) -> Iterator[str]:
        for number, text in _numbered(r"C(\d+): (.*)", claims):
            yield f"C{number}: {self._verdict(text, evidence, '[{}]')}"

    def _judged(self, answer: str, evidence: str) -> Iterator[str]:
        for number, text in _numbered(r"S(\d+): (.*)", answer):
            claim = self._rewritten.get(text, text)
            statement = f" ({claim})" if claim != text else ""
            yield f"S{number}{statement}: {self._verdict(claim, evidence, '{}')}"

    def _verdict(self, claim: str, evidence: str, form: str) -> str:
        numbers = {text: number for number, text in _numbered(r"(\d+) (.*)", evidence)}
        known = self._known(claim)
        place = numbers.get(known.evidence)
        if place is None or known.verdict == "unverifiable":
            return "unverifiable | nothing is said about it"
        if known.verdict == "supported":
            return f"{form.format(place)} supported"
        return f"{form.format(place)} contradicted | {known.value} | it says otherwise"

    def _corrections(self, statements: str) -> Iterator[str]:
        for number, text in _numbered(r"(\d+): (.*)", statements):
            if evidence := self._known(text).evidence:
                yield f"{number}: {evidence}"

    def _rewritings(self, answer: str) -> Iterator[str]:
        for number, text in _numbered(r"(\d+): (.*)", answer):
            if text in self._rewritten:
                yield f"{number}: {self._rewritten[text]}"


def _refuse_unknown(text: str, known: object) -> None:
    if not isinstance(known, KnownClaim):
        msg = f"{text!r} is known by {known!r}; give a KnownClaim, as KnownClaim('supported', ...)"
    elif known.verdict not in _JUDGED:
        msg = f"{text!r} is known as {known.verdict!r}; a judge says {', '.join(_JUDGED)}"
    else:
        return
    raise ConfigurationError(msg)


def _numbered(form: str, text: str) -> list[tuple[str, str]]:
    return re.findall(f"^{form}$", text, re.MULTILINE)
