"""Lyapunov weights: one gradient that stands for losses and constraints
(Sinha & Vaze 2024), at any time.

After t rounds with violation Q_t in all, q_t = Q_t/(c G_g D), a base learner is fed

    s_t = V grad f_t + w_t grad g_t^+,   V = 1/caution,   w_t = theta (G_f/G_g) exp( e_t q_t ),
    e_t = theta max(t, t_0)^{-p}:

their surrogate in units of the loss, t_0 the horizon if one is given, else 16. Up to a given
horizon this is the published weight times a constant, which a scale-free base learner does not
feel; past it, or without one, nothing restarts (see also Sarkar & Sinha 2025, arXiv 2510.22579).
G_f and G_g are given, or the largest slopes seen so far; G_f/G_g is read as 1 while no loss has had
a slope.

With paid = sum_t w_t g_t^+(x_t), the certificate (methods/certificate.py) bounds the regret by (R),
whatever the weights are, and paid by most, the right side of (P), if some point satisfies every
constraint. Then

    violation  <=  (c G_g D/e_T) ln( 1 + e_T most/(rho theta c G_g D) ),
    rho the least G_f/G_g a weight was made with:

e_t >= e_T, so w_t >= rho theta exp(e_T q_t) with q_t counted in the last G_g, and sum
exp(e_T q_t)(q_t - q_{t-1}) >= (exp(e_T q_T) - 1)/e_T, as the exponential increases and q_t is the
right end. No slope beyond those seen is needed. Where paid exceeds most, no point keeps every
limit: that is then proved, and there is no bound on the violation. Neither is there after a
violation of more than G_g D in one round, which by convexity no point could have avoided; weights
count it as G_g D, so that one absurd number does not silence the losses for good.

Beforehand, where G_f, G_g and the horizon T are given and the base learner's regret on the
surrogate is at most B <= c' D M T^p for gradients of at most M: V regret + paid <= B by convexity,
and as M <= G_f (V + theta exp(e q_T)), with E = exp(e q_T) and theta' = theta c'/c,
V regret/(c G_f D T^p) + E - 1 <= (c'/c) V + theta' E, so for theta' < 1

    regret <= G_f D T^p ( c' + c theta'/V ),
    violation <= (c G_g D T^p/theta) ln( (1 + (c'/c) V + V T^{1-p}/c)/(1 - theta') ).

If the set changes after the violation Q_0 (learners/migration.py), t, Q and the slopes go on, and
paid, rho and the sums of gradients are those of the rounds since. With q_0 = Q_0/(c G_g D) the
exponentials then add up to at least (exp(e_T q_T) - exp(e_T q_0))/e_T, so that for all rounds

    violation  <=  (c G_g D/e_T) ln( exp(e_T q_0) + e_T most/(rho theta c G_g D) ).

exp grows, so weights, W and paid live in units of 2^exponent, which never fall: scale-free base
learners never notice.

A target for the violation
--------------------------
Given beta, the violation per round that is acceptable, the weight aims at it. With z_0 = 0 and
s_t = k_t G_g D, k_t G_g D = beta t/10 kept between 0.15 and 0.3 times G_g D, so that early
violations are answered quickly,

    w_t = theta b (G_f/G_g) exp(z_t),    z_t = max( LOWEST, z_{t-1} + (g_t^+(x_t) - beta)/s_t ),

so that w falls while less than beta is violated and grows exponentially above. The violation above
beta T is about s_T z_T. So a small target begins with a large weight: b = 4e-4 G_g D/beta, kept
between 1/e and 20. With A_t = theta b (G_f/G_g) s_t,
w_t g_t^+ >= A_t (exp(z_t) - exp(z_{t-1})): where z falls the right side is below 0. Summed, with
the jumps J = sum (A_{t+1} - A_t) exp(z_t), A_T exp(z_T) <= most + J; by parts
sum (g_t^+ - beta) <= s_T z_T + L, L = -sum (s_{t+1} - s_t) z_t. So in T rounds

    violation  <=  beta T + s_T ln( (most + J)/A_T ) + L,

for running slopes, too: J and L are measured. G_g that grows leaves w continuous.

A weight for each constraint
----------------------------
Limit i of k has its own violation Q_i, slope G_i and q_i = Q_i/(c G_i D), and

    s_t = V grad f_t + sum_i w_ti grad g_ti^+,   w_ti = a theta (G_f/G_i) exp( e_t q_ti ),
    paid_i = sum_t w_ti g_ti^+(x_t),   paid = sum_i paid_i,

a = 1 for a limit alone, else `SHARE`: several that are broken together push together.

The lines above hold with this paid, for any weights w_ti >= 0, and the bound on the violation for
each limit by itself, rho_i the least a G_f/G_i that limit i was weighed with:

    paid  <=  most,
    violation_i  <=  (c G_i D/e_T) ln( 1 + e_T (most - sum_{j != i} paid_j)/(rho_i theta c G_i D) ).

sum_t max_i g_ti^+ is at most the sum of the violations.

Limits may have units of their own: those of one change nothing. All weights share one exponent,
that of the largest.

Beforehand, given the slopes and T, M <= G_f (V + a theta sum_i E_i) with E_i = exp(e q_Ti), so that
with U = V/a: U regret/(c G_f D T^p) + (1 - theta') sum_i (E_i - 1) <= (c'/c) U + theta' k, and for
theta' < 1

    regret <= G_f D T^p ( c' + c theta' k/U ),
    sum_i (E_i - 1) <= X := ((c'/c) U + theta' k + U T^{1-p}/c)/(1 - theta'),
    violation_i <= (c G_i D T^p/theta) ln( 1 + X ),   in all <= (c G_g D T^p/theta) k ln( 1 + X/k ).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tidewolf.core import arrays, batch, errors, oracle
from tidewolf.core.feedback import FirstOrder, limits_of, other_count
from tidewolf.core.types import Array, Floats
from tidewolf.methods import certificate
from tidewolf.methods.base import NEEDS_SLOPES, Bound
from tidewolf.methods.capabilities import LimitBound
from tidewolf.methods.certificate import Broken, CellSums, GradientSums, SharpSums
from tidewolf.methods.steps.saddle import HOPELESS, kept_possible
from tidewolf.methods.steps.slopes import Given, Slopes, slope_of_rounds, tangent_part

LEAST_HORIZON = 16  # t_0 where no horizon is given.
# a of several limits: on the backbone `geant` it costs no more than one weight for the largest
# violation.
SHARE = 0.55
THETA = 0.5
# The least and the largest k of a target, the share of what is allowed so far, and the least z.
QUICKEST, SLOWEST, ALLOWED, LOWEST = 0.15, 0.3, 0.1, -12.0
# The target, as a share of G_g D, whose first weight is theta G_f/G_g, and the least and the
# largest factor of others. All were chosen on `routing` and `geant`, seed 0.
FIRST, LIGHTEST, HEAVIEST = 4e-4, math.exp(-1.0), 20.0
_STRIDE = 256
_LN2 = math.log(2.0)


class EachLimit(NamedTuple):
    violations: Floats  # Q_i, no round counted for more than G_i D
    slopes: Floats  # G_i; 0 while the limit was never broken
    least_ratios: Floats  # rho_i; infinite while no weight was made
    paid: Floats  # sum_t w_ti g_ti^+(x_t), in the dual state's units


class Aim(NamedTuple):
    """How far the violation is above its target."""

    z: float  # ln of w over the first weight
    rounds: int = 0  # that were counted, which begins with the first violation
    s: float = 0.0
    A: float = 0.0
    jumps: float = 0.0  # J, in units of 2^exponent
    shifts: float = 0.0  # L

    def moved(self, beta: float, breach: float, n: int, s: float) -> float:
        return self.z if s <= 0.0 else max(LOWEST, self.z + (breach - beta * n) / s)

    def after(self, z: float, n: int, s: float, A: float, exponent: int, unit: float) -> "Aim":
        if s <= 0.0:
            return self
        grown = (A - self.A) * 2.0 ** (self.z / _LN2 - exponent)
        shifts = self.shifts - (s - self.s) * self.z
        return Aim(z, self.rounds + n, s, A, self.jumps * unit + grown, shifts)


class DualState(NamedTuple):
    rounds: int
    violation: float  # Q_t, no round counted for more than G_g D
    slopes: Slopes
    least_ratio: float  # rho; infinite while no weight was made
    exponent: int
    paid: float  # sum_t w_t g_t^+(x_t), in units of 2^exponent
    # whether some round's limit was broken by more than any point could have avoided
    impossible: bool
    sums: GradientSums
    sharp: SharpSums
    carried: float = 0.0  # Q_t before the present epoch, where the set changed
    # where every limit has its own weight, once a round was seen: `violation` and `paid` are then
    # of all together, `slopes` the largest, `least_ratio` the least
    each: EachLimit | None = None
    aim: Aim | None = None  # where there is a target


class StepGradient(NamedTuple):
    """The gradient g of a surrogate within aff(K), and the limits' part of it, at a point x."""

    g: Array
    norm2: float  # |g|^2
    x: Array
    penalty_gradient: Array | None  # w sum grad g_t^+; None if no limit was broken
    penalty_value: float  # what the limits, linearised where rounds were played, say at x


