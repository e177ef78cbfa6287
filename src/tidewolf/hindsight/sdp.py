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

An interior-point method solves the program. Equations are all there; of many bounds few matter, so
they are generated: solve with some, add those that the point violates most, until it violates none.
The point is projected on the equations once more. If it still does not satisfy every row, Newton
steps follow for a factor L of X = L L', whose rank stays what it is.

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

from typing import Any, NamedTuple, Self, cast, final

import numpy as np

from tidewolf.core import arrays, oracle
from tidewolf.core.lazy import scipy, sp
from tidewolf.core.types import Floats, Int64s, NDArray
from tidewolf.functions.entries import Range, Squared
from tidewolf.hindsight.task import Solution, Task, flattened, joining, positive, sums
from tidewolf.sets import base, spectra

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
        known = order <= MAX_ORDER and task.A is not None and isinstance(task.losses, Squared)
        return known and len(np.unique(cast(Squared, task.losses).places)) <= MAX_ENTRIES

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
    lifted: "Lifted", rows: "DistinctRows", *, relaxed: bool
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
    lifted: "Lifted", equal: "Sides", sides: "Sides", relaxed: bool
) -> tuple[Floats, float, Floats]:
    """The matrix of a program over some of the rows, s of the second one, and all multipliers."""
    n, least = lifted.order, (1.0 if lifted.trace else 0.9) / lifted.order
    tables, bounds, give = [equal.A, sides.A], [equal.b, sides.b], np.zeros(len(equal.b))
    if lifted.squares is not None and not relaxed:
        A, b = lifted.restricted(*lifted.squares[:2])
        tables[1:1], bounds[1:1], give = [A], [b], np.concatenate([give, lifted.squares[2]])
    A, b = sp.csr_array(sp.vstack(tables)), np.concatenate(bounds)
    start = np.eye(n) * (least if lifted.cap is None else min(least, 0.9 * lifted.cap))
    cap = None if lifted.cap is None else np.full(n, lifted.cap)
    if not relaxed:
        C = lifted.basis.T @ lifted.C @ lifted.basis
        X, y = solve_matrix_program(MatrixProgram(C, A, b, give, cap, start))
        return X, 0.0, y
    most = 1.0 + float(np.abs(A @ start.reshape(-1) - b).max())  # s is one more diagonal entry
    wide, start = n + 1, np.pad(start, (0, 1))
    start[n, n], cap = most, None if cap is None else np.append(cap, 2.0 * most)
    i, j = np.divmod(A.indices.astype(np.int64), n)
    A = sp.csr_array((A.data, i * wide + j, A.indptr), shape=(len(b), wide * wide))
    last = sp.csr_array(np.eye(1, wide * wide, wide * wide - 1))
    A = sp.csr_array(A - sp.csr_array(np.ones((len(b), 1))) @ last)
    C = last.toarray().reshape(wide, wide)
    X, y = solve_matrix_program(MatrixProgram(C, A, b, give, cap, start))
    return X[:n, :n], float(X[n, n]), y


def _low_rank(lifted: "Lifted", rows: "DistinctRows", Y: Floats) -> Floats:
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

    def take(self, some: Any) -> "Sides":
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


def order_of(K: oracle.HasLMO) -> int | None:
    if type(K.center) is not np.ndarray or (isinstance(K, spectra.Fantope) and K.k == K.n):  # {I}
        return None
    if isinstance(K, spectra.BoundedPSD | spectra.Spectraplex | spectra.Fantope):
        return K.n
    return sum(K.shape) if isinstance(K, spectra.NuclearBall) else None


class Lifted(NamedTuple):
    """A task on matrices in units: points divided by `unit`, totals by `unit` and `cost`."""

    K: oracle.HasLMO
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
    def of(cls, task: Task) -> "Lifted":
        K = task.K
        n, trace = order_of(K) or 0, isinstance(K, spectra.Spectraplex | spectra.Fantope)
        unit = float(K.k if isinstance(K, spectra.Fantope) else cast(Any, K).tau)
        unit *= 2.0 if isinstance(K, spectra.NuclearBall) else 1.0
        cap = 1.0 / unit if isinstance(K, spectra.Fantope) else None
        zero = np.zeros((n, n))
        bare = cls(K, task.A, task.b, n, unit, trace, cap, np.eye(n), zero, 1.0, zero)
        if task.c is None:
            return bare._with_squares(*entry_totals(cast(Squared, task.losses)))
        C = bare.matrices(task.c[None, :]).toarray().reshape(n, n)
        cost = float(positive(np.linalg.norm(C)))
        return bare._replace(cost=cost, C=C / cost)

    def _with_squares(self, times: Floats, sums: Floats) -> "Lifted":
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
        return self.K.shape[0] if isinstance(self.K, spectra.NuclearBall) else 0

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

    def face(self, Y: Floats, D: Floats) -> "Lifted | None":
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


