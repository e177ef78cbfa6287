"""Rounds of an ensemble played by the kernel of kernels/rounds.py: descents, context, mixer and
accounts in one pass; advisers are asked between two rounds.

A state becomes arrays, which rounds change in place, and they become a state again when one is
asked for. What the kernel does not know (late rounds, overrides, entries that are out, losses with
curvature, a weight for each constraint) is played by `Ensemble` itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from tidewolf.core.arrays import frozen
from tidewolf.core.batch import Stream
from tidewolf.core.feedback import FullInformation
from tidewolf.core.round_info import RoundInfo, checked_features
from tidewolf.core.types import Floats, NDArray
from tidewolf.core.vertices import SparseAtoms
from tidewolf.experts.asking import proposals_of
from tidewolf.experts.base import Proposals
from tidewolf.experts.compiled_resolve import Resolving
from tidewolf.experts.resolve import Resolve
from tidewolf.experts.season import Season
from tidewolf.kernels import evaluate, resolving
from tidewolf.kernels import rounds as names
from tidewolf.kernels.rounds import LOOK, UNUSUAL
from tidewolf.methods.accounts import Accounts
from tidewolf.methods.certificate import CellSums, GradientSums
from tidewolf.methods.compiled_rounds import (
    ArrayState,
    CompiledDescent,
    Descents,
    Functions,
    Progressed,
    Records,
    _Scratch,
)
from tidewolf.methods.pool import Pool
from tidewolf.methods.steps.adagrad import DescentSums
from tidewolf.methods.steps.hedge import Mixer
from tidewolf.methods.steps.lyapunov import DualState
from tidewolf.methods.steps.slopes import Slopes
from tidewolf.projection.active_set import ActiveSet

if TYPE_CHECKING:
    from tidewolf.learners.ensemble import Ensemble

COUNTED = (
    "guard",
    "lost",
    "weights",
    "available",
    "losses",
    "violations",
    "run_losses",
    "run_violations",
    "calls",
)
"""The accounts that the kernel keeps, in its order."""


WORTH = 2_048
"""Rounds of a learner for which re-solving in the kernel is worth half a minute of compiling;
before, if there is no machine code yet, advisers are asked between rounds, with the same bits.
"""


class ExpertState(ArrayState):
    """A state of an ensemble as arrays, with what its advisers remember; the state itself is made
    of them on demand.
    """

    _resolving: Resolving | None
    _is_looked_at: bool

    def __init__(self, kernel: CompiledEnsemble, state: Any) -> None:
        self.kernel, self.since = kernel, state
        dual, sums, cells = state.dual, state.dual.sums, state.cells
        upcoming, accounts = state.upcoming, state.accounts
        n = kernel.n
        s = np.zeros(names.SCALARS)
        s[:9] = (
            dual.rounds,
            dual.violation,
            *dual.slopes,
            dual.least_ratio,
            dual.exponent,
            dual.paid,
            sums.loss_at,
            dual.impossible,
        )
        s[names.ORACLE_BUDGET], s[names.ALL_CALLS] = state.oracle_budget, state.calls
        s[names.LIMIT_AT] = sums.limit_at
        s[names.GAP], s[names.RANGE] = state.mixer.gap, state.mixer.largest
        s[names.UNKNOWN_LOSS], s[names.UNKNOWN_LIMIT] = cells[2:]
        gradients = np.empty((2, 1 + len(cells.loss), n))
        gradients[0, 0], gradients[1, 0] = sums.loss, sums.limit
        gradients[0, 1:], gradients[1, 1:] = cells.loss, cells.limit
        pool, m, E = state.pool, len(state.descents), len(upcoming.p)
        weights = np.zeros((m, pool.count))
        for i, active in enumerate(pool.actives):
            weights[i, : len(active.weights)] = active.weights
        Z, awake = np.zeros((E, n)), np.zeros(E)
        for i, z in enumerate(upcoming.points):
            if z is not None:
                Z[i], awake[i] = z, 1.0
        self.own = Descents(
            s=s,
            x=upcoming.x,
            X=np.array([active.x for active in pool.actives]),
            Y=np.array([own.y for own in state.descents]),
            before=np.array([own.before_projection for own in state.descents]),
            sums=np.array(
                [
                    (
                        own.sums.square_sum,
                        own.sums.inverse_step,
                        own.sums.largest,
                        own.distance,
                        0.0,
                        own.y is not own.before_projection,
                    )
                    for own in state.descents
                ]
            ),
            gradients=gradients,
            atoms=pool.table,
            count=pool.count,
            weights=weights,
            mixer=(
                *kernel.constants,
                np.zeros(m, np.int64),
                Z,
                awake,
                upcoming.p,
                state.mixer.totals,
                np.array([getattr(accounts, name) for name in COUNTED]),
            ),
        )
        self.number, self.t, self.played = upcoming.round, state.t, accounts.played
        self.solves, self.vertices, self.unseen = accounts.solves, state.vertices, accounts.unseen
        self.advised(state.advisers)
        self._x, self._state = upcoming.x, state
        self.shares: Floats = upcoming.shares[None].copy()  # as kernels want them: writeable

    def copy(self) -> ExpertState:
        """One that the kernel may change."""
        made, own = object.__new__(ExpertState), self.own
        made.__dict__.update(self.__dict__)
        arrays = (own.s, own.x, own.X, own.Y, own.before, own.sums, own.gradients)
        mixer = (*own.mixer[:2], *[a.copy() for a in own.mixer[2:]])
        table = (own.atoms, own.count, own.weights)
        made.own = Descents(*[a.copy() for a in arrays], *table, mixer)  # type: ignore
        made._resolving = None if self._resolving is None else self._resolving.copy()
        made._x = made._state = None
        return made

    @property
    def advisers(self) -> tuple[Any, ...]:
        """What advisers remember."""
        return self._advisers if self._resolving is None else tuple(self._resolving.states())

    @property
    def resolving(self) -> Resolving | None:
        """The same as the kernel takes it, if all of them re-solve."""
        if not self._is_looked_at:
            self._is_looked_at = True
            learner, states = self.kernel.learner, self._advisers
            if states:
                self._resolving = Resolving.of(learner.K, learner.advisers, states, self.number)
        return self._resolving

    def advised(self, states: Sequence[Any]) -> None:
        """Advisers were asked one by one, and remember this."""
        self._advisers, self._is_looked_at = tuple(states), False
        self._resolving = None

    @property
    def x(self) -> Floats:
        """The point of the next round, of which nothing else is known."""
        if self._x is None:
            self.shares = self.kernel.shares(self.number, 1)
            self.kernel.mix(self.own, self.shares[0])
            self._x = frozen(self.own.x.copy())
        x: Floats = self._x
        return x

    @property
    def state(self) -> Any:
        """The state, whose next round is decided."""
        if self._state is None:
            x, (_, _, _, Z, awake, p, _, _) = self.x, self.own.mixer
            points = [
                frozen(z.copy()) if there > 0.0 else None for z, there in zip(Z, awake, strict=True)
            ]
            shares = frozen(self.shares[0].copy())
            upcoming = type(self.since.upcoming)(
                self.number, x, x, frozen(p.copy()), shares, tuple(points)
            )
            self._state = self.undecided()._replace(upcoming=upcoming)
        return self._state

    def undecided(self) -> Any:
        """The state after the rounds played, with nothing settled for the next."""
        own, since, s = self.own, self.since, self.own.s.tolist()
        _, _, _, _, _, _, totals, accounts = own.mixer
        rounds, violation, loss, limit, ratio, exponent, paid, loss_at, impossible = s[:9]
        F, W = own.gradients.copy()
        X, Y, before, weights = (
            a.copy() for a in (own.X, own.Y, own.before, own.weights[:, : own.count])
        )
        for array in (F, W, X, Y, before, weights):
            array.setflags(write=False)
        sums = GradientSums(F[0], W[0], loss_at, s[names.LIMIT_AT])
        dual = DualState(
            int(rounds),
            violation,
            Slopes(loss, limit),
            ratio,
            int(exponent),
            paid,
            impossible > 0.0,
            sums,
            since.dual.carried,
        )
        descents, actives = [], []
        for i, (square, inverse, largest, apart, _, moved) in enumerate(own.sums.tolist()):
            y = Y[i] if moved > 0.0 else before[i]
            steps = DescentSums(square, inverse, None, largest)
            descents.append(type(since.descents[0])(y, before[i], apart, steps))
            actives.append(ActiveSet(own.atoms, weights[i], X[i], since.pool.actives[i].warm))
        counted = {name: frozen(a.copy()) for name, a in zip(COUNTED, accounts, strict=True)}
        return since._replace(
            t=self.t,
            pool=Pool(tuple(actives), own.atoms, own.count),
            descents=tuple(descents),
            cells=CellSums(F[1:], W[1:], s[names.UNKNOWN_LOSS], s[names.UNKNOWN_LIMIT]),
            dual=dual,
            mixer=Mixer(frozen(totals.copy()), s[names.GAP], s[names.RANGE]),
            accounts=Accounts(
                **counted, unseen=self.unseen, played=self.played, solves=frozen(self.solves)
            ),
            advisers=tuple(self.advisers),
            oracle_budget=s[names.ORACLE_BUDGET],
            calls=int(s[names.ALL_CALLS]),
            solves=since.solves + round(float((self.solves - since.accounts.solves).sum())),
            vertices=self.vertices,
            distance=float(own.sums[self.kernel.learner._largest, names.APART_OF]),
        )


class CompiledEnsemble:
    """The rounds of one ensemble."""

    def __init__(self, learner: Ensemble, own: CompiledDescent) -> None:
        self.learner, self.n, self._own = learner, own.n, own
        cells = 0 if learner.context is None else learner.context.cells
        scales = (*learner.step_scales, *(learner.cell_scale,) * cells)
        self.constants = np.array(scales), np.array(learner._precedence)
        self.cells, self.plain = cells, len(learner.step_scales)
        own.settings[names.PLAIN], own.settings[names.LONGEST] = self.plain, learner._largest
        own.settings[names.PAYS_FIRST] = learner._pays_first
        own.settings[names.VALUED] = learner._wants_functions
        self.measures = len(learner.names)
        self._asked = 0
        self._sizes = tuple(len(adviser.names) for adviser in learner.advisers)

    def plays(self, stream: Stream) -> bool:
        """Whether advisers are asked without side information, and losses declare no curvature."""
        learner = self.learner
        waits = any(adviser.waits for adviser in learner.advisers)
        reads = not learner.advisers or learner._wants_functions
        return reads and not waits and stream.losses.exp_concavity is None

    @cached_property
    def plays_live(self) -> bool:
        """Whether rounds of which nothing is known before need the kernel alone."""
        context, advisers = self.learner.context, self.learner.advisers
        plain = all(isinstance(one, Resolve) and one.is_plain for one in advisers)
        return plain and (context is None or type(context) is Season)

    def takes(self, state: Any) -> bool:
        """Whether the kernel can go on from a state: nothing waits, is held back or out."""
        upcoming = state.upcoming
        return (
            not state.pending
            and state.proposed is None
            and (upcoming.x is upcoming.mix or np.array_equal(upcoming.x, upcoming.mix))
            and upcoming.round == state.t + state.lost
            and type(state.pool.table) is SparseAtoms
        )

    def begin(self, state: Any) -> ExpertState:
        """The arrays of a state that it takes."""
        return ExpertState(self, state)

    def learned(self, state: Any, functions: Functions) -> Any:
        """The state after one round at the point that was decided, with nothing settled for the
        next; None where the round is not for the kernel.
        """
        now = ExpertState(self, state).copy()
        shares = now.shares
        done, code, _ = self._run(now, functions, 0, 1, None, shares)
        if not done:
            return None
        if code == LOOK:
            self._tidied(now)
        return now.undecided()

    def play(
        self,
        start: ExpertState,
        functions: Functions,
        first: int,
        k: int,
        records: Records | None = None,
    ) -> Progressed:
        """Up to k rounds, of a stream where something may be known before them."""
        decided = start.x if functions.stream is None else None  # the only one known to come
        now, done, code, alone = start.copy(), 0, 0, not self.learner.advisers
        solved, given, shares = np.zeros(k), functions.given, start.shares
        plain = given[0] == evaluate.LINEAR and given[4] == evaluate.CAPACITY
        plain = plain and not alone and (decided is not None or self._resolves(k))
        while done < k and code not in (UNUSUAL, LOOK, names.ENOUGH):
            t, resolving = first + done, now.resolving if plain else None
            ahead = k - done if alone or resolving is not None else 1
            if decided is None or done:
                shares = self.shares(now.number, ahead, functions, t)
                self.mix(now.own, shares[0])
            part = None if records is None else records.after(done)
            advice = None if resolving is None else resolving.arrays(t)
            more, code, columns = self._run(now, functions, t, ahead, part, shares, advice)
            if code == LOOK:
                self._tidied(now)
            seen, before = 0, now.solves
            now.vertices = now.own.count if alone else now.vertices
            x = frozen(now.own.x.copy())
            if resolving is not None and more:
                seen = more - int(now.own.s[names.UNADVISED])
                each = resolving.played(given[1][t : t + seen], given[5][t : t + seen], x)
                now.solves, now.vertices = before.copy(), now.own.count
                now.solves[len(before) - len(each) :] += each
                solved[done : done + seen] = columns[:seen, names.SOLVED]
            if seen < more and not alone:
                one = slice(t + more - 1, t + more)
                losses, limits = functions.batches
                self._advised(now, FullInformation(losses.view(one), limits.view(one)), x)
                solved[done + more - 1] = round(float((now.solves - before).sum()))
            done += more
        columns = columns if records is None else records.columns
        if not done:
            return Progressed(start, 0, True, False, columns, solves=solved[:0])
        return Progressed(now, done, code == UNUSUAL, code == LOOK, columns, solves=solved[:done])

    def _resolves(self, rounds: int) -> bool:
        """Whether so many more rounds of runs are re-solved in the kernel."""
        self._asked += rounds
        return self._asked > WORTH or resolving.resolve.is_at_hand

    def _run(
        self,
        now: ExpertState,
        functions: Functions,
        first: int,
        k: int,
        records: Records | None,
        shares: Floats,
        advice: tuple[NDArray, ...] | None = None,
    ) -> tuple[int, int, NDArray]:
        own = self._own
        try:
            scratch = own._spare.pop()
        except IndexError:  # others use what there is
            scratch = _Scratch(own.K, own.n)
        try:
            done, code, columns = own.run(
                now.own, functions, first, k, records, scratch, shares, advice
            )
        finally:
            own._spare.append(scratch)
        if done:
            now.number, now.t = now.number + done, now.t + done
            now.played = frozen(now.own.mixer[5].copy())
            now.unseen += 0 if self.learner._wants_functions else done
        return done, code, columns

    def shares(self, number: int, k: int, functions: Functions | None = None, t: int = 0) -> Floats:
        """phi of k rounds, one row each, from what a stream says of them, if there is one."""
        context = self.learner.context
        if type(context) is Season and context.table is not None:
            return context.table[np.arange(number, number + k) % len(context.table)]
        shares = np.zeros((k, self.cells))
        for i in range(k if context is not None else 0):
            info: RoundInfo | None = None
            if functions is not None and functions.stream is not None:
                info = functions.stream.info(functions.start + t + i)
            assert context is not None
            features = context.features(info, number + i)
            if features is not None:
                cells, phi = checked_features(features, self.cells, number + i)
                np.add.at(shares[i], cells, phi)
        return shares

    def mix(self, own: Descents, shares: Floats) -> None:
        """The proposals of descents and context, all weights, and their mean."""
        _, _, _, Z, awake, p, totals, _ = own.mixer
        every = np.ones(len(own.X))
        every[self.plain :] = shares
        names.mix.ready(own.X, every, self.plain, Z, awake, totals, own.s[names.GAP], p, own.x)

    def _advised(self, now: ExpertState, seen: FullInformation, x: Floats) -> None:
        """Advisers see the last round and propose for the next one."""
        learner, K, own = self.learner, self.learner.K, now.own
        _, _, _, Z, awake, _, _, accounts = own.mixer
        count, at = own.count, learner._groups
        vertices = own.atoms.vertices[now.vertices : count] if now.vertices < count else ()
        feedback = seen if learner._wants_functions else None
        solves, states = np.array(now.solves), list(now.advisers)
        for i, adviser in enumerate(learner.advisers):
            assert feedback is not None
            state = adviser.observe_round(K, states[i], feedback, x, now.number - 1)
            budget = math.floor(own.s[names.ORACLE_BUDGET] + 1e-9)
            found = proposals_of(
                learner.names[at], adviser, K, state, None, now.number, budget, tuple(vertices)
            )
            size = self._sizes[i]
            if found is None:
                found = Proposals((None,) * size, state)
            states[i] = found.state
            for j, z in enumerate(found.points, at):
                awake[j] = z is not None
                if z is not None:
                    Z[j] = z
            if found.calls:
                own.s[names.ORACLE_BUDGET] -= found.calls
                own.s[names.ALL_CALLS] += found.calls
                accounts[names.CALLS_BY, at : at + size] += found.calls / size
            solves[at : at + size] += found.solves / size
            for vertex in found.found:
                if own.atoms.find(vertex, own.count) is None:
                    table = own.atoms.append(vertex, own.count)
                    assert type(table) is SparseAtoms
                    own.atoms = table
                    grown = np.zeros((len(own.X), own.count + 1))
                    grown[:, : own.count] = own.weights[:, : own.count]
                    own.weights, own.count = grown, own.count + 1
            at += size
        now.vertices, now.solves = count, solves
        now.advised(states)

    def _tidied(self, now: ExpertState) -> None:
        """The table without rows that are idle in all points."""
        own = now.own
        rows = np.flatnonzero((own.weights[:, : own.count] > 0.0).any(axis=0))
        table = own.atoms.only(rows)
        assert type(table) is SparseAtoms
        own.atoms, own.count = table, len(rows)
        own.weights = np.ascontiguousarray(own.weights[:, rows])
        now.vertices = 0