class Surrogate(NamedTuple):
    """A block's surrogate, in units of 2^exponent of the new dual state."""

    grad: StepGradient
    dual: DualState
    unit: float  # old units over new: what earlier sums of gradients are to be multiplied by
    loss_weight: float  # V, in these units
    penalty_weight: float  # w, in these units, also where no limit was broken
    loss_gradient: Array  # sum grad f_t within aff(K)
    # where every limit has its own weight w_i: w_i/w, with w the largest
    shares: Floats | None = None

    def breach(self, constraints: batch.Batch, z: Array) -> float:
        """sum g_t^+(z), limits with weights of their own in their shares: w times this is what the
        surrogate says of the limits.
        """
        if self.shares is None or (pieces := constraints.pieces(z)) is None:
            share = 1.0 if self.shares is None else float(self.shares[0])
            return share * float(np.maximum(arrays.to_numpy(constraints.values(z)), 0.0).sum())
        return float((np.maximum(arrays.to_numpy(pieces), 0.0) @ self.shares).sum())

    def limits_of(self, block: FirstOrder) -> tuple[Array, float]:
        """The constraints' gradient and the violation of rounds, in the same shares."""
        if self.shares is None:
            return block.constraint_gradient, block.violation
        limits, total = limits_of(block), 0.0 * block.constraint_gradient
        shares = self.shares[limits.which]
        for row, share in enumerate(shares.tolist()):
            total = total + share * limits.gradients[row, ...]
        return total, float(shares @ limits.violations)


