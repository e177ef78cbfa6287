"""The k shortest paths without loops between two nodes (Yen 1971), by SciPy.

Of equally long paths the one with fewer links comes first, then the one whose links come first in
the list. If paths with equally many links tie for the last place, SciPy chooses among them.

SciPy takes one link per pair of nodes, so each further parallel link passes a node of its own. Each
link is 2^-32 of the shortest one longer than it is, so that fewer links decide between ties.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TypeAlias

import numpy as np

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
