"""One descent over a set: an infeasible iterate y that steps along gradients, and a member x near
it that a projection finds.

    y  <-  ball( y - eta g, softened where it goes past the limit )

On a product (projection/active.py says of which) every factor has its own eta, ball and
active set; where projection is exact the ball is left to it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from tidewolf.core.arrays import frozen
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Array
from tidewolf.methods.projected import ProjectedPoint
from tidewolf.methods.steps.adagrad import DescentSums, descend, into_ball, into_balls, reaches
from tidewolf.methods.steps.group import Part, StepGradient, descend_together
from tidewolf.methods.steps.overshoot import soften_overshoot
from tidewolf.projection.active import factors_in, factors_of
from tidewolf.projection.factored import start_active


class Descent(NamedTuple):
    """Where x and y are, and the sums of the steps so far."""

    point: ProjectedPoint
    sums: DescentSums

    @classmethod
    def start(cls, K: HasLMO, x: Array | None = None) -> Descent:
        """At a member, the center unless told otherwise."""
        return cls(ProjectedPoint.of(start_active(K, x)), DescentSums.start(factors_of(K)))

    def stepped(self, K: HasLMO, grad: StepGradient, scale: float, keep: float) -> Descent:
        """The same with y moved, which a projection is due to bring x near to; a gradient of 0
        moves nothing. Sums are in the units of the gradient.
        """
        sums, target = self.sums, self.point.y
        if grad.norm2 > 0.0:
            take = _one_step if sums.factors is None else _steps_of_factors
            target, sums = take(K, self, grad, scale, keep)
        return Descent(self.point.moved_to(frozen(target)), sums)


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


def _one_step(
    K: HasLMO, own: Descent, grad: StepGradient, scale: float, keep: float
) -> tuple[Array, DescentSums]:
    D = min(2.0 * K.radius, K.diameter + own.point.distance)
    y, sums = descend(own.point.y, grad.g, grad.norm2, own.sums, D, scale, pending=grad.pending)
    if grad.penalty_gradient is not None:
        penalty = grad.penalty_gradient, grad.penalty_value
        y = soften_overshoot(y, grad.x, *penalty, 0.5 / sums.inverse_step, keep)
    return into_ball(y, K.center, K.radius), sums


def _steps_of_factors(
    K: HasLMO, own: Descent, grad: StepGradient, scale: float, keep: float
) -> tuple[Array, DescentSums]:
    factors, point = factors_in(K), own.point
    part = Part(point.y, 1.0, own.sums, reaches(factors, point.x, point.y))
    [(y, sums)] = descend_together([part], grad, scale, keep, factors)
    return y if factors.exact else into_balls(y, K.center, factors), sums
