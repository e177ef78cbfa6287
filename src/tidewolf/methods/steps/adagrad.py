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
sum over factors, and projections keep their promise in each (projection/factored.py), so the prices
add up. With D' = D they are never more than those of one step for all, by Cauchy-Schwarz,

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
from typing import NamedTuple

import numpy as np

from tidewolf.core.arrays import flat, frozen, inner, plus
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Array, Floats, NDArray
from tidewolf.kernels.groups import factor_squares, factor_steps, onto_balls, overshoot
from tidewolf.kernels.groups import give_back as add_steps
from tidewolf.projection.active import factors_of
from tidewolf.sets.base import Factors


class FactorSums(NamedTuple):
    """What the factors of a product remember of their steps, an entry for each."""

    square_sums: Floats
    """S_b"""
    inverse_steps: Floats
    """sigma_b; 0 before the first step"""
    largest: Floats
    """the largest |g_b| so far"""


class DescentSums(NamedTuple):
    """What descent remembers of its steps so far."""

    square_sum: float = 0.0
    """S"""
    inverse_step: float = 0.0
    """sigma = 1/(2 eta); 0 before the first step, and where factors have their own"""
    factors: FactorSums | None = None
    """None: there is one step for all"""
    largest: float = 0.0
    """the largest |g| so far; 0 where factors have their own"""

    @classmethod
    def start(cls, factors: Factors | None) -> DescentSums:
        """Before the first step, on a product of these factors."""
        if factors is None:
            return cls()
        none = frozen(np.zeros(len(factors.starts)))
        return cls(factors=FactorSums(none, none, none))

    def in_units(self, unit: float) -> DescentSums:
        """The same where gradients are `unit` times as long."""
        own = self.factors
        if own is not None and unit != 1.0:
            squares = frozen(own.square_sums * unit * unit)
            steps, largest = own.inverse_steps * unit, own.largest * unit
            own = FactorSums(squares, frozen(steps), frozen(largest))
        return DescentSums(
            self.square_sum * unit * unit,
            self.inverse_step * unit,
            own,
            self.largest * unit,
        )


def descend(
    y: Array,
    g: Array,
    g_norm2: float,
    sums: DescentSums,
    D_y: float,
    scale: float = 1.0,
    share: float = 1.0,
    pending: float = 0,
) -> tuple[Array, DescentSums]:
    """One step from y along -share g, |share g|^2 = g_norm2 > 0: where it leads before the ball,
    and the sums with it.
    """
    S, largest = sums.square_sum + g_norm2, sums.largest
    if pending:
        length = math.sqrt(g_norm2)
        largest = max(largest, length)
        S += 2.0 * pending * length * largest
    elif g_norm2 > largest * largest:
        largest = math.sqrt(g_norm2)
    sigma = max(sums.inverse_step, math.sqrt(0.5 * S) / (scale * D_y))
    return plus(y, -(0.5 * share / sigma), g), DescentSums(S, sigma, largest=largest)


def into_ball(y: Array, center: Array, radius: float) -> Array:
    """The nearest point of the ball."""
    z = y - center
    length = math.sqrt(inner(z, z))
    return y if length <= radius else plus(center, radius / length, z)


def squares(d: Array, factors: Factors) -> Floats:
    """|d_b|^2 of each factor."""
    found = np.empty(len(factors.starts))
    factor_squares(_entries(d), _entries(factors.starts), found)
    return found


def reaches(factors: Factors, x: Array, y: Array) -> Floats:
    """D_b,t = min(2 R_b, D_b + |x_b - y_b|)."""
    far = factors.diameters
    if x is not y:
        far = far + np.sqrt(squares(x - y, factors))
    found: Floats = np.minimum(2.0 * factors.radii, far)
    return found


class FactorStep(NamedTuple):
    """A step of factors: where it leads, the sums with it, and eta of each, 0 where none was
    taken.
    """

    y: Array
    sums: DescentSums
    etas: Floats


def descend_in_factors(
    y: Array,
    g: Array,
    sums: DescentSums,
    D: Floats,
    factors: Factors,
    scale: float = 1.0,
    share: float = 1.0,
    pending: float = 0,
) -> FactorStep:
    """One step from y along -share g in every factor, no member farther than D from y; factors that
    are single points, D_b = 0, have nowhere to go.
    """
    assert sums.factors is not None
    q, target = len(factors.starts), np.empty(y.shape)
    after, etas = np.empty((3, q)), np.empty(q)
    square_sum = factor_steps(
        *(_entries(g), share, _entries(y), _entries(factors.starts), _entries(D)),
        *(float(pending), scale, tuple(map(_entries, sums.factors))),
        *(after, etas, flat(target)),
    )
    own = FactorSums(*map(frozen, after))
    return FactorStep(target, DescentSums(square_sum, 0.0, own), etas)


def past_limit(y: Array, x: Array, P: Array, factors: Factors, etas: Floats) -> Past:
    """What the limits' part P of the gradient says of y, and what steps along it do."""
    along, pulled, held = overshoot(
        *(_entries(P), _entries(y), _entries(x), _entries(factors.starts)),
        *(_entries(factors.diameters), _entries(etas)),
    )
    return Past(along, pulled, held)


class Past(NamedTuple):
    """How far a step went along the limits' part P of its gradient."""

    along: float
    """<P, y - x>"""
    pulled: float
    """sum_b eta_b |P_b|^2"""
    held: bool
    """whether P pulls at a factor that no gradient has moved"""


def give_back(y: Array, P: Array, share: float, factors: Factors, etas: Floats) -> None:
    """y_b + share eta_b P_b in place of y_b."""
    add_steps(flat(y), _entries(P), share, _entries(factors.starts), _entries(etas))


def into_balls(y: Array, center: Array, factors: Factors) -> Array:
    """The nearest point of the product of the factors' balls."""
    nearest, starts = np.empty(y.shape), _entries(factors.starts)
    radii = _entries(factors.radii)
    outside = onto_balls(_entries(y), _entries(center), radii, starts, flat(nearest))
    return nearest if outside else y


def _entries(x: Array) -> NDArray:
    """The entries of an array that is read: kernels are compiled for one kind of array."""
    read: NDArray = np.ascontiguousarray(flat(x))
    return frozen(read.view()) if read.flags.writeable else read


def price_at_most(K: HasLMO, scale: float, e: float) -> float:
    """The most that prices add up to, over sqrt(sum |g|^2/2) and the diameter, where |x_b - y_b| is
    at most e R_b/R in every factor: (sum_b (D_b'^2/(k D_b) + k D_b')^2)^(1/2)/D with
    D_b' = min(2 R_b, D_b + e R_b/R), by Cauchy-Schwarz over the factors.
    """
    factors, R, D = factors_of(K), K.radius, K.diameter
    sizes = [(R, D)]
    if factors is not None:
        sizes = list(zip(factors.radii.tolist(), factors.diameters.tolist(), strict=True))
    return math.hypot(*(_price(*size, e / R, scale) for size in sizes)) / D


def _price(R: float, D: float, apart: float, k: float) -> float:
    far = min(2.0 * R, D + apart * R)
    return far / D * far / k + k * far if D > 0.0 else 0.0
