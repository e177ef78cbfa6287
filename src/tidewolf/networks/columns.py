"""Which column of a table belongs to which link: it is called as the link is in the graph's file
(a column name, link or id), or "tail > head".

Where every link carries both ways, a column that is called one way serves the way back, too, unless
that has a column of its own. A table without names, its columns numbered from 0, has the links in
their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from tidewolf.core.errors import InvalidInput
from tidewolf.core.names import ARROW, did_you_mean, plain_name
from tidewolf.files import Graph, Table


def link_name(link: Sequence[Any]) -> str:
    """What a link without a name of its own is called."""
    return f"{link[0]} > {link[1]}"


def header(source: object) -> str:
    """Where the names of the columns of a table stand: in the first line of a file."""
    return str(source) if isinstance(source, InMemory) else f"{source}, line 1"


class InMemory(str):
    """What sentences call a table that is in no file."""

    __slots__ = ()


class LinkColumns(NamedTuple):
    """The links of a graph, as tables call them."""

    graph: Graph
    name: str
    """the graph, as sentences call it"""

    @property
    def labels(self) -> tuple[str, ...]:
        """What each link is called: a link that leads both ways by its ends."""
        names = [""] * len(self.graph.links) if self.graph.both_ways else self.graph.names
        return tuple(
            name or link_name(link) for name, link in zip(names, self.graph.links, strict=True)
        )

    def names_any(self, table: Table) -> bool:
        """Whether a table has a column that is called as a link is."""
        return bool({plain_name(name) for name in table.columns} & self._column_names())

    def places(self, table: Table, source: object) -> list[int | None]:
        """The place of each link's column, None where it has none; `source` is what sentences call
        the table. A column that is no link's is refused.
        """
        links, names = self.graph.links, self.graph.names
        self._require_distinct()
        if table.columns == tuple(map(str, range(len(links)))) and not set(table.columns) & set(
            names
        ):
            return list(range(len(links)))
        places = {plain_name(name): i for i, name in enumerate(table.columns)}
        known = self._column_names()
        for plain, i in places.items():
            if plain not in known and not self._is_loop(plain):
                raise InvalidInput(f"{header(source)}: {self._unknown(table.columns[i])}")
        found: list[int | None] = []
        for i in range(len(links)):
            back = [plain_name(link_name(links[i][::-1]))] if self.graph.both_ways else []
            own = [places[call] for call in (*self._calls(i), *back) if call in places]
            found.append(own[0] if own else None)
        return found

    def columns(self, table: Table, source: object, needed: Iterable[int]) -> list[int]:
        """The places of the columns of these links, each of which needs one."""
        places, found = self.places(table, source), []
        for i in needed:
            place = places[i]
            if place is None:
                called = self.graph.names[i] or link_name(self.graph.links[i])
                raise InvalidInput(
                    f"{header(source)}: there is no column {called!r} for the link of "
                    f"{self.graph.places[i]}."
                )
            found.append(place)
        return found

    def _column_names(self) -> set[str]:
        return {call for i in range(len(self.graph.links)) for call in self._calls(i)}

    def _calls(self, i: int) -> list[str]:
        """What a column of a link may be called."""
        calls = (self.graph.names[i], link_name(self.graph.links[i]))
        return [plain_name(call) for call in calls if call]

    def _is_loop(self, plain: str) -> bool:
        """Whether a column is that of a link from a node to itself, which carries nothing."""
        tail, _, head = plain.partition(">")
        return bool(self.graph.loops) and tail == head != ""

    def _unknown(self, column: str) -> str:
        nodes = {str(node) for link in self.graph.links for node in link}
        ends = [end.strip() for end in ARROW.split(column)]
        known = [
            name or link_name(link)
            for name, link in zip(self.graph.names, self.graph.links, strict=True)
        ]
        if len(ends) == 2:
            for end in ends:
                if end not in nodes:
                    return (
                        f"the column {column!r} names the node {end!r}, which no link of "
                        f"{self.name} touches.{did_you_mean(end, nodes)}"
                    )
        return (
            f"the column {column!r} is no link of {self.name}, whose links are called as "
            f"{known[0]!r} is.{did_you_mean(column, known)}"
        )

    def _require_distinct(self) -> None:
        graph, seen = self.graph, dict[str, int]()
        for i, (name, link) in enumerate(zip(graph.names, graph.links, strict=True)):
            called = name or link_name(link)
            way_back = graph.both_ways and i >= len(graph.links) // 2
            if called in seen and not (name and way_back):
                first = graph.places[seen[called]]
                raise InvalidInput(
                    f"{graph.places[i]}: {called!r} is the link of {first} too; give links names "
                    "of their own in a column called name."
                )
            seen.setdefault(called, i)
