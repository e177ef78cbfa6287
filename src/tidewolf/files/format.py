"""How text in files is written: what separates cells, the decimal mark, the encoding, how dates are
written, and which clock times are read from.

    costs.csv   time;SEA > DEN;DEN > NYC          separator = ";"   decimal = ","
                31.01.2024 06:00;12,5;7,25        date_format = "%d.%m.%Y %H:%M"

Nothing is guessed: a file that does not fit is refused, and the error names what would fit.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, final
from zoneinfo import ZoneInfo

from tidewolf.core.arguments import as_text, shown
from tidewolf.core.errors import InvalidInput, WrongType
from tidewolf.core.settings import Text, validate

# Encodings that have another name here than in Python.
_CALLED = {"utf-8-sig": "utf-8", "iso8859-1": "latin-1"}


@dataclass(frozen=True)
class _Key(Text):
    """Text that `plain` turns into its plain form, or refuses by a ValueError or LookupError."""

    plain: Callable[[str], str] = field(default=str, kw_only=True)

    def __call__(self, value: Any, what: str) -> str:
        text = as_text(value, what)
        try:
            return self.plain(text)
        except (ValueError, LookupError, OSError):
            raise InvalidInput(f"{what} cannot be {shown(text)}. {self.sentence}") from None


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

    separator: Annotated[
        str | None,
        _Key(
            'What separates cells, one character. None: a tab in .tsv files, elsewhere ";" if the '
            'decimal mark is a comma and "," if it is a point.',
            plain=_separator,
        ),
    ] = None
    decimal: Annotated[
        str,
        Text("What stands before decimals: a point or a comma.", choices=(".", ",")),
    ] = "."
    encoding: Annotated[
        str,
        _Key(
            'Which bytes are which letters, such as "utf-8", "cp1252", "latin-1" or "utf-16".',
            plain=_encoding,
        ),
    ] = "utf-8"
    timezone: Annotated[
        str | None,
        _Key(
            'Whose clock times without an offset are read from, such as "Europe/Berlin"; they '
            "become UTC. None: they are taken as they stand.",
            plain=lambda name: ZoneInfo(name).key,
        ),
    ] = None
    date_format: Annotated[
        str | None,
        _Key(
            "How dates with year, month and day are written, in the codes of strptime, such as "
            '"%d.%m.%Y %H:%M". None: in ISO form, such as 2024-01-31T06:00.',
            plain=_date_format,
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


# Commas between cells, points before decimals, UTF-8, dates in ISO form.
PLAIN = FileFormat()
