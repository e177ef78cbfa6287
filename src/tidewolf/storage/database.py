"""Databases that sessions are kept in: connections, tables, and the rows of one session with checks
of their consistency.

Statements are standard SQL with `?` for values, the same for SQLite and PostgreSQL (postgres.py):
`execute` changes rows and counts them, `rows` reads. A connection names what differs: its types of
bytes (`blob`) and names, what stands after a table (`keyed`), and how rows are locked (`locking`).
A transaction that was left without an error survives the machine.

    link_0 = sha256(settings)       link_k = sha256(link_{k-1} | event k)
    seal   = sha256(link of the event | the state after it)

Whatever changes the state of a session is an event: side information of the next round, a decision
whose feedback comes later, an observation, the expiry of a round. Events are kept in the order in
which they happened, before the caller gets an answer that depends on them. Rounds are numbered from
1, as in every file.

The tables of sessions, the same in SQLite and PostgreSQL (docs/reference/formats.md).

    head            one row per session: which events there are, their links, the last snapshot, the
                    epoch; `observed`: how many rounds were observed
    events          one row for each, in the order in which they happened
    snapshots       states; the last one is what opening begins from
    contents        the identity of what was observed of a round, if rounds have numbers
    meta            names and values that no reader depends on

Every row begins with the number of its session, which is 1 in the file of one session. A store of
many sessions has four more:

    sessions        one row for each: its number, its name, what it was made of, its server
    rounds          what a service keeps of every round beside the session
    audit           who did what, and why; rows are added and never changed
    store           the format, and the last number that a session had

`File` is the file of one session: locked by its one writer, and checked for removal. `PATH-lock` is
held from opening to closing, and says how many observations were acknowledged.
"""

import hashlib
import os
import shutil
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias, final

from tidewolf.core import arguments, checkpoint, errors, values
from tidewolf.methods import base, capabilities

if TYPE_CHECKING:
    from tidewolf.storage.postgres import Postgres

# Settings under which a commit is on disk when it returns, and readers see the file meanwhile.
DURABLE = ("journal_mode = WAL", "synchronous = FULL", "fullfsync = ON")


class FateUnknown(errors.CheckpointError):
    """A commit that may or may not have been kept."""


# A connection to a database.
Database: TypeAlias = "SQLite | Postgres"


@final
class SQLite:
    """A connection to a file of SQLite, which threads may share: one statement at a time."""

    errors: tuple[type[Exception], ...] = (sqlite3.Error,)
    blob = "BLOB"
    name = "TEXT"
    keyed = " WITHOUT ROWID"
    locking = ""
    # statements after which no row of the audit can be changed or removed
    append_only = tuple(
        f"CREATE TRIGGER audit_{act} BEFORE {act} ON audit BEGIN "
        "SELECT RAISE(ABORT, 'rows of audit are never changed'); END"
        for act in ("update", "delete")
    )

    def __init__(self, path: Path, mode: str, timeout: float = 5.0) -> None:
        self._turn = threading.Lock()
        if mode == "rwc":
            with suppress(OSError):  # it is there, or SQLite says why it cannot be
                path.touch(0o600, exist_ok=False)
        self.connection = sqlite3.connect(
            f"{path.as_uri()}?mode={mode}",
            timeout,
            uri=True,
            isolation_level=None,
            check_same_thread=False,
        )

    def execute(self, sql: str, values: Sequence[Any] = ()) -> int:
        with self._turn:
            return self.connection.execute(sql, values).rowcount

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        """All rows of a statement: one that was still read from would keep its connection in the
        past.
        """
        with self._turn:
            return self.connection.execute(sql, values).fetchall()

    def stream(self, sql: str, values: Sequence[Any] = ()) -> Generator[Any]:
        yield from self.connection.execute(sql, values)

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        self.connection.executemany(sql, rows)

    def pragmas(self, *settings: str) -> None:
        for setting in settings:
            self.rows(f"PRAGMA {setting}")

    def close(self) -> None:
        self.connection.close()

    def transaction(self) -> Self:
        """With the file locked for writing from its beginning.

        No generator: one that an interrupt leaves suspended is closed whenever its traceback is
        freed, and would then undo the transaction of that moment.
        """
        return self

    def __enter__(self) -> None:
        self.execute("BEGIN IMMEDIATE")

    def __exit__(self, *error: Any) -> None:
        self.connection.__exit__(*error)

    def changes(self) -> int:
        """Another number after another process wrote."""
        return int(self.rows("PRAGMA data_version")[0][0])


