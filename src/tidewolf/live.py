"""`tidewolf live`: read rows one by one, and answer each with the decision of the next round.

    row 1 -> decision of round 2;   row 2 -> decision of round 3;   ...

A decision is made before its row is known. The answer to a row is the decision of the next round.
After a kill the same command resumes with the answers that it would have given without the kill.

write the row  ->  observe it (from here on it is kept)  ->  decide the next round  ->  answer

A refused line changes nothing. The same row twice, by its time or its number, gets the same answer
and is learned from once. The same time with other values is refused. What comes after a kill is
what would have come without it.

If the learner uses the time of a round, it receives the time at which the next row is expected: a
decision knows nothing of its own row, not even its time.

    live_rows       round, time, row        the rows that were taken, each as packed JSON

The table stands in the database of the session; row 0 stands for the time before the first row. A
row is written to the same write-ahead log as the session's commit after it, and is flushed with
that: a row that is observed is written, whatever happens between. A row of a round that is not
observed was never taken, and is overwritten. The answer to a row is written with the next row: the
session has everything that the last answer is made of.

A line of JSON is a row, or information about the next round:

    {"time": "2026-03-01T12:00", "costs": {"SEA > DEN": 1.2, ...}, "capacities": {...},
     "played": {...}, "unavailable": ["DEN > NYC"]}

A row holds the costs, capacities, demands, weights and budget of a round, by name or as a list,
`spend` with such numbers for each budget of the experiment by its name, and
`played`, if that was not the decision. `unavailable`, `context` and `advice` belong to the round
after the row. A line that has only these, and perhaps a `time`, is about the next round, which is
then decided again. `time` or `round` identifies the row.

The next row is expected at the last time plus the median of the last few differences, so that one
missing row shifts nothing.

`Follower` takes rows from tables that grow on disk. A row counts once every table has it, or a
later one; a line of a CSV file counts once its end is there. A table may be rewritten in place, and
if its rows have times, it may lose its first rows, such as one of the last day. Past rows that are
there must stay as they were: a table whose last rows are gone, or whose past rows changed, is
refused by name and line. A table that cannot be read, or is shorter, is read again a few times
first, because it may be in the middle of a write.
"""

import json
import math
import sqlite3
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from datetime import datetime, timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median_low
from typing import Any, NamedTuple, NoReturn, final

import numpy as np

from tidewolf.core import round_info, types
from tidewolf.core.arguments import as_kind, as_path, nearest_names, shown
from tidewolf.core.errors import (
    CheckpointError,
    InvalidInput,
    OtherSettings,
    TidewolfError,
    refuse,
    require,
)
from tidewolf.core.values import identity
from tidewolf.experiments import Choice, building
from tidewolf.experiments.experiment import DEFAULT_LEARNERS, USUAL
from tidewolf.experts import Categories, Context, Resolve, Season
from tidewolf.files import FileFormat, Table, file_of, read_table
from tidewolf.files.reading import PLAIN, clock_text, read_cells
from tidewolf.files.table import align, table_of
from tidewolf.methods import base, capabilities
from tidewolf.networks.network import routes_of
from tidewolf.session import Session
from tidewolf.sets import MultiFlow
from tidewolf.storage.database import SQLite, explained

__all__ = ["Follower", "Line", "LiveRunner", "live_learner", "parse"]

NUMBERS = ("costs", "capacities", "demands", "weights", "budgets", "spend")
INFO = ("unavailable", "context", "advice")
KEYS = ("time", "round", *NUMBERS, "played", *INFO)
# Bytes of a line, at most.
LONGEST = 1 << 26
# Differences that the next time is computed from.
WINDOW = 9
# Whole numbers in a database are smaller.
_LARGEST = 2**63
_EXAMPLE = '{"costs": {"SEA > DEN": 1.2}}'


