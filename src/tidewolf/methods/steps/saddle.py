"""Descent in x and damped ascent in the multiplier, with regret and violation measured as they go.

A block of n rounds at x, its infeasible iterate y, units R = G_f = G_g = 1, q = sum g_t^+(x), d =
sum grad f_t + lam sum grad g_t^+ at x:

    y_next = Proj_ball( y - eta d ),     lam_next = max(0, lam + nu h),     h = q - n theta lam.

For every x* that satisfies all constraints, with T rounds in all, D_1 >= |y_1 - x*| and lam = 0 at
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

import math
from typing import NamedTuple

from tidewolf.core import feedback, oracle
from tidewolf.core.arrays import eps_of, inner, namespace, norm
from tidewolf.core.types import Array
from tidewolf.methods.steps.slopes import TangentGradients

HOPELESS = "No point can keep limits that were breached as much as these were."


_ROUNDING = 16.0  # Of a sum of products, in units of eps times their size.
_THETA = 0.5  # The damping where condition (C) has no root.


class SaddleSteps(NamedTuple):
    """Steps and damping of an epoch, in units R = G_f = G_g = 1 or, as printed, in the caller's."""

    eta: float
    nu: float
    theta: float
    root: bool = False  # whether theta is a root of condition (C)


def unit_free_steps(T: int, b: int, distance: float) -> SaddleSteps:
    """For T rounds in blocks of b with |x - y| <= distance; condition (C) is that of
    learners/primal_dual.py.
    """
    eta, nu = 1.0 / math.sqrt(2.0 * b * T), 0.5 / math.sqrt(b * T)
    theta = damping(b, eta, nu, distance)
    return SaddleSteps(eta, nu, theta or _THETA, theta is not None)


class Units(NamedTuple):
    """What counts as 1 in a step: a length, and the slopes of losses and constraints."""

    length: float
    loss: float
    constraint: float


PRINTED = Units(1.0, 1.0, 1.0)  # The units of the caller, for steps as printed.


class SaddleSums(NamedTuple):
    lam: float = 0.0
    priced_slope: float = 0.0  # the G_f that the regret bound has paid for
    regret_bound: float = 0.0
    energy: float = 0.0  # infinite after a violation that no point could have avoided

    def stepped(
        self,
        K: oracle.HasLMO,
        x: Array,
        y: Array,
        gradients: TangentGradients,
        block: feedback.FirstOrder,
        steps: SaddleSteps,
        unit: Units,
        reach: float,
    ) -> "tuple[Array, SaddleSums]":
        """y after a step from the sums of a block, which are in the units of the caller, before it
        is brought back into the ball, and the sums with it; members are at most `reach` from y.
        """
        n, lam, (eta, nu, theta, _) = block.rounds, self.lam, steps
        most = n * gradients.slopes.constraint * K.diameter
        violation, hopeless = kept_possible(block, most, K.center)
        slope = gradients.slopes.loss
        if unit is PRINTED:  # whole, but for what would overflow
            violation, slope = min(block.violation, moderate(K.center)), 1.0

        d = gradients.loss / unit.loss + (lam / unit.constraint) * gradients.constraint
        q = violation / (unit.constraint * unit.length)
        h = q - n * theta * lam
        offset = block.loss_offset / unit.loss + lam * block.constraint_offset / unit.constraint
        price = (inner(d, x - y) + offset) / unit.length + 0.5 * eta * inner(d, d) - lam * q
        energy = price + lam * q + 0.5 * nu * h * h - 0.5 * n * theta * lam * lam
        if n > 1:  # rounds at points of their own may gain more than n D
            energy += max(0.0, -block.loss_offset) / (unit.loss * unit.length)
        growth = (slope - self.priced_slope) * reach * (reach / unit.length) / (2.0 * eta)
        return y - (eta * unit.length) * d, SaddleSums(
            lam=max(0.0, lam + nu * h),
            priced_slope=slope,
            regret_bound=self.regret_bound + growth + slope * unit.length * price,
            energy=math.inf if hopeless else self.energy + energy,
        )


def damping(b: int, eta: float, nu: float, distance: float) -> float | None:
    """The least theta with theta/2 >= eta b + nu b theta^2/2 + distance, None if there is
    none.
    """
    least = eta * b + distance
    room = 0.25 - 2.0 * nu * b * least
    return 2.0 * least / (0.5 + math.sqrt(room)) if room >= 0.0 else None


def violation_bound(E: float, rounds: int, nu: float, theta: float, size: float = 1.0) -> float:
    """The bound above, in units of `size`; infinite where E is, and where E is negative, which a
    point that satisfies all constraints rules out.
    """
    if not 0.0 <= E < math.inf:
        return math.inf
    return math.sqrt(2.0 * (theta * rounds + 1.0 / nu) * E) * size


def kept_possible(block: feedback.FirstOrder, most: float, like: Array) -> tuple[float, bool]:
    """A block's violation, cut at the most that a point that satisfies all constraints allows, and
    whether it was.

    By convexity that is `most` = n G_g D for n rounds at one point, G_g the slope of their mean;
    rounds that were played at points x_t of their own allow for sum <grad g_t, x_t - x> more. What
    rounding makes of <grad g_t, x> is no unavoidable violation.
    """
    if block.rounds > 1 and most > 0.0:
        most += max(0.0, block.constraint_offset)
    eps = eps_of(like)
    possible, violation = most * (1.0 + math.sqrt(eps)), block.violation
    if violation > possible:
        possible += _ROUNDING * eps * norm(block.constraint_gradient) * norm(like)
    return min(violation, most), violation > possible


def moderate(like: Array) -> float:
    """A number whose fourth power the dtype still holds."""
    return math.sqrt(math.sqrt(namespace(like).finfo(like.dtype).max))
