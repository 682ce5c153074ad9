"""Context recall and precision: was enough retrieved, and does what helps stand on top?"""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.runnables import RunnableLambda

from langchain_groundedness import ClaimVerdict, VerificationTask
from langchain_groundedness.evals import ContextPrecisionEvaluator, ContextRecallEvaluator
from langchain_groundedness.evals.claim_metrics import average_precision
from langchain_groundedness.testing import (
    ScriptedChatModel,
    ScriptedClaimExtractor,
    ScriptedVerifier,
)

REFERENCE = "One holds. Two holds."
CLAIMS = ["One holds.", "Two holds."]


def words_of(task: VerificationTask) -> list[ClaimVerdict]:
    """Support a claim by a document that has its first word; `?` breaks the judge."""

    def judge(claim: Any) -> Any:
        word, text = claim.text.split()[0], " ".join(d.page_content for d in task.documents)
        return None if "?" in text else "supported" if word in text else "unverifiable"

    return ScriptedVerifier(judge).invoke(task)


def parts() -> dict[str, Any]:
    return {
        "extractor": ScriptedClaimExtractor(CLAIMS),
        "verifier": RunnableLambda(words_of),
    }


def row(*contexts: str, **more: str) -> dict[str, Any]:
    return {"reference": REFERENCE, "contexts": list(contexts), **more}


def test_recall_is_the_share_of_the_references_claims_that_all_documents_support() -> None:
    evaluator = ContextRecallEvaluator(**parts())
    assert evaluator.invoke(row("One.", "Two.")).score == 1.0
    score = evaluator.invoke(row("Cats.", "Two."))
    assert score.score == 0.5
    assert score.details["reference_claims"] == [
        {"text": "One holds.", "verdict": "unverifiable"},
        {"text": "Two holds.", "verdict": "supported"},
    ]
    assert score.comment == "the documents support 1 of 2 claims of the reference"


@pytest.mark.parametrize("contexts", [(), ("",), (" ", "\n")])
def test_where_nothing_was_retrieved_the_score_is_zero_and_nobody_is_asked(
    contexts: tuple[str, ...],
) -> None:
    verifier = ScriptedVerifier({})
    made = {**parts(), "verifier": verifier}
    recall = ContextRecallEvaluator(**made).invoke(row(*contexts))
    precision = ContextPrecisionEvaluator(**made).invoke(row(*contexts))
    assert (recall.score, precision.score) == (0.0, 0.0)
    assert verifier.tasks == []


def test_a_row_that_does_not_know_its_documents_is_skipped() -> None:
    for evaluator in (ContextRecallEvaluator(**parts()), ContextPrecisionEvaluator(**parts())):
        score = evaluator.invoke({"reference": REFERENCE})
        assert (score.status, score.reason) == ("skipped", "the row has no documents")


def test_a_reference_that_states_nothing_is_skipped() -> None:
    nothing = {"reference": "The documents do not say.", "contexts": ["One."]}
    for evaluator in (ContextRecallEvaluator(), ContextPrecisionEvaluator()):
        score = evaluator.invoke(nothing)
        assert score.status == "skipped"
        assert score.reason == "the reference makes no claim that could be checked"


def test_a_claim_that_was_not_checked_fails_the_row_of_recall() -> None:
    score = ContextRecallEvaluator(**parts()).invoke(row("One?"))
    assert (score.status, score.score) == ("failed", None)
    assert (score.reason or "").startswith("2 of 2 claims could not be checked")


def test_precision_is_high_if_what_helps_stands_on_top() -> None:
    evaluator = ContextPrecisionEvaluator(**parts())
    first = evaluator.invoke(row("One.", "Cats.", "Dogs."))
    last = evaluator.invoke(row("Cats.", "Dogs.", "One."))
    assert first.score == 1.0
    assert last.score == pytest.approx(1 / 3)
    assert last.details == {
        "judged_by": "reference",
        "relevant": [0, 0, 1],
        "supported": [[], [], ["One holds."]],
    }


def test_precision_judges_every_document_by_itself() -> None:
    seen = []

    def judge(task: VerificationTask) -> list[ClaimVerdict]:
        seen.append([d.page_content for d in task.documents])
        return words_of(task)

    made = {**parts(), "verifier": RunnableLambda(judge)}
    ContextPrecisionEvaluator(**made).invoke(row("One.", "", "Two."))
    assert sorted(seen) == [["One."], ["Two."]]


def test_the_result_says_what_all_documents_together_support_with_quotes_from_each() -> None:
    score = ContextPrecisionEvaluator(**parts()).invoke(row("Cats.", "Two.", "One."))
    assert score.result is not None
    assert score.result.trust_score == 1.0
    assert [[c.document for c in v.citations] for v in score.result.claims] == [[2], [1]]
    assert [c.quote for v in score.result.claims for c in v.citations] == ["One.", "Two."]


