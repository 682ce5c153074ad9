"""The pure parts: where claims are after edits, what stays, which fields change."""

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage
from pydantic import BaseModel

from langchain_groundedness import Claim, ClaimVerdict, Decision, GroundednessResult
from langchain_groundedness.correction.edits import apply_edits
from langchain_groundedness.middleware.answer_check import without_failed_claims
from langchain_groundedness.middleware.messages import (
    annotated,
    as_arguments,
    edited_fields,
    in_paragraphs,
    span_after_edits,
    without_annotations,
)
from langchain_groundedness.types import Edit

CONTRADICTED = ("contradicted",)
BOTH = (*CONTRADICTED, "unverifiable")
LABELS = st.sampled_from(["supported", "contradicted", "unverifiable"])


class Inner(BaseModel):
    name: str
    size: int | None = None


class Outer(BaseModel):
    title: str
    parts: list[Inner]


@dataclass
class Flat:
    title: str
    sure: bool


def verdict(number: int, start: int, end: int, label: Any, text: str) -> ClaimVerdict:
    claim = Claim(id=f"c{number}", text=text[start:end], start=start, end=end)
    return ClaimVerdict(claim=claim, verdict=label)


def result(text: str, verdicts: Any, edits: Any = ()) -> GroundednessResult:
    return GroundednessResult(
        question=None,
        answer=apply_edits(text, edits),
        original_answer=text,
        documents=(),
        claims=tuple(verdicts),
        trust_score=None,
        verdict="unchecked",
        is_trusted=False,
        decision=Decision(action="flag"),
        edits=tuple(edits),
    )


@st.composite
def judged_answers(draw: st.DrawFn) -> GroundednessResult:
    words = draw(st.lists(st.text("abc", min_size=1, max_size=5), min_size=1, max_size=8))
    sentences = [f"{word}{n}." for n, word in enumerate(words)]
    between = draw(st.sampled_from([" ", "\n", "\n\n", "\n- "]))
    text = between.join(sentences)
    verdicts, edits, at = [], [], 0
    for number, sentence in enumerate(sentences):
        start = text.index(sentence, at)
        at = start + len(sentence)
        label = draw(LABELS)
        verdicts.append(verdict(number, start, at, label, text))
        if label == "contradicted" and draw(st.booleans()):
            new = draw(st.text("xyz", min_size=1, max_size=4))
            edits.append(
                Edit(
                    claim_id=f"c{number}",
                    start=start,
                    end=at - 1,
                    original=sentence[:-1],
                    replacement=new,
                    correction=new,
                )
            )
    return result(text, verdicts, edits)


@given(judged_answers())
def test_a_claim_is_found_again_after_edits(found: GroundednessResult) -> None:
    new = {edit.claim_id: edit.replacement for edit in found.edits}
    for each in found.claims:
        span = span_after_edits(found.edits, each)
        assert span is not None
        expected = new[each.claim.id] + "." if each.claim.id in new else each.claim.text
        assert found.answer[slice(*span)] == expected


@given(judged_answers())
def test_nothing_that_failed_stays_and_nothing_else_goes(found: GroundednessResult) -> None:
    fixed = without_failed_claims(found, BOTH)
    corrected = {edit.claim_id for edit in found.edits}
    stays = [v for v in found.claims if v.verdict == "supported" or v.claim.id in corrected]
    if fixed is None:
        assert not stays
        return
    assert fixed.answer == apply_edits(found.original_answer, fixed.edits)
    for each in found.claims:
        if each in stays:
            assert span_after_edits(fixed.edits, each) is not None
        else:
            assert each.claim.text not in fixed.answer.split()


@given(judged_answers())
def test_annotations_leave_the_text_alone_and_come_off_again(found: GroundednessResult) -> None:
    message = AIMessage(found.answer, id="m")
    marked = annotated(message, found)
    assert marked.text == found.answer
    assert marked.id == "m"
    assert without_annotations(marked).content == found.answer


def test_a_message_with_another_text_is_not_annotated() -> None:
    message = AIMessage("Something else.")
    assert annotated(message, result("a.", [verdict(1, 0, 2, "supported", "a.")])) is message


def test_annotations_of_the_provider_stay() -> None:
    own = {"type": "citation", "url": "https://example.org"}
    blocks: Any = [{"type": "text", "text": "a.", "annotations": [own]}]
    found = result("a.", [verdict(1, 0, 2, "unverifiable", "a.")])
    marked = annotated(AIMessage(content=blocks), found)
    assert len(marked.content_blocks[0]["annotations"]) == 2  # type: ignore[typeddict-item]
    bare = without_annotations(marked)
    assert bare.content == blocks


def test_a_claim_without_a_place_cannot_be_taken_out() -> None:
    claim = Claim(id="c1", text="a")
    lost = ClaimVerdict(claim=claim, verdict="contradicted")
    assert without_failed_claims(result("a. b.", [lost]), BOTH) is None


def edit(text: str, old: str, new: str, *, occurrence: int = 0) -> Edit:
    start = [n for n in range(len(text)) if text.startswith(old, n)][occurrence]
    return Edit(
        claim_id="c1",
        start=start,
        end=start + len(old),
        original=old,
        replacement=new and f"[CORRECTED: {new}]",
        correction=new,
    )


def test_fields_are_edited_in_their_places_and_without_markers() -> None:
    value = Outer(title="red house", parts=[Inner(name="red roof", size=4), Inner(name="door")])
    text = in_paragraphs(
        value, "title: red house\nparts name: red roof\nparts size: 4\nparts name: door"
    )
    assert text.count("\n\n") == 3
    edits = [
        edit(text, "red", "green", occurrence=1),
        edit(text, "roof", "top"),
        edit(text, "4", ""),
    ]
    assert edited_fields(value, text, edits) == Outer(
        title="red house", parts=[Inner(name="green top"), Inner(name="door")]
    )


def test_other_forms_of_structured_answers_are_edited_too() -> None:
    text = "title: red house\n\nsure: true"
    edits = [edit(text, "red", "green")]
    assert edited_fields(Flat("red house", sure=True), text, edits) == Flat(
        "green house", sure=True
    )
    mapping = {"title": "red house", "sure": True}
    assert edited_fields(mapping, text, edits) == {"title": "green house", "sure": True}
    assert as_arguments(Flat("a", sure=True)) == as_arguments({"title": "a", "sure": True})


def test_an_answer_inside_a_structure_is_edited_as_it_is() -> None:
    value = {"answer": "red house", "mood": "good"}
    edits = [edit("red house", "red", "green")]
    assert edited_fields(value, "red house", edits) == {"answer": "green house", "mood": "good"}


@pytest.mark.parametrize(
    ("value", "text", "change"),
    [
        ({"a": "red", "b": "blue"}, "a: red\n\nb: blue", ("red\n\nb: blue", "green")),
        (Inner(name="x", size=4), "name: x\n\nsize: 4", ("4", "many")),
        ({"a": "red"}, "something else", ("else", "new")),
    ],
)
def test_an_edit_that_fits_no_field_is_not_made(
    value: Any, text: str, change: tuple[str, str]
) -> None:
    assert edited_fields(value, text, [edit(text, *change)]) is None
