"""The values passed between stages: frozen, validated pydantic models."""

import math
from collections.abc import Callable, Iterable, Sequence
from inspect import Parameter, Signature, isroutine, signature
from typing import Annotated, Any, Literal, NamedTuple, Self, get_args, get_type_hints

from langchain_core.documents import Document
from pydantic import BaseModel, ConfigDict, Field, model_validator
from typing_extensions import override

__all__ = [
    "HTML_FORMATTERS",
    "AcceptedTypes",
    "Action",
    "AnswerVerdict",
    "Citation",
    "Claim",
    "ClaimVerdict",
    "CorrectedAnswer",
    "CorrectionTask",
    "Decision",
    "Edit",
    "EvidenceBatch",
    "EvidenceSource",
    "ExtractionTask",
    "FinalVerdict",
    "FrozenModel",
    "GroundednessResult",
    "GroundednessResultChunk",
    "OnContradicted",
    "OnUnverifiable",
    "Passage",
    "PlainSignature",
    "Usage",
    "VerdictLabel",
    "VerificationTask",
]

VerdictLabel = Literal["supported", "contradicted", "unverifiable", "unchecked"]
"""Verdict of a claim. `unverifiable`: checked, and the documents neither support nor contradict
it. `unchecked`: could not be checked; `ClaimVerdict.reason` says why."""

AnswerVerdict = Literal[
    "grounded",
    "has_contradictions",
    "partially_grounded",
    "ungrounded",
    "no_claims",
    "unchecked",
]
"""Verdict of a whole answer; `scoring.answer_verdict` defines each."""

Action = Literal["pass", "flag", "block", "review"]
"""The policy's decision about an answer."""

OnContradicted = Literal["annotate", "correct", "strip", "block"]
"""What to do with the text of a contradicted claim: keep, correct or remove it. With `block`, the
decision is `block`, and a guard replaces the rest of the answer with its message."""

OnUnverifiable = Literal["keep", "strip"]
"""What to do with the text of an unverifiable claim: keep or remove it."""

EvidenceSource = Literal["returned", "prompt", "retrieved"]
"""Where the documents of a check come from. `returned`: they came with the answer, such as the
`context` that a chain returns. `prompt`: the model that wrote the answer was shown them.
`retrieved`: the retrievers and tools of the run or conversation returned them."""

Offset = Annotated[int, Field(ge=0)]
Probability = Annotated[float, Field(ge=0.0, le=1.0)]


class AcceptedTypes(NamedTuple):
    """In the `Annotated` type of a field that converts its input: the types it takes."""

    types: Any


class PlainSignature:
    """Shows the fields of a class with plain types and defaults in `help` and editors."""

    def __get__(self, instance: object, owner: type[BaseModel]) -> Signature:
        """Make the signature of the class."""
        if instance is not None:  # LangSmith inspects instances, which are called differently
            raise AttributeError
        given = [*signature(owner.__init__).parameters.values()][1:]
        if any(parameter.kind is Parameter.VAR_KEYWORD for parameter in given):
            plain, whole = get_type_hints(owner), get_type_hints(owner, include_extras=True)
            given = [
                Parameter(
                    name,
                    Parameter.KEYWORD_ONLY,
                    annotation=_accepted(whole[name]) or plain[name],
                    default=_shown_default(owner, name),
                )
                for name in owner.model_fields
            ]
        return Signature(given)


class _Unquoted(str):
    """Shown without quotes."""

    __slots__ = ()
    __repr__ = str.__str__


def _accepted(hint: Any) -> Any:
    for part in get_args(hint):
        if isinstance(part, AcceptedTypes):
            return part.types
        if (inner := _accepted(part)) is not None:
            return inner | None
    return None


def _shown_default(owner: type[BaseModel], name: str) -> Any:
    field = owner.model_fields[name]
    if field.is_required():
        return Parameter.empty
    default, again = (field.get_default(call_default_factory=True) for _ in range(2))
    if default != again:  # a time, or an id
        return _Unquoted("<factory>")
    return _Unquoted(default.__name__) if isroutine(default) else default


