"""Descent in x and damped ascent in the multiplier, with regret and violation measured as they go.

A block of n rounds at x, its companion y, units R = G_f = G_g = 1, q = sum g_t^+(x), d = sum grad
f_t + lam sum grad g_t^+ at x:

    y_next = Proj_ball( y - eta d ),     lam_next = max(0, lam + nu h),     h = q - n theta lam.

For every x* that keeps all constraints, with T rounds in all, D_1 >= |y_1 - x*| and lam = 0 at
first,

    regret              <=  D_1^2/(2 eta) + sum price,   price = <d, x - y> + eta |d|^2/2 - lam q
    violation^2         <=  2 (theta T + 1/nu) E,             E = D_1^2/(2 eta) + sum energy + D T
                                                              energy = price + lam q + nu h^2/2
                                                                       - n theta lam^2/2.

Proof. (i) Convexity and g_t^+(x*) = 0: a block's regret + lam q <= sum <grad f_t, x - x*> + lam
q <= <d, x - y> + <d, y - x*>, and 2 eta <d, y - x*> <= |y - x*|^2 - |y_next - x*|^2 + eta^2 |d|^2
as projections bring y no farther from x*; sum. The middle is at least -n D + lam q, whatever the
losses are elsewhere. (ii) For every l >= 0, 2 nu h (l - lam) <=
(lam - l)^2 - (lam_next - l)^2 + nu^2 h^2; sum, and use 2 l lam <= l^2 + lam^2:  l sum q -
(theta T + 1/nu) l^2/2 <= sum (lam q + nu h^2/2 - n theta lam^2/2); take the best l, and sum lam q
from (i).
Nothing is assumed of eta, nu, theta or of the slopes: these are the lines before any worst case is
inserted.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from tidewolf.core.arrays import eps_of, inner, namespace
from tidewolf.core.types import Array

HOPELESS = "No point can keep limits that were breached as much as these were."


class Saddle(NamedTuple):
    """A step taken: where y goes before the ball, the multiplier, and what the block adds to the
    two bounds.
    """

    y: Array
    lam: float
    price: float
    energy: float


def saddle_step(
    x: Array,
    y: Array,
    lam: float,
    d: Array,
    q: float,
    n: int,
    eta: float,
    nu: float,
    theta: float,
    R: float = 1.0,
) -> Saddle:
    """One step; R is the length that counts as 1 for points, while d, q and the answer's numbers
    are without units.
    """
    h = q - n * theta * lam
    price = inner(d, x - y) / R + 0.5 * eta * inner(d, d) - lam * q
    energy = price + lam * q + 0.5 * nu * h * h - 0.5 * n * theta * lam * lam
    return Saddle(y - (eta * R) * d, max(0.0, lam + nu * h), price, energy)


def damping(b: int, eta: float, nu: float, distance: float) -> float | None:
    """The least theta with theta/2 >= eta b + nu b theta^2/2 + distance, None where there is
    none.
    """
    least = eta * b + distance
    room = 0.25 - 2.0 * nu * b * least
    return 2.0 * least / (0.5 + math.sqrt(room)) if room >= 0.0 else None


def violation_bound(E: float, rounds: int, nu: float, theta: float) -> float:
    """The bound above; infinite where E is negative, which a point that keeps all constraints rules
    out.
    """
    return math.sqrt(2.0 * (theta * rounds + 1.0 / nu) * E) if E >= 0.0 else math.inf


def kept_possible(violation: float, most: float, like: Array) -> tuple[float, bool]:
    """A block's violation, cut at the most that a point that keeps all constraints allows
    (n G_g D, by convexity), and whether it was.
    """
    return min(violation, most), violation > most * (1.0 + math.sqrt(eps_of(like)))


def moderate(like: Array) -> float:
    """A number whose fourth power the dtype still holds."""
    return math.sqrt(math.sqrt(namespace(like).finfo(like.dtype).max))
