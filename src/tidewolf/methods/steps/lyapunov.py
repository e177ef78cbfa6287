"""Lyapunov weights: one gradient that stands for losses and constraints
(Sinha & Vaze 2024), at any time.

After t rounds with violation Q_t in all, q_t = Q_t/(c G_g D), a base learner is fed

    s_t = V grad f_t + w_t grad g_t^+,   V = 1/caution,   w_t = theta (G_f/G_g) exp( e_t q_t ),
    e_t = theta max(t, t_0)^{-p}:

their surrogate in units of the loss, t_0 the horizon where one is given, else 16. Up to a given
horizon this is the published weight times a constant, which a scale-free base learner does not
feel; past it, or without one, nothing restarts (see also Sarkar & Sinha 2025, arXiv 2510.22579).
G_f and G_g are given, or the largest slopes seen so far; G_f/G_g is read as 1 while no loss has had
a slope.

With paid = sum_t w_t g_t^+(x_t), the certificate (methods/certificate.py) bounds the regret by (R),
whatever the weights are, and paid by most, the right side of (P), if some point keeps every limit.
Then

    violation  <=  (c G_g D/e_T) ln( 1 + e_T most/(rho theta c G_g D) ),
    rho the least G_f/G_g a weight was made with:

e_t >= e_T, so w_t >= rho theta exp(e_T q_t) with q_t counted in the last G_g, and sum
exp(e_T q_t)(q_t - q_{t-1}) >= (exp(e_T q_T) - 1)/e_T, as the exponential increases and q_t is the
right end. No slope beyond those seen is needed. Where paid exceeds most, no point keeps every
limit: that is then proved, and there is no bound on the violation. Neither is there after a breach
of more than G_g D in one round, which by convexity no point could have avoided; weights count it as
G_g D, so that one absurd number does not silence the losses for good.

Beforehand, where G_f, G_g and the horizon T are given and the base learner's regret on the
surrogate is at most B <= c' D M T^p for gradients of at most M: V regret + paid <= B by convexity,
and as M <= G_f (V + theta exp(e q_T)), with E = exp(e q_T) and theta' = theta c'/c,
V regret/(c G_f D T^p) + E - 1 <= (c'/c) V + theta' E, so for theta' < 1

    regret <= G_f D T^p ( c' + c theta'/V ),
    violation <= (c G_g D T^p/theta) ln( (1 + (c'/c) V + V T^{1-p}/c)/(1 - theta') ).

Where the set changes after the violation Q_0 (methods/migration.py), t, Q and the slopes go on, and
paid, rho and the sums of gradients are those of the rounds since. With q_0 = Q_0/(c G_g D) the
exponentials then add up to at least (exp(e_T q_T) - exp(e_T q_0))/e_T, so that for all rounds

    violation  <=  (c G_g D/e_T) ln( exp(e_T q_0) + e_T most/(rho theta c G_g D) ).

exp grows, so weights, W and paid live in units of 2^exponent, which never fall: scale-free base
learners never notice.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tidewolf.core.arrays import eps_of, frozen, inner, norm, plus, to_numpy
from tidewolf.core.batch import Batch
from tidewolf.core.feedback import FirstOrder, limits_of
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Array, Floats
from tidewolf.methods.base import NEEDS_SLOPES, Bound
from tidewolf.methods.certificate import CellSums, GradientSums, paid_at_most, regret_at_most
from tidewolf.methods.steps.saddle import HOPELESS, kept_possible
from tidewolf.methods.steps.slopes import Given, Slopes, slope_of_rounds, tangent_part

LEAST_HORIZON = 16
"""t_0 where no horizon is given."""

THETA = 0.5
_STRIDE = 256
_LN2 = math.log(2.0)


class EachLimit(NamedTuple):
    """What weights of their own remember of the limits, one entry each (limit_weights.py)."""

    violations: Floats
    """Q_i, no round counted for more than G_i D"""
    slopes: Floats
    """G_i; 0 while the limit was never broken"""
    least_ratios: Floats
    """rho_i; infinite while no weight was made"""
    paid: Floats
    """sum_t w_ti g_ti^+(x_t), in the ledger's units"""


