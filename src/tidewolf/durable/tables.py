"""What stands in the database of a session, and whether it holds together (docs/formats.md).

    head            one row: which observations there are, their links, the last snapshot, the epoch
    observations    one row for each, in the order in which they came
    snapshots       states; the last one is what opening begins from
    pending         the rounds that were decided, or told what is known, and are not yet observed
    meta            names and values that no reader depends on
    contents        the identity of what was observed of a round; only once rounds have numbers

Rounds are numbered from 1, as in every file. What is known before a round (`known`) is written
before its decision is answered, to `pending`, under a seal of its own,

    sha256(link of the last observation | round | known) | known,

and moves to `observations` with what is observed. A round that waits for its feedback while later
ones are decided has a `decision` too,

    sha256(round | known | after | x) | after | x,

with the number `after` of the last observation when it was decided, so that what happened can be
done again in the same order; its `known` is then under a seal without a link. `played` says how a
round was met that was not simply the next one: after which observation it was decided, and what was
played in place of the decision. A round that is waited for no more is an observation of 0 rounds.
Tables of other names are nobody's business here.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

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
CONTENTS = "CREATE TABLE contents (round INTEGER PRIMARY KEY, content TEXT)"
"""Made when the first round is given by its number."""
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
_NUMBER = 8
"""The bytes of a number in a decision."""
_AT_ONCE = 256
"""Rows read at a time, so that no reader holds up the writer."""
_MOST_TABLES = 100
_SNAPSHOTS = 8
"""States kept for going back, at most."""


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
    """how the round was met, where it was not simply the next one"""

    def link(self, before: bytes) -> bytes:
        """The link of this observation, after that of the one before."""
        blobs = (self.feedback, self.known, self.played)
        sizes = [-1 if blob is None else len(blob) for blob in blobs]
        numbers = " ".join(map(str, (*self[:4], *sizes))).encode()
        return digest(before, numbers, *(blob for blob in blobs if blob is not None))


class Decision(NamedTuple):
    """What was decided of a round that waits."""

    after: int
    """the number of the last observation then"""
    x: bytes

    @property
    def packed(self) -> bytes:
        return self.after.to_bytes(_NUMBER) + self.x

    @classmethod
    def of(cls, packed: bytes) -> Decision:
        return cls(int.from_bytes(packed[:_NUMBER]), packed[_NUMBER:])


class Pending(NamedTuple):
    """A round that is not observed: what was known before it, and its decision where it waits."""

    round: int
    known: bytes | None
    decision: Decision | None = None

    def columns(self, link: bytes) -> tuple[int, bytes | None, bytes | None]:
        """The row of the table; `link` is that of the last observation."""
        known = decision = None
        link = link if self.decision is None else b""
        if self.known is not None:
            known = self._sealed(link, self.known) + self.known
        if self.decision is not None:
            packed = self.decision.packed
            decision = self._sealed(link, self.known or b"", b" ", packed) + packed
        return self.round, known, decision

    def _sealed(self, link: bytes, *parts: bytes) -> bytes:
        return digest(link, str(self.round).encode(), b" ", *parts)


class Content(NamedTuple):
    """What opening begins from."""

    head: Head
    state: bytes
    """the last snapshot"""
    link: bytes
    """the link of its observation"""
    left: list[Row]
    """the observations after it"""
    pending: tuple[Pending, ...] = ()
    """the rounds that were decided, or told what is known, and are not observed; in order"""


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
    query = f"SELECT type, name, sql FROM sqlite_master LIMIT {_MOST_TABLES}"
    try:
        made = db.execute(query).fetchall()
    except UnicodeDecodeError:  # what names a table is no text
        made = []
    ours = {name: sql for _, name, sql in made}
    tables = SCHEMA_1 if version == 1 else SCHEMA
    # views, triggers and indices could answer with anything
    if (
        any(kind != "table" for kind, _, _ in made)
        or tables.items() - ours.items()
        or ours.get("contents", CONTENTS) != CONTENTS
    ):
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


def add_snapshot(db: sqlite3.Connection, head: Head, state: bytes, every: int) -> None:
    """The state after the last observation. Of those before it the one where the history begins
    stays, unless that is the learner's start, and the last few that are `every` observations apart,
    for going back.
    """
    older = [arrived for (arrived,) in db.execute("SELECT arrived FROM snapshots ORDER BY arrived")]
    apart: list[int] = []
    for arrived in older:
        if head.first < arrived < head.last and arrived >= (apart[-1] if apart else 0) + every:
            apart.append(arrived)
    kept = {*apart[-_SNAPSHOTS:], head.first or None}
    gone = [(arrived,) for arrived in older if arrived not in kept]
    db.executemany("DELETE FROM snapshots WHERE arrived = ?", gone)
    values = (head.last, state, digest(head.link, state))
    db.execute("INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?)", values)


def snapshots(db: sqlite3.Connection, head: Head) -> Iterator[tuple[int, bytes, bytes]]:
    """The states that are kept and whole, newest first: after which observation, its link, and the
    state.
    """
    states = {row[0]: row[1:] for row in db.execute("SELECT arrived, state, seal FROM snapshots")}
    link, links = head.base, {head.first: head.base}
    for row in rows_after(db, head.first, head.last):
        link = row.link(link)
        if row.arrived in states:
            links[row.arrived] = link
    for arrived in sorted(states, reverse=True):
        state, seal = states[arrived]
        if arrived in links and digest(links[arrived], state) == seal:
            yield arrived, links[arrived], state


def late_rows(db: sqlite3.Connection) -> list[Row]:
    """The observations of rounds that were not simply the next ones."""
    query = f"SELECT {', '.join(Row._fields)} FROM observations WHERE played IS NOT NULL"
    return [Row(*row)._replace(feedback=b"") for row in db.execute(query)]


def rows_after(db: sqlite3.Connection, after: int, last: int) -> Iterator[Row]:
    """The observations after number `after`, a few at a time."""
    while rows := some_rows(db, after, last):
        yield from rows
        after = rows[-1].arrived


def cut(db: sqlite3.Connection, last: int, number: int, pending: Iterable[int]) -> None:
    """Without what came after observation `last`, when round `number` was the coming one and these
    waited.
    """
    for table in ("observations", "snapshots"):
        db.execute(f"DELETE FROM {table} WHERE arrived > ?", (last,))
    if has_contents(db):
        db.execute("DELETE FROM contents WHERE round >= ?", (number,))
        gone = [(one,) for one in pending]
        db.executemany("DELETE FROM contents WHERE round = ?", gone)


def note(db: sqlite3.Connection, name: str, value: str) -> None:
    """One more note of this name."""
    (count,) = db.execute("SELECT count(*) FROM meta WHERE name LIKE ?", (f"{name} %",)).fetchone()
    db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (f"{name} {count + 1}", value))


def forget(db: sqlite3.Connection, first: int) -> None:
    """Without the observations up to number `first`, and the states before it."""
    db.execute("DELETE FROM observations WHERE arrived <= ?", (first,))
    db.execute("DELETE FROM snapshots WHERE arrived < ?", (first,))


def forget_contents(db: sqlite3.Connection, last: int) -> None:
    """Without what was observed of the rounds up to this one."""
    if has_contents(db):
        db.execute("DELETE FROM contents WHERE round <= ?", (last,))


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
    return content._replace(pending=_pending(db, path, head.link))


def _pending(db: sqlite3.Connection, path: Path, link: bytes) -> tuple[Pending, ...]:
    """The rounds that are not observed; refused where what was known of one, or its decision, was
    changed.
    """
    found = []
    for number, known, decision in read_pending(db):
        try:
            one = Pending(
                number,
                None if known is None else known[SEAL:],
                None if decision is None else Decision.of(decision[SEAL:]),
            )
            whole = one.columns(link) == (number, known, decision)
        except TypeError:  # a value of another type
            whole = False
        if not whole or known is decision is None:
            raise BrokenFile(
                f"{path} was changed: what was known or decided of a round does not match its "
                "checksum. Go back to an earlier copy."
            )
        found.append(one)
    return tuple(found)


def write_pending(
    db: sqlite3.Connection, before: Mapping[int, Pending], now: Mapping[int, Pending], link: bytes
) -> None:
    """The rounds that wait now, in place of those before."""
    for number in before.keys() - now.keys():
        db.execute("DELETE FROM pending WHERE round = ?", (number,))
    for number, one in now.items():
        if before.get(number) is not one:
            db.execute("INSERT OR REPLACE INTO pending VALUES (?, ?, ?)", one.columns(link))


def read_pending(db: sqlite3.Connection) -> list[tuple[int, Any, Any]]:
    """The rounds that wait, as they stand there."""
    return db.execute("SELECT round, known, decision FROM pending ORDER BY round").fetchall()


def has_contents(db: sqlite3.Connection) -> bool:
    query = "SELECT count(*) FROM sqlite_master WHERE name = 'contents'"
    return bool(db.execute(query).fetchone()[0])


def content_of(db: sqlite3.Connection, number: int) -> str | None:
    """The identity of what was observed of a round; None where it is not known."""
    if not has_contents(db):
        return None
    query = "SELECT content FROM contents WHERE round = ? AND typeof(content) = 'text'"
    row = db.execute(query, (number,)).fetchone()
    return None if row is None else str(row[0])


def last_contents(db: sqlite3.Connection, most: int) -> dict[int, str | None]:
    """What was observed of the last rounds, by its identity; rounds from 0."""
    if not has_contents(db):
        return {}
    query = "SELECT round, content FROM contents ORDER BY round DESC LIMIT ?"
    return {number - 1: content for number, content in db.execute(query, (most,)).fetchall()[::-1]}


def write_contents(db: sqlite3.Connection, contents: Mapping[int, str | None]) -> None:
    if not has_contents(db):
        db.execute(CONTENTS)
    db.executemany("INSERT OR REPLACE INTO contents VALUES (?, ?)", contents.items())


def _followed(db: sqlite3.Connection, head: Head) -> tuple[Content, bool]:
    """What opening begins from, and whether every link and seal holds."""
    states = {row[0]: row[1:] for row in db.execute("SELECT arrived, state, seal FROM snapshots")}
    count, epoch, left, links = head.first, 0, [], {head.first: head.base}
    link, held = head.base, 0 <= head.first <= head.snapshot <= head.last
    for row in _all_rows(db):
        count, link = count + 1, row.link(link)
        held = held and row.arrived == count and epoch <= row.epoch <= head.epoch
        epoch = row.epoch
        if count in states:
            links[count] = link
        if count > head.snapshot:
            left.append(row)
    held = held and (count, link) == (head.last, head.link) and head.snapshot in states
    for arrived, (state, seal) in states.items():
        held = held and arrived in links and digest(links[arrived], state) == seal
    if not held:
        return Content(head, b"", b"", []), False
    return Content(head, states[head.snapshot][0], links[head.snapshot], left), True


def _all_rows(db: sqlite3.Connection) -> Iterator[Row]:
    query = f"SELECT {', '.join(Row._fields)} FROM observations ORDER BY arrived"
    return (Row(*row) for row in db.execute(query))
