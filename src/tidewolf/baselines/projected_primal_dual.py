"""Primal-dual play with exact projections
(after Yi et al. 2021): descent in x, damped ascent in one multiplier.

    x    <-  Proj_K( x - eta R (grad f_t/G_f + lam grad g_t^+/G_g) )
    lam  <-  max(0, lam + nu (g_t^+/(G_g R) - theta lam)),       gradients and violation at the old
    x

eta = 1/sqrt(2T), nu = k/(2 sqrt T), theta = theta_1/k, with theta_1 the least number with
theta_1/2 >= eta + theta_1^2/(4 sqrt T) (1/2 if there is none, T < 3). `caution` moves
k = caution/10: after the same violations the weight of constraints against losses is proportional
to caution, as with V = T^{-p}/caution in the learners with Lyapunov weights, and the default is k =
1, for which theory has its best constants. G_f and G_g are given, or the largest slopes so far.

Budgets are priced by dual ascent as well (methods/budget.py).

Regret O(sqrt T), violation O(T^{3/4}), measured as in methods/steps/saddle.py, which holds for
every k; a G_f that grows costs (G_f' - G_f) D^2/(2 eta R) more.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self, final

from tidewolf.baselines.exact import ProjectableK, ProjectsExactly
from tidewolf.core.arrays import frozen
from tidewolf.core.feedback import FirstOrder
from tidewolf.core.types import Array
from tidewolf.methods import base, clock, late
from tidewolf.methods.budget import BudgetSums, priced_spend
from tidewolf.methods.settings import DEFAULT_CAUTION
from tidewolf.methods.steps.saddle import SaddleSteps, SaddleSums, Units, damping, violation_bound
from tidewolf.methods.steps.slopes import Slopes, tangent_gradients, unit_length
from tidewolf.sets.base import ConvexSet


class State(NamedTuple):
    t: int
    x: Array
    epoch: clock.Epoch
    slopes: Slopes
    # of this epoch, but for its regret bound, which is one since the first round
    saddle: SaddleSums = SaddleSums()
    calls: int = 0
    distance: float = 0.0
    pending: tuple[late.Deferred, ...] = ()
    lost: int = 0
    overrides: late.Overrides = late.Overrides()
    budgets: BudgetSums = BudgetSums()


@final
@dataclass(frozen=True, eq=False, repr=False)
class ProjectedPrimalDual(ProjectsExactly[State], clock.Cautious[State], clock.EveryRound[State]):
    """The textbook primal-dual method, with an exact projection per round.

    Parameters
    ----------
    K : ConvexSet
        The set that every played point belongs to; it has a projection or a linear description.
    horizon : int, optional
        The number of rounds T. None: 256, doubled whenever they are over.
    caution : float, default 10.0
        The weight of violations against losses: larger values violate constraints less and cost
        more.
    loss_lipschitz : float, optional
        The Lipschitz constant of the losses; steeper losses are refused. None: estimated from
        the feedback, and there is no guarantee before the run.
    constraint_lipschitz : float, optional
        The Lipschitz constant of the constraints; steeper ones are refused. None: estimated
        from the feedback, and there is no guarantee before the run.

    Examples
    --------
    Three options, the cheapest of which may take at most half:

    >>> K = tw.sets.Simplex(3)
    >>> losses = tw.functions.Linear(np.tile([2.0, 1.0, 0.0], (50, 1)))
    >>> limits = tw.functions.Affine(np.tile([0.0, 0.0, 1.0], (50, 1)), np.full(50, 0.5))
    >>> run = tw.run(tw.baselines.ProjectedPrimalDual(K, horizon=50), tw.Stream(losses, limits))
    >>> int(run.oracle_calls)
    0
    """

    state_type: ClassVar = State

    K: ProjectableK

    @classmethod
    def published(cls, K: ConvexSet, *, horizon: int) -> Self:
        """Steps and damping of T^{-1/2} each: the dual step is that, the others sqrt 2 less;
        without units, which the paper has.
        """
        return cls(K, horizon=horizon, caution=2.0 * DEFAULT_CAUTION)

    def start(self) -> State:
        return State(0, self.K.center, self.first_epoch(), self.given_slopes.initial)

    def taken(self, state: State, feedback: FirstOrder) -> State:
        budgets, feedback = priced_spend(self.K, state.budgets, feedback, state.x, self.caution)
        return super().taken(state._replace(budgets=budgets), feedback)

    def step(self, state: State, block: FirstOrder) -> State:
        K, x, s = self.K, state.x, self._steps(state.epoch.horizon)
        gradients = tangent_gradients(K, block, self.given_slopes, state.slopes)
        unit = Units(unit_length(K), *(slope or 1.0 for slope in gradients.slopes))
        y, saddle = state.saddle.stepped(K, x, x, gradients, block, s, unit, K.diameter)
        x = frozen(self.exact_projection(y))
        return state._replace(x=x, slopes=gradients.slopes, saddle=saddle)

    def renew(self, state: State) -> State:
        return state._replace(saddle=SaddleSums(regret_bound=state.saddle.regret_bound))

    def epoch_bound(self, state: State) -> tuple[float, float]:
        """Of the violation alone: the regret is counted since the first round."""
        s, rounds = self._steps(state.epoch.horizon), state.t - state.epoch.began
        D = self.K.diameter / unit_length(self.K)
        E = D**2 / (2.0 * s.eta) + state.saddle.energy + D * rounds
        size = state.slopes.constraint * unit_length(self.K)
        return 0.0, violation_bound(E, rounds, s.nu, s.theta, size)

    def _steps(self, T: int) -> SaddleSteps:
        k, eta, nu = self.caution / DEFAULT_CAUTION, 1.0 / math.sqrt(2.0 * T), 0.5 / math.sqrt(T)
        return SaddleSteps(eta, k * nu, (damping(1, eta, nu, 0.0) or 0.5) / k)

    def bound(self, record: base.Record) -> base.Bound:
        state: State = record.final_state
        return state.budgets.less_paid(
            state.epoch.bound(state.saddle.regret_bound, self.epoch_bound(state)[1])
        )

    def limit_price(self, state: State) -> float:
        return state.saddle.lam * state.slopes.ratio

    @classmethod
    def examples(cls, K: Any, horizon: int) -> Sequence[base.Learner[Any]]:
        published = cls.published(K, horizon=max(1, horizon // 3))
        return cls(K, horizon=horizon), published, cls(K, caution=1.0)
