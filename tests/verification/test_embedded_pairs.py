"""Plain pairs of claim and document that the embedded verifier must not get wrong."""

import pytest
from langchain_core.documents import Document

from langchain_groundedness.types import Claim, ClaimVerdict, VerificationTask
from langchain_groundedness.verification import EmbeddedVerifier

MISSED = pytest.mark.xfail(reason="the encoder misreads it: see the model card", strict=True)
CLOSE = pytest.mark.xfail(
    reason="the encoder misreads it by less than 0.02, which may differ by processor", strict=False
)


def verdict(claim: str, *documents: str, question: str | None = None) -> ClaimVerdict:
    task = VerificationTask(
        claims=(Claim(id="c1", text=claim),),
        documents=tuple(map(Document, documents)),
        question=question,
    )
    return EmbeddedVerifier().invoke(task)[0]


@pytest.mark.parametrize(
    ("claim", "documents"),
    [
        ("Revenue was $2.4B in Q3.", ["Revenue was $2.1B in Q3.", "The merger cost $2.4B."]),
        ("Revenue was $2.4B in Q3.", ["Revenue was $2.1B in Q3. Revenue was $2.4B in Q4."]),
        ("Revenue was $2.4B in Q3.", ["Revenue was $2.1B in Q3, up 12%.", "They paid $2.4B."]),
        ("The S2 costs 259 euros.", ["The S2 costs 249 euros.", "Room 259 is free."]),
        (
            "The CEO of Acme is Tom Hart.",
            ["The CEO of Acme is Linda Park.", "Tom Hart is the CFO of Acme."],
        ),
        (
            "Employees get 30 days of annual leave.",
            ["Employees get 25 days of annual leave.", "Invoices are due within 30 days."],
        ),
        ("The ticket costs $15.", ["The ticket costs €15."]),
        ("The flight leaves on Monday.", ["The flight leaves on Tuesday.", "Closed on Monday."]),
    ],
)
def test_a_value_that_belongs_to_something_else_does_not_support(
    claim: str, documents: list[str]
) -> None:
    assert verdict(claim, *documents).verdict == "contradicted"


@pytest.mark.parametrize(
    ("claim", "document"),
    [
        ("The project was completed.", "The project was not completed."),
        ("The device is waterproof.", "The device is not waterproof."),
        ("The device is not waterproof.", "The device is waterproof."),
        ("It supports Bluetooth.", "It does not support Bluetooth."),
        ("Pets are allowed.", "No pets are allowed."),
        ("You need a visa.", "You do not need a visa."),
        ("Payment by cheque is accepted.", "Payment by cheque is no longer accepted."),
        ("It is a myth that vitamin C cures colds.", "Vitamin C cures colds."),
        ("The café is open on Sundays.", "The café is open every day except Sundays."),
        ("There is no evidence that vitamin C cures colds.", "Vitamin C cures colds."),
    ],
)
def test_a_short_statement_and_its_denial_contradict_each_other(claim: str, document: str) -> None:
    assert verdict(claim, document).verdict == "contradicted"


@pytest.mark.parametrize(
    ("claim", "document"),
    [
        ("Alice hired Bob in 2019.", "Bob hired Alice in 2019."),
        ("Germany beat Brazil 1-7.", "Germany beat Brazil 7-1."),
        ("Sales fell from $10M to $5M.", "Sales fell from $5M to $10M."),
        ("It has 5 floors and 12 rooms.", "It has 12 floors and 5 rooms."),
        ("Revenue was $2.4B in Q3 and $2.1B in Q2.", "Revenue was $2.1B in Q3 and $2.4B in Q2."),
        ("Bob is older than Ann.", "Ann is older than Bob."),
    ],
)
def test_names_and_values_that_changed_places_contradict(claim: str, document: str) -> None:
    assert verdict(claim, document).verdict == "contradicted"


@pytest.mark.parametrize(
    ("claim", "document"),
    [
        ("Alice met Bob in 2019.", "Bob met Alice in 2019."),
        ("Alice and Bob run the firm.", "Bob and Alice run the firm."),
        ("Alice hired Bob in 2019.", "Bob was hired by Alice in 2019."),
        ("Bob is younger than Ann.", "Ann is older than Bob."),
        ("More than 100 people attended.", "130 people attended."),
        ("At least three people died.", "Five people died."),
        ("Fewer than 10 errors were found.", "7 errors were found."),
        ("The company has about 5,000 employees.", "The company has 4,983 employees."),
        ("The meeting took over two hours.", "The meeting took 135 minutes."),
        ("130 people attended.", "More than 100 people attended."),
        pytest.param(
            "The office closes at 5 pm on Friday.",
            "The office closes at 5 pm on Fri., 3 May.",
            marks=MISSED,
        ),
    ],
)
def test_what_is_right_in_other_words_is_not_contradicted(claim: str, document: str) -> None:
    assert verdict(claim, document).verdict != "contradicted"


@pytest.mark.parametrize(
    ("claim", "document"),
    [
        ("More than 100 people attended.", "90 people attended."),
        ("At least three people died.", "Two people died."),
        ("Fewer than 10 errors were found.", "12 errors were found."),
        ("The company has about 5,000 employees.", "The company has 7,300 employees."),
    ],
)
def test_a_bound_that_the_value_breaks_is_contradicted(claim: str, document: str) -> None:
    assert verdict(claim, document).verdict == "contradicted"


def test_a_question_about_something_else_does_not_hide_a_wrong_value() -> None:
    document = "The capital of A is Aville. The mayor of A earns $300."
    question = "What is the capital of A?"
    assert verdict("The mayor of A earns $500.", document, question=question).verdict == (
        "contradicted"
    )


@pytest.mark.parametrize(
    ("claim", "document", "expected"),
    [
        ("The cat chased the dog.", "The dog chased the cat across the yard.", "contradicted"),
        ("The dog chased the cat.", "The dog chased the cat across the yard.", "supported"),
        ("Maria employs the bank.", "The bank employs Maria as an analyst.", "contradicted"),
        (
            "The blue box is lighter than the red box.",
            "The red box is lighter than the blue box.",
            "contradicted",
        ),
        (
            "The blue box is heavier than the red box.",
            "The red box is lighter than the blue box.",
            "supported",
        ),
        (
            "The council approved the airport in 2004.",
            "The council did not approve the airport until 2004.",
            "supported",
        ),
        (
            "The council never approved the airport.",
            "The council did not approve the airport until 2004.",
            "contradicted",
        ),
        pytest.param(
            "Borealis bought Acme's printer unit.",
            "Acme Corp sold its printer unit to Borealis in 2019.",
            "supported",
            marks=CLOSE,
        ),
    ],
)
def test_who_did_what_to_whom_and_when_is_read(claim: str, document: str, expected: str) -> None:
    assert verdict(claim, document).verdict == expected


@pytest.mark.parametrize(
    "claim",
    [
        "It was completed in 1889.",
        pytest.param("The tower was completed in 1889.", marks=MISSED),
    ],
)
def test_a_pronoun_or_a_part_of_the_name_stands_for_the_subject(claim: str) -> None:
    document = "The Eiffel Tower was completed in 1889. It is 330 metres tall. It stands in Paris."
    assert verdict(claim, document).verdict == "supported"
