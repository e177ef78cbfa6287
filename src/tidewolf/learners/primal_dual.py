"""Primal-dual play, corrected and unit-free  (after Garber & Kretzu 2024, Algorithm 4).

    block of n <= b rounds at x, gradients at x within aff(K):
    y    <-  ball( y - eta R sum_t (grad f_t/G_f + lam grad g_t^+/G_g) )                  (primal)
    x, y <-  ActiveSet(y from x), |x - y|^2 <= tol R^2, then nearer,
             spending oracle calls from the bank                                          (feasible)
    lam  <-  max(0, lam + nu sum_t (g_t^+/(G_g R) - theta lam))                           (dual)

With T rounds and B oracle calls a round: b = 1.46 sqrt(T/B), eta = 1/sqrt(2 b T),
nu = 1/(2 sqrt(b T)), tol = 8/(B b - 4), which B b calls always reach, and theta the least number
with

    theta/2 >= eta b + nu b theta^2/2 + sqrt(tol)                                         (C)

(1/2 where there is none). What a block leaves in the bank brings x nearer still, to |x - y|^2 <=
`tolerance` R^2; blocks too short for a tol below 1, which would freeze the start, go for that at
once and let the budget rule.
G_f and G_g are given, or the largest slopes of a block seen so far. A last, shorter block is
followed by no projection.

`promise()` is known beforehand, for given G_f, G_g and T where (C) has a root, if some point keeps
every constraint:

    regret <= A G_f R,   A = 1/(2 eta) + (eta + 2 nu) b T + 1.25 sqrt(tol) T,
    violation <= sqrt( 2 (theta T + 1/nu) (A + 2T) ) G_g R.

`bound(record)` is the measured one of methods/steps/saddle.py, which needs none of that and is
never above the promise. With running G_f the regret of block m is a price times its own G_f, and a
G_f that grows costs (G_f' - G_f) D_m^2/(2 eta R), D_m = min(2R, D + |x_m - y_m|), as in
methods/steps/adagrad.py; the violation is at most G_g R sum q_m for the last G_g.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, final

from tidewolf.core.arrays import frozen
from tidewolf.core.feedback import FirstOrder
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Array
from tidewolf.methods.base import Bound, Companion, Learner, Record
from tidewolf.methods.blocks import BlockLearner, opened, slopes_with
from tidewolf.methods.settings import passed_horizon, settle
from tidewolf.methods.steps.adagrad import into_ball
from tidewolf.methods.steps.feasible import calls_in, feasible
from tidewolf.methods.steps.lyapunov import FIRST_HORIZON
from tidewolf.methods.steps.saddle import (
    HOPELESS,
    damping,
    kept_possible,
    saddle_step,
    violation_bound,
)
from tidewolf.methods.steps.slopes import within
from tidewolf.projection import ActiveSet

if TYPE_CHECKING:
    from tidewolf.learners.theorem.primal_dual import TheoremPrimalDual

_THETA = 0.5
"""The damping where condition (C) has no root."""


class Steps(NamedTuple):
    """The settings of a stretch, in units R = G_f = G_g = 1."""

    block: int
    eta: float
    nu: float
    theta: float
    tol: float | None
    """None where the budget alone rules"""
    root: bool
    """whether theta is a root of condition (C)"""


def steps_for(T: int, B: float, block: int | None = None) -> Steps:
    """The settings for T rounds with B oracle calls a round, and blocks of a given length if one is
    given.
    """
    b = max(1, min(T, block or round(1.46 * math.sqrt(T / B))))
    eta, nu = 1.0 / math.sqrt(2.0 * b * T), 0.5 / math.sqrt(b * T)
    tol = 8.0 / (B * b - 4.0) if B * b > 12.0 else None
    theta = damping(b, eta, nu, math.sqrt(tol or 0.0))
    return Steps(b, eta, nu, theta or _THETA, tol, theta is not None)


class State(NamedTuple):
    """Where it stands, the open block, the stretch it is in, the slopes, and the measured
    bounds.
    """

    t: int
    active: ActiveSet
    aimed: Array
    """where y was before the last projection"""
    y: Array
    lam: float
    open: FirstOrder
    horizon: int
    began: int
    loss_slope: float
    constraint_slope: float
    priced_slope: float
    """the G_f that this stretch's regret bound has paid for"""
    regret_bound: float
    energy: float
    settled_regret: float
    settled_violation: float
    distance: float
    bank: float
    calls: int


