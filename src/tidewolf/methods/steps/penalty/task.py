"""The step of drift-plus-penalty, and what makes an answer to it certain.

    minimise   h(x) = <d, x - y> + delta sum_t g_t^+(x) + alpha/2 |x - y|^2     over
        |x - c| <= R,  x in aff(K)

for a block of constraints g_t, y in that ball and hull. h is alpha-strongly convex, so its
minimiser x* is one point.

Lower bound that trusts no solver. Let <a_i, x> - b_i <= g_{t(i)}(x) for every x, lam_i >= 0 and sum
of lam_i over the i of one round <= delta. Then delta g_t^+(x) >= sum_i lam_i (<a_i, x> - b_i), so
with s = d + sum lam_i a_i within the directions of aff(K)

    h(x) >= <s, x - y> + alpha/2 |x - y|^2 + e,    e = sum_i lam_i (<a_i, y> - b_i),

whose least value over the ball and hull is at  x' = c + min(1, R/|p - c|) (p - c),  p = y - s/alpha
(a ball's nearest point to p). So h(u) >= lower + alpha/2 |u - x'|^2 for every u of the ball and
hull: an answer x with h(x) - lower <= gap is at most sqrt(2 gap/alpha) from x', which is known, and
from x*, which is not.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidewolf.core.batch import Batch
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Floats
from tidewolf.methods.steps.adagrad import into_ball


class PenaltyTask(NamedTuple):
    """One step to solve; `d` is within the directions of aff(K), y in the ball and in aff(K)."""

    K: HasLMO
    constraints: Batch
    y: Floats
    d: Floats
    delta: float
    alpha: float
    center: Floats

    def breach(self, x: Floats) -> float:
        """sum_t g_t^+(x)."""
        return float(np.maximum(self.constraints.values(x), 0.0).sum())

    def value(self, x: Floats, breach: float) -> float:
        """h(x), given sum_t g_t^+(x)."""
        away = x - self.y
        return (
            float(np.vdot(self.d, away))
            + self.delta * breach
            + 0.5 * self.alpha * float(np.vdot(away, away))
        )

    def nearest(self, s: Floats) -> Floats:
        """argmin of <s, x - y> + alpha/2 |x - y|^2 over the ball and hull, for a slope s within the
        directions of aff(K).
        """
        return np.asarray(into_ball(self.y - s / self.alpha, self.center, self.K.radius))

    def lower(self, s: Floats, e: float) -> float:
        """The lower bound of the slope s within the directions of aff(K) and the constant e."""
        away = self.nearest(s) - self.y
        return float(np.vdot(s, away)) + 0.5 * self.alpha * float(np.vdot(away, away)) + e


class PenaltySolution(NamedTuple):
    """A point of the ball and hull, what it costs, and how far from the least h it is at most."""

    x: Floats
    breach: float
    """sum_t g_t^+(x)"""
    gap: float
    """certified: h(u) >= h(x) - gap + alpha/2 |u - x'|^2 for every u of the ball and hull"""
    off: float
    """at least |x - x'|, what rounding may do to x' included"""
    looks: int
    """how often the whole block of constraints was evaluated"""
