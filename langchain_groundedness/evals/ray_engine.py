"""Evaluation on several processes or machines, with Ray Data.

The process that was started reads the data set, keeps the run file, the cache and the order, as
without Ray; rows go to the workers a chunk at a time, and scores come back. No worker needs the
files. Only so many rows are on their way at once, so memory does not grow with the data set.
"""

import asyncio
import json
import logging
import os
import signal
import sys
import threading
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from time import perf_counter
from typing import Any, NamedTuple, Protocol, Self

from langchain_core.load import dumpd, load
from langchain_core.load.load import ALL_SERIALIZABLE_MAPPINGS
from langchain_core.runnables import RunnableConfig
from pydantic import SecretBytes, SecretStr

from langchain_groundedness.evals.datasets import LocatedRow, open_dataset
from langchain_groundedness.evals.evaluation import Done, Evaluation, Job
from langchain_groundedness.evals.evaluator import Evaluator
from langchain_groundedness.evals.progress import RunProgress
from langchain_groundedness.evals.run_files import as_json
from langchain_groundedness.evals.schedule import Broken, Do, Start, drive_jobs, schedule
from langchain_groundedness.evals.values import EvaluatedRow, EvaluationRow, RowScore
from langchain_groundedness.exceptions import (
    ConfigurationError,
    EvaluationError,
    GroundednessError,
    cause,
    require,
)

__all__ = [
    "ChunkWorker",
    "Parcel",
    "RayEngine",
    "cluster",
    "make_engine",
    "pack",
    "read_answer",
    "write_row",
    "written_chunk",
]

_CHUNK_ROWS = 256

_CHUNK_CHARACTERS = 1_000_000

_CHUNK_SECONDS = 4.0
"""How long a worker is to be busy with a chunk: much longer than its way through Ray takes."""

_CHUNKS_PER_WORKER = 3
"""Chunks on their way: one in work, one waiting for it, one coming or going."""

_SHOWN = 10


class RayEngine:
    """Evaluates rows on the workers of a Ray cluster.

    A chunk whose worker dies is evaluated again, by the same worker started anew or another one;
    the answer to a chunk is written down once, whatever comes back how often.
    """

    def __init__(
        self,
        *,
        workers: int = 1,
        address: str | None = None,
        max_concurrency: int = 16,
        cpus_per_worker: float = 1.0,
    ) -> None:
        """Check the options; nothing is started yet."""
        if workers < 1 or max_concurrency < 1 or cpus_per_worker < 0:
            msg = (
                "workers and max_concurrency must be 1 or more, cpus_per_worker 0 or more; got "
                f"{workers}, {max_concurrency} and {cpus_per_worker}"
            )
            raise ConfigurationError(msg)
        require("pyarrow", extra="ray")
        self._workers = workers
        self._address = address
        self._max_concurrency = max_concurrency
        self._cpus = cpus_per_worker

    @property
    def rows_on_their_way(self) -> int:
        """Most rows that are read and not done."""
        return self._workers * _CHUNKS_PER_WORKER * _CHUNK_ROWS

    def drive(self, evaluation: Evaluation) -> None:
        """Carry an evaluation out."""
        parcels, config = pack(evaluation.evaluators), _plain_config(evaluation.config)
        plan, reply = evaluation.flow(), None
        passage: _Passage | None = None
        with ExitStack() as stack, suppress(StopIteration):
            while True:
                request = plan.send(reply)
                reply = None
                if isinstance(request, Do):
                    reply = request.work()
                    continue
                passage = passage or self._opened(stack, (parcels, config, self._max_concurrency))
                if isinstance(request, Start):
                    passage.send(request.job)
                    continue
                done, fault = passage.receive()
                evaluation.record(done)
                reply = len(done)
                if fault is not None:
                    raise ConfigurationError(fault)

    def drive_to_the_end(self, evaluation: Evaluation) -> None:
        """Carry an evaluation out, and close its files whatever happens."""
        complete = False
        try:
            self.drive(evaluation)
            complete = True
        finally:
            evaluation.end(complete=complete)

    def _opened(self, stack: ExitStack, arguments: tuple[Any, ...]) -> "_Passage":
        """Start workers, now that there is a row for them."""
        ray = stack.enter_context(cluster(self._workers, self._address))
        stream = stack.enter_context(ChunkStream(ray, self._workers, arguments, self._cpus))
        return _Passage(stream, self._workers * _CHUNKS_PER_WORKER, self._max_concurrency)


