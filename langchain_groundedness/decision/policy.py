"""Decision policies: from the verdicts on an answer to an action with reasons.

A policy only decides: `pipeline.release` and `middleware.answer_check` hold text back.
"""

import json
import re
from collections.abc import Iterator, Sequence
from functools import reduce
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, Self, TypeAlias, get_args

import yaml
from langchain_core.load.serializable import Serializable
from pydantic import BeforeValidator, ConfigDict

from langchain_groundedness._runtime.options import CheckedOptions
from langchain_groundedness.claims.checkable import only_addresses_reader, without_interjection
from langchain_groundedness.claims.statements import sentence_claims
from langchain_groundedness.decision.conditions import (
    Conditions,
    DecisionContext,
    Flag,
    PolicyPart,
    Range,
    TruthValue,
    as_tuple,
    holds_for_score,
)
from langchain_groundedness.decision.policy_files import (
    load_from_file,
    load_from_text,
    policy_format,
    write_text,
)
from langchain_groundedness.display.counts import format_count
from langchain_groundedness.exceptions import ConfigurationError
from langchain_groundedness.types import Action, ClaimVerdict, Decision

__all__ = ["DecisionPolicy", "DecisionRule"]

FindingName: TypeAlias = Literal[
    "contradicted",
    "untrusted",
    "conflicting",
    "unchecked",
    "no_claims",
    "nothing_checkable",
    "empty_answer",
]


class DecisionRule(PolicyPart):
    """The action for answers that meet some conditions.

    A rule never overrides anything by itself: its action joins those of the policy's findings, and
    the most severe action wins. For exceptions, use `excuses` or `final`.

    Example:
        >>> rule = DecisionRule(
        ...     when={"risk_tier": "high", "unverifiable": {"at_least": 1}}, action="review"
        ... )
        >>> rule.when.risk_tier
        ('high',)
    """

    when: Conditions
    """The answer must meet all of these."""
    action: Action
    """The action if it does."""
    reason: str | None = None
    """The reason given in the decision; by default, the number of the rule and the conditions that
    the answer meets."""
    excuses: Annotated[tuple[FindingName, ...], BeforeValidator(as_tuple)] = ()
    """Findings (named as the fields of the policy) that are ignored if this rule applies. Nothing
    else overrides a finding."""
    final: Flag = False
    """Whether later rules are skipped if this one applies. Findings still count."""


