import pytest
from langchain_core.messages import AIMessage, HumanMessage
from syrupy.assertion import SnapshotAssertion

from langchain_groundedness.evals.prompts import (
    ANSWER_QUALITY_PROMPT,
    ANSWER_RELEVANCY_PROMPT,
    CONTEXT_RELEVANCE_PROMPT,
    FEW_SHOT_VERIFICATION_PROMPT,
    RUBRIC_PROMPT,
)
from langchain_groundedness.llm import prompts
from langchain_groundedness.llm.prompts import VERIFICATION_PROMPT, fence, question_part


@pytest.fixture(autouse=True)
def fixed_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prompts, "_KEY", b"a key for snapshots")


EVIDENCE = "1 Rome is the capital of Italy.\n2 It has three metro lines."
EXAMPLES = [HumanMessage("an example"), AIMessage("its reply")]


def parts() -> dict[str, str]:
    return {
        "evidence": f"{fence('evidence', EVIDENCE)}\n",
        "reference": f"{fence('reference', 'It is Rome.')}\n",
        "question": question_part("What is the capital?"),
        "answer": fence("answer", "Rome."),
    }


def test_context_relevance_prompt_reads(snapshot: SnapshotAssertion) -> None:
    filled = CONTEXT_RELEVANCE_PROMPT.format(
        evidence=fence("evidence", EVIDENCE),
        question=fence("question", "What is the capital?"),
        examples=EXAMPLES,
    )
    assert filled == snapshot


def test_answer_quality_prompt_reads(snapshot: SnapshotAssertion) -> None:
    assert ANSWER_QUALITY_PROMPT.format(**parts()) == snapshot


def test_answer_relevancy_prompt_reads(snapshot: SnapshotAssertion) -> None:
    filled = ANSWER_RELEVANCY_PROMPT.format(count="3", answer=fence("answer", "Rome."))
    assert filled == snapshot


def test_rubric_prompt_reads(snapshot: SnapshotAssertion) -> None:
    assert RUBRIC_PROMPT.format(rubric="1: bad\n2: good", **parts()) == snapshot


def test_few_shot_verification_prompt_is_that_of_verification_with_examples_between() -> None:
    values = {
        "evidence": fence("evidence", EVIDENCE),
        "question": question_part("What is the capital?"),
        "claims": fence("claims", "C1: Rome is it."),
    }
    plain = VERIFICATION_PROMPT.format_messages(**values)
    shown = FEW_SHOT_VERIFICATION_PROMPT.format_messages(**values, examples=EXAMPLES)
    assert shown == [plain[0], *EXAMPLES, plain[1]]
    assert FEW_SHOT_VERIFICATION_PROMPT.format_messages(**values) == plain
