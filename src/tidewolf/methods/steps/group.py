"""Descent of a group: points y_j with shares phi_j of one gradient, each with a step of its own.

    sigma_j = 1/(2 eta_j) = max( its last value, sqrt(S_j/2)/(scale D_j) ),
    S_j = sum phi_j^2 |s|^2,      u_j = y_j - eta_j phi_j s

It is AdaGrad (adagrad.py) on a product with a factor for each j, whose gradient is (phi_j s)_j: for
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
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tidewolf.core.arrays import inner, plus
from tidewolf.core.types import Array, Floats
from tidewolf.methods.steps.adagrad import DescentSums, descend, spread, squares
from tidewolf.methods.steps.lyapunov import Surrogate
from tidewolf.sets.base import Factors


class Part(NamedTuple):
    y: Array
    share: float  # phi, above 0
    sums: DescentSums
    reach: Floats  # D: no member is farther from y, one for each factor
    pending: float = 0.0  # rounds that are not observed yet, by their shares of it


class StepGradient(NamedTuple):
    """A round's gradient, and the limits' part of it at the point that was played."""

    g: Array
    norm2: float  # |g|^2
    x: Array
    penalty_gradient: Array | None
    penalty_value: float  # what the limits, linearised where they were met, say at x

    @classmethod
    def of(cls, weighed: Surrogate, x: Array) -> StepGradient:
        """That of a surrogate, for a learner that stands at x."""
        value = weighed.penalty_value - weighed.penalty_offset
        return cls(weighed.g, weighed.norm2, x, weighed.penalty_gradient, value)


def descend_together(
    parts: Sequence[Part], grad: StepGradient, scale: float, keep: float, factors: Factors
) -> list[tuple[Array, DescentSums]]:
    """Where each point goes before its ball, and its sums; |g|^2 > 0."""
    norms2, P = squares(grad.g, factors), grad.penalty_gradient
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
        past -= part.share * inner(P, step.y - grad.x)
        square += part.share**2 * float(step.etas @ pulls)
    held = any(bool(((pulls > 0.0) & (step.etas == 0.0)).any()) for step in steps)
    if past <= 0.0 or square <= 0.0 or held:
        return moved
    back = (1.0 - keep) * min(1.0, past / square)
    return [
        (plus(step.y, back * part.share * spread(step.etas, factors, P), P), step.sums)
        for part, step in zip(parts, steps, strict=True)
    ]
