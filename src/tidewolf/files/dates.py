"""Times of rounds: numbers, or dates in one format a column.

    2024-01-31   2024-01-31T06:00Z   2024/1/31 6:00       year first, ISO 8601 and its relatives
    31.01.2024 06:00                                      with points the day comes first
    31/01/2024   1-31-2024 6:00 PM                        day or month first: whichever fits
    31 Jan 2024  Jan 31, 2024                             months by their English names

The format is found from the whole column: it is the one under which every cell is a date. A column
that two formats fit (every day at most 12) is refused, and so is one whose format changes on the
way. Years have four digits. Times that are whole numbers keep every digit, such as nanoseconds
since 1970.

Clocks: a time with an offset (Z, +01:00) is read in UTC. One without is taken as it stands, unless
`timezone` says whose clock it was read from; then it becomes UTC too. Within a column all have
offsets or none has. When clocks go back, local hours come twice:

    without a timezone      the second 02:00 does not come after the first: refused, and the zones
                            are named whose clocks went back then
    with one                the first 02:00 is summer time and the second winter time, by their
                            order (one that comes once is summer time); an hour that the clocks
                            skipped in spring is refused
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta, timezone
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np

from tidewolf.core.errors import InvalidInput
from tidewolf.core.types import NDArray
from tidewolf.files.cells import Cell
from tidewolf.files.format import FileFormat
from tidewolf.files.numbers import number_in, to_float

_SUCH = "2024-01-31 or 2024-01-31T06:00"
_MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july", "august"),
    *("september", "october", "november", "december"),
)
_CLOCK = (
    r"(?:(?:[ ]*,[ ]*|[ ]+|T)(?P<hour>\d{1,2}):(?P<minute>\d{2})"
    r"(?::(?P<second>\d{2})(?:[.,](?P<fraction>\d{1,9}))?)?"
    r"(?:[ ]*(?P<half>[AaPp])\.?[Mm]\.?)?"
    r"(?:[ ]*(?P<offset>Z|UTC|GMT|[+-]\d{2}(?::?\d{2})?))?)?"
)
_DIGITS = re.compile(r"(?P<a>\d{1,4})(?P<mark>[-/.])(?P<b>\d{1,2})(?P=mark)(?P<c>\d{1,4})" + _CLOCK)
_DAY_NAMED = re.compile(
    r"(?P<day>\d{1,2})[-. ]+(?P<month>[A-Za-z]{3,9})[-., ]+(?P<year>\d{4})" + _CLOCK
)
_MONTH_NAMED = re.compile(
    r"(?P<month>[A-Za-z]{3,9})\.?[ ]+(?P<day>\d{1,2}),?[ ]+(?P<year>\d{4})" + _CLOCK
)
_NAMED = ((_DAY_NAMED, "day month-name year"), (_MONTH_NAMED, "month-name day year"))
ZONES = (
    "Europe/Berlin",
    "Europe/London",
    "Europe/Athens",
    "America/New_York",
    "America/Sao_Paulo",
    "America/Santiago",
    "Asia/Jerusalem",
    "Asia/Tehran",
    "Australia/Sydney",
    "Pacific/Auckland",
    "Africa/Cairo",
)
"""One for each rule by which clocks go back, to name where an hour comes twice."""


class _Format(NamedTuple):
    """How a date is written."""

    order: str
    """such as "day/month/year" """
    twelve: bool | None
    """whether hours are told by AM and PM; None where there is no hour"""
    offset: bool


class _Reading(NamedTuple):
    """What a text says under one format."""

    format: _Format
    date: datetime


class ClockChange(NamedTuple):
    """A zone whose clocks went back."""

    name: str
    second: str
    """the hour that came twice, the second time, with its offset"""


def read_times(
    cells: Sequence[Any], where: Sequence[str], format: FileFormat
) -> tuple[NDArray, bool]:
    """Times as numbers, or as dates where the first is no number; and whether they are in UTC."""
    if any(isinstance(cell, date | time | timedelta) for cell in cells):
        return _typed(cells, where), False
    texts = ["" if cell is None else str(cell).strip() for cell in cells]
    if texts and _is_number(texts[0], format):
        return _numbers(texts, where, format), False
    return _dates(texts, where)


def looks_like_a_time(cell: Any) -> bool:
    """Whether a cell is a date, in any of the formats."""
    if isinstance(cell, date | time):
        return True
    patterns = (_DIGITS, *(pattern for pattern, _ in _NAMED))
    return isinstance(cell, str) and any(each.fullmatch(cell.strip()) for each in patterns)


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
        now = next((each for each in readings if last is None or each > last), first)
        found.append(np.datetime64(now.replace(tzinfo=None), "us"))
        last = now
    return np.array(found)


def is_long(times: NDArray) -> bool:
    """Whether they are whole numbers with more digits than floats keep."""
    return times.dtype.kind in "iu" and int(times.max(initial=0)) > 2**53


def clock_text(moment: Any) -> str:
    """A time as sentences have it: a date as short as it can be, or a number."""
    if not isinstance(moment, np.datetime64):
        return f"{moment}"
    text = str(moment.astype("datetime64[us]")).removesuffix(".000000")
    return text.removesuffix(":00") if text.count(":") == 2 else text


def clocks_went_back(before: Any, after: Any) -> ClockChange | None:
    """A zone in whose clocks the second of two dates, which does not come after the first, is an
    hour that came twice.
    """
    if not 0.0 <= (before - after) / np.timedelta64(1, "h") <= 1.0:
        return None
    try:
        naive = after.astype("datetime64[us]").item()
        for zone in ZONES:
            if _comes_twice(naive, ZoneInfo(zone)):
                second = naive.replace(tzinfo=ZoneInfo(zone), fold=1)
                return ClockChange(zone, second.isoformat(timespec="minutes"))
    except (ArithmeticError, ValueError, OSError, LookupError, AttributeError):
        pass
    return None


def _comes_twice(naive: datetime, clock: ZoneInfo) -> bool:
    first, second = (naive.replace(tzinfo=clock, fold=fold).astimezone(UTC) for fold in (0, 1))
    return second > first


def _is_number(text: str, format: FileFormat) -> bool:
    try:
        return math.isfinite(to_float(text, format.decimal))
    except ValueError:
        return False


def _numbers(texts: Sequence[str], where: Sequence[str], format: FileFormat) -> NDArray:
    with suppress(ValueError, OverflowError):
        whole = np.array([int(text) for text in texts], dtype=np.int64)
        if is_long(whole):
            return whole
    return np.array(
        [number_in(text, place, format) for text, place in zip(texts, where, strict=True)]
    )


def _typed(cells: Sequence[Cell], where: Sequence[str]) -> NDArray:
    """Dates of a spreadsheet, which are dates in every cell or in none."""
    found = []
    for cell, place in zip(cells, where, strict=True):
        if isinstance(cell, str):
            raise InvalidInput(
                f"{place}: {cell!r} is text and other cells of the column are dates; day and month "
                "may be exchanged in those: make all of them dates, or all of them text such as "
                f"{_SUCH}."
            )
        if isinstance(cell, datetime | date):
            found.append(np.datetime64(cell, "us"))
            continue
        what = "is empty" if cell is None else f"holds {cell}, which is no date"
        raise InvalidInput(f"{place}: the cell {what}, and every row needs one.")
    return np.array(found)


def _dates(texts: Sequence[str], where: Sequence[str]) -> tuple[NDArray, bool]:
    """Dates under the one format that fits all of them; and whether they are in UTC."""
    if (plain := _iso(texts)) is not None:
        return plain
    fitting: dict[str, list[datetime]] = {}
    last: dict[str, _Reading] = {}
    for i, (text, place) in enumerate(zip(texts, where, strict=True)):
        read = {each.format.order: each for each in _readings(text)}
        if not read:
            raise InvalidInput(f"{place}: {_no_date(text)}")
        if i == 0:
            fitting, last = {order: [] for order in read}, read
        kept = {order: fitting[order] for order in fitting if order in read}
        if not kept:
            raise InvalidInput(
                f"{place}: {text!r} is {' or '.join(read)} and the dates before are "
                f"{' or '.join(fitting)}, such as {texts[i - 1]!r}; a column has one date format."
            )
        order = next(iter(kept))
        if (changed := _changed(last[order].format, read[order].format)) is not None:
            raise InvalidInput(
                f"{place}: {text!r} {changed}, such as {texts[i - 1]!r}; a column has one date "
                "format."
            )
        last = {
            each: _Reading(_completed(last[each].format, read[each].format), read[each].date)
            for each in kept
        }
        for each, dates in kept.items():
            dates.append(read[each].date)
        fitting = kept
    if len({tuple(dates) for dates in fitting.values()}) > 1:
        first, second = fitting
        raise InvalidInput(
            f"{where[0]}: {texts[0]!r} and every date after it can be {first} or {second}; write "
            f"them as {_SUCH}."
        )
    found = next(iter(fitting.values()))
    utc = next(iter(last.values())).format.offset
    return np.array([np.datetime64(_plain(each), "us") for each in found]), utc


def _iso(texts: Sequence[str]) -> tuple[NDArray, bool] | None:
    """The dates where all are as Python writes them, the usual case at its usual speed."""
    try:
        found = [datetime.fromisoformat(text) for text in texts]
        aware = {each.tzinfo is not None for each in found}
        if len(aware) == 1:
            return np.array([np.datetime64(_plain(each), "us") for each in found]), aware.pop()
    except (ValueError, OverflowError):
        pass
    return None


def _changed(before: _Format, now: _Format) -> str | None:
    """What a format has otherwise than the dates before."""
    if before.offset != now.offset:
        told = "has an offset and the dates before have none"
        return told if now.offset else "has no offset and the dates before have one"
    if None not in (before.twelve, now.twelve) and before.twelve != now.twelve:
        told = "has AM or PM and the times before have not"
        return told if now.twelve else "has neither AM nor PM and the times before have"
    return None


def _completed(before: _Format, now: _Format) -> _Format:
    return now if now.twelve is not None else now._replace(twelve=before.twelve)


def _plain(found: datetime) -> datetime:
    """A date without its offset, which is UTC's where it has one."""
    if found.tzinfo is None:
        return found
    return found.astimezone(UTC).replace(tzinfo=None)


