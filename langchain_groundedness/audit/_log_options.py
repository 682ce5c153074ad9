"""Options that audit logs share, refused when a log is made if they cannot work."""

from pathlib import Path
from typing import Any

from langchain_groundedness.audit._files import need_locks, refuse_symlink
from langchain_groundedness.audit._spill import SpillFolder
from langchain_groundedness.exceptions import ConfigurationError

__all__ = ["require_one_of", "require_positive", "spill_folder_of"]


def require_one_of(name: str, value: object, accepted: tuple[str, ...]) -> None:
    """Refuse a value that is not in a closed set.

    Args:
        name: The option.
        value: Its value.
        accepted: The set.

    Raises:
        ConfigurationError: It is not in it.
    """
    if value not in accepted:
        shown = value if isinstance(value, str) else type(value).__name__
        msg = f"{name} must be one of {', '.join(map(repr, accepted))}, got {shown!r}"
        raise ConfigurationError(msg)


def require_positive(**options: Any) -> None:
    """Refuse values that are no whole numbers of at least 1.

    Args:
        **options: The options.

    Raises:
        ConfigurationError: One of them is something else.
    """
    for name, value in options.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            msg = f"{name} must be a whole number of at least 1, got {value!r}"
            raise ConfigurationError(msg)


def spill_folder_of(folder: str | Path | None) -> SpillFolder:
    """Give the folder for records that wait.

    Args:
        folder: The option.

    Returns:
        The folder, which need not be there yet.

    Raises:
        ConfigurationError: There is none, or it cannot be used.
    """
    if not isinstance(folder, str | Path) or not str(folder):
        msg = (
            "spill_folder is needed: a folder for records that wait while the store is down; or "
            'set on_store_down="raise" and on_full="wait"'
        )
        raise ConfigurationError(msg)
    need_locks('records that wait on disk need locks (without: on_store_down="raise")')
    refuse_symlink(Path(folder), "spill_folder")
    return SpillFolder(Path(folder))
