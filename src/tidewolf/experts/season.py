"""A season: hat functions over a period.

    u = cells * (t mod period)/period,     j = floor(u),     s = u - j
    cell j has weight 1 - s, the next one s, all others 0;   after the last comes the first

The period is a number of rounds, and t the rounds seen so far; or it is a duration, and t the time
of the round, so that rounds that are lost do not shift it.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, final

import numpy as np

from tidewolf.core import arguments, arrays, errors, round_info, settings
from tidewolf.core.types import Floats
from tidewolf.experts.context import Context, Features

MOST_ENTRIES = 1 << 20  # Entries of a table of a period at most.
# How many seconds each unit of a duration has.
SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(s|min|h|d|w)")


def is_duration(text: str) -> bool:
    return _DURATION.fullmatch(text.strip()) is not None


def duration(text: str, what: str) -> float:
    """The seconds of a duration such as 90s, 15min, 12h, 1d or 1w."""
    found = _DURATION.fullmatch(text.strip())
    seconds = float(found[1]) * SECONDS[found[2]] if found else 0.0
    if not 0.0 < seconds < arrays.LARGEST_COUNT:
        raise errors.InvalidInput(
            f"{what} is a number of rounds, or a duration such as 90s, 15min, 12h, 1d or 1w; not "
            f"{arguments.shown(text)}."
        )
    return seconds


@dataclass(frozen=True)
class PeriodSetting(settings.Check):
    """A number of rounds, or a duration."""

    words: ClassVar[str] = "a number of rounds, or a duration such as 1d"

    def __call__(self, value: Any, what: str) -> int | str:
        if isinstance(value, str):
            duration(value, what)
            return "".join(value.split())
        return arrays.as_count(value, what)

    def read(self, value: Any) -> int | str | None:
        return value if type(value) in (int, str) else None


@final
@dataclass(frozen=True, eq=False, repr=False)
class Season(Context):
    """One decision per time of the period, interpolated between equally spaced cells.

    Parameters
    ----------
    period : int or str
        The period: a number of rounds, or a duration such as "1d" with the times of the rounds.
    cells : int, default 8
        The number of decisions per period.

    Examples
    --------
    >>> season = tw.experts.Season(period=96, cells=8)
    >>> season.features(None, 6)                        # half way between the first two cells
    (array([0, 1]), array([0.5, 0.5]))
    >>> noon = tw.RoundInfo(time="2026-03-01T12:00")
    >>> tw.experts.Season("1d", cells=4).features(noon, 0)
    (array([2]), array([1.]))
    """

    period: Annotated[int | str, PeriodSetting()]
    cells: Annotated[int, settings.Count(most=2**31 - 1)] = 8

    @cached_property
    def seconds(self) -> float | None:
        """The period in seconds; None if it is a number of rounds."""
        return duration(self.period, "The period") if isinstance(self.period, str) else None

    def features(self, info: round_info.RoundInfo | None, t: int) -> Features | None:
        if isinstance(self.period, int):
            place, rest = divmod((t % self.period) * self.cells, self.period)
            return self._between(place, rest / self.period)
        if info is None or info.time is None or self.seconds is None:
            return None
        share, place_of = math.modf(self.cells * ((info.time % self.seconds) / self.seconds))
        return self._between(int(place_of), share)

    @cached_property
    def table(self) -> Floats | None:
        """The weights of all cells in each round of a period, one row each; None if that is a
        duration, or long.
        """
        if isinstance(self.period, str) or self.period * self.cells > MOST_ENTRIES:
            return None
        table = np.zeros((self.period, self.cells))
        for t, row in enumerate(table):
            features = self.features(None, t)
            assert features is not None
            np.add.at(row, *features)
        return arrays.frozen(table)

    def _between(self, place: int, share: float) -> Features:
        """The features this share of the way from a cell to the next."""
        here, there = place % self.cells, (place + 1) % self.cells
        if share == 0.0 or self.cells == 1:
            return arrays.frozen(np.array([here])), arrays.frozen(np.ones(1))
        return arrays.frozen(np.array([here, there])), arrays.frozen(np.array([1.0 - share, share]))
