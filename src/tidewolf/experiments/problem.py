"""From an experiment to its problem: a built-in one, or a set with a stream from files.

    f_t(x) = <costs_t, x>        g_t(x) = max_i x_i - capacities_ti        or
        g_t(x) = <weights_t, x> - budgets_t

or functions by name. Columns belong to coordinates by name. Those of a set over links are called as
the links are (links.py). Elsewhere the first table that has a column for each coordinate names
them, and other tables use the same names.

Tables with a column called time say when rounds are. Points that others proposed are given as
decisions are, shares of the demand; a row with an empty cell is absent.

A flow carries `demand` units of what capacities and weights are measured in: points are shares of
it, so costs and weights are multiplied by it and capacities divided. Functions by name are taken as
they are.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tidewolf import problems as _problems
from tidewolf.core.batch import Batch, Stream
from tidewolf.core.errors import InvalidInput, NegativeCapacity, TidewolfError
from tidewolf.core.names import did_you_mean
from tidewolf.core.types import NDArray
from tidewolf.core.unlimited import Unlimited
from tidewolf.experiments.building import build_choice, read_numbers, read_rows
from tidewolf.experiments.choice import Choice
from tidewolf.experiments.experiment import TABLES, Experiment, Tables
from tidewolf.experiments.keys import (
    kind_keys,
    kind_named,
    problem_keys,
)
from tidewolf.experiments.links import LinkSet, build_on_links
from tidewolf.experiments.toml_tables import Place, with_location
from tidewolf.functions import Affine, Capacity, Linear
from tidewolf.functions.negative import breaks, negative_capacities
from tidewolf.problems import Problem, Table
from tidewolf.sets import ConvexSet


def problem(experiment: Experiment, seed: int) -> Problem:
    """The set and the stream of one seed."""
    stream, K = experiment.stream, experiment.hard_set
    if isinstance(stream, Tables):
        assert K is not None
        return _from_tables(experiment, stream, K)
    given = stream.given
    if K is not None:
        given["K"] = build_choice(K, Place(experiment.document, ("set",)))
    try:
        found: Problem = _problems.named(stream.name)(rounds=experiment.rounds, seed=seed, **given)
    except TidewolfError as error:
        asked = error.setting == "rounds" and _said_in_file(experiment)
        place = Place(experiment.document, ("rounds",) if asked else ("stream",))
        raise with_location(error, place, problem_keys(stream.name)) from None
    return found


def _from_tables(experiment: Experiment, tables: Tables, choice: Choice) -> Problem:
    place = Place(experiment.document, ("stream",))
    paths: dict[str, Path] = {
        name: path for name in TABLES if (path := getattr(tables, name)) is not None
    }
    read = {name: read_rows(path, place.within(name)) for name, path in paths.items()}
    told = _told(tables, place)
    _require_same_rounds({**read, **told.tables}, {**paths, **told.paths})
    entries = len(read["costs"].columns) if "costs" in read else None
    coordinates = _coordinates(choice, entries, Place(experiment.document, ("set",)))
    K, demand = coordinates.K, coordinates.demand
    columns = {
        name: coordinates.columns(read[name], paths[name]) for name in read if name != "budgets"
    }
    values = {
        name: np.ascontiguousarray(read[name].values[:, kept]).reshape(-1, *K.shape)
        for name, kept in columns.items()
    }
    if tables.losses is None:
        losses: Batch = Linear(demand * values["costs"])
    else:
        losses = build_choice(tables.losses, place.within("losses"), coordinates.read)
    if tables.constraints is not None:
        limits: Batch = build_choice(
            tables.constraints, place.within("constraints"), coordinates.read
        )
    elif "capacities" in values:
        limits = Capacity(values["capacities"] / demand)
    elif "weights" in values:
        limits = Affine(demand * values["weights"], _budgets(read["budgets"], paths["budgets"]))
    else:
        limits = Unlimited(losses.shape, len(losses))
    rounds = _rounds(experiment, losses, limits, paths)
    if "capacities" in values:
        played = Capacity(values["capacities"][:rounds])
        _warn_of_negative(K, played, read["capacities"], columns["capacities"])
    try:
        stream = Stream(
            losses[:rounds],
            limits[:rounds],
            **told.of_rounds(coordinates, (*read.values(),), len(losses), rounds),
        )
        title = experiment.title or coordinates.title(choice.name, tables)
        return Problem(experiment.name, K, stream, title, coordinates.labels)
    except TidewolfError as error:
        raise with_location(error, place) from None


class _Told(NamedTuple):
    """Tables of what is known before rounds."""

    paths: dict[str, Path]
    tables: dict[str, Table]

    def of_rounds(
        self, coordinates: _Coordinates, others: Sequence[Table], length: int, rounds: int
    ) -> dict[str, Any]:
        """What the stream is told, of these rounds of so many."""
        for name, table in self.tables.items():
            if len(table.values) != length:
                raise InvalidInput(
                    f"{self.paths[name]} has {len(table.values)} rows and the losses have {length} "
                    "rounds; a round is a row of each."
                )
        clocks = [table.times for table in (*others, *self.tables.values())]
        times = next((found for found in (*clocks, coordinates.times) if found is not None), None)
        given: dict[str, Any] = {}
        if times is not None and len(times) == length:
            given["time"] = times[:rounds]
        advice = {}
        for name, table in self.tables.items():
            if name == "context":
                values = table.values[:, 0] if len(table.columns) == 1 else table.values
                given["context"] = values[:rounds]
                continue
            kept = coordinates.columns(table, self.paths[name])
            points = np.ascontiguousarray(table.values[:rounds, kept])
            advice[name.removeprefix(_ADVICE)] = points.reshape(-1, *coordinates.K.shape)
        return given | ({"advice": advice} if advice else {})


_ADVICE = "advice "


def _told(tables: Tables, place: Place) -> _Told:
    """The tables of what is known before rounds."""
    paths: dict[str, Path] = {} if tables.context is None else {"context": tables.context}
    places = {"context": place.within("context")}
    for name, path in tables.advice:
        paths[f"{_ADVICE}{name}"] = path
        places[f"{_ADVICE}{name}"] = place.within("advice", name)
    return _Told(
        paths, {name: read_rows(path, places[name], gaps=True) for name, path in paths.items()}
    )


def _budgets(table: Table, path: Path) -> NDArray:
    if len(table.columns) != 1:
        raise InvalidInput(
            f"{path}, line 1: budgets are one column beside the time, not {len(table.columns)}."
        )
    return table.values[:, 0]


def _coordinates(choice: Choice, entries: int | None, place: Place) -> _Coordinates:
    """The set, with what its coordinates are called."""
    known = kind_keys(kind_named(choice.name))
    if "graph" in known:
        links = build_on_links(choice, place)
        return _Coordinates(links.K, links if links.by_link else None, links.demand)
    given = choice.given
    if "n" in known and entries is not None:
        given.setdefault("n", entries)
    return _Coordinates(build_choice(Choice.of(choice.name, given), place))


@dataclass
class _Coordinates:
    """The coordinates of points of a set, called as links are or as the columns of the first
    table.
    """

    K: ConvexSet
    links: LinkSet | None = None
    demand: float = 1.0
    names: tuple[str, ...] = ()
    first: Path | None = None
    """the table that named them"""
    times: NDArray | None = None
    """when rounds are, as the first table of functions by name with times says"""

    @property
    def labels(self) -> tuple[str, ...]:
        if self.links is not None:
            return self.links.labels
        return self.names if self.K.shape == (len(self.names),) else ()

    def title(self, kind: str, tables: Tables) -> str:
        """What is decided, in a sentence."""
        if self.links is not None:
            return self.links.title
        if tables.costs is not None:
            return f"A point of a {kind} at the costs of {tables.costs.name}."
        assert tables.losses is not None
        return f"A point of a {kind} under {tables.losses.name} losses."

    def columns(self, table: Table, path: Path) -> list[int]:
        """The place of each coordinate's column."""
        if self.links is not None:
            return self.links.columns(table, path)
        size = int(np.prod(self.K.shape))
        if self.first is None:
            if len(table.columns) != size:
                raise InvalidInput(
                    f"{path}, line 1: it names {len(table.columns)} columns, and a point of the "
                    f"set has {size} coordinates."
                )
            self.names, self.first = table.columns, path
        return _by_name(table, self.names, path, self.first)

    def read(self, path: Path, place: Place) -> NDArray:
        """The array in a table. Columns that are called as coordinates are get their order."""
        table = read_numbers(path, place)
        self.times = table.times if self.times is None else self.times
        if self.links is not None:
            named = self.links.names_any(table)
        else:
            shared = self.first is None or bool(set(table.columns) & set(self.names))
            named = shared and len(table.columns) == int(np.prod(self.K.shape))
        if not named:
            return table.values
        return table.values[:, self.columns(table, path)].reshape(-1, *self.K.shape)


