"""The tables of a database that holds many sessions, and whether a database has them.

sessions        one row for each: its number, its name, what it was made of, who holds it
head, observations, snapshots, pending, contents, meta
                those of a session (tables.py), each row under the number of its session
rounds          what a service keeps of every round beside the session
audit           who did what, and why; rows are added and never changed
shelf           the format, and the last number that a session had
"""

from __future__ import annotations

from tidewolf.core.errors import BrokenFile
from tidewolf.storage.database import Database
from tidewolf.storage.records import require_version

STORE_FORMAT = 3
APPLICATION = int.from_bytes(b"tws1")
"""SQLite's application_id of our files."""
OF_A_SESSION = ("head", "observations", "snapshots", "pending", "contents", "meta", "rounds")
"""Tables whose rows belong to a session, by its number."""
COLUMNS = {
    "store": "name TEXT PRIMARY KEY, value TEXT NOT NULL",
    "sessions": (
        "number BIGINT PRIMARY KEY, name {name} NOT NULL UNIQUE, description TEXT NOT NULL, "
        "settings TEXT NOT NULL, created DOUBLE PRECISION NOT NULL, holder TEXT NOT NULL"
    ),
    "head": (
        "session BIGINT PRIMARY KEY, first BIGINT NOT NULL, base {blob} NOT NULL, last BIGINT NOT "
        "NULL, link {blob} NOT NULL, snapshot BIGINT NOT NULL, epoch BIGINT NOT NULL, observed "
        "BIGINT NOT NULL"
    ),
    "observations": (
        "session BIGINT NOT NULL, arrived BIGINT NOT NULL, round BIGINT NOT NULL, rounds BIGINT "
        "NOT NULL, epoch BIGINT NOT NULL, feedback {blob} NOT NULL, info {blob}, played {blob}, "
        "PRIMARY KEY (session, arrived)"
    ),
    "snapshots": (
        "session BIGINT NOT NULL, arrived BIGINT NOT NULL, state {blob} NOT NULL, seal {blob} NOT "
        "NULL, PRIMARY KEY (session, arrived)"
    ),
    "pending": (
        "session BIGINT NOT NULL, round BIGINT NOT NULL, info {blob}, decision {blob}, PRIMARY "
        "KEY (session, round)"
    ),
    "contents": (
        "session BIGINT NOT NULL, round BIGINT NOT NULL, content TEXT, PRIMARY KEY (session, round)"
    ),
    "meta": (
        "session BIGINT NOT NULL, name TEXT NOT NULL, value TEXT, PRIMARY KEY (session, name)"
    ),
    "rounds": (
        "session BIGINT NOT NULL, round BIGINT NOT NULL, at DOUBLE PRECISION NOT NULL, cost DOUBLE "
        "PRECISION, violation DOUBLE PRECISION, note {blob} NOT NULL, PRIMARY KEY (session, round)"
    ),
    "audit": (
        "number BIGINT PRIMARY KEY, at DOUBLE PRECISION NOT NULL, who TEXT NOT NULL, session TEXT "
        "NOT NULL, what TEXT NOT NULL, why TEXT NOT NULL, version TEXT NOT NULL"
    ),
}
"""By table, with the database's own type of bytes."""


def make(db: Database) -> None:
    """Those that are not there yet, within a transaction."""
    for table, columns in COLUMNS.items():
        text = columns.format(blob=db.blob, name=db.name)
        db.execute(f"CREATE TABLE IF NOT EXISTS {table} ({text}){db.keyed}")
    for statement in db.append_only("audit"):
        db.execute(statement)
    db.execute(
        "INSERT INTO store VALUES ('format', ?) ON CONFLICT (name) DO NOTHING", (str(STORE_FORMAT),)
    )


def next_number(db: Database, table: str) -> int:
    """A number for a new row, within a transaction: no row of the table ever had it, and other
    servers that ask for one wait until the transaction is over.
    """
    db.execute(
        "INSERT INTO store VALUES ('numbers', '0') ON CONFLICT (name) DO UPDATE SET value = "
        "store.value"
    )
    (counted,) = db.execute("SELECT value FROM store WHERE name = 'numbers'").fetchone()
    (number,) = db.execute(f"SELECT COALESCE(MAX(number), 0) + 1 FROM {table}").fetchone()
    if table != "sessions":  # rows of which are deleted
        return int(number)
    number = max(int(counted) + 1, number)
    db.execute("UPDATE store SET value = ? WHERE name = 'numbers'", (str(number),))
    return int(number)


def require_format(db: Database, where: str) -> None:
    """Refuse a database of a newer tidewolf, and one whose tables are not ours."""
    row = db.execute("SELECT value FROM store WHERE name = 'format'").fetchone()
    if row is None or not str(row[0]).isdigit():
        raise BrokenFile(f"{where} was changed: it does not say its format. Go back to a copy.")
    require_version(int(row[0]), STORE_FORMAT, where)
