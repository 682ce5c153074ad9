"""The corrector: minimal, visible, and nothing else changed."""

from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.prompts import ChatPromptTemplate

from langchain_groundedness import (
    Citation,
    Claim,
    ClaimVerdict,
    ConfigurationError,
    Corrector,
    GroundednessRunnable,
    VerificationTask,
)
from langchain_groundedness.testing import ScriptedChatModel
from langchain_groundedness.types import CorrectedAnswer, CorrectionTask


def cite(text: str) -> tuple[Citation, ...]:
    return (Citation.from_document([Document(page_content=text)], 0, 0, len(text)),)


def verdict(answer: str, said: str, label: str = "contradicted", **fields: Any) -> ClaimVerdict:
    start = answer.index(said)
    claim = Claim(id=said, text=fields.pop("text", said), start=start, end=start + len(said))
    return ClaimVerdict(claim=claim, verdict=label, **fields)


def correct(answer: str, *verdicts: ClaimVerdict, **fields: Any) -> CorrectedAnswer:
    return Corrector(marker=None).invoke(CorrectionTask(answer=answer, verdicts=verdicts, **fields))


@pytest.mark.parametrize(
    ("said", "correction", "corrected"),
    [
        ("Revenue was $2.4B in Q3.", "$2.1B", "Revenue was $2.1B in Q3."),
        ("Revenue was $2.4B in Q3.", "Revenue was $2.1B", "Revenue was $2.1B in Q3."),
        ("It opened in May 2019.", "It opened in June 2019.", "It opened in June 2019."),
        ("The refund takes 30 days.", "14 days", "The refund takes 14 days."),
        ("He is not the chair.", "He is the chair.", "He is the chair."),
        ("Rain fell.", "The sun shone all day.", "The sun shone all day."),
    ],
)
def test_only_what_is_wrong_is_replaced(said: str, correction: str, corrected: str) -> None:
    answer = f"- **Note:** {said}  Thanks,\n\tyours"
    result = correct(answer, verdict(answer, said, correction=correction))
    assert result.text == answer.replace(said, corrected)


def test_the_marker_shows_what_was_corrected() -> None:
    answer = "Revenue was $2.4B in Q3."
    task = CorrectionTask(answer=answer, verdicts=(verdict(answer, answer, correction="$2.1B"),))
    assert Corrector().invoke(task).text == "Revenue was [CORRECTED: $2.1B] in Q3."
    assert Corrector(marker="*{correction}*").invoke(task).text == "Revenue was *$2.1B* in Q3."
    (edit,) = Corrector().invoke(task).edits
    assert (edit.original, edit.correction) == ("$2.4B", "$2.1B")


def test_without_a_correction_the_evidence_gives_the_value() -> None:
    answer = "Revenue was $2.4B in Q3."
    found = verdict(answer, answer, citations=cite("In Q3 the revenue reached $2.1B."))
    assert correct(answer, found).text == "Revenue was $2.1B in Q3."


def test_without_a_value_the_evidence_sentence_stands_in() -> None:
    answer = "Dogs may come in. Cats too."
    evidence = "No animals are allowed on the premises."
    found = verdict(answer, "Dogs may come in.", citations=cite(evidence))
    assert correct(answer, found).text == f"{evidence} Cats too."


def test_a_table_row_does_not_stand_in_for_a_sentence() -> None:
    answer = "Ann is a developer. Cats are welcome."
    found = verdict(answer, "Ann is a developer.", citations=cite("| Bob | Developer | $70,000 |"))
    assert "|" not in correct(answer, found).text


def test_a_sentence_with_a_pipe_stands_in() -> None:
    answer, evidence = "Dogs may come in.", "No animals are allowed (cats | dogs)."
    assert correct(answer, verdict(answer, answer, citations=cite(evidence))).text == evidence


@pytest.mark.parametrize(
    ("document", "quote", "text"),
    [
        ("You may not bring:\n- knives\n- dogs\n", "- dogs", "You may not bring: dogs."),
        ("# Rules\n\n## Not allowed\n\n* Dogs\n", "* Dogs", "Not allowed: Dogs."),
        ("No dogs.\n\n- Keep quiet.\n", "- Keep quiet.", "Keep quiet."),
        ("You may not bring:\n- dogs or cats\n", "dogs or", "You may not bring: dogs or."),
    ],
)
def test_an_item_stands_in_with_what_leads_to_it(document: str, quote: str, text: str) -> None:
    answer, start = "Dogs may come in.", document.index(quote)
    documents = (Document(page_content=document),)
    cited = Citation.from_document(documents, 0, start, start + len(quote))
    found = verdict(answer, answer, citations=(cited,))
    assert correct(answer, found, documents=documents).text == text


