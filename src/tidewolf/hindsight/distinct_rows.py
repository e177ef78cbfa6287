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
        A, b = scaled(A, sign / size), b / size
        number: dict[bytes, int] = {}
        which = np.array([number.setdefault(_key(A, i), len(number)) for i in some], dtype=np.int64)
        first = some[np.unique(which, return_index=True)[1]]
        low, below = _tightest(some, which, b, sign < 0.0, len(number))
        high, above = _tightest(some, which, b, sign > 0.0, len(number))
        return cls(A[first], -low, high, below, above, size, impossible)

    def multipliers(self, sides: Sides, y: Floats) -> Floats:
        """Those of the rows as given."""
        up = (y > 0.0) == (sides.sign > 0.0)
        row = np.where(up, self.above[sides.which], self.below[sides.which])
        lam = np.zeros(len(self.size))
        np.add.at(lam, row, np.abs(y) / self.size[row])
        return lam

    def equations(self) -> Any:
        """Which rows are equations."""
        size = 1.0 + np.abs(np.minimum(self.low, self.high))
        return np.isfinite(self.low) & (self.high - self.low <= _SAME * size)


class Sides(NamedTuple):
    """Bounds sign * (A x) <= b, or equations, by the numbers of their distinct rows."""

    which: Int64s
    sign: Floats
    b: Floats

    @classmethod
    def of(cls, rows: DistinctRows, some: Any) -> Sides:
        """Both bounds of some of the rows, where there are both."""
        up, down = (np.flatnonzero(some & (there >= 0)) for there in (rows.above, rows.below))
        signs = np.concatenate([np.ones(len(up)), -np.ones(len(down))])
        b = np.concatenate([rows.high[up], -rows.low[down]])
        return cls(np.concatenate([up, down]), signs, b)

    def take(self, some: Any) -> Sides:
        return Sides(self.which[some], self.sign[some], self.b[some])

    def matrix(self, rows: DistinctRows) -> Any:
        return scaled(rows.A[self.which], self.sign)

    def breach(self, rows: DistinctRows, X: Floats) -> Floats:
        """How far X is above each."""
        return np.asarray(self.sign * (rows.A @ X.reshape(-1))[self.which] - self.b)


class Span:
    """Equations that do not depend on each other, and what they imply."""

    def __init__(self, rows: DistinctRows, equal: Int64s) -> None:
        from scipy.linalg import cho_factor
        from scipy.linalg.lapack import dpstrf

        values = 0.5 * (rows.low[equal] + rows.high[equal])
        self.sides = Sides(equal, np.ones(len(equal)), values)
        self.consistent, self._factor = True, None
        self.A = self.sides.matrix(rows)
        if len(equal) == 0:
            return
        order, rank = dpstrf((self.A @ self.A.T).toarray(), tol=_IMPLIED)[1:3]
        left = self.sides.take(order[rank:] - 1)
        self.sides = self.sides.take(np.sort(order[:rank] - 1))
        self.A = self.sides.matrix(rows)
        self._factor = cho_factor((self.A @ self.A.T).toarray())
        self.consistent = bool(
            (np.abs(self._infeasibility(left.matrix(rows), left.b)) <= _FEASIBLE).all()
        )

    def implied(self, A: Any, b: Floats) -> tuple[Any, bool]:
        """Which bounds the equations decide, and whether those all hold."""
        if self._factor is None:
            return np.zeros(len(b), dtype=bool), True
        inner = (self.A @ A.T).toarray()
        outside = 1.0 - np.einsum("ij,ij->j", inner, self._solved(inner))
        known = outside <= _IMPLIED
        return known, bool((self._infeasibility(A, b)[known] <= _FEASIBLE).all())

    def onto(self, X: Floats) -> Floats:
        """The nearest matrix that keeps the equations."""
        if self._factor is None:
            return X
        left = self.sides.b - self.A @ X.reshape(-1)
        return np.asarray(X + (self.A.T @ self._solved(left)).reshape(X.shape))

    def _infeasibility(self, A: Any, b: Floats) -> Floats:
        """What rows in the span are above b."""
        return np.asarray(A @ (self.A.T @ self._solved(self.sides.b)) - b)

    def _solved(self, right: Floats) -> Floats:
        from scipy.linalg import cho_solve

        return np.asarray(cho_solve(self._factor, right))


def scaled(A: Any, factors: Floats) -> Any:
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
