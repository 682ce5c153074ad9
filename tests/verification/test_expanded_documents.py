"""What a document means where a line says little without what stands above it."""

import json
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document

from langchain_groundedness import EmbeddedVerifier
from langchain_groundedness.types import Claim, VerificationTask
from langchain_groundedness.verification.embedded.expanded_documents import expand_document

MANUAL = """\
# Pump P2
Read this first. Keep it.

## Errors
| code | what it means |
|------|---------------|
| E04 | too little water |
| E05 | the door is open | call us |

- Switch it off. Then wait.
Done.
"""


def said(document: str) -> list[str]:
    text, sentences = expand_document(document)
    return [text[sentence.start : sentence.end] for sentence in sentences]


def cited(document: str) -> list[str]:
    return [document[s.source_start : s.source_end] for s in expand_document(document)[1]]


def test_rows_have_their_headers_and_items_their_heading() -> None:
    assert said(MANUAL) == [
        "Pump P2.",
        "Read this first.",
        "Keep it.",
        "Errors.",
        "Errors: code: E04; what it means: too little water.",
        "Errors: code: E05; what it means: the door is open; call us.",
        "Errors: Switch it off.",
        "Then wait.",
        "Done.",
    ]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("# Covered", "# Not covered"),
        ("**Covered**", "**Not covered:**"),
        ("## Covered", "## Not covered"),
        ("== Covered ==", "== Not covered =="),
        ("Covered\n---", "Not covered\n---"),
    ],
)
def test_items_have_their_heading_at_any_level(first: str, second: str) -> None:
    document = f"{first}\n\n- fire\n\n{second}\n\n- flood\n"
    assert said(document)[-2:] == ["Not covered.", "Not covered: flood."]
    assert said(f"# Policy\n\n{document}")[-3:] == [
        "Covered: fire.",
        "Not covered.",
        "Not covered: flood.",
    ]


@pytest.mark.parametrize("title", ["# Policy", "Policy\n==="])
def test_items_under_the_title_alone_have_no_heading(title: str) -> None:
    assert said(f"{title}\n\n- fire\n") == ["Policy.", "fire."]


LEAFLET = """\
# Cold tablets
## Before you take them
They ease pain. Do not take them if:

- you have liver disease.
- you are allergic to:
  - codeine
  - aspirin
- you drink a lot

They help:
1. adults
2) children

Keep them dry.
- in the box
"""


def test_items_have_the_line_that_leads_to_them() -> None:
    assert said(LEAFLET)[3:] == [
        "Do not take them if:",
        "Do not take them if: you have liver disease.",
        "Do not take them if: you are allergic to:",
        "Do not take them if: you are allergic to: codeine.",
        "Do not take them if: you are allergic to: aspirin.",
        "Do not take them if: you drink a lot.",
        "They help:",
        "They help: adults.",
        "They help: children.",
        "Keep them dry.",
        "Before you take them: in the box.",
    ]
    assert cited(LEAFLET)[3:7] == [
        "Do not take them if:",
        "- you have liver disease.",
        "- you are allergic to:",
        "- codeine",
    ]


@pytest.mark.parametrize(
    ("document", "last"),
    [
        ("> Not covered:\n> - flood\n", "Not covered: flood."),
        ("Not covered:\r\n\r\n- flood\r\n", "Not covered: flood."),
        ("Not covered:\n\n| part |\n|---|\n| flood |\n", "Not covered: part: flood."),
        ("Not covered:\n- fire\n\n  More on fire.\n- flood\n", "Not covered: flood."),
        ("> Not covered:\n>\n> - flood\n", "Not covered: flood."),
        ("> Not:\n> - but:\n>   - flood\n", "Not: but: flood."),
        ("  Not covered:\n- flood\n", "Not covered: flood."),
        ("Covered:\n- a.\n- b.\nNot covered:\n- c\n- flood\n", "Not covered: flood."),
        ("Covered:\n- a\n- b\nNot covered:\n- c\n- flood\n", "Not covered: flood."),
        ("Not covered:\n- fire\n\n| part |\n|---|\n| flood |\n", "part: flood."),
        ("*Not covered:*\n- flood\n", "Not covered: flood."),
        ("You **may not:**\n- smoke\n", "You may not: smoke."),
        ("> It does\n> not cover:\n> - flood\n", "It does not cover: flood."),
        ("## No\n\n- a\n\nCovered:\n\n- fire\n", "Covered: fire."),
        ("**No:**\n\n- a\n\nMore.\n\n- fire\n", "fire."),
        ("**Not covered**:\n- flood\n", "Not covered: flood."),
        ("Not covered:\n- fire\n\nAll else is.\n- flood\n", "flood."),
        ("Not covered:\n\nNothing.\n- flood\n", "flood."),
        ("Not covered:\n- fire\n\n# Covered\n- flood\n", "flood."),
    ],
)
def test_a_line_leads_to_its_own_list_alone(document: str, last: str) -> None:
    assert said(document)[-1] == last


def test_what_leads_to_a_list_is_a_heading_of_its_items() -> None:
    units = expand_document(LEAFLET)[1]
    assert [LEAFLET[u.source_start : u.source_end] for u in units if u.is_heading] == [
        "# Cold tablets",
        "## Before you take them",
        "Do not take them if:",
        "- you are allergic to:",
        "They help:",
    ]


def test_an_escaped_pipe_is_text_of_its_cell() -> None:
    table = "| flag \\| key | value |\n|---|---|\n| E06 | red\\|blue |\n| E07 | green \\|"
    assert said(table) == [
        "flag | key: E06; value: red|blue.",
        "flag | key: E07; value: green |.",
    ]
    assert cited(table) == ["| E06 | red\\|blue |", "| E07 | green \\|"]


