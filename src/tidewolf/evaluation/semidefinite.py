"""The task in hindsight as a semidefinite program, for the sets of matrices whose description is one (interior.py solves it).

    BoundedPSD     X psd, tr X <= tau                    Spectraplex    X psd, tr X = tau
    Fantope        0 <= X <= I, tr X = k                 NuclearBall    X the corner of Y = [ . X; X' . ] psd, tr Y <= 2 tau

Rows first: of those that are multiples of each other, as repeated rounds are, and as X_ij and X_ji are for symmetric matrices, only the
tightest bound from above and from below counts; where the two meet the row is an equation. Equations that depend on others are left out,
and bounds that equations imply, such as tr X <= n where every X_ii = 1: such a bound has no room for an interior-point method. Of many
bounds few matter, so they are generated: solve with some, add those that the point breaches most, until it breaches none.

The last point is brought onto the equations once more. Where it does not keep every row, weights that show why are sought by

    min { s >= 0 : X in the set, <A_i, X> - b_i <= s for every row },         an equation being two rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tidewolf.evaluation import interior
from tidewolf.evaluation.task import Guess, Task, Vector, positive
from tidewolf.sets.bounded_psd import BoundedPSD
from tidewolf.sets.fantope import Fantope
from tidewolf.sets.nuclear_ball import NuclearBall
from tidewolf.sets.spectraplex import Spectraplex

METHOD = "semidefinite program by an interior-point method"
LARGEST = 200
"""Up to matrices of this order (of a nuclear ball: rows and columns together)."""
_TURNS, _ROWS, _ALL, _JOIN, _IDLE = 40, 16, 300, 1e-9, 1e-6
"""How often bounds may join, how many at a time, how many are taken at once; what one is breached by to join, and the share of the
largest multiplier below which it leaves again, in the first half of the turns."""
_SAME, _IMPLIED, _FEASIBLE = 1e-12, 1e-8, 1e-9
"""Bounds that differ by this are an equation; a row this near to the span of equations is decided by them, and kept up to the last."""
_FACES, _PUSHES, _ZERO = 4, [0.0, *(10.0 ** (k / 2) for k in range(17))], 1e-11
"""How often the set is replaced by a face of it; multiples of the weights that showed why; the share of a row that is rounding."""

Numbers = np.ndarray[Any, np.dtype[np.int64]]


def fits(task: Task) -> bool:
    """Whether this method is for this task."""
    K = task.K
    if not isinstance(K, BoundedPSD | Spectraplex | Fantope | NuclearBall) or type(K.center) is not np.ndarray:
        return False
    point = isinstance(K, Fantope) and K.k == K.n
    return not point and (sum(K.shape) if isinstance(K, NuclearBall) else K.n) <= LARGEST


def guess(task: Task) -> Guess:
    """The best point and multipliers found, and, where no point keeps every row, weights that may show why."""
    lifted, nothing, costs = _Lifted.of(task), np.zeros(len(task.b)), np.zeros(len(task.c))
    lam, push, weights = nothing, nothing, None
    for _ in range(_FACES):
        rows = _Rows.of(lifted)
        found = _generated(lifted, rows, relaxed=False) if lifted.order else _Found(np.zeros((0, 0)), nothing, np.zeros((0, 0)))
        if found is not None:
            trials = [lam] + [found.lam + t * lifted.cost * push for t in (_PUSHES if push.any() else [0.0])]
            lam = max(trials, key=lambda lam: task.least(task.c, task.constant, lam))
            if task.keeps(x := lifted.point(found.X)):
                return Guess(x, lam)
        if lifted.order == 0:
            break
        tight = _generated(lifted, rows, relaxed=True)
        assert tight is not None
        weights, smaller = tight.lam, lifted.face(tight.X, tight.D)
        if smaller is None or task.least(costs, 0.0, weights) > 0.0:
            break
        lifted, push = smaller, push + weights
    return Guess(None, lam, weights)


class _Lifted(NamedTuple):
    """A task on symmetric matrices of order n and trace up to 1: costs and rows of norm 1, points divided by `unit`."""

    task: Task
    n: int
    unit: float
    cost: float
    C: Vector
    trace: bool
    """whether the trace is given, not only bounded"""
    cap: float | None
    basis: Vector
    """X = basis Y basis' + shift, with Y of order `order`"""
    shift: Vector

    @property
    def order(self) -> int:
        return int(self.basis.shape[1])

    @classmethod
    def of(cls, task: Task) -> _Lifted:
        K = task.K
        if isinstance(K, NuclearBall):
            n, unit, trace, cap = sum(K.shape), 2.0 * K.tau, False, None
        elif isinstance(K, Fantope):
            n, unit, trace, cap = K.n, float(K.k), True, 1.0 / K.k
        else:
            assert isinstance(K, BoundedPSD | Spectraplex)
            n, unit, trace, cap = K.n, K.tau, isinstance(K, Spectraplex), None
        lifted = cls(task, n, unit, 1.0, np.zeros((n, n)), trace, cap, np.eye(n), np.zeros((n, n)))
        C = lifted.matrices(task.c[None, :]).toarray().reshape(n, n)
        cost = float(positive(np.linalg.norm(C)))
        return lifted._replace(cost=cost, C=C / cost)

    def matrices(self, rows: Any) -> Any:
        """Rows of flattened points as rows of flattened symmetric matrices with the same products."""
        from scipy.sparse import coo_array, csr_array

        if self._corner == 0 and isinstance(rows, np.ndarray):
            square = rows.reshape(-1, self.n, self.n)
            return csr_array(0.5 * (square + square.transpose(0, 2, 1)).reshape(rows.shape))
        rows = coo_array(rows)
        i, j = np.divmod(rows.col.astype(np.int64), self.task.K.shape[1])
        j = j + self._corner
        where = np.concatenate([i * self.n + j, j * self.n + i])
        values, which = np.tile(0.5 * rows.data, 2), np.tile(rows.row, 2)
        found = csr_array((values, (which, where)), shape=(rows.shape[0], self.n * self.n))
        found.sum_duplicates()
        found.eliminate_zeros()
        return found

    def face(self, Y: Vector, D: Vector) -> _Lifted | None:
        """The matrices that D, psd where there is no cap, is least at: no more than those keep every row. None where these are all."""
        values, vectors = np.linalg.eigh(Y - D)
        kept, top = values > 0.0, np.zeros(self.order, dtype=bool)
        if self.cap is not None:
            kept, top = kept & (values < self.cap), values >= self.cap
        if kept.all():
            return None
        high = self.basis @ vectors[:, top]
        shift = self.shift if self.cap is None else self.shift + self.cap * high @ high.T
        return self._replace(basis=self.basis @ vectors[:, kept], shift=shift)

    def point(self, Y: Vector) -> Vector:
        """A matrix as a flattened point of K."""
        X, rows = self.basis @ Y @ self.basis.T + self.shift, self.task.K.shape[0]
        return np.asarray(self.unit * X[:rows, self._corner :]).reshape(-1)

    def within(self, A: Any) -> Any:
        """Rows as rows of flattened Y, what is rounding left out."""
        from scipy.sparse import csr_array

        parts = [self.basis.T @ A[[i], :].toarray().reshape(self.n, self.n) @ self.basis for i in range(A.shape[0])]
        dense = np.array(parts).reshape(A.shape[0], -1)
        return csr_array(np.where(np.abs(dense) > _ZERO * np.abs(A).max(axis=1).toarray().reshape(-1, 1), dense, 0.0))

    @property
    def _corner(self) -> int:
        return self.task.K.shape[0] if isinstance(self.task.K, NuclearBall) else 0


