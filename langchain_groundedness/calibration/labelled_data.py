"""Reads files of labelled claims or answers: one JSON object per line."""

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Self

from langchain_core.documents import Document
from pydantic import (
    BaseModel,
    BeforeValidator,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from langchain_groundedness._runtime.files import lines_up_to, raising_configuration_error
from langchain_groundedness.calibration.values import CalibrationSample, ScoredClaim, Unit, group_of
from langchain_groundedness.exceptions import ConfigurationError
from langchain_groundedness.runnable import GroundednessRunnable
from langchain_groundedness.types import Claim, VerdictLabel, VerificationTask

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


def read_labelled(path: str | Path) -> Iterator["LabelledRow"]:
    """Read labelled claims and answers."""
    try:
        with raising_configuration_error(path), Path(path).open("rb") as file:
            for number, line in enumerate(lines_up_to(file, LONGEST_LINE, Path(path)), 1):
                if text := line.decode("utf-8-sig" if number == 1 else "utf-8").strip():
                    yield _row(text, f"{path}, line {number}")
    except UnicodeDecodeError:
        msg = f"{path}: not UTF-8 text; convert it first"
        raise ConfigurationError(msg) from None


def samples_of(
    rows: Iterable["LabelledRow"], checker: GroundednessRunnable
) -> Iterator[CalibrationSample]:
    """Check the labelled rows that hold no verdict of a verifier."""
    remaining = iter(rows)
    while some := list(islice(remaining, _ROWS_PER_BATCH)):
        asked = [row for row in some if not row.given]
        claims = [row.task() for row in asked if row.unit == "claim"]
        answers = [row.answer_input() for row in asked if row.unit == "answer"]
        found = {
            "claim": iter(checker.check.verifier.batch(claims) if claims else []),
            "answer": (result.claims for result in checker.batch(answers)),
        }
        for row in some:
            yield row.sample(row.given or tuple(map(ScoredClaim.of, next(found[row.unit]))))


def _row(line: str, where: str) -> "LabelledRow":
    try:
        return LabelledRow.model_validate_json(line)
    except ValidationError as exc:
        # Neither input nor context is repeated: they quote the text.
        faults = exc.errors(include_url=False, include_input=False, include_context=False)
        problems = (": ".join((*map(str, fault["loc"]), fault["msg"])) for fault in faults[:3])
        msg = f"{where}: {'; '.join(problems).replace('Value error, ', '')}"
        raise ConfigurationError(msg.replace("label: label:", "label:")) from None


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


class LabelledRow(_GivenVerdict):
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
            msg = "documents: required, a list of texts, at least one of them not blank"
            raise ValueError(msg)
        return self

    @property
    def unit(self) -> Unit:
        """What was labelled."""
        return "answer" if self.claim is None else "claim"

    @property
    def given(self) -> tuple[ScoredClaim, ...]:
        """The verifier's verdicts, if the file has them."""
        verdicts = (self,) if self.claim is not None or self.claims is None else self.claims
        return tuple(scored for each in verdicts if (scored := each.scored()) is not None)

    def task(self) -> VerificationTask:
        """Ask for the verdict on the claim."""
        return VerificationTask(
            claims=(Claim(id="c1", text=self.claim or ""),),
            documents=tuple(map(Document, self.documents)),
            question=self.question,
        )

    def answer_input(self) -> dict[str, Any]:
        """Ask for the verdicts on the claims of the answer."""
        return self.model_dump(include={"answer", "documents", "question"})

    def sample(self, claims: tuple[ScoredClaim, ...]) -> CalibrationSample:
        """Make the sample."""
        group = group_of(self.documents) if self.documents else ""
        return CalibrationSample(
            unit=self.unit,
            is_right=self.label,
            claims=claims,
            retrieval_score=self.retrieval_score,
            group=group if self.group is None else f"group {self.group}",
        )
