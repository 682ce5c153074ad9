"""What the encoder reads for a claim: the best sentence, within a budget, nothing made up."""

import re
from hashlib import sha256
from itertools import pairwise

import pytest
from hypothesis import example, given, reject
from hypothesis import strategies as st
from langchain_core.documents import Document
from tokenizers import Tokenizer

from langchain_groundedness.verification.embedded.encoder import (
    LONGEST_PAIR,
    Pair,
)
from langchain_groundedness.verification.embedded.index import EvidenceIndex
from langchain_groundedness.verification.embedded.model_files import read_model_file
from langchain_groundedness.verification.embedded.statement import read_statement
from langchain_groundedness.verification.embedded.windows import (
    Match,
    chosen_units,
    encoder_input,
    join_units,
    match_statement,
)

TOKENIZER = Tokenizer.from_str(read_model_file("tokenizer.json").decode())
TOKENIZER.no_truncation()
TOKENIZER.no_padding()
TOKENIZER.encode_special_tokens = True
GAP = " \u2026 "
WORDS = (
    "archive", "treaty", "signed", "copies", "keeper", "the", "of", "1848", "in", "Rome", "Oslo",
    "1,234.5%", "(3.1)", "https://example.org/a_very/long-path?with=many&parts=of.it#and-an-anchor",
    "9a8f-77c0-11ee-be56", "élève", "x" * 40,
)  # fmt: skip
SENTENCES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=70).map(
    lambda words: " ".join(words).capitalize() + ". "
)
DOCUMENTS = st.lists(st.lists(SENTENCES, max_size=12).map("".join), min_size=1, max_size=4)
CLAIMS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=20).map(" ".join)


def index_of(*texts: str) -> EvidenceIndex:
    return EvidenceIndex([Document(page_content=text) for text in texts])


def match_of(claim: str, index: EvidenceIndex) -> Match:
    statement = read_statement(claim, None)
    match = match_statement(statement, index) if statement.items else None
    return reject() if match is None else match


def pairs_of(claim: str, index: EvidenceIndex, question: str | None = None) -> list[Pair]:
    read = encoder_input(read_statement(claim, question), match_of(claim, index), index)
    return list(read.pairs)


def text_of(match: Match, index: EvidenceIndex, *, words: int) -> str:
    return join_units(chosen_units(match, index, words=words), match, index)


