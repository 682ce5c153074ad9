"""One row through both stages: what accepts, what asks the judge, what rejects, what is open."""

import asyncio
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableLambda

from langchain_groundedness import Claim, ClaimVerdict, ConfigurationError
from langchain_groundedness.calibration import Calibration
from langchain_groundedness.evals import CompositeScore, EvaluationRow, RowScore
from langchain_groundedness.evals.validation import AnswerValidator, RowValidation
from langchain_groundedness.testing import ScriptedChatModel, ScriptedVerifier

BRIDGE = "The bridge was built in 1890 and restored in 1962. It is 40 m long."
GOOD = {"relevance": 1.0, "correctness": 1.0, "completeness": 1.0}


def row(answer: str, *contexts: str | Document, **more: Any) -> dict[str, Any]:
    found = list(contexts or (BRIDGE,))
    return {"question": "How old is it?", "answer": answer, "contexts": found, **more}


def quality(**scores: float) -> Any:
    """A second stage that gives these scores."""

    def judge(_: EvaluationRow) -> RowScore:
        details = {**GOOD, **scores, "reasoning": "because"}
        return RowScore(key="answer_quality", score=0.5, status="scored", details=details)

    return RunnableLambda(judge)


def codes(found: RowValidation) -> list[str]:
    return [reason.code for reason in found.reasons]


class Angles(Embeddings):
    """Embeddings in a plane: each text has the cosine that its entry says to every document."""

    def __init__(self, cosines: dict[str, float]) -> None:
        self._cosines = cosines

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        found = [self._cosines.get(text, 1.0) for text in texts]
        return [[cosine, (1 - cosine**2) ** 0.5] for cosine in found]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


# Stage 1


def test_a_supported_answer_passes_offline_on_its_source_score_alone() -> None:
    found = AnswerValidator().invoke(row("The bridge was built in 1890."))
    assert (found.outcome, found.stage, found.composite) == ("passed", "source", 1.0)
    assert found.scores == {"source": 1.0}
    assert found.reasons == ()
    assert found.claims[0].band == "accept"
    assert found.claims[0].verdict.citations[0].quote.startswith("The bridge was built in 1890")


def test_a_contradicted_answer_is_rejected_and_says_by_what() -> None:
    found = AnswerValidator().invoke(row("The bridge was built in 1990. It is 40 m long."))
    assert (found.outcome, codes(found)) == ("rejected", ["contradicted"])
    assert found.claims[0].verdict.correction == "1890"


def test_contradictions_may_count_as_unsupported_instead() -> None:
    validator = AnswerValidator(on_contradicted="count", pass_score=0.5)
    found = validator.invoke(row("The bridge was built in 1990. It is 40 m long."))
    assert (found.outcome, found.scores) == ("passed", {"source": 0.5})


def test_similarity_accepts_rejects_or_asks_the_judge() -> None:
    near, middle, far = "The bridge is old.", "Bridges get old.", "Cats like the bridge."
    judge = ScriptedVerifier(lambda claim: "supported" if claim.text == middle else "contradicted")
    validator = AnswerValidator(
        embeddings=Angles({near: 0.9, middle: 0.6, far: 0.3}), verifier=judge
    )
    found = validator.invoke(row(f"{near} {middle} {far}", "The bridge is really old."))
    assert [claim.band for claim in found.claims] == ["accept", "judge", "reject"]
    assert [claim.similarity for claim in found.claims] == [0.9, 0.6, 0.3]
    assert [claim.verdict.verdict for claim in found.claims] == [
        "supported",
        "supported",
        "unverifiable",
    ]
    assert [[claim.text for claim in task.claims] for task in judge.tasks] == [[middle]]
    assert found.scores["source"] == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    "other", ["It is 41 m long.", "It is not 40 m long.", "Oslo is 40 m long."]
)
def test_numbers_names_and_negations_that_differ_are_never_settled_by_similarity(
    other: str,
) -> None:
    judge = ScriptedVerifier(lambda _: "contradicted")
    validator = AnswerValidator(embeddings=Angles({}), verifier=judge)
    found = validator.invoke(row(other, "It is 40 m long."))
    assert found.claims[0].similarity == 1.0
    assert (found.claims[0].band, found.claims[0].differs) == ("judge", True)
    assert found.outcome == "rejected"


def test_without_embeddings_the_judge_is_asked_where_the_probability_is_in_between() -> None:
    judge = ScriptedVerifier(lambda _: "supported")
    validator = AnswerValidator(verifier=judge, accept=0.99999)
    found = validator.invoke(row("The bridge was built in 1890. Cheese floats on the moon."))
    assert [claim.band for claim in found.claims] == ["judge", "reject"]
    assert len(judge.tasks) == 1
    assert len(judge.tasks[0].claims) == 1


