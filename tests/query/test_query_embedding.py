import asyncio
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings

from langchain_groundedness import (
    ConfigurationError,
    InputFormatError,
    MissingDependencyError,
    VerificationError,
)
from langchain_groundedness.query import (
    EmbeddingQueryClassifier,
    HashedNgramEmbeddings,
    QueryClass,
    QuerySample,
)

SAMPLES = [
    ("Is the S2 waterproof?", "product"),
    ("How heavy is the S2?", "product"),
    ("What does the thermostat measure?", "product"),
    ("Where is my order?", "service"),
    ("Cancel my order, please", "service"),
    ("My order never came", "service"),
    ("Hello there", "generic"),
    ("Hello, good morning", "generic"),
    ("Thanks, goodbye", "generic"),
]
QUERIES = ["Has my order left?", "Hello again", "Is the thermostat waterproof?", "???"]


@pytest.fixture(scope="module")
def fitted() -> EmbeddingQueryClassifier:
    return EmbeddingQueryClassifier().fit(SAMPLES)


class Counting(Embeddings):
    """Real vectors, with a record of the calls, and a switch to make them fail."""

    model_name = "counting"

    def __init__(self) -> None:
        self.calls: list[int] = []
        self.threads: set[int] = set()
        self.spoil: Any = None

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.calls.append(len(texts))
        self.threads.add(threading.get_ident())
        vectors = HashedNgramEmbeddings(size=256).embed_documents(texts)
        return self.spoil(vectors) if self.spoil else vectors

    def embed_query(self, text: str) -> list[float]:
        raise NotImplementedError


@pytest.fixture
def counting() -> Counting:
    return Counting()


def test_it_learns_from_labelled_queries(fitted: EmbeddingQueryClassifier) -> None:
    found = fitted.batch(QUERIES[:3])
    assert [c.label for c in found] == ["service", "generic", "product"]
    assert all(c.probability is not None and 0.3 <= c.probability <= 1 for c in found)


async def test_every_way_to_run_it_says_the_same(fitted: EmbeddingQueryClassifier) -> None:
    inputs: list[Any] = [{"question": query} for query in QUERIES]
    single = [fitted.invoke(value) for value in inputs]
    assert [await fitted.ainvoke(value) for value in inputs] == single
    assert fitted.batch(inputs) == single
    assert await fitted.abatch(inputs) == single
    assert list(fitted.stream(inputs[0])) == single[:1]


@pytest.mark.parametrize(
    "samples",
    [
        [QuerySample(query=q, label=y) for q, y in SAMPLES],
        [{"query": q, "label": y} for q, y in SAMPLES],
        (pair for pair in SAMPLES),
    ],
)
def test_samples_come_in_any_form(samples: Any, fitted: EmbeddingQueryClassifier) -> None:
    assert EmbeddingQueryClassifier().fit(samples).fitted == fitted.fitted


def test_an_unlikely_class_is_unknown_with_its_probability_in_the_reason() -> None:
    strict = EmbeddingQueryClassifier(min_probability=0.99).fit(SAMPLES)
    found = strict.invoke("Has my order left?")
    assert (found.label, found.failed, found.probability) == ("unknown", False, None)
    assert found.reason is not None
    assert "service" in found.reason
    assert "below 0.99" in found.reason


def test_generic_must_be_likelier_than_other_classes_because_it_may_skip_the_check() -> None:
    lax = EmbeddingQueryClassifier(min_probability_of={}).fit(SAMPLES)
    query = "Hello, where is the waterproof order?"
    likeliest = {"generic": lax.invoke(f"Hello hello {query}").probability or 0}
    assert 0.3 < likeliest["generic"] < 0.6
    careful = EmbeddingQueryClassifier().fit(SAMPLES)
    found = careful.invoke(f"Hello hello {query}")
    assert (found.label, found.failed) == ("unknown", False)
    assert "below 0.60" in str(found.reason)


def test_two_classes_are_enough() -> None:
    two = EmbeddingQueryClassifier().fit(SAMPLES[:6])
    assert two.invoke("my order").label == "service"
    assert two.invoke("is it waterproof").label == "product"


async def test_use_before_fitting_says_what_to_do() -> None:
    bare = EmbeddingQueryClassifier()
    for call in (lambda: bare.invoke("x"), lambda: bare.batch(["x"]), lambda: bare.save("x")):
        with pytest.raises(ConfigurationError, match=r"call fit\(samples\), or make it with load"):
            call()
    with pytest.raises(ConfigurationError, match=r"call fit\(samples\)"):
        await bare.ainvoke("x")


