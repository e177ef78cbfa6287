"""The capped simplex: shares of a total, none above a cap.

    { 0 <= x <= cap, sum x = total }            the hypersimplex is cap = 1, total = k

With u = min(cap, total), every vertex is a permutation of one vector s: as many entries u as fit,
one remainder, zeros. Oracle: the cheapest coordinates get u, the next one the remainder; ties go to
the earlier coordinate. Center c = total/n.

    radius = ||s - c||        diameter = ||s - reversed(s)||

(by the rearrangement inequality no permutation is farther). Facets x_i = 0 and x_i = u are at
c / ||P e_i|| and (u - c) / ||P e_i|| from c within the hull, ||P e_i|| = sqrt(1 - 1/n).
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
    frozen,
    length,
    like,
    namespace,
    to_numpy,
    total,
)
from tidewolf.core.errors import EmptySet
from tidewolf.core.oracle import Answer
from tidewolf.core.settings import Count, Number
from tidewolf.core.types import Array, Floats, Int32s, NDArray, Shape
from tidewolf.core.vertices import Sparse, Vertex
from tidewolf.kernels.simplices import cheapest_entries, sum_infeasibility, within_sum
from tidewolf.sets.base import (
    CompiledGeometry,
    ConvexSet,
    LinearDescription,
    Polyhedral,
    Projectable,
    Relaxable,
    clipped,
)

_ROUNDING = 4 * float(np.finfo(np.float64).eps)


@final
@dataclass(frozen=True, eq=False, repr=False)
class CappedSimplex(ConvexSet, Projectable, Polyhedral, Relaxable, CompiledGeometry):
    """Vectors of n entries between 0 and `cap` that sum to `total`. Geometry exact.

    Parameters
    ----------
    n : int
        How many entries a point has.
    cap : float
        What an entry is at most.
    total : float, default 1.0
        What the entries sum to.

    Examples
    --------
    >>> K = tw.sets.CappedSimplex(4, cap=0.75)
    >>> K.lmo(np.array([3.0, -1.0, 0.5, 2.0]))
    array([0.  , 0.75, 0.25, 0.  ])
    """

    oracle: ClassVar = cheapest_entries
    tangents: ClassVar = within_sum
    point_infeasibility: ClassVar = sum_infeasibility

    n: Annotated[int, Count("How many entries a point has.", most=MOST_ENTRIES)]
    cap: Annotated[float, Number("What an entry is at most.", above=0.0)]
    total: Annotated[float, Number("What the entries sum to.", above=0.0)] = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n * self.cap < self.total * (1 - _ROUNDING):
            raise EmptySet(
                f"A capped simplex of {self.n} entries of at most {self.cap:g} each cannot reach "
                f"the total {self.total:g}: raise the cap to at least {self.total / self.n:g}.",
                setting="cap",
            )

    @property
    def shape(self) -> Shape:
        return (self.n,)

    @cached_property
    def dimension(self) -> int:
        return self.n - 1 if self.n * self._top > self.total * (1 + _ROUNDING) else 0

    @cached_property
    def center(self) -> Array:
        return frozen(np.full(self.n, self.total / self.n))

    @cached_property
    def radius(self) -> float:
        return length(self._sorted_vertex() - self.total / self.n) if self.dimension else 0.0

    @cached_property
    def diameter(self) -> float:
        s = self._sorted_vertex()
        return length(s - s[::-1])

    @property
    def inner_radius(self) -> float:
        if not self.dimension:
            return 0.0
        c = self.total / self.n
        return min(c, self._top - c) / math.sqrt(1 - 1 / self.n)

    def tangent(self, direction: Array) -> Array:
        direction = as_direction(direction, self.shape)
        return direction - total(direction) / self.n if self.dimension else 0 * direction

    def infeasibility(self, x: Array) -> float:
        """The largest negative entry, entry above the cap, or error of the sum."""
        x = as_point(x, self.shape, "The point")
        xp = namespace(x)
        return max(
            0.0, -float(xp.min(x)), float(xp.max(x)) - self.cap, abs(float(xp.sum(x)) - self.total)
        )

    def answer(self, direction: Array, warm: Array | None = None) -> Answer:
        d, shares = to_numpy(direction), self._shares
        dearest = np.partition(d, len(shares) - 1)[len(shares) - 1]
        below = np.flatnonzero(d < dearest)
        ties = np.flatnonzero(d == dearest)[: len(shares) - len(below)]
        chosen = np.concatenate([below, ties]).astype(np.int32)
        order = np.argsort(chosen)
        return Answer(Sparse(self.shape, chosen[order], shares[order]))

    @cached_property
    def kernel_data(self) -> NDArray:
        return self._shares

    @cached_property
    def geometry(self) -> tuple[Floats, Int32s]:
        kind = 0 if self.dimension else 2
        return np.array([self.total, self.cap]), np.array([kind, 0], dtype=np.int32)

    @cached_property
    def max_nonzeros(self) -> int:
        return len(self._shares)

    def atom(self, point: Array) -> Vertex:
        return Sparse.of(point)

    def project(self, y: Array) -> Array:
        """x = clip(y - tau, 0, u) with the tau that meets the total, found by bisection over the
        kinks y_i and y_i - u.

        With m entries in a vertex, tau lies within u below the m-th largest y_i: in z, which is y
        measured from there, farther entries may be clipped.
        """
        y = as_point(y, self.shape, "The point to project")
        if not self.dimension:
            return like(self.center, y)
        xp, u = namespace(y), self._top
        z = xp.clip(y - xp.sort(y)[self.n - len(self._shares)], -u, u)
        kinks = xp.sort(xp.concat([z, z - u]))
        low, high = 0, 2 * self.n - 1
        while high - low > 1:
            middle = (low + high) // 2
            enough = float(xp.sum(xp.clip(z - kinks[middle], 0.0, u))) >= self.total
            low, high = (middle, high) if enough else (low, middle)
        full = z - u > kinks[low]
        partial = (z > kinks[low]) & ~full
        count = int(xp.count_nonzero(partial))
        spare = (
            float(xp.sum(xp.where(partial, z, 0 * z)))
            + u * int(xp.count_nonzero(full))
            - self.total
        )
        return xp.clip(z - (spare / count if count else kinks[low]), 0.0, u)

    def relax(self, y: Array) -> Array:
        """The box [0, u]^n around it."""
        return clipped(y, self.shape, 0.0, self._top)

    def description(self) -> LinearDescription:
        return LinearDescription(
            np.zeros(self.n),
            np.full(self.n, self.cap),
            A_eq=np.ones((1, self.n)),
            b_eq=np.array([self.total]),
        )

    @classmethod
    def examples(cls) -> Sequence[CappedSimplex]:
        return (
            cls(1, 2.0),
            cls(2, 0.5),
            cls(2, 0.75),
            cls(3, 5.0),
            cls(5, 1.0, 2.0),
            cls(6, 0.4),
            cls(49, 1 / 49),
            cls(4, 0.3, 1.15),
        )

    @property
    def _top(self) -> float:
        return min(self.cap, self.total)

    @cached_property
    def _shares(self) -> Floats:
        """The nonzero entries of a vertex, largest first."""
        if not self.dimension:
            return np.full(self.n, self.total / self.n)
        full = int(self.total / self._top)
        rest = self.total - full * self._top
        return np.array([self._top] * full + [rest] * (rest > 0))

    def _sorted_vertex(self) -> Floats:
        return np.concatenate([self._shares, np.zeros(self.n - len(self._shares))])
