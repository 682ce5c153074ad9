"""The values that flow between the stages: frozen, validated, serialisable with pydantic."""

from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any, Literal, Self

from langchain_core.documents import Document
from pydantic import BaseModel, ConfigDict, Field, model_validator

__all__ = [
    "HTML_FORMATTERS",
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
    "ExtractionTask",
    "GroundednessResult",
    "GroundednessResultChunk",
    "OnContradicted",
    "OnUnverifiable",
    "Passage",
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
"""What the policy says should happen to an answer."""

OnContradicted = Literal["annotate", "correct", "strip", "block"]
"""What happens to the text of a contradicted claim: it is kept, corrected, or removed. With `block`
the decision is `block`, and a guard replaces the rest of the answer with its message."""

OnUnverifiable = Literal["keep", "strip"]
"""What happens to the text of an unverifiable claim: it is kept, or removed."""

Offset = Annotated[int, Field(ge=0)]
Probability = Annotated[float, Field(ge=0.0, le=1.0)]


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Span(_Value):
    start: Offset
    end: Offset

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.end < self.start:
            msg = f"end must not be before start, got {self.start}..{self.end}"
            raise ValueError(msg)
        return self


class Claim(_Value):
    """One checkable statement of an answer.

    Example:
        >>> Claim(id="c1", text="Rome is the capital of Italy.", start=0, end=29).text
        'Rome is the capital of Italy.'
    """

    id: str
    """Unique within one answer."""
    text: str
    """The statement, self-contained: pronouns resolved where the extractor can."""
    start: Offset | None = None
    """First character, in the answer, of the text the claim came from; `None` if unknown."""
    end: Offset | None = None
    """One past its last character; `None` exactly when `start` is."""

    @model_validator(mode="after")
    def _whole_span(self) -> Self:
        if (self.start is None) != (self.end is None):
            msg = "start and end must both be given or both be None"
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
    score: float | None = None
    """The retriever's score of the document, if it gave one; higher is better."""


class EvidenceBatch(_Value):
    """Passages that go to one judge call together."""

    passages: tuple[Passage, ...]
    tokens: int = Field(ge=0)
    """Size as the packer counted it."""


class Citation(_Span):
    """Verbatim evidence: `documents[document].page_content[start:end] == quote`."""

    document: Offset
    """Index of the document in the task."""
    document_id: str | None = None
    quote: str
    metadata: dict[str, Any] = Field(default_factory=dict)
    """The document's metadata, as it came."""

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
            True if it does and is not blank.
        """
        if self.document >= len(documents) or not self.quote.strip():
            return False
        return documents[self.document].page_content[self.start : self.end] == self.quote


class ClaimVerdict(_Value):
    """What was found out about one claim."""

    claim: Claim
    verdict: VerdictLabel
    support_probability: Probability | None = None
    """Calibrated probability that the documents support the claim; `None` from a verifier that
    has none to give."""
    explanation: str = ""
    citations: tuple[Citation, ...] = ()
    correction: str | None = None
    """For a contradicted claim: the value, or the statement, that the documents give instead."""
    conflicting: bool = False
    """True if some evidence supports the claim and some contradicts it."""
    reason: str | None = None
    """Why the claim is `unchecked`; `None` exactly when it was checked."""
    verifier: str = ""
    """Which verifier said so."""

    @model_validator(mode="after")
    def _reason_iff_unchecked(self) -> Self:
        if (self.verdict == "unchecked") != (self.reason is not None):
            msg = "a reason is needed for `unchecked`, and for no other verdict"
            raise ValueError(msg)
        return self

    @classmethod
    def unchecked(cls, claim: Claim, reason: str, *, verifier: str = "") -> "ClaimVerdict":
        """Say that a claim could not be checked.

        Args:
            claim: The claim.
            reason: Why, in words for the reader of the result.
            verifier: Which verifier failed, if one did.

        Returns:
            The verdict.
        """
        return cls(claim=claim, verdict="unchecked", reason=reason, verifier=verifier)


class ExtractionTask(_Value):
    """What a claim extractor reads."""

    answer: str
    question: str | None = None


class VerificationTask(_Value):
    """What a verifier reads: claims of one answer, and all documents they are judged against."""

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
        """Narrow the task to some claims.

        Args:
            claims: The claims to keep.

        Returns:
            A task with those claims and everything else unchanged.
        """
        return self.model_copy(update={"claims": tuple(claims)})


class Edit(_Span):
    """One change made to an answer: `original_answer[start:end]` became `replacement`."""

    claim_id: str
    original: str
    replacement: str
    """The text in the answer now, marker included; empty if the text was stripped."""
    correction: str = ""
    """The replacement without its marker."""


class CorrectionTask(_Value):
    """What a corrector reads: an answer, the verdicts on its claims, and what to do with them."""

    answer: str
    verdicts: tuple[ClaimVerdict, ...]
    documents: tuple[Document, ...] = ()
    question: str | None = None
    on_contradicted: OnContradicted = "correct"
    on_unverifiable: OnUnverifiable = "keep"


class CorrectedAnswer(_Value):
    """What a corrector gives: the new text and the edits that made it, in order of position."""

    text: str
    edits: tuple[Edit, ...] = ()


class Decision(_Value):
    """What the policy says should happen, and why."""

    action: Action
    reasons: tuple[str, ...] = ()


class Usage(_Value):
    """What the model calls of one check cost."""

    model_calls: int = 0
    """Calls that were begun, those among them that failed or were not waited for. What the
    model's client repeats by itself (`max_retries`) is one call."""
    input_tokens: int | None = None
    """Prompt tokens, as the provider counted them; calls that failed have none, nor have those of
    which the client could not read the reply. `None` if nothing was counted."""
    output_tokens: int | None = None
    cached_verdicts: int = 0
    """Verdicts that a `CachedVerifier` had, or found for an equal claim of the same batch."""


class GroundednessResult(_Value):
    """The outcome of checking one answer."""

    question: str | None
    answer: str
    """The answer to show: corrected or stripped where the options asked for that."""
    original_answer: str
    """The answer as it came. Spans of claims and edits refer to this text."""
    documents: tuple[Document, ...]
    claims: tuple[ClaimVerdict, ...]
    trust_score: Probability | None
    """supported / (supported + contradicted + unverifiable); `None` if nothing was checked."""
    verdict: AnswerVerdict
    is_trusted: bool
    decision: Decision
    edits: tuple[Edit, ...] = ()
    usage: Usage = Usage()
    query_class: str | None = None
    """Of which class the question is, as a classifier before the check has said; `None` if none
    has."""
    risk_tier: str | None = None
    """How much depends on the answer, in the words of the application; `None` if not known."""
    retrieval_score: float | None = None
    """How close the best document is to the question; `None` if not known."""

    def __eq__(self, other: object) -> bool:
        """Compare by value, so that the sum of the chunks of a stream equals the result."""
        if not isinstance(other, GroundednessResult):
            return NotImplemented
        return all(
            getattr(self, name) == getattr(other, name) for name in GroundednessResult.model_fields
        )

    __hash__ = None  # type: ignore[assignment]  # documents are mutable, so no value has a hash

    def _repr_html_(self) -> str | None:
        """Show the answer with its claims marked, in a notebook."""
        shown = HTML_FORMATTERS.get(GroundednessResult)
        return shown(self) if shown else None


HTML_FORMATTERS: dict[type[BaseModel], Callable[[Any], str]] = {}
"""How notebooks show a value, by its class; what draws values enters itself."""


class GroundednessResultChunk(GroundednessResult):
    """A piece of a result that is still being made; pieces add up with `+` to the result.

    Until the last piece, a sum reads as not checked and not trusted.
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
    """All claims found in the answer, in order, whether or not their verdicts are known yet."""

    @property
    def pending(self) -> tuple[Claim, ...]:
        """The claims whose verdicts are not known yet."""
        known = {verdict.claim.id for verdict in self.claims}
        return tuple(claim for claim in self.extracted if claim.id not in known)

    def __add__(self, other: "GroundednessResultChunk") -> "GroundednessResultChunk":
        """Join two pieces: later fields win, verdicts are gathered in the order of the claims."""
        update = {name: getattr(other, name) for name in other.model_fields_set}
        verdicts = {v.claim.id: v for v in self.claims} | {v.claim.id: v for v in other.claims}
        extracted = tuple({c.id: c for c in (*self.extracted, *other.extracted)}.values())
        order = {claim.id: place for place, claim in enumerate(extracted)}
        update["extracted"] = extracted
        update["claims"] = tuple(
            sorted(verdicts.values(), key=lambda v: order.get(v.claim.id, len(order)))
        )
        return self.model_copy(update=update)
