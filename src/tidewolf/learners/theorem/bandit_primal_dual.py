"""Primal-dual play from values alone, as published
(Garber & Kretzu 2024, Algorithm 5, Theorem A.1).

    block of b rounds around x, each played at z_t = x + mu u_t, values f_t(z_t) and g_t(z_t) seen:
    y      <-  ball( y - eta sum_t (n/mu) (f_t + lam g_t^+) u_t )                         (primal)
    x, y'  <-  AFP(y from x) on the shrunk set c + (1 - mu/r)(K - c),
               |x - y'|^2 <= 3 eps                                                        (feasible)
    lam    <-  max(0, lam + eta sum_t (g_t^+ - delta eta lam))                            (dual)

    b = T^{1/2},   mu = sqrt(n r) T^{-1/4},   eta = R/(sqrt(n) G) T^{-3/4},
    eps = 61 R^2 T^{-1/2} ln T,   G = max(G_f, G_g, M_f, M_g),
    delta = 24 sqrt(183) G^2 max(n/r, n/sqrt(r), sqrt(n), n/(sqrt(r) R)) T^{1/2} sqrt(ln T);
    M_f, M_g bound |f_t|, |g_t| on K

Errata applied: the dual step damps lam, and eta has its 1/sqrt(n), as in the proof; mu <= r needs
T >= n^2/r^2, else the set has no room and the settings are refused; the ball is around the center,
u on the unit sphere of the directions of aff(K) and n its dimension; b is floor(T^{1/2}) with a
shorter last block, followed by no projection. These settings depend on the units, stand still
unless T is in the hundred thousands, and promise nothing before that: methods/steps/thresholds.py
says from when on. `BanditPrimalDual` cures that.

`guarantee()`, from the theorem's proof, where its condition holds, if some point keeps every
constraint, in expectation over the coins:

    regret    <= A + T mu G_f (1 + R/r),
    violation <= sqrt( 2 (delta eta T + 1/eta) (A + 2 R G_f T) ) + mu G_g T
    A = 2R^2/eta
        + T ( sqrt(3 eps) n (M_g/4 + M_f)/(mu sqrt(b)) + (G_g/4) (sqrt(3 eps) + mu) + mu M_g/(4r)
        + sqrt(3 eps) G_f
        + eta n^2 M_f^2/mu^2 + eta b (G_f^2 + M_g^2) + mu G_f )

(the R in R/r is missing in the paper). The proof says of averages over the sphere what holds of
those over the ball; their difference, mu G/(n + 1), fits into its terms in mu, of which it counts
one too many. A shorter last block fits in too: E <d, x - y> is at most sqrt(3 eps) |E d|, as x - y
is settled before u, so that it needs no share of the first term of A.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from tidewolf.core.errors import InvalidInput, NotAMember
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Array
from tidewolf.learners.theorem.constants import Assumed, PaperConstants
from tidewolf.methods.base import Bound
from tidewolf.methods.exploring import Explored
from tidewolf.methods.steps.adagrad import into_ball
from tidewolf.methods.steps.one_point import combined, room_to_explore
from tidewolf.methods.steps.saddle import violation_bound
from tidewolf.methods.steps.slopes import unit_length
from tidewolf.methods.steps.thresholds import (
    BanditTheoremSteps,
    bandit_condition,
    bandit_condition_at,
    explorable_from,
)
from tidewolf.sets.base import ConvexSet


class BanditStep(NamedTuple):
    """A step taken: y in the ball, and the multiplier."""

    y: Array
    lam: float


@final
@dataclass(frozen=True, eq=False, repr=False)
class BanditPrimalDualConstants(PaperConstants):
    """The constants of Theorem A.1; `BanditPrimalDual.theorem` warns where they do nothing."""

    def steps(self, K: ConvexSet, T: int, assumed: Assumed) -> BanditTheoremSteps:
        """The settings of a stretch of T rounds."""
        return BanditTheoremSteps(T, unit_length(K), _r(K), _n(K), max(assumed))

    def tolerance2(self, K: ConvexSet, T: int) -> float:
        return self.steps(K, T, Assumed(1.0, 1.0)).tol

    def mu(self, K: ConvexSet, T: int) -> float:
        """How far around x it explores."""
        return min(self.steps(K, T, Assumed(1.0, 1.0)).mu, _r(K)) if K.dimension else 0.0

    def step(
        self, K: ConvexSet, T: int, assumed: Assumed, y: Array, lam: float, block: Explored
    ) -> BanditStep:
        """The primal and the dual step."""
        s, breaches = self.steps(K, T, assumed), np.maximum(block.constraints, 0.0)
        d = combined((_n(K) / s.mu) * (block.losses + lam * breaches), block.directions)
        return BanditStep(
            into_ball(y - s.eta * d, K.center, K.radius),
            max(0.0, lam + s.eta * float((breaches - s.delta * s.eta * lam).sum())),
        )

    def require_start(self, K: HasLMO, T: int) -> None:
        assert isinstance(K, ConvexSet)
        if K.dimension > 0 and (least := explorable_from(_r(K), _n(K))) > T:
            raise InvalidInput(
                f"With horizon = {T} the theorem explores beyond the ball of radius {_r(K):.6g} "
                f"inside the set; it needs a horizon of at least n^2/r^2 = {least} there. "
                "BanditPrimalDual(K, horizon) has settings for any horizon.",
                setting="horizon",
            )
        shrunk = room_to_explore(K, self.mu(K, T))
        if self.start is not None and (infeasibility := self._infeasibility(shrunk)) > 0.0:
            raise NotAMember(
                "The starting point is not a member of the set shrunk by 1 - mu/r = "
                f"{shrunk.factor:.6g}, which leaves room to explore: its excess is "
                f"{infeasibility:.3g}.",
                setting="start",
            )

    def concerns(self, K: ConvexSet, T: int, assumed: Assumed) -> tuple[str, ...]:
        if K.dimension == 0:
            return ()
        said = self.frozen_concerns(K, T)
        if not bandit_condition_at(T, K.radius, _r(K), _n(K), *assumed):
            least = bandit_condition(K.radius, _r(K), _n(K), *assumed)
            said.append(
                f"The theorem promises nothing for {T} rounds: its condition holds from a horizon "
                f"of {least} on."
            )
        return tuple(said)

    def guarantee(self, K: ConvexSet, T: int, assumed: Assumed) -> Bound:
        """What is known, in expectation, before the first of T rounds."""
        if K.dimension == 0:
            return Bound(0.0, 0.0)
        R, r, n = K.radius, _r(K), _n(K)
        if not bandit_condition_at(T, R, r, n, *assumed):
            return Bound(None, None, " ".join(self.concerns(K, T, assumed)))
        s, (G_f, G_g, M_f, M_g) = self.steps(K, T, assumed), assumed
        mu, eta, tau = s.mu, s.eta, math.sqrt(s.tol)
        A = 2.0 * R**2 / eta + T * (
            tau * n * (M_g / 4.0 + M_f) / (mu * math.sqrt(s.block))
            + G_g / 4.0 * (tau + mu)
            + mu * M_g / (4.0 * r)
            + tau * G_f
            + eta * (n * M_f / mu) ** 2
            + eta * s.block * (G_f**2 + M_g**2)
            + mu * G_f
        )
        violation = violation_bound(A + 2.0 * R * G_f * T, T, eta, s.delta * eta) + mu * G_g * T
        return Bound(A + T * mu * G_f * (1.0 + R / r), violation)


def _n(K: ConvexSet) -> int:
    """The dimension; a set of one point explores nothing, and any will do."""
    return K.dimension or 1


def _r(K: ConvexSet) -> float:
    return K.inner_radius or 1.0
