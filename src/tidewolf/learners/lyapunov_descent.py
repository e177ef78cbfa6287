"""Lyapunov descent: Lyapunov weights, AdaGrad descent, active-set projection.

    block of rounds at x:
    g     =  V sum grad f_t + w sum grad g_t^+
             within aff(K), w by Lyapunov weights                                        (surrogate)
    y    <-  ball( y - eta g, softened where it goes past the limit )            (descent)
    x, y <-  ActiveSet(y from x), spending oracle calls from the bank                    (feasible)

The bank earns `calls_per_round` each round and keeps what is not spent, so oracle calls never
exceed calls_per_round * rounds.
1/(2 eta) = max(its last value, sqrt(sum |g|^2/2)/(k D_t)), k the `step_scale`: y leaves K, so
D_t = min(2R, D + |x - y|) stands in place of the diameter. On a product every factor has its own
step, ball and active set; one oracle call serves them all, and none is needed where projecting is
cheap (methods/descent.py). A step that lands past a broken limit keeps
(caution + 5)/(caution + 25) of what is too much (methods/steps/overshoot.py). Losses and
constraints are rescaled by running maxima of their slopes: nothing to guess, and decisions do not
change with the units of x, f or g. No horizon is needed; one that is given holds the weights'
exponent still up to it, which a promise needs.

Bounds of a run are those of methods/certificate.py. Beforehand the regret on the surrogate is at
most B = sum of the descent's prices (methods/steps/adagrad.py) + sum <g_t, x_t - y_t>, where
|x_b - y_b| <= e_b = e R_b/R is known only where every block earns the 8 R^2/e^2 + 4 calls that
always reach it, or projection is exact (e = 0); then, with D_b' = min(2 R_b, D_b + e_b), for
gradients of at most M and blocks of b rounds, by Cauchy-Schwarz over the factors,

    B <= c' D M sqrt(T),
    c' = sqrt(b/2) (sum (D_b'^2/(k D_b) + k D_b')^2)^(1/2)/D + e sqrt(T)/D.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Annotated, Any, ClassVar, NamedTuple, final

import numpy as np

from tidewolf.core.feedback import Arrival, FirstOrder, require_first_order, require_limits
from tidewolf.core.oracle import HasLMO
from tidewolf.core.settings import Count, Magnitude
from tidewolf.core.types import Array, Bools, Floats
from tidewolf.methods.available import PlaysAround, anew, uses
from tidewolf.methods.base import Bound, Learner, Record
from tidewolf.methods.capabilities import HasKernel, LimitBound
from tidewolf.methods.clock import BlockLearner, add_sums
from tidewolf.methods.compiled_factors import compiled_factors
from tidewolf.methods.compiled_rounds import (
    CompiledRounds,
    Functions,
    compiled_descent,
    is_plain,
)
from tidewolf.methods.descent import Descent, price_at_most
from tidewolf.methods.late import Deferred, Overrides, in_order, next_round
from tidewolf.methods.migration import Migrations, Move, apart, carried, require_of_one_kind
from tidewolf.methods.moves import HELD_BACK, capped
from tidewolf.methods.pool import Pool
from tidewolf.methods.projected import Banked, ProjectedPoint
from tidewolf.methods.settings import (
    DEFAULT_CAUTION,
    AnytimeHorizon,
    CallsPerRound,
    Caution,
    ConstraintLipschitz,
    HardSetK,
    LossLipschitz,
    MaxMove,
    PerConstraint,
    StartAt,
    takes_start,
)
from tidewolf.methods.steps.adagrad import DescentSums
from tidewolf.methods.steps.group import StepGradient
from tidewolf.methods.steps.limit_weights import LimitWeights, limit_rows, require_each
from tidewolf.methods.steps.lyapunov import LEAST_HORIZON, DualState, LyapunovWeights
from tidewolf.methods.steps.slopes import Slopes
from tidewolf.projection.active import factors_of


class State(NamedTuple):
    """Where it stands, the open block, and what the steps remember."""

    t: int
    point: ProjectedPoint
    open: FirstOrder
    dual: DualState
    oracle_budget: float = 0.0
    calls: int = 0
    descent: DescentSums = DescentSums()
    """in units of 2^exponent of the dual state"""
    pending: tuple[Deferred, ...] = ()
    lost: int = 0
    overrides: Overrides = Overrides()

    last: Array | None = None
    """what was played last, where moves are capped"""
    upcoming: Array | None = None
    """the decision, where entries are out in the coming round"""
    migrations: Migrations = Migrations()

    @property
    def distance(self) -> float:
        return self.point.distance

    def played(
        self,
        t: int,
        point: ProjectedPoint,
        dual: DualState,
        oracle_budget: float,
        calls: int,
        descent: DescentSums,
    ) -> State:
        """After rounds in which nothing waited; `_replace` takes as long as some of them."""
        fixed = (self.pending, self.lost, self.overrides, self.last, self.upcoming, self.migrations)
        return State(t, point, self.open, dual, oracle_budget, calls, descent, *fixed)


@final
@takes_start
@dataclass(frozen=True, eq=False, repr=False)
class LyapunovDescent(HasKernel, PlaysAround[State], BlockLearner[State]):
    """Lyapunov weights, AdaGrad descent and active-set projections: one descent, alone.

    Parameters
    ----------
    K : HasLMO
        The set that every played point belongs to.
    horizon : int, optional
        How many rounds will be played, which a promise needs. None: unknown, which costs next
        to nothing: nothing restarts. Unit: rounds.
    caution : float, default 10.0
        How much limits weigh against losses: larger values break limits less and cost more.
    calls_per_round : float, default 1.0
        How often the set's oracle may be asked, on average over the rounds so far; calls that
        are not spent are kept for later. Unit: oracle calls a round.
    tolerance : float, optional
        The squared distance of the played point from its companion that projections aim at, as
        a share of radius^2. None: 1e-3, or 1e-3 calls_per_round^(-6/5) with more than one call
        a round.
    block : int, default 1
        How many rounds are played at a point before it moves. Unit: rounds.
    loss_lipschitz : float, optional
        The largest slope a loss may have, on average over rounds seen together; steeper ones
        are refused. None: learned from what is seen, and nothing is promised beforehand.
    constraint_lipschitz : float, optional
        The largest slope a constraint may have, on average over rounds seen together; steeper
        ones are refused. None: learned from what is seen, and nothing is promised beforehand.
    step_scale : float, default 1.0
        How long steps are: 1 is the step that theory has for the worst case; shorter ones
        follow the losses less closely, and are often better where these are noisy.
    start_at : array, optional
        The member of the set that is played first, such as what is installed now; may be given
        as `start`. None: the set's center.
    max_move : float, optional
        How far a decision may be from what was played in the round before, as half the sum of
        the changes of all entries. None: any distance.
    per_constraint : bool, default False
        Whether each of a round's limits has a weight, and a bound, of its own, in place of the
        largest breach one for all.

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

    state_type: ClassVar = State
    anytime: ClassVar = True

    K: HardSetK
    horizon: AnytimeHorizon = None
    caution: Caution = DEFAULT_CAUTION
    calls_per_round: CallsPerRound = 1.0
    tolerance: Annotated[
        float | None,
        Magnitude(
            "The squared distance of the played point from its companion that projections aim at, "
            "as a share of radius^2. None: 1e-3, or 1e-3 calls_per_round^(-6/5) with more than one "
            "call a round."
        ),
    ] = None
    block: Annotated[
        int, Count("How many rounds are played at a point before it moves.", unit="rounds")
    ] = 1
    loss_lipschitz: LossLipschitz = None
    constraint_lipschitz: ConstraintLipschitz = None
    step_scale: Annotated[
        float,
        Magnitude(
            "How long steps are: 1 is the step that theory has for the worst case; shorter ones "
            "follow the losses less closely, and are often better where these are noisy."
        ),
    ] = 1.0
    start_at: StartAt = None
    max_move: MaxMove = None
    per_constraint: PerConstraint = False

    def start(self) -> State:
        own, dual = Descent.start(self.K, self.start_at), self._weights.start()
        last = None if self.max_move is None else own.point.x
        return State(0, own.point, self.no_sums, dual, descent=own.sums, last=last)

    def act(self, state: State) -> Array:
        x = super().act(state)
        held = state.upcoming is None and state.last is not None
        return capped(x, state.last, self.max_move) if held else x

    def held_back(self, state: State, x: Array, out: Bools) -> Array:
        """What is out is left at once, whatever a move may be."""
        held = state.last is not None and not uses(state.last, out)
        return capped(x, state.last, self.max_move) if held else x

    def update(self, state: State, feedback: FirstOrder) -> State:
        if state.upcoming is state.last is None and not state.pending and self.compiled is not None:
            return self.taken(
                state, feedback
            )  # as below, with nothing that holds the decision back
        after = super().update(state, feedback)
        moves = after.open.rounds == 0 or state.upcoming is not None
        return after._replace(last=self.act(state)) if state.last is not None and moves else after

    def defer(self, state: State) -> State:
        after = super().defer(state)
        return after if state.last is None else after._replace(last=self.act(state))

    def on_feedback(self, state: State, arrivals: Sequence[Arrival]) -> State:
        """Rounds that come together make one step, unless blocks are longer."""
        if self.block > 1:
            return self._installed(state, arrivals, super().on_feedback(state, arrivals))
        before = state
        applied = []
        for arrival in reversed(in_order(arrivals)):  # the coming one first, while it is that
            state, one = self.match_feedback(state, arrival)
            require_first_order(one.feedback, self.K.shape, 1)
            applied.append(one)
        block = reduce(add_sums, (one.feedback for one in applied))
        if len(applied) == 1:
            state = self.taken(state, block)
        else:
            state = self.finish_block(state._replace(t=state.t + len(applied)), block)
        return self._installed(before, arrivals, anew(self._priced(state, *applied)))

    def _installed(self, state: State, arrivals: Sequence[Arrival], after: State) -> State:
        """The state after these arrivals with what was played last, where they say it: the coming
        round's point, once a block of them is over, or what overrode the newest decision.
        """
        if state.last is None:
            return after
        upcoming, newest = next_round(state), max(arrivals, key=lambda one: one.round)
        if newest.round == upcoming and newest.played is None:
            return after._replace(last=self.act(state)) if after.open.rounds == 0 else after
        if newest.round >= upcoming - 1 and newest.played is not None:
            return after._replace(last=newest.played)
        return after

    def migrated(self, state: State, old: Learner[Any]) -> State:
        require_of_one_kind(self, state, old)
        assert isinstance(old, LyapunovDescent)
        if state.open.rounds:  # what is open ends here
            state = old.finish_block(state._replace(open=old.no_sums), state.open)
        move, bound, own = Move(old.K, self.K), old.bound_of(state), state.point
        budget = max(0, math.floor(state.oracle_budget + 1e-9))
        found = carried(move, Pool.of([own.active]), [np.ones(1)], budget)
        point = own
        if not move.same:
            active = found.pool.actives[0]
            y = move.infeasible_iterate(own.y, active.x, found.whole[0])
            point = ProjectedPoint(active, y, y, apart(active.x, y))
        moved = [move.round(one) for one in state.pending]
        pending = tuple(one for one in moved if one is not None)
        lost, last = len(moved) - len(pending), None
        sums = move.sums(state.descent, state.migrations.remembered(state.t))
        if self.max_move is not None:
            last = move.point(own.x if state.last is None else state.last)
            last = point.x if last is None else last
        return state._replace(
            point=point,
            open=self.no_sums,
            dual=self._weights.migrated(state.dual),
            oracle_budget=state.oracle_budget - found.calls,
            calls=state.calls + found.calls,
            descent=sums,
            pending=pending,
            lost=state.lost + lost,
            last=last,
            upcoming=move.point(state.upcoming),
            migrations=state.migrations.following(state.t, lost, bound, bound),
        )

    def limit_price(self, state: State) -> float:
        return self._weights.limit_price(state.dual)

    def limit_prices(self, state: State) -> Floats | None:
        return self._weights.limit_prices(state.dual)

    def offset_price(self, state: State, feedback: FirstOrder) -> float:
        weights = self._weights
        if isinstance(weights, LimitWeights):
            return weights.offset_price(state.dual, feedback)
        return super().offset_price(state, feedback)

    def block_length(self, state: State) -> int:
        return self.block

    def taken(self, state: State, feedback: FirstOrder) -> State:
        kernel = self.compiled
        if kernel is not None:
            require_first_order(feedback, self.K.shape, 1)
        if kernel is not None and kernel.takes(state) and is_plain(feedback):
            played = kernel.play(kernel.begin(state), Functions.from_first_order(feedback), 0, 1)
            if played.done:
                after: State = played.state
                return after
        return super().taken(state, feedback)

    def step(self, state: State, block: FirstOrder) -> State:
        """The surrogate and the descent."""
        weighed = self._weights.weigh(state.dual, block, state.point.x)
        own = Descent(state.point, state.descent.in_units(weighed.unit))
        grad = StepGradient.of(weighed, state.point.x, len(state.pending))
        own = own.stepped(self.K, grad, self.step_scale, self._keep)
        return state._replace(point=own.point, dual=weighed.dual, descent=own.sums)

    def projection(self, state: State) -> Banked:
        return Banked(self._tolerance2)

    @cached_property
    def compiled(self) -> CompiledRounds | None:
        if self.block > 1 or self.per_constraint or self.max_move is not None:
            return None
        if type(self) is not LyapunovDescent:  # a subclass may say otherwise
            return None
        steepest = (self.loss_lipschitz, self.constraint_lipschitz)
        loss_most, limit_most = (math.inf if most is None else most for most in steepest)
        settings = {
            "CAUTION": self.caution,
            "HORIZON": self.horizon or LEAST_HORIZON,
            "LOSS_MOST": loss_most,
            "LIMIT_MOST": limit_most,
            "CALLS_EARNED": self.calls_per_round,
            "TOLERANCE2": self._tolerance2,
            "SCALE": self.step_scale,
            "KEEP": self._keep,
        }
        return compiled_descent(self.K, **settings) or compiled_factors(self.K, **settings)

    @cached_property
    def _weights(self) -> LyapunovWeights:
        made = LimitWeights if self.per_constraint else LyapunovWeights
        return made(
            self.K, self.caution, self.horizon, self.loss_lipschitz, self.constraint_lipschitz
        )

    @cached_property
    def _tolerance2(self) -> float:
        """Aimed-at |x - y|^2."""
        share = self.tolerance
        if share is None:
            share = 1e-3 * max(1.0, self.calls_per_round) ** -1.2
        return share * self.K.radius**2

    @property
    def _keep(self) -> float:
        return (self.caution + 5.0) / (self.caution + 25.0)

    def guarantee(self, limits: int | None = None) -> Bound:
        """What is known before the first round of a run of `horizon` rounds; with `per_constraint`
        of so many limits a round.
        """
        R, D = self.K.radius, self.K.diameter
        if D == 0.0:
            return Bound(0.0, 0.0)
        if self.max_move is not None:
            return Bound(None, None, HELD_BACK)
        factors = factors_of(self.K)
        e = 0.0 if factors is not None and factors.exact else math.sqrt(self._tolerance2)
        if e and self.calls_per_round * self.block < 8.0 * R**2 / self._tolerance2 + 4.0:
            spent = f"{self.calls_per_round:g} oracle calls a round, in blocks of {self.block},"
            return Bound(
                None,
                None,
                f"With {spent} no distance of x and y can be promised: bounds are measured.",
            )
        price = price_at_most(self.K, self.step_scale, e)
        apart = e * math.sqrt(self.horizon or 1) / D
        return self._weights.guaranteed(math.sqrt(0.5 * self.block) * price + apart, limits)

    def bound(self, record: Record) -> Bound:
        return self.bound_of(record.final_state)

    def bound_of(self, state: State) -> Bound:
        """The bound of the rounds before a state."""
        state = self.with_open_block(state)
        bound = self._weights.bound(state.dual)
        return state.migrations.bound(bound, state.migrations.regret)

    def notes(self, state: State) -> tuple[str, ...]:
        return state.migrations.notes()

    def limit_bounds(self, record: Record) -> tuple[LimitBound, ...]:
        state = self.with_open_block(record.final_state)
        return limit_rows(self._weights, state.dual, record.limit_names)

    def _require_whole(self, state: State) -> None:
        require_each(state.dual)
        if state.open.limits is not None:
            require_limits(state.open.limits, self.K.shape)
        super()._require_whole(state)

    def known_slopes(self, state: State) -> Slopes:
        return state.dual.slopes

    @classmethod
    def examples(cls, K: HasLMO, horizon: int) -> Sequence[Learner[Any]]:
        return (
            cls(K, horizon=horizon),
            cls(K, horizon=horizon, block=3, calls_per_round=0.4),
            cls(K, horizon=max(1, horizon // 3), caution=1.0, tolerance=1e-2),
            cls(K),
        )
