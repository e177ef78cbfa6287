"""The best fixed point from values and subgradients of the losses alone, under half-spaces: a level
bundle method. It serves losses of a user's own, and maxima of very many affine pieces.

At a point x_k the losses F = sum_t f_t of all rounds have one cut below them,

    F(x)  >=  F(x_k) + <g_k, x - x_k>,       g_k a subgradient of F at x_k

and each iteration (Lemarechal, Nemirovskii & Nesterov 1995) evaluates F once:

    the least of the model   max_k F(x_k) + <g_k, x - x_k>   over K and the half-spaces: a linear
        program
    x_k+1  =  the point nearest to the best one at which the model is at most the level between that
        and the least F so far: a quadratic program

Over a set with a linear description both are over all of it (best_point.py), else over combinations
of vertices that the oracle has answered with (best_point.py), two more per iteration.

Lower bound. The multipliers mu of the cuts, of sum 1, and lam of the half-spaces make an affine
function below F on the feasible points (task.py). It holds for any mu and lam, as long as the
functions are convex. Upper bound: F at a feasible point.

It ends when both are within a gap of each other, relative to how far F gets from its value at the
center, or after so many evaluations.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from tidewolf.core import arrays, errors, sparse
from tidewolf.core.batch import Batch, LinearTotal, PiecewiseLinear, Unlimited
from tidewolf.core.types import Array, Floats
from tidewolf.hindsight import task as proofs
from tidewolf.hindsight.best_point import BestOfVertices, BestPoint, Objective, Program, with_pieces
from tidewolf.hindsight.task import Minorant, Solution, Task, flattened, parts_of, positive
from tidewolf.sets import base
from tidewolf.sets.highs import HalfSpaces

METHOD = "level bundle method on gradients"
# Pieces from which on a program with a variable for each round takes longer.
MANY = 20_000
LOOKS, GAP = 100, 1e-6
# Evaluations of F, and the gap; the second are for pieces, which are evaluated quickly.
MANY_LOOKS, MANY_GAP = 400, 1e-9
_LEVEL = 0.3
# The violation, in units, from which on a half-space joins.
_EXACT = 1e-10
_WHO = "The best point in hindsight"


class CuttingPlanes:
    def __init__(self, task: Task) -> None:
        K = task.K
        self.task, self.center, self.radius = task, flattened(K.center), float(positive(K.radius))
        first, self.size, self.used = self._cut(self.center), 1.0, np.zeros(0, dtype=np.int64)
        self.cuts, self.base = [first], float(first.slope @ self.center) + first.offset
        self.described = isinstance(K, base.Polyhedral)
        self.solver: BestPoint = (
            BestPoint(K, _WHO) if self.described else BestOfVertices(K, _WHO, (K.atom(K.center),))
        )
        self.looks, self.gap = (LOOKS, GAP) if task.pieces is None else (MANY_LOOKS, MANY_GAP)

    def minimise(self, start: Floats) -> Solution:
        task, looks, lower, upper = self.task, 0, -np.inf, np.inf
        self._add_vertex(task.K.atom(task.unflattened(start)))
        best, found = start, Solution(start, np.zeros(len(task.b)), below=self.cuts[0])
        x: Floats | None = start
        if task.is_feasible(self.center):
            best, upper = self.center, self.base
        while True:
            if x is not None:
                cut = self._cut(x)
                total, looks = cut.offset + float(cut.slope @ x), looks + 1
                self.cuts.append(cut)
                if looks == 1:
                    slopes = [float(np.linalg.norm(each.slope)) for each in self.cuts]
                    self.size = float(positive(max(slopes))) * self.radius
                self._ask(cut.slope)
                if total < upper and task.is_feasible(x):
                    best, upper = x, total
            if (master := self._master()) is None:
                break
            least_at, least, mu, lam = master
            below = proofs.combined(self.cuts, mu / positive(mu.sum()))
            self._ask(below.slope + task.below_constraints(lam).slope)
            proposed = Solution(best, lam, below=below)
            if (value := self._proved(proposed, least)) > lower:
                lower, found = value, proposed
            if self._converged(lower, upper, cut) or looks >= self.looks:
                break
            gap = upper - least
            if gap <= 0.1 * self.gap * self.size and not self.described:
                looks, x = looks + 1, None  # the model knows these vertices: more of them
                continue
            nearest = self._nearest(best, least + _LEVEL * max(gap, 0.0))
            x = least_at if nearest is None else nearest
        return found._replace(point=best)

    def _proved(self, proposed: Solution, least: float) -> float:
        """A lower bound: what the set's oracle proves; the model itself has this least value."""
        return self.task.lower_bound(proposed)

    def _cut(self, x: Floats) -> Minorant:
        cut = self.task.tangent(x)
        proofs.require_moderate("losses", np.abs(cut.slope).max(keepdims=True))
        return cut

    def _converged(self, lower: float, upper: float, cut: Minorant) -> bool:
        most = max(abs(upper - self.base), abs(lower - self.base), 1e-3 * self.size)
        rounding = cut.rounding(cut.terms, arrays.eps_of(self.task.K.center))
        return upper - lower <= self.gap * most + 2.0 * rounding

    def _ask(self, direction: Floats) -> None:
        if not self.described:
            self._add_vertex(self.task.K.answer(self.task.unflattened(direction)).vertex)

    def _add_vertex(self, vertex: Any) -> None:
        if isinstance(self.solver, BestOfVertices):
            dense = flattened(vertex.dense(self.task.K.center))
            if not (dense[:, None] == self.solver.V).all(axis=0).any():
                several = (*self.solver.vertices, vertex)
                self.solver = BestOfVertices(self.task.K, _WHO, several, self.solver)

    def _program(self) -> Program:
        slopes, offsets = map(np.array, zip(*(cut[:2] for cut in self.cuts), strict=True))
        which = np.zeros(len(offsets), dtype=np.int64)
        loss = Objective(0.0 * self.center, slopes, self.base - offsets, which, 1)
        return self.solver.prepared(
            loss, HalfSpaces(self.task.rows(self.used), self.task.b[self.used])
        )

    def _joined(self, x: Floats) -> bool:
        more = proofs.joining(self.task.violations(x) / self.radius, self.used, _EXACT)
        self.used = np.concatenate([self.used, more])
        return bool(len(more))

    def _master(self) -> tuple[Floats, float, Floats, Floats] | None:
        while True:
            program, lam = self._program(), np.zeros(len(self.task.b))
            if (found := self.solver.feasible_best(program)) is None:
                return None
            x = self.solver.flat_point(found)
            if not self._joined(x):
                mu, lam[self.used] = self.solver.multipliers(program, found)
                return x, max(float(c.slope @ x) + c.offset for c in self.cuts), mu, lam

    def _nearest(self, best: Floats, level: float) -> Floats | None:
        while True:
            program = self._program()
            over = (level - self.base) / (program.cost_unit * self.solver.unit)
            found = self.solver.nearest(
                program, best, over, self.radius, 1e-11 if self.described else 1e-9
            )
            if found is None or not (self.described or found.v.max() > 0.0):
                return None
            x = self.solver.flat_point(found)
            if not self._joined(x):
                return x