@dataclass(frozen=True)
class LyapunovWeights:
    K: oracle.HasLMO
    caution: float
    horizon: int | None = None
    loss_lipschitz: float | None = None
    constraint_lipschitz: float | None = None
    c: float = 2.0
    p: float = 0.5  # the base learner's regret is about c D M T^p for gradients of at most M
    # whether each limit has its own weight; how many there are is learned from the first round
    per_constraint: bool = False
    target: float | None = None  # beta

    def start(self) -> DualState:
        sums = GradientSums.start(self.K)
        return DualState(
            rounds=0,
            violation=0.0,
            slopes=Given(self.loss_lipschitz, self.constraint_lipschitz).initial,
            least_ratio=math.inf,
            exponent=0,
            paid=0.0,
            impossible=False,
            sums=sums,
            sharp=SharpSums(sums.limit, sums.limit),
            aim=None if self.target is None else Aim(0.0),
        )

    def migrated(self, dual: DualState) -> DualState:
        """What is kept if the set, or a setting, changes from here: the rounds, the violation
        and the slopes; what was paid is closed.
        """
        fresh = self.start()
        return fresh._replace(
            rounds=dual.rounds,
            violation=dual.violation,
            slopes=Slopes(*map(max, dual.slopes, fresh.slopes)),
            exponent=dual.exponent,
            impossible=dual.impossible,
            carried=dual.violation,
            aim=fresh.aim if fresh.aim is None or dual.aim is None else Aim(dual.aim.z),
        )

    def weigh(self, dual: DualState, block: FirstOrder, x: Array) -> Surrogate:
        """The surrogate gradient of a block of rounds, from its sums, for a learner that stands at
        x.
        """
        dual, grad_f = self._with_losses(dual, block)
        count, broken = self._broken(block)
        Q, G, rho, paid = self._remembered(dual, count)
        found = [self._breach(i, one, G[i]) for i, one in broken]
        for one in found:
            Q[one.i], G[one.i] = Q[one.i] + one.violation, one.slope
        slopes = Slopes(dual.slopes.loss, max(dual.slopes.constraint, *G))
        ratios = [self._ratio(slopes.loss, each, count) for each in G]
        limits = list(zip(Q, G, ratios, strict=True))
        w, exponent, aim = self._weights(dual, limits, found, block.rounds)
        unit, V = math.ldexp(1.0, dual.exponent - exponent), self._loss_weight(exponent)
        paid, value, offset, P = [unit * each for each in paid], 0.0, 0.0, None
        for one in found:
            i, due = one.i, w[one.i] * one.violation
            if w[i] > 0.0:
                rho[i] = min(rho[i], ratios[i])
            paid[i], value, offset = paid[i] + due, value + due, offset + w[i] * one.offset
            P = w[i] * one.gradient if P is None else P + w[i] * one.gradient
        g = V * grad_f if P is None else arrays.plus(P, V, grad_f)
        at, sums, D = x - self.K.center, dual.sums, self.K.diameter
        reaches = dual.slopes.constraint * D, slopes.constraint * D
        sharp = dual.sharp.after(dual.rounds, block.rounds, at, *reaches, found)
        wanted = ((g, g), (grad_f, at), *(() if P is None else ((P, at),)))
        norm2, loss_at, *limit_at = arrays.inner_products(*wanted)
        sums = sums._replace(loss_at=sums.loss_at + (loss_at + block.loss_offset))
        if P is not None:
            broken_at = sums.limit_at * unit + limit_at[0] + offset
            sums = sums._replace(limit=arrays.frozen(sums.limit * unit + P), limit_at=broken_at)
        each = shares = None
        if self.per_constraint:
            each = EachLimit(*(arrays.frozen(np.array(numbers)) for numbers in (Q, G, rho, paid)))
            shares = np.array(w) / (max(w) or 1.0)
        weighed = dual._replace(
            violation=dual.violation + min(block.violation, sum(one.violation for one in found)),
            slopes=slopes,
            least_ratio=min(rho),
            exponent=exponent,
            paid=sum(paid),
            impossible=dual.impossible or any(one.impossible for one in found),
            sums=sums,
            sharp=sharp,
            each=each,
            aim=aim,
        )
        grad = StepGradient(g, norm2, x, P, value - offset)
        return Surrogate(grad, weighed, unit, V, max(w), grad_f, shares)

    def _breach(self, i: int, one: FirstOrder, known: float) -> Broken:
        """What a limit that was broken says, whose slope was known to be this much."""
        size, given = one.constraint_slope, self.constraint_lipschitz
        gradient, slope = tangent_part(
            *(self.K, "constraint", one.constraint_gradient, one.rounds, given),
            *(max(known, size), size if one.rounds == 1 else 0.0),
        )
        slope = max(known, slope_of_rounds(self.K, slope, one))
        reach = one.rounds * slope * self.K.diameter
        violation, impossible = kept_possible(one, reach, self.K.center)
        return Broken(i, gradient, violation, one.constraint_offset, slope, impossible)

    def _weights(
        self, dual: DualState, limits: Sequence[tuple[float, ...]], found: Sequence[Broken], n: int
    ) -> tuple[list[float], int, Aim | None]:
        """The weights of limits, by their Q, G and ratio of slopes, after n rounds, in units of
        2^exponent; that exponent, and the aim.
        """
        Q, G, ratios = zip(*limits, strict=True)
        logs = [self._log2(dual.rounds, *each) for each in zip(G, Q, strict=True)]
        exponent, aim, s = dual.exponent, dual.aim, max(G) * self.K.diameter
        if aim is not None and self.target is not None:
            s = max(QUICKEST * s, min(SLOWEST * s, ALLOWED * self.target * dual.rounds))
            logs = [aim.moved(self.target, sum(one.violation for one in found), n, s) / _LN2]
        if found:
            exponent += _STRIDE * max(0, int((max(logs) - exponent) // _STRIDE))
        if aim is not None:
            unit = math.ldexp(1.0, dual.exponent - exponent)
            aim = aim.after(_LN2 * logs[0], n, s, THETA * ratios[0] * s, exponent, unit)
        w = [self._weight(*each, exponent) for each in zip(G, ratios, logs, strict=True)]
        return w, exponent, aim

    def _broken(self, block: FirstOrder) -> tuple[int, list[tuple[int, FirstOrder]]]:
        """How many limits have a weight, and those that were broken, each as though alone."""
        if not self.per_constraint:
            return 1, [(0, block)] if block.violation > 0.0 else []
        limits = limits_of(block)
        rows = zip(*limits[1:], strict=True)
        return limits.in_all, [
            (
                int(i),
                block._replace(
                    violation=float(violation),
                    constraint_gradient=gradient,
                    constraint_slope=float(slope),
                    constraint_offset=float(offset),
                ),
            )
            for i, violation, gradient, slope, offset in rows
        ]

    def _loss_weight(self, exponent: int) -> float:
        return math.ldexp(1.0 / self.caution, -exponent)

    def _remembered(self, dual: DualState, count: int) -> list[list[float]]:
        """Q, G, rho and paid of so many limits, as in `EachLimit`."""
        if not self.per_constraint:
            known = dual.violation, dual.slopes.constraint, dual.least_ratio, dual.paid
            return [[number] for number in known]
        given = self.constraint_lipschitz
        if dual.each is None:
            return [[number] * count for number in (0.0, given or 0.0, math.inf, 0.0)]
        if len(dual.each.slopes) != count:
            raise errors.WrongShape(other_count(count, len(dual.each.slopes)))
        return [numbers.tolist() for numbers in dual.each]

    def _log2(self, rounds: int, G: float, Q: float) -> float:
        """log2 exp(e q); 0 for a limit without a slope."""
        reach = self.c * G * self.K.diameter
        return self._growth(rounds) * Q / reach / _LN2 if reach > 0.0 else 0.0

    def _weight(self, G: float, ratio: float, log2: float, exponent: int) -> float:
        """w in units of 2^exponent, 0 while a limit has no slope."""
        w: float = THETA * ratio * 2.0 ** (log2 - exponent)
        return w if G * self.K.diameter > 0.0 else 0.0

    def _ratio(self, loss: float, G: float, limits: int) -> float:
        """a G_f/G_i, with 1 for G_f/G_i while no loss, or the limit, has had a slope; with a target
        b G_f/G_g.
        """
        ratio = _share(limits) * (loss / G if loss > 0.0 and G > 0.0 else 1.0)
        if self.target is None:
            return ratio
        return ratio * min(HEAVIEST, max(LIGHTEST, FIRST * G * self.K.diameter / self.target))

    def _with_losses(self, dual: DualState, block: FirstOrder) -> tuple[DualState, Array]:
        known = dual.slopes.and_of(block).loss
        size = block.loss_slope if block.rounds == 1 else 0.0
        grad_f, slope = tangent_part(
            self.K, "loss", block.loss_gradient, block.rounds, self.loss_lipschitz, known, size
        )
        after = dual._replace(
            rounds=dual.rounds + block.rounds,
            slopes=Slopes(max(dual.slopes.loss, slope), dual.slopes.constraint),
            sums=dual.sums._replace(loss=arrays.frozen(dual.sums.loss + grad_f)),
        )
        return after, grad_f

    def prices(self, dual: DualState) -> Floats:
        """w_i/V after the last round: what a unit of violation weighs, in units of the loss."""
        if self.per_constraint and dual.each is None:
            return np.zeros(1)
        count, weights = 1 if dual.each is None else len(dual.each.slopes), list[float]()
        for Q, G, *_ in zip(*self._remembered(dual, count), strict=True):
            ratio, log2 = self._ratio(dual.slopes.loss, G, count), self._log2(dual.rounds, G, Q)
            log2 = log2 if dual.aim is None else dual.aim.z / _LN2
            weights.append(self._weight(G, ratio, log2, dual.exponent))
        current, V = np.array(weights), self._loss_weight(dual.exponent)
        return current / V if V > 0.0 else np.where(current > 0.0, np.inf, 0.0)

    def limit_price(self, dual: DualState) -> float:
        return float(self.prices(dual).max())

    def limit_prices(self, dual: DualState) -> Floats | None:
        """Those of all limits; None if all have one weight."""
        return None if dual.each is None else self.prices(dual)

    def offset_price(self, dual: DualState, feedback: FirstOrder) -> float:
        """What the offsets of rounds weigh after the last one, in units of the loss."""
        if self.per_constraint and dual.each is None:
            return feedback.loss_offset
        prices, broken = self.prices(dual).tolist(), self._broken(feedback)[1]
        offsets = ((i, one.constraint_offset) for i, one in broken if one.constraint_offset != 0.0)
        return feedback.loss_offset + float(sum(prices[i] * offset for i, offset in offsets))

    def _growth(self, t: int) -> float:
        """e_t, by which the exponential grows with q after t rounds."""
        return THETA * math.pow(max(t, self.horizon or LEAST_HORIZON), -self.p)

    def bound(self, dual: DualState, cells: CellSums | None = None) -> Bound:
        """What holds for the rounds so far; against policies, where the sums of their cells are
        given.
        """
        families, sharp = [(dual.sums, dual.paid)], dual.sharp
        if cells is None and sharp.broken:
            sums = dual.sums._replace(limit=sharp.limit, limit_at=sharp.limit_at)
            families.append((sums, sharp.paid))
        regret = min(certificate.regret_at_most(self.K, *each, cells) for each in families)
        found = (self._most(dual, *each, cells) for each in families)
        most = [one for one in found if one is not None]
        known = regret if math.isfinite(regret) else None
        if len(most) < len(families):
            return Bound(known, None, HOPELESS)
        if dual.violation == dual.carried:
            return Bound(known, dual.carried)
        bounds = [self._violation_at_most(dual, most[0])]
        reach = dual.slopes.constraint * self.K.diameter
        bounds += [dual.carried + (sharp.broken * reach) ** 0.8 * one**0.2 for one in most[1:]]
        return Bound(known, min(bounds))

    def _most(
        self, dual: DualState, sums: GradientSums, paid: float, cells: CellSums | None = None
    ) -> float | None:
        """The most that can have been paid; None if it is proved that no point keeps every
        limit.
        """
        most = certificate.paid_at_most(self.K, sums, cells)
        size = abs(sums.limit_at) + arrays.norm(sums.limit) * self.K.radius
        rounding = math.sqrt(arrays.eps_of(self.K.center)) * (size + paid)
        return None if dual.impossible or paid - most > rounding else max(most, paid)

    def _violation_at_most(self, dual: DualState, most: float) -> float:
        slope, each = dual.slopes.constraint, dual.each
        if dual.aim is not None and self.target is not None:
            _, rounds, s, A, jumps, shifts = dual.aim
            if not most + jumps > 0.0 < A:
                return dual.violation
            above = s * (math.log((most + jumps) / A) + dual.exponent * _LN2) + shifts
            return dual.carried + max(0.0, self.target * rounds + above)
        if each is None:
            return self._at_most(dual, slope, dual.least_ratio, most, dual.carried)
        return dual.carried + float(self._each_at_most(dual, each, most).sum())

    def _each_at_most(self, dual: DualState, each: EachLimit, most: float) -> Floats:
        Q, found = each.violations, np.zeros(len(each.violations))
        for i in np.flatnonzero(Q > 0.0).tolist():
            paid = most - (dual.paid - float(each.paid[i]))
            slope, least_ratio = float(each.slopes[i]), float(each.least_ratios[i])
            known = least_ratio < math.inf
            found[i] = self._at_most(dual, slope, least_ratio, paid, 0.0) if known else Q[i]
        return found

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
        most c_base D M T^p; `limits` per round, where they have weights of their own.
        """
        k = limits if self.per_constraint else 1
        if k is None:
            return Bound(
                reason="With a weight for each limit a guarantee needs their number, as in "
                "guarantee(limits=3); without it bounds are measured."
            )
        if self.target is not None:
            return Bound(reason="With a target for the violation bounds are measured.")
        if self.horizon is None or self.loss_lipschitz is None or self.constraint_lipschitz is None:
            return NEEDS_SLOPES
        T, D, share = self.horizon, self.K.diameter, c_base / self.c
        U, grown, theta = 1.0 / self.caution / _share(k), T**self.p, THETA * share
        if theta >= 1.0:
            return Bound(
                reason="With these steps, members, horizon and distances of x from y theory has "
                "nothing to guarantee: bounds are measured."
            )
        X = (share * U + theta * k + U * T / (self.c * grown)) / (1.0 - theta)
        regret = self.loss_lipschitz * D * grown * (c_base + self.c * theta * k / U)
        each = self.c * self.constraint_lipschitz * D * grown / THETA * math.log1p(X / k)
        return Bound(regret, k * each)

    def limit_rows(self, dual: DualState, names: Sequence[str]) -> tuple[LimitBound, ...]:
        """One row a limit, by their names where these are known; none without weights of their
        own.
        """
        if dual.each is None:
            return ()
        violations = dual.each.violations.tolist()
        most = self._most(dual, dual.sums, dual.paid)
        bounds: list[float | None] = [None] * len(violations)
        if most is not None:
            bounds = self._each_at_most(dual, dual.each, most).tolist()
        if len(names) != len(bounds):
            names = [f"limit {i + 1}" for i in range(len(bounds))]
        return tuple(map(LimitBound, names, violations, bounds))


def _share(limits: int) -> float:
    return 1.0 if limits == 1 else SHARE
