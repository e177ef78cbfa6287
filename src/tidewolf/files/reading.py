"""Cells of files with named columns: CSV through pandas, Excel through openpyxl, Parquet through
pyarrow. Every cell knows its place, and numbers are read strictly.

    decimal "."     12.5   -4e2   .5            decimal ","     12,5   -4e2   ,5

Thousands separators are refused: 1,234 is one number in London and another in Berlin. Text is read
in the declared encoding and in no other. An Excel book is one sheet, the first or the one named as
in book.xlsx#Costs; its formulas have the values that were saved with them.

Files are not trusted: one that unpacks to many times its size, or claims more than it has, is
refused before memory is taken (`core.archive` has the limits).
"""

from __future__ import annotations

import csv
import gzip
import math
import re
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from io import BytesIO, StringIO
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tidewolf.core.archive import most_unpacked, too_much
from tidewolf.core.arguments import as_items, as_path, as_text
from tidewolf.core.errors import InvalidInput, MissingExtra, TidewolfError
from tidewolf.core.types import Floats, NDArray
from tidewolf.files.dates import likely_formats
from tidewolf.files.format import PLAIN, FileFormat, as_format, say

CSV, EXCEL, PARQUET = (
    (".csv", ".csv.gz", ".tsv", ".tsv.gz"),
    (".xlsx", ".xlsm"),
    (".parquet", ".pq"),
)
ENDINGS = (*CSV, *EXCEL, *PARQUET)
FILL = 'fill it in; a table of rounds may have gaps with [stream] gaps = "last" or "unseen"'
_GAPS = frozenset(("", "nan", "na", "n/a", "#n/a", "null", "none"))
"""What stands in cells without a number, in small letters."""
_GROUPED = re.compile(r"[+-]?\d{1,3}([ .,'\u2019\u00a0\u2009\u202f]\d{3})+([.,]\d+)?")
_MARKS = {
    b"\xef\xbb\xbf": "utf-8",
    b"\xff\xfe\x00\x00": "utf-32",
    b"\x00\x00\xfe\xff": "utf-32",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
}
"""What files begin with that say their encoding."""
_NO_TEXT = {
    b"PK\x03\x04": ".xlsx",
    b"\x1f\x8b": ".csv.gz",
    b"PAR1": ".parquet",
    b"\xd0\xcf\x11\xe0": ".xls",
}
_MOST_ROWS = 1 << 20
"""What a sheet of Excel has."""
_LONGEST_TEXT = 1000


@dataclass(frozen=True)
class Cells:
    """The columns of a file under their names."""

    name: str
    """the file, as messages call it"""
    header: Sequence[str]
    columns: Sequence[NDArray]
    """numbers or dates, or objects of several kinds"""
    lines: Sequence[int]
    """where each row stands, counted from 1"""
    format: FileFormat = PLAIN
    unit: str = "row"
    first_letter: int | None = None
    """the place of the first column in a sheet, from 1"""
    utc: bool = False
    """whether dates in the first column are in UTC"""

    def place(self, i: int, j: int | None = None) -> str:
        """Where a row or a cell stands."""
        row = f"{self.name}, {self.unit} {self.lines[i]}"
        if j is None:
            return row
        if self.first_letter is not None:
            from openpyxl.utils import get_column_letter

            letter = get_column_letter(self.first_letter + j)
            row = f"{self.name}, cell {letter}{self.lines[i]}"
        return f'{row}, column "{self.header[j]}"'

    def text(self, i: int, j: int) -> str:
        """A cell as text; empty if it is."""
        cell = self.columns[j][i]
        if _is_gap(cell):
            return "" if not isinstance(cell, str) else cell.strip()
        if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53:
            cell = int(cell)  # a name that is a number
        return str(cell).strip()

    def number(self, i: int, j: int, gaps: bool = False) -> float:
        """A cell as a finite number, or NaN if it is empty and there may be `gaps`."""
        cell = self.columns[j][i]
        if _is_gap(cell):
            if gaps:
                return math.nan
            raise InvalidInput(
                f"{self.place(i, j)}: expected a number, received {str(cell or '')!r}; {FILL}."
            )
        number = _to_float(cell, self.format.decimal)
        if math.isfinite(number):
            return number
        hint = self._hint(cell) if isinstance(cell, str) else ""
        raise InvalidInput(
            f"{self.place(i, j)}: expected a finite number, received {str(cell)!r}{hint}."
        )

    def numbers(self, j: int, gaps: bool, rows: int) -> Floats:
        """The numbers of a column in the first rows; only with `gaps` may some be NaN."""
        column, decimal = self.columns[j][:rows], self.format.decimal
        if column.dtype.kind in "fiub":
            found = column.astype(np.float64)
        else:
            found = np.array([_to_float(cell, decimal) for cell in column], dtype=np.float64)
        for i in np.flatnonzero(~np.isfinite(found)).tolist():
            found[i] = self.number(i, j, gaps)
        return found

    def _hint(self, text: str) -> str:
        """What to do about a text that is no number."""
        other = "," if self.format.decimal == "." else "."
        hint = ""
        if other in text and math.isfinite(_to_float(text, other)):
            keys = {"decimal": other}
            separator = self.format.separator_of(self.name)
            if self.unit == "line" and self.format.separator is None and separator == other:
                keys["separator"] = separator
            hint = f"; if {other!r} stands before decimals, {say(**keys)}"
        if _GROUPED.fullmatch(text):
            return f"{hint}; thousands separators are not read"
        if likely_formats([text]):
            return "; a column of times is the first and is called time"
        return hint


