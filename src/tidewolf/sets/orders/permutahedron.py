"""The permutahedron: the hull of all orderings of a vector w.

    { x : sum x = sum w,  the k largest entries of x sum to at most W_k, k < n }      (Rado 1952)

with W_k the sum of the k largest w.

Oracle: a sort, the largest weight to the smallest entry of the direction; ties go to the earlier
entry. Center c: the mean of w everywhere. All vertices are alike, and no reordering is farther from
w than the reverse one (rearrangement inequality):

    radius    = ||w - c||
    diameter  = ||sorted w - reversed||
    dimension = n - 1, or 0 where all weights are equal

The inequality of k entries S is at (W_k - k c) / ||P 1_S|| from c within the hull, with
||P 1_S||^2 = k (n - k)/n; inner_radius is the least.

Projection of y (Lim and Wright 2016): with y and w sorted downwards, x = y - v, v the nonincreasing
vector nearest to y - w, which pooling adjacent violators finds. Within a pool of entries B,
x_i = mean_B(w) + (y_i - mean_B(y)): written so, a far y loses no digits.
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
    frozen,
    length,
    like,
    namespace,
    to_numpy,
    total,
)
from tidewolf.core.oracle import Answer
from tidewolf.core.settings import Numbers
from tidewolf.core.types import Array, Floats, Shape
from tidewolf.core.vertices import Dense
from tidewolf.kernels.isotonic import pool_adjacent_violators
from tidewolf.sets.base import (
    ConvexSet,
    LinearDescription,
    Polyhedral,
    Projectable,
    Relaxable,
    clipped,
)


@final
@dataclass(frozen=True, eq=False, repr=False)
class Permutahedron(ConvexSet, Projectable, Polyhedral, Relaxable):
    """Everything between the orderings of a vector. Geometry exact.

    Parameters
    ----------
    weights : array
        The entries that are ordered; they are kept largest first.

    Examples
    --------
    >>> K = tw.sets.Permutahedron([3.0, 2.0, 1.0])
    >>> K.lmo(np.array([0.5, -1.0, 0.0]))
    array([1., 3., 2.])
    """

    weights: Annotated[
        Array, Numbers("The entries that are ordered; they are kept largest first.", axes=1)
    ]

    def __post_init__(self) -> None:
        super().__post_init__()
        xp = namespace(self.weights)
        object.__setattr__(self, "weights", frozen(xp.flip(xp.sort(self.weights))))

    @property
    def shape(self) -> Shape:
        return tuple(self.weights.shape)

    @property
    def dimension(self) -> int:
        return len(self._w) - 1 if self._w[0] > self._w[-1] else 0

    @cached_property
    def center(self) -> Array:
        return frozen(like(np.full(self.shape, self._mean), self.weights))

    @cached_property
    def radius(self) -> float:
        return length(self._w - self._mean) if self.dimension else 0.0

    @cached_property
    def diameter(self) -> float:
        return length(self._w - self._w[::-1])

    @cached_property
    def inner_radius(self) -> float:
        if not self.dimension:
            return 0.0
        n = len(self._w)
        k = np.arange(1, n)
        return float(np.min(np.cumsum(self._w - self._mean)[:-1] / np.sqrt(k * (n - k) / n)))

    def tangent(self, direction: Array) -> Array:
        direction = as_direction(direction, self.shape)
        return direction - total(direction) / len(self._w) if self.dimension else 0 * direction

    def infeasibility(self, x: Array) -> float:
        """The most by which the largest k entries, for some k, exceed what they may sum to, or the
        error of the whole sum.
        """
        x = to_numpy(as_point(x, self.shape, "The point")).astype(np.float64, copy=False)
        above = np.cumsum(np.sort(x)[::-1] - self._w)
        return max(0.0, float(above.max()), -float(above[-1]))

    def answer(self, direction: Array, warm: Array | None = None) -> Answer:
        vertex = np.empty(self.shape)
        vertex[np.argsort(to_numpy(direction), kind="stable")] = self._w
        return Answer(Dense(like(vertex, direction)))

    def project(self, y: Array) -> Array:
        """Sort, pool adjacent violators, put back."""
        y = as_point(y, self.shape, "The point to project")
        entries = to_numpy(y).astype(np.float64)
        order = np.argsort(-entries, kind="stable")
        x, sorted_x = np.empty(self.shape), np.empty(self.shape)
        pool_adjacent_violators(entries[order], self._w, sorted_x)
        x[order] = sorted_x
        return like(x, y)

    def relax(self, y: Array) -> Array:
        """The nearest point with entries between the smallest and the largest weight."""
        return clipped(y, self.shape, float(self._w[-1]), float(self._w[0]))

    def description(self) -> LinearDescription:
        """x = w_n + sum_k (w_k - w_{k+1}) z_k with z_k in [0, 1]^n of sum k: n variables for every
        two neighbours that differ.
        """
        from scipy.sparse import eye_array, kron

        n, gaps = len(self._w), -np.diff(self._w)
        k = np.flatnonzero(gaps)
        if not len(k):
            return LinearDescription(self._w, self._w)
        sums, lift = (
            kron(eye_array(len(k)), np.ones((1, n)), format="csc"),
            kron(gaps[None, k], eye_array(n), format="csr"),
        )
        return LinearDescription(
            np.zeros(n * len(k)),
            np.ones(n * len(k)),
            sums,
            (k + 1).astype(np.float64),
            lift=lift,
            shift=np.full(n, self._w[-1]),
        )

    @classmethod
    def examples(cls) -> Sequence[Permutahedron]:
        return (
            cls([2.0]),
            cls([0.5, 0.5, 0.5]),
            cls([1.0, 3.0]),
            cls([1.0, 2.0, 3.0, 4.0]),
            cls([0.0, 0.0, 7.0, -1.0, 0.0]),
            cls([1.0, 1.0, 0.0, 1.0, 0.0, 1e-3]),
        )

    @cached_property
    def _w(self) -> Floats:
        return frozen(to_numpy(self.weights).astype(np.float64))

    @cached_property
    def _mean(self) -> float:
        return math.fsum(self._w) / len(self._w)
