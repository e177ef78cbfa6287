"""Nodes by name and by number: what users call them, and what arrays count."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tidewolf.core.arguments import shown
from tidewolf.core.edges import edges_of
from tidewolf.core.errors import InvalidInput, UnknownNode, WrongType
from tidewolf.core.names import all_different
from tidewolf.core.types import Int32s, Link


def as_links(links: object, what: str = "The edges", *, both_ways: bool = True) -> list[Link]:
    """Links as a list of pairs of names, also those of a graph of networkx or of an edge list in a
    frame; anything else is refused. An edge without a direction is a link each way, or, unless
    `both_ways`, one.
    """
    if (graph := edges_of(links, what)) is not None:
        links = graph.links(both_ways=both_ways)
    if isinstance(links, np.ndarray):
        links = links.tolist()
    if not isinstance(links, Iterable) or isinstance(links, str):
        raise WrongType(f"{what} must be an iterable of pairs (tail, head), not {shown(links)}.")
    pairs: list[Link] = []
    for i, link in enumerate(links):
        pair = _as_pair(link)
        if pair is None:
            raise WrongType(
                f"Edge {i} is {shown(link)}; an edge is a pair (tail, head) of hashable names."
            )
        pairs.append(pair)
    return pairs


def _as_pair(link: Any) -> Link | None:
    """The two ends of a link; None where it is no pair, as a word of two letters is none."""
    try:
        tail, head = link
        hash((tail, head))
    except (TypeError, ValueError):
        return None
    return None if isinstance(link, str) else (tail, head)


def number_nodes(links: Iterable[Link]) -> tuple[tuple[Hashable, ...], Int32s, Int32s]:
    """Node names in order of appearance, and the tail and head of every link as numbers."""
    numbers: dict[Hashable, int] = {}
    ends = [numbers.setdefault(node, len(numbers)) for link in links for node in link]
    pairs = np.array(ends, dtype=np.int32).reshape(-1, 2)
    return tuple(numbers), np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])


def numbers_of(nodes: Iterable[Hashable]) -> dict[Hashable, int]:
    """The number of each node by its name."""
    return {node: number for number, node in enumerate(nodes)}


def node_number(node: Hashable, numbers: Mapping[Hashable, int], what: str, setting: str) -> int:
    """The number of a node; what is no node of the graph is refused, `what` says what it was to
    be.
    """
    if node not in numbers:
        known = first_names(tuple(numbers))
        raise UnknownNode(
            f"{what} {shown(node)} is not a node of the graph, whose nodes are {known}.",
            setting=setting,
        )
    return numbers[node]


def require_places(places: Int32s, count: int, what: str, setting: str) -> None:
    """Refuse places that are not in an array of so many entries."""
    if len(places) and places.max() >= count:
        raise InvalidInput(
            f"{what} are whole numbers from 0 to {count - 1}, not {places.max()}; `from_edges` "
            "makes them.",
            setting=setting,
        )


def first_names(names: Sequence[Hashable]) -> str:
    """The first six names, and how many more there are."""
    listed = ", ".join(repr(name) for name in names[:6])
    return listed if len(names) <= 6 else f"{listed} and {len(names) - 6} more"


def link_names(tails: Int32s, heads: Int32s, nodes: Sequence[Hashable]) -> tuple[str, ...]:
    """What links are called, such as "SEA > DEN"; of parallel ones the second has (2) behind it."""
    ends = zip(tails.tolist(), heads.tolist(), strict=True)
    return all_different(f"{nodes[tail]} > {nodes[head]}" for tail, head in ends)
