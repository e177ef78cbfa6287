"""Two-connected blocks of an undirected graph by depth-first search (Hopcroft and Tarjan 1973)."""

from __future__ import annotations

import numpy as np

from tidewolf.core.jit import kernel


@kernel
def label_blocks(ends, first, edges, of_edge, part):  # type: ignore[no-untyped-def]
    """Label edges by block (loops stay -1) and nodes by connected part; how many blocks there are.

    Edges at node v are edges[first[v]] .. edges[first[v + 1] - 1]. Naive twin: networkx, in
    tests/test_orders.py.
    """
    nodes = len(part)
    number, low = np.zeros(nodes, dtype=np.int64), np.zeros(nodes, dtype=np.int64)
    following = first[:-1].copy()  # the place of the next edge to look at, by node
    arrival = np.full(nodes, -1, dtype=np.int64)  # the edge by which a node was met
    path, pending = np.empty(nodes, dtype=np.int64), np.empty(len(ends), dtype=np.int64)
    met, waiting = 0, 0
    blocks, parts = 0, 0
    for root in range(nodes):
        if number[root] > 0:
            continue
        met += 1
        number[root], low[root] = met, met
        part[root] = parts
        path[0], depth = root, 0
        while depth >= 0:
            v = path[depth]
            if following[v] < first[v + 1]:
                e = edges[following[v]]
                following[v] += 1
                w = ends[e, 0] + ends[e, 1] - v
                if e == arrival[v] or w == v:
                    continue
                if number[w] == 0:
                    met += 1
                    number[w], low[w] = met, met
                    part[w], arrival[w] = parts, e
                    pending[waiting] = e
                    waiting += 1
                    depth += 1
                    path[depth] = w
                elif number[w] < number[v]:
                    pending[waiting] = e
                    waiting += 1
                    low[v] = min(low[v], number[w])
            else:
                depth -= 1
                if depth >= 0:
                    u = path[depth]
                    low[u] = min(low[u], low[v])
                    if low[v] >= number[u]:
                        while of_edge[arrival[v]] < 0:
                            waiting -= 1
                            of_edge[pending[waiting]] = blocks
                        blocks += 1
        parts += 1
    return blocks
