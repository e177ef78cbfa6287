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

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tidewolf.core.oracle import HasLMO
from tidewolf.evaluation import interior
from tidewolf.evaluation.curved import Curved, Found
from tidewolf.evaluation.splitting import totals
from tidewolf.evaluation.task import Guess, Task, Vector, positive
from tidewolf.functions.squared import Squared
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
_SAME, _IMPLIED, _FEASIBLE = 1e-12, 1e-8, 1e-6
"""Bounds that differ by this are an equation; a row of which this share, squared, is outside the span of equations is decided by them,
and contradicts them from the last on."""
_FACES, _PUSHES, _ZERO, _LOST = 4, [0.0, *(10.0 ** (k / 2) for k in range(17))], 1e-11, 1e-6
"""How often the set is replaced by a face of it; multiples of the weights that showed why; the share of a row that is
rounding, in an entry and in all."""
_NEAR, _POLISHED, _RANK = 1e-6, 4, 1e-6
"""Bounds that need no more work, as a share of their size; the last steps for a point, and what counts as an eigenvalue of it, as a share of the
largest."""

Numbers = np.ndarray[Any, np.dtype[np.int64]]


def fits(task: Task | Curved) -> bool:
    """Whether this method is for this task: its set, and squared errors at most among the losses."""
    K = task.K
    if not isinstance(K, BoundedPSD | Spectraplex | Fantope | NuclearBall) or type(K.center) is not np.ndarray:
        return False
    point = isinstance(K, Fantope) and K.k == K.n
    kinds = isinstance(task, Task) or (isinstance(task.part.losses, Squared) and task.pieces is not None)
    return kinds and not point and (sum(K.shape) if isinstance(K, NuclearBall) else K.n) <= LARGEST


def guess(task: Task) -> Guess:
    """The best point and multipliers found, and, where no point keeps every row, weights that may show why."""
    lifted = _Lifted.of(task.K, task.A, task.b)
    C = lifted.matrices(task.c[None, :]).toarray().reshape(lifted.n, lifted.n)
    cost, nothing = float(positive(np.linalg.norm(C))), np.zeros(len(task.c))
    asked = _Asked(
        task.total,
        task.keeps,
        lambda _, lam: task.least(task.c, task.constant, lam),
        lambda _, weights: task.least(nothing, 0.0, weights),
    )
    found = _searched(lifted._replace(cost=cost, C=C / cost), asked)
    return Guess(found.point, found.lam, found.weights)


def guess_squares(task: Curved) -> Found:
    """The same for squared errors on entries, which are rows that give; the anchor is the matrix with the best multipliers."""
    losses, pieces = task.part.losses, task.pieces
    assert isinstance(losses, Squared)
    assert pieces is not None
    asked = _Asked(
        task.total,
        task.keeps,
        lambda x, lam: task.least(x, lam)[0],
        lambda x, weights: task.least(x, weights, costs=False)[0],
    )
    return _searched(_Lifted.of(task.K, pieces.A, pieces.b).with_squares(*totals(losses)), asked)


class _Asked(NamedTuple):
    """What a task says of points, and of multipliers: the total, whether every row is kept, and the bounds that multipliers prove."""

    total: Callable[[Vector], float]
    keeps: Callable[[Vector], bool]
    least: Callable[[Vector, Vector], float]
    none: Callable[[Vector, Vector], float]


def _searched(lifted: _Lifted, task: _Asked) -> Found:
    """The program over the set, then over ever smaller faces of it, until the bounds are near or weights show that no point is left."""
    lam = push = np.zeros(len(lifted.b))
    anchor, point, weights = lifted.point(np.eye(lifted.n) / lifted.n), None, None
    lower, upper, whole = -np.inf, np.inf, _Rows.of(lifted)
    for turn in range(_FACES):
        rows = whole if turn == 0 else _Rows.of(lifted)
        found = _generated(lifted, rows, relaxed=False)
        if found is not None:
            x = lifted.point(found.X)
            for t in _PUSHES if push.any() else [0.0]:
                if (value := task.least(x, trial := found.lam + t * lifted.cost * push)) > lower:
                    anchor, lam, lower = x, trial, value
            if task.keeps(x) or task.keeps(x := _polished(lifted, whole, found.X)):  # in a smaller face with fewer errors
                point, upper = x, task.total(x)
        near = point is not None and upper - lower <= _NEAR * (abs(upper) + lifted.cost * lifted.unit / lifted.n)
        if near or lifted.order == 0:
            break
        tight = _generated(lifted, rows, relaxed=True)
        assert tight is not None
        at, weights, smaller = lifted.point(tight.X), tight.lam, lifted.face(tight.X, tight.D)
        if point is None and task.none(at, weights) > 0.0:
            return Found(None, at, lam, weights)
        if smaller is None:
            break
        lifted, push = smaller, push + weights
    return Found(point, anchor, lam, None if point is not None else weights)


