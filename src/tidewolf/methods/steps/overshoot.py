"""Giving back a part of what a step goes past a limit.

A step along g = V grad f + P, P = w grad g^+, made at x where the limit is broken by h, ends at
y' = y - eta g.  Linearised at x the limit there says (w h + <P, y' - x>)/w, and where that is
negative the push P was longer than needed. With `kept` from 0 to 1

    y'' = y' + (1 - kept) back P,        back = min( eta, (-w h - <P, y' - x>)^+/|P|^2 ):

kept = 1 is the plain step, kept = 0 goes no further than the limit. Nothing is lost in theory: for
every z that keeps the limit

    |y'' - z|^2  <=  |y - z|^2 - 2 eta ( V <grad f, y - z> + w h + <P, y - x> ) + eta^2 |g|^2,

which is all that a bound on regret and violation uses of a step. Proof: the losses alone lead to
u = y' + eta P, and y'' = u - lam P. As w h + <P, z - x> <= 0, <P, u - z> >= w h + <P, u - x> =: m,
so |u - lam P - z|^2 <= |u - z|^2 - 2 lam m + lam^2 |P|^2. That parabola is least at m/|P|^2; lam
lies between there (0 or eta where it is outside) and eta, so eta is no better, and gives the
right-hand side above.
"""

from __future__ import annotations

from tidewolf.core.arrays import inner
from tidewolf.core.types import Array


def given_back(y: Array, x: Array, push: Array, owed: float, eta: float, kept: float) -> Array:
    """y'' from y' = `y`; `owed` is w h, in the units of the push."""
    past, push2 = -owed - inner(push, y - x), inner(push, push)
    if past <= 0.0 or push2 <= 0.0:
        return y
    return y + ((1.0 - kept) * min(eta, past / push2)) * push
