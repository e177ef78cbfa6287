"""A proximal bundle with one cut a round:  the step of drift-plus-penalty for any block of convex
constraints.

A look at x evaluates the whole block and adds a cut (cuts.py) for every round that is above the
cuts it has. The master (master.py) then minimises

    <d, x - y> + delta sum_t max(0, cuts of t) + alpha/2 |x - y|^2 + rho/2 |x - z|^2

over the ball, z the best point so far: the same step with d - rho (z - y) and alpha + rho in place
of d and alpha. Its answer is looked at next; its multipliers are feasible for the step itself, so
`PenaltyTask.lower` makes a lower bound of them whatever rho is. Cuts whose multiplier was 0 twice
in a row are dropped: that does not lower the master's least value.

rho starts at 0, and stays there on piecewise-linear blocks that the cuts soon describe. With p the
decrease that the cuts predicted and a the one that came, a parabola through both has its minimum
where the stiffness alpha + rho is 2 (1 - a/p) times what it was, kept between a tenth and ten times
(Kiwiel 1990); when p is below the accuracy asked for, only rho is in the way, and it falls. Where
alpha is next to nothing rho stays above 0: what the cuts say of x enters the master times alpha +
rho, beside slopes.

What rounding may have done to h(x) and to the lower bound, a few units in the last place of the
terms they are sums of, is in the gap.
"""

from __future__ import annotations

import math

import numpy as np

from tidewolf.core.arrays import to_numpy
from tidewolf.core.errors import NotConvex
from tidewolf.core.types import Floats
from tidewolf.methods.steps.penalty.cuts import Cuts, no_cuts, slopes_at, within_hull
from tidewolf.methods.steps.penalty.master import master
from tidewolf.methods.steps.penalty.task import PenaltySolution, PenaltyTask

_LOOSE = 0.05
"""A master need not be solved closer than this part of the gap."""
_STIFF = 1e-5
"""The least alpha + rho, as a part of the slopes that add up to s, over the radius."""
_IDLE = 2
"""A cut is dropped after this many masters in a row without a multiplier."""
_LIE = 1e-6
"""A lower bound above a value by more than this share of their terms is no rounding."""
_PATIENCE = 10
"""Looks after which a gap that has not fallen by a tenth is believed to be all that rounding
leaves.
"""
_ULPS = 4.0 * float(np.finfo(np.float64).eps)


def proximal_bundle(task: PenaltyTask, accuracy: float, budget: int) -> PenaltySolution:
    """An answer certified to `accuracy`, or the best that `budget` looks could certify."""
    b, y, d = len(task.constraints), task.y.reshape(-1), task.d.reshape(-1)
    x = task.nearest(task.d)
    values, breach = _look(task, x)
    if breach == 0.0 or task.K.radius == 0.0:
        return PenaltySolution(x, breach, 0.0, _off(task, x, x, no_cuts(y.size)), 1)
    best, h = PenaltySolution(x, breach, math.inf, math.inf, 1), task.value(x, breach)
    cuts, sizes = no_cuts(y.size), np.zeros(b)
    upper, lower, proof, predicted = math.inf, task.lower(task.d, 0.0), (x, cuts), -math.inf
    k = max(
        task.alpha,
        float(np.linalg.norm(d + task.alpha * (task.center - task.y).reshape(-1))) / task.K.radius,
    )
    rho, exact, gap, gaps = 0.0, False, math.inf, [math.inf]
    for looks in range(1, budget + 1):
        u = x.reshape(-1) - y
        above = values - cuts.model(u, b)
        new = np.flatnonzero(above > np.maximum(0.1 * accuracy / (task.delta * b), _ULPS * sizes))
        slopes = slopes_at(task, x, new)
        sizes[new] = np.maximum(sizes[new], _sizes(task, x, values[new], slopes))
        h += _ULPS * (_size(task, u) + task.delta * float(sizes[values > 0.0].sum()))
        if looks > 1:
            came = (upper - h) / (upper - predicted) if upper - predicted > 0.5 * accuracy else 1.0
            rho = (task.alpha + rho) * min(10.0, max(0.1, 2.0 * (1.0 - came))) - task.alpha
        least = _least(task, cuts)
        rho = max(rho, least)
        if h < upper:
            best, upper = PenaltySolution(x, breach, math.inf, math.inf, looks), h
        finished = exact and len(new) == 0 and rho <= least and upper - lower > 0.9 * gap
        gap, exact = upper - lower, len(new) == 0
        if gap < -_LIE * (abs(upper) + abs(lower) + task.delta * float(sizes.sum())):
            raise NotConvex(
                f"Constraints have a value of {upper:.6g} where their subgradients prove at least "
                f"{lower:.6g}: they are not convex, or a subgradient is wrong. "
                "`tidewolf.testing.check_function` shows where."
            )
        gaps.append(gap)
        stalled = len(gaps) > _PATIENCE + 1 and gap > 0.9 * gaps[-1 - _PATIENCE]
        if gap <= accuracy or looks == budget or finished or stalled:
            break
        slopes = within_hull(task, slopes)
        cuts = cuts.subset(cuts.idle < _IDLE).joined(new, slopes, values[new] - slopes @ u)
        around = rho * (best.x - task.y)
        nearby = task._replace(d=task.d - around, alpha=task.alpha + rho)
        cuts, k, x = master(nearby, cuts, k, 0.0 if exact else max(0.5 * accuracy, _LOOSE * gap))
        s = within_hull(task, (d + cuts.lam @ cuts.slopes)[None]).reshape(task.y.shape)
        proved = _lower(task, s, float(cuts.lam @ cuts.at_y), float(cuts.lam @ sizes[cuts.rounds]))
        if proved > lower:
            lower, proof = proved, (task.nearest(s), cuts)
        predicted = task.value(x, float(cuts.model(x.reshape(-1) - y, b).sum()))
        values, breach = _look(task, x)
        h = task.value(x, breach)
    return best._replace(gap=max(0.0, upper - lower), off=_off(task, best.x, *proof), looks=looks)


