"""Judge labelled claims with a real chat model: `llm.py --base-url URL --data DIR`.

Prints, for both strategies of `LLMVerifier`, how well verdicts agree with the labels of people,
how many were missing at first and at the end, whether citations hold, and what it cost.

Data: `DIR/**/claims_NAME.jsonl.gz`, JSON lines. A row `{"documents_id", "documents": [text, …]}`
gives documents; every other row is a claim about some of them:
`{"claim", "label": "supported" | …, "documents_id", "question"?}`.
The samples are fixed by `--seed`: claims of few and short document sets, as many supported as
others where there are, so that a slow local model reads each set of documents once.
"""

import argparse
import gzip
import json
import random
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.outputs import LLMResult
from langchain_openai import ChatOpenAI

from langchain_groundedness.types import Claim, ClaimVerdict, VerificationTask
from langchain_groundedness.verification.llm import LLMVerifier


class Sample(NamedTuple):
    """A task, and which of its claims people found supported."""

    task: VerificationTask
    supported: dict[str, bool]


class Counter(BaseCallbackHandler):
    """Counts calls and tokens, and verdict lines asked for and missing in first replies."""

    def __init__(self) -> None:
        """Start at nothing."""
        self.calls = self.prompt_tokens = self.output_tokens = 0

    def on_llm_end(self, response: LLMResult, **_: Any) -> None:
        """Count a call."""
        usage = getattr(response.generations[0][0], "message", None)
        usage = getattr(usage, "usage_metadata", None) or {}
        self.calls += 1
        self.prompt_tokens += usage.get("input_tokens", 0)
        self.output_tokens += usage.get("output_tokens", 0)


