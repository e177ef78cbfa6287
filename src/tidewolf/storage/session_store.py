"""Many named sessions in one database: in a folder (SQLite), or in PostgreSQL.

Each is kept as a session in a file of its own is, in the same tables; beside it stand what it was
made of, what a service keeps of its rounds, and who did what. All writes are made by one thread, in
groups (commits.py):

    with store.transaction(name) as transaction:        one item: all of it is kept, or nothing
        session.observe(...)
        store.note(name, Round(...))
    transaction.future.result()                         it is on disk

Until then a session is ahead of the disk: nothing that depends on it may leave the process. If the
future fails, `let_go(name)`, and the session is opened again as it is on disk.

A session has one holder at a time. Its epoch is one more for each, and every commit finds the head
as its session left it, under the epoch of its holder, or fails.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, final

from tidewolf.core.arguments import as_text
from tidewolf.core.arrays import as_number
from tidewolf.core.errors import (
    AlreadyThere,
    CheckpointError,
    NotSupported,
    UnknownSession,
)
from tidewolf.core.values import identity
from tidewolf.methods.base import Learner
from tidewolf.storage.commits import Commits, Write
from tidewolf.storage.database import Database
from tidewolf.storage.file import File
from tidewolf.storage.folder import Folder
from tidewolf.storage.postgres import is_address
from tidewolf.storage.schema import OF_A_SESSION, next_number
from tidewolf.storage.tables import Content, Tables, digest

if TYPE_CHECKING:
    from tidewolf.storage.cluster import Cluster

_INFO = (
    "SELECT name, description, settings, created, observed, holder FROM sessions JOIN head ON "
    "head.session = number WHERE"
)
_ALL = 2**62
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


class Entry(NamedTuple):
    """Who did what."""

    number: int
    at: float
    who: str
    session: str
    what: str
    why: str
    version: str


class Transaction:
    """What is written together: all that this thread writes of a session within a `with`.

    Parameters
    ----------
    store : SessionStore
        If it is kept.
    name : str
        The session that it is of.
    """

    future: Future[None]
    """done when it is on disk"""

    def __init__(self, store: SessionStore, name: str) -> None:
        self._store, self.name = store, name
        self.writes: list[Write] = []

    def __enter__(self) -> Transaction:
        self._store._local.transaction = self
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        store, name = self._store, self.name
        store._local.transaction = None
        if kind is not None:
            if self.writes:  # the session may be ahead of what is kept
                store.let_go(name)
        else:
            self.future = store._submit(name, self._write) if self.writes else store.flushed(name)

    def _write(self, db: Database) -> None:
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

    def __init__(self, backing: Folder | Cluster, *, commit_within: float = 0.01) -> None:
        self._backing, self.where, self.holder = backing, backing.where, backing.holder
        self.closed = False
        self._numbers: dict[str, int] = {}
        self._handles: dict[str, SessionHandle] = {}
        self._last: dict[str, Future[None]] = {}
        self._local, self._mutex = threading.local(), threading.Lock()
        self._changes: int | None = None
        within = as_number(commit_within, "commit_within", least=0.0)
        self.commits = Commits(backing.writer, within, self.where, self._look)

    @classmethod
    def open(
        cls, where: str | Path, *, commit_within: float = 0.01, holder: str = ""
    ) -> SessionStore:
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

        Returns
        -------
        SessionStore
            To be closed.

        Raises
        ------
        InUse
            If another process serves the same folder.
        """
        if is_address(where):
            from tidewolf.storage.cluster import Cluster

            return cls(Cluster(str(where), holder), commit_within=commit_within)
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
        values = (after, prefix, f"{prefix}\U0010ffff", _ALL if most is None else most)
        return [SessionInfo(*row) for row in self._rows(sql, *values)]

    def info(self, name: str) -> SessionInfo | None:
        """What is known of a session without opening it; None if there is none."""
        found = self._rows(f"{_INFO} name = ?", name)
        return SessionInfo(*found[0]) if found else None

    def count(self) -> int:
        """How many there are."""
        return int(self._rows("SELECT count(*) FROM sessions")[0][0])

    def create(self, name: str, description: str, settings: str = "{}") -> Future[None]:
        """A session that has no learner yet; its first `session` gives it one."""

        def require_free(db: Database) -> None:
            if db.rows("SELECT 1 FROM sessions WHERE name = ?", (name,)):
                raise AlreadyThere(f"There is a session called {name!r} already.")

        def write(db: Database) -> None:
            number = next_number(db, "sessions")
            require_free(db)
            values = (number, name, description, settings, time.time(), "")
            db.execute("INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?)", values)
            db.execute("INSERT INTO head VALUES (?, 0, ?, 0, ?, 0, 0, 0)", (number, b"", b""))

        require_free(self._backing.reader)
        return self._queue(name, write)

    def delete(self, name: str) -> Future[None]:
        """Without the session and all that was kept of it."""
        number = self._number(name)
        self.let_go(name)
        self._numbers.pop(name, None)

        def write(db: Database) -> None:
            self._backing.claim(db, number)
            for table in OF_A_SESSION:
                db.execute(f"DELETE FROM {table} WHERE session = ?", (number,))
            db.execute("DELETE FROM sessions WHERE number = ?", (number,))

        return self._queue(name, write)

    def _number(self, name: str, *, now: bool = False) -> int:
        """Its number; `now`: in the database, where it may have been deleted and created again."""
        if now or name not in self._numbers:
            found = self._rows("SELECT number FROM sessions WHERE name = ?", name)
            if not found:
                raise UnknownSession(f"There is no session called {name!r}.")
            if now:
                return int(found[0][0])
            self._numbers[name] = int(found[0][0])
        return self._numbers[name]

    # --- sessions ---------------------------------------------------------------------------------

    def handle(self, name: str, *, alone: bool = False) -> SessionHandle:
        """Where a session is kept, for its journal; `alone`: each write returns when it is on disk,
        and the store is closed with it.
        """
        self.let_go(name)
        self._numbers.pop(name, None)  # another server may have made it anew
        handle = SessionHandle(self, name, self._number(name), alone)
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
        handle = self._handles.get(name)
        return handle is not None and handle.is_written

    # --- what stands beside a session -------------------------------------------------------------

    def _change(self, name: str, *statements: tuple[str, tuple[Any, ...]]) -> None:
        """Queue statements whose last value is the number of the session."""
        number = self._number(name)

        def write(db: Database) -> None:
            for sql, values in statements:
                db.execute(sql, (*values, number))

        self._queue(name, write)

    def note(self, name: str, round: Round, observed: int | None = None) -> None:
        """Keep this of a round, in place of what was kept; and how many were observed by now."""
        sql = (
            "INSERT INTO rounds (round, at, cost, violation, note, session) VALUES (?, ?, ?, ?, ?, "
            "?) ON CONFLICT (session, round) DO UPDATE SET at = excluded.at, cost = excluded.cost, "
            "violation = excluded.violation, note = excluded.note"
        )
        count = [] if observed is None else [_observed(observed)]
        self._change(name, (sql, tuple(round)), *count)

    def forget_rounds(self, name: str, first: int, observed: int) -> None:
        """Without what was kept of this round and of later ones."""
        sql = "DELETE FROM rounds WHERE round >= ? AND session = ?"
        self._change(name, (sql, (first,)), _observed(observed))

    def set(self, name: str, settings: str) -> None:
        """How it is operated from now on."""
        self._change(name, ("UPDATE sessions SET settings = ? WHERE number = ?", (settings,)))

    def describe(self, name: str, description: str) -> None:
        """What it is made of from now on."""
        self._change(name, ("UPDATE sessions SET description = ? WHERE number = ?", (description,)))

    def audit(self, who: str, session: str, what: str, why: str = "") -> None:
        """Add to the record of who did what."""
        from tidewolf import __version__ as version

        at = time.time()

        def write(db: Database) -> None:
            values = (next_number(db, "audit"), at, who, session, what, why, version)
            db.execute("INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?, ?)", values)

        self._queue(session, write)

    def rounds_of(self, name: str, first: int, last: int) -> list[Round]:
        """What was kept of these rounds, in order."""
        sql = f"{_ROUND} round >= ? AND round <= ? ORDER BY round"
        return [Round(*row) for row in self._rows(sql, self._number(name, now=True), first, last)]

    def last_rounds(self, name: str, most: int) -> list[Round]:
        """The same of the last ones that were observed, in order."""
        sql = f"{_ROUND} (cost IS NOT NULL OR violation IS NOT NULL) ORDER BY round DESC LIMIT ?"
        found = self._rows(sql, self._number(name, now=True), most)
        return [Round(*row) for row in found[::-1]]

    def entries(self, session: str | None = None, after: int = 0, most: int = 100) -> list[Entry]:
        """Who did what, oldest first."""
        where, values = ("AND session = ? ", (session,)) if session is not None else ("", ())
        sql = f"SELECT * FROM audit WHERE number > ? {where}ORDER BY number LIMIT ?"
        return [Entry(*row) for row in self._rows(sql, after, *values, most)]

    def last_entries(self, session: str, most: int) -> list[Entry]:
        """The same of one session, newest first."""
        sql = "SELECT * FROM audit WHERE session = ? ORDER BY number DESC LIMIT ?"
        return [Entry(*row) for row in self._rows(sql, session, most)]

    # --- writing ----------------------------------------------------------------------------------

    def transaction(self, name: str) -> Transaction:
        """All that this thread writes of a session within it is one item."""
        return Transaction(self, name)

    def flushed(self, name: str) -> Future[None]:
        """Done when all that was written of a session is on disk."""
        last = self._last.get(name)
        return _DONE if last is None or (last.done() and last.exception() is None) else last

    def is_well(self) -> str | None:
        """None, or a sentence why nothing can be kept at the moment."""
        return self.commits.trouble

    def close(self) -> None:
        """Write what waits, and let go of the database; twice does no harm."""
        if not self.closed:
            self.closed = True
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
        if changes == self._changes:
            return
        self._changes = changes
        with self._mutex:
            handles = list(self._handles.values())
        for handle in handles:
            handle.look(self._backing.writer)


