"""Sets whose points are made of links: the graph they are made of, and the names of their entries.

A column of a table is called as its link is in the graph's file (a column name, link or id), or
"tail > head". A graph with cycles keeps the links that lead away from the source by `lengths` (each
1 long unless told), no other, where the set is one flow from a source to a target.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tidewolf.core.errors import CyclicGraph, InvalidInput, TidewolfError, UnknownNode
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
from tidewolf.experiments.toml import hint
from tidewolf.experiments.toml_tables import Place, with_location
from tidewolf.files import read_records
from tidewolf.problems import Graph, Table, read_graph
from tidewolf.sets import ConvexSet
from tidewolf.sets.graphs.settings import Commodities, Links, Node, Supplies


class LinkSet(NamedTuple):
    """A set over the links kept of a graph."""

    K: ConvexSet
    graph: Graph
    kept: Sequence[int]
    name: str
    """the graph, as sentences call it"""
    about: str
    """what a point is"""
    demand: float

    @property
    def labels(self) -> tuple[str, ...]:
        names = [""] * len(self.graph.links) if self.graph.both_ways else self.graph.names
        return tuple(names[i] or link_name(self.graph.links[i]) for i in self.kept)

    @property
    def title(self) -> str:
        links = len(self.graph.links)
        which = (
            f"all {links} links"
            if len(self.kept) == links
            else f"the {len(self.kept)} of {links} links that lead away and on,"
        )
        return f"{self.about} over {which} of {Path(self.name).name}."

    @property
    def by_link(self) -> bool:
        """Whether the entries of a point are the links."""
        return self.K.shape == (len(self.kept),)

    def names_any(self, table: Table) -> bool:
        """Whether a table has a column that is called as a link is."""
        return bool({_plain(name) for name in table.columns} & self._known())

    def columns(self, table: Table, path: Path) -> list[int]:
        """The place of each link's column."""
        links, names = self.graph.links, self.graph.names
        _require_told_apart(self.graph)
        if table.columns == tuple(map(str, range(len(links)))) and not set(table.columns) & set(
            names
        ):
            return list(self.kept)
        places = {_plain(name): i for i, name in enumerate(table.columns)}
        known = self._known()
        for plain, i in places.items():
            if plain not in known:
                raise InvalidInput(f"{path}, line 1: {self._unknown(table.columns[i])}")
        found = []
        for i in self.kept:
            back = [_plain(link_name(links[i][::-1]))] if self.graph.both_ways else []
            own = [places[call] for call in (*self._calls(i), *back) if call in places]
            if not own:
                called = names[i] or link_name(links[i])
                raise InvalidInput(
                    f"{path}, line 1: there is no column {called!r} for the link of "
                    f"{self.graph.places[i]}."
                )
            found.append(own[0])
        return found

    def _known(self) -> set[str]:
        return {call for i in range(len(self.graph.links)) for call in self._calls(i)}

    def _calls(self, i: int) -> list[str]:
        """What a column of a link may be called."""
        calls = (self.graph.names[i], link_name(self.graph.links[i]))
        return [_plain(call) for call in calls if call]

    def _unknown(self, column: str) -> str:
        nodes = {str(node) for link in self.graph.links for node in link}
        ends = [end.strip() for end in _ARROW.split(column)]
        known = [
            name or link_name(link)
            for name, link in zip(self.graph.names, self.graph.links, strict=True)
        ]
        if len(ends) == 2:
            for end in ends:
                if end not in nodes:
                    return (
                        f"the column {column!r} names the node {end!r}, which no link of "
                        f"{self.name} touches.{hint(end, nodes)}"
                    )
        return (
            f"the column {column!r} is no link of {self.name}, whose links are called as "
            f"{known[0]!r} is.{hint(column, known)}"
        )


_ARROW = re.compile(r"\s*(?:->|>|\u2192)\s*")


def link_name(link: Sequence[Any]) -> str:
    """What a link without a name of its own is called."""
    return f"{link[0]} > {link[1]}"


