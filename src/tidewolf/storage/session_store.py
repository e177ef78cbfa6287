"""Many named sessions in one database: in a folder (SQLite), or in PostgreSQL.

Each is kept as a session in a file of its own is, in the same tables; beside it stand its
description, what a service keeps of its rounds, and who did what. All writes are made by one
thread, in groups:

    with store.transaction(name) as transaction:        one item: all of it is kept, or nothing
        session.observe(...)
        store.note(name, Round(...))
    transaction.future.result()                         it is on disk

Until then a session is ahead of the disk: nothing that depends on it may leave the process. If the
future fails, `let_go(name)`, and the session is opened again as it is on disk.

A session has one holder at a time. Its epoch is one more for each, and every commit finds the head
as its session left it, under the epoch of its holder, or fails.

A folder that many sessions are kept in: one file of SQLite, one process that writes.

`DIR/tidewolf.db` is the file; `-wal`, `-shm` and `-lock` lie beside it, as beside the file of one
session.

Many observations are committed together, with one sync, and none is acknowledged before it:

    submit(item) -> future          wait, at most `within`, for others that are on their way
    one transaction: item, item, ...        one sync        the futures are done

One thread writes. An item is what belongs together, such as an observation and the note beside it:
all of it is kept or nothing. If one cannot be kept, the others of its group are, each by itself;
if the disk cannot keep anything, all of them fail and nothing was acknowledged.

A group is waited for as long as it pays: until as many items have come as were on their way lately
(those of the last group and those that came while it was written), or `within` is over, or twice
the time that groups took to write lately. N callers who come again once they are answered, c apart,
and a sync of S give N/(S + N c) items per second if all are waited for, and N/2 per sync if half
of them come while the others are written; so all are waited for while N c is of the order of S, and
if a sync takes next to no time, no caller waits for one. A single caller never waits for others.
With `within` 0 every item has a sync of its own.
"""

import os
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, final

from tidewolf.core import arguments, arrays
from tidewolf.core.errors import (
    AlreadyThere,
    CheckpointError,
    NotSupported,
    UnknownSession,
    require,
)
from tidewolf.core.values import identity
from tidewolf.methods import base, capabilities
from tidewolf.storage import database, postgres

NAME = "tidewolf.db"

# --- commits --------------------------------------------------------------------------------------

Write: TypeAlias = Callable[[database.Database], object]

# Groups that are remembered.
_LATELY = 8
# How long a group is waited for at most, in parts of what groups took to write lately.
_PATIENCE = 2.0
# How long the writer sleeps at most before it checks whether others wrote. Unit: seconds.
_IDLE = 0.5


