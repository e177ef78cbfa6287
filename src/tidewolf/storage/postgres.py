"""Sessions in PostgreSQL: connections whose commits are durable or reported as lost, and the
servers that share a database.

What left `transaction()` without an error is on the disk of the database, and of its synchronous
replicas if it has any (synchronous_commit = on). A connection that is lost is made again at the
next use, never inside a transaction: what was under way is undone, with an error. One that
is lost at COMMIT leaves open whether it was kept. The error says that too, and what is there is
seen when the session is opened again: that waits, at the row of the session's head, until the lost
transaction is over. Behind a pooler, take one that gives each connection a session of its own.

The address is postgresql://USER:PASSWORD@HOST:PORT/NAME. Its password is never shown, also not in
what the driver reports. An address that can be read in two ways is refused: of a password with an @
or a / in it the driver would show the rest as the name of a host.

A database serves any number of servers.

    servers     one row for each that is there: its number, its name, since when, until when

A server holds an advisory lock on a number of its name,

    number = the first 64 bits of sha256("tidewolf " | name),

for as long as its connection lives, so that a killed one is gone at once, and one whose machine
went dark after KEEPALIVE seconds. Each second it moves its `until` to `takeover_after` seconds from
now, by the clock of the database, so that one that hangs is gone after that time, although its
connection lives. It believes that it is there for FRESH of that time, and for less than KEEPALIVE
seconds: it stops answering before another can begin. A row that is over is never moved. Its server
begins again under a new lease, may have lost sessions meanwhile, and opens them again.

A session is held by one server at a time. Another takes it when that one is gone, and its epoch is
one higher each time. Every commit carries the epoch of its writer and fails if it is no longer that
of the session: clocks decide which server may answer, never what is kept.
"""

import hashlib
import os
import re
import secrets
import select
import socket
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, TypeVar, final
from urllib.parse import unquote

from tidewolf.core import arguments, arrays, errors
from tidewolf.storage import database

if TYPE_CHECKING:
    from psycopg import Connection, Cursor

T = TypeVar("T")
# psycopg, which is optional.
driver = partial(arguments.import_extra, "psycopg", "A session in PostgreSQL", "serve")
_IDLE, _INTERVAL, _PROBES = 5, 2, 3
# After how long a connection that says nothing is over. Unit: seconds.
KEEPALIVE = _IDLE + _INTERVAL * _PROBES
# Settings for libpq, unless the address overrides them.
_CONNECTION = {
    "connect_timeout": 10,
    "keepalives_idle": _IDLE,
    "keepalives_interval": _INTERVAL,
    "keepalives_count": _PROBES,
    "tcp_user_timeout": 15_000,
    "target_session_attrs": "read-write",
}
# Settings for PostgreSQL, which the address cannot override.
_SETTINGS = {
    "application_name": "tidewolf",
    "default_transaction_isolation": "read committed",
    "idle_in_transaction_session_timeout": "10s",
    "lock_timeout": "5s",
    "statement_timeout": "60s",
    "synchronous_commit": "on",
    "tcp_keepalives_idle": str(_IDLE),
    "tcp_keepalives_interval": str(_INTERVAL),
    "tcp_keepalives_count": str(_PROBES),
}
# a limit on COMMIT would cut short its wait for replicas, and PostgreSQL would call that success
_PASSWORD = re.compile(r"(?s)^(\w+://[^:@/?#]*):(.*)@")
_PARAMETER = re.compile(r"(?s)([?&](?:ssl)?password=)([^&]*)")


def is_address(where: object) -> bool:
    """Whether this is the address of a PostgreSQL, and no path.

    >>> is_address("postgresql://db.example/sessions"), is_address("sessions.db")
    (True, False)
    """
    return isinstance(where, str) and where.startswith(("postgresql://", "postgres://"))


def without_password(url: str) -> str:
    """An address that can be shown.

    >>> without_password("postgresql://ada:secret@db.example/sessions")
    'postgresql://ada:***@db.example/sessions'
    """
    return _PARAMETER.sub(r"\1***", _PASSWORD.sub(r"\1:***@", url))


def hide_password(url: str, text: str) -> str:
    """A text about this address, without its password.

    >>> hide_password("postgresql://ada:secret@db.example/sessions", "is it secret?")
    'is it ***?'
    """
    for _, word in (*_PASSWORD.findall(url), *_PARAMETER.findall(url)):
        for written in filter(None, (word, unquote(word))):
            text = text.replace(written, "***")
    return text


