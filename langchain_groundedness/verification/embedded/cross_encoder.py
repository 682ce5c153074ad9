"""The embedded verifier as a LangChain cross-encoder: for rerankers, compressors and evaluators."""

from collections.abc import Sequence
from typing import ClassVar

from langchain_core.cross_encoders import BaseCrossEncoder
from langchain_core.documents import Document
from pydantic import ConfigDict, Field
from typing_extensions import override

from langchain_groundedness._runtime.options import CheckedOptions
from langchain_groundedness.exceptions import InputFormatError
from langchain_groundedness.types import Claim, VerificationTask
from langchain_groundedness.verification.embedded.class_probabilities import ProbabilisticVerifier

__all__ = ["EmbeddedCrossEncoder"]


class EmbeddedCrossEncoder(CheckedOptions, BaseCrossEncoder):
    """Scores how likely a passage supports a claim, on the CPU, without a network or a key.

    The score of a pair is the `support_probability` that `EmbeddedVerifier` gives the claim with
    this passage as its only document, of any length. What the verifier cannot check scores 0: a
    passage without text, a claim without anything to look for, most pairs in languages other than
    English. The model was trained on statements: a reranker puts passages first that state what its
    query states, which is not the same as answering a question.

    Example:
        >>> encoder = EmbeddedCrossEncoder()
        >>> claim = "Rome is the capital of Italy."
        >>> says_so, silent = encoder.score(
        ...     [(claim, "The capital of Italy is Rome."), (claim, "Oslo lies on a fjord.")]
        ... )
        >>> says_so > 0.5 > silent
        True
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    _by_encoder: ClassVar[bool] = True  # audit records name the encoder

    threads: int | None = Field(default=None, ge=1, le=256)
    """Processor threads of the encoder; by default one per core, four at most."""

    @override
    def score(self, text_pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Score pairs, all together; one that occurs twice is scored once.

        Args:
            text_pairs: Claim and passage of each pair, in the order in which LangChain's
                `CrossEncoderReranker` gives query and document.

        Returns:
            A probability in 0 .. 1 for each pair.

        Raises:
            InputFormatError: Something is not a pair of two texts.
            ModelFileError: A file of the model is missing or damaged.
        """
        pairs = _checked(text_pairs)
        claims: dict[str, dict[str, Claim]] = {}
        for claim, passage in pairs:
            of_passage = claims.setdefault(passage, {})
            of_passage.setdefault(claim, Claim(id=str(len(of_passage)), text=claim))
        tasks = [
            VerificationTask(
                claims=tuple(of_passage.values()), documents=(Document(page_content=passage),)
            )
            for passage, of_passage in claims.items()
        ]
        scores = {
            (verdict.claim.text, passage): verdict.support_probability or 0.0
            for passage, verdicts in zip(
                claims, ProbabilisticVerifier(threads=self.threads).judge_all(tasks), strict=True
            )
            for verdict in verdicts
        }
        return [scores[pair] for pair in pairs]


def _checked(text_pairs: object) -> list[tuple[str, str]]:
    if isinstance(text_pairs, str) or not isinstance(text_pairs, Sequence):
        msg = f"text_pairs is of type {type(text_pairs).__name__}; {_ACCEPTED}"
        raise InputFormatError(msg)
    for place, pair in enumerate(text_pairs):
        parts = pair if isinstance(pair, list | tuple) else [pair]
        if len(parts) != 2 or not all(isinstance(part, str) for part in parts):  # noqa: PLR2004  (a pair)
            kinds = ", ".join(type(part).__name__ for part in parts[:3]) or "nothing"
            msg = f"pair {place} holds {kinds}; {_ACCEPTED}"
            raise InputFormatError(msg)
    return [(str(claim), str(passage)) for claim, passage in text_pairs]


_ACCEPTED = "accepted is a list of pairs (claim, passage) of two texts each"
