"""What would we have saved? The decisions of whoever decides today, played beside the learners.

A table as decisions.csv is: a column an entry, by name, a row a round; its rows are those of the
stream by their times where both have them, by `round` (from 1) where it has that, else one after
another. A single row stands in every round: routing that does not change. Entries are decisions,
on flows SHARES of each commodity's demand: volumes are not taken.

Files round their numbers, so a row may miss the set by `TOLERANCE` of its size; it is brought to
the nearest member, and how far that was is said. A row that misses it by more is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, final

import numpy as np

from tidewolf.core.arrays import like, norm, to_numpy
from tidewolf.core.errors import InvalidInput, NotSupported
from tidewolf.core.feedback import FirstOrder
from tidewolf.core.names import did_you_mean, listed
from tidewolf.core.types import Array, Floats, Int64s
from tidewolf.evaluation.decisions import entry_names, time_texts
from tidewolf.evaluation.formatting import number
from tidewolf.evaluation.run import Run, run
from tidewolf.files.format import PLAIN, FileFormat
from tidewolf.files.table import Table, read_table
from tidewolf.hindsight.best import Comparator
from tidewolf.hindsight.exact import ExactProjection
from tidewolf.methods.base import Bound, Learner, Record
from tidewolf.problems import Problem
from tidewolf.sets.base import ConvexSet, membership_tolerance

TOLERANCE = 1e-3
"""How far a row may be outside the set, as a share of the set's radius: numbers in files are
rounded.
"""
_ROUND = "round"


class State(NamedTuple):
    """Which round comes."""

    t: int = 0
    calls: int = 0
    distance: float = 0.0


@final
@dataclass(frozen=True, eq=False, repr=False)
class Incumbent(Learner[State]):
    """Plays points that were decided already, one a round; learns nothing."""

    needs: ClassVar[Any] = FirstOrder
    state_type: ClassVar[type[State]] = State

    K: ConvexSet
    points: Array
    said: tuple[str, ...] = ()
    """what a reader should know"""

    def __repr__(self) -> str:
        return f"Incumbent(K={self.K!r}, {len(self.points):,} rounds)"

    def start(self) -> State:
        return State()

    def act(self, state: State, known: Any = None) -> Array:
        return self.points[min(state.t, len(self.points) - 1), ...]

    def rounds_left(self, state: State) -> int:
        return 1

    def update(self, state: State, seen: Any) -> State:
        return State(state.t + 1)

    def bound(self, record: Record) -> Bound:
        return Bound(None, None, "")

    def notes(self, state: State) -> tuple[str, ...]:
        return self.said

    @classmethod
    def examples(cls, K: Any, horizon: int) -> Sequence[Incumbent]:
        return (cls(K, np.repeat(to_numpy(K.center)[None], max(1, horizon), axis=0)),)


def read_incumbent(path: Path, problem: Problem, format: FileFormat) -> Incumbent:
    """The decisions in a table, as a learner that plays them; refused where a row is none."""
    table = _read(path, format)
    columns, rows = _columns(table, problem, path), _rows(table, problem, path)
    distinct, of_round = np.unique(rows, return_inverse=True)
    points = np.ascontiguousarray(table.values[distinct][:, columns])
    points = points.reshape(len(distinct), *problem.K.shape)
    places = [table.places[i] for i in distinct.tolist()]
    found = _members(points, places, problem.K, path)
    return replace(found, points=found.points[of_round, ...])


def _read(path: Path, format: FileFormat) -> Table:
    """A table as the experiment's files are written, or as tidewolf writes decisions itself."""
    try:
        return read_table(path, format=format)
    except InvalidInput as error:
        if format == PLAIN:
            raise
        try:
            return read_table(path)
        except InvalidInput:
            raise error from None


def play_incumbent(incumbent: Incumbent, problem: Problem, comparator: Comparator | None) -> Run:
    """What these decisions come to on the stream, whatever of it learners are told, and when."""
    stream = problem.stream
    told = (stream.seen, stream.arrives, stream.played, stream.unavailable)
    if any(part is not None for part in told):
        stream = replace(stream, seen=None, arrives=None, played=None, unavailable=None)
        object.__setattr__(stream, "stamps", problem.stream.stamps)
    return run(incumbent, stream, comparator=comparator)


def with_savings(incumbent: Run, ours: Run, label: str) -> Run:
    """The same run, whose notes say what would have been saved."""
    learner = incumbent.learner
    assert isinstance(learner, Incumbent)
    said = (*learner.said, savings(ours, label, incumbent))
    return replace(incumbent, learner=replace(learner, said=said))