@final
class Postgres:
    """A database of PostgreSQL, connected at its first use.

    Parameters
    ----------
    url : str
        postgresql://USER:PASSWORD@HOST/DATABASE
    """

    blob = "BYTEA"
    name = 'TEXT COLLATE "C"'
    keyed = ""
    locking = " FOR UPDATE"
    append_only = (
        "CREATE OR REPLACE FUNCTION tidewolf_never() RETURNS trigger LANGUAGE plpgsql AS "
        "'BEGIN RAISE EXCEPTION ''rows of % are never changed'', TG_TABLE_NAME; END'",
        "CREATE TRIGGER audit_never BEFORE UPDATE OR DELETE OR TRUNCATE ON audit "
        "FOR EACH STATEMENT EXECUTE FUNCTION tidewolf_never()",
    )

    def __init__(self, url: str) -> None:
        self._driver, self.where = driver(), without_password(url)
        host = re.split("[/?#]", url.partition("://")[2], maxsplit=1)[0]
        try:
            if url.count("@") > 1 or ("@" in url and "@" not in host) or not url.isprintable():
                raise self._driver.Error
            self._driver.conninfo.conninfo_to_dict(url)
        except self._driver.Error:
            raise errors.InvalidInput(
                f"{self.where} cannot be read: give postgresql://USER:PASSWORD@HOST/DATABASE, with "
                "@ in a name or password as %40, and / as %2F."
            ) from None
        self._url = url
        self.errors: tuple[type[Exception], ...] = (self._driver.Error,)
        self._lock, self._depth, self._closed = threading.RLock(), 0, False
        self._now: Connection[Any] | None = None

    def execute(self, sql: str, values: Sequence[Any] = ()) -> int:
        with self._lock:
            return self._executed(sql, values).rowcount

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        """All rows of a statement; outside a transaction a lost connection is made again."""
        with self._lock:
            if self._depth:
                return self._executed(sql, values).fetchall()
            try:
                return self._twice(lambda: self._executed(sql, values).fetchall())
            except self._driver.Error as error:
                raise self.unreadable(error) from None

    def _twice(self, do: Callable[[], T]) -> T:
        try:
            return do()
        except self._driver.OperationalError:
            if self._now is not None and not self._now.closed:
                raise
            return do()

    def stream(self, sql: str, values: Sequence[Any] = ()) -> Generator[Any]:
        with self._connection().cursor(binary=True) as cursor:
            yield from cursor.stream(_numbered(sql), tuple(values))

    def unreadable(self, error: Exception) -> errors.CheckpointError:
        return errors.CheckpointError(f"{self.where} cannot be read: {self.sentence(error)}.")

    def _executed(self, sql: str, values: Sequence[Any]) -> "Cursor[Any]":
        try:
            return self._connection().execute(_numbered(sql), tuple(values) or None, binary=True)
        except self._driver.DataError as error:  # of these values alone
            raise errors.CheckpointError(
                f"PostgreSQL cannot keep this: {self.sentence(error)}."
            ) from None

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        with self._lock, self._connection().cursor() as cursor:
            cursor.executemany(_numbered(sql), [tuple(row) for row in rows])

    @contextmanager
    def transaction(self, how: str = "") -> Iterator[None]:
        """One transaction, for this thread alone; durable when left without an error. `how` is
        what stands after BEGIN.
        """
        with self._lock:
            assert not self._depth, "a transaction has no transactions in it"
            self._twice(lambda: self._connection().execute(f"BEGIN {how}"))
            connection = self._connection()
            self._depth += 1
            try:
                yield
                self._commit(connection)
            except BaseException:
                self._abandon(connection)
                raise
            finally:
                self._depth -= 1

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """A transaction that reads all as it was at one moment, and takes as long as it takes."""
        with self.transaction("ISOLATION LEVEL REPEATABLE READ, READ ONLY"):
            for setting in ("idle_in_transaction_session_timeout", "statement_timeout"):
                self.execute(f"SET LOCAL {setting} = 0")
            yield

    def close(self) -> None:
        with self._lock:
            self._closed = True
            if self._now is not None:
                self._now.close()

    def sentence(self, error: Exception) -> str:
        diag = getattr(error, "diag", None)  # of an error of the driver
        text = (diag and diag.message_primary) or str(error)
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return hide_password(self._url, lines[0] if lines else type(error).__name__).rstrip(".")

    def has_column(self, table: str, column: str) -> bool:
        # not to_regclass: inside a transaction it remembers what was not there before
        sql = (
            "SELECT 1 FROM pg_tables JOIN pg_attribute ON attrelid = format('%I.%I', schemaname, "
            "tablename)::regclass WHERE schemaname = current_schema() AND tablename = ? AND "
            "attname = ?"
        )
        return bool(self.rows(sql, (table, column)))

    def changes(self) -> int:
        """How often sessions were restored, by any process."""
        found = self.rows("SELECT value FROM store WHERE name = 'restored'")
        return int(found[0][0]) if found else 0

    def _connection(self) -> "Connection[Any]":
        """The connection; made again if it was lost, unless a transaction was lost with it."""
        if self._closed:
            raise errors.CheckpointError(
                f"The connection to {self.where} is closed: open it again."
            )
        if self._now is None or (self._now.closed and not self._depth):
            self._now = connected(self._url)
        return self._now

    def _commit(self, connection: "Connection[Any]") -> None:
        is_lost, status = connection.closed, connection.info.transaction_status
        if is_lost or status != self._driver.pq.TransactionStatus.INTRANS:
            what = "the connection was lost" if is_lost else "a statement failed"
            raise self._driver.OperationalError(f"{what} before the commit, and nothing was kept")
        try:
            # a limit on COMMIT would cut short its wait for replicas, and PostgreSQL would call
            # that success
            connection.execute("SET LOCAL statement_timeout = 0; COMMIT")
        except self._driver.Error as error:
            if not connection.closed:
                raise
            raise database.FateUnknown(
                f"The connection to {self.where} was lost at a commit ({self.sentence(error)}): "
                "whether it was kept is not known. Open the session again to see what is there."
            ) from error

    def _abandon(self, connection: "Connection[Any]") -> None:
        idle = self._driver.pq.TransactionStatus.IDLE
        if connection.closed or connection.info.transaction_status == idle:
            return
        try:
            connection.execute("ROLLBACK")
        except BaseException:
            connection.close()
            raise


