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

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tidewolf.core.types import Floats
from tidewolf.functions.squared import Squared
from tidewolf.hindsight import interior
from tidewolf.hindsight.admm import totals
from tidewolf.hindsight.distinct_rows import Rows, Sides, Span
from tidewolf.hindsight.lifted import Lifted, order_of
from tidewolf.hindsight.newton import Curved, Found
from tidewolf.hindsight.task import Guess, Task

METHOD = "semidefinite program by an interior-point method"
LARGEST, MOST = 200, 4000
"""Up to matrices of this order (of a nuclear ball: rows and columns together), and up to this many
entries with squared losses."""
_TURNS, _ROWS, _ALL, _JOIN, _IDLE = 40, 16, 300, 1e-9, 1e-6
"""How often bounds may join, how many at the least, and how many may at once; what one is breached
by to join, and the share of the largest multiplier below which it leaves again, in the first half
of the turns."""
_FACES, _PUSHES = 4, [0.0, *(10.0 ** (k / 2) for k in range(17))]
"""How often the set is replaced by a face, and how much of the weights that showed why is tried."""
_NEAR, _POLISHED, _RANK = 1e-6, 4, 1e-6
"""Bounds that need no more work, as a share of their size; the last steps for a point, and what
counts as an eigenvalue of it, as a share of the largest."""


def fits(task: Task | Curved) -> bool:
    """Whether this method is for this task: its set, and at most squared errors as losses."""
    order = order_of(task.K)
    if order is None or order > LARGEST or isinstance(task, Task):
        return order is not None and order <= LARGEST
    losses = task.part.losses
    if task.pieces is None or not isinstance(losses, Squared):
        return False
    return len(np.unique(losses.places)) <= MOST


def guess(task: Task) -> Guess:
    """The best point and multipliers found; without a point, weights that may show why."""
    nothing = np.zeros(len(task.c))
    asked = _Asked(
        task.total,
        task.keeps,
        lambda _, lam: task.least(task.c, task.constant, lam),
        lambda _, weights: task.least(nothing, 0.0, weights),
    )
    found = _searched(Lifted.of(task.K, task.A, task.b).with_costs(task.c), asked)
    return Guess(found.point, found.lam, found.weights)


def guess_squares(task: Curved) -> Found:
    """The same for squared errors on entries; the anchor is where the multipliers were found."""
    losses, pieces = task.part.losses, task.pieces
    assert isinstance(losses, Squared)
    assert pieces is not None
    asked = _Asked(
        task.total,
        task.keeps,
        lambda x, lam: task.least(x, lam)[0],
        lambda x, weights: task.least(x, weights, costs=False)[0],
    )
    return _searched(Lifted.of(task.K, pieces.A, pieces.b).with_squares(*totals(losses)), asked)


class _Asked(NamedTuple):
    """What a task says: the total of a point, whether it keeps every row, and at a point the bounds
    that multipliers prove, on the total and on the rows alone."""

    total: Callable[[Floats], float]
    keeps: Callable[[Floats], bool]
    least: Callable[[Floats, Floats], float]
    least_of_rows: Callable[[Floats, Floats], float]


def _searched(lifted: Lifted, task: _Asked) -> Found:
    """The program over the set, then over ever smaller faces, until the bounds are near."""
    count = len(lifted.b)
    lam = push = np.zeros(count)
    anchor, point, weights = lifted.point(np.eye(lifted.n) / lifted.n), None, None
    lower, upper, whole = -np.inf, np.inf, Rows.of(*lifted.limits())
    if whole.impossible >= 0:
        return Found(None, anchor, lam, np.eye(1, count, whole.impossible)[0])
    for turn in range(_FACES):
        rows = whole if turn == 0 else Rows.of(*lifted.restricted(*lifted.limits()))
        if (found := _generated(lifted, rows, relaxed=False)) is not None:
            X = lifted.matrix(found.Y)
            x, own = lifted.point(X), lifted.cost * found.lam[:count]
            for t in _PUSHES if push.any() else [0.0]:
                trial = own + t * lifted.cost * push
                if (value := task.least(x, trial)) > lower:
                    anchor, lam, lower = x, trial, value
            # of two points that are kept up to a tolerance, that of the smaller face is nearer
            if task.keeps(x) or task.keeps(x := _polished(lifted, whole, found.Y)):
                point, upper = x, task.total(x)
        size = abs(upper) + lifted.cost * lifted.unit / lifted.n
        if (point is not None and upper - lower <= _NEAR * size) or lifted.order == 0:
            break
        tight = _generated(lifted, rows, relaxed=True)
        assert tight is not None
        at, weights = lifted.point(lifted.matrix(tight.Y)), tight.lam[:count]
        if point is None and weights.any() and task.least_of_rows(at, weights) > 0.0:
            return Found(None, at, lam, weights)
        smaller = lifted.face(tight.Y, tight.D)
        if smaller is None:
            break
        lifted, push = smaller, push + weights
    return Found(point, anchor, lam, None if point is not None else weights)


class _Solved(NamedTuple):
    """A matrix, multipliers or weights of all rows, and the sum of the rows with these."""

    Y: Floats
    lam: Floats
    D: Floats