def test_an_item_far_below_what_leads_to_it_does_not_stand_in() -> None:
    answer = "Dogs may come in."
    document = "Nobody may bring:\n" + "".join(f"- thing {n}\n" for n in range(1_000)) + "- dogs\n"
    start = document.index("- dogs")
    cited = Citation.from_document([Document(page_content=document)], 0, start, start + 6)
    found = verdict(answer, answer, citations=(cited,))
    task = CorrectionTask(
        answer=answer, verdicts=(found,), documents=(Document(page_content=document),)
    )
    [edit] = Corrector(marker=None).fall_back(task, task.verdicts)
    assert (edit.original, edit.replacement) == (answer, "")


def test_a_quoted_title_stands_in_as_it_is() -> None:
    answer = "Dogs may come in."
    documents = (Document(page_content="Lions are big.", metadata={"title": "No dogs in here."}),)
    cited = Citation(document=0, start=0, end=16, quote="No dogs in here.", field="title")
    found = verdict(answer, answer, citations=(cited,))
    assert correct(answer, found, documents=documents).text == "No dogs in here."


def test_two_claims_may_get_the_same_small_correction() -> None:
    answer = "The lamp is red. The door is blue."
    found = [verdict(answer, said) for said in ("The lamp is red.", "The door is blue.")]
    model = ScriptedChatModel(replies=["1: The lamp is green.\n2: The door is green."])
    task = CorrectionTask(answer=answer, verdicts=tuple(found))
    corrected = Corrector(model=model, marker=None).invoke(task)
    assert corrected.text == "The lamp is green. The door is green."


def test_a_question_does_not_stand_in_for_a_sentence() -> None:
    answer = "Dogs may come in."
    found = verdict(answer, answer, citations=cite("Q: Are there dogs on the premises?"))
    assert correct(answer, found).text == answer


def test_only_contradicted_claims_are_corrected() -> None:
    answer = "Revenue was $2.4B."
    for label in ("supported", "unverifiable"):
        found = verdict(answer, answer, label, correction="$2.1B")
        assert correct(answer, found) == CorrectedAnswer(text=answer)


def test_nothing_to_go_by_leaves_the_span_with_its_verdict() -> None:
    answer = "Revenue was $2.4B."
    assert correct(answer, verdict(answer, answer)).edits == ()
    without_span = ClaimVerdict(
        claim=Claim(id="c", text=answer), verdict="contradicted", correction="$2.1B"
    )
    assert correct(answer, without_span).edits == ()


def test_annotate_and_keep_change_nothing() -> None:
    answer = "Revenue was $2.4B."
    found = verdict(answer, answer, correction="$2.1B")
    assert correct(answer, found, on_contradicted="annotate").text == answer


def test_strip_takes_out_both_kinds_when_asked() -> None:
    answer = "Revenue was $2.4B. Costs fell. The CEO left."
    verdicts = (
        verdict(answer, "Revenue was $2.4B."),
        verdict(answer, "Costs fell.", "supported"),
        verdict(answer, "The CEO left.", "unverifiable"),
    )
    stripped = correct(answer, *verdicts, on_contradicted="strip", on_unverifiable="strip")
    assert stripped.text == "Costs fell."


def test_text_that_a_supported_claim_rests_on_too_is_not_stripped() -> None:
    answer = "Rome is the capital of Italy and has ten rivers."
    verdicts = (
        verdict(answer, answer, "supported", text="Rome is the capital of Italy."),
        verdict(answer, "and has ten rivers", "unverifiable"),
    )
    assert correct(answer, *verdicts, on_unverifiable="strip").text == answer


@pytest.mark.parametrize(
    ("answer", "first", "second", "stripped"),
    [
        (
            "Ada is a fast machine that was built in 1990. It runs.",
            ("Ada is a fast machine", "Ada is a fast machine."),
            ("that was built in 1990", "Ada was built in 1990."),
            ("Ada was built in 1990. It runs.", "Ada is a fast machine. It runs.", "It runs."),
        ),
        (
            "- **Ada** is a fast machine that was built in 1990 [1].\n- It runs.",
            ("Ada** is a fast machine", "Ada is a fast machine."),
            ("that was built in 1990", "Ada was built in 1990."),
            (
                "- Ada was built in 1990 [1].\n- It runs.",
                "- **Ada** is a fast machine [1].\n- It runs.",
                "- It runs.",
            ),
        ),
        (
            "It runs. Ada was a fast machine, and was built in 1990 (a.md).",
            ("Ada was a fast machine", "Ada was a fast machine."),
            ("was built in 1990", "Ada was built in 1990."),
            (
                "It runs. Ada was built in 1990 (a.md).",
                "It runs. Ada was a fast machine (a.md).",
                "It runs.",
            ),
        ),
    ],
)
def test_a_half_of_a_sentence_is_stripped_without_wrecking_the_other(
    answer: str, first: tuple[str, str], second: tuple[str, str], stripped: tuple[str, str, str]
) -> None:
    def after(one: str, other: str) -> str:
        found = (
            verdict(answer, first[0], one, text=first[1]),
            verdict(answer, second[0], other, text=second[1]),
        )
        return correct(answer, *found, on_unverifiable="strip").text

    assert after("unverifiable", "supported") == stripped[0]
    assert after("supported", "unverifiable") == stripped[1]
    assert after("unverifiable", "unverifiable") == stripped[2]