def make_engine(
    engine: str, workers: int | None, address: str | None, max_concurrency: int
) -> RayEngine | None:
    """Make what carries an evaluation out."""
    if engine not in {"local", "ray"}:
        msg = f"engine is to be 'local' or 'ray', got {engine!r}"
        raise ConfigurationError(msg)
    if engine == "ray":
        return RayEngine(
            workers=1 if workers is None else workers,
            address=address,
            max_concurrency=max_concurrency,
        )
    if workers is not None or address is not None:
        msg = "workers and address are options of engine='ray'; name it, or leave them out"
        raise ConfigurationError(msg)
    return None


class Answer(NamedTuple):
    """What came back for a chunk."""

    number: int
    rows: Mapping[int, tuple[tuple[RowScore, ...], float | None]]
    """Scores and seconds, by place."""
    seconds: float
    """How long the worker took."""
    fault: str | None
    """Why the run cannot go on."""


class ChunkStream:
    """The way through Ray Data, from `put` to `answers`."""

    def __init__(
        self, ray: Any, workers: int, arguments: tuple[Any, ...], cpus_per_worker: float
    ) -> None:
        """Start the workers."""
        self._ray = ray
        data: Any = require("ray.data", extra="ray")
        self._feed = ray.remote(Feed).options(**_on_this_machine(ray)).remote()
        context = data.DataContext.get_current().copy()
        context.enable_progress_bars = False
        context.target_max_block_size = 1  # no chunk waits for another one
        with data.DataContext.current(context):
            chunks = data.read_datasource(
                _source(self._feed),
                override_num_blocks=1,
                num_cpus=0,
            )
            answers = chunks.map_batches(
                ChunkWorker,
                fn_constructor_args=(_ToFeed(self._feed), *arguments),
                batch_size=1,
                compute=data.ActorPoolStrategy(
                    size=workers, max_tasks_in_flight_per_actor=_WAITING_PER_WORKER
                ),
                num_cpus=cpus_per_worker,
            )
            self._tables: Iterator[Mapping[str, Sequence[Any]]] = iter(
                answers.iter_batches(batch_size=None, prefetch_batches=0)
            )

    def __enter__(self) -> Self:
        """Give the stream."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the workers."""
        close = getattr(self._tables, "close", None)
        if close is not None:
            close()
        self._ray.kill(self._feed)

    def put(self, number: int, chunk: str) -> None:
        """Send a chunk."""
        self._ray.get(self._feed.put.remote(number, chunk))

    def forget(self, number: int) -> None:
        """Say that the answer to a chunk is written down."""
        self._feed.forget.remote(number)

    def answers(self) -> Iterator[str]:
        """Wait for answers."""
        for table in self._tables:
            yield from map(str, table[COLUMN])

    def end(self) -> None:
        """Say that there will be no more chunks."""
        self._ray.get(self._feed.end.remote())


