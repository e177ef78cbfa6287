"""Settings that describe graphs: links, nodes, commodities, supplies, bounds.

A file names a graph's file or a table where Python code gives pairs or arrays; who reads the file
puts the one in place of the other (`read` keeps such a name as text) before a set is made.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from tidewolf.core.arguments import as_items, shown
from tidewolf.core.arrays import as_array, as_number, frozen, is_array, to_numpy
from tidewolf.core.edges import ENDS, edges_of
from tidewolf.core.errors import InvalidInput, NotFinite, WrongShape, WrongType
from tidewolf.core.frames import is_frame
from tidewolf.core.names import listed
from tidewolf.core.settings import Check, Number, Numbers
from tidewolf.core.types import Floats, Int32s, Lengths, Link
from tidewolf.sets.graphs.nodes import as_links


class Commodity(NamedTuple):
    """What must go from a source to a target.

    Parameters
    ----------
    source : hashable
        The node where it starts.
    target : hashable
        The node where it is wanted.
    demand : float, default 1.0
        How much must go.
    links : sequence of int, optional
        The links it may use, by their places in the network. None: all of them.

    Examples
    --------
    >>> network = [("s", "a"), ("a", "t"), ("s", "t")]
    >>> K = tw.sets.MultiFlow.from_edges(network, [tw.sets.Commodity("s", "t", 2.0)])
    >>> K.lmo(np.array([1.0, 1.0, 5.0]))
    array([2., 2., 0.])
    """

    source: Hashable
    target: Hashable
    demand: float = 1.0
    links: Sequence[int] | None = None

    def called(self, i: int) -> str:
        """How sentences speak of it: its place and its ends."""
        return f"Commodity {i} ({shown(self.source)} to {shown(self.target)})"


@dataclass(frozen=True)
class Links(Check):
    """The links of a graph: pairs (tail, head) of hashable names, a graph of networkx, or an edge
    list in a frame.
    """

    directed: bool = field(default=True, kw_only=True)
    """whether an edge of a graph that is not directed is a link each way"""

    words: ClassVar[str] = "the name of a graph's file, or a list of [tail, head] pairs"
    key: ClassVar[str] = "graph"

    def __call__(self, value: Any, what: str) -> list[Link]:
        return as_links(value, what, both_ways=self.directed)

    def read(self, value: Any) -> str | tuple[Link, ...] | None:
        if isinstance(value, str):
            return value or None
        listed = isinstance(value, list) and all(
            isinstance(link, list) and len(link) == 2 and all(map(_is_name, link)) for link in value
        )
        return tuple((tail, head) for tail, head in value) if listed else None


@dataclass(frozen=True)
class Node(Check):
    """A node of a graph: any hashable name."""

    words: ClassVar[str] = "the name of a node: text or a whole number"

    def __call__(self, value: Any, what: str) -> Hashable:
        return _as_name(value, what)

    def read(self, value: Any) -> str | int | None:
        return value if _is_name(value) else None


@dataclass(frozen=True)
class NodeNames(Check):
    """Names of nodes, each hashable."""

    words: ClassVar[str] = "a list of names: text or whole numbers"

    def __call__(self, value: Any, what: str) -> tuple[Hashable, ...]:
        return tuple(
            _as_name(name, f"Each of the {what}") for name in as_items(value, what, "['s', 't']")
        )

    def read(self, value: Any) -> tuple[str | int, ...] | None:
        return tuple(value) if isinstance(value, list) and all(map(_is_name, value)) else None


@dataclass(frozen=True)
class Commodities(Check):
    """What must go from where to where: triples (source, target, demand)."""

    words: ClassVar[str] = "the name of a table, or a list of [source, target, demand]"
    key: ClassVar[str] = "commodities"

    def __call__(self, value: Any, what: str) -> tuple[Commodity, ...]:
        if is_frame(value):
            value = commodities_of(value, what)
        if not isinstance(value, Iterable) or isinstance(value, str):
            raise WrongType(
                f"{what} must be an iterable of (source, target, demand), not {shown(value)}."
            )
        listed = as_items(value, what, "[(source, target, demand)]")
        if not listed:
            raise InvalidInput(f"{what} must be at least one (source, target, demand).")
        return tuple(_as_commodity(i, commodity) for i, commodity in enumerate(listed))

    def read(self, value: Any) -> str | tuple[tuple[Any, ...], ...] | None:
        if isinstance(value, str):
            return value or None
        listed = isinstance(value, list) and value and all(map(_is_commodity, value))
        return tuple(map(tuple, value)) if listed else None


def commodities_of(frame: Any, what: str) -> list[tuple[Any, ...]]:
    """(source, target, demand) of each row of a frame; without a column demand, or where it is
    empty, the demand is 1.
    """
    found = edges_of(frame, what)
    assert found is not None
    assert found.columns is not None
    others = [name for name in found.columns if name.lower() not in {"demand", *sum(ENDS, ())}]
    if "demand" not in map(str.lower, found.columns) and others:
        raise InvalidInput(
            f"{what}: how much each commodity sends is read from a column called demand, and there "
            f"are {listed(others)}; call it so, or leave others out, and each sends 1."
        )
    demands = [edge.get("demand") for edge in found.edges]
    return [
        (edge.tail, edge.head, 1.0 if demand is None else demand)
        for edge, demand in zip(found.edges, demands, strict=True)
    ]


@dataclass(frozen=True)
class Demands(Check):
    """How much of each commodity must go, at least 0 each."""

    words: ClassVar[str] = "a list of numbers"

    def __call__(self, value: Any, what: str) -> tuple[float, ...]:
        listed = as_items(value, what, "[1.0, 2.0]")
        return tuple(as_number(demand, f"Each of the {what}", least=0.0) for demand in listed)

    def read(self, value: Any) -> Any:
        return Numbers(axes=1).read(value)


@dataclass(frozen=True)
class Supplies(Check):
    """What nodes send, or draw where it is negative: {name: amount}."""

    words: ClassVar[str] = "the name of a table, or amounts by node such as { s = 1.0, t = -1.0 }"

    def __call__(self, value: Any, what: str) -> dict[Hashable, float]:
        try:
            amounts = dict(value)
        except (TypeError, ValueError):
            such = "{'s': 1.0, 't': -1.0}"
            raise WrongType(
                f"{what} must be a mapping such as {such}, not {shown(value)}."
            ) from None
        return {
            node: as_number(amount, f"The supply of {shown(node)}")
            for node, amount in amounts.items()
        }

    def read(self, value: Any) -> str | tuple[tuple[str | int, float], ...] | None:
        """A table's name, or pairs (node, amount); pairs let whole numbers be nodes."""
        if isinstance(value, str):
            return value or None
        pairs = list(map(list, value.items())) if isinstance(value, Mapping) else value
        if not isinstance(pairs, list) or not all(map(_is_supply, pairs)):
            return None
        return tuple((node, float(amount)) for node, amount in pairs)


