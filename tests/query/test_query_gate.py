import asyncio
import math
import threading
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.runnables import RunnableBranch, RunnableLambda
from pydantic import BaseModel, ValidationError

from langchain_groundedness import ConfigurationError, InputFormatError, VerificationError
from langchain_groundedness.query import (
    GateCalibration,
    HashedNgramEmbeddings,
    RetrievalGate,
    RetrievalStrength,
)

QUESTION = "How long does the battery last?"
VECTORS = {
    QUESTION: [1.0, 0.0],
    "near": [0.8, 0.6],
    "at": [1.0, math.sqrt(3.0)],
    "far": [0.0, 1.0],
    "against": [-2.0, 0.0],
    "zero": [0.0, 0.0],
    "nan": [float("nan"), 1.0],
    "inf": [float("inf"), 1.0],
    "huge": [1e300, 1e300],
    "tiny": [1e-300, 0.0],
}


class Scripted(Embeddings):
    """Vectors by text, or an error, with a record of the calls."""

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.threads: set[int] = set()
        self.error: Exception | None = None
        self.spoil: Any = None

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.threads.add(threading.get_ident())
        self.calls.append(texts)
        if self.error:
            raise self.error
        vectors = [VECTORS[text] for text in texts]
        return self.spoil(vectors) if self.spoil else vectors

    def embed_query(self, text: str) -> list[float]:
        self.threads.add(threading.get_ident())
        self.calls.append(text)
        return VECTORS.get(text, [float("nan"), 0.0])


@pytest.fixture
def embeddings() -> Scripted:
    return Scripted()


def strength(embeddings: Embeddings, *documents: str, **options: Any) -> RetrievalStrength:
    found: Any = RetrievalGate(embeddings=embeddings, **options).invoke(
        {"question": QUESTION, "documents": list(documents)}
    )["retrieval_score"]
    return found  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("documents", "best", "similarity", "is_weak"),
    [
        (["far", "near"], 1, 0.8, False),
        (["near", "far"], 0, 0.8, False),
        (["at"], 0, 0.5, False),
        (["far"], 0, 0.0, True),
        (["against"], 0, -1.0, True),
        (["huge"], 0, math.sqrt(0.5), False),
        (["tiny"], 0, 1.0, False),
        (["", "near", " "], 1, 0.8, False),
        (["near", "near"], 0, 0.8, False),
    ],
)
def test_the_closest_document_decides(
    embeddings: Scripted, documents: list[str], best: int, similarity: float, is_weak: Any
) -> None:
    found = strength(embeddings, *documents, threshold=0.4999)
    assert (found.is_weak, found.best_document, found.failed) == (is_weak, best, False)
    assert found.best_similarity == found.score == pytest.approx(similarity)
    assert f"{similarity:.2f}" in found.reason


def test_a_similarity_at_the_threshold_is_close_enough(embeddings: Scripted) -> None:
    exact = strength(embeddings, "near").best_similarity
    assert exact is not None
    assert not strength(embeddings, "near", threshold=exact).is_weak
    assert strength(embeddings, "near", threshold=math.nextafter(exact, 2)).is_weak


def test_the_default_threshold_is_one_half(embeddings: Scripted) -> None:
    assert RetrievalGate(embeddings=embeddings).threshold == 0.5


@pytest.mark.parametrize("documents", [[], None, "", [""], [" \n", Document(page_content="")]])
def test_without_text_to_compare_retrieval_is_weak_and_nothing_is_embedded(
    embeddings: Scripted, documents: Any
) -> None:
    gate = RetrievalGate(embeddings=embeddings, raise_on_failure=True)
    found = gate.invoke({"question": QUESTION, "documents": documents})["retrieval_score"]
    assert (found.is_weak, found.best_similarity, found.best_document) == (True, None, None)
    assert found.reason.startswith("no documents")
    assert not found.failed
    assert embeddings.calls == []


def test_documents_under_a_key_that_is_not_read_are_named(embeddings: Scripted) -> None:
    found = RetrievalGate(embeddings=embeddings).invoke({"question": QUESTION, "chunks": ["near"]})
    assert found["retrieval_score"].is_weak
    assert "'chunks'" in found["retrieval_score"].reason


