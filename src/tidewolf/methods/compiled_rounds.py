"""Rounds of the Lyapunov family in one kernel (kernels/rounds.py), and what goes in and comes out.

A state becomes arrays, the kernel plays rounds on a copy of them, and they become a state again if
one is asked for; a live round is one such round, a run as many as the kernel is let. Whatever needs
a sentence or a solver comes back: gradients that are refused, tables that are full, active sets to
be made smaller. Advisers are asked between two rounds, unless the kernel re-solves for them
(kernels/resolving.py). What the kernel does not know (late rounds, overrides, entries that are out,
losses with curvature, blocks, a weight for each constraint) is played by `Core` itself.
"""

from __future__ import annotations

import math
import weakref
from collections import defaultdict, deque, namedtuple
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tidewolf.core.arrays import frozen
from tidewolf.core.batch import Stream
from tidewolf.core.feedback import Arrival, Feedback, FirstOrder, FullInformation
from tidewolf.core.jit import MODE, Kernel
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Floats, NDArray
from tidewolf.core.vertices import SparseAtoms
from tidewolf.experts.base import ask_all
from tidewolf.experts.compiled_resolve import Resolving
from tidewolf.experts.context import Season
from tidewolf.experts.resolve import Resolve
from tidewolf.kernels import active_set, box, boxed_dual, evaluate, large, resolving, simplices
from tidewolf.kernels import rounds as names
from tidewolf.kernels.active_set import BAD_ORACLE, USED
from tidewolf.kernels.rounds import ENOUGH, LOOK, PLAYED, TOO_MANY, UNUSUAL
from tidewolf.methods.accounts import Accounts
from tidewolf.methods.certificate import CellSums, GradientSums, SharpSums
from tidewolf.methods.kernel_functions import Functions, Records, read_only
from tidewolf.methods.late import Committed
from tidewolf.methods.pool import Pool
from tidewolf.methods.steps.adagrad import DescentSums, step_factors
from tidewolf.methods.steps.hedge import Mixer
from tidewolf.methods.steps.lyapunov import LEAST_HORIZON, Aim, DualState
from tidewolf.methods.steps.slopes import Slopes
from tidewolf.projection.active import Active, ActiveSet, ExactPoint, factors_of, rows_to_keep
from tidewolf.projection.search import address_of, as_bytes, make_way, refuse, tie_margin
from tidewolf.sets.base import CompiledGeometry, KernelGeometry
from tidewolf.sets.calculus import Product

if TYPE_CHECKING:
    from tidewolf.learners.core import Core
    from tidewolf.learners.state import State

_ENDS = (PLAYED, UNUSUAL, LOOK, ENOUGH)
_NO_ADVICE = np.zeros(0), np.zeros(0, np.int64), np.zeros((0, 0)), np.zeros((0, 0))
_NO_ATOMS = SparseAtoms()
_NOTHING = frozen(np.zeros(0))
_NO_FUNCTIONS = Functions.costs(np.zeros((1, 1)), None)
# The accounts that the kernel keeps, in its order.
COUNTED = (*Accounts._fields[:8], "calls")
# Entries of a point from which on a round goes over them as few times as may be.
LARGE = 1 << 12
# Numbers of a state from which on their memory is used again.
MANY = 1 << 17


# What rounds change, in one array, as `parts` of kernels/rounds.py has it: the dual state, the
# point to be played, all descents with their steps, the sums of gradients; the proposals, which of
# them are there, and the weights, totals and accounts of all experts, empty for a single descent.
Arrays = namedtuple("Arrays", "s x X Y before steps sums gradients sharp Z awake p totals accounts")


