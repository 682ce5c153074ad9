"""Evaluation on several processes or machines, with Ray Data.

The process that was started reads the data set, keeps the run file, the cache and the order, as
without Ray; rows go to the workers a chunk at a time, and scores come back. No worker needs the
files. Only so many rows are on their way at once, so memory does not grow with the data set.
"""

from collections import deque
from contextlib import ExitStack, suppress
from typing import Any

from langchain_core.runnables import RunnableConfig

from langchain_groundedness.evals._chunks import Answer, read_answer, write_row, written_chunk
from langchain_groundedness.evals._evaluation import Done, Evaluation, Job
from langchain_groundedness.evals._parcels import pack
from langchain_groundedness.evals._ray_cluster import cluster
from langchain_groundedness.evals._ray_stream import ChunkStream
from langchain_groundedness.evals._schedule import Do, Start
from langchain_groundedness.evals.values import EvaluatedRow
from langchain_groundedness.exceptions import ConfigurationError, EvaluationError, require

__all__ = ["RayEngine", "make_engine"]

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
        """Check the options; nothing is started yet.

        Args:
            workers: How many processes evaluate, each with evaluators of its own.
            address: Where a Ray cluster is, or `auto` for one that this machine belongs to. By
                default one is started on this machine for the run, and ended after it.
            max_concurrency: Most rows at a time, in each worker.
            cpus_per_worker: Processors that Ray sets aside for each worker.

        Raises:
            ConfigurationError: An option has a value that cannot work.
            MissingDependencyError: Ray is not installed.
        """
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
        """Carry an evaluation out.

        Args:
            evaluation: What `prepare` has made, with `rows_on_their_way` at a time.

        Raises:
            ConfigurationError: The evaluators cannot be sent to workers, or not be made there.
            EvaluationError: Workers died again and again; what is done is recorded.
        """
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
        """Carry an evaluation out, and close its files whatever happens.

        Args:
            evaluation: As for `drive`.

        Raises:
            ConfigurationError: As `drive`.
            EvaluationError: As `drive`.
        """
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
    """Make what carries an evaluation out.

    Args:
        engine: `local` or `ray`.
        workers: How many processes Ray starts.
        address: Where a Ray cluster is.
        max_concurrency: Most rows at a time, in each worker.

    Returns:
        The engine; `None` for threads of this process.

    Raises:
        ConfigurationError: An option has a value that cannot work.
        MissingDependencyError: Ray is not installed.
    """
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
