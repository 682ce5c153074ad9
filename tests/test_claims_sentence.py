"""Claims found without a model: what becomes one, its text, and the span it came from."""

from typing import Any

import pytest
from growth import assert_linear
from hypothesis import given
from hypothesis import strategies as st

from langchain_groundedness import DecisionPolicy, SentenceClaimExtractor
from langchain_groundedness.exceptions import ConfigurationError
from langchain_groundedness.types import Claim, ExtractionTask


def texts(answer: str) -> list[str]:
    return [claim.text for claim in SentenceClaimExtractor().invoke(answer)]


def pairs(answer: str) -> list[tuple[str, str]]:
    return [
        (claim.text, answer[claim.start : claim.end])
        for claim in SentenceClaimExtractor().invoke(answer)
    ]


def test_sentences_become_claims_with_spans_and_ids() -> None:
    answer = "Rome is in Italy. It lies on the Tiber."
    claims = SentenceClaimExtractor().invoke(answer)
    assert [(c.id, c.text, c.start, c.end) for c in claims] == [
        ("c1", "Rome is in Italy.", 0, 17),
        ("c2", "It lies on the Tiber.", 18, 39),
    ]


@pytest.mark.parametrize(
    "answer",
    ["Paris", "42", "Yes", "No.", "$2.1B", "**Paris**", "# Paris", "Dr. Oak", "\u6771\u4eac"],
)
def test_a_short_answer_is_a_claim(answer: str) -> None:
    assert texts(answer) == [answer.strip("*# ")]


def test_a_heading_is_the_answer_only_where_nothing_else_is() -> None:
    assert texts("Sure!\n\n**Paris**") == ["Paris"]
    assert texts("# Summary\n\nI don't know.") == []
    assert texts("# Summary\n\nRome is in Italy.") == ["Rome is in Italy."]


async def test_a_fragment_after_a_question_keeps_its_own_text() -> None:
    task = ExtractionTask(answer="Yes", question="Is Rome in Italy?")
    [claim] = await SentenceClaimExtractor().ainvoke(task)
    assert (claim.text, claim.start, claim.end) == ("Yes", 0, 3)


@pytest.mark.parametrize("answer", ["", "  \n", "...", "---", "\U0001f389", "```\nx = 1\n```"])
def test_an_answer_that_says_nothing_has_no_claims(answer: str) -> None:
    assert texts(answer) == []


@pytest.mark.parametrize(
    "answer",
    [
        "The documents do not say.",
        "The documents do not say who founded it.",
        "Unfortunately, the provided context doesn't mention the price.",
        "Based on the provided documents, I cannot determine the year.",
        "I don't know.",
        "I'm sorry, but I don't have enough information to answer that.",
        "There is no information about its founder in the documents.",
        "The founding year is not mentioned in the provided text.",
        "None of the passages mention it.",
        "It is not possible to determine this from the context.",
        "No information was found.",
        "Unable to answer based on the given passages.",
        "Therefore, I am unable to answer the question from these passages.",
        "Note: The passages do not mention the weight.",
        "It is important to note that passage 3 does not provide a date.",
        "Unknown.",
        "The documents do not mention the population, area, or climate of Rome.",
        "The documents do not say when, where, or how it was built.",
        "The documents do not mention what happened on March 5, 2020.",
        "The documents do not mention who founded Acme and when it was sold.",
        "I don't know what the revenue of Acme was in 2020.",
        "There is no information in the context, so I cannot answer the question.",
        "I cannot answer this because the documents do not mention it.",
        "As an AI language model, I don't have access to real-time data.",
        "The context does not give the price of Acme; please provide more documents.",
        "I couldn't find that in the documents, sorry.",
        "I have no information on that.",
        "Nothing in the documents answers this.",
        "I wasn't able to find any information about that.",
        "The documents do not mention the population, area or climate of Rome.",
        "Ich wei\u00df es nicht.",
        "Die Dokumente enthalten dazu keine Angaben.",
        "Je ne sais pas.",
        "Les documents ne mentionnent pas le prix.",
        "No lo s\u00e9.",
        "Los documentos no mencionan el precio.",
        "\u6211\u4e0d\u77e5\u9053\u3002",
        "\u6587\u6863\u4e2d\u6ca1\u6709\u63d0\u5230\u3002",
        "\u5206\u304b\u308a\u307e\u305b\u3093\u3002",
        "\u0644\u0627 \u0623\u0639\u0631\u0641.",
        "\u042f \u043d\u0435 \u0437\u043d\u0430\u044e.",
    ],
)
def test_a_refusal_is_no_claim(answer: str) -> None:
    assert texts(answer) == []


