"""Train the encoder in stages, on pairs of evidence and claim; goes on after a cut.

Pairs are those of `make_pairs.py` (gzip JSON lines: `evidence`, `claim`, `label`, `group`,
`held`?, `part`?). Labels are `supported`, `contradicted`, `unverifiable`, and `unsupported` where
people only said that much: the loss is then that of the sum of the other two classes. Pairs of one
group differ by little; they are in one batch, and the supported ones must stand above the others.
Rows that are `held` are never learned from: how well they are told apart is printed on the way.
With `--without`, nor are those of a part of a set, such as one source of the contrast NLI.
With `--teacher`, what an earlier encoder says of all but the newest sets is learned beside their
labels (learning without forgetting, Li and Hoiem 2016). It runs on an accelerator if PyTorch finds
one, else on the processor, in bfloat16 where that is faster than float32.
"""

import argparse
import copy
import gzip
import json
import random
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from encoder_network import EvidenceEncoder, load_start, pair_tokenizer, pretrained
from safetensors.torch import save_file
from sklearn.metrics import roc_auc_score

__all__ = ["STAGES", "Stage", "encode_rows", "figures", "odds_of", "read_pairs"]


class Stage(NamedTuple):
    """What a stage learns from, and how."""

    sets: Mapping[str, float]
    """How often each is read; a fraction reads that share of its groups."""
    start: str | None
    """The stage it starts from; `None` for what `--start` says."""
    rate: float
    """Of learning, at its highest."""
    without: Sequence[str] = ()
    """Parts of sets that are only measured."""


_NLI = {"snli": 0.2, "nli_contrast": 0.2, "fever_symmetric": 0.5, "fool_me_twice": 0.5}
_MADE = {
    "rules": 0.15,
    "edits": 0.25,
    "frames": 0.15,
    "facts": 0.05,
    "records": 0.5,
    "pronouns": 0.4,
    "left_out": 0.7,
    "joined": 0.7,
}
_WRITTEN = {"passages": 0.15, "contrast_pairs": 1.2, "document_claims": 1.2}
_JUDGED = {
    "factscore": 0.8,
    "factcheckgpt": 1.5,
    "halueval_qa": 0.5,
    "begin": 2,
    "ragtruth_qa": 2,
    "wice": 3,
}
_CONTRASTS = {
    "bump": 0.7,
    "cg2c": 0.8,
    "defacto": 0.4,
    "dialogue": 0.8,
    "frank": 1,
    "summedits": 0.6,
    "tables": 0.25,
}
STAGES = {
    "short": Stage(
        {
            "contrast_pairs": 3,
            "snli": 1,
            "nli_contrast": 1,
            "fever_symmetric": 1,
            "frames": 0.3,
            "facts": 0.3,
        },
        None,
        1e-4,
    ),
    "all": Stage(_NLI | _MADE | _WRITTEN | _JUDGED | _CONTRASTS, "short", 9e-5),
}
"""In the order they are run."""

_SHIPPED = Path(__file__).parent / "checkpoint" / "encoder-fp16.safetensors"
_NEW = {*_WRITTEN, "pronouns", "records", "joined"}
"""Sets whose labels alone are learned: no teacher knows them better."""
_LABELS = {"supported": 0, "contradicted": 1, "unverifiable": 2, "unsupported": 3}
_TOKENS_PER_BATCH = 4096
_LONGEST_PAIR = 384
_LONGEST_CLAIM = 120
_LARGEST_GROUP = 6
_WARM_UP = 0.05
_LOWEST = 0.03
_MARGIN = 1.0
_MARGIN_WEIGHT = 0.5
_TEACHER_WEIGHT = 1.0
_SAVE_SECONDS = 180
_PRINT_STEPS = 50
_AVERAGED_EVERY = 4
_AVERAGE_KEEPS = 0.992
"""Of the running mean of the weights, which is what a stage gives."""
_MOST_HELD = 150
"""Rows of each held part that are scored on the way."""
_ROUNDED = 16
"""Lengths are padded to multiples of this: kernels are prepared once for each shape."""
_TRIALS = 5


