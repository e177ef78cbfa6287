"""Summarise the played points of a run: their means over parts of its rounds, in memory that does
not grow with the number of rounds.

    part p = rounds floor(p T/P) to floor((p + 1) T/P) - 1,   mean_p = the mean of x_t over part p,
    P = min(T, MAX_PARTS, MAX_NUMBERS/entries)

A mean of members is a member. Points are added up in their own array library and leave it once a
part.
"""

from __future__ import annotations

import math
from typing import Any, final

import numpy as np

from tidewolf.core.arrays import like, namespace, to_numpy
from tidewolf.core.types import Array, Floats, Int64s, Shape
from tidewolf.evaluation.metrics import RoundNumbers

MAX_PARTS = 120
"""At most so many parts."""
MAX_NUMBERS = 1 << 22
"""At most so many numbers in all, or one point where that is larger."""


class TrajectorySummary:
    """The means so far; complete once every round was seen."""

    def __init__(self, rounds: int, shape: Shape) -> None:
        parts = min(rounds, MAX_PARTS, max(1, MAX_NUMBERS // max(1, math.prod(shape))))
        self.ends: Int64s = np.arange(1, parts + 1) * rounds // max(1, parts)
        """after how many rounds each part ends"""
        self.means: Floats = np.zeros((parts, *shape))
        """(parts, *shape)"""
        self._t = self._begin = self._part = 0
        self._total: Any = None

    def see(self, points: Array, rounds: int) -> None:
        """The next rounds, played at one point, (1, *shape), or at a point each,
        (rounds, *shape).
        """
        done = 0
        while done < rounds:
            end = int(self.ends[self._part])
            count = min(rounds - done, end - self._t)
            if points.shape[0] == 1:
                added = points[0, ...] if count == 1 else count * points[0, ...]
            else:
                added = namespace(points).sum(points[done : done + count, ...], axis=0)
            self._total = added if self._total is None else self._total + added
            self._t, done = self._t + count, done + count
            if self._t == end:
                self.means[self._part] = to_numpy(self._total) / (end - self._begin)
                self._begin, self._part, self._total = end, self._part + 1, None

    def tell(self, total: Floats) -> int:
        """The sum of the points of the part so far, and which part that is."""
        if self._total is None:
            total[:] = 0.0
        elif not np.may_share_memory(self._total, total):
            total[:] = to_numpy(self._total).reshape(-1)
        return self._part

    def took(self, rounds: int, total: Floats, part: int) -> None:
        """The next rounds, whose means of parts are in place, with the sum of those since, which
        who counts keeps up to date.
        """
        self._t, self._part = self._t + rounds, part
        self._begin = int(self.ends[part - 1]) if part else 0
        begun = self._t > self._begin
        self._total = total.reshape(self.means.shape[1:]) if begun else None

    def parts(self) -> tuple[Any, ...]:
        """Everything as arrays and numbers, for a file."""
        total = None if self._total is None else to_numpy(self._total)
        return self.means, self._t, self._begin, self._part, total

    def restore(self, parts: tuple[Any, ...], reference: Array) -> None:
        """What `parts` gave, for as many rounds of the same shape; points live where `reference`
        does.
        """
        means, *counts, total = parts
        self._t, self._begin, self._part = counts
        self.means = np.array(means)
        self._total = None if total is None else like(total, reference)

    @property
    def begins(self) -> Int64s:
        """Before which rounds each part begins, counted from 0."""
        return np.concatenate([[0], self.ends[:-1]]).astype(np.int64)

    @property
    def mean(self) -> Floats:
        """The mean of every played point."""
        return np.average(self.means, axis=0, weights=self.ends - self.begins)


@final
class Movement:
    """How far decisions moved so far: half the L1 change from one round to the next.

        churn_1 = 0,    churn_t = 1/2 sum_i |x_{t,i} - x_{t-1,i}|

    On a simplex it is the share that changed its place, on flows the traffic that was moved, with
    what it left and what it went to counted as one. Rounds that share a point move nothing. Only
    the last point is kept, so memory does not grow with the rounds.
    """

    def __init__(self, rounds: int) -> None:
        self._values: Floats = np.zeros(rounds)
        self._t = 0
        self._last: Array | None = None

    def see(self, points: Array, rounds: int, *, each: bool) -> None:
        """The next rounds, played at one point, or (`each`) at a point each, (rounds, *shape)."""
        t, xp = self._t, namespace(points)
        self._values[t] = self._from_last(points[0, ...] if each else points)
        self._values[t + 1 : t + rounds] = 0.0
        if each and rounds > 1:
            steps = xp.abs(points[1:, ...] - points[:-1, ...])
            sizes = to_numpy(xp.sum(steps, axis=tuple(range(1, points.ndim))))
            self._values[t + 1 : t + rounds] = 0.5 * sizes
        self._t, self._last = t + rounds, points[-1, ...] if each else points

    def tell(self, last: Floats) -> None:
        """That point, where there is one."""
        if self._last is not None and self._last is not last:
            last[:] = to_numpy(self._last)

    def took(self, churn: Floats, last: Floats) -> None:
        """The next rounds, measured elsewhere, the last of which was played at this point; who
        counts keeps it up to date.
        """
        stop = self._t + len(churn)
        self._values[self._t : stop] = churn
        self._t, self._last = stop, last

    def _from_last(self, x: Array) -> float:
        if self._last is None or x is self._last:
            return 0.0
        xp = namespace(x)
        return 0.5 * float(xp.sum(xp.abs(x - self._last)))

    @property
    def churn(self) -> RoundNumbers:
        """Of every round."""
        return RoundNumbers(self._values)

    def parts(self) -> tuple[Any, ...]:
        """Everything as arrays, for a file."""
        return self._values[: self._t], None if self._last is None else to_numpy(self._last)

    def restore(self, parts: tuple[Any, ...], reference: Array) -> None:
        """What `parts` gave, to resume from; points live where `reference` does."""
        values, last = parts
        self._t = len(values)
        self._values[: self._t] = values
        self._last = None if last is None else like(last, reference)