@pytest.mark.parametrize(
    "document",
    [
        "## " + "x " * 5_000 + "\n\n" + "- a\n" * 5_000,
        "x" * 198 + ":\n" + "- a\n" * 20_000,
        "".join("\t" * n + "- " + "x" * 190 + ":\n" for n in range(500)),
        "|" + "x " * 5_000 + "|\n|---|\n" + "|a|\n" * 5_000,
        json.dumps({"k" * 5_000: {str(n): 1 for n in range(5_000)}}),
    ],
)
def test_what_stands_above_many_lines_does_not_make_a_document_much_longer(document: str) -> None:
    text, _ = expand_document(document)
    assert len(text) < 22 * len(document)


def test_what_is_cited_is_what_the_document_has_there() -> None:
    assert cited(MANUAL) == [
        "# Pump P2",
        "Read this first.",
        "Keep it.",
        "## Errors",
        "| E04 | too little water |",
        "| E05 | the door is open | call us |",
        "- Switch it off.",
        "Then wait.",
        "Done.",
    ]


def test_a_row_without_others_is_read_as_it_stands() -> None:
    assert said("Before.\n\n| alone | here |\n\nAfter.") == [
        "Before.",
        "| alone | here |",
        "After.",
    ]


def test_values_have_their_path_and_records_are_one_sentence() -> None:
    document = json.dumps(
        {
            "name": "P2",
            "max_pressure": {"value": 3.2, "unit": "bar"},
            "tags": ["red", "big"],
            "parts": [{"id": 1, "in_stock": True}, {"id": 2, "in_stock": None}],
        },
        indent=1,
    )
    assert said(document) == [
        "name: P2.",
        "max pressure value: 3.2.",
        "max pressure unit: bar.",
        "tags: red, big.",
        "id: 1; in stock: true.",
        "id: 2; in stock: none.",
    ]
    assert cited(document)[0] == '"name": "P2"'
    assert json.loads(cited(document)[-1]) == {"id": 2, "in_stock": None}


@pytest.mark.parametrize(
    "document", ["{not: json}", "[1, 2", "{}", "[]", '{"a": {}}', "[[]]", "[" * 9999]
)
def test_what_is_no_json_or_holds_nothing_is_read_all_the_same(document: str) -> None:
    expand_document(document)


_LINES = st.sampled_from(
    [
        "# A",
        "## B b",
        "**Bold**",
        "C:",
        "  - d:",
        "| a | b |",
        "|---|---|",
        "| 1 | 2 | 3 |",
        "- an item. More.",
        "1. one",
        "Prose. Two.",
        "",
        "> | q | r |",
        "```",
        "x | y",
        "--|--",
        "====",
        "\ufeff",
        " ",
        "a\tb.",
    ]
)


@given(st.one_of(st.text(), st.lists(_LINES).map("\n".join)))
def test_sentences_are_in_order_and_cite_what_is_there(document: str) -> None:
    text, sentences = expand_document(document)
    at = source = 0
    for sentence in sentences:
        assert at <= sentence.start < sentence.end <= len(text)
        assert source <= sentence.source_start < sentence.source_end <= len(document)
        at, source = sentence.end, sentence.source_end
        if sentence.is_verbatim:
            there = document[sentence.source_start : sentence.source_end]
            assert text[sentence.start : sentence.end] == there


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(_VALUES, st.sampled_from([None, 1]))
def test_every_value_of_json_is_said(value: object, indent: int | None) -> None:
    document = json.dumps({"value": value}, indent=indent)
    text, sentences = expand_document(document)
    at = 0
    for sentence in sentences:
        assert at <= sentence.source_start < sentence.source_end <= len(document)
        at = sentence.source_end
    assert all(str(number) in text for number in _integers(value))


def _integers(value: object) -> Iterator[int]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for each in inner:
        yield from _integers(each)
    if isinstance(value, int) and not isinstance(value, bool):
        yield value


def test_a_row_is_cited_for_what_it_says_under_its_headers() -> None:
    task = VerificationTask(
        claims=(Claim(id="1", text="Code E04 means too little water."),),
        documents=(Document(page_content=MANUAL),),
    )
    [verdict] = EmbeddedVerifier().invoke(task)
    assert verdict.verdict == "supported"
    assert [c.quote for c in verdict.citations] == ["| E04 | too little water |"]


COVERED = (
    "The policy covers:\n- fire\n- burst pipes\n\nIt does not cover:\n- flood\n- wear and tear\n"
)
CARRIED = "Passengers may bring:\n\n1. one bag\n2. a laptop\n\nThey may not bring:\n\n1. knives\n"


@pytest.mark.parametrize(
    ("document", "claim", "expected"),
    [
        (COVERED, "The policy covers burst pipes.", "supported"),
        (COVERED, "The policy covers flood.", "contradicted"),
        (COVERED, "Flood is not covered.", "supported"),
        (CARRIED, "Passengers may bring a laptop.", "supported"),
        (CARRIED, "Passengers may not bring a laptop.", "contradicted"),
    ],
)
def test_an_item_means_what_the_line_before_its_list_says(
    document: str, claim: str, expected: str
) -> None:
    task = VerificationTask(
        claims=(Claim(id="1", text=claim),), documents=(Document(page_content=document),)
    )
    [verdict] = EmbeddedVerifier().invoke(task)
    assert verdict.verdict == expected
    if verdict.correction:  # never "flood." alone
        assert "bring:" in verdict.correction or "cover:" in verdict.correction
