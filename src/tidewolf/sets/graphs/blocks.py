"""Two-connected blocks of an undirected graph (Hopcroft and Tarjan 1973): edges on a common cycle
share a block.

A depth-first walk numbers the nodes; `low` is the smallest number that a node's part of the walk
reaches by one edge back. Where a child's low is not below its parent's number, the edges walked
since the child was met are a block. A bridge is a block of one edge, parallel edges are a cycle,
and a loop is a block by itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidewolf.core.jit import kernel
from tidewolf.core.types import Int32s


class Blocks(NamedTuple):
    """The block of every edge and the connected part of every node, numbered from 0."""

    of_edge: Int32s
    part_of_node: Int32s
    number: int


class Incidence(NamedTuple):
    """Edges at node v are edges[first[v]] .. edges[first[v + 1]]; a loop is there twice."""

    first: Int32s
    edges: Int32s


def incidence(ends: Int32s, nodes: int) -> Incidence:
    """The edges at every node."""
    touched = ends.T.reshape(-1)
    by_node = np.argsort(touched, kind="stable")
    first = np.searchsorted(touched[by_node], np.arange(nodes + 1)).astype(np.int32)
    return Incidence(first, (by_node % len(ends)).astype(np.int32))


def blocks(ends: Int32s, nodes: int) -> Blocks:
    """The blocks and parts of a graph whose edges are the rows of `ends`."""
    near = incidence(ends, nodes)
    of_edge, part = np.full(len(ends), -1, dtype=np.int32), np.full(nodes, -1, dtype=np.int32)
    count = int(walk(ends, near.first, near.edges, of_edge, part))
    loops = np.flatnonzero(of_edge < 0)
    of_edge[loops] = np.arange(count, count + len(loops))
    return Blocks(of_edge, part, count + len(loops))


@kernel
def walk(ends, first, edges, of_edge, part):  # type: ignore[no-untyped-def]
    """Label edges by block (loops stay -1) and nodes by part; how many blocks there are."""
    nodes = len(part)
    number, low, at = (
        np.zeros(nodes, dtype=np.int64),
        np.zeros(nodes, dtype=np.int64),
        first[:-1].copy(),
    )
    via, path, pending = (
        np.full(nodes, -1, dtype=np.int64),
        np.empty(nodes, dtype=np.int64),
        np.empty(len(ends), dtype=np.int64),
    )
    clock, count, parts, waiting = 0, 0, 0, 0
    for root in range(nodes):
        if number[root] > 0:
            continue
        clock += 1
        number[root], low[root], part[root], path[0], depth = clock, clock, parts, root, 0
        while depth >= 0:
            v = path[depth]
            if at[v] < first[v + 1]:
                e = edges[at[v]]
                at[v] += 1
                w = ends[e, 0] + ends[e, 1] - v
                if e == via[v] or w == v:
                    continue
                if number[w] == 0:
                    clock += 1
                    number[w], low[w], part[w], via[w] = clock, clock, parts, e
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
                        while of_edge[via[v]] < 0:
                            waiting -= 1
                            of_edge[pending[waiting]] = count
                        count += 1
        parts += 1
    return count