@dataclass(frozen=True)
class ArcBounds(Numbers):
    """Bounds of what arcs carry: one number for all, or one for each."""

    words: ClassVar[str] = "a number, a list of numbers, or a column of the graph's file"

    def __call__(self, value: Any, what: str) -> Floats:
        try:
            bounds = to_numpy(as_array(value, what)).astype(np.float64)
        except NotFinite:
            raise NotFinite(
                f"{what} must be finite, so that the set is bounded; the total supply is room "
                "enough on a path."
            ) from None
        if bounds.ndim > 1:
            raise WrongShape(f"{what} must be one number, or one for each arc, not a table.")
        return bounds


@dataclass(frozen=True)
class LinkLengths(Numbers):
    """Positive lengths, one for each link."""

    words: ClassVar[str] = "the name of a column of the graph's file, or a list of numbers"

    def __call__(self, value: Any, what: str) -> Floats:
        lengths = to_numpy(as_array(value, what)).astype(np.float64)
        if lengths.ndim != 1:
            raise WrongShape(f"{what} must be a list, one for each link, not {shown(value)}.")
        if not (positive := lengths > 0).all():
            first = int(np.argmin(positive))
            raise InvalidInput(
                f"{what} must be positive; that of link {first} is {lengths[first]:g}."
            )
        return lengths


@dataclass(frozen=True)
class Indices(Check):
    """A vector of places in another array, counted from 0, kept as a read-only copy."""

    words: ClassVar[str] = "a list of whole numbers"

    def __call__(self, value: Any, what: str) -> Int32s:
        try:
            given = np.array(to_numpy(value) if is_array(value) else value)
        except (TypeError, ValueError):
            given = np.empty(0)
        if given.ndim != 1 or given.dtype.kind not in "iu" or (given.size and given.min() < 0):
            raise WrongType(f"{what} must be a vector of whole numbers from 0, not {shown(value)}.")
        if given.size and given.max() > np.iinfo(np.int32).max:
            raise WrongType(f"{what} must be a vector of places in an array, not {shown(value)}.")
        return frozen(given.astype(np.int32))

    def read(self, value: Any) -> tuple[int, ...] | None:
        whole = isinstance(value, list) and all(type(place) is int for place in value)
        return tuple(value) if whole else None


GraphLinks: TypeAlias = Annotated[
    Iterable[Link],
    Links(
        "The links of the graph, pairs (tail, head) of any hashable names; parallel links are "
        "separate. Or a networkx graph, whose undirected edges are a link each way, or a frame of "
        "pandas or polars with columns tail and head."
    ),
]
"""The links of a directed graph."""
NumberedNames: TypeAlias = Annotated[
    tuple[Hashable, ...], NodeNames("What the nodes are called, by their numbers.")
]
"""The names of nodes that other settings count."""
PositiveLengths: TypeAlias = Annotated[
    Lengths | None, LinkLengths("How long each link is, above 0. None: each is 1 long.")
]
"""Lengths of links that default to 1."""


def _as_name(value: Any, what: str) -> Hashable:
    try:
        hash(value)
    except TypeError:
        raise WrongType(
            f"{what} must be a name that can be hashed, such as text or a number, not "
            f"{shown(value)}."
        ) from None
    name: Hashable = value
    return name


def _as_commodity(i: int, commodity: Any) -> Commodity:
    try:
        asked = Commodity(*(commodity if not isinstance(commodity, str) else ()))
        hash(asked[:2])
    except TypeError:
        what = "a commodity is (source, target, demand), and perhaps the links it may use"
        raise WrongType(f"Commodity {i} is {shown(commodity)}; {what}.") from None
    demand = as_number(asked.demand, f"{asked.called(i)}: its demand", least=0.0)
    return asked._replace(demand=demand)


def _is_name(value: Any) -> bool:
    return type(value) in (str, int)


def _is_supply(pair: Any) -> bool:
    return (
        isinstance(pair, list)
        and len(pair) == 2
        and _is_name(pair[0])
        and Number().read(pair[1]) is not None
    )


def _is_commodity(item: Any) -> bool:
    return (
        isinstance(item, list)
        and len(item) in (2, 3)
        and all(map(_is_name, item[:2]))
        and all(Number().read(demand) is not None for demand in item[2:])
    )
