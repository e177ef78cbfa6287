"""Edges of graphs of networkx, and of edge lists in frames and files, with what is known of them.

An edge list has a column of tails and one of heads, called so (or source and target, from and to, u
and v, in any case of letters), and is directed. Parallel edges are edges of their own. Nothing is
imported from pandas, polars or networkx here (frames.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, NamedTuple

from tidewolf.core.errors import InvalidInput, WrongType
from tidewolf.core.frames import is_frame
from tidewolf.core.types import Link

# What the columns of an edge list's ends are called.
ENDS = (("tail", "head"), ("source", "target"), ("from", "to"), ("u", "v"))

PLACES = (("longitude", "latitude"), ("lon", "lat"), ("x", "y"))


class Edge(NamedTuple):
    tail: Hashable
    head: Hashable
    # by name, as the graph or the table has it; without what is missing
    known: dict[str, Any]
    # where it stands in the graph, for messages
    place: str = ""

    def get(self, *names: str) -> Any:
        lower = {str(name).lower(): value for name, value in self.known.items()}
        return next((lower[name.lower()] for name in names if name.lower() in lower), None)


class Edges(NamedTuple):
    edges: list[Edge]
    directed: bool
    # of an edge list; None of a graph
    columns: tuple[str, ...] | None
    # the longitude and latitude of nodes by name, or their x and y, where all have them
    places: dict[str, tuple[float, float]] = {}  # noqa: RUF012

    def links(self, *, both_ways: bool = True) -> list[Link]:
        """(tail, head) of each; one that is not directed is followed by its way back, unless
        `both_ways` is False.
        """
        back = both_ways and not self.directed
        return [
            link
            for tail, head, *_ in self.edges
            for link in ((tail, head), (head, tail))[: 1 + back]
        ]


def is_graph(x: object) -> bool:
    return hasattr(x, "is_directed") and hasattr(x, "edges") and hasattr(x, "nodes")


def edges_of(x: Any, what: str) -> Edges | None:
    if is_frame(x):
        if not hasattr(x, "to_dict"):
            raise WrongType(f"{what}: a LazyFrame has no rows yet; give frame.collect().")
        polars = not hasattr(x, "iloc")
        columns = [(x[n] if polars else x.iloc[:, i]).to_list() for i, n in enumerate(x.columns)]
        return edge_list([str(name) for name in x.columns], columns, what)
    if not is_graph(x):
        return None
    found = [
        Edge(u, v, _present(known), f"{what}, link {u} - {v}") for u, v, known in x.edges(data=True)
    ]
    return Edges(found, bool(x.is_directed()), None, _places(x.nodes(data=True)))


def _places(nodes: Iterable[tuple[Hashable, dict[Any, Any]]]) -> dict[str, tuple[float, float]]:
    """Where each node is; nothing if one does not tell."""
    found = {}
    for node, known in nodes:
        lower = {str(name).lower(): value for name, value in known.items()}
        pair = next((pair for pair in PLACES if {*pair} <= lower.keys()), None)
        try:
            x, y = (float(lower[name]) for name in pair or ())
        except (TypeError, ValueError):
            return {}
        found[str(node)] = (x, y)
    return found if all(map(math.isfinite, sum(found.values(), ()))) else {}


def edge_list(
    names: Sequence[str],
    columns: Iterable[Iterable[Any]],
    what: str,
    place: Callable[[int], str] | None = None,
) -> Edges:
    """The edges of a table with these columns; `place` says where a row stands."""
    lower = [name.lower() for name in names]
    ends = next((pair for pair in ENDS if {*pair} <= {*lower}), None)
    if ends is None or len({*lower}) < len(lower):
        ways = ", or ".join(f"{tail} and {head}" for tail, head in ENDS)
        raise InvalidInput(
            f"{what}: expected the columns {ways}, and no name twice; received {', '.join(names)}."
        )
    i, j = map(lower.index, ends)
    found = []
    for row, cells in enumerate(zip(*columns, strict=True)):
        known = _present(dict(zip(names, cells, strict=True)))
        where = place(row) if place else f"{what}, row {row + 1}"
        for end in (names[i], names[j]):
            if known.get(end, "") == "":
                raise InvalidInput(f'{where}, column "{end}" is empty; a link has two ends.')
        found.append(Edge(known[names[i]], known[names[j]], known, where))
    return Edges(found, True, tuple(names))


def _present(known: dict[Any, Any]) -> dict[str, Any]:
    return {
        str(name): value
        for name, value in known.items()
        if not (value is None or type(value).__name__ in ("NAType", "NaTType"))
        and not (isinstance(value, float) and value != value)
    }
