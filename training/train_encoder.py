"""Train the encoder in stages, on pairs of evidence and claim; goes on after a cut.

`first` learns from NLI pairs and claims made by rule; the later stages start from it. Two of them
leave out some of the claim sets, for scores on data not seen; `all` is what is shipped.
Pairs are those of `make_pairs.py` (gzip JSON lines: `evidence`, `claim`, `label`, `weight`). Labels
are `supported`, `contradicted`, `unverifiable`, and `unsupported` where people only said that much:
the loss is then that of the sum of the other two classes.
"""

import argparse
import gzip
import json
import random
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from encoder_network import EvidenceEncoder, load_start, pretrained
from tokenizers import Tokenizer

__all__ = ["STAGES", "Stage"]


class Stage(NamedTuple):
    """What a stage learns from, and how."""

    sets: tuple[str, ...]
    start: str | None
    """The stage it starts from; `None` for the pretrained network."""
    epochs: int
    rate: float
    """Of learning, at its highest."""


_OF_FACTS = ("factscore", "factcheckgpt")
_OF_TEXTS = ("begin", "ragtruth_qa", "wice")
STAGES = {
    "first": Stage(
        ("snli", "fool_me_twice", "fever_symmetric", "halueval_qa", "rules"), None, 1, 1e-4
    ),
    "without_texts": Stage(_OF_FACTS, "first", 1, 6e-5),
    "without_facts": Stage(_OF_TEXTS, "first", 1, 6e-5),
    "all": Stage(_OF_FACTS + _OF_TEXTS, "first", 1, 6e-5),
}
"""In the order they are run."""

_LABELS = {"supported": 0, "contradicted": 1, "unverifiable": 2, "unsupported": 3}
_TOKENS_PER_BATCH = 4096
_LONGEST_PAIR = 288
_LONGEST_CLAIM = 120
_WARM_UP = 0.06
_SAVE_SECONDS = 240
_PRINT_STEPS = 20
_ROUNDED = 16
"""Lengths are padded to multiples of this: kernels are prepared once for each shape."""


def main() -> None:
    """Run the stages whose weights are not there yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--work", type=Path, required=True, help="folder with pairs/; weights go here"
    )
    parser.add_argument("--stage", action="append", choices=STAGES, help="by default all, in order")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    for name in options.stage or STAGES:
        weights = options.work / f"{name}.pt"
        if not weights.exists():
            train(STAGES[name], options.work, weights)


def train(stage: Stage, work: Path, weights: Path) -> None:
    """Run a stage, from its checkpoint on if there is one."""
    torch.manual_seed(0)
    rows = [row for name in stage.sets for row in _read(work / "pairs" / f"{name}.jsonl.gz")]
    encoded = _encode(rows)
    print(f"{weights.stem}: {len(rows)} pairs", flush=True)
    model = load_start(work / f"{stage.start}.pt" if stage.start else pretrained())
    batches = [
        batch for epoch in range(stage.epochs) for batch in _batches(encoded, random.Random(epoch))
    ]
    optimizer = torch.optim.AdamW(_groups(model), lr=stage.rate, fused=True)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: _slope(s, len(batches)))
    checkpoint = weights.with_suffix(".checkpoint")
    done = 0
    if checkpoint.exists():
        kept = torch.load(checkpoint, weights_only=True)
        model.load_state_dict(kept["model"])
        optimizer.load_state_dict(kept["optimizer"])
        scheduler.load_state_dict(kept["scheduler"])
        done = kept["done"]
    begun = saved = time.time()
    model.train()
    losses: list[float] = []
    pairs = 0
    for number in range(done, len(batches)):
        rows = [encoded[i] for i in batches[number]]
        loss = _loss(model, rows)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        losses.append(float(loss.detach()))
        pairs += len(rows)
        if (number + 1) % _PRINT_STEPS == 0:
            mean = sum(losses[-_PRINT_STEPS:]) / _PRINT_STEPS
            rate = pairs / (time.time() - begun)
            print(f"{number + 1}/{len(batches)} loss {mean:.3f} {rate:.1f} pairs/s", flush=True)
        if time.time() - saved > _SAVE_SECONDS:
            saved = time.time()
            state = {
                "model": model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "scheduler": scheduler.state_dict(),
                "done": number + 1,
            }
            torch.save(state, checkpoint.with_suffix(".part"))
            checkpoint.with_suffix(".part").replace(checkpoint)
    torch.save(model.state_dict(), weights)
    checkpoint.unlink(missing_ok=True)


def _read(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def _encode(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    reader = Tokenizer.from_file(str(pretrained() / "tokenizer.json"))
    reader.no_padding()
    reader.enable_truncation(_LONGEST_PAIR, strategy="longest_first")
    pairs = [(row["evidence"], " ".join(row["claim"].split()[:_LONGEST_CLAIM])) for row in rows]
    return [
        {"ids": e.ids, "types": e.type_ids, "label": _LABELS[row["label"]], "weight": row["weight"]}
        for row, e in zip(rows, reader.encode_batch(pairs), strict=True)
    ]


def _batches(encoded: list[dict[str, Any]], shuffled: random.Random) -> list[list[int]]:
    """Batches in random order; pairs of about the same length together, in few shapes."""
    buckets: defaultdict[int, list[int]] = defaultdict(list)
    for number, row in enumerate(encoded):
        buckets[_rounded(len(row["ids"]))].append(number)
    batches: list[list[int]] = []
    for length, members in buckets.items():
        shuffled.shuffle(members)
        size = max(_TOKENS_PER_BATCH // length, 1)
        batches += [members[first : first + size] for first in range(0, len(members), size)]
    shuffled.shuffle(batches)
    return batches


def _rounded(length: int) -> int:
    return -(-length // _ROUNDED) * _ROUNDED


def _loss(model: EvidenceEncoder, rows: list[dict[str, Any]]) -> torch.Tensor:
    longest = _rounded(max(len(row["ids"]) for row in rows))
    ids = torch.zeros(len(rows), longest, dtype=torch.long)
    types, mask = torch.zeros_like(ids), torch.zeros_like(ids)
    for place, row in enumerate(rows):
        size = len(row["ids"])
        ids[place, :size] = torch.tensor(row["ids"])
        types[place, :size] = torch.tensor(row["types"])
        mask[place, :size] = 1
    labels = torch.tensor([row["label"] for row in rows])
    weights = torch.tensor([row["weight"] for row in rows])
    with torch.autocast("cpu", torch.bfloat16):
        logits = model(ids, mask, types)
    chances = torch.log_softmax(logits.float(), dim=1)
    other = torch.logsumexp(chances[:, 1:], dim=1, keepdim=True)
    losses = -torch.cat([chances, other], dim=1).gather(1, labels[:, None])[:, 0]
    return (losses * weights).sum() / weights.sum()


def _groups(model: EvidenceEncoder) -> list[dict[str, Any]]:
    plain = [p for n, p in model.named_parameters() if p.ndim == 1]
    decayed = [p for n, p in model.named_parameters() if p.ndim > 1]
    return [{"params": decayed, "weight_decay": 0.01}, {"params": plain, "weight_decay": 0.0}]


def _slope(step: int, steps: int) -> float:
    warm = max(1, int(_WARM_UP * steps))
    return min((step + 1) / warm, max(0.02, (steps - step) / max(steps - warm, 1)))


if __name__ == "__main__":
    main()
