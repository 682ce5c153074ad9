"""Reads files of labelled claims or answers: one JSON object per line."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated, NamedTuple, Self

from langchain_core.documents import Document
from pydantic import (
    BaseModel,
    BeforeValidator,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from langchain_groundedness._runtime.files import lines_up_to, refusing
from langchain_groundedness.calibration.values import CalibrationSample, ScoredClaim, Unit, group_of
from langchain_groundedness.exceptions import ConfigurationError
from langchain_groundedness.runnable import GroundednessRunnable
from langchain_groundedness.types import Claim, ClaimVerdict, VerdictLabel, VerificationTask

__all__ = ["LabelledRow", "read_label", "read_labelled", "samples_of"]

_RIGHT = frozenset({"supported", "right", "true", "approve", "1"})
_WRONG = frozenset(
    {"unsupported", "contradicted", "unverifiable", "wrong", "false", "edit", "reject", "0"}
)
_ROWS_PER_BATCH = 64
_UNNAMED_VERIFIER = "labelled"
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
    """The verifier's verdict, if the file has it."""
    retrieval_score: float | None = None
    group: str = ""


def read_labelled(path: str | Path) -> Iterator[LabelledRow]:
    r"""Read labelled claims and answers."""
    try:
        with refusing(path), Path(path).open("rb") as file:
            for number, line in enumerate(lines_up_to(file, LONGEST_LINE, Path(path)), 1):
                if text := line.decode("utf-8-sig" if number == 1 else "utf-8").strip():
                    yield _row(text, f"{path}, line {number}")
    except UnicodeDecodeError:
        msg = f"{path}: not UTF-8 text; convert it first"
        raise ConfigurationError(msg) from None


def samples_of(
    rows: Iterable[LabelledRow], checker: GroundednessRunnable
) -> Iterator[CalibrationSample]:
    """Check the labelled rows that hold no verdict of a verifier."""
    remaining = iter(rows)
    while some := list(islice(remaining, _ROWS_PER_BATCH)):
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
        read = _LabelledLine.model_validate_json(line)
    except ValidationError as exc:
        # Neither input nor context is repeated: they quote the text.
        faults = exc.errors(include_url=False, include_input=False, include_context=False)
        problems = (": ".join((*map(str, fault["loc"]), fault["msg"])) for fault in faults[:3])
        msg = f"{where}: {'; '.join(problems).replace('Value error, ', '')}"
        raise ConfigurationError(msg.replace("label: label:", "label:")) from None
    unit: Unit = "claim" if read.claim is not None else "answer"
    group = group_of(read.documents) if read.documents else ""
    group = group if read.group is None else f"group {read.group}"
    given = read.claims if unit == "answer" and read.claims is not None else (read,)
    return LabelledRow(
        unit=unit,
        text=read.claim or read.answer or "",
        documents=read.documents,
        is_right=read.label,
        question=read.question,
        given=tuple(scored for each in given if (scored := each.scored()) is not None),
        retrieval_score=read.retrieval_score,
        group=group,
    )


def read_label(label: object) -> bool:
    """Read a person's label of a claim or an answer."""
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


def _texts(given: object) -> object:
    """Read a list, or one text or document; only blank ones count as none."""
    listed = [given] if isinstance(given, str | dict) else given or ()
    if not isinstance(listed, list | tuple):
        return listed
    texts = [each.get("page_content") if isinstance(each, dict) else each for each in listed]
    return texts if any(not isinstance(text, str) or text.strip() for text in texts) else ()


_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
_Number = Annotated[float, Field(strict=True, ge=-1.0, le=1.0, allow_inf_nan=False)]


class _GivenVerdict(BaseModel):
    """A verifier's verdict on a claim."""

    support_probability: Annotated[_Number, Field(ge=0.0)] | None = None
    verdict: VerdictLabel | None = None
    verifier: str | None = None

    def scored(self) -> ScoredClaim | None:
        if self.verdict is None and self.support_probability is None:
            return None
        is_likely = (self.support_probability or 0.0) >= _LIKELY
        verdict = self.verdict or ("supported" if is_likely else "unverifiable")
        return ScoredClaim(verdict, self.support_probability, self.verifier or _UNNAMED_VERIFIER)


class _GivenClaimVerdict(_GivenVerdict):
    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.scored() is None:
            msg = "each needs a verdict or a support_probability"
            raise ValueError(msg)
        return self


class _LabelledLine(_GivenVerdict):
    """One line of the file."""

    claim: _Text | None = None
    answer: _Text | None = None
    documents: Annotated[tuple[str, ...], BeforeValidator(_texts)] = ()
    label: Annotated[bool, BeforeValidator(read_label)]
    question: _Text | None = None
    claims: tuple[_GivenClaimVerdict, ...] | None = None
    retrieval_score: _Number | None = None
    group: str | int | float | None = None

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if (self.claim is None) == (self.answer is None):
            msg = "give either claim or answer"
            raise ValueError(msg)
        if not self.documents and self.scored() is None and not (self.answer and self.claims):
            msg = "documents: needed, a list of texts, at least one of them not blank"
            raise ValueError(msg)
        return self
