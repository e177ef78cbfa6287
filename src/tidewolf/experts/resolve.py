"""Re-solving with the data of an earlier round, and some headroom: what operators do.

    z_t  =  argmin { f_s(x) : x in K, g_s(x) <= -h },
    if no point keeps the limit, among those that violation it least

s = t - 1 ("last"), t - p (a period of p rounds), the round whose time is nearest to one period ago
(a duration), or f and g as they are forecast for round t itself. With a window of w rounds, f is
the sum of the losses of rounds s - w + 1 to s, and all their limits count.

Headroom: limit i is kept with h_i = kappa r_i, r_i the root of an exponential mean of the squared
one-round drops of its slack (recent.py). There is one member for each kappa. Where feedback
comes late, s = t - l is the newest round that is there, and drops are those of l rounds (of
MOST_LAG at most), l as it was when the last round was decided.

If K is made of few equations and boxes, all headrooms are solved in one call from the basis of the
round before (hindsight/boxed_model.py), and large flows by the network simplex
(hindsight/boxed_model.py). HiGHS solves over other sets with a linear description (hindsight/
best_point.py); an expert whose weight was below LIGHT for LONG rounds is then absent in all rounds
but every RARELY-th. Elsewhere, and on request, there is column generation over the vertices that
are known.

With vertices, at most one oracle call is made for all headrooms together: these take turns, and the
vertex that would help most enters (hindsight/best_point.py). After a call in vain for each of them
it waits, twice as long every time up to `LONGEST_WAIT` rounds, until a call finds a better vertex
again. A vertex that no program has used for `IDLE_ROUNDS` rounds goes.

Entries that are out are held at 0; of columns, those that are 0 there are taken.

Functions that make no linear program (squares, log wealth, one's own) are replaced by their
linearisations at the point played. A program that is not solved means no advice in that round.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import Annotated, Any, ClassVar, NamedTuple, TypeAlias, final

import numpy as np

from tidewolf.core import arrays, batch, errors
from tidewolf.core.conforming import is_member
from tidewolf.core.feedback import FullInformation, require_full_information
from tidewolf.core.oracle import HasLMO
from tidewolf.core.settings import Count, Flag, Number
from tidewolf.core.types import Array, Bools, Floats, Int64s
from tidewolf.core.vertices import Vertex
from tidewolf.experts.base import Adviser, Info, Price, Proposals, Seen, Vertices
from tidewolf.experts.context import PeriodSetting, duration
from tidewolf.experts.recent import Drops, RecentRounds
from tidewolf.functions import combined, linear
from tidewolf.hindsight import boxed_model
from tidewolf.hindsight.best_point import (
    COLD,
    IN_USE,
    Bases,
    Best,
    BestOfVertices,
    BestPoint,
    Objective,
    Program,
    bases_for,
    half_spaces,
    headroom_of_rows,
    objective,
)
from tidewolf.methods.available import entries_out
from tidewolf.methods.settings import Numbers
from tidewolf.projection.active import emptied, is_free_of
from tidewolf.sets import base, highs

MOST_ROUNDS = 100_000  # Rounds that are kept at most where a duration says how far back.
MOST_PENDING = 4096  # Rounds whose time is remembered at most until they are observed.
MOST_LAG = 96  # The age of data up to which headroom is measured: so many limits are kept for it.
# The weight below which, for so many rounds, an expert is asked in one of so many rounds.
LIGHT, LONG, RARELY = 1e-4, 50, 10
LONGEST_WAIT = 16  # Rounds between two calls at most, where calls are in vain.
IDLE_ROUNDS = 200  # Rounds without use after which a vertex goes.
_BETTER = 1e-9  # A better vertex is cheaper than those known by this share of |d| times the radius.
_PROGRAM = (linear.Linear, batch.LinearTotal, batch.PiecewiseLinear)
_LIMIT = (linear.Capacity, batch.PiecewiseLinear)
Rooms: TypeAlias = Sequence[Floats | None]  # of each limit, one for each headroom; None: no room


@dataclass(frozen=True)
class RoundsBack(PeriodSetting):
    """Which data is solved with: "last", a period in rounds, a duration, or "forecast"."""

    words: ClassVar[str] = 'text such as "last", "forecast" or "1d", or a whole number of rounds'

    def __call__(self, value: Any, what: str) -> str | int:
        if isinstance(value, str) and value in ("last", "forecast"):
            return value
        return super().__call__(value, f'{what}, if it is neither "last" nor "forecast",')


class Pool(NamedTuple):
    """The vertices that are known, and whose turn it is to ask for another."""

    vertices: Vertices = ()
    last_used: tuple[int, ...] = ()  # the round in which a program last used each of them
    turn: int = 0  # the headroom that asks next
    in_vain: int = 0  # calls since one found a better vertex
    wait: int = 0  # rounds to go until the next call
    breach_is_least: bool = False  # whether the last call for a lesser violation was in vain
    warm: Any = None  # what the next oracle call may start from

    def after_vain_call(self, breach: bool, headrooms: int) -> "Pool":
        """After a call that found nothing: the next one's turn, after a while if all were in
        vain.
        """
        beyond = self.in_vain + 1 - headrooms
        return self._replace(
            turn=self.turn if breach else (self.turn + 1) % headrooms,
            in_vain=self.in_vain + 1,
            wait=0 if beyond < 0 else min(2 ** min(beyond, 30), LONGEST_WAIT),
            breach_is_least=breach,
        )


class ResolveState(NamedTuple):
    recent: RecentRounds  # the rounds that it may still look back to
    drops: Drops
    x: Array  # the point played last
    bases: tuple[Bases, ...]  # where the next programs of HiGHS start, one a headroom
    pool: Pool  # the vertices that are known; none if it has no use for them
    time: float | None = None  # of the coming round
    lag: int = 1  # how old the newest data is in the coming round
    # numbers and times of rounds that are not observed yet
    waiting: tuple[tuple[int, float], ...] = ()
    upcoming: int = 0  # the round that was asked for last, perhaps not for the last time
    decided_lag: int = 1  # how old the newest data was when the round before it was decided
    boxed: boxed_model.BoxedBasis | None = None  # where the next programs in boxes start
    tree: Array | None = None  # where the next flow starts
    light: tuple[int, ...] = ()  # rounds since each expert had some weight; none if not counted


@final
@dataclass(frozen=True, eq=False, repr=False)
class Resolve(Adviser):
    """Re-solve: the best point of an earlier round, or of a forecast, with headroom.

    Parameters
    ----------
    data : str or int, default 'last'
        Which functions it solves with: "last", the newest; a number, those of so many rounds
        ago; a duration such as "1d", those of the round nearest to that time ago; "forecast",
        those that are predicted for the next round.
    headroom : tuple of float, default (0.0, 1.0, 2.0, 4.0)
        The headroom below each limit, in multiples of its usual drop from one round to the
        next; one expert per value.
    window : int, default 1
        How many rounds, the last of which `data` names, are solved together. Unit: rounds.
    columns : bool, default False
        Whether to use only the set's oracle, by column generation; always so if the set has no
        linear description.
    even : bool, default False
        Whether the most even of all best points is proposed, the one nearest to the set's
        center, which takes longer; otherwise any vertex.

    Examples
    --------
    Three options, of which the cheapest may take at most half:

    >>> K, adviser = tw.sets.Simplex(3), tw.experts.Resolve(headroom=0)
    >>> loss = tw.functions.Linear.one([2.0, 1.0, 0.0])
    >>> limit = tw.functions.Affine.one([0.0, 0.0, 1.0], 0.5)
    >>> from tidewolf.core.feedback import FullInformation
    >>> feedback = FullInformation(loss, limit)
    >>> state = adviser.observe(K, adviser.start(K), feedback, K.center)
    >>> adviser.propose(K, state, None, 1, 0, ()).points
    (array([0. , 0.5, 0.5]),)
    """

    needs_functions: ClassVar[bool] = True
    gives_members: ClassVar[bool] = True

    data: Annotated[str | int, RoundsBack()] = "last"
    headroom: Annotated[tuple[float, ...], Numbers(each=Number(least=0.0))] = (0.0, 1.0, 2.0, 4.0)
    window: Annotated[int, Count()] = 1
    columns: Annotated[bool, Flag()] = False
    even: Annotated[bool, Flag()] = False

    @property
    def names(self) -> tuple[str, ...]:
        return self._called({"last": "last", "forecast": "forecast"}, "")

    @property
    def in_words(self) -> tuple[str, ...]:
        return self._called({"last": "last round", "forecast": "the forecast"}, "re-solving ")

    def _called(self, data: dict[str, str], doing: str) -> tuple[str, ...]:
        ago = f"{self.data} rounds ago" if isinstance(self.data, int) else f"{self.data} ago"
        return tuple(
            f"{doing}{data.get(str(self.data), ago)}, headroom {kappa:g}" for kappa in self.headroom
        )

    @property
    def waits(self) -> bool:
        return isinstance(self.data, str) and self.data != "last"

    def start(self, K: HasLMO) -> ResolveState:
        pool = Pool((K.atom(K.center),), (0,)) if self._by_columns(K) else Pool()
        return ResolveState(RecentRounds(), Drops(), K.center, (COLD,) * len(self.headroom), pool)

    def migrated(self, K: HasLMO, state: ResolveState, entries: Int64s) -> ResolveState:
        """Without the functions that it saw; the drops of capacities stay."""
        return self.start(K)._replace(drops=state.drops.moved(entries, math.prod(K.shape)))

    def _by_columns(self, K: HasLMO) -> bool:
        return self.columns or not isinstance(K, base.Polyhedral)

    def observe(self, K: HasLMO, state: ResolveState, feedback: Seen, x: Array) -> ResolveState:
        feedback = require_full_information(feedback, K.shape, MOST_ROUNDS)
        return self.observe_round(K, state, feedback, x, state.recent.newest + 1)

    def observe_round(
        self, K: HasLMO, state: ResolveState, feedback: Seen, x: Array, number: int
    ) -> ResolveState:
        assert isinstance(feedback, FullInformation)  # `needs_functions`
        losses, limits = feedback
        if len(losses) > 1:
            for t in range(len(losses)):
                state = self.observe_round(
                    K, state, FullInformation(losses[t : t + 1], limits[t : t + 1]), x, number + t
                )
            return state
        loss, limit = in_program(losses, _PROGRAM, x), in_program(limits, _LIMIT, x)
        recent, drops, *_ = state
        lag = state.lag if number >= state.upcoming else state.decided_lag
        before = recent.place(number - lag) if any(self.headroom) else None
        if before is not None:
            drops = drops.after(recent.rounds[before].limit, limit, x)
        time, waiting = math.nan, state.waiting
        if waiting:
            times = dict(waiting)
            time, waiting = times.pop(number, math.nan), tuple(times.items())
        recent = recent.and_then(loss, limit, time, number, self.keep + lag - 1)
        if self._seconds is not None:
            recent = recent.reaching(self._seconds, self.window + 1)
        newest = x if number == recent.newest else state.x
        return state._replace(recent=recent, drops=drops, x=newest, time=None, waiting=waiting)

    @property
    def is_plain(self) -> bool:
        """Whether it solves with one earlier round, by its number, for any vertex."""
        back = self.data == "last" or isinstance(self.data, int)
        return back and self.window == 1 and not self.columns and not self.even

    @cached_property
    def _seconds(self) -> float | None:
        if isinstance(self.data, int) or self.data in ("last", "forecast"):
            return None
        return duration(self.data, "data of Resolve")

    @cached_property
    def keep(self) -> int:
        if isinstance(self.data, int):
            return self.data + self.window - 1
        rounds = {"last": self.window, "forecast": max(1, self.window - 1)}
        return rounds.get(self.data, MOST_ROUNDS)

    def weighed(
        self, K: HasLMO, state: ResolveState, weights: Floats, t: int, price: Price
    ) -> ResolveState:
        if t == state.upcoming or self._by_columns(K) or self.model(K) is not None:
            return state
        before = state.light or (0,) * len(weights)
        light = (n + 1 if w < LIGHT else 0 for n, w in zip(before, weights, strict=True))
        return state._replace(light=tuple(light))

    def propose(
        self, K: HasLMO, state: ResolveState, info: Info, t: int, budget: int, vertices: Vertices
    ) -> Proposals:
        state = self._awaiting(state, info, t)
        if state.pool.vertices:
            pool, bases = with_vertices(state.pool, state.bases, vertices, t)
            state = state._replace(pool=pool, bases=bases)
        rounds = self._rounds(K, state, info, t)
        if not rounds:
            return Proposals((None,) * len(self.headroom), state._replace(light=()))
        out = None if info is None else entries_out(K, info)
        losses, limits = (combined.chained(parts) for parts in zip(*rounds, strict=True))
        loss, spaces, drop = objective(losses, "Resolve"), half_spaces(limits), state.drops.usual()
        room = headroom_of_rows(limits, drop) if drop.any() else None
        # all headrooms by a simplex of our own, if the set and the program are of its kind
        model, headrooms = self.model(K), np.array(self.headroom)
        if isinstance(model, boxed_model.BoxedModel):
            found = model.solve(loss, spaces, room, headrooms, state.boxed, out)
            if found is not None:
                points, basis = found
                return Proposals(points, state._replace(boxed=basis), 0, len(points))
        elif model is not None and spaces.A is None and not loss.maxima and out is None:
            points, tree = model.solve(loss.c, spaces.b, room, headrooms, state.tree)
            return Proposals(points, state._replace(tree=tree), 0, len(points))
        rooms = [None if k == 0.0 or room is None else k * room for k in self.headroom]
        if not state.pool.vertices or out is not None:
            return self._solved(K, state, loss, spaces, rooms, out)
        return self._priced(K, state, loss, spaces, rooms, t, budget)

    def _solved(
        self, K: HasLMO, state: ResolveState, loss: Objective, limits: highs.HalfSpaces,
        rooms: Rooms, out: Bools | None,
    ) -> Proposals:  # fmt: skip
        """The programs as they are, or without entries that are out: held at 0, or of columns
        that are 0 there.
        """
        nothing, bases, of_columns = (None,) * len(self.headroom), state.bases, state.pool.vertices
        rare = state.upcoming % RARELY == 0
        due = [n < LONG or rare for n in state.light or (0,) * len(bases)]
        if not any(due):
            return Proposals(nothing, state)
        solver: BestPoint | BestOfVertices
        if of_columns:
            assert out is not None
            free = tuple(v for v in of_columns if is_free_of(v, out, K.center))
            if not free:
                return Proposals(nothing, state)
            solver, bases = BestOfVertices(K, "Resolve", free), (COLD,) * len(nothing)
        else:
            solver = self._cached("described", K, lambda K: BestPoint(K, "Resolve"))
        program: Program | None = solver.prepared(loss, limits)
        if out is not None and program is not None and not of_columns:
            program = solver.without(program, out)
        if program is None:
            return Proposals(nothing, state)
        asked, starts = list(compress(rooms, due)), list(compress(bases, due))
        found = iter(solve_each(solver, program, asked, starts))
        each = [next(found) if is_due else None for is_due in due]
        points, solves = _points(each)
        if self.even and out is None:
            both, solves = zip(each, rooms, strict=True), 2 * solves
            points = tuple(b and solver.most_even(loss, limits, r, b) for b, r in both)
        if out is not None:
            empty = (None if x is None else emptied(x, out) for x in points)
            points = tuple(None if x is None or not is_member(K, x) else x for x in empty)
        if not of_columns:
            ends = zip(due, ends_of(each), bases, strict=True)
            bases = tuple(end if is_due else start for is_due, end, start in ends)
            state = state._replace(bases=bases)
        return Proposals(points, state, 0, solves)

    def model(self, K: HasLMO) -> boxed_model.BoxedModel | boxed_model.FlowModel | None:
        """What solves over equations and boxes, or flows; None for other sets."""

        def build(K: HasLMO) -> boxed_model.BoxedModel | boxed_model.FlowModel | None:
            plain = not (self.even or self._by_columns(K))
            return (boxed_model.BoxedModel.of(K) or boxed_model.FlowModel.of(K)) if plain else None

        return self._cached("model", K, build)  # type: ignore[no-any-return]

    def _cached(self, name: str, K: HasLMO, make: Callable[[Any], Any]) -> Any:
        """What was made last for this set; what it answers does not depend on that."""
        if name not in self._cache or self._cache[name][0] is not K:
            self._cache[name] = K, make(K)
        return self._cache[name][1]

    @cached_property
    def _cache(self) -> dict[str, tuple[HasLMO, Any]]:
        return {}

    def _awaiting(self, state: ResolveState, info: Info, t: int) -> ResolveState:
        lag = min(max(1, t - state.recent.newest), MOST_LAG) if self.data == "last" else 1
        state = state._replace(
            upcoming=t, decided_lag=state.decided_lag if t == state.upcoming else state.lag, lag=lag
        )
        if self._seconds is None:
            return state
        time = None if info is None else info.time
        others = [each for each in state.waiting if each[0] != t][-MOST_PENDING:]
        waiting = others if time is None else [*others, (t, time)]
        return state._replace(time=time, waiting=tuple(waiting))

    def _rounds(
        self, K: HasLMO, state: ResolveState, info: Info, t: int
    ) -> tuple[tuple[batch.Batch, batch.Batch], ...]:
        """The functions to solve with; empty if they are not known."""
        feedback, last = state.recent.rounds, 0
        if self.data == "forecast":
            told = None if info is None else info.forecast
            if told is None:
                return ()
            loss, limit = require_full_information(FullInformation(*told), K.shape, 1)
            x = state.x
            predicted = in_program(loss, _PROGRAM, x), in_program(limit, _LIMIT, x)
            before = feedback[max(0, len(feedback) - self.window + 1) :] if self.window > 1 else ()
            return (*((r.loss, r.limit) for r in before), predicted)
        if self.data == "last":
            last = len(feedback)
        elif isinstance(self.data, int):
            place = state.recent.place(t - self.data)
            last = 0 if place is None else place + 1
        elif state.time is not None and self._seconds is not None:
            last = state.recent.until(state.time - self._seconds)
        return tuple((r.loss, r.limit) for r in feedback[max(0, last - self.window) : last])

    def _priced(
        self, K: HasLMO, state: ResolveState, loss: Objective, limits: highs.HalfSpaces,
        rooms: Rooms, t: int, budget: int,
    ) -> Proposals:  # fmt: skip
        """The best point for each headroom among the vertices that are known; with at most one
        more, by one oracle call.
        """
        solver: Any
        of, solver = self._cache.get("vertices", (None, None))
        if of is not K or solver.vertices is not state.pool.vertices:
            solver = BestOfVertices(K, "Resolve", state.pool.vertices, solver if of is K else None)
        program = solver.prepared(loss, limits)
        each = solve_each(solver, program, rooms, state.bases)
        used, bases, count = np.array(state.pool.last_used), ends_of(each), len(each)
        for best in each:
            if best is not None:
                used[solver.weights(best) > IN_USE] = t
        pool, calls = state.pool._replace(last_used=tuple(used.tolist())), 0
        found: Vertices = ()
        turn = pool.turn % count
        mine = each[turn]
        if budget < 1 or mine is None or pool.wait > 0:
            pool = pool._replace(wait=max(0, pool.wait - 1))
        else:
            breach = mine.breach is not None and not pool.breach_is_least
            asked = solver.pricing(loss, limits, program, mine, breach)
            if asked is not None:
                direction, known = asked
                answer, calls = K.answer(direction, pool.warm), 1
                gain = known - answer.vertex.inner(direction)
                pool = pool._replace(warm=answer.warm)
                if gain > _BETTER * arrays.length(direction) * K.radius:
                    pool, bases = with_vertices(pool, bases, (answer.vertex,), t)
            found = pool.vertices[len(used) :]
            if not found:  # or by rounding one that is known
                pool = pool.after_vain_call(breach, count)
        if found and mine is not None:
            pool = pool._replace(turn=turn + 1, in_vain=0, breach_is_least=False)
            solver = BestOfVertices(K, "Resolve", pool.vertices, solver)
            program = solver.prepared(loss, limits)
            again = _attempt(solver, program, rooms[turn], bases[turn])
            if again is not None:
                each[turn] = again._replace(solves=mine.solves + again.solves)
                bases = (*bases[:turn], again.bases, *bases[turn + 1 :])
        self._cache["vertices"] = K, solver
        pool, bases = without_idle(pool, bases, t)
        points, solves = _points(each)
        return Proposals(points, state._replace(pool=pool, bases=bases), calls, solves, found)


def _points(each: Sequence[Best | None]) -> tuple[tuple[Array | None, ...], int]:
    points = tuple(None if best is None else best.x for best in each)
    return points, sum(0 if best is None else best.solves for best in each)


def in_program(f: batch.Batch, kinds: tuple[type, ...], x: Array) -> batch.Batch:
    """The function of a round, or its linearisation at x if it is none of these kinds."""
    while isinstance(f, combined.Chain) and len(f.parts) == 1:
        (f,) = f.parts
    if isinstance(f, kinds):
        return f
    gradient = f.subgradient(x, arrays.ones(1, x))
    return linear.Affine.one(gradient, arrays.inner(gradient, x) - float(f.values(x)[0]))


def solve_each(
    solver: BestPoint, program: Program, rooms: Rooms, bases: Sequence[Bases]
) -> list[Best | None]:
    """The best point for each headroom, None if its program was not solved."""
    found: list[Best | None] = []
    for i, (room, start) in enumerate(zip(rooms, bases, strict=True)):
        # without headroom to keep the program is that of another without
        same = next((j for j in range(i) if room is None and rooms[j] is None), None)
        if same is not None and (copy := found[same]) is not None:
            found.append(copy._replace(solves=0))
            continue
        near = found[-1].bases if found and found[-1] is not None else start
        start = Bases(start.kept or near.kept, start.breached or near.breached)
        found.append(_attempt(solver, program, room, start))
    return found


def _attempt(solver: BestPoint, program: Program, room: Floats | None, start: Bases) -> Best | None:
    try:
        return solver.best(program, room, start)
    except errors.SolverFailed:
        return None


def ends_of(each: Sequence[Best | None]) -> tuple[Bases, ...]:
    return tuple(COLD if best is None else best.bases for best in each)


def with_vertices(
    pool: Pool, bases: Sequence[Bases], new: Sequence[Vertex], t: int
) -> tuple[Pool, tuple[Bases, ...]]:
    known = {vertex.key() for vertex in pool.vertices} if new else set()
    fresh = {key: vertex for vertex in new if (key := vertex.key()) not in known}
    return _changed(pool, bases, np.arange(len(pool.vertices)), tuple(fresh.values()), t)


def without_idle(pool: Pool, bases: Sequence[Bases], t: int) -> tuple[Pool, tuple[Bases, ...]]:
    kept = np.flatnonzero(t - np.array(pool.last_used) <= IDLE_ROUNDS)
    return _changed(pool, bases, kept if len(kept) else np.arange(len(pool.vertices)), (), t)


def _changed(
    pool: Pool, bases: Sequence[Bases], kept: Int64s, new: Vertices, t: int
) -> tuple[Pool, tuple[Bases, ...]]:
    """The pool with some of its vertices and others, and the bases that go with it."""
    if not new and len(kept) == len(pool.vertices):
        return pool, tuple(bases)
    vertices = (*(pool.vertices[i] for i in kept.tolist()), *new)
    used = (*(pool.last_used[i] for i in kept.tolist()), *(t for _ in new))
    starts = (bases_for(each, kept, len(pool.vertices), len(new)) for each in bases)
    return pool._replace(vertices=vertices, last_used=used), tuple(starts)
