"""Which column of a table belongs to which link: it is called as the link is in the graph's file
(a column name, link or id), or "tail > head".

If every link carries both ways, a column that is called one way serves the way back, too, unless
that has a column of its own. A table without names, its columns numbered from 0, has the links in
their order.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tidewolf.core.errors import InvalidInput, UnknownNode
from tidewolf.core.names import did_you_mean, match_names, plain_name
from tidewolf.core.types import Int64s
from tidewolf.files import Graph


def link_name(link: Sequence[Any]) -> str:
    """What a link without a name of its own is called."""
    return f"{link[0]} > {link[1]}"


def find_node(
    nodes: Mapping[str, Hashable], called: Any, what: str, graph: str, setting: str
) -> Hashable:
    """The node of a graph that has this name."""
    if str(called) not in nodes:
        raise UnknownNode(
            f"no link of {graph} touches the node {called!r}, {what}."
            f"{did_you_mean(str(called), nodes)}",
            setting=setting,
        )
    return nodes[str(called)]


class LinkColumns(NamedTuple):
    """The links of a graph, as tables call them."""

    graph: Graph
    name: str
    """the graph, as messages call it"""

    @property
    def labels(self) -> tuple[str, ...]:
        """What each link is called: a link that leads both ways by its ends."""
        names = [""] * len(self.graph.links) if self.graph.both_ways else self.graph.names
        return tuple(
            name or link_name(link) for name, link in zip(names, self.graph.links, strict=True)
        )

    def names_any(self, columns: Sequence[str]) -> bool:
        """Whether a column is called as a link is."""
        calls = {plain_name(call) for calls in self._spellings() for call in calls}
        return not calls.isdisjoint(map(plain_name, columns))

    def places(
        self, columns: Sequence[str], source: object, needed: Collection[int] | None = None
    ) -> Int64s:
        """The place of each link's column, -1 if it has none and is not among those `needed`."""
        self._require_distinct()
        links, names = self.graph.links, self.graph.names
        if tuple(columns) == tuple(map(str, range(len(links)))) and not set(columns) & set(names):
            return np.arange(len(links))
        given = [None if self._is_loop(column) else column for column in columns]
        return match_names(given, self._spellings(), f"{source}, for {self.name}", "link", needed)

    def _spellings(self) -> list[list[str]]:
        """What a column of each link may be called."""
        spellings = []
        for name, link in zip(self.graph.names, self.graph.links, strict=True):
            back = [link_name(link[::-1])] if self.graph.both_ways else []
            spellings.append([*([name] if name else []), link_name(link), *back])
        return spellings

    def _is_loop(self, column: str) -> bool:
        """Whether a column is that of a link from a node to itself, which carries nothing."""
        tail, _, head = plain_name(column).partition(">")
        return bool(self.graph.loops) and tail == head != ""

    def _require_distinct(self) -> None:
        graph, found = self.graph, dict[str, int]()
        for i, (name, link) in enumerate(zip(graph.names, graph.links, strict=True)):
            if name and graph.both_ways and i >= len(graph.links) // 2:
                continue  # the way back has the name of the way there
            first = found.setdefault(name or link_name(link), i)
            if first != i:
                raise InvalidInput(
                    f"{graph.places[i]}: {name or link_name(link)!r} is the link of "
                    f"{graph.places[first]} too; give links names of their own in a column name."
                )
