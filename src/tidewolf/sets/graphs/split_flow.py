"""A flow on any graph as weighted paths: from a node that supplies along arcs that carry something
to a node that draws.

Each walk either closes a cycle, whose least flow is taken off all its arcs, or arrives, and takes
the least of what its arcs carry, its first node supplies and its last one draws: an arc or a node
is used up every time, so there are at most as many steps as arcs and nodes.
"""

from __future__ import annotations

import numpy as np

from tidewolf.core.types import Floats, Int32s


def split_flow(
    tails: Int32s, heads: Int32s, supply: Floats, flow: Floats, tolerance: float
) -> list[tuple[float, tuple[int, ...]]]:
    """Weights and arcs of the paths, heaviest first; paths over the same arcs are one."""
    left, owed = np.where(flow > tolerance, flow, 0.0), supply.astype(np.float64).copy()
    leaving: list[list[int]] = [[] for _ in range(len(owed))]
    for arc in np.argsort(left, kind="stable").tolist():  # the widest is tried first
        leaving[int(tails[arc])].append(arc)
    found: dict[tuple[int, ...], float] = {}
    for source in np.flatnonzero(supply > 0).tolist():
        while owed[source] > tolerance and (walk := _walk(source, leaving, heads, left, owed)):
            arcs, arrived = walk
            weight = float(left[list(arcs)].min())
            if arrived:
                end = int(heads[arcs[-1]])
                weight = min(weight, float(owed[source]), -float(owed[end]))
                owed[source] -= weight
                owed[end] += weight
                found[arcs] = found.get(arcs, 0.0) + weight
            left[list(arcs)] -= weight
            left[left <= tolerance] = 0.0
    return sorted(((weight, arcs) for arcs, weight in found.items()), key=lambda each: -each[0])


def _walk(
    node: int, leaving: list[list[int]], heads: Int32s, left: Floats, owed: Floats
) -> tuple[tuple[int, ...], bool] | None:
    """The arcs of a way that arrives, or of a cycle; None where nothing leaves."""
    arcs, seen = list[int](), {node: 0}
    while True:
        while leaving[node] and left[leaving[node][-1]] == 0.0:
            leaving[node].pop()
        if not leaving[node]:
            return None
        arcs.append(leaving[node][-1])
        node = int(heads[arcs[-1]])
        if node in seen:
            return tuple(arcs[seen[node] :]), False
        seen[node] = len(arcs)
        if owed[node] < 0.0:
            return tuple(arcs), True
