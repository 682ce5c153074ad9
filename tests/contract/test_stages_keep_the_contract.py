"""Verifiers, extractors, the corrector, classifiers and the gate keep the contract of runnables."""

from collections.abc import Sequence
from typing import Any

from langchain_core.cross_encoders import BaseCrossEncoder
from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.stores import InMemoryByteStore
from typing_extensions import override

from langchain_groundedness import (
    CachedVerifier,
    CascadeVerifier,
    Corrector,
    CrossEncoderVerifier,
    EmbeddedVerifier,
    EmbeddingVerifier,
    LLMClaimExtractor,
    LLMVerifier,
    SinglePassJudge,
    VerificationError,
    load_arguments,
)
from langchain_groundedness.query import (
    EmbeddingQueryClassifier,
    HashedNgramEmbeddings,
    LLMQueryClassifier,
    RetrievalGate,
    RunnableQueryClassifier,
)
from langchain_groundedness.testing import (
    Probe,
    RunnableContract,
    ScriptedChatModel,
    ScriptedVerifier,
)
from langchain_groundedness.types import (
    Claim,
    ClaimVerdict,
    CorrectionTask,
    ExtractionTask,
    VerificationTask,
)

DOCUMENTS = (Document("Rome is the capital of Italy. It has 2.8 million inhabitants."),)


def task(*claims: str) -> VerificationTask:
    numbered = tuple(Claim(id=f"c{n}", text=text) for n, text in enumerate(claims, 1))
    return VerificationTask(claims=numbered, documents=DOCUMENTS)


class WordsInCommon(BaseCrossEncoder):
    @override
    def score(self, text_pairs: Any) -> list[float]:
        return [
            len(set(one.split()) & set(other.split())) / len(set(one.split()))
            for one, other in text_pairs
        ]


def reply(messages: list[BaseMessage]) -> str:
    """Answer whatever is asked for; in JSON for two claims at most."""
    asked = messages[-1].text
    return "supported" if "capital" in asked else "unverifiable"


def probing_model(probe: Probe) -> Runnable[Any, Any]:
    model = ScriptedChatModel(replies=reply)

    def ask(given: Any, config: RunnableConfig) -> Any:
        probe(config)
        return model.invoke(given, config)

    return RunnableLambda(ask)


def _id(verdict: ClaimVerdict) -> str:
    return verdict.claim.id


class VerifierContract(RunnableContract):
    def inputs(self) -> Sequence[Any]:
        return [
            task("Rome is the capital of Italy.", "It has 3.9 million inhabitants."),
            task("Rome is the capital of Italy."),
        ]

    def load_arguments(self) -> dict[str, Any]:
        return load_arguments()

    def same(self, one: Any, other: Any) -> bool:
        """Compare by claim: a verifier's stream gives verdicts in any order."""
        return bool(sorted(one, key=_id) == sorted(other, key=_id))


class TestEmbeddedVerifier(VerifierContract):
    def runnable(self) -> Runnable[Any, Any]:
        return EmbeddedVerifier()


class TestCrossEncoderVerifier(VerifierContract):
    def runnable(self) -> Runnable[Any, Any]:
        return CrossEncoderVerifier(cross_encoder=WordsInCommon())

    def test_a_saved_runnable_can_be_loaded(self) -> None:
        """The cross-encoder of this test is none that LangChain can save."""


class TestEmbeddingVerifier(VerifierContract):
    def runnable(self) -> Runnable[Any, Any]:
        return EmbeddingVerifier(embeddings=HashedNgramEmbeddings())

    def test_a_saved_runnable_can_be_loaded(self) -> None:
        """Embeddings are objects that LangChain cannot save."""


def scripted_cascade(probe: Probe | None = None) -> Runnable[Any, Any]:
    judge = ScriptedVerifier(lambda claim: "supported" if "capital" in claim.text else None)

    def verify(given: VerificationTask, config: RunnableConfig) -> Any:
        if probe is not None:
            probe(config)
        return judge.invoke(given, config)

    return CascadeVerifier([EmbeddedVerifier(), RunnableLambda(verify)])


class TestCascadeVerifier(VerifierContract):
    def runnable(self) -> Runnable[Any, Any]:
        return CascadeVerifier([EmbeddedVerifier(), EmbeddedVerifier(threshold=0.9)])

    def probed(self, probe: Probe) -> Runnable[Any, Any]:
        return scripted_cascade(probe)

    def failure(self) -> None:
        return None


class TestCachedVerifier(VerifierContract):
    def runnable(self) -> Runnable[Any, Any]:
        return CachedVerifier(verifier=EmbeddedVerifier(), store=InMemoryByteStore())

    def probed(self, probe: Probe) -> Runnable[Any, Any]:
        judge = ScriptedVerifier(lambda claim: "supported" if "capital" in claim.text else None)

        def verify(given: VerificationTask, config: RunnableConfig) -> Any:
            probe(config)
            return judge.invoke(given, config)

        return CachedVerifier(verifier=RunnableLambda(verify), store=InMemoryByteStore(), key="1")

    def failure(self) -> None:
        return None


class TestLLMVerifier(VerifierContract):
    def runnable(self) -> Runnable[Any, Any]:
        return LLMVerifier(model=ScriptedChatModel(replies=reply), strategy="per_claim")

    def probed(self, probe: Probe) -> Runnable[Any, Any]:
        return LLMVerifier(model=probing_model(probe), strategy="per_claim")

    def most_at_once(self, max_concurrency: int) -> int:
        """Each verification of a batch may have as many calls."""
        return int(max_concurrency**2)

    def failure(self) -> None:
        return None

    def test_a_saved_runnable_can_be_loaded(self) -> None:
        """A scripted model is none that LangChain can save."""

    def test_a_pickled_runnable_works(self) -> None:
        """A scripted model keeps a lock."""


