"""An evaluator for tests: cheap, and it remembers which rows it was asked about."""

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from pydantic import Field, PrivateAttr
from typing_extensions import override

from langchain_groundedness.evals import EvaluationRow, Evaluator, Flow, RowScore

__all__ = ["CountingEvaluator"]


class CountingEvaluator(Evaluator):
    """Scores the share of the letter `a`; fails where the answer says so."""

    needs = ("answer",)

    key: str = Field(default="counting", min_length=1)
    strictness: int = 1
    before_each: ClassVar[Callable[[], None]] = lambda: None
    asked_file: str = ""
    """Where to write the ids, for other processes to read."""

    _asked: list[str] = PrivateAttr(default_factory=list)

    @property
    def asked(self) -> list[str]:
        """Ids of the rows, in the order in which they were begun."""
        return self._asked

    @override
    def _score(self, row: EvaluationRow) -> Flow[RowScore]:
        yield from ()
        type(self).before_each()
        self._asked.append(row.id)
        if self.asked_file:
            with Path(self.asked_file).open("a", encoding="utf-8") as file:
                file.write(f"{row.id}\n")
        answer = row.answer or ""
        if answer.startswith("fail"):
            return self._failed("the answer says so")
        return self._scored(answer.count("a") / max(1, len(answer)))
