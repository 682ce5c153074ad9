"""Entry of the command line; says what to install when the extra `cli` is missing."""

import sys

from langchain_groundedness.exceptions import MissingDependencyError, require

__all__ = ["main"]


def main() -> None:
    """Run the command line on the arguments of this process, and exit with its code."""
    try:
        require("typer", extra="cli")
        require("rich", extra="cli")
    except MissingDependencyError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(2)
    from langchain_groundedness.cli import run  # noqa: PLC0415  (needs the two above)

    run(sys.argv[1:])


if __name__ == "__main__":
    main()
