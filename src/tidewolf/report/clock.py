"""When the rounds were: the dates of a stream where it has them, else the numbers of the rounds,
from 1.

Axes are in rounds, evenly spaced; with dates their ticks stand at the rounds in which a round date
comes, and are called by it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import numpy as np

from tidewolf.core.batch import Stream
from tidewolf.core.types import Floats
from tidewolf.evaluation.formatting import tick

_FIRST_DATE = 1e8
"""Seconds before that, in 1973, are no dates but seconds of something else."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MONTH = timedelta(days=28)
_MONDAY = 4 * 86_400.0  # the first one since 1970
_STEPS = (
    *(1, 5, 15, 30, 60, 300, 900, 1_800, 3_600, 10_800, 21_600, 43_200),
    *(86_400, 172_800, 604_800, 1_209_600),
)
"""Steps between ticks up to a fortnight, in seconds."""
_LAST_DATE = (datetime(9999, 1, 1, tzinfo=UTC) - _EPOCH).total_seconds()


class Ticks(NamedTuple):
    """Where ticks are, in rounds, what they are called, and the name of the axis."""

    places: list[float]
    labels: list[str]
    title: str


class Clock(NamedTuple):
    """The times of rounds; without times, their numbers."""

    rounds: int
    times: Floats | None = None
    """seconds since 1970 that never go back"""
    form: str = ""
    """how a date is written"""

    def when(self, index: int) -> str:
        """The round of this index, from 0: its time with its number, or its number alone."""
        number = f"round {index + 1:,}"
        return number if self.times is None else f"{self.moment(index)} ({number})"

    def moment(self, index: int) -> str:
        """The time of the round, or its number."""
        if self.times is None:
            return f"{index + 1:,}"
        return _date(float(self.times[index])).strftime(self.form)

    def span(self, start: int, stop: int) -> str:
        """Rounds from `start`, from 0, up to before `stop`."""
        first, last = self.moment(start), self.moment(stop - 1)
        return first if first == last else f"{first} \u2013 {last}"

    def named_span(self, start: int, stop: int) -> str:
        """The same with the word round where rounds have no times."""
        if self.times is not None:
            return self.span(start, stop)
        return f"round{'s' * (stop - start > 1)} {self.span(start, stop)}"

    def ticks(self, most: int = 5) -> Ticks:
        """About so many ticks for an axis."""
        from matplotlib.ticker import MaxNLocator

        if self.times is None or self.times[-1] - self.times[0] < 2.0:
            found = MaxNLocator(most, steps=[1, 2, 2.5, 5, 10], integer=True)
            places = [p for p in found.tick_values(1, self.rounds) if 1 <= p <= self.rounds]
            return Ticks(places, [tick(round(place, 12)) for place in places], "round")
        return self._dates(self.times, most)

    def _dates(self, times: Floats, most: int) -> Ticks:
        first, last = float(times[0]), float(times[-1])
        seconds, step = _round_dates(first, last, most)
        places = np.interp(seconds, times, np.arange(1, len(times) + 1)).tolist()
        year = "\u2013".join(dict.fromkeys(_date(end).strftime("%Y") for end in (first, last)))
        title = "time" if step >= _MONTH else f"time, {year}"
        return Ticks(places, [_short(_date(second), step) for second in seconds], title)


def _round_dates(first: float, last: float, most: int) -> tuple[list[float], timedelta]:
    """At most so many round dates between two times, and about how far apart they are."""
    for step in _STEPS:
        begin = math.ceil((first - _MONDAY) / step) * step + _MONDAY
        if (last - begin) / step < most:
            return np.arange(begin, last + 1e-6, step).tolist(), timedelta(seconds=step)
    for months in (1, 2, 3, 6, *(12 * years for years in (1, 2, 5, 10, 20, 50, 100, 1000))):
        dates = [date for date in _months(first, last, months) if first <= date <= last]
        if len(dates) <= most:
            break
    return dates, months * _MONTH


def _months(first: float, last: float, months: int) -> list[float]:
    """The first days of every so many months."""
    begin, end = _date(first), _date(last)
    numbers = range(12 * begin.year // months * months, 12 * end.year + end.month, months)
    return [
        (datetime(n // 12, n % 12 + 1, 1, tzinfo=UTC) - _EPOCH).total_seconds() for n in numbers
    ]


def _short(date: datetime, step: timedelta) -> str:
    """As much of a date as ticks so far apart need."""
    if step >= _MONTH:
        return date.strftime("%b %Y") if step < 12 * _MONTH else date.strftime("%Y")
    if step >= timedelta(days=1) or (date.hour, date.minute, date.second) == (0, 0, 0):
        return f"{date.day} {date:%b}"
    return date.strftime("%H:%M" if step >= timedelta(minutes=1) else "%H:%M:%S")


def clock_of(stream: Stream, rounds: int) -> Clock:
    """The clock of the first rounds of a stream: its dates where every round has one and none goes
    back.
    """
    times = stream.time
    if times is None or not rounds:
        return Clock(rounds)
    seconds = np.asarray(times, dtype=np.float64)[:rounds]
    dated = bool(np.isfinite(seconds).all()) and _FIRST_DATE <= seconds[0] <= seconds[-1]
    if not dated or seconds[-1] >= _LAST_DATE or (np.diff(seconds) < 0.0).any():
        return Clock(rounds)
    return Clock(rounds, seconds, _form(seconds))


def _date(seconds: float) -> datetime:
    return _EPOCH + timedelta(seconds=seconds)


def _form(times: Floats) -> str:
    """As much of a date as tells the rounds apart."""
    for step, form in ((86_400.0, "%Y-%m-%d"), (60.0, "%Y-%m-%d %H:%M")):
        if not np.mod(times, step).any():
            return form
    return "%Y-%m-%d %H:%M:%S"


def positions(ticks: Ticks, rounds: int) -> Sequence[tuple[float, str]]:
    """Ticks as shares of an axis that has a column for each round."""
    return [
        (round((place - 0.5) / rounds, 5), label)
        for place, label in zip(ticks.places, ticks.labels, strict=True)
    ]
