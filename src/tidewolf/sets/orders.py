"""Orders and assignments: the permutahedron, doubly stochastic matrices, transportation."""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Self, final

import numpy as np

from tidewolf.core import arrays, lazy, oracle, settings, vertices
from tidewolf.core.errors import EmptySet
from tidewolf.core.types import Array, Floats, Int32s, NDArray, Shape
from tidewolf.kernels.orders import pool_adjacent_violators
from tidewolf.sets import base
from tidewolf.sets.capacitated_flow import FlowNetwork

# The permutahedron: the hull of all orderings of a vector w.
#
#     { x : sum x = sum w,  the k largest entries of x sum to at most W_k, k < n }      (Rado 1952)
#
# with W_k the sum of the k largest w.
#
# Oracle: a sort, the largest weight to the smallest entry of the direction; ties go to the earlier
# entry. Center c: the mean of w everywhere. All vertices are alike, and no reordering is farther
# from w than the reverse one (rearrangement inequality):
#
#     radius    = ||w - c||
#     diameter  = ||sorted w - reversed||
#     dimension = n - 1, or 0 where all weights are equal
#
# The inequality of k entries S is at (W_k - k c) / ||P 1_S|| from c within the hull, with ||P
# 1_S||^2 = k (n - k)/n; inner_radius is the least.
#
# Projection of y (Lim and Wright 2016): with y and w sorted downwards, x = y - v, v the
# nonincreasing vector nearest to y - w, which pooling adjacent violators finds. Within a pool of
# entries B, x_i = mean_B(w) + (y_i - mean_B(y)): written so, a far y loses no digits.


@final
@dataclass(frozen=True, eq=False, repr=False)
class Permutahedron(base.ClosedForm, base.Projectable, base.Boxed):
    """Everything between the orderings of a vector. Geometry exact.

    Parameters
    ----------
    weights : array
        The entries that are ordered, in any order.

    Examples
    --------
    >>> K = tw.sets.Permutahedron([3.0, 2.0, 1.0])
    >>> K.lmo(np.array([0.5, -1.0, 0.0]))
    array([1., 3., 2.])
    """

    weights: Annotated[Array, settings.Numbers(axes=1)]

    def _complete(self) -> None:
        xp = arrays.namespace(self.weights)
        object.__setattr__(self, "weights", arrays.frozen(xp.flip(xp.sort(self.weights))))

    @property
    def shape(self) -> Shape:
        return tuple(self.weights.shape)

    @cached_property
    def center(self) -> Array:
        return arrays.frozen(arrays.like(np.full(self.shape, self._mean), self.weights))

    @cached_property
    def _sizes(self) -> base.Sizes:
        w, n = self._w, len(self._w)
        if w[0] == w[-1]:
            return base.Sizes(0, 0.0, 0.0, 0.0)
        k, away = np.arange(1, n), w - self._mean
        inside = float(np.min(np.cumsum(away)[:-1] / np.sqrt(k * (n - k) / n)))
        return base.Sizes(n - 1, arrays.length(away), arrays.length(w - w[::-1]), inside)

    def tangent(self, direction: Array) -> Array:
        return (
            direction - arrays.total(direction) / len(self._w) if self.dimension else 0 * direction
        )

    def infeasibility(self, x: Array) -> float:
        """The most by which the largest k entries, for some k, exceed what they may sum to, or the
        error of the whole sum.
        """
        x = arrays.to_numpy(x).astype(np.float64, copy=False)
        above = np.cumsum(np.sort(x)[::-1] - self._w)
        return max(0.0, float(above.max()), -float(above[-1]))

    def answer(self, direction: Array, warm: Array | None = None) -> oracle.Answer:
        vertex = np.empty(self.shape)
        vertex[np.argsort(arrays.to_numpy(direction), kind="stable")] = self._w
        return oracle.Answer(vertices.Dense(arrays.like(vertex, direction)))

    def project(self, y: Array) -> Array:
        """Sort, pool adjacent violators, put back."""
        entries = arrays.to_numpy(y).astype(np.float64)
        order = np.argsort(-entries, kind="stable")
        x, sorted_x = np.empty(self.shape), np.empty(self.shape)
        pool_adjacent_violators(entries[order], self._w, sorted_x)
        x[order] = sorted_x
        return arrays.like(x, y)

    def description(self) -> base.LinearDescription:
        """x = w_n + sum_k (w_k - w_{k+1}) z_k with z_k in [0, 1]^n of sum k: n variables for every
        two neighbours that differ.
        """
        n, gaps = len(self._w), -np.diff(self._w)
        k = np.flatnonzero(gaps)
        if not len(k):
            return base.LinearDescription(self._w, self._w)
        sums = (
            lazy.sp.kron(lazy.sp.eye_array(len(k)), np.ones((1, n)), format="csc"),
            (k + 1).astype(np.float64),
        )
        lift, shift = (
            lazy.sp.kron(gaps[None, k], lazy.sp.eye_array(n), format="csr"),
            np.full(n, self._w[-1]),
        )
        return base.LinearDescription(
            np.zeros(n * len(k)), np.ones(n * len(k)), *sums, lift=lift, shift=shift
        )

    @classmethod
    def examples(cls) -> Sequence[Self]:
        few = cls([2.0]), cls([0.5, 0.5, 0.5]), cls([1.0, 3.0]), cls([1.0, 2.0, 3.0, 4.0])
        return *few, cls([0.0, 0.0, 7.0, -1.0, 0.0]), cls([1.0, 1.0, 0.0, 1.0, 0.0, 1e-3])

    @cached_property
    def _w(self) -> Floats:
        return arrays.frozen(arrays.to_numpy(self.weights).astype(np.float64))

    @cached_property
    def _mean(self) -> float:
        return math.fsum(self._w) / len(self._w)