def locked(path: Path, in_use: str) -> SQLite:
    """Hold the lock of this path until it is closed, or the process ends; `in_use` is the message
    if another process holds it.
    """
    lock = SQLite(path, "rwc", timeout=0.0)
    try:
        lock.pragmas("locking_mode = EXCLUSIVE", "journal_mode = MEMORY", "synchronous = OFF")
        lock.execute("BEGIN EXCLUSIVE")
        lock.execute("COMMIT")
    except sqlite3.DatabaseError as error:
        lock.close()
        if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
            raise errors.CheckpointError(
                f"{path} cannot be locked: {error}. Remove it if no session is open."
            ) from None
        raise errors.InUse(in_use) from None
    return lock


@final
class InPlace:
    """Whether a database and its log are the files that were opened: one that is deleted or
    replaced under its writer would keep nothing.
    """

    def __init__(self, path: Path) -> None:
        self._paths, self._inodes = (str(path), f"{path}-wal"), dict[str, Any]()

    def holds(self) -> bool:
        """Whether the files are those that were opened; the log is made by the first commit."""
        now = dict[str, Any]()
        for path in self._paths:
            with suppress(OSError):
                now[path] = (status := os.stat(path)).st_dev, status.st_ino
        self._inodes = now | self._inodes
        return now == self._inodes

    def require(self) -> None:
        errors.require(
            self.holds(),
            errors.CheckpointError,
            f"{self._paths[0]}, or its log, was deleted or replaced while it was open. Put it "
            "back, or save(path) what the session knows.",
        )


def explained(error: Exception, where: str, fix: str) -> errors.CheckpointError:
    name = getattr(error, "sqlite_errorname", "SQLITE_CANTOPEN")
    # SQLite's errors that say nothing about what is in a file
    of_the_place = ["BUSY", "CANTOPEN", "FULL", "IOERR", "NOMEM", "PERM", "READONLY"]
    if name.split("_")[1] in of_the_place and not isinstance(error, UnicodeDecodeError):
        return errors.CheckpointError(f"{where} cannot be used: {error}. {fix}")
    return errors.BrokenFile(
        f"{where} is truncated or was changed: {error}. Go back to an earlier copy."
    )


# --- tables ---------------------------------------------------------------------------------------

FORMAT = 4
# SQLite's application_id of our files.
SESSION_FILE, STORE_FILE = int.from_bytes(b"tide"), int.from_bytes(b"tws1")
_COUNT, _BYTES = "BIGINT NOT NULL", "{blob} NOT NULL"
SESSION_TABLES = {
    "head": (
        f"session BIGINT PRIMARY KEY, first {_COUNT}, base {_BYTES}, last {_COUNT}, "
        f"link {_BYTES}, snapshot {_COUNT}, epoch {_COUNT}, observed {_COUNT}"
    ),
    "events": (
        f"session {_COUNT}, number {_COUNT}, kind TEXT NOT NULL, round {_COUNT}, epoch {_COUNT}, "
        f"data {_BYTES}, PRIMARY KEY (session, number)"
    ),
    "snapshots": (
        f"session {_COUNT}, number {_COUNT}, state {_BYTES}, seal {_BYTES}, "
        "PRIMARY KEY (session, number)"
    ),
    "contents": f"session {_COUNT}, round {_COUNT}, content TEXT, PRIMARY KEY (session, round)",
    "meta": f"session {_COUNT}, name TEXT NOT NULL, value TEXT, PRIMARY KEY (session, name)",
}
STORE_TABLES = SESSION_TABLES | {
    "rounds": (
        f"session {_COUNT}, round {_COUNT}, at DOUBLE PRECISION NOT NULL, cost DOUBLE PRECISION, "
        f"violation DOUBLE PRECISION, note {_BYTES}, PRIMARY KEY (session, round)"
    ),
    "sessions": (
        "number BIGINT PRIMARY KEY, name {name} NOT NULL UNIQUE, description TEXT NOT NULL, "
        "settings TEXT NOT NULL, created DOUBLE PRECISION NOT NULL, holder TEXT NOT NULL"
    ),
    "audit": (
        "number BIGINT PRIMARY KEY, at DOUBLE PRECISION NOT NULL, who TEXT NOT NULL, session TEXT "
        "NOT NULL, what TEXT NOT NULL, why TEXT NOT NULL, version TEXT NOT NULL"
    ),
    "store": "name TEXT PRIMARY KEY, value TEXT NOT NULL",
}
# Tables of a store whose rows belong to a session.
OF_A_SESSION = (*SESSION_TABLES, "rounds")


