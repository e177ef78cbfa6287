"""Tables that grow on disk, as rows: a row counts once every table has it, or a later one.

A line of a CSV file counts once its end is there; files of other kinds are read whole when they
have changed. What was there before must stay as it was: a table that became shorter, or whose past
rows changed, is refused by name and line. One that cannot be read, or is shorter, is looked at
again a few times first, for it may be in the middle of being written.
"""

from __future__ import annotations

import math
import tempfile
import zlib
from abc import ABC, abstractmethod
from array import array
from collections import deque
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np

from tidewolf.core.arguments import as_path
from tidewolf.core.errors import InvalidInput, TidewolfError
from tidewolf.core.settings import Text
from tidewolf.files import FileFormat, Table, read_table
from tidewolf.files.excel import file_of
from tidewolf.files.format import PLAIN, as_format
from tidewolf.files.gaps import GAPS
from tidewolf.live.clock import Time, time_of
from tidewolf.live.lines import Line

PATIENCE = 3
"""How often a table that is shorter, or cannot be read, is looked at again."""


class TableRow(NamedTuple):
    """A row of one table."""

    time: Time | None
    values: Mapping[str, float]
    place: str


class Grown(NamedTuple):
    """A row of all tables.

    Parameters
    ----------
    line : Line
        What it says.
    place : str
        Where it stands, in the first table.
    gap : str
        Where a number is missing, for which the row is not to be learned from; empty where none is.
    """

    line: Line
    place: str
    gap: str = ""


