"""The core of the Lyapunov family: descents that share one dual state, one gradient, one budget of
oracle calls and one table of vertices.

Before round t experts i = 1..m propose z_i in K; x = sum_i p_i z_i is played. One dual state of
Lyapunov weights (methods/steps/lyapunov.py) on the *played* violation makes one gradient there,

    s  =  V grad f_t(x) + w grad g_t^+(x)     within aff(K),

that every expert is fed:

    y_i <- ball( y_i - k_i eta_i s, softened past a limit )          methods/steps/group.py
    z_i, y_i <- a member near y_i, by oracle calls on one budget     projection/active.py
    p   <- AdaHedge on <s, z_i - x>                                  methods/steps/hedge.py

`LyapunovDescent` is one descent, without a mixer; `Ensemble` mixes several with what else proposes
points. This file is the reference: rounds that come in order, and whose functions are arrays, are
played by one kernel (kernels/rounds.py) with the same results up to rounding.

The budget earns `calls_per_round` each round and keeps what is not spent, so oracle calls never
exceed calls_per_round * rounds. Feedback may come late, in any order, together, and of other points
than were decided (methods/late.py): rounds that come together are weighed together and make one
step. Bounds of a run are those of methods/certificate.py. Beforehand, for the descent with the
longest steps, which the budget serves first if it has calls enough, its scale k and distance
e = |x - y|, Lam = ln(experts), D' = min(2R, D + e), blocks of b rounds and gradients of at most M,

    regret on the surrogate  <=  c' D M sqrt(T),
    c' = sqrt(Lam) + (4/3 Lam + 2)/sqrt(T) + sqrt(b/2) (D'^2/(k D) + k D')/D + e sqrt(T)/D,

without the first two terms for a single descent. On a product every factor has its own step, and
the third term is the root of the sum of squares over factors (`price_at_most`).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property, reduce
from typing import Any, ClassVar

import numpy as np

from tidewolf.core.arrays import frozen, inner
from tidewolf.core.conforming import is_member
from tidewolf.core.errors import InvalidInput, WrongType
from tidewolf.core.feedback import (
    Arrival,
    FirstOrder,
    FullInformation,
    first_order,
    played_at,
    require_first_order,
    require_full_information,
)
from tidewolf.core.round_info import RoundInfo, checked_features
from tidewolf.core.types import Array, Bools, Floats
from tidewolf.experts.asking import ask_all
from tidewolf.experts.base import Adviser
from tidewolf.experts.context import Context
from tidewolf.learners.state import Committed, Descent, State, mixed
from tidewolf.methods.accounts import Accounts
from tidewolf.methods.available import entries_out, restricted, uses
from tidewolf.methods.base import Bound, Learner, Record
from tidewolf.methods.capabilities import Diagnosed, HasKernel, LimitBound, ProjectionRecord
from tidewolf.methods.certificate import CellSums
from tidewolf.methods.clock import add_sums
from tidewolf.methods.compiled_rounds import CompiledRounds, compiled_rounds
from tidewolf.methods.expert_feedback import ExpertFeedback, PlayedRound, by_gradients, by_values
from tidewolf.methods.kernel_functions import Functions
from tidewolf.methods.late import (
    forget,
    in_order,
    next_round,
    require_no_pending,
    without,
)
from tidewolf.methods.migration import require_of_one_kind
from tidewolf.methods.moves import HELD_BACK, capped
from tidewolf.methods.pool import Pool
from tidewolf.methods.steps.adagrad import (
    DescentSums,
    into_balls,
    price_at_most,
    reaches,
    step_factors,
)
from tidewolf.methods.steps.group import Part, StepGradient, descend_together
from tidewolf.methods.steps.hedge import Mixer, log_experts
from tidewolf.methods.steps.lyapunov import DualState, LyapunovWeights, Surrogate
from tidewolf.methods.steps.slopes import Slopes
from tidewolf.sets.base import Factors

CELL_SCALE = 1.0
"""The step scale of a context's cells."""
NEAR_TIE = 1e-9
"""By which share urgencies differ at least. While points stand at the center, every iterate on the
ball is at the distance R from its point, and rounding would decide which one the oracle serves."""


