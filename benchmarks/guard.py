"""Measure what policy and audit log cost: `python benchmarks/guard.py [--postgres]`.

The stages of the check are scripted and do next to nothing. First an answer is checked with and
without a log, in turns, so that whatever else the machine does falls on both; then records are
handed over as fast as the store takes them. A scratch PostgreSQL server is started if asked for.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from audit.postgres_cluster import Cluster
from langchain_core.runnables import RunnableLambda
from overhead import DOCUMENTS, SENTENCE, claims_of, verdicts_on

from langchain_groundedness import (
    Decision,
    DecisionPolicy,
    GroundednessRunnable,
    JsonlAuditLog,
    SQLAuditLog,
)
from langchain_groundedness.audit import AuditLog, AuditRecord

TARGET_MS = 2.0
CLAIMS = 5


def checker(log: AuditLog | None = None) -> GroundednessRunnable:
    """Build a check whose stages reply at once."""
    return GroundednessRunnable(
        extractor=RunnableLambda(claims_of),
        verifier=RunnableLambda(verdicts_on),
        policy=DecisionPolicy(),
        audit_log=log,
    )


@contextmanager
def stores(folder: Path, *, postgres: bool) -> Iterator[dict[str, AuditLog]]:
    """Open one log of each kind."""
    with ExitStack() as stack:
        found: dict[str, Callable[[], AuditLog]] = {
            "JSON lines": lambda: JsonlAuditLog(folder / "audit.jsonl"),
            "SQLite": lambda: SQLAuditLog(f"sqlite:///{folder / 'audit.db'}"),
        }
        if postgres:
            cluster = Cluster()
            stack.callback(cluster.remove)
            spool = folder / "spool"
            found["PostgreSQL"] = lambda: SQLAuditLog(cluster.url, spool_path=spool)
        yield {name: stack.enter_context(make()) for name, make in found.items()}


def timed(work: Callable[[], Any]) -> float:
    """Give the milliseconds of a call."""
    began = perf_counter()
    work()
    return 1000 * (perf_counter() - began)


def added(log: AuditLog, *, repeat: int) -> list[float]:
    """Give what the log has added to each of many answers, in milliseconds."""
    answer = " ".join(SENTENCE.format(n, 7 * n) for n in range(CLAIMS))
    row = {"question": "How much?", "answer": answer, "documents": DOCUMENTS}
    without, with_log = checker(), checker(log)
    for check in (without, with_log):
        check.invoke(row)
    found = []
    for _ in range(repeat):
        plain = timed(lambda: without.invoke(row))
        found.append(timed(lambda: with_log.invoke(row)) - plain)
    log.flush()
    return found


def policy_ms(*, repeat: int) -> float:
    """Give the median time of one decision in milliseconds."""
    answer = " ".join(SENTENCE.format(n, 7 * n) for n in range(CLAIMS))
    result = checker().invoke({"answer": answer, "documents": DOCUMENTS})
    policy = DecisionPolicy()
    times = [
        timed(lambda: policy.decide(result.claims, answer=answer, trust_score=1.0))
        for _ in range(repeat)
    ]
    return median(times)


def per_second(log: AuditLog, *, number: int) -> float:
    """Give how many records a second become durable, of one process."""
    answer = " ".join(SENTENCE.format(n, 7 * n) for n in range(CLAIMS))
    result = checker().invoke({"answer": answer, "documents": DOCUMENTS[:1]})
    decision = Decision(action="pass")
    records = [AuditRecord.from_result(result, decision=decision) for _ in range(number)]
    began = perf_counter()
    for record in records:
        log.record(record)
    log.flush()
    return number / (perf_counter() - began)


def main() -> int:
    """Print the figures, and fail if the median misses the target."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=300)
    parser.add_argument("--records", type=int, default=5000)
    parser.add_argument("--postgres", action="store_true")
    options = parser.parse_args()
    decides = policy_ms(repeat=options.repeat)
    print(f"policy: {decides:.3f} ms per decision at the median")
    print(f"{'store':<12} {'added ms, median':>17} {'95th percentile':>16} {'records/s':>10}")
    missed = []
    with (
        TemporaryDirectory() as folder,
        stores(Path(folder), postgres=options.postgres) as logs,
    ):
        for name, log in logs.items():
            times = added(log, repeat=options.repeat)
            middle, late = median(times), quantiles(times, n=20)[-1]
            rate = per_second(log, number=options.records)
            print(f"{name:<12} {middle:>17.2f} {late:>16.2f} {rate:>10.0f}")
            if middle + decides > TARGET_MS:
                missed.append(f"missed: {name}: {middle + decides:.2f} ms at the median")
    print(f"target: policy and audit log together below {TARGET_MS} ms at the median")
    print(*missed, sep="\n")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
