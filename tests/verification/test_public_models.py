"""The public models, as tiny random networks of their architectures with a tokenizer of bytes."""

import json
import math
import re
import sys
import threading
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.documents import Document
from langchain_core.load import dumpd, load

from langchain_groundedness import (
    CachedVerifier,
    CascadeVerifier,
    CrossEncoderVerifier,
    EmbeddedVerifier,
    GroundednessRunnable,
    load_arguments,
)
from langchain_groundedness.evals import FaithfulnessEvaluator
from langchain_groundedness.exceptions import ConfigurationError, MissingDependencyError
from langchain_groundedness.types import Claim, ClaimVerdict, VerificationTask
from langchain_groundedness.verification import EmbeddedCrossEncoder, public_models
from langchain_groundedness.verification.public_models import PUBLIC_MODELS, load_public_model

torch: Any = pytest.importorskip("torch")
transformers: Any = pytest.importorskip("transformers")
tokenizers: Any = pytest.importorskip("tokenizers")
safetensors: Any = pytest.importorskip("safetensors.torch")

ROOT = Path(__file__).parents[2]
EVIDENCE = "Rome is the capital."
CLAIM = "The capital is Rome."
SMALL = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
T5 = {"d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2}
NLI_LABELS = {0: "entailment", 1: "neutral", 2: "contradiction"}


def save_tokenizer(folder: Path, *, start: str, end: str, pad: str, more: tuple[str, ...]) -> int:
    """Save a tokenizer with one token per byte; return the size of its vocabulary."""
    special = list(dict.fromkeys((pad, end, *([start] if start else []), *more)))
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: n for n, token in enumerate([*special, *alphabet])}
    bytes_alone = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocabulary, merges=[]))
    bytes_alone.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    bytes_alone.decoder = tokenizers.decoders.ByteLevel()
    before = [start] if start else []
    bytes_alone.post_processor = tokenizers.processors.TemplateProcessing(
        single=[*before, "$A", end],
        pair=[*before, "$A", end, "$B:1", f"{end}:1"],
        special_tokens=[(token, vocabulary[token]) for token in special],
    )
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=bytes_alone,
        eos_token=end,
        pad_token=pad,
        additional_special_tokens=special,
    ).save_pretrained(folder)
    return len(vocabulary)


def save_model(name: str, folder: Path) -> str:
    """Save a tiny network of the model's architecture; return the folder."""
    torch.manual_seed(7)
    if name == "hhem":
        foundation = folder / "flan"
        size = save_tokenizer(foundation, start="", end="</s>", pad="<pad>", more=())
        config = transformers.T5Config(vocab_size=size, num_labels=2, **T5)
        config.save_pretrained(foundation)
        (folder / "config.json").write_text(
            json.dumps(
                {
                    "foundation": "flan",
                    "architectures": ["HHEMv2ForSequenceClassification"],
                    "auto_map": {"AutoConfig": "code.Never", "AutoModel": "code.Never"},
                }
            )
        )
        (folder / "code.py").write_text("raise AssertionError('code of a repository has run')")
        weights = transformers.T5ForTokenClassification(config).state_dict()
        del weights["transformer.encoder.embed_tokens.weight"]  # as in the published file
        shared = {f"t5.{key}": value.clone() for key, value in weights.items()}
        safetensors.save_file(shared, folder / "model.safetensors")
    elif name == "minicheck-flan-t5":
        size = save_tokenizer(folder, start="", end="</s>", pad="<pad>", more=())
        config = transformers.T5Config(vocab_size=size, decoder_start_token_id=0, **T5)
        transformers.T5ForConditionalGeneration(config).save_pretrained(folder)
    elif name == "minicheck-roberta":
        size = save_tokenizer(folder, start="<s>", end="</s>", pad="<pad>", more=("<mask>",))
        config = transformers.RobertaConfig(
            vocab_size=size, pad_token_id=0, max_position_embeddings=514, num_labels=2, **SMALL
        )
        network = transformers.RobertaForSequenceClassification(config)
        network.config.save_pretrained(folder)  # as published: not in safetensors
        torch.save(network.state_dict(), folder / "pytorch_model.bin")
    elif name.startswith("lettucedetect"):
        size = save_tokenizer(folder, start="[CLS]", end="[SEP]", pad="[PAD]", more=("[MASK]",))
        config = transformers.ModernBertConfig(
            vocab_size=size,
            intermediate_size=16,
            pad_token_id=0,
            eos_token_id=1,
            bos_token_id=2,
            cls_token_id=2,
            sep_token_id=1,
            num_labels=2,
            **SMALL,
        )
        transformers.ModernBertForTokenClassification(config).save_pretrained(folder)
    else:
        size = save_tokenizer(folder, start="[CLS]", end="[SEP]", pad="[PAD]", more=("[MASK]",))
        labels = NLI_LABELS if name == "deberta-nli" else {0: "LABEL_0", 1: "LABEL_1"}
        config = transformers.DebertaV2Config(
            vocab_size=size, intermediate_size=16, id2label=labels, **SMALL
        )
        transformers.DebertaV2ForSequenceClassification(config).save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    saved: dict[str, str] = {}

    def folder(name: str) -> str:
        if name not in saved:
            saved[name] = save_model(name, tmp_path_factory.mktemp(name))
        return saved[name]

    return folder


