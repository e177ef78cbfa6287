"""Graphs of networkx, and edge lists in frames of pandas and polars, as edges with what is known of
them.

An edge list has a column of tails and one of heads, called so (or source and target, from and to, u
and v, in any case of letters), and is directed. Parallel edges are edges of their own. Of neither
library is anything imported here (frames.py).
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

from tidewolf.core.arguments import shown
from tidewolf.core.errors import InvalidInput, WrongType
from tidewolf.core.frames import is_frame
from tidewolf.core.types import Link

ENDS = (("tail", "head"), ("source", "target"), ("from", "to"), ("u", "v"))
"""What the columns of an edge list's ends are called."""


class Edge(NamedTuple):
    """An edge, and what is known of it."""

    tail: Hashable
    head: Hashable
    known: dict[str, Any]
    """by name, as the graph or the table has it; without what is missing"""

    def get(self, *names: str) -> Any:
        """What is known under the first of these names, in any case of letters; else None."""
        lower = {str(name).lower(): value for name, value in self.known.items()}
        return next((lower[name] for name in names if name in lower), None)


class Edges(NamedTuple):
    """The edges of a graph."""

    edges: list[Edge]
    directed: bool
    columns: tuple[str, ...] | None
    """of an edge list; None of a graph"""

    def links(self, *, both_ways: bool = True) -> list[Link]:
        """(tail, head) of each; one that is not directed is followed by its way back, unless
        `both_ways` is False.
        """
        found: list[Link] = []
        for tail, head, _ in self.edges:
            found.append((tail, head))
            if both_ways and not self.directed:
                found.append((head, tail))
        return found


def is_graph(x: object) -> bool:
    """Whether it is a graph as networkx has them."""
    return hasattr(x, "is_directed") and hasattr(x, "edges") and hasattr(x, "nodes")


def edges_of(x: Any, what: str) -> Edges | None:
    """The edges of a graph of networkx, or of an edge list in a frame; None where it is neither."""
    if is_frame(x):
        return _of_frame(x, what)
    if not is_graph(x):
        return None
    try:
        found = [Edge(u, v, _present(said)) for u, v, said in x.edges(data=True)]
        return Edges(found, bool(x.is_directed()), None)
    except (TypeError, ValueError, AttributeError):
        raise WrongType(
            f"{what} must be a graph of networkx, an edge list, or pairs (tail, head), not "
            f"{shown(x)}."
        ) from None


def _of_frame(frame: Any, what: str) -> Edges:
    if not hasattr(frame, "to_dict"):
        raise WrongType(f"{what}: a LazyFrame has no rows yet; give frame.collect().")
    names = tuple(map(str, frame.columns))
    lower = [name.lower() for name in names]
    ends = next((pair for pair in ENDS if pair[0] in lower and pair[1] in lower), None)
    if ends is None:
        ways = ", or ".join(f"{tail} and {head}" for tail, head in ENDS[1:])
        raise InvalidInput(
            f"{what} has the columns {', '.join(names)}; an edge list needs tail and head, or "
            f"{ways}."
        )
    if len(set(lower)) < len(lower):
        twice = next(name for i, name in enumerate(names) if lower[i] in lower[:i])
        raise InvalidInput(
            f"{what}: two columns are called {twice!r}; give each a name of its own."
        )
    columns = {name: _items(frame, i) for i, name in enumerate(names)}
    i, j = lower.index(ends[0]), lower.index(ends[1])
    found = []
    for row in range(len(frame)):
        known = _present({name: column[row] for name, column in columns.items()})
        for end in (names[i], names[j]):
            if end not in known:
                raise InvalidInput(
                    f"{what}: the column {end!r} is empty in row {row + 1}; a link has two ends."
                )
        found.append(Edge(known[names[i]], known[names[j]], known))
    return Edges(found, True, names)


def _items(frame: Any, i: int) -> list[Any]:
    column = frame.iloc[:, i] if hasattr(frame, "iloc") else frame[frame.columns[i]]
    items: list[Any] = column.to_list()
    return items


def _present(known: dict[Any, Any]) -> dict[str, Any]:
    """Without what is missing: None, NaN, and what pandas has for it."""
    return {str(name): value for name, value in known.items() if not _is_missing(value)}


def _is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float) and value != value
