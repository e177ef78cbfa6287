"""Online Frank-Wolfe that ignores the constraints or puts a fixed price on violating them (Hazan &
Kale 2012): one oracle call per round.

    g   =  grad f_t + (caution/2) (G_f/G_g) grad g_t^+
        G_f and G_g given, or the largest slopes so far
    x  <-  online Frank-Wolfe on a doubling guess of the gradients, with its regret measured:

    F_t(z)  =  eta <sum_{s<=t} g_s, z> + |z - x_1|^2,        eta = D/(2 G T^{3/4})
    v       =  lmo(grad F_t(x)),     gap_t = <grad F_t(x), x - v>                         (one call)
    x      <-  x + min(1, 2/sqrt(t)) (v - x)

G starts at the first |g_t| > 0 and is doubled until no |g_t| is above it; each time the sum and t
begin anew, with the gradient that was too large and the same x_1. It stays where it is while every
gradient has been 0. For every member x*, summed over the beginnings,

    sum_t <g_t, x_t - x*>  <=  sum ( D^2/eta + sum_t |g_t| min(D, sqrt(gap_t)) )  =:  B.

Proof. With w_t = argmin_K F_t, being the leader pays: eta sum_t <g_t, w_t -
x*> <= |x* - x_1|^2 <= D^2. F_t is 2-strongly convex, so |x_t - w_t|^2 <= F_t(x_t) -
F_t(w_t) <= gap_t.

The price is the weight that Lyapunov weights of the same caution (methods/steps/lyapunov.py) begin
with; here it never rises. Published without constraints: `OnlineFrankWolfe.blind`, caution = 0. If
the regret on g is at most B then, as g_t^+(x*) = 0,

    regret  <=  B - sum_t w_t g_t^+(x_t),     w_t the prices:
        O(T^{3/4}). Of the violation nothing is guaranteed below order T.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple, Self, final

from tidewolf.core import feedback, oracle, settings
from tidewolf.core.arrays import frozen, inner, namespace
from tidewolf.core.types import Array
from tidewolf.methods import base, clock, late
from tidewolf.methods.settings import DEFAULT_CAUTION
from tidewolf.methods.steps.lyapunov import THETA
from tidewolf.methods.steps.slopes import Slopes, tangent_gradients
from tidewolf.projection.one_shot import frank_wolfe_gap


class Leader(NamedTuple):
    first: Array  # x_1
    total: Array  # sum of the gradients
    largest: float = 0.0  # G
    rounds: int = 0
    regret_bound: float = 0.0  # B
    warm: Array | None = None

    @classmethod
    def start(cls, first: Array) -> Self:
        return cls(first, frozen(namespace(first).zeros_like(first)))

    def anew(self, largest: float = 0.0, regret_bound: float = 0.0) -> "Leader":
        fresh = Leader.start(self.first)
        return fresh._replace(largest=largest, regret_bound=regret_bound, warm=self.warm)

    def in_units(self, unit: float) -> "Leader":
        return self._replace(
            total=unit * self.total,
            largest=unit * self.largest,
            regret_bound=unit * self.regret_bound,
        )


def follow(
    K: oracle.HasLMO, x: Array, leader: Leader, g: Array, g_norm2: float, horizon: int
) -> tuple[Array, Leader, int]:
    """The point and the leader after a round with gradient g at x, and the oracle calls."""
    g_norm, G, inverse_step = math.sqrt(g_norm2), leader.largest, 2.0 * math.pow(horizon, 0.75)
    if g_norm > G:
        G = G or g_norm
        while g_norm > G:
            G *= 2.0
        leader = leader.anew(G, leader.regret_bound + inverse_step * G * K.diameter)
    if G == 0.0:
        return x, leader._replace(total=frozen(leader.total)), 0
    total, t = frozen(leader.total + g), leader.rounds + 1
    r = (0.5 * K.diameter / (inverse_step * G)) * total + (x - leader.first)
    answer = K.answer(r, leader.warm)
    strayed = min(K.diameter, math.sqrt(2.0 * frank_wolfe_gap(r, x, answer, inner(r, r)).gap))
    following = leader._replace(
        total=total, rounds=t, regret_bound=leader.regret_bound + g_norm * strayed, warm=answer.warm
    )
    return frozen(answer.vertex.blend(x, min(1.0, 2.0 / math.sqrt(t)))), following, 1


class State(NamedTuple):
    t: int
    x: Array
    epoch: clock.Epoch
    slopes: Slopes
    leader: Leader
    paid: float = 0.0  # sum_t w_t g_t^+(x_t)
    calls: int = 0
    distance: float = 0.0
    pending: tuple[late.Deferred, ...] = ()
    lost: int = 0
    overrides: late.Overrides = late.Overrides()


@final
@dataclass(frozen=True, eq=False, repr=False)
class OnlineFrankWolfe(clock.Cautious[State], clock.EveryRound[State]):
    """Online Frank-Wolfe with a fixed penalty on violations; `OnlineFrankWolfe.blind` ignores the
    constraints.

    Parameters
    ----------
    K : HasLMO
        The hard constraints: every decision is a point of this set.
    horizon : int, optional
        The number of rounds T. None: 256, doubled whenever they are over.
    caution : float, default 10.0
        How much limits weigh against losses: larger values break limits less and cost more; 0
        does not look at them.
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
    >>> run = tw.run(tw.baselines.OnlineFrankWolfe.blind(K, horizon=50), tw.Stream(losses, limits))
    >>> run.notes
    ('It does not look at the limits.',)
    """

    state_type: ClassVar = State

    caution: Annotated[float, settings.Number(least=0.0)] = DEFAULT_CAUTION

    @classmethod
    def blind(cls, K: oracle.HasLMO, *, horizon: int | None = None) -> Self:
        """As published: losses alone."""
        return cls(K, horizon=horizon, caution=0.0)

    def start(self) -> State:
        x = self.K.center
        return State(0, x, self.first_epoch(), self.given_slopes.initial, Leader.start(x))

    def step(self, state: State, block: feedback.FirstOrder) -> State:
        gradients = tangent_gradients(self.K, block, self.given_slopes, state.slopes)
        g, paid, offset = gradients.loss, state.paid, block.loss_offset
        if gradients.slopes.constraint > 0.0:
            w = THETA * self.caution * gradients.slopes.ratio
            g, paid = g + w * gradients.constraint, paid + w * block.violation
            offset += w * block.constraint_offset
        x, leader, calls = follow(
            self.K, state.x, state.leader, g, inner(g, g), state.epoch.horizon
        )
        leader = leader._replace(regret_bound=leader.regret_bound + offset)
        state = state._replace(slopes=gradients.slopes, paid=paid, calls=state.calls + calls)
        return state._replace(x=x, leader=leader)

    def renew(self, state: State) -> State:
        """The bound stays, as it is one since the first round."""
        return state._replace(leader=state.leader.anew(0.0, state.leader.regret_bound))

    def bound(self, record: base.Record) -> base.Bound:
        state: State = record.final_state
        return base.Bound(
            state.leader.regret_bound - state.paid,
            None,
            "A price that never rises guarantees no violation below the order of the rounds.",
        )

    def limit_price(self, state: State) -> float:
        return THETA * self.caution * state.slopes.ratio

    def notes(self, state: State) -> tuple[str, ...]:
        blind = () if self.caution else ("It does not look at the limits.",)
        return (*blind, *super().notes(state))

    @classmethod
    def examples(cls, K: oracle.HasLMO, horizon: int) -> Sequence[base.Learner[Any]]:
        blind = cls.blind(K, horizon=max(1, horizon // 3))
        return cls(K, horizon=horizon), blind, cls(K, caution=1.0)