class Plans(base.SparseSet, base.Boxed):
    """Abstract: nonnegative matrices whose rows sum to `_a` and columns to `_b`."""

    @property
    @abstractmethod
    def _a(self) -> Floats: ...

    @property
    @abstractmethod
    def _b(self) -> Floats: ...

    @cached_property
    def _caps(self) -> Floats:
        return np.minimum(self._a[:, None], self._b[None, :])

    def infeasibility(self, x: Array) -> float:
        """The largest negative entry or error of the sum of a row or column."""
        xp = arrays.namespace(x)
        off = (
            xp.sum(x, axis=1) - arrays.like(self._a, x),
            xp.sum(x, axis=0) - arrays.like(self._b, x),
        )
        return max(0.0, -float(xp.min(x)), *(float(xp.max(xp.abs(errors))) for errors in off))

    def description(self) -> base.LinearDescription:
        """The last column's sum follows from the others."""
        (m, n), bounds = self.shape, (np.zeros(self._caps.size), self._caps.reshape(-1))
        sums = (
            lazy.sp.kron(lazy.sp.eye_array(m), np.ones((1, n))),
            lazy.sp.kron(np.ones((1, m)), lazy.sp.eye_array(n)),
        )
        A_eq = lazy.sp.vstack(sums, format="csr")[:-1]
        return base.LinearDescription(
            *bounds, A_eq=A_eq, b_eq=np.concatenate([self._a, self._b[:-1]])
        )


# The Birkhoff polytope: doubly stochastic matrices, the hull of the permutation matrices (Birkhoff
# 1946).
#
#     { X >= 0 : every row and every column sums to 1 },  n x n
#
# Oracle: an assignment of least cost. Center c: 1/n everywhere. With n > 1, all permutations are
# sqrt(n - 1) from c and two that agree nowhere are sqrt(2 n) apart. Directions have rows and
# columns that sum to 0,
#
#     tangent(D) = D - row means - column means + mean        dimension = (n - 1)^2
#
# and the facets X_ij = 0 are at (1/n) / |P E_ij| = 1/(n - 1) from c,  |P E_ij| = 1 - 1/n.