class DualState(NamedTuple):
    """What the weights remember."""

    rounds: int
    violation: float
    """Q_t, no round counted for more than G_g D"""
    slopes: Slopes
    least_ratio: float
    """rho; infinite while no weight was made"""
    exponent: int
    paid: float
    """sum_t w_t g_t^+(x_t), in units of 2^exponent"""
    impossible: bool
    """whether some round's limit was broken by more than any point could have avoided"""
    sums: GradientSums
    carried: float = 0.0
    """Q_t before the present stretch, where the set changed"""
    each: EachLimit | None = None
    """where every limit has its own weight, once a round was seen: `violation` and `paid` are then
    of all together, `slopes` the largest, `least_ratio` the least
    """


class Surrogate(NamedTuple):
    """A block's surrogate gradient within aff(K), in units of 2^exponent of the new ledger."""

    g: Array
    norm2: float
    dual: DualState
    unit: float
    """old units over new: what earlier sums of gradients are to be multiplied by"""
    penalty_gradient: Array | None
    """the constraints' part of g, w sum grad g_t^+; None where no limit was broken"""
    penalty_value: float
    """w sum g_t^+, in the same units"""
    loss_weight: float
    """V, in these units"""
    penalty_weight: float
    """w, in these units, also where no limit was broken"""
    rounds: int
    loss_gradient: Array
    """sum grad f_t within aff(K)"""
    penalty_offset: float = 0.0
    """what the limits, linearised at x_t, say less at x, where rounds were not played at x"""
    shares: Floats | None = None
    """where every limit has its own weight w_i: w_i/w, with w the largest"""

    def breach(self, constraints: Batch, z: Array) -> float:
        """sum g_t^+(z), limits with weights of their own in their shares: w times this is what the
        surrogate says of the limits.
        """
        pieces = None if self.shares is None else constraints.pieces(z)
        if pieces is None or self.shares is None:
            share = 1.0 if self.shares is None else float(self.shares[0])
            return share * float(np.maximum(to_numpy(constraints.values(z)), 0.0).sum())
        return float((np.maximum(to_numpy(pieces), 0.0) @ self.shares).sum())

    def gradient_of(self, block: FirstOrder) -> Array:
        """The constraints' gradient of rounds, in the same shares."""
        if self.shares is None:
            return block.constraint_gradient
        limits, total = limits_of(block), 0.0 * block.constraint_gradient
        for row, i in enumerate(limits.which.tolist()):
            total = total + float(self.shares[i]) * limits.gradients[row, ...]
        return total

    def violation_of(self, block: FirstOrder) -> float:
        """The violation of rounds, in the same shares."""
        if self.shares is None:
            return block.violation
        limits = limits_of(block)
        return float(self.shares[limits.which] @ limits.violations)


