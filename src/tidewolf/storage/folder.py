"""A folder that many sessions are kept in: one file of SQLite, one process that writes.

`DIR/tidewolf.db` is the file; `-wal`, `-shm` and `-lock` lie beside it, as beside the file of one
session.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import final

from tidewolf.core.errors import BrokenFile, CheckpointError, UnknownSession
from tidewolf.storage.database import Database, SQLite, inode, locked
from tidewolf.storage.session_store_schema import APPLICATION, make, require_format

NAME = "tidewolf.db"
_PRAGMAS = (
    "journal_mode = WAL",
    "synchronous = FULL",
    "fullfsync = ON",
    "wal_autocheckpoint = 4000",  # pages: each time takes syncs beside those of commits
)


@final
class Folder:
    """The file in a folder, for its one writer.

    Parameters
    ----------
    path : path
        The folder; made where it is not there.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.resolve() / NAME
        self.where = str(self.path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = locked(
                Path(f"{self.path}-lock"),
                f"Another process serves the sessions in {self.path.parent}: stop it first, or "
                "give another folder.",
            )
        except (OSError, sqlite3.Error) as error:
            raise self._sentence(error) from None
        try:
            self.writer = opened(self.path, create=True)
            self.reader = SQLite(self.path, "rw", shared=True)
            self._files = {path: inode(path) for path in self._beside()}
        except BaseException as error:
            self._lock.close()
            if isinstance(error, OSError | sqlite3.Error):
                raise self._sentence(error) from None
            raise

    def claim(self, db: Database, number: int, holder: str) -> None:
        """Hold a session, within a transaction: its epoch is one more."""
        sql = "UPDATE sessions SET holder = ? WHERE number = ?"
        if db.execute(sql, (holder, number)).rowcount != 1:
            raise UnknownSession("There is no such session any more: it was deleted.")
        db.execute("UPDATE head SET epoch = epoch + 1 WHERE session = ?", (number,))

    def require_held(self, db: Database, number: int, holder: str) -> None:
        """No other process writes to the file."""

    def lease(self) -> int:
        """What is held stays held."""
        return 0

    @contextmanager
    def reading(self) -> Iterator[Database]:
        """As it is at this moment, whatever is written meanwhile."""
        db = SQLite(self.path, "rw")
        try:
            db.execute("BEGIN")
            yield db
        finally:
            db.close()

    def require_there(self) -> None:
        """Refuse to go on where the file was deleted or replaced."""
        if any(inode(path) != was for path, was in self._files.items()):
            raise CheckpointError(
                f"{self.where}, or its log, was deleted or replaced while it was served: put it "
                "back from a backup, and start again."
            )

    def close(self) -> None:
        """Let go of it."""
        for connection in (self.reader, self.writer, self._lock):
            connection.close()

    def _beside(self) -> list[Path]:
        return [path for path in (self.path, Path(f"{self.path}-wal")) if path.exists()]

    def _sentence(self, error: Exception) -> CheckpointError:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CANTOPEN) & 0xFF
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            return BrokenFile(f"{self.where} is truncated or was changed: {error}. Restore a copy.")
        return CheckpointError(
            f"No sessions can be kept in {self.path.parent}: {error}. Give a folder where files "
            "can be made."
        )


def opened(path: Path, *, create: bool = False) -> SQLite:
    """A connection whose commits are on disk when they return; to tables that are made, where that
    is asked for.
    """
    db = SQLite(path, "rwc" if create else "rw")
    try:
        (kind,), (tables,) = (
            db.execute(query).fetchone()
            for query in ("PRAGMA application_id", "SELECT count(*) FROM sqlite_master")
        )
        if tables and kind != APPLICATION:
            raise BrokenFile(f"{path} is a file, but not one that a service keeps sessions in.")
        for pragma in _PRAGMAS:
            db.execute(f"PRAGMA {pragma}")
        if not tables:
            with db.transaction():
                db.execute(f"PRAGMA application_id = {APPLICATION}")
                make(db)
        require_format(db, str(path))
        db.execute("BEGIN IMMEDIATE")
        db.execute("UPDATE store SET value = value")  # fails now if the file cannot be written
        db.execute("ROLLBACK")
    except BaseException:
        db.close()
        raise
    return db
