"""What the sets of matrices share: how a leading eigenvector is found, and which directions are
taken.

Up to `dense` rows a dense eigensolver answers, exactly. Beyond, Lanczos (lanczos.py) starts from
the caller's last eigenvector with a random part that depends on `seed` and on how many calls there
were, until the gap is within `tolerance` of the largest eigenvalue in size as seen, and one of
three tests confirms it:

    failure < 1    the measure of the start: wrong with a chance of at most `failure` in each call,
                   for directions chosen without looking at the numbers of `seed`. Of the order of
                   log(n/failure)/sqrt(tolerance) products, warm or not
    certified      a Cholesky factor of the shifted matrix, n^3/3: a proof. Few products from a
                   warm start
    failure = 1    the residual alone: no promise. Few products from a warm start, and nothing else

Where the first two fail, the dense eigensolver answers. Directions are arrays, sparse matrices of
SciPy, or `SparsePlusLowRank`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Annotated, Any, Self, TypeAlias

import numpy as np

from tidewolf.core.arrays import (
    MOST_SIDE,
    as_direction,
    as_point,
    frozen,
    identity,
    is_array,
    like,
    namespace,
    with_diagonal,
)
from tidewolf.core.matrices import Matrix, as_matrix, example_array
from tidewolf.core.randomness import generator
from tidewolf.core.settings import Count, Flag, Number, Seed
from tidewolf.core.types import Array, Shape
from tidewolf.core.vertices import LowRank, Vertex
from tidewolf.kernels.lanczos import Found, Start, converged, probable, proved, start
from tidewolf.sets.base import ConvexSet, Projectable, require_floating

Side: TypeAlias = Annotated[int, Count("How many rows, and columns, a matrix has.", most=MOST_SIDE)]
Tolerance: TypeAlias = Annotated[
    float,
    Number(
        "How far an iterative answer may be above the minimum, as a share of the spectral norm of "
        "the direction times the sum of the eigenvalues (of the singular values) of a vertex.",
        above=0.0,
    ),
]
Failure: TypeAlias = Annotated[
    float,
    Number(
        "The chance that an iterative answer which is not certified is worse than its error says. "
        "1 promises nothing, and is quick.",
        above=0.0,
        most=1.0,
    ),
]
Certified: TypeAlias = Annotated[
    bool, Flag("Whether the error of an iterative answer is proved by a Cholesky factor.")
]
DenseUpTo: TypeAlias = Annotated[
    int,
    Count(
        "Up to this many rows, or columns where there are fewer, a dense eigensolver answers, "
        "exactly.",
        least=0,
    ),
]
StartSeed: TypeAlias = Annotated[
    int, Seed("The seed of the random vectors that iterative answers start from.")
]


class Spectral(ConvexSet, Projectable, ABC):
    """A set of matrices whose oracle is a leading eigenvector; each class declares these settings
    as its own.
    """

    tolerance: float
    failure: float
    certified: bool
    dense: int
    seed: int

    def as_direction(self, direction: Matrix) -> Matrix:
        return as_matrix(direction, self.shape)

    def lmo(self, direction: Matrix) -> Array:
        direction = (
            as_point(direction, self.shape, "The direction")
            if is_array(direction)
            else as_matrix(direction, self.shape)
        )
        return self.answer(direction).vertex.dense(example_array(direction))

    @abstractmethod
    def _center_in(self, reference: Array) -> Array:
        """The center, made where `reference` lives, in its dtype."""

    @cached_property
    def center(self) -> Array:
        return frozen(self._center_in(np.zeros(0)))

    def to(self, reference: Array) -> Self:
        """The set with its center in another library or on another device, where it is made.

        Parameters
        ----------
        reference : array
            A floating-point array in the library, dtype and device to move to.

        Returns
        -------
        ConvexSet
            The same set there.
        """
        require_floating(reference)
        moved = type(self)(**self.fields())
        moved.__dict__["center"] = frozen(self._center_in(reference))
        return moved

    def exactly(self) -> Self:
        """The same set, always answered for by the dense eigensolver."""
        return type(self)(**{**self.fields(), "dense": max(self.shape)})

    def _begun(
        self, n: int, drawn: int, kept: int, warm: Array | None, reference: Array
    ) -> tuple[int, Array, Array | None]:
        """The number of calls so far, `drawn` random vectors for this one, and the `kept` ones of
        the last, if there was one.
        """
        calls = 0 if warm is None else int(warm[kept * n])
        noise = generator(self.seed, "leading eigenvector", calls).standard_normal((drawn, n))
        last = None if warm is None else namespace(warm).reshape(warm[: kept * n], (kept, n))
        return calls, like(noise, reference), None if last is None else like(last, reference)

    def _leading(
        self, A: Any, warm: Array | None, reference: Array, tolerance: float, floor: float
    ) -> tuple[Found, Array | None]:
        """The leading eigenvector of an operator, and what the next call starts from: the vector
        and the number of calls.
        """
        if A.n <= self.dense:
            return leading_by_dense(A), None
        calls, noise, last = self._begun(A.n, 1, 1, warm, reference)
        begin = start(noise[0, :], None if last is None else last[0, :], self.failure)
        found = self._search(A, begin, tolerance, floor)
        found = leading_by_dense(A) if found is None else found
        return found, warm_start(found.vector, calls)

    def _search(self, A: Any, begin: Start, tolerance: float, floor: float) -> Found | None:
        """What this set goes by: a proof, a probability, or the residual."""
        if self.certified:
            return proved(A, begin, tolerance, floor)
        return (
            probable(A, begin, tolerance, floor)
            if self.failure < 1.0
            else converged(A, begin, tolerance, ahead=True)
        )


class SymmetricSpectral(Spectral, ABC):
    """A set of symmetric n x n matrices: those whose eigenvalues are in a set of vectors."""

    n: int

    @property
    def shape(self) -> Shape:
        return (self.n, self.n)

    @property
    def dimension(self) -> int:
        return self.n * (self.n + 1) // 2

    @property
    @abstractmethod
    def ridge(self) -> float:
        """The center is this times the identity."""

    def _center_in(self, reference: Array) -> Array:
        return identity(self.n, self.ridge, reference)

    @property
    @abstractmethod
    def spectrum(self) -> Projectable:
        """The set of the eigenvalues."""

    def atom(self, point: Array) -> Vertex:
        """The center is known in closed form; any other member by its eigenvectors."""
        if point is self.center:
            return LowRank.ridged(self.n, self.ridge, point)
        return LowRank.of(point)

    def project(self, y: Array) -> Array:
        """Exact: the eigenvalues of the symmetric part are projected on `spectrum`."""
        y = as_point(y, self.shape, "The point to project")
        xp = namespace(y)
        values, vectors = xp.linalg.eigh(0.5 * (y + y.T))
        rows = vectors * xp.sqrt(self.spectrum.project(values))
        return rows @ rows.T


def warm_start(vectors: Array, calls: int) -> Array:
    """What the next call starts from."""
    xp = namespace(vectors)
    return frozen(xp.concat([xp.reshape(vectors, (-1,)), like(np.array([calls + 1.0]), vectors)]))


def leading_by_dense(A: Any) -> Found:
    """The leading eigenvector by a dense eigensolver."""
    values, vectors = leading_eigenvectors(A.dense(), 1)
    return Found(vectors[:, 0], float(values[0]), 0.0, 0)


def leading_eigenvectors(A: Array, k: int) -> tuple[Array, Array]:
    """The k largest eigenvalues, the largest first, and their eigenvectors as columns."""
    if type(A) is np.ndarray:
        from scipy.linalg import eigh

        n = len(A)
        values, vectors = eigh(A, subset_by_index=[n - k, n - 1], check_finite=False)
        # LAPACK sometimes finds too few where the largest eigenvalue is repeated
        if len(values) < k:
            values, vectors = eigh(A, driver="evd", check_finite=False)
    else:
        values, vectors = namespace(A).linalg.eigh(A)
    xp = namespace(values)
    return xp.flip(values)[:k], xp.flip(vectors, axis=1)[:, :k]


def eigenvalues(x: Array) -> tuple[float, float]:
    """The smallest and the largest eigenvalue of the symmetric part."""
    values = namespace(x).linalg.eigvalsh(0.5 * x + 0.5 * x.T)
    return float(values[0]), float(values[-1])


def asymmetry(x: Array) -> float:
    """The largest difference between two entries that should be equal."""
    xp = namespace(x)
    return float(xp.max(xp.abs(x - x.T)))


def traceless(direction: Array, shape: Shape) -> Array:
    """The symmetric part less its mean on the diagonal."""
    direction = as_direction(direction, shape)
    xp, n = namespace(direction), shape[0]
    return with_diagonal(symmetric(direction), -(float(xp.linalg.trace(direction)) / n))


def symmetric(direction: Array) -> Array:
    """The symmetric part."""
    half = 0.5 * direction
    return half + half.T
