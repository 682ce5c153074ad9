"""The cross-checked judge of docs/security.md, behind a server that goes wrong."""

from pathlib import Path
from typing import Any

import pytest
from matrix import Models

from langchain_groundedness import GroundednessRunnable, LLMVerifier
from langchain_groundedness.testing import FAULTS, FaultyServer, HonestJudge, KnownClaim

ROOT = Path(__file__).parents[2]
CLAIM = "Teresa is a baker."
DOCUMENT = "Teresa is the sister of a baker."
"""The embedded verifier alone takes the one for supported by the other."""


def of_the_page(model: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Make the checker that the page shows, with another model."""
    text = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    code = next(part for part in text.split("```python\n")[1:] if "CascadeVerifier" in part)
    names: dict[str, Any] = {}
    monkeypatch.setattr("langchain_openai.ChatOpenAI", lambda **_: model)
    exec(code.split("```")[0], names)  # noqa: S102  (the page is ours)
    return names["checker"]


@pytest.mark.enable_socket
@pytest.mark.parametrize("fault", [name for name, fault in FAULTS.items() if not fault.slow])
def test_a_judge_that_fails_does_not_leave_the_other_alone(
    fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {CLAIM: KnownClaim("contradicted", DOCUMENT, "the sister of a baker")}
    with FaultyServer(HonestJudge(known), fault=fault) as server:
        checker = of_the_page(Models(server).fresh(fault), monkeypatch)
        result = checker.invoke({"answer": CLAIM, "documents": [DOCUMENT]})
    [found] = result.claims
    assert found.verdict in {"unchecked", "contradicted"}
    assert not result.is_trusted


@pytest.mark.enable_socket
def test_verdicts_on_swapped_claims_are_seen_by_the_second_verifier(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    true, false = "The bridge has two lanes.", "The bridge has six lanes."
    swapped = {true: KnownClaim("contradicted", true, "two"), false: KnownClaim("supported", true)}
    with FaultyServer(HonestJudge(swapped)) as server:
        model = Models(server).fresh(None)
        given = {"answer": f"{true} {false}", "documents": [true]}
        alone = GroundednessRunnable(verifier=LLMVerifier(model=model)).invoke(given)
        checked = of_the_page(model, monkeypatch).invoke(given)
    assert alone.claims[1].verdict == "supported"
    assert checked.claims[1].verdict in {"contradicted", "unverifiable"}
    assert not checked.is_trusted