def test_an_empty_question_is_weak(embeddings: Scripted) -> None:
    found = RetrievalGate(embeddings=embeddings).invoke({"question": " ", "documents": ["near"]})
    assert found["retrieval_score"].is_weak
    assert found["retrieval_score"].reason == "the question is empty"


@pytest.mark.parametrize(
    "error", [TimeoutError("sk-secret"), ValueError(QUESTION), ConnectionError()]
)
async def test_failing_embeddings_are_weak_and_never_strong(
    embeddings: Scripted, error: Exception
) -> None:
    embeddings.error = error
    gate = RetrievalGate(embeddings=embeddings, threshold=-1)
    given_input = {"question": QUESTION, "documents": ["near"]}
    found = gate.invoke(given_input)["retrieval_score"]
    assert (found.is_weak, found.failed, found.best_similarity) == (True, True, None)
    assert type(error).__name__ in found.reason
    assert "secret" not in found.reason
    assert QUESTION not in found.reason
    assert (await gate.ainvoke(given_input))["retrieval_score"] == found
    strict = gate.model_copy(update={"raise_on_failure": True})
    with pytest.raises(VerificationError, match="could not be measured"):
        strict.invoke(given_input)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda _: [],
        lambda _: None,
        lambda _: [[]],
        lambda _: [[1.0, 2.0, 3.0]],
        lambda _: [["x", "y"]],
        lambda vectors: [*vectors, vectors[0]],
    ],
)
def test_vectors_that_do_not_fit_are_weak(embeddings: Scripted, spoil: Any) -> None:
    embeddings.spoil = spoil
    found = strength(embeddings, "near", threshold=-1)
    assert (found.is_weak, found.failed) == (True, True)


@pytest.mark.parametrize("bad", ["zero", "nan", "inf"])
def test_a_vector_that_is_no_direction_is_never_close(embeddings: Scripted, bad: str) -> None:
    alone = strength(embeddings, bad, threshold=-1)
    assert (alone.is_weak, alone.failed) == (True, True)
    beside_far = strength(embeddings, bad, "far")
    assert (beside_far.is_weak, beside_far.failed, beside_far.best_document) == (True, True, 1)
    assert "1 of 2 embeddings: zero or not a number" in beside_far.reason
    beside_near = strength(embeddings, bad, "near", raise_on_failure=True)
    assert (beside_near.is_weak, beside_near.failed, beside_near.best_document) == (False, False, 1)
    with pytest.raises(VerificationError):
        strength(embeddings, bad, "far", raise_on_failure=True)


def test_a_question_without_a_direction_is_weak(embeddings: Scripted) -> None:
    gate = RetrievalGate(embeddings=embeddings, threshold=-1)
    found = gate.invoke({"question": "not in the script", "documents": ["near"]})["retrieval_score"]
    assert (found.is_weak, found.failed) == (True, True)


def test_all_documents_are_embedded_in_one_call(embeddings: Scripted) -> None:
    strength(embeddings, "near", "", "far", "at")
    assert embeddings.calls == [QUESTION, ["near", "far", "at"]]


class State(BaseModel):
    question: str = QUESTION
    context: list[Document] = [Document("near")]


@pytest.mark.parametrize(
    "given_input",
    [
        {"question": QUESTION, "documents": ["near"], "user": 7},
        {"input": QUESTION, "context": [Document("near")], "chat_history": []},
        {"query": QUESTION, "source_documents": [Document("near")], "answer": None},
        {"input": QUESTION, "context": "near", "answer": "already there"},
        {"messages": [HumanMessage(QUESTION), ToolMessage("near", tool_call_id="1")]},
        State(),
    ],
)
async def test_the_input_passes_unchanged_with_one_key_added(
    embeddings: Scripted, given_input: Any
) -> None:
    gate = RetrievalGate(embeddings=embeddings, key="gate")
    found = gate.invoke(given_input)
    assert {k: v for k, v in found.items() if k != "gate"} == dict(given_input)
    assert not found["gate"].is_weak
    assert await gate.ainvoke(given_input) == found
    assert "gate" not in dict(given_input)


@pytest.mark.parametrize("given_input", ["text", 3, None, {"documents": ["near"]}, {}])
def test_an_input_that_cannot_be_read_is_refused(embeddings: Scripted, given_input: Any) -> None:
    with pytest.raises(InputFormatError, match="accepted"):
        RetrievalGate(embeddings=embeddings).invoke(given_input)