@pytest.fixture
def verifiers(folders: Callable[[str], str]) -> Callable[..., CrossEncoderVerifier]:
    def verifier(name: str, **options: Any) -> CrossEncoderVerifier:
        return CrossEncoderVerifier(cross_encoder=name, path=folders(name), **options)

    return verifier


class Watched:
    """Keeps what a network reads, and what it answers; `logits` replaces the latter."""

    def __init__(self, verifier: CrossEncoderVerifier) -> None:
        name = str(verifier.cross_encoder)
        self.loaded = load_public_model(name, verifier.path, verifier.revision)
        self.inputs: list[dict[str, Any]] = []
        self.threads: set[int] = set()
        self.logits: Callable[[Any], None] | None = None
        self.hook = self.loaded.network.register_forward_hook(self.seen, with_kwargs=True)

    def seen(self, _: Any, __: Any, given: dict[str, Any], output: Any) -> Any:
        self.inputs.append(given)
        self.threads.add(threading.get_ident())
        if self.logits is not None:
            self.logits(output.logits)
        return output

    @property
    def texts(self) -> list[str]:
        """The inputs as text, without padding."""
        return [
            self.loaded.tokenizer.decode([i for i, kept in zip(ids, mask, strict=True) if kept])
            for given in self.inputs
            for ids, mask in zip(
                given["input_ids"].tolist(), given["attention_mask"].tolist(), strict=True
            )
        ]


@pytest.fixture
def watch() -> Iterator[Callable[[CrossEncoderVerifier], Watched]]:
    watched: list[Watched] = []

    def start(verifier: CrossEncoderVerifier) -> Watched:
        watched.append(Watched(verifier))
        return watched[-1]

    yield start
    for each in watched:
        each.hook.remove()


def task(*claims: str, text: str = EVIDENCE, question: str | None = None) -> VerificationTask:
    return VerificationTask(
        claims=tuple(Claim(id=str(n), text=each) for n, each in enumerate(claims or (CLAIM,))),
        documents=(Document(page_content=text),),
        question=question,
    )


def judge(verifier: CrossEncoderVerifier, *claims: str, **parts: Any) -> ClaimVerdict:
    return verifier.invoke(task(*claims, **parts))[0]


