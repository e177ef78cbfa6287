"""Directed graphs for flows: links that lead away from a source, traffic on shortest paths, a flow spread over all paths.

A graph is a list of links (tail, head) with positive lengths; nodes are anything hashable. Keeping the links whose head is strictly
farther from the source than their tail leaves no cycle, and every shortest path from the source stays.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from heapq import heappop, heappush
from typing import Any, TypeAlias

import numpy as np

Link: TypeAlias = tuple[Hashable, Hashable]
Floats: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
Lengths: TypeAlias = Sequence[float] | Floats


def shortest(links: Sequence[Link], lengths: Lengths, source: Hashable) -> tuple[dict[Hashable, float], dict[Hashable, int]]:
    """Dijkstra: the distance from the source to every node it reaches, and the last link on the way there."""
    leaving: dict[Hashable, list[int]] = {}
    for i, (tail, _) in enumerate(links):
        leaving.setdefault(tail, []).append(i)
    distance, arrival = {source: 0.0}, dict[Hashable, int]()
    queue = [(0.0, 0, source)]  # the middle entry keeps nodes, which need not be comparable, out of the comparison
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


def away(links: Sequence[Link], lengths: Lengths, source: Hashable, target: Hashable) -> list[int]:
    """The links that lead away from the source and lie on a way to the target, in the order given."""
    distance, _ = shortest(links, lengths, source)
    outward = [i for i, (tail, head) in enumerate(links) if tail in distance and distance[head] > distance[tail]]
    on_the_way = {target}
    for i in sorted(outward, key=lambda i: -distance[links[i][0]]):
        if links[i][1] in on_the_way:
            on_the_way.add(links[i][0])
    return [i for i in outward if links[i][1] in on_the_way]


def loads(links: Sequence[Link], lengths: Lengths, nodes: Sequence[Hashable], traffic: Floats) -> Floats:
    """The load on every link, (rounds, links), when traffic[t, i, j] from nodes[i] to nodes[j] takes the shortest path."""
    load = np.zeros((len(links), len(traffic)))
    for i, source in enumerate(nodes):
        _, arrival = shortest(links, lengths, source)
        for j, node in enumerate(nodes):
            while node != source:
                load[arrival[node]] += traffic[:, i, j]
                node = links[arrival[node]][0]
    return np.ascontiguousarray(load.T)


def gravity(links: Sequence[Link], lengths: Lengths, nodes: Sequence[Hashable], pull: Floats) -> Floats:
    """`loads` for traffic pull[t, i] pull[t, j] from nodes[i] to nodes[j]: a node forwards what all nodes behind it draw."""
    own = {node: pull[:, i] for i, node in enumerate(nodes)}
    load = np.zeros((len(links), len(pull)))
    for source in nodes:
        distance, arrival = shortest(links, lengths, source)
        drawn = {node: own[node].copy() for node in arrival}
        for node in sorted(arrival, key=lambda node: -distance[node]):
            last = arrival[node]
            load[last] += own[source] * drawn[node]
            if links[last][0] != source:
                drawn[links[last][0]] += drawn[node]
    return np.ascontiguousarray(load.T)


def path_counts(links: Sequence[Link], distance: dict[Hashable, float], source: Hashable) -> dict[Hashable, int]:
    """How many paths lead from the source to each node it reaches on links that lead away from it."""
    counts = dict.fromkeys(distance, 0) | {source: 1}
    outward = [(tail, head) for tail, head in links if tail in distance and distance[head] > distance[tail]]
    for tail, head in sorted(outward, key=lambda link: distance[link[0]]):
        counts[head] += counts[tail]
    return counts


def spread(links: Sequence[Link], lengths: Lengths, source: Hashable, target: Hashable, scale: float) -> Floats:
    """Dial's split (1971) of a unit flow over the links of `away`: a path of length l gets a share proportional to exp(-l / scale)."""
    distance, _ = shortest(links, lengths, source)
    outward = sorted(range(len(links)), key=lambda i: distance[links[i][0]])
    weight = {target: 1.0}
    for i in reversed(outward):
        tail, head = links[i]
        weight[tail] = weight.get(tail, 0.0) + math.exp(-lengths[i] / scale) * weight[head]
    flow, through = np.zeros(len(links)), {source: 1.0}
    for i in outward:
        tail, head = links[i]
        flow[i] = through[tail] * math.exp(-lengths[i] / scale) * weight[head] / weight[tail]
        through[head] = through.get(head, 0.0) + flow[i]
    return flow
