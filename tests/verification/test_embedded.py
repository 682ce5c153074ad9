"""The embedded verifier: what it says of claims, whatever the documents look like."""

import asyncio
from collections.abc import Sequence
from itertools import count
from typing import Any

import pytest
from growth import assert_linear
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.load import dumpd

from langchain_groundedness import EmbeddedVerifier
from langchain_groundedness.exceptions import ConfigurationError
from langchain_groundedness.types import Claim, ClaimVerdict, VerificationTask
from langchain_groundedness.verification.embedded import verifier as embedded
from langchain_groundedness.verification.embedded.index import EvidenceIndex

PYTHON = (
    "Python, created by Guido van Rossum in the late 1980s, is a high-level general-purpose"
    " programming language. Its design philosophy emphasizes code readability."
)


def task(
    claims: str | Sequence[str], documents: Sequence[str], question: str | None = None
) -> VerificationTask:
    texts = [claims] if isinstance(claims, str) else claims
    return VerificationTask(
        claims=tuple(Claim(id=str(n), text=text) for n, text in enumerate(texts)),
        documents=tuple(Document(page_content=text) for text in documents),
        question=question,
    )


def check(claim: str, *documents: str, question: str | None = None) -> ClaimVerdict:
    return EmbeddedVerifier().invoke(task(claim, documents, question))[0]


@pytest.mark.parametrize(
    "document",
    [
        "Revenue was $2.1B in Q3 2024, up 12% on the year before.",
        "Q3 revenue came in at $2.1B.",
        "Headcount was 5,000. Revenue in Q3 was $2.1B. Margins held.",
    ],
)
def test_a_different_amount_is_contradicted_and_the_amount_given_is_the_correction(
    document: str,
) -> None:
    verdict = check("Revenue was $2.4B in Q3.", document)
    assert verdict.verdict == "contradicted"
    assert verdict.correction == "$2.1B"
    assert verdict.explanation == "The documents say $2.1B, the claim says $2.4B."
    assert "$2.1B" in verdict.citations[0].quote
    assert verdict.verifier == "embedded"


def test_the_true_half_of_a_sentence_is_supported_and_the_false_half_is_not() -> None:
    true, false, whole = EmbeddedVerifier().invoke(
        task(
            [
                "Python is a high-level general-purpose programming language.",
                "Python was created by George Lucas.",
                "Python is a high-level general-purpose language that was created by George Lucas.",
            ],
            [PYTHON],
            "Who created the Python language?",
        )
    )
    assert true.verdict == "supported"
    assert false.verdict == whole.verdict == "contradicted"
    assert false.correction == "Guido van Rossum"


def test_what_no_document_says_is_unverifiable_and_named() -> None:
    supported, invented = EmbeddedVerifier().invoke(
        task(
            ["Rome is the capital of Italy.", "Rome has more than 4 million inhabitants."],
            ["Rome is the capital of Italy."],
        )
    )
    assert supported.verdict == "supported"
    assert invented.verdict == "unverifiable"
    assert invented.explanation == 'No passage mentions "4 million inhabitants".'


@pytest.mark.parametrize(
    ("claim", "document"),
    [
        ("Revenue was $2.1B in Q3.", "In Q3 the revenue was 2,100 million dollars."),
        ("The treaty was signed on 3 March 2021.", "The treaty was signed on 2021-03-03 in Oslo."),
        ("Profit rose 12%.", "Profit rose by 12 percent."),
    ],
)
def test_the_same_in_other_words_is_supported(claim: str, document: str) -> None:
    assert check(claim, document).verdict == "supported"


@pytest.mark.parametrize(
    ("claim", "document"),
    [
        ("東京は日本の首都です。", "東京は日本の首都です。人口は約1400万人です。"),
        ("القاهرة هي عاصمة مصر.", "القاهرة هي عاصمة مصر. وهي مدينة كبيرة."),
        (
            "Das Gerät darf nicht nass werden.",
            "Das Gerät ist neu. Das Gerät darf nicht nass werden!",
        ),
    ],
)
def test_what_the_documents_say_word_for_word_is_supported_in_any_language(
    claim: str, document: str
) -> None:
    assert check(claim, document).verdict == "supported"


