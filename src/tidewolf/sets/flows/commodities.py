"""What must go from where to where, and on which links of a network.

A commodity may use the links it names, or all of them; with lengths on links, of these only the
ones that lead away from its source. What it then uses are those on a way to its target.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tidewolf.core.arguments import as_items, shown
from tidewolf.core.arrays import as_number
from tidewolf.core.errors import CyclicGraph, InvalidInput, WrongType
from tidewolf.core.types import Int32s, Lengths, Link
from tidewolf.sets.graph_tools import as_lengths, leading_away
from tidewolf.sets.graphs.dag import ordered


class Commodity(NamedTuple):
    """What must go from a source to a target."""

    source: Hashable
    target: Hashable
    demand: float = 1.0
    links: Sequence[int] | None = None
    """the links it may use, by their place in the network; None is all of them"""


def as_commodities(commodities: object, links: int) -> list[Commodity]:
    """Commodities, or tuples that say what one does, checked, for a network of so many links."""
    try:
        listed = as_items(commodities, "The commodities", "[(source, target, demand)]")
    except WrongType:
        raise WrongType(
            "The commodities must be an iterable of (source, target, demand), not "
            f"{shown(commodities)}."
        ) from None
    if not listed:
        raise InvalidInput("A MultiFlow needs at least one commodity (source, target, demand).")
    return [_checked(i, commodity, links) for i, commodity in enumerate(listed)]


def links_used(
    commodities: Sequence[Commodity],
    tails: Int32s,
    heads: Int32s,
    nodes: Sequence[Hashable],
    lengths: Lengths | None,
) -> list[Int32s]:
    """For each commodity the links on a way from its source to its target, among those it may use;
    they must be free of cycles.
    """
    lengths = None if lengths is None else as_lengths(lengths, len(tails))
    pairs = [(nodes[tail], nodes[head]) for tail, head in zip(tails, heads, strict=True)]
    used, outward = list[Int32s](), dict[Hashable, Sequence[int]]()
    for i, commodity in enumerate(commodities):
        try:
            allowed = np.array(_allowed(pairs, commodity, lengths, outward), dtype=np.int32)
            dag = ordered(tails[allowed], heads[allowed], nodes, commodity.source, commodity.target)
        except CyclicGraph as error:
            hint = (
                "Or give `lengths`: each commodity then uses what leads away from its own source."
            )
            raise CyclicGraph(f"{_named(i, commodity)}: {error} {hint}", error.cycle) from None
        except InvalidInput as error:
            raise type(error)(f"{_named(i, commodity)}: {error}") from None
        used.append(np.sort(allowed[dag.arcs]))
    return used


def _checked(i: int, commodity: Any, links: int) -> Commodity:
    try:
        asked = Commodity(*(commodity if not isinstance(commodity, str) else ()))
        hash(asked[:2])
    except TypeError:
        what = "a commodity is (source, target, demand), and perhaps the links it may use"
        raise WrongType(f"Commodity {i} is {commodity!r}; {what}.") from None
    demand = as_number(asked.demand, f"{_named(i, asked)}: its demand", least=0.0)
    if asked.links is None:
        return asked._replace(demand=demand)
    try:
        chosen = as_items(asked.links, "The links of a commodity", "[0, 2]")
    except WrongType:
        chosen = (None,)
    if not all(isinstance(e, int | np.integer) and 0 <= e < links for e in chosen):
        raise InvalidInput(
            f"{_named(i, asked)} may use links by their places 0 to {links - 1}; it was given "
            f"{shown(asked.links)}."
        )
    return asked._replace(demand=demand, links=sorted(set(chosen)))


def _allowed(
    pairs: Sequence[Link],
    commodity: Commodity,
    lengths: Lengths | None,
    outward: dict[Hashable, Sequence[int]],
) -> Sequence[int]:
    """The links a commodity may use; what leads away from a source is worked out once for all that
    start there.
    """
    source, links = commodity.source, commodity.links
    if lengths is None:
        return range(len(pairs)) if links is None else links
    if links is not None:
        return [
            links[i]
            for i in leading_away(
                [pairs[e] for e in links], source=source, lengths=[lengths[e] for e in links]
            )
        ]
    if source not in outward:
        outward[source] = leading_away(pairs, source=source, lengths=lengths)
    return outward[source]


def _named(i: int, commodity: Commodity) -> str:
    return f"Commodity {i} ({commodity.source!r} to {commodity.target!r})"
