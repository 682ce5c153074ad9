"""The encoder with its real files: what it takes, that company changes nothing, broken files."""

import asyncio
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from numpy.typing import NDArray
from tokenizers import Tokenizer

import langchain_groundedness
from langchain_groundedness import (
    ConfigurationError,
    GroundednessGuard,
    GroundednessRunnable,
    cli,
)
from langchain_groundedness.exceptions import ModelFileError
from langchain_groundedness.types import Claim, VerificationTask
from langchain_groundedness.verification.embedded import encoder as encoders
from langchain_groundedness.verification.embedded import model_files
from langchain_groundedness.verification.embedded.encoder import (
    CLASSES,
    LONGEST_PAIR,
    Encoder,
    Floats,
    Pair,
    PerThreads,
    encoder,
    load_encoder,
)
from langchain_groundedness.verification.embedded.model_files import inverse_frequencies
from langchain_groundedness.verification.embedded.support_model import support_model
from langchain_groundedness.verification.embedded.verifier import EmbeddedVerifier

MODEL = Path(langchain_groundedness.__file__).parent / "model"
FILES = ("encoder.onnx", "tokenizer.json", "encoder.json")
LONG = "the treaty was signed in 1848 and the archive keeps a copy of it "
ODD = {
    "empty": "",
    "blanks": " \t\n\u3000 ",
    "control characters": "\x00\x01\x1b[31m\x7f\x9b",
    "half a surrogate pair": "Rome \ud83d is old \udc00.",
    "emoji": "\U0001f600\U0001f468\u200d\U0001f469\u200d\U0001f467 \u2764\ufe0f",
    "right to left": "\u202eالقاهرة هي عاصمة مصر\u202c שלום",  # noqa: RUF001  (no Latin letters)
    "no blank": "x" * 100_000,
    "signs": "!?-_" * 25_000,
    "no spaces in the script": "東京は日本の首都です。" * 1_000,
}
PAIRS = (
    Pair("Revenue was $2.1B in Q3 2024.", "Revenue was $2.4B in Q3."),
    Pair("Rome is the capital of Italy.", "Rome is the capital."),
    Pair(LONG * 6, "The archive keeps a copy of the treaty that was signed in 1848."),
    Pair("", "Rome is old."),
    Pair("東京は日本の首都です。", "Tokyo is the capital of Japan."),
    Pair(LONG * 2, LONG),
    Pair(LONG * 60, "The treaty was signed in 1912."),
    Pair("Rome is old.", ""),
)


def probabilities(logits: Floats) -> NDArray[np.float64]:
    powers = np.exp(logits.astype(np.float64))
    found: NDArray[np.float64] = powers / powers.sum(axis=1, keepdims=True)
    return found


@cache
def alone() -> NDArray[np.float64]:
    """What each of `PAIRS` gets when it is scored by itself."""
    return probabilities(np.vstack([encoder().logits([pair]) for pair in PAIRS]))


def test_a_row_for_each_pair_and_a_column_for_each_class() -> None:
    assert CLASSES == ("supported", "contradicted", "unverifiable")
    logits = encoder().logits(PAIRS)
    assert logits.shape == (len(PAIRS), len(CLASSES))
    assert logits.dtype == np.float32
    assert np.isfinite(logits).all()
    assert encoder().logits([]).shape == (0, len(CLASSES))


def test_scores_are_those_of_the_network_before_rounding_on_any_processor() -> None:
    rome = "Rome is the capital of Italy. It lies on the Tiber."
    pairs = [
        Pair(rome, "Rome is the capital of Italy."),
        Pair(rome, "Rome is not the capital of Italy."),
        Pair("The lamp costs 40 euros and comes with a cable.", "Paris has a large harbour."),
    ]
    unrounded = [[3.08, -0.35, -2.56], [-1.08, 3.21, -1.98], [-2.9, -0.2, 2.07]]
    assert encoder().logits(pairs) == pytest.approx(np.array(unrounded), abs=0.5)


