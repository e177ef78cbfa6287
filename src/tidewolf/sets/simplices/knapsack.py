"""The fractional knapsack: amounts between 0 and their bounds, of a total weight at most, or
exactly, given.

    { 0 <= x <= upper, <w, x> <= total }       at_most=False:  { 0 <= x <= upper, <w, x> = total }

with w > 0. With u_i = min(upper_i, total/w_i), the largest amount of one thing, nothing changes.
Oracle: fill up in the order of d_i/w_i, the cheapest first and the earlier among equals, the last
one in part; with at_most only as long as d_i < 0.

Center c = theta u. For an exact total theta = total/<w, u>. With at_most theta <= 1/2 has most
room: the nearest facets x_i = 0 are at theta min u, the facet <w, x> = total at
(total - theta <w, u>)/|w|, equal for theta = total/(<w, u> + |w| min u). Those are also the inner
radius; for an exact total the facets x_i = 0 and x_i = u_i are at
min(c_i, u_i - c_i)/sqrt(1 - w_i^2/|w|^2) within the hull. Exact.

The largest distance between members is hard to find in general. Two upper bounds, each one pass of
the oracle: since (x_i - c_i)^2 lies below its chord over [0, u_i],

    radius^2    <=  theta^2 |u|^2 + (1 - 2 theta) (max <u, x>, min where theta > 1/2)
    diameter^2  <=  max { <u, t> : 0 <= t <= u, <w, t> <= 2 total },   t_i = |x_i - y_i|,
                    t_i^2 <= u_i t_i,  t_i <= x_i + y_i,

with 2 min(total, <w, u> - total) for an exact total, where t_i <= 2 u_i - x_i - y_i too. The radius
is exact where the pass fills nothing in part, and both are for simplices and boxes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, final

import numpy as np

from tidewolf.core.arrays import (
    as_direction,
    as_point,
    eps_of,
    frozen,
    inner,
    length,
    like,
    to_numpy,
)
from tidewolf.core.errors import EmptySet, InvalidInput, WrongShape
from tidewolf.core.oracle import Answer
from tidewolf.core.settings import Flag, Number, Numbers
from tidewolf.core.types import Array, Floats, Int64s, Shape
from tidewolf.core.vertices import Sparse, Vertex
from tidewolf.sets.base import (
    ConvexSet,
    LinearDescription,
    Polyhedral,
    Projectable,
    Relaxable,
    clipped,
)

_FEW = 256
"""Up to how many entries sorting is faster than halving."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class Knapsack(ConvexSet, Projectable, Polyhedral, Relaxable):
    """Amounts between 0 and `upper` whose weight, the sum of `weights` times amounts, is at most
    `total`; or exactly, with at_most=False.

    Inner radius exact; radius and diameter upper bounds.

    Parameters
    ----------
    weights : array
        What one unit of each thing weighs, above 0.
    total : float
        The weight that is carried.
    upper : array, default 1.0
        The largest amount, above 0: one number for all things, or one for each.
    at_most : bool, default True
        Whether the weight may be less than `total`, too.

    Examples
    --------
    >>> K = tw.sets.Knapsack([1.0, 2.0, 4.0], total=4.0)
    >>> K.lmo(np.array([-1.0, -4.0, -4.0]))  # the second is best by weight, then the first
    array([1.  , 1.  , 0.25])
    """

    weights: Annotated[Array, Numbers("What one unit of each thing weighs, above 0.", axes=1)]
    total: Annotated[float, Number("The weight that is carried.", above=0.0)]
    upper: Annotated[
        Array,
        Numbers("The largest amount, above 0: one number for all things, or one for each."),
    ] = 1.0
    at_most: Annotated[bool, Flag("Whether the weight may be less than `total`, too.")] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        shape = tuple(self.weights.shape)
        if tuple(self.upper.shape) not in ((), shape):
            raise WrongShape(
                f"upper of Knapsack has shape {tuple(self.upper.shape)}; give one number, or one "
                f"for each of the {shape[0]} weights.",
                setting="upper",
            )
        upper = like(np.array(np.broadcast_to(to_numpy(self.upper), shape)), self.weights)
        for name, array in (("weights", self.weights), ("upper", upper)):
            if (wrong := np.flatnonzero(to_numpy(array) <= 0)).size:
                at = int(wrong[0])
                raise InvalidInput(
                    f"{name} of Knapsack must be greater than 0; at entry {at} there is "
                    f"{float(array[at]):g}. Leave out what has no room; what weighs nothing "
                    "belongs in a Box, and both in a Product.",
                    setting=name,
                )
        object.__setattr__(self, "upper", frozen(upper))
        with np.errstate(over="ignore"):
            most = float(self._w @ to_numpy(upper).astype(np.float64))
        if not math.isfinite(most) or not self._u.min() > np.finfo(np.float64).tiny:
            raise InvalidInput(
                "weights and upper of Knapsack differ in size by more than numbers do: measure in "
                "other units.",
                setting="upper",
            )
        if not self.at_most and self.total > most * (1 + self._rounding):
            raise EmptySet(
                f"A knapsack whose weight is at most {most:g} in all cannot weigh exactly "
                f"{self.total:g}: lower the total.",
                setting="total",
            )

    @property
    def shape(self) -> Shape:
        return tuple(self.weights.shape)

    @cached_property
    def dimension(self) -> int:
        n = len(self._w)
        return n if self.at_most else n - 1 if self.total < self._most * (1 - self._rounding) else 0

    @cached_property
    def center(self) -> Array:
        return frozen(like(self._share * self._u, self.weights))

    @cached_property
    def radius(self) -> float:
        unit, share = float(np.max(self._u)), self._share
        # squares of what is measured by the largest amount neither vanish nor overflow
        u = self._u / unit
        sign = 1.0 if share <= 0.5 else -1.0
        best = abs(1 - 2 * share) * (self._greedy_value(sign * u, self.total, self.at_most) / unit)
        return unit * math.sqrt(max(0.0, share**2 * inner(u, u) + best)) if self.dimension else 0.0

    @cached_property
    def diameter(self) -> float:
        budget = 2.0 * (self.total if self.at_most else min(self.total, self._most - self.total))
        unit = float(np.max(self._u))
        return (
            unit * math.sqrt(self._greedy_value(self._u / unit, budget, True) / unit)
            if self.dimension
            else 0.0
        )

    @cached_property
    def inner_radius(self) -> float:
        u, share, w = self._u, self._share, self._w
        if not self.dimension:
            return 0.0
        if self.at_most:
            return min(share * float(np.min(u)), (self.total - share * self._most) / length(w))
        along = np.sqrt(np.maximum(1 - (w / length(w)) ** 2, self._rounding))
        return min(share, 1 - share) * float(np.min(u / along))

    def tangent(self, direction: Array) -> Array:
        direction = as_direction(direction, self.shape)
        if self.at_most or not self.dimension:
            return direction if self.at_most else 0 * direction
        normal = like(self._w / length(self._w), direction)
        return direction - inner(normal, direction) * normal

    def infeasibility(self, x: Array) -> float:
        """The largest breach of a bound, or the distance to the half-space or plane of the
        total.
        """
        entries = to_numpy(as_point(x, self.shape, "The point")).astype(np.float64)
        off = (float(self._w @ entries) - self.total) / length(self._w)
        bounds = max(float(np.max(-entries)), float(np.max(entries - to_numpy(self.upper))))
        return max(0.0, bounds, off if self.at_most else abs(off))

    def answer(self, direction: Array, warm: Array | None = None) -> Answer:
        chosen, amounts = self._fill_greedily(
            -to_numpy(direction).astype(np.float64), self.total, self.at_most
        )
        return Answer(Sparse(self.shape, chosen.astype(np.int32), amounts))

    def atom(self, point: Array) -> Vertex:
        return Sparse.of(point)

    def project(self, y: Array) -> Array:
        """x = clip(y - t w, 0, u) with the t that meets the total, found by bisection over the
        kinks of its weight.

        In the order of y/w, t lies below the ratio at which full amounts reach the total, by max
        u/w at most: measured from there, ratios farther off may be clipped.
        """
        y = as_point(y, self.shape, "The point to project")
        w, u, entries = self._w, self._u, to_numpy(y).astype(np.float64)
        inside = np.clip(entries, 0.0, u)
        if self.at_most and w @ inside <= self.total:
            return like(inside, y)
        ratios, widths = entries / w, u / w
        order = np.argsort(-ratios)
        reached = int(np.searchsorted(np.cumsum((w * u)[order]), self.total * (1 - self._rounding)))
        far = float(np.max(widths))
        ratios = np.clip(ratios - ratios[order[min(reached, len(w) - 1)]], -far, far)
        kinks = np.sort(np.concatenate([ratios, ratios - widths]))
        low, high = 0, len(kinks) - 1
        while high - low > 1:
            middle = (low + high) // 2
            enough = float(w**2 @ np.clip(ratios - kinks[middle], 0.0, widths)) >= self.total
            low, high = (middle, high) if enough else (low, middle)
        full = ratios - widths > kinks[low]
        partial = (ratios > kinks[low]) & ~full
        spare = float((w**2 * ratios)[partial].sum()) + float((w * u)[full].sum()) - self.total
        t = spare / float((w[partial] ** 2).sum()) if partial.any() else kinks[low]
        return like(w * np.clip(ratios - t, 0.0, widths), y)

    def relax(self, y: Array) -> Array:
        """The box [0, u] around it."""
        return clipped(y, self.shape, 0.0, self._u)

    def description(self) -> LinearDescription:
        row, total = self._w[None, :], np.array([self.total])
        bounds = (np.zeros(len(self._w)), self._u)
        if self.at_most:
            return LinearDescription(*bounds, A_ub=row, b_ub=total)
        return LinearDescription(*bounds, A_eq=row, b_eq=total)

    @classmethod
    def examples(cls) -> Sequence[Knapsack]:
        return (
            cls([2.0], 1.0),
            cls([1.0, 2.0, 3.0, 4.0], 5.0, [1.0, 2.0, 0.5, 9.0]),
            cls([0.5, 1.0, 2.0], 2.0, at_most=False),
            cls([0.1, 0.2, 0.3], 0.6, at_most=False),
        )

    def _fill_greedily(self, value: Floats, budget: float, at_most: bool) -> tuple[Int64s, Floats]:
        """The entries and amounts that have most value, for weights in sum at most, or exactly,
        `budget`.
        """
        ratios, loads = -value / self._w, self._w * self._u
        worth = np.flatnonzero(value > 0) if at_most else np.arange(len(value))
        last = _threshold(ratios[worth], loads[worth], budget)
        ties = worth[ratios[worth] == last]
        before = worth[ratios[worth] < last]
        full = np.append(
            before, ties[np.cumsum(loads[ties]) <= budget - float(np.sum(loads[before]))]
        )
        rest = ties[len(full) - len(before) :][:1]
        amounts = self._u.copy()
        amounts[rest] = np.clip(
            (budget - float(np.sum(loads[np.sort(full)]))) / self._w[rest], 0.0, self._u[rest]
        )
        chosen = np.sort(np.append(full, rest))
        chosen = chosen[amounts[chosen] > 0]
        return chosen, amounts[chosen]

    def _greedy_value(self, value: Floats, budget: float, at_most: bool) -> float:
        chosen, amounts = self._fill_greedily(value, budget, at_most)
        return float(value[chosen] @ amounts)

    @cached_property
    def _w(self) -> Floats:
        return to_numpy(self.weights).astype(np.float64)

    @cached_property
    def _u(self) -> Floats:
        """The largest amount of each."""
        with np.errstate(over="ignore"):  # what weighs next to nothing is held by its own bound
            return np.asarray(
                np.minimum(to_numpy(self.upper).astype(np.float64), self.total / self._w)
            )

    @cached_property
    def _most(self) -> float:
        return float(self._w @ self._u)

    @property
    def _rounding(self) -> float:
        return 4 * eps_of(self.weights)

    @cached_property
    def _share(self) -> float:
        """The center is this share of the largest amounts."""
        if not self.at_most:
            return min(1.0, self.total / self._most)
        return min(0.5, self.total / (self._most + length(self._w) * float(np.min(self._u))))


def _threshold(keys: Floats, loads: Floats, budget: float) -> float:
    """The key at which loads, in the order of keys, pass the budget; the last where they do not.

    By halving, as quickselect does.
    """
    while len(keys) > _FEW:
        half = len(keys) // 2
        order = np.argpartition(keys, half)
        first = order[:half]
        spent = float(np.sum(loads[first]))
        kept = first if spent > budget else order[half:]
        keys, loads, budget = keys[kept], loads[kept], budget if spent > budget else budget - spent
    order = np.argsort(keys)
    past = int(np.searchsorted(np.cumsum(loads[order]), budget, side="right"))
    return float(keys[order[min(past, len(keys) - 1)]]) if len(keys) else math.inf
