"""A database that sessions are kept in, as the tables see it: statements, transactions, rows.

Statements are standard SQL with `?` for values, the same for SQLite and PostgreSQL: whole numbers
are BIGINT, bytes are of the type `blob`, and what may be there already is written with ON CONFLICT.
A transaction that was left without an error survives the machine.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, final

from tidewolf.core.errors import CheckpointError, InUse

if TYPE_CHECKING:
    from tidewolf.storage.postgres import Postgres


class FateUnknown(CheckpointError):
    """A commit that may or may not have been kept."""


Database: TypeAlias = "SQLite | Postgres"
"""A connection to a database."""


@final
class _Fetched:
    """Rows of a statement that is over."""

    def __init__(self, cursor: sqlite3.Cursor) -> None:
        self._left, self.rowcount = iter(cursor.fetchall()), cursor.rowcount

    def fetchone(self) -> Any:
        return next(self._left, None)

    def fetchall(self) -> list[Any]:
        return list(self._left)

    def __iter__(self) -> Iterator[Any]:
        return self._left


@final
class SQLite:
    """A connection to a file of SQLite.

    One that is `shared` is read from by threads, and each statement is over before the next begins:
    one that was still read from would show the file to all of them as it was when it began.
    """

    errors: tuple[type[Exception], ...] = (sqlite3.Error,)
    blob = "BLOB"
    name = "TEXT"
    keyed = " WITHOUT ROWID"
    locking = ""

    def __init__(
        self, path: Path, mode: str, timeout: float = 5.0, *, shared: bool = False
    ) -> None:
        self._turn = threading.Lock() if shared else None
        self.connection = sqlite3.connect(
            f"{path.as_uri()}?mode={mode}",
            timeout,
            uri=True,
            isolation_level=None,
            check_same_thread=False,
        )

    def execute(self, sql: str, values: Sequence[Any] = ()) -> sqlite3.Cursor | _Fetched:
        if self._turn is None:
            return self.connection.execute(sql, values)
        with self._turn:
            return _Fetched(self.connection.execute(sql, values))

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        self.connection.executemany(sql, rows)

    def close(self) -> None:
        self.connection.close()

    def transaction(self) -> AbstractContextManager[None]:
        """With the file locked for writing from its beginning."""
        return _Transaction(self)

    def undo(self) -> None:
        """End a transaction that an interrupt left open."""
        self.connection.rollback()

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        self.execute("SAVEPOINT part")
        try:
            yield
        except BaseException:
            if self.connection.in_transaction:  # a full disk may have ended it
                self.execute("ROLLBACK TO part")
            raise
        finally:
            if self.connection.in_transaction:
                self.execute("RELEASE part")

    def append_only(self, table: str) -> Iterable[str]:
        for act in ("UPDATE", "DELETE"):
            yield (
                f"CREATE TRIGGER IF NOT EXISTS {table}_{act.lower()} BEFORE {act} ON {table} BEGIN "
                f"SELECT RAISE(ABORT, 'rows of {table} are never changed'); END"
            )

    def changes(self) -> int | None:
        return int(self.execute("PRAGMA data_version").fetchone()[0])


@final
class _Transaction:
    """A transaction of SQLite.

    No generator: one that an interrupt leaves suspended is closed whenever its traceback is freed,
    and would then undo the transaction of that moment.
    """

    def __init__(self, db: SQLite) -> None:
        self._db = db

    def __enter__(self) -> None:
        self._db.execute("BEGIN IMMEDIATE")

    def __exit__(self, *error: Any) -> None:
        self._db.connection.__exit__(*error)


def locked(path: Path, in_use: str) -> SQLite:
    """Hold the lock of this path until it is closed, or the process ends; `in_use` is the message
    if another process holds it.
    """
    lock = SQLite(path, "rwc", timeout=0.0)
    try:
        for statement in (
            "PRAGMA locking_mode = EXCLUSIVE",
            "PRAGMA journal_mode = MEMORY",
            "PRAGMA synchronous = OFF",
        ):
            lock.execute(statement)
        lock.execute("BEGIN EXCLUSIVE")
        lock.execute("COMMIT")
    except sqlite3.DatabaseError as error:
        lock.close()
        if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
            raise CheckpointError(
                f"{path} cannot be locked: {error}. Remove it, if no session is open, and try "
                "again."
            ) from None
        raise InUse(in_use) from None
    return lock


def inode(path: Path) -> tuple[int, int] | None:
    """The device and the number of a file, which another in its place has not; None where there is
    none.
    """
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino
