"""Records with anything in them."""

from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st
from langchain_core.documents import Document

from langchain_groundedness import Citation, Claim, ClaimVerdict, Decision, GroundednessResult
from langchain_groundedness.audit import AuditRecord
from langchain_groundedness.types import Usage

TEXTS = st.text(st.characters(codec=None), max_size=30)  # halves of characters, too
WORDS = st.text(min_size=1, max_size=30)
PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | TEXTS
METADATA = st.dictionaries(TEXTS, PLAIN | st.lists(PLAIN, max_size=2) | st.binary(), max_size=3)


@st.composite
def claims(draw: st.DrawFn, name: str) -> ClaimVerdict:
    citations = draw(
        st.lists(
            st.builds(
                Citation,
                document=st.integers(0, 2),
                start=st.just(0),
                end=st.integers(0, 9),
                quote=TEXTS,
                metadata=METADATA,
            ),
            max_size=2,
        )
    )
    verdict = draw(st.sampled_from(["supported", "contradicted", "unverifiable"]))
    return ClaimVerdict(
        claim=Claim(id=name, text=draw(TEXTS)),
        verdict=verdict,
        support_probability=draw(st.none() | st.floats(0, 1)),
        explanation=draw(TEXTS),
        citations=tuple(citations),
        correction=draw(st.none() | TEXTS),
    )


@st.composite
def results(draw: st.DrawFn) -> GroundednessResult:
    documents = tuple(Document(page_content=draw(TEXTS), metadata=draw(METADATA)) for _ in range(3))
    names = [f"c{n}" for n in range(draw(st.integers(0, 3)))]
    action = draw(st.sampled_from(["pass", "flag", "block", "review"]))
    return GroundednessResult(
        question=draw(st.none() | TEXTS),
        answer=draw(TEXTS),
        original_answer=draw(TEXTS),
        documents=documents,
        claims=tuple(draw(claims(name)) for name in names),
        trust_score=draw(st.none() | st.floats(0, 1)),
        verdict="partially_grounded",
        is_trusted=False,
        decision=Decision(action=action, reasons=("a reason",)),
        usage=Usage(model_calls=draw(st.integers(0, 9))),
        query_class=draw(st.none() | TEXTS),
    )


MOMENTS = st.integers(0, 7_000_000_000_000_000).map(
    lambda micros: datetime.fromtimestamp(0, UTC) + timedelta(microseconds=micros)
)


@st.composite
def records(draw: st.DrawFn) -> AuditRecord:
    return AuditRecord.from_result(
        draw(results()),
        time=draw(MOMENTS),
        thread_id=draw(st.none() | TEXTS),
        suggested_answer=draw(st.none() | TEXTS),
    )
