"""How much a word says: rare words weigh more, and some are names wherever they stand."""

import json
from functools import cache
from importlib.resources import files
from typing import NamedTuple

__all__ = ["Rarity", "rarity"]


class Rarity(NamedTuple):
    """Inverse paragraph frequencies of stems, counted over encyclopedia articles."""

    idf: dict[str, float]
    names: frozenset[str]
    rarest: float

    def weight(self, stem: str) -> float:
        """Weigh a stem.

        Args:
            stem: A stem, as `words.stem` gives it.

        Returns:
            Its inverse paragraph frequency, the highest there is for a word never counted.
        """
        return self.idf.get(stem, self.rarest)


@cache
def rarity() -> Rarity:
    """Load the table that is shipped beside the model, once.

    Returns:
        The table.
    """
    source = files("langchain_groundedness") / "model" / "words.json"
    table = json.loads(source.read_text(encoding="utf-8"))
    return Rarity(table["idf"], frozenset(table["names"]), table["rarest"])
