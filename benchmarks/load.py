"""Put the package under load: `python benchmarks/load.py`; nothing may grow, or stand still.

Each scenario runs in a process of its own, beside a process whose event loop does nothing. Printed:

- `s`: how long it took; `ms`: processor time of all threads per check;
- `p50`, `p99`, `max`: how long the event loop kept others waiting, in ms, as somebody who comes at
  any moment finds it (see `stalls.py`), as far as this process computed meanwhile; `clock`: `p99`
  by the clock; `idle`: the same of the process that does nothing, at the same time, which is what
  the machine's other work adds;
- `step`: the most processor time that one step of the event loop took, in ms;
- `MiB`: resident memory after 10, 50 and 100 % of the checks, and its peak;
- `left`: threads and tasks that are still there at the end, beyond those after the warm-up.

A target is missed, and the exit status 1, if `p99` is 10 ms or more, memory grows by 1 KiB
or more per check from 10 % on (10,000 checks), anything is left, or a check gives anything but one
right verdict per claim. `--scale 0.1` runs a tenth of 10,000 checks, too few to tell growth by;
scenarios of fewer stay as they are.
`--tuned` first makes the settings of the process that `docs/guide/scaling.md` advises a service.
"""

import argparse
import asyncio
import gc
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from load_scenarios import SCENARIOS, Scenario
from stalls import Control, Ticker, longest_step, resident_mib
from watched import GROWTH_TARGET_KIB

STALL_TARGET_MS = 10.0
_FEW = 2
"""So few checks of a scenario are large ones, which are not warmed up for."""
_WARM_UP_AT = 1_000_000
_LEGEND = (
    "s: in all; ms: processor time per check; p50, p99, max: ms that the event loop kept others\n"
    "waiting, by the clock, and a loop without load (idle); step: its longest, ms; MiB: memory"
)
_HEAD = (
    "| scenario              |  checks |      s |      ms |   p50 |    p99 |     max |  clock |"
    "  idle |   step | MiB 10 % |  50 % | 100 % |  peak | left |"
)


def main() -> int:
    """Print the table; fail if a target is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="SCENARIO", help=", ".join(SCENARIOS))
    parser.add_argument(
        "--scale", type=float, default=1.0, help="of the numbers of checks, where they are 10,000"
    )
    parser.add_argument("--tuned", action="store_true", help="with the settings of the guide")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if unknown := set(options.names) - set(SCENARIOS):
        parser.error(f"no scenario {', '.join(sorted(unknown))}; there are {', '.join(SCENARIOS)}")
    if options.tuned:
        sys.setswitchinterval(0.001)
        gc.set_threshold(20_000, 50, 100)
    if options.child:
        print(json.dumps(asyncio.run(measure(SCENARIOS[options.names[0]], options.scale))))
        return 0
    print(_HEAD)
    print("|" + "|".join("-" * len(cell) for cell in _HEAD[1:-1].split("|")) + "|")
    names, tuned = options.names or SCENARIOS, options.tuned
    missed = [why for name in names for why in run(name, options.scale, tuned=tuned)]
    print(*(f"missed: {why}" for why in missed), sep="\n")
    print(_LEGEND)
    return int(bool(missed))


def run(name: str, scale: float, *, tuned: bool) -> Iterator[str]:
    """Print the row of a scenario; give the targets it misses."""
    command = [sys.executable, __file__, name, "--child", "--scale", str(scale)]
    command += ["--tuned"] if tuned else []
    with Control() as control:
        done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if done.returncode:
        print(f"| {name:21} | failed")
        yield f"{name}: the process ended with {done.returncode}"
        return
    row: dict[str, Any] = json.loads(done.stdout)
    memory = row["memory"]
    print(
        f"| {name:21} | {row['checks']:7} | {row['wall']:6.1f} | {row['ms']:7.1f} |"
        f" {row['p50']:5.1f} | {row['p99']:6.1f} | {row['max']:7.1f} |"
        f" {row['clock']:6.1f} | {control.p99:5.1f} |"
        f" {row['step']:6.1f} | {memory[0]:8.1f} | {memory[1]:5.0f} | {memory[2]:5.0f} |"
        f" {row['peak']:5.0f} | {row['left']:4} |",
        flush=True,
    )
    if row["p99"] >= STALL_TARGET_MS:
        busy = (
            f" (a loop without load: {control.p99:.1f})" if control.p99 >= STALL_TARGET_MS else ""
        )
        yield f"{name}: the event loop stalled for {row['p99']:.1f} ms{busy}"
    grown = 1024 * (memory[2] - memory[0]) / (0.9 * row["checks"])
    if SCENARIOS[name].flat and scale >= 1 and grown >= GROWTH_TARGET_KIB:
        yield f"{name}: memory grew by {grown:.2f} KiB per check"
    if row["left"]:
        yield f"{name}: {row['left']} threads or tasks are left"


async def measure(scenario: Scenario, scale: float) -> dict[str, Any]:
    """Run a scenario in this process."""
    work = scenario.begin()
    handler = getattr(work, "handler", None)
    count = max(1, round(scenario.count * scale)) if scenario.flat else scenario.count
    if scenario.count > _FEW:
        await _several(work, iter(range(_WARM_UP_AT, _WARM_UP_AT + 64)), scenario.at_once)
    gc.collect()
    gc.freeze()  # as servers do: else each full pass looks at all modules again
    before = _alive()
    memory: dict[int, float] = {}

    async def noting(number: int) -> None:
        await work(number)
        done[0] += 1
        if done[0] in marks:
            memory[done[0]] = resident_mib()

    done, marks = [0], {max(1, count // 10), max(1, count // 2), count}
    begun, spent = perf_counter(), process_time()
    with longest_step() as step:
        async with Ticker() as ticker:
            await _several(noting, iter(range(count)), scenario.at_once)
    wall, spent = perf_counter() - begun, process_time() - spent
    if handler is not None:
        handler.close()
    gc.collect()
    left = _alive() - before
    held = handler.open_runs if handler is not None else 0
    return {
        "checks": count,
        "wall": wall,
        "ms": 1000 * spent / count,
        "p50": ticker.own.wait_at(0.5),
        "p99": ticker.own.wait_at(0.99),
        "max": 1000 * ticker.own.longest,
        "clock": ticker.late.wait_at(0.99),
        "step": step[0],
        "memory": [memory[place] for place in (max(1, count // 10), max(1, count // 2), count)],
        "peak": _peak_mib(),
        "left": max(0, left) + held,
    }


async def _several(work: Any, numbers: Iterator[int], at_once: int) -> None:
    async def worker() -> None:
        for number in numbers:
            await work(number)

    async with asyncio.TaskGroup() as group:
        for _ in range(at_once):
            group.create_task(worker())


def _alive() -> int:
    """Count tasks and threads, but for threads that stay for the next check."""
    pools = ("asyncio_", "groundedness-encoder", "groundedness-short", "groundedness-long")
    threads = [each for each in threading.enumerate() if not each.name.startswith(pools)]
    return len(threads) + len(asyncio.all_tasks())


def _peak_mib() -> float:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


if __name__ == "__main__":
    sys.exit(main())