class FrozenModel(BaseModel):
    """Base of values: they cannot be changed, and accept no unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @override
    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        cls.__signature__ = PlainSignature()  # type: ignore[assignment]  # a descriptor of one


class _Span(FrozenModel):
    start: Offset
    end: Offset

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.end < self.start:
            msg = f"end must not be before start, got {self.start}..{self.end}"
            raise ValueError(msg)
        return self


class Claim(FrozenModel):
    """One checkable statement of an answer.

    Example:
        >>> Claim(id="c1", text="Rome is the capital of Italy.", start=0, end=29).text
        'Rome is the capital of Italy.'
    """

    id: str
    """Unique within one answer."""
    text: str
    """The statement, self-contained if possible: the extractor resolves pronouns."""
    start: Offset | None = None
    """Offset of its first character in the answer; `None` if unknown."""
    end: Offset | None = None
    """Offset after its last character; `None` exactly when `start` is."""

    @model_validator(mode="after")
    def _whole_span(self) -> Self:
        if (self.start is None) != (self.end is None):
            msg = f"start and end must both be set or both be None, got {self.start} and {self.end}"
            raise ValueError(msg)
        if self.start is not None and self.end is not None and self.end < self.start:
            msg = f"end must not be before start, got {self.start}..{self.end}"
            raise ValueError(msg)
        return self


class Passage(_Span):
    """A piece of a document: `documents[document].page_content[start:end] == text`."""

    document: Offset
    """Index of the document in the task."""
    text: str
    heading: str = ""
    """The headings above it, and the header of the table in which it begins, if it begins inside
    the document."""
    score: float | None = None
    """The document's retriever score, if any; higher is better."""


class EvidenceBatch(FrozenModel):
    """Passages for one call of a judge."""

    passages: tuple[Passage, ...]
    tokens: int = Field(ge=0)
    """Size as counted by the packer."""


class Citation(_Span):
    """Verbatim evidence: `documents[document].page_content[start:end] == quote`.

    If `field` is set, the quote is from that field of the document's metadata instead:
    `str(documents[document].metadata[field])[start:end] == quote`.
    """

    document: Offset
    """Index of the document in the task."""
    document_id: str | None = None
    quote: str
    field: str | None = None
    """Key of the metadata that the quote is from; `None` for the document's text."""
    metadata: dict[str, Any] = Field(default_factory=dict)
    """The document's metadata, unchanged."""

    @classmethod
    def from_document(
        cls, documents: Sequence[Document], document: int, start: int, end: int
    ) -> "Citation":
        """Cite characters `start` to `end` of one of the documents.

        Args:
            documents: All documents of the task.
            document: Index of the one to cite.
            start: First character.
            end: One past the last character.

        Returns:
            The citation, with the quote and the document's id and metadata.
        """
        source = documents[document]
        return cls(
            document=document,
            document_id=source.id,
            start=start,
            end=end,
            quote=source.page_content[start:end],
            metadata=dict(source.metadata),
        )

    def holds_in(self, documents: Sequence[Document]) -> bool:
        """Return whether the documents contain the quote where the citation says.

        Args:
            documents: All documents of the task.

        Returns:
            True if it does and the quote is not blank.
        """
        if self.document >= len(documents) or not self.quote.strip():
            return False
        document = documents[self.document]
        field = self.field
        text = document.page_content if field is None else str(document.metadata.get(field, ""))
        return text[self.start : self.end] == self.quote


