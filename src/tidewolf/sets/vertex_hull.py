"""The hull of points: every weighted mean of a finite list.

    { sum_i w_i p_i : w >= 0, sum w = 1 }

Oracle: the best of the points, the first among equals. Center: their mean. Excess: the distance to
the hull. With Z the matrix of columns p_i - x, the weights that minimise ||Z w|| over the simplex
are the normalised minimiser of a nonnegative least squares problem,

    min_{w >= 0}  ||Z w||^2 + (1 - sum w)^2 ,

since along a ray w = s v, sum v = 1, the best s leaves ||Z v||^2 / (1 + ||Z v||^2), which grows
with ||Z v||. The distance reported is that of the normalised weights' own point: whatever the
solver's rounding, never less than the truth.

Inner radius: the least distance from the mean c to a facet, by Qhull in up to 6 dimensions. Beyond,
with S the rows p_i - c, whose sum is 0, a point c + u of the hull has the weights w = 1/k + S
(S'S)^+ u, which are not negative while |u| is at most

    inner_radius >= min_i 1 / (k |(S'S)^+ (p_i - c)|),
    equal where the points are affinely independent: their weights are unique.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, final

import numpy as np

from tidewolf.core.arrays import (
    eps_of,
    flat,
    frozen,
    like,
    namespace,
    to_numpy,
)
from tidewolf.core.errors import EmptySet, SolverFailed
from tidewolf.core.oracle import Answer
from tidewolf.core.settings import Numbers, as_shape
from tidewolf.core.types import Array, Floats, Shape
from tidewolf.core.vertices import Dense
from tidewolf.sets.base import ConvexSet, LinearDescription, Polyhedral, Relaxable, clipped

_FEW = 512
_FLAT = 6
"""Dimensions in which facets are few enough to list."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class VertexHull(ConvexSet, Polyhedral, Relaxable):
    """The convex hull of finitely many points.

    Radius exact; diameter exact for up to 512 points, else twice the radius; inner radius exact
    in up to 6 dimensions and for affinely independent points, else a lower bound.

    Parameters
    ----------
    points : array
        The points, along the first axis; duplicates are welcome.

    Examples
    --------
    >>> K = tw.sets.VertexHull([[0.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
    >>> K.lmo(np.array([-1.0, 1.0]))
    array([2., 0.])
    """

    points: Annotated[Array, Numbers("The points, along the first axis; duplicates are welcome.")]

    def __post_init__(self) -> None:
        super().__post_init__()
        if 0 in self.points.shape[:1]:
            raise EmptySet("The hull of no points is empty: give at least one.", setting="points")
        as_shape(self.points.shape[1:], "The hull")

    @property
    def shape(self) -> Shape:
        return tuple(self.points.shape[1:])

    @property
    def dimension(self) -> int:
        return len(self._basis)

    @cached_property
    def center(self) -> Array:
        return frozen(like(np.mean(self._rows, axis=0).reshape(self.shape), self.points))

    @cached_property
    def radius(self) -> float:
        return _longest(self._spokes)

    @cached_property
    def diameter(self) -> float:
        if len(self._rows) > _FEW:
            return 2.0 * self.radius
        return max(_longest(self._rows - row) for row in self._rows)

    @cached_property
    def inner_radius(self) -> float:
        if not self.dimension:
            return 0.0
        unit = self.radius
        return unit * self._inner_radius((self._spokes / unit) @ self._basis.T)

    def _inner_radius(self, spokes: Floats) -> float:
        """That of the hull of these points, in coordinates of the affine hull, their mean 0."""
        if self.dimension == 1:
            return float(min(spokes.max(), -spokes.min()))
        slopes = np.linalg.norm(spokes @ np.linalg.inv(spokes.T @ spokes), axis=1)
        surely = 1.0 / (len(spokes) * float(np.max(slopes)))
        if self.dimension > _FLAT or len(spokes) == self.dimension + 1:
            return surely
        return max(surely, _nearest_facet(spokes))

    def tangent(self, direction: Array) -> Array:
        basis = like(self._basis, direction)
        return namespace(direction).reshape((basis @ flat(direction)) @ basis, self.shape)

    def infeasibility(self, x: Array) -> float:
        """The distance to the hull."""
        from scipy.optimize import nnls

        away = self._rows - to_numpy(x).reshape(-1)
        scale = float(np.max(np.abs(away), initial=0.0))
        if scale == 0.0:
            return 0.0
        away = away / scale
        columns = np.vstack([away.T, np.ones(len(away))])
        sides = np.append(np.zeros(len(columns) - 1), 1.0)
        try:
            weights, _ = nnls(columns, sides, maxiter=30 * len(away))
        except RuntimeError as error:
            raise SolverFailed(f"The distance to a hull was not found: {error}.") from error
        return scale * float(np.linalg.norm(weights @ away) / np.sum(weights))

    def answer(self, direction: Array, warm: Array | None = None) -> Answer:
        xp, points = namespace(direction), like(self.points, direction)
        d = flat(direction) / (_power_of_2(direction) or 1.0)
        values = like(self._unit_rows, direction) @ d
        return Answer(Dense(points[int(xp.argmin(values)), ...]))

    def relax(self, y: Array) -> Array:
        """The smallest box around the points."""
        return clipped(y, *self._box)

    def description(self) -> LinearDescription:
        k = len(self._rows)
        return LinearDescription(
            np.zeros(k), np.ones(k), A_eq=np.ones((1, k)), b_eq=np.ones(1), lift=self._rows.T
        )

    @classmethod
    def examples(cls) -> Sequence[VertexHull]:
        return (
            cls([[1.0, -2.0]]),
            cls([[0.5, 0.5], [0.5, 0.5], [0.5, 0.5]]),
            cls([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [2.0, 2.0, 2.0], [1.0, 1.0, 1.0]]),
            cls([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.25, 0.25]]),
            cls([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]], [[0.0, 0.0], [3.0, 0.0]]]),
        )

    @cached_property
    def _rows(self) -> Floats:
        """The points, flattened, one a row."""
        points = to_numpy(self.points).astype(np.float64)
        return frozen(points.reshape(self.points.shape[0], -1))

    @cached_property
    def _unit_rows(self) -> Floats:
        """The same of size about 1, without rounding: products with a direction of size 1 neither
        vanish nor overflow.
        """
        return self._rows / (_power_of_2(self._rows) or 1.0)

    @cached_property
    def _spokes(self) -> Floats:
        return self._rows - to_numpy(self.center).astype(np.float64).reshape(-1)

    @cached_property
    def _box(self) -> tuple[Array, Array]:
        lower, upper = (bound(self._rows, axis=0).reshape(self.shape) for bound in (np.min, np.max))
        return lower, upper

    @cached_property
    def _basis(self) -> Floats:
        """Orthonormal rows that span the differences of the points; what rounding of the points
        alone could cause does not count.
        """
        _, sizes, rows = np.linalg.svd(self._spokes, full_matrices=False)
        size = max(self.radius, float(np.max(np.abs(self._rows))))
        noise = max(self._rows.shape) * eps_of(self.points) * size
        return rows[sizes > noise]  # type: ignore[no-any-return]


def _power_of_2(x: Array) -> float:
    """The power of 2 just above the largest entry in size, which can be divided by without
    rounding; 0 for zero.
    """
    fraction, power = math.frexp(float(namespace(x).max(namespace(x).abs(x))))
    return math.ldexp(1.0, power - 1) if fraction else 0.0


def _longest(rows: Floats) -> float:
    """The length of the longest row, without overflow or underflow on the way."""
    size = float(np.max(np.abs(rows)))
    return size * float(np.max(np.linalg.norm(rows / size, axis=1))) if size else 0.0


def _nearest_facet(points: Floats) -> float:
    """The distance from 0 to the nearest facet of the hull of the points, 0 where Qhull cannot
    tell.
    """
    from scipy.spatial import ConvexHull, QhullError

    size = float(np.max(np.abs(points)))
    try:
        return size * float(np.min(-ConvexHull(points / size).equations[:, -1]))
    except QhullError:
        return 0.0
