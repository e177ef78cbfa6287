"""Positive semidefinite matrices of bounded trace.

    { X = X' : X psd, tr X <= tau }                n x n;  vertices: 0 and tau v v', |v| = 1

Oracle: with lambda the smallest eigenvalue of (D + D')/2 and v its unit eigenvector, tau v v' if
lambda < 0, else 0; the minimum is tau min(lambda, 0), and error <= tolerance tau |(D + D')/2|_2
(spectral.py says how, and how surely).

Affine hull: the symmetric matrices, dimension n(n + 1)/2. Center c I, where the two kinds of facets
are equally far, X psd at c and tr X <= tau at (tau - n c)/sqrt(n):  c = tau/(n + sqrt n) =
inner_radius, the largest ball inside. The farthest members are the tau v v':

    radius^2 = (tau - c)^2 + (n - 1) c^2 = tau^2 - 2 tau c + n c^2  >=  n c^2 = |0 - c I|^2  since c
               <= tau/2

(the least possible radius is tau sqrt(1 - 1/n) for n > 1, at c = tau/n, on the boundary). Diameter:
|X - Y|^2 is convex, so largest between vertices: sqrt(2) tau between tau v v' and tau w w' for v, w
orthogonal; tau, from 0 to tau, for n = 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from tidewolf.core.arrays import (
    MOST_SIDE,
    as_count,
    as_direction,
    as_number,
    as_point,
    frozen,
    like,
    namespace,
)
from tidewolf.core.low_rank import LowRank
from tidewolf.core.matrices import Matrix, as_matrix, example, largest
from tidewolf.core.oracle import Answer
from tidewolf.core.types import Array, Shape
from tidewolf.core.vertices import Vertex
from tidewolf.sets.simplices.simplex import Simplex
from tidewolf.sets.spectra.operators import SymmetricPart
from tidewolf.sets.spectra.spectral import Spectral, asymmetry, eigenvalues


@final
@dataclass(frozen=True, eq=False, repr=False)
class BoundedPSD(Spectral):
    """Positive semidefinite n x n matrices of trace at most `tau`. Geometry exact."""

    n: int
    tau: float = 1.0
    tolerance: float = 1e-2
    """error of an iterative answer, as a share of tau |D|_2"""
    failure: float = 1e-6
    """chance that an answer which is not `certified` is worse than its error says; 1 promises
    nothing, and is quick
    """
    certified: bool = False
    dense: int = 300
    """up to this n a dense eigensolver answers, exactly"""
    seed: int = 0

    def __post_init__(self) -> None:
        self._settle(
            n=as_count(self.n, "The size n of the matrices", most=MOST_SIDE),
            tau=as_number(self.tau, "The bound tau on the trace", above=0.0),
        )

    @property
    def shape(self) -> Shape:
        return (self.n, self.n)

    @property
    def dimension(self) -> int:
        return self.n * (self.n + 1) // 2

    @cached_property
    def center(self) -> Array:
        return frozen(self.inner_radius * np.eye(self.n))

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
        return 0.5 * direction + 0.5 * direction.T

    def excess(self, x: Array) -> float:
        """The largest of: minus the smallest eigenvalue, the trace above tau, the difference
        between two entries that should be equal.
        """
        x = as_point(x, self.shape, "The point")
        return max(
            0.0, -eigenvalues(x)[0], float(namespace(x).linalg.trace(x)) - self.tau, asymmetry(x)
        )

    def answer(self, direction: Matrix, warm: Array | None = None) -> Answer:
        D = as_matrix(direction, self.shape)
        size, reference = largest(D), example(D)
        if size == 0.0:
            return Answer(self._zero(reference), warm=warm)
        found, after = self._leading(
            SymmetricPart(D, size), warm, reference, self.tolerance, floor=0.0
        )
        error = self.tau * size * max(0.0, found.gap + min(0.0, found.value))
        if found.value <= 0.0:
            return Answer(self._zero(reference), error, after)
        return Answer(LowRank(math.sqrt(self.tau) * found.vector[None, :]), error, after)

    def _zero(self, reference: Array) -> LowRank:
        return LowRank(like(np.zeros((0, self.n)), reference))

    def atom(self, point: Array) -> Vertex:
        return LowRank.of(point)

    def project(self, y: Array) -> Array:
        """Exact: the eigenvalues of the symmetric part are projected on
        { w >= 0, sum w <= tau }.
        """
        y = as_point(y, self.shape, "The point to project")
        xp = namespace(y)
        values, vectors = xp.linalg.eigh(0.5 * (y + y.T))
        rows = vectors * xp.sqrt(Simplex(self.n, self.tau, at_most=True).project(values))
        return rows @ rows.T

    @classmethod
    def examples(cls) -> Sequence[BoundedPSD]:
        return (
            cls(1, 3.0),
            cls(2),
            cls(4, 0.5, tolerance=1e-3, dense=0),
            cls(5, 20.0, certified=True, dense=0),
        )
