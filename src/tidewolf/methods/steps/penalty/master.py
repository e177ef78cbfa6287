"""The master of a bundle: the step with every constraint replaced by the cuts known so far.

With u = x - y, w = c - y and multipliers lam_i >= 0 that sum to at most delta over the cuts of a
round, the ball |u - w| <= R enters as one number, its multiplier k - alpha >= 0:

    lam(k)     minimises  1/2 |d - (k - alpha) w + A'lam|^2 - k <e, lam>            (multipliers.py)
    k   is such that |s + alpha w| = k R for s = d + A'lam(k),
        or k = alpha and |s + alpha w| <= k R.

|s + alpha w|/k falls as k grows, so there is one such k: secant steps within a bracket, from the k
of the last master. The answer is u = nearest(s) - y, mended where s has lost digits. How far the
master's value there is above the multipliers' lower bound is

    delta sum_t max(0, max_i <a_i, u> + e_i) - sum_i lam_i (<a_i, u> + e_i)
        (+ what mending cost)      >= 0,

its own gap; a small one ends the search.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tidewolf.core.types import Floats
from tidewolf.methods.steps.adagrad import into_ball
from tidewolf.methods.steps.penalty.cuts import Cuts, within_hull
from tidewolf.methods.steps.penalty.multipliers import multipliers
from tidewolf.methods.steps.penalty.task import PenaltyTask

_STEPS = 60
_EPS = float(np.finfo(np.float64).eps)


class MasterSolution(NamedTuple):
    """The cuts with their multipliers, k, and the point."""

    cuts: Cuts
    k: float
    x: Floats


def master(task: PenaltyTask, cuts: Cuts, k: float, tolerance: float) -> MasterSolution:
    """The answer whose own gap is at most `tolerance`, or as small as could be found; the search
    starts at k.
    """
    d, w = task.d.reshape(-1), (task.center - task.y).reshape(-1)
    k, low, high = max(k, task.alpha), 0.5 * task.alpha, math.inf
    best, least, before, idle = MasterSolution(cuts, k, task.y), math.inf, None, cuts.idle
    for steps in range(_STEPS):
        found = multipliers(cuts, d - (k - task.alpha) * w, k, task.delta, task.K.dimension)
        cuts = cuts._replace(lam=found.lam)
        s = d + cuts.lam @ cuts.slopes
        plain = (task.nearest(s.reshape(task.y.shape)) - task.y).reshape(-1)
        u = within_hull(
            task, (plain if found.tight is None else found.tight.mended(cuts, plain, k))[None]
        )
        x = np.asarray(into_ball(task.y + u.reshape(task.y.shape), task.center, task.K.radius))
        u = (x - task.y).reshape(-1)
        gap = task.delta * float(cuts.model(u, len(task.constraints)).sum()) - float(
            cuts.lam @ cuts.values(u)
        )
        gap += float((s + 0.5 * task.alpha * (plain + u)) @ (u - plain))
        if gap < least:
            best, least = (
                MasterSolution(cuts._replace(idle=np.where(found.some, 0, idle + 1)), k, x),
                gap,
            )
        wanted = float(np.linalg.norm(s + task.alpha * w)) / task.K.radius
        if gap <= tolerance or (k == task.alpha and wanted <= k):
            break
        low, high = (k, high) if wanted > k else (low, k)
        step = max(wanted if before is None else _secant(before, (k, wanted - k)), task.alpha)
        if not low < step < high or (steps % 3 == 2 and high < math.inf):
            step = (
                max(wanted, 8.0 * k)
                if high == math.inf
                else max(math.sqrt(low) * math.sqrt(high), task.alpha)
            )
        if abs(step - k) <= 2.0 * _EPS * k:
            break
        before, k = (k, wanted - k), step
    return best


def _secant(a: tuple[float, float], b: tuple[float, float]) -> float:
    """Where the line through two points meets 0; infinity where it does not."""
    return math.inf if a[1] == b[1] else b[0] - b[1] * (b[0] - a[0]) / (b[1] - a[1])