# --- interior-point method ------------------------------------------------------------------------
#
# A primal-dual interior-point method for linear programs over symmetric matrices.
#
#     min <C, X>    with X psd, X <= cap (if there is one),
#                   <A_i, X> = b_i for the first rows, <A_i, X> <= b_i for the others
#
# With multipliers y, free for equations and >= 0 for the others, slacks s of the others, and V of
# the cap, W = cap - X psd (the blocks of a program are X and W),
#
#     C + sum_i y_i A_i - Z + V = 0,      X Z = W V = mu I,      s_i y_i = mu,      mu -> 0,
#
# by Newton's method with Nesterov and Todd's (1997) scaling and Mehrotra's (1992) predictor and
# corrector, separate steps for X and for the multipliers. With G the mean of X and the inverse of Z
# (G Z G = X), and G_2 that of W and V, the change of X solves
#
#     H dX + sum_i dy_i A_i = right side,      H dX = inv(G) dX inv(G) + inv(G_2) dX inv(G_2),
#
# and T, which makes both terms diagonal, inverts it:  inv(H) Y = T (Theta o (T' Y T)) T', with
# Theta 1 without a cap, 1/(1 + w_i w_j) with one. So a turn costs one m x m system for m rows, of
# entries <A_i, inv(H) A_j>, and some products of n x n matrices: the n^2 unknowns are never a
# system.
#
# A row may give: <A_i, X> = b_i + give_i y_i in place of an equation is what the squared error
# (<A_i, X> - b_i)^2/(2 give_i) among the costs leads to. It adds give_i to the diagonal of the
# system, and steps for X and the multipliers are then the same.
#
# Equations need not leave room for anything but a positive definite X; nothing that is found here
# is believed (task.py).
#
# Clarabel 0.11 factors a system of n (n + 1)/2 unknowns. It takes 1.0 s at n = 50 and 22 s and 1.4
# GB at n = 100, for n equations; this file 0.03 s and 0.08 s (one core, lower is better). It also
# leaves 1e-9 of the equations, this file 1e-16.

_STEPS = 80
# It ends if no more than this is left of the equations above, of both kinds, and of products.
_ACCURACY = 1e-9
# It also ends after so many iterations in which that did not fall to this share.
_BETTER, _STALLED = 0.9, 6
_REFINED = 3
_BLOCK = 2**22
_SIGNS = (1.0, -1.0)


class MatrixProgram(NamedTuple):
    """A program; sizes near 1 are best.

    C is n x n, symmetric; A has sparse rows of flattened symmetric matrices, the equations first,
    which are independent; `give` has a number for each of those, 0 for an equation; `cap` is the
    diagonal of the cap; `start` is positive definite and below it.
    """

    C: Floats
    A: Any
    b: Floats
    give: Floats
    cap: Floats | None
    start: Floats

    def blocks(self, X: Floats) -> tuple[Floats, ...]:
        return (X,) if self.cap is None else (X, np.diag(self.cap) - X)


def solve_matrix_program(program: MatrixProgram) -> tuple[Floats, Floats]:
    """The best X, positive definite and below the cap, and the best multipliers found; the caller
    has to check them.
    """
    e, unit, start = len(program.give), 1.0 / len(program.start), program.start
    s = np.maximum((program.b - program.A @ start.reshape(-1))[e:], 0.1)
    Z = tuple(unit * _symmetric(np.linalg.inv(block)) for block in program.blocks(start))
    state = best = _State(start, Z, s, np.concatenate([np.zeros(e), unit / s]))
    least, idle = np.inf, 0
    for _ in range(_STEPS):
        error = _error(program, state)
        if error < _BETTER * least:
            best, least, idle = state, error, 0
        else:
            idle += 1
        if error <= _ACCURACY or idle == _STALLED:
            break
        try:
            state = _predictor_corrector(program, state)
        except np.linalg.LinAlgError:  # a factor is lost in rounding: nothing better will come
            break
    return best.X, best.y


