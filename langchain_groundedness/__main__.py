"""Entry of the command line; says what to install when the extra `cli` is missing."""

import sys
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
    run(sys.argv[1:])


if __name__ == "__main__":
    main()
