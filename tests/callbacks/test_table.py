"""Both handlers give what a check of the same answer gives, on every chain, run in every way."""

from collections import Counter
from typing import Any

import pytest
from watched_chains import REWRITTEN, SHAPES, answer, document, question, run

from langchain_groundedness import (
    AsyncGroundednessCallbackHandler,
    GroundednessCallbackHandler,
    GroundednessRunnable,
)

CHECKER = GroundednessRunnable()
COUNTRIES = ("Freedonia", "Sylvania", "Ruritania")

pytestmark = pytest.mark.filterwarnings(
    "ignore:The class `(RetrievalQA|ConversationalRetrievalChain|LLMChain|StuffDocumentsChain)`"
    ":langchain_core._api.deprecation.LangChainDeprecationWarning"
)


@pytest.mark.parametrize(
    "kind", [GroundednessCallbackHandler, AsyncGroundednessCallbackHandler], ids=["sync", "async"]
)
@pytest.mark.parametrize("mode", ["invoke", "ainvoke", "batch", "abatch", "stream", "astream"])
@pytest.mark.parametrize("name", SHAPES)
def test_a_handler_finds_what_a_check_of_the_same_answer_finds(
    name: str, mode: str, kind: Any
) -> None:
    shape, handler = SHAPES[name], kind(CHECKER)
    inputs = [shape.give(question(country)) for country in COUNTRIES]
    run(mode, shape.build(), inputs, {"callbacks": [handler]})
    handler.close()

    results = {result.question: result for result in handler.results.values()}
    assert len(handler.results) == len(COUNTRIES)
    for country in COUNTRIES:
        expected = CHECKER.invoke(
            {
                "question": question(country),
                "answer": answer(country),
                "documents": [document(country)],
            }
        )
        assert [v.verdict for v in expected.claims] == ["supported", "contradicted"]
        found = results[question(country)]
        assert found.evidence_source in {"returned", "prompt", "retrieved"}
        assert found == expected.model_copy(update={"evidence_source": found.evidence_source})

    events = list(handler.events())
    for run_id, result in handler.results.items():
        mine = [event for event in events if event.run_id == run_id]
        assert mine[-1].result == result
        left = Counter(event.verdict.model_dump_json() for event in mine if event.verdict)
        left -= Counter({v.model_dump_json(): 1 for v in result.claims})
        taken_back = Counter(
            event.verdict.model_dump_json()
            for event in mine
            if event.kind == "retracted" and event.verdict
        )
        assert left == taken_back + taken_back
    assert not [e for e in events if e.verdict and e.verdict.claim.text in REWRITTEN]
    assert handler.open_runs == 0
