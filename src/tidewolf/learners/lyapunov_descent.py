"""Lyapunov descent: Lyapunov weights, AdaGrad descent, active-set projection.

    block of rounds at x:
    g     =  V sum grad f_t + w sum grad g_t^+
             within aff(K), w by Lyapunov weights                                        (surrogate)
    y    <-  ball( y - eta g, softened where it goes past the limit )                    (descent)
    x, y <-  ActiveSet(y from x), spending oracle calls from the budget                  (feasible)

1/(2 eta) = max(its last value, sqrt(sum |g|^2/2)/(k D_t)), k the `step_scale`: y leaves K, so
D_t = min(2R, D + |x - y|) stands in place of the diameter. On a product every factor has its own
step, ball and active set; one oracle call serves them all, and none is needed where projecting is
cheap. A step that lands past a broken limit keeps (caution + 5)/(caution + 25) of what is too much
(methods/steps/adagrad.py). Losses and constraints are rescaled by running maxima of their slopes:
nothing to guess, and decisions do not change with the units of x, f or g. No horizon is needed; one
that is given holds the weights' exponent still up to it, which a guarantee needs.

All of it is the core of the family (core.py) with one descent; this file adds blocks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, cast, final

from tidewolf.core import oracle
from tidewolf.core.arrays import norm
from tidewolf.core.feedback import Arrival, FirstOrder, played_at
from tidewolf.core.settings import Count, Magnitude
from tidewolf.learners.core import Core
from tidewolf.learners.state import State
from tidewolf.methods import accounts, base, late, settings
from tidewolf.methods.clock import add_sums, empty_sums
from tidewolf.methods.steps.slopes import Given, tangent_gradients, tangent_part


class DescentState(State):
    __slots__ = ()


@final
@settings.takes_start
@dataclass(frozen=True, eq=False, repr=False)
class LyapunovDescent(Core):
    """Lyapunov weights, AdaGrad descent and active-set projections: one descent, alone.

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
    calls_per_round : float, default 1.0
        The most oracle calls per round, on average over the rounds so far; unspent calls are
        kept. "auto": as many as cost about as much as the rest of a round, by the kind of set:
        4 on flows, 2 on simplices, else 1. Unit: oracle calls per round.
    tolerance : float, optional
        The squared distance of the played point from its infeasible iterate that projections
        aim at, as a share of radius^2. None: 1e-3, or 1e-3 calls_per_round^(-6/5) with more
        than one call per round.
    loss_lipschitz : float, optional
        The Lipschitz constant of the losses; steeper losses are refused. None: estimated from
        the feedback, and there is no guarantee before the run.
    constraint_lipschitz : float, optional
        The Lipschitz constant of the constraints; steeper ones are refused. None: estimated
        from the feedback, and there is no guarantee before the run.
    start_at : array, optional
        The first decision, such as what is installed now; may be given as `start`. None: the
        set's center.
    max_move : float, optional
        The largest move from what was played in the round before, as half the sum of the
        absolute changes of all entries. None: no cap.
    per_constraint : bool, default False
        If True, each constraint of a round has its own weight and its own bound on the
        violation; if False, one weight for the largest violation.
    budgets : tuple of Budget, default ()
        The budgets whose spend every round gives, such as `tw.Budget("usd", total=90,
        per="1d")`. A stream may have budgets that are not declared here.
    target_violation : float, optional
        The violation per round that is acceptable, on average over the rounds, in place of
        caution. None: `caution` weighs violations.
    block : int, default 1
        Rounds per block, in which the decision is constant. Unit: rounds.
    step_scale : float, default 1.0
        The step size; 1 is the step of the worst-case theory. Smaller steps follow the losses
        less closely and are often better if losses are noisy.

    Examples
    --------
    Three options, the cheapest of which may take at most half:

    >>> K = tw.sets.Simplex(3)
    >>> losses = tw.functions.Linear(np.tile([2.0, 1.0, 0.0], (300, 1)))
    >>> limits = tw.functions.Affine(np.tile([0.0, 0.0, 1.0], (300, 1)), np.full(300, 0.5))
    >>> run = tw.run(tw.LyapunovDescent(K), tw.Stream(losses, limits))
    >>> np.round(run.learner.act(run.final_state), 1)
    array([0. , 0.5, 0.5])
    >>> bool(run.oracle_calls <= 300)
    True
    """

    needs: ClassVar = FirstOrder
    state_type: ClassVar = DescentState

    block: Annotated[int, Count()] = 1
    step_scale: Annotated[float, Magnitude()] = 1.0

    @property
    def scales(self) -> tuple[float, ...]:
        return (self.step_scale,)

    def _learned(self, state: State, arrivals: Sequence[Arrival]) -> State:
        if self.block == 1:
            return super()._learned(state, arrivals)
        for arrival in arrivals:
            state = self._with_round(state, arrival)
        return state

    def _with_round(self, state: State, arrival: Arrival) -> State:
        own, pending = late.without(state, arrival.round)
        one = self._observed(state, own or state.upcoming, arrival)
        seen = played_at(one.block, one.x, state.pool.x(0))
        block, last = add_sums(state.open or empty_sums(self.K.center), seen), state.last
        is_last, is_newest = block.rounds == self.block, arrival.round >= late.next_round(state) - 1
        if not is_last:  # refused at once where the end of the block would refuse it
            given, met = Given(self.loss_lipschitz, self.constraint_lipschitz), one.block
            tangent_gradients(self.K, met, given, self.slopes(state))
            for each in [] if met.limits is None else met.limits.gradients:
                tangent_part(self.K, "constraint", each, met.rounds, given.constraint, norm(each))
        moved = is_last or arrival.played is not None or state.proposed is not None
        if last is not None and moved and is_newest:
            last = one.x if arrival.played is None else arrival.played
        state = state._replace(
            t=state.t + seen.rounds,
            open=block,
            pending=pending,
            overrides=state.overrides.and_of(arrival),
            last=last,
        )
        if is_last:
            state = self.with_open_block(state)
        price = self._weights.offset_price(state.dual, played_at(one.block, one.x, one.own.mix))
        return cast(State, late.priced(state, price))

    def with_open_block(self, state: State) -> State:
        if state.open is None:
            return state
        x, before = state.pool.x(0), state.t - state.open.rounds
        own = state.upcoming._replace(mix=x, points=(x,))
        whole = accounts.PlayedRound(own, x, state.open, None)
        return self._stepped(state._replace(t=before, open=None), [whole])

    @classmethod
    def examples(cls, K: oracle.HasLMO, horizon: int) -> Sequence[base.Learner[Any]]:
        return (
            cls(K, horizon=horizon),
            cls(K, horizon=horizon, block=3, calls_per_round=0.4),
            cls(K, horizon=max(1, horizon // 3), caution=1.0, tolerance=1e-2),
            cls(K),
        )
