"""How well English sentences are told from those of other languages, and at what cost.

English sentences are claims of the sets under `--data`; those of other languages are translated
messages of programs (gettext catalogs, `--catalogs`), whole sentences of 5 to 25 words. Of each
detector: the share of English sentences that are taken for English, the same of the others as a
mean over languages, and the time a sentence takes. Needs a Linux with translations installed, and
`pip install py3langid`.

    python benchmarks/language_detection.py --data DIR
"""

import argparse
import gettext
import gzip
import json
import random
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from statistics import mean
from time import process_time

import py3langid

from langchain_groundedness.verification.embedded.language import reads_as_english

LANGUAGES = (
    "af bg ca cs cy da de el eo es et eu fi fr ga gl hr hu id is it ja ko lt lv ms nb nl oc pl "
    "pt_BR ro ru sk sl sq sr@latin sv tr uk vi zh_CN"
)
SETS = ("factscore", "begin", "bump", "dialogue", "tables", "summedits", "defacto", "wice")
EACH_LANGUAGE, EACH_SET = 60, 150
MARKUP = re.compile(r"[%\n<>{}_&|\\]|--|https?:")
WORDS = range(5, 26)


def main() -> None:
    """Print one line per detector."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder that holds train/")
    parser.add_argument("--catalogs", type=Path, default=Path("/usr/share/locale"))
    options = parser.parse_args()
    english = [claim for name in SETS for claim in _claims(options.data, name)]
    others = {name: _messages(options.catalogs / name) for name in LANGUAGES.split()}
    others = {name: texts for name, texts in others.items() if texts}
    print(f"{len(english)} English claims, {sum(map(len, others.values()))} sentences in ", end="")
    print(f"{len(others)} other languages")
    _measure("reads_as_english", reads_as_english, english, others)
    _measure("py3langid", lambda text: py3langid.classify(text)[0] == "en", english, others)


def _claims(data: Path, name: str) -> list[str]:
    path = data / "train" / f"claims_{name}.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        claims = [row["claim"] for row in map(json.loads, lines) if "claim" in row]
    return random.Random(0).sample(claims, k=min(EACH_SET, len(claims)))


def _messages(folder: Path) -> list[str]:
    found = set()
    for path in folder.glob("LC_MESSAGES/*.mo"):
        with path.open("rb") as file, suppress(UnicodeDecodeError):
            catalog = gettext.GNUTranslations(file)._catalog  # noqa: SLF001  (no other way to list it)
            found |= {
                text
                for source, text in catalog.items()
                if isinstance(source, str)
                and isinstance(text, str)
                and source != text
                and len(source.split()) in WORDS
                and source[-1:] in ".!?"
                and text[-1:] in ".!?\u3002"
                and not MARKUP.search(source + text)
            }
    return random.Random(0).sample(sorted(found), k=min(EACH_LANGUAGE, len(found)))


def _measure(
    name: str, is_english: Callable[[str], bool], english: list[str], others: dict[str, list[str]]
) -> None:
    is_english("warm up")
    start = process_time()
    right = mean(map(is_english, english))
    wrong = {language: mean(map(is_english, texts)) for language, texts in others.items()}
    count = len(english) + sum(map(len, others.values()))
    each = (process_time() - start) / count * 1e6
    worst = max(wrong, key=lambda language: wrong[language])
    print(
        f"{name:18} English taken for English {right:.3f}, others {mean(wrong.values()):.3f} "
        f"(at most {wrong[worst]:.2f}, {worst}), {each:.0f} us a sentence"
    )


if __name__ == "__main__":
    main()