class Time(NamedTuple):
    # seconds since 1970 for a date, else the number itself; whole numbers keep every digit
    stamp: int | float
    given: str | int | float

    def plus(self, seconds: float) -> "Time":
        """A later time, written in the same style."""
        if not isinstance(self.given, str):
            return time_of(self.stamp + seconds)
        text = self.given.strip()
        date = datetime.fromisoformat(text) + timedelta(seconds=seconds)
        if len(text) == len("2026-03-01") and date == datetime(*date.timetuple()[:3]):
            return time_of(date.date().isoformat())
        is_short = date.second == date.microsecond == 0 and text[16:17] != ":"
        later = date.isoformat(" " if " " in text else "T", "minutes" if is_short else "auto")
        return time_of(later.replace("+00:00", "Z") if text.endswith("Z") else later)


def time_of(given: Any) -> Time:
    if isinstance(given, int) and not isinstance(given, bool) and abs(given) < _LARGEST:
        return Time(given, given)
    seconds = round_info.as_time(given, "The time of a row")
    stamp = int(seconds) if seconds == int(seconds) and abs(seconds) < _LARGEST else seconds
    return Time(stamp, given if isinstance(given, str) else stamp)


def expected(times: Sequence[Time]) -> Time | None:
    if len(times) < 2:
        return None
    last = times[-WINDOW - 1 :]
    return last[-1].plus(median_low([new.stamp - old.stamp for old, new in pairwise(last)]))


class Line(NamedTuple):
    """The content of a line.

    Parameters
    ----------
    time : Time, optional
        The time of the round.
    round : int, optional
        The number of the round, from 1.
    numbers : mapping
        Costs, capacities and so on, by key; empty if the line is not a row.
    played : mapping or list, optional
        The point that was played, if it was not the decision.
    info : mapping
        Information about the next round: `unavailable`, `context`, `advice`.

    Examples
    --------
    >>> from tidewolf.live import parse
    >>> line = parse('{"time": "2026-03-01T12:00", "costs": [1.0, 2.0]}')
    >>> line.is_row, line.numbers
    (True, {'costs': [1.0, 2.0]})
    """

    time: Time | None = None
    round: int | None = None
    numbers: Mapping[str, Any] = {}
    played: Any = None
    info: Mapping[str, Any] = {}

    @property
    def is_row(self) -> bool:
        return bool(self.numbers) or self.played is not None


def parse(text: str | bytes) -> Line:
    """The content of a line of JSON.

    Parameters
    ----------
    text : str or bytes
        The line, in UTF-8.

    Returns
    -------
    Line
        A row, or information about the next round.

    Raises
    ------
    InvalidInput
        If the line is not a JSON object, or has an unknown key.

    Examples
    --------
    >>> from tidewolf.live import parse
    >>> parse('{"unavailable": ["DEN > NYC"]}').info
    {'unavailable': ['DEN > NYC']}
    """
    refuse(len(text) > LONGEST, f"A row has at most {LONGEST:,} bytes; this line has more.")
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8-sig")
        found = json.loads(text, parse_constant=_refuse, object_pairs_hook=_unique)
        if not isinstance(found, dict) or all(value is None for value in found.values()):
            raise ValueError("it is no object, or empty")
    except (ValueError, RecursionError) as error:  # of json, of UTF-8, of too many digits
        raise InvalidInput(f"Expected a row such as {_EXAMPLE}, not this line: {error}.") from None
    if "budget" in found:
        found.setdefault("budgets", found.pop("budget"))
    for key in found.keys() - {*KEYS}:
        near = nearest_names(key, KEYS) or f"a row has {', '.join(KEYS)}"
        raise InvalidInput(f"A row has no {key!r}: {near}.")
    given = {key: value for key, value in found.items() if value is not None}
    number = given.get("round")
    if number is not None and (type(number) is not int or number < 1):
        raise InvalidInput(f"The round of a row is its number, from 1, not {shown(number)}.")
    return Line(
        time=time_of(given["time"]) if "time" in given else None,
        round=number,
        numbers={key: given[key] for key in NUMBERS if key in given},
        played=given.get("played"),
        info={key: given[key] for key in INFO if key in given},
    )


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a finite number")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("it has a key twice")
    return found


# --- tables that grow -----------------------------------------------------------------------------