def _fill(arrays: Arrays, state: State) -> None:
    dual, cells, upcoming, s = state.dual, state.cells, state.upcoming, arrays.s
    s[:] = arrays.awake[:] = 0.0
    arrays.Z[:] = 0.0
    s[:5] = dual.rounds, dual.violation, *dual.slopes, dual.least_ratio
    s[5:8] = dual.exponent, dual.paid, dual.sums.loss_at
    s[names.IMPOSSIBLE], s[names.LIMIT_AT] = dual.impossible, dual.sums.limit_at
    s[names.ORACLE_BUDGET], s[names.ALL_CALLS] = state.oracle_budget, state.calls
    s[names.GAP], s[names.RANGE], s[names.SPREAD] = state.mixer.gap, state.mixer.largest, 1.0
    s[names.UNKNOWN_LOSS], s[names.UNKNOWN_LIMIT] = cells[2:]
    s[names.LOG_WEIGHT : names.SHARP_AT] = dual.aim or 0.0
    s[names.SHARP_AT : names.SCALARS] = dual.sharp[2:]
    arrays.sharp[:] = dual.sharp.points, dual.sharp.limit
    arrays.gradients[:, 0] = dual.sums.loss, dual.sums.limit
    arrays.gradients[:, 1:] = cells.loss, cells.limit
    for i, (own, active) in enumerate(zip(state.descents, state.pool.actives, strict=True)):
        arrays.X[i], arrays.Y[i], arrays.before[i] = active.x, own.y, own.before_projection
        arrays.steps[i] = own.sums
        arrays.sums[i] = own.distance, 0.0, own.y is not own.before_projection
    arrays.p[:], arrays.totals[:] = upcoming.p, state.mixer.totals
    for i in range(len(arrays.p)):
        arrays.x[:] = upcoming.x
        z = upcoming.points[i]
        if z is not None:
            arrays.Z[i], arrays.awake[i] = z, 1.0
    for counted, name in zip(arrays.accounts, COUNTED, strict=True):
        counted[:] = getattr(state.accounts, name)


