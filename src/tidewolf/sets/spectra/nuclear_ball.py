"""Matrices of bounded nuclear norm: few patterns explain many entries (completion, recommendation).

    { X : |X|_* = sum of singular values <= tau }          m x n;  vertices: tau u v', |u| = |v| = 1

Oracle: -tau u v' with u, v a leading pair of singular vectors of D; the minimum is -tau sigma,
sigma = |D|_2. Golub & Kahan's (1965) bidiagonalisation in its one-sided form: Lanczos for D'D or D
D', whichever is smaller, at the cost of a product with D and one with D' a step. It finds
theta <= sigma^2 <= theta + gap, v, and u along D v of length sqrt(theta), so that

    error = tau (sqrt(theta + gap) - sqrt(theta))  <=  tolerance tau |D|_2

(spectral.py says how, and how surely).

Affine hull: all m x n matrices. Center 0. |X|_F <= |X|_* <= sqrt(min(m, n)) |X|_F, with equality
for rank 1, and for equal singular values: radius tau, diameter 2 tau, inner radius
tau/sqrt(min(m, n)).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, final

from tidewolf.core.arguments import shown
from tidewolf.core.arrays import as_point, like, namespace, norm, zeros
from tidewolf.core.errors import WrongShape
from tidewolf.core.matrices import Matrix, as_matrix, example_array, largest_entry
from tidewolf.core.oracle import Answer
from tidewolf.core.settings import REQUIRED, Number, Size, as_shape
from tidewolf.core.types import Array, Shape
from tidewolf.core.vertices import Outer, Vertex
from tidewolf.sets.simplices.simplex import Simplex
from tidewolf.sets.spectra.operators import Gram
from tidewolf.sets.spectra.spectral import (
    Certified,
    DenseUpTo,
    Failure,
    Spectral,
    StartSeed,
    Tolerance,
)


class MatrixShape(Size):
    """The shape of a matrix."""

    words: ClassVar[str] = "a list of two whole numbers"

    def __call__(self, value: Any, what: str) -> Shape:
        if not isinstance(value, tuple | list) or len(value) != 2:
            raise WrongShape(f"{what} must be (rows, columns), not {shown(value)}.")
        return as_shape(value, what)


@final
@dataclass(frozen=True, eq=False, repr=False)
class NuclearBall(Spectral):
    """Matrices of this shape whose singular values add up to at most `tau`. Geometry exact.

    Parameters
    ----------
    shape : tuple of int
        How many rows and columns a matrix has.
    tau : float, default 1.0
        What the singular values add up to at most.
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
    >>> K = tw.sets.NuclearBall((2, 3), tau=4.0)
    >>> K.lmo(np.array([[0.0, 0.0, -1.0], [0.0, 0.0, 0.0]])) + 0.0
    array([[0., 0., 4.],
           [0., 0., 0.]])
    """

    shape: Annotated[Shape, MatrixShape("How many rows and columns a matrix has.")] = REQUIRED
    tau: Annotated[float, Number("What the singular values add up to at most.", above=0.0)] = 1.0
    tolerance: Tolerance = 1e-2
    failure: Failure = 1e-6
    certified: Certified = False
    dense: DenseUpTo = 300
    seed: StartSeed = 0

    def _center_in(self, reference: Array) -> Array:
        return zeros(self.shape, reference)

    @property
    def radius(self) -> float:
        return self.tau

    @property
    def inner_radius(self) -> float:
        return self.tau / math.sqrt(min(self.shape))

    def infeasibility(self, x: Array) -> float:
        """The nuclear norm beyond tau."""
        x = as_point(x, self.shape, "The point")
        return max(0.0, float(namespace(x).sum(namespace(x).linalg.svdvals(x))) - self.tau)

    def answer(self, direction: Matrix, warm: Array | None = None) -> Answer:
        D = as_matrix(direction, self.shape)
        size, reference = largest_entry(D), example_array(D)
        if size == 0.0:
            return Answer(self._zero(reference), warm=warm)
        A = Gram(D, size)
        found, next_warm = self._leading(A, warm, reference, 2.0 * self.tolerance, floor=0.0)
        v = like(found.vector, reference)
        u = A.across(v)
        root = norm(u)
        gap = found.gap + A.rounding if found.gap else 0.0
        error = self.tau * A.unit * (math.sqrt(root * root + gap) - root)
        if root == 0.0:
            return Answer(self._zero(reference), error, next_warm)
        scaled = u * (-self.tau / root)
        left, right = (scaled, v) if A.tall else (v, scaled)
        return Answer(Outer(left[None, :], right[None, :]), error, next_warm)

    def _zero(self, reference: Array) -> Outer:
        return Outer(*(zeros((0, side), reference) for side in self.shape))

    def atom(self, point: Array) -> Vertex:
        """The center is known in closed form; any other member by its singular vectors."""
        return self._zero(point) if point is self.center else Outer.of(point)

    def project(self, y: Array) -> Array:
        """Exact: the singular values are projected on { w >= 0, sum w <= tau }."""
        y = as_point(y, self.shape, "The point to project")
        left, values, right = namespace(y).linalg.svd(y, full_matrices=False)
        return (left * Simplex(min(self.shape), self.tau, at_most=True).project(values)) @ right

    @classmethod
    def examples(cls) -> Sequence[NuclearBall]:
        return (
            cls((1, 1), 3.0),
            cls((1, 4)),
            cls((3, 2), 0.5),
            cls((4, 6), tolerance=1e-3, dense=0),
            cls((5, 3), 20.0, certified=True, dense=0),
        )