def test_a_half_that_is_all_that_stays_need_not_be_supported() -> None:
    answer = "Ada is a fast machine that was built in 1990."
    documents = ["Ada is a slow machine."]
    checker = GroundednessRunnable(on_contradicted="strip", verifier=by_half)
    assert checker.invoke((answer, documents)).answer == "Ada was built in 1990."


def by_half(task: VerificationTask) -> list[ClaimVerdict]:
    return [
        ClaimVerdict(
            claim=claim,
            verdict="contradicted" if "fast" in claim.text else "unverifiable",
            citations=(Citation.from_document(task.documents, 0, 0, 22),),
        )
        for claim in task.claims
    ]


def test_several_edits_are_made_in_one_answer() -> None:
    answer = "Revenue was $2.4B.\n\nIt rose by 10%.\n"
    verdicts = (
        verdict(answer, "It rose by 10%.", correction="12%"),
        verdict(answer, "Revenue was $2.4B.", correction="$2.1B"),
    )
    assert correct(answer, *verdicts).text == "Revenue was $2.1B.\n\nIt rose by 12%.\n"


async def test_async_says_the_same() -> None:
    answer = "Revenue was $2.4B."
    task = CorrectionTask(answer=answer, verdicts=(verdict(answer, answer, correction="$2.1B"),))
    assert (await Corrector().ainvoke(task)).text == "Revenue was [CORRECTED: $2.1B]."


@pytest.mark.parametrize("marker", ["", "fixed", "{correction}{correction}"])
def test_a_marker_without_one_place_is_refused(marker: str) -> None:
    with pytest.raises(ConfigurationError, match="marker"):
        Corrector(marker=marker)


ANIMALS = "Dogs may come in. Cats are welcome."
RULE = "No dogs are allowed on the premises. Cats must stay outside too."


def animals() -> CorrectionTask:
    found = (
        verdict(ANIMALS, "Dogs may come in.", citations=cite(RULE)),
        verdict(ANIMALS, "Cats are welcome.", citations=cite(RULE)),
    )
    return CorrectionTask(answer=ANIMALS, verdicts=found)


async def test_a_model_rewords_what_has_no_differing_part_in_one_call() -> None:
    model = ScriptedChatModel(replies=["1: Dogs may not come in.\n2: Cats are not allowed in."])
    corrected = await Corrector(model=model, marker=None).ainvoke(animals())
    assert corrected.text == "Dogs may not come in. Cats are not allowed in."
    assert [e.original for e in corrected.edits] == ["may", "welcome"]
    assert len(model.requests) == 1


@pytest.mark.parametrize("reply", ["none", "I cannot.", "7: Birds sing.", ConnectionError()])
def test_a_model_that_does_not_help_leaves_the_evidence_to_stand_in(reply: Any) -> None:
    model = ScriptedChatModel(replies=[reply] * 3)
    corrected = Corrector(model=model, marker=None).invoke(animals())
    assert corrected.text == f"{RULE} {RULE}"


def test_the_model_is_not_asked_where_the_differing_part_is_known() -> None:
    answer = "Revenue was $2.4B."
    task = CorrectionTask(answer=answer, verdicts=(verdict(answer, answer, correction="$2.1B"),))
    model = ScriptedChatModel(replies=[])
    assert Corrector(model=model, marker=None).invoke(task).text == "Revenue was $2.1B."
    assert model.requests == []


def test_a_prompt_that_lacks_its_variables_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="evidence"):
        Corrector(prompt=ChatPromptTemplate.from_template("{statements}"))


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Hello, the office is in Paris.", "Hello, the office is in [CORRECTED: Berlin]."),
        ("<b>The office is in Paris.</b>", "<b>The office is in [CORRECTED: Berlin].</b>"),
        (
            "The office is in [Paris](http://x).",
            "The office is in [[CORRECTED: Berlin]](http://x).",
        ),
        ("The office is in _Paris_.", "The office is in _[CORRECTED: Berlin]_."),
    ],
)
def test_courtesy_and_markup_around_a_claim_stay_as_they_are(answer: str, expected: str) -> None:
    check = GroundednessRunnable(on_contradicted="correct")
    assert check.invoke((answer, ["The office is in Berlin."])).answer == expected
