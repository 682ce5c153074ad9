"""The encoder: a small network that reads evidence and claim together; int8, on the CPU."""

import ctypes
import hashlib
import os
import re
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from langchain_groundedness.exceptions import ModelFileError
from langchain_groundedness.verification.embedded.model_files import (
    damaged,
    read_model_file,
    read_model_json,
)

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Encoding, Tokenizer

__all__ = [
    "CLASSES",
    "LONGEST_PAIR",
    "Encoder",
    "Pair",
    "PerThreads",
    "default_threads",
    "encoder",
    "load_encoder",
]

CLASSES = ("supported", "contradicted", "unverifiable")
"""What the columns of the logits stand for."""

LONGEST_PAIR = 512
"""Tokens that the network has positions for."""

_TOKENS_PER_RUN = 2048
"""More take more memory (some 100 MB for twice as many) and are no faster."""

_LONG = 256
"""Tokens of a pair above which the square of its length determines the memory it takes."""

_MOST_THREADS = 4

_NICENESS = 15
"""Of 20 steps of priority. While eight checks at a time keep two cores busy, the 99th percentile of
an event loop's delay is 6 to 8 ms with it, and 15 without, and checks take no longer
(`benchmarks/load.py embedded`)."""

_FILES = ("encoder.onnx", "tokenizer.json")
_VNNI = {"avx512_vnni", "avx_vnni"}

Floats = NDArray[np.float32]

_T = TypeVar("_T")


class Pair(NamedTuple):
    """What is read together."""

    evidence: str
    claim: str


class Encoder:
    """Scores pairs; may be called from only one thread at a time."""

    def __init__(self, session: "InferenceSession", tokenizer: "Tokenizer") -> None:
        """Put network and tokenizer together."""
        self._session = session
        self._tokenizer = tokenizer
        self._tokenizer.no_padding()
        self._tokenizer.encode_special_tokens = True  # "[SEP]" in a text is text
        self._tokenizer.no_truncation()  # its own needs memory for the square of what is cut off

    def logits(self, pairs: Sequence[Pair]) -> Floats:
        """Score pairs in a few runs, those of about the same length together.

        A pair's score does not depend on what else is scored. Beyond 512 tokens the longer half
        of a pair is cut: callers choose evidence and claims that fit.
        """
        encoded = self._tokenizer.encode_batch([tuple(map(_encodable, pair)) for pair in pairs])
        rows = [_cut_to_fit(each) for each in encoded]
        order = sorted(range(len(rows)), key=lambda place: len(rows[place].ids))
        logits = np.zeros((len(rows), len(CLASSES)), dtype=np.float32)
        first = 0
        while first < len(order):
            last = first + 1
            while (
                last < len(order)
                and (last - first + 1) * rows[order[last]].weight <= _TOKENS_PER_RUN
            ):
                last += 1
            logits[order[first:last]] = self._run([rows[place] for place in order[first:last]])
            first = last
        return logits

    def _run(self, rows: "Sequence[_Row]") -> Floats:
        shape = (len(rows), max(len(row.ids) for row in rows))
        ids, mask, types = (np.zeros(shape, dtype=np.int64) for _ in range(3))
        for place, row in enumerate(rows):
            size = len(row.ids)
            ids[place, :size] = row.ids
            mask[place, :size] = 1
            types[place, row.evidence : size] = 1
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
        logits: Floats = self._session.run(["logits"], feed)[0]
        return logits


class _Row(NamedTuple):
    """A pair as the network reads it."""

    ids: list[int]
    evidence: int
    """How many of the ids are the evidence's; the others are the claim's."""

    @property
    def weight(self) -> int:
        return len(self.ids) * max(len(self.ids), _LONG) // _LONG


def _cut_to_fit(encoding: "Encoding") -> _Row:
    """Cut what is too long: the longer half first, each at its end, before its separator."""
    ids, evidence = encoding.ids, encoding.type_ids.count(0)
    claim = len(ids) - evidence
    if len(ids) > LONGEST_PAIR:
        half = LONGEST_PAIR // 2
        left, right = max(half, LONGEST_PAIR - claim), max(half, LONGEST_PAIR - evidence)
        ids = [*_cut(ids[:evidence], left), *_cut(ids[evidence:], right)]
        evidence = min(evidence, left)
    return _Row(ids, evidence)


def _cut(ids: list[int], size: int) -> list[int]:
    return ids if len(ids) <= size else [*ids[: size - 1], ids[-1]]


def _encodable(text: str) -> str:
    """Replace halves of surrogate pairs, which no tokenizer takes."""
    return text.encode("utf-8", "replace").decode("utf-8")


