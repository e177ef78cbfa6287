"""The file of one session: opened, locked, written to, closed."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Generic, TypeVar, final

from tidewolf.core import checkpoint
from tidewolf.core.arguments import as_flag, as_path
from tidewolf.core.arrays import as_count
from tidewolf.core.errors import BrokenFile, CheckpointError, InUse, NewerFormat, TidewolfError
from tidewolf.core.feedback import Feedback
from tidewolf.core.known import Known
from tidewolf.core.values import identity
from tidewolf.durable import tables
from tidewolf.durable.feedback import decode, decode_checked, encode
from tidewolf.durable.known import decode_known, encode_known
from tidewolf.durable.tables import Content, Head, Pending, Row
from tidewolf.durable.upgrade import upgrade
from tidewolf.methods.base import Learner, Progress

S = TypeVar("S", bound=Progress)

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
class Journal(Generic[S]):
    """The file of one session; `state` is the one to play from: after its last observation, with
    what is `known` before the next.
    """

    state: S
    known: Known | None
    _observed: S
    """the state after the last observation, before anything was known of the next round"""
    _pending: Pending | None
    _head: Head
    _epoch: int
    """what this writer's commits carry: one more than that of the writer before"""

    def __init__(
        self,
        path: str | os.PathLike[str],
        learner: Learner[S],
        *,
        snapshot_every: int,
        keep_history: bool,
        read_only: bool,
    ) -> None:
        self.path, self.learner = as_path(path, "The path of a session").resolve(), learner
        self._log = Path(f"{self.path}-wal")
        self._every = as_count(snapshot_every, "snapshot_every")
        self._keep_history, self._read_only = (
            as_flag(keep_history, "keep_history"),
            as_flag(read_only, "read_only"),
        )
        self._mutex, self._process = threading.Lock(), os.getpid()
        self._db: sqlite3.Connection | None = None
        self._lock: sqlite3.Connection | None = None
        self._copy: tempfile.TemporaryDirectory[str] | None = None
        self._files: dict[Path, tuple[int, int]] = {}
        """the device and inode of the file and of its log, as this session has them open"""
        try:
            self._resume(self._open())
        except (sqlite3.Error, OSError) as error:
            self._release()
            raise self._sentence(error) from None
        except BaseException:
            self._release()
            raise

    def inform(self, known: Known) -> None:
        """Keep what is known before the coming round, and go on to the state that knows it."""
        data = encode_known(known)
        with self._mutex:
            db, link = self._writable(), self._head.link
            self._require_in_place()
            told = decode_known(data, self.learner.hard_set.center)
            state = self.learner.informed(self._observed, told)
            pending = Pending(self._observed.t + 1, data)
            try:
                with db:
                    db.execute("BEGIN IMMEDIATE")
                    self._require_unchanged(db)
                    tables.replace_pending(db, pending, link)
                self._require_in_place()
            except sqlite3.Error as error:
                raise CheckpointError(
                    f"What is known before round {pending.round} was not kept in {self.path}: "
                    f"{error}. Nothing was decided on it; mend that and play again."
                ) from error
            except BaseException:
                kept = self._is_in_place() and tables.read_pending(db) == pending.sealed(link)
                if kept:  # interrupted after the commit
                    self.state, self.known, self._pending = state, told, pending
                raise
            self.state, self.known, self._pending = state, told, pending

    def observe(self, seen: Feedback) -> None:
        """Keep an observation and go on to the state after it; whatever is refused is not kept and
        changes nothing.
        """
        data = encode(seen)
        with self._mutex:
            db, before = self._writable(), self._head
            self._require_in_place()
            state = self.learner.update(self.state, decode(data, self.learner.hard_set.center))
            known = None if self._pending is None else self._pending.known
            row = Row(before.last + 1, self.state.t + 1, seen.rounds, self._epoch, data, known)
            head = before._replace(last=row.arrived, link=row.link(before.link), epoch=row.epoch)
            if head.last - head.snapshot >= self._every:
                head = self._with_snapshot(head)
            try:
                self._commit(db, head, state, row)
                self._require_in_place()
            except sqlite3.Error as error:
                raise CheckpointError(
                    f"The observation was not kept in {self.path}: {error}. All before it is "
                    "there; mend that and observe it again."
                ) from error
            except BaseException:
                if (
                    self._is_in_place() and tables.read_head(db) == head
                ):  # interrupted after the commit
                    self._go_on(state, head)
                raise
            self._go_on(state, head)
            self._acknowledge(head.last)

    def _go_on(self, state: S, head: Head) -> None:
        """From the state after an observation, with nothing known of what comes next."""
        self.state = self._observed = state
        self._head, self._pending, self.known = head, None, None

    def history(self) -> Iterator[Feedback]:
        """What was observed, oldest first, as the learner was told it."""
        number, last = 0, self._head.last
        while True:
            with self._mutex:
                rows = tables.some_rows(self._opened(), number, last)
            if not rows:
                return
            yield from (decode(row.feedback, self.learner.hard_set.center) for row in rows)
            number = rows[-1].arrived

    def close(self) -> None:
        """Snapshot, so that nothing is left to observe again, and let go of the file.

        Twice does no harm.
        """
        with self._mutex:
            try:
                if self._lock is not None and self._head.snapshot < self._head.last:
                    head = self._with_snapshot(self._head._replace(epoch=self._epoch))
                    with suppress(sqlite3.Error, TidewolfError):  # no observation depends on it
                        self._commit(self._writable(), head, self._observed)
            finally:
                self._release()

    # --- the file ---------------------------------------------------------------------------------

    def _open(self) -> sqlite3.Connection:
        """The file, looked at, then locked, and made where there is none."""
        if self._read_only:
            return self._look()
        if self.path.exists():
            self._db = _connected(self.path, "rw")
            tables.version_of(self._db, self.path)
        self._lock = _connected(Path(f"{self.path}-lock"), "rwc", timeout=0.0)
        self._take(self._lock)
        if not self.path.exists():
            self._acknowledge(0)
            self._create()
        if self._db is None:
            self._db = _connected(self.path, "rw")
        return self._db

    def _look(self) -> sqlite3.Connection:
        """The file to be read; a copy where SQLite cannot read it in place, because it may write
        nothing beside it, and where the tables are not those of today.
        """
        self._db = _connected(self.path, "ro")
        try:
            if tables.version_of(self._db, self.path) == tables.DATABASE_FORMAT:
                return self._db
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in (
                sqlite3.SQLITE_CANTOPEN,
                sqlite3.SQLITE_READONLY,
            ) or not os.access(self.path, os.R_OK):
                raise
        self._db.close()
        self._copy = tempfile.TemporaryDirectory(prefix="tidewolf-")
        self._db = _connected(_copied(self.path, Path(self._copy.name)), "rw")
        return self._db

    def _take(self, lock: sqlite3.Connection) -> None:
        """Hold the lock until it is closed; the system lets go of it when the process ends, however
        that comes.
        """
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
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                raise CheckpointError(
                    f"{self.path}-lock cannot be locked: {error}. Remove it, if no session is "
                    "open, and try again."
                ) from None
            raise InUse(
                f"Another session, of this process or of another, writes to {self.path}: close it "
                "first, or look with read_only=True."
            ) from None

    def _create(self) -> None:
        """The file before the first observation, whole or not at all."""
        state = self.learner.save(self.learner.start())
        fresh = Path(f"{self.path}-new")
        for stale in (
            fresh,
            Path(f"{fresh}-journal"),
            self._log,
            Path(f"{self.path}-shm"),
        ):
            stale.unlink(missing_ok=True)
        db = _connected(fresh, "rwc")
        try:
            with db:
                db.execute("BEGIN IMMEDIATE")
                tables.make(db, identity(self.learner), state, checkpoint.writer()["tidewolf"])
        finally:
            db.close()
        os.replace(fresh, self.path)

    def _is_in_place(self) -> bool:
        """Whether the file and its log are still those that this session has open."""
        return all(_inode(path) == inode for path, inode in self._files.items())

    def _require_in_place(self) -> None:
        if not self._is_in_place():
            raise CheckpointError(
                f"{self.path}, or its log, was deleted or replaced while this session had it open, "
                "so the observation was not kept. Put it back from a copy, or save(path) what "
                "this session knows, and open a session again."
            )
        for path in (self.path, self._log):  # the log is made by the first commit
            if path not in self._files and (inode := _inode(path)) is not None:
                self._files[path] = inode

    def _resume(self, db: sqlite3.Connection) -> None:
        """Check all there is, load the last state, and observe again what came after it."""
        content = self._content(db)
        try:
            self.state = self.learner.load(content.state, source=str(self.path))
        except CheckpointError as error:
            raise type(error)(f"{self.path}: {error}") from None
        for row in content.left:
            self._observe_again(row)
        self._observed, self.known, self._pending = self.state, None, content.pending
        if content.pending is not None:
            self._inform_again(content.pending)
        if self._lock is not None:
            for pragma in ("journal_mode = WAL", "synchronous = FULL", "fullfsync = ON"):
                db.execute(f"PRAGMA {pragma}")
            self._require_in_place()
        self._head, self._epoch = content.head, content.head.epoch + 1

    def _content(self, db: sqlite3.Connection) -> Content:
        """What the file holds, as of today's format, after all of it was checked."""
        with db:
            db.execute("BEGIN")
            if tables.version_of(db, self.path) < tables.DATABASE_FORMAT:
                upgrade(db, self.path, self.learner)
            content = tables.read_content(db, self.path)
            self._require_acknowledged(content.head)
            return content

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

    def _observe_again(self, row: Row) -> None:
        if row.round != self.state.t + 1:
            raise NewerFormat(
                f"{self.path}: Round {row.round} was observed out of order, which this tidewolf "
                "does not read. Install a newer tidewolf."
            )
        center = self.learner.hard_set.center
        with self._reading("observes"):
            if row.known is not None:
                known = decode_known(row.known, center)
                self.state = self.learner.informed(self.state, known)
            seen = decode_checked(row.feedback, center)
            self.state = self.learner.update(self.state, seen)

    def _inform_again(self, pending: Pending) -> None:
        if pending.round != self.state.t + 1:
            raise NewerFormat(
                f"{self.path}: Round {pending.round} was decided out of order, which this tidewolf "
                "does not read. Install a newer tidewolf."
            )
        with self._reading("is told"):
            self.known = decode_known(pending.known, self.learner.hard_set.center)
            self.state = self.learner.informed(self.state, self.known)

    @contextmanager
    def _reading(self, does: str) -> Iterator[None]:
        """Where what the file holds is handed to the learner."""
        try:
            yield
        except CheckpointError as error:
            raise type(error)(f"{self.path}: {error}") from None
        except Exception as error:  # hand-made content breaks in every way
            who, wrong = type(self.learner).__name__, checkpoint.half_sentence(error)
            raise BrokenFile(
                f"{self.path} has right checksums and holds what no {who} {does}: {wrong}."
            ) from None

    def _commit(self, db: sqlite3.Connection, head: Head, state: S, row: Row | None = None) -> None:
        """One transaction from the head as it is to the next: an observation, a snapshot, or
        both. It fails where another writer, of a later epoch, has been here meanwhile.
        """
        with db:
            db.execute("BEGIN IMMEDIATE")
            self._require_unchanged(db)
            if row is not None:
                tables.add(db, row)
                if self._pending is not None:
                    tables.drop_pending(db)
            if head.snapshot == head.last:
                tables.replace_snapshot(db, head, self.learner.save(state))
            db.execute("DELETE FROM observations WHERE arrived <= ?", (head.first,))
            tables.write_head(db, head)

    def _require_unchanged(self, db: sqlite3.Connection) -> None:
        """Refuse to write where another writer has been here meanwhile."""
        if tables.read_head(db) != self._head:
            raise CheckpointError(
                f"{self.path} was changed while this session had it open: close it and open it "
                "again."
            )

    def _acknowledge(self, count: int) -> None:
        """Note beside the file how many observations it holds, at no cost worth naming: the note is
        not flushed, and never too high.
        """
        if self._lock is not None:
            with suppress(sqlite3.Error):
                self._lock.execute(f"PRAGMA user_version = {count}")

    def _with_snapshot(self, head: Head) -> Head:
        """With the state after the last observation, and without history where none is wanted."""
        head = head._replace(snapshot=head.last)
        return head if self._keep_history else head._replace(first=head.last, base=head.link)

    def _opened(self) -> sqlite3.Connection:
        if self._db is None:
            raise CheckpointError(
                f"The session in {self.path} is closed: open it again with Session.open."
            )
        return self._db

    def _writable(self) -> sqlite3.Connection:
        db = self._opened()
        if self._read_only:
            raise CheckpointError(
                f"The session in {self.path} was opened to look, with read_only=True: it observes "
                "nothing."
            )
        if self._process != os.getpid():
            raise CheckpointError(
                f"The session in {self.path} belongs to the process that opened it, and this is a "
                "fork of that."
            )
        return db

    def _release(self) -> None:
        for connection in (self._db, self._lock):
            if connection is not None:
                connection.close()
        self._db = self._lock = None
        if self._copy is not None:
            self._copy.cleanup()
            self._copy = None

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


def _connected(path: Path, mode: str, timeout: float = 5.0) -> sqlite3.Connection:
    return sqlite3.connect(
        f"{path.as_uri()}?mode={mode}",
        timeout,
        uri=True,
        isolation_level=None,
        check_same_thread=False,
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


def _inode(path: Path) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino
