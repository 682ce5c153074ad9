"""The ladder on a model of 0.1 billion parameters: whatever it replies, no verdict is lost.

The server refuses `json_schema` with HTTP 500, breaks schemas in JSON mode, and gives silly
verdicts by function calling. What the verdicts are does not matter here.
"""

from collections.abc import Sequence
from typing import Any

import httpx
import pytest
from langchain_core.documents import Document
from langchain_core.runnables import Runnable
from langchain_openai import ChatOpenAI
from typing_extensions import override

from langchain_groundedness import LLMClaimExtractor, LLMVerifier
from langchain_groundedness.query import QUERY_CLASSES, LLMQueryClassifier
from langchain_groundedness.types import Claim, ClaimVerdict, VerificationTask

pytestmark = [
    pytest.mark.llm,
    pytest.mark.timeout(600),
    pytest.mark.allow_hosts(["127.0.0.1"]),
]

DOCUMENTS = (
    Document("Orchard Robotics was founded in 2014 in Lyon. It builds pruning machines."),
    Document("In 2023 the company sold 1,200 machines. Its director is Ana Ruiz."),
)
CLAIMS = (
    "Orchard Robotics was founded in 2014.",
    "Orchard Robotics was founded in Paris.",
    "The company employs 90 people.",
)
TASK = VerificationTask(
    claims=tuple(Claim(id=f"c{n}", text=text) for n, text in enumerate(CLAIMS)),
    documents=DOCUMENTS,
    question="What is Orchard Robotics?",
)


class Only(ChatOpenAI):
    """A model that knows one method of structured output only."""

    method: str

    @override
    def with_structured_output(self, schema: Any = None, **kwargs: Any) -> Runnable[Any, Any]:
        method = kwargs.pop("method", self.method)
        if method != self.method:
            raise NotImplementedError
        return super().with_structured_output(schema, method=method, **kwargs)


def chat(base_url: str, method: str | None = None, **more: Any) -> ChatOpenAI:
    options: dict[str, Any] = {
        **more,
        "model": "smollm2",
        "base_url": base_url,
        "api_key": "none",
        "use_responses_api": False,
        "temperature": 0,
        "max_retries": 0,
        "timeout": 120,
        # The server reads the older name of this option only.
        "extra_body": {"max_tokens": 64},
    }
    return ChatOpenAI(**options) if method is None else Only(method=method, **options)


def check(verdicts: Sequence[ClaimVerdict]) -> None:
    assert [verdict.claim for verdict in verdicts] == list(TASK.claims)
    for verdict in verdicts:
        assert (verdict.verdict == "unchecked") == (verdict.reason is not None)
        assert verdict.verdict != "supported" or verdict.citations
        assert all(citation.holds_in(DOCUMENTS) for citation in verdict.citations)


@pytest.mark.parametrize("method", [None, "json_schema", "json_mode", "function_calling"])
def test_batched_verification_ends_with_one_verdict_per_claim(
    base_url: str, method: str | None
) -> None:
    verdicts = LLMVerifier(model=chat(base_url, method)).invoke(TASK)
    check(verdicts)
    # A small model may lose some claims; a server that did not answer says nothing about any.
    assert not [v.reason for v in verdicts if v.reason and "Error" in v.reason]


async def test_per_claim_verification_gives_probabilities(base_url: str) -> None:
    async with httpx.AsyncClient() as client:
        model = chat(base_url, http_async_client=client)
        verdicts = await LLMVerifier(model=model, strategy="per_claim").ainvoke(TASK)
    check(verdicts)
    checked = [verdict for verdict in verdicts if verdict.citations]
    assert all(verdict.support_probability is not None for verdict in checked)
    assert checked


async def test_extraction_gives_claims_with_spans(base_url: str) -> None:
    answer = "Hello! Orchard Robotics was founded in 2014. It sold 1,200 machines in 2023."
    async with httpx.AsyncClient() as client:
        extractor = LLMClaimExtractor(model=chat(base_url, http_async_client=client))
        claims = await extractor.ainvoke(answer)
    assert claims
    for claim in claims:
        assert claim.start is not None
        assert claim.end is not None
        assert answer[claim.start : claim.end].strip()


@pytest.mark.parametrize("method", [None, "json_mode", "function_calling"])
def test_queries_get_a_class_of_the_closed_set_or_are_unknown_with_the_reason(
    base_url: str, method: str | None
) -> None:
    classifier = LLMQueryClassifier(model=chat(base_url, method))
    for query in ("Hello there!", "How long does the battery of the P2 last?"):
        found = classifier.invoke(query)
        assert found.label in {*QUERY_CLASSES, "unknown"}
        assert (found.label == "unknown") == (found.reason is not None)
        assert not (found.reason and "Error" in found.reason)
