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
from tidewolf.core.conforming import is_member
from tidewolf.core.errors import SolverFailed
from tidewolf.core.oracle import Answer, HasLMO
from tidewolf.core.types import Array, Bools, Floats
from tidewolf.core.vertices import Vertex
from tidewolf.hindsight.best_point import COLD, Bases, Best, BestPoint, Objective, Program
from tidewolf.hindsight.columns import IN_USE, BestOfVertices, Pricing, bases_for
from tidewolf.hindsight.warm_model import HalfSpaces
from tidewolf.projection.active import emptied, is_free_of

LONGEST_WAIT = 16
"""Rounds between two calls at most, where calls are in vain."""
IDLE_ROUNDS = 200
"""Rounds without use after which a vertex goes."""
_BETTER = 1e-9
"""A better vertex is cheaper than those known by this share of |d| times the radius."""


class Task(NamedTuple):
    """The loss and the limits of a program, and what each headroom keeps of each half-space."""

    loss: Objective
    limits: HalfSpaces
    rooms: Sequence[Floats | None]


class Answers(NamedTuple):
    """A point for each headroom, None where its program was not solved, and where the next programs
    start.
    """

    points: tuple[Array | None, ...]
    bases: tuple[Bases, ...]
    solves: int


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
    """whether the last call for a lesser breach was in vain"""
    warm: Any = None
    """what the next oracle call may start from"""


class Priced(NamedTuple):
    """What a round with column generation gave."""

    answers: Answers
    pool: Pool
    calls: int = 0
    found: tuple[Vertex, ...] = ()
    solver: BestOfVertices | None = None
    """that of the pool, where it has one vertex more"""


def first_pool(K: HasLMO) -> Pool:
    """The center alone."""
    return Pool((K.atom(K.center),), (0,))


def solve_each(
    solver: BestPoint, task: Task, bases: Sequence[Bases], even: bool = False
) -> Answers:
    """The best point for each headroom, the most even one on request."""
    found = _solve_each(solver, solver.prepared(task.loss, task.limits), task, bases)
    answers = _answers(found)
    if not even:
        return answers
    points = tuple(
        None if best is None else solver.most_even(task.loss, task.limits, room, best)
        for best, room in zip(found, task.rooms, strict=True)
    )
    return answers._replace(points=points, solves=2 * answers.solves)


def solve_each_without(
    K: HasLMO, solver: BestPoint, task: Task, bases: Sequence[Bases], out: Bools
) -> Answers:
    """The same where entries are out; a point that is then no member is none."""
    program = solver.without(solver.prepared(task.loss, task.limits), out)
    if program is None:
        return Answers((None,) * len(bases), tuple(bases), 0)
    points, starts, solves = _answers(_solve_each(solver, program, task, bases))
    empty = [None if x is None else emptied(x, out) for x in points]
    members = (None if x is None or not is_member(K, x) else x for x in empty)
    return Answers(tuple(members), starts, solves)


def columns_without(pool: Pool, out: Bools, K: HasLMO) -> tuple[Vertex, ...]:
    """The vertices of the pool that do without the entries that are out."""
    return tuple(vertex for vertex in pool.vertices if is_free_of(vertex, out, K.center))


def _solve_each(
    solver: BestPoint, program: Program, task: Task, bases: Sequence[Bases]
) -> list[Best | None]:
    found: list[Best | None] = []
    for i, (room, start) in enumerate(zip(task.rooms, bases, strict=True)):
        # without headroom to keep the program is that of another without
        same = next((j for j in range(i) if room is None and task.rooms[j] is None), None)
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


def _answers(found: Sequence[Best | None]) -> Answers:
    return Answers(
        tuple(None if best is None else best.x for best in found),
        tuple(COLD if best is None else best.bases for best in found),
        sum(0 if best is None else best.solves for best in found),
    )


