"""Evaluators for tests with Ray; workers import them."""

import os
import signal
import time
from pathlib import Path
from threading import Lock

from pydantic import Field, SecretStr
from typing_extensions import override

from langchain_groundedness.evals import EvaluationRow, Evaluator, Flow, RowScore

__all__ = ["DeadlyEvaluator", "KeyEvaluator", "StayingEvaluator", "UnpicklableEvaluator"]


class StayingEvaluator(Evaluator):
    """Says in which process it is when it comes to the row `stay`, and stays, the first time."""

    key: str = Field(default="staying", min_length=1)
    folder: str

    @override
    def _score(self, row: EvaluationRow) -> Flow[RowScore]:
        yield from ()
        told = Path(self.folder, "process")
        if row.id == "stay" and not told.exists():
            draft = told.with_suffix(".part")
            draft.write_text(str(os.getpid()))
            draft.rename(told)
            while True:
                time.sleep(1)
        return self._scored(1.0)


class DeadlyEvaluator(Evaluator):
    """Kills its process whenever it comes to the row `deadly`."""

    key: str = Field(default="deadly", min_length=1)

    @override
    def _score(self, row: EvaluationRow) -> Flow[RowScore]:
        yield from ()
        if row.id == "deadly":
            os.kill(os.getpid(), signal.SIGKILL)
        return self._scored(1.0)


class KeyEvaluator(Evaluator):
    """Holds a key."""

    key: str = Field(default="key", min_length=1)
    token: SecretStr

    @override
    def _score(self, row: EvaluationRow) -> Flow[RowScore]:
        yield from ()
        return self._scored(1.0)


class UnpicklableEvaluator(Evaluator):
    """Gives what cannot leave its process."""

    key: str = Field(default="unpicklable", min_length=1)

    @override
    def _score(self, row: EvaluationRow) -> Flow[RowScore]:
        yield from ()
        return self._scored(1.0, details={"lock": Lock()})
