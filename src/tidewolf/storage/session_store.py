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

Back up and restore sessions while they are served.

    backup    one reading transaction: every session as its last commit left it, at one moment
    restore   one writing transaction: all of the sessions, or none

A copy is a file of SQLite with the tables of a folder (database.py), in which no
process holds a session, and the part of the audit about its sessions. A session that is restored
has an epoch that it never had: the server that served it finds that it lost it, and opens what was
restored. The audit of the target is extended, never replaced; if empty, it gets that of the copy.
"""

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, final

from tidewolf.core import arguments, arrays
from tidewolf.core.errors import (
    AlreadyThere,
    CheckpointError,
    InvalidInput,
    NotSupported,
    UnknownSession,
    refuse,
    require,
)
from tidewolf.core.values import identity
from tidewolf.methods.base import Learner
from tidewolf.methods.capabilities import beginning
from tidewolf.storage import database, postgres

NAME = "tidewolf.db"

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
        self._lock: database.SQLite | None = None
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = database.locked(
                Path(f"{self.path}-lock"),
                f"Another process serves the sessions in {self.path.parent}: stop it first, or "
                "give another folder.",
            )
            self.writer = opened(self.path)
            self.reader = database.SQLite(self.path, "rw")
        except BaseException as error:
            if self._lock is not None:
                self._lock.close()
            if isinstance(error, OSError | sqlite3.Error):
                fix = "Give a folder where files can be made."
                raise database.explained(error, self.where, fix) from None
            raise
        self._in_place = database.InPlace(self.path)
        self._in_place.require()
        # refuse to write if the file was deleted or replaced
        self.require_there = self._in_place.require

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
        for connection in (self.reader, self.writer, self._lock):
            if connection is not None:
                connection.close()


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
        self.name, self.writes = name, list[database.Write]()

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
        self.commits = database.Commits(backing.writer, within, self.where, self._look)

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
        backing: Folder | postgres.Cluster
        if postgres.is_address(where):
            backing = postgres.Cluster(str(where), holder, takeover_after)
        else:
            backing = Folder(Path(where))
        return cls(backing, commit_within=commit_within)

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
        """A session that has no learner yet; its first `session` gives it one."""

        def require_free(db: database.Database) -> None:
            if db.rows("SELECT 1 FROM sessions WHERE name = ?", (name,)):
                raise AlreadyThere(f"There is a session called {name!r} already.")

        def write(db: database.Database) -> None:
            number = database.next_number(db, "sessions")
            require_free(db)
            values = (number, name, description, settings, time.time(), "")
            db.execute("INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?)", values)
            db.execute("INSERT INTO head VALUES (?, 0, ?, 0, ?, 0, 0, 0)", (number, b"", b""))

        require_free(self._backing.reader)
        return self._queue(name, write)

    def delete(self, name: str) -> Future[None]:
        number = self._number(name)
        self.let_go(name)

        def write(db: database.Database) -> None:
            self._backing.claim(db, number)
            for table in database.OF_A_SESSION:
                db.execute(f"DELETE FROM {table} WHERE session = ?", (number,))
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

    def _queue(self, name: str, write: database.Write) -> Future[None]:
        transaction: Transaction | None = getattr(self._local, "transaction", None)
        if transaction is not None and transaction.name == name:
            transaction.writes.append(write)
            return _DONE
        return self._submit(name, write)

    def _submit(self, name: str, write: database.Write) -> Future[None]:
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

    def open(self, learner: Learner[Any]) -> tuple[database.Content, int]:
        """All there is, checked, and the epoch; held by this server from now on, unless it is only
        read.
        """
        if self.read_only:
            self._store.flushed(self._name).exception()  # waits
        else:
            self._claim(learner)
        try:
            with self._backing.reading() as db:
                content = database.Tables(db, self.number).read_content(self.where)
        except self._backing.reader.errors:  # of a file that was deleted and is still open
            content = database.Tables(self._backing.reader, self.number).read_content(self.where)
        self._epoch = content.head.epoch
        return content, self._epoch

    def _claim(self, learner: Learner[Any]) -> None:
        self._lease = self._backing.lease()
        begun: tuple[bytes, bytes] | None = None
        if self._store._rows("SELECT base FROM head WHERE session = ?", self.number) == [(b"",)]:
            begun = database.digest(identity(learner).encode()), learner.save(beginning(learner))

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

    def held(self, write: database.Write) -> database.Write:
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


# --- copies ---------------------------------------------------------------------------------------

# Rows that are copied at a time.
_AT_ONCE = 256
# How long a writer is waited for. Unit: seconds.
_PATIENCE = 60.0
_WHO = "tidewolf restore"
_WRITE_SESSION = (
    "INSERT INTO sessions VALUES (?, ?, ?, ?, ?, '') ON CONFLICT (number) DO UPDATE SET description"
    " = excluded.description, settings = excluded.settings, created = excluded.created, holder = ''"
)

# Called with how many sessions are done, and of how many.
Progress = Callable[[int, int], None]


def backup(
    where: str | Path,
    file: str | Path,
    names: Sequence[str] | None = None,
    progress: Progress = lambda done, of: None,
) -> int:
    """Copy sessions to a file, also while a server serves them.

    Parameters
    ----------
    where : str or path
        The folder, or the address of the PostgreSQL, that they are kept in.
    file : str or path
        The copy; there is no such file yet.
    names : sequence of str, optional
        Which sessions. None: all of them.
    progress : callable, optional
        Called after each with how many are done, and of how many.

    Returns
    -------
    int
        How many were copied.

    Raises
    ------
    UnknownSession
        If there is none of a name.
    CheckpointError
        If nothing can be read, or the copy cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from tidewolf.storage.session_store import backup, restore
    >>> from tidewolf.storage.session_store import SessionStore
    >>> folder = tempfile.mkdtemp()
    >>> store = SessionStore.open(f"{folder}/sessions")
    >>> store.create("routing", "{}").result()
    >>> backup(f"{folder}/sessions", f"{folder}/copy.db")
    1
    >>> restore(f"{folder}/copy.db", f"{folder}/others")
    1
    >>> store.close()
    """
    kept_in = where if postgres.is_address(where) else Path(where) / NAME
    try:
        with _reading(kept_in) as source, _new_file(Path(file).resolve()) as copy:
            infos = _infos(source, names, postgres.without_password(str(where)))
            for done, info in enumerate(infos, 1):
                copy.execute(_WRITE_SESSION, info)
                _copy_rows(source, copy, info[0], info[0])
                progress(done, len(infos))
            _copy_audit(source, copy, names)
    except (sqlite3.Error, OSError) as error:
        raise database.explained(error, f"The copy {file}", "Give another file.") from None
    return len(infos)


def restore(
    file: str | Path,
    where: str | Path,
    names: Sequence[str] | None = None,
    replace: bool = False,
    progress: Progress = lambda done, of: None,
) -> int:
    """Put sessions of a copy back, also while others are served there.

    Parameters
    ----------
    file : str or path
        What `backup` wrote.
    where : str or path
        A folder, made if it is not there, or the address of a PostgreSQL.
    names : sequence of str, optional
        Which sessions. None: all of the copy.
    replace : bool, default False
        Whether a session of the same name gives way.
    progress : callable, optional
        Called after each with how many are done, and of how many.

    Returns
    -------
    int
        How many were restored.

    Raises
    ------
    AlreadyThere
        If a session of the same name is there, and need not give way.
    UnknownSession
        If the copy has none of a name.
    BrokenFile
        If the file is no copy, or was cut short.
    CheckpointError
        If nothing can be written.
    """
    try:
        with _reading(Path(file)) as source, _target(where) as target:
            infos = _infos(source, names, str(file))
            if not target.rows("SELECT number FROM audit LIMIT 1"):
                _copy_audit(source, target, names)
            for done, info in enumerate(infos, 1):
                _put_back(source, target, info, replace, Path(file).name)
                progress(done, len(infos))
    except (sqlite3.Error, OSError) as error:
        raise database.explained(error, str(file), "Check the copy and the folder.") from None
    return len(infos)


def _put_back(
    source: database.Database, target: database.Database, info: Any, replace: bool, file: str
) -> None:
    old, name, *what = info
    sql = f"SELECT number FROM sessions WHERE name = ?{target.locking}"
    there, epoch = target.rows(sql, (name,)), 0
    number = there[0][0] if there else database.next_number(target, "sessions")
    if there:
        if not replace:
            raise AlreadyThere(
                f"There is a session called {name!r} already: --replace puts the copy in its place."
            )
        sql = f"SELECT epoch FROM head WHERE session = ?{target.locking}"
        ((epoch,),) = target.rows(sql, (number,))
        for table in database.OF_A_SESSION:
            target.execute(f"DELETE FROM {table} WHERE session = ?", (number,))
    target.execute(_WRITE_SESSION, (number, name, *what))
    _copy_rows(source, target, old, number)
    sql = "UPDATE head SET epoch = CASE WHEN epoch > ? THEN epoch ELSE ? END + 1 WHERE session = ?"
    target.execute(sql, (epoch, epoch, number))
    database.add_entry(target, time.time(), _WHO, name, "restore", f"from {file}")


def _infos(db: database.Database, names: Sequence[str] | None, where: str) -> list[Any]:
    sql = "SELECT number, name, description, settings, created FROM sessions"
    if names is None:
        return db.rows(f"{sql} ORDER BY name")
    found = []
    for name in dict.fromkeys(names):
        rows = db.rows(f"{sql} WHERE name = ?", (name,))
        require(rows, UnknownSession, f"There is no session called {name!r} in {where}.")
        found += rows
    return found


def _copy_rows(source: database.Database, target: database.Database, old: int, new: int) -> None:
    for table in database.OF_A_SESSION:
        with closing(source.stream(f"SELECT * FROM {table} WHERE session = ?", (old,))) as found:
            while rows := [(new, *row[1:]) for row in islice(found, _AT_ONCE)]:
                marks = ", ".join("?" * len(rows[0]))
                target.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)


def _copy_audit(
    source: database.Database, target: database.Database, names: Sequence[str] | None
) -> None:
    with closing(source.stream("SELECT * FROM audit ORDER BY number")) as found:
        while rows := list(islice(found, _AT_ONCE)):
            chosen = [row for row in rows if names is None or row[3] in names]
            target.executemany("INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?, ?)", chosen)


# --- databases ------------------------------------------------------------------------------------


@contextmanager
def _reading(where: str | Path) -> Iterator[database.Database]:
    """What is kept in a PostgreSQL or in a file, as it was at one moment."""
    if postgres.is_address(where):
        with _remote(str(where)) as remote:
            refuse(not remote.has_column("store", "name"), f"{remote.where} keeps no sessions.")
            database.require_format(remote, remote.where)
            with remote.snapshot():
                yield remote
        return
    path = Path(where).resolve()
    require(path.is_file(), InvalidInput, f"There is no file {path}.")
    with closing(database.SQLite(path, "ro", _PATIENCE)) as db:
        db.execute("BEGIN")
        database.require_format(db, path)
        yield db


@contextmanager
def _new_file(path: Path) -> Iterator[database.Database]:
    """A file with the tables and nothing in them; what is written to it is whole and on disk, or it
    is gone.
    """
    require(not path.exists(), AlreadyThere, f"{path} is there already: give another name.")
    journal = Path(f"{path}-journal")
    journal.unlink(missing_ok=True)  # of a copy that was killed
    try:
        with closing(database.SQLite(path, "rwc")) as db:
            db.pragmas("synchronous = FULL", f"application_id = {database.STORE_FILE}")
            with db.transaction():
                database.make_store(db)
                yield db
    except BaseException:
        path.unlink(missing_ok=True)
        journal.unlink(missing_ok=True)
        raise


@contextmanager
def _target(where: str | Path) -> Iterator[database.Database]:
    """Where sessions are restored to; all that is written is kept, or nothing."""
    if postgres.is_address(where):
        with _remote(str(where)) as remote:
            postgres.prepare(remote)
            with remote.transaction():
                yield remote
                # What tells the servers of a PostgreSQL to look whether they lost a session.
                remote.execute(
                    "INSERT INTO store VALUES ('restored', '1') ON CONFLICT (name) DO UPDATE SET "
                    "value = CAST(CAST(store.value AS BIGINT) + 1 AS TEXT)"
                )
        return
    folder = Path(where).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    with closing(opened(folder / NAME)) as db:
        db.pragmas(f"busy_timeout = {int(1000 * _PATIENCE)}")
        with db.transaction():
            yield db


@contextmanager
def _remote(url: str) -> Iterator[postgres.Postgres]:
    with closing(postgres.Postgres(url)) as db:
        try:
            yield db
        except db.errors as error:
            raise CheckpointError(f"{db.where} cannot be used: {db.sentence(error)}.") from None