def _statement(db: Database, table: str, columns: str) -> str:
    return f"CREATE TABLE {table} ({columns.format(blob=db.blob, name=db.name)}){db.keyed}"


def make_tables(db: Database, tables: Mapping[str, str]) -> None:
    for table, columns in tables.items():
        db.execute(_statement(db, table, columns))


def make_store(db: Database) -> None:
    make_tables(db, STORE_TABLES)
    for statement in db.append_only:
        db.execute(statement)
    db.execute("INSERT INTO store VALUES ('format', ?)", (str(FORMAT),))


def require_format(db: Database, where: str | Path, kind: int = STORE_FILE) -> None:
    if isinstance(db, SQLite) and db.rows("PRAGMA application_id") != [(kind,)]:
        what = "a durable session" if kind == SESSION_FILE else "a service with many sessions"
        raise errors.BrokenFile(f"{where} is a file, but not one of {what}. Give another path.")
    of_store = "SELECT value FROM store WHERE name = 'format'"
    found = db.rows("PRAGMA user_version" if kind == SESSION_FILE else of_store)
    version = int(found[0][0]) if found and str(found[0][0]).isdigit() else -1
    errors.require_format(
        where, version, FORMAT, "Install the tidewolf that wrote it, or give a new path."
    )
    if kind == SESSION_FILE:
        there = dict(db.rows("SELECT name, sql FROM sqlite_master WHERE type = 'table'"))
        if any(there.get(one) != _statement(db, one, of) for one, of in SESSION_TABLES.items()):
            raise errors.BrokenFile(f"{where} was changed: it has other tables. Go back to a copy.")


def add_entry(db: Database, at: float, who: str, session: str, what: str, why: str = "") -> None:
    version = checkpoint.writer()["tidewolf"]
    values = (next_number(db, "audit"), at, who, session, what, why, version)
    db.execute("INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?, ?)", values)


def delete_rows(db: Database, session: int) -> None:
    for table in OF_A_SESSION:
        db.execute(f"DELETE FROM {table} WHERE session = ?", (session,))


def next_number(db: Database, table: str) -> int:
    """A number for a new row, within a transaction: no row of the table ever had it, and other
    servers that ask for one wait until the transaction is over.
    """
    db.execute(
        "INSERT INTO store VALUES ('numbers', '0') ON CONFLICT (name) DO UPDATE SET value = "
        "store.value"
    )
    ((number,),) = db.rows(f"SELECT COALESCE(MAX(number), 0) + 1 FROM {table}")
    if table == "sessions":  # rows of which are deleted
        ((counted,),) = db.rows("SELECT value FROM store WHERE name = 'numbers'")
        number = max(int(counted) + 1, number)
        db.execute("UPDATE store SET value = ? WHERE name = 'numbers'", (str(number),))
    return int(number)


# Rows read at a time, so that no reader holds up the writer.
_AT_ONCE = 256
# More than any number of an event.
_ANY = 2**62
# States kept for going back, at most.
_SNAPSHOTS = 8


