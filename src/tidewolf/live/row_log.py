"""Which rows were taken, and what was answered: tables of their own in the database of the session.

    live_rows       round, time, content, cost, violation     noted before the row is observed
    live_coming     round, known                              noted before the round is decided
    live_answers    round, answer                             noted with the row after it
    live_demands    volumes                                   what limits and costs are measured by

Rounds count from 1. A note is written to the same write-ahead log as the session's commit after it,
and is flushed with that: a row that is observed is noted, whatever happens between. A note of a
round that is not observed is of a row that was never taken, and the next one overwrites it. The
last answer is not noted: the session has all it is made of.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tidewolf.core.errors import CheckpointError, OtherSettings
from tidewolf.live.clock import WINDOW, Time

_TABLES = (
    "live_rows (round INTEGER PRIMARY KEY, time, said, content TEXT NOT NULL, cost REAL, "
    "violation REAL, demands TEXT)",
    "live_coming (round INTEGER PRIMARY KEY, known TEXT NOT NULL)",
    "live_answers (round INTEGER PRIMARY KEY, answer BLOB NOT NULL)",
    "live_demands (volumes TEXT NOT NULL)",
)


class Taken(NamedTuple):
    """A row that was taken."""

    round: int
    """from 1"""
    time: Time | None
    content: str
    """the identity of what it said"""
    cost: float | None = None
    """what was played cost in that round"""
    violation: float | None = None
    demands: list[float] | None = None
    """what commodities sent, as far as a row said so"""


class NextRound(NamedTuple):
    """What the coming round is decided on."""

    info: dict[str, Any]
    """as a session is told it, as plain data"""
    time: Time | None = None
    """when it is, where a line said so"""


class RowLog:
    """The notes in a database."""

    def __init__(self, path: Path, rounds: int, *, read_only: bool = False) -> None:
        """Those of a session with so many rounds observed."""
        self.path = path
        self._db: sqlite3.Connection | None = sqlite3.connect(
            f"{path.resolve().as_uri()}?mode={'ro' if read_only else 'rw'}",
            uri=True,
            isolation_level=None,
        )
        self._is_empty = False
        self._rounds_at: dict[Any, int] | None = None
        """the rounds of rows by their times, once a row was asked for by its time"""
        try:
            if read_only:
                query = "SELECT count(*) FROM sqlite_master WHERE name LIKE 'live!_%' ESCAPE '!'"
                self._is_empty = self._read(query) == [(0,)]
                return
            # a commit is flushed by the session's next one, a checkpoint of the log by itself
            self._db.execute("PRAGMA synchronous = NORMAL")
            with self._db:
                self._db.execute("BEGIN IMMEDIATE")
                for table in _TABLES:
                    self._db.execute(f"CREATE TABLE IF NOT EXISTS {table}")
                self._db.execute("DELETE FROM live_rows WHERE round > ?", (rounds,))
                self._db.execute("DELETE FROM live_answers WHERE round >= ?", (rounds,))
        except sqlite3.Error as error:
            self.close()
            raise self._sentence(error) from None
        except CheckpointError:  # it may not be read in place; the session has a copy of its own
            self.close()

    def note(self, row: Taken, upcoming: NextRound | None, answer: str | None) -> None:
        """A row that is about to be observed, what is known of the round after it, and the answer
        to the row before it.
        """
        time, said = (None, None) if row.time is None else row.time
        demands = None if row.demands is None else json.dumps(row.demands)
        columns = (row.round, time, said, row.content, row.cost, row.violation, demands)
        with self._writing() as db:
            db.execute("INSERT OR REPLACE INTO live_rows VALUES (?, ?, ?, ?, ?, ?, ?)", columns)
            if answer is not None:
                packed = zlib.compress(answer.encode(), 1)
                values = (row.round - 1, packed)
                db.execute("INSERT OR REPLACE INTO live_answers VALUES (?, ?)", values)
            if upcoming is not None:
                self._write_upcoming(db, row.round + 1, upcoming)
        if self._rounds_at is not None and time is not None:
            self._rounds_at[time] = row.round

    def require_demands(self, volumes: Sequence[float]) -> None:
        """Refuse static demands that are not those the rows were taken under: what was learned is
        measured by them.
        """
        now = json.dumps([float(volume) for volume in volumes])
        found = self._read("SELECT volumes FROM live_demands")
        if not found:
            with self._writing() as db:
                db.execute("INSERT INTO live_demands VALUES (?)", (now,))
        elif found[0][0] != now:
            before = ", ".join(f"{volume:g}" for volume in json.loads(found[0][0]))
            raise OtherSettings(
                f"{self.path} was begun with a demand of {before}, and the file says "
                f"{', '.join(f'{volume:g}' for volume in volumes)}: costs and limits that were "
                "learned are measured by it. Put it back, or begin another database."
            )

    def note_upcoming(self, round: int, upcoming: NextRound) -> None:
        """What the round is about to be decided on."""
        with self._writing() as db:
            self._write_upcoming(db, round, upcoming)

    def _write_upcoming(self, db: sqlite3.Connection, round: int, upcoming: NextRound) -> None:
        text = json.dumps(upcoming, allow_nan=False)
        db.execute("INSERT OR REPLACE INTO live_coming VALUES (?, ?)", (round, text))
        db.execute("DELETE FROM live_coming WHERE round < ?", (round - 1,))

    def next_round(self, round: int) -> NextRound | None:
        """What this round was decided on; None where nothing was noted of it."""
        found = self._read("SELECT known FROM live_coming WHERE round = ?", round)
        if not found:
            return None
        info, time = json.loads(found[0][0])
        return NextRound(info, None if time is None else Time(*time))

    def row(self, round: int) -> Taken | None:
        """The row of a round; None where it was not noted."""
        found = self._read("SELECT * FROM live_rows WHERE round = ?", round)
        return _taken(found[0]) if found else None

    def row_at(self, time: Time) -> Taken | None:
        """The row of a time; None where there is none."""
        if self._rounds_at is None:
            query = "SELECT time, round FROM live_rows WHERE time IS NOT NULL"
            self._rounds_at = dict(self._read(query))
        number = self._rounds_at.get(time.stamp)
        found = None if number is None else self.row(number)
        is_it = found is not None and found.time is not None and found.time.stamp == time.stamp
        return found if is_it else None

    def answer(self, round: int) -> str | None:
        """What was answered to the row of this round; None where it was not noted."""
        found = self._read("SELECT answer FROM live_answers WHERE round = ?", round)
        return zlib.decompress(found[0][0]).decode() if found else None

    def last_times(self, rounds: int) -> list[Time]:
        """Those of the last rows, up to this round, that have one: in order, as many as the next is
        expected from.
        """
        found = self._read(
            "SELECT time, said FROM live_rows WHERE time IS NOT NULL AND round <= ? "
            "ORDER BY round DESC LIMIT ?",
            rounds,
            WINDOW + 1,
        )
        return [Time(*one) for one in reversed(found)]

    def close(self) -> None:
        """Let go of the file; twice does no harm."""
        if self._db is not None:
            self._db.close()
        self._db = None

    def _read(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        if self._db is None or self._is_empty:
            return []
        try:
            return self._db.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise self._sentence(error) from None

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction."""
        assert self._db is not None
        try:
            with self._db:
                self._db.execute("BEGIN IMMEDIATE")
                yield self._db
        except sqlite3.Error as error:
            raise self._sentence(error) from None

    def _sentence(self, error: sqlite3.Error) -> CheckpointError:
        return CheckpointError(
            f"The rows in {self.path} cannot be read or noted: {error}. Mend that and send the row "
            "again."
        )


def _taken(columns: tuple[Any, ...]) -> Taken:
    round, time, said, content, cost, violation, demands = columns
    return Taken(
        round,
        None if time is None else Time(time, said),
        content,
        cost,
        violation,
        None if demands is None else json.loads(demands),
    )