@final
class Commits:
    """The one writer of a database.

    Parameters
    ----------
    db : Database
        A connection that nothing else uses.
    within : float
        How long the first of a group may wait for others. Unit: seconds.
    where : str
        The name of the database in messages.
    look : callable, optional
        Called before every group, and from time to time: checks whether another process wrote.
    """

    def __init__(
        self,
        db: database.Database,
        within: float,
        where: str,
        look: Callable[[], None] = lambda: None,
    ) -> None:
        self._db, self._within, self.where, self._look = db, within, where, look
        self._waiting: deque[tuple[Write, Future[None]]] = deque()
        self._some = threading.Condition(threading.Lock())
        self._lately: deque[int] = deque([1], maxlen=_LATELY)
        self._took: deque[float] = deque([0.0], maxlen=_LATELY)
        # so many waiting items wake the writer
        self._enough = 1
        self._closing = False
        # groups written so far, and what was in them
        self.syncs = self.items = 0
        # why nothing can be kept at the moment: the last group was not
        self.trouble: str | None = None
        self._thread = threading.Thread(target=self._run, name="tidewolf commits", daemon=True)
        self._thread.start()

    def submit(self, write: Write) -> Future[None]:
        future: Future[None] = Future()
        with self._some:
            if self._closing:
                raise CheckpointError(f"{self.where} is closed: nothing more is kept there.")
            self._waiting.append((write, future))
            if len(self._waiting) >= self._enough:
                self._some.notify()
        return future

    def close(self) -> None:
        """Write what waits, then no more; twice does no harm."""
        with self._some:
            self._closing = True
            self._some.notify()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    # --- the writer -------------------------------------------------------------------------------

    def _run(self) -> None:
        while (group := self._group()) or not self._closing:
            began = time.monotonic()
            try:
                self._look()
                if group:
                    self._write(group)
                elif self.trouble is not None:  # find out whether it is over
                    with self._db.transaction():
                        self._db.execute("UPDATE store SET value = value WHERE name = 'format'")
                self.trouble = None
            except Exception as error:
                self.trouble = " ".join(str(error).split())
                if not isinstance(error, database.FateUnknown):
                    why = f"Nothing more can be kept in {self.where}: {self.trouble.rstrip('.')}."
                    self.trouble = f"{why} All that was acknowledged is kept; fix it and retry."
            if group:
                self.syncs, self.items = self.syncs + 1, self.items + len(group)
                self._lately.append(len(group) + len(self._waiting))
                self._took.append(time.monotonic() - began)
            for future in (future for _, future in group if not future.done()):
                if self.trouble is None:
                    future.set_result(None)
                else:
                    future.set_exception(CheckpointError(self.trouble))

    def _group(self) -> list[tuple[Write, Future[None]]]:
        with self._some:
            if not self._waiting and not self._closing:
                self._some.wait(_IDLE)
            if self._waiting and self._within <= 0.0:
                return [self._waiting.popleft()]
            if self._waiting:
                end = time.monotonic() + min(self._within, _PATIENCE * max(self._took))
                self._enough = max(self._lately)
                while len(self._waiting) < self._enough and not self._closing:
                    left = end - time.monotonic()
                    if left <= 0.0:
                        break
                    self._some.wait(left)
                self._enough = 1
            group = list(self._waiting)
            self._waiting.clear()
            return group

    def _write(self, group: list[tuple[Write, Future[None]]]) -> None:
        """Write all of a group in one transaction; if that fails, each in one of its own, and the
        futures of those that are kept or refused are done. What keeps the database from keeping
        anything is raised.
        """
        try:
            with self._db.transaction():
                for write, _ in group:
                    write(self._db)
        except database.FateUnknown:
            raise  # again could be twice
        except Exception:
            for write, future in group:
                try:
                    with self._db.transaction():
                        write(self._db)
                    future.set_result(None)
                except Exception as error:
                    if isinstance(error, (*self._db.errors, database.FateUnknown)):
                        raise
                    future.set_exception(error)


# --- folders --------------------------------------------------------------------------------------


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
        self._closing = ExitStack()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            lock = database.locked(
                Path(f"{self.path}-lock"),
                f"Another process serves the sessions in {self.path.parent}: stop it first, or "
                "give another folder.",
            )
            self._closing.enter_context(closing(lock))
            self.writer = self._closing.enter_context(closing(opened(self.path)))
            self.reader = self._closing.enter_context(closing(database.SQLite(self.path, "rw")))
        except BaseException as error:
            self.close()
            if isinstance(error, OSError | sqlite3.Error):
                raise database.explained(
                    error, self.where, "Give a folder where files can be made."
                ) from None
            raise
        # refuse to write if the file was deleted or replaced
        self.require_there = database.InPlace(self.path).require
        self.require_there()

    def claim(self, db: database.Database, number: int) -> None:
        if not db.execute("UPDATE head SET epoch = epoch + 1 WHERE session = ?", (number,)):
            raise UnknownSession("There is no such session any more: it was deleted.")

    def require_held(self, db: database.Database, number: int) -> None:
        """No other process writes to the file."""

    def lease(self) -> int:
        """What is held stays held, unless the file was deleted or replaced."""
        return 0

    @contextmanager
    def reading(self) -> Iterator[database.Database]:
        """As it is at this moment, whatever is written meanwhile."""
        with closing(database.SQLite(self.path, "rw")) as db:
            db.execute("BEGIN")
            yield db

    def close(self) -> None:
        self._closing.close()