def with_vertices(
    pool: Pool, bases: Sequence[Bases], new: Sequence[Vertex], t: int
) -> tuple[Pool, tuple[Bases, ...]]:
    """The pool with these vertices too, those left out that it has."""
    if not new:
        return pool, tuple(bases)
    known = {vertex.key() for vertex in pool.vertices}
    fresh: dict[bytes, Vertex] = {}
    for vertex in new:
        if (key := vertex.key()) not in known:
            fresh.setdefault(key, vertex)
    if not fresh:
        return pool, tuple(bases)
    count = len(pool.vertices)
    used = (*pool.last_used, *(t for _ in fresh))
    grown = pool._replace(vertices=(*pool.vertices, *fresh.values()), last_used=used)
    return grown, tuple(bases_for(each, np.arange(count), count, len(fresh)) for each in bases)


def without_idle(pool: Pool, bases: Sequence[Bases], t: int) -> tuple[Pool, tuple[Bases, ...]]:
    """The pool without vertices that no program has used for long."""
    kept = np.flatnonzero(t - np.array(pool.last_used) <= IDLE_ROUNDS)
    count = len(pool.vertices)
    if len(kept) in (0, count):
        return pool, tuple(bases)
    smaller = pool._replace(
        vertices=tuple(pool.vertices[i] for i in kept.tolist()),
        last_used=tuple(pool.last_used[i] for i in kept.tolist()),
    )
    return smaller, tuple(bases_for(each, kept, count, 0) for each in bases)


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
    found = _solve_each(solver, program, task, bases)
    pool = pool._replace(last_used=_marked(pool, solver, found, t))
    turn = pool.turn % len(found)
    mine = found[turn]
    if budget < 1 or mine is None or pool.wait > 0:
        waited = pool._replace(wait=max(0, pool.wait - 1))
        return Priced(_answers(found), waited)
    breach = mine.breach is not None and not pool.breach_is_least
    asked = solver.pricing(task.loss, task.limits, program, mine, breach)
    if asked is None:
        return Priced(_answers(found), _in_vain(pool, breach, len(found)))
    answer = K.answer(asked.direction, pool.warm)
    pool = pool._replace(warm=answer.warm)
    if not _is_better(K, asked, answer):
        return Priced(_answers(found), _in_vain(pool, breach, len(found)), 1)
    solved = _answers(found)
    pool, starts = with_vertices(pool, solved.bases, (answer.vertex,), t)
    if len(pool.vertices) == len(solver.vertices):  # known all the same: rounding
        return Priced(solved, _in_vain(pool, breach, len(found)), 1)
    pool = pool._replace(turn=turn + 1, in_vain=0, breach_is_least=False)
    more = BestOfVertices(K, solver.who, pool.vertices, solver)
    again = _attempt(more, more.prepared(task.loss, task.limits), task.rooms[turn], starts[turn])
    points, ends = list(solved.points), list(starts)
    if again is not None:
        points[turn], ends[turn] = again.x, again.bases
    solves = solved.solves + (0 if again is None else again.solves)
    answers = Answers(tuple(points), tuple(ends), solves)
    return Priced(answers, pool, 1, (answer.vertex,), more)


def _marked(
    pool: Pool, solver: BestOfVertices, found: Sequence[Best | None], t: int
) -> tuple[int, ...]:
    """When each vertex was used last, now that these programs used some in round t."""
    last_used = np.array(pool.last_used)
    for best in found:
        if best is not None:
            last_used[solver.weights(best) > IN_USE] = t
    return tuple(last_used.tolist())


def _in_vain(pool: Pool, breach: bool, headrooms: int) -> Pool:
    """The pool after a call that found nothing: the next one's turn, after a while where all were
    in vain.
    """
    in_vain = pool.in_vain + 1
    beyond = in_vain - headrooms
    return pool._replace(
        turn=pool.turn if breach else (pool.turn + 1) % headrooms,
        in_vain=in_vain,
        wait=0 if beyond < 0 else min(2 ** min(beyond, 30), LONGEST_WAIT),
        breach_is_least=breach,
    )


def _is_better(K: HasLMO, asked: Pricing, answer: Answer) -> bool:
    gain = asked.known - answer.vertex.inner(asked.direction)
    return gain > _BETTER * length(asked.direction) * K.radius