def test_a_contradiction_that_the_embedded_verifier_sees_goes_to_the_judge() -> None:
    judge = ScriptedVerifier(lambda _: "supported")
    found = AnswerValidator(verifier=judge).invoke(row("The bridge was built in 1990."))
    assert len(judge.tasks) == 1
    assert found.claims[0].differs
    assert found.outcome == "passed"


def test_an_answer_that_is_covered_in_part_is_not_rejected_for_it() -> None:
    found = AnswerValidator(quality=quality(completeness=0.6)).invoke(
        row("The bridge was built in 1890. It is 40 m long. The mayor loves it.")
    )
    assert found.outcome == "passed"
    assert found.scores["source"] == pytest.approx(2 / 3)
    assert found.composite == pytest.approx(0.3 * 2 / 3 + 0.2 + 0.3 + 0.2 * 0.6)


def test_an_answer_with_too_few_supported_claims_never_reaches_the_second_stage() -> None:
    asked: list[Any] = []
    validator = AnswerValidator(quality=RunnableLambda(asked.append))
    found = validator.invoke(row("Cats swim. Dogs fly. The bridge was built in 1890."))
    assert (found.outcome, found.stage, codes(found)) == ("rejected", "source", ["source"])
    assert found.scores["source"] == pytest.approx(1 / 3)
    assert found.composite is None
    assert asked == []


# Stage 2


def model_of(judged: str, scores: dict[str, float]) -> ScriptedChatModel:
    """A chat model that judges claims, then the quality."""

    def reply(messages: Sequence[BaseMessage]) -> str:
        if "You review answers" in messages[0].text:
            return json.dumps({"reasoning": "It says how old.", **scores})
        return judged

    return ScriptedChatModel(replies=reply)


def test_a_chat_model_judges_what_is_open_and_then_the_quality() -> None:
    model = model_of("{tag} C1: [1] supported", {**GOOD, "completeness": 0.5})
    validator = AnswerValidator(model=model, accept=0.99999)
    found = validator.invoke(row("The bridge was built in 1890."))
    assert (found.outcome, found.stage) == ("passed", "quality")
    assert found.scores == {**GOOD, "source": 1.0, "completeness": 0.5}
    assert found.composite == pytest.approx(0.9)
    assert found.quality["reasoning"] == "It says how old."
    assert found.claims[0].verdict.verifier != "embedded"
    assert found.usage.model_calls == len(model.requests) == 2


def test_claims_that_similarity_settles_cost_no_call() -> None:
    model = model_of("", GOOD)
    found = AnswerValidator(model=model).invoke(row("The bridge was built in 1890."))
    assert found.outcome == "passed"
    assert len(model.requests) == 1


def test_a_short_answer_passes_as_a_long_one_does() -> None:
    found = AnswerValidator(quality=quality()).invoke(row("The bridge was built in 1890."))
    assert (found.outcome, found.composite) == ("passed", 1.0)


def test_a_score_below_its_minimum_rejects_whatever_the_others_are() -> None:
    validator = AnswerValidator(
        quality=quality(correctness=0.4), composite=CompositeScore(minimums={"correctness": 0.5})
    )
    found = validator.invoke(row("The bridge was built in 1890."))
    assert (found.outcome, codes(found)) == ("rejected", ["minimum"])
    assert found.composite == pytest.approx(0.82)


def test_all_reasons_are_told() -> None:
    validator = AnswerValidator(
        quality=quality(correctness=0.1, relevance=0.1, completeness=0.0),
        composite=CompositeScore(minimums={"correctness": 0.5, "relevance": 0.5}),
    )
    found = validator.invoke(row("The bridge was built in 1890."))
    assert codes(found) == ["minimum", "minimum", "composite"]


def test_a_composite_of_exactly_the_pass_score_passes() -> None:
    scores = {"relevance": 1.0, "correctness": 0.5, "completeness": 0.25}
    found = AnswerValidator(quality=quality(**scores)).invoke(row("The bridge was built in 1890."))
    assert found.composite == pytest.approx(0.7)
    assert found.outcome == "passed"


# What could not be checked


def refuse(_: object) -> Any:
    raise TimeoutError


