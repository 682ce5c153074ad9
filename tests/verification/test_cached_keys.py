"""Which verifiers share verdicts, and which need a key."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langchain_core.cross_encoders import BaseCrossEncoder
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListChatModel
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import ConfigurableField, Runnable, RunnableLambda
from langchain_core.stores import InMemoryByteStore
from langchain_openai import ChatOpenAI
from pydantic import SecretStr
from typing_extensions import override

from langchain_groundedness import (
    CachedVerifier,
    CascadeVerifier,
    ConfigurationError,
    CrossEncoderVerifier,
    EmbeddedVerifier,
    EmbeddingVerifier,
    LLMVerifier,
    Stage,
)
from langchain_groundedness.evidence import EvidencePacker
from langchain_groundedness.query import HashedNgramEmbeddings
from langchain_groundedness.testing import ScriptedChatModel, ScriptedVerifier
from langchain_groundedness.types import Claim, VerificationTask
from langchain_groundedness.verification import EmbeddedCrossEncoder, cached

Made = Callable[[], Runnable[Any, Any]]


def openai(**options: Any) -> ChatOpenAI:
    return ChatOpenAI(**{"model": "gpt-4o-mini", "api_key": SecretStr("key"), **options})


def judge(**options: Any) -> LLMVerifier:
    return LLMVerifier(**{"model": openai(), **options})


def reworded(text: str) -> ChatPromptTemplate:
    return ChatPromptTemplate([("system", text), ("human", "{evidence} {question} {claims}")])


class Subclass(EmbeddedVerifier):
    pass


class Silent(BaseCrossEncoder):
    @override
    def score(self, text_pairs: Any) -> list[float]:
        return [1.0] * len(text_pairs)


DIFFERENT: dict[str, Made] = {
    "embedded": EmbeddedVerifier,
    "a threshold": lambda: EmbeddedVerifier(threshold=0.4),
    "a name": lambda: EmbeddedVerifier(name="mine"),
    "llm": judge,
    "another model": lambda: judge(model=openai(model="gpt-4o")),
    "temperature": lambda: judge(model=openai(temperature=0.7)),
    "another server": lambda: judge(model=openai(base_url="http://localhost/v1")),
    "bound": lambda: judge(model=openai().bind(top_p=0.1)),
    "strategy": lambda: judge(strategy="per_claim"),
    "claims per call": lambda: judge(claims_per_call=3),
    "packer": lambda: judge(packer=EvidencePacker(max_tokens=500)),
    "prompt": lambda: judge(prompt=reworded("Judge.")),
    "another prompt": lambda: judge(prompt=reworded("Judge!")),
    "embeddings": lambda: EmbeddingVerifier(embeddings=HashedNgramEmbeddings()),
    "other embeddings": lambda: EmbeddingVerifier(embeddings=HashedNgramEmbeddings(size=64)),
    "cross-encoder": lambda: CrossEncoderVerifier(cross_encoder=EmbeddedCrossEncoder()),
    "cascade": lambda: CascadeVerifier([EmbeddedVerifier(), judge()]),
    "cascade turned round": lambda: CascadeVerifier([judge(), EmbeddedVerifier()]),
    "band": lambda: CascadeVerifier(
        [Stage(verifier=EmbeddedVerifier(), settle_supported=0.99), judge()]
    ),
}


class Seen(BaseException):
    """What a store was asked for."""


class Peeking(InMemoryByteStore):
    @override
    def mget(self, keys: Sequence[str]) -> list[bytes | None]:
        raise Seen(*keys)


ASKED = VerificationTask(
    claims=(Claim(id="1", text="Rome is old."),),
    documents=(Document("Rome is old."), Document("Rome is big.")),
    question="How old is Rome?",
)


def key_of(verifier: Runnable[Any, Any], asked: VerificationTask = ASKED, **options: Any) -> str:
    """Tell under which key the verdict on a claim is looked up."""
    with pytest.raises(Seen) as seen:
        CachedVerifier(verifier=verifier, store=Peeking(), **options).invoke(asked)
    [key] = seen.value.args
    return str(key)


@pytest.mark.parametrize("name", DIFFERENT)
def test_verifiers_that_judge_differently_share_no_verdicts(name: str) -> None:
    own = key_of(DIFFERENT[name]())
    assert own == key_of(DIFFERENT[name]())
    assert own not in {key_of(made()) for other, made in DIFFERENT.items() if other != name}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (EmbeddedVerifier(threads=1), EmbeddedVerifier(threads=2)),
        (judge(max_concurrency=1), judge(max_concurrency=2)),
        (judge(), judge(model=openai(api_key=SecretStr("another key")))),
    ],
)
def test_what_changes_no_verdict_does_not_count(one: Any, other: Any) -> None:
    assert key_of(one) == key_of(other)


def test_a_model_that_is_changed_later_is_another_one() -> None:
    model = openai()
    before = key_of(judge(model=model))
    model.temperature = 0.9
    assert key_of(judge(model=model)) != before


def test_another_version_of_the_package_asks_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    before = key_of(EmbeddedVerifier())
    monkeypatch.setattr(cached, "PACKAGE_VERSION", "9.9")
    assert key_of(EmbeddedVerifier()) != before


@pytest.mark.parametrize(
    ("made", "path"),
    [
        (lambda: RunnableLambda(lambda _: []), r"the verifier \(RunnableLambda\)"),
        (lambda: ScriptedVerifier({}), r"the verifier \(ScriptedVerifier\)"),
        (Subclass, r"the verifier \(Subclass\)"),
        (
            lambda: judge(model=ScriptedChatModel(replies=[])),
            r"verifier.model \(ScriptedChatModel\)",
        ),
        (
            lambda: judge(model=openai().with_fallbacks([openai(model="gpt-4o")])),
            r"verifier.model \(RunnableWithFallbacks\)",
        ),
        (
            lambda: judge(
                model=openai().configurable_fields(temperature=ConfigurableField(id="t"))
            ),
            r"verifier.model \(RunnableConfigurableFields\)",
        ),
        (
            lambda: CrossEncoderVerifier(cross_encoder=Silent()),
            r"verifier.cross_encoder \(Silent\)",
        ),
        (
            lambda: EmbeddingVerifier(embeddings=DeterministicFakeEmbedding(size=8)),
            r"verifier.embeddings \(DeterministicFakeEmbedding\)",
        ),
        (
            lambda: EmbeddingVerifier(embeddings=HashedNgramEmbeddings(), count_tokens=len),
            r"verifier.count_tokens \(builtin_function_or_method\)",
        ),
        (
            lambda: CascadeVerifier(
                [Stage(verifier=EmbeddedVerifier(), settles=lambda _: True), judge()]
            ),
            r"verifier.stages\[0\].settles \(function\)",
        ),
        (
            lambda: judge(prompt=reworded("Check.").partial(question=lambda: "now")),
            r"verifier.prompt \(ChatPromptTemplate\)",
        ),
    ],
)
def test_what_cannot_be_told_apart_needs_a_key(made: Made, path: str) -> None:
    with pytest.raises(ConfigurationError, match=f"changes in {path}: .*key='my-judge-1'"):
        CachedVerifier(verifier=made(), store=InMemoryByteStore())
    assert key_of(made(), key="1") != key_of(made(), key="2")


def test_a_key_does_not_hide_what_is_known() -> None:
    one, other = (
        judge(model=openai(model=name), prompt=reworded("Check.").partial(question=lambda: "now"))
        for name in ("a", "b")
    )
    assert key_of(one, key="1") != key_of(other, key="1")


def test_no_secret_is_in_a_message() -> None:
    model = openai(api_key=SecretStr("sk-very-secret")) | RunnableLambda(str)
    with pytest.raises(ConfigurationError) as raised:
        CachedVerifier(verifier=judge(model=model), store=InMemoryByteStore())
    assert "sk-very" not in str(raised.value)


@pytest.mark.parametrize(
    ("verifier", "reads"),
    [
        (EmbeddedVerifier(), {"question"}),
        (judge(), {"question"}),
        (CascadeVerifier([EmbeddedVerifier(), judge()]), {"question"}),
        (judge().with_config(tags=["a"]), {"question"}),
        (judge().with_retry(), {"question"}),
        (Subclass(), {"question", "answer", "metadata", "order"}),
        (
            CascadeVerifier([EmbeddedVerifier(), RunnableLambda(lambda _: [])]),
            {"question", "answer", "metadata", "order"},
        ),
    ],
)
def test_what_a_verifier_reads_is_known_of_ours_and_all_of_others(
    verifier: Any, reads: set[str]
) -> None:
    changes: dict[str, Any] = {
        "question": {"question": "How big is Rome?"},
        "answer": {"answer": "Rome is old."},
        "metadata": {"documents": tuple(Document(d.page_content, id="a") for d in ASKED.documents)},
        "order": {"documents": ASKED.documents[::-1]},
    }
    before = key_of(verifier, key="1")
    others = {
        name: key_of(verifier, ASKED.model_copy(update=change), key="1")
        for name, change in changes.items()
    }
    assert {name for name, key in others.items() if key != before} == reads


def test_a_chat_model_tells_what_langchain_caches_go_by() -> None:
    one, other = (
        judge(model=FakeListChatModel(responses=[text])) for text in ("1: 1 supported", "other")
    )
    assert key_of(one) != key_of(other)