@pytest.mark.parametrize(
    "answer",
    [
        "Hello!", "Hi there!", "Thank you for your question.", "Great question!", "You're welcome!",
        "Sure!", "Is it raining?", "Who knows\uff1f", "Let me know if you need more.",
        "Feel free to ask.", "If you have any questions, please ask.", "I hope this helps!",
        "I'm happy to help.", "Here is a summary of the findings.", "The main points are:",
        "# Results of 2020", "== Media ==", "**Summary**", "Would you like to know more?",
        "Let me know if you want the figures of 2023.", "Could you clarify which year you mean?",
        "If you need more details, let me know and I can help.", "In 2020, what was it?",
        "Is it true that it was $9 billion?", "Key results for Q3 2024:",
    ],
)  # fmt: skip
def test_courtesy_questions_lead_ins_and_headings_are_no_claims(answer: str) -> None:
    assert texts(f"{answer}\n\nRome is in Italy.") == ["Rome is in Italy."]


@pytest.mark.parametrize(
    "answer",
    [
        "Hi Anna!", "Good morning, Mr. Smith!", "Thanks for your patience, Tom!", "Good point!",
        "I'm your finance assistant.", "I'm Claire, your HR assistant.", "My name is Ava.",
        "I am an AI assistant and I can answer questions about your contracts.",
        "I was trained to answer questions about taxes.", "Welcome to Acme support!",
        "Please tell me the quarter.", "Give me the invoice number and I will look it up.",
        "To answer that, I need the quarter.", "Please rephrase your question.", "Which quarter?",
        "Do you mean Q3 2024 or Q3 2025?", "Before I answer, which country are you in?",
        "I can also compare the two quarters for you.", "If you like, I can draft an email.",
        "Let me check.", "I'd rather not discuss that.",
        "I'm sorry, but I can't share personal data.",
        "I am not allowed to talk about this.", "I don't have an opinion on that.",
        "You're very welcome, Lisa!", "Sorry about the confusion!", "Anything else?",
        "Good question, Tom \u2014 I'd be glad to help.", "Thanks, Anna! I'll look into it.",
        "No problem at all!", "Glad I could help!", "Happy to dig deeper into any of these.",
        "Welcome back, Anna!", "Let me check that for you.",
        "To answer that I need the name of the customer.",
        "Please share the invoice number so I can check.",
        "I can help you with invoices, expenses and travel bookings.",
        "You can ask me about leave, pay and travel.", "I'm just a bot, but I'll do my best.",
        "I'm afraid that is outside of what I can answer.", "I'm not authorised to share that.",
        "As your assistant, I can look up invoices.", "I am Finn, Acme's virtual assistant.",
        "I would need to know your country first.", "Good luck with your presentation!",
        "Thanks a lot!", "Sorry to hear that.", "That's not something I can help with.",
        "I'm called Ava.", "I'm Ava, your assistant for travel.", "I'm an AI language model.",
        "I'm the virtual agent of Acme Bank.", "I'm unable to comment on that.",
        "I'm the Acme support bot.", "I'm a virtual agent here to help you with invoices.",
        "I'm here if you need anything.", "Nice to hear from you again.", "Enjoy your day!",
        "Take your time.", "I'm a digital helper.", "Below you'll find my answer.",
        "Thanks for flagging that.", "I have no personal preferences.", "No rush at all.",
        "I rely solely on the material you gave me.", "Apologies for the mix-up.", "Got it.",
        "你好。", "こんにちは。", "N'hésitez pas à demander.", "Here are the key points.",
        "Please wait a moment.", "Do not hesitate to contact us.", "Sincerely",
    ],
)  # fmt: skip
def test_speaking_to_the_reader_is_no_claim(answer: str) -> None:
    assert texts(answer) == []
    assert texts(f"{answer}\n\nRome is in Italy.") == ["Rome is in Italy."]
    assert DecisionPolicy().is_trusted([], answer=answer, trust_score=None)


