"""What the embedded verifier costs: answers a second by concurrency, memory, the first verdict.

Answers of five claims over about 1,000 words, all different, by `ainvoke`; beside it the same
answers one after the other. Memory and the first verdict are taken in a process of their own.
"""

import argparse
import asyncio
import json
import random
import subprocess
import sys
import time

from langchain_core.documents import Document

from langchain_groundedness import Claim, EmbeddedVerifier, VerificationTask

_CONCURRENT = (1, 8, 64)
_CLAIMS, _SENTENCES = 5, 70
_FIRST = """
import json, time
begun = time.perf_counter()
import langchain_groundedness as lg
imported = time.perf_counter()
from langchain_core.documents import Document
task = lg.VerificationTask(
    claims=(lg.Claim(id="1", text="The bridge was opened in 1932."),),
    documents=(Document(page_content="The bridge opened to traffic in 1932."),),
)
lg.EmbeddedVerifier().invoke(task)
print(json.dumps({
    "import_s": imported - begun,
    "first_s": time.perf_counter() - imported,
    "peak_mb": int(open("/proc/self/status").read().partition("VmHWM:")[2].split()[0]) / 1024,
}))
"""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--answers", type=int, default=64, help="per row of the table")
    answers = parser.parse_args().answers
    verifier = EmbeddedVerifier()
    verifier.warm_up()
    print(f"{'at once':>8}{'answers/s':>11}{'ms a claim':>12}{'against one after the other':>30}")
    for number, concurrent in enumerate(_CONCURRENT):
        alone = asyncio.run(_seconds(verifier, make_tasks(answers, 2 * number), 1))
        taken = asyncio.run(_seconds(verifier, make_tasks(answers, 2 * number + 1), concurrent))
        each = taken * 1000 / answers / _CLAIMS
        print(f"{concurrent:8}{answers / taken:11.1f}{each:12.1f}{alone / taken:29.2f}x")
    first = json.loads(subprocess.check_output([sys.executable, "-c", _FIRST]))
    print(
        f"import {first['import_s']:.2f} s, first verdict {first['first_s']:.2f} s after it, "
        f"peak memory {first['peak_mb']:.0f} MB"
    )


async def _seconds(
    verifier: EmbeddedVerifier, tasks: list[VerificationTask], concurrent: int
) -> float:
    free = asyncio.Semaphore(concurrent)

    async def check(task: VerificationTask) -> None:
        async with free:
            await verifier.ainvoke(task)

    begun = time.perf_counter()
    await asyncio.gather(*(check(task) for task in tasks))
    return time.perf_counter() - begun


def make_tasks(count: int, seed: int) -> list[VerificationTask]:
    """Make answers of five claims over about 1,000 words in seven documents."""
    chosen = random.Random(seed)
    return [_task(chosen) for _ in range(count)]


def _task(chosen: random.Random) -> VerificationTask:
    sentences = [_sentence(chosen) for _ in range(_SENTENCES)]
    claims = [chosen.choice(sentences).replace(" in ", " during ") for _ in range(_CLAIMS)]
    return VerificationTask(
        claims=tuple(Claim(id=str(n), text=text) for n, text in enumerate(claims)),
        documents=tuple(
            Document(page_content=" ".join(sentences[first : first + 10]))
            for first in range(0, _SENTENCES, 10)
        ),
    )


_WHO = [
    "company",
    "region",
    "factory",
    "council",
    "museum",
    "library",
    "hospital",
    "harbour",
    "airport",
    "theatre",
]
_DID = [
    "opened",
    "closed",
    "repaired",
    "extended",
    "painted",
    "sold",
    "bought",
    "lost",
    "planned",
    "financed",
]
_WHAT = [
    "bridge",
    "depot",
    "gallery",
    "turbine",
    "workshop",
    "terminal",
    "stairway",
    "reservoir",
    "tower",
    "archive",
]


def _sentence(chosen: random.Random) -> str:
    place = chosen.choice(["northern", "southern", "eastern", "western", "central"])
    return (
        f"The {place} {chosen.choice(_WHO)} {chosen.choice(_DID)} its {chosen.choice(_WHAT)} in "
        f"{chosen.randint(1900, 2024)} for {chosen.randint(2, 900)} million crowns."
    )


if __name__ == "__main__":
    main()
