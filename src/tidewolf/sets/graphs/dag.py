"""Directed acyclic graphs between a source and a target, put in order once.

Nodes on a way from source to target get positions 0 (source) .. N-1 (target) in a topological
order; the arcs between them ("useful") are sorted by the position of their head, so that one pass
over them is a shortest-path computation:

    dist[v] = min over arcs (u, v) of dist[u] + weight
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tidewolf.core.arrays import as_number
from tidewolf.core.errors import (
    CyclicGraph,
    EmptyGraph,
    InvalidInput,
    UnreachableTarget,
)
from tidewolf.core.jit import kernel
from tidewolf.core.types import Bools, Int32s, NDArray
from tidewolf.sets.graphs.nodes import node_number, numbers_of

ON_EVERY_PATH = 1.0 - 1e-9
"""A covering flow over its value this close to 1 on an arc means that every path takes it:
elsewhere it is at most 1 - 1/value.
"""


class Dag(NamedTuple):
    """The useful part of a graph, in order."""

    order: Int32s
    """node of each position"""
    arcs: Int32s
    """useful arcs, sorted by head position"""
    tails: Int32s
    """position of the tail of each useful arc"""
    heads: Int32s
    """position of its head"""
    first: Int32s
    """arcs into position v are first[v] .. first[v + 1]"""
    by_tail: Int32s
    """the useful arcs' ranks again, sorted by tail position"""
    first_out: Int32s
    """ranks of arcs out of position u are by_tail[first_out[u] .. first_out[u + 1]]"""

    def packed(self) -> Int32s:
        """What `shortest_path` reads, end to end: the number of nodes, `first`, `tails`, `arcs`."""
        return np.concatenate([[len(self.order)], self.first, self.tails, self.arcs]).astype(
            np.int32
        )


def as_tolerance(tolerance: object) -> float:
    """A share below which paths are left out, below 1."""
    share = as_number(tolerance, "The tolerance of paths", least=0.0)
    if share >= 1.0:
        raise InvalidInput(
            f"The tolerance of paths is a share that is left out, less than 1, not {share:g}."
        )
    return share


def ordered(
    tails: Int32s, heads: Int32s, names: Sequence[Hashable], source: Hashable, target: Hashable
) -> Dag:
    """The useful part of the graph in topological order; a cycle, an unreachable target and unknown
    nodes get their sentence.
    """
    if len(tails) == 0:
        raise EmptyGraph(
            "The graph has no edges; a flow needs at least one from the source to the target."
        )
    numbers = numbers_of(names)
    start = node_number(source, numbers, "The source", "source")
    end = node_number(target, numbers, "The target", "target")
    if source == target:
        raise InvalidInput(
            f"Source and target are the same node {source!r}; a flow leads from one node to "
            "another.",
            setting="target",
        )
    order = _topological(tails, heads, names)
    useful_node = _reached(order, tails, heads, start) & _reached(order[::-1], heads, tails, end)
    if not useful_node[start]:
        raise UnreachableTarget(
            f"No path leads from {source!r} to {target!r}: the target cannot be reached along the "
            "edges.",
            setting="target",
        )
    order = order[useful_node[order]]
    position = np.full(len(names), -1, dtype=np.int32)
    position[order] = np.arange(len(order), dtype=np.int32)
    useful = np.flatnonzero(useful_node[tails] & useful_node[heads])
    arcs = useful[np.argsort(position[heads[useful]], kind="stable")].astype(np.int32)
    tail_positions, head_positions = position[tails[arcs]], position[heads[arcs]]
    by_tail = np.argsort(tail_positions, kind="stable").astype(np.int32)
    counting = np.arange(len(order) + 1)
    return Dag(
        order=order,
        arcs=arcs,
        tails=tail_positions,
        heads=head_positions,
        first=np.searchsorted(head_positions, counting).astype(np.int32),
        by_tail=by_tail,
        first_out=np.searchsorted(tail_positions[by_tail], counting).astype(np.int32),
    )


