"""What would we have saved? The decisions of whoever decides today, played beside the learners.

A table as decisions.csv is: a column an entry, by name, a row a round; its rows are those of the
stream by their times where both have them, by `round` (from 1) where it has that, else one after
another. A single row stands in every round: routing that does not change. An entry without a column
is 0. Entries are decisions, on flows SHARES of each commodity's demand: volumes are not taken.

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

    def act(self, state: State, info: Any = None) -> Array:
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
    def examples(cls, K: Any, horizon: int) -> Sequence[Incumbent]:
        return (cls(K, np.repeat(to_numpy(K.center)[None], max(1, horizon), axis=0)),)


def read_incumbent(path: Path, problem: Problem, format: FileFormat) -> Incumbent:
    """The decisions in a table, as a learner that plays them; refused where a row is none."""
    table = _read(path, format)
    names = entry_names(problem.K, problem.labels)
    columns, rows = _columns(table, names, problem, path), _rows(table, problem, path)
    distinct, of_round = np.unique(rows, return_inverse=True)
    points = np.zeros((len(distinct), len(names)))
    there = columns >= 0
    points[:, there] = table.values[distinct][:, columns[there]]
    places = [table.places[i] for i in distinct.tolist()]
    found, rounded = _members(points.reshape(len(distinct), *problem.K.shape), places, problem)
    said = f"It plays the decisions of {path.name}"
    if len(table.values) == 1:
        said += ", whose one row stands in every round"
    absent = int((~there).sum())
    if absent:
        said += f"; {absent:,} of {len(names):,} entries have no column there and count as 0"
    return Incumbent(problem.K, found[of_round, ...], (f"{said}{rounded}.",))


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


def _columns(table: Table, names: Sequence[str], problem: Problem, path: Path) -> Int64s:
    """The place of each entry's column; -1 where it has none."""
    place = {name: i for i, name in enumerate(table.columns)}
    info = {*names, _ROUND}
    if not place.keys() & set(names):
        hint = did_you_mean(names[0], table.columns)
        raise InvalidInput(
            f"{path}: an incumbent's decisions have a column for each of the {len(names)} entries "
            f"that is not 0, and there is none of them.{hint} The names are those of "
            f"decisions.csv: {listed(names)}."
        )
    for name in table.columns:
        if name not in info and np.any(table.values[:, place[name]] != 0.0):
            row = int(np.flatnonzero(table.values[:, place[name]])[0])
            raise InvalidInput(
                f'{table.places[row]}, column "{name}": nothing is decided under that name here'
                f"{_cut(name, problem)}, and the incumbent has "
                f"{table.values[row, place[name]]:g}; only zeros can be left out."
                f"{did_you_mean(name, names)}"
            )
    return np.array([place.get(name, -1) for name in names], dtype=np.int64)


def _cut(name: str, problem: Problem) -> str:
    """Why a link carries nothing, where that is so."""
    if problem.network is None:
        return ""
    return next((f" (the link {why})" for link, why in problem.network.cut if link == name), "")


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


def _members(points: Floats, places: Sequence[str], problem: Problem) -> tuple[Array, str]:
    """The rows as members of the set, those that are rounded brought to the nearest one, and how
    far that was in words.
    """
    K = problem.K
    most, farthest, moved = TOLERANCE * K.radius, 0.0, 0
    found = like(points, K.center)
    project: ExactProjection | None = None
    for i, where in enumerate(places):
        x = found[i, ...]
        infeasibility = float(K.infeasibility(x))
        if infeasibility <= 0.5 * membership_tolerance(x, K.radius):
            continue
        if not infeasibility <= most:
            raise InvalidInput(f"{where}: the row is no decision: {_why(to_numpy(x), problem)}")
        try:
            project = ExactProjection(K) if project is None else project
            member = project(x)
        except NotSupported:
            continue
        farthest, moved = max(farthest, norm(member - x)), moved + 1
        found[i, ...] = member
    if not moved:
        return found, ""
    rows = f"{moved:,} of {len(places):,} rows"
    return found, (
        f"; {rows} were rounded, and are taken as the nearest decision, at most "
        f"{number(farthest)} away"
    )


