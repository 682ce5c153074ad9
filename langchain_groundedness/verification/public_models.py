"""Public verification models by name: their exact input, labels, limits, size and licence.

The weights are loaded into the network classes of `transformers`; code in a model's repository
never runs. HHEM is published with code of its own, but that only wraps a
`T5ForTokenClassification`, which is built here from the same weights. Formats and labels are those
of the model cards and of the authors' code (github.com/Liyan06/MiniCheck,
github.com/KRLabsOrg/LettuceDetect).
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from langchain_groundedness._runtime.installed import missing_names
from langchain_groundedness.exceptions import ConfigurationError, require

__all__ = ["PUBLIC_MODELS", "LoadedModel", "known_models", "load_public_model", "public_model"]

_EXTRA = "transformers"
_FLAN_T5_BASE = ("google/flan-t5-base", "7bcac572ce56db69c1ea7c8af255c5d7c9672fc2")
_ANSWER_IDS = [3, 209]  # tokens that MiniCheck-Flan-T5 answers with: unsupported, supported
_TOKENS_PER_RUN = 4096
"""Maximum number of tokens, padding included, that a network reads at once; this bounds its
memory."""
_JOINING_TOKENS = 8
"""Tokens by which an input may be longer than the sum of its parts."""


class _Family(NamedTuple):
    """How models of one kind read their input, and what their output means."""

    network: str
    """Class in `transformers`."""
    read: Callable[[Any, list[Any]], list[Any]]
    """From the logits and encodings of a batch to one row of probabilities per input."""
    inputs: tuple[str, ...]
    """Templates of the text, or of the two texts, that the tokenizer gets."""
    inputs_with_question: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    """Classes of a row; without, a row is the probability of support alone."""
    labels: tuple[str, ...] | int = 2
    """The network's labels in order, or how many it has; 0 for none."""
    torch_format: bool = False
    """Whether the repository has no safetensors; such files are read with `weights_only`."""


def _least_supported_token(logits: Any, encodings: list[Any]) -> list[Any]:
    """A claim is as good as its worst token; label 1 of a token is "hallucinated"."""
    unsupported = logits.softmax(dim=-1)[:, :, 1].tolist()
    return [
        1.0 - max((row[n] for n, text in enumerate(each.sequence_ids) if text == 1), default=1.0)
        for row, each in zip(unsupported, encodings, strict=True)
    ]


_HHEM_PROMPT = (
    "<pad> Determine if the hypothesis is true given the premise?\n\n"
    "Premise: {evidence}\n\nHypothesis: {claim}"
)
_QUESTION_PROMPT = (  # LettuceDetect's, for one passage
    "Briefly answer the following question:\n{question}\nBear in mind that your response should "
    "be strictly based on the following 1 passages:\npassage 1: {evidence}\nIn case the passages "
    "do not contain the necessary information to answer the question, please reply with: "
    '"Unable to answer based on given passages."\noutput:'
)
_HHEM = _Family(
    network="T5ForTokenClassification",
    read=lambda logits, _: logits[:, 0].softmax(dim=-1)[:, 1].tolist(),
    inputs=(_HHEM_PROMPT,),
)
_MINICHECK = _Family(
    network="AutoModelForSequenceClassification",
    read=lambda logits, _: logits.softmax(dim=-1)[:, 1].tolist(),
    inputs=("{evidence}{eos}{claim}",),
    torch_format=True,
)
_MINICHECK_T5 = _Family(
    network="AutoModelForSeq2SeqLM",
    read=lambda logits, _: logits[:, 0, _ANSWER_IDS].softmax(dim=-1)[:, 1].tolist(),
    inputs=("predict: {evidence}{eos}{claim}",),
    labels=0,
    torch_format=True,
)
_LETTUCEDETECT = _Family(
    network="AutoModelForTokenClassification",
    read=_least_supported_token,
    inputs=("Summarize the following text:\npassage 1: {evidence}\noutput:", "{claim}"),
    inputs_with_question=(_QUESTION_PROMPT, "{claim}"),
)
_NLI = _Family(
    network="AutoModelForSequenceClassification",
    read=lambda logits, _: logits.softmax(dim=-1).tolist(),
    inputs=("{evidence}", "{claim}"),
    classes=("supported", "unverifiable", "contradicted"),
    labels=("entailment", "neutral", "contradiction"),
)


class PublicModel(NamedTuple):
    """What is known of a public model before it is loaded."""

    repository: str
    revision: str | None
    """Commit that is loaded by default; `None` for the newest."""
    family: _Family
    limit: int
    """Maximum number of tokens of an input."""
    window: int
    """Maximum number of tokens of evidence in an input, by default."""
    parameters: int
    """Size in millions of parameters."""
    licence: str
    """SPDX identifier of the licence of the weights, by the repository's model card."""


