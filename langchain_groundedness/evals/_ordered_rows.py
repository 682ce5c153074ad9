"""Reads a run file in the order of the data set, a row at a time."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from langchain_groundedness.evals.run_files import read_line, read_lines
from langchain_groundedness.evals.values import BadRow, EvaluatedRow, RunHeader
from langchain_groundedness.exceptions import ConfigurationError

__all__ = ["RunIndex", "index_run"]


class RunIndex(NamedTuple):
    """Where what stands in a run file."""

    path: Path
    header: RunHeader
    rows: tuple[int, ...]
    """Where each row begins, in bytes, in the order of the data set."""
    bad_rows: tuple[BadRow, ...]

    def read(self) -> Iterator[EvaluatedRow | BadRow]:
        """Read the rows, one at a time.

        Yields:
            All rows in the order of the data set, then those that could not be read.
        """
        with self.path.open("rb") as file:
            for begin in self.rows:
                file.seek(begin)
                data = file.readline()
                while data and not data.strip():
                    data = file.readline()
                line = read_line(data, file.tell(), f"{self.path}, at byte {begin}")
                if line is not None and isinstance(line.value, EvaluatedRow):
                    yield line.value
        yield from self.bad_rows


def index_run(path: str | Path) -> RunIndex:
    """Look through a run file.

    Args:
        path: The file.

    Returns:
        What stands where; of several lines about a row, the last counts.

    Raises:
        ConfigurationError: There is no such file, or a line of it is no line of a run.
    """
    header: RunHeader | None = None
    begins: dict[str, tuple[float, int]] = {}
    bad: dict[BadRow, None] = {}
    begin = 0
    for line in read_lines(path):
        if isinstance(line.value, RunHeader):
            header = line.value
        elif isinstance(line.value, EvaluatedRow):
            place = line.value.line if line.place is None else line.place
            begins[line.value.row.id] = float("inf") if place is None else place, begin
        elif isinstance(line.value, BadRow):
            bad[line.value] = None
        begin = line.end
    if header is None:
        msg = f"{path}: no run in it: it is empty"
        raise ConfigurationError(msg)
    rows = tuple(where for _, where in sorted(begins.values()))
    return RunIndex(Path(path), header, rows, tuple(bad))
