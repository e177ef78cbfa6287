"""Labels of rounds on axes: the dates of a stream if it has them, else the numbers of the rounds,
from 1.

Axes are in rounds, evenly spaced; with dates their ticks stand at the rounds in which a round date
comes, and are called by it.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np

from tidewolf.core.batch import Stream
from tidewolf.core.types import Floats
from tidewolf.evaluation.formatting import tick

_FIRST_DATE = 1e8
"""Seconds before that, in 1973, are no dates but seconds of something else."""
_LAST_DATE = datetime(9999, 1, 1, tzinfo=UTC).timestamp()
_DATES = ["%Y", "%b", "%d %b", "%H:%M", "%H:%M", "%H:%M:%S"]
"""How ticks are written that are years, months, days, hours, minutes or seconds apart."""


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
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, num2date

        first, last = (_date(float(times[i])) for i in (0, -1))
        locator = AutoDateLocator(minticks=3, maxticks=most + 1, tz=UTC)
        found = [d for d in locator.tick_values(first, last) if first <= num2date(d, UTC) <= last]
        starts = ["", *_DATES[:5]]  # of ticks at the start of a year, month, day
        labels = ConciseDateFormatter(
            locator, tz=UTC, formats=_DATES, zero_formats=starts, show_offset=False
        ).format_ticks(found)
        seconds = [num2date(each, UTC).timestamp() for each in found]
        places = np.interp(seconds, times, np.arange(1, len(times) + 1)).tolist()
        years = "\u2013".join(dict.fromkeys(f"{end:%Y}" for end in (first, last)))
        return Ticks(places, labels, f"time, {years}")


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
    return datetime.fromtimestamp(seconds, UTC)


def _form(times: Floats) -> str:
    """As much of a date as tells the rounds apart."""
    for step, form in ((86_400.0, "%Y-%m-%d"), (60.0, "%Y-%m-%d %H:%M")):
        if not np.mod(times, step).any():
            return form
    return "%Y-%m-%d %H:%M:%S"
