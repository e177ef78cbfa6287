"""CSV files as cells: text in rows, also packed (.csv.gz).

A file that is packed is unpacked twice, the first time to see how much it is (`core.archive` has
the limits).
"""

from __future__ import annotations

import csv
import gzip
import zlib
from pathlib import Path
from typing import IO

from tidewolf.core.archive import most_unpacked, too_much
from tidewolf.core.errors import InvalidInput
from tidewolf.files.cells import Cells, count
from tidewolf.files.format import FileFormat

ENDINGS = (".csv", ".csv.gz", ".tsv", ".tsv.gz")


def csv_cells(path: Path, format: FileFormat) -> Cells:
    """The header of a CSV file, and its rows with their line numbers, each as wide as the
    header.
    """
    try:
        with _text(path, format.encoding) as text:
            lines = csv.reader(text, strict=True, delimiter=format.separator_of(path.name))
            found = [(lines.line_num, [cell.strip() for cell in row]) for row in lines if row]
    except (OSError, EOFError, UnicodeError, zlib.error, csv.Error) as error:
        encoding = format.encoding.upper()
        raise InvalidInput(f"{path} cannot be read as CSV in {encoding}: {error}.") from error
    if not found:
        raise InvalidInput(f"{path} is empty; a table starts with a line of column names.")
    header = found[0][1]
    for number, cells in found[1:]:
        if len(cells) != len(header):
            raise InvalidInput(
                f"{path}, line {number}: {count(len(cells), 'cell')} where the header names "
                f"{count(len(header), 'column')}."
            )
    return Cells(
        str(path), header, [row for _, row in found[1:]], [line for line, _ in found[1:]], format
    )


def _text(path: Path, encoding: str) -> IO[str]:
    """A CSV file as text, without a mark of its byte order."""
    encoding = "utf-8-sig" if encoding == "utf-8" else encoding
    if not path.name.lower().endswith(".gz"):
        return open(path, encoding=encoding, newline="")
    size, unpacked = path.stat().st_size, 0
    with gzip.open(path) as packed:
        while chunk := packed.read(1 << 20):
            unpacked += len(chunk)
            if unpacked > most_unpacked(size):
                raise InvalidInput(
                    f"{path} is not read: {too_much(size)}. Unpack it, if it is meant to be so "
                    "large."
                )
    return gzip.open(path, "rt", encoding=encoding, newline="")
