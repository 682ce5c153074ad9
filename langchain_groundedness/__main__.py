"""Entry of the command line."""

import os
import sys
import threading
from importlib import import_module
from typing import Any

__all__ = ["main"]

_INTERRUPTED = 130


def main() -> None:
    """Run the command line on the arguments of this process, and exit with its code."""
    try:
        # Nothing is imported before, so that Ctrl-C shows no traceback meanwhile.
        if sys.argv[1:] == ["--version"]:  # typer takes ten times as long to load
            version = import_module("langchain_groundedness._runtime.installed").PACKAGE_VERSION
            sys.stdout.write(f"langchain-groundedness {version or '(not installed)'}\n")
            return
        run = import_module("langchain_groundedness.cli").run
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
    try:
        run(sys.argv[1:])
    except SystemExit as ended:
        options: Any = sys.modules.get("langchain_groundedness.cli.options")
        is_waiting = options is not None and options.is_waiting()
        if is_waiting or (ended.code == _INTERRUPTED and threading.active_count() > 1):
            _end_at_once(ended.code)
        raise


def _end_at_once(code: Any) -> None:
    """End the process: Python would wait for threads that wait for a model, daemons or not."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 1)


if __name__ == "__main__":
    main()
