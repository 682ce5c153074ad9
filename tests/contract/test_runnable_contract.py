"""Every runnable of the package keeps the contract of runnables."""

import re
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda

from langchain_groundedness import (
    GroundednessGuard,
    GroundednessRunnable,
    SentenceClaimExtractor,
    VerificationError,
    load_arguments,
)
from langchain_groundedness.testing import (
    Probe,
    RunnableContract,
    ScriptedChatModel,
    ScriptedVerifier,
)
from langchain_groundedness.types import VerificationTask

DOCUMENTS = ["Rome is the capital of Italy. It has 2.8 million inhabitants."]


def verdicts(claim: Any) -> Any:
    return "supported" if "capital" in claim.text else "contradicted"


def _judged(messages: list[BaseMessage]) -> str:
    lines = re.findall(r"^(S\d+): (.*)$", str(messages[-1].text), re.MULTILINE)
    return "\n".join(
        f"{number}: [1] supported" if "capital" in text else f"{number}: [2] contradicted | 2.8"
        for number, text in lines
    )


def _input(answer: str) -> dict[str, Any]:
    return {"question": "What is Rome?", "answer": answer, "documents": DOCUMENTS}


def _probing(probe: Probe) -> Runnable[VerificationTask, Any]:
    judge = ScriptedVerifier(verdicts)

    def verify(task: VerificationTask, config: RunnableConfig) -> Any:
        probe(config)
        return judge.invoke(task, config)

    return RunnableLambda(verify)


class TestGroundednessRunnable(RunnableContract):
    def runnable(self) -> Runnable[Any, Any]:
        return GroundednessRunnable(on_contradicted="correct")

    def inputs(self) -> Sequence[Any]:
        return [
            _input("Rome is the capital of Italy. It has 3.9 million inhabitants."),
            _input("Rome is the capital of Italy."),
            _input("I don't know."),
        ]

    def probed(self, probe: Probe) -> Runnable[Any, Any]:
        return GroundednessRunnable(verifier=_probing(probe))

    def bad_input(self) -> Any:
        return {"no": "answer"}

    def load_arguments(self) -> dict[str, Any]:
        return load_arguments()

    def failure(self) -> type[Exception] | None:
        return None


class TestRaisingGroundednessRunnable(TestGroundednessRunnable):
    def probed(self, probe: Probe) -> Runnable[Any, Any]:
        return GroundednessRunnable(verifier=_probing(probe), raise_on_failure=True)

    def failure(self) -> type[Exception]:
        return VerificationError


class TestSinglePass(TestGroundednessRunnable):
    def runnable(self) -> Runnable[Any, Any]:
        return GroundednessRunnable(model=ScriptedChatModel(replies=_judged), single_pass=True)

    def probed(self, probe: Probe) -> Runnable[Any, Any]:
        model = ScriptedChatModel(replies=_judged)

        def ask(given: Any, config: RunnableConfig) -> Any:
            probe(config)
            return model.invoke(given, config)

        return GroundednessRunnable(model=RunnableLambda(ask), single_pass=True)

    def test_a_saved_runnable_can_be_loaded(self) -> None:
        """A scripted model is none that LangChain can save."""

    def test_a_pickled_runnable_works(self) -> None:
        """A scripted model keeps a lock."""


class TestGroundednessGuard(RunnableContract):
    def runnable(self) -> Runnable[Any, Any]:
        return GroundednessGuard(checker=GroundednessRunnable(on_contradicted="correct"))

    def inputs(self) -> Sequence[Any]:
        return TestGroundednessRunnable().inputs()

    def probed(self, probe: Probe) -> Runnable[Any, Any]:
        return GroundednessGuard(checker=GroundednessRunnable(verifier=_probing(probe)))

    def bad_input(self) -> Any:
        return {"no": "answer"}

    def load_arguments(self) -> dict[str, Any]:
        return load_arguments()

    def failure(self) -> type[Exception] | None:
        return None


class TestSentenceClaimExtractor(RunnableContract):
    def runnable(self) -> Runnable[Any, Any]:
        return SentenceClaimExtractor()

    def inputs(self) -> Sequence[Any]:
        return ["Rome is big. It rains.", "Nothing much happens in Rome."]

    def load_arguments(self) -> dict[str, Any]:
        return load_arguments()
