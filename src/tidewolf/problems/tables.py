"""Tables of numbers from files, one row a round: CSV (also .csv.gz), NPZ, Parquet.

A first column called time, date, datetime or timestamp holds numbers or ISO dates that increase
from row to row; every other column holds a finite number in every row. What does not is refused
with the file, the line and the column. In an NPZ file the table is its array `values`, or its only
array of two axes, beside `columns` (names) and `times` where they are.

Files are not trusted: one that unpacks to many times its size, or claims more than it has, is
refused before memory is taken (`core.archive` has the limits). Times that are whole numbers keep
every digit, such as nanoseconds since 1970.
"""

from __future__ import annotations

import csv
import gzip
import math
import zlib
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from tidewolf.core.archive import most_unpacked, read_arrays, too_much
from tidewolf.core.arguments import as_flag, as_path
from tidewolf.core.errors import InvalidInput, MissingExtra
from tidewolf.core.types import Floats, NDArray

TIMES = ("time", "date", "datetime", "timestamp")
_LONGEST_TIME = 100
"""Bytes of a date, and room for what goes with it."""


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


def read_table(path: str | PathLike[str], *, gaps: bool = False) -> Table:
    r"""The table in a CSV, NPZ or Parquet file, by the ending of its name.

    Parameters
    ----------
    path : str or path
        The file: .csv, .csv.gz, .npz or .parquet.
    gaps : bool, default False
        Whether cells may be empty, or NaN: what is not known is NaN.

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
    name = path.name.lower()
    if name.endswith((".csv", ".csv.gz")):
        return _from_csv(path, gaps)
    if name.endswith(".npz"):
        return _from_npz(path, gaps)
    if name.endswith((".parquet", ".pq")):
        return _from_parquet(path, gaps)
    raise InvalidInput(
        f"{path} is none of the tables that can be read: .csv, .csv.gz, .npz, .parquet."
    )


def csv_rows(path: Path) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """The header of a CSV file, and its rows with their line numbers, each as wide as the
    header.
    """
    try:
        with _text(path) as text:
            lines = csv.reader(text, strict=True)
            found = [(lines.line_num, [cell.strip() for cell in row]) for row in lines if row]
    except (OSError, EOFError, UnicodeDecodeError, zlib.error, csv.Error) as error:
        raise InvalidInput(f"{path} cannot be read as CSV in UTF-8: {error}.") from error
    if not found:
        raise InvalidInput(f"{path} is empty; a table starts with a line of column names.")
    header = found[0][1]
    for number, cells in found[1:]:
        if len(cells) != len(header):
            raise InvalidInput(
                f"{path}, line {number}: {_count(len(cells), 'cell')} where the header names "
                f"{_count(len(header), 'column')}."
            )
    return header, found[1:]


def _text(path: Path) -> IO[str]:
    """A CSV file as text; one that is packed is unpacked twice, the first time to see how much it
    is.
    """
    if not path.name.lower().endswith(".gz"):
        return open(path, encoding="utf-8-sig", newline="")
    size, unpacked = path.stat().st_size, 0
    with gzip.open(path) as packed:
        while chunk := packed.read(1 << 20):
            unpacked += len(chunk)
            if unpacked > most_unpacked(size):
                raise InvalidInput(
                    f"{path} is not read: {too_much(size)}. Unpack it, if it is meant to be so "
                    "large."
                )
    return gzip.open(path, "rt", encoding="utf-8-sig", newline="")


def number_in(cell: str, where: str) -> float:
    """A cell as a finite number."""
    if cell == "":
        raise InvalidInput(
            f"{where}: the cell is empty, and every cell needs a number. Fill the gap, or leave "
            "the line out."
        )
    try:
        number = float(cell)
    except ValueError:
        raise InvalidInput(f"{where}: {cell!r} is not a number.") from None
    if not math.isfinite(number):
        raise InvalidInput(f"{where}: {cell!r} is not a finite number, and every cell needs one.")
    return number


def _cell(cell: str, where: str, gaps: bool) -> float:
    return math.nan if gaps and cell.lower() in ("", "nan") else number_in(cell, where)


def _from_csv(path: Path, gaps: bool) -> Table:
    header, rows = csv_rows(path)
    timed = _is_time(header[0])
    columns = _named(header[1:] if timed else header, path)
    places = [f"{path}, line {number}" for number, _ in rows]
    values = [
        [
            _cell(cell, f'{place}, column "{name}"', gaps)
            for name, cell in zip(columns, cells[int(timed) :], strict=True)
        ]
        for place, (_, cells) in zip(places, rows, strict=True)
    ]
    times = _times([cells[0] for _, cells in rows], places, header[0]) if timed else None
    return _whole(
        times,
        columns,
        np.array(values, dtype=np.float64).reshape(len(rows), len(columns)),
        places,
        path,
    )


def _from_npz(path: Path, gaps: bool) -> Table:
    try:
        with open(path, "rb") as file:
            arrays = read_arrays(file, path.stat().st_size)
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{path} cannot be read as NPZ: {error}.") from error
    tables = [name for name, array in arrays.items() if array.ndim == 2]
    if "values" not in tables and len(tables) != 1:
        held = ", ".join(f"{name} {array.shape}" for name, array in arrays.items()) or "nothing"
        raise InvalidInput(
            f"{path} holds {held}; a table is an array `values` of two axes, or the only array "
            "with two."
        )
    name = "values" if "values" in tables else tables[0]
    values, times = arrays[name], arrays.get("times")
    if values.dtype.kind not in "fiub":
        raise InvalidInput(f"{path}, array {name}: the table holds {values.dtype}, not numbers.")
    columns = arrays.get("columns", np.array([f"{i}" for i in range(values.shape[1])]))
    if columns.shape != (values.shape[1],):
        raise InvalidInput(
            f"{path}: {_count(columns.size, 'name')} in `columns` for a table with "
            f"{_count(values.shape[1], 'column')}."
        )
    if times is not None and times.shape != (len(values),):
        raise InvalidInput(
            f"{path}: {_count(times.size, 'time')} in `times` for a table with "
            f"{_count(len(values), 'row')}."
        )
    return _of_arrays(
        times,
        _named([str(name) for name in columns], path),
        values.astype(np.float64),
        path,
        "times",
        gaps,
    )


def _from_parquet(path: Path, gaps: bool) -> Table:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise MissingExtra('Reading Parquet needs pyarrow: pip install "tidewolf[app]".') from None
    try:
        with parquet.ParquetFile(path) as file:
            header = [str(name) for name in file.schema_arrow.names]
            if not header:
                raise InvalidInput(f"{path} has no columns.")
            timed = _is_time(header[0])
            columns = _named(header[1:] if timed else header, path)
            _require_moderate(file, header, timed, path)
        # a text that comes often is kept once
        with parquet.ParquetFile(path, read_dictionary=header[: int(timed)]) as file:
            table = file.read()
    except (OSError, ArrowException) as error:
        raise InvalidInput(f"{path} cannot be read as Parquet: {error}") from error
    if timed:
        _require_short(table.column(0), header[0], path)
    for i, (name, column) in enumerate(zip(header, table.columns, strict=True)):
        if column.null_count and not (gaps and i >= timed):
            row = next(i for i, cell in enumerate(column) if not cell.is_valid)
            raise InvalidInput(
                f'{path}, row {row + 1}, column "{name}": the cell is empty, and every cell needs a'
                " number."
            )
    arrays = [column.to_numpy() for column in table.columns]
    for name, array in zip(columns, arrays[int(timed) :], strict=True):
        if array.dtype.kind not in "fiub":
            raise InvalidInput(f'{path}, column "{name}": it holds {array.dtype}, not numbers.')
    values = np.array(arrays[int(timed) :], dtype=np.float64).T.reshape(
        table.num_rows, len(columns)
    )
    return _of_arrays(arrays[0] if timed else None, columns, values, path, header[0], gaps)


def _require_moderate(file: Any, header: Sequence[str], timed: bool, path: Path) -> None:
    """Refuse a table by what it claims, before it is read: runs of equal numbers take no room
    in the file, and all of it in memory.
    """
    from pyarrow import types

    size, kinds = path.stat().st_size, file.schema_arrow.types
    numbers = (types.is_integer, types.is_floating, types.is_boolean)
    times = (
        *numbers,
        types.is_temporal,
        types.is_string,
        types.is_large_string,
        types.is_dictionary,
    )
    for i, (name, kind) in enumerate(zip(header, kinds, strict=True)):
        if not any(fits(kind) for fits in (times if timed and i == 0 else numbers)):
            raise InvalidInput(
                f'{path}, column "{name}": it holds {_held(kind)}, not'
                f" {'times' if timed and i == 0 else 'numbers'}."
            )
    groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
    rows = max(file.metadata.num_rows, sum(group.num_rows for group in groups))
    if max(8 * rows * len(header), sum(group.total_byte_size for group in groups)) > most_unpacked(
        size
    ):
        raise InvalidInput(
            f"{path} is not read: {too_much(size)}. Write it as CSV, if it is meant to be so large."
        )


def _require_short(column: Any, name: str, path: Path) -> None:
    """Refuse texts that are no dates while each is in memory once."""
    from pyarrow import compute, types

    if types.is_dictionary(column.type):
        for chunk in column.chunks:
            if (compute.max(compute.binary_length(chunk.dictionary)).as_py() or 0) > _LONGEST_TIME:
                raise InvalidInput(f'{path}, column "{name}": it holds texts that are no dates.')


def _held(kind: Any) -> str:
    """What a column holds, as NumPy calls it where it does."""
    try:
        return str(np.dtype(kind.to_pandas_dtype()))
    except (NotImplementedError, TypeError):
        return str(kind)


def _of_arrays(
    times: Any, columns: tuple[str, ...], values: Floats, path: Path, name: str, gaps: bool
) -> Table:
    """A table of arrays, whose rows are counted from 1."""
    places = [f"{path}, row {i}" for i in range(1, len(values) + 1)]
    wrong = np.argwhere(~(np.isfinite(values) | (gaps & np.isnan(values))))
    if len(wrong):
        i, j = wrong[0]
        raise InvalidInput(
            f'{places[i]}, column "{columns[j]}": {values[i, j]} is not a finite number, and every'
            " cell needs one."
        )
    if times is not None and times.dtype.kind not in "fiuM":
        times = _times([str(cell) for cell in times], places, name)
    return _whole(times, columns, values, places, path)


def _whole(
    times: Any, columns: tuple[str, ...], values: Floats, places: Sequence[str], path: Path
) -> Table:
    """A table that has rows, and times that increase."""
    if len(values) == 0:
        raise InvalidInput(f"{path} has column names and no rows.")
    if times is not None:
        times = times if times.dtype.kind == "M" or _long(times) else times.astype(np.float64)
        if not np.isfinite(times.astype(np.float64)).all() or (
            times.dtype.kind == "M" and np.isnat(times).any()
        ):
            raise InvalidInput(f"{path}: every row needs a time; some have none.")
        for i in np.flatnonzero(~(times[1:] > times[:-1]))[:1]:
            raise InvalidInput(
                f"{places[i + 1]}: the time {times[i + 1]} does not come after {times[i]}; sort "
                "the rows, one a time."
            )
    return Table(times, columns, values, places)


def _times(cells: Sequence[str], places: Sequence[str], name: str) -> NDArray:
    """Times as numbers, or as dates where the first is no number."""
    try:
        dated = bool(cells) and not math.isfinite(float(cells[0]))
    except ValueError:
        dated = True
    if not dated:
        with suppress(ValueError, OverflowError):
            whole = np.array([int(cell) for cell in cells], dtype=np.int64)
            if _long(whole):
                return whole
        return np.array(
            [
                number_in(cell, f'{place}, column "{name}"')
                for cell, place in zip(cells, places, strict=True)
            ]
        )
    return np.array(
        [
            _date(cell, f'{place}, column "{name}"')
            for cell, place in zip(cells, places, strict=True)
        ]
    )


def _long(times: NDArray) -> bool:
    """Whether they are whole numbers with more digits than floats keep."""
    return times.dtype.kind in "iu" and int(times.max(initial=0)) > 2**53


def _date(cell: str, where: str) -> np.datetime64:
    """A date; one with an offset in UTC."""
    try:
        date = datetime.fromisoformat(cell)
    except ValueError:
        raise InvalidInput(
            f"{where}: {cell!r} is neither a number nor a date such as 2024-01-31 or "
            "2024-01-31T06:00."
        ) from None
    return np.datetime64(
        date if date.tzinfo is None else date.astimezone(UTC).replace(tzinfo=None), "us"
    )


def _named(columns: Sequence[str], path: Path) -> tuple[str, ...]:
    """Column names, each once."""
    if not columns:
        raise InvalidInput(f"{path} has times and no other column.")
    for i, name in enumerate(columns):
        if name == "":
            raise InvalidInput(f"{path}: column {i + 1} beside the times has no name.")
        if name in columns[:i]:
            raise InvalidInput(f"{path}: two columns are called {name!r}.")
    return tuple(columns)


def _is_time(name: str) -> bool:
    return name.lower() in TIMES


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
