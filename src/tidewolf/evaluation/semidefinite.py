"""The task in hindsight as a semidefinite program over { X psd, tr X <= tau }, given to Clarabel (interior point).

    min { <C, X> : X psd, tr X <= tau, <A_i, X> <= b_i }        X as its upper triangle, entries off the diagonal times sqrt 2

Few of the rows matter, so they are generated: solve with some, add those that the point breaches most, until it breaches none. Where
the solver finds no point, or one that mixing has to bring back, the same is done for

    min { s : X psd, tr X <= tau, <A_i, X> - b_i <= s },

which gives a point strictly inside every row, or weights that show there is none.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tidewolf.evaluation.task import Guess, Task, Vector, positive
from tidewolf.sets.bounded_psd import BoundedPSD

LARGEST = 40
"""Up to this n; the solver's work grows like n^6."""
ACCURACY = 1e-10
_TURNS, _ROWS, _JOIN, _IDLE = 40, 16, 1e-9, 1e-6
"""How often rows may join, how many at a time, what a row is breached by to join, and the share of the largest multiplier below which
it leaves again, in the first half of the turns: rows that nearly coincide cost the solver its digits."""


def fits(task: Task) -> bool:
    """Whether this solver is for this task, and installed."""
    if not isinstance(task.K, BoundedPSD) or task.K.n > LARGEST or type(task.K.center) is not np.ndarray:
        return False
    try:
        import clarabel  # noqa: F401
    except ImportError:
        return False
    return True


def guess(task: Task) -> Guess | None:
    """The solver's point and multipliers, or weights where it found none; None where it gave up."""
    program = _Program(task)
    best = program.generated(relaxed=False)
    if best is not None and task.keeps(best.x):
        return Guess(best.x, best.lam)
    inside = program.generated(relaxed=True)
    if inside is None:
        return None
    if best is None:
        return Guess(None, np.zeros(len(task.b)), inside.lam)
    return Guess(task.mixed(best.x, inside.x), best.lam)


class _Solved(NamedTuple):
    """A member of K and the multipliers of all rows."""

    x: Vector
    lam: Vector


class _Program:
    """A task in units: rows of norm 1, costs of norm 1, X/tau."""

    def __init__(self, task: Task) -> None:
        assert isinstance(task.K, BoundedPSD)
        self.task, self.K, self.n, self.tau = task, task.K, task.K.n, task.K.tau
        i, j = np.tril_indices(self.n)
        self._lower, self._upper = i * self.n + j, j * self.n + i
        self._weights = np.where(i == j, 1.0, np.sqrt(2.0))
        self.A, self.sizes, self.b = task.A, task.sizes, task.b / task.sizes / self.tau
        self.cost = float(positive(np.linalg.norm(task.c)))
        self.q = self._packed(task.c[None, :] / self.cost)[0]
        self.trace = np.where(i == j, 1.0, 0.0)

    def _packed(self, rows: Any) -> Vector:
        """Rows of flattened matrices, of which only the symmetric part counts, as vectors of the same products with packed ones."""
        rows = rows if isinstance(rows, np.ndarray) else rows.toarray()
        return np.asarray(0.5 * self._weights * (rows[:, self._lower] + rows[:, self._upper]))

    def _member(self, packed: Vector) -> Vector:
        """A packed matrix as a flattened member of K."""
        X = np.empty(self.n * self.n)
        X[self._lower] = X[self._upper] = self.tau * packed / self._weights
        return np.asarray(self.K.project(X.reshape(self.n, self.n))).reshape(-1)

    def generated(self, relaxed: bool) -> _Solved | None:
        """The best point over all rows, from programs over some; `relaxed`: of the second program."""
        rows, x, s, lam = np.zeros(0, dtype=np.int64), self.K.center.reshape(-1), 0.0, np.zeros(0)
        for turn in range(_TURNS):
            broken = self.task.above(x) / self.tau - s
            broken[rows] = -np.inf
            more = np.argsort(-broken, kind="stable")[:_ROWS]
            if turn > 0 and broken[more[0]] <= _JOIN:
                break
            kept = rows[lam > _IDLE * lam.max(initial=0.0)] if turn < _TURNS // 2 else rows
            rows = np.concatenate([kept, more if turn == 0 else more[broken[more] > _JOIN]])
            solved = self._solved(rows, relaxed)
            if solved is None:
                return None
            x, s, lam = solved
        whole = np.zeros(len(self.b))
        whole[rows] = lam * (1.0 if relaxed else self.cost) / self.sizes[rows]
        return _Solved(x, whole)

    def _solved(self, rows: np.ndarray[Any, Any], relaxed: bool) -> tuple[Vector, float, Vector] | None:
        import clarabel
        from scipy.sparse import bmat, csc_matrix, eye

        k, size = len(rows), len(self.q)
        some = csc_matrix(self._packed(self.A[rows, :]) / self.sizes[rows, None])
        slack = csc_matrix(-np.ones((k, 1)))
        blocks = [[some, slack], [csc_matrix(self.trace[None, :]), None], [-eye(size), csc_matrix((size, 1))]]
        whole = csc_matrix(bmat(blocks) if relaxed else bmat([row[:1] for row in blocks]))
        q = np.append(np.zeros(size), 1.0) if relaxed else self.q
        b = np.concatenate([self.b[rows], [1.0], np.zeros(size)])
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = ACCURACY
        cones = [clarabel.NonnegativeConeT(k + 1), clarabel.PSDTriangleConeT(self.n)]
        found = clarabel.DefaultSolver(csc_matrix((len(q), len(q))), q, whole, b, cones, settings).solve()
        if found.status not in (clarabel.SolverStatus.Solved, clarabel.SolverStatus.AlmostSolved):
            return None
        u, lam = np.array(found.x), np.maximum(0.0, np.array(found.z)[:k])
        return self._member(u[:size]), float(u[size]) if relaxed else 0.0, lam
