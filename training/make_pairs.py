"""Make the pairs that the encoder learns from: what it would read for a claim, and the claim.

One file per source, written to `--out`. Rows that differ by little have one `group`; one document
in twenty is `held`: none of its claims is learned from.
"""

import argparse
import gzip
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from articles import LONGEST, SHORTEST, Article, read_articles
from claim_sets import CLAIM_SETS, CONTRAST_SETS, Example, is_held, plain, read_documents, read_set
from evidence import Evidence
from facts import FACTS, Fact, say
from false_edits import FALSE_EDITS
from frames import framed_pairs
from passages import CONTRAST_PAIRS, Passage, read_document_claims, read_passages
from pronouns import join_sentences, with_pronouns
from records import kinds, recorded
from rule_claims import made_claims, reworded
from true_edits import lower_first

from langchain_groundedness.text.sentences import split_sentences
from langchain_groundedness.text.words import STOP_WORDS, find_words
from langchain_groundedness.verification.embedded.expanded_documents import expand_document

Row = dict[str, Any]

_FINE = {
    "refute": "contradicted",
    "irrelevant": "unverifiable",
    "entailment": "supported",
    "neutral": "unverifiable",
    "contradiction": "contradicted",
}
_LENGTHS = (60, 110, 110, 160)
"""Words of evidence: as at inference, fewer, and as for a second reading."""
_LENGTHS_OF_CONTRAST_PAIRS = (60, 60, 110, 160)
"""Less on average, since a claim of theirs mostly rests on one or two sentences."""
_LONG_CLAIM = 40
_ARTICLES = "wikipedia_articles.jsonl.gz"
_AROUND = 4
_TITLES = (
    "Manual", "Leaflet", "Contract", "Minutes", "Release notes", "House rules", "Recipe",
    "Terms of use", "Newsletter", "Travel guide", "Safety instructions",
    "Frequently asked questions", "Diary", "Report",
)  # fmt: skip
_HEADINGS = (
    "General", "Before you start", "What to know", "Conditions", "Details", "Exceptions", "Summary",
    "Notes", "Costs", "Schedule", "Background", "Results", "Who does what", "Changes", "Reminders",
    "Open points",
)  # fmt: skip
_HELD = 20
"""One document in so many."""
_READ_AGAIN = {"bump": (60, 110, 160), "summedits": (60, 110, 160), "defacto": (60, 110, 160)}
"""Words of evidence at which each group of a small set is read, lest it is learned by heart."""
_ABOUT_ONE = ("factscore", "begin", "bump", "cg2c", "defacto", "wice")
"""Sets some of whose claims are given a pronoun for their subject."""
_EDITED = ("factscore", "begin", "ragtruth_qa", "bump", "cg2c", "defacto", "dialogue")
"""Sets whose supported claims are made false."""
_FALSE_EACH = 2
_JOINED_EACH = 2
"""Claims of two sentences that are made of each document."""
_WHOLE = 0.55
"""Of the facts made by rule: those that are all that their sentence says."""
_ANSWERED = 0.08
_TAILS = (
    "up 12% from the year before", "as in earlier years", "the second time in a row",
    "to the surprise of many", "which nobody had expected", "after long talks",
    "as the newspaper reported", "a spokesman said", "as planned", "down from 31 the year before",
    "according to the annual report", "for the third time", "which took nearly two hours",
    "just as it had been agreed", "with the help of two volunteers", "as the table below shows",
    "which is a record", "together with several neighbours", "in spite of the rain",
    "although some had doubts", "for reasons that are given below", "compared with 8% in May",
    "the first such case since 2009", "and everybody was pleased", "free of charge",
)  # fmt: skip
_OPENINGS = (
    "According to the report,", "As agreed,", "In that year,", "After a short break,",
    "As mentioned above,", "To begin with,", "Since the last meeting,", "As of today,",
)  # fmt: skip
_BESIDE = 0.3
_FRAMED = {"tables"}
"""Files of passages whose sentences are often quoted only to be denied."""
_UNSURE = re.compile(
    r"""["?|{}:~*]|\b(?:if|unless|would|should|could|might|said|says|claim\w*|rumou?r\w*|myth|"""
    r"""false\w*|wrong\w*|believe\w*|not true|denie[sd]|alleg\w*|hope\w*|plan\w*|propos\w*)\b""",
    re.IGNORECASE,
)
_NEIGHBOURS = 4
"""Claims of a passage, in their order, that are one group."""
_LEFT_OUT = {
    "factscore": 0.4,
    "ragtruth_qa": 1,
    "wice": 1,
    "defacto": 0.5,
    "frank": 0.5,
    "cg2c": 0.5,
}
"""Sets from some of whose supported claims the deciding sentences are taken away."""
_LEFT_OUT_WRITTEN = {"contrast_pairs": 0.12, "document_claims": 0.6}
_SAYS_IT = 0.5
"""Share of a claim's words in a sentence from which it may be what the claim rests on."""
_SURELY_SAYS_IT = 0.6
_KEPT = {"ragtruth_qa": 0.5}
"""Of the supported claims, where there are ten of them for each other one."""


