"""Drift plus penalty: one step a block, and what it proves of regret and violation on every
interval.

A block of n rounds at x, its infeasible iterate y, units in which the losses have slope 1: d = mean
of grad f_t(y)/G_f within aff(K),

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

import math
from typing import NamedTuple

import numpy as np

from tidewolf.core import arrays, errors, oracle
from tidewolf.core.feedback import require_full_information
from tidewolf.core.types import Array, Floats
from tidewolf.functions.combined import Limits, mapped
from tidewolf.methods.base import Bound, Record, require_part
from tidewolf.methods.steps.penalty import PenaltyTask, solve_penalty
from tidewolf.sets.base import ConvexSet

DRIFT_ACCURACY = 1e-10  # The gap asked for, as a share of alpha R^2.
DRIFT_LOOKS = 60  # How often a block of constraints may be evaluated for it.
Edge = tuple[float, float]  # what a round outside whole blocks costs, in regret and violation


class Tally(NamedTuple):
    """The sums of the two bounds over the blocks so far, and what they take from the last block
    alone.
    """

    closed: int = 0  # the round after which the last block ended
    price: float = 0.0
    growth: float = 0.0
    need: float = 0.0
    climb: float = 0.0
    apart: float = 0.0  # sum of s |x - y|
    spread: float = 0.0  # sum of s^2/alpha
    least_delta: float = math.inf
    looks: int = 0
    delta: float = math.inf  # from here on of the last block alone
    gap: float = 0.0  # certified, in the units of a round's loss
    reach: float = 0.0
    alpha: float = 0.0  # 0 before the first block of an epoch, where y starts afresh
    inverse_step: float = 0.0  # n G_f alpha; 0 likewise


class DriftBlock(NamedTuple):
    """Sums over the rounds of a block, at its point x and its infeasible iterate y, and its
    constraints.
    """

    loss_gradient: Array  # sum of grad f_t(y)
    rounds: int = 0
    difference: float = 0.0  # sum of f_t(x) - f_t(y)
    # s, the sum of |grad g_t(x)| within aff(K) over the rounds with g_t(x) > 0
    breached_slopes: float = 0.0
    limits: Limits = Limits()


def require_whole_functions(feedback: object, K: oracle.HasLMO, most: int, owner: str) -> None:
    """Refuse other feedback than functions, and functions that are not defined outside the set."""
    for batch in require_full_information(feedback, K.shape, most):
        if batch.domain is not None:
            raise errors.NotSupported(
                f"{owner} evaluates functions outside the set, and {type(batch).__name__} is only "
                f"defined on {batch.domain}. Use LyapunovDescent, PrimalDual or SinhaVaze, which "
                "do not."
            )


def drift(
    K: oracle.HasLMO,
    block: DriftBlock,
    d: Array,
    y: Array,
    distance: float,
    reach: float,
    loss_slope: float,
    alpha: float,
    delta: float,
    tally: Tally,
) -> tuple[Array, Tally]:
    """One step from y, |x - y| = distance and |x* - y| <= reach for every member x*: its answer,
    and the sums with it.
    """
    n, R, here = block.rounds, K.radius, K
    if isinstance(K, ConvexSet) and type(K.center) is not np.ndarray:
        here = K.to(np.zeros(1))  # the solver works on NumPy's arrays
    limits, center = mapped(block.limits.whole(), _on_host), _on_host(here.center)
    task = PenaltyTask(here, limits, _on_host(y), _on_host(d), delta, alpha, center)
    with np.errstate(over="ignore", invalid="ignore"):  # refused next
        found = solve_penalty(task, DRIFT_ACCURACY * alpha * R**2, DRIFT_LOOKS)
    if not np.isfinite(found.x).all():
        raise errors.NotFinite(
            "The constraints are so large beside their slopes that no step can be computed; give "
            "them in other units."
        )
    z = arrays.like(found.x, y)
    away, inverse_step = z - y, n * loss_slope * alpha
    moved = arrays.norm(away)
    far = min(reach + moved, 2.0 * R)
    slop = found.gap + far * min(alpha * found.off, math.sqrt(2.0 * alpha * found.gap))
    price = block.difference + n * loss_slope * (
        slop - arrays.inner(d, away) - 0.5 * alpha * moved**2 - delta * found.breach
    )
    return z, Tally(
        closed=tally.closed + n,
        price=tally.price + price,
        growth=tally.growth + 0.5 * max(0.0, inverse_step - tally.inverse_step) * reach**2,
        need=tally.need + R * arrays.norm(d) - arrays.inner(d, z - arrays.like(K.center, z)) + slop,
        climb=tally.climb + 0.5 * max(0.0, alpha - tally.alpha) * reach**2,
        apart=tally.apart + block.breached_slopes * distance,
        spread=tally.spread + block.breached_slopes**2 / alpha,
        least_delta=min(tally.least_delta, delta),
        looks=tally.looks + found.looks,
        delta=delta,
        gap=loss_slope * found.gap,
        reach=reach,
        alpha=alpha,
        inverse_step=inverse_step,
    )


def bound(tally: Tally, rounds: int, edge: Edge) -> Bound:
    """Regret and violation of all `rounds` so far; those of an open block cost an `edge` each."""
    regret, E = tally.price + tally.growth, tally.need + tally.climb
    return _bound(regret, E, tally, Tally(), tally.least_delta, rounds - tally.closed, edge)


def bound_between(record: Record, start: int, stop: int, edge: Edge) -> Bound:
    """Regret and violation of rounds start to stop, from the tallies after each update; rounds
    outside whole blocks cost an `edge` each.
    """
    require_part(record, start, stop)
    rows = np.vstack([Tally(), record.measures])
    closed, first_of = np.unique(rows[:, 0], return_index=True)
    tallies = [Tally(*row) for row in rows[first_of]]
    first = int(np.searchsorted(closed, start))
    after = int(np.searchsorted(closed, stop, side="right")) - 1
    if after <= first:
        return Bound((stop - start) * edge[0], (stop - start) * edge[1])
    before, opening, last = tallies[first], tallies[first + 1], tallies[after]
    weight, hold = (0.5 * f * opening.reach**2 for f in (opening.inverse_step, opening.alpha))
    regret = last.price - before.price + weight + last.growth - opening.growth
    E = last.need - before.need + hold + last.climb - opening.climb
    delta = min(tally.delta for tally in tallies[first + 1 : after + 1])
    cut = stop - start - int(closed[after] - closed[first])
    return _bound(regret, E, last, before, delta, cut, edge)


def _bound(
    regret: float, E: float, last: Tally, before: Tally, delta: float, cut: int, edge: Edge
) -> Bound:
    E = max(E, 0.0)
    apart, spread = last.apart - before.apart, max(0.0, last.spread - before.spread)
    regret += cut * edge[0]
    violation = E / delta + apart + math.sqrt(2.0 * E * spread) + cut * edge[1]
    if not regret + violation < math.inf:
        return Bound(reason="The step of some block could not be certified.")
    return Bound(float(regret), float(violation))


def _on_host(x: Array) -> Floats:
    return np.asarray(arrays.to_numpy(x), dtype=np.float64)