@pytest.mark.parametrize(
    ("claim", "document"),
    [
        ("東京は日本の首都です。", "東京は日本の首都であり、人口は約1400万人です。"),
        ("Das Gerät darf nass werden.", "Das Gerät darf auf keinen Fall nass werden."),
        ("Die Garantie für das Gerät ist 3 Jahre.", "Die Garantie für das Gerät ist 2 Jahre."),
        ("Le prix est de 1200 euros.", "Le prix est de 1 200 euros."),
        ("Der Film war ein Erfolg.", "Es ist falsch, dass gesagt wird: der Film war ein Erfolg."),
        ("El aparato no debe mojarse.", "The device must not get wet under any circumstances."),
        ("The device must not get wet.", "El aparato no debe mojarse en ningún caso, device."),
    ],
)
def test_other_languages_are_unchecked_and_said_to_be_the_reason(claim: str, document: str) -> None:
    verdict = check(claim, document)
    assert verdict.verdict == "unchecked"
    assert "claim or the documents are in another language" in str(verdict.reason)


@pytest.mark.parametrize(
    ("claim", "document", "correction"),
    [
        (
            "The treaty was signed on 4 March 2021.",
            "The treaty was signed on March 3rd, 2021 in Oslo.",
            "March 3rd, 2021",
        ),
        ("The warranty lasts 3 years.", "The warranty lasts 24 months.", "24 months"),
        ("Rome is not the capital of Italy.", "Rome is the capital of Italy.", None),
        ("The drug increases blood pressure.", "The drug decreases blood pressure.", None),
    ],
)
def test_a_different_date_duration_or_polarity_is_contradicted(
    claim: str, document: str, correction: str | None
) -> None:
    verdict = check(claim, document)
    assert verdict.verdict == "contradicted"
    assert verdict.correction == (correction or document)


def test_the_correction_is_the_sentence_that_says_most_of_the_claim() -> None:
    says_so = "Zetafen decreases blood pressure."
    document = f"Zetafen and weight were studied. {says_so}"
    verdict = check("Zetafen increases blood pressure and weight.", document)
    assert (verdict.verdict, verdict.correction) == ("contradicted", says_so)


def test_a_correction_from_a_list_has_no_list_marker() -> None:
    verdict = check("The API still accepts XML.", "- The API no longer accepts XML.\n- CSV is new.")
    assert (verdict.verdict, verdict.correction) == (
        "contradicted",
        "The API no longer accepts XML.",
    )


@pytest.mark.parametrize(
    ("claim", "about_it", "about_another", "correction"),
    [
        (
            "Flight 212 departs from gate 14.",
            "Flight 212 departs from gate 22.",
            "Flight 305 departs from gate 14.",
            "22",
        ),
        (
            "Revenue in 2023 was $40 million.",
            "Revenue in 2023 was $55 million.",
            "Revenue in 2022 was $40 million.",
            "$55 million",
        ),
    ],
)
def test_the_correction_is_about_the_subject_of_the_claim(
    claim: str, about_it: str, about_another: str, correction: str
) -> None:
    for documents in ([about_it, about_another], [about_another, about_it]):
        verdict = check(claim, *documents)
        assert (verdict.verdict, verdict.correction) == ("contradicted", correction)


@pytest.mark.parametrize(
    "answer", ["Yes, it does not.", "Yes, it doesn't.", "Yes, they can.", "No, it does."]
)
def test_yes_and_no_that_are_taken_back_are_not_supported(answer: str) -> None:
    question = "Does the warranty cover water damage?"
    for document in ("The warranty covers water damage.", "It does not cover water damage."):
        assert check(answer, document, question=question).verdict != "supported"


def test_a_table_row_is_no_correction() -> None:
    table = "| Name | Role |\n|---|---|\n| Ann | CTO |\n| Bob | Developer |"
    verdict = check("Ann is a developer.", table)
    assert verdict.verdict != "supported"
    assert verdict.correction is None


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ("Yes, it does.", "supported"),
        ("Yes, it does!", "supported"),
        ("No, it doesn't.", "contradicted"),
        ("No, it does not.", "contradicted"),
    ],
)
def test_yes_and_no_may_repeat_the_verb_of_the_question(answer: str, verdict: str) -> None:
    document, question = (
        "The warranty covers water damage.",
        "Does the warranty cover water damage?",
    )
    assert check(answer, document, question=question).verdict == verdict


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ("Paris", "supported"),
        ("Berlin", "unverifiable"),
        ("Yes.", "supported"),
        ("No.", "contradicted"),
        ("Yes, Paris is the capital of France.", "supported"),
    ],
)
def test_a_short_answer_is_read_with_its_question(answer: str, verdict: str) -> None:
    document = "Paris is the capital and largest city of France."
    question = "What is the capital of France?" if len(answer) > 4 else "Is Paris in France?"
    assert check(answer, document, question=question).verdict == verdict


