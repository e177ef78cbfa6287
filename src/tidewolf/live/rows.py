"""A line of JSON: a row, or information about the next round; and the times of rows.

    {"time": "2026-03-01T12:00", "costs": {"SEA > DEN": 1.2, ...}, "capacities": {...},
     "played": {...}, "unavailable": ["DEN > NYC"]}

A row holds the costs, capacities, demands, weights and budget of a round, by name or as a list, and
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

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from statistics import median_low
from typing import Any, NamedTuple, NoReturn, final

import numpy as np

from tidewolf.core import round_info, settings
from tidewolf.core.arguments import as_path, nearest_names, shown
from tidewolf.core.errors import InvalidInput, TidewolfError
from tidewolf.files import FileFormat, Table, file_of, read_table
from tidewolf.files.reading import PLAIN, as_format, clock_text
from tidewolf.files.table import GAPS, align

NUMBERS = ("costs", "capacities", "demands", "weights", "budgets")
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

    def plus(self, seconds: float) -> Time:
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
        """Whether the line has feedback on a round."""
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
    if len(text) > LONGEST:
        raise InvalidInput(f"A row has at most {LONGEST:,} bytes; this line has more.")
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

# How often a table that is shorter, or cannot be read, is read again.
ATTEMPTS = 3


class Grown(NamedTuple):
    """A row of all tables.

    Parameters
    ----------
    line : Line
        Its content.
    place : str
        Its place in the first table.
    has_gap : bool
        Whether a number is missing, so that the row is not learned from.
    """

    line: Line
    place: str
    has_gap: bool


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
    >>> [grown.line.numbers for grown in follower.poll()]
    [{'costs': {'a': 5.0, 'b': 6.0}}]
    >>> _ = path.write_text("time,a,b\\n1,5,6\\n2,7,8\\n")
    >>> [grown.line.numbers for grown in follower.poll()]
    [{'costs': {'a': 7.0, 'b': 8.0}}]
    """

    def __init__(
        self, tables: Mapping[str, Path], format: FileFormat = PLAIN, gaps: str = "refuse"
    ) -> None:
        if not tables:
            raise InvalidInput("There is no table to follow: the file's [stream] names none.")
        self._paths = {name: as_path(path, f"The table of {name}") for name, path in tables.items()}
        self._format, self._gaps = as_format(format), settings.Text(choices=GAPS)(gaps, "gaps")
        self._tables: dict[str, Table] = {}
        # what differs after one of the files was written to
        self._changed: list[tuple[int, int, int]] | None = None
        self._given = self._failures = 0
        self._last: Any = None  # the time of the last row that was given

    def poll(self) -> list[Grown]:
        """The rows that are new in all tables.

        Returns
        -------
        list of Grown
            In order, each once.

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
            if self._changed is not None and self._failures < ATTEMPTS:
                self._failures += 1
                return []
            if isinstance(error, OSError):
                raise InvalidInput(f"{error.filename} cannot be read: {error.strerror}.") from None
            raise
        self._tables, self._changed, self._failures = tables, changed, 0
        self._given += len(rows)
        return rows

    def _read(self, path: Path) -> Table | None:
        is_text = path.name.lower().endswith((".csv", ".tsv"))
        if not is_text or not "\n".encode(self._format.encoding).endswith(b"\n"):
            return read_table(path, gaps=True, format=self._format)
        lines, end, _ = path.read_bytes().rpartition(b"\n")
        if not lines.partition(b"\n")[2].strip():
            return None
        with tempfile.TemporaryDirectory(prefix="tidewolf-") as folder:
            copy = Path(folder, path.name)
            copy.write_bytes(lines + end)
            try:
                table = read_table(copy, gaps=True, format=self._format)
            except TidewolfError as error:
                raise type(error)(str(error).replace(str(copy), str(path))) from None
        places = [place.replace(str(copy), str(path)) for place in table.places]
        return table._replace(places=places, file=str(path))

    def _rows(self, tables: dict[str, Table]) -> list[Grown]:
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
        aligned, found = align(cut, self._gaps), list[Grown]()
        first = next(iter(aligned.tables.values()))
        start = self._given
        if first.times is not None:  # the first rows may be gone
            known = self._last is not None
            start = int(np.searchsorted(first.times, self._last, "right")) if known else 0
            self._last = first.times[-1] if len(first.times) else self._last
        for i in range(start, len(first.values)):
            numbers = {
                name: dict(zip(table.columns, table.values[i].tolist(), strict=True))
                for name, table in aligned.tables.items()
            }
            line = Line(numbers=numbers, round=i + 1)
            if first.times is not None:
                stamp = first.times[i]
                is_date = isinstance(stamp, np.datetime64)
                line = Line(time_of(clock_text(stamp) if is_date else stamp.item()), None, numbers)
            seen = aligned.seen is None or bool(aligned.seen[i])
            found.append(Grown(line, first.places[i], not seen))
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
        words = f"lost its last rows, or has other columns: {rows:,} of its rows were taken"
        raise InvalidInput(f"{before.file} {words}. Put them back, and only add rows.")
    values, was = now.values[: len(places)], before.values[places]
    same &= ((values == was) | (np.isnan(values) & np.isnan(was))).all(axis=1)
    for i in np.flatnonzero(~same)[:1].tolist():
        raise InvalidInput(f"{now.places[i]} was changed after it was taken. Put it back.")
