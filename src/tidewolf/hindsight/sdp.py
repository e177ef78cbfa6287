"""The task in hindsight as a semidefinite program, for four kinds of sets of matrices.

    BoundedPSD     X psd, tr X <= tau            Spectraplex    X psd, tr X = tau
    Fantope        0 <= X <= I, tr X = k         NuclearBall    the corner of Y psd, tr Y <= 2 tau

with Y = [ . X; X' . ] in the last. Points are divided by tau, k or 2 tau, so that traces are at
most 1; of costs and rows only what a symmetric matrix has a product with is kept.

Rows. Of rows that are multiples of each other, as those of repeated rounds are, and as X_ij and
X_ji are for symmetric matrices, only the tightest bound from above and the tightest from below
count; if the two meet the row is an equation. Equations that depend on others are left out, and
bounds that equations decide, such as tr X <= n if every X_ii = 1: those leave an interior-point
method no room, and have no unique multipliers.

interior.py solves the program. Equations are all there; of many bounds few matter, so they are
generated: solve with some, add those that the point violates most, until it violates none. The
point is projected on the equations once more. If it still does not satisfy every row, Newton steps
follow for a factor L of X = L L', whose rank stays what it is.

If that gives no point either, or the bounds are apart, the same is done for

    min { s >= 0 : X in the set, <A_i, X> - b_i <= s for every row },    an equation being two.

If s > 0, its multipliers are weights that show that no point satisfies every row. If s = 0, as when
entries are fixed such that no positive definite matrix has them, they expose the face that all such
points lie in: the program is solved again in there, if it has an inside. Its multipliers prove a
bound on the whole set once enough of the weights is added to them.

A face is { B Y B' + S : Y psd }, B orthonormal: the eigenvectors that are left free, and S the cap
(the bound I of a Fantope) on those that are bound to it. If D is a sum of rows, weighted >= 0, that
no member brings below what the rows allow together, members that satisfy all rows are least for D:
without a cap X D = 0, so they live in its kernel; with one, eigenvectors of negative eigenvalues of
D have the cap (facial reduction, Borwein & Wolkowicz 1981).
"""

from __future__ import annotations

from typing import Any, NamedTuple, final

import numpy as np

from tidewolf.core.lazy import scipy, sp
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Floats, Int64s
from tidewolf.functions.entries import Squared
from tidewolf.hindsight import admm, interior
from tidewolf.hindsight.task import Solution, Task, joining, positive
from tidewolf.sets.spectra import BoundedPSD, Fantope, NuclearBall, Spectraplex

# Up to matrices of this order; of a nuclear ball: rows and columns together. Larger ones, up to
# `MAX_LARGE`, where losses are linear and rows at most `FEW` times the order: a max-cut relaxation
# has twice as many.
MAX_ORDER, MAX_LARGE, FEW = 200, 1000, 4
MAX_ENTRIES = 4000
# How often bounds may join, how many at the least, and how many may at once.
_ITERATIONS, _FEW_ROWS, _MANY_ROWS = 40, 16, 300
# What a bound is breached by to join, and the share of the largest multiplier below which it leaves
# again, in the first half of the iterations.
_JOIN, _IDLE = 1e-9, 1e-6
# How often the set is replaced by a face, and how much of the weights that showed why is tried.
_FACES, _PUSHES = 4, [0.0, *(10.0 ** (k / 2) for k in range(17))]
# Bounds that need no more work, as a share of their size; the last steps for a point, and what
# counts as an eigenvalue of it, as a share of the largest.
_NEAR, _POLISHED, _RANK = 1e-6, 4, 1e-6
# The share of a row that is rounding within a face: of an entry, and of all of it.
_ZERO, _LOST = 1e-11, 1e-6
# Bounds that differ by this are an equation; a row of which this share, squared, is outside the
# span of equations is decided by them; and contradicts them from the last on.
_SAME, _IMPLIED, _FEASIBLE = 1e-12, 1e-8, 1e-6


