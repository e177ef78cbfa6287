"""The task in hindsight through the set's oracle alone: a level bundle method on the dual, which
keeps convex combinations of vertices.

With f_i = <c, v_i> and r_i = A v_i - b at the vertices v_i seen so far, the dual function and its
model are

    q(lam) = min_{x in K} <c, x> + <lam, A x - b>   <=   q^(lam) = min_i f_i + <lam, r_i>,
    lam >= 0,

q at the cost of one call, which gives the next vertex. Each iteration

    upper  =  max q^  =  min { <f, w> : sum_i w_i r_i <= 0, w in the simplex }
        a linear program; its w is a feasible point
    lam    =  the point nearest to the best lam so far with  q^(lam) >= (lower + upper)/2
        a quadratic program

and lower = max q so far: nothing runs away, as the model's own maximiser would. It ends when
upper - lower is within `_GAP` of their size, the oracle's own error apart, or after `CALLS`; what
was reached is what is reported. Before that the same method on

    min_{x in K} max_j <a_j, x>
        - b_j  =  max { min_{x in K} <lam, A x - b> : lam >= 0, sum lam = 1 }

finds a combination strictly inside every row, which the programs above and the last touch of the
point need, or weights that show there is none. Few rows matter: the programs know those that some
combination has breached. Rows, costs and points are scaled to size 1.

Column generation without the level, lam mixed with 0.8 of the best so far, takes 12 s in place of
1.6 s on a ball of 100 entries under 200 rows (one core, lower is better).
"""

from __future__ import annotations

from typing import Any, NamedTuple, final

import numpy as np

from tidewolf.core.oracle import Answer
from tidewolf.core.types import Floats, Int64s
from tidewolf.core.vertices import Vertex
from tidewolf.hindsight.task import Solution, Task, flattened, joining, moved_inside, positive
from tidewolf.sets.base import Polyhedral

_GAP, CALLS = 1e-6, 200
"""Relative to the larger of the two bounds, or to 1e-3 |c| R where both are small; calls for either
part.
"""
_LEVEL = 0.5
_EXACT = 1e-9
"""What a row may be breached by before it joins, in units."""


@final
class LevelBundle:
    """For any set, under half-spaces; where the set has a linear description, a linear program
    knows more.
    """

    name = "level bundle method on vertices of the oracle"

    def supports(self, task: Task) -> bool:
        return task.c is not None and not isinstance(task.K, Polyhedral)

    def solve(self, task: Task) -> Solution:
        """A point inside every row and the best multipliers found, or weights that show there is
        none, or what is left of either.
        """
        bundle, none = _VertexBundle(task), np.zeros(len(task.b))
        inside, lam = bundle.maximise_dual(costs=False)
        if inside is None:
            return Solution(None, none, lam)
        above = float(task.violations(inside).max())
        bundle.slack = max(0.0, above / bundle.radius)
        point, lam = bundle.maximise_dual(costs=True)
        if point is None:
            return Solution(inside, lam)
        breach = float(task.violations(point).max())
        return Solution(moved_inside(point, inside, breach, -above), lam)


class _Master(NamedTuple):
    """The best combination of the vertices, its value, the multipliers of all rows, and how far the
    combination is above each.
    """

    weights: Floats
    value: float
    lam: Floats
    above: Floats


