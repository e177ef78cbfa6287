"""Rows A x <= b as distinct ones, low <= A x <= high, and what the equations among them imply.

Of rows that are multiples of each other, as those of repeated rounds are, and as X_ij and X_ji are
for symmetric matrices, only the tightest bound from above and the tightest from below count; where
the two meet the row is an equation. Equations that depend on others are left out, and bounds that
equations decide, such as tr X <= n where every X_ii = 1: those leave an interior-point method no
room, and have no multipliers to settle on.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tidewolf.core.types import Floats, Int64s
from tidewolf.hindsight.task import positive

_SAME, _IMPLIED, _FEASIBLE = 1e-12, 1e-8, 1e-6
"""Bounds that differ by this are an equation; a row of which this share, squared, is outside the
span of equations is decided by them; and contradicts them from the last on."""


class Sides(NamedTuple):
    """Bounds A x <= b, or equations A x = b, rows of norm 1."""

    A: Any
    b: Floats
    up: Int64s
    """the given row that a positive multiplier is of"""
    down: Int64s
    """the same of a negative one"""

    def take(self, some: Any) -> Sides:
        return Sides(*(each[some] for each in self))

    def breach(self, X: Floats) -> Floats:
        """How far X is above each."""
        return np.asarray(self.A @ X.reshape(-1) - self.b)


class DistinctRows(NamedTuple):
    """Distinct rows of norm 1 with low <= A x <= high."""

    A: Any
    low: Floats
    high: Floats
    below: Int64s
    """the row that gives this bound, -1 for none"""
    above: Int64s
    size: Floats
    """what multipliers are divided by to be those of the rows as given"""
    impossible: int
    """a row 0 <= b with b < 0, -1 for none"""

    @classmethod
    def of(cls, A: Any, b: Floats) -> DistinctRows:
        """Sparse rows as given."""
        size = np.sqrt(np.asarray(A.multiply(A).sum(axis=1)).reshape(-1))
        some, empty = np.flatnonzero(size > 0.0), np.where(size > 0.0, 0.0, b)
        impossible = int(np.argmin(empty)) if empty.min(initial=0.0) < 0.0 else -1
        sign, size = np.ones(len(b)), positive(size)
        sign[some] = np.sign(A.data[A.indptr[some]])
        A, b = _scaled(A, sign / size), b / size
        number: dict[bytes, int] = {}
        which = np.array([number.setdefault(_key(A, i), len(number)) for i in some], dtype=np.int64)
        first = some[np.unique(which, return_index=True)[1]]
        low, below = _tightest(some, which, b, sign < 0.0, len(number))
        high, above = _tightest(some, which, b, sign > 0.0, len(number))
        return cls(A[first], -low, high, below, above, size, impossible)

    def multipliers(self, sides: Sides, y: Floats) -> Floats:
        """Those of the rows as given."""
        row, lam = np.where(y > 0.0, sides.up, sides.down), np.zeros(len(self.size))
        np.add.at(lam, row, np.abs(y) / self.size[row])
        return lam

    def equal(self) -> Any:
        """Which rows are equations."""
        size = 1.0 + np.abs(np.minimum(self.low, self.high))
        return np.isfinite(self.low) & (self.high - self.low <= _SAME * size)

    def equations(self, some: Any) -> Sides:
        values = 0.5 * (self.low[some] + self.high[some])
        return Sides(self.A[some], values, self.above[some], self.below[some])

    def bounds(self, some: Any) -> Sides:
        """Both bounds of some of the rows, where there are both."""
        from scipy.sparse import csr_array, vstack

        up, down = (np.flatnonzero(some & (there >= 0)) for there in (self.above, self.below))
        A = csr_array(vstack([self.A[up], -self.A[down]]))
        owner = np.concatenate([self.above[up], self.below[down]])
        return Sides(A, np.concatenate([self.high[up], -self.low[down]]), owner, owner)


class Span:
    """Equations that do not depend on each other, and what they imply."""

    def __init__(self, sides: Sides) -> None:
        from scipy.linalg import cho_factor
        from scipy.linalg.lapack import dpstrf

        self.sides, self.consistent, self._factor = sides, True, None
        if len(sides.b) == 0:
            return
        order, rank = dpstrf((sides.A @ sides.A.T).toarray(), tol=_IMPLIED)[1:3]
        left = sides.take(order[rank:] - 1)
        self.sides = sides.take(np.sort(order[:rank] - 1))
        self._factor = cho_factor((self.sides.A @ self.sides.A.T).toarray())
        self.consistent = bool((np.abs(self._infeasibility(left)) <= _FEASIBLE).all())

    def implied(self, bounds: Sides) -> tuple[Any, bool]:
        """Which bounds the equations decide, and whether those all hold."""
        if self._factor is None:
            return np.zeros(len(bounds.b), dtype=bool), True
        inner = (self.sides.A @ bounds.A.T).toarray()
        known = 1.0 - np.einsum("ij,ij->j", inner, self._solved(inner)) <= _IMPLIED
        return known, bool((self._infeasibility(bounds)[known] <= _FEASIBLE).all())

    def onto(self, X: Floats) -> Floats:
        """The nearest matrix that keeps the equations."""
        if self._factor is None:
            return X
        change = self.sides.A.T @ self._solved(-self.sides.breach(X))
        return np.asarray(X + change.reshape(X.shape))

    def _infeasibility(self, others: Sides) -> Floats:
        """What rows in the span are above their b."""
        return others.breach(np.asarray(self.sides.A.T @ self._solved(self.sides.b)))

    def _solved(self, right: Floats) -> Floats:
        from scipy.linalg import cho_solve

        return np.asarray(cho_solve(self._factor, right))


def _scaled(A: Any, factors: Floats) -> Any:
    """Sparse rows times numbers."""
    from scipy.sparse import csr_array

    data = A.data * np.repeat(factors, np.diff(A.indptr))
    return csr_array((data, A.indices, A.indptr), shape=A.shape)


def _key(A: Any, i: Any) -> bytes:
    """What is the same for rows that are."""
    part = slice(A.indptr[i], A.indptr[i + 1])
    return bytes(A.indices[part].tobytes() + (A.data[part].round(12) + 0.0).tobytes())


def _tightest(some: Any, which: Any, b: Floats, there: Any, count: int) -> tuple[Floats, Int64s]:
    """The least b of each distinct row among the given ones that are `there`, and whose it is."""
    least, whose = np.full(count, np.inf), np.full(count, -1)
    for i, j in zip(some, which, strict=True):
        if there[i] and b[i] < least[j]:
            least[j], whose[j] = b[i], i
    return least, whose
