"""Tables of numbers, one row per round: CSV (also .csv.gz), Excel, NPZ, Parquet, and frames of
pandas and polars.

A first column called time, date, datetime or timestamp holds numbers or dates that increase from
row to row (reading.py); every other column holds a finite number in every row. What does not is
refused with the file, the line and the column.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tidewolf.core.arguments import as_flag, as_path, shown
from tidewolf.core.errors import InvalidInput, WrongType
from tidewolf.core.frames import TIMES, is_frame, read_frame
from tidewolf.core.round_info import as_times
from tidewolf.core.settings import Names, Text
from tidewolf.core.types import Bools, Floats, NDArray
from tidewolf.files import reading
from tidewolf.files.reading import FILL, PLAIN, Cells, FileFormat, as_format, clock_text, say


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
        if not reading.file_of(path).is_file():
            raise InvalidInput(f"There is no table at {path}.")
        npz = path.name.lower().endswith(".npz")
        cells = _npz_cells(path, format) if npz else reading.read_cells(path, format)
    timed = is_time(cells.header[0])
    columns, rows = column_names(cells.header[int(timed) :], cells.name), len(cells.lines)
    while (
        timed and rows and not any(reading.cell_text(column[rows - 1]) for column in cells.columns)
    ):
        rows -= 1  # spreadsheets write separators to the last row that was ever touched
    if not rows:
        raise InvalidInput(f"{cells.name} has column names and no rows.")
    values = np.empty((rows, len(columns)))
    for j in range(len(columns)):
        values[:, j] = cells.numbers(j + timed, gaps, rows)
    times = _times(cells, rows) if timed else None
    return Table(times, columns, values, [cells.place(i) for i in range(rows)], cells.name)


def column_names(names: Sequence[str], file: str) -> tuple[str, ...]:
    if not names:
        raise InvalidInput(f"{file} has times and no other column.")
    for i, name in enumerate(names):
        if name == "" or name in names[:i]:
            what = f"the name {name!r} comes twice" if name else "a column has no name"
            raise InvalidInput(f"{file}, column {i + 1} beside the times: {what}.")
    return tuple(names)


def is_time(name: str) -> bool:
    return name.lower() in TIMES


def _frame_cells(frame: Any, format: FileFormat) -> Cells:
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
    arrays = reading.read_arrays(path)
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
    format, utc, times = cells.format, cells.utc, cells.columns[0][:rows]
    where = [cells.place(i, 0) for i in range(rows)]
    if times.dtype.kind not in "fiubM":
        if format.date_format is None and np.isfinite(reading.to_float(times[0], format.decimal)):
            texts, times = [str(cell) for cell in times], cells.numbers(0, False, rows)
            with suppress(ValueError, OverflowError):  # floats do not keep more than 53 bits
                times = np.array([int(text) for text in texts], dtype=np.int64)
        else:
            times, utc = reading.read_dates(list(times), where, format)
    if times.dtype.kind in "iub" and int(times.max()) <= 2**53:
        times = times.astype(np.float64)
    dated = times.dtype.kind == "M"
    if np.isnat(times).any() if dated else not np.isfinite(times.astype(np.float64)).all():
        raise InvalidInput(f"{cells.name}: every row needs a time; some have none.")
    if dated and not utc and format.timezone is not None:
        times = reading.in_utc(times, where, format.timezone)
    for i in np.flatnonzero(~(times[1:] > times[:-1]))[:1].tolist():
        local = dated and not utc and format.timezone is None
        zone = say(timezone="Europe/Berlin")
        clocks = f"; if clocks went back, give times with their offset or {zone}" if local else ""
        raise InvalidInput(
            f"{cells.place(i + 1)}: the time {clock_text(times[i + 1])} does not come after "
            f"{clock_text(times[i])}; sort the rows, one per time{clocks}."
        )
    return times


# --- gaps -----------------------------------------------------------------------------------------
#
# Gaps in tables of rounds: cells without a number, and rows that some tables have and others not.
#
#     "refuse"     there are none, or the file is refused
#     "last"       a gap has the last number of its column
#     "unseen"     a round with a gap is played, and no learner learns from it
#
# Rounds are the times that any table has, in their order (times of advice and contexts make no
# rounds); tables without times go row by row, and a shorter one lacks its last rows. Unseen rounds
# are measured too, with the last numbers of their columns (the first that come, if none came
# before), and notes say how many there were.


# What can be done about gaps.
GAPS = ("refuse", "unseen", "last")


class Aligned(NamedTuple):
    """Tables of the same rounds.

    Parameters
    ----------
    tables : dict of str and Table
        The tables by name, of equal length, at the same times.
    seen : array or None
        Which rounds can be learned from; None if all can.
    notes : tuple of str
        What was filled, in sentences; empty if nothing was.
    """

    tables: dict[str, Table]
    seen: Bools | None
    notes: tuple[str, ...]


def align(
    tables: Mapping[str, Table], gaps: str = "refuse", *, absent: Collection[str] = ()
) -> Aligned:
    """Tables as rounds: one row each for every time that any of them has.

    Parameters
    ----------
    tables : mapping of str and Table
        The tables by name, as `read_table(path, gaps=True)` gives them.
    gaps : str, default 'refuse'
        What is done about cells without a number and rows that a table lacks: "refuse", "unseen"
        or "last".
    absent : sequence of str, default ()
        Tables whose gaps stay NaN, such as points that others proposed; their times make no
        rounds.

    Returns
    -------
    Aligned
        `tables` of equal rows, the mask `seen` of rounds to learn from (None: all), and `notes`.

    Raises
    ------
    InvalidInput
        If there are gaps and they are refused; if one has no number before it; if tables have
        times and do not fit together.

    Examples
    --------
    >>> from tidewolf.files import align
    >>> costs = tw.problems.Table(np.arange(3.0), ("a",), np.array([[1.0], [np.nan], [3.0]]))
    >>> limits = tw.problems.Table(np.arange(2.0), ("a",), np.array([[5.0], [6.0]]))
    >>> rounds = align({"costs": costs, "limits": limits}, "unseen")
    >>> rounds.seen.tolist(), rounds.tables["limits"].values.ravel().tolist()
    ([True, False, False], [5.0, 6.0, 6.0])
    """
    gaps = Text(choices=GAPS)(gaps, "gaps")
    absent = Names()(absent, "absent")
    named = {name: _named(name, table) for name, table in tables.items()}
    leading = [table for name, table in named.items() if name not in absent]
    rounds, length = _rounds(leading or list(named.values()), list(named.values()))
    filled, notes, missing = dict[str, Table](), list[str](), np.zeros(length, dtype=bool)
    for name, table in named.items():
        laid, there = _spread(table, rounds, length)
        if gaps == "refuse" and not len(table.values) == there.sum() == length:
            i = int(np.argmin(there))
            when = f"round {i + 1}" if rounds is None else clock_text(rounds[i])
            raise InvalidInput(
                f"{table.file}: expected a row for each of the {length:,} rounds of all tables, "
                f"received {len(table.values):,} rows{'' if there.all() else f', none for {when}'};"
                f" {FILL}."
            )
        if name not in absent and (empty := np.isnan(laid.values)).any():
            _require_fillable(laid, empty, gaps)
            missing |= empty.any(axis=1)
            cells, lost = int(empty[there].sum()), int((~there).sum())
            done = "filled with the last number of the column" if gaps == "last" else "not seen"
            notes.append(f"{table.file}: {cells:,} empty cells, {lost:,} missing rows, {done}.")
            last = np.where(empty, -1, np.arange(length)[:, None])
            last = np.maximum.accumulate(last, axis=0)
            source = np.where(last < 0, np.argmin(empty, axis=0), last)
            laid = laid._replace(values=np.take_along_axis(laid.values, source, axis=0))
        filled[name] = laid
    if gaps != "unseen" or not missing.any():
        return Aligned(filled, None, tuple(notes))
    notes.append(
        f"{int(missing.sum()):,} of {length:,} rounds not seen: played without being learned from; "
        "loss and violation there are measured with the last numbers."
    )
    return Aligned(filled, ~missing, tuple(notes))


def require_seen(rounds: Aligned) -> None:
    if rounds.seen is not None and not rounds.seen.any():
        files = ", ".join(str(table.file) for table in rounds.tables.values())
        raise InvalidInput(
            f"No round has every number: {files} have no time in common without a gap, so there "
            "is nothing to learn from."
        )


def _named(name: str, table: Table) -> Table:
    if not isinstance(table, Table):
        raise WrongType(f"{name} must be a Table, not {shown(table)}.")
    file = table.file or name
    own = table.places or [f"{file}, row {i}" for i in range(1, len(table.values) + 1)]
    return table._replace(file=file, places=own)


def _rounds(leading: list[Table], tables: list[Table]) -> tuple[NDArray | None, int]:
    """The times of rounds, None if the leading tables have none, and how many there are."""
    clocks = [table.times for table in leading if table.times is not None]
    if not clocks:
        return None, max((len(table.values) for table in tables), default=0)
    called = {"M": "dates", "f": "numbers"}
    timed = [(table.times.dtype.kind, table.file) for table in tables if table.times is not None]
    kinds = {called.get(kind, "whole numbers"): file for kind, file in timed}
    if len(kinds) > 1:
        found = " and ".join(f"{file} has {kind}" for kind, file in kinds.items())
        raise InvalidInput(f"{found} for times; all tables need the same.")
    rounds = np.unique(np.concatenate(clocks))
    return rounds, len(rounds)


def _spread(table: Table, rounds: NDArray | None, length: int) -> tuple[Table, Bools]:
    """A table with a row for each round, NaN if it has none; and which rounds it has."""
    own = at = np.arange(len(table.values))
    if rounds is not None and table.times is not None:
        own = np.flatnonzero(np.isin(table.times, rounds))
        at = np.searchsorted(rounds, table.times[own])
    elif rounds is not None and len(own) != length:
        raise InvalidInput(
            f"{table.file} has {len(own):,} rows without times and there are {length:,} rounds; "
            "give it a column of times, by which its rows are found."
        )
    there, values = np.zeros(length, dtype=bool), np.full((length, len(table.columns)), np.nan)
    there[at], values[at] = True, table.values[own]
    places = [f"{table.file}, round {i}" for i in range(1, length + 1)]
    for i, row in zip(at.tolist(), own.tolist(), strict=True):
        places[i] = table.places[row]
    times = table.times if rounds is None else rounds
    return table._replace(times=times, values=values, places=places), there


def _require_fillable(table: Table, empty: Bools, gaps: str) -> None:
    """Refuse gaps, or those that nothing can fill."""
    unfilled, why = {
        "refuse": (empty, FILL),
        "last": (empty[:1], "no number comes before it"),
        "unseen": (empty & empty.all(axis=0), "its column has no number"),
    }[gaps]
    for i, j in np.argwhere(unfilled)[:1]:
        cell = f'{table.places[i]}, column "{table.columns[j]}"'
        raise InvalidInput(f"{cell}: there is no number; {why}.")