def _why(x: Floats, problem: Problem) -> str:
    """Why a point is no decision, and what to look for."""
    K, net = problem.K, problem.network
    if net is None:
        return (
            f"it is {float(K.infeasibility(like(x, K.center))):.3g} outside the set, where "
            f"{TOLERANCE * K.radius:.3g} is allowed for rounding. Entries are decisions as "
            "decisions.csv has them, on flows shares of each commodity's demand and not volumes: "
            "what enters a node leaves it, and the shares of a commodity sum to 1."
        )
    if x.min() < -TOLERANCE:
        worst = int(x.argmin())
        return f"{net.names[worst]} is {x[worst]:.4g}, and no share is below 0."
    nodes = list(net.nodes) if net.tunnels is None else []
    most, said, scales = TOLERANCE, "", np.ones(len(net.demands))
    for j, demand in enumerate(net.demands):
        own = np.where(net.owner == j, x, 0.0)
        of = f" of {demand.name}" if len(net.demands) > 1 else ""
        if net.tunnels is not None:
            scales[j] = own.sum()
            if abs(scales[j] - 1.0) > most:
                most = abs(scales[j] - 1.0)
                said = f"the shares{of} sum to {scales[j]:.4g}, not to 1"
            continue
        loads = net.incidence @ own
        came, went = dict.fromkeys(nodes, 0.0), dict.fromkeys(nodes, 0.0)
        for (tail, head), load in zip(net.links, loads.tolist(), strict=True):
            went[tail] += load
            came[head] += load
        scales[j] = sum(went[node] - came[node] for node in demand.sources)
        for node in nodes:
            starts, ends = demand.sources.get(node, 0.0), demand.targets.get(node, 0.0)
            off = abs(went[node] + ends - came[node] - starts)
            if off <= most:
                continue
            most = off
            due = [f"{at:.4g} {what}" for at, what in ((starts, "starts"), (ends, "ends")) if at]
            said = (
                f"the shares{of} do not balance at {node}, where {came[node]:.4g} comes in and "
                f"{went[node]:.4g} goes out{''.join(f' and {each} there' for each in due)}"
            )
    if not said:
        infeasibility = float(K.infeasibility(like(x, K.center)))
        apart = f"it is {infeasibility:.3g} outside the set of decisions"
        return f"{apart}: a share is above what is allowed."
    if scales.min() > 0.0 and scales.max() > 1.0 + TOLERANCE:
        shares = like(x / scales[net.owner], K.center)
        if float(K.infeasibility(shares)) <= TOLERANCE * K.radius:
            by = f"{scales[0]:.4g}" if len(scales) == 1 else "what each commodity sends"
            return (
                f"{said}. Are these volumes? Decisions are shares of each commodity's demand; "
                f"divided by {by}, the row would be one."
            )
    return f"{said}. Entries are shares of each commodity's demand: what enters a node leaves it."


def savings(ours: Run, label: str, incumbent: Run, network: Any = None) -> str:
    """What would have been saved, in a sentence."""
    mine, theirs = float(ours.losses.sum()), float(incumbent.losses.sum())
    cost = f"cost {_apart(theirs - mine, theirs)} the incumbent"
    broken, instead = float(ours.violations.sum()), float(incumbent.violations.sum())
    limits = (
        "kept every limit as the incumbent did"
        if number(broken) == number(instead) == "0"
        else f"broken limits by {number(broken)} instead of {number(instead)}"
        f"{_in_units(broken, instead, network)}"
    )
    return f"{label} would have {cost} and {limits}."


def _in_units(broken: float, instead: float, network: Any) -> str:
    """What violations on a network are measured in, and as volumes."""
    if network is None:
        return ""
    shares = ", in shares of all that is sent"
    if network.unit == 1.0:
        return shares
    volumes = [number(network.unit * each) for each in (broken, instead)]
    return f"{shares} ({volumes[0]} instead of {volumes[1]} in the unit of the capacities)"


def _apart(less: float, whole: float) -> str:
    """By how much less, or more: in percent of a whole that is above 0, else in its own units."""
    word = "less" if less >= 0.0 else "more"
    if whole <= 0.0:
        return "as much as" if less == 0.0 else f"{number(abs(less))} {word} than"
    share = 100.0 * abs(less) / whole
    if share < 0.005:
        return "as much as"
    return f"{share:,.1f} % {word} than" if share >= 1.0 else f"{share:.2f} % {word} than"