@pytest.mark.parametrize(
    ("samples", "why"),
    [
        ([], "no samples"),
        ([("a", "product"), ("b", "product")], "at least 2 different labels"),
        ([("a", "product"), ("b", "unknown")], "none of them 'unknown'"),
        ([("a", "product"), ("b",)], "sample 1"),
    ],
)
def test_samples_that_teach_nothing_are_refused(samples: Any, why: str) -> None:
    with pytest.raises(ConfigurationError, match=why):
        EmbeddingQueryClassifier().fit(samples)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda vectors: vectors[:-1],
        lambda vectors: [[0.0] * 256, *vectors[1:]],
        lambda vectors: [[float("nan")] * 256, *vectors[1:]],
        lambda vectors: [vectors[0][:9], *vectors[1:]],
        lambda _: [],
        lambda _: None,
        lambda _: 1 / 0,
    ],
)
def test_fitting_again_that_fails_loses_nothing_of_what_was_learnt(
    counting: Counting, spoil: Any
) -> None:
    classifier = EmbeddingQueryClassifier(embeddings=counting).fit(SAMPLES)
    before = classifier.fitted
    counting.spoil = spoil
    with pytest.raises((ConfigurationError, ZeroDivisionError)):
        classifier.fit(SAMPLES)
    counting.spoil = None
    assert classifier.fitted is before
    assert classifier.invoke("Has my order left?").label == "service"


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda _: [[float("inf")] * 256], "zero or not a number"),
        (lambda _: [[0.0] * 256], "zero or not a number"),
        (lambda _: [[1.0] * 9], "9 numbers, the classifier was fitted with 256"),
        (lambda _: [], "must give embeddings of shape"),
        (lambda _: "text", "must be numeric vectors of one size"),
        (lambda _: 1 / 0, "ZeroDivisionError"),
    ],
)
async def test_failing_embeddings_give_unknown(counting: Counting, spoil: Any, why: str) -> None:
    classifier = EmbeddingQueryClassifier(embeddings=counting).fit(SAMPLES)
    counting.spoil = spoil
    found = classifier.invoke("Has my order left?")
    assert (found.label, found.failed) == ("unknown", True)
    assert found.reason is not None
    assert why in found.reason
    assert await classifier.ainvoke("Has my order left?") == found
    assert classifier.batch(["Has my order left?", " "]) == [
        found,
        QueryClass.unknown("the query is empty"),
    ]
    strict = classifier.model_copy(update={"raise_on_failure": True})
    with pytest.raises(VerificationError, match=why):
        strict.invoke("Has my order left?")
    [raised] = strict.batch(["Has my order left?"], return_exceptions=True)
    assert isinstance(raised, VerificationError)


def test_a_batch_is_one_call_of_the_embeddings_and_repeats_cost_nothing(
    counting: Counting,
) -> None:
    classifier = EmbeddingQueryClassifier(embeddings=counting, batch_size=4).fit(SAMPLES)
    assert counting.calls == [4, 4, 1]
    counting.calls.clear()
    classifier.batch(["one", "two", "one", "", "three"])
    assert counting.calls == [3]
    counting.calls.clear()
    classifier.evaluate(SAMPLES)
    assert counting.calls == [4, 4, 1]


def test_one_bad_input_of_a_batch_stays_with_itself(fitted: EmbeddingQueryClassifier) -> None:
    bad, good = fitted.batch([{"answer": "x"}, "Hello"], return_exceptions=True)
    assert isinstance(bad, InputFormatError)
    assert good.label == "generic"
    with pytest.raises(InputFormatError):
        fitted.batch([{"answer": "x"}, "Hello"])


async def test_embeddings_run_off_the_event_loop(counting: Counting) -> None:
    classifier = EmbeddingQueryClassifier(embeddings=counting).fit(SAMPLES)
    counting.threads.clear()
    await asyncio.gather(classifier.ainvoke("one"), classifier.abatch(["two", "three"]))
    assert counting.threads
    assert threading.get_ident() not in counting.threads


async def test_cancelling_is_no_failure() -> None:
    class Slow(Counting):
        async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
            started.set()
            await asyncio.Event().wait()
            raise AssertionError

    started = asyncio.Event()
    slow = Slow()
    classifier = EmbeddingQueryClassifier(embeddings=slow).fit(SAMPLES)
    task = asyncio.create_task(classifier.ainvoke("one"))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_evaluate_measures_on_other_queries(fitted: EmbeddingQueryClassifier) -> None:
    report = fitted.evaluate([("my order", "service"), ("hello", "generic"), ("hello", "product")])
    assert report.accuracy == pytest.approx(2 / 3)
    assert report.samples == 3


