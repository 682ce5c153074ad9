"""A cache of scores in a folder, shared by any number of runs."""

import hashlib
import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from langchain_groundedness._runtime.files import private_folder, replace_file, unusable
from langchain_groundedness.evals.run_files import as_json
from langchain_groundedness.evals.values import EvaluationRow, RowScore
from langchain_groundedness.types import Usage

__all__ = ["ResultCache"]

_FORMAT = 1
_LOGGER = logging.getLogger(__name__)


class ResultCache:
    """Keeps the score of a row for an evaluator, as one JSON file in a folder.

    The key is the question, answer, documents and reference of a row, and the evaluator's
    `fingerprint`. Only scores are kept, no failures. Several
    processes may use one folder; an entry that is damaged counts as missing.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> row, options = EvaluationRow(id="1", answer="Rome."), {"class": "Mine"}
        >>> with TemporaryDirectory() as folder:
        ...     cache = ResultCache(folder)
        ...     cache.put(row, options, RowScore(key="mine", score=1.0, status="scored"))
        ...     cache.get(row.model_copy(update={"id": "2"}), options).score
        1.0
    """

    def __init__(self, folder: str | Path) -> None:
        """Name the folder."""
        self._folder = Path(folder)
        try:
            private_folder(self._folder)
        except OSError as exc:
            if not self._folder.is_dir():
                raise unusable(folder, exc) from exc

    def get(self, row: EvaluationRow, fingerprint: Mapping[str, Any]) -> RowScore | None:
        """Look for a score.

        Args:
            row: The row.
            fingerprint: The evaluator's `fingerprint()`.

        Returns:
            The score, without usage because a cached score costs nothing; `None` if there is none.
        """
        path = self._path(row, fingerprint)
        try:
            score = RowScore.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValidationError) as exc:
            _LOGGER.warning("cache: %s cannot be read (%s)", path, type(exc).__name__)
            return None
        return score.model_copy(update={"usage": Usage()}) if score.status == "scored" else None

    def put(self, row: EvaluationRow, fingerprint: Mapping[str, Any], score: RowScore) -> None:
        """Store a score; failed and skipped ones are ignored.

        Args:
            row: The row.
            fingerprint: The evaluator's `fingerprint()`.
            score: Its score.
        """
        if score.status != "scored":
            return
        path = self._path(row, fingerprint)
        text = as_json(score.model_dump())
        try:
            path.parent.mkdir(exist_ok=True)
            replace_file(path, [text.encode("ascii")])
        except OSError as exc:  # a full disk must not end the run
            _LOGGER.warning("cache: %s cannot be written (%s)", path, exc.strerror)

    def _path(self, row: EvaluationRow, fingerprint: Mapping[str, Any]) -> Path:
        parts = row.model_dump(
            mode="json", include={"question", "answer", "documents", "reference"}
        )
        content = json.dumps([_FORMAT, dict(fingerprint), parts], sort_keys=True, default=str)
        name = hashlib.sha256(content.encode("ascii")).hexdigest()
        return self._folder / name[:2] / f"{name[2:]}.json"
