"""AdaGrad-norm descent in a ball, scale-free, with its regret measured as it goes.

    y_next = Proj_ball( y - eta g ),     eta = D_y/sqrt(2 S),     S = sum of |g|^2 so far, this one included.

For every z with |y_t - z| <= D_t (t = 1..T), y_t anything that projections brought no farther from z,

    sum_t <g_t, y_t - z>  <=  sum_t (1/(2 eta_t) - 1/(2 eta_{t-1}))^+ D_t^2  +  sum_t eta_t |g_t|^2/2,

which is what `price` adds up; with D_t = D it is at most sqrt(2) D sqrt(S).
Proof: |y_{t+1} - z|^2 <= |y_t - z|^2 - 2 eta_t <g_t, y_t - z> + eta_t^2 |g_t|^2; divide by 2 eta_t, sum by parts, and drop the
decreases of 1/(2 eta).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from tidewolf.core.arrays import Array, inner


class Descent(NamedTuple):
    """A step taken: where it leads, S, 1/(2 eta), and what the step adds to the regret bound."""

    y: Array
    square_sum: float
    stiffness: float
    price: float


def descend(y: Array, g: Array, g_norm2: float, square_sum: float, stiffness: float, D_y: float) -> Descent:
    """One step from y along -g; `stiffness` is the last step's 1/(2 eta), 0 at first. |g|^2 > 0."""
    square_sum += g_norm2
    eta = D_y / math.sqrt(2.0 * square_sum)
    now = 0.5 / eta
    price = max(0.0, now - stiffness) * D_y**2 + 0.5 * eta * g_norm2
    return Descent(y - eta * g, square_sum, now, price)


def into_ball(y: Array, center: Array, radius: float) -> Array:
    """The nearest point of the ball."""
    z = y - center
    length = math.sqrt(inner(z, z))
    return y if length <= radius else center + (radius / length) * z
