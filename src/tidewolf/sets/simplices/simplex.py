"""The simplex: shares of a total.

    { x >= 0, sum x = total }        at_most:  { x >= 0, sum x <= total }

Oracle: the cheapest coordinate gets everything (`at_most`: or none gets anything). Center
c = total/n (at_most: total/(n+1)) everywhere. The farthest members are the vertices total e_i:
radius^2 = total^2 - 2 total c_i + n c_i^2. Facets: x_i = 0, at distance
c_i / ||P e_i|| = c_i / sqrt(1 - 1/n) from c within the hull; with at_most the hull is everything,
and sum x = total is at (total - n c_i)/sqrt(n).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar, final

import numpy as np

from tidewolf.core.arrays import (
    MOST_ENTRIES,
    as_direction,
    as_point,
    counting,
    frozen,
    mean_there,
    namespace,
)
from tidewolf.core.oracle import Answer
from tidewolf.core.settings import Count, Flag, Number
from tidewolf.core.types import Array, Floats, Int32s, NDArray, Shape
from tidewolf.core.vertices import Sparse, Vertex
from tidewolf.kernels.simplices import cheapest_entry, sum_infeasibility, within_sum
from tidewolf.sets.base import (
    CompiledGeometry,
    ConvexSet,
    LinearDescription,
    Polyhedral,
    Projectable,
    Relaxable,
    clipped,
)


@final
@dataclass(frozen=True, eq=False, repr=False)
class Simplex(ConvexSet, Projectable, Polyhedral, Relaxable, CompiledGeometry):
    """Nonnegative vectors of n entries that sum to `total`, or to at most `total`. Geometry exact.

    Parameters
    ----------
    n : int
        How many entries a point has.
    total : float, default 1.0
        What the entries sum to.
    at_most : bool, default False
        Whether the entries may sum to less than `total`, too.

    Examples
    --------
    >>> K = tw.sets.Simplex(3)
    >>> K.lmo(np.array([2.0, -1.0, 0.5]))
    array([0., 1., 0.])
    """

    oracle: ClassVar = cheapest_entry
    tangents: ClassVar = within_sum
    point_infeasibility: ClassVar = sum_infeasibility

    n: Annotated[int, Count("How many entries a point has.", most=MOST_ENTRIES)]
    total: Annotated[float, Number("What the entries sum to.", above=0.0)] = 1.0
    at_most: Annotated[bool, Flag("Whether the entries may sum to less than `total`, too.")] = False

    @property
    def shape(self) -> Shape:
        return (self.n,)

    @property
    def dimension(self) -> int:
        return self.n if self.at_most else self.n - 1

    @cached_property
    def center(self) -> Array:
        return frozen(np.full(self.n, self.total / (self.n + 1 if self.at_most else self.n)))

    @cached_property
    def radius(self) -> float:
        c = 1.0 / (self.n + 1 if self.at_most else self.n)  # in units of the total
        corner = math.sqrt(max(0.0, 1.0 - 2.0 * c + self.n * c**2))
        return self.total * (max(corner, c * math.sqrt(self.n)) if self.at_most else corner)

    @property
    def diameter(self) -> float:
        if self.n == 1:
            return self.total if self.at_most else 0.0
        return math.sqrt(2.0) * self.total

    @property
    def inner_radius(self) -> float:
        c = float(self.center[0])
        if self.at_most:
            return min(c, (self.total - self.n * c) / math.sqrt(self.n))
        return c / math.sqrt(1 - 1 / self.n) if self.n > 1 else 0.0

    def tangent(self, direction: Array) -> Array:
        direction = as_direction(direction, self.shape)
        return direction if self.at_most else direction - mean_there(direction)

    def infeasibility(self, x: Array) -> float:
        """The largest negative entry or error of the sum."""
        x = as_point(x, self.shape, "The point")
        xp = namespace(x)
        off = float(xp.sum(x)) - self.total
        return max(0.0, -float(xp.min(x)), off if self.at_most else abs(off))

    def answer(self, direction: Array, warm: Array | None = None) -> Answer:
        cheapest = int(namespace(direction).argmin(direction))
        if self.at_most and float(direction[cheapest]) >= 0:
            return Answer(Sparse.zero(self.shape))
        return Answer(
            Sparse(self.shape, np.array([cheapest], dtype=np.int32), np.array([self.total]))
        )

    @cached_property
    def kernel_data(self) -> NDArray:
        return np.array([self.total, 0.0 if self.at_most else math.inf])

    @cached_property
    def geometry(self) -> tuple[Floats, Int32s]:
        flag = int(self.at_most)
        return np.array([self.total, math.inf]), np.array([flag, flag], dtype=np.int32)

    @property
    def corner(self) -> float | None:
        return None if self.at_most else self.total

    @property
    def max_nonzeros(self) -> int:
        return 1

    def atom(self, point: Array) -> Vertex:
        return Sparse.of(point)

    def project(self, y: Array) -> Array:
        """Sort and threshold: x = max(y - tau, 0) with the tau that meets the total.

        z is y measured from its largest entry.
        """
        y = as_point(y, self.shape, "The point to project")
        xp = namespace(y)
        positive = xp.where(y > 0, y, 0 * y)
        if self.at_most and float(xp.sum(positive)) <= self.total:
            return positive
        z = y - xp.max(y)  # tau is measured from the top, or a far y would swallow the total
        down = xp.flip(xp.sort(z))
        taus = (xp.cumulative_sum(down) - self.total) / counting(self.n, z)
        last = int(xp.sum(xp.astype(down > taus, xp.int64))) - 1
        return xp.where(z > taus[last], z - taus[last], 0 * z)

    def relax(self, y: Array) -> Array:
        """The box [0, total]^n around it."""
        return clipped(y, self.shape, 0.0, self.total)

    def description(self) -> LinearDescription:
        row, total = np.ones((1, self.n)), np.array([self.total])
        bounds = (np.zeros(self.n), np.full(self.n, self.total))
        if self.at_most:
            return LinearDescription(*bounds, A_ub=row, b_ub=total)
        return LinearDescription(*bounds, A_eq=row, b_eq=total)

    @classmethod
    def examples(cls) -> Sequence[Simplex]:
        return (
            cls(1),
            cls(2),
            cls(5),
            cls(4, total=3.0),
            cls(1, at_most=True),
            cls(3, total=0.5, at_most=True),
        )
