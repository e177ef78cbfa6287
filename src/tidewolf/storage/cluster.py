"""A database of PostgreSQL that many sessions are kept in, for any number of servers.

    servers     one row for each that is there: its number (presence.py), its name, since when

A session is held by one server at a time. Another takes it when that one is gone, and then the old
one, should it wake up, finds at its next commit that it has lost it. What is answered without a
commit is answered under a lease: one that lost its connection, and with it perhaps its sessions,
has another lease when it is back, and opens them again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import final

from tidewolf.core.errors import CheckpointError, HeldElsewhere, UnknownSession
from tidewolf.storage.database import Database
from tidewolf.storage.heartbeat import Heartbeat, is_gone, own_name
from tidewolf.storage.postgres import Postgres
from tidewolf.storage.session_store_schema import make, require_format

_SERVERS = (
    "CREATE TABLE IF NOT EXISTS servers (id BIGINT PRIMARY KEY, holder TEXT NOT NULL, "
    "since DOUBLE PRECISION NOT NULL)"
)
_MAKING = int.from_bytes(b"tidewolf", signed=True)
"""The advisory lock of those who make tables."""
_BRIEF, _LOCKED = 250, "55P03"
"""How long a row is waited for that should be free (milliseconds), and PostgreSQL's code for a row
that was not.
"""


@final
class Cluster:
    """The database, as one of its servers has it.

    Parameters
    ----------
    url : str
        postgresql://USER:PASSWORD@HOST/DATABASE
    holder : str, default ""
        What this server is called. Empty: its machine and process.
    """

    def __init__(self, url: str, holder: str = "") -> None:
        self.holder = own_name(holder)
        self.writer = Postgres(url)
        self.where = self.writer.where
        self.reader, self._opener = Postgres(url, lazy=True), Postgres(url, lazy=True)
        try:
            prepare(self.writer)
            self._heartbeat = Heartbeat(url, self.holder)
        except BaseException as error:
            self.writer.close()
            if isinstance(error, self.writer.errors):
                raise CheckpointError(
                    f"No sessions can be kept in {self.where}: {self.writer.sentence(error)}. Give "
                    "a database, and a user who may make tables there."
                ) from None
            raise

    def claim(self, db: Database, number: int, holder: str) -> None:
        """Hold a session, within a transaction: its epoch is one more. Refused while another server
        that holds it is there.
        """
        sql = "SELECT name, holder FROM sessions WHERE number = ?"
        self._require_free(db, db.execute(sql, (number,)).fetchone(), holder)
        with self._briefly(db):
            row = db.execute(f"{sql}{db.locking}", (number,)).fetchone()
            db.execute(f"SELECT 1 FROM head WHERE session = ?{db.locking}", (number,))
        self._require_free(db, row, holder)
        db.execute("UPDATE head SET epoch = epoch + 1 WHERE session = ?", (number,))
        db.execute("UPDATE sessions SET holder = ? WHERE number = ?", (holder, number))

    def _require_free(self, db: Database, row: tuple[str, str] | None, holder: str) -> None:
        if row is None:
            raise _gone()
        name, other = row
        if other not in ("", holder) and not is_gone(db, other):
            raise _held_elsewhere(name, other)

    @contextmanager
    def _briefly(self, db: Database) -> Iterator[None]:
        """Wait for rows no longer than it takes a connection that was lost to end: all that is
        written waits meanwhile.
        """
        (before,) = db.execute("SHOW lock_timeout").fetchone()
        db.execute(f"SET LOCAL lock_timeout = {_BRIEF}")
        try:
            yield
        except db.errors as error:
            if getattr(error, "sqlstate", "") != _LOCKED:
                raise
            raise CheckpointError(
                "The last commit of the session is still under way: try again in a moment."
            ) from None
        db.execute(f"SET LOCAL lock_timeout = '{before}'")

    def require_held(self, db: Database, number: int, holder: str) -> None:
        """Refuse to write, within a transaction, where another server has the session by now."""
        sql = f"SELECT name, holder FROM sessions WHERE number = ?{db.locking}"
        row = db.execute(sql, (number,)).fetchone()
        if row is None:
            raise _gone()
        if not row[1]:
            raise CheckpointError(f"The session {row[0]} was restored: open it again.")
        if row[1] != holder:
            raise _held_elsewhere(*row)

    def lease(self) -> int:
        """Another number after what was held may have been lost; refused while it may be."""
        return self._heartbeat.lease()

    def require_there(self) -> None:
        """Refuse to write where another server may have what is written to."""
        self._heartbeat.lease()

    @contextmanager
    def reading(self) -> Iterator[Database]:
        """A consistent snapshot, also while another process writes."""
        try:
            with self._opener.snapshot():
                yield self._opener
        except self._opener.errors as error:
            raise self._opener.unreadable(error) from None

    def close(self) -> None:
        """Be gone: what this server held is anybody's."""
        self._heartbeat.close()
        for connection in (self.writer, self.reader, self._opener):
            connection.close()


def prepare(db: Postgres) -> None:
    """The tables, made where there are none; servers that start together do so one after another.
    Refused where they are of another format.
    """
    if not db.has_table("servers"):
        with db.transaction():
            db.execute("SELECT pg_advisory_xact_lock(?)", (_MAKING,))
            if not db.has_table("servers"):
                make(db)
                db.execute(_SERVERS)
    require_format(db, db.where)


def _gone() -> UnknownSession:
    return UnknownSession("There is no such session any more: another server deleted it.")


def _held_elsewhere(name: str, holder: str) -> HeldElsewhere:
    holder = holder.partition("#")[0]
    return HeldElsewhere(
        f"The session {name} is held by the server {holder}: ask that one, or wait until it is "
        "gone.",
        holder=holder,
    )