def connected(url: str) -> "Connection[Any]":
    psycopg = driver()
    settings = _CONNECTION | psycopg.conninfo.conninfo_to_dict(url)
    try:
        connection: Connection[Any] = psycopg.connect(
            "", **settings, autocommit=True, cursor_factory=psycopg.RawCursor
        )
        try:
            connection.execute("".join(f"SET {name} = '{v}';" for name, v in _SETTINGS.items()))
        except BaseException:
            connection.close()
            raise
    except psycopg.Error as error:
        text = hide_password(url, " ".join(str(error).split())).rstrip(".")
        raise errors.CheckpointError(
            f"{without_password(url)} does not answer: {text}. Does PostgreSQL run there?"
        ) from None
    return connection


@lru_cache(maxsize=512)
def _numbered(sql: str) -> str:
    """With $1, $2, ... for the question marks."""
    first, *others = sql.split("?")
    return first + "".join(f"${i}{part}" for i, part in enumerate(others, 1))


# --- servers --------------------------------------------------------------------------------------

# How often a server says that it is there, at least. Unit: seconds.
BEAT = 1.0
# How long it believes that: so much of `takeover_after`, and of KEEPALIVE.
FRESH = 0.6
# When a server that says nothing is gone. Unit: seconds.
TAKEOVER_AFTER = 10.0
# How long a server waits for a lock of its own name: a killed one may just be going. Unit: seconds.
_PATIENCE = 2.0
_LATER = "clock_timestamp() + make_interval(secs => $2)"
_STAY = f"UPDATE servers SET until = {_LATER} WHERE id = $1 AND until > clock_timestamp()"


