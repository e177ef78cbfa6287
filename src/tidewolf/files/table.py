"""Tables of numbers, one row per round: CSV (also .csv.gz), Excel, NPZ, Parquet, and frames of
pandas and polars.

A first column called time, date, datetime or timestamp holds numbers or dates that increase from
row to row (dates.py); every other column holds a finite number in every row. What does not is
refused with the file, the line and the column.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tidewolf.core.arguments import as_flag, as_path
from tidewolf.core.errors import InvalidInput
from tidewolf.core.frames import TIMES, is_frame, read_frame
from tidewolf.core.round_info import as_times
from tidewolf.core.types import Floats, NDArray
from tidewolf.files.dates import clock_text, in_utc, read_dates
from tidewolf.files.format import PLAIN, FileFormat, as_format, say
from tidewolf.files.reading import Cells, file_of, read_arrays, read_cells, to_float


class Table(NamedTuple):
    """Rows of numbers, one per round.

    Parameters
    ----------
    times : array or None
        float64 or datetime64, increasing, whole numbers above 2^53 as such; None if there are
        none.
    columns : tuple of str
        The names of the columns.
    values : array
        The numbers, of shape (rows, columns).
    places : sequence of str, default ()
        Where each row stands in the file.
    file : str, default ""
        The file, as messages call it.

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
        Times, if the first column has them, names of columns, and numbers.

    Raises
    ------
    InvalidInput
        If the file does not exist, or a cell is no finite number; the error names file, line and
        column.
    MissingExtra
        If pyarrow (Parquet) or openpyxl (Excel) is not installed.

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
    gaps, format = as_flag(gaps, "gaps"), as_format(format)
    if is_frame(path):
        cells = _frame_cells(path, format)
    else:
        path = as_path(path, "The path of a table")
        if not file_of(path).is_file():
            raise InvalidInput(f"There is no table at {path}.")
        npz = path.name.lower().endswith(".npz")
        cells = _npz_cells(path, format) if npz else read_cells(path, format)
    timed = is_time(cells.header[0])
    columns, rows = column_names(cells.header[int(timed) :], cells.name), len(cells.lines)
    while timed and rows and all(cells.text(rows - 1, j) == "" for j in range(len(cells.header))):
        rows -= 1  # spreadsheets write separators to the last row that was ever touched
    if not rows:
        raise InvalidInput(f"{cells.name} has column names and no rows.")
    values = np.empty((rows, len(columns)))
    for j in range(len(columns)):
        values[:, j] = cells.numbers(j + timed, gaps, rows)
    times = _times(cells, rows) if timed else None
    return Table(times, columns, values, [cells.place(i) for i in range(rows)], cells.name)


def column_names(names: Sequence[str], file: str) -> tuple[str, ...]:
    """Column names, each once."""
    if not names:
        raise InvalidInput(f"{file} has times and no other column.")
    for i, name in enumerate(names):
        if name == "" or name in names[:i]:
            what = f"the name {name!r} comes twice" if name else "a column has no name"
            raise InvalidInput(f"{file}, column {i + 1} beside the times: {what}.")
    return tuple(names)


def is_time(name: str) -> bool:
    """Whether a first column of this name holds times."""
    return name.lower() in TIMES


def _frame_cells(frame: Any, format: FileFormat) -> Cells:
    """The cells of a frame of pandas or polars."""
    name = "The frame"
    values, names, times = read_frame(frame, name)
    rows, width = values.shape
    header, columns = list(names or map(str, range(width))), list(values.T)
    if not width:
        raise InvalidInput(f"{name} has no column of numbers.")
    utc = any(getattr(getattr(times, "dtype", None), zone, None) for zone in ("tz", "time_zone"))
    if times is not None:
        header.insert(0, "time")
        columns.insert(0, as_times(times, f"{name}: a time")[1])
    return Cells(name, header, columns, range(1, rows + 1), format, utc=utc)


def _npz_cells(path: Path, format: FileFormat) -> Cells:
    """The array `values` of an NPZ file, or its only array of two axes, beside `columns` (names)
    and `times` if they are there.
    """
    arrays = read_arrays(path)
    tables = {name: array for name, array in arrays.items() if array.ndim == 2}
    values = tables.get("values", next(iter(tables.values())) if len(tables) == 1 else None)
    rows, width = (0, 0) if values is None else values.shape
    names = arrays.get("columns", np.arange(width))
    times = {"time": arrays["times"]} if "times" in arrays else {}
    fits = names.shape == (width,) and all(each.shape == (rows,) for each in times.values())
    if values is None or not width or values.dtype.kind not in "fiub" or not fits:
        held = ", ".join(f"{name} {each.shape} of {each.dtype}" for name, each in arrays.items())
        raise InvalidInput(
            f"{path}: expected one array `values` of numbers with two axes, and in `columns` and "
            f"`times`, if they are there, as many as it has; received {held or 'nothing'}."
        )
    header, columns = [*times, *map(str, names)], [*times.values(), *values.T]
    return Cells(str(path), header, columns, range(1, rows + 1), format)


def _times(cells: Cells, rows: int) -> NDArray:
    """Times that increase from row to row."""
    format, utc, times = cells.format, cells.utc, cells.columns[0][:rows]
    where = [cells.place(i, 0) for i in range(rows)]
    if times.dtype.kind not in "fiubM":
        if format.date_format is None and np.isfinite(to_float(times[0], format.decimal)):
            texts, times = [str(cell) for cell in times], cells.numbers(0, False, rows)
            with suppress(ValueError, OverflowError):  # floats do not keep more than 53 bits
                times = np.array([int(text) for text in texts], dtype=np.int64)
        else:
            times, utc = read_dates(list(times), where, format)
    if times.dtype.kind in "iub" and int(times.max()) <= 2**53:
        times = times.astype(np.float64)
    dated = times.dtype.kind == "M"
    if np.isnat(times).any() if dated else not np.isfinite(times.astype(np.float64)).all():
        raise InvalidInput(f"{cells.name}: every row needs a time; some have none.")
    if dated and not utc and format.timezone is not None:
        times = in_utc(times, where, format.timezone)
    for i in np.flatnonzero(~(times[1:] > times[:-1]))[:1].tolist():
        local = dated and not utc and format.timezone is None
        zone = say(timezone="Europe/Berlin")
        clocks = f"; if clocks went back, give times with their offset or {zone}" if local else ""
        raise InvalidInput(
            f"{cells.place(i + 1)}: the time {clock_text(times[i + 1])} does not come after "
            f"{clock_text(times[i])}; sort the rows, one per time{clocks}."
        )
    return times