def _is_gap(cell: Any) -> bool:
    if isinstance(cell, str):
        return cell.strip().lower() in _GAPS
    return cell is None or cell != cell


def _to_float(cell: Any, decimal: str) -> float:
    """A number, NaN if it is none."""
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
        return self.cells.number(self.row, self.cells.header.index(column))

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
    path = as_path(path, "The path of a file of rows")
    columns = [
        as_text(name, "The name of a column")
        for name in as_items(columns, "The columns of a file", '["source", "target"]')
    ]
    cells = read_cells(path, as_format(format))
    lower = {name.lower(): i for i, name in enumerate(cells.header)}
    header = list(cells.header)
    for name in columns:
        if name not in lower:
            raise InvalidInput(
                f"{path}: expected the columns {', '.join(columns)}, received {', '.join(header)}."
            )
        header[lower[name]] = name
    return [Record(replace(cells, header=header), i) for i in range(len(cells.lines))]


def file_of(path: Path) -> Path:
    """The file of a path that may name a sheet of it."""
    return _split_sheet(path)[0]


def _split_sheet(path: Path) -> tuple[Path, str | None]:
    for ending in EXCEL:
        at = path.name.lower().find(f"{ending}#")
        if at >= 0:
            cut = at + len(ending)
            return path.with_name(path.name[:cut]), path.name[cut + 1 :]
    return path, None


def read_cells(path: Path, format: FileFormat) -> Cells:
    """The cells of a file, by the ending of its name."""
    name = file_of(path).name.lower()
    read: Callable[[Path, FileFormat], Cells]
    if name.endswith(CSV):
        read = _read_csv
    elif name.endswith(EXCEL):
        read = _read_excel
    elif name.endswith(PARQUET):
        read = _read_parquet
    else:
        raise InvalidInput(f"{path}: expected a file that ends in {', '.join(ENDINGS)}.")
    if not file_of(path).is_file():
        raise InvalidInput(f"There is no file at {path}.")
    try:
        cells = read(path, format)
    except ImportError as error:
        raise MissingExtra(
            f'Reading {path} needs {error.name or error}: pip install "tidewolf[app]".'
        ) from None
    except TidewolfError:
        raise
    except Exception as error:  # parsers raise what they like
        kind = read.__name__.removeprefix("_read_")
        why = str(error).strip() or type(error).__name__
        raise InvalidInput(f"{path} cannot be read as {kind}: {why}.") from error
    if not cells.header:
        raise InvalidInput(f"{path} is empty; a table starts with a line of column names.")
    return cells


def _read_csv(path: Path, format: FileFormat) -> Cells:
    import pandas

    text, separator = read_text(path, format.encoding), format.separator_of(path.name)
    raw = re.split("\r\n|\n|\r", text)
    blank = next((i for i, line in enumerate(raw) if line.strip()), len(raw))
    if blank == len(raw):
        return Cells(str(path), [], [], [], format, "line")
    try:
        frame = pandas.read_csv(
            BytesIO(text.encode()),
            sep=separator,
            header=None,
            dtype=object,
            na_filter=False,
            skip_blank_lines=False,
            skiprows=blank,
        )
    except pandas.errors.ParserError as error:
        found = re.search(r"Expected (\d+) fields in (line \d+), saw (\d+)", str(error))
        what = f"{path} cannot be read as CSV: {str(error).strip()}"
        if found:
            what = f"{path}, {found[2]}: expected {found[1]} cells, received {found[3]}"
        raise InvalidInput(f"{what}{_likely(raw, separator)}.") from None
    columns, lines = (
        [frame[j].to_numpy() for j in frame],
        np.arange(blank + 1, blank + 1 + len(frame)),
    )
    if '"' in text:  # a cell may have several lines
        ends = sum(np.array([cell.count("\n") for cell in column]) for column in columns)
        lines = lines + np.cumsum(ends) - ends
    width = len(columns)
    while width > 1 and not any(cell.strip() for cell in columns[width - 1]):
        width -= 1  # spreadsheets leave columns without a name and without a cell
    header = [column[0].strip() for column in columns[:width]]
    if len(header) == 1 and (likely := _likely(raw, separator)):
        raise InvalidInput(f"{path}, line {blank + 1}: one column{likely}.")
    kept = np.array([raw[line - 1].strip() != "" for line in lines.tolist()])
    kept[0] = False
    for i in np.flatnonzero(kept & (columns[-1] == "")).tolist():
        line = raw[lines[i] - 1]
        if '"' not in line and line.count(separator) + 1 != len(columns):
            raise InvalidInput(
                f"{path}, line {lines[i]}: expected {len(columns)} cells, received "
                f"{line.count(separator) + 1}{_likely(raw, separator)}."
            )
    columns = [column[kept] for column in columns[:width]]
    return Cells(str(path), header, columns, lines[kept].tolist(), format, "line")


