"""Evaluation on several processes or machines, with Ray.

The driver process reads the data set and keeps the run file, the cache and the order, as without
Ray. Workers receive rows, return scores and need no files. The number of rows in flight is bounded,
so memory does not grow with the data set.
"""

import json
import logging
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from importlib import import_module
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any, NamedTuple, Self, TypeAlias

from langchain_core.load import dumpd, load
from langchain_core.load.load import ALL_SERIALIZABLE_MAPPINGS
from langchain_core.runnables import RunnableConfig
from pydantic import SecretBytes, SecretStr

from langchain_groundedness._runtime.options import require_one_of, require_positive
from langchain_groundedness.evals.evaluation import (
    EvaluatedTask,
    Evaluation,
    RowTask,
    run_in_threads,
)
from langchain_groundedness.evals.evaluator import Evaluator
from langchain_groundedness.evals.values import EvaluatedRow, RowScore
from langchain_groundedness.exceptions import (
    ConfigurationError,
    EvaluationError,
    GroundednessError,
    cause,
    require,
)

__all__ = ["RayEngine", "RowWorker", "SerializedEvaluator", "cluster", "make_engine"]

_ROWS_PER_TASK = 8
"""Most rows per task; a task costs some tenths of a millisecond in Ray."""

_RETRIES = 1
"""How often a row is retried when its worker dies; then it is evaluated alone."""
_DIED = f"the process of the worker died {_RETRIES + 1} times while it evaluated this row alone"


class _LostRow(NamedTuple):
    """A row whose worker died as often as a row may be retried."""

    job: RowTask


Outcomes: TypeAlias = list[EvaluatedTask | _LostRow | Exception]


@dataclass(frozen=True, kw_only=True)
class RayEngine:
    """Evaluates rows on the workers of a Ray cluster.

    A row whose worker dies is retried, at last alone, because a machine can be lost through no
    fault of the row. A row that still kills its worker counts as failed.
    """

    workers: int = 1
    address: str | None = None
    max_concurrency: int = 16

    def __post_init__(self) -> None:
        """Check the options; nothing is started yet."""
        require_positive(workers=self.workers, max_concurrency=self.max_concurrency)

    @property
    def max_rows_in_flight(self) -> int:
        """Most rows that are read but not finished."""
        return self.workers * self.max_concurrency * _ROWS_PER_TASK

    def run(self, evaluation: Evaluation) -> None:
        """Run an evaluation; starts nothing if all its rows are done."""
        evaluators = [SerializedEvaluator.of(each) for each in evaluation.evaluators]
        config = _plain_config(evaluation.config or {})
        jobs = evaluation.advance([], self.max_rows_in_flight)
        if not jobs:
            return
        with cluster(self.workers, self.address) as ray, ExitStack() as stack:
            worker_class = ray.remote(RowWorker).options(
                num_cpus=1,
                max_concurrency=self.max_concurrency,
                max_restarts=-1,
                max_task_retries=_RETRIES,
            )
            workers = []
            for _ in range(self.workers):
                workers.append(worker_class.remote(evaluators, config))
                stack.callback(ray.kill, workers[-1])
            free = deque(workers * self.max_concurrency)
            self._evaluate(evaluation, jobs, partial(_evaluated_by_worker, ray, free))

    def _evaluate(
        self,
        evaluation: Evaluation,
        jobs: Sequence[RowTask],
        work: Callable[[Sequence[RowTask]], Outcomes],
    ) -> None:
        """Evaluate these rows and all that follow; those whose workers died too often, alone."""
        lost: list[RowTask] = []

        def advance(
            outcomes: Sequence[Outcomes | BaseException], count: int
        ) -> list[list[RowTask]]:
            found = [o for each in outcomes for o in (each if isinstance(each, list) else [each])]
            lost.extend(each.job for each in found if isinstance(each, _LostRow))
            known = [each for each in found if not isinstance(each, _LostRow)]
            return _parts(evaluation.advance(known, count * _ROWS_PER_TASK), count)

        threads = self.workers * self.max_concurrency
        run_in_threads(_parts(jobs, threads), advance, work, threads)
        for job in lost:
            [outcome] = work([job])
            if isinstance(outcome, _LostRow):
                failed = (
                    job.known.get(each.key) or RowScore(key=each.key, status="failed", reason=_DIED)
                    for each in evaluation.evaluators
                )
                outcome = EvaluatedTask(job, job.evaluated(failed))
            evaluation.advance([outcome], 0)


