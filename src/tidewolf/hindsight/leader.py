"""The best fixed point of weighted rounds, violations priced, and the most even of several.

    z  =  argmin_{x in K}  sum_s omega_s ( f_s(x) + price g_s^+(x) )/sum omega,
    ties: the nearest to the center

If losses and constraints are piecewise linear, with few pieces, this is one quadratic program
(`BestPoint.even`): a variable for each maximum, those of constraints at least 0, and a ridge
|x - center|^2 so small that the objective loses at most RIDGE of its size. Else it is a level
bundle method on values and subgradients (cutting_planes.py).

The set is its linear description, or the convex combinations of the vertices that are known. No
oracle call is made.
"""

import math
from typing import NamedTuple

import numpy as np

from tidewolf.core import arrays, errors, piecewise, sparse
from tidewolf.core.batch import Batch, Unlimited
from tidewolf.core.types import Array, Floats
from tidewolf.hindsight import best_point, cutting_planes
from tidewolf.hindsight.task import Minorant, Solution, Task, flattened, parts_of
from tidewolf.sets.highs import HalfSpaces

RIDGE = 1e-4
# Pieces from which on the bundle method is faster.
MANY = 60_000
# Evaluations of the bundle method at most, and the gap at which it ends.
LOOKS, GAP = 40, 1e-5


class WeightedRounds(NamedTuple):
    losses: Batch
    # None: there is no constraint
    limits: Batch | None
    # omega, of sum 1
    weights: Floats
    price: float


def leader(solver: best_point.BestPoint, rounds: WeightedRounds) -> Array | None:
    """The point, a member of the set; None if no solver found one."""
    center, limits = solver.K.center, rounds.limits
    try:
        loss, size = _pieces(rounds, center)
        if loss is None or len(loss.e) > MANY:
            best = _BundleMethod(solver, rounds).minimise(flattened(center)).point
            return None if best is None else solver.member(best)
        program = solver.prepared(loss, HalfSpaces(np.zeros((0, len(loss.c))), np.zeros(0)))
        lower = program.lower.copy()
        lower[len(lower) - (0 if limits is None else len(limits)) :] = 0.0
        found = solver.even(program._replace(lower=lower), RIDGE * size / program.cost_unit)
        return None if found is None else solver.member(solver.flat_point(found))
    except errors.TidewolfError:
        return None


def _pieces(rounds: WeightedRounds, center: Array) -> tuple[best_point.Objective | None, float]:
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
            if is_loss and isinstance(part, piecewise.LinearTotal):
                c += flattened(part.subgradient(center, arrays.like(omega, center)))
            elif isinstance(part, piecewise.PiecewiseLinear):
                A, b, of = part.epigraph()
                rows = sparse.rows_times(A, omega[of])
                pieces.append((rows, omega[of] * b, of + count))
                count += len(part)
                size += is_loss * len(part) * float(sparse.largest_of_rows(rows).mean())
            else:
                return None, 0.0
    return best_point.with_pieces(c, pieces, count), size + float(np.abs(c).max())


class _BundleMethod(cutting_planes.CuttingPlanes):
    """Over the known vertices or the description, its end measured by the model."""

    def __init__(self, solver: best_point.BestPoint, rounds: WeightedRounds) -> None:
        K, n = solver.K, int(np.prod(solver.K.shape))
        self.rounds, no = rounds, np.zeros(0)
        super().__init__(
            Task(K, rounds.losses, Unlimited(K.shape), np.zeros((0, n)), no, no.astype(np.int64))
        )
        self.solver, self.described, self.looks, self.gap = solver, True, LOOKS, GAP

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
