"""The file of one session: locked by its one writer, and checked for removal.

`PATH-lock` is held from opening to closing, and says how many observations were acknowledged;
`docs/reference/formats.md` has the rest.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, final

from tidewolf.core import arguments, values
from tidewolf.core.errors import BrokenFile, CheckpointError
from tidewolf.methods import base, capabilities
from tidewolf.storage import database, tables
from tidewolf.storage.tables import Tables

# How often files are copied again that a writer changed meanwhile.
_ATTEMPTS = 20
# Where a file of SQLite has `user_version`, as four bytes.
_USER_VERSION = 60


@final
class File:
    errors: tuple[type[Exception], ...] = (sqlite3.Error,)

    def __init__(self, path: str | os.PathLike[str], *, read_only: bool = False) -> None:
        self.path = arguments.as_path(path, "The path of a session").resolve()
        self.where = self.store = str(self.path)
        self.read_only = arguments.as_flag(read_only, "read_only")
        self._db: database.SQLite | None = None
        self._tables: Tables | None = None
        self._lock: database.SQLite | None = None
        # the file of the lock, to be written to
        self._note = -1
        self._copy: tempfile.TemporaryDirectory[str] | None = None
        self._in_place = database.InPlace(self.path)
        self._acknowledged = 0

    def open(self, learner: base.Learner[Any]) -> tuple[tables.Content, int]:
        """All there is, checked, and the epoch of this writer, one more than that of the writer
        before; made if there is no file.
        """
        try:
            db = self._db = self._look() if self.read_only else self._opened(learner)
            self._tables = Tables(db)
            with db.connection:
                db.execute("BEGIN")
                tables.require_format(db, self.path, tables.SESSION_FILE)
                if db.rows("PRAGMA quick_check(1)") != [("ok",)]:
                    raise BrokenFile(f"{self.path} is truncated. Go back to an earlier copy.")
                content = self._tables.read_content(self.where)
            if self._lock is not None:
                ((self._acknowledged,),) = self._lock.rows("PRAGMA user_version")
                self._note = os.open(f"{self.path}-lock", os.O_WRONLY)
                if self._acknowledged > (last := content.head.last):
                    raise BrokenFile(
                        f"{self.path} holds {last} events, and {self._acknowledged} were "
                        "acknowledged: put its -wal back, or remove its -lock to do without them."
                    )
                db.pragmas(*database.DURABLE)
                self._in_place.require()
            return content, content.head.epoch + 1
        except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
            fix = "Give a path in a folder where files can be made."
            raise database.explained(error, self.where, fix) from None

    @property
    def tables(self) -> Tables:
        if self._tables is None:
            raise CheckpointError(f"The session in {self.where} is closed: open it again.")
        return self._tables

    def require_writable(self) -> None:
        assert self.tables
        self._in_place.require()

    def write(self, do: Callable[[Tables], None], last: int) -> None:
        """One transaction, on disk when this returns; `last` is the number of the last event
        then, which is noted beside the file: the note is not flushed, and never too high.
        """
        assert self._db is not None
        assert self._tables is not None
        if last < self._acknowledged:
            self._acknowledge(last)
        with self._db.transaction():
            do(self._tables)
        if last != self._acknowledged:
            self._acknowledge(last)

    def _acknowledge(self, count: int) -> None:
        with suppress(OSError):  # what SQLite would write, in a tenth of its time
            os.pwrite(self._note, min(count, 2**31 - 1).to_bytes(4), _USER_VERSION)
        self._acknowledged = count

    def reread(self) -> Tables | None:
        """What the file holds after an interrupt; None if that is not known."""
        assert self._db is not None
        self._db.connection.rollback()  # else rows would be read that are not committed
        return self.tables if self._in_place.holds() else None

    def close(self) -> None:
        if self._db is not None:
            self._db.close()
        if self._note >= 0:  # before the lock, which the system takes back with any of its files
            os.close(self._note)
        if self._lock is not None:
            self._lock.close()
        self._db = self._lock = self._tables = None
        self._note = -1
        if self._copy is not None:
            self._copy.cleanup()
            self._copy = None

    def _opened(self, learner: base.Learner[Any]) -> database.SQLite:
        if self.path.exists():
            self._db = database.SQLite(self.path, "rw")
            tables.require_format(self._db, self.path, tables.SESSION_FILE)
        self._lock = database.locked(
            Path(f"{self.path}-lock"),
            f"Another session, of this process or of another, writes to {self.path}: close it "
            "first, or look with read_only=True.",
        )
        if not self.path.exists():
            self._lock.execute("PRAGMA user_version = 0")
            self._create(learner)
        return self._db or database.SQLite(self.path, "rw")

    def _look(self) -> database.SQLite:
        """The file to be read; a copy if SQLite cannot read it in place, because it may write
        nothing beside it.
        """
        self._db = database.SQLite(self.path, "ro")
        try:
            tables.require_format(self._db, self.path, tables.SESSION_FILE)
            return self._db
        except sqlite3.OperationalError:
            if not os.access(self.path, os.R_OK):
                raise
        self._db.close()
        self._copy = tempfile.TemporaryDirectory(prefix="tidewolf-")
        return database.SQLite(_copied(self.path, Path(self._copy.name)), "rw")

    def _create(self, learner: base.Learner[Any]) -> None:
        state = learner.save(capabilities.beginning(learner))
        fresh = Path(f"{self.path}-new")
        for stale in (fresh, f"{fresh}-journal", f"{self.path}-wal", f"{self.path}-shm"):
            Path(stale).unlink(missing_ok=True)
        with closing(database.SQLite(fresh, "rwc")) as db, db.transaction():
            tables.make_tables(db, tables.SESSION_TABLES)
            db.pragmas(f"application_id = {tables.SESSION_FILE}", f"user_version = {tables.FORMAT}")
            db.execute("INSERT INTO head VALUES (1, 0, x'', 0, x'', 0, 0, 0)")
            Tables(db).begin(tables.digest(values.identity(learner).encode()), state)
        os.replace(fresh, self.path)


def _copied(path: Path, folder: Path) -> Path:
    files = [path, Path(f"{path}-wal")]
    for _ in range(_ATTEMPTS):
        before = [_changed(file) for file in files]
        for file, there in zip(files, before, strict=True):
            copy = folder / file.name
            copy.unlink(missing_ok=True)
            if there is not None:
                with suppress(FileNotFoundError):  # a writer that closes removes its log
                    shutil.copyfile(file, copy)
        if before == [_changed(file) for file in files]:
            return folder / path.name
        time.sleep(0.01)
    raise CheckpointError(f"{path} changes faster than it can be copied: try again.")


def _changed(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