class DecisionPolicy(CheckedOptions, Serializable):
    """Decides about an answer from its findings and from rules; the most severe action wins.

    The actions, from mild to severe, are `pass`, `flag`, `review` and `block`. The policy always
    looks for seven findings; the field with the name of a finding holds its action. Each rule of
    `rules` whose conditions are met adds its own action. A rule does not override earlier rules or
    findings, even with the action `pass`, unless it sets `final` or `excuses`. The reasons of the
    decision name every finding and every rule that applies, including excused findings and those
    with a milder action.

    The defaults block nothing, and no unchecked answer passes.

    Example:
        >>> rules = [{"when": {"query_class": "sensitive"}, "action": "review"}]
        >>> policy = DecisionPolicy(contradicted="block", rules=rules)
        >>> policy.decide([], answer="I don't know.", trust_score=None, query_class="sensitive")
        ... # doctest: +NORMALIZE_WHITESPACE
        Decision(action='review', reasons=("rule 1: the query class is 'sensitive'",
                                           'the answer makes no checkable claim'))
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    _can_be_saved = True

    contradicted: Action = "flag"
    """The documents contradict a claim."""
    untrusted: Action = "flag"
    """The share of supported claims is below the trust threshold."""
    conflicting: Action = "flag"
    """Some evidence supports a claim and some contradicts it."""
    unchecked: Action = "review"
    """A claim could not be checked."""
    no_claims: Action = "pass"
    """The answer makes no claim: it is a refusal, a courtesy, or both."""
    nothing_checkable: Action = "review"
    """No claim was found in the answer, but it may contain some: code, a question, an emoji, or
    statements that the extractor left out."""
    empty_answer: Action = "flag"
    """There is no answer at all."""
    rules: tuple[DecisionRule, ...] = ()
    """Applied in order, in addition to the findings."""
    at_most: Literal["flag", "review", "block"] = "block"
    """The most severe action that is taken. If a finding or a rule has a more severe one, the
    reasons say so."""

    @classmethod
    def strict(cls) -> Self:
        """Make a policy that lets an answer pass only if every claim in it is supported.

        Returns:
            A policy that blocks answers with contradicted, unverifiable or unchecked claims,
            whatever the trust threshold, and answers in which no claim was found although they may
            contain some. Answers with conflicting evidence go to review. Refusals and courtesies
            pass.
        """
        return cls(
            contradicted="block",
            untrusted="block",
            conflicting="review",
            unchecked="block",
            nothing_checkable="block",
            empty_answer="block",
            rules=[{"when": {"unverifiable": {"at_least": 1}}, "action": "block"}],
        )

    @classmethod
    def balanced(cls) -> Self:
        """Make a policy that blocks what is wrong, and asks a person where the stakes are high.

        Returns:
            A policy that blocks contradicted claims; that sends to review what could not be
            checked, answers with less than half of their claims supported, and all answers to
            questions of the class `sensitive` or the risk tier `high`; and that flags the rest that
            is not supported.
        """
        return cls(
            contradicted="block",
            rules=[
                {"when": {"trust_score": {"below": 0.5}}, "action": "review"},
                {"when": {"query_class": "sensitive"}, "action": "review"},
                {"when": {"risk_tier": "high"}, "action": "review"},
            ],
        )

    @classmethod
    def monitor_only(cls, policy: "DecisionPolicy | None" = None) -> "DecisionPolicy":
        """Make a policy that never blocks and never sends to review, for a trial run.

        Args:
            policy: The policy to try; by default `DecisionPolicy.balanced()`.

        Returns:
            A policy that flags instead; its reasons say what the other would have done.
        """
        if policy is not None and not isinstance(policy, DecisionPolicy):
            msg = (
                f"policy must be a DecisionPolicy, such as DecisionPolicy.strict(), got "
                f"{type(policy).__name__}"
            )
            raise ConfigurationError(msg)
        return (policy or cls.balanced()).model_copy(update={"at_most": "flag"})

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a policy from a file.

        Args:
            path: A file with the suffix `.yaml`, `.yml` or `.json`.

        Returns:
            The policy.

        Raises:
            ConfigurationError: There is no such file, or no policy in it; the message names the
                file, the path in it (such as `rules[2].when.trust_score`), what was given and what
                is accepted.
        """
        return load_from_file(cls, Path(path), form=policy_format(Path(path)))

    @classmethod
    def from_yaml(cls, text: str) -> Self:
        """Read a policy from YAML.

        Args:
            text: A mapping with the fields of this class.

        Returns:
            The policy.

        Raises:
            ConfigurationError: It is not a policy; the message names what is wrong by its path.

        Example:
            >>> policy = DecisionPolicy.from_yaml('''
            ... contradicted: block
            ... rules:
            ...   - when: {query_class: [sensitive, null]}
            ...     action: review
            ...     reason: a person looks at sensitive questions
            ... ''')
            >>> policy.rules[0].when.query_class
            ('sensitive', None)
        """
        return load_from_text(cls, text, form="yaml", name="policy")

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a policy from JSON, such as the output of `model_dump_json()`.

        Args:
            text: An object with the fields of this class.

        Returns:
            The policy.

        Raises:
            ConfigurationError: It is not a policy; the message names what is wrong by its path.
        """
        return load_from_text(cls, text, form="json", name="policy")

    def to_yaml(self) -> str:
        """Write the policy as YAML that `from_yaml` reads."""
        data = self.model_dump(mode="json")
        text: str = yaml.safe_dump(data, sort_keys=False, allow_unicode=True)
        return text

    def save(self, path: str | Path) -> None:
        """Write the policy into a file that `load` reads.

        Args:
            path: A file with the suffix `.yaml`, `.yml` or `.json`.

        Raises:
            ConfigurationError: The file has another suffix, or cannot be written.
        """
        is_json = policy_format(Path(path)) == "json"
        write_text(Path(path), self.model_dump_json() if is_json else self.to_yaml())

    @property
    def version(self) -> str:
        """A short digest of all fields: policies with the same version decide alike."""
        content = json.dumps(self.model_dump(mode="json"), sort_keys=True)
        return sha256(content.encode()).hexdigest()[:12]

    def decide(  # noqa: PLR0913  (what is known about an answer, by keyword)
        self,
        verdicts: Sequence[ClaimVerdict],
        *,
        answer: str,
        trust_score: float | None,
        trust_threshold: float = 1.0,
        query_class: str | None = None,
        risk_tier: str | None = None,
        retrieval_score: float | None = None,
    ) -> Decision:
        """Decide on one answer.

        Args:
            verdicts: One per claim.
            answer: The original answer.
            trust_score: Share of the checked claims that are supported, or `None`.
            trust_threshold: Minimum `trust_score` of a trusted answer, 0 to 1.
            query_class: Class of the question, if known.
            risk_tier: Risk tier of the answer, if known.
            retrieval_score: How close the best document is to the question, if known.

        Returns:
            The most severe action that a finding or a rule asks for, but at most `at_most`, with
            every reason.
        """
        return self.judge(
            DecisionContext(
                verdicts=verdicts,
                answer=answer,
                trust_score=trust_score,
                trust_threshold=trust_threshold,
                query_class=query_class,
                risk_tier=risk_tier,
                retrieval_score=retrieval_score,
            )
        )

    def judge(self, given: DecisionContext) -> Decision:
        """Decide on one answer, as `decide` does.

        Args:
            given: What is known about the complete answer.

        Returns:
            The decision.
        """
        action: Action = "pass"
        reasons = []
        for effect in self._effects(given):
            if effect.excused:
                reasons.append(effect.words)
            elif effect.holds is TruthValue.YES:
                taken = min(effect.action, self.at_most, key=_SEVERITY.index)
                action = max(action, taken, key=_SEVERITY.index)
                would = "" if taken == effect.action else f" (would {effect.action})"
                reasons.append(effect.words + would)
        return Decision(action=action, reasons=tuple(reasons) or (_nothing_found(given),))

    @property
    def may_block(self) -> bool:
        """Whether any finding or rule leads to `block`."""
        actions = (*(getattr(self, name) for name in _FINDINGS), *(r.action for r in self.rules))
        return self.at_most == "block" and "block" in actions

    def blocking(self, given: DecisionContext) -> TruthValue:
        """Return whether an answer that may still be growing is blocked.

        Args:
            given: What is known about it so far.

        Returns:
            Whether that is certain, impossible, dependent on a later claim, or open until the end.
        """
        blocking = (e.holds for e in self._effects(given) if e.action == self.at_most == "block")
        return reduce(TruthValue.either, blocking, TruthValue.NO)

    def is_trusted(
        self,
        verdicts: Sequence[ClaimVerdict],
        *,
        answer: str,
        trust_score: float | None,
        trust_threshold: float = 1.0,
    ) -> bool:
        """Return whether the documents support an answer, whatever the rules say.

        Args:
            verdicts: One per claim.
            answer: The original answer.
            trust_score: Share of the checked claims that are supported, or `None`.
            trust_threshold: Minimum `trust_score` of a trusted answer, 0 to 1.

        Returns:
            True if nothing is contradicted, nothing unchecked and the score reaches the threshold.
            Without any claim the policy decides: true if the finding that applies leads to `pass`;
            by default, this holds only for refusals and courtesies.
        """
        if not verdicts:
            given = DecisionContext(verdicts=(), answer=answer, trust_score=trust_score)
            return all(getattr(self, found.name) == "pass" for found in _findings(given))
        if any(v.verdict in ("contradicted", "unchecked") for v in verdicts):
            return False
        return trust_score is not None and trust_score >= trust_threshold

    def _effects(self, given: DecisionContext) -> Iterator["_Effect"]:
        """Apply the rules in order, and then the findings that they do not excuse."""
        ended = TruthValue.NO
        excused: dict[FindingName, TruthValue] = {}
        by: dict[FindingName, int] = {}
        for number, rule in enumerate(self.rules, 1):
            truth = rule.when.truth(given)
            holds = truth.holds.unless(ended)
            yield _Effect(rule.action, holds, rule.reason or f"rule {number}: {truth.words}")
            if rule.final:
                ended = ended.either(holds)
            for name in rule.excuses:
                excused[name] = excused.get(name, TruthValue.NO).either(holds)
                if holds is TruthValue.YES:
                    by.setdefault(name, number)
        for name, made, words in _findings(given):
            counts = made.unless(excused.get(name, TruthValue.NO))
            if made is TruthValue.YES and counts is TruthValue.NO:
                why = f"{words} (excused by rule {by[name]})"
                yield _Effect("pass", TruthValue.NO, why, excused=True)
            else:
                yield _Effect(getattr(self, name), counts, words)


class _Effect(NamedTuple):
    """What a rule or a finding asks for."""

    action: Action
    holds: TruthValue
    """Whether it counts."""
    words: str
    """Its reason."""
    excused: bool = False
    """Whether it holds but is excused."""


_SEVERITY: tuple[Action, ...] = ("pass", "flag", "review", "block")


def _nothing_found(given: DecisionContext) -> str:
    if given.count("supported") == len(given.verdicts) or given.trust_score is None:
        return "every claim is supported"
    score, threshold = given.trust_score, given.trust_threshold
    return f"trust score {score:.2f} reaches the threshold {threshold:.2f}"


_FINDINGS: tuple[FindingName, ...] = get_args(FindingName)

_TITLE = re.compile(r"(?m)^ {0,3}(?:#{1,6} |\*\*)[^\s\d]{1,20}(?: [^\s\d]{1,20})?$")


class _Finding(NamedTuple):
    """One finding, whether it was made, and its description."""

    name: FindingName
    holds: TruthValue
    words: str


def _findings(given: DecisionContext) -> Iterator[_Finding]:
    """Look at an answer."""
    if given.verdicts or not given.complete:
        yield from _about_claims(given)
    if not given.verdicts:
        yield from _without_claims(given)


def _about_claims(given: DecisionContext) -> Iterator[_Finding]:
    score, threshold = given.trust_score, given.trust_threshold
    claims = format_count(len(given.verdicts), "claim")
    contradicted, conflicting = given.count("contradicted"), given.count("conflicting")
    why = f"the documents contradict {contradicted} of {claims}"
    yield _Finding("contradicted", given.stays_true(so=contradicted > 0), why)
    shown = "unknown" if score is None else f"{score:.2f}"
    why = f"trust score {shown} is below the threshold {threshold:.2f}"
    yield _Finding("untrusted", holds_for_score(Range(below=threshold), given), why)
    why = f"the documents disagree with each other on {conflicting} of {claims}"
    yield _Finding("conflicting", given.stays_true(so=conflicting > 0), why)
    unchecked = [v.reason or "" for v in given.verdicts if v.verdict == "unchecked"]
    causes = ", ".join(sorted(set(unchecked)))
    why = f"{len(unchecked)} of {claims} could not be checked: {causes}"
    yield _Finding("unchecked", given.stays_true(so=bool(unchecked)), given.failure or why)


def _without_claims(given: DecisionContext) -> Iterator[_Finding]:
    if not given.complete:
        for name in ("no_claims", "nothing_checkable", "empty_answer"):
            yield _Finding(name, TruthValue.OPEN, "")
    elif not given.answer.strip():
        yield _Finding("empty_answer", TruthValue.YES, "the answer is empty")
    elif _says_nothing(given.answer):
        yield _Finding("no_claims", TruthValue.YES, "the answer makes no checkable claim")
    else:
        why = "no claim was found in the answer, which is neither a refusal nor courtesy"
        yield _Finding("nothing_checkable", TruthValue.YES, why)


def _says_nothing(answer: str) -> bool:
    """Return whether an answer consists only of refusals, questions and courtesies."""
    sentences = sentence_claims(answer, only_checkable=False)
    texts = [without_interjection(sentence.text) for sentence in sentences]
    if not all(map(only_addresses_reader, texts)):
        return False
    ends = [0, *(sentence.end or 0 for sentence in sentences)]
    starts = [*(sentence.start or 0 for sentence in sentences), len(answer)]
    rest = "\n".join(answer[end:start] for end, start in zip(ends, starts, strict=True))
    return bool(sentences) and not any(map(str.isalnum, _TITLE.sub("", rest)))