LETTUCE = f"[CLS]Summarize the following text:\npassage 1: {EVIDENCE}\noutput:[SEP]{CLAIM}[SEP]"
INPUTS = {
    "hhem": "<pad> Determine if the hypothesis is true given the premise?\n\n"
    f"Premise: {EVIDENCE}\n\nHypothesis: {CLAIM}</s>",
    "minicheck-roberta": f"<s>{EVIDENCE}</s>{CLAIM}</s>",
    "minicheck-deberta": f"[CLS]{EVIDENCE}[SEP]{CLAIM}[SEP]",
    "minicheck-flan-t5": f"predict: {EVIDENCE}</s>{CLAIM}</s>",
    "lettucedetect-base": LETTUCE,
    "lettucedetect-large": LETTUCE,
    "deberta-nli": f"[CLS]{EVIDENCE}[SEP]{CLAIM}[SEP]",
}


def test_every_model_has_its_input_checked_here() -> None:
    assert set(INPUTS) == set(PUBLIC_MODELS)


@pytest.mark.parametrize("name", INPUTS)
def test_a_model_reads_exactly_the_text_that_its_authors_give_it(
    name: str, verifiers: Any, watch: Any
) -> None:
    verifier = verifiers(name)
    watched = watch(verifier)
    verdict = judge(verifier)
    assert watched.texts == [INPUTS[name]]
    assert verdict.verifier == name
    assert verdict.support_probability is not None


def test_lettucedetect_reads_the_question(verifiers: Any, watch: Any) -> None:
    verifier = verifiers("lettucedetect-base")
    watched = watch(verifier)
    judge(verifier, question="What is the capital?")
    (text,) = watched.texts
    assert text == (
        "[CLS]Briefly answer the following question:\nWhat is the capital?\nBear in mind that your "
        "response should be strictly based on the following 1 passages:\npassage 1: Rome is the "
        "capital.\nIn case the passages do not contain the necessary information to answer the "
        'question, please reply with: "Unable to answer based on given passages."\noutput:[SEP]'
        f"{CLAIM}[SEP]"
    )


def as_the_authors_compute(name: str, watched: Watched) -> float:
    """Compute the probability of support as the published code does, from the text alone."""
    network, tokenizer = watched.loaded.network, watched.loaded.tokenizer
    end = tokenizer.eos_token
    pair: tuple[str, ...] = (EVIDENCE, CLAIM)
    if name.startswith("lettucedetect"):
        pair = (INPUTS[name].removeprefix("[CLS]").split(end)[0], CLAIM)
    elif name != "deberta-nli":
        pair = (INPUTS[name].removesuffix(end).removeprefix("<s>").removeprefix("[CLS]"),)
    encoded = tokenizer(*pair, return_tensors="pt")
    read = {key: encoded[key].to(network.device) for key in ("input_ids", "attention_mask")}
    if name == "minicheck-flan-t5":
        read["decoder_input_ids"] = torch.zeros_like(read["input_ids"][:, :1])
    logits = network(**read).logits
    if name == "hhem":
        return float(logits[:, 0, :].softmax(-1)[0, 1])
    if name == "minicheck-flan-t5":
        return float(logits.squeeze(1)[:, torch.tensor([3, 209])].softmax(-1)[0, 1])
    if name.startswith("lettucedetect"):
        start = logits.shape[1] - len(CLAIM) - 1
        return 1 - float(logits.softmax(-1)[0, start : start + len(CLAIM), 1].max())
    return float(logits.softmax(-1)[0, 0 if name == "deberta-nli" else 1])


@pytest.mark.parametrize("name", INPUTS)
def test_the_probability_is_the_one_that_the_authors_code_computes(
    name: str, verifiers: Any, watch: Any
) -> None:
    verifier = verifiers(name)
    found = judge(verifier).support_probability
    with torch.no_grad():
        expected = as_the_authors_compute(name, watch(verifier))
    assert found == pytest.approx(expected, abs=1e-5)
    assert not math.isclose(expected, 0.5, abs_tol=1e-4), "a network that says nothing"


