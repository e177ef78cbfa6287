"""One writer at a time: a file that is locked from opening to closing, and that the system lets go
of when the process ends, however that comes.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from tidewolf.core.errors import CheckpointError, InUse
from tidewolf.storage.database import SQLite


def locked(path: Path, in_use: str) -> SQLite:
    """Hold the lock of this path until it is closed; `in_use` is the error if it is held."""
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
