"""Files with claims or answers that somebody has labelled: one JSON object per line."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, cast, get_args

from langchain_core.documents import Document

from langchain_groundedness._runtime.files import lines_up_to
from langchain_groundedness.calibration.values import CalibrationSample, ScoredClaim, Unit, group_of
from langchain_groundedness.exceptions import ConfigurationError
from langchain_groundedness.runnable import GroundednessRunnable
from langchain_groundedness.types import Claim, ClaimVerdict, VerdictLabel, VerificationTask

__all__ = ["LabelledRow", "read_label", "read_labelled", "samples_of"]

_RIGHT = frozenset({"supported", "right", "true", "approve", "1"})
_WRONG = frozenset(
    {"unsupported", "contradicted", "unverifiable", "wrong", "false", "edit", "reject", "0"}
)
_AT_ONCE = 64
_GIVEN = "labelled"
"""Name of a verifier that the file does not name."""
_LIKELY = 0.5

LONGEST_LINE = 64 << 20
"""Bytes."""


class LabelledRow(NamedTuple):
    """One line of the file."""

    unit: Unit
    text: str
    """The claim or the answer."""
    documents: tuple[str, ...]
    is_right: bool
    question: str | None = None
    given: tuple[ScoredClaim, ...] = ()
    """What a verifier has said already, if that stands in the file."""
    retrieval_score: float | None = None
    group: str = ""


def read_labelled(path: str | Path) -> Iterator[LabelledRow]:
    r"""Read labelled claims and answers."""
    try:
        with Path(path).open("rb") as file:
            for number, line in enumerate(lines_up_to(file, LONGEST_LINE, Path(path)), 1):
                if text := line.decode("utf-8-sig" if number == 1 else "utf-8").strip():
                    yield _row(text, f"{path}, line {number}")
    except OSError as exc:
        msg = f"{path}: {exc.strerror or type(exc).__name__}"
        raise ConfigurationError(msg) from exc
    except UnicodeDecodeError:
        msg = f"{path}: not UTF-8 text; convert it first"
        raise ConfigurationError(msg) from None


def samples_of(
    rows: Iterable[LabelledRow], checker: GroundednessRunnable
) -> Iterator[CalibrationSample]:
    """Check what was labelled, unless a verifier's word stands beside it."""
    remaining = iter(rows)
    while some := list(islice(remaining, _AT_ONCE)):
        found: dict[int, tuple[ScoredClaim, ...]] = {}
        for unit in ("claim", "answer"):
            places = [n for n, r in enumerate(some) if r.unit == unit and not r.given]
            asked = [some[place] for place in places]
            verdicts = _claims(asked, checker) if unit == "claim" else _answers(asked, checker)
            for place, given in zip(places, verdicts, strict=True):
                found[place] = tuple(map(ScoredClaim.of, given))
        for place, row in enumerate(some):
            yield CalibrationSample(
                unit=row.unit,
                is_right=row.is_right,
                claims=row.given or found[place],
                retrieval_score=row.retrieval_score,
                group=row.group,
            )


def _claims(
    rows: Sequence[LabelledRow], checker: GroundednessRunnable
) -> Sequence[Sequence[ClaimVerdict]]:
    tasks = [
        VerificationTask(
            claims=(Claim(id="c1", text=row.text),),
            documents=tuple(map(Document, row.documents)),
            question=row.question,
        )
        for row in rows
    ]
    return checker.check.verifier.batch(tasks) if tasks else []


def _answers(
    rows: Sequence[LabelledRow], checker: GroundednessRunnable
) -> Sequence[Sequence[ClaimVerdict]]:
    inputs = [
        {"answer": row.text, "documents": list(row.documents), "question": row.question}
        for row in rows
    ]
    return [result.claims for result in checker.batch(inputs)] if inputs else []


def _row(line: str, where: str) -> LabelledRow:
    try:
        data = json.loads(line)
    except ValueError as exc:
        msg = f"{where}: no JSON ({getattr(exc, 'msg', type(exc).__name__)})"
        raise ConfigurationError(msg) from None  # the cause quotes the text
    if not isinstance(data, dict):
        msg = f"{where}: a JSON object is needed, got {type(data).__name__}"
        raise ConfigurationError(msg)
    try:
        return _read(data)
    except ValueError as exc:
        msg = f"{where}: {exc}"
        raise ConfigurationError(msg) from None


