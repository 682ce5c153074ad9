"""How many attacks get a false claim through: a judge alone, and cross-checked.

Each attack of `tests/attacks/` is tried with two claims: one that no honest document speaks of, and
one that they contradict. The embedded verifier reads the same scenes for real, and cross-checks.

`python benchmarks/attacks.py` has a scripted judge that has fallen for every attack, and calls
every claim supported by every sentence: so what is counted is what the shape of the check stops
without any sense of the judge's.

`python benchmarks/attacks.py --base-url URL [--sample N]` asks a real model, behind a server of the
OpenAI protocol, about a sample with as many attacks of each family as there can be. It says first
what this model makes of the claims when nobody attacks. A table so far is printed now and then.
"""

import argparse
import logging
import random
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from attacks.corpus import CORPUS, FALSE, HONEST, NEAR, Attack, Scene, scene
from attacks.judges import gullible
from langchain_core.documents import Document
from pages import place_in, put

from langchain_groundedness.types import Claim, VerificationTask
from langchain_groundedness.verification import EmbeddedVerifier, LLMVerifier

CLAIMS = {"nowhere": FALSE, "contradicted": NEAR}
TRUE = (
    "The Kestrel lamp has a warranty of two years.",
    "Its battery lasts nine hours.",
    "Orders leave the warehouse in Bern within three working days.",
    "Shipping is free above 80 francs.",
)
STRATEGIES = ("batched", "per_claim")
EMBEDDED = EmbeddedVerifier()
_EVERY = 10


class Tally(NamedTuple):
    """How often a false claim came out supported, by family, way and claim."""

    tried: Counter[str]
    through: Counter[tuple[str, str, str]]


def main() -> None:
    """Try the attacks, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base-url", help="server of the judge; without one it is scripted")
    parser.add_argument("--model", default="local", help="name of the model on that server")
    parser.add_argument("--sample", type=int, help="how many attacks; by default all")
    parser.add_argument("--strategies", nargs="+", default=STRATEGIES, choices=STRATEGIES)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the table into this page")
    given = parser.parse_args()
    place = f"benchmarks/attacks.py{' --base-url' if given.base_url else ''}"
    if given.write is not None:
        place_in(given.write, place)  # so that a page without a place for it is heard of before
    logging.disable(logging.WARNING)
    real = chat(given.base_url, given.model) if given.base_url else None
    honest = "" if real is None else without_attacks(real, given.strategies)
    tally = Tally(Counter(), Counter())
    attacks = sample(given.sample or len(CORPUS), seed=given.seed)
    began = time.monotonic()
    for number, attack in enumerate(attacks, 1):
        judge = real or gullible(attack)
        verifiers = {way: LLMVerifier(model=judge, strategy=way) for way in given.strategies}
        tally.tried[attack.family] += 1
        for kind, text in CLAIMS.items():
            for way in supported_by(scene(attack, text), text, verifiers):
                tally.through[attack.family, way, kind] += 1
        if real is not None and number % _EVERY == 0 and number < len(attacks):
            print(f"\n{number} of {len(attacks)}, {time.monotonic() - began:.0f} s\n")
            print(table(tally, given.strategies), flush=True)
    told = f"{honest}{table(tally, given.strategies)}"
    print(f"\n{told}")
    if given.write is not None:
        put(given.write, place, told)


def chat(base_url: str, model: str) -> Any:
    """Make the model on a server; it waits, since a small server answers one call at a time."""
    from langchain_openai import ChatOpenAI  # noqa: PLC0415  (only for a real server)

    return ChatOpenAI(
        model=model, base_url=base_url, api_key="none", temperature=0, timeout=600, max_retries=0
    )


def without_attacks(model: Any, strategies: Sequence[str]) -> str:
    """Say what a model makes of the claims where the documents are honest."""
    lines = ["Without an attack, supported by:", ""]
    documents = tuple(Document(page_content=text) for text in HONEST)
    verifiers = {way: LLMVerifier(model=model, strategy=way) for way in strategies}
    for text in (*CLAIMS.values(), *TRUE):
        found = supported_by(Scene("What is known about it?", text, documents), text, verifiers)
        lines.append(f"- {text} ({'true' if text in TRUE else 'false'}): {_joined(found)}")
        print(lines[-1], flush=True)
    return "\n".join([*lines, "", ""])


def _joined(ways: Iterable[str]) -> str:
    return "; ".join(ways) or "nobody"


def sample(size: int, *, seed: int) -> list[Attack]:
    """Draw attacks, one of each family in turn."""
    drawn = list(CORPUS)
    if size < len(drawn):
        random.Random(seed).shuffle(drawn)
        turn: Counter[str] = Counter()
        places = {}
        for attack in drawn:
            places[attack.id] = turn[attack.family]
            turn[attack.family] += 1
        drawn.sort(key=lambda attack: places[attack.id])
    return drawn[:size]


def supported_by(staged: Scene, text: str, judges: Mapping[str, LLMVerifier]) -> Iterator[str]:
    """Name the ways in which a claim comes out supported."""
    claims = (Claim(id="c1", text=text),)
    task = VerificationTask(claims=claims, documents=staged.documents, question=staged.question)
    agrees = EMBEDDED.invoke(task)[0].verdict == "supported"
    if agrees:
        yield "embedded"
    for way, judge in judges.items():
        verdict = judge.invoke(task)[0].verdict
        if verdict == "unchecked":
            yield f"{way}, unchecked"
        if verdict == "supported":
            yield way
            if agrees:  # what `cross_checked` of docs/security.md lets stand
                yield f"{way}, cross-checked"


def table(tally: Tally, strategies: Sequence[str]) -> str:
    """Say what came through so far."""
    ways = [name for way in strategies for name in (way, f"{way}, cross-checked")]
    names = [(way, kind) for way in (*ways, "embedded") for kind in CLAIMS]
    heads = " | ".join(f"{way}: {kind}" for way, kind in names)
    lines = [f"| family | attacks | {heads} |", "|---|---|" + "---|" * len(names)]
    for family, number in sorted(tally.tried.items()):
        counts = " | ".join(str(tally.through[family, *name]) for name in names)
        lines.append(f"| {family} | {number} | {counts} |")
    sums = (sum(tally.through[family, *name] for family in tally.tried) for name in names)
    lines += [f"| all | {tally.tried.total()} | {' | '.join(map(str, sums))} |", ""]
    for way in strategies:
        unchecked = sum(
            n for (_, name, _), n in tally.through.items() if name == f"{way}, unchecked"
        )
        asked = len(CLAIMS) * tally.tried.total()
        lines.append(f"{way}: {unchecked} of {asked} claims were `unchecked`.")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
