"""Files of text: bytes as letters, in the encoding that is told and in no other.

Every file that UTF-8 cannot be is refused, and the sentence names the encoding that it looks like.
So is one that was told to be in an older encoding and is UTF-8: its letters would come out wrong
without a word. Packed files (.gz) are unpacked twice, the first time to see how much it is
(`core.archive` has the limits).
"""

from __future__ import annotations

import codecs
import gzip
import re
import zlib
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import TextIO

from tidewolf.core.archive import most_unpacked, too_much
from tidewolf.core.errors import InvalidInput
from tidewolf.files.format import say

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""What files begin with that say their encoding."""
_NO_TEXT = (
    (b"PK\x03\x04", "an archive, as Excel books are; books are called .xlsx"),
    (b"\xd0\xcf\x11\xe0", "an Excel book of the old kind; save it as .xlsx"),
    (b"\x1f\x8b", "packed by gzip; such files are called .csv.gz"),
    (b"PAR1", "a Parquet file; such files are called .parquet"),
)
_HIGH = bytes(range(0x80, 0x100))
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0e-\x1f]")
_CHUNK = 1 << 20


def open_text(path: Path, encoding: str) -> TextIO:
    """The text of a file, without a mark of its byte order; every letter of it can be read."""
    try:
        data = _bytes(path)
    except (OSError, EOFError, zlib.error) as error:
        raise InvalidInput(f"{path} cannot be read as CSV: {error}.") from error
    for start, what in _NO_TEXT:
        if data.startswith(start):
            raise InvalidInput(f"{path} cannot be read as CSV: it is {what}.")
    likely = likely_encoding(data)
    if likely != encoding and likely is not None and _contradicts(data, encoding, likely):
        raise _refused(path, 1, encoding, likely)
    if (wrong := _first_wrong(data, encoding)) is not None:
        raise _refused(path, data.count(b"\n", 0, wrong) + 1, encoding, likely)
    text = TextIOWrapper(BytesIO(data), encoding=encoding, newline="")
    if text.read(1) != "\ufeff":
        text.seek(0)
    return text


def likely_encoding(data: bytes) -> str | None:
    """The encoding that bytes look like; None where they look like none, or like no text."""
    for mark, name in _MARKS:
        if data.startswith(mark):
            return name
    start = data[:4096]
    if start.count(0) > len(start) // 4:
        return "utf-16-le" if start[1::2].count(0) >= start[::2].count(0) else "utf-16-be"
    if _CONTROL.search(data):
        return None
    if _first_wrong(data, "utf-8") is None:
        return "utf-8"
    # latin-1 has the same letters but for 32 bytes, which it has no letters for
    return "cp1252" if _first_wrong(data, "cp1252") is None else None


def _first_wrong(data: bytes, encoding: str) -> int | None:
    """Where bytes cease to be letters, found without keeping them."""
    decoder = codecs.getincrementaldecoder(encoding)()
    for at in range(0, len(data) + 1, _CHUNK):
        chunk = data[at : at + _CHUNK]
        try:
            text = decoder.decode(chunk, at + _CHUNK > len(data))
        except UnicodeError as error:
            start, given = getattr(error, "start", 0), getattr(error, "object", chunk)
            return max(at + start - (len(given) - len(chunk)), 0)
        if "\0" in text:
            return at
    return None


def _contradicts(data: bytes, encoding: str, likely: str) -> bool:
    """Whether a file that can be read as it is told to be would come out wrong."""
    if encoding.startswith(("utf-16", "utf-32")):
        return not likely.startswith(("utf-16", "utf-32"))
    if likely.startswith(("utf-16", "utf-32")):
        return True
    one_byte = len(_HIGH.decode(encoding, "replace")) == len(_HIGH)
    return likely == "utf-8" and one_byte and not data.isascii()


def _refused(path: Path, line: int, encoding: str, likely: str | None) -> InvalidInput:
    told = f"{path}, line {line}: the file cannot be read as CSV in {encoding.upper()}"
    if likely is None or likely == encoding:
        return InvalidInput(f"{told}; save it as UTF-8 text.")
    cure = "leave [files] encoding out" if likely == "utf-8" else say(encoding=likely)
    windows = " (Windows)" if likely == "cp1252" else ""
    return InvalidInput(f"{told}; it looks like {likely}{windows}: {cure}.")


def _bytes(path: Path) -> bytes:
    if not path.name.lower().endswith(".gz"):
        return path.read_bytes()
    size, unpacked = path.stat().st_size, 0
    with gzip.open(path) as packed:
        while chunk := packed.read(1 << 20):
            unpacked += len(chunk)
            if unpacked > most_unpacked(size):
                raise InvalidInput(
                    f"{path} is not read: {too_much(size)}. Unpack it, if it is meant to be so "
                    "large."
                )
    with gzip.open(path) as packed:
        return packed.read()
