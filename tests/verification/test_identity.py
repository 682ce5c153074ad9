"""Which verifiers are taken for the same, and which do not tell."""

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.cross_encoders import BaseCrossEncoder
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListChatModel
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import ConfigurableField, Runnable, RunnableLambda
from langchain_core.stores import InMemoryByteStore
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
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
from langchain_groundedness.llm.prompts import VERIFICATION_PROMPT
from langchain_groundedness.query import HashedNgramEmbeddings
from langchain_groundedness.testing import ScriptedChatModel, ScriptedVerifier
from langchain_groundedness.verification import EmbeddedCrossEncoder
from langchain_groundedness.verification import identity as _identity
from langchain_groundedness.verification.identity import identify, reads_of

Made = Callable[[], Runnable[Any, Any]]


def openai(**options: Any) -> ChatOpenAI:
    return ChatOpenAI(**{"model": "gpt-4o-mini", "api_key": SecretStr("key"), **options})


def judge(**options: Any) -> LLMVerifier:
    return LLMVerifier(**{"model": openai(), **options})


def served(**options: Any) -> OpenAIEmbeddings:
    return OpenAIEmbeddings(**{"api_key": SecretStr("key"), **options})


def reworded(text: str) -> ChatPromptTemplate:
    return ChatPromptTemplate([("system", text), *VERIFICATION_PROMPT.messages[1:]])


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
    "with fallbacks": lambda: judge(model=openai().with_fallbacks([openai(model="gpt-4o")])),
    "fallbacks in place": lambda: judge(
        model=openai(model="gpt-4o").with_fallbacks([openai()]),
    ),
    "strategy": lambda: judge(strategy="per_claim"),
    "claims per call": lambda: judge(claims_per_call=3),
    "packer": lambda: judge(packer=EvidencePacker(max_tokens=500)),
    "prompt": lambda: judge(prompt=reworded("Judge.")),
    "another prompt": lambda: judge(prompt=reworded("Judge!")),
    "embeddings": lambda: EmbeddingVerifier(embeddings=HashedNgramEmbeddings()),
    "other embeddings": lambda: EmbeddingVerifier(embeddings=HashedNgramEmbeddings(size=64)),
    "served embeddings": lambda: EmbeddingVerifier(embeddings=served(model="a")),
    "embeddings of another size": lambda: EmbeddingVerifier(
        embeddings=served(model="a", dimensions=64)
    ),
    "cross-encoder": lambda: CrossEncoderVerifier(cross_encoder=EmbeddedCrossEncoder()),
    "cascade": lambda: CascadeVerifier([EmbeddedVerifier(), judge()]),
    "cascade turned round": lambda: CascadeVerifier([judge(), EmbeddedVerifier()]),
    "band": lambda: CascadeVerifier(
        [Stage(verifier=EmbeddedVerifier(), settle_supported=0.99), judge()]
    ),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_a_verifier_is_known_by_what_its_verdicts_depend_on(name: str) -> None:
    own = identify(DIFFERENT[name](), given=None)
    assert own == identify(DIFFERENT[name](), given=None)
    assert not own.untold
    assert not own.dynamic
    others = {identify(made(), given=None).digest for at, made in DIFFERENT.items() if at != name}
    assert own.digest not in others
    CachedVerifier(verifier=DIFFERENT[name](), store=InMemoryByteStore())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (EmbeddedVerifier(threads=1), EmbeddedVerifier(threads=2)),
        (judge(max_concurrency=1), judge(max_concurrency=2)),
        (judge(), judge(model=openai(api_key=SecretStr("another key")))),
    ],
)
def test_what_changes_no_verdict_does_not_count(one: Any, other: Any) -> None:
    assert identify(one, given=None) == identify(other, given=None)


def test_a_model_that_is_changed_later_is_another_one() -> None:
    model = openai()
    verifier = judge(model=model)
    before = identify(verifier, given=None).digest
    model.temperature = 0.9
    assert identify(verifier, given=None).digest != before


