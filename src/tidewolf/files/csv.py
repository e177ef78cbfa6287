"""CSV files as cells: text in rows, also packed (.csv.gz), and with tabs (.tsv).

The separator is the one that is told. Where rows do not fit the header under it, the sentence names
the one under which all do. Empty lines are left out, and columns at the end that have neither a
name nor a cell, as spreadsheets write them.
"""

from __future__ import annotations

import csv
import re
from io import StringIO
from pathlib import Path
from typing import TextIO

from tidewolf.core.errors import InvalidInput
from tidewolf.files.cells import Cells, count
from tidewolf.files.format import FileFormat, say
from tidewolf.files.text import open_text

ENDINGS = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
_SEPARATORS = (";", ",", "\t", "|")
_SAMPLE = 1 << 16
"""Letters of a file that are looked at for a likely separator."""
_COMMA = re.compile(r"[+-]?\d+,\d+")
_POINT = re.compile(r"[+-]?\d+\.\d+")
_Rows = list[tuple[int, list[str]]]


def csv_cells(path: Path, format: FileFormat) -> Cells:
    """The header of a CSV file, and its rows with their line numbers, each as wide as the
    header.
    """
    text, separator = open_text(path, format.encoding), format.separator_of(path.name)
    try:
        found = _rows(text, separator)
    except csv.Error as error:
        likely = _likely(text, separator, format)
        raise InvalidInput(f"{path} cannot be read as CSV: {error}{likely}.") from error
    if not found:
        raise InvalidInput(f"{path} is empty; a table starts with a line of column names.")
    found = _without_empty_columns(found)
    (first, header), *rows = found
    if len(header) == 1 and (likely := _likely(text, separator, format)):
        raise InvalidInput(f"{path}, line {first}: one column{likely}.")
    for number, cells in rows:
        if len(cells) != len(header):
            likely = _likely(text, separator, format) or _commas(header, cells, separator)
            raise InvalidInput(
                f"{path}, line {number}: {count(len(cells), 'cell')} where the header names "
                f"{count(len(header), 'column')}{likely}."
            )
    return Cells(
        str(path),
        header,
        [row for _, row in rows],
        [line for line, _ in rows],
        format,
        separator=separator,
        header_line=first,
    )


def csv_header(path: Path, format: FileFormat) -> list[str]:
    """What the columns of a CSV file are called, whatever its rows hold: they may be half
    written.
    """
    text, separator = open_text(path, format.encoding), format.separator_of(path.name)
    found = next((row for row in csv.reader(text, delimiter=separator) if row), [])
    names = [cell.strip() for cell in found]
    while len(names) > 1 and names[-1] == "":
        names.pop()
    return names


def _rows(text: TextIO, separator: str) -> _Rows:
    """Rows with the numbers of their lines."""
    lines = csv.reader(text, strict=True, delimiter=separator)
    return [(lines.line_num, [cell.strip() for cell in row]) for row in lines if row]


def _without_empty_columns(found: _Rows) -> _Rows:
    """Rows without the columns at the end that have neither a name nor a cell."""
    header = found[0][1]
    width = len(header)
    while width > 1 and header[width - 1] == "":
        width -= 1
    if width == len(header) or any(len(row) != len(header) or any(row[width:]) for _, row in found):
        return found
    return [(line, row[:width]) for line, row in found]


def _likely(text: TextIO, separator: str, format: FileFormat) -> str:
    """What a sentence says of the separator under which rows would fit; nothing where none is."""
    text.seek(0)
    sample = text.read(_SAMPLE)
    if len(sample) == _SAMPLE:
        sample = sample[: sample.rfind("\n") + 1]
    best: _Rows = []
    found = separator
    for other in _SEPARATORS:
        if other == separator:
            continue
        try:
            rows = _rows(StringIO(sample, newline=""), other)
        except csv.Error:
            continue
        width = len(rows[0][1]) if rows else 0
        fits = width > 1 and all(len(row) == width for _, row in rows)
        if fits and width > (len(best[0][1]) if best else 1):
            best, found = rows, other
    if not best:
        return ""
    cells = [cell for _, row in best[1:] for cell in row]
    commas = any(map(_COMMA.fullmatch, cells)) and not any(map(_POINT.fullmatch, cells))
    keys = {"separator": found} | ({"decimal": ","} if commas else {})
    if not commas and format.decimal == "," and any(map(_POINT.fullmatch, cells)):
        keys["decimal"] = "."
    called = "tabs" if found == "\t" else f'"{found}"'
    return f", and the cells look separated by {called}: {say(**keys)}"


def _commas(header: list[str], cells: list[str], separator: str) -> str:
    """What a sentence says of decimal commas between commas."""
    if separator != "," or len(cells) not in (2 * len(header), 2 * len(header) - 1):
        return ""
    return (
        "; decimal commas cannot be told from those between cells: write decimal points, or "
        'separate cells by ";"'
    )
