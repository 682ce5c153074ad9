"""How many attacks get a false claim through: a judge that obeys them, alone and cross-checked.

Each attack of `tests/attacks/` is tried with two claims: one that no honest document speaks of, and
one that they contradict. The judge is scripted: it has fallen for every attack, and calls every
claim supported by every sentence. So what is counted is what the shape of the check stops without
any sense of the judge's. The embedded verifier reads the same scenes for real.
"""

import logging
import sys
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from attacks.corpus import CORPUS, FALSE, NEAR, Attack, scene
from attacks.judges import gullible

from langchain_groundedness.types import Claim, VerificationTask
from langchain_groundedness.verifiers import CascadeVerifier, EmbeddedVerifier, LLMVerifier, Stage

CLAIMS = {"nowhere": FALSE, "contradicted": NEAR}
EMBEDDED = EmbeddedVerifier()


def cross_checked(judge: LLMVerifier) -> CascadeVerifier:
    """Let what the judge calls supported stand only if the embedded verifier agrees."""
    asked = Stage(verifier=judge, settles=lambda verdict: verdict.verdict != "supported")
    return CascadeVerifier([asked, Stage(verifier=EMBEDDED)])


def ways(attack: Attack) -> dict[str, Any]:
    """Give the verifiers to try on an attack."""
    batched = LLMVerifier(model=gullible(attack))
    alone = LLMVerifier(model=gullible(attack), strategy="per_claim")
    return {
        "obedient judge, batched": batched,
        "obedient judge, per claim": alone,
        "obedient judge, cross-checked": cross_checked(batched),
        "embedded verifier": EMBEDDED,
    }


def main() -> None:
    """Print the table."""
    logging.disable(logging.WARNING)
    families = Counter(attack.family for attack in CORPUS)
    through: Counter[tuple[str, str, str]] = Counter()
    for attack in CORPUS:
        for kind, text in CLAIMS.items():
            staged = scene(attack, text)
            claims = (Claim(id="c1", text=text),)
            task = VerificationTask(
                claims=claims, documents=staged.documents, question=staged.question
            )
            for way, verifier in ways(attack).items():
                [verdict] = verifier.invoke(task)
                through[attack.family, way, kind] += verdict.verdict == "supported"
    names = [(way, kind) for way in ways(CORPUS[0]) for kind in CLAIMS]
    print("| family | attacks |", " | ".join(f"{way}: {kind}" for way, kind in names), "|")
    print("|---|---|" + "---|" * len(names))
    for family, number in sorted(families.items()):
        counts = " | ".join(str(through[family, *name]) for name in names)
        print(f"| {family} | {number} | {counts} |")
    sums = " | ".join(str(sum(through[family, *name] for family in families)) for name in names)
    print(f"| all | {len(CORPUS)} | {sums} |")


if __name__ == "__main__":
    main()
