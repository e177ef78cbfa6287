"""Times of rows: compared as numbers, told as they were given, and the next one expected.

    expected  =  the last time + the median of the last few differences

so that one row that is missing shifts nothing. A date is a number of seconds since 1970, one
without an offset read as it stands; other numbers are taken as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from datetime import time as Clock
from itertools import pairwise
from statistics import median_low
from typing import Any, NamedTuple, TypeAlias

from tidewolf.core.round_info import as_time

Stamp: TypeAlias = int | float
"""A time as a number of seconds; whole ones keep every digit."""
LARGEST = 2**63
"""Whole numbers that a database keeps are smaller."""
_DAY = len("2026-03-01")
_UTC = "+00:00"
WINDOW = 9
"""Differences that the next time is expected from."""


class Time(NamedTuple):
    """When a row is."""

    stamp: Stamp
    said: str | int | float
    """as it was given"""

    def plus(self, seconds: Stamp) -> Time:
        """The time so much later, said alike."""
        if not isinstance(self.said, str):
            later = self.stamp + seconds
            return Time(later, later)
        text = self.said.strip()
        date = datetime.fromisoformat(text) + timedelta(seconds=seconds)
        return time_of(_formatted_alike(date, text))


def _formatted_alike(date: datetime, text: str) -> str:
    """A date as another one is written: with no more of the clock than it takes."""
    if len(text) <= _DAY and date.time() == Clock():
        return date.date().isoformat()
    is_short = date.second == date.microsecond == 0 and text.count(":") <= 1 + (
        date.tzinfo is not None and not text.endswith("Z")
    )
    said = date.isoformat(" " if " " in text else "T", "minutes" if is_short else "auto")
    return f"{said[: -len(_UTC)]}Z" if text.endswith("Z") and said.endswith(_UTC) else said


def time_of(given: Any) -> Time:
    """A number, or a date in ISO form; anything else is refused."""
    if isinstance(given, int) and not isinstance(given, bool) and abs(given) < LARGEST:
        return Time(given, given)
    seconds = as_time(given, "The time of a row")
    stamp = int(seconds) if seconds == int(seconds) and abs(seconds) < LARGEST else seconds
    return Time(stamp, given if isinstance(given, str) else stamp)


def expected(times: Sequence[Time]) -> Time | None:
    """When the next row is, from the times of the last ones; None where that is not known."""
    if len(times) < 2:
        return None
    last = times[-WINDOW - 1 :]
    steps = [new.stamp - old.stamp for old, new in pairwise(last)]
    return last[-1].plus(median_low(steps))
