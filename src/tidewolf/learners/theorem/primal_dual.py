"""Primal-dual play with approximately feasible projections, as published
(Garber & Kretzu 2024, Algorithm 4, Theorem 4.1).

    block of b rounds at x, gradients at x:
    y      <-  ball( y - eta sum_t (grad f_t + lam grad g_t^+) )                          (primal)
    x, y'  <-  AFP(y from x),  |x - y'|^2 <= 3 eps                                        (feasible)
    lam    <-  max(0, lam + eta sum_t (g_t^+ - delta eta lam))                            (dual)

    b = T^{1/2},   eta = T^{-3/4},   delta = 32 (G_g^2 + G_g R) T^{1/2} sqrt(ln T),
    eps = 61 R^2 T^{-1/2} ln T

Errata applied: the ball is around the center and gradients are taken within aff(K); b is
floor(T^{1/2}) with a shorter last block, followed by no projection; the projection tests the
distance first. These settings depend on the units, stand still unless T is in the hundred
thousands, and promise nothing before that: methods/steps/thresholds.py says from when on.
`PrimalDual` cures that.

`guarantee()`, from the theorem's proof, where its condition holds, and if some point keeps every
constraint:

    regret    <= A = 2R^2/eta + (G_f^2 + 4 G_g^2 R^2) eta b T + sqrt(3 eps) (G_f + G_g/4) T
    violation <= sqrt( 2 (delta eta T + 1/eta) (A + 2 R G_f T) )

`bound(record)` is the measured one of methods/steps/saddle.py, which needs no condition; x* is
worse than what was played by at most G_f D T.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

from tidewolf.core.oracle import HasLMO
from tidewolf.learners.theorem.constants import Assumed, PaperConstants
from tidewolf.methods.base import Bound
from tidewolf.methods.steps.saddle import SaddleSteps, violation_bound
from tidewolf.methods.steps.thresholds import TheoremSteps, condition_at, primal_dual_condition


@final
@dataclass(frozen=True, eq=False, repr=False)
class PrimalDualConstants(PaperConstants):
    """The constants of Theorem 4.1; `PrimalDual.theorem` warns where they do nothing."""

    def steps(self, K: HasLMO, T: int, G_g: float) -> SaddleSteps:
        """The settings of a stretch of T rounds, in the units of the caller."""
        s = TheoremSteps(T, K.radius, G_g)
        return SaddleSteps(s.block, s.eta, s.eta, s.delta * s.eta)

    def concerns(self, K: HasLMO, T: int, assumed: Assumed) -> tuple[str, ...]:
        R, G_g = K.radius, assumed.G_g
        if R == 0.0:
            return ()
        said = self.frozen_concerns(K, T)
        if not condition_at(T, R, G_g):
            said.append(
                f"The theorem promises nothing for {T} rounds: its condition holds from a horizon "
                f"of {primal_dual_condition(R, G_g)} on."
            )
        return tuple(said)

    def guarantee(self, K: HasLMO, T: int, assumed: Assumed) -> Bound:
        """What is known before the first of T rounds."""
        R, G_f, G_g = K.radius, assumed.G_f, assumed.G_g
        if not condition_at(T, R, G_g):
            return Bound(None, None, " ".join(self.concerns(K, T, assumed)))
        s = TheoremSteps(T, R, G_g)
        A = (
            2.0 * R**2 / s.eta
            + (G_f**2 + 4.0 * G_g**2 * R**2) * s.eta * s.block * T
            + math.sqrt(s.tol) * (G_f + G_g / 4.0) * T
        )
        return Bound(A, violation_bound(A + 2.0 * R * G_f * T, T, s.eta, s.delta * s.eta))