def main() -> int:
    """Run both strategies on every set."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--base-url", required=True, help="OpenAI-compatible server")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", default="lfqa", help="NAMEs of claim sets, by commas")
    parser.add_argument("--strategies", default="per_claim,batched")
    parser.add_argument("--n", type=int, default=60, help="claims per set")
    parser.add_argument("--claims-per-document-set", type=int, default=6)
    parser.add_argument("--longest", type=int, default=2500, help="characters of documents")
    parser.add_argument("--model", default="local")
    parser.add_argument("--seed", type=int, default=7)
    args = parser.parse_args()
    model = local_model(args.model, args.base_url)
    for name in args.sets.split(","):
        found = sorted(args.data.rglob(f"claims_{name}.jsonl.gz"))
        if not found:
            print(f"{name}: no claims_{name}.jsonl.gz under --data")
            return 2
        samples = list(sampled(found[0], args))
        for strategy in args.strategies.split(","):
            report(f"{name} {strategy}", samples, LLMVerifier(model=model, strategy=strategy))
    return 0


def local_model(name: str, base_url: str) -> ChatOpenAI:
    """Give the model of a local server, which may take minutes for a reply."""
    return ChatOpenAI(
        model=name,
        base_url=base_url,
        api_key="none",
        use_responses_api=False,
        temperature=0,
        timeout=1200,
    )


def sampled(path: Path, args: argparse.Namespace) -> Iterator[Sample]:
    """Choose claims of short document sets, half of each label where there are enough."""
    documents: dict[str, list[str]] = {}
    rows = defaultdict(list)
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            if "documents" in row:
                documents[row["documents_id"]] = row["documents"]
            else:
                rows[row["documents_id"]].append(row)
    rng = random.Random(args.seed)
    short = [key for key in documents if sum(map(len, documents[key])) <= args.longest]
    # Sets with both labels first: ranking within a set is what a checker is for.
    short.sort(key=lambda key: (one_sided(rows[key]), rng.random()))
    left = args.n
    for key in short:
        chosen = balanced(rows[key], min(left, args.claims_per_document_set), rng)
        if not chosen or left <= 0:
            continue
        left -= len(chosen)
        yield Sample(
            VerificationTask(
                claims=tuple(Claim(id=str(n), text=row["claim"]) for n, row in enumerate(chosen)),
                documents=tuple(map(Document, documents[key])),
                question=chosen[0].get("question"),
            ),
            {str(n): row["label"] == "supported" for n, row in enumerate(chosen)},
        )


def one_sided(rows: Sequence[dict[str, Any]]) -> bool:
    """Tell whether all rows have the same label."""
    return len({row["label"] for row in rows}) == 1


def balanced(rows: Sequence[dict[str, Any]], n: int, rng: random.Random) -> list[dict[str, Any]]:
    """Choose up to `n` rows, half of them unsupported if there are so many."""
    mixed = rng.sample(list(rows), len(rows))
    bad = [row for row in mixed if row["label"] != "supported"][: n // 2 or 1]
    good = [row for row in mixed if row["label"] == "supported"][: n - len(bad)]
    return rng.sample([*good, *bad], len(good) + len(bad))[:n]


def report(what: str, samples: Sequence[Sample], verifier: LLMVerifier) -> None:
    """Judge the samples and print one line."""
    pairs: list[tuple[float, bool]] = []
    cited = held = missing = total = 0
    counter = Counter()
    first = FirstReplies()
    started = perf_counter()
    for sample in samples:
        config = {"callbacks": [counter, first], "max_concurrency": 1}
        verdicts = verifier.invoke(sample.task, config)
        total += len(verdicts)
        for verdict in verdicts:
            missing += verdict.verdict == "unchecked"
            cited += len(verdict.citations)
            held += sum(c.holds_in(sample.task.documents) for c in verdict.citations)
            pairs.append((score(verdict), sample.supported[verdict.claim.id]))
    seconds = perf_counter() - started
    yes = sum(label for _, label in pairs)
    print(
        f"{what}: {total} claims ({yes} supported) of {len(samples)} document sets | "
        f"AUC {auc(pairs):.3f} | balanced accuracy {balanced_accuracy(pairs):.3f} | "
        f"missing at first {first.missing}, at the end {missing} | "
        f"citations that hold {held} of {cited} | {seconds / total:.2f} s, "
        f"{counter.calls / total:.2f} calls, {counter.prompt_tokens / total:.0f} prompt and "
        f"{counter.output_tokens / total:.1f} output tokens a claim",
        flush=True,
    )


class FirstReplies(BaseCallbackHandler):
    """Counts claims without a verdict in the first reply about them."""

    def __init__(self) -> None:
        """Start at nothing."""
        self.missing = 0
        self._asked: set[Any] = set()
        self._first: dict[Any, int] = {}

    def on_chain_start(self, *args: Any, **kwargs: Any) -> None:
        """Note how many claims a first call is about."""
        if kwargs.get("name") == "verify_claims" and kwargs["parent_run_id"] not in self._asked:
            self._asked.add(kwargs["parent_run_id"])
            self._first[kwargs["run_id"]] = args[1]["claims"].count("\nC")

    def on_chain_end(self, outputs: Any, **kwargs: Any) -> None:
        """Compare with the verdicts in its reply."""
        claims = self._first.pop(kwargs["run_id"], 0)
        if claims:
            self.missing += claims - len(outputs.decided)

    def on_chain_error(self, *_: Any, **kwargs: Any) -> None:
        """Count all of them."""
        self.missing += self._first.pop(kwargs["run_id"], 0)


def score(verdict: ClaimVerdict) -> float:
    """Order verdicts by support: the probability if there is one, else the label."""
    if verdict.support_probability is not None:
        return verdict.support_probability
    return {"supported": 1.0, "unverifiable": 0.4, "contradicted": 0.0}.get(verdict.verdict, 0.2)


def auc(pairs: Sequence[tuple[float, bool]]) -> float:
    """Give the area under the ROC curve."""
    good = [value for value, label in pairs if label]
    bad = [value for value, label in pairs if not label]
    wins = sum((a > b) + (a == b) / 2 for a in good for b in bad)
    return wins / max(1, len(good) * len(bad))


def balanced_accuracy(pairs: Sequence[tuple[float, bool]], threshold: float = 0.5) -> float:
    """Give the mean of the shares of both labels that were told right."""
    good = [value >= threshold for value, label in pairs if label]
    bad = [value < threshold for value, label in pairs if not label]
    return (sum(good) / max(1, len(good)) + sum(bad) / max(1, len(bad))) / 2


if __name__ == "__main__":
    sys.exit(main())
