"""A PostgreSQL server of the tests' own, in a folder of its own, on a unix socket."""

import os
import pwd
import shutil
import subprocess
import tempfile
from functools import cache
from itertools import count
from pathlib import Path
from urllib.parse import quote

import psycopg
from psycopg import sql

USER = "audit"


@cache
def programs() -> Path | None:
    """Where the server's programs are; Debian keeps them off the path."""
    found = shutil.which("initdb")
    places = [Path(found).resolve().parent] if found else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((place for place in places if (place / "pg_ctl").exists()), None)


def server_account() -> str | None:
    """Who runs the server: it refuses to run as root."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in ("postgres", "nobody") if name in names)


class Cluster:
    def __init__(self) -> None:
        # Not below pytest's own folder, which another account cannot enter.
        self.folder = Path(tempfile.mkdtemp(prefix="audit-pg-"))
        self._account = server_account()
        self._numbers = count(1)
        if self._account is not None:
            shutil.chown(self.folder, self._account)
        self._run("initdb", "--auth=trust", f"--username={USER}", "--encoding=UTF8", "--no-sync")
        self.start()

    def database(self) -> str:
        """Make a database that no other test uses, and give its URL."""
        name = f"test_{next(self._numbers)}"
        with psycopg.connect(self._url("postgres"), autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        return self._url(name)

    def _url(self, database: str) -> str:
        return f"postgresql://{USER}@/{database}?host={quote(str(self.folder))}"

    def start(self) -> None:
        options = f"-k {self.folder} -c listen_addresses='' -c max_connections=60"
        log = str(self.folder / "server.log")
        self._run("pg_ctl", "start", "--wait", "--options", options, "--log", log)

    def stop(self, mode: str = "immediate") -> None:
        self._run("pg_ctl", "stop", "--wait", "--mode", mode)

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder)

    def _run(self, program: str, *arguments: str) -> None:
        place = programs()
        assert place is not None
        subprocess.run(
            [place / program, "--pgdata", self.folder / "data", *arguments],
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            user=self._account,
            cwd=self.folder,
            env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C.UTF-8"},
            timeout=300,
        )
