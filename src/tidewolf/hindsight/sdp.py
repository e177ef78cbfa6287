"""The task in hindsight as a semidefinite program, for the sets of matrices that lifted.py knows.

interior.py solves it over the distinct rows (distinct_rows.py). Equations are all there; of many
bounds few matter, so they are generated: solve with some, add those that the point breaches most,
until it breaches none. The point is brought onto the equations once more, and where it still does
not keep every row, by Newton's steps for a factor L of X = L L', whose rank stays what it is.

Where that is no point either, or the bounds are apart, the same is done for

    min { s >= 0 : X in the set, <A_i, X> - b_i <= s for every row },    an equation being two.

If s > 0, its multipliers are weights that show that no point keeps every row. If s = 0, as where
entries are fixed such that no positive definite matrix has them, they expose the face that all such
points lie in: the program is solved again in there, where it has an inside. Its multipliers prove a
bound on the whole set once enough of the weights is added to them.
"""

from __future__ import annotations

from typing import NamedTuple, final

import numpy as np

from tidewolf.core.types import Floats
from tidewolf.functions.entries import Squared
from tidewolf.hindsight.admm import entry_totals
from tidewolf.hindsight.distinct_rows import DistinctRows, Sides, Span
from tidewolf.hindsight.interior import MatrixProgram, solve_matrix_program
from tidewolf.hindsight.lifted import Lifted, order_of
from tidewolf.hindsight.task import Solution, Task, joining

