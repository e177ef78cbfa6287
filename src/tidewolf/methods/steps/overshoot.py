"""Soften an overshoot: a step that lands past a constraint gives a part of that back.

A step along g = V grad f + P, P = w grad g^+, made at x where the limit is broken by h, ends at
y' = y - eta g.  Linearised at x the limit there says (w h + <P, y' - x>)/w, and where that is
negative the penalty's step along P was longer than needed. With `keep` from 0 to 1

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

from tidewolf.core.arrays import inner_products, plus
from tidewolf.core.types import Array


def soften_overshoot(
    y: Array, x: Array, penalty_gradient: Array, penalty_value: float, eta: float, keep: float
) -> Array:
    """y'' from y' = `y`; the penalty's gradient and value are P and w h, in the same units."""
    along, norm2 = inner_products((penalty_gradient, y - x), (penalty_gradient, penalty_gradient))
    past = -penalty_value - along
    if past <= 0.0 or norm2 <= 0.0:
        return y
    return plus(y, (1.0 - keep) * min(eta, past / norm2), penalty_gradient)