@final
class Cluster:
    """The database, as one of its servers has it.

    Parameters
    ----------
    url : str
        postgresql://USER:PASSWORD@HOST/DATABASE
    holder : str, default ""
        What this server is called. Empty: its machine and process.
    takeover_after : float, default 10.0
        When others may take the sessions of this server if it hangs. Unit: seconds.
    """

    def __init__(self, url: str, holder: str = "", takeover_after: float = TAKEOVER_AFTER) -> None:
        own = holder or f"{socket.gethostname()}-{os.getpid()}"
        self.holder = f"{own}#{secrets.token_hex(4)}"  # no other server has it
        self.writer = Postgres(url)
        self.where = self.writer.where
        self.reader, self._opener = Postgres(url), Postgres(url)
        try:
            prepare(self.writer)
            self._heartbeat = Heartbeat(url, self.holder, takeover_after)
            # another number after what was held may have been lost; refused while it may be
            self.lease = self.require_there = self._heartbeat.lease
        except BaseException as error:
            self.writer.close()
            if isinstance(error, self.writer.errors):
                raise errors.CheckpointError(
                    f"No sessions can be kept in {self.where}: {self.writer.sentence(error)}. May "
                    "the user make tables there?"
                ) from None
            raise

    def claim(self, db: database.Database, number: int) -> None:
        """Hold a session, within a transaction: its epoch is one more. Refused while another server
        that holds it is there.
        """
        self._require_free(db, number)
        try:  # a lost connection of the holder may still have the rows
            db.rows("SELECT 1 FROM sessions WHERE number = ? FOR UPDATE NOWAIT", (number,))
            db.rows("SELECT 1 FROM head WHERE session = ? FOR UPDATE NOWAIT", (number,))
        except db.errors as error:
            # PostgreSQL's code for a row that another transaction has locked.
            if getattr(error, "sqlstate", "") != "55P03":
                raise
            raise errors.CheckpointError("The last commit is under way: try again soon.") from None
        self._require_free(db, number)
        db.execute("UPDATE head SET epoch = epoch + 1 WHERE session = ?", (number,))
        db.execute("UPDATE sessions SET holder = ? WHERE number = ?", (self.holder, number))

    def _require_free(self, db: database.Database, number: int) -> None:
        name, other = _holder(db, number)
        if other not in ("", self.holder) and not is_gone(db, other):
            raise _held_elsewhere(name, other)

    def require_held(self, db: database.Database, number: int) -> None:
        name, holder = _holder(db, number, db.locking)
        errors.require(
            holder, errors.CheckpointError, f"The session {name} was restored: open it again."
        )
        if holder != self.holder:
            raise _held_elsewhere(name, holder)

    @contextmanager
    def reading(self) -> Iterator[database.Database]:
        try:
            with self._opener.snapshot():
                yield self._opener
        except self._opener.errors as error:
            raise self._opener.unreadable(error) from None

    def close(self) -> None:
        self._heartbeat.close()
        for connection in (self.writer, self.reader, self._opener):
            connection.close()


def prepare(db: Postgres) -> None:
    """The tables, made if there are none; servers that start together do so one after another.
    Refused if they are of another format.
    """
    if not db.has_column("servers", "id"):
        with db.transaction():
            # The advisory lock of those who make tables.
            db.rows("SELECT pg_advisory_xact_lock(?)", (int.from_bytes(b"tidewolf", signed=True),))
            if not db.has_column("servers", "id"):
                database.make_store(db)
                db.execute(
                    "CREATE TABLE servers (id BIGINT PRIMARY KEY, holder TEXT NOT NULL, "
                    "since DOUBLE PRECISION NOT NULL, "
                    "until TIMESTAMPTZ NOT NULL DEFAULT 'infinity')"
                )
    database.require_format(db, db.where)


def _holder(db: database.Database, number: int, locking: str = "") -> tuple[str, str]:
    found = db.rows(f"SELECT name, holder FROM sessions WHERE number = ?{locking}", (number,))
    if not found:
        raise errors.UnknownSession("There is no such session any more: another server deleted it.")
    name, holder = found[0]
    return name, holder


def _held_elsewhere(name: str, holder: str) -> errors.HeldElsewhere:
    holder = holder.partition("#")[0]
    return errors.HeldElsewhere(
        f"The session {name} is held by the server {holder}: ask that one, or wait until it is "
        "gone.",
        holder=holder,
    )


def number_of(name: str) -> int:
    """The number of a server's name among PostgreSQL's advisory locks.

    >>> number_of("a") == number_of("a") != number_of("b")
    True
    """
    return int.from_bytes(hashlib.sha256(f"tidewolf {name}".encode()).digest()[:8], signed=True)