# Windows of MiniCheck are the chunks of its published results; 700 tokens are about 500 words.
PUBLIC_MODELS: Mapping[str, PublicModel] = {
    "hhem": PublicModel(
        "vectara/hallucination_evaluation_model",
        "8e4a2e6e96c708cc76c2344f7e4757df2515292c",
        *(_HHEM, 2048, 1024),
        parameters=110,
        licence="Apache-2.0",
    ),
    "minicheck-roberta": PublicModel(
        "lytang/MiniCheck-RoBERTa-Large",
        "74c8919647e61ed0f71bc177d94f10930f090068",
        *(_MINICHECK, 512, 400),
        parameters=355,
        licence="MIT",
    ),
    "minicheck-deberta": PublicModel(
        "lytang/MiniCheck-DeBERTa-v3-Large",
        "2f2d01a54fa022a7ffadb76260e1ea8bc88c82bb",
        *(_MINICHECK, 2048, 400),
        parameters=435,
        licence="MIT",
    ),
    "minicheck-flan-t5": PublicModel(
        "lytang/MiniCheck-Flan-T5-Large",
        "96eafd01cee2d16cf81aaa2fb226b14f422a37b3",
        *(_MINICHECK_T5, 2048, 700),
        parameters=783,
        licence="MIT",
    ),
    "lettucedetect-base": PublicModel(
        "KRLabsOrg/lettucedect-base-modernbert-en-v1",
        *(None, _LETTUCEDETECT, 4096, 2048),
        parameters=150,
        licence="MIT",
    ),
    "lettucedetect-large": PublicModel(
        "KRLabsOrg/lettucedect-large-modernbert-en-v1",
        *(None, _LETTUCEDETECT, 4096, 2048),
        parameters=396,
        licence="MIT",
    ),
    "deberta-nli": PublicModel(
        "MoritzLaurer/DeBERTa-v3-base-mnli-fever-anli",
        "6f5cf0a2b59cabb106aca4c287eed12e357e90eb",
        *(_NLI, 512, 256),
        parameters=184,
        licence="MIT",
    ),
}


def known_models() -> str:
    """List the models by name, each with its size and licence."""
    return ", ".join(
        f"{name} ({model.parameters} million parameters, {model.licence})"
        for name, model in PUBLIC_MODELS.items()
    )


def public_model(name: str) -> PublicModel:
    """Look up a model, and check that the packages it needs are installed."""
    if name not in PUBLIC_MODELS:
        msg = f"there is no public model {name!r:.60}; accepted: {known_models()}"
        raise ConfigurationError(msg)
    for package in sorted(missing_names({"torch": "torch", "transformers": "transformers"})):
        require(package, extra=_EXTRA)
    return PUBLIC_MODELS[name]


_LOADED: dict[tuple[str, str | None, str | None], "LoadedModel"] = {}
_LOADING = Lock()


def load_public_model(name: str, path: str | None, revision: str | None) -> "LoadedModel":
    """Load a model, once per process: from a folder, or from the hub and its cache."""
    key = (name, path, revision)
    if key not in _LOADED:
        with _LOADING:
            _LOADED[key] = _LOADED.get(key) or LoadedModel(public_model(name), path, revision)
    return _LOADED[key]