class _VertexBundle:
    """Vertices seen, in units: rows of norm 1, costs of norm 1, points divided by the radius."""

    def __init__(self, task: Task) -> None:
        assert task.c is not None
        self.task, self.c, self.radius = task, task.c, float(positive(task.K.radius))
        self.cost = float(positive(np.linalg.norm(self.c)))
        self.f, self.rows = np.zeros(0), np.zeros(0, dtype=np.int64)
        self.r = np.zeros((0, 0))  # of the rows in use: there may be very many others
        self.slack = 0.0  # what the rows are widened by, where no combination is strictly inside
        center = task.K.atom(task.K.center)
        self.atoms: Any = center.table()
        self._add_vertex(center)

    def _add_vertex(self, vertex: Vertex) -> None:
        task, rows = self.task, self.rows
        self.atoms = self.atoms.append(vertex, len(self.f))
        x = flattened(vertex.dense(task.K.center))
        self.f = np.append(self.f, self.c @ x / (self.cost * self.radius))
        values = (task.A[rows, :] @ x - task.b[rows]) / (task.norms[rows] * self.radius)
        self.r = np.column_stack([self.r, values])

    def _add_rows(self, rows: Int64s) -> None:
        task, count = self.task, len(self.f)
        for j, a in zip(rows, task.slopes(self.c, rows), strict=True):
            inner = self.atoms.inner(task.unflattened(a), count)
            self.r = np.vstack([self.r, (inner - task.b[j]) / (task.norms[j] * self.radius)])
        self.rows = np.concatenate([self.rows, rows])

    def _point(self, weights: Floats) -> Floats:
        return flattened(self.atoms.combine(weights, self.task.K.center))

    def _breaches(self, weights: Floats) -> Floats:
        """How far a combination is above each row."""
        return self.task.violations(self._point(weights)) / self.radius

    def _of_all_rows(self, own: Floats) -> Floats:
        """Multipliers of the rows in use, 0 for the others."""
        return np.asarray(np.bincount(self.rows, own, len(self.task.b)), dtype=np.float64)

    def maximise_dual(self, *, costs: bool) -> tuple[Floats | None, Floats]:
        """A point within the rows, if any, and multipliers: with costs, or for the largest breach
        alone.
        """
        lam, lower, warm = np.zeros(len(self.task.b)), -np.inf, None
        master = self._master(costs)
        for _ in range(CALLS):
            if master is None or self._converged(master.value, lower, costs):
                break
            trial = self._level_projection(lam, lower, master, costs)
            answer, value, error = self._evaluate_dual(trial, costs, warm)
            if value - error > lower:
                lam, lower = trial, value - error
            warm = answer.warm
            self._add_vertex(answer.vertex)
            if self._converged(master.value, value, costs):
                break
            master = self._master(costs)
        lam = (self.cost if costs else 1.0) * lam / self.task.norms
        if master is None or float(master.above.max()) > self.slack + 10.0 * _EXACT:
            return None, lam
        return self._point(master.weights), lam

    def _converged(self, upper: float, lower: float, costs: bool) -> bool:
        """Whether the bounds are near enough; without costs also whether their sign is known, and
        half of the room inside is reached.
        """
        if lower == -np.inf:
            return False
        near = upper - lower <= _GAP * max(abs(upper), abs(lower), 1e-3)
        return near or (not costs and (upper < 0.5 * lower or lower > _EXACT))

    def _evaluate_dual(self, lam: Floats, costs: bool, warm: Any) -> tuple[Answer, float, float]:
        """The oracle's answer at some multipliers, q there, and what it may be too high by."""
        task, unit = self.task, self.cost if costs else 1.0
        lam = unit * lam / task.norms
        direction = task.unflattened(costs * self.c + task.A.T @ lam)
        answer = task.K.answer(direction, warm)
        value = (answer.vertex.inner(direction) - float(lam @ task.b)) / (unit * self.radius)
        return answer, value, answer.error / (unit * self.radius)

    def _master(self, costs: bool) -> _Master | None:
        """The linear program; rows that its combination breaches join until there are none.

        None where the solver gives up.
        """
        if len(self.rows) == 0:
            self._add_rows(joining(self._breaches(np.ones(1)), self.rows, -np.inf))
        while (found := self._program(costs)) is not None:
            weights, value, own = found
            above = self._breaches(weights)
            more = joining(above - (self.slack if costs else value), self.rows, _EXACT)
            if len(more) == 0:
                return _Master(weights, value, self._of_all_rows(own), above)
            self._add_rows(more)
        return None

    def _program(self, costs: bool) -> tuple[Floats, float, Floats] | None:
        """The linear program over the rows in use: weights, value, multipliers."""
        from scipy.optimize import linprog

        k, m = len(self.f), len(self.rows)
        found = linprog(
            self.f if costs else np.append(np.zeros(k), 1.0),
            self.r if costs else np.column_stack([self.r, -np.ones(m)]),
            np.full(m, self.slack),
            np.ones((1, k)) if costs else np.append(np.ones(k), 0.0)[None, :],
            [1.0],
            bounds=[(0.0, None)] * k + [(None, None)] * (not costs),
            method="highs",
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )
        if found.status != 0:
            return None
        weights, lam = np.maximum(0.0, found.x[:k]), np.maximum(0.0, -found.ineqlin.marginals)
        return weights / weights.sum(), float(found.fun), lam

    def _level_projection(self, best: Floats, lower: float, master: _Master, costs: bool) -> Floats:
        """The nearest multipliers to the best ones at which the model reaches the level; the
        model's own best where there are none yet.
        """
        if lower == -np.inf:
            return master.lam
        import piqp

        k, m = len(self.f), len(self.rows)
        level = lower + _LEVEL * (master.value - lower)
        solver = piqp.DenseSolver()
        one = (None, None) if costs else (np.ones((1, m)), np.ones(1))
        G, h = -self.r.T, (self.f if costs else np.zeros(k)) - level
        solver.setup(np.eye(m), -best[self.rows], *one, G, None, h, np.zeros(m), None)
        if solver.solve() != piqp.PIQP_SOLVED:
            return master.lam
        lam = self._of_all_rows(np.maximum(0.0, solver.result.x))
        return lam if costs else lam / lam.sum()