class Core(HasKernel, Diagnosed, Learner[State]):
    """Abstract: learners of the family."""

    anytime: ClassVar = True

    horizon: int | None
    caution: float
    calls_per_round: float
    tolerance: float | None
    start_at: Array | None
    max_move: float | None
    loss_lipschitz: float | None
    constraint_lipschitz: float | None
    per_constraint: bool
    block: int = 1
    """rounds that are played at a point before it moves"""
    cell_scale: ClassVar = CELL_SCALE

    @property
    @abstractmethod
    def scales(self) -> tuple[float, ...]:
        """The step scale of each descent."""

    @property
    def context(self) -> Context | None:
        """The context among the experts."""
        return None

    @property
    def advisers(self) -> tuple[Adviser, ...]:
        """The advisers among the experts."""
        return ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the experts that are mixed; none for a single descent."""
        return ()

    @property
    def wants_functions(self) -> bool:
        """Whether an adviser needs the functions of a round."""
        return False

    @property
    def most_at_once(self) -> int:
        """Rounds that one update takes if they shared a point."""
        return 1

    # ---------------------------------------------------------------- before a round

    def start(self) -> State:
        return self.committed(self.begin())

    def begin(self) -> State:
        cells = 0 if self.context is None else self.context.cells
        points, experts = len(self.scales) + cells, len(self.names)
        pool = Pool.start(self.K, points, self.start_at)
        x = pool.x(0)
        absent: tuple[Array | None, ...] = (None,) * max(1, experts)
        weights, shares = frozen(np.zeros(experts)), frozen(np.zeros(cells))
        state: State = self.state_type(
            t=0,
            upcoming=Committed(1, x, x, weights, shares, absent),
            pool=pool,
            descents=(Descent(x, x, DescentSums.start(self._factors)),) * points,
            cells=CellSums.start(self.K, cells),
            dual=self._weights.start(),
            mixer=Mixer.start(experts),
            accounts=Accounts.start(experts),
            advisers=tuple(adviser.start(self.K) for adviser in self.advisers),
            last=None if self.max_move is None else x,
        )
        return state

    def with_info(self, state: State, info: RoundInfo) -> State:
        """What is known of the coming round taken in: its context, and advice that waits for it.
        Points under names that no expert has are ignored.
        """
        waits = self.context is not None or any(adviser.waits for adviser in self.advisers)
        if not waits and info.unavailable is None and state.proposed is None:
            return state
        return self._committed(self.committed(state), info, waiting=True)

    def act(self, state: State) -> Array:
        return self.committed(state).upcoming.x

    def stands_at(self, state: State) -> Array:
        """The mix of the proposals, which is played unless something holds it back."""
        return self.committed(state).upcoming.mix

    def rounds_left(self, state: State) -> int:
        return 1

    def _committed(self, state: State, info: RoundInfo | None, *, waiting: bool) -> State:
        """The state with the proposals for the coming round, and their mix.

        `waiting`: of those advisers who wait for what is known; else of the others, and the advice
        of those who wait is absent.
        """
        number, out = next_round(state), entries_out(self.K, info)
        state, advice = self._advised(state, info, waiting, number, out)
        return self.committed_as(state, advice, info, out)

    def committed_as(
        self,
        state: State,
        advice: Sequence[Array | None],
        info: RoundInfo | None = None,
        out: Bools | None = None,
    ) -> State:
        """The state that decides the coming round with this advice."""
        number = next_round(state)
        shares = state.upcoming.shares
        if self.context is not None:
            features = self.context.features(info, number)
            shares = np.zeros(self.context.cells)
            if features is not None:
                cells, phi = checked_features(features, self.context.cells, number)
                np.add.at(shares, cells, phi)
        state, own = self._own_points(state, shares, out)
        points = (*own, *advice)
        p = self.weights_of(state, points)
        x = mix = mixed(p, points)
        if state.last is not None and (out is None or not uses(state.last, out)):
            x = capped(mix, state.last, self.max_move)
        upcoming = Committed(number, x, mix, frozen(p), frozen(shares), points)
        return state._replace(upcoming=upcoming)

    def weights_of(self, state: State, points: Sequence[Array | None]) -> Floats:
        """p among the proposals that are there; empty without a mixer."""
        if not self.names:
            return np.zeros(0)
        return state.mixer.weights(np.array([point is not None for point in points]))

    def _advised(
        self, state: State, info: RoundInfo | None, waiting: bool, number: int, out: Bools | None
    ) -> tuple[State, tuple[Array | None, ...]]:
        """The state with what advisers propose, those that wait or the others; also what uses
        entries that are out is proposed again, and left out if it still does.
        """
        first, at, kept, pool = self._groups, 0, list[Any](), state.pool
        before = state.upcoming.points[first:] if state.proposed is None else state.proposed
        for adviser in self.advisers:
            own = before[at : at + len(adviser.names)]
            in_use = out is not None and any(z is not None and uses(z, out) for z in own)
            is_asked = adviser.waits is waiting or in_use
            kept.append(None if is_asked else own if waiting else (None,) * len(own))
            at += len(own)
        vertices = pool.vertices_since(state.vertices_of_waiting if waiting else state.vertices)
        found = ask_all(
            *(self.K, self.advisers, self.names[first:], state.advisers, kept),
            *(info, number, state.oracle_budget, vertices, state.mixer),
        )
        accounts, calls = state.accounts, round(found.calls.sum())
        if self.advisers:
            more = np.concatenate([np.zeros((2, first)), [found.calls, found.solves]], axis=1)
            accounts = accounts._replace(
                calls=frozen(accounts.calls + more[0]), solves=frozen(accounts.solves + more[1])
            )
        state = state._replace(
            advisers=found.states,
            oracle_budget=state.oracle_budget - calls,
            calls=state.calls + calls,
            solves=state.solves + round(found.solves.sum()),
            pool=pool.with_vertices(found.found),
            vertices=state.vertices if waiting else pool.count,
            vertices_of_waiting=pool.count if waiting else state.vertices_of_waiting,
            accounts=accounts,
            proposed=None if out is None else before,
        )
        advice = found.points
        if out is not None:
            advice = [z if z is None or not uses(z, out) else None for z in advice]
        return state, tuple(advice)

    def _own_points(
        self, state: State, shares: Floats, out: Bools | None
    ) -> tuple[State, list[Array | None]]:
        """z_i of the descents and of the context; None if that is unknown."""
        plain, cells = len(self.scales), np.flatnonzero(shares).tolist()
        which = [*range(plain), *(plain + j for j in cells)]
        if out is None:
            own = [state.pool.x(i) for i in which]
        else:
            state, own = self._around(state, which, out)
        points: list[Array | None] = [*own[:plain]]
        if self.context is not None:
            points.append(mixed(shares[cells], own[plain:]) if cells else None)
        return state, points

    def _around(self, state: State, which: list[int], out: Bools) -> tuple[State, list[Array]]:
        """Points of the pool without the entries that are out; a call for that is one of the
        descent with the longest steps.
        """
        pool, largest = state.pool, self._largest
        aimed = pool.x(largest) - state.descents[largest].before_projection
        found = restricted(self.K, [pool.active(i) for i in which], out, aimed)
        if found.calls:
            own_calls = state.accounts.calls.copy()
            own_calls[largest:][:1] += found.calls
            state = state._replace(
                pool=pool.with_candidate(self.K, *found.found),
                oracle_budget=state.oracle_budget - found.calls,
                calls=state.calls + found.calls,
                accounts=state.accounts._replace(calls=frozen(own_calls)),
            )
        return state, list(found.points)

    def defer(self, state: State) -> State:
        return self.committed(self.advance(state))

    def advance(self, state: State) -> State:
        state = self.committed(state)
        last = None if state.last is None else state.upcoming.x
        return state._replace(pending=(*state.pending, state.upcoming), last=last)

    def committed(self, state: State) -> State:
        return state if self.is_committed(state) else self._committed(state, None, waiting=False)

    def is_committed(self, state: State) -> bool:
        return state.upcoming.round == next_round(state)

    def drop(self, state: State, rounds: Sequence[int]) -> State:
        waiting: State = forget(state, rounds)
        return waiting

    def migrated(self, state: State, old: Learner[Any]) -> State:
        from tidewolf.learners.changed import migrated

        require_of_one_kind(self, state, old)
        assert isinstance(old, Core)
        return migrated(self, old.with_open_block(state), old)

    def with_open_block(self, state: State) -> State:
        """The state after the step of its open block, if there is one."""
        return state

    # ---------------------------------------------------------------- after a round

    def update(self, state: State, feedback: FirstOrder | FullInformation) -> State:
        require_no_pending(state)
        return self.on_feedback(state, (Arrival(next_round(state), feedback),))

    def on_feedback(self, state: State, arrivals: Sequence[Arrival]) -> State:
        """Rounds that come together are weighed together and make one step of each descent."""
        return self.committed(self._learned(self.committed(state), arrivals))

    def learned(self, state: State, arrival: Arrival) -> State:
        return self._learned(state, (arrival,))

    def _learned(self, state: State, arrivals: Sequence[Arrival]) -> State:
        """The state after feedback. Nothing is committed for the next round, unless that needs no
        adviser.
        """
        arrivals = in_order(arrivals)
        if (after := self._learned_at_once(state, arrivals)) is not None:
            return after
        rounds, observed, newest = list[Committed](), list[PlayedRound](), next_round(state) - 1
        overrides, last = state.overrides, state.last
        for arrival in arrivals:
            own, _ = without(state, arrival.round)
            rounds.append(state.upcoming if own is None else own)
            observed.append(self._observed(state, rounds[-1], arrival))
            overrides = overrides.and_of(arrival)
            if last is not None and arrival.round >= newest:
                last = observed[-1].x if arrival.played is None else arrival.played
        here = {arrival.round for arrival in arrivals}
        pending = tuple(one for one in state.pending if one.round not in here)
        state = state._replace(pending=pending, overrides=overrides, last=last)
        return self._stepped(state, rounds, observed)

    def _stepped(
        self, state: State, rounds: Sequence[Committed], observed: Sequence[PlayedRound]
    ) -> State:
        """The state after one step along the gradients of these rounds."""
        x, n = observed[0].x, sum(one.block.rounds for one in observed)
        block = reduce(add_sums, (played_at(one.block, one.x, x) for one in observed))
        weighed = self._weights.weigh(state.dual, block, x)
        state = state.in_units(weighed.unit)._replace(t=state.t + n, dual=weighed.dual)
        waiting = len(state.pending)
        each = by_gradients(self.K, observed, self._groups, weighed, waiting)
        state = self._with_cells(state, rounds, [one.grads[0] for one in each], weighed)
        if self.names:
            state, each = self._mixed(state, rounds, observed, each, weighed)
        whole = reduce(ExpertFeedback.and_of, each)
        if whole.price != 0.0:
            V, overrides = weighed.loss_weight, state.overrides
            price = overrides.price + (whole.price / V if V > 0.0 else math.inf)
            state = state._replace(overrides=overrides._replace(price=price))
        state = self._descended(state, whole)
        for own, seen in zip(rounds, each, strict=True):
            state = self._context_descended(state, own.shares, seen, len(rounds))
        for own, one in zip(rounds, observed, strict=True):
            advisers = (
                adviser.observe_round(
                    self.K, remembered, one.functions or one.block, one.x, own.round
                )
                for adviser, remembered in zip(self.advisers, state.advisers, strict=True)
            )
            state = state._replace(advisers=tuple(advisers))
        state = state._replace(oracle_budget=state.oracle_budget + self.calls_per_round * n)
        state = self._projected(state, rounds)
        uncommitted = state.upcoming._replace(round=next_round(state) + 1)
        return state._replace(upcoming=uncommitted)

    def _mixed(
        self,
        state: State,
        rounds: Sequence[Committed],
        observed: Sequence[PlayedRound],
        each: tuple[ExpertFeedback, ...],
        weighed: Surrogate,
    ) -> tuple[State, tuple[ExpertFeedback, ...]]:
        """The state with weights and accounts after these rounds, and what experts are fed: values
        in place of gradients where losses declare their curvature.
        """
        waiting, mixer, accounts = len(state.pending), state.mixer, state.accounts
        try:
            alphas = [self._curvature(one) for one in observed]
            if all(alpha is not None for alpha in alphas):
                by_value = by_values(self.K, observed, self._groups, weighed, waiting)
                # a sum of n such losses is mixable at alpha/n
                alpha = min(alpha for alpha in alphas if alpha is not None)
                least = weighed.loss_weight * log_experts(len(self.names)) * weighed.rounds / alpha
                each, mixer = by_value, mixer.at_least(least)
            for one in observed:
                accounts = accounts.with_values(one, weighed)
        except InvalidInput:  # an expert proposed a point where the loss has no value
            each = by_gradients(self.K, observed, self._groups, weighed, waiting)
            mixer, accounts = state.mixer, state.accounts
            for one in observed:
                accounts = accounts.with_values(one._replace(functions=None), weighed)
        for own, one, seen in zip(rounds, observed, each, strict=True):
            accounts = accounts.after(own.p, one.points, seen.losses, one.block.rounds)
        mixed = sum((one.mixed for one in each[1:]), start=each[0].mixed)
        return state._replace(mixer=mixer.updated(mixed, waiting), accounts=accounts), each

    @cached_property
    def compiled(self) -> CompiledRounds | None:
        """Its rounds in one kernel; None if the set, or a setting, has none, and for subclasses of
        learners, which may do otherwise.
        """
        return compiled_rounds(self) if "__final__" in vars(type(self)) else None

    def _learned_at_once(self, state: State, arrivals: Sequence[Arrival]) -> State | None:
        """The state after one round at the point that was decided, by the kernel; None if it is
        not for that.
        """
        kernel = self.compiled
        if kernel is None or len(arrivals) > 1 or not arrivals[0].of_decision:
            return None
        if arrivals[0].round != next_round(state) or not kernel.takes(state):
            return None
        if self._reserved(state):
            return None
        observed = self._observed(state, state.upcoming, arrivals[0])
        if not observed.block.is_plain or (self.names and self._curvature(observed) is not None):
            return None
        functions = (
            Functions.from_first_order(observed.block)
            if observed.functions is None
            else Functions.of(*observed.functions)
        )
        if functions is None or self.wants_functions is not (observed.functions is not None):
            return None
        after: State | None = kernel.learned(state, functions)
        if after is not None and self.advisers:
            seen, number = observed.functions or observed.block, state.upcoming.round
            advisers = (
                adviser.observe_round(self.K, remembered, seen, observed.x, number)
                for adviser, remembered in zip(self.advisers, state.advisers, strict=True)
            )
            after = after._replace(advisers=tuple(advisers))
        overrides = state.overrides.and_of(arrivals[0])
        if after is None or overrides is state.overrides:
            return after
        return after._replace(overrides=overrides)

    def _observed(self, state: State, own: Committed, arrival: Arrival) -> PlayedRound:
        """A round as it is observed."""
        x = own.x if arrival.of_decision else arrival.played
        feedback, functions = arrival.feedback, None
        most = max(self.most_at_once, self.rounds_left(state))
        if self.names and isinstance(feedback, FullInformation):
            functions = require_full_information(feedback, self.K.shape, most)
            values = functions.constraints.values(x)
            block = first_order(*functions, x, values, per_constraint=self.per_constraint)
        elif self.wants_functions:
            raise WrongType(
                f"{type(self).__name__} re-solves with the functions themselves: FullInformation "
                f"feedback is due, not {type(feedback).__name__}."
            )
        else:
            block = feedback  # type: ignore[assignment]  # looked at below
        require_first_order(block, self.K.shape, most)
        return PlayedRound(own.points, own.mix, x, block, functions)

    def _curvature(self, one: PlayedRound) -> float | None:
        """alpha of the losses, where they declare it and are seen."""
        return None if one.functions is None else one.functions.losses.exp_concavity

    def _descended(self, state: State, met: ExpertFeedback) -> State:
        """Every descent's infeasible iterate moved."""
        keep, descents = self._keep, list(state.descents)
        for i, scale in enumerate(self.scales):
            grad, own = met.grads[i], descents[i]
            if grad.norm2 > 0.0:
                part = self._part(own, state.pool.x(i), 1.0)
                [(y, sums)] = descend_together([part], grad, scale, keep, self._factors)
                descents[i] = self._moved(own, y, sums)
        return state._replace(descents=tuple(descents))

    def _context_descended(
        self, state: State, phi: Floats, met: ExpertFeedback, rounds: int
    ) -> State:
        """The iterates of the context's cells moved, each by its share of a round's gradient; one
        of several rounds that arrive together, before anything is projected.
        """
        if self.context is None:
            return state
        plain, descents = len(self.scales), list(state.descents)
        grad, cells = met.grads[plain], np.flatnonzero(phi).tolist()
        shares = [float(phi[j]) for j in cells]
        if grad.norm2 > 0.0 and cells:
            waiting = sum((one.shares for one in state.pending), start=np.zeros(len(phi)))
            group = [
                self._part(descents[plain + j], state.pool.x(plain + j), share, float(waiting[j]))
                for j, share in zip(cells, shares, strict=True)
            ]
            stepped = descend_together(group, grad, CELL_SCALE, self._keep, self._factors)
            for j, (target, sums) in zip(cells, stepped, strict=True):
                moved = self._moved(descents[plain + j], target, sums, rounds)
                if rounds > 1:
                    apart = moved.y - state.pool.x(plain + j)
                    moved = moved._replace(distance=math.sqrt(inner(apart, apart)))
                descents[plain + j] = moved
        return state._replace(descents=tuple(descents))

    def _with_cells(
        self,
        state: State,
        rounds: Sequence[Committed],
        grads: Sequence[StepGradient],
        weighed: Surrogate,
    ) -> State:
        """The sums of the context's cells with rounds whose gradients at the played points these
        are.
        """
        if self.context is None:
            return state
        cells = state.cells
        for own, grad in zip(rounds, grads, strict=True):
            limit, V = grad.penalty_gradient, weighed.loss_weight
            limit = 0.0 * grad.g if limit is None else limit
            loss = weighed.loss_gradient if len(rounds) == 1 else (grad.g - limit) / V
            cells = cells.and_round(self.K, own.shares, loss, limit)
        return state._replace(cells=cells)

    def _moved(self, own: Descent, target: Array, sums: DescentSums, rounds: int = 1) -> Descent:
        """The iterate moved, within the balls unless it is projected exactly before its next
        step, as it is not if several rounds arrive together.
        """
        if rounds > 1 or not self._factors.exact:
            target = into_balls(target, self.K.center, self._factors)
        target = frozen(target)
        return Descent(target, target, sums, own.distance)

    def _part(self, own: Descent, z: Array, share: float, pending: float | None = None) -> Part:
        reach = reaches(self._factors, z, own.y, own.distance)
        return Part(own.y, share, own.sums, reach, pending)

    @cached_property
    def _factors(self) -> Factors:
        """What has steps of its own."""
        return step_factors(self.K)

    def _projected(self, state: State, rounds: Sequence[Committed]) -> State:
        """The members of all infeasible iterates that these rounds moved, on one budget of
        calls."""
        pool, oracle_budget, calls, descents = (
            state.pool,
            state.oracle_budget,
            0,
            list(state.descents),
        )
        own_calls, reserved = state.accounts.calls.copy(), self._reserved(state)
        for i in self._order(state, rounds):
            budget = max(0, math.floor(oracle_budget + 1e-9) - reserved)
            own = descents[i]
            y = own.y + 0.0  # one to give away
            pool, found = pool.projected(i, self.K, y, self._tolerance2, budget)
            oracle_budget, calls = oracle_budget - found.calls, calls + found.calls
            if self.names:
                own_calls[min(i, len(self.scales))] += found.calls
            distance = math.sqrt(found.distance2)
            y = own.y if found.y is y else found.y
            descents[i] = own._replace(y=y, before_projection=own.y, distance=distance)
        tidied = pool.tidied()
        if tidied is not pool:  # other rows now: advisers get all of them again
            state = state._replace(vertices=0, vertices_of_waiting=0)
        return state._replace(
            pool=tidied,
            oracle_budget=oracle_budget,
            calls=state.calls + calls,
            descents=tuple(descents),
            distance=descents[self._largest].distance,
            accounts=state.accounts._replace(calls=frozen(own_calls)),
        )

    def _reserved(self, state: State) -> int:
        """Calls kept for advisers who wait and need them; none beside a guarantee."""
        if self._pays_first:
            return 0
        proposals_of = zip(self.advisers, state.advisers, strict=True)
        return sum(adviser.reserves(own) for adviser, own in proposals_of if adviser.waits)

    def _order(self, state: State, rounds: Sequence[Committed]) -> list[int]:
        """What the budget serves first: the descent that a guarantee is about, if there are calls
        for it, then those who are trusted and far from their infeasible iterates.
        """
        plain, trust = len(self.scales), dict[int, float]()
        for one in rounds:
            own = {i: float(one.p[i]) if self.names else 1.0 for i in range(plain)}
            for j in np.flatnonzero(one.shares).tolist():
                own[plain + j] = float(one.p[plain] * one.shares[j])
            trust = (
                own
                if not trust
                else {i: max(own.get(i, 0.0), trust.get(i, 0.0)) for i in own | trust}
            )

        def urgency(i: int) -> float:
            if self._pays_first and i == self._largest:
                return math.inf
            apart = state.descents[i].y - state.pool.x(i)
            return self._precedence[i] * trust[i] * math.sqrt(inner(apart, apart))

        return sorted(trust, key=urgency, reverse=True) if len(trust) > 1 else list(trust)

    @cached_property
    def _precedence(self) -> tuple[float, ...]:
        """A factor near 1 for each point: of those that are as urgent up to rounding, the oracle
        serves the one with the smallest steps first, then the first one.
        """
        cells = 0 if self.context is None else self.context.cells
        scales = (*self.scales, *(CELL_SCALE,) * cells)
        factors = [1.0] * len(scales)
        for rank, i in enumerate(sorted(range(len(scales)), key=lambda i: (-scales[i], -i))):
            factors[i] += NEAR_TIE * rank
        return tuple(factors)

    @cached_property
    def _largest(self) -> int:
        """The descent with the largest steps."""
        return max(range(len(self.scales)), key=lambda i: self.scales[i])

    @cached_property
    def _pays_first(self) -> bool:
        """Whether there are calls enough for one projection every block, whatever happens."""
        tol = self._tolerance2
        earned = self.calls_per_round * self.block
        return tol == 0.0 or earned >= 8.0 * self.K.radius**2 / tol + 4.0

    # ---------------------------------------------------------------- what is known of a run

    def last_projection(self, state: State) -> ProjectionRecord:
        """That of the descent with the longest steps."""
        own = state.descents[self._largest]
        return ProjectionRecord(
            over=self.K,
            x=state.pool.x(self._largest),
            before_projection=own.before_projection,
            y=own.y,
            tolerance2=self._tolerance2,
            calls_left=max(0, math.floor(state.oracle_budget + 1e-9) - self._reserved(state)),
        )

    def guarantee(self, limits: int | None = None) -> Bound:
        """What is known before the first round of a run of `horizon` rounds, of losses that do not
        declare their curvature; with `per_constraint` of so many limits per round.
        """
        D = self.K.diameter
        if D == 0.0:
            return Bound(0.0, 0.0)
        if self.max_move is not None:
            return Bound(None, None, HELD_BACK)
        e = 0.0 if self._factors.exact else math.sqrt(self._tolerance2)
        if e and not self._pays_first:
            spent = f"{self.calls_per_round:g} oracle calls per round, in blocks of {self.block},"
            return Bound(
                None,
                None,
                f"With {spent} no distance of x and y can be guaranteed: bounds are measured.",
            )
        root, Lam = math.sqrt(self.horizon or 1), log_experts(len(self.names))
        mixed = math.sqrt(Lam) + (4.0 / 3.0 * Lam + 2.0) / root if self.names else 0.0
        price = math.sqrt(0.5 * self.block) * price_at_most(self.K, self.scales[self._largest], e)
        return self._weights.guaranteed(mixed + price + e * root / D, limits)

    @cached_property
    def _groups(self) -> int:
        """Descents, and the context."""
        return len(self.scales) + (self.context is not None)

    @cached_property
    def _weights(self) -> LyapunovWeights:
        slopes = self.loss_lipschitz, self.constraint_lipschitz
        own = self.per_constraint
        return LyapunovWeights(self.K, self.caution, self.horizon, *slopes, per_constraint=own)

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

    def bound(self, record: Record) -> Bound:
        return self.bound_of(record.final_state)

    def bound_of(self, state: State) -> Bound:
        """The bound of the rounds before a state."""
        bound = self._weights.bound(self.dual_of(state))
        return state.migrations.bound(bound, state.migrations.regret)

    def policy_bound_of(self, state: State) -> Bound:
        """The same against policies; that against fixed points without a context."""
        if self.context is None:
            return self.bound_of(state)
        bound = self._weights.bound(state.dual, state.cells)
        return state.migrations.bound(bound, state.migrations.policy_regret)

    def limit_bounds(self, record: Record) -> tuple[LimitBound, ...]:
        dual = self.dual_of(record.final_state)
        return self._weights.limit_rows(dual, record.limit_names)

    def dual_of(self, state: State) -> DualState:
        """The dual state with the rounds of an open block, if there is one: what holds for a block
        holds for the part of it that was played.
        """
        return state.dual

    def notes(self, state: State) -> tuple[str, ...]:
        return state.migrations.notes()

    def limit_price(self, state: State) -> float:
        return self._weights.limit_price(state.dual)

    def limit_prices(self, state: State) -> Floats | None:
        return self._weights.limit_prices(state.dual)

    def _require_whole(self, state: State) -> None:
        upcoming, a = state.upcoming, state.accounts
        for what, found, due in (
            ("descents", len(state.descents), len(self.begin().descents)),
            ("points", len(state.pool.actives), len(state.descents)),
            ("advisers", len(state.advisers), len(self.advisers)),
            *(
                ("proposals", len(one.points), max(1, len(self.names)))
                for one in (upcoming, *state.pending)
            ),
        ):
            if found != due:
                raise ValueError(f"it has {found} {what} where {due} are due")
        for one in (upcoming, *state.pending):
            if not is_member(self.K, one.x):
                raise ValueError("a point that was decided is no member of the set")
            for z in one.points:
                if z is not None and not is_member(self.K, z):
                    raise ValueError("a point that was proposed is no member of the set")
            for what, weights in (("weights", one.p), ("shares", one.shares)):
                if weights.size and (weights.min() < 0.0 or weights.sum() > 1.0 + 1e-6):
                    raise ValueError(f"the {what} of a round are at least 0 and at most 1 in all")
        if state.mixer.gap < 0.0 or (a.available < 0.0).any() or state.vertices > state.pool.count:
            raise ValueError("what was counted of its members is below 0, or beyond what there is")
        if state.dual.each is not None:
            state.dual.each.require_sound()
        super()._require_whole(state)

    def slopes(self, state: State) -> Slopes:
        return state.dual.slopes