class ArrayState:
    """A state as arrays, none of which is changed any more, with what advisers remember; the state
    itself is made of them on demand.
    """

    def __init__(self, kernel: CompiledRounds, state: State) -> None:
        self.kernel, self.since = kernel, state
        # whether rounds of costs alone continue it: no budget is counted, and no cost imputed
        self.is_plain = not (state.budgets.names or state.costs.imputed)
        self.numbers = kernel.room()  # what rounds change
        self.origin = _NOTHING
        self._arrays: Arrays | None = None
        _fill(self.arrays, state)
        pool, accounts = state.pool, state.accounts
        self.atoms, self.count = _NO_ATOMS if kernel.exact else pool.table, pool.count
        self.weights = np.array([pool.weights(i) for i in range(len(pool.actives))])
        self.number, self.t, self.played = state.upcoming.round, state.t, accounts.played
        self.solves, self.vertices, self.unseen = accounts.solves, state.vertices, accounts.unseen
        self._advisers = state.advisers
        self.shares: Floats = state.upcoming.shares[None].copy()  # as kernels want them: writeable
        self._x: Floats | None = state.upcoming.x
        self._state: State | None = state

    def copy(self, functions: Functions | None = None) -> ArrayState:
        """One that the kernel may change. For functions that large points know it has room and
        scalars alone, and the kernel reads the rest from the `origin`.
        """
        made = object.__new__(ArrayState)
        made.__dict__ = self.__dict__.copy()
        kernel, copied = self.kernel, self.numbers
        if kernel.is_large and functions is not None and functions.by_entry:
            made.origin, copied = read_only(copied), copied[: names.SCALARS]
        if kernel.size < MANY and copied is self.numbers:
            made.numbers = copied.copy()
        else:
            made.numbers = kernel.room()
            made.numbers[: len(copied)] = copied
        if (resolving := vars(self).get("resolving")) is not None:
            made.resolving = resolving.copy()
        made._arrays = made._x = made._state = None
        return made

    @property
    def arrays(self) -> Arrays:
        if self._arrays is None:
            self._arrays = self.kernel.arrays(self.numbers)
        return self._arrays

    @property
    def lost(self) -> int:
        """Rounds without feedback, of which none is waited for any more."""
        return self.number - self.t

    @property
    def advisers(self) -> tuple[Any, ...]:
        resolving = vars(self).get("resolving")
        return self._advisers if resolving is None else tuple(resolving.states())

    @cached_property
    def resolving(self) -> Resolving | None:
        """The same as the kernel takes it, if all of them re-solve."""
        learner, states = self.kernel.learner, self._advisers
        return Resolving.of(learner.K, learner.advisers, states, self.number) if states else None

    @property
    def x(self) -> Floats:
        """The point of the next round, of which nothing else is known."""
        if self._x is None:
            kernel = self.kernel
            if kernel.experts:
                self.shares = kernel.shares(self.number, 1)
                kernel.mix(self, self.shares)
                self._x = frozen(self.arrays.x.copy())
            else:
                self._x = frozen(self.numbers[kernel.point])
        return self._x

    @property
    def state(self) -> Any:
        if self._state is None:
            x, arrays = self.x, self.arrays
            points: list[Floats | None] = [x]
            if self.kernel.experts:
                there = zip(arrays.Z, arrays.awake > 0.0, strict=True)
                points = [z if is_there else None for z, is_there in there]
            shares = frozen(self.shares[0].copy())
            upcoming = Committed(self.number, x, x, arrays.p, shares, tuple(points))
            self._state = self.undecided(upcoming)
        return self._state

    @property
    def dual(self) -> DualState:
        s, (F, W), sharp = self.arrays.s.tolist(), self.arrays.gradients, self.arrays.sharp
        rounds, violation, loss, limit, ratio, exponent, paid, loss_at = s[:8]
        z, counted, *sums = s[names.LOG_WEIGHT : names.SHARP_AT]
        sharp_at, sharp_paid, broken = s[names.SHARP_AT : names.SCALARS]
        own = int(rounds), violation, Slopes(loss, limit), ratio, int(exponent), paid
        since, gradients = self.since.dual, GradientSums(F[0], W[0], loss_at, s[names.LIMIT_AT])
        found = SharpSums(sharp[1], sharp[0], sharp_at, sharp_paid, int(broken))
        aim = None if since.aim is None else Aim(z, int(counted), *sums)
        return DualState(*own, s[names.IMPOSSIBLE] > 0.0, gradients, found, since.carried, aim=aim)

    def undecided(self, upcoming: Committed | None = None) -> State:
        """The state after the rounds played, with what is committed for the next, if it is."""
        kernel, since = self.kernel, self.since
        for array in (self.numbers, self.weights, self.solves):
            array.setflags(write=False)  # from here on they are parts of a state
        arrays = self._arrays = kernel.arrays(self.numbers)
        s, (F, W), dual = arrays.s.tolist(), arrays.gradients, self.dual
        descents, actives, weights = [], list[Active](), self.weights[:, : self.count]
        for i, (apart, _, moved) in enumerate(arrays.sums.tolist()):
            x, aimed = arrays.X[i], arrays.before[i]
            y = arrays.Y[i] if moved > 0.0 else aimed
            if kernel.exact:
                y = y if i in kernel.learner.summed else x
                actives.append(ExactPoint(x))
            else:
                warm = getattr(since.pool.actives[i], "warm", None)
                actives.append(ActiveSet(self.atoms, weights[i], x, warm))
            sums = DescentSums(*arrays.steps[i])
            descents.append(type(since.descents[i])(y, aimed, sums, apart))
        return since._replace(
            t=self.t,
            upcoming=upcoming or since.upcoming,
            pool=Pool(tuple(actives), None if kernel.exact else self.atoms, self.count),
            descents=tuple(descents),
            cells=CellSums(F[1:], W[1:], s[names.UNKNOWN_LOSS], s[names.UNKNOWN_LIMIT]),
            dual=dual,
            mixer=Mixer(arrays.totals, s[names.GAP], s[names.RANGE]),
            outage=None,
            accounts=Accounts(
                **dict(zip(COUNTED, arrays.accounts, strict=True)),
                unseen=self.unseen,
                played=self.played,
                solves=self.solves,
            ),
            advisers=tuple(self.advisers),
            oracle_budget=s[names.ORACLE_BUDGET],
            calls=int(s[names.ALL_CALLS]),
            solves=since.solves + round(float((self.solves - since.accounts.solves).sum())),
            vertices=self.vertices,
            distance=float(arrays.sums[kernel.learner._largest, names.APART_OF]),
        )