@final
class Follower:
    """Tables that grow, read together.

    Parameters
    ----------
    tables : mapping of path
        The tables by the keys of a row, such as costs.
    format : FileFormat
        How text is written in them.
    gaps : str, default "refuse"
        What is done about cells without a number, and rows that one table lacks: "refuse" them,
        take the "last" number of the column, or mark them as "unseen".

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from tidewolf.live import Follower
    >>> path = pathlib.Path(tempfile.mkdtemp(), "costs.csv")
    >>> _ = path.write_text("time,a,b\\n1,5,6\\n2,7,")
    >>> follower = Follower({"costs": path})
    >>> [line.numbers for place, line in follower.poll()]
    [{'costs': {'a': 5.0, 'b': 6.0}}]
    >>> _ = path.write_text("time,a,b\\n1,5,6\\n2,7,8\\n")
    >>> [line.numbers for place, line in follower.poll()]
    [{'costs': {'a': 7.0, 'b': 8.0}}]
    """

    def __init__(
        self, tables: Mapping[str, Path], format: FileFormat = PLAIN, gaps: str = "refuse"
    ) -> None:
        require(
            tables, InvalidInput, "There is no table to follow: the file's [stream] names none."
        )
        self._paths, self._format, self._gaps = dict(tables), format, gaps
        self._tables: dict[str, Table] = {}
        # what differs after one of the files was written to
        self._changed: list[tuple[int, int, int]] | None = None
        self._given = self._failures = 0
        self._last: Any = None  # the time of the last row that was given

    def poll(self) -> list[tuple[str, Line | None]]:
        """The rows that are new in all tables.

        Returns
        -------
        list of tuple
            Where each stands in the first table, and its content, None if a number is missing; in
            order, each once.

        Raises
        ------
        InvalidInput
            If a cell is not a number, a past row changed, or times differ between tables.
        """
        try:
            stats = [file_of(path).stat() for path in self._paths.values()]
            changed = [(one.st_ino, one.st_size, one.st_mtime_ns) for one in stats]
            if changed == self._changed:
                return []
            read = {name: self._read(path) for name, path in self._paths.items()}
            tables = {name: table for name, table in read.items() if table is not None}
            for name, before in self._tables.items():
                _require_unchanged(before, read[name])
            rows = self._rows(tables) if len(tables) == len(read) else []
        except (OSError, TidewolfError) as error:
            # How often a table that is shorter, or cannot be read, is read again.
            if self._changed is not None and self._failures < 3:
                self._failures += 1
                return []
            if isinstance(error, OSError):
                raise InvalidInput(f"{error.filename} cannot be read: {error.strerror}.") from None
            raise
        self._tables, self._changed, self._failures = tables, changed, 0
        self._given += len(rows)
        return rows

    def _read(self, path: Path) -> Table | None:
        if not path.name.lower().endswith((".csv", ".tsv")):
            return read_table(path, gaps=True, format=self._format)
        cells = read_cells(path, self._format, growing=True)
        return table_of(cells, gaps=True) if len(cells.lines) else None

    def _rows(self, tables: dict[str, Table]) -> list[tuple[str, Line | None]]:
        times = [table.times for table in tables.values() if table.times is not None]
        if len(times) == len(tables) and len({one.dtype.kind for one in times}) == 1:
            end = min(one[-1] for one in times)
            lengths = [int(np.searchsorted(one, end, "right")) for one in times]
        else:
            lengths = [min(len(table.values) for table in tables.values())] * len(tables)
        cut = {
            name: table._replace(
                times=None if table.times is None else table.times[:length],
                values=table.values[:length],
                places=table.places[:length],
            )
            for (name, table), length in zip(tables.items(), lengths, strict=True)
        }
        aligned, found = align(cut, self._gaps), list[tuple[str, Line | None]]()
        first = next(iter(aligned.tables.values()))
        start = self._given
        if first.times is not None:  # the first rows may be gone
            known = self._last is not None
            start = int(np.searchsorted(first.times, self._last, "right")) if known else 0
            self._last = first.times[-1] if len(first.times) else self._last
        for i in range(start, len(first.values)):
            numbers: dict[str, Any] = {}
            for name, table in aligned.tables.items():  # of budgets: "spend usd"
                key, _, budget = name.partition(" ")
                row = dict(zip(table.columns, table.values[i].tolist(), strict=True))
                numbers |= {key: {**numbers.get(key, {}), budget: row} if budget else row}
            line = Line(numbers=numbers, round=i + 1)
            if first.times is not None:
                stamp = first.times[i]
                is_date = isinstance(stamp, np.datetime64)
                line = Line(time_of(clock_text(stamp) if is_date else stamp.item()), None, numbers)
            seen = aligned.seen is None or aligned.seen[i]
            found.append((first.places[i], line if seen else None))
        return found