class _Clock(NamedTuple):
    """The time of day in a date."""

    since_midnight: timedelta
    twelve: bool | None
    offset: timezone | None


def _readings(text: str) -> Iterator[_Reading]:
    """What a text says under each format that it fits."""
    with suppress(ValueError, OverflowError):
        found = datetime.fromisoformat(text)
        _plain(found)
        twelve = False if len(text) > len("2024-01-31") else None
        yield _Reading(_Format("year-month-day", twelve, found.tzinfo is not None), found)
        return
    for order, numbers, match in _orders(text):
        with suppress(ValueError, OverflowError):
            clock = _clock(match)
            found = (datetime(*numbers) + clock.since_midnight).replace(tzinfo=clock.offset)
            _plain(found)
            yield _Reading(_Format(order, clock.twelve, clock.offset is not None), found)


def _orders(text: str) -> Iterator[tuple[str, tuple[int, int, int], re.Match[str]]]:
    """The orders that a date may be written in, with year, month and day under each."""
    if match := _DIGITS.fullmatch(text):
        first, mark, second, third = (match[name] for name in ("a", "mark", "b", "c"))
        a, b, c = int(first), int(second), int(third)
        if len(first) == 4:
            yield mark.join(("year", "month", "day")), (a, b, c), match
        elif len(first) <= 2 and len(third) == 4:
            yield mark.join(("day", "month", "year")), (c, b, a), match
            if mark != ".":
                yield mark.join(("month", "day", "year")), (c, a, b), match
    named = (
        (_DAY_NAMED, "day, name of the month, year"),
        (_MONTH_NAMED, "name of the month, day, year"),
    )
    for pattern, order in named:
        if match := pattern.fullmatch(text):
            name = match["month"].lower()
            month = [i for i, each in enumerate(_MONTHS, 1) if name in (each, each[:3])]
            if month:
                yield order, (int(match["year"]), month[0], int(match["day"])), match


