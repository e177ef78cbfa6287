"""The tables of sessions, the same in SQLite and PostgreSQL (docs/reference/formats.md).

    head            one row per session: which observations there are, their links, the last
                    snapshot, the epoch; `observed`: rounds, as a service counts them
    observations    one row for each, in the order in which they came
    snapshots       states; the last one is what opening begins from
    pending         the rounds that were decided, or have side information, and are not observed
    contents        the identity of what was observed of a round, if rounds have numbers
    meta            names and values that no reader depends on

Every row begins with the number of its session, which is 1 in the file of one session. A store of
many sessions has four more:

    sessions        one row for each: its number, its name, what it was made of, its server
    rounds          what a service keeps of every round beside the session
    audit           who did what, and why; rows are added and never changed
    store           the format, and the last number that a session had
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from tidewolf.core import checkpoint
from tidewolf.core.errors import BrokenFile, NewerFormat, OlderFormat
from tidewolf.storage.database import Database, SQLite

FORMAT = 3
SESSION_FILE, STORE_FILE = int.from_bytes(b"tide"), int.from_bytes(b"tws1")
"""SQLite's application_id of our files."""
_NUMBER, _BYTES = "BIGINT NOT NULL", "{blob} NOT NULL"
SESSION_TABLES = {
    "head": (
        f"session BIGINT PRIMARY KEY, first {_NUMBER}, base {_BYTES}, last {_NUMBER}, "
        f"link {_BYTES}, snapshot {_NUMBER}, epoch {_NUMBER}, observed {_NUMBER}"
    ),
    "observations": (
        f"session {_NUMBER}, arrived {_NUMBER}, round {_NUMBER}, rounds {_NUMBER}, "
        f"epoch {_NUMBER}, feedback {_BYTES}, info {{blob}}, played {{blob}}, "
        "PRIMARY KEY (session, arrived)"
    ),
    "snapshots": (
        f"session {_NUMBER}, arrived {_NUMBER}, state {_BYTES}, seal {_BYTES}, "
        "PRIMARY KEY (session, arrived)"
    ),
    "pending": (
        f"session {_NUMBER}, round {_NUMBER}, info {{blob}}, decision {{blob}}, "
        "PRIMARY KEY (session, round)"
    ),
    "contents": f"session {_NUMBER}, round {_NUMBER}, content TEXT, PRIMARY KEY (session, round)",
    "meta": f"session {_NUMBER}, name TEXT NOT NULL, value TEXT, PRIMARY KEY (session, name)",
}
STORE_TABLES = SESSION_TABLES | {
    "rounds": (
        f"session {_NUMBER}, round {_NUMBER}, at DOUBLE PRECISION NOT NULL, cost DOUBLE PRECISION, "
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
OF_A_SESSION = (*SESSION_TABLES, "rounds")
"""Tables of a store whose rows belong to a session."""


def _statements(db: Database, tables: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for table, columns in tables.items():
        text = columns.format(blob=db.blob, name=db.name)
        yield table, f"CREATE TABLE {table} ({text}){db.keyed}"


def make_file(db: SQLite) -> None:
    """The tables of one session, within a transaction."""
    for _, statement in _statements(db, SESSION_TABLES):
        db.execute(statement)
    db.pragmas(f"application_id = {SESSION_FILE}", f"user_version = {FORMAT}")


def make_store(db: Database) -> None:
    """The tables of many sessions, within a transaction."""
    for _, statement in _statements(db, STORE_TABLES):
        db.execute(statement)
    for statement in db.append_only("audit"):
        db.execute(statement)
    db.execute("INSERT INTO store VALUES ('format', ?)", (str(FORMAT),))


def require_file(db: SQLite, path: Path) -> None:
    """Refuse a file that is not one of a session, is of another format, or has other tables."""
    _require_kind(db, SESSION_FILE, path)
    _require_version(db.rows("PRAGMA user_version")[0][0], str(path))
    there = db.rows("SELECT type, name, sql FROM sqlite_master LIMIT 100")
    found = {name: sql for _, name, sql in there}
    # views, triggers and indices could answer with anything
    if any(kind != "table" for kind, _, _ in there) or any(
        found.get(table) != statement for table, statement in _statements(db, SESSION_TABLES)
    ):
        raise BrokenFile(
            f"{path} is truncated or was changed: its tables are not those of a session. Go back "
            "to an earlier copy."
        )


def require_store(db: Database, where: str | Path) -> None:
    """Refuse a database that is not one of many sessions, or is of another format."""
    if isinstance(db, SQLite):
        _require_kind(db, STORE_FILE, Path(where))
    row = db.rows("SELECT value FROM store WHERE name = 'format'")
    if not row or not str(row[0][0]).isdigit():
        raise BrokenFile(f"{where} was changed: it does not say its format. Go back to a copy.")
    _require_version(int(row[0][0]), str(where))


def _require_kind(db: SQLite, kind: int, path: Path) -> None:
    if db.rows("PRAGMA application_id") != [(kind,)]:
        what = "a durable session" if kind == SESSION_FILE else "a service with many sessions"
        raise BrokenFile(f"{path} is a file, but not one of {what}. Give another path.")


def _require_version(version: int, where: str) -> None:
    if version > FORMAT:
        raise NewerFormat(
            f"{where} has format {version}; this tidewolf reads up to {FORMAT}. Install a newer "
            "tidewolf."
        )
    if version < FORMAT:
        raise OlderFormat(
            f"{where} has format {version}, which an earlier tidewolf wrote; this tidewolf reads "
            f"format {FORMAT}. Give a new path, folder or database."
        )


def add_entry(db: Database, at: float, who: str, session: str, what: str, why: str = "") -> None:
    """Add a line to the audit, within a transaction."""
    version = checkpoint.writer()["tidewolf"]
    values = (next_number(db, "audit"), at, who, session, what, why, version)
    db.execute("INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?, ?)", values)


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