@pytest.mark.parametrize("claim", ["Tickets are refundable.", "The shop is closed."])
def test_a_question_about_something_else_changes_nothing_of_a_whole_sentence(claim: str) -> None:
    documents = ["Tickets are not refundable after purchase.", "The shop is open on Sundays."]
    asked = check(claim, *documents, question="What was revenue?")
    assert asked == check(claim, *documents)


def test_a_bare_no_is_supported_by_evidence_that_differs_from_the_question() -> None:
    verdict = check("No.", "The office opened in 2010.", question="The office opened in 2015?")
    assert verdict.verdict == "supported"


@pytest.mark.parametrize(
    ("question", "documents"),
    [
        (
            "Was Anna born in 1990?",
            ["Anna was born in 1990.", "Anna was married in 2015 after she was elected in 2014."],
        ),
        ("Was Anna born in 1990?", ["Anna was born in 1990. Her brother was born in 1985."]),
        ("Was revenue $2.1B in Q3?", ["Revenue was $2.1B in Q3. Revenue was $1.9B in Q2."]),
    ],
)
def test_a_bare_no_is_not_supported_by_other_values_beside_the_one_asked_for(
    question: str, documents: list[str]
) -> None:
    assert check("No.", *documents, question=question).verdict == "contradicted"


def test_a_bare_no_is_not_supported_by_a_difference_that_decides_nothing() -> None:
    documents = ["Anna was elected mayor in 2015.", "Peter retired in 2014."]
    verdict = check("No.", *documents, question="Was Anna elected mayor of Lima in 2014?")
    assert verdict.verdict == "unverifiable"


def test_a_bare_amount_is_contradicted_by_another_one() -> None:
    verdict = check("$2.4B", "Revenue was $2.1B in Q3.", question="What was revenue in Q3?")
    assert (verdict.verdict, verdict.correction) == ("contradicted", "$2.1B")


@pytest.mark.parametrize("documents", [[], [""], [" \n", "\t"]])
def test_without_documents_every_claim_is_unchecked(documents: list[str]) -> None:
    verdicts = EmbeddedVerifier().invoke(task(["One.", "Two."], documents))
    assert [v.verdict for v in verdicts] == ["unchecked", "unchecked"]
    assert {v.reason for v in verdicts} == {"no documents to check against"}


@pytest.mark.parametrize("claim", ["...", "It is so.", "🙂"])
def test_a_claim_that_says_nothing_is_unverifiable(claim: str) -> None:
    verdict = check(claim, "The soup was served.")
    assert verdict.verdict == "unverifiable"
    assert verdict.support_probability is None


def test_documents_that_disagree_make_a_supported_claim_conflicting() -> None:
    verdict = check("Revenue was $2.1B in Q3.", "Revenue was $2.1B in Q3.", "Q3 revenue was $2.4B.")
    assert verdict.verdict == "supported"
    assert verdict.conflicting
    assert {citation.document for citation in verdict.citations} == {0, 1}


@pytest.mark.xfail(reason="the encoder misreads it: see the model card", strict=True)
def test_all_places_that_a_claim_was_put_together_from_are_cited() -> None:
    filler = " ".join(f"The committee thanked volunteer number {n}." for n in range(12))
    document = (
        f"The Harbour Museum opened in 1921. {filler} "
        f"Its roof was renewed by the architect Ilse Brandt. {filler}"
    )
    verdict = check(
        "The Harbour Museum opened in 1921 and its roof was renewed by Ilse Brandt.", document
    )
    assert verdict.verdict == "supported"
    assert {citation.quote for citation in verdict.citations} == {
        "The Harbour Museum opened in 1921.",
        "Its roof was renewed by the architect Ilse Brandt.",
    }
    assert verdict.explanation == ""


def test_the_sentence_that_says_most_is_cited_first() -> None:
    told = "The S2 measures wind and rain. It runs for 18 months on one set of four AA batteries."
    verdict = check("The S2 runs for 18 months on one set of four AA batteries.", told)
    assert verdict.verdict == "supported"
    assert verdict.citations[0].quote.startswith("It runs for 18 months")


def test_a_heading_is_no_evidence() -> None:
    told = "# Warranty of the S2\n\nThe warranty of the S2 lasts three years.\n"
    verdict = check("The warranty of the S2 lasts three years.", told)
    assert [c.quote for c in verdict.citations] == ["The warranty of the S2 lasts three years."]
    told = "# Notes\n\n## The S2 has a three-year warranty\n\nAsk the dealer.\n"
    verdict = check("The S2 has a three-year warranty.", told)
    assert [c.quote for c in verdict.citations] == [
        "## The S2 has a three-year warranty\n\nAsk the dealer."
    ]