@final
class SemidefiniteProgramming:
    """For sets of matrices, under half-spaces, with linear losses or squared errors on entries."""

    name = "semidefinite program by an interior-point method"

    def supports(self, task: Task) -> bool:
        order = order_of(task.K)
        if order is None or order > MAX_LARGE:
            return False
        if task.c is not None:
            return order <= MAX_ORDER or len(task.b) <= FEW * order
        losses = task.losses
        if order > MAX_ORDER or task.A is None or not isinstance(losses, Squared):
            return False
        return len(np.unique(losses.places)) <= MAX_ENTRIES

    def solve(self, task: Task) -> Solution:
        """The best point and multipliers found; without a point, weights that may show why. The
        anchor is where the multipliers were found. The program is solved over the set, then over
        ever smaller faces, until the bounds are near.
        """
        lifted, count = Lifted.of(task), len(task.b)
        lam = push = np.zeros(count)
        anchor, point, weights = lifted.point(np.eye(lifted.n) / lifted.n), None, None
        lower, upper, whole = -np.inf, np.inf, DistinctRows(*lifted.limits())
        if whole.impossible >= 0:
            return Solution(None, lam, np.eye(1, count, whole.impossible)[0], anchor)
        for face in range(_FACES):
            rows = whole if face == 0 else DistinctRows(*lifted.restricted(*lifted.limits()))
            if (found := _row_generation(lifted, rows, relaxed=False)) is not None:
                Y, own, _ = found
                x, own = lifted.point(lifted.matrix(Y)), lifted.cost * own[:count]
                for t in _PUSHES if push.any() else [0.0]:
                    trial = own + t * lifted.cost * push
                    if (value := task.lower_bound(Solution(None, trial, None, x))) > lower:
                        anchor, lam, lower = x, trial, value
                # of two points that are kept up to a tolerance, that of the smaller face is nearer
                if task.is_feasible(x) or task.is_feasible(x := _low_rank(lifted, whole, Y)):
                    point, upper = x, task.total(x)
            size = abs(upper) + lifted.cost * lifted.unit / lifted.n
            if (point is not None and upper - lower <= _NEAR * size) or lifted.order == 0:
                break
            tight = _row_generation(lifted, rows, relaxed=True)
            assert tight is not None
            Y, weights, D = tight
            at, weights = lifted.point(lifted.matrix(Y)), weights[:count]
            if point is None and task.least(task.below_constraints(weights, at))[0] > 0.0:
                return Solution(None, lam, weights, at)
            if (smaller := lifted.face(Y, D)) is None:
                break
            lifted, push = smaller, push + weights
        return Solution(point, lam, None if point is not None else weights, anchor)


def _row_generation(
    lifted: Lifted, rows: DistinctRows, *, relaxed: bool
) -> tuple[Floats, Floats, Floats] | None:
    """The first program, or the second: a matrix, multipliers or weights of all rows, and the sum
    of the rows with these; None if equations exclude each other.
    """
    equations, sides = rows.sides(relaxed=relaxed)
    span, order = Span(equations), lifted.order
    if order == 0:
        return np.zeros((0, 0)), np.zeros(len(rows.size)), np.zeros((0, 0))
    if not span.consistent:
        return None
    many = _MANY_ROWS if len(sides.b) <= _MANY_ROWS else max(_FEW_ROWS, order)
    undecided, used = np.ones(len(sides.b), dtype=bool), np.zeros(0, dtype=np.int64)
    Y, s, y, lam = np.eye(order) / order, 0.0, np.zeros(0), np.zeros(0)
    for iteration in range(_ITERATIONS):
        breach = np.where(undecided, sides.breach(Y) - s, -np.inf)
        more = joining(breach, used, _JOIN if iteration > 0 else -np.inf, many)
        implied, hold = span.implied(sides.take(more))
        if not hold:
            return None
        undecided[more[implied]] = False
        more = more[~implied]
        if iteration > 0 and len(more) == 0:
            break
        kept = used[lam > _IDLE * lam.max(initial=0.0)] if iteration < _ITERATIONS // 2 else used
        used = np.concatenate([kept, more])
        Y, s, y = _solve_over_rows(lifted, span.sides, sides.take(used), relaxed)
        lam = y[len(y) - len(used) :]
    whole, D = np.zeros(len(rows.size)), np.zeros(Y.size)
    for some, values in ((span.sides, y[: len(span.sides.b)]), (sides.take(used), lam)):
        whole += rows.multipliers(some, values)
        D += some.A.T @ values
    return span.onto(Y), whole, D.reshape(Y.shape)


