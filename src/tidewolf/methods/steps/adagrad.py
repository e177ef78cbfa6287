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

Points y_j of a group, with shares phi_j of one gradient, each with a step of its own:

    sigma_j = 1/(2 eta_j) = max( its last value, sqrt(S_j/2)/(scale D_j) ),
    S_j = sum phi_j^2 |s|^2,      u_j = y_j - eta_j phi_j s

It is AdaGrad on a product with a factor for each j, whose gradient is (phi_j s)_j: for
every z in the product with |y_j - z_j| <= D_j

    sum_t <s_t, sum_j phi_tj (y_tj - z_j)>  <=  sum_t sum_j price_tj.

A plain descent is a group of one with the share 1. On a set that is a product itself eta_j is one
number for each of its factors, and sums over j below are sums over both. Where the step lands past
a broken limit a part of that is given back jointly, for a single point of the group need not keep
any limit: with
P = w grad g^+ and w h at the point x that was played,

    back = min( 1, (-w h - <P, sum_j phi_j u_j - x>)^+ / sum_j eta_j phi_j^2 |P|^2 ),
    y_j  = u_j + (1 - keep) back eta_j phi_j P.

Proof: as for one point, below, in the metric sum_j |.|^2/eta_j, in which the gradient of the limit
is (eta_j phi_j P)_j and has the square sum_j eta_j phi_j^2 |P|^2; there eta is 1. It needs that all
that P pulls at may move: nothing is given back while P acts on a factor that no gradient has moved.

Of one point with the share 1: a step along g = V grad f + P, P = w grad g^+, made at x where the
limit is broken by h, ends at y' = y - eta g. Linearised at x the limit there says
(w h + <P, y' - x>)/w, and if that is negative the penalty's step along P was longer than needed.
With `keep` from 0 to 1

    y'' = y' + (1 - keep) back P,        back = min( eta, (-w h - <P, y' - x>)^+/|P|^2 ):

keep = 1 is the plain step, keep = 0 goes no further than the limit. Nothing is lost in theory: for
every z that keeps the limit

    |y'' - z|^2  <=  |y - z|^2 - 2 eta ( V <grad f, y - z> + w h + <P, y - x> ) + eta^2 |g|^2,

which is all that a bound on regret and violation uses of a step. Proof: the losses alone lead to
u = y' + eta P, and y'' = u - lam P. As w h + <P, z - x> <= 0, <P, u - z> >= w h + <P, u - x> =: m,
so |u - lam P - z|^2 <= |u - z|^2 - 2 lam m + lam^2 |P|^2. That parabola is least at m/|P|^2; lam
lies between there (0 or eta where it is outside) and eta, so eta is no better, and gives the
right-hand side above.

*Along the sum of gradients* (dual averaging, Nesterov 2009): a descent may begin every step at the
center c,

    y_t = c - eta_{t-1} G_{t-1},   G the sum of the gradients fed,   sigma_t = sqrt(S_t/2)/(k D),

D the diameter. The member z* nearest to y minimises <G, z> + sigma |z - c|^2. For every u in K

    sum_t <g_t, z*_t - u>  <=  sigma_T R^2 + sum_t min( |g_t| D, |g_t|^2/(4 sigma_{t-1}) )
                           <=  sqrt(S_T) ( R^2/(sqrt(2) k D) + k D + 3.42 D ).

Proof: the first line is that of follow-the-regularised-leader (McMahan 2017). In rounds with
|g_t|^2 <= S_{t-1}, S_t <= 2 S_{t-1} and the second term is at most k D |g_t|^2/(2 sqrt(S_t)), that
is k D sqrt(S_T) in all. In others S more than doubles, and |g_t| D <= D sqrt(S_t): these add up to
D sqrt(S_T)/(1 - 1/sqrt(2)). With z in place of z* it costs "apart" = sum <g_t, z_t - z*_t> more;
|z - z*|^2 is at most the gap <z - y, z - v>, v = lmo(z - y).