def whole(state: Any) -> Any:
    """The state itself, also of what a kernel left."""
    return state.state if isinstance(state, ArrayState) else state


class Progressed(NamedTuple):
    """What the kernel came back with."""

    after: ArrayState
    done: int  # rounds that were played
    unusual: bool  # the next one is to be played without the kernel
    look: bool  # the projection of the last one was not checked: the caller checks it
    columns: NDArray  # what was recorded of them: the loss and the constraint's value at least
    solves: Floats | None = None  # programs solved in each round, if some were


class CompiledRounds:
    """The rounds of one learner: settings and scratch arrays; states go in and come out."""

    def __init__(self, learner: Core, K: KernelGeometry, geometry: tuple[Any, Any]) -> None:
        whole, factors = learner.K, step_factors(learner.K)
        self.learner, self.n, self._geometry_of = learner, len(whole.center), K
        self.advisers, self._sees_functions = learner.advisers, learner.wants_functions
        self.exact, self.experts = factors.exact, len(learner.names)
        self.cells = 0 if learner.context is None else learner.context.cells
        self.plain, self.measures = len(learner.scales), self.experts
        # where a single descent is in the numbers of a state
        self.point = slice(names.SCALARS, names.SCALARS + self.n)
        descents = self.plain + self.cells
        self.sizes = self.n, len(factors.radii), descents, self.cells, self.experts
        more = descents * (3 * len(factors.radii) + names.SUMS)
        more += self.experts * (3 + names.ACCOUNTS) + names.SCALARS
        is_mixed = self.experts > 0
        self.size = more + self.n * (is_mixed + 3 * descents + 2 * (2 + self.cells) + self.experts)
        steepest = (learner.loss_lipschitz, learner.constraint_lipschitz)
        loss_most, limit_most = (math.inf if most is None else most for most in steepest)
        self.settings = np.zeros(names.SETTINGS)
        for name, value in {
            "CAUTION": learner.caution,
            "HORIZON": learner.horizon or LEAST_HORIZON,
            "LOSS_MOST": loss_most,
            "LIMIT_MOST": limit_most,
            "RADIUS": whole.radius,
            "DIAMETER": whole.diameter,
            "CALLS_EARNED": learner.calls_per_round,
            "TOLERANCE2": learner._tolerance2,
            "KEEP": learner._keep,
            "CENTER_NORM": float(np.linalg.norm(whole.center)),
            "MARGIN": tie_margin(whole),
            "DIMENSION": whole.dimension,
            "PLAIN": self.plain,
            "LONGEST": learner._largest,
            "PAYS_FIRST": learner._pays_first,
            "VALUED": learner.wants_functions,
            "EXPERTS": self.experts,
            "PERMANENT": learner.summed.start,
            "EVEN": 1.0 / self.n if K.tangents is simplices.within_sum else 0.0,
            "TARGET": -1.0 if learner.target_violation is None else learner.target_violation,
        }.items():
            self.settings[getattr(names, name)] = value
        scales = (*learner.scales, *(learner.cell_scale,) * self.cells)
        places = np.append(factors.starts, self.n).astype(np.int64)
        sizes = (np.array(a, dtype=np.float64) for a in (factors.radii, factors.diameters))
        data = np.zeros(1, np.uint8) if self.exact else as_bytes(K)  # type: ignore[arg-type]
        own = np.array(scales), np.array(learner._precedence), whole.center, places, *sizes
        self.given = (self.settings, *own, data, *geometry)
        self.is_large = (
            self.n >= LARGE and not self.experts and _is_regular(learner.K, K.tangents, *geometry)
        )
        self._spare = defaultdict[tuple[bool, bool], list[_Scratch]](list)
        self._free = deque[memoryview](maxlen=1)
        self._last: ArrayState | None = None

    def room(self) -> Floats:
        """Room for the numbers of a state: memory that was one's of which no part is left, if they
        are many, as new pages take longer than a round.
        """
        if self.size < MANY:
            return np.empty(self.size)
        try:
            memory = self._free.pop()
        except IndexError:
            memory = np.empty(self.size).data
        numbers = np.frombuffer(memory)  # the base of all views of it, so that it goes last
        weakref.finalize(numbers, self._free.append, memory).atexit = False
        return numbers

    def arrays(self, numbers: Floats) -> Arrays:
        return Arrays._make(names.parts.plain(numbers, *self.sizes))

    def plays(self, stream: Stream) -> bool:
        """Whether it can play a stream whose functions it can read: advisers are asked without side
        information, and losses that declare curvature are not mixed.
        """
        waits = any(adviser.waits for adviser in self.advisers)
        reads = not self.advisers or self._sees_functions
        return reads and not waits and not (self.experts and stream.losses.exp_concavity)

    @cached_property
    def plays_live(self) -> bool:
        """Whether rounds of which nothing is known before need the kernel alone."""
        context = self.learner.context
        plain = all(isinstance(one, Resolve) and one.is_plain for one in self.advisers)
        return plain and (context is None or type(context) is Season)

    def takes(self, state: State) -> bool:
        """Whether the kernel can continue a state: nothing waits, is held back or out."""
        upcoming = state.upcoming
        return (
            not state.pending
            and state.proposed is None
            and upcoming.round == state.t + state.lost
            and (upcoming.x is upcoming.mix or np.array_equal(upcoming.x, upcoming.mix))
            and (self.exact or type(state.pool.table) is SparseAtoms)
        )

    def begin(self, state: State) -> ArrayState:
        """The arrays of a state that it takes: those that it was made of, if it is the last one."""
        last = self._last
        return last if last is not None and last._state is state else ArrayState(self, state)

    def learned(self, state: State, functions: Functions) -> State | None:
        """The state after one round at the point that was decided, None if the round is not for the
        kernel. The next round is committed if that needs no adviser.
        """
        if not self.advisers:
            found = self.play(self.begin(state), functions, 0, 1)
            return found.after.state if found.done else None
        now = ArrayState(self, state).copy()
        done, _, _ = self._run(now, functions, 0, 1, None, now.shares)
        return now.undecided() if done else None

    def functions_of(self, feedback: Feedback) -> Functions | None:
        """Plain feedback on one round, as a learner that asks no one gives it to the kernel; None
        if the round is not for that.
        """
        if self.advisers or not isinstance(feedback, FirstOrder) or not feedback.is_plain:
            return None
        fits = feedback.loss_gradient.shape == (self.n,)
        return Functions.from_first_order(feedback) if fits else None

    def observed(self, state: State | ArrayState, arrival: Arrival) -> ArrayState | None:
        """What is left after feedback on the next round, as `learned` plays it; None if the round
        is not for the kernel.
        """
        functions = self.functions_of(arrival.feedback)
        if functions is None or arrival.played is not None or not self.plays_live:
            return None
        if not isinstance(state, ArrayState):
            if not self.takes(state):
                return None
            state = self.begin(state)
        if arrival.round != state.number:
            return None
        found = self.play(state, functions, 0, 1)
        return found.after if found.done else None

    def play(
        self,
        start: ArrayState,
        functions: Functions,
        first: int,
        k: int,
        records: Records | None = None,
    ) -> Progressed:
        """Up to k rounds from a state that it takes, from round `first` of the functions on."""
        known, advisers, given = functions.stream is not None, self.advisers, functions.given
        if not known:  # the next round alone is
            start.x  # noqa: B018  mixed
        now, done, code, shares = start.copy(functions), 0, PLAYED, start.shares
        solved = np.zeros(k) if advisers else None
        plain = solved is not None and (given[0], given[4]) == (evaluate.LINEAR, evaluate.CAPACITY)
        while done < k and code not in (UNUSUAL, LOOK, ENOUGH):
            t, advised = first + done, now.resolving if plain else None
            ahead = 1 if advisers and advised is None else k - done
            if known:
                shares = self.shares(now.number, ahead, functions, t)
                if self.experts:
                    self.mix(now, shares)
            part = records if records is None or not done else records.after(done)
            advice = None if advised is None else advised.arrays(t)
            more, code, columns = self._run(now, functions, t, ahead, part, shares, advice)
            now.vertices = now.vertices if advisers and advised is None else now.count
            if solved is not None:
                own = columns[:more], solved[done : done + more]
                self._advise(now, functions, t, *own, advised)
            done += more
        columns = columns if records is None else records.columns
        if not done:
            return Progressed(start, 0, True, False, columns)
        solves = None if solved is None else solved[:done]
        self._last = now if solved is None else None
        return Progressed(now, done, code == UNUSUAL, code == LOOK, columns, solves)

    def _advise(
        self, now: ArrayState, functions: Functions, t: int, columns: NDArray, solved: Floats,
        advised: Resolving | None,
    ) -> None:  # fmt: skip
        """Advisers see the rounds from t on; `solved` gets how many programs each round took."""
        more, seen, before, x = len(columns), 0, now.solves, frozen(now.arrays.x.copy())
        if advised is not None and more:
            seen = more - int(now.arrays.s[names.UNADVISED])
            rows = slice(t, t + seen)
            each = advised.played(functions.given[1][rows], functions.given[5][rows], x)
            now.solves = before.copy()
            now.solves[len(before) - len(each) :] += each
            solved[:seen] = columns[:seen, names.SOLVED]
        if seen < more:
            self._advised(now, functions.seen_at(t + more - 1), x)
            solved[-1] = round(float((now.solves - before).sum()))

    def _run(
        self, now: ArrayState, functions: Functions, first: int, k: int, records: Records | None,
        shares: Floats, advice: tuple[NDArray, ...] | None = None,
    ) -> tuple[int, int, NDArray]:  # fmt: skip
        """Play up to k rounds, in place: how many, the kernel's last code, what was recorded."""
        before, restarts = now.t, self.learner.restarts
        if restarts is not None:  # up to the next birth
            k = min(k, restarts.every - before % restarts.every)
            now.arrays.s[names.SPREAD] = self.learner.spread(before)
        spare = self._spare[MODE.interprets, advice is not None]
        try:
            scratch = spare.pop()
        except IndexError:
            scratch = _Scratch(self, advice is not None)
        columns = np.empty((k, names.COLUMNS)) if records is None else records.columns
        begun, record = -1, scratch.nothing
        if records is not None:
            begun, record = records.first, names.recorded.pack(*records.arrays)
        done, atoms, count, weights = 0, now.atoms, now.count, now.weights
        weights = weights.copy() if k else weights
        try:
            while True:
                with atoms.lock:  # others may make it larger until then
                    gram = atoms.gram
                    if weights.shape[1] < len(gram):
                        weights = _longer(weights, count, len(gram))
                    if scratch.room < len(gram) or scratch.pieces < functions.pieces:
                        scratch.fit(len(gram), functions.pieces)
                    more, code, count = scratch.play(
                        first + done, k - done, done, begun, count, atoms.filled, scratch.given,
                        record, *(advice or _NO_ADVICE), now.numbers, now.origin, shares, weights,
                        atoms.starts, atoms.indices, atoms.values, gram, *functions.given, columns,
                    )  # fmt: skip
                    if count > atoms.filled:
                        atoms.appended(count)
                now.origin = _NOTHING
                done += more
                if code in _ENDS:
                    break
                atoms = self._helped(code, now.arrays, scratch, atoms, weights[:, :count])
        finally:
            spare.append(scratch)
        if not k:  # nothing else has changed
            return done, code, columns
        now.atoms, now.count, now.weights = atoms, count, weights
        if done:
            now.number, now.t = now.number + done, now.t + done
            if self.experts:
                now.played = frozen(now.arrays.p.copy())
            now.unseen += 0 if self._sees_functions else done
        if code == LOOK:
            rows = rows_to_keep(now.weights[:, :count].max(axis=0) > 0.0)
            now.atoms, now.weights = now.atoms.only(rows), now.weights[:, rows].copy()
            now.count, now.vertices = len(rows), 0
        for i, share in self.learner.births(before, now.t):
            self._restart(now, i, share)
        return done, code, columns

    def _helped(
        self, code: int, arrays: Arrays, scratch: _Scratch, atoms: SparseAtoms, weights: Floats
    ) -> SparseAtoms:
        """What the kernel leaves to others in the middle of a round is done; the table after it."""
        at, count = scratch.at, weights.shape[1]
        i = int(scratch.order[int(arrays.s[names.AT_EXPERT]) - (code == TOO_MANY)])
        if code == BAD_ORACLE:
            refuse(arrays.X[i], arrays.Y[i], scratch.answer, at)
        if code != TOO_MANY:
            return make_way(code, atoms, count, at)
        few = ActiveSet(atoms, weights[i].copy(), arrays.X[i].copy())
        few = few.reduced(int(at[USED]), self.learner.K, shared=True)
        weights[i], arrays.X[i] = few.weights, few.x
        apart = math.sqrt(float(((arrays.X[i] - arrays.Y[i]) ** 2).sum()))
        arrays.sums[i, names.APART_OF] = apart
        return atoms

    def _restart(self, now: ArrayState, i: int, share: float) -> None:
        """Descent i begins anew. Reference: `Core._restarted`."""
        arrays = now.arrays
        mixer = Mixer(arrays.totals, float(arrays.s[names.GAP]))
        arrays.Y[i] = arrays.before[i] = self.learner.K.center
        arrays.steps[i] = arrays.sums[i] = 0.0
        arrays.totals[:] = mixer.with_newcomer(i, share).totals

    def shares(self, number: int, k: int, functions: Functions | None = None, t: int = 0) -> Floats:
        """phi of k rounds, one row each, from what a stream says of them, if there is one."""
        context = self.learner.context
        if type(context) is Season and context.table is not None:
            return context.table[np.arange(number, number + k) % len(context.table)]
        if context is None:
            return np.zeros((k, 0))
        stream, start = (None, 0) if functions is None else (functions.stream, functions.start)
        infos = [None if stream is None else stream.info(start + t + i) for i in range(k)]
        return np.array([context.shares(info, number + i) for i, info in enumerate(infos)])

    def mix(self, now: ArrayState, shares: Floats) -> None:
        self._run(now, _NO_FUNCTIONS, 0, 0, None, shares)

    def _advised(self, now: ArrayState, seen: FullInformation, x: Floats) -> None:
        """Advisers see the last round and propose for the next one."""
        learner, arrays, count, first = self.learner, now.arrays, now.count, self.learner._groups
        vertices = now.atoms.vertices[now.vertices : count] if now.vertices < count else ()
        states = [
            adviser.observe_round(learner.K, state, seen, x, now.number - 1)
            for adviser, state in zip(learner.advisers, now.advisers, strict=True)
        ]
        mixer = Mixer(arrays.totals, float(arrays.s[names.GAP]))
        found = ask_all(
            *(learner.K, learner.advisers, learner.names[first:], states, [None] * len(states)),
            *(None, now.number, float(arrays.s[names.ORACLE_BUDGET]), tuple(vertices), mixer),
            lambda: learner._weights.limit_price(now.dual),
        )
        for i, z in enumerate(found.points, first):
            arrays.awake[i] = z is not None
            if z is not None:
                arrays.Z[i] = z
        arrays.s[names.ORACLE_BUDGET] -= found.calls.sum()
        arrays.s[names.ALL_CALLS] += found.calls.sum()
        arrays.accounts[names.CALLS_BY, first:] += found.calls
        for vertex in () if self.exact else found.found:
            if now.atoms.find(vertex, now.count) is None:
                now.atoms = now.atoms.append(vertex, now.count)
                now.weights = _longer(now.weights, now.count, now.count + 1)
                now.count += 1
        now.vertices, now.solves = count, np.array(now.solves)
        now.solves[first:] += found.solves
        now._advisers = found.states
        vars(now).pop("resolving", None)