def _solve_over_rows(
    lifted: Lifted, equal: Sides, sides: Sides, relaxed: bool
) -> tuple[Floats, float, Floats]:
    """The matrix of a program over some of the rows, s of the second one, and all multipliers."""
    n, least = lifted.order, (1.0 if lifted.trace else 0.9) / lifted.order
    tables, bounds, give = [equal.A], [equal.b], np.zeros(len(equal.b))
    if lifted.squares is not None and not relaxed:
        A, b, more = lifted.squares
        A, b = lifted.restricted(A, b)
        tables, bounds, give = [*tables, A], [*bounds, b], np.concatenate([give, more])
    A = sp.csr_array(sp.vstack([*tables, sides.A]))
    b = np.concatenate([*bounds, sides.b])
    start = np.eye(n) * (least if lifted.cap is None else min(least, 0.9 * lifted.cap))
    cap = None if lifted.cap is None else np.full(n, lifted.cap)
    if not relaxed:
        C = lifted.basis.T @ lifted.C @ lifted.basis
        X, y = interior.solve_matrix_program(interior.MatrixProgram(C, A, b, give, cap, start))
        return X, 0.0, y
    most = 1.0 + float(np.abs(A @ start.reshape(-1) - b).max())  # s is one more diagonal entry
    wide, start = n + 1, np.pad(start, (0, 1))
    start[n, n], cap = most, None if cap is None else np.append(cap, 2.0 * most)
    i, j = np.divmod(A.indices.astype(np.int64), n)
    A = sp.csr_array((A.data, i * wide + j, A.indptr), shape=(len(b), wide * wide))
    last = sp.csr_array(np.eye(1, wide * wide, wide * wide - 1))
    A = sp.csr_array(A - sp.csr_array(np.ones((len(b), 1))) @ last)
    C = last.toarray().reshape(wide, wide)
    X, y = interior.solve_matrix_program(interior.MatrixProgram(C, A, b, give, cap, start))
    return X[:n, :n], float(X[n, n]), y


def _low_rank(lifted: Lifted, rows: DistinctRows, Y: Floats) -> Floats:
    values, vectors = np.linalg.eigh(Y)
    large = values > _RANK * values.max(initial=0.0)
    L = lifted.basis @ (vectors[:, large] * np.sqrt(values[large]))
    X = L @ L.T + lifted.shift
    sides = rows.sides(relaxed=True)[1]
    sides = sides.take(sides.breach(X) > -_JOIN)
    for _ in range(_POLISHED):
        left = -sides.breach(X)
        slopes = [sides.A[[i], :].toarray().reshape(X.shape) @ L for i in range(len(left))]
        J = np.array(slopes).reshape(len(left), L.size)
        step = np.linalg.lstsq(2.0 * J @ J.T, left, rcond=1e-12)[0]
        L = L + (J.T @ step).reshape(L.shape)
        X = L @ L.T + lifted.shift
    return lifted.point(X)


# --- rows -----------------------------------------------------------------------------------------


class Sides(NamedTuple):
    """Bounds A x <= b, or equations A x = b, rows of norm 1, and the given rows that positive and
    negative multipliers are of.
    """

    A: Any
    b: Floats
    up: Int64s
    down: Int64s

    def take(self, some: Any) -> Sides:
        return Sides(*(each[some] for each in self))

    def breach(self, X: Floats) -> Floats:
        return np.asarray(self.A @ X.reshape(-1) - self.b)


