"""Primal-dual play with exact projections
(after Yi et al. 2021): descent in x, damped ascent in one multiplier.

    x    <-  Proj_K( x - eta R (grad f_t/G_f + lam grad g_t^+/G_g) )
    lam  <-  max(0, lam + nu (g_t^+/(G_g R) - theta lam)),       gradients and breach at the old x

eta = 1/sqrt(2T), nu = k/(2 sqrt T), theta = theta_1/k, with theta_1 the least number with
theta_1/2 >= eta + theta_1^2/(4 sqrt T) (1/2 where there is none, T < 3). `caution` moves
k = caution/10: after the same breaches the weight of constraints against losses is proportional to
caution, as with V = T^{-p}/caution in the learners with Lyapunov weights, and the default is k = 1,
for which theory has its best constants. G_f and G_g are given, or the largest slopes so far.

Regret O(sqrt T), violation O(T^{3/4}), measured as in methods/steps/saddle.py, which holds for
every k; a G_f that grows costs (G_f' - G_f) D^2/(2 eta R) more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, final

from tidewolf.core.arrays import frozen
from tidewolf.core.feedback import FirstOrder, require_first_order
from tidewolf.core.types import Array
from tidewolf.methods.base import Bound, Learner, Record
from tidewolf.methods.settings import passed_horizon, settle
from tidewolf.methods.steps.lyapunov import DEFAULT_CAUTION, FIRST_HORIZON
from tidewolf.methods.steps.saddle import (
    HOPELESS,
    damping,
    kept_possible,
    saddle_step,
    violation_bound,
)
from tidewolf.methods.steps.slopes import within
from tidewolf.rivals.exact import ExactProjection
from tidewolf.sets.base import ConvexSet


class Steps(NamedTuple):
    """The settings of a stretch, in units R = G_f = G_g = 1."""

    eta: float
    nu: float
    theta: float


class State(NamedTuple):
    """Where it stands, the stretch it is in, the slopes, and the measured bounds."""

    t: int
    x: Array
    lam: float
    horizon: int
    began: int
    loss_slope: float
    constraint_slope: float
    priced_slope: float
    """the G_f that this stretch's regret bound has paid for"""
    regret_bound: float
    """since the first round"""
    energy: float
    settled_violation: float
    calls: int = 0
    distance: float = 0.0


@final
@dataclass(frozen=True, eq=False, repr=False)
class ProjectedPrimalDual(Learner[State]):
    """Primal-dual play, the textbook's way: an exact projection a round."""

    needs: ClassVar = FirstOrder
    state_type: ClassVar = State

    K: ConvexSet
    horizon: int | None = None
    caution: float = DEFAULT_CAUTION
    loss_lipschitz: float | None = None
    constraint_lipschitz: float | None = None

    @classmethod
    def published(cls, K: ConvexSet, *, horizon: int) -> ProjectedPrimalDual:
        """Steps and damping of T^{-1/2} each: the dual step is that, the others sqrt 2 less;
        without units, which the paper has.
        """
        return cls(K, horizon=horizon, caution=2.0 * DEFAULT_CAUTION)

    def __post_init__(self) -> None:
        settle(self)
        ExactProjection(self.K)  # refuses a set it cannot project on

    @property
    def hard_set(self) -> ConvexSet:
        return self.K

    def start(self) -> State:
        slopes = self.loss_lipschitz or 0.0, self.constraint_lipschitz or 0.0
        return State(
            0, self.K.center, 0.0, self.horizon or FIRST_HORIZON, 0, *slopes, 0.0, 0.0, 0.0, 0.0
        )

    def act(self, state: State) -> Array:
        return state.x

    def rounds_left(self, state: State) -> int:
        return 1

    def update(self, state: State, seen: FirstOrder) -> State:
        require_first_order(seen, self.K.shape, 1)
        if state.t == state.began + state.horizon:
            state = self._restarted(state)
        K, R, x, (eta, nu, theta) = self.K, self._R, state.x, self._steps(state.horizon)
        grad_f, slope_f = within(
            K, "loss", seen.loss_gradient, 1, self.loss_lipschitz, state.loss_slope
        )
        G_f, G_g = max(state.loss_slope, slope_f), state.constraint_slope
        grad_g, slope_g = within(
            K, "constraint", seen.constraint_gradient, 1, self.constraint_lipschitz, G_g
        )
        G_g = max(G_g, slope_g)

        d = grad_f / (G_f or 1.0) + (state.lam / (G_g or 1.0)) * grad_g
        q, hopeless = kept_possible(seen.violation, G_g * K.diameter, K.center)
        y, lam, price, energy = saddle_step(
            x, x, state.lam, d, q / ((G_g or 1.0) * R), 1, eta, nu, theta, R
        )
        growth = (G_f - state.priced_slope) * K.diameter * (K.diameter / R) / (2.0 * eta)
        return state._replace(
            t=state.t + 1,
            x=frozen(self._project(y)),
            lam=lam,
            loss_slope=G_f,
            constraint_slope=G_g,
            priced_slope=G_f,
            regret_bound=state.regret_bound + growth + G_f * R * price,
            energy=math.inf if hopeless else state.energy + energy,
        )

    def _restarted(self, state: State) -> State:
        """The same point with a clean slate and twice the horizon; the slopes and the regret stay,
        and the violation is settled.
        """
        return state._replace(
            lam=0.0,
            horizon=2 * state.horizon,
            began=state.t,
            priced_slope=0.0,
            energy=0.0,
            settled_violation=state.settled_violation + self._violation_bound(state),
        )

    def _violation_bound(self, state: State) -> float:
        """Since the last restart."""
        K, R, rounds, (eta, nu, theta) = (
            self.K,
            self._R,
            state.t - state.began,
            self._steps(state.horizon),
        )
        D = K.diameter / R
        violation = violation_bound(
            D**2 / (2.0 * eta) + state.energy + D * rounds, rounds, nu, theta
        )
        return state.constraint_slope * R * violation if violation < math.inf else math.inf

    def _steps(self, T: int) -> Steps:
        k, eta, nu = self.caution / DEFAULT_CAUTION, 1.0 / math.sqrt(2.0 * T), 0.5 / math.sqrt(T)
        return Steps(eta, k * nu, (damping(1, eta, nu, 0.0) or 0.5) / k)

    @property
    def _R(self) -> float:
        """The unit of length; a set of one point has none."""
        return self.K.radius or 1.0

    @cached_property
    def _project(self) -> ExactProjection:
        return ExactProjection(self.K)

    def bound(self, record: Record) -> Bound:
        state: State = record.final_state
        violation = state.settled_violation + self._violation_bound(state)
        return (
            Bound(state.regret_bound, violation)
            if violation < math.inf
            else Bound(state.regret_bound, None, HOPELESS)
        )

    def slopes(self, state: State) -> tuple[float, float]:
        return state.loss_slope, state.constraint_slope

    def notes(self, state: State) -> tuple[str, ...]:
        return ("It projects exactly and asks no oracle.", *passed_horizon(self.horizon, state))

    @classmethod
    def examples(cls, K: Any, horizon: int) -> Sequence[Learner[Any]]:
        return (
            cls(K, horizon=horizon),
            cls.published(K, horizon=max(1, horizon // 3)),
            cls(K, caution=1.0),
        )
