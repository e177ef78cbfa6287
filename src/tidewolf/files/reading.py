"""Cells of files with named columns: CSV, Excel through openpyxl, Parquet through pyarrow. Every
cell knows its place, and numbers are read strictly.

    decimal "."     12.5   -4e2   .5            decimal ","     12,5   -4e2   ,5

Thousands separators are refused: 1,234 is one number in London and another in Berlin. Text is read
in the declared encoding and in no other. An Excel book is one sheet, the first or the one named as
in book.xlsx#Costs; its formulas have the values that were saved with them.

Files are not trusted: one that unpacks to many times its size, or claims more than it has, is
refused before memory is taken, and what is refused costs at most ALWAYS_UNPACKED beside the file:

    unpacked size <= max(ALWAYS_UNPACKED, RATIO packed size)

Numbers that were measured pack 2 to 20 times. A table that is packed tighter than RATIO is read
when it is written unpacked (np.savez, plain CSV).
"""

from __future__ import annotations

import csv
import gzip
import math
import re
import threading
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from io import StringIO
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tidewolf.core.arguments import as_path, import_extra
from tidewolf.core.errors import InvalidInput, TidewolfError
from tidewolf.core.settings import Names
from tidewolf.core.types import Floats, NDArray
from tidewolf.files.format import PLAIN, FileFormat, as_format, say

CSV = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
EXCEL, PARQUET = (".xlsx", ".xlsm"), (".parquet", ".pq")
ENDINGS = (*CSV, *EXCEL, *PARQUET)
FILL = 'fill it in; a table of rounds may have gaps with [stream] gaps = "last" or "unseen"'
# What stands in cells without a number, in small letters.
_GAPS = frozenset(("", "nan", "na", "n/a", "#n/a", "null", "none"))
# Characters that no text has.
_NO_TEXT = re.compile(r"[\x00-\x08\x0b\x0e-\x1f]")
_LONGEST_TEXT = 1000
# What a sheet of Excel has.
_MOST_ROWS = 1 << 20
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# What any file may unpack to, in bytes.
ALWAYS_UNPACKED = 64 << 20
# How many times its size a larger file may unpack to.
RATIO = 64
# NumPy reads headers with Python's own parser, which some versions (3.11) do not share between
# threads.
_HEADERS = threading.Lock()


def most_unpacked(size: int) -> int:
    return max(ALWAYS_UNPACKED, RATIO * size)


def require_unpacked(path: Path, claimed: int) -> None:
    most = most_unpacked(path.stat().st_size)
    if claimed > most:
        raise InvalidInput(
            f"{path} is not read: it unpacks to more than {most >> 20} MB, {RATIO} times its size "
            "or more. Unpack it, or write it as plain CSV."
        )


def read_arrays(path: Path) -> dict[str, NDArray]:
    try:
        with _HEADERS, zipfile.ZipFile(path) as archive, np.load(path) as arrays:
            members = archive.infolist()
            require_unpacked(path, sum(member.file_size for member in members))
            if any(member.compress_type not in _METHODS for member in members):
                raise ValueError("it is packed in a way that NumPy does not write")
            return dict(arrays)
    except TidewolfError:
        raise
    except Exception as error:  # what is no archive breaks its readers in every way
        what = str(error) or type(error).__name__
        raise InvalidInput(f"{path} cannot be read as NPZ: {what}.") from error


@dataclass(frozen=True)
class Cells:
    # the file, as messages call it
    name: str
    header: Sequence[str]
    # numbers or dates, or objects of several kinds
    columns: Sequence[NDArray]
    # where each row stands, counted from 1
    lines: Sequence[int]
    format: FileFormat = PLAIN
    unit: str = "row"
    # whether dates in the first column are in UTC
    utc: bool = False

    def place(self, i: int, j: int | None = None) -> str:
        row = f"{self.name}, {self.unit} {self.lines[i]}"
        return row if j is None else f'{row}, column "{self.header[j]}"'

    def text(self, i: int, j: int) -> str:
        return cell_text(self.columns[j][i])

    def numbers(self, j: int, gaps: bool, rows: int) -> Floats:
        """The numbers of a column in the first rows; only with `gaps` may some be NaN."""
        column, decimal = self.columns[j][:rows], self.format.decimal
        if column.dtype.kind in "fiub":
            found = column.astype(np.float64)
        else:
            found = np.array([to_float(cell, decimal) for cell in column], dtype=np.float64)
        for i in np.flatnonzero(~np.isfinite(found)).tolist():
            empty = gaps and is_gap(column[i])
            found[i] = math.nan if empty else finite(column[i], self.place(i, j), self.format)
        return found


