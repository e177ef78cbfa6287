"""The rows of one session, and checks of their consistency.

    link_0 = sha256(settings)       link_k = sha256(link_{k-1} | event k)
    seal   = sha256(link of the event | the state after it)

Whatever changes the state of a session is an event: side information of the next round, a decision
whose feedback comes later, an observation, the expiry of a round. Events are kept in the order in
which they happened, before the caller gets an answer that depends on them. Rounds are numbered from
1, as in every file.

The tables of sessions, the same in SQLite and PostgreSQL (docs/reference/formats.md).

    head            one row per session: which events there are, their links, the last snapshot, the
                    epoch; `observed`: how many rounds were observed
    events          one row for each, in the order in which they happened
    snapshots       states; the last one is what opening begins from
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

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, final

from tidewolf.core import checkpoint, errors
from tidewolf.storage.database import Database, SQLite

FORMAT = 4
# SQLite's application_id of our files.
SESSION_FILE, STORE_FILE = int.from_bytes(b"tide"), int.from_bytes(b"tws1")
_COUNT, _BYTES = "BIGINT NOT NULL", "{blob} NOT NULL"
SESSION_TABLES = {
    "head": (
        f"session BIGINT PRIMARY KEY, first {_COUNT}, base {_BYTES}, last {_COUNT}, "
        f"link {_BYTES}, snapshot {_COUNT}, epoch {_COUNT}, observed {_COUNT}"
    ),
    "events": (
        f"session {_COUNT}, number {_COUNT}, kind TEXT NOT NULL, round {_COUNT}, epoch {_COUNT}, "
        f"data {_BYTES}, PRIMARY KEY (session, number)"
    ),
    "snapshots": (
        f"session {_COUNT}, number {_COUNT}, state {_BYTES}, seal {_BYTES}, "
        "PRIMARY KEY (session, number)"
    ),
    "contents": f"session {_COUNT}, round {_COUNT}, content TEXT, PRIMARY KEY (session, round)",
    "meta": f"session {_COUNT}, name TEXT NOT NULL, value TEXT, PRIMARY KEY (session, name)",
}
STORE_TABLES = SESSION_TABLES | {
    "rounds": (
        f"session {_COUNT}, round {_COUNT}, at DOUBLE PRECISION NOT NULL, cost DOUBLE PRECISION, "
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
# Tables of a store whose rows belong to a session.
OF_A_SESSION = (*SESSION_TABLES, "rounds")


def _statement(db: Database, table: str, columns: str) -> str:
    return f"CREATE TABLE {table} ({columns.format(blob=db.blob, name=db.name)}){db.keyed}"


def make_tables(db: Database, tables: Mapping[str, str]) -> None:
    for table, columns in tables.items():
        db.execute(_statement(db, table, columns))


def make_store(db: Database) -> None:
    make_tables(db, STORE_TABLES)
    for statement in db.append_only("audit"):
        db.execute(statement)
    db.execute("INSERT INTO store VALUES ('format', ?)", (str(FORMAT),))


def require_format(db: Database, where: str | Path, kind: int = STORE_FILE) -> None:
    """Refuse a database that is not of this kind, or is of another format."""
    if isinstance(db, SQLite) and db.rows("PRAGMA application_id") != [(kind,)]:
        what = "a durable session" if kind == SESSION_FILE else "a service with many sessions"
        raise errors.BrokenFile(f"{where} is a file, but not one of {what}. Give another path.")
    if kind == SESSION_FILE:
        found = db.rows("PRAGMA user_version")
    else:
        found = db.rows("SELECT value FROM store WHERE name = 'format'")
    version = int(found[0][0]) if found and str(found[0][0]).isdigit() else -1
    if version != FORMAT:
        error = errors.NewerFormat if version > FORMAT else errors.OlderFormat
        what = f"{where} has format {version}; this tidewolf reads format {FORMAT}"
        raise error(f"{what}. Install the tidewolf that wrote it, or give a new path.")
    if kind == SESSION_FILE:
        there = dict(db.rows("SELECT name, sql FROM sqlite_master WHERE type = 'table'"))
        if any(there.get(one) != _statement(db, one, of) for one, of in SESSION_TABLES.items()):
            raise errors.BrokenFile(f"{where} was changed: it has other tables. Go back to a copy.")


def add_entry(db: Database, at: float, who: str, session: str, what: str, why: str = "") -> None:
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


# Rows read at a time, so that no reader holds up the writer.
_AT_ONCE = 256
# More than any number of an event.
_ANY = 2**62
# States kept for going back, at most.
_SNAPSHOTS = 8


def digest(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()


class Head(NamedTuple):
    """What the file holds: events first + 1 to last, and the state after event `snapshot`."""

    first: int
    # the link of event `first`
    base: bytes
    last: int
    # the link of event `last`
    link: bytes
    snapshot: int
    # of the last writer; each writer has a higher one, and none goes back
    epoch: int


class Row(NamedTuple):
    # from 1, in the order in which they happened
    number: int
    kind: str
    # the first round that it is about, from 1
    round: int
    # of the writer
    epoch: int
    data: bytes

    def link(self, before: bytes) -> bytes:
        number, kind, first, epoch, data = self
        return digest(before, f"{number} {kind} {first} {epoch} ".encode(), data)


class Content(NamedTuple):
    head: Head
    # the last snapshot
    state: bytes
    # the link of its event
    link: bytes
    # the events after it
    left: list[Row]


_HEAD, _ROW = ", ".join(Head._fields), ", ".join(Row._fields)
# A head is known by these: each writer has an epoch of its own.
_MOVE_HEAD = (
    f"UPDATE head SET {_HEAD.replace(',', ' = ?,')} = ?, observed = ? WHERE session = ? AND "
    "last = ? AND link = ? AND epoch = ?"
)
_ADD = "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)"
_WRITE_CONTENT = (
    "INSERT INTO contents VALUES (?, ?, ?) ON CONFLICT (session, round) DO UPDATE SET content = "
    "excluded.content"
)
_WRITE_SNAPSHOT = (
    "INSERT INTO snapshots VALUES (?, ?, ?, ?) ON CONFLICT (session, number) DO UPDATE SET state "
    "= excluded.state, seal = excluded.seal"
)


@final
class Tables:
    def __init__(self, db: Database, session: int = 1) -> None:
        self.db, self._session = db, session

    def _rows(self, rest: str, *values: Any) -> list[Any]:
        return self.db.rows(f"SELECT {rest}", (self._session, *values))

    def _delete(self, table: str, which: str, value: int) -> None:
        sql = f"DELETE FROM {table} WHERE session = ? AND {which} ?"
        self.db.execute(sql, (self._session, value))

    # --- the head and the events ------------------------------------------------------------------

    def begin(self, base: bytes, state: bytes) -> None:
        before = self.read_head()
        head = Head(0, base, 0, base, 0, before.epoch)
        self.move_head(before, head, 0)
        self.add_snapshot(head, state, 1)

    def read_head(self) -> Head:
        return Head(*self._rows(f"{_HEAD} FROM head WHERE session = ?")[0])

    def move_head(self, before: Head, head: Head, observed: int) -> bool:
        """The next head in place of this one, after so many rounds; whether it was this one."""
        values = (*head, observed, self._session, before.last, before.link, before.epoch)
        return self.db.execute(_MOVE_HEAD, values) == 1

    def add(self, row: Row) -> None:
        self.db.execute(_ADD, (self._session, *row))

    def some_rows(self, after: int, last: int) -> list[Row]:
        which = "session = ? AND number > ? AND number <= ? ORDER BY number LIMIT ?"
        found = self._rows(f"{_ROW} FROM events WHERE {which}", after, last, _AT_ONCE)
        return [Row(*row) for row in found]

    def rows_after(self, after: int, last: int = _ANY) -> Iterator[Row]:
        while rows := self.some_rows(after, last):
            yield from rows
            after = rows[-1].number

    def cut(self, last: int, upcoming: int, waiting: Iterable[int]) -> None:
        """Without what came after event `last`, when round `upcoming` was the next one and these
        waited.
        """
        for table in ("events", "snapshots"):
            self._delete(table, "number >", last)
        self._delete("contents", "round >=", upcoming)
        for one in waiting:
            self._delete("contents", "round =", one)

    def forget(self, first: int, contents: int) -> None:
        """Without the events up to number `first`, the states before it, and what was observed of
        the rounds up to `contents`.
        """
        self._delete("events", "number <=", first)
        self._delete("snapshots", "number <", first)
        self._delete("contents", "round <=", contents)

    # --- states -----------------------------------------------------------------------------------

    def add_snapshot(self, head: Head, state: bytes, every: int) -> None:
        """The state after the last event. Of those before it the one where the history begins
        stays, unless that is the learner's start, and the last few that are `every` events apart,
        for going back.
        """
        found = self._rows("number FROM snapshots WHERE session = ? ORDER BY number")
        older, apart = [number for (number,) in found], [0]
        for number in older:
            if head.first < number < head.last and number >= apart[-1] + every:
                apart.append(number)
        for number in {*older} - {*apart[1:][-_SNAPSHOTS:], head.first or None}:
            self._delete("snapshots", "number =", number)
        values = (self._session, head.last, state, digest(head.link, state))
        self.db.execute(_WRITE_SNAPSHOT, values)

    def snapshots(self, head: Head) -> Iterator[tuple[int, bytes, bytes]]:
        """The states that are kept and whole, newest first: after which event, its link, and the
        state.
        """
        states = self._states()
        links, _, _ = self._followed(head, states)
        for number in sorted(states, reverse=True):
            state, seal = states[number]
            if number in links and digest(links[number], state) == seal:
                yield number, links[number], state

    def _states(self) -> dict[int, tuple[bytes, bytes]]:
        found = self._rows("number, state, seal FROM snapshots WHERE session = ?")
        return {number: (state, seal) for number, state, seal in found}

    # --- contents and notes -----------------------------------------------------------------------

    def last_contents(self, most: int) -> dict[int, str | None]:
        """The identities of what was observed of the last rounds; rounds from 0."""
        which = "session = ? ORDER BY round DESC LIMIT ?"
        found = self._rows(f"round, content FROM contents WHERE {which}", most)
        return {number - 1: content for number, content in found[::-1]}

    def content_of(self, number: int) -> str | None:
        found = self._rows("content FROM contents WHERE session = ? AND round = ?", number)
        return found[0][0] if found and isinstance(found[0][0], str) else None

    def write_contents(self, contents: Mapping[int, str | None]) -> None:
        for number, content in contents.items():
            self.db.execute(_WRITE_CONTENT, (self._session, number, content))

    def note(self, name: str, value: str) -> None:
        ((count,),) = self._rows(
            "count(*) FROM meta WHERE session = ? AND name LIKE ?", f"{name} %"
        )
        values = (self._session, f"{name} {count + 1}", value)
        self.db.execute("INSERT INTO meta VALUES (?, ?, ?) ON CONFLICT DO NOTHING", values)

    # --- all of it --------------------------------------------------------------------------------

    def read_content(self, where: str) -> Content:
        try:
            head, states = self.read_head(), self._states()
            links, left, held = self._followed(head, states)
            held = held and head.snapshot in states
            for number, (state, seal) in states.items():
                held = held and number in links and digest(links[number], state) == seal
        except (TypeError, ValueError, IndexError):  # a row is not there, or is of another type
            held = False
        if not held:
            raise errors.BrokenFile(
                f"{where} is truncated or was changed. Go back to an earlier copy."
            )
        return Content(head, states[head.snapshot][0], links[head.snapshot], left)

    def _followed(
        self, head: Head, states: Mapping[int, Any]
    ) -> tuple[dict[int, bytes], list[Row], bool]:
        """The links of the events with a state, the events after the last snapshot, and whether
        the links lead to the head.
        """
        count, epoch, link, left = head.first, 0, head.base, list[Row]()
        links, held = {count: link}, 0 <= head.first <= head.snapshot <= head.last
        for row in self.rows_after(-_ANY):
            count, link = count + 1, row.link(link)
            held = held and row.number == count and epoch <= row.epoch <= head.epoch
            epoch = row.epoch
            if count in states:
                links[count] = link
            if count > head.snapshot:
                left.append(row)
        return links, left, held and (count, link) == (head.last, head.link)
