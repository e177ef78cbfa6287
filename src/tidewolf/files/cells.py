"""Cells of a file with named columns, before they mean anything: texts in CSV, in spreadsheets
also numbers and dates. Every cell knows where it stands.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from tidewolf.core.errors import InvalidInput
from tidewolf.files.format import PLAIN, FileFormat

Cell: TypeAlias = str | float | int | bool | datetime | None


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

    def row_place(self, i: int) -> str:
        """Where a row stands."""
        return f"{self.name}, {self.unit} {self.lines[i]}"

    def place(self, i: int, j: int) -> str:
        """Where a cell stands."""
        return f'{self.row_place(i)}, column "{self.header[j]}"'

    def text(self, i: int, j: int) -> str:
        """A cell as text; empty where it is."""
        cell = self.rows[i][j]
        return "" if cell is None else str(cell).strip()

    def number(self, i: int, j: int) -> float:
        """A cell as a finite number."""
        return number_in(self.text(i, j), self.place(i, j), self.format)


def number_in(cell: str, where: str, format: FileFormat = PLAIN) -> float:
    """A cell as a finite number."""
    if cell == "":
        raise InvalidInput(
            f"{where}: the cell is empty, and every cell needs a number. Fill the gap, or leave "
            "the line out."
        )
    try:
        number = float(cell if format.decimal == "." else cell.replace(",", "."))
    except ValueError:
        raise InvalidInput(f"{where}: {cell!r} is not a number.") from None
    if not math.isfinite(number):
        raise InvalidInput(f"{where}: {cell!r} is not a finite number, and every cell needs one.")
    return number


def count(number: int, what: str) -> str:
    """So many of something."""
    return f"{number} {what}{'' if number == 1 else 's'}"
