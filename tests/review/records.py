"""Records to review."""

from datetime import UTC, datetime, timedelta
from typing import Any

from langchain_core.documents import Document

from langchain_groundedness import Citation, Claim, ClaimVerdict, Decision, GroundednessResult
from langchain_groundedness.audit import AuditRecord

ANSWER = "Revenue was $2.4B in Q3, up 12% from last year. The company employs 5,400 people."
REPORT = Document(
    "Revenue was $2.1B in Q3, up 12% from last year. The company employs 5,400 people.",
    id="report",
    metadata={"title": "Q3 report", "page": 4},
)
NEWS = Document("Analysts had expected revenue of $2.0B.", id="news")
DOCUMENTS = (REPORT, NEWS)
EPOCH = datetime(2026, 3, 1, 12, tzinfo=UTC)

HOSTILE = (
    "<script>document.title='pwned'</script><img src=x onerror=\"document.title='pwned'\">"
    "</textarea></title></style>-->]]>{{ 7*7 }}{% x %}\"'` onload=x javascript:x() &lt;b&gt;"
)


def cite(document: int, quote: str) -> Citation:
    start = DOCUMENTS[document].page_content.index(quote)
    return Citation.from_document(DOCUMENTS, document, start, start + len(quote))


def claim(name: str, text: str, verdict: Any, *quotes: tuple[int, str], **fields: Any) -> Any:
    start = ANSWER.find(text)
    found = start >= 0
    return ClaimVerdict(
        claim=Claim(
            id=name,
            text=text,
            start=start if found else None,
            end=start + len(text) if found else None,
        ),
        verdict=verdict,
        citations=tuple(cite(*quote) for quote in quotes),
        verifier="Scripted",
        **fields,
    )


CLAIMS = (
    claim(
        "a",
        "Revenue was $2.4B in Q3",
        "contradicted",
        (0, "Revenue was $2.1B in Q3, up 12% from last year."),
        correction="$2.1B",
        explanation="The documents give another amount.",
        support_probability=0.03,
    ),
    claim(
        "b",
        "Revenue was $2.4B in Q3, up 12% from last year.",
        "supported",
        (0, "up 12% from last year. The company"),
        (1, "Analysts had expected revenue of $2.0B."),
        conflicting=True,
    ),
    claim("c", "The company employs 5,400 people.", "supported", (0, "employs 5,400 people")),
    claim("d", "It leads its market.", "unchecked", reason="the judge gave no verdict"),
)


def result(**fields: Any) -> GroundednessResult:
    known: dict[str, Any] = {
        "question": "What was Q3 revenue?",
        "answer": ANSWER,
        "original_answer": ANSWER,
        "documents": DOCUMENTS,
        "claims": CLAIMS,
        "trust_score": 0.5,
        "verdict": "has_contradictions",
        "is_trusted": False,
        "decision": Decision(action="review", reasons=("1 of 4 claims is contradicted",)),
    }
    return GroundednessResult(**{**known, **fields})


def record(number: int = 0, *, of: dict[str, Any] | None = None, **fields: Any) -> AuditRecord:
    known = {"id": f"record-{number}", "time": EPOCH + timedelta(hours=number)}
    return AuditRecord.from_result(result(**(of or {})), **{**known, **fields})


def bare(number: int, **fields: Any) -> AuditRecord:
    """A record that waits, with little in it."""
    known: dict[str, Any] = {
        "id": f"record-{number}",
        "time": EPOCH + timedelta(seconds=number),
        "verdict": "grounded",
        "decision": Decision(action="review"),
        "review": {"status": "waiting"},
    }
    return AuditRecord(**{**known, **fields})