def _warn_of_negative(
    K: ConvexSet, capacities: Capacity, table: Table, columns: Sequence[int]
) -> None:
    """Name the first cell with a capacity that no point of the set keeps."""
    found = negative_capacities(K, capacities, set())
    if found:
        entry, row, value = found[0]
        place = f'{table.places[row]}, column "{table.columns[columns[entry]]}"'
        warnings.warn(
            f"{place}: the capacity is {value:g}; {breaks(len(found))}",
            NegativeCapacity,
            stacklevel=2,
        )


def _rounds(experiment: Experiment, losses: Batch, limits: Batch, paths: Mapping[str, Path]) -> int:
    """How many rounds are played: losses and limits have as many."""
    length = len(losses)
    first = paths.get("costs", "[stream.losses]")
    if len(limits) != length:
        tables = [path for name, path in paths.items() if name != "costs"]
        other = (*tables, "[stream.constraints]")[0]
        raise InvalidInput(
            f"{other} has {len(limits)} rounds and {first} has {length}; each round needs a loss "
            "and a limit."
        )
    if experiment.rounds is not None and experiment.rounds > length:
        place = Place(experiment.document if _said_in_file(experiment) else None, ("rounds",))
        raise InvalidInput(
            f"{place.words()}{experiment.rounds} rounds are asked for, and {first} has {length}."
        )
    return length if experiment.rounds is None else experiment.rounds


