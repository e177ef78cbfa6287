"""From an experiment to its problem: a built-in one, or a set and tables.

    f_t(x) = <costs_t, x>        g_t(x) = max_i x_i - capacities_ti        or
        g_t(x) = <weights_t, x> - budgets_t

Columns belong to coordinates by name. Those of a flow are its links: a column is called as the link
is in the graph's file (a column name, link or id), or "tail > head". Elsewhere the costs name the
coordinates, and other tables use the same names.

A flow carries `demand` units of what capacities and weights are measured in: points are shares of
it, so costs are multiplied by it and capacities divided. A graph with cycles keeps the links that
lead away from the source by `lengths` (each 1 long unless told), no other.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tidewolf import problems as _problems
from tidewolf.core.batch import Stream
from tidewolf.core.errors import (
    CyclicGraph,
    InvalidInput,
    NegativeCapacity,
    TidewolfError,
    UnknownNode,
)
from tidewolf.experiments import settings
from tidewolf.experiments.experiment import TABLES, Choice, Experiment, Tables, plain_sets
from tidewolf.experiments.toml import Document, hint
from tidewolf.functions import Affine, Capacity, Linear
from tidewolf.functions.negative import breaks, negative_capacities
from tidewolf.problems import Graph, Problem, Table, read_graph, read_table
from tidewolf.sets import ConvexSet, FlowPolytope


def problem(experiment: Experiment, seed: int) -> Problem:
    """The set and the stream of one seed."""
    stream, K, document = experiment.stream, experiment.hard_set, experiment.document
    if isinstance(stream, Tables):
        assert K is not None
        return _tabled(experiment, stream, K)
    given = stream.given
    if K is not None:
        given["K"] = _plain_set(document, K, K.given)
    try:
        found: Problem = _problems.named(stream.name)(rounds=experiment.rounds, seed=seed, **given)
    except TidewolfError as error:
        about = (
            ("rounds",)
            if document is not None and "rounds" in document.data and "rounds" in str(error)
            else ("stream",)
        )
        raise settings.placed(
            document, error, about, {"problem": stream.name, **stream.given}
        ) from None
    return found


def _plain_set(document: Document | None, choice: Choice, given: Mapping[str, Any]) -> ConvexSet:
    if choice.name == "FlowPolytope":
        return _flow(document, given).K
    try:
        K: ConvexSet = settings.made(plain_sets()[choice.name], **given)
    except TidewolfError as error:
        raise settings.placed(document, error, ("set",), given) from None
    return K


def _tabled(experiment: Experiment, tables: Tables, choice: Choice) -> Problem:
    document = experiment.document
    paths: dict[str, Path] = {
        name: path for name in TABLES if (path := getattr(tables, name)) is not None
    }
    for name, path in paths.items():
        _require_file(document, path, "stream", name)
    read = {name: read_table(path) for name, path in paths.items()}
    rounds = _rounds(experiment, read, paths)
    demand = 1.0
    if choice.name == "FlowPolytope":
        flow = _flow(document, choice.given)
        labels, title, demand = flow.labels, flow.title, flow.demand
        K: ConvexSet = flow.K
        columns = {
            name: flow.columns(read[name], paths[name]) for name in read if name != "budgets"
        }
    else:
        given = choice.given
        if "n" in settings.knobs(plain_sets()[choice.name]):
            given.setdefault("n", len(read["costs"].columns))
        K = _plain_set(document, choice, given)
        size = int(np.prod(K.shape))
        if len(read["costs"].columns) != size:
            raise InvalidInput(
                f"{paths['costs']}, line 1: it names {len(read['costs'].columns)} columns, and a "
                f"point of the set has {size} coordinates."
            )
        names = read["costs"].columns
        columns = {
            name: _by_name(read[name], names, paths[name], paths["costs"])
            for name in read
            if name != "budgets"
        }
        labels = names if K.shape == (len(names),) else ()
        title = f"A point of a {choice.name} at the costs of {paths['costs'].name}."
    values = {
        name: np.ascontiguousarray(read[name].values[:rounds, kept]).reshape(rounds, *K.shape)
        for name, kept in columns.items()
    }
    losses = Linear(demand * values["costs"])
    if "capacities" in values:
        limits: Any = Capacity(values["capacities"] / demand)
        _warn_of_negative(
            K, Capacity(values["capacities"]), read["capacities"], columns["capacities"]
        )
    else:
        if len(read["budgets"].columns) != 1:
            raise InvalidInput(
                f"{paths['budgets']}, line 1: budgets are one column beside the time, not "
                f"{len(read['budgets'].columns)}."
            )
        limits = Affine(demand * values["weights"], read["budgets"].values[:rounds, 0])
    return Problem(experiment.name, K, Stream(losses, limits), experiment.title or title, labels)


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


def _rounds(experiment: Experiment, read: Mapping[str, Table], paths: Mapping[str, Path]) -> int:
    """How many rounds are played: tables of one length, at the same times."""
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
    if experiment.rounds is not None and experiment.rounds > length:
        document = experiment.document
        place = (
            f"{document.place('rounds')}: "
            if document is not None and document.data.get("rounds") == experiment.rounds
            else ""
        )
        raise InvalidInput(
            f"{place}{experiment.rounds} rounds are asked for, and {paths[first]} has {length} "
            "rows."
        )
    return length if experiment.rounds is None else experiment.rounds


def _clock(table: Table) -> str:
    return "dates" if table.times is not None and table.times.dtype.kind == "M" else "numbers"


def _by_name(table: Table, names: Sequence[str], path: Path, first: Path) -> list[int]:
    for name in table.columns:
        if name not in names:
            raise InvalidInput(
                f"{path}, line 1: {first} has no column {name!r}, which this one "
                f"has.{hint(name, names)}"
            )
    for name in names:
        if name not in table.columns:
            raise InvalidInput(f"{path}, line 1: there is no column {name!r}, which {first} has.")
    return [table.columns.index(name) for name in names]


class _Flow(NamedTuple):
    """A flow over the links kept of a graph."""

    K: FlowPolytope
    graph: Graph
    kept: Sequence[int]
    path: Path
    demand: float

    @property
    def labels(self) -> tuple[str, ...]:
        names = [""] * len(self.graph.links) if self.graph.both_ways else self.graph.names
        return tuple(names[i] or _called(self.graph.links[i]) for i in self.kept)

    @property
    def title(self) -> str:
        source, target = self.K.nodes[self.K.source], self.K.nodes[self.K.target]
        links = len(self.graph.links)
        which = (
            f"all {links} links"
            if len(self.kept) == links
            else f"the {len(self.kept)} of {links} links that lead away and on,"
        )
        return f"One flow from {source} to {target} over {which} of {self.path.name}."

    def columns(self, table: Table, path: Path) -> list[int]:
        """The place of each link's column."""
        links, names = self.graph.links, self.graph.names
        if table.columns == tuple(map(str, range(len(links)))) and not set(table.columns) & set(
            names
        ):
            return list(self.kept)
        places = {_plain(name): i for i, name in enumerate(table.columns)}
        calls = [
            [_plain(call) for call in (name, _called(link)) if call]
            for name, link in zip(names, links, strict=True)
        ]
        known = {call for some in calls for call in some}
        for plain, i in places.items():
            if plain not in known:
                raise InvalidInput(f"{path}, line 1: {self._unknown(table.columns[i])}")
        found = []
        for i in self.kept:
            back = [_plain(_called(links[i][::-1]))] if self.graph.both_ways else []
            own = [places[call] for call in (*calls[i], *back) if call in places]
            if not own:
                called = names[i] or _called(links[i])
                raise InvalidInput(
                    f"{path}, line 1: there is no column {called!r} for the link of "
                    f"{self.graph.places[i]}."
                )
            found.append(own[0])
        return found

    def _unknown(self, column: str) -> str:
        nodes = {str(node) for link in self.graph.links for node in link}
        ends = [end.strip() for end in _ARROW.split(column)]
        known = [
            name or _called(link)
            for name, link in zip(self.graph.names, self.graph.links, strict=True)
        ]
        if len(ends) == 2:
            for end in ends:
                if end not in nodes:
                    return (
                        f"the column {column!r} names the node {end!r}, which no link of "
                        f"{self.path} touches.{hint(end, nodes)}"
                    )
        return (
            f"the column {column!r} is no link of {self.path}, whose links are called as "
            f"{known[0]!r} is.{hint(column, known)}"
        )