# --- saved and loaded ---


def test_what_is_loaded_says_what_was_saved(
    fitted: EmbeddingQueryClassifier, tmp_path: Path
) -> None:
    path = tmp_path / "queries.json"
    careful = fitted.model_copy(
        update={"min_probability": 0.45, "min_probability_of": {"service": 0.5}}
    )
    careful.save(path)
    loaded = EmbeddingQueryClassifier.load(str(path))
    assert loaded == careful
    assert loaded.batch(QUERIES) == careful.batch(QUERIES)
    assert EmbeddingQueryClassifier.load(path, min_probability=0).min_probability == 0
    assert [file.name for file in tmp_path.iterdir()] == ["queries.json"]


def test_the_file_is_json_with_nothing_of_the_samples_in_it(
    fitted: EmbeddingQueryClassifier, tmp_path: Path
) -> None:
    path = tmp_path / "queries.json"
    fitted.save(path)
    text = path.read_text(encoding="utf-8")
    data = json.loads(text)
    assert data["fitted"]["labels"] == ["generic", "product", "service"]
    assert data["fitted"]["embeddings"] == {
        "kind": "HashedNgramEmbeddings",
        "model": "hashed-ngrams-v1-2-4-2048",
    }
    assert "order" not in text


def test_using_a_loaded_classifier_needs_no_scikit_learn(
    fitted: EmbeddingQueryClassifier, tmp_path: Path
) -> None:
    path = tmp_path / "queries.json"
    fitted.save(path)
    code = f"""
import sys
sys.modules["sklearn"] = None
from langchain_groundedness import MissingDependencyError
from langchain_groundedness.query import EmbeddingQueryClassifier
classifier = EmbeddingQueryClassifier.load({str(path)!r})
print([found.label for found in classifier.batch({QUERIES[:3]!r})])
try:
    classifier.fit([("a", "x"), ("b", "y")])
except MissingDependencyError as error:
    print(error)
"""
    out = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONHASHSEED": "7", "PYTHONPATH": str(Path(__file__).parents[2])},
    ).stdout.splitlines()
    assert out[0] == str([found.label for found in fitted.batch(QUERIES[:3])])
    assert "pip install 'langchain-groundedness[classify]'" in out[1]


def test_fitting_without_scikit_learn_keeps_what_was_learnt(
    fitted: EmbeddingQueryClassifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied = fitted.model_copy()
    monkeypatch.setitem(sys.modules, "sklearn.linear_model", None)
    with pytest.raises(MissingDependencyError, match="classify"):
        copied.fit(SAMPLES[:6])
    assert copied.fitted == fitted.fitted


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda text: text[: len(text) // 2], "Invalid JSON"),
        (lambda _: "", "Invalid JSON"),
        (lambda _: "\x80pickle", "Invalid JSON"),
        (lambda _: "[]", "should be an object"),
        (lambda _: '{"format": "other"}', "format: Input should be"),
        (lambda text: text.replace('"version":1', '"version":2'), "version: Input should be 1"),
        (lambda text: text.replace('"intercepts":[', '"intercepts":[NaN,'), "damaged"),
        (lambda text: text.replace('"intercepts":[', '"intercepts":[1.0,'), "damaged"),
        (lambda text: text.replace('"weights":[[', '"weights":[[1.0,'), "damaged"),
        (lambda text: text.replace('"weights":[[', '"weights":[["x",'), "damaged"),
        (lambda text: text.replace('"product"', '"generic"'), "given twice"),
        (lambda text: text.replace('"fitted"', '"fitting"'), "damaged"),
        (lambda text: text.replace("min_probability", "max_probability", 1), "damaged"),
        (lambda _: "[" * 100_000, "Invalid JSON"),
    ],
)
def test_a_damaged_or_foreign_file_says_so(
    fitted: EmbeddingQueryClassifier, tmp_path: Path, damage: Any, why: str
) -> None:
    path = tmp_path / "queries.json"
    fitted.save(path)
    path.write_text(damage(path.read_text(encoding="utf-8")), encoding="utf-8")
    with pytest.raises(ConfigurationError, match=why) as caught:
        EmbeddingQueryClassifier.load(path)
    assert "queries.json" in str(caught.value)
    assert len(str(caught.value)) < 300


def test_a_missing_file_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        EmbeddingQueryClassifier.load(tmp_path / "none.json")


