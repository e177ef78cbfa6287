"""The ellipsoid of a positive definite matrix A.

    { (x - c)' A (x - c) <= 1 }

Its semi-axes are s_i = 1/sqrt(a_i) along the eigenvectors of A, a_i its eigenvalues. A vector for A
is its diagonal. In the coordinates u = Q'(x - c), A = Q diag(a) Q', it is sum_i (u_i/s_i)^2 <= 1,
the unit ball stretched by s. Oracle: with e = Q'd the answer is u = -s (s e)/|s e|, from d divided
by its largest size; the center for d = 0. Radius: the longest semi-axis; diameter: twice that;
inner radius: the shortest.

Projection of u outside: x_i = s_i p_i, p_i = s_i u_i/(s_i^2 + t), with the t > 0 for which
f(t) = |p| is 1. Since 1/f is concave and grows, Newton's method on 1/f = 1 stays below the root
from any t with f(t) >= 1, and |s u| - max s^2 is one.

The matrix is turned once, by a dense eigensolver in double precision; "exact" is up to its
rounding, eps times the condition of A.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, final

import numpy as np

from tidewolf.core.arrays import (
    as_point,
    eps_of,
    frozen,
    inner,
    length,
    like,
    namespace,
    norm,
    to_numpy,
)
from tidewolf.core.errors import InvalidInput, WrongShape
from tidewolf.core.oracle import Answer
from tidewolf.core.settings import Numbers
from tidewolf.core.types import Array, Floats, NDArray, Shape
from tidewolf.core.vertices import Dense
from tidewolf.sets.base import ConvexSet, Projectable, Relaxable, clipped, require_shape

_MOST_STEPS = 100


@final
@dataclass(frozen=True, eq=False, repr=False)
class Ellipsoid(ConvexSet, Projectable, Relaxable):
    """Vectors x with (x - center)' A (x - center) <= 1. Geometry exact.

    For { (x - c)' A (x - c) <= r } give A/r.

    Parameters
    ----------
    matrix : array
        The positive definite matrix A, or its diagonal.
    center : array, optional
        The middle of the ellipsoid. None: the origin.

    Examples
    --------
    >>> K = tw.sets.Ellipsoid([1.0, 0.25])  # semi-axes 1 and 2
    >>> K.lmo(np.array([0.0, 1.0])) + 0.0
    array([ 0., -2.])
    """

    matrix: Annotated[Array, Numbers("The positive definite matrix A, or its diagonal.")]
    center: Annotated[Array, Numbers("The middle of the ellipsoid. None: the origin.")] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        matrix = self.matrix
        n = matrix.shape[0] if matrix.shape else 0
        if tuple(matrix.shape) not in ((n,), (n, n)) or n == 0:
            raise WrongShape(
                "matrix of Ellipsoid must be n x n, or the n entries of its diagonal, not of shape "
                f"{tuple(matrix.shape)}.",
                setting="matrix",
            )
        center = np.zeros(n) if self.center is None else self.center
        object.__setattr__(self, "center", frozen(like(center, matrix)))
        require_shape(self, "center", self.shape)
        A = to_numpy(matrix)
        if A.ndim == 2 and np.max(np.abs(A - A.T)) > 100 * eps_of(matrix) * np.max(np.abs(A)):
            raise InvalidInput(
                "matrix of Ellipsoid must be symmetric; give (A + A')/2.", setting="matrix"
            )
        eigenvalues = self._eigen[0]
        smallest, largest = float(np.min(eigenvalues)), float(np.max(eigenvalues))
        if smallest <= n * eps_of(matrix) * largest or largest <= 0:
            raise InvalidInput(
                "matrix of Ellipsoid must be positive definite; its eigenvalues run from "
                f"{smallest:.3g} to {largest:.3g}.",
                setting="matrix",
            )

    @property
    def shape(self) -> Shape:
        return (self.matrix.shape[0],)

    @cached_property
    def radius(self) -> float:
        return float(np.max(self._semiaxes))

    @cached_property
    def inner_radius(self) -> float:
        return float(np.min(self._semiaxes))

    def infeasibility(self, x: Array) -> float:
        """How much larger the ellipsoid would have to be to hold x, times the shortest semi-axis:
        at most the distance to it.
        """
        x = as_point(x, self.shape, "The point")
        u = self._to_axes(x - like(self.center, x))
        return self.inner_radius * max(0.0, length(u / like(self._semiaxes, u)) - 1.0)

    def answer(self, direction: Array, warm: Array | None = None) -> Answer:
        xp, center = namespace(direction), like(self.center, direction)
        s = like(self._semiaxes, direction)
        largest = float(xp.max(xp.abs(direction)))
        if largest == 0.0:
            return Answer(Dense(center))
        stretched = s * self._to_axes(direction / largest)
        return Answer(Dense(center - self._from_axes(s * (stretched / length(stretched)))))

    def project(self, y: Array) -> Array:
        """One scalar root."""
        y = as_point(y, self.shape, "The point to project")
        # in units of the longest semi-axis
        center, s = like(self.center, y), like(self._semiaxes / self.radius, y)
        u = self._to_axes((y - center) / self.radius)
        if length(u / s) <= 1.0:
            return namespace(y).asarray(y, copy=True)
        t = max(0.0, length(s * u) - 1.0)
        for _ in range(_MOST_STEPS):
            p = s * u / (s**2 + t)
            f = norm(p)
            ahead = t + (f - 1.0) * f**2 / inner(p, p / (s**2 + t))
            if not ahead > t:
                break
            t = ahead
        return center + self.radius * self._from_axes(s * p / f)

    def relax(self, y: Array) -> Array:
        """The smallest box around it: c_i +- the root of entry i of the diagonal of the inverse of
        A.
        """
        center = to_numpy(self.center)
        return clipped(y, self.shape, center - self._widths, center + self._widths)

    @classmethod
    def examples(cls) -> Sequence[Ellipsoid]:
        return (
            cls([4.0]),
            cls([1.0, 0.01, 25.0], [0.0, 5.0, -1.0]),
            cls([[2.0, 1.0, 0.0], [1.0, 3.0, -1.0], [0.0, -1.0, 1.0]], [1.0, 2.0, 3.0]),
        )

    @cached_property
    def _eigen(self) -> tuple[NDArray, NDArray | None]:
        """The eigenvalues of A, and its eigenvectors as columns (None: the axes)."""
        A = to_numpy(self.matrix).astype(np.float64)
        if A.ndim == 1:
            return A, None
        values, vectors = np.linalg.eigh(0.5 * (A + A.T))
        return values, vectors

    @cached_property
    def _semiaxes(self) -> Floats:
        return np.asarray(1.0 / np.sqrt(self._eigen[0]))

    @cached_property
    def _widths(self) -> Floats:
        """Half of those of the smallest box around it."""
        basis = self._eigen[1]
        if basis is None:
            return self._semiaxes
        return self.radius * np.sqrt(basis**2 @ (self._semiaxes / self.radius) ** 2)

    def _to_axes(self, x: Array) -> Array:
        basis = self._eigen[1]
        return x if basis is None else x @ like(basis, x)

    def _from_axes(self, u: Array) -> Array:
        basis = self._eigen[1]
        return u if basis is None else like(basis, u) @ u