def _observed(count: int) -> tuple[str, tuple[int]]:
    return "UPDATE head SET observed = ? WHERE session = ?", (count,)


class _Handle:
    """A session among many, as its journal sees it."""

    errors: tuple[type[Exception], ...] = ()

    def __init__(self, store: SessionStore, name: str, number: int) -> None:
        self._store, self._name, self._number = store, name, number
        self.where, self.store = f"the session {name} in {store.where}", store.where

    def reread(self) -> None:
        """What an interrupt left is not known: another thread writes."""


@final
class SessionHandle(_Handle):
    """A session among many, for its one writer."""

    def __init__(self, store: SessionStore, name: str, number: int, alone: bool) -> None:
        super().__init__(store, name, number)
        self._alone = alone
        self._tables = Tables(store._backing.writer, number)
        self._epoch: int | None = None
        self._lease, self._process = 0, os.getpid()
        self._lost: CheckpointError | None = None

    def open(self, learner: Learner[Any]) -> tuple[Content, int]:
        """All there is, checked, and held by this server from now on, under this epoch."""
        backing, number = self._store._backing, self._number
        self._lease = backing.lease()
        begun: tuple[bytes, bytes] | None = None
        if self._store._rows("SELECT base FROM head WHERE session = ?", number) == [(b"",)]:
            begun = digest(identity(learner).encode()), learner.save(learner.begin())

        def claim(db: Database) -> None:
            backing.claim(db, number)
            tables = Tables(db, number)
            if begun is not None and not tables.read_head().base:
                tables.begin(*begun)

        self._store._submit(self._name, claim).result()
        with backing.reading() as db:
            content = Tables(db, number).read_content(self.where)
        self._epoch = content.head.epoch
        return content, self._epoch

    @property
    def is_written(self) -> bool:
        """Whether the session is this server's, as far as that can be known."""
        try:
            return self._lost is None and self._lease == self._store._backing.lease()
        except CheckpointError:
            return False

    @property
    def tables(self) -> Tables:
        self._store.flushed(self._name).exception()  # waits
        self._require_held()
        return Tables(self._store._backing.reader, self._number)

    def require_writable(self) -> None:
        """Whether the database is still there is looked at before every group."""
        if self._process != os.getpid():
            raise CheckpointError(f"{self.where} was opened by the process before a fork.")
        self._require_held()

    def _require_held(self) -> None:
        if not self.is_written:
            self.lose(f"{self.where} may have been taken by another server: open it again.")
            assert self._lost is not None
            raise self._lost

    def held(self, write: Write) -> Write:
        """The same, unless another server has the session by then."""
        if self._epoch is None:  # not yet
            return write
        backing, number = self._store._backing, self._number

        def checked(db: Database) -> None:
            backing.require_held(db, number)
            write(db)

        return checked

    def write(self, do: Callable[[Tables], None], last: int) -> None:
        """One transaction, in which `last` becomes the last observation."""
        future = self._store._queue(self._name, lambda _: do(self._tables))
        if self._alone:
            future.result()

    def close(self) -> None:
        """Observe no more."""
        self.lose(f"{self.where} is closed: open it again.")
        if self._alone:
            self._store.close()

    def written(self, future: Future[None]) -> None:
        """What was queued is done, or failed: then the session is ahead of what is kept."""
        error = future.exception()
        if error is not None:
            self.lose(error if isinstance(error, CheckpointError) else str(error))

    def look(self, db: Database) -> None:
        """Let go if another has it by now."""
        found = db.rows("SELECT epoch FROM head WHERE session = ?", (self._number,))
        if self._epoch is not None and found != [(self._epoch,)]:
            self.lose(f"{self.where} was restored, or taken by another server: open it again.")

    def lose(self, why: str | CheckpointError) -> None:
        if self._lost is None:
            self._lost = CheckpointError(why) if isinstance(why, str) else why