class _Passage:
    """Rows that are on their way, and those that wait to be sent."""

    def __init__(self, stream: ChunkStream, most_chunks: int, least_rows: int) -> None:
        self._stream = stream
        self._most_chunks = most_chunks
        self._least_rows = self._chunk_rows = least_rows
        self._waiting: deque[Job] = deque()
        self._sent: dict[int, dict[int, Job]] = {}
        self._next = 0
        self._answers = stream.answers()

    def send(self, job: Job) -> None:
        self._waiting.append(job)

    def receive(self) -> tuple[list[Done], str | None]:
        """Wait for a chunk; give its rows, and why the run cannot go on."""
        while self._waiting and len(self._sent) < self._most_chunks:
            self._send_chunk()
        answer = self._answer()
        jobs = self._sent.pop(answer.number)
        self._stream.forget(answer.number)
        if answer.seconds > 0:
            rows = int(_CHUNK_SECONDS * len(jobs) / answer.seconds)
            self._chunk_rows = min(_CHUNK_ROWS, max(self._least_rows, rows))
        done = []
        for place, (scores, seconds) in answer.rows.items():
            job = jobs[place]
            row = EvaluatedRow(
                row=job.located.row, scores=scores, line=job.located.line, seconds=seconds
            )
            done.append(Done(job, row))
        return done, answer.fault

    def _send_chunk(self) -> None:
        jobs: dict[int, Job] = {}
        rows: list[str] = []
        length = 0
        while self._waiting and len(rows) < self._chunk_rows and length < _CHUNK_CHARACTERS:
            job = self._waiting.popleft()
            jobs[job.place] = job
            rows.append(write_row(job))
            length += len(rows[-1])
        self._sent[self._next] = jobs
        self._stream.put(self._next, written_chunk(self._next, rows))
        self._next += 1

    def _answer(self) -> Answer:
        """Wait for an answer to a chunk that has none yet."""
        why = "its stream ended"
        try:
            for text in self._answers:
                answer = read_answer(text)
                if answer is not None and answer.number in self._sent:
                    return answer
        except Exception as exc:  # noqa: BLE001  (Ray has many, none of which may quote rows)
            why = type(exc).__name__
        ids = tuple(job.located.row.id for jobs in self._sent.values() for job in jobs.values())
        listed = ", ".join(ids[:_SHOWN]) + (" …" if len(ids) > _SHOWN else "")
        msg = (
            f"Ray gave up ({why}) while {len(ids)} rows were on their way ({listed}). What is done "
            "is in the journal, if there is one: the run can be resumed"
        )
        raise EvaluationError(msg, row_ids=ids, result=None)


def _plain_config(config: RunnableConfig) -> RunnableConfig:
    """Give what of a config means the same on another machine."""
    if config.get("callbacks"):
        msg = (
            "callbacks are of this process, and rows are evaluated in others: leave them out, or "
            "use engine='local'"
        )
        raise ConfigurationError(msg)
    told: RunnableConfig = {}
    if "tags" in config:
        told["tags"] = list(config["tags"])
    if "metadata" in config:
        told["metadata"] = dict(config["metadata"])
    return told


_WAITING_PER_WORKER = 2
"""Chunks that a worker is given, the one that it works on among them."""