def _clock(found: re.Match[str]) -> _Clock:
    """The time of day; a ValueError where there is no such time."""
    if found["hour"] is None:
        return _Clock(timedelta(), None, None)
    hour, minute, second = (int(found[name] or 0) for name in ("hour", "minute", "second"))
    fraction = int((found["fraction"] or "0")[:6].ljust(6, "0"))
    half = (found["half"] or "").lower()
    if half:
        if not 1 <= hour <= 12:
            raise ValueError
        hour = hour % 12 + (12 if half == "p" else 0)
    if minute > 59 or second > 59 or hour > 24 or (hour == 24 and (minute, second) != (0, 0)):
        raise ValueError
    since = timedelta(hours=hour, minutes=minute, seconds=second, microseconds=fraction)
    return _Clock(since, bool(half), _offset(found["offset"]))


def _offset(text: str | None) -> timezone | None:
    if text is None:
        return None
    if text in ("Z", "UTC", "GMT"):
        return UTC
    digits = text[1:].replace(":", "").ljust(4, "0")
    size = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return timezone(-size if text[0] == "-" else size)


def _no_date(text: str) -> str:
    """What is wrong with a text that is no date, as a sentence."""
    if text == "":
        return "the cell is empty, and every row needs a time."
    match = _DIGITS.fullmatch(text)
    if match and max(len(match["a"]), len(match["c"])) <= 2:
        return f"{text!r} has a year of two digits; write it with four, such as {_SUCH}."
    if match and match["mark"] == "." and len(match["c"]) == 4 and int(match["b"]) > 12:
        return f"{text!r} is no date; with points the day comes first, as in 31.01.2024."
    return f"{text!r} is neither a number nor a date such as {_SUCH}."