def main() -> None:
    """Run the stages whose weights are not there yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--work", type=Path, required=True, help="folder with pairs/; weights go here"
    )
    begin = parser.add_mutually_exclusive_group()
    begin.add_argument(
        "--start",
        type=Path,
        help="weights or folder of a model to start from; by default the shipped weights",
    )
    begin.add_argument(
        "--anew",
        action="store_true",
        help="start from the pretrained body",
    )
    parser.add_argument(
        "--passes", type=float, default=1.0, help="how many times as often to read each set"
    )
    parser.add_argument("--teacher", type=Path, help="whose view of the older sets is kept")
    parser.add_argument("--stage", action="append", choices=STAGES, help="by default all, in order")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--measure-every", type=int, default=1000, help="steps")
    parser.add_argument("--minutes", type=float, default=1e9, help="end a stage after so many")
    parser.add_argument(
        "--without", action="append", default=[], help="part of a set to measure only, as scone"
    )
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    start = pretrained() if options.anew else options.start
    for name in options.stage or STAGES:
        weights = options.work / f"{name}.safetensors"
        if not weights.exists():
            earlier = STAGES[name].start
            if start is None:
                start = options.work / f"{earlier}.safetensors" if earlier else _SHIPPED
            sets = {n: times * options.passes for n, times in STAGES[name].sets.items()}
            training = _Training(
                STAGES[name]._replace(sets=sets, without=options.without),
                options.work,
                weights,
                _Starts(start, options.teacher),
                options.minutes,
            )
            training.run(options.measure_every)
        start = None


class _Starts(NamedTuple):
    """Where a stage starts, and whose view of the older sets it keeps."""

    student: Path
    teacher: Path | None


class _Training:
    """One stage: weights to compute with, weights in float32 to learn with, and their mean."""

    def __init__(
        self, stage: Stage, work: Path, weights: Path, starts: _Starts, minutes: float
    ) -> None:
        torch.manual_seed(0)
        rows = [
            row | ({"held": True} if row.get("part") in stage.without else {})
            for name, times in stage.sets.items()
            for row in read_pairs(work / "pairs", name)
            if row.get("held") or _chosen(row["group"], times)
        ]
        self.held = [row for row in rows if row.get("held")]
        learned = [row for row in rows if not row.get("held")]
        self.encoded = encode_rows(learned)
        self.batches = _batches(self.encoded, stage.sets, random.Random(0))
        print(f"{weights.stem}: {len(learned)} pairs, {len(self.batches)} steps", flush=True)
        self.weights, self.minutes, self.begun = weights, minutes, time.time()
        device, precision = _device(), _precision()
        print(f"on {device.type}, in {precision}", flush=True)
        start = load_start(starts.student).to(device)
        self.named = {n: p for n, p in start.named_parameters() if p.requires_grad}
        self.mean = {n: p.detach().clone() for n, p in self.named.items()}
        self.start = start
        self.model = copy.deepcopy(start).to(precision).train()
        taught = starts.teacher is not None
        self.teacher = load_start(starts.teacher).to(device, precision).eval() if taught else None
        learning = dict(self.model.named_parameters())
        self.computing = [learning[n] for n in self.named]
        self.optimizer = torch.optim.AdamW(_groups(self.named), lr=stage.rate, fused=True)
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(
            self.optimizer, lambda s: min(_slope(s / len(self.batches)), _slope(self._spent()))
        )
        self.checkpoint = weights.with_suffix(".checkpoint")
        self.done = 0
        if self.checkpoint.exists():
            self._load()

    def run(self, measure_every: int) -> None:
        begun = saved = time.time()
        losses: list[tuple[float, float, float]] = []
        tokens = 0
        for number in range(self.done, len(self.batches)):
            rows = [self.encoded[i] for i in self.batches[number]]
            losses.append(self._step(rows))
            tokens += sum(len(row["ids"]) for row in rows)
            self.done = number + 1
            if self.done % _PRINT_STEPS == 0:
                plain, ranked, kept = np.mean(losses[-_PRINT_STEPS:], axis=0)
                rate = tokens / (time.time() - begun)
                print(
                    f"{self.done}/{len(self.batches)} loss {plain:.3f} ranking {ranked:.3f} "
                    f"teacher {kept:.3f} {rate:.0f} tokens/s",
                    flush=True,
                )
            if time.time() - saved > _SAVE_SECONDS:
                saved = time.time()
                self._save()
            over = self._spent() >= 1 or self.done == len(self.batches)
            if self.done % measure_every == 0 or over:
                _measure(self._averaged(), self.held)
            if over:
                break
        save_file(self._averaged().cpu().state_dict(), self.weights)
        self.checkpoint.unlink(missing_ok=True)

    def _spent(self) -> float:
        """Say what share of its time has passed, counted from where learning is at its fastest."""
        return _WARM_UP + (1 - _WARM_UP) * (time.time() - self.begun) / (60 * self.minutes)

    def _step(self, rows: list[dict[str, Any]]) -> tuple[float, float, float]:
        plain, ranked, kept = _loss(self.model, rows, self.teacher)
        (plain + _MARGIN_WEIGHT * ranked + _TEACHER_WEIGHT * kept).backward()
        master = list(self.named.values())
        for mine, computing in zip(master, self.computing, strict=True):
            mine.grad = computing.grad.float()
            computing.grad = None
        torch.nn.utils.clip_grad_norm_(master, 1.0)
        self.optimizer.step()
        self.scheduler.step()
        with torch.no_grad():
            torch._foreach_copy_(self.computing, master)
            if self.done % _AVERAGED_EVERY == 0:
                torch._foreach_lerp_(
                    list(self.mean.values()), master, 1 - min(_AVERAGE_KEEPS, self.done / 1000)
                )
        return float(plain.detach()), float(ranked.detach()), float(kept.detach())

    def _averaged(self) -> EvidenceEncoder:
        model = copy.deepcopy(self.start)
        model.load_state_dict(self.mean, strict=False)
        return model

    def _save(self) -> None:
        state = {
            "model": self.named,
            "mean": self.mean,
            "optimizer": self.optimizer.state_dict(),
            "scheduler": self.scheduler.state_dict(),
            "done": self.done,
        }
        part = self.checkpoint.with_suffix(".part")
        torch.save(state, part)
        part.replace(self.checkpoint)

    def _load(self) -> None:
        kept = torch.load(self.checkpoint, weights_only=True, map_location=_device())
        with torch.no_grad():
            for name, mine in self.named.items():
                mine.copy_(kept["model"][name])
            torch._foreach_copy_(self.computing, list(self.named.values()))
        self.mean = kept["mean"]
        self.optimizer.load_state_dict(kept["optimizer"])
        self.scheduler.load_state_dict(kept["scheduler"])
        self.done = kept["done"]


def read_pairs(folder: Path, name: str) -> list[dict[str, Any]]:
    """Read the pairs of a set.

    Args:
        folder: Where `make_pairs.py` wrote them.
        name: The set.

    Returns:
        Its rows.
    """
    with gzip.open(folder / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) | {"set": name} for line in lines]


def encode_rows(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Turn pairs into token ids.

    Args:
        rows: The pairs.

    Returns:
        For each its ids, how many of them are the claim's, label and group.
    """
    reader = pair_tokenizer()
    reader.enable_truncation(_LONGEST_PAIR, strategy="longest_first")
    pairs = [(row["evidence"], " ".join(row["claim"].split()[:_LONGEST_CLAIM])) for row in rows]
    return [
        {
            "ids": np.array(e.ids, dtype=np.int32),
            "claim": e.type_ids.count(1),
            "label": _LABELS[row["label"]],
            "group": (row["set"], row["group"]),
        }
        for row, e in zip(rows, reader.encode_batch(pairs), strict=True)
    ]


