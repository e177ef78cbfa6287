"""Positive semidefinite matrices of given trace: the simplex of matrices (density matrices, for
tau = 1).

    { X = X' : X psd, tr X = tau }                 n x n;  vertices: tau v v', |v| = 1

Oracle: tau v v' with v a unit eigenvector of the smallest eigenvalue lambda of (D + D')/2; the
minimum is tau lambda, and error <= tolerance tau |(D + D')/2|_2 (spectral.py says how, and how
surely).

Affine hull: the symmetric matrices of trace tau, dimension n(n + 1)/2 - 1. Center (tau/n) I, radius
|tau v v' - (tau/n) I| = tau sqrt(1 - 1/n), the least possible. Diameter: |X - Y|^2 is convex, so
largest between vertices, and |v v' - w w'|^2 = 2 - 2 <v, w>^2: sqrt(2) tau; 0 for n = 1. Inner
radius: a U = U' with tr U = 0, |U| = 1 has an eigenvalue of -sqrt((n - 1)/n) at the least, where
the others are equal, so (tau/n) I + r U is psd for all of them up to r = tau/sqrt(n (n - 1)).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, final

import numpy as np

from tidewolf.core.arrays import as_point, like, namespace
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
    traceless,
)


@final
@dataclass(frozen=True, eq=False, repr=False)
class Spectraplex(SymmetricSpectral):
    """Positive semidefinite n x n matrices of trace `tau`. Geometry exact.

    Parameters
    ----------
    n : int
        How many rows, and columns, a matrix has.
    tau : float, default 1.0
        What the trace is.
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
    >>> K = tw.sets.Spectraplex(2)
    >>> K.lmo(np.array([[1.0, 0.0], [0.0, 3.0]])) + 0.0
    array([[1., 0.],
           [0., 0.]])
    """

    n: Side
    tau: Annotated[float, Number("What the trace is.", above=0.0)] = 1.0
    tolerance: Tolerance = 1e-2
    failure: Failure = 1e-6
    certified: Certified = False
    dense: DenseUpTo = 300
    seed: StartSeed = 0

    @property
    def dimension(self) -> int:
        return super().dimension - 1

    @property
    def ridge(self) -> float:
        return self.tau / self.n

    @property
    def radius(self) -> float:
        return self.tau * math.sqrt(1.0 - 1.0 / self.n)

    @property
    def diameter(self) -> float:
        return 0.0 if self.n == 1 else math.sqrt(2.0) * self.tau

    @property
    def inner_radius(self) -> float:
        return 0.0 if self.n == 1 else self.tau / math.sqrt(self.n * (self.n - 1))

    def tangent(self, direction: Array) -> Array:
        return traceless(direction, self.shape)

    def infeasibility(self, x: Array) -> float:
        """The largest of: minus the smallest eigenvalue, the error of the trace, the difference
        between mirrored entries.
        """
        x = as_point(x, self.shape, "The point")
        return max(
            0.0,
            -eigenvalues(x)[0],
            abs(float(namespace(x).linalg.trace(x)) - self.tau),
            asymmetry(x),
        )

    def answer(self, direction: Matrix, warm: Array | None = None) -> Answer:
        D = as_matrix(direction, self.shape)
        size, reference = largest_entry(D), example_array(D)
        if size == 0.0:
            return Answer(
                LowRank(like(math.sqrt(self.tau) * np.eye(1, self.n), reference)), warm=warm
            )
        found, next_warm = self._leading(
            SymmetricPart(D, size), warm, reference, self.tolerance, floor=-math.inf
        )
        return Answer(
            LowRank(math.sqrt(self.tau) * found.vector[None, :]),
            self.tau * size * found.gap,
            next_warm,
        )

    @property
    def spectrum(self) -> Simplex:
        """{ w >= 0, sum w = tau }."""
        return Simplex(self.n, self.tau)

    @classmethod
    def examples(cls) -> Sequence[Spectraplex]:
        return (
            cls(1, 3.0),
            cls(2),
            cls(4, 0.5, tolerance=1e-3, dense=0),
            cls(5, 20.0, certified=True, dense=0),
        )
