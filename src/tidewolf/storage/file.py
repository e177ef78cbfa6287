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
from contextlib import suppress
from pathlib import Path
from typing import Any, final

from tidewolf.core import checkpoint
from tidewolf.core.arguments import as_flag, as_path
from tidewolf.core.errors import BrokenFile, CheckpointError
from tidewolf.core.values import identity
from tidewolf.methods.base import Learner
from tidewolf.storage.database import SQLite, inode, locked
from tidewolf.storage.file_schema import make, require_format
from tidewolf.storage.records import Content, Head
from tidewolf.storage.tables import Tables

_ATTEMPTS = 20
"""How often files are copied again that a writer changed meanwhile."""
_NOT_OF_THE_FILE = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_READONLY,
}
"""Errors that say nothing about what is in the file."""


@final
class File:
    """The file of one session, or where it will be."""

    errors: tuple[type[Exception], ...] = (sqlite3.Error,)

    def __init__(self, path: str | os.PathLike[str], *, read_only: bool = False) -> None:
        self.path = as_path(path, "The path of a session").resolve()
        self.where = self.store = str(self.path)
        self._log = Path(f"{self.path}-wal")
        self._read_only = as_flag(read_only, "read_only")
        self._process = os.getpid()
        self._db: SQLite | None = None
        self._tables: Tables | None = None
        self._lock: SQLite | None = None
        self._copy: tempfile.TemporaryDirectory[str] | None = None
        self._files: dict[Path, tuple[int, int]] = {}
        """the device and inode of the file and of its log, as this session has them open"""

    def open(self, learner: Learner[Any]) -> Content:
        """All there is, checked; made where there is no file."""
        try:
            db = self._opened(learner)
            self._tables = Tables(db)
            return self._content(db)
        except (sqlite3.Error, OSError) as error:
            raise self._sentence(error) from None

    def epoch_after(self, head: Head) -> int:
        """What this writer's commits carry: one more than those of the writer before."""
        return head.epoch + 1

    def begin(self) -> None:
        """From here on it is written to."""
        if self._lock is None or self._db is None:
            return
        try:
            for pragma in ("journal_mode = WAL", "synchronous = FULL", "fullfsync = ON"):
                self._db.execute(f"PRAGMA {pragma}")
        except sqlite3.Error as error:
            raise self._sentence(error) from None
        self.require_in_place()

    @property
    def is_written(self) -> bool:
        """Whether this is its writer."""
        return self._lock is not None

    @property
    def tables(self) -> Tables:
        """To be read; refused where it is closed."""
        if self._tables is None:
            raise CheckpointError(
                f"The session in {self.where} is closed: open it again with Session.open."
            )
        return self._tables

    def require_writable(self) -> None:
        """Refuse to write where it is closed, opened to look, forked, or gone."""
        assert self.tables
        if self._read_only:
            raise CheckpointError(
                f"The session in {self.where} was opened to look, with read_only=True: it observes "
                "nothing."
            )
        if self._process != os.getpid():
            raise CheckpointError(
                f"The session in {self.where} belongs to the process that opened it, and this is a "
                "fork of that."
            )
        self.require_in_place()

    def write(self, do: Callable[[Tables], None]) -> None:
        """One transaction, on disk when this returns."""
        assert self._db is not None
        assert self._tables is not None
        with self._db.transaction():
            do(self._tables)
        self.require_in_place()

    def undo(self) -> None:
        """End a transaction that an interrupt left open."""
        assert self._db is not None
        self._db.undo()

    def close(self) -> None:
        """Let go of the file; twice does no harm."""
        for connection in (self._db, self._lock):
            if connection is not None:
                connection.close()
        self._db = self._lock = self._tables = None
        if self._copy is not None:
            self._copy.cleanup()
            self._copy = None

    def acknowledge(self, count: int) -> None:
        """Note beside the file how many observations it holds, at no cost worth naming: the note is
        not flushed, and never too high.
        """
        if self._lock is not None:
            with suppress(sqlite3.Error):
                self._lock.execute(f"PRAGMA user_version = {count}")

    def _opened(self, learner: Learner[Any]) -> SQLite:
        """The file, looked at, then locked, and made where there is none."""
        if self._read_only:
            return self._look()
        if self.path.exists():
            self._db = SQLite(self.path, "rw")
            require_format(self._db, self.path)
        self._lock = locked(
            Path(f"{self.path}-lock"),
            f"Another session, of this process or of another, writes to {self.path}: close it "
            "first, or look with read_only=True.",
        )
        if not self.path.exists():
            self.acknowledge(0)
            self._create(learner)
        if self._db is None:
            self._db = SQLite(self.path, "rw")
        return self._db

    def _content(self, db: SQLite) -> Content:
        """What the file holds, after all of it was checked."""
        with db.connection:
            db.execute("BEGIN")
            require_format(db, self.path)
            if db.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
                raise BrokenFile(
                    f"{self.path} is truncated or was changed: its checksums do not match. Go back "
                    "to an earlier copy."
                )
            content = Tables(db).read_content(self.where)
            self._require_acknowledged(content.head)
            return content

    def _look(self) -> SQLite:
        """The file to be read; a copy if SQLite cannot read it in place, because it may write
        nothing beside it.
        """
        self._db = SQLite(self.path, "ro")
        try:
            require_format(self._db, self.path)
            return self._db
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in (
                sqlite3.SQLITE_CANTOPEN,
                sqlite3.SQLITE_READONLY,
            ) or not os.access(self.path, os.R_OK):
                raise
        self._db.close()
        self._copy = tempfile.TemporaryDirectory(prefix="tidewolf-")
        self._db = SQLite(_copied(self.path, Path(self._copy.name)), "rw")
        return self._db

    def _create(self, learner: Learner[Any]) -> None:
        """The file before the first observation, whole or not at all."""
        state = learner.save(learner.begin())
        fresh = Path(f"{self.path}-new")
        for stale in (
            fresh,
            Path(f"{fresh}-journal"),
            self._log,
            Path(f"{self.path}-shm"),
        ):
            stale.unlink(missing_ok=True)
        db = SQLite(fresh, "rwc")
        try:
            with db.transaction():
                make(db, identity(learner), state, checkpoint.writer()["tidewolf"])
        finally:
            db.close()
        os.replace(fresh, self.path)

    def is_in_place(self) -> bool:
        """Whether the file and its log are still those that this session has open."""
        return {path: inode(path) for path in self._files} == self._files

    def require_in_place(self) -> None:
        if not self.is_in_place():
            raise CheckpointError(
                f"{self.path}, or its log, was deleted or replaced while this session had it open, "
                "so the observation was not kept. Put it back from a copy, or save(path) what "
                "this session knows, and open a session again."
            )
        for path in (self.path, self._log):  # the log is made by the first commit
            if path not in self._files and (found := inode(path)) is not None:
                self._files[path] = found

    def _require_acknowledged(self, head: Head) -> None:
        """Refuse a file that holds less than its writer was told it does."""
        if self._lock is None:
            return
        (acknowledged,) = self._lock.execute("PRAGMA user_version").fetchone()
        if acknowledged > head.last:
            raise BrokenFile(
                f"{self.path} holds {head.last} observations where {acknowledged} were "
                f"acknowledged: {self.path.name}-wal is missing or was cut short. Put it back, or "
                f"remove {self.path.name}-lock to go on without them."
            )

    def _sentence(self, error: sqlite3.Error | OSError) -> CheckpointError:
        """What kept the file from being opened."""
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CANTOPEN) & 0xFF
        if code in _NOT_OF_THE_FILE:
            return CheckpointError(
                f"No session can be opened at {self.path}: {error}. Give a path in a folder where "
                "files can be made."
            )
        return BrokenFile(
            f"{self.path} is no durable session, is truncated, or was changed: {error}. Go back to "
            "an earlier copy."
        )


def _copied(path: Path, folder: Path) -> Path:
    """The database and its log as they were at one moment, in another folder."""
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
    raise CheckpointError(
        f"{path} changes faster than it can be copied; try again, or open it from a folder where "
        "files can be made."
    )


def _changed(path: Path) -> tuple[int, int, int] | None:
    """What differs after a file was written to; None where there is none."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
