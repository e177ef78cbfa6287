"""The tables of a session in its database, and checks of their consistency
(docs/reference/formats.md).

    head            one row: which observations there are, their links, the last snapshot, the epoch
    observations    one row for each, in the order in which they came
    snapshots       states; the last one is what opening begins from
    pending         the rounds that were decided, or told what is known, and are not yet observed
    meta            names and values that no reader depends on
    contents        the identity of what was observed of a round; only once rounds have numbers

Rounds are numbered from 1, as in every file. What is known before a round (`info`) is written
before its decision is answered, to `pending`, under a seal of its own,

    sha256(link of the last observation | round | known) | known,

and moves to `observations` with what is observed. A round that waits for its feedback while later
ones are decided has a `decision` too,

    sha256(round | known | after | x) | after | x,

with the number `after` of the last observation when it was decided, so that what happened can be
done again in the same order; its `info` is then under a seal without a link. `played` says how a
round was met that was not simply the next one: after which observation it was decided, and what was
played in place of the decision. A round that is waited for no more is an observation of 0 rounds.
Tables of other names are ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, final

from tidewolf.core.errors import BrokenFile
from tidewolf.storage.database import Database
from tidewolf.storage.records import SEAL, Content, Decision, Head, Pending, Row, digest

_AT_ONCE = 256
"""Rows read at a time, so that no reader holds up the writer."""
_ANY = 2**62
"""More than any number of an observation."""
_SNAPSHOTS = 8
"""States kept for going back, at most."""
_HEAD = ", ".join(Head._fields)
_SET_HEAD = ", ".join(f"{name} = ?" for name in Head._fields)
_IS_HEAD = " AND ".join(f"{name} = ?" for name in Head._fields)
_ROW = ", ".join(Row._fields)
CONTENTS = "CREATE TABLE contents (round INTEGER PRIMARY KEY, content TEXT)"
"""In a file of one session it is made when the first round is given by its number."""


@final
class Tables:
    """The tables of one session: all there are in its file, or its rows among those of many, where
    every table begins with the number of the session.
    """

    def __init__(self, db: Database, session: int | None = None) -> None:
        self.db, self._alone = db, session is None
        self._id: tuple[int, ...] = () if session is None else (session,)
        self._mine = "0 = 0" if session is None else "session = ?"
        self._key = "" if session is None else "session, "
        self._value = "" if session is None else "?, "
        # what every observation takes, written once
        self._write_head = f"UPDATE head SET {_SET_HEAD} WHERE {self._mine}"
        self._move_head = f"{self._write_head} AND {_IS_HEAD}"
        self._add = f"INSERT INTO observations VALUES ({self._value}?, ?, ?, ?, ?, ?, ?)"
        self._write_contents = (
            f"INSERT INTO contents VALUES ({self._value}?, ?) ON CONFLICT ({self._key}round) "
            "DO UPDATE SET content = excluded.content"
        )

    # --- the head ---------------------------------------------------------------------------------

    def read_head(self) -> Head:
        return Head(*self._found(f"SELECT {_HEAD} FROM head WHERE {self._mine}").fetchone())

    def held_head(self) -> Head:
        """The same, locked against other writers until the transaction ends."""
        sql = f"SELECT {_HEAD} FROM head WHERE {self._mine}{self.db.locking}"
        return Head(*self._found(sql).fetchone())

    def write_head(self, head: Head) -> None:
        self.db.execute(self._write_head, (*head, *self._id))

    def move_head(self, before: Head, head: Head) -> bool:
        """The next head in place of this one; whether it was this one."""
        return self.db.execute(self._move_head, (*head, *self._id, *before)).rowcount == 1

    def _found(self, sql: str, *values: Any) -> Any:
        """What is found of this session, whose number is the first value of every statement."""
        return self.db.execute(sql, (*self._id, *values))

    # --- observations -----------------------------------------------------------------------------

    def add(self, row: Row) -> None:
        self.db.execute(self._add, (*self._id, *row))

    def some_rows(self, after: int, last: int) -> list[Row]:
        """The next few observations after number `after`, up to number `last`."""
        sql = (
            f"SELECT {_ROW} FROM observations WHERE {self._mine} AND arrived > ? AND arrived <= ? "
            "ORDER BY arrived LIMIT ?"
        )
        return [Row(*row) for row in self._found(sql, after, last, _AT_ONCE)]

    def rows_after(self, after: int, last: int) -> Iterator[Row]:
        """The observations after number `after`, a few at a time."""
        while rows := self.some_rows(after, last):
            yield from rows
            after = rows[-1].arrived

    def late_rows(self) -> list[Row]:
        """The observations of rounds that were not simply the next ones."""
        sql = f"SELECT {_ROW} FROM observations WHERE {self._mine} AND played IS NOT NULL"
        return [Row(*row)._replace(feedback=b"") for row in self._found(sql)]

    def cut(self, last: int, number: int, pending: Iterable[int]) -> None:
        """Without what came after observation `last`, when round `number` was the coming one and
        these waited.
        """
        for table in ("observations", "snapshots"):
            self._found(f"DELETE FROM {table} WHERE {self._mine} AND arrived > ?", last)
        if self.has_contents:
            self._found(f"DELETE FROM contents WHERE {self._mine} AND round >= ?", number)
            for one in pending:
                self._found(f"DELETE FROM contents WHERE {self._mine} AND round = ?", one)

    def forget(self, first: int) -> None:
        """Without the observations up to number `first`, and the states before it."""
        self._found(f"DELETE FROM observations WHERE {self._mine} AND arrived <= ?", first)
        self._found(f"DELETE FROM snapshots WHERE {self._mine} AND arrived < ?", first)

    # --- states -----------------------------------------------------------------------------------

    def add_snapshot(self, head: Head, state: bytes, every: int) -> None:
        """The state after the last observation. Of those before it the one where the history begins
        stays, unless that is the learner's start, and the last few that are `every` observations
        apart, for going back.
        """
        sql = f"SELECT arrived FROM snapshots WHERE {self._mine} ORDER BY arrived"
        older = [arrived for (arrived,) in self._found(sql)]
        apart: list[int] = []
        for arrived in older:
            if head.first < arrived < head.last and arrived >= (apart[-1] if apart else 0) + every:
                apart.append(arrived)
        kept = {*apart[-_SNAPSHOTS:], head.first or None}
        for arrived in older:
            if arrived not in kept:
                self._found(f"DELETE FROM snapshots WHERE {self._mine} AND arrived = ?", arrived)
        self._found(
            f"INSERT INTO snapshots VALUES ({self._value}?, ?, ?) ON CONFLICT ({self._key}arrived) "
            "DO UPDATE SET state = excluded.state, seal = excluded.seal",
            head.last,
            state,
            digest(head.link, state),
        )

    def snapshots(self, head: Head) -> Iterator[tuple[int, bytes, bytes]]:
        """The states that are kept and whole, newest first: after which observation, its link, and
        the state.
        """
        states = self._states()
        link, links = head.base, {head.first: head.base}
        for row in self.rows_after(head.first, head.last):
            link = row.link(link)
            if row.arrived in states:
                links[row.arrived] = link
        for arrived in sorted(states, reverse=True):
            state, seal = states[arrived]
            if arrived in links and digest(links[arrived], state) == seal:
                yield arrived, links[arrived], state

    def _states(self) -> dict[int, tuple[bytes, bytes]]:
        sql = f"SELECT arrived, state, seal FROM snapshots WHERE {self._mine}"
        return {row[0]: row[1:] for row in self._found(sql)}

    # --- rounds that wait -------------------------------------------------------------------------

    def write_pending(
        self, before: Mapping[int, Pending], now: Mapping[int, Pending], link: bytes
    ) -> None:
        """The rounds that wait now, in place of those before."""
        for number in before.keys() - now.keys():
            self._found(f"DELETE FROM pending WHERE {self._mine} AND round = ?", number)
        for number, one in now.items():
            if before.get(number) is not one:
                self._found(
                    f"INSERT INTO pending VALUES ({self._value}?, ?, ?) ON CONFLICT "
                    f"({self._key}round) DO UPDATE SET info = excluded.info, "
                    "decision = excluded.decision",
                    *one.columns(link),
                )

    def read_pending(self) -> list[tuple[int, Any, Any]]:
        """The rounds that wait, as they stand there."""
        sql = f"SELECT round, info, decision FROM pending WHERE {self._mine} ORDER BY round"
        return list(self._found(sql).fetchall())

    # --- contents ---------------------------------------------------------------------------------

    @property
    def has_contents(self) -> bool:
        """Whether contents of rounds are kept."""
        if not self._alone:
            return True
        sql = "SELECT count(*) FROM sqlite_master WHERE name = 'contents'"
        return bool(self.db.execute(sql).fetchone()[0])

    def content_of(self, number: int) -> str | None:
        """The identity of what was observed of a round; None where it is not known."""
        if not self.has_contents:
            return None
        sql = f"SELECT content FROM contents WHERE {self._mine} AND round = ?"
        row = self._found(sql, number).fetchone()
        return row[0] if row is not None and isinstance(row[0], str) else None

    def last_contents(self, most: int) -> dict[int, str | None]:
        """What was observed of the last rounds, by its identity; rounds from 0."""
        if not self.has_contents:
            return {}
        sql = f"SELECT round, content FROM contents WHERE {self._mine} ORDER BY round DESC LIMIT ?"
        return {number - 1: content for number, content in self._found(sql, most).fetchall()[::-1]}

    def write_contents(self, contents: Mapping[int, str | None]) -> None:
        if not self.has_contents:
            self.db.execute(CONTENTS)
        for number, content in contents.items():
            self.db.execute(self._write_contents, (*self._id, number, content))

    def forget_contents(self, last: int) -> None:
        """Without what was observed of the rounds up to this one."""
        if self.has_contents:
            self._found(f"DELETE FROM contents WHERE {self._mine} AND round <= ?", last)

    # --- notes ------------------------------------------------------------------------------------

    def note(self, name: str, value: str) -> None:
        """One more note of this name."""
        sql = f"SELECT count(*) FROM meta WHERE {self._mine} AND name LIKE ?"
        (count,) = self._found(sql, f"{name} %").fetchone()
        self._found(
            f"INSERT INTO meta VALUES ({self._value}?, ?) ON CONFLICT ({self._key}name) "
            "DO UPDATE SET value = excluded.value",
            f"{name} {count + 1}",
            value,
        )

    # --- all of it --------------------------------------------------------------------------------

    def read_content(self, where: str) -> Content:
        """What opening begins from; refused unless every link holds."""
        try:
            head = self.read_head()
            content, held = self._followed(head)
        except (TypeError, ValueError):  # a row is not there, or is of another type
            held = False
        if not held:
            raise BrokenFile(
                f"{where} is truncated or was changed: its checksums do not match. Go back to an "
                "earlier copy."
            )
        return content._replace(pending=self._pending(where, head.link))

    def _followed(self, head: Head) -> tuple[Content, bool]:
        """What opening begins from, and whether every link and seal holds."""
        states = self._states()
        count, epoch, left, links = head.first, 0, [], {head.first: head.base}
        link, held = head.base, 0 <= head.first <= head.snapshot <= head.last
        for row in self._all_rows():
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

    def _all_rows(self) -> Iterator[Row]:
        if not self._alone:  # PostgreSQL would send all of them at once
            return self.rows_after(-_ANY, _ANY)
        sql = f"SELECT {_ROW} FROM observations WHERE {self._mine} ORDER BY arrived"
        return (Row(*row) for row in self._found(sql))

    def _pending(self, where: str, link: bytes) -> tuple[Pending, ...]:
        """The rounds that are not observed; refused where what was known of one, or its decision,
        was changed.
        """
        found = []
        for number, info, decision in self.read_pending():
            try:
                one = Pending(
                    number,
                    None if info is None else info[SEAL:],
                    None if decision is None else Decision.of(decision[SEAL:]),
                )
                whole = one.columns(link) == (number, info, decision)
            except TypeError:  # a value of another type
                whole = False
            if not whole or info is decision is None:
                raise BrokenFile(
                    f"{where} was changed: what was known or decided of a round does not match its "
                    "checksum. Go back to an earlier copy."
                )
            found.append(one)
        return tuple(found)