# The best fixed point of weighted rounds, violations priced, and the most even of several.
#
#     z  =  argmin_{x in K}  sum_s omega_s ( f_s(x) + price g_s^+(x) )/sum omega,
#     ties: the nearest to the center
#
# If losses and constraints are piecewise linear, with few pieces, this is one quadratic program
# (`BestPoint.even`): a variable for each maximum, those of constraints at least 0, and a ridge
# |x - center|^2 so small that the objective loses at most RIDGE of its size. Else it is a level
# bundle method on values and subgradients (cutting_planes.py).
#
# The set is its linear description, or the convex combinations of the vertices that are known. No
# oracle call is made.

RIDGE = 1e-4
# Pieces from which on the bundle method is faster.
LEADER_PIECES = 60_000
# Evaluations of the bundle method at most, and the gap at which it ends.
LEADER_LOOKS, LEADER_GAP = 40, 1e-5


class WeightedRounds(NamedTuple):
    losses: Batch
    # None: there is no constraint
    limits: Batch | None
    # omega, of sum 1
    weights: Floats
    price: float


def leader(solver: BestPoint, rounds: WeightedRounds) -> Array | None:
    """The point, a member of the set; None if no solver found one."""
    center, limits = solver.K.center, rounds.limits
    try:
        loss, size = _pieces(rounds, center)
        if loss is None or len(loss.e) > LEADER_PIECES:
            best = _BundleMethod(solver, rounds).minimise(flattened(center)).point
            return None if best is None else solver.member(best)
        program = solver.prepared(loss, HalfSpaces(np.zeros((0, len(loss.c))), np.zeros(0)))
        lower = program.lower.copy()
        lower[len(lower) - (0 if limits is None else len(limits)) :] = 0.0
        found = solver.even(program._replace(lower=lower), RIDGE * size / program.cost_unit)
        return None if found is None else solver.member(solver.flat_point(found))
    except errors.TidewolfError:
        return None