def digest(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()


class Head(NamedTuple):
    """What the file holds: events first + 1 to last, and the state after event `snapshot`."""

    first: int
    # the link of event `first`
    base: bytes
    last: int
    # the link of event `last`
    link: bytes
    snapshot: int
    # of the last writer; each writer has a higher one, and none goes back
    epoch: int


class Row(NamedTuple):
    # from 1, in the order in which they happened
    number: int
    kind: str
    # the first round that it is about, from 1
    round: int
    # of the writer
    epoch: int
    data: bytes

    def link(self, before: bytes) -> bytes:
        number, kind, first, epoch, data = self
        return digest(before, f"{number} {kind} {first} {epoch} ".encode(), data)


# The last snapshot, the link of its event, and the events after it.
Content: TypeAlias = tuple[bytes, bytes, list[Row]]
_HEAD, _ROW = ", ".join(Head._fields), ", ".join(Row._fields)
# A head is known by these: each writer has an epoch of its own.
_MOVE_HEAD = (
    f"UPDATE head SET {_HEAD.replace(',', ' = ?,')} = ?, observed = ? WHERE session = ? AND "
    "last = ? AND link = ? AND epoch = ?"
)


@final
class Tables:
    def __init__(self, db: Database, session: int = 1) -> None:
        self.db, self._session = db, session

    def _rows(self, rest: str, *values: Any) -> list[Any]:
        return self.db.rows(f"SELECT {rest}", (self._session, *values))

    def _delete(self, table: str, which: str, value: int) -> None:
        self.db.execute(
            f"DELETE FROM {table} WHERE session = ? AND {which} ?", (self._session, value)
        )

    # --- the head and the events ------------------------------------------------------------------

    def begin(self, base: bytes, state: bytes) -> None:
        before = self.read_head()
        head = Head(0, base, 0, base, 0, before.epoch)
        self.move_head(before, head, 0)
        self.add_snapshot(head, state, 1)

    def read_head(self) -> Head:
        return Head(*self._rows(f"{_HEAD} FROM head WHERE session = ?")[0])

    def move_head(self, before: Head, head: Head, observed: int) -> bool:
        """The next head in place of this one, after so many rounds; whether it was this one."""
        values = (*head, observed, self._session, before.last, before.link, before.epoch)
        return self.db.execute(_MOVE_HEAD, values) == 1

    def add(self, row: Row) -> None:
        self.db.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)", (self._session, *row))

    def some_rows(self, after: int, last: int) -> list[Row]:
        which = "session = ? AND number > ? AND number <= ? ORDER BY number LIMIT ?"
        found = self._rows(f"{_ROW} FROM events WHERE {which}", after, last, _AT_ONCE)
        return [Row(*row) for row in found]

    def rows_after(self, after: int, last: int = _ANY) -> Iterator[Row]:
        while rows := self.some_rows(after, last):
            yield from rows
            after = rows[-1].number

    def cut(self, last: int, upcoming: int, waiting: Iterable[int]) -> None:
        """Without what came after event `last`, when round `upcoming` was the next one and these
        waited.
        """
        for table in ("events", "snapshots"):
            self._delete(table, "number >", last)
        self._delete("contents", "round >=", upcoming)
        for one in waiting:
            self._delete("contents", "round =", one)

    def forget(self, first: int, contents: int) -> None:
        """Without the events up to number `first`, the states before it, and what was observed of
        the rounds up to `contents`.
        """
        self._delete("events", "number <=", first)
        self._delete("snapshots", "number <", first)
        self._delete("contents", "round <=", contents)

    # --- states -----------------------------------------------------------------------------------

    def add_snapshot(self, head: Head, state: bytes, every: int) -> None:
        """The state after the last event. Of those before it the one where the history begins
        stays, unless that is the learner's start, and the last few that are `every` events apart,
        for going back.
        """
        found = self._rows("number FROM snapshots WHERE session = ? ORDER BY number")
        older, apart = [number for (number,) in found], [0]
        for number in older:
            if head.first < number < head.last and number >= apart[-1] + every:
                apart.append(number)
        for number in {*older} - {*apart[1:][-_SNAPSHOTS:], head.first or None}:
            self._delete("snapshots", "number =", number)
        self.db.execute(
            "INSERT INTO snapshots VALUES (?, ?, ?, ?) ON CONFLICT (session, number) DO UPDATE "
            "SET state = excluded.state, seal = excluded.seal",
            (self._session, head.last, state, digest(head.link, state)),
        )

    def snapshots(self, head: Head) -> Iterator[tuple[int, bytes, bytes]]:
        """The states that are kept and whole, newest first: after which event, its link, and the
        state.
        """
        states = self._states()
        links, _, _ = self._followed(head, states)
        for number in sorted(states, reverse=True):
            state, seal = states[number]
            if number in links and digest(links[number], state) == seal:
                yield number, links[number], state

    def _states(self) -> dict[int, tuple[bytes, bytes]]:
        found = self._rows("number, state, seal FROM snapshots WHERE session = ?")
        return {number: (state, seal) for number, state, seal in found}

    # --- contents and notes -----------------------------------------------------------------------

    def last_contents(self, most: int) -> dict[int, str | None]:
        """The identities of what was observed of the last rounds; rounds from 0."""
        which = "session = ? ORDER BY round DESC LIMIT ?"
        found = self._rows(f"round, content FROM contents WHERE {which}", most)
        return {number - 1: content for number, content in found[::-1]}

    def content_of(self, number: int) -> str | None:
        found = self._rows("content FROM contents WHERE session = ? AND round = ?", number)
        return found[0][0] if found and isinstance(found[0][0], str) else None

    def write_contents(self, contents: Mapping[int, str | None]) -> None:
        for number, content in contents.items():
            self.db.execute(
                "INSERT INTO contents VALUES (?, ?, ?) ON CONFLICT (session, round) DO UPDATE "
                "SET content = excluded.content",
                (self._session, number, content),
            )

    def note(self, name: str, value: str) -> None:
        ((count,),) = self._rows(
            "count(*) FROM meta WHERE session = ? AND name LIKE ?", f"{name} %"
        )
        values = (self._session, f"{name} {count + 1}", value)
        self.db.execute("INSERT INTO meta VALUES (?, ?, ?) ON CONFLICT DO NOTHING", values)

    # --- all of it --------------------------------------------------------------------------------

    def read_content(self, where: str) -> tuple[Head, Content]:
        try:
            head, states = self.read_head(), self._states()
            links, left, held = self._followed(head, states)
            held = held and head.snapshot in states and links.keys() >= states.keys()
            held = held and all(
                digest(links[n], state) == seal for n, (state, seal) in states.items()
            )
        except (TypeError, ValueError, IndexError):  # a row is not there, or is of another type
            held = False
        errors.require(
            held,
            errors.BrokenFile,
            f"{where} is truncated or was changed. Go back to an earlier copy.",
        )
        return head, (states[head.snapshot][0], links[head.snapshot], left)

    def _followed(
        self, head: Head, states: Mapping[int, Any]
    ) -> tuple[dict[int, bytes], list[Row], bool]:
        """The links of the events with a state, the events after the last snapshot, and whether
        the links lead to the head.
        """
        count, epoch, link, left = head.first, 0, head.base, list[Row]()
        links, held = {count: link}, 0 <= head.first <= head.snapshot <= head.last
        for row in self.rows_after(-_ANY):
            count, link = count + 1, row.link(link)
            held = held and row.number == count and epoch <= row.epoch <= head.epoch
            epoch = row.epoch
            if count in states:
                links[count] = link
            if count > head.snapshot:
                left.append(row)
        return links, left, held and (count, link) == (head.last, head.link)