def read_header(path: Path, format: FileFormat) -> list[str]:
    """What the columns of a CSV file are called; its rows may be half written."""
    text = read_text(path, format.encoding)
    rows = csv.reader(StringIO(text), delimiter=format.separator_of(path.name))
    names = [cell.strip() for cell in next((row for row in rows if row), [])]
    while len(names) > 1 and names[-1] == "":
        names.pop()
    return names


def _likely(lines: Sequence[str], separator: str) -> str:
    """A separator under which the first lines would have equally many cells, as a hint."""
    widths, sample = dict[str, int](), [line for line in lines[:500] if len(line) < 1 << 16]
    for other in ";,\t|":
        rows = [row for row in csv.reader(sample, delimiter=other) if row]
        if other != separator and len({len(row) for row in rows}) == 1 and len(rows[0]) > 1:
            widths[other] = len(rows[0])
    if not widths:
        return ""
    return f"; cells look separated otherwise: {say(separator=max(widths, key=widths.__getitem__))}"


def read_text(path: Path, encoding: str) -> str:
    """The text of a file, without a mark of its byte order."""
    data = _unpacked(path) if path.name.lower().endswith(".gz") else path.read_bytes()
    for start, ending in _NO_TEXT.items():
        if data.startswith(start):
            raise InvalidInput(f"{path} is no text; it looks like a file that ends in {ending}.")
    likely, line = likely_encoding(data), 1
    contradicted = likely is not None and _family(likely) != _family(encoding)
    if likely == "utf-8" and data.isascii() and _family(encoding) == "other":
        contradicted = False
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        contradicted, line = True, data.count(b"\n", 0, error.start) + 1
    if contradicted or "\0" in text:
        cure = "save it as UTF-8 text" if likely in (None, encoding) else say(encoding=str(likely))
        raise InvalidInput(f"{path}, line {line}: it cannot be read in {encoding}; {cure}.")
    return text.removeprefix("\ufeff")


def likely_encoding(data: bytes) -> str | None:
    """The encoding that bytes look like; None if they look like no text."""
    for mark, name in _MARKS.items():
        if data.startswith(mark):
            return name
    start = data[:4096]
    if start.count(0) > len(start) // 4:
        return "utf-16-le" if start[1::2].count(0) >= start[::2].count(0) else "utf-16-be"
    for name in ("utf-8", "cp1252"):  # latin-1 has the same letters but for 32 bytes
        try:
            data.decode(name)
        except UnicodeDecodeError:
            continue
        return None if re.search(rb"[\x00-\x08\x0b\x0e-\x1f]", data) else name
    return None


def _family(encoding: str) -> str:
    """What encodings are alike in: told as one of another family, text comes out wrong."""
    if encoding.startswith(("utf-16", "utf-32")):
        return "wide"
    return "utf-8" if encoding == "utf-8" else "other"


