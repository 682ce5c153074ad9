"""What reading documents costs, in processor time, as they grow."""

import random
from itertools import count
from time import process_time

import pytest
from langchain_core.documents import Document

from langchain_groundedness import Claim, EmbeddedVerifier, VerificationTask

CLAIM = Claim(id="1", text="Revenue was $2.1B in Q3.")
NUMBERS = count()


def prose(words: int) -> str:
    chosen = random.Random(words)  # noqa: S311  (no secret)
    said = [f"w{chosen.randrange(20_000):x}" for _ in range(words)]
    for place in range(9, words, 10):
        said[place] += "."
    return " ".join(said)


def seconds_to_read(text: str) -> float:
    text += f" {next(NUMBERS)}"  # what was read a moment ago is kept
    task = VerificationTask(claims=(CLAIM,), documents=(Document(text),))
    begun = process_time()
    EmbeddedVerifier().invoke(task)
    return process_time() - begun


@pytest.mark.parametrize(
    "text",
    [prose(30_000), ". " * 20_000, "x1y2" * 25_000, "- a b c\n" * 10_000, "东京是首都。" * 10_000],
    ids=["prose", "full stops", "one word", "list", "unspaced"],
)
def test_twice_the_text_takes_about_twice_the_time(text: str) -> None:
    seconds_to_read("Rome is old.")
    assert any(seconds_to_read(2 * text) < 3.5 * seconds_to_read(text) for _ in range(4))
