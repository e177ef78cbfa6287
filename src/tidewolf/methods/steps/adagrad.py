"""AdaGrad-norm descent in a ball (after Duchi, Hazan & Singer 2011), scale-free, with its regret
measured as it goes.

    y_next = Proj_ball( y - eta_t g_t ),
    sigma_t = 1/(2 eta_t) = max( sigma_{t-1}, sqrt(S_t/2)/D_t ),   S_t = |g_1|^2 + ... + |g_t|^2.

The step never grows. For every z with |y_t - z| <= D_t (t = 1..T), y_t anything that projections
brought no farther from z,

    sum_t <g_t, y_t - z>  <=  sum_t price_t,
    price_t = (sigma_t - sigma_{t-1}) D_t^2 + |g_t|^2/(4 sigma_t),

and for D <= D_t <= D' the prices add up to at most sqrt(S_T/2) (D'^2/D + D'); with D' = D that is
sqrt(2) D sqrt(S_T).
Proof: |y_{t+1} - z|^2 <= |y_t - z|^2 - 2 eta_t <g_t, y_t - z> + eta_t^2 |g_t|^2; times sigma_t, sum
by parts. sigma_T <= sqrt(S_T/2)/D and sigma_t >= sqrt(S_t/2)/D', and sum |g_t|^2/sqrt(S_t) <= 2
sqrt(S_T). Were sigma allowed to fall, every return would be paid again.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from tidewolf.core.arrays import inner
from tidewolf.core.types import Array


class DescentSums(NamedTuple):
    """What descent remembers of its steps so far."""

    square_sum: float = 0.0
    """S"""
    inverse_step: float = 0.0
    """sigma = 1/(2 eta); 0 before the first step"""
    regret_bound: float = 0.0
    """sum of the prices"""

    def in_units(self, unit: float) -> DescentSums:
        """The same where gradients are `unit` times as long."""
        return DescentSums(
            self.square_sum * unit * unit, self.inverse_step * unit, self.regret_bound * unit
        )


def descend(
    y: Array, g: Array, g_norm2: float, sums: DescentSums, D_y: float
) -> tuple[Array, DescentSums]:
    """One step from y along -g, |g|^2 > 0: where it leads before the ball, and the sums with it."""
    S = sums.square_sum + g_norm2
    sigma = max(sums.inverse_step, math.sqrt(0.5 * S) / D_y)
    price = (sigma - sums.inverse_step) * D_y**2 + g_norm2 / (4.0 * sigma)
    return y - (0.5 / sigma) * g, DescentSums(S, sigma, sums.regret_bound + price)


def into_ball(y: Array, center: Array, radius: float) -> Array:
    """The nearest point of the ball."""
    z = y - center
    length = math.sqrt(inner(z, z))
    return y if length <= radius else center + (radius / length) * z
