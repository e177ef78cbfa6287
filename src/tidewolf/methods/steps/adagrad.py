"""AdaGrad-norm descent in a ball (after Duchi, Hazan & Singer 2011), scale-free.

    y_next = Proj_ball( y - eta_t g_t ),
    sigma_t = 1/(2 eta_t) = max( sigma_{t-1}, sqrt(S_t/2)/(k D_t) ),  S_t = |g_1|^2 + ... + |g_t|^2.

k is the step's scale, 1 by default. The step never grows. For every z with
|y_t - z| <= D_t (t = 1..T), y_t anything that projections brought no farther from z,

    sum_t <g_t, y_t - z>  <=  sum_t price_t,
    price_t = (sigma_t - sigma_{t-1}) D_t^2 + |g_t|^2/(4 sigma_t),

and for D <= D_t <= D' the prices add up to at most sqrt(S_T/2) (D'^2/(k D) + k D'); with D' = D and
k = 1 that is sqrt(2) D sqrt(S_T).
Proof: |y_{t+1} - z|^2 <= |y_t - z|^2 - 2 eta_t <g_t, y_t - z> + eta_t^2 |g_t|^2; times sigma_t, sum
by parts. sigma_T <= sqrt(S_T/2)/(k D) and sigma_t >= sqrt(S_t/2)/(k D'), and sum |g_t|^2/sqrt(S_t)
<= 2 sqrt(S_T). Were sigma allowed to fall, every return would be paid again.

On a product K_1 x ... x K_q every factor has sums, a step and a ball of its own: <g, y - z> is the
sum over factors, and projections keep their guarantee in each (projection/active.py), so the
prices add up. With D' = D they are never more than those of one step for all, by Cauchy-Schwarz,

    sum_b sqrt(S_b) D_b  <=  sqrt(sum_b S_b) sqrt(sum_b D_b^2)  =  sqrt(S) D,

and far less where factors differ in size, or gradients in a few of them. A factor whose gradients
were all 0 does not move and costs nothing.

If n_t rounds were played and are not observed yet (methods/late.py), S_t grows by
|g_t|^2 + 2 |g_t| n_t M_t, M_t the largest |g| so far: later gradients are then of points that this
step did not know of. Prices hold for any sigma that does not fall. For a cell of a context n_t is
the sum of their shares in it: what waits of other cells does not pull at this one.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tidewolf.core import arrays, oracle
from tidewolf.core.types import Array, Floats
from tidewolf.projection.active import factors_of
from tidewolf.sets.base import Factors


def step_factors(K: oracle.HasLMO) -> Factors:
    """What has a step of its own: the factors of a product, or the set as one."""
    whole = np.array([0]), np.array([K.radius]), np.array([K.diameter])
    return factors_of(K) or Factors(*whole, exact=False)


class DescentSums(NamedTuple):
    """What descent remembers of its steps so far, a number for each factor."""

    squares: Floats  # S
    inverse_steps: Floats  # sigma = 1/(2 eta); 0 before the first step
    largest: Floats  # the largest |g| so far

    @classmethod
    def start(cls, factors: Factors) -> DescentSums:
        none = arrays.frozen(np.zeros(len(factors.starts)))
        return cls(none, none, none)

    def in_units(self, unit: float) -> DescentSums:
        if unit == 1.0:
            return self
        scaled = self.squares * unit * unit, self.inverse_steps * unit, self.largest * unit
        return DescentSums(*map(arrays.frozen, scaled))


def squares(d: Array, factors: Factors) -> Floats:
    if len(factors.starts) == 1:
        return np.array([arrays.inner(d, d)])
    found: Floats = np.add.reduceat(arrays.flat(d) ** 2, factors.starts)
    return found


def spread(numbers: Floats, factors: Factors, d: Array) -> Any:
    """The number of each factor at all of its entries, as d has them; of one factor the number."""
    if len(factors.starts) == 1:
        return float(numbers[0])
    return np.repeat(numbers, np.diff(factors.starts, append=d.size)).reshape(d.shape)


class Step(NamedTuple):
    """A step: where it leads before the ball, the sums with it, and eta of each factor, 0 where
    none was taken.
    """

    y: Array
    sums: DescentSums
    etas: Floats


def descend(
    y: Array,
    g: Array,
    norms2: Floats,
    sums: DescentSums,
    D: Floats,
    factors: Factors,
    scale: float = 1.0,
    share: float = 1.0,
    pending: float = 0.0,
) -> Step:
    """One step from y along -share g in every factor, |g_b|^2 = norms2_b, no member farther than D
    from y; factors that are single points, D_b = 0, have nowhere to go.
    """
    own2 = share * share * norms2
    lengths = np.sqrt(own2)
    largest = np.maximum(sums.largest, lengths)
    S = sums.squares + own2 + 2.0 * pending * lengths * largest
    moves = (S > 0.0) & (D > 0.0)
    needed = np.where(moves, np.sqrt(0.5 * S) / np.where(moves, scale * D, 1.0), 0.0)
    sigma = np.maximum(sums.inverse_steps, needed)
    etas = np.where(moves, 0.5 / np.where(moves, sigma, 1.0), 0.0)
    return Step(
        arrays.plus(y, -share * spread(etas, factors, g), g),
        DescentSums(*map(arrays.frozen, (S, sigma, largest))),
        etas,
    )


def reaches(factors: Factors, x: Array, y: Array, distance: float | None = None) -> Floats:
    """D_b,t = min(2 R_b, D_b + |x_b - y_b|); the distance, where it is known, is that of all."""
    far = factors.diameters
    if len(far) == 1 and distance is not None:
        far = far + distance
    elif x is not y:
        far = far + np.sqrt(squares(x - y, factors))
    found: Floats = np.minimum(2.0 * factors.radii, far)
    return found


def into_ball(y: Array, center: Array, radius: float) -> Array:
    z = y - center
    length = math.sqrt(arrays.inner(z, z))
    return y if length <= radius else arrays.plus(center, radius / length, z)


def into_balls(y: Array, center: Array, factors: Factors) -> Array:
    if len(factors.starts) == 1:
        return into_ball(y, center, float(factors.radii[0]))
    z = y - center
    lengths = np.sqrt(squares(z, factors))
    outside = lengths > factors.radii
    if not outside.any():
        return y
    shares = np.where(outside, factors.radii / np.where(outside, lengths, 1.0), 1.0)
    inside = np.repeat(~outside, np.diff(factors.starts, append=z.size)).reshape(z.shape)
    return np.where(inside, y, center + spread(shares, factors, z) * z)


def price_at_most(K: oracle.HasLMO, scale: float, e: float) -> float:
    """The most that prices add up to, over sqrt(sum |g|^2/2) and the diameter, where |x_b - y_b| is
    at most e R_b/R in every factor: (sum_b (D_b'^2/(k D_b) + k D_b')^2)^(1/2)/D with
    D_b' = min(2 R_b, D_b + e R_b/R), by Cauchy-Schwarz over the factors.
    """
    factors, R, D = step_factors(K), K.radius, K.diameter
    sizes = zip(factors.radii.tolist(), factors.diameters.tolist(), strict=True)
    return math.hypot(*(_price(*size, e / R, scale) for size in sizes)) / D


def _price(R: float, D: float, apart: float, k: float) -> float:
    far = min(2.0 * R, D + apart * R)
    return far / D * far / k + k * far if D > 0.0 else 0.0
