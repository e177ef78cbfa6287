"""What the sets of matrices share: how a leading eigenvector is found, and which directions are
taken.

Up to `dense` rows a dense eigensolver answers, exactly. Beyond, Lanczos (lanczos.py) starts from
the caller's last eigenvector with a random part that depends on `seed` and on how many calls there
were, until the gap is within `tolerance` of the largest eigenvalue in size as seen, and one of
three things says so:

    failure < 1
        the measure of the start: wrong with a chance of at most `failure` in each call, for
        directions chosen without
                      looking at the numbers of `seed`. Of the order of
                          log(n/failure)/sqrt(tolerance) products, warm or not
    certified         a Cholesky factor of the shifted matrix, n^3/3: a proof. Few products from a
                      warm start
    failure = 1  the residual alone: no promise. Few products from a warm start, and nothing else

Where the first two fail, the dense eigensolver answers. Directions are arrays, sparse matrices of
SciPy, or `SparsePlusLowRank`.
"""

from __future__ import annotations

from abc import ABC
from typing import Any, Self

import numpy as np

from tidewolf.core.arguments import as_flag
from tidewolf.core.arrays import (
    LARGEST_SEED,
    as_count,
    as_direction,
    as_number,
    as_point,
    frozen,
    is_array,
    like,
    namespace,
)
from tidewolf.core.errors import InvalidInput
from tidewolf.core.matrices import Matrix, as_matrix, example
from tidewolf.core.randomness import generator
from tidewolf.core.types import Array, Shape
from tidewolf.kernels.lanczos import Found, Start, probable, proved, settled, start
from tidewolf.sets.base import ConvexSet, Projectable


class Spectral(ConvexSet, Projectable, ABC):
    """A set of matrices whose oracle is a leading eigenvector; each class declares these settings
    as its own.
    """

    tolerance: float
    failure: float
    certified: bool
    dense: int
    seed: int

    def _settle(self, **own: object) -> None:
        """Keep the settings, checked; `own` are those of the class, checked already."""
        failure = as_number(self.failure, "failure", above=0.0)
        if failure > 1.0:
            raise InvalidInput(f"failure is a probability, at most 1, not {failure:g}.")
        shared = {
            "tolerance": as_number(self.tolerance, "tolerance", above=0.0),
            "failure": failure,
            "certified": as_flag(self.certified, "certified"),
            "dense": as_count(self.dense, "dense", least=0),
            "seed": as_count(self.seed, "A seed", least=0, most=LARGEST_SEED),
        }
        for name, value in {**own, **shared}.items():
            object.__setattr__(self, name, value)

    def as_direction(self, direction: Matrix) -> Matrix:
        return as_matrix(direction, self.shape)

    def lmo(self, direction: Matrix) -> Array:
        direction = (
            as_point(direction, self.shape, "The direction")
            if is_array(direction)
            else as_matrix(direction, self.shape)
        )
        return self.answer(direction).vertex.dense(example(direction))

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
            return exact(A), None
        calls, noise, last = self._begun(A.n, 1, 1, warm, reference)
        begin = start(noise[0, :], None if last is None else last[0, :], self.failure)
        found = self._search(A, begin, tolerance, floor)
        found = exact(A) if found is None else found
        return found, after(found.vector, calls)

    def _search(self, A: Any, begin: Start, tolerance: float, floor: float) -> Found | None:
        """What this set goes by: a proof, a probability, or the residual."""
        if self.certified:
            return proved(A, begin, tolerance, floor)
        return (
            probable(A, begin, tolerance, floor)
            if self.failure < 1.0
            else settled(A, begin, tolerance)
        )


def after(vectors: Array, calls: int) -> Array:
    """What the next call starts from."""
    xp = namespace(vectors)
    return frozen(xp.concat([xp.reshape(vectors, (-1,)), like(np.array([calls + 1.0]), vectors)]))


def exact(A: Any) -> Found:
    """The leading eigenvector by a dense eigensolver."""
    values, vectors = leading(A.dense(), 1)
    return Found(vectors[:, 0], float(values[0]), 0.0, 0)


def leading(A: Array, k: int) -> tuple[Array, Array]:
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
    return (
        0.5 * direction
        + 0.5 * direction.T
        - (float(xp.linalg.trace(direction)) / n) * like(np.eye(n), direction)
    )
