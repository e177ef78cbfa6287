"""Databases that sessions are kept in: statements, transactions, rows; here those of SQLite.

Statements are standard SQL with `?` for values, the same for SQLite and PostgreSQL (postgres.py):
`execute` changes rows and counts them, `rows` reads. A connection names what differs: its types of
bytes (`blob`) and names, what stands after a table (`keyed`), and how rows are locked (`locking`).
A transaction that was left without an error survives the machine.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Generator, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias, final

from tidewolf.core.errors import BrokenFile, CheckpointError, InUse

if TYPE_CHECKING:
    from tidewolf.storage.postgres import Postgres

# Settings under which a commit is on disk when it returns, and readers see the file meanwhile.
DURABLE = ("journal_mode = WAL", "synchronous = FULL", "fullfsync = ON")
# SQLite's errors that say nothing about what is in a file.
_OF_THE_PLACE = {"BUSY", "CANTOPEN", "FULL", "IOERR", "NOMEM", "PERM", "READONLY"}


class FateUnknown(CheckpointError):
    """A commit that may or may not have been kept."""


# A connection to a database.
Database: TypeAlias = "SQLite | Postgres"


@final
class SQLite:
    """A connection to a file of SQLite, which threads may share: one statement at a time."""

    errors: tuple[type[Exception], ...] = (sqlite3.Error,)
    blob = "BLOB"
    name = "TEXT"
    keyed = " WITHOUT ROWID"
    locking = ""

    def __init__(self, path: Path, mode: str, timeout: float = 5.0) -> None:
        self._turn = threading.Lock()
        if mode == "rwc":
            with suppress(OSError):  # it is there, or SQLite says why it cannot be
                path.touch(0o600, exist_ok=False)
        self.connection = sqlite3.connect(
            f"{path.as_uri()}?mode={mode}",
            timeout,
            uri=True,
            isolation_level=None,
            check_same_thread=False,
        )

    def execute(self, sql: str, values: Sequence[Any] = ()) -> int:
        with self._turn:
            return self.connection.execute(sql, values).rowcount

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        """All rows of a statement: one that was still read from would keep its connection in the
        past.
        """
        with self._turn:
            return self.connection.execute(sql, values).fetchall()

    def stream(self, sql: str, values: Sequence[Any] = ()) -> Generator[Any]:
        yield from self.connection.execute(sql, values)

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        self.connection.executemany(sql, rows)

    def pragmas(self, *settings: str) -> None:
        for setting in settings:
            self.rows(f"PRAGMA {setting}")

    def close(self) -> None:
        self.connection.close()

    def transaction(self) -> Self:
        """With the file locked for writing from its beginning.

        No generator: one that an interrupt leaves suspended is closed whenever its traceback is
        freed, and would then undo the transaction of that moment.
        """
        return self

    def __enter__(self) -> None:
        self.execute("BEGIN IMMEDIATE")

    def __exit__(self, *error: Any) -> None:
        self.connection.__exit__(*error)

    def append_only(self, table: str) -> Iterable[str]:
        """Statements after which no row of a table can be changed or removed."""
        for act in ("UPDATE", "DELETE"):
            yield (
                f"CREATE TRIGGER IF NOT EXISTS {table}_{act.lower()} BEFORE {act} ON {table} BEGIN "
                f"SELECT RAISE(ABORT, 'rows of {table} are never changed'); END"
            )

    def changes(self) -> int:
        """Another number after another process wrote."""
        return int(self.rows("PRAGMA data_version")[0][0])


def locked(path: Path, in_use: str) -> SQLite:
    """Hold the lock of this path until it is closed, or the process ends; `in_use` is the message
    if another process holds it.
    """
    lock = SQLite(path, "rwc", timeout=0.0)
    try:
        lock.pragmas("locking_mode = EXCLUSIVE", "journal_mode = MEMORY", "synchronous = OFF")
        lock.execute("BEGIN EXCLUSIVE")
        lock.execute("COMMIT")
    except sqlite3.DatabaseError as error:
        lock.close()
        if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
            words = f"{path} cannot be locked: {error}. Remove it if no session is open."
            raise CheckpointError(words) from None
        raise InUse(in_use) from None
    return lock


@final
class InPlace:
    """Whether a database and its log are the files that were opened: one that is deleted or
    replaced under its writer would keep nothing.
    """

    def __init__(self, path: Path) -> None:
        self._paths, self._inodes = (str(path), f"{path}-wal"), dict[str, Any]()

    def holds(self) -> bool:
        """Whether the files are those that were opened; the log is made by the first commit."""
        for path in self._paths:
            try:
                status = os.stat(path)
                if self._inodes.setdefault(path, inode := (status.st_dev, status.st_ino)) != inode:
                    return False
            except OSError:
                if path in self._inodes:
                    return False
        return True

    def require(self) -> None:
        if not self.holds():
            raise CheckpointError(
                f"{self._paths[0]}, or its log, was deleted or replaced while it was open. Put it "
                "back, or save(path) what the session knows."
            )


def explained(error: Exception, where: str, fix: str) -> CheckpointError:
    name = getattr(error, "sqlite_errorname", "SQLITE_CANTOPEN")
    if name.split("_")[1] in _OF_THE_PLACE and not isinstance(error, UnicodeDecodeError):
        return CheckpointError(f"{where} cannot be used: {error}. {fix}")
    return BrokenFile(f"{where} is truncated or was changed: {error}. Go back to an earlier copy.")
