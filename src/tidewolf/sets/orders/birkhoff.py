"""The Birkhoff polytope: doubly stochastic matrices, the hull of the permutation matrices
(Birkhoff 1946).

    { X >= 0 : every row and every column sums to 1 },  n x n

Oracle: an assignment of least cost. Center c: 1/n everywhere. With n > 1, all permutations are
sqrt(n - 1) from c and two that agree nowhere are sqrt(2 n) apart. Directions have rows and columns
that sum to 0,

    tangent(D) = D - row means - column means + mean        dimension = (n - 1)^2

and the facets X_ij = 0 are at (1/n) / |P E_ij| = 1/(n - 1) from c,  |P E_ij| = 1 - 1/n.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, final

import numpy as np

from tidewolf.core.arrays import MOST_SIDE, as_direction, as_point, frozen, namespace, to_numpy
from tidewolf.core.oracle import Answer
from tidewolf.core.settings import Count
from tidewolf.core.types import Array, Shape
from tidewolf.core.vertices import Sparse, Vertex
from tidewolf.sets.base import ConvexSet, LinearDescription, Polyhedral, Relaxable, clipped


@final
@dataclass(frozen=True, eq=False, repr=False)
class Birkhoff(ConvexSet, Polyhedral, Relaxable):
    """Nonnegative n x n matrices whose rows and columns sum to 1. Geometry exact.

    Parameters
    ----------
    n : int
        How many rows, and columns, a point has.

    Examples
    --------
    >>> K = tw.sets.Birkhoff(2)
    >>> K.lmo(np.array([[3.0, 1.0], [1.0, 2.0]]))
    array([[0., 1.],
           [1., 0.]])
    """

    n: Annotated[int, Count("How many rows, and columns, a point has.", most=MOST_SIDE)]

    @property
    def shape(self) -> Shape:
        return (self.n, self.n)

    @property
    def dimension(self) -> int:
        return (self.n - 1) ** 2

    @cached_property
    def center(self) -> Array:
        return frozen(np.full(self.shape, 1.0 / self.n))

    @property
    def radius(self) -> float:
        return math.sqrt(self.n - 1)

    @property
    def diameter(self) -> float:
        return math.sqrt(2 * self.n) if self.n > 1 else 0.0

    @property
    def inner_radius(self) -> float:
        return 1.0 / (self.n - 1) if self.n > 1 else 0.0

    def tangent(self, direction: Array) -> Array:
        return centered(as_direction(direction, self.shape))

    def infeasibility(self, x: Array) -> float:
        """The largest negative entry or error of the sum of a row or column."""
        x = as_point(x, self.shape, "The matrix")
        xp = namespace(x)
        off = max(float(xp.max(xp.abs(xp.sum(x, axis=axis) - 1.0))) for axis in (0, 1))
        return max(0.0, -float(xp.min(x)), off)

    def answer(self, direction: Array, warm: Array | None = None) -> Answer:
        from scipy.optimize import linear_sum_assignment

        rows, columns = linear_sum_assignment(to_numpy(direction))
        return Answer(
            Sparse(self.shape, (rows * self.n + columns).astype(np.int32), np.ones(self.n))
        )

    def atom(self, point: Array) -> Vertex:
        return Sparse.of(point)

    def relax(self, y: Array) -> Array:
        """The nearest matrix with entries between 0 and 1."""
        return clipped(y, self.shape, 0.0, 1.0)

    def description(self) -> LinearDescription:
        """The last column's sum follows from the others."""
        sums = row_and_column_sums(self.n, self.n)[:-1]
        return LinearDescription(
            np.zeros(self.n**2), np.ones(self.n**2), A_eq=sums, b_eq=np.ones(2 * self.n - 1)
        )

    @classmethod
    def examples(cls) -> Sequence[Birkhoff]:
        return (cls(1), cls(2), cls(3), cls(5))


def centered(D: Array) -> Array:
    """D less the means of its rows and columns, plus its mean: its part whose rows and columns sum
    to 0.
    """
    xp = namespace(D)
    D = D - xp.mean(D, axis=1, keepdims=True)
    return D - xp.mean(D, axis=0, keepdims=True)


def row_and_column_sums(rows: int, columns: int) -> Any:
    """The sparse matrix that takes a flattened matrix to its row sums and then its column sums."""
    from scipy.sparse import csr_array

    cells = np.arange(rows * columns)
    into = np.concatenate([cells // columns, rows + cells % columns])
    return csr_array(
        (np.ones(2 * len(cells)), (into, np.concatenate([cells, cells]))),
        shape=(rows + columns, len(cells)),
    )