@final
class ReadHandle(_Handle):
    """A session among many as it is on disk, to be read, whichever server holds it."""

    is_written = False

    def open(self, learner: Learner[Any]) -> tuple[Content, int]:
        """All there is, checked; also from a file that was deleted and is still open."""
        backing = self._store._backing
        self._store.flushed(self._name).exception()  # waits
        try:
            with backing.reading() as db:
                content = Tables(db, self._number).read_content(self.where)
        except backing.reader.errors:
            content = self.tables.read_content(self.where)
        return content, content.head.epoch

    @property
    def tables(self) -> Tables:
        return Tables(self._store._backing.reader, self._number)

    def require_writable(self) -> None:
        raise CheckpointError(f"{self.where} was opened with read_only=True: it only reads.")

    def write(self, do: Callable[[Tables], None], last: int) -> None:
        self.require_writable()

    def close(self) -> None:
        """There is nothing to close."""


_DONE: Future[None] = Future()
_DONE.set_result(None)

Backend: TypeAlias = File | SessionHandle | ReadHandle
"""Where a session is kept: a file of its own, or a place among others."""


def backend(
    where: str | os.PathLike[str] | SessionStore, name: str, *, read_only: bool = False
) -> Backend:
    """Where the session of this name is kept; in PostgreSQL it is made if there is none."""
    if isinstance(where, SessionStore):
        name = as_text(name, "The name of a session")
        if read_only:
            return ReadHandle(where, name, where._number(name))
        return where.handle(name)
    if not is_address(where):
        return File(where, read_only=read_only)
    if read_only:
        raise NotSupported(
            "A session in PostgreSQL is held by the one that opened it: read_only=True looks at "
            "files."
        )
    store = SessionStore.open(str(where), commit_within=0.0)
    try:
        if store.info(as_text(name, "The name of a session")) is None:
            with suppress(AlreadyThere):  # by another process, just now
                store.create(name, "").result()
        return store.handle(name, alone=True)
    except BaseException:
        store.close()
        raise
