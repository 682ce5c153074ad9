"""One call or two, on a real chat model: `single_pass.py --base-url URL --data DIR`.

Each answer is made of claims that people labelled, one sentence each. Prints, for each way to ask,
how well the verdicts on its sentences agree with the labels, how many stay unchecked, and the cost.
Data, samples and seed as in `llm.py`; a sentence counts as supported if every claim found in it is.
"""

import argparse
import sys
from collections import Counter as Count
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from llm import Counter, Sample, balanced_accuracy, local_model, sampled

from langchain_groundedness import (
    ClaimVerdict,
    GroundednessRunnable,
    SentenceClaimExtractor,
    SinglePassJudge,
)

WAYS: Mapping[str, Callable[[Any], GroundednessRunnable]] = {
    "two_steps": lambda model: GroundednessRunnable(model=model),
    "sentences": lambda model: GroundednessRunnable(
        model=model, extractor=SentenceClaimExtractor()
    ),
    "single_pass": lambda model: GroundednessRunnable(model=model, single_pass=True),
    "lines": lambda model: GroundednessRunnable(
        single_pass=SinglePassJudge(model=model, reply_form="lines")
    ),
}


def main() -> int:
    """Ask in every way about every answer."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--base-url", required=True, help="OpenAI-compatible server")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--set", default="lfqa", help="NAME of a claim set")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--n", type=int, default=40, help="claims")
    parser.add_argument("--claims-per-document-set", type=int, default=4)
    parser.add_argument("--longest", type=int, default=2500, help="characters of documents")
    parser.add_argument("--model", default="local")
    parser.add_argument("--seed", type=int, default=7)
    args = parser.parse_args()
    model = local_model(args.model, args.base_url)
    found = sorted(args.data.rglob(f"claims_{args.set}.jsonl.gz"))
    if not found:
        print(f"{args.set}: no claims_{args.set}.jsonl.gz under --data")
        return 2
    samples = list(sampled(found[0], args))
    for way in args.ways.split(","):
        report(f"{args.set} {way}", samples, WAYS[way](model))
    return 0


def report(what: str, samples: Sequence[Sample], checker: GroundednessRunnable) -> None:
    """Check the answers and print one line."""
    pairs: list[tuple[float, bool]] = []
    ends: Count[str] = Count()
    counter = Counter()
    started = perf_counter()
    for sample in samples:
        answer = " ".join(claim.text for claim in sample.task.claims)
        given = {
            "answer": answer,
            "documents": list(sample.task.documents),
            "question": sample.task.question,
        }
        config = {"callbacks": [counter], "max_concurrency": 1}
        result = checker.invoke(given, config)
        for identity, verdicts in by_sentence(sample, answer, result.claims):
            labels = {verdict.verdict for verdict in verdicts}
            worst = "unchecked" if not labels or "unchecked" in labels else "checked"
            ends[worst] += 1
            pairs.append((float(labels == {"supported"}), sample.supported[identity]))
    seconds = perf_counter() - started
    answers = len(samples)
    print(
        f"{what}: {len(pairs)} sentences of {answers} answers | "
        f"balanced accuracy {balanced_accuracy(pairs):.3f} | unchecked {ends['unchecked']} | "
        f"{seconds / answers:.1f} s, {counter.calls / answers:.2f} calls, "
        f"{counter.prompt_tokens / answers:.0f} prompt and "
        f"{counter.output_tokens / answers:.0f} output tokens an answer",
        flush=True,
    )


def by_sentence(
    sample: Sample, answer: str, verdicts: Sequence[ClaimVerdict]
) -> Iterator[tuple[str, list[ClaimVerdict]]]:
    """Give each claim of the sample with the verdicts on what stands in its place."""
    at = 0
    for claim in sample.task.claims:
        start = answer.index(claim.text, at)
        at = start + len(claim.text)
        yield (
            claim.id,
            [v for v in verdicts if (v.claim.start or 0) < at and (v.claim.end or 0) > start],
        )


if __name__ == "__main__":
    sys.exit(main())