def _topological(tails: Int32s, heads: Int32s, names: Sequence[Hashable]) -> Int32s:
    """Kahn's order of all nodes, first come first served."""
    leaving: list[list[int]] = [[] for _ in names]
    waiting = [0] * len(names)
    for tail, head in zip(tails.tolist(), heads.tolist(), strict=True):
        leaving[tail].append(head)
        waiting[head] += 1
    ready = deque(node for node, count in enumerate(waiting) if count == 0)
    order = []
    while ready:
        node = ready.popleft()
        order.append(node)
        for head in leaving[node]:
            waiting[head] -= 1
            if waiting[head] == 0:
                ready.append(head)
    if len(order) < len(names):
        cycle = _cycle(leaving, {node for node, count in enumerate(waiting) if count > 0})
        named = tuple(names[node] for node in cycle)
        raise CyclicGraph(
            f"The graph has a cycle, {' -> '.join(map(str, named))}; paths need a graph without "
            "one. Keep only the links that lead away from the source, with "
            "sets.graph_tools.away.",
            named,
            setting="edges",
        )
    return np.array(order, dtype=np.int32)


def _cycle(leaving: list[list[int]], left: set[int]) -> list[int]:
    """A closed walk among the nodes Kahn's order could not place; each of them has a predecessor
    there.
    """
    before = {head: node for node in left for head in leaving[node] if head in left}
    node, seen = next(iter(left)), dict[int, None]()
    while node not in seen:
        seen[node] = None
        node = before[node]
    walk = list(seen)
    return [node, *reversed(walk[walk.index(node) :])]


def _reached(order: Int32s, tails: Int32s, heads: Int32s, start: int) -> Bools:
    """Which nodes a walk from `start` reaches; `order` is topological for arcs tail -> head."""
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    by_rank = np.argsort(rank[tails], kind="stable")
    reached = [False] * len(order)
    reached[start] = True
    for tail, head in zip(tails[by_rank].tolist(), heads[by_rank].tolist(), strict=True):
        if reached[tail]:
            reached[head] = True
    return np.array(reached)


def split(dag: Dag, flow: NDArray, tolerance: float) -> list[tuple[float, tuple[int, ...]]]:
    """A unit flow as weighted paths, widest first; once none carries more than `tolerance`, the
    weights are rescaled to sum to 1.

    Each path is the widest in what the ones before it left, and empties an arc: what is left out is
    at most `tolerance` an arc.
    """
    left, nodes, found = (
        flow.astype(np.float64),
        len(dag.order),
        list[tuple[float, tuple[int, ...]]](),
    )
    width, before, path = (
        np.empty(nodes),
        np.empty(nodes, dtype=np.int32),
        np.empty(nodes - 1, dtype=np.int32),
    )
    while True:
        arcs = path[widest_path(left, dag.arcs, dag.tails, dag.first, width, before, path) :]
        weight = float(left[arcs].min())
        if weight <= tolerance:
            break
        left[arcs] -= weight
        found.append((weight, tuple(arcs.tolist())))
    if not found:
        raise InvalidInput(
            f"No path carries more than the tolerance {tolerance:g}; choose a smaller one."
        )
    total = sum(weight for weight, _ in found)
    return [(weight / total, arcs) for weight, arcs in found]


def balances(arcs: Int32s, tails: Int32s, heads: Int32s, nodes: int, entries: int) -> Any:
    """The sparse matrix (nodes, entries) of what leaves every node less what enters it; arcs are
    entries of a point.
    """
    from scipy.sparse import csr_array

    signs = np.repeat([1.0, -1.0], len(arcs))
    return csr_array(
        (signs, (np.concatenate([tails, heads]), np.concatenate([arcs, arcs]))),
        shape=(nodes, entries),
    )


