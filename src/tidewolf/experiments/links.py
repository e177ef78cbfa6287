"""Sets whose points are made of links: the graph they are made of, and the names of their entries.

A network, or one flow from a source to a target, is what `networks` makes of the graph; of other
sets over links (spanning trees, matchings, capacitated flows by hand) the entries are the links.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tidewolf.core.errors import InvalidInput, TidewolfError, UnknownNode
from tidewolf.core.settings import Numbers, Setting, constructor_of
from tidewolf.experiments.building import require_file, value_of
from tidewolf.experiments.choice import Choice
from tidewolf.experiments.keys import (
    Keys,
    carries_flow,
    keys_of,
    kind_keys,
    kind_named,
)
from tidewolf.experiments.toml import Place, with_location
from tidewolf.files import Graph, read_graph, read_records
from tidewolf.networks.columns import LinkColumns, find_node
from tidewolf.networks.from_files import (
    CAPACITY,
    LENGTH,
    NetworkFiles,
    of_graph,
    read_commodities,
)
from tidewolf.sets import ConvexSet
from tidewolf.sets.graphs import Commodities, Links, Node, Supplies


class LinkSet(NamedTuple):
    """A set over the links of a graph."""

    K: ConvexSet
    on: LinkColumns
    about: str
    """what a point is"""

    @property
    def title(self) -> str:
        return (
            f"{self.about} over all {len(self.on.graph.links)} links of {Path(self.on.name).name}."
        )

    @property
    def by_link(self) -> bool:
        """Whether the entries of a point are the links."""
        return self.K.shape == (len(self.on.graph.links),)


def build_on_links(choice: Choice, place: Place) -> LinkSet:
    """The set that a file describes by a graph."""
    kind, given = kind_named(choice.name), choice.given
    known, make = kind_keys(kind), constructor_of(kind)
    graph, name = _graph(given, known, place)
    columns = LinkColumns(graph, name)
    values = {}
    for key, value in given.items():
        if key in keys_of(make):
            try:
                values[known[key].name] = _value(known[key], value, columns, place.within(key))
            except UnknownNode as error:
                raise with_location(error, place, known) from None
    try:
        K = make(**values)
    except TidewolfError as error:
        raise with_location(error, place, known) from None
    return LinkSet(K, columns, f"A point of a {choice.name}")


def network_of(choice: Choice, place: Place) -> NetworkFiles:
    """The network that a file describes."""
    given, known = choice.given, kind_keys(kind_named(choice.name))
    graph, name = _graph(given, known, place, optional=(LENGTH, CAPACITY))
    told = {key: given[key] for key in _OF_NETWORKS if key in given}
    commodities = told.get("commodities")
    if isinstance(commodities, str):
        require_file(Path(commodities), place.within("commodities"))
        told["commodities"] = read_commodities(Path(commodities), place.format)
    try:
        return of_graph(graph, name, **told)
    except TidewolfError as error:
        raise with_location(error, place, known) from None


_OF_NETWORKS = ("source", "target", "commodities", "demand", "paths", "k", "lengths")


def _graph(
    given: Mapping[str, Any],
    known: Keys,
    place: Place,
    optional: Sequence[str] = (),
) -> tuple[Graph, str]:
    """The graph of a file, or the links themselves; and what sentences call it."""
    told = given["graph"]
    columns = {
        key: value
        for key, value in given.items()
        if isinstance(value, str) and (key == "lengths" or isinstance(known[key].check, Numbers))
    }
    if isinstance(told, str):
        path = Path(told)
        require_file(path, place.within("graph"))
        directed = given.get("directed") if carries_flow(known) else True
        numbers = list(columns.values())
        graph = read_graph(
            path, numbers=numbers, optional=optional, directed=directed, format=place.format
        )
        return graph, str(path)
    for key in columns:
        raise InvalidInput(
            f"{place.within(key).words()}{key} is a column of a graph's file, and this graph is a "
            "list of links."
        )
    return _listed(told, given.get("directed", True), place.within("graph")), "the graph"


def _listed(rows: Sequence[Any], directed: bool, place: Place) -> Graph:
    """The graph of a list of links, each in both directions where it is not directed; lengths,
    capacities (infinite: none) and names where they stand behind the ends.
    """
    ways = 1 if directed else 2
    places = tuple(place.within(i).words().removesuffix(": ") for i in range(len(rows)))
    there = tuple((row[0], row[1]) for row in rows)
    back = () if directed else tuple((head, tail) for tail, head in there)
    numbers = {
        name: np.tile([row[at] if len(row) > at else np.nan for row in rows], ways)
        for at, name in ((2, LENGTH), (3, CAPACITY))
        if any(len(row) > at for row in rows)
    }
    if CAPACITY in numbers:
        numbers[CAPACITY] = np.where(np.isposinf(numbers[CAPACITY]), np.nan, numbers[CAPACITY])
    names = tuple(str(row[4]) if len(row) > 4 else "" for row in rows) * ways
    return Graph(
        (*there, *back), numbers, 0, names=names, places=places * ways, both_ways=not directed
    )


def _value(setting: Setting, value: Any, columns: LinkColumns, place: Place) -> Any:
    """The value of a setting of a set over links: nodes are those of the graph."""
    check, graph = setting.check, columns.graph
    nodes = {str(node): node for link in graph.links for node in link}

    def node(called: Any, what: str) -> Hashable:
        return find_node(nodes, called, what, columns.name, setting.name)

    if isinstance(check, Links):
        return graph.links
    if isinstance(check, Numbers) and isinstance(value, str):
        return graph.numbers[value]
    if isinstance(check, Node):
        return node(value, f"the {setting.key}")
    if isinstance(check, Commodities):
        rows = _rows(value, ("source", "target", "demand"), place)
        return [
            (
                node(row[0], f"the source of commodity {i}"),
                node(row[1], f"the target of commodity {i}"),
                *row[2:],
            )
            for i, row in enumerate(rows, start=1)
        ]
    if isinstance(check, Supplies):
        rows = _rows(value, ("node", "supply"), place)
        supplies = {node(row[0], "which has a supply"): row[1] for row in rows}
        if len(supplies) < len(rows):
            raise InvalidInput(f"{place.words()}a node has two supplies; give it their sum.")
        return supplies
    return value_of(setting, value, place)


def _rows(value: Any, columns: Sequence[str], place: Place) -> Sequence[Sequence[Any]]:
    """The rows of a CSV file with these columns, the last of them of numbers; or the rows
    themselves.
    """
    if not isinstance(value, str):
        return value  # type: ignore[no-any-return]
    path = Path(value)
    require_file(path, place)
    return [
        [*(record.text(name) for name in columns[:-1]), record.number(columns[-1])]
        for record in read_records(path, columns, format=place.format)
    ]