def _pieces(rounds: WeightedRounds, center: Array) -> tuple[Objective | None, float]:
    """The weighted sum as an objective, None if a part has other pieces than affine ones, and the
    size of the slopes of losses; linear losses have no pieces.
    """
    c, pieces, count, size = np.zeros(math.prod(rounds.losses.shape)), [], 0, 0.0
    weighted: list[tuple[Batch | None, Floats]] = [(rounds.losses, rounds.weights)]
    weighted.append((rounds.limits, rounds.price * rounds.weights))
    for batch, weights in weighted:
        parts, is_loss = () if batch is None else parts_of(batch), batch is rounds.losses
        each = np.split(weights, np.cumsum([len(part) for part in parts], dtype=np.int64))
        for part, omega in zip(parts, each, strict=False):
            if is_loss and isinstance(part, LinearTotal):
                c += flattened(part.subgradient(center, arrays.like(omega, center)))
            elif isinstance(part, PiecewiseLinear):
                A, b, of = part.epigraph()
                rows = sparse.rows_times(A, omega[of])
                pieces.append((rows, omega[of] * b, of + count))
                count += len(part)
                size += is_loss * len(part) * float(sparse.largest_of_rows(rows).mean())
            else:
                return None, 0.0
    return with_pieces(c, pieces, count), size + float(np.abs(c).max())


class _BundleMethod(CuttingPlanes):
    """Over the known vertices or the description, its end measured by the model."""

    def __init__(self, solver: BestPoint, rounds: WeightedRounds) -> None:
        K, n = solver.K, int(np.prod(solver.K.shape))
        self.rounds, no = rounds, np.zeros(0)
        super().__init__(
            Task(K, rounds.losses, Unlimited(K.shape), np.zeros((0, n)), no, no.astype(np.int64))
        )
        self.solver, self.described, self.looks, self.gap = solver, True, LEADER_LOOKS, LEADER_GAP

    def _cut(self, x: Floats) -> Minorant:
        (losses, limits, omega, price), at = self.rounds, self.task.unflattened(x)
        values = flattened(losses.values(at))
        slope = flattened(losses.subgradient(at, arrays.like(omega, at)))
        if limits is not None:
            over = np.maximum(flattened(limits.values(at)), 0.0)
            priced = arrays.like(price * omega * (over > 0.0), at)
            values, slope = values + price * over, slope + flattened(limits.subgradient(at, priced))
        value = float(omega @ values)
        return Minorant(slope, value - float(slope @ x), np.abs(slope), abs(value), 1)

    def _proved(self, proposed: Solution, least: float) -> float:
        return least
