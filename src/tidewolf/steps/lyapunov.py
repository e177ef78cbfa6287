"""Lyapunov weights: one gradient that stands for losses and constraints  (Sinha & Vaze 2024).

With Q the running violation over c G_g D and Phi(q) = exp(s q) - 1, a base learner is fed

    g_t = V grad f_t + w_t grad g_t^+,     w_t = (G_f/G_g) Phi'(Q_t),     V = T^{-p}/caution,   s = theta T^{-p}:

their surrogate in units of the loss. G_f and G_g are given, or the largest slopes seen so far. If the base learner's regret
on the surrogate is at most B, then for any weights w_t >= 0 (convexity, and g_t^+(x*) = 0)

    V regret + sum_t w_t g_t^+(x_t) <= B,      hence   regret <= (B - sum_t w_t g_t^+(x_t))/V,
    violation <= (c G_g D/s) ln( 1 + (B + V G_f D T)/(rho c G_g D) ),         rho = least G_f/G_g a weight was made with.

The last: w_t >= rho Phi'(Q_t) with Q_t counted in the last G_g; sum Phi'(Q_t)(Q_t - Q_{t-1}) >= Phi(Q_T) as Phi is convex; and
regret >= -G_f D T, which needs G_f to hold on all of K: so it does for linear losses, else this bound needs `loss_lipschitz`.

Beforehand, where G_f and G_g are given and B <= c' D M T^p for gradients of at most M: as M <=
G_f (V + Phi'(Q_T)) and T^p Phi' = theta (Phi + 1), with theta' = theta c'/c the first line gives
V regret/(c G_f D) + Phi <= (c'/c) V T^p + theta' (Phi + 1), so for theta' < 1

    regret <= G_f D ( c' T^p + c theta'/V ),     violation <= (c G_g D T^p/theta) ln( (1 + (c'/c) V T^p + V T/c)/(1 - theta') ).

Phi' grows exponentially, so weights, B and the sum live in units of 2^exponent: scale-free base learners never notice.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from tidewolf.core.arrays import Array, inner
from tidewolf.core.feedback import FirstOrder
from tidewolf.core.learner import Bound, Record
from tidewolf.core.oracle import HasLMO
from tidewolf.steps.saddle import HOPELESS
from tidewolf.steps.slopes import within

DEFAULT_CAUTION = 10.0
"""The default of the one knob: larger values break limits less and cost more."""
FIRST_HORIZON = 256
"""What an unknown horizon starts from before it doubles."""

THETA = 0.5
_STRIDE = 256
_LN2 = math.log(2.0)


class Ledger(NamedTuple):
    """What the weights remember, since the last restart but for the slopes and what is settled."""

    horizon: int
    began: int
    violation: float
    loss_slope: float
    constraint_slope: float
    least_ratio: float
    exponent: int
    paid: float
    """sum_t w_t g_t^+(x_t), in units of 2^exponent"""
    settled_regret: float
    settled_violation: float


class Weighed(NamedTuple):
    """A block's surrogate gradient within aff(K), in units of 2^exponent of the new ledger."""

    g: Array
    norm2: float
    ledger: Ledger
    unit: float
    """old units over new: what earlier sums of gradients are to be multiplied by"""
    push: Array | None
    """the constraints' part of g, w sum grad g_t^+; None where no limit was broken"""
    owed: float
    """w sum g_t^+, in the same units"""


