"""The embedded verifier as a cross-encoder, alone and inside LangChain's and our own parts."""

import asyncio
from typing import Any

import pytest
from langchain_classic.retrievers import ContextualCompressionRetriever
from langchain_classic.retrievers.document_compressors import CrossEncoderReranker
from langchain_core.documents import Document

from langchain_groundedness import CrossEncoderVerifier, EmbeddedVerifier
from langchain_groundedness.demo import WordOverlapRetriever
from langchain_groundedness.exceptions import ConfigurationError, InputFormatError
from langchain_groundedness.types import Claim, VerificationTask
from langchain_groundedness.verification import EmbeddedCrossEncoder
from langchain_groundedness.verification.embedded.encoder import Encoder, Floats, Pair

CLAIM = "Rome is the capital of Italy."
SAYS_SO = "The capital of Italy is Rome."
SILENT = "Oslo lies on a fjord in the south of Norway."
DIFFERS = "Milan is not the capital of Italy."


def test_a_score_is_the_support_probability_of_the_passage_alone() -> None:
    pairs = [(CLAIM, SAYS_SO), (CLAIM, DIFFERS), ("Revenue was $2.4B.", "Revenue was $2.1B.")]
    verifier = EmbeddedVerifier()
    assert EmbeddedCrossEncoder().score(pairs) == pytest.approx(
        [
            verifier.invoke(
                VerificationTask(claims=(Claim(id="1", text=claim),), documents=(Document(text),))
            )[0].support_probability
            for claim, text in pairs
        ]
    )


def test_scores_come_in_the_order_of_the_pairs_whichever_share_a_claim_or_a_passage() -> None:
    claims, passages = (CLAIM, "Oslo lies on a fjord."), (SAYS_SO, SILENT, DIFFERS)
    pairs = [(claim, passage) for passage in passages for claim in claims]
    together = EmbeddedCrossEncoder().score([*pairs, *reversed(pairs)])
    assert together[: len(pairs)] == together[: len(pairs) - 1 : -1]
    alone = [EmbeddedCrossEncoder().score([pair])[0] for pair in pairs]
    assert together[: len(pairs)] == pytest.approx(alone, abs=1e-3)
    assert together[0] > 0.5 > together[2]
    assert together[3] > 0.5 > together[1]


def test_all_pairs_are_read_in_one_request(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    read = Encoder.logits

    def count(self: Encoder, pairs: list[Pair]) -> Floats:
        asked.append(len(pairs))
        return read(self, pairs)

    monkeypatch.setattr(Encoder, "logits", count)
    passages = [f"The capital of Italy is Rome, says book {number}." for number in range(6)]
    EmbeddedCrossEncoder().score([(CLAIM, passage) for passage in passages])
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        (CLAIM, ""),
        (CLAIM, " \n"),
        ("", SAYS_SO),
        ("", ""),
        ("It is.", SAYS_SO),
        (CLAIM, SILENT),
        (
            "Rom ist die Hauptstadt von Italien und sehr alt.",
            "Italien hat mit Rom eine alte Stadt.",
        ),
    ],
)
def test_what_cannot_be_checked_or_is_not_spoken_of_scores_nothing(
    claim: str, passage: str
) -> None:
    assert EmbeddedCrossEncoder().score([(claim, passage)]) == [0.0]


def test_no_pairs_have_no_scores() -> None:
    assert EmbeddedCrossEncoder().score([]) == []


def test_pairs_may_be_lists_as_json_has_them() -> None:
    pairs: Any = [[CLAIM, SAYS_SO]]
    assert EmbeddedCrossEncoder().score(pairs) == EmbeddedCrossEncoder().score([(CLAIM, SAYS_SO)])


@pytest.mark.parametrize(
    ("text_pairs", "came"),
    [
        ("ab", "text_pairs is of type str"),
        (None, "text_pairs is of type NoneType"),
        ((CLAIM, SAYS_SO), "pair 0 holds str;"),
        ([(CLAIM, SAYS_SO), (CLAIM,)], "pair 1 holds str;"),
        ([()], "pair 0 holds nothing"),
        ([(CLAIM, SAYS_SO, "x", "y")], "pair 0 holds str, str, str;"),
        ([(CLAIM, Document(SAYS_SO))], "pair 0 holds str, Document;"),
        ([(CLAIM, None)], "pair 0 holds str, NoneType;"),
        ([{CLAIM: SAYS_SO}], "pair 0 holds dict;"),
    ],
)
def test_what_is_no_list_of_pairs_of_texts_is_an_error_that_says_what_came(
    text_pairs: Any, came: str
) -> None:
    with pytest.raises(InputFormatError, match=came) as caught:
        EmbeddedCrossEncoder().score(text_pairs)
    assert "accepted is a list of pairs (claim, passage)" in str(caught.value)
    assert "Rome" not in str(caught.value)


@pytest.mark.parametrize("threads", [0, -1, 257, "many"])
def test_threads_are_checked_like_those_of_the_verifier(threads: Any) -> None:
    problems = []
    for kind in (EmbeddedCrossEncoder, EmbeddedVerifier):
        with pytest.raises(ConfigurationError, match="threads") as caught:
            kind(threads=threads)
        problems.append(str(caught.value).removeprefix(f"{kind.__name__}: "))
    assert problems[0] == problems[1]


def test_unknown_options_are_refused() -> None:
    unknown: Any = {"model_name": "bge"}
    with pytest.raises(ConfigurationError, match="options are: threads"):
        EmbeddedCrossEncoder(**unknown)


def test_the_number_of_threads_does_not_change_the_scores() -> None:
    pairs = [(CLAIM, SAYS_SO), (CLAIM, DIFFERS)]
    one = EmbeddedCrossEncoder(threads=1).score(pairs)
    assert one == pytest.approx(EmbeddedCrossEncoder(threads=2).score(pairs), abs=1e-3)


def reranked() -> ContextualCompressionRetriever:
    passages = (SILENT, "Italy has a capital, and it has hills.", SAYS_SO, DIFFERS)
    return ContextualCompressionRetriever(
        base_retriever=WordOverlapRetriever(documents=[Document(text) for text in passages], k=4),
        base_compressor=CrossEncoderReranker(model=EmbeddedCrossEncoder(), top_n=2),
    )


def test_a_reranker_puts_the_passage_first_that_supports_the_query() -> None:
    found = reranked().invoke(CLAIM)
    assert len(found) == 2
    assert found[0].page_content == SAYS_SO


async def test_a_reranker_leaves_the_event_loop_free() -> None:
    found = await asyncio.gather(*(reranked().ainvoke(CLAIM) for _ in range(3)))
    assert [documents[0].page_content for documents in found] == [SAYS_SO] * 3


def test_it_serves_the_cross_encoder_verifier() -> None:
    verifier = CrossEncoderVerifier(cross_encoder=EmbeddedCrossEncoder(), window_sentences=1)
    says_so, silent = verifier.invoke(
        VerificationTask(
            claims=(Claim(id="1", text=CLAIM), Claim(id="2", text="Rome has two airports.")),
            documents=(Document(f"{SILENT} {SAYS_SO}"),),
        )
    )
    assert (says_so.verdict, says_so.citations[0].quote) == ("supported", SAYS_SO)
    assert silent.verdict == "unverifiable"
