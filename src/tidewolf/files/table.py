"""Tables of numbers from files, one row a round: CSV (also .csv.gz), NPZ, Parquet.

A first column called time, date, datetime or timestamp holds numbers or dates that increase from
row to row (dates.py); every other column holds a finite number in every row. What does not is
refused with the file, the line and the column.

Files are not trusted: one that unpacks to many times its size, or claims more than it has, is
refused before memory is taken (`core.archive` has the limits).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tidewolf.core.arguments import as_flag, as_path
from tidewolf.core.errors import InvalidInput
from tidewolf.core.types import Floats, NDArray
from tidewolf.files import csv, npz, parquet
from tidewolf.files.cells import Cells
from tidewolf.files.columns import Columns, is_time, named
from tidewolf.files.dates import is_long, read_times
from tidewolf.files.format import PLAIN, FileFormat, as_format

ENDINGS = (*csv.ENDINGS, *npz.ENDINGS, *parquet.ENDINGS)


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


def read_table(
    path: str | PathLike[str], *, gaps: bool = False, format: FileFormat = PLAIN
) -> Table:
    r"""The table in a CSV, NPZ or Parquet file, by the ending of its name.

    Parameters
    ----------
    path : str or path
        The file: .csv, .csv.gz, .npz or .parquet.
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
        Where Parquet is read and pyarrow is not installed.

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
    path, gaps = as_path(path, "The path of a table"), as_flag(gaps, "gaps")
    if not path.is_file():
        raise InvalidInput(f"There is no table at {path}.")
    return _whole(_columns(path, gaps, as_format(format)), gaps, format)


def _columns(path: Path, gaps: bool, format: FileFormat) -> Columns:
    """The columns of a file, by the ending of its name."""
    name = path.name.lower()
    if name.endswith(csv.ENDINGS):
        return _of_cells(csv.csv_cells(path, format), gaps)
    if name.endswith(npz.ENDINGS):
        return npz.npz_columns(path)
    if name.endswith(parquet.ENDINGS):
        return parquet.parquet_columns(path, gaps)
    raise InvalidInput(
        f"{path} is none of the tables that can be read: .csv, .csv.gz, .npz, .parquet."
    )


def _of_cells(cells: Cells, gaps: bool) -> Columns:
    """The columns of a file that is read cell by cell."""
    timed = is_time(cells.header[0])
    columns = named(cells.header[int(timed) :], cells.name)
    rows, width = len(cells.rows), len(cells.header)
    values = [
        [
            math.nan if gaps and cells.text(i, j).lower() in ("", "nan") else cells.number(i, j)
            for j in range(int(timed), width)
        ]
        for i in range(rows)
    ]
    times = [row[0] for row in cells.rows] if timed else None
    return Columns(
        cells.name,
        cells.header[0],
        times,
        columns,
        np.array(values, dtype=np.float64).reshape(rows, len(columns)),
        [cells.row_place(i) for i in range(rows)],
    )


def _whole(found: Columns, gaps: bool, format: FileFormat) -> Table:
    """A table that has rows, finite numbers, and times that increase."""
    values, places, name = found.values, found.places, found.name
    wrong = np.argwhere(~(np.isfinite(values) | (gaps & np.isnan(values))))
    if len(wrong):
        i, j = wrong[0]
        raise InvalidInput(
            f'{places[i]}, column "{found.columns[j]}": {values[i, j]} is not a finite number, and'
            " every cell needs one."
        )
    if len(values) == 0:
        raise InvalidInput(f"{name} has column names and no rows.")
    times = found.times
    if times is not None:
        if not isinstance(times, np.ndarray) or times.dtype.kind not in "fiuM":
            times = read_times(times, places, found.time_name, format)
        times = times if times.dtype.kind == "M" or is_long(times) else times.astype(np.float64)
        if not np.isfinite(times.astype(np.float64)).all() or (
            times.dtype.kind == "M" and np.isnat(times).any()
        ):
            raise InvalidInput(f"{name}: every row needs a time; some have none.")
        for i in np.flatnonzero(~(times[1:] > times[:-1]))[:1]:
            raise InvalidInput(
                f"{places[i + 1]}: the time {times[i + 1]} does not come after {times[i]}; sort "
                "the rows, one a time."
            )
    return Table(times, found.columns, values, places)
