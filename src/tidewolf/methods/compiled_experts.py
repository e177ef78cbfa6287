"""Rounds of an ensemble played by the kernel of kernels/rounds.py: descents, context, mixer and
accounts in one pass; advisers are asked between two rounds.

A state becomes arrays, which rounds change in place, and they become a state again when one is
asked for. What the kernel does not know (late rounds, overrides, entries that are out, losses with
curvature, a weight for each constraint) is played by `Ensemble` itself.
"""

from __future__ import annotations

import math
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
from tidewolf.experts.season import Season
from tidewolf.kernels import evaluate
from tidewolf.kernels import rounds as names
from tidewolf.kernels.rounds import LOOK, UNUSUAL
from tidewolf.methods.accounts import Accounts
from tidewolf.methods.certificate import CellSums, GradientSums
from tidewolf.methods.compiled_rounds import (
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


class ExpertState:
    """A state of an ensemble as arrays, with what its advisers remember; the state itself is made
    of them on demand.
    """

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
            x=upcoming.x.copy(),
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
                upcoming.p.copy(),
                state.mixer.totals.copy(),
                np.array([getattr(accounts, name) for name in COUNTED]),
            ),
        )
        self.number, self.t, self.played = upcoming.round, state.t, accounts.played
        self.advisers, self.solves = list(state.advisers), accounts.solves
        self.vertices, self.unseen, self._state = state.vertices, accounts.unseen, state

    @property
    def state(self) -> Any:
        """The state, whose next round is decided."""
        if self._state is None:
            learner = self.kernel.learner
            self._state = learner.committed_as(self.undecided(), self.advice())
        return self._state

    def advice(self) -> list[Any]:
        """What advisers propose for the next round, None where they are absent."""
        _, _, _, Z, awake, *_ = self.own.mixer
        first = self.kernel.learner._groups
        return [frozen(Z[i].copy()) if awake[i] > 0.0 else None for i in range(first, len(Z))]

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
        self._sizes = tuple(len(adviser.names) for adviser in learner.advisers)

    def plays(self, stream: Stream) -> bool:
        """Whether advisers are asked without side information, and losses declare no curvature."""
        learner = self.learner
        waits = any(adviser.waits for adviser in learner.advisers)
        reads = not learner.advisers or learner._wants_functions
        return reads and not waits and stream.losses.exp_concavity is None

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
        now = ExpertState(self, state)
        shares = np.ascontiguousarray(state.upcoming.shares[None])
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
        """Up to k rounds of a stream."""
        assert functions.stream is not None
        now, done, code, alone = start, 0, 0, not self.learner.advisers
        solved = np.zeros(k)
        now._state = None
        while done < k and code not in (UNUSUAL, LOOK, names.ENOUGH):
            t, ahead = first + done, k - done
            resolving = self._resolving(now, functions, t) if ahead > 1 and not alone else None
            if resolving is None and not alone:
                ahead = 1
            shares = self._shares(now.number, functions, t, ahead)
            self._mix(now, shares[0])
            part = None if records is None else records.after(done)
            more, code, columns = self._run(now, functions, t, ahead, part, shares, resolving)
            if code == LOOK:
                self._tidied(now)
            seen, x, before = 0, frozen(now.own.x.copy()), now.solves
            if resolving is not None and more:
                seen = more - int(now.own.s[names.UNADVISED])
                now.advisers, now.vertices = resolving.states(seen, x), now.own.count
                now.solves = before + resolving.solves(seen, len(before))
                solved[done : done + seen] = columns[:seen, names.SOLVED]
            if seen < more and not alone:
                one = slice(t + more - 1, t + more)
                losses, limits = functions.batches
                self._advised(now, FullInformation(losses.view(one), limits.view(one)), x)
                solved[done + more - 1] = round(float((now.solves - before).sum()))
            done += more
        columns = columns if records is None else records.columns
        return Progressed(now, done, code == UNUSUAL, code == LOOK, columns, solves=solved[:done])

    def _resolving(self, now: ExpertState, functions: Functions, t: int) -> Resolving | None:
        """What its advisers know, for the kernel to re-solve; None if that is not for it."""
        loss, limit = functions.given[0], functions.given[4]
        if loss != evaluate.LINEAR or limit != evaluate.CAPACITY:
            return None
        rows, learner = (functions.given[1], functions.given[5]), self.learner
        return Resolving.of(learner.K, learner.advisers, now.advisers, *rows, t, now.number)

    def _run(
        self,
        now: ExpertState,
        functions: Functions,
        first: int,
        k: int,
        records: Records | None,
        shares: Floats,
        resolving: Resolving | None = None,
    ) -> tuple[int, int, NDArray]:
        own, advice = self._own, None
        if resolving is not None:
            advice = resolving.floats, resolving.ints
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
            now.number, now.t, now._state = now.number + done, now.t + done, None
            now.played = frozen(now.own.mixer[5].copy())
            now.unseen += 0 if self.learner._wants_functions else done
        return done, code, columns

    def _shares(self, number: int, functions: Functions, t: int, k: int) -> Floats:
        """phi of k rounds, one row each."""
        context, stream = self.learner.context, functions.stream
        if type(context) is Season and context.table is not None:
            return context.table[np.arange(number, number + k) % len(context.table)]
        shares = np.zeros((k, self.cells))
        for i in range(k if context is not None else 0):
            info: RoundInfo | None = stream.info(functions.start + t + i)
            assert context is not None
            features = context.features(info, number + i)
            if features is not None:
                cells, phi = checked_features(features, self.cells, number + i)
                np.add.at(shares[i], cells, phi)
        return shares

    def _mix(self, now: ExpertState, shares: Floats) -> None:
        own, (_, _, _, Z, awake, p, totals, _) = now.own, now.own.mixer
        every = np.ones(len(own.X))
        every[self.plain :] = shares
        names.mix.compiled(own.X, every, self.plain, Z, awake, totals, own.s[names.GAP], p, own.x)

    def _advised(self, now: ExpertState, seen: FullInformation, x: Floats) -> None:
        """Advisers see the last round and propose for the next one."""
        learner, K, own = self.learner, self.learner.K, now.own
        _, _, _, Z, awake, _, _, accounts = own.mixer
        count, at = own.count, learner._groups
        vertices = own.atoms.vertices[now.vertices : count] if now.vertices < count else ()
        feedback = seen if learner._wants_functions else None
        solves = np.array(now.solves)
        for i, adviser in enumerate(learner.advisers):
            assert feedback is not None
            state = adviser.observe_round(K, now.advisers[i], feedback, x, now.number - 1)
            budget = math.floor(own.s[names.ORACLE_BUDGET] + 1e-9)
            found = proposals_of(
                learner.names[at], adviser, K, state, None, now.number, budget, tuple(vertices)
            )
            size = self._sizes[i]
            if found is None:
                found = Proposals((None,) * size, state)
            now.advisers[i] = found.state
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

    def _tidied(self, now: ExpertState) -> None:
        """The table without rows that are idle in all points."""
        own = now.own
        rows = np.flatnonzero((own.weights[:, : own.count] > 0.0).any(axis=0))
        table = own.atoms.only(rows)
        assert type(table) is SparseAtoms
        own.atoms, own.count = table, len(rows)
        own.weights = np.ascontiguousarray(own.weights[:, rows])
        now.vertices = 0
