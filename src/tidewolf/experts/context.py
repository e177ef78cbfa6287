"""The features of a round, known before it: few cells with weights that are at least 0 and sum
to 1.

    x_t = sum_j phi_tj W_j,      phi_t >= 0,   sum_j phi_tj = 1,   W_j in K

so that x_t is a member of K. If nothing is known of a round there are no features, and an
expert that needs them is skipped.

Categories: the caller says which of n kinds a round is of, or how much of each:

    context j in 0 .. n-1:   phi_j = 1;        context w >= 0 with sum 1:   phi = w

Season: hat functions over a period,

    u = cells * (t mod period)/period,     j = floor(u),     s = u - j
    cell j has weight 1 - s, the next one s, all others 0;   after the last comes the first

The period is a number of rounds, and t the rounds seen so far; or it is a duration, and t the time
of the round, so that rounds that are lost do not shift it.
"""

import math
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, TypeAlias, final

import numpy as np

from tidewolf.core import arguments, arrays, errors, round_info, settings, values
from tidewolf.core.types import Floats, Int64s, NDArray

# The cells that count in a round, in any order, and their weights.
Features: TypeAlias = tuple[Int64s, Floats]

_ROUNDING = 1e-6  # How far from 1 the sum of weights may be, which then are scaled to it.


class Context(values.Value, ABC):
    """Abstract: the kind of the next round, from its side information.

    A subclass is a frozen dataclass with `features` and `cells`, how many cells there are, a whole
    number from 1: a field or a property.

    Examples
    --------
    >>> isinstance(tw.experts.Season(96), tw.experts.Context)
    True
    """

    cells: Any

    @abstractmethod
    def features(self, info: round_info.RoundInfo | None, t: int) -> Features | None:
        """The cells of the next round and their weights, nonnegative with sum 1; None if unknown.

        `t` is the number of rounds seen so far.
        """

    def shares(self, info: round_info.RoundInfo | None, t: int) -> Floats:
        """The weights of all cells, zeros if unknown; features that are none are refused."""
        shares, features = np.zeros(self.cells), self.features(info, t)
        if features is not None:
            np.add.at(shares, *round_info.checked_features(features, self.cells, t))
        return shares


@final
@dataclass(frozen=True, eq=False, repr=False)
class Categories(Context):
    """One decision per category; the category of a round is given as its context.

    Parameters
    ----------
    n : int
        How many categories there are.

    Examples
    --------
    >>> kinds = tw.experts.Categories(3)
    >>> kinds.features(tw.RoundInfo(context=2), 0)
    (array([2]), array([1.]))
    >>> kinds.features(tw.RoundInfo(context=[0.25, 0.0, 0.75]), 0)
    (array([0, 2]), array([0.25, 0.75]))
    """

    n: Annotated[int, settings.Count(most=2**31 - 1)]

    @property
    def cells(self) -> int:
        return self.n

    def features(self, info: round_info.RoundInfo | None, t: int) -> Features | None:
        if info is None or info.context is None:
            return None
        context = info.context
        if arrays.is_array(context):
            return self._weights(arrays.to_numpy(context))
        if not isinstance(context, int) or not 0 <= context < self.n:
            raise errors.InvalidInput(
                f"The context of a round is a category from 0 to {self.n - 1}, or weights of the "
                f"{self.n} categories, not {arguments.shown(context)}."
            )
        return arrays.frozen(np.array([context])), arrays.frozen(np.ones(1))

    def _weights(self, given: NDArray) -> Features:
        if given.shape != (self.n,):
            raise errors.WrongShape(
                f"The context of a round has a weight for each of the {self.n} categories; it has "
                f"shape {given.shape}."
            )
        weights: Floats = given.astype(np.float64)
        total = float(weights.sum())
        if not (weights >= 0.0).all() or not abs(total - 1.0) <= _ROUNDING:
            raise errors.InvalidInput(
                "The weights of a context are at least 0 and sum to 1; the least is "
                f"{weights.min():g} and the sum {total:g}."
            )
        cells = np.flatnonzero(weights)
        return arrays.frozen(cells), arrays.frozen(weights[cells] / total)


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
        return arrays.frozen(np.array([self.shares(None, t) for t in range(self.period)]))

    def _between(self, place: int, share: float) -> Features:
        here, there = place % self.cells, (place + 1) % self.cells
        if share == 0.0 or self.cells == 1:
            return arrays.frozen(np.array([here])), arrays.frozen(np.ones(1))
        return arrays.frozen(np.array([here, there])), arrays.frozen(np.array([1.0 - share, share]))