def favour(*places: Any) -> Callable[[Any], None]:
    def change(logits: Any) -> None:
        logits.zero_()
        for place in places:
            logits[(..., *place)] = 5.0

    return change


@pytest.mark.parametrize(
    ("name", "label", "verdict"),
    [
        ("hhem", (0, 1), "supported"),
        ("hhem", (0, 0), "unverifiable"),
        ("hhem", (1, 1), "unverifiable"),  # only the first token counts
        ("minicheck-roberta", (1,), "supported"),
        ("minicheck-roberta", (0,), "unverifiable"),
        ("minicheck-deberta", (1,), "supported"),
        ("minicheck-flan-t5", (0, 209), "supported"),
        ("minicheck-flan-t5", (0, 3), "unverifiable"),
        ("lettucedetect-base", (slice(None), 0), "supported"),
        ("lettucedetect-base", (5, 1), "supported"),  # the evidence is not judged
        ("lettucedetect-base", (-3, 1), "unverifiable"),  # one word of the claim is not supported
        ("deberta-nli", (0,), "supported"),
        ("deberta-nli", (1,), "unverifiable"),
        ("deberta-nli", (2,), "contradicted"),
    ],
)
def test_each_label_becomes_the_verdict_that_it_means(
    name: str, label: tuple[Any, ...], verdict: str, verifiers: Any, watch: Any
) -> None:
    verifier = verifiers(name, threshold=0.6)  # above that of a network that says nothing
    supported = [(slice(None), 0)] if name == "lettucedetect-base" else []
    watch(verifier).logits = favour(*supported, label)
    found = judge(verifier)
    assert found.verdict == verdict
    assert [c.quote for c in found.citations] == ([] if verdict == "unverifiable" else [EVIDENCE])