@pytest.mark.parametrize(
    ("given", "code"),
    [
        (row("  "), "no_answer"),
        ({"question": "How old?", "contexts": [BRIDGE]}, "no_answer"),
        (row("It is old.", " "), "no_documents"),
        ({"question": "How old?", "answer": "Old."}, "no_documents"),
        (row("I don't know."), "no_claims"),
        (row("```\nprint(1)\n```"), "no_claims"),
    ],
)
def test_a_row_in_which_nothing_can_be_checked_is_unchecked(
    given: dict[str, Any], code: str
) -> None:
    found = AnswerValidator().invoke(given)
    assert (found.outcome, codes(found)) == ("unchecked", [code])
    assert found.composite is None


def test_a_claim_that_nobody_could_check_leaves_the_row_unchecked_with_what_is_known() -> None:
    judge = ScriptedVerifier(lambda _: TimeoutError())
    found = AnswerValidator(verifier=judge, accept=1.0).invoke(
        row("The bridge was built in 1890. Cheese floats.")
    )
    assert (found.outcome, codes(found)) == ("unchecked", ["claims_unchecked"])
    assert "TimeoutError" in found.reasons[0].text
    assert len(found.claims) == 2


def test_a_contradiction_settles_a_row_whatever_else_could_not_be_checked() -> None:
    def say(claim: Claim) -> Any:
        return "contradicted" if "1890" in claim.text else "unchecked"

    found = AnswerValidator(verifier=ScriptedVerifier(say), accept=1.0).invoke(
        row("The bridge was built in 1890. It is 40 m long.")
    )
    assert codes(found) == ["contradicted"]


def test_a_second_stage_that_fails_leaves_the_row_unchecked_and_keeps_the_first() -> None:
    validator = AnswerValidator(quality=RunnableLambda(refuse))
    found = validator.invoke(row("The bridge was built in 1890."))
    assert (found.outcome, codes(found)) == ("unchecked", ["quality_unchecked"])
    assert found.scores == {"source": 1.0}
    assert len(found.claims) == 1


@pytest.mark.parametrize(
    "said",
    [
        RowScore(key="q", status="failed", reason="a refusal"),
        RowScore(key="q", status="scored", score=1.0, details={"relevance": 1.0}),
        RowScore(key="q", status="scored", score=1.0, details={**GOOD, "correctness": 7}),
        RowScore(key="q", status="scored", score=1.0, details={**GOOD, "correctness": True}),
    ],
)
def test_a_quality_that_is_no_quality_is_never_a_score(said: RowScore) -> None:
    validator = AnswerValidator(quality=RunnableLambda(lambda _: said))
    found = validator.invoke(row("The bridge was built in 1890."))
    assert (found.outcome, codes(found)) == ("unchecked", ["quality_unchecked"])


def test_garbled_replies_of_a_model_never_pass() -> None:
    model = ScriptedChatModel(replies=lambda _: "#!$%")
    found = AnswerValidator(model=model).invoke(row("The bridge was built in 1890."))
    assert found.outcome == "unchecked"


def test_an_extractor_that_fails_leaves_the_row_unchecked() -> None:
    found = AnswerValidator(extractor=RunnableLambda(refuse)).invoke(row("It is old."))
    assert found.outcome == "unchecked"
    assert "TimeoutError" in found.reasons[0].text


def test_an_answer_without_claims_is_judged_by_its_quality_where_there_is_a_judge() -> None:
    found = AnswerValidator(quality=quality(completeness=0.5)).invoke(row("I don't know."))
    assert (found.outcome, found.stage) == ("passed", "quality")
    assert "source" not in found.scores
    assert found.composite == pytest.approx((0.2 + 0.3 + 0.1) / 0.7)


# Citations


def chunk(text: str, source: str) -> Document:
    return Document(text, metadata={"source": source})


CITED = (
    chunk("The bridge was built in 1890.", "converted/historia/broar och vägar.md"),
    chunk("The tower is 90 m high.", "converted/tower.md"),
)


@pytest.mark.parametrize(
    "path",
    [
        "historia/broar och vägar.md#bygge",
        "broar%20och%20v%C3%A4gar.md",
        "./Historia\\Broar och vägar.md",
        "/data/converted/historia/broar och vägar.md",
    ],
)
def test_cited_paths_are_compared_however_they_are_written(path: str) -> None:
    validator = AnswerValidator(evidence="cited")
    found = validator.invoke(row(f"The bridge was built in 1890 [source:{path}].", *CITED))
    assert found.citations == {path: (0,)}
    assert found.outcome == "passed"


def test_only_what_is_cited_counts_if_that_is_asked_for() -> None:
    answer = "The bridge was built in 1890 [source:tower.md]."
    assert AnswerValidator().invoke(row(answer, *CITED)).outcome == "passed"
    found = AnswerValidator(evidence="cited").invoke(row(answer, *CITED))
    assert (found.outcome, codes(found)) == ("rejected", ["source"])


