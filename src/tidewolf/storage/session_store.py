"""Many named sessions in one database: in a folder (SQLite), or in PostgreSQL.

Each is kept as a session in a file of its own is (storage/__init__.py), in tables where every row
has the number of its session; beside it stand what it was made of, what a service keeps of its
rounds, and who did what. All that is written goes through one thread, in groups (commits.py):

    with shelf.transaction(name) as bundle:          one item: all of it is kept, or nothing
        session.observe(...)
        shelf.note(name, Round(...))
    bundle.future.result()                      it is on disk

Until then a session is ahead of the disk: nothing that depends on it may leave the process. Where
the future fails, `let_go(name)`, and the session is opened again as it is on disk.

A session has one holder at a time. Its epoch is one more for each, and every commit finds the head
as its session left it, under the epoch of its holder, or fails.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar, final

from tidewolf.core.arrays import as_number
from tidewolf.core.errors import AlreadyThere, CheckpointError, TidewolfError, UnknownSession
from tidewolf.core.values import identity
from tidewolf.methods.base import Learner, Progress
from tidewolf.storage.address import is_address
from tidewolf.storage.commits import Commits, Write
from tidewolf.storage.database import Database
from tidewolf.storage.records import Content, Head, digest
from tidewolf.storage.session_store_schema import OF_A_SESSION, next_number
from tidewolf.storage.tables import Tables

if TYPE_CHECKING:
    from tidewolf.storage.cluster import Cluster
    from tidewolf.storage.folder import Folder

S = TypeVar("S", bound=Progress)
_INFO = "name, description, settings, created, observed, holder"
_IN_LIST = _INFO.replace("description", "''")
"""The same without what may be long."""


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
        What was played cost, and by how much it broke its limits, once that is known.
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


Backing: TypeAlias = "Folder | Cluster"
"""The database that sessions are kept in."""


class Transaction:
    """What is written together: all that this thread writes of a session within a `with`.

    Parameters
    ----------
    store : SessionStore
        Where it is kept.
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
    backing : Backing
        The database, opened for its one writer.
    commit_within : float, default 0.01
        How long what is to be kept may wait for others, to share their sync; 0: every one has its
        own. Unit: seconds.
    holder : str, default ""
        What this server is called among those that share the database.

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

    def __init__(self, backing: Backing, *, commit_within: float = 0.01, holder: str = "") -> None:
        self._backing, self.where, self.holder = backing, backing.where, holder
        self.closed = False
        self._numbers: dict[str, int] = {}
        self._handles: dict[str, SessionHandle] = {}
        self._last: dict[str, Future[None]] = {}
        self._local, self._mutex = threading.local(), threading.Lock()
        self._changes: int | None = None
        self.commits = Commits(
            backing.writer,
            as_number(commit_within, "commit_within", least=0.0),
            self.where,
            self._look,
        )

    @classmethod
    def open(
        cls, where: str | Path, *, commit_within: float = 0.01, holder: str = ""
    ) -> SessionStore:
        """The sessions kept there.

        Parameters
        ----------
        where : str or path
            A folder, made where it is not there; or postgresql://USER:PASSWORD@HOST/DATABASE.
        commit_within : float, default 0.01
            How long what is to be kept may wait for others. Unit: seconds.
        holder : str, default ""
            What this server is called. Empty: the name of the machine and the process.

        Returns
        -------
        SessionStore
            To be closed.

        Raises
        ------
        InUse
            Where another process serves the same folder.
        """
        if is_address(where):
            from tidewolf.storage.cluster import Cluster

            cluster = Cluster(str(where), holder)
            return cls(cluster, commit_within=commit_within, holder=cluster.holder)
        from tidewolf.storage.folder import Folder

        return cls(Folder(Path(where)), commit_within=commit_within, holder=holder)

    # --- names ------------------------------------------------------------------------------------

    def infos(self, prefix: str = "", after: str = "", most: int = 1000) -> list[SessionInfo]:
        """Those whose names begin so, in the order of their names; without their descriptions,
        each of which may be long.
        """
        sql = (
            f"SELECT {_IN_LIST} FROM sessions JOIN head ON head.session = number WHERE name > ? "
            "AND name >= ? AND name < ? ORDER BY name LIMIT ?"
        )
        values = (after, prefix, f"{prefix}\U0010ffff", most)
        return [SessionInfo(*row) for row in self._backing.reader.execute(sql, values).fetchall()]

    def info(self, name: str) -> SessionInfo | None:
        """What is known of a session without opening it; None where there is none."""
        sql = f"SELECT {_INFO} FROM sessions JOIN head ON head.session = number WHERE name = ?"
        row = self._backing.reader.execute(sql, (name,)).fetchone()
        return None if row is None else SessionInfo(*row)

    def count(self) -> int:
        """How many there are."""
        return int(self._backing.reader.execute("SELECT count(*) FROM sessions").fetchone()[0])

    def create(self, name: str, description: str, settings: str = "{}") -> Future[None]:
        """A session that has no learner yet; its first `session` gives it one."""
        if self.info(name) is not None:
            raise _taken(name)

        def write(db: Database) -> None:
            number = next_number(db, "sessions")
            if db.execute("SELECT 1 FROM sessions WHERE name = ?", (name,)).fetchone():
                raise _taken(name)
            values = (number, name, description, settings, time.time(), "")
            db.execute("INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?)", values)
            sql = "INSERT INTO head VALUES (?, 0, ?, 0, ?, 0, 0, 0)"
            db.execute(sql, (number, b"", b""))

        return self._queue(name, write)

    def delete(self, name: str) -> Future[None]:
        """Without the session and all that was kept of it."""
        number = self._number(name)
        self.let_go(name)
        self._numbers.pop(name, None)

        def write(db: Database) -> None:
            self._backing.claim(db, number, self.holder)
            for table in OF_A_SESSION:
                db.execute(f"DELETE FROM {table} WHERE session = ?", (number,))
            db.execute("DELETE FROM sessions WHERE number = ?", (number,))

        return self._queue(name, write)

    def _number(self, name: str) -> int:
        """Its number, if this process has it open."""
        if name not in self._numbers:
            self._numbers[name] = self._number_now(name)
        return self._numbers[name]

    def _number_now(self, name: str) -> int:
        """Its number in the database: it may have been deleted, and created again."""
        sql = "SELECT number FROM sessions WHERE name = ?"
        row = self._backing.reader.execute(sql, (name,)).fetchone()
        if row is None:
            raise UnknownSession(f"There is no session called {name!r}.")
        return int(row[0])

    # --- sessions ---------------------------------------------------------------------------------

    def handle(self, name: str, *, alone: bool = False) -> SessionHandle:
        """Where a session is kept, for its journal; `alone`: each write returns when it is on disk,
        and the shelf is closed with it.
        """
        self.let_go(name)
        self._numbers.pop(name, None)  # another server may have made it anew
        handle = SessionHandle(self, name, self._number(name), alone)
        with self._mutex:
            self._handles[name] = handle
        return handle

    def read_handle(self, name: str) -> ReadHandle:
        """Where a session is kept, to be looked at."""
        return ReadHandle(self, name, self._number(name))

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

    def note(self, name: str, round: Round, observed: int | None = None) -> None:
        """Keep this of a round, in place of what was kept; and how many were observed by now."""
        number = self._number(name)

        def write(db: Database) -> None:
            db.execute(
                "INSERT INTO rounds VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (session, round) DO "
                "UPDATE SET at = excluded.at, cost = excluded.cost, violation = "
                "excluded.violation, note = excluded.note",
                (number, *round),
            )
            if observed is not None:
                sql = "UPDATE head SET observed = ? WHERE session = ?"
                db.execute(sql, (observed, number))

        self._queue(name, write)

    def forget_rounds(self, name: str, first: int, observed: int) -> None:
        """Without what was kept of this round and of later ones."""
        number = self._number(name)

        def write(db: Database) -> None:
            db.execute("DELETE FROM rounds WHERE session = ? AND round >= ?", (number, first))
            db.execute("UPDATE head SET observed = ? WHERE session = ?", (observed, number))

        self._queue(name, write)

    def set(self, name: str, settings: str) -> None:
        """How it is operated from now on."""
        self._update(name, "settings", settings)

    def describe(self, name: str, description: str) -> None:
        """What it is made of from now on."""
        self._update(name, "description", description)

    def _update(self, name: str, column: str, value: str) -> None:
        number, sql = self._number(name), f"UPDATE sessions SET {column} = ? WHERE number = ?"
        self._queue(name, lambda db: _discard(db.execute(sql, (value, number))))

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
        sql = (
            "SELECT round, at, cost, violation, note FROM rounds WHERE session = ? AND round >= ? "
            "AND round <= ? ORDER BY round"
        )
        return self._rounds(sql, self._number_now(name), first, last)

    def last_rounds(self, name: str, most: int) -> list[Round]:
        """The same of the last ones that were observed, in order."""
        sql = (
            "SELECT round, at, cost, violation, note FROM rounds WHERE session = ? AND (cost IS "
            "NOT NULL OR violation IS NOT NULL) ORDER BY round DESC LIMIT ?"
        )
        return self._rounds(sql, self._number_now(name), most)[::-1]

    def _rounds(self, sql: str, *values: int) -> list[Round]:
        return [Round(*row) for row in self._backing.reader.execute(sql, values).fetchall()]

    def entries(self, session: str | None = None, after: int = 0, most: int = 100) -> list[Entry]:
        """Who did what, oldest first."""
        where, values = ("AND session = ? ", (session,)) if session is not None else ("", ())
        sql = f"SELECT * FROM audit WHERE number > ? {where}ORDER BY number LIMIT ?"
        found = self._backing.reader.execute(sql, (after, *values, most)).fetchall()
        return [Entry(*row) for row in found]

    def last_entries(self, session: str, most: int) -> list[Entry]:
        """The same of one session, newest first."""
        sql = "SELECT * FROM audit WHERE session = ? ORDER BY number DESC LIMIT ?"
        found = self._backing.reader.execute(sql, (session, most)).fetchall()
        return [Entry(*row) for row in found]

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
        if changes is None or changes == self._changes:
            return
        self._changes = changes
        with self._mutex:
            handles = list(self._handles.values())
        for handle in handles:
            handle.look(self._backing.writer)


