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
from tidewolf.core.types import Bools, Floats, Int32s, NDArray
from tidewolf.kernels.dag import covering_flow, widest_path
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

    def covering_flow(self) -> Floats:
        """A unit flow that is positive on every useful arc, by rank."""
        flow = np.empty(len(self.arcs))
        value: float = covering_flow(self.first, self.by_tail, self.first_out, flow)
        return flow / value

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


def build_dag(
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


def is_reached_without(
    tails: Int32s, heads: Int32s, nodes: int, ends: tuple[int, int], out: NDArray
) -> bool:
    """Whether a path leads from the first of two nodes to the second over arcs that are not out."""
    kept = np.ones(len(tails), dtype=bool)
    kept[out] = False
    reached: Bools = np.zeros(nodes, dtype=bool)
    reached[ends[0]], count = True, 0
    while count < (count := int(np.count_nonzero(reached))):
        reached[heads[kept & reached[tails]]] = True
    return bool(reached[ends[1]])


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


def weighted_paths(
    dag: Dag, flow: NDArray, tolerance: float
) -> list[tuple[float, tuple[int, ...]]]:
    """A unit flow as weighted paths, widest first; once none carries more than `tolerance`, the
    weights are rescaled to sum to 1.

    Each path is the widest in what the ones before it left, and empties an arc: what is left out is
    at most `tolerance` an arc.
    """
    left, found = flow.astype(np.float64), list[tuple[float, tuple[int, ...]]]()
    path = np.empty(len(dag.order) - 1, dtype=np.int32)
    while True:
        arcs = path[widest_path(left, (dag.arcs, dag.tails, dag.first), path) :]
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


def incidence_matrix(arcs: Int32s, tails: Int32s, heads: Int32s, nodes: int, entries: int) -> Any:
    """The sparse matrix (nodes, entries) of what leaves every node less what enters it; arcs are
    entries of a point.
    """
    from scipy.sparse import csr_array

    signs = np.repeat([1.0, -1.0], len(arcs))
    return csr_array(
        (signs, (np.concatenate([tails, heads]), np.concatenate([arcs, arcs]))),
        shape=(nodes, entries),
    )
