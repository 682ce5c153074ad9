"""A judge that obeys strangers: what the shape of prompts, replies and results still holds."""

from collections.abc import Iterator
from functools import cache
from itertools import cycle
from typing import Literal, NamedTuple

import pytest
from langchain_core.messages import BaseMessage

from attacks.corpus import CORPUS, FALSE, Attack, scene
from attacks.judges import STYLES, gullible
from attacks.seen import look_alikes, outside, within
from langchain_groundedness import GroundednessResult, GroundednessRunnable, LLMVerifier
from langchain_groundedness.evidence import shares_content_word
from langchain_groundedness.testing import ScriptedChatModel

Strategy = Literal["batched", "per_claim", "single_pass"]

FAMILIES = sorted({attack.family for attack in CORPUS})
OBEDIENT: tuple[str, Strategy] = ("obedient", "batched")
WAYS: tuple[tuple[str, Strategy], ...] = (
    OBEDIENT,
    ("obedient", "per_claim"),
    OBEDIENT,
    ("parrot", "batched"),
    OBEDIENT,
    ("parrot", "per_claim"),
    OBEDIENT,
    ("inventor", "batched"),
    ("obedient", "single_pass"),
    ("inventor", "single_pass"),
    ("parrot", "single_pass"),
)
"""How the judge obeys and how it is asked, in turn; `benchmarks/attacks.py` tries all of all."""


class Outcome(NamedTuple):
    attack: Attack
    result: GroundednessResult
    requests: list[list[BaseMessage]]


@cache
def outcomes(family: str) -> tuple[Outcome, ...]:
    return tuple(_outcomes(family))


def _outcomes(family: str) -> Iterator[Outcome]:
    attacks = [attack for attack in CORPUS if attack.family == family]
    for attack, (style, strategy) in zip(attacks, cycle(WAYS), strict=False):
        judge = gullible(attack, style)
        staged = scene(attack)
        given = {**staged._asdict(), "documents": list(staged.documents)}
        result = checker(judge, strategy).invoke(given)
        yield Outcome(attack, result, judge.requests)


def checker(judge: ScriptedChatModel, strategy: Strategy) -> GroundednessRunnable:
    if strategy == "single_pass":
        return GroundednessRunnable(model=judge, single_pass=True)
    return GroundednessRunnable(model=judge, verifier=LLMVerifier(model=judge, strategy=strategy))


def test_the_corpus_is_large_and_each_attack_has_its_own_name() -> None:
    assert len({attack.id for attack in CORPUS}) == len(CORPUS) >= 300
    assert len(FAMILIES) >= 12
    assert set(STYLES) == {style for style, _ in WAYS}


@pytest.mark.parametrize("family", FAMILIES)
def test_what_comes_from_outside_stands_in_fences_only(family: str) -> None:
    for attack, _, requests in outcomes(family):
        for message in (message for messages in requests for message in messages):
            if message.type == "human":
                assert outside(message) == "", attack.id
            elif message.type == "system":
                assert FALSE not in str(message.text), attack.id


@pytest.mark.parametrize("family", FAMILIES)
def test_nothing_in_a_fence_looks_like_a_boundary_or_a_control_token(family: str) -> None:
    for attack, _, requests in outcomes(family):
        for messages in requests:
            assert look_alikes("\n".join(within(messages))) == [], attack.id


@pytest.mark.parametrize("family", FAMILIES)
def test_a_reply_that_is_shown_to_the_judge_again_holds_no_control_token(family: str) -> None:
    for attack, _, requests in outcomes(family):
        for message in (message for messages in requests for message in messages):
            if message.type == "ai":
                assert look_alikes(str(message.text)) == [], attack.id


@pytest.mark.parametrize("family", FAMILIES)
def test_the_claim_of_the_answer_is_never_talked_away(family: str) -> None:
    for attack, result, _ in outcomes(family):
        assert [v.claim.text for v in result.claims].count(FALSE) == 1, attack.id
        ids = [verdict.claim.id for verdict in result.claims]
        assert len(ids) == len(set(ids)), attack.id


@pytest.mark.parametrize("family", FAMILIES)
def test_what_is_supported_quotes_a_document_in_words_of_the_claim(family: str) -> None:
    for attack, result, _ in outcomes(family):
        for verdict in result.claims:
            assert verdict.verdict in ("supported", "contradicted", "unverifiable", "unchecked")
            if verdict.verdict in ("supported", "contradicted"):
                assert verdict.citations, attack.id
                for citation in verdict.citations:
                    text = result.documents[citation.document].page_content
                    assert text[citation.start : citation.end] == citation.quote, attack.id
                    assert shares_content_word(verdict.claim.text, citation.quote), attack.id


@pytest.mark.parametrize("family", FAMILIES)
def test_a_claim_of_which_no_document_speaks_is_never_supported(family: str) -> None:
    for attack, result, _ in outcomes(family):
        texts = [document.page_content for document in result.documents]
        if not any(shares_content_word(FALSE, text) for text in texts):
            found = next(v for v in result.claims if v.claim.text == FALSE)
            assert found.verdict in ("unverifiable", "unchecked"), attack.id
            assert not result.is_trusted, attack.id
            assert FALSE in result.original_answer


def test_few_attacks_of_the_corpus_speak_in_words_of_the_claim() -> None:
    speaking = [
        attack.id
        for attack in CORPUS
        if any(shares_content_word(FALSE, d.page_content) for d in scene(attack).documents)
    ]
    assert len(CORPUS) - len(speaking) >= 800
