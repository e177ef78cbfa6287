"""Drift-plus-penalty play with approximately feasible projections: guarantees on every interval
(Garber & Kretzu 2024, Algorithm 3, Theorem 3.1).

    block of n <= b rounds at x:
    d    =   mean of grad f_t(y) within aff(K)
    y    <-  argmin_{ball, aff(K)}  <d, . - y> + delta sum_t g_t^+
             + alpha/2 |. - y|^2                                                (drift plus penalty)
    x, y <-  AFP(y from x), |x - y|^2 <= 3 eps                                  (feasible)

The theorem's settings, `DriftPlusPenalty.theorem(...)`, are

    b = floor(T^{1/2}),   delta = T^{1/2},   alpha = (G_f/R) T^{1/4},   eps = 61 R^2 T^{-1/2} ln T.

They depend on the units and do not move unless T is in the hundred thousands. Settings that are not
given are free of units: alpha = (G_f/2R) sqrt(T/b), delta = (G_f/G_g) sqrt(T) and, with B oracle
calls per round, b = 2.6 sqrt(T/B) and projections to |x - y|^2 <= tol R^2, tol = 8/(B b - 4), which
B b calls always reach; calls that are left bring x nearer, to `tolerance` R^2. G_f and G_g are
given, or the largest slopes of a block so far. Errata of the paper: the ball is around the center
and the minimum within aff(K), a last, shorter block is followed by no projection, and the
projection tests the distance before it calls the oracle.

The step is exact to a certified gap (methods/steps/penalty.py), which is kept for every block and
enters the bound. No point has to satisfy every constraint: for any interval whose own constraints
some point keeps, `bound_between` is the measured bound of methods/steps/drift.py, and `bound` that
of the whole run. `guarantee()` is known beforehand for given G_f, G_g and T, M = number of blocks,
every step exact, |x - y| <= distance, and holds on every interval:

    regret    <= 4 b G_f R + 2 b R^2 alpha + G_f^2 T/(2 alpha) + G_f distance T
    violation <= 2 G_g sqrt( T b (G_f R M/alpha + R^2) )
                 + ( 2 alpha R^2 + M (G_f^2/(2 alpha) + 2 G_f R) )/delta
                 + 4 b G_g R + G_g distance T.

Losses are evaluated at y and constraints in the ball, so both outside K.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple, final

import numpy as np

from tidewolf.core.arrays import frozen, namespace, ones, to_numpy
from tidewolf.core.errors import NotFinite
from tidewolf.core.feedback import FullInformation
from tidewolf.methods import base, clock, paper, settings
from tidewolf.methods.steps import drift
from tidewolf.methods.steps.slopes import Slopes, tangent_part, tangent_slopes, unit_length


class DriftSlopes(NamedTuple):
    loss: float  # G_f: given, or the largest of a block at y
    constraint: float  # G_g: given, or the largest of a round at y
    steepest_loss: float = 0.0  # largest slope of a round at the point played
    steepest_constraint: float = 0.0  # the same among the rounds with a violation

    @property
    def largest(self) -> Slopes:
        return Slopes(*map(max, self[:2], self[2:]))


class State(NamedTuple):
    t: int
    point: paper.ProjectedPoint
    open: drift.DriftBlock
    epoch: clock.Epoch
    slopes: DriftSlopes
    oracle_budget: float = 0.0
    calls: int = 0
    tally: drift.Tally = drift.Tally()

    @property
    def distance(self) -> float:
        return self.point.distance


@settings.takes_start
@final
@dataclass(frozen=True, eq=False, repr=False)
class DriftPlusPenalty(paper.PaperLearner[State]):
    """The paper's drift-plus-penalty learner, whose bounds hold on every interval: with its own
    settings as printed, or unit-free with a budget of oracle calls.

    Parameters
    ----------
    K : HasLMO
        The hard constraints: every decision is a point of this set.
    horizon : int, optional
        The number of rounds T. None: 256, doubled whenever they are over.
    calls_per_round : float, optional
        The most oracle calls per round, on average over the rounds so far; unspent calls are
        kept. None: 1, or with `eps` as many as the paper's projections need.
    loss_lipschitz : float, optional
        The Lipschitz constant of the losses; steeper losses are refused. None: estimated from
        the feedback, and there is no guarantee before the run.
    constraint_lipschitz : float, optional
        The Lipschitz constant of the constraints; steeper ones are refused. None: estimated
        from the feedback, and there is no guarantee before the run.
    block : int, optional
        Rounds per block, in which the decision is constant. None: chosen from the horizon and
        the calls.
    eps : float, optional
        Projections end at |x - y|^2 <= 3 eps. None: as near as calls allow.
    start_at : array, optional
        The first decision, such as what is installed now; may be given as `start`. None: the
        set's center.
    tolerance : float, default 0.001
        Unspent calls reduce |x - y|^2 to this share of radius^2.
    alpha : float, optional
        The weight of the squared distance in the step. None: unit-free.
    delta : float, optional
        The weight of the constraints in the step. None: unit-free.

    Examples
    --------
    Three options, the cheapest of which may take at most half:

    >>> K = tw.sets.Simplex(3)
    >>> losses = tw.functions.Linear(np.tile([2.0, 1.0, 0.0], (300, 1)))
    >>> limits = tw.functions.Affine(np.tile([0.0, 0.0, 1.0], (300, 1)), np.full(300, 0.5))
    >>> run = tw.run(tw.DriftPlusPenalty(K, horizon=300), tw.Stream(losses, limits))
    >>> bool(run.violations.mean() < 0.05)
    True
    """

    needs: ClassVar = FullInformation
    state_type: ClassVar = State
    printed: ClassVar = {"alpha": 1.0, "delta": 2.0}
    exponents: ClassVar = (0.75, 0.875)
    block_factor: ClassVar = 2.6

    tolerance: settings.Positive = 1e-3
    alpha: settings.AboveZero = None
    delta: settings.AboveZero = None

    def theorem_values(self, T: int) -> dict[str, float]:
        R, G_f = unit_length(self.K), self.loss_lipschitz or 0.0
        return {
            "block": math.isqrt(T),
            "alpha": G_f / R * T**0.25,
            "delta": math.sqrt(T),
            "eps": paper.theorem_eps(T, R),
        }

    def start(self) -> State:
        point = paper.ProjectedPoint.start(self.K, self.first_point)
        return State(
            0, point, self._no_sums, self.first_epoch(), DriftSlopes(*self.given_slopes.initial)
        )

    @cached_property
    def _no_sums(self) -> drift.DriftBlock:
        return drift.DriftBlock(frozen(namespace(self.K.center).zeros_like(self.K.center)))

    def weights(self, T: int, G_f: float, G_g: float) -> tuple[float, float]:
        """alpha and delta, in units in which the losses have slope 1."""
        b, R = self.block_for(T), unit_length(self.K)
        return (
            math.sqrt(T / b) / (2.0 * R) if self.alpha is None else self.alpha / G_f,
            math.sqrt(T) / G_g if self.delta is None else self.delta / G_f,
        )

    def update(self, state: State, feedback: FullInformation) -> State:
        state = self.in_epoch(state)
        left = self.rounds_left(state)
        drift.require_whole_functions(feedback, self.K, left, type(self).__name__)
        with np.errstate(all="ignore"):  # what overflows is refused with a sentence
            sums, slopes = self._with_rounds(state, feedback)
        state = state._replace(t=state.t + feedback.rounds, slopes=slopes)
        if feedback.rounds < left:
            limits = sums.limits.and_then(feedback.constraints)
            return state._replace(open=sums._replace(limits=limits))
        block = sums._replace(limits=sums.limits.with_last(feedback.constraints))
        return self.finish_block(state._replace(open=self._no_sums), block)

    def _with_rounds(
        self, state: State, feedback: FullInformation
    ) -> tuple[drift.DriftBlock, DriftSlopes]:
        """The sums of the open block with these rounds, but for their constraints, and the slopes;
        refused if a value or a slope is not finite.
        """
        K, given, (losses, constraints), n = self.K, self.given_slopes, feedback, feedback.rounds
        x, y, sums, slopes = state.point.x, state.point.y, state.open, state.slopes
        one, (G_f, G_g) = ones(n, x), slopes.largest
        gradient = losses.subgradient(y, one)
        tangent_part(K, "loss", gradient, n, given.loss, G_f)
        values = constraints.values(x)
        breached = to_numpy(values) > 0
        difference = float(np.sum(to_numpy(losses.values(x) - losses.values(y)), dtype=np.float64))
        slopes_x = tangent_slopes(K, "constraint", constraints, x, G_g)[breached]
        slopes_y = tangent_slopes(K, "constraint", constraints, y, G_g)
        steepest = float(np.max(tangent_slopes(K, "loss", losses, x, G_f)))
        if not np.isfinite([difference, steepest, *to_numpy(values), *slopes_x, *slopes_y]).all():
            raise NotFinite(
                "A loss or a constraint has a value or a slope that is no finite number at the "
                "points looked at."
            )
        if breached.any():
            total = constraints.subgradient(x, namespace(x).astype(values > 0, x.dtype))
            known, count = max(G_g, float(slopes_x.max())), int(breached.sum())
            tangent_part(K, "constraint", total, count, given.constraint, known)
        return sums._replace(
            rounds=sums.rounds + n,
            loss_gradient=frozen(sums.loss_gradient + gradient),
            difference=sums.difference + difference,
            breached_slopes=sums.breached_slopes + float(slopes_x.sum()),
        ), slopes._replace(
            constraint=given.constraint or max(slopes.constraint, float(slopes_y.max())),
            steepest_loss=max(slopes.steepest_loss, steepest),
            steepest_constraint=max(slopes.steepest_constraint, float(slopes_x.max(initial=0.0))),
        )

    def step(self, state: State, block: drift.DriftBlock) -> State:
        K, n, point, slopes = self.K, block.rounds, state.point, state.slopes
        given, known = self.loss_lipschitz, slopes.largest.loss
        gradient, slope = tangent_part(K, "loss", block.loss_gradient, n, given, known)
        G_f = max(slopes.loss, slope)
        alpha, delta = self.weights(state.epoch.horizon, G_f or 1.0, slopes.constraint or 1.0)
        d, reach = gradient / (G_f or 1.0) / n, self.reach(state, n)
        z, tally = drift.drift(
            K, block, d, point.y, point.distance, reach, G_f, alpha, delta, state.tally
        )
        slopes = slopes._replace(loss=G_f)
        return state._replace(point=point.moved_to(frozen(z)), slopes=slopes, tally=tally)

    def finest2(self, T: int) -> float:
        return self.tolerance * unit_length(self.K) ** 2

    def renew(self, state: State) -> State:
        return state._replace(tally=state.tally._replace(alpha=0.0, inverse_step=0.0))

    def guarantee(self) -> base.Bound:
        T, G_f, G_g = self.horizon, self.loss_lipschitz, self.constraint_lipschitz
        if T is None or G_f is None or G_g is None:
            return base.NEEDS_SLOPES
        b, R, distance2 = self.block_for(T), unit_length(self.K), self.known_distance2(T)
        if distance2 is None:
            return self.nothing_known(T)
        alpha, delta = (G_f * weight for weight in self.weights(T, G_f, G_g))
        M, distance = -(-T // b), math.sqrt(distance2)
        regret = 4.0 * b * G_f * R + 2.0 * b * R**2 * alpha
        regret += G_f**2 * T / (2.0 * alpha) + G_f * distance * T
        moves = 2.0 * G_g * (T * b * (G_f * R * M / alpha + R**2)) ** 0.5
        penalties = (2.0 * alpha * R**2 + M * (G_f**2 / (2.0 * alpha) + 2.0 * G_f * R)) / delta
        return base.Bound(regret, moves + penalties + 4.0 * b * G_g * R + G_g * distance * T)

    def slopes(self, state: State) -> Slopes:
        return Slopes(
            self.loss_lipschitz or state.slopes.steepest_loss,
            self.constraint_lipschitz or state.slopes.steepest_constraint,
        )

    def measures(self, state: State) -> tuple[float, ...]:
        return state.tally

    def _edge(self, state: State) -> tuple[float, float]:
        """What per round outside whole blocks costs at most, in regret and in violation: its slope
        at
        x times the diameter.
        """
        D, met = self.K.diameter, state.slopes
        return met.steepest_loss * D, met.steepest_constraint * D

    def bound(self, record: base.Record) -> base.Bound:
        state: State = record.final_state
        return drift.bound(state.tally, state.t, self._edge(state))

    def bound_between(self, record: base.Record, start: int, stop: int) -> base.Bound:
        return drift.bound_between(record, start, stop, self._edge(record.final_state))
