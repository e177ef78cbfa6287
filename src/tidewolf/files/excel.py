"""Excel books (.xlsx, .xlsm) as cells: the first sheet, or the one named as in book.xlsx#Costs.

The first row that is not empty names the columns. Dates are dates, formulas have the values that
were kept with them, empty cells are gaps. Empty columns around the table, empty rows, and what
stands in other sheets are left alone; sentences name cells as Excel does (B7).

A book is an archive and is not trusted (`core.archive` has the limits): neither how much it unpacks
to, nor how many rows and columns its cells claim, nor that its XML declares nothing of its own.
"""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tidewolf.core.archive import most_unpacked, too_much
from tidewolf.core.errors import InvalidInput, MissingExtra, TidewolfError
from tidewolf.files.cells import Cell, Cells, letters
from tidewolf.files.format import FileFormat

ENDINGS = (".xlsx", ".xlsm")
_MOST_ROWS = 1 << 20
"""What a sheet of Excel has."""
_CHUNK = 1 << 20
_DECLARED = tuple(
    text.encode(encoding)
    for text in ("<!DOCTYPE", "<!ENTITY")
    for encoding in ("utf-8", "utf-16-le", "utf-16-be")
)


class _Row(NamedTuple):
    """A row that is not empty."""

    number: int
    cells: tuple[Cell, ...]


def split_sheet(path: Path) -> tuple[Path, str | None]:
    """The file of a path, and the sheet that it names."""
    for ending in ENDINGS:
        at = path.name.lower().find(f"{ending}#")
        if at >= 0:
            cut = at + len(ending)
            return path.with_name(path.name[:cut]), path.name[cut + 1 :]
    return path, None


def file_of(path: Path) -> Path:
    """The file of a path that may name a sheet of it."""
    return split_sheet(path)[0]


def excel_cells(path: Path, format: FileFormat) -> Cells:
    """The cells of a sheet."""
    try:
        import openpyxl
    except ImportError:
        raise MissingExtra('Reading Excel needs openpyxl: pip install "tidewolf[app]".') from None
    file, sheet = split_sheet(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # of what openpyxl does not keep: styles, lists to choose from
            _require_honest(file)
            rows = _rows(openpyxl, file, sheet, path, values=True)
            cells = _table(rows, path, format)
            _require_values(openpyxl, file, sheet, path, cells)
    except TidewolfError:
        raise
    except Exception as error:  # parsers raise what they like
        raise InvalidInput(
            f"{path} cannot be read as Excel: {error or type(error).__name__}."
        ) from error
    return cells


def _require_honest(file: Path) -> None:
    """Refuse an archive that unpacks to too much, or declares entities."""
    size = file.stat().st_size
    with open(file, "rb") as start:
        if start.read(4) == b"\xd0\xcf\x11\xe0":
            raise InvalidInput(
                f"{file} is a book of the old kind (.xls) or has a password; save it as .xlsx "
                "without one."
            )
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        if sum(member.file_size for member in members) > most_unpacked(size):
            raise InvalidInput(
                f"{file} is not read: {too_much(size)}. Write it as CSV, if it is meant to be so "
                "large."
            )
        for member in members:
            if member.filename.lower().endswith((".xml", ".rels")):
                _require_plain(archive, member, file)


def _require_plain(archive: zipfile.ZipFile, member: zipfile.ZipInfo, file: Path) -> None:
    """Refuse XML that declares entities, which no book needs."""
    before = b""
    with archive.open(member) as part:
        while chunk := part.read(_CHUNK):
            if any(text in before + chunk for text in _DECLARED):
                raise InvalidInput(
                    f"{file} is not read: its part {member.filename} declares a document type, "
                    "which no book needs."
                )
            before = chunk[-32:]


def _rows(
    openpyxl: Any, file: Path, name: str | None, path: Path, *, values: bool
) -> Iterator[_Row]:
    """The rows of a sheet that are not empty: the values of its cells, or else what kind they
    are of.
    """
    size = file.stat().st_size
    room = most_unpacked(size) // 8
    with open(file, "rb") as source:  # a book that is broken would be left open otherwise
        book = openpyxl.load_workbook(source, read_only=True, data_only=values, keep_links=False)
        sheet = _sheet(book, name, path)
        sheet.reset_dimensions()  # what a sheet claims to have would be filled up with nothing
        for number, row in enumerate(sheet.iter_rows(values_only=values), 1):
            cells = row if values else tuple(getattr(cell, "data_type", "n") for cell in row)
            room -= len(cells)
            if number > _MOST_ROWS or room < 0:
                raise InvalidInput(
                    f"{path}, row {number}: its cells lie so far apart that the sheet has more "
                    f"than {_MOST_ROWS:,} rows, or {too_much(size)[3:]}."
                )
            if any(cell is not None and cell != "" for cell in cells):
                yield _Row(number, tuple(map(_stripped, cells)))


def _sheet(book: Any, name: str | None, path: Path) -> Any:
    sheets = {sheet.title: sheet for sheet in book.worksheets}
    if not sheets:
        raise InvalidInput(f"{path} has no sheet of cells.")
    if name is None:
        return next(iter(sheets.values()))
    if name not in sheets:
        raise InvalidInput(
            f"{path}: there is no sheet called {name!r}; there are {', '.join(sheets)}."
        )
    return sheets[name]


def _table(rows: Iterator[_Row], path: Path, format: FileFormat) -> Cells:
    """The table of a sheet, whose first row names columns."""
    header = next(rows, None)
    if header is None:
        raise InvalidInput(f"{path} is empty; a table starts with a row of column names.")
    used = [j for j, cell in enumerate(header.cells) if cell is not None]
    first, width = used[0], used[-1] + 1
    found = []
    for row in rows:
        for j, cell in enumerate(row.cells):
            if cell is not None and not first <= j < width:
                raise InvalidInput(
                    f"{path}, cell {letters(j + 1)}{row.number}: there is {cell!r}, and row "
                    f"{header.number} names no column above it."
                )
        padded = (*row.cells[:width], *(None,) * (width - len(row.cells)))
        found.append((row.number, padded[first:]))
    names = ["" if cell is None else _name(cell) for cell in header.cells[first:width]]
    return Cells(
        str(path),
        names,
        [cells for _, cells in found],
        [number for number, _ in found],
        format,
        unit="row",
        first_letter=first + 1,
        header_line=header.number,
    )


def _require_values(openpyxl: Any, file: Path, sheet: str | None, path: Path, cells: Cells) -> None:
    """Refuse formulas that no value was kept with; they look as empty cells do."""
    lines = {line: i for i, line in enumerate(cells.lines) if None in cells.rows[i]}
    if not lines:
        return
    offset = (cells.first_letter or 1) - 1
    for row in _rows(openpyxl, file, sheet, path, values=False):
        if row.number in lines:
            i = lines[row.number]
            for j, cell in enumerate(cells.rows[i]):
                if cell is None and row.cells[offset + j : offset + j + 1] == ("f",):
                    raise InvalidInput(
                        f"{cells.place(i, j)}: the value of its formula is not in the file; open "
                        "the book in a spreadsheet program and save it, or put values in place of "
                        "formulas."
                    )


def _stripped(cell: Cell) -> Cell:
    if isinstance(cell, str):
        return cell.strip() or None
    return cell


def _name(cell: Cell) -> str:
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)
