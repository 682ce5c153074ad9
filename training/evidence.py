"""What the encoder reads for a claim: evidence chosen as the verifier chooses it."""

from collections.abc import Sequence

from langchain_core.documents import Document

from langchain_groundedness.verification.embedded.index import EvidenceIndex
from langchain_groundedness.verification.embedded.statement import read_statement
from langchain_groundedness.verification.embedded.windows import (
    WORDS,
    chosen_units,
    join_units,
    match_statement,
)

__all__ = ["WORDS", "Evidence"]


class Evidence:
    """The documents of a claim."""

    def __init__(self, documents: Sequence[str]) -> None:
        """Index them.

        Args:
            documents: Their texts.
        """
        self._index = EvidenceIndex([Document(page_content=document) for document in documents])

    def read(self, claim: str, question: str | None = None, *, words: int = WORDS) -> str:
        """Choose what to read.

        Args:
            claim: The claim.
            question: What it answers.
            words: About how many words to read.

        Returns:
            The evidence; empty where the documents say nothing of it.
        """
        statement = read_statement(claim, question)
        match = match_statement(statement, self._index) if statement.items else None
        if match is None:
            return ""
        return join_units(chosen_units(match, self._index, words=words), match, self._index)
