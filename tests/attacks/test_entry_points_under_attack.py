"""The same promises at every door: guard, agent, evaluator."""

import pytest
from middleware.agent_scripts import agent_of, call, search_tool

from attacks.corpus import CORPUS, FALSE, Attack, scene
from attacks.judges import gullible
from langchain_groundedness import (
    GroundednessGuard,
    GroundednessMiddleware,
    GroundednessRunnable,
)
from langchain_groundedness.evals import FaithfulnessEvaluator
from langchain_groundedness.evidence import shares_content_word

FIRST = {attack.family: attack for attack in CORPUS if attack.place == "document"}
SILENT = [
    attack
    for attack in FIRST.values()
    if not any(shares_content_word(FALSE, d.page_content) for d in scene(attack).documents)
]
each_family = pytest.mark.parametrize("attack", SILENT, ids=lambda attack: attack.id)


def checker(attack: Attack) -> GroundednessRunnable:
    return GroundednessRunnable(model=gullible(attack), on_unverifiable="strip")


def test_most_families_are_tried() -> None:
    assert len(SILENT) >= 10


@each_family
def test_a_guard_lets_no_claim_out_of_which_no_document_speaks(attack: Attack) -> None:
    staged = scene(attack)
    given = {"answer": staged.answer, "documents": list(staged.documents)}
    assert FALSE not in GroundednessGuard(checker(attack)).invoke(given)


@each_family
def test_an_agent_that_is_fooled_with_its_judge_is_blocked(attack: Attack) -> None:
    middleware = GroundednessMiddleware(
        GroundednessRunnable(model=gullible(attack)), on_ungrounded="block"
    )
    tools = [search_tool(*scene(attack).documents)]
    agent = agent_of(call(), FALSE, middleware=middleware, tools=tools)
    state = agent.invoke({"messages": [("user", "What is known?")]})
    assert FALSE not in state["messages"][-1].text


@each_family
def test_an_evaluator_gives_no_point_for_it(attack: Attack) -> None:
    staged = scene(attack)
    result = FaithfulnessEvaluator(model=gullible(attack), progress_bar=False).run(
        questions=[staged.question],
        contexts=[list(staged.documents)],
        predicted_answers=[staged.answer],
    )
    assert result["individual_scores"] in ([0.0], [None])
