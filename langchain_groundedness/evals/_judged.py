"""What evaluators share that show a whole row to a chat model and get scores back."""

from collections.abc import Sequence

from langchain_core.documents import Document

from langchain_groundedness.evals.values import EvaluationRow
from langchain_groundedness.evidence import approximate_tokens
from langchain_groundedness.exceptions import GroundednessError
from langchain_groundedness.prompts import fence, question_part

__all__ = ["evidence_part", "row_parts"]


class _TooLongError(GroundednessError):
    """The documents do not fit into one call."""


def row_parts(row: EvaluationRow, *, max_tokens: int) -> dict[str, str]:
    """Give the variables of a prompt that shows a whole row.

    Args:
        row: The row.
        max_tokens: Most tokens its documents may have: nothing is cut.

    Returns:
        `evidence`, `reference`, `question` and `answer`; empty what the row has not.

    Raises:
        GroundednessError: The documents are longer.
    """
    reference = f"{fence('reference', row.reference)}\n" if row.reference else ""
    return {
        "evidence": evidence_part(row.documents or (), max_tokens=max_tokens),
        "reference": reference,
        "question": question_part(row.question),
        "answer": fence("answer", row.answer or ""),
    }


def evidence_part(documents: Sequence[Document], *, max_tokens: int) -> str:
    """Give documents as prompts show them.

    Args:
        documents: The documents.
        max_tokens: Most tokens they may have.

    Returns:
        Their texts, fenced, and a line end; nothing if they are blank.

    Raises:
        GroundednessError: They are longer.
    """
    texts = [document.page_content for document in documents if document.page_content.strip()]
    tokens = sum(map(approximate_tokens, texts))
    if tokens > max_tokens:
        msg = (
            f"the documents have about {tokens} tokens and max_tokens is {max_tokens}: they are "
            "judged in one call, and nothing is cut off"
        )
        raise _TooLongError(msg)
    joined = "\n\n".join(texts)
    return f"{fence('evidence', joined)}\n" if texts else ""
