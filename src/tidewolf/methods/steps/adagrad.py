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


class Descent(NamedTuple):
    """A step taken: where it leads, S, sigma = 1/(2 eta), and what the step adds to the regret
    bound.
    """

    y: Array
    square_sum: float
    stiffness: float
    price: float


def descend(
    y: Array, g: Array, g_norm2: float, square_sum: float, stiffness: float, D_y: float
) -> Descent:
    """One step from y along -g; `stiffness` is the last step's 1/(2 eta), 0 at first. |g|^2 > 0."""
    square_sum += g_norm2
    now = max(stiffness, math.sqrt(0.5 * square_sum) / D_y)
    price = (now - stiffness) * D_y**2 + g_norm2 / (4.0 * now)
    return Descent(y - (0.5 / now) * g, square_sum, now, price)


def into_ball(y: Array, center: Array, radius: float) -> Array:
    """The nearest point of the ball."""
    z = y - center
    length = math.sqrt(inner(z, z))
    return y if length <= radius else center + (radius / length) * z
