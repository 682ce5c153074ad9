"""A process that writes records as it is told on its standard input, and says what is durable.

`write N` hands N records over, flushes, and prints how many wait in the
spool; `bring` flushes until none does; `end` ends the process in the ordinary way.
"""

import logging
import sys
import time

from langchain_groundedness import Decision, JsonlAuditLog, SQLAuditLog
from langchain_groundedness.audit import AuditLog, AuditRecord


def log_at(place: str, spool: str) -> AuditLog:
    if "://" in place:
        return SQLAuditLog(place, spool_path=spool, retry_after=0.1)
    return JsonlAuditLog(place, spool_path=spool, rotate_bytes=200_000, fsync=False)


def record(name: str) -> AuditRecord:
    decision = Decision(action="pass")
    return AuditRecord(id=name, verdict="grounded", decision=decision, question="q" * 200)


def tell(words: object) -> None:
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


def main() -> None:
    logging.disable(logging.CRITICAL)
    place, spool, name = sys.argv[1:]
    log, number = log_at(place, spool), 0
    tell("ready")
    for line in sys.stdin:
        command, *arguments = line.split()
        if command == "end":
            return
        if command == "write":
            for _ in range(int(arguments[0])):
                log.record(record(f"{name}-{number:05}"))
                number += 1
        if command == "hand":  # without waiting for it
            for _ in range(int(arguments[0])):
                log.record(record(f"{name}-{number:05}"))
                number += 1
            tell("handed")
            continue
        assert log.flush()
        while command == "bring" and log.spooled:
            time.sleep(0.05)
            assert log.flush()
        tell(log.spooled)


if __name__ == "__main__":
    main()
