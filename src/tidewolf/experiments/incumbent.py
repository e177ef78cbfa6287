"""The decisions of an incumbent, played beside the learners: what would have been saved?

A table like decisions.csv: one column per entry, by name, one row per round. Rows belong to rounds
by their times if both have times, by `round` (from 1) if there is such a column, else in order. A
single row holds for every round: routing that does not change. An entry without a column is 0.
Entries are decisions, on flows SHARES of each commodity's demand, not volumes.

Files round their numbers, so a row may lie outside the set by `TOLERANCE` of its radius; it is
replaced by the nearest member, and a note gives the distance. A row farther outside is refused.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self, final

import numpy as np

from tidewolf.core import arrays, errors
from tidewolf.core.arguments import did_you_mean, listed
from tidewolf.core.feedback import FirstOrder
from tidewolf.core.types import Array, Floats, Int64s
from tidewolf.evaluation.formatting import number
from tidewolf.evaluation.run import Run, run
from tidewolf.evaluation.tracking import entry_names, time_texts
from tidewolf.files import FileFormat, Table, read_table
from tidewolf.hindsight.best import Comparator
from tidewolf.hindsight.exact import ExactProjection
from tidewolf.methods.base import Bound, Learner, Record
from tidewolf.problems import Problem
from tidewolf.sets.base import ConvexSet, membership_tolerance

# How far a row may be outside the set, as a share of the set's radius.
TOLERANCE = 1e-3
_ROUND = "round"


class State(NamedTuple):
    t: int = 0
    calls: int = 0
    distance: float = 0.0


@final
@dataclass(frozen=True, eq=False, repr=False)
class Incumbent(Learner[State]):
    needs: ClassVar[Any] = FirstOrder
    state_type: ClassVar[type[State]] = State

    K: ConvexSet
    points: Array
    # notes for the reader
    said: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Incumbent(K={self.K!r}, {len(self.points):,} rounds)"

    def start(self) -> State:
        return State()

    def act(self, state: State) -> Array:
        return self.points[min(state.t, len(self.points) - 1), ...]

    def rounds_left(self, state: State) -> int:
        return 1

    def update(self, state: State, feedback: Any) -> State:
        return State(state.t + 1)

    def bound(self, record: Record) -> Bound:
        return Bound(None, None, "")

    def notes(self, state: State) -> tuple[str, ...]:
        return self.said

    @classmethod
    def examples(cls, K: Any, horizon: int) -> Sequence[Self]:
        return (cls(K, np.repeat(arrays.to_numpy(K.center)[None], max(1, horizon), axis=0)),)


def read_incumbent(path: Path, problem: Problem, format: FileFormat) -> Incumbent:
    """The decisions in a table, as a learner that plays them; refused if a row is not a decision.

    The table is written as the experiment's files are, or as tidewolf writes decisions.
    """
    try:
        table = read_table(path, format=format)
    except errors.InvalidInput:
        table = read_table(path)
    names = entry_names(problem.K, problem.labels)
    columns, rows = _columns(table, names, path), _rows(table, names, problem, path)
    distinct, of_round = np.unique(rows, return_inverse=True)
    points = np.where(columns >= 0, table.values[distinct][:, columns], 0.0)
    places = [table.places[i] for i in distinct.tolist()]
    found, rounded = _members(points.reshape(len(distinct), *problem.K.shape), places, problem)
    note = f"It plays the decisions of {path.name}"
    if len(table.values) == 1:
        note += ", whose one row holds for every round"
    if absent := int((columns < 0).sum()):
        note += f"; {absent:,} of {len(names):,} entries have no column there and count as 0"
    return Incumbent(problem.K, found[of_round, ...], (f"{note}{rounded}.",))


def play_incumbent(incumbent: Incumbent, problem: Problem, comparator: Comparator | None) -> Run:
    stream = problem.stream
    stream = replace(stream, seen=None, arrives=None, played=None, unavailable=None)
    object.__setattr__(stream, "stamps", problem.stream.stamps)
    return run(incumbent, stream, comparator=comparator)


def _columns(table: Table, names: Sequence[str], path: Path) -> Int64s:
    place = {name: i for i, name in enumerate(table.columns)}
    if not place.keys() & set(names):
        near = did_you_mean(names[0], table.columns)
        raise errors.InvalidInput(f"{path}: expected columns called {listed(names)}.{near}")
    for name in place.keys() - {*names, _ROUND}:
        for row in np.flatnonzero(table.values[:, place[name]])[:1].tolist():
            where, near = f'{table.places[row]}, column "{name}"', did_you_mean(name, names)
            raise errors.InvalidInput(f"{where}: no entry of a decision has that name.{near}")
    return np.array([place.get(name, -1) for name in names], dtype=np.int64)


def _rows(table: Table, names: Sequence[str], problem: Problem, path: Path) -> Int64s:
    rounds, stamps = len(problem), problem.stream.stamps
    if len(table.values) == 1:
        return np.zeros(rounds, dtype=np.int64)
    keys: Any = np.arange(1, len(table.values) + 1)
    wanted: Any = np.arange(1, rounds + 1)
    if table.times is not None and stamps is not None:
        keys, wanted = table.times, stamps
    elif _ROUND in table.columns and _ROUND not in names:
        keys = table.values[:, table.columns.index(_ROUND)]
    order = np.argsort(keys, kind="stable")
    at = np.searchsorted(keys, wanted, side="right", sorter=order) - 1
    for t in np.flatnonzero((at < 0) | (keys[order][at] != wanted))[:1].tolist():
        at_time = f" ({time_texts(stamps)[t]})" if wanted is stamps and stamps is not None else ""
        raise errors.InvalidInput(
            f"{path}: expected a row for every one of {rounds:,} rounds, none for round "
            f"{t + 1}{at_time}."
        )
    return np.asarray(order[at], dtype=np.int64)


def _members(points: Floats, places: Sequence[str], problem: Problem) -> tuple[Array, str]:
    """The rows as members of the set, rounded ones replaced by the nearest member, and a note that
    gives the distance.
    """
    K = problem.K
    most, farthest, moved = TOLERANCE * K.radius, 0.0, 0
    found = arrays.like(points, K.center)
    project: ExactProjection | None = None
    for i, where in enumerate(places):
        x = found[i, ...]
        infeasibility = float(K.infeasibility(x))
        if infeasibility <= 0.5 * membership_tolerance(x, K.radius):
            continue
        errors.require(
            infeasibility <= most,
            errors.InvalidInput,
            f"{where}: the row is no decision: it is {infeasibility:.3g} outside the set, at most "
            f"{most:.3g} is rounding. On flows, entries are shares of each commodity's demand, "
            "not volumes.",
        )
        try:
            project = ExactProjection(K) if project is None else project
            member = project(x)
        except errors.NotSupported:
            continue
        farthest, moved = max(farthest, arrays.norm(member - x)), moved + 1
        found[i, ...] = member
    if not moved:
        return found, ""
    return found, (
        f"; {moved:,} of {len(places):,} rows were rounded, and are replaced by the nearest "
        f"decision, at most {number(farthest)} away"
    )


def savings(ours: Run, label: str, incumbent: Run, network: Any = None) -> str:
    whole = float(incumbent.losses.sum())
    less = whole - float(ours.losses.sum())
    word = "less" if less >= 0.0 else "more"
    share = 100.0 * abs(less) / whole if whole > 0.0 else math.inf
    size = f"{share:,.{1 if share >= 1.0 else 2}f} %" if whole > 0.0 else number(abs(less))
    cost = "as much as" if less == 0.0 or share < 0.005 else f"{size} {word} than"
    broken = [float(run.violations.sum()) for run in (ours, incumbent)]
    limits = f" and broken limits by {number(broken[0])} instead of {number(broken[1])}"
    if broken == [0.0, 0.0]:
        limits = ", and both satisfy every limit"
    elif network is not None:
        volumes = " instead of ".join(number(network.unit * each) for each in broken)
        limits += f", in shares of all that is sent ({volumes} in the unit of the capacities)"
    return f"{label} would have cost {cost} the incumbent{limits}."