async def test_it_stands_before_the_model_in_a_chain(embeddings: Scripted) -> None:
    asked = []

    def model(x: Any) -> str:
        asked.append(x["question"])
        return "answer"

    retrieve: RunnableLambda[str, Any] = RunnableLambda(
        lambda q: {"question": QUESTION, "documents": [q]}
    )
    chain = (
        retrieve
        | RetrievalGate(embeddings=embeddings)
        | RunnableBranch((lambda x: x["retrieval_score"].is_weak, lambda _: "nothing found"), model)
    )
    assert chain.invoke("far") == "nothing found"
    assert asked == []
    assert await chain.ainvoke("near") == "answer"
    assert list(chain.stream("near")) == ["answer"]


def test_no_vector_enters_a_trace(embeddings: Scripted) -> None:
    seen = []

    class Watch(BaseCallbackHandler):
        def on_chain_end(self, outputs: Any, **_: Any) -> None:
            seen.append(outputs)

    gate = RetrievalGate(embeddings=embeddings)
    found = gate.invoke({"question": QUESTION, "documents": ["near"]}, {"callbacks": [Watch()]})
    assert seen == [found]


async def test_embeddings_run_off_the_event_loop(embeddings: Scripted) -> None:
    gate = RetrievalGate(embeddings=embeddings)
    inputs: list[Any] = [{"question": QUESTION, "documents": ["near"]}] * 3
    await asyncio.gather(gate.ainvoke(inputs[0]), gate.abatch(inputs))
    assert threading.get_ident() not in embeddings.threads


@given(st.lists(st.text(min_size=1).filter(str.strip), min_size=1, max_size=4), st.integers(0, 3))
@settings(deadline=None)
def test_a_document_that_is_the_question_is_always_found(texts: list[str], place: int) -> None:
    documents = [*texts[:place], QUESTION, *texts[place:]]
    found = strength(DeterministicFakeEmbedding(size=16), *documents, threshold=0.999)
    assert not found.is_weak
    assert found.best_document is not None
    assert documents[found.best_document] == QUESTION


@pytest.mark.parametrize("options", [{"threshold": 1.1}, {"threshold": -2}, {"key": ""}, {"k": 1}])
def test_options_are_checked_when_a_gate_is_made(embeddings: Scripted, options: Any) -> None:
    with pytest.raises(ConfigurationError):
        RetrievalGate(embeddings=embeddings, **options)


def test_strength_is_frozen(embeddings: Scripted) -> None:
    found = strength(embeddings, "near")
    with pytest.raises(ValidationError):
        found.is_weak = True  # type: ignore[misc]


# --- calibration ---