def opened(path: Path) -> database.SQLite:
    """A connection whose commits are on disk when they return; tables are made if there are
    none.
    """
    db = database.SQLite(path, "rwc")
    try:
        with db.transaction():
            if db.rows("SELECT count(*) FROM sqlite_master") == [(0,)]:
                db.pragmas(f"application_id = {database.STORE_FILE}")
                database.make_store(db)
            database.require_format(db, path)
            db.execute("UPDATE store SET value = value")  # fails now if the file cannot be written
        # pages: each checkpoint of the log takes syncs beside those of commits
        db.pragmas(*database.DURABLE, "wal_autocheckpoint = 4000")
    except BaseException:
        db.close()
        raise
    return db


_INFO = (
    "SELECT name, description, settings, created, observed, holder FROM sessions JOIN head ON "
    "head.session = number WHERE"
)
_ROUND = "SELECT round, at, cost, violation, note FROM rounds WHERE session = ? AND"


class SessionInfo(NamedTuple):
    """What is known of a session without opening it.

    Parameters
    ----------
    name : str
        What it is called.
    description : str
        What it is made of, as text of the service's own.
    settings : str
        How it is operated, as text of the service's own.
    created : float
        When. Unit: seconds since 1970.
    rounds : int
        How many were observed.
    holder : str
        The server that holds it; "" for none.
    """

    name: str
    description: str
    settings: str
    created: float
    rounds: int
    holder: str


class Round(NamedTuple):
    """What a service keeps of a round, beside the session.

    Parameters
    ----------
    round : int
        Its number, from 1.
    at : float
        When that was. Unit: seconds since 1970.
    cost, violation : float, optional
        What was played cost, and its violation, once that is known.
    note : bytes
        The rest, as the service has it.
    """

    round: int
    at: float
    cost: float | None
    violation: float | None
    note: bytes


@dataclass(frozen=True)
class Entry:
    """A line of the audit: who did what, and why."""

    number: int
    at: float
    who: str
    session: str
    what: str
    why: str
    version: str


class Transaction:
    """What is written together: all that a thread writes of a session within a `with`."""

    # done when it is on disk
    future: Future[None]

    def __init__(self, name: str) -> None:
        self.name, self.writes = name, list[Write]()

    def write(self, db: database.Database) -> None:
        for write in self.writes:
            write(db)


