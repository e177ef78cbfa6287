"""Links that lead from a source to a target without going back, and the k shortest paths.

    away  = { (u, v) : (dist(s, v), -dist(v, t)) > (dist(s, u), -dist(u, t)) in the order of words }
        farther from the source, or as far and nearer to the target: no cycle is left
    shortest-path DAG = those of them that lie on a way from the source to the target

With lengths that tell all distances apart these are the links whose head is farther than their
tail (`sets.graph_tools.away`); if many are equal, as without lengths, more stay.

The k shortest paths without loops between two nodes (Yen 1971) are found by SciPy.

Of equally long paths the one with fewer links comes first, then the one whose links come first in
the list. If paths with equally many links tie for the last place, SciPy chooses among them.

SciPy takes one link per pair of nodes, so each further parallel link passes a node of its own. Each
link is 2^-32 of the shortest one longer than it is, so that fewer links decide between ties.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from tidewolf.core.arguments import shown
from tidewolf.core.errors import UnreachableTarget
from tidewolf.core.types import Floats, Link
from tidewolf.sets import graph_tools

Way: TypeAlias = tuple[int, ...]
"""A path: the places of its links, in order."""


class PathFinder:
    """The links of a network with numbered nodes, as a matrix of lengths."""

    def __init__(
        self, nodes: int, tails: Sequence[int], heads: Sequence[int], lengths: Sequence[float]
    ) -> None:
        from scipy.sparse import csr_array

        self._lengths, self._links = lengths, dict[tuple[int, int], int]()
        entries = list[tuple[int, int, float]]()
        longer = 2.0**-32 * min(lengths, default=0.0)
        for link, (tail, head, length) in enumerate(zip(tails, heads, lengths, strict=True)):
            if (tail, head) in self._links:
                entries.append((tail, nodes, 0.0))
                tail, nodes = nodes, nodes + 1
            self._links[tail, head] = link
            entries.append((tail, head, length + longer))
        rows, columns, values = np.array(entries).T
        places = rows.astype(np.int32), columns.astype(np.int32)
        self._graph = csr_array((values, places), shape=(nodes, nodes))

    def shortest_paths(self, source: int, target: int, k: int) -> list[Way]:
        """Up to k paths, shortest first; none if the source does not reach the target."""
        from scipy.sparse.csgraph import yen

        _, before = yen(self._graph, source, target, k, return_predecessors=True)
        return sorted((self._way(row.tolist(), source, target) for row in before), key=self._rank)

    def _way(self, before: list[int], source: int, target: int) -> Way:
        nodes = [target]
        while nodes[-1] != source:
            nodes.append(before[nodes[-1]])
        steps = pairwise(reversed(nodes))
        return tuple(self._links[step] for step in steps if step in self._links)

    def _rank(self, path: Way) -> tuple[float, int, Way]:
        return math.fsum(self._lengths[link] for link in path), len(path), path


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