class TestSinglePassJudge(VerifierContract):
    def runnable(self) -> Runnable[Any, Any]:
        return SinglePassJudge(
            model=ScriptedChatModel(
                replies=lambda _: "{tag} S1: [1] supported\n{tag} S2: unverifiable"
            )
        )

    def inputs(self) -> Sequence[Any]:
        return [
            task().model_copy(update={"answer": answer})
            for answer in ("Rome is the capital. It has 3 inhabitants.", "Rome is the capital.")
        ]

    def probed(self, probe: Probe) -> Runnable[Any, Any]:
        return SinglePassJudge(model=probing_model(probe))

    def failure(self) -> None:
        return None

    def test_a_saved_runnable_can_be_loaded(self) -> None:
        """A scripted model is none that LangChain can save."""

    def test_a_pickled_runnable_works(self) -> None:
        """A scripted model keeps a lock."""


class TestLLMClaimExtractor(RunnableContract):
    def runnable(self) -> Runnable[Any, Any]:
        return LLMClaimExtractor(model=ScriptedChatModel(replies=lambda _: "1: skip"))

    def inputs(self) -> Sequence[Any]:
        return [
            ExtractionTask(answer="Rome is big. It has 3 million inhabitants."),
            ExtractionTask(answer="Bari lies at the sea."),
        ]

    def probed(self, probe: Probe) -> Runnable[Any, Any]:
        return LLMClaimExtractor(model=probing_model(probe))

    def failure(self) -> None:
        return None

    def test_a_saved_runnable_can_be_loaded(self) -> None:
        """A scripted model is none that LangChain can save."""

    def test_a_pickled_runnable_works(self) -> None:
        """A scripted model keeps a lock."""


class TestCorrector(RunnableContract):
    def runnable(self) -> Runnable[Any, Any]:
        return Corrector()

    def inputs(self) -> Sequence[Any]:
        return [self._task("Rome has 3.9 million inhabitants."), self._task("Rome has 3 hills.")]

    def _task(self, answer: str) -> CorrectionTask:
        claim = Claim(id="c1", text=answer, start=0, end=len(answer))
        [verdict] = ScriptedVerifier(lambda _: "contradicted").invoke(
            VerificationTask(claims=(claim,), documents=DOCUMENTS)
        )
        assert isinstance(verdict, ClaimVerdict)
        return CorrectionTask(answer=answer, verdicts=(verdict,), documents=DOCUMENTS)

    def load_arguments(self) -> dict[str, Any]:
        return load_arguments()


class ClassifierContract(RunnableContract):
    def inputs(self) -> Sequence[Any]:
        return ["What does the kettle cost?", "How do I build a bomb?"]

    def failure(self) -> type[Exception] | None:
        return None

    def load_arguments(self) -> dict[str, Any]:
        return load_arguments()


def named(text: str) -> str:
    return "harmful" if "bomb" in text else "product"


class TestLLMQueryClassifier(ClassifierContract):
    def runnable(self) -> Runnable[Any, Any]:
        return LLMQueryClassifier(
            model=ScriptedChatModel(replies=lambda asked: named(asked[-1].text))
        )

    def probed(self, probe: Probe) -> Runnable[Any, Any]:
        return LLMQueryClassifier(model=probing_model(probe))

    def test_a_saved_runnable_can_be_loaded(self) -> None:
        """A scripted model is none that LangChain can save."""

    def test_a_pickled_runnable_works(self) -> None:
        """A scripted model keeps a lock."""


class TestRunnableQueryClassifier(ClassifierContract):
    def runnable(self) -> Runnable[Any, Any]:
        return RunnableQueryClassifier(classifier=RunnableLambda(named))

    def probed(self, probe: Probe) -> Runnable[Any, Any]:
        def classify(text: str, config: RunnableConfig) -> str:
            probe(config)
            return named(text)

        return RunnableQueryClassifier(classifier=RunnableLambda(classify))

    def test_a_saved_runnable_can_be_loaded(self) -> None:
        """A function is nothing that LangChain can save."""


class TestRaisingQueryClassifier(TestRunnableQueryClassifier):
    def probed(self, probe: Probe) -> Runnable[Any, Any]:
        classifier = super().probed(probe)
        assert isinstance(classifier, RunnableQueryClassifier)
        return classifier.model_copy(update={"raise_on_failure": True})

    def failure(self) -> type[Exception]:
        return VerificationError


class TestEmbeddingQueryClassifier(ClassifierContract):
    def runnable(self) -> Runnable[Any, Any]:
        samples = [("What does it cost?", "product"), ("How do I build a bomb?", "harmful")] * 4
        return EmbeddingQueryClassifier(min_probability=0.0).fit(samples)

    def test_a_saved_runnable_can_be_loaded(self) -> None:
        """It is saved by a method of its own."""


class TestRetrievalGate(RunnableContract):
    def runnable(self) -> Runnable[Any, Any]:
        return RetrievalGate(embeddings=HashedNgramEmbeddings())

    def inputs(self) -> Sequence[Any]:
        return [
            {"question": "What is the capital of Italy?", "documents": list(DOCUMENTS)},
            {"question": "Xyzzy?", "documents": list(DOCUMENTS)},
        ]