def flat(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def size(unit: int, index: EvidenceIndex) -> int:
    return int(index.first[unit + 1] - index.first[unit])


@given(CLAIMS, DOCUMENTS)
def test_the_best_sentence_is_read_whatever_stands_around_it(claim: str, texts: list[str]) -> None:
    index = index_of(*texts)
    best = match_of(claim, index).best[0].first
    sentence = flat(index.text(best, best))
    assert sentence[:1_500] in pairs_of(claim, index)[0].evidence


@given(CLAIMS, DOCUMENTS, st.integers(1, 120))
def test_the_budget_is_kept_except_for_one_overlong_sentence(
    claim: str, texts: list[str], words: int
) -> None:
    index = index_of(*texts)
    match = match_of(claim, index)
    units = chosen_units(match, index, words=words)
    assert sum(size(unit, index) for unit in units) <= words or units == [match.best[0].first]
    assert len(pairs_of(claim, index)[0].evidence) <= 1_700


@given(CLAIMS, DOCUMENTS)
def test_all_that_is_read_stands_in_the_documents_in_their_order(
    claim: str, texts: list[str]
) -> None:
    index = index_of(*texts)
    match = match_of(claim, index)
    units = chosen_units(match, index, words=110)
    assert units == sorted(set(units))
    runs = [[units[0]]]
    for before, after in pairwise(units):
        same = index.document_of[before] == index.document_of[after]
        if same and after == before + 1:
            runs[-1].append(after)
        else:
            runs.append([after])
    *head, rest = text_of(match, index, words=110).rsplit(
        GAP.join(flat(index.text(run[0], run[-1])) for run in runs), 1
    )
    assert rest == ""
    home = texts[index.document_of[match.best[0].first]]
    (beginning,) = head
    assert flat(home).startswith(beginning.removesuffix(GAP))


@given(CLAIMS, DOCUMENTS)
def test_the_same_is_read_every_time(claim: str, texts: list[str]) -> None:
    assert pairs_of(claim, index_of(*texts)) == pairs_of(claim, index_of(*texts))


def test_places_that_are_not_neighbours_are_parted_by_an_ellipsis() -> None:
    filler = " ".join(f"The committee thanked volunteer number {n}." for n in range(30))
    index = index_of(
        f"The town hall. {filler} The treaty was signed in 1848. It was kept. {filler}",
        f"{filler} The keeper of the treaty was born in Oslo.",
    )
    match = match_of("The treaty of 1848 had a keeper who was born in Oslo.", index)
    text = text_of(match, index, words=20)
    assert text.split(GAP) == [
        "The committee thanked volunteer number 0.",
        "The treaty was signed in 1848. It was kept.",
        "The keeper of the treaty was born in Oslo.",
    ]


def test_neighbouring_documents_are_not_read_as_one() -> None:
    index = index_of("The treaty was signed in 1848.", "The keeper was born in Oslo.")
    text = text_of(match_of("The treaty of 1848 and the keeper in Oslo.", index), index, words=110)
    assert text == f"The treaty was signed in 1848.{GAP}The keeper was born in Oslo."


@pytest.mark.parametrize("beginning", ["y" * 100_000, "https://example.org/" * 500])
def test_a_document_that_begins_with_something_endless_does_not_crowd_out_the_best_sentence(
    beginning: str,
) -> None:
    index = index_of(f"{beginning}\n\nThe treaty was signed in 1848. The keeper was born in Oslo.")
    evidence = pairs_of("The treaty was signed in 1848.", index)[0].evidence
    assert "The treaty was signed in 1848. The keeper was born in Oslo." in evidence
    assert len(evidence) < 1_000


@pytest.mark.parametrize("cell", ["{n}{k},{k}{n}{k}.{n}%", "{sum}"], ids=["numbers", "checksums"])
def test_of_a_table_no_more_is_read_than_leaves_room_for_the_best_sentence(cell: str) -> None:
    rows = [
        " ".join(
            cell.format(n=n, k=k, sum=sha256(f"{n}.{k}".encode()).hexdigest()) for k in range(1, 9)
        )
        for n in range(1, 30)
    ]
    index = index_of("\n\n".join([*rows, "The treaty was signed in 1848."]))
    (pair,) = pairs_of("The treaty was signed in 1848.", index)
    assert pair.evidence.endswith("The treaty was signed in 1848.")
    assert tokens(pair) <= LONGEST_PAIR


def tokens(pair: Pair) -> int:
    evidence, claim = (part.encode("utf-8", "replace").decode() for part in pair)
    return len(TOKENIZER.encode(evidence, claim).ids)


@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=300).map(" ".join) | st.text())
@example("-\r0")  # a list marker is not to be checked
def test_the_pieces_of_a_claim_hold_all_of_it_and_each_can_be_read_whole(claim: str) -> None:
    index = index_of(claim)
    pairs = pairs_of(claim, index)
    together = "".join(pair.claim for pair in pairs)
    assert re.sub(r"\s", "", together) == re.sub(r"\s", "", read_statement(claim, None).text)
    assert len({pair.evidence for pair in pairs}) == 1
    assert all(tokens(Pair("", pair.claim)) <= LONGEST_PAIR - 64 for pair in pairs)


def test_an_ordinary_claim_is_one_piece_and_its_question_is_not_read() -> None:
    index = index_of("The treaty of Oslo was signed in 1848.")
    (pair,) = pairs_of("The treaty was signed in\n1848.", index, "And  when?")
    assert pair.claim == "The treaty was signed in 1848."


def test_a_short_answer_is_read_after_its_question() -> None:
    index = index_of("The treaty of Oslo was signed in 1848.")
    (pair,) = pairs_of("In\n1848.", index, "When was  it signed?")
    assert pair.claim == "When was it signed? In 1848."


@pytest.mark.parametrize(
    "claim", ["x" * 100_000, "1," * 50_000, "東京" * 50_000, "a-b_" * 25_000, "\ud800" * 9_000]
)
def test_a_claim_without_a_blank_is_read_in_pieces_too(claim: str) -> None:
    index = index_of("Rome is old.")
    match = match_of("Rome is old.", index)
    statement = read_statement(claim, None)
    pairs = encoder_input(statement, match, index).pairs
    assert "".join(pair.claim for pair in pairs).replace(" ", "") == statement.text
    assert max(tokens(pair) for pair in pairs[:3]) <= LONGEST_PAIR
