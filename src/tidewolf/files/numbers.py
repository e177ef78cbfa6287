"""Numbers in text: digits with one decimal mark, nothing between them.

    decimal "."     12.5   -4e2   .5            decimal ","     12,5   -4e2   ,5

Thousands separators are refused: 1,234 is one number in London and another in Berlin.
"""

from __future__ import annotations

import math
import re

from tidewolf.core.errors import InvalidInput
from tidewolf.files.format import PLAIN, FileFormat, say

GAPS = frozenset(("", "nan", "na", "n/a", "#n/a", "null", "none"))
"""What stands in cells without a number, in small letters."""
_EXPONENT = r"(?:[eE][+-]?\d+)?"
_COMMA = re.compile(rf"[+-]?\d*,\d+{_EXPONENT}")
_POINT = re.compile(rf"[+-]?\d*\.\d+{_EXPONENT}")
_GROUPED = re.compile(
    r"[+-]?\d{1,3}(?:([ '.,\u2019\u00a0\u2009\u202f])\d{3})(?:\1\d{3})*([.,]\d+)?"
)


def to_float(cell: str, decimal: str) -> float:
    """A number, also an infinite one or NaN; a ValueError where it is none."""
    if "_" in cell:
        raise ValueError
    if decimal == ".":
        return float(cell)
    if "." in cell:
        raise ValueError
    return float(cell.replace(",", "."))


def number_in(
    cell: str, where: str, format: FileFormat = PLAIN, *, separator: str | None = None
) -> float:
    """A cell as a finite number; `separator` is what separates it from others, where something
    does.
    """
    if cell == "":
        raise InvalidInput(f"{where}: the cell is empty, and it needs a number.")
    try:
        number = to_float(cell, format.decimal)
    except ValueError:
        why = _why(cell, format, separator)
        raise InvalidInput(f"{where}: {cell!r} is not a number{why}.") from None
    if not math.isfinite(number):
        raise InvalidInput(f"{where}: {cell!r} is not a finite number, and every cell needs one.")
    return number


def comma_key(format: FileFormat, separator: str | None) -> dict[str, str]:
    """What to say of a file with decimal commas, whose cells are separated so."""
    changed = format.separator is None and separator not in (None, ";", "\t")
    return ({"separator": str(separator)} if changed else {}) | {"decimal": ","}


def _why(cell: str, format: FileFormat, separator: str | None) -> str:
    """What a text looks like that is no number, and what to do."""
    mark, other = format.decimal, "," if format.decimal == "." else "."
    grouped = _GROUPED.fullmatch(cell)
    decimals = (_COMMA if other == "," else _POINT).fullmatch(cell)
    cure = say(**comma_key(format, separator)) if other == "," else "leave [files] decimal out"
    if grouped and grouped[1] == other and decimals:
        name = "comma" if other == "," else "point"
        return (
            f": where the {name} stands before decimals, {cure}; where it separates thousands, "
            "write the number without"
        )
    if grouped and grouped[1] != mark:
        plain = cell.replace(grouped[1], "")
        return f": it has thousands separators; write {plain}"
    if grouped and grouped[2] and grouped[2][0] == other:
        plain = cell.replace(mark, "")
        return f": it has thousands separators; write {plain} and {cure}"
    if decimals:
        name = "comma" if other == "," else "point"
        return f"; it looks written with a decimal {name}: {cure}"
    if cell.lower() in GAPS:
        return "; a cell without a number is left empty"
    return ""