@dataclass(frozen=True)
class LyapunovWeights:
    """The settings; `caution` is the knob every learner shares."""

    K: HasLMO
    caution: float
    horizon: int | None = None
    loss_lipschitz: float | None = None
    constraint_lipschitz: float | None = None
    c: float = 2.0
    p: float = 0.5
    """the base learner's regret is about c D M T^p for gradients of at most M"""

    def start(self) -> DualState:
        return DualState(
            rounds=0,
            violation=0.0,
            slopes=Given(self.loss_lipschitz, self.constraint_lipschitz).initial,
            least_ratio=math.inf,
            exponent=0,
            paid=0.0,
            impossible=False,
            sums=GradientSums.start(self.K),
        )

    def migrated(self, dual: DualState) -> DualState:
        """What is kept if the set, or a setting, changes from here: the rounds, the violation
        and the slopes; what was paid is settled.
        """
        given = self.start().slopes
        return dual._replace(
            slopes=Slopes(*map(max, dual.slopes, given)),
            least_ratio=math.inf,
            paid=0.0,
            sums=GradientSums.start(self.K),
            carried=dual.violation,
            each=None,
        )

    def weigh(self, dual: DualState, block: FirstOrder, x: Array) -> Surrogate:
        """The surrogate gradient of a block of rounds, from its sums, for a learner that stands at
        x.
        """
        V, met = 1.0 / self.caution, dual.slopes.and_of(block)
        dual, grad_f = self._with_losses(dual, block, x)
        if block.violation <= 0.0:
            V = math.ldexp(V, -dual.exponent)
            g, w, n = V * grad_f, self._current_weight(dual), block.rounds
            return Surrogate(g, inner(g, g), dual, 1.0, None, 0.0, V, w, n, grad_f)
        grad_g, slope = tangent_part(
            self.K,
            "constraint",
            block.constraint_gradient,
            block.rounds,
            self.constraint_lipschitz,
            met.constraint,
            block.constraint_slope if block.rounds == 1 else 0.0,
        )
        slope = max(dual.slopes.constraint, slope_of_rounds(self.K, slope, block))
        slopes = Slopes(dual.slopes.loss, slope)
        reach, w, exponent = slopes.constraint * self.K.diameter, 0.0, dual.exponent
        breach, beyond = kept_possible(block, block.rounds * reach, self.K.center)
        violation, least_ratio = dual.violation + breach, dual.least_ratio
        if reach > 0.0:
            ratio = _ratio(slopes)
            least_ratio = min(least_ratio, ratio)
            log2 = self._growth(dual.rounds) * violation / (self.c * reach) / _LN2
            exponent += _STRIDE * max(0, int((log2 - exponent) // _STRIDE))
            w = THETA * ratio * 2.0 ** (log2 - exponent)
        unit = math.ldexp(1.0, dual.exponent - exponent)
        penalty_gradient, penalty_value = w * grad_g, w * breach
        V = math.ldexp(V, -exponent)
        g = plus(penalty_gradient, V, grad_f)
        weighed = dual._replace(
            violation=violation,
            slopes=slopes,
            least_ratio=least_ratio,
            exponent=exponent,
            paid=dual.paid * unit + penalty_value,
            impossible=dual.impossible or beyond,
            sums=self._with_limits(
                dual.sums, unit, penalty_gradient, w * block.constraint_offset, x
            ),
        )
        return Surrogate(
            g=g,
            norm2=inner(g, g),
            dual=weighed,
            unit=unit,
            penalty_gradient=penalty_gradient,
            penalty_value=penalty_value,
            loss_weight=V,
            penalty_weight=w,
            rounds=block.rounds,
            loss_gradient=grad_f,
            penalty_offset=w * block.constraint_offset,
        )

    def _with_losses(self, dual: DualState, block: FirstOrder, x: Array) -> tuple[DualState, Array]:
        """The dual state after the losses of a block, and their gradient within aff(K)."""
        known = dual.slopes.and_of(block).loss
        size = block.loss_slope if block.rounds == 1 else 0.0
        grad_f, slope = tangent_part(
            self.K, "loss", block.loss_gradient, block.rounds, self.loss_lipschitz, known, size
        )
        sums, at = dual.sums, inner(grad_f, x - self.K.center) + block.loss_offset
        sums = sums._replace(loss=frozen(sums.loss + grad_f), loss_at=sums.loss_at + at)
        after = dual._replace(
            rounds=dual.rounds + block.rounds,
            slopes=Slopes(max(dual.slopes.loss, slope), dual.slopes.constraint),
            sums=sums,
        )
        return after, grad_f

    def _with_limits(
        self, sums: GradientSums, unit: float, P: Array, offset: float, x: Array
    ) -> GradientSums:
        """The sums with the limits' part P of a surrogate, in units that are `unit` times the old
        ones.
        """
        at = inner(P, x - self.K.center) + offset
        limit = frozen(sums.limit * unit + P)
        return sums._replace(limit=limit, limit_at=sums.limit_at * unit + at)

    def _current_weight(self, dual: DualState) -> float:
        """w after a round that broke no limit, in the ledger's units."""
        slopes = dual.slopes
        reach = slopes.constraint * self.K.diameter
        if reach == 0.0:
            return 0.0
        log2 = self._growth(dual.rounds) * dual.violation / (self.c * reach) / _LN2
        w: float = THETA * _ratio(slopes) * 2.0 ** (log2 - dual.exponent)
        return w

    def limit_price(self, dual: DualState) -> float:
        """w/V after the last round: what a unit of violation weighs, in units of the loss."""
        V = math.ldexp(1.0 / self.caution, -dual.exponent)
        return self._current_weight(dual) / V if V > 0.0 else math.inf

    def limit_prices(self, dual: DualState) -> Floats | None:
        """The same for each limit; None where all have one weight."""
        return None

    def _growth(self, t: int) -> float:
        """e_t, by which the exponential grows with q after t rounds."""
        return THETA * math.pow(max(t, self.horizon or LEAST_HORIZON), -self.p)

    def bound(self, dual: DualState, cells: CellSums | None = None) -> Bound:
        """What holds for the rounds so far; against policies, where the sums of their cells are
        given.
        """
        regret, most = regret_at_most(self.K, dual.sums, dual.paid, cells), self._most(dual, cells)
        if most is None:
            return Bound(_finite(regret), None, HOPELESS)
        if dual.violation == dual.carried:
            return Bound(_finite(regret), dual.carried)
        return Bound(_finite(regret), self._violation_at_most(dual, most))

    def _most(self, dual: DualState, cells: CellSums | None = None) -> float | None:
        """The most that can have been paid; None where it is proved that no point keeps every
        limit.
        """
        most = paid_at_most(self.K, dual.sums, cells)
        size = abs(dual.sums.limit_at) + norm(dual.sums.limit) * self.K.radius
        rounding = math.sqrt(eps_of(self.K.center)) * (size + dual.paid)
        if dual.impossible or dual.paid - most > rounding:
            return None
        return max(most, dual.paid)

    def _violation_at_most(self, dual: DualState, most: float) -> float:
        slope, carried = dual.slopes.constraint, dual.carried
        return self._at_most(dual, slope, dual.least_ratio, most, carried)

    def _at_most(
        self, dual: DualState, slope: float, least_ratio: float, paid: float, carried: float
    ) -> float:
        """The most that a limit of this slope was broken by, where at most this much was paid."""
        unit = self.c * slope * self.K.diameter / self._growth(dual.rounds)
        log = math.log(paid / (least_ratio * THETA * unit)) + dual.exponent * _LN2
        log -= carried / unit
        return carried + unit * (math.log1p(math.exp(log)) if log < 500.0 else log)

    def guaranteed(self, c_base: float, limits: int | None = None) -> Bound:
        """What is known before the first of `horizon` rounds, where the base learner's regret is at
        most c_base D M T^p; `limits` a round, where they have weights of their own.
        """
        return self._guaranteed(c_base)

    def _guaranteed(self, c_base: float, limits: int = 1, a: float = 1.0) -> Bound:
        if self.horizon is None or self.loss_lipschitz is None or self.constraint_lipschitz is None:
            return NEEDS_SLOPES
        T, D, V, share = self.horizon, self.K.diameter, 1.0 / self.caution / a, c_base / self.c
        grown, theta = T**self.p, THETA * share
        if theta >= 1.0:
            return Bound(
                None,
                None,
                "With these steps, members, horizon and distances of x from y theory has nothing "
                "to promise: bounds are measured.",
            )
        log = math.log((1.0 + share * V + V * T / (self.c * grown)) / (1.0 - theta))
        if limits > 1:
            above = share * V + theta * limits + V * T / (self.c * grown)
            log = math.log1p(above / (1.0 - theta) / limits)
        regret = self.loss_lipschitz * D * grown * (c_base + self.c * theta * limits / V)
        each = self.c * self.constraint_lipschitz * D * grown / THETA * log
        return Bound(regret, limits * each)


def _ratio(slopes: Slopes) -> float:
    """G_f/G_g, 1 while no loss has had a slope."""
    return slopes.loss / slopes.constraint if slopes.loss > 0.0 else 1.0


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
