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

from tidewolf.core.errors import UnknownSession
from tidewolf.storage.database import DURABLE, Database, InPlace, SQLite, explained, locked
from tidewolf.storage.schema import STORE_FILE, make_store, require_store

NAME = "tidewolf.db"


@final
class Folder:
    """The file in a folder, for its one writer.

    Parameters
    ----------
    path : path
        The folder; made if it is not there.
    """

    holder = ""

    def __init__(self, path: Path) -> None:
        self.path = path.resolve() / NAME
        self.where = str(self.path)
        self._lock: SQLite | None = None
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = locked(
                Path(f"{self.path}-lock"),
                f"Another process serves the sessions in {self.path.parent}: stop it first, or "
                "give another folder.",
            )
            self.writer = opened(self.path)
            self.reader = SQLite(self.path, "rw")
        except BaseException as error:
            if self._lock is not None:
                self._lock.close()
            if isinstance(error, OSError | sqlite3.Error):
                fix = "Give a folder where files can be made."
                raise explained(error, self.where, fix) from None
            raise
        self._in_place = InPlace(self.path)
        self._in_place.require()

    def claim(self, db: Database, number: int) -> None:
        """Hold a session, within a transaction: its epoch is one more."""
        if not db.execute("UPDATE head SET epoch = epoch + 1 WHERE session = ?", (number,)):
            raise UnknownSession("There is no such session any more: it was deleted.")

    def require_held(self, db: Database, number: int) -> None:
        """No other process writes to the file."""

    def lease(self) -> int:
        """What is held stays held, unless the file was deleted or replaced."""
        return 0

    def require_there(self) -> None:
        """Refuse to write if the file was deleted or replaced."""
        self._in_place.require()

    @contextmanager
    def reading(self) -> Iterator[Database]:
        """As it is at this moment, whatever is written meanwhile."""
        db = SQLite(self.path, "rw")
        try:
            db.execute("BEGIN")
            yield db
        finally:
            db.close()

    def close(self) -> None:
        """Let go of it."""
        for connection in (self.reader, self.writer, self._lock):
            if connection is not None:
                connection.close()


def opened(path: Path) -> SQLite:
    """A connection whose commits are on disk when they return; tables are made if there are
    none.
    """
    db = SQLite(path, "rwc")
    try:
        with db.transaction():
            if db.rows("SELECT count(*) FROM sqlite_master") == [(0,)]:
                db.pragmas(f"application_id = {STORE_FILE}")
                make_store(db)
            require_store(db, path)
            db.execute("UPDATE store SET value = value")  # fails now if the file cannot be written
        # pages: each checkpoint of the log takes syncs beside those of commits
        db.pragmas(*DURABLE, "wal_autocheckpoint = 4000")
    except BaseException:
        db.close()
        raise
    return db
