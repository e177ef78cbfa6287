"""Cells of a file with named columns, before they mean anything: texts in CSV, in spreadsheets
also numbers and dates. Every cell knows where it stands.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import TypeAlias

from tidewolf.core.errors import InvalidInput
from tidewolf.files.format import FileFormat
from tidewolf.files.numbers import GAPS, number_in, to_float

FILL = 'fill the gap, or say [stream] gaps = "last" or "unseen"'
"""What to do about a cell of a table that has no number."""
Cell: TypeAlias = str | float | int | bool | date | time | timedelta | None


@dataclass(frozen=True)
class Cells:
    """The header and the rows of a file, each as wide as the header."""

    name: str
    """the file, as sentences call it"""
    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    lines: Sequence[int]
    """where each row stands, counted from 1"""
    format: FileFormat
    unit: str = "line"
    """what rows are called: lines of text, rows of other files"""
    separator: str | None = None
    """what stands between cells, where they are text"""
    first_letter: int | None = None
    """the place of the first column, where columns have letters; A is 1"""
    header_line: int = 1

    @property
    def header_place(self) -> str:
        """Where the names of columns stand."""
        return f"{self.name}, {self.unit} {self.header_line}"

    def row_place(self, i: int) -> str:
        """Where a row stands."""
        return f"{self.name}, {self.unit} {self.lines[i]}"

    def place(self, i: int, j: int) -> str:
        """Where a cell stands."""
        named = f'column "{self.header[j]}"'
        if self.first_letter is None:
            return f"{self.row_place(i)}, {named}"
        return f"{self.name}, cell {letters(self.first_letter + j)}{self.lines[i]}, {named}"

    def text(self, i: int, j: int) -> str:
        """A cell as text; empty where it is."""
        cell = self.rows[i][j]
        if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53:
            cell = int(cell)  # a name that is a number
        return "" if cell is None else str(cell).strip()

    def number(self, i: int, j: int) -> float:
        """A cell as a finite number."""
        cell = self.rows[i][j]
        if isinstance(cell, str):
            if cell[:1] == "#" and cell.endswith(("!", "?", "/A")):
                raise InvalidInput(f"{self.place(i, j)}: it holds the error {cell}, not a number.")
            return number_in(cell, self.place(i, j), self.format, separator=self.separator)
        if cell is None:
            return number_in("", self.place(i, j), self.format)
        if isinstance(cell, bool) or not isinstance(cell, int | float):
            raise InvalidInput(f"{self.place(i, j)}: it holds {_kind(cell)}, not a number.")
        try:
            number = float(cell)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise InvalidInput(f"{self.place(i, j)}: {cell} is not a finite number.")
        return number

    def is_gap(self, i: int, j: int) -> bool:
        """Whether a cell says that there is no number."""
        cell = self.rows[i][j]
        if isinstance(cell, float):
            return math.isnan(cell)
        return cell is None or (isinstance(cell, str) and cell.lower() in GAPS)

    def numbers(self, i: int, first: int, gaps: bool) -> list[float]:
        """The numbers of a row from a column on; only with `gaps` may some be NaN."""
        decimal = self.format.decimal
        try:
            found = [
                to_float(cell, decimal) if isinstance(cell, str) else _plain(cell)
                for cell in self.rows[i][first:]
            ]
            if all(map(math.isfinite, found)):
                return found
        except ValueError:
            pass
        return [self._number_or_gap(i, j, gaps) for j in range(first, len(self.header))]

    def _number_or_gap(self, i: int, j: int, gaps: bool) -> float:
        if not self.is_gap(i, j):
            return self.number(i, j)
        if gaps:
            return math.nan
        text = self.text(i, j)
        what = (
            f"{text!r} is not a finite number, and every cell needs one"
            if text
            else "the cell is empty, and every cell needs a number"
        )
        raise InvalidInput(f"{self.place(i, j)}: {what}; {FILL}.")


def _plain(cell: Cell) -> float:
    """A number as it stands; a ValueError for anything else."""
    if type(cell) is float or type(cell) is int:
        try:
            return float(cell)
        except OverflowError:
            return math.inf
    raise ValueError


def _kind(cell: Cell) -> str:
    """What a cell holds that is no number."""
    if isinstance(cell, bool):
        return "TRUE" if cell else "FALSE"
    if isinstance(cell, datetime | date):
        return f"the date {cell.isoformat()}"
    what = "the time of day" if isinstance(cell, time) else "the duration"
    return f"{what} {cell}"


def letters(number: int) -> str:
    """The letters of a column, counted from 1: A, ..., Z, AA, ..."""
    found = ""
    while number > 0:
        number, rest = divmod(number - 1, 26)
        found = chr(ord("A") + rest) + found
    return found


def count(number: int, what: str) -> str:
    """So many of something."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"