def cell_text(cell: Any) -> str:
    if not isinstance(cell, str) and is_gap(cell):
        return ""
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53:
        cell = int(cell)  # a name that is a number
    return str(cell).strip()


def is_gap(cell: Any) -> bool:
    """Whether a cell has no number because it is empty."""
    if isinstance(cell, str):
        return cell.strip().lower() in _GAPS
    return cell is None or cell != cell


def finite(cell: Any, place: str, format: FileFormat) -> float:
    """A cell as a finite number; the error has its place and how to read it, if that is known."""
    number, hint = to_float(cell, format.decimal), ""
    if math.isfinite(number):
        return number
    other = "," if format.decimal == "." else "."
    if is_gap(cell):
        cell, hint = cell or "", f"; {FILL}"
    elif isinstance(cell, str) and math.isfinite(to_float(cell, other)):
        # a decimal comma alone would be read with semicolons
        keys = {"separator": ","} if other == "," and format.separator is None else {}
        hint = f"; thousands separators are not read; if {other!r} stands before decimals, "
        hint += say(decimal=other, **keys)
    raise InvalidInput(f"{place}: expected a finite number, received {str(cell)!r}{hint}.")


def to_float(cell: Any, decimal: str) -> float:
    if isinstance(cell, str):
        if "_" in cell or (decimal == "," and "." in cell):
            return math.nan
        cell = cell.replace(decimal, ".")
    elif isinstance(cell, bool) or not isinstance(cell, int | float | np.number):
        return math.nan
    try:
        return float(cell)
    except ValueError:
        return math.nan
    except OverflowError:
        return math.inf


class Record(NamedTuple):
    """One row of a file."""

    cells: Cells
    row: int

    def text(self, column: str) -> str:
        """What stands in a column, empty if nothing does."""
        return self.cells.text(self.row, self.cells.header.index(column))

    def number(self, column: str) -> float:
        """The finite number in a column."""
        j = self.cells.header.index(column)
        place = self.cells.place(self.row, j)
        return finite(self.cells.columns[j][self.row], place, self.cells.format)

    @property
    def where(self) -> str:
        """Where the row stands, such as "demands.csv, line 7"."""
        return self.cells.place(self.row)


def read_records(
    path: str | PathLike[str], columns: Sequence[str] = (), *, format: FileFormat = PLAIN
) -> list[Record]:
    r"""The rows of a file that has these columns, in any case of letters, among others.

    Parameters
    ----------
    path : str or path
        The file: .csv, .csv.gz, .tsv, .xlsx (also book.xlsx#Sheet), .parquet.
    columns : sequence of str, default ()
        What it has to have; the rows know them by these names, and others as the file calls them.
    format : FileFormat
        How text is written in it.

    Returns
    -------
    list of Record
        Each with `text(column)`, `number(column)` and `where`.

    Raises
    ------
    InvalidInput
        If the file does not exist, cannot be read, or lacks a column.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from tidewolf.files import read_records
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "demands.csv")
    ...     _ = path.write_text("Source,Target,Demand\nSEA,NYC,2.5\n")
    ...     rows = read_records(path, ["source", "target", "demand"])
    >>> rows[0].text("source"), rows[0].number("demand")
    ('SEA', 2.5)
    """
    columns = Names()(columns, "columns of read_records")
    cells = read_cells(as_path(path, "The path of a file of rows"), as_format(format))
    names = {name.lower(): name for name in columns}
    header = [names.get(name.lower(), name) for name in cells.header]
    if not {*columns} <= {*header}:
        raise InvalidInput(
            f"{path}: expected the columns {', '.join(columns)}, received {', '.join(header)}."
        )
    return [Record(replace(cells, header=header), i) for i in range(len(cells.lines))]


def file_of(path: Path) -> Path:
    return _split_sheet(path)[0]


def _split_sheet(path: Path) -> tuple[Path, str | None]:
    found = re.match(r"(?i)(.*?\.xls[xm])#(.*)", path.name)
    return (path, None) if found is None else (path.with_name(found[1]), found[2])