def _parts(jobs: Sequence[RowTask], most: int) -> list[list[RowTask]]:
    """Spread rows over tasks."""
    tasks = min(len(jobs), most)
    return [list(jobs[number::tasks]) for number in range(tasks)]


def make_engine(
    engine: str, workers: int | None, address: str | None, max_concurrency: int
) -> RayEngine | None:
    """Make the Ray engine; `None` to use threads of this process."""
    require_one_of("engine", engine, ("local", "ray"))
    if engine == "ray":
        require("ray", extra="ray")
        workers = 1 if workers is None else workers
        return RayEngine(workers=workers, address=address, max_concurrency=max_concurrency)
    if workers is not None or address is not None:
        msg = "workers and address are options of engine='ray'; name it, or leave them out"
        raise ConfigurationError(msg)
    return None


def _evaluated_by_worker(ray: Any, free: deque[Any], jobs: Sequence[RowTask]) -> Outcomes:
    """Have rows evaluated by a free worker, and wait for their scores."""
    worker = free.popleft()
    sent = [job._replace(located=job.located._replace(cells=None), before=None) for job in jobs]
    try:
        answers = ray.get(worker.evaluate.remote(sent))
    except ray.exceptions.RayActorError:
        return [_LostRow(job) for job in jobs]
    except Exception as exc:  # noqa: BLE001  (Ray has many, none of which may quote rows)
        ids = tuple(job.located.row.id for job in jobs)
        why = f"Ray gave up ({type(exc).__name__}) on the rows {', '.join(ids)}"
        msg = f"{why}: with a journal, the run can be resumed"
        raise EvaluationError(msg, row_ids=ids, result=None) from None
    finally:
        free.append(worker)
    return [
        ConfigurationError(found) if isinstance(found, str) else EvaluatedTask(job, found)
        for job, found in zip(jobs, answers, strict=True)
    ]


class RowWorker:
    """Evaluates rows in a process of its own; an actor of Ray."""

    def __init__(self, evaluators: Sequence["SerializedEvaluator"], config: RunnableConfig) -> None:
        """Keep the options: what fails here, Ray would retry forever."""
        self._evaluators = evaluators
        self._config = config

    @cached_property
    def _evaluation(self) -> Evaluation:
        evaluators = [each.restore() for each in self._evaluators]
        return Evaluation([], evaluators, config=self._config)

    def evaluate(self, jobs: Sequence[RowTask]) -> list[EvaluatedRow | str]:
        """Return each row with its scores, or why the run cannot continue."""
        return list(map(self._evaluated, jobs))

    def _evaluated(self, job: RowTask) -> EvaluatedRow | str:
        try:
            return self._evaluation.work(job).row
        except Exception as exc:  # noqa: BLE001  (the driver ends the run with it)
            return str(exc) if isinstance(exc, GroundednessError) else cause(exc)


def _plain_config(config: RunnableConfig) -> RunnableConfig:
    """Return the parts of a config that are valid on another machine."""
    if config.get("callbacks"):
        msg = "callbacks work only in this process: omit them, or use engine='local'"
        raise ConfigurationError(msg)
    return RunnableConfig(
        tags=list(config.get("tags") or ()), metadata=dict(config.get("metadata") or {})
    )


class SerializedEvaluator(NamedTuple):
    """An evaluator serialized for another process, without keys."""

    data: Any
    """What `dumpd` gives, with the names of keys instead of keys; `None` if it cannot."""
    evaluator: Evaluator | None
    """The evaluator itself, if `dumpd` cannot write it: Ray pickles it."""
    fingerprint: dict[str, Any]

    @classmethod
    def of(cls, evaluator: Evaluator) -> Self:
        """Serialize an evaluator; one that must be pickled may hold no key."""
        fingerprint, data = evaluator.fingerprint(), dumpd(evaluator)
        with suppress(Exception):  # not all can be written so; there is another way
            if _loaded(data).fingerprint() == fingerprint:
                return cls(data, None, fingerprint)
        _require_picklable(evaluator)
        return cls(None, evaluator, fingerprint)

    def restore(self) -> Evaluator:
        """Make the evaluator again; keys are taken from the environment of this process."""
        try:
            evaluator = self.evaluator or _loaded(self.data)
        except Exception as exc:  # noqa: BLE001  (packages, keys, options: all may be wrong there)
            missing = f": {exc.name}" if isinstance(exc, ImportError) and exc.name else ""
            msg = (
                "an evaluator cannot be made on a worker; are its packages installed there, and "
                f"its keys in the environment? ({cause(exc)}{missing})"
            )
            raise ConfigurationError(msg) from None  # the cause may quote options
        if evaluator.fingerprint() != self.fingerprint:
            msg = f"{evaluator.key} differs on the worker: install the same versions there"
            raise ConfigurationError(msg)
        return evaluator