@kernel
def shortest_path(weights, graph, path, flow):  # type: ignore[no-untyped-def]
    """The arcs of a shortest path to the start of `path`, a flow of 1 on each; returns how many.

    Ties go to the earlier arc.
    """
    nodes = graph[0]
    first, rest = graph[1 : nodes + 2], graph[nodes + 2 :]
    tails, arcs = rest[: len(rest) // 2], rest[len(rest) // 2 :]
    dist, before = np.empty(nodes), np.empty(nodes, dtype=np.int32)
    dist[0] = 0.0
    for v in range(1, nodes):
        p = first[v]
        best, arg = dist[tails[p]] + weights[arcs[p]], p
        for q in range(p + 1, first[v + 1]):
            length = dist[tails[q]] + weights[arcs[q]]
            if length < best:
                best, arg = length, q
        dist[v] = best
        before[v] = arg
    v, count = nodes - 1, 0
    while v > 0:
        v = tails[before[v]]
        count += 1
    v = nodes - 1
    for k in range(count - 1, -1, -1):
        path[k] = arcs[before[v]]
        flow[k] = 1.0
        v = tails[before[v]]
    return count


@kernel
def shortest_paths(  # type: ignore[no-untyped-def]
    weights, arcs, tails, first, begins, demands, dist, before, chosen, values
):
    """Shortest paths of several graphs in one pass: graph k has positions begins[k] ..
    begins[k + 1] and arcs of its own.

    `chosen` gets the arcs of all paths and `values` the demand on each; returns how many there are.
    A demand of 0 takes no path.
    """
    count = 0
    for k in range(len(demands)):
        if demands[k] == 0.0:
            continue
        begin, end = begins[k], begins[k + 1]
        dist[begin] = 0.0
        for v in range(begin + 1, end):
            p = first[v]
            best, arg = dist[tails[p]] + weights[arcs[p]], p
            for q in range(p + 1, first[v + 1]):
                length = dist[tails[q]] + weights[arcs[q]]
                if length < best:
                    best, arg = length, q
            dist[v] = best
            before[v] = arg
        v = end - 1
        while v > begin:
            chosen[count], values[count] = arcs[before[v]], demands[k]
            count += 1
            v = tails[before[v]]
    return count


@kernel
def widest_path(flow, arcs, tails, first, width, before, path):  # type: ignore[no-untyped-def]
    """`shortest_path` for the path whose narrowest arc is widest."""
    nodes = len(first) - 1
    width[0] = np.inf
    for v in range(1, nodes):
        p = first[v]
        best, arg = min(width[tails[p]], flow[arcs[p]]), p
        for q in range(p + 1, first[v + 1]):
            w = min(width[tails[q]], flow[arcs[q]])
            if w > best:
                best, arg = w, q
        width[v] = best
        before[v] = arg
    v, k = nodes - 1, len(path)
    while v > 0:
        k -= 1
        path[k] = arcs[before[v]]
        v = tails[before[v]]
    return k


@kernel
def covering_flow(tails, heads, first, by_tail, first_out, flow):  # type: ignore[no-untyped-def]
    """A flow of at least 1 on every useful arc, in two sweeps; returns its value.

    Backwards, a node that sends more than it receives scales what it receives; forwards, one that
    receives more scales what it sends.
    """
    nodes = len(first) - 1
    for p in range(len(flow)):
        flow[p] = 1.0
    for v in range(nodes - 2, 0, -1):
        received, sent = 0.0, 0.0
        for p in range(first[v], first[v + 1]):
            received += flow[p]
        for k in range(first_out[v], first_out[v + 1]):
            sent += flow[by_tail[k]]
        if sent > received:
            for p in range(first[v], first[v + 1]):
                flow[p] *= sent / received
    value = 0.0
    for k in range(first_out[0], first_out[1]):
        value += flow[by_tail[k]]
    for v in range(1, nodes - 1):
        received, sent = 0.0, 0.0
        for p in range(first[v], first[v + 1]):
            received += flow[p]
        for k in range(first_out[v], first_out[v + 1]):
            sent += flow[by_tail[k]]
        for k in range(first_out[v], first_out[v + 1]):
            flow[by_tail[k]] *= received / sent
    return value


@kernel
def flow_excess(x, arcs, tails, heads, balance):  # type: ignore[no-untyped-def]
    """The largest breach of x >= 0 and of conservation over these arcs; `balance` holds what each
    node supplies, and is used up.
    """
    worst = 0.0
    for p in range(len(arcs)):
        amount = x[arcs[p]]
        balance[tails[p]] -= amount
        balance[heads[p]] += amount
        worst = max(worst, -amount)
    for v in range(len(balance)):
        worst = max(worst, abs(balance[v]))
    return worst