@dataclass(frozen=True)
class LyapunovWeights:
    """The settings; `caution` is the knob every learner shares."""

    K: HasLMO
    caution: float
    loss_lipschitz: float | None = None
    constraint_lipschitz: float | None = None
    c: float = 2.0
    p: float = 0.5
    """the base learner's regret is about c D M T^p for gradients of at most M"""

    def start(self, horizon: int | None) -> Ledger:
        return Ledger(
            horizon=horizon or FIRST_HORIZON,
            began=0,
            violation=0.0,
            loss_slope=self.loss_lipschitz or 0.0,
            constraint_slope=self.constraint_lipschitz or 0.0,
            least_ratio=math.inf,
            exponent=0,
            paid=0.0,
            settled_regret=0.0,
            settled_violation=0.0,
        )

    def restarted(self, ledger: Ledger, B: float, t: int) -> Ledger:
        """A clean slate with twice the horizon; the slopes stay known, and what the last stretch may have cost is settled."""
        regret, violation = self._stretch_bound(ledger, B, t)
        return self.start(2 * ledger.horizon)._replace(
            began=t,
            loss_slope=ledger.loss_slope,
            constraint_slope=ledger.constraint_slope,
            settled_regret=ledger.settled_regret + regret,
            settled_violation=ledger.settled_violation + violation,
        )

    def weigh(self, ledger: Ledger, block: FirstOrder) -> Weighed:
        """The surrogate gradient of a block of rounds, from its sums."""
        shrink = ledger.horizon**-self.p
        V, s = shrink / self.caution, THETA * shrink
        violation, exponent, least_ratio = ledger.violation + block.violation, ledger.exponent, ledger.least_ratio
        grad_f, slope = within(self.K, "loss", block.loss_gradient, block.rounds, self.loss_lipschitz)
        G_f = max(ledger.loss_slope, slope)
        if block.violation <= 0.0:
            g, G_g, push, paid = math.ldexp(V, -exponent) * grad_f, ledger.constraint_slope, None, 0.0
        else:
            grad_g, slope = within(self.K, "constraint", block.constraint_gradient, block.rounds, self.constraint_lipschitz)
            G_g = max(ledger.constraint_slope, slope)
            if G_g > 0.0:
                ratio = G_f / G_g if G_f > 0.0 else 1.0
                least_ratio = min(least_ratio, ratio)
                log2 = s * violation / (self.c * G_g * self.K.diameter) / _LN2
                exponent += _STRIDE * max(0, int((log2 - exponent) // _STRIDE))
                w = s * ratio * 2.0 ** (log2 - exponent)
            else:
                w = 0.0
            push, paid = w * grad_g, w * block.violation
            g = math.ldexp(V, -exponent) * grad_f + push
        unit = math.ldexp(1.0, ledger.exponent - exponent)
        weighed = Ledger(
            ledger.horizon,
            ledger.began,
            violation,
            G_f,
            G_g,
            least_ratio,
            exponent,
            ledger.paid * unit + paid,
            ledger.settled_regret,
            ledger.settled_violation,
        )
        return Weighed(g, inner(g, g), weighed, unit, push, paid)

    def require(self, seen: FirstOrder) -> None:
        """Refuse at once, while their block is still open, gradients that `weigh` would refuse."""
        within(self.K, "loss", seen.loss_gradient, seen.rounds, self.loss_lipschitz)
        within(self.K, "constraint", seen.constraint_gradient, seen.rounds, self.constraint_lipschitz)

    def bound(self, ledger: Ledger, B: float, record: Record) -> Bound:
        """What holds for the whole run, given the base learner's regret bound B on the surrogate, in units of 2^exponent."""
        regret, violation = self._stretch_bound(ledger, B, record.final_state.t)
        regret, violation = regret + ledger.settled_regret, violation + ledger.settled_violation
        if self.loss_lipschitz is None and not record.linear_losses:
            return Bound(_known(regret), None, "A bound on the violation needs loss_lipschitz, a slope that no loss exceeds on the set.")
        reason = "" if math.isfinite(regret + violation) else HOPELESS
        return Bound(_known(regret), _known(violation), reason)

    def promised(self, horizon: int | None, c_base: float) -> Bound:
        """What is known before the first of `horizon` rounds, where the base learner's regret is at most c_base D M T^p."""
        if horizon is None or self.loss_lipschitz is None or self.constraint_lipschitz is None:
            return Bound(None, None, "A promise needs horizon, loss_lipschitz and constraint_lipschitz; without them bounds are measured.")
        grown, V, share = horizon**self.p, horizon**-self.p / self.caution, c_base / self.c
        theta = THETA * share
        if theta >= 1.0:
            return Bound(None, None, "The distance that may be left between x and y is too large for a promise: bounds are measured.")
        log = math.log((1.0 + share * V * grown + V * horizon / self.c) / (1.0 - theta))
        regret = self.loss_lipschitz * self.K.diameter * (c_base * grown + self.c * theta / V)
        return Bound(regret, self.c * self.constraint_lipschitz * self.K.diameter * grown / THETA * log)

    def _stretch_bound(self, ledger: Ledger, B: float, t: int) -> tuple[float, float]:
        """Regret and violation since the last restart are at most this; infinite where nothing is promised."""
        V, s, D = ledger.horizon**-self.p / self.caution, THETA * ledger.horizon**-self.p, self.K.diameter
        scaled_V = math.ldexp(V, -ledger.exponent)
        regret = (B - ledger.paid) / scaled_V if scaled_V > 0.0 else math.inf
        if ledger.violation == 0.0:
            return regret, 0.0
        if not math.isfinite(ledger.least_ratio):
            return regret, math.inf
        unit = self.c * ledger.constraint_slope * D
        most = B + scaled_V * ledger.loss_slope * D * (t - ledger.began)
        if most <= 0.0:  # where some point keeps every limit it is at least what was paid
            return regret, math.inf
        log = math.log(most / (ledger.least_ratio * unit)) + ledger.exponent * _LN2
        return regret, unit / s * (math.log1p(math.exp(log)) if log < 500.0 else log)


def _known(number: float) -> float | None:
    return number if math.isfinite(number) else None
