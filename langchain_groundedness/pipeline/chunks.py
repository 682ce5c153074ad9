"""The chunks of a result that is still being made: each says what is new."""

from collections.abc import Iterator, Sequence

from langchain_groundedness.inputs.formats import CheckInput
from langchain_groundedness.pipeline.steps import CheckState
from langchain_groundedness.types import (
    Claim,
    ClaimVerdict,
    GroundednessResult,
    GroundednessResultChunk,
)

__all__ = ["ChunkMaker"]


class ChunkMaker:
    """Turns the growing states of one check into chunks that add up to its result."""

    def __init__(self) -> None:
        """Start with nothing said."""
        self.state: CheckState | None = None
        self._said: dict[str, ClaimVerdict] = {}

    def feed(self, state: CheckState) -> Iterator[GroundednessResultChunk]:
        """Give what a state adds to the one before."""
        known = None if self.state is None else self.state.claims
        self.state = state
        if state.claims is not None and (known is None or len(known) < len(state.claims)):
            yield self.claims(state.source, state.claims[len(known or ()) :])
        yield from self.verdicts(state.verdicts)

    def claims(self, source: CheckInput, claims: Sequence[Claim]) -> GroundednessResultChunk:
        """Give the chunk that says which claims were found."""
        return GroundednessResultChunk(
            question=source.question,
            answer=source.answer,
            original_answer=source.answer,
            documents=source.documents,
            extracted=tuple(claims),
            **source.labels,
        )

    def verdicts(self, verdicts: Sequence[ClaimVerdict]) -> Iterator[GroundednessResultChunk]:
        """Give the chunk that says what was found out, if it is new."""
        if new := self._new(verdicts):
            yield GroundednessResultChunk(claims=new)

    def close(self, result: GroundednessResult) -> GroundednessResultChunk:
        """Give what the result adds to all states."""
        fields = {name: getattr(result, name) for name in GroundednessResult.model_fields}
        fields["claims"] = self._new(result.claims)
        fields["extracted"] = tuple(verdict.claim for verdict in result.claims)
        return GroundednessResultChunk(**fields)

    def _new(self, verdicts: Sequence[ClaimVerdict]) -> tuple[ClaimVerdict, ...]:
        new = tuple(v for v in verdicts if self._said.get(v.claim.id) != v)
        self._said.update({v.claim.id: v for v in new})
        return new