@pytest.mark.parametrize(
    "embeddings",
    [
        None,
        DeterministicFakeEmbedding(size=256),
        HashedNgramEmbeddings(size=256),
    ],
)
def test_other_embeddings_than_it_was_fitted_with_are_refused(
    counting: Counting, tmp_path: Path, embeddings: Embeddings | None
) -> None:
    path = tmp_path / "queries.json"
    EmbeddingQueryClassifier(embeddings=counting).fit(SAMPLES).save(path)
    given: Any = {} if embeddings is None else {"embeddings": embeddings}
    with pytest.raises(ConfigurationError, match=r"fitted with Counting \(counting\), not with"):
        EmbeddingQueryClassifier.load(path, **given)
    assert EmbeddingQueryClassifier.load(path, embeddings=counting).invoke("order").label


def test_of_a_model_that_is_a_path_only_the_last_part_is_kept(
    counting: Counting, tmp_path: Path
) -> None:
    counting.model_name = "/models/of/somebody/mini/"
    EmbeddingQueryClassifier(embeddings=counting).fit(SAMPLES).save(tmp_path / "a.json")
    assert "somebody" not in (tmp_path / "a.json").read_text(encoding="utf-8")
    counting.model_name = "C:\\else\\mini"
    assert EmbeddingQueryClassifier.load(tmp_path / "a.json", embeddings=counting)


def test_a_save_that_fails_leaves_the_old_file_whole(
    fitted: EmbeddingQueryClassifier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "queries.json"
    fitted.save(path)
    before = path.read_bytes()

    def full(*_: Any) -> None:
        raise OSError(28, "no space left")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="no space"):
        EmbeddingQueryClassifier().fit(SAMPLES[:6]).save(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["queries.json"]


# --- letters ---


def embed(text: str, **options: Any) -> Any:
    return np.array(HashedNgramEmbeddings(**options).embed_query(text))


@given(st.text())
@settings(deadline=None)
def test_a_vector_has_length_one_or_the_text_is_blank(text: str) -> None:
    vector = embed(text)
    assert vector.shape == (2048,)
    assert np.linalg.norm(vector) == pytest.approx(1.0 if text.split() else 0.0)


@given(st.lists(st.text(max_size=20), max_size=5))
@settings(max_examples=settings().max_examples // 3, deadline=None)
def test_documents_are_embedded_like_queries(texts: list[str]) -> None:
    embeddings = HashedNgramEmbeddings(size=64)
    assert embeddings.embed_documents(texts) == [embeddings.embed_query(t) for t in texts]


@given(st.text(alphabet="abc \u00e4\u00df", max_size=30))
@settings(deadline=None)
def test_case_and_spaces_make_no_difference(text: str) -> None:
    assert np.allclose(embed(text), embed(f"  {text.upper()}\n"))


def test_vectors_are_the_same_in_every_process() -> None:
    code = (
        "from langchain_groundedness.query import HashedNgramEmbeddings as H; import json;"
        "print(json.dumps(H(size=64).embed_query('Stra\\u00dfe \\u6c34 42')))"
    )
    root = str(Path(__file__).parents[2])
    for seed in ("1", "2"):
        out = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": root},
        ).stdout
        assert json.loads(out) == HashedNgramEmbeddings(size=64).embed_query(
            "Stra\u00dfe \u6c34 42"
        )


def test_vectors_stay_what_they_were_when_classifiers_were_saved() -> None:
    vector = HashedNgramEmbeddings(size=16).embed_query("Where is my order?")
    assert np.round(vector, 3).tolist() == [
        -0.487,
        -0.122,
        0.122,
        0.0,
        0.0,
        0.0,
        -0.122,
        0.609,
        0.122,
        -0.122,
        0.122,
        0.0,
        0.487,
        0.084,
        0.0,
        -0.243,
    ]


def test_texts_that_share_words_lie_closer() -> None:
    asked = embed("Where is my order?")
    assert asked @ embed("my orders, where are they?") > 0.3 > asked @ embed("bake sourdough")


@pytest.mark.parametrize("options", [{"size": 3}, {"shortest": 0}, {"shortest": 5, "longest": 4}])
def test_sizes_that_cannot_work_are_refused(options: Any) -> None:
    with pytest.raises(ConfigurationError):
        HashedNgramEmbeddings(**options)


async def test_letters_are_counted_off_the_event_loop() -> None:
    embeddings = HashedNgramEmbeddings(size=64)
    assert await embeddings.aembed_query("x") == embeddings.embed_query("x")
    assert await embeddings.aembed_documents(["x"]) == embeddings.embed_documents(["x"])
