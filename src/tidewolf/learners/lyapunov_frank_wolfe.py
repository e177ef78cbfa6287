"""Lyapunov Frank-Wolfe: one oracle call per round, at any time.

Lyapunov weights on scale-free online Frank-Wolfe.

    each round at x, g_t the surrogate gradient within aff(K), M_t the largest |g_s| so far:
    F_t(z)  =  <sum_{s<=t} g_s, z> + L_t/2 |z - x_1|^2,        L_t = rho_t M_t
    v       =  lmo(grad F_t(x)),    gap_t = <grad F_t(x), x - v>                 (one call)
    x      <-  x + min(1, gap_t/(L_t |x - v|^2)) (v - x)                         (exact line search)

rho_t = 1.31 t^{3/4}/D; up to a given horizon T, 1.055 T^{3/4}/D, which is a little better there. It
stays where it is while every gradient has been 0. The idea, a Lyapunov surrogate with one linear
program per round, stands in its own right in Sarkar, Chakrabartty, Supantha, Dey & Sinha 2025
(arXiv 2501.16919). Regret on the surrogate, for every member x*:

    sum_t <g_t, x_t - x*>  <=  L_T D^2/2 + X  =:  B,   X = sum_t |g_t| min( D, sqrt(2 gap_t/L_t) ).

Proof. With w_t = argmin_K F_t, being the leader pays: sum_t <g_t, w_t> <= F_T(x*) - (what the
growing regulariser adds, >= 0) for every x*, so sum_t <g_t, w_t - x*> <= L_T D^2/2. And F_t is
L_t-strongly convex, so L_t/2 |x_t - w_t|^2 <= h_t := F_t(x_t) - F_t(w_t) <= gap_t.

For gradients of at most M, B <= 2.65 D M T^{3/4} where T was given and 3.3 D M T^{3/4} where not,
at every T. Proof. The line search gains at least sigma gap_t - sigma^2 L_t D^2/2 for every sigma
in [0, 1], and the next round adds <g, x - w> and a larger regulariser:

    h_{t+1}  <=  h_t - sigma_t gap_t + sigma_t^2 L_t D^2/2 + M_{t+1} sqrt(2 gap_{t+1}/L_{t+1})
                 + (L_{t+1} - L_t) D^2/2;

summed, sum sigma_t gap_t <= sum sigma_t^2 L_t D^2/2 + Y + L_T D^2/2 with Y = sum M_t
sqrt(2 gap_t/L_t) >= X. Let Y = xi D M T^{3/4}. (i) L_t = a T^{3/4} M_t/D, sigma = b/sqrt T:
Cauchy-Schwarz gives sum gap_t >= Y^2 a/(2 D M T^{1/4}), hence xi^2 <= b + 2 xi/(a b) + 1/b. With
a = 1.055, b = 2.24: xi <= 2.116, and B <= (a/2 + xi) D M T^{3/4} = 2.644 D M T^{3/4}. (ii) L_t = a
t^{3/4} M_t/D, sigma_t = b/sqrt t: as sum t^{-1/4} <= (4/3) T^{3/4}, sum sigma_t gap_t >= (3/8) a b
Y^2/(D M T^{3/4}), hence xi^2 <= (16/9) b + 8 xi/(3 a b) + 4/(3 b). With a = 1.31, b = 1.94:
xi <= 2.625, and B <= 3.28 D M T^{3/4}. Where b/sqrt t exceeds 1 take sigma_t = 1: up to 20 rounds
B <= L_T D^2/2 + D M T is small enough by itself, and beyond them the first sum loses more than the
last one gains (the tests add both up for every T). The weights (methods/steps/lyapunov.py) take
these constants for c and p = 3/4: regret and violation are of order T^{3/4} and T^{3/4} log T.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, final

from tidewolf.core.arrays import frozen, inner, namespace
from tidewolf.core.feedback import FirstOrder
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Array
from tidewolf.methods import base, clock, late
from tidewolf.methods.steps.lyapunov import DualState
from tidewolf.projection.one_shot import frank_wolfe_gap, line_search

# rho D/T^{3/4} where the horizon is given, the best constant of the worst case, and the constant of
# the regret.
INFO = 1.055, 2.65
ANYTIME = 1.31, 3.3  # rho_t D/t^{3/4} if it is not, or was passed, and the constant of the regret.


class State(NamedTuple):
    t: int
    x: Array
    first: Array  # x_1
    dual: DualState
    total: Array  # sum of the surrogate gradients, in units of 2^exponent, like `largest`
    largest: float = 0.0  # M_t
    warm: Array | None = None
    calls: int = 0
    distance: float = 0.0
    pending: tuple[late.Deferred, ...] = ()
    lost: int = 0
    overrides: late.Overrides = late.Overrides()


@final
@dataclass(frozen=True, eq=False, repr=False)
class LyapunovFrankWolfe(clock.LyapunovLearner[State]):
    """Lyapunov weights with online Frank-Wolfe: one oracle call per round, the simplest learner.

    Parameters
    ----------
    K : HasLMO
        The hard constraints: every decision is a point of this set.
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
    >>> run = tw.run(tw.LyapunovFrankWolfe(K), tw.Stream(losses, limits))
    >>> np.round(run.learner.act(run.final_state), 1)
    array([0. , 0.5, 0.5])
    >>> int(run.oracle_calls)
    300
    """

    state_type: ClassVar = State
    anytime: ClassVar = True
    exponents: ClassVar = (3 / 4, 3 / 4)

    def start(self) -> State:
        x = self.K.center
        return State(0, x, x, self.weights.start(), frozen(namespace(x).zeros_like(x)))

    def step(self, state: State, block: FirstOrder) -> State:
        K, x = self.K, state.x
        weighed = self.weights.weigh(state.dual, block, x)
        g, g_norm = weighed.grad.g, math.sqrt(weighed.grad.norm2)
        total = frozen(state.total * weighed.unit + g)
        M = max(state.largest * weighed.unit, g_norm)
        state = state._replace(dual=weighed.dual, total=total, largest=M)
        if M <= 0.0:
            return state
        r = total / (self._rho(state.t) * M) + (x - state.first)
        answer = K.answer(r, state.warm)
        feedback = frank_wolfe_gap(r, x, answer, inner(r, r))
        return state._replace(
            x=frozen(answer.vertex.blend(x, line_search(feedback))),
            warm=answer.warm,
            calls=state.calls + 1,
        )

    def _rho(self, t: int) -> float:
        rho = INFO[0] * math.pow(self.horizon or 0, 0.75)
        if not self.horizon or t > self.horizon:
            rho = max(rho, ANYTIME[0] * math.pow(t, 0.75))
        return rho / (self.K.diameter or 1.0)

    def constants(self) -> tuple[float, float]:
        return (ANYTIME if self.horizon is None else INFO)[1], 0.75

    def guarantee(self) -> base.Bound:
        return self.weights.guaranteed(self.weights.c)

    @classmethod
    def examples(cls, K: HasLMO, horizon: int) -> Sequence[base.Learner[Any]]:
        return (cls(K, horizon=horizon), cls(K, horizon=max(1, horizon // 3), caution=1.0), cls(K))
