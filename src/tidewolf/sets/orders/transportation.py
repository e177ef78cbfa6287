"""The transportation polytope: how much goes from each of m places to each of n others.

    { X >= 0 : row i sums to a_i, column j to b_j },        sum a = sum b = t

Oracle: the simplex method on trees, from the last basis where one is given (`transport_plan.py`).
Center c = a b'/t. Rows and columns that sum to 0 carry nothing; with p and q the numbers of others,

    dimension    = (p - 1)(q - 1)
    tangent        rows and columns of the others made to sum to 0, as for the Birkhoff polytope
    inner_radius = min_ij c_ij / |P E_ij|,  |P E_ij|^2 = (1 - 1/p)(1 - 1/q)      exact

where the facets are X_ij = 0.

An entry is at most u_ij = min(a_i, b_j), hence X_ij^2 <= u_ij X_ij, and one oracle call bounds how
far a convex function can reach:

    radius^2   <= |c|^2 + max_X <u - 2c, X>   equal where entries of a farthest vertex are 0 or u_ij
    diameter^2 <= min(4 radius^2, 2 max_X <u, X>)
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
    like,
    namespace,
    to_numpy,
)
from tidewolf.core.errors import EmptySet, InvalidInput
from tidewolf.core.oracle import Answer
from tidewolf.core.settings import Numbers
from tidewolf.core.types import Array, Floats, NDArray, Shape
from tidewolf.core.vertices import Sparse, Vertex
from tidewolf.sets.base import (
    ConvexSet,
    LinearDescription,
    Polyhedral,
    Relaxable,
    clipped,
)
from tidewolf.sets.orders.birkhoff import centered, row_and_column_sums
from tidewolf.sets.orders.transport_plan import (
    TransportPlan,
    WholeAmounts,
    cheapest_plan,
    whole_amounts,
)


@final
@dataclass(frozen=True, eq=False, repr=False)
class Transportation(ConvexSet, Polyhedral, Relaxable):
    """Nonnegative matrices with given sums of rows and columns.

    Inner radius and dimension exact; radius and diameter upper bounds.

    Parameters
    ----------
    rows : array
        What each row sums to, at least 0.
    columns : array
        What each column sums to, at least 0; in all, as much as the rows.

    Examples
    --------
    >>> K = tw.sets.Transportation(rows=[2.0, 3.0], columns=[4.0, 1.0])
    >>> K.lmo(np.array([[1.0, 0.0], [1.0, 3.0]]))
    array([[1., 1.],
           [3., 0.]])
    """

    rows: Annotated[Array, Numbers("What each row sums to, at least 0.", axes=1)]
    columns: Annotated[
        Array, Numbers("What each column sums to, at least 0; in all, as much as the rows.", axes=1)
    ]

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("rows", "columns"):
            sums = getattr(self, name)
            if float(namespace(sums).min(sums)) < 0.0:
                at = int(namespace(sums).argmin(sums))
                raise EmptySet(
                    f"Nonnegative entries cannot sum to {float(sums[at]):g}, the sum asked of "
                    f"{name} at {at}: make it at least 0.",
                    setting=name,
                )
        a, b = (float(to_numpy(sums).sum(dtype=np.float64)) for sums in (self.rows, self.columns))
        if abs(a - b) > 100 * max(eps_of(self.rows), eps_of(self.columns)) * max(a, b):
            raise EmptySet(
                f"The rows sum to {a:.10g} and the columns to {b:.10g}; what is sent must arrive: "
                "scale one to the other's total.",
                setting="columns",
            )
        if max(a, b) == 0.0:
            raise InvalidInput(
                "All rows and columns sum to 0, so that nothing can be sent: give a positive "
                "total.",
                setting="rows",
            )

    @property
    def shape(self) -> Shape:
        return (len(self._a), len(self._b))

    @cached_property
    def dimension(self) -> int:
        return (int(np.count_nonzero(self._a)) - 1) * (int(np.count_nonzero(self._b)) - 1)

    @cached_property
    def center(self) -> Array:
        return frozen(like(np.outer(self._a, self._b / self._b.sum()), self.rows))

    @cached_property
    def radius(self) -> float:
        if not self.dimension:
            return 0.0
        unit = self._unit
        c = np.outer(self._a / unit, self._b / self._b.sum())
        return unit * math.sqrt(
            max(0.0, inner(c, c) + self._most(self._caps / unit - 2.0 * c) / unit)
        )

    @cached_property
    def diameter(self) -> float:
        unit = self._unit
        return min(
            2.0 * self.radius, unit * math.sqrt(2.0 * (self._most(self._caps / unit) / unit))
        )

    @cached_property
    def inner_radius(self) -> float:
        if not self.dimension:
            return 0.0
        a, b = (sums[sums > 0] for sums in (self._a, self._b))
        return float(a.min() * (b.min() / b.sum()) / math.sqrt((1 - 1 / len(a)) * (1 - 1 / len(b))))

    def tangent(self, direction: Array) -> Array:
        direction = as_direction(direction, self.shape)
        if self._places is None:
            return centered(direction)
        projected = np.zeros(self.shape)
        projected[self._places] = centered(to_numpy(direction)[self._places])
        return like(projected, direction)

    def infeasibility(self, x: Array) -> float:
        """The largest negative entry or error of the sum of a row or column."""
        x = as_point(x, self.shape, "The matrix")
        xp = namespace(x)
        off = (xp.sum(x, axis=1) - like(self._a, x), xp.sum(x, axis=0) - like(self._b, x))
        return max(0.0, -float(xp.min(x)), *(float(xp.max(xp.abs(errors))) for errors in off))

    def answer(self, direction: Array, warm: Array | None = None) -> Answer:
        plan = self._plan(to_numpy(direction), warm)
        cells = plan.cells
        if self._places is not None:
            rows, columns = (places.reshape(-1) for places in self._places)
            cells = rows[cells // len(columns)] * len(self._b) + columns[cells % len(columns)]
        return Answer(
            Sparse(self.shape, cells.astype(np.int32), plan.values), warm=frozen(plan.basis)
        )

    def atom(self, point: Array) -> Vertex:
        return Sparse.of(point)

    def relax(self, y: Array) -> Array:
        """The nearest matrix with entries between 0 and what row and column allow."""
        return clipped(y, self.shape, 0.0, self._caps)

    def description(self) -> LinearDescription:
        """The last column's sum follows from the others."""
        sums = row_and_column_sums(*self.shape)[:-1]
        bounds = np.zeros(self._caps.size), self._caps.reshape(-1)
        return LinearDescription(*bounds, A_eq=sums, b_eq=np.concatenate([self._a, self._b[:-1]]))

    @classmethod
    def examples(cls) -> Sequence[Transportation]:
        return (
            cls([1.0], [1.0]),
            cls([2.0, 3.0], [5.0]),
            cls([1.0, 1.0, 1.0], [1.0, 1.0, 1.0]),
            cls([0.3, 0.7], [0.25, 0.25, 0.5]),
            cls([5.0, 0.0, 1e-3, 2.0], [0.0, 4.0, 3.001]),
            cls([1.0, 3.0, 2.0], [1.0, 2.0, 3.0]),
        )

    def _plan(self, direction: NDArray, warm: Array | None = None) -> TransportPlan:
        costs = direction if self._places is None else direction[self._places]
        return cheapest_plan(np.ascontiguousarray(costs, dtype=np.float64), self._amounts, warm)

    def _most(self, gains: NDArray) -> float:
        """max_X <gains, X>."""
        return self.answer(-gains).vertex.inner(gains)

    @cached_property
    def _a(self) -> Floats:
        return frozen(to_numpy(self.rows).astype(np.float64))

    @cached_property
    def _b(self) -> Floats:
        """The columns' sums, which rounding may have kept from adding up to the rows'."""
        columns = to_numpy(self.columns).astype(np.float64)
        return frozen(columns * (self._a.sum() / columns.sum()))

    @cached_property
    def _unit(self) -> float:
        """The largest sum: squares of what is measured by it neither vanish nor overflow."""
        return float(self._a.max())

    @cached_property
    def _caps(self) -> Floats:
        return np.minimum(self._a[:, None], self._b[None, :])

    @cached_property
    def _places(self) -> tuple[NDArray, ...] | None:
        """Where rows and columns that carry something cross; None where all do."""
        carry = np.flatnonzero(self._a), np.flatnonzero(self._b)
        return None if (len(carry[0]), len(carry[1])) == self.shape else np.ix_(*carry)

    @cached_property
    def _amounts(self) -> WholeAmounts:
        return whole_amounts(self._a[self._a > 0], self._b[self._b > 0])