class _Pair(NamedTuple):
    """Two positive definite matrices in their common scaling: inv(R) X inv(R)' = R' Z R = d."""

    R: Floats
    back: Floats
    d: Floats

    @classmethod
    def of(cls, X: Floats, Z: Floats) -> Self:
        L, M = np.linalg.cholesky(X), np.linalg.cholesky(Z)
        U, d, V = np.linalg.svd(M.T @ L)
        root = np.sqrt(d)
        return cls(L @ V.T / root, (M @ U / root).T, d)

    def primal(self, dX: Floats) -> Floats:
        return _symmetric(self.back @ dX @ self.back.T)

    def dual(self, dZ: Floats) -> Floats:
        return _symmetric(self.R.T @ dZ @ self.R)

    def target(self, mu: float, second: Floats | float) -> Floats:
        """The sum of both scaled changes with d o d + d o (their sum) + second = mu I, where
        o is the symmetric product.
        """
        right = mu * np.eye(len(self.d)) - np.diag(self.d**2) - second
        return np.asarray(2.0 * right / (self.d[:, None] + self.d[None, :]))

    def unscaled(self, S: Floats) -> Floats:
        return _symmetric(self.back.T @ S @ self.back)

    def longest(self, scaled: Floats) -> float:
        """The step at which diag(d) + step * scaled is no more psd."""
        root = np.sqrt(self.d)
        return _longest(np.linalg.eigvalsh(scaled / root[:, None] / root[None, :]))


class _State(NamedTuple):
    X: Floats
    Z: tuple[Floats, ...]
    s: Floats
    y: Floats


class _Change(NamedTuple):
    to: _State
    scaled: list[tuple[Floats, Floats]]


def _predictor_corrector(program: MatrixProgram, state: _State) -> _State:
    newton = _Newton(program, state)
    ahead = newton.change(0.0, None)
    primal, dual = newton.step_lengths(ahead, 1.0)
    mu = _mu(program, state)
    share = min(1.0, max(0.0, _mu(program, _stepped(state, ahead.to, primal, dual)) / mu)) ** 3
    share = max(share, (1.0 - min(primal, dual)) ** 2 * 0.1)
    change = newton.change(share * mu, ahead)
    primal, dual = newton.step_lengths(change, 0.9 + 0.09 * min(primal, dual))
    return _stepped(state, change.to, primal, dual)