def _generated(lifted: Lifted, rows: Rows, *, relaxed: bool) -> _Solved | None:
    """The first program, or the second; None where equations exclude each other."""
    equal = rows.equations() & ~relaxed
    span, sides = Span(rows, np.flatnonzero(equal)), Sides.of(rows, ~equal)
    order = lifted.order
    if order == 0:
        return _Solved(np.zeros((0, 0)), np.zeros(len(rows.size)), np.zeros((0, 0)))
    if not span.consistent:
        return None
    many = _ALL if len(sides.b) <= _ALL else max(_ROWS, order)
    undecided, used = np.ones(len(sides.b), dtype=bool), np.zeros(0, dtype=np.int64)
    Y, s, y, lam = np.eye(order) / order, 0.0, np.zeros(0), np.zeros(0)
    for turn in range(_TURNS):
        breach = np.where(undecided, sides.breach(rows, Y) - s, -np.inf)
        breach[used] = -np.inf
        more = np.argsort(-breach, kind="stable")[:many]
        more = more[breach[more] > (_JOIN if turn > 0 else -np.inf)]
        decided, hold = span.decided(sides.take(more).matrix(rows), sides.b[more])
        if not hold:
            return None
        undecided[more[decided]] = False
        more = more[~decided]
        if turn > 0 and len(more) == 0:
            break
        kept = used[lam > _IDLE * lam.max(initial=0.0)] if turn < _TURNS // 2 else used
        used = np.concatenate([kept, more])
        Y, s, y = _solved(lifted, rows, span.sides, sides.take(used), relaxed)
        lam = y[len(y) - len(used) :]
    whole, D = np.zeros(len(rows.size)), np.zeros(Y.size)
    for some, values in ((span.sides, y[: len(span.sides.b)]), (sides.take(used), lam)):
        whole += rows.multipliers(some, values)
        D += some.matrix(rows).T @ values
    return _Solved(span.onto(Y), whole, D.reshape(Y.shape))


def _solved(
    lifted: Lifted,
    rows: Rows,
    equal: Sides,
    sides: Sides,
    relaxed: bool,
) -> tuple[Floats, float, Floats]:
    """A program over some of the rows: the matrix, s of the second one, and all multipliers."""
    from scipy.sparse import csr_array, vstack

    n, least = lifted.order, (1.0 if lifted.trace else 0.9) / lifted.order
    parts = [(equal.matrix(rows), equal.b, np.zeros(len(equal.b)))]
    if lifted.squares is not None and not relaxed:
        squares = lifted.squares
        parts.append((*lifted.restricted(squares.A, squares.b), squares.give))
    A = csr_array(vstack([*(part[0] for part in parts), sides.matrix(rows)]))
    b = np.concatenate([*(part[1] for part in parts), sides.b])
    give = np.concatenate([part[2] for part in parts])
    start = np.eye(n) * (least if lifted.cap is None else min(least, 0.9 * lifted.cap))
    cap = None if lifted.cap is None else np.full(n, lifted.cap)
    if not relaxed:
        C = lifted.basis.T @ lifted.C @ lifted.basis
        found = interior.solve(interior.Program(C, A, b, give, cap, start))
        return found.X, 0.0, found.y
    most = 1.0 + float(np.abs(A @ start.reshape(-1) - b).max())  # s is one more diagonal entry
    wide, start = n + 1, np.pad(start, (0, 1))
    start[n, n], cap = most, None if cap is None else np.append(cap, 2.0 * most)
    i, j = np.divmod(A.indices.astype(np.int64), n)
    A = csr_array((A.data, i * wide + j, A.indptr), shape=(len(b), wide * wide))
    last = csr_array(np.eye(1, wide * wide, wide * wide - 1))
    A = csr_array(A - csr_array(np.ones((len(b), 1))) @ last)
    C = last.toarray().reshape(wide, wide)
    found = interior.solve(interior.Program(C, A, b, give, cap, start))
    return found.X[:n, :n], float(found.X[n, n]), found.y


def _polished(lifted: Lifted, rows: Rows, Y: Floats) -> Floats:
    """The point of L L', of the rank that Y has, on the equations and the bounds it breaches."""
    values, vectors = np.linalg.eigh(Y)
    large = values > _RANK * values.max(initial=0.0)
    L = lifted.basis @ (vectors[:, large] * np.sqrt(values[large]))
    X = L @ L.T + lifted.shift
    sides = Sides.of(rows, np.ones(len(rows.low), dtype=bool))
    sides = sides.take(sides.breach(rows, X) > -_JOIN)
    A = sides.matrix(rows)
    for _ in range(_POLISHED):
        left = sides.b - A @ X.reshape(-1)
        slopes = [A[[i], :].toarray().reshape(X.shape) @ L for i in range(len(left))]
        J = np.array(slopes).reshape(len(left), L.size)
        step = np.linalg.lstsq(2.0 * J @ J.T, left, rcond=1e-12)[0]
        L = L + (J.T @ step).reshape(L.shape)
        X = L @ L.T + lifted.shift
    return lifted.point(X)
