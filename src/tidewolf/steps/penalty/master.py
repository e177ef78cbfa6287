"""The master of a bundle: the step with every constraint replaced by the cuts known so far.

With u = x - y, w = c - y and multipliers lam_i >= 0 that sum to at most delta over the cuts of a round, the ball |u - w| <= R enters as one
number, its multiplier k - alpha >= 0:

    lam(k)     minimises  1/2 |d - (k - alpha) w + A'lam|^2 - k <e, lam>                                    (multipliers.py)
    k          is such that |s + alpha w| = k R for s = d + A'lam(k), or k = alpha and |s + alpha w| <= k R.

|s + alpha w|/k falls as k grows, so there is one such k: secant steps within a bracket, from the k of the last master. At
u = nearest(s) - y the master's own gap is  delta sum_t max(0, max_i <a_i, u> + e_i) - sum_i lam_i (<a_i, u> + e_i) >= 0; a small one ends
the search.
"""

from __future__ import annotations

import math

import numpy as np

from tidewolf.steps.penalty.cuts import Cuts
from tidewolf.steps.penalty.multipliers import multipliers
from tidewolf.steps.penalty.task import Task

_STEPS = 60
_EPS = float(np.finfo(np.float64).eps)


def master(task: Task, cuts: Cuts, k: float, tolerance: float) -> tuple[Cuts, float]:
    """The cuts with multipliers whose own gap is at most `tolerance`, or as small as could be found, and k; the search starts at k."""
    d, w = task.d.reshape(-1), (task.center - task.y).reshape(-1)
    k, low, high = max(k, task.alpha), task.alpha, math.inf
    best, best_gap, before, idle = (cuts, k), math.inf, None, cuts.idle
    for steps in range(_STEPS):
        lam, some = multipliers(cuts, d - (k - task.alpha) * w, k, task.delta, task.K.dimension)
        cuts = cuts._replace(lam=lam)
        s = d + cuts.lam @ cuts.slopes
        u = (task.nearest(s.reshape(task.y.shape)) - task.y).reshape(-1)
        gap = task.delta * float(cuts.model(u, len(task.constraints)).sum()) - float(cuts.lam @ cuts.values(u))
        if gap < best_gap:
            best, best_gap = (cuts._replace(idle=np.where(some, 0, idle + 1)), k), gap
        wanted = float(np.linalg.norm(s + task.alpha * w)) / task.K.radius
        if gap <= tolerance or (k == task.alpha and wanted <= k):
            break
        low, high = (k, high) if wanted > k else (low, k)
        step = wanted if before is None else _secant(before, (k, wanted - k))
        if not low < step < high or (steps % 3 == 2 and high < math.inf):
            step = max(wanted, 8.0 * k) if high == math.inf else math.sqrt(low) * math.sqrt(high)
        if high < math.inf and wanted <= task.alpha == low and before is None:
            step = task.alpha
        if abs(step - k) <= 2.0 * _EPS * k:
            break
        before, k = (k, wanted - k), step
    return best


def _secant(a: tuple[float, float], b: tuple[float, float]) -> float:
    """Where the line through two points meets 0; infinity where it does not."""
    return math.inf if a[1] == b[1] else b[0] - b[1] * (b[0] - a[0]) / (b[1] - a[1])
