"""Cells of files with named columns (CSV, Excel through openpyxl, Parquet through pyarrow), and how
text in them is written: separators, decimal marks, encodings, dates, and whose clock times are read
from.

    costs.csv   time;SEA > DEN;DEN > NYC          separator = ";"   decimal = ","
                31.01.2024 06:00;12,5;7,25        date_format = "%d.%m.%Y %H:%M"

Nothing is guessed: a file that does not fit is refused, and the error names what would fit. Every
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

import codecs
import csv
import gzip
import math
import re
import threading
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from io import StringIO
from pathlib import Path
from typing import Annotated, Any, final
from zoneinfo import ZoneInfo

import numpy as np

from tidewolf.core import arguments, settings
from tidewolf.core.errors import InvalidInput, TidewolfError, refuse, require, require_some
from tidewolf.core.types import Floats, NDArray

CSV = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
EXCEL, PARQUET = (".xlsx", ".xlsm"), (".parquet", ".pq")
ENDINGS = (*CSV, *EXCEL, *PARQUET)
FILL = 'fill it in; a table of rounds may have gaps with [stream] gaps = "last" or "unseen"'
# What stands in cells without a number, in small letters.
_GAPS = frozenset(("", "nan", "na", "n/a", "#n/a", "null", "none"))
# Characters that no text has.
_NO_TEXT = re.compile(r"[\x00-\x08\x0b\x0e-\x1f]")
# What a sheet of Excel has.
_MOST_ROWS = 1 << 20
# What any file may unpack to, in bytes.
ALWAYS_UNPACKED = 64 << 20
# How many times its size a larger file may unpack to.
RATIO = 64
# NumPy reads headers with Python's own parser, which some versions (3.11) do not share between
# threads.
_HEADERS = threading.Lock()


# Encodings that have another name here than in Python.
_CALLED = {"utf-8-sig": "utf-8", "iso8859-1": "latin-1"}


@dataclass(frozen=True)
class _Key(settings.Text):
    """A setting of `FileFormat` that `plain` turns into its plain form, or refuses by a ValueError
    or LookupError; the error says what the setting means.
    """

    plain: Callable[[str], str] = field(default=str, kw_only=True)

    def __call__(self, value: Any, what: str) -> str:
        text = arguments.as_text(value, what)
        try:
            return self.plain(text)
        except (ValueError, LookupError, OSError):
            meaning = settings.settings_of(FileFormat)[what.split()[0]].meaning
            raise InvalidInput(f"{what} cannot be {arguments.shown(text)}. {meaning}") from None


def _separator(text: str) -> str:
    if len(text) != 1 or text in "\"'\r\n\0.+-" or text.isalnum():  # parts of numbers and lines
        raise ValueError
    return text


def _encoding(text: str) -> str:
    "".encode(text)
    name = codecs.lookup(text).name
    return _CALLED.get(name, name)


def _date_format(text: str) -> str:
    now = datetime(2024, 1, 31)
    if datetime.strptime(now.strftime(text), text).replace(tzinfo=None) != now:
        raise ValueError
    return text


@final
@dataclass(frozen=True)
class FileFormat:
    r"""How the text of CSV files is written, and the clock of times in any file.

    Parameters
    ----------
    separator : str, optional
        What separates cells, one character. None: a tab in .tsv files, elsewhere ";" if the
        decimal mark is a comma and "," if it is a point.
    decimal : str, default '.'
        What stands before decimals: a point or a comma.
    encoding : str, default 'utf-8'
        Which bytes are which letters, such as "utf-8", "cp1252", "latin-1" or "utf-16".
    timezone : str, optional
        Whose clock times without an offset are read from, such as "Europe/Berlin"; they become
        UTC. None: they are taken as they stand.
    date_format : str, optional
        How dates with year, month and day are written, in the codes of strptime, such as
        "%d.%m.%Y %H:%M". None: in ISO form, such as 2024-01-31T06:00.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "prices.csv")
    ...     _ = path.write_text("night;day\n20,5;30\n", encoding="cp1252")
    ...     german = tw.problems.FileFormat(decimal=",", encoding="cp1252")
    ...     tw.problems.read_table(path, format=german).values.tolist()
    [[20.5, 30.0]]
    """

    separator: Annotated[str | None, _Key(plain=_separator)] = None
    decimal: Annotated[str, settings.Text(choices=(".", ","))] = "."
    encoding: Annotated[str, _Key(plain=_encoding)] = "utf-8"
    timezone: Annotated[str | None, _Key(plain=lambda name: ZoneInfo(name).key)] = None
    date_format: Annotated[str | None, _Key(plain=_date_format)] = None

    def __post_init__(self) -> None:
        settings.validate(self)

    def separator_of(self, name: str) -> str:
        """What separates the cells of a file of this name."""
        if self.separator is not None:
            return self.separator
        if name.lower().removesuffix(".gz").endswith((".tsv", ".tab")):
            return "\t"
        return ";" if self.decimal == "," else ","


def say(**keys: str) -> str:
    """What to write so that a file is read, such as: say [files] separator = ";"."""
    said = " and ".join(f'{key} = "{value}"' for key, value in keys.items())
    return f"say [files] {said}".replace("\t", r"\t")


def as_format(given: object, what: str = "format") -> FileFormat:
    return arguments.as_kind(given, FileFormat, f"{what} must be a FileFormat")


# Commas between cells, points before decimals, UTF-8, dates in ISO form.
PLAIN = FileFormat()


# --- dates ----------------------------------------------------------------------------------------
#
# Times of rounds: numbers, dates in ISO form, or dates in a declared `date_format`.
#
# Whole numbers keep every digit, such as nanoseconds since 1970. A date in another form is refused,
# and the error names the formats under which the whole column could be read.
#
# Clocks: a time with an offset (Z, +01:00) is read in UTC. One without is taken as it stands,
# unless `timezone` says whose clock it was read from; then it becomes UTC too. Within a column all
# have offsets or none has. When clocks go back, local hours come twice:
#
#     without a timezone      the second 02:00 does not come after the first: refused
#     with one                the first 02:00 is summer time and the second winter time, by their
#                             order (one that comes once is summer time); an hour that the clocks
#                             skipped in spring is refused


_DAYS = (
    *("%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y"),
    *("%m-%d-%Y", "%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%d %b %Y", "%d-%b-%Y", "%d %B %Y"),
    *("%b %d, %Y", "%B %d, %Y", "%b %d %Y"),
)
_HOURS = (
    *("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", " %I:%M %p", " %I:%M:%S %p", "T%H:%M"),
    *("T%H:%M:%S", ", %H:%M", ", %I:%M %p", " %H:%M%z", " %H:%M %z", "T%H:%M%z"),
)
# Formats that an error may name.
_LIKELY = [day + hour for day in _DAYS for hour in _HOURS]


def read_dates(
    cells: Sequence[Any], where: Sequence[str], format: FileFormat
) -> tuple[NDArray, bool]:
    found = list[datetime]()
    for cell, place in zip(cells, where, strict=True):
        moment, text = _moment(cell, format.date_format), isinstance(cell, str)
        if moment is not None and text == isinstance(cells[0], str):
            found.append(moment)
            if (moment.tzinfo is None) == (found[0].tzinfo is None):
                continue
        form = format.date_format or "ISO form such as 2024-01-31 or 2024-01-31T06:00"
        likely = likely_formats(cells) if text and moment is None else []
        cure = "; " + say(date_format='", or "'.join(likely)) if likely else ""
        raise InvalidInput(
            f"{place}: expected a date in {form}, text or a date as in the cells before, with an "
            f"offset from UTC in every cell or in none; received "
            f"{str('' if cell is None else cell)!r}{cure}."
        )
    utc = bool(found) and found[0].tzinfo is not None
    plain = [each.astimezone(UTC).replace(tzinfo=None) if utc else each for each in found]
    return np.array(plain, dtype="datetime64[us]"), utc


def _moment(cell: Any, date_format: str | None) -> datetime | None:
    with suppress(ValueError, OverflowError):
        if isinstance(cell, datetime):
            return cell
        if isinstance(cell, date):
            return datetime(cell.year, cell.month, cell.day)
        if isinstance(cell, str):
            text, plain = cell.strip(), datetime.fromisoformat
            found = plain(text) if date_format is None else datetime.strptime(text, date_format)
            if found.tzinfo is not None:
                found.astimezone(UTC)  # which may leave the calendar
            return found
    return None


def likely_formats(cells: Sequence[Any]) -> list[str]:
    return [each for each in _LIKELY if all(_moment(str(cell), each) for cell in cells)]


def in_utc(times: NDArray, places: Sequence[str], zone: str) -> NDArray:
    """Dates of a clock in UTC. Of an hour that comes twice, the second is the one that would not
    come after the time before; an hour that never was is refused.
    """
    clock, found = ZoneInfo(zone), []
    last = None
    for naive, place in zip(times.astype("datetime64[us]").tolist(), places, strict=True):
        try:
            readings = [naive.replace(tzinfo=clock, fold=fold).astimezone(UTC) for fold in (0, 1)]
        except (OverflowError, AttributeError):  # years that only NumPy knows are whole numbers
            raise InvalidInput(f"{place}: the time is outside the calendar of {zone}.") from None
        first = readings[0]
        if first.astimezone(clock).replace(tzinfo=None) != naive:
            raise InvalidInput(
                f"{place}: there was no {naive} in {zone}; give times with their offset, or the "
                "right timezone in [files]."
            )
        last = next((each for each in readings if last is None or each > last), first)
        found.append(np.datetime64(last.replace(tzinfo=None), "us"))
    return np.array(found)


def clock_text(moment: Any) -> str:
    """A time as messages have it: a date as short as it can be, or a number."""
    if not isinstance(moment, np.datetime64):
        return f"{moment}"
    text = str(moment.astype("datetime64[us]")).removesuffix(".000000")
    return text.removesuffix(":00") if text.count(":") == 2 else text


# --- cells ---------------------------------------------------------------------------------------


def most_unpacked(size: int) -> int:
    return max(ALWAYS_UNPACKED, RATIO * size)


def require_unpacked(path: Path, claimed: int) -> None:
    most = most_unpacked(path.stat().st_size)
    refuse(
        claimed > most,
        f"{path} is not read: it unpacks to more than {most >> 20} MB, {RATIO} times its size "
        "or more. Unpack it, or write plain CSV.",
    )


def read_arrays(path: Path) -> dict[str, NDArray]:
    """The arrays of an NPZ file, or `values`, the one of an NPY file."""
    kind = path.suffix[1:].upper()
    try:
        if kind == "NPY":  # which may claim more than it has
            return {"values": np.array(np.load(path, mmap_mode="r", allow_pickle=False))}
        with _HEADERS, zipfile.ZipFile(path) as archive, np.load(path) as arrays:
            members = archive.infolist()
            require_unpacked(path, sum(member.file_size for member in members))
            if any(
                member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
                for member in members
            ):
                raise ValueError("it is packed in a way that NumPy does not write")
            return dict(arrays)
    except TidewolfError:
        raise
    except Exception as error:  # what is no archive breaks its readers in every way
        what = str(error) or type(error).__name__
        raise InvalidInput(f"{path} cannot be read as {kind}: {what}.") from error


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

    def texts(self, name: str) -> list[str]:
        return [cell_text(cell) for cell in self.columns[self.header.index(name)]]

    def floats(self, name: str) -> list[float]:
        return [*self.numbers(self.header.index(name), False, len(self.lines)).tolist()]


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


def read_columns(path: Path, columns: Sequence[str], format: FileFormat) -> Cells:
    """The cells of a file that has these columns, in any case of letters, among others: the header
    has these names, and others as the file calls them.
    """
    cells = read_cells(path, format)
    require(len(cells.lines), InvalidInput, f"{path} has column names and no rows.")
    names = {name.lower(): name for name in columns}
    header = [names.get(name.lower(), name) for name in cells.header]
    refuse(
        not ({*columns} <= {*header}),
        f"{path}: expected the columns {', '.join(columns)}, received {', '.join(header)}.",
    )
    return replace(cells, header=header)


_SHEET = re.compile(r"(?i)(.*?\.xls[xm])#(.*)")


def file_of(path: Path) -> Path:
    found = _SHEET.match(path.name)
    return path if found is None else path.with_name(found[1])


def read_cells(path: Path, format: FileFormat, growing: bool = False) -> Cells:
    """The cells of a file; of a growing CSV file those of its whole lines, of which none may be
    there yet.
    """
    name = file_of(path).name.lower()
    readers = {CSV: _read_csv, EXCEL: _read_excel, PARQUET: _read_parquet}
    read = require_some(
        next((read for endings, read in readers.items() if name.endswith(endings)), None),
        InvalidInput,
        f"{path}: expected a file that ends in {', '.join(ENDINGS)}.",
    )
    require(file_of(path).is_file(), InvalidInput, f"There is no file at {path}.")
    try:
        cells = _read_csv(path, format, growing) if growing else read(path, format)
    except TidewolfError:
        raise
    except Exception as error:  # parsers raise what they like
        raise InvalidInput(
            f"{path} cannot be read as {read.__name__.removeprefix('_read_')}: {error!r}."
        ) from error
    empty = not cells.header and not growing
    refuse(empty, f"{path} is empty; a table starts with a line of column names.")
    return cells


def _csv_rows(
    path: Path, format: FileFormat, growing: bool = False
) -> Iterator[tuple[int, list[str]]]:
    text = StringIO(read_text(path, format.encoding, growing), newline="")
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


def _read_csv(path: Path, format: FileFormat, growing: bool = False) -> Cells:
    found = list(_csv_rows(path, format, growing))
    rows = [row for _, row in found]
    width = len(rows[0]) if rows else 0
    wrong = [each for each in found if len(each[1]) != width] or (found[:1] if width == 1 else [])
    if wrong and ((likely := _likely(path, format)) or len(wrong[0][1]) != width):
        where, cells = f"{path}, line {wrong[0][0]}", len(wrong[0][1])
        raise InvalidInput(f"{where}: expected {width} cells, received {cells}{likely}.")
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


def read_text(path: Path, encoding: str, growing: bool = False) -> str:
    """The text of a file, without a mark of its byte order; of a growing one, its whole lines."""
    data = path.read_bytes()
    if growing and "\n".encode(encoding).endswith(b"\n"):  # not in UTF-16
        data = data[: data.rfind(b"\n") + 1]
    if path.name.lower().endswith(".gz"):
        try:
            with gzip.open(path) as packed:
                data = packed.read(most_unpacked(len(data)) + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise InvalidInput(f"{path} cannot be read as CSV: {error}.") from None
        require_unpacked(path, len(data))
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


def _read_excel(path: Path, format: FileFormat) -> Cells:
    openpyxl, file = arguments.import_extra("openpyxl", f"Reading {path}", "app"), file_of(path)
    refuse(
        not zipfile.is_zipfile(file),
        f"{file} cannot be read as excel: save it as .xlsx without a password.",
    )
    with zipfile.ZipFile(file) as archive:
        require_unpacked(file, sum(member.file_size for member in archive.infolist()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of styles and lists that openpyxl does not keep
        rows = dict(_sheet_rows(openpyxl, path, True))
        formulas = dict(_sheet_rows(openpyxl, path, False))
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
                    "save it in a spreadsheet."
                )
            if cell is not None and not used[0] <= j <= used[-1]:
                raise InvalidInput(f"{path}, row {number}: row {top} names no column for {cell!r}.")
        table.append(values[used[0] : used[-1] + 1])
    columns = [np.array(column, dtype=object) for column in zip(*table, strict=True)]
    header = [cell_text(column[0]) for column in columns]
    return Cells(str(path), header, [each[1:] for each in columns], list(formulas)[1:], format)


def _sheet_rows(openpyxl: Any, path: Path, values: bool) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """The rows of a sheet that are not empty, by their numbers: formulas by value or as text."""
    file, named = file_of(path), _SHEET.match(path.name)
    room = most_unpacked(file.stat().st_size) // 8
    with open(file, "rb") as source:  # a broken book would be left open otherwise
        book = openpyxl.load_workbook(source, read_only=True, data_only=values, keep_links=False)
        sheets = {sheet.title: sheet for sheet in book.worksheets}
        sheet = require_some(
            sheets.get(named[2]) if named else next(iter(sheets.values()), None),
            InvalidInput,
            f"{path}: expected one of the sheets {', '.join(sheets)}.",
        )
        sheet.reset_dimensions()  # a sheet may claim more than it has
        for number, row in enumerate(sheet.iter_rows(values_only=True), 1):
            room -= len(row)
            if number > _MOST_ROWS or room < 0:
                raise InvalidInput(f"{path}, row {number}: cells lie so far apart: no table.")
            cells = tuple((cell.strip() or None) if isinstance(cell, str) else cell for cell in row)
            if any(cell is not None for cell in cells):
                yield number, cells


def _read_parquet(path: Path, format: FileFormat) -> Cells:
    parquet = arguments.import_extra("pyarrow.parquet", f"Reading {path}", "app")
    from pyarrow import types

    with parquet.ParquetFile(path) as file:
        schema, about = file.schema_arrow, file.metadata
        groups = [about.row_group(i) for i in range(about.num_row_groups)]
    rows = max(about.num_rows, sum(group.num_rows for group in groups))
    require_unpacked(
        path, max(8 * rows * len(schema), sum(group.total_byte_size for group in groups))
    )
    texts = [each.name for each in schema if not types.is_primitive(each.type)]
    table = parquet.read_table(path, read_dictionary=texts)  # a text that comes often once
    header, columns = [str(name) for name in table.column_names], []
    for name, column in zip(header, table.columns, strict=True):
        found = column.to_pandas() if name in texts else column
        if name in texts and any(len(str(text)) > 1000 for text in found.cat.categories):
            raise InvalidInput(f'{path}, column "{name}": it holds texts that are no names.')
        columns.append(found.to_numpy(dtype=object) if name in texts else found.to_numpy())
    utc = bool(header) and getattr(table.column(0).type, "tz", None) is not None
    return Cells(str(path), header, columns, range(1, table.num_rows + 1), format, utc=utc)