def _unpacked(path: Path) -> bytes:
    size = path.stat().st_size
    try:
        with gzip.open(path) as packed:
            data = packed.read(most_unpacked(size) + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise InvalidInput(f"{path} cannot be read as CSV: {error}.") from None
    if len(data) > most_unpacked(size):
        raise InvalidInput(f"{path} is not read: {too_much(size)}. Unpack it to read it.")
    return data


def _read_excel(path: Path, format: FileFormat) -> Cells:
    import openpyxl

    file, sheet = _split_sheet(path)
    _require_honest(file)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of styles and lists that openpyxl does not keep
        rows = dict(_sheet_rows(openpyxl, file, sheet, path, values=True))
        if not rows:
            return Cells(str(path), [], [], [], format)
        top, names = next(iter(rows.items()))
        used = [j for j, cell in enumerate(names) if cell is not None]
        first, width = used[0], used[-1] + 1
        del rows[top]
        header = ["" if cell is None else _name(cell) for cell in names[first:width]]
        padded = [(*row, *(None,) * (width - len(row))) for row in rows.values()]
        columns = [np.array([row[j] for row in padded], dtype=object) for j in range(first, width)]
        cells = Cells(str(path), header, columns, list(rows), format, first_letter=first + 1)
        for number, row in rows.items():
            beside = [cell for cell in (*row[:first], *row[width:]) if cell is not None]
            if beside:
                raise InvalidInput(
                    f"{path}, row {number}: row {top} names no column for {beside[0]!r}."
                )
        empty = {n for n, row in zip(rows, padded, strict=True) if None in row[first:]}
        if empty:  # formulas without a saved value look empty
            for number, kinds in _sheet_rows(openpyxl, file, sheet, path, values=False):
                for j, kind in enumerate(kinds[first:width]):
                    i = cells.lines.index(number) if number in empty and kind == "f" else -1
                    if i >= 0 and columns[j][i] is None:
                        raise InvalidInput(
                            f"{cells.place(i, j)}: its formula was saved without a value; open the "
                            "book in a spreadsheet program and save it."
                        )
    return cells


def _sheet_rows(
    openpyxl: Any, file: Path, name: str | None, path: Path, *, values: bool
) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """The rows of a sheet that are not empty: the values of its cells, or else their kinds."""
    room = most_unpacked(file.stat().st_size) // 8
    with open(file, "rb") as source:  # a broken book would be left open otherwise
        book = openpyxl.load_workbook(source, read_only=True, data_only=values, keep_links=False)
        sheets = {sheet.title: sheet for sheet in book.worksheets}
        sheet = sheets.get(name) if name is not None else next(iter(sheets.values()), None)
        if sheet is None:
            raise InvalidInput(f"{path}: expected one of the sheets {', '.join(sheets)}.")
        sheet.reset_dimensions()  # a sheet may claim more than it has
        for number, row in enumerate(sheet.iter_rows(values_only=values), 1):
            room -= len(row)
            if number > _MOST_ROWS or room < 0:
                raise InvalidInput(
                    f"{path}, row {number}: its cells lie so far apart that it is no table."
                )
            cells = row if values else tuple(getattr(cell, "data_type", "n") for cell in row)
            cells = tuple(
                (cell.strip() or None) if isinstance(cell, str) else cell for cell in cells
            )
            if any(cell is not None for cell in cells):
                yield number, cells


def _require_honest(file: Path) -> None:
    """Refuse an archive that unpacks to too much, or whose XML declares entities."""
    size = file.stat().st_size
    with open(file, "rb") as start:
        if start.read(4) == b"\xd0\xcf\x11\xe0":
            raise InvalidInput(f"{file} is an .xls book or has a password; save it as .xlsx.")
    with zipfile.ZipFile(file) as archive:
        if sum(member.file_size for member in archive.infolist()) > most_unpacked(size):
            raise InvalidInput(f"{file} is not read: {too_much(size)}. Write it as CSV.")
        for name in archive.namelist():
            if name.lower().endswith((".xml", ".rels")):
                data = archive.read(name).replace(b"\0", b"")
                if b"<!DOCTYPE" in data or b"<!ENTITY" in data:
                    raise InvalidInput(f"{file} is not read: {name} declares a document type.")


def _name(cell: Any) -> str:
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)


def _read_parquet(path: Path, format: FileFormat) -> Cells:
    from pyarrow import parquet, types

    size = path.stat().st_size
    with parquet.ParquetFile(path) as file:
        schema, groups = file.schema_arrow, range(file.metadata.num_row_groups)
        header = [str(name) for name in schema.names]
        claimed = sum(file.metadata.row_group(i).total_byte_size for i in groups)
        rows = max(file.metadata.num_rows, sum(file.metadata.row_group(i).num_rows for i in groups))
        if max(8 * rows * len(header), claimed) > most_unpacked(size):
            raise InvalidInput(f"{path} is not read: {too_much(size)}. Write it as CSV.")
    texts = [each.name for each in schema if not types.is_primitive(each.type)]
    with parquet.ParquetFile(path, read_dictionary=texts) as file:  # a text that comes often once
        table = file.read()
    columns = []
    for name, column in zip(header, table.columns, strict=True):
        if types.is_dictionary(column.type):
            column = column.to_pandas()
            if any(len(str(text)) > _LONGEST_TEXT for text in column.cat.categories):
                raise InvalidInput(f'{path}, column "{name}": it holds texts that are no names.')
            columns.append(column.to_numpy(dtype=object))
        else:
            columns.append(column.to_numpy())
    utc = bool(header) and getattr(table.column(0).type, "tz", None) is not None
    return Cells(str(path), header, columns, range(1, table.num_rows + 1), format, utc=utc)