@pytest.mark.parametrize(
    "answer",
    [
        "I can offer you a full refund.", "I will refund you.", "I can waive the fee.",
        "I can confirm revenue doubled.", "I can tell you revenue doubled.",
        "I'm your assistant, and revenue doubled.", "I'm glad that revenue rose.",
        "I understand revenue doubled.", "Let me tell you that revenue doubled.",
        "I need to point out that fees apply.", "I'm happy with the 12% growth.",
        "Yes.", "No.", "Paris.", "The answer is no.", "Please restart the router.", "Click Save.",
        "Tell your doctor if you are pregnant.", "Please submit the form by Friday.",
        "Please send the invoice to finance within 30 days.", "Give the form to your manager.",
        "Tell Me Why is a song by the Beatles.", "I Am Legend is a film.",
        "Hello Kitty is a brand.",
        "Good luck charms sell well in May.", "My name is Bond appears in the film.",
        "Certainly, Paris.", "To save costs I need 3 people.",
        "It is beyond my budget of $5.", "Please pay $5 so I can check.",
        "I can help with that, profit and revenue rose.",
        "I can compare, and revenue fell.",
        "You can ask me out on Friday or pay $5.",
        "Welcome bonuses are paid in May.", "I see your order has shipped.",
        "I'm your biggest competitor's supplier.", "I'm a certified financial adviser.",
        "I'm the founder of Acme.", "I am a real person.", "I'm an AI researcher.",
        "I'm an assistant professor at MIT.", "I'm a supplier of your assistant.",
        "I'm Jane Miller, the CEO of Acme.", "I'm your assistant and your lawyer.",
        "I'm called the best bank in Germany.", "As your lawyer, I can look up invoices.",
        "I'm here in Paris.", "I'm here if you need anything, and revenue doubled.",
        "Take your medicine.", "I require payment in advance.", "I will find the thief.",
        "Enjoy responsibly.", "I advise caution on this road.", "You can swim there.", "She lies.",
        "I know the code.", "Feel free to bring a dog.", "The bot crashed.", "Nickel.", "One.",
    ],
)  # fmt: skip
def test_a_statement_or_a_promise_to_the_reader_is_a_claim(answer: str) -> None:
    assert [text.casefold() for text in texts(answer)] == [
        answer.removeprefix("Certainly, ").casefold()
    ]


@pytest.mark.parametrize(
    "answer",
    [
        "The documents do not mention the price, but it was $3.",
        "I'm not sure, but it was founded in 1987.",
        "He does not know her.",
        "The company did not provide figures.",
        "Therefore, the company was unable to provide figures.",
        "Note that the pump does not contain oil.",
        "Good morning America is a show on ABC.",
        "Welcome Break is a company in Britain.",
        'He asked "Why?"',
        "Hope is a village in Wales.",
        "There is no evidence that it works.",
        "Thank You is a song by Dido.",
        "Certainly was the best of them.",
        "Here is the answer: revenue was $9 billion in Q3.",
        "Here is the summary that the drug is safe.",
        "As an AI company, Acme has 5,000 employees.",
        "I don't know exactly, revenue was about $9 billion.",
        "I don't know, sales rose.",
        "I don't know, Paris.",
        "I cannot say for sure, Paris or Rome.",
        "I don't know, paris and rome.",
        "The documents do not mention the price, revenue fell and costs rose.",
        "I am not sure, revenue was $9 billion.",
        "I cannot say \u2013 it was sold.",
        "There is no mention of side effects, so the drug is safe for children.",
        "There is no information on this and the drug is safe.",
        "If you have chest pain, contact a doctor after 48 hours.",
        "Feel free to give the drug to children.",
        "I'm happy to say that Acme makes cars.",
        "Revenue was $9 billion in Q3:",
        "Revenue was $9 billion, right?",
        "Revenue was $9 billion?",
    ],
)
def test_a_statement_that_looks_like_a_refusal_or_courtesy_is_kept(answer: str) -> None:
    assert texts(answer) == [answer]


@pytest.mark.parametrize(
    "answer",
    [
        "Sure, rome is in Italy.",
        "Based on the provided documents, Rome is in Italy.",
        "Of course! According to passage 2, Rome is in Italy.",
    ],
)
def test_what_stands_before_a_statement_and_says_nothing_is_dropped(answer: str) -> None:
    answer = answer.replace("! ", ", ")
    assert pairs(answer) == [("Rome is in Italy.", answer)]