class _Squares(NamedTuple):
    """Squared errors (<A_i, X> - b_i)^2/(2 give_i)."""

    A: Any
    b: Vector
    give: Vector


class _Lifted(NamedTuple):
    """A task on symmetric matrices of order n and trace up to 1: points divided by `unit`, costs by `cost` and that, rows of norm 1."""

    K: HasLMO
    A: Any
    """the rows of the task"""
    b: Vector
    n: int
    unit: float
    trace: bool
    """whether the trace is given, not only bounded"""
    cap: float | None
    basis: Vector
    """X = basis Y basis' + shift, with Y of order `order`"""
    shift: Vector
    cost: float
    C: Vector
    squares: _Squares | None = None

    @property
    def order(self) -> int:
        return int(self.basis.shape[1])

    @classmethod
    def of(cls, K: HasLMO, A: Any, b: Vector) -> _Lifted:
        """Without costs."""
        if isinstance(K, NuclearBall):
            n, unit, trace, cap = sum(K.shape), 2.0 * K.tau, False, None
        elif isinstance(K, Fantope):
            n, unit, trace, cap = K.n, float(K.k), True, 1.0 / K.k
        else:
            assert isinstance(K, BoundedPSD | Spectraplex)
            n, unit, trace, cap = K.n, K.tau, isinstance(K, Spectraplex), None
        return cls(K, A, b, n, unit, trace, cap, np.eye(n), np.zeros((n, n)), 1.0, np.zeros((n, n)))

    def with_squares(self, count: Vector, sums: Vector) -> _Lifted:
        """With squared errors: how often each entry was seen, and the sum of what was seen."""
        from scipy.sparse import csr_array

        if self._corner == 0:  # entries above and below the diagonal are one
            upper = np.triu(np.ones((self.n, self.n)))
            count, sums = (upper * (v + v.T - np.diag(np.diag(v))) for v in (count, sums))
        seen = np.flatnonzero(count)
        count, sums = count.reshape(-1)[seen], sums.reshape(-1)[seen]
        cost = float(positive(max(np.linalg.norm(sums), self.unit * np.linalg.norm(count) / self.n)))
        rows = csr_array((np.ones(len(seen)), seen, np.arange(len(seen) + 1)), shape=(len(seen), int(np.prod(self.K.shape))))
        squares = _Squares(self.matrices(rows), sums / count / self.unit, cost / count / self.unit)
        return self._replace(cost=cost, squares=squares)

    def matrices(self, rows: Any) -> Any:
        """Rows of flattened points as rows of flattened symmetric matrices with the same products."""
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

    def restricted(self, A: Any, b: Vector) -> tuple[Any, Vector]:
        """Rows on X as rows on Y."""
        return (A, b) if self.order == self.n else (self._within(A), b - A @ self.shift.reshape(-1))

    def point(self, Y: Vector) -> Vector:
        """A matrix within the face as a flattened point of K."""
        return self.point_of(self.basis @ Y @ self.basis.T + self.shift)

    def point_of(self, X: Vector) -> Vector:
        """A matrix as a flattened point of K."""
        rows = self.K.shape[0]
        return np.asarray(self.unit * X[:rows, self._corner :]).reshape(-1)

    def _within(self, A: Any) -> Any:
        """Rows as rows of flattened Y, what is rounding left out."""
        from scipy.sparse import csr_array

        parts = [self.basis.T @ A[[i], :].toarray().reshape(self.n, self.n) @ self.basis for i in range(A.shape[0])]
        dense, sizes = np.array(parts).reshape(A.shape[0], -1), np.sqrt(A.multiply(A).sum(axis=1)).reshape(-1, 1)
        lost = np.linalg.norm(dense, axis=1, keepdims=True) <= _LOST * sizes
        return csr_array(np.where(lost | (np.abs(dense) <= _ZERO * sizes), 0.0, dense))

    @property
    def _corner(self) -> int:
        return self.K.shape[0] if isinstance(self.K, NuclearBall) else 0


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

        n = lifted.n
        trace = csr_array(np.eye(n).reshape(1, -1))
        signs = np.array([1.0, -1.0] if lifted.trace else [1.0])
        A = csr_array(vstack([lifted.matrices(lifted.A), *(sign * trace for sign in signs)]))
        b = np.concatenate([lifted.b / lifted.unit, signs])
        A, b = lifted.restricted(A, b)
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
        return cls(A[first], np.array(low), np.array(high), np.array(below), np.array(above), size, len(lifted.b))

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
    if lifted.order == 0:
        return _Found(np.zeros((0, 0)), np.zeros(rows.count), np.zeros((0, 0)))
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
        lam = y[len(y) - len(used) :]
    equations, bounds = (span.sides, y[: len(span.sides.b)]), (sides.take(used), lam)
    D = sum((some.matrix(rows).T @ values for some, values in (equations, bounds)), np.zeros(X.size)).reshape(X.shape)
    whole = rows.multipliers(*equations) + rows.multipliers(*bounds)
    return _Found(span.onto(X), whole * (1.0 if relaxed else lifted.cost), D)


