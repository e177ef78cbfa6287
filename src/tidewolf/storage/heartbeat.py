"""Heartbeats of servers that share a database.

A server holds an advisory lock on a number of its name,

    number = the first 64 bits of sha256("tidewolf " | name),

for as long as its connection lives, so that a killed one is gone at once, one whose machine went
dark after KEEPALIVE seconds, and a live one never. It asks each second whether it still has the
lock, and believes it for FRESH < KEEPALIVE seconds: it stops answering before another can begin.
A server that took its lock again has a new lease, and may have lost sessions meanwhile.

A session goes to one server at a time, and its epoch is one higher each time. Every commit carries
the epoch of its writer and fails where it is no longer that of the session: clocks decide who may
answer, never what is kept.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import select
import socket
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, final

from tidewolf.core.errors import CheckpointError, InUse
from tidewolf.storage.address import without_password
from tidewolf.storage.database import Database
from tidewolf.storage.postgres import KEEPALIVE, connected, driver

if TYPE_CHECKING:
    from psycopg import Connection

BEAT, FRESH = 1.0, 6.0
"""How often a server asks whether it has its lock, and how long it believes the answer. Unit:
seconds.
"""
assert FRESH < KEEPALIVE
_PATIENCE = 2.0
"""How long a server waits for a lock of its own name: a killed one may just be going. Unit:
seconds.
"""
_SWEEP = "DELETE FROM servers WHERE id <> $1 AND pg_try_advisory_xact_lock_shared(id)"
"""Without the rows of those who were killed."""


def own_name(shown: str = "") -> str:
    """A name that no other server has: what it is called, or its machine and process, and #...

    >>> own_name("http://db.example:8000").partition("#")[0]
    'http://db.example:8000'
    """
    return f"{shown or f'{socket.gethostname()}-{os.getpid()}'}#{secrets.token_hex(4)}"


@final
class Heartbeat:
    """A server that serves from a database, for as long as it lives.

    Parameters
    ----------
    url : str
        The address of the database.
    name : str
        Of the server; no two have the same.
    """

    def __init__(self, url: str, name: str) -> None:
        self._driver = driver()
        self._url, self.where, self.name = url, without_password(url), name
        self._mutex, self._wake, self._over = threading.Lock(), threading.Event(), False
        self._now: Connection[Any] | None = None
        self._lease, self._seen = 0, 0.0
        self._arrive()
        self._thread = threading.Thread(target=self._stay, name="tidewolf-heartbeat", daemon=True)
        self._thread.start()

    def __repr__(self) -> str:
        return f"Presence({self.where!r}, {self.name!r})"

    def lease(self) -> int:
        """How often this server has come back: what it held under an earlier lease another server
        may have. Refused while it is not there.
        """
        if self._mutex.acquire(timeout=BEAT):
            try:
                if self._now is not None and _has_news(self._now):
                    self._beat(self._now)
                if self._now is not None and _clock() - self._seen < FRESH:
                    return self._lease
            finally:
                self._mutex.release()
        raise CheckpointError(
            f"The server {self.name} has lost its connection to {self.where}: another may have "
            "taken its sessions. It answers again when the connection is back."
        )

    def close(self) -> None:
        """Be gone. Twice does no harm."""
        with self._mutex:
            self._over = True
            self._wake.set()
            if self._now is not None:
                with suppress(self._driver.Error):
                    self._now.execute("DELETE FROM servers WHERE id = $1", (number(self.name),))
                    self._now.execute("SELECT pg_advisory_unlock_all()")
                self._now.close()
                self._now = None

    def _stay(self) -> None:
        while not self._over:
            self._wake.wait(BEAT)
            self._wake.clear()
            with self._mutex, suppress(self._driver.Error, CheckpointError):
                if self._now is not None:
                    self._beat(self._now)
                elif not self._over:
                    self._arrive()

    def _beat(self, connection: Connection[Any]) -> None:
        """Ask whether the connection, and with it the lock, is still there."""
        began, row = _clock(), None
        with suppress(self._driver.Error):
            row = connection.execute("SELECT pg_backend_pid()").fetchone()
        if row == (connection.info.backend_pid,):  # and no other that a pooler chose
            self._seen = began
        else:
            connection.close()
            self._now = None
            self._wake.set()

    def _arrive(self) -> None:
        """Take the lock of this name, on a connection of its own."""
        began, connection = _clock(), connected(self._url)
        try:
            connection.execute(f"SET lock_timeout = {round(1000 * _PATIENCE)}")
            connection.execute("SELECT pg_advisory_lock($1)", (number(self.name),))
            connection.execute(
                "INSERT INTO servers VALUES ($1, $2, $3) ON CONFLICT (id) DO UPDATE SET "
                "holder = excluded.holder, since = excluded.since",
                (number(self.name), self.name, time.time()),
            )
            connection.execute(_SWEEP, (number(self.name),))
        except self._driver.errors.LockNotAvailable:
            connection.close()
            raise InUse(
                f"Another server of the name {self.name} serves from {self.where}: give this one "
                "another name."
            ) from None
        except BaseException:
            connection.close()
            raise
        self._now, self._seen, self._lease = connection, began, self._lease + 1


def is_gone(db: Database, name: str) -> bool:
    """Whether no server of this name is there. Inside a transaction: none comes before it ends."""
    query = "SELECT pg_try_advisory_xact_lock_shared(?)"
    return bool(db.execute(query, (number(name),)).fetchone()[0])


def number(name: str) -> int:
    """What stands for the name of a server among PostgreSQL's advisory locks.

    >>> number("a") == number("a") != number("b")
    True
    """
    return int.from_bytes(hashlib.sha256(f"tidewolf {name}".encode()).digest()[:8], signed=True)


def _has_news(connection: Connection[Any]) -> bool:
    """Whether something came that was not asked for: the end, most likely."""
    try:
        poll = select.poll()
        poll.register(connection.fileno(), select.POLLIN)
        return bool(poll.poll(0))
    except Exception:  # closed meanwhile
        return True


def _clock() -> float:
    """Seconds that go on while the machine sleeps, where the system counts them."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
