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

Proof: overshoot.py in the metric sum_j |.|^2/eta_j, in which the gradient of the limit is
(eta_j phi_j P)_j and has the square sum_j eta_j phi_j^2 |P|^2; there eta is 1. It needs that all
that P pulls at may move: nothing is given back while P acts on a factor that no gradient has moved.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tidewolf.core.arrays import inner
from tidewolf.core.types import Array, Floats
from tidewolf.methods.steps.adagrad import (
    DescentSums,
    Past,
    descend,
    descend_in_factors,
    give_back,
    past_limit,
)
from tidewolf.methods.steps.lyapunov import Surrogate
from tidewolf.sets.base import Factors


class Part(NamedTuple):
    """One point of a group before a step."""

    y: Array
    share: float
    """phi, above 0"""
    sums: DescentSums
    reach: float | Floats
    """D: no member is farther from y; one for each factor, where there are factors"""
    pending: float | None = None
    """rounds that are not observed yet, by their shares of it; None: as many as the push says"""


class StepGradient(NamedTuple):
    """A round's gradient, and the limits' part of it at the point that was played."""

    g: Array
    norm2: float
    """|g|^2"""
    x: Array
    penalty_gradient: Array | None
    penalty_value: float
    """what the limits, linearised where they were met, say at x"""
    pending: int = 0
    """rounds that were played and are not observed yet"""

    @classmethod
    def of(cls, weighed: Surrogate, x: Array, pending: int = 0) -> StepGradient:
        """That of a surrogate, for a learner that stands at x."""
        value = weighed.penalty_value - weighed.penalty_offset
        P = weighed.penalty_gradient
        return cls(weighed.g, weighed.norm2, x, P, value, pending)


NO_PAST = Past(0.0, 0.0, held=False)
"""Of a step that no limit pulled at."""


def descend_together(
    parts: Sequence[Part],
    grad: StepGradient,
    scale: float,
    keep: float,
    factors: Factors | None = None,
) -> list[tuple[Array, DescentSums]]:
    """Where each point goes before its ball, and its sums; |g|^2 > 0."""
    P, past, square, held = grad.penalty_gradient, -grad.penalty_value, 0.0, False
    moved: list[tuple[Array, DescentSums]] = []
    etas: list[Any] = []
    P2 = inner(P, P) if P is not None and factors is None else 0.0
    for y, share, sums, reach, own in parts:
        pending = grad.pending if own is None else own
        if factors is None:
            assert not isinstance(reach, np.ndarray)
            norm2 = share * share * grad.norm2
            u, sums = descend(y, grad.g, norm2, sums, reach, scale, share, pending)
            eta: Any = 0.5 / sums.inverse_step
            found = Past(inner(P, u - grad.x), eta * P2, held=False) if P2 > 0.0 else NO_PAST
        else:
            assert isinstance(reach, np.ndarray)
            u, sums, eta = descend_in_factors(
                y, grad.g, sums, reach, factors, scale, share, pending
            )
            found = NO_PAST if P is None else past_limit(u, grad.x, P, factors, eta)
        moved.append((u, sums))
        etas.append(eta)
        past -= share * found.along
        square += share**2 * found.pulled
        held = held or found.held
    if P is None or past <= 0.0 or square <= 0.0 or held:
        return moved
    back = (1.0 - keep) * min(1.0, past / square)
    softened: list[tuple[Array, DescentSums]] = []
    for part, eta, (u, sums) in zip(parts, etas, moved, strict=True):
        if factors is None:
            softened.append((u + back * part.share * eta * P, sums))
        else:
            give_back(u, P, back * part.share, factors, eta)
            softened.append((u, sums))
    return softened