class Line(Embeddings):
    """Texts are numbers: the cosine to any question is the number."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[float(text), math.sqrt(1 - float(text) ** 2)] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return [1.0, 0.0]


def retrievals(*rows: tuple[float | None, bool]) -> list[tuple[Any, bool]]:
    return [
        ({"question": "q", "documents": [] if score is None else [str(score)]}, good)
        for score, good in rows
    ]


ROWS = retrievals((0.9, True), (0.8, True), (0.7, False), (0.6, True), (0.3, False), (0.1, False))


@pytest.mark.parametrize(
    ("target", "threshold", "precision", "recall", "passed"),
    [
        ({"target_recall": 1.0}, 0.45, 0.75, 1.0, 4),
        ({"target_recall": 0.6}, 0.75, 1.0, 2 / 3, 2),
        ({"target_recall": 0.1}, 0.85, 1.0, 1 / 3, 1),
        ({"target_precision": 1.0}, 0.75, 1.0, 2 / 3, 2),
        ({"target_precision": 0.75}, 0.45, 0.75, 1.0, 4),
        ({"target_precision": 0.5}, 0.45, 0.75, 1.0, 4),
    ],
)
def test_the_threshold_that_reaches_the_target_is_chosen(
    target: Any, threshold: float, precision: float, recall: float, passed: int
) -> None:
    gate = RetrievalGate(embeddings=Line(), key="gate", threshold=0.99)
    found = gate.calibrate(ROWS, **target)
    assert found.threshold == found.gate.threshold == pytest.approx(threshold)
    assert found.precision == pytest.approx(precision)
    assert found.recall == pytest.approx(recall)
    assert (found.passed, found.samples, found.answerable) == (passed, 6, 3)
    assert (found.gate.key, gate.threshold) == ("gate", 0.99)


@given(
    st.lists(st.tuples(st.integers(-99, 99), st.booleans()), min_size=2, max_size=12).filter(
        lambda rows: len({good for _, good in rows}) == 2
    ),
    st.floats(0.01, 1.0),
    st.sampled_from(["recall", "precision"]),
)
@settings(deadline=None)
def test_the_new_gate_does_on_the_samples_what_the_figures_say(
    rows: list[tuple[int, bool]], target: float, name: str
) -> None:
    samples = retrievals(*((score / 100, good) for score, good in rows))
    gate = RetrievalGate(embeddings=Line())
    wanted: Any = {f"target_{name}": target}
    try:
        found: GateCalibration = gate.calibrate(samples, **wanted)
    except ConfigurationError:
        assert name == "precision"
        return
    passed = [good for x, good in samples if not found.gate.invoke(x)["retrieval_score"].is_weak]
    assert len(passed) == found.passed
    assert found.precision == (sum(passed) / len(passed) if passed else None)
    assert found.recall == sum(passed) / found.answerable
    assert getattr(found, name) >= target


def test_a_target_that_no_threshold_reaches_says_what_can_be_reached() -> None:
    gate = RetrievalGate(embeddings=Line())
    with pytest.raises(ConfigurationError, match=r"precision of 0\.90 .* highest is 0\.50"):
        gate.calibrate(retrievals((0.9, False), (0.8, True)), target_precision=0.9)
    with pytest.raises(ConfigurationError, match=r"recall of 1\.00 .* highest is 0\.50"):
        gate.calibrate(retrievals((0.9, True), (None, True), (0.1, False)), target_recall=1.0)


@pytest.mark.parametrize(
    ("samples", "target"),
    [
        (ROWS, {}),
        (ROWS, {"target_precision": 0.5, "target_recall": 0.5}),
        (ROWS, {"target_recall": 0.0}),
        (ROWS, {"target_precision": 1.01}),
        (ROWS[:2], {"target_recall": 0.5}),
        ([], {"target_recall": 0.5}),
    ],
)
def test_calibration_that_means_nothing_is_refused(samples: Any, target: Any) -> None:
    with pytest.raises(ConfigurationError):
        RetrievalGate(embeddings=Line()).calibrate(samples, **target)


def test_calibration_does_not_leave_out_samples_that_failed(embeddings: Scripted) -> None:
    rows = [
        ({"question": QUESTION, "documents": [d]}, g) for d, g in (("near", True), ("zero", False))
    ]
    with pytest.raises(VerificationError, match="sample 1"):
        RetrievalGate(embeddings=embeddings).calibrate(rows, target_recall=0.9)


def test_counted_letters_make_a_gate_once_a_threshold_is_found_for_them() -> None:
    gate = RetrievalGate(embeddings=HashedNgramEmbeddings())
    texts = ["The battery lasts 18 months.", "Parcels take a week."]
    asked = [("How long does a battery last?", 0), ("How long does a parcel take?", 1)]
    samples = [
        ({"question": q, "documents": [text]}, place == n)
        for q, place in asked
        for n, text in enumerate(texts)
    ]
    found = gate.calibrate(samples, target_recall=1.0)
    assert found.precision == 1.0
    assert found.threshold < 0.5


@pytest.mark.parametrize(
    ("sample", "said"),
    [
        (
            ({"question": "?", "documents": ["x"]}, "no"),
            "sample 0: the label must be True or False",
        ),
        (({"question": "?", "documents": ["x"]}, 1), "label must be True or False, got 1"),
        (({"question": "?", "documents": ["x"]},), "sample 0: a pair"),
        ("ab", "sample 0: a pair .*got str"),
    ],
)
def test_samples_that_are_no_pairs_with_a_truth_value_are_refused(sample: Any, said: str) -> None:
    gate = RetrievalGate(embeddings=HashedNgramEmbeddings())
    with pytest.raises(ConfigurationError, match=said):
        gate.calibrate([sample], target_precision=0.9)
