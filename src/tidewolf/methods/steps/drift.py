"""Drift plus penalty: one step a block, and what it proves of regret and violation on every
interval.

A block of n rounds at x, its companion y, units in which the losses have slope 1: d = mean of grad
f_t(y)/G_f within aff(K),

    z  ~  argmin  h = <d, . - y> + delta sum_t g_t^+(.) + alpha/2 |. - y|^2
                      over the ball and aff(K),   h(z) - min h <= gap,

and then y_next, which a projection brings no farther from any member than z. Let x* keep every
constraint of the rounds looked at, |x* - y| <= reach, m = |z - y|, q = sum_t g_t^+(z), s = sum of
|grad g_t(x)| over the rounds with g_t(x) > 0; slopes are those within aff(K), so what a constraint
adds across it, <a + k 1, x> <= b + k on a simplex, changes nothing.

(1)  delta q + alpha m^2/2 + alpha/2 (|x* - y_next|^2 - |x* - y|^2)  <=  <d, x* - z> + slop,
slop = gap + (reach + m) alpha off.

Proof. The gap is certified by a quadratic below h whose minimiser w is known
(methods/steps/penalty.py), |z - w| <= off: h(x*) >= h(z) - gap + alpha/2 |x* - w|^2, and
|x* - w|^2 >= |x* - z|^2 - 2 |z - w| |x* - z|, |x* - z| <= reach + m. For z in its place that
quadratic gives alpha off <= sqrt(2 alpha gap); measured, off is rounding where the gap is, and its
root is not. Sum over the whole blocks of an interval:

Regret.     sum f_t(x) - f_t(x*)  <=  sum price + the growths of n G_f alpha/2 times reach^2, the
            first from 0, where price = sum_t (f_t(x) - f_t(y)) + n G_f ( <d, y - z> - alpha m^2/2 -
            delta q + slop ).
Violation.  With E = sum need + the growths of alpha/2 times reach^2, need = R |d| - <d, z - c> +
slop >= <d, x* - z> + slop,
            sum g_t^+(x)  <=  E/delta + sum s |x - y| + sqrt( 2 E sum s^2/alpha ).

Proof. (1) times n G_f, and n <d, y - x*> G_f >= sum f_t(y) - f_t(x*), give the first; summing by
parts, a factor that falls only helps. g_t^+(x) <= g_t^+(z) + |grad g_t(x)| (|x - y| + m) by
convexity; (1) summed bounds sum delta q and sum alpha m^2/2 by E, and Cauchy-Schwarz sum s m.
Rounds of blocks that the interval cuts cost at most the slope at x times the diameter each.
Nothing is assumed of n, alpha, delta or the slopes, and any interval may be looked at: only its own
rounds need a common x*.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tidewolf.core.arrays import inner, like, norm, to_numpy
from tidewolf.core.errors import NotFinite
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Array, Floats
from tidewolf.functions.combined import mapped
from tidewolf.methods.base import Bound
from tidewolf.methods.steps.limits import Limits
from tidewolf.methods.steps.penalty import PenaltyTask, solve_penalty
from tidewolf.sets.base import ConvexSet

DRIFT_ACCURACY = 1e-10
"""The gap asked for, as a share of alpha R^2."""
DRIFT_LOOKS = 60
"""How often a block of constraints may be evaluated for it."""


class Tally(NamedTuple):
    """The sums of the two bounds over the blocks so far, and what they take from the last block
    alone.
    """

    closed: int = 0
    """the round after which the last block ended"""
    price: float = 0.0
    growth: float = 0.0
    weight: float = 0.0
    """of the last block alone: n G_f alpha/2 reach^2, which an interval that begins with it pays
    first
    """
    need: float = 0.0
    climb: float = 0.0
    hold: float = 0.0
    """of the last block alone: alpha/2 reach^2"""
    apart: float = 0.0
    """sum of s |x - y|"""
    spread: float = 0.0
    """sum of s^2/alpha"""
    delta: float = math.inf
    """of the last block alone"""
    least_delta: float = math.inf
    gap: float = 0.0
    """of the last block alone, certified, in the units of a round's loss"""
    looks: int = 0
    """how often blocks of constraints were evaluated"""


class DriftBlock(NamedTuple):
    """Sums over the rounds of a block, at its point x and its infeasible iterate y, and its
    constraints.
    """

    rounds: int
    loss_gradient: Array
    """sum of grad f_t(y)"""
    difference: float
    """sum of f_t(x) - f_t(y)"""
    breached_slopes: float
    """s, the sum of |grad g_t(x)| within aff(K) over the rounds with g_t(x) > 0"""
    limits: Limits