# --- the file of one session ----------------------------------------------------------------------

# How often files are copied again that a writer changed meanwhile.
_ATTEMPTS = 20


@final
class File:
    errors: tuple[type[Exception], ...] = (sqlite3.Error,)

    def __init__(self, path: str | os.PathLike[str], *, read_only: bool = False) -> None:
        self.path = arguments.as_path(path, "The path of a session").resolve()
        self.where = self.store = str(self.path)
        self.read_only = arguments.as_flag(read_only, "read_only")
        self._db: SQLite | None = None
        self._lock: SQLite | None = None
        # the file of the lock, to be written to
        self._note = -1
        self._copy: tempfile.TemporaryDirectory[str] | None = None
        self._in_place = InPlace(self.path)
        self._acknowledged = 0

    def open(self, learner: base.Learner[Any]) -> tuple[Head, Content, int]:
        """All there is, checked, and the epoch of this writer, one more than that of the writer
        before; made if there is no file.
        """
        try:
            db = self._db = self._look() if self.read_only else self._opened(learner)
            with db.connection:
                db.execute("BEGIN")
                require_format(db, self.path, SESSION_FILE)
                if db.rows("PRAGMA quick_check(1)") != [("ok",)]:
                    raise errors.BrokenFile(
                        f"{self.path} is truncated. Go back to an earlier copy."
                    )
                head, content = self.tables.read_content(self.where)
            if self._lock is not None:
                ((self._acknowledged,),) = self._lock.rows("PRAGMA user_version")
                self._note = os.open(f"{self.path}-lock", os.O_WRONLY)
                errors.require(
                    self._acknowledged <= head.last,
                    errors.BrokenFile,
                    f"{self.path} holds {head.last} events, and {self._acknowledged} were "
                    "acknowledged: put its -wal back, or remove its -lock to do without them.",
                )
                db.pragmas(*DURABLE)
                self._in_place.require()
            return head, content, head.epoch + 1
        except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
            raise explained(
                error, self.where, "Give a path in a folder where files can be made."
            ) from None

    @property
    def tables(self) -> Tables:
        words = f"The session in {self.where} is closed: open it again."
        return Tables(errors.require_some(self._db, errors.CheckpointError, words))

    def require_writable(self) -> None:
        assert self.tables
        self._in_place.require()

    def write(self, do: Callable[[Tables], None], last: int) -> None:
        """One transaction, on disk when this returns; `last` is the number of the last event
        then, which is noted beside the file: the note is not flushed, and never too high.
        """
        assert self._db is not None
        if last < self._acknowledged:
            self._acknowledge(last)
        with self._db.transaction():
            do(self.tables)
        if last != self._acknowledged:
            self._acknowledge(last)

    def _acknowledge(self, count: int) -> None:
        with suppress(OSError):  # what SQLite would write, in a tenth of its time
            # Where a file of SQLite has `user_version`, as four bytes.
            os.pwrite(self._note, min(count, 2**31 - 1).to_bytes(4), 60)
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
        self._db = self._lock = None
        self._note = -1
        if self._copy is not None:
            self._copy.cleanup()
            self._copy = None

    def _opened(self, learner: base.Learner[Any]) -> SQLite:
        if self.path.exists():
            self._db = SQLite(self.path, "rw")
            require_format(self._db, self.path, SESSION_FILE)
        self._lock = locked(
            Path(f"{self.path}-lock"),
            f"Another session, of this process or of another, writes to {self.path}: close it "
            "first, or look with read_only=True.",
        )
        if not self.path.exists():
            self._lock.execute("PRAGMA user_version = 0")
            self._create(learner)
        return self._db or SQLite(self.path, "rw")

    def _look(self) -> SQLite:
        """The file to be read; a copy if SQLite cannot read it in place, because it may write
        nothing beside it.
        """
        self._db = SQLite(self.path, "ro")
        try:
            require_format(self._db, self.path, SESSION_FILE)
            return self._db
        except sqlite3.OperationalError:
            if not os.access(self.path, os.R_OK):
                raise
        self._db.close()
        self._copy = tempfile.TemporaryDirectory(prefix="tidewolf-")
        return SQLite(_copied(self.path, Path(self._copy.name)), "rw")

    def _create(self, learner: base.Learner[Any]) -> None:
        state = learner.save(capabilities.beginning(learner))
        fresh = Path(f"{self.path}-new")
        for stale in (fresh, f"{fresh}-journal", f"{self.path}-wal", f"{self.path}-shm"):
            Path(stale).unlink(missing_ok=True)
        with closing(SQLite(fresh, "rwc")) as db, db.transaction():
            make_tables(db, SESSION_TABLES)
            db.pragmas(f"application_id = {SESSION_FILE}", f"user_version = {FORMAT}")
            db.execute("INSERT INTO head VALUES (1, 0, x'', 0, x'', 0, 0, 0)")
            Tables(db).begin(digest(values.identity(learner).encode()), state)
        os.replace(fresh, self.path)


def _copied(path: Path, folder: Path) -> Path:
    for _ in range(_ATTEMPTS):
        with suppress(FileNotFoundError):  # a writer that closes removes its log
            before = _changed(path)
            for copy in folder.iterdir():
                copy.unlink()
            for file in before:
                shutil.copyfile(file, folder / file.name)
            if before == _changed(path):
                return folder / path.name
        time.sleep(0.01)
    raise errors.CheckpointError(f"{path} changes faster than it can be copied: try again.")


def _changed(path: Path) -> dict[Path, tuple[int, int, int]]:
    there = [(file, file.stat()) for file in (path, Path(f"{path}-wal")) if file.exists()]
    return {file: (of.st_ino, of.st_size, of.st_mtime_ns) for file, of in there}
