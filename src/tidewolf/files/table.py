"""Tables of numbers, one row a round: CSV (also .csv.gz), Excel, NPZ, Parquet, and frames of pandas
and polars.

A first column called time, date, datetime or timestamp holds numbers or dates that increase from
row to row (dates.py); every other column holds a finite number in every row. What does not is
refused with the file, the line and the column.

Files are not trusted: one that unpacks to many times its size, or claims more than it has, is
refused before memory is taken (`core.archive` has the limits).
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tidewolf.core.arguments import as_flag, as_path
from tidewolf.core.errors import InvalidInput
from tidewolf.core.frames import TIMES, is_frame, read_frame
from tidewolf.core.round_info import as_stamps, as_times
from tidewolf.core.types import Floats, NDArray
from tidewolf.files import npz, parquet
from tidewolf.files.cells import FILL, Cells
from tidewolf.files.columns import Columns, is_time, named, row_places
from tidewolf.files.dates import (
    clock_text,
    clocks_went_back,
    in_utc,
    is_long,
    looks_like_a_time,
    read_times,
)
from tidewolf.files.excel import file_of
from tidewolf.files.format import PLAIN, FileFormat, as_format
from tidewolf.files.records import ENDINGS, read_cells


class Table(NamedTuple):
    """Rows of numbers, one a round.

    Parameters
    ----------
    times : array or None
        float64 or datetime64, increasing, whole numbers above 2^53 as such; None where there are
        none.
    columns : tuple of str
        The names of the columns.
    values : array
        The numbers, of shape (rows, columns).
    places : sequence of str, default ()
        Where each row stands in the file.
    file : str, default ""
        The file, as sentences call it.

    Examples
    --------
    >>> table = tw.problems.Table(None, ("SEA > DEN", "DEN > NYC"), np.ones((3, 2)))
    >>> tw.functions.Capacity(table.values)
    Capacity(c=<3x2 float64>)
    """

    times: NDArray | None
    columns: tuple[str, ...]
    values: Floats
    places: Sequence[str] = ()
    file: str = ""


def read_table(
    path: str | PathLike[str] | Any, *, gaps: bool = False, format: FileFormat = PLAIN
) -> Table:
    r"""The table in a CSV, Excel, NPZ or Parquet file, by the ending of its name; or in a frame.

    Parameters
    ----------
    path : str, path or DataFrame
        The file: .csv, .csv.gz, .tsv, .xlsx (its first sheet, or "book.xlsx#Sheet"), .npz or
        .parquet. Or a frame of pandas or polars, whose times are its column of dates, else its
        index.
    gaps : bool, default False
        Whether cells may be empty, or NaN: what is not known is NaN.
    format : FileFormat
        How text is written in it.

    Returns
    -------
    Table
        Times, where the first column has them, names of columns, and numbers.

    Raises
    ------
    InvalidInput
        Where the file is not there, or a cell is no finite number; file, line and column are told.
    MissingExtra
        Where Parquet is read and pyarrow is not installed, or Excel and openpyxl.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "prices.csv")
    ...     _ = path.write_text("time,night,day\n2026-01-01,20,30\n2026-01-02,22,28\n")
    ...     table = tw.problems.read_table(path)
    >>> table.columns, table.values.tolist()
    (('night', 'day'), [[20.0, 30.0], [22.0, 28.0]])
    """
    gaps = as_flag(gaps, "gaps")
    if is_frame(path):
        return _whole(frame_columns(path), gaps, as_format(format))
    path = as_path(path, "The path of a table")
    if not file_of(path).is_file():
        raise InvalidInput(f"There is no table at {path}.")
    return _whole(_columns(path, gaps, as_format(format)), gaps, format)


def frame_columns(frame: Any, name: str = "The frame") -> Columns:
    """The columns of a frame of pandas or polars, which sentences call `name`."""
    found = read_frame(frame, name)
    rows, width = found.values.shape
    called = tuple(map(str, range(width))) if found.names is None else found.names
    if not width:
        raise InvalidInput(f"{name} has no column of numbers.")
    places = row_places(name, rows)
    times, utc = found.times, False
    if times is not None:
        kind = times.dtype
        utc = getattr(kind, "tz", None) is not None or getattr(kind, "time_zone", None) is not None
        seconds = as_times(times, f"{name}: a time")
        times = as_stamps(times, seconds)
    values = np.asarray(found.values, dtype=np.float64)
    return Columns(name, times, called, values, places, places if times is not None else (), utc)


def _columns(path: Path, gaps: bool, format: FileFormat) -> Columns:
    """The columns of a file, by the ending of its name."""
    name = file_of(path).name.lower()
    if name.endswith(npz.ENDINGS):
        return npz.npz_columns(path)
    if name.endswith(parquet.ENDINGS):
        return parquet.parquet_columns(path, gaps)
    if name.endswith(ENDINGS):
        return _of_cells(read_cells(path, format), gaps)
    old = "; save it as .xlsx" if name.endswith((".xls", ".xlsb", ".ods")) else ""
    raise InvalidInput(
        f"{path} is none of the tables that can be read: .csv, .csv.gz, .tsv, .xlsx, .npz, "
        f".parquet{old}."
    )


def _of_cells(cells: Cells, gaps: bool) -> Columns:
    """The columns of a file that is read cell by cell."""
    timed = is_time(cells.header[0])
    if not timed and cells.rows and looks_like_a_time(first := cells.rows[0][0]):
        raise InvalidInput(
            f"{cells.place(0, 0)}: {str(first)!r} looks like a time; a first column of times is "
            f"called {' or '.join([', '.join(TIMES[:-1]), TIMES[-1]])}, not {cells.header[0]!r}."
        )
    columns, rows = named(cells.header[int(timed) :], cells.name), len(cells.rows)
    while timed and rows and not any(cell not in (None, "") for cell in cells.rows[rows - 1]):
        rows -= 1  # spreadsheets write separators to the last row that was ever touched
    values = [cells.numbers(i, int(timed), gaps) for i in range(rows)]
    return Columns(
        cells.name,
        [row[0] for row in cells.rows[:rows]] if timed else None,
        columns,
        np.array(values, dtype=np.float64).reshape(rows, len(columns)),
        [cells.row_place(i) for i in range(rows)],
        [cells.place(i, 0) for i in range(rows)] if timed else (),
    )


def _whole(found: Columns, gaps: bool, format: FileFormat) -> Table:
    """A table that has rows, finite numbers, and times that increase."""
    values, places, name = found.values, found.places, found.name
    wrong = np.argwhere(~(np.isfinite(values) | (gaps & np.isnan(values))))
    if len(wrong):
        i, j = wrong[0]
        raise InvalidInput(
            f'{places[i]}, column "{found.columns[j]}": {values[i, j]} is not a finite number, and'
            f" every cell needs one{'; ' + FILL if np.isnan(values[i, j]) else ''}."
        )
    if len(values) == 0:
        raise InvalidInput(f"{name} has column names and no rows.")
    times = None if found.times is None else _times(found, format)
    return Table(times, found.columns, values, places, name)


def _times(found: Columns, format: FileFormat) -> NDArray:
    """Times that increase from row to row."""
    times: NDArray = found.times
    places, utc = found.places, found.utc
    if not isinstance(times, np.ndarray) or times.dtype.kind not in "fiuM":
        times, utc = read_times(list(times), found.time_places, format)
    times = times if times.dtype.kind == "M" or is_long(times) else times.astype(np.float64)
    dated = times.dtype.kind == "M"
    if np.isnat(times).any() if dated else not np.isfinite(times.astype(np.float64)).all():
        raise InvalidInput(f"{found.name}: every row needs a time; some have none.")
    if dated and not utc and format.timezone is not None:
        times = in_utc(times, found.time_places, format.timezone)
    for i in np.flatnonzero(~(times[1:] > times[:-1]))[:1]:
        before, after = times[i], times[i + 1]
        told = dated and not utc and format.timezone is None
        zone = clocks_went_back(before, after) if told else None
        cure = (
            "sort the rows, one a time"
            if zone is None
            else "where clocks went back, give times with their offset, such as "
            f'{zone.second}, or say [files] timezone = "{zone.name}"'
        )
        raise InvalidInput(
            f"{places[i + 1]}: the time {clock_text(after)} does not come after "
            f"{clock_text(before)}; {cure}."
        )
    return times
