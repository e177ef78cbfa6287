"""Build the problem of an experiment: a built-in one, or a set with a stream from files.

    f_t(x) = <costs_t, x>        g_t(x) = max_i x_i - capacities_ti        or
        g_t(x) = <weights_t, x> - budgets_t

or functions by name. Columns belong to coordinates by name: those of a network to its links
(networks/columns.py), others as the first table that has a column for each coordinate names them.

Tables with a column called time say when rounds are. Points that others proposed are given as
decisions are; a row with an empty cell is absent.

Decisions on a network are shares of the demands: costs and weights are multiplied by what is sent,
capacities hold for the sum of it (networks/network.py). Functions by name are taken as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tidewolf import problems as _problems
from tidewolf.core.batch import Batch, Stream
from tidewolf.core.errors import InvalidInput, TidewolfError
from tidewolf.experiments.building import build_choice, read_rows
from tidewolf.experiments.choice import Choice
from tidewolf.experiments.coordinates import Coordinates, coordinates_of
from tidewolf.experiments.experiment import TABLES, Experiment, Tables
from tidewolf.experiments.keys import problem_keys
from tidewolf.experiments.toml import Place, with_location
from tidewolf.files import Table
from tidewolf.files.gaps import align, require_seen
from tidewolf.problems import Problem


def problem(experiment: Experiment, seed: int) -> Problem:
    """The set and the stream of one seed."""
    stream, K = experiment.stream, experiment.hard_set
    if isinstance(stream, Tables):
        assert K is not None
        return _from_tables(experiment, stream, K)
    given = stream.given
    if K is not None:
        given["K"] = build_choice(K, experiment.place("set"))
    try:
        found: Problem = _problems.named(stream.name)(rounds=experiment.rounds, seed=seed, **given)
    except TidewolfError as error:
        asked = error.setting == "rounds" and _set_in_file(experiment)
        place = Place(experiment.document, ("rounds",) if asked else ("stream",))
        raise with_location(error, place, problem_keys(stream.name)) from None
    return found


def _from_tables(experiment: Experiment, tables: Tables, choice: Choice) -> Problem:
    place = experiment.place("stream")
    paths: dict[str, Path] = {
        name: path for name in TABLES if (path := getattr(tables, name)) is not None
    }
    filled = tables.gaps != "refuse"
    read = {name: read_rows(path, place.within(name), gaps=filled) for name, path in paths.items()}
    info_tables = _info_tables(tables, place)
    if not read and tables.losses is None:
        raise InvalidInput(
            f"{place.words()}an experiment needs rounds: give costs, capacities or demands under "
            "[stream], a row a round. (tidewolf live needs none.)"
        )
    entries = len(read["costs"].columns) if "costs" in read else None
    coordinates = coordinates_of(choice, entries, experiment.place("set"))
    if (files := coordinates.on_network) is not None:
        read = {name: files.of_used_links(name, table, paths[name]) for name, table in read.items()}
    aligned = align({**read, **info_tables.tables}, tables.gaps, absent=tuple(info_tables.tables))
    require_seen(aligned)
    read = {name: aligned.tables[name] for name in read}
    info_tables = _InfoTables(
        info_tables.paths, {name: aligned.tables[name] for name in info_tables.tables}
    )
    losses, limits = coordinates.functions(read, paths, tables, place)
    rounds = _rounds(experiment, losses, limits, paths)
    coordinates.warn_of_negative(limits[:rounds], read.get("capacities"))
    try:
        known = info_tables.of_rounds(coordinates, (*read.values(),), len(losses), rounds)
        if aligned.seen is not None:
            known["seen"] = aligned.seen[:rounds]
        stream = Stream(losses[:rounds], limits[:rounds], **known)
        title = experiment.title or coordinates.title(choice.name, tables)
        network = coordinates.network
        return Problem(
            experiment.name,
            coordinates.K,
            stream,
            title,
            coordinates.labels,
            network=network,
            demands=coordinates.demands(read.get("demands"), paths.get("demands"), rounds),
            notes=(*(() if files is None else files.notes), *aligned.notes),
        )
    except TidewolfError as error:
        raise with_location(error, place) from None


class _InfoTables(NamedTuple):
    """Tables of what is known before rounds."""

    paths: dict[str, Path]
    tables: dict[str, Table]

    def of_rounds(
        self, coordinates: Coordinates, others: Sequence[Table], length: int, rounds: int
    ) -> dict[str, Any]:
        """Keyword arguments of the stream: the side information of the first `rounds` rounds."""
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
            kept = coordinates.entries(table, self.paths[name])
            points = np.ascontiguousarray(table.values[:rounds, kept])
            advice[name.removeprefix(_ADVICE)] = points.reshape(-1, *coordinates.K.shape)
        return given | ({"advice": advice} if advice else {})


_ADVICE = "advice "


def _info_tables(tables: Tables, place: Place) -> _InfoTables:
    """The tables of what is known before rounds."""
    paths: dict[str, Path] = {} if tables.context is None else {"context": tables.context}
    places = {"context": place.within("context")}
    for name, path in tables.advice:
        paths[f"{_ADVICE}{name}"] = path
        places[f"{_ADVICE}{name}"] = place.within("advice", name)
    return _InfoTables(
        paths,
        {name: read_rows(path, places[name], gaps=True) for name, path in paths.items()},
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
        place = Place(experiment.document if _set_in_file(experiment) else None, ("rounds",))
        raise InvalidInput(
            f"{place.words()}{experiment.rounds} rounds are asked for, and {first} has {length}."
        )
    return length if experiment.rounds is None else experiment.rounds


def _set_in_file(experiment: Experiment) -> bool:
    """Whether it is the file that says how many rounds, not the command line."""
    document = experiment.document
    return document is not None and document.data.get("rounds") == experiment.rounds