class ClaimVerdict(FrozenModel):
    """The verdict on one claim, with evidence."""

    claim: Claim
    verdict: VerdictLabel
    support_probability: Probability | None = None
    """Calibrated probability that the documents support the claim; `None` if the verifier gives
    none."""
    explanation: str = ""
    citations: tuple[Citation, ...] = ()
    correction: str | None = None
    """For a contradicted claim: the value, or the statement, that the documents give instead."""
    conflicting: bool = False
    """True if some evidence supports the claim and some contradicts it."""
    reason: str | None = None
    """Why the claim is `unchecked`; `None` exactly when it was checked."""
    verifier: str = ""
    """Name of the verifier."""

    @model_validator(mode="after")
    def _reason_iff_unchecked(self) -> Self:
        if (self.verdict == "unchecked") != (self.reason is not None):
            msg = f"reason must be set for `unchecked` and only then, got verdict {self.verdict!r}"
            raise ValueError(msg)
        return self

    @classmethod
    def unchecked(cls, claim: Claim, reason: str, *, verifier: str = "") -> "ClaimVerdict":
        """Build the verdict of a claim that could not be checked.

        Args:
            claim: The claim.
            reason: Why, for the reader of the result.
            verifier: Name of the verifier that failed, if any.

        Returns:
            The verdict.
        """
        return cls(claim=claim, verdict="unchecked", reason=reason, verifier=verifier)


class ExtractionTask(FrozenModel):
    """The input of a claim extractor."""

    answer: str
    question: str | None = None


class VerificationTask(FrozenModel):
    """The input of a verifier: claims of one answer, and the documents to check them against."""

    claims: tuple[Claim, ...]
    documents: tuple[Document, ...]
    question: str | None = None
    answer: str | None = None

    @model_validator(mode="after")
    def _unique_ids(self) -> Self:
        ids = [claim.id for claim in self.claims]
        if len(set(ids)) != len(ids):
            msg = "claim ids must be unique within a task"
            raise ValueError(msg)
        return self

    def only(self, claims: Iterable[Claim]) -> "VerificationTask":
        """Restrict the task to some claims.

        Args:
            claims: The claims to keep.

        Returns:
            A task with those claims, otherwise unchanged.
        """
        return self.model_copy(update={"claims": tuple(claims)})


class Edit(_Span):
    """One change made to an answer: `original_answer[start:end]` became `replacement`."""

    claim_id: str
    original: str
    replacement: str
    """The new text, marker included; empty if the text was stripped."""
    correction: str = ""
    """The replacement without its marker."""


class CorrectionTask(FrozenModel):
    """The input of a corrector: an answer, its verdicts, and what to do about them."""

    answer: str
    verdicts: tuple[ClaimVerdict, ...]
    documents: tuple[Document, ...] = ()
    question: str | None = None
    on_contradicted: OnContradicted = "correct"
    on_unverifiable: OnUnverifiable = "keep"
    on_unchecked: OnUnverifiable = "keep"


class CorrectedAnswer(FrozenModel):
    """The output of a corrector: the new text and its edits, in order of position."""

    text: str
    edits: tuple[Edit, ...] = ()


class Decision(FrozenModel):
    """The policy's decision and its reasons."""

    action: Action
    reasons: tuple[str, ...] = ()


class FinalVerdict(FrozenModel):
    """The verdict on the final text, after corrections and removals."""

    verdict: AnswerVerdict
    """A corrected claim counts as supported, a removed one not at all."""
    trust_score: Probability | None
    decision: Decision


class Usage(FrozenModel):
    """Model calls and tokens of one check."""

    model_calls: int = 0
    """Started calls, including failed and timed-out ones. Retries by the model's client
    (`max_retries`) count as one call."""
    input_tokens: int | None = None
    """Prompt tokens as reported by the provider, without failed calls and replies that the client
    could not parse. `None` if nothing was reported."""
    output_tokens: int | None = None
    cached_verdicts: int = 0
    """Verdicts that a `CachedVerifier` took from its cache, or from an equal claim of the batch."""


