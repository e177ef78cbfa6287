"""How text in files is written: what separates cells, the decimal mark, the encoding, how dates are
written, and which clock times are read from.

    costs.csv   time;SEA > DEN;DEN > NYC          separator = ";"   decimal = ","
                31.01.2024 06:00;12,5;7,25        date_format = "%d.%m.%Y %H:%M"

Nothing is guessed: a file that does not fit is refused, and the error names what would fit.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Annotated, Any, final
from zoneinfo import ZoneInfo

import numpy as np

from tidewolf.core.arguments import as_text, shown
from tidewolf.core.errors import InvalidInput, WrongType
from tidewolf.core.settings import Text, validate
from tidewolf.core.types import NDArray

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
    if isinstance(given, FileFormat):
        return given
    raise WrongType(f"{what} must be a FileFormat, not {shown(given)}.")


# Commas between cells, points before decimals, UTF-8, dates in ISO form.
PLAIN = FileFormat()


# --- dates ----------------------------------------------------------------------------------------
#
# Times of rounds: numbers, dates in ISO form, or dates in a declared `date_format`.
#
# Whole numbers keep every digit, such as nanoseconds since 1970. A date in another form is refused,
# and the error names the formats under which the whole column could be read.
#
# Clocks: a time with an offset (Z, +01:00) is read in UTC. One without is taken as it stands,
# unless `timezone` says whose clock it was read from; then it becomes UTC too. Within a column all
# have offsets or none has. When clocks go back, local hours come twice:
#
#     without a timezone      the second 02:00 does not come after the first: refused
#     with one                the first 02:00 is summer time and the second winter time, by their
#                             order (one that comes once is summer time); an hour that the clocks
#                             skipped in spring is refused


_DAYS = (
    *("%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y"),
    *("%m-%d-%Y", "%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%d %b %Y", "%d-%b-%Y", "%d %B %Y"),
    *("%b %d, %Y", "%B %d, %Y", "%b %d %Y"),
)
_HOURS = (
    *("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", " %I:%M %p", " %I:%M:%S %p", "T%H:%M"),
    *("T%H:%M:%S", ", %H:%M", ", %I:%M %p", " %H:%M%z", " %H:%M %z", "T%H:%M%z"),
)
# Formats that an error may name.
_LIKELY = [day + hour for day in _DAYS for hour in _HOURS]


def read_dates(
    cells: Sequence[Any], where: Sequence[str], format: FileFormat
) -> tuple[NDArray, bool]:
    found = list[datetime]()
    for cell, place in zip(cells, where, strict=True):
        moment = _moment(cell, format.date_format)
        text = isinstance(cell, str)
        if moment is not None and text == isinstance(cells[0], str):
            found.append(moment)
            if (moment.tzinfo is None) == (found[0].tzinfo is None):
                continue
        form = format.date_format or "ISO form such as 2024-01-31 or 2024-01-31T06:00"
        likely = likely_formats(cells) if text and moment is None else []
        cure = f"; {say(date_format=likely[0])}" if likely else ""
        cure += "".join(f', or "{each}"' for each in likely[1:])
        raise InvalidInput(
            f"{place}: expected a date in {form}, text or a date as in the cells before, with an "
            f"offset from UTC in every cell or in none; received "
            f"{str('' if cell is None else cell)!r}{cure}."
        )
    utc = bool(found) and found[0].tzinfo is not None
    plain = [each.astimezone(UTC).replace(tzinfo=None) if utc else each for each in found]
    return np.array(plain, dtype="datetime64[us]"), utc


def _moment(cell: Any, date_format: str | None) -> datetime | None:
    with suppress(ValueError, OverflowError):
        if isinstance(cell, datetime):
            return cell
        if isinstance(cell, date):
            return datetime(cell.year, cell.month, cell.day)
        if isinstance(cell, str):
            text, plain = cell.strip(), datetime.fromisoformat
            found = plain(text) if date_format is None else datetime.strptime(text, date_format)
            if found.tzinfo is not None:
                found.astimezone(UTC)  # which may leave the calendar
            return found
    return None


def likely_formats(cells: Sequence[Any]) -> list[str]:
    likely = _LIKELY
    for cell in cells:
        likely = [each for each in likely if _moment(str(cell), each) is not None]
    return likely


def in_utc(times: NDArray, places: Sequence[str], zone: str) -> NDArray:
    """Dates of a clock in UTC. Of an hour that comes twice, the second is the one that would not
    come after the time before; an hour that never was is refused.
    """
    clock, found = ZoneInfo(zone), []
    last = None
    for naive, place in zip(times.astype("datetime64[us]").tolist(), places, strict=True):
        try:
            readings = [naive.replace(tzinfo=clock, fold=fold).astimezone(UTC) for fold in (0, 1)]
        except (OverflowError, AttributeError):  # years that only NumPy knows are whole numbers
            raise InvalidInput(f"{place}: the time is outside the calendar of {zone}.") from None
        first = readings[0]
        if first.astimezone(clock).replace(tzinfo=None) != naive:
            raise InvalidInput(
                f"{place}: there was no {naive} in {zone}, whose clocks skipped that hour; give "
                "times with their offset, or the right timezone in [files]."
            )
        last = next((each for each in readings if last is None or each > last), first)
        found.append(np.datetime64(last.replace(tzinfo=None), "us"))
    return np.array(found)


def clock_text(moment: Any) -> str:
    """A time as messages have it: a date as short as it can be, or a number."""
    if not isinstance(moment, np.datetime64):
        return f"{moment}"
    text = str(moment.astype("datetime64[us]")).removesuffix(".000000")
    return text.removesuffix(":00") if text.count(":") == 2 else text
