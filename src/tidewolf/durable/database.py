"""A database that sessions are kept in, as the tables see it: statements, transactions, rows.

Statements are standard SQL with `?` for values, the same for SQLite and PostgreSQL: whole numbers
are BIGINT, bytes are of the type `blob`, and what may be there already is written with ON CONFLICT.
A transaction that was left without an error survives the machine.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Protocol, final


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

    errors: tuple[type[Exception], ...]
    """what the driver raises"""
    blob: str
    """the type of a column of bytes"""
    locking: str
    """what holds the rows that a SELECT finds until the transaction ends"""

    def execute(self, sql: str, values: Sequence[Any] = ()) -> Rows:
        """Run a statement."""
        ...

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]]) -> Any:
        """Run it for each of these."""
        ...

    def transaction(self) -> AbstractContextManager[None]:
        """All that is done within it, or nothing; kept for good when it is left."""
        ...

    def savepoint(self) -> AbstractContextManager[None]:
        """A part of a transaction, all of it or nothing."""
        ...

    def close(self) -> None:
        """Let go; twice does no harm."""
        ...


@final
class SQLite:
    """A connection to a file of SQLite."""

    errors: tuple[type[Exception], ...] = (sqlite3.Error,)
    blob = "BLOB"
    locking = ""

    def __init__(self, path: Path, mode: str, timeout: float = 5.0) -> None:
        self.connection = sqlite3.connect(
            f"{path.as_uri()}?mode={mode}",
            timeout,
            uri=True,
            isolation_level=None,
            check_same_thread=False,
        )
        self.execute, self.executemany = self.connection.execute, self.connection.executemany
        self.close = self.connection.close

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """With the file locked for writing from its beginning."""
        with self.connection:
            self.execute("BEGIN IMMEDIATE")
            yield

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