class GroundednessResult(FrozenModel):
    """The result of checking one answer."""

    question: str | None
    answer: str
    """The answer to show, with corrections and removals applied."""
    original_answer: str
    """The unmodified answer. Spans of claims and edits refer to this text."""
    documents: tuple[Document, ...]
    evidence_source: EvidenceSource | None = None
    """Where the documents come from; `None` without documents."""
    claims: tuple[ClaimVerdict, ...]
    trust_score: Probability | None
    """supported / (supported + contradicted + unverifiable); `None` if nothing was checked."""
    verdict: AnswerVerdict
    is_trusted: bool
    decision: Decision
    """The policy's decision on `answer`, the final text; the same as `final.decision`."""
    final: FinalVerdict | None = None
    """Verdict, score and decision on `answer`; the other fields are about `original_answer`. `None`
    in a result that no check of this package made."""
    edits: tuple[Edit, ...] = ()
    usage: Usage = Usage()
    query_class: str | None = None
    """Class of the question, if a classifier assigned one before the check."""
    risk_tier: str | None = None
    """Risk tier of the answer, as named by the application; `None` if unknown."""
    retrieval_score: float | None = None
    """Score of the best document for the question; `None` if unknown."""

    def __eq__(self, other: object) -> bool:
        """Compare fields, so that the sum of streamed chunks equals the result."""
        if not isinstance(other, GroundednessResult):
            return NotImplemented
        return all(
            getattr(self, name) == getattr(other, name) for name in GroundednessResult.model_fields
        )

    __hash__ = None  # type: ignore[assignment]  # documents are mutable, so no value has a hash

    @property
    def support_probability(self) -> float | None:
        """Probability that the documents support all checked claims, taken as independent.

        The product of the claims' probabilities: one that is doubtful lowers it, and so do several
        that are nearly sure. `None` if a checked claim has none, as with most chat models.
        """
        checked = [v.support_probability for v in self.claims if v.verdict != "unchecked"]
        known = [p for p in checked if p is not None]
        return math.prod(known) if known and len(known) == len(checked) else None

    def _repr_html_(self) -> str | None:
        """Render the answer with marked claims for notebooks."""
        shown = HTML_FORMATTERS.get(GroundednessResult)
        return shown(self) if shown else None


HTML_FORMATTERS: dict[type[BaseModel], Callable[[Any], str]] = {}
"""Functions that render values for notebooks, by class; renderers register themselves."""


class GroundednessResultChunk(GroundednessResult):
    """A partial result; chunks add up with `+` to the result.

    Until the last chunk, the sum is unchecked and not trusted.
    """

    question: str | None = None
    answer: str = ""
    original_answer: str = ""
    documents: tuple[Document, ...] = ()
    claims: tuple[ClaimVerdict, ...] = ()
    trust_score: Probability | None = None
    verdict: AnswerVerdict = "unchecked"
    is_trusted: bool = False
    decision: Decision = Decision(action="review", reasons=("the check has not finished",))
    extracted: tuple[Claim, ...] = ()
    """All claims found in the answer, in order, with or without a verdict."""

    @property
    def pending(self) -> tuple[Claim, ...]:
        """The claims without a verdict."""
        known = {verdict.claim.id for verdict in self.claims}
        return tuple(claim for claim in self.extracted if claim.id not in known)

    def __add__(self, other: "GroundednessResultChunk") -> "GroundednessResultChunk":
        """Add two chunks: later fields win, and verdicts follow the order of the claims."""
        update = {name: getattr(other, name) for name in other.model_fields_set}
        verdicts = {v.claim.id: v for v in self.claims} | {v.claim.id: v for v in other.claims}
        extracted = tuple({c.id: c for c in (*self.extracted, *other.extracted)}.values())
        order = {claim.id: place for place, claim in enumerate(extracted)}
        update["extracted"] = extracted
        update["claims"] = tuple(
            sorted(verdicts.values(), key=lambda v: order.get(v.claim.id, len(order)))
        )
        return self.model_copy(update=update)