class _Scratch:
    """Arrays that no state keeps, and how they are given to the kernel, as it is called now."""

    def __init__(self, kernel: CompiledRounds, advised: bool) -> None:
        K, (n, factors, descents, _, experts) = kernel._geometry_of, kernel.sizes
        most = K.max_nonzeros if isinstance(K, CompiledGeometry) else 0
        self.room = self.pieces = -1
        kernels = (
            0 if kernel.exact else address_of(K),  # type: ignore[arg-type]
            names.project.address(K.nearest) if kernel.exact and K.nearest else 0,
            names.tangents.address(K.tangents),
            names.infeasibility.address(K.point_infeasibility),
            names.resolve.address(resolving.resolve) if advised else 0,
            boxed_dual.solve.address(boxed_dual.solve_boxed) if advised else 0,
            names.large.address(large.large_round) if kernel.is_large else 0,
        )
        places: Any = np.array(kernels) if isinstance(kernels[2], int) else kernels
        self.at, self.order = np.zeros(active_set.PLACES), np.zeros(descents, np.int64)
        self.answer = np.empty(most, np.int32), np.empty(most)
        own = (places, *kernel.given, self.at, self.order, *self.answer, np.zeros((6, n)))
        lanes = np.zeros((5, large.BLOCK))
        more = np.zeros(2), np.zeros(experts), np.ones(descents), np.empty(factors)
        self._own, self._more = own, (*more, np.zeros((descents, factors)), *lanes)
        self._nothing = Records(0, 1, 0, False, 0, 0).arrays
        self.nothing = names.recorded.pack(*self._nothing)

    def fit(self, room: int, pieces: int) -> None:
        room, pieces = max(room, self.room), max(pieces, self.pieces)
        work = np.empty(pieces), np.empty(room)
        arrays = (*self._own, *work, *self._more)  # in the order of `rounds.held`
        given, play = names.held.pack(*arrays), names.rounds.entry or names.rounds.ready
        # Signals are handled after calls: an interrupt finds all of this done, or nothing, and what
        # `given` points to is kept as long as it.
        self.play: Any = play
        self.room, self.pieces, self._arrays, self.given = room, pieces, arrays, given


