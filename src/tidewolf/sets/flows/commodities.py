"""What must go from where to where, and on which links of a network.

A commodity may use the links it names, or all of them; with lengths on links, of these only the
ones that lead away from its source. What it then uses are those on a way to its target.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from tidewolf.core.arguments import as_items, shown
from tidewolf.core.errors import CyclicGraph, InvalidInput, WrongType
from tidewolf.core.types import Int32s, Lengths, Link
from tidewolf.sets.graph_tools import leading_away, lengths_of
from tidewolf.sets.graphs.dag import build_dag
from tidewolf.sets.graphs.settings import Commodity


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
    pairs = [(nodes[tail], nodes[head]) for tail, head in zip(tails, heads, strict=True)]
    lengths = None if lengths is None else lengths_of(pairs, lengths)
    used, shortest_path_dag = list[Int32s](), dict[Hashable, Sequence[int]]()
    for i, asked in enumerate(commodities):
        commodity = _require_links(i, asked, len(tails))
        try:
            allowed = np.array(
                _allowed(pairs, commodity, lengths, shortest_path_dag), dtype=np.int32
            )
            dag = build_dag(
                tails[allowed], heads[allowed], nodes, commodity.source, commodity.target
            )
        except CyclicGraph as error:
            hint = (
                "Or give `lengths`: each commodity then uses what leads away from its own source."
            )
            raise CyclicGraph(
                f"{commodity.called(i)}: {error} {hint}", error.cycle, setting="commodities"
            ) from None
        except InvalidInput as error:
            raise type(error)(f"{commodity.called(i)}: {error}", setting="commodities") from None
        used.append(np.sort(allowed[dag.arcs]))
    return used


def _require_links(i: int, commodity: Commodity, count: int) -> Commodity:
    """The commodity with the links that it names in order, once each; they must be there."""
    if commodity.links is None:
        return commodity
    try:
        chosen = as_items(commodity.links, "The links of a commodity", "[0, 2]")
    except WrongType:
        chosen = (None,)
    if not all(isinstance(e, int | np.integer) and 0 <= e < count for e in chosen):
        raise InvalidInput(
            f"{commodity.called(i)} may use links by their places 0 to {count - 1}; it was given "
            f"{shown(commodity.links)}.",
            setting="commodities",
        )
    return commodity._replace(links=sorted(set(chosen)))


def _allowed(
    pairs: Sequence[Link],
    commodity: Commodity,
    lengths: Lengths | None,
    shortest_path_dag: dict[Hashable, Sequence[int]],
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
    if source not in shortest_path_dag:
        shortest_path_dag[source] = leading_away(pairs, source=source, lengths=lengths)
    return shortest_path_dag[source]
