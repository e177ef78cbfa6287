"""A session in an SQLite file: every observation, and now and then the state, so that a killed
process goes on bit for bit.

    link_0 = sha256(settings)       link_k = sha256(link_{k-1} | observation k)
        seal = sha256(link_m | the state after observation m)

An observation is committed before `observe` returns: from then on it survives the process, killed
at whatever instruction, and, where the disk keeps what it says it has kept, a power cut
(write-ahead log, flushed at every commit). One that was not acknowledged may be there too: `rounds`
tells. To open is to read and check every link, load the last state, and observe again what came
after it, at most `snapshot_every` observations. What is observed is what comes back from the file,
so that again gives the same bits.

The links find accidents and careless edits, not a forger. What a learner needs of a round is kept
and no more: sums for first-order learners, values for bandits, the functions themselves, as kinds
and arrays, for those that need them.

`PATH` is the file; beside it lie `PATH-wal` and `PATH-shm` (SQLite's, part of the data until the
session is closed: copy them along) and `PATH-lock`, held by the one writer and let go by the system
when its process ends. In it stands how many observations were acknowledged, so that a log that was
lost or cut short is noticed. Readers may look at any time.

A reader in a folder where it cannot write reads a copy: SQLite would make files beside the
database. `PATH` and `PATH-wal` are copied to a temporary folder, again where a writer changed them
meanwhile, so the reader sees all that was acknowledged before it opened. A file that is deleted or
replaced under its writer is noticed before the next observation, which is then refused: there is
nowhere to keep it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar, final

from tidewolf import functions
from tidewolf.core import checkpoint
from tidewolf.core.arguments import as_flag, as_path
from tidewolf.core.arrays import as_count, is_array, require_finite
from tidewolf.core.batch import Batch
from tidewolf.core.errors import (
    BrokenFile,
    CheckpointError,
    InUse,
    NewerFormat,
    NotSupported,
    TidewolfError,
)
from tidewolf.core.feedback import Bandit, Feedback, FirstOrder, FullInformation
from tidewolf.core.values import identity
from tidewolf.methods.base import Learner, Progress

S = TypeVar("S", bound=Progress)

FORMAT = 1
_KIND = int.from_bytes(b"tide")
"""SQLite's application_id of our files."""
_TABLES = (
    (
        "CREATE TABLE head (first INTEGER NOT NULL, base BLOB NOT NULL, last INTEGER NOT NULL, "
        "link BLOB NOT NULL, snapshot INTEGER NOT NULL)"
    ),
    "CREATE TABLE snapshot (state BLOB NOT NULL, seal BLOB NOT NULL)",
    "CREATE TABLE observations (number INTEGER PRIMARY KEY, data BLOB NOT NULL)",
)
_ATTEMPTS = 20
"""How often files are copied again that a writer changed meanwhile."""
_AT_ONCE = 256
"""Observations read at a time, so that no reader holds up the writer."""
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


class Head(NamedTuple):
    """What the file holds: observations first + 1 to last, and the state after observation
    `snapshot`.
    """

    first: int
    base: bytes
    """the link of observation `first`"""
    last: int
    link: bytes
    """the link of observation `last`"""
    snapshot: int