@pytest.mark.parametrize("name", INPUTS)
def test_many_pairs_are_read_in_padded_batches_with_the_same_result(
    name: str, verifiers: Any, watch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    verifier = verifiers(name)
    claims = [f"The capital is {'Rome, ' * n}and no other." for n in range(9)]
    alone = [judge(verifier, claim).support_probability for claim in claims]
    monkeypatch.setattr(public_models, "_TOKENS_PER_RUN", 400)
    watched = watch(verifier)
    together = [v.support_probability for v in verifier.invoke(task(*claims))]
    assert together == pytest.approx(alone, abs=1e-5)
    sizes = [each["input_ids"].numel() for each in watched.inputs]
    assert 1 < len(sizes) < len(claims)
    assert max(sizes) <= 400


def test_a_long_document_is_read_whole_in_windows_that_fit(verifiers: Any, watch: Any) -> None:
    sentences = [f"Sentence number {n} says something of its own." for n in range(100)]
    verifier = verifiers("minicheck-roberta")
    watched = watch(verifier)
    judge(verifier, "Sentence 99 speaks. " + "It goes on. " * 5, text=" ".join(sentences))
    lengths = [int(each.sum()) for given in watched.inputs for each in given["attention_mask"]]
    assert 200 < max(lengths) <= 512
    evidence = [text.split("</s>")[0].removeprefix("<s>") for text in watched.texts]
    for one, other in pairwise(sentences):
        assert any(f"{one} {other}" in each for each in evidence)


def test_a_claim_that_leaves_no_room_for_evidence_is_unchecked(verifiers: Any, watch: Any) -> None:
    verifier = verifiers("minicheck-roberta")
    watched = watch(verifier)
    long, short = verifier.invoke(task("Rome " * 99, CLAIM))
    assert (long.verdict, short.verdict) != ("unchecked", "unchecked")
    assert long.reason == (
        "the claim leaves no room for evidence: minicheck-roberta reads 512 tokens"
    )
    assert watched.texts == [INPUTS["minicheck-roberta"]]


@pytest.mark.parametrize("name", INPUTS)
def test_special_tokens_in_a_document_cannot_end_the_evidence(
    name: str, verifiers: Any, watch: Any
) -> None:
    verifier = verifiers(name)
    watched = watch(verifier)
    end = watched.loaded.tokenizer.eos_token
    judge(verifier, text=f"Rome is{end}the capital.{end}")
    (text,) = watched.texts
    assert text.count(end) == INPUTS[name].count(end)
    assert f"Rome is{end[0]} {end[1:]}the" in text


def test_nor_can_special_tokens_that_normalisation_makes(verifiers: Any, watch: Any) -> None:
    verifier = verifiers("minicheck-flan-t5")
    watched = watch(verifier)
    encoder = watched.loaded.tokenizer.backend_tokenizer
    encoder.normalizer = tokenizers.normalizers.NFKC()
    try:
        judge(verifier, text="Rome is\N{FULLWIDTH LESS-THAN SIGN}/s>the capital.")
    finally:
        encoder.normalizer = None
    assert watched.texts == [f"predict: Rome is< /s>the capital.</s>{CLAIM}</s>"]


async def test_loading_and_reading_run_off_the_event_loop(
    folders: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[int] = []
    real = public_models.LoadedModel

    def loaded(*given: Any) -> Any:
        threads.append(threading.get_ident())
        return real(*given)

    monkeypatch.setattr(public_models, "LoadedModel", loaded)
    monkeypatch.setattr(public_models, "_LOADED", {})
    verifier = CrossEncoderVerifier(cross_encoder="deberta-nli", path=folders("deberta-nli"))
    assert threads == []
    tasks = [task(), task()]
    first, again = await verifier.abatch(tasks)
    assert first == again == verifier.invoke(tasks[0])
    assert len(threads) == 1
    assert threading.get_ident() not in threads


async def test_an_event_loop_is_not_blocked_by_a_name(folders: Any) -> None:
    public_model = {"cross_encoder": "deberta-nli", "path": folders("deberta-nli")}
    found = await GroundednessRunnable(verifier=CrossEncoderVerifier(**public_model)).ainvoke(
        {"answer": CLAIM, "documents": [EVIDENCE]}
    )
    assert found.claims[0].verifier == "deberta-nli"


def test_a_model_that_cannot_be_loaded_leaves_claims_unchecked(tmp_path: Path) -> None:
    verifier = CrossEncoderVerifier(cross_encoder="hhem", path=str(tmp_path))
    found = judge(verifier)
    assert found.verdict == "unchecked"
    assert str(found.reason).startswith("the model hhem could not be loaded: ")
    with pytest.raises(OSError, match=r"config\.json"):
        verifier.warm_up()


@pytest.mark.parametrize(
    ("name", "files_of", "message"),
    [
        ("deberta-nli", "minicheck-deberta", "has the labels"),
        ("minicheck-deberta", "deberta-nli", "has the labels"),
    ],
)
def test_files_of_another_model_are_refused(
    name: str, files_of: str, message: str, folders: Any
) -> None:
    verifier = CrossEncoderVerifier(cross_encoder=name, path=folders(files_of))
    with pytest.raises(ConfigurationError, match=message):
        verifier.warm_up()
    with pytest.raises(ConfigurationError, match=message):
        judge(verifier)


def test_a_network_without_trained_classes_is_refused(tmp_path: Path, folders: Any) -> None:
    config = transformers.DebertaV2Config.from_pretrained(folders("minicheck-deberta"))
    transformers.DebertaV2Model(config).save_pretrained(tmp_path)
    verifier = CrossEncoderVerifier(cross_encoder="minicheck-deberta", path=str(tmp_path))
    with pytest.raises(ConfigurationError, match="lacks weights"):
        verifier.warm_up()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cross_encoder": "hhem", "scores": "logit"}, "scores is decided by the model hhem"),
        ({"cross_encoder": "hhem", "count_tokens": len}, "count_tokens is decided by"),
        ({"cross_encoder": "hhem", "path": ".", "revision": "main"}, "path excludes revision"),
        ({"cross_encoder": "no-such"}, r"no public model 'no-such'; accepted: hhem \(110 million"),
    ],
)
def test_options_that_cannot_work_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        CrossEncoderVerifier(**options)