class DistinctRows:
    """Distinct rows of norm 1 with low <= A x <= high, of sparse rows as given."""

    def __init__(self, A: Any, b: Floats) -> None:
        size = np.sqrt(np.asarray(A.multiply(A).sum(axis=1)).reshape(-1))
        some, empty = np.flatnonzero(size > 0.0), np.where(size > 0.0, 0.0, b)
        # a row 0 <= b with b < 0, -1 for none
        self.impossible = int(np.argmin(empty)) if empty.min(initial=0.0) < 0.0 else -1
        self.size, sign = positive(size), np.ones(len(b))
        sign[some] = np.sign(A.data[A.indptr[some]])
        A, b = A.multiply((sign / self.size)[:, None]).tocsr(), b / self.size
        number: dict[bytes, int] = {}
        which = [number.setdefault(_key(A, i), len(number)) for i in some]
        first = some[np.unique(np.array(which, dtype=np.int64), return_index=True)[1]]
        self.A, self.high, self.low = A[first], *np.full((2, len(number)), np.inf)
        # the row that gives each bound, -1 for none
        self.above, self.below = np.full((2, len(number)), -1)
        for i, j in zip(some, which, strict=True):
            least, whose = (self.high, self.above) if sign[i] > 0.0 else (self.low, self.below)
            if b[i] < least[j]:
                least[j], whose[j] = b[i], i
        self.low = -self.low

    def multipliers(self, sides: Sides, y: Floats) -> Floats:
        row, lam = np.where(y > 0.0, sides.up, sides.down), np.zeros(len(self.size))
        np.add.at(lam, row, np.abs(y) / self.size[row])
        return lam

    def sides(self, *, relaxed: bool) -> tuple[Sides, Sides]:
        """The equations, none if relaxed, and both bounds of the other rows, if there are both."""
        size = 1.0 + np.abs(np.minimum(self.low, self.high))
        equal = np.isfinite(self.low) & (self.high - self.low <= _SAME * size) & (not relaxed)
        values = 0.5 * (self.low[equal] + self.high[equal])
        equations = Sides(self.A[equal], values, self.above[equal], self.below[equal])
        up, down = (np.flatnonzero(~equal & (there >= 0)) for there in (self.above, self.below))
        owner, A = np.concatenate([self.above[up], self.below[down]]), [self.A[up], -self.A[down]]
        b = np.concatenate([self.high[up], -self.low[down]])
        return equations, Sides(sp.csr_array(sp.vstack(A)), b, owner, owner)


def _key(A: Any, i: Any) -> bytes:
    part = slice(A.indptr[i], A.indptr[i + 1])
    return bytes(A.indices[part].tobytes() + (A.data[part].round(12) + 0.0).tobytes())


class Span:
    def __init__(self, sides: Sides) -> None:
        self.sides, self.consistent, self._factor = sides, True, None
        if len(sides.b) == 0:
            return
        order, rank = scipy.linalg.lapack.dpstrf((sides.A @ sides.A.T).toarray(), tol=_IMPLIED)[1:3]
        left = sides.take(order[rank:] - 1)
        self.sides = sides.take(np.sort(order[:rank] - 1))
        self._factor = scipy.linalg.cho_factor((self.sides.A @ self.sides.A.T).toarray())
        self.consistent = bool((np.abs(self._infeasibility(left)) <= _FEASIBLE).all())

    def implied(self, bounds: Sides) -> tuple[Any, bool]:
        """Which bounds the equations decide, and whether those all hold."""
        if self._factor is None:
            return np.zeros(len(bounds.b), dtype=bool), True
        inner = (self.sides.A @ bounds.A.T).toarray()
        known = 1.0 - np.einsum("ij,ij->j", inner, self._solved(inner)) <= _IMPLIED
        return known, bool((self._infeasibility(bounds)[known] <= _FEASIBLE).all())

    def onto(self, X: Floats) -> Floats:
        if self._factor is None:
            return X
        change = self.sides.A.T @ self._solved(-self.sides.breach(X))
        return np.asarray(X + change.reshape(X.shape))

    def _infeasibility(self, others: Sides) -> Floats:
        return others.breach(np.asarray(self.sides.A.T @ self._solved(self.sides.b)))

    def _solved(self, right: Floats) -> Floats:
        return np.asarray(scipy.linalg.cho_solve(self._factor, right))


# --- sets -----------------------------------------------------------------------------------------


def order_of(K: HasLMO) -> int | None:
    if type(K.center) is not np.ndarray or (isinstance(K, Fantope) and K.k == K.n):  # {I}
        return None
    if isinstance(K, BoundedPSD | Spectraplex | Fantope):
        return K.n
    return sum(K.shape) if isinstance(K, NuclearBall) else None


