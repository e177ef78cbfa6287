"""Positive semidefinite matrices of bounded trace.

    { X = X' : X psd, tr X <= tau }                n x n;  vertices: 0 and tau v v', |v| = 1

Oracle: with lambda the smallest eigenvalue of (D + D')/2 and v its unit eigenvector, tau v v' if lambda < 0, else 0; the minimum is
tau min(lambda, 0). Up to `dense` rows by a dense eigensolver, exactly; beyond by Lanczos (lanczos.py) from the caller's last eigenvector
with a random part, until

    error  <=  tolerance tau |(D + D')/2|_2      (the largest eigenvalue in size as seen)

which holds but for a chance of `failure` in each call, for directions chosen without looking at the numbers of `seed`. With `certified` a
Cholesky factor of the shifted matrix proves it: one n^3/3 factorisation and few products, in place of more products. Where either fails,
the dense eigensolver answers.

Affine hull: the symmetric matrices, dimension n(n + 1)/2. Center c I, where the two kinds of facets are equally far, X psd at c and
tr X <= tau at (tau - n c)/sqrt(n):  c = tau/(n + sqrt n) = inner_radius, the largest ball inside. The farthest members are the tau v v':

    radius^2 = (tau - c)^2 + (n - 1) c^2 = tau^2 - 2 tau c + n c^2  >=  n c^2 = |0 - c I|^2  since c <= tau/2

(the least possible radius is tau sqrt(1 - 1/n) for n > 1, at c = tau/n, on the boundary). Diameter: |X - Y|^2 is convex, so largest between
vertices: sqrt(2) tau between tau v v' and tau w w' for v, w orthogonal; tau, from 0 to tau, for n = 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from tidewolf.core.arrays import Array, Shape, as_count, as_direction, as_number, as_point, frozen, like, namespace
from tidewolf.core.errors import InvalidInput
from tidewolf.core.low_rank import LowRank
from tidewolf.core.oracle import Answer
from tidewolf.core.randomness import generator
from tidewolf.core.vertices import Vertex
from tidewolf.sets.base import ConvexSet, Projectable
from tidewolf.sets.lanczos import Found, probable, proved, start
from tidewolf.sets.simplex import Simplex


@final
@dataclass(frozen=True, eq=False, repr=False)
class BoundedPSD(ConvexSet, Projectable):
    """Positive semidefinite n x n matrices of trace at most `tau`. Geometry exact."""

    n: int
    tau: float = 1.0
    tolerance: float = 1e-2
    """error of an iterative answer, as a share of tau |D|_2"""
    failure: float = 1e-6
    """chance that an answer which is not `certified` is worse than its error says"""
    certified: bool = False
    dense: int = 300
    """up to this n a dense eigensolver answers, exactly"""
    seed: int = 0

    def __post_init__(self) -> None:
        checked = {
            "n": as_count(self.n, "The size n of the matrices"),
            "tau": as_number(self.tau, "The bound tau on the trace", above=0.0),
            "tolerance": as_number(self.tolerance, "tolerance", above=0.0),
            "failure": as_number(self.failure, "failure", above=0.0),
            "certified": bool(self.certified),
            "dense": as_count(self.dense, "dense", least=0),
            "seed": as_count(self.seed, "A seed", least=0),
        }
        if checked["failure"] >= 1.0:
            raise InvalidInput(f"failure is a probability below 1, not {self.failure:g}.")
        for name, value in checked.items():
            object.__setattr__(self, name, value)

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
        return math.sqrt((self.tau - c) ** 2 + (self.n - 1) * c**2)

    @property
    def diameter(self) -> float:
        return self.tau if self.n == 1 else math.sqrt(2.0) * self.tau

    @property
    def inner_radius(self) -> float:
        return self.tau / (self.n + math.sqrt(self.n))

    def tangent(self, direction: Array) -> Array:
        direction = as_direction(direction, self.shape)
        return 0.5 * (direction + direction.T)

    def excess(self, x: Array) -> float:
        """The largest of: minus the smallest eigenvalue, the trace above tau, the difference between two entries that should be equal."""
        x = as_point(x, self.shape, "The point")
        xp = namespace(x)
        smallest = float(xp.linalg.eigvalsh(0.5 * (x + x.T))[0])
        return max(0.0, -smallest, float(xp.linalg.trace(x)) - self.tau, float(xp.max(xp.abs(x - x.T))))

    def answer(self, direction: Array, warm: Array | None = None) -> Answer:
        xp = namespace(direction)
        largest = max(float(xp.max(direction)), -float(xp.min(direction)))
        if largest == 0.0:
            return Answer(self._zero(direction), warm=warm)
        A = direction / -largest
        A = 0.5 * (A + A.T)
        if self.n <= self.dense:
            found, after = _exact(A), None
        else:
            found, after = self._iterated(A, warm)
        error = self.tau * largest * max(0.0, found.gap + min(0.0, found.value))
        if found.value <= 0.0:
            return Answer(self._zero(direction), error, after)
        return Answer(LowRank(math.sqrt(self.tau) * found.vector[None, :]), error, after)

    def _iterated(self, A: Array, warm: Array | None) -> tuple[Found, Array]:
        """The leading eigenvector of A, and what the next call starts from: the vector and the number of calls."""
        xp, calls = namespace(A), 0 if warm is None else int(warm[self.n])
        noise = like(generator(self.seed, "leading eigenvector", calls).standard_normal(self.n), A)
        begin = start(noise, None if warm is None else like(warm[: self.n], A), self.failure)
        found = proved(A, begin, self.tolerance) if self.certified else probable(A, begin, self.tolerance)
        found = _exact(A) if found is None else found
        return found, frozen(xp.concat([found.vector, like(np.array([calls + 1.0]), A)]))

    def _zero(self, direction: Array) -> LowRank:
        return LowRank(like(np.zeros((0, self.n)), direction))

    def atom(self, point: Array) -> Vertex:
        return LowRank.of(point)

    def project(self, y: Array) -> Array:
        """Exact: the eigenvalues of the symmetric part are projected on { w >= 0, sum w <= tau }."""
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


def _exact(A: Array) -> Found:
    """By a dense eigensolver."""
    if type(A) is np.ndarray:
        from scipy.linalg import eigh

        n = len(A)
        values, vectors = eigh(A, subset_by_index=[n - 1, n - 1], check_finite=False)
        if len(values) == 0:  # LAPACK sometimes finds none where the largest eigenvalue is repeated
            values, vectors = eigh(A, driver="evd", check_finite=False)
        return Found(np.ascontiguousarray(vectors[:, -1]), float(values[-1]), 0.0, 0)
    values, vectors = namespace(A).linalg.eigh(A)
    return Found(vectors[:, -1], float(values[-1]), 0.0, 0)