def _said_in_file(experiment: Experiment) -> bool:
    """Whether it is the file that says how many rounds, not the command line."""
    document = experiment.document
    return document is not None and document.data.get("rounds") == experiment.rounds


def _require_same_rounds(read: Mapping[str, Table], paths: Mapping[str, Path]) -> None:
    """Tables are of one length, at the same times."""
    if not read:
        return
    first, *others = read
    length, times = len(read[first].values), read[first].times
    for name in others:
        table = read[name]
        if len(table.values) != length:
            raise InvalidInput(
                f"{paths[name]} has {len(table.values)} rows and {paths[first]} has {length}; a "
                "round is a row of each."
            )
        if times is not None and table.times is not None:
            if _clock(table) != _clock(read[first]):
                clocks = (
                    f"{paths[name]} has {_clock(table)} for times and {paths[first]} has "
                    f"{_clock(read[first])}"
                )
                raise InvalidInput(f"{clocks}; both need the same.")
            for i in np.flatnonzero(table.times != times)[:1]:
                apart = f"the time is {table.times[i]}, where {paths[first]} has {times[i]}"
                raise InvalidInput(f"{table.places[i]}: {apart}; a round is a row of each.")


def _clock(table: Table) -> str:
    return "dates" if table.times is not None and table.times.dtype.kind == "M" else "numbers"


def _by_name(table: Table, names: Sequence[str], path: Path, first: Path) -> list[int]:
    for name in table.columns:
        if name not in names:
            raise InvalidInput(
                f"{path}, line 1: {first} has no column {name!r}, which this one "
                f"has.{did_you_mean(name, names)}"
            )
    for name in names:
        if name not in table.columns:
            raise InvalidInput(f"{path}, line 1: there is no column {name!r}, which {first} has.")
    return [table.columns.index(name) for name in names]
