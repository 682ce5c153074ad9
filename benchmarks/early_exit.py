"""What stopping at the first evidence batch that supports a claim would save: `early_exit.py`.

Counts prompt tokens and calls over the long samples of `peers/`, with all batches asked at once, as
`LLMVerifier` does, and one after the other about the claims that no batch has supported yet. The
judge is right about everything. Then the processor time of packing and numbering the evidence.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent / "peers"))

from langchain_core.documents import Document
from stub import count_tokens

from langchain_groundedness.evidence import EvidencePacker
from langchain_groundedness.llm.prompts import VERIFICATION_PROMPT, fence, question_part
from langchain_groundedness.types import EvidenceBatch
from langchain_groundedness.verification.judge_calls import NumberedEvidence

BUDGETS = (2_000, 4_000, 8_000)
SCHEMA_TOKENS = 107
"""Of the reply schema, counted as the stub counts it."""


class Cost(NamedTuple):
    """What one answer cost."""

    calls: int
    tokens: int


def main() -> None:
    """Print a line per budget and order, and the time of packing."""
    samples = made_samples()
    for budget in BUDGETS:
        for order in ("as given", "evidence first"):
            both = [costs(sample, budget, ranked=order != "as given") for sample in samples]
            once, early = ([pair[place] for pair in both] for place in (0, 1))
            saved = 1 - sum(c.tokens for c in early) / sum(c.tokens for c in once)
            print(
                f"{budget} tokens a batch, documents {order}: "
                f"{mean(once)[0]:.1f} calls side by side, {mean(once)[1]:,.0f} prompt tokens | "
                f"early exit: {mean(early)[0]:.1f} calls in a row, {mean(early)[1]:,.0f} prompt "
                f"tokens, {saved:.0%} saved"
            )
    begun = process_time()
    for sample in samples:
        [batch] = packed(sample["contexts"], 100_000)
        NumberedEvidence.of(batch)
    spent = 1000 * (process_time() - begun) / len(samples)
    print(f"packing and numbering the evidence: {spent:.1f} ms of processor time an answer")


def made_samples() -> list[dict[str, Any]]:
    """Make the long samples."""
    maker = Path(__file__).parent / "peers" / "make_samples.py"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "long.json"
        subprocess.run([sys.executable, str(maker), str(path), "--profile", "long"], check=True)
        samples: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return samples


def costs(sample: dict[str, Any], budget: int, *, ranked: bool) -> tuple[Cost, Cost]:
    """Give the cost of asking all batches about all claims, and with early exit."""
    texts = sample["contexts"]
    if ranked:
        gold = [claim["evidence"] for claim in sample["claims"] if claim["evidence"]]
        texts = sorted(texts, key=lambda text: not any(each in text for each in gold))
    batches = packed(texts, budget)
    left = sample["claims"]
    once = early = Cost(0, 0)
    for batch in batches:
        once = Cost(once.calls + 1, once.tokens + tokens(sample, sample["claims"], batch))
        if left:
            early = Cost(early.calls + 1, early.tokens + tokens(sample, left, batch))
        shown = "\n".join(passage.text for passage in batch.passages)
        left = [c for c in left if c["label"] != "supported" or c["evidence"] not in shown]
    return once, early


def packed(texts: Sequence[str], budget: int) -> list[EvidenceBatch]:
    """Pack texts."""
    return EvidencePacker(max_tokens=budget).pack([Document(text) for text in texts])


def tokens(sample: dict[str, Any], claims: Sequence[dict[str, Any]], batch: EvidenceBatch) -> int:
    """Count the prompt of one call."""
    numbered = "\n".join(f"C{number}: {c['text']}" for number, c in enumerate(claims, 1))
    prompt = VERIFICATION_PROMPT.format(
        evidence=NumberedEvidence.of(batch).shown,
        question=question_part(sample["question"]),
        claims=fence("claims", numbered),
    )
    return int(count_tokens(prompt)) + SCHEMA_TOKENS


def mean(costs: Sequence[Cost]) -> tuple[float, float]:
    """Give mean calls and tokens."""
    return sum(c.calls for c in costs) / len(costs), sum(c.tokens for c in costs) / len(costs)


if __name__ == "__main__":
    main()
