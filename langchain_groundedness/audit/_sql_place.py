"""Where the database of the SQL audit log is. Needs the extra `sql`."""

from pathlib import Path
from typing import NamedTuple

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import SQLAlchemyError

from langchain_groundedness.audit._files import refuse_symlink
from langchain_groundedness.exceptions import ConfigurationError, require

__all__ = ["Place", "place_of"]

_DRIVERS = {"postgres": "postgresql+psycopg", "postgresql": "postgresql+psycopg"}


class Place(NamedTuple):
    """Where a database is."""

    url: URL
    path: Path | None
    """The file, if it is one."""

    def __str__(self) -> str:
        """Say where it is without any secret."""
        bare = URL.create(
            self.url.drivername, host=self.url.host, port=self.url.port, database=self.url.database
        )
        return bare.render_as_string()


def place_of(url: str) -> Place:
    """Read the URL of a database.

    Args:
        url: As SQLAlchemy reads it, of SQLite or PostgreSQL.

    Returns:
        The place.

    Raises:
        ConfigurationError: It cannot be read, or is of another database, or in memory.
    """
    accepted = "accepted: sqlite:///path/to/file.db and postgresql://user:password@host/database"
    try:
        read = make_url(url)
    except (SQLAlchemyError, ValueError):
        msg = f"url cannot be read as the URL of a database; {accepted}"
        raise ConfigurationError(msg) from None  # the cause may quote the password
    read = read.set(drivername=_DRIVERS.get(read.drivername, read.drivername))
    kind = read.get_backend_name()
    if kind == "postgresql":
        if read.get_driver_name() == "psycopg":
            require("psycopg", extra="postgres")
        return Place(read, None)
    if kind != "sqlite" or read.get_driver_name() not in ("pysqlite", ""):
        msg = f"url is of {read.drivername}, which is not supported; {accepted}"
        raise ConfigurationError(msg)
    if not read.database or read.database == ":memory:" or read.database.startswith("file:"):
        msg = f"url names no file: an audit log in memory would be lost; {accepted}"
        raise ConfigurationError(msg)
    path = Path(read.database).absolute()
    refuse_symlink(path, "the file of url")
    return Place(read, path)