@final
@dataclass(frozen=True, eq=False, repr=False)
class Birkhoff(base.ClosedForm, Plans):
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

    n: Annotated[int, settings.Count(most=arrays.MOST_SIDE)]

    @property
    def shape(self) -> Shape:
        return (self.n, self.n)

    @cached_property
    def center(self) -> Array:
        return arrays.frozen(np.full(self.shape, 1.0 / self.n))

    @property
    def _sizes(self) -> base.Sizes:
        n = self.n
        if n == 1:
            return base.Sizes(0, 0.0, 0.0, 0.0)
        return base.Sizes((n - 1) ** 2, math.sqrt(n - 1), math.sqrt(2 * n), 1.0 / (n - 1))

    def tangent(self, direction: Array) -> Array:
        return centered(direction)

    @cached_property
    def _a(self) -> Floats:
        return np.ones(self.n)

    @property
    def _b(self) -> Floats:
        return self._a

    def answer(self, direction: Array, warm: Array | None = None) -> oracle.Answer:
        rows, columns = lazy.scipy.optimize.linear_sum_assignment(arrays.to_numpy(direction))
        cells = (rows * self.n + columns).astype(np.int32)
        return oracle.Answer(vertices.Sparse(self.shape, cells, np.ones(self.n)))

    @classmethod
    def examples(cls) -> Sequence[Self]:
        return (cls(1), cls(2), cls(3), cls(5))


def centered(D: Array) -> Array:
    """D less the means of its rows and columns, plus its mean: its part whose rows and columns sum
    to 0.
    """
    xp = arrays.namespace(D)
    D = D - xp.mean(D, axis=1, keepdims=True)
    return D - xp.mean(D, axis=0, keepdims=True)


# The transportation polytope: how much goes from each of m places to each of n others.
#
#     { X >= 0 : row i sums to a_i, column j to b_j },        sum a = sum b = t
#
# Oracle: a cheapest flow from rows to columns, by the network simplex (`FlowNetwork`), from the
# last basis if one is given. (A simplex method of its own took as long from the last basis, and
# a half to a third of the time without one, from 20 by 30 on.)
# Center c = a b'/t. Rows and columns that sum to 0 carry nothing; with p and q the numbers of
# others,
#
#     dimension    = (p - 1)(q - 1)
#     tangent        rows and columns of the others made to sum to 0, as for the Birkhoff polytope
#     inner_radius = min_ij c_ij / |P E_ij|,  |P E_ij|^2 = (1 - 1/p)(1 - 1/q)      exact
#
# where the facets are X_ij = 0.
#
# An entry is at most u_ij = min(a_i, b_j), hence X_ij^2 <= u_ij X_ij, and one oracle call bounds
# how far a convex function can reach:
#
#     radius^2   <= |c|^2 + max_X <u - 2c, X>   equal if a farthest vertex has entries 0 or u_ij
#     diameter^2 <= min(4 radius^2, 2 max_X <u, X>)

# Of the largest sum: what rounding leaves in a cell.
_DUST = 1e-13


