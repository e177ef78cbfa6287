"""Write which limits were violated, when, and by how much, as files.

    limits.parquet, limits.csv      time (or round, from 1), limit, over

and of links of a network also load, capacity and over_volume. A row stands for a limit that was
broken in a round by more than rounding; what was kept has none, so a run that kept every limit
leaves a header. `over` is in the unit of the limits, on networks shares of all that is sent;
load, capacity and over_volume are volumes:

    over_volume  =  load - capacity  =  over * network.unit

They are worked out from the decisions that were kept, of the rounds that broke a limit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tidewolf.core.arrays import to_numpy
from tidewolf.core.types import Floats, Int64s
from tidewolf.evaluation.decisions import Decisions
from tidewolf.evaluation.limits import ONLY_LIMIT, is_broken
from tidewolf.evaluation.run import Run
from tidewolf.experiments.decision_files import table_key, write_table
from tidewolf.functions.linear import Capacity
from tidewolf.functions.loads import LoadLimit
from tidewolf.problems import Problem

LIMITS = "limits"
"""What the table is called."""
MOST_ROUNDS = 100_000
"""So many broken rounds at most are looked into; of more, each k-th."""
MOST_LIMITS = 5_000_000
"""And so many limits of them, all rounds together."""
_DIGITS = 12
"""Of volumes, which went through shares and back."""


class _Broken(NamedTuple):
    """Limits that were broken in a round."""

    t: int
    limits: Int64s
    over: Floats
    loads: Floats
    capacities: Floats


def write_limits(
    folder: Path,
    problem: Problem,
    run: Run,
    found: Decisions,
    form: str | None,
    told: dict[str, Any],
    zone: str | None = None,
) -> list[str]:
    """The limits that these decisions broke as limits.parquet and limits.csv; answers what is not
    there, in sentences.
    """
    names = limit_names_of(run)
    rounds = np.flatnonzero(run.violations > 0.0)
    every = max(
        1,
        math.ceil(len(rounds) / MOST_ROUNDS),
        math.ceil(len(rounds) * len(names) / MOST_LIMITS),
    )
    each = _broken(problem, run, found.points, rounds[::every])
    rounds_of = np.repeat([one.t for one in each], [len(one.limits) for one in each])
    key = table_key(found, zone).at(rounds_of.astype(np.int64))
    columns: dict[str, Any] = {
        "limit": [names[i] for one in each for i in one.limits],
        "over": _joined([one.over for one in each]),
    }
    about = {"about": "over: in the unit of the limits"}
    if _links(problem) is not None:
        volumes = {
            "load": _joined([one.loads for one in each]),
            "capacity": _joined([one.capacities for one in each]),
            "over_volume": columns["over"] * problem.network.unit,
        }
        columns |= {name: _without_rounding(column) for name, column in volumes.items()}
        about["about"] += "; the rest: volumes"
    write_table(folder / LIMITS, key, columns, form, {**about, **told})
    if every == 1:
        return []
    return [f"The tables of limits have one of every {every:,} rounds that broke some."]


def limit_names_of(run: Run) -> Sequence[str]:
    """What the limits of a run are called; an only one without a name is called the limit."""
    names = run.limit_names
    return (ONLY_LIMIT,) if names in ((), ("limit 1",)) else names


def _broken(problem: Problem, run: Run, points: Floats, rounds: Int64s) -> list[_Broken]:
    constraints, links, net = problem.stream.constraints, _links(problem), problem.network
    most = float(run.violations.max(initial=0.0))
    found = []
    for t in rounds.tolist():
        one, x = constraints.view(slice(t, t + 1)), np.array(points[t])
        pieces = one.pieces(x)
        values = to_numpy(one.values(x) if pieces is None else pieces).reshape(-1)
        limits = np.flatnonzero(is_broken(values, most if len(values) == 1 else 0.0))
        loads = capacities = np.empty(0)
        if links is not None:
            loads = net.loads(x, None if problem.demands is None else problem.demands[t])
            loads, capacities = loads[links[limits]], net.unit * _capacities(one)[limits]
        found.append(_Broken(t, limits, values[limits], loads, capacities))
    return found


def _links(problem: Problem) -> Int64s | None:
    """The link of each limit, where limits are capacities of the links of a network."""
    net, constraints = problem.network, problem.stream.constraints
    if net is None:
        return None
    if isinstance(constraints, LoadLimit):
        numbers = {name: i for i, name in enumerate(net.link_names)}
        return np.array([numbers[name] for name in constraints.names], dtype=np.int64)
    if isinstance(constraints, Capacity):
        return np.asarray(net.incidence.tocsc().indices, dtype=np.int64)
    return None


def _capacities(one: Any) -> Floats:
    return np.asarray(to_numpy(one.capacities if isinstance(one, LoadLimit) else one.c)).reshape(-1)


def _joined(parts: Sequence[Floats]) -> Floats:
    return np.concatenate([np.empty(0), *parts])


def _without_rounding(volumes: Floats) -> Floats:
    return np.array([float(f"{volume:.{_DIGITS}g}") for volume in volumes], dtype=np.float64)
