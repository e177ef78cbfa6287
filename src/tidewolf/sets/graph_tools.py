"""From a network's links to a graph without cycles: distances, links that lead away from a source,
links worth keeping, paths.

    away    = { (u, v) : dist(v) > dist(u) },   dist from the source
        no cycle is left, every shortest path stays
    useful  = { (u, v) : source reaches u, v reaches the target }
        a flow on any other link goes round in circles or nowhere

Links are pairs (tail, head) of anything hashable, parallel ones are links of their own; what is
kept is told by its place in the list. A cable that carries both ways is two links.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from heapq import heappop, heappush

import numpy as np

from tidewolf.core.arrays import as_array, to_numpy
from tidewolf.core.errors import InvalidInput, UnknownNode, UnreachableTarget, WrongShape
from tidewolf.core.types import Lengths, Link
from tidewolf.sets.graphs.dag import number_nodes, ordered

__all__ = ["away", "count_paths", "leading_away", "shortest", "useful"]


def away(
    links: Iterable[Link], *, source: Hashable, target: Hashable, lengths: Lengths | None = None
) -> list[int]:
    """The links that lead away from the source and lie on a way to the target.

    Every link is 1 long unless told.
    """
    links = as_links(links)
    _require_nodes(links, source, target)
    outward = leading_away(links, source=source, lengths=lengths)
    return [outward[i] for i in _on_the_way([links[i] for i in outward], source, target, links)]


def leading_away(
    links: Iterable[Link], *, source: Hashable, lengths: Lengths | None = None
) -> list[int]:
    """The links whose head is strictly farther from the source than their tail.

    Every link is 1 long unless told.
    """
    links = as_links(links)
    _require_nodes(links, source)
    distance, _ = shortest(links, lengths, source)
    return [
        i
        for i, (tail, head) in enumerate(links)
        if tail in distance and distance[head] > distance[tail]
    ]


def useful(links: Iterable[Link], *, source: Hashable, target: Hashable) -> list[int]:
    """The links on some walk from the source to the target; there may be cycles."""
    links = as_links(links)
    _require_nodes(links, source, target)
    return _on_the_way(links, source, target, links)


def count_paths(links: Iterable[Link], *, source: Hashable, target: Hashable) -> int:
    """How many paths lead from the source to the target of a graph without cycles; exact, however
    many.
    """
    nodes, tails, heads = number_nodes(links)
    dag = ordered(tails, heads, nodes, source, target)
    counts = [1] + [0] * (len(dag.order) - 1)
    # sorted by head: a tail's count is complete
    for tail, head in zip(dag.tails.tolist(), dag.heads.tolist(), strict=True):
        counts[head] += counts[tail]
    return counts[-1]


def shortest(
    links: Iterable[Link], lengths: Lengths | None, source: Hashable
) -> tuple[dict[Hashable, float], dict[Hashable, int]]:
    """Dijkstra: the distance from the source to every node it reaches, and the last link on the way
    there.
    """
    links = as_links(links)
    lengths = as_lengths(lengths, len(links))
    _require_nodes(links, source)
    leaving: dict[Hashable, list[int]] = {}
    for i, (tail, _) in enumerate(links):
        leaving.setdefault(tail, []).append(i)
    distance, arrival = {source: 0.0}, dict[Hashable, int]()
    # the middle entry keeps nodes, which need not be comparable, out of the comparison
    queue = [(0.0, 0, source)]
    while queue:
        so_far, _, node = heappop(queue)
        if so_far > distance[node]:
            continue
        for i in leaving.get(node, ()):
            head, farther = links[i][1], so_far + lengths[i]
            if farther < distance.get(head, math.inf):
                distance[head], arrival[head] = farther, i
                heappush(queue, (farther, i + 1, head))
    return distance, arrival


def _on_the_way(
    links: Sequence[Link], source: Hashable, target: Hashable, network: Sequence[Link]
) -> list[int]:
    ahead, behind = (
        _reached(links, source),
        _reached([(head, tail) for tail, head in links], target),
    )
    if target not in ahead:
        nodes = {node for link in network for node in link}
        raise UnreachableTarget(
            f"No way leads from {source!r} to {target!r}: {len(ahead)} of {len(nodes)} nodes can "
            "be reached. The graph is in several parts, or its links lead elsewhere."
        )
    return [i for i, (tail, head) in enumerate(links) if tail in ahead and head in behind]


def _reached(links: Sequence[Link], start: Hashable) -> set[Hashable]:
    leaving: dict[Hashable, list[Hashable]] = {}
    for tail, head in links:
        leaving.setdefault(tail, []).append(head)
    reached, waiting = {start}, [start]
    while waiting:
        found = [head for head in leaving.get(waiting.pop(), ()) if head not in reached]
        reached.update(found)
        waiting += found
    return reached


def as_lengths(lengths: Lengths | None, count: int) -> list[float]:
    """Positive lengths, one for each of so many links; all 1 where none are given."""
    if lengths is None:
        return [1.0] * count
    given = to_numpy(as_array(lengths, "The lengths of the links"))
    if given.shape != (count,):
        raise WrongShape(f"The lengths have shape {given.shape}; {count} links need one each.")
    if not (good := np.isfinite(given) & (given > 0)).all():
        first = int(np.argmin(good))
        raise InvalidInput(
            f"Lengths are positive and finite; that of link {first} is {given[first]:g}."
        )
    return [float(length) for length in given]


def as_links(links: Iterable[Link]) -> list[Link]:
    """Links as a list of pairs; another thing is refused."""
    nodes, tails, heads = number_nodes(links)
    return [
        (nodes[tail], nodes[head])
        for tail, head in zip(tails.tolist(), heads.tolist(), strict=True)
    ]


def _require_nodes(links: Sequence[Link], *ends: Hashable) -> None:
    nodes = {node for link in links for node in link}
    for node in ends:
        if not isinstance(node, Hashable) or node not in nodes:
            raise UnknownNode(f"No link touches the node {node!r}.")