def _require_unchanged(before: Table, now: Table | None) -> None:
    rows, lost = len(before.values), True
    places, same = np.arange(rows), np.ones(rows, dtype=bool)
    if now is not None and now.columns == before.columns and len(now.values):
        if now.times is None or before.times is None:
            lost = len(now.values) < rows or now.times is not before.times
        elif now.times.dtype.kind == before.times.dtype.kind:
            lost = bool(now.times[-1] < before.times[-1])
            past = now.times[now.times <= before.times[-1]]
            places = np.searchsorted(before.times, past)
            same = before.times[places] == past
    if lost or now is None:
        raise InvalidInput(
            f"{before.file} lost its last rows, or has other columns: {rows:,} of its rows were "
            "taken. Put them back, and only add rows."
        )
    values, was = now.values[: len(places)], before.values[places]
    same &= ((values == was) | (np.isnan(values) & np.isnan(was))).all(axis=1)
    for i in np.flatnonzero(~same)[:1].tolist():
        raise InvalidInput(f"{now.places[i]} was changed after it was taken. Put it back.")


# --- the runner -----------------------------------------------------------------------------------


def follows_clock(learner: base.Learner[Any]) -> bool:
    return any(one.seconds is not None for one in learner.fields().get("budgets") or ()) or any(
        (
            isinstance(one, Resolve)
            and isinstance(one.data, str)
            and one.data not in ("last", "forecast")
        )
        or (isinstance(one, Season) and one.seconds is not None)
        or (isinstance(one, Context) and not isinstance(one, Season | Categories))
        for one in learner.fields().get("experts") or ()
    )


def given_demands(
    reader: building.RoundReader, row: Mapping[str, Any], before: list[float] | None
) -> list[float] | None:
    sent = reader.demands(row)
    return before if sent is None else sent[0].tolist()


