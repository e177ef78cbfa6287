"""What stands in the database of a session, and whether it holds together (docs/formats.md).

    head            one row: which observations there are, their links, the last snapshot, the epoch
    observations    one row for each, in the order in which they came
    snapshots       states; the last one is what opening begins from
    pending         the round that was decided on what is known before it, and not yet observed
    meta            names and values that no reader depends on

Rounds are numbered from 1, as in every file. What is known before a round (`known`) is written
before its decision is answered, to `pending`, under a seal of its own,

    sha256(link of the last observation | round | known) | known,

and moves to `observations` with what is observed. `played`, `decision` and other rounds that are
pending are room for what was really played and rounds that are observed late: a file in which they
are used is refused until this tidewolf knows what they mean. Tables of other names are nobody's
business here.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tidewolf.core.errors import BrokenFile, NewerFormat

DATABASE_FORMAT = 2
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
        "rounds INTEGER NOT NULL, epoch INTEGER NOT NULL, feedback BLOB NOT NULL, known BLOB, "
        "played BLOB)"
    ),
    "snapshots": (
        "CREATE TABLE snapshots (arrived INTEGER PRIMARY KEY, state BLOB NOT NULL, "
        "seal BLOB NOT NULL)"
    ),
    "pending": "CREATE TABLE pending (round INTEGER PRIMARY KEY, known BLOB, decision BLOB)",
}
SCHEMA_1 = {
    "head": (
        "CREATE TABLE head (first INTEGER NOT NULL, base BLOB NOT NULL, last INTEGER NOT NULL, "
        "link BLOB NOT NULL, snapshot INTEGER NOT NULL)"
    ),
    "snapshot": "CREATE TABLE snapshot (state BLOB NOT NULL, seal BLOB NOT NULL)",
    "observations": "CREATE TABLE observations (number INTEGER PRIMARY KEY, data BLOB NOT NULL)",
}
"""Those of tidewolf 0.1."""
SEAL = 32
"""The bytes of a checksum."""
_AT_ONCE = 256
"""Rows read at a time, so that no reader holds up the writer."""
_MOST_TABLES = 100


class Head(NamedTuple):
    """What the file holds: observations first + 1 to last, and the state after observation
    `snapshot`.
    """

    first: int
    base: bytes
    """the link of observation `first`"""
    last: int
    link: bytes
    """the link of observation `last`"""
    snapshot: int
    epoch: int
    """of the last writer; each writer has a higher one, and none goes back"""


class Row(NamedTuple):
    """One observation."""

    arrived: int
    """its number in the order in which they came, from 1"""
    round: int
    """the first round that it speaks of, from 1"""
    rounds: int
    """how many it speaks of"""
    epoch: int
    """of the writer"""
    feedback: bytes
    known: bytes | None = None
    """what was known before the round"""
    played: bytes | None = None
    """what was really played, where it was not the decision"""

    def link(self, before: bytes) -> bytes:
        """The link of this observation, after that of the one before."""
        blobs = (self.feedback, self.known, self.played)
        sizes = [-1 if blob is None else len(blob) for blob in blobs]
        numbers = " ".join(map(str, (*self[:4], *sizes))).encode()
        return digest(before, numbers, *(blob for blob in blobs if blob is not None))


class Pending(NamedTuple):
    """The round that comes after the last observation, with what is known before it."""

    round: int
    known: bytes

    def sealed(self, link: bytes) -> bytes:
        """What is known under its seal; `link` is that of the last observation."""
        return digest(link, str(self.round).encode(), b" ", self.known) + self.known


class Content(NamedTuple):
    """What opening begins from."""

    head: Head
    state: bytes
    """the last snapshot"""
    left: list[Row]
    """the observations after it"""
    pending: Pending | None = None
    """the round that was decided on what is known before it"""


def digest(*parts: bytes) -> bytes:
    """The checksum of all parts, end to end."""
    return hashlib.sha256(b"".join(parts)).digest()


def version_of(db: sqlite3.Connection, path: Path) -> int:
    """The format of the file; refused where it is newer, none of ours, or has other tables."""
    (kind,), (version,) = (
        db.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version")
    )
    if kind != APPLICATION:
        raise BrokenFile(
            f"{path} is a file, but not one of a durable session. Give the path of one, or a new "
            "path."
        )
    if version > DATABASE_FORMAT:
        raise NewerFormat(
            f"{path} has format {version}; this tidewolf reads up to {DATABASE_FORMAT}. Install a "
            "newer tidewolf."
        )
    made = db.execute(f"SELECT type, name, sql FROM sqlite_master LIMIT {_MOST_TABLES}").fetchall()
    ours = {name: sql for _, name, sql in made}
    tables = SCHEMA_1 if version == 1 else SCHEMA
    # views, triggers and indices could answer with anything
    if any(kind != "table" for kind, _, _ in made) or tables.items() - ours.items():
        raise BrokenFile(
            f"{path} is truncated or was changed: its tables are not those of a session. Go back "
            "to an earlier copy."
        )
    return int(version)


def make(db: sqlite3.Connection, settings: str, state: bytes, written_by: str) -> None:
    """The tables before the first observation, within a transaction."""
    for statement in SCHEMA.values():
        db.execute(statement)
    db.execute(f"PRAGMA application_id = {APPLICATION}")
    db.execute(f"PRAGMA user_version = {DATABASE_FORMAT}")
    link = digest(settings.encode())
    db.execute("INSERT INTO head VALUES (?, ?, ?, ?, ?, ?)", Head(0, link, 0, link, 0, 0))
    db.execute("INSERT INTO snapshots VALUES (?, ?, ?)", (0, state, digest(link, state)))
    db.execute("INSERT INTO meta VALUES ('begun by tidewolf', ?)", (written_by,))


def read_head(db: sqlite3.Connection) -> Head:
    return Head(*db.execute(_READ_HEAD).fetchone())


def write_head(db: sqlite3.Connection, head: Head) -> None:
    db.execute(_WRITE_HEAD, head)


def add(db: sqlite3.Connection, row: Row) -> None:
    db.execute("INSERT INTO observations VALUES (?, ?, ?, ?, ?, ?, ?)", row)


_READ_HEAD = f"SELECT {', '.join(Head._fields)} FROM head"
_WRITE_HEAD = f"UPDATE head SET {', '.join(f'{name} = ?' for name in Head._fields)}"


def replace_snapshot(db: sqlite3.Connection, head: Head, state: bytes) -> None:
    """The state after the last observation, in place of the one before."""
    db.execute("DELETE FROM snapshots")
    values = (head.last, state, digest(head.link, state))
    db.execute("INSERT INTO snapshots VALUES (?, ?, ?)", values)


def some_rows(db: sqlite3.Connection, after: int, last: int) -> list[Row]:
    """The next few observations after number `after`, up to number `last`."""
    query = (
        f"SELECT {', '.join(Row._fields)} FROM observations WHERE arrived > ? AND arrived <= ? "
        "ORDER BY arrived LIMIT ?"
    )
    return [Row(*row) for row in db.execute(query, (after, last, _AT_ONCE))]


def read_content(db: sqlite3.Connection, path: Path) -> Content:
    """What opening begins from; refused unless every link holds."""
    whole = db.execute("PRAGMA quick_check(1)").fetchone() == ("ok",)
    try:
        head = read_head(db)
        content, held = _followed(db, head)
    except (TypeError, ValueError):  # a row is not there, or is of another type
        whole = held = False
    if not (whole and held):
        raise BrokenFile(
            f"{path} is truncated or was changed: its checksums do not match. Go back to an "
            "earlier copy."
        )
    return content._replace(pending=_pending(db, path, content))


def _pending(db: sqlite3.Connection, path: Path, content: Content) -> Pending | None:
    """The round that is decided and not observed; refused where there are more than that, or what
    was known of it was changed.
    """
    rows = db.execute("SELECT round, known, decision FROM pending LIMIT 2").fetchall()
    later = [decision for _, known, decision in rows if known is None or decision is not None]
    if len(rows) > 1 or later or any(row.played is not None for row in content.left):
        raise NewerFormat(
            f"{path} holds rounds that were observed late, or with what was known or played, which "
            "this tidewolf does not read. Install a newer tidewolf."
        )
    if not rows:
        return None
    number, known, _ = rows[0]
    try:
        pending = Pending(number, known[SEAL:])
        whole = pending.sealed(content.head.link) == known
    except TypeError:  # a value of another type
        whole = False
    if not whole:
        raise BrokenFile(
            f"{path} was changed: what was known before a round does not match its checksum. Go "
            "back to an earlier copy."
        )
    return pending


def replace_pending(db: sqlite3.Connection, pending: Pending, link: bytes) -> None:
    """The one round that is decided and not observed."""
    db.execute("DELETE FROM pending")
    values = (pending.round, pending.sealed(link), None)
    db.execute("INSERT INTO pending VALUES (?, ?, ?)", values)


def read_pending(db: sqlite3.Connection) -> bytes | None:
    """What is known before the pending round, under its seal; None where no round is pending."""
    row = db.execute("SELECT known FROM pending").fetchone()
    return None if row is None else row[0]


def drop_pending(db: sqlite3.Connection) -> None:
    db.execute("DELETE FROM pending")


def _followed(db: sqlite3.Connection, head: Head) -> tuple[Content, bool]:
    """What opening begins from, and whether every link holds."""
    (state, seal) = db.execute(
        "SELECT state, seal FROM snapshots WHERE arrived = ?", (head.snapshot,)
    ).fetchone()
    count, epoch, left = head.first, 0, []
    link = sealed = head.base
    held = 0 <= head.first <= head.snapshot <= head.last
    for row in _all_rows(db):
        count, link = count + 1, row.link(link)
        held = held and row.arrived == count and epoch <= row.epoch <= head.epoch
        epoch = row.epoch
        if count == head.snapshot:
            sealed = link
        elif count > head.snapshot:
            left.append(row)
    held = held and (count, link) == (head.last, head.link) and digest(sealed, state) == seal
    return Content(head, state, left), held


def _all_rows(db: sqlite3.Connection) -> Iterator[Row]:
    query = f"SELECT {', '.join(Row._fields)} FROM observations ORDER BY arrived"
    return (Row(*row) for row in db.execute(query))