def _off(task: PenaltyTask, x: Floats, lowest: Floats, cuts: Cuts) -> float:
    """At least the distance from x to where the lower bound of these cuts is least, and what
    rounding may have done to that.
    """
    if task.K.radius == 0.0:
        return 0.0
    size = (
        float(np.linalg.norm(task.center) + np.linalg.norm(task.y))
        + task.K.radius
        + _pull(task, cuts) / task.alpha
    )
    return float(np.linalg.norm(x - lowest)) + _ULPS * size


def _pull(task: PenaltyTask, cuts: Cuts) -> float:
    """How large the slopes are that add up to s."""
    return float(np.linalg.norm(task.d)) + float(cuts.lam @ np.sqrt(np.diag(cuts.gram)))


def _least(task: PenaltyTask, cuts: Cuts) -> float:
    """The rho below which what the cuts say of u would drown in the rounding of s."""
    return max(0.0, _STIFF * _pull(task, cuts) / task.K.radius - task.alpha)


def _look(task: PenaltyTask, x: Floats) -> tuple[Floats, float]:
    """g_t(x) for every round, and sum_t g_t^+(x)."""
    values = np.asarray(to_numpy(task.constraints.values(x)), dtype=np.float64)
    return values, float(np.maximum(values, 0.0).sum())


def _sizes(task: PenaltyTask, x: Floats, values: Floats, slopes: Floats) -> Floats:
    """How large the terms are whose sum a cut at x is."""
    return np.asarray(
        np.abs(values)
        + np.linalg.norm(slopes, axis=1) * float(np.linalg.norm(x) + np.linalg.norm(task.y))
    )


def _size(task: PenaltyTask, u: Floats) -> float:
    """How large the terms of h(y + u) are, but for the constraints'."""
    length = float(np.linalg.norm(u))
    return length * (float(np.linalg.norm(task.d)) + task.alpha * length)


def _lower(task: PenaltyTask, s: Floats, e: float, sizes: float) -> float:
    """`PenaltyTask.lower` less what rounding may have added to it; x' may be off by rounding too,
    which counts where it is held by the ball.
    """
    u = task.nearest(s) - task.y
    held = float(np.linalg.norm(s + task.alpha * u)) * (
        float(np.linalg.norm(task.center)) + task.K.radius
    )
    return task.lower(s, e) - _ULPS * (_size(task, u) + sizes + held)
