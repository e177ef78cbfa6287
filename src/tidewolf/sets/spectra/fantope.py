"""The hull of the projections of rank k: which k-dimensional subspace, relaxed
(principal components; Overton & Womersley 1992).

    { X = X' : 0 <= X <= I, tr X = k }
        n x n, 1 <= k <= n;  vertices: sum of v_i v_i' over k orthonormal v_i

Oracle: the eigenvectors of the k smallest eigenvalues of (D + D')/2 (Fan 1949); the minimum is
their sum, and error <= tolerance k |(D + D')/2|_2. Their rows v_i are sought one after another,
each within the complement of those before, as leading vectors of A = -(D + D')/2, so that repeated
eigenvalues do no harm. Then they are tested together: for any z and any Z psd with z I + Z >= A
the k largest eigenvalues of A add up to at most k z + tr Z. With theta_i the eigenvalues of A
within the span of the v_i, which are turned to fit, s the error allowed for each, z = min_i
theta_i + s and Z = sum_i (theta_i + s - z) v_i v_i', that is sum_i theta_i + k s; and z I +
Z >= A if no eigenvalue of A - sum_i (theta_i - min theta) v_i v_i' is above z: one test of a
largest eigenvalue, by Lanczos from fresh random numbers or by a Cholesky factor (spectral.py says
how sure each is).

Affine hull: the symmetric matrices of trace k, dimension n(n + 1)/2 - 1; for k = n the set is {I}.
Center (k/n) I, radius^2 = k (1 - k/n)^2 + (n - k)(k/n)^2 = k (n - k)/n. Diameter: |P - Q|^2 = 2k -
2 <P, Q>, and <P, Q> >= max(0, 2k - n): sqrt(2 min(k, n - k)). Inner radius: a U = U' with tr U = 0,
|U| = 1 has eigenvalues of size at most sqrt((n - 1)/n), so (k/n) I + r U stays between 0 and I for
all of them up to r = min(k, n - k)/sqrt(n (n - 1)).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, final

import numpy as np

from tidewolf.core.arrays import as_direction, as_point, like, namespace, norm, to_numpy
from tidewolf.core.errors import InvalidInput
from tidewolf.core.matrices import Matrix, as_matrix, example_array, largest_entry
from tidewolf.core.oracle import Answer
from tidewolf.core.settings import Count
from tidewolf.core.types import Array
from tidewolf.core.vertices import LowRank
from tidewolf.kernels.lanczos import Found, above, converged, probable, start
from tidewolf.sets.simplices.capped_simplex import CappedSimplex
from tidewolf.sets.spectra.operators import Deflated, Lowered, SymmetricPart
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
    leading_eigenvectors,
    traceless,
    warm_start,
)

_FINER, _TEST = 0.25, 0.1
"""Vectors that are to be tested are sought to this share of the error: what they leave over,
squared, has to fit into it too; and the share of the error that is left to the test.
"""


@final
@dataclass(frozen=True, eq=False, repr=False)
class Fantope(SymmetricSpectral):
    """Symmetric n x n matrices with eigenvalues between 0 and 1 that add up to k. Geometry exact.

    Parameters
    ----------
    n : int
        How many rows, and columns, a matrix has.
    k : int, default 1
        What the eigenvalues add up to: the rank of a vertex.
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
    >>> K = tw.sets.Fantope(3, k=2)
    >>> K.lmo(np.diag([5.0, -1.0, 2.0])) + 0.0  # the two eigenvectors of least eigenvalues
    array([[0., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    """

    n: Side
    k: Annotated[int, Count("What the eigenvalues add up to: the rank of a vertex.")] = 1
    tolerance: Tolerance = 1e-2
    failure: Failure = 1e-6
    certified: Certified = False
    dense: DenseUpTo = 300
    seed: StartSeed = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.k > self.n:
            raise InvalidInput(
                f"k of Fantope must be at most n = {self.n}, the size of its matrices, not "
                f"{self.k}.",
                setting="k",
            )

    @property
    def dimension(self) -> int:
        return 0 if self.k == self.n else super().dimension - 1

    @property
    def ridge(self) -> float:
        return self.k / self.n

    @property
    def radius(self) -> float:
        return math.sqrt(self.k * (self.n - self.k) / self.n)

    @property
    def diameter(self) -> float:
        return math.sqrt(2.0 * min(self.k, self.n - self.k))

    @property
    def inner_radius(self) -> float:
        return (
            0.0
            if self.k == self.n
            else min(self.k, self.n - self.k) / math.sqrt(self.n * (self.n - 1))
        )

    def tangent(self, direction: Array) -> Array:
        return (
            0.0 * as_direction(direction, self.shape)
            if self.k == self.n
            else traceless(direction, self.shape)
        )

    def infeasibility(self, x: Array) -> float:
        """The largest of: how far an eigenvalue is below 0 or above 1, the error of the trace, the
        difference between mirrored entries.
        """
        x = as_point(x, self.shape, "The point")
        low, high = eigenvalues(x)
        return max(
            0.0, -low, high - 1.0, abs(float(namespace(x).linalg.trace(x)) - self.k), asymmetry(x)
        )

    def answer(self, direction: Matrix, warm: Array | None = None) -> Answer:
        D = as_matrix(direction, self.shape)
        size, reference = largest_entry(D), example_array(D)
        if self.k == self.n:
            return Answer(LowRank.ridged(self.n, 1.0, reference))
        if size == 0.0:
            return Answer(LowRank(like(np.eye(self.k, self.n), reference)), warm=warm)
        A = SymmetricPart(D, size)
        if self.n <= self.dense:
            return Answer(LowRank(_exact(A, self.k)))
        calls, noise, last = self._begun(self.n, self.k + 1, self.k, warm, reference)
        V, gap = self._iterated(A, noise, last)
        return Answer(LowRank(V), size * gap, warm_start(V, calls))

    def _iterated(self, A: SymmetricPart, noise: Array, last: Array | None) -> tuple[Array, float]:
        """The k rows, the leading one first, and what the k largest eigenvalues add up to beyond
        theirs.
        """
        xp, V, s = namespace(noise), noise[:0, :], 0.0
        guarantees = self.certified or self.failure < 1.0
        finer = _FINER if guarantees else 1.0
        for i in range(self.k):
            rest = Deflated(A, V)
            begin = start(
                rest.off(noise[i, :]), None if last is None else rest.off(last[i, :]), 1.0
            )
            found = converged(rest, begin, finer * self.tolerance)
            v = rest.off(rest.off(found.vector))
            if norm(v) < 0.5:  # rounding has led it back to the rows before
                return _exact(A, self.k), 0.0
            V, s = xp.concat([V, (v / norm(v))[None, :]]), max(s, found.gap / finer)
        return (
            self._tested(A, V, (1.0 - _TEST) * s, noise[self.k, :])
            if guarantees
            else (V, self.k * s)
        )

    def _tested(self, A: SymmetricPart, V: Array, s: float, noise: Array) -> tuple[Array, float]:
        """The rows, turned, if they pass the test with an error of s each, else the exact ones; and
        the error of all.
        """
        xp = namespace(V)
        within = xp.stack([A @ V[i, :] for i in range(self.k)]) @ V.T
        theta, turn = np.linalg.eigh(to_numpy(within))  # small: quicker here than on a device
        V, z = like(turn, V).T @ V, float(theta[0]) + s
        lowered = Lowered(A, V, like(theta - theta[0], V))
        if self.certified:
            slack = above(z, lowered.dense())
        else:
            slack = _beyond(
                z, probable(lowered, start(noise, None, self.failure), _TEST * self.tolerance, z)
            )
        return (
            (_exact(A, self.k), 0.0)
            if slack is None or slack > _TEST * s
            else (xp.flip(V, axis=0), self.k * (s + slack))
        )

    @property
    def spectrum(self) -> CappedSimplex:
        """{ 0 <= w <= 1, sum w = k }."""
        return CappedSimplex(self.n, 1.0, self.k)

    @classmethod
    def examples(cls) -> Sequence[Fantope]:
        return (
            cls(1),
            cls(3, 3),
            cls(4),
            cls(5, 3),
            cls(3, 2, tolerance=1e-3, dense=0),
            cls(4, 2, tolerance=1e-5, certified=True, dense=0),
        )


def _beyond(z: float, found: Found | None) -> float | None:
    """What the largest eigenvalue exceeds z by at most, for what was found of it."""
    return None if found is None else max(0.0, found.value + found.gap - z)


def _exact(A: SymmetricPart, k: int) -> Array:
    return leading_eigenvectors(A.dense(), k)[1].T
