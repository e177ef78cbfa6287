"""Positive semidefinite matrices of bounded trace.

    { X = X' : X psd, tr X <= tau }                n x n;  vertices: 0 and tau v v', |v| = 1

Oracle: with lambda the smallest eigenvalue of (D + D')/2 and v its unit eigenvector, tau v v' if
lambda < 0, else 0; the minimum is tau min(lambda, 0), and error <= tolerance tau |(D + D')/2|_2
(spectral.py says how, and how surely).

Affine hull: the symmetric matrices, dimension n(n + 1)/2. Center c I, where the two kinds of facets
are equally far, X psd at c and tr X <= tau at (tau - n c)/sqrt(n):  c = tau/(n + sqrt n) =
inner_radius, the largest ball inside. The farthest members are the tau v v':

    radius^2 = (tau - c)^2 + (n - 1) c^2 = tau^2 - 2 tau c + n c^2  >=  n c^2 = |0 - c I|^2

since c <= tau/2 (the least possible radius is tau sqrt(1 - 1/n) for n > 1, at c = tau/n, on the
boundary). Diameter: |X - Y|^2 is convex, so largest between vertices: sqrt(2) tau between tau v v'
and tau w w' for v, w orthogonal; tau, from 0 to tau, for n = 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, final

from tidewolf.core.arrays import as_direction, as_point, namespace
from tidewolf.core.matrices import Matrix, as_matrix, example_array, largest_entry
from tidewolf.core.oracle import Answer
from tidewolf.core.settings import Number
from tidewolf.core.types import Array
from tidewolf.core.vertices import LowRank
from tidewolf.sets.simplices.simplex import Simplex
from tidewolf.sets.spectra.operators import SymmetricPart
from tidewolf.sets.spectra.spectral import (
    Certified,
    DenseUpTo,
    Failure,
    Side,
    StartSeed,
    SymmetricSpectral,
    Tolerance,
    asymmetry,
    eigenvalues,
    symmetric,
)


@final
@dataclass(frozen=True, eq=False, repr=False)
class BoundedPSD(SymmetricSpectral):
    """Positive semidefinite n x n matrices of trace at most `tau`. Geometry exact.

    Parameters
    ----------
    n : int
        How many rows, and columns, a matrix has.
    tau : float, default 1.0
        What the trace is at most.
    tolerance : float, default 0.01
        How far an iterative answer may be above the minimum, as a share of the spectral norm of
        the direction times the sum of the eigenvalues (of the singular values) of a vertex.
    failure : float, default 1e-06
        The chance that an iterative answer which is not certified is worse than its error says.
        1 promises nothing, and is quick.
    certified : bool, default False
        Whether the error of an iterative answer is proved by a Cholesky factor.
    dense : int, default 300
        Up to this many rows, or columns where there are fewer, a dense eigensolver answers,
        exactly.
    seed : int, default 0
        The seed of the random vectors that iterative answers start from.

    Examples
    --------
    >>> K = tw.sets.BoundedPSD(2)
    >>> K.lmo(np.array([[1.0, 0.0], [0.0, -2.0]])) + 0.0
    array([[0., 0.],
           [0., 1.]])
    >>> K.lmo(np.eye(2))  # no eigenvalue is negative: zero is best
    array([[0., 0.],
           [0., 0.]])
    """

    n: Side
    tau: Annotated[float, Number("What the trace is at most.", above=0.0)] = 1.0
    tolerance: Tolerance = 1e-2
    failure: Failure = 1e-6
    certified: Certified = False
    dense: DenseUpTo = 300
    seed: StartSeed = 0

    @property
    def ridge(self) -> float:
        return self.inner_radius

    @property
    def radius(self) -> float:
        c = self.inner_radius
        return math.hypot(self.tau - c, math.sqrt(self.n - 1) * c)

    @property
    def diameter(self) -> float:
        return self.tau if self.n == 1 else math.sqrt(2.0) * self.tau

    @property
    def inner_radius(self) -> float:
        return self.tau / (self.n + math.sqrt(self.n))

    def tangent(self, direction: Array) -> Array:
        direction = as_direction(direction, self.shape)
        return symmetric(direction)

    def infeasibility(self, x: Array) -> float:
        """The largest of: minus the smallest eigenvalue, the trace above tau, the difference
        between two entries that should be equal.
        """
        x = as_point(x, self.shape, "The point")
        return max(
            0.0, -eigenvalues(x)[0], float(namespace(x).linalg.trace(x)) - self.tau, asymmetry(x)
        )

    def answer(self, direction: Matrix, warm: Array | None = None) -> Answer:
        D = as_matrix(direction, self.shape)
        size, reference = largest_entry(D), example_array(D)
        if size == 0.0:
            return Answer(self._zero(reference), warm=warm)
        found, next_warm = self._leading(
            SymmetricPart(D, size), warm, reference, self.tolerance, floor=0.0
        )
        error = self.tau * size * max(0.0, found.gap + min(0.0, found.value))
        if found.value <= 0.0:
            return Answer(self._zero(reference), error, next_warm)
        return Answer(LowRank(math.sqrt(self.tau) * found.vector[None, :]), error, next_warm)

    def _zero(self, reference: Array) -> LowRank:
        return LowRank.ridged(self.n, 0.0, reference)

    @property
    def spectrum(self) -> Simplex:
        """{ w >= 0, sum w <= tau }."""
        return Simplex(self.n, self.tau, at_most=True)

    @classmethod
    def examples(cls) -> Sequence[BoundedPSD]:
        return (
            cls(1, 3.0),
            cls(2),
            cls(4, 0.5, tolerance=1e-3, dense=0),
            cls(5, 20.0, certified=True, dense=0),
        )