def test_another_version_of_the_package_asks_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    before = identify(EmbeddedVerifier(), given=None).digest
    monkeypatch.setattr(_identity, "PACKAGE_VERSION", "9.9")
    assert identify(EmbeddedVerifier(), given=None).digest != before


def test_another_embedded_model_asks_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    for made in (EmbeddedVerifier, DIFFERENT["cross-encoder"], DIFFERENT["cascade"]):
        with monkeypatch.context() as patch:
            before = identify(made(), given=None).digest
            patch.setattr(_identity, "_embedded_model", lambda: "another")
            assert identify(made(), given=None).digest != before


@pytest.mark.parametrize(
    ("made", "path"),
    [
        (lambda: RunnableLambda(lambda _: []), "verifier: RunnableLambda"),
        (lambda: ScriptedVerifier({}), "verifier: ScriptedVerifier"),
        (Subclass, "verifier: Subclass"),
        (lambda: judge(model=ScriptedChatModel(replies=[])), "verifier.model: ScriptedChatModel"),
        (
            lambda: judge(model=openai() | RunnableLambda(lambda reply: reply)),
            r"verifier.model.steps\[1\]: RunnableLambda",
        ),
        (lambda: CrossEncoderVerifier(cross_encoder=Silent()), "verifier.cross_encoder: Silent"),
        (
            lambda: EmbeddingVerifier(embeddings=DeterministicFakeEmbedding(size=8)),
            "verifier.embeddings: DeterministicFakeEmbedding",
        ),
        (
            lambda: EmbeddingVerifier(embeddings=HashedNgramEmbeddings(), count_tokens=len),
            "verifier.count_tokens: builtin_function_or_method",
        ),
        (
            lambda: CascadeVerifier(
                [Stage(verifier=EmbeddedVerifier(), settles=lambda _: True), judge()]
            ),
            r"verifier.stages\[0\].settles: function",
        ),
        (
            lambda: judge(prompt=VERIFICATION_PROMPT.partial(question=lambda: "now")),
            "verifier.prompt.partial_variables",
        ),
    ],
)
def test_a_part_that_does_not_tell_needs_a_version(made: Made, path: str) -> None:
    with pytest.raises(ConfigurationError, match=f"verdicts of {path}.*version='1'"):
        CachedVerifier(verifier=made(), store=InMemoryByteStore())
    CachedVerifier(verifier=made(), store=InMemoryByteStore(), version="1")


def test_a_version_does_not_hide_what_is_told() -> None:
    one, other = (
        identify(judge(model=openai(model=name) | RunnableLambda(str)), given="1").digest
        for name in ("a", "b")
    )
    assert one != other


def test_a_model_that_each_run_chooses_is_refused_even_with_a_version() -> None:
    model = openai().configurable_fields(temperature=ConfigurableField(id="temperature"))
    with pytest.raises(ConfigurationError, match=r"verifier\.model is another model in each run"):
        CachedVerifier(verifier=judge(model=model), store=InMemoryByteStore(), version="1")


def test_no_key_is_in_a_message() -> None:
    model = openai(api_key=SecretStr("sk-very-secret")) | RunnableLambda(str)
    with pytest.raises(ConfigurationError) as raised:
        CachedVerifier(verifier=judge(model=model), store=InMemoryByteStore())
    assert "sk-very" not in str(raised.value)


@pytest.mark.parametrize(
    ("verifier", "reads"),
    [
        (EmbeddedVerifier(), {"question"}),
        (judge(), {"question"}),
        (CrossEncoderVerifier(cross_encoder=EmbeddedCrossEncoder()), set()),
        (CascadeVerifier([CrossEncoderVerifier(cross_encoder=Silent()), judge()]), {"question"}),
        (judge().with_config(tags=["a"]), {"question"}),
        (judge().with_retry(), {"question"}),
        (judge().with_fallbacks([EmbeddedVerifier()]), {"question"}),
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
    assert reads_of(verifier) == reads


def test_a_chat_model_tells_what_langchain_caches_go_by() -> None:
    one, other = (
        judge(model=FakeListChatModel(responses=[text])) for text in ("1: 1 supported", "other")
    )
    assert identify(one, given=None).digest != identify(other, given=None).digest
