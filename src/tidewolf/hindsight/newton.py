"""The task in hindsight through the set's oracle alone, over convex combinations of the atoms
v_1 .. v_k that it has answered so far (task.py).

At x = sum_i w_i v_i the program

    min_u { <grad F, z> + 1/2 <z, H z> : g_j + <grad g_j, z> <= 0, u in the simplex },
    z = sum_i (u_i - w_i) v_i,

gives the next w, the step halved until F + weight max g^+ falls, and multipliers lam; the oracle's
answer to grad L, the slope of F + <lam, g>, joins the atoms. Before that the same for min max_j g_j
finds a point strictly inside every limit, or weights that show there is none; being an atom it
keeps the programs feasible, and mixing it in makes the last point so. Few limits matter: the
programs know those that some point has breached.

Curved losses or limits: H z is the change of grad L along z, measured at x + STEP (v_i - x):
members of K, so no function is asked outside its domain.

Linear losses under half-spaces: H = 0, and the program's own multipliers would run away. With the
dual function q and its model over the atoms,

    q(lam) = min_{x in K} F + <lam, g>   <=   q^(lam) = min_i F(v_i) + <lam, g(v_i)>,

the oracle is asked at the lam nearest to the best one so far at which q^ reaches the level between
the least of q^ and the largest q so far (a level bundle method on the dual). Without the level it
takes 12 s in place of 1.6 s on a ball of 100 entries under 200 rows (one core, lower is better).
"""

from typing import Any, final

import numpy as np

from tidewolf.core import arrays, errors, lazy, vertices
from tidewolf.core.types import Floats
from tidewolf.hindsight.task import Solution, Task, flattened, joining, positive
from tidewolf.sets.base import Polyhedral

# Relative to how far the total is from that of the center, or to 1e-3 |grad F| R where that is
# small; calls for either part, of curved functions and of linear ones.
_GAP, _ITERATIONS, CALLS = 1e-7, 100, 200
_STEP, _LEVEL = 1e-5, 0.5
_HALVINGS = 12
_EXACT = 1e-10
_IDLE = 1e-9


class _OverAtoms:
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


@final
class LevelBundle(_OverAtoms):
    """For linear losses under half-spaces; where the set has a linear description, a linear
    program knows more.
    """

    name = "level bundle method on vertices of the oracle"

    def supports(self, task: Task) -> bool:
        return task.c is not None and not isinstance(task.K, Polyhedral)


@final
class NewtonSteps(_OverAtoms):
    name = "Newton steps over vertices of the oracle"

    def supports(self, task: Task) -> bool:
        return task.c is None


