"""How much a word says: rare words weigh more, and some are names wherever they stand."""

from functools import cache
from typing import NamedTuple

from langchain_groundedness.exceptions import ModelFileError
from langchain_groundedness.verifiers._model_files import damaged, model_folder, read_model_json

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

    Raises:
        ModelFileError: Its file is missing or damaged.
    """
    table = read_model_json(model_folder(), "words.json")
    try:
        return Rarity(table["idf"], frozenset(table["names"]), table["rarest"])
    except KeyError as exc:
        raise ModelFileError(damaged("words.json")) from exc