def test_list_items_are_claims_without_their_markers() -> None:
    answer = "The parts are:\n\n- a *wheel*\n2. an axle. It turns.\n* [x] a seat"
    assert pairs(answer) == [
        ("a wheel", "a *wheel*"),
        ("an axle.", "an axle."),
        ("It turns.", "It turns."),
        ("a seat", "[x] a seat"),
    ]


@pytest.mark.parametrize(
    "table",
    ["| Name | Age |\n|---|:-:|\n| Ann | 31 |\n| Bo | |", "Name | Age\n--- | ---\nAnn | 31\nBo |"],
)
def test_table_rows_are_claims_about_their_first_cell_named_by_the_header(table: str) -> None:
    rows = table.split("\n")[2:]
    assert pairs(f"{table}\n\nThat is all of them.") == [
        ("Ann; Age: 31", rows[0]),
        ("Bo", rows[1]),
        ("That is all of them.", "That is all of them."),
    ]


def test_a_header_that_says_nothing_is_left_out() -> None:
    table = "| Feature | Value | Weight |\n|---|---|---|\n| Warranty | two years | 2 kg |"
    assert texts(table) == ["Warranty: two years; Weight: 2 kg"]


def test_rows_without_a_header_are_claims_of_their_cells() -> None:
    assert texts("| Ann | a\\|b |\n| Bo | **29** |") == ["Ann: a|b", "Bo: 29"]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("The **capital** of _Italy_ is `Rome`.", "The capital of Italy is Rome."),
        ("See [the guide](https://a.b/c.html) first.", "See the guide first."),
        ("It rose in May [1].", "It rose in May."),
        ("It rose [1][2, 3] in May. [4-6]", "It rose in May."),
        ("It rose (report.md#sales).", "It rose."),
        ("It rose (source: a/report.pdf).", "It rose."),
        ("It rose [Document 2].", "It rose."),
        ("It rose\u30101\u2020source\u3011.", "It rose."),
        ("It <b>rose</b> by x_1 and y_2.", "It rose by x_1 and y_2."),
        ("It rose 5 * 3 * 2 times.", "It rose 5 * 3 * 2 times."),
        ("The set is [0, 1000].", "The set is [0, 1000]."),
        ("**Revenue was $2.1B.**", "Revenue was $2.1B."),
        ("It says \u201cgo\u201d (again).", "It says \u201cgo\u201d (again)."),
    ],
)
def test_markup_and_citation_markers_are_not_part_of_the_text(answer: str, text: str) -> None:
    assert pairs(answer) == [(text, answer)]


def test_quoted_lines_are_claims_without_their_markers() -> None:
    assert texts("> Quoted from\n> the report.") == ["Quoted from the report."]


def test_code_blocks_are_skipped() -> None:
    assert texts("Run it.\n```\nThis is. Code.\n```\nIt works.") == ["Run it.", "It works."]


@pytest.mark.parametrize(
    ("answer", "claims"),
    [
        ("今天很好。你来吗?东京大。", ["今天很好。", "东京大。"]),
        ("ما هي؟ القاهرة كبيرة.", ["القاهرة كبيرة."]),
    ],
)  # fmt: skip
def test_other_scripts_are_read_alike(answer: str, claims: list[str]) -> None:
    assert texts(answer) == claims


@pytest.mark.parametrize(
    ("answer", "parts"),
    [
        (
            "Python is a high-level general-purpose language that was created by George Lucas.",
            [
                ("Python is a high-level general-purpose language.",
                 "Python is a high-level general-purpose language"),
                ("Python was created by George Lucas.", "that was created by George Lucas"),
            ],
        ),
        (
            "Rome is the capital of Italy with more than 4 million inhabitants",
            [
                ("Rome is the capital of Italy.", "Rome is the capital of Italy"),
                ("Rome has more than 4 million inhabitants.",
                 "with more than 4 million inhabitants"),
            ],
        ),
        (
            "The **bridge** was built in 1932 and is 1149 metres long.",
            [
                ("The bridge was built in 1932.", "The **bridge** was built in 1932"),
                ("The bridge is 1149 metres long.", "is 1149 metres long"),
            ],
        ),
        (
            "Ada Oak was the chief engineer, who was born in 1801.",
            [
                ("Ada Oak was the chief engineer.", "Ada Oak was the chief engineer"),
                ("Ada Oak was born in 1801.", "who was born in 1801"),
            ],
        ),
    ],
)  # fmt: skip
def test_a_sentence_that_says_two_things_gives_two_claims(
    answer: str, parts: list[tuple[str, str]]
) -> None:
    assert pairs(answer) == parts
    assert len(SentenceClaimExtractor(split_compound=False).invoke(answer)) == 1


