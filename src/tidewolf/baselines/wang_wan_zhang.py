"""Lyapunov weights on online Frank-Wolfe with a doubling guess
(Wang, Wan & Zhang 2025, OFW-TVC, arXiv 2501.16046): one call per round.

    g   =  V grad f_t + w grad g_t^+        by Lyapunov weights: c = 64, theta = 1/2, p = 3/4
    x  <-  online Frank-Wolfe (baselines/online_frank_wolfe.py) on g

Published for a known T with V = 1 beside w = Phi'(Q), that is V = T^{3/4} in the units of
methods/steps/lyapunov.py; `caution` moves V = 1/caution as in every learner here. Its Frank-Wolfe
needs T: past it, or without one, it restarts with twice as much, and the bounds of past epochs
are added up. Two things are kinder to it than its paper: the guess starts at the first gradient of
the surrogate, not at 1, and a step of 2/sqrt(t) is cut at 1. Regret O(T^{3/4}), violation
O(T^{3/4} log T).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self, final

from tidewolf.baselines.online_frank_wolfe import Leader, follow
from tidewolf.core import feedback, oracle
from tidewolf.core.arrays import as_count
from tidewolf.core.types import Array
from tidewolf.methods import base, clock, late
from tidewolf.methods.steps.lyapunov import DualState


class State(NamedTuple):
    t: int
    x: Array
    epoch: clock.Epoch
    dual: DualState  # since the last restart
    leader: Leader  # in units of 2^exponent of the dual state
    calls: int = 0
    distance: float = 0.0
    pending: tuple[late.Deferred, ...] = ()
    lost: int = 0
    overrides: late.Overrides = late.Overrides()


@final
@dataclass(frozen=True, eq=False, repr=False)
class WangWanZhang(clock.LyapunovLearner[State]):
    """Wang, Wan & Zhang's method: one oracle call per round.

    Parameters
    ----------
    K : HasLMO
        The hard constraints: every decision is a point of this set.
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
    >>> run = tw.run(tw.baselines.WangWanZhang(K, horizon=50), tw.Stream(losses, limits))
    >>> int(run.oracle_calls)
    50
    """

    state_type: ClassVar = State

    @classmethod
    def published(cls, K: oracle.HasLMO, *, horizon: int) -> Self:
        """V = 1, as in the paper."""
        return cls(K, horizon=horizon, caution=math.pow(as_count(horizon, "The horizon"), -0.75))

    def start(self) -> State:
        x = self.K.center
        return State(0, x, self.first_epoch(), self.weights.start(), Leader.start(x))

    def step(self, state: State, block: feedback.FirstOrder) -> State:
        weighed = self.weights_at(state).weigh(state.dual, block, state.x)
        leader, T = state.leader.in_units(weighed.unit), state.epoch.horizon
        x, leader, calls = follow(self.K, state.x, leader, *weighed.grad[:2], T)
        return state._replace(x=x, dual=weighed.dual, leader=leader, calls=state.calls + calls)

    def renew(self, state: State) -> State:
        """Slopes stay known."""
        return state._replace(
            dual=self.weights.start()._replace(slopes=state.dual.slopes), leader=state.leader.anew()
        )

    def epoch_bound(self, state: State) -> tuple[float, float]:
        regret, violation, _ = self.weights_at(state).bound(state.dual)
        return math.inf if regret is None else regret, math.inf if violation is None else violation

    def constants(self) -> tuple[float, float]:
        return 64.0, 0.75

    def bound(self, record: base.Record) -> base.Bound:
        state: State = record.final_state
        return state.epoch.bound(*self.epoch_bound(state))

    @classmethod
    def examples(cls, K: oracle.HasLMO, horizon: int) -> Sequence[base.Learner[Any]]:
        return (cls(K, horizon=horizon), cls.published(K, horizon=max(1, horizon // 3)), cls(K))