def _is_regular(K: HasLMO, tangents: Kernel[None], floats: Floats, ints: NDArray) -> bool:
    """Whether aff(K) is everything, or says what the sum is, and the center has equal entries."""
    if tangents is box.within_box:
        return bool((floats[: K.shape[0]] < floats[K.shape[0] :]).all())
    is_even = tangents is simplices.within_sum and ints[0] == 0
    return is_even and bool((K.center == K.center[0]).all())


def _longer(weights: Floats, count: int, room: int) -> Floats:
    """The first weights of each point, with zeros for as many rows as a table has room for."""
    longer = np.zeros((len(weights), room))
    longer[:, :count] = weights[:, :count]
    return longer


def compiled_rounds(learner: Core) -> CompiledRounds | None:
    """The rounds of a learner; None if its set has no kernels, or a setting needs Python."""
    K, factors = learner.K, factors_of(learner.K)
    if learner.block > 1 or learner.per_constraint or learner.max_move is not None:
        return None
    own: Any = K.whole if isinstance(K, Product) else K
    if not isinstance(own, KernelGeometry) or "geometry" not in vars(type(own)):
        return None  # a subclass may say otherwise
    by_oracle = factors is None and isinstance(own, CompiledGeometry) and own is K
    exact = factors is not None and factors.exact and own.nearest is not None
    if not (by_oracle or exact) or not K.diameter > 0.0 or len(K.shape) != 1:
        return None
    if type(K.center) is not np.ndarray or K.center.dtype != np.float64 or own.geometry is None:
        return None
    return CompiledRounds(learner, own, own.geometry)
