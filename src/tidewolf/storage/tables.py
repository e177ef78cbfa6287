"""The rows of one session, and checks of their consistency.

    link_0 = sha256(settings)       link_k = sha256(link_{k-1} | observation k)
    seal   = sha256(link of the observation | the state after it)

Rounds are numbered from 1, as in every file. Side information of a round (`info`) is written before
its decision is answered, to `pending`, under a seal of its own,

    sha256(link of the last observation | round | info) | info,

and moves to `observations` with what is observed. A round that waits for its feedback while later
ones are decided has a `decision` too,

    sha256(round | info | after | x) | after | x,

with the number `after` of the last observation when it was decided, so that events can be replayed
in the same order; its `info` is then under a seal without a link. `played` says how a round was
observed that was not simply the next one: after which observation it was decided, and what was
played in place of the decision. A round that expired is an observation of 0 rounds.

The tables of sessions, the same in SQLite and PostgreSQL (docs/reference/formats.md).

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

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, final

from tidewolf.core import checkpoint
from tidewolf.core.errors import BrokenFile, NewerFormat, OlderFormat
from tidewolf.storage.database import Database, SQLite

FORMAT = 3
SESSION_FILE, STORE_FILE = int.from_bytes(b"tide"), int.from_bytes(b"tws1")
"""SQLite's application_id of our files."""
_COUNT, _BYTES = "BIGINT NOT NULL", "{blob} NOT NULL"
SESSION_TABLES = {
    "head": (
        f"session BIGINT PRIMARY KEY, first {_COUNT}, base {_BYTES}, last {_COUNT}, "
        f"link {_BYTES}, snapshot {_COUNT}, epoch {_COUNT}, observed {_COUNT}"
    ),
    "observations": (
        f"session {_COUNT}, arrived {_COUNT}, round {_COUNT}, rounds {_COUNT}, "
        f"epoch {_COUNT}, feedback {_BYTES}, info {{blob}}, played {{blob}}, "
        "PRIMARY KEY (session, arrived)"
    ),
    "snapshots": (
        f"session {_COUNT}, arrived {_COUNT}, state {_BYTES}, seal {_BYTES}, "
        "PRIMARY KEY (session, arrived)"
    ),
    "pending": (
        f"session {_COUNT}, round {_COUNT}, info {{blob}}, decision {{blob}}, "
        "PRIMARY KEY (session, round)"
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
OF_A_SESSION = (*SESSION_TABLES, "rounds")
"""Tables of a store whose rows belong to a session."""


def _statement(db: Database, table: str, columns: str) -> str:
    return f"CREATE TABLE {table} ({columns.format(blob=db.blob, name=db.name)}){db.keyed}"


def make_tables(db: Database, tables: Mapping[str, str]) -> None:
    """These tables, within a transaction."""
    for table, columns in tables.items():
        db.execute(_statement(db, table, columns))


def make_store(db: Database) -> None:
    """The tables of many sessions, within a transaction."""
    make_tables(db, STORE_TABLES)
    for statement in db.append_only("audit"):
        db.execute(statement)
    db.execute("INSERT INTO store VALUES ('format', ?)", (str(FORMAT),))


def require_format(db: Database, where: str | Path, kind: int = STORE_FILE) -> None:
    """Refuse a database that is not of this kind, or is of another format."""
    if isinstance(db, SQLite) and db.rows("PRAGMA application_id") != [(kind,)]:
        what = "a durable session" if kind == SESSION_FILE else "a service with many sessions"
        raise BrokenFile(f"{where} is a file, but not one of {what}. Give another path.")
    if kind == SESSION_FILE:
        found = db.rows("PRAGMA user_version")
    else:
        found = db.rows("SELECT value FROM store WHERE name = 'format'")
    version = int(found[0][0]) if found and str(found[0][0]).isdigit() else -1
    if version != FORMAT:
        error = NewerFormat if version > FORMAT else OlderFormat
        what = f"{where} has format {version}; this tidewolf reads format {FORMAT}"
        raise error(f"{what}. Install the tidewolf that wrote it, or give a new path.")
    if kind == SESSION_FILE:
        there = dict(db.rows("SELECT name, sql FROM sqlite_master WHERE type = 'table'"))
        if any(there.get(one) != _statement(db, one, of) for one, of in SESSION_TABLES.items()):
            raise BrokenFile(f"{where} was changed: it has other tables. Go back to a copy.")


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


_SEAL, _NUMBER = 32, 8
"""The bytes of a checksum, and of a number in a decision."""
_AT_ONCE = 256
"""Rows read at a time, so that no reader holds up the writer."""
_ANY = 2**62
"""More than any number of an observation."""
_SNAPSHOTS = 8
"""States kept for going back, at most."""


def digest(*parts: bytes) -> bytes:
    """The checksum of all parts, end to end."""
    return hashlib.sha256(b"".join(parts)).digest()


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
    info: bytes | None = None
    """the side information of the round"""
    played: bytes | None = None
    """how the round was observed, if it was not simply the next one"""

    def link(self, before: bytes) -> bytes:
        """The link of this observation, after that of the one before."""
        arrived, number, rounds, epoch, feedback, info, played = self
        sizes = f"{-1 if info is None else len(info)} {-1 if played is None else len(played)}"
        numbers = f"{arrived} {number} {rounds} {epoch} {len(feedback)} {sizes}"
        return digest(before, numbers.encode(), feedback, info or b"", played or b"")


class Pending(NamedTuple):
    """A round that is not observed: its side information, and its decision if it waits."""

    round: int
    info: bytes | None
    after: int | None = None
    """the number of the last observation when it was decided; None if it does not wait"""
    x: bytes = b""

    def columns(self, link: bytes) -> tuple[int, bytes | None, bytes | None]:
        """The row of the table; `link` is that of the last observation."""
        info = decision = None
        number = f"{self.round} ".encode()
        if self.info is not None:
            info = digest(link if self.after is None else b"", number, self.info) + self.info
        if self.after is not None:
            packed = self.after.to_bytes(_NUMBER) + self.x
            decision = digest(number, self.info or b"", b" ", packed) + packed
        return self.round, info, decision

    @classmethod
    def of(cls, number: int, info: bytes | None, decision: bytes | None) -> Pending:
        """The same of a row of the table, whose checksums are not looked at."""
        info = None if info is None else info[_SEAL:]
        if decision is None:
            return cls(number, info)
        packed = decision[_SEAL:]
        return cls(number, info, int.from_bytes(packed[:_NUMBER]), packed[_NUMBER:])


class Content(NamedTuple):
    """What opening begins from."""

    head: Head
    state: bytes
    """the last snapshot"""
    link: bytes
    """the link of its observation"""
    left: list[Row]
    """the observations after it"""
    pending: list[Pending]
    """the rounds that are not observed, in order"""


_HEAD, _ROW = ", ".join(Head._fields), ", ".join(Row._fields)
_MOVE_HEAD = (
    f"UPDATE head SET {_HEAD.replace(',', ' = ?,')} = ? WHERE session = ? AND "
    f"{_HEAD.replace(',', ' = ? AND')} = ?"
)
_ADD = "INSERT INTO observations VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_WRITE_CONTENT = (
    "INSERT INTO contents VALUES (?, ?, ?) ON CONFLICT (session, round) DO UPDATE SET content = "
    "excluded.content"
)
_WRITE_PENDING = (
    "INSERT INTO pending VALUES (?, ?, ?, ?) ON CONFLICT (session, round) DO UPDATE SET info = "
    "excluded.info, decision = excluded.decision"
)
_WRITE_SNAPSHOT = (
    "INSERT INTO snapshots VALUES (?, ?, ?, ?) ON CONFLICT (session, arrived) DO UPDATE SET state "
    "= excluded.state, seal = excluded.seal"
)


@final
class Tables:
    """The rows of one session, by its number."""

    def __init__(self, db: Database, session: int = 1) -> None:
        self.db, self._session = db, session

    def _rows(self, rest: str, *values: Any) -> list[Any]:
        return self.db.rows(f"SELECT {rest}", (self._session, *values))

    def _delete(self, table: str, which: str, value: int) -> None:
        sql = f"DELETE FROM {table} WHERE session = ? AND {which} ?"
        self.db.execute(sql, (self._session, value))

    # --- the head ---------------------------------------------------------------------------------

    def begin(self, base: bytes, state: bytes) -> None:
        """Before the first observation, of a learner whose settings have this checksum."""
        before = self.read_head()
        head = Head(0, base, 0, base, 0, before.epoch)
        self.move_head(before, head)
        self.add_snapshot(head, state, 1)

    def read_head(self) -> Head:
        return Head(*self._rows(f"{_HEAD} FROM head WHERE session = ?")[0])

    def move_head(self, before: Head, head: Head) -> bool:
        """The next head in place of this one; whether it was this one."""
        return self.db.execute(_MOVE_HEAD, (*head, self._session, *before)) == 1

    # --- observations -----------------------------------------------------------------------------

    def add(self, row: Row) -> None:
        self.db.execute(_ADD, (self._session, *row))

    def some_rows(self, after: int, last: int) -> list[Row]:
        """The next few observations after number `after`, up to number `last`."""
        which = "session = ? AND arrived > ? AND arrived <= ? ORDER BY arrived LIMIT ?"
        found = self._rows(f"{_ROW} FROM observations WHERE {which}", after, last, _AT_ONCE)
        return [Row(*row) for row in found]

    def rows_after(self, after: int, last: int = _ANY) -> Iterator[Row]:
        """The observations after number `after`, a few at a time."""
        while rows := self.some_rows(after, last):
            yield from rows
            after = rows[-1].arrived

    def late_rows(self) -> list[Row]:
        """The observations of rounds that were not simply the next ones."""
        which = "session = ? AND played IS NOT NULL"
        found = self._rows(f"{_ROW} FROM observations WHERE {which}")
        return [Row(*row)._replace(feedback=b"") for row in found]

    def cut(self, last: int, number: int, pending: Iterable[int]) -> None:
        """Without what came after observation `last`, when round `number` was the next one and
        these waited.
        """
        for table in ("observations", "snapshots"):
            self._delete(table, "arrived >", last)
        self._delete("contents", "round >=", number)
        for one in pending:
            self._delete("contents", "round =", one)

    def forget(self, first: int, contents: int) -> None:
        """Without the observations up to number `first`, the states before it, and what was
        observed of the rounds up to `contents`.
        """
        self._delete("observations", "arrived <=", first)
        self._delete("snapshots", "arrived <", first)
        self._delete("contents", "round <=", contents)

    # --- states -----------------------------------------------------------------------------------

    def add_snapshot(self, head: Head, state: bytes, every: int) -> None:
        """The state after the last observation. Of those before it the one where the history begins
        stays, unless that is the learner's start, and the last few that are `every` observations
        apart, for going back.
        """
        found = self._rows("arrived FROM snapshots WHERE session = ? ORDER BY arrived")
        older, apart = [arrived for (arrived,) in found], [0]
        for arrived in older:
            if head.first < arrived < head.last and arrived >= apart[-1] + every:
                apart.append(arrived)
        for arrived in {*older} - {*apart[1:][-_SNAPSHOTS:], head.first or None}:
            self._delete("snapshots", "arrived =", arrived)
        values = (self._session, head.last, state, digest(head.link, state))
        self.db.execute(_WRITE_SNAPSHOT, values)

    def snapshots(self, head: Head) -> Iterator[tuple[int, bytes, bytes]]:
        """The states that are kept and whole, newest first: after which observation, its link, and
        the state.
        """
        states = self._states()
        links, _, _ = self._followed(head, states)
        for arrived in sorted(states, reverse=True):
            state, seal = states[arrived]
            if arrived in links and digest(links[arrived], state) == seal:
                yield arrived, links[arrived], state

    def _states(self) -> dict[int, tuple[bytes, bytes]]:
        found = self._rows("arrived, state, seal FROM snapshots WHERE session = ?")
        return {arrived: (state, seal) for arrived, state, seal in found}

    # --- rounds that wait, contents, notes --------------------------------------------------------

    def write_pending(
        self, before: Mapping[int, Pending], now: Mapping[int, Pending], link: bytes
    ) -> None:
        """The rounds that wait now, in place of those before."""
        for number in before.keys() - now.keys():
            self._delete("pending", "round =", number)
        for number, one in now.items():
            if before.get(number) is not one:
                self.db.execute(_WRITE_PENDING, (self._session, *one.columns(link)))

    def read_pending(self) -> list[tuple[int, Any, Any]]:
        """The rounds that wait, as they stand there."""
        return self._rows("round, info, decision FROM pending WHERE session = ? ORDER BY round")

    def last_contents(self, most: int) -> dict[int, str | None]:
        """The identities of what was observed of the last rounds; rounds from 0."""
        which = "session = ? ORDER BY round DESC LIMIT ?"
        found = self._rows(f"round, content FROM contents WHERE {which}", most)
        return {number - 1: content for number, content in found[::-1]}

    def content_of(self, number: int) -> str | None:
        """The identity of what was observed of a round; None if it is not known."""
        found = self._rows("content FROM contents WHERE session = ? AND round = ?", number)
        return found[0][0] if found and isinstance(found[0][0], str) else None

    def write_contents(self, contents: Mapping[int, str | None]) -> None:
        for number, content in contents.items():
            self.db.execute(_WRITE_CONTENT, (self._session, number, content))

    def note(self, name: str, value: str) -> None:
        """One more note of this name."""
        ((count,),) = self._rows(
            "count(*) FROM meta WHERE session = ? AND name LIKE ?", f"{name} %"
        )
        values = (self._session, f"{name} {count + 1}", value)
        self.db.execute("INSERT INTO meta VALUES (?, ?, ?) ON CONFLICT DO NOTHING", values)

    # --- all of it --------------------------------------------------------------------------------

    def read_content(self, where: str) -> Content:
        """What opening begins from; refused unless every link and checksum holds."""
        pending = list[Pending]()
        try:
            head, states = self.read_head(), self._states()
            links, left, held = self._followed(head, states)
            held = held and head.snapshot in states
            for arrived, (state, seal) in states.items():
                held = held and arrived in links and digest(links[arrived], state) == seal
            for row in self.read_pending():
                pending.append(Pending.of(*row))
                held = held and pending[-1].columns(head.link) == row and any(row[1:])
        except (TypeError, ValueError, IndexError):  # a row is not there, or is of another type
            held = False
        if not held:
            what = f"{where} is truncated or was changed: its checksums do not match"
            raise BrokenFile(f"{what}. Go back to an earlier copy.")
        return Content(head, states[head.snapshot][0], links[head.snapshot], left, pending)

    def _followed(
        self, head: Head, states: Mapping[int, Any]
    ) -> tuple[dict[int, bytes], list[Row], bool]:
        """The links of the observations with a state, the observations after the last snapshot, and
        whether the links lead to the head.
        """
        count, epoch, link, left = head.first, 0, head.base, list[Row]()
        links, held = {count: link}, 0 <= head.first <= head.snapshot <= head.last
        for row in self.rows_after(-_ANY):
            count, link = count + 1, row.link(link)
            held = held and row.arrived == count and epoch <= row.epoch <= head.epoch
            epoch = row.epoch
            if count in states:
                links[count] = link
            if count > head.snapshot:
                left.append(row)
        return links, left, held and (count, link) == (head.last, head.link)
