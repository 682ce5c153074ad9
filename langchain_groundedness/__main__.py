"""Entry of the command line; says what to install when the extra `cli` is missing."""

import os
import sys
import threading
from importlib import import_module

__all__ = ["main"]

_INTERRUPTED = 130


def main() -> None:
    """Run the command line on the arguments of this process, and exit with its code."""
    try:
        # Nothing is imported before, so that whoever presses Ctrl-C meanwhile sees no traceback.
        exceptions = import_module("langchain_groundedness.exceptions")
        try:
            exceptions.require("typer", extra="cli")
            exceptions.require("rich", extra="cli")
        except exceptions.MissingDependencyError as error:
            sys.stderr.write(f"{error}\n")
            sys.exit(2)
        run = import_module("langchain_groundedness.cli").run
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
    try:
        run(sys.argv[1:])
    except SystemExit as ended:
        if ended.code == _INTERRUPTED:
            _end_at_once()
        raise


def _end_at_once() -> None:
    """End the process if a thread is left that waits for a model: Python would wait for it."""
    if any(
        not each.daemon for each in threading.enumerate() if each is not threading.main_thread()
    ):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(_INTERRUPTED)


if __name__ == "__main__":
    main()