@pytest.mark.parametrize(
    "answer",
    [
        "Python is the first language that was created by a team.",
        "Ann is a member of the club that was founded in 1900.",
        "It is not a language that was made for children.",
        "He is a man who was never late.",
        "Rome is the largest city with 4 million inhabitants.",
        "Ann said Bo was late and was angry.",
        "If Ann is ill and is weak she rests.",
        "Some cats are black and are fast.",
        "The rules are a set of norms that is old.",
        "The city is close to the sea with nice beaches.",
        "Ann was born in Rome, and her brother was born in Oslo.",
    ],
)
def test_a_sentence_is_not_split_where_that_could_change_its_meaning(answer: str) -> None:
    assert pairs(answer) == [(answer, answer)]


@given(st.text(max_size=200) | st.text("ab.A |-#*_`[]()1:>\n?! ", max_size=120))
def test_spans_lie_in_the_answer_in_order_and_hold_something(answer: str) -> None:
    claims = SentenceClaimExtractor().invoke(answer)
    at = 0
    for number, claim in enumerate(claims, 1):
        assert claim.id == f"c{number}"
        assert claim.text.strip()
        assert claim.start is not None
        assert claim.end is not None
        assert at <= claim.start < claim.end <= len(answer)
        at = claim.end


@pytest.mark.parametrize(
    "unit",
    [
        *(
            "It rose. ",
            "x ",
            " ",
            "[",
            "*a ",
            "_ ",
            "<a ",
            "?)",
            "> ",
            "is a ",
            "| a ",
            "A is a b, ",
        ),
        *(")> ", "*> ", "* "),
    ],
)
def test_a_large_answer_is_read_in_linear_time(unit: str) -> None:
    extractor = SentenceClaimExtractor()
    assert_linear(lambda size: extractor.invoke("A" + unit * (size // len(unit))), 200_000)


def test_an_unknown_option_is_refused() -> None:
    options: dict[str, Any] = {"split": True}
    with pytest.raises(ConfigurationError):
        SentenceClaimExtractor(**options)


@pytest.mark.parametrize(
    ("answer", "stated"),
    [
        ("Costs fell.\n\nRevenue was $9B in Q3.\n---\nThanks!", "Revenue was $9B in Q3."),
        ("## Revenue was $9B in Q3\n\nCosts fell.", "Revenue was $9B in Q3"),
        ("**Revenue: $2.4B**\n\nCosts fell.", "Revenue: $2.4B"),
    ],
)
def test_what_is_stated_as_a_heading_is_a_claim(answer: str, stated: str) -> None:
    claims = SentenceClaimExtractor().invoke(answer)
    assert stated in [claim.text for claim in claims]
    assert len(claims) == 2


@pytest.mark.parametrize("title", ["Overview", "Q3 2024", "What is new", "Step 1: Preheat"])
def test_a_title_is_no_claim(title: str) -> None:
    for heading in (f"# {title}\n\n", f"**{title}**\n\n", f"{title}\n---\n"):
        assert [c.text for c in SentenceClaimExtractor().invoke(f"{heading}Costs fell.")] == [
            "Costs fell."
        ]


async def test_a_subclass_that_has_its_own_invoke_is_asked_by_ainvoke_too() -> None:
    class First(SentenceClaimExtractor):
        def invoke(self, *args: Any, **kwargs: Any) -> list[Claim]:
            return super().invoke(*args, **kwargs)[:1]

    answer = "Rome is in Italy. Oslo is in Norway."
    assert await First().ainvoke(answer) == First().invoke(answer)
    assert len(await SentenceClaimExtractor().ainvoke(answer)) == 2


def test_many_interjections_neither_recurse_nor_take_long() -> None:
    [claim] = SentenceClaimExtractor().invoke("Sure, " * 1_000 + "Rome is old.")
    assert claim.text.endswith("Rome is old.")


def test_a_lead_in_that_names_documents_takes_linear_time() -> None:
    extractor = SentenceClaimExtractor()
    assert_linear(lambda size: extractor.invoke("current " * (size // 8) + "is 5:"), 100_000)
