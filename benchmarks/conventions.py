"""Compare `as_score` with what the rivals compute: `python benchmarks/conventions.py --venvs DIR`.

`DIR/NAME/bin/python` is the Python of a rival (`benchmarks/peers/run.sh` makes them); one that is
not there is skipped. Every judge is a script that gives the same verdicts, so that only the
arithmetic is compared. Prints for each case our own score, what `as_score` derives, what the rival
gives, and the difference; ends with 1 if there is any. `--record FILE` keeps the rivals' numbers
for the tests.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "evals")]

from convention_cases import (  # noqa: E402
    CASES,
    ON_PURPOSE,
    Case,
    derived,
    scored,
    statements,
    texts,
)

RIVALS = ("haystack", "ragas", "deepeval")
CLOSE = 1e-12


def told(case: Case) -> dict[str, Any]:
    """Write a case for the environment of a rival."""
    return {
        **case._asdict(),
        **texts(case),
        "name": case.name,
        "claims": case.claims,
        "reference_claims": case.reference,
        "answer_statements": statements("answer", case.claims),
        "reference_statements": statements("reference", case.reference),
    }


def rival_scores(python: Path, rival: str) -> dict[str, Any]:
    """Have a rival score all cases."""
    done = subprocess.run(
        [str(python), str(ROOT / "benchmarks" / "conventions_rivals.py"), rival],
        input=json.dumps([told(case) for case in CASES]),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{rival} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    reply: dict[str, Any] = json.loads(done.stdout)
    return reply


def shown(score: float | None) -> str:
    """Write a score for the table."""
    return "-" if score is None else f"{score:.10f}"


def compare(rival: str, theirs: dict[str, Any]) -> int:
    """Print the table of one rival, and count the differences."""
    print(f"\n{rival} {theirs['version']}")
    heads = ("our own", "as_score", rival, "difference")
    print(f"{'case (metric/answer/reference/documents/mode/beta/cosine)':58}", end="")
    print("".join(f"{head:>15}" for head in heads))
    wrong = 0
    for case in CASES:
        if case.name not in theirs["scores"]:
            continue
        score, value = scored(case), theirs["scores"][case.name]
        ours = derived(case, rival, score)
        same = (
            ours is None and value is None
            if ours is None or value is None
            else abs(ours - value) <= CLOSE
        )
        meant = (rival, case.metric, case.claims) in ON_PURPOSE
        wrong += not same and not meant
        differ = "same" if same else "on purpose" if meant else "DIFFERS"
        if ours is not None and value is not None:
            differ = f"{ours - value:.1e}{'' if same else ' !'}"
        row = (shown(score.score), shown(ours), shown(value), differ)
        print(f"{case.name:58}" + "".join(f"{cell:>15}" for cell in row))
    return wrong


def main() -> None:
    """Compare with all rivals that are installed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--venvs", type=Path, required=True, help="folder of the environments")
    parser.add_argument("--record", type=Path, help="file to keep the rivals' numbers in")
    args = parser.parse_args()
    wrong, found = 0, {}
    for rival in RIVALS:
        python = args.venvs / rival / "bin" / "python"
        if not python.exists():
            print(f"{rival} is not installed under {args.venvs.name}: skipped")
            continue
        found[rival] = rival_scores(python, rival)
        wrong += compare(rival, found[rival])
    if args.record and found:
        args.record.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(f"\n{wrong} differences")
    if wrong or not found:
        print("missed: all scores as those of the other libraries")
    sys.exit(1 if wrong or not found else 0)


if __name__ == "__main__":
    main()
