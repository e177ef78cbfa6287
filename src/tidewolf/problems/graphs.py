"""Traffic on directed graphs: by the hour, on shortest paths, by gravity, and a flow spread over
all paths that lead away from its source.

A graph is a list of links (tail, head) with positive lengths; nodes are anything hashable; see
`sets.graph_tools`.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from tidewolf.core.batch import Stream
from tidewolf.core.types import Floats, Lengths, Link
from tidewolf.functions.linear import Capacity, Linear
from tidewolf.problems.base import Problem
from tidewolf.sets import flows, graph_tools

HOUR = 4  # rounds of generated traffic
# the busiest local hour; at night exp(-2 SHARPNESS) of its traffic is left
PEAK, SHARPNESS = 15.0, 0.6


def activity(rounds: int, later: Floats) -> Floats:
    """How active places are whose clocks are so many hours late, (rounds, places): 1 in the busiest
    hour.
    """
    hours = np.arange(rounds)[:, None] / HOUR - later
    return np.asarray(np.exp(SHARPNESS * (np.cos(2 * np.pi * (hours - PEAK) / 24) - 1)))


def flow_problem(
    name: str,
    arcs: Sequence[Link],
    ends: Link,
    costs: Floats,
    capacities: Floats,
    title: str,
    period: int,
    **more: Any,
) -> Problem:
    """One flow between the ends, on arcs with a cost and a capacity per round."""
    K = flows.FlowPolytope.from_edges(arcs, source=ends[0], target=ends[1])
    stream = Stream(Linear(costs), Capacity(capacities))
    return Problem(name, K, stream, title, K.names, period, **more)


def loads(
    links: Sequence[Link], lengths: Lengths, nodes: Sequence[Hashable], traffic: Floats
) -> Floats:
    """The load on every link, (rounds, links), when traffic[t, i, j] from nodes[i] to nodes[j]
    takes the shortest path.
    """
    load = np.zeros((len(links), len(traffic)))
    for i, source in enumerate(nodes):
        _, arrival = graph_tools.shortest(links, lengths, source)
        for j, node in enumerate(nodes):
            while node != source:
                load[arrival[node]] += traffic[:, i, j]
                node = links[arrival[node]][0]
    return np.ascontiguousarray(load.T)


def gravity(
    links: Sequence[Link], lengths: Lengths, nodes: Sequence[Hashable], pull: Floats
) -> Floats:
    """`loads` for traffic pull[t, i] pull[t, j] from nodes[i] to nodes[j]: a node forwards what all
    nodes behind it draw.
    """
    own = {node: pull[:, i] for i, node in enumerate(nodes)}
    load = np.zeros((len(links), len(pull)))
    for source in nodes:
        distance, arrival = graph_tools.shortest(links, lengths, source)
        drawn = {node: own[node].copy() for node in arrival}
        for node in sorted(arrival, key=lambda node: -distance[node]):
            last = arrival[node]
            load[last] += own[source] * drawn[node]
            if links[last][0] != source:
                drawn[links[last][0]] += drawn[node]
    return np.ascontiguousarray(load.T)


def path_counts(
    links: Sequence[Link], distance: dict[Hashable, float], source: Hashable
) -> dict[Hashable, int]:
    """How many paths lead from the source to each node it reaches on links that lead away from
    it.
    """
    counts = dict.fromkeys(distance, 0) | {source: 1}
    shortest_path_dag = [
        (tail, head) for tail, head in links if tail in distance and distance[head] > distance[tail]
    ]
    for tail, head in sorted(shortest_path_dag, key=lambda link: distance[link[0]]):
        counts[head] += counts[tail]
    return counts


def spread(
    links: Sequence[Link], lengths: Lengths, source: Hashable, target: Hashable, scale: float
) -> Floats:
    """Dial's split (1971) of a unit flow over links that lead away: a path of length l gets a share
    proportional to exp(-l / scale).
    """
    distance, _ = graph_tools.shortest(links, lengths, source)
    shortest_path_dag = sorted(range(len(links)), key=lambda i: distance[links[i][0]])
    weight = {target: 1.0}
    for i in reversed(shortest_path_dag):
        tail, head = links[i]
        weight[tail] = weight.get(tail, 0.0) + math.exp(-lengths[i] / scale) * weight[head]
    flow, through = np.zeros(len(links)), {source: 1.0}
    for i in shortest_path_dag:
        tail, head = links[i]
        flow[i] = through[tail] * math.exp(-lengths[i] / scale) * weight[head] / weight[tail]
        through[head] = through.get(head, 0.0) + flow[i]
    return flow