def _loaded(data: Any) -> Evaluator:
    objects: list[dict[str, Any]] = []
    json.loads(json.dumps(data), object_hook=objects.append)
    made = (each for each in objects if (each.get("lc"), each.get("type")) == (1, "constructor"))
    classes = [_class(each["id"]) for each in made]
    namespaces = sorted({each.__module__.partition(".")[0] for each in classes})
    evaluator: Evaluator = load(
        data, allowed_objects=classes, valid_namespaces=namespaces, secrets_from_env=True
    )
    return evaluator


def _class(path: Sequence[str]) -> Any:
    *module, name = ALL_SERIALIZABLE_MAPPINGS.get(tuple(path), path)
    if module == ["__main__"]:
        msg = "classes of a script are not known elsewhere"
        raise ValueError(msg)
    return getattr(import_module(".".join(module)), name)


def _require_picklable(evaluator: Evaluator) -> None:
    cloudpickle: Any = require("ray.cloudpickle", extra="ray")

    class KeyFinder(cloudpickle.Pickler):  # type: ignore[misc]  # Ray is optional
        def reducer_override(self, value: Any) -> Any:
            if isinstance(value, SecretStr | SecretBytes):
                msg = "it holds a key"
                raise ConfigurationError(msg)
            return super().reducer_override(value)

    try:
        KeyFinder(BytesIO()).dump(evaluator)
    except Exception as exc:  # noqa: BLE001  (whatever cannot be pickled says so in its own way)
        why = str(exc) if isinstance(exc, ConfigurationError) else cause(exc)
        msg = (
            f"{evaluator.key}: the evaluator cannot be sent to workers: {why}. Make it of parts "
            "that LangChain's dumpd can write, with keys in the environment of each machine"
        )
        raise ConfigurationError(msg) from None


_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_BACKEND_LOG_LEVEL": "fatal",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
}
"""No usage statistics, GPUs stay visible, nothing on stderr, and, as is Ray's default outside
Linux, its processes listen on the loopback interface only."""

_OBJECT_STORE_BYTES = 256 << 20
"""Rows in flight take no more than a few megabytes per worker."""

_SHORT_TEMP, _LONGEST_TEMP_PATH = Path(os.sep, "tmp"), 20
"""Paths of sockets must be short."""


@contextmanager
def cluster(workers: int, address: str | None) -> Iterator[Any]:
    """Connect to a cluster; one started here ends with the context and leaves no files."""
    with ExitStack() as stack:
        if address is None:
            stack.callback(_restore_environment, dict(os.environ))
            path = os.pathsep.join(str(Path(entry).absolute()) for entry in sys.path)
            os.environ.update({**_ENVIRONMENT, **os.environ, "PYTHONPATH": path})
        ray: Any = require("ray", extra="ray")
        if ray.is_initialized():
            yield ray
            return
        if threading.current_thread() is threading.main_thread():  # Ray replaces the handler
            stack.callback(signal.signal, signal.SIGTERM, signal.getsignal(signal.SIGTERM))
        options: dict[str, Any] = {"address": address}
        if address is None:
            is_long = len(gettempdir()) > _LONGEST_TEMP_PATH and _SHORT_TEMP.is_dir()
            place = _SHORT_TEMP if is_long else None
            folder = TemporaryDirectory("", "groundedness-ray-", place, ignore_cleanup_errors=True)
            options = {
                "address": "local",
                "num_cpus": workers,
                "include_dashboard": False,
                "object_store_memory": _OBJECT_STORE_BYTES,
                "_node_ip_address": "127.0.0.1",
                "_temp_dir": stack.enter_context(folder),
            }
        stack.callback(ray.shutdown)
        try:
            ray.init(log_to_driver=False, logging_level=logging.ERROR, **options)
        except (ConnectionError, ValueError, RuntimeError) as exc:
            msg = (
                f"no Ray cluster at {options['address']} ({type(exc).__name__}); start one with "
                "`ray start --head`, or leave out the address to have one for this run"
            )
            raise ConfigurationError(msg) from exc
        yield ray


def _restore_environment(before: Mapping[str, str]) -> None:
    for name in (*_ENVIRONMENT, "PYTHONPATH"):
        os.environ.pop(name, None)
        if name in before:
            os.environ[name] = before[name]