def read_cells(path: Path, format: FileFormat) -> Cells:
    name = file_of(path).name.lower()
    readers = {CSV: _read_csv, EXCEL: _read_excel, PARQUET: _read_parquet}
    read = next((read for endings, read in readers.items() if name.endswith(endings)), None)
    if read is None:
        raise InvalidInput(f"{path}: expected a file that ends in {', '.join(ENDINGS)}.")
    if not file_of(path).is_file():
        raise InvalidInput(f"There is no file at {path}.")
    try:
        cells = read(path, format)
    except TidewolfError:
        raise
    except Exception as error:  # parsers raise what they like
        kind = read.__name__.removeprefix("_read_")
        raise InvalidInput(f"{path} cannot be read as {kind}: {error!r}.") from error
    if not cells.header:
        raise InvalidInput(f"{path} is empty; a table starts with a line of column names.")
    return cells


def _csv_rows(path: Path, format: FileFormat) -> Iterator[tuple[int, list[str]]]:
    """The rows of a CSV file that are not blank, and the lines in which they begin."""
    text = StringIO(read_text(path, format.encoding), newline="")
    rows, last = csv.reader(text, delimiter=format.separator_of(path.name), strict=True), 0
    for row in rows:
        if len(row) > 1 or "".join(row).strip():
            yield last + 1, row
        last = rows.line_num


def read_header(path: Path, format: FileFormat) -> list[str]:
    """What the columns of a CSV file are called; its rows may be half written."""
    names = [cell.strip() for cell in next((row for _, row in _csv_rows(path, format)), [])]
    while len(names) > 1 and names[-1] == "":
        names.pop()
    return names


def _read_csv(path: Path, format: FileFormat) -> Cells:
    found = list(_csv_rows(path, format))
    rows = [row for _, row in found]
    width = len(rows[0]) if rows else 0
    wrong = [each for each in found if len(each[1]) != width] or (found[:1] if width == 1 else [])
    if wrong and ((likely := _likely(path, format)) or len(wrong[0][1]) != width):
        line, row = wrong[0]
        raise InvalidInput(
            f"{path}, line {line}: expected {width} cells, received {len(row)}{likely}."
        )
    columns = [np.array(column, dtype=object) for column in zip(*rows, strict=True)]
    while len(columns) > 1 and not any(cell.strip() for cell in columns[-1]):
        columns.pop()  # spreadsheets leave columns without a name and without a cell
    header, lines = [column[0].strip() for column in columns], [line for line, _ in found[1:]]
    return Cells(str(path), header, [column[1:] for column in columns], lines, format, "line")


def _likely(path: Path, format: FileFormat) -> str:
    """A separator under which the first lines would have equally many cells, as a hint."""
    lines, widths = read_text(path, format.encoding).splitlines()[:500], {"": 1}
    for other in ";,\t|":
        rows = [row for row in csv.reader(lines, delimiter=other) if row]
        if other != format.separator_of(path.name) and len({len(row) for row in rows}) == 1:
            widths[other] = len(rows[0])
    best = max(widths, key=widths.__getitem__)
    return f"; cells look separated otherwise: {say(separator=best)}" if best else ""


def read_text(path: Path, encoding: str) -> str:
    """The text of a file, without a mark of its byte order."""
    data = _unpacked(path) if path.name.lower().endswith(".gz") else path.read_bytes()
    likely, line, text = likely_encoding(data), 1, "\0"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
    contradicted = bool(_NO_TEXT.search(text))
    if likely not in (None, encoding) and (likely != "cp1252" or encoding.startswith("utf-")):
        contradicted |= text.lstrip("\ufeff") != data.decode(str(likely)).lstrip("\ufeff")
    if contradicted:
        cure = "save it as UTF-8 text" if likely in (None, encoding) else say(encoding=str(likely))
        raise InvalidInput(f"{path}, line {line}: it cannot be read in {encoding}; {cure}.")
    return text.removeprefix("\ufeff")


def likely_encoding(data: bytes) -> str | None:
    """The encoding that bytes look like; None if they look like no text."""
    for name in ("utf-8", "cp1252", "utf-16-le", "utf-16-be", "utf-32"):
        with suppress(UnicodeDecodeError):
            text = data.decode(name)
            if not _NO_TEXT.search(text) and (not name.startswith("utf-16") or "\n" in text):
                return name
    return None