class _Rows(NamedTuple):
    """Distinct rows of norm 1 with low <= A x <= high, those of the trace among them."""

    A: Any
    low: Vector
    high: Vector
    below: Numbers
    """the row of the task that says so, or one after the last for the trace; -1 for none"""
    above: Numbers
    size: Vector
    """what multipliers are divided by to be those of the task's rows, of which there are `count`"""
    count: int

    @classmethod
    def of(cls, lifted: _Lifted) -> _Rows:
        from scipy.sparse import csr_array, vstack

        task, n = lifted.task, lifted.n
        trace = csr_array(np.eye(n).reshape(1, -1))
        signs = np.array([1.0, -1.0] if lifted.trace else [1.0])
        A = csr_array(vstack([lifted.matrices(task.A), *(sign * trace for sign in signs)]))
        b = np.concatenate([task.b / lifted.unit, signs])
        if lifted.order < n:
            b, A = b - A @ lifted.shift.reshape(-1), lifted.within(A)
        size = np.sqrt(np.asarray(A.multiply(A).sum(axis=1)).reshape(-1))
        some = np.flatnonzero(size > 0.0)
        sign = np.ones(len(b))
        sign[some] = np.sign(A.data[A.indptr[some]])
        size = positive(size)
        A, b = _scaled(A, sign / size), b / size
        which: dict[bytes, int] = {}
        first, low, high, below, above = [], [], [], [], []
        for i in some:
            part = slice(A.indptr[i], A.indptr[i + 1])
            j = which.setdefault(A.indices[part].tobytes() + (A.data[part].round(12) + 0.0).tobytes(), len(first))
            if j == len(first):
                for values, start in ((first, i), (low, -np.inf), (high, np.inf), (below, -1), (above, -1)):
                    values.append(start)
            if sign[i] > 0 and b[i] < high[j]:
                high[j], above[j] = b[i], i
            elif sign[i] < 0 and -b[i] > low[j]:
                low[j], below[j] = -b[i], i
        return cls(A[first], np.array(low), np.array(high), np.array(below), np.array(above), size, len(task.b))

    def multipliers(self, sides: _Sides, y: Vector) -> Vector:
        """Those of the task's rows, in the units of the program."""
        up = (y > 0.0) == (sides.sign > 0.0)
        lam = np.zeros(len(self.size))
        row = np.where(up, self.above[sides.which], self.below[sides.which])
        np.add.at(lam, row, np.abs(y) / self.size[row])
        return lam[: self.count]