def encoder(threads: int | None = None) -> Encoder:
    """Load the encoder that is shipped with the package, once for each number of threads."""
    return _ENCODERS.get(threads)


def default_threads() -> int:
    """Return the number of threads that is used unless another is asked for."""
    given = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    most = int(given) if given.isdecimal() and int(given) else _MOST_THREADS
    return min(_cores(), _MOST_THREADS, most)


def _cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


class PerThreads(Generic[_T]):
    """A cache with one object per process and number of threads."""

    def __init__(self, make: Callable[[int], _T]) -> None:
        """Prepare an empty cache; a forked child starts with an empty one."""
        self._make = make
        self._lock = threading.Lock()
        self._made: dict[int, _T] = {}
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._reset)

    def get(self, threads: int | None) -> _T:
        """Return the object for a number of threads, by default as many as suit the computer."""
        threads = threads or default_threads()
        with self._lock:
            if threads not in self._made:
                self._made[threads] = self._make(threads)
            return self._made[threads]

    def _reset(self) -> None:
        """Keep a forked child's copies alive, but do not use them: their threads are missing."""
        # Freeing a session waits for its threads, so these are never freed.
        for inherited in self._made.values():
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(inherited))
        self._lock, self._made = threading.Lock(), {}


def load_encoder(threads: int) -> Encoder:
    """Load an encoder."""
    network, words = _checked()
    try:
        return Encoder(_session(network, threads), _tokenizer(words))
    except Exception as exc:
        msg = (
            "encoder.onnx and tokenizer.json of the embedded verifier are intact but cannot be "
            f"loaded ({type(exc).__name__}). Install newer versions of onnxruntime and tokenizers."
        )
        raise ModelFileError(msg) from exc


def _tokenizer(words: bytes) -> "Tokenizer":
    from tokenizers import Tokenizer  # noqa: PLC0415  (slow to import)

    return Tokenizer.from_str(words.decode("utf-8"))


def _session(network: bytes, threads: int) -> "InferenceSession":
    # ONNX Runtime reports its use to its maker from the moment it is imported.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime  # noqa: PLC0415  (slow to import)

    onnxruntime.disable_telemetry_events()  # it may have been imported before
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # Its threads would wait for the next run at full speed, while others, the event loop's among
    # them, want the processor.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    options.enable_mem_pattern = False  # a plan for each shape, and every run has another
    if not _has_vnni():
        # Without it, sums of 8-bit products overflow on such processors (most AMD before Zen 4,
        # Intel before 2019), and the encoder calls nearly every claim supported. On the others it
        # changes no score and takes half as much time again.
        options.add_session_config_entry("session.x64quantprecision", "1")
    return _at_low_priority(
        partial(onnxruntime.InferenceSession, network, options, providers=["CPUExecutionProvider"])
    )


def _has_vnni() -> bool:
    """Return whether every core is known to have the instructions for exact 8-bit sums."""
    with suppress(OSError):  # there on Linux only
        flags = re.findall(
            r"^flags\s*:(.*)", Path("/proc/cpuinfo").read_text("utf-8"), re.MULTILINE
        )
        return bool(flags) and all(_VNNI.intersection(each.split()) for each in flags)
    return False


def _at_low_priority(make: "Callable[[], InferenceSession]") -> "InferenceSession":
    """Create an object in a low-priority thread, so that its own threads get low priority too."""
    # These threads never hold the interpreter lock, so only the current check waits for them. At
    # low priority, they do not delay the event loop.
    made: Future[InferenceSession] = Future()
    caller = threading.get_native_id()

    def work() -> None:
        # Priority is a thread's own on Linux only; and gevent's threads are none.
        if sys.platform == "linux" and threading.get_native_id() != caller:
            with suppress(OSError):  # not allowed here: then as all others
                os.nice(_NICENESS)
        try:
            made.set_result(make())
        except Exception as exc:  # noqa: BLE001  (the caller raises it)
            made.set_exception(exc)

    # Not an executor, which takes no more work from the end of the main thread on.
    threading.Thread(target=work, name="groundedness-loading", daemon=True).start()
    return made.result()


def _checked() -> tuple[bytes, bytes]:
    """Read the files of the model; a changed network could say anything."""
    network, words = (read_model_file(name) for name in _FILES)
    sums = read_model_json("encoder.json").get("sha256")
    if not isinstance(sums, dict):
        raise ModelFileError(damaged("encoder.json"))
    for name, content in zip(_FILES, (network, words), strict=True):
        if hashlib.sha256(content).hexdigest() != sums.get(name):
            raise ModelFileError(damaged(name))
    return network, words


_ENCODERS = PerThreads(load_encoder)
