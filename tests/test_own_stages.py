"""Stages of the user's own: whatever they reply, nothing crashes or reads as checked."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from langchain_groundedness import EmbeddedVerifier, GroundednessRunnable, SentenceClaimExtractor
from langchain_groundedness.exceptions import ConfigurationError, VerificationError
from langchain_groundedness.testing import ScriptedChatModel
from langchain_groundedness.types import (
    Citation,
    Claim,
    ClaimVerdict,
    CorrectedAnswer,
    CorrectionTask,
    Edit,
    VerificationTask,
)

WRONG = ("Revenue was $2.4B in Q3.", ["Revenue was $2.1B in Q3."])
RIGHT = ("Revenue was $2.1B in Q3.", ["Revenue was $2.1B in Q3."])


def edit(start: int, end: int, replacement: str, correction: str = "", **more: Any) -> Edit:
    given = {
        "claim_id": "c1",
        "start": start,
        "end": end,
        "original": WRONG[0][start:end],
        "replacement": replacement,
        "correction": correction,
    }
    return Edit(**{**given, **more})


def corrected(*edits: Edit, text: str = "Aliens own the firm.") -> GroundednessRunnable:
    def correct(_: CorrectionTask) -> CorrectedAnswer:
        return CorrectedAnswer(text=text, edits=edits)

    return GroundednessRunnable(on_contradicted="correct", corrector=correct)


def test_the_text_is_made_from_the_edits_alone() -> None:
    assert corrected().invoke(WRONG).answer == ""  # not corrected, so removed
    good = corrected(edit(12, 17, "$2.1B", "$2.1B")).invoke(WRONG)
    assert (good.answer, len(good.edits)) == (RIGHT[0], 1)


@pytest.mark.parametrize(
    "bad",
    [
        [edit(0, 24, "Aliens own the firm.")],
        [edit(0, 24, "Aliens own the firm.", "Revenue was $2.1B in Q3.")],
        [edit(0, 24, "Aliens own it. [CORRECTED: $2.1B]", "$2.1B")],
        [edit(12, 17, "$2.1B", "$2.1B", original="$9.9B")],
        [edit(12, 17, "$2.1B", "$2.1B", claim_id="c7")],
        [edit(12, 17, "$2.1B", "$2.1B"), edit(10, 14, "", "")],
        [edit(20, 99, "", original="Q3.")],
    ],
)
def test_for_edits_that_do_not_fit_or_are_not_supported_the_claim_is_removed(
    bad: Sequence[Edit],
) -> None:
    result = corrected(*bad).invoke(WRONG)
    assert (result.answer, [e.original for e in result.edits]) == ("", [WRONG[0]])
    assert result.verdict == "has_contradictions"


def test_edits_that_do_not_fit_are_a_failure_for_who_asks() -> None:
    strict = corrected(edit(20, 99, "")).model_copy(update={"raise_on_failure": True})
    with pytest.raises(VerificationError, match="correction failed"):
        strict.invoke(WRONG)


def test_several_edits_of_one_claim_are_checked_together_and_harm_no_other_answer() -> None:
    two = corrected(edit(0, 7, "The revenue", "The revenue"), edit(12, 17, "$2.1B", "$2.1B"))
    first, second = two.batch([(WRONG[0], ["The revenue was $2.1B in Q3."]), RIGHT])
    assert first.answer == "The revenue was $2.1B in Q3."
    assert second.answer == RIGHT[0]


@pytest.mark.parametrize("reply", ["text", [1], {"a": 1}, [None], 7, [{"verdict": "supported"}]])
@pytest.mark.parametrize("call", ["invoke", "batch", "stream"])
def test_what_a_verifier_replies_wrongly_leaves_the_claims_unchecked(reply: Any, call: str) -> None:
    def verify(_: VerificationTask) -> Any:
        return reply

    checker = GroundednessRunnable(verifier=verify)
    calls: dict[str, Callable[[], Any]] = {
        "invoke": lambda: checker.invoke(WRONG),
        "batch": lambda: checker.batch([WRONG])[0],
        "stream": lambda: list(checker.stream(WRONG))[-1],
    }
    result = calls[call]()
    assert [v.verdict for v in result.claims] == ["unchecked"]
    assert "the verifier must return" in (result.claims[0].reason or "")
    assert not result.is_trusted
    strict = GroundednessRunnable(verifier=verify, raise_on_failure=True)
    with pytest.raises(VerificationError):
        strict.invoke(WRONG)


def test_what_an_extractor_replies_wrongly_leaves_the_sentences_unchecked() -> None:
    result = GroundednessRunnable(extractor=lambda _: ["Revenue was $2.1B."]).invoke(RIGHT)
    assert [v.verdict for v in result.claims] == ["unchecked"]
    assert "the extractor must return a list of Claim, got str" in (result.claims[0].reason or "")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"verifier": EmbeddedVerifier}, "verifier: got the class EmbeddedVerifier"),
        ({"extractor": SentenceClaimExtractor}, "extractor: got the class SentenceClaimExtractor"),
        ({"model": ScriptedChatModel}, "model: got the class ScriptedChatModel"),
        ({"model": ""}, "model: got an empty name"),
    ],
)
def test_a_class_or_an_empty_name_in_place_of_a_stage_is_refused(
    options: Any, message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        GroundednessRunnable(**options)


def test_what_a_corrector_replies_wrongly_is_not_shown() -> None:
    checker = GroundednessRunnable(on_contradicted="correct", corrector=lambda _: "Aliens.")
    assert checker.invoke(WRONG).answer == ""


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        (None, "In 2021 the firm sold 3 units."),
        (Claim(id="c1", text="Acme sold 2 units.", start=0, end=30), "Acme sold 3 units."),
        (
            Claim(id="c1", text="In 2021 Acme sold 2 units.", start=0, end=30),
            "In 2021 the firm sold 3 units.",
        ),
    ],
)
def test_the_statement_that_is_checked_again_is_the_one_that_was_written(
    claim: Claim | None, expected: str
) -> None:
    seen: list[str] = []

    def verify(task: VerificationTask) -> list[ClaimVerdict]:
        seen.extend(claim.text for claim in task.claims)
        cited = (Citation.from_document(task.documents, 0, 0, 30),)
        return [
            ClaimVerdict(claim=c, verdict="contradicted", correction="3", citations=cited)
            for c in task.claims
        ]

    extractor: Any = None if claim is None else lambda _: [claim]
    GroundednessRunnable(on_contradicted="correct", verifier=verify, extractor=extractor).invoke(
        ("In 2021 the firm sold 2 units.", ["In 2021 the firm sold 3 units."])
    )
    assert seen[1:] == [expected]