def _unpacked(path: Path) -> bytes:
    try:
        with gzip.open(path) as packed:
            data = packed.read(most_unpacked(path.stat().st_size) + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise InvalidInput(f"{path} cannot be read as CSV: {error}.") from None
    require_unpacked(path, len(data))
    return data


def _read_excel(path: Path, format: FileFormat) -> Cells:
    openpyxl = import_extra("openpyxl", f"Reading {path}", "app")
    _require_honest(file_of(path))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of styles and lists that openpyxl does not keep
        rows = dict(_sheet_rows(openpyxl, path, values=True))
        formulas = dict(_sheet_rows(openpyxl, path, values=False))
    top = next(iter(rows), 0)
    used = [j for j, cell in enumerate(rows.get(top, ())) if cell is not None]
    wide = max(map(len, formulas.values()), default=0)
    table = []
    for number, row in formulas.items():
        values = (*rows.get(number, ()), *(None,) * wide)[:wide]
        for j, (cell, formula) in enumerate(zip(values, row, strict=False)):
            if cell is None and formula is not None and number != top:
                raise InvalidInput(
                    f"{path}, row {number}: the formula {formula!r} was saved without a value; "
                    "open the book in a spreadsheet program and save it."
                )
            if cell is not None and not used[0] <= j <= used[-1]:
                raise InvalidInput(f"{path}, row {number}: row {top} names no column for {cell!r}.")
        table.append(values[used[0] : used[-1] + 1])
    columns = [np.array(column, dtype=object) for column in zip(*table, strict=True)]
    header = [cell_text(column[0]) for column in columns]
    return Cells(str(path), header, [each[1:] for each in columns], list(formulas)[1:], format)


def _sheet_rows(
    openpyxl: Any, path: Path, *, values: bool
) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """The rows of a sheet that are not empty, by their numbers: formulas by value or as text."""
    file, name = _split_sheet(path)
    room = most_unpacked(file.stat().st_size) // 8
    with open(file, "rb") as source:  # a broken book would be left open otherwise
        book = openpyxl.load_workbook(source, read_only=True, data_only=values, keep_links=False)
        sheets = {sheet.title: sheet for sheet in book.worksheets}
        sheet = sheets.get(name) if name is not None else next(iter(sheets.values()), None)
        if sheet is None:
            raise InvalidInput(f"{path}: expected one of the sheets {', '.join(sheets)}.")
        sheet.reset_dimensions()  # a sheet may claim more than it has
        for number, row in enumerate(sheet.iter_rows(values_only=True), 1):
            room -= len(row)
            if number > _MOST_ROWS or room < 0:
                raise InvalidInput(
                    f"{path}, row {number}: its cells lie so far apart that it is no table."
                )
            cells = tuple((cell.strip() or None) if isinstance(cell, str) else cell for cell in row)
            if any(cell is not None for cell in cells):
                yield number, cells


def _require_honest(file: Path) -> None:
    if not zipfile.is_zipfile(file):
        raise InvalidInput(f"{file} cannot be read as excel: save it as .xlsx without a password.")
    with zipfile.ZipFile(file) as archive:
        require_unpacked(file, sum(member.file_size for member in archive.infolist()))


def _read_parquet(path: Path, format: FileFormat) -> Cells:
    parquet = import_extra("pyarrow.parquet", f"Reading {path}", "app")
    from pyarrow import types

    with parquet.ParquetFile(path) as file:
        schema, about = file.schema_arrow, file.metadata
        groups = [about.row_group(i) for i in range(about.num_row_groups)]
    rows = max(about.num_rows, sum(group.num_rows for group in groups))
    claimed = sum(group.total_byte_size for group in groups)
    require_unpacked(path, max(8 * rows * len(schema), claimed))
    texts = [each.name for each in schema if not types.is_primitive(each.type)]
    table = parquet.read_table(path, read_dictionary=texts)  # a text that comes often once
    header = [str(name) for name in table.column_names]
    columns = []
    for name, column in zip(header, table.columns, strict=True):
        found = column.to_pandas() if name in texts else column
        if name in texts and any(len(str(text)) > _LONGEST_TEXT for text in found.cat.categories):
            raise InvalidInput(f'{path}, column "{name}": it holds texts that are no names.')
        columns.append(found.to_numpy(dtype=object) if name in texts else found.to_numpy())
    utc = bool(header) and getattr(table.column(0).type, "tz", None) is not None
    return Cells(str(path), header, columns, range(1, table.num_rows + 1), format, utc=utc)