class _Handle:
    """A session among many, as its journal sees it: nothing is noted beside the database, and an
    interrupt reaches no transaction, because one thread writes.
    """

    errors: tuple[type[Exception], ...] = ()

    def __init__(self, store: SessionStore, name: str, number: int) -> None:
        self._store, self._name, self._number = store, name, number
        self.where, self.store = f"the session {name} in {store.where}", store.where

    def epoch_after(self, head: Head) -> int:
        """The epoch of this writer's commits."""
        return head.epoch

    def begin(self) -> None:
        """A session is written to from the moment it is held."""

    def undo(self) -> None:
        """There is nothing to undo."""

    def is_in_place(self) -> bool:
        """What was interrupted is read again from the database."""
        return False

    def acknowledge(self, count: int) -> None:
        """What is acknowledged is in the database."""


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

    def open(self, learner: Learner[Any]) -> Content:
        """All there is, checked, and held by this server from now on."""
        store, number = self._store, self._number
        self._lease = store._backing.lease()
        begun: tuple[bytes, bytes] | None = None
        sql = "SELECT base FROM head WHERE session = ?"
        if store._backing.reader.execute(sql, (number,)).fetchone() == (b"",):
            begun = digest(identity(learner).encode()), learner.save(learner.begin())

        def claim(db: Database) -> None:
            store._backing.claim(db, number, store.holder)
            tables = Tables(db, number)
            head = tables.read_head()
            if begun is not None and not head.base:
                head = head._replace(base=begun[0], link=begun[0])
                tables.write_head(head)
                tables.add_snapshot(head, begun[1], 1)

        store._submit(self._name, claim).result()
        with store._backing.reading() as db:
            content = Tables(db, number).read_content(self.where)
        self._epoch = content.head.epoch
        return content

    @property
    def is_written(self) -> bool:
        """Whether the session is this server's, as far as anybody can know."""
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
            raise CheckpointError(
                f"{self.where} belongs to the process that opened it, and this is a fork of that."
            )
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
        backing, number, holder = self._store._backing, self._number, self._store.holder

        def checked(db: Database) -> None:
            backing.require_held(db, number, holder)
            write(db)

        return checked

    def write(self, do: Callable[[Tables], None]) -> None:
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
        """Let go where another has it by now."""
        sql = "SELECT epoch FROM head WHERE session = ?"
        row = db.execute(sql, (self._number,)).fetchone()
        if self._epoch is not None and (row is None or row[0] != self._epoch):
            self.lose(f"{self.where} was restored, or taken by another server: open it again.")

    def lose(self, why: str | CheckpointError) -> None:
        if self._lost is None:
            self._lost = CheckpointError(why) if isinstance(why, str) else why


@final
class ReadHandle(_Handle):
    """A session among many as it is on disk, to be read, whichever server holds it."""

    is_written = False

    def open(self, learner: Learner[Any]) -> Content:
        """All there is, checked; also from a file that was deleted and is still open."""
        backing = self._store._backing
        self._store.flushed(self._name).exception()  # waits
        try:
            with backing.reading() as db:
                return Tables(db, self._number).read_content(self.where)
        except backing.reader.errors:
            return self.tables.read_content(self.where)

    @property
    def tables(self) -> Tables:
        return Tables(self._store._backing.reader, self._number)

    def require_writable(self) -> None:
        raise CheckpointError(f"{self.where} was opened to look: it observes nothing.")

    def write(self, do: Callable[[Tables], None]) -> None:
        self.require_writable()

    def close(self) -> None:
        """There is nothing to close."""


def _taken(name: str) -> TidewolfError:
    return AlreadyThere(f"There is a session called {name!r} already.")


def _discard(_: object) -> None:
    """Nothing."""


_DONE: Future[None] = Future()
_DONE.set_result(None)