class Last(NamedTuple):
    """The factors of the block before this one; zeros for the first of a stretch, where y starts
    afresh.
    """

    alpha: float = 0.0
    inverse_step: float = 0.0
    """n G_f alpha"""


def drift(
    K: HasLMO,
    block: DriftBlock,
    d: Array,
    y: Array,
    distance: float,
    reach: float,
    loss_slope: float,
    alpha: float,
    delta: float,
    last: Last,
    tally: Tally,
) -> tuple[Array, Tally, Last]:
    """One step from y, |x - y| = distance and |x* - y| <= reach for every member x*: its answer,
    the sums with it, and its factors for the next.
    """
    n, R, here = block.rounds, K.radius, K
    if isinstance(K, ConvexSet) and type(K.center) is not np.ndarray:
        here = K.to(np.zeros(1))  # the solver works on NumPy's arrays
    limits, center = mapped(block.limits.whole(), _on_host), _on_host(here.center)
    task = PenaltyTask(here, limits, _on_host(y), _on_host(d), delta, alpha, center)
    with np.errstate(over="ignore", invalid="ignore"):  # refused next
        found = solve_penalty(task, DRIFT_ACCURACY * alpha * R**2, DRIFT_LOOKS)
    if not np.isfinite(found.x).all():
        raise NotFinite(
            "The constraints are so large beside their slopes that no step can be computed; give "
            "them in other units."
        )
    z = like(found.x, y)

    away = z - y
    moved = norm(away)
    far = min(reach + moved, 2.0 * R)
    slop = found.gap + far * min(alpha * found.off, math.sqrt(2.0 * alpha * found.gap))
    price = block.difference + n * loss_slope * (
        slop - inner(d, away) - 0.5 * alpha * moved**2 - delta * found.breach
    )
    weight, hold = 0.5 * n * loss_slope * alpha * reach**2, 0.5 * alpha * reach**2
    tally = Tally(
        closed=tally.closed + n,
        price=tally.price + price,
        growth=tally.growth + max(0.0, weight - 0.5 * last.inverse_step * reach**2),
        weight=weight,
        need=tally.need + R * norm(d) - inner(d, z - like(K.center, z)) + slop,
        climb=tally.climb + max(0.0, hold - 0.5 * last.alpha * reach**2),
        hold=hold,
        apart=tally.apart + block.breached_slopes * distance,
        spread=tally.spread + block.breached_slopes**2 / alpha,
        delta=delta,
        least_delta=min(tally.least_delta, delta),
        gap=loss_slope * found.gap,
        looks=tally.looks + found.looks,
    )
    return z, tally, Last(alpha, n * loss_slope * alpha)


def bound(tally: Tally, rounds: int, edge: tuple[float, float]) -> Bound:
    """Regret and violation of all `rounds` so far; those of an open block cost an `edge` each."""
    regret, E, cut = tally.price + tally.growth, tally.need + tally.climb, rounds - tally.closed
    return _bound(regret, E, tally, Tally(), tally.least_delta, cut, edge)


def bound_between(rows: Floats, start: int, stop: int, edge: tuple[float, float]) -> Bound:
    """Regret and violation of rounds start to stop, from the tallies after each update; rounds
    outside whole blocks cost an `edge` each.
    """
    closed, first_of = np.unique(np.append(0.0, rows[:, 0]), return_index=True)
    tallies = [Tally(*row) for row in np.vstack([np.array(Tally()), rows])[first_of]]
    first = int(np.searchsorted(closed, start))
    after = int(np.searchsorted(closed, stop, side="right")) - 1
    if after <= first:
        return Bound((stop - start) * edge[0], (stop - start) * edge[1])
    before, opening, last = tallies[first], tallies[first + 1], tallies[after]
    regret = last.price - before.price + opening.weight + last.growth - opening.growth
    E = last.need - before.need + opening.hold + last.climb - opening.climb
    delta = min(tally.delta for tally in tallies[first + 1 : after + 1])
    cut = stop - start - int(closed[after] - closed[first])
    return _bound(regret, E, last, before, delta, cut, edge)


def _bound(
    regret: float,
    E: float,
    last: Tally,
    before: Tally,
    delta: float,
    cut: int,
    edge: tuple[float, float],
) -> Bound:
    E = max(E, 0.0)
    apart, spread = last.apart - before.apart, max(0.0, last.spread - before.spread)
    regret += cut * edge[0]
    violation = E / delta + apart + math.sqrt(2.0 * E * spread) + cut * edge[1]
    if not regret + violation < math.inf:
        return Bound(None, None, "The step of some block could not be certified.")
    return Bound(float(regret), float(violation))


def _on_host(x: Array) -> Floats:
    return np.asarray(to_numpy(x), dtype=np.float64)