@pytest.mark.parametrize(
    "documents", [("{}.", "# {}\n\nSee below."), ("# {}\n\nSee below.", "{}.")]
)
def test_a_heading_that_conflicts_with_a_sentence_is_cited_beside_it(
    documents: tuple[str, str],
) -> None:
    said, other = "Revenue was $2.1B in Q3", "Revenue was $2.4B in Q3"
    verdict = check(f"{said}.", documents[0].format(said), documents[1].format(other))
    assert (verdict.verdict, verdict.conflicting) == ("supported", True)
    assert [citation.document for citation in verdict.citations] == [0, 1]


def test_evidence_at_the_very_end_of_a_megabyte_is_found_in_linear_time() -> None:
    def find(sentences: int) -> None:
        text = "The quick brown fox jumps over the lazy dog near the river bank. " * sentences
        verdict = check("Revenue was $2.1B in Q3.", text + "Q3 revenue came in at $2.1B.")
        assert verdict.verdict == "supported"
        assert verdict.citations[0].start == len(text)

    assert_linear(find, 16_000)


def test_ten_thousand_documents_are_all_searched() -> None:
    documents = [f"Item {n} costs {n} euros." for n in range(10_000)]
    verdict = check("Item 9876 costs 9,876 euros.", *documents)
    assert verdict.verdict == "supported"
    assert verdict.citations[0].document == 9876


def test_a_text_without_sentence_ends_is_cited_in_pieces() -> None:
    verdict = check(
        "The tower is in Paris.", "row " * 5000 + "the tower is in paris " + "row " * 99
    )
    assert verdict.verdict == "supported"
    assert all(len(citation.quote) < 500 for citation in verdict.citations)


def test_a_batch_gives_what_single_calls_give() -> None:
    tasks = [
        task("Revenue was $2.4B in Q3.", ["Q3 revenue came in at $2.1B."]),
        task("Rome is the capital of Italy.", ["Rome is the capital of Italy."]),
        task("Revenue was $2.1B in Q3.", ["Q3 revenue came in at $2.1B."]),
    ]
    verifier = EmbeddedVerifier()
    single = [verifier.invoke(t) for t in tasks]
    assert verifier.batch(tasks) == single
    assert asyncio.run(verifier.abatch(tasks)) == single
    assert asyncio.run(verifier.ainvoke(tasks[0])) == single[0]