class Feed:
    """Holds chunks that are not answered yet; an actor beside whoever puts them in.

    Ray asks again for all chunks, from the first, if the task that reads them has died.
    """

    def __init__(self) -> None:
        """Start with nothing."""
        self._chunks: dict[int, str] = {}
        self._put = 0
        self._begun: Counter[str] = Counter()
        self._is_last = False
        self._changed = asyncio.Condition()

    async def put(self, number: int, chunk: str) -> None:
        """Add a chunk."""
        async with self._changed:
            self._chunks[number] = chunk
            self._put = number + 1
            self._changed.notify_all()

    async def forget(self, number: int) -> None:
        """Let go of a chunk that is answered."""
        self._chunks.pop(number, None)
        for name in [each for each in self._begun if each.partition("/")[0] == str(number)]:
            del self._begun[name]

    async def begin(self, name: str) -> int:
        """Count how often a worker has begun with something and not come to its end."""
        self._begun[name] += 1
        return self._begun[name]

    async def survive(self, name: str) -> None:
        """Take note that a worker came to the end of something."""
        del self._begun[name]

    async def end(self) -> None:
        """Say that no more chunks will come."""
        async with self._changed:
            self._is_last = True
            self._changed.notify_all()

    async def chunk(self, number: int) -> str | None:
        """Give a chunk, as soon as it is there."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._is_last or number < self._put)
        return self._chunks.get(number, "") if number < self._put else None


class _ToFeed:
    """Tells the feed what a worker begins with, and what it survives."""

    def __init__(self, feed: Any) -> None:
        self._feed = feed

    def begin(self, name: str) -> int:
        ray: Any = require("ray", extra="ray")
        return int(ray.get(self._feed.begin.remote(name)))

    def survive(self, name: str) -> None:
        ray: Any = require("ray", extra="ray")
        ray.get(self._feed.survive.remote(name))


def _on_this_machine(ray: Any) -> dict[str, Any]:
    strategies: Any = require("ray.util.scheduling_strategies", extra="ray")
    node = ray.get_runtime_context().get_node_id()
    strategy = strategies.NodeAffinitySchedulingStrategy(node, soft=False)
    return {"num_cpus": 0, "scheduling_strategy": strategy}


def _source(feed: Any) -> Any:
    """Make what Ray Data reads: chunks, as the feed gives them."""
    sources: Any = require("ray.data.datasource", extra="ray")
    blocks: Any = require("ray.data.block", extra="ray")
    arrow: Any = require("pyarrow", extra="ray")

    def read() -> Iterator[Any]:
        ray: Any = require("ray", extra="ray")
        number = 0
        while (chunk := ray.get(feed.chunk.remote(number))) is not None:
            yield arrow.table({COLUMN: arrow.array([chunk], arrow.large_string())})
            number += 1

    class Chunks(sources.Datasource):  # type: ignore[misc]  # Ray is optional
        def estimate_inmemory_data_size(self) -> int | None:
            return None

        def get_read_tasks(self, parallelism: int, *_: Any, **__: Any) -> list[Any]:
            unknown = blocks.BlockMetadata(
                num_rows=None, size_bytes=None, input_files=None, exec_stats=None
            )
            return [sources.ReadTask(read, unknown)]

    return Chunks()


_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_BACKEND_LOG_LEVEL": "fatal",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
}
"""Nothing is sent to Ray's makers, GPUs stay visible to all, nothing is written to stderr, and, as
Ray has it on other systems than Linux, its processes listen on the loopback interface only."""

_PREFIX, _LONGEST_PLACE = "groundedness-ray-", 20

_STORE_BYTES = 256 * 1024 * 1024
"""Rows on their way; they are no more than a few megabytes per worker."""


@contextmanager
def cluster(workers: int, address: str | None) -> Iterator[Any]:
    """Connect to a cluster; one that is started here ends with the context, and leaves nothing."""
    with ExitStack() as stack:
        if address is None:
            stack.enter_context(_environment(_QUIET))
            stack.enter_context(_environment({"PYTHONPATH": _import_path()}, replaces=True))
        ray: Any = require("ray", extra="ray")
        require("ray.data", extra="ray")
        stack.enter_context(_level("ray.data", logging.ERROR))
        if ray.is_initialized():
            yield ray
            return
        stack.enter_context(_signals_kept())
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
        if address is None:
            folder = stack.enter_context(
                TemporaryDirectory(prefix=_PREFIX, dir=_place(), ignore_cleanup_errors=True)
            )
            options |= {
                "address": "local",
                "num_cpus": workers,
                "include_dashboard": False,
                "object_store_memory": _STORE_BYTES,
                "_node_ip_address": "127.0.0.1",
                "_temp_dir": folder,
            }
        else:
            options["address"] = address
        stack.callback(ray.shutdown)
        try:
            ray.init(**options)
        except (ConnectionError, ValueError, RuntimeError) as exc:
            where = "on this machine" if address is None else f"at {address}"
            msg = (
                f"no Ray cluster {where} ({type(exc).__name__}); start one with `ray start --head`,"
                " or leave out the address to have one for this run"
            )
            raise ConfigurationError(msg) from exc
        yield ray


def _import_path() -> str:
    """Let workers on this machine import what this process can."""
    return os.pathsep.join(str(Path(entry).absolute()) for entry in sys.path)


def _place() -> Path | None:
    """Find where a folder of Ray can be: paths of its sockets must be short."""
    short = Path(os.sep, "tmp")
    return short if len(gettempdir()) > _LONGEST_PLACE and short.is_dir() else None


@contextmanager
def _environment(values: dict[str, str], *, replaces: bool = False) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update({n: value for n, value in values.items() if replaces or before[n] is None})
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _level(name: str, level: int) -> Iterator[None]:
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(level)
    try:
        yield
    finally:
        logger.setLevel(before)


@contextmanager
def _signals_kept() -> Iterator[None]:
    """Give back the handler that Ray replaces."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


_CHUNK_DEATHS, _ROW_DEATHS = 1, 2
"""How often a process may die of a chunk before its rows are evaluated one by one, and then of a
row before that row counts as failed: machines go away without the fault of any row."""

COLUMN = "chunk"
"""The column of Ray's tables; each of their rows is a chunk of rows."""