def _batches(
    encoded: list[dict[str, Any]], times: Mapping[str, float], shuffled: random.Random
) -> list[list[int]]:
    """Give batches in random order: whole groups, of about the same length, in few shapes."""
    groups: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for number, row in enumerate(encoded):
        groups[row["group"]].append(number)
    buckets: defaultdict[int, list[list[int]]] = defaultdict(list)
    for (name, _), members in groups.items():
        for _ in range(int(max(times[name], 1) + shuffled.random())):
            shuffled.shuffle(members)
            for first in range(0, len(members), _LARGEST_GROUP):
                some = members[first : first + _LARGEST_GROUP]
                buckets[_rounded(max(len(encoded[i]["ids"]) for i in some))].append(some)
    batches: list[list[int]] = []
    for length, parts in buckets.items():
        shuffled.shuffle(parts)
        size = max(_TOKENS_PER_BATCH // length, _LARGEST_GROUP)
        batch: list[int] = []
        for some in parts:
            if len(batch) + len(some) > size:
                batches.append(batch)
                batch = []
            batch = batch + some
        batches.append(batch)
    shuffled.shuffle(batches)
    return batches


def _rounded(length: int) -> int:
    return -(-length // _ROUNDED) * _ROUNDED


def _loss(
    model: EvidenceEncoder, rows: list[dict[str, Any]], teacher: EvidenceEncoder | None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return cross-entropy, how far groups are from a margin, and the distance to a teacher."""
    chances = torch.log_softmax(_logits(model, rows), dim=1)
    other = torch.logsumexp(chances[:, 1:], dim=1, keepdim=True)
    labels = torch.tensor([row["label"] for row in rows], device=chances.device)
    plain = -torch.cat([chances, other], dim=1).gather(1, labels[:, None]).mean()
    return plain, _ranked(chances[:, 0] - other[:, 0], rows), _kept(chances, rows, teacher)


def _ranked(odds: torch.Tensor, rows: list[dict[str, Any]]) -> torch.Tensor:
    groups = defaultdict(lambda: ([], []))
    for place, row in enumerate(rows):
        groups[row["group"]][row["label"] != 0].append(place)
    above = [a for good, bad in groups.values() for a in good for _ in bad]
    below = [b for good, bad in groups.values() for _ in good for b in bad]
    if not above:
        return odds.new_zeros(())
    return torch.nn.functional.softplus(_MARGIN - odds[above] + odds[below]).mean()


def _kept(
    chances: torch.Tensor, rows: list[dict[str, Any]], teacher: EvidenceEncoder | None
) -> torch.Tensor:
    """Return the divergence from what a teacher says of older rows, as a mean over all rows."""
    older = [place for place, row in enumerate(rows) if row["group"][0] not in _NEW]
    if teacher is None or not older:
        return chances.new_zeros(())
    with torch.no_grad():
        taught = torch.log_softmax(_logits(teacher, [rows[place] for place in older]), dim=1)
    total = torch.nn.functional.kl_div(chances[older], taught, reduction="sum", log_target=True)
    return total / len(rows)


def _logits(model: EvidenceEncoder, rows: Sequence[Mapping[str, Any]]) -> torch.Tensor:
    longest = _rounded(max(len(row["ids"]) for row in rows))
    ids = torch.zeros(len(rows), longest, dtype=torch.long)
    types, mask = torch.zeros_like(ids), torch.zeros_like(ids)
    for place, row in enumerate(rows):
        size = len(row["ids"])
        ids[place, :size] = torch.from_numpy(row["ids"])
        types[place, size - row["claim"] : size] = 1
        mask[place, :size] = 1
    device = model.out.weight.device
    return model(ids.to(device), mask.to(device), types.to(device)).float()


def _device() -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


@cache
def _precision() -> torch.dtype:
    """Time products in both precisions: some processors emulate bfloat16, which is slow."""
    seconds = {}
    for precision in (torch.bfloat16, torch.float32):
        tokens = torch.ones((_TOKENS_PER_BATCH, 384), dtype=precision, device=_device())
        times = []
        for _ in range(_TRIALS):
            begun = time.perf_counter()
            (tokens @ tokens[:384]).sum().item()  # waits for the result
            times.append(time.perf_counter() - begun)
        seconds[precision] = min(times)
    return min(seconds, key=seconds.__getitem__)


def odds_of(model: EvidenceEncoder, rows: Sequence[Mapping[str, Any]]) -> np.ndarray:
    """Score encoded pairs.

    Args:
        model: The network.
        rows: Of `encode_rows`.

    Returns:
        For each the log odds that it is supported.
    """
    model = copy.deepcopy(model).to(_device(), _precision()).eval()
    order = sorted(range(len(rows)), key=lambda i: len(rows[i]["ids"]))
    odds = np.zeros(len(rows), dtype=np.float32)
    with torch.inference_mode():
        for first in range(0, len(order), 32):
            some = order[first : first + 32]
            logits = _logits(model, [rows[i] for i in some])
            odds[some] = (logits[:, 0] - torch.logsumexp(logits[:, 1:], dim=1)).cpu().numpy()
    return odds


def _measure(model: EvidenceEncoder, held: list[dict[str, Any]]) -> None:
    """Print how well each held part is told apart."""
    parts: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in held:
        parts[f"{row['set']}/{row.get('part', '')}".rstrip("/")].append(row)
    rows = [row for some in parts.values() for row in some[:_MOST_HELD]]
    odds = odds_of(model, encode_rows(rows))
    first = 0
    for name, some in parts.items():
        mine = odds[first : first + len(some[:_MOST_HELD])]
        print(f"  {name}: {figures(some[:_MOST_HELD], mine)}", flush=True)
        first += len(mine)


def figures(rows: Sequence[Mapping[str, Any]], odds: np.ndarray) -> str:
    """Say how well pairs are told apart.

    Args:
        rows: The pairs.
        odds: Of their being supported.

    Returns:
        AUC, shares of supported and other ones on the right side of even odds, and of the pairs
        in a group, how many are both on the right side.
    """
    true = np.array([row["label"] == "supported" for row in rows])
    text = f"{len(rows)} rows"
    if true.any():
        text += f", supported taken {np.mean(odds[true] > 0):.2f}"
    if not true.all():
        text += f", others caught {np.mean(odds[~true] <= 0):.2f}"
    if true.any() and not true.all():
        balanced = (np.mean(odds[true] > 0) + np.mean(odds[~true] <= 0)) / 2
        text += f", balanced {balanced:.3f}, AUC {roc_auc_score(true, odds):.3f}"
    groups: defaultdict[Any, tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
    for row, value in zip(rows, odds, strict=True):
        groups[row["group"]][row["label"] != "supported"].append(value)
    both = [a > 0 >= b for good, bad in groups.values() for a in good for b in bad]
    ranked = [a > b for good, bad in groups.values() for a in good for b in bad]
    if both:
        text += f", both right {np.mean(both):.2f}, ranked {np.mean(ranked):.2f} of {len(both)}"
    return text


def _groups(named: Mapping[str, torch.nn.Parameter]) -> list[dict[str, Any]]:
    plain = [p for p in named.values() if p.ndim == 1]
    decayed = [p for p in named.values() if p.ndim > 1]
    return [{"params": decayed, "weight_decay": 0.01}, {"params": plain, "weight_decay": 0.0}]


def _slope(done: float) -> float:
    """Say what part of the highest rate to learn at, by the share that is done."""
    return min((done + 1e-4) / _WARM_UP, max(_LOWEST, (1 - done) / (1 - _WARM_UP)))


def _chosen(group: str, times: float) -> bool:
    return times >= 1 or random.Random(group).random() < times


if __name__ == "__main__":
    main()