MAX_ORDER, MAX_LARGE, FEW = 200, 1000, 4
"""Up to matrices of this order; of a nuclear ball: rows and columns together. Larger ones, up to
`MAX_LARGE`, where losses are linear and rows at most `FEW` times the order: a max-cut relaxation
has twice as many."""
MAX_ENTRIES = 4000
"""Up to this many entries with squared losses."""
_ITERATIONS, _FEW_ROWS, _MANY_ROWS = 40, 16, 300
"""How often bounds may join, how many at the least, and how many may at once."""
_JOIN, _IDLE = 1e-9, 1e-6
"""What a bound is breached by to join, and the share of the largest multiplier below which it
leaves again, in the first half of the iterations."""
_FACES, _PUSHES = 4, [0.0, *(10.0 ** (k / 2) for k in range(17))]
"""How often the set is replaced by a face, and how much of the weights that showed why is tried."""
_NEAR, _POLISHED, _RANK = 1e-6, 4, 1e-6
"""Bounds that need no more work, as a share of their size; the last steps for a point, and what
counts as an eigenvalue of it, as a share of the largest."""


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
        anchor is where the multipliers were found.
        """
        lifted = Lifted.of(task.K, task.A, task.b)
        if task.c is not None:
            return _facial_reduction(lifted.with_costs(task.c), task)
        assert isinstance(task.losses, Squared)
        return _facial_reduction(lifted.with_squares(*entry_totals(task.losses)), task)


def _facial_reduction(lifted: Lifted, task: Task) -> Solution:
    """The program over the set, then over ever smaller faces, until the bounds are near."""
    count = len(lifted.b)
    lam = push = np.zeros(count)
    anchor, point, weights = lifted.point(np.eye(lifted.n) / lifted.n), None, None
    lower, upper, whole = -np.inf, np.inf, DistinctRows.of(*lifted.limits())
    if whole.impossible >= 0:
        return Solution(None, lam, np.eye(1, count, whole.impossible)[0], anchor)
    for face in range(_FACES):
        rows = whole if face == 0 else DistinctRows.of(*lifted.restricted(*lifted.limits()))
        if (found := _row_generation(lifted, rows, relaxed=False)) is not None:
            x, own = lifted.point(lifted.matrix(found.Y)), lifted.cost * found.lam[:count]
            for t in _PUSHES if push.any() else [0.0]:
                trial = own + t * lifted.cost * push
                if (value := task.lower_bound(Solution(None, trial, None, x))) > lower:
                    anchor, lam, lower = x, trial, value
            # of two points that are kept up to a tolerance, that of the smaller face is nearer
            if task.is_feasible(x) or task.is_feasible(x := _low_rank(lifted, whole, found.Y)):
                point, upper = x, task.total(x)
        size = abs(upper) + lifted.cost * lifted.unit / lifted.n
        if (point is not None and upper - lower <= _NEAR * size) or lifted.order == 0:
            break
        tight = _row_generation(lifted, rows, relaxed=True)
        assert tight is not None
        at, weights = lifted.point(lifted.matrix(tight.Y)), tight.lam[:count]
        if point is None and weights.any() and task.constraints_bound(weights, at) > 0.0:
            return Solution(None, lam, weights, at)
        smaller = lifted.face(tight.Y, tight.D)
        if smaller is None:
            break
        lifted, push = smaller, push + weights
    return Solution(point, lam, None if point is not None else weights, anchor)


class _Generated(NamedTuple):
    """A matrix, multipliers or weights of all rows, and the sum of the rows with these."""

    Y: Floats
    lam: Floats
    D: Floats


def _row_generation(lifted: Lifted, rows: DistinctRows, *, relaxed: bool) -> _Generated | None:
    """The first program, or the second; None where equations exclude each other."""
    equal = rows.equal() & ~relaxed
    span, sides = Span(rows.equations(np.flatnonzero(equal))), rows.bounds(~equal)
    order = lifted.order
    if order == 0:
        return _Generated(np.zeros((0, 0)), np.zeros(len(rows.size)), np.zeros((0, 0)))
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
    return _Generated(span.onto(Y), whole, D.reshape(Y.shape))


def _solve_over_rows(
    lifted: Lifted, equal: Sides, sides: Sides, relaxed: bool
) -> tuple[Floats, float, Floats]:
    """The matrix of a program over some of the rows, s of the second one, and all multipliers."""
    from scipy.sparse import csr_array, vstack

    n, least = lifted.order, (1.0 if lifted.trace else 0.9) / lifted.order
    tables, bounds, give = [equal.A], [equal.b], np.zeros(len(equal.b))
    if lifted.squares is not None and not relaxed:
        A, b = lifted.restricted(lifted.squares.A, lifted.squares.b)
        tables, bounds = [*tables, A], [*bounds, b]
        give = np.concatenate([give, lifted.squares.give])
    A = csr_array(vstack([*tables, sides.A]))
    b = np.concatenate([*bounds, sides.b])
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
    A = csr_array((A.data, i * wide + j, A.indptr), shape=(len(b), wide * wide))
    last = csr_array(np.eye(1, wide * wide, wide * wide - 1))
    A = csr_array(A - csr_array(np.ones((len(b), 1))) @ last)
    C = last.toarray().reshape(wide, wide)
    X, y = solve_matrix_program(MatrixProgram(C, A, b, give, cap, start))
    return X[:n, :n], float(X[n, n]), y


def _low_rank(lifted: Lifted, rows: DistinctRows, Y: Floats) -> Floats:
    """The point of L L', of the rank that Y has, on the equations and the bounds it breaches."""
    values, vectors = np.linalg.eigh(Y)
    large = values > _RANK * values.max(initial=0.0)
    L = lifted.basis @ (vectors[:, large] * np.sqrt(values[large]))
    X = L @ L.T + lifted.shift
    sides = rows.bounds(np.ones(len(rows.low), dtype=bool))
    sides = sides.take(sides.breach(X) > -_JOIN)
    for _ in range(_POLISHED):
        left = -sides.breach(X)
        slopes = [sides.A[[i], :].toarray().reshape(X.shape) @ L for i in range(len(left))]
        J = np.array(slopes).reshape(len(left), L.size)
        step = np.linalg.lstsq(2.0 * J @ J.T, left, rcond=1e-12)[0]
        L = L + (J.T @ step).reshape(L.shape)
        X = L @ L.T + lifted.shift
    return lifted.point(X)