class LoadedModel:
    """A public model in memory, for use from any thread."""

    def __init__(self, model: PublicModel, path: str | None, revision: str | None) -> None:
        """Load the tokenizer and the weights, without code from the repository."""
        self.model = model
        self._torch = require("torch", extra=_EXTRA)
        load = _load_hhem if model.family is _HHEM else _load
        at = {} if path else {"revision": revision or model.revision or "main"}
        self.network, source, at = load(model.family, path or model.repository, at)
        self.tokenizer = require("transformers", extra=_EXTRA).AutoTokenizer.from_pretrained(
            source, trust_remote_code=False, **at
        )
        self._device = "cuda" if self._torch.cuda.is_available() else "cpu"
        self.network.to(self._device).eval()
        self._encoder = self.tokenizer.backend_tokenizer
        self._encoder.no_truncation()
        self._encoder.no_padding()
        self._special = [
            t.content for t in self.tokenizer.added_tokens_decoder.values() if t.special
        ]
        self._lock = Lock()

    def count_tokens(self, text: str) -> int:
        """Count the tokens of a text as part of an input."""
        return len(
            self._encoder.encode(self._without_control_tokens(text), add_special_tokens=False).ids
        )

    def tokens_left(self, claim: str, question: str | None) -> int:
        """Count the tokens that an input has left for evidence beside a claim."""
        frame = self._encoder.encode(*self.texts("", claim, question))
        return self.model.limit - len(frame.ids) - _JOINING_TOKENS

    def texts(self, evidence: str, claim: str, question: str | None) -> tuple[str, ...]:
        """Fill the templates of the model's input."""
        family, asked = self.model.family, (question or "").strip()
        templates = (family.inputs_with_question if asked else ()) or family.inputs
        parts = {"evidence": evidence, "claim": claim, "question": asked}
        inert = {name: self._without_control_tokens(part) for name, part in parts.items()}
        return tuple(each.format(eos=self.tokenizer.eos_token, **inert) for each in templates)

    def score(self, inputs: Sequence[tuple[str, ...]]) -> list[Any]:
        """Return one probability, or one per class, for each result of `texts`.

        An input over the limit is not cut: its score is NaN.
        """
        encodings = [self._encoder.encode(*each) for each in inputs]
        lengths = list(map(len, encodings))
        places = [place for place, length in enumerate(lengths) if length <= self.model.limit]
        places.sort(key=lengths.__getitem__)
        size = max(1, _TOKENS_PER_RUN // max((lengths[place] for place in places), default=1))
        scores: list[Any] = [[math.nan] * len(self.model.family.classes) or math.nan] * len(inputs)
        for first in range(0, len(places), size):
            batch = places[first : first + size]
            for place, row in zip(batch, self._run([encodings[p] for p in batch]), strict=True):
                scores[place] = row
        return scores

    def _without_control_tokens(self, text: str) -> str:
        """Break special tokens in a text, so that it cannot end the evidence and add to a claim."""
        normalizer = self._encoder.normalizer  # full-width letters can become a special token
        normal = normalizer.normalize_str(text) if normalizer else text
        for token in self._special:
            text = normal if token in normal and token not in text else text
            text, normal = (t.replace(token, f"{token[0]} {token[1:]}") for t in (text, normal))
        return text

    def _run(self, encodings: list[Any]) -> list[Any]:
        longest, padding = max(map(len, encodings)), self.tokenizer.pad_token_id
        given = {
            "input_ids": [each.ids + [padding] * (longest - len(each)) for each in encodings],
            "attention_mask": [[1] * len(each) + [0] * (longest - len(each)) for each in encodings],
        }
        if self.model.family is _MINICHECK_T5:
            given["decoder_input_ids"] = [[0]] * len(encodings)
        # One batch at a time: more would not finish sooner, and take the memory of several.
        with self._lock, self._torch.inference_mode():
            tensors = {k: self._torch.tensor(v, device=self._device) for k, v in given.items()}
            logits = self.network(**tensors).logits.float().cpu()
        return self.model.family.read(logits, encodings)


def _load(family: _Family, source: str, revision: dict[str, str]) -> tuple[Any, str, Any]:
    """Load a network; return it with the place of its tokenizer."""
    network, found = getattr(require("transformers", extra=_EXTRA), family.network).from_pretrained(
        source,
        # A folder may have either format; a repository's files would be converted online.
        use_safetensors=not family.torch_format if revision else None,
        weights_only=True,
        trust_remote_code=False,
        output_loading_info=True,
        **revision,
    )
    if lacking := [*found["missing_keys"], *found["mismatched_keys"]]:
        msg = f"{source} lacks weights of {type(network).__name__}: {min(map(str, lacking))}"
        raise ConfigurationError(msg)
    labels = tuple(name.lower() for _, name in sorted(network.config.id2label.items()))
    if family.labels not in (0, len(labels), labels):
        msg = f"{source} has the labels {', '.join(labels)}; expected {family.labels}"
        raise ConfigurationError(msg)
    return network, source, revision


def _load_hhem(_: _Family, source: str, revision: dict[str, str]) -> tuple[Any, str, Any]:
    """Build HHEM from its weights, and the settings and tokenizer of the model it comes from."""
    transformers = require("transformers", extra=_EXTRA)
    download = require("huggingface_hub", extra=_EXTRA).hf_hub_download
    config_file, weights_file = (
        Path(download(source, name, **revision) if revision else f"{source}/{name}")
        for name in ("config.json", "model.safetensors")
    )
    base = str(json.loads(config_file.read_text("utf-8")).get("foundation", _FLAN_T5_BASE[0]))
    pinned = {"revision": _FLAN_T5_BASE[1]} if base == _FLAN_T5_BASE[0] else {}
    if not revision and (Path(source) / base).is_dir():
        base, pinned = str(Path(source) / base), {}
    config = transformers.T5Config.from_pretrained(base, num_labels=2, **pinned)
    network = transformers.T5ForTokenClassification(config)
    read = require("safetensors.torch", extra=_EXTRA).load_file(weights_file)
    weights = {key.removeprefix("t5."): value for key, value in read.items()}
    shared = weights["transformer.shared.weight"]  # once in the file, twice in the network
    network.load_state_dict({"transformer.encoder.embed_tokens.weight": shared, **weights})
    return network, base, pinned