@final
class SessionStore:
    """Many named sessions in one database.

    Parameters
    ----------
    backing : Folder or Cluster
        The database, opened for its one writer.
    commit_within : float, default 0.01
        How long what is to be kept may wait for others, to share their sync; 0: every one has its
        own. Unit: seconds.

    Examples
    --------
    >>> import tempfile
    >>> from tidewolf.storage.session_store import SessionStore
    >>> learner = tw.LyapunovDescent(tw.sets.Simplex(2))
    >>> store = SessionStore.open(tempfile.mkdtemp())
    >>> store.create("routing", "{}").result()
    >>> session = tw.Session.open(store, learner, name="routing")
    >>> session.observe(costs=[1.0, 0.0])
    >>> store.flushed("routing").result()  # from here on it survives
    >>> store.close()
    """

    def __init__(self, backing: Folder | postgres.Cluster, *, commit_within: float = 0.01) -> None:
        self._backing, self.where, self.holder = backing, backing.where, backing.holder
        self._handles: dict[str, SessionHandle] = {}
        self._last: dict[str, Future[None]] = {}
        self._local, self._mutex = threading.local(), threading.Lock()
        self._changes: int | None = None
        within = arrays.as_number(commit_within, "commit_within", least=0.0)
        self.commits = Commits(backing.writer, within, self.where, self._look)

    @classmethod
    def open(
        cls,
        where: str | Path,
        *,
        commit_within: float = 0.01,
        holder: str = "",
        takeover_after: float = 10.0,
    ) -> "SessionStore":
        """The sessions kept there.

        Parameters
        ----------
        where : str or path
            A folder, made if it is not there; or postgresql://USER:PASSWORD@HOST/DATABASE.
        commit_within : float, default 0.01
            How long what is to be kept may wait for others. Unit: seconds.
        holder : str, default ""
            What this server is called among those that share a PostgreSQL. Empty: the name of the
            machine and the process.
        takeover_after : float, default 10.0
            When others of them may take its sessions if it hangs. Unit: seconds.

        Returns
        -------
        SessionStore
            To be closed.

        Raises
        ------
        InUse
            If another process serves the same folder.
        """
        if postgres.is_address(where):
            cluster = postgres.Cluster(str(where), holder, takeover_after)
            return cls(cluster, commit_within=commit_within)
        return cls(Folder(Path(where)), commit_within=commit_within)

    def _rows(self, sql: str, *values: Any) -> list[Any]:
        return self._backing.reader.rows(sql, values)

    # --- names ------------------------------------------------------------------------------------

    def infos(
        self, prefix: str = "", after: str = "", most: int | None = 1000
    ) -> list[SessionInfo]:
        """Those whose names begin so, in the order of their names; without their descriptions,
        each of which may be long.
        """
        info = _INFO.replace("description", "''")
        sql = f"{info} name > ? AND name >= ? AND name < ? ORDER BY name LIMIT ?"
        values = (after, prefix, f"{prefix}\U0010ffff", 2**62 if most is None else most)
        return [SessionInfo(*row) for row in self._rows(sql, *values)]

    def info(self, name: str) -> SessionInfo | None:
        found = self._rows(f"{_INFO} name = ?", name)
        return SessionInfo(*found[0]) if found else None

    def count(self) -> int:
        return int(self._rows("SELECT count(*) FROM sessions")[0][0])

    def create(self, name: str, description: str, settings: str = "{}") -> Future[None]:
        """A session that has no learner yet; its first `session` gives it one. If the name is
        taken, the future says so.
        """

        def write(db: database.Database) -> None:
            number = database.next_number(db, "sessions")
            if db.rows("SELECT 1 FROM sessions WHERE name = ?", (name,)):
                raise AlreadyThere(f"There is a session called {name!r} already.")
            values = (number, name, description, settings, time.time(), "")
            db.execute("INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?)", values)
            db.execute("INSERT INTO head VALUES (?, 0, ?, 0, ?, 0, 0, 0)", (number, b"", b""))

        return self._queue(name, write)

    def delete(self, name: str) -> Future[None]:
        number = self._number(name)
        self.let_go(name)

        def write(db: database.Database) -> None:
            self._backing.claim(db, number)
            database.delete_rows(db, number)
            db.execute("DELETE FROM sessions WHERE number = ?", (number,))

        return self._queue(name, write)

    def _number(self, name: str) -> int:
        """Its number in the database: it may have been deleted and created again."""
        found = self._rows("SELECT number FROM sessions WHERE name = ?", name)
        require(found, UnknownSession, f"There is no session called {name!r}.")
        return int(found[0][0])

    # --- sessions ---------------------------------------------------------------------------------

    def handle(self, name: str, *, alone: bool = False) -> "SessionHandle":
        """Where a session is kept, for its journal; `alone`: each write returns when it is on disk,
        and the store is closed with it.
        """
        self.let_go(name)
        handle = SessionHandle(self, name, alone=alone)
        with self._mutex:
            self._handles[name] = handle
        return handle

    def let_go(self, name: str) -> None:
        """Forget what is open of a session; what it had queued is still kept."""
        with self._mutex:
            handle = self._handles.pop(name, None)
        if handle is not None:
            handle.lose(f"The session {name} was let go of: open it again.")

    def holds(self, name: str) -> bool:
        """Whether this process still holds the session: nothing of it failed, and no other
        process took it.
        """
        return name in self._handles and self._handles[name].is_written

    # --- what stands beside a session -------------------------------------------------------------

    def note(self, name: str, round: Round) -> None:
        self._change(
            name,
            (
                "INSERT INTO rounds (round, at, cost, violation, note, session) VALUES (?, ?, ?, "
                "?, ?, ?) ON CONFLICT (session, round) DO UPDATE SET at = excluded.at, cost = "
                "excluded.cost, violation = excluded.violation, note = excluded.note"
            ),
            *round,
        )

    def forget_rounds(self, name: str, first: int) -> None:
        self._change(name, "DELETE FROM rounds WHERE round >= ? AND session = ?", first)

    def set(self, name: str, text: str, column: str = "settings") -> None:
        """How it is operated from now on; or its `description`."""
        self._change(name, f"UPDATE sessions SET {column} = ? WHERE number = ?", text)

    def _change(self, name: str, sql: str, *values: Any) -> None:
        handle = self._handles.get(name)
        number = self._number(name) if handle is None else handle.number
        self._queue(name, lambda db: db.execute(sql, (*values, number)))

    def audit(self, who: str, session: str, what: str, why: str = "") -> None:
        values = (time.time(), who, session, what, why)
        self._queue(session, lambda db: database.add_entry(db, *values))

    def rounds_of(self, name: str, first: int, last: int) -> list[Round]:
        sql = f"{_ROUND} round >= ? AND round <= ? ORDER BY round"
        return [Round(*row) for row in self._rows(sql, self._number(name), first, last)]

    def last_rounds(self, name: str, most: int) -> list[Round]:
        sql = f"{_ROUND} (cost IS NOT NULL OR violation IS NOT NULL) ORDER BY round DESC LIMIT ?"
        return [Round(*row) for row in self._rows(sql, self._number(name), most)[::-1]]

    def entries(
        self, session: str | None = None, after: int = 0, most: int = 100, *, newest: bool = False
    ) -> list[Entry]:
        where, values = ("AND session = ? ", (session,)) if session is not None else ("", ())
        order = "DESC " if newest else ""
        sql = f"SELECT * FROM audit WHERE number > ? {where}ORDER BY number {order}LIMIT ?"
        return [Entry(*row) for row in self._rows(sql, after, *values, most)]

    # --- writing ----------------------------------------------------------------------------------

    @contextmanager
    def transaction(self, name: str) -> Iterator[Transaction]:
        transaction = self._local.transaction = Transaction(name)
        try:
            yield transaction
        except BaseException:
            if transaction.writes:  # the session may be ahead of what is kept
                self.let_go(name)
            raise
        finally:
            self._local.transaction = None
        future = self._submit(name, transaction.write) if transaction.writes else None
        transaction.future = future or self.flushed(name)

    def flushed(self, name: str) -> Future[None]:
        """Done when all that was written of a session is on disk."""
        last = self._last.get(name)
        return _DONE if last is None or (last.done() and last.exception() is None) else last

    def close(self) -> None:
        """Write what waits, and close the database; twice does no harm."""
        self.commits.close()
        self._backing.close()

    def _queue(self, name: str, write: Write) -> Future[None]:
        transaction: Transaction | None = getattr(self._local, "transaction", None)
        if transaction is not None and transaction.name == name:
            transaction.writes.append(write)
            return _DONE
        return self._submit(name, write)

    def _submit(self, name: str, write: Write) -> Future[None]:
        handle = self._handles.get(name)
        future = self.commits.submit(write if handle is None else handle.held(write))
        self._last[name] = future
        if handle is not None:
            future.add_done_callback(handle.written)
        return future

    def _look(self) -> None:
        """Release sessions that another process wrote to, such as `restore`."""
        self._backing.require_there()
        changes = self._backing.writer.changes()
        if changes != self._changes:
            self._changes = changes
            with self._mutex:
                handles = list(self._handles.values())
            for handle in handles:
                handle.look(self._backing.writer)