class _Newton:
    def __init__(self, program: MatrixProgram, state: _State) -> None:
        self.program, self.state = program, state
        blocks = zip(program.blocks(state.X), state.Z, strict=True)
        self.pairs = [_Pair.of(block, Z) for block, Z in blocks]
        self.T, self.theta = self.pairs[0].R, np.ones((1, 1))
        if program.cap is not None:
            across = self.pairs[1].back @ self.T
            w, Q = np.linalg.eigh(across.T @ across)
            self.T, self.theta = self.T @ Q, 1.0 / (1.0 + np.outer(w, w))
        k, self.e = len(program.b), len(program.give)
        M = self._products()
        self.give = np.concatenate([program.give, state.s / state.y[self.e :]])
        M[np.arange(k), np.arange(k)] += self.give
        # rows that nearly depend on each other would end the method before they matter
        M[np.arange(k), np.arange(k)] *= 1.0 + 1e-15 * k
        if not (np.diagonal(M) > 0.0).all():
            raise np.linalg.LinAlgError("a row of the system is lost in rounding")
        self.scale = 1.0 / np.sqrt(np.diagonal(M))
        self.M = M * self.scale[:, None] * self.scale[None, :]
        self.factor = scipy.linalg.cho_factor(self.M, check_finite=False) if k else None
        self.left, self.dual_left = _residuals(program, state)

    def change(self, mu: float, ahead: _Change | None) -> _Change:
        A, state, e = self.program.A, self.state, self.e
        lam, pairs, B = state.y[e:], self.pairs, -self.dual_left
        second: list[Any] = [0.0] * len(pairs)
        slack = mu - state.s * lam
        if ahead is not None:
            second = [_symmetric(primal @ dual) for primal, dual in ahead.scaled]
            slack = slack - ahead.to.s * ahead.to.y[e:]
        S = [pair.target(mu, each) for pair, each in zip(pairs, second, strict=True)]
        for sign, pair, target in zip(_SIGNS, pairs, S, strict=False):
            B = B + sign * pair.unscaled(target)
        left = self.left + np.pad(slack / lam, (e, 0))
        dy = self._solved(A @ self._inverse(B).reshape(-1) + left)
        dX = self._inverse(B - (A.T @ dy).reshape(B.shape))
        for _ in range(_REFINED):  # inv(H) is large, and rounding takes much of A dX
            more = self._solved(A @ dX.reshape(-1) - self.give * dy + left)
            dy, dX = dy + more, dX - self._inverse((A.T @ more).reshape(B.shape))
        # the S of X less its scaled dX would be its dZ but for rounding, which Z would keep
        capped = [(pair.primal(-dX), S_2) for pair, S_2 in zip(pairs[1:], S[1:], strict=True)]
        capped = [(primal, S_2 - primal) for primal, S_2 in capped]
        dV = [pair.unscaled(dual) for pair, (_, dual) in zip(pairs[1:], capped, strict=True)]
        dZ = _symmetric(sum(dV, self.dual_left + (A.T @ dy).reshape(B.shape)))
        to = _State(dX, (dZ, *dV), (slack - state.s * dy[e:]) / lam, dy)
        return _Change(to, [(pairs[0].primal(dX), pairs[0].dual(dZ)), *capped])

    def step_lengths(self, change: _Change, share: float) -> tuple[float, float]:
        e, scaled = self.e, zip(self.pairs, change.scaled, strict=True)
        both = [[pair.longest(each) for each in ways] for pair, ways in scaled]
        primal, dual = map(min, zip(*both, strict=True))
        primal = min(primal, _longest(change.to.s / self.state.s))
        dual = min(dual, _longest(change.to.y[e:] / self.state.y[e:]))
        if self.program.give.any():
            primal = dual = min(primal, dual)
        return min(1.0, share * primal), min(1.0, share * dual)

    def _inverse(self, Y: Floats) -> Floats:
        return _symmetric(self.T @ (self.theta * (self.T.T @ Y @ self.T)) @ self.T.T)

    def _solved(self, right: Floats) -> Floats:
        if self.factor is None:
            return right
        right = right * self.scale
        found = scipy.linalg.cho_solve(self.factor, right, check_finite=False)
        for _ in range(2):  # what rounding took from the factor
            found = found + scipy.linalg.cho_solve(
                self.factor, right - self.M @ found, check_finite=False
            )
        return np.asarray(found * self.scale)

    def _products(self) -> Floats:
        """<A_i, inv(H) A_j>."""
        A, n = self.program.A, len(self.T)
        k, entries = A.shape[0], A.nnz
        M = np.zeros((k, k))
        if self.program.cap is None and entries * entries <= k * n**3:  # <A_i, G A_j G> by entries
            G, r, c = self.T @ self.T.T, A.indices // n, A.indices % n
            sums = sp.csr_array((A.data, np.arange(entries), A.indptr), shape=(k, entries))
            step = max(1, _BLOCK // max(1, entries))
            for part in (slice(a, a + step) for a in range(0, entries, step)):
                M += sums[:, part] @ (sums @ (G[r][:, r[part]] * G[c][:, c[part]])).T
            return _symmetric(M)
        block = max(1, _BLOCK // (n * n))
        for i in range(0, k, block):
            some = self.theta * (self.T.T @ A[i : i + block].toarray().reshape(-1, n, n) @ self.T)
            M[:, i : i + block] = A @ (self.T @ some @ self.T.T).reshape(-1, n * n).T
        return _symmetric(M)


def _stepped(state: _State, to: _State, primal: float, dual: float) -> _State:
    Z = tuple(Z + dual * dZ for Z, dZ in zip(state.Z, to.Z, strict=True))
    return _State(state.X + primal * to.X, Z, state.s + primal * to.s, state.y + dual * to.y)


def _mu(program: MatrixProgram, state: _State) -> float:
    lam, blocks = state.y[len(program.give) :], zip(program.blocks(state.X), state.Z, strict=True)
    total = float(state.s @ lam) + sum(float((block * Z).sum()) for block, Z in blocks)
    return total / (len(lam) + len(state.X) * len(state.Z))


def _residuals(program: MatrixProgram, state: _State) -> tuple[Floats, Floats]:
    """What is left of A X = b, slacks counted, and of the equation of multipliers."""
    e = len(program.give)
    left = program.A @ state.X.reshape(-1) - program.b
    left -= np.concatenate([program.give * state.y[:e], -state.s])
    dual = program.C + (program.A.T @ state.y).reshape(state.X.shape)
    for sign, Z in zip(_SIGNS, state.Z, strict=False):
        dual = dual - sign * Z
    return left, dual


def _error(program: MatrixProgram, state: _State) -> float:
    """The largest of what is left, against the sizes of X, which is 1, multipliers and costs."""
    left, dual = _residuals(program, state)
    unit = float(positive(np.linalg.norm(program.C))) / len(program.C)
    squares = 0.5 * float(program.give @ state.y[: len(program.give)] ** 2)
    cost = max(abs(float((program.C * state.X).sum()) + squares), unit)
    size = unit + float(np.abs(state.y).max(initial=0.0))
    gap = _mu(program, state) * len(program.C) / cost
    error = max(float(np.abs(left).max(initial=0.0)), float(np.abs(dual).max()) / size, gap)
    return error if np.isfinite(error) else np.inf


def _longest(changes: NDArray) -> float:
    """The step at which one of some numbers, given as shares of them that a step adds, is 0."""
    least = float(changes.min(initial=0.0))
    return -1.0 / least if least < 0.0 else np.inf


def _symmetric(X: NDArray) -> Floats:
    return np.asarray(0.5 * (X + X.T), dtype=np.float64)


# --- squared errors -------------------------------------------------------------------------------
#
# The task in hindsight for squared errors on entries under bounds on entries, over a set with an
# exact projection.
#
#     min { F(Z) + [Z within bounds] : Z = X, X in K }
#         F(Z) = 1/2 sum_e (n_e Z_e^2 - 2 s_e Z_e) + constant, entry by entry
#
# by the alternating direction method of multipliers (Boyd et al. 2011): with rho the mean of the
# n_e that are not 0,
#
#     X <- project(Z + U)
#     Z <- the entries of (s + rho (X - U)) / (n + rho), brought within their bounds
#     U <- U + Z - X
#
# After each Z, d = rho (X - U - Z) with the U before is a subgradient there: d - grad F(Z) is 0 but
# at entries on a bound, and the multiplier of that. So the Lagrangian at Z, which need not be a
# member, has slope d, and a call of the oracle gives a lower bound (task.py). Upper: X, drawn
# towards the center of K, where that is strictly within all bounds, until it is within them too.

# Between both bounds, relative to the upper one, or to 1e-3 of the total at the center where that
# is small.
_GAP = 1e-6
_ROUNDS, _CHECK_EVERY = 5000, 50


@final
class AlternatingDirections:
    """For squared errors on entries, on a set with an exact projection whose center keeps every
    bound with room to spare.
    """

    name = "alternating direction method of multipliers"

    def supports(self, task: Task) -> bool:
        known = isinstance(task.losses, Squared) and isinstance(task.constraints, Range)
        known = known and isinstance(task.K, base.Projectable)
        at_home = type(task.K.center) is np.ndarray
        return known and at_home and float(task.values(flattened(task.K.center)).max()) < 0.0

    def solve(self, task: Task) -> Solution:
        """The best point found, drawn within the bounds, and the Z and multipliers of the best
        lower bound.
        """
        K, b = cast(Any, task.K), task.b
        n, s = (total.reshape(-1) for total in entry_totals(cast(Squared, task.losses)))
        rho = float(n[n > 0].mean()) if n.any() else 1.0
        # 1 for a bound from above, -1 for one from below; the entry of a row is its only index
        signs, entry = np.asarray(task.A.data), task.A.indices
        low, high = np.full(len(n), -np.inf), np.full(len(n), np.inf)
        high[entry[signs > 0]], low[entry[signs < 0]] = b[signs > 0], -b[signs < 0]
        Z = center = flattened(K.center)
        U, upper, lower = np.zeros_like(center), np.inf, -np.inf
        found = Solution(center, np.zeros(len(b)), None, Z)
        for iteration in range(1, _ROUNDS + 1):
            X = flattened(K.project((Z + U).reshape(K.shape)))
            Z = np.clip((s + rho * (X - U)) / (n + rho), low, high)
            d, U = rho * (X - U - Z), U + Z - X
            if iteration % _CHECK_EVERY and iteration < _ROUNDS:
                continue
            above, room = np.maximum(task.values(X), 0.0), -task.values(center)
            point = X + float(np.max(above / (above + room))) * (center - X)
            if (total := task.total(point)) < upper:
                upper, found = total, found._replace(point=point)
            lam = np.maximum(0.0, signs * (d - (n * Z - s))[entry])
            if (value := task.lower_bound(Solution(None, lam, None, Z))) > lower:
                lower, found = value, found._replace(lam=lam, anchor=Z)
            if upper - lower <= _GAP * max(abs(upper), 1e-3 * task.total(center)):
                break
        return found


def entry_totals(losses: Squared) -> tuple[Floats, Floats]:
    seen, size = losses.places >= 0, int(np.prod(losses.shape))
    places, targets = losses.places[seen], arrays.to_numpy(losses.targets)[seen].astype(np.float64)
    n = np.bincount(places, minlength=size).astype(np.float64)
    return n.reshape(losses.shape), sums(places, targets, size).reshape(losses.shape)
