"""A set of matrices as symmetric positive semidefinite ones of trace up to 1, or a face of it.

    BoundedPSD     X psd, tr X <= tau            Spectraplex    X psd, tr X = tau
    Fantope        0 <= X <= I, tr X = k         NuclearBall    the corner of Y psd, tr Y <= 2 tau

with Y = [ . X; X' . ] in the last. Points are divided by tau, k or 2 tau; of costs and rows only
what a symmetric matrix has a product with is kept.

A face is { B Y B' + S : Y psd }, B orthonormal: the eigenvectors that are left free, and S the cap
(the bound I of a Fantope) on those that are bound to it. If D is a sum of rows, weighted >= 0, that
no member brings below what the rows allow together, members that keep all rows are least for D:
without a cap X D = 0, so they live in its kernel; with one, eigenvectors of negative eigenvalues of
D have the cap (facial reduction, Borwein & Wolkowicz 1981).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Floats
from tidewolf.hindsight.task import positive
from tidewolf.sets.spectra import BoundedPSD, Fantope, NuclearBall, Spectraplex

_ZERO, _LOST = 1e-11, 1e-6
"""The share of a row that is rounding within a face: of an entry, and of all of it."""


def order_of(K: HasLMO) -> int | None:
    """The order of the matrices a set is described by; None where it has no such description."""
    if type(K.center) is not np.ndarray or (isinstance(K, Fantope) and K.k == K.n):  # {I}
        return None
    if isinstance(K, BoundedPSD | Spectraplex | Fantope):
        return K.n
    return sum(K.shape) if isinstance(K, NuclearBall) else None


class Squares(NamedTuple):
    """Squared errors (<A_i, X> - b_i)^2/(2 give_i)."""

    A: Any
    b: Floats
    give: Floats


class Lifted(NamedTuple):
    """A task on matrices in units: points divided by `unit`, totals by `unit` and `cost`."""

    K: HasLMO
    A: Any
    """the rows of the task"""
    b: Floats
    n: int
    unit: float
    trace: bool
    """whether the trace is given, not only bounded"""
    cap: float | None
    basis: Floats
    shift: Floats
    cost: float
    C: Floats
    squares: Squares | None = None

    @classmethod
    def of(cls, K: HasLMO, A: Any, b: Floats) -> Lifted:
        """Without costs."""
        trace, cap = isinstance(K, Spectraplex | Fantope), None
        if isinstance(K, NuclearBall):
            n, unit = sum(K.shape), 2.0 * K.tau
        elif isinstance(K, Fantope):
            n, unit, cap = K.n, float(K.k), 1.0 / K.k
        else:
            assert isinstance(K, BoundedPSD | Spectraplex)
            n, unit = K.n, K.tau
        zero = np.zeros((n, n))
        return cls(K, A, b, n, unit, trace, cap, np.eye(n), zero, 1.0, zero)

    def with_costs(self, c: Floats) -> Lifted:
        """With <c, x>."""
        C = self.matrices(c[None, :]).toarray().reshape(self.n, self.n)
        cost = float(positive(np.linalg.norm(C)))
        return self._replace(cost=cost, C=C / cost)

    def with_squares(self, times: Floats, sums: Floats) -> Lifted:
        """With squared errors: how often each entry was seen, and the sum of what was seen."""
        from scipy.sparse import csr_array

        if self._corner == 0:  # entries above and below the diagonal are one
            upper = np.triu(np.ones((self.n, self.n)))
            times, sums = (upper * (v + v.T - np.diag(np.diag(v))) for v in (times, sums))
        seen = np.flatnonzero(times)
        times, sums = times.reshape(-1)[seen], sums.reshape(-1)[seen]
        size = max(np.linalg.norm(sums), self.unit * np.linalg.norm(times) / self.n)
        cost, shape = float(positive(size)), (len(seen), int(np.prod(self.K.shape)))
        rows = csr_array((np.ones(len(seen)), seen, np.arange(len(seen) + 1)), shape=shape)
        give = cost / times / self.unit
        squares = Squares(self.matrices(rows), sums / times / self.unit, give)
        return self._replace(cost=cost, squares=squares)

    @property
    def order(self) -> int:
        """The order of the Y of a face."""
        return int(self.basis.shape[1])

    @property
    def _corner(self) -> int:
        return self.K.shape[0] if isinstance(self.K, NuclearBall) else 0

    def matrices(self, rows: Any) -> Any:
        """Rows of flattened points as flattened symmetric matrices with the same products."""
        from scipy.sparse import coo_array, csr_array

        if self._corner == 0 and isinstance(rows, np.ndarray):
            square = rows.reshape(-1, self.n, self.n)
            return csr_array(0.5 * (square + square.transpose(0, 2, 1)).reshape(rows.shape))
        rows = coo_array(rows)
        i, j = np.divmod(rows.col.astype(np.int64), self.K.shape[1])
        j = j + self._corner
        where = np.concatenate([i * self.n + j, j * self.n + i])
        values, which = np.tile(0.5 * rows.data, 2), np.tile(rows.row, 2)
        found = csr_array((values, (which, where)), shape=(rows.shape[0], self.n * self.n))
        found.sum_duplicates()
        found.eliminate_zeros()
        return found

    def limits(self) -> tuple[Any, Floats]:
        """All rows on X: the task's, then the trace, from above and, where it is given, below."""
        from scipy.sparse import csr_array, vstack

        signs = np.array([1.0, -1.0] if self.trace else [1.0])
        trace = csr_array(np.eye(self.n).reshape(1, -1))
        A = vstack([self.matrices(self.A), *(sign * trace for sign in signs)])
        return csr_array(A), np.concatenate([self.b / self.unit, signs])

    def restricted(self, A: Any, b: Floats) -> tuple[Any, Floats]:
        """Rows on X as rows on Y, what is rounding left out."""
        from scipy.sparse import csr_array

        if self.order == self.n:
            return A, b
        whole = (A[[i], :].toarray().reshape(self.n, self.n) for i in range(A.shape[0]))
        dense = np.array([self.basis.T @ a @ self.basis for a in whole]).reshape(A.shape[0], -1)
        sizes = np.sqrt(A.multiply(A).sum(axis=1)).reshape(-1, 1)
        lost = np.linalg.norm(dense, axis=1, keepdims=True) <= _LOST * sizes
        within = csr_array(np.where(lost | (np.abs(dense) <= _ZERO * sizes), 0.0, dense))
        return within, b - A @ self.shift.reshape(-1)

    def face(self, Y: Floats, D: Floats) -> Lifted | None:
        """The face that D exposes, Y being a member in its inside; None where that is all."""
        values, vectors = np.linalg.eigh(Y - D)
        kept, top = values > 0.0, np.zeros(self.order, dtype=bool)
        if self.cap is not None:
            kept, top = kept & (values < self.cap), values >= self.cap
        if kept.all():
            return None
        high = self.basis @ vectors[:, top]
        shift = self.shift if self.cap is None else self.shift + self.cap * high @ high.T
        return self._replace(basis=self.basis @ vectors[:, kept], shift=shift)

    def matrix(self, Y: Floats) -> Floats:
        """The X of a Y."""
        return np.asarray(self.basis @ Y @ self.basis.T + self.shift)

    def point(self, X: Floats) -> Floats:
        """A matrix X as a flattened point of K."""
        return np.asarray(self.unit * X[: self.K.shape[0], self._corner :]).reshape(-1)