def _columns(table: Table, problem: Problem, path: Path) -> Int64s:
    """The place of each entry's column."""
    names = entry_names(problem.K, problem.labels)
    place = {name: i for i, name in enumerate(table.columns)}
    missing = [name for name in names if name not in place]
    if missing:
        hint = did_you_mean(missing[0], table.columns)
        raise InvalidInput(
            f"{path}: an incumbent's decisions have a column for each of the {len(names)} entries, "
            f"and there is none called {missing[0]!r}.{hint} The names are those of decisions.csv: "
            f"{listed(names)}."
        )
    known = {*names, _ROUND}
    for name in table.columns:
        if name not in known and np.any(table.values[:, place[name]] != 0.0):
            row = int(np.flatnonzero(table.values[:, place[name]])[0])
            raise InvalidInput(
                f'{table.places[row]}, column "{name}": nothing is decided under that name here, '
                f"and the incumbent has {table.values[row, place[name]]:g}; only zeros can be "
                f"left out.{did_you_mean(name, names)}"
            )
    return np.array([place[name] for name in names], dtype=np.int64)


def _rows(table: Table, problem: Problem, path: Path) -> Int64s:
    """The row of each round."""
    rounds, stamps = len(problem), problem.stream.stamps
    if len(table.values) == 1:
        return np.zeros(rounds, dtype=np.int64)
    if table.times is not None and stamps is not None:
        place = {text: i for i, text in enumerate(_times(table.times))}
        wanted = _times(stamps)
        for t, text in enumerate(wanted):
            if text not in place:
                raise InvalidInput(
                    f"{path} has no row at {time_texts(stamps)[t]}, the time of round {t + 1}; an "
                    "incumbent's decisions have one for every round."
                )
        return np.array([place[text] for text in wanted], dtype=np.int64)
    if _ROUND in table.columns and _ROUND not in entry_names(problem.K, problem.labels):
        numbers = table.values[:, table.columns.index(_ROUND)]
        found = {float(one): i for i, one in enumerate(numbers.tolist())}
        for t in range(1, rounds + 1):
            if float(t) not in found:
                raise InvalidInput(
                    f"{path} has no row of round {t}; an incumbent's decisions have one for every "
                    "round, counted from 1."
                )
        return np.array([found[float(t)] for t in range(1, rounds + 1)], dtype=np.int64)
    if len(table.values) < rounds:
        raise InvalidInput(
            f"{path} has {len(table.values):,} rows, and {rounds:,} rounds are played; an "
            "incumbent's decisions have a row for every round."
        )
    return np.arange(rounds)


def _times(times: Any) -> list[Any]:
    """Times that are equal where they are the same."""
    if times.dtype.kind == "M":
        return list(times.astype("datetime64[us]").astype(np.int64).tolist())
    return [float(one) for one in times.tolist()]


def _members(points: Floats, places: Sequence[str], K: ConvexSet, path: Path) -> Incumbent:
    """The rows as members of the set, those that are rounded brought to the nearest one."""
    most, farthest, moved = TOLERANCE * K.radius, 0.0, 0
    found = like(points, K.center)
    project: ExactProjection | None = None
    for i, where in enumerate(places):
        x = found[i, ...]
        excess = float(K.excess(x))
        if excess <= 0.5 * membership_tolerance(x, K.radius):
            continue
        if not excess <= most:
            raise InvalidInput(
                f"{where}: the row is no decision: it is {excess:.3g} outside the set, where "
                f"{most:.3g} is allowed for rounding. Entries are decisions as decisions.csv has "
                "them, on flows shares of each commodity's demand and not volumes: what enters a "
                "node leaves it, and the shares of a commodity sum to 1."
            )
        try:
            project = ExactProjection(K) if project is None else project
            member = project(x)
        except NotSupported:
            continue
        farthest, moved = max(farthest, norm(member - x)), moved + 1
        found[i, ...] = member
    said = f"It plays the decisions of {path.name}"
    if moved:
        said += (
            f"; {moved:,} of {len(places):,} rows were rounded, and are taken as the nearest "
            f"decision, at most {number(farthest)} away"
        )
    return Incumbent(K, found, (f"{said}.",))


def savings(ours: Run, label: str, incumbent: Run) -> str:
    """What would have been saved, in a sentence."""
    mine, theirs = float(ours.losses.sum()), float(incumbent.losses.sum())
    cost = f"cost {_apart(theirs - mine, theirs)} the incumbent"
    broken, instead = float(ours.violations.sum()), float(incumbent.violations.sum())
    limits = (
        "kept every limit as the incumbent did"
        if number(broken) == number(instead) == "0"
        else f"broken limits by {number(broken)} instead of {number(instead)}"
    )
    return f"{label} would have {cost} and {limits}."


def _apart(less: float, whole: float) -> str:
    """By how much less, or more: in percent of a whole that is above 0, else in its own units."""
    word = "less" if less >= 0.0 else "more"
    if whole <= 0.0:
        return "as much as" if less == 0.0 else f"{number(abs(less))} {word} than"
    share = 100.0 * abs(less) / whole
    if share < 0.005:
        return "as much as"
    return f"{share:,.1f} % {word} than" if share >= 1.0 else f"{share:.2f} % {word} than"
