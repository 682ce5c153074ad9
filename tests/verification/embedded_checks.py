"""One claim, judged by the embedded verifier."""

from langchain_core.documents import Document

from langchain_groundedness import Claim, ClaimVerdict, EmbeddedVerifier, VerificationTask

__all__ = ["check", "values_told"]


def check(claim: str, *documents: str) -> ClaimVerdict:
    task = VerificationTask(
        claims=(Claim(id="1", text=claim),), documents=tuple(map(Document, documents))
    )
    return EmbeddedVerifier().invoke(task)[0]


def values_told(verdict: ClaimVerdict) -> tuple[str, str]:
    """Read the value of the claim and that of the documents from an explanation."""
    given, _, claimed = verdict.explanation.partition(", the claim says ")
    return claimed.removesuffix("."), given.removeprefix("The documents say ")
