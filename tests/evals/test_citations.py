"""Citations: which documents they name, however written, and whether those bear out the claim."""

import asyncio
import unicodedata
from itertools import pairwise
from typing import Any

import pytest
from growth import assert_linear
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda

from langchain_groundedness import ClaimVerdict, VerificationTask
from langchain_groundedness.evals import CitationEvaluator
from langchain_groundedness.evals.citation_marks import (
    DocumentIndex,
    blank_out_marks,
    citation_marks,
    reference_list,
)
from langchain_groundedness.testing import ScriptedClaimExtractor, ScriptedVerifier


@pytest.mark.parametrize(
    ("text", "targets"),
    [
        ("A [1].", [(1,)]),
        ("A [2][3].", [(2,), (3,)]),
        ("A [1, 2].", [(1, 2)]),
        ("A [1-3] and [5\u20136].", [(1, 2, 3), (5, 6)]),
        ("A [^2].", [(2,)]),
        ("A \u30101\u3011.", [(1,)]),
        ("A [doc 2; doc 3].", [(2, 3)]),
        ("A \u30102\u2020source\u3011.", [(2,)]),
        ("A (cats.pdf, page 3).", [("cats.pdf",)]),
        ("A (Smith, p. 3).", []),
        ("A (source 2).", [(2,)]),
        ("A (file.md#section).", [("file.md#section",)]),
        ("A [source:dokument.md#sektion].", [("dokument.md#sektion",)]),
        ("A [Source: My Notes.pdf].", [("My Notes.pdf",)]),
        ("A (see a.md, b/c.html).", [("a.md", "b/c.html")]),
        ("A [source:kb-17].", [("kb-17",)]),
        ("A [the guide](docs/guide.md#start).", [("docs/guide.md#start",)]),
        ("A [1](docs/guide.md).", [("docs/guide.md",)]),
        ("A (https://example.org/guide).", [("https://example.org/guide",)]),
        ("A [KB-17] (KB-17).", [("KB-17",), ("KB-17",)]),
        ("(1) A (2020) [sic] (e.g. B) (v2.1) (approx. 3.5) [see below].", []),
        ("A `x[1]`.\n```\ny[2]\n```\n![z](z.png)", []),
        ("A [Paris](#paris) [mail](mailto:a@b.c).", []),
    ],
)
def test_marks_are_found_as_they_are_written(text: str, targets: list[Any]) -> None:
    assert [mark.targets for mark in citation_marks(text, {"kb-17"})] == targets


def test_the_text_of_a_link_stays_and_the_rest_of_a_mark_becomes_space() -> None:
    text = "See [the guide](guide.md) for it [1]."
    spaces = text.replace("[the guide](guide.md)", " the guide" + " " * len("](guide.md)"))
    assert blank_out_marks(text, citation_marks(text)) == spaces.replace("[1]", "   ")


@given(st.text(alphabet="ab1,-.[]()#:/ \n`source.md\u3010\u3011", max_size=80))
def test_blanking_keeps_every_offset(text: str) -> None:
    marks = citation_marks(text)
    left = blank_out_marks(text, marks)
    assert len(left) == len(text)
    assert all(mark.targets for mark in marks)
    assert all(b in (a, " ") for a, b in zip(text, left, strict=True))
    assert all(one.end <= two.start for one, two in pairwise(marks))


