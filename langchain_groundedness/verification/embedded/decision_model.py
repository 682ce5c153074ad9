"""The embedded verifier as a LangChain decision model. Needs langchain-core >= 1.8."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any, Literal

from pydantic import ConfigDict, Field
from typing_extensions import override

from langchain_groundedness._runtime.options import CheckedOptions
from langchain_groundedness.exceptions import (
    InputFormatError,
    MissingDependencyError,
    VerificationError,
)
from langchain_groundedness.inputs.formats import CheckInput, no_documents, read_input
from langchain_groundedness.types import Claim, VerificationTask
from langchain_groundedness.verification.embedded.class_probabilities import (
    ClassProbabilities,
    ProbabilisticVerdict,
    ProbabilisticVerifier,
)

try:
    from langchain_core.decisions import (
        BaseDecisionModel,
        Choice,
        ChoiceAnswer,
        ClassifierResponse,
        Noul,
        NoulAnswer,
        Question,
        State,
    )
except ImportError as exc:
    _MSG = (
        "EmbeddedDecisionModel needs decision models, which came with langchain-core 1.8; "
        "install it: pip install 'langchain-core>=1.8'"
    )
    raise MissingDependencyError(_MSG) from exc

__all__ = ["EmbeddedDecisionModel"]

_LABELS: Mapping[str, frozenset[str]] = {
    "supported": frozenset({"supported"}),
    "contradicted": frozenset({"contradicted"}),
    "unverifiable": frozenset({"unverifiable"}),
    "not_found": frozenset({"unverifiable"}),
    "unsupported": frozenset({"contradicted", "unverifiable"}),
    "not_supported": frozenset({"contradicted", "unverifiable"}),
}
"""The verdicts that a label of a `Choice` stands for."""
_MEDIA = ("image", "image_url", "audio", "input_audio", "video", "file")
_LONGEST_NAME = 60
_ACCEPTED_QUESTIONS = (
    "accepted are Noul and Choice questions whose instructions are one claim, as text; for a "
    f"Choice, the labels {', '.join(map(repr, _LABELS))}, no two of which may mean the same"
)
_ACCEPTED_STATES = (
    "accepted as evidence are a text, a list of texts or of documents (a Document, or a mapping "
    "with 'page_content'), or a mapping with either under 'documents' or 'context' and, if there "
    "is one, with a 'question'; media cannot be read"
)


class EmbeddedDecisionModel(CheckedOptions, BaseDecisionModel):
    """Answers whether evidence supports claims, on the CPU, without a network or a key.

    The state of a request is the evidence: a text, a list of texts or documents, or a mapping with
    `documents` or `context` and perhaps the `question` that short claims ("Yes.", "In May") are
    read with. The instructions of each question are one claim, as text. Questions of one request
    are judged together. Descriptions in criteria are not read: what the answers mean is fixed.

    - `Noul`: the probability that the evidence supports the claim.
    - `Choice`: over any of the labels `supported`, `contradicted` and `unverifiable` (neither), or
      `not_found` for `unverifiable`, or `unsupported` or `not_supported` for all but `supported`. A
      label's probability does not depend on which others are offered, so where labels leave out a
      verdict, the probabilities add up to less than 1. The choice is the verdict of
      `EmbeddedVerifier`, which has its own threshold for each verdict, so near a threshold another
      label may be as likely. If no label for that verdict is offered, the choice is the most
      probable label. Confidence is the probability of the choice.

    `Score` and `Box` questions, other labels and media are errors. So is a claim that could not be
    checked: then no question of the request is answered, and `claim_ids` of the `VerificationError`
    are the ids of those that could not.

    Example:
        >>> from langchain_core.decisions import Choice, Noul
        >>> labels = dict.fromkeys(["supported", "contradicted", "unverifiable"])
        >>> claim = "Revenue was $2.4B in Q3."
        >>> response = EmbeddedDecisionModel().invoke(
        ...     {
        ...         "state": ["Revenue was $2.1B in Q3 2024."],
        ...         "questions": {
        ...             "is_grounded": Noul(instructions=claim),
        ...             "verdict": Choice(instructions=claim, criteria=labels),
        ...         },
        ...     }
        ... )
        >>> response.nouls["is_grounded"].noul < 0.5, response.choices["verdict"].choice
        (True, 'contradicted')
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    _can_be_saved = True

    model: Literal["embedded"] = "embedded"
    """The name under which the model appears in traces; there is only one."""
    threads: int | None = Field(default=None, ge=1, le=256)
    """Processor threads of the encoder; by default one per core, four at most."""

    @property
    @override
    def _provider(self) -> str:
        return "langchain_groundedness"

    @override
    def _classify(self, state: State, questions: dict[str, Question]) -> ClassifierResponse:
        if not questions:
            msg = f"there are no questions; {_ACCEPTED_QUESTIONS}"
            raise InputFormatError(msg)
        claims = [
            Claim(id=str(place), text=_claim_of(name, question))
            for place, (name, question) in enumerate(questions.items())
        ]
        evidence = _read_state(state)
        task = VerificationTask(
            claims=tuple(claims), documents=evidence.documents, question=evidence.question
        )
        [verdicts] = ProbabilisticVerifier(threads=self.threads).judge_all([task])
        known = _require_probabilities(questions, verdicts)
        answers = map(_answer, questions.values(), verdicts, known)
        return ClassifierResponse(
            model=self.model, answers=dict(zip(questions, answers, strict=True))
        )


