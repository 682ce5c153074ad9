"""How well English claims are told from sentences of other languages, and at what cost.

Both errors are measured: English claims of one sentence that are taken for another language, of
the sets under `--data`, and sentences of other languages that are taken for English. Those are
translated messages of programs (gettext catalogs, `--catalogs`), whole sentences of 5 to 25 words,
as a mean over languages. Time and memory are those of a process of its own: what loading takes and
adds, and the time of a sentence. Needs a Linux with translations installed; of `py3langid` and
`lingua-language-detector`, those that are installed are measured.

    python benchmarks/language_detection.py --data DIR
"""

import argparse
import gettext
import gzip
import json
import random
import re
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from statistics import mean
from time import process_time

LANGUAGES = (
    "af bg ca cs cy da de el eo es et eu fi fr ga gl hr hu id is it ja ko lt lv ms nb nl oc pl "
    "pt_BR ro ru sk sl sq sr@latin sv tr uk vi zh_CN"
)
SETS = "begin bump cg2c defacto dialogue factcheckgpt factscore frank summedits tables wice"
EACH_LANGUAGE, EACH_SET = 60, 400
MARKUP = re.compile(r"[%\n<>{}_&|\\]|--|https?:")
WORDS = range(5, 26)
STATUS = Path("/proc/self/status")

Texts = Mapping[str, list[str]]


def main() -> None:
    """Print some lines per detector."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder that holds train/")
    parser.add_argument("--catalogs", type=Path, default=Path("/usr/share/locale"))
    parser.add_argument("--show", type=int, default=0, help="wrong English claims to print")
    options = parser.parse_args()
    english = {name: _claims(options.data, name) for name in SETS.split()}
    found = {name: _messages(options.catalogs / name) for name in LANGUAGES.split()}
    others = {name: texts for name, texts in found.items() if texts}
    print(f"{_size(english)} English claims in {len(english)} sets, ", end="")
    print(f"{_size(others)} sentences in {len(others)} other languages")
    for module, make in DETECTORS.items():
        if find_spec(module) is not None:
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as own_process:
                print(own_process.submit(_measure, make, english, others, options.show).result())


def _ours() -> Callable[[str], bool]:
    module = import_module("langchain_groundedness.verification.embedded.language")
    is_english: Callable[[str], bool] = module.reads_as_english
    return is_english


def _py3langid() -> Callable[[str], bool]:
    classify = import_module("py3langid").classify
    return lambda text: bool(classify(text)[0] == "en")


def _lingua() -> Callable[[str], bool]:
    lingua = import_module("lingua")
    detector = lingua.LanguageDetectorBuilder.from_all_languages().build()
    # `None`: no language is likelier than the others, so none speaks against English.
    return lambda text: detector.detect_language_of(text) in {lingua.Language.ENGLISH, None}


DETECTORS = {"langchain_groundedness": _ours, "py3langid": _py3langid, "lingua": _lingua}


def _size(texts: Texts) -> int:
    return sum(map(len, texts.values()))


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
    make: Callable[[], Callable[[str], bool]], english: Texts, others: Texts, show: int
) -> str:
    before, start = _memory(), process_time()
    is_english = make()
    is_english("Der Vertrag läuft über zwei Jahre.")
    loading, loaded = process_time() - start, _memory() - before
    start = process_time()
    refused = {
        name: [claim for claim in claims if not is_english(claim)]
        for name, claims in english.items()
    }
    accepted = {language: mean(map(is_english, texts)) for language, texts in others.items()}
    each = (process_time() - start) / (_size(english) + _size(others))
    shares = {name: len(claims) / len(english[name]) for name, claims in refused.items()}
    by_set = ", ".join(f"{name} {share:.1%}" for name, share in shares.items())
    worst = ", ".join(
        f"{language} {accepted[language]:.0%}"
        for language in sorted(accepted, key=accepted.__getitem__, reverse=True)[:5]
    )
    wrong = [claim for claims in refused.values() for claim in claims]
    missed, taken = mean(shares.values()), mean(accepted.values())
    errors = f"English refused {missed:.2%}, others accepted {taken:.2%}"
    costs = f"loading {loading:.2f} s and {loaded:.0f} MB, in the end {_memory() - before:.0f} MB"
    return "\n".join(
        (
            f"{make.__name__[1:]}: {errors}; {costs}; {each * 1e6:.0f} us a sentence",
            f"  refused by set: {by_set}",
            f"  most accepted: {worst}",
            *(f"  {claim}" for claim in random.Random(0).sample(wrong, min(show, len(wrong)))),
        )
    )


def _memory() -> float:
    """Return the memory that this process holds, in megabytes."""
    [line] = (each for each in STATUS.read_text().splitlines() if each.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


if __name__ == "__main__":
    main()
