"""A Lyapunov weight for each constraint, if a round has several.

Limit i of k has its own violation Q_i, slope G_i and q_i = Q_i/(c G_i D), and with the symbols of
lyapunov.py

    s_t = V grad f_t + sum_i w_ti grad g_ti^+,   w_ti = a theta (G_f/G_i) exp( e_t q_ti ),
    paid_i = sum_t w_ti g_ti^+(x_t),   paid = sum_i paid_i,

a = 1 for a limit alone, else `SHARE`: several that are broken together push together.

The lines of lyapunov.py hold with this paid, for any weights w_ti >= 0, and its last one for each
limit by itself, rho_i the least a G_f/G_i that limit i was weighed with:

    paid  <=  most,
    violation_i  <=  (c G_i D/e_T) ln( 1 + e_T (most - sum_{j != i} paid_j)/(rho_i theta c G_i D) ).

sum_t max_i g_ti^+ is at most the sum of the violations v_i. As paid_i >= r_i u_i (exp(v_i/u_i) - 1)
with r_i = rho_i theta and u_i = c G_i D/e_T, that is at most the largest sum of v_i for which these
add up to most: v_i = u_i ln(lam/r_i), or 0 where r_i > lam, with sum_i u_i (lam - r_i)^+ = most.

Limits may have units of their own: those of one change nothing. All weights share one exponent,
that of the largest.

Beforehand, given the slopes and T, M <= G_f (V + a theta sum_i E_i) with E_i = exp(e q_Ti), so that
with U = V/a: U regret/(c G_f D T^p) + (1 - theta') sum_i (E_i - 1) <= (c'/c) U + theta' k, and for
theta' < 1

    regret <= G_f D T^p ( c' + c theta' k/U ),
    sum_i (E_i - 1) <= X := ((c'/c) U + theta' k + U T^{1-p}/c)/(1 - theta'),
    violation_i <= (c G_i D T^p/theta) ln( 1 + X ),   in all <= (c G_g D T^p/theta) k ln( 1 + X/k ).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tidewolf.core.arrays import frozen, inner
from tidewolf.core.errors import WrongShape
from tidewolf.core.feedback import FirstOrder, Limits, limits_of, other_count
from tidewolf.core.types import Array, Floats
from tidewolf.methods.base import Bound
from tidewolf.methods.capabilities import LimitBound
from tidewolf.methods.steps import lyapunov
from tidewolf.methods.steps.lyapunov import DualState, EachLimit, LyapunovWeights, Surrogate
from tidewolf.methods.steps.saddle import kept_possible
from tidewolf.methods.steps.slopes import Slopes, slope_of_rounds, tangent_part

SHARE = 0.55
"""a of several limits: on the backbone `geant` it costs no more than one weight for the largest
breach."""


@dataclass(frozen=True)
class LimitWeights(LyapunovWeights):
    """The same settings; how many limits there are is learned from the first round."""

    def weigh(self, dual: DualState, block: FirstOrder, x: Array) -> Surrogate:
        feedback = limits_of(block)
        each = self._begun(feedback.in_all) if dual.each is None else dual.each
        if len(each.violations) != feedback.in_all:
            raise WrongShape(other_count(feedback.in_all, len(each.violations)))
        dual, grad_f = self._with_losses(dual, block, x)
        which, n, Q = feedback.which, block.rounds, each.violations.copy()
        G, gradients, breaches, impossible = self._breaches(dual, block, feedback, each.slopes)
        Q[which] += breaches
        slopes = Slopes(dual.slopes.loss, max(dual.slopes.constraint, float(G.max())))
        dual = dual._replace(slopes=slopes, impossible=impossible)
        logs, exponent = self._logs(dual.rounds, G, Q), dual.exponent
        if len(which):
            largest = float(logs.max())
            exponent += lyapunov._STRIDE * max(0, int((largest - exponent) // lyapunov._STRIDE))
        unit = math.ldexp(1.0, dual.exponent - exponent)
        w = self._weights(slopes.loss, G, logs, exponent)
        rho, paid = each.least_ratios.copy(), each.paid * unit
        made = which[w[which] > 0.0]
        rho[made] = np.minimum(rho[made], _ratios(slopes.loss, G)[made])
        paid[which] += w[which] * breaches
        each = EachLimit(*map(frozen, (Q, G, rho, paid)))
        V = math.ldexp(1.0 / self.caution, -exponent)
        g, P, owed, offset, sums = V * grad_f, None, 0.0, 0.0, dual.sums
        if len(which):
            P = 0.0 * grad_f
            for weight, gradient in zip(w[which].tolist(), gradients, strict=True):
                P = P + weight * gradient
            g, owed = g + P, float(w[which] @ breaches)
            offset = float(w[which] @ feedback.offsets)
            sums = self._with_limits(sums, unit, P, offset, x)
        largest = float(w.max())
        weighed = dual._replace(
            violation=dual.violation + min(block.violation, float(breaches.sum())),
            least_ratio=float(rho.min()),
            exponent=exponent,
            paid=float(paid.sum()),
            sums=sums,
            each=each,
        )
        return Surrogate(
            g=g,
            norm2=inner(g, g),
            dual=weighed,
            unit=unit,
            penalty_gradient=P,
            penalty_value=owed,
            loss_weight=V,
            penalty_weight=largest,
            rounds=n,
            loss_gradient=grad_f,
            penalty_offset=offset,
            shares=w / largest if largest > 0.0 else w,
        )

    def _breaches(
        self, dual: DualState, block: FirstOrder, feedback: Limits, slopes: Floats
    ) -> tuple[Floats, list[Array], Floats, bool]:
        """The largest slopes with these rounds; the gradient within aff(K) and the violation of
        each limit that was broken; whether some limit was broken by more than a point can avoid.
        """
        G, n, gradients, impossible = slopes.copy(), block.rounds, list[Array](), dual.impossible
        breaches = np.zeros(len(feedback.which))
        for row, i in enumerate(feedback.which.tolist()):
            given, known = (
                feedback.gradients[row, ...],
                max(float(G[i]), float(feedback.slopes[row])),
            )
            gradient, slope = tangent_part(
                self.K, "constraint", given, n, self.constraint_lipschitz, known
            )
            gradients.append(gradient)
            one = block._replace(
                violation=float(feedback.violations[row]),
                constraint_gradient=given,
                constraint_offset=float(feedback.offsets[row]),
            )
            G[i] = max(float(G[i]), slope_of_rounds(self.K, slope, one))
            reach = n * float(G[i]) * self.K.diameter
            breaches[row], beyond = kept_possible(one, reach, self.K.center)
            impossible = impossible or beyond
        return G, gradients, breaches, impossible

    def _begun(self, count: int) -> EachLimit:
        none, slope = np.zeros(count), self.constraint_lipschitz or 0.0
        return EachLimit(none, np.full(count, slope), np.full(count, math.inf), none)

    def _logs(self, rounds: int, G: Floats, Q: Floats) -> Floats:
        """log2 exp(e q_i); that of a limit without a slope is 0."""
        reach = np.where(G > 0.0, self.c * G * self.K.diameter, math.inf)
        grown: Floats = self._growth(rounds) * Q / np.where(reach > 0.0, reach, math.inf)
        return grown / lyapunov._LN2

    def _weights(self, loss: float, G: Floats, logs: Floats, exponent: int) -> Floats:
        """w_i in units of 2^exponent, 0 while a limit has no slope."""
        there = (G > 0.0) & (self.K.diameter > 0.0)
        weights = lyapunov.THETA * _ratios(loss, G) * 2.0 ** (logs - exponent)
        return np.where(there, weights, 0.0)

    def _current_weight(self, dual: DualState) -> float:
        """The largest."""
        return 0.0 if dual.each is None else float(self._current(dual, dual.each).max())

    def limit_prices(self, dual: DualState) -> Floats | None:
        if dual.each is None:
            return None
        V = math.ldexp(1.0 / self.caution, -dual.exponent)
        current = self._current(dual, dual.each)
        return current / V if V > 0.0 else np.where(current > 0.0, np.inf, 0.0)

    def _current(self, dual: DualState, each: EachLimit) -> Floats:
        logs = self._logs(dual.rounds, each.slopes, each.violations)
        return self._weights(dual.slopes.loss, each.slopes, logs, dual.exponent)

    def offset_price(self, dual: DualState, feedback: FirstOrder) -> float:
        """What the offsets of rounds weigh after the last one, in units of the loss."""
        limits, V = limits_of(feedback), math.ldexp(1.0 / self.caution, -dual.exponent)
        if dual.each is None or not limits.offsets.any():
            return feedback.loss_offset
        price = float(self._current(dual, dual.each)[limits.which] @ limits.offsets)
        return feedback.loss_offset + (price / V if V > 0.0 else math.copysign(math.inf, price))

    def _violation_at_most(self, dual: DualState, most: float) -> float:
        each = dual.each
        assert each is not None
        made = each.least_ratios < math.inf
        u = self.c * each.slopes[made] * self.K.diameter / self._growth(dual.rounds)
        r = lyapunov.THETA * each.least_ratios[made]
        scaled = np.ldexp(r, -dual.exponent)
        lam = _filled(scaled, u, most)
        logs = np.log(lam / r) + dual.exponent * lyapunov._LN2
        together = float((u * logs)[scaled < lam].sum()) + float(each.violations[~made].sum())
        return dual.carried + min(together, float(self._each_at_most(dual, most).sum()))

    def _each_at_most(self, dual: DualState, most: float) -> Floats:
        each = dual.each
        assert each is not None
        found = np.zeros(len(each.violations))
        for i in np.flatnonzero(each.violations > 0.0).tolist():
            paid = most - (dual.paid - float(each.paid[i]))
            slope, least_ratio = float(each.slopes[i]), float(each.least_ratios[i])
            found[i] = (
                self._at_most(dual, slope, least_ratio, paid, 0.0)
                if least_ratio < math.inf
                else each.violations[i]
            )
        return found

    def guaranteed(self, c_base: float, limits: int | None = None) -> Bound:
        if limits is None:
            return Bound(
                None,
                None,
                "With a weight for each limit a guarantee needs their number, as in "
                "guarantee(limits=3); without it bounds are measured.",
            )
        return self._guaranteed(c_base, limits, _share(limits))

    def each_bound(self, dual: DualState) -> tuple[float | None, ...]:
        """The most that each limit was broken by, as `bound` has it for all of them; None where
        that is unknown.
        """
        if dual.each is None:
            return ()
        most = self._most(dual)
        if most is None:
            return (None,) * len(dual.each.violations)
        return tuple(self._each_at_most(dual, most).tolist())


def _ratios(loss: float, G: Floats) -> Floats:
    """a G_f/G_i, with 1 for G_f/G_i while no loss has had a slope; a where G_i is 0."""
    known = (loss > 0.0) & (G > 0.0)
    return _share(len(G)) * np.where(known, loss / np.where(known, G, 1.0), 1.0)


def _filled(r: Floats, u: Floats, most: float) -> float:
    """lam with sum_i u_i (lam - r_i)^+ = most."""
    order = np.argsort(r)
    widths, used = np.cumsum(u[order]), np.cumsum((u * r)[order])
    levels = (most + used) / widths
    above = np.append(r[order][1:], math.inf)
    return float(levels[np.argmax(levels <= above)])


def _share(limits: int) -> float:
    return 1.0 if limits == 1 else SHARE


def require_each(dual: DualState) -> None:
    """Refuse, by a ValueError, what no weights of limits have left."""
    if dual.each is None:
        return
    shapes = {array.shape for array in dual.each}
    if len(shapes) > 1 or len(next(iter(shapes))) != 1:
        raise ValueError("what its ledger has of each limit is not of as many limits")
    if not all((array >= 0.0).all() for array in dual.each):
        raise ValueError("what its ledger has of a limit is below 0")


def limit_rows(
    weights: LyapunovWeights, dual: DualState, names: tuple[str, ...]
) -> tuple[LimitBound, ...]:
    """One row a limit, by their names where these are known; none without weights of their own."""
    if not isinstance(weights, LimitWeights) or dual.each is None:
        return ()
    violations, bounds = dual.each.violations.tolist(), weights.each_bound(dual)
    if len(names) != len(bounds):
        names = tuple(f"limit {i + 1}" for i in range(len(bounds)))
    return tuple(map(LimitBound, names, violations, bounds))
