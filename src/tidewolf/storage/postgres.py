"""Sessions in PostgreSQL: a connection whose commits are durable or reported as lost.

What left `transaction()` without an error is on the disk of the database, and of its synchronous
replicas if it has any (synchronous_commit = on). A connection that is lost is made again at the
next use, never inside a transaction: what was under way is undone, with an error. One that
is lost at COMMIT leaves open whether it was kept. The error says that too, and what is there is
seen when the session is opened again: that waits, at the row of the session's head, until the lost
transaction is over. Behind a pooler, take one that gives each connection a session of its own.

The address is postgresql://USER:PASSWORD@HOST:PORT/NAME. Its password is never shown, also not in
what the driver reports. An address that can be read in two ways is refused: of a password with an @
or a / in it the driver would show the rest as the name of a host.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar, final
from urllib.parse import unquote

from tidewolf.core.errors import CheckpointError, InvalidInput, MissingExtra
from tidewolf.storage.database import FateUnknown

if TYPE_CHECKING:
    from psycopg import Connection, Cursor

T = TypeVar("T")
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
_COMMIT = "SET LOCAL statement_timeout = 0; COMMIT"
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


def driver() -> Any:
    try:
        import psycopg
    except ImportError:
        what = 'Sessions in PostgreSQL need psycopg: pip install "tidewolf[serve]".'
        raise MissingExtra(what) from None
    return psycopg


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

    def __init__(self, url: str) -> None:
        self._driver = driver()
        self.where = without_password(url)
        host = re.split("[/?#]", url.partition("://")[2], maxsplit=1)[0]
        try:
            if url.count("@") > 1 or ("@" in url and "@" not in host) or not url.isprintable():
                raise self._driver.Error
            self._driver.conninfo.conninfo_to_dict(url)
        except self._driver.Error:
            raise InvalidInput(
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
        """Do this, which may be done twice, and again if the connection was lost meanwhile."""
        try:
            return do()
        except self._driver.OperationalError:
            if self._now is not None and not self._now.closed:
                raise
            return do()

    def stream(self, sql: str, values: Sequence[Any] = ()) -> Generator[Any]:
        with self._connection().cursor(binary=True) as cursor:
            yield from cursor.stream(_numbered(sql), tuple(values))

    def unreadable(self, error: Exception) -> CheckpointError:
        return CheckpointError(f"{self.where} cannot be read: {self.sentence(error)}.")

    def _executed(self, sql: str, values: Sequence[Any]) -> Cursor[Any]:
        try:
            return self._connection().execute(_numbered(sql), tuple(values) or None, binary=True)
        except self._driver.DataError as error:  # of these values alone
            raise CheckpointError(f"PostgreSQL cannot keep this: {self.sentence(error)}.") from None

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
        """What happened, for the middle of a sentence."""
        text = str(error)
        if isinstance(error, self._driver.Error):
            text = error.diag.message_primary or text
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

    def append_only(self, table: str) -> Iterable[str]:
        yield (
            "CREATE OR REPLACE FUNCTION tidewolf_never() RETURNS trigger LANGUAGE plpgsql AS "
            "'BEGIN RAISE EXCEPTION ''rows of % are never changed'', TG_TABLE_NAME; END'"
        )
        yield (
            f"CREATE TRIGGER {table}_never BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
            "FOR EACH STATEMENT EXECUTE FUNCTION tidewolf_never()"
        )

    def changes(self) -> int:
        """How often sessions were restored, by any process."""
        found = self.rows("SELECT value FROM store WHERE name = 'restored'")
        return int(found[0][0]) if found else 0

    def _connection(self) -> Connection[Any]:
        """The connection; made again if it was lost, unless a transaction was lost with it."""
        if self._closed:
            raise CheckpointError(f"The connection to {self.where} is closed: open it again.")
        if self._now is None or (self._now.closed and not self._depth):
            self._now = connected(self._url)
        return self._now

    def _commit(self, connection: Connection[Any]) -> None:
        status, is_lost = self._driver.pq.TransactionStatus, connection.closed
        if is_lost or connection.info.transaction_status != status.INTRANS:
            what = "the connection was lost" if is_lost else "a statement failed"
            raise self._driver.OperationalError(f"{what} before the commit, and nothing was kept")
        try:
            connection.execute(_COMMIT)
        except self._driver.Error as error:
            if not connection.closed:
                raise
            raise FateUnknown(
                f"The connection to {self.where} was lost at a commit ({self.sentence(error)}): "
                "whether it was kept is not known. Open the session again to see what is there."
            ) from error

    def _abandon(self, connection: Connection[Any]) -> None:
        """Without what was under way, whatever it takes."""
        idle = self._driver.pq.TransactionStatus.IDLE
        if connection.closed or connection.info.transaction_status == idle:
            return
        try:
            connection.execute("ROLLBACK")
        except BaseException:
            connection.close()
            raise


def connected(url: str) -> Connection[Any]:
    """A new connection; CheckpointError, without the password, if there is none."""
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
        words = f"{without_password(url)} does not answer: {text}. Does PostgreSQL run there?"
        raise CheckpointError(words) from None
    return connection


@lru_cache(maxsize=512)
def _numbered(sql: str) -> str:
    """With $1, $2, ... for the question marks."""
    first, *others = sql.split("?")
    return first + "".join(f"${i}{part}" for i, part in enumerate(others, 1))
