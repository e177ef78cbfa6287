"""Lyapunov weights on projected AdaGrad
(Sinha & Vaze 2024, Optimal algorithms for OCO with adversarial constraints).

    g     =  V grad f_t + w grad g_t^+        by Lyapunov weights: c = 2, theta = 1/2, p = 1/2
    x    <-  Proj_K( x - D/sqrt(2 sum |g|^2) g )

Published for a known T with V = 1 beside w = Phi'(Q), that is V = sqrt(T) in the units of
methods/steps/lyapunov.py; `caution` moves V = 1/caution as in every learner here. Regret O(sqrt T),
violation O(sqrt T log T), at the price of an exact projection per round.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self, final

from tidewolf.baselines.exact import ProjectableK, ProjectsExactly
from tidewolf.core import arrays, feedback
from tidewolf.core.types import Array
from tidewolf.methods import base, clock, late
from tidewolf.methods.steps.lyapunov import DualState
from tidewolf.sets.base import ConvexSet


class State(NamedTuple):
    t: int
    x: Array
    dual: DualState
    square_sum: float = 0.0  # sum |g|^2, in units of 2^exponent of the dual state
    calls: int = 0
    distance: float = 0.0
    pending: tuple[late.Deferred, ...] = ()
    lost: int = 0
    overrides: late.Overrides = late.Overrides()


@final
@dataclass(frozen=True, eq=False, repr=False)
class SinhaVaze(ProjectsExactly[State], clock.LyapunovLearner[State]):
    """Sinha & Vaze's method, with an exact projection per round.

    Parameters
    ----------
    K : ConvexSet
        The set that every played point belongs to; it has a projection or a linear description.
    horizon : int, optional
        The number of rounds T; only a guarantee needs it. None: the anytime version, which
        never restarts and loses almost nothing. Unit: rounds.
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
    >>> losses = tw.functions.Linear(np.tile([2.0, 1.0, 0.0], (300, 1)))
    >>> limits = tw.functions.Affine(np.tile([0.0, 0.0, 1.0], (300, 1)), np.full(300, 0.5))
    >>> run = tw.run(tw.baselines.SinhaVaze(K), tw.Stream(losses, limits))
    >>> run.notes
    ('It projects exactly and asks no oracle.',)
    """

    state_type: ClassVar = State
    anytime: ClassVar = True
    exponents: ClassVar = (1 / 2, 1 / 2)

    K: ProjectableK

    @classmethod
    def published(cls, K: ConvexSet, *, horizon: int) -> Self:
        """V = 1, as in the paper."""
        return cls(K, horizon=horizon, caution=arrays.as_count(horizon, "The horizon") ** -0.5)

    def start(self) -> State:
        return State(0, self.K.center, self.weights.start())

    def step(self, state: State, block: feedback.FirstOrder) -> State:
        weighed = self.weights.weigh(state.dual, block, state.x)
        x, (g, norm2, *_) = state.x, weighed.grad
        S = state.square_sum * weighed.unit**2 + norm2
        if norm2 > 0.0:
            y = arrays.plus(x, -self.K.diameter / math.sqrt(2.0 * S), g)
            x = arrays.frozen(self.exact_projection(y))
        return state._replace(x=x, dual=weighed.dual, square_sum=S)

    def guarantee(self) -> base.Bound:
        return self.weights.guaranteed(math.sqrt(2.0))

    @classmethod
    def examples(cls, K: Any, horizon: int) -> Sequence[base.Learner[Any]]:
        return (cls(K, horizon=horizon), cls.published(K, horizon=horizon), cls(K))