@pytest.mark.parametrize("stage", ["gather_evidence", "judge"])
def test_a_claim_that_cannot_be_examined_is_unchecked_and_costs_no_other_its_verdict(
    monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    sound = getattr(embedded, stage)

    def failing(subject: Any, *args: Any, **options: Any) -> Any:
        claim = subject if isinstance(subject, Claim) else subject.claim
        if "poison" in claim.text:
            raise OverflowError
        return sound(subject, *args, **options)

    city = "Rome is a city."
    tasks = [task(city, [city]), task(["A city of poison.", city], [city]), task("Rome.", [city])]
    expected = EmbeddedVerifier().batch(tasks)
    monkeypatch.setattr(embedded, stage, failing)
    first, mixed, last = EmbeddedVerifier().batch(tasks)
    assert (first, mixed[1], last) == (expected[0], expected[1][1], expected[2])
    assert mixed[0].verdict == "unchecked"
    assert mixed[0].reason == "the claim could not be examined (OverflowError)"


def test_documents_that_cannot_be_read_leave_only_their_own_task_unchecked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def failing(documents: Sequence[Document]) -> EvidenceIndex:
        if "poison" in documents[0].page_content:
            raise RecursionError
        return EvidenceIndex(documents)

    monkeypatch.setattr(embedded, "_index", failing)
    city = "Rome is a city."
    tasks = [task(city, [city]), task([city, city], ["poison"]), task(city, [city])]
    first, failed, last = EmbeddedVerifier().batch(tasks)
    assert first == last
    assert "unchecked" not in [v.verdict for v in first]
    assert [v.verdict for v in failed] == ["unchecked", "unchecked"]
    assert {v.reason for v in failed} == {"the claim could not be examined (RecursionError)"}


def test_an_ordinal_of_thousands_of_digits_is_evidence_like_any_other() -> None:
    verdict = check("Rome is a city.", "Rome is a city in its " + "1" * 5_000 + "th year.")
    assert verdict.verdict == "supported"


def test_equal_texts_in_other_documents_keep_their_own_ids_and_metadata() -> None:
    text = "Rome is the capital of Italy."
    tasks = [
        VerificationTask(
            claims=(Claim(id="1", text=text),),
            documents=(Document(page_content=text, id=name, metadata={"source": name}),),
        )
        for name in ("a", "b")
    ]
    verdicts = EmbeddedVerifier().batch(tasks)
    assert [v[0].citations[0].document_id for v in verdicts] == ["a", "b"]


def test_the_threshold_is_an_option() -> None:
    strict = EmbeddedVerifier(threshold=1.0)
    verdict = strict.invoke(task("Rome is the capital.", ["Rome is the capital."]))[0]
    assert verdict.verdict == "unverifiable"
    assert dumpd(strict)["kwargs"] == {"threshold": 1.0, "profile": "balanced"}


def test_a_strict_verifier_asks_for_more_than_a_balanced_one() -> None:
    evidence = ["The city council gave its approval to the airport."]
    about = task("The council approved the airport.", evidence)
    verdicts = [EmbeddedVerifier(profile=p).invoke(about)[0] for p in ("balanced", "strict")]
    assert [verdict.verdict for verdict in verdicts] == ["supported", "unverifiable"]
    assert verdicts[0].support_probability == verdicts[1].support_probability


def test_a_probability_near_the_threshold_is_said_to_be_close() -> None:
    about = task("The council approved the airport.", ["In 2004 the council approved an airport."])
    [verdict] = EmbeddedVerifier().invoke(about)
    probability = verdict.support_probability or 0.0
    [close] = EmbeddedVerifier(threshold=probability - 0.01).invoke(about)
    [far] = EmbeddedVerifier(threshold=probability / 2).invoke(about)
    assert f"close: the probability is {probability:.2f}" in close.explanation
    assert "close" not in far.explanation


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threshold": 2}, r"EmbeddedVerifier: threshold: .*less than or equal to 1, got 2$"),
        ({"treshold": 0.5}, r"EmbeddedVerifier: treshold.*options are: .*threshold"),
    ],
)
def test_a_bad_option_is_a_configuration_error(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        EmbeddedVerifier(**options)


def test_warming_up_twice_changes_nothing() -> None:
    verifier = EmbeddedVerifier()
    verifier.warm_up()
    verifier.warm_up()
    assert verifier == EmbeddedVerifier()


@settings(max_examples=settings().max_examples * 3 // 5, deadline=None)
@given(
    claims=st.lists(st.text(max_size=60), max_size=3),
    documents=st.lists(st.text(max_size=200), max_size=3),
    question=st.none() | st.text(max_size=40),
)
def test_any_text_gets_one_verdict_per_claim_with_quotes_that_hold(
    claims: list[str], documents: list[str], question: str | None
) -> None:
    asked = task(claims, documents, question)
    verdicts = EmbeddedVerifier().invoke(asked)
    assert [v.claim for v in verdicts] == list(asked.claims)
    for verdict in verdicts:
        assert all(c.holds_in(asked.documents) for c in verdict.citations)
        assert bool(verdict.citations) or verdict.verdict in ("unverifiable", "unchecked")


@pytest.mark.parametrize("unit", ["A", "1", "1,", "東京は首都", "\n"])
def test_text_without_words_or_without_ends_is_read_in_linear_time(unit: str) -> None:
    days = count()  # nothing is known from the run before

    def read(characters: int) -> None:
        text = unit * (characters // len(unit)) + "x" * (unit == "\n")
        verdict = check(f"Tokyo is no capital of {'9' * 400} dollars.", text, f"Day {next(days)}.")
        assert verdict.verdict == "unverifiable"

    assert_linear(read, 200_000)


def test_derived_words_count_as_nearly_the_same() -> None:
    document = "The national economist studied national economics. Nationality laws changed."
    derived = check("The nation studied its economy.", document)
    foreign = check("The village studied its harvest.", document)
    assert derived.support_probability is not None
    assert foreign.support_probability is not None
    assert derived.support_probability > foreign.support_probability


def test_a_value_that_the_documents_give_elsewhere_is_not_taken_as_invented() -> None:
    verdict = check(
        "Revenue was $2.4B in Q3.", "Revenue in Q3 was $2.1B.", "Restated Q3 revenue was $2.4B."
    )
    assert verdict.verdict == "supported"
    assert verdict.conflicting


def test_a_number_of_another_sentence_does_not_hide_the_value_that_differs() -> None:
    documents = [f"The reading of station {n} was {n + 1} millimetres on Monday." for n in range(9)]
    task = VerificationTask(
        claims=(Claim(id="1", text="The reading of station 3 was 1,004 millimetres on Monday."),),
        documents=(Document(" ".join(documents)),),
    )
    (verdict,) = EmbeddedVerifier().invoke(task)
    assert (verdict.verdict, verdict.correction) == ("contradicted", "4 millimetres")
