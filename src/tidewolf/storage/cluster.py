"""A database of PostgreSQL that many sessions are kept in, for any number of servers.

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

from __future__ import annotations

import hashlib
import os
import secrets
import select
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, final

from tidewolf.core import arrays, errors
from tidewolf.storage import database, postgres, tables

if TYPE_CHECKING:
    from psycopg import Connection

# How often a server says that it is there, at least. Unit: seconds.
BEAT = 1.0
# How long it believes that: so much of `takeover_after`, and of KEEPALIVE.
FRESH = 0.6
# When a server that says nothing is gone. Unit: seconds.
TAKEOVER_AFTER = 10.0
# How long a server waits for a lock of its own name: a killed one may just be going. Unit: seconds.
_PATIENCE = 2.0
_SERVERS = (
    "CREATE TABLE servers (id BIGINT PRIMARY KEY, holder TEXT NOT NULL, "
    "since DOUBLE PRECISION NOT NULL)"
)
# Servers of versions that had no such column are there as long as their connections.
_UNTIL = "ALTER TABLE servers ADD COLUMN until TIMESTAMPTZ NOT NULL DEFAULT 'infinity'"
_LATER = "clock_timestamp() + make_interval(secs => $2)"
_STAY = f"UPDATE servers SET until = {_LATER} WHERE id = $1 AND until > clock_timestamp()"
# Without the rows of those who were killed.
_SWEEP = "DELETE FROM servers WHERE id <> $1 AND pg_try_advisory_xact_lock_shared(id)"
# The advisory lock of those who make tables.
_MAKING = int.from_bytes(b"tidewolf", signed=True)
# PostgreSQL's code for a row that another transaction has locked.
_LOCKED = "55P03"


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
        self.writer = postgres.Postgres(url)
        self.where = self.writer.where
        self.reader, self._opener = postgres.Postgres(url), postgres.Postgres(url)
        try:
            prepare(self.writer)
            self._heartbeat = Heartbeat(url, self.holder, takeover_after)
            # another number after what was held may have been lost; refused while it may be
            self.lease = self.require_there = self._heartbeat.lease
        except BaseException as error:
            self.writer.close()
            if isinstance(error, self.writer.errors):
                what = f"No sessions can be kept in {self.where}: {self.writer.sentence(error)}"
                raise errors.CheckpointError(f"{what}. May the user make tables there?") from None
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
            if getattr(error, "sqlstate", "") != _LOCKED:
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
        if not holder:
            raise errors.CheckpointError(f"The session {name} was restored: open it again.")
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


def prepare(db: postgres.Postgres) -> None:
    """The tables, made if there are none; servers that start together do so one after another.
    Refused if they are of another format.
    """
    if not db.has_column("servers", "until"):
        with db.transaction():
            db.rows("SELECT pg_advisory_xact_lock(?)", (_MAKING,))
            if not db.has_column("servers", "id"):
                tables.make_store(db)
                db.execute(_SERVERS)
            if not db.has_column("servers", "until"):
                db.execute(_UNTIL)
    tables.require_format(db, db.where)


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


# --- which servers are there ----------------------------------------------------------------------


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
    if not db.rows("SELECT 1 FROM servers WHERE id = ?", own):
        return True
    return bool(db.rows("SELECT pg_try_advisory_xact_lock_shared(?)", own)[0][0])


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
        self._fresh = FRESH * min(self._after, postgres.KEEPALIVE)
        self._driver = postgres.driver()
        self._url, self.where, self.name = url, postgres.without_password(url), name
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

    def _beat(self, connection: Connection[Any]) -> None:
        began, row = _clock(), None
        with suppress(self._driver.Error):
            values = (number_of(self.name), self._after)
            row = connection.execute(f"{_STAY} RETURNING pg_backend_pid()", values).fetchone()
        if row == (connection.info.backend_pid,):  # and no other that a pooler chose
            self._seen = began
        else:
            connection.close()
            self._now = None
            self._wake.set()

    def _arrive(self) -> None:
        began, connection, number = _clock(), postgres.connected(self._url), number_of(self.name)
        try:
            connection.execute(f"SET lock_timeout = {round(1000 * _PATIENCE)}")
            connection.execute("SELECT pg_advisory_lock($1)", (number,))
            connection.execute(
                f"INSERT INTO servers VALUES ($1, $3, $4, {_LATER}) ON CONFLICT (id) DO UPDATE "
                "SET since = excluded.since, until = excluded.until",
                (number, self._after, self.name, time.time()),
            )
            connection.execute(_SWEEP, (number,))
        except BaseException as error:
            connection.close()
            if isinstance(error, self._driver.errors.LockNotAvailable):
                what = f"Another server of the name {self.name} serves from {self.where}"
                raise errors.InUse(f"{what}: give this one another name.") from None
            raise
        self._now, self._seen, self._lease = connection, began, self._lease + 1


def _has_news(connection: Connection[Any]) -> bool:
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
