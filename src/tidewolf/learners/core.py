"""The core of the Lyapunov family: descents that share one dual state, one gradient, one budget of
oracle calls and one table of vertices.

Before round t experts i = 1..m propose z_i in K; x = sum_i p_i z_i is played. One dual state of
Lyapunov weights (methods/steps/lyapunov.py) on the *played* violation makes one gradient there,

    s  =  V grad f_t(x) + w grad g_t^+(x)     within aff(K),

that every expert is fed:

    y_i <- ball( y_i - k_i eta_i s, softened past a limit )          methods/steps/adagrad.py
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

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from typing import Any, ClassVar, TypeAlias, cast

import numpy as np

from tidewolf.core import arguments, arrays, errors
from tidewolf.core.feedback import (
    Arrival,
    FullInformation,
    first_order,
    played_at,
    require_first_order,
    require_full_information,
)
from tidewolf.core.round_info import RoundInfo
from tidewolf.core.types import Array, Bools, Floats
from tidewolf.experts import base
from tidewolf.experts.context import Context
from tidewolf.experts.restarts import Restarts
from tidewolf.learners.state import Descent, State, mixed
from tidewolf.methods import capabilities, certificate, clock, kernel_functions, settings
from tidewolf.methods.accounts import Accounts, ExpertFeedback, PlayedRound, by_gradients, by_values
from tidewolf.methods.available import HELD_BACK, capped, entries_out, is_far, restricted, uses
from tidewolf.methods.base import Bound, Learner, Record, refuse_state
from tidewolf.methods.budget import Budgets, BudgetSums, priced_spend
from tidewolf.methods.compiled_rounds import CompiledRounds, compiled_rounds
from tidewolf.methods.late import Committed, KeepsPending, in_order, next_round, priced, without
from tidewolf.methods.pool import Pool
from tidewolf.methods.steps import adagrad
from tidewolf.methods.steps.hedge import Mixer, log_experts
from tidewolf.methods.steps.lyapunov import DualState, LyapunovWeights, Surrogate
from tidewolf.methods.steps.slopes import Given, Slopes, tangent_gradients
from tidewolf.sets.base import Compiled, Factors

# By which share urgencies differ at least. While points stand at the center, every iterate on the
# ball is at the distance R from its point, and rounding would decide which one the oracle serves.
NEAR_TIE = 1e-9


Observed: TypeAlias = Sequence[PlayedRound]
Fed: TypeAlias = Sequence[ExpertFeedback]


@dataclass(frozen=True, eq=False, repr=False)
class Core(KeepsPending[State]):
    anytime: ClassVar = True
    cell_scale: ClassVar = 1.0  # the step scale of a context's cells

    K: settings.HardSetK
    horizon: settings.OptionalRounds = None
    caution: settings.Positive = settings.DEFAULT_CAUTION
    calls_per_round: settings.CallsOrAuto = 1.0
    tolerance: settings.OptionalPositive = None
    loss_lipschitz: settings.OptionalPositive = None
    constraint_lipschitz: settings.OptionalPositive = None
    start_at: settings.StartAt = None
    max_move: settings.OptionalPositive = None
    per_constraint: settings.PerConstraint = False
    budgets: Budgets = ()
    target_violation: settings.OptionalPositive = None

    # settings of one of the two
    block = 1  # rounds that are played at a point before it moves
    experts = cast("tuple[base.Adviser | Context | Restarts, ...]", ())

    @property
    @abstractmethod
    def scales(self) -> tuple[float, ...]:
        """The step scale of each descent, those that restart last."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the experts that are mixed; none for a single descent."""
        return ()

    @property
    def prior(self) -> Floats:
        """Their weights before the first round of losses that declare curvature."""
        return np.zeros(0)

    @cached_property
    def context(self) -> Context | None:
        return next((one for one in self.experts if isinstance(one, Context)), None)

    @cached_property
    def restarts(self) -> Restarts | None:
        return next((one for one in self.experts if isinstance(one, Restarts)), None)

    @cached_property
    def summed(self) -> range:
        """The descents that restart, which step from the center along their sum of gradients."""
        every = len(self.scales)
        return range(every - (0 if self.restarts is None else self.restarts.kept), every)

    def present(self, t: int) -> int:
        """How many descents there are after t rounds: the first ones."""
        return self.summed.start + (0 if self.restarts is None else self.restarts.present(t))

    @cached_property
    def cells(self) -> int:
        return 0 if self.context is None else self.context.cells

    @cached_property
    def advisers(self) -> tuple[base.Adviser, ...]:
        return tuple(one for one in self.experts if isinstance(one, base.Adviser))

    @cached_property
    def wants_functions(self) -> bool:
        return any(adviser.needs_functions for adviser in self.advisers)

    def __post_init__(self) -> None:
        super().__post_init__()
        alone = self.caution == settings.DEFAULT_CAUTION and not self.per_constraint
        due = f"be given without {'per_constraint' if self.per_constraint else 'caution'}"
        self._require(self.target_violation is None or alone, "target_violation", due)
        if isinstance(self.calls_per_round, str):  # by the kind of set alone, so that runs repeat
            object.__setattr__(self, "calls_per_round", self._auto_calls)

    @property
    def _auto_calls(self) -> float:
        return self.K.calls_worth if isinstance(self.K, Compiled) else 1.0

    # ---------------------------------------------------------------- before a round

    def start(self) -> State:
        return self.committed(self.begin())

    def begin(self) -> State:
        cells, points, experts = self.cells, len(self.scales) + self.cells, len(self.names)
        pool = Pool.start(self.K, points, self.start_at)
        x = pool.x(0)
        absent: tuple[Array | None, ...] = (None,) * max(1, experts)
        weights, shares = arrays.frozen(np.zeros(experts)), arrays.frozen(np.zeros(cells))
        state: State = self.state_type(
            t=0,
            upcoming=Committed(1, x, x, weights, shares, absent),
            pool=pool,
            descents=(Descent(x, x, adagrad.DescentSums.start(self._factors)),) * points,
            cells=certificate.CellSums.start(self.K, cells),
            dual=self._weights.start(),
            mixer=Mixer.start(experts).without(range(self.present(0), len(self.scales))),
            accounts=Accounts.start(experts),
            advisers=tuple(adviser.start(self.K) for adviser in self.advisers),
            last=None if self.max_move is None else x,
            budgets=BudgetSums(tuple(one.name for one in self.budgets)),
        )
        return state

    def with_info(self, state: State, info: RoundInfo) -> State:
        """What is known of the coming round taken in: its context, and advice that waits for it.
        Points under names that no expert has are ignored.
        """
        if self.budgets and info.time is not None:
            state = state._replace(budgets=state.budgets.at(info.time))
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
        return self.block - (0 if state.open is None else state.open.rounds)

    def _committed(self, state: State, info: RoundInfo | None, *, waiting: bool) -> State:
        """The state with the proposals for the coming round, and their mix.

        `waiting`: of those advisers who wait for what is known; else of the others, and the advice
        of those who wait is absent.
        """
        number, out, shares = next_round(state), entries_out(self.K, info), state.upcoming.shares
        state, advice = self._advised(state, info, waiting, number, out)
        if self.context is not None:
            shares = self.context.shares(info, number)
        state, own = self._own_points(state, shares, out)
        points = (*own, *advice)
        before, usual = state.upcoming, None
        if state.outage is not None and not waiting and before.usual is None:
            state = state._replace(outage=None)  # the round before was none
        p = self.weights_of(state.mixer, points)
        x = mix = mixed(p, points)
        if out is not None and self.names and (state.outage is not None or is_far(mix, before.mix)):
            usual, outage = before.usual or before, state.outage or state.mixer
            state, p = state._replace(outage=outage), self.weights_of(outage, points)
            x = mix = mixed(p, points)
        if state.last is not None and (out is None or not uses(state.last, out)):
            x = capped(mix, state.last, self.max_move)
        upcoming = Committed(number, x, mix, arrays.frozen(p), arrays.frozen(shares), points, usual)
        return state._replace(upcoming=upcoming)

    def weights_of(self, mixer: Mixer, points: Sequence[Array | None]) -> Floats:
        if not self.names:
            return np.zeros(0)
        return mixer.weights(np.array([point is not None for point in points]))

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
        found = base.ask_all(
            *(self.K, self.advisers, self.names[first:], state.advisers, kept),
            *(info, number, state.oracle_budget, vertices, state.mixer),
            partial(self.limit_price, state),
        )
        accounts, calls, no_calls = state.accounts, round(found.calls.sum()), np.zeros(first)
        if self.advisers:
            accounts = accounts.plus(
                calls=np.append(no_calls, found.calls), solves=np.append(no_calls, found.solves)
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
        there = self.present(state.t)
        which = [*range(there), *(plain + j for j in cells)]
        if out is None:
            own = [state.pool.x(i) for i in which]
        else:
            state, own = self._around(state, which, out)
        points: list[Array | None] = [*own[:there], *[None] * (plain - there)]
        if self.context is not None:
            points.append(mixed(shares[cells], own[there:]) if cells else None)
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
                accounts=state.accounts._replace(calls=arrays.frozen(own_calls)),
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

    def migrated(self, state: State, old: Learner[Any]) -> State:
        from tidewolf.learners.migration import migrated

        if not isinstance(old, Core) or type(old) is not type(self):
            kind = type(self).__name__
            raise errors.WrongType(
                f"{kind} continues from the state of a {kind}, over this set or another, not from "
                f"that of {arguments.shown(old)}; start anew with tw.Session(learner)."
            )
        refuse_state(self, state)
        return migrated(self, old.with_open_block(state), old)

    def with_open_block(self, state: State) -> State:
        """The state after the step of its open block, if there is one."""
        return state

    # ---------------------------------------------------------------- after a round

    def on_feedback(self, state: State, arrivals: Sequence[Arrival]) -> State:
        """Rounds that come together are weighed together and make one step of each descent."""
        arrivals = in_order(arrivals)
        return self.committed(self._learned(*self._priced(self.committed(state), arrivals)))

    def learned(self, state: State, arrival: Arrival) -> State:
        return self._learned(*self._priced(state, (arrival,)))

    def _priced(self, state: State, arrivals: Sequence[Arrival]) -> tuple[State, Sequence[Arrival]]:
        found, budgets = list[Arrival](), state.budgets
        for one in arrivals:
            own = without(state, one.round)[0] or state.upcoming
            x = own.x if one.of_decision or one.played is None else one.played
            budgets, feedback = priced_spend(self.K, budgets, one.feedback, x, self.caution)
            found.append(one if feedback is one.feedback else one._replace(feedback=feedback))
        if budgets is state.budgets:
            return state, arrivals
        if self.loss_lipschitz is not None:
            raise errors.InvalidInput(
                "Budgets add their price to the losses, whose slope is not known then: leave out "
                "loss_lipschitz.",
                setting="loss_lipschitz",
            )
        return state._replace(budgets=budgets), found

    def _learned(self, state: State, arrivals: Sequence[Arrival]) -> State:
        """The state after feedback. Nothing is committed for the next round, unless that needs no
        adviser.
        """
        if (after := self._learned_at_once(state, arrivals)) is not None:
            return after
        observed, newest = list[PlayedRound](), next_round(state) - 1
        overrides, last = state.overrides, state.last
        for arrival in arrivals:
            own, _ = without(state, arrival.round)
            observed.append(self._observed(state, own or state.upcoming, arrival))
            overrides = overrides.and_of(arrival)
            if last is not None and arrival.round >= newest:
                last = observed[-1].x if arrival.played is None else arrival.played
        here = {arrival.round for arrival in arrivals}
        pending = tuple(one for one in state.pending if one.round not in here)
        state = state._replace(pending=pending, overrides=overrides, last=last)
        return self._stepped(state, observed)

    def _stepped(self, state: State, observed: Observed) -> State:
        x, n = observed[0].x, sum(one.block.rounds for one in observed)
        block = reduce(clock.add_sums, (played_at(one.block, one.x, x) for one in observed))
        weighed = self._weights.weigh(state.dual, block, x)
        state = state.in_units(weighed.unit)._replace(t=state.t + n, dual=weighed.dual)
        each: Fed = by_gradients(self.K, observed, self._groups, weighed)
        if self.context is not None:
            state = self._with_cells(state, observed, each, weighed)
        if self.names:
            state, each = self._mixed(state, observed, each, weighed)
        whole = reduce(ExpertFeedback.and_of, each)
        if whole.price != 0.0:
            V = weighed.loss_weight
            state = priced(state, whole.price / V if V > 0.0 else math.inf)
        state = self._descended(state, observed, each, whole)
        for one in observed:
            state = self._advisers_observe(state, one)
        state = state._replace(oracle_budget=state.oracle_budget + self.calls_per_round * n)
        state = self._restarted(self._projected(state, observed), state.t - n)
        return state._replace(upcoming=state.upcoming._replace(round=next_round(state) + 1))

    def _restarted(self, state: State, before: int) -> State:
        descents, pending = [*state.descents], state.pending
        mixer, outage = state.mixer, state.outage
        for i, share in self.births(before, state.t):
            descents[i] = Descent(
                self.K.center, self.K.center, adagrad.DescentSums.start(self._factors)
            )
            mixer, outage = mixer.with_newcomer(i, share), outage and outage.with_newcomer(i, share)
            pending = tuple(one.without(i) for one in pending)
        return state._replace(descents=tuple(descents), mixer=mixer, outage=outage, pending=pending)

    def births(self, before: int, t: int) -> list[tuple[int, float]]:
        """The descents that begin anew after rounds before + 1 to t, and their shares of trust."""
        if self.restarts is None:
            return []
        born, experts = self.restarts.births(before, t), len(self.names)
        return [(self.summed.start + j, 1.0 / (experts + k)) for k, j in born]

    def spread(self, t: int) -> float:
        """By what gaps of the mixer are divided after t rounds: C of experts/restarts.py."""
        births = 0 if self.restarts is None else t // self.restarts.every
        m = max(1, len(self.names))
        return 1.0 + 2.0 * math.log1p(births / m) / log_experts(m)

    def _advisers_observe(self, state: State, one: PlayedRound) -> State:
        if not self.advisers:
            return state
        feedback = one.functions or one.block
        advisers = (
            adviser.observe_round(self.K, remembered, feedback, one.x, one.own.round)
            for adviser, remembered in zip(self.advisers, state.advisers, strict=True)
        )
        return state._replace(advisers=tuple(advisers))

    def _mixed(
        self, state: State, observed: Observed, each: Fed, weighed: Surrogate
    ) -> tuple[State, Fed]:
        """The state with weights and accounts after these rounds, and what experts are fed: values
        in place of gradients where losses declare their curvature.
        """
        if any(one.own.usual is not None for one in observed):
            return self._mixed_around(state, observed, each, weighed)
        n = sum(one.block.rounds for one in observed)
        fed, mixer, accounts = each, state.mixer, state.accounts
        alphas = [alpha for one in observed if (alpha := self._curvature(one)) is not None]
        try:
            if len(alphas) == len(observed):
                fed = by_values(self.K, observed, self._groups, weighed)
                # a sum of n such losses is mixable at alpha/n
                per_nat = n * weighed.loss_weight / min(alphas)
                if mixer.gap == 0.0 and not mixer.totals.any():
                    began = -np.log(self.prior * len(self.prior)) * per_nat
                    mixer = mixer._replace(totals=arrays.frozen(began))
                mixer = mixer._replace(gap=max(mixer.gap, log_experts(len(self.names)) * per_nat))
            for one, seen in zip(observed, fed, strict=True):
                accounts = accounts.after(one, seen.losses, weighed)
        except errors.InvalidInput:  # an expert proposed a point where the loss has no value
            return self._mixed(
                state, [one._replace(functions=None) for one in observed], each, weighed
            )
        mixed = np.sum([one.mixed for one in fed], axis=0)
        mixer = mixer.updated(mixed, len(state.pending), self.spread(state.t - n))
        return state._replace(mixer=mixer, accounts=accounts), fed

    def _mixed_around(
        self, state: State, observed: Observed, each: Fed, weighed: Surrogate
    ) -> tuple[State, Fed]:
        """The same after rounds that an outage moved: its weights learn from what was played, the
        others from what would have been decided.
        """
        usual = [one._replace(own=one.own.usual or one.own) for one in observed]
        fed = [own.as_usual(one) for one, own in zip(observed, each, strict=True)]
        mixer = self._mixed(state, usual, fed, weighed)[0].mixer
        around = state._replace(mixer=state.outage or mixer)
        observed = [one._replace(own=one.own._replace(usual=None)) for one in observed]
        around, each = self._mixed(around, observed, each, weighed)
        return around._replace(mixer=mixer, outage=state.outage and around.mixer), each

    @cached_property
    def compiled(self) -> CompiledRounds | None:
        """Its rounds in one kernel; None if the set, or a setting, has none, and for subclasses of
        learners, which may do otherwise.
        """
        return compiled_rounds(self) if "__final__" in vars(type(self)) else None

    def __getstate__(self) -> dict[str, Any]:
        """Without what is compiled: a copy compiles again."""
        return {name: value for name, value in vars(self).items() if name != "compiled"}

    def _learned_at_once(self, state: State, arrivals: Sequence[Arrival]) -> State | None:
        """The state after one round at the point that was decided, by the kernel; None if it is
        not for that.
        """
        kernel, arrival = self.compiled, arrivals[0]
        if kernel is None or len(arrivals) > 1 or not arrival.of_decision:
            return None
        if arrival.round != next_round(state) or not kernel.takes(state) or self._reserved(state):
            return None
        observed = self._observed(state, state.upcoming, arrival)
        seen, curved = observed.functions, self.names and self._curvature(observed) is not None
        if curved or not observed.block.is_plain or self.wants_functions is (seen is None):
            return None
        read = kernel_functions.Functions
        functions = read.from_first_order(observed.block) if seen is None else read.of(*seen)
        after = None if functions is None else kernel.learned(state, functions)
        if after is None:
            return None
        after = self._advisers_observe(after, observed)
        return after._replace(overrides=state.overrides.and_of(arrival))

    def _observed(self, state: State, own: Committed, arrival: Arrival) -> PlayedRound:
        x = own.x if arrival.of_decision else arrival.played
        feedback, functions = arrival.feedback, None
        most = capabilities.rounds_at_once(self, state)
        if self.names and isinstance(feedback, FullInformation):
            functions = require_full_information(feedback, self.K.shape, most)
            block = first_order(
                *functions, x, functions.constraints.values(x), per_constraint=self.per_constraint
            )
        elif self.wants_functions:
            raise errors.WrongType(
                f"{type(self).__name__} re-solves with the functions themselves: FullInformation "
                f"feedback is due, not {type(feedback).__name__}."
            )
        else:
            block = feedback  # type: ignore[assignment]  # looked at below
        require_first_order(block, self.K.shape, most)
        return PlayedRound(own, x, block, functions)

    def _curvature(self, one: PlayedRound) -> float | None:
        return None if one.functions is None else one.functions.losses.exp_concavity

    def _descended(
        self, state: State, observed: Observed, each: Fed, whole: ExpertFeedback
    ) -> State:
        """Every infeasible iterate moved: descents by one step for all rounds that arrive together,
        the context's cells by their shares of each round's gradient.
        """
        plain, waiting = len(self.scales), float(len(state.pending))
        scales = self.scales[: self.present(state.t - sum(one.block.rounds for one in observed))]
        steps = [([i], [1.0], [waiting], whole.grads[i], k) for i, k in enumerate(scales)]
        if self.context is not None:
            pending = sum((one.shares for one in state.pending), start=np.zeros(self.cells))
            for one, met in zip(observed, each, strict=True):
                cells = np.flatnonzero(one.own.shares)
                shares, late = one.own.shares[cells].tolist(), pending[cells].tolist()
                which = (plain + cells).tolist()
                steps.append((which, shares, late, met.grads[plain], self.cell_scale))
        descents, factors = list(state.descents), self._factors
        for which, shares, late, grad, scale in steps:
            if not which or grad.norm2 <= 0.0:
                continue
            parts = list[adagrad.Part]()
            for i, share, rounds_late in zip(which, shares, late, strict=True):
                y, _, sums, distance = descents[i]
                reach = adagrad.reaches(factors, state.pool.x(i), y, distance)
                parts.append(adagrad.Part(y, share, sums, reach, rounds_late))
            if which[0] in self.summed:
                own = parts[0], state.pool.x(which[0])
                stepped = [adagrad.step_along_sum(*own, grad, scale, self.K.center, factors)]
            else:
                stepped = adagrad.descend_together(parts, grad, scale, self._keep, factors)
            for i, (y, sums) in zip(which, stepped, strict=True):
                again, distance = i >= plain and len(observed) > 1, descents[i].distance
                if again or not (factors.exact or i in self.summed):  # else projected at once
                    y = adagrad.into_balls(y, self.K.center, factors)
                if again:
                    distance = arrays.norm(y - state.pool.x(i))
                y = arrays.frozen(y)
                descents[i] = Descent(y, y, sums, distance)
        return state._replace(descents=tuple(descents))

    def _with_cells(self, state: State, observed: Observed, each: Fed, weighed: Surrogate) -> State:
        cells, V = state.cells, weighed.loss_weight
        for one, met in zip(observed, each, strict=True):
            g, P = met.grads[0].g, met.grads[0].penalty_gradient
            limit = 0.0 * g if P is None else P
            loss = weighed.loss_gradient if len(observed) == 1 else (g - limit) / V
            cells = cells.and_round(self.K, one.own.shares, loss, limit)
        return state._replace(cells=cells)

    @cached_property
    def _factors(self) -> Factors:
        return adagrad.step_factors(self.K)

    def _projected(self, state: State, observed: Observed) -> State:
        """The members of all infeasible iterates that these rounds moved, on one budget of
        calls."""
        pool, descents, calls = state.pool, list(state.descents), 0
        own_calls, reserved = state.accounts.calls.copy(), self._reserved(state)
        for i in self._order(state, observed):
            budget = max(0, math.floor(state.oracle_budget - calls + 1e-9) - reserved)
            own = descents[i]
            y = own.y + 0.0 if type(own.y) is np.ndarray else own.y  # one to give away
            pool, found = pool.projected(i, self.K, y, self._tolerance2, budget)
            calls += found.calls
            if self.names:
                own_calls[min(i, len(self.scales))] += found.calls
            distance = math.sqrt(found.distance2)
            y = own.y if found.y is y or i in self.summed else found.y
            descents[i] = own._replace(y=y, before_projection=own.y, distance=distance)
        tidied = pool.tidied()
        if tidied is not pool:  # other rows now: advisers get all of them again
            state = state._replace(vertices=0, vertices_of_waiting=0)
        return state._replace(
            pool=tidied,
            oracle_budget=state.oracle_budget - calls,
            calls=state.calls + calls,
            descents=tuple(descents),
            distance=descents[self._largest].distance,
            accounts=state.accounts._replace(calls=arrays.frozen(own_calls)),
        )

    def _reserved(self, state: State) -> int:
        """Calls kept for advisers who wait and need them; none beside a guarantee."""
        if self._pays_first:
            return 0
        proposals_of = zip(self.advisers, state.advisers, strict=True)
        return sum(adviser.reserves(own) for adviser, own in proposals_of if adviser.waits)

    def _order(self, state: State, observed: Observed) -> list[int]:
        """What the budget serves first: the descent that a guarantee is about, if there are calls
        for it, then those who are trusted and far from their infeasible iterates.
        """
        plain, trust = len(self.scales), dict[int, float]()
        there = self.present(state.t - sum(one.block.rounds for one in observed))
        for one in (each.own for each in observed):
            own = {i: float(one.p[i]) if self.names else 1.0 for i in range(there)}
            for j in np.flatnonzero(one.shares).tolist():
                own[plain + j] = float(one.p[plain] * one.shares[j])
            trust |= {i: max(weight, trust.get(i, 0.0)) for i, weight in own.items()}

        def urgency(i: int) -> float:
            if self._pays_first and i == self._largest:
                return math.inf
            apart = arrays.norm(state.descents[i].y - state.pool.x(i))
            return self._precedence[i] * trust[i] * min(2.0 * self.K.radius, apart)

        return sorted(trust, key=urgency, reverse=True) if len(trust) > 1 else list(trust)

    @cached_property
    def _precedence(self) -> tuple[float, ...]:
        """A factor near 1 for each point: of those that are as urgent up to rounding, the oracle
        serves the one with the smallest steps first, then the first one.
        """
        scales = (*self.scales, *(self.cell_scale,) * self.cells)
        last_first = sorted(range(len(scales)), key=lambda i: (-scales[i], -i))
        return tuple((1.0 + NEAR_TIE * np.argsort(last_first)).tolist())

    @cached_property
    def _largest(self) -> int:
        return max(range(self.summed.start), key=lambda i: self.scales[i])

    @cached_property
    def _pays_first(self) -> bool:
        """Whether there are calls enough for one projection every block, whatever happens."""
        tol = self._tolerance2
        earned = self.calls_per_round * self.block
        return tol == 0.0 or earned >= 8.0 * self.K.radius**2 / tol + 4.0

    # ---------------------------------------------------------------- what is known of a run

    def last_projection(self, state: State) -> capabilities.ProjectionRecord:
        own = state.descents[self._largest]
        return capabilities.ProjectionRecord(
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
            return Bound(reason=HELD_BACK)
        e = 0.0 if self._factors.exact else math.sqrt(self._tolerance2)
        if e and not self._pays_first:
            return Bound(
                reason=f"With {self.calls_per_round:g} oracle calls per round, in blocks of "
                f"{self.block}, no distance of x and y can be guaranteed: bounds are measured."
            )
        root, Lam = math.sqrt(self.horizon or 1), log_experts(len(self.names))
        mixed = math.sqrt(Lam) + (4.0 / 3.0 * Lam + 2.0) / root if self.names else 0.0
        mixed *= 0.25 + 0.75 * self.spread(self.horizon or 1)  # of births, if there are any
        price = math.sqrt(0.5 * self.block) * adagrad.price_at_most(
            self.K, self.scales[self._largest], e
        )
        return self._weights.guaranteed(mixed + price + e * root / D, limits)

    @cached_property
    def _groups(self) -> int:
        return len(self.scales) + (self.context is not None)

    @cached_property
    def _weights(self) -> LyapunovWeights:
        both = self.K, self.caution, self.horizon, self.loss_lipschitz, self.constraint_lipschitz
        own, target = self.per_constraint, self.target_violation
        return LyapunovWeights(*both, per_constraint=own, target=target)

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

    def bound_of(self, state: State, *, policies: bool = False) -> Bound:
        """The bound of the rounds before a state, against fixed points, or against policies if
        there is a context.
        """
        epochs, cells = state.migrations, None
        regret = epochs.regret
        if policies and self.context is not None:
            cells, regret = state.cells, epochs.policy_regret
        bound = self._weights.bound(self.dual_of(state), cells)
        return state.budgets.less_paid(epochs.bound(bound, regret))

    def limit_bounds(self, record: Record) -> tuple[capabilities.LimitBound, ...]:
        return self._weights.limit_rows(self.dual_of(record.final_state), record.limit_names)

    def dual_of(self, state: State) -> DualState:
        """The dual state with the rounds of an open block, if there is one: what holds for a block
        holds for the part of it that was played.
        """
        if state.open is None:
            return state.dual
        return self._weights.weigh(state.dual, state.open, state.pool.x(0)).dual

    def notes(self, state: State) -> tuple[str, ...]:
        notes, calls = state.migrations.notes(), self._auto_calls
        notes += (state.costs.note,) if state.costs.imputed else ()
        if self.calls_per_round == 1.0 and calls > 1.0 and state.calls > 0.9 * state.t > 180.0:
            notes += (
                f'Oracle calls are cheap here: calls_per_round = "auto" makes up to {calls:g} per '
                "round, which brings decisions nearer to exact projection at up to twice the time.",
            )
        return notes

    def limit_price(self, state: State) -> float:
        return self._weights.limit_price(state.dual)

    def limit_prices(self, state: State) -> Floats | None:
        return self._weights.limit_prices(state.dual)

    def _require_whole(self, state: State) -> None:
        descents = len(self.scales) + self.cells  # as many as kernels read
        if (len(state.descents), len(state.pool.actives)) != (descents, descents):
            raise ValueError("it has other descents than the learner")
        super()._require_whole(state)

    def slopes(self, state: State) -> Slopes:
        if state.open is None:
            return state.dual.slopes
        return tangent_gradients(self.K, state.open, Given(None, None), state.dual.slopes).slopes