@final
class SessionHandle:
    """A session among many, as its journal sees it: for its one writer, or as it is on disk, to be
    read, whichever server holds it.
    """

    errors: tuple[type[Exception], ...] = ()

    def __init__(
        self, store: SessionStore, name: str, *, alone: bool = False, read_only: bool = False
    ) -> None:
        self._store, self._backing, self._name = store, store._backing, name
        self.number = store._number(name)
        self.where, self.store = f"the session {name} in {store.where}", store.where
        self._alone, self.read_only = alone, read_only
        self._epoch: int | None = None
        self._lease = 0
        self._lost: CheckpointError | None = None

    def open(self, learner: base.Learner[Any]) -> tuple[database.Head, database.Content, int]:
        """All there is, checked, and the epoch; held by this server from now on, unless it is only
        read.
        """
        if self.read_only:
            self._store.flushed(self._name).exception()  # waits
        else:
            self._claim(learner)
        try:
            with self._backing.reading() as db:
                head, content = database.Tables(db, self.number).read_content(self.where)
        except self._backing.reader.errors:  # of a file that was deleted and is still open
            tables = database.Tables(self._backing.reader, self.number)
            head, content = tables.read_content(self.where)
        self._epoch = head.epoch
        return head, content, head.epoch

    def _claim(self, learner: base.Learner[Any]) -> None:
        self._lease = self._backing.lease()
        begun: tuple[bytes, bytes] | None = None
        if self._store._rows("SELECT base FROM head WHERE session = ?", self.number) == [(b"",)]:
            begun = (
                database.digest(identity(learner).encode()),
                learner.save(capabilities.beginning(learner)),
            )

        def claim(db: database.Database) -> None:
            self._backing.claim(db, self.number)
            own = database.Tables(db, self.number)
            if begun is not None and not own.read_head().base:
                own.begin(*begun)

        self._store._submit(self._name, claim).result()

    @property
    def is_written(self) -> bool:
        """Whether the session is this server's, as far as that can be known."""
        if self.read_only or self._lost is not None:
            return False
        try:
            return self._lease == self._backing.lease()
        except CheckpointError:
            return False

    @property
    def tables(self) -> database.Tables:
        if not self.read_only:
            self._store.flushed(self._name).exception()  # waits
            self.require_writable()
        return database.Tables(self._backing.reader, self.number)

    def require_writable(self) -> None:
        """Refuse to write if another server may have it; whether the database is still there is
        looked at before every group.
        """
        if not self.is_written:
            raise self.lose(f"{self.where} may have been taken by another server: open it again.")

    def held(self, write: Write) -> Write:
        if self._epoch is None:  # not yet
            return write

        def checked(db: database.Database) -> None:
            self._backing.require_held(db, self.number)
            write(db)

        return checked

    def write(self, do: Callable[[database.Tables], None], last: int) -> None:
        future = self._store._queue(self._name, lambda db: do(database.Tables(db, self.number)))
        if self._alone:
            future.result()

    def reread(self) -> None:
        """What an interrupt left is not known: another thread writes."""

    def close(self) -> None:
        self.lose(f"{self.where} is closed: open it again.")
        if self._alone:
            self._store.close()

    def written(self, future: Future[None]) -> None:
        """What was queued is done, or failed: then the session is ahead of what is kept."""
        error = future.exception()
        if error is not None:
            self.lose(error if isinstance(error, CheckpointError) else str(error))

    def look(self, db: database.Database) -> None:
        found = db.rows("SELECT epoch FROM head WHERE session = ?", (self.number,))
        if self._epoch is not None and found != [(self._epoch,)]:
            self.lose(f"{self.where} was restored, or taken by another server: open it again.")

    def lose(self, why: str | CheckpointError) -> CheckpointError:
        if self._lost is None:
            self._lost = CheckpointError(why) if isinstance(why, str) else why
        return self._lost


_DONE: Future[None] = Future()
_DONE.set_result(None)

# Where a session is kept: a file of its own, or a place among others.
Backend: TypeAlias = database.File | SessionHandle


def backend(
    where: str | os.PathLike[str] | SessionStore, name: str, read_only: bool = False
) -> Backend:
    """Where the session of this name is kept; in PostgreSQL it is made if there is none."""
    if isinstance(where, SessionStore):
        name = arguments.as_text(name, "The name of a session")
        return SessionHandle(where, name, read_only=True) if read_only else where.handle(name)
    if not postgres.is_address(where):
        return database.File(where, read_only=read_only)
    if read_only:
        raise NotSupported("Only a session in a file, not in PostgreSQL, can be read_only=True.")
    store = SessionStore.open(str(where), commit_within=0.0)
    try:
        if store.info(arguments.as_text(name, "The name of a session")) is None:
            with suppress(AlreadyThere):  # by another process, just now
                store.create(name, "").result()
        return store.handle(name, alone=True)
    except BaseException:
        store.close()
        raise