def _polished(lifted: _Lifted, rows: _Rows, Y: Vector) -> Vector:
    """The point L L' of the rank that Y has, brought onto the equations, and the bounds it breaches, by Gauss and Newton's steps for L."""
    values, vectors = np.linalg.eigh(Y)
    large = values > _RANK * values.max(initial=0.0)
    L = lifted.basis @ (vectors[:, large] * np.sqrt(values[large]))
    X = L @ L.T + lifted.shift
    sides = _Sides.of(rows, np.ones(len(rows.low), dtype=bool))
    sides = sides.take(sides.sign * (rows.A @ X.reshape(-1))[sides.which] - sides.b > -_JOIN)
    A = sides.matrix(rows)
    for _ in range(_POLISHED):
        left = sides.b - A @ X.reshape(-1)
        J = np.array([(A[[i], :].toarray().reshape(X.shape) @ L).reshape(-1) for i in range(len(left))]).reshape(len(left), -1)
        step = np.linalg.lstsq(2.0 * J @ J.T, left, rcond=1e-12)[0] if len(left) else left
        L = L + (J.T @ step).reshape(L.shape)
        X = L @ L.T + lifted.shift
    return lifted.point_of(X)


def _solved(lifted: _Lifted, rows: _Rows, equal: _Sides, sides: _Sides, relaxed: bool) -> tuple[Vector, float, Vector]:
    """A program over some of the rows: the matrix, s of the second program, and the multipliers of all."""
    from scipy.sparse import csr_array, vstack

    n = lifted.order
    parts = [(equal.matrix(rows), equal.b, np.zeros(len(equal.b)))]
    if lifted.squares is not None and not relaxed:
        parts.append((*lifted.restricted(lifted.squares.A, lifted.squares.b), lifted.squares.give))
    give = np.concatenate([part[2] for part in parts])
    A = csr_array(vstack([part[0] for part in parts] + [sides.matrix(rows)]))
    b = np.concatenate([part[1] for part in parts] + [sides.b])
    start = np.eye(n) * min((1.0 if lifted.trace else 0.9) / n, np.inf if lifted.cap is None else 0.9 * lifted.cap)
    cap = None if lifted.cap is None else np.full(n, lifted.cap)
    if not relaxed:
        C = lifted.basis.T @ lifted.C @ lifted.basis
        found = interior.solve(interior.Program(C, A, b, give, cap, start))
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
    found = interior.solve(interior.Program(C, csr_array(wide - last), b, give, cap, start))
    return found.X[:n, :n], float(found.X[n, n]), found.y


def _scaled(A: Any, factors: Vector) -> Any:
    """Rows times numbers."""
    from scipy.sparse import csr_array

    return csr_array((A.data * np.repeat(factors, np.diff(A.indptr)), A.indices, A.indptr), shape=A.shape)