@final
@dataclass(frozen=True, eq=False, repr=False)
class Transportation(base.ClosedForm, Plans):
    """Nonnegative matrices with given sums of rows and columns.

    Inner radius and dimension exact; radius and diameter upper bounds.

    Parameters
    ----------
    rows : array
        What each row sums to, at least 0.
    columns : array
        What each column sums to, at least 0.

    Examples
    --------
    >>> K = tw.sets.Transportation(rows=[2.0, 3.0], columns=[4.0, 1.0])
    >>> K.lmo(np.array([[1.0, 0.0], [1.0, 3.0]]))
    array([[1., 1.],
           [3., 0.]])
    """

    rows: Annotated[Array, settings.Numbers(axes=1, least=0.0)]
    columns: Annotated[Array, settings.Numbers(axes=1, least=0.0)]

    def _complete(self) -> None:
        a, b = (
            float(arrays.to_numpy(sums).sum(dtype=np.float64)) for sums in (self.rows, self.columns)
        )
        eps = max(arrays.eps_of(self.rows), arrays.eps_of(self.columns))
        due = f"sum to {a:.10g}, as rows do, not {b:.10g}"
        self._require(abs(a - b) <= 100 * eps * max(a, b), "columns", due, EmptySet)
        self._require(max(a, b) > 0.0, "rows", "not all be 0")

    @property
    def shape(self) -> Shape:
        return (len(self._a), len(self._b))

    @cached_property
    def dimension(self) -> int:
        return (int(np.count_nonzero(self._a)) - 1) * (int(np.count_nonzero(self._b)) - 1)

    @cached_property
    def center(self) -> Array:
        return arrays.frozen(arrays.like(np.outer(self._a, self._b / self._b.sum()), self.rows))

    @cached_property
    def _sizes(self) -> base.Sizes:
        unit, caps = self._unit, self._caps / self._unit
        c = np.outer(self._a / unit, self._b / self._b.sum())
        most = self._most(caps - 2.0 * c) / unit
        radius = unit * math.sqrt(max(0.0, arrays.inner(c, c) + most))
        diameter = min(2.0 * radius, unit * math.sqrt(2.0 * self._most(caps) / unit))
        a, b = (sums[sums > 0] for sums in (self._a, self._b))
        inside = a.min() * (b.min() / b.sum()) / math.sqrt((1 - 1 / len(a)) * (1 - 1 / len(b)))
        return base.Sizes(self.dimension, radius, diameter, float(inside))

    def tangent(self, direction: Array) -> Array:
        if math.prod(self.shape) == len(self._cells):
            return centered(direction)
        projected = np.zeros(self.shape)
        projected[self._places] = centered(arrays.to_numpy(direction)[self._places])
        return arrays.like(projected, direction)

    def answer(self, direction: Array, warm: Array | None = None) -> oracle.Answer:
        x, gap, basis = self._network.cheapest(
            arrays.to_numpy(direction).reshape(-1)[self._cells].astype(np.float64, copy=False),
            None if warm is None else arrays.to_numpy(warm),
        )
        used = np.flatnonzero(x > _DUST * self._unit)
        return oracle.Answer(vertices.Sparse(self.shape, self._cells[used], x[used]), gap, basis)

    @classmethod
    def examples(cls) -> Sequence[Self]:
        return (
            cls([1.0], [1.0]),
            cls([2.0, 3.0], [5.0]),
            cls([1.0, 1.0, 1.0], [1.0, 1.0, 1.0]),
            cls([0.3, 0.7], [0.25, 0.25, 0.5]),
            cls([5.0, 0.0, 1e-3, 2.0], [0.0, 4.0, 3.001]),
            cls([1.0, 3.0, 2.0], [1.0, 2.0, 3.0]),
        )

    def _most(self, gains: NDArray) -> float:
        return self.answer(-gains).vertex.inner(gains)

    @cached_property
    def _a(self) -> Floats:
        return arrays.frozen(arrays.to_numpy(self.rows).astype(np.float64))

    @cached_property
    def _b(self) -> Floats:
        """The columns' sums, which rounding may have kept from adding up to the rows'."""
        columns = arrays.to_numpy(self.columns).astype(np.float64)
        return arrays.frozen(columns * (self._a.sum() / columns.sum()))

    @cached_property
    def _unit(self) -> float:
        """The largest sum: squares of what is measured by it neither vanish nor overflow."""
        return float(self._a.max())

    @cached_property
    def _places(self) -> tuple[NDArray, ...]:
        return np.ix_(np.flatnonzero(self._a), np.flatnonzero(self._b))

    @cached_property
    def _cells(self) -> Int32s:
        rows, columns = self._places
        return (rows * len(self._b) + columns).reshape(-1).astype(np.int32)

    @cached_property
    def _network(self) -> FlowNetwork:
        a, b = self._a[self._a > 0], self._b[self._b > 0]
        tails, heads = np.indices((len(a), len(b)), dtype=np.int32).reshape(2, -1)
        none, all_of_it = np.zeros(len(tails)), np.full(len(tails), a.sum())
        supply, nodes = np.concatenate([a, -b]), tuple(range(len(a) + len(b)))
        return FlowNetwork(tails, heads + np.int32(len(a)), none, all_of_it, supply, nodes)