def test_an_own_cross_encoder_takes_no_path() -> None:
    with pytest.raises(ConfigurationError, match="are for a public model"):
        CrossEncoderVerifier(cross_encoder=EmbeddedCrossEncoder(), path="folder")


class Downloads:
    """Stands in for the hub."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str | None]] = []

    def __call__(self, source: str, *_: Any, **options: Any) -> None:
        assert options.get("trust_remote_code") in (False, None)
        self.asked.append((source, options.get("revision")))
        raise ConnectionError


@pytest.mark.parametrize("revision", [None, "v1"])
@pytest.mark.parametrize("name", INPUTS)
def test_a_pinned_revision_is_loaded_from_the_hub(
    name: str, revision: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = Downloads()
    network = PUBLIC_MODELS[name].family.network
    monkeypatch.setattr(getattr(transformers, network), "from_pretrained", hub)
    monkeypatch.setattr("huggingface_hub.hf_hub_download", hub)
    found = judge(CrossEncoderVerifier(cross_encoder=name, revision=revision))
    assert str(found.reason).startswith(f"the model {name} could not be loaded: Connection")
    model = PUBLIC_MODELS[name]
    assert hub.asked == [(model.repository, revision or model.revision or "main")]


def test_without_the_extra_a_name_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setattr(public_models, "missing_names", lambda _: {"torch"})
    with pytest.raises(MissingDependencyError, match=r"langchain-groundedness\[transformers\]"):
        GroundednessRunnable(verifier="hhem")


def test_every_place_for_a_verifier_takes_a_name() -> None:
    for made in (
        GroundednessRunnable(verifier="hhem").verifier,
        FaithfulnessEvaluator(verifier="hhem").verifier,
        CascadeVerifier(["embedded", "hhem"]).stages[1].verifier,
    ):
        assert isinstance(made, CrossEncoderVerifier)
        assert made.cross_encoder == "hhem"
    assert GroundednessRunnable(verifier="embedded").verifier == EmbeddedVerifier()


def test_an_unknown_name_is_answered_with_all_names_sizes_and_licences() -> None:
    with pytest.raises(
        ConfigurationError, match="no verifier 'gpt'; accepted: embedded, "
    ) as found:
        GroundednessRunnable(verifier="gpt")
    for name, model in PUBLIC_MODELS.items():
        known = f"{name} ({model.parameters} million parameters, {model.licence})"
        assert known in str(found.value)


def test_the_guide_has_the_size_and_licence_of_every_model() -> None:
    guide = (ROOT / "docs" / "guide" / "verifiers.md").read_text(encoding="utf-8")
    for name, model in PUBLIC_MODELS.items():
        row = rf"\| `{name}`[^|]*\| {model.parameters} million \| {model.licence} \|"
        assert re.search(row, guide), name


@pytest.mark.filterwarnings("ignore::langchain_core._api.LangChainBetaWarning")
def test_a_checker_with_a_public_model_is_saved_and_cached_without_more() -> None:
    checker = GroundednessRunnable(verifier="deberta-nli")
    assert load(dumpd(checker), **load_arguments()) == checker
    assert CachedVerifier(verifier="hhem", store=InMemoryCache()).verifier.get_name() == "hhem"


def test_a_check_by_a_public_model(verifiers: Any, watch: Any) -> None:
    verifier = verifiers("deberta-nli")
    watch(verifier).logits = favour((2,))
    found = GroundednessRunnable(verifier=verifier).invoke(
        {"answer": "Rome is the capital of Norway.", "documents": ["Oslo is Norway's capital."]}
    )
    assert found.verdict == "has_contradictions"
    assert found.claims[0].verifier == "deberta-nli"
