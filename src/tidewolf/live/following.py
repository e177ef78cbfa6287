"""Follow tables that grow on disk. A row counts once every table has it, or a later one.

A line of a CSV file counts once its end is there. Past rows must stay as they were: a table that
became shorter, or whose past rows changed, is refused by name and line. A table that cannot be
read, or is shorter, is read again a few times first, because it may be in the middle of a write.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, final

import numpy as np

from tidewolf.core.arguments import as_path
from tidewolf.core.errors import InvalidInput, TidewolfError
from tidewolf.core.settings import Text
from tidewolf.files import FileFormat, Table, file_of, read_table
from tidewolf.files.format import PLAIN, as_format, clock_text
from tidewolf.files.table import GAPS, align
from tidewolf.live.lines import Line, time_of

ATTEMPTS = 3
"""How often a table that is shorter, or cannot be read, is read again."""


class Grown(NamedTuple):
    """A row of all tables.

    Parameters
    ----------
    line : Line
        Its content.
    place : str
        Where it stands in the first table.
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
        self._format, self._gaps = as_format(format), Text(choices=GAPS)(gaps, "gaps")
        self._tables: dict[str, Table] = {}
        self._changed: list[tuple[int, int, int]] | None = None
        """what differs after one of the files was written to"""
        self._given = self._failures = 0

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
        """The table in a file, of text up to the last line that has its end; None if no row has."""
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
        """The rows after those that were given, as far as every table reaches."""
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
        for i in range(self._given, len(first.values)):
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
    """Refuse a table that lost rows, or whose past rows changed."""
    rows = len(before.values)
    if now is None or len(now.values) < rows or now.columns != before.columns:
        lost = f"became shorter, or has other columns: {rows} of its rows were taken"
        raise InvalidInput(f"{before.file} {lost}. Put them back; rows are only added.")
    values = now.values[:rows]
    same = ((values == before.values) | (np.isnan(values) & np.isnan(before.values))).all(axis=1)
    if before.times is not None and now.times is not None:
        same &= now.times[:rows] == before.times
    for i in np.flatnonzero(~same)[:1].tolist():
        raise InvalidInput(f"{now.places[i]} was changed after it was taken. Put it back.")