class Lifted(NamedTuple):
    """A task on matrices in units: points divided by `unit`, totals by `unit` and `cost`."""

    K: HasLMO
    A: Any
    b: Floats
    n: int
    unit: float
    # whether the trace is given, not only bounded
    trace: bool
    cap: float | None
    basis: Floats
    shift: Floats
    cost: float
    C: Floats
    # A, b and give of squared errors (<A_i, X> - b_i)^2/(2 give_i)
    squares: tuple[Any, Floats, Floats] | None = None

    @classmethod
    def of(cls, task: Task) -> Lifted:
        K = task.K
        n, trace, cap = order_of(K) or 0, isinstance(K, Spectraplex | Fantope), None
        if isinstance(K, Fantope):
            unit, cap = float(K.k), 1.0 / K.k
        else:
            assert isinstance(K, BoundedPSD | Spectraplex | NuclearBall)
            unit = K.tau * (2.0 if isinstance(K, NuclearBall) else 1.0)
        zero = np.zeros((n, n))
        bare = cls(K, task.A, task.b, n, unit, trace, cap, np.eye(n), zero, 1.0, zero)
        if task.c is None:
            assert isinstance(task.losses, Squared)
            return bare._with_squares(*admm.entry_totals(task.losses))
        C = bare.matrices(task.c[None, :]).toarray().reshape(n, n)
        cost = float(positive(np.linalg.norm(C)))
        return bare._replace(cost=cost, C=C / cost)

    def _with_squares(self, times: Floats, sums: Floats) -> Lifted:
        if self._corner == 0:  # entries above and below the diagonal are one
            upper = np.triu(np.ones((self.n, self.n)))
            times, sums = (upper * (v + v.T - np.diag(np.diag(v))) for v in (times, sums))
        seen = np.flatnonzero(times)
        times, sums = times.reshape(-1)[seen], sums.reshape(-1)[seen]
        size = max(np.linalg.norm(sums), self.unit * np.linalg.norm(times) / self.n)
        cost, shape = float(positive(size)), (len(seen), int(np.prod(self.K.shape)))
        rows = sp.csr_array((np.ones(len(seen)), seen, np.arange(len(seen) + 1)), shape=shape)
        b, give = sums / times / self.unit, cost / times / self.unit
        return self._replace(cost=cost, squares=(self.matrices(rows), b, give))

    @property
    def order(self) -> int:
        return int(self.basis.shape[1])

    @property
    def _corner(self) -> int:
        return self.K.shape[0] if isinstance(self.K, NuclearBall) else 0

    def matrices(self, rows: Any) -> Any:
        """Rows of flattened points as flattened symmetric matrices with the same products."""
        if self._corner == 0 and isinstance(rows, np.ndarray):
            square = rows.reshape(-1, self.n, self.n)
            return sp.csr_array(0.5 * (square + square.transpose(0, 2, 1)).reshape(rows.shape))
        rows = sp.coo_array(rows)
        i, j = np.divmod(rows.col.astype(np.int64), self.K.shape[1])
        j = j + self._corner
        where = np.concatenate([i * self.n + j, j * self.n + i])
        values, which = np.tile(0.5 * rows.data, 2), np.tile(rows.row, 2)
        found = sp.csr_array((values, (which, where)), shape=(rows.shape[0], self.n * self.n))
        found.sum_duplicates()
        found.eliminate_zeros()
        return found

    def limits(self) -> tuple[Any, Floats]:
        signs = np.array([1.0, -1.0] if self.trace else [1.0])
        trace = sp.csr_array(np.eye(self.n).reshape(1, -1))
        A = sp.vstack([self.matrices(self.A), *(sign * trace for sign in signs)])
        return sp.csr_array(A), np.concatenate([self.b / self.unit, signs])

    def restricted(self, A: Any, b: Floats) -> tuple[Any, Floats]:
        """Rows on X as rows on Y, what is rounding left out."""
        if self.order == self.n:
            return A, b
        whole = (A[[i], :].toarray().reshape(self.n, self.n) for i in range(A.shape[0]))
        dense = np.array([self.basis.T @ a @ self.basis for a in whole]).reshape(A.shape[0], -1)
        sizes = np.sqrt(A.multiply(A).sum(axis=1)).reshape(-1, 1)
        lost = np.linalg.norm(dense, axis=1, keepdims=True) <= _LOST * sizes
        within = sp.csr_array(np.where(lost | (np.abs(dense) <= _ZERO * sizes), 0.0, dense))
        return within, b - A @ self.shift.reshape(-1)

    def face(self, Y: Floats, D: Floats) -> Lifted | None:
        """The face that D exposes, Y being a member in its inside; None if that is all."""
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
        return np.asarray(self.basis @ Y @ self.basis.T + self.shift)

    def point(self, X: Floats) -> Floats:
        return np.asarray(self.unit * X[: self.K.shape[0], self._corner :]).reshape(-1)