def _claim_of(name: str, question: Any) -> str:
    """Return the claim that a question asks about, if all of the question can be answered."""
    shown = repr(str(name)[:_LONGEST_NAME])
    if not isinstance(question, Noul | Choice):
        msg = f"question {shown} is of type {type(question).__name__}; {_ACCEPTED_QUESTIONS}"
        raise InputFormatError(msg)
    claim = question.instructions
    if not isinstance(claim, str):
        kind = type(claim).__name__
        msg = f"the instructions of question {shown} are of type {kind}; {_ACCEPTED_QUESTIONS}"
        raise InputFormatError(msg)
    labels = () if isinstance(question, Noul) else tuple(question.criteria)
    unknown = [label[:_LONGEST_NAME] for label in labels if label not in _LABELS]
    if unknown:
        came = ", ".join(map(repr, unknown))
        msg = f"question {shown} has the labels {came}, which are not known; {_ACCEPTED_QUESTIONS}"
        raise InputFormatError(msg)
    for one, other in combinations(labels, 2):
        if _LABELS[one] & _LABELS[other]:
            msg = f"labels {one!r} and {other!r} of question {shown} overlap; {_ACCEPTED_QUESTIONS}"
            raise InputFormatError(msg)
    return claim


def _read_state(state: Any) -> CheckInput:
    is_document = not isinstance(state, Mapping) or "page_content" in state
    parts = {"documents": state} if is_document else state
    held = [part for value in parts.values() for part in _listed(value)]
    if any(isinstance(part, Mapping) and part.get("type") in _MEDIA for part in [parts, *held]):
        msg = f"the state holds media; {_ACCEPTED_STATES}"
        raise InputFormatError(msg)
    try:
        evidence = read_input({**parts, "answer": ""})
    except InputFormatError:
        kinds = ", ".join(dict.fromkeys(type(part).__name__ for part in held))
        msg = f"the state is a {type(state).__name__} that holds {kinds}; {_ACCEPTED_STATES}"
        raise InputFormatError(msg) from None  # what it was tells how to give an answer
    if evidence.unread:
        msg = f"the state holds {no_documents(evidence)}; {_ACCEPTED_STATES}"
        raise InputFormatError(msg, keys=evidence.unread)
    return evidence


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else [value]


def _require_probabilities(
    names: Iterable[str], verdicts: Sequence[ProbabilisticVerdict]
) -> list[ClassProbabilities]:
    known = [v.class_probabilities for v in verdicts if v.class_probabilities is not None]
    if len(known) < len(verdicts):
        failed = {
            name: verdict.reason or "the claim contains nothing to search for"
            for name, verdict in zip(names, verdicts, strict=True)
            if verdict.class_probabilities is None
        }
        shown = ", ".join(repr(name[:_LONGEST_NAME]) for name in failed)
        reasons = "; ".join(dict.fromkeys(failed.values()))
        msg = (
            f"could not check {shown}: {reasons}. Ask with whole sentences, or give the question "
            "that they answer in the state, and evidence with text in it"
        )
        raise VerificationError(msg, claim_ids=tuple(failed))
    return known


def _answer(
    question: Question, verdict: ProbabilisticVerdict, found: ClassProbabilities
) -> NoulAnswer | ChoiceAnswer:
    if not isinstance(question, Choice):
        return NoulAnswer(type="noul", noul=found.supported)
    of_verdict = found._asdict()
    probabilities = {
        label: min(1.0, sum(of_verdict[name] for name in _LABELS[label]))
        for label in question.criteria
    }
    choice = max(
        probabilities, key=lambda label: (verdict.verdict in _LABELS[label], probabilities[label])
    )
    return ChoiceAnswer(
        type="choice",
        choice=choice,
        probabilities=probabilities,
        confidence=probabilities[choice],
    )
