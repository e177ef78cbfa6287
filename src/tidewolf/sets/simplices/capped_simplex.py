"""The capped simplex: shares of a total, none above a cap.

    { 0 <= x <= cap, sum x = total }            the hypersimplex is cap = 1, total = k

With u = min(cap, total), every vertex is a permutation of one vector s: as many entries u as fit,
one remainder, zeros.
Oracle: the cheapest coordinates get u, the next one the remainder; ties go to the earlier
coordinate. Center c = total/n.

    radius = ||s - c||        diameter = ||s - reversed(s)||
        (rearrangement inequality: no permutation is farther)

Facets x_i = 0 and x_i = u are at c / ||P e_i|| and (u - c) / ||P e_i|| from c within the hull, ||P
e_i|| = sqrt(1 - 1/n).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, final

import numpy as np

from tidewolf.core.arrays import (
    MOST_ENTRIES,
    as_count,
    as_direction,
    as_number,
    as_point,
    frozen,
    length,
    like,
    namespace,
    to_numpy,
    total,
)
from tidewolf.core.errors import EmptySet
from tidewolf.core.jit import kernel
from tidewolf.core.oracle import Answer
from tidewolf.core.types import Array, Floats, NDArray, Shape
from tidewolf.core.vertices import Sparse, Vertex
from tidewolf.sets.base import (
    Compiled,
    ConvexSet,
    LinearDescription,
    Polyhedral,
    Projectable,
    Relaxable,
    clipped,
)

_ROUNDING = 4 * float(np.finfo(np.float64).eps)


@kernel
def cheapest_entries(d, shares, indices, values):  # type: ignore[no-untyped-def]
    """The shares on as many of the least entries, the last share on the dearest; ties go to the
    earlier entry.
    """
    dearest, ties = kth_least(d.copy(), len(shares) - 1), len(shares)
    for e in range(len(d)):
        if d[e] < dearest:
            ties -= 1
    first, count = len(shares) - ties, 0
    below, tied = 0, first
    for e in range(len(d)):
        if d[e] < dearest:
            indices[count], values[count] = e, shares[below]
            below, count = below + 1, count + 1
        elif d[e] == dearest and tied < len(shares):
            indices[count], values[count] = e, shares[tied]
            tied, count = tied + 1, count + 1
    return count


@kernel
def kth_least(a, k):  # type: ignore[no-untyped-def]
    """Entry k of `a` in order, which is rearranged: the part that holds it is split about its
    middle entry until all in it are equal.
    """
    low, high = 0, len(a) - 1
    while low < high:
        pivot, i, j = a[(low + high) // 2], low, high
        while i <= j:
            while a[i] < pivot:
                i += 1
            while a[j] > pivot:
                j -= 1
            if i <= j:
                a[i], a[j] = a[j], a[i]
                i, j = i + 1, j - 1
        if k <= j:
            high = j
        elif k >= i:
            low = i
        else:
            return pivot
    return a[k]


@final
@dataclass(frozen=True, eq=False, repr=False)
class CappedSimplex(ConvexSet, Projectable, Polyhedral, Relaxable, Compiled):
    """Vectors of n entries between 0 and `cap` that sum to `total`. Geometry exact."""

    oracle: ClassVar = cheapest_entries

    n: int
    cap: float
    total: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "n", as_count(self.n, "The size n of a capped simplex", most=MOST_ENTRIES)
        )
        object.__setattr__(
            self, "cap", as_number(self.cap, "The cap of a capped simplex", above=0.0)
        )
        object.__setattr__(
            self, "total", as_number(self.total, "The total of a capped simplex", above=0.0)
        )
        if self.n * self.cap < self.total * (1 - _ROUNDING):
            raise EmptySet(
                f"A capped simplex of {self.n} entries of at most {self.cap:g} each cannot reach "
                f"the total {self.total:g}: raise the cap to at least {self.total / self.n:g}."
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

    def excess(self, x: Array) -> float:
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
    def max_nonzeros(self) -> int:
        return len(self._shares)

    def atom(self, point: Array) -> Vertex:
        return Sparse.of(point)

    def project(self, y: Array) -> Array:
        """x = clip(y - tau, 0, u) with the tau that meets the total, found by bisection over the
        kinks y_i and y_i - u.

        With m entries in a vertex, tau lies within u below the m-th largest y_i: measured from
        there, farther entries may be clipped.
        """
        y = as_point(y, self.shape, "The point to project")
        if not self.dimension:
            return like(self.center, y)
        xp, u = namespace(y), self._top
        y = xp.clip(y - xp.sort(y)[self.n - len(self._shares)], -u, u)
        kinks = xp.sort(xp.concat([y, y - u]))
        low, high = 0, 2 * self.n - 1
        while high - low > 1:
            middle = (low + high) // 2
            enough = float(xp.sum(xp.clip(y - kinks[middle], 0.0, u))) >= self.total
            low, high = (middle, high) if enough else (low, middle)
        full = y - u > kinks[low]
        partial = (y > kinks[low]) & ~full
        count = int(xp.count_nonzero(partial))
        spare = (
            float(xp.sum(xp.where(partial, y, 0 * y)))
            + u * int(xp.count_nonzero(full))
            - self.total
        )
        return xp.clip(y - (spare / count if count else kinks[low]), 0.0, u)

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