def _read(data: Mapping[str, Any]) -> LabelledRow:
    units = [unit for unit in ("claim", "answer") if data.get(unit) is not None]
    if len(units) != 1:
        msg = "give either claim or answer"
        raise ValueError(msg)
    documents = _documents(data.get("documents"))
    given = tuple(_given(data, units[0]))
    if not documents and not given:
        msg = "documents: needed, a list of texts, at least one of them not blank"
        raise ValueError(msg)
    group = data.get("group")
    return LabelledRow(
        unit=cast("Unit", units[0]),
        text=_text(data, units[0]),
        documents=documents,
        is_right=read_label(data.get("label")),
        question=None if data.get("question") is None else _text(data, "question"),
        given=given,
        retrieval_score=_number(data, "retrieval_score", -1.0),
        group=(group_of(documents) if documents else "") if group is None else f"group {group}",
    )


def _given(data: Mapping[str, Any], unit: str) -> Iterator[ScoredClaim]:
    listed = data.get("claims") if unit == "answer" else None
    if listed is not None and not (
        isinstance(listed, list) and all(isinstance(each, dict) for each in listed)
    ):
        msg = "claims: a list of objects is needed"
        raise ValueError(msg)
    for each in [data] if listed is None else listed:
        probability, verdict = _number(each, "support_probability", 0.0), each.get("verdict")
        if verdict not in (None, *get_args(VerdictLabel)):
            msg = f"verdict: not known; accepted: {', '.join(get_args(VerdictLabel))}"
            raise ValueError(msg)
        if verdict is None and probability is None:
            if listed is None:
                return
            msg = "claims: each needs a verdict or a support_probability"
            raise ValueError(msg)
        likely: VerdictLabel = "supported" if (probability or 0.0) >= _LIKELY else "unverifiable"
        yield ScoredClaim(verdict or likely, probability, str(each.get("verifier") or _GIVEN))


def _text(data: Mapping[str, Any], key: str) -> str:
    found = data[key]
    if not isinstance(found, str) or not found.strip():
        msg = f"{key}: a text is needed that is not blank"
        raise ValueError(msg)
    return found


def read_label(label: object) -> bool:
    """Read what a person has said about a claim or an answer."""
    if isinstance(label, float) and label in (0.0, 1.0):
        label = int(label)
    said = str(label).strip().casefold() if isinstance(label, bool | int | str) else ""
    if said in _RIGHT:
        return True
    if said in _WRONG:
        return False
    accepted = ", ".join(sorted((*_RIGHT, *_WRONG)))
    msg = f"label: {'needed' if label is None else 'not known'}; accepted: {accepted}"
    raise ValueError(msg)


def _documents(given: object) -> tuple[str, ...]:
    listed = [given] if isinstance(given, str | dict) else given
    if listed is None:
        return ()
    if not isinstance(listed, list):
        msg = f"documents: a list of texts is needed, got {type(given).__name__}"
        raise ValueError(msg)  # noqa: TRY004  (reported as the others)
    texts = [each.get("page_content") if isinstance(each, dict) else each for each in listed]
    if not all(isinstance(text, str) for text in texts):
        msg = "documents: texts are needed, or objects with page_content"
        raise ValueError(msg)
    found = tuple(map(str, texts))
    return found if any(text.strip() for text in found) else ()


def _number(data: Mapping[str, Any], key: str, least: float) -> float | None:
    found = data.get(key)
    if found is None:
        return None
    if isinstance(found, bool) or not isinstance(found, int | float) or not math.isfinite(found):
        msg = f"{key}: a number is needed, got {type(found).__name__}"
        raise ValueError(msg)
    if not least <= found <= 1:
        msg = f"{key}: a number from {least:g} to 1 is needed, got {found:g}"
        raise ValueError(msg)
    return float(found)