def main() -> None:
    """Write the files that are not there yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder that holds train/")
    parser.add_argument("--out", type=Path, required=True, help="folder for the pairs")
    parser.add_argument("--rules", type=int, default=5_000, help="texts to make of each kind")
    parser.add_argument("--only", action="append", default=[])
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    data = options.data
    sources: dict[str, Callable[[], Iterator[Row]]] = {
        "snli": lambda: _nli(data, "snli", "premise"),
        "nli_contrast": lambda: _nli(data, "nli_contrast", "premise"),
        "fever_symmetric": lambda: _nli(data, "fever_symmetric", "hypothesis"),
        "fool_me_twice": lambda: _nli(data, "fool_me_twice", "hypothesis"),
        **{name: lambda name=name: _judged(data, name) for name in (*CLAIM_SETS, *CONTRAST_SETS)},
        "halueval_qa": lambda: _judged(data, "halueval_qa"),
        "edits": lambda: _edits(data),
        "rules": lambda: _rules(data, options.rules),
        "frames": lambda: _frames(data, options.rules),
        "facts": lambda: _facts(data, options.rules),
        "records": lambda: _records(options.rules),
        "passages": _passages,
        "contrast_pairs": _contrast_pairs,
        "document_claims": lambda: _document_claims(data),
        "pronouns": lambda: _pronouns(data),
        "left_out": lambda: _left_out(data),
        "joined": lambda: _joined(data),
    }
    for name, source in sources.items():
        path = options.out / f"{name}.jsonl.gz"
        if path.exists() or (options.only and name not in options.only):
            continue
        rows = list(source())
        with gzip.open(path.with_suffix(".part"), "wt", encoding="utf-8") as lines:
            lines.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        path.with_suffix(".part").replace(path)
        print(name, len(rows), dict(Counter(row["label"] for row in rows)), flush=True)


def _nli(data: Path, name: str, key: str) -> Iterator[Row]:
    """Give the pairs of an NLI set, those with the same premise or hypothesis as a group."""
    chosen = random.Random(name)
    with gzip.open(data / "train" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    for row in rows:
        label = row["label"] if name == "nli_contrast" else _FINE.get(row["label"])
        if label:
            pieces = [plain(row["premise"])]
            for other in row.get("other_evidence", ()):
                size = sum(len(piece.split()) for piece in [*pieces, other])
                if size < _LENGTHS[1] and chosen.random() < 0.5:
                    pieces.insert(chosen.randint(0, len(pieces)), other)
            yield _row(
                " \u2026 ".join(pieces),
                plain(row["hypothesis"]),
                label,
                group=plain(row[key]),
                document=plain(row[key]),
            ) | {"part": row.get("source", "")}


def _judged(data: Path, name: str) -> Iterator[Row]:
    chosen = random.Random(name)
    known: tuple[str, ...] | None = None
    for number, example in enumerate(read_set(data, name)):
        if example.documents != known:
            known = example.documents
            evidence = Evidence([plain(d) if name == "tables" else d for d in known])
        if example.supported and chosen.random() > _KEPT.get(name, 1):
            continue
        # what it is compared with is read at the same length
        words = random.Random(example.documents[0]).choice(_LENGTHS)
        words = _LENGTHS[-1] if len(example.claim.split()) > _LONG_CLAIM else words
        again = () if is_held(known[0]) else _READ_AGAIN.get(name, ())
        for length in again or (words,):
            read = evidence.read(example.claim, example.question, words=length)
            group = _group(example, name, number)
            if read:
                yield _row(
                    read,
                    example.claim,
                    _label(example),
                    group=f"{group} at {length}" if again else group,
                    document=known[0],
                ) | {"part": example.fine if name == "summedits" else ""}


def _edits(data: Path) -> Iterator[Row]:
    """Make supported claims false, which are in other words than their documents."""
    chosen = random.Random(5)
    known: tuple[str, ...] | None = None
    for name in _EDITED:
        for number, example in enumerate(read_set(data, name)):
            if not example.supported or not SHORTEST <= len(example.claim.split()) <= LONGEST:
                continue
            if example.documents != known:
                known = example.documents
                evidence, words = Evidence(known), chosen.choice(_LENGTHS)
                said = " ".join(known)
                article = Article("", known, tuple(s.text for s in split_sentences(said)))
            claims = [(example.claim, "supported")]
            for edit, label in chosen.sample(list(FALSE_EDITS.values()), k=len(FALSE_EDITS)):
                edited = edit(example.claim, article, chosen)
                if edited and edited != example.claim and edited.rstrip(".") not in said:
                    claims.append((edited, label))
            for claim, label in claims[: 1 + _FALSE_EACH] if claims[1:] else ():
                read = evidence.read(claim, example.question, words=words)
                if read:
                    group = f"{name} {number}"
                    yield _row(read, claim, label, group=group, document=known[0])


def _group(example: Example, name: str, number: int) -> str:
    if name == "frank":
        return example.documents[0][:200]
    return example.group if name in {*CONTRAST_SETS, "halueval_qa"} else str(number)


def _label(example: Example) -> str:
    return "supported" if example.supported else _FINE.get(example.fine, "unsupported")


def _rules(data: Path, most: int) -> Iterator[Row]:
    chosen = random.Random(1)
    known: tuple[str, ...] | None = None
    for made in made_claims(data / "train" / _ARTICLES, most=most):
        if made.documents != known:
            known = made.documents
            evidence, words = Evidence(known), chosen.choice(_LENGTHS)
        read = evidence.read(made.claim, words=words)
        if read:
            group, document = str(made.group), str(made.group % 1000)
            yield _row(read, made.claim, made.label, group=group, document=document)


def _frames(data: Path, most: int) -> Iterator[Row]:
    """Sentences of articles and short ones, quoted in ways that assert them or not."""
    chosen = random.Random(2)
    articles = [a for a in read_articles(data / "train" / _ARTICLES) if len(a.sentences) > _AROUND]
    short = [e.claim for name in ("factscore", "bump") for e in read_set(data, name) if e.supported]
    for number in range(most):
        held = chosen.random() < 1 / _HELD
        if chosen.random() < 0.5:
            sentences = chosen.sample(articles[number % len(articles)].sentences, k=_AROUND)
        elif chosen.random() < 0.6:
            sentences = chosen.sample(short, k=_AROUND)
        else:
            sentences = [say(f, chosen)[0] for f in chosen.sample(_known(held=held), k=_AROUND)]
        around = sentences[2 : 2 + chosen.choice([0, 0, 1, 2])]
        for framed in framed_pairs(*sentences[:2], around, chosen, held=held):
            row = _row(
                expand_document(framed.evidence)[0], framed.claim, framed.label, group=str(number)
            )
            yield row | {"part": framed.kind} | ({"held": True} if held else {})


def _facts(data: Path, most: int) -> Iterator[Row]:
    """Facts in other words, alone, among others, and under headings or in an article."""
    chosen = random.Random(3)
    articles = [a for a in read_articles(data / "train" / _ARTICLES) if len(a.sentences) > _AROUND]
    for number in range(most * 4):
        held = chosen.random() < 1 / _HELD
        fact, *others = chosen.sample(_known(held=held), k=4)
        sentence, said = say(fact, chosen)
        around = [say(other, chosen)[0] for other in others]
        if chosen.random() < 0.5:
            around = chosen.sample(articles[number % len(articles)].sentences, k=3)
        sentence = _longer(sentence, say(others[0], chosen)[0], chosen)
        sentences = [*around[: chosen.choice([0, 0, 1, 2, 3])], sentence]
        chosen.shuffle(sentences)
        text = " ".join(sentences)
        if chosen.random() < 0.3:
            text = "\n".join(f"- {each}" for each in sentences)
            text = f"# {chosen.choice(_TITLES)}\n## {chosen.choice(_HEADINGS)}\n{text}"
        for claim, label in said:
            read, answer = expand_document(text)[0].replace("\n", " "), _answered(claim, chosen)
            row = _row(read, answer, label, group=str(number))
            yield row | ({"held": True} if held else {})


def _longer(sentence: str, other: str, chosen: random.Random) -> str:
    """Let a fact be a part of its sentence, so that a claim that says less than it is learned."""
    if chosen.random() < _WHOLE:
        return sentence
    bare, more = sentence[:-1], lower_first(other)
    ways = [
        f"{bare}, {chosen.choice(_TAILS)}.",
        f"{bare}, and {more}",
        f"{bare}, while {more}",
        f"{bare}; {more}",
        f"{other[:-1]}, and {lower_first(sentence)}",
        f"{chosen.choice(_OPENINGS)} {lower_first(sentence)}",
    ]
    return chosen.choice(ways)


def _answered(claim: str, chosen: random.Random) -> str:
    """Put yes or no before some claims, as an answer does; it changes nothing."""
    if chosen.random() > _ANSWERED:
        return claim
    word = "No" if re.search(r"\b(?:not|never|no|nobody|nothing|cannot)\b", claim) else "Yes"
    return f"{word}, {lower_first(claim)}"


def _records(most: int) -> Iterator[Row]:
    chosen = random.Random(4)
    for number in range(most):
        held = chosen.random() < 1 / _HELD
        known = None
        for one in recorded(chosen.choice(kinds(held=held)), chosen):
            if one.document != known:
                known = one.document
                evidence = Evidence([known])
            read = evidence.read(one.claim, words=_LENGTHS[-1])
            row = _row(
                read or expand_document(known)[0],
                one.claim,
                one.label,
                group=f"{number} {one.group}",
            )
            yield row | ({"held": True} if held else {})


def _passages() -> Iterator[Row]:
    chosen = random.Random(6)
    passages = list(read_passages())
    for passage in passages:
        others = [p for p in passages if p.kind == passage.kind and p is not passage]
        others = others or [p for p in passages if p.file == passage.file and p is not passage]
        claims = _claims_of(passage, chosen.choice(others), chosen)
        yield from _beside_another(passage, claims, others, chosen.choice(_LENGTHS[1:]), chosen)


def _contrast_pairs() -> Iterator[Row]:
    """Claims of passages whose false ones are worded as their true ones: nothing is added."""
    chosen = random.Random(7)
    passages = list(read_passages(CONTRAST_PAIRS))
    for passage in passages:
        others = [p for p in passages if p.file == passage.file and p is not passage]
        words = chosen.choice(_LENGTHS_OF_CONTRAST_PAIRS)
        yield from _beside_another(passage, passage.claims, others, words, chosen)


def _document_claims(data: Path) -> Iterator[Row]:
    """Claims about documents of the data, worded as those of contrast pairs."""
    chosen = random.Random(9)
    documents = {name: read_documents(data, name) for name in CLAIM_SETS + CONTRAST_SETS}
    for given in read_document_claims():
        texts = [plain(text) for text in documents[given.set][given.id]]
        evidence, words = Evidence(texts), chosen.choice(_LENGTHS)
        for number, (claim, label) in enumerate(given.claims):
            read = evidence.read(claim, words=words)
            if read:
                group = f"{given.id} {number // _NEIGHBOURS}"
                row = _row(
                    read, claim, label, group=group, document=documents[given.set][given.id][0]
                )
                yield row | {"part": given.file}


def _pronouns(data: Path) -> Iterator[Row]:
    """Claims of contrast pairs and of judged sets, with a pronoun for what their text is about."""
    chosen = random.Random(8)
    for passage in read_passages(CONTRAST_PAIRS):
        claims = with_pronouns(passage.text, passage.claims, chosen)
        yield from _beside_another(passage, claims, (), chosen.choice(_LENGTHS), chosen)
    for name in _ABOUT_ONE:
        known: tuple[str, ...] | None = None
        for number, example in enumerate(read_set(data, name)):
            if example.documents != known:
                known = example.documents
                evidence = Evidence(known)
            for claim, label in with_pronouns(known[0], [(example.claim, _label(example))], chosen):
                read = evidence.read(claim, example.question, words=_LENGTHS[1])
                if read:
                    group = _group(example, name, number)
                    yield _row(read, claim, label, group=group, document=known[0]) | {"part": name}


def _left_out(data: Path) -> Iterator[Row]:
    """Supported claims, with and without the sentences that say them: the topic stays the same."""
    chosen = random.Random(10)
    for known, claim, question, part in _supported(data, chosen):
        rest = _without(known, claim)
        words = chosen.choice(_LENGTHS)
        readings = [Evidence(some).read(claim, question, words=words) for some in (known, rest)]
        if all(readings) and readings[0] != readings[1]:
            group = f"{known[0][:80]} {claim}"
            for read, label in zip(readings, ("supported", "unverifiable"), strict=True):
                yield _row(read, claim, label, group=group, document=known[0]) | {"part": part}


def _joined(data: Path) -> Iterator[Row]:
    """Claims that say what two neighbouring sentences say, and the same with an error in one."""
    chosen = random.Random(11)
    for document in _documents(data):
        sentences = [" ".join(s.text.split()) for s in split_sentences(document)]
        article, evidence = Article("", (document,), tuple(sentences)), Evidence([document])
        pairs = [pair for pair in pairwise(sentences) if join_sentences(*pair)]
        for first, second in chosen.sample(pairs, k=min(len(pairs), _JOINED_EACH)):
            said = [reworded(each, article, chosen) for each in (first, second)]
            said = said if join_sentences(*said) else [first, second]
            claims = [(join_sentences(*said), "supported")]
            for place in (0, 1):
                for edit, label in chosen.sample(list(FALSE_EDITS.values()), k=len(FALSE_EDITS)):
                    halves = list(said)
                    halves[place] = edit(halves[place], article, chosen) or ""
                    claim = join_sentences(*halves)
                    if claim and halves[place].rstrip(".") not in document:
                        claims.append((claim, label))
                        break
            for claim, label in claims:
                read = evidence.read(claim, words=_LENGTHS[1])
                if read:
                    yield _row(read, claim, label, group=f"{first} {second}", document=document)


def _documents(data: Path) -> Iterator[str]:
    """Give texts of contrast pairs, of the judged sets and of articles, each once."""
    yield from (passage.text for passage in read_passages(CONTRAST_PAIRS))
    for name in CLAIM_SETS + CONTRAST_SETS:
        if name != "tables":
            yield from dict.fromkeys(d for e in read_set(data, name) for d in e.documents)
    yield from (" ".join(a.paragraphs) for a in read_articles(data / "train" / _ARTICLES))


def _supported(
    data: Path, chosen: random.Random
) -> Iterator[tuple[Sequence[str], str, str | None, str]]:
    """Give documents, claim and question of some supported claims, and where they are from."""
    for name, share in _LEFT_OUT.items():
        for example in read_set(data, name):
            if example.supported and chosen.random() < share:
                yield example.documents, example.claim, example.question, name
    share = _LEFT_OUT_WRITTEN["contrast_pairs"]
    for passage in read_passages(CONTRAST_PAIRS):
        for claim, label in passage.claims:
            if label == "supported" and chosen.random() < share:
                yield [passage.text], claim, passage.question, "contrast_pairs"
    share = _LEFT_OUT_WRITTEN["document_claims"]
    documents = {name: read_documents(data, name) for name in CLAIM_SETS + CONTRAST_SETS}
    for given in read_document_claims():
        known = documents[given.set][given.id]
        for claim, label in given.claims:
            if label == "supported" and chosen.random() < share:
                yield [plain(text) for text in known], claim, None, "document_claims"


def _without(documents: Sequence[str], claim: str) -> list[str]:
    """Take out what may say a claim; nothing is left where no sentence surely says it."""
    mine = {word.stem for word in find_words(claim)} - STOP_WORDS
    rest, most = [], 0.0
    for text in documents:
        kept = []
        for sentence in split_sentences(text):
            share = len(mine & {word.stem for word in find_words(sentence.text)}) / (len(mine) or 1)
            most = max(most, share)
            if share < _SAYS_IT:
                kept.append(sentence.text)
        rest.append(" ".join(kept))
    return rest if most >= _SURELY_SAYS_IT else [""]


def _beside_another(
    passage: Passage,
    claims: Iterable[tuple[str, str]],
    others: Sequence[Passage],
    words: int,
    chosen: random.Random,
) -> Iterator[Row]:
    """Give what is read for claims; some passages stand beside another that is not about them."""
    beside = [chosen.choice(others).text] if others and chosen.random() < _BESIDE else []
    evidence = Evidence(chosen.sample([passage.text, *beside], k=1 + len(beside)))
    for number, (claim, label) in enumerate(claims):
        read = evidence.read(claim, passage.question, words=words)
        if read:
            group = f"{passage.text[:80]} {number // _NEIGHBOURS}"
            row = _row(read, claim, label, group=group, document=passage.text)
            yield row | {"part": passage.file}


def _claims_of(
    passage: Passage, other: Passage, chosen: random.Random
) -> Iterator[tuple[str, str]]:
    """Give the claims of a passage, and as many by rule, so that shared words tell nothing.

    True ones were written in other words than the passage, false ones in its words. So its own
    sentences are true claims too, and the true claims, made false, are false ones.
    """
    sentences = [s.text for s in split_sentences(passage.text)]
    article = Article("", (passage.text,), tuple(sentences))
    said = [
        " ".join(text.split())
        for text in sentences
        if SHORTEST <= len(text.split()) <= LONGEST and not _UNSURE.search(text)
    ]
    copied = iter([] if passage.file in _FRAMED else chosen.sample(said, k=len(said)))
    strange = [claim for claim, label in other.claims if label == "supported"]
    for claim, label in passage.claims:
        yield claim, label
        if label != "supported":
            continue
        edits = chosen.sample(list(FALSE_EDITS.values()), k=len(FALSE_EDITS))
        made = ((edit(claim, article, chosen), false) for edit, false in edits)
        yield next(
            ((text, false) for text, false in made if text and text != claim),
            (chosen.choice(strange), "unverifiable"),
        )
        if text := next(copied, None):
            yield (reworded(text, article, chosen) if chosen.random() < 0.5 else text), label
    if strange:
        yield chosen.choice(strange), "unverifiable"


def _known(*, held: bool) -> list[Fact]:
    return [fact for fact in FACTS if fact.held == held]


def _row(evidence: str, claim: str, label: str, *, group: str, document: str = "") -> Row:
    row: Row = {"evidence": evidence, "claim": claim, "label": label, "group": group}
    if document and is_held(document):
        row["held"] = True
    return row


if __name__ == "__main__":
    main()