Such a descent, at z, is fed V grad f alone if z satisfies the limit, linearised at x. For
l(v) = V <grad f, v> + max(0, w h + <P, v - x>) is convex, s is a subgradient at x, and what is fed
is one at z, so for every u that is feasible

    V <grad f, x - u> + w h  =  l(x) - l(u)  <=  <s, x - z> + <fed, z - u>.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tidewolf.core import arrays, oracle
from tidewolf.core.types import Array, Floats
from tidewolf.methods.steps.lyapunov import StepGradient
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
    def start(cls, factors: Factors) -> "DescentSums":
        return cls(*[arrays.frozen(np.zeros(len(factors.starts)))] * 3)

    def in_units(self, unit: float) -> "DescentSums":
        scaled = self.squares * unit * unit, self.inverse_steps * unit, self.largest * unit
        return DescentSums(*map(arrays.frozen, scaled))


def squares(d: Array, factors: Factors) -> Floats:
    if len(factors.starts) == 1:
        return np.array([arrays.inner(d, d)])
    return np.asarray(np.add.reduceat(arrays.flat(d) ** 2, factors.starts))


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
    return np.asarray(np.minimum(2.0 * factors.radii, far))


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
    factors = step_factors(K)
    moves = factors.diameters > 0.0
    R, D = factors.radii[moves], factors.diameters[moves]
    far = np.minimum(2.0 * R, D + e / K.radius * R)
    return math.hypot(*(far / D * far / scale + scale * far)) / K.diameter


class Part(NamedTuple):
    y: Array
    share: float  # phi, above 0
    sums: DescentSums
    reach: Floats  # D: no member is farther from y, one for each factor
    pending: float = 0.0  # rounds that are not observed yet, by their shares of it


def descend_together(
    parts: Sequence[Part], grad: StepGradient, scale: float, keep: float, factors: Factors
) -> list[tuple[Array, DescentSums]]:
    """Where each point goes before its ball, and its sums; |g|^2 > 0."""
    P, one = grad.penalty_gradient, len(factors.starts) == 1
    norms2 = np.array([grad.norm2]) if one else squares(grad.g, factors)
    steps = [
        descend(y, grad.g, norms2, sums, reach, factors, scale, share, pending)
        for y, share, sums, reach, pending in parts
    ]
    moved = [(step.y, step.sums) for step in steps]
    if P is None:
        return moved
    pulls = np.where(factors.diameters > 0.0, squares(P, factors), 0.0)
    past, square = -grad.penalty_value, 0.0
    for part, step in zip(parts, steps, strict=True):
        past -= part.share * arrays.inner(P, step.y - grad.x)
        square += part.share**2 * float(step.etas @ pulls)
    held = any(bool(((pulls > 0.0) & (step.etas == 0.0)).any()) for step in steps)
    if past <= 0.0 or square <= 0.0 or held:
        return moved
    back = (1.0 - keep) * min(1.0, past / square)
    return [
        (arrays.plus(step.y, back * part.share * spread(step.etas, factors, P), P), step.sums)
        for part, step in zip(parts, steps, strict=True)
    ]


def step_along_sum(
    own: Part, x: Array, grad: StepGradient, scale: float, center: Array, factors: Factors
) -> tuple[Array, DescentSums]:
    """Where a descent at x leads from the center along its sum of gradients, and its sums."""
    g, P = grad.g, grad.penalty_gradient
    if P is not None and grad.penalty_value + arrays.inner(P, x - grad.x) <= 0.0:
        g = g - P
    norms2, D = squares(g, factors), factors.diameters
    step = descend(center, g, norms2, own.sums, D, factors, scale, pending=own.pending)
    kept = spread(2.0 * step.etas * own.sums.inverse_steps, factors, g)
    return step.y + kept * (own.y - center), step.sums