def test_without_a_reference_the_answer_says_what_is_relevant() -> None:
    evaluator = ContextPrecisionEvaluator(**parts())
    score = evaluator.invoke({"answer": REFERENCE, "contexts": ["Cats.", "One."]})
    assert (score.score, score.details["judged_by"]) == (0.5, "answer")
    neither = evaluator.invoke({"contexts": ["One."]})
    assert (neither.status, neither.reason) == (
        "skipped",
        "the row has neither a reference nor an answer",
    )


def test_a_document_that_could_not_be_judged_fails_the_row_and_is_named() -> None:
    score = ContextPrecisionEvaluator(**parts()).invoke(row("One.", "Cats?"))
    assert score.status == "failed"
    assert (score.reason or "").startswith("document 2 of 2: 2 of 2 claims could not be checked")
    assert score.details["relevant"] == [1, None]


def test_a_document_that_supports_one_claim_is_relevant_whatever_became_of_the_others() -> None:
    def judge(task: VerificationTask) -> list[ClaimVerdict]:
        return ScriptedVerifier({CLAIMS[0]: "supported", CLAIMS[1]: None}).invoke(task)

    made = {**parts(), "verifier": RunnableLambda(judge)}
    assert ContextPrecisionEvaluator(**made).invoke(row("Both.")).score == 1.0


def test_more_claims_than_allowed_fail_the_row() -> None:
    score = ContextPrecisionEvaluator(**parts(), max_claims=1).invoke(row("One."))
    assert (score.status, score.reason) == ("failed", "2 claims, over max_claims=1")


@given(st.lists(st.booleans(), max_size=12))
def test_average_precision_lies_between_zero_and_one_and_is_one_for_the_best_order(
    relevant: list[bool],
) -> None:
    score = average_precision(relevant)
    best = average_precision(sorted(relevant, reverse=True))
    assert 0.0 <= score <= best == float(any(relevant))


@given(st.lists(st.booleans(), min_size=2, max_size=8), st.data())
def test_moving_what_is_relevant_up_never_lowers_average_precision(
    relevant: list[bool], data: st.DataObject
) -> None:
    place = data.draw(st.integers(1, len(relevant) - 1))
    above, here = relevant[place - 1], relevant[place]
    if here and not above:
        swapped = relevant.copy()
        swapped[place - 1], swapped[place] = here, above
        assert average_precision(swapped) >= average_precision(relevant)


async def test_async_gives_the_same() -> None:
    for evaluator in (ContextRecallEvaluator(**parts()), ContextPrecisionEvaluator(**parts())):
        asked = row("Cats.", "One.")
        assert await evaluator.ainvoke(asked) == await asyncio.to_thread(evaluator.invoke, asked)


async def test_documents_are_judged_side_by_side() -> None:
    waiting = asyncio.Barrier(3)

    async def judge(task: VerificationTask) -> list[ClaimVerdict]:
        async with asyncio.timeout(300):
            await waiting.wait()
        return await asyncio.to_thread(words_of, task)

    def refuse(_: VerificationTask) -> list[ClaimVerdict]:
        raise AssertionError

    made = {**parts(), "verifier": RunnableLambda(refuse, afunc=judge)}
    evaluator = ContextPrecisionEvaluator(**made)
    assert (await evaluator.ainvoke(row("One.", "Cats.", "Two."))).status == "scored"


def test_the_embedded_verifier_rates_a_ranking_without_a_key() -> None:
    asked = {
        "reference": "Mount Kenya is 5,199 metres high. Mount Kenya lies in Africa.",
        "contexts": [
            "Penguins breed on the coasts of Antarctica.",
            "Mount Kenya lies in Africa. Mount Kenya is 5,199 metres high.",
        ],
    }
    assert ContextPrecisionEvaluator().invoke(asked).score == 0.5
    assert ContextRecallEvaluator().invoke(asked).score == 1.0


def test_a_chat_model_finds_the_claims_once_and_judges_each_document_once() -> None:
    def reply(messages: Any) -> str:
        text = messages[-1].text
        if "claim" not in messages[0].text.split(".")[0]:
            return "none"  # the sentences stay as they are
        return (
            "{tag} C1: [1] supported" if "Rome" in text.split("C1")[0] else "{tag} C1: unverifiable"
        )

    model = ScriptedChatModel(replies=reply)
    score = ContextPrecisionEvaluator(model=model).invoke(
        {"reference": "Rome is old.", "contexts": ["Cats sleep.", "Rome is old."]}
    )
    assert (score.score, score.details["relevant"]) == (0.5, [0, 1])
    assert score.usage.model_calls == len(model.requests) == 3