def is_gone(db: database.Database, name: str) -> bool:
    """Whether no server of this name is there. Inside a transaction: none comes before it ends,
    because the row of one that hangs is deleted, and only a row that is there is moved.
    """
    own = (number_of(name),)
    db.execute("DELETE FROM servers WHERE id = ? AND until <= clock_timestamp()", own)
    is_there = bool(db.rows("SELECT 1 FROM servers WHERE id = ?", own))
    return not is_there or bool(db.rows("SELECT pg_try_advisory_xact_lock_shared(?)", own)[0][0])


@final
class Heartbeat:
    """A server that serves from a database, for as long as it lives.

    Parameters
    ----------
    url : str
        The address of the database.
    name : str
        Of the server; no two have the same.
    takeover_after : float, default 10.0
        When it is gone if it hangs. Unit: seconds.
    """

    def __init__(self, url: str, name: str, takeover_after: float = TAKEOVER_AFTER) -> None:
        self._after = arrays.as_number(takeover_after, "takeover_after", least=1.0)
        self._fresh = FRESH * min(self._after, KEEPALIVE)
        self._driver, self._url, self.name = driver(), url, name
        self.where = without_password(url)
        self._mutex, self._wake, self._over = threading.Lock(), threading.Event(), False
        self._now: Connection[Any] | None = None
        self._lease, self._seen = 0, 0.0
        self._arrive()
        threading.Thread(target=self._stay, name="tidewolf-heartbeat", daemon=True).start()

    def lease(self) -> int:
        """How often this server has come back: what it held under an earlier lease another server
        may have. Refused while it is not there.
        """
        if self._mutex.acquire(timeout=BEAT):
            try:
                if self._now is not None and _has_news(self._now):
                    self._beat(self._now)
                if self._now is not None and _clock() - self._seen < self._fresh:
                    return self._lease
            finally:
                self._mutex.release()
        raise errors.CheckpointError(
            f"The server {self.name} has lost its connection to {self.where}: another may have "
            "taken its sessions. It answers again when the connection is back."
        )

    def close(self) -> None:
        with self._mutex:
            self._over = True
            self._wake.set()
            if self._now is not None:
                with suppress(self._driver.Error):
                    self._now.execute("DELETE FROM servers WHERE id = $1", (number_of(self.name),))
                    self._now.execute("SELECT pg_advisory_unlock_all()")
                self._now.close()
                self._now = None

    def _stay(self) -> None:
        while not self._over:
            self._wake.wait(min(BEAT, self._after / 5))
            self._wake.clear()
            with self._mutex, suppress(self._driver.Error, errors.CheckpointError):
                if self._now is not None:
                    self._beat(self._now)
                elif not self._over:
                    self._arrive()

    def _beat(self, connection: "Connection[Any]") -> None:
        began, row = _clock(), None
        with suppress(self._driver.Error):
            row = connection.execute(
                f"{_STAY} RETURNING pg_backend_pid()", (number_of(self.name), self._after)
            ).fetchone()
        if row == (connection.info.backend_pid,):  # and no other that a pooler chose
            self._seen = began
        else:
            connection.close()
            self._now = None
            self._wake.set()

    def _arrive(self) -> None:
        began, connection, number = _clock(), connected(self._url), number_of(self.name)
        try:
            connection.execute(f"SET lock_timeout = {round(1000 * _PATIENCE)}")
            connection.execute("SELECT pg_advisory_lock($1)", (number,))
            connection.execute(
                f"INSERT INTO servers VALUES ($1, $3, $4, {_LATER}) ON CONFLICT (id) DO UPDATE "
                "SET since = excluded.since, until = excluded.until",
                (number, self._after, self.name, time.time()),
            )
            # Without the rows of those who were killed.
            connection.execute(
                "DELETE FROM servers WHERE id <> $1 AND pg_try_advisory_xact_lock_shared(id)",
                (number,),
            )
        except BaseException as error:
            connection.close()
            if isinstance(error, self._driver.errors.LockNotAvailable):
                raise errors.InUse(
                    f"Another server of the name {self.name} serves from {self.where}: give this "
                    "one another name."
                ) from None
            raise
        self._now, self._seen, self._lease = connection, began, self._lease + 1


def _has_news(connection: "Connection[Any]") -> bool:
    """Whether something came that was not asked for: the end, most likely."""
    try:
        poll = select.poll()
        poll.register(connection.fileno(), select.POLLIN)
        return bool(poll.poll(0))
    except Exception:  # closed meanwhile
        return True


def _clock() -> float:
    """Seconds that count on while the machine sleeps, if the system counts them."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
