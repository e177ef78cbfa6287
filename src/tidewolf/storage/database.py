"""A database that sessions are kept in, as the tables see it: statements, transactions, rows.

Statements are standard SQL with `?` for values, the same for SQLite and PostgreSQL: whole numbers
are BIGINT, bytes are of the type `blob`, and what may be there already is written with ON CONFLICT.
A transaction that was left without an error survives the machine.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Protocol, final

from tidewolf.core.errors import CheckpointError


class FateUnknown(CheckpointError):
    """A commit that may or may not have been kept."""


class Rows(Protocol):
    """What a statement found."""

    @property
    def rowcount(self) -> int:
        """How many rows it changed."""
        ...

    def fetchone(self) -> Any:
        """The next row, or None."""
        ...

    def fetchall(self) -> list[Any]:
        """All that are left."""
        ...

    def __iter__(self) -> Iterator[Any]: ...


class Database(Protocol):
    """A connection to a database."""

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """What the driver raises."""
        ...

    @property
    def blob(self) -> str:
        """The type of a column of bytes."""
        ...

    @property
    def name(self) -> str:
        """The type of a column of names, in the order of their characters."""
        ...

    @property
    def keyed(self) -> str:
        """What makes a table of rows that are kept by their key, after its columns."""
        ...

    @property
    def locking(self) -> str:
        """What holds the rows that a SELECT finds until the transaction ends."""
        ...

    def execute(self, sql: str, values: Sequence[Any] = ()) -> Rows:
        """Run a statement."""
        ...

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run it for each of these."""
        ...

    def transaction(self) -> AbstractContextManager[None]:
        """All that is done within it, or nothing; kept for good when it is left."""
        ...

    def savepoint(self) -> AbstractContextManager[None]:
        """A part of a transaction, all of it or nothing."""
        ...

    def append_only(self, table: str) -> Iterable[str]:
        """Statements after which no row of a table can be changed or removed."""
        ...

    def changes(self) -> int | None:
        """A number that changes when another process writes; None if that is unknown."""
        ...

    def close(self) -> None:
        """Let go; twice does no harm."""
        ...


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

    def execute(self, sql: str, values: Sequence[Any] = ()) -> Rows:
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
