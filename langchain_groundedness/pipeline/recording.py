"""Records decisions in an audit log, with versions, run ids and timings."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from time import perf_counter
from typing import Any, TypeVar
from uuid import UUID

from langchain_core.runnables import RunnableConfig, run_in_executor

from langchain_groundedness._runtime.installed import PACKAGE_VERSION
from langchain_groundedness.audit import AuditLog, AuditRecord, Versions
from langchain_groundedness.exceptions import ConfigurationError
from langchain_groundedness.llm.chat_models import model_name
from langchain_groundedness.types import GroundednessResult
from langchain_groundedness.verification import CachedVerifier
from langchain_groundedness.verification.embedded.model_files import read_model_json

__all__ = [
    "PendingRecord",
    "Recorder",
    "encoder_checksum",
    "log_for",
    "suggested_answer",
    "thread_of",
    "without_audit_log",
]

_T = TypeVar("_T")
_MAX_DEPTH = 6


@dataclass(frozen=True)
class Recorder:
    """Records the decisions of one entry point; does nothing without a log."""

    log: AuditLog | None
    source: str
    """Name of the entry point."""
    checker: object

    def begin(self, run: Any, config: RunnableConfig) -> "PendingRecord":
        """Start the record of a check."""
        if self.log is None:
            return PendingRecord(self)
        return PendingRecord(
            self,
            run_id=run.run_id,
            parent_run_id=run.parent_run_id,
            root_run_id=_root(run),
            thread_id=thread_of(config),
        )

    def confirm(self) -> None:
        """Wait until records are durable, if the log requires it."""
        if self.log is not None:
            self.log.confirm()

    async def aconfirm(self) -> None:
        """Confirm without blocking the event loop."""
        if self.log is not None:
            await self.log.aconfirm()

    def policy_version(self) -> str | None:
        """Return the version of the policy."""
        check = getattr(self.checker, "check", None)
        found = getattr(getattr(check, "policy", None), "version", None)
        return None if found is None else str(found)

    def versions(self) -> Versions:
        """Return the versions of verifier, encoder and model."""
        verifier = getattr(getattr(self.checker, "check", None), "verifier", None)
        parts = list(_parts(verifier, _MAX_DEPTH))
        verifier = verifier.verifier if isinstance(verifier, CachedVerifier) else verifier
        embedded = any(getattr(type(part), "_by_encoder", False) for part in parts)
        models = (model_name(part) for part in (*parts, self.checker))
        return Versions(
            package=PACKAGE_VERSION or None,
            verifier=None if verifier is None else type(verifier).__name__,
            encoder=encoder_checksum() if embedded else None,
            model=next((name for name in models if name), None),
        )


class PendingRecord:
    """The unfinished record of a running check."""

    def __init__(self, recorder: Recorder, **run: UUID | str | None) -> None:
        """Start the timer; `run` holds the run ids of the `AuditRecord`.

        The methods take further fields of the record; `timings` join that of the check.
        """
        self._recorder = recorder
        self._run = run
        self._began = perf_counter()

    def end(self, result: GroundednessResult | None, **fields: Any) -> None:
        """Record the decision, and confirm it before the answer is returned."""
        self.queue(result, **fields)
        self._recorder.confirm()

    async def aend(self, result: GroundednessResult | None, **fields: Any) -> None:
        """Record the decision without blocking the event loop."""
        await self.aqueue(result, **fields)
        await self._recorder.aconfirm()

    def queue(self, result: GroundednessResult | None, **fields: Any) -> None:
        """Queue the record of a decision; the caller confirms several together."""
        if result is not None and self._recorder.log is not None:
            self._recorder.log.record(self._record(result, **fields))

    async def aqueue(self, result: GroundednessResult | None, **fields: Any) -> None:
        """Queue the record of a decision without blocking the event loop."""
        if result is None or self._recorder.log is None:
            return
        if not encoder_checksum.cache_info().currsize:  # reads a file: not on the event loop
            await run_in_executor(None, encoder_checksum)
        await self._recorder.log.arecord(self._record(result, **fields))

    def _record(
        self, result: GroundednessResult, timings: Mapping[str, float] | None = None, **fields: Any
    ) -> AuditRecord:
        check = round(1000 * (perf_counter() - self._began), 3)
        known: dict[str, Any] = {
            "source": self._recorder.source,
            **self._run,
            "policy_version": self._recorder.policy_version(),
            "versions": self._recorder.versions(),
            "timings": {"check": check, **(timings or {})},
        }
        return AuditRecord.from_result(result, **{**known, **fields})


def log_for(checker: object, given: object = None) -> AuditLog | None:
    """Return the audit log that was given, or else that of the checker."""
    if given is None and "audit_log" in getattr(type(checker), "model_fields", {}):
        given = getattr(checker, "audit_log", None)
    if given is not None and not isinstance(given, AuditLog):
        msg = f"audit_log must be an AuditLog, got {type(given).__name__}"
        raise ConfigurationError(msg)
    return given


def without_audit_log(checker: _T) -> _T:
    """Return a copy of a checker that records nothing, for callers that record its results."""
    if log_for(checker) is None:
        return checker
    same: Any = checker
    copied = same.model_copy(update={"audit_log": None})
    copied._check = same.check  # noqa: SLF001  (what it has loaded need not be loaded again)
    return copied  # type: ignore[no-any-return]  # a copy


def suggested_answer(result: GroundednessResult) -> str | None:
    """Return the corrected answer as a suggestion for the reviewer, if it differs."""
    return None if result.answer == result.original_answer else result.answer


def thread_of(config: RunnableConfig) -> str | None:
    """Read LangGraph's thread id from a config."""
    for part in (config.get("configurable") or {}, config.get("metadata") or {}):
        if part.get("thread_id") is not None:
            return str(part["thread_id"])
    return None


def _root(run: Any) -> UUID | None:
    """Find the outermost run; only tracers know it."""
    if run.parent_run_id is None:
        return UUID(str(run.run_id))
    for handler in run.handlers:
        traced = getattr(handler, "run_map", None)
        known = traced.get(str(run.run_id)) if isinstance(traced, dict) else None
        trace = getattr(known, "trace_id", None)
        if isinstance(trace, UUID):
            return trace
    return None


def _parts(verifier: object, depth: int) -> Iterator[object]:
    """Yield a verifier and its parts: stages, bound runnables, a model, a cross-encoder."""
    if verifier is None or not depth:
        return
    yield verifier
    for name in ("verifier", "bound", "model", "cross_encoder"):
        inner = getattr(verifier, name, None)
        if inner is not None and not isinstance(inner, str):
            yield from _parts(inner, depth - 1)
    for stage in getattr(verifier, "stages", None) or ():
        yield from _parts(stage, depth - 1)


@cache
def encoder_checksum() -> str | None:
    """Return the SHA-256 of the embedded verifier's encoder, from its manifest."""
    sums = read_model_json("encoder.json").get("sha256") or {}
    found = sums.get("encoder.onnx")
    return None if found is None else str(found)