def with_last(numbers: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers of a row; those that it lacks, or that are null, are the last ones."""

    def filled(now: Any, last: Any) -> Any:
        if isinstance(now, Mapping) and isinstance(last, Mapping):
            return {**last, **{name: at for name, at in now.items() if at is not None}}
        if isinstance(now, list) and isinstance(last, list) and len(now) == len(last):
            return [filled(*each) for each in zip(now, last, strict=True)]
        return last if now is None else now

    return {key: filled(numbers.get(key), before.get(key)) for key in {**before, **numbers}}


def paths_of(
    reader: building.RoundReader, x: types.Array, demands: Sequence[float] | None
) -> list[dict[str, Any]] | None:
    """The paths of a flow, heaviest first, with volumes of these demands; None if the decision is
    none. They have a commodity if there may be several.
    """
    K, network = reader.K, reader.network
    routes = routes_of(K, network, x, None if demands is None else np.array(demands))
    several = isinstance(K, MultiFlow) if network is None else len(network.demands) > 1
    if routes is None:
        return None
    return [
        {"path": one.name}
        | ({"commodity": one.commodity} if several else {})
        | {"share": one.share, "volume": one.volume}
        for one in routes
    ]


def live_learner(reader: building.RoundReader) -> base.Learner[Any]:
    """The learner of a live session: it has no horizon, unless it sets one itself.

    Parameters
    ----------
    reader : RoundReader
        The experiment, and its set.

    Returns
    -------
    Learner
        The first that the experiment names, at its first value of caution; else Ensemble, which
        re-solves with the last round, too.

    Examples
    --------
    >>> from tidewolf.experiments.building import RoundReader
    >>> from tidewolf.live import live_learner
    >>> tables = tw.experiments.Tables("costs.csv")
    >>> simplex = tw.experiments.Choice.of("Simplex", {"n": 2})
    >>> reader = RoundReader(tw.experiments.Experiment("two", tables, simplex))
    >>> live_learner(reader).advisers[0].data
    'last'
    """
    experiment = reader.experiment
    names_none = experiment.learners == tuple(map(Choice, DEFAULT_LEARNERS))
    entrant = USUAL if names_none else experiment.entrants()[0]
    budgets = tuple(budget for budget, _ in experiment.budgets)
    defaults: dict[str, Any] = {"seed": experiment.seeds[0], "budgets": budgets}
    if names_none and experiment.cautions:
        defaults["caution"] = experiment.cautions[0]
    place = experiment.place(*(() if names_none else ("learners", 0)))
    read = partial(building.read_point, reader.names)
    return building.make_learner(entrant, reader.K, reader.network, place, read, defaults)


class Row(NamedTuple):
    round: int
    time: Time | None = None
    # the identity of its numbers and information
    content: str = ""
    cost: float | None = None
    violation: float | None = None
    # the last demands that a row gave; before the first, those of the network
    demands: list[float] | None = None
    # the arguments of `Session.play` for the next round, as plain data
    info: Mapping[str, Any] = {}
    # the time of the next round, if a line gave it
    announced: Time | None = None
    answer: str | None = None
    # the numbers of the round, if those that a later row lacks are filled with the last ones
    numbers: Mapping[str, Any] = {}


@final
class LiveRunner(AbstractContextManager["LiveRunner"]):
    """A durable session that takes rows and answers with decisions.

    Parameters
    ----------
    reader : RoundReader
        Makes the functions of a round from its numbers.
    learner : Learner
        Makes the decisions.
    database : str or path
        The file of the session; it is created if it does not exist.
    read_only : bool, default False
        Whether to take no rows, such as while another process does.

    Raises
    ------
    InUse
        If another process takes rows for the same file.
    OtherSettings
        If the file was written by a learner with other settings.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> from tidewolf.experiments.building import RoundReader
    >>> from tidewolf.live import LiveRunner, live_learner, parse
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "two.toml").write_text(
    ...     '[set]\\nkind = "Simplex"\\nn = 2\\n[stream]\\ncosts = "costs.csv"\\n'
    ... )
    >>> reader = RoundReader(tw.experiments.load(folder / "two.toml"))
    >>> with LiveRunner(reader, live_learner(reader), folder / "two.db") as runner:
    ...     json.loads(runner.answer())["decision"]
    ...     answer = json.loads(runner.take(parse('{"costs": [1.0, 0.0]}')))
    {'entry 0': 0.5, 'entry 1': 0.5}
    >>> answer["round"], answer["cost"], answer["decision"]["entry 1"] > 0.5
    (2, 0.5, True)
    """

    def __init__(
        self,
        reader: building.RoundReader,
        learner: base.Learner[Any],
        database: str | Path,
        *,
        read_only: bool = False,
    ) -> None:
        self.reader, self.learner, self._read_only = reader, learner, read_only
        self._by_clock = follows_clock(learner)
        self._fills = getattr(reader.experiment.stream, "gaps", "") == "last"
        path = as_path(database, "The database").resolve()
        if read_only and not path.exists():
            self.session: Session[Any] = Session(learner)
        else:
            self.session = Session.open(path, learner, read_only=read_only)
        with ExitStack() as opened:
            opened.callback(self.session.close)
            self._log = RowLog(path, self.rounds, read_only)
            opened.callback(self._log.close)
            self._resume(path)
            self._opened = opened.pop_all()

    def _resume(self, path: Path) -> None:
        network, log = self.reader.network, self._log
        volumes = None if network is None else [float(one) for one in network.volumes]
        rows = log.read(0, self.rounds)
        if 0 in rows and rows[0].demands != volumes:
            raise OtherSettings(
                f"{path} was begun with the demands {rows[0].demands}, not {volumes}: put them "
                "back, or begin another database."
            )
        if not rows and not self._read_only:
            log.write(Row(0, demands=volumes))
        last = "time IS NOT NULL ORDER BY round DESC LIMIT ?"
        self._times = [row.time for row in log.rows(last, WINDOW + 1)[::-1] if row.time is not None]
        self._text: str | None = None
        self._last = rows.get(self.rounds) or Row(self.rounds, demands=volumes)
        if self._last.info and not self._read_only:  # a reader finds the decision in the file
            self._decide(self._last.info)

    @property
    def rounds(self) -> int:
        return self.session.rounds

    def answer(self) -> str:
        """The decision of the next round.

        Returns
        -------
        str
            A line of JSON: the `round` (from 1), the `decision` by name, `paths` if it is a flow,
            how far it `moved`, `why`, and the `cost` and `violation` of the round before it;
            `after` is the time of the last row and `time` that of the round, if they are known.
        """
        if self._text is None:
            self._text = json.dumps(self._next_decision(), ensure_ascii=False, allow_nan=False)
        return self._text

    def _next_decision(self) -> dict[str, Any]:
        x, row = self.session.play(), self._last
        why = self.session.explain(names=self.reader.names)
        time = row.announced or expected(self._times)
        paths = paths_of(self.reader, x, row.demands)
        return {
            "round": self.session.round + 1,
            **({} if time is None else {"time": time.given}),
            **({"after": self._times[-1].given} if self._times else {}),
            "decision": self.reader.named(x),
            **({} if paths is None else {"paths": paths}),
            "moved": why.moved,
            "why": why.in_short(),
            "cost": row.cost,
            "violation": row.violation,
        }

    def take(self, line: Line) -> str:
        """Take a row, or information about the next round. Returns the decision that follows, as
        `answer` has it; for a row that was taken before, the answer that was given then.

        Raises
        ------
        InvalidInput
            If the row cannot be used, or was taken before with other values; nothing has changed
            then.
        CheckpointError
            If it could not be kept.
        """
        refuse(self._read_only, "The database was opened read-only: it takes no rows.")
        if not line.is_row:
            return self._announce(line)
        number = self._number(line)
        numbers = line.numbers
        if self._fills:
            numbers = with_last(numbers, self._log.read(number - 1).get(number - 1, Row(0)).numbers)
        losses, limits = self.reader.functions(numbers, "The row")
        spend = self.reader.spend(numbers, "The row") or None
        what = "What was played"
        played = None if line.played is None else self.reader.point(line.played, what)
        info = self._checked(line.info)
        told = json.dumps(info, sort_keys=True), *sorted((spend or {}).items())
        content = identity((losses, limits, played, *told))
        if number <= self.rounds:
            found = self._log.read(number).get(number)
            if found is None or found.content != content:
                raise InvalidInput(f"Round {number} was observed already, with other values.")
            return self.answer() if number == self.rounds or not found.answer else found.answer
        if not (line.time is not None or not self._by_clock):
            raise InvalidInput("The row has no time, and the learner needs it: give the time.")
        x = self.session.play() if played is None else played
        times = self._times if line.time is None else [*self._times, line.time][-WINDOW - 1 :]
        cost, violation = (
            max(value + 0.0, least) if math.isfinite(value) else None
            for batch, least in ((losses, -math.inf), (limits, 0.0))
            for value in [float(batch.values(x)[0])]
        )
        demands = given_demands(self.reader, numbers, self._last.demands)
        info = self._with_time(info, expected(times))
        row = Row(
            *(number, line.time, content, cost, violation, demands, info),
            numbers=numbers if self._fills else {},
        )
        self._log.write(self._last._replace(answer=self.answer()), row)
        self.session.observe(loss=losses, constraint=limits, played=played, spend=spend)
        self._times, self._last, self._text = times, row, None
        if row.info:
            self._decide(row.info)
        return self.answer()

    def close(self) -> None:
        self._opened.close()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _number(self, line: Line) -> int:
        upcoming, last = self.rounds + 1, self._times[-1] if self._times else None
        number, time = line.round, line.time
        is_new = time is None or last is None or time.stamp > last.stamp
        if number is None and (time is not None or last is None):
            old = () if is_new or time is None else self._log.rows("time = ?", time.stamp)
            number = next((row.round for row in old), upcoming)
        if number == upcoming and is_new:
            return upcoming
        if number is not None and number < upcoming:
            was = self._log.read(number).get(number, Row(number)).time
            if time is None or was is None or time.stamp == was.stamp:
                return number
        at = "neither a time nor a round" if time is None else f"the time {time.given}"
        at = at if line.round is None else f"round {line.round} and {at}"
        after = "" if last is None else f", after the time {last.given}"
        raise InvalidInput(f"The row has {at}, and round {upcoming} is the next{after}.")

    # --- information about the next round ---------------------------------------------------------

    def _announce(self, line: Line) -> str:
        upcoming, last = self.rounds + 1, self._times[-1] if self._times else None
        is_early = line.time is not None and last is not None and line.time.stamp <= last.stamp
        if line.round not in (None, upcoming) or is_early:
            at = f"round {line.round}" if line.time is None else f"the time {line.time.given}"
            raise InvalidInput(f"A line without costs is of the next round, {upcoming}, not {at}.")
        before, time = self._last, line.time or self._last.announced
        info = self._with_time(self._checked(line.info), time or expected(self._times))
        row = before._replace(info=info, announced=time)
        self._log.write(row)
        if info != before.info:
            self._decide(info)
        self._last, self._text = row, None
        return self.answer()

    def _decide(self, info: Mapping[str, Any]) -> None:
        with suppress(InvalidInput):  # it was decided on something else
            if info:
                self.session.play(**info)
                return
        self.session.rollback(self.session.round)
        self.session.play(**info)

    def _with_time(self, info: dict[str, Any], time: Time | None) -> dict[str, Any]:
        return info if not self._by_clock or time is None else {**info, "time": time.given}

    def _checked(self, given: Mapping[str, Any]) -> dict[str, Any]:
        info = dict(given)
        if "unavailable" in info:
            info["unavailable"] = self.reader.unavailable(info["unavailable"])
        if "advice" in info:
            as_kind(info["advice"], Mapping, "Advice is points by name", InvalidInput)
            info["advice"] = {
                name: self.reader.point(point, f"The advice {name!r}").tolist()
                for name, point in info["advice"].items()
            }
        info = {key: value for key, value in info.items() if value != []}
        if info:
            given_info = round_info.RoundInfo(**info)
            self.learner.act(capabilities.with_info(self.learner, self.session.state, given_info))
        return info


@final
class RowLog:
    """The rows in the database of a session with so many rounds observed."""

    def __init__(self, path: Path, rounds: int, read_only: bool) -> None:
        self._path, self._read_only = str(path), read_only
        self._db = SQLite(path, "ro" if read_only else "rw") if path.exists() else None
        if read_only or self._db is None:
            return
        with self._errors():
            # a commit is flushed by the session's next one, a checkpoint of the log by itself
            self._db.pragmas("synchronous = NORMAL")
            with self._db.transaction():
                columns = "round INTEGER PRIMARY KEY, time, row BLOB NOT NULL"
                self._db.execute(f"CREATE TABLE IF NOT EXISTS live_rows ({columns})")
                self._db.execute("DELETE FROM live_rows WHERE round > ?", (rounds,))

    def write(self, *rows: Row) -> None:
        assert self._db is not None
        with self._errors(), self._db.transaction():
            for row in rows:
                packed = zlib.compress(json.dumps(row, allow_nan=False).encode(), 1)
                values = (row.round, row.time and row.time.stamp, packed)
                self._db.execute("INSERT OR REPLACE INTO live_rows VALUES (?, ?, ?)", values)

    def read(self, *rounds: int) -> dict[int, Row]:
        places = ", ".join("?" * len(rounds))
        return {row.round: row for row in self.rows(f"round IN ({places})", *rounds)}

    def rows(self, which: str, *values: float) -> list[Row]:
        if self._db is None:
            return []
        try:
            with self._errors():
                packed = self._db.rows(f"SELECT row FROM live_rows WHERE {which}", values)
        except CheckpointError:
            if self._read_only:  # no row was taken, or it cannot be read in place
                return []
            raise
        return [
            row._replace(
                time=row.time and Time(*row.time), announced=row.announced and Time(*row.announced)
            )
            for row in (Row(*json.loads(zlib.decompress(row))) for (row,) in packed)
        ]

    def close(self) -> None:
        if self._db is not None:
            self._db.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise explained(error, self._path, "Fix that and send the row again.") from None