@final
class Journal(Generic[S]):
    """The file of one session; `state` is the one after its last observation."""

    state: S
    _head: Head

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

    def observe(self, seen: Feedback) -> None:
        """Keep an observation and go on to the state after it; whatever is refused is not kept and
        changes nothing.
        """
        data = checkpoint.packed(_told(seen))
        with self._mutex:
            db, before = self._writable(), self._head
            self._require_in_place()
            state = self.learner.update(self.state, self._again(data))
            head = before._replace(last=before.last + 1, link=_link(before.link, data))
            if head.last - head.snapshot >= self._every:
                head = self._with_snapshot(head)
            try:
                self._commit(db, head, state, data)
                self._require_in_place()
            except sqlite3.Error as error:
                raise CheckpointError(
                    f"The observation was not kept in {self.path}: {error}. All before it is "
                    "there; mend that and observe it again."
                ) from error
            except BaseException:
                if self._is_in_place() and _head(db) == head:  # interrupted after the commit
                    self.state, self._head = state, head
                raise
            self.state, self._head = state, head
            self._acknowledge(head.last)

    def history(self) -> Iterator[Feedback]:
        """What was observed, oldest first, as the learner was told it."""
        number, last = 0, self._head.last
        query = (
            "SELECT number, data FROM observations WHERE number > ? AND number <= ? ORDER BY "
            "number LIMIT ?"
        )
        while True:
            with self._mutex:
                rows = self._opened().execute(query, (number, last, _AT_ONCE)).fetchall()
            if not rows:
                return
            yield from (self._again(data) for _, data in rows)
            number = rows[-1][0]

    def close(self) -> None:
        """Snapshot, so that nothing is left to observe again, and let go of the file.

        Twice does no harm.
        """
        with self._mutex:
            try:
                if self._lock is not None and self._head.snapshot < self._head.last:
                    with suppress(sqlite3.Error, TidewolfError):  # no observation depends on it
                        self._commit(self._writable(), self._with_snapshot(self._head), self.state)
            finally:
                self._release()

    # --- the file ---------------------------------------------------------------------------------

    def _open(self) -> sqlite3.Connection:
        """The file, looked at, then locked, and made where there is none."""
        if self._read_only:
            return self._look()
        if self.path.exists():
            self._db = _connected(self.path, "rw")
            self._require_ours(self._db)
        self._lock = _connected(Path(f"{self.path}-lock"), "rwc", timeout=0.0)
        self._take(self._lock)
        if not self.path.exists():
            self._acknowledge(0)
            self._create()
        if self._db is None:
            self._db = _connected(self.path, "rw")
        return self._db

    def _look(self) -> sqlite3.Connection:
        """The file to be read; where SQLite cannot read it in place, because it may write nothing
        beside it, a copy.
        """
        self._db = _connected(self.path, "ro")
        try:
            self._require_ours(self._db)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in (
                sqlite3.SQLITE_CANTOPEN,
                sqlite3.SQLITE_READONLY,
            ) or not os.access(self.path, os.R_OK):
                raise
            self._db.close()
            self._copy = tempfile.TemporaryDirectory(prefix="tidewolf-")
            self._db = _connected(_copied(self.path, Path(self._copy.name)), "rw")
            self._require_ours(self._db)
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
        state, link = (
            self.learner.save(self.learner.start()),
            _link(b"", identity(self.learner).encode()),
        )
        fresh = Path(f"{self.path}-new")
        for stale in (
            fresh,
            Path(f"{fresh}-journal"),
            Path(f"{self.path}-wal"),
            Path(f"{self.path}-shm"),
        ):
            stale.unlink(missing_ok=True)
        db = _connected(fresh, "rwc")
        try:
            with db:
                db.execute("BEGIN IMMEDIATE")
                for statement in (
                    *_TABLES,
                    f"PRAGMA application_id = {_KIND}",
                    f"PRAGMA user_version = {FORMAT}",
                ):
                    db.execute(statement)
                db.execute("INSERT INTO head VALUES (?, ?, ?, ?, ?)", Head(0, link, 0, link, 0))
                db.execute("INSERT INTO snapshot VALUES (?, ?)", (state, _link(link, state)))
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
        for path in (self.path, Path(f"{self.path}-wal")):  # the log is made by the first commit
            if path not in self._files and (inode := _inode(path)) is not None:
                self._files[path] = inode

    def _require_ours(self, db: sqlite3.Connection) -> None:
        (kind,), (version,) = (
            db.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version")
        )
        if kind != _KIND:
            raise BrokenFile(
                f"{self.path} is a file, but not one of a durable session. Give the path of one, "
                "or a new path."
            )
        if version > FORMAT:
            raise NewerFormat(
                f"{self.path} has format {version}; this tidewolf reads up to {FORMAT}. Install a "
                "newer tidewolf."
            )
        made = {statement for (statement,) in db.execute("SELECT sql FROM sqlite_master LIMIT 9")}
        if made != set(_TABLES):  # views and triggers could answer with anything
            raise BrokenFile(
                f"{self.path} is truncated or was changed: its tables are not those of a session. "
                "Go back to an earlier copy."
            )

    def _resume(self, db: sqlite3.Connection) -> None:
        """Check all there is, load the last state, and observe again what came after it."""
        with db:
            db.execute("BEGIN")
            self._require_ours(db)
            head, saved, left = self._checked(db)
        try:
            state = self.learner.load(saved, source=str(self.path))
        except CheckpointError as error:
            raise type(error)(f"{self.path}: {error}") from None
        try:
            for data in left:
                state = self.learner.update(state, self._checked_again(data))
        except CheckpointError as error:
            raise type(error)(f"{self.path}: {error}") from None
        except Exception as error:  # hand-made content breaks in every way
            who = type(self.learner).__name__
            wrong = checkpoint.half_sentence(error)
            raise BrokenFile(
                f"{self.path} has right checksums and holds what no {who} observes: {wrong}."
            ) from None
        if self._lock is not None:
            (acknowledged,) = self._lock.execute("PRAGMA user_version").fetchone()
            if acknowledged > head.last:
                raise BrokenFile(
                    f"{self.path} holds {head.last} observations where {acknowledged} were "
                    f"acknowledged: {self.path.name}-wal is missing or was cut short. Put it "
                    f"back, or remove {self.path.name}-lock to go on without them."
                )
            for pragma in ("journal_mode = WAL", "synchronous = FULL", "fullfsync = ON"):
                db.execute(f"PRAGMA {pragma}")
            self._require_in_place()
        self.state, self._head = state, head

    def _checked(self, db: sqlite3.Connection) -> tuple[Head, bytes, list[bytes]]:
        """The head, the last state and the observations after it; refused unless every link
        holds.
        """
        whole = db.execute("PRAGMA quick_check(1)").fetchone() == ("ok",)
        try:
            head, (saved, seal) = (
                _head(db),
                db.execute("SELECT state, seal FROM snapshot").fetchone(),
            )
            count, link, sealed, left = head.first, head.base, head.base, []
            for number, data in db.execute("SELECT number, data FROM observations ORDER BY number"):
                count, link = count + 1, _link(link, data)
                whole = whole and number == count
                if count == head.snapshot:
                    sealed = link
                elif count > head.snapshot:
                    left.append(data)
            whole = (
                whole and (count, link) == (head.last, head.link) and _link(sealed, saved) == seal
            )
            whole = whole and 0 <= head.first <= head.snapshot <= head.last
        except (TypeError, ValueError):  # a row is not there, or is of another type
            whole = False
        if not whole:
            raise BrokenFile(
                f"{self.path} is truncated or was changed: its checksums do not match. Go back to "
                "an earlier copy."
            )
        return head, saved, left

    def _commit(
        self, db: sqlite3.Connection, head: Head, state: S, data: bytes | None = None
    ) -> None:
        """One transaction from the head as it is to the next: an observation, a snapshot, or
        both.
        """
        with db:
            db.execute("BEGIN IMMEDIATE")
            if _head(db) != self._head:
                raise CheckpointError(
                    f"{self.path} was changed while this session had it open: close it and open it "
                    "again."
                )
            if data is not None:
                db.execute("INSERT INTO observations VALUES (?, ?)", (head.last, data))
            if head.snapshot == head.last:
                saved = self.learner.save(state)
                db.execute(
                    "UPDATE snapshot SET state = ?, seal = ?", (saved, _link(head.link, saved))
                )
            db.execute("DELETE FROM observations WHERE number <= ?", (head.first,))
            db.execute(
                "UPDATE head SET first = ?, base = ?, last = ?, link = ?, snapshot = ?", head
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

    def _again(self, data: bytes) -> Feedback:
        """What was observed, as it comes back from the file."""
        return _retold(checkpoint.unpacked(data, self.learner.hard_set.center))

    def _checked_again(self, data: bytes) -> Feedback:
        """The same, where another hand may have written it: functions are made anew, with all their
        checks, and numbers are finite.
        """
        told = checkpoint.unpacked(data, self.learner.hard_set.center)
        seen = _retold(told, checked=True)
        for part in seen:
            if is_array(part):
                require_finite(part, "An observation")
        return seen

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


def _head(db: sqlite3.Connection) -> Head:
    return Head(*db.execute("SELECT first, base, last, link, snapshot FROM head").fetchone())


def _link(before: bytes, data: bytes) -> bytes:
    return hashlib.sha256(before + data).digest()


# --- what was observed, as numbers, names and arrays ----------------------------------------------

_FEEDBACK = {kind.__name__: kind for kind in (FirstOrder, Bandit, FullInformation)}


def _told(seen: Feedback) -> tuple[Any, ...]:
    return type(seen).__name__, *(
        _named(part) if isinstance(part, Batch) else part for part in seen
    )


def _retold(told: Sequence[Any], *, checked: bool = False) -> Feedback:
    name, *parts = told
    return _FEEDBACK[name](
        *(_batch(part, checked) for part in parts) if name == "FullInformation" else parts
    )


def _named(batch: Batch) -> tuple[Any, ...]:
    """A batch as the name of its kind and its fields."""
    kind = type(batch)
    if kind is functions.Custom or _kinds().get(kind.__name__) is not kind:
        raise NotSupported(
            "A durable session keeps the functions a learner needs as kinds and arrays; a "
            f"{kind.__name__} cannot be kept so. Use the functions of tidewolf.functions made of "
            "arrays, a learner that needs less, or a Session in memory."
        )
    own = (getattr(batch, field.name) for field in fields(batch))  # type: ignore[arg-type]
    return kind.__name__, *(
        tuple(map(_named, batch.parts)) if isinstance(batch, functions.Chain) else own
    )


def _batch(named: Sequence[Any], checked: bool) -> Batch:
    """The batch again; unchecked where this process made it, and checked it then."""
    name, *own = named
    kind = _kinds().get(name)
    if kind is None:
        raise NewerFormat(
            f"A function of the kind {name} was observed, which this tidewolf does not know. "
            "Install a newer tidewolf."
        )
    values = [tuple(_batch(part, checked) for part in own)] if kind is functions.Chain else own
    if checked:
        return kind(*values)
    batch = object.__new__(kind)
    batch.__dict__.update(zip((field.name for field in fields(kind)), values, strict=True))  # type: ignore[arg-type]
    return batch


@cache
def _kinds() -> dict[str, type[Batch]]:
    return {kind.__name__: kind for kind in functions.every()}
