"""How text in files is written: what separates cells, what a decimal comma is, which bytes are
which letters, and which clock times are read from.

    costs.csv   time;SEA > DEN;DEN > NYC          separator = ";"   decimal = ","
                31.01.2024 06:00;12,5;7,25

Nothing is guessed: a file that does not fit is refused, and the sentence names what would fit.
"""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from typing import Annotated, Any, final
from zoneinfo import ZoneInfo

from tidewolf.core.arguments import as_text, shown
from tidewolf.core.errors import InvalidInput, WrongType
from tidewolf.core.settings import Text, validate

_NO_SEPARATORS = "\"'\r\n\0.+-"
"""What numbers, quotes and lines are made of, beside letters and digits."""


_CALLED = {"utf-8-sig": "utf-8", "iso8859-1": "latin-1"}
"""What encodings are called here, where Python calls them otherwise."""


class Separator(Text):
    """One character that separates cells."""

    def __call__(self, value: Any, what: str) -> str:
        text = as_text(value, what)
        if len(text) != 1 or text in _NO_SEPARATORS or text.isalnum():
            raise InvalidInput(
                f'{what} is one character such as ";", "," or a tab, not {shown(text)}.'
            )
        return text


class DecimalMark(Text):
    """A point or a comma."""

    def __call__(self, value: Any, what: str) -> str:
        text = as_text(value, what)
        if text not in (".", ","):
            raise InvalidInput(f'{what} is "." or ",", not {shown(text)}.')
        return text


class Encoding(Text):
    """The name of an encoding of text."""

    def __call__(self, value: Any, what: str) -> str:
        text = as_text(value, what)
        try:
            "".encode(text)
            name = codecs.lookup(text).name
        except (LookupError, ValueError):
            raise InvalidInput(
                f'{what} is the name of an encoding such as "utf-8", "cp1252" or "utf-16", not '
                f"{shown(text)}."
            ) from None
        return _CALLED.get(name, name)


class Timezone(Text):
    """The name of a time zone."""

    def __call__(self, value: Any, what: str) -> str:
        text = as_text(value, what)
        try:
            ZoneInfo(text)
        except (OSError, ValueError, LookupError):
            raise InvalidInput(
                f'{what} is the name of a time zone such as "Europe/Berlin" or "UTC", not '
                f"{shown(text)}."
            ) from None
        return text


@final
@dataclass(frozen=True)
class FileFormat:
    r"""How the text of CSV files is written, and the clock of times in any file.

    Parameters
    ----------
    separator : str, optional
        What separates cells, one character. None: a tab in .tsv files, elsewhere ";" where the
        decimal mark is a comma and "," where it is a point.
    decimal : str, default '.'
        What stands before the decimals of a number: a point or a comma.
    encoding : str, default 'utf-8'
        Which bytes are which letters, such as "utf-8", "cp1252", "latin-1" or "utf-16".
    timezone : str, optional
        Whose clock times without an offset are read from, such as "Europe/Berlin"; they become
        UTC. None: they are taken as they stand.

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

    separator: Annotated[
        str | None,
        Separator(
            'What separates cells, one character. None: a tab in .tsv files, elsewhere ";" where '
            'the decimal mark is a comma and "," where it is a point.'
        ),
    ] = None
    decimal: Annotated[
        str, DecimalMark("What stands before the decimals of a number: a point or a comma.")
    ] = "."
    encoding: Annotated[
        str,
        Encoding(
            'Which bytes are which letters, such as "utf-8", "cp1252", "latin-1" or "utf-16".'
        ),
    ] = "utf-8"
    timezone: Annotated[
        str | None,
        Timezone(
            'Whose clock times without an offset are read from, such as "Europe/Berlin"; they '
            "become UTC. None: they are taken as they stand."
        ),
    ] = None

    def __post_init__(self) -> None:
        validate(self)

    def separator_of(self, name: str) -> str:
        """What separates the cells of a file of this name."""
        if self.separator is not None:
            return self.separator
        if name.lower().removesuffix(".gz").endswith((".tsv", ".tab")):
            return "\t"
        return ";" if self.decimal == "," else ","


def say(**keys: str) -> str:
    """What to write so that a file is read, such as: say [files] separator = ";"."""
    said = [f'{key} = "{value}"' for key, value in keys.items()]
    return f"say [files] {' and '.join(said)}".replace("\t", r"\t")


def as_format(given: object, what: str = "format") -> FileFormat:
    """A format, if it is one."""
    if isinstance(given, FileFormat):
        return given
    raise WrongType(f"{what} must be a FileFormat, not {shown(given)}.")


PLAIN = FileFormat()
"""Commas between cells, points before decimals, UTF-8."""