@pytest.mark.parametrize(
    "piece",
    [
        *("[", "(", "[1,", "(a.", "[a](", "`", "source:", "see ", "[source: ", "\u3010"),
        *("\n[1] ", "\n1. ", " "),
    ],
)
def test_a_hostile_text_is_read_in_linear_time(piece: str) -> None:
    def read(size: int) -> None:
        text = piece * (size // len(piece))
        citation_marks(text)
        assert reference_list(text)[1] == {}

    assert_linear(read, 50_000)


FILES = [
    Document("One.", metadata={"source": "/srv/kb/Anleitung/\u00dcber uns.md"}),
    Document("# Limits\nTwo.", metadata={"source": "/srv/kb/limits.md"}),
    Document("Three.", metadata={"source": "limits.md", "section": "Other Part"}),
    Document("Four.", id="kb-17", metadata={"file_path": "C:\\kb\\Plan.MD"}),
    Document("Five.", metadata={"source": "faq.md#opening-hours"}),
    Document("Six.", metadata={"source": "faq.md#prices"}),
]


@pytest.mark.parametrize(
    ("target", "found"),
    [
        (1, (0,)),
        (6, (5,)),
        (7, ()),
        (0, ()),
        ("Anleitung/%C3%9Cber%20uns.md", (0,)),
        ("anleitung\\" + unicodedata.normalize("NFD", "\u00fcber uns.md"), (0,)),
        ("./kb/../Anleitung/\u00dcber uns.md", (0,)),
        ("https://example.org/srv/kb/limits.md?v=2#limits", (1,)),
        ("limits.md", (2,)),
        ("limits.md#other-part", (2,)),
        ("limits.md#Limits", (1,)),
        ("limits.md#nowhere", ()),
        ("plan.md", (3,)),
        ("PLAN.md#any", (3,)),
        ("KB-17", (3,)),
        ("docs/faq.md", (4, 5)),
        ("faq.md#Opening Hours", (4,)),
        ("faq.md#prices", (5,)),
        ("faq.md#nowhere", ()),
        ("other.md", ()),
        ("uns.md", ()),
        ("#limits", ()),
    ],
)
def test_documents_are_found_however_their_path_is_written(
    target: int | str, found: tuple[int, ...]
) -> None:
    assert DocumentIndex(FILES).find(target) == found


def test_numbers_may_start_at_zero() -> None:
    assert DocumentIndex(FILES, first_number=0).find(0) == (0,)


def test_a_piece_of_a_file_that_tells_of_no_section_may_belong_to_any() -> None:
    pieces = [
        Document("# Prices\nIt costs 3.", metadata={"source": "a.md"}),
        Document("With tax, 4.", metadata={"source": "a.md"}),
        Document("# Hours\nIt opens at 9.", metadata={"source": "a.md"}),
    ]
    assert DocumentIndex(pieces).find("a.md#prices") == (0, 1)


@given(st.text(max_size=40), st.text(max_size=40))
def test_a_document_is_found_by_its_own_source(source: str, other: str) -> None:
    documents = [Document(text, metadata={"source": text}) for text in (other, source)]
    assert 1 in DocumentIndex(documents).find(source) or not source.strip()


def judged(task: VerificationTask) -> list[ClaimVerdict]:
    """Support a claim if each of its capitals stands in the documents; cite those that have any."""
    texts = [d.page_content for d in task.documents]

    def judge(claim: Any) -> Any:
        capitals = {c for c in claim.text if c.isupper()}
        held = {c for text in texts for c in text}
        return None if "?" in held else "supported" if capitals <= held else "unverifiable"

    return ScriptedVerifier(judge).invoke(task)


def evaluate(answer: str, *contexts: Any, **options: Any) -> Any:
    evaluator = CitationEvaluator(verifier=RunnableLambda(judged), **options)
    return evaluator.invoke({"answer": answer, "contexts": list(contexts)})


def test_right_citations_of_all_claims_score_one() -> None:
    score = evaluate("Ann sings well [1]. Bob dances well [2].", "A", "B")
    assert score.score == 1.0
    assert score.comment == (
        "2 of 2 citations are right; 2 of 2 claims are supported by what they cite"
    )


def test_a_claim_is_judged_by_what_its_sentence_cites_and_nothing_else() -> None:
    score = evaluate("Ann sings well [2]. Bob dances well [1].", "A", "B")
    assert (score.score, score.details["correctness"], score.details["completeness"]) == (0, 0, 0)
    assert [c["verdict"] for c in score.details["claims"]] == ["unverifiable"] * 2


def test_a_claim_without_citation_lowers_completeness_alone() -> None:
    score = evaluate("Ann sings well [1]. Bob dances well.", "A", "B")
    assert (score.details["correctness"], score.details["completeness"]) == (1.0, 0.5)
    assert score.score == pytest.approx(2 / 3)
    assert score.details["uncited"] == ["Bob dances well."]
    assert score.result.claims[1].reason == "the sentence cites no document"


def test_documents_cited_together_may_support_together() -> None:
    score = evaluate("Ann and Bob sing well [1][2].", "A", "B")
    assert score.details["completeness"] == 1.0
    # Neither does alone; the one that is quoted has helped, of the other nobody knows.
    assert [c["right"] for c in score.details["citations"]] == [True, False]


def test_a_citation_that_adds_nothing_is_wrong() -> None:
    score = evaluate("Ann sings well [1, 2].", "A", "B")
    assert [c["right"] for c in score.details["citations"]] == [True, False]
    assert (score.details["correctness"], score.details["completeness"]) == (0.5, 1.0)


def test_a_second_document_that_says_the_same_is_right_too() -> None:
    score = evaluate("Ann sings well [1][2].", "A", "A")
    assert score.score == 1.0


def test_citations_of_documents_that_do_not_exist_are_named_and_wrong() -> None:
    score = evaluate("Ann sings well [1][9]. Bob dances well (made-up.md).", "A", "B")
    assert score.details["missing"] == [9, "made-up.md"]
    assert (score.details["correctness"], score.details["completeness"]) == (1 / 3, 0.5)
    assert "missing documents: 9, made-up.md" in score.comment
    assert score.result.claims[1].reason == "the sentence cites only documents that do not exist"


def test_without_documents_every_citation_is_missing() -> None:
    score = evaluate("Ann sings well [1].")
    assert (score.score, score.details["missing"]) == (0.0, [1])


def test_an_answer_that_cites_nothing_scores_zero_and_has_no_correctness() -> None:
    assert evaluate("Ann sings well.", "A").score == 0.0
    score = evaluate("Ann sings well.", "A", mode="correctness")
    assert (score.status, score.reason) == ("skipped", "the answer cites nothing")


@pytest.mark.parametrize("answer", ["I don't know.", "Hello!", ""])
def test_an_answer_without_claims_is_skipped(answer: str) -> None:
    score = evaluate(answer, "A")
    assert (score.status, score.reason) == (
        "skipped",
        "the answer makes no claim that needs a citation",
    )


def test_a_made_up_citation_counts_where_nothing_is_claimed() -> None:
    score = evaluate("I don't know [7].", "A", mode="correctness")
    assert (score.score, score.details["missing"]) == (0.0, [7])


@pytest.mark.parametrize(
    ("mark", "source"),
    [
        ("(file.md#section)", "docs/file.md"),
        ("[source:dokument.md#sektion]", "Dokument.md"),
        ("[source: docs\\my%20file.md]", "docs/my file.md"),
        ("[details](docs/file.md)", "file.md"),
    ],
)
@pytest.mark.parametrize(
    "place", ["Ann sings well {}.", "Ann sings well. {}", "Ann {} sings well."]
)
def test_paths_cite_wherever_they_stand(place: str, mark: str, source: str) -> None:
    answer = place.format(mark) + " Bob dances well [2]."
    documents = [Document("A", metadata={"source": source}), Document("B")]
    score = evaluate(answer, *documents)
    assert score.score == 1.0
    assert [claim["documents"] for claim in score.details["claims"]] == [[0], [1]]


def test_marks_at_the_start_of_a_line_belong_to_what_follows() -> None:
    score = evaluate("- [1] Ann sings well.\n- [2] Bob dances well.", "A", "B")
    assert [claim["documents"] for claim in score.details["claims"]] == [[0], [1]]


@pytest.mark.parametrize(
    ("answer", "cited"),
    [
        ("Ann is a singer [1] and was born in Chile [2].", [[1], [2]]),
        ("Ann is a singer and was born in Chile [1][2].", [[1, 2], [1, 2]]),
        ("Ann [1] is a singer and was born in Chile.", [[1], [1]]),
    ],
)
def test_parts_of_a_sentence_have_the_citations_next_to_them(
    answer: str, cited: list[list[int]]
) -> None:
    score = evaluate(answer, "A", "AC")
    assert [claim["text"] for claim in score.details["claims"]] == [
        "Ann is a singer.",
        "Ann was born in Chile.",
    ]
    assert [claim["cites"] for claim in score.details["claims"]] == cited


def test_claims_without_spans_cite_what_the_sentence_closest_to_them_cites() -> None:
    extractor = ScriptedClaimExtractor(["Dancing well is what Bob does."])
    score = evaluate("Ann sings well [1]. Bob is dancing well [2].", "A", "B", extractor=extractor)
    assert score.details["claims"][0]["documents"] == [1]


def test_a_list_of_sources_says_what_its_numbers_stand_for_and_claims_nothing() -> None:
    sources = "## Sources:\n[1] b/ann.md\n[2]: [Bob](bob.md)\n"
    answer = f"Ann sings well [1]. Bob dances well [2].\n\n{sources}"
    documents = [
        Document("B", metadata={"source": "bob.md"}),
        Document("A", metadata={"source": "ann.md"}),
    ]
    score = evaluate(answer, *documents)
    assert [claim["documents"] for claim in score.details["claims"]] == [[1], [0]]
    assert score.score == 1.0
    missing = evaluate(answer, documents[0])
    assert missing.details["missing"] == [1]


def test_a_numbered_list_of_statements_is_no_list_of_sources() -> None:
    text = "1. Ann sings well.\n2. Bob dances well (bob.md).\n3. See below."
    assert reference_list(text) == (text, {})


def test_a_file_in_pieces_is_cited_as_a_whole() -> None:
    pieces = [Document(text, metadata={"source": "a.md"}) for text in "ABC"]
    score = evaluate("Ann and Bob sing well (a.md).", *pieces)
    assert score.score == 1.0
    assert score.details["citations"][0]["documents"] == [0, 1, 2]


def test_quotes_refer_to_the_documents_of_the_row() -> None:
    score = evaluate("Ann sings well [3].", "x", "y", "A")
    [quote] = score.result.claims[0].citations
    assert (quote.document, quote.quote) == (2, "A")


def test_a_claim_that_could_not_be_checked_fails_the_row_and_names_what_is_known() -> None:
    score = evaluate("Ann sings well [1]. Bob dances well [2][9].", "A", "?")
    assert (score.status, score.score) == ("failed", None)
    assert (score.reason or "").startswith("1 of 2 claims could not be checked")
    assert score.details["missing"] == [9]


@pytest.mark.parametrize("mode", ["correctness", "completeness"])
def test_the_score_is_what_the_mode_says(mode: str) -> None:
    score = evaluate("Ann sings well [1][2]. Bob dances well.", "A", "B", mode=mode)
    assert score.score == score.details[mode] == 0.5


async def test_async_gives_the_same() -> None:
    evaluator = CitationEvaluator(verifier=RunnableLambda(judged))
    row = {"answer": "Ann sings well [1][2]. Bob dances [7].", "contexts": ["A", "AB"]}
    assert await evaluator.ainvoke(row) == await asyncio.to_thread(evaluator.invoke, row)


def test_the_embedded_verifier_follows_citations_without_a_key() -> None:
    documents = [
        Document("Mount Kenya is 5,199 metres high.", metadata={"source": "kb/kenya.md"}),
        Document("The Nile is 6,650 kilometres long.", metadata={"source": "kb/nile.md"}),
    ]
    answer = (
        "Mount Kenya is 5,199 metres high (kenya.md). "
        "The Nile is 6,650 kilometres long [source:kenya.md]."
    )
    score = CitationEvaluator().invoke({"answer": answer, "contexts": documents})
    assert [claim["verdict"] for claim in score.details["claims"]] == ["supported", "unverifiable"]
    assert score.score == 0.5


def test_what_was_not_checked_has_no_share_in_the_details() -> None:
    score = CitationEvaluator(verifier=ScriptedVerifier(lambda _: "unchecked")).invoke(
        {"answer": "Rome is old [1].", "contexts": ["Rome is old."]}
    )
    assert score.status == "failed"
    assert (score.details["correctness"], score.details["completeness"]) == (None, None)
    assert [each["right"] for each in score.details["citations"]] == [None]