@final
class Follower:
    """Tables that grow, read together.

    Parameters
    ----------
    tables : mapping of path
        What lines call them, such as costs, and where they are.
    format : FileFormat
        How text is written in them.
    gaps : str, default "refuse"
        What is done about cells without a number, and rows that one table lacks: "refuse" them,
        take the "last" number of the column, or give them as "unseen".

    Raises
    ------
    InvalidInput
        Where one is not there, or cannot be read as a table.

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
        self._gaps = Text(choices=GAPS)(gaps, "gaps")
        filled = self._gaps != "refuse"
        self._tails = {
            name: _tail(as_path(path, f"The table of {name}"), as_format(format), filled)
            for name, path in tables.items()
        }
        self._last: dict[str, Mapping[str, float]] = {}
        """the last numbers of each table"""
        self._given = 0

    def poll(self) -> list[Grown]:
        """The rows that are new in all tables.

        Returns
        -------
        list of Grown
            In order, each once.

        Raises
        ------
        InvalidInput
            Where a cell is no number, a past row changed, or times differ between tables.
        """
        for tail in self._tails.values():
            tail.poll()
        found = []
        while all(tail.rows for tail in self._tails.values()):
            found.append(self._next())
        return found

    def _next(self) -> Grown:
        """The next row of all tables: the earliest."""
        heads = {name: tail.rows[0] for name, tail in self._tails.items()}
        times = [head.time for head in heads.values() if head.time is not None]
        time = min(times, key=lambda one: one.stamp, default=None)
        numbers, gap = dict[str, Mapping[str, float]](), ""
        for name, head in heads.items():
            is_there = head.time is None or time is None or head.time.stamp == time.stamp
            if is_there:
                self._tails[name].rows.popleft()
            numbers[name], missing = self._filled(name, head, time if not is_there else None)
            gap = gap or missing
        self._given += 1
        number = self._given if time is None else None
        first = next(head for head in heads.values() if head.time is time)
        return Grown(Line(time, number, numbers), first.place, gap * (self._gaps == "unseen"))

    def _filled(
        self, name: str, head: TableRow, lacks: Time | None
    ) -> tuple[Mapping[str, float], str]:
        """The numbers of a table in a row, gaps with the last ones, and where the first gap is; it
        `lacks` a row of some time.
        """
        last = self._last.get(name, {})
        if lacks is not None:
            if self._gaps == "refuse" or not last:
                raise InvalidInput(
                    f"{head.place}: the time is {head.time.said if head.time else ''}, where "
                    f"another table has {lacks.said}; a round is a row of each."
                )
            return last, f"{head.place}: there is no row of {lacks.said} before it"
        empty = [column for column, value in head.values.items() if math.isnan(value)]
        values = {**head.values, **{one: last.get(one, math.nan) for one in empty}}
        for one in empty:
            if math.isnan(values[one]) and self._gaps == "last":
                raise InvalidInput(
                    f'{head.place}, column "{one}": the cell is empty, and no number came before '
                    "it; fill it in."
                )
        self._last[name] = values
        return values, f'{head.place}, column "{empty[0]}": the cell is empty' if empty else ""


class _Tail(ABC):
    """What is new in a table."""

    def __init__(self, path: Path, format: FileFormat, gaps: bool) -> None:
        self.path, self.format, self.gaps = path, format, gaps
        self.rows = deque[TableRow]()
        """those that nobody took yet"""
        self._looked: tuple[int, int, int] | None = None
        self._patience = PATIENCE

    def poll(self) -> None:
        """Look again, where the file changed."""
        try:
            status = file_of(self.path).stat()
            now = (status.st_ino, status.st_size, status.st_mtime_ns)
            if now == self._looked:
                return
            self._look()
            self._looked = now
        except OSError as error:
            self._wait(InvalidInput(f"{self.path} cannot be read: {error.strerror}."))
        except TidewolfError as error:
            self._wait(error)
        else:
            self._patience = PATIENCE

    def _wait(self, error: TidewolfError) -> None:
        """Once more, unless it was looked at often enough, or for the first time."""
        if self._looked is None or self._patience == 0:
            raise error
        self._patience -= 1

    @abstractmethod
    def _look(self) -> None:
        """Read what is new."""

    def _table(self, path: Path) -> Table:
        return read_table(path, gaps=self.gaps, format=self.format)

    def _add(self, table: Table, first: int) -> None:
        """The rows of a table from this one on."""
        for i in range(first, len(table.values)):
            time = None if table.times is None else _time(table.times[i])
            values = dict(zip(table.columns, table.values[i].tolist(), strict=True))
            self.rows.append(TableRow(time, values, table.places[i]))


class _GrowingText(_Tail):
    """A CSV file, of which only new lines are read."""

    def __init__(self, path: Path, format: FileFormat, gaps: bool) -> None:
        super().__init__(path, format, gaps)
        self._lines = array("L")
        """a checksum of every line so far"""
        self._header, self._last = b"", b""

    def _look(self) -> None:
        lines = self.path.read_bytes().split(b"\n")[:-1]  # what comes after the last end waits
        self._require_unchanged(lines)
        new = lines[len(self._lines) :]
        if not any(line.strip() for line in new[not self._lines :]):
            return  # the header alone, or blank lines
        if not self._lines:
            self._add(self._read(b"\n".join(lines) + b"\n"), 0)
        else:
            self._add(self._read_new(lines, new), 0)
        self._lines.extend(map(zlib.crc32, new))
        self._header, self._last = lines[0], [line for line in lines if line.strip()][-1]

    def _read_new(self, lines: list[bytes], new: list[bytes]) -> Table:
        """The rows of the new lines; blank ones stand for those before, so that lines have their
        numbers, and the last one goes along, for its time.
        """
        blank = [b""] * (len(self._lines) - 2)
        try:
            text = [self._header, *blank, self._last, *new]
            return _from_row(self._read(b"\n".join(text) + b"\n"), 1)
        except TidewolfError:  # what dates mean may show in all of them alone
            taken = sum(1 for line in lines[1 : len(self._lines)] if line.strip())
            return _from_row(self._read(b"\n".join(lines) + b"\n"), taken)

    def _require_unchanged(self, lines: list[bytes]) -> None:
        if len(lines) < len(self._lines):
            raise InvalidInput(
                f"{self.path} became shorter: line {len(lines) + 1} is gone, which was taken. Put "
                "it back; rows are only added."
            )
        for i, (line, was) in enumerate(zip(lines, self._lines, strict=False)):
            if zlib.crc32(line) != was:
                raise InvalidInput(
                    f"{self.path}, line {i + 1} was changed after it was taken. Put it back; rows "
                    "are only added."
                )

    def _read(self, text: bytes) -> Table:
        """The table in a text, called as the file is."""
        with tempfile.TemporaryDirectory(prefix="tidewolf-") as folder:
            copy = Path(folder, self.path.name)
            copy.write_bytes(text)
            try:
                table = self._table(copy)
            except TidewolfError as error:
                raise type(error)(str(error).replace(str(copy), str(self.path))) from None
        places = [place.replace(str(copy), str(self.path)) for place in table.places]
        return table._replace(places=places)


class _GrowingFile(_Tail):
    """A file of another kind, read whole whenever it changed."""

    def __init__(self, path: Path, format: FileFormat, gaps: bool) -> None:
        super().__init__(path, format, gaps)
        self._taken: Table | None = None

    def _look(self) -> None:
        table, taken = self._table(self.path), self._taken
        if taken is not None:
            self._require_unchanged(taken, table)
        self._add(table, 0 if taken is None else len(taken.values))
        self._taken = table

    def _require_unchanged(self, taken: Table, table: Table) -> None:
        rows = len(taken.values)
        if len(table.values) < rows:
            raise InvalidInput(
                f"{self.path} became shorter: it has {len(table.values)} rows, and {rows} were "
                "taken. Put them back; rows are only added."
            )
        if table.columns != taken.columns:
            raise InvalidInput(f"{self.path} has other columns than before. Put them back.")
        both = np.isnan(table.values[:rows]) & np.isnan(taken.values)
        changed = ((table.values[:rows] != taken.values) & ~both).any(axis=1)
        if taken.times is not None and table.times is not None:
            changed |= table.times[:rows] != taken.times
        for i in np.flatnonzero(changed)[:1].tolist():
            raise InvalidInput(
                f"{table.places[i]} was changed after it was taken. Put it back; rows are only "
                "added."
            )


def _tail(path: Path, format: FileFormat, gaps: bool) -> _Tail:
    has_lines = "\n".encode(format.encoding).endswith(b"\n")
    is_text = path.name.lower().endswith((".csv", ".tsv")) and has_lines
    return (_GrowingText if is_text else _GrowingFile)(path, format, gaps)


def _from_row(table: Table, first: int) -> Table:
    """The table without the rows before this one."""
    times = None if table.times is None else table.times[first:]
    return Table(times, table.columns, table.values[first:], table.places[first:])


def _time(stamp: Any) -> Time:
    """A time of a table, a date as text."""
    if isinstance(stamp, np.datetime64):
        micros = int(stamp.astype("datetime64[us]").astype(np.int64))
        date = datetime.fromtimestamp(micros // 1_000_000, UTC).replace(
            microsecond=micros % 1_000_000, tzinfo=None
        )
        is_short = date.second == date.microsecond == 0
        return time_of(date.isoformat(timespec="minutes" if is_short else "auto"))
    return time_of(stamp.item())