def test_a_cited_path_that_is_not_among_the_documents_never_fails_a_grounded_answer() -> None:
    answer = "The bridge was built in 1890 [source:other.md]."
    found = AnswerValidator().invoke(row(answer, *CITED))
    assert (found.outcome, found.citations) == ("passed", {"other.md": ()})
    only = AnswerValidator(evidence="cited").invoke(row(answer, *CITED))
    assert (only.outcome, codes(only)) == ("unchecked", ["not_cited"])
    assert "other.md" in only.reasons[0].text


def test_spans_of_claims_refer_to_the_answer_as_it_came() -> None:
    answer = "As said [source:tower.md], the bridge was built in 1890."
    (claim,) = AnswerValidator().invoke(row(answer, *CITED)).claims
    assert claim.verdict.claim.start == 0
    assert claim.verdict.claim.end == len(answer)
    assert "tower" not in claim.verdict.claim.text


# Options


async def test_async_finds_the_same() -> None:
    validator = AnswerValidator(quality=quality(correctness=0.4))
    for answer in ("The bridge was built in 1890.", "The bridge was built in 1990.", "Hm?"):
        found = await validator.ainvoke(row(answer))
        assert found == await asyncio.to_thread(validator.invoke, row(answer))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"accept": 0.4}, "reject must not be above accept"),
        ({"reject": -0.5}, "reject must be from 0 to 1"),
        ({"pass_score": 70}, "pass_score"),
        ({"composite": CompositeScore(weights={"source": 0.0, "relevance": 1.0})}, "source must"),
        ({"composite": CompositeScore(weights={"source": 1.0, "charm": 1.0})}, "may name"),
        ({"calibration": 5}, "calibration must be a Calibration"),
        ({"model": "nobody:gpt"}, "provider"),
        ({"tresholds": 1}, "options are"),
    ],
)
def test_options_that_cannot_work_are_refused_when_the_validator_is_made(
    options: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigurationError, match=said):
        AnswerValidator(**options)


def calibration(verifier: str = "embedded", **thresholds: float) -> Calibration:
    nothing = {"samples": 40, "passed": 20}
    figures = dict.fromkeys(("before", "fitted", "expected"), nothing)
    counts = {"unit": "claim", "samples": 40, "good": 20, "groups": 40}
    return Calibration(
        made=datetime.now(UTC),
        target={"kind": "precision", "value": 0.9},
        verifier=verifier,
        chosen={name: {"threshold": t, **counts, **figures} for name, t in thresholds.items()},
    )


def test_thresholds_come_from_a_calibration(tmp_path: Path) -> None:
    path = tmp_path / "calibration.json"
    calibration(settle_supported=0.9, settle_unsupported=0.2, support=0.6).save(path)
    assert AnswerValidator(calibration=path).bands == (0.9, 0.2, 0.6)
    assert AnswerValidator(calibration=calibration(support=0.97)).bands.middle == 0.75


def test_a_calibration_of_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="was made for 'hhem'"):
        AnswerValidator(calibration=calibration("hhem", support=0.5))
    with pytest.raises(ConfigurationError, match="was made for the embedded verifier"):
        AnswerValidator(calibration=calibration(support=0.5), embeddings=Angles({}))
    with pytest.raises(ConfigurationError, match="holds none of the thresholds"):
        AnswerValidator(calibration=calibration(trust=0.5))
    with pytest.raises(ConfigurationError, match="another encoder"):
        AnswerValidator(calibration=calibration(support=0.5).model_copy(update={"encoder": "00"}))
    with pytest.raises(ConfigurationError, match="No such file"):
        AnswerValidator(calibration=tmp_path / "gone.json")


def test_a_broken_installation_is_told_and_not_taken_for_a_bad_row() -> None:
    def broken(_: object) -> list[ClaimVerdict]:
        msg = "install it"
        raise ConfigurationError(msg)

    with pytest.raises(ConfigurationError, match="install it"):
        AnswerValidator(quality=RunnableLambda(broken)).invoke(row("The bridge was built in 1890."))


def test_messages_of_models_are_kept_as_they_are() -> None:
    model = ScriptedChatModel(
        replies=lambda _: AIMessage(json.dumps({"reasoning": "Bra åäö", **GOOD}))
    )
    found = AnswerValidator(model=model).invoke(row("The bridge was built in 1890."))
    assert found.quality["reasoning"] == "Bra åäö"
