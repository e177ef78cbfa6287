"""The k shortest paths without loops between two nodes (Yen 1971, Lawler 1972).

The next path leaves one of those found before at some node, its spur: it has the same links up to
there, none of the links by which found paths with that beginning go on, and comes back to none of
the nodes of the beginning. Of a path that left another at its own spur only later spurs, and that
one again, are new: earlier ones were looked at with the other. The shortest way on from the spur is
found by best-first search under

    travelled + (distance to the target in the whole network),

which never overestimates, so that hardly more than the path itself is looked at. Of equally long
paths the one with fewer links comes first, then the one whose links come first in the list.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from typing import TypeAlias

Way: TypeAlias = tuple[int, ...]
"""A path: the places of its links, in order."""


class Roads:
    """The links of a network, nodes numbered, with what the search looks up."""

    def __init__(self, tails: Sequence[int], heads: Sequence[int], lengths: Sequence[float]):
        self.tails, self.heads, self.lengths = tails, heads, lengths
        self._leaving: dict[int, list[int]] = {}
        self._arriving: dict[int, list[int]] = {}
        for link, (tail, head) in enumerate(zip(tails, heads, strict=True)):
            self._leaving.setdefault(tail, []).append(link)
            self._arriving.setdefault(head, []).append(link)

    def distances_to(self, target: int) -> dict[int, float]:
        """The distance to the target from every node that reaches it."""
        distance, queue = dict[int, float](), [(0.0, target)]
        while queue:
            away, node = heappop(queue)
            if node in distance:
                continue
            distance[node] = away
            for link in self._arriving.get(node, ()):
                if self.tails[link] not in distance:
                    heappush(queue, (away + self.lengths[link], self.tails[link]))
        return distance

    def shortest_paths(
        self, source: int, target: int, k: int, left: Mapping[int, float]
    ) -> list[Way]:
        """Up to k paths, shortest first; `left` is `distances_to(target)`."""
        first = self._way(source, target, left, frozenset(), frozenset())
        found = list[Way]()
        waiting = [] if first is None else [(self._rank(first), 0)]
        while waiting and len(found) < k:
            (_, _, path), left_at = heappop(waiting)
            found.append(path)
            if len(found) == k:
                break
            for i in range(left_at, len(path)):
                start, spur = path[:i], self.tails[path[i]]
                passed = frozenset(self.tails[e] for e in start)
                taken = frozenset(p[i] for p in found if len(p) > i and p[:i] == start)
                rest = self._way(spur, target, left, passed, taken)
                if rest is not None:
                    heappush(waiting, (self._rank((*start, *rest)), i))
        return found

    def _rank(self, path: Way) -> tuple[float, int, Way]:
        return math.fsum(self.lengths[link] for link in path), len(path), path

    def _way(
        self,
        source: int,
        target: int,
        left: Mapping[int, float],
        passed: frozenset[int],
        taken: frozenset[int],
    ) -> Way | None:
        """The shortest path that comes to none of the nodes passed and begins with none of the
        links taken.
        """
        queue, done = [(left.get(source, math.inf), 0, Way(), 0.0, source)], set(passed)
        while queue:
            _, hops, path, travelled, node = heappop(queue)
            if node == target:
                return path
            if node in done:
                continue
            done.add(node)
            for link in self._leaving.get(node, ()):
                head = self.heads[link]
                if head not in done and head in left and not (node == source and link in taken):
                    farther = travelled + self.lengths[link]
                    heappush(queue, (farther + left[head], hops + 1, (*path, link), farther, head))
        return None
