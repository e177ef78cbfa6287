"""Newton steps for the task in hindsight where losses or constraints are curved (task.py).

Over the atoms v_1 .. v_k that the set's oracle has answered so far: at x = sum_i w_i v_i the
program

    min_u { <grad F, z> + 1/2 <z, H z> : g_j + <grad g_j, z> <= 0, u in the simplex },
    z = sum_i (u_i - w_i) v_i,

with H z the change of grad L along z, measured at x + STEP (v_i - x): members of K, so no function
is asked outside its domain. It gives the next w, the step halved until F + weight max g^+ falls,
and lam; the oracle's answer to grad L joins the atoms. Before that the same for min max_j g_j finds
a point strictly inside every limit, or weights that show there is none; being an atom it keeps the
programs feasible, and mixing it in makes the last point so.
"""

from __future__ import annotations

from typing import final

import numpy as np

from tidewolf.core.arrays import eps_of
from tidewolf.core.errors import InvalidInput
from tidewolf.core.types import Floats
from tidewolf.hindsight.task import Solution, Task, flattened, joining, moved_inside, positive

_GAP, _ITERATIONS = 1e-7, 100
"""Relative to how far the total is from that of the center, or to 1e-3 |grad F| R where that is
small; calls for either part.
"""
_STEP = 1e-5
_HALVINGS = 12
"""How often a step is halved."""
_EXACT = 1e-10
"""The solver's accuracy."""
_IDLE = 1e-9
"""The share of the largest multiplier that counts as 0."""


@final
class NewtonSteps:
    """For any set, and functions that are known beyond their values."""

    name = "Newton steps over vertices of the oracle"

    def supports(self, task: Task) -> bool:
        return task.c is None

    def solve(self, task: Task) -> Solution:
        """A point inside every limit and the best member and multipliers found, or weights that
        show there is none, or what is left.
        """
        search = _Search(task)
        inside = search.minimise(flattened(task.K.center), costs=False)
        if inside.point is None:
            return Solution(None, np.zeros(len(task.b)), inside.lam, inside.anchor)
        search.inside = inside.point
        return search.minimise(inside.point, costs=True)