class _Sides(NamedTuple):
    """Bounds sign * (A x) <= b, or equations, by the number of their distinct row."""

    which: Numbers
    sign: Vector
    b: Vector

    @classmethod
    def of(cls, rows: _Rows, some: Any) -> _Sides:
        """Both bounds of some of the rows, where there are both."""
        up, down = np.flatnonzero(some & (rows.above >= 0)), np.flatnonzero(some & (rows.below >= 0))
        signs = np.concatenate([np.ones(len(up)), -np.ones(len(down))])
        return cls(np.concatenate([up, down]), signs, np.concatenate([rows.high[up], -rows.low[down]]))

    def take(self, some: Any) -> _Sides:
        return _Sides(self.which[some], self.sign[some], self.b[some])

    def matrix(self, rows: _Rows) -> Any:
        return _scaled(rows.A[self.which], self.sign)


class _Span:
    """Equations that do not depend on each other, and what they imply."""

    def __init__(self, rows: _Rows, equal: Numbers) -> None:
        from scipy.linalg import cho_factor
        from scipy.linalg.lapack import dpstrf

        sides = _Sides(equal, np.ones(len(equal)), (0.5 * (rows.low + rows.high))[equal])
        A, self.consistent = sides.matrix(rows), True
        if len(equal):
            _, order, rank, _ = dpstrf((A @ A.T).toarray(), tol=_IMPLIED)
            sides, left = sides.take(np.sort(order[:rank] - 1)), sides.take(order[rank:] - 1)
            self.sides, self.A = sides, sides.matrix(rows)
            self._factor = cho_factor((self.A @ self.A.T).toarray())
            self.consistent = bool((np.abs(self._excess(left.matrix(rows), left.b)) <= _FEASIBLE).all())
        else:
            self.sides, self.A, self._factor = sides, A, None

    def implied(self, A: Any, b: Vector) -> Any:
        """Which bounds the equations decide, and whether they all hold where they do."""
        if self._factor is None:
            return np.zeros(len(b), dtype=bool), True
        from scipy.linalg import cho_solve

        inner = (self.A @ A.T).toarray()
        left = 1.0 - np.einsum("ij,ij->j", inner, cho_solve(self._factor, inner))
        decided = left <= _IMPLIED
        return decided, bool((self._excess(A, b)[decided] <= _FEASIBLE).all())

    def onto(self, X: Vector) -> Vector:
        """The nearest matrix that keeps the equations."""
        if self._factor is None:
            return X
        from scipy.linalg import cho_solve

        return X + (self.A.T @ cho_solve(self._factor, self.sides.b - self.A @ X.reshape(-1))).reshape(X.shape)

    def _excess(self, A: Any, b: Vector) -> Vector:
        """What rows in the span are above b."""
        from scipy.linalg import cho_solve

        return np.asarray(A @ (self.A.T @ cho_solve(self._factor, self.sides.b)) - b)


