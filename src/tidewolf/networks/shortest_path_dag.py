"""Links that lead from a source to a target without going back.

    away  = { (u, v) : (dist(s, v), -dist(v, t)) > (dist(s, u), -dist(u, t)) in the order of words }
        farther from the source, or as far and nearer to the target: no cycle is left
    outward = those of them that lie on a way from the source to the target

With lengths that tell all distances apart these are the links whose head is farther than their
tail (`sets.graph_tools.away`); where many are equal, as without lengths, more stay.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

from tidewolf.core.arguments import shown
from tidewolf.core.errors import UnreachableTarget
from tidewolf.core.types import Floats, Link
from tidewolf.sets import graph_tools


def leading_away(
    links: Sequence[Link], lengths: Floats, source: Hashable, target: Hashable
) -> list[int]:
    """The links that lead away, by their places."""
    there, _ = graph_tools.shortest(links, lengths, source)
    back, _ = graph_tools.shortest([(head, tail) for tail, head in links], lengths, target)

    def place(node: Hashable) -> tuple[float, float]:
        return there.get(node, math.inf), -back.get(node, math.inf)

    return [
        i for i, (tail, head) in enumerate(links) if tail in there and place(head) > place(tail)
    ]


def shortest_path_dag(
    links: Sequence[Link], lengths: Floats, source: Hashable, target: Hashable
) -> list[int]:
    """Those that lie on a way from the source to the target, too."""
    away = leading_away(links, lengths, source, target)
    some = [links[i] for i in away]
    nodes = {node for link in some for node in link}
    kept = (
        graph_tools.useful(some, source=source, target=target) if {source, target} <= nodes else []
    )
    if not kept:
        raise UnreachableTarget(
            f"No way leads from {shown(source)} to {shown(target)}. Leave it out, or add links; "
            "each leads one way.",
            setting="target",
        )
    return [away[i] for i in kept]