class _Search:
    """Atoms seen, one a row, and limits in use."""

    def __init__(self, task: Task) -> None:
        self.task, K, center = task, task.K, flattened(task.K.center)
        self.atoms, self.used = center[None, :], np.zeros(0, dtype=np.int64)
        # at the center itself slopes may be 0
        vertex = K.answer(task.unflattened(task.slope(center))).vertex
        points = [center, (center + flattened(vertex.dense(K.center))) / 2]
        along = [flattened(K.tangent(task.unflattened(task.slope(x)))) for x in points]
        self.cost = float(positive(max(map(np.linalg.norm, along)) * K.radius))
        steep = max(float(task.constraints.slopes(task.unflattened(x)).max()) for x in points)
        self.size = float(positive(steep * K.radius))
        self.base, cut = task.total(center), task.tangent(center)
        self.rounding = cut.rounding(cut.terms, eps_of(K.center))
        self.inside: Floats | None = None

    def minimise(self, x: Floats, *, costs: bool) -> Solution:
        """Newton steps from x for the total loss, or for the largest limit alone; its point is None
        where it found none inside.
        """
        lam, weight, lower, upper = np.zeros(len(self.task.b)), 0.0, -np.inf, np.inf
        best = Solution(None, lam, None, x)
        self._add_atom(x)
        w = (self.atoms == x).all(axis=1).astype(np.float64)
        for _ in range(_ITERATIONS):
            self._add_limits(w @ self.atoms)
            if (found := self._newton_step(w, lam, costs)) is None:
                break
            target, lam = found
            self._add_limits(target @ self.atoms)
            weight = max(weight, 2.0 * float(lam.sum()))
            w = self._line_search(w, target, weight, costs)
            x = w @ self.atoms
            below = self.task.below_constraints(lam, x)
            value, vertex = self.task.least(below + self.task.tangent(x) if costs else below)
            if value > lower:
                lower, best = value, best._replace(lam=lam, anchor=x)
            mixed = x
            if self.inside is not None:
                margin = -self._largest(self.inside)
                mixed = moved_inside(x, self.inside, self._largest(x), margin)
            merit = self._merit(mixed, 0.0, costs)
            if merit < upper and (not costs or self._is_feasible(mixed)):
                upper, best = merit, best._replace(point=mixed)
            if self._converged(upper, lower, costs):
                break
            self._add_atom(flattened(vertex.dense(self.task.K.center)))
            w = np.pad(w, (0, len(self.atoms) - len(w)))
        feasible = costs or (best.point is not None and self._is_feasible(best.point))
        return best if feasible else best._replace(point=None)

    def _converged(self, upper: float, lower: float, costs: bool) -> bool:
        """Whether the bounds are near enough; without costs whether their sign is known, and half
        of the room inside is reached.
        """
        if costs:
            most = max(abs(upper - self.base), abs(lower - self.base), 1e-3 * self.cost)
            return upper - lower <= _GAP * most + 2.0 * self.rounding
        near = upper - lower <= _GAP * self.size
        return near or lower > 0.0 or (upper < 0.0 and upper < 0.5 * lower)

    def _largest(self, x: Floats) -> float:
        return float(self.task.values(x).max())

    def _is_feasible(self, x: Floats) -> bool:
        """Whether a point keeps every limit, up to what the solver may miss them by."""
        return self._largest(x) <= _EXACT * self.size

    def _merit(self, x: Floats, weight: float, costs: bool) -> float:
        """F + weight max g^+; max g without costs; infinite where a function is not defined."""
        task = self.task
        try:
            total = task.total(x) if costs or task.losses.domain is not None else 0.0
            breach = self._largest(x) if weight > 0.0 or not costs else 0.0
        except InvalidInput:
            return np.inf
        return total + weight * max(0.0, breach) if costs else breach

    def _line_search(self, w: Floats, target: Floats, weight: float, costs: bool) -> Floats:
        """The step to the target, halved until it leads down or, by less than what counts, up; w
        itself where none does.
        """
        unit = self.cost if costs else self.size
        height = self._merit(w @ self.atoms, weight, costs) + 0.1 * _GAP * unit
        height += costs * 0.1 * self.rounding
        for halvings in range(_HALVINGS):
            trial = w + 0.5**halvings * (target - w)
            if self._merit(trial @ self.atoms, weight, costs) < height:
                return trial
        return w

    def _add_atom(self, atom: Floats) -> None:
        """One atom more, unless it is there."""
        if not (self.atoms == atom).all(axis=1).any():
            self.atoms = np.vstack([self.atoms, atom])

    def _add_limits(self, x: Floats) -> None:
        """The largest limits at a point that are above those in use, or breached, join those
        in use.
        """
        values = self.task.values(x)
        least = min(0.0, float(values[self.used].max(initial=-np.inf)))
        self.used = np.concatenate([self.used, joining(values, self.used, least)])

    def _newton_step(self, w: Floats, lam: Floats, costs: bool) -> tuple[Floats, Floats] | None:
        """The next weights of the atoms and the multipliers of all constraints; None if the solver
        gives up.
        """
        import piqp

        task, k, m = self.task, len(self.atoms), len(self.used)
        unit = self.cost if costs else self.size
        if not costs and not lam.any():
            lam = lam.copy()
            lam[self.used] = 1.0 / m
        x = w @ self.atoms
        ways = self.atoms - x
        points = (x, *(x + _STEP * ways))
        slopes = np.array([costs * task.slope(z) + task.weighted_slope(z, lam) for z in points])
        H = _convex(ways @ ((slopes[1:] - slopes[0]) / _STEP).T / unit)
        rows = (ways @ task.slopes(x, self.used).T / self.size).T
        values = task.values(x)[self.used] / self.size
        A, low = np.ones((1, k)), np.zeros(k)
        if costs:
            c = ways @ task.slope(x) / unit - H @ w
        else:  # the largest limit is one more, free variable
            H, rows = np.pad(H, (0, 1)), np.column_stack([rows, -np.ones(m)])
            c, A = np.append(-H[:k, :k] @ w, 1.0), np.append(A, 0.0)[None, :]
            low = np.append(low, -np.inf)
        solver = piqp.DenseSolver()
        solver.settings.eps_abs = solver.settings.eps_rel = _EXACT
        solver.setup(H, c, A, np.ones(1), rows, None, -values, low, None)
        solver.solve()
        found, z = np.maximum(0.0, solver.result.x[:k]), np.maximum(0.0, solver.result.z_u)
        if not (0.0 < found.sum() < np.inf and (costs or z.sum() > 0.0) and z.sum() < np.inf):
            return None
        whole, z = np.zeros(len(task.b)), np.where(z > _IDLE * z.max(), z, 0.0)
        whole[self.used] = z * unit / self.size if costs else z / z.sum()
        return found / found.sum(), whole


def _convex(H: Floats) -> Floats:
    """The nearest matrix without negative eigenvalues to the symmetric part of H."""
    values, vectors = np.linalg.eigh((H + H.T) / 2)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)
