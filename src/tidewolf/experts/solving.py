"""Programs of one round, one for each headroom: on the set's own description, or on the vertices
that are known.

With vertices, at most one oracle call is made for all of them together: headrooms take turns, and
the vertex that would help most enters (hindsight/columns.py). After a call in vain for each of them
it waits, twice as long every time up to `LONGEST_WAIT` rounds, until a call finds a better vertex
again. A vertex that no program has used for `IDLE_ROUNDS` rounds goes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tidewolf.core.arrays import length
from tidewolf.core.errors import SolverFailed
from tidewolf.core.oracle import HasLMO
from tidewolf.core.types import Floats, Int64s
from tidewolf.core.vertices import Vertex
from tidewolf.hindsight.best_point import COLD, Bases, Best, BestPoint, Objective, Program
from tidewolf.hindsight.columns import IN_USE, BestOfVertices, bases_for
from tidewolf.sets.highs import HalfSpaces

LONGEST_WAIT = 16
"""Rounds between two calls at most, where calls are in vain."""
IDLE_ROUNDS = 200
"""Rounds without use after which a vertex goes."""
_BETTER = 1e-9
"""A better vertex is cheaper than those known by this share of |d| times the radius."""


class Task(NamedTuple):
    loss: Objective
    limits: HalfSpaces
    rooms: Sequence[Floats | None]


class Pool(NamedTuple):
    """The vertices that are known, and whose turn it is to ask for another."""

    vertices: tuple[Vertex, ...] = ()
    last_used: tuple[int, ...] = ()
    """the round in which a program last used each of them"""
    turn: int = 0
    """the headroom that asks next"""
    in_vain: int = 0
    """calls since one found a better vertex"""
    wait: int = 0
    """rounds to go until the next call"""
    breach_is_least: bool = False
    """whether the last call for a lesser violation was in vain"""
    warm: Any = None
    """what the next oracle call may start from"""

    def after_vain_call(self, breach: bool, headrooms: int) -> Pool:
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


def solve_each(
    solver: BestPoint, program: Program, rooms: Sequence[Floats | None], bases: Sequence[Bases]
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
    except SolverFailed:
        return None


def ends_of(each: Sequence[Best | None]) -> tuple[Bases, ...]:
    return tuple(COLD if best is None else best.bases for best in each)


def with_vertices(
    pool: Pool, bases: Sequence[Bases], new: Sequence[Vertex], t: int
) -> tuple[Pool, tuple[Bases, ...]]:
    """The pool with these vertices too, those left out that it has."""
    known = {vertex.key() for vertex in pool.vertices} if new else set()
    fresh = {key: vertex for vertex in new if (key := vertex.key()) not in known}
    kept = np.arange(len(pool.vertices))
    return _changed(pool, bases, kept, tuple(fresh.values()), t)


def without_idle(pool: Pool, bases: Sequence[Bases], t: int) -> tuple[Pool, tuple[Bases, ...]]:
    """The pool without vertices that no program has used for long."""
    kept = np.flatnonzero(t - np.array(pool.last_used) <= IDLE_ROUNDS)
    return _changed(pool, bases, kept if len(kept) else np.arange(len(pool.vertices)), (), t)


def _changed(
    pool: Pool, bases: Sequence[Bases], kept: Int64s, new: tuple[Vertex, ...], t: int
) -> tuple[Pool, tuple[Bases, ...]]:
    """The pool with some of its vertices and others, and the bases that go with it."""
    if not new and len(kept) == len(pool.vertices):
        return pool, tuple(bases)
    vertices = (*(pool.vertices[i] for i in kept.tolist()), *new)
    used = (*(pool.last_used[i] for i in kept.tolist()), *(t for _ in new))
    starts = (bases_for(each, kept, len(pool.vertices), len(new)) for each in bases)
    return pool._replace(vertices=vertices, last_used=used), tuple(starts)


class Priced(NamedTuple):
    each: list[Best | None]
    """the best point for each headroom, if its program was solved"""
    bases: tuple[Bases, ...]
    pool: Pool
    solver: BestOfVertices
    """that of the pool"""
    calls: int = 0
    found: tuple[Vertex, ...] = ()


def solve_with_columns(
    K: HasLMO,
    solver: BestOfVertices,
    task: Task,
    pool: Pool,
    bases: Sequence[Bases],
    t: int,
    budget: int,
) -> Priced:
    """The best point for each headroom among the vertices of the pool, which are those of the
    solver; with at most one more, by one oracle call.
    """
    program = solver.prepared(task.loss, task.limits)
    each = solve_each(solver, program, task.rooms, bases)
    used = np.array(pool.last_used)
    for best in each:
        if best is not None:
            used[solver.weights(best) > IN_USE] = t
    pool, starts = pool._replace(last_used=tuple(used.tolist())), ends_of(each)
    turn, calls, better = pool.turn % len(each), 0, False
    mine = each[turn]
    if budget < 1 or mine is None or pool.wait > 0:
        return Priced(each, starts, pool._replace(wait=max(0, pool.wait - 1)), solver)
    breach = mine.breach is not None and not pool.breach_is_least
    asked = solver.pricing(task.loss, task.limits, program, mine, breach)
    if asked is not None:
        answer, calls = K.answer(asked.direction, pool.warm), 1
        gain, count = asked.known - answer.vertex.inner(asked.direction), len(pool.vertices)
        pool = pool._replace(warm=answer.warm)
        if gain > _BETTER * length(asked.direction) * K.radius:
            pool, starts = with_vertices(pool, starts, (answer.vertex,), t)
        better = len(pool.vertices) > count
    if not better:  # or by rounding one that is known
        return Priced(each, starts, pool.after_vain_call(breach, len(each)), solver, calls)
    pool = pool._replace(turn=turn + 1, in_vain=0, breach_is_least=False)
    solver = BestOfVertices(K, solver.who, pool.vertices, solver)
    program = solver.prepared(task.loss, task.limits)
    again = _attempt(solver, program, task.rooms[turn], starts[turn])
    if again is not None:
        each[turn] = again._replace(solves=mine.solves + again.solves)
        starts = (*starts[:turn], again.bases, *starts[turn + 1 :])
    return Priced(each, starts, pool, solver, calls, pool.vertices[-1:])
