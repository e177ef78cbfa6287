"""The file of one session: opened, locked, written to, closed."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Generic, TypeVar, final

from tidewolf.core import checkpoint
from tidewolf.core.arguments import as_flag, as_path
from tidewolf.core.arrays import as_count
from tidewolf.core.errors import (
    BrokenFile,
    CheckpointError,
    InUse,
    InvalidInput,
    TidewolfError,
    WrongType,
)
from tidewolf.core.feedback import Feedback
from tidewolf.core.values import identity
from tidewolf.durable import tables
from tidewolf.durable.course import Course, Place, Step
from tidewolf.durable.feedback import decode
from tidewolf.durable.tables import Content, Head, Row
from tidewolf.durable.upgrade import upgrade
from tidewolf.memory import EXPIRED, REMEMBERED
from tidewolf.methods.base import Learner, Progress
from tidewolf.methods.late import coming_round
from tidewolf.methods.turns import Decide, Meet, Turn

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
    """The file of one session; `state` is the one to play from, `told` the identities of what is
    known of rounds that wait and of the coming one, by their numbers from 0.
    """

    numbered: bool
    """whether contents of rounds are kept"""
    _place: Place
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
        self._course = Course(learner)
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

    @property
    def state(self) -> S:
        state: S = self._place.state
        return state

    @property
    def told(self) -> Mapping[int, str]:
        return self._place.told

    @property
    def contents(self) -> Mapping[int, str | None]:
        """What was observed of the last rounds, by its identity."""
        with self._mutex:
            return tables.last_contents(self._opened(), REMEMBERED)

    def content_of(self, number: int) -> str | None:
        """The identity of what was observed of a round; None where it is not known."""
        with self._mutex:
            return tables.content_of(self._opened(), number + 1)

    def settle(self) -> None:
        """The coming round, where it is not."""
        with self._mutex:
            self._place = self._course.settled(self._place)

    def take(
        self, turns: Sequence[Turn], content: str | None = None, *, settle: bool = True
    ) -> None:
        """Keep these turns, all or none, and go on to the state after them; whatever is refused is
        not kept and changes nothing. `content` and `settle` are those of `Memory.take`.
        """
        with self._mutex:
            db, before = self._writable(), self._head
            self._require_in_place()
            place, rows = self._course.taken(self._place, turns, self._epoch)
            if settle:
                place = self._course.settled(place)
            head = before
            if rows:
                head = before._replace(last=place.last, link=place.link, epoch=self._epoch)
            if head.last - head.snapshot >= self._every:
                head = self._with_snapshot(head)
            over = {row.round: content or None if row.rounds else EXPIRED for row in rows}
            numbered = self.numbered or content is not None or EXPIRED in over.values()
            try:
                self._commit(db, head, place, rows, over if numbered else {})
                self._require_in_place()
            except sqlite3.Error as error:
                raise self._not_kept(turns, error) from error
            except BaseException:
                if self._is_in_place() and self._holds(db, head, place):
                    self._head, self._place = head, place  # interrupted after the commit
                raise
            self._head, self._place, self.numbered = head, place, numbered
            if rows:
                self._acknowledge(head.last)

    def _not_kept(self, turns: Sequence[Turn], error: sqlite3.Error) -> CheckpointError:
        if isinstance(turns[-1], Meet):
            return CheckpointError(
                f"The observation was not kept in {self.path}: {error}. All before it is there; "
                "mend that and observe it again."
            )
        number = coming_round(self.state) + sum(isinstance(turn, Decide) for turn in turns)
        return CheckpointError(
            f"What is known and decided before round {number} was not kept in {self.path}: "
            f"{error}. Nothing was decided on it; mend that and play again."
        )

    def _holds(self, db: sqlite3.Connection, head: Head, place: Place) -> bool:
        """Whether the file stands at this place."""
        rounds = [one.columns(head.link) for one in place.pending.values()]
        return tables.read_head(db) == head and tables.read_pending(db) == rounds

    def rollback(self, number: int) -> None:
        """To the moment when this round became the coming one, and for good: what came later is
        removed, in one transaction.
        """
        with self._mutex:
            db, coming = self._writable(), coming_round(self.state)
            self._require_in_place()
            place = self._back_to(db, number)
            self._replace(
                db,
                place,
                self._head._replace(last=place.last, link=place.link, snapshot=place.last),
                ("rolled back", f"from round {coming + 1} to round {number + 1}"),
            )

    def _back_to(self, db: sqlite3.Connection, number: int) -> Place:
        """Where it stood when this round became the coming one: done again from the last state
        before that.
        """
        head, course = self._head, self._course
        state, last, link = self._before(db, number)
        rounds = course.waited(tables.late_rows(db), self._place.pending.values())
        place = course.begin(state, last, link, rounds)
        for step in course.again(place, tables.rows_after(db, last, head.last), rounds):
            is_expiry = step.row is not None and step.row.rounds == 0
            if coming_round(place.state) == number and not is_expiry:
                break
            place = step.place
        if coming_round(place.state) != number:
            raise InvalidInput(
                f"Round {number} cannot be gone back to: it was observed together with the rounds "
                "before it."
            )
        return place

    def _before(
        self, db: sqlite3.Connection, number: int, *, nearest: bool = False
    ) -> tuple[S, int, bytes]:
        """A state to come to this round from, with the number and the link of its observation.
        `nearest`: the first there is, where the history begins later.
        """
        head = self._head
        for last, link, data in tables.snapshots(db, head):
            state = self.learner.load(data, source=str(self.path))
            coming = coming_round(state)
            if coming < number or (last == head.first and (nearest or coming == number)):
                return state, last, link
        if head.first > 0:
            raise InvalidInput(
                f"Round {number} cannot be gone back to: the history in {self.path} does not reach "
                "so far. It begins where observations were thrown away (keep_history=False), or "
                "the learner was replaced."
            )
        return self.learner.begin(), 0, head.base

    def migrate(self, learner: Learner[Any], state: Any) -> None:
        """Go on with another learner, from a state of its own in which the same rounds wait; what
        was known of the coming round is to be told again. The history before it is dropped.
        """
        if not isinstance(state, learner.state_type):
            raise WrongType(
                f"A session of {type(learner).__name__} goes on from a state of it, not from a "
                f"{type(state).__name__}."
            )
        with self._mutex:
            db = self._writable()
            self._require_in_place()
            last = self._head.last + 1
            link = tables.digest(self._head.link, identity(learner).encode())
            course = Course(learner)
            try:
                place = course.begin(state, last, link, self._place.pending)
            except ValueError as error:
                raise InvalidInput(f"The state is none of this session: {error}.") from None
            was, self.learner = self.learner, learner
            gone = {one: EXPIRED for one in self._place.pending if one not in place.pending}
            gone.pop(coming_round(state) + 1, None)
            try:
                self._epoch += 1
                self._replace(
                    db,
                    place,
                    Head(last, link, last, link, last, self._epoch),
                    ("migrated", f"before round {coming_round(state) + 1}"),
                    gone,
                )
            finally:
                if self._place is place:
                    self._course = course
                else:
                    self.learner = was

    def _replace(
        self,
        db: sqlite3.Connection,
        place: Place,
        head: Head,
        said: tuple[str, str],
        contents: Mapping[int, str] | None = None,
    ) -> None:
        """One transaction to another place, with a snapshot there and without what came later."""
        head = head._replace(epoch=self._epoch)
        if head.last < self._head.last:
            self._acknowledge(head.last)  # first: the note is never too high
        try:
            with db:
                db.execute("BEGIN IMMEDIATE")
                self._require_unchanged(db)
                coming = coming_round(place.state) + 1
                tables.cut(db, head.last, coming, place.pending)
                tables.forget(db, head.first)
                if contents:
                    tables.write_contents(db, contents)
                tables.write_pending(db, self._place.pending, place.pending, head.link)
                tables.add_snapshot(db, head, self.learner.save(place.observed), self._every)
                tables.write_head(db, head)
                now = datetime.now(UTC).isoformat(timespec="seconds")
                tables.note(db, said[0], f"{now} {said[1]}")
            self._require_in_place()
        except sqlite3.Error as error:
            raise CheckpointError(
                f"Nothing was changed in {self.path}: {error}. Mend that and try again."
            ) from error
        except BaseException:
            if self._is_in_place() and self._holds(db, head, place):
                self._head, self._place = head, place  # interrupted after the commit
            raise
        self._head, self._place = head, place
        self._acknowledge(head.last)

    def way(self) -> list[Step]:
        """The last steps to where it stands, done again: from before the oldest round that waits,
        and from before the last that was observed, as far as the history reaches.
        """
        with self._mutex:
            db, head, course = self._opened(), self._head, self._course
            rounds = course.waited(tables.late_rows(db), self._place.pending.values())
            least = min([coming_round(self.state), *self._place.pending]) - 2
            state, last, link = self._before(db, max(0, least), nearest=True)
            place = course.begin(state, last, link, rounds)
            rows = tables.rows_after(db, last, head.last)
            steps = list(course.again(place, rows, rounds))
            return [*steps, *course.with_what_is_told(self._place)]

    def history(self) -> Iterator[Feedback]:
        """What was observed, oldest first, as the learner was told it."""
        number, last = 0, self._head.last
        while True:
            with self._mutex:
                rows = tables.some_rows(self._opened(), number, last)
            if not rows:
                return
            center = self.learner.hard_set.center
            yield from (decode(row.feedback, center) for row in rows if row.rounds)
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
                        self._commit(self._writable(), head, self._place)
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
        state = self.learner.save(self.learner.begin())
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
        """Check all there is, load the last state, and do again what came after it."""
        content = self._content(db)
        head, rows, pending = content.head, content.left, content.pending
        try:
            state = self.learner.load(content.state, source=str(self.path))
        except CheckpointError as error:
            raise type(error)(f"{self.path}: {error}") from None
        with self._reading("observes"):
            rounds = self._course.waited(rows, pending)
            place = self._course.begin(state, head.snapshot, content.link, rounds)
            for step in self._course.again(place, rows, rounds):
                place = step.place
        with self._reading("is told"):
            self._place = self._course.with_known(place, pending)
        if self._lock is not None:
            for pragma in ("journal_mode = WAL", "synchronous = FULL", "fullfsync = ON"):
                db.execute(f"PRAGMA {pragma}")
            self._require_in_place()
        self._head, self._epoch = head, head.epoch + 1
        self.numbered = tables.has_contents(db)

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

    def _commit(
        self,
        db: sqlite3.Connection,
        head: Head,
        place: Place,
        rows: Sequence[Row] = (),
        contents: Mapping[int, str | None] | None = None,
    ) -> None:
        """One transaction from the head as it is to the next: observations, rounds that wait, a
        snapshot. It fails where another writer, of a later epoch, has been here meanwhile.
        """
        with db:
            db.execute("BEGIN IMMEDIATE")
            self._require_unchanged(db)
            for row in rows:
                tables.add(db, row)
            tables.write_pending(db, self._place.pending, place.pending, head.link)
            if contents:
                tables.write_contents(db, contents)
            if head.snapshot == head.last != self._head.snapshot:
                tables.add_snapshot(db, head, self.learner.save(place.observed), self._every)
            if head.first != self._head.first:
                tables.forget(db, head.first)
                tables.forget_contents(db, coming_round(place.state) - REMEMBERED)
            if head != self._head:
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