class _Found(NamedTuple):
    """A matrix, nearly of the set, multipliers, or weights, of the task's rows, and the sum of the rows with these and of the trace."""

    X: Vector
    lam: Vector
    D: Vector


def _generated(lifted: _Lifted, rows: _Rows, *, relaxed: bool) -> _Found | None:
    """The best point from programs over some of the bounds, of the first or the second program; None where equations exclude each other."""
    equal = (rows.high - rows.low <= _SAME * (1.0 + np.abs(np.minimum(rows.low, rows.high)))) & np.isfinite(rows.low) & ~relaxed
    span, sides = _Span(rows, np.flatnonzero(equal)), _Sides.of(rows, ~equal)
    if not span.consistent:
        return None
    candidate, used, lam = np.ones(len(sides.b), dtype=bool), np.zeros(0, dtype=np.int64), np.zeros(0)
    X, s, y = np.eye(lifted.order) / lifted.order, 0.0, np.zeros(0)
    for turn in range(_TURNS):
        breach = np.where(candidate, sides.sign * (rows.A @ X.reshape(-1))[sides.which] - sides.b - s, -np.inf)
        breach[used] = -np.inf
        more = np.argsort(-breach, kind="stable")[: _ALL if len(sides.b) <= _ALL else _ROWS]
        more = more[breach[more] > (_JOIN if turn > 0 else -np.inf)]
        decided, hold = span.implied(sides.take(more).matrix(rows), sides.b[more])
        if not hold:
            return None
        candidate[more[decided]] = False
        more = more[~decided]
        if turn > 0 and len(more) == 0:
            break
        kept = used[lam > _IDLE * lam.max(initial=0.0)] if turn < _TURNS // 2 else used
        used = np.concatenate([kept, more])
        X, s, y = _solved(lifted, rows, span.sides, sides.take(used), relaxed)
        lam = y[len(span.sides.b) :]
    equations, bounds = (span.sides, y[: len(span.sides.b)]), (sides.take(used), lam)
    D = sum((some.matrix(rows).T @ values for some, values in (equations, bounds)), np.zeros(X.size)).reshape(X.shape)
    whole = rows.multipliers(*equations) + rows.multipliers(*bounds)
    return _Found(span.onto(X), whole * (1.0 if relaxed else lifted.cost), D)


def _solved(lifted: _Lifted, rows: _Rows, equal: _Sides, sides: _Sides, relaxed: bool) -> tuple[Vector, float, Vector]:
    """A program over some of the rows: the matrix, s of the second program, and the multipliers of all."""
    from scipy.sparse import csr_array, vstack

    n = lifted.order
    A, b = csr_array(vstack([equal.matrix(rows), sides.matrix(rows)])), np.concatenate([equal.b, sides.b])
    start = np.eye(n) * min((1.0 if lifted.trace else 0.9) / n, np.inf if lifted.cap is None else 0.9 * lifted.cap)
    cap = None if lifted.cap is None else np.full(n, lifted.cap)
    if not relaxed:
        C = lifted.basis.T @ lifted.C @ lifted.basis
        found = interior.solve(interior.Program(C, A, b, len(equal.b), cap, start))
        return found.X, 0.0, found.y
    most = 1.0 + float(np.abs(A @ start.reshape(-1) - b).max())
    C = np.zeros((n + 1, n + 1))
    C[n, n] = 1.0
    i, j = np.divmod(A.indices.astype(np.int64), n)
    wide = csr_array((A.data, i * (n + 1) + j, A.indptr), shape=(len(b), (n + 1) ** 2))
    last = csr_array((np.ones(len(b)), (np.arange(len(b)), np.full(len(b), (n + 1) ** 2 - 1))), shape=wide.shape)
    start = np.pad(start, (0, 1))
    start[n, n] = most
    cap = None if cap is None else np.append(cap, 2.0 * most)
    found = interior.solve(interior.Program(C, csr_array(wide - last), b, 0, cap, start))
    return found.X[:n, :n], float(found.X[n, n]), found.y


def _scaled(A: Any, factors: Vector) -> Any:
    """Rows times numbers."""
    from scipy.sparse import csr_array

    return csr_array((A.data * np.repeat(factors, np.diff(A.indptr)), A.indices, A.indptr), shape=A.shape)
