"""One reply grammar: what is read as verdicts, and what is not, whole replies at a time."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage

from langchain_groundedness.verification.verdict_replies import (
    ReplyReader,
    ReplyVerdicts,
    VerdictLine,
)

TAG = "XKQ"
READ = ReplyReader(TAG, claims=12, sentences=9)


def said(raw: Any, read: ReplyReader = READ) -> ReplyVerdicts:
    reply, why = read(raw)
    assert reply is not None, why
    return reply


def wrong(raw: Any, read: ReplyReader = READ) -> str:
    reply, why = read(raw)
    assert reply is None
    assert why is not None
    return why


CASES = [
    ("C1 [3] supported", VerdictLine(1, "supported", (3,))),
    ("C1: [3] supported", VerdictLine(1, "supported", (3,))),
    ("C1: [3] [4] supported", VerdictLine(1, "supported", (3, 4))),
    ("1: 3,4 supported", VerdictLine(1, "supported", (3, 4))),
    ("1: 3-5 supported", VerdictLine(1, "supported", (3, 4, 5))),
    ("**C12.** [7] Supported", VerdictLine(12, "supported", (7,))),
    ("Claim 2: supported [3]", VerdictLine(2, "supported", (3,))),
    ("2) supported by sentences 3, 4", VerdictLine(2, "supported", (3, 4))),
    ("2 [3] supported", VerdictLine(2, "supported", (3,))),
    (
        "C2: [7] contradicted | $2.1B | it was $2.1B",
        VerdictLine(2, "contradicted", (7,), "$2.1B", "it was $2.1B"),
    ),
    ("C2: [7] contradicted | $2.1B", VerdictLine(2, "contradicted", (7,), "$2.1B")),
    ("C2: [7] contradicted | - | no value", VerdictLine(2, "contradicted", (7,), None, "no value")),
    (
        "C2: [7] contradicted | the report says something else on that",
        VerdictLine(2, "contradicted", (7,), None, "the report says something else on that"),
    ),
    (
        "C3: unverifiable | kein Preis genannt",
        VerdictLine(3, "unverifiable", (), None, "kein Preis genannt"),
    ),
    (
        "C3: unverifiable | it is not supported by anything",
        VerdictLine(3, "unverifiable", (), None, "it is not supported by anything"),
    ),
    ("C3: - unverifiable", VerdictLine(3, "unverifiable")),
    ("C3: [2] refuted", VerdictLine(3, "contradicted", (2,))),
    ("C1: Sentence 3 and 4 - **Supported**.", VerdictLine(1, "supported", (3, 4))),
    ("C1: Supported (sentences [3] and [4])", VerdictLine(1, "supported", (3, 4))),
    ("C1: [3] & [4], verdict: supported", VerdictLine(1, "supported", (3, 4))),
    ("C1: [3] => supported.", VerdictLine(1, "supported", (3,))),
    ("C1 [4, 5] supported", VerdictLine(1, "supported", (4, 5))),
    ("C1 [4] supported | -", VerdictLine(1, "supported", (4,))),
    ("C3: unverifiable - no price", VerdictLine(3, "unverifiable", (), None, "no price")),
]


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_a_line_is_read(text: str, expected: VerdictLine) -> None:
    assert said(f"{TAG} {text}").decided == {expected.claim: expected}
    assert said(f"- **{TAG}** {text}").decided == {expected.claim: expected}
    assert said(json.dumps({"tag": TAG, "lines": [text]})).decided == {expected.claim: expected}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "supported",
        "C1:",
        "C1: [3]",
        "C1: [3] suppor",
        "C1: [3] supported or contradicted",
        "C1: LABEL",
        "C1: supported",
        "C1: contradicted | 1987",
        "Here are the verdicts:",
        "| C1: x",
        "C1 | [3] | fine",
        "[1] supported",
        "C1: [1] not supported",
        "C1: [1] not supported: none",
        "C1: [1] not fully supported",
        "C1: [1] partially supported",
        "C1: [1] hardly supported | x",
        "C1: [1] isn't supported",
        "C1: [1] cannot be supported",
        "C1: [1] un-supported",
        "C1: [1] \u00acsupported",
        "C1: [1] !supported",
        "C1: [1] \u017fupported",
        "C1: [1] CONTRAD\u0130CTED",
        "C1: [1] supp\u200borted",
        "C1: 1 supported? no",
        "C1: supported by nothing",
        "C1: supported - not at all",
        "C1: supported, no",
        "C1: [1] supported, no",
        "C1: [2] supported | contradicted",
        "C1: [2] supported | no: the evidence says otherwise",
        "C1: [2] supported | three",
        "C1: [2] contradicted | supported",
        "C1: [2] supported 0.02",
        "C1: 0.02 supported",
        "C1: supported=0",
        "C1: [2] supported=1",
        "C1: supported (1)",
        "C1: [2] supported (0)",
        "C1: [2] supported 98%",
        "C1: [0] supported",
        "C1: [10] supported",
        "C1: [-1] supported",
        "C1: [2] [99] supported",
        "C1: 1-999999999 supported",
        f"C1: [{'9' * 5_000}] supported",
        f"C1: [1] supported {TAG} C2: [1] supported",
        "C1: Sentence 1 does not mean that it is supported.",
        "C1: I doubt sentence 1 means it is supported",
        "C1: According to 2014 data supported",
        "C1: [1] 2 supported",
        "C1: 4 [1] supported",
    ],
)
def test_what_is_not_in_the_grammar_is_no_verdict(text: str) -> None:
    for raw in (f"{TAG} {text}", json.dumps({"tag": TAG, "lines": [text]}), text):
        reply, why = READ(raw)
        assert why if reply is None else not reply.decided


@pytest.mark.parametrize(
    "reply",
    [
        "C1 [1] supported",
        "TAG C1 [1] supported",
        "XKR C1 [1] supported",
        "XKQS C1 [1] supported",
        '{"tag": "TAG", "lines": ["C1 [1] supported"]}',
        '{"lines": ["C1 [1] supported"]}',
        "Reply in this form:\nTAG C1 [1] supported\nTAG: XKQ",
    ],
)
def test_without_the_tag_of_the_call_nothing_is_a_reply(reply: str) -> None:
    assert wrong(reply)


def as_call(arguments: Any, name: str = "VerdictLines") -> dict[str, Any]:
    return {"name": name, "args": arguments, "id": "1", "type": "tool_call"}


OBJECT = {"tag": TAG, "lines": ["C1 [1] supported"]}
OTHER = {"tag": TAG, "lines": ["C1 [2] contradicted"]}
LINE = f"{TAG} C1 [1] supported"


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (f"{json.dumps(OBJECT)}\n{json.dumps(OTHER)}", "text around"),
        (f"{json.dumps(OBJECT)} Corrected: {json.dumps(OTHER)}", "text around"),
        (json.dumps([OBJECT, OTHER]), "text around"),
        (json.dumps({**OBJECT, "correction": "C1 is contradicted"}), "not in the form"),
        ('{"tag": "XKQ", "lines": ["C1 [1] supported"], "lines": []}', "not in the form"),
        (json.dumps({"tag": TAG, "lines": [{"C1": "supported"}]}), "not text"),
        (json.dumps({"tag": TAG, "lines": {"C1": "[1] supported"}}), "not text"),
        (json.dumps({"tag": TAG, "lines": [["C1 [1] supported"]]}), "not text"),
        (AIMessage("", tool_calls=[as_call(OBJECT), as_call(OTHER)]), "more than one tool call"),
        (AIMessage("", tool_calls=[as_call(OBJECT, "set_verdict")]), "a tool that does not exist"),
        (AIMessage("But it is false.", tool_calls=[as_call(OBJECT)]), "text around"),
        (f"<think>{LINE}", "reasoning does not end"),
        (f"[THINK]\n{LINE}", "reasoning does not end"),
        (f"<|channel|>analysis<|message|>{LINE}", "reasoning does not end"),
        (f"<thinking>{LINE}</thinking>Done.", "no line"),
        (f"{LINE}</think>", "empty"),
        (f"{LINE}\nWait, that is wrong.", "text around"),
        (f"{LINE}\nCorrection: C1 is contradicted", "text around"),
        (f"{LINE}\nI take C1 back.", "text around"),
        (f"{LINE}\n{TAG} no", "text around"),
        (f"Draft: C1 supported\n{LINE}", "text around"),
        (f"{LINE}\n{TAG} C1 [2] contradicted", "two different verdicts"),
        (f"{LINE}\n{TAG} C1 no, it is wrong", "not in the form"),
        (f"{LINE} | contradicted", "text after the label"),
    ],
)
def test_what_may_take_a_verdict_back_leaves_none(raw: Any, why: str) -> None:
    assert why in wrong(raw)


REMARKS = [
    "I misread the evidence.",
    "The evidence speaks of two lanes.",
    "On reflection, I read it the other way.",
    "Take it all back.",
    "Please treat the above as examples.",
    "Just kidding.",
    "Strike those.",
    "Labels inverted.",
    "Das stimmt so.",
    "Falsch!",
    "C'est faux.",
    "\u042d\u0442\u043e \u043d\u0435\u043f\u0440\u0430\u0432\u0434\u0430.",
    "\u8aa4\u308a\u3067\u3059\u3002",
    "N.O.T.",
    "n\u043et",
    "\u2717",
    "\U0001f643",
    "0/1",
    "confidence: 0.02",
    "Is that the verdict?",
    "The evidence is against all claims.",
    "These verdicts are free of evidence.",
    "More evidence is needed.",
    "These verdicts go against the evidence.",
    "All the verdicts in the format.",
    "\u25c1think\u25b7",
    "Thinking:",
    "Example:",
    "Template:",
    "~~",
]


@pytest.mark.parametrize("remark", REMARKS)
def test_any_words_around_the_lines_but_polite_ones_leave_no_verdict(remark: str) -> None:
    for line in (LINE, json.dumps(OBJECT)):
        assert "text around" in wrong(f"{line}\n{remark}")
        assert "text around" in wrong(f"{remark}\n{line}")
    assert "text around" in wrong(f"{LINE}\n{remark}\n{TAG} C2 [1] supported")
    assert "text around" in wrong(AIMessage(remark, tool_calls=[as_call(OBJECT)]))
    assert wrong(f"{LINE}\n{TAG} {remark}")
    assert wrong(json.dumps({"tag": TAG, "lines": ["C1 [1] supported", remark]}))


def test_what_is_announced_behind_the_lines_is_missing() -> None:
    for announced in ("Final answer:", "Here are my verdicts.", "I will judge all claims."):
        assert said(f"{announced}\n{LINE}")
        assert "text around" in wrong(f"{LINE}\n{announced}")


POLITE = [
    "Sure! Here is my assessment of the evidence:",
    "Here you are:",
    "Certainly! Based on the evidence provided, here are my verdicts for the 4 claims:",
    "I\u2019ve checked each claim against the evidence. Here\u2019s the result:",
    "Okay, let\u2019s go through the claims one by one.",
    "Sure thing! Here are the results in the requested format:",
    "## Verdicts",
    "**Final answer:**",
    "Let me check each of the two claims.",
    "TAG: XKQ",
]


@pytest.mark.parametrize("before", POLITE)
@pytest.mark.parametrize(
    "after",
    [
        "I hope this helps! \U0001f60a",
        "Let me know if you have any questions.",
        "Feel free to ask if you would like further details.",
        "Is there anything else I can help you with?",
        "These verdicts are based on the evidence provided.",
        "---",
    ],
)
def test_polite_words_around_the_lines_do_not_matter(before: str, after: str) -> None:
    for body in (LINE, json.dumps(OBJECT), f"```\n{LINE}\n```"):
        assert said(f"{before}\n\n{body}\n\n{after}").decided


LENGTH = {"finish_reason": "length"}


@pytest.mark.parametrize("end", ["Wait, that is wr", "The ev", f"{TAG} no", f"{TAG}: two la"])
def test_the_beginning_of_what_was_cut_off_may_take_verdicts_back(end: str) -> None:
    assert wrong(AIMessage(f"{LINE}\n{end}", response_metadata=LENGTH))


def test_a_second_verdict_that_was_cut_off_leaves_its_claim_without_one() -> None:
    both = f"{TAG} C1 [1] supported\n{TAG} C2 [2] supported"
    for end in ("[1] contra", "[1] supported", "[1] contradicted | 19", "| n"):
        raw: Any = AIMessage(f"{both}\n{TAG} C2 {end}", response_metadata=LENGTH)
        assert set(said(raw).decided) == {1}
        assert "incomplete line" in said(raw).undecided[2]
        half = json.dumps({"tag": TAG, "lines": ["C1 [1] supported", "C2 [2] supported"]})
        assert set(said(f'{half[:-2]}, "C2 {end}').decided) == {1}
    for end in (TAG[:2], TAG, f"{TAG} C", f"{TAG} C1", f"- {TAG} C3"):
        assert set(said(AIMessage(f"{both}\n{end}", response_metadata=LENGTH)).decided) == {1, 2}


def test_lines_that_run_into_each_other_are_no_lines() -> None:
    merged = f"{TAG} C1 [1] supported\n{TAG} C2 [1] supported{TAG} C1 [1] contradicted\n"
    reply = said(f"{merged}{TAG} C3 [1] supported")
    assert set(reply.decided) == {3}
    blocks: Any = [{"type": "text", "text": text} for text in (LINE, f"{TAG} C1 [2] contradicted")]
    assert "incomplete line" in wrong(AIMessage(blocks))


def test_claims_that_are_counted_from_another_number_have_no_verdict() -> None:
    two = READ._replace(claims=2)
    for numbers in ((0, 1), (2, 3), (0, 1, 2)):
        lines = "\n".join(f"{TAG} C{number} [1] supported" for number in numbers)
        assert "numbers the claims differently" in wrong(lines, two)
    lines = "\n".join(f"{TAG} C{number} [1] supported" for number in (1, 2, 3))
    assert set(said(lines, two).decided) == {1, 2}  # all are there, and one more


@pytest.mark.parametrize(
    "raw",
    [
        LINE,
        f"```\n{LINE}\n```",
        f"Sure! Here is my assessment:\n\n{LINE}\n\nLet me know if you have questions.",
        f"<think>C1 [2] contradicted?</think>\n{LINE}",
        f"C1 may be contradicted\n</think>\n{LINE}",
        f"[THINK]no[/THINK]{LINE}",
        f"<|channel|>analysis<|message|>no<|end|><|channel|>final<|message|>{LINE}<|return|>",
        json.dumps(OBJECT),
        f"```json\n{json.dumps(OBJECT, indent=1)}\n```",
        f"Here is the JSON:\n{json.dumps(OBJECT)}\nThat is all.",
        json.dumps({"tag": TAG, "lines": [LINE]}),
        json.dumps({"lines": [LINE]}),
        json.dumps({"tag": TAG, "lines": "C1 [1] supported"}),
        AIMessage("", tool_calls=[as_call(OBJECT)]),
        AIMessage("Let me see.", tool_calls=[as_call(OBJECT)]),
        {"raw": AIMessage(json.dumps(OBJECT)), "parsed": None, "parsing_error": None},
    ],
)
def test_an_honest_reply_is_read_in_every_dialect(raw: Any) -> None:
    assert said(raw).decided == {1: VerdictLine(1, "supported", (1,))}


@pytest.mark.parametrize("kept", range(20, 75))
def test_of_an_object_that_was_cut_off_the_complete_lines_count(kept: int) -> None:
    whole = json.dumps({"tag": TAG, "lines": ["C1 [1] supported", "C2 unverifiable | x"]})
    reply, _ = READ(whole[:kept])
    found = dict(reply.decided) if reply else {}
    assert {number: line.label for number, line in found.items()} in (
        {},
        {1: "supported"},
        {1: "supported", 2: "unverifiable"},
    )
    assert (1 in found) == (kept > whole.index("supported") + len("supported"))


def test_only_the_claim_that_got_two_labels_has_no_verdict() -> None:
    lines = ["C1: [3] supported", "C2: [1] supported", "C1: [3] contradicted"]
    reply = said("\n".join(f"{TAG} {line}" for line in lines))
    assert set(reply.decided) == {2}
    assert "two different verdicts" in reply.undecided[1]


def test_the_first_of_two_equal_verdicts_counts() -> None:
    reply = said(f"{TAG} C1: [3] supported\n{TAG} C1: [4] supported")
    assert reply.decided[1].sentences == (3,)


def test_a_claim_asked_about_alone_needs_no_number() -> None:
    alone = READ._replace(claims=1)
    assert said(f"{TAG} [4] supported", alone).decided == {1: VerdictLine(1, "supported", (4,))}
    assert said(f"{TAG}: unverifiable", alone).decided == {1: VerdictLine(1, "unverifiable")}


@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    for raw in (text, f"{TAG} {text}", f"{TAG} C1 {text}", json.dumps({"tag": TAG, "lines": text})):
        reply, why = READ(raw)
        assert (reply is None) == (why is not None)
