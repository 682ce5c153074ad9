"""The rules of a policy, and what they and the findings come to; pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, NamedTuple

from pydantic import BeforeValidator

from langchain_groundedness.policy._bounds import Flag, Part, listed
from langchain_groundedness.policy._conditions import Conditions
from langchain_groundedness.policy._findings import FindingName, findings
from langchain_groundedness.policy._holds import Holds, Situation
from langchain_groundedness.types import Action, Decision

__all__ = ["DecisionRule", "Matter", "blocking", "decided", "matters"]

_SEVERITY: tuple[Action, ...] = ("pass", "flag", "review", "block")


class DecisionRule(Part):
    """What to do with answers of which some conditions hold.

    A rule alone never hides anything: its action is added to those that the policy finds, and the
    most severe one wins. Where it shall make an exception, it says so, by `excuses` or `final`.

    Example:
        >>> rule = DecisionRule(
        ...     when={"risk_tier": "high", "unverifiable": {"at_least": 1}}, action="review"
        ... )
        >>> rule.when.risk_tier
        ('high',)
    """

    when: Conditions
    """All of these must hold."""
    action: Action
    """What to do then."""
    reason: str | None = None
    """Stands among the reasons of the decision; by default, the number of the rule and what holds
    of the answer."""
    excuses: Annotated[tuple[FindingName, ...], BeforeValidator(listed)] = ()
    """Findings, by the names of the policy's fields, that do not count where this rule holds.
    Nothing else lets an answer pass that a finding speaks against."""
    final: Flag = False
    """Whether no later rule is read where this one holds. Findings count nevertheless."""


class Matter(NamedTuple):
    """A rule or a finding, applied to an answer."""

    action: Action
    holds: Holds
    """Whether it counts."""
    words: str
    """Its reason."""
    excused: bool = False
    """Whether it holds and does not count."""


def matters(
    rules: Sequence[DecisionRule], actions: Mapping[FindingName, Action], given: Situation
) -> Iterator[Matter]:
    """Apply rules in order, and then the findings that they do not excuse.

    Args:
        rules: The rules.
        actions: What each finding leads to.
        given: What is known about the answer.

    Yields:
        What counts, what may still count, and what is excused.
    """
    ended = Holds.NO
    excused: dict[FindingName, Holds] = {}
    by: dict[FindingName, int] = {}
    for number, rule in enumerate(rules, 1):
        truth = rule.when.truth(given)
        holds = truth.holds.unless(ended)
        yield Matter(rule.action, holds, rule.reason or f"rule {number}: {truth.words}")
        if rule.final:
            ended = ended.either(holds)
        for name in rule.excuses:
            excused[name] = excused.get(name, Holds.NO).either(holds)
            if holds is Holds.YES:
                by.setdefault(name, number)
    for name, made, words in findings(given):
        counts = made.unless(excused.get(name, Holds.NO))
        if made is Holds.YES and counts is Holds.NO:
            words = f"{words} (excused by rule {by[name]})"  # noqa: PLW2901  (said in full)
            yield Matter("pass", Holds.NO, words, excused=True)
        else:
            yield Matter(actions[name], counts, words)


def decided(found: Iterable[Matter], at_most: Action, given: Situation) -> Decision:
    """Sum up what counts about a whole answer.

    Args:
        found: From `matters`.
        at_most: The most severe action to be taken.
        given: What is known about the answer.

    Returns:
        The most severe action that is not too severe, and every reason.
    """
    action: Action = "pass"
    reasons = []
    for matter in found:
        if matter.excused:
            reasons.append(matter.words)
        elif matter.holds is Holds.YES:
            taken = min(matter.action, at_most, key=_SEVERITY.index)
            action = max(action, taken, key=_SEVERITY.index)
            would = "" if taken == matter.action else f" (would {matter.action})"
            reasons.append(matter.words + would)
    return Decision(action=action, reasons=tuple(reasons) or (_nothing_found(given),))


def blocking(found: Iterable[Matter], at_most: Action) -> Holds:
    """Tell whether the decision on an answer that may still be growing is `block`.

    Args:
        found: From `matters`.
        at_most: The most severe action to be taken.
    """
    total = Holds.NO
    for matter in found:
        if matter.action == at_most == "block":
            total = total.either(matter.holds)
    return total


def _nothing_found(given: Situation) -> str:
    if given.count("supported") == len(given.verdicts) or given.trust_score is None:
        return "every claim is supported"
    score, threshold = given.trust_score, given.trust_threshold
    return f"trust score {score:.2f} reaches the threshold {threshold:.2f}"