@pytest.mark.parametrize("flags", ["", "flags\t\t: fpu sse4_2 avx2", "unreadable"])
def test_scores_are_the_same_where_exact_sums_are_not_known_to_be_fast(
    flags: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_text = Path.read_text

    def read(path: Path, *args: Any, **options: Any) -> str:
        if path != Path("/proc/cpuinfo"):
            return read_text(path, *args, **options)
        if flags == "unreadable":
            raise PermissionError
        return flags

    monkeypatch.setattr(Path, "read_text", read)
    assert probabilities(load_encoder(1).logits(PAIRS)) == pytest.approx(alone(), abs=1e-3)


@settings(max_examples=settings().max_examples // 8, deadline=None)
@given(st.lists(st.integers(0, len(PAIRS) - 1), min_size=1, max_size=10))
def test_a_score_depends_neither_on_company_nor_on_order_nor_on_padding(places: list[int]) -> None:
    scores = probabilities(encoder().logits([PAIRS[place] for place in places]))
    assert scores == pytest.approx(alone()[places], abs=1e-3)


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_a_score_does_not_depend_on_the_number_of_threads(threads: int) -> None:
    scores = probabilities(load_encoder(threads).logits(PAIRS))
    assert scores == pytest.approx(alone(), abs=1e-3)


def test_more_pairs_than_fit_in_a_run_are_scored_in_several() -> None:
    pairs = [Pair(LONG * 6, f"Copy {number} is kept.") for number in range(60)]
    logits = encoder().logits(pairs)
    assert logits[41] == pytest.approx(encoder().logits([pairs[41]])[0], abs=1e-3)
    assert len({row.tobytes() for row in logits}) > 50


@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
def test_any_text_is_scored_on_either_side(text: str) -> None:
    pairs = [Pair(text, "Rome is old."), Pair("Rome is old.", text), Pair(text, text)]
    logits = encoder().logits([*pairs, *PAIRS[:2]])
    assert np.isfinite(logits).all()
    assert probabilities(logits[3:]) == pytest.approx(alone()[:2], abs=1e-3)


@pytest.mark.parametrize("words", [600, 20_000])
def test_of_a_longer_pair_the_longer_half_is_cut_at_its_end(words: int) -> None:
    filler = "stone " * words
    short = "Rome is the capital of Italy."
    overlong = encoder().logits(
        [
            Pair(f"Oslo. {filler}", short),
            Pair(f"Oslo. {filler} Never.", short),
            Pair(f"Lima. {filler}", short),
            Pair(f"Oslo. {filler}", "Oslo is a town."),
            Pair(short, f"Oslo. {filler}"),
            Pair(short, f"Oslo. {filler} Never."),
            Pair("Rome is a small village.", f"Oslo. {filler}"),
        ]
    )
    assert (overlong[0] == overlong[1]).all()
    assert (overlong[4] == overlong[5]).all()
    assert (overlong[0] != overlong[2]).any()
    assert (overlong[0] != overlong[3]).any()
    assert (overlong[4] != overlong[6]).any()


class Measuring:
    """A network that notes how long the pairs are that it is given, and reads none."""

    def __init__(self) -> None:
        self.widths: list[int] = []

    def run(self, _: Any, feed: dict[str, NDArray[np.int64]]) -> list[Floats]:
        self.widths.append(feed["input_ids"].shape[1])
        return [np.zeros((len(feed["input_ids"]), len(CLASSES)), dtype=np.float32)]


def test_no_pair_is_longer_than_what_the_network_reads() -> None:
    network: Any = Measuring()
    tokenizer = Tokenizer.from_file(str(MODEL / "tokenizer.json"))
    pairs = [*PAIRS, *(Pair(text, text) for text in ODD.values())]
    Encoder(network, tokenizer).logits(pairs)
    assert max(network.widths) == LONGEST_PAIR


def test_the_encoder_of_a_number_of_threads_is_loaded_once() -> None:
    assert encoder(1) is encoder(1)
    assert encoder() is encoder()


Break = Callable[[str, bytes | None], None]


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Break:
    """Install a copy of the model in which one file is another, or missing."""
    folder = tmp_path / "model"
    shutil.copytree(MODEL, folder)
    monkeypatch.setattr(model_files, "get_data", lambda _, name: (tmp_path / name).read_bytes())
    monkeypatch.setattr(encoders, "_ENCODERS", PerThreads(load_encoder))

    def change(name: str, content: bytes | None) -> None:
        (folder / name).unlink()
        if content is not None:
            (folder / name).write_bytes(content)

    return change


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", ["missing", "empty", "truncated", "corrupted"])
def test_a_file_that_is_not_the_one_shipped_is_named_with_what_to_do(
    broken: Break, tmp_path: Path, name: str, damage: str
) -> None:
    content = (MODEL / name).read_bytes()
    middle = len(content) // 2
    broken(
        name,
        {
            "missing": None,
            "empty": b"",
            "truncated": content[:middle],
            "corrupted": content[:middle] + b"\xff" + content[middle + 1 :],
        }[damage],
    )
    says = "cannot be read" if damage == "missing" else "is damaged"
    with pytest.raises(ModelFileError, match=says) as raised:
        load_encoder(1)
    assert "Install langchain-groundedness again." in str(raised.value)
    named = [each for each in FILES if each in str(raised.value)]
    # Half of the checksums may still be checksums: then it is the other file that looks wrong.
    assert named == [name] or name == "encoder.json"
    assert str(tmp_path) not in str(raised.value)


@pytest.mark.parametrize(
    "content", ["[]", "{}", '{"sha256": null}', '{"sha256": []}', '{"sha256": {"a": "b"}}', "null"]
)
def test_checksums_that_are_none_are_an_error_too(broken: Break, content: str) -> None:
    broken("encoder.json", content.encode())
    with pytest.raises(ModelFileError, match="damaged"):
        load_encoder(1)


@pytest.mark.parametrize("name", FILES[:2])
def test_a_whole_file_that_the_installed_packages_cannot_load_is_said_to_be_that(
    broken: Break, name: str
) -> None:
    content = b"of the future"
    sums = json.loads((MODEL / "encoder.json").read_bytes())["sha256"]
    sums[name] = hashlib.sha256(content).hexdigest()
    broken(name, content)
    broken("encoder.json", json.dumps({"sha256": sums}).encode())
    with pytest.raises(ModelFileError, match="Install newer versions of onnxruntime"):
        load_encoder(1)


@pytest.mark.parametrize(
    ("name", "load"),
    [
        ("words.json", inverse_frequencies),
        ("signals.json", support_model),
    ],
)
@pytest.mark.parametrize("content", [None, b"", b"[]", b"{}", b"\xff"])
def test_tables_are_named_in_errors_as_networks_are(
    broken: Break, name: str, load: Callable[[], object], content: bytes | None
) -> None:
    broken(name, content)
    with pytest.raises(ModelFileError, match=re.escape(name)):
        load.__wrapped__()  # type: ignore[attr-defined]


TASK = VerificationTask(
    claims=(Claim(id="1", text="Rome is old."),), documents=(Document("Rome is old."),)
)
QUESTION = {"answer": "Rome is old.", "documents": ["Rome is old."]}


def test_a_broken_model_is_an_error_of_the_verifier_however_it_is_called(broken: Break) -> None:
    broken("encoder.onnx", b"")
    verifier = EmbeddedVerifier()
    with pytest.raises(ModelFileError):
        verifier.warm_up()
    with pytest.raises(ModelFileError):
        verifier.invoke(TASK)
    with pytest.raises(ModelFileError):
        asyncio.run(verifier.ainvoke(TASK))
    with pytest.raises(ModelFileError):
        list(verifier.stream(TASK))
    outcomes: list[object] = list(verifier.batch([TASK, TASK], return_exceptions=True))
    assert [type(outcome) for outcome in outcomes] == [ModelFileError, ModelFileError]


@pytest.mark.parametrize("raise_on_failure", [True, False])
def test_a_broken_model_is_an_error_of_the_check_and_no_verdict(
    broken: Break,
    raise_on_failure: bool,  # noqa: FBT001  (pytest passes it by name)
) -> None:
    broken("tokenizer.json", None)
    checker = GroundednessRunnable(raise_on_failure=raise_on_failure)
    with pytest.raises(ConfigurationError, match=r"tokenizer\.json .* cannot be read"):
        checker.warm_up()
    with pytest.raises(ModelFileError, match=r"tokenizer\.json .* cannot be read"):
        checker.invoke(QUESTION)
    with pytest.raises(ModelFileError):
        asyncio.run(checker.ainvoke(QUESTION))
    with pytest.raises(ModelFileError):
        list(checker.stream(QUESTION))
    outcomes: list[object] = list(checker.batch([QUESTION], return_exceptions=True))
    assert [type(outcome) for outcome in outcomes] == [ModelFileError]


def test_a_guard_with_a_broken_model_lets_nothing_through(broken: Break) -> None:
    broken("encoder.onnx", None)
    released: list[str] = []
    with pytest.raises(ModelFileError):
        released.extend(GroundednessGuard(GroundednessRunnable()).stream(QUESTION))
    assert released == []


@pytest.mark.parametrize("name", FILES)
def test_the_command_line_says_in_one_line_that_the_model_is_broken(
    broken: Break, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    broken(name, b"")
    document = tmp_path / "report.md"
    document.write_text("Rome is old.", encoding="utf-8")
    with pytest.raises(SystemExit) as stopped:
        cli.run(["check", "--answer", "Rome is old.", "--documents", str(document)])
    shown = capsys.readouterr()
    assert stopped.value.code == 2
    assert shown.out == ""
    assert shown.err == (
        f"cannot check: {name} of the embedded verifier is damaged: it is not the file that was "
        "shipped. Install langchain-groundedness again.\n"
    )


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are counted in /proc")
def test_nothing_runs_in_the_background_once_the_model_is_loaded() -> None:
    code = """
import os, time
from langchain_groundedness import EmbeddedVerifier
EmbeddedVerifier(threads=1).warm_up()
while len(os.listdir("/proc/self/task")) > 1:  # the thread that has loaded the model ends soon
    time.sleep(0.01)
print("alone")
"""
    # Of its own accord, ONNX Runtime starts a thread that reports its use over the network.
    environment = {k: v for k, v in os.environ.items() if k != "ORT_DISABLE_TELEMETRY"}
    environment |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment, cwd=MODEL.parent.parent, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "alone\n"


@pytest.mark.skipif(sys.platform != "linux", reason="memory is measured as Linux counts it")
def test_the_memory_it_takes_is_bounded_however_long_the_pairs() -> None:
    code = """
from langchain_groundedness import EmbeddedVerifier
from langchain_groundedness.verification.embedded.encoder import Pair, encoder
def peak():
    return int(open("/proc/self/status").read().partition("VmHWM:")[2].split()[0]) / 1024
before = peak()
for words in (30, 100, 200, 350, 600):
    encoder().logits([Pair("stone " * words, f"Stone {n}.") for n in range(12)])
print(peak() - before)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=MODEL.parent.parent, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert float(done.stdout) < 250, "in MB; about 190 are usual"


@pytest.mark.skipif(
    sys.platform != "linux" or os.nice(0) > 4,
    reason="elsewhere threads have no priority of their own, and 19 is the last step",
)
def test_the_threads_of_the_network_leave_the_cores_to_others() -> None:
    code = """
import os, time
from contextlib import suppress
from pathlib import Path
from langchain_groundedness.verification.embedded.encoder import Pair, encoder
encoder(3).logits([Pair("Rome is in Italy.", "Rome is in Italy.")])
usual = os.nice(0)
def behind():
    for path in Path("/proc/self/task").glob("*/stat"):
        with suppress(OSError):  # it ends meanwhile
            step = int(path.read_text().rpartition(")")[2].split()[16]) - usual
            if step:
                yield step
while len(found := list(behind())) > 2:  # the thread that has loaded the model ends soon
    time.sleep(0.01)
print(found, usual)
"""
    assert python(code) == f"[15, 15] {os.nice(0)}\n"


def test_what_was_asked_before_the_main_thread_ended_is_answered() -> None:
    code = """
from langchain_groundedness.verification.embedded.encoder import Pair
from langchain_groundedness.verification.embedded.batching import pair_scorer
asked = pair_scorer(1).submit([Pair("Rome is in Italy.", "Rome is in Italy.")])
asked.add_done_callback(lambda done: print(done.exception() or done.result().shape))
"""
    assert python(code) == "(1, 3)\n"


def python(code: str) -> str:
    command, here = [sys.executable, "-c", code], MODEL.parent.parent
    return subprocess.run(command, cwd=here, capture_output=True, text=True, check=True).stdout
