"""Evaluation on a Ray cluster of several workers; the cluster lives in a process of its own."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).with_name("ray_process.py")


class Cluster:
    """The process with the cluster."""

    def __init__(self) -> None:
        places = [str(SCRIPT.parent), str(SCRIPT.parent.parent.parent)]
        self._process = subprocess.Popen(
            [sys.executable, str(SCRIPT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(places)},
        )
        self.begun = self._said()

    def do(self, task: str, folder: Path) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{task} {folder}\n")
        self._process.stdin.flush()
        return self._said()

    def end(self) -> None:
        try:
            self._process.communicate(timeout=300)
        finally:
            self._process.kill()  # one that has not ended would outlive the tests
        assert self._process.returncode == 0

    def _said(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the process has ended"
        return json.loads(line)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    need_ray()
    started = Cluster()
    yield started
    started.end()
    assert_nothing_is_left(started.begun)


def need_ray() -> None:
    if find_spec("ray") is None:
        assert "GROUNDEDNESS_NEEDS_RAY" not in os.environ, "CI must not skip these tests"
        pytest.skip("Ray is not installed (pip install ray)")


def assert_nothing_is_left(begun: dict[str, Any]) -> None:
    assert not Path(begun["session"]).parent.exists()
    alive = [pid for pid in begun["family"] if Path(f"/proc/{pid}/cmdline").exists()]
    of_ray = [pid for pid in alive if begun["session"] in Path(f"/proc/{pid}/cmdline").read_text()]
    assert of_ray == []


def test_ray_gives_the_same_rows_scores_and_file_as_threads_do(
    cluster: Cluster, tmp_path: Path
) -> None:
    found = cluster.do("equal", tmp_path)
    assert found["ray"] == found["local"] == found["file"]
    assert found["statuses"] == ["failed", "scored", "skipped"]
    assert len(found["ray"]["rows"]) == 41
    assert len(found["ray"]["bad_rows"]) == 3


def test_rows_of_a_worker_that_is_killed_are_done_again_none_lost_or_doubled(
    cluster: Cluster, tmp_path: Path
) -> None:
    found = cluster.do("killed", tmp_path)
    expected = [f"r{n}" if n != 30 else "stay" for n in range(60)]
    assert found["ids"] == expected
    assert Counter(found["written"]) == Counter(expected)


def test_a_row_that_kills_each_worker_fails_alone_and_says_so(
    cluster: Cluster, tmp_path: Path
) -> None:
    found = cluster.do("deadly", tmp_path)
    status, reason = found.pop("deadly")
    assert status == "failed"
    assert "died 2 times" in reason
    assert found == {f"r{n}": ["scored", None] for n in range(12) if n != 5}


def test_an_interrupted_run_goes_on_without_paying_twice(cluster: Cluster, tmp_path: Path) -> None:
    found = cluster.do("resumed", tmp_path)
    before, asked = set(found["before"]), set(found["asked_after"])
    assert not found["complete_before"]
    assert 0 < len(before) < 600
    assert not before & asked
    assert found["after"] == [f"r{n}" for n in range(600)]
    assert Counter(found["written"]) == Counter(found["after"])


def test_ctrl_c_ends_the_run_and_keeps_what_is_done(cluster: Cluster, tmp_path: Path) -> None:
    found = cluster.do("interrupted", tmp_path)
    assert found["complete"] is False
    assert found["rows"] < 200_000


def test_only_so_many_rows_are_in_flight_however_many_there_are(
    cluster: Cluster, tmp_path: Path
) -> None:
    found = cluster.do("bounded", tmp_path)
    assert found["rows"] == 20_000
    assert found["most"] <= found["allowed"] < 20_000 / 4
    assert found["kept"] == 0


def test_when_ray_gives_up_the_rows_in_flight_are_named_and_nothing_of_them_is_shown(
    cluster: Cluster, tmp_path: Path
) -> None:
    found = cluster.do("broken", tmp_path)
    assert set(found["ids"]) <= {"r0", "r1", "r2"}
    assert "Ray gave up (" in found["said"]
    assert "can be resumed" in found["said"]
    assert "secret" not in found["said"]


def test_the_command_prints_its_summary_alone_and_writes_parquet(
    cluster: Cluster, tmp_path: Path
) -> None:
    found = cluster.do("commanded", tmp_path)
    assert found["code"] in {None, 0}
    summary = json.loads(found["out"])
    assert summary["complete"] is True
    assert found["ids"] == [f"r{n}" for n in range(20)]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_nothing_listens_beyond_this_machine(cluster: Cluster, tmp_path: Path) -> None:
    loopback = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}
    found = set(cluster.do("listening", tmp_path))
    assert found
    assert found <= loopback
