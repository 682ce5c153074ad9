"""BLEU, chrF, ROUGE and embeddings: whole texts, known numbers, nothing that is not one."""

import asyncio
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.embeddings import Embeddings

from langchain_groundedness import ConfigurationError, MissingDependencyError
from langchain_groundedness.evals import (
    BleuEvaluator,
    ChrfEvaluator,
    EvaluationRow,
    Evaluator,
    RougeEvaluator,
    SemanticSimilarityEvaluator,
)

REFERENCE = "The museum opened in 1902. It holds four thousand paintings. Entry is free on Sundays."
NONSENSE = "The museum opened in 1902. Purple ideas sleep furiously today. Cats sing on Sundays."
WORDINGS: list[Evaluator] = [BleuEvaluator(), ChrfEvaluator(), RougeEvaluator()]


class Directions(Embeddings):
    """Vectors by text."""

    def __init__(self, **vectors: list[float]) -> None:
        self.vectors = vectors
        self.asked: list[list[str]] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.asked.append(texts)
        return [self.vectors[text] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        raise AssertionError(text)


def score(evaluator: Evaluator, answer: str, reference: str = REFERENCE) -> Any:
    return evaluator.invoke({"answer": answer, "reference": reference})


@pytest.mark.parametrize("evaluator", WORDINGS, ids=lambda each: each.key)
def test_equal_texts_score_one_and_texts_with_nothing_in_common_zero(evaluator: Evaluator) -> None:
    assert score(evaluator, REFERENCE).score == 1.0
    assert score(evaluator, "Paris", "Paris").score == 1.0
    assert score(evaluator, "zzz", "Ubuntu").score == 0.0


@pytest.mark.parametrize("evaluator", WORDINGS, ids=lambda each: each.key)
def test_sentences_after_the_first_count(evaluator: Evaluator) -> None:
    assert 0.2 < score(evaluator, NONSENSE).score < 0.7
    shuffled = "Entry is free on Sundays. It holds four thousand paintings. "
    assert score(evaluator, shuffled + "The museum opened in 1902.").score > 0.3


def test_bleu_is_the_sentence_score_of_sacrebleu_on_whole_texts() -> None:
    # sacrebleu 2.6.0: corpus_bleu([answer], [[reference]]).score / 100
    answer = "Rome is the capital of Italy. Purple cats sing loudly. Green ideas sleep well."
    reference = "Rome is the capital of Italy. It lies on the Tiber. It has three million people."
    assert score(BleuEvaluator(), answer, reference).score == pytest.approx(0.3296593672616198)


def test_bleu_punishes_brevity_and_says_so() -> None:
    found = score(BleuEvaluator(), "The museum opened in 1902.")
    assert found.score == pytest.approx(found.details["brevity_penalty"])
    assert found.details["brevity_penalty"] < 0.2


def test_case_counts_unless_told_otherwise() -> None:
    shouted = REFERENCE.upper()
    assert score(BleuEvaluator(), shouted).score < 0.2
    assert score(BleuEvaluator(lowercase=True), shouted).score == 1.0
    assert score(ChrfEvaluator(lowercase=True), shouted).score == 1.0


def test_chrf_with_words_is_another_number() -> None:
    plain, with_words = ChrfEvaluator(), ChrfEvaluator(word_order=2)
    assert score(plain, NONSENSE).score != score(with_words, NONSENSE).score


def test_rouge_gives_the_measure_asked_for_and_tells_all_three() -> None:
    answer = "The museum opened in 1902."
    found = score(RougeEvaluator(measure="recall"), answer)
    assert found.score == found.details["recall"] == pytest.approx(5 / 15)
    assert score(RougeEvaluator(measure="precision"), answer).score == 1.0
    assert found.details["f1"] == pytest.approx(0.5)
    assert score(RougeEvaluator(kind="rouge2", measure="recall"), answer).score == pytest.approx(
        4 / 14
    )


def test_rouge_does_not_score_a_language_whose_words_it_cannot_see() -> None:
    tokyo = "東京は日本の首都です"
    blind = score(RougeEvaluator(), tokyo, tokyo)
    assert (blind.status, blind.score) == ("failed", None)
    assert "give tokenizer=" in (blind.reason or "")
    assert score(RougeEvaluator(tokenizer=list), tokyo, tokyo).score == 1.0


@pytest.mark.parametrize("evaluator", WORDINGS, ids=lambda each: each.key)
def test_an_empty_answer_scores_zero_and_a_missing_one_is_skipped(evaluator: Evaluator) -> None:
    assert score(evaluator, "").score == 0.0
    missing = evaluator.invoke(EvaluationRow(id="1", reference=REFERENCE))
    assert (missing.status, missing.reason) == ("skipped", "the row has no answer")
    assert score(evaluator, "Something.", "").status == "skipped"


@given(st.text(max_size=60), st.text(min_size=1, max_size=60))
def test_wording_scores_lie_between_zero_and_one(answer: str, reference: str) -> None:
    for evaluator in WORDINGS:
        found = score(evaluator, answer, reference)
        assert found.score is None or 0.0 <= found.score <= 1.0


@pytest.mark.parametrize("evaluator", WORDINGS, ids=lambda each: each.key)
async def test_async_gives_the_same_without_blocking_the_loop(evaluator: Evaluator) -> None:
    row = {"answer": NONSENSE, "reference": REFERENCE}
    assert await evaluator.ainvoke(row) == await asyncio.to_thread(evaluator.invoke, row)


@pytest.mark.parametrize(
    ("evaluator", "package"),
    [(BleuEvaluator(), "sacrebleu"), (RougeEvaluator(), "rouge_score")],
    ids=["bleu", "rouge"],
)
def test_a_missing_library_is_named_with_its_extra(
    evaluator: Evaluator, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [*sys.modules, package]:
        if name.split(".")[0] == package:
            monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingDependencyError, match=r"langchain-groundedness\[metrics\]"):
        score(evaluator, REFERENCE)


def test_similarity_is_the_cosine_whatever_the_length_of_the_vectors() -> None:
    embeddings = Directions(yes=[3.0, 4.0], maybe=[20.0, 0.0], no=[-3.0, -4.0])
    evaluator = SemanticSimilarityEvaluator(embeddings=embeddings)
    assert score(evaluator, "yes", "maybe").score == pytest.approx(0.6)
    assert score(evaluator, "yes", "no").score == pytest.approx(-1.0)
    assert embeddings.asked == [["yes", "maybe"], ["yes", "no"]]  # whole, one call per row


def test_similarity_with_a_threshold_is_yes_or_no() -> None:
    embeddings = Directions(yes=[3.0, 4.0], maybe=[1.0, 0.0])
    for threshold, expected in ((0.59, 1.0), (0.61, 0.0)):
        evaluator = SemanticSimilarityEvaluator(embeddings=embeddings, threshold=threshold)
        found = score(evaluator, "yes", "maybe")
        assert found.score == expected
        assert found.details["cosine"] == pytest.approx(0.6)


def test_a_blank_answer_is_similar_to_nothing_and_is_not_embedded() -> None:
    embeddings = Directions()
    assert score(SemanticSimilarityEvaluator(embeddings=embeddings), " ", "yes").score == 0.0
    assert embeddings.asked == []


@pytest.mark.parametrize("vector", [[0.0, 0.0], [float("nan"), 1.0], [float("inf"), 1.0]])
def test_an_embedding_without_direction_fails_the_row(vector: list[float]) -> None:
    embeddings = Directions(yes=[1.0, 0.0], broken=vector)
    found = score(SemanticSimilarityEvaluator(embeddings=embeddings), "broken", "yes")
    assert (found.status, found.score) == ("failed", None)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (BleuEvaluator, {"tokenize": "flores200"}),  # would be downloaded
        (RougeEvaluator, {"kind": "rougeW"}),
        (ChrfEvaluator, {"beta": 0}),
        (SemanticSimilarityEvaluator, {}),
    ],
)
def test_options_that_cannot_work_are_refused(kind: Any, options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        kind(**options)
