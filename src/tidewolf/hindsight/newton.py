"""The task in hindsight where losses or constraints are curved, through the set's oracle.

    min { F(x) = sum_t f_t(x) : x in K, g_i(x) <= 0 for every i }
        g_i: the rounds' constraints, or their half-spaces

Lower. For any lam >= 0, L(., lam) = F + <lam, g> is convex, so with d a subgradient of it at any x,
in K or not,
    min_K L(., lam)  >=  L(x, lam) - max_{v in K} <d, x - v>,
one call of the oracle, less its error and a slack for rounding. Upper: F at a point seen to be
feasible. Both hold for whatever was found; they meet where the functions are smooth.

To find x and lam, Newton steps over the atoms v_1 .. v_k seen so far: at x = sum_i w_i v_i the
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

from typing import Any, NamedTuple

import numpy as np

from tidewolf.core.arrays import eps_of, like, to_numpy
from tidewolf.core.batch import Batch, Stream
from tidewolf.core.errors import InvalidInput, NotSupported
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Array, Floats, Int64s
from tidewolf.functions.base import Halfspaces, PiecewiseLinear
from tidewolf.functions.chain import Chain
from tidewolf.functions.custom import Custom
from tidewolf.hindsight.task import FEASIBILITY_TOLERANCE, exact, positive, require_moderate

METHOD = "Newton steps over vertices of the oracle"
GAP, TURNS = 1e-7, 100
"""Relative to how far the total is from that of the center, or to 1e-3 |grad F| R where that is
small; calls for either part.
"""
STEP = 1e-5
_ROWS, _HALVINGS, _EXACT, _IDLE = 16, 12, 1e-10, 1e-9
"""Limits that join at a time; how often a step is halved; the solver's accuracy; the share of the
largest multiplier that counts as 0.
"""


class Curved(NamedTuple):
    """The task of a set and some rounds, on flattened points."""

    K: HasLMO
    part: Stream
    pieces: Halfspaces | None
    """the constraints as half-spaces, where they are"""
    rounds: Int64s
    """the round each limit comes from"""

    def total(self, x: Floats) -> float:
        return float(to_numpy(self.part.losses.values(self.at_home(x))).sum(dtype=np.float64))

    def slope(self, x: Floats) -> Floats:
        """grad F."""
        return self._weighted(self.part.losses, x, np.ones(len(self.part)))

    def limits(self, x: Floats) -> Floats:
        """g_i for every i."""
        if self.pieces is not None:
            return np.asarray(self.pieces.A @ x - self.pieces.b)
        return _flat(self.part.constraints.values(self.at_home(x)))

    def limit_slope(self, x: Floats, lam: Floats) -> Floats:
        """sum_i lam_i grad g_i."""
        if self.pieces is not None:
            return np.asarray(self.pieces.A.T @ lam)
        return self._weighted(self.part.constraints, x, lam)

    def limit_slopes(self, x: Floats, some: Any) -> Floats:
        """grad g_i for some i, one a row."""
        if self.pieces is not None:
            rows = self.pieces.A[some, :]
            return np.asarray(rows if isinstance(rows, np.ndarray) else rows.toarray())
        gradients: Floats = _flat(self.part.constraints.gradients(self.at_home(x))).reshape(
            len(self.part), -1
        )[some]
        return gradients

    def steepness(self, x: Floats) -> float:
        """|grad F| within the affine hull."""
        return float(np.linalg.norm(_flat(self.K.tangent(self.at_home(self.slope(x))))))

    def limit_steepness(self, x: Floats) -> float:
        """The largest |grad g_t|."""
        return float(self.part.constraints.slopes(self.at_home(x)).max())

    def least(self, x: Floats, lam: Floats, *, costs: bool = True) -> tuple[float, Floats]:
        """A lower bound on F + <lam, g> over K (on <lam, g> without costs) from the point x, and
        the vertex the oracle answered with.
        """
        slope, limits, rounding = (
            costs * self.slope(x) + self.limit_slope(x, lam),
            self.limits(x),
            2.0 * (x.size + len(self.part)),
        )
        direction = self.at_home(slope)
        answer = self.K.answer(direction)
        value = (
            costs * self.total(x)
            + float(lam @ limits)
            - float(slope @ x)
            + answer.vertex.inner(direction)
            - answer.error
        )
        losses = float(np.abs(to_numpy(self.part.losses.values(self.at_home(x)))).sum()) * costs
        terms = (
            losses
            + float(lam @ np.abs(limits))
            + float(np.linalg.norm(slope)) * (float(np.linalg.norm(x)) + self.K.radius)
        )
        return value - rounding * eps_of(direction) * terms, _flat(
            answer.vertex.dense(self.K.center)
        )

    def keeps(self, x: Floats) -> bool:
        """Whether x lies in K and keeps every constraint, by the set's own excess and the
        functions' own values.
        """
        point = self.at_home(x)
        tolerance = max(FEASIBILITY_TOLERANCE, 100 * eps_of(point))
        values, slopes = (
            _flat(self.part.constraints.values(point)),
            self.part.constraints.slopes(point),
        )
        size = float((np.abs(values) + slopes * np.linalg.norm(x)).max())
        return (
            self.K.excess(point) <= tolerance * max(self.K.radius, float(np.abs(x).max()))
            and float(values.max()) <= tolerance * size
        )

    def at_home(self, x: Floats) -> Array:
        """A flattened point in the shape and library of the set, in float64 where that is NumPy."""
        x = x.reshape(self.K.shape)
        return x if type(self.K.center) is np.ndarray else like(x, self.K.center)

    def _weighted(self, batch: Batch, x: Floats, weights: Floats) -> Floats:
        point = self.at_home(x)
        return _flat(batch.subgradient(point, like(weights, point)))


class Found(NamedTuple):
    """What was found: a point that should be feasible, a member and multipliers for `least`,
    weights where no point seems feasible.
    """

    point: Floats | None
    anchor: Floats
    lam: Floats
    weights: Floats | None = None


def curved_of(K: HasLMO, part: Stream) -> Curved:
    """The task; refused, naming them, where functions are not known beyond their values."""
    for batch in (part.losses, part.constraints):
        for one in batch.parts if isinstance(batch, Chain) else (batch,):
            if isinstance(one, Custom):
                raise NotSupported(
                    "The best point in hindsight is not known for Custom functions: nothing tells "
                    "whether they are smooth."
                )
    pieces = (
        part.constraints.halfspaces() if isinstance(part.constraints, PiecewiseLinear) else None
    )
    task = Curved(exact(K), part, pieces, np.arange(len(part)) if pieces is None else pieces.rounds)
    _require_moderate(task)
    return task


def _require_moderate(task: Curved) -> None:
    """Refuse functions in units that are too small or too large, by their steepest slopes at the
    center and beside it.
    """
    for name, batch in (("losses", task.part.losses), ("constraints", task.part.constraints)):
        center, steepest = task.K.center, 0.0
        with np.errstate(over="ignore", invalid="ignore"):
            slopes = batch.gradients(center)
            # at the center itself slopes may be 0
            beside = task.K.answer(slopes[0, ...]).vertex.blend(center, 0.5)
            steepest = max(float(batch.slopes(x).max()) for x in (center, beside))
        require_moderate(name, np.array([steepest]))


def guess(task: Curved) -> Found:
    """A point inside every limit and the best member and multipliers found, or weights that show
    there is none, or what is left.
    """
    search = _Search(task)
    inside = search.climbed(_flat(task.K.center), costs=False)
    if inside.point is None:
        return Found(None, inside.anchor, np.zeros(len(task.rounds)), inside.lam)
    search.inside = inside.point
    return search.climbed(inside.point, costs=True)


class _Search:
    """Atoms seen, one a row, and limits in use."""

    def __init__(self, task: Curved) -> None:
        self.task = task
        center = _flat(task.K.center)
        self.atoms = center[None, :]
        self.used = np.zeros(0, dtype=np.int64)
        # at the center itself slopes may be 0
        apart = (center + task.least(center, np.zeros(len(task.rounds)))[1]) / 2
        self.cost = float(
            positive(max(task.steepness(center), task.steepness(apart)) * task.K.radius)
        )
        self.size = float(
            positive(max(task.limit_steepness(center), task.limit_steepness(apart)) * task.K.radius)
        )
        self.base, sizes = (
            task.total(center),
            float(np.abs(to_numpy(task.part.losses.values(task.K.center))).sum()),
        )
        self.rounding = 2.0 * (center.size + len(task.part)) * eps_of(task.K.center) * sizes
        self.inside: Floats | None = None

    def climbed(self, x: Floats, *, costs: bool) -> Found:
        """Newton steps from x for the total loss, or for the largest limit alone; its point is None
        where it found none inside.
        """
        task, lower, lam = self.task, -np.inf, np.zeros(len(self.task.rounds))
        anchor, best, upper, point, weight = x, lam, np.inf, None, 0.0
        self._join(x)
        w = (self.atoms == x).all(axis=1).astype(np.float64)
        for _ in range(TURNS):
            self._use(w @ self.atoms)
            found = self._program(w, lam, costs)
            if found is None:
                break
            target, lam = found
            self._use(target @ self.atoms)
            weight = max(weight, 2.0 * float(lam.sum()))
            w = self._shortened(w, target, weight, costs)
            x = w @ self.atoms
            value, vertex = task.least(x, lam, costs=costs)
            if value > lower:
                lower, anchor, best = value, x, lam
            mixed = self._mixed(x)
            if (not costs or self._fits(mixed)) and (
                now := self._height(mixed, 0.0, costs)
            ) < upper:
                upper, point = now, mixed
            if self._settled(upper, lower, costs):
                break
            self._join(vertex)
            w = np.pad(w, (0, len(self.atoms) - len(w)))
        return Found(
            point if costs or (point is not None and self._fits(point)) else None, anchor, best
        )

    def _settled(self, upper: float, lower: float, costs: bool) -> bool:
        """Whether the bounds are near enough; without costs whether their sign is known, and half
        of the room inside is reached.
        """
        if costs:
            most = max(abs(upper - self.base), abs(lower - self.base), 1e-3 * self.cost)
            return upper - lower <= GAP * most + 2.0 * self.rounding
        near = upper - lower <= GAP * self.size
        return near or lower > 0.0 or (upper < 0.0 and upper < 0.5 * lower)

    def _fits(self, x: Floats) -> bool:
        """Whether a point keeps every limit, up to what the solver may miss them by."""
        return float(self.task.limits(x).max()) <= _EXACT * self.size

    def _height(self, x: Floats, weight: float, costs: bool) -> float:
        """F + weight max g^+; max g without costs; infinite where a function is not defined."""
        task = self.task
        try:
            total = task.total(x) if costs or task.part.losses.domain is not None else 0.0
            breach = float(task.limits(x).max()) if weight > 0.0 or not costs else 0.0
        except InvalidInput:
            return np.inf
        return total + weight * max(0.0, breach) if costs else breach

    def _shortened(self, w: Floats, target: Floats, weight: float, costs: bool) -> Floats:
        """The step to the target, halved until it leads down or, by less than what counts, up; w
        itself where none does.
        """
        height = self._height(w @ self.atoms, weight, costs) + 0.1 * GAP * (
            self.cost if costs else self.size
        )
        height += costs * 0.1 * self.rounding
        for halvings in range(_HALVINGS):
            trial = w + 0.5**halvings * (target - w)
            if self._height(trial @ self.atoms, weight, costs) < height:
                return trial
        return w

    def _mixed(self, x: Floats) -> Floats:
        """x, moved towards the point strictly inside, where there is one, twice as far as it takes
        to keep every limit.
        """
        if self.inside is None:
            return x
        breach, room = float(self.task.limits(x).max()), -float(self.task.limits(self.inside).max())
        return (
            x
            if breach <= 0.0 or room <= 0.0
            else x + min(1.0, 2.0 * breach / (breach + room)) * (self.inside - x)
        )

    def _join(self, atom: Floats) -> None:
        """One atom more, unless it is there."""
        if not (self.atoms == atom).all(axis=1).any():
            self.atoms = np.vstack([self.atoms, atom])

    def _use(self, x: Floats) -> None:
        """The largest limits at a point that are above those in use, or breached, join those
        in use.
        """
        values = self.task.limits(x)
        above = values > (values[self.used].max() if len(self.used) else -np.inf)
        above |= values > 0.0
        above[self.used] = False
        more = np.flatnonzero(above)
        self.used = np.concatenate(
            [self.used, more[np.argsort(-values[more], kind="stable")[:_ROWS]]]
        )

    def _program(self, w: Floats, lam: Floats, costs: bool) -> tuple[Floats, Floats] | None:
        """The next weights and the multipliers of all limits, in the task's units; None where the
        solver gives up.
        """
        import piqp

        task, k, m = self.task, len(self.atoms), len(self.used)
        unit = self.cost if costs else self.size
        if not costs and not lam.any():
            lam = lam.copy()
            lam[self.used] = 1.0 / m
        x = w @ self.atoms
        ways = self.atoms - x
        slope = costs * task.slope(x) + task.limit_slope(x, lam)
        changed = np.array(
            [
                (costs * task.slope(z) + task.limit_slope(z, lam) - slope) / STEP
                for z in x + STEP * ways
            ]
        )
        H = _convex(ways @ changed.T / unit)
        rows, values = (
            ways @ task.limit_slopes(x, self.used).T / self.size,
            task.limits(x)[self.used] / self.size,
        )
        if costs:
            P, c, A, G, low = (
                H,
                ways @ task.slope(x) / unit - H @ w,
                np.ones((1, k)),
                rows.T,
                np.zeros(k),
            )
        else:
            P, c = np.pad(H, (0, 1)), np.append(-H @ w, 1.0)
            A, G, low = (
                np.append(np.ones(k), 0.0)[None, :],
                np.column_stack([rows.T, -np.ones(m)]),
                np.append(np.zeros(k), -np.inf),
            )
        solver = piqp.DenseSolver()
        solver.settings.eps_abs = solver.settings.eps_rel = _EXACT
        solver.setup(P, c, A, np.ones(1), G, None, -values, low, None)
        solver.solve()
        found, z = np.maximum(0.0, solver.result.x[:k]), np.maximum(0.0, solver.result.z_u)
        if not (
            np.isfinite(found).all()
            and np.isfinite(z).all()
            and found.sum() > 0.0
            and (costs or z.sum() > 0.0)
        ):
            return None
        whole, z = np.zeros(len(task.rounds)), np.where(z > _IDLE * z.max(), z, 0.0)
        whole[self.used] = z * unit / self.size if costs else z / z.sum()
        return found / found.sum(), whole


def _convex(H: Floats) -> Floats:
    """The nearest matrix without negative eigenvalues to the symmetric part of H."""
    values, vectors = np.linalg.eigh((H + H.T) / 2)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


def _flat(x: Array) -> Floats:
    return np.asarray(to_numpy(x), dtype=np.float64).reshape(-1)
