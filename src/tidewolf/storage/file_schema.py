"""The schema of a file that holds one session, and whether a file has it."""

from __future__ import annotations

from pathlib import Path

from tidewolf.core.errors import BrokenFile
from tidewolf.storage.database import Database
from tidewolf.storage.records import Head, digest, require_version
from tidewolf.storage.tables import CONTENTS

DATABASE_FORMAT = 3
APPLICATION = int.from_bytes(b"tide")
"""SQLite's application_id of our files."""
SCHEMA = {
    "meta": "CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID",
    "head": (
        "CREATE TABLE head (first INTEGER NOT NULL, base BLOB NOT NULL, last INTEGER NOT NULL, "
        "link BLOB NOT NULL, snapshot INTEGER NOT NULL, epoch INTEGER NOT NULL)"
    ),
    "observations": (
        "CREATE TABLE observations (arrived INTEGER PRIMARY KEY, round INTEGER NOT NULL, "
        "rounds INTEGER NOT NULL, epoch INTEGER NOT NULL, feedback BLOB NOT NULL, info BLOB, "
        "played BLOB)"
    ),
    "snapshots": (
        "CREATE TABLE snapshots (arrived INTEGER PRIMARY KEY, state BLOB NOT NULL, "
        "seal BLOB NOT NULL)"
    ),
    "pending": "CREATE TABLE pending (round INTEGER PRIMARY KEY, info BLOB, decision BLOB)",
}
_MOST_TABLES = 100


def require_format(db: Database, path: Path) -> None:
    """Refuse a file of another format, one that is not ours, and one with other tables."""
    (kind,), (version,) = (
        db.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version")
    )
    if kind != APPLICATION:
        raise BrokenFile(
            f"{path} is a file, but not one of a durable session. Give the path of one, or a new "
            "path."
        )
    require_version(version, DATABASE_FORMAT, str(path))
    query = f"SELECT type, name, sql FROM sqlite_master LIMIT {_MOST_TABLES}"
    try:
        made = db.execute(query).fetchall()
    except UnicodeDecodeError:  # what names a table is no text
        made = []
    ours = {name: sql for _, name, sql in made}
    # views, triggers and indices could answer with anything
    if (
        any(kind != "table" for kind, _, _ in made)
        or SCHEMA.items() - ours.items()
        or ours.get("contents", CONTENTS) != CONTENTS
    ):
        raise BrokenFile(
            f"{path} is truncated or was changed: its tables are not those of a session. Go back "
            "to an earlier copy."
        )


def make(db: Database, settings: str, state: bytes, written_by: str) -> None:
    """The tables before the first observation, within a transaction."""
    for statement in SCHEMA.values():
        db.execute(statement)
    db.execute(f"PRAGMA application_id = {APPLICATION}")
    db.execute(f"PRAGMA user_version = {DATABASE_FORMAT}")
    link = digest(settings.encode())
    db.execute("INSERT INTO head VALUES (?, ?, ?, ?, ?, ?)", Head(0, link, 0, link, 0, 0))
    db.execute("INSERT INTO snapshots VALUES (?, ?, ?)", (0, state, digest(link, state)))
    db.execute("INSERT INTO meta VALUES ('begun by tidewolf', ?)", (written_by,))