@final
@dataclass(frozen=True, eq=False, repr=False)
class PrimalDual(BlockLearner[State]):
    """The paper's primal-dual learner with unit-free steps and a budget of oracle calls;
    `PrimalDual.theorem` is the paper's own.
    """

    needs: ClassVar = FirstOrder
    state_type: ClassVar = State
    exponents: ClassVar = (3 / 4, 7 / 8)

    K: HasLMO
    horizon: int | None = None
    calls_per_round: float = 1.0
    loss_lipschitz: float | None = None
    constraint_lipschitz: float | None = None
    block: int | None = None
    tolerance: float = 1e-3
    """|x - y|^2 that calls left over are spent on, as a share of radius^2"""

    def __post_init__(self) -> None:
        settle(self)

    @staticmethod
    def theorem(
        K: HasLMO,
        *,
        horizon: int,
        loss_lipschitz: float,
        constraint_lipschitz: float,
        start: Array | None = None,
    ) -> TheoremPrimalDual:
        """The paper's constants to the letter; warns where the horizon is too short for them to do
        or to promise anything.
        """
        from tidewolf.learners.theorem.primal_dual import TheoremPrimalDual

        learner = TheoremPrimalDual(K, horizon, loss_lipschitz, constraint_lipschitz, start)
        learner.warn()
        return learner

    @property
    def hard_set(self) -> HasLMO:
        return self.K

    def start(self) -> State:
        active = ActiveSet.start(self.K)
        return State(
            t=0,
            active=active,
            aimed=active.x,
            y=active.x,
            lam=0.0,
            open=opened(self.K.center),
            horizon=self.horizon or FIRST_HORIZON,
            began=0,
            loss_slope=self.loss_lipschitz or 0.0,
            constraint_slope=self.constraint_lipschitz or 0.0,
            priced_slope=0.0,
            regret_bound=0.0,
            energy=0.0,
            settled_regret=0.0,
            settled_violation=0.0,
            distance=0.0,
            bank=0.0,
            calls=0,
        )

    def act(self, state: State) -> Array:
        return state.active.x

    def _end(self, state: State) -> int:
        return state.began + state.horizon

    def _length(self, state: State) -> int:
        return self._steps(state.horizon).block

    def _closed(self, state: State, block: FirstOrder) -> State:
        return self._projected(self._stepped(state, block))

    def _stepped(self, state: State, block: FirstOrder) -> State:
        """The primal and the dual step at the end of a block, from its sums, and what they add to
        the bounds.
        """
        K, s, R, n = self.K, self._steps(state.horizon), self._R, block.rounds
        grad_f, slope_f = within(
            K,
            "loss",
            block.loss_gradient,
            n,
            self.loss_lipschitz,
            max(state.loss_slope, block.loss_slope),
        )
        known = max(state.constraint_slope, block.constraint_slope)
        grad_g, slope_g = within(
            K, "constraint", block.constraint_gradient, n, self.constraint_lipschitz, known
        )
        G_f, G_g = max(state.loss_slope, slope_f), max(state.constraint_slope, slope_g)

        d = grad_f / (G_f or 1.0) + (state.lam / (G_g or 1.0)) * grad_g
        q, hopeless = kept_possible(block.violation, n * G_g * K.diameter, K.center)
        y, lam, price, energy = saddle_step(
            state.active.x,
            state.y,
            state.lam,
            d,
            q / ((G_g or 1.0) * R),
            n,
            s.eta,
            s.nu,
            s.theta,
            R,
        )
        at_center = state.t == state.open.rounds
        reach = K.radius if at_center else min(2.0 * K.radius, K.diameter + state.distance)
        growth = (G_f - state.priced_slope) * reach * (reach / R) / (2.0 * s.eta)
        return state._replace(
            t=state.t + n - state.open.rounds,
            y=into_ball(y, K.center, K.radius),
            lam=lam,
            open=opened(K.center),
            loss_slope=G_f,
            constraint_slope=G_g,
            priced_slope=G_f,
            regret_bound=state.regret_bound + growth + G_f * R * price,
            energy=math.inf if hopeless else state.energy + energy,
            bank=state.bank + self.calls_per_round * n,
        )

    def _projected(self, state: State) -> State:
        """A member near the new y; after the last block none is needed, as whoever plays on starts
        over.
        """
        if state.t == state.began + state.horizon:
            return state._replace(aimed=state.active.x, y=state.active.x, distance=0.0)
        aimed = frozen(state.y)
        active, y, distance, calls = feasible(
            state.active,
            self.K,
            aimed,
            self._promised(state),
            self.tolerance * self._R**2,
            state.bank,
        )
        bank, calls = state.bank - calls, state.calls + calls
        return state._replace(
            active=active, aimed=aimed, y=y, distance=distance, bank=bank, calls=calls
        )

    def _promised(self, state: State) -> float:
        """The |x - y|^2 that the calls of a block always reach; where there is none, that which is
        aimed at.
        """
        return (self._steps(state.horizon).tol or self.tolerance) * self._R**2

    def _restarted(self, state: State) -> State:
        """The same point with a clean slate and twice the horizon; the slopes stay known, and what
        the stretch may have cost is settled.
        """
        regret, violation = self._stretch_bound(state)
        return self.start()._replace(
            t=state.t,
            active=state.active,
            aimed=state.active.x,
            y=state.active.x,
            horizon=2 * state.horizon,
            began=state.t,
            loss_slope=state.loss_slope,
            constraint_slope=state.constraint_slope,
            settled_regret=state.settled_regret + regret,
            settled_violation=state.settled_violation + violation,
            bank=state.bank,
            calls=state.calls,
        )

    def _stretch_bound(self, state: State) -> tuple[float, float]:
        """Regret and violation since the last restart are at most this."""
        K, s, R, rounds = self.K, self._steps(state.horizon), self._R, state.t - state.began
        first = (min(K.diameter, 2.0 * K.radius) if state.began else K.radius) / R
        E = first**2 / (2.0 * s.eta) + state.energy + K.diameter / R * rounds
        violation = violation_bound(E, rounds, s.nu, s.theta)
        return (
            state.regret_bound,
            state.constraint_slope * R * violation if violation < math.inf else math.inf,
        )

    def _require(self, state: State, seen: FirstOrder) -> None:
        G_f, G_g = (
            max(state.loss_slope, state.open.loss_slope),
            max(state.constraint_slope, state.open.constraint_slope),
        )
        within(self.K, "loss", seen.loss_gradient, seen.rounds, self.loss_lipschitz, G_f)
        within(
            self.K,
            "constraint",
            seen.constraint_gradient,
            seen.rounds,
            self.constraint_lipschitz,
            G_g,
        )

    def _steps(self, horizon: int) -> Steps:
        return steps_for(horizon, self.calls_per_round, self.block)

    @property
    def _R(self) -> float:
        """The unit of length; a set of one point has none."""
        return self.K.radius or 1.0

    def promise(self) -> Bound:
        """What is known before the first round of a run of `horizon` rounds."""
        if self.horizon is None or self.loss_lipschitz is None or self.constraint_lipschitz is None:
            return Bound(
                None,
                None,
                "A promise needs horizon, loss_lipschitz and constraint_lipschitz; without them "
                "bounds are measured.",
            )
        b, eta, nu, theta, tol, root = self._steps(self.horizon)
        if tol is None or not root:
            spent = (
                f"{self.horizon} rounds in blocks of {b} with {self.calls_per_round:g} oracle "
                "calls a round"
            )
            return Bound(
                None,
                None,
                f"With {spent} the theorem's condition has no solution: bounds are measured, not "
                "promised.",
            )
        T, G_f, G_g, R = self.horizon, self.loss_lipschitz, self.constraint_lipschitz, self.K.radius
        A = 1.0 / (2.0 * eta) + (eta + 2.0 * nu) * b * T + 1.25 * math.sqrt(tol) * T
        return Bound(A * G_f * R, violation_bound(A + 2.0 * T, T, nu, theta) * G_g * R)

    def bound(self, record: Record) -> Bound:
        state: State = record.final_state
        if state.open.rounds:  # what holds for a block holds for the part of it that was played
            state = self._stepped(state, state.open)
        regret, violation = self._stretch_bound(state)
        regret, violation = regret + state.settled_regret, violation + state.settled_violation
        return Bound(regret, violation) if violation < math.inf else Bound(regret, None, HOPELESS)

    def slopes(self, state: State) -> tuple[float, float]:
        return slopes_with(self.K, state.open, state.loss_slope, state.constraint_slope)

    def companion(self, state: State) -> Companion:
        return Companion(
            self.K,
            state.active.x,
            state.aimed,
            state.y,
            self._promised(state),
            calls_in(state.bank),
        )

    def notes(self, state: State) -> tuple[str, ...]:
        return passed_horizon(self.horizon, state)

    @classmethod
    def examples(cls, K: HasLMO, horizon: int) -> Sequence[Learner[Any]]:
        return (
            cls(K, horizon=horizon),
            cls(K, horizon=horizon, block=2, calls_per_round=0.7),
            cls(K, horizon=max(1, horizon // 3), calls_per_round=5.0),
            cls(K, block=3),
        )