_ARROW = re.compile(r"\s*(?:->|>|\u2192)\s*")


def _called(link: Sequence[Any]) -> str:
    return f"{link[0]} > {link[1]}"


def _plain(name: str) -> str:
    return _ARROW.sub(">", name.strip())


def _flow(document: Document | None, given: Mapping[str, Any]) -> _Flow:
    path, lengths = Path(given["graph"]), given.get("lengths")
    _require_file(document, path, "set", "graph")
    graph = read_graph(path, numbers=[lengths] if lengths else [], directed=given.get("directed"))
    _require_told_apart(graph)
    source, target = (_node(document, graph, key, given[key], path) for key in ("source", "target"))
    try:
        kept: Sequence[int] = range(len(graph.links))
        try:
            K = FlowPolytope.from_edges(graph.links, source=source, target=target)
        except CyclicGraph:
            kept = graph.dag(source, target, lengths)
            K = FlowPolytope.from_edges(
                [graph.links[i] for i in kept], source=source, target=target
            )
    except TidewolfError as error:
        raise settings.placed(document, error, ("set",), {"target": 0}) from None
    return _Flow(K, graph, kept, path, given.get("demand", 1.0))


def _require_file(document: Document | None, path: Path, *key: str) -> None:
    if not path.is_file():
        place = "" if document is None else f"{document.place(*key)}: "
        raise InvalidInput(
            f"{place}there is no file {path}; paths are seen from the folder of the experiment's "
            "file."
        )


def _require_told_apart(graph: Graph) -> None:
    seen: dict[str, int] = {}
    for i, (name, link) in enumerate(zip(graph.names, graph.links, strict=True)):
        called = name or _called(link)
        way_back = graph.both_ways and i >= len(graph.links) // 2
        if called in seen and not (name and way_back):
            twin = f"{graph.places[i]}: {called!r} is the link of {graph.places[seen[called]]} too"
            raise InvalidInput(f"{twin}; give links names of their own in a column called name.")
        seen.setdefault(called, i)


def _node(document: Document | None, graph: Graph, key: str, given: str | int, path: Path) -> Any:
    nodes = {str(node): node for link in graph.links for node in link}
    if str(given) not in nodes:
        place = "" if document is None else f"{document.place('set', key)}: "
        raise UnknownNode(
            f"{place}no link of {path} touches the node {given!r}, the "
            f"{key}.{hint(str(given), nodes)}"
        )
    return nodes[str(given)]
