"""Rows with named columns from files, of texts and numbers: commodities, supplies, links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from tidewolf.core.arguments import as_items, as_path, as_text
from tidewolf.core.errors import InvalidInput
from tidewolf.files import csv, excel, parquet
from tidewolf.files.cells import Cells
from tidewolf.files.excel import file_of
from tidewolf.files.format import PLAIN, FileFormat, as_format

ENDINGS = (*csv.ENDINGS, *excel.ENDINGS, *parquet.ENDINGS)


class Record(NamedTuple):
    """One row of a file."""

    cells: Cells
    row: int

    def has(self, column: str) -> bool:
        """Whether the file has such a column and the row a cell in it that is not empty."""
        return column in self.cells.header and self.text(column) != ""

    def text(self, column: str) -> str:
        """What stands in a column, empty where nothing does."""
        return self.cells.text(self.row, self.cells.header.index(column))

    def number(self, column: str) -> float:
        """The finite number in a column."""
        return self.cells.number(self.row, self.cells.header.index(column))

    @property
    def where(self) -> str:
        """Where the row stands, such as "demands.csv, line 7"."""
        return self.cells.row_place(self.row)

    def place(self, column: str) -> str:
        """Where a cell of it stands."""
        return self.cells.place(self.row, self.cells.header.index(column))


def read_records(
    path: str | PathLike[str], columns: Sequence[str] = (), *, format: FileFormat = PLAIN
) -> list[Record]:
    r"""The rows of a file that has these columns, whatever the case of their letters, among others.

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
        Each with `text(column)`, `number(column)`, `has(column)` and `where`.

    Raises
    ------
    InvalidInput
        Where the file is not there, cannot be read, or lacks a column.

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
    if not file_of(path).is_file():
        raise InvalidInput(f"There is no file at {path}.")
    cells = read_cells(path, as_format(format))
    lower = [name.lower() for name in cells.header]
    header = list(cells.header)
    for name in columns:
        if name not in lower:
            raise InvalidInput(
                f"{cells.header_place}: there is no column {name!r}; it needs {', '.join(columns)}."
            )
        header[lower.index(name)] = name
    known = replace(cells, header=header)
    return [Record(known, i) for i in range(len(cells.rows))]


def read_cells(path: Path, format: FileFormat) -> Cells:
    """The cells of a file, by the ending of its name."""
    name = file_of(path).name.lower()
    if name.endswith(csv.ENDINGS):
        return csv.csv_cells(path, format)
    if name.endswith(excel.ENDINGS):
        return excel.excel_cells(path, format)
    if name.endswith(parquet.ENDINGS):
        return parquet.parquet_cells(path, format)
    raise InvalidInput(f"{path} has none of the endings that can be read: {', '.join(ENDINGS)}.")
