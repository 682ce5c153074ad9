"""From the verdicts on an answer to a decision, with its reasons in words."""

import json
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Literal, Self

from langchain_core.load.serializable import Serializable
from pydantic import ConfigDict

from langchain_groundedness._options import CheckedOptions
from langchain_groundedness.exceptions import ConfigurationError
from langchain_groundedness.policy._files import parsed, read_file, write_file, yaml_of
from langchain_groundedness.policy._findings import FINDINGS, findings
from langchain_groundedness.policy._holds import Holds, Situation
from langchain_groundedness.policy._rules import DecisionRule, Matter, blocking, decided, matters
from langchain_groundedness.types import Action, ClaimVerdict, Decision

__all__ = ["DecisionPolicy"]


class DecisionPolicy(CheckedOptions, Serializable):
    """Decides on an answer by what is found in it and by rules; the most severe action wins.

    Severity rises from `pass` over `flag` and `review` to `block`. Seven findings are always looked
    for; the fields of their names say which action each leads to. `rules` come on top: they are
    read in order, and each whose conditions all hold adds its action. So an earlier rule never
    hides a later one, and a rule that says `pass` hides nothing, unless it says so with `final` or
    `excuses`. The reasons name every rule and every finding that holds, also those that a more
    severe one outdoes, and those that are excused.

    The defaults block nothing, and let nothing pass that was not checked.

    Example:
        >>> rules = [{"when": {"query_class": "sensitive"}, "action": "review"}]
        >>> policy = DecisionPolicy(contradicted="block", rules=rules)
        >>> policy.decide([], answer="I don't know.", trust_score=None, query_class="sensitive")
        ... # doctest: +NORMALIZE_WHITESPACE
        Decision(action='review', reasons=("rule 1: the query class is 'sensitive'",
                                           'the answer makes no checkable claim'))
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
    rules: tuple[DecisionRule, ...] = ()
    """Read in order, on top of the findings."""
    at_most: Literal["flag", "review", "block"] = "block"
    """The most severe action that is taken. Of a finding or a rule that asks for more, the reasons
    say what it would have done."""

    @classmethod
    def is_lc_serializable(cls) -> bool:
        """Tell LangChain that this can be saved with `dumpd`."""
        return True

    @classmethod
    def strict(cls) -> Self:
        """Make a policy that lets an answer pass only if every claim in it is supported.

        Returns:
            A policy that blocks contradicted, unverifiable and unchecked claims, whatever the
            trust threshold, and answers with text in which nothing was found to check; and that
            sends answers to review on which the documents disagree. Refusals and courtesy pass.
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
        """Make a policy that blocks what is wrong, and asks a person where much depends on it.

        Returns:
            A policy that blocks contradicted claims; that sends to review what could not be
            checked, answers of which less than half is supported, and all answers to questions of
            the class `sensitive` or the risk tier `high`; and that flags the rest that is not
            supported.
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
            policy: What would be in force; by default `DecisionPolicy.balanced()`.

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
            ConfigurationError: There is no such file, or no policy in it; the message says where
                in the file what came and what is accepted.
        """
        text, form = read_file(Path(path))
        return parsed(cls, text, form=form, name=str(path))

    @classmethod
    def from_yaml(cls, text: str) -> Self:
        """Read a policy from YAML.

        Args:
            text: A mapping with the fields of this class.

        Returns:
            The policy.

        Raises:
            ConfigurationError: It is none; the message names line and column.

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
        return parsed(cls, text, form="yaml", name="policy")

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a policy from JSON, such as `model_dump_json()` gives.

        Args:
            text: An object with the fields of this class.

        Returns:
            The policy.

        Raises:
            ConfigurationError: It is none; the message names line and column.
        """
        return parsed(cls, text, form="json", name="policy")

    def to_yaml(self) -> str:
        """Write the policy as YAML that `from_yaml` reads."""
        return yaml_of(self.model_dump(mode="json"))

    def save(self, path: str | Path) -> None:
        """Write the policy into a file that `load` reads.

        Args:
            path: A file with the suffix `.yaml`, `.yml` or `.json`.

        Raises:
            ConfigurationError: The file has another suffix, or cannot be written.
        """
        write_file(Path(path), {"yaml": self.to_yaml, "json": self.model_dump_json})

    @property
    def version(self) -> str:
        """A short digest of all fields: policies of one version decide alike."""
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
            answer: The answer as it came.
            trust_score: Share of the checked claims that are supported, or `None`.
            trust_threshold: Least share that is enough, 0 to 1.
            query_class: Of which class the question is, if that is known.
            risk_tier: How much depends on the answer, if that is known.
            retrieval_score: How close the best document is to the question, if that is known.

        Returns:
            The most severe action that a finding or a rule asks for, but at most `at_most`, with
            every reason.
        """
        return self.judge(
            Situation(
                verdicts=verdicts,
                answer=answer,
                trust_score=trust_score,
                trust_threshold=trust_threshold,
                query_class=query_class,
                risk_tier=risk_tier,
                retrieval_score=retrieval_score,
            )
        )

    def judge(self, given: Situation) -> Decision:
        """Decide on one answer, as `decide` does.

        Args:
            given: What is known about it when it is whole.

        Returns:
            The decision.
        """
        return decided(self._matters(given), self.at_most, given)

    @property
    def may_block(self) -> bool:
        """Whether any finding or rule leads to `block`."""
        actions = (*(getattr(self, name) for name in FINDINGS), *(r.action for r in self.rules))
        return self.at_most == "block" and "block" in actions

    def blocking(self, given: Situation) -> Holds:
        """Tell whether an answer that may still be growing is blocked.

        Args:
            given: What is known about it so far.

        Returns:
            Whether that is sure, impossible, left to a later claim, or open until the end.
        """
        return blocking(self._matters(given), self.at_most)

    def is_trusted(
        self,
        verdicts: Sequence[ClaimVerdict],
        *,
        answer: str,
        trust_score: float | None,
        trust_threshold: float = 1.0,
    ) -> bool:
        """Tell whether the documents bear an answer out, whatever the rules make of it.

        Args:
            verdicts: One per claim.
            answer: The answer as it came.
            trust_score: Share of the checked claims that are supported, or `None`.
            trust_threshold: Least share that is enough, 0 to 1.

        Returns:
            True if nothing is contradicted, nothing unchecked and the score reaches the
            threshold. Without any claim the policy has the word: true if the finding made leads to
            `pass`, which by default it does for refusals and courtesy only.
        """
        if not verdicts:
            given = Situation(verdicts=(), answer=answer, trust_score=trust_score)
            return all(getattr(self, found.name) == "pass" for found in findings(given))
        if any(v.verdict in ("contradicted", "unchecked") for v in verdicts):
            return False
        return trust_score is not None and trust_score >= trust_threshold

    def _matters(self, given: Situation) -> Iterator[Matter]:
        return matters(self.rules, {name: getattr(self, name) for name in FINDINGS}, given)