def write_row(job: Job) -> str:
    """Write a row for a worker."""
    known = {key: score.model_dump() for key, score in job.known.items()}
    return as_json({"place": job.place, "row": job.located.row.model_dump(), "known": known})


def written_chunk(number: int, rows: Iterable[str]) -> str:
    """Write a chunk."""
    return f'{{"number": {number}, "rows": [{", ".join(rows)}]}}'


def read_answer(text: str) -> Answer | None:
    """Read what a worker gave."""
    if not text:
        return None
    found = json.loads(text)
    rows = {
        row["place"]: (tuple(map(RowScore.model_validate, row["scores"])), row["seconds"])
        for row in found["rows"]
    }
    return Answer(found["number"], rows, found["seconds"], found["fault"])


class Attempts(Protocol):
    """Counts what workers begin and do not survive, across their deaths."""

    def begin(self, name: str) -> int:
        """Count a beginning."""

    def survive(self, name: str) -> None:
        """Take note of an end."""


class Parcel(NamedTuple):
    """An evaluator on its way."""

    plain: Any
    """What `dumpd` gives, with the names of keys instead of keys; `None` if it cannot."""
    whole: Evaluator | None
    """The evaluator itself, if there is no other way: whoever carries it pickles it."""
    fingerprint: dict[str, Any]

    def unpack(self) -> Evaluator:
        """Make the evaluator again; keys are taken from the environment of this process."""
        try:
            evaluator = self.whole or _loaded(self.plain)
        except Exception as exc:  # noqa: BLE001  (packages, keys, options: all may be wrong there)
            msg = (
                "an evaluator cannot be made on a worker; are its packages installed there, and "
                f"its keys in the environment? ({_told(exc)})"
            )
            raise ConfigurationError(msg) from None  # the cause may quote options
        if evaluator.fingerprint() != self.fingerprint:
            msg = (
                f"{evaluator.key}: the evaluator is another one on a worker than here; is the "
                "same version of each package installed there?"
            )
            raise ConfigurationError(msg)
        return evaluator


class ChunkWorker:
    """Evaluates chunks, in a process of its own; makes its evaluators once."""

    def __init__(
        self,
        attempts: Attempts,
        parcels: Sequence[Parcel],
        config: RunnableConfig,
        max_concurrency: int,
    ) -> None:
        """Make the evaluators."""
        self._attempts = attempts
        self._fault: str | None = None
        self._at_once = max_concurrency
        try:
            evaluators = [parcel.unpack() for parcel in parcels]
        except ConfigurationError as exc:  # told with the first chunk: Ray would try for ever
            self._fault = str(exc)
            return
        self._evaluation = Evaluation(
            dataset=open_dataset([]),  # rows come in chunks
            evaluators=evaluators,
            name="",
            open_journal=None,
            cache=None,
            progress=RunProgress(wanted=False),
            max_concurrency=max_concurrency,
            retry_failed=False,
            config=config,
        )

    def __call__(self, table: Mapping[str, Any]) -> dict[str, list[str]]:
        """Evaluate."""
        return {COLUMN: [self._answer(str(text)) for text in table[COLUMN]]}

    def _answer(self, text: str) -> str:
        if not text:
            return ""
        begun, fault = perf_counter(), self._fault
        chunk = json.loads(text)
        done: list[Done] = []
        if fault is None:
            try:
                self._evaluate(str(chunk["number"]), [_job(row) for row in chunk["rows"]], done)
            except Exception as exc:  # noqa: BLE001  (told where the run was begun, which ends it)
                fault = str(exc) if isinstance(exc, GroundednessError) else cause(exc)
        rows = [
            {
                "place": job.place,
                "scores": [score.model_dump() for score in row.scores],
                "seconds": row.seconds,
            }
            for job, row in done
        ]
        seconds = perf_counter() - begun
        return as_json(
            {"number": chunk["number"], "rows": rows, "seconds": seconds, "fault": fault}
        )

    def _evaluate(self, number: str, jobs: Sequence[Job], done: list[Done]) -> None:
        if self._attempts.begin(number) <= _CHUNK_DEATHS:
            plan = schedule(iter(jobs), self._at_once)
            drive_jobs(plan, self._evaluation.work, done.extend, self._at_once)
            return
        for job in jobs:  # one of them kills the process: find out which
            if self._attempts.begin(f"{number}/{job.place}") > _ROW_DEATHS:
                done.append(_condemned(job, self._evaluation.evaluators))
                continue
            found = self._evaluation.work(job)
            self._attempts.survive(f"{number}/{job.place}")
            if isinstance(found, Broken):
                raise found.error
            done.append(found)