class _Search:
    def __init__(self, task: Task) -> None:
        self.task, K, center = task, task.K, flattened(task.K.center)
        self.reference = task.unflattened(center)
        self.atoms: Any = K.atom(self.reference).table()
        self.used, self.products = np.zeros(0, dtype=np.int64), dict[int, list[float]]()
        # at the center itself slopes may be 0
        vertex = K.answer(task.unflattened(task.slope(center))).vertex
        points = [center, (center + flattened(vertex.dense(K.center))) / 2]
        along = [flattened(K.tangent(task.unflattened(task.slope(x)))) for x in points]
        self.cost = float(positive(max(map(np.linalg.norm, along)) * K.radius))
        if task.A is None:
            each = [task.constraints.slopes(task.unflattened(x)).max() for x in points]
            self.sizes = np.full(len(task.b), positive(max(each) * K.radius))
        else:
            self.sizes = task.norms * float(positive(K.radius))
        self.base, cut = task.total(center), task.tangent(center)
        self.rounding = cut.rounding(cut.terms, arrays.eps_of(K.center))
        self.inside: Floats | None = None

    def minimise(self, x: Floats, *, costs: bool) -> Solution:
        """Steps from x for the total loss, or for the largest limit alone; its point is None if
        it found none inside.
        """
        task, lam = self.task, np.zeros(len(self.task.b))
        weight, lower, upper = 0.0, -np.inf, task.total(x) if costs else np.inf
        best = Solution(x if costs else None, lam, None, x)
        row = self._add_atom(task.K.atom(task.unflattened(x)))
        w = np.eye(1, len(self.atoms), row)[0]
        for _ in range(_ITERATIONS if task.c is None else CALLS):
            if (found := self._step(w, lam, costs)) is None:
                break
            at_atoms, target, lam = found
            weight = max(weight, 2.0 * float(lam @ self.sizes))
            w = self._line_search(w, target, weight, costs)
            x = self._point(w)
            if task.c is not None and lower > -np.inf:
                level = lower + _LEVEL * (self._merit(x, 0.0, costs) - lower)
                lam = self._at_level(*at_atoms, level, best.lam, costs, lam)
            below = task.below_constraints(lam, x)
            value, vertex = task.least(below + task.tangent(x) if costs else below)
            if value > lower:
                lower, best = value, best._replace(lam=lam, anchor=x)
            mixed = x if self.inside is None else self._moved_inside(x, self.inside)
            merit = self._merit(mixed, 0.0, costs)
            if merit < upper and (not costs or task.is_feasible(mixed)):
                upper, best = merit, best._replace(point=mixed)
            if self._converged(upper, lower, costs):
                break
            self._add_atom(vertex)
            w = np.pad(w, (0, len(self.atoms) - len(w)))
        feasible = costs or (best.point is not None and task.is_feasible(best.point))
        return best if feasible else best._replace(point=None)

    def _converged(self, upper: float, lower: float, costs: bool) -> bool:
        """Whether the bounds are near enough; without costs whether their sign is known, and half
        of the room inside is reached.
        """
        if costs:
            most = max(abs(upper - self.base), abs(lower - self.base), 1e-3 * self.cost)
            return upper - lower <= _GAP * most + 2.0 * self.rounding
        return upper - lower <= _GAP or lower > 0.0 or (upper < 0.0 and upper < 0.5 * lower)

    def _values(self, x: Floats) -> Floats:
        return np.asarray(self.task.values(x) / self.sizes)

    def _largest(self, x: Floats) -> float:
        return float(self._values(x).max())

    def _moved_inside(self, x: Floats, inside: Floats) -> Floats:
        """x, moved towards a point that satisfies every constraint with a margin, twice as far as
        it takes to satisfy them all.
        """
        breach, margin = self._largest(x), -self._largest(inside)
        if breach <= 0.0 or margin <= 0.0:
            return x
        return x + min(1.0, 2.0 * breach / (breach + margin)) * (inside - x)

    def _merit(self, x: Floats, weight: float, costs: bool) -> float:
        """F + weight max g^+; max g without costs; infinite where a function is not defined."""
        task = self.task
        try:
            total = task.total(x) if costs or task.losses.domain is not None else 0.0
            breach = self._largest(x) if weight > 0.0 or not costs else 0.0
        except errors.InvalidInput:
            return np.inf
        return total + weight * max(0.0, breach) if costs else breach

    def _line_search(self, w: Floats, target: Floats, weight: float, costs: bool) -> Floats:
        """The step to the target, halved until it leads down or, by less than what counts, up; w
        itself if none does.
        """
        slack = 0.1 * (_GAP * self.cost + self.rounding if costs else _GAP)
        height = self._merit(self._point(w), weight, costs) + slack
        for halvings in range(_HALVINGS):
            trial = w + 0.5**halvings * (target - w)
            if self._merit(self._point(trial), weight, costs) < height:
                return trial
        return w

    def _add_atom(self, atom: vertices.Vertex) -> int:
        count = len(self.atoms)
        if (row := self.atoms.find(atom, count)) is not None:
            return int(row)
        self.atoms = self.atoms.append(atom, count)
        return count

    def _point(self, w: Floats) -> Floats:
        return flattened(self.atoms.combine(w, self.reference))

    def _along(self, x: Floats, slope: Floats) -> Floats:
        found: Floats = self.atoms.inner(self.task.unflattened(slope), len(self.atoms))
        return found - float(slope @ x)

    def _joined(self, x: Floats, costs: bool) -> bool:
        """Whether limits join those in use: the largest that are above those or, with costs,
        breached.
        """
        values = self._values(x)
        least = float(values[self.used].max(initial=-np.inf))
        more = joining(values, self.used, (min(0.0, least) if costs else least) + _EXACT)
        self.used = np.concatenate([self.used, more])
        return bool(len(more))

    def _rows(self, x: Floats) -> Floats:
        """How much the limits in use change from a point to each atom, one per row; products with
        half-spaces are kept.
        """
        rows = []
        for j, slope in zip(self.used.tolist(), self.task.slopes(x, self.used), strict=True):
            if self.task.A is None:
                rows.append(self._along(x, slope))
                continue
            known, a = self.products.setdefault(j, []), self.task.unflattened(slope)
            known += [vertex.inner(a) for vertex in self.atoms.vertices[len(known) :]]
            rows.append(np.array(known) - float(slope @ x))
        return np.asarray(np.array(rows) / self.sizes[self.used, None])

    def _curvature(self, x: Floats, lam: Floats, costs: bool) -> Floats:
        """<v_i - x, H (v_j - x)>, H the Hessian of F + <lam, g>, or of <lam, g> alone."""
        task, k = self.task, len(self.atoms)
        if task.c is not None:
            return np.zeros((k, k))
        if not costs and not lam.any():
            lam = lam.copy()
            lam[self.used] = 1.0 / (len(self.used) * self.sizes[self.used])
        ways = np.array([flattened(v.dense(self.reference)) for v in self.atoms.vertices]) - x
        points = (x, *(x + _STEP * ways))
        slopes = np.array([costs * task.slope(z) + task.weighted_slope(z, lam) for z in points])
        H = ways @ ((slopes[1:] - slopes[0]) / _STEP).T
        values, vectors = np.linalg.eigh((H + H.T) / 2)  # rounding makes some eigenvalues negative
        return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)

    def _step(
        self, w: Floats, lam: Floats, costs: bool
    ) -> tuple[tuple[Floats, Floats], Floats, Floats] | None:
        """What tangents at the present point make of F and of the limits in use at each atom, in
        units; the next weights of the atoms and the multipliers of all constraints; None if the
        solver gives up. With linear functions limits join until the next point violates no other.
        """
        task, k, x = self.task, len(self.atoms), self._point(w)
        unit = self.cost if costs else 1.0
        self._joined(x, costs)
        H, more = self._curvature(x, lam, costs) / unit, True
        while more:
            m, height, slope = len(self.used), 0.0, np.zeros(len(x))
            if costs:
                height, slope = task.total(x) / unit, task.slope(x) / unit
            values, rows, along = self._values(x)[self.used], self._rows(x), self._along(x, slope)
            at_atoms = height + along, rows + values[:, None]
            A, low, c, P = np.ones((1, k)), np.zeros(k), along - H @ w, H
            if not costs:  # the largest limit is one more, free variable
                P, rows = np.pad(H, (0, 1)), np.column_stack([rows, -np.ones(m)])
                c, A, low = np.append(c, 1.0), np.append(A, 0.0)[None, :], np.append(low, -np.inf)
            solver = lazy.piqp.DenseSolver()
            solver.settings.eps_abs = solver.settings.eps_rel = _EXACT
            solver.setup(P, c, A, np.ones(1), rows, None, -values, low, None)
            solver.solve()
            found, z = np.maximum(0.0, solver.result.x[:k]), np.maximum(0.0, solver.result.z_u)
            if not (0.0 < found.sum() < np.inf and (costs or z.sum() > 0.0) and z.sum() < np.inf):
                return None
            target = found / found.sum()
            lam = self._multipliers(np.where(z > _IDLE * z.max(initial=0.0), z, 0.0), costs)
            more = self._joined(self._point(target), costs) and task.c is not None
        return at_atoms, target, lam

    def _multipliers(self, own: Floats, costs: bool) -> Floats:
        whole, used = np.zeros(len(self.task.b)), self.used[: len(own)]
        whole[used] = own * (self.cost if costs else 1.0 / own.sum()) / self.sizes[used]
        return whole

    def _at_level(
        self, totals: Floats, limits: Floats, level: float, best: Floats, costs: bool,
        otherwise: Floats,
    ) -> Floats:  # fmt: skip
        m, unit = len(limits), self.cost if costs else 1.0
        solver = lazy.piqp.DenseSolver()
        one = (None, None) if costs else (np.ones((1, m)), np.ones(1))
        G, h = -limits.T, totals - level / unit
        near = best[self.used[:m]] * self.sizes[self.used[:m]] / unit
        solver.setup(np.eye(m), -near, *one, G, None, h, np.zeros(m), None)
        if solver.solve() != lazy.piqp.PIQP_SOLVED:
            return otherwise
        return self._multipliers(np.maximum(0.0, solver.result.x), costs)
