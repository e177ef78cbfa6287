"""A line of JSON: a row, or information about the next round; and the times of rows.

    {"time": "2026-03-01T12:00", "costs": {"SEA > DEN": 1.2, ...}, "capacities": {...},
     "played": {...}, "unavailable": ["DEN > NYC"]}

A row holds the costs, capacities, demands, weights and budget of a round, by name or as a list, and
`played`, if that was not the decision. `unavailable`, `context` and `advice` belong to the round
after the row. A line that has only these, and perhaps a `time`, is about the next round, which is
then decided again. `time` or `round` identifies the row.

The next row is expected at the last time plus the median of the last few differences, so that one
missing row shifts nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median_low
from typing import Any, NamedTuple, NoReturn

from tidewolf.core.arguments import shown
from tidewolf.core.errors import InvalidInput
from tidewolf.core.names import nearest_names
from tidewolf.core.round_info import as_time

NUMBERS = ("costs", "capacities", "demands", "weights", "budgets")
INFO = ("unavailable", "context", "advice")
KEYS = ("time", "round", *NUMBERS, "played", *INFO)
LONGEST = 1 << 26
"""Bytes of a line, at most."""
WINDOW = 9
"""Differences that the next time is computed from."""
_LARGEST = 2**63
"""Whole numbers in a database are smaller."""
_EXAMPLE = '{"costs": {"SEA > DEN": 1.2}}'


class Time(NamedTuple):
    """The time of a row."""

    stamp: int | float
    """seconds since 1970 for a date, else the number itself; whole numbers keep every digit"""
    given: str | int | float

    def plus(self, seconds: float) -> Time:
        """A later time, written in the same style."""
        if not isinstance(self.given, str):
            return time_of(self.stamp + seconds)
        text = self.given.strip()
        date = datetime.fromisoformat(text) + timedelta(seconds=seconds)
        if len(text) == len("2026-03-01") and date == datetime(*date.timetuple()[:3]):
            return time_of(date.date().isoformat())
        is_short = date.second == date.microsecond == 0 and text[16:17] != ":"
        later = date.isoformat(" " if " " in text else "T", "minutes" if is_short else "auto")
        return time_of(later.replace("+00:00", "Z") if text.endswith("Z") else later)


def time_of(given: Any) -> Time:
    """The time that a number or a date in ISO form gives."""
    if isinstance(given, int) and not isinstance(given, bool) and abs(given) < _LARGEST:
        return Time(given, given)
    seconds = as_time(given, "The time of a row")
    stamp = int(seconds) if seconds == int(seconds) and abs(seconds) < _LARGEST else seconds
    return Time(stamp, given if isinstance(given, str) else stamp)


def expected(times: Sequence[Time]) -> Time | None:
    """The time of the next row, from those of the last ones; None if it is not known."""
    if len(times) < 2:
        return None
    last = times[-WINDOW - 1 :]
    return last[-1].plus(median_low([new.stamp - old.stamp for old, new in pairwise(last)]))


class Line(NamedTuple):
    """The content of a line.

    Parameters
    ----------
    time : Time, optional
        The time of the round.
    round : int, optional
        The number of the round, from 1.
    numbers : mapping
        Costs, capacities and so on, by key; empty if the line is not a row.
    played : mapping or list, optional
        The point that was played, if it was not the decision.
    info : mapping
        Information about the next round: `unavailable`, `context`, `advice`.

    Examples
    --------
    >>> from tidewolf.live import parse
    >>> line = parse('{"time": "2026-03-01T12:00", "costs": [1.0, 2.0]}')
    >>> line.is_row, line.numbers
    (True, {'costs': [1.0, 2.0]})
    """

    time: Time | None = None
    round: int | None = None
    numbers: Mapping[str, Any] = {}
    played: Any = None
    info: Mapping[str, Any] = {}

    @property
    def is_row(self) -> bool:
        """Whether the line has feedback on a round."""
        return bool(self.numbers) or self.played is not None


def parse(text: str | bytes) -> Line:
    """The content of a line of JSON.

    Parameters
    ----------
    text : str or bytes
        The line, in UTF-8.

    Returns
    -------
    Line
        A row, or information about the next round.

    Raises
    ------
    InvalidInput
        If the line is not a JSON object, or has an unknown key.

    Examples
    --------
    >>> from tidewolf.live import parse
    >>> parse('{"unavailable": ["DEN > NYC"]}').info
    {'unavailable': ['DEN > NYC']}
    """
    if len(text) > LONGEST:
        raise InvalidInput(f"A row has at most {LONGEST:,} bytes; this line has more.")
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8-sig")
        found = json.loads(text, parse_constant=_refuse, object_pairs_hook=_unique)
        if not isinstance(found, dict) or all(value is None for value in found.values()):
            raise ValueError("it is no object, or empty")
    except (ValueError, RecursionError) as error:  # of json, of UTF-8, of too many digits
        raise InvalidInput(f"Expected a row such as {_EXAMPLE}, not this line: {error}.") from None
    if "budget" in found:
        found.setdefault("budgets", found.pop("budget"))
    for key in found.keys() - {*KEYS}:
        near = nearest_names(key, KEYS) or f"a row has {', '.join(KEYS)}"
        raise InvalidInput(f"A row has no {key!r}: {near}.")
    given = {key: value for key, value in found.items() if value is not None}
    number = given.get("round")
    if number is not None and (type(number) is not int or number < 1):
        raise InvalidInput(f"The round of a row is its number, from 1, not {shown(number)}.")
    return Line(
        time=time_of(given["time"]) if "time" in given else None,
        round=number,
        numbers={key: given[key] for key in NUMBERS if key in given},
        played=given.get("played"),
        info={key: given[key] for key in INFO if key in given},
    )


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a finite number")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("it has a key twice")
    return found
