"""What a model is asked when an evaluator scores a row, word for word."""

from typing import Any

from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from prompt_text import prompt_text
from syrupy.assertion import SnapshotAssertion

from langchain_groundedness import LLMVerifier, VerificationTask
from langchain_groundedness.evals import (
    AnswerQualityEvaluator,
    AnswerRelevancyEvaluator,
    ContextRelevanceEvaluator,
    FaithfulnessEvaluator,
    RubricEvaluator,
)
from langchain_groundedness.testing import ScriptedChatModel
from langchain_groundedness.types import Claim

TEXT = "Rome is the capital of Italy. It has three metro lines."
ROW = {
    "question": "What is the capital?",
    "answer": "Rome.",
    "contexts": [TEXT],
    "reference": "It is Rome.",
}
EXAMPLE = {"questions": "What is the capital of Norway?", "contexts": ["It is Oslo."]}


def asked(evaluator: Any, row: Any = ROW, **options: Any) -> list[str]:
    model = ScriptedChatModel(replies=lambda _: "none")
    evaluator(model=model, **options).invoke(row)
    return [prompt_text(request) for request in model.requests]


def test_context_relevance_prompt_reads(snapshot: SnapshotAssertion) -> None:
    example = {"inputs": EXAMPLE, "outputs": {"relevant_statements": ["It is Oslo."]}}
    assert asked(ContextRelevanceEvaluator, examples=[example])[0] == snapshot


def test_answer_quality_prompt_reads(snapshot: SnapshotAssertion) -> None:
    assert asked(AnswerQualityEvaluator)[0] == snapshot


def test_answer_relevancy_prompt_reads(snapshot: SnapshotAssertion) -> None:
    assert (
        asked(AnswerRelevancyEvaluator, embeddings=DeterministicFakeEmbedding(size=8))[0]
        == snapshot
    )


def test_rubric_prompt_reads(snapshot: SnapshotAssertion) -> None:
    assert asked(RubricEvaluator, rubric={1: "bad", 2: "good"})[0] == snapshot


def test_an_example_of_faithfulness_stands_between_rules_and_claims(
    snapshot: SnapshotAssertion,
) -> None:
    example = {
        "inputs": {**EXAMPLE, "predicted_answers": "It is Oslo. It is old."},
        "outputs": {"statements": ["Oslo is it.", "Oslo is old."], "statement_scores": [1, 0]},
    }
    _, taught, *_ = asked(FaithfulnessEvaluator, examples=[example])
    model = ScriptedChatModel(replies=lambda _: "none")
    task = VerificationTask(
        claims=(Claim(id="1", text="Rome."),),
        documents=(Document(TEXT),),
        question="What is the capital?",
    )
    LLMVerifier(model=model).invoke(task)
    rules, shown = prompt_text(model.requests[0]).split("\nHuman: ")
    assert taught.startswith(f"{rules}\n")
    assert taught.endswith(f"\nHuman: {shown}")
    assert taught[len(rules) : -len(shown)] == snapshot