def _condemned(job: Job, evaluators: Sequence[Evaluator]) -> Done:
    reason = f"the process of the worker died {_ROW_DEATHS} times while it evaluated this row alone"
    scores = tuple(
        job.known.get(each.key) or RowScore(key=each.key, status="failed", reason=reason)
        for each in evaluators
    )
    return Done(job, EvaluatedRow(row=job.located.row, scores=scores))


def _job(found: Mapping[str, Any]) -> Job:
    known = {key: RowScore.model_validate(score) for key, score in found["known"].items()}
    row = EvaluationRow.model_validate(found["row"])
    return Job(found["place"], LocatedRow(row, None), known)


_ENTRY = "__main__"


def pack(evaluators: Iterable[Evaluator]) -> list[Parcel]:
    """Prepare evaluators for other processes."""
    return [_packed(each) for each in evaluators]


def _packed(evaluator: Evaluator) -> Parcel:
    fingerprint = evaluator.fingerprint()
    plain = dumpd(evaluator)
    try:
        if _loaded(plain).fingerprint() == fingerprint:
            return Parcel(plain, None, fingerprint)
    except Exception:  # noqa: BLE001, S110  (not all can be written so; there is another way)
        pass
    _refuse_what_cannot_be_pickled(evaluator)
    return Parcel(None, evaluator, fingerprint)


def _loaded(plain: Any) -> Evaluator:
    classes = [_class(path) for path in sorted(set(_paths(plain)))]
    found = load(
        plain,
        allowed_objects=classes,
        valid_namespaces=sorted({each.__module__.partition(".")[0] for each in classes}),
        secrets_from_env=True,
    )
    if not isinstance(found, Evaluator):
        msg = f"an Evaluator is needed, got {type(found).__name__}"
        raise TypeError(msg)
    return found


def _paths(plain: Any) -> Iterator[tuple[str, ...]]:
    """Give the classes that were written; what is written here comes from nobody else."""
    if isinstance(plain, dict):
        if plain.get("lc") == 1 and plain.get("type") == "not_implemented":
            msg = "not all of it can be written"
            raise ValueError(msg)
        if plain.get("lc") == 1 and plain.get("type") == "constructor":
            yield tuple(plain["id"])
        for inner in plain.values():
            yield from _paths(inner)
    elif isinstance(plain, list):
        for inner in plain:
            yield from _paths(inner)


def _class(path: Sequence[str]) -> Any:
    *module, name = ALL_SERIALIZABLE_MAPPINGS.get(tuple(path), path)
    if module == [_ENTRY]:
        msg = "classes of a script are not known elsewhere"
        raise ValueError(msg)
    return getattr(import_module(".".join(module)), name)


def _told(error: Exception) -> str:
    missing = error.name if isinstance(error, ImportError) else None
    return cause(error) if missing is None else f"{cause(error)}: {missing}"


def _refuse_what_cannot_be_pickled(evaluator: Evaluator) -> None:
    pickles: Any = require("ray.cloudpickle", extra="ray")

    class Watching(pickles.Pickler):  # type: ignore[misc]  # Ray is optional
        def reducer_override(self, value: Any) -> Any:
            if isinstance(value, SecretStr | SecretBytes):
                raise _KeyInsideError
            return super().reducer_override(value)

    why = "it holds a key"
    try:
        Watching(BytesIO()).dump(evaluator)
    except _KeyInsideError:
        pass
    except Exception as exc:  # noqa: BLE001  (whatever cannot be pickled says so in its own way)
        why = cause(exc)
    else:
        return
    msg = (
        f"{evaluator.key}: the evaluator cannot be sent to workers: {why}. Make it of parts that "
        "LangChain's dumpd can write, with keys in the environment of each machine"
    )
    raise ConfigurationError(msg) from None


class _KeyInsideError(Exception):
    pass
