"""Passes over directed acyclic graphs whose arcs are sorted by the position of their head.

A graph is a tuple (arcs, tails, first): arcs into position v have the ranks first[v] .. first[v +
1] - 1; of each rank, `arcs` has its entry of a point, `tails` the position of its tail. One pass in
the order of positions labels every node, as its tails come first.
"""

from __future__ import annotations

import numpy as np

from tidewolf.core.jit import kernel, light_kernel


@light_kernel
def label_distances(weights, graph, begin, end, distance, arrival):  # type: ignore[no-untyped-def]
    """Fill the distance of positions begin .. end - 1 from the first of them, and the rank of the
    last arc on the way there; ties go to the earlier arc.

    Reference: `naive_shortest` in tests/test_flows.py.
    """
    arcs, tails, first = graph
    distance[begin] = 0.0
    for v in range(begin + 1, end):
        p = first[v]
        least, nearest = distance[tails[p]] + weights[arcs[p]], p
        for q in range(p + 1, first[v + 1]):
            length = distance[tails[q]] + weights[arcs[q]]
            if length < least:
                least, nearest = length, q
        distance[v] = least
        arrival[v] = nearest


@light_kernel
def shortest_path(weights, packed, path, flow):  # type: ignore[no-untyped-def]
    """The arcs of a shortest path to the start of `path`, a flow of 1 on each; returns how many.

    `packed` is the number of nodes, `first`, `tails` and `arcs` end to end. Reference:
    `naive_shortest` in tests/test_flows.py.
    """
    nodes = packed[0]
    first, rest = packed[1 : nodes + 2], packed[nodes + 2 :]
    tails, arcs = rest[: len(rest) // 2], rest[len(rest) // 2 :]
    distance, arrival = np.empty(nodes), np.empty(nodes, dtype=np.int32)
    label_distances(weights, (arcs, tails, first), 0, nodes, distance, arrival)
    v, count = nodes - 1, 0
    while v > 0:
        v = tails[arrival[v]]
        count += 1
    v = nodes - 1
    for k in range(count - 1, -1, -1):
        path[k] = arcs[arrival[v]]
        flow[k] = 1.0
        v = tails[arrival[v]]
    return count


@kernel
def shortest_paths(weights, graph, begins, demands, chosen, values):  # type: ignore[no-untyped-def]
    """Shortest paths of several graphs in one pass: graph k has positions begins[k] .. begins[k +
    1] - 1 and arcs of its own.

    `chosen` gets the arcs of all paths and `values` the demand on each; returns how many there are.
    A demand of 0 takes no path. Reference: a FlowPolytope for each graph, `singles_of` in
    tests/polytopes.py.
    """
    arcs, tails, _ = graph
    distance, arrival = np.empty(begins[-1]), np.empty(begins[-1], dtype=np.int32)
    count = 0
    for k in range(len(demands)):
        if demands[k] == 0.0:
            continue
        label_distances(weights, graph, begins[k], begins[k + 1], distance, arrival)
        v = begins[k + 1] - 1
        while v > begins[k]:
            chosen[count], values[count] = arcs[arrival[v]], demands[k]
            count += 1
            v = tails[arrival[v]]
    return count


@light_kernel
def widest_path(flow, graph, path):  # type: ignore[no-untyped-def]
    """The path whose narrowest arc is widest, at the end of `path`; returns where it begins.

    Reference: all paths, `vertices_of` in tests/polytopes.py.
    """
    arcs, tails, first = graph
    nodes = len(first) - 1
    width, arrival = np.empty(nodes), np.empty(nodes, dtype=np.int32)
    width[0] = np.inf
    for v in range(1, nodes):
        p = first[v]
        most, widest = min(width[tails[p]], flow[arcs[p]]), p
        for q in range(p + 1, first[v + 1]):
            narrowest = min(width[tails[q]], flow[arcs[q]])
            if narrowest > most:
                most, widest = narrowest, q
        width[v] = most
        arrival[v] = widest
    v, k = nodes - 1, len(path)
    while v > 0:
        k -= 1
        path[k] = arcs[arrival[v]]
        v = tails[arrival[v]]
    return k