def build_on_links(choice: Choice, place: Place) -> LinkSet:
    """The set that a file describes by a graph."""
    kind, given = kind_named(choice.name), choice.given
    known, make = kind_keys(kind), constructor_of(kind)
    graph, name = _graph(given, known, place)
    one_flow = {"source", "target"} <= given.keys()
    nodes = {str(node): node for link in graph.links for node in link}
    values = {
        known[key].name: _value(known[key], value, graph, _Nodes(nodes, name), place.within(key))
        for key, value in given.items()
        if key in keys_of(make)
    }
    links_name = known["graph"].name
    kept: Sequence[int] = range(len(graph.links))
    try:
        try:
            K = make(**values)
        except CyclicGraph:
            if not one_flow:
                raise
            kept = graph.dag(values["source"], values["target"], given.get("lengths"))
            K = make(**{**values, links_name: [graph.links[i] for i in kept]})
    except TidewolfError as error:
        raise with_location(error, place, known) from None
    about = (
        f"One flow from {given['source']} to {given['target']}"
        if one_flow
        else f"A point of a {choice.name}"
    )
    return LinkSet(K, graph, kept, name, about, given.get("demand", 1.0))


def _graph(given: Mapping[str, Any], known: Keys, place: Place) -> tuple[Graph, str]:
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
        return read_graph(path, numbers=list(columns.values()), directed=directed), str(path)
    for key in columns:
        raise InvalidInput(
            f"{place.within(key).words()}{key} is a column of a graph's file, and this graph is a "
            "list of links."
        )
    return _listed(told, given.get("directed", True), place.within("graph")), "the graph"


def _listed(links: Sequence[Any], directed: bool, place: Place) -> Graph:
    """The graph of a list of links, each in both directions where it is not directed."""
    places = tuple(place.within(i).words().removesuffix(": ") for i in range(len(links)))
    back = () if directed else tuple((head, tail) for tail, head in links)
    names = ("",) * (len(links) + len(back))
    ways = 1 if directed else 2
    return Graph((*links, *back), {}, 0, names=names, places=places * ways, both_ways=not directed)


class _Nodes(NamedTuple):
    """The nodes of a graph by their names, and what sentences call the graph."""

    by_name: Mapping[str, Hashable]
    graph: str

    def find(self, name: Any, what: str, place: Place) -> Hashable:
        if str(name) not in self.by_name:
            raise UnknownNode(
                f"{place.words()}no link of {self.graph} touches the node {name!r}, "
                f"{what}.{hint(str(name), self.by_name)}"
            )
        return self.by_name[str(name)]


def _value(setting: Setting, value: Any, graph: Graph, nodes: _Nodes, place: Place) -> Any:
    """The value of a setting of a set over links: nodes are those of the graph."""
    check = setting.check
    if isinstance(check, Links):
        return graph.links
    if isinstance(check, Numbers) and isinstance(value, str):
        return graph.numbers[value]
    if isinstance(check, Node):
        return nodes.find(value, f"the {setting.key}", place)
    if isinstance(check, Commodities):
        rows = _rows(value, ("source", "target", "demand"), place)
        return [
            (
                nodes.find(row[0], f"the source of commodity {i}", place),
                nodes.find(row[1], f"the target of commodity {i}", place),
                *row[2:],
            )
            for i, row in enumerate(rows, start=1)
        ]
    if isinstance(check, Supplies):
        rows = _rows(value, ("node", "supply"), place)
        supplies = {nodes.find(row[0], "which has a supply", place): row[1] for row in rows}
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
        for record in read_records(path, columns)
    ]


def _plain(name: str) -> str:
    return _ARROW.sub(">", name.strip())


def _require_told_apart(graph: Graph) -> None:
    seen: dict[str, int] = {}
    for i, (name, link) in enumerate(zip(graph.names, graph.links, strict=True)):
        called = name or link_name(link)
        way_back = graph.both_ways and i >= len(graph.links) // 2
        if called in seen and not (name and way_back):
            twin = f"{graph.places[i]}: {called!r} is the link of {graph.places[seen[called]]} too"
            raise InvalidInput(f"{twin}; give links names of their own in a column called name.")
        seen.setdefault(called, i)
